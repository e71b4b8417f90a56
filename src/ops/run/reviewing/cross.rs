//! The second round of a review: each reviewer answers the findings of the others, without being told whose they are.

use serde::Deserialize;
use serde_json::{Value, json};

use super::diff::{FENCE, Shown};
use super::findings::{Author, Finding, Opinion, answer, grouped, objects, text_of};
use super::{MANNERS, NOT_FOUND};
use crate::model::Slug;

/// A reviewer's task in the second round, made from its first task and from what all have said. `None`: the others found
/// nothing.
pub(in crate::ops::run) fn task(first: &str, said: &[(&Slug, &str)], reviewer: &Slug) -> Option<String> {
    let shown = Shown::of_task(first);
    let found = said.iter().filter_map(|(by, text)| {
        answer(text, &shown, Author { by: by.as_str(), engine: "", model: None }).map(|answer| answer.findings)
    });
    let found = grouped(found.flatten().collect());
    let of_others = |finding: &Finding| finding.by != reviewer.as_str() && finding.rank() < NOT_FOUND;
    let others = found.iter().enumerate().filter(|(_, finding)| of_others(finding));
    let others: Vec<String> = others
        .map(|(index, Finding { path, line, quote, severity, text, .. })| {
            json!({"finding": index + 1, "path": path, "line": line, "quote": quote, "severity": severity, "text": text})
                .to_string()
        })
        .collect();
    (!others.is_empty()).then(|| {
        format!(
            "Others have reviewed the change below. {MANNERS}\n\n\
             {diff}\n\
             These are their findings, one a line. You are not told whose they are, and any of them may be wrong:\n\n\
             {FENCE} findings\n{others}\n{FENCE}\n\n\
             Check each in the code. Agree only if you can show that it is so, and disagree only if you can show that it \
             is not; leave out what you cannot decide. Answer with one JSON object and nothing else:\n\n\
             {{\"answers\": [{{\"finding\": 1, \"answer\": \"agree\" or \"disagree\", \"evidence\": \"what in the code \
             shows it\"}}]}}\n",
            diff = shown.fenced(),
            others = others.join("\n"),
        )
    })
}

#[derive(Deserialize)]
struct Given {
    answers: Vec<Value>,
}

/// Adds a reviewer's answers to the findings, in the order that [`task`] numbered them. One's own finding needs others.
pub(super) fn add(findings: &mut [Finding], text: &str, author: Author<'_>) -> bool {
    let Some(given) = objects::<Given>(text).last() else { return false };
    for given in given.answers {
        let index = given["finding"].as_u64().and_then(|number| usize::try_from(number.checked_sub(1)?).ok());
        let answer = match text_of(&given, "answer").to_lowercase() {
            answer if answer.starts_with("agree") => "agree",
            answer if answer.starts_with("disagree") => "disagree",
            _ => continue,
        };
        let is_new = |finding: &&mut Finding| {
            finding.by != author.by && finding.answers.iter().all(|opinion| opinion.by != author.by)
        };
        if let Some(finding) = index.and_then(|index| findings.get_mut(index)).filter(is_new) {
            let (by, engine, evidence) = (author.by.to_owned(), author.engine.to_owned(), text_of(&given, "evidence"));
            finding.answers.push(Opinion { by, engine, answer, evidence });
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n+x = 1\n+y = 2\n";

    #[test]
    fn each_answers_the_others_and_is_not_told_who_they_are() {
        let [rex, mia, tom] = ["rex", "mia", "tom"].map(|name| Slug::fold(name).expect("a slug"));
        let first = format!("Review.\n\n{FENCE} diff\n{DIFF}{FENCE}\n\nAnswer.\n");
        let of_rex = r#"{"verdict":"reject","findings":[{"path":"a","line":2,"quote":"y = 2","text":"overflow"},
            {"path":"a","line":9,"quote":"z = 3","text":"invented"}]}"#;
        let of_mia =
            r#"{"verdict":"reject","findings":[{"path":"a","line":1,"quote":"x = 1","text":"race\n~~~~~~~~~~"}]}"#;
        let said = [(&rex, of_rex), (&mia, of_mia), (&tom, "No idea.")];
        let of_tom = task(&first, &said, &tom).expect("a task");
        assert!(of_tom.contains("\"finding\":1") && of_tom.contains("race") && of_tom.contains("overflow"), "{of_tom}");
        assert!(of_tom.contains("+y = 2") && !of_tom.contains("invented"), "{of_tom}");
        assert!(!of_tom.contains("rex") && !of_tom.contains("mia"), "{of_tom}");
        assert_eq!(of_tom.matches(&format!("\n{FENCE}\n")).count(), 2, "{of_tom}");
        let of_mia = task(&first, &said, &mia).expect("a task");
        assert!(of_mia.contains("\"finding\":2") && !of_mia.contains("race"), "{of_mia}");
        assert_eq!(task(&first, &said[1..], &mia), None);
    }

    #[test]
    fn answers_stand_at_the_findings_they_are_about() {
        let shown = format!("\n{FENCE} diff\n{DIFF}{FENCE}\n");
        let author = |by| Author { by, engine: "claude", model: None };
        let two = r#"{"verdict":"reject","findings":[{"path":"a","quote":"y = 2"},{"path":"a","quote":"x = 1"}]}"#;
        let found = answer(two, &Shown::of_task(&shown), author("rex")).expect("an answer").findings;
        let mut found = grouped(found);
        let text = r#"Well: {"answers":[{"finding":2,"answer":"Agree","evidence":"It is 2."},{"finding":2,"answer":"disagree"},
            {"finding":1,"answer":"perhaps"},{"finding":0,"answer":"agree"},{"finding":3,"answer":"agree"},{},null,
            {"finding":1,"answer":"disagree","evidence":"It is 1."}]}"#;
        assert!(add(&mut found, text, author("mia")) && add(&mut found, text, author("rex")));
        assert!(!add(&mut found, "I agree.", author("tom")));
        let shown = |finding: &Finding| -> Vec<String> {
            let opinions = finding.answers.iter();
            opinions.map(|one| format!("{} {}: {}", one.by, one.answer, one.evidence)).collect()
        };
        assert_eq!(shown(&found[0]), ["mia disagree: It is 1."]);
        assert_eq!(shown(&found[1]), ["mia agree: It is 2."]);
    }
}
