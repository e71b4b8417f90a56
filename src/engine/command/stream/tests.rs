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
        "usage 200 20 4 3 0",
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
    assert_eq!(facts, ["start b bash: ls", "end b bash ok: a", "message Done.", "usage 5 1 2 0 0"]);
    assert_eq!(state.chat.as_deref(), Some("ses_1"));
}

#[test]
fn invalid_ids_and_lines_are_ignored() {
    let (_, state) = parse(StreamKind::Codex, r#"{"type":"thread.started","thread_id":"--yolo"}"#);
    assert_eq!(state.chat, None);
    let (facts, _) = parse(StreamKind::Claude, "\u{0}\nnull\n[]\n{\"type\":1}\n{\"type\":\"assistant\"}");
    assert!(facts.is_empty());
}
