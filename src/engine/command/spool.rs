//! Where the output of engine processes is kept, byte for byte. The processes write the files themselves, so that no
//! amount of output is ever in memory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The files of one message to one session.
#[derive(Debug)]
pub(super) struct Spool {
    folder: PathBuf,
    /// The session's folder from squad's local one, with `/`.
    name: String,
    pub(super) turn: u32,
}

impl Spool {
    /// Those of a session's next message.
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
                // Another process has taken it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => spool.turn += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Those of a message that is being worked on.
    pub(super) fn of(local: &Path, session: &str, turn: u32) -> Self {
        let name = format!("output/{session}");
        Self { folder: local.join(&name), name, turn }
    }

    /// Writes what the process is sent.
    pub(super) fn write_prompt(&self, prompt: &str) -> io::Result<PathBuf> {
        let path = self.path("prompt");
        File::create(&path)?.write_all(prompt.as_bytes())?;
        Ok(path)
    }

    pub(super) fn path(&self, kind: &str) -> PathBuf {
        self.folder.join(format!("{}.{kind}", self.turn))
    }

    /// As the record names it.
    pub(super) fn shown(&self, kind: &str) -> String {
        format!("{}/{}.{kind}", self.name, self.turn)
    }

    /// For a process to write to.
    pub(super) fn create(&self, kind: &str) -> io::Result<File> {
        // Several processes of one turn write one behind the other.
        private().append(true).create(true).open(self.path(kind))
    }

    pub(super) fn len(&self, kind: &str) -> u64 {
        fs::metadata(self.path(kind)).map_or(0, |metadata| metadata.len())
    }

    /// The last bytes of a file, as text.
    pub(super) fn end(&self, kind: &str, bytes: u64) -> String {
        let read = || -> io::Result<Vec<u8>> {
            let mut file = File::open(self.path(kind))?;
            let start = file.metadata()?.len().saturating_sub(bytes);
            file.seek(SeekFrom::Start(start))?;
            let mut end = Vec::new();
            file.take(bytes).read_to_end(&mut end)?;
            // A character that is cut in two is left out.
            let cut = if start > 0 { end.iter().take(4).take_while(|byte| *byte & 0xC0 == 0x80).count() } else { 0 };
            Ok(end.split_off(cut))
        };
        String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
    }
}

/// Nobody else reads what agents say.
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

/// Reads a file that grows, line by line. A line is whole before it is given, so that no character is cut in two.
pub(super) struct Tail {
    path: PathBuf,
    position: u64,
    line: Vec<u8>,
    /// The line is longer than is read, and skipped.
    is_skipping: bool,
}

/// A longer line of a stream is not read.
const LONGEST_LINE: usize = 8 * 1024 * 1024;
/// Read at a time.
const CHUNK: usize = 64 * 1024;

impl Tail {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, position: 0, line: Vec::new(), is_skipping: false }
    }

    /// The lines of the next piece; `None`: there is nothing more at the moment.
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
            if self.line.len() > LONGEST_LINE {
                (self.line, self.is_skipping) = (Vec::new(), true);
            }
            if parts.peek().is_some() {
                lines.extend(self.rest());
            }
        }
        Ok(Some(lines))
    }

    /// What stands behind the last line's end.
    pub(super) fn rest(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        let is_skipped = std::mem::take(&mut self.is_skipping);
        (!is_skipped && !line.is_empty()).then(|| String::from_utf8_lossy(&line).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_count_on_and_files_are_private() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = Spool::next(folder.path(), "squad-a").expect("a spool");
        let second = Spool::next(folder.path(), "squad-a").expect("a spool");
        assert_eq!((first.turn, second.turn), (1, 2));
        assert_eq!(second.shown("stdout"), "output/squad-a/2.stdout");
        second.create("stdout").expect("a file").write_all("é€".as_bytes()).expect("written");
        assert_eq!(second.end("stdout", 4), "€");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(second.path("stdout")).expect("a file").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn characters_that_come_in_two_pieces_are_whole() {
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
        assert_eq!(tail.rest().as_deref(), Some("rest"));
    }
}
