//! Programs of the user's as engines, through the real binary: a shell script stands for an agent.

use std::process::Stdio;

use serde_json::{Value, json};

#[cfg(target_os = "linux")]
use crate::process::wait_for;
use crate::process::{rest, signal};
use crate::support::{Output, TestRepo};

const BINARY: &str = env!("CARGO_BIN_EXE_squad");
const USER: &str = "../home/config/squad/config.toml";
/// Says what it was told and what it knows.
const ECHO: &str = "#!/bin/sh\necho \"$0 $* run=$SQUAD_RUN secret=$SECRET\"\ncat\n";

/// The team, whose user has an engine `mine`; and more configuration of the user's.
pub(crate) fn world(script: &str, configuration: &str) -> TestRepo {
    let mut repo = TestRepo::with_small_team();
    repo.write_script("../bin/my-agent", script);
    // Not by way of the checkout: what lies there is not run.
    let programs = repo.root().with_file_name("bin");
    let mine = "[engines.mine]\nprogram = \"my-agent\"\nargs = [\"{mode}\"]\nprompt = \"stdin\"\nstrict = [\"--safe\"]\nfree = [\"--yes\"]\n";
    repo.write(USER, &format!("{mine}{configuration}"));
    let path = format!("{}:{}", programs.display(), repo.variables["PATH"]);
    repo.variables.insert("PATH".to_owned(), path);
    repo.variables.insert("SECRET".to_owned(), "of somebody else".to_owned());
    repo
}

pub(crate) fn squad(repo: &TestRepo, arguments: &[&str]) -> Output {
    let done = repo.command(BINARY, &repo.root()).args(arguments).stdin(Stdio::null()).output().expect("squad runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    let code = done.status.code().and_then(|code| u8::try_from(code).ok()).expect("a code");
    Output { out: text(done.stdout), err: text(done.stderr), code }
}

pub(crate) fn of<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// The branch that an agent commits to × whether the reviewer is told of the commit beside the changed lines.
#[test]
fn a_reviewer_sees_what_is_committed_beside_the_branch() {
    const COMMITS: &str = "echo BACKDOOR > a.txt; git add a.txt; git commit -qm mine";
    let aside = format!("git switch -qc side; {COMMITS}; git switch -q main");
    for (commands, is_aside) in [(COMMITS, false), (&aside, true)] {
        let reviews = "cat > ../seen; echo 'VERDICT: approved'; exit";
        let script =
            format!("#!/bin/sh\nif [ \"$1\" = --safe ]; then {reviews}; fi\ncat > /dev/null\n{commands}\necho Done.\n");
        let repo = world(&script, "");
        let message = "@ada adds the endpoint, then @rex reviews it";
        let output = squad(&repo, &["orchestrate", "--engine", "mine", "--permissions", "allow", message]);
        assert_eq!(output.code, 0, "{output}");
        let seen = repo.read("../seen");
        assert_eq!(seen.matches("+BACKDOOR").count(), 1, "{seen}");
        assert_eq!(seen.contains("which the checked-out branch does not have"), is_aside, "{seen}");
    }
}

/// Whatever is allowed otherwise.
#[test]
fn a_reviewer_is_told_that_it_only_reads() {
    let repo = world(ECHO, "");
    let message = "@rex, review the diff of main";
    let output = squad(&repo, &["orchestrate", "--json", "--engine", "mine", "--permissions", "allow", message]);
    let events = TestRepo::events(&output);
    let told = of(&events, "agent.completed")[0]["text"].as_str().expect("a text");
    assert!(told.contains("Permissions: read only") && !told.contains("What you ask for is allowed"), "{told}");
    assert!(told.contains("my-agent --safe") && told.contains("Do the review that the task"), "{told}");
    assert_eq!(output.code, 1, "it gave no verdict: {output}");
}

/// Who works and who reads only, with a program that has a strict mode and with one that has none, in each mode.
#[test]
fn who_reads_only_never_gets_a_program_in_its_mode_for_work() {
    let loose =
        "[engines.loose]\nprogram = \"my-agent\"\nargs = [\"{mode}\"]\nprompt = \"stdin\"\nfree = [\"--yes\"]\n";
    let (works, reviews, chooses) =
        (&["--agent", "ada", "Add it"][..], &["@rex, review the diff of main"][..], &["Ponder the meaning of tar"][..]);
    for (arguments, only_reads) in [(works, false), (reviews, true), (chooses, true)] {
        for (engine, permissions) in [("mine", "allow"), ("mine", "deny"), ("loose", "allow"), ("loose", "deny")] {
            let repo = world("#!/bin/sh\necho \"$*\" >> ../started\ncat > /dev/null\n", loose);
            let flags = ["orchestrate", "--json", "--engine", engine, "--permissions", permissions];
            let output = squad(&repo, &[&flags[..], arguments].concat());
            let started = if repo.exists("../started") { repo.read("../started") } else { String::new() };
            let modes: std::collections::BTreeSet<&str> = started.lines().collect();
            let expected = match (engine, permissions == "allow" && !only_reads) {
                (_, true) => vec!["--yes"],
                ("mine", false) => vec!["--safe"],
                _ => vec![],
            };
            let case = format!("{arguments:?} {engine} {permissions}: {output}");
            assert_eq!(modes.into_iter().collect::<Vec<_>>(), expected, "{case}");
            if expected.is_empty() {
                assert!(output.code != 0 && output.to_string().contains("no read-only mode"), "{case}");
            }
        }
    }
}

/// The program asks for nothing, so it starts only when the state before its work is kept.
#[test]
fn what_a_program_overwrites_at_once_is_in_the_first_snapshot() {
    let repo = world("#!/bin/sh\necho agent > work.txt\necho changed it\ncat > /dev/null\n", "");
    repo.write("work.txt", "committed\n");
    repo.git(&["add", "work.txt"]);
    repo.git(&["commit", "-qm", "work"]);
    repo.write("work.txt", "mine\n");
    for number in 0..20 {
        repo.write(&format!("untracked/{number}.txt"), &"0123456789abcdef\n".repeat(4_000));
    }
    let arguments = ["orchestrate", "--json", "--engine", "mine", "--permissions", "allow", "-a", "ada", "Change it"];
    let output = squad(&repo, &arguments);
    assert_eq!(output.code, 0, "{output}");
    let events = TestRepo::events(&output);
    let run = events[0]["run"].as_str().expect("a run");
    assert_eq!(repo.git(&["show", &format!("refs/squad/runs/{run}/1:work.txt")]), "mine\n", "{output}");
    let changed = &of(&events, "agent.completed")[0]["changed"];
    assert_eq!(
        changed,
        &json!([{"path": "work.txt", "added": 1, "removed": 1, "class": "own", "by": ["ada"], "how": "command"}]),
        "{output}"
    );
}

#[test]
fn a_table_that_has_no_effect_and_a_misspelt_placeholder_are_said() {
    let repo = TestRepo::with_small_team();
    let user = "[engines.rehearsal]\nprogram = \"x\"\n[engines.mine]\nprogram = \"echo\"\nargs = [\"{promt}\", \"{prompt}\"]\n";
    repo.write("../home/config/squad/config.toml", user);
    let output = repo.squad(&["config", "list"]);
    assert!(output.err.contains("config.toml:2: `engines.rehearsal.program` has no effect"), "{output}");
    assert!(output.err.contains("config.toml:5: `engines.mine.args` has `{promt}`, which is unknown"), "{output}");
    let engines = repo.squad(&["engines", "mine"]);
    assert!(engines.to_string().contains("which is unknown"), "{engines}");
}

#[test]
fn each_agent_works_on_its_own_engine_in_one_run() {
    let repo = world(ECHO, "[engine]\nname = \"rehearsal\"\n[agents.ada]\nengine = \"mine\"\n");
    let output = squad(&repo, &["orchestrate", "--json", "--agent", "ada", "--agent", "bob", "Add it"]);
    assert_eq!(output.code, 0, "{output}");
    let events = TestRepo::events(&output);
    let mut started: Vec<_> = of(&events, "engine.started").iter().map(|event| event["engine"].as_str()).collect();
    started.sort_unstable();
    assert_eq!(started, [Some("mine"), Some("rehearsal")], "{output}");
    let exited = of(&events, "engine.exited");
    assert_eq!(exited.len(), 1, "{output}");
    let (exited, run) = (exited[0], exited[0]["run"].as_str().expect("an id"));
    let session = format!("squad-ada-{run}");
    for (key, value) in [("agent", "ada"), ("engine", "mine"), ("session", session.as_str())] {
        assert_eq!(exited[key], value, "{output}");
    }
    assert_eq!((&exited["exit_code"], &exited["turn"]), (&0.into(), &1.into()), "{output}");
    let governed = of(&events, "engine.governed");
    assert_eq!(governed[0]["by"], "its own strictest mode (`--safe`)", "{output}");
    let said = repo.read(&format!(".git/squad/{}", exited["stdout"].as_str().expect("a path")));
    assert!(said.contains(&format!("my-agent --safe run={run} secret=\n# Role\n")), "{said}");
    assert!(said.contains("\n# Task\n\n") && said.contains("Add it"), "{said}");
    // What the run keeps says it too.
    let log = repo.squad(&["log", run, "--events"]).out;
    assert!(log.contains("mine ended with code 0") && log.contains("its own strictest mode"), "{log}");
    repo.assert_sound();
}

#[test]
fn with_leave_it_works_in_its_own_mode_for_that() {
    let repo = world(ECHO, "[agents.ada]\nengine = \"mine\"\n");
    // Nobody else is needed, and so no other engine: the default one is not there.
    let output = squad(&repo, &["orchestrate", "--permissions", "allow", "--agent", "ada", "Add it"]);
    assert_eq!(output.code, 0, "{output}");
    assert!(
        output
            .err
            .contains("mine asks nobody and has no tools of squad's; what governs it: its own mode for work (`--yes`)"),
        "{output}"
    );
    assert!(output.out.contains("my-agent --yes"), "{output}");
}

/// Without and with `SQUAD_ENGINE`, each without and with an engine of the agent's own.
#[test]
fn the_variable_beats_an_agents_own_engine() {
    for (variable, own, expected) in [
        (None, None, "rehearsal"),
        (None, Some("mine"), "mine"),
        (Some("rehearsal"), Some("mine"), "rehearsal"),
        (Some("mine"), Some("rehearsal"), "mine"),
        (Some("mine"), None, "mine"),
    ] {
        let own = own.map(|engine| format!("[agents.ada]\nengine = \"{engine}\"\n")).unwrap_or_default();
        let mut repo = world(ECHO, &format!("[engine]\nname = \"rehearsal\"\n{own}"));
        repo.variables.extend(variable.map(|engine| ("SQUAD_ENGINE".to_owned(), engine.to_owned())));
        let output = squad(&repo, &["orchestrate", "--json", "--agent", "ada", "Add it"]);
        let events = TestRepo::events(&output);
        let started: Vec<&Value> = of(&events, "engine.started").iter().map(|event| &event["engine"]).collect();
        assert_eq!(started, [expected], "{variable:?} {own:?}: {output}");
    }
}

#[test]
fn the_charter_names_an_engine_and_the_flag_beats_it() {
    let repo = world(ECHO, "[engine]\nname = \"rehearsal\"\n");
    let charter = |engine: &str| {
        repo.write(".squad/agents/ada/charter.md", &format!("# Ada\n\n## Model\n\n- **Engine:** `{engine}`\n"));
    };
    charter("mine");
    let started = |arguments: &[&str]| {
        let output = squad(&repo, &[&["orchestrate", "--json", "--agent", "ada", "Add it"], arguments].concat());
        let events = TestRepo::events(&output);
        of(&events, "engine.started").iter().map(|event| event["engine"].to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(started(&[]), "\"mine\"");
    assert_eq!(started(&["--engine", "rehearsal"]), "\"rehearsal\"");
    charter("nobodys");
    let output = squad(&repo, &["orchestrate", "--agent", "ada", "Add it"]);
    assert_eq!(output.code, 3, "{output}");
    assert!(
        output.err.contains("there is no engine `nobodys`") && output.err.contains("agents/ada/charter.md"),
        "{output}"
    );
}

#[test]
fn what_cannot_start_is_said_and_falls_back_loudly() {
    let gone = "[engines.gone]\nprogram = \"no-such-agent\"\nprompt = \"stdin\"\n[agents.ada]\nengine = \"gone\"\n";
    let repo = world(ECHO, gone);
    let output = squad(&repo, &["orchestrate", "--agent", "ada", "Add it"]);
    assert_eq!(output.code, 4, "{output}");
    assert!(output.err.contains("gone is not installed: no `no-such-agent` in PATH"), "{output}");
    assert!(output.err.contains("hint: name it: squad config set --user engines.gone.program PATH"), "{output}");
    repo.write(USER, &format!("{gone}[engine]\nfallback = [\"rehearsal\"]\n"));
    let output = squad(&repo, &["orchestrate", "--json", "--agent", "ada", "Add it"]);
    let events = TestRepo::events(&output);
    let fallback = of(&events, "engine.fallback");
    assert_eq!((&fallback[0]["from"], &fallback[0]["to"]), (&"gone".into(), &"rehearsal".into()), "{output}");
}

#[test]
fn a_repository_brings_no_command_lines() {
    let repo = world(ECHO, "[engine]\nname = \"rehearsal\"\n");
    repo.write(".squad/config.toml", "[engines.evil]\nprogram = \"/bin/sh\"\nargs = [\"-c\", \"touch owned\"]\n[engines.claude]\nprogram = \"/bin/sh\"\n");
    let output = squad(&repo, &["orchestrate", "--agent", "ada", "Add it"]);
    assert!(
        output.err.contains(".squad/config.toml:2: `engines.evil` is ignored: a repository may not set it"),
        "{output}"
    );
    assert!(output.err.contains(".squad/config.toml:5: `engines.claude` is ignored"), "{output}");
    let output = squad(&repo, &["orchestrate", "--engine", "evil", "--agent", "ada", "Add it"]);
    assert!(output.code == 2 && output.err.contains("there is no engine `evil`"), "{output}");
    assert!(!repo.exists("owned"));
    // Nor the program itself.
    repo.write_script("tools/my-agent", ECHO);
    let mut repo = repo;
    repo.variables.insert("PATH".to_owned(), format!("{}:/usr/bin:/bin", repo.root().join("tools").display()));
    let output = squad(&repo, &["orchestrate", "--engine", "mine", "--agent", "ada", "Add it"]);
    assert!(output.code == 4 && output.err.contains("mine is not run: "), "{output}");
}

#[test]
fn one_that_works_for_too_long_is_ended_and_what_it_said_is_kept() {
    let script = "#!/bin/sh\ntrap '' TERM\necho begun\nsleep 300 &\nwhile :; do sleep 0.1; done\n";
    let repo = world(script, "[agents.ada]\nengine = \"mine\"\n[sessions]\nlimit = \"1s\"\n");
    let output = squad(&repo, &["orchestrate", "--json", "--agent", "ada", "Add it"]);
    assert_eq!(output.code, 1, "{output}");
    let events = TestRepo::events(&output);
    let exited = of(&events, "engine.exited");
    assert_eq!((&exited[0]["exit_code"], &exited[0]["signal"]), (&Value::Null, &9.into()), "{output}");
    assert_eq!(of(&events, "agent.timed_out").len(), 1, "{output}");
    let said = repo.read(&format!(".git/squad/{}", exited[0]["stdout"].as_str().expect("a path")));
    assert_eq!(said, "begun\n");
}

/// Terminals and process managers may deliver one Ctrl-C twice. The engine takes five seconds to end.
#[test]
fn an_interrupt_that_is_delivered_twice_is_one() {
    let script = "#!/bin/sh\ntrap '' TERM INT\necho $$ > \"$HOME/begun\"\nwhile :; do sleep 0.1; done\n";
    let repo = world(script, "[agents.ada]\nengine = \"mine\"\n");
    let mut command = repo.command(BINARY, &repo.root());
    command.args(["orchestrate", "--json", "--agent", "ada", "Add it"]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("squad runs");
    patiently("it has begun", || repo.exists("../home/begun"));
    signal(&child, "INT");
    std::thread::sleep(std::time::Duration::from_millis(50));
    signal(&child, "INT");
    let (out, code) = rest(child);
    assert!(
        code == Some(130) && out.contains(r#""status":"cancelled","agents":{"ada":"cancelled"}"#),
        "{code:?} {out}"
    );
}

/// By a guardian that finds what carries the run's mark. On macOS it could not, as `/bin/sh` shows nobody its environment
/// there; an engine does.
#[cfg(target_os = "linux")]
#[test]
fn nothing_outlives_a_squad_that_is_killed() {
    let script = "#!/bin/sh\nsetsid sleep 987 &\nsleep 987 &\necho $$ > \"$HOME/begun\"\nwait\n";
    let repo = world(script, "[agents.ada]\nengine = \"mine\"\n");
    let mut command = repo.command(BINARY, &repo.root());
    command.args(["orchestrate", "--json", "--agent", "ada", "Add it"]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("squad runs");
    wait_for(&mut child, "engine.governed");
    patiently("it has begun", || repo.exists("../home/begun"));
    child.kill().expect("it runs");
    rest(child);
    let mark = format!("HOME={}", repo.variables["HOME"]);
    let is_left = || {
        let environments = std::fs::read_dir("/proc").expect("Linux").flatten();
        environments
            .filter_map(|entry| std::fs::read(entry.path().join("environ")).ok())
            .any(|environment| environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes()))
    };
    patiently("nothing is left", || !is_left());
}

fn patiently(what: &str, is_so: impl Fn() -> bool) {
    let mut looks = (0..1200).map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        is_so()
    });
    assert!(looks.any(|is_so| is_so), "waited in vain: {what}");
}

#[test]
fn the_engines_are_listed_with_what_governs_them() {
    let repo = world("#!/bin/sh\necho my-agent 1.2.3\n", "[engine]\nname = \"mine\"\n");
    let output = squad(&repo, &["engines", "--json"]);
    assert_eq!(output.code, 0, "{output}");
    let value: Value = serde_json::from_str(&output.out).expect("JSON");
    let engines = value["engines"].as_array().expect("a list");
    let names: Vec<&str> = engines.iter().filter_map(|engine| engine["name"].as_str()).collect();
    let expected = [
        "copilot",
        "rehearsal",
        "claude",
        "codex",
        "gemini",
        "cursor",
        "opencode",
        "copilot-print",
        "claude-print",
        "codex-print",
        "mine",
    ];
    assert_eq!(names, expected);
    let mine = &engines[10];
    assert_eq!(
        (&mine["chosen"], &mine["ready"], &mine["version"]),
        (&true.into(), &Value::Null, &"my-agent 1.2.3".into())
    );
    assert_eq!(mine["governed"]["otherwise"], "its own strictest mode (`--safe`)");
    let can = |engine: usize, what: &str| engines[engine]["can"][what].as_bool().expect("it is said");
    assert!(can(0, "hooks") && can(2, "hooks") && !can(8, "hooks") && !can(10, "hooks") && can(8, "usage"));
    assert_eq!(squad(&repo, &["engines", "nobodys"]).code, 2);
}

/// Absent, logged out, logged in, and what makes a login unnecessary, for each engine that can be asked or looked at.
#[test]
fn a_missing_login_is_told_apart_from_a_missing_program() {
    // Like the real programs, which print what nobody can parse for long and exit with 1 without a login.
    let script = "#!/bin/sh\ncase \"$*\" in --version) echo 1.0;; *status) exit $(cat \"$HOME/logged-in\");; esac\n";
    let codex_config = "../home/.codex/config.toml";
    for (engine, files, variable, expected) in [
        ("claude", &[][..], None, Some("claude auth login")),
        ("claude", &[("../home/logged-in", "0")], None, None),
        ("codex", &[], None, Some("codex login")),
        ("codex", &[("../home/logged-in", "0")], None, None),
        ("codex", &[], Some("CODEX_API_KEY"), None),
        ("codex", &[(codex_config, "model = \"x\"\n")], None, Some("codex login")),
        ("codex", &[(codex_config, "model_provider = \"mine\"\n")], None, None),
        ("gemini", &[("../home/logged-in", "0")], None, Some("GEMINI_API_KEY")),
        ("gemini", &[], Some("GEMINI_API_KEY"), None),
        ("gemini", &[("../home/.gemini/oauth_creds.json", "{}")], None, None),
        ("gemini", &[("../home/.gemini/settings.json", "{\"theme\": 1}")], None, Some("GEMINI_API_KEY")),
        ("gemini", &[("../home/.gemini/settings.json", "{\"selectedType\": \"x\"}")], None, None),
    ] {
        let mut repo = world(script, &format!("[engines.{engine}]\nprogram = \"my-agent\"\n"));
        repo.write("../home/logged-in", "1");
        files.iter().for_each(|(path, text)| repo.write(path, text));
        variable.into_iter().for_each(|name: &str| drop(repo.variables.insert(name.to_owned(), "key".to_owned())));
        let report = |repo: &TestRepo| {
            let output = squad(repo, &["engines", engine, "--json"]);
            let found: Value = serde_json::from_str(&output.out).expect("JSON");
            found["engines"][0].clone()
        };
        let found = report(&repo);
        let case = format!("{engine} {files:?} {variable:?}: {found}");
        assert_eq!((&found["ready"], &found["version"]), (&json!(expected.is_none()), &json!("1.0")), "{case}");
        assert_eq!(found["installed"], true, "{case}");
        let said = format!("{} {}", found["problem"], found["hint"]);
        assert!(
            expected.is_none_or(|fix| said.contains("installed, but not logged in") && said.contains(fix)),
            "{case}"
        );
        repo.write(USER, &format!("[engines.{engine}]\nprogram = \"no-such-agent\"\n"));
        let absent = report(&repo);
        assert!(absent["problem"].as_str().is_some_and(|why| why.contains("is not installed")), "{absent}");
        assert_eq!((&absent["installed"], &absent["ready"]), (&json!(false), &json!(false)), "{absent}");
    }
}

/// An engine that cannot be asked for its login is installed, and not ready, wherever that is told.
#[test]
fn an_engine_without_a_login_that_is_seen_is_only_installed() {
    let auth = "../home/.local/share/opencode/auth.json";
    for (engine, files, variable, is_seen) in [
        ("cursor", &[][..], None, false),
        ("cursor", &[], Some("CURSOR_API_KEY"), true),
        ("opencode", &[], None, false),
        ("opencode", &[(auth, "{}")], None, false),
        ("opencode", &[(auth, "{\"a\": {\"type\": \"api\"}}")], None, true),
        ("opencode", &[], Some("OPENAI_API_KEY"), true),
        ("copilot-print", &[], None, false),
    ] {
        let settings = format!("[engine]\nname = \"{engine}\"\n[engines.{engine}]\nprogram = \"my-agent\"\n");
        let mut repo = world("#!/bin/sh\necho 1.0\n", &settings);
        files.iter().for_each(|(path, text)| repo.write(path, text));
        variable.into_iter().for_each(|name: &str| drop(repo.variables.insert(name.to_owned(), "key".to_owned())));
        let output = squad(&repo, &["engines", engine, "--json"]);
        let found: Value = serde_json::from_str(&output.out).expect("JSON");
        let expected = if is_seen { json!(true) } else { Value::Null };
        assert_eq!((&found["engines"][0]["ready"], output.code), (&expected, 0), "{engine} {files:?}: {output}");
        let said = [&["engines"][..], &["engines", engine]].map(|arguments| squad(&repo, arguments).out);
        for said in said {
            let line = said.lines().find(|line| line.contains(&format!("{engine} "))).expect("a line");
            assert_eq!(line.contains("ready"), is_seen, "{line}");
            assert_eq!(line.contains("installed; squad cannot ask whether it is logged in"), !is_seen, "{line}");
        }
        // Nothing is wrong with it either.
        let doctor = squad(&repo, &["doctor"]);
        assert!(!doctor.to_string().contains("engine-not-ready"), "{doctor}");
        assert_eq!(doctor.to_string().contains("1.0 is ready"), is_seen, "{doctor}");
    }
}

/// Each engine with and without `--permissions allow`; `doctor` says the same of those that the team uses.
#[test]
fn what_holds_for_writes_and_commands_is_said_for_each_engine() {
    let allowed = "each is allowed, but no file tool writes in `.git` and a few commands are refused";
    let asked = "squad decides on each write and command";
    let configuration = "[engine]\nname = \"rehearsal\"\n[agents.ada]\nengine = \"mine\"\n[agents.bob]\nengine = \"loose\"\n\
         [engines.loose]\nprogram = \"my-agent\"\n[engines.lifted]\nprogram = \"my-agent\"\nstrict = []\n\
         [engines.bare]\nprogram = \"my-agent\"\nargs = [\"{tools}\"]\nprompt = \"stdin\"\ntools = \"claude\"\nown_tools = false\n";
    let repo = world("#!/bin/sh\necho my-agent 1.2.3\n", configuration);
    let engines = squad(&repo, &["engines", "--json"]);
    let value: Value = serde_json::from_str(&engines.out).expect("JSON");
    let listed = value["engines"].as_array().expect("a list");
    let doctor = squad(&repo, &["doctor"]);
    for (name, allow, otherwise) in [
        ("copilot", allowed, asked),
        ("rehearsal", allowed, asked),
        ("bare", allowed, asked),
        ("mine", "its own mode for work (`--yes`); squad checks no call", "its own strictest mode (`--safe`)"),
        ("cursor", "its own mode for work (`--force`); squad checks no call", "its own strictest mode (`--mode plan`)"),
        (
            "copilot-print",
            "its own mode for work (`--allow-all-tools`); squad checks no call",
            "its own strictest mode (its default)",
        ),
        (
            "lifted",
            "its own mode for work (its default); squad checks no call",
            "its default mode, which `engines.lifted.strict` calls read-only",
        ),
        (
            "loose",
            "its own mode for work (its default); squad checks no call",
            "it is not started: it has no read-only mode",
        ),
    ] {
        let engine = listed.iter().find(|engine| engine["name"] == name).expect("listed");
        assert_eq!(engine["governed"], json!({"allow": allow, "otherwise": otherwise}), "{name}");
        let line = format!("with `--permissions allow` {allow}; otherwise {otherwise}");
        let shown = squad(&repo, &["engines", name]);
        assert!(shown.out.contains(&format!("  governed  {line}\n")), "{shown}");
        let is_used = ["rehearsal", "mine", "loose"].contains(&name);
        assert_eq!(doctor.out.contains(&format!("{name}: {line}\n")), is_used, "{name}: {doctor}");
    }
}

/// Without the line it would be another command, perhaps one that may do more.
#[test]
fn an_engine_with_a_line_that_cannot_be_used_is_not_started() {
    for line in ["strict = \"--ro\"", "args = [\"{task}\", 5]", "stream = \"xml\""] {
        let bad = format!("[engines.bad]\nprogram = \"my-agent\"\n{line}\n");
        let repo = world("#!/bin/sh\ntouch started\n", &bad);
        let output = squad(&repo, &["orchestrate", "--engine", "bad", "--agent", "ada", "Add it"]);
        assert!(output.code != 0 && output.err.contains("bad"), "{line}: {output}");
        assert!(!repo.exists("started"), "{line}: {output}");
        let listed = squad(&repo, &["engines", "bad", "--json"]);
        assert!(!listed.out.contains("\"ready\":true"), "{line}: {listed}");
    }
}

#[test]
fn one_that_prints_nothing_is_stopped_for_its_silence() {
    let repo = world("#!/bin/sh\nsleep 600\n", "");
    let arguments = ["orchestrate", "--json", "--engine", "mine", "--permissions", "allow", "--agent", "ada"];
    let output = squad(&repo, &[&arguments[..], &["--timeout", "1s", "Add it"]].concat());
    assert!(output.code == 1 && output.out.contains("agent.timed_out"), "{output}");
}

#[test]
fn one_that_only_tries_again_is_stopped_for_its_silence() {
    let retry = r#"{"type":"system","subtype":"api_retry","attempt":1,"max_retries":10,"retry_delay_ms":200,"error_status":529}"#;
    let script = format!("#!/bin/sh\nfor n in $(seq 100); do echo '{retry}'; sleep 0.2; done\n");
    let repo = world(&script, "stream = \"claude\"\n");
    let arguments = ["orchestrate", "--json", "--engine", "mine", "--permissions", "allow", "--agent", "ada"];
    let output = squad(&repo, &[&arguments[..], &["--timeout", "1s", "Add it"]].concat());
    assert!(output.code == 1 && output.out.contains("agent.timed_out"), "{output}");
    let said = "mine: the model's service answered 529; retry 1 of 10 in 0.2 s";
    assert_eq!(of(&TestRepo::events(&output), "session.error")[0]["reason"], said, "{output}");
}

/// A script that prints lines of Claude Code's or Codex's output.
pub(crate) fn prints(lines: &[&str]) -> String {
    let quoted: Vec<String> = lines.iter().map(|line| format!("echo '{line}'\n")).collect();
    format!("#!/bin/sh\ncat > /dev/null\n{}", quoted.concat())
}

#[test]
fn whose_every_write_was_refused_is_stopped_and_whose_were_not_all_is_not() {
    let write = |id: &str, file: &str| {
        format!(
            r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","id":"{id}","name":"Write","input":{{"file_path":"{file}","content":"x"}}}}]}}}}"#
        )
    };
    let result = |id: &str, is_error: bool| {
        format!(
            r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"{id}","content":"","is_error":{is_error}}}]}}}}"#
        )
    };
    let end = r#"{"type":"result","is_error":false,"result":"Done.","permission_denials":[{"tool_name":"Write","tool_use_id":"t1","tool_input":{"file_path":"a.txt"}}]}"#;
    let refused = [write("t1", "a.txt"), result("t1", true)];
    let allowed = [write("t2", "b.txt"), result("t2", false)];
    for (lines, code, status) in
        [(refused.to_vec(), 5, "stopped"), ([&refused[..], &allowed[..]].concat(), 0, "completed")]
    {
        let lines: Vec<&str> = lines.iter().map(String::as_str).chain([end]).collect();
        let repo = world(&prints(&lines), "stream = \"claude\"\n");
        let arguments = ["orchestrate", "--engine", "mine", "--permissions", "allow", "-a", "ada", "Add it"];
        let output = squad(&repo, &[&arguments[..], &["--json"]].concat());
        let events = TestRepo::events(&output);
        let ended = of(&events, "run.completed")[0];
        assert_eq!((output.code, &ended["status"]), (code, &json!(status)), "{output}");
        assert_eq!((&ended["work"][0]["refused"], of(&events, "tool.denied").len()), (&json!(1), 1), "{output}");
        let said = squad(&repo, &arguments).err;
        assert!(said.lines().any(|line| line.contains("Write a.txt    refused: ")), "{said}");
        assert!(said.contains(", 1 refused") || said.contains("   1 refused"), "{said}");
    }
}

/// Lines of a program's output about a write to `file`, whether it was refused.
fn writes(stream: &str, file: &str, is_refused: bool) -> String {
    let lines = match (stream, is_refused) {
        ("claude", _) => vec![
            json!({ "type": "assistant", "message": { "content": [{ "type": "tool_use", "id": file, "name": "Write",
                "input": { "file_path": file, "content": "x" } }] } }),
            json!({ "type": "user", "message": { "content": [{ "type": "tool_result", "tool_use_id": file,
                "content": if is_refused { "<tool_use_error>Error: No such tool available: Write. Write is disabled for this session.</tool_use_error>" } else { "" },
                "is_error": is_refused }] } }),
        ],
        ("gemini", _) => {
            let call = json!({ "type": "tool_use", "tool_name": "write_file", "tool_id": file,
                "parameters": { "file_path": file, "content": "x" } });
            let result = match is_refused {
                true => json!({ "type": "tool_result", "tool_id": file, "status": "error",
                    "error": { "type": "policy_violation", "message": "Tool execution denied by policy." } }),
                false => json!({ "type": "tool_result", "tool_id": file, "status": "success", "output": "" }),
            };
            vec![call, result]
        }
        (_, true) => vec![json!({ "type": "tool_use", "part": { "tool": "write", "callID": file, "state": {
            "status": "error", "input": { "filePath": file },
            "error": "The user rejected permission to use this specific tool call." } } })],
        (_, false) => vec![json!({ "type": "tool_use", "part": { "tool": "write", "callID": file, "state": {
            "status": "completed", "input": { "filePath": file }, "output": "" } } })],
    };
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The program × whether a write was refused × whether one was done: all screens tell the same.
#[test]
fn what_other_engines_refused_is_told_alike() {
    for stream in ["claude", "gemini", "opencode"] {
        for (refused, done, code, word) in [
            (true, false, 5, "stopped"),
            (true, true, 0, "completed"),
            (false, true, 0, "completed"),
            (false, false, 1, "claimed"),
        ] {
            let mut lines = String::new();
            if refused {
                lines += &writes(stream, "a.txt", true);
            }
            if done {
                lines += &writes(stream, "b.txt", false);
            }
            lines += match stream {
                "claude" => "{\"type\":\"result\",\"is_error\":false,\"result\":\"Both are there.\"}\n",
                "gemini" => {
                    "{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"Both are there.\"}\n{\"type\":\"result\",\"status\":\"success\"}\n"
                }
                _ => "{\"type\":\"text\",\"part\":{\"text\":\"Both are there.\"}}\n",
            };
            let act = if done { "echo x > b.txt\n" } else { "" };
            let script = format!("#!/bin/sh\ncat > /dev/null\n{act}cat <<'END'\n{lines}END\n");
            let repo = world(&script, &format!("stream = \"{stream}\"\n"));
            let run = ["orchestrate", "--engine", "mine", "--permissions", "allow", "-a", "ada", "Add both files"];
            let output = squad(&repo, &run);
            let case = format!("{stream}, refused {refused}, done {done}: {output}");
            assert_eq!(output.code, code, "{case}");
            let log: Value = serde_json::from_str(&squad(&repo, &["log", "--json"]).out).expect("JSON");
            let id = log["runs"][0]["run"].as_str().expect("a run").to_owned();
            assert_eq!(log["runs"][0]["status"], word, "{case}");
            for list in [squad(&repo, &["log"]), squad(&repo, &["status"])] {
                let is_it = |line: &str| line.contains(&id[id.len() - 6..]) && line.contains(word);
                assert!(list.out.lines().any(is_it), "{case} {list}");
            }
            let told = squad(&repo, &["log", &id]);
            for screen in [&output.err, &told.out] {
                assert_eq!(
                    screen.contains("1 refused") || screen.contains("1 write was refused"),
                    refused,
                    "{case} {told}"
                );
                assert_eq!(screen.contains("b.txt +1 -0") || screen.contains("b.txt  +1 -0"), done, "{case} {told}");
                assert!(screen.contains(word), "{case} {told}");
            }
            let entries = squad(&repo, &["log", &id, "--json"]);
            let entries: Vec<Value> =
                entries.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
            let denied: Vec<&Value> = of(&entries, "tool.denied").iter().map(|entry| &entry["payload"]).collect();
            assert_eq!(denied.len(), usize::from(refused), "{case}");
            assert!(denied.iter().all(|denied| denied["detail"] == "a.txt" && denied["reason"] != ""), "{denied:?}");
            let end = &of(&entries, "run.completed")[0]["payload"];
            assert_eq!(
                (&end["status"], &end["work"][0]["refused"]),
                (&json!(word), &json!(u64::from(refused))),
                "{case}"
            );
            assert_eq!(end["work"][0]["changed"].as_array().map(Vec::len), Some(usize::from(done)), "{case}");
            if done {
                let why = squad(&repo, &["why", "b.txt"]);
                assert!(why.out.contains("ada"), "{why}");
            }
        }
    }
}

/// Codex does not say what its mode has refused.
#[test]
fn whose_refusals_are_not_known_is_stopped_if_it_was_asked_for_work_and_changed_nothing() {
    let lines = [r#"{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"Done."}}"#];
    let repo = world(&prints(&lines), "stream = \"codex\"\n");
    for (mode, message, code) in
        [("deny", "Add a page", 5), ("deny", "Why is the page slow?", 0), ("allow", "Add a page", 1)]
    {
        let arguments = ["orchestrate", "--json", "--engine", "mine", "-a", "ada", "--permissions", mode, message];
        let output = squad(&repo, &arguments);
        assert_eq!(output.code, code, "{mode} {message}: {output}");
        let reason = "mine does not report refusals, and in its strictest mode nothing was changed";
        let events = TestRepo::events(&output);
        let stopped = of(&events, "agent.stopped");
        assert_eq!(stopped.first().map(|event| &event["reason"]), (code == 5).then_some(&json!(reason)), "{output}");
    }
}

#[test]
fn squads_own_tools_are_shown_under_their_own_names() {
    let lines = [
        r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"mcp__squad__squad_remember","input":{"text":"x"}}]}}"#,
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"Kept."}]}}"#,
        r#"{"type":"result","is_error":false,"result":"Done."}"#,
    ];
    let repo = world(&prints(&lines), "stream = \"claude\"\n");
    let output = squad(&repo, &["orchestrate", "--engine", "mine", "--permissions", "allow", "-a", "ada", "Add it"]);
    assert!(
        output.err.lines().any(|line| line.starts_with("  ada ") && line.contains("  squad_remember ")),
        "{output}"
    );
    assert!(!output.err.contains("mcp__"), "{output}");
}

#[test]
fn a_program_that_prints_nothing_has_done_its_work() {
    let repo = world("#!/bin/sh\ncat > /dev/null\n", "");
    let arguments = ["orchestrate", "--engine", "mine", "--permissions", "allow", "-a", "ada", "Change it"];
    let output = squad(&repo, &arguments);
    assert!(output.code == 0 && output.out.contains("It printed nothing on its standard output."), "{output}");
}

/// Killed before its first word, it has done nothing yet. Of one that says nothing before its end, nobody knows.
#[test]
fn a_program_that_is_killed_before_it_says_anything_is_started_again() {
    let script = "#!/bin/sh\nexec 2>/dev/null\necho x >>\"$HOME/starts\"\n\
                  [ $(wc -l <\"$HOME/starts\") -gt $(cat \"$HOME/deaths\") ] || kill -KILL $$\n\
                  echo '{\"type\":\"system\",\"subtype\":\"init\"}'\n\
                  echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"Done.\"}'\n";
    for (stream, deaths, code, starts, lost, restored) in [
        ("claude", 2, 0, 3, 2, 1),
        // It goes on once more after an error.
        ("claude", 3, 0, 4, 2, 0),
        ("claude", 6, 1, 6, 4, 0),
        ("text", 1, 0, 2, 0, 0),
        ("text", 2, 1, 2, 0, 0),
    ] {
        let mine = format!(
            "[engines.streams]\nprogram = \"my-agent\"\nprompt = \"stdin\"\nstrict = [\"--safe\"]\nstream = \"{stream}\"\n"
        );
        let repo = world(script, &mine);
        repo.write("../home/deaths", &deaths.to_string());
        let output = squad(&repo, &["orchestrate", "--json", "--engine", "streams", "--agent", "ada", "x"]);
        assert_eq!(output.code, code, "{stream} {deaths}: {output}");
        assert_eq!(repo.read("../home/starts").lines().count(), starts, "{stream} {deaths}: {output}");
        let events = TestRepo::events(&output);
        let told = ["connection.lost", "connection.restored"].map(|kind| of(&events, kind).len());
        assert_eq!(told, [lost, restored], "{stream} {deaths}: {output}");
    }
}

/// A server of the user's that cannot be used × who says so.
#[test]
fn servers_that_cannot_be_used_are_named() {
    let answers = r#"read line; echo '{\"id\":1,\"result\":{}}'; cat"#;
    let servers = format!(
        "[mcp.servers.tides]\ncommand = \"sh\"\nargs = [\"-c\", \"{answers}\"]\n\
         [mcp.servers.ends]\ncommand = \"sh\"\nargs = [\"-c\", \"exit 3\"]\n\
         [mcp.servers.gone]\ncommand = \"no-such-server\"\n"
    );
    let repo = world(ECHO, &servers);
    let listed = squad(&repo, &["engines", "copilot", "--json"]);
    let listed: Value = serde_json::from_str(&listed.out).expect("JSON");
    let found = &listed["engines"][0]["servers"];
    assert!(found["tides"].is_null(), "{found}");
    assert_eq!(found["ends"], "its program ended without an answer", "{found}");
    assert!(found["gone"].as_str().is_some_and(|why| why.contains("no-such-server")), "{found}");
    let shown = squad(&repo, &["engines", "copilot"]).out;
    for line in ["server    ends: its program ended without an answer", "server    tides: answers"] {
        assert!(shown.contains(line), "{shown}");
    }
    let doctor = squad(&repo, &["doctor"]);
    for name in ["ends", "gone"] {
        let said = format!("the MCP server `{name}` cannot be used: ");
        assert!(doctor.err.contains(&said) || doctor.out.contains(&said), "{doctor}");
    }
    assert!(!format!("{doctor}").contains("`tides`"), "{doctor}");
}

/// Which of two agents a rule is for × each mode: an engine that asks nobody cannot be told of a rule.
#[test]
fn a_rule_keeps_an_engine_that_asks_nobody_in_its_strictest_mode() {
    for (rule, mode, expected) in [
        ("", "allow", ["--yes", "--yes"]),
        ("[policy]\nagents.ada.commands.deny = [\"rm\"]\n", "allow", ["--safe", "--yes"]),
        ("[policy]\ntiers.standard.writes.only = [\"src\"]\n", "allow", ["--safe", "--safe"]),
        ("[policy]\ncommands.allow = [\"rm\"]\n", "allow", ["--yes", "--yes"]),
        ("[policy]\ncommands.allow = [\"rm\"]\n", "deny", ["--safe", "--safe"]),
    ] {
        let repo = world(ECHO, rule);
        let names = ["--agent", "ada", "--agent", "bob"];
        let call = [&["orchestrate", "--json", "--engine", "mine", "--tier", "standard"], &names[..]].concat();
        let output = squad(&repo, &[&call[..], &["--permissions", mode, "Add it"]].concat());
        let events = TestRepo::events(&output);
        for (agent, expected) in ["ada", "bob"].into_iter().zip(expected) {
            let is_its = |event: &&&Value| event["agent"] == agent;
            let governed =
                of(&events, "engine.governed").iter().find(is_its).expect("it is governed")["by"].to_string();
            assert!(governed.contains(expected), "{rule} {mode} {agent}: {governed}");
            let errors = of(&events, "session.error");
            let said = errors.iter().filter(is_its).any(|event| event["reason"].to_string().contains("policy."));
            assert_eq!(said, expected == "--safe" && mode == "allow", "{rule} {mode} {agent}: {output}");
        }
    }
}
