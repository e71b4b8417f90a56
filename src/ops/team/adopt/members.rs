//! Adds members to an existing team from role files of other hosts.

use std::collections::BTreeSet;

use serde::Serialize;

use super::roles::Roles;
use crate::error::Failure;
use crate::model::{ChangeKind, SkippedFile, list};
use crate::ops::Workspace;
use crate::ops::change::{Change, WriteMode};
use crate::ops::team::membership::{Base, changed_files};
use crate::parse;
use crate::store;

/// A role that became a member.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Joined {
    pub(crate) name: String,
    /// The role file.
    pub(crate) source: String,
}

/// Plans to add the roles that are not on the team yet. Also returns those roles, and the files that were skipped.
pub(super) fn join(workspace: &Workspace, mode: WriteMode) -> Result<(Change, Vec<Joined>, Vec<SkippedFile>), Failure> {
    if workspace.folder.name != store::FOLDERS[0] {
        return Err(Failure::team(format!("the team is still in {}", workspace.folder.name))
            .hint("`squad adopt` moves it; then `squad adopt --roles` adds the roles"));
    }
    let mut roles = Roles::read(&workspace.folder.root);
    let skipped = std::mem::take(&mut roles.skipped);
    let base = Base::read(workspace, mode)?;
    let (files, joined) = roles.join(base.files.clone())?;
    let files = changed_files(workspace, &base, &files, &BTreeSet::new())?;
    let joined: Vec<Joined> = joined.into_iter().map(|role| Joined { name: role.name, source: role.source }).collect();
    let message =
        format!("squad: add members from role files\n\n{}.\n", list(joined.iter().map(|joined| &joined.source)));
    Ok((Change::new(ChangeKind::AdoptRoles, message, files), joined, skipped))
}

/// The role files of a project that no member corresponds to.
pub(super) fn unused_roles(workspace: &Workspace) -> Vec<String> {
    let roles = Roles::read(&workspace.folder.root);
    if roles.all.is_empty() {
        return Vec::new();
    }
    let team = parse::team(&store::read_but_decisions(&workspace.folder).0).0;
    roles.all.iter().filter(|role| !role.is_member_of(&team)).map(|role| role.source.clone()).collect()
}
