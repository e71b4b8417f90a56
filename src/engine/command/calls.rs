//! Calls of squad's tools by engines that take them by MCP. The engine starts squad's server, which may be in the sandbox
//! with it, so server and run communicate through two files beside the turn's output:
//!
//! ```text
//! server ── N.calls ───→ turn ── Fact::Request(Tool, Permission) ─→ pool: ledger, policy, user
//!        ←─ N.answers ──      ── Fact::ToolStarted, Fact::ToolCompleted ─→ record
//! ```
//!
//! The run performs a call, as it does for engines that speak to it themselves. `shell` and `file_ops`, for engines
//! without such tools, are performed by the server, within the agent's bounds, once the run permits it.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::process;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::chats::is_session_id;
use super::environment;
use super::run::{Ended, MAX_OUTPUT, Output, run_limited};
use super::spool::{Spool, Tail};
use crate::engine::{Approval, Fact, NO_ANSWER, Reply, Request, ToolCall, spawn};
use crate::env::files::open_regular;
use crate::model::{Access, from_json, to_json};
use crate::program::{Program, Programs, Variables};

const CALLS: &str = "calls";
const ANSWERS: &str = "answers";
/// How often the server checks for an answer.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// What the server needs to know of the turn. The first line of the answers file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TurnContext {
    /// The agent's working folder.
    pub(crate) directory: PathBuf,
    /// The tools to offer.
    pub(crate) tools: Vec<String>,
    /// Those of them that the run performs.
    pub(crate) relayed: Vec<String>,
    /// Whether its role may change files.
    pub(crate) may_write: bool,
    /// Environment variables by which the processes that it starts are found.
    pub(super) marks: Vec<(String, String)>,
}

/// A call that needs permission.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Planned {
    pub(crate) call: String,
    pub(crate) tool: String,
    pub(crate) access: Access,
    /// The whole command, or the path relative to the project's root.
    pub(crate) detail: String,
    /// The file to write, and the lines to add.
    pub(crate) writes: Option<(String, String)>,
}

/// A call that the run performs.
#[derive(Debug, Serialize, Deserialize)]
struct Relayed {
    call: String,
    tool: String,
    arguments: Value,
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
    Relayed(Relayed),
    Planned(Planned),
    Performed(Performed),
}

#[derive(Serialize, Deserialize)]
struct Answer {
    call: String,
    /// What the tool says; of a planned call, nothing. The error is why it failed or may not be done.
    result: Result<String, String>,
}

/// The turn's end of the connection.
pub(super) struct Calls {
    tail: Tail,
    answers: PathBuf,
}

impl Calls {
    pub(super) fn open(spool: &Spool, context: &TurnContext) -> io::Result<Self> {
        spool.create(CALLS)?;
        write_line(spool.create(ANSWERS)?, context)?;
        Ok(Self { tail: spool.tail(CALLS)?, answers: spool.path(ANSWERS) })
    }

    /// Reports new calls.
    pub(super) fn read(&mut self, facts: &mpsc::UnboundedSender<Fact>) {
        while let Ok(Some(lines)) = self.tail.lines() {
            for line in lines.iter().filter_map(|line| from_json(line).ok()) {
                match line {
                    Line::Relayed(relayed) => self.relay(relayed, facts.clone()),
                    Line::Planned(planned) => self.ask(planned, facts.clone()),
                    Line::Performed(Performed { call, tool, ok, exit_code, result }) => {
                        tell(facts, Fact::ToolCompleted { call, tool, ok, exit_code, detail: result });
                    }
                }
            }
        }
    }

    /// Has the run perform a call.
    fn relay(&self, Relayed { call, tool, arguments }: Relayed, facts: mpsc::UnboundedSender<Fact>) {
        let answers = self.answers.clone();
        spawn(async move {
            let id = call.clone();
            let result = match (ToolCall { call, tool, arguments }).allowed(|fact| tell(&facts, fact)).await {
                Ok(call) => perform(&facts, call).await,
                Err(reason) => Err(reason),
            };
            answer_to(&answers, id, result);
        });
    }

    /// Asks for permission in a task of its own, because the user may take any time.
    fn ask(&self, planned: Planned, facts: mpsc::UnboundedSender<Fact>) {
        let answers = self.answers.clone();
        let Planned { call, tool, access, detail, writes } = planned;
        spawn(async move {
            let arguments = json!({ (if access == Access::Shell { "command" } else { "path" }): detail });
            let planned = ToolCall { call: call.clone(), tool: tool.clone(), arguments };
            let may_be_made = match planned.clone().allowed(|fact| tell(&facts, fact)).await {
                Ok(call) if call == planned => Ok(()),
                Ok(_) => Err("a hook changed the call, and its engine has made it already".to_owned()),
                Err(reason) => Err(reason),
            };
            if let Err(reason) = may_be_made {
                return answer_to(&answers, call, Err(reason));
            }
            let (reply, answer) = Reply::channel();
            let (id, name, about) = (Some(call.clone()), tool.clone(), detail.clone());
            tell(&facts, Fact::Request(Request::Permission { call: id, access, tool: name, detail: about, reply }));
            let result = match answer.await {
                Ok(Approval::Allow) => {
                    tell(&facts, Fact::ToolStarted { call: call.clone(), tool, detail, writes });
                    Ok(String::new())
                }
                Ok(Approval::Deny(reason)) => Err(reason),
                Err(_) => Err("nobody answered the permission request".to_owned()),
            };
            answer_to(&answers, call, result);
        });
    }
}

/// Performs a call of one of squad's tools. Returns what the model reads.
async fn perform(facts: &mpsc::UnboundedSender<Fact>, call: ToolCall) -> Result<String, String> {
    let (reply, answer) = Reply::channel();
    tell(facts, Fact::Request(Request::Tool(call.clone(), reply)));
    let ended = answer.await.map_err(|_| NO_ANSWER.to_owned())?;
    let (reply, instead) = Reply::channel();
    tell(facts, Fact::Request(Request::AfterTool(call, ended.clone(), reply)));
    let text = instead.await.ok().flatten().unwrap_or(ended.text);
    if ended.ok { Ok(text) } else { Err(text) }
}

/// If this fails, the server gets no answer and performs nothing.
fn answer_to(answers: &Path, call: String, result: Result<String, String>) {
    let file = open_regular(File::options().append(true), answers);
    let _ = file.and_then(|file| write_line(file, &Answer { call, result }));
}

fn tell(facts: &mpsc::UnboundedSender<Fact>, fact: Fact) {
    // This fails if the session was closed.
    let _ = facts.send(fact);
}

fn write_line(mut file: File, value: &impl Serialize) -> io::Result<()> {
    let line = to_json(value)? + "\n";
    // A single write, because several tasks and processes append to the file.
    file.write_all(line.as_bytes())
}

/// The server's end of the connection.
pub(crate) struct ToolHost {
    spool: Spool,
    pub(crate) context: TurnContext,
}

impl ToolHost {
    /// `turn` is `SESSION/NUMBER`. `None`: there is no such turn.
    pub(crate) fn open(local: &Path, turn: &str) -> Option<Self> {
        let (session, number) = turn.split_once('/')?;
        let number = number.parse().ok().filter(|_| is_session_id(session))?;
        let spool = Spool::of(local, session, number);
        let context = spool.tail(ANSWERS).ok()?.lines().ok()??.into_iter().next()?;
        Some(Self { context: from_json(&context).ok()?, spool })
    }

    /// Has the run perform a call of one of the tools in [`TurnContext::relayed`].
    pub(crate) async fn relay(
        &self,
        tool: &str,
        arguments: Value,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<String, String> {
        let call = crate::env::unique_id().to_string();
        let line = Line::Relayed(Relayed { call: call.clone(), tool: tool.to_owned(), arguments });
        self.answer(&line, &call, stop).await
    }

    /// Waits for permission. The error is the reason, for the model.
    pub(crate) async fn ask(&self, planned: Planned, stop: &mut watch::Receiver<bool>) -> Result<(), String> {
        let call = planned.call.clone();
        self.answer(&Line::Planned(planned), &call, stop).await.map(drop)
    }

    async fn answer(&self, line: &Line, call: &str, stop: &mut watch::Receiver<bool>) -> Result<String, String> {
        let lost = |error: io::Error| format!("cannot reach the run: {error}");
        let mut answers = self.spool.tail(ANSWERS).map_err(lost)?;
        self.write(line).map_err(lost)?;
        while !*stop.borrow() {
            let lines = answers.lines().map_err(lost)?.unwrap_or_default();
            let mut lines = lines.iter().filter_map(|line| from_json::<Answer>(line).ok());
            if let Some(answer) = lines.find(|answer| answer.call == call) {
                return answer.result;
            }
            sleep(POLL_INTERVAL).await;
        }
        Err("the call was cancelled".to_owned())
    }

    pub(crate) fn performed(&self, performed: Performed) -> Result<(), String> {
        self.write(&Line::Performed(performed)).map_err(|error| format!("cannot reach the run: {error}"))
    }

    fn write(&self, line: &Line) -> io::Result<()> {
        write_line(open_regular(File::options().append(true), &self.spool.path(CALLS))?, line)
    }

    /// Runs a program in a process group of its own, with its output in files. It is ended after `limit`.
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
        let output = Output { spool: &self.spool, stdout: &kinds[0], stderr: &kinds[1], most: MAX_OUTPUT };
        let (ended, is_timeout) = run_limited(command, Stdio::null(), &output, limit, stop).await?;
        let [stdout, stderr] =
            kinds.each_ref().map(|kind| (self.spool.last_text(kind, Finished::SHOWN), self.spool.len(kind)));
        Ok(Finished { ended, is_timeout, stdout, stderr })
    }
}

/// How a command ended, and of each stream the last bytes as text and the size in bytes.
pub(crate) struct Finished {
    ended: Ended,
    is_timeout: bool,
    pub(crate) stdout: (String, u64),
    pub(crate) stderr: (String, u64),
}

impl Finished {
    /// Maximum bytes of each stream for the model.
    pub(crate) const SHOWN: u64 = 16 * 1024;

    pub(crate) fn exit_code(&self) -> Option<i64> {
        self.ended.code.filter(|_| self.ended.stop_reason.is_none()).map(i64::from)
    }

    /// What ended the command; `None`: it ended by itself.
    pub(crate) fn cut_short(&self) -> Option<String> {
        match (&self.ended.stop_reason, self.ended.signal) {
            (Some(_), _) if self.is_timeout => Some("it took too long".to_owned()),
            (Some(reason), _) => Some(reason.clone()),
            (None, Some(signal)) => Some(format!("signal {signal}")),
            (None, None) => None,
        }
    }
}
