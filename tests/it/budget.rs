//! What a run may spend: nothing beyond it happens, the work is kept, and a higher budget lets it go on.

use serde_json::{Value, json};

use crate::support::{Output, TestRepo};

/// What each does, and does when it is asked again.
const WORK: &str = r#"
[[turn]]
agent = "ada"
steps = [{ wait = "10s" }, { write = "a.txt", text = "a\n" }, { wait = "10s" }, { write = "b.txt", text = "b\n" }, { say = "Two." }]
[[turn]]
agent = "bob"
steps = [{ wait = "10s" }, { write = "c.txt", text = "c\n" }, { say = "One." }]
[[turn]]
agent = "ada"
steps = [{ wait = "10s" }, { write = "d.txt", text = "d\n" }, { say = "Another." }]
[[turn]]
agent = "bob"
steps = [{ wait = "10s" }, { write = "e.txt", text = "e\n" }, { say = "One more." }]
[[turn]]
agent = "ada"
steps = [{ wait = "10s" }, { write = "f.txt", text = "f\n" }, { say = "The rest." }]
[[turn]]
agent = "bob"
steps = [{ wait = "10s" }, { write = "g.txt", text = "g\n" }, { say = "The last." }]
[[turn]]
agent = "coordinator"
steps = [{ say = "All is there." }]
[[turn]]
agent = "coordinator"
steps = [{ say = "All is there." }]
"#;

const MESSAGE: &str = "First @ada adds the files, then @bob adds one";

fn budget(repo: &TestRepo, name: &str, value: &str) {
    assert_eq!(repo.squad(&["config", "set", "--user", name, value]).code, 0);
}

fn run(repo: &TestRepo, arguments: &[&str]) -> (Output, Vec<Value>) {
    let output = repo.rehearse(WORK, &[&["--permissions", "allow", "--json"], arguments].concat());
    let events = TestRepo::events(&output);
    (output, events)
}

fn files(repo: &TestRepo) -> String {
    ["a", "b", "c", "d", "e", "f", "g"].into_iter().filter(|name| repo.exists(&format!("{name}.txt"))).collect()
}

/// Each budget that is too small: what happens, what is left, and that a higher one goes on.
#[test]
fn at_the_limit_nothing_new_starts_and_a_higher_one_goes_on() {
    for (name, value, left, stopped, higher) in [
        ("budget.turns", "1", "ab", "bob", "9"),
        ("budget.tool_calls", "1", "a", "ada", "9"),
        ("budget.tool_calls", "2", "ab", "bob", "9"),
        ("budget.agent.tool_calls", "1", "a", "ada", "9"),
        ("budget.time", "15s", "a", "ada", "9m"),
        ("budget.time", "25s", "ab", "bob", "9m"),
        ("budget.agent.time", "15s", "a", "ada", "9m"),
    ] {
        let repo = TestRepo::with_small_team();
        budget(&repo, name, value);
        let (output, events) = run(&repo, &[MESSAGE]);
        assert_eq!((output.code, files(&repo).as_str()), (5, left), "{name} {value}: {output}");
        let reached: Vec<&Value> = events.iter().filter(|event| event["type"] == "budget.reached").collect();
        assert_eq!(reached.len(), 1, "{name}: {output}");
        assert_eq!(format!("budget.{}", reached[0]["budget"].as_str().expect("a name")), name);
        let is_of_agent = name.starts_with("budget.agent.");
        assert_eq!(reached[0]["agent"].is_null(), !is_of_agent, "{output}");
        let end = events.last().expect("an end");
        assert_eq!((&end["status"], &end["agents"][stopped]), (&json!("stopped"), &json!("stopped")), "{output}");
        let work = end["work"].as_array().expect("work").iter().find(|work| work["status"] == "stopped").expect("one");
        assert!(
            work["reason"].as_str().is_some_and(|reason| reason.ends_with(&format!("is used up (`{name}`)"))),
            "{work}"
        );
        if name.ends_with("tool_calls") {
            assert!(end["usage"]["tool_calls"].as_u64() <= value.parse().ok(), "{end}");
        }
        let run_id = end["run"].as_str().expect("a run").to_owned();
        // Nothing has changed: it stops at once, and nothing more is done.
        let (again, _) = run(&repo, &["--resume", &run_id]);
        assert_eq!((again.code, files(&repo).as_str()), (5, left), "{name}: {again}");
        budget(&repo, name, higher);
        let (resumed, events) = run(&repo, &["--resume", &run_id]);
        assert_eq!(resumed.code, 0, "{name} {value}: {resumed}");
        assert_eq!(events.last().expect("an end")["status"], "completed", "{resumed}");
        assert!(files(&repo).len() > left.len(), "{name}: {}", files(&repo));
    }
}

/// Tokens, cost and units × run, agent, day and repository × told and priced: after the model call that uses them up nothing
/// acts, in this run or the next.
#[test]
fn what_model_calls_use_up_stops_all_that_would_follow() {
    let user = "../home/config/squad/config.toml";
    let call = |cost: &str| format!("{{ usage = {{ input_tokens = 90, output_tokens = 10{cost} }} }}");
    for (name, value, cost, prices) in [
        ("tokens", "150", "", ""),
        ("cost_usd", "0.75", ", cost_usd = 0.5", ""),
        ("cost_usd", "0.75", "", "[prices.m-1]\ninput = 5000\noutput = 5000\n"),
        ("billed.credit", "15", ", billed = [{ unit = \"credit\", amount = 10 }]", ""),
    ] {
        let call = call(cost);
        let script = format!(
            "models = [\"m-1\"]\n[[turn]]\nagent = \"ada\"\n\
             steps = [{call}, {{ write = \"a.txt\", text = \"a\" }}, {call}, {{ write = \"b.txt\", text = \"b\" }}, {{ say = \"Two.\" }}]\n\
             [[turn]]\nagent = \"bob\"\nsteps = [{call}, {{ write = \"c.txt\", text = \"c\" }}, {{ say = \"One.\" }}]\n"
        );
        for (table, next) in [("", "c"), ("agent.", "c"), ("day.", ""), ("repository.", "")] {
            let repo = TestRepo::with_small_team();
            repo.write(user, &format!("{prices}[budget]\n{table}{name} = {value}\n"));
            let run = |agent: &str| {
                let output =
                    repo.rehearse(&script, &["--permissions", "allow", "--json", "--agent", agent, "Add files"]);
                (output.code, files(&repo), output)
            };
            let (code, left, output) = run("ada");
            assert_eq!((code, left.as_str()), (5, "a"), "{table}{name} {prices}: {output}");
            let end = TestRepo::events(&output).pop().expect("an end");
            let reason = end["work"][0]["reason"].as_str().unwrap_or_default().to_owned();
            assert!(reason.ends_with(&format!("is used up (`budget.{table}{name}`)")), "{reason}");
            let (code, left, output) = run("bob");
            let expected = if next.is_empty() { 5 } else { 0 };
            assert_eq!((code, left), (expected, format!("a{next}")), "{table}{name} {prices}: {output}");
        }
    }
}

/// A budget of what an engine does not tell is named before it is asked anything, and where it has not told it, at the end.
#[test]
fn a_budget_that_cannot_hold_is_named() {
    let names = json!(["budget.cost_usd", "budget.day.tokens"]);
    let repo = TestRepo::with_small_team();
    budget(&repo, "budget.day.tokens", "150");
    budget(&repo, "budget.cost_usd", "1");
    let output = repo.rehearse(WORK, &["--permissions", "allow", "--agent", "ada", "Add files"]);
    let says = "  `budget.cost_usd` and `budget.day.tokens` did not hold for ada: its engine does not tell it";
    assert!(output.code == 0 && output.err.contains(says), "{output}");
    let log = repo.squad(&["log", "--json"]);
    assert!(log.code == 0, "{log}");
    // A unit that is not the engine's, and tokens that have no price.
    budget(&repo, "budget.agent.billed.credits", "3");
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ usage = { output_tokens = 1, cost_usd = 0.1, billed = [{ unit = \"credit\", amount = 9 }] } }, { say = \"Done.\" }]\n";
    let output = repo.rehearse(script, &["--json", "--agent", "ada", "Explain it"]);
    let end = TestRepo::events(&output).pop().expect("an end");
    assert_eq!(end["work"][0]["uncounted"], json!(["budget.agent.billed.credits"]), "{output}");
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ usage = { input_tokens = 90, output_tokens = 10 } }, { say = \"Done.\" }]\n";
    let output = repo.rehearse(script, &["--json", "--agent", "ada", "Explain it"]);
    assert_eq!(TestRepo::events(&output).pop().expect("an end")["work"][0]["uncounted"], json!(["budget.cost_usd"]));
    #[cfg(unix)]
    {
        let repo = crate::engines::world("#!/bin/sh\ncat >/dev/null\necho Done.\n", "");
        let mut command = repo.command(env!("CARGO_BIN_EXE_squad"), &repo.root());
        command.env("SQUAD_BUDGET_DAY_TOKENS", "150").env("SQUAD_BUDGET_COST_USD", "1").env("SQUAD_BUDGET_TURNS", "9");
        command.args([
            "orchestrate",
            "--json",
            "--engine",
            "mine",
            "--permissions",
            "allow",
            "--agent",
            "ada",
            "Explain it",
        ]);
        let output = command.stdin(std::process::Stdio::null()).output().expect("squad runs");
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        let events: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let says = "nothing is counted for `budget.cost_usd` and `budget.day.tokens` of mine: its default, which does not tell it";
        let place = |wanted: &dyn Fn(&Value) -> bool| events.iter().position(wanted).unwrap_or_else(|| panic!("{out}"));
        let named = place(&|event| event["reason"] == says);
        assert!(named < place(&|event| event["type"] == "agent.completed"), "{out}");
        assert_eq!(events.last().expect("an end")["work"][0]["uncounted"], names, "{out}");
    }
}

/// What was spent before a run was stopped counts when it is resumed.
#[test]
fn a_resumed_run_has_what_is_left() {
    let repo = TestRepo::with_small_team();
    budget(&repo, "budget.tool_calls", "1");
    let (output, events) = run(&repo, &[MESSAGE]);
    assert_eq!((output.code, files(&repo).as_str()), (5, "a"), "{output}");
    budget(&repo, "budget.tool_calls", "2");
    let run_id = events[0]["run"].as_str().expect("a run");
    let (resumed, events) = run(&repo, &["--resume", run_id]);
    assert_eq!((resumed.code, files(&repo).len()), (5, 2), "one more, and no other: {resumed}");
    assert_eq!(events.last().expect("an end")["status"], "stopped");
}

#[test]
fn the_card_says_which_budget_and_how_to_go_on() {
    let repo = TestRepo::with_small_team();
    budget(&repo, "budget.agent.tool_calls", "1");
    let output = repo.rehearse(WORK, &["--permissions", "allow", "Add files"]);
    assert_eq!(output.code, 5, "{output}");
    let reason = "the budget of 1 tool call is used up (`budget.agent.tool_calls`)";
    assert!(output.err.contains(&format!("! stopped: ada: {reason}; run 000001")), "{output}");
    assert!(
        output.err.contains("squad orchestrate --resume 000001   after a higher budget.agent.tool_calls\n"),
        "{output}"
    );
    assert!(
        repo.squad(&["log", "000001", "--events"]).out.contains("budget.reached       budget.agent.tool_calls: 1 of 1")
    );
}

#[test]
fn a_budget_that_nobody_can_read_lets_nobody_start() {
    for (line, reason) in [
        ("turns = 0", "`budget.turns` must be above 0, not 0; leave it out for no limit"),
        ("turns = -1", "`budget.turns` must be above 0, not -1; leave it out for no limit"),
        ("tool_calls = \"many\"", "`budget.tool_calls` needs a whole number, not a string"),
        ("time = 5", "`budget.time` needs a duration like \"5m\", not an integer"),
        ("time = \"0s\"", "`budget.time` `0s` is zero; write it like `90s`, `5m` or `1h`"),
        ("cost_usd = nan", "`budget.cost_usd` must be above 0, not NaN; leave it out for no limit"),
        ("agent.tokens = 1.5", "`budget.agent.tokens` needs a whole number, not a float"),
        ("turn = 1", "`budget.turn` is no setting"),
        ("tokens = { input = 5 }", "`budget.tokens.input` is no setting"),
        ("week.turns = 1", "`budget.week.turns` is no setting"),
        ("[budgets]\nturns = 1", "`budgets.turns` is no setting"),
        ("[check]\nruns = [\"true\"]", "`check.runs` is no setting"),
        ("[chek]\nrun = [\"true\"]", "`chek.run` is no setting"),
        ("[isolation]\nmod = \"clone\"", "`isolation.mod` is no setting"),
    ] {
        let repo = TestRepo::with_small_team();
        let table = if line.starts_with('[') { "" } else { "[budget]\n" };
        repo.write(".squad/config.toml", &format!("{table}{line}\n"));
        let output = repo.rehearse(WORK, &["--json", "--agent", "ada", "Add files"]);
        assert_eq!(output.code, 3, "{line}: {output}");
        let error: Value = serde_json::from_str(&output.out).expect("JSON");
        assert_eq!(
            (&error["error"]["message"], &error["error"]["source"]),
            (&json!(reason), &json!(".squad/config.toml:2"))
        );
    }
    let mut repo = TestRepo::with_small_team();
    repo.variables.insert("SQUAD_BUDGET_TURN".to_owned(), "1".to_owned());
    let output = repo.rehearse(WORK, &["--agent", "ada", "Add files"]);
    assert!(output.code == 3 && output.err.contains("there is no variable `SQUAD_BUDGET_TURN`"), "{output}");
}

/// A program that squad does not ask is ended when its time is up, and gets no message too many.
#[cfg(unix)]
#[test]
fn another_engine_has_the_same_budgets() {
    let repo = crate::engines::world("#!/bin/sh\ncat >/dev/null\necho w >$$.txt\nsleep 20\necho Done.\n", "");
    let squad = |name: &str, value: &str, agents: &str| {
        let mut command = repo.command(env!("CARGO_BIN_EXE_squad"), &repo.root());
        command.env(name, value).args(["orchestrate", "--json", "--engine", "mine", "--permissions", "allow"]);
        let output = command.args(["--agent", agents, "Add tests"]).stdin(std::process::Stdio::null()).output();
        let output = output.expect("squad runs");
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        let end: Value = serde_json::from_str(out.lines().last().expect("an end")).expect("JSON");
        (output.status.code(), end)
    };
    let (code, end) = squad("SQUAD_BUDGET_AGENT_TIME", "1s", "ada");
    assert_eq!(
        (code, &end["status"], end["work"][0]["changed"].as_array().map(Vec::len)),
        (Some(5), &json!("stopped"), Some(1)),
        "{end}"
    );
    let (code, end) = squad("SQUAD_BUDGET_TIME", "1s", "ada,bob");
    assert_eq!((code, &end["agents"]), (Some(5), &json!({"ada": "stopped", "bob": "stopped"})), "{end}");
}

/// Killed after the first of what there is for two, or for less: the resumed run has the rest of it.
#[cfg(unix)]
#[test]
fn a_killed_run_is_given_nothing_anew() {
    for (name, value, call, left) in [
        ("budget.tool_calls", "2", "", "ab"),
        ("budget.tokens", "150", "{ usage = { input_tokens = 90, output_tokens = 10 } }, ", "a"),
        ("budget.agent.cost_usd", "0.75", "{ usage = { output_tokens = 10, cost_usd = 0.5 } }, ", "a"),
    ] {
        let repo = TestRepo::with_small_team();
        budget(&repo, name, value);
        let turn = |steps: &str| format!("[[turn]]\nagent = \"ada\"\nsteps = [{call}{steps}]\n");
        let script = turn("{ write = \"a.txt\", text = \"a\" }, { wait = \"60s\" }");
        let mut child = crate::process::start(&repo, &script, &["--permissions", "allow", "Add files"]);
        crate::process::wait_for(&mut child, "tool.completed");
        // What is recorded in batches is on disk by then.
        std::thread::sleep(std::time::Duration::from_millis(500));
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        let runs: Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
        let id = runs["runs"][0]["run"].as_str().expect("a run").to_owned();
        let rest =
            turn("{ write = \"b.txt\", text = \"b\" }, { write = \"c.txt\", text = \"c\" }, { say = \"Done.\" }");
        let resumed = repo.rehearse(&rest, &["--json", "--resume", &id]);
        assert_eq!((resumed.code, files(&repo).as_str()), (5, left), "{name}: {resumed}");
        assert_eq!(TestRepo::events(&resumed).last().expect("an end")["status"], "stopped");
    }
}

/// Killed in its third turn, because a hook has sent the agent back twice: the resumed run has none left.
#[cfg(unix)]
#[test]
fn turns_that_hooks_asked_for_are_spent_before_a_kill() {
    let repo = TestRepo::with_small_team();
    budget(&repo, "budget.turns", "3");
    let hook = "[hooks.more]\non = \"agent_stop\"\nrun = [\"sh\", \"-c\", \"echo '{\\\"deny\\\": \\\"more\\\"}'\"]\n";
    let own = "../home/config/squad/config.toml";
    repo.write(own, &(repo.read(own) + hook));
    let turn = |steps: &str| format!("[[turn]]\nagent = \"ada\"\nsteps = [{steps}]\n");
    let script = turn("{ say = \"One.\" }")
        + &turn("{ say = \"Two.\" }")
        + &turn("{ write = \"a.txt\", text = \"a\" }, { wait = \"60s\" }");
    let mut child = crate::process::start(&repo, &script, &["--permissions", "allow", "Add files"]);
    crate::process::wait_for(&mut child, "tool.completed");
    // What is recorded in batches is on disk by then.
    std::thread::sleep(std::time::Duration::from_millis(500));
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let runs: Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
    let id = runs["runs"][0]["run"].as_str().expect("a run").to_owned();
    let resumed =
        repo.rehearse(&turn("{ write = \"b.txt\", text = \"b\" }, { say = \"Done.\" }"), &["--json", "--resume", &id]);
    assert_eq!((resumed.code, files(&repo).as_str()), (5, "a"), "{resumed}");
}

/// A message and a call at most, in each run.
const ONE: &str = "[[turn]]\nagent = \"ada\"\nsteps = [{ run = \"echo x >>calls.txt\" }, { say = \"Done.\" }]\n";

fn calls(repo: &TestRepo) -> usize {
    if repo.exists("calls.txt") { repo.read("calls.txt").lines().count() } else { 0 }
}

fn one(repo: &TestRepo) -> (u8, String) {
    let output = repo.rehearse(ONE, &["--permissions", "allow", "--json", "--agent", "ada", "Add a line"]);
    let end = TestRepo::events(&output).pop().expect("an end");
    (output.code, end["work"][0]["reason"].as_str().unwrap_or_default().to_owned())
}

/// Runs that began before there was a budget count, whatever becomes of the file; a new day has a budget of its own.
#[test]
fn runs_share_the_budgets_of_a_day_and_of_a_repository() {
    for (name, is_of_day) in [
        ("budget.day.turns", true),
        ("budget.day.tool_calls", true),
        ("budget.repository.turns", false),
        ("budget.repository.tool_calls", false),
    ] {
        let repo = TestRepo::with_small_team();
        assert_eq!(one(&repo).0, 0);
        budget(&repo, name, "2");
        assert_eq!((one(&repo).0, calls(&repo)), (0, 2), "{name}");
        for damage in ["", "remove", "rubbish"] {
            let local = repo.root().join(".git/squad");
            let files = std::fs::read_dir(local).expect("a folder").flatten().map(|entry| entry.path());
            let is_sum =
                |path: &std::path::PathBuf| path.to_string_lossy().contains("spent-") && path.ends_with("json");
            for file in files.filter(is_sum) {
                match damage {
                    "remove" => std::fs::remove_file(file).expect("it is there"),
                    "rubbish" => std::fs::write(file, "{").expect("it is there"),
                    _ => {}
                }
            }
            let (code, reason) = one(&repo);
            assert_eq!((code, calls(&repo)), (5, 2), "{name} {damage}: {reason}");
            assert!(reason.ends_with(&format!("is used up (`{name}`)")), "{reason}");
        }
        repo.pass(86_400);
        assert_eq!((one(&repo).0, calls(&repo)), if is_of_day { (0, 3) } else { (5, 2) }, "{name} on the next day");
    }
}

/// Three squads side by side, killed while they spend, and three after them: what all of them do is never more than there
/// is, and what those were killed with is not spent again.
#[cfg(unix)]
#[test]
fn squads_that_are_killed_spend_no_more_than_there_is() {
    let repo = TestRepo::with_small_team();
    budget(&repo, "budget.day.tool_calls", "20");
    let step = "{ run = \"echo x >>calls.txt\" }, { wait = \"20ms\" }, ".repeat(30);
    let turn = |agent: &str| format!("[[turn]]\nagent = \"{agent}\"\nsteps = [{step}{{ say = \"Done.\" }}]\n");
    let script = turn("ada") + &turn("bob");
    let start =
        || crate::process::start(&repo, &script, &["--permissions", "allow", "--agent", "ada,bob", "Add lines"]);
    let mut squads = [start(), start(), start()];
    crate::process::wait_for(&mut squads[0], "tool.completed");
    std::thread::sleep(std::time::Duration::from_millis(150));
    for squad in &mut squads {
        squad.kill().expect("it runs");
        squad.wait().expect("it ends");
    }
    let before = calls(&repo);
    assert!((1..20).contains(&before), "they were killed in the middle: {before}");
    let mut squads = [start(), start(), start()];
    for squad in &mut squads {
        crate::process::wait_for(squad, "run.completed");
        assert_eq!(squad.wait().expect("it ends").code(), Some(5));
    }
    let after = calls(&repo);
    // Each of the six agents may have been killed between taking a call and making it.
    assert!((14..=20).contains(&after), "{before} and then {after}");
}

/// A turn that was tried again, and the time of a call, were spent although nothing of them was recorded.
#[cfg(unix)]
#[test]
fn a_turn_that_was_tried_again_is_spent_before_a_kill() {
    let repo = TestRepo::with_small_team();
    budget(&repo, "budget.turns", "2");
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ error = \"no\" }, { write = \"a.txt\", text = \"a\" }, { wait = \"60s\" }]\n";
    let mut child = crate::process::start(&repo, script, &["--permissions", "allow", "Add files"]);
    crate::process::wait_for(&mut child, "tool.completed");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let runs: Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
    let id = runs["runs"][0]["run"].as_str().expect("a run").to_owned();
    let rest = "[[turn]]\nagent = \"ada\"\nsteps = [{ write = \"b.txt\", text = \"b\" }, { say = \"Done.\" }]\n";
    let resumed = repo.rehearse(rest, &["--json", "--resume", &id]);
    assert_eq!((resumed.code, files(&repo).as_str()), (5, "a"), "{resumed}");
}
