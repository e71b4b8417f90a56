//! `squad why` on histories at random, against a book that knows who wrote each line, copy by copy. Right or unknown,
//! never wrong.
//!
//! `SQUAD_HISTORIES=50 cargo test --test it histories -- --nocapture` plays more of them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::{Dice, TestRepo, number_of};

/// An agent and its task.
type Author = (String, String);

/// A line where it stands.
#[derive(Clone)]
struct Line {
    text: String,
    /// The runs that wrote it there: none for a line that people wrote, several for one that was taken out and put
    /// back.
    authors: Vec<Author>,
}

/// Lines that stand in many files.
const EVERYWHERE: [&str; 4] = [
    "use std::collections::BTreeMap;",
    "// SPDX-License-Identifier: MIT OR Apache-2.0",
    "return Err(Error::not_found(request));",
    "    let mut result = Vec::new();",
];

#[test]
fn no_history_leads_to_a_wrong_answer() {
    let count = number_of("SQUAD_HISTORIES", 3) as u64;
    let (mut known, mut asked) = (0, 0);
    for seed in 1..=count {
        let (right, all) = World::new(seed).play();
        known += right;
        asked += all;
    }
    println!("{known} of {asked} lines of agents were known, none was wrong");
    assert!(known * 2 >= asked, "{known} of {asked}");
}

struct World {
    repo: TestRepo,
    dice: Dice,
    seed: u64,
    files: BTreeMap<String, Vec<Line>>,
    /// What was taken out, and of which file.
    gone: Vec<(String, Line)>,
    start: String,
}

impl World {
    fn new(seed: u64) -> Self {
        let repo = TestRepo::with_small_team();
        repo.write("src/common.txt", &EVERYWHERE.join("\n"));
        commit(&repo, "common");
        let start = repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
        Self { repo, dice: Dice(seed), seed, files: BTreeMap::new(), gone: Vec::new(), start }
    }

    fn play(mut self) -> (usize, usize) {
        for step in 0..12 {
            self.edit(step);
            self.repo.set_gits_clock();
            self.history(step);
        }
        self.count()
    }

    /// An agent or a person changes a file.
    fn edit(&mut self, step: usize) {
        let path = format!("src/file{}.txt", self.dice.below(2));
        let author =
            (self.dice.below(3) > 0).then(|| (["ada", "bob"][self.dice.below(2)].to_owned(), format!("Task {step}")));
        let before = self.files.get(&path).cloned().unwrap_or_default();
        let mut lines = before.clone();
        let mut fresh: Vec<Line> =
            self.texts(step, &path, &before).into_iter().map(|text| Line { text, authors: Vec::new() }).collect();
        // Who puts a line back by hand is not who wrote it.
        if let Some(at) = self.gone.iter().position(|(from, _)| *from == path).filter(|_| self.dice.below(2) == 0) {
            fresh.push(self.gone.remove(at).1);
        }
        for line in &mut fresh {
            line.authors.extend(author.clone());
        }
        let at = self.dice.below(lines.len() + 1);
        lines.splice(at..at, fresh);
        let end = if self.dice.below(5) == 0 { "\r\n" } else { "\n" };
        let indent = " ".repeat(self.dice.below(3));
        let whole: String = lines.iter().map(|line| format!("{indent}{}{end}", line.text)).collect();
        match &author {
            // It writes the whole file, and most of that is not its doing.
            Some((agent, task)) => {
                let text = serde_json::to_string(&whole).expect("JSON");
                let script = format!(
                    "[[turn]]\nagent = \"{agent}\"\nsteps = [{{ write = \"{path}\", text = {text} }}, {{ say = \"Done.\" }}]\n"
                );
                let output = self.repo.rehearse(&script, &["--permissions", "allow", "--agent", agent, task]);
                assert_eq!(output.code, 0, "{output}");
            }
            None => self.repo.write(&path, &whole),
        }
        // Now and then somebody thinks better of it.
        if self.dice.below(6) == 0 {
            let whole: String = before.iter().map(|line| format!("{}\n", line.text)).collect();
            self.repo.write(&path, &whole);
            lines = before;
        }
        self.files.insert(path, lines);
    }

    /// New lines; some stand in other files too, some in this one already.
    fn texts(&mut self, step: usize, path: &str, there: &[Line]) -> Vec<String> {
        let mut texts: Vec<String> = (0..=self.dice.below(3))
            .map(|at| format!("let value_{step}_{at} = compute_{}();", self.dice.below(1000)))
            .collect();
        if self.dice.below(2) == 0 {
            texts.push(EVERYWHERE[self.dice.below(EVERYWHERE.len())].to_owned());
        }
        if !there.is_empty() && self.dice.below(3) == 0 {
            texts.push(there[self.dice.below(there.len())].text.clone());
        }
        // Of another file.
        let others: Vec<&Line> =
            self.files.iter().filter(|(other, _)| *other != path).flat_map(|(_, lines)| lines).collect();
        if !others.is_empty() && self.dice.below(3) == 0 {
            texts.push(others[self.dice.below(others.len())].text.clone());
        }
        texts
    }

    /// Commits what there is, in one of the ways people do, and takes something out now and then.
    fn history(&mut self, step: usize) {
        self.commit_somehow(step);
        let path = format!("src/file{}.txt", self.dice.below(2));
        let Some(lines) = self.files.get_mut(&path).filter(|lines| lines.len() > 3) else { return };
        if self.dice.below(2) == 0 {
            let line = lines.remove(self.dice.below(lines.len()));
            // Where a copy of it stays, it has been moved there.
            for copy in lines.iter_mut().filter(|copy| copy.text == line.text) {
                copy.authors.extend(line.authors.clone());
            }
            self.gone.push((path.clone(), line));
            let whole: String = lines.iter().map(|line| format!("{}\n", line.text)).collect();
            self.repo.write(&path, &whole);
            commit(&self.repo, "something removed");
        }
    }

    fn commit_somehow(&mut self, step: usize) {
        let (repo, branch) = (&self.repo, format!("b{step}"));
        match self.dice.below(9) {
            0 => {}
            1 => commit(repo, "plain"),
            2 => {
                repo.git(&["add", "--all"]);
                repo.git(&["commit", "--quiet", "--amend", "--no-edit", "--allow-empty"]);
            }
            3 => {
                repo.git(&["switch", "--quiet", "--create", &branch]);
                commit(repo, "squash me");
                repo.git(&["switch", "--quiet", "main"]);
                repo.git(&["merge", "--quiet", "--squash", &branch]);
                commit(repo, "squashed");
            }
            4 => {
                repo.git(&["switch", "--quiet", "--create", &branch]);
                commit(repo, "rebase me");
                repo.git(&["switch", "--quiet", "main"]);
                repo.write(&format!("other{step}.txt"), "other\n");
                commit(repo, "beside");
                repo.git(&["rebase", "--quiet", "main", &branch]);
                repo.git(&["switch", "--quiet", "main"]);
                repo.git(&["merge", "--quiet", "--ff-only", &branch]);
            }
            5 => {
                repo.write(&format!("note{step}.txt"), "note\n");
                commit(repo, "to be reverted");
                repo.git(&["revert", "--no-edit", "HEAD"]);
                repo.git(&["revert", "--no-edit", "HEAD"]);
            }
            6 => {
                commit(repo, "to be squashed with all before");
                repo.git(&["reset", "--quiet", "--soft", &self.start]);
                commit(repo, "everything in one");
            }
            7 => {
                commit(repo, "to be picked");
                repo.git(&["switch", "--quiet", "--detach", "HEAD~1"]);
                repo.git(&["cherry-pick", "--allow-empty", "main"]);
                repo.git(&["branch", "--quiet", "--force", "main"]);
                repo.git(&["switch", "--quiet", "main"]);
            }
            _ => {
                repo.git(&["switch", "--quiet", "--create", &branch]);
                commit(repo, "to be merged");
                repo.git(&["switch", "--quiet", "main"]);
                repo.write(&format!("other{step}.txt"), "other\n");
                commit(repo, "beside");
                repo.git(&["merge", "--quiet", "--no-edit", "--no-ff", &branch]);
            }
        }
    }

    /// The lines of agents that are known, and how many there are.
    fn count(&self) -> (usize, usize) {
        let (mut known, mut all) = (0, 0);
        for (path, lines) in &self.files {
            for (at, line) in lines.iter().enumerate() {
                let subject = format!("{path}:{}", at + 1);
                let answer: Value =
                    serde_json::from_str(&self.repo.squad(&["why", &subject, "--json"]).out).expect("JSON");
                let named = answer["origins"].get(0).map(|origin| {
                    let text = |field: &str| origin[field].as_str().unwrap_or_default().to_owned();
                    (text("agent"), text("task"))
                });
                all += usize::from(!line.authors.is_empty());
                known += usize::from(named.is_some());
                let is_right = named.iter().all(|named| line.authors.contains(named));
                assert!(is_right, "seed {}: {subject}: {answer} but {:?}", self.seed, line.authors);
                assert_eq!(named.is_none(), answer["unknown"].is_string(), "{answer}");
            }
        }
        (known, all)
    }
}

fn commit(repo: &TestRepo, message: &str) {
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--allow-empty", "--message", message]);
}
