//! What the commands that change files have in common: their options, and the report of what they did.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Serialize;

use super::{Context, Ended};
use crate::env::real;
use crate::model::{IntoSet, printable, printable_line};
use crate::ops::change::{Changed, Conflict, Report, WriteMode};
use crate::ops::repository;
use crate::ui::Ui;

/// Whether changes are listed, shown as a patch, written, or committed.
#[derive(clap::Args)]
pub(super) struct WriteArgs {
    /// List what would change, and change nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Show what would change as a patch, and change nothing
    #[arg(long)]
    pub(super) diff: bool,
    /// Write the files but do not commit them
    #[arg(long)]
    no_commit: bool,
}

impl WriteArgs {
    pub(super) fn writes(&self) -> bool {
        !self.dry_run && !self.diff
    }

    pub(super) fn mode(&self) -> WriteMode {
        WriteMode::new(!self.writes(), self.no_commit)
    }
}

/// Shows the answer of a command that changes files: as JSON, or in `words`. If this call has just finished the same
/// command, stopped earlier, its commit is the one to name.
pub(super) fn show<T: Serialize>(
    context: &mut Context<'_>,
    mut changed: Changed<T>,
    as_patch: bool,
    words: impl FnOnce(&mut Ui, &Changed<T>),
) -> Ended {
    if let Some((_, commit)) = context.finished(&changed.kind) {
        changed.change.commit = changed.change.commit.or(commit);
    }
    if changed.change.commit.is_some() {
        context.say_passed_hooks();
    }
    if context.ui.json() {
        let mut value = serde_json::to_value(&changed).unwrap_or_default();
        if as_patch {
            value["diff"] = changed.change.diff.into();
        }
        context.ui.value(&value);
    } else {
        words(&mut context.ui, &changed);
    }
    Ok(0)
}

/// Lists the files, or shows the patch.
pub(super) fn say_files(ui: &mut Ui, report: &Report, as_patch: bool) {
    if as_patch {
        // A patch may end in an empty line of context.
        let diff = printable(&report.diff);
        return ui.data(diff.strip_suffix('\n').unwrap_or(&diff));
    }
    for file in &report.files {
        let from = file.from.as_ref().map(|from| format!("  (was {from})")).unwrap_or_default();
        ui.data(&printable_line(&format!("{:<8} {}{from}", file.change, file.path)));
    }
}

/// `, committed in 1a2b3c4d5e`, or why not.
pub(super) fn outcome(report: &Report) -> String {
    match (&report.commit, &report.uncommitted) {
        (Some(commit), _) => format!(", committed in {}", short(commit)),
        (None, Some(reason)) => format!(", not committed: {reason}"),
        (None, None) => ", not committed".to_owned(),
    }
}

/// `git`, as it is called where the user is, for paths that begin at the work tree's root.
pub(super) fn git_here(context: &Context<'_>) -> String {
    let Ok((_, root)) = repository(context.env, &context.directory) else { return "git".to_owned() };
    let (here, root) = (real(&context.env.directory), real(&root));
    let way = match here.strip_prefix(&root) {
        Ok(inner) if inner.as_os_str().is_empty() => return "git".to_owned(),
        Ok(inner) => vec![".."; inner.components().count()].join("/"),
        Err(_) => root.display().to_string(),
    };
    format!("git -C {}", quoted(&way))
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), Cow::into_owned)
}

/// The command that adds what was only written; `git`: see [`git_here`].
pub(super) fn to_add(report: &Report, git: &str) -> String {
    let folder = |path: &String| {
        let end = [".squad/", ".ai-team/"].into_iter().find_map(|name| Some(path.find(name)? + name.len() - 1));
        end.and_then(|end| path.get(..end)).unwrap_or(path).to_owned()
    };
    let paths = report.files.iter().flat_map(|file| file.from.iter().chain([&file.path]));
    let folders: BTreeSet<String> = paths.map(|path| quoted(&folder(path))).into_set();
    let add = format!("{git} add {}", folders.into_iter().collect::<Vec<_>>().join(" "));
    match &report.ignored {
        Some(path) => format!("delete the rule that `{git} check-ignore -v {}` names; then {add}", quoted(path)),
        None => add,
    }
}

/// The beginning of a commit's id, as people write it.
pub(super) fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}

/// Lists the files in conflict.
pub(super) fn say_conflicts(ui: &mut Ui, conflicts: &[Conflict], is_dry_run: bool) {
    for conflict in conflicts {
        let (verb, path) = (if is_dry_run { "would stay" } else { "stays" }, printable_line(&conflict.path));
        ui.warning(&format!("{path} {verb} as it is: you and squad changed the same lines"));
        ui.hint(&format!(
            "squad's version is {}; copy what you want from it, then delete it",
            printable_line(&conflict.new)
        ));
    }
}
