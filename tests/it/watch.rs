//! `squad watch`: sessions that are there, and follow their charters. With real processes.
#![cfg(unix)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use crate::process::{rest, signal, wait_for};
use crate::support::TestRepo;
use crate::terminal::Person;

const BINARY: &str = env!("CARGO_BIN_EXE_squad");

/// Nothing in these stories takes as long; a machine under load may.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const SCRIPT: &str = "[[turn]]\nagent = \"ada\"\nsteps = [\n  { tool = \"squad_log_decision\", args = { title = \"Kept\" } },\n  \
    { say = \"Done.\" },\n]\n";
const SLOW: &str = "[[turn]]\nagent = \"ada\"\nsteps = [\n  { say = \"Begun.\" }, { wait = \"2s\" },\n  \
    { tool = \"squad_log_decision\", args = { title = \"Kept\" } }, { say = \"Done.\" },\n]\n";

/// A watch of a team of three, in which Ada and Bob are core.
pub(crate) struct Watch {
    pub(crate) repo: TestRepo,
    child: Option<Child>,
    lines: Receiver<Value>,
}

impl Watch {
    pub(crate) fn of(script: &str) -> Self {
        let mut repo = TestRepo::with_small_team();
        repo.write("../script.toml", script);
        let charter = |name: &str| format!("# {name}\n\nI am {name}.\n");
        for (name, role) in [("ada", "Ada"), ("bob", "Bob")] {
            repo.write(&format!(".squad/agents/{name}/charter.md"), &charter(role));
        }
        repo.write(".squad/config.toml", "[sessions]\ncore = [\"ada\", \"bob\"]\n");
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "--quiet", "--message=charters"]);
        for (name, value) in [("SQUAD_ENGINE", "rehearsal"), ("SQUAD_REHEARSAL", "../script.toml")] {
            repo.variables.insert(name.to_owned(), value.to_owned());
        }
        let mut watch = Self { repo, child: None, lines: channel().1 };
        watch.start();
        watch
    }

    /// Returns when the core agents' sessions are there.
    fn start(&mut self) {
        let mut command = self.command(&["watch", "--json"]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("squad runs");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let event = serde_json::from_str(&line).expect(&line);
                if sender.send(event).is_err() {
                    break;
                }
            }
        });
        (self.child, self.lines) = (Some(child), lines);
        for agent in ["ada", "bob"] {
            let opened = self.hear_one(&["session.created", "session.resumed"]);
            assert_eq!(opened["agent"], agent, "{opened}");
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.repo.command(BINARY, &self.repo.root());
        command.args(arguments).stdin(Stdio::null());
        command
    }

    /// The next event of that kind.
    pub(crate) fn hear(&self, kind: &str) -> Value {
        self.hear_one(&[kind])
    }

    fn hear_one(&self, kinds: &[&str]) -> Value {
        loop {
            let event = self.next();
            if kinds.iter().any(|kind| event["type"] == *kind) {
                return event;
            }
        }
    }

    pub(crate) fn next(&self) -> Value {
        self.lines.recv_timeout(PATIENCE).expect("an event")
    }

    /// The kinds of events, with their agents, up to the end of the next look at the team. What has no effect leaves none.
    fn heard_of(&self, kinds: &[&str]) -> Vec<(String, String)> {
        let mut heard = Vec::new();
        while let Ok(event) = self.lines.recv_timeout(Duration::from_secs(1)) {
            let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
            if kinds.contains(&text("type").as_str()) {
                heard.push((text("type"), text("agent")));
            }
        }
        heard
    }

    fn orchestrate(&self, message: &str) -> (String, Option<i32>) {
        let mut command = self.command(&["orchestrate", "--json", "--permissions", "allow", message]);
        rest(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("squad runs"))
    }

    fn begin(&self, message: &str) -> Child {
        let mut command = self.command(&["orchestrate", "--json", "--permissions", "allow", message]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("squad runs");
        wait_for(&mut child, "Begun.");
        child
    }

    fn status(&self) -> Value {
        let output = self.command(&["status", "--json"]).output().expect("squad runs");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    fn kill(&mut self) {
        let mut child = self.child.take().expect("it runs");
        child.kill().expect("it is ours");
        child.wait().expect("it ends");
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn events(out: &str, kind: &str) -> Vec<Value> {
    let all = out.lines().map(|line| serde_json::from_str::<Value>(line).expect(line));
    all.filter(|event| event["type"] == kind).collect()
}

#[test]
fn work_is_done_in_the_sessions_that_are_there() {
    let watch = Watch::of(SCRIPT);
    let (out, code) = watch.orchestrate("@ada add a health endpoint");
    assert_eq!(code, Some(0), "{out}");
    assert_eq!(events(&out, "engine.started")[0]["warm"], true, "{out}");
    let session = &events(&out, "session.created")[0];
    assert_eq!((&session["session"], &session["warm"]), (&"squad-ada".into(), &true.into()));
    // Only a command in the foreground commits on the branch: the client has.
    assert_eq!(events(&out, "decision.landed").len(), 1, "{out}");
    let last = out.lines().last().expect("a line");
    assert!(last.contains(r#""type":"run.completed","status":"completed","agents":{"ada":"completed"}"#), "{last}");
    assert!(watch.repo.git(&["log", "-1", "--format=%s"]).contains("Kept"));
    assert_eq!(watch.hear("run.completed")["status"], "completed");
    let status = watch.status();
    assert_eq!(status["watch"]["connection"], "connected", "{status}");
    assert_eq!(status["watch"]["sessions"], serde_json::json!({ "ada": "idle", "bob": "idle" }), "{status}");
    let kept: Vec<_> = status["sessions"].as_array().expect("a list").iter().map(|kept| &kept["id"]).collect();
    assert_eq!(kept, ["squad-ada", "squad-bob"], "{status}");
    assert_eq!((&status["sessions"][0]["run"], &status["sessions"][0]["state"]), (&Value::Null, &"idle".into()));
    let (out, _) = watch.orchestrate("@ada again");
    let session = &events(&out, "session.created")[0];
    assert_eq!((&session["session"], &session["warm"]), (&"squad-ada".into(), &true.into()), "the same one");
    // Whoever wants another gets one, and so does a reviewer.
    let mut fresh = watch.command(&["orchestrate", "--json", "--permissions", "allow", "--fresh"]);
    let (out, _) =
        rest(fresh.arg("@ada once more, reviewed by @bob").stdout(Stdio::piped()).spawn().expect("squad runs"));
    let own = |event: &Value| event["session"].as_str().is_some_and(|id| id.matches('-').count() > 1);
    assert!(events(&out, "session.created").iter().all(own), "{out}");
    watch.orchestrate("@bob cover it");
    let (out, _) = watch.orchestrate("@ada at last, reviewed by @bob");
    let opened = events(&out, "session.created");
    let of = |agent: &str| opened.iter().find(|event| event["agent"] == agent).expect("a session");
    assert!(!own(of("ada")) && own(of("bob")), "{out}");
    watch.repo.assert_sound();
}

/// As editors save: in place, by a file beside it that is renamed, by removing it first.
#[test]
fn a_saved_charter_makes_its_session_anew_and_no_other() {
    let watch = Watch::of(SCRIPT);
    let charter = watch.repo.root().join(".squad/agents/ada/charter.md");
    let beside = charter.with_extension("md~");
    let saves: [(&str, &dyn Fn()); 3] = [
        ("in place", &|| std::fs::write(&charter, "# Ada\n\nI write it in place.\n").expect("ours")),
        ("renamed", &|| {
            std::fs::write(&beside, "# Ada\n\nI am renamed.\n").expect("ours");
            std::fs::rename(&beside, &charter).expect("ours");
        }),
        ("removed first", &|| {
            std::fs::remove_file(&charter).expect("ours");
            std::fs::write(&charter, "# Ada\n\nI come back.\n").expect("ours");
        }),
    ];
    const ANEW: [&str; 3] = ["session.created", "session.resumed", "charter.changed"];
    for (how, save) in saves {
        save();
        let heard = watch.heard_of(&ANEW);
        let expected =
            [("charter.changed".to_owned(), "ada".to_owned()), ("session.created".to_owned(), "ada".to_owned())];
        assert_eq!(heard, expected, "{how}");
    }
    // The same text again, another file's, and a reader.
    let text = std::fs::read(&charter).expect("ours");
    std::fs::write(&charter, text).expect("ours");
    watch.repo.write(".squad/agents/ada/history.md", "# History\n\nMuch was done.\n");
    watch.repo.write("README.md", "# Something else\n");
    assert_eq!(watch.heard_of(&ANEW), []);
    // A session that is made anew is as good as the one before.
    let (out, _) = watch.orchestrate("@ada add it");
    assert_eq!(events(&out, "session.created")[0]["warm"], true, "{out}");
}

#[test]
fn a_team_that_cannot_be_read_keeps_its_sessions() {
    let watch = Watch::of(SCRIPT);
    let team = watch.repo.read(".squad/team.md");
    watch.repo.write(".squad/team.md", &format!("<<<<<<< HEAD\n{team}=======\n>>>>>>> other\n"));
    let problem = watch.hear("team.changed")["problem"].as_str().expect("a reason").to_owned();
    assert!(problem.contains(".squad/team.md:1"), "{problem}");
    assert_eq!(watch.status()["error"]["kind"], "team");
    let joined = team.replace("| Bob | Tester", "| Zoe | Designer | Active |\n| Bob | Tester");
    watch.repo.write(".squad/team.md", &joined.replace("| Rex | Reviewer | Active |\n", ""));
    let change = watch.hear("team.changed");
    assert_eq!((&change["joined"], &change["left"]), (&serde_json::json!(["zoe"]), &serde_json::json!(["rex"])));
    std::fs::remove_dir_all(watch.repo.root().join(".squad")).expect("ours");
    // Half of it is gone before the rest.
    while !watch.hear("team.changed")["problem"].as_str().expect("a reason").contains("not in this work tree") {}
    watch.repo.git(&["checkout", "--", ".squad"]);
    let back = watch.hear("team.changed");
    assert_eq!((&back["joined"], &back["left"]), (&serde_json::json!(["rex"]), &serde_json::json!(["zoe"])));
}

#[test]
fn there_is_one_watch_and_a_dead_one_blocks_nothing() {
    let mut watch = Watch::of(SCRIPT);
    let pid = watch.child.as_ref().expect("it runs").id();
    let second = watch.command(&["watch"]).output().expect("squad runs");
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(
        second.status.code() == Some(1) && said.contains(&format!("process {pid} is already watching this team")),
        "{said}"
    );
    // Another work tree's team is another one.
    watch.repo.git(&["worktree", "add", "--quiet", "-b", "side", "../side"]);
    let elsewhere = watch.repo.command(BINARY, &watch.repo.root().join("../side")).args(["status", "--json"]).output();
    let elsewhere: Value = serde_json::from_slice(&elsewhere.expect("squad runs").stdout).expect("JSON");
    assert_eq!(elsewhere["watch"], Value::Null);
    watch.kill();
    assert_eq!(watch.status()["watch"], Value::Null);
    let (out, code) = watch.orchestrate("@ada alone");
    assert!(code == Some(0) && events(&out, "engine.started")[0].get("warm").is_none(), "{out}");
    watch.start();
    let (out, _) = watch.orchestrate("@ada not alone");
    assert_eq!(events(&out, "engine.started")[0]["warm"], true, "{out}");
}

#[test]
fn a_call_with_another_engine_or_other_settings_works_by_itself() {
    let mut watch = Watch::of(SCRIPT);
    watch.repo.variables.insert("SQUAD_REHEARSAL".to_owned(), "../other.toml".to_owned());
    watch.repo.write("../other.toml", SCRIPT);
    let output = watch.command(&["orchestrate", "--permissions", "allow", "@ada x"]).output().expect("squad runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let others = "not using the sessions of `squad watch`: it was started with different values of SQUAD_REHEARSAL and `engine.rehearsal.script`;";
    assert!(said.contains(others), "{said}");
    assert_eq!(output.status.code(), Some(0), "{said}");
}

/// What changes after a watch has started × whether a call may use its sessions. The user's own configuration, for a
/// repository sets none of this.
#[test]
fn a_watch_is_not_used_after_settings_of_any_engine_changed() {
    let watch = Watch::of(SCRIPT);
    let config = format!("{}/squad/config.toml", watch.repo.variables["XDG_CONFIG_HOME"]);
    let config = std::path::Path::new(&config);
    std::fs::create_dir_all(config.parent().expect("a folder")).expect("a folder");
    for (text, named) in [
        ("[engines.mine]\nprogram = \"true\"\n", Some("`engines.mine.program`")),
        ("[agents.bob]\nengine = \"copilot\"\n", Some("`agents.bob.engine`")),
        ("[mcp.servers.tides]\ncommand = \"tides\"\n", Some("`mcp.servers.tides.command`")),
        ("[engine.copilot]\nhome = \"user\"\n", Some("`engine.copilot.home`")),
        ("[sessions]\ntimeout = \"4m\"\n", None),
    ] {
        std::fs::write(config, text).expect("a file");
        let call = ["orchestrate", "--permissions", "allow", "--no-commit", "@ada x"];
        let output = watch.command(&call).output().expect("squad runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let differs = named.map(|named| format!("it was started with different values of {named}"));
        assert_eq!(said.contains("different values"), named.is_some(), "{text}: {said}");
        assert!(differs.is_none_or(|differs| said.contains(&differs)), "{text}: {said}");
    }
}

/// It would do what it was told when it goes on, and the work would be done twice.
#[test]
fn a_watch_that_is_stopped_is_told_nothing() {
    let mut watch = Watch::of(SCRIPT);
    let child = watch.child.take().expect("it runs");
    signal(&child, "STOP");
    let output = watch.command(&["orchestrate", "--permissions", "allow", "@ada once"]).output().expect("squad runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let alone = format!("not using the sessions of `squad watch`: process {} does not answer", child.id());
    assert!(output.status.success() && said.contains(&alone), "{said}");
    signal(&child, "CONT");
    watch.child = Some(child);
    watch.orchestrate("@bob and you");
    let runs: Value = serde_json::from_str(&watch.repo.squad(&["log", "--json"]).out).expect("JSON");
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(2), "{runs}");
}

#[test]
fn a_client_that_is_interrupted_ends_its_run_and_the_watch_goes_on() {
    let watch = Watch::of(SLOW);
    let child = watch.begin("@ada add it");
    signal(&child, "INT");
    let (out, code) = rest(child);
    let last = out.lines().last().expect("a line");
    assert!(code == Some(130) && last.contains(r#""status":"cancelled""#), "{code:?} {out}");
    let (out, code) = watch.orchestrate("@ada again");
    assert!(code == Some(0) && events(&out, "engine.started")[0]["warm"] == true, "{out}");
}

/// What its run decides is kept, and not landed: nobody asks for a commit any more.
#[test]
fn the_run_of_a_client_that_is_killed_goes_on() {
    let watch = Watch::of(SLOW);
    let mut child = watch.begin("@ada add it");
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
    let end = watch.hear("run.completed");
    assert_eq!((&end["status"], &end["commits"]), (&"completed".into(), &serde_json::json!([])), "{end}");
    let listed = watch.command(&["decisions", "list"]).output().expect("squad runs");
    assert!(String::from_utf8_lossy(&listed.stdout).contains("unlanded"), "{listed:?}");
    let landed = watch.command(&["decisions", "land"]).output().expect("squad runs");
    assert_eq!(landed.status.code(), Some(0), "{landed:?}");
    assert!(watch.repo.git(&["log", "-1", "--format=%s"]).contains("Kept"));
}

#[test]
fn a_run_whose_watch_is_killed_is_lost_and_can_be_resumed() {
    let mut watch = Watch::of(SLOW);
    let mut child = watch.begin("@ada add it");
    watch.kill();
    let mut said = String::new();
    std::io::Read::read_to_string(child.stderr.as_mut().expect("a pipe"), &mut said).expect("UTF-8");
    let (out, code) = rest(child);
    let ended = events(&out, "run.completed");
    let ended = ended.first().unwrap_or_else(|| panic!("{out}\n{said}\n{code:?}"));
    let run_id = ended["run"].as_str().expect("an id");
    assert!(out.lines().last().is_some_and(|line| line.contains("\"run.completed\"")), "{out}");
    assert_eq!((&ended["status"], &ended["agents"]["ada"], code), (&"lost".into(), &"lost".into(), Some(1)), "{out}");
    let hint = format!("squad watch has ended, and run {run_id} with it\nhint: `squad orchestrate --resume {run_id}`");
    assert!(said.contains(&hint), "{said}");
    let log = watch.command(&["log", "--json"]).output().expect("squad runs");
    let log: Value = serde_json::from_slice(&log.stdout).expect("JSON");
    let run = log["runs"][0]["run"].as_str().expect("an id");
    let mut resumed = watch.command(&["orchestrate", "--json", "--resume", run]);
    let (out, code) = rest(resumed.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("squad runs"));
    assert_eq!(code, Some(0), "{out}");
    watch.repo.assert_sound();
}

/// One agent has ended and one is at work when the watch dies: each end is told once.
#[test]
fn what_was_told_before_the_watch_died_is_not_told_again() {
    let script = format!(
        "[[turn]]\nagent = \"bob\"\nsteps = [{{ write = \"b.txt\", text = \"x\" }}, {{ say = \"Done.\" }}]\n{SLOW}"
    );
    let mut watch = Watch::of(&script);
    let mut command = watch.command(&["orchestrate", "--json", "--permissions", "allow"]);
    command.arg("First @bob adds it, then @ada tests it");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("squad runs");
    let before = wait_for(&mut child, "Begun.");
    watch.kill();
    let (after, code) = rest(child);
    let told = [before, after].concat();
    let ends = |kind: &str| events(&told, kind).iter().map(|end| end["agent"].clone()).collect::<Vec<_>>();
    assert_eq!((ends("agent.completed"), ends("agent.lost")), (vec!["bob".into()], vec!["ada".into()]), "{told}");
    assert_eq!((ends("run.completed").len(), code), (1, Some(1)), "{told}");
}

const ASKS: &str = "[[turn]]\nagent = \"ada\"\nsteps = [{ write = \"a.txt\", text = \"x\" }, { say = \"Done.\" }]\n";

/// Questions come to the terminal that asked for the work, and one that nobody needs an answer to holds nobody up.
#[test]
fn a_question_is_answered_where_the_work_was_asked_for() {
    for (typed, code) in [(Some("y"), 0), (None, 130)] {
        let watch = Watch::of(ASKS);
        let mut person = Person::sits_down();
        let mut command = watch.command(&["orchestrate", "--permissions", "ask", "@ada write it"]);
        command.env("TERM", "xterm");
        let mut child = person.starts(command);
        person.is_asked("ada wants to write a.txt");
        match typed {
            Some(typed) => person.types(typed),
            None => signal(&child, "INT"),
        }
        person.waits_for("; run ");
        assert_eq!(child.wait().expect("it ends").code(), Some(code), "{}", person.screen);
        assert_eq!(watch.repo.exists("a.txt"), typed.is_some());
    }
}

/// Nobody at the watch could answer it.
#[test]
fn a_question_whose_terminal_is_gone_is_refused_by_a_watch_without_one() {
    let watch = Watch::of(ASKS);
    let mut person = Person::sits_down();
    let mut command = watch.command(&["orchestrate", "--permissions", "ask", "@ada write it"]);
    command.env("TERM", "xterm");
    let mut child = person.starts(command);
    person.is_asked("ada wants to write a.txt");
    assert_eq!(watch.hear("question.asked")["agent"], "ada");
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
    assert_eq!(watch.hear("question.answered")["question"], 1);
    assert_eq!(watch.hear("permission.answered")["allowed"], false);
    assert!(!watch.repo.exists("a.txt"));
}

#[test]
fn the_connection_is_told_from_before_its_beginning_to_after_its_end() {
    let mut watch = Watch::of(SCRIPT);
    watch.kill();
    let mut child = watch.command(&["watch", "--json"]).stdout(Stdio::piped()).spawn().expect("squad runs");
    wait_for(&mut child, r#""type":"session.created""#);
    assert_eq!(watch.status()["watch"]["connection"], "connected");
    signal(&child, "INT");
    let (out, _) = rest(child);
    assert!(out.contains(r#""type":"connection.changed","engine":"rehearsal","state":"disconnected""#), "{out}");
    let mut child = watch.command(&["watch", "--json"]).stdout(Stdio::piped()).spawn().expect("squad runs");
    let first = wait_for(&mut child, r#""type":"connection.changed""#);
    assert!(first.contains(r#""state":"connecting""#), "{first}");
    let next = wait_for(&mut child, r#""type":"connection.changed""#);
    assert!(next.contains(r#""state":"connected""#), "{next}");
    watch.child = Some(child);
}

/// While there are several, one cannot tell by an agent's name whose line it is.
#[test]
fn lines_name_their_run_while_there_are_several() {
    let turn = |agent: &str, after: &str| {
        format!(
            "[[turn]]\nagent = \"{agent}\"\nsteps = [{{ say = \"Begun.\" }}, {{ wait = \"{after}\" }}, \
             {{ ask = \"x\" }}, {{ say = \"{agent} ends.\" }}]\n"
        )
    };
    let mut watch = Watch::of(&(turn("ada", "600s") + &turn("bob", "1ms")));
    watch.kill();
    let mut child = watch.command(&["watch"]).stderr(Stdio::piped()).spawn().expect("squad runs");
    while watch.status()["watch"]["sessions"]["bob"] != "idle" {
        std::thread::sleep(Duration::from_millis(20));
    }
    let long = watch.begin("@ada wait");
    let (out, _) = watch.orchestrate("@bob be quick");
    let run = events(&out, "run.completed")[0]["run"].as_str().expect("an id").to_owned();
    signal(&child, "INT");
    let (out, _) = rest(long);
    let other = events(&out, "run.completed")[0]["run"].as_str().expect("an id").to_owned();
    let mut said = String::new();
    std::io::Read::read_to_string(child.stderr.as_mut().expect("a pipe"), &mut said).expect("UTF-8");
    child.wait().expect("it ends");
    let short = |run: &str| run.rsplit('-').next().expect("a part").to_owned();
    assert!(said.contains(&format!("squad       run {run}: @bob be quick\n")), "{said}");
    assert!(said.contains(&format!("[{}] Plan  1 bob ", short(&run))), "{said}");
    assert!(said.contains(&format!("[{}] ✓ completed in ", short(&run))), "{said}");
    // Alone before and after.
    assert!(said.contains("Plan  1 ada "), "{said}");
    assert!(said.contains("\n- cancelled") && !said.contains(&format!("[{}]", short(&other))), "{said}");
}

/// What it says has to be read by nobody.
#[test]
fn a_watch_whose_output_nobody_reads_works_on() {
    let mut watch = Watch::of(SCRIPT);
    watch.kill();
    let mut command = watch.command(&["watch"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("squad runs");
    while watch.status()["watch"]["sessions"]["bob"] != "idle" {
        std::thread::sleep(Duration::from_millis(20));
    }
    let message = format!("@ada {}", "add one more endpoint ".repeat(200));
    for _ in 0..40 {
        let (out, code) = watch.orchestrate(&message);
        assert!(code == Some(0) && events(&out, "engine.started")[0]["warm"] == true, "{out}");
    }
    signal(&child, "INT");
    watch.child = Some(child);
    assert_eq!(watch.child.as_mut().expect("it runs").wait().expect("it ends").code(), Some(0));
}

/// It must not block an agent, nor fill the memory.
#[test]
fn a_client_that_does_not_read_is_let_go_and_its_run_goes_on() {
    let says = format!("{{ say = \"{}\" }}", "word ".repeat(100_000)).repeat(12).replace("}{", "}, {");
    let watch = Watch::of(&format!(
        "[[turn]]\nagent = \"ada\"\nsteps = [{{ say = \"Begun.\" }}, {{ wait = \"300ms\" }}, {says}]\n"
    ));
    let child = watch.begin("@ada say much");
    signal(&child, "STOP");
    assert_eq!(watch.hear("run.completed")["status"], "completed");
    signal(&child, "CONT");
    let (out, code) = rest(child);
    assert!(code == Some(1) && out.contains("dropped this terminal"), "{code:?} {}", out.len());
}

#[test]
fn an_interrupted_watch_ends_its_runs_and_leaves_nothing() {
    let mut watch = Watch::of(SLOW);
    let child = watch.begin("@ada add it");
    let mut ended = watch.child.take().expect("it runs");
    signal(&ended, "INT");
    assert_eq!(ended.wait().expect("it ends").code(), Some(0));
    let (out, code) = rest(child);
    assert!(code == Some(130) && out.lines().last().expect("a line").contains("run.completed"), "{code:?} {out}");
    let left = std::fs::read_dir(watch.repo.root().join(".git/squad/watch")).expect("a folder").flatten();
    let left: Vec<_> = left.map(|entry| entry.path().extension().map(std::ffi::OsStr::to_owned)).collect();
    assert_eq!(left, [Some("lock".into())]);
}
