//! Reads labelled cases from a file.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::model::{IntoSet, Problem, Severity, Slug, Source, Team, from_json, list};

/// The label of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CaseKind {
    /// Work for one agent; any accepted agent is right.
    Single,
    /// Work for all accepted agents together.
    Multi,
    /// The message does not tell whose work it is: the router has to abstain.
    Ambiguous,
    /// No agent is needed.
    Direct,
}

/// A message and its label: one JSON object per line of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Case {
    /// The line in the file, from 1.
    #[serde(skip)]
    pub(crate) line: usize,
    pub(crate) message: String,
    pub(crate) kind: CaseKind,
    /// The best of the accepted agents.
    #[serde(default)]
    pub(crate) agent: Option<String>,
    #[serde(default)]
    pub(crate) accept: Vec<String>,
    /// Whether all accepted agents are needed. Redundant with the kind, for other readers of the file.
    #[serde(default)]
    pub(crate) all: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) labels: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) paths: Vec<String>,
}

impl Case {
    /// The slugs of the right agents.
    pub(crate) fn accepted(&self) -> BTreeSet<Slug> {
        let names: Vec<&String> =
            if self.accept.is_empty() { self.agent.iter().collect() } else { self.accept.iter().collect() };
        names.into_iter().filter_map(|name| Slug::of_folder(name.trim())).into_set()
    }

    fn read(text: &str, line: usize) -> Result<Self, (&'static str, String)> {
        // serde would also read a struct from a JSON array.
        if !text.trim_start().starts_with('{') {
            return Err(("case-not-json", "not a JSON object".to_owned()));
        }
        let case = from_json::<Self>(text).map_err(|error| {
            // The line is the file's, not the one that the JSON reader counts.
            let reason = error.to_string();
            let reason = reason.split(" at line ").next().unwrap_or_default();
            match error.is_data() {
                true => ("case-incomplete", reason.to_owned()),
                false => ("case-not-json", format!("not JSON: {reason} at column {}", error.column())),
            }
        })?;
        if matches!(case.kind, CaseKind::Single | CaseKind::Multi) && case.accepted().is_empty() {
            return Err(("case-incomplete", "`accept` or `agent` has to say who is right".to_owned()));
        }
        Ok(Self { line, ..case })
    }
}

/// The cases of a file, and the problems of its other lines. Blank lines are skipped.
pub(crate) fn cases(text: &str, file: &str) -> (Vec<Case>, Vec<Problem>) {
    let (mut cases, mut problems) = (Vec::new(), Vec::new());
    for (line, text) in
        (1..).zip(text.trim_start_matches('\u{feff}').lines()).filter(|(_, text)| !text.trim().is_empty())
    {
        match Case::read(text, line) {
            Ok(case) => cases.push(case),
            Err((code, message)) => {
                problems.push(Problem::new(Severity::Error, Source::new(file, line), code, message));
            }
        }
    }
    (cases, problems)
}

/// Accepted agents that the team cannot start: the case is about another team or an earlier state of this one.
pub(crate) fn strangers(team: &Team, cases: &[Case], file: &str) -> Vec<Problem> {
    let is_stranger = |agent: &Slug| team.startable_member(agent).is_none();
    let told = |case: &Case| {
        let line = case.line;
        case.accepted().into_iter().filter(is_stranger).map(move |agent| (line, agent)).collect::<Vec<_>>()
    };
    cases
        .iter()
        .flat_map(told)
        .map(|(line, agent)| {
            let message = format!("the team has no agent `{agent}` that can be started");
            let problem = Problem::warning(Source::new(file, line), "case-agent-unknown", message);
            problem.hint(format!("the team's agents: {}", list(team.startable().map(|member| &member.slug))))
        })
        .collect()
}
