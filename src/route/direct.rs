//! Messages that need no agent: greetings, thanks, and questions that the team's files or the ledger answer. Strict on
//! purpose: the coordinator, which may start nobody too, gets what is not clearly one of them.

use super::message::Names;
use crate::model::{List, Slug, Team};

/// A question that squad can answer by itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Question {
    Greeting,
    Thanks,
    /// Current and recent work.
    Status,
    /// The list of runs.
    Runs,
    /// The members.
    Team,
    /// One member.
    Member(Slug),
    /// The agent for a kind of work.
    Handler(String),
    /// The decisions about a topic, or all if the topic is empty.
    Decisions(String),
}

/// Longer messages are more than such a question.
const LONGEST: usize = 240;

pattern!(
    STATUS,
    r"^(?:(?:what|how)(?:'s| is| are| was)? (?:the |our |your )?(?:(?:current |latest )?(?:status|progress|state|news)|going on|happening|up|new|(?:you|they|everyone|everybody|the team|the squad|the agents) (?:working on|doing)|things(?: going)?|it going)|what(?: has)? happened(?: last| lately| recently| yesterday)?|(?:any |the |an? |latest )*(?:status|news|progress|updates?)(?: updates?| report)?|anything new|how did (?:the last|it|the) (?:run )?go|who(?:'s| is| are you) (?:everyone )?working on (?:what|it|something)|(?:is )?(?:anything|anyone|someone|who is) (?:running|working|blocked|stuck))$"
);
pattern!(
    RUNS,
    r"^(?:(?:which|what|list|show|the|are|were|all|our|last|latest|recent|past) )+runs(?: (?:were|are) there| ran)?$|^what ran(?: last| lately)?$"
);
pattern!(
    TEAM,
    r"^(?:who(?:'s| is| are)(?: all)? (?:on|in|part of) (?:the|this|our|your|my) (?:team|squad)|(?:who|what) are (?:you|(?:the|our|your) (?:team members|members|agents))|(?:list|show|name|introduce|describe)(?: all| the| our| your| this)* (?:agents|members|team|squad|roster|team members)|(?:which|what|how many) (?:agents|members|people)(?: are there| do we have| are (?:on|in) (?:the|this|our) (?:team|squad))|what can you do|the (?:team|roster))$"
);
pattern!(MEMBER, r"^(?:(?:who(?:'s| is)|what is|about) (\S+)|what does (\S+) do|what(?:'s| is) (\S+)'s (?:role|job))$");
pattern!(
    HANDLER,
    r"^(?:who(?:'s| is) (?:responsible|accountable|in charge) (?:for|of)|who(?:'s| is) the (?:owner|expert|person) (?:of|for|on)|who (?:do|should|can) (?:i|we) (?:ask|talk to|go to|contact)(?: about| for)?|(?:who|which (?:agent|member)) (?:handles?|owns?|does|takes? care of|works? on|maintains?|covers?|knows?|gets?|deals? with)|which (?:agent|member)) (?:(?:the|our|my|a|an|about) )*(.+)$"
);
pattern!(
    DECISIONS,
    r"^(?:(?:what|which|when|why|have|has|did|was|were)(?: (?:did|have|has|was|were|we|you|the team|been|already|anything))* decided?|(?:is|was|are|were) (?:there )?(?:any |a |an )?decisions?|(?:list|what|which|are|were|any|all|latest|recent|last|the|our|is)(?: (?:all|the|our|any|latest|recent|last|made|are|were))* decisions?(?: (?:are there|do we have|have we made|were made))?|decisions)(?: (?:about|on|regarding|concerning|for|to|whether|against)(?: (?:the|our|a|an))? (.+))?$|^what (\S+) decisions (?:are there|do we have|were made)$"
);
// What people say beside thanks.
const PRAISE: &str = "sprint effort session review answer quick guys fix fixes release support reply feedback patience \
                      update explanation happy monday friday weekend";

impl Question {
    /// `None`: not clearly one of these questions.
    pub(crate) fn read(message: &str, team: &Team) -> Option<Self> {
        Self::of_message(message, team, &Names::of(team))
    }

    fn of_message(message: &str, team: &Team, names: &Names) -> Option<Self> {
        const BEGIN: [List; 5] = [List::Greeting, List::Thanks, List::Addressed, List::Pleasant, List::Direct];
        let mut words = message.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let begins = |word: &str| List::any(&BEGIN, &word.to_lowercase()) || names.may_begin(&word.to_lowercase());
        if message.len() > LONGEST || !words.next().is_some_and(begins) {
            return None;
        }
        let message = message.to_lowercase().replace('’', "'");
        let is_mark = |c: char| matches!(c, '.' | '!' | '?' | ';');
        // Not in `v1.2`.
        let ends = |(at, c): (usize, char)| {
            let next = message[at..].chars().nth(1);
            c == '\n' || (is_mark(c) && next.is_none_or(|next| next.is_whitespace() || is_mark(next)))
        };
        let ends = message.char_indices().filter(|place| ends(*place)).map(|(at, _)| at).chain([message.len()]);
        let sentences = ends.scan(0, |start, end| message.get(std::mem::replace(start, end)..end));
        let sentences = sentences.map(|text| text.trim_matches(|c: char| !is_of_word(c)));
        let mut talk = None;
        let mut asked = sentences.filter(|text| !text.is_empty()).filter(|text| {
            let pleasantry = pleasantry(text, names);
            talk = talk.take().max(pleasantry);
            pleasantry.is_none()
        });
        match (asked.next(), asked.next()) {
            (Some(text), None) => Self::of(text, team, names),
            (None, _) => talk.map(|thanks| if thanks { Self::Thanks } else { Self::Greeting }),
            _ => None,
        }
    }

    fn of(text: &str, team: &Team, names: &Names) -> Option<Self> {
        let begins = |word: &str| List::Greeting.has(word) || List::Addressed.has(word) || named(names, word).is_some();
        let mut text = text;
        while let Some((_, rest)) = text.split_once([' ', ',']).filter(|(word, _)| begins(word)) {
            text = rest.trim_start_matches([' ', ',']);
        }
        while let Some(rest) = List::BeforeQuestion.begins(text).filter(|rest| rest.starts_with([' ', ','])) {
            text = rest.trim_start_matches([' ', ',']);
        }
        let ends = |text: &str, word: &str| text.strip_suffix(word).is_some_and(|rest| rest.ends_with([' ', ',']));
        while let Some(word) = List::AfterQuestion.entries().iter().find(|word| ends(text, word)) {
            text = text[..text.len() - word.len()].trim_end_matches([' ', ',']);
        }
        let topic = |found: &regex::Captures<'_>| {
            found.iter().skip(1).flatten().next().map(|topic| topic.as_str().to_owned()).unwrap_or_default()
        };
        match text {
            _ if STATUS.is_match(text) => Some(Self::Status),
            _ if RUNS.is_match(text) => Some(Self::Runs),
            _ if TEAM.is_match(text) => Some(Self::Team),
            _ => {
                let member = MEMBER.captures(text).and_then(|found| named(names, &topic(&found)));
                let decisions = || DECISIONS.captures(text).map(|found| Self::Decisions(topic(&found)));
                let handler = || HANDLER.captures(text).map(|found| Self::Handler(topic(&found)));
                member.map(|place| Self::Member(team.members[place].slug.clone())).or_else(decisions).or_else(handler)
            }
        }
    }
}

/// The reason why no agent is needed, or `None`.
pub(super) fn read(team: &Team, names: &Names, message: &str) -> Option<&'static str> {
    match Question::of_message(message, team, names)? {
        Question::Greeting | Question::Thanks => Some("a greeting or thanks"),
        Question::Status | Question::Runs => Some("a question how things stand"),
        Question::Team | Question::Member(_) | Question::Handler(_) | Question::Decisions(_) => {
            Some("a question about the team itself")
        }
    }
}

/// Whether a sentence only thanks (`true`) or greets.
fn pleasantry(text: &str, names: &Names) -> Option<bool> {
    let words: Vec<&str> = text.split(|c: char| !is_of_word(c)).filter(|word| !word.is_empty()).collect();
    let thanks = words.first().is_some_and(|word| List::Thanks.has(word));
    let greets = words.iter().take(2).any(|word| List::Greeting.has(word));
    let is_talk = |word: &&str| {
        List::any(&[List::Greeting, List::Thanks, List::Addressed, List::Pleasant], word)
            || (thanks && PRAISE.split(' ').any(|praise| praise == *word))
            || named(names, word).is_some()
    };
    ((thanks || greets) && words.iter().all(is_talk)).then_some(thanks)
}

fn named(names: &Names, word: &str) -> Option<usize> {
    names.place(word.trim_start_matches('@'))
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '\'' | '/' | '-' | '_')
}

#[cfg(test)]
mod tests;
