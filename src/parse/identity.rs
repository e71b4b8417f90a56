//! `identity/*.md`: the team's current focus and its general lessons.

use super::{Files, front_matter, line_feeds};
use crate::model::TeamNote;

/// The file about current work.
const NOW: &str = "identity/now.md";

/// Lines that tools write into new files.
const TEMPLATE: [&str; 4] = [
    "Reusable patterns and heuristics learned through work",
    "Getting started. Updated by coordinator",
    "focus_area: Initial setup",
    "active_issues: []",
];

/// The front matter for agents; other keys are for tools. The first two are dates.
const TELLING: [&str; 4] = ["updated_at:", "last_updated:", "focus_area:", "active_issues:"];

/// The notes by path, without unfilled templates.
pub(super) fn read(files: &Files) -> Vec<TeamNote> {
    let paths = files.texts.keys().filter(|path| path.starts_with("identity/") && path.ends_with(".md"));
    paths
        .filter_map(|path| {
            let text = content(&line_feeds(files.text(path)?))?;
            Some(TeamNote { path: files.shown(path), is_current: path == NOW, text })
        })
        .collect()
}

/// Blanks lines without content, so that the others keep their line numbers. `None`: only headings and dates are left.
fn content(text: &str) -> Option<String> {
    let mut lines: Vec<String> = Vec::new();
    let matter = text.get(..front_matter::split(text).1).unwrap_or_default().lines().count();
    let (mut is_telling, mut in_comment) = (false, false);
    for (index, line) in text.lines().enumerate() {
        // A key for agents, and the lines of its value.
        if index < matter && !line.starts_with([' ', '\t', '-']) {
            is_telling = TELLING.iter().any(|key| line.starts_with(key));
        }
        let kept = match index < matter {
            true if is_telling && line.trim_end() != "---" => line.to_owned(),
            true => String::new(),
            false => without_comments(line, &mut in_comment),
        };
        lines.push(if TEMPLATE.iter().any(|words| kept.trim().starts_with(words)) { String::new() } else { kept });
    }
    let says = |line: &String| {
        let line = line.trim();
        let is_date = TELLING[..2].iter().any(|key| line.starts_with(key));
        !line.starts_with('#') && !is_date && line.contains(char::is_alphanumeric)
    };
    lines.iter().any(says).then(|| lines.join("\n"))
}

/// Removes `<!-- … -->` comments, which may span lines.
pub(super) fn without_comments(line: &str, in_comment: &mut bool) -> String {
    let mut kept = String::new();
    let mut rest = line;
    loop {
        let (mark, length) = if *in_comment { ("-->", 3) } else { ("<!--", 4) };
        let found = rest.find(mark);
        if !*in_comment {
            kept.push_str(&rest[..found.unwrap_or(rest.len())]);
        }
        let Some(at) = found else { return kept };
        rest = &rest[at + length..];
        *in_comment = !*in_comment;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_template_says_is_nothing() {
        let now = "---\nupdated_at: 2026-01-05T09:00:00Z\nfocus_area: Initial setup\nactive_issues: []\n---\n\n\
            # What We're Focused On\n\nGetting started. Updated by coordinator at session start.\n";
        assert_eq!(content(now), None);
        let wisdom = "---\nlast_updated: 2026-01-05\n---\n\n# Team Wisdom\n\nReusable patterns and heuristics learned \
            through work. NOT transcripts.\n\n## Patterns\n\n<!-- Append\nentries below. -->\n";
        assert_eq!(content(wisdom), None);
    }

    #[test]
    fn what_people_say_keeps_its_line() {
        let now = "---\nversion: 3\nupdated_at: 2026-02-01\nactive_issues:\n\t- \"#7 leaks\"\nx: y\n---\n# Now\n<!-- a -->Tunnels<!--\n-->.\n";
        let lines = content(now).expect("something");
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(
            lines,
            ["", "", "updated_at: 2026-02-01", "active_issues:", "\t- \"#7 leaks\"", "", "", "# Now", "Tunnels", "."]
        );
    }
}
