//! What squad's own commits pass over.

use std::fs;

use crate::model::list;
use crate::ops::Workspace;

/// Kept beside the other local files; without it, it is said again.
const SAID: &str = "hooks-said";

/// That a commit of squad's did not run the repository's hooks: the first time, where it has some.
pub(crate) fn passed_over(workspace: &Workspace) -> Option<String> {
    let said = workspace.local().join(SAID);
    if said.exists() {
        return None;
    }
    let hooks = workspace.repository.commit_hooks();
    if hooks.is_empty() {
        return None;
    }
    // Where it cannot be kept, it is said every time.
    let _ = fs::create_dir_all(workspace.local()).and_then(|()| fs::write(&said, ""));
    let hooks = list(hooks.iter().map(|hook| format!("`{hook}`")));
    Some(format!("squad's commit did not run this repository's hooks: {hooks}"))
}
