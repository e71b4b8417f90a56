//! What the adapter's tests share.

use serde_json::json;

use crate::engine::{Fact, Opening, Request, ToolSpec};
use crate::model::{ModelChoice, ModelLayer, SessionSpec, Slug, Tier, ToolChoice};

pub(crate) fn opening(session: &str, tools: ToolChoice) -> Opening {
    Opening {
        session: session.to_owned(),
        spec: SessionSpec {
            agent: Slug::fold("ada").expect("letters"),
            name: "Ada".into(),
            role: "Lead".into(),
            tier: Tier::Standard,
            prompt: "You are Ada.".into(),
            context: "# Team".into(),
            model: ModelChoice::new("fake-1", ModelLayer::Default),
            tools,
            compaction_threshold: Some(0.8),
            compiled_hash: "00".into(),
        },
        tools: vec![ToolSpec {
            name: "squad_status",
            description: "Who does what.",
            parameters: json!({ "type": "object" }),
        }],
        directory: "/project".into(),
        resume: false,
    }
}

/// A fact in a line.
pub(crate) fn show(fact: &Fact) -> String {
    match fact {
        Fact::MessageDelta(text) => format!("delta {text}"),
        Fact::Message(text) => format!("message {text}"),
        Fact::ToolStarted { call, tool, detail, .. } => format!("start {call} {tool}: {detail}"),
        Fact::ToolCompleted { call, tool, ok, exit_code, detail } => {
            let code = exit_code.map(|code| format!(" ({code})")).unwrap_or_default();
            format!("end {call} {tool} {}{code}: {detail}", if *ok { "ok" } else { "failed" })
        }
        Fact::Request(Request::Tool(call, _)) => format!("call {} {}", call.tool, call.arguments),
        Fact::Request(Request::Permission { access, tool, detail, .. }) => format!("may {access:?} {tool}: {detail}"),
        Fact::Request(Request::Question { text, choices, .. }) => format!("question {text} {choices:?}"),
        Fact::Usage(usage) => {
            let billed: Vec<String> =
                usage.billed.iter().map(|billed| format!(", {} {}", billed.amount, billed.unit)).collect();
            format!(
                "usage {} {} {} {} {}{}",
                usage.input_tokens,
                usage.output_tokens,
                usage.cache_read_tokens,
                usage.cache_write_tokens,
                usage.reasoning_tokens,
                billed.concat()
            )
        }
        Fact::Denied { tool, detail, .. } => format!("denied {tool}: {detail}"),
        Fact::Warning(text) => format!("warning {text}"),
        Fact::ConnectionLost(reason) => format!("connection lost: {reason}"),
        Fact::ConnectionRestored { attempts } => format!("connection restored: {attempts}"),
        Fact::Idle => "idle".to_owned(),
        Fact::Failed(reason) => format!("failed {reason}"),
        Fact::Lost(reason) => format!("lost {reason}"),
    }
}
