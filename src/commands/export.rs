use std::path::PathBuf;

use super::change;
use super::{Context, Ended};
use crate::model::{list, plural, printable};
use crate::ops::change::WriteMode;
use crate::ops::team::export::{self, Options};

/// Write the team to a file for `squad import`
///
/// The file is a git bundle with the team's folder as it is committed, byte for byte. Lines that look like secrets stop
/// the export. The ledger (what the repository's teams did, decided and learned) is included only with --ledger.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad export                        Write REPOSITORY.squad
  squad export team.squad --ledger    With everything that was recorded
  git clone team.squad team           Look into it without squad
  squad export --to actions           Write a workflow that carries out work orders (`squad help hosts`)")]
pub(super) struct Args {
    /// The file to write; by default, the repository's name with `.squad`
    #[arg(conflicts_with = "to")]
    file: Option<PathBuf>,
    /// Include the ledger
    #[arg(long, conflicts_with = "to")]
    ledger: bool,
    /// Overwrite an existing file, and export what looks like a secret
    #[arg(long, conflicts_with = "to")]
    force: bool,
    /// Write no team, but what lets another system carry out work orders
    #[arg(long, value_name = "SYSTEM", value_enum)]
    to: Option<System>,
    /// With --to: write the file but do not commit it
    #[arg(long, requires = "to")]
    no_commit: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum System {
    /// .github/workflows/squad-worker.yml, for GitHub Actions
    Actions,
}

impl Args {
    pub(super) fn writes(&self) -> bool {
        self.to.is_some()
    }

    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let Self { file, ledger, force, to, no_commit } = self;
        if let Some(System::Actions) = to {
            let exported = export::export_workflow(context.env, &context.directory, WriteMode::new(false, no_commit))?;
            return change::show(context, exported, false, |ui, exported| {
                change::say_files(ui, &exported.change, false);
                ui.say(&format!("Wrote the workflow{}.", change::outcome(&exported.change)));
            });
        }
        let exported = export::export(context.env, &context.directory, &Options { file, ledger, force })?;
        if context.ui.json() {
            context.value(&exported);
            return Ok(0);
        }
        context.ui.all_problems(&exported.problems);
        let files = (exported.files > 0).then(|| plural(exported.files, "file"));
        let what = list(files.into_iter().chain(exported.ledger.then(|| "the ledger".to_owned())));
        let kilobytes = exported.bytes.div_ceil(1024);
        let file = printable(&exported.file.display().to_string());
        context.ui.say(&format!("Exported {what} to {file}, {kilobytes} KB."));
        Ok(0)
    }
}
