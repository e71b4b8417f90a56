//! TOML files that squad itself keeps in a team's folder.

use serde::{Deserialize, de::DeserializeOwned};

use crate::error::Failure;
use crate::policy::is_portable;

/// A kind of such files.
pub(super) struct OwnFile {
    pub(super) what: &'static str,
    /// What its paths are in.
    pub(super) folder: &'static str,
    /// What squad cannot do without it.
    pub(super) loss: &'static str,
    /// The newest format that this squad reads.
    pub(super) format: u32,
}

impl OwnFile {
    /// Parses a file at `at`. Fails if it is not valid, if a newer squad wrote it, or if one of its `paths` leads out of
    /// the folder it is relative to.
    pub(super) fn read<T: DeserializeOwned>(
        &self,
        text: &str,
        at: &str,
        paths: impl Fn(&T) -> Vec<&String>,
    ) -> Result<T, Failure> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let Format { format } = self.parse(text, at)?;
        if format > self.format {
            return Err(newer(at, &format!("format {format}"), &format!("up to {}", self.format)));
        }
        let file: T = self.parse(text, at)?;
        match paths(&file).into_iter().find(|path| !is_portable(path)) {
            Some(path) => Err(Failure::team(format!("`{path}` is not in {}", self.folder)).at(at)),
            None => Ok(file),
        }
    }

    fn parse<T: DeserializeOwned>(&self, text: &str, at: &str) -> Result<T, Failure> {
        toml::from_str(text).map_err(|error: toml::de::Error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            Failure::team(format!("is not a valid {}: {}", self.what, error.message()))
                .at(format!("{at}:{}", 1 + before.matches('\n').count()))
                .hint(format!("restore it from an earlier commit; without it, squad {}", self.loss))
        })
    }
}

pub(super) fn newer(at: &str, theirs: &str, ours: &str) -> Failure {
    Failure::team(format!("a newer squad wrote these files: {theirs}; this one supports {ours}"))
        .at(at)
        .hint("upgrade squad itself; until then it reads the team but does not change these files")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_path_is_of_the_project_on_every_system() {
        #[derive(Debug, Deserialize)]
        struct Paths {
            paths: Vec<String>,
        }
        let kind = OwnFile { what: "list", folder: "the project", loss: "cannot go on", format: 1 };
        let read = |path: &str| {
            let text = format!("format = 1\npaths = [{}]\n", serde_json::Value::from(path));
            kind.read(&text, "list.toml", |file: &Paths| file.paths.iter().collect())
        };
        for path in
            ["../x", "/etc/x", "", "a/../../x", ".git/hooks/post-commit", "a/.GIT/config", "a\\..\\x", "C:x", "a\0b"]
        {
            assert!(read(path).is_err_and(|error| error.message.contains("is not in the project")), "{path:?}");
        }
        for path in [".github/agents/a.md", ".gitignore"] {
            assert!(read(path).is_ok(), "{path:?}");
        }
    }
}
