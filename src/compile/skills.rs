//! Selects skills for an agent: name, description and path. The agent opens those it needs.
//!
//! Includes all skills if they fit, so that the list is the same for every task; otherwise relevant skills come first.

use super::budget::tokens;
use super::choice::{Selected, Selection, choose, included};
use super::receipt::{Input, InputKind, hash};
use super::text::one_line;
use super::topic::Topic;
use crate::model::{ContextItem, Skill, Sort, plural};

/// Most characters of a description in a prompt.
const LENGTH: usize = 200;

/// The skills of a team, ranked for a task.
pub(super) struct Catalog<'a> {
    /// Best first.
    candidates: Vec<Candidate<'a>>,
}

struct Candidate<'a> {
    skill: &'a Skill,
    index: usize,
    relevance: u32,
    shared: Vec<&'a str>,
}

impl<'a> Catalog<'a> {
    pub(super) fn new(skills: &'a [Skill], topic: &'a Topic) -> Self {
        let hits: Vec<_> = skills
            .iter()
            .map(|skill| topic.hits(&format!("{} {}", skill.name, skill.domain), &skill.description))
            .collect();
        let weights = topic.weights(&hits);
        let candidates = skills.iter().zip(&hits).enumerate().map(|(index, (skill, hits))| Candidate {
            skill,
            index,
            relevance: topic.relevance(*hits, &weights),
            shared: topic.shared(*hits),
        });
        let mut candidates: Vec<Candidate<'a>> = candidates.collect();
        candidates.stable_sort_by_key(|candidate| (std::cmp::Reverse(candidate.relevance), candidate.index));
        Self { candidates }
    }

    /// Tokens needed for all skills.
    pub(super) fn wanted(&self) -> usize {
        if self.candidates.is_empty() {
            0
        } else {
            self.frame() + self.candidates.iter().map(Candidate::size).sum::<usize>()
        }
    }

    fn frame(&self) -> usize {
        tokens(HEADING) + tokens(&left_out(self.candidates.len()))
    }

    /// Selects skills that fit into this many tokens, in their original order.
    pub(super) fn select(&self, room: usize) -> Selected {
        let Some(room) = room.checked_sub(self.frame()).filter(|_| !self.candidates.is_empty()) else {
            return Selected::nothing(self.candidates.len());
        };
        let selections = choose(self.candidates.iter().map(|candidate| Some(candidate.size())), room);
        let mut chosen: Vec<&Candidate<'_>> = included(&self.candidates, &selections).collect();
        chosen.stable_sort_by_key(|candidate| candidate.index);
        let mut text = HEADING.to_owned();
        text.extend(chosen.iter().map(|candidate| candidate.line()));
        if let Some(more) = self.candidates.len().checked_sub(chosen.len()).filter(|more| *more > 0) {
            text.push_str(&left_out(more));
        }
        let items = chosen.iter().map(|candidate| ContextItem::new(HEADING, candidate.line())).collect();
        Selected { text, items, selections }
    }

    pub(super) fn receipt(&self, selected: &Selected, room: usize, inputs: &mut Vec<Input>) {
        for (candidate, selection) in selected.included_first(&self.candidates) {
            inputs.push(Input {
                source: format!("{}:1", candidate.skill.path),
                kind: InputKind::Skill,
                title: candidate.skill.name.clone(),
                hash: hash(&[&candidate.skill.name, &candidate.skill.description]),
                tokens: candidate.size(),
                included: selection == Selection::Included,
                why: candidate.why(selection, room),
            });
        }
    }
}

impl Candidate<'_> {
    fn line(&self) -> String {
        let Skill { name, description, path, .. } = self.skill;
        let path = one_line(path);
        match short_description(description) {
            description if description.is_empty() => format!("- {} (`{path}`)\n", one_line(name)),
            description => format!("- {} (`{path}`): {description}\n", one_line(name)),
        }
    }

    fn size(&self) -> usize {
        tokens(&self.line())
    }

    fn why(&self, selection: Selection, room: usize) -> String {
        if room == 0 {
            return "this tier gets no skills".to_owned();
        }
        let reason = match self.relevance {
            0 => "its name and what it is for".to_owned(),
            relevance => format!("about the task: {} ({relevance})", self.shared.join(", ")),
        };
        match selection {
            Selection::Included => reason,
            Selection::NotConsidered | Selection::NoRoom => format!("no room left; {reason}"),
        }
    }
}

/// The description on one line.
fn short_description(description: &str) -> String {
    super::text::line(description, LENGTH)
}

const HEADING: &str =
    "\n## Skills\n\nNotes on how things are done here, by name and file. Open one when the task is about it.\n\n";

fn left_out(more: usize) -> String {
    format!("- {} not shown here\n", plural(more, "more skill"))
}
