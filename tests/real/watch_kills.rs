//! The watch, the real CLI or the client is killed in the middle of a run: nothing that was acknowledged is lost, nothing
//! runs on, and what was interrupted goes on.
//!
//! `SQUAD_WATCH_KILLS=100 cargo test --test real watch_kills -- --nocapture` kills at more moments.

use serde_json::{Value, json};

use crate::repository::number_of;
use crate::resume::{ARGUMENTS, outcome, world};
use crate::support::{Ended, Run, World, signal};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Victim {
    Client,
    Watch,
    Cli,
}

fn watching(world: &World) -> Run {
    let mut watch = world.start(&["watch", "--json"]);
    watch.wait_for(&["engine.started"]);
    watch
}

/// What is the same however the run went: all but the branch's log.
fn without_log(mut outcome: Vec<String>) -> Vec<String> {
    outcome.pop();
    outcome
}

fn last_of(events: Vec<Value>) -> Value {
    events.into_iter().rfind(|event| event["type"] == "run.completed").expect("an end")
}

/// Kills after so many lines of the client's, and has the run go on. `None`: it was over before.
fn killed(victim: Victim, after: usize, wanted: &[String]) -> Option<()> {
    let world = world();
    let mut watch = watching(&world);
    let mut client = world.start(&[&ARGUMENTS[..], &["Build it"]].concat());
    for _ in 0..after {
        client.wait_for(&["\"seq\""]);
    }
    match victim {
        Victim::Client => signal(client.id(), "KILL"),
        Victim::Watch => signal(watch.id(), "KILL"),
        Victim::Cli => signal(world.process("copilot-runtime"), "KILL"),
    }
    let cut = client.end();
    let is_over = cut.out.contains("run.completed");
    let events = |out: &str| -> Vec<Value> { out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect() };
    let id = events(&cut.out).first().expect("it has begun")["run"].as_str().expect("an id").to_owned();
    let context = format!("{victim:?} after {after}");
    let ended = match victim {
        Victim::Watch if is_over => return None,
        Victim::Client => {
            watch.wait_for(&["run.completed"]);
            let seen = watch.so_far(cut.code);
            let of_run: Vec<&str> = seen.out.lines().filter(|line| line.contains(&id)).collect();
            Ended { out: of_run.join("\n"), ..seen }
        }
        Victim::Cli => cut,
        Victim::Watch => {
            assert_ne!(cut.code, Some(0), "{context}: {cut}");
            world.settle();
            watch = watching(&world);
            world.run(&["orchestrate", "--json", "--resume", &id])
        }
    };
    let last = last_of(events(&ended.out));
    assert_eq!(last["status"], "completed", "{context}: {ended}");
    if victim == Victim::Client {
        // Only a command in the foreground commits.
        let _ = world.run(&["decisions", "land"]);
    }
    assert_eq!(without_log(outcome(&world, &ended)), without_log(wanted.to_vec()), "{context}: {ended}");
    assert!(world.repo.git(&["log", "--format=%s"]).contains("Errors are JSON"), "{context}: landed");
    world.repo.assert_sound();
    signal(watch.id(), "INT");
    assert_eq!(watch.end().code, Some(0), "{context}");
    world.settle();
    Some(())
}

#[test]
fn whoever_is_killed_nothing_is_lost_and_the_run_ends() {
    let whole = world();
    let undisturbed = whole.run(&[&ARGUMENTS[..], &["Build it"]].concat());
    assert_eq!(undisturbed.code, Some(0), "{undisturbed}");
    let wanted = outcome(&whole, &undisturbed);
    assert_eq!(json!(wanted[0]), json!("\"completed\""));
    let lines = undisturbed.out.lines().count();
    let moments = number_of("SQUAD_WATCH_KILLS", 6);
    let mut kills = 0;
    for number in 0..moments {
        let victim = [Victim::Client, Victim::Watch, Victim::Cli][number % 3];
        let after = 1 + number * (lines - 2) / moments;
        kills += usize::from(killed(victim, after, &wanted).is_some());
    }
    println!("{kills} kills of {moments} moments");
}
