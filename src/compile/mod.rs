//! A team, compiled: for each agent what its session is made of, and why.
//!
//! A pure function of the team's files, the ledger's learnings, the settings, the task and the tier: no clock, no
//! locale, LF line ends, a stable order with what changes least first (so that the provider's prompt cache hits). The
//! same input gives the same bytes.
//!
//! ```text
//! prompt    the charter
//! context   how we work here, the roster      static: in the compiled hash
//!           decisions in force                chosen for the task, within the budget
//!           what the agent learned before     chosen for the task, within the budget
//! ```
//!
//! Text of the team's records is quoted, line by line, so that none of it can pose as a heading of ours.

mod budget;
mod choice;
mod decisions;
mod history;
mod model_choice;
mod notes;
mod prompt;
mod receipt;
mod text;
mod topic;

pub(crate) use budget::{Budget, tokens};
pub(crate) use decisions::in_force;
pub(crate) use prompt::{Colleague, answer_prompt, choice_prompt, review_prompt, task_prompt};
pub(crate) use receipt::{Input, Receipt, Totals};

use std::collections::BTreeMap;

use crate::model::{
    Charter, Decision, Evidence, Member, ModelLayer, Offer, Plan, Rule, SessionSpec, Slug, Team, Tier, ToolChoice,
};
use crate::settings::Settings;
use decisions::Ranked;
use history::Past;
use receipt::{InputKind, hash};
use text::{cite, one_line, push_within};
use topic::Topic;

/// What agents have learned, newest last, as the ledger has it.
pub(crate) type Learnings = BTreeMap<Slug, Vec<Learning>>;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Learning {
    /// The ledger entry's id.
    pub(crate) entry: String,
    /// `yyyy-mm-dd`.
    pub(crate) date: String,
    pub(crate) text: String,
}

/// The coordinator's prompt at most, in bytes (PRD 5: 15 KB).
const COORDINATOR_LENGTH: usize = 15_000;
/// Of these, the roster at most.
const ROSTER_LENGTH: usize = 6_000;

/// What the sessions of one task are compiled from.
pub(crate) struct Sources<'a> {
    pub(crate) team: &'a Team,
    pub(crate) learnings: &'a Learnings,
    pub(crate) settings: &'a Settings,
}

/// What a task is about; made once, for all its sessions.
pub(crate) struct Task {
    topic: Topic,
    /// `None` when there is no task yet.
    hash: Option<String>,
}

impl Task {
    pub(crate) fn new(message: &str) -> Self {
        Self { topic: Topic::new(message), hash: Some(hash(&[message])) }
    }

    /// The team at rest: what is newest counts.
    pub(crate) fn none() -> Self {
        Self { topic: Topic::default(), hash: None }
    }
}

/// Compiles the sessions of one task. Decisions are ranked once, whatever the number of agents.
pub(crate) struct Compiler<'a> {
    sources: Sources<'a>,
    task: &'a Task,
    decisions: Ranked<'a>,
    offer: Offer,
}

/// A session, and how it came about.
pub(crate) struct Compiled<'a> {
    pub(crate) spec: SessionSpec,
    compiler: &'a Compiler<'a>,
    making: Making<'a>,
}

enum Making<'a> {
    Agent { member: &'a Member, past: Past<'a>, budget: Budget, decisions: decisions::Told, history: history::Told },
    Coordinator { rules: usize, decisions: usize },
}

impl<'a> Compiler<'a> {
    pub(crate) fn new(sources: Sources<'a>, task: &'a Task) -> Self {
        let decisions = Ranked::new(&sources.team.decisions, &task.topic);
        Self { sources, task, decisions, offer: Offer::default() }
    }

    /// For an engine that says which models it offers.
    pub(crate) fn on(self, offer: Offer) -> Self {
        Self { offer, ..self }
    }

    /// The session of one agent.
    pub(crate) fn agent(&'a self, member: &'a Member, tier: Tier) -> Compiled<'a> {
        let Sources { team, learnings, settings } = self.sources;
        let charter = team.charters.get(&member.slug);
        let prompt = agent_prompt(member, charter);
        let fixed = fixed_context(team, member);
        let budget = Budget::new(tier, tokens(&prompt) + tokens(&fixed));
        let decisions = self.decisions.tell(&budget);
        let past = Past::new(
            team.histories.get(&member.slug).map_or("", String::as_str),
            &history_file(member),
            learnings.get(&member.slug).map_or(&[], Vec::as_slice),
            &self.task.topic,
        );
        let history = past.tell(&budget);
        let mut spec = SessionSpec {
            agent: member.slug.clone(),
            name: member.name.clone(),
            role: member.role.clone(),
            tier,
            prompt,
            context: format!("{fixed}{}{}", decisions.text, history.text),
            model: model_choice::resolve(member, charter, settings, tier, &self.offer),
            tools: tools(charter, tier),
            compaction_threshold: compaction_threshold(settings, tier),
            compiled_hash: String::new(),
        };
        spec.compiled_hash = compiled_hash(&spec, &fixed);
        Compiled { spec, compiler: self, making: Making::Agent { member, past, budget, decisions, history } }
    }

    /// Which model each agent of a plan gets, and the layer that chose it. It speaks for nobody, so it weighs nothing.
    pub(crate) fn model_evidence(&self, plan: &Plan) -> Vec<Evidence> {
        let Sources { team, settings, .. } = self.sources;
        let members = plan.agents.iter().chain(&plan.reviewer).filter_map(|slug| team.member(slug));
        members
            .map(|member| {
                let charter = team.charters.get(&member.slug);
                let choice = model_choice::resolve(member, charter, settings, plan.tier, &self.offer);
                let (layer, source) = match choice.layer {
                    ModelLayer::User => ("the user", "configuration".to_owned()),
                    ModelLayer::Charter => ("the charter", member.charter.clone().unwrap_or_default()),
                    ModelLayer::Role => ("the role", "configuration".to_owned()),
                    ModelLayer::Default => ("the default", "configuration".to_owned()),
                    ModelLayer::Engine => ("the engine", "engine".to_owned()),
                };
                let model = choice.why_another().unwrap_or_else(|| format!("model {}", choice.shown()));
                let why = format!("{model}, chosen by {layer}");
                Evidence { agent: member.slug.clone(), why, source, weight: 0.0 }
            })
            .collect()
    }

    /// The coordinator's session: it chooses where the router abstains, answers what needs no agent, and writes the
    /// final answer of several agents' work.
    pub(crate) fn coordinator(&'a self) -> Compiled<'a> {
        let Sources { team, settings, .. } = self.sources;
        let mut prompt = prompt::COORDINATOR.to_owned();
        let roster = prompt.len() + ROSTER_LENGTH;
        push_within(&mut prompt, "\n## The team\n\n", team.startable().map(roster_line), roster);
        let heading = "\n## Who does what\n\n";
        let rules = push_within(&mut prompt, heading, team.rules.iter().map(rule_line), COORDINATOR_LENGTH);
        let mut context = String::new();
        let room = COORDINATOR_LENGTH.saturating_sub(prompt.len());
        let titles = self.decisions.best().map(decision_title);
        let decisions = push_within(&mut context, "## Decisions in force\n\n", titles, room);
        let mut spec = SessionSpec {
            agent: Slug::coordinator(),
            name: "Coordinator".to_owned(),
            role: "Coordinator".to_owned(),
            tier: Tier::Direct,
            prompt,
            context,
            model: model_choice::coordinator(settings, &self.offer),
            tools: ToolChoice::ReadOnly,
            compaction_threshold: settings.sessions.infinite.then_some(settings.sessions.compaction_threshold),
            compiled_hash: String::new(),
        };
        spec.compiled_hash = compiled_hash(&spec, "");
        Compiled { spec, compiler: self, making: Making::Coordinator { rules, decisions } }
    }
}

impl Compiled<'_> {
    pub(crate) fn tokens(&self) -> usize {
        tokens(&self.spec.prompt) + tokens(&self.spec.context)
    }

    /// Every input with its hash, its size, and why it went in or stayed out.
    pub(crate) fn receipt(&self) -> Receipt {
        let mut inputs = Vec::new();
        let (budget, decisions, history) = match &self.making {
            Making::Agent { member, past, budget, decisions, history } => {
                self.fixed_inputs(member, &mut inputs);
                self.compiler.decisions.receipt(decisions, budget, &mut inputs);
                past.receipt(history, budget, &mut inputs);
                (*budget, decisions.text.as_str(), history.text.as_str())
            }
            Making::Coordinator { rules, decisions } => {
                self.coordinator_inputs(*rules, *decisions, &mut inputs);
                let total = COORDINATOR_LENGTH.div_ceil(4);
                let budget = Budget { total, decisions: total.saturating_sub(tokens(&self.spec.prompt)), history: 0 };
                (budget, self.spec.context.as_str(), "")
            }
        };
        let spec = &self.spec;
        Receipt {
            agent: spec.agent.clone(),
            tier: spec.tier,
            model: spec.model.clone(),
            tools: spec.tools.clone(),
            compiled_hash: spec.compiled_hash.clone(),
            decisions_hash: hash(&[decisions]),
            history_hash: hash(&[history]),
            task_hash: self.compiler.task.hash.clone(),
            budget,
            tokens: Totals {
                total: self.tokens(),
                prompt: tokens(&spec.prompt),
                context: tokens(&spec.context),
                decisions: tokens(decisions),
                history: tokens(history),
            },
            inputs,
        }
    }

    fn fixed_inputs(&self, member: &Member, inputs: &mut Vec<Input>) {
        let team = self.compiler.sources.team;
        let has_charter = has_text(team.charters.get(&member.slug));
        let charter = member.charter.clone().filter(|_| has_charter);
        inputs.push(always(
            charter.map_or_else(|| "squad".to_owned(), |file| format!("{file}:1")),
            InputKind::Charter,
            &self.spec.prompt,
            if has_charter { "the agent's own prompt" } else { "there is no charter; squad says who the agent is" },
        ));
        inputs.push(always(
            "squad".to_owned(),
            InputKind::Instructions,
            prompt::TEAMWORK,
            "how to work here; every agent is told",
        ));
        let roster: String = team.startable().map(roster_line).collect();
        inputs.push(always(member.source.to_string(), InputKind::Roster, &roster, "the agents work can be given to"));
    }

    fn coordinator_inputs(&self, rules: usize, told: usize, inputs: &mut Vec<Input>) {
        let team = self.compiler.sources.team;
        inputs.push(always(
            "squad".to_owned(),
            InputKind::Instructions,
            prompt::COORDINATOR,
            "what the coordinator is for",
        ));
        for (index, rule) in team.rules.iter().enumerate() {
            let why = if index < rules { "who does what" } else { "no room left" };
            let input = always(rule.source.to_string(), InputKind::Rules, &rule_line(rule), why);
            inputs.push(Input { title: rule.signal.clone(), included: index < rules, ..input });
        }
        for (index, decision) in self.compiler.decisions.best().enumerate() {
            let why = if index < told { "its title only" } else { "no room left" };
            let size = tokens(&decision_title(decision));
            inputs.push(decisions::input(decision, size, index < told, why.to_owned()));
        }
    }
}

fn always(source: String, kind: InputKind, text: &str, why: &str) -> Input {
    Input {
        source,
        kind,
        title: String::new(),
        hash: hash(&[text]),
        tokens: tokens(text),
        included: true,
        why: why.to_owned(),
    }
}

fn has_text(charter: Option<&Charter>) -> bool {
    charter.is_some_and(|charter| !charter.text.trim().is_empty())
}

fn agent_prompt(member: &Member, charter: Option<&Charter>) -> String {
    match charter.filter(|charter| has_text(Some(charter))) {
        Some(charter) => charter.text.trim_end().to_owned(),
        None => format!("# {} — {}\n\nYou are {}, the team's {}.", member.name, member.role, member.name, member.role),
    }
}

/// Names of tools that engines have (those the Copilot CLI 1.0.102 offers by default). Many teams list under Tools what they program
/// with: `terraform` is no tool that could be allowed, and a list of such names allows everything.
const TOOLS: [&str; 16] = [
    "*",
    "bash",
    "create",
    "edit",
    "glob",
    "grep",
    "list_agents",
    "list_bash",
    "read_agent",
    "read_bash",
    "skill",
    "sql",
    "stop_bash",
    "task",
    "view",
    "write_agent",
];

fn tools(charter: Option<&Charter>, tier: Tier) -> ToolChoice {
    if matches!(tier, Tier::Direct | Tier::Lightweight) {
        return ToolChoice::ReadOnly;
    }
    let named = charter.and_then(|charter| charter.tools.as_deref()).unwrap_or_default();
    let known: Vec<String> = named.iter().filter(|name| TOOLS.contains(&name.as_str())).cloned().collect();
    if known.is_empty() { ToolChoice::All } else { ToolChoice::Only(known) }
}

fn compaction_threshold(settings: &Settings, tier: Tier) -> Option<f64> {
    match tier {
        _ if !settings.sessions.infinite => None,
        Tier::Direct | Tier::Lightweight => None,
        Tier::Standard => Some(settings.sessions.compaction_threshold),
        // Full sessions carry more at once and so begin to compact earlier (PRD 4: 0.70 beside 0.80).
        Tier::Full => Some((settings.sessions.compaction_threshold - 0.10).max(0.10)),
    }
}

/// Covers what a session is made of. Decisions, history and task reach a living session with its next turn.
fn compiled_hash(spec: &SessionSpec, fixed_context: &str) -> String {
    let tools = match &spec.tools {
        ToolChoice::All => "all".to_owned(),
        ToolChoice::ReadOnly => "read-only".to_owned(),
        ToolChoice::Only(tools) => format!("only {}", tools.join(" ")),
    };
    let compaction = spec.compaction_threshold.map_or(String::new(), |threshold| threshold.to_string());
    hash(&[&spec.prompt, fixed_context, &spec.model.id, &tools, &spec.tier.to_string(), &compaction])
}

fn fixed_context(team: &Team, member: &Member) -> String {
    let mut context = prompt::TEAMWORK.to_owned();
    context.push_str("\n## The team\n\n");
    for colleague in team.startable() {
        context.push_str(&roster_line(colleague));
    }
    context.push_str(&format!("\nYou are {}.\n", one_line(&member.name)));
    context
}

/// Beside the charter; where there is none, in the agent's folder.
fn history_file(member: &Member) -> String {
    let folder = match &member.charter {
        Some(charter) => charter.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned(),
        None => {
            let team = member.source.file.rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{team}/agents/{}", member.slug)
        }
    };
    format!("{folder}/history.md")
}

fn roster_line(member: &Member) -> String {
    format!("- {} (`{}`): {}\n", one_line(&member.name), member.slug, one_line(&member.role))
}

fn rule_line(rule: &Rule) -> String {
    let agents: Vec<String> = rule.agents.iter().map(|slug| format!("`{slug}`")).collect();
    format!("- {}: {}\n", one_line(&rule.signal), agents.join(", "))
}

fn decision_title(decision: &Decision) -> String {
    format!("- {} ({})\n", one_line(&decision.title), cite(decision))
}

#[cfg(test)]
mod tests;
