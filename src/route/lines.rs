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
    /// The rest of its charter.
    Charter,
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
            Self::Charter => "charter",
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

/// All lines about the startable members, and about their earlier work.
pub(super) fn lines(team: &Team, agents: &[&Member], past: &[PastWork]) -> Vec<Line> {
    let mut reader = Reader { agents, lines: Vec::new() };
    for (place, rule) in team.rules.iter().enumerate() {
        let of_row = rule.agents.iter().filter_map(|slug| reader.place(slug)).enumerate().collect::<Vec<_>>();
        for (rank, agent) in of_row {
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
            let lower = line.to_lowercase();
            if line.starts_with('#') {
                is_own = !["team", "context", "decision"].iter().any(|word| lower.contains(word));
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
        let mut section = Some(Field::Own);
        let mut is_fenced = false;
        for (index, line) in charter.text.lines().enumerate() {
            let text = line.trim();
            let source = Source::new(&file, index + 1).to_string();
            if text.starts_with("```") || text.starts_with("~~~") {
                is_fenced = !is_fenced;
            } else if is_fenced || text.is_empty() || text.starts_with("<!--") {
            } else if let Some(title) = text.strip_prefix('#') {
                let inner = title.starts_with("##");
                if title.starts_with(' ') {
                    self.add(agent, Field::Role, charter.role.as_deref().unwrap_or_default(), &source, None);
                } else if !inner || section.is_some() {
                    section =
                        section_of(title.trim_start_matches('#'), if inner { section } else { Some(Field::Charter) });
                }
            } else if let Some(section) = section {
                let text = text.trim_start_matches(['-', '*', '+', '>', '|', ' ']);
                let (key, value) = key_and_value(text);
                let field = match key.as_str() {
                    "name" | "style" | "model" | "preferred" | "user" | "owner" | "project" | "created"
                    | "rationale" => {
                        continue;
                    }
                    _ if is_denied(text) => continue,
                    "role" | "title" => Field::Role,
                    "expertise" | "skills" | "specialties" | "specialization" | "focus" | "scope" | "owns"
                    | "domain" | "i handle" => Field::Own,
                    _ => section,
                };
                self.add(agent, field, if key.is_empty() { text } else { value }, &source, None);
            }
        }
    }
}

/// The field of a charter's section. `None`: it says how to work or what is not the agent's, not what it works on.
fn section_of(title: &str, outer: Option<Field>) -> Option<Field> {
    const DENIED: [&str; 7] = ["not own", "don't", "do not", "not handle", "out of scope", "non-goals", "not my"];
    const SKIPPED: [&str; 12] = [
        "model",
        "collaborat",
        "tools",
        "project context",
        "communication",
        "learnings",
        "ceremon",
        "handoff",
        "output format",
        "response",
        "reviewer",
        "voice",
    ];
    const OWN: [&str; 14] = [
        "own",
        "responsib",
        "scope",
        "domain",
        "expertise",
        "focus",
        "identity",
        "mission",
        "skills",
        "duties",
        "areas",
        "handle",
        "speciali",
        "what i do",
    ];
    let title = title.to_lowercase().replace('’', "'");
    let has = |words: &[&str]| words.iter().any(|word| title.contains(word));
    match () {
        () if has(&DENIED) || has(&SKIPPED) => None,
        () if has(&OWN) => Some(Field::Own),
        () => outer,
    }
}

/// `**Key:** value` and `Key: value`, where the key is a few words.
fn key_and_value(text: &str) -> (String, &str) {
    match text.split_once(':') {
        Some((key, value)) if key.split_whitespace().count() <= 4 && !key.contains(['/', '`', '.']) => (
            key.trim_matches(['*', '_', ' ']).to_lowercase().replace('’', "'"),
            value.trim_start_matches(['*', '_', ' ']),
        ),
        _ => (String::new(), text),
    }
}

fn is_denied(text: &str) -> bool {
    let text = text.to_lowercase().replace('’', "'");
    [
        "don't",
        "do not",
        "does not",
        "doesn't",
        "won't",
        "not own",
        "never ",
        "not responsible",
        "not my",
        "no longer",
        "when unsure",
        "when i'm unsure",
    ]
    .iter()
    .any(|word| text.contains(word))
}
