//! The dry run: plans a run without starting anything.

use serde::Serialize;

use crate::compile::{Compiled, Task};
use crate::env::Env;
use crate::error::Failure;
use crate::model::{Attachment, Plan, PlanKind, Slug};
use crate::ops::Project;
use crate::ops::ledger::contents as ledger;
use crate::ops::run::lockouts;
use crate::ops::run::orchestrate::plan;
use crate::ops::run::order::Order;
use crate::ops::team::agents::compiler;

/// The plan, and the session of each agent in it.
#[derive(Serialize)]
pub(crate) struct Preview {
    pub(crate) plan: Plan,
    pub(crate) sessions: Vec<PreviewedSession>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) attachments: Vec<Attachment>,
    /// squad's own answer, if no engine is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) answer: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct PreviewedSession {
    pub(crate) agent: Slug,
    pub(crate) model: crate::model::ModelChoice,
    pub(crate) tools: crate::model::ToolChoice,
    /// The size of prompt and context.
    pub(crate) bytes: usize,
    pub(crate) compiled_hash: String,
}

pub(crate) fn preview(env: &Env, project: &Project, order: &Order) -> Result<Preview, Failure> {
    let now = env.clock.now();
    let lockouts = lockouts::binding(project, &order.message, &order.route_options.agents, || now)?;
    let (mut plan, answer) = plan(project, order, &lockouts, None)?;
    let learnings = ledger::learnings(&project.repository, &project.ledger_prefix())?;
    let task = Task::new(&order.message);
    let compiler = compiler(project, &learnings, &task);
    plan.evidence.extend(compiler.model_evidence(&plan));
    let mut compiled: Vec<Compiled<'_>> = plan
        .agents
        .iter()
        .chain(plan.reviewers())
        .filter_map(|slug| project.team.member(slug))
        .map(|member| compiler.agent(member, plan.tier))
        .collect();
    if answer.is_none() && (plan.kind != PlanKind::Agents || plan.agents.len() > 1) {
        compiled.push(compiler.coordinator());
    }
    let sessions = compiled.into_iter().map(|Compiled { spec, .. }| PreviewedSession {
        bytes: spec.prompt.len() + spec.full_context().len(),
        agent: spec.agent,
        model: spec.model,
        tools: spec.tools,
        compiled_hash: spec.compiled_hash,
    });
    Ok(Preview { sessions: sessions.collect(), plan, attachments: order.attachments.clone(), answer })
}
