//! Stores the output of engine processes unchanged. The processes write the files themselves, so that even large output
//! takes no memory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The files of one turn of a session.
#[derive(Debug)]
pub(super) struct Spool {
    folder: PathBuf,
    /// The folder's path relative to squad's local folder, with `/`.
    name: String,
    pub(super) turn: u32,
}

impl Spool {
    /// Reserves the number of the session's next turn.
    pub(super) fn next(local: &Path, session: &str) -> io::Result<Self> {
        let name = format!("output/{session}");
        let folder = local.join(&name);
        fs::create_dir_all(&folder)?;
        let numbers = fs::read_dir(&folder)?
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.split('.').next()?.parse::<u32>().ok());
        let mut spool = Self { turn: numbers.max().unwrap_or(0).saturating_add(1), folder, name };
        loop {
            match private().write(true).create_new(true).open(spool.path("prompt")) {
                Ok(_) => return Ok(spool),
                // Another process has taken this number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => spool.turn += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// The files of an existing turn.
    pub(super) fn of(local: &Path, session: &str, turn: u32) -> Self {
        let name = format!("output/{session}");
        Self { folder: local.join(&name), name, turn }
    }

    /// Writes the prompt for the process.
    pub(super) fn write_prompt(&self, prompt: &str) -> io::Result<PathBuf> {
        let path = self.path("prompt");
        File::create(&path)?.write_all(prompt.as_bytes())?;
        Ok(path)
    }

    pub(super) fn path(&self, kind: &str) -> PathBuf {
        self.folder.join(format!("{}.{kind}", self.turn))
    }

    /// A file's path relative to squad's local folder, for the record.
    pub(super) fn relative_path(&self, kind: &str) -> String {
        format!("{}/{}.{kind}", self.name, self.turn)
    }

    /// Opens a file for a process to write to.
    pub(super) fn create(&self, kind: &str) -> io::Result<File> {
        // Several processes of one turn append to the same file.
        private().append(true).create(true).open(self.path(kind))
    }

    pub(super) fn len(&self, kind: &str) -> u64 {
        fs::metadata(self.path(kind)).map_or(0, |metadata| metadata.len())
    }

    /// The last bytes of a file, as text. Empty if the file cannot be read.
    pub(super) fn last_text(&self, kind: &str, bytes: u64) -> String {
        let read = || -> io::Result<Vec<u8>> {
            let mut file = File::open(self.path(kind))?;
            let start = file.metadata()?.len().saturating_sub(bytes);
            file.seek(SeekFrom::Start(start))?;
            let mut end = Vec::new();
            file.take(bytes).read_to_end(&mut end)?;
            // Drop the rest of a character that was cut in two.
            let cut = if start > 0 { end.iter().take(4).take_while(|byte| *byte & 0xC0 == 0x80).count() } else { 0 };
            Ok(end.split_off(cut))
        };
        String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
    }
}

/// Options for files that only the user may read.
fn private() -> OpenOptions {
    #[cfg(unix)]
    {
        let mut options = File::options();
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options
    }
    #[cfg(not(unix))]
    File::options()
}

/// Reads the lines of a growing file. Only whole lines are returned, so that no character is cut in two.
pub(super) struct Tail {
    path: PathBuf,
    position: u64,
    line: Vec<u8>,
    /// The current line is too long and is skipped.
    is_skipping: bool,
}

/// Longer lines are skipped.
const MAX_LINE: usize = 8 * 1024 * 1024;
/// Bytes read at a time.
const CHUNK: usize = 64 * 1024;

impl Tail {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, position: 0, line: Vec::new(), is_skipping: false }
    }

    /// Reads a chunk and returns the lines that it completes; `None`: there is no new output.
    pub(super) fn lines(&mut self) -> io::Result<Option<Vec<String>>> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.position))?;
        let mut chunk = vec![0; CHUNK];
        let read = file.read(&mut chunk)?;
        if read == 0 {
            return Ok(None);
        }
        self.position += read as u64;
        let mut lines = Vec::new();
        let mut parts = chunk[..read].split(|byte| *byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            if !self.is_skipping {
                self.line.extend_from_slice(part);
            }
            if self.line.len() > MAX_LINE {
                (self.line, self.is_skipping) = (Vec::new(), true);
            }
            if parts.peek().is_some() {
                lines.extend(self.take_line());
            }
        }
        Ok(Some(lines))
    }

    /// Takes the current line, even if its line feed is missing; `None`: it is empty or was skipped.
    pub(super) fn take_line(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        let is_skipped = std::mem::take(&mut self.is_skipping);
        (!is_skipped && !line.is_empty()).then(|| String::from_utf8_lossy(&line).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_numbered_and_files_are_private() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = Spool::next(folder.path(), "squad-a").expect("a spool");
        let second = Spool::next(folder.path(), "squad-a").expect("a spool");
        assert_eq!((first.turn, second.turn), (1, 2));
        assert_eq!(second.relative_path("stdout"), "output/squad-a/2.stdout");
        second.create("stdout").expect("a file").write_all("é€".as_bytes()).expect("written");
        assert_eq!(second.last_text("stdout", 4), "€");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(second.path("stdout")).expect("a file").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn characters_written_in_two_parts_are_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out");
        let mut file = File::create(&path).expect("a file");
        let mut tail = Tail::new(path);
        let text = "a€b\0c\n".as_bytes();
        file.write_all(&text[..2]).expect("written");
        assert_eq!(tail.lines().expect("read"), Some(vec![]));
        file.write_all(&text[2..]).expect("written");
        assert_eq!(tail.lines().expect("read"), Some(vec!["a€b\0c".to_owned()]));
        file.write_all(b"rest").expect("written");
        assert_eq!((tail.lines().expect("read"), tail.lines().expect("read")), (Some(vec![]), None));
        assert_eq!(tail.take_line().as_deref(), Some("rest"));
    }
}
