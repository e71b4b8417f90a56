//! From a repository without a team and one registration: a host has members work on three engines, and reads all that
//! they answered.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::command_engines::world_of;
use crate::copilot_cli;
use crate::model_server::Script;
use crate::support::{KEY, World, call};

const ENGINES: [&str; 3] = ["copilot", "claude", "codex"];

fn part(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/node_modules").join(path)
}

/// A repository without a team, and a reviewer's model that finds one defect.
fn plain() -> World {
    let finding = json!({"path": "cart.py", "line": 2, "quote": "return sum(items) * 1.1", "severity": "high",
                         "text": "A tax that nobody asked for."});
    let review = format!("say:{}", json!({"verdict": "reject", "findings": [finding]}));
    let mut world = world_of(|_| [Script::new("Report defects only", [&*review]), Script::new("said by nobody", [])]);
    fs::remove_dir_all(world.repo.root().join(".squad")).expect("it is there");
    world.repo.write("cart.py", "def total(items):\n    return sum(items)\n");
    world.repo.git(&["add", "--all"]);
    world.repo.git(&["commit", "--quiet", "--message=plain"]);
    world.repo.write("cart.py", "def total(items):\n    return sum(items) * 1.1\n");
    let home = PathBuf::from(&world.repo.variables["HOME"]);
    for (name, folder) in [("CLAUDE_CONFIG_DIR", "claude"), ("COPILOT_HOME", "copilot")] {
        fs::create_dir_all(home.join(folder)).expect("a folder");
        world.repo.variables.insert(name.to_owned(), home.join(folder).display().to_string());
    }
    world
}

/// Registers squad with a host, and adds what a user's own environment would have: hosts pass little of it on.
fn register(world: &World, host: &str) {
    let output = world.repo.squad(&["mcp", "--register", host, "--user"]);
    assert_eq!(output.code, 0, "{output}");
    let home = PathBuf::from(&world.repo.variables["HOME"]);
    let environment: Vec<(&String, &String)> = world.repo.variables.iter().collect();
    let file = match host {
        "claude" => home.join("claude/.claude.json"),
        "copilot" => home.join("copilot/mcp-config.json"),
        _ => home.join("codex/config.toml"),
    };
    let mut text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    if host == "codex" {
        let lines = environment.iter().map(|(name, value)| format!("{name} = {}\n", json!(value)));
        text.push_str(&format!("\n[mcp_servers.squad.env]\n{}", lines.collect::<String>()));
    } else {
        let mut settings: Value = serde_json::from_str(&text).expect("JSON");
        settings["mcpServers"]["squad"]["env"] = json!(world.repo.variables);
        settings["mcpServers"]["squad"]["command"] = env!("CARGO_BIN_EXE_squad").into();
        text = settings.to_string();
    }
    fs::write(file, text).expect("a file");
}

fn command(host: &str, prompt: &str) -> Command {
    let (program, arguments) = match host {
        "claude" => (part("@anthropic-ai/claude-code-linux-x64/claude"), vec!["--allowedTools", "mcp__squad", "-p"]),
        "copilot" => (copilot_cli::program(), vec!["--allow-all-tools", "-p"]),
        _ => {
            let program = part("@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex");
            (program, vec!["exec", "--skip-git-repo-check"])
        }
    };
    let mut command = Command::new(program);
    command.args(arguments).arg(prompt).stdin(Stdio::null());
    command
}

#[test]
fn each_host_reads_the_answers_of_members_on_three_engines() {
    for (host, prefix) in [("claude", "mcp__squad__"), ("copilot", "squad-"), ("codex", "mcp__squad.")] {
        let world = plain();
        register(&world, host);
        let long = "Nothing is left out. ".repeat(150);
        let member = |engine: &str| {
            let task = format!("STEP say:{engine} has looked. {long}End of {engine}.");
            json!({"roleId": "researcher", "engine": engine, "task": task})
        };
        let members = json!({"members": ENGINES.map(member)});
        let review = json!({"reviewers": ["reviewer"], "engines": ENGINES});
        let prompt = format!(
            "Start three reviewers on my diff.\nSTEP {}\nSTEP {}\nSTEP say:All done.",
            call(&format!("{prefix}start_squad_members"), &members),
            call(&format!("{prefix}review_changes"), &review),
        );
        let squad = Path::new(env!("CARGO_BIN_EXE_squad")).parent().expect("a folder");
        let path = format!("{}:{}", squad.display(), world.repo.variables["PATH"]);
        let mut command = command(host, &prompt);
        command.env_clear().envs(&world.repo.variables).env("PATH", path).env("OPENAI_API_KEY", KEY);
        let output = command.current_dir(world.repo.root()).output().expect(".ci/install-real-parts installs it");
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(said.contains("All done."), "{host}: {said}");
        // The host's own model calls are those that have the user's sentence.
        let calls = world.requests_with("Start three reviewers on my diff.");
        let next = |text: &str| calls.iter().find(|call| call.contains(text));
        for engine in ENGINES {
            let whole = format!("{engine} has looked. {long}End of {engine}.");
            // Beside the prompt and the call: in its result. Codex cuts the middle out of one that is over 10 KB.
            let told = calls.iter().filter(|call| call.matches(&whole).count() > 2);
            assert!(
                host == "codex" || told.count() > 0,
                "{host} does not hear all of {engine}: {said}\n{}",
                calls.last().expect("a call")
            );
            assert!(next(&format!("reviewer-{engine}")).is_some(), "{host}: no verdict of {engine}: {said}");
        }
        let log: Value = serde_json::from_str(&world.repo.squad(&["log", "--json"]).out).expect("JSON");
        assert_eq!(log["runs"].as_array().map(Vec::len), Some(2), "{host}: {log}");
        assert!(!world.repo.exists(".squad"), "{host}");
    }
}
