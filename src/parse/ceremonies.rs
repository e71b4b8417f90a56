//! `ceremonies.md`: the team's meetings before and after work, and who facilitates them.

use super::markdown::{BlockKind, Document, fields_of};
use super::roster::MemberIndex;
use super::words::{is_blank, is_placeholder, without_pictographs};
use super::{Files, line_feeds};
use crate::model::{Ceremony, Member, Problem, Severity};

/// A section with one of these fields describes a ceremony.
const TELLING: [&str; 4] = ["facilitator", "trigger", "when", "condition"];

/// Other known fields. All other list items are the agenda.
const OTHERS: [&str; 4] = ["participants", "time budget", "enabled", "enforcement skill"];

/// Facilitators that need not be on the roster. Templates say `lead` even in teams without one.
const ANYBODY: [&str; 5] = ["lead", "coordinator", "squad", "anyone", "none"];

pub(super) fn read(files: &Files, members: &[Member], problems: &mut Vec<Problem>) -> Vec<Ceremony> {
    let Some(text) = files.text("ceremonies.md") else { return Vec::new() };
    let text = line_feeds(text);
    let document = Document::new(&text);
    let roll = MemberIndex::new(members);
    let mut ceremonies: Vec<Ceremony> = Vec::new();
    let mut open: Option<(&str, usize)> = None;
    let (mut fields, mut agenda) = (Vec::new(), Vec::new());
    let mut close = |open: Option<(&str, usize)>, fields: &mut Vec<(String, String)>, agenda: &mut Vec<String>| {
        let (fields, agenda) = (std::mem::take(fields), std::mem::take(agenda));
        if let Some((name, line)) = open.filter(|_| fields.iter().any(|(key, _)| TELLING.contains(&key.as_str()))) {
            let source = files.at("ceremonies.md", line);
            ceremonies.push(Section { roll: &roll, fields, agenda }.ceremony(name, source, problems));
        }
    };
    for block in &document.blocks {
        match &block.kind {
            BlockKind::Heading { text, .. } => {
                close(open, &mut fields, &mut agenda);
                open = Some((text, document.line(block.range.start)));
            }
            kind => {
                let found = fields_of(kind);
                let is_known = |key: &str| TELLING.contains(&key) || OTHERS.contains(&key);
                if let BlockKind::Item(text) = kind
                    && !found.iter().any(|(key, _)| is_known(key))
                {
                    agenda.push(text.clone());
                }
                fields.extend(found);
            }
        }
    }
    close(open, &mut fields, &mut agenda);
    ceremonies
}

struct Section<'r, 'm> {
    roll: &'r MemberIndex<'m>,
    fields: Vec<(String, String)>,
    agenda: Vec<String>,
}

impl Section<'_, '_> {
    fn field(&self, name: &str) -> String {
        let value = self.fields.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value);
        if is_blank(value) || is_placeholder(value) { String::new() } else { without_pictographs(value) }
    }

    fn ceremony(self, name: &str, source: crate::model::Source, problems: &mut Vec<Problem>) -> Ceremony {
        let facilitator = self.field("facilitator");
        let found = self.roll.find(&facilitator).map(|member| member.slug.clone());
        if found.is_none() && !facilitator.is_empty() && !ANYBODY.contains(&facilitator.to_lowercase().as_str()) {
            let message = format!("`{facilitator}`, the facilitator of {name}, is not on the roster");
            problems.push(
                Problem::new(Severity::Note, source.clone(), "ceremony-facilitator", message)
                    .hint("name a member or a role from team.md"),
            );
        }
        let enabled = self.field("enabled").to_lowercase();
        let is_off = enabled.split_whitespace().any(|word| matches!(word, "no" | "false" | "off" | "disabled"));
        Ceremony {
            name: without_pictographs(name),
            facilitator: found,
            trigger: self.field("trigger"),
            when: self.field("when"),
            condition: self.field("condition"),
            agenda: self.agenda,
            enabled: !is_off,
            source,
        }
    }
}
