use super::{Context, Ended};
use crate::error::Failure;
use crate::ops::run::members;

/// Carry out a run in a process of its own; squad starts this itself
#[derive(clap::Args)]
pub(super) struct Args {}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let input = context.ui.read_input().map_err(|error| Failure::failed(error.to_string()))?;
        let out = context.ui.take_output();
        members::carry(context.env, &context.directory, &input, out)?;
        Ok(0)
    }
}
