//! `adopt` takes over teams of another tool, and `git revert` undoes it completely.

use expect_test::expect;
use serde_json::Value;

use crate::support::{Output, TestRepo};

const PROMPT: &str = "---\nname: Squad\n---\n\n<!-- version: 0.0.0-source -->\n\nYou are the **coordinator**. Read `.squad/templates/charter.md`.\n";
const WORKFLOW: &str = "name: Triage\non: issues\njobs: {}\n";
const TEMPLATE: &str = "# {Name} — {Role}\n\nA charter to fill in.\n";
const SKILL: &str = "---\nname: hand-over\n---\n\nHow agents hand over.\n";
const TRIAGE: &str = "console.log('who has time?');\n";

const TEAM: &str = "# Team\n\n## Members\n\n| Name | Role | Charter | Status |\n|---|---|---|---|\n\
    | Ada | Backend Dev | `.squad/agents/ada/charter.md` | Active |\n\
    | Bob | Tester | `.squad/agents/bob/charter.md` | Active |\n\
    | Scribe | Logger | `.squad/agents/scribe/charter.md` | Silent |\n";
const ROUTING: &str = "# Routing\n\n| Work Type | Route To | Examples |\n|---|---|---|\n\
    | API, server | Ada | endpoint |\n| Tests | Bob | coverage |\n| {domain 1} | {Name} | {example} |\n";
const SERVERS: &str = "{\n    \"mcpServers\": {\n        \"docs\": { \"command\": \"docs\" },\n        \"squad_state\": {\n            \
    \"command\": \"npx\",\n            \"args\": [\"-y\", \"@bradygaster/squad-cli@0.10.0\", \"state-mcp\"],\n            \
    \"tools\": [\"*\"]\n        }\n    }\n}\n";
const IGNORED: &str = "target/\n# Squad: ignore runtime state\n.squad/log/\n.squad/decisions/inbox/\n";

fn written_in(repo: &TestRepo, root: &str, folder: &str) {
    let write =
        |path: &str, text: &str| repo.write(&format!("{root}{path}"), &text.replace(".squad/", &format!("{folder}/")));
    let in_team = |path: &str, text: &str| write(&format!("{folder}/{path}"), text);
    in_team("team.md", TEAM);
    in_team("routing.md", ROUTING);
    in_team("decisions.md", "# Decisions\n\n### 2026-01-04: Money is integer cents\n**By:** Ada\n\nNo floats.\n");
    for (name, role) in [("ada", "Backend Dev"), ("bob", "Tester"), ("scribe", "Logger")] {
        in_team(&format!("agents/{name}/charter.md"), &format!("# {name} — {role}\n\nDoes it.\n"));
        in_team(&format!("agents/{name}/history.md"), "# History\n\n- Began.\n");
    }
    in_team("casting/registry.json", "{}\n");
    in_team("templates/charter.md", TEMPLATE);
    in_team("templates/triage.js", TRIAGE);
    in_team("templates/skill.md", "# Our own form of a skill\n");
    in_team("skills/hand-over/SKILL.md", SKILL);
    in_team("skills/ours/SKILL.md", "---\nname: ours\n---\n\nOurs.\n");
    in_team("roster.md", TEMPLATE);
    write(".github/agents/squad.agent.md", &PROMPT.replace("0.0.0-source", "0.10.0"));
    write(".github/workflows/squad-triage.yml", WORKFLOW);
    write(".github/workflows/agents.yml", "name: Ours\nrun: node .squad/templates/triage.js\n");
    write(".github/workflows/ci.yml", "name: CI\n");
    write(".github/skills/hand-over/SKILL.md", SKILL);
    write(".mcp.json", SERVERS);
    write(".gitignore", IGNORED);
    write(".gitattributes", ".squad/decisions.md merge=union\n");
}

/// The texts that the other tool's releases install, for these tests.
fn installed(folder: &str) -> Vec<String> {
    [&PROMPT.replace(".squad", folder), WORKFLOW, TEMPLATE, SKILL, TRIAGE].map(str::to_owned).to_vec()
}

fn committed(root: &str, folder: &str) -> TestRepo {
    let mut repo = TestRepo::empty();
    repo.installed = installed(folder);
    written_in(&repo, root, folder);
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message=team"]);
    repo
}

/// A team that the other tool made, with files that were edited.
pub(crate) fn theirs() -> TestRepo {
    committed("", ".squad")
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&output.out).expect(&output.err)
}

fn tree(repo: &TestRepo, revision: &str) -> String {
    repo.git(&["rev-parse", &format!("{revision}^{{tree}}")])
}

/// `git revert` restores every byte.
fn assert_undone(repo: &TestRepo) {
    let before = tree(repo, "HEAD~1");
    repo.git(&["revert", "--no-edit", "HEAD"]);
    assert_eq!(tree(repo, "HEAD"), before);
    repo.assert_sound();
}

#[test]
fn unchanged_files_are_removed_and_edited_files_stay() {
    let repo = theirs();
    let shown = repo.squad(&["adopt", "--dry-run"]);
    assert!(shown.code == 0 && shown.err.contains("8 files would change"), "{shown}");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    let adopted = repo.squad(&["adopt"]);
    let commit = repo.git(&["rev-parse", "--short=10", "HEAD"]);
    expect![[r#"
        Read 2 agents, 1 other member, 2 routing rules and 1 decision.
        changed  .github/agents/squad.agent.md
        removed  .github/skills/hand-over/SKILL.md
        removed  .github/workflows/squad-triage.yml
        changed  .gitignore
        changed  .mcp.json
        removed  .squad/roster.md
        removed  .squad/skills/hand-over/SKILL.md
        removed  .squad/templates/charter.md
        left     .squad/templates/skill.md  (no known release installs this version of it)
        left     .squad/templates/triage.js  (.github/workflows/agents.yml uses it)
        --- stderr
        warning: .squad/routing.md:7: `{domain 1}` is a template's placeholder row
        hint: fill it in or delete the row
        Lines that hide decisions from git were removed: .gitignore:4.
        warning: triage of issues stops: squad has no replacement for .github/workflows/squad-triage.yml
        hint: `squad orchestrate` and `squad watch` work on what they are given; restore the workflow to keep it
        Adopted the team: 8 files, committed in COMMIT.
        hint: `git revert` of that commit undoes it; `squad doctor` checks the team
        --- exit 0
    "#]]
    .assert_eq(&adopted.to_string().replace(commit.trim(), "COMMIT"));
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    assert!(!repo.exists(".github/skills") && !repo.exists(".squad/templates/charter.md"));
    assert_eq!((repo.read(".squad/team.md"), repo.read(".squad/routing.md")), (TEAM.to_owned(), ROUTING.to_owned()));
    let prompt = repo.read(".github/agents/squad.agent.md");
    assert!(prompt.len() <= 2048 && prompt.contains("squad orchestrate"), "{prompt}");
    let servers = SERVERS.replace("squad_state", "squad").replace("\"npx\"", "\"squad\"");
    let servers = servers.replace("\"-y\", \"@bradygaster/squad-cli@0.10.0\", \"state-mcp\"", "\"mcp\"");
    assert_eq!(repo.read(".mcp.json"), servers);
    assert_eq!(repo.read(".gitignore"), IGNORED.replace(".squad/decisions/inbox/\n", ""));

    let head = repo.git(&["rev-parse", "HEAD"]);
    let again = repo.squad(&["adopt"]);
    assert!(again.code == 0 && again.err.contains("There is nothing to adopt"), "{again}");
    assert_eq!((repo.git(&["rev-parse", "HEAD"]), repo.git(&["status", "--porcelain"])), (head, String::new()));
    assert_undone(&repo);
}

/// The prompt and the workflows name each other: half of them would give issues to nobody.
#[test]
fn the_coordinator_and_its_workflows_go_together() {
    const PROMPT_PATH: &str = ".github/agents/squad.agent.md";
    const TRIAGE_PATH: &str = ".github/workflows/squad-triage.yml";
    const OTHER: &str = ".github/workflows/squad-heartbeat.yml";
    for (prompt, other, is_taken) in [
        (Some("as installed"), None, true),
        (Some("as installed"), Some(WORKFLOW), true),
        (Some("as installed"), Some("name: Ours by now\non: push\n"), false),
        (Some("edited"), None, false),
        (Some("edited"), Some("name: Ours by now\non: push\n"), false),
        (None, None, true),
        (None, Some("name: Ours by now\non: push\n"), false),
    ] {
        let repo = theirs();
        match prompt {
            Some("edited") => repo.write(PROMPT_PATH, "You are our own coordinator.\n"),
            Some(_) => {}
            None => std::fs::remove_file(repo.root().join(PROMPT_PATH)).expect("it is there"),
        }
        if let Some(text) = other {
            repo.write(OTHER, text);
        }
        repo.git(&["add", "--all"]);
        repo.git(&["commit", "--quiet", "--allow-empty", "--message=edited"]);
        let before = prompt.map(|_| repo.read(PROMPT_PATH));
        let shown = repo.squad(&["adopt", "--dry-run"]);
        let adopted = repo.squad(&["adopt"]);
        assert_eq!(adopted.code, 0, "{adopted}");
        assert_eq!(repo.exists(TRIAGE_PATH), !is_taken, "{prompt:?} {other:?}: {adopted}");
        if let Some(before) = before {
            assert_eq!(repo.read(PROMPT_PATH) != before, is_taken, "{prompt:?} {other:?}: {adopted}");
        }
        let edited = if prompt == Some("edited") { PROMPT_PATH } else { OTHER };
        let why = format!("{TRIAGE_PATH}  (it works with {edited}, which was edited)");
        assert_eq!(adopted.out.contains(&why), !is_taken, "{prompt:?} {other:?}: {adopted}");
        // What nobody does any more is named, before and after.
        assert_eq!(shown.err.contains("triage of issues would stop"), is_taken, "{shown}");
        assert_eq!(adopted.err.contains("triage of issues stops"), is_taken, "{adopted}");
        assert_eq!(adopted.err.contains(TRIAGE_PATH), is_taken, "{adopted}");
    }
}

#[test]
fn the_old_folder_moves_with_all_its_files() {
    let repo = committed("", ".ai-team");
    repo.write(".ai-team/log/today.md", "ignored\n");
    repo.write(".ai-team/decisions/inbox/ada-ropes.md", "### 2026-01-05: Ropes are blue\n\nSo be it.\n");
    repo.write(".ai-team/agents/ada/draft.md", "untracked\n");
    let tracked = repo.git(&["ls-files", ".ai-team"]).lines().count();
    let adopted = repo.squad(&["adopt"]);
    assert!(
        adopted.code == 0 && adopted.out.contains("moved    .squad/agents/ (6 files)  (was .ai-team/agents/)"),
        "{adopted}"
    );
    assert!(!repo.exists(".ai-team"), "{adopted}");
    assert_eq!(repo.git(&["ls-files", ".squad"]).lines().count(), tracked - 3, "{adopted}");
    // Files stay tracked, untracked or ignored, except that decisions are no longer ignored.
    assert_eq!(
        repo.git(&["status", "--porcelain", "--untracked-files=all"]),
        "?? .squad/agents/ada/draft.md\n?? .squad/decisions/inbox/ada-ropes.md\n"
    );
    assert_eq!(
        (repo.read(".squad/log/today.md"), repo.read(".squad/team.md")),
        ("ignored\n".to_owned(), TEAM.replace(".squad/", ".ai-team/"))
    );
    assert_eq!(repo.read(".gitattributes"), ".squad/decisions.md merge=union\n");
    assert!(repo.squad(&["decisions", "list"]).out.contains("Ropes are blue"));
    let agents = json(&repo.squad(&["agents", "--json"]));
    assert_eq!(agents["agents"][0]["charter"], ".squad/agents/ada/charter.md", "{agents}");
    assert_eq!(
        repo.git(&["diff", "--name-status", "-M", "HEAD~1", "--", "*team.md"]),
        "R100\t.ai-team/team.md\t.squad/team.md\n"
    );
    std::fs::remove_dir_all(repo.root().join(".squad/log")).expect("a folder");
    assert_undone(&repo);
}

#[test]
fn the_new_folder_wins_over_the_old_one() {
    let repo = theirs();
    repo.write(".ai-team/team.md", "# Old\n");
    repo.write(".ai-team/templates/charter.md", TEMPLATE);
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message=old"]);
    let adopted = repo.squad(&["adopt"]);
    assert!(
        adopted.code == 0 && adopted.out.contains("left     .ai-team/  (not used: the team is in `.squad/`"),
        "{adopted}"
    );
    assert!(repo.exists(".ai-team/team.md") && !repo.exists(".ai-team/templates"));
    assert_undone(&repo);
}

#[test]
fn the_report_is_also_json() {
    let repo = theirs();
    let shown = json(&repo.squad(&["adopt", "--diff", "--json"]));
    assert_eq!(shown["release"], "0.10.0");
    assert_eq!((&shown["read"]["agents"], &shown["read"]["rules"]), (&2.into(), &2.into()));
    assert_eq!(shown["read"]["problems"][0]["line"], 7);
    assert_eq!(shown["servers"][0], ".mcp.json: squad_state");
    assert_eq!(shown["lifted"][0], ".gitignore:4");
    assert!(
        shown["diff"]
            .as_str()
            .is_some_and(|diff| diff.contains("+                \"mcp\"") || diff.contains("\"mcp\"")),
        "{shown}"
    );
    assert!(shown["commit"].is_null() && repo.git(&["status", "--porcelain"]).is_empty());
    let done = json(&repo.squad(&["adopt", "--json"]));
    assert_eq!(done["commit"].as_str().map(str::to_owned), Some(repo.git(&["rev-parse", "HEAD"]).trim().to_owned()));
    assert_eq!(done["files"], shown["files"]);
}

#[test]
fn the_patch_equals_the_commit() {
    for folder in [".squad", ".ai-team"] {
        let repo = committed("", folder);
        let shown = json(&repo.squad(&["adopt", "--diff", "--json"]));
        repo.write("../patch", shown["diff"].as_str().expect("a patch"));
        assert_eq!(repo.squad(&["adopt"]).code, 0);
        let adopted = tree(&repo, "HEAD");
        repo.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
        repo.git(&["apply", "--index", "../patch"]);
        repo.git(&["commit", "--quiet", "--message=patch"]);
        assert_eq!(tree(&repo, "HEAD"), adopted, "{folder}");
    }
}

#[test]
fn other_work_stays_unchanged() {
    let repo = theirs();
    repo.write("code.txt", "staged\n");
    repo.git(&["add", "code.txt"]);
    repo.write("code.txt", "edited\n");
    repo.write("new.txt", "new\n");
    let state = || repo.git(&["status", "--porcelain"]) + &repo.git(&["diff"]) + &repo.git(&["diff", "--cached"]);
    let before = state();
    assert_eq!(repo.squad(&["adopt"]).code, 0);
    assert_eq!(state(), before);
    // Files that would change must be committed.
    let repo = theirs();
    repo.write(".gitignore", "mine\n");
    let refused = repo.squad(&["adopt"]);
    assert!(refused.code == 1 && refused.err.contains(".gitignore has changes that are not committed"), "{refused}");
    assert_eq!(repo.git(&["status", "--porcelain"]), " M .gitignore\n");
    let shown = repo.squad(&["adopt", "--dry-run"]);
    assert!(shown.code == 0 && shown.err.contains("warning: cannot commit: .gitignore has changes"), "{shown}");
    assert!(shown.out.contains("changed  .gitignore") && shown.err.contains("8 files would change."), "{shown}");
}

#[test]
fn without_a_branch_the_files_are_written_on_request() {
    let repo = theirs();
    repo.git(&["switch", "--quiet", "--detach"]);
    let refused = repo.squad(&["adopt"]);
    assert!(refused.code == 1 && refused.err.contains("--no-commit"), "{refused}");
    let written = repo.squad(&["adopt", "--no-commit"]);
    assert!(written.code == 0 && written.err.contains("8 files, not committed"), "{written}");
    assert_eq!(repo.git(&["diff", "--cached"]), "");
    let changed = repo.git(&["add", "--all"]) + &repo.git(&["write-tree"]);
    repo.git(&["reset", "--quiet", "--hard"]);
    repo.git(&["switch", "--quiet", "main"]);
    assert_eq!(repo.squad(&["adopt"]).code, 0);
    assert_eq!(tree(&repo, "HEAD"), changed);
}

#[test]
fn an_untracked_team_is_not_committed() {
    let mut repo = TestRepo::empty();
    repo.installed = installed(".squad");
    repo.write("a.txt", "a\n");
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message=first"]);
    written_in(&repo, "", ".squad");
    let refused = repo.squad(&["adopt"]);
    assert!(refused.code == 1 && refused.err.contains("cannot commit: .squad is not committed"), "{refused}");
    let written = repo.squad(&["adopt", "--no-commit"]);
    assert!(written.code == 0 && !repo.exists(".squad/templates/charter.md"), "{written}");
    assert!(repo.exists(".squad/templates/skill.md") && repo.read(".mcp.json").contains("\"mcp\""));
}

#[test]
fn a_team_in_a_subfolder_is_adopted_there() {
    let repo = committed("packages/a/", ".squad");
    repo.write(".mcp.json", SERVERS);
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message=root"]);
    let adopted = repo.squad_in(&repo.root().join("packages/a"), &["adopt"]);
    assert!(adopted.code == 0 && adopted.out.contains("removed  packages/a/"), "{adopted}");
    assert!(repo.read("packages/a/.mcp.json").contains("\"mcp\"") && !repo.read(".mcp.json").contains("\"mcp\""));
    assert_undone(&repo);
}

#[test]
fn odd_work_trees() {
    // A linked work tree whose branch has the team.
    let repo = theirs();
    repo.git(&["worktree", "add", "--quiet", "-b", "side", "../side"]);
    let adopted = repo.squad_in(&repo.root().join("../side"), &["adopt"]);
    assert!(adopted.code == 0, "{adopted}");
    assert_eq!(
        (repo.git(&["status", "--porcelain"]), tree(&repo, "side") == tree(&repo, "main")),
        (String::new(), false)
    );
    // A linked work tree that uses the main work tree's team.
    let bare = repo.git(&["hash-object", "-t", "tree", "-w", "--stdin"]);
    let empty = repo.git(&["commit-tree", "-m", "empty", bare.trim()]);
    repo.git(&["worktree", "add", "--quiet", "-b", "empty", "../empty", empty.trim()]);
    let refused = repo.squad_in(&repo.root().join("../empty"), &["adopt"]);
    assert!(refused.code == 3 && refused.err.contains("belongs to the main work tree"), "{refused}");
    // A sparse checkout without the templates.
    let repo = theirs();
    repo.git(&["sparse-checkout", "set", "--no-cone", "/*", "!/.squad/templates", "!/.github"]);
    assert!(!repo.exists(".squad/templates"));
    assert_eq!(repo.squad(&["adopt"]).code, 0);
    assert_eq!((repo.git(&["status", "--porcelain"]), repo.exists(".github")), (String::new(), false));
    assert_undone(&repo);
    // A bare repository.
    repo.git(&["clone", "--quiet", "--bare", ".", "../bare"]);
    let refused = repo.squad_in(&repo.root().join("../bare"), &["adopt"]);
    assert!(refused.code == 3 && refused.err.contains("bare"), "{refused}");
}

#[test]
fn line_endings_of_the_checkout_do_not_matter() {
    for folder in [".squad", ".ai-team"] {
        let repo = committed("", folder);
        repo.git(&["config", "core.autocrlf", "true"]);
        repo.git(&["rm", "-r", "--quiet", "--cached", "."]);
        repo.git(&["reset", "--quiet", "--hard"]);
        assert!(repo.read(".mcp.json").contains("\r\n"));
        let adopted = repo.squad(&["adopt"]);
        assert!(adopted.code == 0 && adopted.out.contains("removed"), "{adopted}");
        assert_eq!(repo.git(&["status", "--porcelain"]), "", "{folder}");
        assert!(repo.read(".mcp.json").contains("\"mcp\"") && repo.read(".gitignore").contains("\r\n"));
        assert_undone(&repo);
    }
    // CRLF in the repository itself.
    let repo = theirs();
    for path in [".squad/templates/charter.md", ".gitignore", ".mcp.json"] {
        repo.write(path, &repo.read(path).replace('\n', "\r\n"));
    }
    repo.git(&["commit", "--quiet", "--all", "--message=crlf"]);
    assert_eq!(repo.squad(&["adopt"]).code, 0);
    assert!(!repo.exists(".squad/templates/charter.md"));
    assert_eq!(repo.read(".gitignore"), "target/\r\n# Squad: ignore runtime state\r\n.squad/log/\r\n");
    assert_undone(&repo);
}

#[cfg(unix)]
#[test]
fn links_are_reported_and_executable_files_stay_executable() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let repo = committed("", ".ai-team");
    let root = repo.root();
    repo.write("../secret.md", "secret\n");
    symlink("../../secret.md", root.join(".ai-team/notes.md")).expect("a link");
    repo.write(".ai-team/run.sh", "true\n");
    std::fs::set_permissions(root.join(".ai-team/run.sh"), PermissionsExt::from_mode(0o755)).expect("it is ours");
    symlink("charter.md", root.join(".ai-team/templates/link.md")).expect("a link");
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message=odd"]);
    let adopted = repo.squad(&["adopt"]);
    assert!(
        adopted.code == 0 && adopted.out.contains("left     .ai-team/notes.md  (a link or a very large file"),
        "{adopted}"
    );
    assert!(repo.git(&["ls-files", "--stage", ".squad/run.sh"]).starts_with("100755 "), "{adopted}");
    assert_eq!(
        (repo.read("../secret.md"), repo.git(&["status", "--porcelain"])),
        ("secret\n".to_owned(), String::new())
    );
    assert_undone(&repo);
}

#[test]
fn there_is_nothing_to_adopt_in_squads_own_team() {
    let repo = TestRepo::with_team();
    let head = repo.git(&["rev-parse", "HEAD"]);
    let nothing = repo.squad(&["adopt"]);
    assert!(nothing.code == 0 && nothing.err.contains("There is nothing to adopt"), "{nothing}");
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), head);
    let nobody = TestRepo::empty();
    assert_eq!(nobody.squad(&["adopt"]).code, 3);
}

#[test]
fn conflict_markers_are_an_error() {
    let repo = theirs();
    repo.write(".squad/team.md", "<<<<<<< a\n| Name | Role |\n=======\n>>>>>>> b\n");
    let refused = repo.squad(&["adopt"]);
    assert!(refused.code == 3 && refused.err.contains(".squad/team.md"), "{refused}");
}

#[cfg(unix)]
#[test]
fn another_program_called_squad_is_reported() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let mut repo = theirs();
    let bin = repo.root().join("../bin");
    repo.write("../lib/node_modules/@bradygaster/squad-cli/dist/cli.js", "#!/usr/bin/env node\n");
    std::fs::create_dir(&bin).expect("a folder");
    symlink("../lib/node_modules/@bradygaster/squad-cli/dist/cli.js", bin.join("squad")).expect("a link");
    let path = repo.variables["PATH"].clone();
    repo.variables.insert("PATH".to_owned(), format!("{}:{path}", bin.display()));
    for command in ["adopt", "doctor"] {
        let said = repo.squad(&[command]).to_string();
        assert!(said.contains("bin/squad, which is the npm package @bradygaster/squad-cli"), "{said}");
    }
    let problems = json(&repo.squad(&["doctor", "--json"]))["problems"].to_string();
    assert!(problems.contains("\"other-squad\""), "{problems}");
    // An npm start script counts too. Another build is only a note, and this program is not reported.
    std::fs::remove_file(bin.join("squad")).expect("it is ours");
    repo.write("../bin/squad", "#!/bin/sh\nexec node ../squad-cli/dist/cli.js\n");
    std::fs::set_permissions(bin.join("squad"), PermissionsExt::from_mode(0o755)).expect("it is ours");
    assert_eq!(json(&repo.squad(&["adopt", "--json"]))["other_squad"]["is_of_npm"], true);
    repo.write("../bin/squad", "#!/bin/sh\n");
    assert_eq!(json(&repo.squad(&["adopt", "--json"]))["other_squad"]["is_of_npm"], false);
    std::fs::remove_file(bin.join("squad")).expect("it is ours");
    symlink(env!("CARGO_BIN_EXE_squad"), bin.join("squad")).expect("a link");
    assert!(json(&repo.squad(&["adopt", "--json"]))["other_squad"].is_null());
}

#[test]
fn init_suggests_adopt_for_an_existing_team() {
    let repo = theirs();
    let said = repo.squad(&["init"]);
    expect![[r#"
        --- stderr
        There is a team in .squad/ already; nothing was changed.
        Read 2 agents, 1 other member, 2 routing rules and 1 decision.
        hint: `squad adopt --dry-run` shows how squad would take over the team of another tool
        --- exit 0
    "#]]
    .assert_eq(&said.to_string());
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    let own = TestRepo::with_team();
    assert!(!own.squad(&["init"]).err.contains("adopt"));
}

/// A state branch, and notes on commits.
fn with_state() -> TestRepo {
    let repo = theirs();
    repo.git(&["switch", "--quiet", "--orphan", "squad-state"]);
    repo.write(
        "decisions.md",
        &format!(
            "{}\n### 2026-01-05: Time is UTC\n**By:** Bob\n\nEverywhere.\n",
            repo.git(&["show", "main:.squad/decisions.md"])
        ),
    );
    repo.write("decisions/inbox/ada-ropes.md", "### 2026-01-06: Ropes are blue\n**By:** Ada\n\nSo be it.\n");
    repo.write("agents/ada/history.md", "# History\n\n- Began.\n\n## Learnings\n\n- The suite needs TZ=UTC.\n");
    repo.write("log/today.md", "Much.\n");
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message=Update decisions.md"]);
    repo.git(&["switch", "--quiet", "main"]);
    let decision = r#"{"agent":"Bob","timestamp":"2026-01-07T10:00:00Z","type":"decision","decision":"Sign tokens\nwith RS256","reasoning":"As auth does."}"#;
    let research = r#"{"agent":"Bob","type":"research","topic":"Tokens","findings":{"size":"small"}}"#;
    repo.git(&["notes", "--ref=squad/bob", "add", "--message", decision, "HEAD"]);
    repo.git(&["notes", "--ref=squad/bob", "append", "--message", research, "HEAD"]);
    repo.git(&["notes", "--ref=squad/odd", "add", "--message", "no JSON", "HEAD"]);
    repo
}

#[test]
fn state_branches_and_notes_go_to_the_ledger() {
    let repo = with_state();
    let refs = repo.git(&["for-each-ref", "refs/heads/squad-state", "refs/notes"]);
    let shown = json(&repo.squad(&["adopt", "--dry-run", "--json"]));
    assert_eq!(repo.git(&["for-each-ref", "refs/squad"]), "");
    let adopted = json(&repo.squad(&["adopt", "--json"]));
    assert_eq!(adopted["state"], shown["state"]);
    expect![[r#"{"refs":["refs/heads/squad-state","refs/notes/squad/bob","refs/notes/squad/odd"],"decisions":3,"learnings":2}"#]].assert_eq(&adopted["state"].to_string());
    let listed = json(&repo.squad(&["decisions", "list", "--json"]));
    let states = listed["decisions"].as_array().expect("decisions").iter();
    let states: Vec<String> = states.map(|one| format!("{} {} {}", one["title"], one["by"], one["state"])).collect();
    expect![[r#"
        "Sign tokens with RS256" "Bob" "unlanded"
        "Ropes are blue" "Ada" "unlanded"
        "Time is UTC" "Bob" "unlanded"
        "Money is integer cents" "Ada" "in_force""#]]
    .assert_eq(&states.join("\n"));
    let learned = repo.git(&["grep", "-h", "-e", "^Tokens", "-e", "^The suite", "refs/squad/log"]);
    assert_eq!(learned, "The suite needs TZ=UTC.\nTokens\n");
    assert_eq!(repo.git(&["for-each-ref", "refs/heads/squad-state", "refs/notes"]), refs);
    // A second run finds nothing new, and the imported decisions can land.
    let entries = repo.git(&["ls-tree", "-r", "--name-only", "refs/squad/log"]);
    let again = repo.squad(&["adopt"]);
    assert!(again.err.contains("nothing to adopt"), "{again}");
    assert_eq!(repo.git(&["ls-tree", "-r", "--name-only", "refs/squad/log"]), entries);
    let landed = repo.squad(&["decisions", "land"]);
    assert!(landed.code == 0 && repo.squad(&["decisions", "list"]).out.contains("Time is UTC"), "{landed}");
    assert!(repo.squad(&["adopt"]).err.contains("nothing to adopt"));
    repo.assert_sound();
}

#[test]
fn one_note_with_all_state_is_read_too() {
    let repo = theirs();
    let state = r####"{"decisions.md":"### 2026-01-05: Time is UTC\n\nEverywhere.\n","agents/ada/history.md":"# Ada\n\n- Ports are even.\n","../out.md":"no"}"####;
    repo.git(&["notes", "--ref=squad", "add", "--message", state, "HEAD"]);
    let adopted = json(&repo.squad(&["adopt", "--json"]));
    assert_eq!((&adopted["state"]["decisions"], &adopted["state"]["learnings"]), (&1.into(), &1.into()), "{adopted}");
    assert!(repo.squad(&["decisions", "list"]).out.contains("Time is UTC"));
}

const REVIEWER: &str = "---\nname: code-reviewer\ndescription: Reviews code for bugs | and style. Use it after changes.\n\
    tools: Read, Grep\nmodel: sonnet\n---\n\nYou review code.\n";

#[test]
fn role_files_become_a_team_if_there_is_none() {
    let repo = TestRepo::empty();
    repo.write(".claude/agents/reviewer.md", REVIEWER);
    repo.write(".claude/agents/README.md", "# Roles\n");
    repo.write(
        ".github/agents/tests.agent.md",
        "---\nname: Test Writer\ndescription: \"Writes tests: unit, property\"\n---\nWrite tests.\n",
    );
    repo.write(".github/agents/squad.agent.md", PROMPT);
    repo.write(
        ".codex/agents/scout.toml",
        "name = \"file_scout\"\ndescription = \"Finds files\"\nmodel = \"gpt-5\"\ndeveloper_instructions = \"\"\"\nFind: \"them\".\n\"\"\"\n",
    );
    repo.write(".codex/agents/broken.toml", "name = \n");
    repo.write(".codex/agents/twin.toml", "name = \"Code Reviewer\"\n");
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message=roles"]);
    let shown = repo.squad(&["adopt", "--dry-run"]);
    assert!(shown.code == 0 && !repo.exists(".squad"), "{shown}");
    let adopted = repo.squad(&["adopt"]);
    let commit = repo.git(&["rev-parse", "--short=10", "HEAD"]);
    expect![[r#"
        Read 3 agents and 3 routing rules.
        added    .squad/agents/code-reviewer/charter.md
        added    .squad/agents/file-scout/charter.md
        added    .squad/agents/test-writer/charter.md
        added    .squad/routing.md
        added    .squad/team.md
        left     .codex/agents/broken.toml  (not a Codex role: string values must be quoted, expected literal string)
        left     .codex/agents/twin.toml  (line 5: the role has no text below its front matter)
        --- stderr
        note: .squad/agents/code-reviewer/charter.md:5: `sonnet` is a display name; engines know models by id
        hint: write the id, such as `claude-sonnet-4.5`
        Adopted the team: 5 files, committed in COMMIT.
        hint: `git revert` of that commit undoes it; `squad doctor` checks the team
        --- exit 0
    "#]]
    .assert_eq(&adopted.to_string().replace(commit.trim(), "COMMIT"));
    assert_eq!(repo.read(".squad/agents/code-reviewer/charter.md"), REVIEWER);
    expect![[r#"
        # Team

        ## Members

        | Name | Role | Charter | Status |
        |---|---|---|---|
        | code-reviewer | Reviews code for bugs and style | `.squad/agents/code-reviewer/charter.md` | Active |
        | Test Writer | Writes tests: unit, property | `.squad/agents/test-writer/charter.md` | Active |
        | file_scout | Finds files | `.squad/agents/file-scout/charter.md` | Active |
    "#]]
    .assert_eq(&repo.read(".squad/team.md"));
    expect![[r#"
        ---
        name: "file_scout"
        description: "Finds files"
        model: "gpt-5"
        ---

        Find: "them".
    "#]]
    .assert_eq(&repo.read(".squad/agents/file-scout/charter.md"));
    let agents = json(&repo.squad(&["agents", "--json"]));
    let agents: Vec<String> = agents["agents"]
        .as_array()
        .expect("agents")
        .iter()
        .map(|agent| format!("{} {} {}", agent["slug"], agent["model"], agent["tools"]))
        .collect();
    expect![[r#"
        "code-reviewer" "sonnet" ["Read","Grep"]
        "test-writer" null null
        "file-scout" "gpt-5" null"#]]
    .assert_eq(&agents.join("\n"));
    let plan = json(&repo.squad(&["route", "Find files about login", "--json"]));
    assert_eq!(plan["evidence"][0]["agent"], "file-scout", "{plan}");
    assert!(repo.squad(&["adopt"]).err.contains("nothing to adopt"));
    assert_undone(&repo);
}

#[test]
fn role_files_become_members_of_an_existing_team() {
    let repo = theirs();
    repo.write(".claude/agents/reviewer.md", REVIEWER);
    repo.write(".claude/agents/ada.md", "---\nname: Ada\ndescription: Somebody else\n---\n\nText.\n");
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message=roles"]);
    let adopted = repo.squad(&["adopt"]);
    assert!(adopted.err.contains("Not on the team: .claude/agents/reviewer.md."), "{adopted}");
    let shown = repo.squad(&["adopt", "--roles", "--dry-run"]);
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    assert!(shown.err.contains("code-reviewer would join the team, from .claude/agents/reviewer.md."), "{shown}");
    let before = tree(&repo, "HEAD");
    let joined = json(&repo.squad(&["adopt", "--roles", "--json"]));
    assert_eq!(
        joined["joined"],
        serde_json::json!([{"name": "code-reviewer", "source": ".claude/agents/reviewer.md"}])
    );
    let team = repo.read(".squad/team.md");
    let row = "| code-reviewer | Reviews code for bugs and style |";
    assert!(team.contains(row) && team.lines().filter(|line| line.contains("| Ada |")).count() == 1, "{team}");
    let added = team.lines().filter(|line| !TEAM.contains(line)).count();
    assert_eq!(added, 1, "{team}");
    let agents = json(&repo.squad(&["agents", "--json"]));
    let found = agents["agents"].as_array().expect("agents").iter().find(|agent| agent["slug"] == "code-reviewer");
    let charter = found.and_then(|agent| agent["charter"].as_str()).expect("a charter");
    assert_eq!(repo.read(charter), REVIEWER);
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    assert!(repo.squad(&["adopt", "--roles"]).err.contains("There is nobody to add"));
    repo.git(&["revert", "--no-edit", "HEAD"]);
    assert_eq!(tree(&repo, "HEAD"), before);
}

#[test]
fn leftovers_of_a_revert_do_not_hide_the_team() {
    let repo = committed("", ".ai-team");
    repo.write(".ai-team/log/today.md", "ignored\n");
    assert_eq!(repo.squad(&["adopt"]).code, 0);
    repo.git(&["revert", "--no-edit", "HEAD"]);
    assert!(repo.exists(".squad/log/today.md") && repo.exists(".ai-team/team.md"));
    let agents = repo.squad(&["agents"]);
    assert!(agents.code == 0 && agents.out.contains("Ada"), "{agents}");
    assert!(agents.err.contains("`.ai-team/` is used, since `.squad/` has no team.md"), "{agents}");
    assert_eq!(repo.squad(&["adopt"]).code, 0);
    assert!(!repo.exists(".ai-team") && repo.exists(".squad/log/today.md") && repo.exists(".squad/team.md"));
}

#[test]
fn import_into_a_repository_with_an_old_team_suggests_adopt() {
    let other = TestRepo::with_team();
    assert_eq!(other.squad(&["export", "team.squad"]).code, 0);
    let repo = committed("", ".ai-team");
    let file = other.root().join("team.squad");
    let refused = repo.squad(&["import", &file.display().to_string()]);
    assert!(refused.code == 3 && refused.err.contains("`squad adopt` moves that team"), "{refused}");
}

#[cfg(unix)]
#[test]
fn a_team_folder_that_links_out_of_the_project_is_an_error() {
    let repo = TestRepo::empty();
    let outside = repo.root().join("../outside");
    std::fs::create_dir(&outside).expect("a folder");
    std::fs::write(outside.join("team.md"), TEAM).expect("a file");
    std::os::unix::fs::symlink(&outside, repo.root().join(".squad")).expect("a link");
    for command in ["agents", "adopt", "upgrade"] {
        let refused = repo.squad(&[command]);
        assert!(refused.code == 3 && refused.err.contains("is a link out of the project's files"), "{refused}");
        assert!(refused.err.contains("squad init --from PATH"), "{refused}");
    }
}
