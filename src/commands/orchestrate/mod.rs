//! `squad orchestrate`: runs one message, or starts a conversation.

mod args;
mod converse;
mod show;

pub(super) use args::Args;
use converse::converse;
pub(super) use show::perform;
use show::show;

use super::{Context, Ended};
use crate::model::printable;
use crate::ops::Project;
use crate::ops::run::{preview, recall};

/// Says what the agents remember of earlier work.
fn say_recalled(context: &mut Context<'_>, project: &Project) {
    if let Some(recalled) = recall::line(context.env, project) {
        context.ui.say(&printable(&recalled));
    }
}

impl Args {
    pub(in crate::commands) fn run(self, mut context: Context<'_>) -> (Context<'_>, Ended) {
        if self.message.is_none()
            && self.resume.is_none()
            && context.ui.can_converse()
            && !context.ui.json()
            && !self.dry_run
        {
            return converse(self, context);
        }
        let (project, order) = match self.prepare(&mut context) {
            Ok(prepared) => prepared,
            Err(failure) => return (context, Err(failure)),
        };
        if self.dry_run {
            let shown = preview::preview(context.env, &project, &order)
                .map(|preview| show(&mut context.ui, &project.team, &preview, &order.message));
            return (context, shown);
        }
        if project.settings.sessions.standing && !order.fresh && order.resumed.is_none() {
            say_recalled(&mut context, &project);
        }
        perform(context, &project, order, true)
    }
}
