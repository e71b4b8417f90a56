use std::ffi::OsString;

use super::{Context, Ended};
use crate::sandbox;

/// Bound this process by the rules, then become the program; squad itself starts this
#[derive(clap::Args)]
pub(super) struct Args {
    /// The rules, as JSON
    rules: String,
    program: OsString,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let (reason, code) = sandbox::within(&self.rules, &self.program, &self.arguments);
        if code != 0 {
            context.ui.warning(&reason);
        }
        Ok(code)
    }
}
