//! Reviewers that answer each other's findings, and how much of the truth a review keeps.

use std::collections::BTreeMap;
use std::fs;

use expect_test::expect;
use serde_json::{Value, json};

use crate::mcp_client::McpClient;
use crate::review_diff::{changed, finding, says};
use crate::support::TestRepo;

fn answers(of: &[(usize, &str, &str)]) -> String {
    let of = of.iter().map(|(number, answer, why)| json!({"finding": number, "answer": answer, "evidence": why}));
    json!({"answers": of.collect::<Vec<_>>()}).to_string()
}

fn crossing() -> TestRepo {
    let one = json!({"verdict": "reject", "findings": [
        finding(6, "return len(items) - 1", "critical", "Off by one: an empty cart counts -1."),
    ]});
    let other =
        json!({"verdict": "approve", "findings": [finding(2, "sum(items) * 1.1", "low", "The tax is not named.")]});
    changed(
        &[
            says("reviewer", &one.to_string()),
            says("tester", &other.to_string()),
            says("reviewer-cross", &answers(&[(1, "disagree", "It is in the\nname."), (2, "agree", "I say so.")])),
            says("tester-cross", &format!("Here: {}", answers(&[(2, "agree", "count([]) is -1.")]))),
        ]
        .concat(),
    )
}

#[test]
fn each_answers_what_the_others_found() {
    let output = crossing().squad(&["review", "-a", "reviewer,tester", "--cross"]);
    expect![[r#"
        cart.py:2
          > sum(items) * 1.1
          low      tester (rehearsal): The tax is not named.
                   reviewer (rehearsal) disagrees: It is in the name.
        cart.py:6
          > return len(items) - 1
          critical reviewer (rehearsal): Off by one: an empty cart counts -1.
                   tester (rehearsal) agrees: count([]) is -1.
        rejected by reviewer (rehearsal)
        approved by tester (rehearsal)
        --- stderr
        Review 1 file against HEAD (15f085e4df), by 2 reviewers
        --- exit 1
    "#]]
    .assert_eq(&output.to_string());
    let repo = crossing();
    let alone = repo.squad(&["review", "-a", "reviewer", "--cross", "--json"]);
    let said: Value = serde_json::from_str(&alone.out).expect("JSON");
    assert_eq!((&said["findings"][0]["answers"], said["verdicts"].as_array().map(Vec::len)), (&Value::Null, Some(1)));
    let log = repo.squad(&["log", said["run"].as_str().expect("a run")]);
    assert!(log.out.contains("the others found nothing that it could answer"), "{log}");
}

#[test]
fn an_mcp_client_has_them_answer_each_other() {
    let repo = crossing();
    let mut client = McpClient::start_in(&repo, &repo.root(), &[], &[]).greet("2025-11-25");
    let said = client.structured("review_changes", json!({"reviewers": ["reviewer", "tester"], "cross": true}));
    let answers = |index: usize| {
        let opinion = &said["findings"][index]["answers"][0];
        format!("{} {}: {}", opinion["by"], opinion["answer"], opinion["evidence"])
    };
    assert_eq!(answers(0), "\"reviewer\" \"disagree\": \"It is in the\\nname.\"", "{said}");
    assert_eq!(answers(1), "\"tester\" \"agree\": \"count([]) is -1.\"", "{said}");
    assert_eq!((&said["status"], said["verdicts"].as_array().map(Vec::len)), (&json!("completed"), Some(2)), "{said}");
    let run = client.structured("get_run", json!({"squadId": said["squadId"]}));
    assert_eq!(run["members"].as_array().map(Vec::len), Some(4), "{run}");
}

#[test]
fn findings_can_be_scored() {
    let mut repo = crossing();
    let missing = repo.squad(&["review", "-a", "reviewer", "--reviewbench"]);
    assert!(missing.code == 2 && missing.err.contains("RB_PR_NUMBER is not set"), "{missing}");
    for (name, value) in [("NWO", "o/r"), ("PR_NUMBER", "7"), ("BASE", "aaa"), ("HEAD", "bbb"), ("AGENT", "mine")] {
        repo.variables.insert(format!("RB_{name}"), value.to_owned());
    }
    let output = repo.squad(&["review", "-a", "reviewer", "--reviewbench"]);
    let text = "Off by one: an empty cart counts -1.";
    let expected = json!({
        "pr": {"repo": "https://github.com/o/r", "pr_number": 7, "base": "aaa", "head": "bbb"}, "agent": "mine",
        "findings": [{"file": "cart.py", "start_line": 6, "end_line": 6, "message": text, "producer": "mine"}],
    });
    assert_eq!((output.code, serde_json::from_str(&output.out).ok()), (0, Some(expected)), "{output}");
}

/// A line that was right, what it has become, and what that breaks.
struct Defect {
    good: &'static str,
    bad: &'static str,
    what: &'static str,
}

/// Thirty files with two defects each.
fn planted() -> Vec<(&'static str, [Defect; 2])> {
    let defect = |line: &'static str| {
        let (code, what) = line.rsplit_once(" | ").expect("what it breaks");
        let (good, bad) = code.split_once(" ⇒ ").expect("two lines");
        Defect { good, bad, what }
    };
    let lines: Vec<&str> = include_str!("../../fixtures/review/planted.txt").lines().collect();
    lines.chunks(3).map(|lines| (lines[0], [defect(lines[1]), defect(lines[2])])).collect()
}

const REVIEWERS: [&str; 4] = ["reviewer", "tester", "researcher", "debugger"];

/// What one of them says, and whether it is true and in the diff.
struct Said {
    by: &'static str,
    line: usize,
    quote: String,
    what: String,
    is_true: bool,
    is_there: bool,
}

/// Two reviewers see both defects and miscount lines; two err: they invent lines, accuse the right ones, or say nothing.
fn said(number: usize, lines: &[usize; 2], quotes: &[String; 2], defects: &[Defect; 2]) -> Vec<Said> {
    let mut all = Vec::new();
    for (place, by) in REVIEWERS.into_iter().enumerate() {
        let errs = (place + number) % 2 == 1;
        for (index, defect) in defects.iter().enumerate() {
            let (line, quote) = (lines[index], quotes[index].clone());
            // Two different defects under one title, in every fifth change.
            let title = if number.is_multiple_of(5) { "It is wrong." } else { defect.what };
            match (errs, index) {
                (false, _) => {
                    let quote = if place < 2 { quote } else { format!("+{quote}") };
                    let what = title.to_owned();
                    all.push(Said { by, line, quote, what, is_true: true, is_there: true });
                }
                (true, 0) => {
                    let what = format!("{by} does not like it.");
                    all.push(Said { by, line, quote, what, is_true: false, is_there: true });
                }
                (true, _) => {
                    let (quote, what) = (format!("invented_{number}()"), format!("{by} made it up."));
                    all.push(Said { by, line, quote, what, is_true: false, is_there: false });
                }
            }
        }
    }
    all
}

fn is_mute(number: usize, by: &str) -> bool {
    number % 4 == 3 && by == REVIEWERS[(number + 1) % 2]
}

/// What the others say of a finding, by who found it, its line and what it says.
type Opinions = BTreeMap<(String, usize, String), Vec<String>>;

/// The script of one review, and what must come out of it.
fn script(number: usize, path: &str, said: &[Said]) -> (String, Opinions) {
    let (mut script, mut expected) = (String::new(), Opinions::new());
    for by in REVIEWERS {
        let own = said.iter().filter(|one| one.by == by);
        let findings = own.enumerate().map(|(index, one)| {
            // They count badly.
            let line = if index == 0 { json!(one.line + 3) } else { json!(format!("{}-{}", one.line, one.line + 2)) };
            json!({"path": path, "line": line, "quote": one.quote, "severity": "high", "text": one.what})
        });
        let answer = json!({"verdict": "reject", "findings": findings.collect::<Vec<_>>()}).to_string();
        script += &says(by, if is_mute(number, by) { "Looks good to me." } else { &answer });
    }
    let mut there: Vec<&Said> = said.iter().filter(|one| one.is_there && !is_mute(number, one.by)).collect();
    there.sort_by_key(|one| (one.line, one.by));
    for by in REVIEWERS {
        let errs = said.iter().any(|one| one.by == by && !one.is_true);
        let others = there.iter().enumerate().filter(|(_, one)| one.by != by);
        let given: Vec<(usize, &str)> =
            others.map(|(index, one)| (index + 1, if one.is_true == errs { "disagree" } else { "agree" })).collect();
        for (number, answer) in &given {
            let one = there[number - 1];
            let key = (one.by.to_owned(), one.line, one.what.clone());
            expected.entry(key).or_insert_with(Vec::new).push(format!("{by} {answer}"));
        }
        let given: Vec<_> = given.iter().map(|(number, answer)| (*number, *answer, "Seen.")).collect();
        script += &says(&format!("{by}-cross"), &answers(&given));
    }
    (script, expected)
}

/// Nothing true is lost by grouping, and nothing false is raised by it.
#[test]
fn sixty_planted_defects_come_through_reviewers_of_whom_half_err() {
    let mut repo = TestRepo::empty();
    let planted = planted();
    assert_eq!(planted.len(), 30);
    let text = |number: usize, lines: [&str; 2], is_one: bool| {
        let filler = |part: usize| (0..number % 7 + 1).map(move |line| format!("filler {part} {line}\n}}\n"));
        let between = if is_one { "  ".to_owned() } else { format!("\n{}", filler(1).collect::<String>()) };
        filler(0).collect::<String>() + lines[0] + &between + lines[1] + "\n" + &filler(2).collect::<String>()
    };
    for (number, (path, [one, two])) in planted.iter().enumerate() {
        repo.write(path, &text(number, [one.good, two.good], number.is_multiple_of(3)));
    }
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message=first"]);
    let script_path = repo.root().parent().expect("a folder").join("script.toml");
    repo.variables.insert("SQUAD_REHEARSAL".to_owned(), script_path.display().to_string());
    repo.variables.insert("SQUAD_ENGINE".to_owned(), "rehearsal".to_owned());
    let mut found_by_two = 0;
    for (number, (path, defects)) in planted.iter().enumerate() {
        // Both on one line, in every third change.
        let is_one = number.is_multiple_of(3);
        let changed = text(number, [defects[0].bad, defects[1].bad], is_one);
        repo.write(path, &changed);
        let line_of = |bad: &str, nth: usize| {
            let mut at =
                changed.lines().enumerate().filter(|(_, line)| if is_one { line.contains(bad) } else { *line == bad });
            at.nth(nth).expect("it is there").0 + 1
        };
        let lines = [line_of(defects[0].bad, 0), line_of(defects[1].bad, 0)];
        let quotes = lines.map(|line| changed.lines().nth(line - 1).expect("a line").to_owned());
        let given = said(number, &lines, &quotes, defects);
        let (script, expected) = script(number, path, &given);
        fs::write(&script_path, script).expect("a script");
        let output = repo.squad(&["review", "-a", &REVIEWERS.join(","), "--path", path, "--cross", "--json"]);
        let review: Value = serde_json::from_str(&output.out).unwrap_or_else(|_| panic!("{output}"));
        let found = review["findings"].as_array().expect("findings");
        let heard: Vec<&Said> = given.iter().filter(|one| !is_mute(number, one.by)).collect();
        assert_eq!(found.len(), heard.len(), "{path}: {review}");
        let places: Vec<bool> = found.iter().map(|one| one["in_diff"] == true).collect();
        assert!(places.is_sorted_by_key(|is_there| !is_there), "{path}: {review}");
        for one in heard {
            let is_it = |finding: &&Value| {
                finding["by"] == one.by
                    && finding["text"] == *one.what
                    && (!one.is_there || finding["line"] == one.line)
            };
            let mut same = found.iter().filter(is_it);
            let finding = same.next().unwrap_or_else(|| panic!("{path}: {} {} is lost: {review}", one.by, one.what));
            assert_eq!(finding["in_diff"], one.is_there, "{path}: {review}");
            let opinions = finding["answers"].as_array().map_or(&[][..], Vec::as_slice).iter();
            let opinions: Vec<String> = opinions
                .map(|one| format!("{} {}", one["by"].as_str().expect("who"), one["answer"].as_str().expect("what")))
                .collect();
            let key = (one.by.to_owned(), one.line, one.what.clone());
            let all = expected.get(&key).cloned().unwrap_or_default();
            if one.is_there && !(is_one && number.is_multiple_of(5)) {
                assert_eq!(opinions, all, "{path}: {review}");
            }
            found_by_two += usize::from(one.is_true);
        }
        repo.git(&["checkout", "--quiet", "--", path]);
    }
    assert_eq!(found_by_two, 120);
}
