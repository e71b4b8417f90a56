//! `review_changes`: reviewers side by side on a diff that squad computes.

use serde::Deserialize;
use serde_json::json;

use super::members::run_named;
use super::{McpServer, arguments};
use crate::error::Failure;
use crate::mcp::{Call, Object, ToolResult};
use crate::ops::Project;
use crate::ops::run::host::Request;
use crate::ops::run::members::{self, RunResult};
use crate::ops::run::reviewing::{self, Asked, Range};
use crate::policy::Permissions;

/// Most bytes of the findings in a reply.
const REPLY: usize = 18 * 1024;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReviewChanges {
    base: Option<String>,
    #[serde(default)]
    staged: bool,
    #[serde(default)]
    paths: Vec<String>,
    reviewers: Option<Reviewers>,
    #[serde(default)]
    engines: Vec<String>,
    #[serde(default)]
    cross: bool,
    squad_id: Option<String>,
}

/// Roles, or how many of the default ones.
#[derive(Deserialize)]
#[serde(untagged)]
enum Reviewers {
    Roles(Vec<String>),
    Count(usize),
}

impl McpServer {
    pub(super) fn review_changes(&self, given: Object, call: &Call) -> Result<ToolResult, Failure> {
        let asked: ReviewChanges = arguments(given)?;
        let project = self.project()?;
        if let Some(id) = asked.squad_id.filter(|id| !id.is_empty()) {
            let run = run_named(&id)?;
            self.wait_for(&project, &run, self.options.patience, call);
            return self.shown_as(&project, &run, &|result| self.reviewed(&project, result, &[]));
        }
        let runner = self.runner()?;
        call.progress(0.0, None, "reading the diff");
        members::require_sound(&project)?;
        let roles = self.roles_of(Some(&project))?;
        let range =
            Range { base: asked.base.filter(|base| !base.is_empty()), staged: asked.staged, paths: asked.paths };
        let (reviewers, count) = match asked.reviewers {
            Some(Reviewers::Roles(roles)) => (roles, None),
            Some(Reviewers::Count(count)) => (Vec::new(), Some(count)),
            None => (Vec::new(), None),
        };
        let asked = Asked { range, reviewers, count, engines: asked.engines, cross: asked.cross };
        let (described, limit) = (self.options.described.as_ref(), Some(self.options.limit));
        let prepared = reviewing::prepare(&self.env, &project, &roles, described, (&asked, limit))?;
        let request =
            Request { members: prepared.members, permissions: Permissions::Deny, ..self.request(prepared.title) };
        let started = runner.start(&project, request)?;
        self.follow(&project, started, true, call, &|result| self.reviewed(&project, result, &prepared.notes))
    }

    fn reviewed(&self, project: &Project, result: &RunResult, notes: &[String]) -> ToolResult {
        let engine = self.options.described.as_ref().map_or(&project.settings.engine.name, |profile| &profile.name);
        let Some(review) = reviewing::of_run(result, engine) else {
            return ToolResult::error(&format!("run {} is not a review", result.run));
        };
        let mut value = json!({
            "squadId": review.run, "status": result.shown_status(), "base": review.base, "verdicts": review.verdicts,
        });
        let mut left = REPLY;
        let fitting = review.findings.iter().take_while(|finding| {
            let length = json!(finding).to_string().len();
            let fits = length <= left;
            left = left.saturating_sub(length);
            fits
        });
        let shown: Vec<&reviewing::Finding> = fitting.collect();
        if shown.len() < review.findings.len() {
            value["more"] =
                format!("{} more findings: `squad log {}`", review.findings.len() - shown.len(), review.run).into();
        }
        value["findings"] = json!(shown);
        if !notes.is_empty() {
            value["notes"] = json!(notes);
        }
        if result.status == "running" {
            value["hint"] = "call `review_changes` with this `squadId` for the rest".into();
        }
        ToolResult::structured(value)
    }
}
