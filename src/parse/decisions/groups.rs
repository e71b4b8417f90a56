//! Finds sections that belong to the entry above them although they are no deeper.

use std::collections::HashMap;

use super::headings::{Heading, has_date_or_author};
use super::titles::is_section;

/// Flags the headings that are sections of a note pasted below an entry, and no group of entries: no heading below them
/// has a date or an author, and either most entries of the file do, or this level has usual sections of notes.
pub(super) fn pasted_sections(headings: &[Heading<'_>], entries: Option<u8>) -> Vec<bool> {
    const USUAL: usize = 2;
    let of_entries = || headings.iter().filter(|heading| Some(heading.level) == entries);
    let most_dated = of_entries().filter(|heading| has_date_or_author(heading)).count() * 2 > of_entries().count();
    let mut sections: HashMap<u8, usize> = HashMap::new();
    for heading in headings.iter().filter(|heading| is_section(heading.raw)) {
        *sections.entry(heading.level).or_default() += 1;
    }
    let is_of_notes = |level: u8| most_dated || sections.get(&level).is_some_and(|count| *count >= USUAL);
    // The number of headings with a date or an author before each heading.
    let mut before = vec![0];
    for heading in headings {
        before.push(before.last().copied().unwrap_or_default() + usize::from(has_date_or_author(heading)));
    }
    // From last to first: the headings that may end the current section.
    let mut ends: Vec<(u8, usize)> = Vec::new();
    let mut pasted = vec![false; headings.len()];
    for (index, heading) in headings.iter().enumerate().rev() {
        while ends.pop_if(|(level, _)| *level > heading.level).is_some() {}
        let end = ends.last().map_or(headings.len(), |(_, end)| *end);
        // Headings before the first date or author are below no entry.
        let is_undated = before[end] == before[index] && before[index] > 0;
        pasted[index] = Some(heading.level) < entries && is_undated && is_of_notes(heading.level);
        ends.push((heading.level, index));
    }
    pasted
}
