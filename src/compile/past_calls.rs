//! Tool calls of an agent before it was interrupted.

use crate::model::{Access, EventKind, change_by, first_line, list, printable};

/// Most characters of a call's detail.
pub(super) const MAX_DETAIL: usize = 200;
/// Most calls without a known end that are named in a message.
const MAX_NAMED: usize = 5;

/// A tool call of an agent that was interrupted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PastCall {
    /// The engine's id for the call.
    pub(crate) call: String,
    pub(crate) tool: String,
    pub(crate) detail: String,
    /// `None`: it began, and nobody knows whether it finished.
    pub(crate) ok: Option<bool>,
    /// Of a command, if known.
    pub(crate) exit_code: Option<i64>,
}

impl PastCall {
    pub(crate) fn new(call: &str, tool: &str, detail: &str, ok: Option<bool>) -> Self {
        let (call, tool, detail) = (call.to_owned(), tool.to_owned(), first_line(detail, MAX_DETAIL));
        Self { call, tool, detail, ok, exit_code: None }
    }

    pub(crate) fn is_finished_command(&self) -> bool {
        change_by(&self.tool) == Some(Access::Shell) && self.is_finished()
    }

    /// Whether it ran to its end: one that failed without an exit code may have been cut short.
    pub(crate) fn is_finished(&self) -> bool {
        self.ok == Some(true) || self.exit_code.is_some()
    }

    /// `bash: make`
    pub(super) fn named(&self) -> String {
        let text = format!("{}: {}", first_line(&self.tool, MAX_DETAIL), self.detail);
        printable(text.trim_end_matches([':', ' '])).replace('`', "'")
    }
}

/// Calls in the order in which they ended; those without a known end where they began.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PastCalls(pub(crate) Vec<PastCall>);

impl PastCalls {
    /// Takes an agent's next event into account.
    pub(crate) fn note(&mut self, kind: &EventKind) {
        match kind {
            EventKind::ToolStarted { call, tool, detail } => self.0.push(PastCall::new(call, tool, detail, None)),
            EventKind::ToolCompleted { call, tool, detail, ok, exit_code, .. } => {
                // An engine may use an id again in its next turn.
                if let Some(begun) = self.0.iter().rposition(|begun| begun.ok.is_none() && begun.call == *call) {
                    self.0.remove(begun);
                }
                self.0.push(PastCall { exit_code: *exit_code, ..PastCall::new(call, tool, detail, Some(*ok)) });
            }
            _ => {}
        }
    }
}

/// `` `bash: make` and `edit: a.txt` ``, the calls without a known end; `None` if there are none.
pub(crate) fn unknown_calls(calls: &[PastCall]) -> Option<String> {
    let unknown: Vec<&PastCall> = calls.iter().filter(|call| call.ok.is_none()).collect();
    let mut named: Vec<String> = unknown.iter().take(MAX_NAMED).map(|call| format!("`{}`", call.named())).collect();
    let more = unknown.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        named.push(format!("{more} more"));
    }
    (!named.is_empty()).then(|| list(&named))
}
