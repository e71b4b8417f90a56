//! Messages that need no agent and that squad is sure to understand: greetings, thanks, and questions that the team's own
//! files or the ledger answer. What only looks like one is left to the coordinator, who may start nobody either.

pub(crate) mod question;

use self::question::Question;
use crate::model::Team;

/// Why nobody needs to be started, or `None` when somebody may.
pub(super) fn read(team: &Team, message: &str) -> Option<&'static str> {
    match Question::read(message, team)? {
        Question::Greeting | Question::Thanks => Some("a greeting or thanks"),
        Question::Status | Question::Runs => Some("a question how things stand"),
        Question::Team | Question::Member(_) | Question::Handler(_) | Question::Decisions(_) => {
            Some("a question about the team itself")
        }
    }
}

#[cfg(test)]
mod tests;
