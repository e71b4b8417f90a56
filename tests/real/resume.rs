//! Squad is killed beside the real CLI, or the CLI is, and the run goes on: it ends as if nothing had happened, with at
//! most one more model call for each session that was interrupted, and one repeated tool call, which costs another and
//! is named in the record.
//!
//! `SQUAD_RESUMES=50 cargo test --test real resume -- --nocapture` kills at more moments.

use serde_json::{Value, json};

use crate::model_server::Script;
use crate::repository::number_of;
use crate::support::{COORDINATOR, Ended, World, call, create, plays, shell, signal};

pub(crate) const ARGUMENTS: [&str; 10] =
    ["orchestrate", "--json", "--permissions", "allow", "--agent", "ada", "--agent", "bob", "--agent", "cy"];

pub(crate) fn world() -> World {
    World::new(|root| {
        [
            plays(
                "ada",
                // Told to the others at work, it would cost model calls of theirs.
                &[
                    &create(&root.join("ada.txt"), "ada\n"),
                    &call(
                        "squad_log_decision",
                        &json!({ "title": "Errors are JSON", "what": "One shape.", "scope": ["elsewhere/**"] }),
                    ),
                    "say:The endpoint is there.",
                ],
            ),
            plays(
                "bob",
                &[
                    &shell("echo bob >> calls.txt; echo once > bob.txt"),
                    &call("squad_remember", &json!({ "text": "The suite needs TZ=UTC." })),
                    "say:The tests are there.",
                ],
            ),
            plays("cy", &[&shell("echo cy >> calls.txt; echo once > cy.txt"), "say:Documented."]),
            Script::new(COORDINATOR, ["say:All are done."]),
        ]
    })
}

/// What must be the same in the end.
pub(crate) fn outcome(world: &World, ended: &Ended) -> Vec<String> {
    let last = ended.events().pop().expect("an end");
    let texts = |kind: &str| -> Vec<String> { world.ledger(kind).iter().map(|_| kind.to_owned()).collect() };
    let mut found = vec![last["status"].to_string(), last["agents"].to_string()];
    found.extend(["decision.logged", "memory.logged", "run.answer"].map(|kind| texts(kind).join(" ")));
    let read = |file| if world.repo.exists(file) { world.repo.read(file) } else { String::new() };
    found.extend(["ada.txt", "bob.txt", "cy.txt"].map(read));
    found.push(world.repo.git(&["log", "--format=%s"]));
    found
}

/// What interruptions have cost.
#[derive(Debug, Default)]
struct Cost {
    kills: usize,
    interrupted: usize,
    model_calls: usize,
    tool_calls: usize,
}

impl Cost {
    /// `told`: whoever is told of a decision may answer it, interrupted or not.
    fn add(&mut self, world: &World, undisturbed: &World, ended: &Ended, interrupted: usize, told: usize) -> bool {
        let requests = |world: &World| world.model.requests().len();
        let model_calls = requests(world).saturating_sub(requests(undisturbed) + told);
        let marks = if world.repo.exists("calls.txt") { world.repo.read("calls.txt") } else { String::new() };
        let marks: Vec<&str> = marks.lines().collect();
        let tool_calls = marks.len() - ["bob", "cy"].iter().filter(|name| marks.contains(name)).count();
        self.kills += 1;
        self.interrupted += interrupted;
        self.model_calls += model_calls;
        self.tool_calls += tool_calls;
        let errors = ended.of("session.error");
        let names = |event: &&Value| event["reason"].as_str().is_some_and(|reason| reason.contains("the outcome of"));
        let named = errors.iter().filter(names).count();
        // Whoever repeats a call asks for it once more.
        model_calls <= interrupted + named && tool_calls <= named && named <= interrupted
    }
}

fn moments() -> usize {
    number_of("SQUAD_RESUMES", 12)
}

#[test]
fn killed_at_any_line_a_run_is_resumed() {
    squad_is_killed(world);
}

#[test]
fn a_cli_that_is_killed_at_any_moment_changes_nothing_in_the_end() {
    a_program_is_killed(world, "copilot-runtime");
}

pub(crate) fn squad_is_killed(world: impl Fn() -> World) {
    let whole = world();
    let undisturbed = whole.run(&[&ARGUMENTS[..], &["Build it"]].concat());
    undisturbed.assert_status(
        0,
        "completed",
        &json!({ "ada": "completed", "bob": "completed", "coordinator": "completed", "cy": "completed" }),
    );
    let wanted = outcome(&whole, &undisturbed);
    let lines = undisturbed.out.lines().count();
    let mut cost = Cost::default();
    for number in 0..moments() {
        let after = 1 + number * (lines - 2) / moments();
        let world = world();
        let mut run = world.start(&[&ARGUMENTS[..], &["Build it"]].concat());
        for _ in 0..after {
            run.wait_for(&["\"seq\""]);
        }
        signal(run.id(), "KILL");
        let cut = run.end();
        world.settle();
        let seen: Vec<Value> = cut.out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let id = seen[0]["run"].as_str().expect("an id").to_owned();
        // Its last line may not have been printed.
        if !world.ledger("run.completed").is_empty() {
            continue;
        }
        let resumed = world.run(&["orchestrate", "--json", "--resume", &id]);
        // A call that had reached the CLI, and squad not yet: the agent is told to look, and this model cannot.
        if resumed.out.contains("is unknown; it is told to check") && world.ledger("decision.logged").is_empty() {
            continue;
        }
        assert_eq!(outcome(&world, &resumed), wanted, "after {after}:\n{cut}\n{resumed}");
        let count = |kind: &str| seen.iter().filter(|event| event["type"] == kind).count();
        let interrupted = count("session.created") - count("agent.completed");
        let told = count("decision.delivered") + resumed.of("decision.delivered").len();
        let is_cheap = cost.add(&world, &whole, &resumed, interrupted.max(1), told);
        assert!(is_cheap, "after {after}: {cost:?}\n{cut}\n{resumed}");
        world.repo.assert_sound();
    }
    println!("squad: {cost:?}");
}

pub(crate) fn a_program_is_killed(world: impl Fn() -> World, program: &str) {
    let whole = world();
    let undisturbed = whole.run(&[&ARGUMENTS[..], &["Build it"]].concat());
    let wanted = outcome(&whole, &undisturbed);
    let lines = undisturbed.out.lines().count();
    let mut cost = Cost::default();
    for number in 0..moments() {
        let world = world();
        let mut run = world.start(&[&ARGUMENTS[..], &["Build it"]].concat());
        run.wait_for(&["engine.started"]);
        // As far into the run as the lines that are seen say.
        for _ in 0..number * (lines - 12) / moments() {
            run.wait_for(&["\"seq\""]);
        }
        signal(world.process(program), "KILL");
        let ended = run.end();
        assert_eq!(outcome(&world, &ended), wanted, "{ended}");
        let interrupted = ended.of("session.resumed").len();
        let is_cheap = cost.add(&world, &whole, &ended, interrupted, ended.of("decision.delivered").len());
        assert!(is_cheap, "after {number} of {}: {cost:?}\n{ended}", moments());
        world.repo.assert_sound();
    }
    println!("{program}: {cost:?}");
}
