//! A wait for the ledger's lock says whom it is for.

use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use crate::support::{Output, TestRepo};

/// Runs a command while a process with this name holds the ledger's lock for some seconds.
fn beside(repo: &TestRepo, name: &str, is_stopped: bool, seconds: u64, arguments: &[&str]) -> (Output, u32) {
    let lock = repo.root().join(".git/squad/ledger.lock");
    repo.write(name, "#!/bin/sh\nread line\n");
    let program = repo.root().join(name);
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let mut holder = repo.command("flock", &repo.root());
    let mut holder: Child =
        holder.arg("--no-fork").arg(&lock).arg(&program).stdin(Stdio::piped()).spawn().expect("flock runs");
    let id = holder.id();
    let is_held = || std::fs::File::open(&lock).is_ok_and(|file| file.try_lock().is_err());
    while !is_held() {
        thread::sleep(Duration::from_millis(10));
    }
    let signal = |name: &str| repo.command("kill", &repo.root()).args([name, &id.to_string()]).status().expect("kill");
    if is_stopped {
        signal("-STOP");
    }
    let output = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_secs(seconds));
            signal("-KILL");
        });
        repo.squad(arguments)
    });
    holder.wait().expect("it has ended");
    (output, id)
}

/// Every way to wait × running and stopped × said and quiet × a name that is plain and one that looks like a state.
#[cfg(target_os = "linux")]
#[test]
fn who_holds_the_lock_is_said_after_two_seconds() {
    let waits: [&[&str]; 2] = [&["decisions", "add", "One"], &["gc"]];
    for arguments in waits {
        for (name, is_stopped, is_quiet) in [
            ("nap", true, false),
            ("nap", false, false),
            ("nap", true, true),
            ("a) S", true, false),
            ("a) T", false, false),
        ] {
            let repo = TestRepo::with_small_team();
            assert_eq!(repo.squad(&["decisions", "add", "First"]).code, 0);
            let quiet: &[&str] = if is_quiet { &["--quiet"] } else { &[] };
            let (output, id) = beside(&repo, name, is_stopped, 4, &[arguments, quiet].concat());
            assert_eq!(output.code, 0, "{output}");
            let said = format!("waiting for the ledger's lock: process {id} (`/bin/sh ");
            let since = format!("/{name}`) has held it for ");
            assert_eq!(output.err.contains(&said) && output.err.contains(&since), !is_quiet, "{output}");
            let stopped = format!("is stopped: `kill -CONT {id}` lets it go on");
            assert_eq!(output.err.contains(&stopped), is_stopped && !is_quiet, "{output}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_short_wait_is_silent() {
    let repo = TestRepo::with_small_team();
    assert_eq!(repo.squad(&["decisions", "add", "First"]).code, 0);
    let (output, _) = beside(&repo, "nap", false, 0, &["decisions", "add", "Second"]);
    assert!(output.code == 0 && !output.err.contains("waiting"), "{output}");
}
