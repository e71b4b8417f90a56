//! The dry run: plans a run without starting anything.

use std::borrow::Cow;

use serde::Serialize;

use crate::compile::{Compiled, Task};
use crate::engine::Opening;
use crate::env::Env;
use crate::error::Failure;
use crate::model::{Attachment, Forecast, Plan, PlanKind, Slug};
use crate::ops::Project;
use crate::ops::ledger::contents as ledger;
use crate::ops::run::executor::opening;
use crate::ops::run::forecast::forecast;
use crate::ops::run::lockouts;
use crate::ops::run::orchestrate::plan;
use crate::ops::run::order::Order;
use crate::ops::team::agents::compiler;
use crate::ops::team::knowledge;
use crate::pool::WorkKind;

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
    /// What the run is likely to use; `None`: there are too few runs like it.
    pub(crate) forecast: Option<Forecast>,
}

#[derive(Serialize)]
pub(crate) struct PreviewedSession {
    pub(crate) agent: Slug,
    pub(crate) model: crate::model::ModelChoice,
    /// Which of the engine's tools.
    pub(crate) tools: crate::model::ToolChoice,
    pub(crate) squad_tools: Vec<Cow<'static, str>>,
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
    let knowledge = knowledge::offered(project, &task)?;
    let compiler = compiler(project, &learnings, &knowledge, &task);
    plan.evidence.extend(compiler.model_evidence(&plan));
    let members =
        |slugs: Vec<&Slug>| slugs.into_iter().filter_map(|slug| project.team.member(slug)).collect::<Vec<_>>();
    let agents = members(plan.agents.iter().collect());
    let agents = agents.into_iter().map(|member| (compiler.agent(member, plan.tier), WorkKind::Work));
    let reviewers = members(plan.reviewers().collect());
    let reviewers = reviewers.into_iter().map(|member| (compiler.reviewer(member, plan.tier), WorkKind::Review));
    let mut compiled: Vec<(Compiled<'_>, WorkKind)> = agents.chain(reviewers).collect();
    if answer.is_none() && (plan.kind != PlanKind::Agents || plan.agents.len() > 1) {
        compiled.push((compiler.coordinator(), WorkKind::Answer));
    }
    let sessions = compiled.into_iter().map(|(Compiled { spec, .. }, kind)| {
        let Opening { spec, tools, .. } = opening(project, spec, String::new(), kind, false);
        PreviewedSession {
            bytes: spec.prompt.len() + spec.full_context().len(),
            agent: spec.agent,
            model: spec.model,
            tools: spec.tools,
            squad_tools: tools.iter().map(|tool| tool.name.clone()).collect(),
            compiled_hash: spec.compiled_hash,
        }
    });
    let forecast = forecast(&project.repository, &project.ledger_prefix(), &plan);
    Ok(Preview { sessions: sessions.collect(), plan, attachments: order.attachments.clone(), answer, forecast })
}
