//! The lines of a team's files that describe each agent, with their field and source.

use super::PastWork;
use crate::model::{Charter, Member, Slug, Source, Team, words};

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// A routing row's first cell.
    Signal,
    /// A routing row's examples.
    Example,
    /// The role of the roster and the charter.
    Role,
    /// Expertise, ownership, responsibilities.
    Own,
    /// Work that it has done.
    Did,
    /// A line of its history that names others, or is about the team.
    Mention,
}

impl Field {
    /// What it is called; how strongly it makes an area the agent's, which having done something once does not; and what
    /// a word of it counts, in hundredths.
    pub(super) fn weights(self) -> (&'static str, f64, u32) {
        match self {
            Self::Signal => ("routing row", 3.0, 140),
            Self::Example => ("routing examples", 0.5, 140),
            Self::Role => ("role", 4.0, 130),
            Self::Own => ("expertise", 0.5, 130),
            Self::Did => ("past work", 0.0, 100),
            Self::Mention => ("history", 0.0, 15),
        }
    }
}

/// A line of the team's files that describes an agent.
#[derive(Debug)]
pub(super) struct Line<'t> {
    /// The agent's index among the startable members.
    pub(super) agent: usize,
    pub(super) field: Field,
    pub(super) text: &'t str,
    /// `FILE:LINE`
    pub(super) source: String,
    /// The index of its routing row.
    pub(super) rule: Option<usize>,
    /// How much of the line is the agent's.
    pub(super) share: f64,
}

/// What the agents after the first have of a routing row.
const SECOND: f64 = 0.45;
/// At most this much of a history is read, from its end: the newest work.
const HISTORY: usize = 16 * 1024;
/// More before a colon is a sentence.
const LONGEST_LABEL: usize = 48;

// How words begin in sections and labels of a charter that say what is the agent's; what denies work, or says nothing of
// it; labels of lines that say nothing of it.
const OWN: &str = "own responsib scope domain expertise focus identity mission skills specialties duties areas handle \
                   speciali";
const OTHER: &str = "don't|do not|does not|doesn't|won't|not own|never |not responsible|not my|not handle|no longer|\
                     out of scope|non-goals|when unsure|when i'm unsure";
const LABELS: &str = "name style model preferred user owner project created rationale";

fn is_own(text: &str) -> bool {
    let text = text.to_lowercase();
    words(&text).any(|word| OWN.split(' ').any(|own| word.starts_with(own))) || text.contains("what i do")
}

fn is_other(lower: &str) -> bool {
    let label = lower.split_once(':').map(|(label, _)| label.trim_matches(|c: char| !c.is_alphanumeric()));
    OTHER.split('|').any(|other| lower.contains(other)) || LABELS.split(' ').any(|it| label == Some(it))
}

/// The length of a label with its marks: `**Expertise:** `.
fn label(text: &str) -> usize {
    let is_of_it = |c: char| c.is_alphanumeric() || matches!(c, '*' | '_' | ' ' | '\'');
    match text.split_once(':') {
        Some((label, rest)) if label.len() < LONGEST_LABEL && label.chars().all(is_of_it) => {
            text.len() - rest.trim_start_matches(['*', '_', ' ']).len()
        }
        _ => 0,
    }
}

/// All lines about the startable members, and about their earlier work.
pub(super) fn lines<'t>(team: &'t Team, agents: &[&'t Member], past: &'t [PastWork]) -> Vec<Line<'t>> {
    let mut reader = Reader { agents, lines: Vec::new() };
    for (place, rule) in team.rules.iter().enumerate() {
        for (rank, agent) in reader.places(&rule.agents).into_iter().enumerate() {
            let share = if rank == 0 { 1.0 } else { SECOND };
            let examples = rule.examples.iter().map(|example| (Field::Example, example));
            for (field, text) in std::iter::once((Field::Signal, &rule.signal)).chain(examples) {
                let source = rule.source.to_string();
                reader.lines.push(Line { agent, field, text, source, rule: Some(place), share });
            }
        }
    }
    for (agent, member) in agents.iter().enumerate() {
        let source = member.source.to_string();
        reader.add(agent, Field::Role, &member.role, &source);
        reader.add(agent, Field::Own, &member.scope, &source);
        if let Some(charter) = team.charters.get(&member.slug) {
            reader.charter(agent, member.charter.as_deref().unwrap_or_default(), charter);
        }
    }
    for (slug, history) in &team.histories {
        for agent in reader.places(std::slice::from_ref(slug)) {
            reader.history(agent, &format!("{slug}'s history"), history);
        }
    }
    for work in past {
        for agent in reader.places(&work.agents) {
            reader.add(agent, Field::Did, &work.message, &work.source);
        }
    }
    reader.lines
}

struct Reader<'a, 't> {
    agents: &'a [&'t Member],
    lines: Vec<Line<'t>>,
}

impl<'t> Reader<'_, 't> {
    fn places(&self, slugs: &[Slug]) -> Vec<usize> {
        slugs.iter().filter_map(|slug| self.agents.iter().position(|member| member.slug == *slug)).collect()
    }

    fn add(&mut self, agent: usize, field: Field, text: &'t str, source: &str) {
        self.lines.push(Line { agent, field, text, source: source.to_owned(), rule: None, share: 1.0 });
    }

    fn history(&mut self, agent: usize, source: &str, history: &'t str) {
        let start = history.ceil_char_boundary(history.len().saturating_sub(HISTORY));
        let mut is_own = true;
        for line in history[start..].lines() {
            if line.starts_with('#') {
                let line = line.to_lowercase();
                is_own = !["team", "context", "decision"].iter().any(|word| line.contains(word));
            }
            let is_others = self.agents.iter().enumerate().any(|(other, member)| {
                other != agent && line.contains(member.name.as_str()) && member.name.starts_with(char::is_uppercase)
            });
            let field = if is_own && !is_others { Field::Did } else { Field::Mention };
            self.add(agent, field, line, source);
        }
    }

    fn charter(&mut self, agent: usize, file: &str, charter: &'t Charter) {
        let (mut is_own, mut is_fenced) = (true, false);
        for (index, line) in charter.text.lines().enumerate() {
            let lower = line.trim().to_lowercase().replace('’', "'");
            let source = Source::new(file, index + 1).to_string();
            if lower.starts_with("```") || lower.starts_with("~~~") {
                is_fenced = !is_fenced;
            } else if lower.starts_with("# ") {
                self.add(agent, Field::Role, charter.role.as_deref().unwrap_or_default(), &source);
            } else if lower.starts_with('#') {
                let goes_on = lower.starts_with("###") && is_own;
                is_own = !is_other(&lower) && (goes_on || self::is_own(&lower));
            } else if !is_fenced && !is_other(&lower) {
                let text = line.trim_start_matches(['-', '*', '+', '>', '|', ' ']);
                let (label, said) = text.split_at(label(text));
                if is_own || self::is_own(label) {
                    self.add(agent, Field::Own, said, &source);
                }
            }
        }
    }
}
