//! Who changed what beside the real CLI: across a kill, by commands, by the person, and to git itself.

use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::copilot_cli;
use crate::model_server::Script;
use crate::support::{COORDINATOR, Ended, World, call, create, plays, shell, signal};

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

/// What an agent does and then says is done, and what is told of it.
struct Lie {
    steps: fn(&Path) -> Vec<String>,
    mode: &'static str,
    code: i32,
    status: &'static str,
    /// The run's word in lists.
    word: &'static str,
    /// Parts of the end card.
    card: &'static [&'static str],
    /// `path class how`
    changed: &'static [&'static str],
}

const LIE: &str = "say:14 tests pass, committed as abc1234.";

/// Agents that say the same of different work: exit code, last line, log, status, why and JSON say what it was.
#[test]
fn what_an_agent_claims_is_told_nowhere_in_place_of_what_it_did() {
    let lies = [
        Lie {
            steps: |_| vec![LIE.to_owned()],
            mode: "allow",
            code: 1,
            status: "claimed",
            word: "claimed",
            card: &["✗ claimed: ada says it is done, but used no tool and changed nothing"],
            changed: &[],
        },
        Lie {
            steps: |root| vec![create(&root.join("a.txt"), "x\n"), LIE.to_owned()],
            mode: "deny",
            code: 5,
            status: "stopped",
            word: "stopped",
            card: &["! stopped: ada: ", "1 write"],
            changed: &[],
        },
        Lie {
            steps: |_| vec![shell("make test"), LIE.to_owned()],
            mode: "allow",
            code: 0,
            status: "completed",
            word: "check failed",
            card: &["make test failed, exit 2", "1 command failed"],
            changed: &[],
        },
        Lie {
            // It is asked again.
            steps: |_| vec!["say: ".to_owned(); 8],
            mode: "allow",
            code: 1,
            status: "failed",
            word: "failed",
            card: &["✗ failed: ada: "],
            changed: &[],
        },
        Lie {
            steps: |_| vec![shell("mkdir app\necho BACKDOOR > app/one.py"), LIE.to_owned()],
            mode: "allow",
            code: 0,
            status: "completed",
            word: "completed",
            card: &["app/one.py +1 -0", "unverified"],
            changed: &["app/one.py own command"],
        },
        Lie {
            steps: |_| {
                let commit = "git -c user.name=a -c user.email=a@b commit -qm a";
                vec![shell(&format!("echo x > a.txt; git add a.txt; {commit} a.txt")), LIE.to_owned()]
            },
            mode: "allow",
            code: 0,
            status: "completed",
            word: "completed",
            card: &["a.txt +1 -0", "git        ada: 1 commit ("],
            changed: &["a.txt own command"],
        },
        Lie {
            steps: |_| vec![shell("setsid sleep 7314 > /dev/null 2>&1 & echo started"), LIE.to_owned()],
            mode: "allow",
            code: 0,
            status: "completed",
            word: "completed",
            card: &["left 1 process running, now stopped: sleep 7314"],
            changed: &[],
        },
    ];
    for lie in lies {
        let mut world = World::new(|root| {
            let steps = (lie.steps)(root);
            [plays("ada", &steps.iter().map(String::as_str).collect::<Vec<_>>())]
        });
        world.repo.variables.insert("SQUAD_SANDBOX_GIT".to_owned(), "open".to_owned());
        let ended = world.run(&["orchestrate", "--permissions", lie.mode, "--agent", "ada", "Add tests for the login"]);
        assert_eq!(ended.code, Some(lie.code), "{ended}");
        let last = assert_told_alike(&world, &lie, Some(&ended));
        assert_eq!(last["status"], lie.status, "{ended}");
        world.assert_left_in_order(&ended);
    }
}

/// The same of a run whose process is killed, and of its resumption.
#[test]
fn what_a_killed_agent_did_is_told_alike() {
    let mut lie = Lie {
        steps: |root| vec![shell("echo BACKDOOR > one.py"), create(&root.join("two.py"), "x\n"), shell("sleep 20")],
        mode: "allow",
        code: 1,
        status: "lost",
        word: "lost",
        card: &["✗ lost: ada: the process of its run died"],
        changed: &["one.py own command", "two.py own named"],
    };
    let world = World::new(|root| {
        let steps = (lie.steps)(root);
        [plays("ada", &[&steps[0], &steps[1], &steps[2], LIE])]
    });
    let mut run = world.start(&[&ARGUMENTS[..], &["Add tests for the login"]].concat());
    run.wait_for(&["tool.completed", "two.py"]);
    run.wait_for(&["tool.started", "sleep 20"]);
    signal(run.id(), "KILL");
    run.end();
    world.settle();
    assert_told_alike(&world, &lie, None);
    let log: Value = serde_json::from_str(&world.run(&["log", "--json"]).out).expect("JSON");
    let id = log["runs"][0]["run"].as_str().expect("a run").to_owned();
    let resumed = world.run(&["orchestrate", "--resume", &id]);
    assert_eq!(resumed.code, Some(0), "{resumed}");
    (lie.word, lie.card) = ("completed", &["one.py", "two.py"]);
    assert_told_alike(&world, &lie, Some(&resumed));
}

/// The newest run is told alike on all screens. Returns what is recorded at its end.
fn assert_told_alike(world: &World, lie: &Lie, ended: Option<&Ended>) -> Value {
    let runs = world.run(&["log", "--json"]);
    let id =
        serde_json::from_str::<Value>(&runs.out).expect("JSON")["runs"][0]["run"].as_str().expect("a run").to_owned();
    let entries = world.run(&["log", &id, "--json"]);
    let mut entries = entries.out.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let last = entries.rfind(|entry| entry["type"] == "run.completed").expect("an end");
    let last = if last["payload"].is_object() { last["payload"].clone() } else { last };
    let story = world.run(&["log", &id]);
    let screens = ended.map(|ended| &ended.err).into_iter().chain([&story.out]);
    for screen in screens {
        let shown = screen.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.contains(&format!("; run {}", short(&id))), "{screen}");
        for part in lie.card {
            let part = part.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(shown.contains(&part), "{part}: {screen}");
        }
    }
    for list in [world.run(&["log"]), world.run(&["status"])] {
        assert!(
            list.out.lines().any(|line| line.contains(short(&id)) && line.contains(lie.word)),
            "{}: {list}",
            lie.word
        );
    }
    let work = last["work"].as_array().expect("work").last().expect("a work").clone();
    let text = |change: &Value, key: &str| change[key].as_str().unwrap_or("-").to_owned();
    let changed = work["changed"].as_array().cloned().unwrap_or_default();
    let shown: Vec<String> =
        changed.iter().map(|change| ["path", "class", "how"].map(|key| text(change, key)).join(" ")).collect();
    assert_eq!(shown, lie.changed, "{last}");
    for change in &changed {
        let why = world.run(&["why", change["path"].as_str().expect("a path")]);
        assert!(why.out.contains("ada"), "{why}");
    }
    last
}

fn short(run: &str) -> &str {
    &run[run.len() - 6..]
}

/// Ways to ask for a review, each with what the reviewer says: by its tool or in its report.
#[test]
fn what_a_reviewer_rejects_never_succeeds_however_it_is_asked() {
    let tool = call("squad_verdict", &json!({ "approved": false, "reasons": "It is a backdoor." }));
    for (message, verdict) in [
        ("@ada adds the endpoint, then @cy reviews it", &[tool.as_str(), "say:Rejected."][..]),
        ("@ada adds the endpoint; once it is done @cy reviews it", &["say:It is a backdoor.\n\nVERDICT: rejected"]),
        ("Have @ada add the endpoint and get it reviewed by @cy", &[tool.as_str(), "say:Rejected."]),
        ("@cy should look over what @ada adds to the endpoint", &["say:VERDICT: rejected\n\nIt is a backdoor."]),
    ] {
        let world = World::new(|_| {
            let touch = shell("touch review.txt");
            let review: Vec<&str> = [touch.as_str()].into_iter().chain(verdict.iter().copied()).collect();
            [
                plays("ada", &[&shell("echo BACKDOOR > one.py"), "say:Added."]),
                plays("cy", &review),
                Script::new(COORDINATOR, [r#"say:{"agents": [], "reason": "nobody knows it"}"#]),
            ]
        });
        let ended = world.run(&["orchestrate", "--json", "--permissions", "allow", message]);
        let last = ended.events().pop().expect("an end");
        assert_eq!((ended.code, &last["status"]), (Some(1), &json!("failed")), "{message}: {ended}");
        assert_eq!(ended.only("review.verdict")["verdict"], "rejected", "{message}: {ended}");
        assert!(!world.repo.exists("review.txt"), "a reviewer changes nothing: {ended}");
        let shown = world.model.requests().iter().any(|request| request.to_string().contains("> +BACKDOOR"));
        assert!(shown, "the reviewer sees the lines: {ended}");
    }
}

/// On the screen, with and without `-v`, and in the log.
#[test]
fn nothing_of_a_command_is_hidden_on_its_second_line() {
    for more in [&[][..], &["-v"]] {
        let command = "mkdir app\necho BACKDOOR > app/one.py\n# three\n# four\n# five";
        let world = World::new(|_| [plays("ada", &[&shell(command), "say:Did it."])]);
        let run = ["orchestrate", "--permissions", "allow", "--agent", "ada", "Build it"];
        let ended = world.run(&[&run[..], more].concat());
        let lines = |screen: &str| screen.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>();
        let shown = |screen: &str, wanted: &[&str]| {
            let lines = lines(screen);
            lines.windows(wanted.len()).any(|window| window.iter().zip(wanted).all(|(line, end)| line.ends_with(end)))
        };
        let all = ["mkdir app", "echo BACKDOOR > app/one.py", "# three", "# four", "# five"];
        let beginning = [&all[..3], &["… 2 more lines; -v shows them"]].concat();
        assert!(shown(&ended.err, if more.is_empty() { &beginning } else { &all }), "{ended}");
        let log: Value = serde_json::from_str(&world.run(&["log", "--json"]).out).expect("JSON");
        let id = log["runs"][0]["run"].as_str().expect("a run").to_owned();
        let log = world.run(&["log", &id, "--events"]);
        assert!(shown(&log.out, &all), "{log}");
    }
}

/// Killed, and on a disk that is full: who was at work is lost, who never began is skipped, and the run goes on.
#[test]
fn a_run_without_a_recorded_end_goes_on() {
    for is_killed in [true, false] {
        let world = World::new(|_| {
            [
                plays("ada", &[&shell("echo once >> ada.txt"), "sleep:2 say:There."]),
                plays("bob", &[&shell("echo once >> bob.txt"), "say:Tested."]),
                plays("cy", &[&shell("echo once >> cy.txt"), "say:Documented."]),
                Script::new(COORDINATOR, ["say:All are done."]),
            ]
        });
        let message = "First @ada adds the endpoint, then @bob tests it, after that @cy documents it";
        let mut run = world.start(&["orchestrate", "--json", "--permissions", "allow", message]);
        run.wait_for(&["tool.completed", "ada.txt"]);
        // Takes the place of a full disk: nothing can be appended. It may be there for a moment.
        let draft = world.repo.root().join(".git/squad/ledger.ref");
        if is_killed {
            signal(run.id(), "KILL");
        } else {
            while std::fs::create_dir_all(draft.join("full")).is_err() {}
        }
        let cut = run.end();
        world.settle();
        if !is_killed {
            assert_eq!(cut.code, Some(1), "{cut}");
            std::fs::remove_dir_all(draft).expect("it is there");
        }
        let first: Value = serde_json::from_str(cut.out.lines().next().expect("a line")).expect("JSON");
        let id = first["run"].as_str().expect("an id").to_owned();
        let newest = || {
            let log: Value = serde_json::from_str(&world.run(&["log", "--json"]).out).expect("JSON");
            log["runs"][0].clone()
        };
        // Whatever writes records the end.
        world.run(&["decisions", "add", "Errors are JSON"]);
        let (status, agents) = (&newest()["status"], &newest()["agents"]);
        let expected = json!({ "ada": "lost", "bob": "skipped", "cy": "skipped" });
        assert_eq!((status, agents), (&json!("lost"), &expected), "{cut}");
        let resumed = world.run(&["orchestrate", "--json", "--resume", &id]);
        assert_eq!(resumed.code, Some(0), "{is_killed}: {cut}\n{resumed}");
        assert_eq!(newest()["status"], "completed", "{resumed}");
        // The shell's end may not have been known; then its repetition is named.
        let named = resumed.of("session.error").iter().any(|event| event.to_string().contains("the outcome of"));
        let written = ["ada.txt", "bob.txt", "cy.txt"].map(|name| world.repo.read(name));
        assert!(written.iter().all(|text| text == "once\n") || named, "{is_killed} {written:?} {cut} {resumed}");
        world.repo.assert_sound();
    }
}

/// How often it is killed before it is ready × whether the run goes on.
#[test]
fn a_cli_that_is_killed_while_it_starts_is_started_again_twice() {
    for (kills, code) in [(1, 0), (2, 0), (3, 4)] {
        let mut world = World::new(|_| [plays("ada", &[&shell("echo x > one.txt"), "say:Did it."])]);
        // A kill from outside may come too late, or meet a child of the program that is not another yet.
        let killed = format!(
            "#!/bin/sh\nfor n in $(seq {kills}); do mkdir \"$0.$n\" 2>/dev/null && kill -KILL $$; done\n\
             exec '{}' \"$@\"\n",
            copilot_cli::program().display()
        );
        world.repo.write(".git/info/exclude", "/cli/\n");
        world.repo.write_script("cli/copilot-runtime", &killed);
        let path = world.repo.root().join("cli/copilot-runtime");
        world.repo.variables.insert("COPILOT_CLI_PATH".to_owned(), path.display().to_string());
        let ended = world.run(&[&ARGUMENTS[..], &["Build it"]].concat());
        assert_eq!(ended.code, Some(code), "{kills}: {ended}");
        assert_eq!(ended.of("connection.lost").len(), kills.min(2), "{ended}");
        assert_eq!(ended.of("engine.started").len(), usize::from(code == 0), "killed before it was ready: {ended}");
        let events = ended.events();
        assert_eq!(events.last().expect("an end")["type"], "run.completed", "{ended}");
        world.assert_left_in_order(&ended);
    }
}
