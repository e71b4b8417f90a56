//! Members' prompts and output, byte for byte, in files under `.git/squad/output`.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::env::files::{self, open_regular};
use crate::env::is_without_links;

/// The folder in squad's local folder.
const FOLDER: &str = "output";

/// A file with output. It may have been cleared; the ledger has the messages.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OutputFile(PathBuf);

impl OutputFile {
    /// The file of a session that belongs to one run.
    pub(super) fn of_session(local: &Path, session: &str, name: &str) -> Self {
        Self(local.join(FOLDER).join(session).join(name))
    }

    /// The file of the newest message to a session of a command engine, which may still be writing to it.
    pub(super) fn newest(local: &Path, session: &str, kind: &str) -> Option<Self> {
        let inner = Path::new(FOLDER).join(session);
        let folder = local.join(&inner);
        if !is_without_links(local, &inner) {
            return None;
        }
        let names = fs::read_dir(&folder).ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let turns = names.filter_map(|name| name.strip_suffix(kind)?.strip_suffix('.')?.parse::<u32>().ok());
        turns.max().map(|turn| Self(folder.join(format!("{turn}.{kind}"))))
    }

    /// The file that an entry names. Entries also come from other clones, so no path outside the folder is accepted, nor
    /// one through a link, which an agent may have made.
    pub(super) fn named(local: &Path, path: &str) -> Option<Self> {
        let path = Path::new(path);
        (path.starts_with(FOLDER) && is_without_links(local, path)).then(|| Self(local.join(path)))
    }

    pub(super) fn write(&self, text: &str) -> io::Result<()> {
        files::replace(&self.0, text.as_bytes())
    }

    /// Its size in bytes; `None` if it does not exist.
    pub(crate) fn size(&self) -> Option<u64> {
        fs::symlink_metadata(&self.0).ok().filter(fs::Metadata::is_file).map(|about| about.len())
    }

    /// Its last `most` bytes.
    pub(crate) fn end(&self, most: u64) -> io::Result<Vec<u8>> {
        let mut file = open_regular(File::options().read(true), &self.0)?;
        let size = file.metadata()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(most)))?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_names_no_file_outside_the_folder() {
        let local = tempfile::tempdir().expect("a folder");
        OutputFile::of_session(local.path(), "s", "1.stdout").write("text").expect("it is written");
        fs::write(local.path().join("secret"), "secret").expect("a file");
        let found = OutputFile::named(local.path(), "output/s/1.stdout").expect("it is there");
        assert_eq!(OutputFile::newest(local.path(), "s", "stdout"), Some(found.clone()));
        fs::create_dir(local.path().join("other")).expect("a folder");
        fs::write(local.path().join("other/2.stdout"), "text").expect("a file");
        assert_eq!(OutputFile::newest(local.path(), "../other", "stdout"), None);
        assert_eq!((found.size(), found.end(2).expect("bytes")), (Some(4), b"xt".to_vec()));
        let absolute = local.path().join("secret").display().to_string();
        for wrong in ["secret", "output/../secret", "../secret", "output/./../secret", &absolute] {
            assert_eq!(OutputFile::named(local.path(), wrong), None, "{wrong}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(local.path().join("secret"), local.path().join("output/link")).expect("a link");
            std::os::unix::fs::symlink(local.path(), local.path().join("output/out")).expect("a link");
            for wrong in ["output/link", "output/out/secret"] {
                assert_eq!(OutputFile::named(local.path(), wrong), None, "{wrong}");
            }
        }
    }
}
