//! The status that a decision gives itself. Only dedicated fields, titles and sections count, no words in passing.

use super::super::words::{is_blank, listed, without_struck, words};
use crate::model::LegacyStatus;

const PROPOSED: &str = "proposed, proposal, draft, pending, rfc";
const SUPERSEDED: &str = "superseded, replaced, obsolete, obsoleted, deprecated, reverted, overridden, overruled";
const REJECTED: &str =
    "rejected, withdrawn, declined, abandoned, revoked, retracted, cancelled, canceled, vetoed, rescinded";

/// Statuses that count in a title. Other words there may be about the subject.
const IN_TITLES: &str =
    "superseded, overridden, overruled, rejected, withdrawn, revoked, retracted, rescinded, vetoed, declined";

/// The status in a remark: `(withdrawn)`, `[SUPERSEDED by 7]`.
pub(super) fn of_remark(remark: &str) -> Option<LegacyStatus> {
    let word = first_word(remark)?;
    listed(IN_TITLES, &word).then(|| parse(&word)).flatten()
}

/// The status in brackets at either end of a title.
pub(super) fn of_title(title: &str) -> Option<LegacyStatus> {
    let title = title.trim();
    let brackets = [('(', ')'), ('[', ']')];
    let behind = brackets.iter().find_map(|(open, close)| title.strip_suffix(*close)?.rsplit_once(*open));
    let before = title.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    behind.and_then(|(_, remark)| of_remark(remark)).or_else(|| of_remark(before?.0))
}

/// The status in a field.
pub(super) fn of_field(key: &str, value: &str) -> Option<LegacyStatus> {
    match key {
        "status" | "state" | "decision status" => parse(value),
        "superseded by" | "replaced by" => {
            let first = first_word(value)?;
            let nobody = ["none", "n", "na", "no", "tbd", "nothing", "nobody"].contains(&first.as_str());
            (!is_blank(value) && !nobody).then_some(LegacyStatus::Superseded)
        }
        _ => None,
    }
}

/// A status by its first word. In `Accepted → Superseded`, the last one counts.
pub(super) fn parse(value: &str) -> Option<LegacyStatus> {
    let kept = without_struck(value);
    let line = kept.lines().next()?;
    let last = line.rsplit(['→', '➜']).next()?.rsplit("->").next()?;
    let word = &first_word(last)?;
    if listed(PROPOSED, word) {
        Some(LegacyStatus::Proposed)
    } else if last.to_lowercase().contains("partial") {
        None
    } else if listed(SUPERSEDED, word) {
        Some(LegacyStatus::Superseded)
    } else {
        listed(REJECTED, word).then_some(LegacyStatus::Rejected)
    }
}

fn first_word(text: &str) -> Option<String> {
    words(text).next().map(str::to_lowercase)
}

/// The status below a Status heading.
pub(super) fn of_heading(title: &str, text: &str) -> Option<LegacyStatus> {
    let title = title.trim().to_lowercase();
    match title.strip_prefix("status")? {
        "" => parse(text),
        rest => parse(rest.strip_prefix(':')?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_says_it() {
        for (value, wanted) in [
            ("Superseded by the one of 2026-03-01", Some(LegacyStatus::Superseded)),
            ("❌ **REJECTED**", Some(LegacyStatus::Rejected)),
            ("~~Accepted~~ Superseded", Some(LegacyStatus::Superseded)),
            ("Proposed → Accepted", None),
            ("Accepted -> Deprecated", Some(LegacyStatus::Superseded)),
            ("PROPOSED (awaiting approval)", Some(LegacyStatus::Proposed)),
            ("Superseded in part; partially kept", None),
            ("Accepted; the old way is superseded", None),
            ("Not rejected", None),
            ("Implemented", None),
            ("", None),
        ] {
            assert_eq!(of_field("status", value), wanted, "{value}");
        }
        assert_eq!(of_field("superseded by", "ADR-7"), Some(LegacyStatus::Superseded));
        assert_eq!((of_field("superseded by", "None"), of_field("superseded by", "—")), (None, None));
        assert_eq!(of_field("rejected", "the other way"), None);
    }

    #[test]
    fn a_title_says_it_in_brackets() {
        assert_eq!(of_title("Tar (superseded by wax)"), Some(LegacyStatus::Superseded));
        assert_eq!(of_title("[WITHDRAWN] Tar"), Some(LegacyStatus::Rejected));
        assert_eq!(of_title("Tar (2026-01-05) [Rejected]"), Some(LegacyStatus::Rejected));
        for title in ["Drop the old hull (deprecated)", "Why we rejected tar", "Tar (not rejected)", "Tar"] {
            assert_eq!(of_title(title), None, "{title}");
        }
    }
}
