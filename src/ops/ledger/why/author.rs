//! Whose a line is, by the marks of what was written.

use super::Write;
use crate::git::Error;
use crate::record::marks;

/// Letters and digits with which a line speaks for itself, unless it stands in other files too.
const TELLING: usize = 12;
/// Lines in a row with which a less telling one does.
const IN_A_ROW: usize = 3;

/// The only run and agent that wrote the line, or why none can be named. `is_elsewhere` tells whether other files have
/// it too.
pub(super) fn author<'w>(
    writes: &'w [Write],
    lines: &[&str],
    at: usize,
    is_elsewhere: impl FnOnce() -> Result<bool, Error>,
) -> Result<Result<&'w Write, String>, Error> {
    let unknown = |reason: &str| Ok(Err(reason.to_owned()));
    let Some(mark) = marks::mark(lines[at]) else {
        return unknown("the line is one that anybody writes");
    };
    let copies = lines.iter().filter(|line| marks::mark(line).as_ref() == Some(&mark)).count();
    let around = Around::new(lines, at, mark);
    let longest = |write: &Write| around.longest(&write.lines);
    let is_telling = marks::weight(lines[at]) >= TELLING;
    let enough = if is_telling { 1 } else { IN_A_ROW };
    let found: Vec<&Write> = writes.iter().filter(|write| longest(write) >= enough).collect();
    let Some(first) = found.first() else {
        return unknown(match writes.iter().any(|write| longest(write) > 0) {
            true => "the line is too short to tell whose it is",
            false => "no run is known to have written it through a tool; what shell commands write is not recorded",
        });
    };
    if let Some(other) = found.iter().find(|other| (&other.run, &other.agent) != (&first.run, &first.agent)) {
        return Ok(Err(match other.run != first.run {
            true => format!("several runs wrote this line, {} and {} among them", first.run, other.run),
            false => format!("several agents of run {} wrote this line", first.run),
        }));
    }
    if found.iter().all(|write| around.copies(&write.lines) < copies) {
        return Ok(Err(format!("the line stands {copies} times in the file, and no run wrote it that often")));
    }
    if found.iter().all(|write| longest(write) < IN_A_ROW) && is_elsewhere()? {
        return unknown("other files have this line too, so it does not tell whose it is");
    }
    Ok(Ok(first))
}

/// The marks of the lines around one, nearest first.
struct Around {
    mark: String,
    above: Vec<String>,
    below: Vec<String>,
}

impl Around {
    fn new(lines: &[&str], at: usize, mark: String) -> Self {
        let above = lines[..at].iter().rev().filter_map(|line| marks::mark(line)).take(IN_A_ROW).collect();
        let below = lines[at + 1..].iter().filter_map(|line| marks::mark(line)).take(IN_A_ROW).collect();
        Self { mark, above, below }
    }

    /// How often a write has the line in question.
    fn copies(&self, written: &[String]) -> usize {
        written.iter().filter(|mark| **mark == self.mark).count()
    }

    /// The lines in a row, the one in question among them, that a write has in common; 0 where it has not even that.
    fn longest(&self, written: &[String]) -> usize {
        let places = written.iter().enumerate().filter(|(_, mark)| **mark == self.mark);
        let alike = |pairs: &mut dyn Iterator<Item = (&String, &String)>| pairs.take_while(|(a, b)| a == b).count();
        let row = |at: usize| {
            1 + alike(&mut written[..at].iter().rev().zip(&self.above))
                + alike(&mut written[at + 1..].iter().zip(&self.below))
        };
        places.map(|(at, _)| row(at)).max().unwrap_or(0)
    }
}
