//! The project's own check, which squad runs on what agents changed.

use serde::{Deserialize, Serialize};

use super::{Change, list, printable_line};

/// The result of `check.run`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProjectCheck {
    /// Its arguments, as a person would type them.
    pub(crate) command: String,
    pub(crate) passed: bool,
    /// `None`: it did not run to its end; `reason` says why.
    pub(crate) exit_code: Option<i64>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
    pub(crate) seconds: f64,
    /// The end of what it printed.
    pub(crate) output: String,
    /// Bytes of all that it printed, and the file that has them, relative to squad's local folder.
    pub(crate) output_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output_file: Option<String>,
    /// What changed in the work tree while it ran: by itself, as a rule, and nobody's.
    #[serde(default)]
    pub(crate) changed: Vec<Change>,
    /// Files that its arguments name and the run's agents changed: it may not be the check that it was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) rewritten: Vec<String>,
    /// The snapshot of the work tree after it. The result holds for this content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) snapshot: Option<String>,
}

impl ProjectCheck {
    /// `passed`, `failed, exit 101`, `failed: it took longer than 30m`.
    pub(crate) fn result(&self) -> String {
        match (self.passed, self.exit_code) {
            (true, _) => "passed".to_owned(),
            (false, Some(code)) => format!("failed, exit {code}"),
            (false, None) => format!("failed: {}", self.reason),
        }
    }

    /// What a person has to know besides the result.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let rewritten = (!self.rewritten.is_empty()).then(|| format!("agents changed {}", list(&self.rewritten)));
        let rewritten = rewritten.map(|text| format!("{text}, which it runs or reads"));
        let changed = self.changed.iter().map(|change| change.path.as_str()).collect::<Vec<_>>();
        let changed = (!changed.is_empty()).then(|| match &changed[..] {
            [first, second, third, _, ..] => {
                format!("{first}, {second}, {third} and {} more changed while it ran", changed.len() - 3)
            }
            few => format!("{} changed while it ran", list(few)),
        });
        [rewritten, changed].into_iter().flatten().collect()
    }
}

/// Arguments as a person would type them in a shell.
pub(crate) fn command_line(arguments: &[String]) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=,+@%^".contains(c);
    let typed = |argument: &String| match !argument.is_empty() && argument.chars().all(is_plain) {
        true => argument.clone(),
        false => format!("'{}'", printable_line(argument).replace('\'', "'\\''")),
    };
    arguments.iter().map(typed).collect::<Vec<_>>().join(" ")
}
