//! A wait for a lock says whom it is for, and an interrupt says what it does.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Output, TestRepo};

/// How long a lock is held, in seconds: much longer than a wait is silent, as a busy machine is slow to start a command.
const HELD: u64 = 12;
const LEDGER: &str = ".git/squad/ledger.lock";

/// A process of this name that holds a lock.
fn holder(repo: &TestRepo, name: &str, lock: &Path) -> Child {
    std::fs::create_dir_all(lock.parent().expect("it is in a folder")).expect("a folder");
    let program = repo.write_script(name, "#!/bin/sh\nread line\n");
    let mut holder = repo.command("flock", &repo.root());
    let holder = holder.arg("--no-fork").arg(lock).arg(program).stdin(Stdio::piped());
    let mut holder = holder.spawn().expect("flock runs");
    let is_held = || std::fs::File::open(lock).is_ok_and(|file| file.try_lock().is_err());
    while !is_held() {
        assert_eq!(holder.try_wait().expect("it is ours"), None, "it holds the lock until it is killed");
        thread::sleep(Duration::from_millis(10));
    }
    holder
}

/// Runs a command while a process holds a lock for some seconds.
fn beside(
    repo: &TestRepo,
    (name, lock): (&str, &Path),
    is_stopped: bool,
    seconds: u64,
    arguments: &[&str],
) -> (Output, u32) {
    let mut holder = holder(repo, name, lock);
    let id = holder.id();
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

/// Every lock and way to wait × running and stopped, by a name that looks like the other state × said and quiet.
#[cfg(target_os = "linux")]
#[test]
fn who_holds_a_lock_is_said_after_two_seconds() {
    let users = "../config/squad/config.lock";
    let waits: [(&str, &str, &[&str]); 7] = [
        ("ledger's", LEDGER, &["decisions", "add", "One"]),
        ("ledger's", LEDGER, &["gc"]),
        ("landing", ".git/squad/landing.lock", &["decisions", "add", "One"]),
        ("work tree's", ".git/squad/intent.lock", &["decisions", "add", "One"]),
        ("sync", ".git/squad/sync.lock", &["sync", "--yes"]),
        ("config", ".git/squad/config.lock", &["config", "set", "sessions.timeout", "1m"]),
        ("config", users, &["config", "set", "--user", "sessions.timeout", "1m"]),
    ];
    thread::scope(|scope| {
        for (name, lock, arguments) in waits {
            for (program, is_stopped, is_quiet) in [("a) S", true, false), ("a) T", false, false), ("nap", true, true)]
            {
                scope.spawn(move || {
                    let mut repo = TestRepo::with_small_team();
                    let config = repo.root().join("../config").display().to_string();
                    repo.variables.insert("XDG_CONFIG_HOME".to_owned(), config);
                    repo.git(&["init", "--quiet", "--bare", "../hub.git"]);
                    repo.git(&["remote", "add", "origin", "../hub.git"]);
                    assert_eq!(repo.squad(&["decisions", "add", "First"]).code, 0);
                    let quiet: &[&str] = if is_quiet { &["--quiet"] } else { &[] };
                    let lock = repo.root().join(lock);
                    let (output, id) = beside(&repo, (program, &lock), is_stopped, HELD, &[arguments, quiet].concat());
                    assert_eq!(output.code, 0, "{output}");
                    let said = format!("waiting for the {name} lock: process {id} (`/bin/sh ");
                    let since = format!("/{program}`) has held it for ");
                    assert_eq!(output.err.contains(&said) && output.err.contains(&since), !is_quiet, "{output}");
                    let stopped = format!("is stopped: `kill -CONT {id}` lets it go on");
                    assert_eq!(output.err.contains(&stopped), is_stopped && !is_quiet, "{output}");
                });
            }
        }
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_short_wait_is_silent() {
    let repo = TestRepo::with_small_team();
    assert_eq!(repo.squad(&["decisions", "add", "First"]).code, 0);
    let (output, _) = beside(&repo, ("nap", &repo.root().join(LEDGER)), false, 0, &["decisions", "add", "Second"]);
    assert!(output.code == 0 && !output.err.contains("waiting"), "{output}");
}

/// One interrupt and the lock's end × two interrupts.
#[cfg(unix)]
#[test]
fn an_interrupt_during_a_wait_says_what_happens() {
    for is_repeated in [false, true] {
        let repo = TestRepo::with_small_team();
        assert_eq!(repo.squad(&["decisions", "add", "First"]).code, 0);
        let mut holder = holder(&repo, "nap", &repo.root().join(LEDGER));
        let mut run = repo.command(env!("CARGO_BIN_EXE_squad"), &repo.root());
        let run = run.args(["orchestrate", "--engine", "rehearsal", "--agent", "ada", "x"]);
        let mut run = run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it runs");
        let mut lines = BufReader::new(run.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.starts_with("waiting for the ledger's lock: process ")));
        let interrupt = || repo.command("kill", &repo.root()).args(["-INT", &run.id().to_string()]).status();
        let interrupted = Instant::now();
        interrupt().expect("kill runs");
        assert!(lines.any(|line| line == "- stopping; files stay as they are; Ctrl-C again: at once"));
        assert!(interrupted.elapsed() < Duration::from_secs(2));
        if is_repeated {
            thread::sleep(Duration::from_secs(1).saturating_sub(interrupted.elapsed()));
            interrupt().expect("kill runs");
        } else {
            holder.kill().expect("it is ours");
        }
        assert_eq!(run.wait().expect("it ends").code(), Some(130));
        let _ = holder.kill();
        holder.wait().expect("it has ended");
        assert_eq!(repo.squad(&["log"]).out.contains("cancelled"), !is_repeated);
    }
}
