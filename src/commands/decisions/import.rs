use std::path::Path;

use crate::commands::change::short;
use crate::commands::{Context, Ended};
use crate::error::FailureKind;
use crate::model::{ChangeKind, list, plural, printable};
use crate::ops::change::WriteMode;
use crate::ops::decisions::import::{self, Import, Which};
use crate::ui::Ui;

/// Split decisions.md into one file for each decision
///
/// Moves each entry, word for word, to a file of its own under `.squad/decisions`, in one commit; a file that
/// becomes empty is deleted. Ids are derived from the entries, so two clones that import create the same files.
/// Imports what is committed on the branch: commit your changes first.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad decisions import --dry-run
  squad decisions import
  squad decisions import .squad/decisions/inbox/*.md
  squad decisions import --all")]
pub(super) struct Args {
    /// Files to import instead of decisions.md, such as notes in the inbox
    #[arg(value_name = "FILE")]
    files: Vec<String>,
    /// Import decisions.md, the inbox and archives
    #[arg(long, conflicts_with = "files")]
    all: bool,
    /// Show what would be imported and change nothing
    #[arg(long)]
    pub(super) dry_run: bool,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let project = super::project(context)?;
        let is_done = self.is_done(context);
        let which = match (self.all, self.files.is_empty()) {
            (true, _) => Which::All,
            (false, true) => Which::Main,
            (false, false) => Which::These(self.files),
        };
        let mode = WriteMode::new(self.dry_run, false);
        let import = match import::import(context.env, &project, &context.directory, &which, mode) {
            Err(failure) if is_done && failure.kind == FailureKind::Usage => Import::default(),
            answer => answer?,
        };
        let (undated, all) = (import.undated, import.imported.len());
        if undated * 2 > all {
            let message = format!("{undated} of {} have no date", plural(all, "entry"));
            context.ui.warning(&format!("{message}: some may be parts of other entries"));
            context.ui.hint("check with --dry-run, and give each decision a heading such as `### 2026-01-31: Title`");
        }
        if import.commit.is_some() {
            context.say_passed_hooks();
        }
        if context.ui.json() {
            context.ui.value(&import);
        } else {
            show(&mut context.ui, &import);
        }
        Ok(0)
    }
}

impl Args {
    /// Whether this call has just finished a stopped import of the same files.
    fn is_done(&self, context: &Context<'_>) -> bool {
        let Some((paths, Some(_))) = context.finished(&ChangeKind::ImportDecisions) else { return false };
        self.files.iter().all(|file| paths.iter().any(|path| Path::new(path).ends_with(file)))
    }
}

fn show(ui: &mut Ui, import: &Import) {
    if import.imported.is_empty() && import.left.is_empty() {
        return ui.say("There is nothing to import.");
    }
    for imported in &import.imported {
        let source = imported.source.as_ref().map(ToString::to_string).unwrap_or_default();
        ui.data(&printable(&format!("{}  {source}  {}", imported.id, imported.title)));
    }
    let count = plural(import.imported.len(), "decision");
    match &import.commit {
        _ if import.imported.is_empty() => {}
        Some(commit) => ui.say(&format!("{count} imported in {}.", short(commit))),
        None => ui.say(&format!("{count} would be imported.")),
    }
    for source in import.sources.iter().filter(|(_, kept)| kept.is_none()).map(|(path, _)| path) {
        ui.say(&format!("{} would be empty and is deleted.", printable(source)));
    }
    for place in &import.left {
        ui.warning(&format!(
            "{}: not imported, because this decision's own file has different text",
            printable(&place.to_string())
        ));
    }
    if !import.secrets.is_empty() {
        ui.warning(&format!("the entries contain what looks like secrets: {}", list(&import.secrets)));
        ui.hint("they are already in the repository's history; revoke them");
    }
}
