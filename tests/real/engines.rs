use serde_json::{Value, json};

use crate::copilot_cli;
use crate::support::{World, plays};

#[test]
fn the_engine_is_ready_with_a_provider_of_ones_own() {
    let world = World::new(|_| []);
    let ended = world.run(&["engines", "copilot", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended}");
    let value: Value = serde_json::from_str(&ended.out).expect("JSON");
    let engine = &value["engines"][0];
    for (key, expected) in [
        ("name", json!("copilot")),
        ("chosen", json!(true)),
        ("ready", json!(true)),
        ("version", json!("1.0.102")),
        ("protocol", json!(3)),
        ("supported_protocol", json!("3")),
        ("login", json!(format!("none needed: models come from {}", world.model.url()))),
        ("problem", Value::Null),
    ] {
        assert_eq!(engine[key], expected, "{key}: {ended}");
    }
    assert!(engine["program"].as_str().is_some_and(|program| program.ends_with("/copilot-runtime")), "{ended}");
    world.assert_left_in_order(&ended);
}

#[test]
fn without_login_and_provider_it_says_what_to_do() {
    let mut world = World::new(|_| []);
    world.repo.variables.retain(|name, _| !name.starts_with("COPILOT_"));
    let ended = world.run(&["engines", "copilot"]);
    assert!(ended.code == Some(4) && ended.out.contains("not ready") && ended.out.contains("/login"), "{ended}");
    let ended = world.run(&["orchestrate", "--json", "--agent", "ada", "x"]);
    assert_eq!(ended.code, Some(4), "{ended}");
    // The run is on record, and the error comes last.
    let value: Value = serde_json::from_str(ended.out.lines().next_back().unwrap_or_default()).expect("JSON");
    assert!(value["error"]["message"].as_str().is_some_and(|message| message.contains("is not logged in")), "{ended}");
    assert_eq!(world.processes(), [], "{ended}");
    assert!(world.model.requests().is_empty());
}

/// The version speaks the protocol and takes no answer to a permission, so that an agent would do nothing and say it is
/// done.
#[test]
fn a_cli_that_is_too_old_is_refused_before_it_is_asked_for_anything() {
    let mut world = World::new(|_| [plays("ada", &["Done."])]);
    let program = copilot_cli::too_old();
    world.repo.variables.insert("COPILOT_CLI_PATH".to_owned(), program.display().to_string());
    let ended = world.run(&["orchestrate", "--json", "--agent", "ada", "x"]);
    assert_eq!(ended.code, Some(4), "{ended}");
    let last: Value = serde_json::from_str(ended.out.lines().next_back().unwrap_or_default()).expect("JSON");
    assert_eq!((last["type"].as_str(), last["status"].as_str()), (Some("run.completed"), Some("failed")), "{ended}");
    let expected = "the Copilot CLI is version 1.0.34; this squad needs 1.0.43 or newer";
    assert_eq!(last["error"]["message"], expected, "{ended}");
    assert!(last["error"]["hint"].as_str().is_some_and(|hint| hint.contains("npm install -g")), "{ended}");
    assert_eq!(world.processes(), [], "{ended}");
    assert!(world.model.requests().is_empty());
    assert!(world.run(&["log"]).out.contains("failed"));
}

/// Each program as it is installed: what it fails is known, and is no matter of obedience.
#[test]
fn the_real_programs_prove_what_squad_relies_on() {
    let world = World::new(|_| []);
    let parts = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/node_modules");
    let home = std::path::PathBuf::from(&world.repo.variables["HOME"]);
    let configuration = format!(
        "[engines.claude]\nprogram = \"{0}/@anthropic-ai/claude-code-linux-x64/claude\"\n\
         [engines.claude-print]\nprogram = \"{0}/@anthropic-ai/claude-code-linux-x64/claude\"\n\
         [engines.codex]\nprogram = \"{0}/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex\"\n",
        parts.display()
    );
    std::fs::create_dir_all(home.join("config/squad")).expect("a folder");
    std::fs::write(home.join("config/squad/config.toml"), configuration).expect("a file");
    let one_shot: &[&str] = &["changed_arguments", "own_tool", "message_while_working"];
    for (engine, expected) in
        [("copilot", &[][..]), ("claude", &[]), ("codex", CODEX_FAILS), ("claude-print", one_shot)]
    {
        let ended = world.run(&["engines", engine, "--prove", "--json"]);
        let proof: Value = serde_json::from_str(&ended.out).expect("JSON");
        let claims = proof["claims"].as_array().expect("a list").iter();
        let failed: Vec<&str> =
            claims.filter(|claim| claim["holds"] == false).filter_map(|claim| claim["claim"].as_str()).collect();
        assert_eq!(failed, expected, "{engine}: {ended}");
        assert_eq!(ended.code, Some(i32::from(!expected.is_empty())), "{engine}: {ended}");
        // It used neither a login nor the model of this test, and left nothing.
        assert!(world.model.requests().is_empty());
        assert_eq!(world.processes(), [], "{ended}");
    }
    // What was seen is known from now on.
    let ended = world.run(&["engines", "copilot", "--json"]);
    let value: Value = serde_json::from_str(&ended.out).expect("JSON");
    assert_eq!(value["engines"][0]["proved"]["failed"], json!([]), "{ended}");
}

/// Its protocol lets nobody change a call.
const CODEX_FAILS: &[&str] = &["changed_arguments"];
