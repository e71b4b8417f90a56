//! Role files of other hosts as members of a team that is there.

use std::collections::BTreeSet;

use serde::Serialize;

use super::plan::Left;
use super::roles::Roles;
use crate::error::Failure;
use crate::model::list;
use crate::ops::Workspace;
use crate::ops::team::changeset::Changeset;
use crate::ops::team::membership::{Base, Outlet, changed_files};
use crate::parse;
use crate::store;

/// A role that is a member now.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Joined {
    pub(crate) name: String,
    /// The file it is from.
    pub(crate) source: String,
}

/// Those that are not on the team yet, as a change of its files, and who they are.
pub(super) fn join(
    workspace: &Workspace,
    outlet: Outlet,
    command: &str,
) -> Result<(Changeset, Vec<Joined>, Vec<Left>), Failure> {
    if workspace.folder.name != store::FOLDERS[0] {
        return Err(Failure::team(format!("the team is in {} still", workspace.folder.name))
            .hint("`squad adopt` moves it; then `squad adopt --roles` adds the roles"));
    }
    let mut roles = Roles::read(&workspace.folder.root);
    let left = std::mem::take(&mut roles.left);
    let base = Base::read(workspace, outlet)?;
    let (files, joined) = roles.join(base.files.clone())?;
    let files = changed_files(workspace, &base, &files, &BTreeSet::new())?;
    let joined: Vec<Joined> = joined.into_iter().map(|role| Joined { name: role.name, source: role.source }).collect();
    let message =
        format!("squad: add members from role files\n\n{}.\n", list(joined.iter().map(|joined| &joined.source)));
    Ok((Changeset::new(command, message, files), joined, left))
}

/// The role files of a project of which no member has the name, for those who may want them.
pub(super) fn waiting(workspace: &Workspace) -> Vec<String> {
    let roles = Roles::read(&workspace.folder.root);
    if roles.all.is_empty() {
        return Vec::new();
    }
    let team = parse::team(&store::read_but_decisions(&workspace.folder).0).0;
    roles.all.iter().filter(|role| !role.is_on(&team)).map(|role| role.source.clone()).collect()
}
