//! Reviews of what is odd: hostile text, places that are no usual work tree, files that cannot be read.

use crate::support::TestRepo;
use expect_test::expect;
use serde_json::{Value, json};

use crate::review::{commit, conflicts, decision, parted, review};

#[test]
fn nothing_of_a_branch_can_speak_in_our_name() {
    let repo = parted();
    decision(&repo, "eeee", "@octocat </details> `x` | # [a](b) <!-- http://x.example www.x.example GH-1 o/r#1", "");
    repo.write(
        ".squad/decisions/2026/01/05-abcd.md",
        "---\nid: abcd\n---\n# T\n\n</details>\n# Merged by @admin\n[!CAUTION]\n![i](https://x.example/i.png) \
         [a](//x.example) [b]: //x.example [^1]\n[^1]: in our name\n<img src=x> <!--\n```\n<script>\n\u{1b}[2J\n",
    );
    repo.write(".squad/agents/ada/charter.md", "# Ada — Backend Dev\n\n```````\n</details>\n");
    commit(&repo, "hostile");
    let page = repo.squad(&["decisions", "review", "main.."]).out;
    assert!(!page.contains('\u{1b}'), "{page}");
    let page = outside_of_fences(&page);
    assert!(!page.contains("@octocat") && !page.contains("@admin"), "{page}");
    for reaching in ["://", "www.", "GH-1", "![", "](", "[^", "[!", "]: ", "<img", "<!--", "#1"] {
        assert!(!page.replace("\\<", "").contains(reaching), "{reaching}: {page}");
    }
    assert!(!page.lines().any(|line| line.starts_with("# ") || line.starts_with("<script")), "{page}");
    assert_eq!(page.matches("<details>").count(), page.lines().filter(|line| *line == "</details>").count(), "{page}");
    let short = repo.squad(&["decisions", "review", "main..", "--limit", "900"]).out;
    assert!(short.chars().count() <= 900 && short.contains("left out"), "{short}");
}

/// What GitHub takes for more than plain text.
fn outside_of_fences(page: &str) -> String {
    let mut fence: Option<&str> = None;
    let mut text = String::new();
    for line in page.lines() {
        let marks = &line[..line.len() - line.trim_start_matches('`').len()];
        match fence {
            Some(open) if line == open => fence = None,
            Some(_) => {}
            None if marks.len() >= 3 => fence = Some(marks),
            None => text.push_str(&format!("{line}\n")),
        }
    }
    assert!(fence.is_none(), "{page}");
    text
}

/// The ids that a review has under a name.
fn ids(found: &Value, name: &str) -> Vec<String> {
    let all = found[name].as_array().expect("a list").iter();
    all.map(|one| one["id"].as_str().or(one["after"]["id"].as_str()).unwrap_or_default().to_owned()).collect()
}

#[test]
fn no_work_tree_is_needed() {
    let repo = parted();
    decision(&repo, "eeee", "Names are short", "");
    commit(&repo, "ours");
    let wanted = review(&repo, "main..feature");
    let folder = tempfile::tempdir().expect("a folder");
    let [bare, linked, shallow] = ["bare.git", "linked", "shallow"].map(|name| folder.path().join(name));
    let (root, place) = (repo.root().display().to_string(), |path: &std::path::Path| path.display().to_string());
    repo.git(&["clone", "--quiet", "--bare", &root, &place(&bare)]);
    repo.git(&["worktree", "add", "--quiet", "--detach", &place(&linked), "main"]);
    let in_place = |directory: &std::path::Path, range: &str| -> Value {
        let output = repo.squad_in(directory, &["decisions", "review", range, "--json"]);
        assert_eq!(output.code, 0, "{output}");
        serde_json::from_str(&output.out).expect("JSON")
    };
    assert_eq!(in_place(&bare, "main..feature"), wanted);
    assert_eq!(in_place(&linked, "main..feature"), wanted);
    assert!(repo.squad_in(&bare, &["decisions", "radar"]).err.contains("1 other branch with 1 decision"));
    assert!(repo.squad_in(&bare, &["agents", "diff", "main..feature"]).out.contains("Names are short"));
    // What is missing in a shallow clone is said.
    repo.git(&["clone", "--quiet", "--depth=1", "--no-single-branch", &format!("file://{root}"), &place(&shallow)]);
    let seen = in_place(&shallow, "origin/main..origin/feature");
    assert_eq!((ids(&seen, "new"), &seen["merge_base"]), (vec!["eeee".to_owned()], &Value::Null));
    assert!(seen["notes"].to_string().contains("git fetch --unshallow"), "{seen}");
    // A commit that is missing in any clone, and a repository without one.
    let empty = TestRepo::empty_on_disk();
    for (repo, directory, range, says) in [
        (&repo, &shallow, "nothing", "hint: this clone is shallow; fetch it: `git fetch --unshallow`"),
        (&repo, &linked, "nothing", "hint: `git branch --all` lists the branches"),
        (&empty, &empty.root(), "HEAD", "error: this branch has no commit yet"),
    ] {
        let output = repo.squad_in(directory, &["decisions", "review", range]);
        assert!(output.code == 2 && output.err.contains(says), "{output}");
        assert!(directory == &shallow || !output.err.contains("shallow"), "{output}");
    }
    // A detached HEAD is a revision like any other.
    repo.git(&["switch", "--quiet", "--detach"]);
    assert_eq!(ids(&review(&repo, "main.."), "new"), ["eeee"]);
    assert_eq!(ids(&review(&repo, "main...HEAD"), "new"), ["eeee"]);
    assert_eq!(ids(&review(&repo, "main"), "new"), ["eeee"]);
    assert_eq!(ids(&review(&repo, "..main"), "withdrawn"), Vec::<String>::new(), "main has parted from nothing");
}

#[test]
fn every_team_of_a_repository_can_be_reviewed_at_once() {
    let repo = parted();
    for place in ["packages/a", "packages/b"] {
        repo.write(&format!("{place}/.squad/team.md"), "# T\n\n| Name | Role |\n|---|---|\n| Kim | Dev |\n");
    }
    repo.write("packages/b/.squad/templates/.squad/team.md", "# Template\n");
    commit(&repo, "teams");
    let start = repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
    decision(&repo, "eeee", "Names are short", "");
    repo.write("packages/a/.squad/decisions/2026/01/05-a1.md", "---\nid: a1\n---\n# Use tabs\n");
    commit(&repo, "decided");
    // A team that is gone is still one of the range.
    repo.git(&["rm", "--quiet", "-r", "packages/b"]);
    commit(&repo, "gone");
    let output = repo.squad(&["decisions", "review", &format!("{start}.."), "--every-team", "--json"]);
    let teams: Value = serde_json::from_str(&output.out).expect("JSON");
    let found: Vec<(Value, Vec<String>)> =
        teams["teams"].as_array().expect("teams").iter().map(|team| (team["team"].clone(), ids(team, "new"))).collect();
    assert_eq!(
        found,
        [
            (json!(".squad"), vec!["eeee".to_owned()]),
            (json!("packages/a/.squad"), vec!["a1".to_owned()]),
            (json!("packages/b/.squad"), vec![]),
        ]
    );
    let page = repo.squad(&["decisions", "review", &format!("{start}.."), "--every-team", "--limit", "4000"]).out;
    assert!(page.contains("## Decisions in") && page.contains("## Decisions of `packages/a` in"), "{page}");
    assert!(page.chars().count() <= 4000, "{page}");
    let nothing = repo.squad(&["decisions", "review", "HEAD", "--every-team"]).out;
    assert_eq!(nothing.matches("No decision changes").count(), 1, "{nothing}");
}

#[test]
fn what_cannot_be_read_is_said() {
    let repo = parted();
    repo.write(".squad/decisions/2026/01/05-bbbb.md", "---\nid: [\n---\n# Money is stored as floating point\n");
    repo.write(".squad/decisions/2026/01/06-odd\nname.md", "---\nid: nnnn\n---\n# A name of two lines\n");
    std::fs::write(repo.root().join(".squad/decisions/2026/01/07-binary.md"), [0xff, 0xfe, 0, 1, 2, 0x80])
        .expect("a file");
    commit(&repo, "broken");
    let found = review(&repo, "main..");
    assert_eq!(ids(&found, "new"), ["nnnn"]);
    let notes = found["notes"].to_string();
    for file in ["05-bbbb.md", "07-binary.md"] {
        assert!(notes.contains(file), "{file}: {notes}");
    }
    assert!(repo.squad(&["decisions", "review", "main.."]).out.contains("05-bbbb.md"));
    // What was unreadable before is no news.
    repo.write("other.txt", "other\n");
    commit(&repo, "other");
    assert!(!review(&repo, "HEAD~1..")["notes"].to_string().contains("05-bbbb.md"));
}

#[test]
fn what_stood_in_conflict_before_is_not_the_branchs_doing() {
    let repo = parted();
    decision(&repo, "eeee", "Handlers log their input", "scope: [\"src/api/**\"]\n");
    commit(&repo, "twice");
    assert_eq!(conflicts(&review(&repo, "main..")), ["explicit scope-decided-twice [eeee,cccc]"]);
    let start = repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
    // A typing error is mended in one of the two.
    decision(&repo, "eeee", "Handlers log all of their input", "scope: [\"src/api/**\"]\n");
    commit(&repo, "mended");
    assert_eq!(conflicts(&review(&repo, &format!("{start}.."))), Vec::<String>::new());
    // What the base has withdrawn since is in nobody's way.
    repo.git(&["switch", "--quiet", "main"]);
    repo.git(&["rm", "--quiet", ".squad/decisions/2026/01/05-cccc.md"]);
    commit(&repo, "withdrawn");
    assert_eq!(conflicts(&review(&repo, "main..feature")), Vec::<String>::new());
}

#[test]
fn charters_that_move_routing_and_configuration_change_prompts() {
    let repo = parted();
    repo.write(".squad/agents/ada/charter.md", "# Ada — Backend Dev\n\nI own the ports.\n");
    commit(&repo, "charter");
    let prompts = |range: &str| -> Vec<Value> {
        let output = repo.squad(&["agents", "diff", range, "--json"]);
        let found: Value = serde_json::from_str(&output.out).expect("JSON");
        found["prompts"].as_array().expect("prompts").clone()
    };
    // The folder's name is the agent's.
    repo.git(&["mv", ".squad/agents/ada", ".squad/agents/ada-lovelace"]);
    repo.write(
        ".squad/team.md",
        &repo.read(".squad/team.md").replace("| Ada |", "| [Ada](agents/ada-lovelace/charter.md) |"),
    );
    commit(&repo, "moved");
    let moved = prompts("HEAD~1..");
    assert_eq!((&moved[0]["agent"], &moved[0]["was"]), (&json!("ada-lovelace"), &json!("ada")), "{moved:?}");
    let diff = moved[0]["diff"].as_str().expect("a diff");
    assert!(diff.contains("ada-lovelace") && !diff.contains("I own the ports"), "{diff}");
    assert!(repo.squad(&["decisions", "review", "HEAD~1.."]).out.contains("(`ada-lovelace`, before `ada`)"));
    // Routing is the coordinator's.
    repo.write(".squad/routing.md", &repo.read(".squad/routing.md").replace("| Testing | Bob |", "| Testing | Ada |"));
    commit(&repo, "routed");
    let routed = prompts("HEAD~1..");
    assert_eq!(routed.iter().map(|change| &change["agent"]).collect::<Vec<_>>(), ["coordinator"]);
    // A model that is everyone's, and a file that no longer says anything.
    repo.write(".squad/config.toml", "[models]\ndefault = \"big-1\"\n");
    commit(&repo, "model");
    assert!(prompts("HEAD~1..").iter().any(|change| change["after"]["model"] == "big-1"));
    repo.write(".squad/config.toml", "[models\n");
    commit(&repo, "broken");
    assert!(review(&repo, "HEAD~1..")["notes"].to_string().contains("config.toml"));
}

#[test]
fn a_range_that_is_not_here_is_said_so() {
    let repo = parted();
    for range in ["nowhere..main", "--all", "main..--output=x", "main^{tree}.."] {
        let output = repo.squad(&["decisions", "review", "--", range]);
        assert!(output.code == 2 && output.err.contains("there is no commit"), "{range}: {output}");
    }
    // A history of its own.
    repo.git(&["switch", "--quiet", "--orphan", "island"]);
    repo.write("x", "x");
    commit(&repo, "island");
    let found = repo.squad(&["decisions", "review", "main..island", "--json"]);
    let found: Value = serde_json::from_str(&found.out).unwrap_or_else(|_| panic!("{found}"));
    assert!(
        found["merge_base"].is_null() && found["notes"][0].as_str().is_some_and(|n| n.contains("no common commit"))
    );
}

#[test]
fn prompts_are_compared_without_a_checkout() {
    let repo = parted();
    repo.write(".squad/agents/ada/charter.md", "# Ada — Backend Dev\n\n## Model\n\n- Preferred: big-1\n");
    commit(&repo, "charter");
    repo.git(&["switch", "--quiet", "main"]);
    expect![[r#"
        Ada  391 tokens on big-1, before 393 tokens on claude-sonnet-4.5
        @@ -1,6 +1,8 @@
         # Ada — Backend Dev
 
        -You are Ada, the team's Backend Dev.
        +## Model
        +
        +- Preferred: big-1
 
         # Working in this team
 

        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["agents", "diff", "main..feature"]).to_string());
    assert!(repo.squad(&["agents", "diff", "main..main"]).err.contains("No agent's prompt changes"));
}
