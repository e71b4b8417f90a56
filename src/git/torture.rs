//! Processes that are killed, and what must hold afterwards: for `squad torture`.

use std::{
    ffi::OsStr,
    io::{BufRead, BufReader},
    process::{Child, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use crate::program::Program;

use super::{
    error::Error,
    program::{Call, Environment},
    repository::Repository,
};

/// A process that says a line for each thing that it has done.
pub(crate) struct Writer {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Writer {
    pub(crate) fn start<A: AsRef<OsStr>>(
        squad: &Program,
        arguments: &[A],
        environment: &Environment,
    ) -> Result<Self, Error> {
        let mut command = squad.command();
        command.args(arguments).env_clear().envs(&environment.variables);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(Error::io("start", squad.path()))?;
        let (sender, lines) = mpsc::channel();
        if let Some(output) = child.stdout.take() {
            thread::spawn(move || {
                // A line that death cut short is no acknowledgement.
                let mut output = BufReader::new(output);
                let mut line = String::new();
                while matches!(output.read_line(&mut line), Ok(1..)) && line.ends_with('\n') {
                    if sender.send(line.trim_end().to_owned()).is_err() {
                        break;
                    }
                    line.clear();
                }
            });
        }
        Ok(Self { child, lines })
    }

    /// The next line, if it comes in time.
    pub(crate) fn line(&self, patience: Duration) -> Option<String> {
        self.lines.recv_timeout(patience).ok()
    }

    /// Kills it as nothing can prevent, and returns what it had said.
    pub(crate) fn kill(mut self) -> Vec<String> {
        // It may have ended by itself.
        let _ = self.child.kill();
        self.finish()
    }

    /// Everything it says until it ends.
    pub(crate) fn finish(mut self) -> Vec<String> {
        let said = self.lines.iter().collect();
        let _ = self.child.wait();
        said
    }
}

impl Repository {
    /// What `git fsck` finds wrong; empty is sound. Reads every object.
    pub(crate) fn complaints(&self) -> Result<Vec<String>, Error> {
        // Objects that nothing refers to are what every interrupted write leaves, git's own too.
        let answer = self.call(&["fsck", "--full", "--no-dangling"]).patience(Duration::from_secs(3600)).run()?;
        let mut complaints = answer.complaints();
        complaints.retain(|line| !line.starts_with("notice:") && !line.starts_with("Checking "));
        if complaints.is_empty() && !answer.is_success() {
            complaints.push(answer.complaint());
        }
        Ok(complaints)
    }

    /// What git does beside us on its own: packing refs and objects, and removing what is packed.
    pub(crate) fn disturb(&self, round: usize) -> Result<(), Error> {
        let commands: [&[&str]; 3] = [&["pack-refs", "--all", "--prune"], &["gc", "--quiet"], &["prune-packed", "-q"]];
        // They may refuse because another one is at it.
        Call::run(self.call(commands[round % commands.len()])).map(drop)
    }
}
