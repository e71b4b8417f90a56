//! The lines of a team's files that describe each agent, with their field and source.

use super::PastWork;
use crate::model::{Charter, Member, Slug, Source, Team};

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    pub(super) fn what(self) -> &'static str {
        match self {
            Self::Signal => "routing row",
            Self::Example => "routing examples",
            Self::Role => "role",
            Self::Own => "expertise",
            Self::Did => "past work",
            Self::Mention => "history",
        }
    }
}

/// A line of the team's files that describes an agent.
#[derive(Debug)]
pub(super) struct Line {
    /// The agent's index among the startable members.
    pub(super) agent: usize,
    pub(super) field: Field,
    pub(super) text: String,
    /// `FILE:LINE`
    pub(super) source: String,
    /// The index of its routing row, and how much of the row is the agent's.
    pub(super) rule: Option<(usize, f64)>,
}

/// What the agents after the first have of a routing row.
const SECOND: f64 = 0.45;

/// At most this much of a history is read, from its end: the newest work.
const HISTORY: usize = 16 * 1024;

// Sections of a charter that say what is the agent's, and those that say how to work or what is not.
pattern!(
    OWN,
    r"\b(owns?|responsib|scope|domain|expertise|focus|identity|mission|skills|duties|areas|handle|speciali|what i do)"
);
pattern!(
    OTHER,
    r"\b(not (own|handle|my)|don't|do not|out of scope|non-goals|model|collaborat|tools|project context|communication|learnings|ceremon|handoff|output format|response|reviewer|voice)"
);
// Lines that deny work, or say nothing of it.
pattern!(
    DENIED,
    r"(don't|do not|does not|doesn't|won't|not own|never |not responsible|not my|no longer|when unsure|when i'm unsure)|^\W*(name|style|model|preferred|user|owner|project|created|rationale)\W*:"
);
pattern!(
    KEY,
    r"(?i)^[*_ ]*((role|title)|(expertise|skills|specialties|specialization|focus|scope|owns|domain|i handle)|[\w ']{1,40})[*_ ]*:[*_ ]*"
);
pattern!(OF_TEAM, r"^#.*(team|context|decision)");

/// All lines about the startable members, and about their earlier work.
pub(super) fn lines(team: &Team, agents: &[&Member], past: &[PastWork]) -> Vec<Line> {
    let mut reader = Reader { agents, lines: Vec::new() };
    for (place, rule) in team.rules.iter().enumerate() {
        for (rank, agent) in rule.agents.iter().filter_map(|slug| reader.place(slug)).enumerate().collect::<Vec<_>>() {
            let share = Some((place, if rank == 0 { 1.0 } else { SECOND }));
            let source = rule.source.to_string();
            reader.add(agent, Field::Signal, &rule.signal, &source, share);
            rule.examples.iter().for_each(|example| reader.add(agent, Field::Example, example, &source, share));
        }
    }
    for (agent, member) in agents.iter().enumerate() {
        let source = member.source.to_string();
        reader.add(agent, Field::Role, &member.role, &source, None);
        reader.add(agent, Field::Own, &member.scope, &source, None);
        if let Some(charter) = team.charters.get(&member.slug) {
            reader.charter(agent, member, charter);
        }
    }
    for (slug, history) in &team.histories {
        if let Some(agent) = reader.place(slug) {
            reader.history(agent, &format!("{slug}'s history"), history);
        }
    }
    for work in past {
        for agent in work.agents.iter().filter_map(|slug| reader.place(slug)).collect::<Vec<_>>() {
            reader.add(agent, Field::Did, &work.message, &work.source, None);
        }
    }
    reader.lines
}

struct Reader<'t> {
    agents: &'t [&'t Member],
    lines: Vec<Line>,
}

impl Reader<'_> {
    fn place(&self, slug: &Slug) -> Option<usize> {
        self.agents.iter().position(|member| member.slug == *slug)
    }

    fn add(&mut self, agent: usize, field: Field, text: &str, source: &str, rule: Option<(usize, f64)>) {
        if text.chars().any(char::is_alphanumeric) {
            self.lines.push(Line { agent, field, text: text.to_owned(), source: source.to_owned(), rule });
        }
    }

    fn history(&mut self, agent: usize, source: &str, history: &str) {
        let start = history.ceil_char_boundary(history.len().saturating_sub(HISTORY));
        let mut is_own = true;
        for line in history[start..].lines() {
            if line.starts_with('#') {
                is_own = !OF_TEAM.is_match(&line.to_lowercase());
            }
            let is_others = self.agents.iter().enumerate().any(|(other, member)| {
                other != agent && line.contains(member.name.as_str()) && member.name.starts_with(char::is_uppercase)
            });
            let field = if is_own && !is_others { Field::Did } else { Field::Mention };
            self.add(agent, field, line, source, None);
        }
    }

    fn charter(&mut self, agent: usize, member: &Member, charter: &Charter) {
        let file = member.charter.clone().unwrap_or_default();
        let (mut is_own, mut is_fenced) = (true, false);
        for (index, line) in charter.text.lines().enumerate() {
            let lower = line.trim().to_lowercase().replace('’', "'");
            let source = Source::new(&file, index + 1).to_string();
            if lower.starts_with("```") || lower.starts_with("~~~") {
                is_fenced = !is_fenced;
            } else if lower.starts_with("# ") {
                self.add(agent, Field::Role, charter.role.as_deref().unwrap_or_default(), &source, None);
            } else if lower.starts_with('#') {
                let goes_on = lower.starts_with("###") && is_own;
                is_own = !OTHER.is_match(&lower) && (goes_on || OWN.is_match(&lower));
            } else if !is_fenced && !lower.starts_with("<!--") && !DENIED.is_match(&lower) {
                let text = line.trim_start_matches(['-', '*', '+', '>', '|', ' ']);
                let key = KEY.captures(text);
                let value = key.as_ref().map_or(text, |key| &text[key[0].len()..]);
                let is_key = |group: usize| key.as_ref().is_some_and(|key| key.get(group).is_some());
                if is_key(2) {
                    self.add(agent, Field::Role, value, &source, None);
                } else if is_own || is_key(3) {
                    self.add(agent, Field::Own, value, &source, None);
                }
            }
        }
    }
}
