//! `file_ops`: reads, writes and lists files of the project, for agents of engines that have no tools for it.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::Deserialize;

use crate::env::ProjectPath;
use crate::env::files::open_regular;

/// A reply holds so many bytes of a file, and names in a folder.
const SHOWN: u64 = 64 * 1024;
const LISTED: usize = 1000;
/// A longer text is not written.
const LONGEST: usize = 8 * 1024 * 1024;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileCall {
    pub(crate) operation: Operation,
    pub(crate) path: String,
    /// What a file is to hold; empty for an empty file.
    #[serde(default)]
    pub(crate) content: Option<String>,
    /// The byte to read from.
    #[serde(default)]
    offset: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Operation {
    Read,
    Write,
    List,
}

impl FileCall {
    /// Where the path, taken from `directory`, really leads.
    pub(crate) fn place(&self, root: &Path, directory: &Path) -> Result<ProjectPath, String> {
        ProjectPath::resolve(root, directory, &self.path).map_err(|reason| format!("`{}` {reason}", self.path))
    }

    pub(super) fn check(self) -> Result<Self, String> {
        let Self { operation, path, content, .. } = &self;
        match (operation, content) {
            _ if path.is_empty() || path.contains('\0') => Err(format!("`path`: {path:?} is not a path")),
            (Operation::Write, None) => Err("`content` is missing; for an empty file, pass an empty text".to_owned()),
            (Operation::Write, Some(text)) if text.len() > LONGEST => {
                Err(format!("`content` is {} bytes; at most {LONGEST} are written at once", text.len()))
            }
            (Operation::Read | Operation::List, Some(_)) => Err("`content` is for `write`".to_owned()),
            _ => Ok(self),
        }
    }

    /// What the model reads.
    pub(crate) fn perform(&self, at: &ProjectPath) -> Result<String, String> {
        let failed = |error: io::Error| format!("`{}`: {error}", self.path);
        match (self.operation, &self.content) {
            (Operation::Write, content) => write(at, content.as_deref().unwrap_or_default())
                .map(|()| format!("Wrote {}.", at.shown))
                .map_err(failed),
            (Operation::Read, _) => read(&at.path, self.offset).map_err(failed),
            (Operation::List, _) => names(&at.path).map_err(failed),
        }
    }
}

/// What a file holds now, as far as it is text.
pub(crate) fn text_at(at: &ProjectPath) -> String {
    let is_small = fs::metadata(&at.path).is_ok_and(|found| found.is_file() && found.len() <= LONGEST as u64);
    is_small.then(|| fs::read_to_string(&at.path).ok()).flatten().unwrap_or_default()
}

fn write(at: &ProjectPath, text: &str) -> io::Result<()> {
    let mut file = create(at)?;
    if !file.metadata()?.is_file() {
        return Err(not_a_file());
    }
    file.set_len(0)?;
    file.write_all(text.as_bytes())
}

/// Opens a file for writing, from the project's root one folder at a time, and makes what is missing. The path is
/// resolved: a link on it was put there meanwhile, and is not followed.
#[cfg(unix)]
fn create(at: &ProjectPath) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, mkdirat, open, openat};
    use rustix::io::Errno;

    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut folder = open(&at.root, flags, Mode::empty())?;
    let inner = at.path.strip_prefix(&at.root).map_err(io::Error::other)?;
    let name = inner.file_name().ok_or_else(not_a_file)?;
    for part in inner.parent().into_iter().flatten() {
        folder = match openat(&folder, part, flags, Mode::empty()) {
            Err(Errno::NOENT) => {
                match mkdirat(&folder, part, Mode::RWXU | Mode::RWXG | Mode::RWXO) {
                    // Somebody else was faster.
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                openat(&folder, part, flags, Mode::empty())?
            }
            opened => opened?,
        };
    }
    // A pipe is not waited on.
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
    match openat(&folder, name, flags, mode) {
        Err(Errno::ISDIR | Errno::NXIO) => Err(not_a_file()),
        opened => Ok(opened?.into()),
    }
}

#[cfg(not(unix))]
fn create(at: &ProjectPath) -> io::Result<File> {
    if let Some(parent) = at.path.parent() {
        fs::create_dir_all(parent)?;
    }
    open_regular(File::options().write(true).create(true).truncate(false), &at.path)
}

fn not_a_file() -> io::Error {
    io::Error::other("it is not a regular file")
}

/// The path is resolved: a link in its place was put there meanwhile.
fn read(path: &Path, offset: u64) -> io::Result<String> {
    let mut file = open_regular(File::options().read(true), path)?;
    let whole = file.metadata()?.len();
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(SHOWN).read_to_end(&mut bytes)?;
    let (text, used) = match str::from_utf8(&bytes) {
        Ok(text) => (text, bytes.len()),
        // A character that is cut in two belongs to the next piece.
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => {
            (str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(), error.valid_up_to())
        }
        Err(_) => return Err(io::Error::other(format!("it is not text (UTF-8); it has {whole} bytes"))),
    };
    let end = offset + used as u64;
    Ok(match (whole, end < whole) {
        (0, _) => "(The file is empty.)".to_owned(),
        (_, true) => format!("{text}\n(This ends at byte {end} of {whole}; continue with `offset`.)"),
        _ => text.to_owned(),
    })
}

fn names(path: &Path) -> io::Result<String> {
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let mark = match entry.file_type() {
            Ok(kind) if kind.is_dir() => "/",
            Ok(kind) if kind.is_symlink() => " (link)",
            _ => "",
        };
        names.push(format!("{}{mark}", entry.file_name().to_string_lossy()));
    }
    names.sort();
    let count = names.len();
    names.truncate(LISTED);
    if count > LISTED {
        names.push(format!("(and {} more)", count - LISTED));
    }
    Ok(if names.is_empty() { "(The folder is empty.)".to_owned() } else { names.join("\n") })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    struct World(tempfile::TempDir);

    impl World {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            fs::create_dir_all(folder.path().join("project/sub")).expect("folders");
            fs::create_dir_all(folder.path().join("project/.git")).expect("folders");
            fs::write(folder.path().join("secret"), "secret").expect("a file");
            Self(folder)
        }

        fn root(&self) -> PathBuf {
            self.0.path().join("project")
        }

        fn resolve(&self, path: &str) -> Result<ProjectPath, String> {
            ProjectPath::resolve(&self.root(), &self.root().join("sub"), path)
        }

        fn call(&self, operation: Operation, path: &str, content: Option<&str>) -> Result<String, String> {
            let call = FileCall { operation, path: path.to_owned(), content: content.map(str::to_owned), offset: 0 };
            let call = call.check()?;
            call.perform(&self.resolve(path)?)
        }
    }

    #[test]
    fn files_are_written_read_and_listed_empty_ones_too() {
        let world = World::new();
        let write = |path: &str, text: &str| world.call(Operation::Write, path, Some(text));
        let read = |path: &str| world.call(Operation::Read, path, None);
        assert_eq!(write("new/a.txt", "one\n").as_deref(), Ok("Wrote sub/new/a.txt."));
        assert_eq!(read("../sub/new/a.txt").as_deref(), Ok("one\n"));
        assert_eq!(write("new/a.txt", "").as_deref(), Ok("Wrote sub/new/a.txt."));
        assert_eq!(read("new/a.txt").as_deref(), Ok("(The file is empty.)"));
        assert_eq!(world.call(Operation::List, "..", None).as_deref(), Ok(".git/\nsub/"));
        assert_eq!(world.call(Operation::List, "new", None).as_deref(), Ok("a.txt"));
        assert_eq!(fs::read(world.root().join("sub/new/a.txt")).expect("a file"), b"");
        assert!(write("new", "x").is_err_and(|reason| reason.contains("not a regular file")));
        assert!(read("none").is_err() && world.call(Operation::List, "none", None).is_err());
        assert!(world.call(Operation::Write, "a", None).is_err_and(|reason| reason.contains("`content` is missing")));
        assert!(world.call(Operation::Read, "a\0b", None).is_err() && read("").is_err());
    }

    #[test]
    fn long_files_come_in_pieces_and_bytes_are_no_text() {
        let world = World::new();
        let path = world.root().join("sub/long");
        let text = format!("x{}", "é".repeat(40_000));
        fs::write(&path, &text).expect("a file");
        let mut call = FileCall { operation: Operation::Read, path: "long".to_owned(), content: None, offset: 0 };
        let at = world.resolve("long").expect("inside");
        let first = call.perform(&at).expect("a piece");
        let (start, end) = first.split_once("\n(This ends at byte 65535 of 80001").expect("a note");
        assert!(text.starts_with(start) && end.contains("`offset`"), "{end}");
        call.offset = 65_535;
        assert_eq!(call.perform(&at).map(|rest| format!("{start}{rest}")), Ok(text));
        fs::write(&path, b"a\xff\0").expect("a file");
        call.offset = 0;
        assert!(call.perform(&at).is_err_and(|reason| reason.contains("not text (UTF-8); it has 3 bytes")));
    }

    #[test]
    fn nothing_outside_of_the_project_is_reached() {
        let world = World::new();
        let absolute = world.0.path().join("secret").display().to_string();
        for path in ["../../secret", &absolute, "/etc/passwd", "../sub/../../secret", "none/../../../secret", "../.."] {
            assert!(world.resolve(path).is_err_and(|reason| reason.contains("outside of the project")), "{path}");
        }
        for path in ["../.git/config", "../.GIT/hooks/x", "new/.git", "../.git.", "../git~1/config", "../.git::$INDEX"]
        {
            assert!(world.resolve(path).is_err_and(|reason| reason.contains("git's")), "{path}");
        }
        let inside = world.root().join("sub/a").display().to_string();
        assert_eq!(world.resolve(&inside).map(|at| at.shown).as_deref(), Ok("sub/a"));
    }

    #[cfg(unix)]
    #[test]
    fn links_do_not_lead_out() {
        use std::os::unix::fs::symlink;

        let world = World::new();
        let outside = world.0.path();
        symlink(outside, world.root().join("sub/out")).expect("a link");
        symlink(outside.join("secret"), world.root().join("sub/file")).expect("a link");
        symlink(outside.join("not-there"), world.root().join("sub/dangling")).expect("a link");
        symlink("loop", world.root().join("sub/loop")).expect("a link");
        symlink("../.git", world.root().join("sub/store")).expect("a link");
        for path in ["out/secret", "file", "out/new", "dangling", "loop", "out/project/../secret", "store/config"] {
            assert!(world.call(Operation::Read, path, None).is_err(), "{path}");
            assert!(world.call(Operation::Write, path, Some("evil")).is_err(), "{path}");
        }
        assert_eq!(fs::read_to_string(outside.join("secret")).expect("a file"), "secret");
        assert!(!outside.join("not-there").exists() && !outside.join("new").exists());
        // A link within the project is followed, and named by where it leads.
        symlink("../sub", world.root().join("sub/self")).expect("a link");
        assert_eq!(world.resolve("self/a").map(|at| at.shown).as_deref(), Ok("sub/a"));
        // What stands in the way later is not followed either.
        let at = world.resolve("late").expect("inside");
        symlink(outside.join("secret"), world.root().join("sub/late")).expect("a link");
        let call = FileCall { operation: Operation::Write, path: "late".to_owned(), content: None, offset: 0 };
        assert!(call.perform(&at).is_err());
        let at = world.resolve("made/late").expect("inside");
        symlink(outside, world.root().join("sub/made")).expect("a link");
        assert!(call.perform(&at).is_err());
        assert!(!outside.join("late").exists());
        fs::remove_file(world.root().join("sub/made")).expect("a link");
        assert!(call.perform(&at).is_ok(), "missing folders are made");
        assert_eq!(fs::read(world.root().join("sub/made/late")).expect("a file"), b"");
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_not_waited_on() {
        let world = World::new();
        let made = std::process::Command::new("mkfifo").arg(world.root().join("sub/pipe")).status();
        assert!(made.is_ok_and(|status| status.success()));
        assert!(world.call(Operation::Read, "pipe", None).is_err_and(|reason| reason.contains("not a regular file")));
        assert_eq!(world.resolve("pipe").map(|at| text_at(&at)), Ok(String::new()));
    }
}
