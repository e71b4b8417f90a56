//! `review_changes`: reviewers side by side on a diff that squad computes.

use serde::Deserialize;
use serde_json::json;

use super::members::{FRAME, run_named};
use super::{McpServer, answers, arguments, uri};
use crate::error::Failure;
use crate::mcp::{Call, Object, ToolResult};
use crate::ops::Project;
use crate::ops::run::host::Request;
use crate::ops::run::members::{self, RunResult};
use crate::ops::run::reviewing::{self, Asked, Range, Review};
use crate::policy::Permissions;

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

    /// `None`: the run is no review.
    pub(super) fn review_of(&self, project: &Project, result: &RunResult) -> Option<Review> {
        let engine = self.options.described.as_ref().map_or(&project.settings.engine.name, |profile| &profile.name);
        reviewing::of_run(result, engine)
    }

    fn reviewed(&self, project: &Project, result: &RunResult, notes: &[String]) -> ToolResult {
        let Some(mut review) = self.review_of(project, result) else {
            return ToolResult::error(&format!("run {} is not a review", result.run));
        };
        let mut value = json!({
            "squadId": review.run, "status": result.shown_status(), "base": review.base, "verdicts": review.verdicts,
        });
        if !notes.is_empty() {
            value["notes"] = json!(notes);
        }
        if result.status == "running" {
            value["hint"] = "call `review_changes` with this `squadId` for the rest".into();
        }
        let left = self.room().saturating_sub(value.to_string().len() + FRAME + uri::run(&result.run).len());
        let mut fits = answers::fits(left);
        let left_out = review.keep_gravest(|finding| fits(&json!(finding)));
        if left_out > 0 {
            value["more"] = format!("{left_out} more findings").into();
            value["uri"] = uri::run(&result.run).into();
        }
        value["findings"] = json!(review.findings);
        ToolResult::structured(value)
    }
}
