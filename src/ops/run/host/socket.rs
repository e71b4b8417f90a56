//! The socket of a host: a file that only the user may open, or a named pipe on Windows.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use interprocess::local_socket::tokio::Listener;
use interprocess::local_socket::{GenericFilePath, ListenerOptions, Name, ToFsName};
use serde::{Deserialize, Serialize};

/// Incremented when older versions cannot understand newer messages.
pub(in crate::ops) const PROTOCOL: u32 = 3;

/// Most bytes of a socket path on any system: macOS allows 104 including the terminating zero.
const MAX_SOCKET: usize = 100;

/// Where a host listens, and what it understands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Endpoint {
    /// The version of squad.
    pub(crate) version: String,
    pub(crate) protocol: u32,
    pub(crate) socket: String,
}

impl Endpoint {
    /// Chooses a socket: in `folder`, or if its path is too long there, in a private temporary folder.
    pub(in crate::ops) fn new(folder: &Path, key: &str) -> io::Result<Self> {
        let beside = folder.join(format!("{key}.sock"));
        let socket = if cfg!(windows) {
            PathBuf::from(format!(r"\\.\pipe\squad-{key}"))
        } else if beside.as_os_str().len() <= MAX_SOCKET {
            beside
        } else {
            let mut folder = tempfile::Builder::new();
            #[cfg(unix)]
            folder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
            folder.prefix("squad-").tempdir()?.keep().join("socket")
        };
        let (version, socket) = (env!("CARGO_PKG_VERSION").to_owned(), socket.display().to_string());
        Ok(Self { version, protocol: PROTOCOL, socket })
    }

    /// Removes the socket and the folder made for it, if that is empty.
    pub(in crate::ops) fn clear(&self) {
        let socket = Path::new(&self.socket);
        remove(socket);
        if let Some(folder) = socket.parent().filter(|_| socket.file_name().is_some_and(|name| name == "socket")) {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Removes a socket and nothing else: its path may come from a file that an agent wrote. A named pipe leaves no file.
fn remove(socket: &Path) {
    #[cfg(unix)]
    if socket.symlink_metadata().is_ok_and(|about| std::os::unix::fs::FileTypeExt::is_socket(&about.file_type())) {
        let _ = fs::remove_file(socket);
    }
    #[cfg(not(unix))]
    let _ = socket;
}

pub(in crate::ops) fn name(socket: &str) -> io::Result<Name<'static>> {
    PathBuf::from(socket).to_fs_name::<GenericFilePath>()
}

/// Listens. Only who holds the host's lease may do so.
pub(in crate::ops) fn listen(endpoint: &Endpoint) -> io::Result<Listener> {
    // Left by a process that was killed.
    remove(Path::new(&endpoint.socket));
    let options = ListenerOptions::new().name(name(&endpoint.socket)?).reclaim_name(false);
    #[cfg(unix)]
    let options = interprocess::os::unix::local_socket::ListenerOptionsExt::mode(options, 0o600);
    options.create_tokio()
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_socket_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, is_socket) in [("run.sock", true), ("thesis.md", false)] {
            let place = folder.path().join(name);
            match is_socket {
                true => drop(std::os::unix::net::UnixListener::bind(&place).expect("a socket")),
                false => fs::write(&place, "of the user").expect("a file"),
            }
            let socket = place.display().to_string();
            Endpoint { version: String::new(), protocol: PROTOCOL, socket }.clear();
            assert_eq!(place.exists(), !is_socket, "{name}");
        }
    }
}
