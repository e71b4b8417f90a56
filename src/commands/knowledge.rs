mod add;
mod list;

use clap::Subcommand;

use super::{Context, Ended};
use crate::error::Failure;
use crate::ops::Project;
use crate::settings::Layer;

/// List, search, add, decline and retire notes that hold beyond this project
///
/// A note is a practice, a pitfall or a convention. It is a file below `.squad/knowledge/`, recorded, landed and reviewed
/// like a decision. An agent is told the notes that are about its task, quoted as data with their source: those of this
/// project, and those of the repositories that `[links.NAME]` names in your configuration, which `squad sync` fetches.
/// Nothing goes from one project to another without such a link.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    List(list::List),
    Search(list::Search),
    Show(list::Show),
    Add(add::Add),
    Decline(add::Decline),
    Retire(add::Retire),
}

impl Args {
    pub(super) fn writes_to_the_branch(&self) -> bool {
        matches!(self.command, Some(Command::Add(_) | Command::Retire(_)))
    }

    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        match self.command.unwrap_or_else(|| Command::List(list::List::default())) {
            Command::List(args) => args.run(context),
            Command::Search(args) => args.run(context),
            Command::Show(args) => args.run(context),
            Command::Add(args) => args.run(context),
            Command::Decline(args) => args.run(context),
            Command::Retire(args) => args.run(context),
        }
    }
}

/// The team of the work tree.
fn project(context: &Context<'_>) -> Result<Project, Failure> {
    readable(Project::open_or_recorded(context.env, &context.directory)?)
}

/// For a look at what is there: without a team, links may be.
fn project_or_none(context: &Context<'_>) -> Result<Project, Failure> {
    readable(Project::open_without_team(context.env, &context.directory, Layer::default())?)
}

/// An unreadable file is an error, because a note in it or behind a link would be missed.
fn readable(project: Project) -> Result<Project, Failure> {
    project.require_configuration()?;
    Ok(project)
}
