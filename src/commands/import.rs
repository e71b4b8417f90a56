use std::path::PathBuf;

use super::change::short;
use super::{Context, Ended};
use crate::model::{ChangeKind, plural, printable_line};
use crate::ops::team::import::{self, Imported, Options};

/// Install a team from a file
///
/// Reads a file that `squad export` wrote, or `squad-export.json` of the npm tool of the same name, and installs the team
/// in `.squad/` at the repository's root, in one commit. Ledger entries in the file are added to the ledger here. If
/// another team is there already, nothing changes.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad import ../shop/shop.squad
  squad import squad-export.json --dry-run")]
pub(super) struct Args {
    /// A file that `squad export` wrote, or `squad-export.json`
    file: PathBuf,
    /// List what would be written, and write nothing
    #[arg(long, short = 'n')]
    pub(super) dry_run: bool,
    /// Write the files but do not commit them
    #[arg(long)]
    no_commit: bool,
    /// Import files that seem to hold a secret too
    #[arg(long)]
    force: bool,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let options = Options { file: self.file, commit: !self.no_commit, dry_run: self.dry_run, force: self.force };
        let mut imported = import::import(context.env, &context.directory, &options)?;
        if let Some((_, commit)) = context.finished(&ChangeKind::Import) {
            imported.commit = imported.commit.or(commit);
        }
        if imported.commit.is_some() {
            context.say_passed_hooks();
        }
        if context.ui.json() {
            context.value(&imported);
            return Ok(0);
        }
        said(context, &imported, options.dry_run);
        Ok(0)
    }
}

fn said(context: &mut Context<'_>, imported: &Imported, is_shown: bool) {
    let ui = &mut context.ui;
    if is_shown {
        imported.files.iter().for_each(|path| ui.data(&printable_line(path)));
    }
    ui.all_problems(&imported.problems);
    let files = plural(imported.files.len(), "file");
    match (&imported.commit, &imported.reason) {
        (Some(commit), _) => ui.say(&format!("Imported {files}, committed in {}.", short(commit))),
        (None, Some(reason)) => ui.say(&format!("Imported {files}, not committed: {reason}.")),
        (None, None) if imported.is_ledger_alone => {}
        (None, None) if imported.files.is_empty() => ui.say("The team is there already, with the same files."),
        (None, None) => ui.say(&format!("{files} would be written.")),
    }
    if imported.entries > 0 {
        let entries = plural(imported.entries, "entry");
        ui.say(&format!("{entries} of the ledger {}.", if is_shown { "would be added" } else { "were added" }));
    }
}
