//! Calls of `shell` and `file_ops`, which squad's own server performs for the agent of an engine without such tools.
//!
//! The server is a process of the engine's. It and the run write to each other in two files beside the turn's output:
//!
//! ```text
//! server ── N.calls ───→ turn ── Fact::Request(Permission) ─→ policy, the person
//!        ←─ N.answers ──      ── Fact::ToolStarted, Fact::ToolCompleted ─→ record
//! ```
//!
//! So permission is asked and evidence is given as for any other tool.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::process;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::chats::is_session;
use super::environment;
use super::run::{Ended, Output, run};
use super::spool::{Spool, Tail};
use crate::engine::{Approval, Fact, Reply, Request};
use crate::model::Access;
use crate::program::{Program, Programs, Variables};

const CALLS: &str = "calls";
const ANSWERS: &str = "answers";
/// How often the server looks for an answer.
const LOOK: Duration = Duration::from_millis(10);

/// What the server should know of the turn; the first line of the answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TurnContext {
    /// The agent's working folder.
    pub(crate) directory: PathBuf,
    /// The tools it may be offered.
    pub(crate) tools: Vec<String>,
    /// Whether its role may change files.
    pub(crate) may_write: bool,
    /// Variables by which what it starts is found.
    pub(super) marks: Vec<(String, String)>,
}

/// A call, before permission is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Planned {
    pub(crate) call: String,
    pub(crate) tool: String,
    pub(crate) access: Access,
    /// The whole command, or the path from the project's root.
    pub(crate) detail: String,
    /// The file it writes, and the lines it adds.
    pub(crate) writes: Option<(String, String)>,
}

/// A call that was performed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Performed {
    pub(crate) call: String,
    pub(crate) tool: String,
    pub(crate) ok: bool,
    pub(crate) exit_code: Option<i64>,
    pub(crate) result: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Planned(Planned),
    Performed(Performed),
}

#[derive(Serialize, Deserialize)]
struct Answer {
    call: String,
    /// `None`: it may be performed.
    refused: Option<String>,
}

/// The turn's side.
pub(super) struct Calls {
    tail: Tail,
    answers: PathBuf,
}

impl Calls {
    pub(super) fn open(spool: &Spool, context: &TurnContext) -> io::Result<Self> {
        spool.create(CALLS)?;
        write_line(spool.create(ANSWERS)?, context)?;
        Ok(Self { tail: Tail::new(spool.path(CALLS)), answers: spool.path(ANSWERS) })
    }

    /// Reports what has been written since.
    pub(super) fn read(&mut self, facts: &mpsc::UnboundedSender<Fact>) {
        while let Ok(Some(lines)) = self.tail.lines() {
            for line in lines.iter().filter_map(|line| serde_json::from_str(line).ok()) {
                match line {
                    Line::Planned(planned) => self.ask(planned, facts.clone()),
                    Line::Performed(Performed { call, tool, ok, exit_code, result }) => {
                        tell(facts, Fact::ToolCompleted { call, tool, ok, exit_code, detail: result });
                    }
                }
            }
        }
    }

    /// Asks for permission in a task of its own: a person may take any time.
    fn ask(&self, planned: Planned, facts: mpsc::UnboundedSender<Fact>) {
        let answers = self.answers.clone();
        let Planned { call, tool, access, detail, writes } = planned;
        let (reply, answer) = Reply::channel();
        tell(&facts, Fact::Request(Request::Permission { access, tool: tool.clone(), detail: detail.clone(), reply }));
        tokio::spawn(async move {
            let refused = match answer.await {
                Ok(Approval::Allow) => {
                    tell(&facts, Fact::ToolStarted { call: call.clone(), tool, detail, writes });
                    None
                }
                Ok(Approval::Deny(reason)) => Some(reason),
                Err(_) => Some("nobody answered whether it is allowed".to_owned()),
            };
            // A server that gets no answer performs nothing.
            let file = File::options().append(true).open(answers);
            let _ = file.and_then(|file| write_line(file, &Answer { call, refused }));
        });
    }
}

fn tell(facts: &mpsc::UnboundedSender<Fact>, fact: Fact) {
    // A closed session hears nothing.
    let _ = facts.send(fact);
}

fn write_line(mut file: File, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    // In one piece: several may write.
    file.write_all(&line)
}

/// The server's side.
pub(crate) struct ToolHost {
    spool: Spool,
    pub(crate) context: TurnContext,
}

impl ToolHost {
    /// `turn` is `SESSION/NUMBER`, of a turn that is being worked on. `None`: it names none.
    pub(crate) fn open(local: &Path, turn: &str) -> Option<Self> {
        let (session, number) = turn.split_once('/')?;
        let number = number.parse().ok().filter(|_| is_session(session))?;
        let spool = Spool::of(local, session, number);
        let first = Tail::new(spool.path(ANSWERS)).lines().ok()??.into_iter().next()?;
        Some(Self { context: serde_json::from_str(&first).ok()?, spool })
    }

    /// Waits until the run has decided. The error is the reason for the model.
    pub(crate) async fn ask(&self, planned: Planned, stop: &mut watch::Receiver<bool>) -> Result<(), String> {
        let lost = |error: io::Error| format!("the run cannot be asked: {error}");
        let mut answers = Tail::new(self.spool.path(ANSWERS));
        let call = planned.call.clone();
        self.write(&Line::Planned(planned)).map_err(lost)?;
        while !*stop.borrow() {
            let lines = answers.lines().map_err(lost)?.unwrap_or_default();
            let mut lines = lines.iter().filter_map(|line| serde_json::from_str::<Answer>(line).ok());
            if let Some(answer) = lines.find(|answer| answer.call == call) {
                return answer.refused.map_or(Ok(()), Err);
            }
            sleep(LOOK).await;
        }
        Err("the call was given up".to_owned())
    }

    pub(crate) fn performed(&self, performed: Performed) -> Result<(), String> {
        self.write(&Line::Performed(performed)).map_err(|error| format!("the run cannot be told: {error}"))
    }

    fn write(&self, line: &Line) -> io::Result<()> {
        write_line(File::options().append(true).open(self.spool.path(CALLS))?, line)
    }

    /// Runs a program in a process group of its own, with its output in files.
    pub(crate) async fn run(
        &self,
        (program, arguments): (&Program, &[&str]),
        (programs, variables): (&Programs, &Variables),
        directory: &Path,
        (call, limit): (&str, Duration),
        stop: &watch::Receiver<bool>,
    ) -> io::Result<Finished> {
        let mut variables = environment::allowed(variables, &[]);
        programs.restrict(&mut variables);
        let mut command = process::Command::from(program.command());
        command.args(arguments).env_clear().envs(variables).envs(self.context.marks.iter().cloned());
        command.current_dir(directory);
        let kinds = ["stdout", "stderr"].map(|kind| format!("{call}.{kind}"));
        let output = Output { spool: &self.spool, stdout: &kinds[0], stderr: &kinds[1] };
        let (mut given_up, (ends, mut ended)) = (stop.clone(), watch::channel(false));
        let timer = tokio::spawn(async move {
            let is_late = tokio::select! {
                () = sleep(limit) => true,
                _ = given_up.wait_for(|stop| *stop) => false,
            };
            ends.send_replace(true);
            is_late
        });
        let ended = run(command, Stdio::null(), &output, &mut ended, ()).await;
        timer.abort();
        let is_late = timer.await.unwrap_or(false);
        let ended = ended?;
        let [stdout, stderr] =
            kinds.each_ref().map(|kind| (self.spool.end(kind, Finished::SHOWN), self.spool.len(kind)));
        Ok(Finished { ended, is_late, stdout, stderr })
    }
}

/// How a command ended. Of each stream there are its last bytes as text, and how many there were.
pub(crate) struct Finished {
    ended: Ended,
    is_late: bool,
    pub(crate) stdout: (String, u64),
    pub(crate) stderr: (String, u64),
}

impl Finished {
    /// Of each stream, this much goes to the model.
    pub(crate) const SHOWN: u64 = 16 * 1024;

    pub(crate) fn exit_code(&self) -> Option<i64> {
        self.ended.code.filter(|_| self.ended.because.is_none()).map(i64::from)
    }

    /// In words; `None`: it ended by itself.
    pub(crate) fn cut_short(&self) -> Option<String> {
        match (&self.ended.because, self.ended.signal) {
            (Some(_), _) if self.is_late => Some("its time was over".to_owned()),
            (Some(because), _) => Some(because.clone()),
            (None, Some(signal)) => Some(format!("signal {signal}")),
            (None, None) => None,
        }
    }
}
