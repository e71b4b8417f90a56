//! What becomes of each exported file: a three-way merge from the text that squad wrote, by what people did to it and by
//! what the team's files have become.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::record::{Exported, Record};
use super::render::HostTexts;
use super::section;
use crate::error::Failure;
use crate::git::Repository;
use crate::ops::team::changeset::FileChange;
use crate::ops::team::merge::{Conflict, Merged, merged, same};

/// A file that stays as it is, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct LeftFile {
    pub(crate) path: String,
    pub(crate) why: String,
}

/// What is in the place of an exported file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Place {
    Nothing,
    File(Vec<u8>),
    /// Something that squad does not write through, and what.
    Blocked(String),
}

/// What becomes of exported files. Paths are from the project's root.
#[derive(Default)]
pub(crate) struct HostsPlan {
    pub(crate) changes: Vec<FileChange>,
    /// Files that stay, with squad's new text to be laid beside each.
    pub(crate) conflicts: Vec<(Conflict, Vec<u8>)>,
    /// Files that keep what people changed in them.
    pub(crate) kept: Vec<String>,
    pub(crate) left: Vec<LeftFile>,
}

/// What is done to the part of a file that is squad's.
enum Step {
    Stays,
    Becomes(Vec<u8>),
    Goes,
    Conflicts(Vec<u8>),
    Left(String),
}

/// What is asked for, and what there is.
pub(super) struct Planner<'a> {
    pub(super) repository: &'a Repository,
    pub(super) before: &'a Record,
    pub(super) wanted: &'a HostTexts,
    pub(super) places: &'a BTreeMap<String, Place>,
    /// The texts of the time that `before` is from.
    pub(super) older: &'a dyn Fn() -> HostTexts,
    /// Whether files that people deleted are made again.
    pub(super) is_to_restore: bool,
}

impl Planner<'_> {
    /// The plan, and the files of the next record.
    pub(super) fn plan(&self) -> Result<(HostsPlan, BTreeMap<String, Exported>), Failure> {
        let (mut plan, mut next) = (HostsPlan::default(), BTreeMap::new());
        let paths: BTreeSet<&String> = self.before.files.keys().chain(self.wanted.keys()).collect();
        for path in paths {
            self.one(path, &mut plan, &mut next)?;
        }
        Ok((plan, next))
    }

    fn one(&self, path: &str, plan: &mut HostsPlan, next: &mut BTreeMap<String, Exported>) -> Result<(), Failure> {
        let left = |why: &str| LeftFile { path: path.to_owned(), why: why.to_owned() };
        let (known, wanted) = (self.before.files.get(path), self.wanted.get(path));
        let is_section = wanted.map_or(known.is_some_and(Exported::is_section), |text| text.is_section);
        let file = match self.places.get(path) {
            Some(Place::Blocked(why)) => {
                plan.left.push(left(why));
                next.extend(known.map(|known| (path.to_owned(), known.clone())));
                return Ok(());
            }
            Some(Place::File(bytes)) => Some(bytes),
            Some(Place::Nothing) | None => None,
        };
        let part = match part(file, is_section) {
            Ok(part) => part,
            Err(why) => {
                plan.left.push(left(&why));
                next.extend(known.map(|known| (path.to_owned(), known.clone())));
                return Ok(());
            }
        };
        let new = wanted.map(|text| text.bytes.as_slice());
        let step = self.step(path, known, part.as_deref(), new, is_section)?;
        let whole = |new: &[u8]| whole(file, new, is_section);
        let mut content = file.cloned();
        match step {
            Step::Stays => {}
            Step::Left(why) => plan.left.push(left(&why)),
            Step::Goes => {
                let rest = is_section.then(|| whole(b"")).filter(|rest| !rest.trim_ascii().is_empty());
                plan.changes.push(FileChange::new(path.to_owned(), file.cloned(), rest));
            }
            Step::Becomes(new) => {
                content = Some(whole(&new));
                let change = FileChange::new(path.to_owned(), file.cloned(), content.clone());
                plan.changes.push(FileChange { executable: wanted.is_some_and(|text| text.executable), ..change });
            }
            Step::Conflicts(new) => {
                let conflict = Conflict { path: path.to_owned(), new: format!("{path}.new") };
                plan.conflicts.push((conflict, whole(&new)));
            }
        }
        let is_taken = known.is_none() && plan.left.last().is_some_and(|left| left.path == path);
        let Some(new) = new.filter(|_| !is_taken) else { return Ok(()) };
        let base = self.repository.id_of_text(new)?;
        let kept = content.as_ref().and_then(|bytes| self::part(Some(bytes), is_section).ok().flatten());
        let conflicts = plan.conflicts.last().is_some_and(|(conflict, _)| conflict.path == path);
        if !conflicts && kept.is_some_and(|kept| !same(&kept, new)) {
            plan.kept.push(path.to_owned());
        }
        // What has not changed keeps its record: the file around a part may be another by now.
        let record = match known.filter(|known| known.base == base) {
            Some(known) => known.clone(),
            None => {
                let file =
                    content.filter(|_| is_section).map(|bytes| self.repository.id_of_text(&bytes)).transpose()?;
                Exported { base, file }
            }
        };
        next.insert(path.to_owned(), record);
        Ok(())
    }

    fn step(
        &self,
        path: &str,
        known: Option<&Exported>,
        ours: Option<&[u8]>,
        new: Option<&[u8]>,
        is_section: bool,
    ) -> Result<Step, Failure> {
        Ok(match (known, ours, new) {
            (_, None, None) => Step::Stays,
            (None, None, Some(new)) => Step::Becomes(new.to_owned()),
            (None, Some(ours), Some(new)) if same(ours, new) => Step::Stays,
            (None, Some(_), _) => Step::Left("it is there, and squad did not make it: move it away".to_owned()),
            (Some(_), None, Some(new)) if self.is_to_restore => Step::Becomes(new.to_owned()),
            (Some(_), None, Some(_)) => Step::Left("you deleted it; `squad agents export` makes it again".to_owned()),
            (Some(known), Some(ours), None) if self.id(ours)? == known.base => Step::Goes,
            (Some(_), Some(_), None) => {
                Step::Left("squad would delete it, but you changed it: delete it by hand".to_owned())
            }
            (Some(known), Some(_), Some(new)) if self.id(new)? == known.base => Step::Stays,
            (Some(_), Some(ours), Some(new)) if same(ours, new) => Step::Stays,
            (Some(known), Some(ours), Some(new)) => match self.base(path, known, ours, is_section)? {
                None => Step::Conflicts(new.to_owned()),
                Some(base) => match merged(self.repository, &base, ours, new)? {
                    Merged::Stays => Step::Stays,
                    Merged::Becomes(merged) => Step::Becomes(merged),
                    Merged::Conflicts(new) => Step::Conflicts(new),
                },
            },
        })
    }

    /// With LF line ends, as texts are recorded.
    fn id(&self, text: &[u8]) -> Result<String, Failure> {
        let plain: Vec<u8> = text.iter().copied().filter(|byte| *byte != b'\r').collect();
        Ok(self.repository.id_of_text(&plain)?)
    }

    /// The text that squad wrote: the one that is there, or one that git has, or the one that the team gave then.
    fn base(&self, path: &str, known: &Exported, ours: &[u8], is_section: bool) -> Result<Option<Vec<u8>>, Failure> {
        let is_base = |text: &[u8]| Ok::<_, Failure>(self.id(text)? == known.base);
        if is_base(ours)? {
            return Ok(Some(ours.to_owned()));
        }
        let stored = self.repository.text_of_id(known.file.as_ref().unwrap_or(&known.base));
        if let Some(stored) = part(stored.as_ref(), is_section).ok().flatten()
            && is_base(&stored)?
        {
            return Ok(Some(stored));
        }
        match (self.older)().remove(path) {
            Some(older) if is_base(&older.bytes)? => Ok(Some(older.bytes)),
            _ => Ok(None),
        }
    }
}

/// The part of a file that is squad's; or why nobody can tell.
fn part(file: Option<&Vec<u8>>, is_section: bool) -> Result<Option<Vec<u8>>, String> {
    let Some(bytes) = file.filter(|_| is_section) else { return Ok(file.cloned()) };
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    Ok(section::find(text)?.map(|place| text[place].as_bytes().to_vec()))
}

/// A file with a new text in the place of squad's part.
fn whole(file: Option<&Vec<u8>>, new: &[u8], is_section: bool) -> Vec<u8> {
    if !is_section {
        return new.to_owned();
    }
    let text = String::from_utf8_lossy(file.map_or(&[][..], Vec::as_slice));
    let place = section::find(&text).ok().flatten();
    section::replaced(&text, place, &String::from_utf8_lossy(new)).into_bytes()
}

/// An exported file that is not as it should be.
pub(super) enum Drift {
    /// The team's files have changed since.
    Stale,
    /// People have changed it.
    Edited,
    Missing,
    /// Its part of the file cannot be found, and why.
    Damaged(String),
}

impl Planner<'_> {
    /// Exported files that are not as they should be.
    pub(super) fn drift(&self) -> Result<Vec<(String, Drift)>, Failure> {
        let mut found = Vec::new();
        for path in self.before.files.keys().chain(self.wanted.keys()).collect::<BTreeSet<_>>() {
            let (known, wanted) = (self.before.files.get(path), self.wanted.get(path));
            let is_section = wanted.is_some_and(|text| text.is_section);
            let ours = match self.places.get(path) {
                Some(Place::File(bytes)) => match part(Some(bytes), is_section) {
                    Ok(part) => part,
                    Err(why) => {
                        found.push((path.clone(), Drift::Damaged(why)));
                        continue;
                    }
                },
                _ => None,
            };
            let drift = match (known, ours, wanted) {
                (Some(_), None, Some(_)) => Some(Drift::Missing),
                // Somebody else's file may be in its place.
                (None, None, Some(_)) if !matches!(self.places.get(path), Some(Place::Blocked(_))) => {
                    Some(Drift::Stale)
                }
                (Some(_), Some(ours), Some(wanted)) if same(&ours, &wanted.bytes) => None,
                (Some(known), Some(ours), Some(wanted)) if self.id(&ours)? != known.base => {
                    let is_stale = self.id(&wanted.bytes)? != known.base;
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
