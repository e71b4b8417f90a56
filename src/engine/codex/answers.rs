//! Answers to Codex's requests, once squad has decided.

use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

use super::items::Call;
use crate::engine::{Approval, Fact, NO_ANSWER, Reply, Request, ToolCall, ToolResult};

pub(super) type Facts = mpsc::UnboundedSender<Fact>;
/// A question's id, and where its answer comes from.
pub(super) type Question = (String, oneshot::Receiver<Option<String>>);

/// What the model reads when nobody answers its question.
const NOBODY: &str = "Nobody is available to answer. Continue on your own judgement, and state what you assumed.";

/// A request of Codex's that waits for squad.
#[derive(Debug)]
pub(super) enum Pending {
    Now(Value),
    /// A call of one of squad's own tools.
    Own {
        call: ToolCall,
        is_known: bool,
    },
    /// May Codex make this call?
    Call {
        call: Call,
        verdict: Verdict,
        /// The answer for yes and no.
        answer: fn(bool) -> Value,
    },
    Questions(Vec<Question>),
}

#[derive(Debug)]
pub(super) enum Verdict {
    Ask,
    No(ToolResult),
}

/// Asks squad whether a call may be made. The error is what its model reads in the place of a result.
pub(super) async fn allowed(call: &Call, facts: &Facts) -> Result<(), ToolResult> {
    let no = |text: String| ToolResult { ok: false, text };
    let made = call.call.clone().allowed(|fact| tell(facts, fact)).await.map_err(no)?;
    if made.arguments != call.call.arguments {
        return Err(no(format!(
            "a hook of the team changes this call; make it again with these arguments: {}",
            made.arguments
        )));
    }
    if !call.writings.is_empty() {
        let (reply, instead) = Reply::channel();
        tell(facts, Fact::Request(Request::Write(call.writings.clone(), reply)));
        if let Some(result) = instead.await.unwrap_or_else(|_| Some(no(NO_ANSWER.to_owned()))) {
            return Err(result);
        }
    }
    for (access, detail) in &call.accesses {
        let (reply, answer) = Reply::channel();
        let (id, tool) = (call.call.call.clone(), call.call.tool.clone());
        let id = Some(id).filter(|id| !id.is_empty());
        let (access, detail) = (*access, detail.clone());
        tell(facts, Fact::Request(Request::Permission { call: id, access, tool, detail, reply }));
        match answer.await {
            Ok(Approval::Allow) => {}
            Ok(Approval::Deny(reason)) => return Err(no(reason)),
            Err(_) => return Err(no(NO_ANSWER.to_owned())),
        }
    }
    Ok(())
}

/// Performs a call of one of squad's own tools. `ended` is told its result before the hooks are asked about it.
pub(super) async fn perform(call: ToolCall, facts: &Facts, ended: impl FnOnce(&ToolCall, &ToolResult)) -> ToolResult {
    let no = |text: String| ToolResult { ok: false, text };
    let call = match call.clone().allowed(|fact| tell(facts, fact)).await {
        Ok(call) => call,
        Err(reason) => {
            let refused = no(reason);
            ended(&call, &refused);
            return refused;
        }
    };
    let (reply, answer) = Reply::channel();
    tell(facts, Fact::Request(Request::Tool(call.clone(), reply)));
    let result = answer.await.unwrap_or_else(|_| no(NO_ANSWER.to_owned()));
    ended(&call, &result);
    let ok = result.ok;
    let text = after(call, result.clone(), facts).await.unwrap_or(result.text);
    ToolResult { ok, text }
}

/// Has the end of a call recorded, and asks the hooks about it: what the model is to read in the place of its result.
pub(super) async fn after(call: ToolCall, result: ToolResult, facts: &Facts) -> Option<String> {
    let (reply, instead) = Reply::channel();
    tell(facts, Fact::Request(Request::AfterTool(call, result, reply)));
    instead.await.ok().flatten()
}

/// The answer to Codex's questions.
pub(super) async fn questions(questions: Vec<Question>) -> Value {
    let mut answers = Map::new();
    for (id, answer) in questions {
        let answer = answer.await.ok().flatten().unwrap_or_else(|| NOBODY.to_owned());
        answers.insert(id, json!({ "answers": [answer] }));
    }
    json!({ "answers": answers })
}

/// The answer to a call of one of squad's own tools.
pub(super) fn own_result(ToolResult { ok, text }: ToolResult) -> Value {
    json!({ "success": ok, "contentItems": [{ "type": "inputText", "text": text }] })
}

fn tell(facts: &Facts, fact: Fact) {
    // This fails if the session was closed.
    let _ = facts.send(fact);
}
