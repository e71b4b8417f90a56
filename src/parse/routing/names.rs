//! Finds the members that a cell names.

use super::super::roster::MemberIndex;
use super::super::words::{is_blank, remark, without_pictographs, without_struck};
use crate::model::{Member, Slug};

#[derive(Default)]
pub(super) struct Named {
    /// In order of mention.
    pub(super) agents: Vec<Slug>,
    pub(super) reviewer: Option<Slug>,
    /// Names that are not on the roster, in backticks.
    pub(super) unknown: Vec<String>,
}

impl Named {
    /// Whether a text names only members.
    pub(super) fn all(text: &str, roll: &MemberIndex<'_>) -> bool {
        let mut named = Self::default();
        named.take(text, roll, false);
        named.unknown.is_empty() && (!named.agents.is_empty() || named.reviewer.is_some())
    }

    /// Whether a text consists of members' names, with remarks in parentheses. Unlike [`Named::all`], this allows no
    /// roles and no text after a name, because prose contains them too.
    pub(super) fn exactly(text: &str, roll: &MemberIndex<'_>) -> bool {
        let parts = split(&without_struck(text));
        !parts.is_empty() && parts.iter().all(|part| roll.named(remark(part).0).is_some())
    }

    pub(super) fn take(&mut self, cell: &str, roll: &MemberIndex<'_>, reviews: bool) {
        let cell = &without_struck(cell);
        if is_blank(cell) {
            return;
        }
        // A name may contain a separator.
        let parts = if roll.find(cell).is_some() { vec![cell.to_owned()] } else { split(cell) };
        for part in parts {
            match member_in(&part, roll) {
                // `Mira (Jo reviews)`
                Some((slug, remark)) if is_review(&remark) => {
                    match word_named(&remark, roll).filter(|it| *it != slug) {
                        Some(reviewer) => {
                            self.reviewer.get_or_insert(reviewer);
                            self.add(slug, reviews);
                        }
                        None => self.add(slug, true),
                    }
                }
                Some((slug, _)) => self.add(slug, reviews),
                // Work without an agent goes to the coordinator anyway.
                None if is_coordinator(&part) => {}
                None => match word_named(&part, roll).filter(|_| is_review(&part)) {
                    Some(reviewer) => self.add(reviewer, true),
                    None => self.unknown.push(format!("`{}`", without_pictographs(remark(&part).0))),
                },
            }
        }
    }

    fn add(&mut self, slug: Slug, reviews: bool) {
        if reviews {
            self.reviewer.get_or_insert(slug);
        } else if !self.agents.contains(&slug) {
            self.agents.push(slug);
        }
    }
}

fn is_coordinator(part: &str) -> bool {
    let name = without_pictographs(remark(part).0).to_lowercase();
    let name = name.trim_start_matches("the ");
    matches!(name, "coordinator" | "squad" | "squad coordinator" | "team coordinator" | "direct" | "direct answer")
}

fn is_review(remark: &str) -> bool {
    remark.to_lowercase().contains("review")
}

fn word_named(text: &str, roll: &MemberIndex<'_>) -> Option<Slug> {
    text.split_whitespace().find_map(|word| roll.named(word)).map(|member| member.slug.clone())
}

/// `Name`, `Name (remark)`, `Role (Name)`, `Name — remark`, `Name for the rest`: the member, and the other text.
fn member_in(part: &str, roll: &MemberIndex<'_>) -> Option<(Slug, String)> {
    // `(automatic) Name`
    let part = match part.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((_, name)) if !is_blank(name) => name.trim(),
        _ => part,
    };
    let (name, inner) = remark(part);
    let found = |member: &Member, rest: String| (member.slug.clone(), rest);
    if let Some(member) = roll.find(name) {
        return Some(found(member, inner.to_owned()));
    }
    if let Some(member) = roll.named(inner) {
        return Some(found(member, name.to_owned()));
    }
    if let Some(slug) = roll.built_in(name) {
        return Some((slug, inner.to_owned()));
    }
    let clean = without_pictographs(name);
    if let Some((name, rest)) = [" — ", " – ", " - ", ": "].iter().find_map(|mark| clean.split_once(mark))
        && let Some(member) = roll.find(name)
    {
        return Some(found(member, format!("{rest} {inner}")));
    }
    // `backup: Name`
    if let Some((part, name)) = clean.split_once(": ")
        && let Some(member) = roll.named(name)
    {
        return Some(found(member, format!("{part} {inner}")));
    }
    let words: Vec<&str> = clean.split_whitespace().collect();
    (1..words.len().min(4)).rev().find_map(|count| {
        let member = roll.named(&words[..count].join(" "))?;
        Some(found(member, format!("{} {inner}", words[count..].join(" "))))
    })
}

const SEPARATORS: [char; 16] = [',', '+', '&', '/', '|', ';', '\n', '→', '⇒', '∥', '‖', '·', '•', '、', '，', '＋'];

/// Splits at separators of names outside parentheses.
fn split(cell: &str) -> Vec<String> {
    let mut text = cell.to_owned();
    for word in [" and ", " or ", " then ", " with ", "->", "=>", " > "] {
        text = text.replace(word, ",");
    }
    let mut parts = vec![String::new()];
    let mut depth = 0usize;
    for c in text.chars() {
        depth = match c {
            '(' => depth + 1,
            ')' => depth.saturating_sub(1),
            _ => depth,
        };
        if depth == 0 && SEPARATORS.contains(&c) {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).filter(|part| !is_blank(part)).collect()
}
