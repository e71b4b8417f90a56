//! `squad watch` with the real CLI: sessions that wait for work, and follow their charters.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::codex::on_codex;
use crate::session_engines::world_of;
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
    opens(world, ["created", "created"])
}

/// A watch that has opened the sessions of Ada and Bob, in these ways.
fn opens(world: &World, [ada, bob]: [&str; 2]) -> Run {
    let mut watch = world.start(&["watch", "--json"]);
    watch.wait_for(&[&format!("session.{ada}"), "\"agent\":\"ada\""]);
    watch.wait_for(&[&format!("session.{bob}"), "\"agent\":\"bob\""]);
    watch
}

fn orchestrate(world: &World, message: &str) -> Ended {
    let ended = world.run(&[&ORCHESTRATE[..], &[message]].concat());
    assert_eq!(ended.code, Some(0), "{ended}");
    ended
}

/// The messages of the first request to the model with this text.
fn told(world: &World, text: &str) -> Vec<String> {
    let request = world.requests_with(text).into_iter().next().expect("the model is told");
    let request: Value = serde_json::from_str(&request).expect("JSON");
    let of = |message: &Value| format!("{}: {}", message["role"].as_str().unwrap_or_default(), message["content"]);
    request["messages"].as_array().expect("messages").iter().map(of).collect()
}

#[test]
fn mondays_work_is_known_on_tuesday_however_the_watch_ended() {
    let world = World::new(|root| {
        [
            plays(
                "ada",
                &[&create(&root.join("api.txt"), "endpoint\n"), &decide("Errors are JSON"), "say:It is there."],
            ),
            plays("bob", &["say:Tested."]),
        ]
    });
    let mut watch = watched(&world);
    let monday = orchestrate(&world, "@ada add the lighthouse endpoint");
    let session = monday.only("session.created");
    assert_eq!((&session["session"], &session["warm"]), (&json!("squad-ada"), &json!(true)), "{monday}");
    assert_eq!(monday.of("decision.landed").len(), 1, "{monday}");
    assert!(!world.requests_with("Times are UTC").is_empty(), "what is chosen for the task is told");
    signal(watch.id(), "KILL");
    watch.end();
    world.settle();

    // Its session is there again, and knows its turns; what it was told then is not told again.
    watch = opens(&world, ["resumed", "created"]);
    let tuesday = orchestrate(&world, "@ada add the harbour endpoint");
    assert_eq!(tuesday.only("session.created")["warm"], true, "{tuesday}");
    let heard = told(&world, "the harbour endpoint");
    let place = |text: &str| heard.iter().position(|message| message.contains(text)).expect(text);
    assert!(place("@ada add the lighthouse endpoint") < place("It is there."), "{heard:#?}");
    assert!(place("It is there.") < place("A new task begins here"), "{heard:#?}");
    assert_eq!(heard.concat().matches("Times are UTC").count(), 1, "{heard:#?}");
    // Another agent, and a reviewer, have none of it.
    orchestrate(&world, "@bob check the pier");
    assert!(!told(&world, "check the pier").concat().contains("lighthouse"));
    let reviewed = world.run(&[&ORCHESTRATE[..], &["@ada paint the buoy, reviewed by @bob"]].concat());
    let of_bob = reviewed.first_of("session.created", "bob");
    assert_ne!(of_bob["session"], "squad-bob", "{reviewed}");
    assert!(!told(&world, "Review what your colleagues did").concat().contains("check the pier"), "{reviewed}");
    assert!(told(&world, "paint the buoy").concat().contains("harbour"), "ada's goes on");

    // On Wednesday its history is gone, and squad's record is in its place.
    signal(watch.id(), "INT");
    watch.end();
    world.settle();
    fs::remove_dir_all(world.repo.root().join(".git/squad/homes")).expect("a folder");
    watch = world.start(&["watch", "--json"]);
    watch.wait_for(&["session.error", "squad-ada"]);
    watch.wait_for(&["session.created", "\"agent\":\"bob\""]);
    orchestrate(&world, "@ada light the lamp");
    let heard = told(&world, "light the lamp").concat();
    assert!(heard.contains("squad has recorded of your last task"), "{heard}");
    assert!(heard.contains("paint the buoy") && heard.contains("Outcome: completed"), "{heard}");
    assert!(!heard.contains("A new task begins here"), "{heard}");
    // A fresh one knows nothing, and the standing one is not touched.
    let fresh = world.run(&[&ORCHESTRATE[..], &["--fresh", "@ada dig the well"]].concat());
    assert_ne!(fresh.only("session.created")["session"], "squad-ada", "{fresh}");
    let heard = told(&world, "dig the well").concat();
    assert!(!heard.contains("light the lamp") && !heard.contains("paint the buoy"), "{heard}");
    signal(watch.id(), "INT");
    let ended = watch.end();
    assert_eq!(ended.code, Some(0), "{ended}");
    world.settle();
}

/// What is done in another work tree has not happened in this one: no session is told it, nor does it stand in the place of
/// a history that is gone.
#[test]
fn work_in_another_work_tree_is_told_to_nobody_here() {
    let world = World::new(|_| {
        [plays("ada", &["say:Explained."]), plays("bob", &[&shell("pwd > $(basename $PWD).txt"), "say:Written."])]
    });
    world.repo.write(".squad/config.toml", "[sessions]\nstanding = true\n");
    world.repo.git(&["add", ".squad"]);
    world.repo.git(&["commit", "--quiet", "--message=standing", "--", ".squad"]);
    world.repo.git(&["worktree", "add", "--quiet", "-b", "side", "../side"]);
    orchestrate(&world, "@ada explain the pier");
    for folder in [".", "../side"] {
        let ended = world.run(&[&ORCHESTRATE[..], &["-C", folder, "@bob write the file"]].concat());
        assert_eq!(ended.code, Some(0), "{ended}");
    }
    let there = world.run(&[&ORCHESTRATE[..], &["-C", "../side", "@ada explain the lamp"]].concat());
    assert_eq!(there.only("session.created")["session"], "squad-ada", "{there}");
    let heard = told(&world, "explain the lamp").concat();
    assert!(!heard.contains("the pier") && !heard.contains("has changed"), "{heard}");
    let here = orchestrate(&world, "@ada explain the buoy");
    assert_eq!(here.only("session.resumed")["session"], "squad-ada", "{here}");
    let heard = told(&world, "explain the buoy").concat();
    assert!(heard.contains("the pier") && heard.contains("`bob` has changed `repo.txt` since"), "{heard}");
    assert!(!heard.contains("the lamp") && !heard.contains("side.txt"), "{heard}");
    // The last task of ada's was in the other one.
    orchestrate(&world, "@bob write the file");
    let there = world.run(&[&ORCHESTRATE[..], &["-C", "../side", "@ada explain the lens"]].concat());
    assert_eq!(there.code, Some(0), "{there}");
    fs::remove_dir_all(world.repo.root().join(".git/squad/homes")).expect("a folder");
    orchestrate(&world, "@ada explain the gull");
    let heard = told(&world, "explain the gull").concat();
    assert!(heard.contains("Task: @ada explain the buoy") && !heard.contains("the lens"), "{heard}");
    world.settle();
}

/// A hundred tasks through one session, with a context window for about ten of them.
#[test]
fn a_session_that_is_compacted_stays_as_small_and_knows_what_is_decided() {
    const TASKS: usize = 100;
    let mut world = World::new(|_| [plays("ada", &["say:Done."])]);
    world.repo.variables.insert("COPILOT_PROVIDER_MAX_PROMPT_TOKENS".to_owned(), "30000".to_owned());
    let watch = watched(&world);
    let memory = || {
        let status = fs::read_to_string(format!("/proc/{}/status", watch.id())).expect("Linux");
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("its memory");
        line.trim_end_matches("kB").trim().parse::<usize>().expect("a number")
    };
    let story = "a long story of the sea ".repeat(150);
    let (mut bytes, mut kilobytes, mut seen) = (Vec::new(), Vec::new(), 0);
    for number in 0..TASKS {
        let ended = orchestrate(&world, &format!("@ada explain pier number {number}. {story}"));
        assert_eq!(ended.only("session.created")["session"], "squad-ada", "{ended}");
        let requests = world.model.requests();
        let of_task = requests[seen..].iter().filter(|request| request["messages"].to_string().contains("pier number"));
        bytes.push(of_task.map(|request| request.to_string().len()).max().expect("the model is asked"));
        seen = requests.len();
        kilobytes.push(memory());
    }
    let compacted = world.ledger("session.compacted").len();
    let (early, late) = bytes.split_at(TASKS / 2);
    let most = |of: &[usize]| of.iter().copied().max().expect("some");
    let figures = format!("{compacted} compactions; bytes of a call {bytes:?}; squad's memory in kB {kilobytes:?}");
    println!("{figures}");
    assert!(compacted >= 4 && most(late) * 10 <= most(early) * 11, "{figures}");
    let (early, late) = kilobytes.split_at(TASKS / 2);
    assert!(most(late) * 10 <= most(early) * 11, "{figures}");
    // Whatever a summary leaves out.
    let heard = told(&world, &format!("pier number {}.", TASKS - 1)).concat();
    assert!(heard.contains("Times are UTC"), "{heard}");
    drop(watch);
    world.settle();
}

/// Each file of what an engine stores, cut in the middle, overwritten, of another release, or gone: the agent has its
/// history, or squad's record of it.
#[test]
fn a_torn_session_is_resumed_or_replaced() {
    let claude: fn() -> World = || world_of("", |_| [plays("ada", &["say:Done."])]);
    let codex = || {
        let mut world = World::new(|_| [plays("ada", &["say:Done."])]);
        on_codex(&mut world, &[], "gpt-5.3-codex");
        world
    };
    for (engine, world) in [
        ("copilot", (|| World::new(|_| [plays("ada", &["say:Done."])])) as fn() -> World),
        ("claude", claude),
        ("codex", codex),
    ] {
        resumed_after(engine, world, "cut", |bytes| Some(bytes[..bytes.len() / 2].to_vec()));
        resumed_after(engine, world, "no JSON", |_| Some(b"{\0garbage\n".to_vec()));
        resumed_after(engine, world, "empty", |_| Some(Vec::new()));
        resumed_after(engine, world, "gone", |_| None);
        // As another release may write it: with its own number, and with messages in a form that this one does not know.
        resumed_after(engine, world, "of another release", |bytes| {
            let mut text = String::from_utf8_lossy(bytes).into_owned();
            for key in ["copilotVersion", "version", "cli_version"] {
                text = text.replace(&format!("\"{key}\":\""), &format!("\"{key}\":\"99."));
            }
            Some(
                text.replace("\"role\":\"assistant\"", "\"role\":\"agent\"")
                    .replace("\"assistant.message\"", "\"agent.message\"")
                    .into(),
            )
        });
    }
}

fn resumed_after(engine: &str, world: fn() -> World, damage: &str, write: fn(&[u8]) -> Option<Vec<u8>>) {
    let world = world();
    world.repo.write(".squad/config.toml", "[sessions]\nstanding = true\n");
    orchestrate(&world, "@ada explain the pier endpoint");
    let mut files = Vec::new();
    let mut folders =
        vec![world.repo.root().join(".git/squad/homes"), PathBuf::from(&world.repo.variables["HOME"]).join(engine)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.path() {
                path if entry.file_type().expect("a type").is_dir() => folders.push(path),
                path if path.display().to_string().contains("squad-ada") => files.push(path),
                path if path.extension().is_some_and(|end| end == "jsonl") => files.push(path),
                _ => {}
            }
        }
    }
    assert!(!files.is_empty(), "{engine}");
    for file in files {
        let bytes = fs::read(&file).expect("a file");
        match write(&bytes) {
            Some(other) => fs::write(&file, other).expect("a file"),
            None => fs::remove_file(&file).expect("a file"),
        }
    }
    let second = orchestrate(&world, "@ada explain the harbour endpoint");
    let heard = world.requests_with("the harbour endpoint").concat();
    for text in ["the pier endpoint", "Times are UTC"] {
        assert!(heard.contains(text), "{engine}, {damage}: {second}\n{heard}");
    }
    world.settle();
}

#[test]
fn a_single_run_uses_the_standing_session_where_the_settings_say_so() {
    let world = World::new(|_| [plays("ada", &["say:Done."])]);
    let alone = orchestrate(&world, "@ada explain the lighthouse endpoint");
    assert_ne!(alone.only("session.created")["session"], "squad-ada", "{alone}");
    world.repo.write(".squad/config.toml", "[sessions]\nstanding = true\n");
    let first = orchestrate(&world, "@ada explain the pier endpoint");
    assert_eq!(first.only("session.created")["session"], "squad-ada", "{first}");
    let second = orchestrate(&world, "@ada explain the harbour endpoint");
    assert_eq!(second.only("session.resumed")["session"], "squad-ada", "{second}");
    let heard = told(&world, "the harbour endpoint").concat();
    assert!(heard.contains("the pier endpoint") && !heard.contains("lighthouse"), "{heard}");
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
    let watch = opens(&world, ["resumed", "created"]);
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
    let status = fs::read_to_string(format!("/proc/{}/status", watch.id())).expect("Linux");
    println!(
        "{:?}",
        status.lines().filter(|line| line.starts_with("VmRSS") || line.starts_with("VmHWM")).collect::<Vec<_>>()
    );
}
