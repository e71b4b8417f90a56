//! Parses issues in JSON, as other programs write them.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::route::Request;

/// Fields that identify an issue and are returned with its plan.
const PASSED: [&str; 2] = ["id", "number"];

#[derive(Debug)]
pub(crate) struct Issue {
    pub(crate) passed: Map<String, Value>,
    /// Title and body.
    text: String,
    labels: Vec<String>,
    paths: Vec<String>,
}

/// A line that is not an issue, and why.
#[derive(Debug)]
pub(crate) struct InvalidIssue {
    pub(crate) passed: Map<String, Value>,
    pub(crate) reason: String,
}

impl InvalidIssue {
    pub(crate) fn because(reason: impl Into<String>) -> Self {
        Self { passed: Map::new(), reason: reason.into() }
    }
}

/// GitHub's own tools write `null` for an empty body, and labels as objects.
#[derive(Deserialize)]
struct Written {
    title: Option<String>,
    body: Option<String>,
    labels: Option<Vec<Label>>,
    paths: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a label must be a string, or an object with a `name`")]
enum Label {
    Name(String),
    Object { name: String },
}

impl Issue {
    pub(crate) fn read(line: &[u8]) -> Result<Self, InvalidIssue> {
        let line = std::str::from_utf8(line).map_err(|_| InvalidIssue::because("not UTF-8"))?;
        let mut value: Value = serde_json::from_str(line.trim_start_matches('\u{feff}'))
            .map_err(|error| InvalidIssue::because(format!("not JSON: {}", reason(&error))))?;
        let Some(map) = value.as_object_mut() else { return Err(InvalidIssue::because("not a JSON object")) };
        let mut passed = Map::new();
        for key in PASSED {
            passed.extend(map.shift_remove(key).map(|value| (key.to_owned(), value)));
        }
        let issue = match Written::deserialize(value) {
            Ok(issue) => issue,
            Err(error) => return Err(InvalidIssue { passed, reason: reason(&error) }),
        };
        let labels = issue.labels.unwrap_or_default().into_iter().map(|label| match label {
            Label::Name(name) | Label::Object { name } => name,
        });
        let text: Vec<String> =
            issue.title.into_iter().chain(issue.body).filter(|part| !part.trim().is_empty()).collect();
        let issue =
            Self { passed, text: text.join("\n\n"), labels: labels.collect(), paths: issue.paths.unwrap_or_default() };
        if issue.text.is_empty() && issue.labels.is_empty() && issue.paths.is_empty() {
            let reason = "it has no title, no body, no labels and no paths".to_owned();
            return Err(InvalidIssue { passed: issue.passed, reason });
        }
        Ok(issue)
    }

    pub(crate) fn request(&self) -> Request<'_> {
        Request { text: &self.text, labels: &self.labels, paths: &self.paths }
    }
}

/// The error without its line number, which is always 1.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match (text.split_once(" at line "), error.column()) {
        (Some((reason, _)), column) if column > 0 => format!("{reason} at column {column}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issues_are_read_as_tools_write_them() {
        let line =
            br#"{"number":7,"title":"Crash","body":null,"labels":[{"name":"bug","color":"f00"},"ui"],"url":"x"}"#;
        let issue = Issue::read(line).expect("an issue");
        assert_eq!((issue.text.as_str(), &issue.labels[..]), ("Crash", &["bug".to_owned(), "ui".to_owned()][..]));
        assert_eq!(issue.passed["number"], 7);
        let issue = Issue::read(br#"{"title":"Crash","body":"At start.","paths":["src/a.rs"]}"#).expect("an issue");
        assert_eq!(issue.text, "Crash\n\nAt start.");
        assert_eq!(issue.request().paths, ["src/a.rs"]);
    }

    #[test]
    fn what_is_no_issue_says_why() {
        for (line, reason) in [
            (&b"\xff"[..], "not UTF-8"),
            (b"[]", "not a JSON object"),
            (b"{\"title\":", "not JSON: EOF while parsing a value at column 9"),
            (b"{\"title\":1}", "invalid type: integer `1`, expected a string"),
            (b"{\"labels\":[1]}", "a label must be a string, or an object with a `name`"),
            (b"{\"id\":1,\"body\":\" \"}", "it has no title, no body, no labels and no paths"),
        ] {
            assert_eq!(Issue::read(line).expect_err("no issue").reason, reason);
        }
        assert_eq!(
            Issue::read(b"{\"id\":[1],\"title\":1}").expect_err("no issue").passed["id"],
            serde_json::json!([1])
        );
    }
}
