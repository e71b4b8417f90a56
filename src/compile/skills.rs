//! Which skills an agent is told of. Their names, what they are for and where they are: an agent opens what it needs.
//!
//! All of them, as long as there is room, so that the list is the same for every task; else those that are about the
//! task first.

use super::budget::tokens;
use super::choice::{Fit, choose};
use super::receipt::{Input, InputKind, hash};
use super::text::one_line;
use super::topic::Topic;
use crate::model::{Skill, plural};

/// Characters of a description that go into a prompt.
const LENGTH: usize = 200;

/// The skills of a team, ranked for a task.
pub(super) struct Catalog<'a> {
    /// The best first.
    offers: Vec<Offer<'a>>,
}

struct Offer<'a> {
    skill: &'a Skill,
    place: usize,
    relevance: u32,
    shared: Vec<&'a str>,
}

/// What a session is told of skills.
pub(super) struct Selected {
    pub(super) text: String,
    fits: Vec<Fit>,
}

impl<'a> Catalog<'a> {
    pub(super) fn new(skills: &'a [Skill], topic: &'a Topic) -> Self {
        let hits: Vec<_> = skills
            .iter()
            .map(|skill| topic.hits(&format!("{} {}", skill.name, skill.domain), &skill.description))
            .collect();
        let weights = topic.weights(&hits);
        let offers = skills.iter().zip(&hits).enumerate().map(|(place, (skill, hits))| Offer {
            skill,
            place,
            relevance: topic.relevance(*hits, &weights),
            shared: topic.shared(*hits),
        });
        let mut offers: Vec<Offer<'a>> = offers.collect();
        offers.sort_by_key(|offer| (std::cmp::Reverse(offer.relevance), offer.place));
        Self { offers }
    }

    /// What all of them would take.
    pub(super) fn wanted(&self) -> usize {
        if self.offers.is_empty() { 0 } else { self.frame() + self.offers.iter().map(Offer::size).sum::<usize>() }
    }

    fn frame(&self) -> usize {
        tokens(HEADING) + tokens(&left_out(self.offers.len()))
    }

    /// As many as fit into so many tokens, in the order of their paths.
    pub(super) fn tell(&self, room: usize) -> Selected {
        let Some(room) = room.checked_sub(self.frame()).filter(|_| !self.offers.is_empty()) else {
            return Selected { text: String::new(), fits: vec![Fit::NotOffered; self.offers.len()] };
        };
        let fits = choose(self.offers.iter().map(|offer| Some(offer.size())), room);
        let chosen = self.offers.iter().zip(&fits).filter(|(_, fit)| **fit == Fit::In);
        let mut chosen: Vec<&Offer<'_>> = chosen.map(|(offer, _)| offer).collect();
        chosen.sort_by_key(|offer| offer.place);
        let mut text = HEADING.to_owned();
        text.extend(chosen.iter().map(|offer| offer.line()));
        if let Some(more) = self.offers.len().checked_sub(chosen.len()).filter(|more| *more > 0) {
            text.push_str(&left_out(more));
        }
        Selected { text, fits }
    }

    pub(super) fn receipt(&self, told: &Selected, room: usize, inputs: &mut Vec<Input>) {
        let (ins, outs): (Vec<_>, Vec<_>) = self.offers.iter().zip(&told.fits).partition(|(_, fit)| **fit == Fit::In);
        for (offer, fit) in ins.into_iter().chain(outs) {
            inputs.push(Input {
                source: format!("{}:1", offer.skill.path),
                kind: InputKind::Skill,
                title: offer.skill.name.clone(),
                hash: hash(&[&offer.skill.name, &offer.skill.description]),
                tokens: offer.size(),
                included: *fit == Fit::In,
                why: offer.why(*fit, room),
            });
        }
    }
}

impl Offer<'_> {
    fn line(&self) -> String {
        let Skill { name, description, path, .. } = self.skill;
        let path = one_line(path);
        match first(description) {
            description if description.is_empty() => format!("- {} (`{path}`)\n", one_line(name)),
            description => format!("- {} (`{path}`): {description}\n", one_line(name)),
        }
    }

    fn size(&self) -> usize {
        tokens(&self.line())
    }

    fn why(&self, fit: Fit, room: usize) -> String {
        if room == 0 {
            return "this tier is told no skills".to_owned();
        }
        let merit = match self.relevance {
            0 => "its name and what it is for".to_owned(),
            relevance => format!("about the task: {} ({relevance})", self.shared.join(", ")),
        };
        match fit {
            Fit::In => merit,
            Fit::NotOffered | Fit::NoRoom => format!("no room left; {merit}"),
        }
    }
}

/// What it is for, in a line.
fn first(description: &str) -> String {
    super::text::line(description, LENGTH)
}

const HEADING: &str =
    "\n## Skills\n\nNotes on how things are done here, by name and file. Open one when the task is about it.\n\n";

fn left_out(more: usize) -> String {
    format!("- {} not shown here\n", plural(more, "more skill"))
}
