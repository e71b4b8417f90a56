use serde_json::{Map, Value};

use super::call::Call;
use super::fault::Fault;
use super::result::ToolResult;
use super::task::Task;

pub(crate) type Object = Map<String, Value>;

/// What a server offers: tools, and resources, prompts and tasks if it has any. They are JSON in the protocol's format.
pub(crate) trait Service: Send + Sync + 'static {
    /// Tells a model how to use the server.
    fn instructions(&self) -> String;
    fn tools(&self) -> Vec<Value>;
    fn call(&self, tool: &str, arguments: Object, call: &Call) -> Result<ToolResult, Fault>;

    fn resources(&self) -> Vec<Value> {
        Vec::new()
    }

    fn templates(&self) -> Vec<Value> {
        Vec::new()
    }

    /// The contents of a resource.
    fn read(&self, uri: &str) -> Result<Vec<Value>, Fault> {
        Err(Fault::no_resource(uri))
    }

    fn prompts(&self) -> Vec<Value> {
        Vec::new()
    }

    fn prompt(&self, name: &str, _arguments: &Object) -> Result<Value, Fault> {
        Err(Fault::invalid_params(format!("there is no prompt `{name}`")))
    }

    /// Whether calls may return a task instead of a result.
    fn has_tasks(&self) -> bool {
        false
    }

    fn task(&self, id: &str, _call: &Call) -> Result<Task, Fault> {
        Err(Fault::invalid_params(format!("there is no task `{id}`")))
    }

    fn cancel_task(&self, id: &str, call: &Call) -> Result<(), Fault> {
        self.task(id, call).map(drop)
    }
}
