//! Calls that go on by themselves, for clients that ask about them later. What a task is at is the service's to know.

use rmcp::model::{
    CallToolResponse, CreateTaskResult, DetailedTask, ErrorData, GetTaskResult, JsonObject, TaskPayload, TaskStatus,
};
use serde::Serialize;

use super::result::ToolResult;

/// How often a client is to ask, in milliseconds.
const POLL: u64 = 2000;

pub(crate) struct Task {
    pub(crate) id: String,
    /// When it began, and when something was last heard of it, as RFC 3339 has it.
    pub(crate) begun: String,
    pub(crate) changed: String,
    pub(crate) state: TaskState,
}

pub(crate) enum TaskState {
    /// With how far it has come.
    Working(String),
    Done(Box<ToolResult>),
    Failed(String),
    Cancelled,
}

impl Task {
    /// What a call gives instead of its result. The task has to be there already.
    pub(crate) fn instead_of_result(self) -> ToolResult {
        ToolResult::instead(CreateTaskResult::new(self.detailed().task))
    }

    pub(super) fn into_result(self) -> GetTaskResult {
        GetTaskResult::new(self.detailed())
    }

    fn detailed(self) -> DetailedTask {
        let Self { id, begun, changed, state } = self;
        let task = rmcp::model::Task::new(id, TaskStatus::Working, begun, changed).with_poll_interval_ms(POLL);
        match state {
            TaskState::Working(message) => DetailedTask::new(task.with_status_message(message), TaskPayload::Working),
            TaskState::Cancelled => DetailedTask::new(task, TaskPayload::Cancelled),
            TaskState::Failed(reason) => failed(task, &ErrorData::internal_error(reason, None)),
            TaskState::Done(result) => match result.into_inner() {
                CallToolResponse::Complete(result) => {
                    DetailedTask::new(task, TaskPayload::Completed { result: object(&result) })
                }
                _ => failed(task, &ErrorData::internal_error("it has no result", None)),
            },
        }
    }
}

fn failed(task: rmcp::model::Task, error: &ErrorData) -> DetailedTask {
    DetailedTask::new(task, TaskPayload::Failed { error: object(error) })
}

fn object(value: &impl Serialize) -> JsonObject {
    serde_json::to_value(value).ok().and_then(|value| value.as_object().cloned()).unwrap_or_default()
}
