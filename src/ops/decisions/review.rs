//! Reviews the decisions of a pull request by comparing two commits.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, Serializer};
use serde_json::json;

use crate::error::Failure;
use crate::model::{Decision, DecisionId, IntoMap, IntoSet, Problem, RunId, Severity, plural};
use crate::ops::Workspace;
use crate::ops::ledger::contents as ledger;
use crate::ops::ledger::contents::as_recorded;
use crate::ops::team::commit::{files_at, refuse_conflict_markers};
use crate::ops::team::prompts::{self, PromptChange, TeamOfFiles};
use crate::parse;
use crate::review::{self, Certainty, Changes, Conflict};
use crate::store;

/// A range of commits and its merge base.
#[derive(Clone)]
pub(crate) struct Range {
    pub(crate) base: Revision,
    pub(crate) head: Revision,
    fork: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Revision {
    /// As the user wrote it.
    pub(crate) name: String,
    pub(crate) commit: String,
}

/// A review of a range.
#[derive(Serialize)]
pub(crate) struct Review {
    /// The team's folder, relative to the repository's root.
    pub(crate) team: String,
    pub(crate) base: Revision,
    pub(crate) head: Revision,
    /// `None`: the two have no common commit here and are compared directly.
    pub(crate) merge_base: Option<String>,
    #[serde(flatten)]
    pub(crate) decisions: LocatedChanges,
    pub(crate) conflicts: Vec<Conflict>,
    /// Decisions that were made for this range but are not in it.
    pub(crate) unlanded: Vec<Unlanded>,
    pub(crate) prompts: Vec<PromptChange>,
    /// What the review could not see or read.
    pub(crate) notes: Vec<String>,
}

/// [`Changes`], serialized with each decision's file and line.
pub(crate) struct LocatedChanges(pub(crate) Changes);

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Unlanded {
    #[serde(flatten)]
    pub(crate) decision: Decision,
    /// The branch it was made for.
    pub(crate) branch: Option<String>,
}

impl Serialize for LocatedChanges {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Changes { new, changed, superseded, withdrawn } = &self.0;
        let located = |decision: &Decision| {
            let mut value = json!(decision);
            value["source"] = json!(decision.source);
            value
        };
        let all = |decisions: &[Decision]| decisions.iter().map(located).collect::<Vec<_>>();
        let changed = changed.iter().map(
            |change| json!({"before": located(&change.before), "after": located(&change.after), "diff": change.diff}),
        );
        let superseded =
            superseded.iter().map(|replaced| json!({"decision": located(&replaced.decision), "by": replaced.by}));
        json!({
            "new": all(new),
            "changed": changed.collect::<Vec<_>>(),
            "superseded": superseded.collect::<Vec<_>>(),
            "withdrawn": all(withdrawn),
        })
        .serialize(serializer)
    }
}

impl Range {
    /// Parses `BASE..HEAD`, `BASE...HEAD` or `BASE`, which stands for `BASE..HEAD`. All mean the same: what HEAD adds
    /// since the merge base.
    pub(crate) fn find(workspace: &Workspace, range: &str) -> Result<Self, Failure> {
        let (base, head) = range.split_once("...").or_else(|| range.split_once("..")).unwrap_or((range, ""));
        let or_head = |name: &str| if name.is_empty() { "HEAD".to_owned() } else { name.to_owned() };
        let (base, head) = (revision(workspace, or_head(base))?, revision(workspace, or_head(head))?);
        let fork = workspace.repository.merge_base(&base.commit, &head.commit)?;
        Ok(Self { base, head, fork })
    }

    /// The commit that the range is compared with.
    fn start(&self) -> &str {
        self.fork.as_deref().unwrap_or(&self.base.commit)
    }
}

pub(in crate::ops) fn revision(workspace: &Workspace, name: String) -> Result<Revision, Failure> {
    match workspace.repository.resolve(&name)? {
        Some(commit) => Ok(Revision { name, commit }),
        None if workspace.repository.head()?.commit.is_none() => {
            Err(Failure::usage("this branch has no commit yet").hint("commit the team first"))
        }
        None => {
            let failure = Failure::usage(format!("there is no commit `{name}` here"));
            Err(match workspace.repository.is_shallow() {
                true => failure.hint("this clone is shallow; fetch it: `git fetch --unshallow`"),
                false => failure.hint("`git branch --all` lists the branches; a remote's may have to be fetched first"),
            })
        }
    }
}

/// How many teams one review covers. A folder that is repeated can make any number of them.
const MAX_TEAMS: usize = 500;

/// Reviews all teams of either end of the range, and keeps the reviews that are not empty; if all are, returns the one
/// of the repository's root.
pub(crate) fn of_all_teams(workspace: &Workspace, range: &Range) -> Result<Vec<Review>, Failure> {
    let root = workspace.of_team("", store::FOLDERS[0]);
    let mut places = BTreeSet::new();
    for commit in [range.start(), &range.head.commit] {
        let folders = workspace.repository.folders_named(commit, &store::FOLDERS)?;
        places.extend(folders.iter().map(|folder| folder.rsplit_once('/').map_or("", |(place, _)| place).to_owned()));
    }
    // A folder inside a team's folder, such as a template, is not a team.
    places.retain(|place| !place.split('/').any(|part| store::FOLDERS.contains(&part)));
    let teams = places.iter().take(MAX_TEAMS).map(|place| workspace.of_team(place, store::FOLDERS[0]));
    if let Some(next) = places.iter().nth(MAX_TEAMS) {
        let why = format!("there are {} teams, and at most {MAX_TEAMS} are reviewed", places.len());
        workspace.repository.damage().add_passed_over(&format!("{}:{next}", range.head.name), &why);
    }
    let mut reviews = teams.map(|team| review(&team, range.clone())).collect::<Result<Vec<_>, _>>()?;
    reviews.retain(|review| !review.is_empty());
    if reviews.is_empty() {
        reviews.push(review(&root, range.clone())?);
    }
    Ok(reviews)
}

/// Reviews a range from commits and the ledger, never from the work tree.
pub(crate) fn review(workspace: &Workspace, range: Range) -> Result<Review, Failure> {
    let activity = workspace.repository.damage().activity();
    activity.begin("reading both teams");
    let head = files_at(workspace, &range.head.commit)?;
    refuse_conflict_markers(&head, &range.head.name)?;
    let (start, head) = (TeamOfFiles::new(files_at(workspace, range.start())?), TeamOfFiles::new(head));
    let (before, after) = (start.decisions(), head.decisions());
    let mut unmerged = Vec::new();
    let target = if range.base.commit == range.start() {
        before.clone()
    } else {
        let base = files_at(workspace, &range.base.commit)?;
        unmerged = parse::conflicts(&base);
        parse::decisions(&base)
    };
    unmerged.extend(parse::conflicts(&start.files));
    let decisions = review::changes(&before, &after);
    let mut notes = new_problems(&start.problems, &head.problems);
    // No error for conflict markers in the base: the range may be the fix.
    notes.extend(
        unmerged
            .iter()
            .take(1)
            .map(|problem| format!("{problem} in `{}`, so nothing in it is compared.", range.base.name)),
    );
    if range.fork.is_none() {
        let way_out = if workspace.repository.is_shallow() { "; run `git fetch --unshallow`" } else { "" };
        notes.push(format!(
            "{} and {} have no common commit here, so they are compared directly{way_out}.",
            range.base.name, range.head.name
        ));
    }
    activity.begin("comparing decisions and prompts");
    let conflicts = conflicts(&decisions, &before, &after, &target);
    let unlanded = unlanded(workspace, &range, &decisions, &after, &mut notes)?;
    Ok(Review {
        team: workspace.folder_in_repository(),
        prompts: prompts::changes(&start, &head),
        merge_base: range.fork,
        base: range.base,
        head: range.head,
        decisions: LocatedChanges(decisions),
        conflicts,
        unlanded,
        notes,
    })
}

/// How a range changes the agents' prompts.
pub(crate) fn prompt_changes(workspace: &Workspace, range: &Range) -> Result<Vec<PromptChange>, Failure> {
    let head = files_at(workspace, &range.head.commit)?;
    refuse_conflict_markers(&head, &range.head.name)?;
    let start = files_at(workspace, range.start())?;
    // Without one of the files, prompts would seem to have lost what it says.
    match workspace.repository.damage().passed_over().into_iter().next() {
        Some(problem) => Err(Failure::of_problem(&problem)),
        None => Ok(prompts::changes(&TeamOfFiles::new(start), &TeamOfFiles::new(head))),
    }
}

/// Problems in the team's files that the range adds.
fn new_problems(known: &[Problem], problems: &[Problem]) -> Vec<String> {
    let known: BTreeSet<_> = known.iter().map(|problem| (&problem.file, &problem.message)).into_set();
    let is_new =
        |problem: &&Problem| problem.severity > Severity::Note && !known.contains(&(&problem.file, &problem.message));
    let line = |problem: &Problem| format!("{}:{}: {}.", problem.file, problem.line, problem.message);
    problems.iter().filter(is_new).map(line).collect()
}

/// Conflicts of the range's decisions with each other, with the other decisions at its head, and with the base's current
/// decisions.
fn conflicts(changes: &Changes, before: &[Decision], after: &[Decision], target: &[Decision]) -> Vec<Conflict> {
    let ours: Vec<Decision> =
        changes.new.iter().chain(changes.changed.iter().map(|changed| &changed.after)).cloned().collect();
    // Decisions that the range withdrew or replaced do not conflict, even if the base still has them. Neither do those
    // that the base has withdrawn since, even if the range still has them.
    let (here, there) = (ids(after), ids(target));
    let gone: BTreeSet<&DecisionId> = changes
        .withdrawn
        .iter()
        .chain(changes.changed.iter().map(|changed| &changed.before))
        .chain(before.iter().filter(|decision| !there.contains(&decision.id)))
        .map(|decision| &decision.id)
        .into_set();
    let others: Vec<Decision> = after
        .iter()
        .chain(target.iter().filter(|decision| !here.contains(&decision.id)))
        .filter(|decision| !gone.contains(&decision.id))
        .cloned()
        .collect();
    let mut conflicts = review::within(&ours, &others);
    let known = &(&ids(before) | &here) | &there;
    conflicts.extend(review::dangling(&ours, &known));
    let old = old_conflicts(changes, before);
    conflicts.retain(|conflict| !old.contains(&(conflict.code, conflict.decisions.iter().into_set())));
    conflicts
}

fn ids(decisions: &[Decision]) -> BTreeSet<&DecisionId> {
    decisions.iter().map(|decision| &decision.id).into_set()
}

/// Conflicts that the changed decisions had before the change, which the range did not cause. Uses their new ids.
fn old_conflicts<'d>(
    changes: &'d Changes,
    before: &'d [Decision],
) -> BTreeSet<(&'static str, BTreeSet<&'d DecisionId>)> {
    let earlier: Vec<Decision> = changes.changed.iter().map(|changed| changed.before.clone()).collect();
    let ids_now: BTreeMap<&DecisionId, &DecisionId> = before
        .iter()
        .map(|decision| (&decision.id, &decision.id))
        .chain(changes.changed.iter().map(|changed| (&changed.before.id, &changed.after.id)))
        .into_map();
    let mut old = review::within(&earlier, before);
    old.extend(review::dangling(&earlier, &ids(before)));
    let now = |conflict: &Conflict| conflict.decisions.iter().filter_map(|id| ids_now.get(id).copied()).into_set();
    old.iter().map(|conflict| (conflict.code, now(conflict))).into_set()
}

/// Decisions that the ledger has for the range's runs or branch, but that are missing at its head.
fn unlanded(
    workspace: &Workspace,
    range: &Range,
    changes: &Changes,
    after: &[Decision],
    notes: &mut Vec<String>,
) -> Result<Vec<Unlanded>, Failure> {
    let logged = ledger::decisions(&workspace.repository, &workspace.ledger_prefix())?;
    if workspace.repository.ledger().tip()?.is_none() {
        notes.push("This clone has no ledger, so decisions that never landed are not shown.".to_owned());
    }
    let mut runs: BTreeSet<RunId> = changes.new.iter().filter_map(|decision| decision.run.clone()).into_set();
    let trailers = workspace.repository.trailers("Squad-Run", range.start(), &range.head.commit)?;
    runs.extend(trailers.iter().filter_map(|run| RunId::parse(run)));
    let branches = workspace.repository.branches_of(&range.head.name, &range.head.commit)?;
    let branches: Vec<Option<String>> = branches.iter().map(|branch| as_recorded(Some(branch))).collect();
    let here: BTreeSet<&DecisionId> = after.iter().map(|decision| &decision.id).into_set();
    let belongs = |logged: &ledger::LoggedDecision| {
        logged.decision.run.as_ref().is_some_and(|run| runs.contains(run))
            || (logged.branch.is_some() && branches.contains(&logged.branch))
    };
    Ok(logged
        .into_iter()
        .filter(|logged| logged.landed.is_empty() && !here.contains(&logged.decision.id) && belongs(logged))
        .map(|logged| Unlanded { decision: logged.decision, branch: logged.branch })
        .collect())
}

impl Review {
    fn is_empty(&self) -> bool {
        let Changes { new, changed, superseded, withdrawn } = &self.decisions.0;
        let has_no_changes = new.is_empty() && changed.is_empty() && superseded.is_empty() && withdrawn.is_empty();
        has_no_changes && self.conflicts.is_empty() && self.unlanded.is_empty() && self.prompts.is_empty()
    }

    pub(crate) fn has_explicit_conflicts(&self) -> bool {
        self.conflicts.iter().any(|conflict| conflict.certainty == Certainty::Explicit)
    }

    /// One line about the review: `2 new, 1 changed`.
    pub(crate) fn summary(&self) -> String {
        let Changes { new, changed, superseded, withdrawn } = &self.decisions.0;
        let mut parts: Vec<String> = [
            (new.len(), "new"),
            (changed.len(), "changed"),
            (superseded.len(), "superseded"),
            (withdrawn.len(), "withdrawn"),
        ]
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        if parts.is_empty() {
            parts.push("no decision changes".to_owned());
        }
        for (count, what) in [(self.unlanded.len(), "never landed"), (self.prompts.len(), "")] {
            match (count, what) {
                (0, _) => {}
                (count, "") => parts.push(format!("the prompts of {} change", plural(count, "agent"))),
                (count, what) => parts.push(format!("{count} {what}")),
            }
        }
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Source;

    /// How bad it is × where it stood before.
    #[test]
    fn only_what_the_range_makes_worse_is_noted() {
        let problem = |severity, line| Problem::new(severity, Source::new("team.md", line), "code", "it is odd");
        for (severity, is_said) in [(Severity::Note, false), (Severity::Warning, true), (Severity::Error, true)] {
            let found = [problem(severity, 3)];
            assert_eq!(new_problems(&[], &found) == ["team.md:3: it is odd."], is_said);
            assert!(new_problems(&found, &[problem(severity, 9)]).is_empty(), "it has only moved");
        }
    }
}
