use std::io;
use std::path::PathBuf;

use clap::CommandFactory;
use clap_mangen::{Man, generate_to};

use super::{Arguments, Context, Ended, help};
use crate::env::files::read_regular;
use crate::error::Failure;
use crate::model::printable;
use crate::ops::write_text;

/// Bytes of an old page that is looked at.
const MAX_PAGE: u64 = 1 << 20;

/// Print the manual page of squad or of a command
#[derive(clap::Args)]
#[command(after_help = "Examples:
  squad man log | man -l -               Read the page of `squad log`
  squad man --to ~/.local/share/man/man1 Install the pages of all commands")]
pub(super) struct Args {
    /// A command such as `decisions add`
    #[arg(value_name = "COMMAND")]
    words: Vec<String>,
    /// Write the pages of all commands to FOLDER
    #[arg(long, value_name = "FOLDER", conflicts_with = "words")]
    to: Option<PathBuf>,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        if let Some(folder) = self.to {
            let folder = context.directory.join(folder);
            let unwritable = |error: io::Error| Failure::failed(error.to_string()).at(folder.display());
            std::fs::create_dir_all(&folder).map_err(unwritable)?;
            let made = tempfile::tempdir().map_err(unwritable)?;
            generate_to(Arguments::command(), &made).map_err(unwritable)?;
            for page in std::fs::read_dir(&made).map_err(unwritable)?.flatten() {
                let place = folder.join(page.file_name());
                let is_squads = read_regular(&place, MAX_PAGE)
                    .is_some_and(|old| String::from_utf8_lossy(&old).contains("\n.TH squad"));
                let text = std::fs::read_to_string(page.path()).map_err(unwritable)?;
                write_text(&place, if is_squads { Some(true) } else { None }, &text)?;
            }
            context.ui.say(&format!("Wrote the pages to {}.", printable(&folder.display().to_string())));
            return Ok(0);
        }
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let command = help::command(&words)
            .ok_or_else(|| Failure::usage(format!("there is no command `{}`", words.join(" "))))?;
        let mut page = Vec::new();
        Man::new(command).render(&mut page).map_err(|error| Failure::failed(error.to_string()))?;
        context.ui.data(&String::from_utf8_lossy(&page));
        Ok(0)
    }
}
