//! Orders: clauses that begin with a verb.

use crate::model::List;

/// Whether a clause begins by asking for something to be done: `add …`, `then document …`.
pub(super) fn is_order(clause: &str) -> bool {
    let text = clause.trim_start_matches(|c: char| !c.is_alphabetic());
    let mut words =
        text.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase());
    let verb = words.by_ref().find(|word| !List::BeforeVerb.has(word));
    // A verb alone may be a noun in a list.
    verb.is_some_and(|verb| List::Verb.has(&verb)) && words.next().is_some()
}

#[cfg(test)]
mod tests {
    use super::is_order;

    #[test]
    fn orders_begin_with_verbs_that_have_an_object() {
        for order in ["Add a page", "then document it", "- please fix the build", "And also Write tests"] {
            assert!(is_order(order), "{order}");
        }
        for other in
            ["The page is slow", "rotate", "pan, zoom", "it adds a page", "with the list", "charts the rows", ""]
        {
            assert!(!is_order(other), "{other}");
        }
    }
}
