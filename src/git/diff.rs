//! The diff of the work tree, or of the index, against a commit.

use gix::ObjectId;

use super::{Error, Repository};

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
        // Reviewers read names, and git would quote all that are not ASCII.
        let mut call = self.call(&["--literal-pathspecs", "-c", "core.quotePath=false"]).arguments(&OPTIONS);
        if staged {
            call = call.arguments(&["--cached"]);
        }
        let empty = ObjectId::empty_tree(self.hash()).to_string();
        call = call.arguments(&[base.unwrap_or(&empty), "--"]).arguments(paths);
        Ok(call.succeed()?.stdout)
    }

    /// The files that git neither tracks nor ignores, and the folders of repositories among them, which end with `/`.
    pub(crate) fn untracked_files(&self, paths: &[String]) -> Result<Vec<String>, Error> {
        let list = ["ls-files", "-z", "--others", "--exclude-standard", "--"];
        let listed = self.call(&["--literal-pathspecs"]).arguments(&list).arguments(paths).succeed()?.stdout;
        let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }
}
