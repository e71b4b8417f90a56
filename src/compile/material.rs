//! What the coordinator is told, as far as there is room for it.

use super::candidates;
use super::lines::{Lines, Offer};
use super::receipt::{Input, InputKind, always};
use super::sections::{self, CHARTER, PROJECT, ROUTING};
use super::standing::roster;
use super::text::{cite, line, one_line};
use super::{Compiler, prompt};
use crate::model::{Module, Rule, Slug};

/// All of what the coordinator is told when it chooses, in bytes, and of that what stands first and never changes with
/// the message (DESIGN §10).
pub(super) const LARGEST: usize = 15_000;
const FIXED: usize = 6_000;
/// What each part of that keeps free until it is known whether something has to be left out.
const FRAME: usize = 80;
/// Decisions take at most this part of what the fixed part and the message leave.
const DECISIONS_SHARE: usize = 4;
/// Bytes of a row's examples.
const EXAMPLES: usize = 300;

/// What the coordinator is told beside squad's own words, in its order.
pub(super) struct Material<'a> {
    pub(super) charter: sections::Selected<'a>,
    pub(super) routing: sections::Selected<'a>,
    pub(super) project: sections::Selected<'a>,
    pub(super) roster: String,
    pub(super) rules: Lines,
    pub(super) modules: Lines,
    pub(super) decisions: Lines,
}

impl<'a> Material<'a> {
    pub(super) fn new(compiler: &Compiler<'a>) -> Self {
        let team = compiler.sources.team;
        let told = |[charter, routing, project, members]: [usize; 4]| {
            (
                sections::tell(&CHARTER, &team.coordinator, charter),
                sections::tell(&ROUTING, &team.routing, routing),
                sections::tell(&PROJECT, &team.context, project),
                roster(team, members),
            )
        };
        let (charter, routing, project, members) = told([usize::MAX; 4]);
        let wanted = [&charter.text, &routing.text, &project.text, &members];
        let wanted = wanted.map(|text| if text.is_empty() { 0 } else { text.len() + FRAME });
        let (charter, routing, project, roster) = told(fair_shares(wanted, FIXED - prompt::COORDINATOR.len()));
        let fixed = prompt::COORDINATOR.len()
            + [&charter.text, &routing.text, &project.text, &roster].map(String::len).iter().sum::<usize>();
        let room = LARGEST.saturating_sub(fixed + candidates::LARGEST + compiler.task.asked);
        let (rules, modules, decisions) = offers(compiler);
        let wanted = [rules.wanted(), modules.wanted(), decisions.wanted().min(room / DECISIONS_SHARE)];
        let [of_rules, of_modules, of_decisions] = fair_shares(wanted, room);
        let (rules, modules, decisions) =
            (rules.within(of_rules), modules.within(of_modules), decisions.within(of_decisions));
        Self { charter, routing, project, roster, rules, modules, decisions }
    }

    pub(super) fn receipt(&self, inputs: &mut Vec<Input>) {
        let squad = || "squad".to_owned();
        inputs.push(always(squad(), InputKind::Instructions, prompt::COORDINATOR, "what the coordinator is for"));
        self.charter.receipt(inputs);
        self.routing.receipt(inputs);
        self.project.receipt(inputs);
        inputs.push(always(squad(), InputKind::Roster, &self.roster, "the agents work can be given to"));
        self.rules.receipt(inputs);
        self.modules.receipt(inputs);
        self.decisions.receipt(inputs);
    }
}

/// Rows, modules and decisions, each line with how much it has to do with the task.
fn offers(compiler: &Compiler<'_>) -> (Offer, Offer, Offer) {
    let (team, topic) = (compiler.sources.team, &compiler.task.topic);
    let text = |rule: &Rule| rule.examples.join(" ");
    let mut rules = Offer::new("\n## Who does what\n\n", InputKind::Rules, "who does what");
    rules.extend(topic, &team.rules, |rule| (rule.source.clone(), rule.signal.clone(), text(rule), rule_line(rule)));
    let mut modules = Offer::new("\n## Who owns which files\n\n", InputKind::Module, "who owns which files");
    modules.extend(topic, &team.modules, |module| {
        (module.source.clone(), module.path.clone(), String::new(), module_line(module))
    });
    let mut decisions = Offer::new("\n## Decisions in force\n\n", InputKind::Decision, "its title only");
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
    let examples = line(&rule.examples.join(", "), EXAMPLES);
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

/// Shares of some room: what wants less than an equal share leaves the rest to the others.
fn fair_shares<const N: usize>(wanted: [usize; N], room: usize) -> [usize; N] {
    let mut order: [usize; N] = std::array::from_fn(|at| at);
    order.sort_by_key(|at| wanted.get(*at).copied());
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
    fn who_wants_little_leaves_the_rest_to_others() {
        assert_eq!(fair_shares([10, 20, 30], 100), [10, 20, 30]);
        assert_eq!(fair_shares([10, 500, 900], 100), [10, 45, 45]);
        assert_eq!(fair_shares([900, 0, 40], 100), [60, 0, 40]);
        assert_eq!(fair_shares([7], 0), [0]);
    }
}
