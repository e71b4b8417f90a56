//! A review as Markdown, for a comment on a pull request.
//!
//! Everything in it comes from a branch that anybody may have pushed: titles are escaped, texts are quoted, and nothing
//! in them can mention people, link anywhere or show an image.

use crate::compile::suspicion;
use crate::model::{Decision, first_line, list, plural, printable, quote};
use crate::ops::decisions::review::Review;
use crate::ops::team::prompts::{Prompt, PromptChange};
use crate::review::{Certainty, Changes};

/// Characters reserved for the last line.
const RESERVE: usize = 400;
/// Characters of one decision's text that are shown; the rest is in its file.
const TEXT: usize = 1_500;

/// The page, in at most `limit` characters. Parts that do not fit are left out, and the page says so.
pub(super) fn page(review: &Review, limit: usize) -> String {
    let mut page = Page { text: String::new(), limit: limit.saturating_sub(RESERVE), left_out: 0 };
    let range = format!("{}..{}", escaped(&review.base.name), escaped(&review.head.name));
    // The team of the repository's root needs no name.
    let team = review.team.rsplit_once('/').map(|(place, _)| format!("of `{}` ", code(place)));
    let heading = format!("## Decisions {}in {range}", team.unwrap_or_default());
    page.text.push_str(&format!("{heading}\n\n{}.\n", capital(&review.summary())));
    conflicts(&mut page, review);
    let Changes { new, changed, superseded, withdrawn } = &review.decisions.0;
    page.section("New", new.iter().map(|decision| entry(decision, "")));
    page.section("Changed", changed.iter().map(|change| line(&change.after) + &folded("How", &change.diff)));
    page.section(
        "Superseded",
        superseded
            .iter()
            .map(|replaced| format!("{}  superseded by `{}`\n", line(&replaced.decision), code(replaced.by.as_str()))),
    );
    page.section("Withdrawn", withdrawn.iter().map(line));
    page.section(
        "Recorded but never landed",
        review.unlanded.iter().map(|one| {
            let branch = one.branch.as_deref().map(|branch| format!("  made for `{}`\n", code(branch)));
            entry(&one.decision, &branch.unwrap_or_default())
        }),
    );
    prompts(&mut page, &review.prompts);
    for note in &review.notes {
        page.text.push_str(&format!("\n_{}_\n", escaped(note)));
    }
    if page.left_out > 0 {
        page.text.push_str(&format!(
            "\n_{} left out because this comment would be too long: `squad decisions review {} --limit 1000000`_\n",
            plural(page.left_out, "part"),
            code(&format!("{}..{}", review.base.name, review.head.name))
        ));
    }
    page.text
}

struct Page {
    text: String,
    limit: usize,
    left_out: usize,
}

impl Page {
    /// Adds a heading and the parts below it that still fit.
    fn section(&mut self, title: &str, parts: impl Iterator<Item = String>) {
        let mut is_begun = false;
        for part in parts {
            let heading = if is_begun { String::new() } else { format!("\n### {title}\n\n") };
            if self.text.chars().count() + heading.len() + part.chars().count() > self.limit {
                self.left_out += 1;
                continue;
            }
            is_begun = true;
            self.text.push_str(&heading);
            self.text.push_str(&part);
        }
    }
}

fn conflicts(page: &mut Page, review: &Review) {
    let parts = review.conflicts.iter().map(|conflict| {
        let certainty = match conflict.certainty {
            Certainty::Explicit => "**Contradiction**",
            Certainty::Likely => "Likely contradiction",
        };
        let decisions = conflict.decisions.iter().zip(&conflict.titles);
        let decisions: String =
            decisions.map(|(id, title)| format!("  - `{}` {}\n", code(id.as_str()), title_of(title))).collect();
        format!("- {certainty} (`{}`): {}\n{decisions}", conflict.code, escaped(&conflict.message))
    });
    page.section("Contradictions", parts);
}

/// A decision's line, with its text in a collapsed block.
fn entry(decision: &Decision, more: &str) -> String {
    let text = decision.text.trim();
    if text.is_empty() {
        return format!("{}{more}", line(decision));
    }
    let (cut, is_cut) = match text.char_indices().nth(TEXT) {
        Some((at, _)) => (&text[..at], true),
        None => (text, false),
    };
    let text = if is_cut { format!("{cut} […]") } else { cut.to_owned() };
    // HTML works inside a quote too, unless a zero-width space follows the bracket.
    let quoted = quote(&tamed(&printable(&text)).replace('<', "<\u{200b}"));
    format!("{}{more}{}", line(decision), details("Why", &quoted))
}

fn line(decision: &Decision) -> String {
    let mut parts = vec![format!("`{}`", code(decision.id.as_str()))];
    if let Some(note) = &decision.note {
        parts.push(format!("note of knowledge: {}", note.kind.word()));
        parts.extend(suspicion(decision, "").map(|why| format!("no agent is told it: {why}")));
    }
    parts.extend(decision.by.as_deref().map(|by| format!("by {}", title_of(by))));
    parts.extend(decision.date.as_deref().map(|date| title_of(date.get(..10).unwrap_or(date))));
    parts.extend(decision.run.as_ref().map(|run| format!("run `{}`", code(run.as_str()))));
    parts.extend(decision.supersedes.as_ref().map(|old| format!("supersedes `{}`", code(old.as_str()))));
    if !decision.scope.is_empty() {
        parts.push(format!("scope `{}`", code(&decision.scope.join(", "))));
    }
    format!("- **{}** ({})\n", title_of(&decision.title), parts.join(", "))
}

fn prompts(page: &mut Page, prompts: &[PromptChange]) {
    if prompts.is_empty() {
        return;
    }
    let mut table = "| Agent | Tokens | Model |\n|---|---|---|\n".to_owned();
    for change in prompts {
        let both = |show: &dyn Fn(&Prompt) -> String| match (&change.before, &change.after) {
            (Some(before), Some(after)) if show(before) == show(after) => show(after),
            (Some(before), Some(after)) => format!("{} → {}", show(before), show(after)),
            (None, Some(after)) => format!("new: {}", show(after)),
            (Some(before), None) => format!("gone: {}", show(before)),
            (None, None) => String::new(),
        };
        let tokens = both(&|prompt| prompt.tokens.to_string());
        let was = change.was.as_ref().map(|slug| format!(" (`{}`, before `{slug}`)", change.agent));
        table.push_str(&format!(
            "| {}{} | {tokens} | {} |\n",
            title_of(&change.name),
            was.unwrap_or_default(),
            both(&|prompt| title_of(&prompt.model))
        ));
    }
    page.section("Prompts", std::iter::once(table));
    page.section("What agents will be told", alike(prompts).into_iter().map(|(names, diff)| folded(&names, diff)));
}

/// The diffs, each with the names of all agents that get it: a new decision changes many prompts in the same way.
fn alike(prompts: &[PromptChange]) -> Vec<(String, &str)> {
    let lines = |diff: &'_ str| -> Vec<String> {
        diff.lines().filter(|line| !line.starts_with("@@") && !line.starts_with(' ')).map(str::to_owned).collect()
    };
    let mut groups: Vec<(Vec<String>, Vec<String>, &str)> = Vec::new();
    for change in prompts.iter().filter(|change| !change.diff.is_empty()) {
        let (name, changed) = (title_of(&change.name), lines(&change.diff));
        match groups.iter_mut().find(|(_, other, _)| *other == changed) {
            Some((names, _, _)) => names.push(name),
            None => groups.push((vec![name], changed, &change.diff)),
        }
    }
    groups.into_iter().map(|(names, _, diff)| (list(names), diff)).collect()
}

/// A diff in a collapsed block.
fn folded(title: &str, diff: &str) -> String {
    // A fence longer than any in the text, so that the text cannot end it.
    let longest = diff.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    details(title, &format!("{fence}diff\n{}{fence}\n", ended(&printable(diff))))
}

fn details(title: &str, text: &str) -> String {
    format!("\n<details><summary>{title}</summary>\n\n{}\n</details>\n\n", ended(text))
}

fn ended(text: &str) -> String {
    if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

/// Foreign text in one line, cut and escaped.
fn title_of(text: &str) -> String {
    escaped(&first_line(text, 160))
}

/// Escapes what Markdown or HTML would interpret.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in tamed(&printable(text)).chars() {
        if "\\`*_[]<>&~|".contains(c) {
            escaped.push('\\');
        }
        escaped.push(if c == '\n' { ' ' } else { c });
    }
    escaped
}

/// Inside a code span.
fn code(text: &str) -> String {
    first_line(&printable(text), 160).replace('`', "'")
}

/// Pairs of characters that have effects in GitHub's Markdown: mentions notify people, issues are linked, addresses
/// become links, images are fetched, footnotes move to the end of the page, and quotes turn into alert boxes.
const ACTIVE: [(&str, &str); 10] = [
    ("@", ""),
    ("#", ""),
    (":", "//"),
    ("www", "."),
    ("gh", "-"),
    ("!", "["),
    ("]", "("),
    ("]", ":"),
    ("[", "^"),
    ("[", "!"),
];

/// Puts a zero-width space between the characters of each [`ACTIVE`] pair, so that it has no effect.
fn tamed(text: &str) -> String {
    let mut tamed = String::with_capacity(text.len() + 16);
    for (at, c) in text.char_indices() {
        let (before, after) = (&text[..at + c.len_utf8()], &text[at + c.len_utf8()..]);
        tamed.push(c);
        if ACTIVE.iter().any(|(first, second)| ends_with(before, first) && after.starts_with(second)) {
            tamed.push('\u{200b}');
        }
    }
    tamed
}

/// Ignores case.
fn ends_with(text: &str, end: &str) -> bool {
    let at = text.len().checked_sub(end.len());
    at.and_then(|at| text.get(at..)).is_some_and(|last| last.eq_ignore_ascii_case(end))
}

pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
