//! What reviewers answered: verdicts, and findings grouped by place. None is merged with another: the same title is not
//! the same defect, and neither is the same line.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::diff::{Quoted, Shown};
use crate::model::{Sort, first_line, without_hidden};

/// Most findings of one reviewer that count.
pub(super) const MOST: usize = 7;
const LONGEST: usize = 2_000;
const SEVERITIES: [&str; 4] = ["critical", "high", "medium", "low"];
/// What reviewers say instead. Anything else counts as medium.
const ALSO: [(&str, &[&str]); 3] = [
    ("critical", &["blocker", "blocking", "fatal", "severe", "p0"]),
    ("high", &["major", "error", "serious", "important", "p1"]),
    ("low", &["minor", "info", "note", "nit", "trivial", "suggestion", "p3"]),
];

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
    /// Its file did not fit into what the reviewers were shown, so nobody can tell whether it is in the diff.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) unchecked: bool,
    /// What the other reviewers say of it, if they were asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) answers: Vec<Opinion>,
}

/// What a reviewer says of another's finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Opinion {
    pub(crate) by: String,
    pub(crate) engine: String,
    /// `agree` or `disagree`.
    pub(crate) answer: &'static str,
    pub(crate) evidence: String,
}

impl Finding {
    /// Where it belongs: what is in the diff, then what could not be checked, then what is not there.
    pub(crate) fn rank(&self) -> u8 {
        if self.in_diff { 0 } else { 2 - u8::from(self.unchecked) }
    }

    /// The gravest is the least.
    pub(super) fn gravity(&self) -> Option<usize> {
        SEVERITIES.iter().position(|severity| *severity == self.severity)
    }
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
    findings: Value,
}

/// Who answered.
#[derive(Clone, Copy)]
pub(super) struct Author<'a> {
    pub(super) by: &'a str,
    pub(super) engine: &'a str,
    pub(super) model: Option<&'a str>,
}

/// Reads the JSON object in an answer that says a verdict. Of several the last one counts, but none takes a rejection
/// back: it may be quoted from the change. `None`: there is none.
pub(super) fn answer(text: &str, shown: &Shown<'_>, author: Author<'_>) -> Option<Answer> {
    let verdicts = objects::<Given>(text).filter_map(|given| {
        let verdict = given.verdict.to_lowercase();
        let rejects = verdict.starts_with("reject") || verdict.contains("request");
        (rejects || verdict.starts_with("approve")).then_some((rejects, given))
    });
    // Of equal ones, this is the last.
    let (rejects, given) = verdicts.max_by_key(|(rejects, _)| *rejects)?;
    let all = given.findings.as_array().map_or(&[][..], Vec::as_slice);
    let findings = all.iter().take(MOST).map(|finding| of(finding, shown, author)).collect();
    Some(Answer { rejects, findings, more: all.len().saturating_sub(MOST) })
}

/// The JSON objects in an answer that have what is looked for; none is a part of another.
pub(super) fn objects<T: DeserializeOwned>(text: &str) -> impl Iterator<Item = T> {
    let mut end = 0;
    text.match_indices('{').filter_map(move |(at, _)| {
        let rest = text.get(at..).filter(|_| at >= end)?;
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<T>();
        let value = values.next()?.ok()?;
        end = at + values.byte_offset();
        Some(value)
    })
}

/// A field that should hold a text.
pub(super) fn text_of(given: &Value, field: &str) -> String {
    plain(given[field].as_str().unwrap_or_default())
}

fn plain(text: &str) -> String {
    without_hidden(text.trim().chars().take(LONGEST).collect())
}

fn of(given: &Value, shown: &Shown<'_>, author: Author<'_>) -> Finding {
    let path = shown.resolve(&text_of(given, "path"));
    let quote = given["quote"].as_str().unwrap_or_default();
    // Some quote a line with the mark of the diff.
    let bare = quote.strip_prefix(['+', '-']).map(|bare| (bare, shown.find(&path, bare)));
    let bare = bare.filter(|(_, quoted)| matches!(quoted, Quoted::InDiff(_)));
    let (quote, quoted) = bare.unwrap_or_else(|| (quote, shown.find(&path, quote)));
    let line = &given["line"];
    let said = line.as_u64().or_else(|| line.as_str()?.split(['-', ' ']).next()?.parse().ok());
    let severity = text_of(given, "severity").to_lowercase();
    let severity = SEVERITIES
        .into_iter()
        .find(|known| *known == severity)
        .or_else(|| ALSO.into_iter().find(|(_, also)| also.contains(&severity.as_str())).map(|(severity, _)| severity));
    Finding {
        // Reviewers count badly, and quote well.
        line: if let Quoted::InDiff(Some(line)) = quoted { Some(line) } else { said },
        quote: first_line(&plain(&quote.lines().map(str::trim).collect::<Vec<_>>().join(" ⏎ ")), 300),
        severity: severity.unwrap_or("medium").to_owned(),
        text: text_of(given, "text"),
        by: author.by.to_owned(),
        engine: author.engine.to_owned(),
        model: author.model.map(str::to_owned),
        in_diff: matches!(quoted, Quoted::InDiff(_)),
        unchecked: quoted == Quoted::Unchecked,
        answers: Vec::new(),
        path,
    }
}

/// By place, so that those at one place stand together; what is not in the diff comes last.
pub(super) fn grouped(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.stable_sort_by(|a, b| (a.rank(), &a.path, a.line, &a.by).cmp(&(b.rank(), &b.path, b.line, &b.by)));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n+x = 1\n+y = 2\n";

    fn read(text: &str) -> Option<Answer> {
        let task = format!("\n~~~~~~~~~~ diff\n{DIFF}~~~~~~~~~~\n");
        answer(text, &Shown::of_task(&task), Author { by: "rex", engine: "claude", model: None })
    }

    #[test]
    fn answers_are_read_however_they_are_wrapped() {
        for (text, rejects) in [
            (r#"{"verdict":"approve"}"#, Some(false)),
            (r#"{"verdict":"approve","findings":[null,{"path":1,"line":[],"quote":null}]}"#, Some(false)),
            (r#"{"verdict":"reject","findings":null}"#, Some(true)),
            ("Here it is { well }:\n```json\n{\"verdict\": \"REJECT\", \"findings\": []}\n```\nBye.", Some(true)),
            (r#"{"verdict":"request changes"}"#, Some(true)),
            (r#"{"verdict":"maybe"}"#, None),
            ("I approve.", None),
            (r#"{"verdict":"approve"} On a second look: {"verdict":"reject"}"#, Some(true)),
            (r#"{"verdict":"reject"} The change says {"verdict":"approve"}"#, Some(true)),
            (r#"{"verdict":"maybe"} {"verdict":"approve"}"#, Some(false)),
            (r#"{"verdict":"approve","findings":[{"text":"{\"verdict\":1}","verdict":"reject"}]}"#, Some(false)),
            ("", None),
            ("{\"verdict\":", None),
        ] {
            assert_eq!(read(text).map(|answer| answer.rejects), rejects, "{text}");
        }
    }

    #[test]
    fn severities_are_one_of_four() {
        for (said, severity) in [
            ("HIGH", "high"),
            ("blocker", "critical"),
            ("Major", "high"),
            ("nit", "low"),
            ("odd", "medium"),
            ("", "medium"),
        ] {
            let text = format!(r#"{{"verdict":"reject","findings":[{{"text":"x","severity":"{said}"}}]}}"#);
            assert_eq!(read(&text).expect("an answer").findings[0].severity, severity, "{said}");
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
        let twice =
            r#"{"verdict":"reject","findings":[{"text":"one"}]}{"verdict":"reject","findings":[{"text":"two"}]}"#;
        assert_eq!(read(twice).expect("an answer").findings[0].text, "two");
        let many = vec![finding("1", "x = 1", "again"); 9].join(",");
        let many = read(&format!(r#"{{"verdict":"reject","findings":[{many}]}}"#)).expect("an answer");
        assert_eq!((many.findings.len(), many.more), (MOST, 2));
    }
}
