//! A three-way text merge by `git merge-file`, since users expect a merge to do what git does.

use std::{fs, path::Path};

use super::{error::Error, repository::Repository};

impl Repository {
    /// `base` with the changes of both sides; `None` if they conflict.
    pub(crate) fn merged_text(&self, base: &[u8], ours: &[u8], theirs: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let folder = tempfile::tempdir().map_err(Error::io("write to", std::env::temp_dir()))?;
        let mut arguments = vec!["-p".to_owned(), "--quiet".to_owned()];
        for (name, bytes) in [("ours", ours), ("base", base), ("theirs", theirs)] {
            let file = folder.path().join(name);
            fs::write(&file, bytes).map_err(Error::io("write", &file))?;
            arguments.push(to_text(&file));
        }
        let answer = self.call(&["merge-file"]).arguments(&arguments).run()?;
        Ok(answer.is_success().then_some(answer.stdout))
    }
}

fn to_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
