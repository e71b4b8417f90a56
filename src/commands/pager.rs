//! The program through which a person reads long output.

use std::path::Path;
use std::process::Stdio;

use super::Context;
use crate::ops::run::signals::leave_interrupts;
use crate::program::Programs;

/// What less does if nobody has told it: leave short texts alone, keep colours, and keep the screen.
const LESS: &str = "FRX";

impl Context<'_> {
    /// Shows what is written to stdout from now on in `$SQUAD_PAGER`, `$PAGER` or less. Without a pager it is printed.
    pub(super) fn page(&mut self) {
        if !self.ui.can_page() {
            return;
        }
        let named = ["SQUAD_PAGER", "PAGER"].iter().find_map(|name| self.env.variables.get(*name));
        let mut words = words_of(named.map_or("less", String::as_str)).into_iter();
        let Some(name) = words.next().filter(|name| *name != "cat") else { return };
        let mut variables = self.env.os_variables();
        let programs = Programs::new(&self.directory, &variables);
        let Ok(program) = programs.named(Path::new(&name)) else { return };
        programs.restrict(&mut variables);
        variables.entry("LESS".into()).or_insert_with(|| LESS.into());
        let mut command = program.command();
        command.args(words).env_clear().envs(variables).current_dir(&self.directory).stdin(Stdio::piped());
        if let Ok(child) = command.spawn() {
            leave_interrupts(self.env);
            self.ui.page_through(child);
        }
    }
}

/// As a shell splits them; none, if a quotation is not closed.
#[cfg(unix)]
fn words_of(line: &str) -> Vec<String> {
    shlex::split(line).unwrap_or_default()
}

/// Backslashes are those of paths.
#[cfg(windows)]
fn words_of(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}
