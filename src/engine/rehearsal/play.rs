//! Plays the steps of a turn.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::commands::Commands;
use super::script::Step;
use crate::engine::{Approval, Fact, Opening, Reply, Request, ToolCall, ToolResult, Writing, added};
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
                Step::Tool { name, arguments } => self.tool(call, name, arguments).await,
                Step::Write { path, text } => self.write(call, &path, &text).await,
                Step::Run(command) => self.run(call, command).await,
                Step::Read(path) => self.read(call, path).await,
                Step::Ask(text) => self.ask(text).await,
                Step::Listen => self.listen().await,
                Step::Fail(reason) => return Ok(Fact::Failed(reason)),
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

    async fn tool(&self, call: String, tool: String, arguments: serde_json::Value) {
        let detail = arguments.get("title").or_else(|| arguments.get("text")).and_then(|value| value.as_str());
        let detail = detail.unwrap_or_default().to_owned();
        self.tell(Fact::ToolStarted { call: call.clone(), tool: tool.clone(), detail, writes: None });
        let (reply, answer) = Reply::channel();
        self.tell(Fact::Request(Request::Tool(ToolCall { call: call.clone(), tool: tool.clone(), arguments }, reply)));
        let result = answer.await.unwrap_or(ToolResult { ok: false, text: "no answer".to_owned() });
        self.completed(Fact::ToolCompleted { call, tool, ok: result.ok, exit_code: None, detail: result.text }).await;
    }

    /// Reports the end of a call, and goes on when it is durable, as the Copilot CLI does.
    async fn completed(&self, end: Fact) {
        self.tell(end);
        let (reply, durable) = Reply::channel();
        self.tell(Fact::Request(Request::Durable(reply)));
        let _ = durable.await;
    }

    async fn write(&self, call: String, path: &str, text: &str) {
        let tool = "write".to_owned();
        let old = std::fs::read_to_string(self.opening.directory.join(path)).unwrap_or_default();
        let writes = Some((path.to_owned(), added(&old, text)));
        self.tell(Fact::ToolStarted { call: call.clone(), tool: tool.clone(), detail: path.to_owned(), writes });
        let (reply, answer) = Reply::channel();
        let writing = Writing { path: path.to_owned(), old: None, text: text.to_owned(), is_whole: true };
        self.tell(Fact::Request(Request::Write(vec![writing], reply)));
        if let Some(instead) = answer.await.ok().flatten() {
            let (ok, detail) = (instead.ok, instead.text);
            return self.completed(Fact::ToolCompleted { call, tool, ok, exit_code: None, detail }).await;
        }
        let (reply, answer) = Reply::channel();
        let (id, name, detail) = (Some(call.clone()), tool.clone(), path.to_owned());
        let access = Access::Write;
        self.tell(Fact::Request(Request::Permission { call: id, access, tool: name, detail, reply }));
        let result = match answer.await.unwrap_or(Approval::Deny("no answer".to_owned())) {
            Approval::Deny(reason) => Err(reason),
            Approval::Allow => confined(&self.opening.directory, path)
                .and_then(|target| std::fs::write(&target, text).map_err(|error| error.to_string())),
        };
        let detail = result.as_ref().err().cloned().unwrap_or_else(|| path.to_owned());
        self.completed(Fact::ToolCompleted { call, tool, ok: result.is_ok(), exit_code: None, detail }).await;
    }

    async fn run(&self, call: String, command: String) {
        let tool = "shell".to_owned();
        self.tell(Fact::ToolStarted { call: call.clone(), tool: tool.clone(), detail: command.clone(), writes: None });
        let (reply, answer) = Reply::channel();
        let (id, name, detail) = (Some(call.clone()), tool.clone(), command.clone());
        let access = Access::Shell;
        self.tell(Fact::Request(Request::Permission { call: id, access, tool: name, detail, reply }));
        let result = match answer.await.unwrap_or(Approval::Deny("no answer".to_owned())) {
            Approval::Deny(reason) => Err(reason),
            Approval::Allow => self.commands.run(&command, &self.opening).await,
        };
        let (exit_code, detail) =
            result.map_or_else(|reason| (None, reason), |(code, output)| (code.map(i64::from), output));
        self.tell(Fact::ToolCompleted { call, tool, ok: exit_code == Some(0), exit_code, detail });
    }

    async fn read(&self, call: String, path: String) {
        let tool = "read".to_owned();
        self.tell(Fact::ToolStarted { call: call.clone(), tool: tool.clone(), detail: path.clone(), writes: None });
        let (reply, answer) = Reply::channel();
        let (id, name, detail) = (Some(call.clone()), tool.clone(), path.clone());
        let access = Access::Read;
        self.tell(Fact::Request(Request::Permission { call: id, access, tool: name, detail, reply }));
        let result = match answer.await.unwrap_or(Approval::Deny("no answer".to_owned())) {
            Approval::Deny(reason) => Err(reason),
            Approval::Allow => {
                std::fs::read_to_string(self.opening.directory.join(&path)).map_err(|error| error.to_string())
            }
        };
        let (ok, detail) = (result.is_ok(), result.unwrap_or_else(|error| error));
        self.tell(Fact::ToolCompleted { call, tool, ok, exit_code: None, detail });
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
