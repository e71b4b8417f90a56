//! Commands that are killed at each of their steps, and how the next command recovers.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::disk::{dying, recorded};
use super::*;
use crate::git::disk::Step;
use crate::{Clock, DamageLog, Env, Ids, Streams};

#[derive(Clone, Default)]
struct Said(Arc<Mutex<Vec<u8>>>);

impl Write for Said {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs squad in this thread, where its steps are recorded; returns exit code and output.
fn squad(world: &World, arguments: &[&str]) -> (u8, String) {
    static IDS: AtomicU64 = AtomicU64::new(1);
    let text = |text: &OsString| text.to_str().unwrap().to_owned();
    let said = Said::default();
    let env = Env {
        program: None,
        arguments: arguments.iter().map(Into::into).collect(),
        variables: world.environment.variables.iter().map(|(name, value)| (text(name), text(value))).collect(),
        directory: world.root(),
        clock: Clock::Stepping { start: noon(), looks: Arc::new(AtomicU64::new(IDS.load(Ordering::Relaxed))) },
        ids: Ids::Counting(Arc::new(AtomicU64::new(IDS.fetch_add(1000, Ordering::Relaxed)))),
        damage: DamageLog::default(),
        releases: Vec::new(),
        installed: Vec::new(),
        runtime: || tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build(),
        signals: false,
        threads: false,
    };
    let streams = Streams { out: Box::new(said.clone()), err: Box::new(said.clone()), ..Streams::silent() };
    let code = crate::run(env, streams);
    let said = String::from_utf8(said.0.lock().unwrap().clone()).unwrap();
    (code, said)
}

fn succeed(world: &World, arguments: &[&str]) -> String {
    let (code, said) = squad(world, arguments);
    assert_eq!(code, 0, "{arguments:?}: {said}");
    said
}

struct Story {
    arguments: &'static [&'static str],
    make: fn() -> World,
    /// A file that the command writes.
    file: &'static str,
    commits: usize,
}

const TEAM: &str =
    "| Name | Role | Status |\n|---|---|---|\n| Ada | Backend Dev | Active |\n| Bob | Tester | Active |\n";
const ROUTING: &str = "| Work Type | Route To |\n|---|---|\n| API | Ada |\n| Tests | Bob |\n";
const DECISIONS: &str = "# Decisions\n\n### 2026-01-02: Tar the hull\n\nBlack.\n\n### 2026-01-03: Ropes\n\nLater.\n";
const HISTORY: &str = "# Ada\n\n## Learnings\n\n- One.\n";

/// The user's work in progress of every kind, which must not change.
fn work(world: &World) {
    for name in ["staged.txt", "edited.txt", "stashed.txt"] {
        world.write(name, "before\n");
    }
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "files"]);
    world.write("stashed.txt", "stashed\n");
    world.git(&["stash", "-q"]);
    world.write("staged.txt", "staged\n");
    world.git(&["add", "staged.txt"]);
    world.write("staged.txt", "edited\n");
    world.write("edited.txt", "edited\n");
    world.write("untracked.txt", "untracked\n");
}

fn plain() -> World {
    let world = World::new();
    work(&world);
    world
}

fn team() -> World {
    let world = World::new();
    world.write(".squad/team.md", TEAM);
    world.write(".squad/routing.md", ROUTING);
    world.write(".squad/decisions.md", DECISIONS);
    world.write(".squad/agents/ada/history.md", HISTORY);
    work(&world);
    world
}

fn undecided() -> World {
    let world = team();
    fs::write(world.root().join(".git/index.lock"), "").unwrap();
    succeed(&world, &["decisions", "add", "Two masts"]);
    fs::remove_file(world.root().join(".git/index.lock")).unwrap();
    world
}

fn learned() -> World {
    let world = team();
    let remember = |agent: &str| {
        let script = format!(
            "[[turn]]\nagent = \"{agent}\"\nsteps = [{{ tool = \"squad_remember\", args = {{ text = \"Ports are even.\" }} }}, {{ say = \"Done.\" }}]\n"
        );
        fs::write(world.folder.path().join("script.toml"), script).unwrap();
        let script = world.folder.path().join("script.toml").display().to_string();
        succeed(&world, &["orchestrate", "--script", &script, "--agent", agent, "learn"]);
    };
    ["ada", "bob"].iter().for_each(|agent| remember(agent));
    world
}

fn rescued() -> World {
    let world = team();
    world.write("again.txt", "kept\n");
    world.write("gone.txt", "kept\n");
    succeed(&world, &["decisions", "import"]);
    fs::remove_file(world.root().join("gone.txt")).unwrap();
    world.write("again.txt", "another\n");
    world
}

/// A team in the old folder, with an untracked file.
fn old_place() -> World {
    let world = World::new();
    world.write(".ai-team/team.md", TEAM);
    world.write(".ai-team/routing.md", ROUTING);
    world.write(".ai-team/agents/ada/history.md", HISTORY);
    world.write(".gitignore", ".ai-team/decisions/inbox/\n.ai-team/log/\n");
    work(&world);
    world.write(".ai-team/log/today.md", "ignored\n");
    world.write(".ai-team/agents/ada/draft.md", "untracked\n");
    world
}

const STORIES: [Story; 7] = [
    Story { arguments: &["adopt"], make: old_place, file: ".squad/team.md", commits: 1 },
    Story { arguments: &["init"], make: plain, file: ".squad/team.md", commits: 1 },
    Story { arguments: &["init", "--no-commit"], make: plain, file: ".squad/team.md", commits: 0 },
    Story { arguments: &["history", "land"], make: learned, file: ".squad/agents/ada/history.md", commits: 1 },
    Story { arguments: &["decisions", "import"], make: team, file: ".squad/decisions.md", commits: 1 },
    Story { arguments: &["decisions", "land"], make: undecided, file: ".squad/decisions/2026", commits: 1 },
    Story { arguments: &["rescue", "restore", "RESCUE"], make: rescued, file: "again.txt", commits: 0 },
];

/// The repository's state after a command, without times.
fn outcome(world: &World) -> Vec<String> {
    vec![
        world.git(&["status", "--porcelain"]),
        world.git(&["rev-list", "--count", "HEAD"]),
        world.git(&["ls-tree", "-r", "HEAD"]),
        world.git(&["ls-files", "--stage"]),
        world.git(&["diff"]),
        world.git(&["stash", "list", "--format=%H"]),
    ]
}

/// Asserts that no temporary file of ours is left, and that the repository is sound.
fn assert_tidy(world: &World, what: &str) {
    let mut folders = vec![world.root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_ours = name.starts_with(".squad-") || name == "index.lock" || name == "main.lock";
            let is_intent = folder.ends_with(".git/squad")
                && ["intent", "index-", "file-"]
                    .iter()
                    .any(|ours| name == *ours || ours.ends_with('-') && name.starts_with(ours));
            assert!(!is_ours && !is_intent, "{what}: {name} is left in {}", folder.display());
            if entry.path().is_dir() && !name.eq("objects") {
                folders.push(entry.path());
            }
        }
    }
    let sound = world.try_git(&["fsck", "--full", "--strict"]);
    assert!(sound.status.success(), "{what}: {}", String::from_utf8_lossy(&sound.stderr));
}

/// The steps at which a kill can leave something unfinished: those that change something, after the intent.
fn deaths(steps: &[Step]) -> Vec<usize> {
    let is_intent = |step: &Step| matches!(step, Step::Rename(_, to) if to.ends_with("squad/intent"));
    let first = steps.iter().position(is_intent).unwrap();
    let changes = |step: &Step| match step {
        Step::Git(call) => {
            ["update-index", "update-ref", "add"].iter().any(|word| call.starts_with(&format!("git {word}")))
        }
        Step::Flush(_) | Step::FlushFolder(_) | Step::Reach(_) => false,
        _ => true,
    };
    (first..=steps.len()).filter(|at| steps.get(*at).is_none_or(changes)).collect()
}

impl Story {
    fn arguments<'a>(&'a self, rescue: &'a str) -> Vec<&'a str> {
        self.arguments.iter().map(|word| if *word == "RESCUE" { rescue } else { word }).collect()
    }
}

/// Runs a story and kills it at each step; at every third, unless `SQUAD_TEST_ROUNDS` is set.
fn stop_everywhere(story: &Story, mut then: impl FnMut(&World, usize, &str, &[&str], &[String])) {
    let template = (story.make)();
    let rescues = template.git(&["for-each-ref", "--format=%(refname:lstrip=3)", "refs/squad/rescue"]);
    let arguments = story.arguments(rescues.trim());
    let whole = template.copied();
    let (said, steps) = recorded(|| succeed(&whole, &arguments));
    let expected = outcome(&whole);
    let deaths = deaths(&steps);
    assert!(deaths.len() > 5, "{said}");
    let each = if std::env::var_os("SQUAD_TEST_ROUNDS").is_some() { 1 } else { 3 };
    for (round, at) in deaths.into_iter().enumerate().step_by(each) {
        let world = template.copied();
        dying(at, || squad(&world, &arguments));
        let what = format!("{arguments:?} at {at} of {}: {:?}", steps.len(), steps.get(at));
        then(&world, round, &what, &arguments, &expected);
        assert_tidy(&world, &what);
    }
}

#[test]
fn a_command_that_dies_at_any_step_is_finished_by_the_next() {
    for story in &STORIES {
        stop_everywhere(story, |world, _, what, arguments, expected| {
            let is_begun = world.root().join(".git/squad/intent").exists();
            let (_, named) = squad(world, &["status"]);
            assert_eq!(named.contains("was interrupted"), is_begun, "{what}: {named}");
            let is_named = named.contains(&format!("warning: `squad {}", story.arguments[0]));
            assert_eq!(is_named, is_begun, "{what}: {named}");
            // Another command that writes to the branch, if there is a team.
            let (_, said) = squad(world, &["decisions", "land"]);
            assert!(!is_begun || said.contains("Finished `squad "), "{what}: {said}");
            succeed(world, arguments);
            assert_eq!(outcome(world), expected, "{what}");
        });
    }
}

/// A run that changed, made and removed files, and the user's edits since.
fn changed() -> World {
    let world = team();
    world.write("dir/gone.txt", "gone\n");
    world.write("lines.txt", "one\ntwo\nthree\nfour\nfive\n");
    world.write("overlap.txt", "one\n");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "more"]);
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ run = \"sed -i s/one/ONE/ lines.txt overlap.txt; rm -r dir; \
                  mkdir made; echo new > made/new.txt; echo more > dir\" }, { say = \"Done.\" }]\n";
    fs::write(world.folder.path().join("script.toml"), script).unwrap();
    let script = world.folder.path().join("script.toml").display().to_string();
    let arguments = ["--permissions", "allow", "--no-commit", "--agent", "ada", "change"];
    succeed(&world, &[&["orchestrate", "--script", &script], &arguments[..]].concat());
    world.write("lines.txt", "ONE\ntwo\nthree\nfour\nFIVE\n");
    world.write("overlap.txt", "uno\n");
    world
}

#[test]
fn an_undo_that_dies_is_finished_and_recorded_once_by_the_next_command() {
    let undone = |world: &World| {
        let listed = world.git(&["ls-tree", "-r", "--name-only", "refs/squad/log"]);
        listed.lines().filter(|path| path.ends_with("run.undone.md")).count()
    };
    let files = |world: &World| [world.read("lines.txt"), world.read("dir/gone.txt"), world.read("overlap.txt.run")];
    let story = Story { arguments: &["undo", "2026", "--yes"], make: changed, file: "lines.txt", commits: 0 };
    stop_everywhere(&story, |world, round, what, arguments, expected| {
        let is_begun = world.root().join(".git/squad/intent").exists();
        let (_, named) = squad(world, &["status"]);
        assert_eq!(named.contains("`squad undo 2026"), is_begun, "{what}: {named}");
        // The same command, or another that writes to the branch.
        match is_begun && round % 2 == 0 || undone(world) == 0 && !is_begun {
            true => drop(succeed(world, arguments)),
            false => drop(squad(world, &["decisions", "land"])),
        }
        // What was left is tried again, and nothing else is done.
        let (code, said) = squad(world, arguments);
        assert!(code == 0 && said.contains("overlap.txt") && !said.contains("lines.txt"), "{what}: {said}");
        assert_eq!(outcome(world), expected, "{what}");
        let wanted = ["one\ntwo\nthree\nfour\nFIVE\n", "gone\n", "ONE\n"].map(str::to_owned);
        assert_eq!((files(world), undone(world)), (wanted, 1), "{what}");
        assert!(!world.root().join("made").exists(), "{what}");
    });
}

/// A run whose agents worked in clones, and the user's work of every kind since.
fn cloned() -> World {
    let world = team();
    world.write("dir/gone.txt", "gone\n");
    world.write("folder/deep/one.txt", "1\n");
    world.write("folder/two.txt", "2\n");
    world.write("file", "file\n");
    world.write("lines.txt", "one\ntwo\nthree\n");
    world.write("shelf/one.txt", "one\n");
    #[cfg(unix)]
    std::os::unix::fs::symlink("lines.txt", world.root().join("sign")).unwrap();
    #[cfg(not(unix))]
    world.write("sign", "lines.txt");
    let more = ["dir", "folder", "file", "lines.txt", "shelf", "sign"];
    world.git(&[&["add"], &more[..]].concat());
    world.git(&[&["commit", "-qm", "more", "--only", "--"], &more[..]].concat());
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ run = \"rm -r dir; sed -i s/one/ONE/ lines.txt; \
                  rm -r folder file; echo file >folder; mkdir file; echo in >file/in.txt; rm -r shelf; \
                  ln -s made shelf; ln -sfn file sign\" }, \
                  { say = \"Done.\" }]\n[[turn]]\nagent = \"bob\"\nsteps = [{ write = \"made/new.txt\", \
                  text = \"new\\n\" }, { say = \"Done.\" }]\n";
    fs::write(world.folder.path().join("script.toml"), script).unwrap();
    let script = world.folder.path().join("script.toml").display().to_string();
    let arguments = ["--permissions", "allow", "--isolation", "clone", "--no-commit", "--agent", "ada,bob", "change"];
    succeed(&world, &[&["orchestrate", "--script", &script], &arguments[..]].concat());
    world
}

#[test]
fn a_merge_that_dies_is_finished_or_as_before_and_recorded_once() {
    let merged = |world: &World| {
        let listed = world.git(&["ls-tree", "-r", "--name-only", "refs/squad/log"]);
        listed.lines().filter(|path| path.ends_with("run.merged.md")).count()
    };
    let story = Story { arguments: &["merge", "2026", "--yes"], make: cloned, file: "lines.txt", commits: 3 };
    let mut ends = [0, 0];
    stop_everywhere(&story, |world, round, what, arguments, expected| {
        let is_begun = world.root().join(".git/squad/intent").exists();
        let (_, named) = squad(world, &["status"]);
        assert_eq!(named.contains("`squad merge 2026"), is_begun, "{what}: {named}");
        if is_begun && round % 2 == 0 {
            let (_, said) = squad(world, &["decisions", "land"]);
            let is_finished = said.contains("Finished `squad merge");
            ends[usize::from(is_finished)] += 1;
            // As before, but for what squad keeps.
            let is_before =
                world.git(&["log", "--format=%s", "-1"]) == "more\n" && world.read("lines.txt").starts_with("one");
            assert_ne!(is_before, is_finished, "{what}: {said}");
            assert_eq!(world.root().join("dir/gone.txt").exists(), is_before, "{what}");
            let places = ["folder/deep/one.txt", "folder/two.txt", "file"];
            let is_file = places.map(|place| world.root().join(place).is_file());
            assert_eq!(is_file, [is_before; 3], "{what}");
            let is_link = |place: &str| world.root().join(place).is_symlink();
            assert_eq!(is_link("shelf"), is_finished, "{what}");
            assert_eq!(world.root().join("sign/in.txt").exists(), is_finished, "{what}");
            assert!(!said.contains("you changed"), "{what}: {said}");
        }
        let (_, said) = squad(world, arguments);
        assert!(!said.contains("you changed"), "{what}: {said}");
        let (code, said) = squad(world, arguments);
        assert!(code == 2 && said.contains("is merged already"), "{what}: {said}");
        assert_eq!((outcome(world), merged(world)), (expected.to_vec(), 1), "{what}");
        assert!(!world.root().join("dir/gone.txt").exists() && world.read("made/new.txt") == "new\n", "{what}");
        assert_eq!([world.read("folder"), world.read("file/in.txt")], ["file\n", "in\n"], "{what}");
    });
    assert!(ends.iter().all(|count| *count > 0), "{ends:?}");
}

/// Once the import is finished, the named file is gone; naming it again is not an error.
#[test]
fn an_import_of_one_file_that_dies_is_finished_by_the_same_command() {
    const NOTE: &str = ".squad/decisions/inbox/note.md";
    let make = || {
        let world = team();
        world.write(NOTE, "### 2026-02-02: Noted\n\nOnce.\n");
        world.git(&["add", NOTE]);
        world.git(&["commit", "-qm", "note", "--only", "--", NOTE]);
        world
    };
    let story = Story { arguments: &["decisions", "import", NOTE], make, file: NOTE, commits: 1 };
    stop_everywhere(&story, |world, _, what, arguments, expected| {
        if world.root().join(".git/squad/intent").exists() {
            succeed(world, arguments);
            assert_eq!(outcome(world), expected, "{what}");
        }
    });
}

/// Something the user does between the kill and the next command.
struct Deed {
    name: &'static str,
    act: fn(&World, &str),
    /// Reads what must stay the same.
    keeps: fn(&World, &str) -> String,
}

fn nothing(_: &World, _: &str) -> String {
    String::new()
}

const DEEDS: [Deed; 7] = [
    Deed { name: "edits", act: |world, file| world.write(file, "mine\n"), keeps: |world, file| world.read(file) },
    Deed {
        name: "stages",
        act: |world, file| {
            world.write(file, "mine\n");
            world.git(&["add", "-f", file]);
            world.write(file, "mine again\n");
        },
        keeps: |world, file| world.git(&["show", &format!(":{file}")]) + &world.read(file),
    },
    Deed {
        name: "commits",
        act: |world, file| {
            world.write(file, "mine\n");
            world.git(&["add", "-A", "."]);
            world.git(&["commit", "-qm", "mine"]);
        },
        // The next command may add to the committed file.
        keeps: |world, file| world.read(file).lines().next().unwrap().to_owned(),
    },
    Deed {
        name: "commits everything",
        act: |world, _| {
            world.git(&["add", "-A", "."]);
            world.git(&["commit", "-qm", "all"]);
        },
        keeps: |world, _| world.git(&["log", "-1", "--grep=^all$", "--format=%T %H"]),
    },
    Deed {
        name: "stashes",
        act: |world, _| drop(world.git(&["stash", "-qu"])),
        keeps: |world, _| world.git(&["stash", "list", "--format=%H"]),
    },
    Deed { name: "switches", act: |world, _| drop(world.git(&["switch", "-qc", "other"])), keeps: nothing },
    Deed { name: "detaches", act: |world, _| drop(world.git(&["switch", "-q", "--detach"])), keeps: nothing },
];

#[test]
fn what_the_user_does_before_the_next_command_stays() {
    for story in &STORIES {
        stop_everywhere(story, |world, round, what, arguments, _| {
            let deed = &DEEDS[round % DEEDS.len()];
            // The name of a decision's file is not known beforehand.
            let files = world.git(&["ls-files", "--cached", "--others", story.file]);
            let file = files.lines().find(|_| story.file.ends_with("/2026")).unwrap_or(story.file);
            let what = format!("{} {file}: {what}", deed.name);
            let before = world.git(&["rev-list", "--count", "HEAD"]).trim().parse::<usize>().unwrap();
            // A lock left by the kill: the next command removes it, but it would block the user's git.
            if file.ends_with("/2026") || world.root().join(".git/index.lock").exists() {
                succeed(world, arguments);
                return;
            }
            (deed.act)(world, file);
            let theirs = world.git(&["rev-list", "--count", "HEAD"]).trim().parse::<usize>().unwrap() - before;
            let kept = (deed.keeps)(world, file);
            // Restoring again would overwrite again.
            let next = if arguments[0] == "rescue" { &["decisions", "land"] } else { arguments };
            let (_, said) = squad(world, next);
            assert_eq!((deed.keeps)(world, file), kept, "{what}: {said}");
            let count = world.git(&["rev-list", "--count", "HEAD"]).trim().parse::<usize>().unwrap();
            assert!(count <= before + theirs + story.commits, "{what}: {said}");
            // After a switch, only the user can continue, but nothing of ours is left in the work tree.
            if deed.name == "switches" || deed.name == "detaches" {
                let left = world.git(&["status", "--porcelain", "--untracked-files=all", ".squad"]);
                // The user's own file, which is still untracked.
                let left = left.replace("?? .squad/agents/ada/draft.md\n", "");
                assert!(left.is_empty() || story.commits == 0 || story.arguments[0] == "init", "{what}: {left}{said}");
            }
        });
    }
}
