//! A defect in squad's own code, played by the script: it costs the agent at whose work it came, and nothing else.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Output, TestRepo};

fn only(output: &Output, kind: &str) -> Value {
    let found: Vec<Value> = TestRepo::events(output).into_iter().filter(|event| event["type"] == kind).collect();
    assert_eq!(found.len(), 1, "{kind}: {output}");
    found[0].clone()
}

fn ended(output: &Output, agents: &Value) {
    let last = TestRepo::events(output).pop().expect("an event");
    assert_eq!((&last["type"], &last["status"], &last["agents"]), (&json!("run.completed"), &json!("failed"), agents));
    assert_eq!(output.code, 1, "{output}");
}

#[test]
fn it_fails_one_agent_and_the_others_results_are_kept() {
    let script = r#"
[[turn]]
agent = "ada"
steps = [{ wait = "1s" }, { tool = "squad_log_decision", args = { title = "Errors are JSON" } }, { say = "Here it is." }]
[[turn]]
agent = "bob"
steps = [{ say = "I begin." }, { wait = "500ms" }, { panic = "index out of bounds" }]
[[turn]]
agent = "rex"
steps = [{ wait = "2s" }, { say = "And I am done." }]
[[turn]]
agent = "coordinator"
steps = [{ say = "Two are done." }]
"#;
    let repo = TestRepo::with_small_team();
    let output = repo.rehearse(script, &["--json", "-a", "ada", "-a", "bob", "-a", "rex", "Build it"]);
    let agents = json!({ "ada": "completed", "bob": "failed", "coordinator": "completed", "rex": "completed" });
    ended(&output, &agents);
    let failed = only(&output, "agent.failed");
    let reason = "squad itself failed; this is a bug: index out of bounds";
    assert_eq!((&failed["agent"], &failed["reason"]), (&json!("bob"), &json!(reason)), "{output}");
    assert_eq!((&failed["text"], &failed["usage"]["turns"]), (&json!("I begin."), &json!(1)), "what it had is kept");
    assert_eq!(only(&output, "run.answer")["text"], "Two are done.", "{output}");
    only(&output, "decision.landed");
    repo.assert_sound();

    let log: Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
    assert_eq!((&log["runs"][0]["status"], &log["runs"][0]["agents"]), (&json!("failed"), &agents), "{log}");
    assert!(!repo.squad(&["status"]).out.contains("● run "));
}

/// The coordinator's work and the reviewer's are not in a fan-out.
#[test]
fn whoever_it_is_the_run_has_an_end() {
    let turn = |agent: &str, step: &str| format!("[[turn]]\nagent = \"{agent}\"\nsteps = [{{ {step} }}]\n");
    let broken = "panic = \"a defect\"";
    for (script, message, agents) in [
        (turn("coordinator", broken), "Make it better", json!({ "coordinator": "failed" })),
        (
            turn("ada", "say = \"Done.\"") + &turn("rex", broken),
            "Fix the login password check",
            json!({ "ada": "completed", "rex": "failed" }),
        ),
        (
            turn("ada", "say = \"Done.\"") + &turn("bob", "say = \"Done.\"") + &turn("coordinator", broken),
            "@ada @bob go",
            json!({ "ada": "completed", "bob": "completed", "coordinator": "failed" }),
        ),
    ] {
        let repo = TestRepo::with_small_team();
        ended(&repo.rehearse(&script, &["--json", message]), &agents);
        let log: Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
        assert_eq!(log["runs"][0]["agents"], agents, "{log}");
    }
}

#[test]
fn no_profile_aborts_where_another_unwinds() {
    let manifest = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).expect("a file");
    let manifest: toml::Table = manifest.parse().expect("TOML");
    let profiles = manifest["profile"].as_table().expect("profiles");
    for (name, profile) in profiles {
        assert!(profile.get("panic").is_none_or(|panic| panic.as_str() == Some("unwind")), "{name}");
    }
}
