//! The diff of the work tree, or of the index, against a commit.

use super::{Error, Repository};

/// The tree of no files, for a repository without a commit.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

impl Repository {
    /// A unified diff against a commit, or against nothing. No program but git runs for it.
    pub(crate) fn unified_diff(&self, base: Option<&str>, staged: bool, paths: &[String]) -> Result<Vec<u8>, Error> {
        const OPTIONS: [&str; 9] = [
            "diff",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            // Else git runs in them, with a configuration that an agent may have written.
            "--ignore-submodules=dirty",
            "--find-renames",
            "--unified=3",
            "--src-prefix=a/",
            "--dst-prefix=b/",
        ];
        let mut call = self.call(&["--literal-pathspecs"]).arguments(&OPTIONS);
        if staged {
            call = call.arguments(&["--cached"]);
        }
        call = call.arguments(&[base.unwrap_or(EMPTY_TREE), "--"]).arguments(paths);
        Ok(call.succeed()?.stdout)
    }

    /// The files that git neither tracks nor ignores.
    pub(crate) fn untracked_files(&self, paths: &[String]) -> Result<Vec<String>, Error> {
        let list = ["ls-files", "-z", "--others", "--exclude-standard", "--"];
        let listed = self.call(&["--literal-pathspecs"]).arguments(&list).arguments(paths).succeed()?.stdout;
        let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.filter_map(|name| String::from_utf8(name.to_owned()).ok()).collect())
    }
}
