use std::path::PathBuf;

use clap::Subcommand;
use jiff::civil::Date;

use super::{Context, Ended};
use crate::model::{list, plural, printable_line};
use crate::ops::ledger::rescue::{self, Listed, RestoreOptions, Restored, Shown};
use crate::ui::{FAINT, STRONG, Ui};

/// Restore files squad backed up before changing your work tree
///
/// Without a command, lists the backups. Before squad overwrites or removes one of your files, it saves the work tree, the index and untracked files to
/// refs/squad/rescue in this clone. It does not save, and does not overwrite, ignored files, files over 32 MiB, and
/// uncommitted files that seem to contain a secret. A rescue has the format of a stash, so `git stash apply COMMIT`
/// can restore it too. Rescues are never pushed.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// List backups: when, before which command, how many files
    #[command(after_help = "Examples:\n  squad rescue list\n  squad rescue list --json | jq '.rescues[0]'")]
    List,
    /// Show the files in a rescue
    #[command(after_help = "Examples:\n  squad rescue show 20260105-0900")]
    Show {
        /// The rescue's id, or a prefix of it
        id: String,
    },
    /// Restore files from a rescue
    ///
    /// Without PATH, restores everything that was not committed then and everything the command changed. A file that
    /// exists and differs is saved to a new rescue first. Nothing is removed; the index, the stash and all other files
    /// stay as they are.
    #[command(after_help = "\
Examples:
  squad rescue restore 20260105-0900 --dry-run
  squad rescue restore 20260105-0900
  squad rescue restore 20260105-0900 .squad/decisions.md
  squad rescue restore 20260105-0900 . --to ../then    The whole work tree, next to this one")]
    Restore {
        /// The rescue's id, or a prefix of it
        id: String,
        /// Files and folders to restore
        #[arg(value_name = "PATH")]
        paths: Vec<String>,
        /// Write into another folder
        #[arg(long, value_name = "DIR")]
        to: Option<PathBuf>,
        /// Restore the files as they were staged
        #[arg(long)]
        staged: bool,
        /// Show what would be written and change nothing
        #[arg(long, short = 'n')]
        dry_run: bool,
    },
    /// Delete rescues
    ///
    /// squad never deletes a rescue by itself.
    #[command(after_help = "\
Examples:
  squad rescue drop 20260105-0900
  squad rescue drop --before 2026-01-01")]
    Drop {
        /// Ids, or prefixes of them
        #[arg(required_unless_present = "before")]
        ids: Vec<String>,
        /// Delete all rescues from before this day
        #[arg(long, value_name = "DAY")]
        before: Option<Date>,
    },
}

impl Args {
    pub(super) fn writes_to_the_branch(&self) -> bool {
        matches!(&self.command, Some(Command::Restore { dry_run: false, .. }))
    }

    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let (env, directory, ui) = (context.env, &context.directory, &mut context.ui);
        match self.command.unwrap_or(Command::List) {
            Command::List => {
                let rescues = rescue::listed(env, directory)?;
                if ui.json() {
                    ui.value(&serde_json::json!({ "rescues": rescues }));
                } else if rescues.is_empty() {
                    ui.say("There are no rescues: squad has not changed any of your files here.");
                }
                rescues
                    .iter()
                    .filter(|_| !ui.json())
                    .map(line)
                    .collect::<Vec<_>>()
                    .iter()
                    .for_each(|line| ui.data(line));
            }
            Command::Show { id } => show(ui, &rescue::show(env, directory, &id)?),
            Command::Restore { id, paths, to, staged, dry_run } => {
                let options = RestoreOptions { id, paths, to, staged, dry_run };
                show_restored(ui, &rescue::restore(env, directory, &options)?);
            }
            Command::Drop { ids, before } => {
                let dropped = rescue::delete(env, directory, &ids, before)?;
                if ui.json() {
                    ui.value(&serde_json::json!({ "dropped": dropped }));
                } else {
                    dropped.iter().for_each(|rescue| ui.data(&rescue.id));
                    ui.say(&format!("{} deleted.", plural(dropped.len(), "rescue")));
                }
            }
        }
        Ok(0)
    }
}

fn line(rescue: &Listed) -> String {
    let at = rescue.at.strftime("%Y-%m-%d %H:%M");
    let (files, before) = (plural(rescue.files, "file"), format!("before {}", rescue.command));
    printable_line(&format!("{:<22}  {at}  {files:>9}  {before:<24}  {}", rescue.id, rescue.why))
}

fn show(ui: &mut Ui, shown: &Shown) {
    if ui.json() {
        return ui.value(shown);
    }
    let rescue = &shown.rescue;
    let title = ui.out_paint(STRONG, &printable_line(&format!("{} before {}", rescue.id, rescue.command)));
    ui.data(&title);
    let facts = [
        ("when", Some(rescue.at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())),
        ("why", Some(rescue.why.clone()).filter(|why| !why.is_empty())),
        ("branch", rescue.branch.clone()),
        ("head", rescue.head.clone()),
        ("commit", Some(rescue.commit.clone())),
    ];
    for (name, value) in facts {
        if let Some(value) = value {
            ui.data(&format!("{name:<8} {}", printable_line(&value)));
        }
    }
    for file in &shown.contents {
        let staged = if file.staged { ui.out_paint(FAINT, "  (the staged content differs)") } else { String::new() };
        ui.data(&format!("{:<10} {}{staged}", file.state, printable_line(&file.path)));
    }
    for left in &rescue.left_out {
        ui.data(&printable_line(&format!("{:<10} {}: {}", "left out", left.path, left.why)));
    }
    for path in &rescue.scrubbed {
        ui.data(&printable_line(&format!("{:<10} {path}", "scrubbed")));
    }
}

fn show_restored(ui: &mut Ui, restored: &Restored) {
    if ui.json() {
        return ui.value(restored);
    }
    restored.written.iter().chain(&restored.overwritten).for_each(|path| ui.data(&printable_line(path)));
    let count = restored.written.len() + restored.overwritten.len();
    let same = if restored.same > 0 { format!("; {} unchanged", restored.same) } else { String::new() };
    let verb = if restored.dry_run { "would be restored" } else { "restored" };
    ui.say(&format!("{} {verb}{same}.", plural(count, "file")));
    if !restored.overwritten.is_empty() {
        let files = printable_line(&list(&restored.overwritten));
        match &restored.saved {
            Some(id) => ui.say(&format!("The previous content of {files} is in rescue {id}.")),
            None => ui.say(&format!("{files} would be saved to a new rescue, then overwritten.")),
        }
    }
}
