//! Agents on other machines, which are folders of their own here: `squad worker` by the real binary, over a launcher that
//! passes its streams. What is done there is done here; a broken stream, a dead worker and a dead squad lose nothing.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::engines::{of, squad};
use crate::process::{rest, start, wait_for};
use crate::support::{Output, TestRepo};
use crate::terminal::PATIENCE;

const BINARY: &str = env!("CARGO_BIN_EXE_squad");

/// Writes a file of a few lines, works for a while, decides, and is done.
const SLOW: &str = r#"
[[turn]]
agent = "ada"
steps = [{ say = "Begun." }, { write = "api.txt", text = "endpoint\n" }, { run = "sleep 2; echo built > built.txt" },
         { tool = "squad_log_decision", args = { title = "Kept" } }, { say = "Done." }]
"#;

fn away(repo: &TestRepo, host: &str) -> PathBuf {
    repo.home().join("hosts").join(host)
}

/// A launcher of a host, before it becomes the worker.
fn launcher(repo: &TestRepo, host: &str, before: &str) -> String {
    let home = away(repo, host);
    fs::create_dir_all(&home).expect("a folder");
    format!("[hosts.{host}]\nlaunch = [\"sh\", \"-c\", '{before} HOME={} exec {BINARY} worker']\n", home.display())
}

fn repo() -> TestRepo {
    let mut repo = TestRepo::with_small_team();
    let state = repo.home().join("state");
    repo.variables.insert("XDG_STATE_HOME".into(), state.display().to_string());
    let hosts = ["one", "two"].map(|host| launcher(&repo, host, "unset XDG_STATE_HOME;") + "slots = 2\n");
    repo.write("../home/config/squad/config.toml", &hosts.concat());
    repo.write("notes.txt", "one\ntwo\nthree\n");
    repo.git(&["add", "notes.txt"]);
    repo.git(&["commit", "-qm", "notes"]);
    // Not committed: the agents have it all the same.
    repo.write("draft.txt", "draft\n");
    repo
}

fn run_of(output: &Output) -> String {
    TestRepo::events(output)[0]["run"].as_str().expect("a run").to_owned()
}

/// What a run's agents made together, and how each ended.
pub(crate) fn result(repo: &TestRepo, output: &Output) -> (String, Vec<String>) {
    let merged = format!("refs/squad/runs/{}_merged", run_of(output));
    let last = repo.git(&["for-each-ref", "--format=%(refname)", "--sort=-version:refname", "--count=1", &merged]);
    let events = TestRepo::events(output);
    let ends = of(&events, "agent.completed").into_iter().map(|end| format!("{} {}", end["agent"], end["changed"]));
    let mut ends: Vec<String> = ends.collect();
    ends.sort();
    (repo.git(&["ls-tree", "-r", last.trim()]), ends)
}

#[test]
fn work_on_hosts_is_what_it_is_here() {
    let repo = repo();
    let script = r#"
[[turn]]
agent = "ada"
steps = [{ run = "cat draft.txt; git log --oneline; echo endpoint > api.txt" }, { run = "rm notes.txt" }, { say = "Done." }]
[[turn]]
agent = "bob"
steps = [{ run = "mkdir -p t; echo tests > t/tests.txt; chmod +x t/tests.txt" }, { say = "Done." }]
[[turn]]
agent = "ada"
steps = [{ run = "cat api.txt t/tests.txt > all.txt" }, { say = "Polished." }]
[[turn]]
agent = "coordinator"
steps = [{ say = "All is done." }]
"#;
    repo.write("../script.toml", script);
    let message = "@ada and @bob build it, then @ada polishes it";
    let run = |more: &[&str]| {
        let given = ["orchestrate", "--json", "--script", "../script.toml", "--permissions", "allow", "--no-commit"];
        let output = squad(&repo, &[&given[..], more, &[message]].concat());
        assert_eq!(output.code, 0, "{output}");
        output
    };
    let here = run(&["--isolation", "clone"]);
    let before = repo.git(&["status", "--porcelain"]);
    for on in ["any", "one"] {
        let there = run(&["--on", on]);
        assert_eq!(result(&repo, &there), result(&repo, &here), "--on {on}");
        let events = TestRepo::events(&there);
        let hosts: Vec<&Value> = of(&events, "host.assigned").into_iter().map(|event| &event["host"]).collect();
        assert_eq!(hosts.len(), 2, "{hosts:?}");
        assert_eq!(hosts.iter().all(|host| **host == "one"), on == "one", "the freest host comes first: {hosts:?}");
        assert!(of(&events, "tool.completed").iter().all(|call| call["ok"] == true), "{there}");
    }
    assert_eq!(repo.git(&["status", "--porcelain"]), before, "the user's files are as they were");
    for host in ["one", "two"] {
        let stored = away(&repo, host).join(".local/state/squad/workers/stores");
        assert_eq!(fs::read_dir(stored).expect("a folder").flatten().filter(|entry| entry.path().is_dir()).count(), 1);
    }
}

/// All that a host gets and gives comes over the stream.
#[cfg(target_os = "linux")]
#[test]
fn a_host_needs_no_network() {
    const ALONE: [&str; 3] = ["unshare", "--map-root-user", "--net"];
    let is_had = Command::new(ALONE[0]).args(&ALONE[1..]).arg("true").stderr(Stdio::null()).status();
    if !is_had.is_ok_and(|status| status.success()) {
        eprintln!("not run: this system gives nobody a network namespace");
        return;
    }
    let repo = repo();
    repo.write("../script.toml", SLOW);
    let run = |more: &[&str]| {
        let given = ["orchestrate", "--json", "--script", "../script.toml", "--permissions", "allow", "--no-commit"];
        let output = squad(&repo, &[&given[..], more, &["--agent", "ada", "build it"]].concat());
        assert_eq!(output.code, 0, "{output}");
        output
    };
    let here = run(&["--isolation", "clone"]);
    let alone = ALONE.map(|word| format!("\"{word}\", ")).concat();
    let host = launcher(&repo, "one", "unset XDG_STATE_HOME;").replace("launch = [", &format!("launch = [{alone}"));
    repo.write("../home/config/squad/config.toml", &host);
    let there = run(&["--on", "one"]);
    assert_eq!(result(&repo, &there).0, result(&repo, &here).0);
}

/// What an agent takes back after it was sent is taken back here, be there anything else or not.
#[test]
fn what_is_taken_back_there_is_taken_back_here() {
    let repo = repo();
    for (more, left) in [("", 0), ("; echo more > more.txt", 1)] {
        let script = format!(
            "[[turn]]\nagent = \"ada\"\nsteps = [{{ write = \"gone.txt\", text = \"x\" }}, {{ error = \"once\" }}, \
             {{ run = \"rm gone.txt{more}\" }}, {{ say = \"Done.\" }}]\n"
        );
        repo.write("../script.toml", &script);
        let given = ["orchestrate", "--json", "--script", "../script.toml", "--agent", "ada", "--on", "one"];
        let output = squad(&repo, &[&given[..], &["--permissions", "allow", "--no-commit", "write it"]].concat());
        let events = TestRepo::events(&output);
        let end = of(&events, "agent.completed")[0];
        assert_eq!(end["changed"].as_array().expect("a list").len(), left, "{end}");
    }
}

/// Refused there as it is here, in each mode.
#[test]
fn permissions_hold_on_a_host() {
    let repo = repo();
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ run = \"echo no > no.txt\" }, { say = \"Tried.\" }]\n";
    repo.write("../script.toml", script);
    for (mode, changed, code) in [("deny", 0, 5), ("allow", 1, 0)] {
        let given = ["orchestrate", "--json", "--script", "../script.toml", "--agent", "ada", "--on", "one"];
        let output = squad(&repo, &[&given[..], &["--permissions", mode, "--no-commit", "write it"]].concat());
        let events = TestRepo::events(&output);
        let ends = [of(&events, "agent.completed"), of(&events, "agent.stopped")].concat();
        let end = ends[0];
        assert_eq!(end["changed"].as_array().expect("a list").len(), changed, "{mode}: {output}");
        assert_eq!(output.code, code, "{mode}: {output}");
    }
}

/// The user goes on beside the run: later agents of it get what they need all the same.
#[test]
fn the_user_may_commit_and_rename_branches_meanwhile() {
    let repo = repo();
    let script = r#"
[[turn]]
agent = "ada"
steps = [{ run = "sleep 1; echo endpoint > api.txt" }, { say = "Done." }]
[[turn]]
agent = "bob"
steps = [{ run = "cat api.txt; git log --oneline; git status --short" }, { say = "Seen." }]
[[turn]]
agent = "coordinator"
steps = [{ say = "All is done." }]
"#;
    repo.write("../script.toml", script);
    let given = ["--script", "../script.toml", "--permissions", "allow", "--no-commit", "--on", "one"];
    for branch in ["feat", "feat/x"] {
        repo.git(&["checkout", "-qb", branch]);
        let mut command = repo.command(BINARY, &repo.root());
        command.args(["orchestrate", "--json"]).args(given).arg("@ada builds it, then @bob polishes it");
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("squad runs");
        wait_for(&mut child, "sleep 1");
        repo.git(&["commit", "-q", "--allow-empty", "-m", "beside"]);
        let (out, code) = rest(child);
        assert_eq!(code, Some(0), "{branch}: {out}");
        assert!(out.contains("endpoint"), "{branch}: {out}");
        repo.git(&["checkout", "-q", "main"]);
        repo.git(&["branch", "-qD", branch]);
    }
}

/// Another run has the host's only slot, and keeps it.
#[test]
fn who_waits_for_a_slot_is_cancelled_at_once() {
    const LONG: &str =
        "[[turn]]\nagent = \"ada\"\nsteps = [{ say = \"Begun.\" }, { wait = \"600s\" }, { say = \"Done.\" }]\n";
    for cancelled in ["run", "agent"] {
        let repo = repo();
        let host = launcher(&repo, "one", "unset XDG_STATE_HOME;");
        repo.write("../home/config/squad/config.toml", &(host + "slots = 1\n"));
        let given = ["--on", "one", "--no-commit", "build it"];
        let mut first = start(&repo, LONG, &given);
        wait_for(&mut first, "Begun.");
        let mut second = start(&repo, LONG, &given);
        let begun = wait_for(&mut second, "clone.created");
        let run = begun.split("\"run\":\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a run").to_owned();
        let agent: &[&str] = if cancelled == "agent" { &["ada"] } else { &[] };
        let output = squad(&repo, &[&["cancel", &run], agent].concat());
        assert_eq!(output.code, 0, "{output}");
        let (out, code) = rest(second);
        assert!(out.contains("cancelled by the user before it began"), "{cancelled}: {code:?} {out}");
        let running = squad(&repo, &["status"]);
        assert!(running.out.contains("● run "), "the other works on: {running}");
        // Killed, it would leave a worker that waits for it.
        assert_eq!(squad(&repo, &["cancel", &live(&repo)]).code, 0);
        rest(first);
    }
}

/// Where the host is lost, before its agent begins or in the middle × what its configuration says. Elsewhere, the agent begins
/// again with the files as they were, and what it had done is kept once its host is back; otherwise only somebody's word
/// moves it.
#[cfg(target_os = "linux")]
#[test]
fn an_agent_whose_host_is_gone_begins_again_where_it_may() {
    const WORK: &str = r#"
[[turn]]
agent = "ada"
steps = [{ say = "Begun." }, { run = "ls; echo $HOME >> where.txt; sleep 5; case $HOME$(ls) in *two*slow*) sleep 25;; esac" },
         { tool = "squad_log_decision", args = { title = "Kept" } }, { say = "Done." }]
"#;
    // Cut off in the middle, or complete when nobody listens any more.
    const WHOLE: &str = r#"
[[turn]]
agent = "ada"
steps = [{ say = "Begun." }, { run = "ls; echo $HOME >> where.txt; case $HOME in *two) sleep 25;; *) sleep 1;; esac; echo x > whole-$(basename $HOME).txt" },
         { say = "Done." }]
"#;
    for (is_early, is_elsewhere, work) in
        [(true, true, WORK), (true, false, WORK), (false, true, WORK), (false, true, WHOLE), (false, false, WORK)]
    {
        let repo = repo();
        let [down, homes] = ["down", ""].map(|name| away(&repo, name).display().to_string());
        let hosts = ["one", "two"].map(|host| {
            let gate = if host == "one" {
                format!("unset XDG_STATE_HOME; [ ! -e {down} ] || exit 255;")
            } else {
                "unset XDG_STATE_HOME;".to_owned()
            };
            let retry = if is_elsewhere { "elsewhere" } else { "ask" };
            // The one with more slots is the first.
            let slots = if host == "one" { 2 } else { 1 };
            launcher(&repo, host, &gate) + &format!("slots = {slots}\nlease = \"2s\"\nretry = \"{retry}\"\n")
        });
        repo.write("../home/config/squad/config.toml", &hosts.concat());
        if is_early {
            fs::write(&down, "").expect("a file");
        }
        if !is_early && is_elsewhere {
            // The first host is asked again while the second one works.
            repo.write("slow.txt", "");
        }
        let mut child = start(&repo, work, &["--on", "any", "--permissions", "allow", "--no-commit", "build it"]);
        let mut begun = wait_for(&mut child, "host.assigned");
        let run = begun.split("\"run\":\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a run").to_owned();
        if !is_early {
            begun += &wait_for(&mut child, "tool.started");
            // The command begins once it is allowed, and that is said over the connection.
            let written = format!(".local/state/squad/workers/orders/{run}-ada/work/repo/where.txt");
            let (written, since) = (away(&repo, "one").join(written), Instant::now());
            while !written.exists() {
                assert!(since.elapsed() < PATIENCE, "{begun}");
                std::thread::sleep(Duration::from_millis(20));
            }
            fs::write(&down, "").expect("a file");
            kill_relays(child.id());
            if is_elsewhere {
                begun += &wait_for(&mut child, "begins again on two");
                fs::remove_file(&down).expect("a file");
            }
        }
        let (out, code) = rest(child);
        let is_whole = work == WHOLE;
        let told = format!("early: {is_early}, elsewhere: {is_elsewhere}, whole: {is_whole}");
        let out = begun + &out;
        let assigned = out.matches("\"type\":\"host.assigned\"").count();
        let log = || repo.git(&["log", "-1", "--format=%H", &format!("refs/squad/runs/{run}_left/ada-one")]);
        if is_elsewhere {
            assert_eq!((code, assigned), (Some(0), 2), "{told}: {out}");
            assert_eq!(out.matches("is there again").count(), usize::from(!is_early), "{told}: {out}");
            if !is_early {
                let left = repo.git(&["show", &format!("{}:where.txt", log().trim())]);
                assert_eq!(left, format!("{homes}one\n"), "{told}");
                let names = repo.git(&["ls-tree", "--name-only", log().trim()]);
                assert_eq!(names.contains("whole-one.txt"), is_whole, "{told}: {names}");
                assert!(out.contains(&format!("git show {}", log().trim())), "{told}: {out}");
            }
        } else {
            assert!(code == Some(1) && assigned == 1, "{told}: {out}");
            assert!(out.contains(&format!("--resume {run}")), "{told}: {out}");
            // Where it never began, nothing is lost.
            let state = if is_early { "failed" } else { "lost" };
            let ends = |state: &str| out.matches(&format!("\"type\":\"agent.{state}\"")).count();
            assert_eq!(
                (ends("failed"), ends("lost")),
                (usize::from(is_early), usize::from(!is_early)),
                "{told}: {out}"
            );
            let log: Value = serde_json::from_str(&squad(&repo, &["log", "--json"]).out).expect("JSON");
            assert_eq!(
                (&log["runs"][0]["status"], &log["runs"][0]["agents"]["ada"]),
                (&"failed".into(), &state.into())
            );
            let status = squad(&repo, &["log", &run]);
            assert!(status.out.contains(&format!("{state}: ")) && status.out.contains("one"), "{told}: {status}");
            let again = ["orchestrate", "--json", "--resume", &run, "--script", "../script.toml", "--on", "two"];
            let again = squad(&repo, &again);
            assert_eq!(again.code, 0, "{told}: {again}");
        }
        let merged = format!("refs/squad/runs/{run}_merged");
        let last = repo.git(&["for-each-ref", "--format=%(refname)", "--sort=-version:refname", "--count=1", &merged]);
        assert_eq!(repo.git(&["show", &format!("{}:where.txt", last.trim())]), format!("{homes}two\n"), "{told}");
        let decisions = repo.squad(&["decisions", "list", "--json"]);
        let list: Value = serde_json::from_str(&decisions.out).expect("JSON");
        let count = usize::from(!is_whole);
        assert_eq!(list["decisions"].as_array().expect("a list").len(), count, "{told}: {decisions}");
    }
}

/// How often its launcher fails at first × for how long a host is looked for: one that is there soon has its agent.
#[test]
fn a_host_that_is_not_there_yet_is_tried_again() {
    for (failures, lease, completes) in [(0, "1h", true), (2, "1h", true), (9, "1s", false)] {
        let repo = repo();
        let count = away(&repo, "count").display().to_string();
        let gate = format!(
            "unset XDG_STATE_HOME; echo x >> {count}; [ $(wc -l < {count}) -gt {failures} ] || {{ echo no route >&2; exit 255; }};"
        );
        let host = launcher(&repo, "one", &gate) + &format!("lease = \"{lease}\"\n");
        repo.write("../home/config/squad/config.toml", &host);
        repo.write("../script.toml", "[[turn]]\nagent = \"ada\"\nsteps = [{ say = \"Done.\" }]\n");
        let given = ["orchestrate", "--json", "--script", "../script.toml", "--agent", "ada", "--on", "one"];
        let output = squad(&repo, &[&given[..], &["--no-commit", "write it"]].concat());
        let events = TestRepo::events(&output);
        assert_eq!(output.code == 0, completes, "{failures}: {output}");
        match completes {
            true => assert_eq!(fs::read_to_string(&count).expect("a file").lines().count(), failures + 1, "{output}"),
            false => {
                let reason = of(&events, "agent.failed")[0]["reason"].as_str().expect("a reason");
                assert!(reason.contains("no route"), "{reason}");
            }
        }
    }
}

/// What the user's sandbox says of the network × what the host's own does: programs there reach what both let them, and what
/// they reached is recorded.
#[cfg(target_os = "linux")]
#[test]
fn a_host_reaches_what_the_user_lists_and_its_own_configuration_leaves() {
    let (listed, other) = (server(), server());
    let place = |port: u16| format!("127.0.0.1:{port}");
    let fetch = |port: u16| format!("curl -s --max-time 5 http://{}/ || echo none", place(port));
    let tunnel = "curl -s --max-time 5 http://unlisted.invalid/ -o /dev/null -w '%{http_code}'";
    let both = format!("hosts = [\"{}\", \"{}\"]\n", place(listed), place(other));
    let one = format!("hosts = [\"{}\"]\n", place(listed));
    for (user, own, network, reached) in [
        (one.clone(), String::new(), "listed", [true, false]),
        (both.clone(), String::new(), "listed", [true, true]),
        // Its own list keeps nothing from being listed, and adds nothing.
        (both.clone(), one.clone(), "listed", [true, false]),
        (one.clone(), both.clone(), "listed", [true, false]),
        (both.clone(), "network = \"listed\"\n".to_owned(), "listed", [false, false]),
        ("network = \"open\"\n".to_owned(), String::new(), "open", [true, true]),
        ("network = \"open\"\n".to_owned(), "network = \"listed\"\n".to_owned(), "listed", [false, false]),
        (one.clone(), "network = \"open\"\n".to_owned(), "listed", [true, false]),
    ] {
        let Some(mut world) = crate::sandbox::World::at("full") else { return };
        let gone =
            "unset SQUAD_SANDBOX_LEVEL SQUAD_SANDBOX_REQUIRE SQUAD_ISOLATION_HOST XDG_STATE_HOME XDG_CONFIG_HOME;";
        let host = launcher(&world.repo, "far", gone);
        world.repo.write("../home/config/squad/config.toml", &format!("{host}[sandbox]\n{user}"));
        world.repo.write("../home/hosts/far/.config/squad/config.toml", &format!("[sandbox]\n{own}"));
        world.repo.variables.insert("SQUAD_ISOLATION_HOST".into(), "far".into());
        let steps =
            [&fetch(listed), &fetch(other), tunnel].map(|command| format!("{{ run = {command:?} }}, ")).concat();
        let script = format!("[[turn]]\nagent = \"backend\"\nsteps = [{steps}{{ say = \"Done.\" }}]\n");
        world.repo.write("../script.toml", &script);
        let given = ["orchestrate", "--json", "--script", "../script.toml", "--permissions", "allow", "--no-commit"];
        let output = squad(&world.repo, &[&given[..], &["@backend do it"]].concat());
        let told = format!("{user} {own}: {output}");
        assert_eq!(output.code, 0, "{told}");
        let events = TestRepo::events(&output);
        let work = of(&events, "agent.completed")[0];
        if network == "listed" && work["network"] == "open" {
            eprintln!("this system has no network of a program's own: {work}");
            return;
        }
        assert_eq!((&work["sandbox"], &work["network"]), (&"full".into(), &network.into()), "{told}");
        let said = crate::sandbox::results(&output);
        let said: Vec<bool> = said.lines().map(|line| line.contains("hello")).collect();
        assert_eq!(said[..2], reached, "{told}");
        if network == "open" {
            assert!(work["hosts"].is_null(), "{told}");
            continue;
        }
        assert_eq!(work["hosts"]["refused"], serde_json::json!(["unlisted.invalid:80"]), "{told}");
        let mut expected: Vec<String> =
            [listed, other].into_iter().zip(reached).filter(|(_, is)| *is).map(|(port, _)| place(port)).collect();
        expected.sort();
        assert_eq!(work["hosts"]["reached"], serde_json::json!(expected), "{told}");
    }
}

/// A server on this machine, which says `hello` to everybody.
#[cfg(target_os = "linux")]
fn server() -> u16 {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 6\r\n\r\nhello\n");
        }
    });
    port
}

/// With a budget and without one, the connection is gone for a while: no more is used there meanwhile than the agent was
/// given, and it goes on once somebody is there to ask.
#[cfg(target_os = "linux")]
#[test]
fn nothing_is_spent_beyond_a_lease() {
    let call = "{ usage = { output_tokens = 100 } }, { wait = \"200ms\" }, ";
    let script = format!(
        "[[turn]]\nagent = \"ada\"\nsteps = [{{ write = \"a.txt\", text = \"x\" }}, {{ say = \"Begun.\" }}, {}{{ say = \"Done.\" }}]\n",
        call.repeat(16)
    );
    for (budget, apart) in [("[budget]\ntokens = 1000\n", 500), ("", 1600)] {
        let repo = repo();
        let down = away(&repo, "down").display().to_string();
        let gate = format!("unset XDG_STATE_HOME; [ ! -e {down} ] || exit 255;");
        let host = launcher(&repo, "one", &gate);
        repo.write("../home/config/squad/config.toml", &(host + budget));
        let mut child = start(&repo, &script, &["--on", "one", "--permissions", "allow", "--no-commit", "build it"]);
        let begun = wait_for(&mut child, "Begun.");
        fs::write(&down, "").expect("a file");
        kill_relays(child.id());
        let run = begun.split("\"run\":\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a run").to_owned();
        let facts = away(&repo, "one").join(format!(".local/state/squad/workers/orders/{run}-ada/facts.ndjson"));
        let spent = || 100 * fs::read_to_string(&facts).unwrap_or_default().matches("\"usage\"").count();
        std::thread::sleep(Duration::from_secs(6));
        assert_eq!(spent(), apart, "{budget}");
        fs::remove_file(&down).expect("a file");
        let (out, ended) = rest(child);
        assert_eq!(ended, Some(0), "{budget}: {begun}{out}");
        assert_eq!(out.contains("is used up; it is tried again"), !budget.is_empty(), "{budget}: {out}");
        let end = out.lines().rfind(|line| line.contains("\"type\":\"agent.completed\"")).expect("an end");
        assert!(end.contains(&format!("\"output_tokens\":{apart},")), "{budget}: {end}");
    }
}

/// What the user's configuration wants of a host × what the host's own lets orders have. An agent gets what both name; else
/// it does not begin, and says why.
#[test]
fn a_host_gives_what_its_own_configuration_allows() {
    const VALUE: &str = "hunter-2-hunter-2";
    const COUNT: &str = "printf %s $DEPLOY | wc -c; printf %s $OTHER | wc -c";
    let allowed =
        "secrets = [\"DEPLOY\", \"OTHER\", \"GONE\"]\nsetup = [\"sh tools/setup.sh\", \"sh tools/fail.sh\"]\n";
    for (wanted, own, expected) in [
        ("secrets = [\"DEPLOY\"]\nsetup = [\"sh\", \"tools/setup.sh\"]\n", allowed, Ok("17\n0\n17\n0\n")),
        ("", allowed, Ok("0\n0\n")),
        ("secrets = [\"GONE\"]\n", allowed, Err("its environment has no `GONE`")),
        ("secrets = [\"DEPLOY\"]\n", "", Err("does not let orders have `DEPLOY`")),
        ("setup = [\"sh\", \"tools/setup.sh\"]\n", "", Err("does not let orders run `sh tools/setup.sh`")),
        (
            "secrets = [\"DEPLOY\"]\nsetup = [\"sh\", \"tools/fail.sh\"]\n",
            allowed,
            Err("exited with 3: no space for [redacted:"),
        ),
    ] {
        let repo = repo();
        repo.write(".gitignore", "made.txt\n");
        repo.write("tools/setup.sh", &format!("{{ {COUNT}; }} > made.txt; echo $DEPLOY is set up\n"));
        repo.write("tools/fail.sh", "echo no space for $DEPLOY; exit 3\n");
        repo.git(&["add", ".gitignore", "tools"]);
        repo.git(&["commit", "-qm", "tools"]);
        let gate = format!("unset XDG_STATE_HOME XDG_CONFIG_HOME; export DEPLOY={VALUE} OTHER={VALUE};");
        repo.write("../home/config/squad/config.toml", &(launcher(&repo, "one", &gate) + wanted));
        repo.write("../home/hosts/one/.config/squad/config.toml", &format!("[worker]\n{own}"));
        let run = format!("{{ run = \"{{ cat made.txt; {COUNT}; }} > env.txt 2>&1; echo told $DEPLOY\" }}");
        let run = run.replace("cat made.txt", "cat made.txt 2>/dev/null");
        repo.write("../script.toml", &format!("[[turn]]\nagent = \"ada\"\nsteps = [{run}, {{ say = \"Done.\" }}]\n"));
        let given = ["orchestrate", "--json", "--script", "../script.toml", "--agent", "ada", "--on", "one"];
        let output = squad(&repo, &[&given[..], &["--permissions", "allow", "--no-commit", "write it"]].concat());
        let told = format!("{wanted}{own}: {output}");
        let events = TestRepo::events(&output);
        assert!(!output.out.contains(VALUE) && !output.err.contains(VALUE), "{told}");
        match expected {
            Ok(lines) => {
                assert_eq!(output.code, 0, "{told}");
                let merged = format!("refs/squad/runs/{}_merged/1:env.txt", run_of(&output));
                assert_eq!(repo.git(&["show", &merged]).replace(' ', ""), lines, "{told}");
                let prepared = of(&events, "clone.prepared");
                assert_eq!(prepared.len(), usize::from(wanted.contains("setup")), "{told}");
                for event in prepared {
                    let output = event["output"].as_str().expect("text");
                    assert!(event["exit_code"] == 0 && output.contains("] is set up"), "{event}");
                }
            }
            Err(why) => {
                let failed = of(&events, "agent.failed");
                let reason = failed[0]["reason"].as_str().expect("a reason");
                assert!(output.code == 1 && reason.contains(why), "{told}");
                assert!(of(&events, "session.created").is_empty(), "{told}");
            }
        }
    }
}

/// Runs squad on a host.
fn there(repo: &TestRepo, host: &str, arguments: &[&str]) -> (String, String, Option<i32>) {
    let mut command = repo.command(BINARY, &repo.root());
    command.args(arguments).env("HOME", away(repo, host)).env_remove("XDG_STATE_HOME").stdin(Stdio::null());
    let done = command.output().expect("squad runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&done.stdout), text(&done.stderr), done.status.code())
}

/// How the work on a host ended × what is left there that nobody has: only what was cut off can be recovered, and it is what
/// was on disk.
#[cfg(target_os = "linux")]
#[test]
fn work_that_nobody_took_is_recovered() {
    for end in ["done", "running", "dead", "dead before it wrote"] {
        let repo = repo();
        let script = match end {
            "dead before it wrote" => SLOW.replace("{ write = \"api.txt\", text = \"endpoint\\n\" }, ", ""),
            _ => SLOW.to_owned(),
        };
        let mut child = start(&repo, &script, &["--on", "one", "--permissions", "allow", "--no-commit", "build it"]);
        let begun = wait_for(&mut child, "sleep 2");
        let run = begun.split("\"run\":\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a run").to_owned();
        let id = format!("{run}-ada");
        match end {
            "running" => {
                let (_, err, code) = there(&repo, "one", &["worker", "--recover", &id]);
                assert!(code == Some(1) && err.contains("is at work"), "{err}");
                let (out, _, code) = there(&repo, "one", &["worker", "--recover", "--json"]);
                assert_eq!((out.trim(), code), ("{\"recovered\":[]}", Some(0)));
                assert_eq!(rest(child).1, Some(0));
                continue;
            }
            "done" => assert_eq!(rest(child).1, Some(0)),
            _ => {
                child.kill().expect("it runs");
                child.wait().expect("it ends");
                kill(&format!("worker --serve {run}"));
                while !there(&repo, "one", &["worker", "--list"]).0.contains("ended") {}
            }
        }
        let (out, err, code) = there(&repo, "one", &["worker", "--recover", "--json"]);
        let found: Value = serde_json::from_str(&out).expect(&err);
        let order = &found["recovered"][0];
        assert_eq!(
            (code, &order["id"], &order["problem"]),
            (Some(0), &Value::from(id.as_str()), &Value::Null),
            "{end}: {out}"
        );
        if end != "dead" {
            assert_eq!(order["file"], Value::Null, "{end}: {out}");
            continue;
        }
        let (said, hints, _) = there(&repo, "one", &["worker", "--recover", &id]);
        let (file, reference) = (order["file"].as_str().expect("a file"), order["reference"].as_str().expect("a ref"));
        let kept = format!("refs/squad/recovered/{id}");
        assert!(said.contains(file) && hints.contains(&format!("{reference}:{kept}")), "{said}{hints}");
        repo.git(&["fetch", "-q", file, &format!("{reference}:{kept}")]);
        assert_eq!(repo.git(&["show", &format!("{kept}:api.txt")]), "endpoint\n");
        assert_eq!(repo.git(&["show", &format!("{kept}:draft.txt")]), "draft\n");
        // The run takes it up all the same.
        let again = squad(&repo, &["orchestrate", "--json", "--resume", &run, "--script", "../script.toml"]);
        assert_eq!(again.code, 0, "{again}");
        let (out, ..) = there(&repo, "one", &["worker", "--recover", "--json"]);
        assert!(out.contains("\"file\":null"), "{out}");
    }
    let (_, err, code) = there(&repo(), "one", &["worker", "--recover", "nobodys"]);
    assert!(code == Some(2) && err.contains("there is no order `nobodys`"), "{err}");
}

/// How the work on a host ended × how old it is × `--force`: only what was taken is removed unasked.
#[cfg(target_os = "linux")]
#[test]
fn gc_keeps_what_nobody_has_taken() {
    for is_dead in [false, true] {
        let repo = repo();
        let mut child = start(&repo, SLOW, &["--on", "one", "--permissions", "allow", "--no-commit", "build it"]);
        let begun = wait_for(&mut child, "sleep 2");
        let run = begun.split("\"run\":\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a run").to_owned();
        if is_dead {
            child.kill().expect("it runs");
            child.wait().expect("it ends");
            kill(&format!("worker --serve {run}"));
        } else {
            assert_eq!(rest(child).1, Some(0));
        }
        while !there(&repo, "one", &["worker", "--list"]).0.contains("ended") {}
        let folder = away(&repo, "one").join(format!(".local/state/squad/workers/orders/{run}-ada"));
        // A clock may have been wrong in either direction when the order was given.
        for (given_at, force) in [
            ("now", false),
            ("now", true),
            ("tomorrow", false),
            ("tomorrow", true),
            ("yesterday", true),
            ("20 days ago", false),
            ("20 days ago", true),
        ] {
            if folder.exists() {
                let touched = Command::new("touch").args(["-d", given_at]).arg(folder.join("order.json")).status();
                assert!(touched.expect("touch runs").success());
            }
            let is_old = given_at == "20 days ago";
            let before = folder.exists();
            let given: &[&str] = if force { &["worker", "--gc", "--force"] } else { &["worker", "--gc"] };
            let (out, err, code) = there(&repo, "one", given);
            let told = format!("dead: {is_dead}, given {given_at}, force: {force}: {out}{err}");
            let is_kept = is_dead && !(is_old && force);
            assert_eq!((code, folder.exists()), (Some(0), is_kept), "{told}");
            let count = if before && !is_kept { "removed 1 order " } else { "removed 0 orders " };
            assert!(out.starts_with(count), "{told}");
            assert_eq!(err.contains("kept, as no squad has taken its work"), is_kept, "{told}");
            assert_eq!(err.contains("no squad had taken the work of"), is_dead && !is_kept, "{told}");
            assert_eq!(err.contains(&run), is_dead, "{told}");
        }
    }
}

/// Kills the processes of a squad's launchers.
fn kill_relays(squad: u32) {
    let children = Command::new("pgrep").args(["-P", &squad.to_string()]).output().expect("pgrep runs");
    for id in String::from_utf8_lossy(&children.stdout).lines() {
        // Its environment has become the worker's: of all that passes on, only this one has this parent.
        let line = fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
        if line.ends_with("worker\0") {
            assert!(Command::new("kill").args(["-KILL", id]).status().expect("kill runs").success());
        }
    }
}

fn live(repo: &TestRepo) -> String {
    let status: Value = serde_json::from_str(&squad(repo, &["status", "--json"]).out).expect("JSON");
    status["runs_live"][0]["run"].as_str().expect("a run").to_owned()
}

fn kill(pattern: &str) {
    let done = Command::new("pkill").args(["-KILL", "-f", pattern]).status().expect("pkill runs");
    assert!(done.success(), "nothing is called {pattern}");
}

/// Each process on the way dies in the middle of a command. The work goes on, and every decision is there once.
#[cfg(target_os = "linux")]
#[test]
fn a_process_that_dies_on_the_way_loses_nothing() {
    for victim in ["launcher", "worker", "squad"] {
        let repo = repo();
        let given = ["--on", "one", "--permissions", "allow", "--no-commit", "build it"];
        let mut child = start(&repo, SLOW, &given);
        let begun = wait_for(&mut child, "tool.started");
        let begun = begun + &wait_for(&mut child, "sleep 2");
        let run = begun.split("\"run\":\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a run").to_owned();
        let home = away(&repo, "one").display().to_string();
        let (out, code) = match victim {
            "launcher" => {
                kill_relays(child.id());
                rest(child)
            }
            "worker" => {
                kill(&format!("worker --serve {run}"));
                rest(child)
            }
            _ => {
                child.kill().expect("it runs");
                child.wait().expect("it ends");
                let again = ["orchestrate", "--json", "--resume", &run, "--script", "../script.toml"];
                let output = squad(&repo, &again);
                (output.out, Some(i32::from(output.code)))
            }
        };
        assert_eq!(code, Some(0), "{victim} ({home}): {out}");
        let is_broken = out.contains("\"type\":\"connection.lost\"");
        assert_eq!(is_broken, victim != "squad", "{victim}: {out}");
        let end = out.lines().rfind(|line| line.contains("\"type\":\"agent.completed\"")).expect("an end");
        assert!(end.contains("api.txt") && end.contains("built.txt"), "{victim}: {end}");
        let decisions = repo.squad(&["decisions", "list", "--json"]);
        let list: Value = serde_json::from_str(&decisions.out).expect("JSON");
        assert_eq!(list["decisions"].as_array().expect("a list").len(), 1, "{victim}: {decisions}");
        let calls =
            out.lines().filter(|line| line.contains("\"type\":\"tool.completed\"") && line.contains("\"ok\":true"));
        let commands = calls.filter(|line| line.contains("sleep 2")).count();
        assert_eq!(commands, 1, "{victim}: the command ran once to its end: {out}");
    }
}

/// A laptop sleeps for less and for more than the lease: squad stands still, and its connections are gone. Awake, it asks the
/// host again, whose worker may have stopped at its lease's end, and the agent goes on.
#[cfg(target_os = "linux")]
#[test]
fn a_lid_that_is_closed_longer_than_the_lease_loses_nothing() {
    for is_longer in [false, true] {
        let repo = repo();
        let lease = if is_longer { "2s" } else { "1m" };
        let host = launcher(&repo, "one", "unset XDG_STATE_HOME;") + &format!("lease = \"{lease}\"\n");
        repo.write("../home/config/squad/config.toml", &host);
        let mut child = start(&repo, SLOW, &["--on", "one", "--permissions", "allow", "--no-commit", "build it"]);
        let begun = wait_for(&mut child, "sleep 2");
        let run = begun.split("\"run\":\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a run").to_owned();
        let written = format!(".local/state/squad/workers/orders/{run}-ada/work/repo/api.txt");
        let (written, since) = (away(&repo, "one").join(written), Instant::now());
        while !written.exists() {
            assert!(since.elapsed() < PATIENCE, "{begun}");
            std::thread::sleep(Duration::from_millis(20));
        }
        crate::process::signal(&child, "STOP");
        kill_relays(child.id());
        let list = || there(&repo, "one", &["worker", "--list"]).0;
        match is_longer {
            true => {
                while !list().contains("ended") {
                    assert!(since.elapsed() < PATIENCE, "{}", list());
                }
            }
            false => std::thread::sleep(Duration::from_secs(3)),
        }
        crate::process::signal(&child, "CONT");
        let (out, code) = rest(child);
        let (out, told) = (begun + &out, format!("longer: {is_longer}"));
        assert_eq!(code, Some(0), "{told}: {out}");
        assert!(out.contains("\"type\":\"connection.restored\""), "{told}: {out}");
        let end = out.lines().rfind(|line| line.contains("\"type\":\"agent.completed\"")).expect("an end");
        assert!(end.contains("api.txt") && end.contains("built.txt"), "{told}: {end}");
        let decisions = repo.squad(&["decisions", "list", "--json"]);
        let list: Value = serde_json::from_str(&decisions.out).expect("JSON");
        assert_eq!(list["decisions"].as_array().expect("a list").len(), 1, "{told}: {decisions}");
        let numbers = out.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()?["seq"].as_u64());
        let numbers: Vec<u64> = numbers.collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "{told}");
    }
}

/// Whatever a launcher does: only its own agent fails, and what went wrong is said.
#[test]
fn launchers_of_every_kind_are_borne() {
    let repo = repo();
    let [twin, home] = ["twin", "twin-home"].map(|name| away(&repo, name).display().to_string());
    let twice =
        format!("unset XDG_STATE_HOME; mkfifo {twin}; HOME={home} {BINARY} worker < {twin} & tee {twin} 2>/dev/null |");
    let broken = [
        (
            "banner",
            "echo Welcome; echo; echo \"{}\"; echo \"[1]\"; printf \"no line ends here:\"; unset XDG_STATE_HOME;",
            "",
        ),
        ("stderr", "exec 2>&1; (while sleep 0.02; do echo \"a warning\"; done) & unset XDG_STATE_HOME;", ""),
        ("twice", &twice, "its launcher starts more than one worker"),
        (
            "dies",
            "echo it is out of order >&2; exit 7;",
            "host dies: its process ended (exit status: 7): it is out of order",
        ),
        (
            "other",
            "echo \"{\\\"method\\\":\\\"hello\\\",\\\"params\\\":{\\\"protocol\\\":9,\\\"version\\\":\\\"99.0\\\",\
                   \\\"platform\\\":\\\"\\\",\\\"engines\\\":[],\\\"busy\\\":0}}\"; cat;",
            "host other: its squad 99.0 does not understand this one",
        ),
        (
            "stops",
            "echo \"{\\\"method\\\":\\\"hello\\\",\\\"params\\\":{\\\"protocol\\\":1,\\\"version\\\":\\\"1.0\\\",\
                   \\\"platform\\\":\\\"\\\",\\\"engines\\\":[],\\\"busy\\\":0}}\"; read order; exit 3;",
            "host stops, squad 1.0: it closed its output; its process ended (exit status: 3)",
        ),
    ];
    let hosts = broken.iter().map(|(host, before, _)| launcher(&repo, host, before) + "lease = \"1s\"\n");
    repo.write("../home/config/squad/config.toml", &hosts.collect::<String>());
    repo.write("../script.toml", "[[turn]]\nagent = \"ada\"\nsteps = [{ say = \"Done.\" }]\n");
    for (host, _, why) in broken {
        let given =
            ["orchestrate", "--json", "--script", "../script.toml", "--agent", "ada", "--on", host, "--no-commit", "x"];
        let output = squad(&repo, &given);
        let events = TestRepo::events(&output);
        let end = of(&events, "agent.completed");
        let failed = of(&events, "agent.failed");
        match why {
            "" => assert!(output.code == 0 && end.len() == 1, "{host}: {output}"),
            why => {
                let reason = failed[0]["reason"].as_str().expect("a reason");
                assert!(output.code == 1 && reason.contains(why), "{host}: {reason}\n{output}");
            }
        }
    }
}

/// What a host lacks × whether its agent can work: where it cannot, only that one fails, says what is missing, and the one beside
/// it works.
#[cfg(target_os = "linux")]
#[test]
fn a_host_that_lacks_something_fails_its_own_agent() {
    let fails = |why: &'static str| Err(why);
    for (before, engine, expected) in [
        ("", "rehearsal", Ok(())),
        ("PATH=/nonexistent", "rehearsal", fails("git cannot be run: `git` is in no folder of PATH")),
        ("PATH=/usr/bin:/bin", "copilot", fails("Copilot CLI")),
        // Blocks of 512 bytes that a file may have, as on a disk that is full.
        ("trap \"\" XFSZ; ulimit -f 1;", "rehearsal", fails("File too large")),
        ("trap \"\" XFSZ; ulimit -f 16;", "rehearsal", fails("unable to write file")),
        ("trap \"\" XFSZ; ulimit -f 512;", "rehearsal", Ok(())),
    ] {
        let repo = repo();
        let gate = format!("unset XDG_STATE_HOME; {before}");
        let places = "[agents.ada]\nhost = \"bad\"\n[agents.bob]\nhost = \"two\"\n";
        let hosts =
            launcher(&repo, "bad", &gate) + "lease = \"1s\"\n" + &launcher(&repo, "two", "unset XDG_STATE_HOME;");
        repo.write("../home/config/squad/config.toml", &(hosts + places));
        // More than a file may have there.
        repo.write("notes.txt", &"a line of notes\n".repeat(4000));
        let turn = |agent: &str| {
            format!("[[turn]]\nagent = \"{agent}\"\nsteps = [{{ run = \"true\" }}, {{ say = \"Done.\" }}]\n")
        };
        repo.write("../script.toml", &["ada", "bob", "coordinator"].map(turn).concat());
        let given = ["orchestrate", "--json", "--script", "../script.toml", "--permissions", "allow", "--no-commit"];
        let output = match engine {
            "rehearsal" => squad(&repo, &[&given[..], &["--agent", "ada", "--agent", "bob", "write it"]].concat()),
            // A script is for the rehearsal engine alone, and so is the other agent.
            engine => squad(&repo, &["orchestrate", "--json", "--engine", engine, "--agent", "ada", "write it"]),
        };
        let events = TestRepo::events(&output);
        let told = format!("{before} {engine}: {output}");
        assert_eq!(output.code, u8::from(expected.is_err()), "{told}");
        let last = events.last().expect("events");
        assert!(engine != "rehearsal" || last["agents"]["bob"] == "completed", "{told}");
        match expected {
            Ok(()) => assert_eq!(last["agents"]["ada"], "completed", "{told}"),
            Err(why) => {
                let reason = of(&events, "agent.failed")[0]["reason"].as_str().expect("a reason");
                assert!(reason.starts_with("host bad, squad ") && reason.contains(why), "{reason}");
            }
        }
    }
}

/// The direction × how many bytes pass before the launcher dies, for as many agents as there are such numbers, and twice for
/// each: every event is there once, and the outcome is that of a launcher that lives. `SQUAD_TEST_BYTES=1` tries each byte
/// of the first kilobytes.
#[cfg(target_os = "linux")]
#[test]
fn a_launcher_that_dies_at_any_byte_loses_nothing() {
    const AGENTS: [&str; 8] = ["ada", "bob", "cy", "dan", "eve", "fay", "gus", "hal"];
    let turn = |agent: &str| {
        format!(
            "[[turn]]\nagent = \"{agent}\"\nsteps = [{{ say = \"Begun.\" }}, {{ run = \"echo {agent} > {agent}.txt\" }}, \
             {{ tool = \"squad_log_decision\", args = {{ title = \"{agent}\" }} }}, {{ say = \"Done.\" }}]\n"
        )
    };
    let script = AGENTS.map(turn).concat() + "[[turn]]\nagent = \"coordinator\"\nsteps = [{ say = \"All.\" }]\n";
    let rows = AGENTS.map(|agent| format!("| {agent} | Backend Dev |\n"));
    let play = |cut: Option<(&str, usize, usize)>| {
        let repo = repo();
        repo.write(".squad/team.md", &format!("# Crew\n\n| Name | Role |\n|---|---|\n{}", rows.concat()));
        repo.write("../script.toml", &script);
        let mut configuration = String::new();
        for (at, agent) in AGENTS.iter().enumerate() {
            let (home, count) = (away(&repo, agent).display().to_string(), away(&repo, &format!("{agent}-count")));
            let count = count.display();
            let before = match cut {
                None => String::new(),
                Some((direction, first, step)) => {
                    // Unlike `head`, it keeps nothing back.
                    let head = format!("dd bs=1 count={} status=none", first + at * step);
                    let pipe = match direction {
                        "out" => format!("HOME={home} {BINARY} worker | {{ {head}; kill -KILL 0; }}"),
                        _ => format!("{{ {head}; kill -KILL 0; }} | HOME={home} {BINARY} worker"),
                    };
                    // All of its processes die, as those of a machine would.
                    format!("echo x >> {count}; if [ $(wc -l < {count}) -lt 3 ]; then {pipe}; fi;")
                }
            };
            let gate = format!("unset XDG_STATE_HOME; {before}");
            configuration.push_str(&launcher(&repo, agent, &gate));
            configuration.push_str(&format!("[agents.{agent}]\nhost = \"{agent}\"\n"));
        }
        repo.write("../home/config/squad/config.toml", &configuration);
        let mut given =
            vec!["orchestrate", "--json", "--script", "../script.toml", "--permissions", "allow", "--no-commit"];
        given.extend(AGENTS.iter().flat_map(|agent| ["--agent", *agent]));
        given.push("write it");
        let output = squad(&repo, &given);
        assert_eq!(output.code, 0, "{cut:?}: {output}");
        let events = TestRepo::events(&output);
        let numbers: Vec<u64> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "{cut:?}");
        let kinds = ["agent.message", "tool.started", "tool.completed", "decision.logged", "agent.completed"];
        let heard = kinds.map(|kind| {
            let mut of: Vec<String> = of(&events, kind).iter().map(|event| event["agent"].to_string()).collect();
            of.sort();
            of
        });
        (result(&repo, &output), heard)
    };
    let whole = play(None);
    let cuts: Vec<(usize, usize)> = match std::env::var_os("SQUAD_TEST_BYTES") {
        Some(_) => (0..600).map(|round| (round * AGENTS.len(), 1)).collect(),
        None => vec![(0, 97), (700, 211)],
    };
    for direction in ["out", "in"] {
        for (first, step) in &cuts {
            assert_eq!(play(Some((direction, *first, *step))), whole, "{direction} from {first} by {step}");
        }
    }
}

#[test]
fn a_worker_without_an_order_says_what_it_is() {
    let repo = repo();
    let worker = |input: &str| {
        repo.write("../input", input);
        let input = fs::File::open(repo.root().join("../input")).expect("a file");
        let mut command = repo.command(BINARY, &repo.root());
        let done = command.arg("worker").stdin(Stdio::from(input)).output().expect("squad runs");
        (String::from_utf8_lossy(&done.stderr).into_owned(), done.status.code())
    };
    assert_eq!(worker(""), (String::new(), Some(0)), "it was only greeted");
    let orders = [
        "hello\n",
        "{\"method\":\"open\",\"id\":1,\"params\":{}}\n",
        "{\"method\":\"order\",\"id\":1,\"params\":{}}\n",
        "{\"method\":\"order\",\"id\":1,\"params\":{\"id\":7}}\n",
    ];
    for order in orders {
        let (said, code) = worker(order);
        assert!(said.contains("is no work order") && code == Some(2), "{order}: {said}");
    }
    let (said, code) = worker("{\"method\":\"order\",\"id\":1,\"params\":{\"id\":\"../../x\"}}\n");
    assert!(said.contains("no valid id") && code == Some(1), "{said}");
    assert_eq!(repo.squad(&["worker", "--list"]).out, "");
    assert!(repo.squad(&["worker", "--gc"]).out.starts_with("removed 0 orders"));
}
