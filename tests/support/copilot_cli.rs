//! The real Copilot CLI, as `.ci/install-real-parts` installs it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

/// Where npm has put it.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real")
}

pub(crate) fn program() -> PathBuf {
    folder().join("node_modules/@github/copilot-linux-x64/copilot")
}

/// The `XDG_CACHE_HOME` in which the CLI is unpacked. It does that on its first run: once for all tests, not by each at
/// the same time.
pub(crate) fn cache() -> PathBuf {
    static UNPACK: Once = Once::new();
    let cache = folder().join(".cache");
    UNPACK.call_once(|| {
        let mut command = Command::new(program());
        command.arg("--version").env("XDG_CACHE_HOME", &cache).env("COPILOT_HOME", cache.join("home"));
        let output = command.output().expect("the CLI is installed by .ci/install-real-parts");
        assert!(output.status.success(), "{output:?}");
    });
    cache
}
