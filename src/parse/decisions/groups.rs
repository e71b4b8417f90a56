//! Headings that hold what belongs to the entry above them, though they are no deeper than it.

use super::entries::speaks;
use super::headings::Heading;

/// Which headings have none below them that says when or by whom, in a file in which entries say so: the sections of a
/// note that was pasted below an entry, not a group of entries of its own.
pub(super) fn silent(headings: &[Heading<'_>], entries: Option<u8>) -> Vec<bool> {
    let of_entries = || headings.iter().filter(|heading| Some(heading.level) == entries);
    let speaking = of_entries().filter(|heading| speaks(heading)).count();
    if speaking * 2 <= of_entries().count() {
        return vec![false; headings.len()];
    }
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
        silent[index] = Some(heading.level) < entries && before[end] == before[index];
        ends.push((heading.level, index));
    }
    silent
}
