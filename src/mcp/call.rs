//! A request while it is worked on: it may report progress, ask the person, and be cancelled.

use std::sync::Arc;

use serde_json::{Value, json};

use super::output::Output;
use super::questions::Questions;
use super::signal::Signal;
use super::version::Version;

/// One request.
pub(crate) struct Call<'s> {
    pub(crate) version: Version,
    pub(super) id: Value,
    pub(super) can_elicit: bool,
    /// What its progress is called, where the client wants to hear of it.
    pub(super) token: Option<Value>,
    pub(crate) signal: Arc<Signal>,
    pub(super) output: &'s Output,
    pub(super) questions: &'s Questions,
}

impl Call<'_> {
    /// Says how far it has come. `done` must grow from one time to the next.
    pub(crate) fn progress(&self, done: f64, of: Option<f64>, message: &str) {
        let Some(token) = self.token.as_ref().filter(|_| !self.signal.is_cancelled()) else { return };
        let mut params = json!({"progressToken": token, "progress": done});
        if let Some(of) = of {
            params["total"] = of.into();
        }
        if self.version >= Version::V2025_03_26 {
            params["message"] = message.into();
        }
        self.output.send(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
    }

    /// Asks the person at the client for yes or no. `None`: the client cannot ask, or nobody answered.
    pub(crate) fn confirm(&self, question: &str) -> Option<bool> {
        if !self.can_elicit || self.version.is_stateless() {
            return None;
        }
        let field = json!({"type": "boolean", "title": "Go ahead", "default": false});
        let schema = json!({"type": "object", "properties": {"confirm": field}, "required": ["confirm"]});
        let params = json!({"message": question, "requestedSchema": schema});
        let answer = self.questions.ask(self.output, &self.signal, "elicitation/create", params)?;
        let is_accepted = answer.get("action").and_then(Value::as_str) == Some("accept");
        Some(is_accepted && answer.pointer("/content/confirm").and_then(Value::as_bool) == Some(true))
    }

    pub(super) fn respond(&self, outcome: Result<Value, Value>) {
        if !self.signal.is_cancelled() {
            self.output.send(&answer(&self.id, outcome));
        }
    }
}

pub(super) fn answer(id: &Value, outcome: Result<Value, Value>) -> Value {
    match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
    }
}
