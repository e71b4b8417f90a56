use clap::CommandFactory;
use clap_complete::Shell;

use super::{Arguments, Context, Ended};

/// Print a script with which a shell completes commands and options
#[derive(clap::Args)]
#[command(after_help = "Examples:
  squad completions bash > ~/.local/share/bash-completion/completions/squad
  squad completions zsh > \"${fpath[1]}/_squad\"
  squad completions fish > ~/.config/fish/completions/squad.fish
  squad completions powershell >> $PROFILE")]
pub(super) struct Args {
    shell: Shell,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), "squad", &mut script);
        context.ui.data(&String::from_utf8_lossy(&script));
        Ok(0)
    }
}
