//! Negations: work that a message excludes.

use std::ops::Range;

use crate::model::List;

/// Longer clauses describe how something should be.
const SHORT: usize = 5;

/// The part of a lower-case clause that excludes work.
pub(super) fn negated(clause: &str) -> Option<Range<usize>> {
    let start = clause.len() - clause.trim_start().len();
    let mut head = clause.trim();
    while let Some((_, rest)) =
        head.split_once(' ').filter(|(word, _)| matches!(*word, "please" | "and" | "also" | "so"))
    {
        head = rest;
    }
    let is_short = head.split_whitespace().count() <= SHORT + 2;
    let begins =
        List::DenyBegins.begins(head).is_some() || (is_short && List::DenyShort.begins(head).is_some()) || is_no(head);
    let from = if begins { start } else { List::Deny.find(clause)? };
    // `everything but the docs`: this one ends nothing. In `don't touch anything but the docs` it does.
    let after = from + if clause[from..].contains("thing but") && begins { "everything but".len() } else { 1 };
    let rest = clause.get(after..).unwrap_or_default();
    let end = List::DenyEnds.entries().iter().filter_map(|word| Some(after + rest.find(&format!(" {word} "))?)).min();
    Some(from..end.unwrap_or(clause.len()))
}

/// `no new tests`, but not `no idea why`.
fn is_no(head: &str) -> bool {
    let next = head.strip_prefix("no ").and_then(|rest| rest.split_whitespace().next());
    next.is_some_and(|next| !List::NotDenied.has(next))
}
