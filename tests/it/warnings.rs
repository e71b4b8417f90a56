//! What would go unnoticed is said, and what is nobody's mistake is not.

use crate::support::TestRepo;

#[test]
fn settings_of_another_tool_that_have_no_effect() {
    let repo = TestRepo::with_small_team();
    repo.write(
        ".squad/config.json",
        "{\n  \"version\": 1,\n  \"$schema\": \"x\", \"teamRoot\": \".\",\n  \"defaultModel\": \"m\",\n  \"lsp\": {\n    \"servers\": {}\n  },\n  \"sessions\": {\n    \"maxConcurrent\": 2,\n    \"colour\": \"red\"\n  },\n  \"models\": 7\n}\n",
    );
    let output = repo.squad(&["route", "Add an endpoint"]);
    for (line, name) in [(5, "lsp"), (10, "sessions.colour"), (12, "models")] {
        let told = format!(".squad/config.json:{line}: `{name}` has no effect");
        assert!(output.err.contains(&told), "{name}: {output}");
    }
    assert_eq!(output.err.matches("has no effect").count(), 3, "{output}");
}

#[test]
fn rows_that_start_nobody() {
    let repo = TestRepo::with_small_team();
    let team = repo.read(".squad/team.md");
    repo.write(
        ".squad/team.md",
        &format!("{team}| Sam | Product (Human) | Human |\n| @copilot | Coding Agent | Active |\n"),
    );
    repo.write(
        ".squad/routing.md",
        "| Work Type | Route To | Examples |\n|---|---|---|\n| Old things | Old | tape |\n| Wishes | Sam | wish |\n\
         | Chores | @copilot | typo |\n| Logs | Scribe | log |\n| API | Ada + Sam | endpoint |\n| Mixed | Ada + Old | x |\n",
    );
    let output = repo.squad(&["agents"]);
    for told in [
        "warning: .squad/routing.md:3: `Old things` routes only to `Old`: not active",
        "warning: .squad/routing.md:4: `Wishes` routes only to `Sam`: human",
        "warning: .squad/routing.md:5: `Chores` routes only to `copilot`: it works elsewhere",
        "note: .squad/routing.md:6: `Logs` routes only to `scribe`, a built-in helper that squad never starts",
        "note: .squad/routing.md:8: `Mixed` also routes to `Old`: not active",
    ] {
        assert!(output.err.contains(told), "{told}: {output}");
    }
    assert_eq!(output.err.matches("` routes ").count() + output.err.matches("also routes ").count(), 5, "{output}");
}

#[test]
fn a_label_or_a_path_that_decides_nothing() {
    let repo = TestRepo::with_small_team();
    let routing = repo.read(".squad/routing.md");
    repo.write(
        ".squad/routing.md",
        &format!(
            "{routing}\n## Labels\n\n| Label | Action | Who |\n|---|---|---|\n| bug | fix it | Bob |\n\n\
            ## Module Ownership\n\n| Module | Primary | Secondary |\n|---|---|---|\n| `src/api/` | Ada | Bob |\n"
        ),
    );
    let output = repo.squad(&["route", "x", "--label", "bug", "--label", "squad:ada", "--path", "src/api/a.rs"]);
    assert!(!output.err.contains("decides nothing"), "{output}");
    let output = repo.squad(&["route", "x", "--label", "bgu", "--label", "squad:eve", "--path", "web/a.rs"]);
    for told in
        ["the label `bgu` has no effect", "the label `squad:eve` has no effect", "the path `web/a.rs` has no effect"]
    {
        assert!(output.err.contains(told), "{told}: {output}");
    }
}

#[cfg(unix)]
#[test]
fn hooks_that_a_landing_passes_over_are_said_once() {
    use std::os::unix::fs::PermissionsExt;
    let told = |output: &crate::support::Output| {
        output.err.contains("did not run this repository's hooks: `pre-commit` and `commit-msg`")
    };
    for folder in [".git/hooks", "tools/hooks"] {
        let repo = TestRepo::with_small_team();
        if folder == "tools/hooks" {
            repo.git(&["config", "core.hooksPath", folder]);
        }
        let hook = |name: &str, mode: u32| {
            repo.write(&format!("{folder}/{name}"), "#!/bin/sh\nexit 1\n");
            let path = repo.root().join(folder).join(name);
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("changed");
        };
        hook("pre-commit.sample", 0o755);
        hook("post-commit", 0o644);
        let output = repo.squad(&["decisions", "add", "Use tar"]);
        assert!(output.code == 0 && !output.err.contains("hooks"), "{output}");
        hook("pre-commit", 0o755);
        hook("commit-msg", 0o755);
        let output = repo.squad(&["decisions", "add", "Use wax"]);
        assert!(output.code == 0 && told(&output), "{output}");
        let output = repo.squad(&["decisions", "add", "Use ropes"]);
        assert!(output.code == 0 && !output.err.contains("hooks"), "{output}");
    }
    let repo = TestRepo::with_small_team();
    repo.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n");
    repo.write(".git/hooks/commit-msg", "#!/bin/sh\nexit 1\n");
    for name in ["pre-commit", "commit-msg"] {
        let path = repo.root().join(".git/hooks").join(name);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("changed");
    }
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ tool = \"squad_log_decision\", args = { title = \"Tar\", what = \"x\" } }, { say = \"Done.\" }]\n";
    let output = repo.rehearse(script, &["--agent", "ada", "x"]);
    assert!(output.code == 0 && told(&output), "{output}");
}

#[test]
fn built_in_helpers_need_no_row() {
    let repo = TestRepo::with_small_team();
    for helper in ["rai", "ralph", "scribe"] {
        repo.write(&format!(".squad/agents/{helper}/charter.md"), &format!("# {helper} — Helper\n"));
    }
    repo.write(".squad/agents/eve/charter.md", "# Eve — Spy\n");
    let output = repo.squad(&["agents"]);
    assert_eq!(output.err.matches("is not on the roster").count(), 1, "{output}");
    assert!(output.err.contains("`eve` has a charter but is not on the roster"), "{output}");
}

#[test]
fn core_agents_that_nobody_is() {
    let repo = TestRepo::with_small_team();
    repo.write(".squad/config.toml", "[sessions]\n# Warm.\ncore = [\"ada\", \"tester\", \"adda\"]\n");
    let output = repo.squad(&["doctor"]);
    let told = ".squad/config.toml:3: `sessions.core` names `adda`, and no agent has that name or role";
    let said = output.to_string();
    assert_eq!((said.matches(told).count(), said.matches("sessions.core").count()), (1, 1), "{said}");
}
