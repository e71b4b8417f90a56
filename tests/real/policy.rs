//! Rules of `[policy]` on the real CLI's own tools, looked at on disk.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::model_server::Script;
use crate::support::{World, call, create, creed, plays, shell};

/// Each tool that writes or runs something, in a run that allows everything and in one that allows nothing, with rules
/// for both.
#[test]
fn what_a_rule_denies_is_not_done_by_any_tool() {
    for (mode, rules, expected) in [
        ("allow", "writes.deny = [\"infra/**\"]\ncommands.deny = [\"touch\"]\n", [true, false, false, true, false]),
        ("deny", "writes.allow = [\"src/**\"]\ncommands.allow = [\"mkdir\"]\n", [true, false, false, true, false]),
        ("allow", "agents.bob.writes.deny = [\"**\"]\n", [true, true, true, true, true]),
    ] {
        let world = World::new(|root| {
            let edit = call("edit", &json!({ "path": root.join("infra/b.txt"), "old_str": "old", "new_str": "new" }));
            let created = [create(&root.join("src/a.txt"), "a"), create(&root.join("infra/a.txt"), "a")];
            let ran = [shell("mkdir made"), shell("sh -c 'touch touched'")];
            [plays("ada", &[&created[0], &created[1], &edit, &ran[0], &ran[1], "say:I tried."])]
        });
        world.repo.write("infra/b.txt", "old\n");
        world.repo.write("src/b.txt", "");
        world.repo.write("../home/config/squad/config.toml", &format!("[policy]\n{rules}"));
        let ended = world.run(&["orchestrate", "--json", "--permissions", mode, "--agent", "ada", "Do it"]);
        let is_new = world.repo.read("infra/b.txt") == "new\n";
        let exists = |path: &str| world.repo.root().join(path).exists();
        let done = [exists("src/a.txt"), exists("infra/a.txt"), is_new, exists("made"), exists("touched")];
        assert_eq!(done, expected, "{mode} {rules} {ended}");
    }
}

/// A call of the tool for patches, which the CLI offers to some models in the place of the others.
fn patch(hunks: &str) -> String {
    call("apply_patch", &json!({ "input": format!("*** Begin Patch\n{hunks}*** End Patch\n") }))
}

/// The same world with a model of the kind that gets the tool for patches.
fn patching(mut world: World) -> World {
    for (name, value) in [("COPILOT_MODEL", "gpt-5-codex"), ("COPILOT_PROVIDER_WIRE_API", "responses")] {
        world.repo.variables.insert(name.to_owned(), value.to_owned());
    }
    world
}

/// Each thing that a patch can do, to a file that may be written and to one that may not, however it is named.
#[test]
fn what_a_rule_denies_is_not_done_by_a_patch() {
    let world = patching(World::new(|root| {
        let far = root.join("infra/far.txt");
        let hunks = [
            "*** Add File: src/new.txt\n+new\n",
            "*** Update File: src/old.txt\n@@\n-old\n+new\n",
            "*** Add File: infra/new.txt\n+new\n",
            "*** Add File: src/../infra/up.txt\n+new\n",
            "*** Add File: src/link/linked.txt\n+new\n",
            &format!("*** Add File: {}\n+new\n", far.display()),
            "*** Update File: infra/old.txt\n@@\n-old\n+new\n",
            "*** Delete File: infra/gone.txt\n",
            "*** Update File: src/in.txt\n*** Move to: infra/in.txt\n@@\n-old\n+new\n",
            "*** Update File: infra/out.txt\n*** Move to: src/out.txt\n@@\n-old\n+new\n",
            "*** Add File: src/first.txt\n+new\n*** Add File: infra/second.txt\n+new\n",
        ];
        let steps: Vec<String> = hunks.iter().map(|hunks| patch(hunks)).collect();
        let steps: Vec<&str> = steps.iter().map(String::as_str).chain(["say:I tried."]).collect();
        // On this wire, charters are in none of the messages.
        [Script::new("Patch it", steps)]
    }));
    for path in ["src/old.txt", "infra/old.txt", "infra/gone.txt", "src/in.txt", "infra/out.txt"] {
        world.repo.write(path, "old\n");
    }
    std::os::unix::fs::symlink("../infra", world.repo.root().join("src/link")).expect("a link");
    world.repo.write("../home/config/squad/config.toml", "[policy]\nwrites.deny = [\"infra/**\"]\n");
    let ended = world.run(&["orchestrate", "--json", "--permissions", "allow", "--agent", "ada", "Patch it"]);
    let files = |folder: &str| {
        let entries = std::fs::read_dir(world.repo.root().join(folder)).expect("a folder").flatten();
        let mut files: Vec<(String, String)> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| name != "link")
            .map(|name| (name.clone(), world.repo.read(&format!("{folder}/{name}")).trim().to_owned()))
            .collect();
        files.sort();
        files
    };
    let as_it_was = |name: &str| (name.to_owned(), "old".to_owned());
    assert_eq!(files("infra"), ["gone.txt", "old.txt", "out.txt"].map(as_it_was), "{ended}");
    let src = files("src");
    assert!(src.contains(&as_it_was("in.txt")) && !src.iter().any(|(name, _)| name == "out.txt"), "{src:?} {ended}");
    // The tool works, where it may.
    for name in ["new.txt", "old.txt"] {
        assert!(src.contains(&(name.to_owned(), "new".to_owned())), "{src:?} {ended}");
    }
    assert!(ended.of("tool.denied").len() >= 9, "{ended}");
}

/// Each way in which the CLI runs a command.
#[test]
fn what_a_rule_denies_is_not_run_in_any_way() {
    let in_mode = |command: &str, more: Value| {
        let mut arguments = json!({ "command": command, "description": "A test's command" });
        arguments.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        call("bash", &arguments)
    };
    let world = World::new(|_| {
        let steps = [
            shell("touch sync"),
            in_mode("touch async", json!({ "mode": "async", "shellId": "a" })),
            in_mode("touch detached", json!({ "mode": "async", "detach": true, "shellId": "b" })),
            shell("echo 'touch piped' | sh"),
            shell("sh <<'E'\ntouch fed\nE"),
            shell("python3 -c \"import os; os.system('touch coded')\""),
            shell("echo coded2 | xargs touch"),
            shell("git -c alias.x='!touch aliased' x"),
            shell("mkdir made"),
        ];
        let steps: Vec<&str> = steps.iter().map(String::as_str).chain(["say:I tried."]).collect();
        [plays("ada", &steps)]
    });
    world.repo.write("../home/config/squad/config.toml", "[policy]\ncommands.deny = [\"touch\"]\n");
    let ended = world.run(&["orchestrate", "--json", "--permissions", "allow", "--agent", "ada", "Do it"]);
    let exists = |path: &&str| world.repo.root().join(path).exists();
    let made: Vec<&str> = ["sync", "async", "detached", "piped", "fed", "coded", "coded2", "aliased", "made"]
        .into_iter()
        .filter(exists)
        .collect();
    assert_eq!(made, ["made"], "{ended}");
    assert_eq!(ended.of("tool.denied").len(), 8, "{ended}");
}

/// Whatever the CLI offers to a kind of model is tried above, or cannot change anything.
#[test]
fn no_tool_is_offered_that_nobody_has_tried() {
    const TRIED: [&str; 4] = ["bash", "create", "edit", "apply_patch"];
    const HARMLESS: [&str; 7] = ["read_bash", "stop_bash", "list_bash", "view", "grep", "rg", "glob"];
    for takes_patches in [false, true] {
        let world = World::new(|_| [plays("ada", &["say:Done."])]);
        let world = if takes_patches { patching(world) } else { world };
        let ended = world.run(&["orchestrate", "--permissions", "allow", "--agent", "ada", "Do it"]);
        let request: Value = serde_json::from_str(&world.requests_with(creed("ada"))[0]).expect("JSON");
        let name =
            |tool: &Value| tool["name"].as_str().or(tool["function"]["name"].as_str()).expect("a name").to_owned();
        let offered: Vec<String> = request["tools"].as_array().expect("tools").iter().map(name).collect();
        let own = |name: &&String| !name.starts_with("squad_");
        for name in offered.iter().filter(own) {
            assert!(TRIED.contains(&name.as_str()) || HARMLESS.contains(&name.as_str()), "{name} of {offered:?}");
        }
        assert_eq!(offered.contains(&"apply_patch".to_owned()), takes_patches, "{offered:?} {ended}");
    }
}

/// A repository that brings one of each: nothing of it runs, and nobody elsewhere is called, while an agent works that may
/// do everything.
#[test]
fn nothing_of_a_hostile_repository_runs_or_calls() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").expect("a port");
    elsewhere.set_nonblocking(true).expect("a listener");
    let url = format!("http://{}", elsewhere.local_addr().expect("a place"));
    let world = World::new(|root| {
        let said = [create(&root.join("src/a.txt"), "a"), shell("mkdir made")];
        [plays("ada", &[&said[0], &said[1], "say:Done."])]
    });
    let ran = world.repo.root().join("ran");
    let run = format!("[\"sh\", \"-c\", \"touch '{}'\"]", ran.display());
    let file = format!("#!/bin/sh\ntouch '{}'\nexec cat\n", ran.display());
    world.repo.write_script("tools/run.sh", &file);
    let mut config = format!(
        "[policy]\ncommands.allow = [\"sh\"]\n[engine]\nfallback = [\"mine\"]\n\
         [engine.copilot]\npath = \"tools/run.sh\"\npermission = \"allow\"\n\
         [engine.copilot.provider]\nbase_url = \"{url}\"\nmodels = [\"fake-1\"]\n\
         [engines.mine]\nprogram = \"sh\"\narguments = [\"tools/run.sh\"]\n\
         [mcp.servers.program]\ncommand = \"sh\"\nargs = [\"tools/run.sh\"]\n\
         [mcp.servers.http]\nurl = \"{url}/mcp\"\n[mcp.servers.sse]\ntype = \"sse\"\nurl = \"{url}/sse\"\n\
         [check]\nrun = {run}\n[isolation]\nmode = \"clone\"\nsetup = {run}\n\
         [hosts.far]\nlaunch = {run}\n[links.other]\ngit = \"{url}/other.git\"\n[git]\nprogram = \"tools/run.sh\"\n\
         [sandbox]\nlevel = \"rules\"\ngit = \"open\"\n"
    );
    for on in ["pre_tool_use", "post_tool_use", "session_start", "agent_stop", "session_end"] {
        config.push_str(&format!("[hooks.{on}]\non = \"{on}\"\nrun = {run}\n"));
    }
    world.repo.write(".squad/config.toml", &config);
    let local = json!({ "command": "sh", "args": ["tools/run.sh"], "tools": ["*"] });
    let away = json!({ "type": "http", "url": format!("{url}/mcp"), "tools": ["*"] });
    let servers = json!({ "local": local, "away": away });
    world.repo.write(".squad/config.json", &json!({ "mcp": { "servers": servers } }).to_string());
    for path in [".mcp.json", ".github/mcp.json", ".copilot/mcp-config.json", ".vscode/mcp.json"] {
        world.repo.write(path, &json!({ "mcpServers": servers, "servers": servers }).to_string());
    }
    let hook = json!([{ "type": "command", "bash": format!("touch '{}'", ran.display()) }]);
    let hooks = json!({ "version": 1, "hooks": { "sessionStart": hook, "preToolUse": hook, "sessionEnd": hook } });
    world.repo.write(".github/hooks/hooks.json", &hooks.to_string());
    let charter = world.repo.read(".squad/agents/ada/charter.md");
    world.repo.write(".squad/agents/ada/charter.md", &format!("---\nmcp-servers: {servers}\n---\n{charter}"));
    for more in [&[][..], &["--isolation", "project"]] {
        let arguments = ["orchestrate", "--json", "--permissions", "allow", "--agent", "ada", "Do it"];
        let ended = world.run(&[&arguments[..], more].concat());
        assert!(ended.code == Some(0) && ended.of("hook.answered").is_empty(), "{ended}");
        assert!(!ran.exists(), "{ended}");
        let called = elsewhere.accept().map(|(_, from)| from);
        assert!(called.is_err(), "{called:?} {ended}");
    }
    assert!(world.repo.root().join("made").exists(), "the agent works");
}

/// What is denied is not offered, and nothing else goes with it.
#[test]
fn a_denied_tool_is_not_offered() {
    for (rule, is_offered) in [
        ("", [true, true, true]),
        ("tools.deny = [\"grep\"]", [false, true, true]),
        ("tools.only = [\"view\", \"grep\"]", [true, false, true]),
    ] {
        let world = World::new(|_| [plays("ada", &["say:Done."])]);
        world.repo.write("../home/config/squad/config.toml", &format!("[policy]\n{rule}\n"));
        world.run(&["orchestrate", "--permissions", "allow", "--agent", "ada", "Do it"]);
        let request = world.requests_with(creed("ada")).remove(0);
        let offers = ["grep", "glob", "view"].map(|tool| request.contains(&format!("\"name\":\"{tool}\"")));
        assert_eq!(offers, is_offered, "{rule}");
    }
}
