//! The files that differ from one snapshot to the next, and their patches.

use std::collections::BTreeMap;

use gix::{ObjectId, objs::tree::EntryMode};

use super::WorkTreeSnapshot;
use crate::git::{
    error::Error, mode::LINK, objects::NewObjects, quarantine::Quarantine, references::parse_id,
    repository::Repository, rescue::Content,
};
use crate::model::IntoMap;

/// What `git diff-tree` is asked for.
const OPTIONS: [&str; 5] = ["-r", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"];

/// A file that differs between two trees.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FileStep {
    /// From the repository's root, for display.
    pub(crate) path: String,
    pub(in crate::git) raw: Vec<u8>,
    /// `None`: there is no file.
    pub(in crate::git) old: Option<Content>,
    pub(in crate::git) new: Option<Content>,
}

impl FileStep {
    /// Whether a later step of the same file begins where this one ends.
    pub(crate) fn precedes(&self, later: &Self) -> bool {
        (&self.raw, &self.new) == (&later.raw, &later.old)
    }

    /// This step and a later one of the same file.
    pub(crate) fn followed_by(&self, later: &Self) -> Self {
        Self { new: later.new.clone(), ..self.clone() }
    }

    pub(crate) fn changes_anything(&self) -> bool {
        self.old != self.new
    }

    /// git shows a file that becomes a link, or the reverse, as deleted and created.
    fn patch_count(&self) -> usize {
        let is_link = |content: &Content| content.mode == LINK;
        match (&self.old, &self.new) {
            (Some(old), Some(new)) if is_link(old) != is_link(new) => 2,
            _ => 1,
        }
    }
}

/// An entry for the editor of trees; `None`: removed.
pub(in crate::git) fn tree_entry(content: Option<&Content>) -> Option<(EntryMode, ObjectId)> {
    content.and_then(|Content { mode, id }| Some((EntryMode::from_bytes(mode.as_bytes())?, *id)))
}

impl Repository {
    /// What changed from each snapshot to the next, each ordered by path.
    pub(crate) fn steps_between(&self, snapshots: &[&WorkTreeSnapshot]) -> Result<Vec<Vec<FileStep>>, Error> {
        self.tree_steps(&snapshots.iter().map(|snapshot| snapshot.tree).collect::<Vec<_>>(), None)
    }

    /// What changes from each tree to the next. Objects that are not in the repository yet are in the quarantine.
    pub(in crate::git) fn tree_steps(
        &self,
        trees: &[ObjectId],
        quarantine: Option<&Quarantine<'_>>,
    ) -> Result<Vec<Vec<FileStep>>, Error> {
        let pairs: String = trees.windows(2).map(|pair| format!("{} {}\n", pair[0], pair[1])).collect();
        if pairs.is_empty() {
            return Ok(Vec::new());
        }
        let call = self.call(&["diff-tree", "--stdin", "--raw", "-z", "--no-abbrev"]).arguments(&OPTIONS).input(pairs);
        let call = match quarantine {
            Some(quarantine) => quarantine.call(call),
            None => call,
        };
        let answer = call.succeed()?.stdout;
        let steps = self.parse_steps(&answer).filter(|steps| steps.len() == trees.len() - 1);
        steps.ok_or_else(|| Error::damaged(self.git_dir(), "`git diff-tree` answered in an unknown form"))
    }

    /// Each pair is a line of two ids, then records `:mode mode id id status`, NUL, path, NUL.
    fn parse_steps(&self, mut answer: &[u8]) -> Option<Vec<Vec<FileStep>>> {
        let mut all: Vec<Vec<FileStep>> = Vec::new();
        while let Some(first) = answer.first() {
            if *first != b':' {
                let end = answer.iter().position(|byte| *byte == b'\n')?;
                all.push(Vec::new());
                answer = &answer[end + 1..];
                continue;
            }
            let mut parts = answer.splitn(3, |byte| *byte == 0);
            let (facts, raw) = (std::str::from_utf8(parts.next()?).ok()?, parts.next()?);
            answer = parts.next().unwrap_or_default();
            let mut facts = facts.trim_start_matches(':').split(' ');
            let modes = (facts.next()?, facts.next()?);
            let mut content = |mode: &str| {
                let id = parse_id(facts.next()?.as_bytes(), self.hash())?;
                Some((mode != "000000").then(|| Content { mode: mode.to_owned(), id }))
            };
            let (old, new) = (content(modes.0)?, content(modes.1)?);
            let path = String::from_utf8_lossy(raw).into_owned();
            all.last_mut()?.push(FileStep { path, raw: raw.to_owned(), old, new });
        }
        Some(all)
    }

    /// A unified diff for each of these steps, all of which change something.
    pub(crate) fn patches(&self, steps: &[&FileStep]) -> Result<Vec<Vec<u8>>, Error> {
        let quarantine = Quarantine::new(self)?;
        let mut patches = vec![Vec::new(); steps.len()];
        // A path may occur several times, and a tree has it once.
        let mut rounds: Vec<BTreeMap<&[u8], usize>> = Vec::new();
        for (place, step) in steps.iter().enumerate() {
            let free = rounds.iter_mut().find(|round| !round.contains_key(&step.raw[..]));
            match free {
                Some(round) => drop(round.insert(&step.raw, place)),
                None => rounds.push(BTreeMap::from([(&step.raw[..], place)])),
            }
        }
        for round in rounds {
            let mut objects = NewObjects::new(self.hash());
            let mut tree = |side: fn(&FileStep) -> Option<&Content>| {
                let edits = round
                    .iter()
                    .filter_map(|(raw, place)| Some((raw.to_vec(), Some(tree_entry(side(steps.get(*place)?))?))));
                self.edited(&self.objects(), None, &edits.into_map(), &mut objects)
            };
            let (old, new) = (tree(|step| step.old.as_ref())?, tree(|step| step.new.as_ref())?);
            quarantine.put(&objects)?;
            let call = self.call(&["diff-tree", "-p", "--binary", "--no-color"]).arguments(&OPTIONS);
            let answer = quarantine.call(call.arguments(&[&old.to_string(), &new.to_string()])).succeed()?;
            let mut sections = sections(&answer.stdout).into_iter();
            for place in round.into_values() {
                let (Some(step), Some(patch)) = (steps.get(place), patches.get_mut(place)) else { continue };
                patch.extend(sections.by_ref().take(step.patch_count()).flatten());
            }
        }
        Ok(patches)
    }
}

/// The sections of a diff. Within one, no line begins with `diff`.
fn sections(diff: &[u8]) -> Vec<Vec<u8>> {
    let mut sections: Vec<Vec<u8>> = Vec::new();
    for line in diff.split_inclusive(|byte| *byte == b'\n') {
        match sections.last_mut() {
            Some(section) if !line.starts_with(b"diff --git ") => section.extend(line),
            _ => sections.push(line.to_owned()),
        }
    }
    sections
}
