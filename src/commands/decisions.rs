mod add;
mod import;
pub(super) mod land;
mod list;
mod page;
mod radar;
mod review;

use clap::Subcommand;

use super::{Context, Ended};
use crate::error::Failure;
use crate::ops::Project;
use crate::settings::Layer;

/// List, add, review and land the team's decisions
///
/// Without a command, lists them. A decision is in force when its file is on the branch and no other decision there
/// supersedes it.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    List(list::List),
    Show(list::Show),
    Add(add::Add),
    Supersede(add::Supersede),
    Import(import::Args),
    Land(land::Args),
    Review(review::Args),
    Radar(radar::Args),
}

impl Args {
    pub(super) fn writes_to_the_branch(&self) -> bool {
        match &self.command {
            Some(Command::Add(_) | Command::Supersede(_) | Command::Land(_)) => true,
            Some(Command::Import(args)) => !args.dry_run,
            _ => false,
        }
    }

    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        match self.command.unwrap_or_else(|| Command::List(list::List::default())) {
            Command::List(args) => args.run(context),
            Command::Show(args) => args.run(context),
            Command::Add(args) => args.run(context),
            Command::Supersede(args) => args.run(context),
            Command::Import(args) => args.run(context),
            Command::Land(args) => args.run(context),
            Command::Review(args) => args.run(context),
            Command::Radar(args) => args.run(context),
        }
    }
}

/// The team of the work tree. An unreadable team file is an error, because a decision in it would be missed.
fn project(context: &Context<'_>) -> Result<Project, Failure> {
    let project = Project::open_without_team(context.env, &context.directory, Layer::default())?;
    project.require_readable()?;
    Ok(project)
}
