//! What reviewers' verdicts say of each file's contents.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Slug, Verdict};
use crate::model::IntoSet;

/// The hash of a file's content, as git names it; `None`: there is no such file.
pub(crate) type Content = Option<String>;

/// The files that a verdict covers, relative to the repository's root.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct JudgedFiles {
    /// All files that were shown to the reviewer.
    #[serde(default)]
    pub(crate) files: Vec<String>,
    /// Their contents then, as far as known. Entries of older versions have none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) contents: BTreeMap<String, Content>,
    /// The contents of files in commits that the checked-out branch does not have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) aside: BTreeMap<String, BTreeSet<Content>>,
    /// The files that a rejection is about, if not all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rejected: Option<Vec<String>>,
    /// The reviewer named these files, so that each of them needs other content. Otherwise one of them does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) are_named: bool,
}

impl JudgedFiles {
    pub(crate) fn paths(&self) -> BTreeSet<&String> {
        self.files.iter().chain(self.aside.keys()).into_set()
    }

    /// All contents of a file that were shown; `None`: unknown.
    fn contents_of(&self, path: &str) -> Option<BTreeSet<Content>> {
        let is_in_work_tree = self.files.iter().any(|file| file == path);
        let aside = self.aside.get(path).cloned().unwrap_or_default();
        match self.contents.get(path) {
            None if is_in_work_tree => None,
            content => Some(aside.into_iter().chain(content.cloned()).into_set()),
        }
    }
}

/// The verdicts that stand. A verdict covers the contents that the reviewer was shown, and nothing else: rejected
/// contents stay rejected until the file, or if the reviewer named none, one of the files rejected with it, has other
/// content that is approved.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileVerdicts {
    files: BTreeMap<String, FileVerdict>,
    rejections: usize,
}

/// The verdict that stands for one file.
#[derive(Clone, Debug)]
struct FileVerdict {
    reviewer: Option<Slug>,
    /// The approved contents; `None`: they are unknown.
    approved: Option<BTreeSet<Content>>,
    /// The number of the rejection that stands, and the contents that were rejected.
    rejection: Option<usize>,
    rejected: Vec<Option<Content>>,
}

impl FileVerdicts {
    /// Adds a later verdict. Returns the files that it approves.
    pub(crate) fn add(&mut self, verdict: Verdict, reviewer: Option<&Slug>, judged: &JudgedFiles) -> BTreeSet<String> {
        match verdict {
            Verdict::Approved => self.approve(reviewer, judged),
            Verdict::Rejected => {
                self.reject(reviewer, judged);
                BTreeSet::new()
            }
            Verdict::Unclear => BTreeSet::new(),
        }
    }

    fn approve(&mut self, reviewer: Option<&Slug>, judged: &JudgedFiles) -> BTreeSet<String> {
        let paths = judged.paths();
        let has_changed = |path: &&&String| {
            let shown = judged.contents_of(path);
            let is_rejected =
                |file: &FileVerdict| shown.into_iter().flatten().any(|content| file.rejected.contains(&Some(content)));
            // Unknown content may be other content.
            self.files.get(**path).is_some_and(|file| !is_rejected(file))
        };
        let lifted: BTreeSet<usize> =
            paths.iter().filter(has_changed).filter_map(|path| self.files.get(*path)?.rejection).into_set();
        let stands = |path: &&&String| {
            let rejection = self.files.get(**path).and_then(|file| file.rejection);
            rejection.is_none_or(|rejection| lifted.contains(&rejection))
        };
        let approved: BTreeSet<String> = paths.iter().filter(stands).copied().cloned().into_set();
        for path in &approved {
            let file = FileVerdict {
                reviewer: reviewer.cloned(),
                approved: judged.contents_of(path),
                rejection: None,
                rejected: Vec::new(),
            };
            self.files.insert(path.clone(), file);
        }
        approved
    }

    fn reject(&mut self, reviewer: Option<&Slug>, judged: &JudgedFiles) {
        self.rejections += 1;
        let paths = judged.rejected.as_ref().map_or_else(|| judged.paths(), |rejected| rejected.iter().into_set());
        for path in paths {
            self.rejections += usize::from(judged.are_named);
            let before = self.files.get(path).map(|file| file.rejected.clone()).unwrap_or_default();
            let contents: Vec<Option<Content>> = match judged.contents_of(path) {
                Some(contents) => contents.into_iter().map(Some).collect(),
                None => vec![None],
            };
            let file = FileVerdict {
                reviewer: reviewer.cloned(),
                approved: None,
                rejection: Some(self.rejections),
                rejected: before.into_iter().chain(contents).collect(),
            };
            self.files.insert(path.clone(), file);
        }
    }

    /// The files that were shown with rejected content.
    pub(crate) fn rejected_among<'j>(&self, judged: &'j JudgedFiles) -> impl Iterator<Item = &'j String> {
        judged.paths().into_iter().filter(|path| {
            let is_rejected = |content| self.on(path, content).is_some_and(|(verdict, _)| verdict == Verdict::Rejected);
            judged.contents_of(path).iter().flatten().any(is_rejected)
        })
    }

    /// The verdict on this content of a file, with its reviewer; `None`: nobody has judged it.
    pub(crate) fn on(&self, path: &str, content: &Content) -> Option<(Verdict, Option<&Slug>)> {
        let file = self.files.get(path)?;
        // Entries of older versions say nothing of contents.
        let is_rejected = |rejected: &Option<Content>| rejected.as_ref().is_none_or(|rejected| rejected == content);
        let is_approved = || file.approved.as_ref().is_none_or(|approved| approved.contains(content));
        let verdict = match file.rejection {
            Some(_) => file.rejected.iter().any(is_rejected).then_some(Verdict::Rejected),
            None => is_approved().then_some(Verdict::Approved),
        };
        verdict.map(|verdict| (verdict, file.reviewer.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(shown: &[(&str, &str)], rejected: &[&str]) -> JudgedFiles {
        let content = |id: &str| (id != "-").then(|| id.to_owned());
        JudgedFiles {
            files: shown.iter().map(|(path, _)| (*path).to_owned()).collect(),
            contents: shown.iter().map(|(path, id)| ((*path).to_owned(), content(id))).collect(),
            rejected: (!rejected.is_empty()).then(|| rejected.iter().map(|path| (*path).to_owned()).collect()),
            are_named: !rejected.is_empty(),
            ..JudgedFiles::default()
        }
    }

    /// In the work tree, on a branch, or on both × what the reviewer approves or rejects, and sees next.
    #[test]
    fn a_verdict_covers_what_commits_aside_hold() {
        let with = |shown: &[(&str, &str)], aside: &[&str]| JudgedFiles {
            aside: [("a".to_owned(), aside.iter().map(|id| (*id != "-").then(|| (*id).to_owned())).collect())].into(),
            ..judged(shown, &[])
        };
        for shown in [&[][..], &[("a", "1")]] {
            for aside in [&["2"][..], &["2", "3"], &["-"]] {
                let approved = after(&[(Verdict::Approved, with(shown, aside))]);
                let rejected = after(&[(Verdict::Rejected, with(shown, aside))]);
                for id in ["1", "2", "3", "4", "-"] {
                    let is_shown = aside.contains(&id) || shown.iter().any(|(_, shown)| *shown == id);
                    let context = format!("{shown:?} {aside:?} {id}");
                    assert_eq!(on(&approved, "a", id), is_shown.then_some(Verdict::Approved), "{context}");
                    assert_eq!(on(&rejected, "a", id), is_shown.then_some(Verdict::Rejected), "{context}");
                }
                // The branch still has it, whatever the work tree holds.
                let same = with(&[("a", "4")], aside);
                assert_eq!(rejected.rejected_among(&same).collect::<Vec<_>>(), ["a"], "{shown:?} {aside:?}");
                let revised =
                    after(&[(Verdict::Rejected, with(shown, aside)), (Verdict::Approved, with(shown, &["5"]))]);
                let is_lifted = shown.is_empty();
                assert_eq!(on(&revised, "a", "5") == Some(Verdict::Approved), is_lifted, "{shown:?} {aside:?}");
            }
        }
    }

    fn after(verdicts: &[(Verdict, JudgedFiles)]) -> FileVerdicts {
        let mut all = FileVerdicts::default();
        for (verdict, judged) in verdicts {
            all.add(*verdict, None, judged);
        }
        all
    }

    fn on(verdicts: &FileVerdicts, path: &str, id: &str) -> Option<Verdict> {
        verdicts.on(path, &(id != "-").then(|| id.to_owned())).map(|(verdict, _)| verdict)
    }

    #[test]
    fn a_verdict_covers_the_content_that_was_shown() {
        let verdicts = after(&[(Verdict::Approved, judged(&[("a", "1"), ("gone", "-")], &[]))]);
        assert_eq!(on(&verdicts, "a", "1"), Some(Verdict::Approved));
        assert_eq!(on(&verdicts, "gone", "-"), Some(Verdict::Approved));
        assert_eq!(
            [on(&verdicts, "a", "2"), on(&verdicts, "a", "-"), on(&verdicts, "gone", "1"), on(&verdicts, "b", "1")],
            [None; 4]
        );
    }

    #[test]
    fn rejected_content_stays_rejected_until_other_content_is_approved() {
        let rejected = (Verdict::Rejected, judged(&[("a", "1"), ("b", "1")], &["a"]));
        let same = (Verdict::Approved, judged(&[("a", "1"), ("b", "2")], &[]));
        let verdicts = after(&[rejected.clone(), same.clone()]);
        assert_eq!(verdicts.rejected_among(&same.1).collect::<Vec<_>>(), ["a"]);
        assert_eq!(
            (on(&verdicts, "a", "1"), on(&verdicts, "b", "2")),
            (Some(Verdict::Rejected), Some(Verdict::Approved))
        );
        let other = (Verdict::Approved, judged(&[("a", "2")], &[]));
        let verdicts = after(&[rejected.clone(), other]);
        assert_eq!(on(&verdicts, "a", "2"), Some(Verdict::Approved));
        // Back to what was rejected first.
        let again = (Verdict::Rejected, judged(&[("a", "2")], &[]));
        let back = (Verdict::Approved, judged(&[("a", "1")], &[]));
        assert_eq!(on(&after(&[rejected, again, back]), "a", "1"), Some(Verdict::Rejected));
    }

    #[test]
    fn what_was_rejected_together_needs_one_change() {
        let rejected = (Verdict::Rejected, judged(&[("a", "1"), ("b", "1")], &[]));
        let revised = (Verdict::Approved, judged(&[("a", "2"), ("b", "1")], &[]));
        assert_eq!(on(&after(&[rejected, revised.clone()]), "b", "1"), Some(Verdict::Approved));
        // Unless the reviewer named both.
        let rejected = (Verdict::Rejected, judged(&[("a", "1"), ("b", "1")], &["a", "b"]));
        let verdicts = after(&[rejected, revised]);
        assert_eq!(on(&verdicts, "a", "2"), Some(Verdict::Approved));
        assert_eq!(on(&verdicts, "b", "1"), Some(Verdict::Rejected));
    }

    #[test]
    fn verdicts_without_contents_are_read_as_before() {
        let old = |verdict| (verdict, JudgedFiles { files: vec!["a".to_owned()], ..JudgedFiles::default() });
        let verdicts = after(&[old(Verdict::Rejected)]);
        assert_eq!(on(&verdicts, "a", "1"), Some(Verdict::Rejected));
        let verdicts = after(&[old(Verdict::Rejected), old(Verdict::Approved)]);
        assert_eq!(on(&verdicts, "a", "1"), Some(Verdict::Approved));
    }
}
