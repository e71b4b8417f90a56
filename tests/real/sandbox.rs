//! The ways out of the sandbox, tried by the real engines' own tools for commands.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::attempts::{attempts, differences, git_state, state};
use crate::codex::on_codex;
use crate::model_server::Script;
use crate::session_engines::on_claude;
use crate::support::{World, call, plays, shell};

/// An engine's tool for commands waits for so many.
const AT_ONCE: usize = 8;

/// A file of its own for each: rules on commands would refuse many before anything is tried.
fn steps(count: usize, step: impl Fn(&str) -> String) -> [Script; 1] {
    let numbers: Vec<String> = (0..count).map(|number| number.to_string()).collect();
    let each = |some: &[String]| {
        let loop_of = "do timeout 3 sh try/$n.sh < /dev/null; touch try/$n.done; done";
        step(&format!("for n in {}; {loop_of}", some.join(" ")))
    };
    let steps: Vec<String> = numbers.chunks(AT_ONCE).map(each).chain(["say:Nothing worked.".to_owned()]).collect();
    [plays("ada", &steps.iter().map(String::as_str).collect::<Vec<_>>())]
}

#[test]
fn no_attempt_of_a_real_engine_gets_out() {
    let bash = |command: &str| call("Bash", &json!({ "command": command, "description": "A test's command" }));
    let exec = |command: &str| call("exec_command", &json!({ "cmd": command, "yield_time_ms": 30_000 }));
    for (engine, level) in [("copilot", "full"), ("copilot", "files"), ("claude", "full"), ("codex", "full")] {
        let attempts = attempts(level);
        let mut world = World::on_disk(|_: &Path| match engine {
            "copilot" => steps(attempts.len(), shell),
            "claude" => steps(attempts.len(), bash),
            _ => steps(attempts.len(), exec),
        });
        match engine {
            "copilot" => {}
            "claude" => on_claude(&mut world, ""),
            _ => on_codex(&mut world, &[], "gpt-5.5"),
        }
        for (name, value) in [("SQUAD_SANDBOX_LEVEL", level), ("SQUAD_SANDBOX_REQUIRE", "true")] {
            world.repo.variables.insert(name.to_owned(), value.to_owned());
        }
        let home = PathBuf::from(&world.repo.variables["HOME"]);
        let (out, key) = (home.join("out"), home.join(".ssh/id"));
        let write = |path: &Path, text: &str| {
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        };
        for (path, text) in [("kept", "kept\n"), ("run.sh", "#!/bin/sh\necho x >> $OUT/kept\n")] {
            write(&out.join(path), text);
        }
        fs::create_dir_all(out.join("empty")).expect("a folder");
        write(&key, "echo the-key-itself\n");
        // Its own home is an engine's to read.
        let keys = [".netrc", ".aws/credentials", ".codex/x", ".copilot/x"];
        for name in keys.iter().filter(|name| !name.contains(engine)) {
            write(&home.join(name), "the-key-itself\n");
        }
        for (number, attempt) in attempts.iter().enumerate() {
            let (out, key) = (out.display(), key.display());
            let text = format!("export OUT='{out}' KEY='{key}'\n{attempt}\n");
            world.repo.write(&format!("try/{number}.sh"), &text);
        }
        world.repo.write("README.md", "Read this.\n");
        world.repo.git(&["add", "--all"]);
        world.repo.git(&["commit", "--quiet", "--message=all"]);
        let other = out.join("other");
        world.repo.git(&["init", "--quiet", &other.display().to_string()]);
        let ann = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"];
        let commit = ["commit", "--quiet", "--allow-empty", "--message=one"];
        world.repo.git_in(&other, &[&ann[..], &commit].concat());
        let (is_full, git) = (level == "full", world.repo.root().join(".git"));
        let before = (state(&out, is_full), git_state(&git));
        let ended =
            world.run(&["orchestrate", "--json", "--permissions", "allow", "--agent", "ada", "Get out of the sandbox"]);
        if ended.code == Some(5) {
            eprintln!("this system has no sandbox `{level}`: {ended}");
            continue;
        }
        let tried = |number: &usize| world.repo.exists(&format!("try/{number}.done"));
        let left: Vec<&str> =
            attempts.iter().enumerate().filter(|(number, _)| !tried(number)).map(|(_, attempt)| *attempt).collect();
        assert!(attempts.len() >= 120 && left.is_empty(), "{engine}, {level}: not tried: {left:#?}\n{ended}");
        let tell = format!("{engine}, {level}: {ended}");
        assert_eq!(differences(&before.0, &state(&out, is_full)), <[PathBuf; 0]>::default(), "{tell}");
        if is_full {
            assert_eq!(differences(&before.1, &git_state(&git)), <[PathBuf; 0]>::default(), "{tell}");
        }
        assert_eq!(fs::read_to_string(&key).expect("a key"), "echo the-key-itself\n", "{tell}");
        let said = ended.of("tool.completed").iter().map(|event| event["result"].to_string()).collect::<String>();
        assert!(!said.contains("the-key-itself"), "{tell}");
        assert!(world.requests_with("the-key-itself").is_empty(), "{tell}");
        println!("{engine}, {level}: {} attempts", attempts.len());
    }
}

/// The real programs reach their model, and nothing that no list names, whatever they start; and the outcome says both.
#[test]
fn real_engines_reach_what_is_listed() {
    let try_it = "curl -s --max-time 9 -o /dev/null -w 'got %{http_code}' http://unlisted.invalid/; echo x > made.txt";
    let bash = call("Bash", &json!({ "command": try_it, "description": "A test's command" }));
    let exec = call("exec_command", &json!({ "cmd": try_it, "yield_time_ms": 30_000 }));
    for engine in ["copilot", "claude", "codex"] {
        let step = match engine {
            "copilot" => shell(try_it),
            "claude" => bash.clone(),
            _ => exec.clone(),
        };
        let mut world = World::on_disk(|_: &Path| [plays("ada", &[&step, "say:Tried."])]);
        match engine {
            "copilot" => {}
            "claude" => on_claude(&mut world, ""),
            _ => on_codex(&mut world, &[], "gpt-5.5"),
        }
        for (name, value) in [("LEVEL", "full"), ("REQUIRE", "true"), ("NETWORK", "listed")] {
            world.repo.variables.insert(format!("SQUAD_SANDBOX_{name}"), value.to_owned());
        }
        let ended =
            world.run(&["orchestrate", "--json", "--permissions", "allow", "--agent", "ada", "Try the network"]);
        if ended.code == Some(5) {
            eprintln!("this system has no network of a program's own: {ended}");
            return;
        }
        let work = &ended.of("agent.completed")[0];
        assert_eq!(work["network"], "listed", "{engine}: {ended}");
        let named = |kind: &str| work["hosts"][kind].to_string();
        assert!(named("refused").contains("unlisted.invalid:80"), "{engine}: {ended}");
        assert!(
            named("reached").contains("127.0.0.1:") || named("reached").contains("localhost:"),
            "{engine}: {ended}"
        );
        let said = ended.of("tool.completed").iter().map(|event| event["result"].to_string()).collect::<String>();
        assert!(said.contains("got 403"), "{engine}: {ended}");
        assert!(world.repo.exists("made.txt"), "{engine}: {ended}");
        println!("{engine}: reached {}, refused {}", named("reached"), named("refused"));
    }
}
