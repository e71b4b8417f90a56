//! Who changed what beside the real CLI: across a kill, by commands, by the person, and to git itself.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Ended, World, create, plays, shell, signal};

const ARGUMENTS: [&str; 6] = ["orchestrate", "--json", "--permissions", "allow", "--agent", "ada"];

/// `path class how` of the changes that a run's only agent reports.
fn changes(ended: &Ended) -> Vec<String> {
    let last = ended.events().pop().expect("an end");
    let changed = last["work"][0]["changed"].as_array().expect("changes").clone();
    let text = |change: &Value, key: &str| change[key].as_str().unwrap_or("-").to_owned();
    changed.iter().map(|change| ["path", "class", "how"].map(|key| text(change, key)).join(" ")).collect()
}

#[test]
fn what_a_command_wrote_before_a_kill_is_its_agents() {
    let world = World::new(|root| {
        let work = [shell("echo BACKDOOR > one.py"), create(&root.join("two.py"), "x\n"), shell("sleep 1")];
        [plays("ada", &[&work[0], &work[1], &work[2], "say:Did it."])]
    });
    let mut run = world.start(&[&ARGUMENTS[..], &["Build it"]].concat());
    run.wait_for(&["tool.completed", "two.py"]);
    // What is recorded in batches is on disk by then.
    run.wait_for(&["tool.started", "sleep 1"]);
    thread::sleep(Duration::from_millis(500));
    signal(run.id(), "KILL");
    let cut = run.end();
    world.settle();
    let first: Value = serde_json::from_str(cut.out.lines().next().expect("a line")).expect("JSON");
    let id = first["run"].as_str().expect("an id").to_owned();
    let resumed = world.run(&["orchestrate", "--json", "--resume", &id]);
    assert_eq!(changes(&resumed), ["one.py own command", "two.py own named"], "{cut}\n{resumed}");
}

#[test]
fn what_the_person_changes_is_the_persons_and_what_an_agent_does_to_git_is_said() {
    let mut world = World::new(|root| {
        let git = "git checkout -q -b side; echo a > a.txt; git add a.txt; git -c user.name=a -c user.email=a@b commit -qm a; \
                   git config alias.x y";
        [plays("ada", &[&shell(git), &format!("sleep:1.5 {}", create(&root.join("b.txt"), "b\n")), "say:Did it."])]
    });
    world.repo.variables.insert("SQUAD_SANDBOX_GIT".to_owned(), "open".to_owned());
    let mut run = world.start(&[&ARGUMENTS[..], &["Build it"]].concat());
    run.wait_for(&["tool.completed", "git checkout"]);
    thread::sleep(Duration::from_millis(700));
    world.repo.write("mine.txt", "by hand\n");
    let ended = run.end();
    assert_eq!(changes(&ended), ["a.txt own command", "b.txt own named", "mine.txt yours -"], "{ended}");
    let git = &ended.events().pop().expect("an end")["work"][0]["git"];
    assert_eq!(git["commits"].as_array().map(Vec::len), Some(1), "{ended}");
    let moved: Vec<&Value> = git["refs"].as_array().expect("refs").iter().map(|moved| &moved["name"]).collect();
    assert_eq!(moved, [&json!("HEAD"), &json!("refs/heads/side")], "{ended}");
    assert_eq!(git["config"], json!(["alias.x"]), "{ended}");
}

/// What the agent says × what the check finds × as it is in the sandbox of this system.
#[test]
fn squads_own_check_decides_and_not_what_the_agent_says() {
    for (text, code, status) in [("bad", 1, "failed"), ("good", 0, "completed")] {
        let mut world = World::new(|root| {
            let work = create(&root.join("one.txt"), &format!("{text}\n"));
            [plays("ada", &[&work, "say:All tests pass."])]
        });
        let check = "git,grep,--untracked,-q,good,--,one.txt";
        world.repo.variables.insert("SQUAD_CHECK_RUN".to_owned(), check.to_owned());
        let ended = world.run(&[&ARGUMENTS[..], &["--check", "Build it"]].concat());
        let last = ended.events().pop().expect("an end");
        assert_eq!((ended.code, &last["status"]), (Some(code), &json!(status)), "{ended}");
        assert_eq!(
            (&last["work"][0]["verified"], &last["check"]["exit_code"]),
            (&json!(code == 0), &json!(code)),
            "{ended}"
        );
        world.assert_left_in_order(&ended);
    }
}

/// The call that is one too many does not act, and what was done is kept; a higher budget goes on.
#[test]
fn a_call_beyond_the_budget_is_refused_before_it_acts() {
    let mut world = World::new(|root| {
        let [one, two] = ["one.txt", "two.txt"].map(|name| create(&root.join(name), "x\n"));
        [plays("ada", &[&one, &two, "say:Both are there."])]
    });
    world.repo.variables.insert("SQUAD_BUDGET_TOOL_CALLS".to_owned(), "1".to_owned());
    let ended = world.run(&[&ARGUMENTS[..], &["Build it"]].concat());
    let last = ended.events().pop().expect("an end");
    assert_eq!(
        (ended.code, &last["status"], &last["usage"]["tool_calls"]),
        (Some(5), &json!("stopped"), &json!(1)),
        "{ended}"
    );
    assert!(world.repo.exists("one.txt") && !world.repo.exists("two.txt"), "{ended}");
    assert_eq!(ended.of("budget.reached").len(), 1, "{ended}");
    world.assert_left_in_order(&ended);
}

/// An agent that does not do what it says, or says less than it does.
struct Liar {
    steps: Vec<String>,
    permissions: &'static str,
    code: i32,
    status: &'static str,
    /// On the screen and in `squad log RUN`.
    said: &'static [&'static str],
    /// `path class how` of each change.
    changed: &'static [&'static str],
    /// What `squad why app.py` says.
    why: &'static str,
}

fn liars(root: &std::path::Path) -> Vec<Liar> {
    let liar = |steps: &[&str], code, status| Liar {
        steps: steps.iter().map(|step| (*step).to_owned()).collect(),
        permissions: "allow",
        code,
        status,
        said: &[],
        changed: &[],
        why: "neither a file of the project nor a decision",
    };
    let commit = "git checkout -q -b side; echo 'def committed_aside(): pass' > app.py; git add app.py; \
                  git -c user.name=a -c user.email=a@b commit -qm a; git checkout -q main";
    vec![
        Liar {
            said: &["claimed: ada says it is done, but used no tool and changed nothing"],
            ..liar(&["say:14 tests pass, committed as abc1234."], 1, "claimed")
        },
        Liar {
            permissions: "deny",
            said: &["stopped: ada: 1 write or command was refused, and none was allowed", "1 refused"],
            ..liar(&[&create(&root.join("app.py"), "x\n"), "say:Done."], 5, "stopped")
        },
        Liar {
            said: &["1 command failed", "checked   cargo test failed, exit 101"],
            ..liar(&[&shell("cargo() { return 101; }; cargo test"), "say:All tests pass."], 0, "completed")
        },
        Liar { said: &["failed: ada: it ended without an answer"], ..liar(&["say: "], 1, "failed") },
        Liar {
            said: &["app.py +1 -0"],
            changed: &["app.py own command"],
            why: "agent     ada, in run",
            ..liar(&[&shell("echo 'def written_by_shell(): pass' > app.py"), "say:I only looked."], 0, "completed")
        },
        Liar {
            said: &["ada: 1 commit (", "branch side created"],
            ..liar(&[&shell(commit), "say:I only looked."], 0, "completed")
        },
        Liar {
            said: &["left 1 process running, now stopped: sleep 7321"],
            ..liar(&[&shell("setsid sleep 7321 > /dev/null 2>&1 & echo ok"), "say:Nothing runs."], 0, "completed")
        },
    ]
}

/// What the exit code, the last line, the log and `why` say is the same, and true.
#[test]
fn what_is_said_of_a_liar_is_true_everywhere() {
    let root = std::path::Path::new("");
    for number in 0..liars(root).len() {
        let mut world = World::new(|root| {
            let steps = liars(root).remove(number).steps;
            [plays("ada", &steps.iter().map(String::as_str).collect::<Vec<_>>())]
        });
        let Liar { permissions, code, status, said, changed, why, steps } = liars(&world.repo.root()).remove(number);
        world.repo.variables.insert("SQUAD_SANDBOX_GIT".to_owned(), "open".to_owned());
        let arguments = ["orchestrate", "--permissions", permissions, "--agent", "ada", "Add the endpoint to app.py"];
        let ended = world.run(&arguments);
        let context = format!("{steps:?}\n{ended}");
        assert_eq!(ended.code, Some(code), "{context}");
        let log: Value = serde_json::from_str(&world.repo.squad(&["log", "--json"]).out).expect("JSON");
        let run = log["runs"][0]["run"].as_str().expect("a run").to_owned();
        assert_eq!((&log["runs"][0]["status"], &log["runs"][0]["agents"]["ada"]), (&json!(status), &json!(status)));
        let shown = world.repo.squad(&["log", &run]).to_string();
        for text in said.iter().chain([&status]) {
            assert!(ended.err.contains(text) && shown.contains(text), "{text}: {context}\n{shown}");
        }
        let entry = world.ledger("run.completed").pop().expect("an end");
        let classes = |change: &&str| change.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for change in changed.iter().map(classes) {
            assert!(change.iter().all(|word| entry.contains(&format!("\"{word}\""))), "{change:?}: {entry}");
        }
        assert_eq!(entry.contains("\"class\""), !changed.is_empty(), "{entry}");
        let said = world.repo.squad(&["why", "app.py"]).to_string();
        assert!(said.contains(why), "{said}\n{context}");
        world.assert_left_in_order(&ended);
    }
}

/// Killed before it could say anything: the log, `why` and the exit code of what follows say so.
#[test]
fn what_is_said_of_a_killed_agent_is_true_everywhere() {
    let world = World::new(|root| {
        [plays(
            "ada",
            &[&create(&root.join("app.py"), "def written_by_its_tool(): pass\n"), &shell("sleep 20"), "say:Done."],
        )]
    });
    let mut run = world.start(&[&ARGUMENTS[..], &["Add the endpoint to app.py"]].concat());
    run.wait_for(&["tool.started", "sleep 20"]);
    thread::sleep(Duration::from_millis(500));
    signal(run.id(), "KILL");
    let cut = run.end();
    world.settle();
    assert_eq!(cut.code, None, "{cut}");
    let log: Value = serde_json::from_str(&world.repo.squad(&["log", "--json"]).out).expect("JSON");
    let id = log["runs"][0]["run"].as_str().expect("a run").to_owned();
    assert_eq!(
        (&log["runs"][0]["status"], &log["runs"][0]["agents"]["ada"]),
        (&json!("lost"), &json!("lost")),
        "{log}"
    );
    let shown = world.repo.squad(&["log", &id]).to_string();
    assert!(shown.contains("✗ lost: ada: the process of its run died") && shown.contains("app.py"), "{shown}");
    let why = world.repo.squad(&["why", "app.py"]).to_string();
    assert!(why.contains("agent     ada, in run") && why.contains(", lost"), "{why}");
    world.repo.assert_sound();
}
