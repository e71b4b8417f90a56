//! Prints a plan for people.

use crate::model::{Evidence, Plan, PlanKind, Slug, list, plural, printable};
use crate::route::Considered;
use crate::ui::{FAINT, STRONG, Ui};

/// How many reasons are shown without `--explain`.
const STRONGEST: usize = 6;

/// Shows the agents, the tier and the strongest reasons; with `explain` all reasons.
pub(in crate::commands) fn show(ui: &mut Ui, plan: &Plan, explain: bool) {
    for line in head(ui, plan) {
        ui.data(&line);
    }
    let evidence = if explain { in_order(plan, plan.evidence.iter().collect()) } else { strongest(plan) };
    if evidence.is_empty() {
        return;
    }
    ui.data(match plan.kind {
        PlanKind::Abstain => "\nThe evidence:",
        PlanKind::Agents | PlanKind::Direct => "\nWhy:",
    });
    table(ui, &evidence);
    let left = plan.evidence.len().saturating_sub(evidence.len());
    if left > 0 {
        ui.hint(&format!("`--explain` shows {}", plural(left, "more reason")));
    }
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

fn head(ui: &Ui, plan: &Plan) -> Vec<String> {
    let measure = ui.out_paint(FAINT, &format!("tier {}, confidence {:.2}", plan.tier, plan.confidence));
    match plan.kind {
        PlanKind::Agents => {
            vec![format!("{}.", plan.summary(|slug| ui.out_paint(STRONG, slug.as_str()))), measure]
        }
        PlanKind::Direct => vec!["Nobody is started: this is answered directly.".to_owned()],
        PlanKind::Abstain if !plan.agents.is_empty() => {
            let names = list(plan.agents.iter().map(|slug| ui.out_paint(STRONG, slug.as_str())));
            vec![format!("Asks before it starts {names}; without a terminal the coordinator chooses."), measure]
        }
        PlanKind::Abstain => vec!["Routing is not sure: the coordinator would choose.".to_owned(), measure],
    }
}

/// The strongest evidence for the chosen agents, or for any agent if none was chosen.
fn strongest(plan: &Plan) -> Vec<&Evidence> {
    let matters = |agent: &Slug| plan.agents.contains(agent) || plan.is_reviewer(agent);
    let mut evidence: Vec<&Evidence> =
        plan.evidence.iter().filter(|evidence| plan.kind != PlanKind::Agents || matters(&evidence.agent)).collect();
    // Every chosen agent's best reason comes before anybody's second.
    evidence.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    let mut seen: Vec<&Slug> = Vec::new();
    let (mut first, rest): (Vec<&Evidence>, Vec<&Evidence>) = evidence.into_iter().partition(|evidence| {
        let is_first = !seen.contains(&&evidence.agent);
        seen.push(&evidence.agent);
        is_first
    });
    let room = STRONGEST.saturating_sub(first.len());
    first.extend(rest.into_iter().take(room));
    in_order(plan, first)
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
    evidence.sort_by(|a, b| {
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
