//! Tasks: calls that run in the background while the client polls them. The service keeps their state.

use rmcp::model::{
    CallToolResponse, CreateTaskResult, DetailedTask, ErrorData, GetTaskResult, JsonObject, TaskPayload, TaskStatus,
};
use serde::Serialize;

use super::result::ToolResult;

/// The polling interval that clients are asked to use.
const POLL_INTERVAL_MS: u64 = 2000;

pub(crate) struct Task {
    pub(crate) id: String,
    /// Times are in RFC 3339.
    pub(crate) created: String,
    pub(crate) updated: String,
    pub(crate) state: TaskState,
}

pub(crate) enum TaskState {
    /// With a progress message.
    Working(String),
    Done(Box<ToolResult>),
    Failed(String),
    Cancelled,
}

impl Task {
    /// What a call returns instead of its result. The client may poll at once, so the task must exist.
    pub(crate) fn into_tool_result(self) -> ToolResult {
        ToolResult::from_response(CreateTaskResult::new(self.detailed().task))
    }

    pub(super) fn into_result(self) -> GetTaskResult {
        GetTaskResult::new(self.detailed())
    }

    fn detailed(self) -> DetailedTask {
        let Self { id, created, updated, state } = self;
        let task =
            rmcp::model::Task::new(id, TaskStatus::Working, created, updated).with_poll_interval_ms(POLL_INTERVAL_MS);
        match state {
            TaskState::Working(message) => DetailedTask::new(task.with_status_message(message), TaskPayload::Working),
            TaskState::Cancelled => DetailedTask::new(task, TaskPayload::Cancelled),
            TaskState::Failed(reason) => failed(task, &ErrorData::internal_error(reason, None)),
            TaskState::Done(result) => match result.into_inner() {
                CallToolResponse::Complete(result) => {
                    DetailedTask::new(task, TaskPayload::Completed { result: object(&result) })
                }
                _ => failed(task, &ErrorData::internal_error("the call has no result", None)),
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
