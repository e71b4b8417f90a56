use super::*;
use crate::engine::copilot::testing::show;

fn parse(kind: StreamKind, lines: &str) -> (Vec<String>, StreamState) {
    let mut parser = StreamParser::new(kind);
    let mut facts: Vec<Fact> = lines.lines().flat_map(|line| parser.parse(line)).collect();
    facts.extend(parser.finish());
    (facts.iter().map(show).collect(), parser.state)
}

#[test]
fn claude_code() {
    let (facts, state) = parse(
        StreamKind::Claude,
        r#"Update available!
{"type":"system","subtype":"hook_started","session_id":"x"}
{"type":"system","subtype":"init","session_id":"7fda4967-f6ae","tools":[]}
{"type":"assistant","message":{"content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}],"usage":{"input_tokens":100}}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"denied"}],"is_error":true}]}}
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t2","name":"Write","input":{"file_path":"a.txt","content":"one\n"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t2","content":"ok"}]}}
{"type":"assistant","message":{"content":[{"type":"text","text":"Done."}]}}
{"type":"result","is_error":false,"result":"Done.","session_id":"7fda4967-f6ae","total_cost_usd":0.5,"usage":{"input_tokens":200,"cache_creation_input_tokens":3,"cache_read_input_tokens":4,"output_tokens":20},"permission_denials":[{"tool_name":"Bash","tool_input":{"command":"ls"}}]}"#,
    );
    let expected = [
        "message I look.",
        "start t1 Bash: ls",
        "end t1  failed: denied",
        "start t2 Write: a.txt",
        "end t2  ok: ok",
        "message Done.",
        "denied Bash: ls",
        "usage 207 20 4 3 0",
    ];
    assert_eq!(facts, expected);
    assert_eq!((state.chat.as_deref(), state.error, state.text.as_str()), (Some("7fda4967-f6ae"), None, "Done."));
    let failed = r#"{"type":"result","is_error":true,"subtype":"error_during_execution","result":"API Error: 400","session_id":"other"}"#;
    let (facts, state) = parse(StreamKind::Claude, failed);
    assert_eq!((facts, state.error.as_deref(), state.chat), (vec![], Some("API Error: 400"), None));
}

#[test]
fn cursor() {
    let (facts, _) = parse(
        StreamKind::Claude,
        r#"{"type":"tool_call","subtype":"started","call_id":"c","tool_call":{"readToolCall":{"args":{"path":"a"}}}}
{"type":"tool_call","subtype":"completed","call_id":"c","tool_call":{"readToolCall":{"args":{"path":"a"},"result":{"success":{"content":"x"}}}}}
{"type":"result","is_error":false,"result":"Read."}"#,
    );
    assert_eq!(facts[0], "start c read: a");
    assert!(facts[1].starts_with("end c read ok"), "{facts:?}");
    assert_eq!(facts[2], "message Read.");
}

#[test]
fn codex() {
    let (facts, state) = parse(
        StreamKind::Codex,
        r#"{"type":"thread.started","thread_id":"01a2-7"}
{"type":"item.completed","item":{"id":"i0","type":"error","message":"no metadata"}}
{"type":"turn.started"}
{"type":"item.started","item":{"id":"i1","type":"command_execution","command":"ls","aggregated_output":"","exit_code":null,"status":"in_progress"}}
{"type":"item.completed","item":{"id":"i1","type":"command_execution","command":"ls","aggregated_output":"a\n","exit_code":3,"status":"failed"}}
{"type":"item.completed","item":{"id":"i2","type":"file_change","changes":[{"path":"a.rs","kind":"add"}],"status":"completed"}}
{"type":"item.completed","item":{"id":"i3","type":"agent_message","text":"Done."}}
{"type":"turn.completed","usage":{"input_tokens":200,"cached_input_tokens":50,"output_tokens":20}}"#,
    );
    let expected = [
        "warning no metadata",
        "start i1 command_execution: ls",
        "end i1 command_execution failed (3): a\n",
        "start i2 file_change: a.rs",
        "end i2 file_change ok: ",
        "message Done.",
    ];
    assert_eq!(facts, expected);
    assert_eq!((state.chat.as_deref(), state.total_usage.map(|usage| usage.input_tokens)), (Some("01a2-7"), Some(200)));
    let (_, state) = parse(StreamKind::Codex, r#"{"type":"turn.failed","error":{"message":"400"}}"#);
    assert_eq!(state.error.as_deref(), Some("400"));
}

#[test]
fn gemini_and_opencode() {
    let (facts, state) = parse(
        StreamKind::Gemini,
        r#"{"type":"init","session_id":"s-1"}
{"type":"message","role":"user","content":"do"}
{"type":"message","role":"assistant","content":"Do","delta":true}
{"type":"message","role":"assistant","content":"ne.","delta":true}
{"type":"tool_use","tool_name":"read_file","tool_id":"r","parameters":{"absolute_path":"/a"}}
{"type":"tool_result","tool_id":"r","status":"error","error":{"message":"no"}}
{"type":"result","status":"success","stats":{"input_tokens":7,"output_tokens":2}}"#,
    );
    let expected =
        ["delta Do", "delta ne.", "message Done.", "start r read_file: /a", "end r  failed: no", "usage 7 2 0 0 0"];
    assert_eq!((facts.as_slice(), state.chat.as_deref()), (&expected.map(str::to_owned)[..], Some("s-1")));
    let (facts, state) = parse(
        StreamKind::Opencode,
        r#"{"type":"tool_use","sessionID":"ses_1","part":{"tool":"bash","callID":"b","state":{"status":"completed","input":{"command":"ls"},"output":"a"}}}
{"type":"text","sessionID":"ses_1","part":{"text":"Done."}}
{"type":"step_finish","sessionID":"ses_1","part":{"cost":0.1,"tokens":{"input":5,"output":1,"reasoning":0,"cache":{"read":2,"write":0}}}}"#,
    );
    assert_eq!(facts, ["start b bash: ls", "end b bash ok: a", "message Done.", "usage 7 1 2 0 0"]);
    assert_eq!(state.chat.as_deref(), Some("ses_1"));
}

#[test]
fn claude_reports_a_refusal_up_to_three_times_and_it_counts_once() {
    let (facts, _) = parse(
        StreamKind::Claude,
        r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"touch a"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"<tool_use_error>Error: No such tool available: Bash. Bash is disabled for this session.</tool_use_error>","is_error":true}]}}
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t2","name":"Write","input":{"file_path":"a","content":"x"}}]}}
{"type":"system","subtype":"permission_denied","tool_name":"Write","tool_use_id":"t2","message":"you haven't granted it yet"}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t2","content":"you haven't granted it yet","is_error":true}]}}
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t3","name":"Bash","input":{"command":"false"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t3","content":"Exit code 1\nno","is_error":true}]}}
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t4","name":"Imagined","input":{}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t4","content":"Error: No such tool available: Imagined","is_error":true}]}}
{"type":"result","is_error":false,"result":"Done.","permission_denials":[{"tool_name":"Write","tool_use_id":"t2","tool_input":{"file_path":"a"}},{"tool_name":"Read","tool_use_id":"t5","tool_input":{"file_path":"/b"}}]}"#,
    );
    let denied: Vec<&String> = facts.iter().filter(|fact| fact.starts_with("denied")).collect();
    assert_eq!(denied, ["denied Bash: touch a", "denied Write: a", "denied Read: /b"]);
    let at = |start: &str| facts.iter().position(|fact| fact.starts_with(start));
    assert!(at("denied Write") < at("end t2"), "the refusal comes before the failure it explains: {facts:?}");
    assert!(facts.contains(&"end t3  failed (1): Exit code 1\nno".to_owned()), "{facts:?}");
}

#[test]
fn refusals_of_the_others() {
    let denied = |kind, lines: &str| -> Vec<String> {
        parse(kind, lines).0.into_iter().filter(|fact| fact.starts_with("denied")).collect()
    };
    let cursor = r#"{"type":"tool_call","subtype":"started","call_id":"c","tool_call":{"shellToolCall":{"args":{"command":"touch a"}}}}
{"type":"tool_call","subtype":"completed","call_id":"c","tool_call":{"shellToolCall":{"args":{"command":"touch a"},"result":{"rejected":{"reason":"no"}}}}}"#;
    assert_eq!(denied(StreamKind::Claude, cursor), ["denied shell: touch a"]);
    let gemini = r#"{"type":"tool_use","tool_name":"run_shell_command","tool_id":"a","parameters":{"command":"touch a"}}
{"type":"tool_result","tool_id":"a","status":"error","output":"","error":{"type":"tool_not_registered","message":"Tool \"run_shell_command\" not found."}}
{"type":"tool_use","tool_name":"write_file","tool_id":"b","parameters":{"file_path":"/p/b","content":"x"}}
{"type":"tool_result","tool_id":"b","status":"error","error":{"type":"invalid_tool_params","message":"Access denied: plan path (/p/b) must be within the plans directory"}}
{"type":"tool_use","tool_name":"web_fetch","tool_id":"c","parameters":{"prompt":"x"}}
{"type":"tool_result","tool_id":"c","status":"error","error":{"type":"policy_violation","message":"Tool execution denied by policy."}}
{"type":"tool_use","tool_name":"replace","tool_id":"d","parameters":{"file_path":"/p/b"}}
{"type":"tool_result","tool_id":"d","status":"error","error":{"type":"invalid_tool_params","message":"params must have required property 'instruction'"}}
{"type":"tool_use","tool_name":"imagined","tool_id":"e","parameters":{}}
{"type":"tool_result","tool_id":"e","status":"error","error":{"type":"tool_not_registered","message":"Tool \"imagined\" not found."}}"#;
    let expected = ["denied run_shell_command: touch a", "denied write_file: /p/b", "denied web_fetch: x"];
    assert_eq!(denied(StreamKind::Gemini, gemini), expected);
    let opencode = r#"{"type":"tool_use","part":{"tool":"bash","callID":"a","state":{"status":"error","input":{"command":"touch a"},"error":"Model tried to call unavailable tool 'invalid'. Available tools: glob."}}}
{"type":"tool_use","part":{"tool":"invalid","callID":"b","state":{"status":"completed","input":{"tool":"write","error":"Model tried to call unavailable tool 'write'."},"output":"The arguments are invalid"}}}
{"type":"tool_use","part":{"tool":"read","callID":"c","state":{"status":"error","input":{"filePath":"/etc/x"},"error":"The user has specified a rule which prevents you from using this specific tool call."}}}
{"type":"tool_use","part":{"tool":"write","callID":"d","state":{"status":"error","input":{"filePath":"/y"},"error":"The user rejected permission to use this specific tool call."}}}
{"type":"tool_use","part":{"tool":"edit","callID":"e","state":{"status":"error","input":{"filePath":"z"},"error":"oldString not found"}}}
{"type":"tool_use","part":{"tool":"imagined","callID":"f","state":{"status":"error","input":{},"error":"Model tried to call unavailable tool 'invalid'."}}}"#;
    let facts = denied(StreamKind::Opencode, opencode);
    assert_eq!((facts.len(), facts[0].as_str()), (4, "denied bash: touch a"), "{facts:?}");
    assert!(facts[1].starts_with("denied write: "), "{facts:?}");
    assert_eq!(facts[2..], ["denied read: /etc/x", "denied write: /y"]);
}

/// Each status of a call × each kind of call.
#[test]
fn what_codex_declined_was_not_done() {
    for (status, end) in [("completed", "ok"), ("failed", "failed"), ("declined", "failed")] {
        for kind in ["command_execution", "file_change", "mcp_tool_call"] {
            let line = format!(
                r#"{{"type":"item.completed","item":{{"id":"i","type":"{kind}","status":"{status}","changes":[]}}}}"#
            );
            let (facts, _) = parse(StreamKind::Codex, &line);
            let ended = facts.last().expect("an end");
            assert!(ended.starts_with("end i ") && ended.contains(&format!(" {end}:")), "{status} {kind}: {ended}");
        }
    }
}

#[test]
fn retries_are_warnings_and_no_errors_once_the_turn_has_completed() {
    let (facts, _) = parse(
        StreamKind::Claude,
        r#"{"type":"system","subtype":"api_retry","attempt":3,"max_retries":10,"retry_delay_ms":18560,"error_status":529,"error":"overloaded"}
{"type":"system","subtype":"api_retry","attempt":4,"max_retries":10,"retry_delay_ms":200,"error_status":null,"error":"unknown"}"#,
    );
    let expected = [
        "warning the model's service answered 529; retry 3 of 10 in 18.5 s",
        "warning the model's service failed (unknown); retry 4 of 10 in 0.2 s",
    ];
    assert_eq!(facts, expected);
    let reconnecting = r#"{"type":"error","message":"Reconnecting... 1/5 (status 529)"}"#;
    let (facts, state) = parse(StreamKind::Codex, reconnecting);
    assert_eq!((facts, state.error), (vec!["warning Reconnecting... 1/5 (status 529)".to_owned()], None));
    let error = r#"{"type":"error","message":"stream cut"}"#;
    let (_, state) = parse(StreamKind::Codex, &[error, r#"{"type":"turn.completed","usage":{}}"#].join("\n"));
    assert_eq!(state.error, None, "what it has recovered from is no failure");
    assert_eq!(parse(StreamKind::Codex, error).1.error.as_deref(), Some("stream cut"));
}

#[test]
fn invalid_ids_and_lines_are_ignored() {
    let (_, state) = parse(StreamKind::Codex, r#"{"type":"thread.started","thread_id":"--yolo"}"#);
    assert_eq!(state.chat, None);
    let (facts, _) = parse(StreamKind::Claude, "\u{0}\nnull\n[]\n{\"type\":1}\n{\"type\":\"assistant\"}");
    assert!(facts.is_empty());
}
