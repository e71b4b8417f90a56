//! Which of the CLI's own prompt texts and tools we keep next to ours.
//!
//! ```text
//! identity               ours: how to work here, the project, the team         the same for all agents of a team
//! the CLI's own          code changes, safety, environment, its tools
//! custom instructions    the repository's AGENTS.md and its kin
//! the custom agent       the charter                                           the same in every run
//! last instructions      ours: the texts chosen for the task
//! ```
//!
//! Text that changes least comes first, so that providers can cache it between calls and runs. We remove CLI text that
//! contradicts ours: telling agents to ask when nobody is there, to try another tool when one is refused, or to start
//! agents of their own. The session's folder goes too: its name has the run's id and would come before the charter.
//! Skills are chosen for the task like the team's other notes; the CLI's own list would be a second one, with its own
//! tool and skill, and an instruction to load matching ones first.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::engine::Opening;
use crate::model::{SessionSpec, ToolChoice};

/// Tools that start agents, and the database of the CLI's own to-do lists.
const EXCLUDED_TOOLS: [&str; 6] = ["task", "read_agent", "list_agents", "write_agent", "sql", "semantic_code_search"];
const ASK_USER: &str = "ask_user";

/// The identity of a session without a team.
pub(crate) const DEFAULT_IDENTITY: &str = "You are an agent that squad runs in this repository.";

/// The CLI notifies the model of background commands that have ended.
pub(crate) const NOTIFICATIONS: &str = "\
<system_notifications>
`<system_notification>` messages come from the program that runs you, such as when a command in the background has ended.
Take them into account and go on; never write such a message yourself.
</system_notifications>
";

#[derive(Clone, Debug, Serialize)]
#[serde(tag = "mode", rename_all = "lowercase")]
pub(super) enum SystemMessage {
    /// Only our text.
    Replace {
        content: String,
    },
    Customize {
        sections: BTreeMap<&'static str, Section>,
    },
}

/// What to do with a section of the CLI's prompt.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "action", rename_all = "lowercase")]
pub(super) enum Section {
    Replace { content: String },
    Remove,
}

impl SystemMessage {
    pub(super) fn new(spec: &SessionSpec) -> Self {
        if only_decides(spec) {
            return Self::Replace { content: [spec.prompt.as_str(), &spec.full_context()].concat() };
        }
        let ours = |text: &str| match text.trim().is_empty() {
            true => Section::Remove,
            false => Section::Replace { content: text.trim().to_owned() },
        };
        let team = if spec.team.trim().is_empty() { DEFAULT_IDENTITY } else { &spec.team };
        let sections = [
            ("identity", ours(team)),
            ("preamble", Section::Remove),
            ("tone", Section::Remove),
            ("guidelines", Section::Remove),
            ("runtime_instructions", ours(NOTIFICATIONS)),
            ("last_instructions", ours(&spec.context)),
        ];
        Self::Customize { sections: sections.into() }
    }
}

/// Whether a session only makes decisions: it gets only our text and no tools.
pub(super) fn only_decides(spec: &SessionSpec) -> bool {
    spec.tools == ToolChoice::Nothing
}

pub(super) fn excluded_tools(opening: &Opening) -> Vec<String> {
    let asking = Some(ASK_USER).filter(|_| !opening.asks);
    let denied = opening.spec.denied_tools.iter().cloned();
    EXCLUDED_TOOLS.into_iter().chain(asking).map(str::to_owned).chain(denied).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing;
    use super::*;

    fn message(tools: ToolChoice, change: impl FnOnce(&mut SessionSpec)) -> serde_json::Value {
        let mut opening = testing::opening("s", tools);
        change(&mut opening.spec);
        serde_json::to_value(SystemMessage::new(&opening.spec)).expect("JSON")
    }

    #[test]
    fn stable_text_comes_first_and_task_text_last() {
        let told = message(ToolChoice::All, |_| ());
        assert_eq!(told["mode"], "customize");
        assert_eq!(told["sections"]["identity"], json!({ "action": "replace", "content": "# Team" }));
        assert_eq!(told["sections"]["last_instructions"], json!({ "action": "replace", "content": "# Decisions" }));
        assert_eq!(told["sections"]["tone"], json!({ "action": "remove" }));
        let bare = message(ToolChoice::All, |spec| {
            spec.team.clear();
            spec.context = "\n".into();
        });
        assert_eq!(bare["sections"]["identity"]["content"], DEFAULT_IDENTITY);
        assert_eq!(bare["sections"]["last_instructions"], json!({ "action": "remove" }));
    }

    #[test]
    fn a_deciding_session_gets_only_our_text() {
        let content = "You are Ada.# Team# Decisions";
        assert_eq!(message(ToolChoice::Nothing, |_| ()), json!({ "mode": "replace", "content": content }));
    }
}
