//! A user who works in a repository while squad does: commits, branches, rebases, stashes, and git's upkeep. What
//! branch, index, work tree and stashes must hold is known at every moment.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::{Dice, TestRepo};

/// Contents by path.
type Files = BTreeMap<String, String>;

/// A file of the user's that squad is asked to restore: it may change.
pub(super) const KEPT: &str = "u/kept.txt";

/// git's upkeep. It changes nothing that anybody sees.
const UPKEEP: [&[&str]; 6] = [
    &["gc", "--prune=now", "-q"],
    &["gc", "--prune=now", "-q"],
    &["prune"],
    &["repack", "-adq"],
    &["pack-refs", "--all", "--prune"],
    &["gc", "-q"],
];

/// How long something of squad's may be in the way of the user's git while squad lives, and after it has died.
const PATIENCE: Duration = Duration::from_secs(20);
const MOURNING: Duration = Duration::from_secs(2);

pub(super) struct User {
    dice: Dice,
    number: usize,
    head: Files,
    index: Files,
    work: Files,
    stashes: Vec<Stash>,
    /// Subjects of commits.
    commits: Vec<String>,
    pub(super) story: Vec<String>,
    pub(super) counts: Counts,
}

/// What is put aside: the content that each file had, `None` where it was not there.
struct Stash {
    id: String,
    index: BTreeMap<String, Option<String>>,
    work: BTreeMap<String, Option<String>>,
}

#[derive(Default)]
pub(super) struct Counts {
    pub(super) deeds: usize,
    pub(super) upkeep: usize,
    /// Commits, merges and stashes that git itself made wrong, since it had looked at index and HEAD before squad's commit
    /// and wrote after it. Two git processes do the same to each other.
    pub(super) races: usize,
    /// Stashes that held a file of squad's too, which it was just landing.
    pub(super) stashes: usize,
    /// Locks that a dead squad had left and that the user removed.
    pub(super) locks: Vec<String>,
    /// What git's upkeep said that failed at first.
    pub(super) failures: Vec<String>,
}

impl User {
    pub(super) fn new(repo: &TestRepo, seed: u64) -> Self {
        let mut user = Self {
            dice: Dice(seed),
            number: 0,
            head: Files::new(),
            index: Files::new(),
            work: Files::new(),
            stashes: Vec::new(),
            commits: Vec::new(),
            story: Vec::new(),
            counts: Counts::default(),
        };
        let is_over = AtomicBool::new(true);
        let mut at = Desk { user: &mut user, repo, is_over: &is_over };
        for number in 0..6 {
            at.write(&format!("u/{number}.txt"), "before\n");
        }
        at.add("u");
        at.commit(None);
        at.write(KEPT, "kept\n");
        at.write("u/0.txt", "edited\n");
        at.write("u/1.txt", "staged\n");
        at.add("u/1.txt");
        at.write("u/1.txt", "staged and edited\n");
        at.write("u/new.txt", "new and staged\n");
        at.add("u/new.txt");
        at.write("u/untracked.txt", "untracked\n");
        user
    }

    /// Does a few things. Until `is_over` something of squad's may be in the way.
    pub(super) fn act(&mut self, repo: &TestRepo, is_over: &AtomicBool, with_upkeep: bool) {
        for _ in 0..1 + self.dice.below(3) {
            let pause = self.dice.below(40);
            std::thread::sleep(Duration::from_millis(pause as u64));
            let kind = self.dice.below(if with_upkeep { 10 } else { 7 });
            let mut at = Desk { user: self, repo, is_over };
            match kind {
                0 | 1 => at.commit_something(),
                2 => at.stage_something(),
                3 => at.edit_something(),
                4 => at.stash(),
                5 => at.pop(),
                6 => at.work_on_a_topic(),
                _ => at.keep_up(),
            }
            self.counts.deeds += 1;
        }
    }

    /// Subjects of the commits that were made.
    pub(super) fn commits(&self) -> &[String] {
        &self.commits
    }

    /// What differs from what the user has done; nothing should.
    pub(super) fn differences(&self, repo: &TestRepo) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut compare = |what: &str, wanted: &dyn Fn(&str) -> Option<String>, found: &Files| {
            let paths = self.head.keys().chain(self.index.keys()).chain(self.work.keys()).chain(found.keys());
            for path in paths.collect::<std::collections::BTreeSet<_>>() {
                if path != KEPT && wanted(path) != found.get(path).cloned() {
                    wrong.push(format!("{what} {path}: {:?}, not {:?}", found.get(path), wanted(path)));
                }
            }
        };
        let objects = |listed: String| -> Files {
            let lines = listed.lines().filter_map(|line| line.split_once('\t'));
            lines.filter_map(|(facts, path)| Some((path.to_owned(), facts.split(' ').nth(1)?.to_owned()))).collect()
        };
        let id = |files: &Files, path: &str| files.get(path).map(|content| blob(content));
        compare("index", &|path| id(&self.index, path), &objects(repo.git(&["ls-files", "-s", "--", "u"])));
        let tree = repo.git(&["ls-tree", "-r", "--format=x %(objectname)%x09%(path)", "HEAD", "--", "u"]);
        compare("HEAD", &|path| id(&self.head, path), &objects(tree));
        let files = fs::read_dir(repo.root().join("u")).expect("a folder").flatten();
        let files = files.map(|file| file.file_name().to_string_lossy().into_owned());
        let files = files.map(|name| (format!("u/{name}"), repo.read(&format!("u/{name}")))).collect();
        compare("work tree", &|path| self.work.get(path).cloned(), &files);
        let stashes = repo.git(&["stash", "list", "--format=%H"]);
        let stashes: Vec<&str> = stashes.lines().rev().collect();
        if stashes != self.stashes.iter().map(|stash| &stash.id).collect::<Vec<_>>() {
            wrong.push(format!("stashes: {stashes:?}"));
        }
        if repo.git(&["symbolic-ref", "HEAD"]) != "refs/heads/main\n" {
            wrong.push("another branch is checked out".to_owned());
        }
        wrong
    }
}

/// The id that git gives to these bytes.
fn blob(content: &str) -> String {
    let (hash, kind) = (gix::hash::Kind::Sha1, gix::objs::Kind::Blob);
    gix::objs::compute_hash(hash, kind, content.as_bytes()).expect("no collision").to_string()
}

/// The user at work.
struct Desk<'a> {
    user: &'a mut User,
    repo: &'a TestRepo,
    is_over: &'a AtomicBool,
}

impl Desk<'_> {
    fn write(&mut self, path: &str, content: &str) {
        self.repo.write(path, content);
        self.user.work.insert(path.to_owned(), content.to_owned());
    }

    /// What git prints, once nobody is in its way any more.
    fn git(&mut self, arguments: &[&str]) -> Result<String, String> {
        let (begun, mut dead_since) = (Instant::now(), None);
        loop {
            let at = now();
            let done = self.repo.command("git", &self.repo.root()).args(arguments).output().expect("git runs");
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            self.user.story.push(format!(
                "{at}-{} git {}: {} {}",
                now(),
                arguments.join(" "),
                done.status,
                said.trim()
            ));
            if done.status.success() {
                return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
            }
            let is_merge_torn = said.contains("update_ref failed") && arguments[0] == "merge";
            if !is_in_the_way(&said) || is_merge_torn || begun.elapsed() > PATIENCE {
                return Err(said);
            }
            if self.is_over.load(Ordering::Relaxed) {
                let since = *dead_since.get_or_insert_with(Instant::now);
                if since.elapsed() > MOURNING {
                    self.clear_the_way(&said);
                }
            }
            if said.contains("cannot lock ref 'HEAD'") && ["commit", "stash"].contains(&arguments[0]) {
                // Squad has committed since git looked; git has written its index all the same, which would take out
                // again what squad has put in.
                self.user.counts.races += 1;
                self.must(&["reset", "-q", "--", ".squad"]);
                self.must(&["checkout", "-q", "--", ".squad"]);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn must(&mut self, arguments: &[&str]) -> String {
        let answer = self.git(arguments);
        assert!(answer.is_ok(), "git {arguments:?} fails: {answer:?}\n{}", self.user.story.join("\n"));
        answer.unwrap_or_default()
    }

    /// What squad's status names as begun is finished; a lock is removed, as git says when no other git is running.
    fn clear_the_way(&mut self, said: &str) {
        if said.contains(".squad/") {
            let done = super::calls::Call::new("land", &["decisions", "land"]).run(self.repo);
            self.user.story.push(format!("squad decisions land: {}", String::from_utf8_lossy(&done.stderr)));
            self.user.counts.locks.push("a file of squad's".to_owned());
        }
        for name in ["index.lock", "HEAD.lock", "packed-refs.lock", "refs/heads/main.lock", "refs/squad/log.lock"] {
            if fs::remove_file(self.repo.root().join(".git").join(name)).is_ok() {
                self.user.counts.locks.push(name.to_owned());
                self.user.story.push(format!("{name} is removed by hand"));
            }
        }
    }

    fn add(&mut self, path: &str) {
        self.must(&["add", "--", path]);
        let all: Vec<_> = self.user.work.iter().map(|(path, content)| (path.clone(), content.clone())).collect();
        self.user.index.extend(all.into_iter().filter(|(name, _)| name.starts_with(path)));
    }

    /// Everything that is staged, or one file alone.
    fn commit(&mut self, only: Option<&str>) {
        self.user.number += 1;
        let subject = format!("user {}", self.user.number);
        match only {
            None => {
                self.must(&["commit", "-q", "-m", &subject]);
                self.user.head = self.user.index.clone();
            }
            Some(path) => {
                self.must(&["commit", "-q", "-m", &subject, "--only", "--", path]);
                let content = self.user.work[path].clone();
                self.user.index.insert(path.to_owned(), content.clone());
                self.user.head.insert(path.to_owned(), content);
            }
        }
        self.user.commits.push(subject);
    }

    fn fresh(&mut self, kind: &str) -> String {
        self.user.number += 1;
        let path = format!("u/{kind}-{}.txt", self.user.number);
        self.write(&path, &format!("{kind} {}\n", self.user.number));
        path
    }

    fn commit_something(&mut self) {
        let path = self.fresh("committed");
        self.add(&path);
        let only = self.user.dice.below(2) == 0;
        self.commit(Some(&*path).filter(|_| only));
    }

    fn stage_something(&mut self) {
        let path = self.fresh("staged");
        self.add(&path);
        if self.user.dice.below(2) == 0 {
            self.write(&path, "edited since\n");
        }
    }

    fn edit_something(&mut self) {
        let path = format!("u/{}.txt", self.user.dice.below(6));
        // What is put aside is not edited meanwhile: that would be the user's own conflict.
        if self.user.stashes.iter().any(|stash| stash.work.contains_key(&path) || stash.index.contains_key(&path)) {
            return;
        }
        self.user.number += 1;
        let content = format!("edited {}\n", self.user.number);
        self.write(&path, &content);
        if self.user.dice.below(3) == 0 {
            self.add(&path);
        }
    }

    fn is_dirty(&self) -> bool {
        let user = &self.user;
        user.index != user.head || user.head.keys().any(|path| user.work.get(path) != user.head.get(path))
    }

    fn stash(&mut self) {
        if !self.is_dirty() || self.user.stashes.len() > 2 {
            return;
        }
        self.put_aside();
    }

    /// Not untracked files: of these squad may just be making one, and `git stash pop` does not go on where one is there.
    fn put_aside(&mut self) {
        self.must(&["stash", "push", "-q"]);
        let id = self.must(&["rev-parse", "refs/stash"]).trim().to_owned();
        let user = &mut *self.user;
        let is_taken = |path: &str, user: &User| user.index.contains_key(path) || user.head.contains_key(path);
        let changed = |files: &Files, user: &User| -> BTreeMap<String, Option<String>> {
            let paths = user.head.keys().chain(files.keys()).filter(|path| is_taken(path, user));
            let differs = paths.filter(|path| files.get(*path) != user.head.get(*path));
            differs.map(|path| (path.clone(), files.get(path).cloned())).collect()
        };
        let stash = Stash { id, index: changed(&user.index, user), work: changed(&user.work, user) };
        user.index = user.head.clone();
        for path in stash.work.keys().chain(stash.index.keys()) {
            match user.head.get(path) {
                Some(content) => drop(user.work.insert(path.clone(), content.clone())),
                None => drop(user.work.remove(path)),
            }
        }
        user.stashes.push(stash);
    }

    fn pop(&mut self) {
        // git gives the index back only where nothing is staged.
        if self.user.stashes.is_empty() || self.user.index != self.user.head {
            return;
        }
        let (mut is_whole, mut answer) = (true, self.git(&["stash", "pop", "-q", "--index"]));
        if answer.as_ref().is_err_and(|said| said.contains("patch does not apply")) {
            // It had begun with the index, found that locked in the middle, and left it so.
            self.user.counts.races += 1;
            self.must(&["reset", "-q"]);
            answer = self.git(&["stash", "pop", "-q", "--index"]);
        }
        if let Err(said) = answer {
            // It was made while squad had a file staged that is committed by now. git says what to do.
            let is_known = said.contains("Try without --index") && said.contains(".squad/");
            assert!(is_known, "git stash pop fails: {said}\n{}", self.user.story.join("\n"));
            self.must(&["stash", "pop", "-q"]);
            self.user.counts.stashes += 1;
            is_whole = false;
        }
        // git had read the index before squad's commit, and HEAD after it: what is new there is gone in the stash.
        let gone = self.must(&["diff", "--cached", "--name-only", "--diff-filter=D", "--", ".squad"]);
        if !gone.is_empty() {
            self.user.counts.races += 1;
            self.must(&["reset", "-q", "--", ".squad"]);
            self.must(&["checkout", "-q", "--", ".squad"]);
        }
        let Some(mut stash) = self.user.stashes.pop() else { return };
        if !is_whole {
            // Only new files are staged then.
            let is_new = |path: &String| !self.user.head.contains_key(path);
            let staged = stash.work.iter().filter(|(path, _)| is_new(path) && stash.index.contains_key(*path));
            stash.index = staged.map(|(path, content)| (path.clone(), content.clone())).collect();
        }
        for (files, changes) in [(&mut self.user.index, stash.index), (&mut self.user.work, stash.work)] {
            for (path, content) in changes {
                match content {
                    Some(content) => drop(files.insert(path, content)),
                    None => drop(files.remove(&path)),
                }
            }
        }
    }

    /// A branch with a commit, that is merged or rebased first.
    fn work_on_a_topic(&mut self) {
        let is_dirty = self.is_dirty();
        if is_dirty {
            self.put_aside();
        }
        self.user.number += 1;
        let topic = format!("topic-{}", self.user.number);
        self.must(&["switch", "-q", "-c", &topic]);
        let path = self.fresh("topic");
        self.add(&path);
        self.commit(None);
        if self.user.dice.below(2) == 0 {
            self.on_main_meanwhile(&topic, &path);
        }
        if self.user.dice.below(2) == 0 && self.git(&["rebase", "-q", "main"]).is_err() {
            // Squad was just moving the branch, or had something staged.
            let _ = self.git(&["rebase", "--abort"]);
        }
        self.must(&["switch", "-q", "main"]);
        self.merge(&topic);
        self.must(&["branch", "-q", "-D", &topic]);
        if is_dirty {
            self.pop();
        }
    }

    fn merge(&mut self, topic: &str) {
        let merge = ["merge", "-q", "--no-edit", topic];
        let begun = Instant::now();
        while let Err(said) = self.git(&merge) {
            // Squad has moved the branch between git's look at it and its end, when index and files are merged already:
            // git leaves them so.
            assert!(begun.elapsed() < PATIENCE, "{said}\n{}", self.user.story.join("\n"));
            self.user.counts.races += 1;
            self.must(&["reset", "-q", "--merge"]);
        }
    }

    fn on_main_meanwhile(&mut self, topic: &str, path: &str) {
        self.must(&["switch", "-q", "main"]);
        let (content, head) = (self.user.work.remove(path), self.user.head.remove(path));
        self.user.index.remove(path);
        let other = self.fresh("main");
        self.add(&other);
        self.commit(None);
        self.must(&["switch", "-q", topic]);
        // From here on only what both have together is looked at, once they are merged.
        for (files, content) in [(&mut self.user.work, content), (&mut self.user.head, head.clone())] {
            files.insert(path.to_owned(), content.expect("it was committed"));
        }
        self.user.index.insert(path.to_owned(), head.expect("it was committed"));
    }

    fn keep_up(&mut self) {
        let arguments = UPKEEP[self.user.dice.below(UPKEEP.len())];
        self.user.counts.upkeep += 1;
        let mut tries = 0;
        while let Err(said) = self.git(arguments) {
            tries += 1;
            self.user.counts.failures.push(format!("git {}: {}", arguments.join(" "), said.trim()));
            assert!(tries < 5, "git {arguments:?} fails for good: {said}\n{}", self.user.story.join("\n"));
        }
        if arguments[0] != "gc" {
            // Only gc itself takes commits that are gone out of this list, and fsck misses them.
            self.must(&["commit-graph", "write", "--reachable"]);
        }
    }
}

/// Whether a command of git's failed only because another program was changing the same.
fn is_in_the_way(said: &str) -> bool {
    let ways = ["index.lock", "cannot lock ref", "unable to create", "unable to lock", "could not ", "stash failed"];
    // Squad is about to commit it.
    let is_half_landed = said.contains(".squad/")
        && ["would be overwritten by", "would be removed by"].iter().any(|way| said.contains(way));
    is_half_landed || ways.iter().any(|way| said.to_lowercase().contains(way))
}

/// Milliseconds, for a story.
pub(super) fn now() -> u128 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.as_millis() % 1_000_000)
}
