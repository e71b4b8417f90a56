//! A team exported to Claude Code, Copilot and Codex, as these programs read it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::copilot_cli;
use crate::support::{KEY, World, creed};

fn part(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/node_modules").join(path)
}

/// A team that was exported.
fn exported(target: &str) -> World {
    let world = World::new(|_| []);
    let output = world.repo.squad(&["agents", "export", "--to", target]);
    assert_eq!(output.code, 0, "{output}");
    world
}

/// What the program's model is asked.
fn asked(world: &World, mut command: Command) -> String {
    let url = world.model.url();
    let home = PathBuf::from(&world.repo.variables["HOME"]);
    let codex = home.join("codex");
    std::fs::create_dir_all(&codex).expect("a folder");
    let settings = format!(
        "model_provider = \"loop\"\nmodel = \"fake-1\"\n[model_providers.loop]\nname = \"l\"\nbase_url = \"{url}\"\n\
         wire_api = \"responses\"\nenv_key = \"OPENAI_API_KEY\"\n[projects.\"{}\"]\ntrust_level = \"trusted\"\n",
        dunce::canonicalize(world.repo.root()).expect("a path").display()
    );
    std::fs::write(codex.join("config.toml"), settings).expect("a file");
    // The plugin starts `squad mcp`.
    let squad = Path::new(env!("CARGO_BIN_EXE_squad")).parent().expect("a folder");
    let path = std::env::join_paths([squad, Path::new("/usr/local/bin"), Path::new("/usr/bin"), Path::new("/bin")]);
    command.env_clear().envs(&world.repo.variables).current_dir(world.repo.root()).stdin(Stdio::null());
    command.env("PATH", path.expect("no colon in it"));
    for (name, value) in [
        ("ANTHROPIC_API_KEY", KEY),
        ("ANTHROPIC_BASE_URL", url.trim_end_matches("/v1")),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("CLAUDE_CONFIG_DIR", &home.join("claude").display().to_string()),
        ("COPILOT_HOME", &home.join("copilot").display().to_string()),
        ("CODEX_HOME", &codex.display().to_string()),
        ("OPENAI_API_KEY", KEY),
    ] {
        command.env(name, value);
    }
    let output: Output = command.output().expect(".ci/install-real-parts installs it");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("Hello there."), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    world.model.requests().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

const PROMPT: &str = "STEP say:Hello there.";

/// What the real clients say of the server that `squad mcp --register` added to their files. Claude Code also starts it.
#[test]
fn a_registered_server_is_known_to_its_client() {
    let mut world = World::new(|_| []);
    let home = PathBuf::from(&world.repo.variables["HOME"]);
    let root = dunce::canonicalize(world.repo.root()).expect("a path").display().to_string();
    for (name, folder) in [("CLAUDE_CONFIG_DIR", "claude"), ("COPILOT_HOME", "copilot"), ("CODEX_HOME", "codex")] {
        std::fs::create_dir_all(home.join(folder)).expect("a folder");
        world.repo.variables.insert(name.to_owned(), home.join(folder).display().to_string());
    }
    let trusted = serde_json::json!({"trusted_folders": [root], "trustedFolders": [root]}).to_string();
    std::fs::write(home.join("copilot/config.json"), trusted).expect("a file");
    for (client, scope, program, arguments, expected) in [
        (
            "claude",
            &["--user"][..],
            "@anthropic-ai/claude-code-linux-x64/claude",
            &["mcp", "get", "squad"][..],
            "Connected",
        ),
        ("codex", &["--user"], ".bin/codex", &["mcp", "get", "squad"], "default_tools_approval_mode: approve"),
        ("copilot", &["--user"], "@github/copilot-linux-x64/copilot", &["mcp", "list"], "squad (local)"),
        ("copilot", &[], "@github/copilot-linux-x64/copilot", &["mcp", "list"], "squad (local)"),
    ] {
        let output = world.repo.squad(&[&["mcp", "--register", client], scope].concat());
        assert_eq!(output.code, 0, "{output}");
        let mut command = world.repo.command(part(program).to_str().expect("a path"), &world.repo.root());
        let said = command.args(arguments).stdin(Stdio::null()).output().expect(".ci/install-real-parts installs it");
        let said = format!("{}{}", String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
        assert!(said.contains(expected), "{client} {scope:?}: {said}");
        if client == "copilot" && !scope.is_empty() {
            std::fs::remove_file(home.join("copilot/mcp-config.json")).expect("it was registered there");
        }
    }
}

fn claude(arguments: &[&str]) -> Command {
    let mut command = Command::new(part("@anthropic-ai/claude-code-linux-x64/claude"));
    command.args(arguments).args(["-p", PROMPT]);
    command
}

fn copilot(arguments: &[&str]) -> Command {
    let mut command = Command::new(copilot_cli::program());
    command.args(arguments).args(["--allow-all-tools", "-p", PROMPT]);
    command
}

fn codex() -> Command {
    let mut command = Command::new(part("@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"));
    command.args(["exec", PROMPT]);
    command
}

#[test]
fn claude_code_knows_the_agents_and_works_as_one_of_them() {
    let world = exported("claude");
    let asked = asked(&world, claude(&["--agent", "ada"]));
    assert!(asked.contains(creed("ada")) && asked.contains("- bob: Tester."), "{asked}");
}

#[test]
fn copilot_knows_the_agents_and_works_as_one_of_them() {
    let world = exported("copilot");
    let asked = asked(&world, copilot(&["--agent", "ada"]));
    assert!(asked.contains(creed("ada")) && asked.contains("**bob**: Tester."), "{asked}");
    assert!(asked.contains("**Squad**: The team of agents in .squad/."), "{asked}");
}

#[test]
fn codex_knows_the_agents() {
    let world = exported("codex");
    let asked = asked(&world, codex());
    assert!(asked.contains(r"bob: {\nTester.\n}"), "{asked}");
}

#[test]
fn codex_reads_the_guide() {
    let world = exported("agents-md");
    let asked = asked(&world, codex());
    assert!(asked.contains("| Ada | Backend Dev |"), "{asked}");
}

#[test]
fn the_plugin_loads() {
    for (name, command) in [("claude", claude as fn(&[&str]) -> Command), ("copilot", copilot)] {
        let world = exported("plugin");
        let asked = asked(&world, command(&["--plugin-dir", ".agents/plugins/squad-team"]));
        assert!(asked.contains("Work as Ada: Backend Dev."), "{name}: {asked}");
        // Claude Code 2.1.330 does not read the plugin's `mcp.json`.
        assert_eq!(asked.contains("squad-start_squad_members"), name == "copilot", "{name}: {asked}");
    }
}
