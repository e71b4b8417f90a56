//! Stores the output of engine processes unchanged. The processes write the files themselves, so that even large output
//! takes no memory. A process may put a link or a pipe in the place of its output, so a file is read through the handle
//! that it was created with.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::env::files::{open_regular, read_at};
use crate::env::is_without_links;

/// The files of one turn of a session.
#[derive(Debug)]
pub(super) struct Spool {
    /// The files that this process created, by kind.
    files: Mutex<BTreeMap<String, File>>,
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
        if !is_without_links(local, Path::new(&name)) {
            return Err(io::Error::other(format!("{} is a link, or behind one", folder.display())));
        }
        let numbers = fs::read_dir(&folder)?
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.split('.').next()?.parse::<u32>().ok());
        let turn = numbers.max().unwrap_or(0).saturating_add(1);
        let mut spool = Self { files: Mutex::default(), turn, folder, name };
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
        Self { files: Mutex::default(), folder: local.join(&name), name, turn }
    }

    /// Writes the prompt for the process.
    pub(super) fn write_prompt(&self, prompt: &str) -> io::Result<PathBuf> {
        let path = self.path("prompt");
        open_regular(private().write(true).create(true).truncate(true), &path)?.write_all(prompt.as_bytes())?;
        Ok(path)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn path(&self, kind: &str) -> PathBuf {
        self.folder.join(format!("{}.{kind}", self.turn))
    }

    /// A file's path relative to squad's local folder, for the record.
    pub(super) fn relative_path(&self, kind: &str) -> String {
        format!("{}/{}.{kind}", self.name, self.turn)
    }

    /// Opens a file for a process to write to. Several processes of one turn append to the same file.
    pub(super) fn create(&self, kind: &str) -> io::Result<File> {
        let mut files = self.files.lock();
        if let Some(file) = files.get(kind) {
            return file.try_clone();
        }
        let file = open_regular(private().read(true).append(true).create(true), &self.path(kind))?;
        files.insert(kind.to_owned(), file.try_clone()?);
        Ok(file)
    }

    /// Opens a file for reading. Its position is not to be relied on: processes that write to it share it.
    fn open(&self, kind: &str) -> io::Result<File> {
        let files = self.files.lock();
        files.get(kind).map_or_else(|| open_regular(File::options().read(true), &self.path(kind)), File::try_clone)
    }

    pub(super) fn len(&self, kind: &str) -> u64 {
        self.open(kind).and_then(|file| file.metadata()).map_or(0, |metadata| metadata.len())
    }

    pub(super) fn tail(&self, kind: &str) -> io::Result<Tail> {
        self.open(kind).map(|file| Tail { file, position: 0, line: Vec::new(), is_skipping: false })
    }

    /// The last bytes of a file, as text. Empty if the file cannot be read.
    pub(super) fn last_text(&self, kind: &str, bytes: u64) -> String {
        let read = || -> io::Result<Vec<u8>> {
            let file = self.open(kind)?;
            let start = file.metadata()?.len().saturating_sub(bytes);
            let mut end = vec![0; usize::try_from(bytes).map_err(io::Error::other)?];
            let mut length = 0;
            while let read @ 1.. = read_at(&file, &mut end[length..], start + length as u64)? {
                length += read;
            }
            end.truncate(length);
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
    file: File,
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
    /// Reads a chunk and returns the lines that it completes; `None`: there is no new output.
    pub(super) fn lines(&mut self) -> io::Result<Option<Vec<String>>> {
        let mut chunk = vec![0; CHUNK];
        let read = read_at(&self.file, &mut chunk, self.position)?;
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
        let spool = Spool::next(folder.path(), "squad-a").expect("a spool");
        let mut file = spool.create("stdout").expect("a file");
        let mut tail = spool.tail("stdout").expect("a file");
        let text = "a€b\0c\n".as_bytes();
        file.write_all(&text[..2]).expect("written");
        assert_eq!(tail.lines().expect("read"), Some(vec![]));
        file.write_all(&text[2..]).expect("written");
        assert_eq!(tail.lines().expect("read"), Some(vec!["a€b\0c".to_owned()]));
        file.write_all(b"rest").expect("written");
        assert_eq!((tail.lines().expect("read"), tail.lines().expect("read")), (Some(vec![]), None));
        assert_eq!(tail.take_line().as_deref(), Some("rest"));
    }

    /// Lines as long as the limit and longer × before, between and after others.
    #[test]
    fn only_a_line_that_is_too_long_is_skipped() {
        for lengths in [[1, MAX_LINE, 2], [1, MAX_LINE + 1, 2], [MAX_LINE + 1, 1, MAX_LINE + 1], [1, 2, MAX_LINE + 1]] {
            let folder = tempfile::tempdir().expect("a folder");
            let spool = Spool::next(folder.path(), "squad-a").expect("a spool");
            let mut file = spool.create("stdout").expect("a file");
            let text = lengths.map(|length| "x".repeat(length)).join("\n");
            file.write_all(text.as_bytes()).expect("written");
            let mut tail = spool.tail("stdout").expect("a file");
            let read = std::iter::from_fn(|| tail.lines().expect("read")).flatten().collect::<Vec<_>>();
            let read: Vec<usize> = read.into_iter().chain(tail.take_line()).map(|line| line.len()).collect();
            assert_eq!(read, lengths.into_iter().filter(|length| *length <= MAX_LINE).collect::<Vec<_>>());
        }
    }
}
