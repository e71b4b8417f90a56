use std::path::PathBuf;

use super::{Context, Ended};
use crate::model::{list, plural, printable};
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
  git clone team.squad team           Look into it without squad")]
pub(super) struct Args {
    /// The file to write; by default, the repository's name with `.squad`
    file: Option<PathBuf>,
    /// Include the ledger
    #[arg(long)]
    ledger: bool,
    /// Overwrite an existing file, and export what looks like a secret
    #[arg(long)]
    force: bool,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let Self { file, ledger, force } = self;
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
