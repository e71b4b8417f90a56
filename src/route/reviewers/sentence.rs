//! The words of a sentence, with the members that they name.

use std::ops::Range;

use crate::model::{Member, Slug, Team};
use crate::route::text::Span;

/// A word of a sentence, or a member's name of several words.
pub(super) struct Word<'m> {
    /// In lower case, without `'s`.
    pub(super) text: String,
    pub(super) range: Range<usize>,
    /// The text between it and the word before.
    gap: &'m str,
    pub(super) member: Option<&'m Member>,
    /// How a name is written: `@bea`, `Bea`, `bea's`.
    pub(super) is_at: bool,
    pub(super) is_capital: bool,
    pub(super) is_possessive: bool,
}

impl Word<'_> {
    /// Whether punctuation separates it from the word before.
    pub(super) fn is_apart(&self) -> bool {
        self.gap.contains([',', ';', ':', '(', ')', '—', '–', '.', '!', '?'])
    }

    pub(super) fn follows_comma(&self) -> bool {
        self.gap.trim_end_matches([' ', '@']) == ","
    }

    pub(super) fn is(&self, words: &str) -> bool {
        words.split(' ').any(|word| word == self.text)
    }
}

/// The words of one sentence.
pub(super) fn words_of<'m>(team: &'m Team, message: &'m str, sentence: &[&Span]) -> Vec<Word<'m>> {
    let is_of_word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '\'' | '’');
    let mut words: Vec<Word<'m>> = Vec::new();
    let mut end = sentence.first().map_or(0, |first| first.range.start);
    for span in sentence {
        let mut at = span.range.start;
        while let Some(skipped) = message[at..span.range.end].find(is_of_word) {
            let start = at + skipped;
            let length = message[start..span.range.end].find(|c| !is_of_word(c)).unwrap_or(span.range.end - start);
            at = start + length;
            let text = message[start..at].to_lowercase().replace('’', "'");
            let owner = text.strip_suffix("'s").map(str::to_owned);
            words.push(Word {
                is_possessive: owner.is_some(),
                text: owner.unwrap_or_else(|| text.trim_matches(['\'', '-']).to_owned()),
                range: start..at,
                gap: &message[end.min(start)..start],
                member: None,
                is_at: message[..start].ends_with('@'),
                is_capital: message[start..].starts_with(char::is_uppercase),
            });
            end = at;
        }
    }
    name_members(team, words)
}

/// Joins the words of each member's name.
fn name_members<'m>(team: &'m Team, words: Vec<Word<'m>>) -> Vec<Word<'m>> {
    let mut named: Vec<Word<'m>> = Vec::new();
    for word in words {
        named.push(word);
        for length in (1..=LONGEST_NAME.min(named.len())).rev() {
            let first = named.len() - length;
            let joined: Vec<&str> = named[first..].iter().map(|word| word.text.as_str()).collect();
            let is_whole = named[first + 1..].iter().all(|word| word.gap == " ");
            let Some(member) = member_called(team, &joined.join("-")).filter(|_| is_whole) else { continue };
            let Some(last) = named.last() else { continue };
            let (end, is_possessive) = (last.range.end, last.is_possessive);
            named.truncate(first + 1);
            if let Some(name) = named.last_mut() {
                (name.range.end, name.is_possessive, name.member) = (end, is_possessive, Some(member));
            }
            break;
        }
    }
    named
}

/// The most words of a name.
const LONGEST_NAME: usize = 3;

fn member_called<'t>(team: &'t Team, name: &str) -> Option<&'t Member> {
    let is_it = |member: &&Member| {
        member.slug.as_str() == name || Slug::fold(&member.name).is_some_and(|slug| slug.as_str() == name)
    };
    team.members.iter().find(is_it)
}
