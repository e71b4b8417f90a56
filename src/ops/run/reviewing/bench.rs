//! Findings as ReviewBench reads them, so that a team can be scored on its pull requests.

use serde_json::{Value, json};

use super::{NOT_FOUND, Review};
use crate::env::Env;
use crate::error::Failure;

/// A pull request of the benchmark, and the name of who reviews it.
pub(crate) struct Bench {
    pull_request: Value,
    agent: String,
}

impl Bench {
    /// The one that ReviewBench's variables name.
    pub(crate) fn of(env: &Env) -> Result<Self, Failure> {
        let variable = |name: &str| {
            let missing =
                || Failure::usage(format!("{name} is not set")).hint("ReviewBench sets it for each pull request");
            env.variable(name).filter(|value| !value.is_empty()).ok_or_else(missing)
        };
        let number = variable("RB_PR_NUMBER")?;
        let wrong = |_| Failure::usage(format!("RB_PR_NUMBER is a number, not `{number}`"));
        let number: u64 = number.parse().map_err(wrong)?;
        let repo = format!("https://github.com/{}", variable("RB_NWO")?);
        let pull_request =
            json!({"repo": repo, "pr_number": number, "base": variable("RB_BASE")?, "head": variable("RB_HEAD")?});
        Ok(Self { pull_request, agent: variable("RB_AGENT").unwrap_or("squad").to_owned() })
    }

    /// What is not in the diff counts for nothing.
    pub(crate) fn findings(&self, review: &Review) -> Value {
        let counting = review.findings.iter().filter(|finding| finding.rank() < NOT_FOUND);
        let findings: Vec<Value> = counting
            .map(|finding| {
                let line = finding.line.unwrap_or(1).max(1);
                json!({"file": finding.path, "start_line": line, "end_line": line, "message": finding.text,
                       "producer": self.agent})
            })
            .collect();
        json!({"pr": self.pull_request, "agent": self.agent, "findings": findings})
    }
}
