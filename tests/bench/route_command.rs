use std::time::Instant;

use super::{Context, Ended, text_or_input};
use crate::error::Failure;
use crate::ops::Project;
use crate::route::{Request, RouteOptions, Router};
use crate::settings::Layer;

/// Route messages from standard input, a JSON string a line, for `cargo bench`
///
/// Prints how many microseconds the first message took, with the team's index, and then each of the others.
#[derive(clap::Args)]
pub(super) struct Args {}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let project = Project::open(context.env, &context.directory, Layer::default())?;
        let router = Router::new(&project.team, &[]);
        for line in text_or_input(&context.ui, "-")?.lines() {
            let message: String = serde_json::from_str(line).map_err(|error| Failure::usage(error.to_string()))?;
            let start = Instant::now();
            let plan = router.plan(&Request::new(&message), &RouteOptions::default());
            context.ui.data(&format!("{} {}", start.elapsed().as_micros(), plan.agents.len()));
        }
        Ok(0)
    }
}
