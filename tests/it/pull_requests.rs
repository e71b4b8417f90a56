//! Many pull requests that decide things, open side by side and merged, squashed, rebased or picked in any order: no
//! conflict, no decision missing, every state as the branch says. No merge driver helps.
//!
//! `SQUAD_PULL_REQUESTS=1000 cargo test --test it pull_requests -- --nocapture` plays more of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use crate::support::{TestRepo, number_of};

/// A plain generator, so that a run can be played again: `SQUAD_SEED`.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

/// What a branch holds: decisions with what each replaces.
type Held = BTreeMap<String, Option<String>>;

struct Request {
    branch: String,
    /// What it adds and what it removes.
    added: Held,
    removed: BTreeSet<String>,
}

#[derive(Default)]
struct Model {
    main: Held,
    /// Those that were on main and are no more.
    gone: BTreeSet<String>,
    all: BTreeSet<String>,
}

impl Model {
    fn state(&self, id: &str) -> &'static str {
        let is_superseded = self.main.values().flatten().any(|old| old == id);
        match (self.main.contains_key(id), self.gone.contains(id)) {
            (true, _) if is_superseded => "superseded",
            (true, _) => "in_force",
            (false, true) => "withdrawn",
            (false, false) => "elsewhere",
        }
    }

    fn take(&mut self, request: &Request) {
        self.main.extend(request.added.clone());
        for id in &request.removed {
            if self.main.remove(id).is_some() {
                self.gone.insert(id.clone());
            }
        }
    }
}

fn decide(repo: &TestRepo, arguments: &[&str]) -> String {
    let output = repo.squad(&[&["decisions"], arguments].concat());
    assert!(output.code == 0 && output.err.contains("1 decision landed"), "{output}");
    output.out.trim().to_owned()
}

fn open(repo: &TestRepo, model: &mut Model, chance: &mut Chance, number: usize) -> Request {
    let branch = format!("request-{number}");
    repo.git(&["switch", "-q", "-c", &branch, "main"]);
    let mut request = Request { branch, added: Held::new(), removed: BTreeSet::new() };
    repo.write(&format!("src/{number}.txt"), "work\n");
    repo.git(&["add", "src"]);
    repo.git(&["commit", "-qm", "work"]);
    for nth in 0..=chance.below(3) {
        let in_force: Vec<&String> = model.main.keys().filter(|id| model.state(id) == "in_force").collect();
        let some = in_force.get(chance.below(in_force.len())).map(|id| (*id).clone());
        // Titles repeat, as people's do.
        let title = format!("Use option {}\n\nNumber {number}.{nth}", chance.below(5));
        match (chance.below(8), some) {
            (0, Some(old))
                if !request.removed.contains(&old) && !request.added.values().flatten().any(|o| *o == old) =>
            {
                let id = decide(repo, &["supersede", &old, &title]);
                request.added.insert(id, Some(old));
            }
            (1, Some(old)) if !request.removed.contains(&old) => {
                let file = repo.git(&["ls-files", &format!("*-{old}.md")]);
                repo.git(&["rm", "-q", file.trim()]);
                repo.git(&["commit", "-qm", "reject"]);
                request.removed.insert(old);
            }
            _ => drop(request.added.insert(decide(repo, &["add", &title]), None)),
        }
    }
    model.all.extend(request.added.keys().cloned());
    request
}

/// Brings a branch to main in one of the ways that forges offer. Any conflict fails the git command, and the test.
fn close(repo: &TestRepo, model: &mut Model, chance: &mut Chance, request: &Request, ways: &mut [usize; 5]) {
    let branch = request.branch.as_str();
    let way = chance.below(5);
    ways[way] += 1;
    match way {
        0 => {
            repo.git(&["switch", "-q", "main"]);
            repo.git(&["merge", "-q", "--no-ff", "-m", "merge", branch]);
        }
        1 => {
            repo.git(&["switch", "-q", "main"]);
            repo.git(&["merge", "-q", "--squash", branch]);
            repo.git(&["commit", "-q", "--allow-empty", "-m", "squash"]);
        }
        2 => {
            repo.git(&["switch", "-q", branch]);
            repo.git(&["rebase", "-q", "main"]);
            repo.git(&["switch", "-q", "main"]);
            repo.git(&["merge", "-q", "--ff-only", branch]);
        }
        3 => {
            repo.git(&["switch", "-q", "main"]);
            repo.git(&["cherry-pick", "--keep-redundant-commits", &format!("main..{branch}")]);
        }
        _ => {
            // Rejected: nothing of it comes to main.
            repo.git(&["switch", "-q", "main"]);
            return;
        }
    }
    model.take(request);
    if chance.below(2) == 0 {
        repo.git(&["branch", "-qD", branch]);
    }
}

#[test]
fn no_decision_is_lost_and_nothing_conflicts() {
    let (count, seed) = (number_of("SQUAD_PULL_REQUESTS", 40), number_of("SQUAD_SEED", 7));
    let mut repo = TestRepo::with_small_team();
    // Where children are older than their parents, git itself picks the wrong commits of a range.
    repo.one_clock = true;
    let (mut model, mut chance, mut ways) = (Model::default(), Chance(seed as u64), [0; 5]);
    let mut waiting: Vec<Request> = Vec::new();
    let started = Instant::now();
    for number in 0..count {
        waiting.push(open(&repo, &mut model, &mut chance, number));
        while waiting.len() > chance.below(9) {
            let request = waiting.remove(chance.below(waiting.len()));
            close(&repo, &mut model, &mut chance, &request, &mut ways);
        }
        repo.git(&["switch", "-q", "main"]);
    }
    for request in waiting {
        close(&repo, &mut model, &mut chance, &request, &mut ways);
    }
    repo.git(&["switch", "-q", "main"]);
    let output = repo.squad(&["decisions", "list", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&output.out).expect("JSON");
    let text = |value: &serde_json::Value| value.as_str().expect("a text").to_owned();
    let listed = listed["decisions"].as_array().expect("a list").iter();
    let listed: BTreeMap<String, String> = listed.map(|one| (text(&one["id"]), text(&one["state"]))).collect();
    let wanted: BTreeMap<String, String> =
        model.all.iter().map(|id| (id.clone(), model.state(id).to_owned())).collect();
    assert_eq!(listed, wanted, "seed {seed}");
    assert_eq!(repo.squad(&["decisions", "land"]).err, "There is nothing to land.\n");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    let files = repo.git(&["ls-tree", "-r", "--name-only", "main", ".squad/decisions"]);
    assert_eq!(files.lines().count(), model.main.len());
    repo.assert_sound();
    let in_state = |state: &str| wanted.values().filter(|other| *other == state).count();
    println!(
        "{count} requests in {:.0?}, seed {seed}: {} merged, {} squashed, {} rebased, {} picked, {} rejected; {} decisions: \
         {} in force, {} superseded, {} withdrawn, {} elsewhere",
        started.elapsed(),
        ways[0],
        ways[1],
        ways[2],
        ways[3],
        ways[4],
        wanted.len(),
        in_state("in_force"),
        in_state("superseded"),
        in_state("withdrawn"),
        in_state("elsewhere"),
    );
}
