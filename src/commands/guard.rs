use super::{Context, Ended};
use crate::error::Failure;
use crate::ops::team::engines;

/// Outlive squad and stop the processes its engine leaves behind; squad starts this itself
#[derive(clap::Args)]
pub(super) struct Args {
    /// The variable that marks the engine's processes
    name: String,
    /// Its value
    value: String,
    /// End them without waiting for what ends by itself
    #[arg(long)]
    at_once: bool,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let input = context.ui.read_input().map_err(|error| Failure::failed(error.to_string()))?;
        engines::guard(context.env, &self.name, &self.value, self.at_once, &input)?;
        Ok(0)
    }
}
