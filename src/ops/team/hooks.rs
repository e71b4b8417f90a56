//! Reports the git hooks that squad's own commits do not run.

use std::fs;

use crate::git::Repository;
use crate::model::list;

/// A local file that exists once the message was printed.
const REPORTED: &str = "hooks-said";

/// A message that squad's commit did not run the repository's hooks. `None` if there are none, or if it was printed
/// before.
pub(crate) fn skipped_hooks(repository: &Repository) -> Option<String> {
    let local = repository.common_dir().join("squad");
    let reported = local.join(REPORTED);
    if reported.exists() {
        return None;
    }
    let hooks = repository.commit_hooks();
    if hooks.is_empty() {
        return None;
    }
    // If the file cannot be written, the message is printed every time.
    let _ = fs::create_dir_all(local).and_then(|()| fs::write(&reported, ""));
    let hooks = list(hooks.iter().map(|hook| format!("`{hook}`")));
    Some(format!("squad's commit did not run this repository's hooks: {hooks}"))
}
