//! What an engine has stored of a session is damaged between the death of a run and its resumption: the session goes
//! on or begins afresh, the record says which and why, and the agent is told what it has done.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{World, plays, shell, signal};

const FIRST: &str = "echo first >> tries.txt";
const SECOND: &str = "echo second >> tries.txt";
const DONE: &str = "completed with exit code 0";

/// A run that was killed before its agent's last words, and the events that its engine has stored.
fn killed() -> (World, String, PathBuf) {
    let world = World::new(|_| [plays("ada", &[&shell(FIRST), &shell(SECOND), "sleep:1 say:The endpoint is there."])]);
    let mut run = world.start(&["orchestrate", "--json", "--permissions", "allow", "-a", "ada", "Build it"]);
    run.wait_for(&["tool.completed", SECOND]);
    // What the record holds is what an agent can be told.
    let deadline = Instant::now() + Duration::from_secs(30);
    while world.ledger("tool.completed").len() < 2 {
        assert!(Instant::now() < deadline, "it is not recorded");
        thread::sleep(Duration::from_millis(5));
    }
    signal(run.id(), "KILL");
    let cut = run.end();
    world.settle();
    let first: Value = serde_json::from_str(cut.out.lines().next().expect("a line")).expect("JSON");
    let file = stored(&world).expect("events");
    (world, first["run"].as_str().expect("an id").to_owned(), file)
}

fn stored(world: &World) -> Option<PathBuf> {
    let inside = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let homes = inside(world.repo.root().join(".git/squad/homes"));
    let sessions = homes.flat_map(|home| inside(home.join("copilot/session-state")));
    sessions.map(|session| session.join("events.jsonl")).find(|file| file.is_file())
}

/// How an agent goes on whose session was damaged.
#[derive(Debug, PartialEq)]
enum Goes {
    /// Its session knows all.
    On,
    /// Its session goes on, and it is told of what that has lost.
    OnTold,
    /// Its session goes on, and is given the task again.
    Again,
    /// In a new session.
    Afresh,
}

fn resumed(name: &str, goes: &Goes, damage: impl FnOnce(&str) -> Vec<u8>) {
    let (world, run, file) = killed();
    let text = fs::read_to_string(&file).expect("events");
    fs::write(&file, damage(&text)).expect("it is written");
    let before = world.model.requests().len();
    let ended = world.run(&["orchestrate", "--json", "--resume", &run]);
    ended.assert_status(0, "completed", &json!({ "ada": "completed" }));
    let errors = ended.of("session.error");
    let reasons: Vec<&str> = errors.iter().filter_map(|event| event["reason"].as_str()).collect();
    let says = |text: &str| reasons.iter().any(|reason| reason.contains(text));
    let seen = match (ended.of("session.resumed").len(), ended.of("session.created").len()) {
        (0, 1) if says("cannot be resumed: ") => Some(Goes::Afresh),
        (1, 0) if says("so it gets the task again") => Some(Goes::Again),
        (1, 0) if says("of its tool calls and is told about them") => Some(Goes::OnTold),
        (1, 0) if reasons.is_empty() => Some(Goes::On),
        _ => None,
    };
    assert_eq!(seen.as_ref(), Some(goes), "{name}: {ended}");
    let told = world.model.requests()[before].to_string();
    for command in [FIRST, SECOND] {
        assert!(told.contains(command), "{name}: {command} is not told: {told}");
    }
    if *goes == Goes::On {
        assert_eq!(world.repo.read("tries.txt"), "first\nsecond\n", "{name}");
        assert_eq!(world.model.requests().len(), before + 1, "{name}");
    }
    world.assert_left_in_order(&ended);
}

#[test]
fn sessions_that_were_damaged_end_as_others_do() {
    resumed("as it was", &Goes::On, |text| text.into());
    resumed("torn in the last line", &Goes::On, |text| text[..text.len() - 20].into());
    resumed("NULs behind it", &Goes::On, |text| [text.as_bytes(), &[0; 4096]].concat());
    resumed("line separators", &Goes::On, |text| text.replace(DONE, "\u{2028}done\u{2029}\u{85}").into());
    resumed("20 MB", &Goes::On, |text| text.replacen(DONE, &"long ".repeat(4_000_000), 1).into());
    let program = "\"version\":1,\"producer\":\"copilot-agent\",\"copilotVersion\":\"1.";
    let of_version = |text: &str, other: &str| text.replacen(program, other, 1).into_bytes();
    resumed("of a later release", &Goes::On, |text| {
        of_version(text, "\"version\":2,\"producer\":\"another\",\"copilotVersion\":\"9.")
    });
    resumed("of a release that told no version", &Goes::Afresh, |text| of_version(text, "\"copilotVersion\":\"0."));
    resumed("with events that this release does not know", &Goes::On, |text| {
        let line = |line: &str| format!("{line}\n{{\"type\":\"later.event\",\"data\":{{\"of\":[1]}}}}\n");
        text.lines().map(line).collect::<String>().into()
    });
    resumed("with results under another name", &Goes::OnTold, |text| {
        text.replace("\"tool.execution_complete\"", "\"tool.execution_finished\"").into()
    });
    let second = |text: &str| text.rfind("{\"type\":\"assistant.message\"").expect("a call");
    resumed("cut in the middle", &Goes::OnTold, |text| text[..second(text) + 30].into());
    resumed("NULs in its second half", &Goes::OnTold, |text| {
        let mut bytes = text.as_bytes().to_vec();
        bytes[second(text)..].fill(0);
        bytes
    });
    let task = |text: &str| text.find("{\"type\":\"user.message\"").expect("a task");
    resumed("cut before the task", &Goes::Again, |text| text[..task(text)].into());
    resumed("nothing but NULs", &Goes::Afresh, |text| vec![0; text.len()]);
    resumed("empty", &Goes::Afresh, |_| Vec::new());
    resumed("of no JSON", &Goes::Afresh, |_| b"not JSON at all\n".repeat(100));
}
