//! Runs whose agents work on other machines.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Hosts, NAME, kill, parent, title};
use crate::repository::TestRepo;
use crate::support::{processes_with, signal};

const AGENTS: [&str; 8] = ["ada", "bob", "cy", "dan", "eve", "fay", "gus", "hal"];

/// Of each host.
const SLOTS: usize = 2;

/// A team of eight, whose user has these hosts.
pub(super) fn crew(hosts: &Hosts) -> TestRepo {
    let repo = TestRepo::empty();
    let rows = AGENTS.map(|agent| format!("| {agent} | Backend Dev |\n"));
    repo.write(".squad/team.md", &format!("# Crew\n\n| Name | Role |\n|---|---|\n{}", rows.concat()));
    repo.write("src/shared.txt", &AGENTS.map(|agent| format!("{agent}\n\n\n\n")).concat());
    repo.write(".gitignore", "ignored.txt\n");
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message=crew"]);
    // Not committed, and yet the agents have it.
    repo.write("draft.txt", "draft\n");
    repo.write("ignored.txt", "mine\n");
    configure(&repo, hosts, SLOTS);
    repo
}

pub(super) fn configure(repo: &TestRepo, hosts: &Hosts, slots: usize) {
    let names = super::NAMES.into_iter().enumerate();
    let tables = names.map(|(number, name)| {
        let launch = json!(hosts.launch(number, &["squad", "worker"]));
        format!("[hosts.{name}]\nlaunch = {launch}\nslots = {slots}\nlabels = [\"loopback\"]\n")
    });
    repo.write("../home/config/squad/config.toml", &tables.collect::<String>());
}

/// Each agent writes a file, changes one with the others' lines in it, moves and deletes, decides and remembers.
fn script(wait: &str) -> String {
    let turn = |agent: &str| {
        format!(
            "[[turn]]\nagent = \"{agent}\"\nsteps = [\n  {{ run = \"cat draft.txt && ls && echo at=${NAME}=\" }},\n  \
             {{ tool = \"squad_log_decision\", args = {{ title = \"{agent} decides\", what = \"So.\", why = \"Why.\" }} }},\n  \
             {{ write = \"src/{agent}.txt\", text = \"{agent}\\n\" }},\n  \
             {{ run = \"sed -i s/^{agent}$/{agent}-was-here/ src/shared.txt && mkdir -p bin && ln -sf ../src/{agent}.txt bin/{agent} && printf x > bin/{agent}.sh && chmod +x bin/{agent}.sh\" }},\n  \
             {wait}\n  {{ say = \"{agent} is done.\" }},\n]\n"
        )
    };
    let coordinator = "[[turn]]\nagent = \"coordinator\"\nsteps = [{ say = \"All is done.\" }]\n";
    AGENTS.map(turn).concat() + coordinator
}

/// A squad at work, read line by line.
struct Running {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    events: Vec<Value>,
    errors: String,
}

impl Running {
    fn start(repo: &TestRepo, arguments: &[&str]) -> Self {
        let errors = repo.home().join("stderr.txt");
        let mut command = repo.command(env!("CARGO_BIN_EXE_squad"), &repo.root());
        command.args(["orchestrate", "--json", "--permissions", "allow"]).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&errors).expect("a file"));
        let mut child = command.spawn().expect("squad runs");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { child, lines, events: Vec::new(), errors: errors.display().to_string() }
    }

    /// The next event; `None` at the end.
    fn next(&mut self) -> Option<&Value> {
        let line = self.lines.next()?.expect("UTF-8");
        self.events.push(serde_json::from_str(&line).expect(&line));
        self.events.last()
    }

    fn wait_for(&mut self, kind: &str) {
        while let Some(event) = self.next() {
            if event["type"] == kind {
                return;
            }
        }
        panic!("no {kind}: {}", self.told());
    }

    fn end(mut self) -> (Vec<Value>, Option<i32>, String) {
        while self.next().is_some() {}
        let code = self.child.wait().expect("a child").code();
        let told = self.told();
        (std::mem::take(&mut self.events), code, told)
    }

    fn told(&self) -> String {
        let events: Vec<String> = self.events.iter().map(Value::to_string).collect();
        format!("{}\n{}", events.join("\n"), std::fs::read_to_string(&self.errors).unwrap_or_default())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended, unless the test has failed: it would look for its hosts for an hour.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What is the same wherever the agents worked.
#[derive(Debug, PartialEq)]
struct Outcome {
    agents: Value,
    /// The files that each agent changed, with lines added and removed.
    changed: BTreeMap<String, Vec<Value>>,
    decisions: usize,
    /// The merged project.
    tree: String,
}

/// `is_twice`: an agent may have decided twice what it was told to check.
fn outcome(repo: &TestRepo, events: &[Value], told: &str, is_twice: bool) -> Outcome {
    let last = events.last().expect(told);
    assert_eq!((&last["type"], &last["status"]), (&json!("run.completed"), &json!("completed")), "{told}");
    let work = last["work"].as_array().expect("a list").iter();
    let changed: BTreeMap<String, Vec<Value>> = work
        .map(|work| {
            let changes = work["changed"].as_array().expect("a list").iter();
            let shown =
                changes.map(|change| json!([change["path"], change["added"], change["removed"], change["class"]]));
            (work["agent"].as_str().expect("a name").to_owned(), shown.collect())
        })
        .collect();
    let run = last["run"].as_str().expect("an id");
    let merged = repo.command(env!("CARGO_BIN_EXE_squad"), &repo.root()).args(["merge", run, "--yes"]).output();
    let merged = merged.expect("squad runs");
    assert!(merged.status.success(), "{merged:?}\n{told}");
    let decisions =
        repo.command(env!("CARGO_BIN_EXE_squad"), &repo.root()).args(["decisions", "list", "--json"]).output();
    let decisions: Value = serde_json::from_slice(&decisions.expect("squad runs").stdout).expect("JSON");
    let listed = decisions["decisions"].as_array().expect("a list");
    let titles: BTreeSet<&str> = listed.iter().filter_map(|decision| decision["title"].as_str()).collect();
    assert!(is_twice || titles.len() == listed.len(), "one twice: {listed:?}\n{told}");
    repo.assert_sound();
    // squad's merge leaves the work tree alone where uncommitted changes are in its way.
    let merged = format!("refs/heads/squad/{run}");
    let merged = if repo.git(&["for-each-ref", &merged]).is_empty() { "HEAD".to_owned() } else { merged };
    // A decision's file has an id in its name.
    let tree = repo.git(&["ls-tree", "-r", &merged]);
    let tree =
        tree.lines().filter(|line| !line.contains(".squad/decisions/")).map(|line| format!("{line}\n")).collect();
    Outcome { agents: last["agents"].clone(), changed, decisions: titles.len(), tree }
}

fn arguments<'a>(script: &'a str, where_: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["--engine", "rehearsal", "--script", script];
    arguments.extend(where_);
    arguments.extend(AGENTS.iter().flat_map(|agent| ["--agent", *agent]));
    arguments.push("Write your names");
    arguments
}

fn run(
    hosts: &Hosts,
    wait: &str,
    on: &[&str],
    is_twice: bool,
    disturb: impl FnOnce(&TestRepo, &mut Running),
) -> (Outcome, Vec<Value>) {
    let repo = crew(hosts);
    repo.write("../script.toml", &script(wait));
    let mut running = Running::start(&repo, &arguments("../script.toml", on));
    disturb(&repo, &mut running);
    let (events, code, told) = running.end();
    assert_eq!(code, Some(0), "{told}\n{}", hosts.logs());
    (outcome(&repo, &events, &told, is_twice), events)
}

/// The machines on which commands ran; empty: this one.
pub(super) fn places(events: &[Value]) -> BTreeSet<&str> {
    let results = events.iter().filter_map(|event| event["result"].as_str());
    results.filter_map(|result| result.split("at=").nth(1)?.split('=').next()).collect()
}

/// Eight agents on two hosts, two at a time on each, do what they do here.
pub(super) fn are_the_same(hosts: &Hosts) {
    let (here, events) = run(hosts, "", &["--isolation", "clone"], false, |_, _| {});
    assert_eq!(places(&events), BTreeSet::from([""]));
    assert_eq!((here.decisions, here.changed.len()), (AGENTS.len(), AGENTS.len() + 1), "{here:?}");
    assert!(here.tree.contains("120000") && here.tree.contains("100755"), "{here:?}");
    let (there, events) = run(hosts, "", &["--on", "any"], false, |_, _| {});
    assert_eq!(places(&events), super::NAMES.into());
    assert_eq!(there, here);
    let (there, events) = run(hosts, "", &["--on", "two"], false, |_, _| {});
    assert_eq!(places(&events), ["two"].into());
    assert_eq!(there, here);
    assert_eq!(hosts.workers(), [], "nothing is left there");
}

/// The user's launchers.
pub(super) fn launchers(repo: &TestRepo, program: &str) -> Vec<(u32, String)> {
    let mut all = processes_with(&format!("HOME={}", repo.home().display()));
    all.retain(|(_, line)| line.split(' ').next().is_some_and(|path| path.rsplit('/').next() == Some(program)));
    all
}

/// Whatever is killed in the middle is started again, and nothing is lost. `is_twice`: an agent that is told to check may
/// decide again what it had decided.
pub(super) fn survive(hosts: &Hosts, found: impl Fn(&Hosts, &TestRepo) -> Vec<(u32, String)>, is_twice: bool) {
    let (here, _) = run(hosts, "", &["--isolation", "clone"], false, |_, _| {});
    let kill = |repo: &TestRepo, running: &mut Running| {
        // As many as there are slots.
        (0..2 * SLOTS).for_each(|_| running.wait_for("decision.logged"));
        let found = found(hosts, repo);
        assert!(!found.is_empty());
        found.into_iter().for_each(|(id, _)| kill(id));
    };
    let (there, events) = run(hosts, "{ wait = \"5s\" },", &["--on", "any"], is_twice, kill);
    assert_eq!(there, here);
    assert!(events.iter().any(|event| event["type"] == "connection.lost"), "{events:?}");
    let numbers: Vec<u64> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert_eq!(hosts.workers(), [], "nothing is left there");
}

/// Kills what is on the way at moments all over a run, `SQUAD_TEST_ROUNDS` of them for each: in the end, perhaps with
/// `--resume`, the outcome is that of a run here. `session`: how the title of what serves a launcher there begins.
pub(super) fn survive_at_any_moment(hosts: &mut Hosts, launcher: &str, session: &str) {
    let rounds = std::env::var("SQUAD_TEST_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1);
    let wait = "{ wait = \"500ms\" },";
    let (here, _) = run(hosts, wait, &["--isolation", "clone"], false, |_, _| {});
    for victim in ["launcher", "session", "daemon", "worker", "squad"] {
        for round in 0..rounds {
            let repo = crew(hosts);
            let begun = Instant::now();
            repo.write("../script.toml", &script(wait));
            let mut running = Running::start(&repo, &arguments("../script.toml", &["--on", "any"]));
            running.wait_for("run.started");
            let id = running.events[0]["run"].as_str().expect("an id").to_owned();
            // All over the first seconds, and not in their order.
            let moment = Duration::from_millis(300 + round * 1237 % 5000);
            thread::sleep(moment);
            match victim {
                "launcher" => launchers(&repo, launcher).into_iter().for_each(|(id, _)| kill(id)),
                "daemon" => hosts.restart(),
                "worker" => hosts.workers().into_iter().for_each(|(id, _)| kill(id)),
                "session" => {
                    let all = hosts.processes().into_iter();
                    // That of Slurm has another title and no environment; a worker is its child.
                    let all =
                        all.flat_map(|(id, line)| parent(id).map(|id| (id, title(id))).into_iter().chain([(id, line)]));
                    let found: BTreeSet<u32> =
                        all.filter(|(_, line)| line.starts_with(session)).map(|(id, _)| id).collect();
                    found.into_iter().for_each(kill);
                }
                _ => signal(running.child.id(), "KILL"),
            }
            let (mut events, mut code, mut told) = running.end();
            let what = format!("{victim}, after {moment:?}");
            if code != Some(0) {
                let again = ["--script", "../script.toml", "--resume", &id];
                (events, code, told) = Running::start(&repo, &again).end();
            }
            assert_eq!(code, Some(0), "{what}: {told}\n{}", hosts.logs());
            assert_eq!(outcome(&repo, &events, &told, true), here, "{what}: {told}");
            eprintln!("{what}: the same, {} s", begun.elapsed().as_secs());
        }
    }
    assert_eq!(hosts.workers(), [], "nothing is left there");
}

/// squad and its launchers are killed in the middle: `--resume` brings the work that went on without them.
pub(super) fn survive_squad(hosts: &Hosts) {
    let (here, _) = run(hosts, "", &["--isolation", "clone"], false, |_, _| {});
    let repo = crew(hosts);
    repo.write("../script.toml", &script("{ wait = \"3s\" },"));
    let mut running = Running::start(&repo, &arguments("../script.toml", &["--on", "any"]));
    running.wait_for("decision.logged");
    let id = running.events[0]["run"].as_str().expect("an id").to_owned();
    signal(running.child.id(), "KILL");
    let _ = running.end();
    let (events, code, told) = Running::start(&repo, &["--script", "../script.toml", "--resume", &id]).end();
    assert_eq!(code, Some(0), "{told}\n{}", hosts.logs());
    assert_eq!(outcome(&repo, &events, &told, true), here, "{told}");
    assert_eq!(hosts.workers(), [], "nothing is left there");
}

/// One host prints a banner before anything else, the other cannot be reached: it fails its own agent, and says why.
pub(super) fn fail_where_a_host_is_gone(hosts: &mut Hosts) {
    let _ = hosts.daemons[1].kill();
    let _ = hosts.daemons[1].wait();
    hosts.launchers[0].push("echo 'Welcome to one.';".to_owned());
    let repo = crew(hosts);
    let checked = repo.command(env!("CARGO_BIN_EXE_squad"), &repo.root()).args(["hosts", "--check", "--json"]).output();
    let checked = checked.expect("squad runs");
    let found: Value = serde_json::from_slice(&checked.stdout).expect("JSON");
    let [one, two] = [0, 1].map(|number| &found["hosts"][number]);
    assert_eq!((checked.status.code(), &one["reachable"], &one["busy"]), (Some(1), &json!(true), &json!(0)), "{found}");
    assert!(one["engines"].as_array().is_some_and(|engines| engines.contains(&json!("rehearsal"))), "{found}");
    let problem = two["problem"].as_str().unwrap_or_default();
    assert!(problem.contains("exit status: 255") && problem.contains("Connection refused"), "{found}");
    let configuration = repo.read("../home/config/squad/config.toml");
    // It is looked for as long as that.
    let configuration = configuration.replace("slots", "lease = \"1s\"\nslots");
    let places = "[agents.ada]\nhost = \"one\"\n[agents.bob]\nhost = \"two\"\n";
    repo.write("../home/config/squad/config.toml", &(configuration + places));
    repo.write("../script.toml", &script(""));
    let arguments =
        ["--engine", "rehearsal", "--script", "../script.toml", "--agent", "ada", "--agent", "bob", "Write"];
    let (events, code, told) = Running::start(&repo, &arguments).end();
    let last = events.last().expect(&told);
    let states = (&last["agents"]["ada"], &last["agents"]["bob"]);
    assert_eq!((code, states), (Some(1), (&json!("completed"), &json!("failed"))), "{told}");
    let failed = events.iter().find(|event| event["type"] == "agent.failed").expect(&told).to_string();
    assert!(failed.contains("host two") && failed.contains("Connection refused"), "{failed}");
}

/// Eight agents in jobs that a launcher only hands in, two at a time, do what they do here. `submit`: what hands in a
/// command line, by host.
pub(super) fn jobs_are_the_same(hosts: &Hosts, submit: impl Fn(usize, &str) -> Vec<String>) {
    let (here, _) = run(hosts, "", &["--isolation", "clone"], false, |_, _| {});
    let repo = crew(hosts);
    let (remote, clone) = (repo.home().join("remote.git"), repo.home().join("clone"));
    let (remote, clone) = (remote.display().to_string(), clone.display().to_string());
    repo.git(&["init", "--quiet", "--bare", &remote]);
    repo.git(&["remote", "add", "origin", &remote]);
    repo.git(&["push", "--quiet", "origin", "HEAD"]);
    repo.git(&["clone", "--quiet", &remote, &clone]);
    let tables = super::NAMES.into_iter().enumerate().map(|(number, name)| {
        let launch = json!(submit(number, &format!("cd {clone} && squad worker --order {{order}}")));
        format!("[hosts.{name}]\nmode = \"batch\"\nlaunch = {launch}\nslots = {SLOTS}\n")
    });
    repo.write("../home/config/squad/config.toml", &tables.collect::<String>());
    repo.write("../script.toml", &script(""));
    let running = Running::start(&repo, &arguments("../script.toml", &["--on", "any"]));
    let (events, code, told) = running.end();
    assert_eq!(code, Some(0), "{told}\n{}", hosts.logs());
    assert_eq!(places(&events), super::NAMES.into());
    assert_eq!(outcome(&repo, &events, &told, false), here);
    assert_eq!(repo.git(&["ls-remote", "origin", "refs/squad/*"]), "");
}
