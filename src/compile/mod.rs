//! Compiles a team into the session configuration of each agent, with a receipt of all inputs.
//!
//! A pure function of the team's files, the ledger's learnings, settings, task and tier: no clock, no locale, LF line
//! ends. The order is stable and starts with what changes least, so that the provider's prompt cache hits. The same
//! input gives the same bytes.
//!
//! ```text
//! prompt    the charter
//! team      instructions, project, roster       the same for all agents      fixed: in the compiled hash
//! context   the agent's ceremonies                                           fixed: in the compiled hash
//!           skills, notes for the whole team
//!           knowledge from here and linked projects   only what is about the task
//!           decisions in force                  selected for the task, within the budget
//!           learnings and history               selected for the task, within the budget
//! ```
//!
//! Quotes the team's records line by line, so that none of them can act as a heading of squad's.

mod budget;
mod candidates;
mod charter;
mod choice;
mod compiled;
mod coordinator;
mod coordinator_context;
mod decisions;
mod fixed_parts;
mod history;
mod knowledge;
mod lines;
mod model_choice;
mod note_index;
mod notes;
mod past_calls;
mod prompt;
mod receipt;
mod sections;
mod situation;
mod skills;
mod text;
mod topic;

pub(crate) use budget::{Budget, tokens};
pub(crate) use compiled::Compiled;
pub(crate) use decisions::in_force;
pub(crate) use knowledge::{NoteRank, OfferedNote, suspicion};
pub(crate) use note_index::{NoteIndex, NoteTexts};
pub(crate) use past_calls::{PastCall, PastCalls, unknown_calls};
pub(crate) use prompt::{
    Colleague, Part, Rejection, ReviewedWork, answer_prompt, conflict_prompt, continuation_prompt, handed_prompt,
    hook_addition, interrupted_prompt, meeting_prompt, moved_prompt, review_prompt, reviser_prompt, revision_prompt,
    task_prompt, user_additions,
};
pub(crate) use receipt::{Input, Receipt, Totals};
pub(crate) use situation::{Situation, changed_by_others, earlier_turns, new_task, recorded_work, written_by_others};

use std::collections::BTreeMap;

use crate::model::{
    AvailableModels, Charter, ContextItem, Evidence, IntoSet, Member, ModelLayer, Plan, SessionSpec, Slug, Team, Tier,
    ToolChoice, is_denied, tools_but, tools_called, without_hidden,
};
use crate::settings::{McpServerSettings, PolicySubject, PolicyWord, Settings};
use compiled::{ReceiptData, Selected};
use decisions::Ranked;
use fixed_parts::{agent_prompt, history_file, own_context, roster_of_owners, team_context};
use history::RankedNotes;
use receipt::hash;
use skills::Catalog as Skills;
use topic::Topic;

/// The learnings of each agent from the ledger, newest last.
pub(crate) type Learnings = BTreeMap<Slug, Vec<Learning>>;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Learning {
    /// The ledger entry's id.
    pub(crate) entry: String,
    /// `yyyy-mm-dd`.
    pub(crate) date: String,
    pub(crate) text: String,
    /// It landed in a history on another branch, and may have been merged here in an edited form.
    pub(crate) is_elsewhere: bool,
}

/// The sources for the sessions of a task.
pub(crate) struct Sources<'a> {
    pub(crate) team: &'a Team,
    pub(crate) learnings: &'a Learnings,
    pub(crate) settings: &'a Settings,
    /// Notes that are about the task, the most relevant first.
    pub(crate) knowledge: &'a [OfferedNote],
}

/// A task, analysed once for all its sessions.
pub(crate) struct Task {
    topic: Topic,
    /// Bytes that the message takes in the coordinator's prompt.
    message_size: usize,
    /// `None` without a task.
    hash: Option<String>,
}

impl Task {
    pub(crate) fn new(message: &str) -> Self {
        Self {
            topic: Topic::new(message),
            message_size: prompt::message_in_choice(message).len(),
            hash: Some(hash(&[message])),
        }
    }

    /// No task: only recency counts.
    pub(crate) fn none() -> Self {
        Self { topic: Topic::default(), message_size: 0, hash: None }
    }
}

/// Compiles the sessions of one task. Renders the roster and ranks decisions once for all agents.
pub(crate) struct Compiler<'a> {
    sources: Sources<'a>,
    task: &'a Task,
    roster: String,
    skills: Skills<'a>,
    notes: RankedNotes<'a>,
    decisions: Ranked<'a>,
    offer: AvailableModels,
    /// Of engines that have not said what they offer.
    unknown_offer: AvailableModels,
}

impl<'a> Compiler<'a> {
    pub(crate) fn new(sources: Sources<'a>, task: &'a Task) -> Self {
        let (team, topic) = (sources.team, &task.topic);
        Self {
            roster: roster_of_owners(team),
            skills: Skills::new(&team.skills, topic),
            notes: RankedNotes::of_team(&team.notes, topic),
            decisions: Ranked::new(&team.decisions, topic),
            sources,
            task,
            offer: AvailableModels::default(),
            unknown_offer: AvailableModels::default(),
        }
    }

    /// For an engine that reports which models it offers.
    pub(crate) fn on(self, offer: AvailableModels) -> Self {
        Self { offer, ..self }
    }

    /// The learnings of a member, under its present and former names.
    fn learnings_of(&self, member: &Member) -> impl Iterator<Item = &'a Learning> {
        let Sources { team, learnings, .. } = self.sources;
        let is_own = |slug: &Slug| team.member_once(slug).is_some_and(|owner| owner.slug == member.slug);
        let former: Vec<Slug> = team.formerly(member).filter(is_own).collect();
        let own = former.iter().chain([&member.slug]).filter_map(|slug| learnings.get(slug));
        own.flatten().collect::<Vec<_>>().into_iter()
    }

    /// What the engine of an agent offers; `None`: the run's engine.
    fn offer_of(&self, engine: Option<&str>) -> &AvailableModels {
        if engine.is_none_or(|engine| engine == self.offer.engine) { &self.offer } else { &self.unknown_offer }
    }

    /// The engine that is named for a member.
    fn engine_of(&self, member: &Member) -> Option<String> {
        let Sources { team, settings, .. } = self.sources;
        let chartered = team.charters.get(&member.slug).and_then(|charter| charter.engine.as_deref());
        settings.engine_of(&member.names(), chartered)
    }

    /// Compiles the session of one agent.
    pub(crate) fn agent(&'a self, member: &'a Member, tier: Tier) -> Compiled<'a> {
        let Sources { team, settings, knowledge: offered, .. } = self.sources;
        let charter = team.charters.get(&member.slug);
        let project = sections::select(&sections::PROJECT, &team.context, Budget::of_project(tier));
        let most = Budget::of_charter(tier, project.text.len() + self.roster.len());
        let chartered = charter::select(agent_prompt(member, charter), member.charter.as_ref(), most);
        let prompt = without_hidden(chartered.text.clone());
        let fixed = without_hidden(team_context(&project.text, &self.roster));
        let own = without_hidden(own_context(team, member));
        let fixed_size = tokens(&prompt) + tokens(&fixed) + tokens(&own);
        let wanted = [self.skills.wanted(), self.notes.wanted(), knowledge::wanted(offered)];
        let budget = Budget::new(tier, fixed_size, wanted);
        let (skills, notes) = (self.skills.select(budget.skills), self.notes.select(budget.notes));
        let knowledge = knowledge::select(offered, budget.knowledge);
        let decisions = self.decisions.select(&budget);
        let past = RankedNotes::new(
            team.histories.get(&member.slug).map_or("", String::as_str),
            &history_file(member),
            self.learnings_of(member),
            &self.task.topic,
        );
        let history = past.select(budget.history);
        let engine = self.engine_of(member);
        let offer = self.offer_of(engine.as_deref());
        let model = model_choice::resolve(member, charter, settings, tier, offer);
        let items = std::iter::once(ContextItem::new("", own.clone())).filter(|own| !own.text.is_empty());
        let selected = [&skills.items, &notes.items, &knowledge.items, &decisions.items, &history.items];
        let items = items.chain(selected.into_iter().flatten().cloned());
        let mut spec = SessionSpec {
            items: items.map(|item| ContextItem { text: without_hidden(item.text), ..item }).collect(),
            agent: member.slug.clone(),
            name: member.name.clone(),
            role: member.role.clone(),
            tier,
            prompt,
            team: fixed,
            context: without_hidden(
                [&own, &skills.text, &notes.text, &knowledge.text, &decisions.text, &history.text]
                    .map(String::as_str)
                    .concat(),
            ),
            effort: model_choice::effort(charter, &model, tier, offer),
            model,
            engine,
            tools: tools(charter, tier, &settings.mcp),
            denied_tools: denied_tools(charter, settings, &member.names(), tier),
            compaction_threshold: compaction_threshold(settings, tier),
            compiled_hash: String::new(),
        };
        spec.compiled_hash = compiled_hash(&spec, &own);
        let selected = Box::new(Selected { charter: chartered, project, skills, notes, knowledge, decisions, history });
        Compiled { spec, compiler: self, receipt_data: ReceiptData::Agent { member, past, budget, selected } }
    }

    /// Compiles the session of an agent that reviews: without tools that change files.
    pub(crate) fn reviewer(&'a self, member: &'a Member, tier: Tier) -> Compiled<'a> {
        let mut compiled = self.agent(member, tier);
        compiled.spec.tools = reviewing_tools(&compiled.spec.tools);
        compiled.spec.compiled_hash =
            compiled_hash(&compiled.spec, &without_hidden(own_context(self.sources.team, member)));
        compiled
    }

    /// Each agent's model in a plan, and the layer that chose it. Has no weight, because it is no reason to choose the
    /// agent.
    pub(crate) fn model_evidence(&self, plan: &Plan) -> Vec<Evidence> {
        let Sources { team, settings, .. } = self.sources;
        let members = plan.agents.iter().chain(plan.reviewers()).filter_map(|slug| team.member(slug));
        members
            .map(|member| {
                let charter = team.charters.get(&member.slug);
                let engine = self.engine_of(member);
                let offer = self.offer_of(engine.as_deref());
                let choice = model_choice::resolve(member, charter, settings, plan.tier, offer);
                let (layer, source) = match choice.layer {
                    ModelLayer::User => ("the user", "configuration".to_owned()),
                    ModelLayer::Charter => {
                        ("the charter", member.charter.clone().unwrap_or_else(|| member.source.to_string()))
                    }
                    ModelLayer::Role => ("the role", "configuration".to_owned()),
                    ModelLayer::Default => ("the default", "configuration".to_owned()),
                    ModelLayer::Engine => ("the engine", "engine".to_owned()),
                };
                let model = choice.why_another().unwrap_or_else(|| format!("model {}", choice.shown()));
                let named = charter.and_then(|charter| charter.model.as_ref());
                let why = match named.filter(|_| plan.tier == Tier::Full && choice.layer == ModelLayer::Default) {
                    Some(named) => format!("{model}, the premium model of tier full; the charter names {named}"),
                    None => format!("{model}, chosen by {layer}"),
                };
                Evidence { agent: member.slug.clone(), why, source, weight: 0.0 }
            })
            .collect()
    }
}

/// The tools allowed by a charter, whatever the tier, in one list: other programs have none of denied tools.
pub(crate) fn charter_tools(charter: &Charter) -> ToolChoice {
    match tools(Some(charter), Tier::Standard, &BTreeMap::new()) {
        ToolChoice::All if !charter.denied_tools.is_empty() => ToolChoice::Only(tools_but(&charter.denied_tools)),
        choice => choice,
    }
}

/// The tools allowed by the charter. Many teams list programming tools there: `terraform` is no tool of an engine, and
/// a list of such names only allows all tools. A tool of an MCP server is named behind it, as in `tides/predict`; all
/// of them, as in `tides/*`, are those that its settings list, since an engine knows no pattern.
fn tools(charter: Option<&Charter>, tier: Tier, servers: &BTreeMap<String, McpServerSettings>) -> ToolChoice {
    if matches!(tier, Tier::Direct | Tier::Lightweight) {
        return ToolChoice::ReadOnly;
    }
    let Some(charter) = charter else { return ToolChoice::All };
    let denied = &charter.denied_tools;
    let Some(named) = &charter.tools else { return ToolChoice::All };
    let mut known: Vec<String> = Vec::new();
    let of_server = |name: &str| {
        let (server, tool) = name.split_once('/')?;
        let listed = servers.get(server)?.tools.as_deref().filter(|_| tool == "*");
        let tools = listed.unwrap_or_default().iter().map(String::as_str).chain(Some(tool).filter(|tool| *tool != "*"));
        Some(tools.map(|tool| format!("{server}-{tool}")).collect::<Vec<String>>())
    };
    let of_engine = |name: &str| Some(tools_called(name)?.iter().map(|tool| (*tool).to_owned()).collect());
    let names_server = named.iter().any(|name| of_server(name).is_some());
    for tool in named.iter().filter_map(|name| of_engine(name).or_else(|| of_server(name))).flatten() {
        if !known.contains(&tool) {
            known.push(tool);
        }
    }
    let is_everything = !denied.is_empty() && known.iter().any(|tool| tool == "*");
    if is_everything || known.is_empty() && !named.is_empty() && !names_server {
        return ToolChoice::All;
    }
    known.retain(|tool| !is_denied(denied, tool));
    ToolChoice::Only(known)
}

/// The engine's own tools that the charter and rules of `[policy]` take away. Those of servers are judged when they are
/// called.
fn denied_tools(charter: Option<&Charter>, settings: &Settings, names: &[String], tier: Tier) -> Vec<String> {
    let denied_of = |patterns: &[String]| {
        tools_but(&[]).into_iter().filter(|tool| is_denied(patterns, tool)).collect::<Vec<String>>()
    };
    let rules = settings.policy_rules().filter(|rule| rule.subject == PolicySubject::Tools && rule.is_for(names, tier));
    let denied = rules.flat_map(|rule| match rule.word {
        PolicyWord::Deny => denied_of(&rule.patterns),
        PolicyWord::Only => tools_but(&rule.patterns),
        PolicyWord::Allow | PolicyWord::Ask => Vec::new(),
    });
    let by_charter = charter.map(|charter| denied_of(&charter.denied_tools)).unwrap_or_default();
    denied.chain(by_charter).into_set().into_iter().collect()
}

/// The shell is among them for the commands that show changes; others are refused.
fn reviewing_tools(choice: &ToolChoice) -> ToolChoice {
    const READING: [&str; 4] = ["view", "grep", "glob", "bash"];
    let all = || READING.iter().map(|tool| (*tool).to_owned());
    match choice {
        ToolChoice::All => ToolChoice::Only(all().collect()),
        ToolChoice::Only(tools) if tools.iter().any(|tool| tool == "*") => ToolChoice::Only(all().collect()),
        ToolChoice::Only(tools) => ToolChoice::Only(all().filter(|tool| tools.contains(tool)).collect()),
        ToolChoice::Nothing | ToolChoice::ReadOnly => choice.clone(),
    }
}

fn compaction_threshold(settings: &Settings, tier: Tier) -> Option<f64> {
    match tier {
        _ if !settings.sessions.infinite => None,
        Tier::Direct | Tier::Lightweight => None,
        Tier::Standard => Some(settings.sessions.compaction_threshold),
        // Sessions in tier full carry more context at once, so they compact earlier: 0.70 instead of 0.80 by default.
        Tier::Full => Some((settings.sessions.compaction_threshold - 0.10).max(0.10)),
    }
}

/// Covers everything that requires a new session. Decisions, history and task reach a live session with its next turn.
fn compiled_hash(spec: &SessionSpec, own_context: &str) -> String {
    let tools = match &spec.tools {
        ToolChoice::All => "all".to_owned(),
        ToolChoice::Nothing => "nothing".to_owned(),
        ToolChoice::ReadOnly => "read-only".to_owned(),
        ToolChoice::Only(tools) => format!("only {}", tools.join(" ")),
    };
    let tier = spec.tier.to_string();
    let compaction = spec.compaction_threshold.map_or(String::new(), |threshold| threshold.to_string());
    let mut parts = vec![&spec.prompt, &spec.team, own_context, &spec.model.id, &tools, &tier, &compaction];
    parts.extend(spec.effort.as_deref());
    let denied = spec.denied_tools.join(" ");
    parts.extend((!denied.is_empty()).then_some(&*denied));
    hash(&parts)
}

#[cfg(test)]
mod tests;
