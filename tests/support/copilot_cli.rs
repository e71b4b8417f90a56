//! The real Copilot CLI, as `.ci/install-real-parts` installs it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Once;

/// Where npm has put it.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real")
}

pub(crate) fn program() -> PathBuf {
    folder().join("node_modules/@github/copilot-linux-x64/copilot")
}

/// A version that squad refuses.
pub(crate) fn too_old() -> PathBuf {
    folder().join("node_modules/copilot-too-old/copilot")
}

/// The `XDG_CACHE_HOME` in which both versions are unpacked. They do that on their first run, each 235 MB: once for all
/// tests, not while others wait for an answer.
pub(crate) fn cache() -> PathBuf {
    static UNPACK: Once = Once::new();
    let cache = folder().join(".cache");
    UNPACK.call_once(|| {
        // The old one's `--version` unpacks nothing; as a server it ends with its input.
        for (program, arguments) in [(program(), &["--version"][..]), (too_old(), &["--headless", "--stdio"])] {
            let mut command = Command::new(program);
            command.args(arguments).stdin(Stdio::null());
            command.env("XDG_CACHE_HOME", &cache).env("COPILOT_HOME", cache.join("home"));
            let output = command.output().expect("the CLI is installed by .ci/install-real-parts");
            assert!(output.status.success(), "{output:?}");
        }
    });
    cache
}
