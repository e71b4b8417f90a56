//! What reviewers answered: verdicts, and findings grouped by place. None is merged with another: the same title is not
//! the same defect, and neither is the same line.

use serde::{Deserialize, Serialize};

use super::diff::has_quote;
use crate::model::{first_line, without_hidden};

/// Most findings of one reviewer that count.
pub(super) const MOST: usize = 7;
const LONGEST: usize = 2_000;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Finding {
    pub(crate) path: String,
    pub(crate) line: Option<u64>,
    /// The line itself, by which the finding is checked.
    pub(crate) quote: String,
    pub(crate) severity: String,
    pub(crate) text: String,
    /// The reviewer.
    pub(crate) by: String,
    pub(crate) engine: String,
    pub(crate) model: Option<String>,
    pub(crate) in_diff: bool,
}

/// A reviewer's answer, if it is one.
pub(super) struct Answer {
    pub(super) rejects: bool,
    pub(super) findings: Vec<Finding>,
    /// How many findings beyond [`MOST`] it had.
    pub(super) more: usize,
}

#[derive(Deserialize)]
struct Given {
    verdict: String,
    #[serde(default)]
    findings: Vec<GivenFinding>,
}

#[derive(Deserialize)]
struct GivenFinding {
    #[serde(default)]
    path: String,
    #[serde(default)]
    line: serde_json::Value,
    #[serde(default)]
    quote: String,
    #[serde(default)]
    severity: String,
    #[serde(default)]
    text: String,
}

/// Who answered.
#[derive(Clone, Copy)]
pub(super) struct Author<'a> {
    pub(super) by: &'a str,
    pub(super) engine: &'a str,
    pub(super) model: Option<&'a str>,
}

/// Reads the first JSON object in an answer that says a verdict. `None`: there is none.
pub(super) fn answer(text: &str, diff: &str, author: Author<'_>) -> Option<Answer> {
    let given = text.match_indices('{').find_map(|(at, _)| {
        let mut values = serde_json::Deserializer::from_str(text.get(at..)?).into_iter::<Given>();
        values.next()?.ok()
    })?;
    let verdict = given.verdict.to_lowercase();
    let rejects = verdict.starts_with("reject") || verdict.contains("request");
    if !rejects && !verdict.starts_with("approve") {
        return None;
    }
    let more = given.findings.len().saturating_sub(MOST);
    let findings = given.findings.into_iter().take(MOST).map(|finding| of(finding, diff, author)).collect();
    Some(Answer { rejects, findings, more })
}

fn of(given: GivenFinding, diff: &str, author: Author<'_>) -> Finding {
    let plain = |text: String| without_hidden(text.trim().chars().take(LONGEST).collect());
    let path = plain(given.path).trim_start_matches("./").to_owned();
    // Some quote a line with the mark of the diff.
    let bare = given.quote.strip_prefix(['+', '-']).filter(|bare| has_quote(diff, &path, bare)).map(str::to_owned);
    let quote = bare.unwrap_or(given.quote);
    let in_diff = has_quote(diff, &path, &quote);
    let line = given.line.as_u64().or_else(|| given.line.as_str()?.split(['-', ' ']).next()?.parse().ok());
    let severity = match given.severity.to_lowercase().as_str() {
        severity @ ("critical" | "high" | "medium" | "low") => severity.to_owned(),
        _ => "medium".to_owned(),
    };
    Finding {
        path,
        line,
        quote: first_line(&plain(quote.lines().map(str::trim).collect::<Vec<_>>().join(" ⏎ ")), 300),
        severity,
        text: plain(given.text),
        by: author.by.to_owned(),
        engine: author.engine.to_owned(),
        model: author.model.map(str::to_owned),
        in_diff,
    }
}

/// By place, so that those at one place stand together; what is not in the diff comes last.
pub(super) fn grouped(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by(|a, b| (!a.in_diff, &a.path, a.line, &a.by).cmp(&(!b.in_diff, &b.path, b.line, &b.by)));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n+x = 1\n+y = 2\n";

    fn read(text: &str) -> Option<Answer> {
        answer(text, DIFF, Author { by: "rex", engine: "claude", model: None })
    }

    #[test]
    fn answers_are_read_however_they_are_wrapped() {
        for (text, rejects) in [
            (r#"{"verdict":"approve"}"#, Some(false)),
            ("Here it is { well }:\n```json\n{\"verdict\": \"REJECT\", \"findings\": []}\n```\nBye.", Some(true)),
            (r#"{"verdict":"request changes"}"#, Some(true)),
            (r#"{"verdict":"maybe"}"#, None),
            ("I approve.", None),
            ("", None),
            ("{\"verdict\":", None),
        ] {
            assert_eq!(read(text).map(|answer| answer.rejects), rejects, "{text}");
        }
    }

    #[test]
    fn each_finding_stands_for_itself_and_invented_ones_come_last() {
        let finding = |line: &str, quote: &str, text: &str| {
            format!(r#"{{"path":"a","line":{line},"quote":"{quote}","severity":"HIGH","text":"{text}"}}"#)
        };
        let all = [
            finding("9", "z = 3", "invented"),
            finding("2", "y = 2", "overflow"),
            finding("\"1-2\"", "x = 1", "race"),
            finding("1", "x = 1", "race"),
        ];
        let found = read(&format!(r#"{{"verdict":"reject","findings":[{}]}}"#, all.join(","))).expect("an answer");
        let grouped = grouped(found.findings);
        let shown: Vec<_> = grouped.iter().map(|one| (one.line, one.text.as_str(), one.in_diff)).collect();
        let expected = [
            (Some(1), "race", true),
            (Some(1), "race", true),
            (Some(2), "overflow", true),
            (Some(9), "invented", false),
        ];
        assert_eq!(shown, expected);
        let many = vec![finding("1", "x = 1", "again"); 9].join(",");
        let many = read(&format!(r#"{{"verdict":"reject","findings":[{many}]}}"#)).expect("an answer");
        assert_eq!((many.findings.len(), many.more), (MOST, 2));
    }
}
