//! Runs in which some agents work in clones and others in the project.

use crate::outcome::{WAITING, meanwhile};
use crate::support::{Output, TestRepo};

const USER: &str = "../home/config/squad/config.toml";

fn repo(configuration: &str) -> TestRepo {
    let mut repo = TestRepo::with_small_team();
    let state = repo.home().join("state");
    repo.variables.insert("XDG_STATE_HOME".into(), state.display().to_string());
    repo.write(USER, configuration);
    repo
}

fn played(repo: &TestRepo, script: &str, more: &[&str]) -> Output {
    repo.rehearse(script, &[&["--permissions", "allow", "--json"], more].concat())
}

fn run_of(output: &Output) -> String {
    TestRepo::events(output).last().expect("an end")["run"].as_str().expect("an id").to_owned()
}

fn results(output: &Output) -> String {
    let events = TestRepo::events(output);
    let ran = events.iter().filter(|event| event["type"] == "tool.completed" && event["tool"] == "shell");
    ran.filter_map(|event| Some(event["result"].as_str()?.to_owned())).collect()
}

fn created(output: &Output) -> Vec<String> {
    let events = TestRepo::events(output);
    let created = events.iter().filter(|event| event["type"] == "clone.created");
    created.map(|event| event["agent"].as_str().expect("an agent").to_owned()).collect()
}

/// ada works in the project and bob, side by side and after it, in a clone; the engine fails bob the first time.
#[test]
fn work_in_the_project_is_seen_in_clones_and_only_the_clones_is_merged() {
    const SCRIPT: &str = r#"
[[turn]]
agent = "ada"
steps = [{ write = "api.txt", text = "endpoint\n" }, { say = "Built." }]
[[turn]]
agent = "bob"
steps = [{ run = "ls" }, { write = "plan.txt", text = "plan\n" }, { say = "Planned." }]
[[turn]]
agent = "bob"
steps = [{ fail = "the model is gone" }]
[[turn]]
agent = "bob"
steps = [{ run = "cat api.txt mine.txt plan.txt" }, { write = "tests.txt", text = "tests\n" }, { say = "Tested." }]
[[turn]]
agent = "coordinator"
steps = [{ say = "All is done." }]
"#;
    let repo = repo("[sessions]\nretry = 0\n[agents.tester]\nisolation = \"clone\"\n");
    repo.write("mine.txt", "mine\n");
    let output = played(&repo, SCRIPT, &["@ada and @bob build it, then @bob tests it"]);
    assert_eq!(output.code, 1, "{output}");
    assert_eq!(created(&output), ["bob"]);
    assert!(!results(&output).contains("api.txt"), "{output}");
    let run = run_of(&output);
    // Another process knows what the project's agents had done until then.
    let script = repo.root().with_file_name("script.toml").display().to_string();
    let resume = ["orchestrate", "--script", &script, "--resume", &run, "--permissions", "allow", "--json"];
    let resumed = repo.squad(&resume);
    assert_eq!(resumed.code, 0, "{resumed}");
    assert!(results(&resumed).contains("endpoint\nmine\nplan\n"), "{resumed}");
    assert!(repo.exists("api.txt") && !repo.exists("plan.txt") && !repo.exists("tests.txt"));
    let work = TestRepo::events(&resumed).last().expect("an end")["work"].clone();
    let changed = |agent: &str| -> String {
        let of_agent = work.as_array().expect("a list").iter().filter(|work| work["agent"] == agent);
        of_agent.map(|work| work["changed"].to_string()).collect()
    };
    assert!(changed("ada").contains("api.txt") && !changed("ada").contains("tests.txt"), "{work}");
    assert!(changed("bob").contains("tests.txt") && !changed("bob").contains("api.txt"), "{work}");
    let diff = repo.squad(&["diff", &run]);
    assert!(["+endpoint", "+plan", "+tests"].iter().all(|line| diff.out.contains(line)), "{diff}");

    let merged = repo.squad(&["merge", &run, "--yes"]);
    assert!(merged.code == 0 && merged.out.contains("merged bob into main"), "{merged}");
    assert_eq!(repo.git(&["status", "--porcelain"]), "?? api.txt\n?? mine.txt\n");
    assert_eq!(repo.git(&["show", "--format=", "--name-only", "-m", "--first-parent"]), "plan.txt\ntests.txt\n");
    // What is in the work tree can be taken back there; what was merged is git's to revert.
    let undo = |agent: &[&str]| repo.squad(&[&["undo", &run], agent, &["--yes"]].concat());
    let refused = undo(&["bob"]);
    assert!(refused.code == 2 && refused.err.contains("git revert"), "{refused}");
    let undone = undo(&[]);
    assert!(undone.code == 0 && !repo.exists("api.txt") && repo.exists("tests.txt"), "{undone}");
    repo.assert_sound();
}

/// The person writes, in the work tree, the file that bob writes in its clone.
#[test]
fn what_a_person_writes_beside_a_clone_is_no_agents() {
    let repo = repo("[agents.tester]\nisolation = \"clone\"\n");
    let wait = format!("cd {}; {WAITING}", repo.root().display());
    let steps =
        format!("{{ write = \"plan.txt\", text = \"plan\\n\" }}, {{ run = \"{wait}\" }}, {{ say = \"Done.\" }}");
    let script = format!("[[turn]]\nagent = \"bob\"\nsteps = [{steps}]\n");
    let arguments = ["--permissions", "allow", "@bob tests it"];
    let (output, code) = meanwhile(&repo, &script, &arguments, || repo.write("plan.txt", "mine\n"));
    assert_eq!(code, Some(0), "{output}");
    let run = run_of(&output);
    let diff: serde_json::Value = serde_json::from_str(&repo.squad(&["diff", &run, "--json"]).out).expect("JSON");
    let classes: Vec<String> =
        diff["files"].as_array().expect("files").iter().map(|file| file["class"].to_string()).collect();
    assert_eq!(classes, ["\"yours\"", "\"own\""], "{diff}");
    let undone = repo.squad(&["undo", &run, "--yes"]);
    assert!(undone.code == 2 && undone.err.contains("worked in clones"), "{undone}");
    assert_eq!(repo.read("plan.txt"), "mine\n");
}

#[test]
fn who_works_in_the_project_does_not_come_after_work_in_a_clone() {
    const SCRIPT: &str = "[[turn]]\nagent = \"ada\"\nsteps = [{ write = \"a.txt\", text = \"a\" }, { say = \"Done.\" }]\n\
        [[turn]]\nagent = \"bob\"\nsteps = [{ write = \"b.txt\", text = \"b\" }, { say = \"Done.\" }]\n\
        [[turn]]\nagent = \"coordinator\"\nsteps = [{ say = \"All is done.\" }]\n";
    const MESSAGE: &str = "@bob tests it, then @ada builds it";
    let tester = "[agents.bob]\nisolation = \"clone\"\n";
    let refused = played(&repo(tester), SCRIPT, &[MESSAGE]);
    assert!(refused.code == 3 && refused.out.contains("ada works in the project and after bob"), "{refused}");
    assert!(refused.out.contains("agents.ada.isolation"), "{refused}");
    // By flag, tier and agent; the first is for all.
    let full = "[isolation.tiers]\nfull = \"clone\"\n";
    let bad = "[agents.bob]\nisolation = \"cloned\"\n";
    for (configuration, flags, code, clones) in [
        (tester, &["--isolation", "project"][..], 0, &[][..]),
        (tester, &["--isolation", "clone"], 0, &["bob", "ada"]),
        (full, &[], 0, &[]),
        (full, &["--tier", "full"], 0, &["bob", "ada"]),
        ("[isolation]\nmode = \"clone\"\n[agents.ada]\nisolation = \"project\"\n", &[], 3, &[]),
        (bad, &[], 3, &[]),
        ("[isolation.tiers]\nhuge = \"clone\"\n", &[], 3, &[]),
    ] {
        let repo = repo(configuration);
        let output = played(&repo, SCRIPT, &[flags, &[MESSAGE]].concat());
        assert_eq!(output.code, code, "{configuration} {flags:?}: {output}");
        if code == 0 {
            assert_eq!(created(&output), clones, "{configuration} {flags:?}");
            assert_eq!(repo.exists("a.txt"), clones.is_empty());
        }
    }
    // A repository takes nobody out of the clone that the user wants for all.
    let repo = repo("[isolation]\nmode = \"clone\"\n");
    repo.write(".squad/config.toml", "[agents.ada]\nisolation = \"project\"\n");
    assert_eq!(created(&played(&repo, SCRIPT, &["@ada builds it"])), ["ada"]);
}

/// The reviewer and the reviser, both of the project, see what ada did in a clone; a colleague's work in the project is
/// reviewed with it.
#[test]
fn reviewers_and_revisers_follow_the_work_into_a_clone() {
    const SCRIPT: &str = r#"
[[turn]]
agent = "ada"
steps = [{ write = "login.txt", text = "weak\n" }, { say = "Built." }]
[[turn]]
agent = "rex"
steps = [{ run = "cat login.txt" }, { tool = "squad_verdict", args = { approved = false, reasons = "Weak." } }, { say = "So." }]
[[turn]]
agent = "bob"
steps = [{ run = "cat login.txt" }, { write = "login.txt", text = "strong\n" }, { say = "Revised." }]
[[turn]]
agent = "rex"
steps = [{ run = "cat login.txt" }, { tool = "squad_verdict", args = { approved = true, reasons = "Good." } }, { say = "So." }]
[[turn]]
agent = "coordinator"
steps = [{ say = '{"agents": ["bob"]}' }]
"#;
    let repo = repo("[agents.ada]\nisolation = \"clone\"\n");
    let output = played(&repo, SCRIPT, &["@ada build the login, @rex reviews it"]);
    assert!(results(&output).contains("weak\nweak\nstrong\n"), "{output}");
    let verdicts: Vec<String> = TestRepo::events(&output)
        .iter()
        .filter(|event| event["type"] == "review.verdict")
        .map(|event| event["verdict"].to_string())
        .collect();
    assert_eq!(verdicts, ["\"rejected\"", "\"approved\""], "{output}");
    assert!(!repo.exists("login.txt"));
    let merged = repo.squad(&["merge", &run_of(&output), "--yes"]);
    assert_eq!(merged.code, 0, "{merged}");
    assert_eq!(repo.read("login.txt"), "strong\n");
    repo.assert_sound();
}
