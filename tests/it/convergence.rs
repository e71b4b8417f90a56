//! Five clones of one repository that write and sync while the remote is away, refuses, is force-pushed to by its owner,
//! and syncs are killed: no entry is lost, a sync that says it is done is, and in the end all clones are the same.
//!
//! `SQUAD_CONVERGENCE=20 cargo test --test it convergence:: -- --nocapture` plays 20 longer ones; `SQUAD_SEED=N` begins
//! with that one.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::support::{Dice, number_of};
use crate::sync::Shared;

const BINARY: &str = env!("CARGO_BIN_EXE_squad");
const CLONES: usize = 5;
const LOG: &str = "refs/squad/log";
const BRANCH: &str = "refs/heads/squad/state";

/// What an update hook declines.
const MOODS: [(&str, &str); 6] = [
    ("nothing", "exit 0"),
    ("the next push", "test -e \"$GIT_DIR/once\" || exit 0; rm -f \"$GIT_DIR/once\"; exit 1"),
    ("now and then", "test $(( $(date +%N | sed 's/^0*//') / 1000 % 2 )) = 0"),
    ("custom refs", "case \"$1\" in refs/squad/*) exit 1;; esac"),
    ("the ledger's ref", "test \"$1\" != refs/squad/log"),
    ("everything", "exit 1"),
];

#[test]
fn clones_converge_whatever_happens_between_them() {
    let (count, first) = (number_of("SQUAD_CONVERGENCE", 1), number_of("SQUAD_SEED", 1));
    let steps = if count > 1 { 80 } else { 20 };
    for seed in first..first + count {
        World::new(seed).play(steps);
    }
}

struct World {
    shared: Shared,
    dice: Dice,
    seed: usize,
    clones: Vec<PathBuf>,
    is_away: bool,
    /// Every decision that was acknowledged.
    decided: BTreeSet<String>,
    /// What happened, for whoever reads a failure.
    story: Vec<String>,
    counts: [usize; 4],
}

impl World {
    fn new(seed: usize) -> Self {
        let shared = Shared::new();
        let clones = (0..CLONES).map(|number| shared.clone(&format!("clone{number}"), &[])).collect();
        Self {
            shared,
            dice: Dice(seed as u64),
            seed,
            clones,
            is_away: false,
            decided: BTreeSet::new(),
            story: Vec::new(),
            counts: [0; 4],
        }
    }

    fn play(mut self, steps: usize) {
        for number in 0..steps {
            let clone = self.clones[self.dice.below(CLONES)].clone();
            match self.dice.below(16) {
                0..=3 => self.decide(&clone, number),
                4..=7 => self.sync(&clone),
                8..=9 => self.kill(&clone),
                10..=11 => self.change_the_weather(),
                12..=13 if !self.is_away => self.force(&clone),
                14 if !self.is_away => self.git(&clone, &["fetch", "--quiet"]),
                15 => drop(self.squad(&clone, &["sync", "--yes", "--own-ref"])),
                _ => {}
            }
        }
        self.make_fair_weather();
        for clone in self.clones.clone().iter().chain(&self.clones.clone()) {
            let output = self.squad(clone, &["sync", "--yes"]);
            assert_eq!(output.code, 0, "{}\n{output}", self.told());
        }
        self.check_all();
    }

    fn decide(&mut self, clone: &Path, number: usize) {
        let output = self.squad(clone, &["decisions", "add", &format!("Decision {number}")]);
        assert_eq!(output.code, 0, "{}\n{output}", self.told());
        self.decided.insert(output.out.trim().to_owned());
    }

    /// A sync that says it is done has brought every entry to the remote, and one that has not says so.
    fn sync(&mut self, clone: &Path) {
        let output = self.squad(clone, &["sync", "--yes"]);
        self.counts[0] += 1;
        if self.is_away {
            assert_ne!(output.code, 0, "{}\n{output}", self.told());
            return;
        }
        let missing = self.entries(clone, &[LOG]).difference(&self.entries(&self.hub(), &["--all"])).count();
        assert_eq!(output.code == 0, missing == 0, "{missing} missing: {}\n{output}", self.told());
        let status = self.shared.repo.squad_in(clone, &["status", "--json"]);
        assert!(status.out.contains(&format!("\"unsynced\":{missing}}}")), "{missing}: {}\n{status}", self.told());
        self.counts[1] += usize::from(output.code != 0);
    }

    fn kill(&mut self, clone: &Path) {
        let mut command = self.shared.repo.command(BINARY, clone);
        command.args(["sync", "--yes"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("squad runs");
        let wait = self.dice.below(120);
        std::thread::sleep(Duration::from_millis(wait as u64));
        let _ = child.kill();
        child.wait().expect("it ends");
        self.tell(clone, &format!("sync, killed after {wait} ms"));
        self.counts[2] += 1;
    }

    fn change_the_weather(&mut self) {
        self.make_fair_weather();
        let (what, script) = MOODS[self.dice.below(MOODS.len())];
        self.shared.write_hook(script);
        fs::write(self.hub().join("once"), "").expect("a file");
        let mut weather = format!("the remote declines {what}");
        match self.dice.below(8) {
            0 => {
                fs::rename(self.hub(), self.away()).expect("it is there");
                self.is_away = true;
                weather = "the remote is away".to_owned();
            }
            1 => {
                self.shared.repo.git_in(&self.hub(), &["config", "receive.hideRefs", "refs/squad"]);
                weather += ", and hides its own refs";
            }
            2 => {
                let folder = self.hub().join("refs/squad");
                fs::create_dir_all(&folder).expect("a folder");
                fs::write(folder.join("log.lock"), "").expect("a lock");
                weather += ", and somebody has left a lock";
            }
            _ => {}
        }
        self.story.push(weather);
    }

    fn make_fair_weather(&mut self) {
        if std::mem::take(&mut self.is_away) {
            fs::rename(self.away(), self.hub()).expect("it is there");
        }
        self.shared.write_hook("exit 0");
        let _ = fs::remove_file(self.hub().join("refs/squad/log.lock"));
        self.git(&self.hub(), &["config", "--unset-all", "receive.hideRefs"]);
        self.story.push("the weather is fair".to_owned());
    }

    /// The owner of the remote does to its refs what owners do.
    fn force(&mut self, clone: &Path) {
        let (hub, repo) = (self.hub(), &self.shared.repo);
        let there: Vec<String> =
            repo.git_in(&hub, &["for-each-ref", "--format=%(refname)"]).lines().map(str::to_owned).collect();
        let ours: Vec<&String> = there.iter().filter(|name| name.contains("squad/")).collect();
        let Some(name) = ours.get(self.dice.below(ours.len().max(1))).map(|name| (*name).clone()) else { return };
        let what = match self.dice.below(4) {
            0 => {
                self.git(&hub, &["update-ref", "-d", &name]);
                "is deleted"
            }
            1 => {
                let old = repo.git_in(&hub, &["rev-list", &name]);
                let old: Vec<&str> = old.lines().collect();
                let old = old[self.dice.below(old.len())];
                self.git(&hub, &["update-ref", &name, old]);
                "is set back"
            }
            2 => {
                // A commit on top that has no file any more.
                let tree = repo.git_in(&hub, &["hash-object", "-t", "tree", "-w", "/dev/null"]);
                let base =
                    ["-c", "user.name=x", "-c", "user.email=x", "commit-tree", tree.trim(), "-m", "x", "-p", &name];
                let emptied = repo.git_in(&hub, &base);
                self.git(&hub, &["update-ref", &name, emptied.trim()]);
                "is emptied"
            }
            _ => {
                let tip = repo.command("git", clone).args(["rev-parse", "--verify", "-q", LOG]).output().expect("git");
                if !tip.status.success() {
                    return;
                }
                let to = [LOG, BRANCH, &name][self.dice.below(3)];
                self.shared.write_hook("exit 0");
                self.git(clone, &["push", "--quiet", "origin", &format!("+{LOG}:{to}")]);
                "and more are overwritten with the ledger of a clone"
            }
        };
        self.tell(clone, &format!("{name} {what}"));
        self.counts[3] += 1;
    }

    fn check_all(&self) {
        let repo = &self.shared.repo;
        let tips: BTreeSet<String> = self.clones.iter().map(|clone| self.shared.tip(clone)).collect();
        assert_eq!(tips.len(), 1, "{tips:?}: {}", self.told());
        assert_eq!(tips.first(), Some(&self.shared.tip(&self.hub())), "{}", self.told());
        for clone in &self.clones {
            let listed = repo.squad_in(clone, &["decisions", "list", "--json"]);
            let listed: serde_json::Value = serde_json::from_str(&listed.out).expect("JSON");
            let listed = listed["decisions"].as_array().expect("a list").iter();
            let listed: BTreeSet<&str> = listed.map(|one| one["id"].as_str().expect("an id")).collect();
            let lost: Vec<&String> = self.decided.iter().filter(|id| !listed.contains(id.as_str())).collect();
            assert!(lost.is_empty(), "{lost:?}: {}", self.told());
            assert!(repo.squad_in(clone, &["status", "--json"]).out.contains("\"unsynced\":0}"), "{}", self.told());
            self.shared.assert_sound(clone);
        }
        let [syncs, failed, killed, forced] = self.counts;
        println!(
            "seed {}: {} decisions, {syncs} syncs ({failed} said that they failed), {killed} killed, {forced} forced pushes",
            self.seed,
            self.decided.len()
        );
    }

    /// It may fail: what another git does at the same time, or left behind, may be in its way.
    fn git(&self, place: &Path, arguments: &[&str]) {
        self.shared.repo.command("git", place).args(arguments).output().expect("git runs");
    }

    fn squad(&mut self, clone: &Path, arguments: &[&str]) -> crate::support::Output {
        let output = self.shared.repo.squad_in(clone, arguments);
        self.tell(clone, &format!("{arguments:?}: {output}"));
        output
    }

    /// The paths of all files of a ledger, or of all that a repository holds.
    fn entries(&self, place: &Path, refs: &[&str]) -> BTreeSet<String> {
        let repo = &self.shared.repo;
        let tips = match refs {
            ["--all"] => repo.git_in(place, &["for-each-ref", "--format=%(refname)", "refs/squad", BRANCH]),
            refs => {
                let tip = repo.command("git", place).args(["rev-parse", "--verify", "-q"]).args(refs).output();
                String::from_utf8_lossy(&tip.expect("git runs").stdout).into_owned()
            }
        };
        let listed = tips.lines().map(|tip| repo.git_in(place, &["ls-tree", "-r", "--name-only", tip]));
        listed.flat_map(|paths| paths.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
    }

    fn hub(&self) -> PathBuf {
        self.shared.hub()
    }

    fn away(&self) -> PathBuf {
        self.hub().with_extension("away")
    }

    fn tell(&mut self, clone: &Path, what: &str) {
        self.story.push(format!("{}: {}", clone.file_name().unwrap_or_default().display(), what.trim_end()));
    }

    fn told(&self) -> String {
        format!("seed {}:\n{}", self.seed, self.story.join("\n"))
    }
}
