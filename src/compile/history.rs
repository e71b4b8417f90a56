//! Which of its own past an agent is told, its history file and the learnings the ledger keeps; and which of the notes
//! that are for all of the team.
//!
//! A file is taken apart into notes: a short section, or a bullet or paragraph of a long one. Sections of project
//! context go first, then notes with more to do with the task, then newer ones, as long as there is room.

use super::Learning;
use super::budget::tokens;
use super::choice::{Fit, choose};
use super::notes::{Note, notes};
use super::receipt::{Input, InputKind, hash};
use super::text::{head, one_line, place};
use super::topic::{Hits, Topic};
use crate::model::{Source, TeamNote, plural, quote};
use crate::parse::learned;

/// Characters of one note that go into a prompt; the rest is in its file.
const LENGTH: usize = 1_200;
/// Where not everything has room, project context may take this part of it.
const STANDING_SHARE: usize = 2;

/// An agent's past, or the team's notes, ranked for a task.
pub(super) struct Past<'a> {
    category: &'static Category,
    /// The best first.
    offers: Vec<Offer<'a>>,
}

/// Whose notes these are.
struct Category {
    heading: &'static str,
    kind: InputKind,
    /// Why a tier is told none of them.
    none: &'static str,
}

const OWN: Category = Category {
    heading: "\n## What you learned before\n\nQuoted from your own history; it may be out of date.\n",
    kind: InputKind::History,
    none: "this tier is told no history",
};

const OF_TEAM: Category = Category {
    heading: "\n## What the team is on and has learned\n\nQuoted from notes for all of the team; they may be out of date.\n",
    kind: InputKind::Note,
    none: "this tier is told no notes",
};

struct Offer<'a> {
    origin: Origin<'a>,
    /// Its place in the whole past.
    place: usize,
    text: String,
    /// Its tokens with its citation, which it may share with its neighbour: then there is a little room left.
    size: usize,
    whole: &'a str,
    is_standing: bool,
    date: &'a str,
    relevance: u32,
    shared: Vec<&'a str>,
}

enum Origin<'a> {
    /// Its heading and its source.
    File(String, Source),
    Ledger(&'a Learning),
}

impl Origin<'_> {
    fn citation(&self) -> String {
        match self {
            Self::File(heading, source) if heading.is_empty() => format!("\nFrom {}:\n", place(source)),
            Self::File(heading, source) => format!("\nFrom {}, “{}”:\n", place(source), one_line(heading)),
            Self::Ledger(learning) => {
                format!("\nFrom the ledger, `{}`, {}:\n", one_line(&learning.entry), one_line(&learning.date))
            }
        }
    }
}

/// What a session is told of its agent's past.
pub(super) struct Selected {
    pub(super) text: String,
    fits: Vec<Fit>,
}

impl<'a> Past<'a> {
    /// `file` is where the history is.
    pub(super) fn new(
        history: &'a str,
        file: &str,
        learnings: impl Iterator<Item = &'a Learning>,
        topic: &'a Topic,
    ) -> Self {
        let offers = notes(history).into_iter().filter(|note| says(note.text)).map(|note| Offer::of_note(note, file));
        // What has become part of the file is not told twice.
        let is_held = |learning: &&Learning| {
            learned::holds(history, &learning.date, &learning.text)
                || (learning.is_elsewhere && learned::holds_edited(history, &learning.date, &learning.text))
        };
        let others = learnings.filter(|learning| !is_held(learning));
        Self::ranked(&OWN, offers.chain(others.map(Offer::of_learning)).collect(), topic)
    }

    /// What is written for all of the team.
    pub(super) fn of_team(files: &'a [TeamNote], topic: &'a Topic) -> Self {
        let offers = files.iter().flat_map(|file| {
            let all = notes(&file.text).into_iter().filter(|note| says(note.text));
            all.map(|note| Offer {
                is_standing: file.is_current || note.is_standing,
                ..Offer::of_note(note, &file.path)
            })
        });
        Self::ranked(&OF_TEAM, offers.collect(), topic)
    }

    fn ranked(category: &'static Category, mut offers: Vec<Offer<'a>>, topic: &'a Topic) -> Self {
        let hits: Vec<Hits> = offers
            .iter()
            .map(|offer| match &offer.origin {
                Origin::File(heading, _) => look(heading, offer.whole, topic),
                Origin::Ledger(learning) => look("", &learning.text, topic),
            })
            .collect();
        let weights = topic.weights(&hits);
        for (place, (offer, hits)) in offers.iter_mut().zip(&hits).enumerate() {
            offer.place = place;
            offer.relevance = topic.relevance(*hits, &weights);
            offer.shared = topic.shared(*hits);
        }
        offers.sort_by(|a, b| {
            let standing = b.is_standing.cmp(&a.is_standing);
            let newer = || (b.date, b.place).cmp(&(a.date, a.place));
            standing.then_with(|| match a.is_standing {
                true => a.place.cmp(&b.place),
                false => b.relevance.cmp(&a.relevance).then_with(newer),
            })
        });
        Self { category, offers }
    }

    /// What all of it would take.
    pub(super) fn wanted(&self) -> usize {
        if self.offers.is_empty() { 0 } else { self.frame() + self.all() }
    }

    fn all(&self) -> usize {
        self.offers.iter().map(|offer| offer.size).sum()
    }

    fn frame(&self) -> usize {
        tokens(self.category.heading) + tokens(&left_out(self.offers.len()))
    }

    /// As much as fits into so many tokens.
    pub(super) fn tell(&self, room: usize) -> Selected {
        if room < self.frame() || self.offers.is_empty() {
            return Selected { text: String::new(), fits: vec![Fit::NotOffered; self.offers.len()] };
        }
        let room = room - self.frame();
        let (standing, others) = self.offers.split_at(self.offers.partition_point(|offer| offer.is_standing));
        let standing_room = if self.all() <= room { room } else { room / STANDING_SHARE };
        let mut fits = choose(standing.iter().map(|offer| Some(offer.size)), standing_room);
        let used: usize = standing.iter().zip(&fits).map(|(offer, fit)| taken(offer, *fit)).sum();
        fits.extend(choose(others.iter().map(|offer| Some(offer.size)), room - used));
        Selected { text: self.render(&fits), fits }
    }

    /// In the order they were written, those of one heading together.
    fn render(&self, fits: &[Fit]) -> String {
        let mut chosen: Vec<&Offer<'_>> =
            self.offers.iter().zip(fits).filter(|(_, fit)| **fit == Fit::In).map(|(offer, _)| offer).collect();
        chosen.sort_by_key(|offer| offer.place);
        let mut text = self.category.heading.to_owned();
        let mut heading = None;
        for offer in &chosen {
            let same = matches!((&offer.origin, heading), (Origin::File(this, _), Some(last)) if this == last);
            if !same {
                text.push_str(&offer.origin.citation());
            }
            text.push_str(&quote(&offer.text));
            heading = match &offer.origin {
                Origin::File(heading, _) => Some(heading),
                Origin::Ledger(_) => None,
            };
        }
        if let Some(more) = self.offers.len().checked_sub(chosen.len()).filter(|more| *more > 0) {
            text.push_str(&left_out(more));
        }
        text
    }

    pub(super) fn receipt(&self, told: &Selected, room: usize, inputs: &mut Vec<Input>) {
        let (ins, outs): (Vec<_>, Vec<_>) = self.offers.iter().zip(&told.fits).partition(|(_, fit)| **fit == Fit::In);
        for (offer, fit) in ins.into_iter().chain(outs) {
            inputs.push(offer.input(self.category, *fit, room));
        }
    }
}

/// The first line of a note says what it is about, as a title does.
fn look(heading: &str, text: &str, topic: &Topic) -> Hits {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    topic.hits(&format!("{heading} {first}"), rest)
}

fn taken(offer: &Offer<'_>, fit: Fit) -> usize {
    if fit == Fit::In { offer.size } else { 0 }
}

impl<'a> Offer<'a> {
    fn new(origin: Origin<'a>, whole: &'a str, date: &'a str) -> Self {
        let text = head(whole.trim(), LENGTH);
        let size = tokens(&origin.citation()) + tokens(&quote(&text));
        Self { origin, text, size, whole, date, is_standing: false, place: 0, relevance: 0, shared: Vec::new() }
    }

    fn of_note(note: Note<'a>, file: &str) -> Self {
        let origin = Origin::File(note.heading, Source::new(file, note.line));
        Self { is_standing: note.is_standing, ..Self::new(origin, note.text, note.date) }
    }

    fn of_learning(learning: &'a Learning) -> Self {
        Self::new(Origin::Ledger(learning), &learning.text, &learning.date)
    }

    fn input(&self, category: &Category, fit: Fit, room: usize) -> Input {
        let (source, kind, title, whole) = match &self.origin {
            Origin::File(heading, source) => (source.to_string(), category.kind, heading.clone(), &self.text),
            Origin::Ledger(learning) => {
                (format!("ledger:{}", learning.entry), InputKind::Learning, String::new(), &learning.text)
            }
        };
        Input {
            source,
            kind,
            title,
            hash: hash(&[whole]),
            tokens: self.size,
            included: fit == Fit::In,
            why: self.why(category, fit, room),
        }
    }

    fn why(&self, category: &Category, fit: Fit, room: usize) -> String {
        if room == 0 {
            return category.none.to_owned();
        }
        let merit = match (self.is_standing, self.relevance) {
            (true, _) => "project context".to_owned(),
            (false, 0) => "by its age".to_owned(),
            (false, relevance) => format!("about the task: {} ({relevance})", self.shared.join(", ")),
        };
        match fit {
            Fit::In => merit,
            Fit::NotOffered | Fit::NoRoom => format!("no room left; {merit}"),
        }
    }
}

/// Whether a note is more than comments of a template.
fn says(text: &str) -> bool {
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("<!--") {
        if !before.trim().is_empty() {
            return true;
        }
        rest = comment.split_once("-->").map_or("", |(_, after)| after);
    }
    !rest.trim().is_empty()
}

fn left_out(more: usize) -> String {
    format!("\n{} not shown here.\n", plural(more, "more note"))
}
