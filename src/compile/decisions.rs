//! Selects the decisions that a session is told.
//!
//! Only decisions in force. The newest are candidates for every task, older ones only if relevant. More relevant
//! decisions come first, then newer ones, as long as they fit.

use std::collections::BTreeMap;

use super::budget::{Budget, tokens};
use super::choice::{Selected, Selection, choose};
use super::receipt::{Input, InputKind, hash};
use super::text::{cite, head, one_line};
use super::topic::{Hits, Topic};
use crate::model::{ContextItem, Decision, DecisionId, DecisionState, IntoMap, IntoSet, Sort, plural, quote};

/// How many of the newest decisions are candidates for every task.
const RECENT: usize = 20;
/// Most characters of a decision in a prompt, more if it is relevant; the file has the rest. The first pair with which all
/// of the newest fit is taken, or else the last. 0: its title alone.
const LENGTHS: [(usize, usize); 4] = [(700, 1_600), (300, 800), (140, 500), (0, 300)];

/// The decisions of a team, ranked for a task.
pub(super) struct Ranked<'a> {
    /// Best first.
    candidates: Vec<Candidate<'a>>,
    /// Decisions no longer in force, and why.
    ended: Vec<(&'a Decision, String)>,
}

struct Candidate<'a> {
    decision: &'a Decision,
    /// 0 for the newest.
    age: usize,
    relevance: u32,
    shared: Vec<&'a str>,
}

impl Candidate<'_> {
    fn is_considered(&self) -> bool {
        self.age < RECENT || self.relevance > 0
    }

    fn render(&self, (newest, relevant): (usize, usize)) -> String {
        let Decision { id, title, text, .. } = self.decision;
        match if self.relevance > 0 { relevant } else { newest } {
            0 => format!("\n- {} (`{}`)\n", one_line(title), one_line(id.as_str())),
            length => {
                format!("\nDecision {}:\n{}", cite(self.decision), quote(&format!("{title}\n{}", head(text, length))))
            }
        }
    }
}

impl<'a> Ranked<'a> {
    pub(super) fn new(decisions: &'a [Decision], topic: &'a Topic) -> Self {
        let by: BTreeMap<&DecisionId, &DecisionId> =
            decisions.iter().filter_map(|decision| Some((decision.supersedes.as_ref()?, &decision.id))).into_map();
        let is_in_force = |decision: &&Decision| !by.contains_key(&decision.id) && decision.ended().is_none();
        let in_force: Vec<&Decision> = decisions.iter().filter(is_in_force).collect();
        let hits: Vec<Hits> = in_force.iter().map(|decision| hits_of(decision, topic)).collect();
        let weights = topic.weights(&hits);
        let mut candidates: Vec<Candidate<'a>> = in_force
            .iter()
            .zip(&hits)
            .enumerate()
            .map(|(age, (decision, hits))| Candidate {
                decision,
                age,
                relevance: topic.relevance(*hits, &weights),
                shared: topic.shared(*hits),
            })
            .collect();
        candidates.stable_sort_by_key(|candidate| (std::cmp::Reverse(candidate.relevance), candidate.age));
        let ended = decisions.iter().filter_map(|decision| {
            let why = match (by.get(&decision.id), decision.ended()) {
                (Some(by), _) => format!("superseded by {by}"),
                (None, None) => return None,
                (None, Some(DecisionState::Withdrawn)) => "its own text says that it was rejected".to_owned(),
                (None, Some(_)) => "its own text says that it is superseded".to_owned(),
            };
            Some((decision, why))
        });
        Self { candidates, ended: ended.collect() }
    }

    /// The best decisions, for a list of titles.
    pub(super) fn best(&self) -> impl Iterator<Item = &'a Decision> {
        self.candidates
            .iter()
            .filter(|candidate| candidate.is_considered())
            .take(RECENT)
            .map(|candidate| candidate.decision)
    }

    pub(super) fn select(&self, budget: &Budget) -> Selected {
        if budget.decisions == 0 || self.candidates.is_empty() {
            return Selected::nothing(self.candidates.len());
        }
        let (rendered, selections) = self.fitting(budget);
        let mut chosen: Vec<(&Candidate<'_>, String)> = self
            .candidates
            .iter()
            .zip(rendered)
            .zip(&selections)
            .filter(|(_, selection)| **selection == Selection::Included)
            .filter_map(|((candidate, text), _)| Some((candidate, text?)))
            .collect();
        // Oldest first, in the order they were made.
        chosen.stable_sort_by_key(|(candidate, _)| std::cmp::Reverse(candidate.age));
        let mut text = HEADING.to_owned();
        text.extend(chosen.iter().map(|(_, text)| text.as_str()));
        if let Some(more) = self.candidates.len().checked_sub(chosen.len()).filter(|more| *more > 0) {
            text.push_str(&left_out(more));
        }
        let item = |(candidate, text): (&Candidate<'_>, String)| {
            let Decision { id, title, .. } = candidate.decision;
            ContextItem { decision: Some((id.clone(), title.clone())), ..ContextItem::new(HEADING, text) }
        };
        Selected { text, items: chosen.into_iter().map(item).collect(), selections }
    }

    /// The texts of those that are considered, at the greatest length with which the newest fit, and the selection of each.
    fn fitting(&self, budget: &Budget) -> (Vec<Option<String>>, Vec<Selection>) {
        let frame = tokens(HEADING) + tokens(&left_out(self.candidates.len()));
        let room = budget.decisions.saturating_sub(frame);
        let at = |lengths: (usize, usize)| {
            let render = |candidate: &Candidate<'_>| candidate.is_considered().then(|| candidate.render(lengths));
            let texts: Vec<Option<String>> = self.candidates.iter().map(render).collect();
            let selections = choose(texts.iter().map(|text| text.as_deref().map(tokens)), room);
            (texts, selections)
        };
        let is_whole = |(_, selections): &(_, Vec<Selection>)| {
            let is_told = |(candidate, selection): (&Candidate<'_>, &Selection)| {
                candidate.age >= RECENT || *selection == Selection::Included
            };
            self.candidates.iter().zip(selections).all(is_told)
        };
        let [longer @ .., shortest] = LENGTHS;
        longer.into_iter().map(at).find(is_whole).unwrap_or_else(|| at(shortest))
    }

    pub(super) fn receipt(&self, selected: &Selected, budget: &Budget, inputs: &mut Vec<Input>) {
        let (texts, _) = self.fitting(budget);
        let texts: Vec<(&Candidate<'_>, Option<String>)> = self.candidates.iter().zip(texts).collect();
        for ((candidate, text), selection) in selected.included_first(&texts) {
            let text = text.clone().unwrap_or_else(|| candidate.render(LENGTHS[0]));
            inputs.push(input(
                candidate.decision,
                tokens(&text),
                selection == Selection::Included,
                candidate.why(selection, budget),
            ));
        }
        for (decision, why) in &self.ended {
            let size = tokens(&head(&decision.text, LENGTHS[0].0));
            inputs.push(input(decision, size, false, why.clone()));
        }
    }
}

impl Candidate<'_> {
    fn why(&self, selection: Selection, budget: &Budget) -> String {
        if budget.decisions == 0 {
            return "this tier gets no decisions".to_owned();
        }
        let reason = match (self.relevance, self.age) {
            (0, age) => format!("number {} of the newest", age + 1),
            (relevance, _) => format!("about the task: {} ({relevance})", self.shared.join(", ")),
        };
        match selection {
            Selection::Included => reason,
            Selection::NotConsidered => format!("not among the newest {RECENT} and not about the task"),
            Selection::NoRoom => format!("no room left; {reason}"),
        }
    }
}

const HEADING: &str = "\n## Decisions in force\n\nQuoted from the team's records; keep to them. Oldest first.\n";

fn left_out(more: usize) -> String {
    format!("\n{} in force not shown here; search with `squad_decisions`.\n", plural(more, "more decision"))
}

/// Title, tags and scope count as a title.
fn hits_of(decision: &Decision, topic: &Topic) -> Hits {
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

/// Decisions that are neither superseded by another nor ended by their own text, newest first.
pub(crate) fn in_force<'a>(decisions: impl IntoIterator<Item = &'a Decision> + Clone) -> Vec<&'a Decision> {
    let superseded: std::collections::BTreeSet<&DecisionId> =
        decisions.clone().into_iter().filter_map(|decision| decision.supersedes.as_ref()).into_set();
    decisions.into_iter().filter(|decision| !superseded.contains(&decision.id) && decision.ended().is_none()).collect()
}
