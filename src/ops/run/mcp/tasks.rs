//! Runs as MCP tasks. The state is in the repository, so any squad process can answer for a task.

use super::McpServer;
use crate::error::Failure;
use crate::mcp::{Fault, Task, TaskState, ToolResult};
use crate::model::RunId;
use crate::ops::Project;
use crate::ops::run::cancel::cancel;
use crate::ops::run::members::{self, RunResult};

impl McpServer {
    /// The result of a call that started a run, for clients that use tasks.
    pub(super) fn as_task(&self, project: &Project, run: &RunId) -> Result<ToolResult, Failure> {
        match RunResult::read(project, run)? {
            Some(result) => Ok(self.task_of(project, &result).into_tool_result()),
            None => Ok(ToolResult::error(&format!("there is no run `{run}`"))),
        }
    }

    pub(super) fn run_task(&self, id: &str) -> Result<Task, Fault> {
        let (project, result) = self.known(id)?;
        Ok(self.task_of(&project, &result))
    }

    /// Asks the run to cancel. The task's status shows when it has ended.
    pub(super) fn cancel_run_task(&self, id: &str) -> Result<(), Fault> {
        let (project, result) = self.known(id)?;
        if members::is_live(&project, &result.run) {
            cancel(&self.env, &self.directory, result.run.as_str(), None)
                .map_err(|failure| Fault::internal(failure.message))?;
        }
        Ok(())
    }

    fn known(&self, id: &str) -> Result<(Project, RunResult), Fault> {
        let nothing = || Fault::invalid_params(format!("there is no task {id:?}"));
        let run = RunId::parse(id).ok_or_else(nothing)?;
        let project = self.project().map_err(|failure| Fault::internal(failure.message))?;
        let result = RunResult::read(&project, &run).map_err(|failure| Fault::internal(failure.message))?;
        Ok((project, result.ok_or_else(nothing)?))
    }

    fn task_of(&self, project: &Project, result: &RunResult) -> Task {
        let state = match result.status.as_str() {
            "running" => TaskState::Working(self.said(project, &result.run)),
            "cancelled" => TaskState::Cancelled,
            "lost" | "unknown" => TaskState::Failed("the process of this run is gone".to_owned()),
            _ => TaskState::Done(Box::new(self.reply(project, result))),
        };
        let (created, updated) = (result.started.to_string(), result.changed.to_string());
        Task { id: result.run.to_string(), created, updated, state }
    }
}
