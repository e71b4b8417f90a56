//! Every exit code, as the design lists them, through the program: what a script goes by.

use serde_json::Value;

use crate::support::{Output, TestRepo};

struct Case {
    code: u8,
    /// What `--json` calls it; `None`: the command answered, and its answer is bad news or good.
    kind: Option<&'static str>,
    arguments: &'static [&'static str],
    make: fn() -> TestRepo,
}

fn team() -> TestRepo {
    TestRepo::with_small_team()
}

/// With a script as the rehearsal's.
fn scripted(script: &str) -> TestRepo {
    let mut repo = team();
    repo.write("../script.toml", script);
    repo.variables.insert("SQUAD_ENGINE".to_owned(), "rehearsal".to_owned());
    repo.variables.insert("SQUAD_REHEARSAL".to_owned(), repo.root().join("../script.toml").display().to_string());
    repo
}

fn ada(steps: &str) -> TestRepo {
    scripted(&format!("[[turn]]\nagent = \"ada\"\nsteps = [{steps}]\n"))
}

const RUN: &[&str] = &["orchestrate", "--agent", "ada", "work"];

const CASES: &[Case] = &[
    Case { code: 0, kind: None, arguments: RUN, make: || ada("{ say = \"Done.\" }") },
    Case { code: 0, kind: None, arguments: &["decisions", "list"], make: team },
    Case { code: 0, kind: None, arguments: &["decisions", "add", "Tar the hull"], make: team },
    Case { code: 1, kind: None, arguments: RUN, make: || ada("{ fail = \"no\" }") },
    Case { code: 1, kind: None, arguments: RUN, make: || ada("{ hang = true }") },
    Case { code: 1, kind: None, arguments: RUN, make: || ada("{ wait = \"1s\" }") },
    Case { code: 1, kind: None, arguments: RUN, make: || ada("{ say = \"Begun.\" }, { die = true }") },
    // A reviewer who rejects, and one who says nothing that could be an approval.
    Case {
        code: 1,
        kind: None,
        arguments: &["orchestrate", "Fix the login password check"],
        make: || scripted(&"[[turn]]\nagent = \"rex\"\nsteps = [{ say = 'VERDICT: rejected' }]\n".repeat(2)),
    },
    Case {
        code: 1,
        kind: None,
        arguments: &["orchestrate", "Fix the login password check"],
        make: || scripted("[[turn]]\nagent = \"rex\"\nsteps = [{ say = 'Fine.' }]\n"),
    },
    // The work is done, and that it is done could not be recorded.
    Case {
        code: 1,
        kind: None,
        arguments: &["orchestrate", "--permissions", "allow", "--agent", "ada", "work"],
        make: || ada(BREAK),
    },
    Case {
        code: 1,
        kind: None,
        arguments: &["doctor"],
        make: || {
            let repo = team();
            repo.write(".squad/routing.md", "nothing that could be read\n");
            repo
        },
    },
    Case { code: 2, kind: Some("usage"), arguments: &["nonsense"], make: team },
    Case { code: 2, kind: Some("usage"), arguments: &["orchestrate", "--agent", "nobody", "work"], make: team },
    Case { code: 2, kind: Some("usage"), arguments: &["orchestrate", "--timeout", "soon", "work"], make: team },
    Case { code: 2, kind: Some("usage"), arguments: &["orchestrate", "  "], make: team },
    Case { code: 2, kind: Some("usage"), arguments: &["decisions", "supersede", "ffffffffffff", "Other"], make: team },
    Case { code: 2, kind: Some("usage"), arguments: &["config", "set", "models.defalt", "m"], make: team },
    Case { code: 3, kind: Some("team"), arguments: RUN, make: TestRepo::folder },
    Case { code: 3, kind: Some("team"), arguments: RUN, make: TestRepo::empty },
    Case {
        code: 3,
        kind: Some("team"),
        arguments: RUN,
        make: || {
            let repo = team();
            repo.write(".squad/config.toml", "not = = toml\n");
            repo
        },
    },
    Case {
        code: 3,
        kind: Some("team"),
        arguments: RUN,
        make: || {
            let repo = ada("{ say = \"Done.\" }");
            repo.write(".git/refs/squad/log", "rubbish\n");
            repo
        },
    },
    Case { code: 4, kind: Some("engine"), arguments: RUN, make: team },
];

/// Makes the ledger unreadable while the run goes on, from within it.
const BREAK: &str = r#"{ say = "Begun." }, { run = "echo rubbish > .git/refs/squad/log" }, { say = "Done." }"#;

fn shown(case: &Case, output: &Output) -> String {
    format!("{:?} for {}: {output}", case.arguments, case.code)
}

#[test]
fn every_code_means_what_the_design_says() {
    for case in CASES {
        let output = (case.make)().squad(case.arguments);
        assert_eq!(output.code, case.code, "{}", shown(case, &output));
        let is_error = output.err.contains("error: ");
        assert_eq!(is_error, case.kind.is_some(), "{}", shown(case, &output));

        let repo = (case.make)();
        let output = repo.squad(&[&["--json"], case.arguments].concat());
        assert_eq!(output.code, case.code, "{}", shown(case, &output));
        let lines: Vec<Value> = match serde_json::from_str(&output.out) {
            Ok(value) => vec![value],
            Err(_) => TestRepo::events(&output),
        };
        let error = lines.iter().find_map(|line| line.get("error"));
        let kind = error.map(|error| error["kind"].as_str().expect("a kind").to_owned());
        assert_eq!(kind.as_deref(), case.kind, "{}", shown(case, &output));
        assert!(error.is_none_or(|error| !error["message"].as_str().expect("a message").is_empty()));
    }
}

/// All codes that a command can end with are in the table, but for the one that takes a signal (see `process`) and the
/// one of policy and budget, which no failure has.
#[test]
fn no_code_is_without_a_case() {
    for code in 0..=4 {
        assert!(CASES.iter().any(|case| case.code == code), "{code}");
    }
}

#[test]
fn a_run_whose_end_could_not_be_recorded_says_so() {
    let output = ada(BREAK).squad(&["orchestrate", "--permissions", "allow", "--agent", "ada", "work"]);
    assert!(output.code == 1 && output.err.contains("the end of the run could not be recorded"), "{output}");
    // What was done is shown all the same.
    assert_eq!(output.out, "Done.\n");
}

/// Without and with `--permissions allow`, which is no way out of a rule that holds in every mode.
#[test]
fn a_stopped_run_names_permissions_only_where_they_would_help() {
    for (permissions, is_named) in [("deny", true), ("allow", false)] {
        let repo = ada(r#"{ write = ".git/config", text = "[core]" }, { say = "Done." }"#);
        let output = repo.squad(&["orchestrate", "--permissions", permissions, "--agent", "ada", "work"]);
        assert_eq!((output.code, output.err.contains("`--permissions allow` lets")), (5, is_named), "{output}");
    }
}

/// A rejection is of the work of all its authors.
#[test]
fn every_author_of_rejected_work_is_locked_out() {
    let repo = scripted(&"[[turn]]\nagent = \"rex\"\nsteps = [{ say = 'VERDICT: rejected' }]\n".repeat(2));
    let output = repo.squad(&["orchestrate", "--json", "Fix the login password check, and cover it with unit tests"]);
    let events = TestRepo::events(&output);
    let of = |kind: &str| events.iter().filter(|event| event["type"] == kind).cloned().collect::<Vec<Value>>();
    let verdicts = of("review.verdict");
    let authors: Vec<&str> =
        verdicts[0]["authors"].as_array().expect("authors").iter().filter_map(Value::as_str).collect();
    let lockouts = of("review.lockout");
    let mut locked: Vec<&str> = lockouts.iter().filter_map(|event| event["agent"].as_str()).collect();
    locked.sort_unstable();
    assert_eq!((authors.len(), locked), (2, authors), "{output}");
}
