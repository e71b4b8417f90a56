//! Turns in which something goes wrong, on a scripted CLI, message by message.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream};

use super::registry::Registry;
use super::testing::{READ, answer, event, opening, options, show};
use super::wire::OpenParams;
use super::*;
use crate::engine::connection::{Connection, Incoming};
use crate::engine::dialect::Dialect;
use crate::engine::{AdapterSession, Approval, Fact, Request, ToolResult};
use crate::model::{Tier, ToolChoice};

const SESSION: &str = "squad-ada-1";

/// The CLI's end of a connection.
struct Cli {
    input: DuplexStream,
    output: BufReader<DuplexStream>,
}

impl Cli {
    /// Connected to a registry with one open session; also returns the session's facts.
    fn connected() -> (Self, Arc<Registry>, tokio::sync::mpsc::UnboundedReceiver<Fact>) {
        let registry = Arc::new(Registry::new(Duration::from_secs(60)));
        let opening = opening(SESSION, ToolChoice::All);
        let facts = registry.add(OpenParams::new(&opening, None), ["squad_status".into()]).expect("it is new");
        let (theirs, ours) = (tokio::io::duplex(1 << 16), tokio::io::duplex(1 << 16));
        Connection::start(Dialect::Framed, theirs.0, ours.0, Arc::clone(&registry) as Arc<dyn Incoming>);
        (Self { input: ours.1, output: BufReader::new(theirs.1) }, registry, facts)
    }

    async fn send(&mut self, message: &Value) {
        let text = message.to_string();
        let frame = format!("Content-Length: {}\r\n\r\n{text}", text.len());
        self.input.write_all(frame.as_bytes()).await.expect("the pipe is open");
    }

    async fn tells(&mut self, session: &str, kind: &str, data: Value) {
        let params = json!({ "sessionId": session, "event": { "type": kind, "data": data } });
        self.send(&json!({ "jsonrpc": "2.0", "method": "session.event", "params": params })).await;
    }

    /// The next message about the turn; answers requests to save sessions in between.
    async fn hears(&mut self) -> Value {
        loop {
            let message = self.read().await;
            if message["method"] != "sessions.save" {
                return message;
            }
            self.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": {} })).await;
        }
    }

    async fn read(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).await.expect("the pipe is open");
            match line.trim().split_once(": ") {
                Some((_, value)) => length = value.parse().expect("a length"),
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).await.expect("the pipe is open");
        serde_json::from_slice(&body).expect("JSON")
    }
}

fn permission(request: &str) -> Value {
    json!({ "requestId": request, "permissionRequest": { "kind": "shell", "fullCommandText": "rm -r ." } })
}

/// Only an explicit answer allows anything.
#[tokio::test(start_paused = true)]
async fn a_permission_is_granted_by_an_answer_alone() {
    let answers: [(Option<Approval>, &str); 3] = [
        (Some(Approval::Allow), "approve-once"),
        (Some(Approval::Deny("not today".to_owned())), "reject"),
        // The one who should answer is gone.
        (None, "reject"),
    ];
    for (approval, expected) in answers {
        let (mut cli, _registry, mut facts) = Cli::connected();
        cli.tells(SESSION, "permission.requested", permission("r1")).await;
        let Some(Fact::Request(Request::Permission { reply, detail, .. })) = facts.recv().await else {
            panic!("it asks");
        };
        assert_eq!(detail, "rm -r .");
        match approval {
            Some(approval) => reply.send(approval),
            None => drop(reply),
        }
        let heard = cli.hears().await;
        assert_eq!(heard["method"], "session.permissions.handlePendingPermissionRequest");
        assert_eq!(
            (&heard["params"]["requestId"], &heard["params"]["result"]["kind"]),
            (&"r1".into(), &expected.into())
        );
    }
}

/// One edit of several files is allowed when all of them are.
#[tokio::test(start_paused = true)]
async fn several_files_are_allowed_together_or_not_at_all() {
    let edits = json!([{ "before": { "path": "one" }, "after": { "path": "two" } }]);
    for (answers, expected) in [([true, true], "approve-once"), ([true, false], "reject"), ([false, true], "reject")] {
        let (mut cli, _registry, mut facts) = Cli::connected();
        let wanted = json!({ "kind": "write", "fileName": "one", "fileEdits": edits });
        cli.tells(SESSION, "permission.requested", json!({ "requestId": "r1", "permissionRequest": wanted })).await;
        for allowed in answers {
            let Some(Fact::Request(Request::Permission { reply, .. })) = facts.recv().await else { panic!("it asks") };
            // No answer is a refusal too.
            if allowed {
                reply.send(Approval::Allow);
            }
        }
        assert_eq!(cli.hears().await["params"]["result"]["kind"], expected, "{answers:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_allows_anything_for_a_session_that_is_gone() {
    let (mut cli, registry, facts) = Cli::connected();
    registry.remove(SESSION);
    drop(facts);
    cli.tells(SESSION, "permission.requested", permission("r2")).await;
    assert_eq!(cli.hears().await["params"]["result"]["kind"], "reject");
    cli.tells(SESSION, "external_tool.requested", json!({ "requestId": "r3", "toolName": "squad_status" })).await;
    assert_eq!(cli.hears().await["params"]["result"]["resultType"], "failure");
}

#[tokio::test(start_paused = true)]
async fn a_tool_call_that_nobody_answers_has_failed() {
    for (result, expected) in [(Some(true), "success"), (Some(false), "failure"), (None, "failure")] {
        let (mut cli, _registry, mut facts) = Cli::connected();
        let call = json!({ "requestId": "r1", "toolCallId": "c1", "toolName": "squad_status", "arguments": {} });
        cli.tells(SESSION, "external_tool.requested", call).await;
        let Some(Fact::Request(Request::Tool(_, reply))) = facts.recv().await else { panic!("it asks") };
        match result {
            Some(ok) => reply.send(ToolResult { ok, text: "text".to_owned() }),
            None => drop(reply),
        }
        assert_eq!(cli.hears().await["params"]["result"]["resultType"], expected, "{result:?}");
    }
}

/// The requests up to the first prompt: connect, auth, delete, create, send.
fn opened() -> String {
    let results =
        [r#"{"protocolVersion":3,"version":"1.0.102"}"#, r#"{"isAuthenticated":true}"#, "{}", "{}", "{}", "{}"];
    let lines: Vec<String> = (1..).zip(results).map(|(id, result)| format!("{READ}; {}", answer(id, result))).collect();
    lines.join("\n")
}

/// A session in the middle of a turn, with this script as the CLI.
async fn working(folder: &tempfile::TempDir, script: &str) -> (Copilot, Session) {
    let engine = Copilot::start(options(folder, script)).await.expect("it starts");
    let mut session = engine.open(opening(SESSION, ToolChoice::All)).await.expect("it opens");
    session.send("work", &[]).await.expect("it takes it");
    (engine, session)
}

async fn until_the_end(session: &mut Session) -> Vec<String> {
    let mut facts = Vec::new();
    loop {
        let fact = tokio::time::timeout(Duration::from_secs(120), session.next()).await;
        let Ok(fact) = fact else {
            facts.push("no end".to_owned());
            return facts;
        };
        facts.push(show(&fact));
        if matches!(fact, Fact::Idle | Fact::Interrupted(_) | Fact::Failed(_) | Fact::Lost(_)) {
            return facts;
        }
    }
}

/// The engine dies in the middle of a turn and comes back with the session: the turn is still over, since nobody knows
/// how far it got.
#[tokio::test]
async fn a_turn_in_which_the_engine_was_lost_has_failed() {
    let folder = tempfile::tempdir().expect("a folder");
    let again = folder.path().join("again");
    let resumed = [r#"{"protocolVersion":3,"version":"1.0.102"}"#, r#"{"isAuthenticated":true}"#, "{}"];
    let resumed: Vec<String> =
        (1..).zip(resumed).map(|(id, result)| format!("{READ}; {}", answer(id, result))).collect();
    let script = format!(
        "if test -e '{0}'; then\n{1}\ncat >/dev/null\nfi\ntouch '{0}'\n{2}\n{3}\necho 'out of memory' >&2\nexit 9",
        again.display(),
        resumed.join("\n"),
        opened(),
        event(SESSION, "assistant.message", &json!({ "content": "Begun." })),
    );
    let (engine, mut session) = working(&folder, &script).await;
    let facts = until_the_end(&mut session).await;
    let [begun, lost, restored, failed] = &facts[..] else { panic!("{facts:?}") };
    assert_eq!(begun, "message Begun.");
    assert!(lost.starts_with("connection lost: ") && lost.contains("out of memory"), "{facts:?}");
    assert_eq!(restored, "connection restored: 1");
    assert!(failed.starts_with("interrupted the engine was lost in the middle of the turn"), "{facts:?}");
    drop(session);
    engine.stop().await;
}

/// A server of the user's that is missing costs its tools, and no agent.
#[tokio::test]
async fn a_session_goes_on_without_a_server_that_cannot_be_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = options(&folder, &format!("{}\ncat >/dev/null", opened()));
    let server = |command: &str, script: &str| {
        let args = vec!["-c".to_owned(), script.to_owned()];
        McpServer::Local { command: command.to_owned(), args, env: Default::default(), offer: Default::default() }
    };
    options.mcp_servers = [
        ("tides".to_owned(), server("sh", r#"read line; echo '{"id":1,"result":{}}'; cat"#)),
        ("gone".to_owned(), server("no-such-server", "")),
    ]
    .into();
    let engine = Copilot::start(options).await.expect("it starts");
    let (usable, unusable) = engine.server.mcp_servers(&opening(SESSION, ToolChoice::All).spec.agent).await;
    assert_eq!(usable.keys().collect::<Vec<_>>(), ["tides"]);
    assert!(unusable["gone"].contains("no-such-server"), "{unusable:?}");
    for (tier, warns) in [(Tier::Standard, true), (Tier::Full, true), (Tier::Lightweight, false)] {
        let mut opening = opening(SESSION, ToolChoice::All);
        opening.spec.tier = tier;
        assert_eq!(OpenParams::has_servers(&opening), warns, "{tier:?}");
    }
    let mut session = engine.open(opening(SESSION, ToolChoice::All)).await.expect("it opens");
    let warning = show(&session.next().await);
    assert!(warning.starts_with("warning the MCP server `gone` cannot be used: "), "{warning}");
    drop(session);
    engine.stop().await;
}

/// An engine that does not come back stays lost.
#[tokio::test]
async fn an_engine_that_does_not_come_back_is_lost_for_good() {
    let folder = tempfile::tempdir().expect("a folder");
    let again = folder.path().join("again");
    let script = format!("test -e '{0}' && exit 7\ntouch '{0}'\n{1}\nexit 9", again.display(), opened());
    let (engine, mut session) = working(&folder, &script).await;
    let facts = until_the_end(&mut session).await;
    assert!(facts.iter().any(|fact| fact.starts_with("connection lost")), "{facts:?}");
    let last = facts.last().expect("an end");
    assert!(last.starts_with("lost the engine is gone for good"), "{facts:?}");
    assert_eq!(show(&session.next().await), *last, "again and again");
    drop(session);
    engine.stop().await;
}

/// Messages and usage up to the stop are reported, whether or not the CLI ends the turn by itself.
#[tokio::test]
async fn a_stopped_turn_reports_everything_until_its_end() {
    let usage = event(SESSION, "assistant.usage", &json!({ "inputTokens": 70, "outputTokens": 7 }));
    let message = event(SESSION, "assistant.message", &json!({ "content": "Half of it is done." }));
    let idle = event(SESSION, "session.idle", &json!({ "aborted": true }));
    for (ends, idle) in [(true, idle.as_str()), (false, ":")] {
        let folder = tempfile::tempdir().expect("a folder");
        let stopping = format!("{READ}\n{usage}\n{message}\n{idle}\n{}", answer(7, "{}"));
        let mut options = options(&folder, &format!("{}\n{stopping}\ncat >/dev/null", opened()));
        if !ends {
            options.timeouts.abort = Duration::from_millis(700);
        }
        let engine = Copilot::start(options).await.expect("it starts");
        let mut session = engine.open(opening(SESSION, ToolChoice::All)).await.expect("it opens");
        session.send("work", &[]).await.expect("it takes it");
        session.abort().await;
        let facts = until_the_end(&mut session).await;
        assert!(facts[0].starts_with("usage 70 7"), "{ends}: {facts:?}");
        assert_eq!(facts[1..], ["message Half of it is done.", "failed the turn was aborted"], "{ends}");
        drop(session);
        engine.stop().await;
    }
}
