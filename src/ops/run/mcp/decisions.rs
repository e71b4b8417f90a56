//! Decisions, through the same operations as the commands.

use serde::Deserialize;
use serde_json::{Value, json};

use super::members::FRAME;
use super::{McpServer, answers, arguments};
use crate::error::Failure;
use crate::mcp::{Fault, Object, ToolResult};
use crate::model::{Decision, DecisionId};
use crate::ops::decisions::list::{self, Addition, ListedDecision};
use crate::ops::{Workspace, require_readable};

/// Most decisions offered as resources.
const DEFAULT: usize = 20;
const MOST: usize = 500;
/// The part of a reply that one decision's text may take.
const LARGEST: usize = 4;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LogDecision {
    decision: String,
    #[serde(default)]
    context: String,
    supersedes: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListDecisions {
    limit: Option<usize>,
    #[serde(default)]
    query: String,
}

/// A decision with the beginning of its text, of at most so many bytes of JSON. The whole stands in `squad://decisions`.
fn shown(decision: &ListedDecision, most: usize) -> Value {
    let mut value = json!(decision);
    let text = answers::beginning(&decision.text, most);
    if text.len() < decision.text.len() {
        value["text"] = text.into();
        value["truncated"] = true.into();
    }
    value
}

impl McpServer {
    pub(super) fn log_decision(&self, given: Object) -> Result<ToolResult, Failure> {
        let decision = self.logged(arguments(given)?)?;
        Ok(ToolResult::structured(json!({"id": decision.id})))
    }

    /// The decision is durable when this returns. A command in the foreground lands it on the branch.
    fn logged(&self, asked: LogDecision) -> Result<Decision, Failure> {
        let why = match asked.context.trim() {
            "" => String::new(),
            context => format!("\n\n**Why:** {context}"),
        };
        let text = format!("{}{why}", asked.decision.trim());
        if asked.decision.trim().is_empty() {
            return Err(Failure::usage("`decision` is empty"));
        }
        let addition = Addition { text, ..Addition::default() };
        let Some(old) = asked.supersedes.filter(|id| !id.is_empty()) else {
            let workspace = Workspace::find_without_team(&self.env, &self.directory)?;
            require_readable(&workspace)?;
            return list::add(&self.env, &workspace, addition);
        };
        if DecisionId::parse(&old).is_none() {
            return Err(Failure::usage(format!("`supersedes`: {old:?} is not a decision's id")));
        }
        let project = self.project()?;
        project.require_readable()?;
        list::supersede(&self.env, &project, &old, addition)
    }

    pub(super) fn list_decisions(&self, given: Object) -> Result<ToolResult, Failure> {
        let ListDecisions { limit, query } = arguments(given)?;
        let query = query.to_lowercase();
        let is_meant = |decision: &ListedDecision| {
            let text = [decision.id.as_str(), &decision.title, &decision.text].join("\n").to_lowercase();
            query.split_whitespace().all(|word| text.contains(word))
        };
        let limit = limit.unwrap_or(DEFAULT).min(MOST);
        let room = self.room() - FRAME;
        let found: Vec<ListedDecision> = self.decisions()?.into_iter().filter(is_meant).take(limit).collect();
        let whole = found.iter().map(|decision| shown(decision, room / LARGEST));
        let decisions: Vec<Value> = whole.take_while(answers::fits(room)).collect();
        let more = found.len() - decisions.len();
        let mut value = json!({ "decisions": decisions });
        if more > 0 {
            value["decisionsMore"] = more.into();
        }
        Ok(ToolResult::structured(value))
    }

    /// Newest first.
    fn decisions(&self) -> Result<Vec<ListedDecision>, Failure> {
        let project = self.project()?;
        project.require_readable()?;
        list::all(&project)
    }

    pub(super) fn decision_contents(&self, uri: &str) -> Result<Vec<Value>, Fault> {
        let all = self.decisions().map_err(|failure| Fault::internal(failure.message))?;
        let text = json!({ "decisions": all }).to_string();
        Ok(vec![json!({"uri": uri, "mimeType": "application/json", "text": text})])
    }
}
