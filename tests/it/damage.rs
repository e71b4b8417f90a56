//! A ledger of which something is missing, broken or made up: it costs what is damaged and nothing else.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use crate::support::{Output, TestRepo};

/// A team with two decisions in the ledger alone, one on the branch, a run, and what it taught.
pub(crate) fn with_ledger() -> TestRepo {
    let repo = TestRepo::with_small_team();
    let done = |output: Output| assert_eq!(output.code, 0, "{output}");
    done(repo.squad(&["decisions", "add", "On the branch"]));
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ tool = \"squad_remember\", args = { text = \"Learned\" } }, { say = \"Done.\" }]\n";
    done(repo.rehearse(script, &["--agent", "ada", "learn"]));
    repo.git(&["checkout", "--quiet", "--detach"]);
    done(repo.squad(&["decisions", "add", "First"]));
    done(repo.squad(&["decisions", "add", "Second"]));
    repo.git(&["checkout", "--quiet", "main"]);
    repo
}

/// What git prints, given these bytes.
pub(crate) fn git_with(repo: &TestRepo, place: &Path, arguments: &[&str], input: &[u8]) -> String {
    let mut command = repo.command("git", place);
    let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("git runs");
    child.stdin.take().expect("a pipe").write_all(input).expect("it listens");
    let done = child.wait_with_output().expect("git ends");
    assert!(done.status.success(), "git {arguments:?}");
    String::from_utf8(done.stdout).expect("UTF-8").trim().to_owned()
}

/// Every object in a file of its own, so that single ones can go.
pub(crate) fn loosen(repo: &TestRepo, place: &Path) {
    let packs = repo.git_in(place, &["rev-parse", "--path-format=absolute", "--git-path", "objects/pack"]);
    for file in fs::read_dir(packs.trim()).expect("a folder").map(|file| file.expect("a file").path()) {
        let aside = repo.root().join("..").join(file.file_name().expect("a name"));
        fs::rename(&file, &aside).expect("it is ours");
        if aside.extension().is_some_and(|extension| extension == "pack") {
            git_with(repo, place, &["unpack-objects", "-q"], &fs::read(aside).expect("a pack"));
        }
    }
}

fn object_file(repo: &TestRepo, place: &Path, id: &str) -> std::path::PathBuf {
    let folder = repo.git_in(place, &["rev-parse", "--path-format=absolute", "--git-path", "objects"]);
    Path::new(folder.trim()).join(&id[..2]).join(&id[2..])
}

/// Puts other bytes in place of an object's, or nothing, and returns its id.
pub(crate) fn spoil(repo: &TestRepo, place: &Path, what: &str, bytes: Option<&[u8]>) -> String {
    let id = repo.git_in(place, &["rev-parse", what]).trim().to_owned();
    loosen(repo, place);
    let file = object_file(repo, place, &id);
    fs::remove_file(&file).expect("a loose object");
    if let Some(bytes) = bytes {
        fs::write(&file, bytes).expect("written");
    }
    id
}

/// The paths of the ledger's entries, in the order in which they were made.
fn entries(repo: &TestRepo, kind: &str) -> Vec<String> {
    let listed = repo.git(&["ls-tree", "-r", "--name-only", "refs/squad/log"]);
    listed.lines().filter(|path| path.contains(kind)).map(str::to_owned).collect()
}

/// Adds a file to the ledger as anybody might, and returns its path.
fn forge(repo: &TestRepo, path: &str, bytes: &[u8]) -> String {
    let root = repo.root();
    let index = root.join(".git/forged").display().to_string();
    let git = |arguments: &[&str]| {
        let done = repo.command("git", &root).env("GIT_INDEX_FILE", &index).args(arguments).output();
        let done = done.expect("git runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).expect("UTF-8").trim().to_owned()
    };
    let blob = git_with(repo, &root, &["hash-object", "-w", "--stdin"], bytes);
    git(&["read-tree", "refs/squad/log"]);
    git(&["update-index", "--add", "--cacheinfo", &format!("100644,{blob},{path}")]);
    let tree = git(&["write-tree"]);
    let commit = git(&["commit-tree", &tree, "-p", "refs/squad/log", "-m", "forged"]);
    git(&["update-ref", "refs/squad/log", &commit]);
    fs::remove_file(&index).expect("it is ours");
    path.to_owned()
}

/// Another entry like the newest decision, with something else in it.
fn forge_decision(repo: &TestRepo, change: impl Fn(&str) -> Vec<u8>) -> String {
    let last = entries(repo, "decision.logged").pop().expect("a decision");
    let text = repo.git(&["show", &format!("refs/squad/log:{last}")]);
    let id = &last.rsplit('/').next().expect("a name")[..36];
    let other = format!("{}ffffffffffff", &id[..24]);
    let path = last.replace(id, &other);
    forge(repo, &path, &change(&text.replacen(id, &other, 1)))
}

fn decision_id(text: &str) -> String {
    let id = text.split("\"id\":\"").nth(1).expect("a decision's id");
    id.split('"').next().expect("its end").to_owned()
}

/// A tree of a few objects that unfolds to more paths than anybody can count.
fn bomb(repo: &TestRepo) -> String {
    let root = repo.root();
    let mut object = git_with(repo, &root, &["hash-object", "-w", "--stdin"], b"boom");
    let mut kind = "100644 blob";
    for _ in 0..12 {
        let lines: String = (0..20).map(|at| format!("{kind} {object}\tf{at:02}\n")).collect();
        object = git_with(repo, &root, &["mktree"], lines.as_bytes());
        kind = "040000 tree";
    }
    let mut tree = repo.git(&["ls-tree", "refs/squad/log:decisions"]);
    tree.push_str(&format!("040000 tree {object}\t2027\n"));
    let decisions = git_with(repo, &root, &["mktree"], tree.as_bytes());
    let tree: String = repo
        .git(&["ls-tree", "refs/squad/log"])
        .lines()
        .map(|line| match line.ends_with("\tdecisions") {
            true => format!("040000 tree {decisions}\tdecisions\n"),
            false => format!("{line}\n"),
        })
        .collect();
    let tree = git_with(repo, &root, &["mktree"], tree.as_bytes());
    let commit = repo.git(&["commit-tree", &tree, "-p", "refs/squad/log", "-m", "bomb"]);
    repo.git(&["update-ref", "refs/squad/log", commit.trim()]);
    "decisions/2027/f".to_owned()
}

struct Case {
    name: &'static str,
    /// Damages the ledger and returns what names the damage.
    damage: fn(&TestRepo) -> String,
    /// Whether the decisions that are in the ledger alone can still be read.
    hides_decisions: bool,
}

fn lost_folder(repo: &TestRepo, folder: &str, bytes: Option<&[u8]>) -> String {
    // By its object: when something is added there, the folder that cannot be read moves.
    spoil(repo, &repo.root(), &format!("refs/squad/log:{folder}"), bytes)
}

fn lost_entry(repo: &TestRepo, kind: &str, bytes: Option<&[u8]>) -> String {
    let path = entries(repo, kind).pop().expect("an entry");
    spoil(repo, &repo.root(), &format!("refs/squad/log:{path}"), bytes);
    path
}

fn case(name: &'static str, hides_decisions: bool, damage: fn(&TestRepo) -> String) -> Case {
    Case { name, damage, hides_decisions }
}

#[test]
fn a_lost_entry_costs_itself() {
    check(vec![
        case("an entry is missing", false, |repo| lost_entry(repo, "memory.logged", None)),
        case("an entry is empty", false, |repo| lost_entry(repo, "memory.logged", Some(b""))),
        case("an entry is broken", false, |repo| lost_entry(repo, "run.completed", Some(b"\x78\x01rubbish"))),
        case("a decision is missing", false, |repo| lost_entry(repo, "decision.logged", None)),
        case("a landing is missing", false, |repo| lost_entry(repo, "decision.landed", None)),
    ]);
}

#[test]
fn a_lost_folder_costs_what_is_in_it() {
    check(vec![
        case("a minute is missing", true, |repo| lost_folder(repo, "decisions/2026/01/05/09/00", None)),
        case("an hour is broken", true, |repo| lost_folder(repo, "decisions/2026/01/05/09", Some(b"no zlib"))),
        case("a year is missing", true, |repo| lost_folder(repo, "decisions/2026", None)),
        case("a place is missing", true, |repo| lost_folder(repo, "decisions", None)),
        case("the log is missing", false, |repo| lost_folder(repo, "log", None)),
        case("the root is missing", true, |repo| spoil(repo, &repo.root(), "refs/squad/log^{tree}", None)),
    ]);
}

#[test]
fn an_entry_that_squad_did_not_write_costs_itself() {
    check(vec![
        case("an entry's id is a path", false, |repo| {
            forge_decision(repo, |text| text.replacen("id: \"", "id: \"../../", 1).into_bytes())
        }),
        case("a decision's id is a path", false, |repo| {
            forge_decision(repo, |text| text.replace(&decision_id(text), "../../x").into_bytes())
        }),
        case("an agent's name is a path", false, |repo| {
            forge_decision(repo, |text| text.replace("agent: null", "agent: \"../../x\"").into_bytes())
        }),
        case("two have one id", false, |repo| {
            forge_decision(repo, |text| text.replace("Second", "Another").into_bytes())
        }),
        case("two have one id and say the same", false, |repo| forge_decision(repo, |text| text.as_bytes().to_vec())),
        case("a later squad wrote it", false, |repo| {
            forge_decision(repo, |text| text.replace("squad: 1", "squad: 99").into_bytes())
        }),
    ]);
}

#[test]
fn bytes_that_are_no_entry_cost_themselves() {
    check(vec![
        case("it is not UTF-8", false, |repo| forge_decision(repo, |_| b"---\nsquad: 1\n\xff\xfe\n---\n".to_vec())),
        case("it has no front matter", false, |repo| forge_decision(repo, |_| b"hello\n".to_vec())),
        case("it is no JSON", false, |repo| {
            forge_decision(repo, |text| text.replace("kind: \"", "kind: x\"").into_bytes())
        }),
        case("it is huge", false, |repo| forge_decision(repo, |_| vec![b'x'; 65 << 20])),
        case("its folders have no end", false, bomb),
    ]);
}

/// Every command that reads the ledger or adds to it.
const COMMANDS: [&[&str]; 11] = [
    &["decisions", "list"],
    &["log"],
    &["log", "2026"],
    &["status"],
    &["agents", "show", "ada", "--prompt"],
    &["route", "fix the endpoint"],
    &["why", "ID"],
    &["orchestrate", "--engine", "rehearsal", "--agent", "ada", "go on"],
    &["decisions", "add", "Later"],
    &["decisions", "land"],
    &["history", "land"],
];

fn check(cases: Vec<Case>) {
    let mut wrong = Vec::new();
    for Case { name, damage, hides_decisions } in cases {
        let repo = with_ledger();
        let list: serde_json::Value =
            serde_json::from_str(&repo.squad(&["decisions", "list", "--json"]).out).expect("JSON");
        let all = list["decisions"].as_array().expect("a list");
        let ours =
            all.iter().find(|decision| decision["title"].as_str().is_some_and(|it| it.contains("On the branch")));
        let id = ours.and_then(|decision| decision["id"].as_str()).expect("it is there").to_owned();
        let named = damage(&repo);
        // Nothing is known from before.
        fs::remove_dir_all(repo.root().join(".git/squad/index")).expect("it is made again");
        let has_runs = !repo.squad(&["log"]).out.is_empty();
        let mut insist = |is_so: bool, what: &str, output: &Output| {
            if !is_so {
                wrong.push(format!("{name}: {what} ({named})\n{output}"));
            }
        };
        let list = repo.squad(&["decisions", "list"]);
        insist(list.code == 0 && list.out.contains("On the branch"), "the branch's decision is answered", &list);
        insist(!list.out.contains("Another"), "of two with one id the right one counts", &list);
        insist(!(hides_decisions || named.contains("decision")) || list.err.contains(&named), "it is named", &list);
        insist(hides_decisions || list.out.contains("First"), "the ledger's decisions are answered", &list);
        let doctor = repo.squad(&["doctor", "--verbose"]);
        insist(doctor.code == 1 && doctor.out.contains(&named), "doctor finds it", &doctor);
        for command in COMMANDS.iter().filter(|command| has_runs || command[..] != ["log", "2026"]) {
            let mut command: Vec<&str> = command.iter().map(|word| if *word == "ID" { &id } else { *word }).collect();
            command.push("--verbose");
            let output = repo.squad(&command);
            // Nobody knows why a person decided something.
            let is_answered = output.code == u8::from(command[0] == "why");
            // These two read decisions only.
            let looks_there = !(command[0] == "decisions" && ["add", "land"].contains(&command[1]));
            let is_named = output.err.contains(&named) || !(looks_there || named.contains("decision"));
            insist(is_answered && is_named, &format!("{command:?} answers and names it"), &output);
        }
        let json: serde_json::Value =
            serde_json::from_str(&repo.squad(&["decisions", "list", "--json"]).out).expect("JSON");
        let problems = json["problems"].as_array().map_or(&[][..], Vec::as_slice);
        let list = repo.squad(&["decisions", "list"]);
        let names =
            |problem: &serde_json::Value| format!("{}: ", problem["file"].as_str().expect("a file")).contains(&named);
        insist(problems.iter().any(names), "JSON names it", &list);
        insist(list.out.contains("Later"), "what comes later is answered", &list);
        let branch = repo.git(&["ls-tree", "-r", "--name-only", "HEAD"]);
        insist(hides_decisions || branch.contains("-first-"), "what can be read lands", &list);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn ledger(repo: &TestRepo, place: &Path) -> String {
    repo.git_in(place, &["ls-tree", "-r", "--name-only", "refs/squad/log"])
}

/// git tidies up, and finds nothing wrong.
fn assert_whole(repo: &TestRepo, place: &Path, case: &str) {
    repo.git_in(place, &["-c", "gc.reflogExpire=now", "gc", "--quiet"]);
    repo.git_in(place, &["fsck", "--full", "--strict"]);
    let doctor = repo.squad_in(place, &["doctor", "--verbose"]);
    assert!(!doctor.out.contains("refs/squad/log"), "{case}: {doctor}");
}

#[test]
fn what_a_remote_has_is_fetched_and_nothing_goes() {
    for what in ["refs/squad/log:decisions", "refs/squad/log:log/2026", "refs/squad/log~1^{tree}", "entry"] {
        let repo = with_ledger();
        let root = repo.root();
        repo.git(&["init", "--quiet", "--bare", "../hub.git"]);
        repo.git(&["remote", "add", "origin", "../hub.git"]);
        assert_eq!(repo.squad(&["sync", "--yes"]).code, 0);
        let (before, list) = (ledger(&repo, &root), repo.squad(&["decisions", "list"]).out);
        let what = match what {
            "entry" => format!("refs/squad/log:{}", entries(&repo, "decision.logged")[0]),
            what => what.to_owned(),
        };
        spoil(&repo, &root, &what, Some(b"rubbish"));
        let plan = repo.squad(&["doctor", "--repair"]);
        assert!(plan.code == 1 && plan.err.contains("Nothing was changed"), "{what}: {plan}");
        let output = repo.squad(&["doctor", "--repair", "--yes"]);
        assert!(output.code == 0 && output.out.contains("0 entries set aside"), "{what}: {output}");
        assert_eq!((ledger(&repo, &root), repo.squad(&["decisions", "list"]).out), (before, list), "{what}");
        assert_whole(&repo, &root, &what);
        assert_eq!(repo.squad(&["doctor", "--repair"]).out, "The ledger is whole.\n", "{what}");
    }
}

#[test]
fn what_nobody_has_is_set_aside_and_no_union_brings_it_back() {
    for case in ["lost", "forged"] {
        let repo = with_ledger();
        let root = repo.root();
        let path = match case {
            "lost" => lost_entry(&repo, "memory.logged", None),
            _ => forge_decision(&repo, |_| b"hello\n".to_vec()),
        };
        // Another clone has the same damage, and is never repaired.
        let other = root.join("../other");
        let copied = repo.command("cp", &root).args(["-r", ".", &other.display().to_string()]).status();
        assert!(copied.expect("cp runs").success());
        let tip = repo.git(&["rev-parse", "refs/squad/log"]);
        let plan = repo.squad(&["doctor", "--repair"]);
        assert!(plan.code == 1 && plan.err.contains(&path), "{case}: {plan}");
        assert_eq!(repo.git(&["rev-parse", "refs/squad/log"]), tip);
        let output = repo.squad(&["doctor", "--repair", "--yes"]);
        assert!(output.code == 0 && output.out.contains("1 entry set aside"), "{case}: {output}");
        let healed = ledger(&repo, &root);
        assert!(!healed.contains(&path) && healed.contains("scrub.completed"), "{case}: {healed}");
        let record = healed.lines().find(|line| line.contains("scrub.completed")).expect("a record");
        let record = repo.git(&["show", &format!("refs/squad/log:{record}")]);
        assert!(record.contains(&path) && record.contains("\"reason\""), "{case}: {record}");
        let list = repo.squad(&["decisions", "list"]);
        assert!(
            list.out.contains("First") && list.out.contains("Second") && !list.err.contains("warning"),
            "{case}: {list}"
        );
        assert_whole(&repo, &root, case);
        // Again there is nothing to do.
        assert_eq!(repo.squad(&["doctor", "--repair", "--yes"]).out, "The ledger is whole.\n");

        repo.git(&["init", "--quiet", "--bare", "../hub.git"]);
        for place in [&root, &other] {
            repo.git_in(place, &["remote", "add", "origin", &root.join("../hub.git").display().to_string()]);
            let output = repo.squad_in(place, &["sync", "--yes"]);
            assert_eq!(output.code, 0, "{case}: {output}");
        }
        assert_eq!(repo.squad(&["sync"]).code, 0);
        for place in [&root, &other] {
            assert!(!ledger(&repo, place).contains(&path), "{case}: {}", place.display());
        }
        assert_whole(&repo, &root, case);
    }
}

/// Of one that is gone, the one before it is what is left; nothing but the last entry is lost.
#[test]
fn a_lost_commit_costs_no_more_than_its_entry() {
    for (what, lost) in [("refs/squad/log", 1), ("refs/squad/log~1", 0), ("refs/squad/log~3", 0)] {
        let repo = with_ledger();
        let root = repo.root();
        let before = ledger(&repo, &root);
        spoil(&repo, &root, what, None);
        fs::remove_dir_all(root.join(".git/squad/index")).expect("it is made again");
        let doctor = repo.squad(&["doctor", "--verbose"]);
        let list = repo.squad(&["decisions", "list"]);
        if lost == 1 {
            assert!(doctor.code == 1 && doctor.err.is_empty(), "{what}: {doctor}");
            for output in [&doctor, &list, &repo.squad(&["decisions", "add", "Later"]), &repo.squad(&["log"])] {
                assert!(output.to_string().contains("squad doctor --repair"), "{what}: {output}");
            }
        } else {
            assert!(list.code == 0 && list.out.contains("Second"), "{what}: {list}");
            let added = repo.squad(&["decisions", "add", "Later"]);
            assert!(added.code == 0 && added.err.contains("landed"), "{what}: {added}");
        }
        let output = repo.squad(&["doctor", "--repair", "--yes"]);
        assert!(output.code == 0 && output.out.contains("The ledger is whole"), "{what}: {output}");
        let after = ledger(&repo, &root);
        let gone = before.lines().filter(|path| !after.contains(*path)).count();
        assert_eq!(gone, lost, "{what}: {output}");
        assert!(after.contains("scrub.completed"), "{what}");
        assert_whole(&repo, &root, what);
        let list = repo.squad(&["decisions", "list"]);
        assert!(list.code == 0 && list.out.contains("First"), "{what}: {list}");
        assert_eq!(repo.squad(&["decisions", "add", "And later"]).code, 0, "{what}");
    }
}

/// A ledger from before a scrub is not what is gone back to.
#[test]
fn no_repair_brings_back_what_was_scrubbed() {
    let repo = with_ledger();
    let root = repo.root();
    let scrub = repo.with_input("Second").squad_in(&root, &["scrub", "--value-stdin", "--yes"]);
    assert_eq!(scrub.code, 0, "{scrub}");
    spoil(&repo, &root, "refs/squad/log", None);
    let output = repo.squad(&["doctor", "--repair", "--yes"]);
    assert_eq!(output.code, 0, "{output}");
    let tip = repo.git(&["rev-parse", "refs/squad/log^{tree}"]);
    let held = repo.command("git", &root).args(["grep", "-c", "Second", tip.trim()]).output().expect("git runs");
    assert!(!held.status.success(), "{}", String::from_utf8_lossy(&held.stdout));
}

#[test]
fn a_scrub_passes_over_what_is_damaged_and_cleans_the_rest() {
    for (case, damage) in [
        ("an entry", (|repo| lost_entry(repo, "memory.logged", None)) as fn(&TestRepo) -> String),
        ("a folder", |repo| spoil(repo, &repo.root(), "refs/squad/log:log", Some(b"rubbish"))),
    ] {
        let repo = with_ledger();
        let named = damage(&repo);
        let output = repo.with_input("Second").squad_in(&repo.root(), &["scrub", "--value-stdin", "--yes"]);
        assert!(output.code == 0 && output.err.contains("Removed from"), "{case}: {output}");
        assert!(case == "a folder" || output.err.contains(&named), "{case}: {output}");
        let list = repo.squad(&["decisions", "list"]).out;
        assert!(list.contains("First") && list.contains("[redacted:scrubbed]"), "{case}: {list}");
    }
}

#[test]
fn a_sync_brings_everything_but_what_is_damaged() {
    for damaged in [None, Some(&b"rubbish"[..])] {
        for is_first in [true, false] {
            let case = format!("{damaged:?} {is_first}");
            let repo = with_ledger();
            let root = repo.root();
            repo.git(&["init", "--quiet", "--bare", "../hub.git"]);
            repo.git(&["remote", "add", "origin", "../hub.git"]);
            if !is_first {
                assert_eq!(repo.squad(&["sync", "--yes"]).code, 0, "{case}");
            }
            repo.git(&["checkout", "--quiet", "--detach"]);
            assert_eq!(repo.squad(&["decisions", "add", "Third"]).code, 0, "{case}");
            let path = lost_entry(&repo, "decision.logged", damaged);
            assert_eq!(repo.squad(&["decisions", "add", "Fourth"]).code, 0, "{case}");
            for _ in 0..2 {
                let output = repo.squad(&["sync", "--yes"]);
                assert!(output.code == 0 && output.err.contains(&path), "{case}: {output}");
                let hub = repo.git_in(&root.join("../hub.git"), &["ls-tree", "-r", "--name-only", "refs/squad/log"]);
                let ours = ledger(&repo, &root);
                let missing: Vec<&str> = ours.lines().filter(|path| !hub.contains(*path)).collect();
                assert_eq!(missing, [path.as_str()], "{case}: {output}");
                assert!(repo.squad(&["status", "--json"]).out.contains("\"unsynced\":1}"), "{case}");
            }
            repo.git_in(&root.join("../hub.git"), &["fsck", "--full", "--strict"]);
            // Mended, it goes as ever.
            assert_eq!(repo.squad(&["doctor", "--repair", "--yes"]).code, 0, "{case}");
            assert_whole(&repo, &root, &case);
        }
    }
}

/// What the remote had when it was asked last.
#[test]
fn a_lost_copy_of_a_remotes_ledger_stops_nobody() {
    let repo = with_ledger();
    let root = repo.root();
    repo.git(&["init", "--quiet", "--bare", "../hub.git"]);
    repo.git(&["remote", "add", "origin", "../hub.git"]);
    assert_eq!(repo.squad(&["sync", "--yes"]).code, 0);
    assert_eq!(repo.squad(&["decisions", "add", "Later"]).code, 0);
    spoil(&repo, &root, "refs/squad/remotes/origin/log", None);
    for command in [&["status"][..], &["decisions", "add", "And later"], &["decisions", "list"], &["log"]] {
        let output = repo.squad(command);
        assert!(output.code == 0 && !output.err.contains("error"), "{command:?}: {output}");
    }
    let sync = repo.squad(&["sync"]);
    assert!(sync.code == 0 || sync.err.contains("squad doctor --repair"), "{sync}");
    let output = repo.squad(&["doctor", "--repair", "--yes"]);
    assert!(output.code == 0 && output.out.contains("0 entries set aside"), "{output}");
    assert_eq!(repo.squad(&["sync"]).code, 0);
    assert!(repo.squad(&["status", "--json"]).out.contains("\"unsynced\":0}"));
    assert_whole(&repo, &root, "a copy");
}

/// It moved down when something was added there.
#[test]
fn a_folder_that_is_found_again_is_put_back() {
    let repo = with_ledger();
    let root = repo.root();
    let before = ledger(&repo, &root);
    let folder = "refs/squad/log:decisions/2026/01/05";
    let bytes = repo.command("git", &root).args(["cat-file", "tree", folder]).output().expect("git runs").stdout;
    spoil(&repo, &root, folder, None);
    assert_eq!(repo.squad(&["decisions", "add", "Later"]).code, 0);
    assert!(repo.git(&["ls-tree", "--name-only", folder]).contains("lost~"));
    git_with(&repo, &root, &["hash-object", "-t", "tree", "-w", "--stdin"], &bytes);
    let list = repo.squad(&["decisions", "list"]);
    assert!(list.err.contains("`squad doctor --repair` puts it back"), "{list}");
    let output = repo.squad(&["doctor", "--repair", "--yes"]);
    assert!(output.code == 0 && output.out.contains("1 folder put back, 0 entries set aside"), "{output}");
    let after = ledger(&repo, &root);
    assert!(before.lines().all(|path| after.contains(path)) && !after.contains("lost~"), "{after}");
    let list = repo.squad(&["decisions", "list"]);
    assert!(!list.err.contains("warning") && list.out.contains("Second") && list.out.contains("Later"), "{list}");
    assert_whole(&repo, &root, "put back");
}

/// What somebody else may read is not lost: nothing is set aside for that.
#[cfg(unix)]
#[test]
fn what_may_not_be_read_is_not_lost() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;

    const NOBODY: u32 = 65_534;
    let repo = with_ledger();
    let root = repo.root();
    let path = entries(&repo, "memory.logged").pop().expect("an entry");
    let id = repo.git(&["rev-parse", &format!("refs/squad/log:{path}")]).trim().to_owned();
    let before = ledger(&repo, &root);
    loosen(&repo, &root);
    fs::remove_dir_all(root.join(".git/squad/index")).expect("it is made again");
    let program = root.join("../squad");
    fs::copy(env!("CARGO_BIN_EXE_squad"), &program).expect("copied");
    let file = object_file(&repo, &root, &id);
    let is_root = fs::metadata(&root).expect("it is there").uid() == 0;
    if is_root {
        // Whom nothing is forbidden.
        let place = root.join("..").display().to_string();
        let given = repo.command("chown", &root).args(["-R", &NOBODY.to_string(), &place]).status();
        assert!(given.expect("chown runs").success());
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).expect("it is ours");
    for arguments in [&["doctor", "--repair", "--yes"][..], &["agents", "show", "ada", "--prompt"]] {
        let mut command = repo.command(&program.display().to_string(), &root);
        if is_root {
            command.uid(NOBODY);
        }
        let output = command.args(arguments).output().expect("squad runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains("ermission denied"), "{arguments:?}: {said}");
        assert!(said.contains("check who owns the folder"), "{arguments:?}: {said}");
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("it is ours");
    let mut command = repo.command("git", &root);
    if is_root {
        command.uid(NOBODY);
    }
    let after = command.args(["ls-tree", "-r", "--name-only", "refs/squad/log"]).output().expect("git runs");
    assert_eq!(String::from_utf8_lossy(&after.stdout), before);
}
