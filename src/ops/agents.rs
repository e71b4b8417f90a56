//! The compiled team, as `squad agents` shows it.

use serde::Serialize;

use super::{Project, ledger};
use crate::compile::{self, Learnings};
use crate::error::Failure;
use crate::model::{Kind, Member, ModelLayer, Problem, Rule, SessionSpec, Slug, Source, Status, Tier};

#[derive(Serialize)]
pub(crate) struct TeamReport {
    pub(crate) agents: Vec<AgentReport>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) decisions: DecisionCount,
    pub(crate) problems: Vec<Problem>,
}

#[derive(Clone, Serialize)]
pub(crate) struct AgentReport {
    pub(crate) name: String,
    pub(crate) slug: Slug,
    pub(crate) role: String,
    pub(crate) kind: Kind,
    pub(crate) status: Status,
    /// Its path from the project's root.
    pub(crate) charter: Option<String>,
    /// What the charter names.
    pub(crate) model: Option<String>,
    pub(crate) resolved_model: String,
    pub(crate) model_layer: ModelLayer,
    /// What the charter names; `None` for all.
    pub(crate) tools: Option<Vec<String>>,
    /// Of prompt and context at the standard tier; a token is taken for four bytes, which errs by −6 … +17 %.
    pub(crate) prompt_tokens: usize,
    pub(crate) compiled_hash: String,
    pub(crate) source: Source,
}

/// How many decisions the team's files hold.
#[derive(Serialize)]
pub(crate) struct DecisionCount {
    pub(crate) total: usize,
    pub(crate) dated: usize,
    pub(crate) attributed: usize,
}

pub(crate) fn report(project: &Project) -> Result<TeamReport, Failure> {
    let learnings = ledger::learnings(&project.repository, &project.ledger_prefix())?;
    let decisions = project.decisions();
    Ok(TeamReport {
        agents: project.team.members.iter().map(|member| agent(project, member, &learnings)).collect(),
        rules: project.team.rules.clone(),
        decisions: DecisionCount {
            total: decisions.len(),
            dated: decisions.iter().filter(|decision| decision.date.is_some()).count(),
            attributed: decisions.iter().filter(|decision| decision.by.is_some()).count(),
        },
        problems: project.problems.clone(),
    })
}

fn agent(project: &Project, member: &Member, learnings: &Learnings) -> AgentReport {
    let spec = spec(project, member, learnings);
    let charter = project.team.charters.get(&member.slug);
    AgentReport {
        name: member.name.clone(),
        slug: member.slug.clone(),
        role: member.role.clone(),
        kind: member.kind,
        status: member.status,
        charter: member.charter.clone(),
        model: charter.and_then(|charter| charter.model.clone()),
        resolved_model: spec.model.id.clone(),
        model_layer: spec.model.layer,
        tools: charter.and_then(|charter| charter.tools.clone()),
        prompt_tokens: (spec.prompt.len() + spec.context.len()).div_ceil(4),
        compiled_hash: spec.compiled_hash,
        source: member.source.clone(),
    }
}

fn spec(project: &Project, member: &Member, learnings: &Learnings) -> SessionSpec {
    compile::agent(&project.team, member, learnings, &project.settings, Tier::Standard)
}
