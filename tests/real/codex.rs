//! Codex in sessions that squad governs: runs with the real program, in the sandbox, beside other engines.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::model_server::Script;
use crate::repository::number_of;
use crate::resume::{ARGUMENTS, outcome};
use crate::support::{COORDINATOR, World, call, create, decide, plays, shell, signal};

/// Of a request before the task, in bytes, with a team like ours (DESIGN §10).
const LARGEST: usize = 30_000;

/// Makes Codex a world's engine: of all agents, or of these.
pub(crate) fn on_codex(world: &mut World, agents: &[&str], model: &str) {
    let parts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/node_modules");
    let home = PathBuf::from(&world.repo.variables["HOME"]);
    let engine = if agents.is_empty() { "codex" } else { "copilot" };
    let program = parts.join("@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex");
    let mut text = format!("[engine]\nname = \"{engine}\"\n[engines.codex]\nprogram = \"{}\"\n", program.display());
    for agent in agents {
        text.push_str(&format!("[agents.{agent}]\nengine = \"codex\"\n"));
    }
    let codex = format!(
        "model_provider = \"loop\"\nmodel = \"{model}\"\n[model_providers.loop]\nname = \"l\"\nbase_url = \"{}\"\n\
         wire_api = \"responses\"\nenv_key = \"OPENAI_API_KEY\"\nrequest_max_retries = 0\nstream_max_retries = 0\n",
        world.model.url()
    );
    for (path, text) in [("config/squad/config.toml", text), ("codex/config.toml", codex)] {
        let path = home.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    let variables = &mut world.repo.variables;
    variables.insert("CODEX_HOME".to_owned(), home.join("codex").display().to_string());
    variables.insert("OPENAI_API_KEY".to_owned(), crate::support::KEY.to_owned());
}

fn run_command(command: &str) -> String {
    call("exec_command", &json!({ "cmd": command }))
}

fn add_file(name: &str, text: &str) -> String {
    let input = format!("*** Begin Patch\n*** Add File: {name}\n+{text}\n*** End Patch");
    call("apply_patch", &json!({ "input": input }))
}

/// The same work as in the stories about the Copilot CLI.
fn world(model: &str, agents: &[&str]) -> World {
    let mut world = World::new(|root| {
        let is_codex = |agent: &str| agents.is_empty() || agents.contains(&agent);
        let command = |agent: &str, text: &str| if is_codex(agent) { run_command(text) } else { shell(text) };
        let decision = call(
            "squad_log_decision",
            &json!({ "title": "Errors are JSON", "what": "One shape.", "scope": ["elsewhere/**"] }),
        );
        let file = if is_codex("ada") { add_file("ada.txt", "ada") } else { create(&root.join("ada.txt"), "ada\n") };
        let learnt = call("squad_remember", &json!({ "text": "The suite needs TZ=UTC." }));
        [
            plays("ada", &[&file, &decision, "say:The endpoint is there."]),
            plays(
                "bob",
                &[&command("bob", "echo bob >> calls.txt; echo once > bob.txt"), &learnt, "say:The tests are there."],
            ),
            plays("cy", &[&command("cy", "echo cy >> calls.txt; echo once > cy.txt"), "say:Documented."]),
            Script::new(COORDINATOR, ["say:All are done."]),
        ]
    });
    on_codex(&mut world, agents, model);
    world
}

const ALL: [&str; 4] = ["ada", "bob", "coordinator", "cy"];

fn completed() -> Value {
    ALL.iter().map(|agent| ((*agent).to_owned(), json!("completed"))).collect::<serde_json::Map<_, _>>().into()
}

/// Two agents on Codex, one and the coordinator on the Copilot CLI: one run, one record.
#[test]
fn a_mixed_team_shares_a_run() {
    let world = world("gpt-5.5", &["ada", "bob"]);
    let ended = world.run(&[&ARGUMENTS[..], &["Build it"]].concat());
    ended.assert_status(0, "completed", &completed());
    for (agent, file, tool) in [("ada", "ada.txt", "file_change"), ("bob", "bob.txt", "command_execution")] {
        let completed = ended.first_of("agent.completed", agent);
        let changed = completed["changed"].as_array().cloned().unwrap_or_default();
        let own = changed.iter().find(|change| change["path"] == file).unwrap_or(&Value::Null);
        assert!(own["by"].to_string().contains(agent), "{ended}");
        assert_eq!(ended.first_of("tool.completed", agent)["tool"], tool, "{ended}");
        assert!(completed["usage"]["input_tokens"].as_u64().is_some_and(|tokens| tokens >= 300), "{ended}");
    }
    let done = ended.of("tool.completed").into_iter().find(|event| event["tool"] == "command_execution");
    assert_eq!(done.expect("a command")["exit_code"], 0, "{ended}");
    for (kind, text) in [("decision.logged", "Errors are JSON"), ("memory.logged", "TZ=UTC")] {
        let entries = world.ledger(kind);
        assert!(entries.len() == 1 && entries[0].contains(text), "{entries:?} {ended}");
    }
    let engines: Vec<Value> = ended.of("engine.started").into_iter().map(|event| event["engine"].clone()).collect();
    assert!(engines.contains(&json!("codex")) && engines.contains(&json!("copilot")), "{ended}");
    assert_eq!(world.processes(), [], "{ended}");
    world.repo.assert_sound();
    let objects = world.repo.git(&["cat-file", "--batch-all-objects", "--batch"]);
    assert!(!objects.contains(crate::support::KEY), "the key is in the repository\n{ended}");
}

/// The whole team and the coordinator, on a model that brings its own way of calling tools.
#[test]
fn what_goes_out_before_the_task_is_within_its_bound() {
    let world = world("gpt-6.1-sol", &[]);
    let ended = world.run(&[&ARGUMENTS[..], &["Build it"]].concat());
    ended.assert_status(0, "completed", &completed());
    let requests = world.model.requests();
    assert!(!requests.is_empty());
    let mut largest = 0;
    for agent in ["ada", "bob", "cy"] {
        let is_its = |request: &&Value| request.to_string().contains(crate::support::creed(agent));
        let size = requests.iter().find(is_its).expect("its first request").to_string().len();
        largest = largest.max(size);
    }
    println!("squad: {largest} bytes");
    assert!(largest <= LARGEST, "{largest} bytes");
}

/// Each mode, and a role that reads: nothing that is refused is on disk, and who may read reads.
#[test]
fn modes_and_roles_hold() {
    let world_of = || {
        let mut world = World::new(|_| {
            let steps = [
                &run_command("cat staged.txt"),
                &run_command("echo no > no.txt"),
                &add_file("no.txt", "no"),
                &run_command("cat staged.txt > no.txt"),
                "say:That is all.",
            ];
            [plays("ada", &steps), Script::new(COORDINATOR, ["say:All are done."])]
        });
        on_codex(&mut world, &["ada"], "gpt-5.5");
        world
    };
    for (arguments, code, status, refused) in
        [(["--permissions", "deny"], 5, "stopped", 3), (["--tier", "lightweight"], 0, "completed", 3)]
    {
        let world = world_of();
        let ended = world.run(&[&["orchestrate", "--json", "--agent", "ada"], &arguments[..], &["Look"]].concat());
        ended.assert_status(code, status, &json!({ "ada": status }));
        assert!(!world.repo.exists("no.txt"), "{ended}");
        let read = ended.of("tool.completed").into_iter().find(|event| event["ok"] == true).expect("one that read");
        assert!(read["result"].as_str().is_some_and(|text| text.contains("one")), "{ended}");
        assert_eq!(ended.of("tool.denied").len(), refused, "{ended}");
        let told = world.model.requests().last().expect("a request")["input"].to_string();
        assert_eq!(told.matches("squad refused the call of").count(), refused, "{told}");
    }
}

/// A coordinator that chooses answers in a form.
#[test]
fn a_coordinator_on_codex_answers_in_its_form() {
    let mut world = World::new(|_| {
        let choice = json!({ "agents": ["bob"], "reason": "Tests are his.", "answer": "" });
        [plays("bob", &["say:Tested."]), Script::new(COORDINATOR, [format!("say:{choice}").as_str()])]
    });
    on_codex(&mut world, &[], "gpt-5.5");
    let ended = world.run(&["orchestrate", "--json", "Frobnicate the quux."]);
    let bound = world.model.requests().into_iter().filter_map(|request| request.pointer("/text/format").cloned());
    let bound: Vec<Value> = bound.collect();
    assert!(bound.iter().all(|format| format["type"] == "json_schema") && !bound.is_empty(), "{ended}");
    assert!(ended.of("agent.completed").iter().any(|event| event["agent"] == "bob"), "{ended}");
}

/// What one decides while another works, that one hears before its turn is over.
#[test]
fn a_decision_reaches_a_colleague_that_works() {
    let mut world = World::new(|_| {
        [
            plays("ada", &[&run_command("sleep 1"), &decide("Ports are numbers"), "say:Decided."]),
            plays("bob", &[&run_command("sleep 4"), "say:Tested."]),
            Script::new(COORDINATOR, ["say:All are done."]),
        ]
    });
    on_codex(&mut world, &[], "gpt-5.5");
    let arguments = ["orchestrate", "--json", "--permissions", "allow", "--agent", "ada", "--agent", "bob", "Go"];
    let ended = world.run(&arguments);
    let delivered = ended.of("decision.delivered");
    assert!(delivered.iter().any(|event| event["agent"] == "bob"), "{ended}");
    let heard = world.requests_with("Ports are numbers");
    assert!(heard.iter().any(|request| request.contains(crate::support::creed("bob"))), "{ended}");
}

#[test]
fn a_used_up_quota_is_said_as_one() {
    let mut world = World::new(|_| [plays("ada", &["error:429"])]);
    on_codex(&mut world, &["ada"], "gpt-5.5");
    let ended = world.run(&["orchestrate", "--json", "--permissions", "allow", "--agent", "ada", "Go"]);
    ended.assert_status(5, "stopped", &json!({ "ada": "stopped" }));
    assert_eq!(ended.only("quota.opened")["engine"], "codex", "{ended}");
    assert_eq!(world.processes(), [], "{ended}");
}

fn moments() -> usize {
    number_of("SQUAD_RESUMES", 6)
}

#[test]
fn killed_at_any_line_a_run_on_codex_is_resumed() {
    let whole = world("gpt-5.5", &[]);
    let undisturbed = whole.run(&[&ARGUMENTS[..], &["Build it"]].concat());
    undisturbed.assert_status(0, "completed", &completed());
    let wanted = outcome(&whole, &undisturbed);
    let lines = undisturbed.out.lines().count();
    for number in 0..moments() {
        let after = 1 + number * (lines - 2) / moments();
        let world = world("gpt-5.5", &[]);
        let mut run = world.start(&[&ARGUMENTS[..], &["Build it"]].concat());
        for _ in 0..after {
            run.wait_for(&["\"seq\""]);
        }
        signal(run.id(), "KILL");
        let cut = run.end();
        world.settle();
        let seen: Vec<Value> = cut.out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        // Its last line may not have been printed.
        if !world.ledger("run.completed").is_empty() {
            continue;
        }
        let id = seen[0]["run"].as_str().expect("an id").to_owned();
        let resumed = world.run(&["orchestrate", "--json", "--resume", &id]);
        assert_eq!(outcome(&world, &resumed), wanted, "after {after}:\n{cut}\n{resumed}");
        assert_once(&world, &[&cut, &resumed], after);
        world.repo.assert_sound();
    }
}

#[test]
fn a_codex_that_is_killed_at_any_moment_changes_nothing_in_the_end() {
    let whole = world("gpt-5.5", &[]);
    let undisturbed = whole.run(&[&ARGUMENTS[..], &["Build it"]].concat());
    let wanted = outcome(&whole, &undisturbed);
    let lines = undisturbed.out.lines().count();
    for number in 0..moments() {
        let world = world("gpt-5.5", &[]);
        let mut run = world.start(&[&ARGUMENTS[..], &["Build it"]].concat());
        run.wait_for(&["session.created"]);
        // As far into the run as the lines that are seen say.
        for _ in 0..number * (lines - 16) / moments() {
            run.wait_for(&["\"seq\""]);
        }
        signal(world.process("codex"), "KILL");
        let ended = run.end();
        assert_eq!(outcome(&world, &ended), wanted, "{ended}");
        assert_once(&world, &[&ended], number);
        world.repo.assert_sound();
    }
}

/// A scripted model repeats a command only where its session has lost the result, and the record says so: that the outcome
/// is unknown, or that squad has told it.
fn assert_once(world: &World, ended: &[&crate::support::Ended], moment: usize) {
    let marks = if world.repo.exists("calls.txt") { world.repo.read("calls.txt") } else { String::new() };
    let repeated = ["bob", "cy"].iter().map(|name| marks.matches(name).count().saturating_sub(1)).sum::<usize>();
    let says = |ended: &&crate::support::Ended| {
        let lost = ended.out.matches("of its tool calls and is told about them").count();
        lost + ended.out.matches("the outcome of").count()
    };
    let named: usize = ended.iter().map(says).sum();
    assert!(repeated <= named, "{moment}: {marks:?} {named}\n{}", ended[ended.len() - 1]);
}
