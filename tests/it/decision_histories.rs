//! Histories of merges as people make them, by chance: how each decision stands on each branch is what the commits say.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{Dice, TestRepo, number_of};

struct History {
    repo: TestRepo,
    dice: Dice,
    branches: Vec<String>,
    /// The ids of decisions, and the branches that they landed on.
    decisions: Vec<(String, String)>,
    steps: Vec<String>,
}

impl History {
    fn new(seed: u64) -> Self {
        let repo = TestRepo::with_small_team();
        let (decisions, steps) = Default::default();
        let mut history = Self { repo, dice: Dice(seed), branches: vec!["main".to_owned()], decisions, steps };
        // Only what comes after the team is reverted.
        history.commit("code.txt");
        history
    }

    fn git(&mut self, line: &str) -> bool {
        self.steps.push(line.to_owned());
        let words: Vec<&str> = line.split(' ').collect();
        self.repo.command("git", &self.repo.root()).args(words).output().expect("git runs").status.success()
    }

    /// A step that may conflict, and is given up then.
    fn attempt(&mut self, line: &str) {
        if !self.git(line) {
            let verb = line.split(' ').next().unwrap_or_default().to_owned();
            self.git(&format!("{verb} --abort"));
            self.git("reset -q --hard");
        }
    }

    fn commit(&mut self, file: &str) {
        self.repo.write(file, "text\n");
        self.git("add -A");
        self.git("commit -qm code");
    }

    fn any_branch(&mut self) -> String {
        self.branches[self.dice.below(self.branches.len())].clone()
    }

    fn step(&mut self, number: usize) {
        let (here, other) = (self.any_branch(), self.any_branch());
        self.git(&format!("switch -q {here}"));
        match self.dice.below(13) {
            0..=2 => {
                let output = self.repo.squad(&["decisions", "add", &format!("Decision {number}")]);
                assert_eq!(output.code, 0, "{output}");
                self.steps.push(format!("squad decisions add {}", output.out.trim()));
                self.decisions.push((output.out.trim().to_owned(), here));
            }
            3 => self.commit(&format!("code{number}.txt")),
            4 | 5 => {
                let name = format!("branch{number}");
                self.git(&format!("switch -q -c {name}"));
                self.commit(&format!("code{number}.txt"));
                self.branches.push(name);
            }
            6 | 7 => self.attempt(&format!("merge -q --no-ff -m merged {other}")),
            8 => {
                let merge = if self.git("rev-parse -q --verify HEAD^2") { " -m 1" } else { "" };
                self.attempt(&format!("revert --no-edit{merge} HEAD"));
            }
            9 => {
                self.git(&format!("merge -q --squash {other}"));
                if !self.git("commit -qm squashed") {
                    self.git("reset -q --hard");
                }
            }
            10 => self.attempt(&format!("rebase -q {other}")),
            11 => self.attempt(&format!("cherry-pick {other}")),
            _ if self.dice.below(2) == 0 => {
                self.attempt(&format!("merge -q -s ours -m ours {other}"));
            }
            // Criss-cross: each merges what the other was.
            _ => {
                self.git(&format!("tag -f before {here}"));
                self.attempt(&format!("merge -q --no-ff -m merged {other}"));
                self.git(&format!("switch -q {other}"));
                self.attempt("merge -q --no-ff -m merged before");
            }
        }
    }

    fn lines(&self, arguments: &[&str]) -> Vec<String> {
        self.repo.git(arguments).lines().map(str::to_owned).collect()
    }

    /// How many states were compared.
    fn check(mut self, seed: u64) -> usize {
        let parents: BTreeMap<String, Vec<String>> = self
            .lines(&["rev-list", "--branches", "--parents"])
            .into_iter()
            .map(|line| {
                let mut commits = line.split(' ').map(str::to_owned);
                (commits.next().expect("a commit"), commits.collect())
            })
            .collect();
        let files: BTreeMap<&String, Vec<String>> = parents
            .keys()
            .map(|commit| (commit, self.lines(&["ls-tree", "-r", "--name-only", commit, ".squad/"])))
            .collect();
        let mut compared = 0;
        for branch in self.branches.clone() {
            assert!(self.git(&format!("switch -q {branch}")), "{seed}: {:#?}", self.steps);
            let head = self.repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
            let (mut all, mut waiting) = (BTreeSet::new(), vec![&head]);
            while let Some(commit) = waiting.pop() {
                if all.insert(commit) {
                    waiting.extend(&parents[commit]);
                }
            }
            let has = |commit: &String, id: &str| files[commit].iter().any(|path| path.ends_with(&format!("-{id}.md")));
            let output = self.repo.squad(&["decisions", "list", "--json"]);
            assert_eq!(output.code, 0, "{seed}: {output}{:#?}", self.steps);
            let listed: serde_json::Value = serde_json::from_str(&output.out).expect("JSON");
            for (id, landed) in &self.decisions {
                let wanted = if has(&head, id) {
                    "in_force"
                } else if *landed == branch || all.iter().any(|commit| has(commit, id)) {
                    "withdrawn"
                } else {
                    "elsewhere"
                };
                let all = listed["decisions"].as_array().expect("a list");
                let found = all.iter().find(|decision| decision["id"] == **id).map(|decision| &decision["state"]);
                assert_eq!(
                    found.and_then(|state| state.as_str()),
                    Some(wanted),
                    "{seed}: {id} on {branch}: {:#?}",
                    self.steps
                );
                compared += 1;
            }
        }
        compared
    }
}

/// `SQUAD_DECISION_HISTORIES` of them.
#[test]
fn decisions_stand_as_the_commits_say() {
    let mut compared = 0;
    let start = number_of("SQUAD_DECISION_SEED", 1);
    for seed in start..start + number_of("SQUAD_DECISION_HISTORIES", 6) {
        let seed = u64::try_from(seed).expect("it is small");
        let mut history = History::new(seed);
        (0..18).for_each(|number| history.step(number));
        compared += history.check(seed);
    }
    assert!(compared > 0);
}

/// The case that people meet: a pull request is reverted, and an older branch with a decision merged after it.
#[test]
fn an_older_branch_hides_no_withdrawal() {
    let mut history = History::new(0);
    history.git("branch older");
    history.git("switch -q -c feature");
    let id = history.repo.squad(&["decisions", "add", "First"]).out.trim().to_owned();
    history.git("switch -q older");
    assert_eq!(history.repo.squad(&["decisions", "add", "Second"]).code, 0);
    history.git("switch -q main");
    history.git("merge -q --no-ff -m merged feature");
    history.git("revert --no-edit -m 1 HEAD");
    assert!(history.git("merge -q --no-ff -m merged older"));
    let shown = history.repo.squad(&["decisions", "show", &id]).out;
    assert!(shown.contains("withdrawn"), "{shown}");
}
