//! Messages that need no agent: greetings, thanks, and questions that the team's files or the ledger answer. Doubtful ones
//! go to the coordinator, which may also start nobody.

pub(crate) mod question;

use self::question::Question;
use crate::model::Team;

/// The reason why no agent is needed, or `None`.
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
