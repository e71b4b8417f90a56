//! Folders of the user's that lie over a clone: the programs inside have them at once, and what they change there goes to
//! a folder of squad's.
//!
//! ```text
//! squad within LAYERS lay ─ mounts them in namespaces of its own ─→ squad holds those, and each program begins there
//! ```
//!
//! All programs share one mount: where two have the same folder for what changes, neither sees the other's changes.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, XattrFlags};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::{COMMAND, LAY, Layer, NOT_ENTERED, mounts};
use crate::model::{first_line, from_json, to_json};
use crate::program::Program;

/// The namespaces in which layers are mounted. They last as long as this, or a program in them.
#[derive(Debug)]
pub(super) struct Layers {
    user: File,
    mounts: File,
    pub(super) places: Vec<PathBuf>,
}

impl Layers {
    /// Where a program finds the namespaces.
    pub(super) fn links(&self) -> [PathBuf; 2] {
        [mounts::link_to(&self.user), mounts::link_to(&self.mounts)]
    }
}

/// Mounts layers, by the program `squad`. Also returns why one could not be, for each.
pub(super) fn make(squad: &Program, layers: &[Layer]) -> Result<(Layers, Vec<Option<String>>), String> {
    let text = to_json(layers).map_err(|error| error.to_string())?;
    let mut command = squad.command();
    command.arg(COMMAND).arg(text).arg(LAY).env_clear();
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| format!("{}: {error}", squad.path().display()))?;
    let mut said = String::new();
    let read = child.stdout.take().map(|out| BufReader::new(out).read_line(&mut said));
    // It stays until its input ends.
    let open = |name: &str| File::open(format!("/proc/{}/ns/{name}", child.id()));
    let opened = open("user").and_then(|user| Ok((user, open("mnt")?)));
    let ended = child.wait_with_output().map_err(|error| error.to_string())?;
    if !ended.status.success() || !matches!(read, Some(Ok(1..))) {
        return Err(first_line(String::from_utf8_lossy(&ended.stderr).trim(), 200));
    }
    let reasons: Vec<Option<String>> = from_json(said).map_err(|error| error.to_string())?;
    let (user, mounts) = opened.map_err(|error| format!("the namespaces cannot be held: {error}"))?;
    let laid = layers.iter().zip(&reasons).filter(|(_, reason)| reason.is_none());
    let places = laid.map(|(layer, _)| layer.root.join(&layer.path)).collect();
    Ok((Layers { user, mounts, places }, reasons))
}

/// In a process of its own, which must have one thread: mounts layers, says why one could not be, for each, and waits.
pub(super) fn lay(layers: &str) -> (String, u8) {
    let layers = from_json::<Vec<Layer>>(layers).map_err(|error| format!("the layers cannot be read: {error}"));
    let laid = layers.and_then(|layers| {
        mounts::begin()?;
        let reasons: Vec<Option<String>> = layers.iter().map(|layer| layer.lay().err()).collect();
        to_json(&reasons).map_err(|error| error.to_string())
    });
    match laid {
        Ok(said) => {
            // If nobody listens, nobody needs the layers.
            let _ = io::stdout().write_all(format!("{said}\n").as_bytes());
            let _ = io::stdin().read_to_end(&mut Vec::new());
            (String::new(), 0)
        }
        Err(reason) => (reason, NOT_ENTERED),
    }
}

impl Layer {
    fn lay(&self) -> Result<(), String> {
        let opened = |root: &Path, inner: &Path| {
            beneath(root, inner).map_err(|error| format!("{}: {error}", root.join(inner).display()))
        };
        let (lower, at) = (opened(&self.source, &self.path)?, opened(&self.root, &self.path)?);
        let (upper, work) = (opened(&self.folder, Path::new("upper"))?, opened(&self.folder, Path::new("work"))?);
        // Without them, what takes the place of a removed folder would show that again.
        let tried = rustix::fs::setxattr(link(&upper), "user.squad", b"", XattrFlags::empty());
        tried.map_err(|error| format!("its changes need extended attributes: {error}"))?;
        let names = [("lowerdir", &lower), ("upperdir", &upper), ("workdir", &work)];
        let names: String = names.iter().map(|(name, folder)| format!(",{name}={}", link(folder))).collect();
        let options = CString::new(format!("userxattr{names}")).map_err(|error| error.to_string())?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount("overlay", link(&at), "overlay", flags, options.as_c_str())
            .map_err(|error| format!("no overlay file system: {error}"))?;
        self.finish(&upper).inspect_err(|_| {
            // Otherwise nobody would see what is copied there.
            let _ = unmount(self.root.join(&self.path), UnmountFlags::DETACH | UnmountFlags::NOFOLLOW);
        })
    }

    /// Tries whether it may be written, and takes out what is to stay out.
    fn finish(&self, upper: &OwnedFd) -> Result<(), String> {
        let place = self.root.join(&self.path);
        let tried = tempfile::Builder::new().prefix(".squad-").tempfile_in(&place);
        tried.map_err(|error| format!("it cannot be written: {error}"))?;
        for path in &self.without {
            let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { continue };
            // One of its own may be there.
            let is_own = inner(upper, folder)
                .is_ok_and(|folder| rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok());
            let Some(folder) = beneath(&place, folder).ok().filter(|_| !is_own) else { continue };
            match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
                Ok(()) | Err(rustix::io::Errno::NOENT) => {}
                Err(error) => return Err(format!("{} cannot be kept out: {error}", path.display())),
            }
        }
        Ok(())
    }
}

/// Opens a folder below another, through no link.
fn beneath(root: &Path, path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    inner(rustix::fs::open(root, flags, Mode::empty())?, path)
}

fn inner(root: impl AsFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    rustix::fs::openat2(root, path, flags, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS)
}

/// A name of an open folder that has no character with a meaning for mounts.
fn link(folder: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", folder.as_raw_fd())
}
