//! Which decisions a session is told.
//!
//! Those in force only. The newest are offered to every task, older ones when they are about it; what has more to do
//! with the task goes first, then what is newer, as long as there is room.

use std::collections::BTreeMap;

use super::budget::{Budget, tokens};
use super::choice::{Fit, choose};
use super::receipt::{Input, InputKind, hash};
use super::text::{cite, head};
use super::topic::{Hits, Topic};
use crate::model::{Decision, DecisionId, DecisionState, plural, quote};

/// Decisions offered to a session whatever its task (DESIGN §3, from the "squads" document).
const RECENT: usize = 20;
/// Characters of one decision that go into a prompt; the rest is in its file. More of those that are about the task.
const LENGTH: usize = 700;
const RELEVANT_LENGTH: usize = 1_600;

/// The decisions of a team, ranked for a task.
pub(super) struct Ranked<'a> {
    /// The best first.
    offers: Vec<Offer<'a>>,
    /// Those no longer in force, and why.
    ended: Vec<(&'a Decision, String)>,
}

struct Offer<'a> {
    decision: &'a Decision,
    /// 0 is the newest.
    age: usize,
    relevance: u32,
    shared: Vec<&'a str>,
}

/// What a session is told of decisions.
pub(super) struct Selected {
    pub(super) text: String,
    fits: Vec<Fit>,
}

impl Offer<'_> {
    fn is_offered(&self) -> bool {
        self.age < RECENT || self.relevance > 0
    }

    fn render(&self) -> String {
        let length = if self.relevance > 0 { RELEVANT_LENGTH } else { LENGTH };
        let text = head(&self.decision.text, length);
        format!("\nDecision {}:\n{}", cite(self.decision), quote(&format!("{}\n{text}", self.decision.title)))
    }
}

impl<'a> Ranked<'a> {
    pub(super) fn new(decisions: &'a [Decision], topic: &'a Topic) -> Self {
        let by: BTreeMap<&DecisionId, &DecisionId> =
            decisions.iter().filter_map(|decision| Some((decision.supersedes.as_ref()?, &decision.id))).collect();
        let is_in_force = |decision: &&Decision| !by.contains_key(&decision.id) && decision.ended().is_none();
        let in_force: Vec<&Decision> = decisions.iter().filter(is_in_force).collect();
        let hits: Vec<Hits> = in_force.iter().map(|decision| look(decision, topic)).collect();
        let weights = topic.weights(&hits);
        let mut offers: Vec<Offer<'a>> = in_force
            .iter()
            .zip(&hits)
            .enumerate()
            .map(|(age, (decision, hits))| Offer {
                decision,
                age,
                relevance: topic.relevance(*hits, &weights),
                shared: topic.shared(*hits),
            })
            .collect();
        offers.sort_by_key(|offer| (std::cmp::Reverse(offer.relevance), offer.age));
        let ended = decisions.iter().filter_map(|decision| {
            let why = match (by.get(&decision.id), decision.ended()) {
                (Some(by), _) => format!("superseded by {by}"),
                (None, None) => return None,
                (None, Some(DecisionState::Withdrawn)) => "its own text says that it was rejected".to_owned(),
                (None, Some(_)) => "its own text says that it is superseded".to_owned(),
            };
            Some((decision, why))
        });
        Self { offers, ended: ended.collect() }
    }

    /// The best, for a list of titles.
    pub(super) fn best(&self) -> impl Iterator<Item = &'a Decision> {
        self.offers.iter().filter(|offer| offer.is_offered()).take(RECENT).map(|offer| offer.decision)
    }

    pub(super) fn tell(&self, budget: &Budget) -> Selected {
        if budget.decisions == 0 || self.offers.is_empty() {
            return Selected { text: String::new(), fits: vec![Fit::NotOffered; self.offers.len()] };
        }
        let frame = tokens(HEADING) + tokens(&left_out(self.offers.len()));
        let rendered: Vec<Option<String>> =
            self.offers.iter().map(|offer| offer.is_offered().then(|| offer.render())).collect();
        let sizes = rendered.iter().map(|text| text.as_deref().map(tokens));
        let fits = choose(sizes, budget.decisions.saturating_sub(frame));
        let mut chosen: Vec<(usize, String)> = self
            .offers
            .iter()
            .zip(rendered)
            .zip(&fits)
            .filter(|(_, fit)| **fit == Fit::In)
            .filter_map(|((offer, text), _)| Some((offer.age, text?)))
            .collect();
        // Oldest first, as they came about.
        chosen.sort_by_key(|(age, _)| std::cmp::Reverse(*age));
        let mut text = HEADING.to_owned();
        text.extend(chosen.iter().map(|(_, text)| text.as_str()));
        if let Some(more) = self.offers.len().checked_sub(chosen.len()).filter(|more| *more > 0) {
            text.push_str(&left_out(more));
        }
        Selected { text, fits }
    }

    pub(super) fn receipt(&self, told: &Selected, budget: &Budget, inputs: &mut Vec<Input>) {
        let (ins, outs): (Vec<_>, Vec<_>) = self.offers.iter().zip(&told.fits).partition(|(_, fit)| **fit == Fit::In);
        for (offer, fit) in ins.into_iter().chain(outs) {
            inputs.push(input(offer.decision, tokens(&offer.render()), *fit == Fit::In, offer.why(*fit, budget)));
        }
        for (decision, why) in &self.ended {
            let size = tokens(&head(&decision.text, LENGTH));
            inputs.push(input(decision, size, false, why.clone()));
        }
    }
}

impl Offer<'_> {
    fn why(&self, fit: Fit, budget: &Budget) -> String {
        if budget.decisions == 0 {
            return "this tier is told no decisions".to_owned();
        }
        let merit = match (self.relevance, self.age) {
            (0, age) => format!("number {} of the newest", age + 1),
            (relevance, _) => format!("about the task: {} ({relevance})", self.shared.join(", ")),
        };
        match fit {
            Fit::In => merit,
            Fit::NotOffered => format!("not among the newest {RECENT} and not about the task"),
            Fit::NoRoom => format!("no room left; {merit}"),
        }
    }
}

const HEADING: &str = "\n## Decisions in force\n\nQuoted from the team's records; keep to them. Oldest first.\n";

fn left_out(more: usize) -> String {
    format!("\n{} in force not shown here; search with `squad_decisions`.\n", plural(more, "more decision"))
}

/// The title, the tags and the paths a decision is about say most.
fn look(decision: &Decision, topic: &Topic) -> Hits {
    if decision.tags.is_empty() && decision.scope.is_empty() {
        return topic.hits(&decision.title, &decision.text);
    }
    let title = format!("{} {} {}", decision.title, decision.tags.join(" "), decision.scope.join(" "));
    topic.hits(&title, &decision.text)
}

pub(super) fn input(decision: &Decision, tokens: usize, included: bool, why: String) -> Input {
    Input {
        source: decision.source.as_ref().map_or_else(|| format!("ledger:{}", decision.id), ToString::to_string),
        kind: InputKind::Decision,
        title: decision.title.clone(),
        hash: hash(&[&decision.title, &decision.text]),
        tokens,
        included,
        why,
    }
}

/// Decisions that no other one supersedes and that do not say themselves that they have ended, newest first.
pub(crate) fn in_force(decisions: &[Decision]) -> Vec<&Decision> {
    let superseded: std::collections::BTreeSet<&DecisionId> =
        decisions.iter().filter_map(|decision| decision.supersedes.as_ref()).collect();
    decisions.iter().filter(|decision| !superseded.contains(&decision.id) && decision.ended().is_none()).collect()
}
