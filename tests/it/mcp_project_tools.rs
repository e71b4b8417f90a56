//! `shell` and `file_ops`, for agents of an engine that has no tools of its own. The engine is a script that starts the
//! server it is told of and calls what its task says, one call a line.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::mcp_client::McpClient;
use crate::support::TestRepo;
use crate::terminal::Person;

/// Prints the server's answers, one a line.
const AGENT: &str = r#"#!/bin/sh
program=$(printf %s "$2" | sed 's/.*"command":"\([^"]*\)".*/\1/')
arguments=$(printf %s "$2" | sed 's/.*"args":\["\([^]]*\)"\].*/\1/; s/","/ /g')
cat > "$OWN/prompt"
rm -f "$OWN/in" "$OWN/out"
mkfifo "$OWN/in" "$OWN/out"
"$program" $arguments < "$OWN/in" > "$OWN/out" &
exec 3> "$OWN/in" 4< "$OWN/out"
greeting='{"jsonrpc":"2.0","id":"hi","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}'
printf '%s\n' "$greeting" '{"jsonrpc":"2.0","method":"notifications/initialized"}' >&3
read -r line <&4
grep '^{"id"' "$OWN/prompt" | while read -r call; do
  printf '%s\n' "$call" >&3
  read -r line <&4
  printf '%s\n' "$line"
done
exec 3>&-
wait
"#;

const CONFIG: &str = "../home/config/squad/config.toml";

struct World {
    repo: TestRepo,
}

impl World {
    fn new() -> Self {
        let repo = TestRepo::with_small_team();
        let own = repo.root().with_file_name("own");
        fs::create_dir_all(&own).expect("a folder");
        let agent = own.join("agent");
        crate::support::script::write(&agent, &AGENT.replace("$OWN", &own.display().to_string()));
        let text = format!(
            "[engines.bare]\nprogram = '{}'\nargs = [\"{{tools}}\"]\nprompt = \"stdin\"\ntools = \"claude\"\nown_tools = false\n",
            agent.display()
        );
        repo.write(CONFIG, &text);
        Self { repo }
    }

    fn start(&self, permissions: &str, task: &str) -> Value {
        let arguments = ["--engine", "bare", "--permissions", permissions];
        let mut client = McpClient::greeted(&self.repo, "2025-11-25", &arguments);
        client.structured("start_squad_members", json!({"members": [{"roleId": "ada", "task": task}]}))
    }

    /// Has an agent make these calls. The member's result, the answers to the calls, and the run's events.
    fn call(&self, permissions: &str, calls: &[(&str, Value)]) -> (Value, Vec<String>, Vec<Value>) {
        let task: String = calls
            .iter()
            .enumerate()
            .map(|(number, (tool, arguments))| {
                let request = json!({"method": "tools/call", "params": {"name": tool, "arguments": arguments}});
                let request = request.to_string();
                format!("{{\"id\":{number},\"jsonrpc\":\"2.0\",{}\n", request.trim_start_matches('{'))
            })
            .collect();
        let result = self.start(permissions, &task);
        let member = result["members"][0].clone();
        let said = member["rawStdout"].as_str().unwrap_or_default();
        let answers = said.lines().map(|line| {
            let answer: Value = serde_json::from_str(line).expect(line);
            answer["result"]["content"][0]["text"].as_str().expect(line).to_owned()
        });
        let answers: Vec<String> = answers.collect();
        assert_eq!(answers.len(), calls.len(), "{result}");
        let run = result["squadId"].as_str().expect("an id");
        let log = self.repo.squad(&["log", "--json", run]);
        let events = log.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        (member, answers, events)
    }
}

/// The events of a kind, as recorded.
fn of<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

fn is_alive(id: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(id.trim()).join("stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

#[test]
fn work_is_done_and_leaves_the_evidence_of_any_other_tool() {
    let world = World::new();
    let (member, answers, events) = world.call(
        "allow",
        &[
            ("file_ops", json!({"operation": "write", "path": "src/a.txt", "content": "one\ntwo\n"})),
            ("file_ops", json!({"operation": "read", "path": "src/a.txt"})),
            ("shell", json!({"command": "cat a.txt; echo no >&2; exit 3", "cwd": "src"})),
            ("shell", json!({"command": "printf 'a\\000b\\377'"})),
            ("file_ops", json!({"operation": "write", "path": "empty", "content": ""})),
        ],
    );
    assert_eq!(member["status"], "completed", "{member}");
    assert_eq!(answers[..3], ["Wrote src/a.txt.", "one\ntwo\n", "[exit code 3]\n[stdout]\none\ntwo\n[stderr]\nno",]);
    assert_eq!(answers[3], "[exit code 0]\n[stdout]\nab\u{fffd}");
    assert_eq!((world.repo.read("src/a.txt"), world.repo.read("empty")), ("one\ntwo\n".to_owned(), String::new()));
    let completed = of(&events, "tool.completed");
    let shown: Vec<Value> = completed
        .iter()
        .map(|event| {
            json!([
                event["payload"]["tool"],
                event["payload"]["detail"],
                event["payload"]["exit_code"],
                event["payload"]["ok"]
            ])
        })
        .collect();
    assert_eq!(
        shown[..3],
        [
            json!(["file_ops", "src/a.txt", null, true]),
            json!(["file_ops", "src/a.txt", null, true]),
            json!(["shell", "cat a.txt; echo no >&2; exit 3", 3, false]),
        ],
        "{events:?}"
    );
    assert!(completed[2]["payload"]["result"].as_str().is_some_and(|text| text.contains("[exit code 3]")));
    world.repo.assert_sound();
}

#[test]
fn without_permission_the_project_is_read_and_nothing_else() {
    let world = World::new();
    world.repo.write("notes.txt", "read me\n");
    let (_, answers, events) = world.call(
        "deny",
        &[
            ("file_ops", json!({"operation": "read", "path": "notes.txt"})),
            ("file_ops", json!({"operation": "write", "path": "notes.txt", "content": "x"})),
            ("shell", json!({"command": "touch made"})),
        ],
    );
    assert_eq!(answers[0], "read me\n");
    assert_eq!(answers[1], "changing files is not allowed in this run (permissions: deny)");
    assert_eq!(answers[2], "running commands is not allowed in this run (permissions: deny)");
    assert_eq!(world.repo.read("notes.txt"), "read me\n");
    assert!(!world.repo.exists("made"));
    assert_eq!(of(&events, "tool.denied").len(), 2, "{events:?}");
}

/// Also where everything is allowed. What a command line runs counts, and not what it says.
#[test]
fn what_cannot_be_brought_back_is_refused_in_every_mode() {
    let world = World::new();
    let remote = world.repo.root().with_file_name("remote.git").display().to_string();
    world.repo.git(&["init", "--quiet", "--bare", &remote]);
    world.repo.git(&["push", "--quiet", &remote, "HEAD:refs/heads/main"]);
    let pushed = world.repo.git(&["ls-remote", &remote, "refs/heads/main"]);
    world.repo.write("../other/file", "theirs");
    let force = format!("git push --force {remote} main~1:main");
    let refused = [
        force.clone(),
        format!("git status && g\\it push \"-f\" '{remote}' main~1:main"),
        format!("echo $({force})"),
        format!("sh -c '{force}'"),
        format!("git push {remote} +main~1:main"),
        "rm -rf ../other".to_owned(),
        "true; rm -r -f \"$PWD/../other\"".to_owned(),
        "cd .. && rm -fr other".to_owned(),
        "git  reset  --hard".to_owned(),
    ];
    world.repo.write("kept.txt", "not committed");
    world.repo.git(&["add", "kept.txt"]);
    let mut calls: Vec<(&str, Value)> = refused.iter().map(|command| ("shell", json!({"command": command}))).collect();
    calls.push(("shell", json!({"command": "echo \"git push --force; rm -rf ..\"; mkdir made; rm -rf made"})));
    let (member, answers, events) = world.call("allow", &calls);
    for (command, answer) in refused.iter().zip(&answers) {
        assert!(answer.contains("refused in every mode"), "{command}: {answer}");
    }
    assert_eq!(answers[refused.len()], "[exit code 0]\n[stdout]\ngit push --force; rm -rf ..");
    assert_eq!(world.repo.git(&["ls-remote", &remote, "refs/heads/main"]), pushed);
    assert_eq!(
        (world.repo.read("../other/file"), world.repo.read("kept.txt")),
        ("theirs".into(), "not committed".into())
    );
    let denied = of(&events, "tool.denied");
    let details: Vec<&str> = denied.iter().filter_map(|event| event["payload"]["detail"].as_str()).collect();
    assert_eq!(details, refused, "{events:?}");
    assert_eq!(member["status"], "completed", "{member}");
}

/// A person at a terminal answers for an agent whose tools are squad's.
#[test]
fn a_person_is_asked_before_a_call_is_performed() {
    let world = World::new();
    let call = |number: u8, file: &str| {
        let arguments = json!({"operation": "write", "path": file, "content": "x"});
        let params = json!({"name": "file_ops", "arguments": arguments});
        format!("{{\"id\":{number},\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{params}}}\n")
    };
    let command_line = "{\"id\":2,\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{\"name\":\"shell\",\
                        \"arguments\":{\"command\":\"git push -f\"}}}\n";
    let task = call(0, "yes.txt") + &call(1, "no.txt") + command_line;
    let mut person = Person::sits_down();
    let mut command = world.repo.command(env!("CARGO_BIN_EXE_squad"), &world.repo.root());
    command.args(["orchestrate", "--engine", "bare", "--permissions", "ask", "--agent", "ada", &task]);
    let mut child = person.starts(command);
    person.is_asked("ada wants to write yes.txt");
    assert!(!world.repo.exists("yes.txt"), "{}", person.screen);
    person.types("y");
    person.is_asked("ada wants to write no.txt");
    person.types("n");
    child.wait().expect("it ends");
    assert_eq!((world.repo.read("yes.txt"), world.repo.exists("no.txt")), ("x".to_owned(), false), "{}", person.screen);
    let runs: Value = serde_json::from_str(&world.repo.squad(&["log", "--json"]).out).expect("JSON");
    let log = world.repo.squad(&["log", "--json", runs["runs"][0]["run"].as_str().expect("an id")]);
    let events: Vec<Value> = log.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let answered: Vec<&Value> =
        of(&events, "permission.answered").iter().map(|event| &event["payload"]["allowed"]).collect();
    assert_eq!(answered, [true, false], "a rule that holds in every mode asks nobody");
    let reasons: Vec<&str> =
        of(&events, "tool.denied").iter().filter_map(|event| event["payload"]["reason"].as_str()).collect();
    assert_eq!(reasons.len(), 2, "{events:?}");
    assert!(reasons[0] == "the user refused it" && reasons[1].contains("refused in every mode"), "{reasons:?}");
}

#[test]
fn nothing_reaches_out_of_the_project() {
    let world = World::new();
    let secret = world.repo.root().with_file_name("secret");
    fs::write(&secret, "secret").expect("a file");
    symlink(&secret, world.repo.root().join("link")).expect("a link");
    symlink(secret.with_file_name("new"), world.repo.root().join("dangling")).expect("a link");
    let outside = secret.display().to_string();
    let paths = ["link", "dangling", "../secret", &outside, ".git/config", "none/../../secret"];
    let mut calls = Vec::new();
    for path in paths {
        calls.push(("file_ops", json!({"operation": "read", "path": path})));
        calls.push(("file_ops", json!({"operation": "write", "path": path, "content": "evil"})));
    }
    calls.push(("shell", json!({"command": "pwd", "cwd": ".."})));
    calls.push(("shell", json!({"command": "a\u{0}b"})));
    let (_, answers, _) = world.call("allow", &calls);
    let (commands, files) = (&answers[answers.len() - 2..], &answers[..answers.len() - 2]);
    let is_refused = |said: &String| {
        ["outside of the project", "cannot be followed", "is git's"].iter().any(|why| said.contains(why))
    };
    assert!(files.iter().all(is_refused), "{files:?}");
    assert!(commands[0].contains("outside of the project") && commands[1].contains("without NUL"), "{commands:?}");
    assert_eq!(fs::read_to_string(&secret).expect("a file"), "secret");
    assert!(!secret.with_file_name("new").exists());
}

#[test]
fn a_command_ends_in_time_with_a_child_that_holds_its_output() {
    let world = World::new();
    let (_, answers, _) = world.call(
        "allow",
        &[
            ("shell", json!({"command": "sleep 1000 & echo $!; echo $! > child; trap '' TERM; while :; do sleep 1; done", "timeout_sec": 1})),
            ("shell", json!({"command": "sleep 1000 & echo $! > left; echo done"})),
        ],
    );
    assert!(answers[0].starts_with("[ended: it took too long (`timeout_sec` is 1)]\n[stdout]\n"), "{answers:?}");
    assert_eq!(answers[1], "[exit code 0]\n[stdout]\ndone");
    let begun = Instant::now();
    while ["child", "left"].iter().any(|file| is_alive(&world.repo.read(file))) {
        assert!(begun.elapsed() < Duration::from_secs(60), "they live");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_engine_with_tools_of_its_own_is_offered_none() {
    let world = World::new();
    let text = world.repo.read(CONFIG);
    world.repo.write(CONFIG, &text.replace("own_tools = false", "strict = []"));
    let result = world.start("allow", "{\"id\":0,\"jsonrpc\":\"2.0\",\"method\":\"tools/list\"}\n");
    let said = result["members"][0]["rawStdout"].as_str().unwrap_or_default();
    assert!(said.contains("squad_log_decision") && !said.contains("file_ops"), "{result}");
}
