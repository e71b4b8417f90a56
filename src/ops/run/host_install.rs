//! `squad hosts install`: copies this program to a host, over its own launcher.
//!
//! ```text
//! launch = ["ssh", "build1", "--", "squad", "worker"]   ─→   ssh build1 -- sh   ← a script with the program in it
//! ```
//!
//! The script is read line by line: nothing of the program is sent to a platform that cannot run it.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::env::Env;
use crate::error::Failure;
use crate::model::{command_line, printable};
use crate::ops::run::hosts::launch;
use crate::settings::Settings;

/// Bytes of one part of the program.
const PART: usize = 768 * 1024;
const INTERVAL: Duration = Duration::from_millis(20);
/// What the script says before its answers, which may come after a banner.
const MARK: &str = "squad-install:";

/// What was installed.
#[derive(Debug)]
pub(crate) struct Installed {
    /// The file on the host.
    pub(crate) path: String,
    pub(crate) bytes: u64,
    /// What was there before: the answer to `--version`.
    pub(crate) before: String,
}

/// Copies this program to a host of the configuration. `limit`: how long that may take.
pub(crate) fn install(
    env: &Env,
    directory: &Path,
    settings: &Settings,
    host: &str,
    limit: Duration,
) -> Result<Installed, Failure> {
    let configured = settings.hosts.get(host).ok_or_else(|| Failure::usage(format!("there is no host `{host}`")))?;
    if configured.is_batch {
        let failure = Failure::usage(format!("nobody can talk to a job of the batch host `{host}`"));
        return Err(failure.hint("have the job itself install squad"));
    }
    let own = platform().ok_or_else(|| Failure::failed("squad can be copied from Linux and macOS only"))?;
    let program = env.program.clone().ok_or_else(|| Failure::failed("this program's own path is not known"))?;
    let (words, at) = shell(&configured.launch).ok_or_else(|| {
        let line = command_line(&configured.launch);
        Failure::usage(format!(
            "`hosts.{host}.launch` does not end in `squad worker`, so it starts nothing else: {line}"
        ))
        .hint("copy the program there yourself")
    })?;
    let mut local = settings.clone();
    if let Some(host) = local.hosts.get_mut(host) {
        host.launch = words;
    }
    let failed = |why: String| Failure::failed(format!("host {host}: {}", printable(&why)));
    let started = launch(env, directory, &local, host).map_err(failed)?;
    let shell = started.program.ok_or_else(|| failed("it has no `launch`".to_owned()))?;
    let mut command = shell.command();
    command.args(&started.arguments).current_dir(&started.directory).env_clear().envs(&started.variables);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    let bytes = program.metadata().map_err(|error| failed(format!("{}: {error}", program.display())))?.len();
    let (said, errors) = talk(&mut child, &own, at, program, limit).map_err(|why| failed(why.to_string()))?;
    let mut answers = said.lines().filter_map(|line| line.split_once(MARK)).map(|(_, answer)| answer.trim().to_owned());
    let answer = answers.next_back().unwrap_or_default();
    match answer.split_once(' ') {
        Some(("installed", rest)) => {
            let (before, path) = rest.split_once('|').unwrap_or(("", rest));
            Ok(Installed { path: printable(path), bytes, before: printable(before) })
        }
        Some(("platform", other)) => {
            let hint = "install a squad for that platform there yourself";
            Err(failed(format!("it is `{other}`, and this program is for `{own}`")).hint(hint))
        }
        Some(("refused", why)) => Err(failed(format!("the program does not run there: {why}"))),
        _ => {
            let last = errors.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
            Err(failed(format!("`sh` could not be started there, or not finish: {last}")))
        }
    }
}

/// As `uname -sm` calls this platform; `None`: it has none.
fn platform() -> Option<String> {
    let system = match std::env::consts::OS {
        "linux" => "Linux",
        "macos" => "Darwin",
        _ => return None,
    };
    let machine = match (system, std::env::consts::ARCH) {
        ("Darwin", "aarch64") => "arm64",
        (_, machine) => machine,
    };
    Some(format!("{system} {machine}"))
}

/// The words that start a shell where these start a worker, and the word for squad.
fn shell(launch: &[String]) -> Option<(Vec<String>, &str)> {
    let (worker, rest) = launch.split_last().filter(|(word, _)| *word == "worker")?;
    let (squad, before) = rest.split_last()?;
    let _ = worker;
    let name = Path::new(squad).file_stem().and_then(|name| name.to_str())?;
    // The words may be those of a shell's own script.
    let is_plain = squad.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '+' | '~'));
    let words = before.iter().cloned().chain(["sh".to_owned()]).collect();
    (name.starts_with("squad") && is_plain).then_some((words, squad))
}

/// The script up to the program: finds the place, and says if the platform is another one.
fn head(own: &str, squad: &str) -> String {
    let place = match squad.contains('/') {
        true => format!("at={squad}\n"),
        false => format!("at=$(command -v {squad}) || at=$HOME/.local/bin/{squad}\n"),
    };
    format!(
        "set -e\nis=$(uname -sm)\nif [ \"$is\" != \"{own}\" ]; then echo \"{MARK} platform $is\"; exit 3; fi\n{place}\
         mkdir -p \"$(dirname \"$at\")\"\nnew=$at.new-$$\ntrap 'rm -f \"$new\"' EXIT\numask 077\n: >\"$new\"\n"
    )
}

/// The script after the program: the new file has to run before it takes the old one's place.
fn tail() -> String {
    let own = env!("CARGO_PKG_VERSION");
    format!(
        "chmod 755 \"$new\"\nis=$(\"$new\" --version 2>&1 </dev/null) || :\n\
         if [ \"$is\" != \"squad {own}\" ]; then echo \"{MARK} refused $is\" | head -n 1; exit 4; fi\n\
         was=$(\"$at\" --version 2>/dev/null </dev/null) || was=\nmv -f \"$new\" \"$at\"\necho \"{MARK} installed $was|$at\"\n"
    )
}

/// Has a shell carry the script out. Returns both of its streams.
fn talk(child: &mut Child, own: &str, squad: &str, program: PathBuf, limit: Duration) -> io::Result<(String, String)> {
    let missing = || io::Error::other("it has no standard streams");
    let mut input = child.stdin.take().ok_or_else(missing)?;
    let (output, errors) = (child.stdout.take().ok_or_else(missing)?, child.stderr.take().ok_or_else(missing)?);
    let read = |stream: Box<dyn Read + Send>| {
        thread::Builder::new().spawn(move || {
            let mut said = Vec::new();
            // What is more than that is a banner that never ends.
            let _ = stream.take(1 << 20).read_to_end(&mut said);
            String::from_utf8_lossy(&said).into_owned()
        })
    };
    let (said, errors) = (read(Box::new(output))?, read(Box::new(errors))?);
    let (head, tail) = (head(own, squad), tail());
    let write = move || -> io::Result<()> {
        let mut program = BufReader::new(File::open(program)?);
        input.write_all(head.as_bytes())?;
        let mut part = Vec::with_capacity(PART);
        loop {
            part.clear();
            if (&mut program).take(PART as u64).read_to_end(&mut part)? == 0 {
                break;
            }
            // Each line has a multiple of four characters, and no more than any program takes.
            let text = STANDARD.encode(&part);
            input.write_all(b"base64 -d >>\"$new\" <<'END'\n")?;
            for line in text.as_bytes().chunks(76) {
                input.write_all(line)?;
                input.write_all(b"\n")?;
            }
            input.write_all(b"END\n")?;
        }
        input.write_all(tail.as_bytes())
    };
    // A shell that ends early says why on its output.
    let writer = thread::Builder::new().spawn(write)?;
    let end = Instant::now() + limit;
    while child.try_wait()?.is_none() {
        if Instant::now() >= end {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::other(format!("it was not done within {} s", limit.as_secs())));
        }
        thread::sleep(INTERVAL);
    }
    let (said, errors) = (said.join().unwrap_or_default(), errors.join().unwrap_or_default());
    drop(writer);
    Ok((said, errors))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_is_started_where_a_worker_is() {
        for (launch, expected) in [
            ("ssh build1 -- squad worker", Some(("ssh build1 -- sh", "squad"))),
            ("ssh build1 /opt/bin/squad worker", Some(("ssh build1 sh", "/opt/bin/squad"))),
            ("srun -N1 squad-2.1 worker", Some(("srun -N1 sh", "squad-2.1"))),
            ("squad worker", Some(("sh", "squad"))),
            ("ssh build1 squad worker --verbose", None),
            ("ssh build1 ./start.sh worker", None),
            ("ssh build1 squad;x worker", None),
            ("worker", None),
            ("sh start.sh", None),
        ] {
            let words: Vec<String> = launch.split(' ').map(str::to_owned).collect();
            let found = shell(&words);
            let found = found.as_ref().map(|(words, squad)| (words.join(" "), *squad));
            assert_eq!(found, expected.map(|(words, squad)| (words.to_owned(), squad)), "{launch}");
        }
    }
}
