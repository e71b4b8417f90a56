//! Plays the steps of a turn.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::commands::Commands;
use super::script::Step;
use crate::engine::{Approval, Fact, Opening, Reply, Request, Reset, ToolCall, ToolResult, Writing, added, subject};
use crate::env::ProjectPath;
use crate::model::Access;

/// A panic requested by the script, with its message.
pub(super) struct ScriptedPanic(pub(super) String);

pub(super) struct TurnPlayer {
    pub(super) opening: Arc<Opening>,
    pub(super) facts: mpsc::UnboundedSender<Result<Fact, ScriptedPanic>>,
    pub(super) commands: Arc<Commands>,
    pub(super) dead: watch::Sender<bool>,
    /// The user's messages during the turn.
    pub(super) steering: mpsc::UnboundedReceiver<String>,
}

impl TurnPlayer {
    /// Plays the turn and returns its last fact.
    pub(super) async fn play(mut self, steps: Vec<Step>) -> Result<Fact, ScriptedPanic> {
        for (number, step) in steps.into_iter().enumerate() {
            let call = format!("call-{}", number + 1);
            match step {
                Step::Wait(duration) => tokio::time::sleep(duration).await,
                Step::Say(text) => self.say(&text),
                Step::Tool { name, arguments } => self.tool(called(call, &name, arguments)).await,
                Step::Write { path, text } => {
                    self.write(called(call, "write", json!({ "path": path, "text": text }))).await;
                }
                Step::Run(command) => self.run(called(call, "shell", json!({ "command": command }))).await,
                Step::Read(path) => self.read(called(call, "read", json!({ "path": path }))).await,
                Step::Ask(text) => self.ask(text).await,
                Step::Listen => self.listen().await,
                Step::Fail(reason) | Step::Error(reason) => return Ok(Fact::Failed(reason)),
                Step::Quota(time) => {
                    let reason = "the script says so".to_owned();
                    return Ok(Fact::NoQuota { reason, reset: Some(Reset::In(time)) });
                }
                Step::Use(usage) => self.tell(Fact::Usage(*usage)),
                Step::Hang => std::future::pending().await,
                Step::Die => {
                    self.dead.send_replace(true);
                    return Ok(super::lost());
                }
                Step::Panic(message) => return Err(ScriptedPanic(message)),
            }
        }
        Ok(Fact::Idle)
    }

    fn tell(&self, fact: Fact) {
        // The receiver is gone once the session is closed.
        let _ = self.facts.send(Ok(fact));
    }

    /// Sends a few words at a time, like a model.
    fn say(&self, text: &str) {
        let text = text.trim();
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.match_indices(' ').nth(5).map_or(rest.len(), |(at, _)| at + 1);
            self.tell(Fact::MessageDelta(rest[..end].to_owned()));
            rest = &rest[end..];
        }
        self.tell(Fact::Message(text.to_owned()));
    }

    async fn tool(&self, call: ToolCall) {
        let Some(call) = self.begin(call).await else { return };
        let (reply, answer) = Reply::channel();
        self.tell(Fact::Request(Request::Tool(call.clone(), reply)));
        let ToolResult { ok, text } = answer.await.unwrap_or(ToolResult { ok: false, text: "no answer".to_owned() });
        self.completed(call, None, if ok { Ok(text) } else { Err(text) }).await;
    }

    /// Reports the end of a call, and goes on when it is durable, as the Copilot CLI does.
    async fn completed(&self, call: ToolCall, exit_code: Option<i64>, result: Result<String, String>) {
        let ended = self.ended(&call, exit_code, result);
        let (reply, durable) = Reply::channel();
        self.tell(Fact::Request(Request::AfterTool(call, ended, reply)));
        let _ = durable.await;
    }

    fn ended(&self, call: &ToolCall, exit_code: Option<i64>, result: Result<String, String>) -> ToolResult {
        let ok = result.is_ok() && exit_code.is_none_or(|code| code == 0);
        let text = result.unwrap_or_else(|error| error);
        let (id, tool, detail) = (call.call.clone(), call.tool.clone(), text.clone());
        self.tell(Fact::ToolCompleted { call: id, tool, ok, exit_code, detail });
        ToolResult { ok, text }
    }

    /// Begins a call with the arguments that it may be made with. `None`: it is denied, and has ended.
    async fn begin(&self, call: ToolCall) -> Option<ToolCall> {
        let begun = call.clone().allowed(|fact| self.tell(fact)).await;
        let started = begun.as_ref().unwrap_or(&call);
        // Of a decision, its title; of a learning, its text.
        let named = ["title", "text"].into_iter().find_map(|name| started.arguments.get(name)?.as_str());
        let is_own = started.tool.starts_with("squad_");
        let detail = if is_own { named.unwrap_or_default().to_owned() } else { subject(&started.arguments) };
        let writes = (call.tool == "write").then(|| {
            let old = std::fs::read_to_string(self.opening.directory.join(&detail)).unwrap_or_default();
            (detail.clone(), added(&old, argument(started, "text")))
        });
        self.tell(Fact::ToolStarted { call: call.call.clone(), tool: call.tool.clone(), detail, writes });
        match begun {
            Ok(call) => Some(call),
            Err(reason) => {
                self.completed(call, None, Err(reason)).await;
                None
            }
        }
    }

    /// Asks for permission for a call.
    async fn permit(&self, call: &ToolCall, access: Access) -> Result<(), String> {
        let (reply, answer) = Reply::channel();
        let (id, tool, detail) = (Some(call.call.clone()), call.tool.clone(), subject(&call.arguments));
        self.tell(Fact::Request(Request::Permission { call: id, access, tool, detail, reply }));
        match answer.await.unwrap_or(Approval::Deny("no answer".to_owned())) {
            Approval::Allow => Ok(()),
            Approval::Deny(reason) => Err(reason),
        }
    }

    async fn write(&self, call: ToolCall) {
        let Some(call) = self.begin(call).await else { return };
        let (path, text) = (argument(&call, "path"), argument(&call, "text"));
        let (reply, answer) = Reply::channel();
        let writing = Writing { path: path.to_owned(), old: None, text: text.to_owned(), is_whole: true };
        self.tell(Fact::Request(Request::Write(vec![writing], reply)));
        let result = match answer.await.ok().flatten() {
            Some(ToolResult { ok, text }) => {
                if ok {
                    Ok(text)
                } else {
                    Err(text)
                }
            }
            None => match self.permit(&call, Access::Write).await {
                Ok(()) => confined(&self.opening.directory, path)
                    .and_then(|target| std::fs::write(&target, text).map_err(|error| error.to_string()))
                    .map(|()| path.to_owned()),
                Err(reason) => Err(reason),
            },
        };
        self.completed(call, None, result).await;
    }

    async fn run(&self, call: ToolCall) {
        let Some(call) = self.begin(call).await else { return };
        let result = match self.permit(&call, Access::Shell).await {
            Ok(()) => self.commands.run(argument(&call, "command"), &self.opening).await,
            Err(reason) => Err(reason),
        };
        match result {
            Ok((Some(code), output)) => self.completed(call, Some(code.into()), Ok(output)).await,
            // Ended by a signal.
            Ok((None, output)) => self.completed(call, None, Err(output)).await,
            Err(reason) => self.completed(call, None, Err(reason)).await,
        }
    }

    async fn read(&self, call: ToolCall) {
        let Some(call) = self.begin(call).await else { return };
        let result = match self.permit(&call, Access::Read).await {
            Ok(()) => {
                let path = self.opening.directory.join(argument(&call, "path"));
                std::fs::read_to_string(path).map_err(|error| error.to_string())
            }
            Err(reason) => Err(reason),
        };
        // Nobody makes anything of it, so it need not be durable.
        self.ended(&call, None, result);
    }

    async fn listen(&mut self) {
        match self.steering.recv().await {
            Some(text) => self.say(&format!("I was told: {text}")),
            // The session is closed, so no message will come.
            None => std::future::pending().await,
        }
    }

    async fn ask(&self, text: String) {
        let (reply, answer) = Reply::channel();
        self.tell(Fact::Request(Request::Question { text, choices: Vec::new(), reply }));
        let answer = answer.await.ok().flatten();
        self.say(&format!("The answer is: {}", answer.as_deref().unwrap_or("none was given")));
    }
}

fn called(call: String, tool: &str, arguments: Value) -> ToolCall {
    ToolCall { call, tool: tool.to_owned(), arguments }
}

/// An argument of a call; hooks may have left it out.
fn argument<'c>(call: &'c ToolCall, name: &str) -> &'c str {
    call.arguments.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A path in the project, with its folders created.
fn confined(project: &Path, path: &str) -> Result<PathBuf, String> {
    let found = ProjectPath::resolve(project, project, path).map_err(|reason| format!("`{path}` {reason}"))?;
    let folder = found.path.parent().filter(|_| !found.shown.is_empty()).ok_or("there is no file's name")?;
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    Ok(found.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_is_confined_to_the_project() {
        let project = tempfile::tempdir().expect("a folder");
        assert!(confined(project.path(), "a/b/c.txt").is_ok() && project.path().join("a/b").is_dir());
        for outside in ["../x", "/etc/x", "a/../../x", ""] {
            assert!(confined(project.path(), outside).is_err(), "{outside}");
        }
        assert!(confined(project.path(), ".git/hooks/post-commit").is_err());
        #[cfg(unix)]
        {
            let other = tempfile::tempdir().expect("a folder");
            std::os::unix::fs::symlink(other.path(), project.path().join("link")).expect("a link");
            std::os::unix::fs::symlink(other.path().join("none"), project.path().join("dangling")).expect("a link");
            assert!(confined(project.path(), "link/new/x").is_err() && confined(project.path(), "dangling").is_err());
            assert!(!other.path().join("new").exists());
        }
    }
}
