//! Whatever can be set, and wherever: the higher place wins, through the program as people run it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{Output, TestRepo};

/// A setting with two values that it takes, as TOML and as bare text.
struct Key {
    name: &'static str,
    values: [(&'static str, &'static str); 2],
    /// Not for a repository to set.
    is_guarded: bool,
}

const fn key(name: &'static str, values: [(&'static str, &'static str); 2]) -> Key {
    Key { name, values, is_guarded: false }
}

const fn guarded(name: &'static str) -> Key {
    Key { name, values: [("\"one\"", "one"), ("\"two\"", "two")], is_guarded: true }
}

const WORDS: [(&str, &str); 2] = [("\"one\"", "one"), ("\"two\"", "two")];

/// A list in this table is one text; see `every_setting_is_in_the_table`.
const KEYS: &[Key] = &[
    guarded("models.override.ada"),
    key("models.default", WORDS),
    key("models.lightweight", WORDS),
    key("models.premium", WORDS),
    key("models.coordinator", WORDS),
    key("models.roles.tester", WORDS),
    key("sessions.timeout", [("\"1m\"", "1m"), ("\"2m\"", "2m")]),
    key("sessions.tool_limit", [("\"1m\"", "1m"), ("\"2m\"", "2m")]),
    key("sessions.limit", [("\"1m\"", "1m"), ("\"2m\"", "2m")]),
    key("sessions.retry", [("0", "0"), ("1", "1")]),
    key("sessions.infinite", [("true", "true"), ("false", "false")]),
    key("sessions.standing", [("true", "true"), ("false", "false")]),
    key("sessions.max_concurrent", [("2", "2"), ("3", "3")]),
    key("sessions.core", [("[\"ada\"]", "ada"), ("[\"bob\"]", "bob")]),
    key("sessions.workspace_limit", [("\"1 MiB\"", "1 MiB"), ("\"2 MiB\"", "2 MiB")]),
    key("sessions.idle_timeout", [("\"1m\"", "1m"), ("\"2m\"", "2m")]),
    key("sessions.compaction_threshold", [("0.5", "0.5"), ("0.6", "0.6")]),
    key("sessions.default_tier", [("\"full\"", "full"), ("\"standard\"", "standard")]),
    key("routing.threshold", [("0.5", "0.5"), ("0.6", "0.6")]),
    Key { name: "policy.kept.shop", values: [("[\"one\"]", "one"), ("[\"two\"]", "two")], is_guarded: true },
    key("policy.questions", [("2", "2"), ("3", "3")]),
    key("budget.turns", [("2", "2"), ("3", "3")]),
    key("budget.tool_calls", [("2", "2"), ("3", "3")]),
    key("budget.time", [("\"1m\"", "1m"), ("\"2m\"", "2m")]),
    key("budget.tokens", [("2", "2"), ("3", "3")]),
    key("budget.cost_usd", [("1.5", "1.5"), ("2.5", "2.5")]),
    key("budget.billed.premium_request", [("2", "2"), ("3", "3")]),
    key("budget.agent.billed.premium_request", [("2", "2"), ("3", "3")]),
    key("budget.agent.turns", [("2", "2"), ("3", "3")]),
    key("budget.agent.tool_calls", [("2", "2"), ("3", "3")]),
    key("budget.agent.time", [("\"1m\"", "1m"), ("\"2m\"", "2m")]),
    key("budget.agent.tokens", [("2", "2"), ("3", "3")]),
    key("budget.agent.cost_usd", [("1.5", "1.5"), ("2.5", "2.5")]),
    key("budget.day.billed.premium_request", [("2", "2"), ("3", "3")]),
    key("budget.day.turns", [("2", "2"), ("3", "3")]),
    key("budget.day.tool_calls", [("2", "2"), ("3", "3")]),
    key("budget.day.time", [("\"1m\"", "1m"), ("\"2m\"", "2m")]),
    key("budget.day.tokens", [("2", "2"), ("3", "3")]),
    key("budget.day.cost_usd", [("1.5", "1.5"), ("2.5", "2.5")]),
    key("budget.repository.billed.premium_request", [("2", "2"), ("3", "3")]),
    key("budget.repository.turns", [("2", "2"), ("3", "3")]),
    key("budget.repository.tool_calls", [("2", "2"), ("3", "3")]),
    key("budget.repository.time", [("\"1m\"", "1m"), ("\"2m\"", "2m")]),
    key("budget.repository.tokens", [("2", "2"), ("3", "3")]),
    key("budget.repository.cost_usd", [("1.5", "1.5"), ("2.5", "2.5")]),
    Key { name: "prices.small.input", values: [("2.5", "2.5"), ("3.5", "3.5")], is_guarded: true },
    Key { name: "check.run", values: [("[\"one\"]", "one"), ("[\"two\"]", "two")], is_guarded: true },
    Key { name: "isolation.bring", values: [("[\"one\"]", "one"), ("[\"two\"]", "two")], is_guarded: true },
    Key { name: "isolation.setup", values: [("[\"one\"]", "one"), ("[\"two\"]", "two")], is_guarded: true },
    guarded("isolation.host"),
    key("isolation.mode", [("\"clone\"", "clone"), ("\"project\"", "project")]),
    key("isolation.tiers.full", [("\"clone\"", "clone"), ("\"project\"", "project")]),
    key("sandbox.require", [("true", "true"), ("false", "false")]),
    Key { name: "sandbox.read", values: [("[\"one\"]", "one"), ("[\"two\"]", "two")], is_guarded: true },
    Key { name: "sandbox.hosts", values: [("[\"one\"]", "one"), ("[\"two\"]", "two")], is_guarded: true },
    key("engine.name", [("\"copilot\"", "copilot"), ("\"rehearsal\"", "rehearsal")]),
    Key {
        name: "engine.fallback",
        values: [("[\"rehearsal\"]", "rehearsal"), ("[\"copilot\"]", "copilot")],
        is_guarded: true,
    },
    guarded("links.shop.git"),
    Key {
        name: "engine.copilot.permission",
        values: [("\"allow\"", "allow"), ("\"refuse\"", "refuse")],
        is_guarded: true,
    },
    guarded("engine.copilot.path"),
    guarded("engine.copilot.home"),
    guarded("engine.copilot.provider.type"),
    guarded("engine.copilot.provider.wire_api"),
    guarded("engine.copilot.provider.base_url"),
    guarded("engine.copilot.provider.api_key_env"),
    Key {
        name: "engine.copilot.provider.models",
        values: [("[\"one\"]", "one"), ("[\"two\"]", "two")],
        is_guarded: true,
    },
    Key {
        name: "engine.copilot.provider.max_prompt_tokens",
        values: [("64000", "64000"), ("32000", "32000")],
        is_guarded: true,
    },
    guarded("engines.mine.program"),
    Key { name: "hosts.one.launch", values: [("[\"one\"]", "one"), ("[\"two\"]", "two")], is_guarded: true },
    Key { name: "worker.secrets", values: [("[\"A\"]", "A"), ("[\"B\"]", "B")], is_guarded: true },
    Key { name: "worker.setup", values: [("[\"npm ci\"]", "npm ci"), ("[\"make\"]", "make")], is_guarded: true },
    Key { name: "agents.ada.host", values: [("\"one\"", "one"), ("\"any\"", "any")], is_guarded: true },
    key("agents.ada.isolation", [("\"clone\"", "clone"), ("\"project\"", "project")]),
    key("agents.ada.engine", [("\"rehearsal\"", "rehearsal"), ("\"copilot\"", "copilot")]),
    Key { name: "hooks.guard.run", values: [("[\"one\"]", "one"), ("[\"two\"]", "two")], is_guarded: true },
    guarded("mcp.servers.tides.command"),
    guarded("engine.rehearsal.script"),
];

/// Those that a list cannot try with any value: squad would run it, and `programs` tells what comes of that; or a
/// repository may not set each of its values, and `sandbox` tells which.
const ELSEWHERE: [&str; 4] = ["git.program", "sandbox.level", "sandbox.git", "sandbox.network"];

/// The names of all settings, from the one list of them; a star stands for free names.
fn names() -> Vec<String> {
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/settings/keys.rs");
    let source = std::fs::read_to_string(source).expect("keys.rs");
    let list = source.split("pub(super) const KEYS").nth(1).expect("the list").split("\n];").next().expect("its end");
    let of = |call: &str| -> Vec<String> {
        list.split(call).skip(1).filter_map(|rest| rest.split('"').nth(1)).map(str::to_owned).collect()
    };
    [of("free("), of("guarded_key(")].concat()
}

/// A setting without a row here would be tested by nothing. Those whose values are checked more closely than by these
/// rows may be added with values of their own.
#[test]
fn every_setting_is_in_the_table() {
    let names: BTreeSet<String> = names().into_iter().collect();
    assert!(names.len() > 15, "{names:?}");
    let missing: Vec<&String> = names
        .iter()
        .filter(|name| !ELSEWHERE.contains(&name.as_str()))
        .filter(|name| {
            let is_row = |key: &Key| match name.split_once('*') {
                Some((before, after)) => key.name.starts_with(before) && key.name.ends_with(after),
                None => key.name == **name,
            };
            !KEYS.iter().any(is_row)
        })
        .collect();
    assert!(missing.is_empty(), "no row for {missing:?}");
}

/// The value of a setting and where it is from.
fn listed(repo: &TestRepo, name: &str) -> Option<(String, String)> {
    let output = repo.squad(&["config", "list"]);
    assert_eq!(output.code, 0, "{output}");
    let line = output.out.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "))?;
    let (value, source) = line.rsplit_once('(').expect("a source");
    Some((value.trim().to_owned(), source.trim_end_matches(')').to_owned()))
}

fn table(name: &str, value: &str) -> String {
    let (table, key) = name.rsplit_once('.').expect("a dot");
    format!("[{table}]\n{key} = {value}\n")
}

fn variable(name: &str) -> Option<String> {
    match name {
        // Free names have none, but for the one that stands for all.
        "models.override.ada"
        | "models.roles.tester"
        | "engines.mine.program"
        | "agents.ada.engine"
        | "agents.ada.host"
        | "agents.ada.isolation"
        | "isolation.tiers.full"
        | "prices.small.input"
        | "hosts.one.launch"
        | "policy.kept.shop"
        | "hooks.guard.run"
        | "budget.billed.premium_request"
        | "budget.agent.billed.premium_request"
        | "budget.day.billed.premium_request"
        | "budget.repository.billed.premium_request"
        | "links.shop.git"
        | "mcp.servers.tides.command" => None,
        name => Some(format!("SQUAD_{}", name.replace('.', "_").to_uppercase())),
    }
}

/// The team's file, the user's own, and the variable, each over the ones before it.
#[test]
fn each_place_beats_the_one_below_for_every_setting() {
    let mut repo = TestRepo::with_small_team();
    for Key { name, values: [first, second], is_guarded } in KEYS {
        let shown = |value: &(&str, &str)| value.0.to_owned();
        let (team, user) = (".squad/config.toml", "../home/config/squad/config.toml");
        repo.write(user, "");
        repo.write(team, &table(name, first.0));
        let found = listed(&repo, name).filter(|(_, source)| source != "default");
        if *is_guarded {
            assert_eq!(found, None, "{name} is not for a repository to set");
        } else {
            assert_eq!(found, Some((shown(first), format!("{team}:2"))), "{name}");
        }
        repo.write(user, &table(name, second.0));
        let (value, source) = listed(&repo, name).expect(name);
        assert!(value == shown(second) && source.starts_with("HOME/"), "{name}: {value} ({source})");
        let Some(variable) = variable(name) else { continue };
        repo.variables.insert(variable.clone(), first.1.to_owned());
        assert_eq!(listed(&repo, name), Some((shown(first), variable.clone())), "{name}");
        repo.variables.remove(&variable);
        // And the other way round, so that no value wins by what it is.
        repo.write(user, &table(name, first.0));
        repo.variables.insert(variable.clone(), second.1.to_owned());
        assert_eq!(listed(&repo, name), Some((shown(second), variable.clone())), "{name}");
        repo.variables.remove(&variable);
    }
}

/// Every subset of the places that can name an agent's model.
#[test]
fn an_agents_model_is_that_of_the_highest_place_which_names_one() {
    let mut repo = TestRepo::with_small_team();
    let charter = "# Ada\n\n## Model\n\nPreferred: charter-1\n";
    for set in 0..1_u32 << 6 {
        let at = |place: u32, text: &str| if set & (1 << place) == 0 { String::new() } else { text.to_owned() };
        let user = ["[models]\n", &at(1, "override.ada = \"user-1\"\n"), &at(4, "default = \"users-1\"\n")].concat();
        let roles = at(3, "roles.\"backend dev\" = \"role-1\"\n");
        let team = ["[models]\n", &roles, &at(5, "default = \"teams-1\"\n")].concat();
        repo.write("../home/config/squad/config.toml", &user);
        repo.write(".squad/config.toml", &team);
        repo.write(".squad/agents/ada/charter.md", if at(2, "x").is_empty() { "# Ada\n" } else { charter });
        repo.variables.remove("SQUAD_MODEL");
        if set & 1 != 0 {
            repo.variables.insert("SQUAD_MODEL".to_owned(), "variable-1".to_owned());
        }
        let names = ["user-1", "variable-1", "charter-1", "role-1", "users-1", "teams-1"];
        let is_set = [1, 0, 2, 3, 4, 5].map(|place: u32| set & (1 << place) != 0);
        let highest = names.iter().zip(is_set).find(|(_, is_set)| *is_set).map(|(name, _)| *name);
        let expected = highest.unwrap_or("claude-sonnet-4.5");
        let agents: Value = serde_json::from_str(&repo.squad(&["agents", "--json"]).out).expect("JSON");
        let ada = agents["agents"].as_array().expect("a list").iter().find(|agent| agent["slug"] == "ada");
        assert_eq!(ada.expect("ada")["resolved_model"], expected, "{set:06b} {agents}");
        let call = ["orchestrate", "--json", "--engine", "rehearsal", "--agent", "ada", "--model", "flag-1", "work"];
        if set.count_ones() >= 5 {
            let found = of_kind(&events(&repo.squad(&call)), "session.created")["model"].clone();
            assert_eq!(found, if set & 2 != 0 { "user-1" } else { "flag-1" }, "{set:06b}");
        }
    }
}

/// The shorter names of variables.
#[test]
fn the_short_names_mean_the_same() {
    let mut repo = TestRepo::with_small_team();
    for (variable, name, value) in [
        ("SQUAD_MODEL", "models.override.all", "one"),
        ("SQUAD_ENGINE", "engine.name", "rehearsal"),
        ("SQUAD_REHEARSAL", "engine.rehearsal.script", "a.toml"),
    ] {
        repo.write("../home/config/squad/config.toml", &table(name, "\"another\""));
        repo.variables.insert(variable.to_owned(), value.to_owned());
        assert_eq!(listed(&repo, name), Some((format!("\"{value}\""), variable.to_owned())), "{name}");
        repo.variables.remove(variable);
        let (value, source) = listed(&repo, name).expect(name);
        assert!(value == "\"another\"" && source.starts_with("HOME/"), "{name}: {value} ({source})");
    }
}

/// The file that another tool left is the lowest of all.
#[test]
fn our_own_file_beats_that_of_another_tool() {
    let repo = TestRepo::with_small_team();
    let json = r#"{"models": {"default": "theirs", "costOptimized": "small"}, "sessions": {"maxConcurrent": 5}}"#;
    repo.write(".squad/config.json", json);
    repo.write(".squad/config.toml", "[models]\ndefault = \"ours\"\n");
    let of = |name| listed(&repo, name).expect(name).0;
    assert_eq!(of("models.default"), "\"ours\"");
    assert_eq!((of("models.lightweight"), of("sessions.max_concurrent")), ("\"small\"".to_owned(), "5".to_owned()));
}

const HANG: &str = "[[turn]]\nagent = \"ada\"\nsteps = [{ hang = true }]\n";

fn events(output: &Output) -> Vec<Value> {
    TestRepo::events(output)
}

fn of_kind<'e>(events: &'e [Value], kind: &str) -> &'e Value {
    events.iter().find(|event| event["type"] == kind).expect(kind)
}

/// What a run does under a variable, and under a flag beside it. Each answers with what it went by.
struct Flag {
    flag: &'static str,
    variables: &'static [(&'static str, &'static str)],
    value: &'static str,
    /// Without the flag, and with it.
    expected: [&'static str; 2],
    seen: fn(&[Value]) -> String,
}

const FLAGS: [Flag; 5] = [
    Flag {
        flag: "--model",
        variables: &[("SQUAD_MODEL", "of-the-variable")],
        value: "of-the-flag",
        expected: ["of-the-variable", "of-the-flag"],
        seen: |events| of_kind(events, "session.created")["model"].as_str().expect("a model").to_owned(),
    },
    Flag {
        flag: "--timeout",
        variables: &[("SQUAD_SESSIONS_TIMEOUT", "90s")],
        value: "40s",
        expected: ["90", "40"],
        seen: |events| {
            of_kind(events, "agent.timed_out")["usage"]["seconds"].as_f64().expect("seconds").round().to_string()
        },
    },
    Flag {
        flag: "--engine",
        variables: &[("SQUAD_ENGINE", "copilot"), ("SQUAD_ENGINE_FALLBACK", "rehearsal")],
        value: "rehearsal",
        // The other one is not there, and falls back.
        expected: ["fell back", "rehearsal"],
        seen: |events| match events.iter().any(|event| event["type"] == "engine.fallback") {
            true => "fell back".to_owned(),
            false => of_kind(events, "run.started")["engine"].as_str().expect("an engine").to_owned(),
        },
    },
    Flag {
        flag: "--script",
        variables: &[("SQUAD_REHEARSAL", "../variable.toml"), ("SQUAD_ENGINE", "rehearsal")],
        value: "../flag.toml",
        expected: ["variable", "flag"],
        seen: |events| of_kind(events, "run.answer")["text"].as_str().expect("an answer").to_owned(),
    },
    Flag {
        flag: "--max-concurrent",
        variables: &[("SQUAD_SESSIONS_MAX_CONCURRENT", "1"), ("SQUAD_REHEARSAL", "../both.toml")],
        value: "2",
        // One after the other, or side by side.
        expected: ["20", "10"],
        seen: |events| {
            of_kind(events, "run.completed")["usage"]["seconds"].as_f64().expect("seconds").round().to_string()
        },
    },
];

#[test]
fn every_flag_beats_its_variable() {
    for Flag { flag, variables, value, expected, seen } in FLAGS {
        let mut repo = TestRepo::with_small_team();
        repo.write("../hang.toml", HANG);
        for name in ["variable", "flag"] {
            let script = format!("[[turn]]\nagent = \"ada\"\nsteps = [{{ say = \"{name}\" }}]\n");
            repo.write(&format!("../{name}.toml"), &script);
        }
        let both = ["ada", "bob"].map(|agent| {
            format!("[[turn]]\nagent = \"{agent}\"\nsteps = [{{ wait = \"10s\" }}, {{ say = \"Done.\" }}]\n")
        });
        repo.write("../both.toml", &both.concat());
        repo.variables.insert("SQUAD_ENGINE".to_owned(), "rehearsal".to_owned());
        if flag == "--timeout" {
            repo.variables.insert("SQUAD_REHEARSAL".to_owned(), "../hang.toml".to_owned());
        }
        for (name, value) in variables {
            repo.variables.insert((*name).to_owned(), (*value).to_owned());
        }
        let agents: &[&str] =
            if flag == "--max-concurrent" { &["--agent", "ada", "--agent", "bob"] } else { &["--agent", "ada"] };
        let run = |more: &[&str]| {
            let output = repo.squad(&[&["orchestrate", "--json"], agents, more, &["work"]].concat());
            seen(&events(&output))
        };
        assert_eq!([run(&[]), run(&[flag, value])], expected, "{flag}");
    }
}
