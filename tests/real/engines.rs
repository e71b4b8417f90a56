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
