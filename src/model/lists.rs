//! Lists of words and phrases used in several modules. They are data in `lists.txt`, which describes each list.

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::FixedState;

const TEXT: &str = include_str!("lists.txt");

macro_rules! lists {
    ($($name:ident)*) => {
        /// A section of `lists.txt`.
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum List { $($name),* }

        impl List {
            const ALL: &[(&'static str, Self)] = &[$((stringify!($name), Self::$name)),*];
        }
    };
}

lists! {
    Stop Talk
    Verb BeforeVerb
    Greeting Thanks Addressed Pleasant Direct BeforeQuestion AfterQuestion Courtesy
    DenyBegins DenyShort Deny DenyEnds NotDenied
    Side Form SystemFolder
    Polite PoliteAnywhere PlainlyAsking Asking Leading Choosing FullTier
    Make Tell Look Wishes Needs Polished Questions Making Texts AfterText Finite AfterObject NoWork
    Everybody EverybodyCalled RefersBefore RefersAfter BeforeName Handing AfterName AsksAfterName
    Reviews Checks Gives ReviewNouns Judged Results Pronouns Thoroughly ThenWords Articles Gates Remarks Wanted Denying
    ClauseBegins
    Giving Having
    Next NextFirst AfterCues BeforeCues NoCue Done LeadsOn BeforeSubject
    No Opposites Choose Do As Over Prefer Refuse Vague Counts Bounds Fillers Numbered
}

/// A bit for each list that contains a word, and for each with a phrase that begins with it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Membership {
    contain: u128,
    begin: u128,
}

impl Membership {
    pub(crate) fn has(self, list: List) -> bool {
        self.contain & (1 << list as u32) != 0
    }

    pub(crate) fn has_phrase(self, list: List) -> bool {
        self.begin & (1 << list as u32) != 0
    }
}

struct Lists {
    entries: Vec<Vec<&'static str>>,
    words: HashMap<&'static str, Membership, FixedState>,
}

/// About as many as there are, so that the map need not grow.
const ENTRIES: usize = 3500;

static LISTS: LazyLock<Lists> = LazyLock::new(|| {
    let words = HashMap::with_capacity_and_hasher(ENTRIES, FixedState::default());
    let mut lists = Lists { entries: vec![Vec::new(); List::ALL.len()], words };
    let (mut index, mut separator) = (0, ' ');
    for line in TEXT.lines().filter(|line| !line.starts_with('#')) {
        if let Some(header) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            let name = header.trim_end_matches(':');
            separator = if name.len() < header.len() { ',' } else { ' ' };
            index = List::ALL.iter().position(|(known, _)| *known == name).unwrap_or(List::ALL.len());
        } else if let Some(list) = lists.entries.get_mut(index) {
            for entry in line.split(separator).map(str::trim).filter(|entry| !entry.is_empty()) {
                list.push(entry);
                lists.words.entry(entry).or_default().contain |= 1 << index;
                for first in [word_of(entry), entry.split(' ').next().unwrap_or(entry)] {
                    lists.words.entry(first).or_default().begin |= 1 << index;
                }
            }
        }
    }
    lists
});

impl List {
    /// Its entries, in the order of the file.
    pub(crate) fn entries(self) -> &'static [&'static str] {
        LISTS.entries.get(self as usize).map_or(&[], Vec::as_slice)
    }

    /// Whether the list contains a word in lower case.
    pub(crate) fn has(self, word: &str) -> bool {
        Self::any(&[self], word)
    }

    /// The lists that contain a word in lower case.
    pub(crate) fn of(word: &str) -> Membership {
        LISTS.words.get(word).copied().unwrap_or_default()
    }

    /// Whether any of the lists contains a word in lower case.
    pub(crate) fn any(lists: &[Self], word: &str) -> bool {
        let of = Self::of(word);
        lists.iter().any(|list| of.has(*list))
    }

    /// The rest of a text after the longest of the list's phrases that it begins with, as whole words.
    pub(crate) fn begins(self, text: &str) -> Option<&str> {
        if !Self::of(word_of(text)).has_phrase(self) {
            return None;
        }
        let rest = |entry: &&'static str| {
            let rest = text.strip_prefix(entry)?;
            (!entry.ends_with(is_word_char) || !rest.starts_with(is_word_char)).then_some(rest)
        };
        self.entries().iter().filter_map(rest).min_by_key(|rest| rest.len())
    }

    /// The position of the first of the list's phrases in a lower-case text, as whole words.
    pub(crate) fn find(self, text: &str) -> Option<usize> {
        words_from(text)
            .find(|(word, rest)| Self::of(word).has_phrase(self) && self.begins(rest).is_some())
            .map(|(_, rest)| text.len() - rest.len())
    }

    /// The number of words of the longest of the list's phrases that words in lower case begin with.
    pub(crate) fn length<'w>(self, words: impl Iterator<Item = &'w str> + Clone) -> Option<usize> {
        let first = words.clone().next().unwrap_or_default();
        let length = |entry: &&'static str| {
            let mut words = entry.starts_with(first).then(|| words.clone())?;
            entry.split(' ').try_fold(0, |length, part| (words.next()? == part).then_some(length + 1))
        };
        self.entries().iter().filter_map(length).max()
    }
}

/// Each word of a text, and the rest of the text from it on.
fn words_from(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let found = rest.get(rest.find(is_word_char)?..)?;
        let word = word_of(found);
        rest = found.get(word.len()..)?;
        Some((word, found))
    })
}

/// The word that a text begins with.
fn word_of(text: &str) -> &str {
    let end = text.bytes().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(text.len());
    let is_ascii = text.as_bytes().get(end).is_none_or(u8::is_ascii);
    let end = if is_ascii { end } else { text.find(|c| !is_word_char(c)).unwrap_or(text.len()) };
    text.get(..end).unwrap_or_default()
}

fn is_word_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || (c.is_alphabetic() && c < '\u{2e80}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_is_in_the_file_and_every_section_is_a_list() {
        let sections: Vec<&str> = TEXT
            .lines()
            .filter_map(|line| line.strip_prefix('[')?.strip_suffix(']'))
            .map(|header| header.trim_end_matches(':'))
            .collect();
        let names: Vec<&str> = List::ALL.iter().map(|(name, _)| *name).collect();
        assert_eq!(sections, names);
        assert!(List::ALL.iter().all(|(_, list)| !list.entries().is_empty()));
    }

    #[test]
    fn phrases_are_whole_words() {
        assert_eq!(List::Deny.find("please don't touch it"), Some(7));
        assert_eq!(List::Deny.find("please don't touching"), None);
        assert_eq!(List::Polite.begins("can you help"), Some(" help"));
    }
}
