//! `squad_commit`: an agent's own files, and nothing else, are committed for it.

use std::fs;

use serde_json::Value;

use crate::support::{Output, TestRepo};

fn repo() -> TestRepo {
    let repo = TestRepo::with_small_team();
    for (path, text) in [("mine.txt", "mine\n"), ("gone.txt", "gone\n"), ("yours.txt", "yours\n"), ("run.sh", "x\n")] {
        repo.write(path, text);
    }
    repo.git(&["add", "."]);
    repo.git(&["commit", "--quiet", "--message=files"]);
    repo
}

/// A run of ada's, who runs this in a shell and then commits. Returns what the tool answered.
fn run(repo: &TestRepo, command: &str, arguments: &str, options: &[&str]) -> (Output, String) {
    let tool = format!("{{ tool = \"squad_commit\", args = {{ message = \"Add a file\"{arguments} }} }}");
    let steps = format!("{{ run = '''{command}''' }}, {tool}, {{ say = \"Done.\" }}");
    run_script(repo, &format!("[[turn]]\nagent = \"ada\"\nsteps = [{steps}]\n"), &["ada"], options)
}

fn run_script(repo: &TestRepo, script: &str, agents: &[&str], options: &[&str]) -> (Output, String) {
    repo.write("../script.toml", script);
    let script = repo.root().join("../script.toml").display().to_string();
    let mut all = vec!["orchestrate", "--json", "--script", &script];
    agents.iter().for_each(|agent| all.extend(["--agent", agent]));
    all.extend(options);
    all.push("Do it");
    let output = repo.squad(&all);
    let answers = output.out.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut answers = answers.filter(|event| event["type"] == "tool.completed" && event["tool"] == "squad_commit");
    let answer = answers.next().map(|event| event["result"].as_str().unwrap_or_default().to_owned());
    (output, answer.unwrap_or_default())
}

const MINE: &str = ", paths = ['mine.txt']";
const ALLOW: [&str; 2] = ["--permissions", "allow"];

/// The files of the newest commit, each with what it did to it.
fn committed(repo: &TestRepo) -> Vec<String> {
    let shown = repo.git(&["show", "--name-status", "--format=", "HEAD"]);
    shown.lines().map(|line| line.replace('\t', " ")).collect()
}

#[test]
fn exactly_the_files_of_the_agent_are_committed() {
    let repo = repo();
    repo.write("yours.txt", "edited by you\n");
    repo.write("staged.txt", "staged by you\n");
    repo.git(&["add", "staged.txt"]);
    repo.write("new by you.txt", "x\n");
    let work =
        "echo more >> mine.txt; rm gone.txt; chmod +x run.sh; mkdir d; echo 'ü' > 'd/new ü.txt'; echo z >> yours.txt";
    let all = ", paths = ['mine.txt', 'gone.txt', 'run.sh', 'd/new ü.txt', 'yours.txt']";
    let (output, answer) = run(&repo, work, all, &ALLOW);
    assert_eq!(output.code, 0, "{output}");
    assert_eq!(committed(&repo), ["A \"d/new \\303\\274.txt\"", "D gone.txt", "M mine.txt", "M run.sh"], "{answer}");
    assert!(answer.contains("Left out: yours.txt: it held uncommitted changes before the run began"), "{answer}");
    assert!(!answer.contains("staged.txt") && !answer.contains("new by you"), "{answer}");
    let status = repo.git(&["status", "--porcelain"]);
    assert_eq!(status, "A  staged.txt\n M yours.txt\n?? \"new by you.txt\"\n");
    let message = repo.git(&["log", "-1", "--format=%an|%B"]);
    let run = newest(&repo);
    assert_eq!(message.trim_end(), format!("Ann|Add a file\n\nSquad-Run: {run}\nSquad-Agent: ada"), "{message}");
    // The outcome names the commit as the agent's.
    let events = output.out.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let ended: Vec<Value> = events.filter(|event| event["type"] == "agent.completed").collect();
    let head = repo.git(&["rev-parse", "HEAD"]);
    assert_eq!(ended[0]["git"]["commits"][0].as_str(), Some(head.trim()), "{}", ended[0]);
    assert_eq!(repo.git(&["fsck", "--strict"]), "");
}

fn newest(repo: &TestRepo) -> String {
    let runs: Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
    runs["runs"][0]["run"].as_str().expect("a run").to_owned()
}

/// Named paths × whose they are.
#[test]
fn a_named_file_is_committed_only_if_it_is_the_agents_own() {
    for (paths, expected) in [
        (r#"["mine.txt"]"#, Ok(["M mine.txt"].as_slice())),
        (r#"["./mine.txt", "gone.txt"]"#, Ok(&["M mine.txt"])),
        (r#"["yours.txt"]"#, Err("yours.txt: you have not changed it in this run")),
        (r#"["../outside"]"#, Err("../outside: you have not changed it in this run")),
        (r#"[".git/config"]"#, Err(".git/config: you have not changed it in this run")),
        (r#"["ignored.txt"]"#, Err("ignored.txt: you have not changed it in this run")),
        (r#"["."]"#, Ok(&["M mine.txt"])),
        (r#"["no"]"#, Err("no: you have not changed it in this run")),
    ] {
        let repo = repo();
        repo.write(".git/info/exclude", "ignored.txt\n");
        let before = repo.git(&["rev-parse", "HEAD"]);
        let (output, answer) =
            run(&repo, "echo a >> mine.txt; echo b > ignored.txt", &format!(", paths = {paths}"), &ALLOW);
        match expected {
            Ok(files) => assert_eq!(committed(&repo), files, "{paths}: {answer}\n{output}"),
            Err(why) => {
                assert!(answer.contains(why), "{paths}: {answer}");
                assert_eq!(repo.git(&["rev-parse", "HEAD"]), before, "{paths}");
                assert_eq!(repo.git(&["status", "--porcelain"]), " M mine.txt\n", "{paths}");
            }
        }
    }
}

#[test]
fn paths_are_relative_to_the_project_and_folders_stand_for_what_is_in_them() {
    let repo = repo();
    for path in ["team.md", "routing.md"] {
        repo.write(&format!("app/.squad/{path}"), &repo.read(&format!(".squad/{path}")));
    }
    repo.git(&["add", "."]);
    repo.git(&["commit", "--quiet", "--message=app"]);
    let write = |path: &str| format!("{{ write = \"{path}\", text = \"a\\n\" }}");
    let tool =
        |paths: &str| format!("{{ tool = \"squad_commit\", args = {{ message = \"Add\", paths = [{paths}] }} }}");
    let steps =
        [write("src/a.txt"), write("src/deep/c.txt"), write("d.txt"), tool("'src'"), tool("'d.txt', 'mine.txt'")];
    let script = format!("[[turn]]\nagent = \"ada\"\nsteps = [{}, {{ say = \"Done.\" }}]\n", steps.join(", "));
    repo.write("../script.toml", &script);
    let script = repo.root().join("../script.toml").display().to_string();
    let arguments = ["orchestrate", "--json", "--script", &script, "--agent", "ada", "--permissions", "allow", "Do it"];
    let output = repo.squad_in(&repo.root().join("app"), &arguments);
    assert!(output.out.contains("src/a.txt and src/deep/c.txt."), "{output}");
    assert!(output.out.contains("Left out: mine.txt: you have not changed it in this run"), "{output}");
    assert_eq!(committed(&repo), ["A app/d.txt"], "{output}");
    assert_eq!(repo.git(&["show", "--name-only", "--format=", "HEAD~1"]), "app/src/a.txt\napp/src/deep/c.txt\n");
}

/// Modes, options and states of the repository in which nothing is committed: HEAD, index and files stay.
#[test]
fn where_nothing_may_be_committed_nothing_changes() {
    let detach: &[&[&str]] = &[&["switch", "--quiet", "--detach"]];
    let merge: &[&[&str]] = &[
        &["switch", "--quiet", "-c", "other"],
        &["commit", "--quiet", "--allow-empty", "-m", "x"],
        &["switch", "--quiet", "main"],
        &["merge", "--quiet", "--no-commit", "--no-ff", "other"],
    ];
    let unsigned: &[&[&str]] = &[&["config", "commit.gpgSign", "true"], &["config", "gpg.program", "false"]];
    let nobody: &[&[&str]] = &[&["config", "user.name", ""], &["config", "user.email", ""]];
    let (allow, none): (&[&str], &[&[&str]]) = (&ALLOW, &[]);
    for (name, options, commands, why) in [
        ("a mode", &["--permissions", "deny"][..], none, "there is nothing of yours to commit"),
        ("an option", &["--permissions", "allow", "--no-commit"], none, "in the foreground"),
        ("a detached HEAD", allow, detach, "HEAD is detached"),
        ("a merge", allow, merge, "a merge is in progress"),
        ("a signature", allow, unsigned, "could not be signed"),
        ("no identity", allow, nobody, "does not know who you are"),
    ] {
        let repo = repo();
        commands.iter().for_each(|command| drop(repo.git(command)));
        let before = (repo.git(&["rev-parse", "HEAD"]), repo.git(&["ls-files", "--stage"]));
        let steps = "{ write = \"mine.txt\", text = \"mine\\nmore\\n\" }";
        let tool = "{ tool = \"squad_commit\", args = { message = \"Add a file\" } }";
        let script = format!("[[turn]]\nagent = \"ada\"\nsteps = [{steps}, {tool}, {{ say = \"Done.\" }}]\n");
        let (output, answer) = run_script(&repo, &script, &["ada"], options);
        assert!(answer.contains(why), "{name}: {answer}\n{output}");
        assert_eq!((repo.git(&["rev-parse", "HEAD"]), repo.git(&["ls-files", "--stage"])), before, "{name}");
        let is_changed = fs::read_to_string(repo.root().join("mine.txt")).expect("a file") == "mine\nmore\n";
        assert_eq!(is_changed, options.contains(&"allow"), "{name}");
    }
}

/// Two agents one after the other, on one file and on two: what both have changed is nobody's own.
#[test]
fn a_file_of_two_agents_is_left_to_the_user() {
    let repo = repo();
    let turn = |agent: &str, text: &str| {
        let tool = "{ tool = \"squad_commit\", args = { message = \"Mine\" } }";
        let write = |path: &str| format!("{{ write = \"{path}\", text = \"{text}\" }}");
        let (mine, new) = (write("mine.txt"), write(&format!("{agent}.txt")));
        format!("[[turn]]\nagent = \"{agent}\"\nsteps = [{mine}, {new}, {tool}, {{ say = \"Done.\" }}]\n")
    };
    let script = turn("ada", "a") + &turn("bob", "b");
    repo.write("../script.toml", &script);
    let script = repo.root().join("../script.toml").display().to_string();
    let output =
        repo.squad(&["orchestrate", "--script", &script, "--permissions", "allow", "@ada does it, then @bob does it"]);
    assert_eq!(output.code, 0, "{output}");
    let log = repo.git(&["log", "--name-status", "--format=%s", "-2"]);
    // The first commits what is its own so far; the second finds the file changed by both.
    assert_eq!(log, "Mine\n\nA\tbob.txt\nMine\n\nA\tada.txt\nM\tmine.txt\n", "{output}");
    assert_eq!(repo.git(&["status", "--porcelain"]), " M mine.txt\n");
}

#[test]
fn a_second_commit_has_what_changed_since_the_first() {
    let repo = repo();
    let tool = |message: &str| format!("{{ tool = \"squad_commit\", args = {{ message = \"{message}\" }} }}");
    let write = |text: &str| format!("{{ write = \"mine.txt\", text = \"{text}\" }}");
    let steps = [write("a"), tool("One"), write("b"), tool("Two"), tool("Three")].join(", ");
    let script = format!("[[turn]]\nagent = \"ada\"\nsteps = [{steps}, {{ say = \"Done.\" }}]\n");
    let (output, _) = run_script(&repo, &script, &["ada"], &ALLOW);
    assert_eq!(output.code, 0, "{output}");
    assert_eq!(repo.git(&["log", "--format=%s", "-2"]), "Two\nOne\n", "{output}");
    assert_eq!(output.out.matches("the branch has these files as they are").count(), 1, "{output}");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

/// Whatever may have changed while a command ran is the agent's only if it says so.
#[test]
fn what_a_command_may_have_changed_has_to_be_named() {
    let repo = repo();
    let (output, answer) = run(&repo, "echo more >> mine.txt", "", &ALLOW);
    assert!(answer.contains("Left out: mine.txt: it changed while your command ran"), "{answer}\n{output}");
    assert_eq!(repo.git(&["status", "--porcelain"]), " M mine.txt\n");
}

/// What is in the index × whether the commit can be signed: nothing is committed, and the index is as before.
#[test]
fn what_is_staged_is_not_lost() {
    let stash = "git stash list >/dev/null; echo a > mine.txt; git stash -q; echo b > mine.txt; git commit -qam b; git stash pop -q; true";
    for (work, signs, status, why) in [
        (
            "echo a >> mine.txt; git add mine.txt; echo b >> mine.txt",
            true,
            "MM mine.txt\n",
            "staged with other content",
        ),
        ("git rm -q --cached mine.txt; echo a >> mine.txt", true, "D  mine.txt\n?? mine.txt\n", "staged with other"),
        ("echo a >> mine.txt; git add mine.txt", false, "M  mine.txt\n", "could not be signed"),
        (stash, true, "UU mine.txt\n", "is in conflict"),
    ] {
        let repo = repo();
        if !signs {
            repo.git(&["config", "commit.gpgSign", "true"]);
            repo.git(&["config", "gpg.program", "false"]);
        }
        let (output, answer) = run(&repo, work, MINE, &ALLOW);
        assert!(answer.contains(why), "{work}: {answer}\n{output}");
        assert_eq!(repo.git(&["status", "--porcelain"]), status, "{work}");
    }
}

/// The sandbox makes `.git` read-only for what the agent starts, and not for squad.
#[cfg(target_os = "linux")]
#[test]
fn an_agent_in_the_sandbox_commits_with_squads_tool() {
    let mut repo = repo();
    repo.variables.insert("SQUAD_SANDBOX_LEVEL".into(), "full".into());
    let (output, answer) = run(&repo, "echo more >> mine.txt; git commit -qam mine || echo refused", MINE, &ALLOW);
    assert!(output.out.contains("Read-only file system"), "{output}");
    assert!(answer.starts_with("Committed as "), "{answer}\n{output}");
    assert_eq!(committed(&repo), ["M mine.txt"]);
}
