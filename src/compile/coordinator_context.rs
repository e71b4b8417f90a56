//! Selects the coordinator's context within its size limit.

use super::candidates;
use super::fixed_parts::roster;
use super::lines::{CandidateLines, SelectedLines};
use super::receipt::{Input, InputKind, always};
use super::sections::{self, CHARTER, PROJECT, ROUTING};
use super::text::{cite, line, one_line};
use super::{Compiler, prompt};
use crate::model::{Module, Rule, Slug, Sort};

/// Most bytes of the coordinator's whole input for routing, and of its fixed part, which comes first and does not
/// depend on the message.
pub(super) const LARGEST: usize = 15_000;
const FIXED: usize = 6_000;
/// Reserved in each part for the line that says how much was left out.
const RESERVED: usize = 80;
/// Decisions get at most this fraction of the space left by the fixed part and the message.
const DECISIONS_SHARE: usize = 4;
/// Most bytes of a row's examples.
const MAX_EXAMPLES: usize = 300;

/// The coordinator's context in addition to squad's own prompt, in order.
pub(super) struct CoordinatorContext<'a> {
    pub(super) charter: sections::Selected<'a>,
    pub(super) routing: sections::Selected<'a>,
    pub(super) project: sections::Selected<'a>,
    pub(super) roster: String,
    pub(super) rules: SelectedLines,
    pub(super) modules: SelectedLines,
    pub(super) decisions: SelectedLines,
}

impl<'a> CoordinatorContext<'a> {
    pub(super) fn new(compiler: &Compiler<'a>) -> Self {
        let team = compiler.sources.team;
        let select_all = |[charter, routing, project, members]: [usize; 4]| {
            (
                sections::select(&CHARTER, &team.coordinator, charter),
                sections::select(&ROUTING, &team.routing, routing),
                sections::select(&PROJECT, &team.context, project),
                roster(team, members),
            )
        };
        let (charter, routing, project, members) = select_all([usize::MAX; 4]);
        let wanted = [&charter.text, &routing.text, &project.text, &members];
        let wanted = wanted.map(|text| if text.is_empty() { 0 } else { text.len() + RESERVED });
        let (charter, routing, project, roster) = select_all(fair_shares(wanted, FIXED - prompt::COORDINATOR.len()));
        let fixed = prompt::COORDINATOR.len()
            + [&charter.text, &routing.text, &project.text, &roster].map(String::len).iter().sum::<usize>();
        let room = LARGEST.saturating_sub(fixed + candidates::LARGEST + compiler.task.message_size);
        let (rules, modules, decisions) = ranked_lines(compiler);
        let wanted = [rules.wanted(), modules.wanted(), decisions.wanted().min(room / DECISIONS_SHARE)];
        let [of_rules, of_modules, of_decisions] = fair_shares(wanted, room);
        let (rules, modules, decisions) =
            (rules.within(of_rules), modules.within(of_modules), decisions.within(of_decisions));
        Self { charter, routing, project, roster, rules, modules, decisions }
    }

    pub(super) fn receipt(&self, inputs: &mut Vec<Input>) {
        let squad = || "squad".to_owned();
        inputs.push(always(squad(), InputKind::Instructions, prompt::COORDINATOR, "the coordinator's job"));
        self.charter.receipt(inputs);
        self.routing.receipt(inputs);
        self.project.receipt(inputs);
        inputs.push(always(squad(), InputKind::Roster, &self.roster, "the agents who can be given work"));
        self.rules.receipt(inputs);
        self.modules.receipt(inputs);
        self.decisions.receipt(inputs);
    }
}

/// The candidates for the context: rows, modules and decisions, ranked by relevance to the task.
fn ranked_lines(compiler: &Compiler<'_>) -> (CandidateLines, CandidateLines, CandidateLines) {
    let (team, topic) = (compiler.sources.team, &compiler.task.topic);
    let text = |rule: &Rule| rule.examples.join(" ");
    let mut rules = CandidateLines::new("\n## Who does what\n\n", InputKind::Rules, "who does what");
    rules.extend(topic, &team.rules, |rule| (rule.source.clone(), rule.signal.clone(), text(rule), rule_line(rule)));
    let mut modules = CandidateLines::new("\n## Who owns which files\n\n", InputKind::Module, "who owns which files");
    modules.extend(topic, &team.modules, |module| {
        (module.source.clone(), module.path.clone(), String::new(), module_line(module))
    });
    let mut decisions = CandidateLines::new("\n## Decisions in force\n\n", InputKind::Decision, "its title only");
    decisions.in_order(compiler.decisions.best().map(|decision| {
        let source = decision.source.as_ref().map_or_else(|| format!("ledger:{}", decision.id), ToString::to_string);
        (source, decision.title.clone(), format!("- {} ({})\n", one_line(&decision.title), cite(decision)))
    }));
    (rules, modules, decisions)
}

fn rule_line(rule: &Rule) -> String {
    let mut text = format!("- {}: {}", one_line(&rule.signal), slugs(&rule.agents));
    if let Some(reviewer) = &rule.reviewer {
        text.push_str(&format!(", reviewed by `{reviewer}`"));
    }
    let examples = line(&rule.examples.join(", "), MAX_EXAMPLES);
    if !examples.is_empty() {
        text.push_str(&format!("; such as {examples}"));
    }
    text + "\n"
}

fn module_line(module: &Module) -> String {
    let second = module.secondary.as_ref().map_or(String::new(), |slug| format!(", then `{slug}`"));
    format!("- `{}`: `{}`{second}\n", one_line(&module.path), module.primary)
}

fn slugs(agents: &[Slug]) -> String {
    agents.iter().map(|slug| format!("`{slug}`")).collect::<Vec<_>>().join(", ")
}

/// Divides space into shares. A part that needs less than an equal share leaves the rest to the others.
fn fair_shares<const N: usize>(wanted: [usize; N], room: usize) -> [usize; N] {
    let mut order: [usize; N] = std::array::from_fn(|at| at);
    order.stable_sort_by_key(|at| wanted.get(*at).copied());
    let (mut shares, mut left) = ([0; N], room);
    for (done, at) in order.into_iter().enumerate() {
        if let (Some(share), Some(wanted)) = (shares.get_mut(at), wanted.get(at)) {
            *share = (*wanted).min(left / (N - done));
            left -= *share;
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_parts_leave_the_rest_to_others() {
        assert_eq!(fair_shares([10, 20, 30], 100), [10, 20, 30]);
        assert_eq!(fair_shares([10, 500, 900], 100), [10, 45, 45]);
        assert_eq!(fair_shares([900, 0, 40], 100), [60, 0, 40]);
        assert_eq!(fair_shares([7], 0), [0]);
    }
}
