//! `squad mcp` with engines that are command lines, set up by the environment that other servers of its kind read.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::mcp_client::McpClient;
use crate::support::TestRepo;

/// Says what it was given, and does what its message says.
const STUB: &str = r#"#!/bin/sh
[ "$1" = create-chat ] && { echo "chat-$$"; exit 0; }
[ "$1" = --resume ] && { printf 'resumed %s\n' "$2"; shift 2; }
printf '%s' "$1"
case "$1" in
  *"MAKE BYTES"*) printf '\377\376\303' ; sleep 0.2 ; printf '\274' ;;
  *"EXIT THREE"*) echo 'no compiler' >&2 ; exit 3 ;;
  *"KILL YOURSELF"*) kill -9 $$ ;;
  *"NEVER END"*) trap '' TERM ; sleep 1000 & echo $! > "$PIDS/$$.child" ; echo $$ > "$PIDS/$$" ; while :; do sleep 1; done ;;
esac
exit 0
"#;

/// A template has no mode in which it changes nothing.
const ALLOWED: [&str; 2] = ["--permissions", "allow"];

struct World {
    repo: TestRepo,
    own: PathBuf,
}

impl World {
    fn new() -> Self {
        let repo = TestRepo::with_small_team();
        repo.write(".squad/roles/tester.md", "You test.\n");
        let own = repo.root().parent().expect("a folder").join("own");
        fs::create_dir_all(own.join("pids")).expect("a folder");
        let world = Self { repo, own };
        let stub = STUB.replace("$PIDS", &world.own.join("pids").display().to_string());
        crate::support::script::write(&world.own.join("stub.sh"), &stub);
        let stub = world.own.join("stub.sh").display().to_string();
        let run = format!("{stub} <% if (chatId) {{ %> --resume <%= chatId %> <% }} %> \"<%= prompt %>\"\n");
        world.write("run.template", &run);
        world.write("create.template", &format!("{stub} create-chat\n"));
        world
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.own.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(path, text).expect("a file");
    }

    fn client(&self, more: &[(&str, &str)]) -> McpClient {
        let run = self.own.join("run.template").display().to_string();
        let variables = [&[("RUN_TEMPLATE_PATH", run.as_str())], more].concat();
        McpClient::start_in(&self.repo, &self.repo.root(), &ALLOWED, &variables).greet("2025-11-25")
    }

    /// Waits until the stub and its child run.
    fn processes(&self) -> Vec<u32> {
        let begun = Instant::now();
        loop {
            let files = fs::read_dir(self.own.join("pids")).expect("a folder").flatten();
            let ids: Vec<u32> =
                files.filter_map(|file| fs::read_to_string(file.path()).ok()?.trim().parse().ok()).collect();
            if ids.len() == 2 {
                return ids;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "nothing runs: {ids:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn is_alive(id: u32) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(id.to_string()).join("stat")).unwrap_or_default();
    // A zombie has ended.
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

fn until_gone(ids: &[u32]) {
    let begun = Instant::now();
    while ids.iter().any(|&id| is_alive(id)) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{ids:?} live");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn bytes(base64: &str) -> Vec<u8> {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = base64.chars().filter_map(|digit| DIGITS.find(digit));
    let bits: String = digits.map(|digit| format!("{digit:06b}")).collect();
    let eights = bits.as_bytes().chunks_exact(8).map(|bits| std::str::from_utf8(bits).expect("ASCII"));
    eights.map(|bits| u8::from_str_radix(bits, 2).expect("bits")).collect()
}

fn one(task: &str) -> Value {
    json!({"members": [{"roleId": "tester", "task": task}]})
}

#[test]
fn prompts_arrive_as_they_are_and_nothing_in_them_is_executed() {
    let world = World::new();
    let mut client = world.client(&[]);
    let evil = "$(touch executed) `touch executed`; touch executed && \"touch executed\" 'x'\n<% touch %> <%= task %>\n\
                --flag $HOME ${IFS} | tee executed > executed \u{202e}ü&lt;";
    let result = client.structured("start_squad_members", one(evil));
    let member = &result["members"][0];
    let said = member["rawStdout"].as_str().expect("a text");
    // Hidden characters are nobody's to send.
    let expected = evil.replace('\u{202e}', "");
    assert!(
        said.starts_with(&format!("# Role\n\nYou test.\n\n---\n\n# Task\n\n{expected}\n\n---\n\n# Setup")),
        "{said}"
    );
    assert_eq!((&member["status"], &member["exitCode"]), (&json!("completed"), &json!(0)), "{result}");
    assert_eq!(member["governedBy"], "only its command line, the user's own template", "{result}");
    assert!(!world.repo.exists("executed"));
    let prompt = client.request(
        "resources/read",
        json!({"uri": member["logUri"].as_str().expect("a link").replace("stdout", "prompt")}),
    );
    assert_eq!(prompt["result"]["contents"][0]["text"], said);
}

#[test]
fn codes_signals_and_bytes_are_kept() {
    let world = World::new();
    let mut client = world.client(&[("PROCESS_TIMEOUT_MS", "1500")]);
    let members = json!([
        {"roleId": "tester", "task": "EXIT THREE"},
        {"roleId": "tester", "task": "KILL YOURSELF"},
        {"roleId": "tester", "task": "MAKE BYTES"},
        {"roleId": "tester", "task": "NEVER END"},
        {"roleId": "tester", "task": "x".repeat(140 * 1024)},
    ]);
    let result = client.structured("start_squad_members", json!({"members": members}));
    let member = |index: usize| &result["members"][index];
    assert_eq!((&member(0)["status"], &member(0)["exitCode"]), (&json!("error"), &json!(3)), "{}", member(0));
    assert_eq!(member(0)["rawStderr"], "no compiler\n");
    assert!(member(0)["reason"].as_str().is_some_and(|reason| reason.contains("exit code 3")), "{}", member(0));
    assert_eq!((&member(1)["status"], &member(1)["signal"]), (&json!("error"), &json!(9)), "{}", member(1));
    assert_eq!(member(2)["status"], "completed");
    let raw = client.request("resources/read", json!({"uri": member(2)["logUri"]}));
    let blob = raw["result"]["contents"][0]["blob"].as_str().expect("bytes that are no text");
    // A character that came in two pieces, behind bytes that are none.
    assert!(bytes(blob).ends_with(b"\xff\xfe\xc3\xbc"), "{blob}");
    assert_eq!(member(3)["status"], "timeout", "{}", member(3));
    until_gone(&world.processes());
    assert_eq!(member(4)["status"], "completed", "{}", member(4)["reason"]);
}

/// Each kind of output, short and long.
#[cfg(unix)]
#[test]
fn a_reply_says_that_either_kind_of_output_is_cut() {
    let world = World::new();
    for (stdout, stderr) in [(10, 10), (200_000, 10), (10, 200_000), (200_000, 200_000)] {
        let print = |count: usize| format!("head -c {count} /dev/zero | tr '\\0' x");
        world.write("stub.sh", &format!("#!/bin/sh\n{}\n{} >&2\n", print(stdout), print(stderr)));
        let mut client = world.client(&[]);
        let result = client.structured("start_squad_members", one("Print."));
        let member = &result["members"][0];
        assert_eq!(member["truncated"], stdout + stderr > 1000, "{stdout} {stderr}");
    }
}

/// What a program prints goes to files; squad reads no more of it than it shows.
#[cfg(target_os = "linux")]
#[test]
fn much_output_takes_little_memory() {
    let world = World::new();
    // Whoever started it is squad.
    let stub = "#!/bin/sh\nhead -c 100000000 /dev/zero | tr '\\0' x\ngrep VmHWM /proc/$PPID/status >&2\n";
    world.write("stub.sh", stub);
    let mut client = world.client(&[]);
    let result = client.structured("start_squad_members", one("Print."));
    let member = &result["members"][0];
    assert_eq!((&member["status"], &member["truncated"]), (&json!("completed"), &json!(true)), "{member}");
    let file = world.repo.root().join(".git/squad/output");
    let sizes = fs::read_dir(file).expect("a folder").flatten().flat_map(|session| fs::read_dir(session.path()));
    let sizes = sizes.flatten().flatten().map(|file| file.metadata().expect("a file").len());
    assert_eq!(sizes.max(), Some(100_000_000));
    let peak = |status: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect(status);
        line.split_whitespace().nth(1).and_then(|kilobytes| kilobytes.parse().ok()).expect(line)
    };
    let runner = peak(member["rawStderr"].as_str().expect("a text"));
    let status = fs::read_to_string(format!("/proc/{}/status", client.child.id())).expect("it lives");
    // Most of it is the program itself, with its debug information.
    assert!(runner < 80 * 1024 && peak(&status) < 80 * 1024, "{runner} kB in the run, {status}");
}

#[test]
fn what_is_cancelled_leaves_no_process() {
    let world = World::new();
    let mut client = world.client(&[]);
    let started = client.structured("start_squad_members", {
        let mut members = one("NEVER END");
        members["wait"] = false.into();
        members
    });
    let ids = world.processes();
    let result = client.structured("cancel_run", json!({"squadId": started["squadId"]}));
    assert_eq!(result["status"], "cancelled", "{result}");
    assert!(result["members"][0]["rawStdout"].as_str().is_some_and(|text| text.contains("NEVER END")), "{result}");
    until_gone(&ids);
}

#[cfg(target_os = "linux")]
#[test]
fn a_killed_run_leaves_no_process_and_is_told_as_lost() {
    let world = World::new();
    let mut client = world.client(&[]);
    let mut members = one("NEVER END");
    members["wait"] = false.into();
    let started = client.structured("start_squad_members", members);
    let ids = world.processes();
    let status: Value = serde_json::from_str(&world.repo.squad(&["status", "--json"]).out).expect("JSON");
    assert_eq!(status["runs_live"][0]["run"], started["squadId"], "{status}");
    let run = started["squadId"].as_str().expect("an id");
    let lease = fs::read_to_string(world.repo.root().join(format!(".git/squad/runs/{run}.json"))).expect("a lease");
    let lease: Value = serde_json::from_str(&lease).expect("JSON");
    let killed = std::process::Command::new("kill").args(["-9", &lease["pid"].to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    until_gone(&ids);
    let result = client.structured("get_run", json!({"squadId": run, "waitSec": 5}));
    assert_eq!((&result["status"], &result["members"][0]["status"]), (&json!("lost"), &json!("error")), "{result}");
    assert!(result["members"][0]["reason"].as_str().is_some_and(|reason| reason.contains("process")), "{result}");
}

#[test]
fn a_chat_goes_on_by_a_handle_of_ours() {
    let world = World::new();
    let create = world.own.join("create.template").display().to_string();
    let variables = [("STATE_MODE", "stateful"), ("CREATE_CHAT_TEMPLATE_PATH", create.as_str())];
    let mut client = world.client(&variables);
    let first = client.structured("start_squad_members", one("Begin."));
    let member = &first["members"][0];
    let said = member["rawStdout"].as_str().expect("a text");
    assert!(
        said.starts_with("resumed chat-") && said.contains("# Role\n\nYou test.\n\n---\n\n# Initial Task\n\nBegin."),
        "{said}"
    );
    let theirs = said.lines().next().expect("a line").to_owned();
    let chat = member["chatId"].as_str().expect("a handle");
    assert!(!theirs.contains(chat));
    let mut next = one("Go on.");
    next["members"][0]["chatId"] = chat.into();
    let second = client.structured("start_squad_members", next);
    let said = second["members"][0]["rawStdout"].as_str().expect("a text");
    assert!(said.starts_with(&format!("{theirs}\n# Task\n\nGo on.\n")), "{said}");
    // An engine's own id is no handle.
    let mut wrong = one("x");
    wrong["members"][0]["chatId"] = theirs.trim_start_matches("resumed ").into();
    assert!(client.refused("start_squad_members", wrong).contains("is not one that squad has given out here"));
}

#[test]
fn a_member_that_waits_has_no_output_yet() {
    let world = World::new();
    let run = world.own.join("run.template").display().to_string();
    let create = world.own.join("create.template").display().to_string();
    let variables = [
        ("RUN_TEMPLATE_PATH", run.as_str()),
        ("CREATE_CHAT_TEMPLATE_PATH", create.as_str()),
        ("STATE_MODE", "stateful"),
    ];
    let arguments = ["--max-concurrent", "1", "--permissions", "allow"];
    let mut client = McpClient::start_in(&world.repo, &world.repo.root(), &arguments, &variables).greet("2025-11-25");
    let first = client.structured("start_squad_members", one("Begin."));
    let chat = first["members"][0]["chatId"].clone();
    let members = json!([
        {"roleId": "tester", "task": "NEVER END"},
        {"roleId": "tester", "task": "Go on.", "chatId": chat},
    ]);
    let started = client.structured("start_squad_members", json!({"members": members, "wait": false}));
    world.processes();
    let result = client.structured("get_run", json!({"squadId": started["squadId"]}));
    let waiting = &result["members"][1];
    assert_eq!((&waiting["status"], &waiting["rawStdout"]), (&json!("queued"), &json!("")), "{result}");
    client.structured("cancel_run", json!({"squadId": started["squadId"]}));
}

/// Runs of one chat in every state, each asked while the others are there.
#[test]
fn each_run_of_a_chat_shows_its_own_output_only() {
    const TASKS: [&str; 6] = ["ALPHA", "BETA", "GAMMA EXIT THREE", "DELTA KILL YOURSELF", "EPSILON NEVER END", "OMEGA"];
    let world = World::new();
    let create = world.own.join("create.template").display().to_string();
    let variables = [("STATE_MODE", "stateful"), ("CREATE_CHAT_TEMPLATE_PATH", create.as_str())];
    let mut client = world.client(&variables);
    let (mut chat, mut runs) = (Value::Null, Vec::new());
    for task in TASKS {
        let mut call = one(task);
        call["members"][0]["chatId"] = chat.clone();
        call["wait"] = (!task.contains("NEVER END")).into();
        let run = client.structured("start_squad_members", call);
        if task.contains("NEVER END") {
            world.processes();
            client.structured("cancel_run", json!({"squadId": run["squadId"]}));
        }
        chat = run["members"][0]["chatId"].clone();
        runs.push(run["squadId"].as_str().expect("an id").to_owned());
        for (run, own) in runs.iter().zip(TASKS) {
            let result = client.structured("get_run", json!({"squadId": run}));
            let uri = |kind: &str| json!({"uri": format!("squad://runs/{run}/{}/{kind}", result["members"][0]["memberId"].as_str().unwrap_or("tester"))});
            let told = [
                result["members"][0]["rawStdout"].to_string(),
                client.request("resources/read", uri("stdout")).to_string(),
                client.request("resources/read", uri("prompt")).to_string(),
            ];
            for (at, told) in told.iter().enumerate() {
                assert!(told.contains(own), "{at} {own}: {told}");
                let others = TASKS.iter().filter(|task| **task != own);
                assert!(others.clone().all(|other| !told.contains(other)), "{at} {own}: {told}");
            }
        }
    }
}

#[test]
fn a_chat_has_one_user_at_a_time() {
    let world = World::new();
    let create = world.own.join("create.template").display().to_string();
    let variables = [("STATE_MODE", "stateful"), ("CREATE_CHAT_TEMPLATE_PATH", create.as_str())];
    let mut client = world.client(&variables);
    let mut endless = one("NEVER END");
    endless["wait"] = false.into();
    let first = client.structured("start_squad_members", endless);
    world.processes();
    let mut next = one("Go on.");
    next["members"][0]["chatId"] = first["members"][0]["chatId"].clone();
    let said = client.refused("start_squad_members", next.clone());
    let run = first["squadId"].as_str().expect("an id");
    assert!(said.contains(&format!("is in use by run {run}; wait for its end")), "{said}");
    client.structured("cancel_run", json!({"squadId": run}));
    // Once the answer is there, the chat is free, for other servers too.
    let mut other = world.client(&variables);
    for turn in 0..6 {
        let server = if turn % 2 == 0 { &mut client } else { &mut other };
        let ended = server.structured("start_squad_members", next.clone());
        assert!(ended["members"][0]["rawStdout"].as_str().is_some_and(|said| said.contains("Go on.")), "{ended}");
    }
}

#[test]
fn members_of_all_calls_share_the_cap() {
    let world = World::new();
    let run = world.own.join("run.template").display().to_string();
    let server = || {
        let variables = [("RUN_TEMPLATE_PATH", run.as_str())];
        McpClient::start_in(
            &world.repo,
            &world.repo.root(),
            &["--max-concurrent", "1", "--permissions", "allow"],
            &variables,
        )
        .greet("2025-11-25")
    };
    let (mut client, mut other) = (server(), server());
    let start = |client: &mut McpClient, task: &str| {
        let mut call = one(task);
        call["wait"] = false.into();
        client.structured("start_squad_members", call)["squadId"].clone()
    };
    let first = start(&mut client, "NEVER END");
    world.processes();
    let second = start(&mut other, "MAKE BYTES");
    let waiting = other.structured("get_run", json!({"squadId": second, "waitSec": 1}));
    assert_eq!(waiting["members"][0]["status"], "queued", "{waiting}");
    // A member may start members itself, which do not wait for it.
    let variables = [("RUN_TEMPLATE_PATH", run.as_str()), ("SQUAD_RUN", first.as_str().expect("an id"))];
    let arguments = ["--max-concurrent", "1", "--permissions", "allow"];
    let mut nested = McpClient::start_in(&world.repo, &world.repo.root(), &arguments, &variables).greet("2025-11-25");
    let done = nested.structured("start_squad_members", one("MAKE BYTES"));
    assert_eq!(done["members"][0]["status"], "completed", "{done}");
    client.structured("cancel_run", json!({"squadId": first}));
    let ended = other.structured("get_run", json!({"squadId": second, "waitSec": 50}));
    assert_eq!(ended["members"][0]["status"], "completed", "{ended}");
}

/// Without and with `--permissions allow`, each without and with the user's word that the template changes nothing: what
/// the check announces holds, and each outcome repeats it.
#[test]
fn a_template_is_not_started_where_nothing_may_be_changed() {
    let (lifted, open) = ("which `engines.stub.strict` (its default) calls read-only", "the user's own template");
    for (mode, strict, announced, governed) in [
        ("deny", false, "stub: it is not started: it has no read-only mode", None),
        ("deny", true, lifted, Some(lifted)),
        ("allow", false, "the user's own template; squad checks no call", Some(open)),
        ("allow", true, "the user's own template; squad checks no call", Some(open)),
    ] {
        let mut world = World::new();
        let run = world.own.join("run.template").display().to_string();
        if strict {
            world.write("squad/config.toml", "[engines.stub]\nstrict = []\n");
            let own = world.own.display().to_string();
            world.repo.variables.insert("XDG_CONFIG_HOME".to_owned(), own);
        }
        world.repo.variables.insert("RUN_TEMPLATE_PATH".to_owned(), run);
        let check = world.repo.squad(&["mcp", "--check", "--permissions", mode]);
        let line = check.out.lines().find(|line| line.starts_with("governed")).expect("a line");
        assert!(line.ends_with(announced), "{mode} {strict}: {check}");
        assert_eq!(check.code, u8::from(governed.is_none()), "{mode} {strict}: {check}");
        let arguments = ["--permissions", mode];
        let mut client = McpClient::start_in(&world.repo, &world.repo.root(), &arguments, &[]).greet("2025-11-25");
        let Some(governed) = governed else {
            let reason = client.refused("start_squad_members", one("Begin."));
            assert!(reason.contains("engines.stub.strict"), "{reason}");
            continue;
        };
        for (task, status) in [("Begin.", "completed"), ("EXIT THREE", "error")] {
            let result = client.structured("start_squad_members", one(task));
            let again = client.structured("get_run", json!({"squadId": result["squadId"]}));
            for result in [&result, &again] {
                let member = &result["members"][0];
                assert_eq!(member["status"], status, "{mode} {strict}: {result}");
                assert!(
                    member["governedBy"].as_str().expect("a text").ends_with(governed),
                    "{mode} {strict}: {result}"
                );
            }
            let log = world.repo.squad(&["log", result["squadId"].as_str().expect("an id"), "--events"]);
            assert!(log.out.contains(governed), "{mode} {strict}: {log}");
        }
    }
}

#[test]
fn another_program_may_make_the_chat() {
    let world = World::new();
    let maker = world.own.join("maker.sh");
    crate::support::script::write(&maker, "#!/bin/sh\necho chat-of-the-maker\n");
    world.write("other.template", &format!("{}\n", maker.display()));
    let create = world.own.join("other.template").display().to_string();
    let variables = [("STATE_MODE", "stateful"), ("CREATE_CHAT_TEMPLATE_PATH", create.as_str())];
    let mut client = world.client(&variables);
    let first = client.structured("start_squad_members", one("Begin."));
    let said = first["members"][0]["rawStdout"].as_str().expect("a text");
    assert!(said.starts_with("resumed chat-of-the-maker\n"), "{first}");
}

#[test]
fn the_command_line_is_shown_and_a_repositorys_template_is_refused() {
    let world = World::new();
    let run = world.own.join("run.template").display().to_string();
    let mut repo = world.repo;
    repo.variables.insert("RUN_TEMPLATE_PATH".to_owned(), run);
    let shown = repo.squad(&["mcp", "--check", "--permissions", "allow"]);
    assert!(shown.out.contains("own/stub.sh {prompt}\n") && shown.code == 0, "{shown}");
    assert!(!shown.out.contains("create-chat"), "{shown}");
    let create = world.own.join("create.template").display().to_string();
    repo.variables.extend(
        [("STATE_MODE", "stateful".to_owned()), ("CREATE_CHAT_TEMPLATE_PATH", create)]
            .map(|(name, value)| (name.to_owned(), value)),
    );
    let shown = repo.squad(&["mcp", "--check", "--permissions", "allow"]);
    let lines = ["own/stub.sh --resume {chatId} {prompt}\n", "own/stub.sh create-chat\n"];
    assert!(lines.iter().all(|line| shown.out.contains(line)) && shown.code == 0, "{shown}");
    repo.write("run.template", "touch executed <%= prompt %>");
    repo.variables.insert("RUN_TEMPLATE_PATH".to_owned(), "run.template".to_owned());
    let refused = repo.squad(&["mcp", "--check"]);
    assert!(refused.err.contains("belongs to the checkout") && refused.code == 2, "{refused}");
}

/// One place for two members, looked at as often as it goes.
#[test]
fn a_member_waits_then_works_then_has_ended() {
    let world = World::new();
    let run = world.own.join("run.template").display().to_string();
    let variables = [("RUN_TEMPLATE_PATH", run.as_str())];
    let arguments = ["--max-concurrent", "1", "--permissions", "allow"];
    let mut client = McpClient::start_in(&world.repo, &world.repo.root(), &arguments, &variables).greet("2025-11-25");
    let member = json!({"roleId": "tester", "task": "MAKE BYTES"});
    let members = json!({"members": [member.clone(), member.clone(), member], "wait": false});
    let run = client.structured("start_squad_members", members)["squadId"].clone();
    let mut seen: Vec<Vec<(String, Option<u64>)>> = vec![Vec::new(); 3];
    let begun = Instant::now();
    loop {
        let result = client.structured("get_run", json!({"squadId": run}));
        for (seen, member) in seen.iter_mut().zip(result["members"].as_array().expect("members")) {
            let now = (member["status"].as_str().expect("a word").to_owned(), member["exitCode"].as_u64());
            if seen.last() != Some(&now) {
                seen.push(now);
            }
        }
        if result["status"] != "running" {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{result}");
    }
    let order = [("queued", None), ("running", None), ("running", Some(0)), ("completed", Some(0))];
    for seen in &seen {
        let mut rest = order.iter();
        let is_in_order = |(status, code): &(String, Option<u64>)| rest.any(|next| *next == (status.as_str(), *code));
        assert!(seen.iter().all(is_in_order), "{seen:?}");
        assert_eq!(seen.last(), Some(&("completed".to_owned(), Some(0))), "{seen:?}");
    }
    assert!(seen.iter().any(|seen| seen[0].0 == "queued"), "{seen:?}");
}

#[test]
fn a_stateless_server_uses_no_chats_of_any_engine() {
    let world = World::new();
    world.repo.write(".squad/roles/My Role.md", "You test.\n");
    let program = world.own.join("agent.sh");
    crate::support::script::write(
        &program,
        "#!/bin/sh\n[ \"$1\" = create-chat ] && { echo chat-7; exit; }\necho \"$@\"\n",
    );
    let profile = format!(
        "program = '{}'\nargs = [[\"--chat\", \"{{chatId}}\"], \"{{roleId}}\", \"{{prompt}}\"]\n",
        program.display()
    );
    world.repo.write(
        "../home/config/squad/config.toml",
        &format!(
            "[engines.maker]\n{profile}strict = []\nchat = \"command\"\ncreate_chat = [\"create-chat\"]\n\
             [engines.namer]\n{profile}strict = []\nchat = \"client\"\n"
        ),
    );
    let members = |engine: Option<&str>| {
        let roles = ["tester", "tester", "My Role"];
        let member = |role| json!({"roleId": role, "task": "Begin.", "engine": engine.unwrap_or_default()});
        json!({"members": roles.map(member)})
    };
    for engine in ["maker", "namer"] {
        let flags = ["--engine", engine];
        let environment = [("ENGINE_COMMAND", engine)];
        for (flags, variables, own) in
            [(&flags[..], &[][..], None), (&[][..], &environment[..], None), (&[][..], &[][..], Some(engine))]
        {
            for (state, heading) in [("stateless", "# Task"), ("stateful", "# Initial Task")] {
                let variables = [variables, &[("STATE_MODE", state)]].concat();
                let mut client =
                    McpClient::start_in(&world.repo, &world.repo.root(), flags, &variables).greet("2025-11-25");
                let result = client.structured("start_squad_members", members(own));
                for (index, role) in ["tester", "tester", "My Role"].into_iter().enumerate() {
                    let member = &result["members"][index];
                    let said = member["rawStdout"].as_str().expect("a text");
                    assert_eq!(member["status"], "completed", "{member}");
                    assert!(
                        said.contains(&format!("{role} # Role\n\nYou test.\n\n---\n\n{heading}\n\nBegin.")),
                        "{said}"
                    );
                    assert_eq!(said.starts_with("--chat "), state == "stateful", "{said}");
                    assert_eq!(member.get("chatId").is_some(), state == "stateful", "{member}");
                }
            }
        }
    }
}

#[test]
fn a_time_limit_is_kept_to_the_millisecond() {
    let world = World::new();
    for (milliseconds, limit) in [("1900", json!(1.9)), ("200", json!(0.2)), ("3000", json!(3.0))] {
        let mut client = world.client(&[("PROCESS_TIMEOUT_MS", milliseconds)]);
        let result = client.structured("start_squad_members", one("Begin."));
        let run = result["squadId"].as_str().expect("an id");
        let log = world.repo.squad(&["log", run, "--json"]);
        let started = log.out.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let started = started.into_iter().find(|entry| entry["type"] == "run.started").expect("its first event");
        assert_eq!(started["payload"]["members"][0]["limit"], limit, "{started}");
    }
    let mut client = world.client(&[("PROCESS_TIMEOUT_MS", "700")]);
    let result = client.structured("start_squad_members", one("NEVER END"));
    let member = &result["members"][0];
    assert_eq!(member["status"], "timeout", "{member}");
    assert!(member["reason"].as_str().is_some_and(|reason| reason.ends_with("within 700ms")), "{member}");
}

#[test]
fn an_engine_that_prints_nothing_has_completed() {
    let world = World::new();
    world.write("stub.sh", "#!/bin/sh\necho noise >&2\n");
    let mut client = world.client(&[]);
    let result = client.structured("start_squad_members", one("Begin."));
    let member = &result["members"][0];
    assert_eq!((&member["status"], &member["rawStdout"]), (&json!("completed"), &json!("")), "{member}");
    assert_eq!((&member["rawStderr"], member.get("reason")), (&json!("noise\n"), None), "{member}");
    let read = client.request("resources/read", json!({"uri": member["logUri"]}));
    assert_eq!(read["result"]["contents"][0]["text"], "", "{read}");
    fs::remove_dir_all(world.repo.root().join(".git/squad/output")).expect("output is removed");
    let read = client.request("resources/read", json!({"uri": member["logUri"]}));
    assert_eq!(read["result"]["contents"][0]["text"], "", "{read}");
}

#[test]
fn output_that_an_engine_replaces_is_no_trap() {
    let world = World::new();
    world.write("secret", "SECRET");
    let secret = world.own.join("secret").display().to_string();
    for replace in ["mkfifo $out", &format!("ln -s '{secret}' $out")] {
        let find = "out=$(ls -t .git/squad/output/*/*.stdout | head -n 1); rm $out";
        world.write("stub.sh", &format!("#!/bin/sh\n{find}; {replace}; echo done\n"));
        let mut client = world.client(&[]);
        let result = client.structured("start_squad_members", one("Begin."));
        assert_eq!(result["members"][0]["status"], "completed", "{result}");
        let again = client.structured("get_run", json!({"squadId": result["squadId"]}));
        for result in [&result, &again] {
            assert_eq!(result["members"][0]["rawStdout"], "done", "{result}");
        }
        let read = client.request("resources/read", json!({"uri": result["members"][0]["logUri"]}));
        assert!(!read.to_string().contains("SECRET"), "{read}");
        // While it runs, the server looks for the newest output.
        world.write("stub.sh", &format!("#!/bin/sh\n{find}; {replace}; touch '{secret}.made'; exec sleep 1000\n"));
        let mut members = one("Begin.");
        members["wait"] = false.into();
        let started = client.structured("start_squad_members", members);
        let begun = Instant::now();
        while !world.own.join("secret.made").exists() {
            assert!(begun.elapsed() < Duration::from_secs(60), "nothing runs");
            std::thread::sleep(Duration::from_millis(20));
        }
        fs::remove_file(world.own.join("secret.made")).expect("it is there");
        let running = client.structured("get_run", json!({"squadId": started["squadId"]}));
        assert_eq!(running["members"][0]["rawStdout"], "", "{running}");
        let cancelled = client.structured("cancel_run", json!({"squadId": started["squadId"]}));
        assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
    }
}

/// What the check shows is what is started, whatever bounds it: only the placeholders are filled in.
#[test]
fn a_program_is_started_as_the_check_shows_it() {
    let mut world = World::new();
    let script = "#!/bin/sh\nfor word; do printf '%s\\n' \"$word\"; done\n";
    for name in ["codex", "claude", "gemini"] {
        crate::support::script::write(&world.own.join("bin").join(name), script);
    }
    let path = format!("{}:{}", world.own.join("bin").display(), world.repo.variables["PATH"]);
    world.repo.variables.insert("PATH".to_owned(), path);
    for level in ["rules", "files", "full"] {
        world.repo.variables.insert("SQUAD_SANDBOX_LEVEL".to_owned(), level.to_owned());
        for (engine, mode, model) in [
            ("codex-print", "deny", None),
            ("codex-print", "allow", Some("gpt-5.2")),
            ("claude-code", "allow", None),
            ("gemini", "deny", Some("m-1")),
        ] {
            world.repo.variables.insert("ENGINE_COMMAND".to_owned(), engine.to_owned());
            let model = model.map(|model| ["--model", model]);
            let arguments = [&["--permissions", mode][..], model.as_ref().map_or(&[][..], |model| &model[..])].concat();
            let check = world.repo.squad(&[&["mcp", "--check", "--json"], &arguments[..]].concat());
            let check: Value = serde_json::from_str(&check.out).expect("JSON");
            let mut client = McpClient::start_in(&world.repo, &world.repo.root(), &arguments, &[]).greet("2025-11-25");
            let result = client.structured("start_squad_members", one("Begin."));
            let shown = check["command"].as_array().expect("words").iter().skip(1).filter_map(Value::as_str);
            let root = world.repo.root().display().to_string();
            let shown = shown.filter(|word| *word != "{tools}").map(|word| word.replace("REPO", &root));
            let member = &result["members"][0];
            let started = member["rawStdout"].as_str().expect("it was started");
            assert_eq!(started.lines().collect::<Vec<_>>(), shown.collect::<Vec<_>>(), "{level} {engine} {mode}");
            let governed = check["governed"].as_object().expect("a map").values().next().and_then(Value::as_str);
            let governed = governed.expect("a text").trim_end_matches("; squad checks no call");
            assert_eq!(member["governedBy"].as_str(), Some(governed), "{level} {engine} {mode}: {result}");
        }
    }
}
