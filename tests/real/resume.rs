//! Squad is killed beside the real CLI, and the run is resumed: it ends as if nothing had happened.
//!
//! `SQUAD_RESUMES=50` kills it more often.

use serde_json::{Value, json};

use crate::model_server::Script;
use crate::support::{COORDINATOR, Ended, World, call, create, plays, shell, signal};

const ARGUMENTS: [&str; 10] =
    ["orchestrate", "--json", "--permissions", "allow", "--agent", "ada", "--agent", "bob", "--agent", "cy"];

fn world() -> World {
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
                    &shell("echo once > bob.txt"),
                    &call("squad_remember", &json!({ "text": "The suite needs TZ=UTC." })),
                    "say:The tests are there.",
                ],
            ),
            plays("cy", &[&shell("echo once > cy.txt"), "say:Documented."]),
            Script::new(COORDINATOR, ["say:All are done."]),
        ]
    })
}

/// What must be the same in the end.
fn outcome(world: &World, ended: &Ended) -> Vec<String> {
    let last = ended.events().pop().expect("an end");
    let texts = |kind: &str| -> Vec<String> { world.ledger(kind).iter().map(|_| kind.to_owned()).collect() };
    let mut found = vec![last["status"].to_string(), last["agents"].to_string()];
    found.extend(["decision.logged", "memory.logged", "run.answer"].map(|kind| texts(kind).join(" ")));
    let read = |file| if world.repo.exists(file) { world.repo.read(file) } else { String::new() };
    found.extend(["ada.txt", "bob.txt", "cy.txt"].map(read));
    found.push(world.repo.git(&["log", "--format=%s"]));
    found
}

#[test]
fn killed_at_any_line_a_run_is_resumed() {
    let whole = world();
    let undisturbed = whole.run(&[&ARGUMENTS[..], &["Build it"]].concat());
    undisturbed.assert_status(
        0,
        "completed",
        &json!({ "ada": "completed", "bob": "completed", "coordinator": "completed", "cy": "completed" }),
    );
    let wanted = outcome(&whole, &undisturbed);
    let lines = undisturbed.out.lines().count();
    let kills: usize = std::env::var("SQUAD_RESUMES").ok().and_then(|count| count.parse().ok()).unwrap_or(5);
    for number in 0..kills {
        let after = 1 + number * (lines - 2) / kills;
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
        if seen.iter().any(|event| event["type"] == "run.completed") {
            continue;
        }
        let resumed = world.run(&["orchestrate", "--json", "--resume", &id]);
        assert_eq!(outcome(&world, &resumed), wanted, "after {after}:\n{cut}\n{resumed}");
        let count = |kind: &str| seen.iter().filter(|event| event["type"] == kind).count();
        let interrupted = count("session.created") - count("agent.completed");
        // Who is told of a decision may answer it.
        let told = count("decision.delivered") + resumed.of("decision.delivered").len();
        let (calls, least) = (world.model.requests().len(), whole.model.requests().len() + told);
        assert!(
            calls <= least + interrupted.max(1),
            "after {after}: {calls} calls, undisturbed {least}\n{cut}\n{resumed}"
        );
        world.repo.assert_sound();
    }
}

/// `SQUAD_RESUMES=50` kills the CLI at more moments.
#[test]
fn a_cli_that_is_killed_at_any_moment_changes_nothing_in_the_end() {
    let whole = world();
    let undisturbed = whole.run(&[&ARGUMENTS[..], &["Build it"]].concat());
    let wanted = outcome(&whole, &undisturbed);
    let lines = undisturbed.out.lines().count();
    let kills: usize = std::env::var("SQUAD_RESUMES").ok().and_then(|count| count.parse().ok()).unwrap_or(5);
    for number in 0..kills {
        let world = world();
        let mut run = world.start(&[&ARGUMENTS[..], &["Build it"]].concat());
        run.wait_for(&["engine.started"]);
        // As far into the run as the lines that are seen say.
        for _ in 0..number * (lines - 12) / kills {
            run.wait_for(&["\"seq\""]);
        }
        signal(world.process("copilot-runtime"), "KILL");
        let ended = run.end();
        assert_eq!(outcome(&world, &ended), wanted, "{ended}");
        let interrupted = ended.of("session.resumed").len();
        let least = whole.model.requests().len() + ended.of("decision.delivered").len();
        let calls = world.model.requests().len();
        assert!(calls <= least + interrupted, "{calls} calls, undisturbed {least}, {interrupted} resumed:\n{ended}");
        world.repo.assert_sound();
    }
}
