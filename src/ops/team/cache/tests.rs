use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::*;

/// The result of reading a team.
type Reading = (Team, Vec<Decision>, Vec<Problem>, Vec<Problem>, BTreeMap<String, String>);

struct Place {
    folder: TempDir,
    team: TeamFolder,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a path").join("project");
        let place = Self { team: TeamFolder { path: root.join(".squad"), root, name: ".squad" }, folder };
        place.write(
            "team.md",
            "| Name | Role | Status |\n|---|---|---|\n| Ada | Dev | Active |\n| Bob | Tester | ? |\n",
        );
        place.write("routing.md", "| Work Type | Route To |\n|---|---|\n| API | Ada |\n| Nothing | Nobody |\n");
        place.write("agents/ada/charter.md", "# Ada — Dev\n\n## Model\n\n- Preferred: m1\n\n## Tools\n\n- view\n");
        place.write("agents/ada/history.md", "## Learnings\n\n- one\n");
        place.write("decisions.md", "### 2026-01-03: First\n**By:** Ann\n\nBecause.\n\n## Other: x\n");
        place.write("decisions/2026/01/04-b-00000000000b.md", "---\nid: 00000000000b\ntags: [x]\n---\n# B\n\ntext\n");
        place.write(
            "knowledge/2026/01/04-n-00000000000e.md",
            "---\nid: 00000000000e\nkind: pitfall\n---\n# N\n\ntext\n",
        );
        place.write("config.toml", "[models]\ndefault = \"m2\"\n");
        place
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.team.path.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn local(&self) -> PathBuf {
        self.folder.path().join("local")
    }

    fn cache(&self) -> Cache {
        Cache { cache_folder: CacheFolder::new(self.local().join("cache"), std::env::current_exe().ok().as_deref()) }
    }

    fn read(&self) -> Reading {
        let cache = self.cache();
        let cached = cache.look_up(&self.team);
        let (found, config) = (cached.problems().to_vec(), cached.config().texts.clone());
        let (team, notes, problems) = cache.team(cached);
        let notes = notes.map_or(Some(Vec::new()), |notes| notes.all::<OwnNote>());
        // A note that is damaged is said, and the next command makes the index again.
        let Some(notes) = notes else { return self.read() };
        let notes = notes.into_iter().map(|(note, source)| Decision { source, ..note }).collect();
        (team, notes, problems, found, config)
    }

    /// The correct result, read without the cache.
    fn uncached(&self) -> Reading {
        let (files, found) = store::read(&self.team);
        let (team, notes, problems) = parse::team_and_notes(&files);
        (team, notes, problems, found, files.configuration().texts)
    }

    fn cached(&self, ending: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.local().join("cache")).expect("a cache").flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == ending));
        paths.sort();
        paths
    }

    fn index(&self) -> Option<Index> {
        self.cache().cache_folder.read(&index_name(&self.team), INDEX)
    }

    /// Pretends that the fingerprint was taken later, so that the test's new files are old enough to be trusted.
    fn age(&self) {
        let mut index = self.index().expect("an index");
        index.fingerprint.as_mut().expect("a fingerprint").postpone(Duration::from_secs(10));
        assert!(self.cache().cache_folder.write(&index_name(&self.team), INDEX, &index));
    }

    fn is_remembered(&self) -> bool {
        self.cache().look_up(&self.team).files.is_none()
    }
}

#[test]
fn the_cached_team_equals_the_team_on_disk() {
    let place = Place::new();
    let expected = place.uncached();
    let (team, notes, problems, ..) = &expected;
    assert!(team.decisions.iter().all(|decision| decision.source.is_some()) && !problems.is_empty());
    assert!(notes.len() == 1 && notes[0].source.is_some(), "{notes:?}");
    assert_eq!(place.read(), expected);
    assert!(!place.is_remembered(), "the files are too new to be trusted");
    assert_eq!(place.read(), expected);
    place.age();
    assert!(place.is_remembered());
    assert_eq!(place.read(), expected);
}

#[test]
fn every_change_is_noticed() {
    type Change = fn(&Place);
    let changes: &[(&str, Change)] = &[
        ("a file's text", |place| place.write("agents/ada/history.md", "## Learnings\n\n- two\n")),
        // Windows tells no time of change that a program could not set.
        #[cfg(unix)]
        ("a file's text, of the same length and time", |place| {
            let path = place.team.path.join("routing.md");
            let modified = fs::metadata(&path).and_then(|metadata| metadata.modified()).expect("a time");
            place.write("routing.md", "| Work Type | Route To |\n|---|---|\n| API | Bob |\n| Nothing | Nobody |\n");
            fs::File::options().write(true).open(&path).and_then(|file| file.set_modified(modified)).expect("a time");
        }),
        ("a new file", |place| {
            place.write("decisions/2026/01/05-c-00000000000c.md", "---\nid: 00000000000c\n---\n# C\n")
        }),
        ("a new folder", |place| place.write("agents/bob/charter.md", "# Bob — Tester\n")),
        ("a file gone", |place| fs::remove_file(place.team.path.join("config.toml")).expect("it is there")),
        ("a file renamed", |place| {
            let path = place.team.path.join("decisions/2026/01");
            fs::rename(path.join("04-b-00000000000b.md"), path.join("04-b.txt")).expect("it is there");
        }),
        ("the old folder beside it", |place| fs::create_dir(place.team.root.join(".ai-team")).expect("a folder")),
        ("another file in its place", |place| {
            let other = place.team.root.join("other.md");
            fs::write(&other, "| Name | Role |\n|---|---|\n| Eve | Dev |\n").expect("a file");
            fs::rename(other, place.team.path.join("team.md")).expect("it is there");
        }),
    ];
    for (what, change) in changes {
        let place = Place::new();
        place.read();
        place.age();
        assert!(place.is_remembered(), "{what}");
        let before = place.uncached();
        change(&place);
        assert_ne!(place.uncached(), before, "{what}");
        assert_eq!(place.read(), place.uncached(), "{what}");
    }
}

#[test]
fn a_change_just_after_the_fingerprint_is_noticed() {
    // The size is the same, and on a coarse clock the time too: the file is too new to be trusted.
    let place = Place::new();
    place.read();
    let mut index = place.index().expect("an index");
    place.write("agents/ada/history.md", "## Learnings\n\n- two\n");
    let folders = Fingerprint::begin(&place.local().join("cache"), &place.team).expect("folders");
    let fingerprint = folders.with_files(&place.team, &store::read(&place.team).0).expect("a fingerprint");
    assert!(!fingerprint.matches(&place.team));
    index.fingerprint = Some(fingerprint);
    assert_eq!(place.read(), place.uncached());
}

#[test]
fn content_that_was_parsed_before_is_not_parsed_again() {
    let place = Place::new();
    let first = place.read();
    place.write("team.md", "");
    place.read();
    assert_eq!(place.cached("team").len(), 2);
    let keys = place.cached("team");
    place.write("team.md", "| Name | Role | Status |\n|---|---|---|\n| Ada | Dev | Active |\n| Bob | Tester | ? |\n");
    assert_eq!((place.read(), place.cached("team")), (first, keys));
}

/// More files than are looked at in one go, in two folders × which of them changes or goes.
#[test]
fn a_change_of_any_of_many_files_is_noticed() {
    let place = Place::new();
    let path = |number: usize| format!("knowledge/2026/{:02}/05-n-{number:012x}.md", 2 + number / 1_200);
    let write =
        |number: usize, text: &str| place.write(&path(number), &format!("---\nid: {number:012x}\n---\n# N\n{text}\n"));
    (0..2_300).for_each(|number| write(number, "text"));
    let settle = || {
        place.cache().look_up(&place.team);
        place.age();
        assert!(place.is_remembered());
    };
    settle();
    for number in [0, 999, 1_000, 1_199, 1_200, 2_299] {
        write(number, "longer text");
        assert!(!place.is_remembered(), "{number} has changed");
        settle();
    }
    for number in [0, 1_199, 2_299] {
        fs::remove_file(place.team.path.join(path(number))).expect("it is there");
        assert!(!place.is_remembered(), "{number} is gone");
        settle();
    }
    assert_eq!(place.read(), place.uncached());
}

#[test]
fn damaged_cache_files_are_made_again() {
    let place = Place::new();
    let expected = place.uncached();
    for ending in ["index", "team", "notes"] {
        place.read();
        let path = place.cached(ending)[0].clone();
        let whole = fs::read(&path).expect("a file");
        let step = (whole.len() / 150).max(1);
        for at in (0..whole.len()).step_by(step) {
            let mut broken = whole.clone();
            broken[at] ^= 0x20;
            fs::write(&path, &broken).expect("a file");
            assert_eq!(place.read(), expected, "{ending}: byte {at}");
            fs::write(&path, &whole[..at]).expect("a file");
            assert_eq!(place.read(), expected, "{ending}: cut at {at}");
        }
        fs::remove_file(&path).expect("it is there");
        assert_eq!(place.read(), expected, "{ending}: gone");
    }
}

#[test]
fn another_build_does_not_use_the_cache() {
    let place = Place::new();
    let other = place.folder.path().join("another-squad");
    fs::write(&other, "another program").expect("a file");
    let cache = Cache { cache_folder: CacheFolder::new(place.local().join("cache"), Some(&other)) };
    place.read();
    place.age();
    assert!(place.is_remembered());
    assert!(cache.look_up(&place.team).files.is_some());
    let nobody = Cache { cache_folder: CacheFolder::new(place.local().join("cache"), None) };
    assert!(nobody.look_up(&place.team).files.is_some());
    let (team, notes, problems) = nobody.team(nobody.look_up(&place.team));
    assert_eq!((team, problems), (place.uncached().0, place.uncached().2));
    assert_eq!(notes.map(|notes| notes.len()), Some(1));
}

#[test]
fn a_cache_that_cannot_be_written_is_ignored() {
    let place = Place::new();
    fs::write(place.local(), "in the way").expect("a file");
    assert_eq!(place.read(), place.uncached());
}

#[cfg(unix)]
#[test]
fn a_team_with_links_is_read_every_time() {
    let place = Place::new();
    std::os::unix::fs::symlink("charter.md", place.team.path.join("agents/ada/link.md")).expect("a link");
    assert_eq!(place.read(), place.uncached());
    assert!(!place.local().join("cache").read_dir().expect("a folder").flatten().any(|entry| entry.path().is_file()));
}

#[test]
fn only_the_newest_values_are_kept() {
    let place = Place::new();
    for number in 0..MAX_VALUES + 3 {
        place.write("routing.md", &format!("{number}"));
        place.read();
    }
    let cache = place.local().join("cache");
    let old = fs::File::create(cache.join("new-left")).expect("a file");
    old.set_modified(SystemTime::now() - Duration::from_secs(100_000)).expect("a time");
    // Windows removes no open file.
    drop(old);
    place.write("routing.md", "last");
    place.read();
    assert_eq!(place.cached("team").len(), MAX_VALUES);
    assert!(!cache.join("new-left").exists());
}

#[test]
fn concurrent_readers_agree() {
    let place = Place::new();
    let expected = place.uncached();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for round in 0..20 {
                    if round % 5 == 0 {
                        let _ = fs::remove_dir_all(place.local().join("cache"));
                    }
                    assert_eq!(place.read(), expected);
                }
            });
        }
    });
}

#[test]
fn a_look_holds_until_something_changes() {
    let place = Place::new();
    let cache = place.local().join("cache");
    fs::create_dir_all(&cache).expect("a folder");
    let settings = place.folder.path().join("config.toml");
    let look =
        || FileStamps::take(&cache, std::time::Instant::now(), &[&place.team.path], std::slice::from_ref(&settings));
    assert!(look().is_none(), "it was written a moment ago");
    std::thread::sleep(Duration::from_millis(2_100));
    let changes: [&dyn Fn(); 5] = [
        &|| place.write("agents/ada/charter.md", "# Ada — Dev\n\n## Model\n\n- Preferred: m2\n\n## Tools\n\n- view\n"),
        &|| place.write("roles/new.md", "You are new."),
        &|| fs::write(&settings, "").expect("a file"),
        &|| fs::remove_file(place.team.path.join("decisions.md")).expect("a file"),
        &|| fs::rename(place.team.path.join("agents/ada"), place.team.path.join("agents/eve")).expect("a folder"),
    ];
    let before = look().expect("it is old enough");
    assert!(before.holds());
    for change in changes {
        change();
        assert!(!before.holds());
        assert!(look().is_none(), "it was changed a moment ago");
        std::thread::sleep(Duration::from_millis(2_100));
        assert!(look().expect("it is old enough").holds());
    }
}
