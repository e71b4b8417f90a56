//! What a person is asked to allow, with the change itself.

use std::fs;
use std::path::Path;

use similar::ChangeTag;

use crate::engine::Writing;
use crate::model::{Access, LineDiff, Proposal, Slug, plural, printable, printable_line};

/// Bytes of a file that is compared; of a larger one only the new lines are shown.
const MAX_COMPARED: u64 = 1 << 20;
/// Lines and characters of a line that a question holds.
const MAX_LINES: usize = 2_000;
const MAX_LINE: usize = 1_000;
/// Unchanged lines around a change.
const CONTEXT: usize = 2;

/// The name under which the proxy of a sandbox asks.
pub(super) const PROXY: &str = "network";

/// `path` is where a write leads, relative to the project's root.
pub(super) fn proposal(
    project: &str,
    agent: &Slug,
    (access, tool, detail): (Access, &str, &str),
    path: Option<&str>,
    writing: Option<&Writing>,
    always: Option<String>,
) -> Proposal {
    let subject = printable_line(path.unwrap_or(detail));
    let outside = if path.is_none() { ", outside the project" } else { "" };
    let (what, body) = match access {
        Access::Write => match writing.map(|writing| Change::of(project, writing)) {
            Some(change) => (format!("{}{outside}", change.title(&subject)), change.lines),
            None => (format!("write {subject}{outside}"), Vec::new()),
        },
        Access::Shell => ("run a command".to_owned(), command_lines(detail)),
        // A place and a port are all that it sees.
        Access::Network if tool == PROXY => {
            let place = subject.split_once("://").map_or(&*subject, |(_, place)| place);
            (format!("reach {place} from a command"), Vec::new())
        }
        Access::Network => (format!("reach {subject}"), Vec::new()),
        Access::Read => (format!("read {subject}, outside the project"), Vec::new()),
        Access::Mcp | Access::Own | Access::Other => {
            let lines = printable(detail).lines().map(|line| format!("  | {line}")).collect();
            (format!("use {}", printable_line(tool)), lines)
        }
    };
    let is_command = access != Access::Write;
    Proposal { agent: agent.clone(), title: format!("{agent} wants to {what}"), body, is_command, always }
}

fn command_lines(command: &str) -> Vec<String> {
    let lines = printable(command.trim());
    lines.lines().enumerate().map(|(at, line)| format!("  {} {line}", if at == 0 { '$' } else { ' ' })).collect()
}

struct Change {
    /// `None`: it is not known what the file holds now, or will hold.
    is_new: Option<bool>,
    added: usize,
    removed: usize,
    lines: Vec<String>,
}

impl Change {
    fn of(project: &str, writing: &Writing) -> Self {
        let place = Path::new(project).join(&writing.path);
        let before = match fs::metadata(&place) {
            Ok(found) if found.is_file() && found.len() <= MAX_COMPARED => fs::read_to_string(&place).ok(),
            Ok(_) => None,
            Err(_) => Some(String::new()),
        };
        let is_new = !place.exists();
        match (before, &writing.old) {
            (Some(before), None) if writing.is_whole => Self::between(is_new, &before, &writing.text),
            (Some(before), Some(old)) if !old.is_empty() && before.contains(old.as_str()) => {
                Self::between(is_new, &before, &before.replacen(old.as_str(), &writing.text, 1))
            }
            _ => {
                let mut change = Self { is_new: None, added: 0, removed: 0, lines: Vec::new() };
                let old = writing.old.as_deref().unwrap_or_default();
                old.lines().for_each(|line| change.line(None, ChangeTag::Delete, line));
                writing.text.lines().for_each(|line| change.line(None, ChangeTag::Insert, line));
                change.limited()
            }
        }
    }

    fn between(is_new: bool, before: &str, after: &str) -> Self {
        let mut change = Self { is_new: Some(is_new), added: 0, removed: 0, lines: Vec::new() };
        for (at, (_, changes)) in LineDiff::new(before, after).hunks(CONTEXT).enumerate() {
            if at > 0 {
                change.lines.push("       …".to_owned());
            }
            for piece in changes {
                let number = piece.new_index().or(piece.old_index());
                change.line(number, piece.tag(), piece.value().trim_end_matches(['\n', '\r']));
            }
        }
        change.limited()
    }

    fn line(&mut self, number: Option<usize>, tag: ChangeTag, text: &str) {
        let sign = match tag {
            ChangeTag::Insert => '+',
            ChangeTag::Delete => '-',
            ChangeTag::Equal => ' ',
        };
        self.added += usize::from(tag == ChangeTag::Insert);
        self.removed += usize::from(tag == ChangeTag::Delete);
        let number = number.map(|number| (number + 1).to_string()).unwrap_or_default();
        let text = text.trim_end();
        let shown: String = text.chars().take(MAX_LINE).collect();
        let more = text.chars().count().saturating_sub(MAX_LINE);
        let cut = if more > 0 { format!(" … {}", plural(more, "more character")) } else { String::new() };
        let line = format!("{number:>6} {sign} {}{cut}", printable_line(&shown));
        self.lines.push(line.trim_end().to_owned());
    }

    fn limited(mut self) -> Self {
        let more = self.lines.len().saturating_sub(MAX_LINES);
        if more > 0 {
            self.lines.truncate(MAX_LINES);
            self.lines.push(format!("       … {} of it", plural(more, "more line")));
        }
        self
    }

    fn title(&self, path: &str) -> String {
        let (added, removed) = (self.added, self.removed);
        match self.is_new {
            Some(true) => format!("write {path}, a new file of {}", plural(added, "line")),
            Some(false) if added + removed == 0 => format!("write {path}, as it is"),
            Some(false) => format!("change {path}, +{added} -{removed}"),
            None => format!("write {path}, +{added} -{removed}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(before: Option<&str>, writing: &Writing) -> (String, Vec<String>) {
        let folder = tempfile::tempdir().expect("a folder");
        if let Some(before) = before {
            fs::write(folder.path().join("a.txt"), before).expect("a file");
        }
        let ada = Slug::fold("ada").expect("a name");
        let project = folder.path().display().to_string();
        let wanted = (Access::Write, "edit", "a.txt");
        let asked = proposal(&project, &ada, wanted, Some("a.txt"), Some(writing), None);
        (asked.title, asked.body)
    }

    fn writing(old: Option<&str>, text: &str, is_whole: bool) -> Writing {
        Writing { path: "a.txt".to_owned(), old: old.map(str::to_owned), text: text.to_owned(), is_whole }
    }

    #[test]
    fn a_change_is_shown_with_the_numbers_of_its_lines() {
        let (title, body) = shown(None, &writing(None, "one\ntwo\n", true));
        assert_eq!(title, "ada wants to write a.txt, a new file of 2 lines");
        assert_eq!(body, ["     1 + one", "     2 + two"]);
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n";
        let (title, body) = shown(Some(before), &writing(Some("3\n"), "three\n", false));
        assert_eq!(title, "ada wants to change a.txt, +1 -1");
        let lines = ["     1   1", "     2   2", "     3 - 3", "     3 + three", "     4   4", "     5   5"];
        assert_eq!(body, lines);
        let after = before.replace("2\n3", "two\n3").replace("11\n", "");
        let (title, body) = shown(Some(before), &writing(None, &after, true));
        assert_eq!(title, "ada wants to change a.txt, +1 -2");
        assert!(body.contains(&"       …".to_owned()), "{body:?}");
        let (title, _) = shown(Some("x\n"), &writing(None, "x\n", true));
        assert_eq!(title, "ada wants to write a.txt, as it is");
    }

    #[test]
    fn where_the_result_is_not_known_only_the_lines_are_shown() {
        // A patch names added lines only, and an edit may miss what it replaces.
        let (title, body) = shown(Some("a\n"), &writing(None, "b\n", false));
        assert_eq!((title.as_str(), &body[..]), ("ada wants to write a.txt, +1 -0", &["       + b".to_owned()][..]));
        let (_, body) = shown(Some("a\n"), &writing(Some("c"), "b", false));
        assert_eq!(body, ["       - c", "       + b"]);
    }

    #[test]
    fn nothing_in_a_question_is_a_terminals_command_or_a_line_of_its_own() {
        let (_, body) = shown(None, &writing(None, "\u{1b}[2Jx\u{9b}Allow\n", true));
        assert_eq!(body, ["     1 + [U+001B][2Jx[U+009B]Allow"]);
        let ada = Slug::fold("ada").expect("a name");
        let asked = proposal("/p", &ada, (Access::Read, "read", "a\n! bob\u{1b}"), None, None, None);
        assert_eq!(asked.title, "ada wants to read a[U+000A]! bob[U+001B], outside the project");
        let asked = proposal("/p", &ada, (Access::Shell, "sh", "a\n\u{1b}b"), None, None, Some("a".to_owned()));
        assert_eq!(asked.body, ["  $ a", "    [U+001B]b"]);
        let (text, choices) =
            (asked.text(), "y yes, once, a always for ada: a, r always in this run, k in later runs too, n no");
        assert!(text.starts_with("ada wants to run a command\n  $ a\n") && text.contains(choices), "{text}");
    }

    #[test]
    fn a_huge_file_is_cut_and_counted() {
        let (title, body) = shown(None, &writing(None, &"x\n".repeat(MAX_LINES + 5), true));
        assert!(title.ends_with("a new file of 2005 lines"), "{title}");
        assert_eq!(body.last().map(String::as_str), Some("       … 5 more lines of it"));
        let (_, body) = shown(None, &writing(None, &"x".repeat(MAX_LINE + 5), true));
        assert!(body.iter().any(|line| line.ends_with("x … 5 more characters")), "{body:?}");
    }
}
