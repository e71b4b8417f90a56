use std::fs;
use std::path::Path;

use serde_json::json;

use crate::model_server::Script;
use crate::support::{Ended, World, plays};

const USER: &str = "config/squad/config.toml";

const KEY: &str = "a-long-key-of-a-test";

/// Claude Code is Ada, Codex is Bob.
fn world() -> World {
    world_of(|_| {
        let write = json!({ "command": "echo one > ada.txt" });
        let execute = json!({ "cmd": "echo two > bob.txt" });
        let decision = json!({ "title": "Endpoints are JSON", "what": "All of them." });
        let decide = format!("tool:mcp__squad__squad_log_decision {decision}");
        let remember = format!("tool:mcp__squad.squad_remember {}", json!({ "text": "The port is 8080." }));
        [
            plays("ada", &[&format!("tool:Bash {write}"), &decide, "say:The endpoint is there."]),
            plays("bob", &[&format!("tool:exec_command {execute}"), &remember, "say:The tests are there."]),
        ]
    })
}

pub(crate) fn world_of(scripts: impl FnOnce(&Path) -> [Script; 2]) -> World {
    let mut world = World::new(scripts);
    let parts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/node_modules");
    let home = std::path::PathBuf::from(&world.repo.variables["HOME"]);
    let url = world.model.url();
    let configuration = format!(
        "[engine]\nname = \"rehearsal\"\n[agents.ada]\nengine = \"claude-print\"\n[agents.tester]\nengine = \"codex-print\"\n\
         [engines.claude-print]\nprogram = \"{0}/@anthropic-ai/claude-code-linux-x64/claude\"\n\
         [engines.claude]\nprogram = \"{0}/@anthropic-ai/claude-code-linux-x64/claude\"\n\
         [engines.codex]\nprogram = \"{0}/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex\"\n\
         [engines.codex-print]\nprogram = \"{0}/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex\"\n",
        parts.display()
    );
    fs::create_dir_all(home.join("config/squad")).expect("a folder");
    fs::write(home.join(USER), configuration).expect("a file");
    fs::create_dir_all(home.join("codex")).expect("a folder");
    let codex = format!(
        "model_provider = \"loop\"\nmodel = \"fake-1\"\n[model_providers.loop]\nname = \"l\"\nbase_url = \"{url}\"\n\
         wire_api = \"responses\"\nenv_key = \"OPENAI_API_KEY\"\n"
    );
    fs::write(home.join("codex/config.toml"), codex).expect("a file");
    for (name, value) in [
        ("CODEX_HOME", home.join("codex").display().to_string()),
        ("OPENAI_API_KEY", KEY.to_owned()),
        ("ANTHROPIC_API_KEY", KEY.to_owned()),
        ("ANTHROPIC_BASE_URL", url.trim_end_matches("/v1").to_owned()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
    ] {
        world.repo.variables.insert(name.to_owned(), value);
    }
    world
}

#[test]
fn the_real_programs_say_whether_they_are_logged_in() {
    let mut world = world();
    let gemini = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/node_modules/.bin/gemini");
    let user = std::path::PathBuf::from(&world.repo.variables["HOME"]).join(USER);
    let mut text = fs::read_to_string(&user).expect("a file");
    text.push_str(&format!("[engines.gemini]\nprogram = \"{}\"\n", gemini.display()));
    fs::write(&user, text).expect("a file");
    for (is_logged_in, fixes) in [(true, ["", "", ""]), (false, ["claude auth login", "codex login", "GEMINI_API_KEY"])]
    {
        if is_logged_in {
            world.repo.variables.insert("GEMINI_API_KEY".to_owned(), KEY.to_owned());
        } else {
            world
                .repo
                .variables
                .retain(|name, _| !["ANTHROPIC_API_KEY", "GEMINI_API_KEY", "CODEX_HOME"].contains(&&**name));
        }
        for (engine, fix) in ["claude-print", "codex-print", "gemini"].into_iter().zip(fixes) {
            let ended = world.run(&["engines", engine, "--json"]);
            let found: serde_json::Value = serde_json::from_str(&ended.out).expect("JSON");
            let found = &found["engines"][0];
            assert_eq!(found["ready"], is_logged_in, "{found}");
            assert!(is_logged_in || found["hint"].as_str().is_some_and(|hint| hint.contains(fix)), "{found}");
        }
    }
}

/// Claude Code and Codex beside each other in one run, each with its agent's charter, its work seen and recorded.
#[test]
fn a_mixed_team_works_in_one_run() {
    let world = world();
    let arguments = ["orchestrate", "--json", "--agent", "ada", "--agent", "bob", "--permissions", "allow", "Build it"];
    let ended = world.run(&arguments);
    ended.assert_status(0, "completed", &json!({ "ada": "completed", "bob": "completed", "coordinator": "completed" }));
    let of = |kind: &str, agent: &str| ended.first_of(kind, agent);
    for (agent, engine, text, file) in [
        ("ada", "claude-print", "The endpoint is there.", "ada.txt"),
        ("bob", "codex-print", "The tests are there.", "bob.txt"),
    ] {
        let exited = of("engine.exited", agent);
        assert_eq!(
            (&exited["engine"], &exited["exit_code"], &exited["chat"]),
            (&json!(engine), &json!(0), &json!(true))
        );
        assert_eq!(of("agent.completed", agent)["text"], text, "{ended}");
        assert!(of("tool.completed", agent)["detail"].as_str().is_some_and(|detail| detail.contains(file)), "{ended}");
        // Each saw the work of the tree while it lasted, whoever of both it was.
        assert!(of("agent.completed", agent)["changed"].to_string().contains(file), "{ended}");
        assert!(of("usage", agent)["input_tokens"].as_u64().is_some_and(|tokens| tokens >= 200), "{ended}");
    }
    assert_own_tools(&world, &ended);
    assert!(ended.only("run.completed")["commits"].as_array().is_some_and(|commits| !commits.is_empty()), "{ended}");
    assert!(world.repo.git(&["show", "--stat", "HEAD"]).contains(".squad/decisions/"), "{ended}");
    assert_eq!(world.processes(), [], "{ended}");
    world.repo.assert_sound();
    let objects = world.repo.git(&["cat-file", "--batch-all-objects", "--batch"]);
    assert!(!objects.contains(KEY), "the key is in the repository\n{ended}");
}

/// Squad's own tools, from each program's own MCP client: recorded as what the agent did.
fn assert_own_tools(world: &World, ended: &Ended) {
    for (kind, agent, text) in
        [("decision.logged", "ada", "Endpoints are JSON"), ("memory.logged", "bob", "The port is 8080.")]
    {
        let entries = world.ledger(kind);
        assert!(entries.len() == 1 && entries[0].contains(text), "{entries:?} {ended}");
        assert!(entries[0].contains(&format!("agent: \"{agent}\"")), "{entries:?}");
    }
}

/// What one of them hands on, the other does, and its report is the answer of the call.
#[test]
fn a_colleague_on_another_program_is_handed_work() {
    let world = world_of(|_| {
        let route = format!("tool:mcp__squad__squad_route {}", json!({ "agent": "bob", "task": "Count the cases" }));
        let status = format!("tool:mcp__squad__squad_status {}", json!({}));
        [plays("ada", &[&route, &status, "say:It is covered."]), plays("bob", &["say:Seven cases are covered."])]
    });
    let ended = world.run(&["orchestrate", "--json", "--permissions", "allow", "-a", "ada", "Build it"]);
    ended.assert_status(0, "completed", &json!({ "ada": "completed", "bob": "completed" }));
    let requested = ended.only("route.requested");
    assert_eq!((&requested["agent"], &requested["to"]), (&json!("ada"), &json!("bob")), "{ended}");
    for text in ["Report of `bob`:", "Seven cases are covered.", "- `bob`: completed"] {
        assert!(!world.requests_with(text).is_empty(), "{text}: {ended}");
    }
    assert_eq!(world.processes(), [], "{ended}");
}

#[test]
fn who_may_change_nothing_decides_and_remembers_all_the_same() {
    let world = world();
    let ended =
        world.run(&["orchestrate", "--json", "--agent", "ada", "--agent", "bob", "--permissions", "deny", "Build it"]);
    assert_own_tools(&world, &ended);
    assert!(!world.repo.exists("ada.txt") && !world.repo.exists("bob.txt"), "{ended}");
    // Claude Code says that it refused, of Codex it is known that it changed nothing.
    ended.assert_status(5, "stopped", &json!({ "ada": "stopped", "bob": "stopped" }));
    assert_refused(&ended, "ada", 1);
    let reason = "codex-print does not report refusals, and in its strictest mode nothing was changed";
    assert_eq!(ended.first_of("agent.stopped", "bob")["reason"], reason, "{ended}");
}

/// Claude Code's mode for work protects its own settings.
#[test]
fn one_allowed_change_is_enough_to_complete() {
    let allowed = format!("tool:Bash {}", json!({ "command": "true" }));
    for (allowed, code, status) in [(None, 5, "stopped"), (Some(allowed.as_str()), 0, "completed")] {
        let world = world_of(|root| {
            let file = root.join(".claude/settings.json");
            let refused = format!("tool:Write {}", json!({ "file_path": file, "content": "{}" }));
            let steps: Vec<&str> = [refused.as_str()].into_iter().chain(allowed).chain(["say:There."]).collect();
            [plays("ada", &steps), plays("bob", &[])]
        });
        let ended = world.run(&["orchestrate", "--json", "--agent", "ada", "--permissions", "allow", "Build it"]);
        ended.assert_status(code, status, &json!({ "ada": status }));
        assert_eq!(ended.only("run.completed")["work"][0]["refused"], 1, "{ended}");
        assert_eq!(ended.only("tool.denied")["tool"], "Write", "{ended}");
    }
}

/// This many calls of the agent were refused, each told once, and its report and its end say so.
fn assert_refused(ended: &Ended, agent: &str, count: usize) {
    let denied = ended.of("tool.denied").into_iter().filter(|event| event["agent"] == agent).count();
    let work = ended.only("run.completed")["work"].as_array().cloned().unwrap_or_default();
    let refused = work.iter().find(|work| work["agent"] == agent).map(|work| work["refused"].clone());
    assert_eq!((denied, refused), (count, Some(json!(count))), "{ended}");
    let reason = ended.first_of("agent.stopped", agent)["reason"].to_string();
    assert!(reason.contains(&format!("{count} write")) && reason.contains("none was allowed"), "{ended}");
}

/// The log has a call of squad's own tools once, under its own name, and what it recorded before the agent's end.
#[test]
fn squads_own_tools_stand_in_the_log_where_they_were_called() {
    let world = world();
    let ended =
        world.run(&["orchestrate", "--json", "--agent", "ada", "--agent", "bob", "--permissions", "allow", "Build it"]);
    let run = ended.only("run.completed")["run"].as_str().expect("an id").to_owned();
    let log = world.run(&["log", &run, "--events"]);
    let lines: Vec<&str> = log.out.lines().collect();
    let at = |agent: &str, kind: &str, text: &str| {
        let line = format!("  {agent:<12} {kind} ");
        let is_it = |at: &usize| lines[*at].contains(&line) && lines[*at].contains(text);
        let found: Vec<usize> = (0..lines.len()).filter(is_it).collect();
        assert_eq!(found.len(), 1, "{agent} {kind} {text}: {log}");
        found[0]
    };
    for (agent, tool, kind) in
        [("ada", "squad_log_decision", "decision.logged"), ("bob", "squad_remember", "memory.logged")]
    {
        let (call, recorded) = (at(agent, "tool.completed", tool), at(agent, kind, ""));
        let end = at(agent, "agent.completed", "");
        assert!(call < end && recorded < end, "{log}");
        assert_eq!(ended.of("tool.started").iter().filter(|event| event["tool"] == tool).count(), 1, "{ended}");
    }
    assert!(!log.out.contains("mcp__") && !log.out.contains("squad-squad"), "{log}");
    assert!(!ended.out.contains("has no tools of squad's"), "{ended}");
}

#[test]
fn retries_are_shown_while_they_last() {
    for (agent, said) in [
        ("ada", "claude-print: the model's service answered 529; retry 1 of 10 in "),
        ("bob", "codex-print: Reconnecting... 1/5"),
    ] {
        // Codex asks five times before it tells of it.
        let world = world_of(|_| {
            [plays("ada", &["busy:2 say:The endpoint is there."]), plays("bob", &["busy:6 say:The tests are there."])]
        });
        let ended = world.run(&["orchestrate", "--json", "--agent", agent, "--permissions", "allow", "Explain it"]);
        ended.assert_status(0, "completed", &json!({ agent: "completed" }));
        let warnings = ended.of("session.error");
        let is_said =
            |event: &serde_json::Value| event["reason"].as_str().is_some_and(|reason| reason.starts_with(said));
        assert!(warnings.iter().any(|event| event["agent"] == agent && is_said(event)), "{ended}");
    }
}

/// Gemini is Ada, opencode is Bob. Each writes a file, by a tool for files and by its shell.
fn other_world() -> World {
    let mut world = World::new(|root| {
        let write = json!({ "file_path": root.join("ada.txt"), "content": "one" });
        let execute = json!({ "command": "echo two > bob.txt", "description": "Write a file" });
        [
            plays("ada", &[&format!("tool:write_file {write}"), "say:The endpoint is there."]),
            plays("bob", &[&format!("tool:bash {execute}"), "say:The tests are there."]),
        ]
    });
    let parts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/node_modules");
    let home = std::path::PathBuf::from(&world.repo.variables["HOME"]);
    let url = world.model.url();
    let configuration = format!(
        "[engine]\nname = \"rehearsal\"\n[agents.ada]\nengine = \"gemini\"\n[agents.tester]\nengine = \"opencode\"\n\
         [engines.gemini]\nprogram = \"{0}/.bin/gemini\"\nmodel = \"gemini-2.5-pro\"\n\
         [engines.opencode]\nprogram = \"{0}/opencode-linux-x64/bin/opencode\"\nmodel = \"loop/fake-1\"\n",
        parts.display()
    );
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible", "name": "Loop", "options": { "baseURL": url, "apiKey": KEY },
        "models": { "fake-1": { "name": "Fake" } }
    });
    for (file, text) in [
        (USER, configuration),
        (".gemini/settings.json", json!({ "security": { "auth": { "selectedType": "gemini-api-key" } } }).to_string()),
        ("config/opencode/opencode.json", json!({ "provider": { "loop": provider } }).to_string()),
    ] {
        let file = home.join(file);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, text).expect("a file");
    }
    let path = format!("{}:{}", parts.join(".bin").display(), world.repo.variables["PATH"]);
    for (name, value) in [
        ("PATH", path),
        ("GEMINI_API_KEY", KEY.to_owned()),
        ("GOOGLE_GEMINI_BASE_URL", url.trim_end_matches("/v1").to_owned()),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
    ] {
        world.repo.variables.insert(name.to_owned(), value);
    }
    world
}

/// What both do under their own modes for work, and that their strictest ones change nothing.
#[test]
fn gemini_and_opencode_work_and_change_nothing_unless_they_may() {
    for (mode, may_write) in [("allow", true), ("deny", false)] {
        let world = other_world();
        let ended = world.run(&["orchestrate", "--json", "-a", "ada", "-a", "bob", "--permissions", mode, "Build it"]);
        let (code, status) = if may_write { (0, "completed") } else { (5, "stopped") };
        let mut agents = json!({ "ada": status, "bob": status });
        if may_write {
            agents["coordinator"] = json!(status);
        }
        ended.assert_status(code, status, &agents);
        for (agent, text, file) in
            [("ada", "The endpoint is there.", "ada.txt"), ("bob", "The tests are there.", "bob.txt")]
        {
            let completed = ended.first_of(&format!("agent.{status}"), agent);
            if !may_write {
                assert_refused(&ended, agent, 1);
            }
            assert_eq!(
                (&completed["text"], &completed["usage"]["input_tokens"]),
                (&json!(text), &json!(200)),
                "{ended}"
            );
            assert_eq!(ended.first_of("engine.exited", agent)["chat"], true, "{ended}");
            assert_eq!(world.repo.exists(file), may_write, "{mode} {file} {ended}");
        }
        assert_eq!(world.processes(), [], "{ended}");
        world.repo.assert_sound();
    }
}
