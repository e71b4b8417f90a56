//! Compares the decisions of several branches before they are merged.

use std::collections::BTreeSet;
use std::rc::Rc;

use serde::Serialize;

use crate::compile;
use crate::error::Failure;
use crate::model::{Decision, DecisionId, IntoSet, Sort};
use crate::ops::Workspace;
use crate::ops::decisions::review::{Revision, revision};
use crate::ops::team::commit::{files_at, refuse_conflict_markers, state_at};
use crate::parse;
use crate::review::{self, Background, Conflict};

/// The decisions of several branches, and the conflicts between them.
#[derive(Serialize)]
pub(crate) struct Radar {
    pub(crate) base: Revision,
    pub(crate) branches: Vec<Branch>,
    pub(crate) conflicts: Vec<BranchConflict>,
}

#[derive(Serialize)]
pub(crate) struct Branch {
    #[serde(flatten)]
    pub(crate) revision: Revision,
    /// The decisions that it has and the base does not.
    pub(crate) new: Vec<DecisionId>,
    #[serde(skip)]
    decisions: Vec<Decision>,
    /// What the base has decided since the branch forked.
    #[serde(skip)]
    missed: Vec<Decision>,
}

/// A conflict between two branches, between a branch and what the base has decided since it forked, or within the base.
#[derive(Serialize)]
pub(crate) struct BranchConflict {
    /// The base, if it is one of them, comes second.
    pub(crate) branches: [String; 2],
    #[serde(flatten)]
    pub(crate) conflict: Conflict,
}

/// Compares branches. Without names: all local and remote branches.
pub(crate) fn radar(workspace: &Workspace, base: Option<&str>, names: &[String]) -> Result<Radar, Failure> {
    let base = match base {
        Some(name) => revision(workspace, name.to_owned())?,
        None => default_base(workspace)?,
    };
    let revisions: Vec<Revision> = if names.is_empty() {
        let mut seen = BTreeSet::from([base.commit.clone()]);
        let all = workspace.repository.branches()?.into_iter();
        // A branch and its remote copy count once.
        all.filter(|(_, commit)| seen.insert(commit.clone())).map(|(name, commit)| Revision { name, commit }).collect()
    } else {
        names.iter().map(|name| revision(workspace, name.clone())).collect::<Result<_, _>>()?
    };
    let tip = |revision: &Revision| {
        let files = files_at(workspace, &revision.commit)?;
        refuse_conflict_markers(&files, &revision.name).map(|()| parse::decisions(&files))
    };
    let standing = tip(&base)?;
    let mut branches = Vec::new();
    // Most branches fork from few states of the team, and many change nothing of it.
    let mut last = (state_at(workspace, &base.commit)?, Rc::new(standing.clone()));
    for revision in revisions {
        let fork = workspace.repository.merge_base(&base.commit, &revision.commit)?;
        let before = match &fork {
            None => Rc::default(),
            Some(fork) => {
                let state = state_at(workspace, fork)?;
                if last.0 != state {
                    last = (state, Rc::new(parse::decisions(&files_at(workspace, fork)?)));
                }
                Rc::clone(&last.1)
            }
        };
        let is_unchanged = fork.is_some() && names.is_empty() && state_at(workspace, &revision.commit)? == last.0;
        if is_unchanged {
            continue;
        }
        let new = review::changes(&before, &tip(&revision)?).new;
        // Decisions that the base has by now are no longer new.
        let new = without(&new, &standing);
        if !new.is_empty() || !names.is_empty() {
            let missed = without(&standing, &before);
            branches.push(Branch { revision, new: new.iter().map(|d| d.id.clone()).collect(), decisions: new, missed });
        }
    }
    // What was merged without a look at it, or decided on the base by two.
    let in_force: Vec<Decision> = compile::in_force(&standing).into_iter().cloned().collect();
    let of_base = |conflict| BranchConflict { branches: [base.name.clone(), base.name.clone()], conflict };
    let mut conflicts: Vec<_> = review::within(&in_force, &in_force).into_iter().map(of_base).collect();
    let background = Background::new(&standing, branches.iter().flat_map(|branch| &branch.decisions));
    for (at, one) in branches.iter().enumerate() {
        let others = branches[at + 1..].iter().map(|other| (&other.revision.name, &other.decisions));
        for (name, decisions) in others.chain([(&base.name, &one.missed)]) {
            let found = review::between(&one.decisions, decisions, &background).into_iter();
            conflicts.extend(
                found.map(|conflict| BranchConflict { branches: [one.revision.name.clone(), name.clone()], conflict }),
            );
        }
    }
    conflicts.stable_sort_by(|a, b| (a.conflict.certainty, &a.branches).cmp(&(b.conflict.certainty, &b.branches)));
    Ok(Radar { base, branches, conflicts })
}

/// The decisions that are not among the others.
fn without(decisions: &[Decision], others: &[Decision]) -> Vec<Decision> {
    let others: BTreeSet<&DecisionId> = others.iter().map(|other| &other.id).into_set();
    decisions.iter().filter(|decision| !others.contains(&decision.id)).cloned().collect()
}

/// The branch that others are usually merged into.
fn default_base(workspace: &Workspace) -> Result<Revision, Failure> {
    for name in ["origin/HEAD", "main", "master"] {
        if let Some(commit) = workspace.repository.resolve(name)? {
            return Ok(Revision { name: name.to_owned(), commit });
        }
    }
    revision(workspace, "HEAD".to_owned())
}
