//! Programs that tests write and run.

use std::path::Path;

/// Writes a script that can be executed at once.
///
/// A shell writes it: a child that another test starts meanwhile would inherit a file that is open for writing here,
/// and until that child executes its own program the script is "busy". It is written beside and moved, as one that runs
/// keeps its text.
#[cfg(unix)]
pub(crate) fn write(path: &Path, text: &str) {
    use std::io::Write;

    std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder");
    let writes = r#"cat >"$1.new" && chmod 755 "$1.new" && mv -f "$1.new" "$1""#;
    let mut shell = std::process::Command::new("/bin/sh");
    let shell = shell.args(["-c", writes, "sh"]).arg(path).stdin(std::process::Stdio::piped());
    let mut shell = shell.spawn().expect("a shell");
    shell.stdin.take().expect("it is piped").write_all(text.as_bytes()).expect("it reads");
    assert!(shell.wait().expect("it is ours").success());
}

#[cfg(not(unix))]
pub(crate) fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder");
    std::fs::write(path, text).expect("a file");
}
