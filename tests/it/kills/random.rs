//! Every command that writes, killed at a random moment beside a user who works in the same repository, `git gc
//! --prune=now` and its like included: nothing acknowledged is lost, nothing of the user's is touched, and whatever
//! comes next works.
//!
//! `SQUAD_KILLS=3000 cargo test --test it kills::random -- --ignored --nocapture` kills that often, and takes an hour;
//! `SQUAD_SEED=N` begins with that seed, and `SQUAD_KEEP=FOLDER` copies the repository of a failure there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::calls::{Acknowledged, Call, Caller, KINDS, push_named};
use super::user::{Counts, User};
use crate::damage::spoil;
use crate::support::{Dice, TestRepo, number_of};

/// Kills in one repository.
const EACH: usize = 50;

#[test]
#[ignore = "takes a minute for each hundred kills"]
fn beside_a_user_nothing_is_lost() {
    let (kills, mut seed) = (number_of("SQUAD_KILLS", 50), number_of("SQUAD_SEED", 1));
    let (mut usual, mut totals) = (BTreeMap::new(), Totals::default());
    while totals.kills < kills {
        let seed_now = seed as u64;
        let round = EACH.min(kills - totals.kills);
        // A defect names its seed.
        println!("seed {seed_now}");
        World::new(seed_now, &mut usual).play(round, &mut totals);
        seed += 1;
    }
    totals.say();
}

#[derive(Default)]
struct Totals {
    kills: usize,
    /// By command: how many died of it, of how many.
    died: BTreeMap<&'static str, (usize, usize)>,
    decisions: usize,
    entries: usize,
    user: Counts,
}

impl Totals {
    fn count(&mut self, call: &Call, died: bool) {
        let count = self.died.entry(call.name).or_default();
        *count = (count.0 + usize::from(died), count.1 + 1);
    }

    fn take(&mut self, user: Counts) {
        self.user.deeds += user.deeds;
        self.user.upkeep += user.upkeep;
        self.user.races += user.races;
        self.user.stashes += user.stashes;
        self.user.locks.extend(user.locks);
        self.user.failures.extend(user.failures);
    }

    fn say(&self) {
        println!("{} kills; died of it: {:?}", self.kills, self.died);
        println!(
            "{} decisions and {} entries acknowledged; {} deeds of the user's, {} of them git's upkeep",
            self.decisions, self.entries, self.user.deeds, self.user.upkeep
        );
        println!("stashes that took a file of squad's along: {}", self.user.stashes);
        println!(
            "commits, merges and stashes that git made wrong, since it had looked before squad's commit: {}",
            self.user.races
        );
        println!("locks that the user had to remove: {:?}", self.user.locks);
        println!("git's upkeep that was tried again: {:#?}", self.user.failures);
    }
}

struct World<'a> {
    repo: TestRepo,
    user: User,
    dice: Dice,
    seed: u64,
    heard: Acknowledged,
    number: usize,
    /// How long a command takes.
    usual: &'a mut Usual,
    story: Vec<String>,
}

type Usual = BTreeMap<&'static str, Duration>;

impl<'a> World<'a> {
    fn of(mut repo: TestRepo, seed: u64, usual: &'a mut Usual) -> Self {
        // Times are those of the clock: rescues and branches are told apart by them.
        repo.variables.retain(|name, _| !name.ends_with("_DATE"));
        let user = User::new(&repo, seed.wrapping_mul(7_919));
        let (heard, story) = (Acknowledged::default(), Vec::new());
        let mut world = Self { repo, user, dice: Dice(seed), seed, heard, number: 0, usual, story };
        world.check();
        world
    }

    fn new(seed: u64, usual: &'a mut Usual) -> Self {
        let repo = TestRepo::with_small_team();
        repo.git(&["clone", "--quiet", "--bare", ".", "../hub.git"]);
        repo.git(&["remote", "add", "origin", "../hub.git"]);
        repo.write(".git/info/exclude", "agent/\n.squad/config.toml\n");
        repo.write(".squad/agents/ada/history.md", "# Ada\n\n## Learnings\n\n- One.\n");
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-qm", "history"]);
        let mut world = Self::of(repo, seed, usual);
        world.whole(&Call::new("sync", &["sync", "--yes"]));
        world
    }

    /// One that has lost an entry, which the remote has or has not.
    fn damaged(seed: u64, usual: &'a mut Usual) -> Self {
        let mut world = Self::new(seed, usual);
        for _ in 0..3 {
            let add = world.caller().add();
            world.whole(&add);
        }
        if world.dice.below(2) == 0 {
            world.whole(&Call::new("sync", &["sync", "--yes"]));
        }
        let ledger = world.ledger();
        let entry = &ledger[world.dice.below(ledger.len())];
        spoil(&world.repo, &world.repo.root(), &format!("refs/squad/log:{entry}"), None);
        world
    }

    /// One command in a repository that is made for it.
    fn play_alone(mut self, call: &Call, totals: &mut Totals) {
        let died = self.kill(call, false);
        totals.count(call, died);
        self.check();
        let again = self.whole(call);
        assert!(again.status.success(), "{}", self.told());
        self.check();
        // Where the user was committing all the time it has said that it is not committed.
        if died {
            self.check_tidy(call.name);
        }
        assert!(self.repo.exists(".squad/team.md"), "{}", self.told());
        self.check_all();
        self.repo.git(&["gc", "--prune=now", "-q"]);
        self.check_all();
        totals.take(self.user.counts);
    }

    fn play(mut self, kills: usize, totals: &mut Totals) {
        for number in 0..kills {
            let kind = KINDS[self.dice.below(KINDS.len())];
            let seed = self.seed * 1_000 + number as u64;
            match kind {
                "init" => {
                    let world = World::of(TestRepo::empty(), seed, self.usual);
                    world.play_alone(&Call::new("init", &["init"]), totals);
                    continue;
                }
                "repair" => {
                    let repair = Call::new("repair", &["doctor", "--repair", "--yes"]);
                    World::damaged(seed, self.usual).play_alone(&repair, totals);
                    continue;
                }
                _ => {}
            }
            let call = self.caller().prepare(kind);
            let died = self.kill(&call, true);
            totals.count(&call, died);
            self.check();
            if self.dice.below(2) == 0 {
                self.go_on(Some(&call).filter(|_| died));
            }
            if number % 10 == 9 {
                self.check_all();
            }
        }
        self.go_on(None);
        self.end();
        totals.kills += kills;
        totals.decisions += self.heard.decisions.len();
        totals.entries += self.heard.entries.len();
        totals.take(self.user.counts);
    }

    fn caller(&mut self) -> Caller<'_> {
        let Self { repo, dice, heard, number, .. } = self;
        Caller { repo, dice, heard, number }
    }

    /// Starts it, kills it at some moment, and has the user at work beside. Whether it died of that.
    fn kill(&mut self, call: &Call, with_upkeep: bool) -> bool {
        let usual = self.usual.get(call.name).copied();
        let beside = (with_upkeep && self.dice.below(4) == 0).then(|| self.caller().add());
        let part = self.dice.below(1100) as u32;
        let (is_over, repo, user) = (AtomicBool::new(false), &self.repo, &mut self.user);
        let (output, took, other, at_death) = thread::scope(|scope| {
            let mut running = call.start(repo, "killed");
            let begun = Instant::now();
            scope.spawn(|| user.act(repo, &is_over, with_upkeep));
            let other = beside.as_ref().map(|call| call.start(repo, "beside"));
            if let Some(usual) = usual {
                thread::sleep(usual * part / 1000);
                let _ = running.child.kill();
            }
            let output = running.ended();
            let at_death = super::user::now();
            let took = begun.elapsed();
            let other = other.map(|other| other.ended());
            is_over.store(true, Ordering::Relaxed);
            (output, took, other, at_death)
        });
        let died = output.status.code().is_none();
        if !died {
            let known = self.usual.entry(call.name).or_insert(took);
            *known = (*known * 3 + took) / 4;
        }
        self.tell(call, &output);
        self.story.push(format!("^ ended at {at_death}"));
        self.heard.hear(call, &output);
        if let (Some(call), Some(output)) = (beside, other) {
            self.tell(&call, &output);
            assert!(output.status.success(), "beside a kill: {}", self.told());
            self.heard.hear(&call, &output);
        }
        self.settle();
        died
    }

    /// git's own processes go on after squad's death, and end by themselves.
    fn settle(&self) {
        let lock = self.repo.root().join(".git/index.lock");
        let begun = Instant::now();
        while lock.exists() && begun.elapsed() < Duration::from_millis(500) {
            thread::sleep(Duration::from_millis(10));
        }
        thread::sleep(Duration::from_millis(30));
    }

    /// One that nobody kills, alone.
    fn whole(&mut self, call: &Call) -> Output {
        let output = call.run(&self.repo);
        self.tell(call, &output);
        self.heard.hear(call, &output);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if let (Some(push), "sync") = (push_named(&said), call.name) {
            let push: Vec<&str> = push.iter().map(String::as_str).collect();
            self.repo.git(&push);
            return self.whole(call);
        }
        output
    }

    /// The next command that writes works, finishes what was begun, and leaves nothing of squad's behind.
    fn go_on(&mut self, killed: Option<&Call>) {
        let next = match self.dice.below(4) {
            0 => Call::new("land", &["decisions", "land"]),
            1 => Call::new("history", &["history", "land"]),
            2 => self.caller().add(),
            _ => {
                // The same again, where that is what one would do, and what writes to the branch.
                let again = killed.filter(|call| ["land", "history", "import", "orchestrate"].contains(&call.name));
                again.cloned().unwrap_or_else(|| Call::new("land", &["decisions", "land"]))
            }
        };
        let output = self.whole(&next);
        // What was decided on a branch that is gone lands where somebody says so.
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let is_elsewhere = said.contains("made for other branches") || said.contains("is checked out, not topic-");
        // Another command had finished the import.
        let is_done = said.contains("contains no decisions");
        assert!(output.status.success() || is_elsewhere || is_done, "{}", self.told());
        self.check();
        self.check_tidy(next.name);
    }

    /// What costs little.
    fn check(&mut self) {
        let wrong = self.user.differences(&self.repo);
        assert!(wrong.is_empty(), "{wrong:#?}\n{}", self.told());
        let kept = self.repo.read(super::user::KEPT);
        assert!(["kept\n", "another\n"].contains(&&*kept), "{kept}: {}", self.told());
        let ledger = self.ledger();
        let is_there = |id: &&String| ledger.iter().any(|path| path.contains(id.as_str()));
        let lost: Vec<&String> = self.heard.entries.iter().filter(|id| !is_there(id)).collect();
        assert!(lost.is_empty(), "{lost:?}\n{}", self.told());
    }

    fn ledger(&self) -> Vec<String> {
        if self.repo.git(&["for-each-ref", "refs/squad/log"]).is_empty() {
            return Vec::new();
        }
        let listed = self.repo.git(&["ls-tree", "-r", "--name-only", "refs/squad/log"]);
        listed.lines().map(str::to_owned).collect()
    }

    /// Nothing of squad's is staged, uncommitted, locked or half written.
    fn check_tidy(&mut self, after: &str) {
        let status = self.repo.git(&["status", "--porcelain", "-uall", "--", ".", ":!u"]);
        assert_eq!(status, "", "{}", self.told());
        let mut folders = vec![self.repo.root()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("a folder").flatten() {
                let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let is_lock = name.ends_with(".lock") && path.starts_with(self.repo.root().join(".git/refs"));
                let is_left = name.starts_with(".squad-")
                    || name.starts_with(".tmp")
                    || is_lock
                    || ["index.lock", "packed-refs.lock", "HEAD.lock", "intent"].contains(&&*name)
                    || name.ends_with(".keep") && after == "add";
                assert!(!is_left, "{} is left after {after}\n{}", path.display(), self.told());
            }
        }
    }

    fn check_all(&mut self) {
        assert!(self.repo.exists(".squad/team.md"), "{}", self.told());
        let listed = self.repo.git(&["rev-list", "--objects", "--missing=print", "--all", "--reflog"]);
        let missing: Vec<&str> = listed.lines().filter(|line| line.starts_with('?')).collect();
        assert!(missing.is_empty(), "{missing:?}\n{}", self.told());
        let fsck = self.repo.command("git", &self.repo.root()).args(["fsck", "--full", "--strict"]).output();
        if !fsck.expect("git runs").status.success() {
            // Nothing led to what a dead writer had packed, and `git prune` took loose objects that it named. gc takes it.
            self.repo.git(&["gc", "--prune=now", "-q"]);
        }
        self.repo.assert_sound();
        let listed = self.repo.squad(&["decisions", "list", "--json"]);
        let listed: serde_json::Value = serde_json::from_str(&listed.out).expect("JSON");
        let listed = listed["decisions"].as_array().expect("a list").iter();
        let listed: BTreeSet<&str> = listed.map(|one| one["id"].as_str().expect("an id")).collect();
        let lost: Vec<&String> = self.heard.decisions.iter().filter(|id| !listed.contains(id.as_str())).collect();
        assert!(lost.is_empty(), "{lost:?}\n{}", self.told());
        let subjects = self.repo.git(&["log", "--format=%s", "main"]);
        let subjects: BTreeSet<&str> = subjects.lines().collect();
        let lost: Vec<_> = self.user.commits().iter().filter(|subject| !subjects.contains(subject.as_str())).collect();
        assert!(lost.is_empty(), "{lost:?}\n{}", self.told());
        let log = self.repo.squad(&["log", "--json"]);
        assert!(log.code == 0 && !log.err.contains("refs/squad"), "{log}\n{}", self.told());
    }

    /// A sync brings everything to the remote, git tidies up, and all is as it was.
    fn end(&mut self) {
        let synced = self.whole(&Call::new("sync", &["sync", "--yes"]));
        assert!(synced.status.success(), "{}", self.told());
        let hub = self.repo.root().join("../hub.git");
        let there = self.repo.git_in(&hub, &["ls-tree", "-r", "--name-only", "refs/squad/log"]);
        let there: BTreeSet<&str> = there.lines().collect();
        let missing: Vec<String> = self.ledger().into_iter().filter(|path| !there.contains(path.as_str())).collect();
        assert!(missing.is_empty(), "{missing:?}\n{}", self.told());
        self.repo.git(&["gc", "--prune=now", "-q"]);
        let proof = self.repo.squad(&["doctor", "--prove"]);
        assert!(!proof.out.contains("refs/squad") && !proof.out.contains("stopped"), "{proof}\n{}", self.told());
        self.check();
        self.check_all();
    }

    fn tell(&mut self, call: &Call, output: &Output) {
        let said = |bytes: &[u8]| {
            let said = String::from_utf8_lossy(bytes).trim().replace('\n', " | ");
            said.chars().take(300).collect::<String>()
        };
        let line = format!(
            "{} squad {:?}: {} {} {}",
            super::user::now(),
            call.arguments,
            output.status,
            said(&output.stdout),
            said(&output.stderr)
        );
        self.story.append(&mut self.user.story);
        self.story.push(line);
    }

    /// What happened last, for whoever reads a failure.
    fn told(&self) -> String {
        if let Some(place) = std::env::var_os("SQUAD_KEEP") {
            let _ = std::process::Command::new("cp").arg("-a").arg(self.repo.root().join("..")).arg(place).status();
        }
        let begin = self.story.len().saturating_sub(60);
        format!("seed {}:\n{}", self.seed, self.story[begin..].join("\n"))
    }
}
