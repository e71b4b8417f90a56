//! Helpers shared by the adapter's tests.

use serde_json::json;
#[cfg(unix)]
use std::time::Duration;

#[cfg(unix)]
use super::{Home, Options, Timeouts};
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
            team: "# Team".into(),
            items: Vec::new(),
            context: "# Decisions".into(),
            model: ModelChoice::new("fake-1", ModelLayer::Default),
            engine: None,
            tools,
            denied_tools: Vec::new(),
            compaction_threshold: Some(0.8),
            effort: None,
            compiled_hash: "00".into(),
        },
        tools: vec![ToolSpec {
            name: "squad_status".into(),
            description: "Who does what.".into(),
            parameters: json!({ "type": "object" }),
        }],
        directory: "/project".into(),
        resume: false,
        asks: true,
        form: None,
        caller: None,
    }
}

/// Options that start a shell script as the CLI. The deadlines suit a busy machine; a test shortens the ones that
/// should pass.
#[cfg(unix)]
pub(crate) fn options(folder: &tempfile::TempDir, script: &str) -> Options {
    let program = folder.path().join("copilot");
    crate::script::write(&program, &format!("#!/bin/sh\n{script}\n"));
    Options {
        program: Some(program),
        squad: None,
        variables: [("PATH".into(), "/usr/bin:/bin".into())].into(),
        directory: folder.path().to_owned(),
        home: Home::At(folder.path().join("home")),
        provider: None,
        mcp_servers: Default::default(),
        sandbox: None,
        run: format!("unruly-{}", folder.path().display()),
        timeouts: Timeouts {
            grace: Duration::from_millis(400),
            backoff: Duration::from_millis(10),
            offer: Duration::from_secs(60),
            ..Timeouts::default()
        },
    }
}

/// A script line that answers the request with this number.
#[cfg(unix)]
pub(crate) fn answer(id: u64, result: &str) -> String {
    let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    frame(&message)
}

/// A script line that sends an event.
#[cfg(unix)]
pub(crate) fn event(session: &str, kind: &str, data: &serde_json::Value) -> String {
    let event = json!({ "type": kind, "id": "e", "timestamp": "2026-01-05T09:00:00Z", "data": data });
    let params = json!({ "sessionId": session, "event": event });
    frame(&json!({ "jsonrpc": "2.0", "method": "session.event", "params": params }).to_string())
}

#[cfg(unix)]
fn frame(message: &str) -> String {
    format!("printf 'Content-Length: {}\\r\\n\\r\\n%s' '{message}'", message.len())
}

/// A script line that reads a request: the header ends with an empty line; the body has no line end, and is read with
/// the next header.
#[cfg(unix)]
pub(crate) const READ: &str = "read head; read empty";

/// A fact as one line.
pub(crate) fn show(fact: &Fact) -> String {
    match fact {
        Fact::Alive => "alive".to_owned(),
        Fact::MessageDelta(text) => format!("delta {text}"),
        Fact::Message(text) => format!("message {text}"),
        Fact::ToolStarted { call, tool, detail, .. } => format!("start {call} {tool}: {detail}"),
        Fact::ToolCompleted { call, tool, ok, exit_code, detail } => {
            let code = exit_code.map(|code| format!(" ({code})")).unwrap_or_default();
            format!("end {call} {tool} {}{code}: {detail}", if *ok { "ok" } else { "failed" })
        }
        Fact::Request(Request::Tool(call, _)) => format!("call {} {}", call.tool, call.arguments),
        Fact::Request(Request::Write(files, _)) => {
            let files: Vec<String> = files.iter().map(|file| format!("{} {:?}", file.path, file.text)).collect();
            format!("write {}", files.join(", "))
        }
        Fact::Request(Request::Host(place, _)) => format!("may reach {place}"),
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
        Fact::Request(Request::BeforeTool(call, _)) => format!("before {} {}", call.tool, call.arguments),
        Fact::Request(Request::AfterTool(..)) => "durable".to_owned(),
        Fact::Request(Request::Unasked(_)) => "may it act unasked".to_owned(),
        Fact::Governed { engine, by, .. } => format!("{engine} governed by {by}"),
        Fact::Exited(exited) => format!("exit {:?} {:?}", exited.exit_code, exited.signal),
        Fact::Denied { tool, detail, .. } => format!("denied {tool}: {detail}"),
        Fact::Warning(text) => format!("warning {text}"),
        Fact::Shortened { session, is_summed_up, tokens_before, tokens_after } => {
            let how = if *is_summed_up { "compacted" } else { "truncated" };
            format!("{session} {how} {tokens_before} -> {tokens_after:?}")
        }
        Fact::Prepared { command, exit_code, .. } => format!("prepared by {command}: {exit_code:?}"),
        Fact::Reached(hosts) => format!("reached {hosts:?}"),
        Fact::ConnectionLost(reason) => format!("connection lost: {reason}"),
        Fact::ConnectionRestored { attempts } => format!("connection restored: {attempts}"),
        Fact::Idle => "idle".to_owned(),
        Fact::Interrupted(reason) => format!("interrupted {reason}"),
        Fact::NoQuota { reason, .. } => format!("no quota: {reason}"),
        Fact::Failed(reason) => format!("failed {reason}"),
        Fact::Lost(reason) => format!("lost {reason}"),
        Fact::Gone(reason) => format!("gone {reason}"),
        Fact::NoLogin { reason, .. } => format!("no login: {reason}"),
    }
}
