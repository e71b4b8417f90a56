//! Small files in folders that agents can write to: an agent may have put a link or a pipe in a file's place.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;

/// Opens a file, if it is a regular one: a link is not followed, and a pipe is not waited on.
pub(crate) fn open_regular(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    {
        use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        std::os::unix::fs::OpenOptionsExt::custom_flags(options, flags.try_into().map_err(io::Error::other)?);
        let file = options.open(path)?;
        if !file.metadata()?.is_file() {
            return Err(not_regular());
        }
        // A program that inherits the file expects it to block.
        fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
        Ok(file)
    }
    #[cfg(not(unix))]
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => Err(not_regular()),
        _ => options.open(path),
    }
}

/// What is at a path.
pub(crate) enum Found {
    File(File),
    /// With its target.
    Link(Vec<u8>),
    Folder,
    /// Such as a pipe.
    Other,
}

/// Opens what is at a path below a folder. No link is followed, neither on the way nor at its end: whoever may write there
/// can exchange files and links at any moment, also between a look and a read.
///
/// # Errors
///
/// There is nothing, also where something else takes the place of a folder on the way, or it cannot be opened.
#[cfg(unix)]
pub(crate) fn open_below(root: &Path, inner: &Path) -> io::Result<Found> {
    use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, readlinkat, statat};
    use rustix::io::Errno;

    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // The root itself may be below a link of the user's.
    let mut folder = rustix::fs::open(root, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let name = inner.file_name().ok_or(Errno::NOENT)?;
    for part in inner.parent().into_iter().flatten() {
        folder = openat(&folder, part, flags, Mode::empty()).map_err(|error| match error {
            Errno::LOOP | Errno::NOTDIR => Errno::NOENT,
            error => error,
        })?;
    }
    Ok(match FileType::from_raw_mode(statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode) {
        FileType::Symlink => Found::Link(readlinkat(&folder, name, Vec::new())?.into_bytes()),
        FileType::Directory => Found::Folder,
        FileType::RegularFile => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = File::from(openat(&folder, name, flags, Mode::empty())?);
            if file.metadata()?.is_file() { Found::File(file) } else { Found::Other }
        }
        _ => Found::Other,
    })
}

#[cfg(not(unix))]
pub(crate) fn open_below(root: &Path, inner: &Path) -> io::Result<Found> {
    let path = root.join(inner);
    let found = fs::symlink_metadata(&path)?;
    Ok(match () {
        () if found.is_symlink() => Found::Link(fs::read_link(&path)?.into_os_string().into_encoded_bytes()),
        () if found.is_dir() => Found::Folder,
        () if found.is_file() => Found::File(File::open(&path)?),
        () => Found::Other,
    })
}

/// A file's content, or its size if it has more than `most` bytes. It may grow while it is read.
pub(crate) fn read_within(path: &Path, most: u64) -> io::Result<Result<Vec<u8>, u64>> {
    read(File::open(path)?, most)
}

/// As [`read_within`], of an open file.
pub(crate) fn read(file: File, most: u64) -> io::Result<Result<Vec<u8>, u64>> {
    let size = file.metadata()?.len();
    if size > most {
        return Ok(Err(size));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    file.take(most + 1).read_to_end(&mut bytes)?;
    let read = bytes.len() as u64;
    Ok(if read > most { Err(read) } else { Ok(bytes) })
}

/// Reads some bytes that stand at a position, and leaves alone where others read or write; 0: there are none.
pub(crate) fn read_at(file: &File, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_at(file, buffer, position);
    #[cfg(windows)]
    return std::os::windows::fs::FileExt::seek_read(file, buffer, position);
}

/// The content of a regular file of at most that many bytes. `None`: it is a link, something else or larger, or cannot
/// be read.
pub(crate) fn read_regular(path: &Path, most: u64) -> Option<Vec<u8>> {
    read(open_regular(File::options().read(true), path).ok()?, most).ok()?.ok()
}

/// The text of a regular file that belongs to this user.
pub(crate) fn read_own(path: &Path) -> io::Result<String> {
    let file = open_regular(File::options().read(true), path)?;
    #[cfg(unix)]
    if std::os::unix::fs::MetadataExt::uid(&file.metadata()?) != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("the file is another user's"));
    }
    io::read_to_string(file)
}

/// Bytes of a file that squad reads to recognize it.
const MOST_TO_RECOGNIZE: u64 = 64 << 20;

/// What a file's content is recognized by.
///
/// # Errors
///
/// It cannot be read, is no regular file, or is larger than 64 MiB.
pub(crate) fn hash(path: &Path) -> io::Result<blake3::Hash> {
    let mut file = open_regular(OpenOptions::new().read(true), path)?.take(MOST_TO_RECOGNIZE + 1);
    let mut hasher = blake3::Hasher::new();
    let read = io::copy(&mut file, &mut hasher)?;
    if read > MOST_TO_RECOGNIZE { Err(io::Error::other("it is larger than 64 MiB")) } else { Ok(hasher.finalize()) }
}

/// Replaces a file in one step, so that whoever reads it gets all of the old or all of the new. Only the user may read
/// a new one; an old one keeps its mode. What is left of a killed process begins with `new-`.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::Builder::new().prefix("new-").tempfile_in(folder)?;
    file.write_all(content)?;
    if let Ok(old) = fs::symlink_metadata(path)
        && old.is_file()
    {
        file.as_file().set_permissions(old.permissions())?;
    }
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// What lies below some folders.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Measured {
    /// The sum of all files' bytes.
    pub(crate) bytes: u64,
    /// When the last of them was written.
    #[serde(skip)]
    pub(crate) modified: Option<SystemTime>,
    /// False: there is more, which was not looked at.
    #[serde(rename = "complete")]
    pub(crate) is_whole: bool,
}

/// Measures what lies below these folders, at most that many files and folders. Follows no links.
pub(crate) fn measure(folders: impl IntoIterator<Item = PathBuf>, most: usize) -> Measured {
    let mut measured = Measured { is_whole: true, ..Measured::default() };
    let mut waiting: Vec<PathBuf> = folders.into_iter().filter(|folder| is_folder(folder)).collect();
    let mut left = most;
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if left == 0 {
                return Measured { is_whole: false, ..measured };
            }
            left -= 1;
            let Ok(about) = entry.metadata() else { continue };
            if about.is_dir() {
                waiting.push(entry.path());
            } else {
                measured.bytes += about.len();
                measured.modified = measured.modified.max(about.modified().ok());
            }
        }
    }
    measured
}

/// Removes a folder with all that is in it, also where it holds folders that its owner may not look into.
pub(crate) fn remove_tree(folder: &Path) -> io::Result<()> {
    let removed = fs::remove_dir_all(folder);
    #[cfg(unix)]
    if removed.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
        open_up(folder);
        return fs::remove_dir_all(folder);
    }
    removed
}

/// Lets the owner look into a folder and those in it. What cannot be changed stays.
#[cfg(unix)]
fn open_up(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;

    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let _ = fs::set_permissions(&folder, fs::Permissions::from_mode(0o700));
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        // A link is none.
        open.extend(
            entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()),
        );
    }
}

/// Gives a file or folder the time of its last change that another has. Where that cannot be, it stays new.
pub(crate) fn keep_time(facts: &fs::Metadata, to: &Path) {
    // Whoever owns a file may set its time on Unix, even if nobody may write to it.
    let file = if cfg!(unix) { File::open(to) } else { File::options().append(true).open(to) };
    if let (Ok(file), Ok(at)) = (file, facts.modified()) {
        let _ = file.set_modified(at);
    }
}

/// Whether there is a folder, and not a link to one.
pub(crate) fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|about| about.is_dir())
}

fn not_regular() -> io::Error {
    io::Error::other("it is not a regular file")
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel gives the size of these files as 0.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_is_longer_than_its_size_is_not_read_on() {
        let file = Path::new("/proc/self/stat");
        assert!(read_within(file, 4).is_ok_and(|read| read.is_err()));
        assert!(read_within(file, 1 << 20).is_ok_and(|read| read.is_ok_and(|bytes| bytes.len() > 4)));
    }

    #[test]
    fn links_and_pipes_are_not_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::write(path("file"), "text").expect("a file");
        std::os::unix::fs::symlink(path("file"), path("link")).expect("a link");
        let made = crate::program::Program::of_user("mkfifo".as_ref()).command().arg(path("pipe")).status();
        assert!(made.is_ok_and(|status| status.success()));
        for (name, is_opened) in [("file", true), ("link", false), ("pipe", false), (".", false), ("missing", false)] {
            assert_eq!(open_regular(File::options().read(true), &path(name)).is_ok(), is_opened, "{name}");
            if name != "missing" {
                let mut options = File::options();
                let opened = open_regular(options.append(true).create(true), &path(name));
                assert_eq!(opened.is_ok(), is_opened, "{name}");
            }
        }
    }
}
