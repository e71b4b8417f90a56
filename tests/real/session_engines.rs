//! Claude Code as a session engine, beside the Copilot CLI and the rehearsal.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::model_server::Script;
use crate::resume;
use crate::support::{COORDINATOR, World, call, plays, shell};

/// Its own tools, as its model calls them.
fn bash(command: &str) -> String {
    call("Bash", &json!({ "command": command, "description": "A test's command" }))
}

fn write(path: &Path, text: &str) -> String {
    call("Write", &json!({ "file_path": path, "content": text }))
}

fn own(tool: &str, arguments: &Value) -> String {
    call(&format!("mcp__squad__{tool}"), arguments)
}

/// A world whose agents work on Claude Code, but for what `others` says.
pub(crate) fn world_of<const N: usize>(others: &str, scripts: impl FnOnce(&Path) -> [Script; N]) -> World {
    let mut world = World::new(scripts);
    on_claude(&mut world, others);
    world
}

/// Makes Claude Code a world's engine.
pub(crate) fn on_claude(world: &mut World, others: &str) {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/node_modules/@anthropic-ai");
    let home = std::path::PathBuf::from(&world.repo.variables["HOME"]);
    let configuration = format!(
        "[engine]\nname = \"claude\"\n[engines.claude]\nprogram = \"{}/claude-code-linux-x64/claude\"\n\
         [engines.claude.set]\nCLAUDE_CODE_MAX_RETRIES = \"1\"\n{others}",
        program.display()
    );
    fs::create_dir_all(home.join("config/squad")).expect("a folder");
    fs::write(home.join("config/squad/config.toml"), configuration).expect("a file");
    let url = world.model.url();
    for (name, value) in [
        ("CLAUDE_CONFIG_DIR", home.join("claude").display().to_string()),
        ("ANTHROPIC_API_KEY", "a-long-key-of-a-test".to_owned()),
        ("ANTHROPIC_BASE_URL", url.trim_end_matches("/v1").to_owned()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
    ] {
        world.repo.variables.insert(name.to_owned(), value);
    }
}

/// As the team of `resume`, on Claude Code.
fn resumable() -> World {
    world_of("", |root| {
        let decision = json!({ "title": "Errors are JSON", "what": "One shape.", "scope": ["elsewhere/**"] });
        let note = json!({ "text": "The suite needs TZ=UTC." });
        let decide = own("squad_log_decision", &decision);
        [
            plays("ada", &[&write(&root.join("ada.txt"), "ada\n"), &decide, "say:The endpoint is there."]),
            plays(
                "bob",
                &[
                    &bash("echo bob >> calls.txt; echo once > bob.txt"),
                    &own("squad_remember", &note),
                    "say:The tests are there.",
                ],
            ),
            plays("cy", &[&bash("echo cy >> calls.txt; echo once > cy.txt"), "say:Documented."]),
            Script::new(COORDINATOR, ["say:All are done."]),
        ]
    })
}

#[test]
fn claude_code_works_beside_copilot_and_the_rehearsal() {
    let others = "[agents.bob]\nengine = \"copilot\"\n[agents.cy]\nengine = \"rehearsal\"\n";
    let world = world_of(others, |root| {
        let decide = own("squad_log_decision", &json!({ "title": "Errors are JSON", "what": "One shape." }));
        [
            plays("ada", &[&write(&root.join("ada.txt"), "ada\n"), &decide, "say:The endpoint is there."]),
            plays("bob", &[&shell("echo two > bob.txt"), "say:The tests are there."]),
            Script::new(COORDINATOR, ["say:All are done."]),
        ]
    });
    let ended = world.run(&resume::ARGUMENTS.iter().copied().chain(["Build it"]).collect::<Vec<_>>());
    let all = json!({ "ada": "completed", "bob": "completed", "cy": "completed", "coordinator": "completed" });
    ended.assert_status(0, "completed", &all);
    let engines: Vec<Value> = ended.of("engine.started").iter().map(|event| event["engine"].clone()).collect();
    assert_eq!(engines.len(), 3, "{ended}");
    for (agent, file) in [("ada", "ada.txt"), ("bob", "bob.txt")] {
        let completed = ended.first_of("agent.completed", agent);
        assert!(completed["changed"].to_string().contains(file), "{ended}");
        assert!(completed["usage"]["input_tokens"].as_u64().is_some_and(|tokens| tokens >= 200), "{ended}");
    }
    assert!(ended.of("agent.message_delta").iter().any(|event| event["agent"] == "ada"), "{ended}");
    assert!(ended.of("engine.governed").is_empty(), "squad asks on each call: {ended}");
    let logged = ended.only("decision.logged");
    assert_eq!((&logged["agent"], &logged["title"]), (&json!("ada"), &json!("Errors are JSON")), "{ended}");
    assert_eq!(world.processes(), [], "{ended}");
    world.repo.assert_sound();
}

#[test]
fn a_decision_reaches_claude_code_while_it_works() {
    let world = world_of("[agents.bob]\nengine = \"copilot\"\n", |_| {
        let decide = call("squad_log_decision", &json!({ "title": "Errors are JSON", "what": "One shape." }));
        [
            plays("ada", &[&bash("sleep 5; echo slept"), "say:The endpoint is there."]),
            plays("bob", &[&decide, "say:The tests are there."]),
            Script::new(COORDINATOR, ["say:All are done."]),
        ]
    });
    let arguments = ["orchestrate", "--json", "--permissions", "allow", "--agent", "ada", "--agent", "bob", "Build it"];
    let ended = world.run(&arguments);
    let delivered = ended.only("decision.delivered");
    assert_eq!(delivered["agent"], "ada", "{ended}");
    let told = world.requests_with("slept");
    assert!(told.iter().any(|request| request.contains("Errors are JSON")), "{ended}");
}

#[test]
fn what_claude_code_may_not_do_is_not_on_disk() {
    let world = world_of("", |root| {
        let task = [bash("touch bash.txt"), write(&root.join("write.txt"), "x"), bash("git commit -am x")];
        let task: Vec<&str> = task.iter().map(String::as_str).chain(["say:Nothing could be done."]).collect();
        [plays("ada", &task)]
    });
    let ended = world.run(&["orchestrate", "--json", "--permissions", "deny", "--agent", "ada", "Build it"]);
    let denied = ended.of("tool.denied").len() + ended.of("permission.answered").len();
    assert!(denied >= 3, "{ended}");
    assert!(!world.repo.exists("bash.txt") && !world.repo.exists("write.txt"), "{ended}");
    ended.assert_status(5, "stopped", &json!({ "ada": "stopped" }));
    assert_eq!(ended.only("run.completed")["work"][0]["refused"], 3, "{ended}");
    assert_eq!(world.processes(), [], "{ended}");
}

#[test]
fn a_run_on_claude_code_is_cancelled_at_once() {
    let world = world_of("", |_| [plays("ada", &[&bash("sleep 60; touch late.txt"), "say:Over."])]);
    let mut run = world.start(&["orchestrate", "--json", "--permissions", "allow", "--agent", "ada", "Build it"]);
    run.wait_for(&["tool.started"]);
    std::thread::sleep(Duration::from_secs(1));
    let id = run.so_far(None).out.lines().next().and_then(|line| serde_json::from_str::<Value>(line).ok());
    let id = id.expect("an event")["run"].as_str().expect("an id").to_owned();
    let begun = Instant::now();
    let cancelled = world.repo.squad(&["cancel", &id]);
    assert_eq!(cancelled.code, 0, "{cancelled}");
    let ended = run.end();
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?} {ended}", begun.elapsed());
    assert_eq!(ended.only("run.completed")["status"], "cancelled", "{ended}");
    assert!(!world.repo.exists("late.txt"));
    assert_eq!(world.processes(), [], "{ended}");
}

#[test]
fn a_used_up_quota_of_claude_code_is_no_failure_of_the_work() {
    let world = world_of("", |_| [plays("ada", &["error:429"])]);
    let ended = world.run(&["orchestrate", "--json", "--agent", "ada", "Build it"]);
    assert!(!ended.of("quota.opened").is_empty(), "{ended}");
    assert_eq!(world.processes(), [], "{ended}");
}

#[test]
fn squad_is_killed_beside_claude_code_and_goes_on() {
    resume::squad_is_killed(resumable);
}

#[test]
fn claude_code_is_killed_at_any_moment_and_nothing_is_done_twice() {
    resume::a_program_is_killed(resumable, "claude");
}
