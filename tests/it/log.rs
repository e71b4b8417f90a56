use expect_test::expect;

use crate::support::TestRepo;

#[test]
fn runs_are_listed_and_one_is_shown_whole() {
    let repo = TestRepo::with_small_team();
    expect![[r#"
        --- stderr
        There are no runs yet.
        hint: squad orchestrate "what to do"
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["log"]).to_string());
    repo.squad(&["orchestrate", "--engine", "rehearsal", "--agent", "bob", "first"]);
    repo.squad(&["orchestrate", "--engine", "rehearsal", "--agent", "ada", "second"]);
    expect![[r#"
        Mon 5 Jan (UTC)
          09:00 ✓ 000013 completed  0:00    second
          09:00 ✓ 000001 completed  0:00    first
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["log"]).to_string());
    expect![[r#"
        --- stderr
        error: `20260105-0900` is ambiguous: `20260105-090020-000013` and `20260105-090000-000001`
        hint: use a longer prefix
        --- exit 2
    "#]]
    .assert_eq(&repo.squad(&["log", "20260105-0900"]).to_string());
    let output = repo.squad(&["log", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&output.out).expect("JSON");
    expect![[r#"{"run":"20260105-090020-000013","started":"2026-01-05T09:00:21Z","ended":"2026-01-05T09:00:39Z","message":"second","status":"completed","agents":{"ada":"completed"},"usage":{"input_tokens":0,"output_tokens":0,"cache_read_tokens":0,"cache_write_tokens":0,"reasoning_tokens":0,"billed":[],"cost_usd":null,"turns":1,"tool_calls":1,"refused":0,"seconds":0.12}}"#]].assert_eq(&value["runs"][0].to_string());
    let run = value["runs"][0]["run"].as_str().expect("an id").to_owned();
    expect![[r#"
        run 20260105-090020-000013
        09:00:21  squad        run.started          second
        09:00:23  squad        engine.started       rehearsal 0.1.0
        09:00:24  squad        route.planned        ada tier standard
        09:00:25  squad        step.started
        09:00:26  squad        snapshot.taken
        09:00:27  ada          session.created      squad-ada-20260105-090020-000013 on claude-sonnet-4.5
        09:00:30  ada          tool.completed       read .squad/team.md
        09:00:33  ada          agent.message        (rehearsal) As Backend Dev I would now work on: second
        09:00:34  ada          session.idle         squad-ada-20260105-090020-000013
        09:00:35  ada          session.destroyed    squad-ada-20260105-090020-000013
        09:00:36  ada          agent.completed      (rehearsal) As Backend Dev I would now work on: second (0.1 s, 0 in, 0 out)
        09:00:37  squad        step.completed
        09:00:38  squad        run.answer           (rehearsal) As Backend Dev I would now work on: second
        09:00:39  squad        run.completed        completed: 0.1 s, 0 in, 0 out
        --- exit 0
    "#]].assert_eq(&repo.squad(&["log", &run, "--events"]).to_string());
    expect![[r#"
        second
        Mon 5 Jan 2026 09:00 (UTC), on main at 1bb3748, rehearsal 0.1.0
        Plan  1 ada   tier standard   command line

         0:09   ada  read .squad/team.md

        (rehearsal) As Backend Dev I would now work on: second

        ✓ completed in 0:00; run 000013
          ada    completed   no change
          next   squad log 000013   what happened
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["log", &run]).to_string());
    assert_eq!(repo.squad(&["log", "--agent", "rex"]).err, "No run matches.\n");
    assert_eq!(repo.squad(&["log", "--limit", "1", "--json"]).out.matches("\"message\"").count(), 1);
}

#[test]
fn of_a_run_without_an_end_and_without_a_lease_here_nothing_is_known() {
    let repo = TestRepo::with_small_team();
    repo.squad(&["orchestrate", "--engine", "rehearsal", "--agent", "bob", "first"]);
    // As in a clone of a repository in which it goes on, or was killed: the last commit never came about.
    repo.git(&["update-ref", "refs/squad/log", "refs/squad/log~1"]);
    let value: serde_json::Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
    let run = &value["runs"][0];
    assert_eq!(
        (run["status"].as_str(), run["ended"].is_null(), run["message"].as_str()),
        (Some("unknown"), true, Some("first"))
    );
}

/// Puts a file into the ledger as another program might.
fn put(repo: &TestRepo, path: &str, text: &str) {
    repo.write(".git/entry", text);
    let blob = repo.git(&["hash-object", "-w", ".git/entry"]).trim().to_owned();
    repo.git(&["read-tree", "--index-output=.git/other", "refs/squad/log"]);
    let with_index = |arguments: &[&str]| {
        let mut git = repo.command("git", &repo.root());
        let done =
            git.env("GIT_INDEX_FILE", repo.root().join(".git/other")).args(arguments).output().expect("git runs");
        assert!(done.status.success(), "git {arguments:?}");
        String::from_utf8(done.stdout).expect("UTF-8").trim().to_owned()
    };
    with_index(&["update-index", "--add", "--cacheinfo", &format!("100644,{blob},{path}")]);
    let tree = with_index(&["write-tree"]);
    let commit = repo.git(&["commit-tree", &tree, "-p", "refs/squad/log", "-m", "another"]);
    repo.git(&["update-ref", "refs/squad/log", commit.trim()]);
}

#[test]
fn an_entry_with_an_odd_run_disables_nothing() {
    let repo = TestRepo::with_small_team();
    repo.squad(&["orchestrate", "--engine", "rehearsal", "--agent", "bob", "first"]);
    let entry = "---\nsquad: 1\nid: \"i\"\nat: \"2026-01-05T09:00:00Z\"\nkind: \"run.started\"\nrun: \"123\u{e9}5678\"\nactor: \"squad\"\n\
        payload: {\"engine\":\"x\",\"version\":\"1\",\"branch\":null,\"commit\":null}\n---\nodd\n";
    put(&repo, "log/2026/01/05/f19b8d1f-6c00-7000-8000-000000000001-run.started.md", entry);
    let output = repo.squad(&["log"]);
    assert!(output.out.contains("odd") && output.out.contains("first"), "{output}");
    assert_eq!(repo.squad(&["log", "123"]).code, 0);
}

#[test]
fn entries_of_a_newer_squad_are_shown_as_unknown() {
    let repo = TestRepo::with_small_team();
    repo.squad(&["orchestrate", "--engine", "rehearsal", "--agent", "bob", "first"]);
    let value: serde_json::Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
    let run = value["runs"][0]["run"].as_str().expect("an id").to_owned();
    let id = "f19b8d1f-6c00-7000-8000-000000000001";
    put(&repo, &format!("log/2026/01/05/{id}-run.paused.md"), &format!("---\nsquad: 9\nrun: \"{run}\"\n---\n"));
    let output = repo.squad(&["log", &run]);
    assert!(output.out.contains("entry of a newer squad (version 9)"), "{output}");
    // And appending keeps it.
    repo.squad(&["orchestrate", "--engine", "rehearsal", "--agent", "bob", "second"]);
    assert!(repo.git(&["ls-tree", "-r", "--name-only", "refs/squad/log"]).contains("run.paused"));
}

#[test]
fn status_says_what_is_going_on() {
    let repo = TestRepo::with_small_team();
    expect![[r#"
        repo, main at 1bb374 · 5 members · copilot · 0 ledger entries
        ! engine     copilot is not installed   squad engines
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["status"]).to_string());
    repo.squad(&["orchestrate", "--engine", "rehearsal", "--agent", "bob", "first"]);
    expect![[r#"
        {"repository":"REPO","branch":"main","team":{"folder":".squad","members":5},"watch":null,"runs_live":[],"sessions":[],"ledger":{"entries":15,"unsynced":15},"engine":"copilot","engine_missing":"copilot","left_by_runs":{"bytes":0,"complete":true}}
        --- exit 0
    "#]].assert_eq(&repo.squad(&["status", "--json"]).to_string());
}

#[test]
fn teams_of_one_repository_keep_their_ledgers_apart() {
    let repo = TestRepo::with_small_team();
    repo.write("packages/a/.squad/team.md", "| Name | Role |\n|---|---|\n| Zoe | Dev |\n");
    let inner = repo.root().join("packages/a");
    let output = repo.squad_in(&inner, &["orchestrate", "--engine", "rehearsal", "--agent", "zoe", "inside"]);
    assert_eq!(output.code, 0, "{output}");
    assert_eq!(repo.squad(&["log"]).out, "");
    assert!(repo.squad_in(&inner, &["log"]).out.contains("inside"));
    assert!(repo.git(&["ls-tree", "-r", "--name-only", "refs/squad/log"]).starts_with("teams/packages%2Fa/log/2026/"));
}

#[test]
fn runs_and_entries_are_chosen_by_agent_time_and_number() {
    let repo = TestRepo::with_small_team();
    for agent in ["bob", "ada", "bob"] {
        repo.squad(&["orchestrate", "--engine", "rehearsal", "--agent", agent, agent]);
    }
    let runs = |arguments: &[&str]| {
        let output = repo.squad(&[&["log", "--json"], arguments].concat());
        let value: serde_json::Value = serde_json::from_str(&output.out).expect("JSON");
        let runs = value["runs"].as_array().expect("runs").clone();
        runs.iter().map(|run| run["started"].as_str().expect("a time")[11..19].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(runs(&[]), ["09:00:41", "09:00:21", "09:00:01"]);
    assert_eq!(runs(&["--agent", "Bob"]), ["09:00:41", "09:00:01"]);
    assert_eq!(runs(&["--agent", "bob", "--limit=1"]), ["09:00:41"]);
    assert!(runs(&["--agent", "rex"]).is_empty());
    assert_eq!(runs(&["--since", "2026-01-05T09:00:21Z"]), ["09:00:41", "09:00:21"]);
    assert_eq!(runs(&["--since", "2026-01-05"]).len(), 3);
    assert_eq!(runs(&["--since", "1h"]).len(), 3);
    assert!(runs(&["--since", "2026-01-06"]).is_empty());
    expect![[r#"
        --- stderr
        error: `soon` is not a time
        hint: write 2h, 3d, yesterday, 2026-01-05 or 2026-01-05T09:00:00Z
        --- exit 2
    "#]]
    .assert_eq(&repo.squad(&["log", "--since", "soon"]).to_string());
    expect![[r#"
        --- stderr
        error: there is no run `20260105-090012`
        hint: `squad log` shows the newest runs
        --- exit 2
    "#]]
    .assert_eq(
        &repo
            .squad(&["log", "20260105-090012", "--agent", "ada", "--since", "2026-01-05T09:00:19Z", "--limit", "2"])
            .to_string(),
    );
}

/// With --since, everything from then on, of all runs; where a run is over, following it ends at once.
#[test]
fn following_begins_with_what_is_there() {
    let repo = TestRepo::with_small_team();
    repo.squad(&["orchestrate", "--engine", "rehearsal", "--agent", "bob", "first"]);
    let runs = repo.squad(&["log", "--json"]).out;
    let runs: serde_json::Value = serde_json::from_str(&runs).expect("JSON");
    let run = runs["runs"][0]["run"].as_str().expect("an id");
    let followed = repo.squad(&["log", "--follow", run]);
    assert_eq!(followed.to_string(), repo.squad(&["log", run]).to_string());
    let events = repo.squad(&["log", run, "--events"]);
    assert_eq!(repo.squad(&["log", "--follow", "--events", run]).to_string(), events.to_string());
    assert_eq!(repo.squad(&["log", "--follow", "--json", run]).out, repo.squad(&["log", "--json", run]).out);
    assert_eq!(repo.squad(&["log", "--follow", "--limit", "3"]).code, 2);
}

/// Greetings are folded away, what changed is counted, and an undone run says so.
#[test]
fn the_list_has_days_sizes_and_no_greetings() {
    let repo = TestRepo::with_small_team();
    let script =
        "[[turn]]\nagent = \"ada\"\nsteps = [{ write = \"a.txt\", text = \"x\\ny\\n\" }, { say = \"Done.\" }]\n";
    repo.rehearse(script, &["--permissions", "allow", "--agent", "ada", "Write two lines"]);
    repo.squad(&["orchestrate", "--engine", "rehearsal", "hello"]);
    repo.pass(86_400);
    repo.rehearse(script, &["--agent", "ada", "Write them again"]);
    expect![[r#"
        Tue 6 Jan (UTC)
          09:00 ! 000018 stopped    0:00         Write them again
        Mon 5 Jan
          09:00 ✓ 000001 completed  0:00  +2 -0  Write two lines
                1 greeting or question: squad log --all
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["log"]).to_string());
    assert!(repo.squad(&["log", "--all"]).out.contains("hello"));
    let newest = repo.squad(&["log", "--since", "today"]);
    assert!(newest.out.contains("them again") && !newest.out.contains("two lines"), "{newest}");
}

/// Messages, writes, commands with the end of their output, refusals, decisions and verdicts, in
/// the order of the events; then answer and card.
#[test]
fn a_run_is_told_as_a_story() {
    let repo = TestRepo::with_small_team();
    let script = r#"
        [[turn]]
        agent = "ada"
        steps = [
          { say = "I look first.\n\nThen I write." },
          { write = "src/ports.toml", text = "a\nb\n" },
          { run = "echo one; echo two >&2; exit 3" }, { run = "true" },
          { write = "../out.txt", text = "x" },
          { tool = "squad_log_decision", args = { title = "Ports are shared", what = "One.", why = "Less." } },
          { say = "Done." },
        ]
        [[turn]]
        agent = "rex"
        steps = [{ say = "I have read it." }, { tool = "squad_verdict", args = { approved = true, reasons = "It is short." } }, { say = "Good." }]
    "#;
    let output = repo.rehearse(script, &["--permissions", "allow", "Add the backend login ports"]);
    assert_eq!(output.code, 0, "{output}");
    let runs: serde_json::Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
    let run = runs["runs"][0]["run"].as_str().expect("an id");
    let story = repo.squad(&["log", run.rsplit('-').next().expect("a part")]);
    // Who reads the clock first differs.
    let times = regex::Regex::new(r"\b0:\d\d\b").expect("a pattern");
    expect![[r#"
        Add the backend login ports
        Mon 5 Jan 2026 09:00 (UTC), on main at 1bb3748, rehearsal 0.1.0
        Plan  1 ada   2 rex   tier standard   .squad/routing.md:7, .squad/team.md:5, .squad/routing.md:5

         0:__   ada  I look first.

                     Then I write.
         0:__ ✓ ada  write src/ports.toml
         0:__ ✗ ada  $ echo one; echo two >&2; exit 3    exit 3
                     one
                     two
         0:__ ✓ ada  $ true
         0:__ ✗ ada  write ../out.txt    failed: `../out.txt` is outside of the project
         0:__ ◆ ada  decision 000000: Ports are shared
         0:__   rex  was told of 1 decision
         0:__   rex  I have read it.
         0:__   rex  Good.
         0:__ ✓ rex  approved: It is short.

        Done.

        ✓ completed in 0:__; run 000001
          ada        completed   src/ports.toml +2 -0   1 command passed, 1 failed
          rex        approved    no change
          checked    unverified: no check ran after the last change
          decision   000000 landed on main: Ports are shared
          next       squad diff 000001   the files are yours to commit
                     squad undo 000001   take them back
        --- exit 0
    "#]]
    .assert_eq(&times.replace_all(&story.to_string(), "0:__"));
    // The same card as when the run ended.
    let card = &output.err[output.err.find("✓ completed").expect("a card")..];
    assert!(story.out.ends_with(card), "{output}");
}

/// The card, the story and the diff, in a file that nothing else is written over.
#[test]
fn a_run_is_written_as_a_page() {
    let repo = TestRepo::with_small_team();
    let script = r#"
        [[turn]]
        agent = "ada"
        steps = [
            { write = "src/ports.toml", text = "<b>8080</b>\n" },
            { run = "false" },
            { say = "One port, **shared**.\n\n<script>alert(1)</script>" },
        ]
    "#;
    assert_eq!(repo.rehearse(script, &["--permissions", "allow", "--agent", "ada", "Share <ports>"]).code, 0);
    let output = repo.squad(&["log", "000001", "--html", "run.html"]);
    assert_eq!((output.code, &*output.err), (0, "Wrote run.html.\n"), "{output}");
    let page = repo.read("run.html");
    for part in [
        "<h1>Share &lt;ports&gt;</h1>",
        "default-src 'none'; style-src 'unsafe-inline'",
        "<strong>shared</strong>",
        "&lt;script&gt;",
        "write src/ports.toml",
        "<rect class=failed",
        "<b class=good>+&lt;b&gt;8080&lt;/b&gt;</b>",
        "command line",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("<script") && !page.contains("src="), "{page}");

    repo.write("mine.html", "mine");
    let refused = repo.squad(&["log", "000001", "--html", "mine.html"]);
    assert!(refused.code == 2 && refused.err.contains("already exists"), "{refused}");
    assert_eq!(repo.read("mine.html"), "mine");
    let refused = repo.squad(&["log", "000001", "--html", "src"]);
    assert!(refused.code == 2 && refused.err.contains("not a regular file"), "{refused}");
    let refused = repo.squad(&["log", "000001", "--html", "none/run.html"]);
    assert!(refused.code == 1 && refused.err.contains("there is no folder for it"), "{refused}");
    assert_eq!(repo.squad(&["log", "000001", "--html", "mine.html", "--force"]).code, 0);
    assert_eq!(repo.read("mine.html"), page);
    assert_eq!(repo.squad(&["log", "--html", "run.html"]).code, 2);
}
