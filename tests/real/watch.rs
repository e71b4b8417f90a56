//! `squad watch` with the real CLI: sessions that wait for work, and follow their charters.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Ended, Run, World, create, decide, plays, shell, signal};

const ORCHESTRATE: [&str; 4] = ["orchestrate", "--json", "--permissions", "allow"];

/// A world in which Ada and Bob have sessions.
fn watched(world: &World) -> Run {
    world.repo.write(".squad/config.toml", "[sessions]\ncore = [\"ada\", \"bob\"]\n");
    world.repo.git(&["add", ".squad"]);
    world.repo.git(&["commit", "--quiet", "--message=core", "--", ".squad"]);
    ready(world)
}

fn ready(world: &World) -> Run {
    let mut watch = world.start(&["watch", "--json"]);
    watch.wait_for(&["session.created", "\"agent\":\"ada\""]);
    watch.wait_for(&["session.created", "\"agent\":\"bob\""]);
    watch
}

fn orchestrate(world: &World, message: &str) -> Ended {
    let ended = world.run(&[&ORCHESTRATE[..], &[message]].concat());
    assert_eq!(ended.code, Some(0), "{ended}");
    ended
}

#[test]
fn a_warm_session_does_the_work_and_keeps_nothing_for_the_next_run() {
    let world = World::new(|root| {
        [plays("ada", &[&create(&root.join("api.txt"), "endpoint\n"), &decide("Errors are JSON"), "say:It is there."])]
    });
    let mut watch = watched(&world);
    let first = orchestrate(&world, "@ada add the lighthouse endpoint");
    let session = first.only("session.created");
    assert_eq!((&session["session"], &session["warm"]), (&json!("squad-ada"), &json!(true)), "{first}");
    assert_eq!(first.only("engine.started")["warm"], true, "{first}");
    assert_eq!(world.repo.read("api.txt"), "endpoint\n");
    assert_eq!(first.of("decision.landed").len(), 1, "{first}");
    assert!(world.requests_with("Times are UTC").len() > 1, "what is chosen for the task is told");
    // The session is there again, and knows nothing of it.
    watch.wait_for(&["session.created", "squad-ada", "\"agent\":\"ada\""]);
    watch.wait_for(&["session.created", "squad-ada", "\"agent\":\"ada\""]);
    let before = world.requests_with("the lighthouse endpoint").len();
    let second = orchestrate(&world, "@ada add the harbour endpoint");
    assert_eq!(second.only("session.created")["warm"], true, "{second}");
    let after = world.requests_with("the lighthouse endpoint").len();
    assert_eq!((before > 0, after), (true, before), "the second run is not told of the first");
    signal(watch.id(), "INT");
    let ended = watch.end();
    assert_eq!(ended.code, Some(0), "{ended}");
    world.settle();
}

#[test]
fn an_edited_charter_is_in_the_next_answer_and_others_go_on() {
    let world = World::new(|_| [plays("ada", &["say:Done."]), plays("bob", &[&shell("sleep 2"), "say:Done too."])]);
    let mut watch = watched(&world);
    let mut bob = world.start(&[&ORCHESTRATE[..], &["@bob test the parser"]].concat());
    bob.wait_for(&["session.created"]);
    let charter = world.repo.read(".squad/agents/ada/charter.md");
    world.repo.write(".squad/agents/ada/charter.md", &format!("{charter}\nSeventeen gulls watch the pier.\n"));
    watch.wait_for(&["charter.changed", "+Seventeen gulls"]);
    watch.wait_for(&["session.created", "\"agent\":\"ada\""]);
    let ended = orchestrate(&world, "@ada explain the endpoint");
    assert_eq!(ended.only("session.created")["warm"], true, "{ended}");
    assert!(!world.requests_with("Seventeen gulls watch the pier.").is_empty(), "{ended}");
    let bob = bob.end();
    bob.assert_status(0, "completed", &json!({ "bob": "completed" }));
    drop(watch);
    world.settle();
}

#[test]
fn a_cli_that_dies_between_runs_is_back_for_the_next_one() {
    let world = World::new(|_| [plays("ada", &["say:Done."])]);
    let mut watch = watched(&world);
    signal(world.process("copilot-runtime"), "KILL");
    watch.wait_for(&["connection.lost"]);
    watch.wait_for(&["connection.restored"]);
    let ended = orchestrate(&world, "@ada explain the endpoint");
    assert_eq!(ended.only("engine.started")["warm"], true, "{ended}");
    // A watch that is killed leaves nothing running, and the next one takes its place.
    signal(watch.id(), "KILL");
    watch.end();
    world.settle();
    let watch = ready(&world);
    let ended = orchestrate(&world, "@ada explain another");
    assert_eq!(ended.only("session.created")["warm"], true, "{ended}");
    drop(watch);
    world.settle();
}

/// Prints what a warm run takes from its start to its last line, against a cold one. Not a test: `--ignored --nocapture`.
#[test]
#[ignore = "prints figures"]
fn how_long_a_warm_run_takes() {
    let world = World::new(|_| [plays("ada", &["say:Done."])]);
    let median = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2]
    };
    let run = || {
        let begun = Instant::now();
        let ended = orchestrate(&world, "@ada explain the endpoint");
        let spent = begun.elapsed();
        let opened = ended.only("session.created")["seconds"].clone();
        thread::sleep(Duration::from_millis(300));
        (spent, opened)
    };
    let cold: Vec<_> = (0..9).map(|_| run().0).collect();
    let watch = watched(&world);
    let (warm, opened): (Vec<_>, Vec<_>) = (0..9).map(|_| run()).unzip();
    println!("cold {:?}, warm {:?}, sessions opened in {opened:?} s", median(cold), median(warm));
    let status = std::fs::read_to_string(format!("/proc/{}/status", watch.id())).expect("Linux");
    println!(
        "{:?}",
        status.lines().filter(|line| line.starts_with("VmRSS") || line.starts_with("VmHWM")).collect::<Vec<_>>()
    );
}
