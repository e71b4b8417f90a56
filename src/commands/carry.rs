use super::{Context, Ended};
use crate::ops::run::members;

/// Carry out a run in a process of its own; squad starts this itself
#[derive(clap::Args)]
pub(super) struct Args {}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let out = context.ui.take_output();
        members::carry(context.env, &context.directory, context.ui.input_opener(), out)?;
        Ok(0)
    }
}
