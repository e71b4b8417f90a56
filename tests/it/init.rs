use expect_test::expect;

use crate::support::TestRepo;

#[test]
fn installs_a_team_in_one_commit() {
    let repo = TestRepo::empty();
    expect![[r#"
        --- stderr
          team      lead, backend, frontend, tester, docs, reviewer  (preset default)
          engine    copilot  (not installed: `squad engines` shows how)
          missing   purpose, users, stack, build and test: write them in .squad/team.md
        Installed a team in .squad/: 11 files, committed in 51dc8694fb.

        Next:
          squad orchestrate --dry-run "Add a health endpoint"   see who would work, and why
          squad orchestrate "Add a health endpoint"             let the team work
          squad engines                                         see whether an engine is ready
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["init"]).to_string());
    assert_eq!(repo.git(&["log", "--format=%s"]), "squad: install a team\n");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    let files = repo.git(&["ls-files"]);
    assert!(files.lines().all(|path| path.starts_with(".squad/")), "{files}");
    assert!(files.lines().count() <= 40);
    repo.assert_sound();
}

#[test]
fn a_second_run_changes_nothing() {
    let repo = TestRepo::with_team();
    let head = repo.git(&["rev-parse", "HEAD"]);
    expect![[r#"
        --- stderr
        There is a team in .squad/ already; nothing was changed.
        hint: `squad agents` shows it, and `squad upgrade` brings its files up to date
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["init"]).to_string());
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), head);
}

#[test]
fn keeps_staged_and_unstaged_work() {
    let repo = TestRepo::empty();
    repo.write("kept.txt", "one\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "--quiet", "--message=first"]);
    repo.write("kept.txt", "two\n");
    repo.git(&["add", "-A"]);
    repo.write("kept.txt", "three\n");
    repo.write("new.txt", "untracked\n");
    let before = repo.git(&["status", "--porcelain"]);
    assert_eq!(repo.squad(&["init"]).code, 0);
    assert_eq!(repo.git(&["status", "--porcelain"]), before);
    assert_eq!(repo.git(&["show", "--format=", "--name-only", "HEAD", "--", ":!.squad"]), "");
    assert_eq!(repo.git(&["diff", "--cached", "--name-only"]), "kept.txt\n");
}

#[test]
fn can_leave_the_commit_to_the_user() {
    let repo = TestRepo::empty();
    let output = repo.squad(&["init", "--no-commit"]);
    expect![[r#"
        --- stderr
          team      lead, backend, frontend, tester, docs, reviewer  (preset default)
          engine    copilot  (not installed: `squad engines` shows how)
          missing   purpose, users, stack, build and test: write them in .squad/team.md
        Installed a team in .squad/: 11 files, not committed: --no-commit.
        hint: git add .squad && git commit -m "Add a squad"

        Next:
          squad orchestrate --dry-run "Add a health endpoint"   see who would work, and why
          squad orchestrate "Add a health endpoint"             let the team work
          squad engines                                         see whether an engine is ready
        --- exit 0
    "#]]
    .assert_eq(&output.to_string());
    assert_eq!(repo.git(&["status", "--porcelain"]), "?? .squad/\n");
}

#[test]
fn fails_with_a_hint_without_a_repository() {
    expect![[r#"
        --- stderr
        error: no git repository at REPO or above
        hint: run it inside a git repository, or make one with `git init`
        --- exit 3
    "#]]
    .assert_eq(
        &TestRepo::folder().squad(&["init"]).to_string().replace(&std::env::temp_dir().display().to_string(), "TMP"),
    );
}

#[test]
fn writes_the_files_where_it_cannot_commit() {
    let repo = TestRepo::empty();
    repo.write("a", "");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "--quiet", "--message=first"]);
    repo.git(&["checkout", "--quiet", "--detach"]);
    let output = repo.squad(&["init"]);
    assert!(output.code == 0 && output.err.contains("not committed: HEAD is detached"), "{output}");
    assert!(repo.exists(".squad/team.md"));
}

#[test]
fn does_not_commit_a_team_that_git_ignores() {
    let repo = TestRepo::empty();
    repo.write(".gitignore", ".squad/\n");
    let output = repo.squad(&["init"]);
    assert!(output.code == 0 && output.err.contains("not committed: git ignores .squad"), "{output}");
    assert!(repo.exists(".squad/team.md") && repo.git(&["status", "--porcelain"]) == "?? .gitignore\n");
    // What it says to do leads to a commit.
    let hint = output.err.lines().find_map(|line| line.strip_prefix("hint: ")).expect("a hint");
    let (ask, add) =
        hint.strip_prefix("delete the rule that `").and_then(|hint| hint.split_once("` names; then ")).expect(hint);
    let asked: Vec<&str> = ask.split(' ').skip(1).collect();
    assert!(repo.git(&asked).starts_with(".gitignore:1:"), "{hint}");
    repo.write(".gitignore", "");
    assert_eq!(add, "git add .squad && git commit -m \"Add a squad\"");
    repo.git(&["add", ".squad"]);
    repo.git(&["commit", "--quiet", "--message=Add a squad"]);
    assert_eq!(repo.git(&["ls-files", ".squad/team.md"]), ".squad/team.md\n");
    // A team that git does not ignore needs no more than the commit.
    let repo = TestRepo::empty();
    assert!(repo.squad(&["init", "--no-commit"]).err.contains("hint: git add .squad && git commit"));
}

#[test]
fn prints_json() {
    let repo = TestRepo::empty();
    let value: serde_json::Value = serde_json::from_str(&repo.squad(&["init", "--json"]).out).expect("JSON");
    assert_eq!((value["installed"].as_bool(), value["folder"].as_str()), (Some(true), Some(".squad")));
}

#[test]
fn the_review_workflow_is_installed_only_on_request() {
    let repo = TestRepo::with_team();
    assert!(!repo.exists(".github"));
    let first = repo.squad(&["init", "--ci"]);
    assert!(first.code == 0 && first.err.contains("Installed .github/workflows/squad-review.yml"), "{first}");
    assert_eq!(repo.git(&["show", "--format=", "--name-only", "HEAD"]).trim(), ".github/workflows/squad-review.yml");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    repo.write(".github/workflows/squad-review.yml", "mine\n");
    assert!(repo.squad(&["init", "--ci"]).err.contains("nothing was changed"));
    assert_eq!(repo.read(".github/workflows/squad-review.yml"), "mine\n");

    let both = TestRepo::empty();
    assert!(both.squad(&["init", "--ci"]).err.contains("a team in .squad/: 11 files and .github/"));
    assert_eq!(both.git(&["rev-list", "--count", "HEAD"]).trim(), "1");
}

#[test]
fn a_team_that_only_the_branch_has_is_not_replaced() {
    let repo = TestRepo::with_team();
    repo.write("src/main.rs", "");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "--quiet", "--message=source"]);
    repo.git(&["sparse-checkout", "set", "--cone", "src"]);
    let said = expect![[r#"
        --- stderr
        error: the team in .squad is on the branch but not in this work tree
        hint: `git restore .squad` restores it; in a sparse checkout, use `git sparse-checkout add .squad`
        --- exit 3
    "#]];
    said.assert_eq(&repo.squad(&["init"]).to_string());
    said.assert_eq(&repo.squad(&["decisions", "list"]).to_string());
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    repo.git(&["sparse-checkout", "add", ".squad"]);
    assert_eq!(repo.squad(&["decisions", "list"]).code, 0);
    repo.git(&["rm", "-rq", ".squad"]);
    repo.git(&["commit", "--quiet", "--message=no team"]);
    assert_eq!(repo.squad(&["init"]).code, 0);
}

#[test]
fn the_team_fits_the_repository() {
    let repo = TestRepo::empty();
    for (path, text) in [
        ("README.md", "# Tides\n\nTides tells sailors when the water comes. It is small.\n"),
        (
            "package.json",
            "{\"scripts\": {\"test\": \"vitest\"}, \"dependencies\": {\"react\": \"19\", \"evil`rm -rf`\": \"1\"}}",
        ),
        ("Cargo.toml", "[dependencies]\naxum = \"1\"\n"),
        ("server/src/main.rs", ""),
        ("web/app.tsx", ""),
        ("tests/it.rs", ""),
        ("we|ird/api/x.rs", ""),
        (".editorconfig", ""),
        (".github/CODEOWNERS", "* @sailors\n"),
    ] {
        repo.write(path, text);
    }
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "--quiet", "--message=first"]);
    assert_eq!(repo.squad(&["init"]).code, 0);
    let team = repo.read(".squad/team.md");
    expect![[r#"
        - **Purpose:** Tides tells sailors when the water comes.
        - **Stack:** Rust, TypeScript; Axum, React. Nothing is added without a decision.
        - **Build and test:** `npm run test`. A change is done when they pass.
        - **Conventions:** those of the code around the change; formatter and linter settings in the repository are binding. Read `.editorconfig`.
        - **Off limits:** generated files, vendored code and secrets are not edited by hand. `.github/CODEOWNERS` says who approves changes of what.
    "#]]
    .assert_eq(&format!("{}\n", team.lines().filter(|line| line.starts_with("- **")).collect::<Vec<_>>().join("\n")));
    let report: serde_json::Value = serde_json::from_str(&repo.squad(&["agents", "--json"]).out).expect("JSON");
    // What checks the smaller part is not what squad runs.
    assert_eq!(report["problems"], serde_json::json!([]));
    let modules: Vec<String> = report["modules"]
        .as_array()
        .expect("modules")
        .iter()
        .map(|one| format!("{} {}", one["path"], one["primary"]))
        .collect();
    assert_eq!(modules, ["\"server\" \"backend\"", "\"tests\" \"tester\"", "\"web\" \"frontend\""]);
    let plan: serde_json::Value =
        serde_json::from_str(&repo.squad(&["route", "--json", "Tidy web/app.tsx"]).out).expect("JSON");
    assert_eq!(plan["agents"], serde_json::json!(["frontend"]));
    assert!(repo.squad(&["upgrade"]).err.contains("nothing to upgrade"));
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_smaller_team_takes_over_the_work_of_missing_agents() {
    for (arguments, slugs) in [
        (&["--preset", "solo"][..], &["backend"][..]),
        (&["--preset", "library"], &["lead", "backend", "tester", "docs", "reviewer"]),
        (&["--preset", "web"], &["lead", "backend", "frontend", "tester", "reviewer"]),
        (&["--preset", "service"], &["lead", "backend", "tester", "reviewer"]),
        (&["--preset", "docs"], &["docs", "reviewer"]),
        (&["--preset", "research"], &["lead", "backend", "docs"]),
        (&["--preset", "default"], &["lead", "backend", "frontend", "tester", "docs", "reviewer"]),
        (&["--agents", "tester, Reviewer"], &["tester", "reviewer"]),
    ] {
        let repo = TestRepo::empty();
        let output = repo.squad(&[&["init"][..], arguments].concat());
        assert_eq!(output.code, 0, "{output}");
        let report: serde_json::Value = serde_json::from_str(&repo.squad(&["agents", "--json"]).out).expect("JSON");
        assert_eq!(report["problems"], serde_json::json!([]), "{arguments:?}");
        let found: Vec<&str> =
            report["agents"].as_array().expect("agents").iter().filter_map(|agent| agent["slug"].as_str()).collect();
        assert_eq!(found, slugs);
        assert_eq!(report["rules"].as_array().map(Vec::len), Some(13), "{arguments:?}");
        // No charter refers work to an agent that is not on the team.
        for slug in slugs {
            let charter = repo.read(&format!(".squad/agents/{slug}/charter.md"));
            for gone in ["Lead", "Backend", "Frontend", "Tester", "Docs", "Reviewer"] {
                let is_gone = !slugs.contains(&gone.to_lowercase().as_str());
                let mut words = charter.split(|c: char| !c.is_alphanumeric());
                assert!(!is_gone || words.all(|word| word != gone), "{slug} {gone}: {charter}");
            }
        }
        assert!(repo.squad(&["upgrade"]).err.contains("nothing to upgrade"));
    }
    for arguments in [&["--preset", "huge"][..], &["--agents", "nobody"], &["--agents", "lead", "--preset", "solo"]] {
        let repo = TestRepo::empty();
        let output = repo.squad(&[&["init"][..], arguments].concat());
        assert!(output.code == 2 && !repo.exists(".squad"), "{output}");
    }
}

/// Each line has a key, an invalid answer repeats the question, and nothing is written before the answer is yes.
#[cfg(unix)]
#[test]
fn init_asks_before_it_writes() {
    let repo = TestRepo::empty();
    repo.write("README.md", "# Shop\n\nSells tea to people who like tea.\n");
    repo.write("docs/a.md", "# A\n");
    repo.write("src/api/a.py", "1\n");
    let mut person = crate::terminal::Person::sits_down();
    let mut command = repo.command(env!("CARGO_BIN_EXE_squad"), &repo.root());
    command.arg("init").env("TERM", "xterm");
    let mut child = person.starts(command);
    person.waits_for("(README.md:3)");
    person.waits_for("Write this?");
    person.types("maybe\r");
    person.waits_for("y writes it, n writes nothing");
    person.waits_for_times("Write this?", 2);
    person.types("p\r");
    person.waits_for("What is the project for? (- for none) [Sells tea to people who like tea.]");
    person.types("Sells coffee\r");
    person.waits_for("(yours)");
    person.types("t\r");
    person.waits_for("Who is on the team?");
    person.types("everybody\r");
    person.waits_for("`everybody` is neither a preset nor a list of agents");
    person.waits_for_times("Who is on the team?", 2);
    person.types("backend, docs\r");
    person.waits_for_times("Write this?", 4);
    person.types("f\r");
    person.waits_for("Which folders have owners? (- for none) [docs Docs, src/api Backend]");
    person.types("nope/ backend\r");
    person.waits_for("there is no folder `nope` in this repository");
    person.waits_for_times("Which folders have owners?", 2);
    person.types("docs tester\r");
    person.waits_for("there is no agent `tester` on this team");
    person.waits_for_times("Which folders have owners?", 3);
    person.types("docs Docs, src/api/ backend\r");
    person.waits_for_times("Write this?", 5);
    person.types("c\r");
    person.waits_for("Which commands build and test it? (- for none) [-]");
    person.types("make test, bin/lint\r");
    person.waits_for_times("Write this?", 6);
    person.types("e\r");
    person.waits_for("Which engine runs them? [copilot]");
    person.types("rehearsal\r");
    person.waits_for_times("Write this?", 7);
    person.types("u\r");
    person.waits_for("Who uses it? (- for none) [-]");
    person.types("Tea drinkers\r");
    person.waits_for_times("Write this?", 8);
    person.types("k\r");
    person.waits_for("notebooks and documentation (- for none of");
    person.waits_for("them) [-]");
    person.types("shop\r");
    person.waits_for("`shop` is no kind");
    person.types("web\r");
    person.waits_for("an application with screens");
    person.waits_for_times("Write this?", 9);
    assert!(!repo.exists(".squad"));
    person.types("\r");
    person.waits_for("Installed a team");
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{}", person.screen);
    let team = repo.read(".squad/team.md");
    assert!(team.contains("- **Purpose:** Sells coffee\n"), "{team}");
    assert!(team.contains("- **Users:** Tea drinkers\n"), "{team}");
    assert!(team.contains("- **Build and test:** `make test`, `bin/lint`."), "{team}");
    let routing = repo.read(".squad/routing.md");
    assert!(routing.contains("| docs/ | Docs |\n| src/api/ | Backend |\n"), "{routing}");
    let config = repo.read(".squad/config.toml");
    assert!(config.contains("\nname = \"rehearsal\"\n"), "{config}");
    assert!(config.contains("You named it at `squad init`:\n") && !config.contains("yours"), "{config}");
    assert!(repo.exists(".squad/agents/docs") && !repo.exists(".squad/agents/lead"));
    assert_eq!(repo.squad(&["config", "get", "engine.name"]).out.trim(), "rehearsal");
    assert!(person.screen.contains("Write this? y (approves the check too), n, or"), "{}", person.screen);
    let mut asked = person.screen.lines().filter(|line| line.starts_with("Write this?"));
    // What is typed ahead may stand elsewhere, and the next question behind.
    let question = |line: &str| line.split_once("[y]").map_or(line.len(), |(question, _)| question.chars().count());
    assert!(asked.all(|line| question(line) < 60), "{}", person.screen);
    assert!(repo.squad(&["config", "list"]).out.contains("check.run = [\"make\", \"test\"]"));
}

/// Whoever keeps what is there keeps where it comes from; `-` empties a line, and a kind brings its team.
#[cfg(unix)]
#[test]
fn a_line_that_is_kept_keeps_its_source() {
    let repo = TestRepo::empty();
    repo.write("README.md", "# Shop\n\nSells tea to people who like tea.\n");
    repo.write("Cargo.toml", "[package]\nname = \"a\"\n");
    repo.write("src/lib.rs", "1\n");
    repo.write("tests/a.rs", "1\n");
    let mut person = crate::terminal::Person::sits_down();
    let mut command = repo.command(env!("CARGO_BIN_EXE_squad"), &repo.root());
    command.arg("init").env("TERM", "xterm");
    let mut child = person.starts(command);
    for (count, key) in (1..).zip(["p", "u", "k", "s", "c", "f", "t", "e"]) {
        person.waits_for_times("Write this?", count);
        person.types(&format!("{key}\r"));
        person.waits_for_times("[", count + 1);
        std::thread::sleep(std::time::Duration::from_millis(100));
        person.types("\r");
    }
    person.waits_for_times("Write this?", 9);
    assert!(!person.screen.contains("yours"), "{}", person.screen);
    person.types("p\r");
    person.waits_for_times("What is the project for?", 2);
    person.types("-\r");
    person.waits_for_times("Write this?", 10);
    person.types("k\r");
    person.waits_for_times("What is it?", 2);
    person.types("documentation\r");
    person.waits_for("docs, reviewer");
    person.waits_for_times("Write this?", 11);
    person.types("\r");
    person.waits_for("Write a getting started guide");
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{}", person.screen);
    assert!(!repo.read(".squad/team.md").contains("Purpose"), "{}", person.screen);
    assert!(repo.exists(".squad/agents/docs") && !repo.exists(".squad/agents/backend"));
}

/// Without an answer, or with a no, no team is installed; with `--yes` nothing is asked.
#[cfg(unix)]
#[test]
fn only_a_yes_installs() {
    for (arguments, typed, code, said) in [
        (&["init"][..], "\u{4}", 130, "nothing was installed"),
        (&["init"], "n\r", 0, "Nothing was written."),
        (&["init", "--dry-run"], "", 0, "Nothing was written: --dry-run."),
        (&["init", "--yes"], "", 0, "Installed a team"),
    ] {
        let repo = TestRepo::empty();
        let mut person = crate::terminal::Person::sits_down();
        let mut command = repo.command(env!("CARGO_BIN_EXE_squad"), &repo.root());
        command.args(arguments).env("TERM", "xterm");
        let mut child = person.starts(command);
        if !typed.is_empty() {
            person.waits_for("Write this?");
            person.types(typed);
        }
        person.waits_for(said);
        assert_eq!(child.wait().expect("it ends").code(), Some(code), "{}", person.screen);
        assert_eq!(repo.exists(".squad"), arguments.contains(&"--yes"), "{}", person.screen);
    }
}

/// The first engine that is ready runs a team whose own is not; where none is, the way to log in is shown, and works.
#[cfg(unix)]
#[test]
fn an_engine_that_is_ready_is_chosen() {
    let repo = TestRepo::empty();
    let folder = crate::support::temporary::folder();
    let bin = folder.path();
    let program = |name: &str, check: &str, login: &str| {
        let kept = bin.join(format!("{name}.login"));
        let kept = kept.display();
        let text = format!("#!/bin/sh\ncase \"$*\" in\n'{check}') [ -e '{kept}' ];;\n'{login}') : >'{kept}';;\nesac\n");
        crate::support::script::write(&bin.join(name), &text);
    };
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let run = |arguments: &[&str]| {
        let mut command = repo.command(env!("CARGO_BIN_EXE_squad"), &repo.root());
        let output = command.args(arguments).env("PATH", &path).output().expect("it runs");
        String::from_utf8(output.stderr).expect("UTF-8") + &String::from_utf8_lossy(&output.stdout)
    };
    let engine = |said: &str| -> String {
        let line = said.lines().find(|line| line.trim().starts_with("engine "));
        line.unwrap_or_else(|| panic!("{said}")).trim().to_owned()
    };
    program("claude", "auth status", "auth login");
    let said = engine(&run(&["init", "--dry-run"]));
    let how = "run `claude auth login`; or set ANTHROPIC_API_KEY";
    assert_eq!(said, format!("engine    claude  (claude is installed, but not logged in; {how})"));
    program("codex", "login status", "login");
    assert!(engine(&run(&["init", "--dry-run"])).contains("claude is installed, but not logged in"));
    let shown = run(&["engines"]);
    let logins: Vec<&str> = shown.split('`').skip(1).step_by(2).filter(|one| one.contains("login")).collect();
    let (claude, codex) = ("claude auth login", "codex login");
    assert_eq!(logins, [claude, codex, claude, codex], "{shown}");
    let log_in = |line: &str| {
        let status = std::process::Command::new("sh").args(["-c", line]).env("PATH", &path).status();
        assert!(status.expect("it runs").success());
    };
    log_in(logins[1]);
    assert_eq!(engine(&run(&["init", "--dry-run"])), "engine    codex  (ready; copilot is not installed)");
    log_in(logins[0]);
    assert_eq!(engine(&run(&["init", "--dry-run"])), "engine    claude  (ready; copilot is not installed)");
    // Of one that cannot be asked, nobody knows more than that it is there.
    std::fs::rename(bin.join("claude"), bin.join("not-claude")).expect("it is there");
    std::fs::rename(bin.join("codex"), bin.join("not-codex")).expect("it is there");
    program("cursor-agent", "status", "login");
    let how = "installed; squad cannot ask whether it is logged in; copilot is not installed";
    assert_eq!(engine(&run(&["init", "--dry-run"])), format!("engine    cursor  ({how})"));
    std::fs::rename(bin.join("not-claude"), bin.join("claude")).expect("it is there");
    std::fs::rename(bin.join("not-codex"), bin.join("codex")).expect("it is there");
    std::fs::remove_file(bin.join("claude.login")).expect("it was logged in");
    assert_eq!(engine(&run(&["init"])), "engine    codex  (ready; copilot is not installed)");
    assert!(repo.read(".squad/config.toml").contains("\nname = \"codex\"\n"));
}

/// The commands that it names as the next ones.
#[test]
fn the_next_steps_can_be_taken() {
    let mut repo = TestRepo::empty();
    repo.variables.insert("SQUAD_ENGINE".to_owned(), "rehearsal".to_owned());
    let said = repo.squad(&["init"]).err;
    let steps: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("  squad ")).collect();
    assert_eq!(steps.len(), 3, "{said}");
    for step in steps {
        let line = step.split("   ").next().expect("a command");
        let words: Vec<&str> = match line.split_once('"') {
            Some((words, message)) => words.split_whitespace().chain([message.trim_end_matches('"')]).collect(),
            None => line.split_whitespace().collect(),
        };
        let output = repo.squad(&words);
        assert_eq!(output.code, 0, "{line}: {output}");
    }
}

/// The hint works where the user is, as it stands.
#[cfg(unix)]
#[test]
fn what_was_only_written_is_committed_as_the_hint_says() {
    for (here, is_elsewhere) in [("", false), ("a/b c", false), ("a", true), ("..", true)] {
        let repo = TestRepo::empty();
        repo.write("a/b c/file.txt", "text\n");
        let (root, here) = (repo.root().display().to_string(), repo.root().join(here));
        let options = if is_elsewhere { vec!["-C", &root] } else { Vec::new() };
        let output = repo.squad_in(&here, &[&options[..], &["init", "--no-commit"]].concat());
        let hint = output
            .err
            .lines()
            .find_map(|line| line.trim().strip_prefix("hint: ").filter(|hint| hint.starts_with("git")));
        let hint = hint.expect("a hint").replace("REPO", &root);
        let ran = repo.command("sh", &here).args(["-c", &hint]).output().expect("sh runs");
        assert!(ran.status.success(), "{hint}: {}", String::from_utf8_lossy(&ran.stderr));
        assert_eq!(repo.git(&["status", "--porcelain", "--", ".squad"]), "", "{hint}");
        assert!(repo.git(&["log", "-1", "--name-only"]).contains(".squad/team.md"), "{hint}");
    }
}
