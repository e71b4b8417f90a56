//! Finds conflict markers of unfinished merges.

use super::Files;
use crate::model::{Problem, Severity};

/// The code of the problem. Nothing else is read from such a file.
pub(crate) const CONFLICT: &str = "merge-conflict";

pub(super) const UNFINISHED: &str = "a merge was not finished here: the file holds conflict markers";

/// The least length of a marker. All markers of a conflict have the same length: seven, or `conflict-marker-size`.
const SHORTEST: usize = 7;

/// A conflict without its end so far.
struct Open {
    line: usize,
    length: usize,
    is_parted: bool,
    /// The line of the fence in which it began.
    fence: Option<usize>,
}

/// Reports the files with a conflict.
pub(crate) fn conflicts(files: &Files) -> Vec<Problem> {
    let found = files.texts.iter().filter_map(|(path, text)| Some((path, conflict(path, text)?)));
    let problem = |(path, line): (&String, usize)| {
        Problem::new(Severity::Error, files.at(path, line), CONFLICT, UNFINISHED)
            .hint("resolve the conflict and delete the markers; `git diff --check` lists them")
    };
    found.map(problem).collect()
}

/// The line of the first conflict in a file, or of the first marker that was left of one. A conflict inside a fence is
/// taken for an example. Even a real one would do no harm there: no table, field or heading is read from a fence.
pub(super) fn conflict(path: &str, text: &str) -> Option<usize> {
    if !["<<<<<<<", "=======", ">>>>>>>", "|||||||"].iter().any(|mark| text.contains(mark)) {
        return None;
    }
    let is_markdown = path.to_ascii_lowercase().ends_with(".md");
    let whole = whole_conflict(is_markdown, text);
    whole.into_iter().chain(leftover(is_markdown, text)).min()
}

/// The line of the first whole conflict: `<<<<<<<`, `=======` and `>>>>>>>`, in this order, each at the beginning of a
/// line.
fn whole_conflict(has_fences: bool, text: &str) -> Option<usize> {
    let mut fence: Option<(usize, &str)> = None;
    let (mut open, mut in_fence): (Option<Open>, Option<usize>) = (None, None);
    for (index, line) in text.lines().enumerate() {
        let line_number = index + 1;
        match (&fence, fence_mark(line).filter(|_| has_fences)) {
            (None, Some(mark)) => fence = Some((line_number, mark)),
            (Some((_, opened)), Some(mark)) if closes(line, mark, opened) => {
                (fence, in_fence) = (None, None);
            }
            _ => {}
        }
        let Some((mark, length)) = marker(line) else { continue };
        let within = fence.map(|(line, _)| line);
        match (mark, &mut open) {
            // Longer markers belong to the common ancestor of a conflict.
            ('<', Some(open)) if length > open.length => {}
            ('<', _) => open = Some(Open { line: line_number, length, is_parted: false, fence: within }),
            ('>', Some(found)) if found.length == length && found.is_parted => {
                if within.is_none() || within != found.fence {
                    return Some(in_fence.unwrap_or(found.line));
                }
                in_fence.get_or_insert(found.line);
                open = None;
            }
            ('>', Some(found)) if found.length == length => open = None,
            ('=' | '%' | '+', Some(open)) if open.length == length => open.is_parted = true,
            _ => {}
        }
    }
    // The merge may have removed the end of an open fence.
    in_fence
}

/// The line of the first marker outside fences that somebody forgot to delete. It has git's usual length, since other
/// lengths are more often quotations or lines drawn by hand.
fn leftover(is_markdown: bool, text: &str) -> Option<usize> {
    let mut fence: Option<&str> = None;
    let mut above = "";
    for (index, line) in text.lines().enumerate() {
        match (fence, fence_mark(line).filter(|_| is_markdown)) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(opened), Some(mark)) if closes(line, mark, opened) => fence = None,
            _ => {}
        }
        let is_left = match marker(line).filter(|(_, length)| *length == SHORTEST && fence.is_none()) {
            Some(('<' | '>' | '|', _)) => true,
            // Below text, it makes a heading.
            Some(('=', _)) => !is_markdown || above.trim_start().starts_with('|'),
            _ => false,
        };
        if is_left {
            return Some(index + 1);
        }
        above = line;
    }
    None
}

/// The marker at the beginning of a line, and its length. Outer markers may have a label. Jujutsu separates the sides
/// with `%` and `+`.
fn marker(line: &str) -> Option<(char, usize)> {
    let mark = line.chars().next().filter(|mark| "<=>|%+".contains(*mark))?;
    let rest = line.trim_start_matches(mark);
    let length = line.len() - rest.len();
    let ends = if mark == '=' { rest.trim().is_empty() } else { rest.is_empty() || rest.starts_with(' ') };
    (length >= SHORTEST && ends).then_some((mark, length))
}

/// The marks with which a line opens or closes a fence.
fn fence_mark(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let rest = line.trim_start_matches(mark);
    let length = line.len() - rest.len();
    (length >= 3 && !(mark == '`' && rest.contains('`'))).then(|| &line[..length])
}

fn closes(line: &str, mark: &str, opened: &str) -> bool {
    mark.starts_with(opened) && line.trim().len() == mark.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_in_their_order_are_a_conflict() {
        for (text, line) in [
            ("<<<<<<< HEAD\na\n=======\nb\n>>>>>>> topic\n", 1),
            ("# T\n\n<<<<<<< HEAD\n=======\nb\n>>>>>>> 1a2b3c4 (a subject)\n", 3),
            // As an editor or a Windows checkout leaves them, and without a label or an end of line.
            ("# T\r\n<<<<<<< HEAD\r\na\r\n=======\r\nb\r\n>>>>>>> topic\r\n", 2),
            ("<<<<<<<\na\n=======  \nb\n>>>>>>>", 1),
            // diff3, with a conflict of the ancestors in it.
            ("<<<<<<< a\nx\n||||||| base\n<<<<<<<<< b\ny\n=========\nz\n>>>>>>>>> c\n=======\nw\n>>>>>>> d\n", 1),
            ("<<<<<<<<<< a\nx\n==========\ny\n>>>>>>>>>> b\n", 1),
            // A heading of Markdown's other kind on either side.
            ("<<<<<<< a\nTitle\n=======\n=======\nTitle\n=======\n>>>>>>> b\n", 1),
            // Jujutsu's.
            ("<<<<<<< Conflict 1 of 1\n%%%%%%% Changes\n-a\n+++++++ Contents\nb\n>>>>>>> Conflict 1 of 1 ends\n", 1),
            // What somebody left of one, alone or above one that is whole.
            ("<<<<<<< a\n\n<<<<<<< b\n=======\n>>>>>>> c\n", 1),
            (">>>>>>> a\n=======\n<<<<<<< b\n=======\n>>>>>>> c\n", 1),
            ("| Name | Role |\n|---|---|\n<<<<<<< HEAD\n| Ada | Dev |\n", 3),
            ("| Name | Role |\n|---|---|\n| Ada | Dev |\n=======\n| Bob | Dev |\n", 4),
            ("| Name | Role |\r\n|---|---|\r\n| Ada | Dev |\r\n>>>>>>> topic\r\n", 4),
            ("| Name | Role |\n|---|---|\n| Ada | Dev |\n||||||| 1a2b3c4\n", 4),
            ("a\n>>>>>>>", 2),
            ("<<<<<<< a\nno end\n=======\n", 1),
            ("<<<<<<< a\nno middle\n>>>>>>> b\n=======\n", 1),
            ("<<<<<<< a\n======= not it\n>>>>>>> b\n", 1),
            ("<<<<<<< a\n=======\n>>>>>>>> b\n", 1),
            ("=======\n<<<<<<< a\n>>>>>>> b\n", 2),
            ("Title\n=======\n\n>>>>>>> deep quote\n", 4),
        ] {
            assert_eq!(conflict("team.md", text), Some(line), "{text}");
        }
    }

    #[test]
    fn what_only_looks_like_marks_is_none() {
        for text in [
            "",
            "Title\n=======\n",
            "Title\n=======\n\n>>>>>>>> deeper quote\n",
            "Text\n\n=======\n\nmore text\n",
            "| Name | Role |\n|---|---|\n========\n",
            "||||||||\n",
            "<<<<<<<a\n=======\n>>>>>>>b\n",
            "<<<<<< a\n======\n>>>>>> b\n",
            "    <<<<<<< a\n    =======\n    >>>>>>> b\n",
            "> <<<<<<< a\n> =======\n> >>>>>>> b\n",
            "- <<<<<<< a\n- =======\n- >>>>>>> b\n",
        ] {
            assert_eq!(conflict("agents/ada/charter.md", text), None, "{text}");
        }
    }

    #[test]
    fn an_example_lies_in_a_fence() {
        let example = "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> topic\n";
        for (path, text, line) in [
            ("charter.md", format!("Resolve:\n\n```\n{example}```\n"), None),
            ("charter.md", format!("~~~~text\n{example}~~~\n{example}~~~~\n"), None),
            ("charter.md", format!("- like this\n   ```diff\n{example}   ```\n"), None),
            ("charter.md", format!("```\n{example}```\n\n{example}"), Some(9)),
            ("charter.md", "```\n>>>>>>> topic\n```\n".to_owned(), None),
            ("charter.md", "```\nx\n```\n>>>>>>> topic\n".to_owned(), Some(4)),
            // A fence is nothing to TOML or JSON, and neither is a heading.
            ("config.toml", "a = 1\n=======\n".to_owned(), Some(2)),
            ("config.toml", "```\n>>>>>>> topic\n```\n".to_owned(), Some(2)),
            ("config.toml", format!("```\n{example}```\n"), Some(2)),
            // The merge has the fence, or a side of it has.
            ("charter.md", "<<<<<<< a\n```\nx\n```\n=======\n```\ny\n```\n>>>>>>> b\n".to_owned(), Some(1)),
            ("charter.md", "```\n<<<<<<< a\nx\n```\n=======\ny\n```\n>>>>>>> b\n".to_owned(), Some(2)),
            ("charter.md", "```\nx\n<<<<<<< a\n```\n=======\ny\n>>>>>>> b\n```\n".to_owned(), Some(3)),
            ("charter.md", "```\nx\n<<<<<<< 1\n```\n%%%%%%% a\ny\n>>>>>>> 1 ends\n```\n".to_owned(), Some(3)),
            ("charter.md", "```\nx\n<<<<<<< 1\n```\n+++++++ a\ny\n>>>>>>> 1 ends\n```\n".to_owned(), Some(3)),
            ("charter.md", format!("```\n{example}"), Some(2)),
            ("charter.md", format!("``` not ` a fence\n{example}```\n"), Some(2)),
        ] {
            assert_eq!(conflict(path, &text), line, "{text}");
        }
    }
}
