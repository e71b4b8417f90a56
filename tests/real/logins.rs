//! What squad says when nobody is logged in, and when a login ends while an agent works.

use serde_json::{Value, json};

use crate::codex::on_codex;
use crate::session_engines::world_of;
use crate::support::{Ended, World, call, plays};

/// The engines, and what to type.
const ENGINES: [(&str, &str); 2] = [("claude", "`claude auth login`"), ("codex", "`codex login`")];
const WORK: [&str; 6] = ["orchestrate", "--permissions", "allow", "--agent", "ada", "Build it"];

/// A world on an engine, whose model stops knowing the key after a command.
fn world(engine: &str) -> World {
    let (tool, argument) = if engine == "claude" { ("Bash", "command") } else { ("exec_command", "cmd") };
    let ada = plays("ada", &[&call(tool, &json!({ argument: "echo one > ada.txt" })), "error:401"]);
    if engine == "claude" {
        return world_of("", |_| [ada]);
    }
    let mut world = World::new(|_| [ada]);
    on_codex(&mut world, &[], "gpt-5.5");
    world
}

fn assert_says(world: &World, ended: &Ended, cause: &str, fix: &str) {
    assert_eq!(ended.code, Some(4), "{ended}");
    let last: Value = serde_json::from_str(ended.out.lines().next_back().unwrap_or_default()).expect("JSON");
    let error = &last["error"];
    let has = |field: &str, text: &str| error[field].as_str().is_some_and(|value| value.contains(text));
    assert!(error["kind"] == "engine" && has("message", cause) && has("hint", fix), "{ended}");
    // Another try would end in the same way.
    assert!(!ended.out.contains("it is tried again"), "{ended}");
    let recorded = world.ledger("run.completed");
    let recorded = recorded.last().expect("the run is recorded");
    assert!(recorded.contains(cause) && recorded.contains(fix), "{recorded}");
    assert_eq!(world.processes(), [], "{ended}");
}

#[test]
fn a_login_that_ends_in_the_middle_is_named() {
    for (engine, fix) in ENGINES {
        let world = world(engine);
        let ended = world.run(&[&["--json"], &WORK[..]].concat());
        assert_says(&world, &ended, "401", fix);
        let failed = ended.first_of("agent.failed", "ada");
        assert!(failed["reason"].as_str().is_some_and(|reason| reason.contains(fix)), "{ended}");
        assert!(world.repo.exists("ada.txt"), "it had begun: {ended}");
        let said = world.run(&WORK);
        assert!(said.code == Some(4) && said.err.contains("401") && said.err.contains(fix), "{said}");
    }
}

#[test]
fn that_nobody_is_logged_in_is_named() {
    for (engine, fix) in ENGINES {
        let mut world = world(engine);
        world.repo.variables.retain(|name, _| !["ANTHROPIC_API_KEY", "CODEX_HOME"].contains(&&**name));
        let ended = world.run(&[&["--json"], &WORK[..]].concat());
        assert_says(&world, &ended, "ot logged in", fix);
        for (arguments, code) in [(&["engines", engine][..], 4), (&["doctor"], 1)] {
            let ended = world.run(arguments);
            assert!(ended.code == Some(code) && ended.out.contains("not logged in"), "{ended}");
            assert!(ended.out.contains(fix), "{ended}");
        }
        assert!(world.model.requests().is_empty());
    }
}
