//! What a decision says of its own standing. Only fields that are there for it count; a word in passing does not.

use super::super::words::is_blank;
use crate::model::SaidStatus;

const PROPOSED: [&str; 5] = ["proposed", "proposal", "draft", "pending", "rfc"];
const SUPERSEDED: [&str; 8] =
    ["superseded", "replaced", "obsolete", "obsoleted", "deprecated", "reverted", "overridden", "overruled"];
const REJECTED: [&str; 10] = [
    "rejected",
    "withdrawn",
    "declined",
    "abandoned",
    "revoked",
    "retracted",
    "cancelled",
    "canceled",
    "vetoed",
    "rescinded",
];

/// Words that in a title are about the decision; others may be about what is decided.
const IN_TITLES: [&str; 10] = [
    "superseded",
    "overridden",
    "overruled",
    "rejected",
    "withdrawn",
    "revoked",
    "retracted",
    "rescinded",
    "vetoed",
    "declined",
];

/// What a remark in brackets says: `(withdrawn)`, `[SUPERSEDED by 7]`.
pub(super) fn of_remark(remark: &str) -> Option<SaidStatus> {
    let word = first_word(remark)?;
    IN_TITLES.contains(&word.as_str()).then(|| said(&word)).flatten()
}

/// What a title says in brackets before or behind it.
pub(super) fn of_title(title: &str) -> Option<SaidStatus> {
    let title = title.trim();
    let brackets = [('(', ')'), ('[', ']')];
    let behind = brackets.iter().find_map(|(open, close)| title.strip_suffix(*close)?.rsplit_once(*open));
    let before = title.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    behind.and_then(|(_, remark)| of_remark(remark)).or_else(|| of_remark(before?.0))
}

/// What a field says, if it is one of these.
pub(super) fn of_field(key: &str, value: &str) -> Option<SaidStatus> {
    match key {
        "status" | "state" | "decision status" => said(value),
        "superseded by" | "replaced by" => {
            let first = first_word(value)?;
            let nobody = ["none", "n", "na", "no", "tbd", "nothing", "nobody"].contains(&first.as_str());
            (!is_blank(value) && !nobody).then_some(SaidStatus::Superseded)
        }
        _ => None,
    }
}

/// A status by its first word; of several in a row, `Accepted → Superseded`, the last.
pub(super) fn said(value: &str) -> Option<SaidStatus> {
    // What is struck out is no longer so.
    let kept: String = value.split("~~").step_by(2).collect();
    let line = kept.trim().lines().next()?;
    let last = line.rsplit(['→', '➜']).next()?.rsplit("->").next()?;
    let word = first_word(last)?;
    let word = word.as_str();
    if PROPOSED.contains(&word) {
        Some(SaidStatus::Proposed)
    } else if last.to_lowercase().contains("partial") {
        None
    } else if SUPERSEDED.contains(&word) {
        Some(SaidStatus::Superseded)
    } else {
        REJECTED.contains(&word).then_some(SaidStatus::Rejected)
    }
}

fn first_word(text: &str) -> Option<String> {
    text.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty()).map(str::to_lowercase)
}

/// Whether a heading within an entry is over its status.
pub(super) fn of_heading(title: &str, text: &str) -> Option<SaidStatus> {
    let title = title.trim().to_lowercase();
    match title.strip_prefix("status")? {
        "" => said(text),
        rest => said(rest.strip_prefix(':')?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_says_it() {
        for (value, wanted) in [
            ("Superseded by the one of 2026-03-01", Some(SaidStatus::Superseded)),
            ("❌ **REJECTED**", Some(SaidStatus::Rejected)),
            ("~~Accepted~~ Superseded", Some(SaidStatus::Superseded)),
            ("Proposed → Accepted", None),
            ("Accepted -> Deprecated", Some(SaidStatus::Superseded)),
            ("PROPOSED (awaiting approval)", Some(SaidStatus::Proposed)),
            ("Superseded in part; partially kept", None),
            ("Accepted; the old way is superseded", None),
            ("Not rejected", None),
            ("Implemented", None),
            ("", None),
        ] {
            assert_eq!(of_field("status", value), wanted, "{value}");
        }
        assert_eq!(of_field("superseded by", "ADR-7"), Some(SaidStatus::Superseded));
        assert_eq!((of_field("superseded by", "None"), of_field("superseded by", "—")), (None, None));
        assert_eq!(of_field("rejected", "the other way"), None);
    }

    #[test]
    fn a_title_says_it_in_brackets() {
        assert_eq!(of_title("Tar (superseded by wax)"), Some(SaidStatus::Superseded));
        assert_eq!(of_title("[WITHDRAWN] Tar"), Some(SaidStatus::Rejected));
        assert_eq!(of_title("Tar (2026-01-05) [Rejected]"), Some(SaidStatus::Rejected));
        for title in ["Drop the old hull (deprecated)", "Why we rejected tar", "Tar (not rejected)", "Tar"] {
            assert_eq!(of_title(title), None, "{title}");
        }
    }
}
