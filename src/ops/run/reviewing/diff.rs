//! The change under review: a unified diff, computed once, and cut by file where it is long.

use std::borrow::Cow;
use std::fs;
use std::path::{Component, Path};

use crate::env::Env;
use crate::env::files::read_regular;
use crate::error::Failure;
use crate::git::unquoted;
use crate::model::{Sort, list, plural, printable, printable_line};
use crate::ops::Workspace;
use crate::ops::team::secrets::redactor;

/// Most bytes of a diff that a reviewer is given.
const SHOWN: usize = 120 * 1024;
/// Most new files whose text is read, and most bytes of each.
const NEW_FILES: usize = 100;
const NEW_SIZE: u64 = 256 * 1024;
/// Most files that did not fit and are named.
const NAMED: usize = 500;
/// The line around a diff in a task.
pub(super) const FENCE: &str = "~~~~~~~~~~";
/// Before each of them, so that no name can end the list.
const ITEM: &str = "- ";
/// Before the name of a file of which only the beginning is shown, and before the number of those not named.
const REST: &str = "the rest of ";
const MORE: &str = "… and ";

/// What to compare.
#[derive(Clone, Debug, Default)]
pub(crate) struct Range {
    /// The work tree is compared with where the branch left this one; `None`: with the last commit.
    pub(crate) base: Option<String>,
    /// The index instead of the work tree.
    pub(crate) staged: bool,
    pub(crate) paths: Vec<String>,
}

pub(super) struct Diff {
    /// `main (a1b2c3)`.
    pub(super) base: String,
    /// What is shown.
    pub(super) text: String,
    pub(super) files: usize,
    /// The files that did not fit.
    pub(super) left_out: Vec<String>,
}

impl Diff {
    /// Fails if there is nothing to review.
    pub(super) fn read(env: &Env, workspace: &Workspace, range: &Range) -> Result<Self, Failure> {
        let repository = &workspace.repository;
        let head = repository.head()?.commit;
        let (base, shown) = match &range.base {
            None => (head.clone(), "HEAD".to_owned()),
            Some(name) => {
                let unknown = || {
                    let hint = match name.split_once("..") {
                        Some((base, _)) => format!("`squad review {base}` reviews all since the branch left it"),
                        None => "`squad review` alone reviews what is not committed".to_owned(),
                    };
                    Failure::usage(format!("no branch, tag or commit {name}")).hint(hint)
                };
                let named = repository.resolve(name)?.ok_or_else(unknown)?;
                let fork = head.as_ref().map(|head| repository.merge_base(&named, head)).transpose()?.flatten();
                (Some(fork.unwrap_or(named)), name.clone())
            }
        };
        let leads_out = |path: &&String| {
            Path::new(path).components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir))
        };
        if let Some(path) = range.paths.iter().find(leads_out) {
            return Err(Failure::usage(format!("{} is outside the repository", printable_line(path))));
        }
        let bytes = repository.unified_diff(base.as_deref(), range.staged, &range.paths)?;
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        let mut unread = Vec::new();
        if !range.staged {
            for (number, path) in repository.untracked_files(&range.paths)?.into_iter().enumerate() {
                match of_new_file(&workspace.work_dir, &path).filter(|_| number < NEW_FILES) {
                    Some(section) => text.push_str(&section),
                    None => unread.push(path),
                }
            }
        }
        let short = base.as_deref().and_then(|id| id.get(..10)).map(|id| format!(" ({id})")).unwrap_or_default();
        let base = format!("{shown}{short}");
        if text.trim().is_empty() && unread.is_empty() {
            let below = if range.paths.is_empty() { String::new() } else { format!(" in {}", list(&range.paths)) };
            return Err(Failure::usage(format!("nothing to review: no change{below} against {base}"))
                .hint("`squad review main` reviews what the branch has and main has not"));
        }
        // No secret reaches a model or the ledger, and nothing that a reader does not see.
        let redactor = redactor(env, &workspace.work_dir);
        let clean = |text: &str| redactor.text(&shown_lines(text), &mut Vec::new());
        let mut diff = Self::cut(base, &text, clean);
        diff.files += unread.len();
        diff.left_out.extend(unread.iter().map(|path| printable_line(&clean(path))));
        Ok(diff)
    }

    /// Cleaned. The shortest files are whole; the first that is longer than what is left of the budget has its beginning.
    fn cut(base: String, text: &str, clean: impl Fn(&str) -> String) -> Self {
        let sections = sections(text);
        let mut by_length: Vec<usize> = (0..sections.len()).collect();
        by_length.stable_sort_by_key(|&index| sections[index].1.len());
        let (mut shown, mut room) = (vec![String::new(); sections.len()], SHOWN);
        let mut left_out = vec![None; sections.len()];
        for index in by_length {
            let (path, section) = &sections[index];
            let name = || printable_line(&clean(path));
            if room == 0 {
                left_out[index] = Some(name());
                continue;
            }
            // More than is shown, so that what is cut in the middle of a secret is not.
            let mut head = clean(&section[..section.floor_char_boundary(2 * SHOWN)]);
            if section.len() <= 2 * SHOWN && head.len() <= room {
                room -= head.len();
            } else {
                let end = head.floor_char_boundary(room);
                head.truncate(head[..end].rfind('\n').map_or(0, |at| at + 1));
                let part = if head.is_empty() { "" } else { REST };
                left_out[index] = Some(format!("{part}{}", name()));
                room = 0;
            }
            shown[index] = head;
        }
        let left_out = left_out.into_iter().flatten().collect();
        Self { base, text: shown.concat(), files: sections.len(), left_out }
    }

    /// `3 files against HEAD (a1b2c3d4e5)`.
    pub(super) fn title(&self) -> String {
        format!("{} against {}", plural(self.files, "file"), self.base)
    }

    /// The diff as a part of a task.
    pub(super) fn fenced(&self) -> String {
        let mut named: Vec<&str> = self.left_out.iter().map(String::as_str).take(NAMED).collect();
        let more = format!("{MORE}{} more", self.left_out.len() - named.len());
        if self.left_out.len() > named.len() {
            named.push(&more);
        }
        Shown { diff: &self.text, left_out: named }.fenced()
    }
}

/// What a reviewer was shown.
pub(super) struct Shown<'a> {
    diff: &'a str,
    /// The files that did not fit.
    left_out: Vec<&'a str>,
}

/// Whether a quote stands where a finding says.
#[derive(Debug, PartialEq)]
pub(super) enum Quoted {
    /// On this line, if it is on one only.
    InDiff(Option<u64>),
    /// The file did not fit, so nobody can tell.
    Unchecked,
    Nowhere,
}

impl<'a> Shown<'a> {
    /// Reads a task that has [`Diff::fenced`] in it. No line of a diff begins like a fence.
    pub(super) fn of_task(task: &'a str) -> Self {
        let block = |name: &str| {
            let start = format!("\n{FENCE} {name}\n");
            let inner = task.find(&start).and_then(|at| task.get(at + start.len()..)).unwrap_or_default();
            inner.find(&format!("\n{FENCE}\n")).and_then(|end| inner.get(..=end)).unwrap_or_default()
        };
        Self {
            diff: block("diff"),
            left_out: block("files").lines().filter_map(|line| line.strip_prefix(ITEM)).collect(),
        }
    }

    pub(super) fn fenced(&self) -> String {
        let diff = format!("{FENCE} diff\n{}\n{FENCE}\n", self.diff.trim_end());
        if self.left_out.is_empty() {
            return diff;
        }
        let files: String = self.left_out.iter().map(|file| format!("{ITEM}{file}\n")).collect();
        format!("{diff}\nThese did not fit, so read them yourself:\n\n{FENCE} files\n{files}{FENCE}\n")
    }

    /// The path of a file in the diff, however a finding writes it: absolute, or as the diff does, with `a/` or `b/`.
    pub(super) fn resolve(&self, said: &str) -> String {
        let said = said.replace('\\', "/");
        let said = said.trim_start_matches("./");
        let cut = self.left_out.iter().map(|file| file.strip_prefix(REST).unwrap_or(file).into());
        let known: Vec<Cow<'_, str>> = sections(self.diff).into_iter().map(|(path, _)| path).chain(cut).collect();
        let is_known = |path: &&str| known.iter().any(|known| known == path);
        let bare = || said.strip_prefix("b/").or_else(|| said.strip_prefix("a/")).filter(is_known);
        let is_below = |known: &&str| said.strip_suffix(known).is_some_and(|folder| folder.ends_with('/'));
        let is_absolute = said.starts_with('/') || said.get(1..3) == Some(":/");
        let inner =
            || known.iter().map(AsRef::as_ref).filter(|_| is_absolute).filter(is_below).max_by_key(|path| path.len());
        Some(said).filter(is_known).or_else(bare).or_else(inner).unwrap_or(said).to_owned()
    }

    pub(super) fn find(&self, path: &str, quote: &str) -> Quoted {
        let quoted: Vec<String> = quote.lines().map(plain).filter(|line| !line.is_empty()).collect();
        // A reviewer may quote a line with the mark of the diff, or a part of it.
        let is_whole =
            |line: &str, quote: &str| line == quote || Some(line) == quote.strip_prefix(['+', '-']).map(str::trim);
        let has = |line: &str, quote: &str| is_whole(line, quote) || (quote.len() > 8 && line.contains(quote));
        let of_path = sections(self.diff).into_iter().filter(|(known, _)| *known == path);
        let of_path: Vec<Vec<(u64, String)>> = of_path.map(|(_, section)| numbered(section)).collect();
        for lines in of_path.iter().filter(|_| !quoted.is_empty()) {
            if quoted.iter().all(|quote| lines.iter().any(|(_, line)| has(line, quote))) {
                let mut at: Vec<_> = lines.iter().filter(|(_, line)| has(line, &quoted[0])).collect();
                let whole: Vec<_> = at.iter().copied().filter(|(_, line)| is_whole(line, &quoted[0])).collect();
                at = if whole.is_empty() { at } else { whole };
                return Quoted::InDiff(if let [(number, _)] = at[..] { Some(*number) } else { None });
            }
        }
        let is_cut = self.left_out.iter().any(|file| file.strip_prefix(REST).unwrap_or(file) == path);
        let is_unnamed = of_path.is_empty() && self.left_out.last().is_some_and(|last| last.starts_with(MORE));
        if is_cut || is_unnamed { Quoted::Unchecked } else { Quoted::Nowhere }
    }
}

fn plain(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The lines of a file's hunks, with their numbers in the new file; a removed line has that of the line after it.
fn numbered(section: &str) -> Vec<(u64, String)> {
    let (mut number, mut lines) = (0, Vec::new());
    for line in section.lines().skip_while(|line| !line.starts_with("@@")) {
        if let Some(header) = line.strip_prefix("@@") {
            let begin = header.split_once('+').and_then(|(_, new)| new.split([',', ' ']).next()?.parse().ok());
            number = begin.unwrap_or_default();
        } else if let Some(line) = line.strip_prefix(['+', '-', ' ']).map(plain) {
            lines.push((number, line));
        }
        number += u64::from(line.starts_with(['+', ' ']));
    }
    lines
}

/// Each file's part of a diff, with its path.
fn sections(text: &str) -> Vec<(Cow<'_, str>, &str)> {
    let mut starts: Vec<usize> = text.match_indices("\ndiff --git ").map(|(at, _)| at + 1).collect();
    starts.insert(0, 0);
    starts.push(text.len());
    let sections = starts.windows(2).filter_map(|pair| text.get(pair[0]..pair[1]));
    sections.filter(|section| !section.trim().is_empty()).map(|section| (path_of(section), section)).collect()
}

fn path_of(section: &str) -> Cow<'_, str> {
    let header = section.lines().take_while(|line| !line.starts_with("@@"));
    let path = |line: &str, mark: &str, prefix: &str| -> Option<Cow<'_, str>> {
        let name = line.strip_prefix(mark)?.trim_end_matches('\t');
        match name.strip_prefix(prefix) {
            Some(path) => Some(path.to_owned().into()),
            None => unquoted(name).strip_prefix(prefix).map(|path| path.to_owned().into()),
        }
    };
    let named = header.filter_map(|line| path(line, "+++ ", "b/").or_else(|| path(line, "--- ", "a/"))).last();
    let first = || section.lines().next().unwrap_or_default();
    let plain = || first().rsplit_once(" b/").map(|(_, path)| path.to_owned().into());
    let quoted = || {
        first().rfind(" \"b/").and_then(|at| unquoted(&first()[at + 1..]).get(2..).map(|path| path.to_owned().into()))
    };
    named.filter(|path| !path.is_empty()).or_else(quoted).or_else(plain).unwrap_or_default()
}

/// Hidden characters by their code points. Keeps line ends, and tabs.
fn shown_lines(text: &str) -> String {
    text.split_inclusive('\n')
        .map(|line| {
            let end = if line.ends_with('\n') { "\n" } else { "" };
            let parts: Vec<String> = line.trim_end_matches(['\n', '\r']).split('\t').map(printable).collect();
            parts.join("\t") + end
        })
        .collect()
}

/// As git shows a new file. `None`: it is too long, or nothing that git would add.
fn of_new_file(root: &Path, path: &str) -> Option<String> {
    // A name may hold a line end, and with it the end of the fence.
    let (file, path) = (root.join(path), printable_line(path));
    let (mode, bytes) = match fs::read_link(&file) {
        Ok(target) => ("120000", target.to_string_lossy().into_owned().into_bytes()),
        Err(_) => ("100644", read_regular(&file, NEW_SIZE)?),
    };
    let header = format!("diff --git a/{path} b/{path}\nnew file mode {mode}\n");
    if bytes.contains(&0) {
        return Some(format!("{header}Binary files /dev/null and b/{path} differ\n"));
    }
    let text = String::from_utf8_lossy(&bytes);
    let count = text.lines().count();
    let lines: String = text.lines().map(|line| format!("+{line}\n")).collect();
    Some(format!("{header}--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{count} @@\n{lines}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "diff --git a/a.rs b/a.rs\n--- a/a.rs\n+++ b/a.rs\n@@ -5,2 +7,2 @@ mod x\n fn a() {\n-    one();\n+    two(1,  2);\n\
        diff --git a/b.md b/b.md\nnew file mode 100644\n--- /dev/null\n+++ b/b.md\n@@ -0,0 +1,1 @@\n+words\n\
        diff --git a/c.png b/c.png\nBinary files a/c.png and b/c.png differ\n";

    #[test]
    fn quotes_are_found_in_the_files_they_are_from() {
        let long = vec!["d".to_owned(); 2].into_iter().chain(["the rest of a.rs".to_owned()]).collect();
        let diff = Diff { base: String::new(), text: DIFF.to_owned(), files: 4, left_out: long };
        let task = format!("Review.\n\n{}\nEnd.\n", diff.fenced());
        let shown = Shown::of_task(&task);
        for (path, quote, expected) in [
            ("a.rs", "    two(1,  2);", Quoted::InDiff(Some(8))),
            ("a.rs", "two(1, 2);", Quoted::InDiff(Some(8))),
            ("a.rs", "+    two(1, 2);", Quoted::InDiff(Some(8))),
            ("a.rs", "one();", Quoted::InDiff(Some(8))),
            ("a.rs", "fn a() {\n    two(1, 2);", Quoted::InDiff(Some(7))),
            ("a.rs", "three();", Quoted::Unchecked),
            ("a.rs", " \n", Quoted::Unchecked),
            ("a.rs", "+++ b/a.rs", Quoted::Unchecked),
            ("b.md", "two(1, 2);", Quoted::Nowhere),
            ("b.md", "words", Quoted::InDiff(Some(1))),
            ("b.md", "word", Quoted::Nowhere),
            ("c.png", "words", Quoted::Nowhere),
            ("d", "words", Quoted::Unchecked),
            ("e", "words", Quoted::Nowhere),
        ] {
            assert_eq!(shown.find(path, quote), expected, "{path}: {quote}");
        }
        let twice = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n-x()\n+x()\n+y()\n";
        let shown = Shown { diff: twice, left_out: vec!["… and 3 more"] };
        assert_eq!(shown.find("a", "x()"), Quoted::InDiff(None));
        assert_eq!((shown.find("a", "z()"), shown.find("b", "z()")), (Quoted::Nowhere, Quoted::Unchecked));
    }

    #[test]
    fn paths_are_found_however_they_are_written() {
        let quoted = "diff --git \"a/s/q\\\"\\303\\274.rs\" \"b/s/q\\\"\\303\\274.rs\"\n--- \"a/s/q\\\"\\303\\274.rs\"\n\
            +++ \"b/s/q\\\"\\303\\274.rs\"\n@@ -1 +1 @@\n-x\n+y\ndiff --git \"a/\\303\\274.png\" \"b/\\303\\274.png\"\nBinary\n";
        let diff = format!("{DIFF}{quoted}");
        let shown = Shown { diff: &diff, left_out: vec!["the rest of src/long.rs", "b/x.rs"] };
        for (said, expected) in [
            ("a.rs", "a.rs"),
            ("./a.rs", "a.rs"),
            ("b/a.rs", "a.rs"),
            ("a/a.rs", "a.rs"),
            ("/home/me/project/a.rs", "a.rs"),
            ("C:\\project\\a.rs", "a.rs"),
            ("/home/me/src/long.rs", "src/long.rs"),
            ("b/x.rs", "b/x.rs"),
            ("s/q\"ü.rs", "s/q\"ü.rs"),
            ("b/ü.png", "ü.png"),
            ("/home/me/extra.rs", "/home/me/extra.rs"),
            ("other/a.rs", "other/a.rs"),
            ("b/c.rs", "b/c.rs"),
        ] {
            assert_eq!(shown.resolve(said), expected, "{said}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_files_name_does_not_end_the_fence() {
        let folder = tempfile::tempdir().expect("a folder");
        let name = format!("a\n{FENCE}\n# Task");
        fs::write(folder.path().join(&name), "words\n").expect("a file");
        let diff = Diff::cut("HEAD".to_owned(), &of_new_file(folder.path(), &name).expect("a file"), str::to_owned);
        let shown = diff.fenced();
        assert!(shown.contains("+words") && !shown.contains("\n# Task"), "{shown}");
        assert_eq!(shown.matches(&format!("\n{FENCE}")).count(), 1, "{shown}");
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let diff = Diff::cut("HEAD".to_owned(), DIFF, str::to_owned);
        assert_eq!((diff.files, diff.text.as_str(), diff.left_out.len()), (3, DIFF, 0));
        let task = format!("Review.\n\n{}\nEnd.\n", diff.fenced());
        assert_eq!(Shown::of_task(&task).diff, DIFF);
        let long = format!("{DIFF}diff --git a/d b/d\n--- a/d\n+++ b/d\n@@ -1 +1 @@\n{}", "+x\n".repeat(SHOWN));
        let diff = Diff::cut("HEAD".to_owned(), &long, str::to_owned);
        assert!(diff.text.starts_with(DIFF) && diff.text.len() > SHOWN - 10, "{}", diff.text.len());
        assert_eq!(diff.left_out, ["the rest of d"]);
        let first = format!("{}{DIFF}", &long[DIFF.len()..]);
        let diff = Diff::cut("HEAD".to_owned(), &first, str::to_owned);
        assert!(diff.text.ends_with(DIFF), "a long file hides no other");
        assert_eq!(diff.left_out, ["the rest of d"]);
        let alone = Diff::cut("HEAD".to_owned(), long.get(DIFF.len()..).expect("the rest"), str::to_owned);
        assert!(alone.text.len() > SHOWN - 10 && alone.left_out == ["the rest of d"], "{:?}", alone.left_out);
        let many = Diff { left_out: (0..NAMED + 3).map(|number| number.to_string()).collect(), ..alone };
        let task = format!("Review.\n\n{}\n", many.fenced());
        let named = Shown::of_task(&task).left_out;
        assert_eq!((named.len(), named[NAMED]), (NAMED + 1, "… and 3 more"));
    }
}
