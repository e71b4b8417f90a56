//! Names in a roster.

use super::super::words::{is_placeholder, listed, remark, without_pictographs, words};
use crate::model::Slug;

/// Whether a name is a placeholder, or stands for a vacancy.
pub(crate) fn is_unfilled(name: &str) -> bool {
    const MARKS: [char; 5] = ['_', '*', '(', ')', ' '];
    let plain = without_pictographs(name).to_lowercase();
    let plain = plain.trim_matches(MARKS);
    let in_brackets = [('[', ']'), ('<', '>')].iter().any(|(open, close)| {
        let inner = plain.strip_prefix(*open).and_then(|rest| rest.strip_suffix(*close));
        inner.is_some_and(|inner| !inner.contains([*open, *close]))
    });
    let is_waiting = matches!(
        plain,
        "tbd" | "tba" | "todo" | "vacant" | "open" | "unassigned" | "unfilled" | "agent name" | "member name" | "name"
    );
    is_placeholder(name) || in_brackets || is_waiting || plain.starts_with("your name") || plain == "name here"
}

/// Whether a name means all members.
pub(crate) fn is_everyone(name: &str) -> bool {
    let plain = without_pictographs(name).to_lowercase();
    const ALL: &str = "all, all agents, all members, everyone, everybody, anyone, whole team, the team, total";
    listed(ALL, plain.trim_matches(['*', '_', ' ']))
}

pub(super) fn clean_name(cell: &str) -> String {
    let marks: &[char] = &['`', '~', '*', ' ', ','];
    let quotes: &[char] = &['"', '“', '”', '\'', '`', '~', '*', ' ', ','];
    let name = without_pictographs(cell);
    let name = without_number(name.trim_matches(marks));
    // `"Bo" Smith` keeps its quotes.
    let inner = name.trim_matches(quotes);
    let name = if inner.contains(['"', '“', '”']) { name } else { inner };
    name.trim_start_matches('@').trim().to_owned()
}

/// Strips quotes around a whole text.
pub(super) fn without_quotes(text: &str) -> &str {
    let quotes = [('"', '"'), ('“', '”'), ('\'', '\'')];
    let inner = quotes.iter().find_map(|(open, close)| text.strip_prefix(*open)?.strip_suffix(*close));
    inner.filter(|inner| !inner.contains(['"', '“', '”', '\''])).unwrap_or(text)
}

/// `1. Ada` is Ada.
pub(super) fn without_number(text: &str) -> &str {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = if rest.len() < text.len() { rest.strip_prefix(['.', ')']) } else { None };
    rest.filter(|rest| rest.starts_with(' ')).map_or(text, str::trim_start)
}

/// Strips a remark about the kind of member: `Ann (human)`.
pub(super) fn without_kind(name: &str) -> &str {
    let (before, remark) = remark(name);
    if matches!(remark.to_lowercase().as_str(), "human" | "bot" | "ai") { before } else { name }
}

/// Whether two names are equal, or one begins with the other: `Mira` and `Mira (Lead)`. `C++` is not `C#`.
pub(super) fn is_same_name(one: &str, other: &str) -> bool {
    if Slug::spelled(one) == Slug::spelled(other) {
        return letters(one) == letters(other);
    }
    let (Some(one), Some(other)) = (Slug::spelled(one), Slug::spelled(other)) else { return false };
    let begins = |long: &Slug, short: &Slug| {
        long.as_str().strip_prefix(short.as_str()).is_some_and(|rest| rest.starts_with('-'))
    };
    begins(&one, &other) || begins(&other, &one)
}

/// The characters that distinguish names with the same slug.
pub(super) fn letters(name: &str) -> String {
    let says = |c: &char| c.is_alphanumeric() || matches!(c, '+' | '#' | '&' | '$' | '%' | '=' | '!' | '^');
    name.chars().filter(says).flat_map(char::to_lowercase).collect()
}

/// Whether a text consists of role words: `Backend`, `Lead Developer`.
pub(super) fn is_role(text: &str) -> bool {
    const WORDS: &str = "\
        lead, leader, tech, technical, dev, devs, developer, engineer, engineering, architect, architecture, \
        backend, back, end, frontend, front, fullstack, full, stack, tester, testing, test, qa, quality, docs, \
        documentation, writer, devops, ops, security, designer, design, product, project, manager, owner, data, \
        database, dba, ml, ai, ui, ux, platform, infra, infrastructure, cloud, analyst, researcher, research, \
        reviewer, review, scrum, master, core, api, mobile, web, sre, release, specialist, expert, support, sdet, \
        pm, cto, senior, junior, principal, staff, assurance, coordinator, and, of, performance, accessibility";
    let text = text.to_lowercase();
    words(&text).next().is_some() && words(&text).all(|word| listed(WORDS, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_only_look_alike_are_two() {
        for (one, other, same) in [
            ("Ann-Marie", "ann marie", true),
            ("Mira", "Mira (Lead)", true),
            ("C++", "C#", false),
            ("José", "Jos", false),
            ("太郎", "花子", false),
            ("Ann", "Annika", false),
        ] {
            assert_eq!(is_same_name(one, other), same, "{one} {other}");
        }
    }

    #[test]
    fn roles_name_nobody() {
        assert!(is_role("Lead") && is_role("Back-end Developer") && is_role("QA"));
        assert!(!is_role("Ada") && !is_role("Ada Lead") && !is_role(""));
    }
}
