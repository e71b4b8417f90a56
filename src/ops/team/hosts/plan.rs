//! Decides what to do with each exported file: a three-way merge of the text squad wrote, the user's version of it, and
//! the text that the team's files give now.

use std::collections::{BTreeMap, BTreeSet};

use super::record::{Record, RecordedFile};
use super::render::HostTexts;
use super::section;
use crate::error::Failure;
use crate::git::Repository;
use crate::model::SkippedFile;
use crate::ops::change::{Conflict, FileChange, Merged, merged, same};

/// What is at the path of an exported file now.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum CurrentFile {
    Missing,
    File(Vec<u8>),
    /// Not a regular file, or below a link. Holds the reason.
    Blocked(String),
}

/// The changes of exported files. Paths are from the project's root.
#[derive(Default)]
pub(crate) struct HostsPlan {
    pub(crate) changes: Vec<FileChange>,
    /// Files that stay as they are.
    pub(crate) conflicts: Vec<Conflict>,
    /// The same, with squad's new texts, before the paths are from the repository's root.
    pub(super) texts: Vec<(Conflict, Vec<u8>)>,
    /// Squad's new texts, to write next to them.
    pub(crate) copies: Vec<FileChange>,
    /// Files that keep the user's edits.
    pub(crate) edited: Vec<String>,
    pub(crate) skipped: Vec<SkippedFile>,
}

/// What to do with the managed part of a file.
enum Action {
    Keep,
    Write(Vec<u8>),
    Delete,
    /// Holds squad's new text.
    Conflict(Vec<u8>),
    /// Holds the reason.
    Skip(String),
}

pub(super) struct Planner<'a> {
    pub(super) repository: &'a Repository,
    /// The record of the last export.
    pub(super) record: &'a Record,
    pub(super) wanted: &'a HostTexts,
    pub(super) current: BTreeMap<String, CurrentFile>,
    /// Computes the texts of the last export.
    pub(super) previous_texts: &'a dyn Fn() -> HostTexts,
    /// Whether to restore files that the user deleted.
    pub(super) restores_deleted: bool,
}

impl Planner<'_> {
    /// The plan, and the files of the next record.
    pub(super) fn plan(&self) -> Result<(HostsPlan, BTreeMap<String, RecordedFile>), Failure> {
        let (mut plan, mut next) = (HostsPlan::default(), BTreeMap::new());
        let paths: BTreeSet<&String> = self.record.files.keys().chain(self.wanted.keys()).collect();
        for path in paths {
            self.plan_file(path, &mut plan, &mut next)?;
        }
        Ok((plan, next))
    }

    fn plan_file(
        &self,
        path: &str,
        plan: &mut HostsPlan,
        next: &mut BTreeMap<String, RecordedFile>,
    ) -> Result<(), Failure> {
        let skipped = |why: String| SkippedFile { path: path.to_owned(), why };
        let (recorded, wanted) = (self.record.files.get(path), self.wanted.get(path));
        let is_section = wanted.map_or(recorded.is_some_and(RecordedFile::is_section), |text| text.is_section);
        let current = self.current_file(path).and_then(|file| Ok((file, managed_part(file, is_section)?)));
        let (file, part) = match current {
            Ok(found) => found,
            Err(why) => {
                plan.skipped.push(skipped(why));
                next.extend(recorded.map(|recorded| (path.to_owned(), recorded.clone())));
                return Ok(());
            }
        };
        let new = wanted.map(|text| text.bytes.as_slice());
        let action = self.action(path, recorded, part.as_deref(), new, is_section)?;
        let with_part = |new: &[u8]| with_managed_part(file, new, is_section);
        let mut content = file.cloned();
        let (is_skipped, is_conflict) = (matches!(action, Action::Skip(_)), matches!(action, Action::Conflict(_)));
        match action {
            Action::Keep => {}
            Action::Skip(why) => plan.skipped.push(skipped(why)),
            Action::Delete => {
                let rest = is_section.then(|| with_part(b"")).filter(|rest| !rest.trim_ascii().is_empty());
                plan.changes.push(FileChange::new(path.to_owned(), file.cloned(), rest));
            }
            Action::Write(new) => {
                content = Some(with_part(&new));
                let change = FileChange::new(path.to_owned(), file.cloned(), content.clone());
                plan.changes.push(FileChange { executable: wanted.is_some_and(|text| text.executable), ..change });
            }
            Action::Conflict(new) => {
                let conflict = Conflict { path: path.to_owned(), new: format!("{path}.new") };
                plan.texts.push((conflict, with_part(&new)));
            }
        }
        let is_users = recorded.is_none() && is_skipped;
        let Some(new) = new.filter(|_| !is_users) else { return Ok(()) };
        let base = self.repository.id_of_text(new)?;
        let result = content.as_ref().and_then(|bytes| managed_part(Some(bytes), is_section).ok().flatten());
        if !is_conflict && result.is_some_and(|result| !same(&result, new)) {
            plan.edited.push(path.to_owned());
        }
        // An unchanged part keeps its record, even if the file around it has changed since.
        let record = match recorded.filter(|recorded| recorded.base == base) {
            Some(recorded) => recorded.clone(),
            None => {
                let file =
                    content.filter(|_| is_section).map(|bytes| self.repository.id_of_text(&bytes)).transpose()?;
                RecordedFile { base, file }
            }
        };
        next.insert(path.to_owned(), record);
        Ok(())
    }

    /// The current file, or why squad cannot change it.
    fn current_file(&self, path: &str) -> Result<Option<&Vec<u8>>, String> {
        match self.current.get(path) {
            Some(CurrentFile::Blocked(why)) => Err(why.clone()),
            Some(CurrentFile::File(bytes)) => Ok(Some(bytes)),
            Some(CurrentFile::Missing) | None => Ok(None),
        }
    }

    fn action(
        &self,
        path: &str,
        recorded: Option<&RecordedFile>,
        current: Option<&[u8]>,
        new: Option<&[u8]>,
        is_section: bool,
    ) -> Result<Action, Failure> {
        let skip = |why: &str| Action::Skip(why.to_owned());
        Ok(match (recorded, current, new) {
            (_, None, None) => Action::Keep,
            (None, None, Some(new)) => Action::Write(new.to_owned()),
            (None, Some(current), Some(new)) if same(current, new) => Action::Keep,
            (None, Some(_), _) => skip("the file exists, and squad did not write it: move it away"),
            (Some(_), None, Some(new)) if self.restores_deleted => Action::Write(new.to_owned()),
            (Some(_), None, Some(_)) => skip("you deleted it; `squad agents export` restores it"),
            (Some(recorded), Some(current), None) if self.id(current)? == recorded.base => Action::Delete,
            (Some(_), Some(_), None) => skip("squad would delete it, but you changed it: delete it by hand"),
            (Some(recorded), Some(_), Some(new)) if self.id(new)? == recorded.base => Action::Keep,
            (Some(_), Some(current), Some(new)) if same(current, new) => Action::Keep,
            (Some(recorded), Some(current), Some(new)) => match self.base(path, recorded, current, is_section)? {
                None => Action::Conflict(new.to_owned()),
                Some(base) => match merged(self.repository, &base, current, new)? {
                    Merged::Unchanged => Action::Keep,
                    Merged::Changed(merged) => Action::Write(merged),
                    Merged::Conflict(new) => Action::Conflict(new),
                },
            },
        })
    }

    /// The id of a text with LF line endings, as in the record.
    fn id(&self, text: &[u8]) -> Result<String, Failure> {
        let plain: Vec<u8> = text.iter().copied().filter(|byte| *byte != b'\r').collect();
        Ok(self.repository.id_of_text(&plain)?)
    }

    /// The text that squad wrote: the current one, one in git's object database, or one rendered again from the team's
    /// earlier files.
    fn base(
        &self,
        path: &str,
        recorded: &RecordedFile,
        current: &[u8],
        is_section: bool,
    ) -> Result<Option<Vec<u8>>, Failure> {
        let is_base = |text: &[u8]| Ok::<_, Failure>(self.id(text)? == recorded.base);
        if is_base(current)? {
            return Ok(Some(current.to_owned()));
        }
        let stored = self.repository.text_of_id(recorded.file.as_ref().unwrap_or(&recorded.base));
        if let Some(stored) = managed_part(stored.as_ref(), is_section).ok().flatten()
            && is_base(&stored)?
        {
            return Ok(Some(stored));
        }
        match (self.previous_texts)().remove(path) {
            Some(previous) if is_base(&previous.bytes)? => Ok(Some(previous.bytes)),
            _ => Ok(None),
        }
    }
}

/// The part of a file that squad manages: its section, or the whole file. Fails if the section cannot be identified.
fn managed_part(file: Option<&Vec<u8>>, is_section: bool) -> Result<Option<Vec<u8>>, String> {
    let Some(bytes) = file.filter(|_| is_section) else { return Ok(file.cloned()) };
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    Ok(section::find(text)?.map(|range| text[range].as_bytes().to_vec()))
}

/// A file with its managed part replaced.
fn with_managed_part(file: Option<&Vec<u8>>, new: &[u8], is_section: bool) -> Vec<u8> {
    if !is_section {
        return new.to_owned();
    }
    let text = String::from_utf8_lossy(file.map_or(&[][..], Vec::as_slice));
    let range = section::find(&text).ok().flatten();
    section::replaced(&text, range, &String::from_utf8_lossy(new)).into_bytes()
}

/// How an exported file differs from what squad would write.
pub(super) enum Drift {
    /// The team's files have changed since.
    Stale,
    /// The user edited it.
    Edited,
    Missing,
    /// Squad's section cannot be identified. Holds the reason.
    Damaged(String),
}

impl Planner<'_> {
    pub(super) fn drift(&self) -> Result<Vec<(String, Drift)>, Failure> {
        let mut found = Vec::new();
        for path in self.record.files.keys().chain(self.wanted.keys()).collect::<BTreeSet<_>>() {
            let (recorded, wanted) = (self.record.files.get(path), self.wanted.get(path));
            let is_section = wanted.is_some_and(|text| text.is_section);
            let current = match self.current.get(path) {
                Some(CurrentFile::File(bytes)) => match managed_part(Some(bytes), is_section) {
                    Ok(part) => part,
                    Err(why) => {
                        found.push((path.clone(), Drift::Damaged(why)));
                        continue;
                    }
                },
                _ => None,
            };
            let drift = match (recorded, current, wanted) {
                (Some(_), None, Some(_)) => Some(Drift::Missing),
                (None, None, Some(_)) if !matches!(self.current.get(path), Some(CurrentFile::Blocked(_))) => {
                    Some(Drift::Stale)
                }
                (Some(_), Some(current), Some(wanted)) if same(&current, &wanted.bytes) => None,
                (Some(recorded), Some(current), Some(wanted)) if self.id(&current)? != recorded.base => {
                    let is_stale = self.id(&wanted.bytes)? != recorded.base;
                    Some(if is_stale { Drift::Stale } else { Drift::Edited })
                }
                (Some(_), Some(_), _) => Some(Drift::Stale),
                _ => None,
            };
            found.extend(drift.map(|drift| (path.clone(), drift)));
        }
        Ok(found)
    }
}
