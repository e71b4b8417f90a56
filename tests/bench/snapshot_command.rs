use std::time::Instant;

use super::{Context, Ended};
use crate::ops::{repository, writer};
use crate::policy::Redactor;

/// Take a snapshot of the work tree for each line of the input, for `cargo bench`
///
/// Prints how many microseconds each took.
#[derive(clap::Args)]
pub(super) struct Args {}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let env = context.env;
        let (repository, _) = repository(env, &context.directory)?;
        let redactor = Redactor::default();
        let objection = |bytes: &[u8]| redactor.kinds(&String::from_utf8_lossy(bytes)).first().map(ToString::to_string);
        let mut previous = None;
        for (number, _) in std::io::stdin().lines().map_while(Result::ok).enumerate() {
            let start = Instant::now();
            let name = ("bench", number + 1);
            let taken = repository.take_snapshot(name, previous.as_ref(), objection, &writer(), env.clock.now())?;
            context.ui.data(&start.elapsed().as_micros().to_string());
            previous = Some(taken);
        }
        Ok(0)
    }
}
