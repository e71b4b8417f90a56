//! Headings that hold what belongs to the entry above them, though they are no deeper than it.

use std::collections::HashMap;

use super::headings::{Heading, speaks};
use super::titles::is_section;

/// Which headings have none below them that says when or by whom, and are the sections of a note that was pasted below
/// an entry, not a group of entries of its own: most entries of the file say when or by whom, or there are usual
/// sections of notes at this level.
pub(super) fn silent(headings: &[Heading<'_>], entries: Option<u8>) -> Vec<bool> {
    const USUAL: usize = 2;
    let of_entries = || headings.iter().filter(|heading| Some(heading.level) == entries);
    let most_speak = of_entries().filter(|heading| speaks(heading)).count() * 2 > of_entries().count();
    let mut sections: HashMap<u8, usize> = HashMap::new();
    for heading in headings.iter().filter(|heading| is_section(heading.raw)) {
        *sections.entry(heading.level).or_default() += 1;
    }
    let is_of_notes = |level: u8| most_speak || sections.get(&level).is_some_and(|count| *count >= USUAL);
    // From the last: the headings that end what is below the current one, with how many speak before each.
    let mut before = vec![0];
    for heading in headings {
        before.push(before.last().copied().unwrap_or_default() + usize::from(speaks(heading)));
    }
    let mut ends: Vec<(u8, usize)> = Vec::new();
    let mut silent = vec![false; headings.len()];
    for (index, heading) in headings.iter().enumerate().rev() {
        while ends.pop_if(|(level, _)| *level > heading.level).is_some() {}
        let end = ends.last().map_or(headings.len(), |(_, end)| *end);
        // What stands above all that speaks is below no entry.
        let says_nothing = before[end] == before[index] && before[index] > 0;
        silent[index] = Some(heading.level) < entries && says_nothing && is_of_notes(heading.level);
        ends.push((heading.level, index));
    }
    silent
}
