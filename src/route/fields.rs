//! Collects the lines of a team's files that describe each agent, with their field and source.

use super::PastWork;
use crate::model::{Charter, Member, Slug, Source, Team};

/// The kind of a line. Each has its own weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Field {
    /// A routing row's first cell.
    Signal,
    /// A routing row's examples.
    Example,
    /// The role of the roster and the charter.
    Role,
    Expertise,
    /// Its ownership and responsibilities.
    Owned,
    /// Work that it disclaims.
    NotOwned,
    /// The rest of its charter.
    Charter,
    /// Its earlier work.
    Past,
}

impl Field {
    pub(super) const COUNT: usize = 8;

    pub(super) fn what(self) -> &'static str {
        match self {
            Self::Signal => "routing row",
            Self::Example => "routing examples",
            Self::Role => "role",
            Self::Expertise => "expertise",
            Self::Owned => "ownership",
            Self::NotOwned => "excluded work",
            Self::Charter => "charter",
            Self::Past => "past work",
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
    /// The index of its routing row.
    pub(super) rule: Option<usize>,
}

/// At most this much of a history is read, from its end: the newest work.
const HISTORY: usize = 16 * 1024;

/// All lines about the startable members, and about their earlier work.
pub(super) fn lines(team: &Team, agents: &[&Member], past: &[PastWork]) -> Vec<Line> {
    let mut reader = Reader { agents, lines: Vec::new() };
    for (place, rule) in team.rules.iter().enumerate() {
        // The first agent of a row does the work; the others help.
        let Some(agent) = rule.agents.iter().find_map(|slug| reader.place(slug)) else { continue };
        reader.add(agent, Field::Signal, &rule.signal, &rule.source.to_string(), Some(place));
        for example in &rule.examples {
            reader.add(agent, Field::Example, example, &rule.source.to_string(), Some(place));
        }
    }
    for (agent, member) in agents.iter().enumerate() {
        let source = member.source.to_string();
        reader.add(agent, Field::Role, &member.role, &source, None);
        reader.add(agent, Field::Expertise, &member.scope, &source, None);
        if let Some(charter) = team.charters.get(&member.slug) {
            reader.charter(agent, member, charter);
        }
    }
    for (slug, history) in &team.histories {
        let Some(agent) = reader.place(slug) else { continue };
        let start = history.ceil_char_boundary(history.len().saturating_sub(HISTORY));
        let source = format!("{slug}'s history");
        history[start..].lines().for_each(|text| reader.add(agent, Field::Past, text, &source, None));
    }
    for work in past {
        for slug in &work.agents {
            let Some(agent) = reader.place(slug) else { continue };
            reader.add(agent, Field::Past, &work.message, &work.source, None);
        }
    }
    reader.lines
}

struct Reader<'t> {
    agents: &'t [&'t Member],
    lines: Vec<Line>,
}

/// The kind of section in a charter.
#[derive(Clone, Copy, PartialEq)]
enum Section {
    Owned,
    Boundaries,
    NotOwned,
    Other,
    /// Boilerplate, or about how to work rather than on what.
    Skipped,
}

impl<'t> Reader<'t> {
    fn place(&self, slug: &Slug) -> Option<usize> {
        self.agents.iter().position(|member| member.slug == *slug)
    }

    fn add(&mut self, agent: usize, field: Field, text: &str, source: &str, rule: Option<usize>) {
        if text.chars().any(char::is_alphanumeric) {
            self.lines.push(Line { agent, field, text: text.to_owned(), source: source.to_owned(), rule });
        }
    }

    fn charter(&mut self, agent: usize, member: &Member, charter: &Charter) {
        let file = member.charter.clone().unwrap_or_default();
        let mut section = Section::Owned;
        let mut fenced = false;
        for (index, line) in charter.text.lines().enumerate() {
            let text = line.trim();
            if text.starts_with("```") || text.starts_with("~~~") {
                fenced = !fenced;
            } else if fenced || text.is_empty() || text.starts_with("<!--") {
            } else if let Some(title) = text.strip_prefix('#') {
                let level = 1 + title.len() - title.trim_start_matches('#').len();
                let title = title.trim_start_matches('#').trim();
                if level == 1 {
                    let role = charter.role.as_deref().unwrap_or_default();
                    self.add(agent, Field::Role, role, &at(&file, index), None);
                } else if level == 2 || section != Section::Skipped {
                    section = section_of(title, if level == 2 { Section::Other } else { section });
                }
            } else if section != Section::Skipped {
                self.charter_line(agent, text, section, &at(&file, index));
            }
        }
    }

    fn charter_line(&mut self, agent: usize, text: &str, section: Section, source: &str) {
        let text = text.trim_start_matches(['-', '*', '+', '>', '|', ' ']);
        let (key, value) = key_and_value(text);
        let field = match key.as_str() {
            "name" | "style" | "model" | "preferred" | "user" | "owner" | "project" | "created" | "rationale" => return,
            "role" | "title" => Field::Role,
            "expertise" | "skills" | "specialties" | "specialization" | "focus" => Field::Expertise,
            _ if is_negative(text) && section != Section::Other => Field::NotOwned,
            _ if section == Section::NotOwned => Field::NotOwned,
            "scope" | "owns" | "domain" | "i handle" => Field::Owned,
            _ if matches!(section, Section::Owned | Section::Boundaries) => Field::Owned,
            _ => Field::Charter,
        };
        let text = if key.is_empty() || matches!(field, Field::NotOwned) { text } else { value };
        self.add(agent, field, text, source, None);
    }
}

fn at(file: &str, index: usize) -> String {
    Source::new(file, index + 1).to_string()
}

fn section_of(title: &str, outer: Section) -> Section {
    let title = title.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| title.contains(word));
    if has(&["not own", "don't", "do not", "not handle", "out of scope", "non-goals", "not my", "not do"]) {
        Section::NotOwned
    } else if has(&["boundar", "limits"]) {
        Section::Boundaries
    } else if has(&["own", "responsib", "scope", "domain", "expertise", "focus", "identity", "mission", "skills"])
        || has(&["duties", "areas", "key files", "handle", "speciali", "role", "what i do", "about", "capabilities"])
    {
        Section::Owned
    } else if has(&["model", "collaborat", "tools", "project context", "accuracy", "evidence", "communication"])
        || has(&["learnings", "ceremon", "handoff", "output format", "response", "reviewer"])
    {
        Section::Skipped
    } else {
        outer
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

fn is_negative(text: &str) -> bool {
    let text = text.to_lowercase().replace('’', "'");
    ["don't", "do not", "does not", "doesn't", "won't", "not own", "never ", "not responsible", "not my", "no longer"]
        .iter()
        .any(|word| text.contains(word))
}
