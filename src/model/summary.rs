//! What the work of a run comes to, in the words that the screen, the log and prompts share.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::outcome::remarks;
use super::{
    AgentGitChanges, Change, ChangeClass, ChangeEvidence, GitChanges, Outcome, RefChange, Slug, WorkReport, first_line,
    list, plural, printable_line,
};

/// The changes of a run, each once however many agents report it.
#[derive(Debug, Default)]
struct ChangeSummary {
    /// Agents in order of appearance; those that changed nothing have none.
    own: Vec<(Slug, FileCount)>,
    /// Several agents were at work, any of whom may have made them.
    together: BTreeMap<Vec<Slug>, FileCount>,
    /// Nobody of the run made them.
    others: BTreeMap<ChangeClass, FileCount>,
    git: Vec<(Slug, GitChanges)>,
    git_together: BTreeMap<Vec<Slug>, GitChanges>,
    git_unknown: GitChanges,
    skipped: BTreeSet<Slug>,
    /// What they changed is not known.
    unseen: BTreeSet<Slug>,
}

#[derive(Debug, Default)]
struct FileCount {
    paths: BTreeSet<String>,
    added: u64,
    removed: u64,
}

impl FileCount {
    fn add(&mut self, change: &Change) {
        self.paths.insert(change.path.clone());
        self.added += change.added.unwrap_or_default();
        self.removed += change.removed.unwrap_or_default();
    }
}

impl fmt::Display for FileCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (+{} -{})", plural(self.paths.len(), "file"), self.added, self.removed)
    }
}

impl ChangeSummary {
    fn of(work: &[WorkReport]) -> Self {
        let mut summary = Self::default();
        let mut seen: BTreeSet<(&str, ChangeClass, &[Slug], Option<u32>)> = BTreeSet::new();
        for WorkReport { agent, step, status, changed, git, .. } in work.iter().filter(|work| work.step.is_some()) {
            if *status == Outcome::Skipped {
                summary.skipped.insert(agent.clone());
                continue;
            }
            let Some(changed) = changed else {
                summary.unseen.extend((*status != Outcome::Lost).then(|| agent.clone()));
                continue;
            };
            summary.of_agent(agent);
            for change in changed {
                let is_own = change.class == ChangeClass::Own;
                // Those who worked in the same step report the same changes.
                if !is_own && !seen.insert((&change.path, change.class, &change.by, *step)) {
                    continue;
                }
                match change.class {
                    ChangeClass::Own => summary.of_agent(agent).add(change),
                    ChangeClass::Together => summary.together.entry(change.by.clone()).or_default().add(change),
                    class => summary.others.entry(class).or_default().add(change),
                }
            }
            match summary.git.iter_mut().find(|(known, _)| known == agent) {
                Some((_, all)) => all.extend(&git.own),
                None => summary.git.push((agent.clone(), git.own.clone())),
            }
            summary.git_unknown.extend(&git.unknown);
            for shared in &git.together {
                summary.git_together.entry(shared.by.clone()).or_default().extend(&shared.changes);
            }
        }
        summary
    }

    fn of_agent(&mut self, agent: &Slug) -> &mut FileCount {
        let at = self.own.iter().position(|(known, _)| known == agent).unwrap_or_else(|| {
            self.own.push((agent.clone(), FileCount::default()));
            self.own.len() - 1
        });
        &mut self.own[at].1
    }

    /// Whether an agent may have changed a file or the repository.
    fn has_changed(&self, agent: &Slug) -> bool {
        self.together.keys().chain(self.git_together.keys()).any(|by| by.contains(agent))
            || self.own.iter().any(|(known, count)| known == agent && !count.paths.is_empty())
            || self.git.iter().any(|(known, git)| known == agent && !git.is_empty())
    }
}

/// Clauses, each with a semicolon before it.
impl fmt::Display for ChangeSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (agent, count) in self.own.iter().filter(|(_, count)| !count.paths.is_empty()) {
            write!(f, "; {agent} changed {count}")?;
        }
        for (by, count) in &self.together {
            write!(f, "; {} ({}): {count}", ChangeClass::Together, together(by))?;
        }
        for (agent, git) in self.git.iter().filter(|(_, git)| !git.is_empty()) {
            write!(f, "; {agent} changed git: {git}")?;
        }
        for (by, git) in &self.git_together {
            write!(f, "; {} ({}) changed git: {git}", ChangeClass::Together, together(by))?;
        }
        for (class, count) in &self.others {
            write!(f, "; {class}: {count}")?;
        }
        if !self.git_unknown.is_empty() {
            write!(f, "; {}: changed git: {}", ChangeClass::Unknown, self.git_unknown)?;
        }
        let idle = self.own.iter().map(|(agent, _)| agent).filter(|agent| !self.has_changed(agent));
        let idle: Vec<&Slug> = idle.collect();
        let has_worked = |agent: &Slug| self.own.iter().any(|(known, _)| known == agent);
        let notes = [
            (idle, "changed nothing"),
            (self.skipped.iter().filter(|agent| !has_worked(agent)).collect(), "skipped"),
            (self.unseen.iter().collect(), "may have changed files unseen"),
        ];
        for (agents, what) in notes.into_iter().filter(|(agents, _)| !agents.is_empty()) {
            write!(f, "; {} {what}", list(agents))?;
        }
        Ok(())
    }
}

/// Who worked together: an agent that is alone did with another run.
pub(crate) fn together(by: &[Slug]) -> String {
    match by {
        [agent] => format!("{agent} and another run"),
        by => list(by),
    }
}

/// `failed (exit 3): no such file`
pub(crate) fn failure(exit_code: Option<i64>, result: &str) -> String {
    let code = exit_code.map(|code| format!(" (exit {code})")).unwrap_or_default();
    match first_line(result, RESULT) {
        line if line.is_empty() => format!("failed{code}"),
        line => format!("failed{code}: {line}"),
    }
}

/// One line about a run's end. `spent`: time and tokens.
pub(crate) fn run_end(status: Outcome, rejections: u64, agents: usize, spent: &str, work: &[WorkReport]) -> String {
    let after = match rejections {
        0 => String::new(),
        count => format!(", after {}", plural(count as usize, "rejection")),
    };
    let agents = if agents == 0 { "nobody".to_owned() } else { plural(agents, "agent") };
    format!("{status}{after}: {agents}, {spent}{}{}", ChangeSummary::of(work), remarks_on(work))
}

/// The remarks on all work, for a line about the run: `; ada: 1 command failed`. A check that failed is left out if one
/// passed in a later step or attempt.
fn remarks_on(work: &[WorkReport]) -> String {
    let passed = work.iter().filter(|work| work.check.as_ref().is_some_and(|check| check.passed));
    let last_passed = passed.map(WorkReport::position).max();
    let of_agent = work.iter().filter_map(|work| {
        let check = work.check.as_ref().filter(|_| last_passed.is_none_or(|passed| passed <= work.position()));
        let remarks = remarks(work.no_tool_used, work.commands, check);
        (!remarks.is_empty()).then(|| format!("; {}: {}", work.agent, remarks.join(", ")))
    });
    of_agent.collect()
}

impl WorkReport {
    fn position(&self) -> (Option<u32>, Option<u32>) {
        (self.step, self.attempt)
    }
}

/// `src/a.rs (+3 -1; together: ada and bob)`
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.added.zip(self.removed).map(|(added, removed)| format!("+{added} -{removed}"));
        let how = (self.how == Some(ChangeEvidence::Command)).then(|| "by a command".to_owned());
        let parts: Vec<String> = lines.into_iter().chain(self.whose()).chain(how).collect();
        f.write_str(&printable_line(&self.path))?;
        if parts.is_empty() { Ok(()) } else { write!(f, " ({})", parts.join("; ")) }
    }
}

impl Change {
    /// Who made it, if not the agent alone.
    pub(crate) fn whose(&self) -> Option<String> {
        let class = self.class;
        Some(match class {
            ChangeClass::Own => return None,
            ChangeClass::Together => format!("{class}: {}", together(&self.by)),
            ChangeClass::Yours => format!("{class}: the person or another program"),
            ChangeClass::OtherRun => class.to_string(),
            ChangeClass::Unknown => format!("{class}: while the run was interrupted"),
        })
    }
}

/// Characters shown of a result.
const RESULT: usize = 90;
/// The most commits or refs that are named.
const NAMED: usize = 3;

impl fmt::Display for GitChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { commits, refs, config, hooks, index } = self;
        let mut parts = Vec::new();
        if !commits.is_empty() {
            let short = commits.iter().map(|commit| commit.get(..7).unwrap_or(commit));
            parts.push(format!("{} ({})", plural(commits.len(), "commit"), named(short, commits.len())));
        }
        // The branch of new commits has moved with them.
        let is_news =
            |moved: &&RefChange| commits.is_empty() || !moved.to.as_ref().is_some_and(|to| commits.contains(to));
        let refs: Vec<String> = refs.iter().filter(is_news).map(RefChange::to_string).collect();
        parts.extend((!refs.is_empty()).then(|| named(&refs, refs.len())));
        parts.extend((!config.is_empty()).then(|| format!("configuration {}", named(config, config.len()))));
        parts.extend((!hooks.is_empty()).then(|| format!("hooks {}", named(hooks, hooks.len()))));
        parts.extend((!index.is_empty()).then(|| format!("{} staged or unstaged", plural(index.len(), "path"))));
        f.write_str(&parts.join(", "))
    }
}

impl fmt::Display for AgentGitChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = (!self.own.is_empty()).then(|| self.own.to_string());
        let shared = self.together.iter();
        let shared =
            shared.map(|shared| format!("{} ({}): {}", ChangeClass::Together, together(&shared.by), shared.changes));
        let unknown = (!self.unknown.is_empty()).then(|| format!("{}: {}", ChangeClass::Unknown, self.unknown));
        f.write_str(&own.into_iter().chain(shared).chain(unknown).collect::<Vec<_>>().join("; "))
    }
}

fn named(names: impl IntoIterator<Item = impl fmt::Display>, count: usize) -> String {
    let shown = list(names.into_iter().take(NAMED));
    if count > NAMED { format!("{shown} and {} more", count - NAMED) } else { shown }
}

impl fmt::Display for RefChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, from, to } = self;
        let short = |value: &str| {
            let value = value.strip_prefix("refs/heads/").unwrap_or(value);
            let is_id = value.len() >= 40 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
            if is_id { value.get(..7).unwrap_or(value).to_owned() } else { value.to_owned() }
        };
        let name = match name.split_at_checked("refs/heads/".len()) {
            Some(("refs/heads/", branch)) => format!("branch {branch}"),
            _ if name == "refs/stash" => "the stash".to_owned(),
            _ => name.strip_prefix("refs/tags/").map_or_else(|| name.clone(), |tag| format!("tag {tag}")),
        };
        match (from, to) {
            (Some(_), None) => write!(f, "{name} deleted"),
            (None, Some(_)) => write!(f, "{name} created"),
            (Some(from), Some(to)) => write!(f, "{name} moved from {} to {}", short(from), short(to)),
            (None, None) => f.write_str(&name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CheckRun, CommandCounts, Usage};

    fn slug(name: &str) -> Slug {
        Slug::fold(name).expect("a slug")
    }

    fn change(path: &str, class: ChangeClass, by: &[&str]) -> Change {
        let by = by.iter().map(|name| slug(name)).collect();
        Change { path: path.to_owned(), added: Some(2), removed: Some(1), class, by, ..Change::default() }
    }

    fn work(agent: &str, changed: Vec<Change>, own: GitChanges) -> WorkReport {
        let git = AgentGitChanges { own, ..AgentGitChanges::default() };
        WorkReport {
            agent: slug(agent),
            step: Some(1),
            attempt: Some(1),
            status: Outcome::Completed,
            changed: Some(changed),
            refused: 0,
            verified: None,
            git,
            commands: CommandCounts::default(),
            check: None,
            no_tool_used: false,
            reason: String::new(),
            usage: Usage::default(),
        }
    }

    /// Own, shared, git's and others' changes: who changed nothing.
    #[test]
    fn who_changed_anything_did_not_change_nothing() {
        let hooks = GitChanges { hooks: vec!["pre-commit".to_owned()], ..GitChanges::default() };
        let none = GitChanges::default();
        for (changed, git, is_idle) in [
            (vec![], &none, true),
            (vec![], &hooks, false),
            (vec![change("a", ChangeClass::Own, &["ada"])], &none, false),
            (vec![change("a", ChangeClass::Together, &["ada", "bob"])], &none, false),
            (vec![change("a", ChangeClass::Yours, &[])], &none, true),
            (vec![change("a", ChangeClass::Yours, &[])], &hooks, false),
        ] {
            let said = ChangeSummary::of(&[work("ada", changed, git.clone())]).to_string();
            assert_eq!(said.contains("ada changed nothing"), is_idle, "{said}");
        }
    }

    /// Who worked and was skipped in another step, before or after, is not called skipped.
    #[test]
    fn only_who_never_worked_was_skipped() {
        let none = GitChanges::default;
        let of = |what: &str, agent: &str| {
            let changed = if what == "changed" { vec![change("a", ChangeClass::Own, &[agent])] } else { vec![] };
            let status = if what == "skipped" { Outcome::Skipped } else { Outcome::Completed };
            WorkReport { status, ..work(agent, changed, none()) }
        };
        for (first, second, said) in [
            ("skipped", "skipped", "; ada skipped"),
            ("idle", "skipped", "; ada changed nothing"),
            ("skipped", "idle", "; ada changed nothing"),
            ("changed", "skipped", "; ada changed 1 file (+2 -1)"),
            ("skipped", "changed", "; ada changed 1 file (+2 -1)"),
        ] {
            let both = [of(first, "ada"), WorkReport { step: Some(2), ..of(second, "ada") }];
            assert_eq!(ChangeSummary::of(&both).to_string(), said, "{first}, then {second}");
            // Another agent's work is not its own.
            let beside = ChangeSummary::of(&[&both[..], &[of("idle", "bob")]].concat()).to_string();
            assert_eq!(beside.contains("skipped"), said.contains("skipped"), "{beside}");
        }
    }

    /// Each class × two agents in one step, and one after the other: only those who worked side by side report the same
    /// change.
    #[test]
    fn a_file_that_changed_in_two_steps_changed_twice() {
        for (class, one, two) in [
            (ChangeClass::Together, "(+2 -1)", "(+4 -2)"),
            (ChangeClass::Yours, "(+2 -1)", "(+4 -2)"),
            (ChangeClass::OtherRun, "(+2 -1)", "(+4 -2)"),
            (ChangeClass::Unknown, "(+2 -1)", "(+4 -2)"),
        ] {
            let by: &[&str] = if class == ChangeClass::Together { &["ada", "bob"] } else { &[] };
            let report = |agent, step| {
                let work = work(agent, vec![change("a", class, by)], GitChanges::default());
                WorkReport { step: Some(step), ..work }
            };
            for (step, counted) in [(1, one), (2, two)] {
                let said = ChangeSummary::of(&[report("ada", 1), report("bob", step)]).to_string();
                assert!(said.contains(&format!("1 file {counted}")), "step {step}: {said}");
            }
        }
    }

    /// Checks one after the other, by steps and by attempts: what failed before the last one that passed is over.
    #[test]
    fn only_checks_that_failed_since_the_last_pass_are_told() {
        for (checks, told) in
            [("f", "0"), ("fp", ""), ("pf", "1"), ("pfp", ""), ("pfpf", "3"), ("fpff", "23"), ("f-", "0"), ("-p", "")]
        {
            for is_by_step in [true, false] {
                let report = |(place, check): (usize, char)| {
                    let passed = check == 'p';
                    let run = CheckRun { command: format!("make test{place}"), passed, exit_code: None };
                    let number = u32::try_from(place).ok();
                    let (step, attempt) = if is_by_step { (number, Some(1)) } else { (Some(1), number) };
                    let check = Some(run).filter(|_| check != '-');
                    WorkReport { step, attempt, check, ..work("ada", vec![], GitChanges::default()) }
                };
                let reports: Vec<WorkReport> = checks.chars().enumerate().map(report).collect();
                let said = remarks_on(&reports);
                let is_told = |place: &usize| said.contains(&format!("make test{place}"));
                let found: String = (0..checks.len()).filter(is_told).map(|place| place.to_string()).collect();
                assert_eq!(found, told, "{checks}, by step: {is_by_step}: {said}");
            }
        }
    }

    #[test]
    fn each_change_is_counted_once_and_for_who_made_it() {
        let shared = || {
            vec![
                change("both", ChangeClass::Together, &["ada", "bob"]),
                change("mine", ChangeClass::Yours, &[]),
                change("theirs", ChangeClass::OtherRun, &[]),
                change("down", ChangeClass::Unknown, &[]),
            ]
        };
        let of_ada = [vec![change("a", ChangeClass::Own, &["ada"])], shared()].concat();
        let main = RefChange { name: "refs/heads/main".to_owned(), from: None, to: Some("c".repeat(40)) };
        let tag = RefChange { name: "refs/tags/v1".to_owned(), from: None, to: Some("d".repeat(40)) };
        let git = GitChanges {
            commits: vec!["c".repeat(40)],
            refs: vec![main, tag],
            config: vec!["core.hooksPath".to_owned()],
            hooks: vec!["pre-commit".to_owned()],
            index: vec!["x".to_owned()],
        };
        let reports = [work("ada", of_ada, GitChanges::default()), work("bob", shared(), git)];
        let eve = work("eve", vec![change("mine", ChangeClass::Yours, &[])], GitChanges::default());
        assert_eq!(
            ChangeSummary::of(&[&reports[..], &[eve]].concat()).to_string(),
            "; ada changed 1 file (+2 -1); together (ada and bob): 1 file (+2 -1); bob changed git: 1 commit (ccccccc), tag \
             v1 created, configuration core.hooksPath, hooks pre-commit, 1 path staged or unstaged; yours: 1 file (+2 -1); \
             other run: 1 file (+2 -1); unknown: 1 file (+2 -1); eve changed nothing"
        );
    }
}
