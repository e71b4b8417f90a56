//! Work that conflicts goes back to its agent, at most twice.

use crate::support::{Output, TestRepo};

const BOTH: &str = r#"
[[turn]]
agent = "ada"
steps = [{ write = "notes.txt", text = "one\ntwo\nADA\n" }, { say = "Done." }]
[[turn]]
agent = "bob"
steps = [{ write = "notes.txt", text = "one\ntwo\nBOB\n" }, { write = "bob.txt", text = "bob\n" }, { say = "Done." }]
"#;
const RESOLVES: &str = r#"
[[turn]]
agent = "bob"
steps = [{ run = "cat notes.txt bob.txt" }, { write = "notes.txt", text = "one\ntwo\nADA and BOB\n" }, { say = "Resolved." }]
"#;
const LEAVES: &str = r#"
[[turn]]
agent = "bob"
steps = [{ run = "cat notes.txt" }, { say = "I do not know." }]
"#;
const FAILS: &str = r#"
[[turn]]
agent = "bob"
steps = [{ fail = "the model is gone" }]
"#;
const THEN: &str = r#"
[[turn]]
agent = "rex"
steps = [{ run = "cat notes.txt" }, { say = "Seen." }]
[[turn]]
agent = "coordinator"
steps = [{ say = "All is done." }]
"#;

fn repo() -> TestRepo {
    let mut repo = TestRepo::with_small_team();
    let state = repo.home().join("state");
    repo.variables.insert("XDG_STATE_HOME".into(), state.display().to_string());
    repo.write("notes.txt", "one\ntwo\nthree\n");
    repo.git(&["add", "notes.txt"]);
    repo.git(&["commit", "-qm", "notes"]);
    repo
}

fn played(repo: &TestRepo, parts: &[&str]) -> (Output, String) {
    let message = "@ada and @bob do it, then @rex tests it";
    repo.write("../home/config/squad/config.toml", "[sessions]\nretry = 0\n");
    let arguments = ["--permissions", "allow", "--isolation", "clone", "--json", message];
    let output = repo.rehearse(&parts.concat(), &arguments);
    let run = TestRepo::events(&output).last().expect("an end")["run"].as_str().expect("an id").to_owned();
    (output, run)
}

/// What the commands of an agent printed, each.
fn seen(output: &Output, agent: &str) -> Vec<String> {
    let events = TestRepo::events(output);
    let ran = events.iter().filter(|event| event["type"] == "tool.completed" && event["tool"] == "shell");
    let of_agent = ran.filter(|event| event["agent"] == agent);
    of_agent.map(|event| event["result"].as_str().expect("a text").to_owned()).collect()
}

/// At the first return, at the second, and not at all: what becomes of the work, and what the next step sees.
#[test]
fn a_conflict_goes_back_to_its_agent_twice() {
    for (returns, is_resolved, code) in [
        (&[RESOLVES][..], true, 0),
        (&[LEAVES, RESOLVES], true, 0),
        (&[LEAVES, LEAVES], false, 0),
        (&[LEAVES, LEAVES, RESOLVES], false, 0),
        (&[FAILS], false, 1),
    ] {
        let repo = repo();
        let (output, run) = played(&repo, &[&[BOTH], returns, &[THEN]].concat());
        assert_eq!(output.code, code, "{returns:?}: {output}");
        let bob = seen(&output, "bob");
        let [first, ..] = &bob[..] else {
            assert_eq!(code, 1);
            continue;
        };
        assert!(
            ["<<<<<<< ", "ADA\n", "=======\n", "BOB\n", ">>>>>>> "].iter().all(|part| first.contains(part)),
            "{first}"
        );
        assert_eq!(bob.len(), returns.len().min(2), "{output}");
        let both = "one\ntwo\nADA and BOB\n";
        assert_eq!(seen(&output, "rex"), [if is_resolved { both } else { "one\ntwo\nADA\n" }], "{output}");
        assert_eq!(output.out.contains("the work of bob stays set aside"), !is_resolved, "{output}");
        let dry = repo.squad(&["merge", &run, "--dry-run"]);
        assert_eq!(dry.code, u8::from(!is_resolved), "{dry}");
        let merged = repo.squad(&["merge", &run, "--yes"]);
        assert_eq!(merged.code, u8::from(!is_resolved), "{merged}");
        assert_eq!(merged.err.contains("the work of bob is not merged"), !is_resolved, "{merged}");
        assert_eq!(repo.read("notes.txt"), if is_resolved { both } else { "one\ntwo\nADA\n" });
        assert_eq!(repo.exists("bob.txt"), is_resolved);
        // What is set aside is as bob made it, in its clone too.
        let bobs = repo.git(&["show", &format!("refs/squad/runs/{run}/bob:notes.txt")]);
        assert_eq!(bobs, if is_resolved { both } else { "one\ntwo\nBOB\n" });
        assert!(repo.squad(&["gc"]).out.contains("3 clones of ended runs removed"), "nothing uncommitted is left");
        repo.assert_sound();
    }
}

/// Not all that conflicts has marks, not all marks stay where they were, and whoever gives in changes nothing.
#[test]
fn what_counts_as_resolved() {
    let gone = "{ run = \"rm notes.txt\" }";
    let bobs = "{ write = \"notes.txt\", text = \"BOB\\n\" }";
    let image = |text: &str| format!("{{ run = \"printf 'a\\\\0{text}' > notes.txt\" }}");
    let (ada, bob) = ("{ write = \"notes.txt\", text = \"ADA\\n\" }", bobs);
    for (case, ada, bob, answer, is_resolved, left) in [
        ("the other's side", ada, bob, "printf 'ADA\\\\n' > notes.txt", true, "ADA\n"),
        ("a deletion that is only looked at", gone, bob, "ls", false, ""),
        ("a deletion that is agreed to", gone, bob, "rm -f notes.txt", true, ""),
        ("the other's deletion, kept as it is", gone, bob, "KEEP: notes.txt", true, "BOB\n"),
        ("no text, only looked at", &image("ADA"), &image("BOB"), "ls", false, "a\0ADA"),
        ("marks in another file", ada, bob, "mv notes.txt docs.txt", false, "ADA\n"),
        ("half of the marks", ada, bob, "sed -i.old /=====/,/BOB/d notes.txt; rm *.old", false, "ADA\n"),
        ("the first mark", ada, bob, "sed -i.old -e '/=====/d' -e '/>>>>/d' notes.txt; rm *.old", false, "ADA\n"),
        ("the last mark", ada, bob, "sed -i.old -e '/=====/d' -e '/<<<</d' notes.txt; rm *.old", false, "ADA\n"),
    ] {
        let repo = repo();
        let turn = |agent: &str, step: &str| {
            format!("[[turn]]\nagent = \"{agent}\"\nsteps = [{step}, {{ say = \"Done.\" }}]\n")
        };
        let act = if answer.starts_with("KEEP") { "say" } else { "run" };
        let answers = turn("bob", &format!("{{ {act} = \"{answer}\" }}"));
        let answers = if act == "say" { answers.replace(", { say = \"Done.\" }", "") } else { answers };
        let (output, run) = played(
            &repo,
            &[&turn("ada", ada), &turn("bob", bob), &answers, if is_resolved { "" } else { &answers }, THEN],
        );
        assert_eq!(output.out.contains("the work of bob stays set aside"), !is_resolved, "{case}: {output}");
        let merged = repo.squad(&["merge", &run, "--yes"]);
        assert_eq!(merged.code, u8::from(!is_resolved), "{case}: {merged}");
        assert_eq!(if repo.exists("notes.txt") { repo.read("notes.txt") } else { String::new() }, left, "{case}");
        let files = repo.git(&["ls-files"]);
        assert!(!files.contains('~') && !files.contains("docs.txt"), "{case}: {files}");
        repo.assert_sound();
    }
}

/// A folder in a file's place: the file that has another name for it is named as it was, and the folder stays.
#[test]
fn a_folder_in_a_files_place_is_resolved_too() {
    let ada = "[[turn]]\nagent = \"ada\"\nsteps = [{ run = \"rm notes.txt; mkdir notes.txt; echo in >notes.txt/in\" }, { say = \"Done.\" }]\n";
    let bob =
        "[[turn]]\nagent = \"bob\"\nsteps = [{ write = \"notes.txt\", text = \"BOB\\n\" }, { say = \"Done.\" }]\n";
    let answer = "[[turn]]\nagent = \"bob\"\nsteps = [{ run = \"rm notes.txt~*\" }, { say = \"Done.\" }]\n";
    let repo = repo();
    let (output, run) = played(&repo, &[ada, bob, answer, THEN]);
    assert!(
        output.out.contains("it conflicts in notes.txt\"") || output.out.contains("\"conflicts\":[\"notes.txt\"]"),
        "{output}"
    );
    assert!(!output.out.contains("stays set aside"), "{output}");
    let merged = repo.squad(&["merge", &run, "--yes"]);
    assert!(merged.code == 0 && repo.read("notes.txt/in") == "in\n", "{merged}");
    repo.assert_sound();
}

/// Kills squad while bob looks at his conflict. Returns the run.
#[cfg(unix)]
fn killed_at_work(repo: &TestRepo, script: &str) -> String {
    let flags = ["--permissions", "allow", "--isolation", "clone", "--agent", "bob", "do it"];
    let mut child = crate::process::start(repo, script, &flags);
    crate::process::wait_for(&mut child, "Looking.");
    child.kill().expect("it lives");
    child.wait().expect("it ends");
    let log: serde_json::Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
    log["runs"][0]["run"].as_str().expect("an id").to_owned()
}

/// squad dies while bob resolves: both sides of a file are nobody's work.
#[cfg(unix)]
#[test]
fn a_killed_run_commits_no_marks() {
    let repo = repo();
    let hangs =
        "[[turn]]\nagent = \"bob\"\nsteps = [{ run = \"cat notes.txt\" }, { say = \"Looking.\" }, { hang = true }]\n";
    let run = killed_at_work(&repo, &[BOTH, hangs, THEN].concat());
    let resumed = repo.squad(&["orchestrate", "--resume", &run, "--permissions", "allow", "--json"]);
    assert!(!resumed.out.contains("could not be committed"), "{resumed}");
    let merged = repo.squad(&["merge", &run, "--yes"]);
    assert!(merged.code == 1 && merged.err.contains("the work of bob is not merged"), "{merged}");
    assert_eq!(repo.read("notes.txt"), "one\ntwo\nADA\n");
    assert!(repo.squad(&["gc"]).out.contains("2 clones of ended runs removed"));
    repo.assert_sound();
}

/// The run that goes on gives back what the killed one had set aside.
#[cfg(unix)]
#[test]
fn a_resumed_run_gives_a_conflict_back() {
    let repo = repo();
    let hangs = "[[turn]]\nagent = \"bob\"\nsteps = [{ say = \"Looking.\" }, { hang = true }]\n";
    let run = killed_at_work(&repo, &[BOTH, hangs].concat());
    let whole = [BOTH, RESOLVES, THEN].concat();
    let resumed = repo.rehearse(&whole, &["--permissions", "allow", "--isolation", "clone", "--resume", &run]);
    assert_eq!(resumed.code, 0, "{resumed}");
    assert_eq!(repo.squad(&["merge", &run, "--yes"]).code, 0, "{resumed}");
    assert_eq!(repo.read("notes.txt"), "one\ntwo\nADA and BOB\n", "{resumed}");
    repo.assert_sound();
}

/// The branch has gone on where bob worked: `squad merge` gives his work back, once the user agrees, and merges what he made
/// of both. A dry run starts nobody, and neither does a run in which agents had to be asked.
#[test]
fn a_merge_gives_a_conflict_with_the_branch_back() {
    const BOB: &str = "[[turn]]\nagent = \"bob\"\nsteps = [{ write = \"notes.txt\", text = \"one\\ntwo\\nBOB\\n\" }, { say = \"Done.\" }]\n\
        [[turn]]\nagent = \"ada\"\nsteps = [{ write = \"ada.txt\", text = \"ada\\n\" }, { say = \"Done.\" }]\n\
        [[turn]]\nagent = \"coordinator\"\nsteps = [{ say = \"All is done.\" }]\n";
    const RESOLVED: &str = "[[turn]]\nagent = \"bob\"\nsteps = [{ run = \"cat notes.txt ada.txt\" }, { write = \"notes.txt\", text = \"one\\ntwo\\nUSER and BOB\\n\" }, { say = \"Resolved.\" }]\n";
    for (turn, is_resolved) in [(RESOLVED, true), (LEAVES, false), (FAILS, false)] {
        let repo = repo();
        let script = [BOB, turn].concat();
        let arguments = ["--permissions", "allow", "--isolation", "clone", "--json", "@bob and @ada do it"];
        let output = repo.rehearse(&script, &arguments);
        assert_eq!(output.code, 0, "{output}");
        let run = TestRepo::events(&output).last().expect("an end")["run"].as_str().expect("an id").to_owned();
        let ends = |repo: &TestRepo| repo.squad(&["log", &run, "--json"]).out.matches("\"agent.completed\"").count();
        let before = ends(&repo);
        let path = repo.root().with_file_name("script.toml").display().to_string();
        repo.write(
            "../home/config/squad/config.toml",
            &format!("[sessions]\nretry = 0\n[engine.rehearsal]\nscript = '{path}'\n"),
        );
        repo.write("notes.txt", "one\ntwo\nUSER\n");
        repo.git(&["commit", "-qam", "mine"]);
        let dry = repo.squad(&["merge", &run, "--dry-run"]);
        assert!(dry.code == 1 && dry.err.contains("bob is not merged"), "{dry}");
        assert_eq!(repo.squad(&["merge", &run]).code, 2, "nobody agrees");
        assert_eq!(ends(&repo), before, "nobody was started");
        let merged = repo.squad(&["merge", &run, "--yes"]);
        assert_eq!(merged.code, u8::from(!is_resolved), "{merged}");
        assert!(repo.exists("ada.txt"), "{merged}");
        assert_eq!(repo.read("notes.txt"), if is_resolved { "one\ntwo\nUSER and BOB\n" } else { "one\ntwo\nUSER\n" });
        let log = repo.squad(&["log", &run, "--json"]).out;
        if turn != FAILS {
            assert!(log.contains("USER\\n=======\\nBOB\\n"), "bob saw both: {log}");
        }
        assert_eq!(log.matches("\"run.merged\"").count(), 1);
        let runs: serde_json::Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
        assert_eq!(runs["runs"][0]["status"], "completed", "{runs}");
        // Whoever has had it twice does not get it again.
        if turn == LEAVES {
            let again = ends(&repo);
            assert_eq!(repo.squad(&["merge", &run, "--yes"]).code, 1);
            assert_eq!(ends(&repo), again);
        }
        assert_eq!(repo.git(&["status", "--porcelain"]), "");
        repo.assert_sound();
    }
}

/// Ctrl-C while an agent resolves: nothing is merged, and the next merge takes all that it would have taken.
#[cfg(unix)]
#[test]
fn an_interrupted_return_merges_nothing() {
    const BOB: &str = "[[turn]]\nagent = \"bob\"\nsteps = [{ write = \"notes.txt\", text = \"BOB\\n\" }, { say = \"Done.\" }]\n\
        [[turn]]\nagent = \"ada\"\nsteps = [{ write = \"ada.txt\", text = \"ada\\n\" }, { say = \"Done.\" }]\n\
        [[turn]]\nagent = \"coordinator\"\nsteps = [{ say = \"All is done.\" }]\n\
        [[turn]]\nagent = \"bob\"\nsteps = [{ run = \"touch ../../../../begun; sleep 60\" }]\n";
    let repo = repo();
    let output =
        repo.rehearse(BOB, &["--permissions", "allow", "--isolation", "clone", "--json", "@bob and @ada do it"]);
    let run = TestRepo::events(&output).last().expect("an end")["run"].as_str().expect("an id").to_owned();
    let path = repo.root().with_file_name("script.toml").display().to_string();
    repo.write("../home/config/squad/config.toml", &format!("[engine.rehearsal]\nscript = '{path}'\n"));
    repo.write("notes.txt", "USER\n");
    repo.git(&["commit", "-qam", "mine"]);
    let head = repo.git(&["rev-parse", "HEAD"]);
    let mut command = repo.command(env!("CARGO_BIN_EXE_squad"), &repo.root());
    command.args(["merge", &run, "--yes"]).stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped());
    let child = command.stderr(std::process::Stdio::piped()).spawn().expect("squad runs");
    let is_at_work = || repo.squad(&["log", &run, "--json"]).out.matches("\"tool.started\"").count() > 2;
    while !is_at_work() {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    crate::process::signal(&child, "INT");
    let ended = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(130), "{said}");
    assert!(said.contains("nothing is merged"), "{said}");
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), head);
    assert!(!repo.exists("ada.txt"));
    repo.assert_sound();
}

/// Agents side by side end in any order; what is merged is what the plan's order says. Some change the same line: of those,
/// the first in the plan has it. `SQUAD_INTERLEAVINGS=50,20` plays so many agents so many times.
#[test]
fn the_order_of_a_merge_is_the_plans_however_agents_end() {
    let asked = std::env::var("SQUAD_INTERLEAVINGS").unwrap_or_default();
    let asked = asked.split_once(',').and_then(|(agents, times)| Some((agents.parse().ok()?, times.parse().ok()?)));
    let (count, times): (u64, u64) = asked.unwrap_or((10, 3));
    let mut trees = std::collections::BTreeSet::new();
    let base: Vec<String> = (0..4 * count).map(|line| format!("line {line}")).collect();
    // Every fifth agent wants the line of the one before it.
    let line_of = |agent: u64| 4 * (if agent % 5 == 4 { agent - 1 } else { agent }) as usize;
    let text = |lines: &[String]| lines.join("\n") + "\n";
    let mut model = base.clone();
    let mut left = Vec::new();
    for agent in 0..count {
        match model[line_of(agent)] == base[line_of(agent)] {
            true => model[line_of(agent)] = format!("of {agent}"),
            false => left.push(format!("dev{agent:02}x")),
        }
    }
    for seed in 0..times {
        let repo = TestRepo::empty();
        let state = repo.home().join("state").display().to_string();
        let mut repo = repo;
        repo.variables.insert("XDG_STATE_HOME".into(), state);
        let names: Vec<String> = (0..count).map(|agent| format!("dev{agent:02}x")).collect();
        let rows: String = names.iter().map(|name| format!("| {name} | Developer | Active |\n")).collect();
        repo.write(".squad/team.md", &format!("# Big\n\n| Name | Role | Status |\n|---|---|---|\n{rows}"));
        repo.write("notes.txt", &text(&base));
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-qm", "team"]);
        let mut script = String::new();
        for agent in 0..count {
            let mut lines = base.clone();
            lines[line_of(agent)] = format!("of {agent}");
            let wait = (agent + 1) * (seed * 7 + 3) % 11 + 1;
            let notes = text(&lines).replace('\n', "\\n");
            script += &format!(
                "[[turn]]\nagent = \"dev{agent:02}x\"\nsteps = [{{ wait = \"{wait}s\" }}, {{ write = \"notes.txt\", text = \"{notes}\" }}, {{ say = \"Done.\" }}]\n"
            );
            let leaves = format!("[[turn]]\nagent = \"dev{agent:02}x\"\nsteps = [{{ say = \"I leave it.\" }}]\n");
            script += &leaves.repeat(2);
        }
        script += "[[turn]]\nagent = \"coordinator\"\nsteps = [{ say = \"All is done.\" }]\n";
        let agents = names.join(",");
        let flags = ["--permissions", "allow", "--isolation", "clone", "--json", "--agent", &agents, "Write it"];
        let output = repo.rehearse(&script, &flags);
        assert_eq!(output.code, 0, "{seed}: {output}");
        let run = TestRepo::events(&output).last().expect("an end")["run"].as_str().expect("an id").to_owned();
        let merged = repo.squad(&["merge", &run, "--yes", "--json"]);
        let report: serde_json::Value = serde_json::from_str(&merged.out).expect("JSON");
        let aside = report["left"].as_array().expect("a list").iter();
        let aside: Vec<String> = aside.map(|left| left["agent"].as_str().expect("a name").to_owned()).collect();
        assert_eq!((repo.read("notes.txt"), aside), (text(&model), left.clone()), "{seed}");
        trees.insert(repo.git(&["rev-parse", "HEAD^{tree}"]));
    }
    assert_eq!(trees.len(), 1, "the same, whatever the order");
}

/// A repository of its own and a large file, which squad does not commit, are still in the clone after its conflict was given
/// back and given up.
#[cfg(unix)]
#[test]
fn what_no_commit_has_stays_in_a_clone_whose_conflict_is_given_back() {
    for returns in [&[RESOLVES][..], &[LEAVES, LEAVES]] {
        let repo = repo();
        let more =
            "{ run = \"git init -q sub; echo x >sub/x; mkdir 'a b'; head -c 34000000 /dev/zero >'a b/big[1].bin'\" }, ";
        let (bobs, rest) = BOTH.rsplit_once("steps = [").expect("his steps");
        let both = format!("{bobs}steps = [{more}{rest}");
        let (output, _) = played(&repo, &[&[&*both], returns, &[THEN]].concat());
        assert!(output.out.contains("big[1].bin stays in the clone of bob"), "{output}");
        let status: serde_json::Value = serde_json::from_str(&repo.squad(&["status", "--json"]).out).expect("JSON");
        let clones = status["clones"].as_array().expect("a list");
        let bobs = clones.iter().find(|clone| clone["agent"] == "bob").expect("his clone");
        let home = repo.home().display().to_string();
        let folder = bobs["directory"].as_str().expect("a path").replacen("HOME", &home, 1);
        for file in ["sub/x", "a b/big[1].bin"] {
            assert!(std::path::Path::new(&folder).join(file).is_file(), "{returns:?}: {file}: {output}");
        }
    }
}
