//! The tools of an agent's turn. The run performs them, but `shell` and `file_ops`, which run here, within the agent's
//! bounds: the run gives permission before and gets the result after.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::engine::command::{Performed, Planned, ToolHost, confined};
use crate::engine::{ToolCall, added, spawn};
use crate::env::Env;
use crate::mcp::{Object, Signal};
use crate::model::{Access, without_hidden};
use crate::program::{Programs, Variables};
use crate::tools::{self, FileCall, Intent, Operation, ShellCall, text_at};

pub(super) struct TurnTools {
    host: ToolHost,
    root: PathBuf,
    programs: Programs,
    variables: Variables,
}

impl TurnTools {
    /// `None`: the agent has no such turn.
    pub(super) fn new(env: &Env, local: &Path, root: PathBuf, turn: &str) -> Option<Self> {
        let variables = env.os_variables();
        let programs = Programs::new(&root, &variables);
        Some(Self { host: ToolHost::open(local, turn)?, root, programs, variables })
    }

    pub(super) fn offers(&self, tool: &str) -> bool {
        self.host.context.tools.iter().any(|known| known == tool)
    }

    pub(super) fn perform(&self, tool: &str, arguments: Object, signal: &Arc<Signal>) -> Result<String, String> {
        let arguments = Value::Object(arguments);
        if self.host.context.relayed.iter().any(|known| known == tool) {
            return Handle::current().block_on(async { self.host.relay(tool, arguments, &mut stop(signal)).await });
        }
        match tools::read(&ToolCall { call: String::new(), tool: tool.to_owned(), arguments })? {
            Intent::Shell(call) => self.shell(&call, signal),
            Intent::Files(call) => self.files(&call, signal),
            _ => Err(format!("`{tool}` is not offered here")),
        }
    }

    fn shell(&self, call: &ShellCall, signal: &Arc<Signal>) -> Result<String, String> {
        let folder = self.host.context.directory.join(call.cwd.as_deref().unwrap_or_default());
        let folder = confined(&self.root, &folder)?;
        let (name, arguments) = call.shell();
        let shell = self.programs.find(name).map_err(|unfit| unfit.to_string())?;
        let planned = planned("shell", Access::Shell, call.command.clone());
        let id = planned.call.clone();
        Handle::current().block_on(async {
            let mut stop = stop(signal);
            self.host.ask(planned, &mut stop).await?;
            let (surroundings, limits) = ((&self.programs, &self.variables), (id.as_str(), call.timeout()));
            let run = self.host.run((&shell, &arguments), surroundings, &folder, limits, &stop).await;
            let (ok, exit_code, result) = match &run {
                Ok(finished) => (finished.exit_code() == Some(0), finished.exit_code(), call.result(finished)),
                Err(error) => (false, None, format!("{} cannot be run: {error}", shell.path().display())),
            };
            self.performed("shell", id, (ok, exit_code), result)
        })
    }

    fn files(&self, call: &FileCall, signal: &Arc<Signal>) -> Result<String, String> {
        let at = call.place(&self.root, &self.host.context.directory)?;
        if call.operation == Operation::Write && !self.host.context.may_write {
            return Err("your role reads files and writes none".to_owned());
        }
        let access = if call.operation == Operation::Write { Access::Write } else { Access::Read };
        let shown = if at.shown.is_empty() { "." } else { &at.shown };
        let mut planned = planned("file_ops", access, shown.to_owned());
        planned.writes = call.content.as_ref().map(|text| (shown.to_owned(), added(&text_at(&at), text)));
        let id = planned.call.clone();
        Handle::current().block_on(async { self.host.ask(planned, &mut stop(signal)).await })?;
        // Checks the path again, because a person may have taken a while to answer.
        let done = call.place(&self.root, &self.host.context.directory).and_then(|now| {
            if now == at { call.perform(&at) } else { Err(format!("`{}` leads elsewhere now", call.path)) }
        });
        let ok = done.is_ok();
        self.performed("file_ops", id, (ok, None), done.unwrap_or_else(|reason| reason))
    }

    /// The result as the model reads it; an error if the call failed.
    fn performed(
        &self,
        tool: &str,
        call: String,
        (ok, exit_code): (bool, Option<i64>),
        result: String,
    ) -> Result<String, String> {
        let result = without_hidden(result);
        let tool = tool.to_owned();
        self.host.performed(Performed { call, tool, ok, exit_code, result: result.clone() })?;
        if ok || exit_code.is_some() { Ok(result) } else { Err(result) }
    }
}

fn planned(tool: &str, access: Access, detail: String) -> Planned {
    Planned { call: crate::env::unique_id().to_string(), tool: tool.to_owned(), access, detail, writes: None }
}

/// Set when the call was abandoned.
fn stop(signal: &Arc<Signal>) -> watch::Receiver<bool> {
    let (sender, receiver) = watch::channel(false);
    let signal = Arc::clone(signal);
    spawn(async move {
        tokio::select! {
            () = signal.abandoned() => { sender.send_replace(true); }
            () = sender.closed() => {}
        }
    });
    receiver
}
