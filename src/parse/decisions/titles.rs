//! Classifies the headings of decision files by their words.

use super::super::words::{is_placeholder, listed};

fn words(title: &str) -> String {
    super::super::words::words(title).collect::<Vec<_>>().join(" ").to_lowercase()
}

/// The file's title.
pub(super) fn is_title(title: &str) -> bool {
    let words = words(title);
    !is_note(title) && (words.contains("decisions") || words.contains("decision log") || words.ends_with("log"))
}

/// `Decision: …`, `ADR-4 …`: the heading of one decision.
pub(super) fn is_note(title: &str) -> bool {
    let words = words(title);
    let titled = title.trim_start().to_lowercase();
    titled.starts_with("decision:") || titled.starts_with("decision —") || words.starts_with("adr ")
}

/// Headings above entries.
pub(super) fn is_frame(title: &str) -> bool {
    const FRAMES: &str = "\
        active decisions, decisions, squad decisions, team decisions, project decisions, decision log, \
        decision record, archive, archived decisions, archived, inbox, decision inbox, decisions inbox, \
        recent decisions, superseded decisions, proposed decisions, table of contents";
    listed(FRAMES, &words(title))
}

/// A tool's heading above merged notes: `MERGED FROM INBOX: note.md`.
pub(super) fn is_merge(title: &str) -> bool {
    let words = words(title);
    let words = words.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
    let rest = words.strip_prefix("merged ").unwrap_or_default().split(' ').next();
    rest.is_some_and(|rest| ["from", "inbox", "entries", "notes", "decisions"].contains(&rest))
}

/// A heading above one field: `Date`, with the date below it.
pub(super) fn is_field(title: &str) -> bool {
    matches!(words(title).as_str(), "date" | "day" | "author" | "authors" | "by" | "decided by" | "status" | "owner")
}

/// Headings above rules about entries.
pub(super) fn is_rules(title: &str) -> bool {
    const RULES: &str =
        "governance, how to use this file, how to use, format, entry format, template, decision template";
    listed(RULES, &words(title))
}

/// `{date}: {title}`. Braces inside a path do not count: `/posts/{id}`.
pub(super) fn is_template(title: &str) -> bool {
    is_placeholder(title)
        && title.split_whitespace().any(|word| word.trim_start_matches(['(', '[', '"']).starts_with('{'))
}

/// `1.2 …`
fn is_subsection(title: &str) -> bool {
    let number = title.split_whitespace().next().unwrap_or_default().trim_end_matches('.');
    number.contains('.') && number.split('.').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
}

const SECTIONS: &str = "\
    action, actions, alternatives, approach, background, benefits, changes, conclusion, consequences, context, \
    decision, decisions, description, details, evidence, files, findings, follow, goal, goals, how, impact, \
    implementation, implications, issue, key, metrics, motivation, next, notes, open, options, outcome, problem, \
    rationale, reasoning, recommendation, recommendations, references, related, results, risks, status, summary, \
    tests, verdict, why";
const WHOLE_SECTIONS: &str = "\
    what, who, when, scope, verification, validation, testing, trade offs, tradeoffs, team impact, \
    success criteria, acceptance criteria, files changed";

/// Whether a title is nothing but the usual name of a section: `Verdict`, `2. Consequences`.
pub(super) fn is_bare_section(title: &str) -> bool {
    let words = words(title);
    let words = words.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
    listed(SECTIONS, words) || listed(WHOLE_SECTIONS, words)
}

/// The usual sections of a decision record.
pub(super) fn is_section(title: &str) -> bool {
    // `1. Context` is a section; `1. Use tar` and `3 masts` are not.
    let words = words(title);
    let words = words.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
    let first = words.split(' ').next().unwrap_or_default();
    let few = words.split(' ').count() <= 3;
    words.is_empty() || is_subsection(title) || listed(WHOLE_SECTIONS, words) || (few && listed(SECTIONS, first))
}
