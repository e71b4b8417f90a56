//! What a pull request decides, seen from two commits; and what several branches decide before they meet.

use std::collections::BTreeSet;

use serde::{Serialize, Serializer};

use super::commit::files_at;
use super::landing::as_recorded;
use super::prompts::{self, PromptChange};
use super::{Workspace, ledger};
use crate::error::Failure;
use crate::model::{Decision, DecisionId, RunId, Source, plural};
use crate::parse::{self, Files};
use crate::review::{self, Certainty, Changes, Conflict};

/// Two ends of a range, and where they part.
pub(crate) struct Range {
    pub(crate) base: Revision,
    pub(crate) head: Revision,
    fork: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Revision {
    /// As it was asked for.
    pub(crate) name: String,
    pub(crate) commit: String,
}

/// What a range decides.
#[derive(Serialize)]
pub(crate) struct Review {
    pub(crate) base: Revision,
    pub(crate) head: Revision,
    /// Where the two part; `None` where that is not known here, so that they are compared directly.
    pub(crate) merge_base: Option<String>,
    #[serde(flatten)]
    pub(crate) decisions: Decided,
    pub(crate) conflicts: Vec<Conflict>,
    /// Decisions that were made for this range and are not in it.
    pub(crate) unlanded: Vec<Unlanded>,
    pub(crate) prompts: Vec<PromptChange>,
    /// What could not be seen from here.
    pub(crate) notes: Vec<String>,
}

/// [`Changes`], each decision with the place it stands at.
pub(crate) struct Decided(pub(crate) Changes);

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Unlanded {
    #[serde(flatten)]
    pub(crate) decision: Decision,
    /// The branch it was made for.
    pub(crate) branch: Option<String>,
}

#[derive(Serialize)]
struct Located<'a> {
    #[serde(flatten)]
    decision: &'a Decision,
    source: &'a Option<Source>,
}

impl Serialize for Decided {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Shape<'a> {
            new: Vec<Located<'a>>,
            changed: Vec<Change<'a>>,
            superseded: Vec<Replaced<'a>>,
            withdrawn: Vec<Located<'a>>,
        }
        #[derive(Serialize)]
        struct Change<'a> {
            before: Located<'a>,
            after: Located<'a>,
            diff: &'a str,
        }
        #[derive(Serialize)]
        struct Replaced<'a> {
            decision: Located<'a>,
            by: &'a DecisionId,
        }
        let Changes { new, changed, superseded, withdrawn } = &self.0;
        let located = |decision| Located { decision, source: &decision.source };
        Shape {
            new: new.iter().map(located).collect(),
            changed: changed
                .iter()
                .map(|change| Change {
                    before: located(&change.before),
                    after: located(&change.after),
                    diff: &change.diff,
                })
                .collect(),
            superseded: superseded
                .iter()
                .map(|replaced| Replaced { decision: located(&replaced.decision), by: &replaced.by })
                .collect(),
            withdrawn: withdrawn.iter().map(located).collect(),
        }
        .serialize(serializer)
    }
}

impl Range {
    /// `BASE..HEAD`, `BASE...HEAD`, or `BASE` alone for what HEAD has on top of it. They mean the same: what HEAD adds
    /// since the two have parted.
    pub(crate) fn find(workspace: &Workspace, range: &str) -> Result<Self, Failure> {
        let (base, head) = range.split_once("...").or_else(|| range.split_once("..")).unwrap_or((range, ""));
        let or_head = |name: &str| if name.is_empty() { "HEAD".to_owned() } else { name.to_owned() };
        let (base, head) = (revision(workspace, or_head(base))?, revision(workspace, or_head(head))?);
        let fork = workspace.repository.merge_base(&base.commit, &head.commit)?;
        Ok(Self { base, head, fork })
    }

    /// What the range is compared with.
    fn start(&self) -> &str {
        self.fork.as_deref().unwrap_or(&self.base.commit)
    }
}

fn revision(workspace: &Workspace, name: String) -> Result<Revision, Failure> {
    match workspace.repository.resolve(&name)? {
        Some(commit) => Ok(Revision { name, commit }),
        None => Err(Failure::usage(format!("there is no commit `{name}` here"))
            .hint("in a shallow clone, fetch it first: `git fetch --unshallow`")),
    }
}

/// Looks at commits and the ledger, never at the work tree.
pub(crate) fn review(workspace: &Workspace, range: Range) -> Result<Review, Failure> {
    let start = files_at(workspace, range.start())?;
    let head = files_at(workspace, &range.head.commit)?;
    let base =
        if range.base.commit == range.start() { start.clone() } else { files_at(workspace, &range.base.commit)? };
    let (before, after, target) = (parse::decisions(&start), parse::decisions(&head), parse::decisions(&base));
    let decisions = review::changes(&before, &after);
    let mut notes = Vec::new();
    if range.fork.is_none() {
        notes.push(format!(
            "{} and {} have no common commit here, so they are compared directly; in a shallow clone, \
             `git fetch --unshallow` tells more.",
            range.base.name, range.head.name
        ));
    }
    let conflicts = conflicts(&decisions, &before, &after, &target);
    let unlanded = unlanded(workspace, &range, &decisions, &after, &mut notes)?;
    Ok(Review {
        prompts: prompts::changes(&start, &head),
        merge_base: range.fork,
        base: range.base,
        head: range.head,
        decisions: Decided(decisions),
        conflicts,
        unlanded,
        notes,
    })
}

/// How a range changes what agents are told.
pub(crate) fn prompt_changes(workspace: &Workspace, range: &Range) -> Result<Vec<PromptChange>, Failure> {
    Ok(prompts::changes(&files_at(workspace, range.start())?, &files_at(workspace, &range.head.commit)?))
}

/// What the range's decisions have against each other, against what stands beside them, and against what the base
/// decides by now.
fn conflicts(changes: &Changes, before: &[Decision], after: &[Decision], target: &[Decision]) -> Vec<Conflict> {
    let ours: Vec<Decision> =
        changes.new.iter().chain(changes.changed.iter().map(|changed| &changed.after)).cloned().collect();
    // What the range has withdrawn or replaced is no longer in its way, though the base still holds it.
    let gone: BTreeSet<&DecisionId> = changes
        .withdrawn
        .iter()
        .map(|decision| &decision.id)
        .chain(changes.changed.iter().map(|changed| &changed.before.id))
        .collect();
    let others: Vec<Decision> = after
        .iter()
        .chain(target.iter().filter(|decision| !after.iter().any(|ours| ours.id == decision.id)))
        .filter(|decision| !gone.contains(&decision.id))
        .cloned()
        .collect();
    let mut conflicts = review::within(&ours, &others);
    let known: BTreeSet<&DecisionId> = before.iter().chain(after).chain(target).map(|decision| &decision.id).collect();
    conflicts.extend(review::dangling(&ours, &known));
    conflicts
}

/// The decisions that the ledger has of the range's runs and branch, and that its head does not hold.
fn unlanded(
    workspace: &Workspace,
    range: &Range,
    changes: &Changes,
    after: &[Decision],
    notes: &mut Vec<String>,
) -> Result<Vec<Unlanded>, Failure> {
    let logged = ledger::decisions(&workspace.repository, &workspace.ledger_prefix())?;
    if workspace.repository.ledger().tip()?.is_none() {
        notes.push("The ledger is not here, so decisions that never landed could not be seen.".to_owned());
    }
    let mut runs: BTreeSet<RunId> = changes.new.iter().filter_map(|decision| decision.run.clone()).collect();
    let trailers = workspace.repository.trailers("Squad-Run", range.start(), &range.head.commit)?;
    runs.extend(trailers.iter().map(String::as_str).map(RunId::new));
    let branches = workspace.repository.branches_of(&range.head.name, &range.head.commit)?;
    let branches: Vec<Option<String>> = branches.iter().map(|branch| as_recorded(Some(branch))).collect();
    let here: BTreeSet<&DecisionId> = after.iter().map(|decision| &decision.id).collect();
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
    pub(crate) fn has_explicit_conflicts(&self) -> bool {
        self.conflicts.iter().any(|conflict| conflict.certainty == Certainty::Explicit)
    }

    /// The decisions by name, whichever side they stand on.
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

/// What several branches decide.
#[derive(Serialize)]
pub(crate) struct Radar {
    pub(crate) base: Revision,
    pub(crate) branches: Vec<Branch>,
    pub(crate) conflicts: Vec<Crossing>,
}

#[derive(Serialize)]
pub(crate) struct Branch {
    #[serde(flatten)]
    pub(crate) revision: Revision,
    /// The decisions it has and the base has not.
    pub(crate) new: Vec<DecisionId>,
    #[serde(skip)]
    decisions: Vec<Decision>,
}

/// What two branches have against each other.
#[derive(Serialize)]
pub(crate) struct Crossing {
    pub(crate) branches: [String; 2],
    #[serde(flatten)]
    pub(crate) conflict: Conflict,
}

/// Compares what branches decide before they meet. Without names: every branch, local and of remotes.
pub(crate) fn radar(workspace: &Workspace, base: Option<&str>, names: &[String]) -> Result<Radar, Failure> {
    let base = match base {
        Some(name) => revision(workspace, name.to_owned())?,
        None => default_base(workspace)?,
    };
    let revisions: Vec<Revision> = if names.is_empty() {
        let mut seen = BTreeSet::from([base.commit.clone()]);
        let all = workspace.repository.branches()?.into_iter();
        // A branch and its copy on the remote are one.
        all.filter(|(_, commit)| seen.insert(commit.clone())).map(|(name, commit)| Revision { name, commit }).collect()
    } else {
        names.iter().map(|name| revision(workspace, name.clone())).collect::<Result<_, _>>()?
    };
    let standing = parse::decisions(&files_at(workspace, &base.commit)?);
    let mut branches = Vec::new();
    for revision in revisions {
        let fork = workspace.repository.merge_base(&base.commit, &revision.commit)?;
        let start = fork.as_deref().map_or_else(|| Ok(Files::default()), |fork| files_at(workspace, fork))?;
        let before = parse::decisions(&start);
        let new = review::changes(&before, &parse::decisions(&files_at(workspace, &revision.commit)?)).new;
        // What the base has by now, it has from there.
        let new: Vec<Decision> =
            new.into_iter().filter(|decision| !standing.iter().any(|other| other.id == decision.id)).collect();
        if !new.is_empty() || !names.is_empty() {
            branches.push(Branch { revision, new: new.iter().map(|d| d.id.clone()).collect(), decisions: new });
        }
    }
    let mut conflicts = Vec::new();
    for (at, one) in branches.iter().enumerate() {
        for other in &branches[at + 1..] {
            let found = review::between(&one.decisions, &other.decisions, &standing).into_iter();
            conflicts.extend(found.map(|conflict| Crossing {
                branches: [one.revision.name.clone(), other.revision.name.clone()],
                conflict,
            }));
        }
    }
    conflicts.sort_by(|a, b| (a.conflict.certainty, &a.branches).cmp(&(b.conflict.certainty, &b.branches)));
    Ok(Radar { base, branches, conflicts })
}

/// Where branches usually go.
fn default_base(workspace: &Workspace) -> Result<Revision, Failure> {
    for name in ["origin/HEAD", "main", "master"] {
        if let Some(commit) = workspace.repository.resolve(name)? {
            return Ok(Revision { name: name.to_owned(), commit });
        }
    }
    revision(workspace, "HEAD".to_owned())
}
