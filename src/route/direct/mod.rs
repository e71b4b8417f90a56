//! Messages that need no agent: greetings, thanks, and questions that the team's own files or the ledger answer.
//!
//! What squad surely understands, it answers itself ([`question`]); what only looks as if files answered it
//! (`greeting`, `fact`) is left to the coordinator, who starts nobody either.

mod fact;
mod greeting;
pub(crate) mod question;
mod words;

use std::borrow::Cow;

use self::question::Question;
use crate::model::Team;

/// Why nobody needs to be started, or `None` when somebody does.
pub(super) fn read(team: &Team, message: &str) -> Option<&'static str> {
    let text = message.trim();
    // Longer messages are work, whatever they begin with.
    if text.len() > 4 * LENGTH || text.chars().count() > LENGTH || text.contains("```") || text.lines().count() > 2 {
        return None;
    }
    let mut text = text.trim_start_matches('¡').to_lowercase();
    if text.contains('’') {
        text = text.replace('’', "'");
    }
    // `Hey, thanks for …`
    let rest = greeting::without_greeting(greeting::without_greeting(&text));
    if rest.len() < text.len() && greeting::is_small_talk(rest) {
        return Some(SMALL_TALK);
    }
    let question = rest.trim_start_matches(['¿', ' ']);
    surely(team, message, question).or_else(|| fact::read(&of_everyone(team, question)))
}

/// What is asked of a member is asked of everyone: `what has Fay been doing?`
fn of_everyone<'q>(team: &Team, question: &'q str) -> Cow<'q, str> {
    if !begins(question, &["what ", "what's ", "how far "]) {
        return Cow::Borrowed(question);
    }
    let called = question.split(' ').find(|word| team.members.iter().any(|member| member.slug.as_str() == *word));
    called.map_or(Cow::Borrowed(question), |name| Cow::Owned(question.replacen(name, "everyone", 1)))
}

/// Why squad can answer it by itself.
fn surely(team: &Team, message: &str, question: &str) -> Option<&'static str> {
    match Question::read(message, team)? {
        Question::Greeting | Question::Thanks => Some(SMALL_TALK),
        Question::Status | Question::Runs => Some("a question how things stand"),
        // "Who can fix it?" asks for the fix, "Who uses it?" for the code.
        Question::Handler(_) if !fact::asks_who(question) => None,
        Question::Team | Question::Member(_) | Question::Handler(_) | Question::Decisions(_) => Some(OF_THE_TEAM),
    }
}

pub(super) const SMALL_TALK: &str = "a greeting or thanks";
const OF_THE_TEAM: &str = "a question about the team itself";

/// In letters.
const LENGTH: usize = 200;

fn begins(text: &str, starts: &[&str]) -> bool {
    starts.iter().any(|start| text.starts_with(start))
}

fn holds(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests;
