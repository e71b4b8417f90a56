use expect_test::expect;
use serde_json::Value;

use crate::support::TestRepo;

/// Ada writes a file and decides something; rex reviews.
const WORK: &str = r#"
[[turn]]
agent = "ada"
steps = [
  { write = "src/api.txt", text = "pub fn health() -> Response {\n    Response::json(200, STATUS)\n}\n" },
  { tool = "squad_log_decision", args = { title = "Errors are JSON", what = "One shape.", why = "Clients parse it." } },
  { say = "The endpoint is there." },
]
[[turn]]
agent = "rex"
steps = [{ say = "Good.\n\nVERDICT: approved" }]
"#;

fn commit(repo: &TestRepo, message: &str) {
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message", message]);
}

fn why(repo: &TestRepo, subject: &str) -> Value {
    serde_json::from_str(&repo.squad(&["why", subject, "--json"]).out).expect("JSON")
}

#[test]
fn a_line_has_a_task_an_agent_and_a_review() {
    let mut repo = TestRepo::with_small_team();
    let output = repo.rehearse(WORK, &["--permissions", "allow", "Rework the login"]);
    assert_eq!(output.code, 0, "{output}");
    expect![[r#"
        src/api.txt:2  Response::json(200, STATUS)
        ✓ agent     ada, in run 000001, today, completed
          task      Rework the login
        ✓ review    rex: approved
        ◆ decided   000000 Errors are JSON
          next      squad log 000001   what happened there
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["why", "src/api.txt:2"]).to_string());
    repo.set_gits_clock();
    repo.git(&["switch", "--quiet", "--create", "feature"]);
    commit(&repo, "endpoint");
    repo.git(&["switch", "--quiet", "main"]);
    repo.git(&["merge", "--quiet", "--squash", "feature"]);
    repo.git(&["commit", "--quiet", "--message", "squashed"]);
    repo.git(&["branch", "--quiet", "-D", "feature"]);
    let answer = why(&repo, "src/api.txt:1");
    assert_eq!((&answer["commit"]["subject"], &answer["origins"][0]["agent"]), (&"squashed".into(), &"ada".into()));
    let id = answer["origins"][0]["decisions"][0]["id"].as_str().expect("an id").to_owned();
    expect![[r#"
        .squad/decisions/2026/01/05-errors-are-json-00000000000b.md
        ◆ decision  000000 Errors are JSON
        ✓ agent     ada, in run 000001, today, completed
          task      Rework the login
        ✓ review    rex: approved
          next      squad log 000001   what happened there
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["why", &id[..10]]).to_string());
    expect![[r#"
        src/api.txt:3  }
          commit    cbc3cd700e squashed (Ann, today)
        ! unknown   the line is too common to tell who wrote it; src/api.txt was written by ada in run 000001
        ✓ review    rex: approved
        --- exit 1
    "#]]
    .assert_eq(&repo.squad(&["why", "src/api.txt:3"]).to_string());
    let file = answer["path"].as_str().expect("a path");
    assert_eq!(why(&repo, file)["origins"].as_array().map(Vec::len), Some(1));
    repo.git(&["mv", "src/api.txt", "http.txt"]);
    commit(&repo, "renamed");
    let answer = why(&repo, "http.txt:1");
    assert_eq!((&answer["commit"]["subject"], &answer["origins"][0]["agent"]), (&"squashed".into(), &"ada".into()));
}

/// Two of one run, and one of two runs; who writes it twice in a run is one.
#[test]
fn a_file_has_each_author_of_each_run_once() {
    let repo = TestRepo::with_small_team();
    let first = "pub fn health() -> Response {";
    let turn = |agent: &str, texts: &[String]| {
        let write = |text: &String| format!("{{ write = \"src/api.txt\", text = {text:?} }}");
        let steps: Vec<String> = texts.iter().map(write).collect();
        format!("[[turn]]\nagent = \"{agent}\"\nsteps = [{}, {{ say = \"Done.\" }}]\n", steps.join(", "))
    };
    let ada = turn("ada", &[format!("{first}\n"), format!("{first}\n    Response::json(200, STATUS)\n")]);
    let bob = turn("bob", &[format!("{first}\n    Response::json(200, STATUS)\n    // and_then_bob_wrote_this\n")]);
    let steps = "First @ada adds the endpoint, then @bob extends it";
    let authors = || {
        let answer = why(&repo, "src/api.txt");
        let origins = answer["origins"].as_array().expect("a list").iter();
        let mut authors: Vec<String> =
            origins.map(|origin| origin["agent"].as_str().expect("one").to_owned()).collect();
        authors.sort();
        authors
    };
    let output = repo.rehearse(&(ada + &bob), &["--permissions", "allow", steps]);
    assert_eq!((output.code, authors()), (0, vec!["ada".to_owned(), "bob".to_owned()]), "{output}");
    let again =
        turn("ada", &[format!("{first}\n    Response::json(200, STATUS)\n    // once_more_from_ada_herself\n")]);
    let output = repo.rehearse(&again, &["--permissions", "allow", "@ada polish it"]);
    assert_eq!((output.code, authors().len()), (0, 2), "bob's line is gone, ada has two runs: {output}");
    assert_eq!(authors(), ["ada", "ada"]);
}

#[test]
fn nobody_is_blamed_without_proof() {
    let repo = TestRepo::with_small_team();
    repo.rehearse(WORK, &["--permissions", "allow", "Rework the login"]);
    repo.write(
        "src/api.txt",
        "// by hand, long before anybody\npub fn health() -> Response {\n    Response::json(200, STATUS)\n}\n",
    );
    repo.write("src/other.txt", "pub fn health() -> Response {\n    Response::json(200, STATUS)\n}\n");
    for (subject, reason) in [
        ("src/api.txt:1", "no run is known to have written it"),
        ("src/api.txt:4", "too common to tell"),
        ("src/other.txt:2", "no run is known"),
        ("README.md:1", "neither a file"),
        ("src/api.txt:9", "has 4 lines"),
        ("src/api.txt:0", "names no line"),
        ("../outside:1", "neither a file"),
    ] {
        let output = repo.squad(&["why", subject]);
        let told = format!("{}{}", output.out, output.err);
        assert!(output.code != 0 && told.contains(reason), "{subject}: {output}");
    }
    // A second run that writes the same line makes it anybody's.
    repo.write("src/api.txt", "");
    repo.rehearse(WORK, &["--permissions", "allow", "Rework the login again"]);
    assert!(why(&repo, "src/api.txt:1")["unknown"].as_str().is_some_and(|why| why.contains("several runs")));
    // In a clone without the ledger nothing is known at all.
    let (clone, root) = (repo.root().join("../clone"), repo.root().display().to_string());
    commit(&repo, "for a clone");
    repo.git(&["clone", "--quiet", &root, &clone.display().to_string()]);
    let alone = repo.squad_in(&clone, &["why", "src/api.txt:2"]);
    assert!(alone.code == 1 && alone.out.contains("this clone has no ledger"), "{alone}");
}

/// What looks like a run's own and is not.
#[test]
fn look_alikes_are_unknown() {
    let repo = TestRepo::with_small_team();
    let work = "[[turn]]\nagent = \"ada\"\nsteps = [{ write = \"src/a.txt\", text = \"use std::collections::BTreeMap;\\n\\nfn only_here_and_now() {}\\n\" }, { say = \"Done.\" }]\n";
    repo.write("src/other.txt", "use std::collections::BTreeMap;\n");
    repo.git(&["add", "--all"]);
    let output = repo.rehearse(work, &["--permissions", "allow", "--agent", "ada", "Task"]);
    assert_eq!(output.code, 0, "{output}");
    let unknown = |subject: &str| why(&repo, subject)["unknown"].as_str().unwrap_or_default().to_owned();
    assert_eq!(unknown("src/a.txt:3"), "");
    assert!(unknown("src/a.txt:1").contains("other files have this line too"), "{}", unknown("src/a.txt:1"));
    // A copy by hand: which of the two is the agent's?
    repo.write("src/a.txt", "fn only_here_and_now() {}\n\nfn only_here_and_now() {}\n");
    assert!(unknown("src/a.txt:1").contains("is in the file 2 times"), "{}", unknown("src/a.txt:1"));
    assert_eq!(unknown("src/a.txt"), "");
    // Nothing that the run wrote is left.
    repo.write("src/a.txt", "by hand, all of it\n");
    assert!(unknown("src/a.txt").contains("no run is known"), "{}", unknown("src/a.txt"));
}

#[test]
fn a_decision_file_proves_nothing_by_itself() {
    let repo = TestRepo::with_small_team();
    repo.rehearse(WORK, &["--permissions", "allow", "Rework the login"]);
    let path = ".squad/decisions/2026/01/05-errors-are-json-00000000000b.md";
    let text = repo.read(path);
    // Copied as a template: the run is named still.
    let copy = text.replace("00000000000b", "feedfeedfeed").replace("Errors are JSON", "Errors are XML");
    repo.write(".squad/decisions/2026/01/05-errors-are-xml.md", &copy);
    // And edited by hand, its author too.
    repo.write(path, &text.replace("ada", "bob").replace("One shape.", "Two shapes."));
    commit(&repo, "by hand");
    let copied = why(&repo, "feedfeedfeed");
    assert!(copied["unknown"].as_str().is_some_and(|why| why.contains("has no such decision")), "{copied}");
    assert_eq!(why(&repo, "00000000000b")["origins"][0]["agent"], "ada");
    let line = |text: &str| repo.read(path).lines().position(|line| line.contains(text)).map_or(0, |at| at + 1);
    let edited = why(&repo, &format!("{path}:{}", line("Two shapes.")));
    assert!(
        edited["unknown"].as_str().is_some_and(|why| why.contains("added after the decision was made")),
        "{edited}"
    );
    let kept = why(&repo, &format!("{path}:{}", line("Clients parse it.")));
    assert_eq!(kept["origins"][0]["agent"], "ada", "{kept}");
}

#[test]
fn what_a_person_decided_is_theirs_and_no_runs() {
    let repo = TestRepo::with_small_team();
    repo.squad(&["decisions", "add", "Keep the old paths"]);
    let folder = ".squad/decisions/2026/01/";
    let files = repo.git(&["ls-files", folder]);
    for subject in [files.trim(), &format!("{}:6", files.trim())] {
        let answer = why(&repo, subject);
        assert_eq!(answer["unknown"], "it was not decided in a run, by Ann", "{answer}");
        assert_eq!(answer["decision"]["title"], "Keep the old paths", "{answer}");
    }
}

/// Written by an agent and by hand × deleted in a commit, not committed, with its folder, and not checked out.
#[test]
fn a_file_that_is_gone_is_told_from_one_that_never_was() {
    for agents in [true, false] {
        for how in ["commit", "uncommitted", "folder", "sparse"] {
            let repo = TestRepo::with_small_team();
            if agents {
                let output = repo.rehearse(WORK, &["--permissions", "allow", "Rework the login"]);
                assert_eq!(output.code, 0, "{output}");
            } else {
                repo.write("src/api.txt", "by hand\n");
            }
            repo.write("src/other.txt", "x\n");
            commit(&repo, "endpoint");
            match how {
                "folder" => drop(repo.git(&["rm", "--quiet", "-r", "src"])),
                "sparse" => drop(repo.git(&["sparse-checkout", "set", "--no-cone", "/.squad/", "/src/other.txt"])),
                _ => drop(repo.git(&["rm", "--quiet", "src/api.txt"])),
            }
            let is_committed = matches!(how, "commit" | "folder");
            if is_committed {
                repo.git(&["commit", "--quiet", "--message=drop it"]);
            }
            for subject in ["src/api.txt", "src/api.txt:2"] {
                let answer = why(&repo, subject);
                assert_eq!((&answer["absent"], &answer["path"]), (&true.into(), &"src/api.txt".into()), "{how}");
                let by = if is_committed { "drop it".into() } else { Value::Null };
                assert_eq!((&answer["commit"]["subject"], answer["unknown"].is_null()), (&by, agents), "{how}");
                let output = repo.squad(&["why", subject]);
                let state = if is_committed { "deleted" } else { "not in the work tree" };
                assert!(output.out.starts_with(&format!("src/api.txt  {state}\n")), "{output}");
                assert_eq!(output.code, u8::from(!agents), "{output}");
                assert_eq!(output.out.contains("ada, in run"), agents, "{output}");
            }
            for never in ["src/never.txt", "never/api.txt", ".squad", "../x"] {
                assert_eq!(repo.squad(&["why", never]).code, 2, "{never}");
            }
        }
    }
}

/// A line that a run wrote × before the commit that has it, and after it.
#[test]
fn who_wrote_a_committed_line_again_is_not_its_author() {
    for is_before in [true, false] {
        let mut repo = TestRepo::with_small_team();
        let line = "fn health_of_the_service() {}";
        let run = |repo: &TestRepo| {
            // It is new to the file, whatever was there before.
            let write = |text: &str| format!("{{ write = \"api.rs\", text = \"{text}\\n\" }}");
            let steps = [write("other"), write(line), "{ say = \"Done.\" }".to_owned()].join(", ");
            let script = format!("[[turn]]\nagent = \"ada\"\nsteps = [{steps}]\n");
            let output = repo.rehearse(&script, &["--permissions", "allow", "--agent", "ada", "Add it"]);
            assert!(repo.read("api.rs").contains(line), "{output}");
        };
        if is_before {
            run(&repo);
        }
        repo.pass(60);
        repo.set_gits_clock();
        repo.write("api.rs", &format!("{line}\n"));
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "--quiet", "--message=service"]);
        repo.pass(60);
        if !is_before {
            run(&repo);
        }
        let why = repo.squad(&["why", "api.rs:1"]);
        assert_eq!(why.out.contains("agent     ada"), is_before, "{why}");
        assert_eq!(why.out.contains("no run is known to have written it"), !is_before, "{why}");
    }
}

/// How often a run wrote a line × how often it is in the file.
#[test]
fn a_line_that_is_there_more_often_than_it_was_written_has_no_author() {
    let line = "fn health_of_the_service() {}";
    let text = |count: usize| format!("{}\n", vec![line; count].join("\nelse\n"));
    for (written, there) in [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3)] {
        let repo = TestRepo::with_small_team();
        let steps = format!("{{ write = \"api.rs\", text = {:?} }}, {{ say = \"Done.\" }}", text(written));
        let script = format!("[[turn]]\nagent = \"ada\"\nsteps = [{steps}]\n");
        let output = repo.rehearse(&script, &["--permissions", "allow", "--agent", "ada", "Add it"]);
        assert_eq!(output.code, 0, "{output}");
        repo.write("api.rs", &text(there));
        let why = repo.squad(&["why", "api.rs:1"]);
        let said = format!("the line is in the file {there} times, and no run wrote it that often");
        let is_known = there <= written;
        assert_eq!((why.out.contains("agent     ada"), why.out.contains(&said)), (is_known, !is_known), "{why}");
    }
}

/// To a file, to a folder and to nothing × as the agent left it, and led elsewhere by hand.
#[cfg(unix)]
#[test]
fn a_link_is_a_file_of_its_own() {
    for target in ["before.txt", ".squad", "nowhere"] {
        let repo = TestRepo::with_small_team();
        repo.write("before.txt", "fn by_the_person() {}\n");
        let script = format!(
            "[[turn]]\nagent = \"ada\"\nsteps = [{{ run = \"ln -s {target} link\" }}, {{ say = \"Done.\" }}]\n"
        );
        let output = repo.rehearse(&script, &["--permissions", "allow", "--agent", "ada", "Add it"]);
        let answer = why(&repo, "link");
        assert_eq!(answer["origins"][0]["agent"], "ada", "{target}: {answer} {output}");
        assert_eq!(why(&repo, "link:1")["text"], target);
        let link = repo.root().join("link");
        std::fs::remove_file(&link).expect("a link");
        std::os::unix::fs::symlink("elsewhere", &link).expect("a link");
        let answer = why(&repo, "link");
        assert_eq!(answer["unknown"], "no run is known to have written it", "{target}: {answer}");
    }
}
