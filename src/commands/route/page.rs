//! Prints a plan for people.

use crate::model::{Evidence, Plan, PlanKind, Slug, Sort, Team, first_line, list, printable};
use crate::route::Considered;
use crate::ui::{FAINT, STRONG, Ui};
use crate::view::{LineStyle, Text};

/// How many words, and how many agents, are named without `--explain`.
const WORDS: usize = 4;
const CANDIDATES: usize = 3;

/// Shows who would work and the words that decided it; with `explain` all evidence with its weight. `message`: for the
/// command that names an agent.
pub(in crate::commands) fn show(ui: &mut Ui, team: &Team, plan: &Plan, explain: bool, message: &str) {
    let mut head = head(team, plan, message);
    if explain {
        head.truncate(1);
    }
    ui.texts(&head);
    plan.overlap_warnings().for_each(|text| ui.warning(&printable(&text)));
    if !explain || plan.evidence.is_empty() {
        return;
    }
    ui.data(match plan.kind {
        PlanKind::Abstain => "\nThe evidence:",
        PlanKind::Agents | PlanKind::Direct => "\nWhy:",
    });
    table(ui, &in_order(plan, plan.evidence.iter().collect()));
}

/// Shows the agents that were not chosen, with their total weight and strongest reasons.
pub(super) fn show_considered(ui: &mut Ui, considered: &[Considered]) {
    if considered.is_empty() {
        return;
    }
    ui.data("\nAlso considered:");
    let mut rows = Vec::new();
    for Considered { agent, weight, evidence } in considered {
        let why = "in total, of which:".to_owned();
        rows.push(Evidence { agent: agent.clone(), why, source: String::new(), weight: *weight });
        rows.extend(evidence.iter().cloned());
    }
    table(ui, &rows.iter().collect::<Vec<_>>());
}

fn head(team: &Team, plan: &Plan, message: &str) -> Vec<Text> {
    match plan.kind {
        PlanKind::Agents => {
            let who = Text::default().plain(&plan.summary(Slug::to_string));
            let measure = format!("; tier {}, confidence {:.2}", plan.tier, plan.confidence);
            let why = Text::unmarked().with(LineStyle::Faint, &reasons(plan));
            vec![who.with(LineStyle::Faint, &measure), why]
        }
        PlanKind::Direct => vec![Text::default().plain("nobody is started: this is answered directly")],
        PlanKind::Abstain if !plan.agents.is_empty() => {
            let text =
                format!("asks before it starts {}; without a terminal the coordinator chooses", list(&plan.agents));
            vec![Text::default().plain(&text)]
        }
        PlanKind::Abstain => {
            let candidates = candidates(plan);
            let all: Vec<&Slug> = team.startable().map(|member| &member.slug).collect();
            let why = match candidates[..] {
                [] => format!("nothing names anyone's work, so the coordinator would choose from {}", some_of(&all)),
                [one] => format!("the coordinator would choose; a little speaks for {one}"),
                _ => format!("the coordinator would choose from {}", list(&candidates)),
            };
            let agent = candidates.first().or(all.first()).map_or("NAME", |agent| agent.as_str());
            let command = format!("squad orchestrate -a {agent} {}", quoted(message));
            let line = Text::default().with(LineStyle::Warning, "not sure");
            vec![line.plain(&format!(": {why}")), Text::unmarked().with(LineStyle::Strong, &command)]
        }
    }
}

/// `"login", "form" in routing.md:13`: the strongest reason for each chosen agent.
fn reasons(plan: &Plan) -> String {
    let mut named: Vec<&Slug> = Vec::new();
    let mut reasons = Vec::new();
    for evidence in strongest(plan) {
        if !named.contains(&&evidence.agent) {
            named.push(&evidence.agent);
            reasons.push(format!("{} ({})", one_line(&evidence.why), one_line(&evidence.source)));
        }
    }
    let more = reasons.len().saturating_sub(WORDS);
    reasons.truncate(WORDS);
    let more = if more > 0 { format!("; {more} more") } else { String::new() };
    format!("{}{more}; --explain: all", reasons.join("; "))
}

/// Those with the most evidence.
fn candidates(plan: &Plan) -> Vec<&Slug> {
    let mut agents: Vec<&Slug> = Vec::new();
    // Who leads the team does so without a word for it.
    for evidence in strongest(plan).into_iter().filter(|evidence| evidence.weight > 0.0) {
        if !agents.contains(&&evidence.agent) && evidence.agent != Slug::coordinator() {
            agents.push(&evidence.agent);
        }
    }
    agents.truncate(CANDIDATES);
    agents
}

/// `lead, backend, frontend and 3 more`
fn some_of(agents: &[&Slug]) -> String {
    let first = agents.iter().take(CANDIDATES).map(ToString::to_string).collect::<Vec<_>>();
    match agents.len() - first.len() {
        0 => list(&first),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// The message as a shell takes it.
fn quoted(message: &str) -> String {
    let line = first_line(message, 60);
    match line.contains(['"', '\\', '$', '`', '!']) || line.len() < message.trim().len() {
        true => "\"…\"".to_owned(),
        false => format!("\"{line}\""),
    }
}

/// The evidence for the chosen agents, or for any agent if none was chosen, the strongest first.
fn strongest(plan: &Plan) -> Vec<&Evidence> {
    let matters = |agent: &Slug| plan.agents.contains(agent);
    let mut evidence: Vec<&Evidence> =
        plan.evidence.iter().filter(|evidence| plan.kind != PlanKind::Agents || matters(&evidence.agent)).collect();
    evidence.stable_sort_by(|a, b| b.weight.total_cmp(&a.weight));
    evidence
}

/// Sorts evidence: the chosen agents in the plan's order, the reviewer, then the others by total weight.
fn in_order<'p>(plan: &'p Plan, mut evidence: Vec<&'p Evidence>) -> Vec<&'p Evidence> {
    let total = |agent: &Slug| -> f64 {
        plan.evidence.iter().filter(|evidence| evidence.agent == *agent).map(|evidence| evidence.weight).sum()
    };
    let place = |agent: &Slug| {
        let chosen = plan.agents.iter().chain(plan.reviewers()).position(|other| other == agent);
        chosen.unwrap_or(usize::MAX)
    };
    evidence.stable_sort_by(|a, b| {
        place(&a.agent)
            .cmp(&place(&b.agent))
            .then_with(|| total(&b.agent).total_cmp(&total(&a.agent)))
            .then_with(|| a.agent.cmp(&b.agent))
            .then_with(|| b.weight.total_cmp(&a.weight))
    });
    evidence
}

fn table(ui: &mut Ui, evidence: &[&Evidence]) {
    /// Longer reasons do not widen the column.
    const WIDEST: usize = 60;
    let reasons: Vec<String> = evidence.iter().map(|evidence| one_line(&evidence.why)).collect();
    let agents = evidence.iter().map(|evidence| evidence.agent.as_str().chars().count()).max().unwrap_or(0);
    let width = reasons.iter().map(|why| why.chars().count()).filter(|width| *width <= WIDEST).max().unwrap_or(0);
    let mut before = None;
    for (evidence, why) in evidence.iter().zip(&reasons) {
        // Each name is printed once, so that the groups are easy to see.
        let name = if before == Some(&evidence.agent) { "" } else { evidence.agent.as_str() };
        before = Some(&evidence.agent);
        let name = ui.out_paint(STRONG, &format!("{name:<agents$}"));
        let source = ui.out_paint(FAINT, &one_line(&evidence.source));
        let line = format!("  {name}  {:>6.2}  {why:<width$}  {source}", evidence.weight);
        ui.data(line.trim_end());
    }
}

/// Foreign text in one line: from the team's files, messages or models.
pub(super) fn one_line(text: &str) -> String {
    printable(text).split_whitespace().collect::<Vec<_>>().join(" ")
}
