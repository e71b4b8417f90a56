//! Finds the author of a line by the marks of written lines.

use super::Write;
use crate::git::Error;
use crate::record::marks;

/// Letters and digits that make a line sufficient evidence, unless other files have it too.
const TELLING: usize = 12;
/// Matching consecutive lines that a shorter line needs.
const IN_A_ROW: usize = 3;

/// The only run and agent that wrote the line, or why there is no clear author. `is_elsewhere` returns whether other
/// files have the line too.
pub(super) fn author<'w>(
    writes: &'w [Write],
    lines: &[&str],
    at: usize,
    is_elsewhere: impl FnOnce() -> Result<bool, Error>,
) -> Result<Result<&'w Write, String>, Error> {
    let unknown = |reason: &str| Ok(Err(reason.to_owned()));
    let Some(mark) = marks::mark(lines[at]) else {
        return unknown("the line is too common to tell who wrote it");
    };
    let copies = lines.iter().filter(|line| marks::mark(line).as_ref() == Some(&mark)).count();
    let context = Context::new(lines, at, mark);
    let longest = |write: &Write| context.longest(&write.lines);
    let is_telling = marks::weight(lines[at]) >= TELLING;
    let enough = if is_telling { 1 } else { IN_A_ROW };
    let found: Vec<&Write> = writes.iter().filter(|write| longest(write) >= enough).collect();
    let Some(first) = found.first() else {
        return unknown(match writes.iter().any(|write| longest(write) > 0) {
            true => "the line is too short to tell who wrote it",
            false => "no run is known to have written it",
        });
    };
    if let Some(other) = found.iter().find(|other| (&other.run, &other.by) != (&first.run, &first.by)) {
        return Ok(Err(match other.run != first.run {
            true => format!("several runs wrote this line, {} and {} among them", first.run.short(), other.run.short()),
            false => format!("several agents of run {} wrote this line", first.run.short()),
        }));
    }
    if found.iter().all(|write| context.copies(&write.lines) < copies) {
        return Ok(Err(format!("the line is in the file {copies} times, and no run wrote it that often")));
    }
    if found.iter().all(|write| longest(write) < IN_A_ROW) && is_elsewhere()? {
        return unknown("other files have this line too, so it does not tell who wrote it");
    }
    Ok(Ok(first))
}

/// A line's mark, and the marks of the lines around it, nearest first.
struct Context {
    mark: String,
    above: Vec<String>,
    below: Vec<String>,
}

impl Context {
    fn new(lines: &[&str], at: usize, mark: String) -> Self {
        let above = lines[..at].iter().rev().filter_map(|line| marks::mark(line)).take(IN_A_ROW).collect();
        let below = lines[at + 1..].iter().filter_map(|line| marks::mark(line)).take(IN_A_ROW).collect();
        Self { mark, above, below }
    }

    /// How often a write has the line.
    fn copies(&self, written: &[String]) -> usize {
        written.iter().filter(|mark| **mark == self.mark).count()
    }

    /// The number of matching consecutive lines in a write, including the line itself; 0 if the write lacks the line.
    fn longest(&self, written: &[String]) -> usize {
        let places = written.iter().enumerate().filter(|(_, mark)| **mark == self.mark);
        let common = |pairs: &mut dyn Iterator<Item = (&String, &String)>| pairs.take_while(|(a, b)| a == b).count();
        let row = |at: usize| {
            1 + common(&mut written[..at].iter().rev().zip(&self.above))
                + common(&mut written[at + 1..].iter().zip(&self.below))
        };
        places.map(|(at, _)| row(at)).max().unwrap_or(0)
    }
}
