//! `squad review [BASE]` and the MCP tool `review_changes`: reviewers side by side on one diff.

#![cfg(unix)]

use std::fs;
use std::process::Stdio;

use expect_test::expect;
use serde_json::{Value, json};

use crate::mcp_client::McpClient;
use crate::process::rest;
use crate::support::{TestRepo, temporary};

/// A repository without a team, with one change that is not committed, and reviewers that play this script.
pub(crate) fn changed(script: &str) -> TestRepo {
    let mut repo = TestRepo::empty();
    repo.write("cart.py", "def total(items):\n    return sum(items)\n\n\ndef count(items):\n    return len(items)\n");
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message=first"]);
    repo.write(
        "cart.py",
        "def total(items):\n    return sum(items) * 1.1\n\n\ndef count(items):\n    return len(items) - 1\n",
    );
    let path = repo.root().parent().expect("a folder").join("script.toml");
    fs::write(&path, script).expect("a script");
    repo.variables.insert("SQUAD_REHEARSAL".to_owned(), path.display().to_string());
    repo.variables.insert("SQUAD_ENGINE".to_owned(), "rehearsal".to_owned());
    repo
}

pub(crate) fn says(agent: &str, text: &str) -> String {
    format!("[[turn]]\nagent = \"{agent}\"\nsteps = [{{ say = {} }}]\n", json!(text))
}

pub(crate) fn finding(line: u64, quote: &str, severity: &str, text: &str) -> Value {
    json!({"path": "cart.py", "line": line, "quote": quote, "severity": severity, "text": text})
}

fn two_reviewers() -> String {
    let one = json!({"verdict": "reject", "findings": [
        finding(2, "    return sum(items) * 1.1", "high", "Prices are floats: 3 * 0.1 * 1.1 is not 0.33."),
        finding(6, "return len(items) - 1", "critical", "Off by one: an empty cart counts -1."),
    ]});
    let other = json!({"verdict": "approve", "findings": [
        finding(2, "+    return sum(items) * 1.1", "low", "The tax is not named."),
        finding(2, "return sum(items) * 1.2", "high", "Wrong rate."),
    ]});
    says("reviewer", &format!("Here:\n```json\n{one}\n```\n")) + &says("tester", &other.to_string())
}

#[test]
fn findings_stand_by_place_each_with_its_line_and_invented_ones_last() {
    let mut repo = changed(&two_reviewers());
    repo.variables.insert("SQUAD_MODEL".to_owned(), "m-1".to_owned());
    let before = repo.git(&["status", "--porcelain"]);
    let output = repo.squad(&["review", "--agent", "reviewer,tester"]);
    expect![[r#"
        cart.py:2
          > return sum(items) * 1.1
          high     reviewer (rehearsal): Prices are floats: 3 * 0.1 * 1.1 is not 0.33.
          low      tester (rehearsal): The tax is not named.
        cart.py:6
          > return len(items) - 1
          critical reviewer (rehearsal): Off by one: an empty cart counts -1.
        not found in the diff:
        cart.py:2
          > return sum(items) * 1.2
          high     tester (rehearsal): Wrong rate.
        rejected by reviewer (rehearsal)
        approved by tester (rehearsal)
        --- stderr
        Review 1 file against HEAD (15f085e4df), by 2 reviewers
        --- exit 1
    "#]]
    .assert_eq(&output.to_string());
    assert_eq!(repo.git(&["status", "--porcelain"]), before);
    let said: Value =
        serde_json::from_str(&repo.squad(&["review", "-a", "reviewer,tester", "--json"]).out).expect("JSON");
    assert_eq!(said["verdicts"][0]["verdict"], "rejected", "{said}");
    assert_eq!(said["verdicts"][1]["engine"], "rehearsal", "{said}");
    let shown = |finding: &Value| format!("{} {} {}", finding["line"], finding["by"], finding["in_diff"]);
    assert!(said["findings"].as_array().expect("findings").iter().all(|finding| finding["model"] == "m-1"), "{said}");
    let found: Vec<String> = said["findings"].as_array().expect("findings").iter().map(shown).collect();
    assert_eq!(found, ["2 \"reviewer\" true", "2 \"tester\" true", "6 \"reviewer\" true", "2 \"tester\" false"]);
    // No work was rejected: there is no author to lock out.
    let run = said["run"].as_str().expect("a run");
    assert!(repo.squad(&["review", "lift", run]).err.contains("locks nobody out"));
    repo.assert_sound();
}

#[test]
fn the_exit_code_is_the_verdict() {
    for (text, code, said) in [
        (json!({"verdict": "approve", "findings": []}).to_string(), 0, "approved by reviewer (rehearsal)"),
        (json!({"verdict": "reject", "findings": []}).to_string(), 1, "rejected by reviewer (rehearsal)"),
        (
            "Looks good to me!".to_owned(),
            1,
            "no verdict by reviewer (rehearsal); it said no verdict that squad can read",
        ),
    ] {
        let output = changed(&says("reviewer", &text)).squad(&["review"]);
        assert!(output.code == code && output.out.contains(said), "{text}: {output}");
    }
}

/// An engine that keeps what it was told, and answers this.
fn engine(folder: &std::path::Path, name: &str, answer: &str) {
    let kept = folder.join(format!("{name}.told"));
    let text = format!("#!/bin/sh\ncat >'{}'\nprintf '%s\\n' '{answer}'\n", kept.display());
    crate::support::script::write(&folder.join(name), &text);
}

#[test]
fn each_engine_gets_the_whole_diff_and_one_that_is_not_there_stops_no_other() {
    let folder = temporary::folder();
    let mut repo = changed("");
    repo.variables.remove("SQUAD_ENGINE");
    let message = json!({"id": "m", "type": "agent_message", "text": "{\"verdict\": \"approve\"}"});
    // `codex-print` starts it for each message.
    engine(folder.path(), "codex", &json!({"type": "item.completed", "item": message}).to_string());
    repo.variables.insert("PATH".to_owned(), format!("{}:{}", folder.path().display(), repo.variables["PATH"]));
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    repo.write("new.txt", &format!("token = \"{secret}\"\nhid\u{200b}den\n"));
    repo.write("logo.bin", "\0\u{1}");
    let output = repo
        .command(env!("CARGO_BIN_EXE_squad"), &repo.root())
        .args(["review", "--engine", "codex-print,gemini", "--json"])
        .output();
    let output = output.expect("it runs");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    let said: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(
        said["verdicts"][0],
        json!({"role": "reviewer-codex-print", "engine": "codex-print", "verdict": "approved"})
    );
    let absent = &said["verdicts"][1];
    assert_eq!((&absent["engine"], &absent["verdict"]), (&json!("gemini"), &json!("none")), "{said}");
    assert!(absent["reason"].as_str().expect("a reason").starts_with("gemini is not installed"), "{said}");
    let told = fs::read_to_string(folder.path().join("codex.told")).expect("it was told something");
    for part in [
        "-    return sum(items)\n+    return sum(items) * 1.1\n",
        "+++ b/new.txt\n@@ -0,0 +1,2 @@\n",
        "Binary files /dev/null and b/logo.bin differ",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains(secret) && !told.contains('\u{200b}'), "{told}");
    let none = repo.squad(&["review", "--engine", "gemini"]);
    assert!(none.code == 4 && none.err.contains("nobody can review: gemini is not installed"), "{none}");
}

/// Nobody can tell whether a finding in a file that did not fit is in the diff; it is not taken for an invented one.
#[test]
fn findings_in_what_was_too_long_stand_apart() {
    let in_long =
        json!({"path": "long.txt", "line": 19991, "quote": "word 19990", "severity": "low", "text": "Too many words."});
    let found = json!({"verdict": "reject", "findings": [
        finding(2, "invented()", "high", "It is not there."),
        in_long,
        finding(6, "return len(items) - 1", "critical", "Off by one."),
    ]});
    let repo = changed(&says("reviewer", &found.to_string()));
    repo.write("long.txt", &(0..20_000).map(|number| format!("word {number}\n")).collect::<String>());
    let output = repo.squad(&["review"]);
    expect![[r#"
        cart.py:6
          > return len(items) - 1
          critical reviewer (rehearsal): Off by one.
        too long to be shown, so not checked:
        long.txt:19991
          > word 19990
          low      reviewer (rehearsal): Too many words.
        not found in the diff:
        cart.py:2
          > invented()
          high     reviewer (rehearsal): It is not there.
        rejected by reviewer (rehearsal)
        --- stderr
        warning: the diff is too long to be shown whole; left out: the rest of long.txt
        Review 2 files against HEAD (15f085e4df), by 1 reviewer
        --- exit 1
    "#]]
    .assert_eq(&output.to_string());
}

#[test]
fn what_cannot_be_reviewed_is_said() {
    let repo = changed(&says("reviewer", "{\"verdict\": \"approve\"}"));
    let unknown = repo.squad(&["review", "nosuch"]);
    assert!(unknown.code == 2 && unknown.err.contains("no branch, tag or commit nosuch"), "{unknown}");
    let range = repo.squad(&["review", "main..HEAD"]);
    assert!(range.code == 2 && range.err.contains("hint: `squad review main` reviews all since"), "{range}");
    let nobody = repo.squad(&["review", "--agent", "nobody"]);
    assert!(nobody.code == 2 && nobody.err.contains("there is no reviewer `nobody`"), "{nobody}");
    let staged = repo.squad(&["review", "--staged"]);
    assert!(staged.code == 2 && staged.err.contains("nothing to review: no change against HEAD"), "{staged}");
    // A branch called `lift` is one like every other.
    repo.git(&["branch", "lift"]);
    repo.git(&["commit", "--quiet", "--all", "--message=second"]);
    let branch = repo.squad(&["review", "--", "lift"]);
    assert!(branch.code == 0 && branch.err.contains("Review 1 file against lift ("), "{branch}");
    let path = repo.squad(&["review", "lift", "--path", "docs"]);
    assert!(path.code == 2, "{path}");
    for elsewhere in ["../x", "/etc"] {
        let path = repo.squad(&["review", "--path", elsewhere]);
        assert!(path.code == 2 && path.err.contains(&format!("{elsewhere} is outside the repository")), "{path}");
    }
    let outside = TestRepo::folder().squad(&["review"]);
    assert_eq!(outside.code, 3, "{outside}");
}

/// A team without a reviewer gets the built-in one, and is told.
#[test]
fn the_teams_reviewers_review() {
    let repo = changed(&(says("reviewer", "{\"verdict\": \"approve\"}") + &says("rex", "{\"verdict\": \"approve\"}")));
    assert_eq!(repo.squad(&["init", "--agents", "backend"]).code, 0);
    let built_in = repo.squad(&["review"]);
    assert!(built_in.err.contains("the team has no reviewer, so the built-in one reviews"), "{built_in}");
    assert_eq!(built_in.code, 0, "{built_in}");
    assert_eq!(repo.squad(&["agents", "add", "Rex", "--role", "Code reviewer"]).code, 0);
    let own = repo.squad(&["review", "--json"]);
    let said: Value = serde_json::from_str(&own.out).expect("JSON");
    assert_eq!(said["verdicts"], json!([{"role": "rex", "engine": "rehearsal", "verdict": "approved"}]), "{own}");
}

#[test]
fn an_mcp_client_has_its_diff_reviewed() {
    let slow = "[[turn]]\nagent = \"writer\"\nsteps = [{ wait = \"5s\" }, { say = '{\"verdict\": \"approve\"}' }]\n";
    let repo = changed(&(two_reviewers() + slow));
    let mut client = McpClient::start_in(&repo, &repo.root(), &["--wait", "2"], &[]).greet("2025-11-25");
    let said = client.structured("review_changes", json!({"reviewers": ["reviewer", "tester"]}));
    assert_eq!((&said["status"], &said["verdicts"][0]["verdict"]), (&json!("completed"), &json!("rejected")), "{said}");
    let shown = |finding: &Value| format!("{} {} {}", finding["line"], finding["by"], finding["in_diff"]);
    let found: Vec<String> = said["findings"].as_array().expect("findings").iter().map(shown).collect();
    assert_eq!(found, ["2 \"reviewer\" true", "2 \"tester\" true", "6 \"reviewer\" true", "2 \"tester\" false"]);

    let begun = client.structured("review_changes", json!({"reviewers": ["reviewer", "writer"]}));
    assert_eq!(begun["status"], "running", "{begun}");
    let verdicts = [&begun["verdicts"][0]["verdict"], &begun["verdicts"][1]["verdict"]];
    assert_eq!(verdicts, ["rejected", "running"], "{begun}");
    let mut rest = client.structured("review_changes", json!({"squadId": begun["squadId"]}));
    for _ in 0..20 {
        if rest["status"] != "running" {
            break;
        }
        rest = client.structured("review_changes", json!({"squadId": begun["squadId"]}));
    }
    assert_eq!(rest["verdicts"][1]["verdict"], "approved", "{rest}");
    assert!(client.refused("review_changes", json!({"base": "nosuch"})).contains("no branch, tag or commit nosuch"));
    assert!(client.refused("review_changes", json!({"squadId": "x"})).contains("there is no run"));
    assert!(client.refused("review_changes", json!({"reviewers": true})).contains("must be an array or an integer"));
    let two = client.structured("review_changes", json!({"reviewers": 2}));
    assert_eq!(two["verdicts"].as_array().map(Vec::len), Some(2), "{two}");
}

/// The rehearsal's own reviewers answer in the form that they are asked for.
#[test]
fn a_review_can_be_rehearsed() {
    let mut repo = changed("");
    repo.variables.remove("SQUAD_REHEARSAL");
    let output = repo.squad(&["review", "--json"]);
    let said: Value = serde_json::from_str(&output.out).expect("JSON");
    assert_eq!((output.code, &said["verdicts"][0]["verdict"]), (0, &json!("approved")), "{output}");
}

/// Every new file is shown or named, whatever it is.
#[test]
fn new_files_are_shown_or_named() {
    let repo = changed(&says("reviewer", "{\"verdict\": \"approve\"}"));
    let write = |name: &str, bytes: &[u8]| fs::write(repo.root().join(name), bytes).expect("a file");
    repo.git(&["config", "core.quotePath", "true"]);
    write("latin.txt", b"caf\xe9 au lait\n");
    write("huge.txt", "word\n".repeat(60_000).as_bytes());
    write("hidden.py", "ok = 1 \u{200b}# \u{202e}x\n".as_bytes());
    write("data.bin", b"\0\x01");
    write("\u{fc}.txt", b"umlaut\n");
    std::os::unix::fs::symlink("elsewhere/target", repo.root().join("link")).expect("a link");
    for number in 0..100 {
        write(&format!("many-{number:03}.txt"), b"one\n");
    }
    let output = repo.squad(&["review", "--json"]);
    assert_eq!(output.code, 0, "{output}");
    let said: Value = serde_json::from_str(&output.out).expect("JSON");
    let log = repo.squad(&["log", said["run"].as_str().expect("a run"), "--json"]).out;
    let events: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let task = events.iter().flat_map(texts).find(|text| text.contains("~~~ diff")).expect("a task");
    for shown in [
        "+caf\u{fffd} au lait",
        "+ok = 1 [U+200B]# [U+202E]x",
        "new file mode 120000\n--- /dev/null\n+++ b/link\n@@ -0,0 +1,1 @@\n+elsewhere/target",
        "Binary files /dev/null and b/data.bin differ",
        "- huge.txt",
        "- many-099.txt",
        "- \u{fc}.txt",
    ] {
        assert!(task.contains(shown), "{shown}: {task}");
    }
    let files = repo.git(&["ls-files", "--others", "--exclude-standard"]).lines().count() + 1;
    assert!(output.err.contains(&format!("Review {files} files")), "{output}");
}

/// All texts in a value.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::Object(fields) => fields.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// Repositories of every format, with a commit and without one.
#[test]
fn every_kind_of_repository_can_be_reviewed() {
    for format in ["sha1", "sha256"] {
        let mut repo = TestRepo::folder();
        repo.git(&["init", "--quiet", &format!("--object-format={format}")]);
        repo.git(&["config", "user.name", "T"]);
        repo.git(&["config", "user.email", "t@example.com"]);
        repo.variables.insert("SQUAD_ENGINE".to_owned(), "rehearsal".to_owned());
        repo.write("a.txt", "one\n");
        repo.git(&["add", "a.txt"]);
        for name in ["log", "decisions"] {
            let output = repo.squad(&[name]);
            assert!(output.code == 0 && !output.to_string().contains("no team"), "{format}: {output}");
        }
        for arguments in [&["review"][..], &["review", "--staged"]] {
            let output = repo.squad(arguments);
            assert!(output.code == 0 && output.err.contains("Review 1 file"), "{format}: {output}");
        }
        repo.git(&["commit", "--quiet", "--message=first"]);
        repo.write("a.txt", "two\n");
        let output = repo.squad(&["review"]);
        assert!(output.code == 0 && output.err.contains("Review 1 file against HEAD ("), "{format}: {output}");
    }
}

/// Who names an engine gets it, whatever the blueprint's variables say; an engine that is not there is no verdict.
#[test]
fn the_engine_that_is_named_reviews() {
    let folder = temporary::folder();
    let message = json!({"id": "m", "type": "agent_message", "text": "{\"verdict\": \"approve\"}"});
    engine(folder.path(), "codex", &json!({"type": "item.completed", "item": message}).to_string());
    let mut repo = changed("");
    repo.variables.remove("SQUAD_REHEARSAL");
    repo.variables.remove("SQUAD_ENGINE");
    repo.variables.insert("PATH".to_owned(), format!("{}:{}", folder.path().display(), repo.variables["PATH"]));
    repo.variables.insert("ENGINE_COMMAND".to_owned(), "codex-print".to_owned());
    repo.variables.insert("RUN_TEMPLATE_PATH".to_owned(), "not/there".to_owned());
    let output = repo.squad(&["review"]);
    assert_eq!(output.code, 2, "{output}");
    let output = repo.squad(&["review", "--engine", "codex-print"]);
    assert!(output.code == 0 && output.out.contains("approved by reviewer-codex-print"), "{output}");
    let mut absent = changed("");
    absent.variables.remove("SQUAD_REHEARSAL");
    absent.variables.remove("SQUAD_ENGINE");
    let output = absent.squad(&["review"]);
    assert!(output.code == 4 && output.err.contains("nobody can review"), "{output}");
}

/// A reply has room for some of the findings: the gravest, and where all are.
#[test]
fn the_gravest_findings_are_kept() {
    let text = "What goes wrong here takes many words. ".repeat(40);
    let agents: Vec<String> =
        ["reviewer".to_owned()].into_iter().chain((2..=4).map(|n| format!("reviewer-{n}"))).collect();
    let of = |index: usize| {
        let grave = if index == 3 { "critical" } else { "low" };
        let one =
            |line: u64| finding(line, "    return len(items) - 1", if line == 7 { grave } else { "medium" }, &text);
        json!({"verdict": "reject", "findings": (1..=7).map(one).collect::<Vec<_>>()}).to_string()
    };
    let script: String = agents.iter().enumerate().map(|(index, agent)| says(agent, &of(index))).collect();
    let repo = changed(&script);
    let mut client = McpClient::greeted(&repo, "2025-11-25", &[]);
    let mut said = client.structured("review_changes", json!({"reviewers": 4}));
    while said["status"] == "running" {
        said = client.structured("review_changes", json!({"squadId": said["squadId"]}));
    }
    assert!(said.to_string().len() <= 20 * 1024, "{}", said.to_string().len());
    let found = said["findings"].as_array().expect("findings");
    assert!(found.len() > 5 && found.len() < 28, "{said}");
    assert_eq!(found.iter().filter(|finding| finding["severity"] == "critical").count(), 1, "{said}");
    assert!(found.iter().all(|finding| finding["severity"] != "low"), "{said}");
    assert_eq!(said["more"], json!(format!("{} more findings", 28 - found.len())));
    let whole = client.request("resources/read", json!({"uri": said["uri"]}));
    let whole: Value =
        serde_json::from_str(whole["result"]["contents"][0]["text"].as_str().expect("a text")).expect("JSON");
    assert_eq!(whole["review"]["findings"].as_array().map(Vec::len), Some(28));
}

/// Nobody resumes what was asked of named members: the commands that the log offers are those that work.
#[test]
fn what_comes_after_a_failed_review_works_as_it_is_typed() {
    let repo = changed("[[turn]]\nagent = \"reviewer\"\nsteps = [{ fail = \"no model\" }]\n");
    assert_eq!(repo.squad(&["review"]).code, 1);
    let log = repo.squad(&["log", "--json"]);
    let log: Value = serde_json::from_str(&log.out).expect("JSON");
    let shown = repo.squad(&["log", log["runs"][0]["run"].as_str().expect("a run")]);
    let next: Vec<&str> = shown.out.lines().skip_while(|line| !line.trim_start().starts_with("next ")).collect();
    let commands = next.iter().filter_map(|line| line.split_once("squad ")?.1.split("   ").next());
    let commands: Vec<Vec<&str>> = commands.map(|command| command.split(' ').collect()).collect();
    assert!(!commands.is_empty(), "{shown}");
    for command in commands {
        let output = repo.squad(&command);
        assert_eq!(output.code, 0, "{command:?}: {output}");
    }
}

#[test]
fn a_cancelled_review_is_an_interrupted_command() {
    let repo = changed("[[turn]]\nagent = \"reviewer\"\nsteps = [{ hang = true }]\n");
    let mut command = repo.command(env!("CARGO_BIN_EXE_squad"), &repo.root());
    let child = command.arg("review").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let child = child.expect("squad runs");
    let run = loop {
        let status: Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
        if let Some(run) = status["runs"][0]["run"].as_str() {
            break run.to_owned();
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    // A run that has just begun may not answer yet.
    while repo.squad(&["cancel", &run]).code != 0 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let (out, code) = rest(child);
    assert_eq!(code, Some(130), "{out}");
}
