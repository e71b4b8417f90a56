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
