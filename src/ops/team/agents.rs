//! The compiled team, as `squad agents` shows it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::compile::{Budget, Compiled, Compiler, Learnings, OfferedNote, Receipt, Sources, Task, Totals, in_force};
use crate::env::Env;
use crate::error::Failure;
use crate::model::{
    Ceremony, Charter, Kind, LabelRule, Member, ModelChoice, ModelLayer, Module, Problem, Rule, SessionSpec, Skill,
    Slug, Source, Status, Tier, ToolChoice,
};
use crate::ops::ledger::contents as ledger;
use crate::ops::ledger::log::{self, AgentRuns};
use crate::ops::team::cache::key_of;
use crate::ops::team::knowledge;
use crate::ops::team::members::{named_member, startable};
use crate::ops::team::project::{Opening, require_merged};
use crate::ops::{Project, Workspace};
use crate::settings::Layer;

#[derive(Serialize, Deserialize)]
pub(crate) struct TeamReport {
    pub(crate) agents: Vec<AgentReport>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) decisions: DecisionCount,
    pub(crate) problems: Vec<Problem>,
    /// Owners of parts of the code.
    pub(crate) modules: Vec<Module>,
    /// Rules for issues with a label.
    pub(crate) labels: Vec<LabelRule>,
    pub(crate) roles: Vec<RoleReport>,
    pub(crate) skills: Vec<Skill>,
    pub(crate) ceremonies: Vec<Ceremony>,
}

/// A role file without a member on the roster.
#[derive(Serialize, Deserialize)]
pub(crate) struct RoleReport {
    pub(crate) slug: Slug,
    pub(crate) name: Option<String>,
    pub(crate) role: Option<String>,
    pub(crate) model: Option<String>,
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct AgentReport {
    pub(crate) name: String,
    pub(crate) slug: Slug,
    pub(crate) role: String,
    pub(crate) kind: Kind,
    pub(crate) status: Status,
    /// Its path relative to the project's root.
    pub(crate) charter: Option<String>,
    /// The charter's model.
    pub(crate) model: Option<String>,
    pub(crate) resolved_model: String,
    pub(crate) model_layer: ModelLayer,
    /// The charter's tools; `None` for all.
    pub(crate) tools: Option<Vec<String>>,
    /// The approximate size of prompt and context at the standard tier; see `compile::tokens`.
    pub(crate) prompt_tokens: usize,
    pub(crate) compiled_hash: String,
    pub(crate) source: Source,
    pub(crate) runs: AgentRuns,
}

/// How many decisions the team's files hold.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct DecisionCount {
    pub(crate) total: usize,
    pub(crate) dated: usize,
    pub(crate) attributed: usize,
    #[serde(default)]
    pub(crate) in_force: usize,
    /// Archived decisions, which the other counts do not include.
    pub(crate) archived: usize,
}

/// One member, with the rules and problems that concern it.
#[derive(Serialize)]
pub(crate) struct MemberReport {
    pub(crate) agent: AgentReport,
    pub(crate) tier: Tier,
    pub(crate) budget: Budget,
    /// For this tier and the task.
    pub(crate) tokens: Totals,
    /// The rules that route work or reviews to it.
    pub(crate) rules: Vec<Rule>,
    pub(crate) problems: Vec<Problem>,
}

/// Exactly what the engine receives for an agent's session.
#[derive(Serialize)]
pub(crate) struct PromptReport {
    pub(crate) agent: Slug,
    pub(crate) tier: Tier,
    pub(crate) model: ModelChoice,
    pub(crate) tools: ToolChoice,
    pub(crate) compiled_hash: String,
    pub(crate) prompt: String,
    pub(crate) context: String,
}

/// What to compile for.
pub(crate) struct PromptOptions<'a> {
    pub(crate) task: Option<&'a str>,
    pub(crate) tier: Tier,
}

/// The whole team, cached until something that it is made from changes. Fails if a merge was not finished in it.
pub(crate) fn report(env: &Env, directory: &Path) -> Result<TeamReport, Failure> {
    const KIND: &str = "agents";
    let workspace = Workspace::find(env, directory)?;
    let ledger_tip = workspace.repository.ledger().tip()?.unwrap_or_default();
    let opening = Opening::new(env, workspace, Layer::default());
    let key = opening.key().map(|key| key_of([&key, &ledger_tip]));
    let cache = opening.cache.clone();
    if let Some(report) = key.as_ref().and_then(|key| cache.get(KIND, key)) {
        return Ok(report);
    }
    let project = opening.read();
    require_merged(&project.problems)?;
    let report = compiled_team(&project)?;
    if let Some(key) = &key {
        cache.put(KIND, key, &report);
    }
    Ok(report)
}

fn compiled_team(project: &Project) -> Result<TeamReport, Failure> {
    let learnings = learnings(project)?;
    let task = Task::none();
    let compiler = compiler(project, &learnings, &[], &task);
    let decisions = project.decisions();
    let runs = runs(project)?;
    Ok(TeamReport {
        agents: project.team.members.iter().map(|member| agent(project, &compiler, &runs, member)).collect(),
        rules: project.team.rules.clone(),
        decisions: DecisionCount {
            total: decisions.len(),
            dated: decisions.iter().filter(|decision| decision.date.is_some()).count(),
            attributed: decisions.iter().filter(|decision| decision.by.is_some()).count(),
            in_force: in_force(decisions).len(),
            archived: project.team.archived.len(),
        },
        problems: project.problems.clone(),
        modules: project.team.modules.clone(),
        labels: project.team.labels.clone(),
        roles: project.team.roles.iter().map(role).collect(),
        skills: project.team.skills.clone(),
        ceremonies: project.team.ceremonies.clone(),
    })
}

fn role((slug, charter): (&Slug, &Charter)) -> RoleReport {
    let Charter { name, role, model, .. } = charter.clone();
    RoleReport { slug: slug.clone(), name, role, model }
}

pub(crate) fn member(project: &Project, name: &str, options: &PromptOptions<'_>) -> Result<MemberReport, Failure> {
    let member = named_member(&project.team, name)?;
    let learnings = learnings(project)?;
    let task = options.task.map_or_else(Task::none, Task::new);
    let knowledge = knowledge::offered(project, &task)?;
    let compiler = compiler(project, &learnings, &knowledge, &task);
    let receipt = compiler.agent(member, options.tier).receipt();
    let rules = project.team.rules.iter();
    Ok(MemberReport {
        agent: agent(project, &compiler, &runs(project)?, member),
        tier: options.tier,
        budget: receipt.budget,
        tokens: receipt.tokens,
        rules: rules
            .filter(|rule| rule.agents.contains(&member.slug) || rule.reviewer.as_ref() == Some(&member.slug))
            .cloned()
            .collect(),
        problems: project
            .problems
            .iter()
            .filter(|problem| is_about(problem, &member.slug, &member.source))
            .cloned()
            .collect(),
    })
}

pub(crate) fn prompt(project: &Project, name: &str, options: &PromptOptions<'_>) -> Result<PromptReport, Failure> {
    compiled(project, name, options, |compiled| {
        let context = compiled.spec.full_context();
        let SessionSpec { agent, tier, model, tools, compiled_hash, prompt, .. } = compiled.spec;
        PromptReport { agent, tier, model, tools, compiled_hash, prompt, context }
    })
}

pub(crate) fn receipt(project: &Project, name: &str, options: &PromptOptions<'_>) -> Result<Receipt, Failure> {
    compiled(project, name, options, |compiled| compiled.receipt())
}

/// Compiles the session of an agent, or of the coordinator, which is not on the roster.
fn compiled<T>(
    project: &Project,
    name: &str,
    options: &PromptOptions<'_>,
    then: impl FnOnce(Compiled<'_>) -> T,
) -> Result<T, Failure> {
    let learnings = learnings(project)?;
    let task = options.task.map_or_else(Task::none, Task::new);
    let knowledge = knowledge::offered(project, &task)?;
    let compiler = compiler(project, &learnings, &knowledge, &task);
    if is_coordinator(project, name) {
        return Ok(then(compiler.coordinator()));
    }
    let member = startable(&project.team, named_member(&project.team, name)?)?;
    Ok(then(compiler.agent(member, options.tier)))
}

/// Whether the name means the coordinator and not a member of that name.
pub(crate) fn is_coordinator(project: &Project, name: &str) -> bool {
    Slug::fold(name) == Some(Slug::coordinator()) && project.team.member(&Slug::coordinator()).is_none()
}

fn learnings(project: &Project) -> Result<Learnings, Failure> {
    Ok(ledger::learnings(&project.repository, &project.ledger_prefix())?)
}

pub(in crate::ops) fn compiler<'a>(
    project: &'a Project,
    learnings: &'a Learnings,
    knowledge: &'a [OfferedNote],
    task: &'a Task,
) -> Compiler<'a> {
    Compiler::new(Sources { team: &project.team, learnings, settings: &project.settings, knowledge }, task)
}

/// Whether a problem is in a member's folder or in its row of the roster.
pub(crate) fn is_about(problem: &Problem, member: &Slug, row: &Source) -> bool {
    problem.file.contains(&format!("/agents/{member}/")) || (problem.file == row.file && problem.line == row.line)
}

fn runs(project: &Project) -> Result<BTreeMap<Slug, AgentRuns>, Failure> {
    Ok(log::agent_runs(&project.repository, &project.ledger_prefix())?)
}

fn agent(project: &Project, compiler: &Compiler<'_>, runs: &BTreeMap<Slug, AgentRuns>, member: &Member) -> AgentReport {
    let compiled = compiler.agent(member, Tier::Standard);
    let charter = project.team.charters.get(&member.slug);
    AgentReport {
        name: member.name.clone(),
        slug: member.slug.clone(),
        role: member.role.clone(),
        kind: member.kind,
        status: member.status,
        charter: member.charter.clone(),
        model: charter.and_then(|charter| charter.model.clone()),
        prompt_tokens: compiled.tokens(),
        resolved_model: compiled.spec.model.id,
        model_layer: compiled.spec.model.layer,
        tools: charter.and_then(Charter::allowed_tools),
        compiled_hash: compiled.spec.compiled_hash,
        source: member.source.clone(),
        runs: runs.get(&member.slug).cloned().unwrap_or_default(),
    }
}
