//! Commands that can be used in the middle of a conversation.

use super::prompt::{HELP, Typed};
use crate::commands::{Context, agents, status};

pub(super) fn run_command(context: &mut Context<'_>, typed: &Typed) {
    let ended = match typed {
        Typed::Status => status::Args { is_first: false }.run(context),
        Typed::Agents => agents::Args::default().run(context),
        Typed::Help => {
            context.ui.say(HELP);
            Ok(0)
        }
        Typed::Unknown(word) => {
            context.ui.hint(&format!("there is no {word}; /help lists the commands"));
            Ok(0)
        }
        Typed::Message(_) | Typed::Cancel(_) | Typed::Resume | Typed::Leave => Ok(0),
    };
    if let Err(failure) = ended {
        context.ui.failure(&failure);
    }
}
