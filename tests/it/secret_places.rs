//! Every kind of secret in every place that squad writes to.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::mcp_client::McpClient;
use crate::support::{Output, TestRepo};

/// The kind, a text that holds one, and what must be gone from it.
fn secrets() -> Vec<(&'static str, String, String)> {
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let key = format!("{}{}", "MIIEpAIBAAKCAQEA", "x7Qw9".repeat(9));
    vec![
        ("known-secret", "correct-horse-battery".to_owned(), "correct-horse-battery".to_owned()),
        ("known-secret", "purple monkey 7".to_owned(), "purple monkey 7".to_owned()),
        ("github-token", token.clone(), token),
        ("password", "password: hunter2hunter2".to_owned(), "hunter2hunter2".to_owned()),
        ("private-key", format!("-----BEGIN RSA {0}-----\n{key}\n-----END RSA {0}-----", "PRIVATE KEY"), key),
        ("email", "ann.bell@acme.io".to_owned(), "ann.bell@acme.io".to_owned()),
    ]
}

/// A project that knows two of them: one from its `.env`, one from a variable.
fn world() -> TestRepo {
    let mut repo = TestRepo::with_small_team();
    repo.write("apps/api/.env", "DB_PASSWORD=correct-horse-battery\n");
    repo.variables.insert("DEPLOY_TOKEN".to_owned(), "purple monkey 7".to_owned());
    repo
}

/// What ada does with the text: it is in decisions, learnings, calls that are refused, and the reason of the end.
fn script(text: &str, end: &str) -> String {
    let call = |tool: &str, arguments: &[(&str, &str)]| {
        let arguments: Vec<String> =
            arguments.iter().map(|(name, text)| format!("{name} = {}", Value::from(*text))).collect();
        format!("{{ tool = \"{tool}\", args = {{ {} }} }}", arguments.join(", "))
    };
    let steps = [
        format!("{{ say = {} }}", json!(format!("I use {text}"))),
        call(
            "squad_log_decision",
            &[("title", &format!("Log in with {}", text.lines().next().unwrap_or(text))), ("what", text)],
        ),
        call("squad_remember", &[("text", text)]),
        call("bash", &[("command", &format!("curl -d '{text}' localhost"))]),
        format!("{{ run = {} }}", json!(format!("echo '{text}'"))),
        end.to_owned(),
    ];
    format!("[[turn]]\nagent = \"ada\"\nsteps = [\n  {},\n]\n", steps.join(",\n  "))
}

/// All files below a folder, one after the other, without the verbatim output of engines.
fn files(folder: &Path) -> String {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let text = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    let paths = entries.map(|entry| entry.path()).filter(|path| !path.ends_with(".git/squad/output"));
    paths.map(|path| if path.is_dir() { files(&path) } else { text(&path) }).collect()
}

/// What the repository keeps, and what commands show of it.
fn kept(repo: &TestRepo, run: &str) -> Vec<(&'static str, String)> {
    let shown = |arguments: &[&str]| repo.squad(arguments).to_string();
    vec![
        ("objects", repo.git(&["cat-file", "--batch-all-objects", "--batch"])),
        ("local files", files(&repo.root().join(".git/squad"))),
        ("log", shown(&["log", run])),
        ("log --json", shown(&["log", "--json", run])),
        ("decisions", shown(&["decisions", "list"])),
        ("prompt", shown(&["agents", "show", "ada", "--prompt"])),
        ("status", shown(&["status"])),
    ]
}

fn assert_clean(kind: &str, secret: &str, places: &[(&str, String)]) {
    for (place, text) in places {
        // JSON and escapes of the terminal break no secret of these in two.
        assert!(!text.contains(secret), "{kind} in {place}: {text}");
    }
    let marked = places.iter().filter(|(_, text)| text.contains(&format!("[redacted:{kind}]"))).count();
    assert!(marked >= 3, "{kind}: only {marked} of the places say that there was something");
}

#[test]
fn no_kind_of_secret_is_in_any_place_of_a_run() {
    for (kind, text, secret) in secrets() {
        let repo = world();
        let end = format!("{{ fail = {} }}", json!(format!("cannot log in with {text}")));
        let script = script(&text, &end);
        let message = format!("Log in with {text}");
        let events = repo.rehearse(&script, &["--json", "--permissions", "deny", "--agent", "ada", &message]);
        let screen = repo.rehearse(&script, &["--permissions", "deny", "--agent", "ada", &message]);
        for Output { code, .. } in [&events, &screen] {
            assert_eq!(*code, 1, "{kind}: {events}{screen}");
        }
        let of = |name: &str| TestRepo::events(&events).into_iter().filter(|event| event["type"] == name).count();
        assert!(of("tool.denied") == 1 && of("agent.failed") == 1 && of("decision.logged") == 1, "{kind}: {events}");
        let run = TestRepo::events(&events)[0]["run"].as_str().expect("a run").to_owned();
        let mut places = kept(&repo, &run);
        places.extend([("events", events.to_string()), ("screen", screen.to_string())]);
        assert_clean(kind, &secret, &places);
        repo.assert_sound();
    }
}

#[test]
fn no_kind_of_secret_is_in_any_place_of_a_member() {
    for (kind, text, secret) in secrets() {
        let repo = world();
        let script_file = repo.root().with_file_name("script.toml");
        fs::write(&script_file, script(&text, "{ hang = true }")).expect("a script");
        let variables = [("SQUAD_REHEARSAL", script_file.to_str().expect("UTF-8"))];
        let arguments = ["--engine", "rehearsal"];
        let mut host = McpClient::start_in(&repo, &repo.root(), &arguments, &variables).greet("2025-06-18");
        let members = json!([{"roleId": "ada", "task": format!("Log in with {text}")}]);
        let started = host.structured("start_squad_members", json!({"members": members, "wait": false}));
        let run = started["squadId"].as_str().expect("an id").to_owned();
        while host.structured("get_run", json!({"squadId": run}))["members"][0]["status"] != "running" {}
        let mut member = McpClient::greeted(&repo, "2025-06-18", &["--member", &format!("{run}/ada")]);
        let title = format!("A member has {}", text.lines().next().unwrap_or(&text));
        let decided = member.call("squad_log_decision", json!({"title": title, "what": text}));
        let learned = member.call("squad_remember", json!({"text": text}));
        let found = member.call("squad_decisions", json!({"query": "member"}));
        assert!(
            [&decided, &learned, &found].iter().all(|answer| answer["isError"] != true),
            "{decided}{learned}{found}"
        );
        let ended = host.structured("cancel_run", json!({"squadId": run}));
        let again = host.structured("get_run", json!({"squadId": run}));
        let [ended, again] = [ended, again].map(|mut result| {
            // It is what the engine printed, verbatim.
            result["members"][0]["rawStdout"] = Value::Null;
            result
        });
        let mut places = kept(&repo, &run);
        places.extend([
            ("result", ended.to_string()),
            ("get_run", again.to_string()),
            ("started", started.to_string()),
        ]);
        places.push(("found", found.to_string()));
        assert_clean(kind, &secret, &places);
    }
}
