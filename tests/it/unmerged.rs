//! A merge that was not finished: half of it is nobody's team.

use expect_test::expect;

use crate::support::TestRepo;

/// Two sides of one file, merged by git as far as it can.
fn unmerged(repo: &TestRepo, path: &str, [base, ours, theirs]: [&str; 3], style: &str) {
    let commit = |text: &str, message: &str| {
        repo.write(path, text);
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "--quiet", "--allow-empty", "--message", message]);
    };
    commit(base, "base");
    repo.git(&["switch", "--quiet", "--create", "topic"]);
    commit(theirs, "theirs");
    repo.git(&["switch", "--quiet", "main"]);
    commit(ours, "ours");
    let style = format!("merge.conflictStyle={style}");
    let merge = repo.command("git", &repo.root()).args(["-c", &style, "merge", "--quiet", "topic"]).output();
    assert!(!merge.expect("git runs").status.success(), "the sides are of one mind");
}

const ROSTER: [&str; 3] = [
    "# Small\n\n| Name | Role |\n|---|---|\n| Ada | Backend Dev |\n| Rex | Reviewer |\n",
    "# Small\n\n| Name | Role |\n|---|---|\n| Ada | Backend Dev |\n| Rex | Lead Reviewer |\n",
    "# Small\n\n| Name | Role |\n|---|---|\n| Ada | Backend Dev |\n| Rex | Judge |\n",
];

#[test]
fn nobody_works_for_half_a_team() {
    for style in ["merge", "diff3"] {
        let repo = TestRepo::with_small_team();
        unmerged(&repo, ".squad/team.md", ROSTER, style);
        expect![[r#"
            --- stderr
            error: .squad/team.md:6: a merge was not finished here: the file holds conflict markers
            hint: resolve the conflict and delete the markers; `git diff --check` lists them
            --- exit 3
        "#]]
        .assert_eq(&repo.squad(&["orchestrate", "--engine", "rehearsal", "Add an endpoint"]).to_string());
    }
}

#[test]
fn every_file_that_is_read_counts_and_every_command_says_so() {
    let (marks, windows) =
        ("<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> topic\n", "<<<<<<< HEAD\r\n=======\r\n>>>>>>> x\r\n");
    let own = "---\nid: \"0a\"\n---\n# Tar\n\n";
    for (path, text, line) in [
        (".squad/team.md", format!("{}{marks}", ROSTER[0]), 7),
        (".squad/routing.md", format!("| Work Type | Route To |\r\n|---|---|\r\n{windows}| API | Ada |\r\n"), 3),
        (".squad/agents/ada/charter.md", format!("# Ada\n\nTitle\n=======\n\n{marks}"), 6),
        (".squad/agents/ada/history.md", marks.to_owned(), 1),
        (".squad/decisions.md", format!("# Decisions\n\n### 2026-01-05: Tar\n{marks}"), 4),
        (".squad/decisions/inbox/note.md", format!("# Tar\n{marks}"), 2),
        (".squad/decisions/2026/01/05-tar-0a.md", format!("{own}{marks}"), 6),
        (".squad/skills/a/SKILL.md", format!("# A\n{marks}"), 2),
        (".squad/config.toml", format!("[models]\n{marks}"), 2),
        (".squad/config.json", format!("{{\n{marks}}}\n"), 2),
    ] {
        let repo = TestRepo::with_small_team();
        repo.write(path, &text);
        let place = format!("{path}:{line}");
        for command in [
            &["route", "Add an endpoint"][..],
            &["orchestrate", "--engine", "rehearsal", "Add an endpoint"],
            &["orchestrate", "--engine", "rehearsal", "--dry-run", "Add an endpoint"],
            &["agents", "show", "ada"],
            &["decisions", "list"],
            &["decisions", "add", "Use tar"],
            &["decisions", "import", "--all"],
            &["history", "land"],
            &["why", path],
        ] {
            // Who adds a decision does not go by the others, and does not read them.
            if command[..2] == ["decisions", "add"] && path.contains("/decisions/2026/") {
                continue;
            }
            let output = repo.squad(&[command, &["--json"]].concat());
            let error: serde_json::Value = serde_json::from_str(&output.out).expect("JSON");
            assert!(output.code == 3 && error["error"]["source"] == place.as_str(), "{path} {command:?}: {output}");
        }
        let told = format!("{place}: a merge was not finished here");
        for (command, code) in [("agents", 3), ("status", 3), ("doctor", 1)] {
            let output = repo.squad(&[command]);
            let all = format!("{}{}", output.out, output.err);
            assert!(output.code == code && all.matches(&told).count() == 1, "{path} {command}: {output}");
        }
    }
}

#[test]
fn what_is_left_of_a_conflict_stops_the_same_commands() {
    const COMMANDS: [&[&str]; 4] = [
        &["agents"],
        &["status"],
        &["orchestrate", "--engine", "rehearsal", "Add an endpoint"],
        &["route", "Add an endpoint"],
    ];
    let table = |mark: &str| format!("| Name | Role |\n|---|---|\n| Ada | Backend Dev |\n{mark}\n| Rex | Reviewer |\n");
    let mut cases = Vec::new();
    for mark in ["<<<<<<< HEAD", "||||||| 1a2b3c4", "=======", ">>>>>>> topic", ">>>>>>>", ">>>>>>> topic\r"] {
        cases.push((".squad/team.md", format!("# Small\n\n{}", table(mark)), 6));
        cases.push((".squad/routing.md", table(mark).replace("Name | Role", "Work Type | Route To"), 4));
        cases.push((".squad/config.toml", format!("[models]\n{mark}\ndefault = \"m\"\n"), 2));
    }
    for (path, text, line) in cases {
        let repo = TestRepo::with_small_team();
        repo.write(path, &text);
        for command in COMMANDS {
            // The second time, the answer comes from what was cached the first time.
            for json in [false, true, false] {
                let output = repo.squad(&[command, if json { &["--json"][..] } else { &[] }].concat());
                let place = if json { format!("\"{path}:{line}\"") } else { format!("error: {path}:{line}: a merge") };
                let all = format!("{}{}", output.out, output.err);
                assert!(output.code == 3 && all.contains(&place), "{text} {command:?}: {output}");
            }
        }
    }
    // Other problems do not keep the team from being listed.
    for (path, text) in [
        (".squad/team.md", "nothing\n"),
        (".squad/config.toml", "[models\n"),
        (".squad/routing.md", "| Work Type | Route To |\n|---|---|\n| API | Nobody |\n"),
    ] {
        let repo = TestRepo::with_small_team();
        repo.write(path, text);
        for command in [&["agents"][..], &["status"]] {
            let output = repo.squad(command);
            assert_eq!(output.code, 0, "{path} {command:?}: {output}");
        }
    }
}

#[test]
fn an_example_in_a_fence_is_none() {
    let repo = TestRepo::with_small_team();
    repo.write(
        ".squad/agents/ada/charter.md",
        "# Ada — Backend Dev\n\nHow I merge\n=======\n\n```\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> topic\n```\n",
    );
    let output = repo.squad(&["orchestrate", "--engine", "rehearsal", "Add an endpoint"]);
    assert_eq!(output.code, 0, "{output}");
}

#[test]
fn commits_are_read_no_better() {
    let repo = TestRepo::with_small_team();
    repo.write(".squad/decisions.md", "### 2026-01-05: Tar\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "--quiet", "--message=a decision"]);
    repo.write(".squad/decisions.md", "<<<<<<< HEAD\n### 2026-01-05: Tar\n=======\n### Wax\n>>>>>>> topic\n");
    repo.git(&["commit", "--quiet", "--all", "--message=markers"]);
    repo.write(".squad/decisions.md", "### 2026-01-05: Tar\n");
    // What the branch holds is not what is on the disk, and nothing seems to be withdrawn.
    for command in [
        &["decisions", "list"][..],
        &["decisions", "import"],
        &["decisions", "review", "HEAD~1..HEAD"],
        &["decisions", "radar", "HEAD"],
        &["agents", "diff", "HEAD~1"],
    ] {
        let output = repo.squad(command);
        let told = "error: .squad/decisions.md:1: a merge was not finished here";
        assert!(output.code == 3 && output.err.contains(told), "{command:?}: {output}");
    }
    // The range that mends it can be looked at.
    repo.git(&["commit", "--quiet", "--all", "--message=mended"]);
    let output = repo.squad(&["decisions", "review", "HEAD~1..HEAD"]);
    let note = ".squad/decisions.md:1: a merge was not finished here";
    assert!(output.code == 0 && output.out.contains(note), "{output}");
    assert_eq!(repo.squad(&["agents", "diff", "HEAD~1..HEAD"]).code, 0);
}

/// Every command that reads the user's own file × a marker and a whole conflict, inside and outside of a team.
#[test]
fn the_users_own_file_counts_too() {
    const COMMANDS: [&[&str]; 9] = [
        &["agents"],
        &["status"],
        &["route", "Add an endpoint"],
        &["orchestrate", "--engine", "rehearsal", "Add an endpoint"],
        &["config", "list"],
        &["config", "get", "sessions.timeout"],
        &["config", "set", "sessions.timeout", "1m"],
        &["config", "set", "--user", "sessions.timeout", "1m"],
        &["config", "unset", "--user", "sessions.limit"],
    ];
    for text in ["[sessions]\n<<<<<<< HEAD\n=======\n>>>>>>> x\n", "[sessions]\n>>>>>>> x\nlimit = \"1m\"\n"] {
        for has_team in [true, false] {
            let mut repo = if has_team { TestRepo::with_small_team() } else { TestRepo::empty_on_disk() };
            let config = repo.root().join("../config").display().to_string();
            repo.variables.insert("XDG_CONFIG_HOME".to_owned(), config);
            repo.write("../config/squad/config.toml", text);
            for command in COMMANDS.iter().filter(|command| has_team || command.contains(&"--user")) {
                let output = repo.squad(command);
                let place = "error: REPO/../config/squad/config.toml:2: a merge was not finished here";
                assert!(output.code == 3 && output.err.contains(place), "{command:?}: {output}");
                assert!(!output.err.contains("is set"), "{output}");
            }
            assert_eq!(repo.read("../config/squad/config.toml"), text);
            assert!(!repo.exists(".squad/config.toml"));
        }
    }
}
