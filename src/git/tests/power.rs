//! Power cuts: the recorded steps of appends are cut at every point, and unflushed changes randomly survive or not.
//!
//! Two file systems are simulated. One keeps the order of changes (ext4, XFS): the durable name changes are a prefix of
//! all changes, at least up to the last flushed one. The other only guarantees what was flushed itself: each folder is
//! at some point of its own history.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
};

use super::disk::{assert_goes_on, recorded, with_order};
use super::*;
use crate::git::disk::Step;

/// How many random outcomes to try at each cut. `SQUAD_TEST_ROUNDS=100` tries more.
fn rounds() -> usize {
    std::env::var("SQUAD_TEST_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(3)
}

/// The steps before the power cut.
struct History<'a> {
    steps: &'a [Step],
    keeps_order: bool,
}

/// The state of the disk after a cut: the durable name changes and contents.
#[derive(Clone, Default, Eq, Ord, PartialEq, PartialOrd)]
struct Remains {
    names: Vec<usize>,
    contents: BTreeMap<usize, Content>,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Content {
    Whole,
    Empty,
    Half,
}

impl History<'_> {
    /// The folder whose names a step changes.
    fn folder(step: &Step) -> Option<&Path> {
        match step {
            Step::Create(path) | Step::MakeFolder(path) | Step::Remove(path) | Step::RemoveFolder(path) => {
                path.parent()
            }
            Step::Rename(_, to) | Step::Link(_, to) => to.parent(),
            Step::Write(..) | Step::Reach(_) | Step::Flush(_) | Step::FlushFolder(_) | Step::Git(_) => None,
        }
    }

    /// The last step before `end` that changed what a flush of `path` covers; a file by its name at that time.
    fn last_change(&self, path: &Path, end: usize) -> Option<usize> {
        self.steps[..end].iter().rposition(|step| match step {
            Step::Create(made) | Step::Write(made, _) => made == path,
            other => Self::folder(other) == Some(path),
        })
    }

    /// How many steps are guaranteed to be durable at a cut, for each folder, or for all at once if the order is kept.
    fn durable(&self, cut: usize, folder: &Path) -> usize {
        let flushed = |at: usize| match &self.steps[at] {
            Step::Flush(path) if self.keeps_order => self.last_change(path, at).map(|last| last + 1),
            Step::FlushFolder(path) if self.keeps_order => {
                let last = self.steps[..at].iter().rposition(|step| Self::folder(step) == Some(path));
                last.map(|last| last + 1)
            }
            Step::FlushFolder(path) => (path == folder).then_some(at),
            _ => None,
        };
        (0..cut).filter_map(flushed).max().unwrap_or(0)
    }

    /// Whether the bytes written by step `at` are on disk at a cut. Bytes sent to the disk are durable once its cache
    /// is flushed: by any flush, or by writing the journal, which contains the steps before `journal`.
    fn is_written(&self, at: usize, cut: usize, journal: usize) -> bool {
        let Step::Write(path, _) = &self.steps[at] else { return false };
        let is_reached = |step: &Step| matches!(step, Step::Reach(name) if name == path);
        let reached = self.steps[at..cut].iter().position(is_reached).map_or(cut, |after| at + after);
        let is_flush = |step: &Step| matches!(step, Step::Flush(_) | Step::FlushFolder(_));
        reached < journal
            || self.steps[reached..cut].iter().any(is_flush)
            || self.steps[at..cut].iter().any(|step| matches!(step, Step::Flush(name) if name == path))
    }

    /// A possible state after a cut; `chance` decides everything that is not guaranteed.
    fn remains(&self, cut: usize, mut chance: impl FnMut(usize) -> usize) -> Remains {
        let mut end = |folder: &Path| {
            let least = self.durable(cut, folder);
            least + chance(cut - least + 1)
        };
        let journal = if self.keeps_order { end(Path::new("")) } else { 0 };
        let mut ends: BTreeMap<&Path, usize> = BTreeMap::new();
        let mut remains = Remains::default();
        for (at, step) in self.steps[..cut].iter().enumerate() {
            let Some(folder) = Self::folder(step) else { continue };
            let end = if self.keeps_order { journal } else { *ends.entry(folder).or_insert_with(|| end(folder)) };
            remains.names.extend((at < end).then_some(at));
        }
        for at in (0..cut).filter(|at| matches!(self.steps[*at], Step::Write(..))) {
            let content = match self.is_written(at, cut, journal) {
                true => Content::Whole,
                false => [Content::Empty, Content::Half, Content::Whole][chance(3)],
            };
            remains.contents.insert(at, content);
        }
        remains
    }

    /// Applies the state to a copy of the repository from before the first step.
    fn leave(&self, remains: &Remains, from: &Path, to: &Path) {
        // Where the last file created under a name is now; under another name if the rename is not durable.
        let mut made: BTreeMap<&Path, bool> = BTreeMap::new();
        let mut written: BTreeMap<&Path, &[u8]> = BTreeMap::new();
        let place = |path: &Path| to.join(path.strip_prefix(from).unwrap());
        for (at, step) in self.steps.iter().enumerate() {
            let is_there = remains.names.binary_search(&at).is_ok();
            match step {
                Step::Create(path) => {
                    made.insert(path, is_there && fs::File::create(place(path)).is_ok());
                }
                Step::Write(path, bytes) => {
                    let content = match remains.contents.get(&at) {
                        Some(Content::Whole) => &bytes[..],
                        Some(Content::Half) => &bytes[..bytes.len() / 2],
                        Some(Content::Empty) => b"",
                        None => break, // the cut
                    };
                    written.insert(path, content);
                    if made.get(&**path) != Some(&false) {
                        let mut file = fs::File::options().write(true).truncate(true).open(place(path)).unwrap();
                        file.write_all(content).unwrap();
                    }
                }
                Step::MakeFolder(path) if is_there => drop(fs::create_dir(place(path))),
                // The folder itself may be missing.
                Step::Rename(old, new) if is_there => drop(fs::rename(place(old), place(new))),
                Step::Remove(path) if is_there => drop(fs::remove_file(place(path))),
                Step::Link(old, new) if is_there => match made.get(&**old) {
                    Some(false) => drop(fs::write(place(new), written.get(&**old).unwrap())),
                    _ => drop(fs::hard_link(place(old), place(new))),
                },
                _ => {}
            }
        }
        // `.keep` files are created read-only.
        for keep in files_in(&to.join(".git/objects/pack"), "keep") {
            let mut permissions = fs::metadata(&keep).unwrap().permissions();
            permissions.set_readonly(true);
            fs::set_permissions(&keep, permissions).unwrap();
        }
    }
}

/// Makes appends and records when each was acknowledged. The last one waits for another writer.
fn appends(world: &World, paths: &[&'static str]) -> (Vec<Step>, Vec<(usize, &'static str)>) {
    let repository = world.repository();
    let mut steps = Vec::new();
    let mut acknowledged = Vec::new();
    for (number, path) in paths.iter().enumerate() {
        let append = || repository.ledger().append(&[entry(path, "text")], "entry", &ada(), noon());
        let (answer, more) = match number + 1 == paths.len() {
            true => recorded(|| queue::after_waiting(world, append)),
            false => recorded(append),
        };
        answer.unwrap();
        steps.extend(more);
        acknowledged.push((steps.len(), *path));
    }
    (steps, acknowledged)
}

/// The contents of all files in a folder.
fn listing(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.path() {
            path if path.ends_with("hooks") => drop(path),
            path if path.is_dir() => files.extend(listing(&path).into_iter().map(|(below, bytes)| {
                let name = PathBuf::from(entry.file_name());
                (name.join(below), bytes)
            })),
            path => drop(files.insert(entry.file_name().into(), fs::read(path).unwrap())),
        }
    }
    files
}

/// Makes `held` appends first, so that the next one can trigger a fold.
fn cut_everywhere(keeps_order: bool, held: usize, paths: &[&'static str]) {
    with_order(keeps_order, || {
        let before = World::new();
        (0..held).for_each(|number| before.append(&format!("log/2026/03/01/{number}.md"), "text"));
        // Creating the lock file is not part of this test.
        fs::create_dir_all(before.root().join(".git/squad")).unwrap();
        fs::write(before.root().join(".git/squad/ledger.lock"), "").unwrap();
        let world = before.copied();
        let (steps, acknowledged) = appends(&world, paths);
        let history = History { steps: &steps, keeps_order };

        // Replaying all steps gives the same files as the appends, so no step is missing.
        let whole = Remains {
            names: (0..steps.len()).collect(),
            contents: (0..steps.len()).map(|at| (at, Content::Whole)).collect(),
        };
        let played = before.copied();
        history.leave(&whole, &world.root(), &played.root());
        let (real, played) = (listing(&world.root()), listing(&played.root()));
        let differing: Vec<_> =
            real.keys().chain(played.keys()).filter(|path| real.get(*path) != played.get(*path)).collect();
        assert!(differing.is_empty(), "{differing:?}");

        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut tried = BTreeSet::new();
        for cut in 0..=steps.len() {
            let acknowledged: Vec<_> =
                acknowledged.iter().filter(|(at, _)| *at <= cut).map(|(_, path)| *path).collect();
            for round in 0..rounds() {
                let chance = |bound: usize| match round {
                    0 => 0,
                    1 => bound - 1,
                    _ => {
                        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                        usize::try_from(seed >> 33).unwrap() % bound
                    }
                };
                let remains = history.remains(cut, chance);
                if !tried.insert((acknowledged.len(), remains.clone())) {
                    continue;
                }
                let after = before.copied();
                history.leave(&remains, &world.root(), &after.root());
                let what = format!("cut at {cut} of {} (round {round}), after {:?}", steps.len(), steps[..cut].last());
                assert_goes_on(&after, &acknowledged, &what);
            }
        }
        println!("{} states", tried.len());
        assert!(tried.len() > steps.len() / 2, "{} of {}", tried.len(), steps.len());
    });
}

/// The first append ever, one more on the same day, and one in a new folder.
const FIRST: [&str; 3] = ["log/2026/03/04/a.md", "log/2026/03/04/b.md", "decisions/2026/03/05/c.md"];

#[test]
fn a_power_cut_at_any_step_loses_nothing_where_order_is_kept() {
    cut_everywhere(true, 0, &FIRST);
}

#[test]
fn a_power_cut_at_any_step_loses_nothing_where_order_is_not_kept() {
    cut_everywhere(false, 0, &FIRST);
}

/// The tenth append folds, and removes the packs that the fifth folded.
#[test]
fn a_power_cut_in_a_fold_loses_nothing() {
    for keeps_order in [true, false] {
        cut_everywhere(keeps_order, 9, &["log/2026/03/04/a.md"]);
    }
}
