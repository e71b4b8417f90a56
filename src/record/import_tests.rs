//! Importing loses no entry and no byte of any file.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::part;
use crate::model::{Decision, Source};
use crate::parse::{self, Files, IMPORTED, NO_DECISION};

fn files(path: &str, text: &str) -> Files {
    Files { folder: ".squad".to_owned(), texts: BTreeMap::from([(path.to_owned(), text.to_owned())]) }
}

/// Each decision once, without its source.
fn known(files: &Files) -> BTreeMap<String, Decision> {
    let all = parse::decisions(files).into_iter();
    all.map(|decision| (decision.id.to_string(), Decision { source: None, ..decision })).collect()
}

/// The bytes of the original entry in a decision's file: its heading, and the text below it.
fn entry(text: &str) -> (String, &str) {
    let (matter, rest) = text[4..].split_once("\n---\n").expect("front matter");
    let (title, body) = rest.split_once('\n').expect("a title");
    let heading = matter.lines().find_map(|line| line.strip_prefix("heading: "));
    let heading = heading.map_or(title.to_owned(), |text| serde_json::from_str(text).expect("JSON"));
    (heading, body)
}

/// The duplicate entries that the file has unchanged.
fn twins(file: &str) -> Vec<String> {
    let line = file.lines().find_map(|line| line.strip_prefix("twins: "));
    line.map_or_else(Vec::new, |line| serde_json::from_str(line).expect("JSON"))
}

/// Whether a decision's file has a piece byte for byte, as its entry or as a duplicate.
fn has_piece(file: &str, whole: &str, heading: &str, body: &str) -> bool {
    if twins(file).iter().any(|twin| twin == whole) {
        return true;
    }
    match (heading.is_empty(), entry(file)) {
        (true, (_, kept)) => kept.strip_prefix('\n').is_some_and(|kept| kept.trim_end() == body.trim_end()),
        (false, (line, kept)) => {
            heading.trim_end_matches(['\r', '\n']) == line.trim_end_matches(['\r', '\n'])
                && heading.starts_with(&line)
                && kept.trim_end() == body.trim_end()
        }
    }
}

fn check(path: &str, text: &str) -> Result<(), TestCaseError> {
    let before = files(path, text);
    let pieces = parse::split(&before, path);
    let mut held = BTreeMap::new();
    let parted = part(&before, path, ".squad", &mut held);
    // No earlier file exists that could differ.
    prop_assert_eq!(parted.left.len(), 0);
    // Every byte is in the rest or in a piece.
    let (mut gaps, mut at) = (String::new(), 0);
    for piece in &pieces {
        prop_assert!(at <= piece.range.start && piece.range.start <= piece.body && piece.body <= piece.range.end);
        gaps.push_str(&text[at..piece.range.start]);
        at = piece.range.end;
        let (heading, body) = (&text[piece.range.start..piece.body], &text[piece.body..piece.range.end]);
        let whole = &text[piece.range.clone()];
        let found = parted.files.iter().any(|(_, file)| has_piece(file, whole, heading, body));
        prop_assert!(found, "{whole:?} in {:?}", parted.files);
    }
    gaps.push_str(&text[at..]);
    match &parted.rest {
        Some(rest) => {
            let unmarked = [IMPORTED, NO_DECISION].iter().fold(rest.clone(), |rest, mark| {
                rest.replace(&format!("{mark}\r\n"), "").replace(&format!("{mark}\n"), "")
            });
            prop_assert_eq!(unmarked, gaps);
        }
        None => prop_assert_eq!(gaps.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}'), ""),
    }
    // The team reads the same decisions as before.
    let mut after = Files { folder: ".squad".to_owned(), texts: BTreeMap::new() };
    for (path, text) in &parted.files {
        after.texts.insert(path.strip_prefix(".squad/").expect("in the team's folder").to_owned(), text.clone());
        prop_assert!(parse::decision_file(text, Source::new(path, 1)).is_ok(), "{text}");
    }
    prop_assert_eq!(after.texts.len(), parted.files.len(), "two decisions of one path");
    after.texts.extend(parted.rest.iter().map(|rest| (path.to_owned(), rest.clone())));
    let (was, is) = (known(&before), known(&after));
    prop_assert_eq!(was.keys().collect::<Vec<_>>(), is.keys().collect::<Vec<_>>(), "{}", text);
    for (was, is) in was.values().zip(is.values()) {
        let title = was.title.split_whitespace().collect::<Vec<_>>().join(" ");
        prop_assert_eq!((title, &was.date, &was.by, was.status), (is.title.clone(), &is.date, &is.by, is.status));
        // Rows are read without their markup.
        let said = was.text.trim_end();
        prop_assert!(is.text.contains(said) || !text.contains(said), "{said:?} became {:?}", is.text);
    }
    // Importing again changes nothing.
    if let Some(rest) = &parted.rest {
        let again = part(&files(path, rest), path, ".squad", &mut held);
        prop_assert_eq!(again.files.len(), 0, "{}", rest);
        prop_assert_eq!(again.rest.as_ref(), Some(rest));
    }
    Ok(())
}

/// Fragments that people and tools write, in any order.
const FRAGMENTS: [&str; 55] = [
    "# Decisions\n\n",
    "# Squad Decisions\n\n> Shared by all.\n\n",
    "## Active Decisions\n\n",
    "## Governance\n\n- ask first\n- then decide\n\n",
    "## Archive\n\n",
    "---\n\n",
    "### 2026-01-05: Tar the hull\n**By:** Uwe\n**What:** Black tar.\n**Why:** Leaks.\n\n",
    "### 2026-01-06T08:00:00Z — New ropes\n\nHemp.\n\n",
    "### 📌 2026-01-07: Flags\n\n",
    "#### Dinner at six (2026-01-08)\n**Author:** Otto\n\nBring bread.\n",
    "## 2026-01-09\n\n",
    "### Paint it\n\nRed.\n\n",
    "### Why\n\nOld.\n\n",
    "#### Consequences\n\n- red hands\n\n",
    "# Decision: Scrub the deck\n\n**Date:** 2026-03-01\n**Author:** Uwe\n\n## Context\n\nDirt.\n\n",
    "## ADR-4 Sails\n\n**Status:** Rejected\n\nCanvas.\n\n",
    "```md\n### 2026-09-09: No heading\n```\n\n",
    "~~~\n# not one\n",
    "| Date | By | Decision |\n|---|---|---|\n| 2026-02-01 | Uwe | Buy oars |\n| 2026-02-02 | Otto | Sell oars |\n\n",
    "- 2026-02-03: Hire a cook\n  - 2026-02-04: and a boy\n  - no date\n- 2026-02-05 — Fire the cook\n\n",
    "1. first\n2. second\n\n",
    "<!-- a note -->\n<a id=\"x\"></a>\n",
    "Tar again\n---------\n\n**By:** Uwe\n\n",
    "2026-04-01: Underlined\n======\n\ntext\n",
    "> ### 2026-04-02: Quoted\n> **By:** Otto\n\n",
    "- ### 2026-04-03: In a list\n  text\n",
    "   ### 2026-04-04: Indented\n",
    "### \"Quotes\": and #marks `code` | bars \\ \u{fffd}Ã©\n**Date:** 2026-04-05\n",
    "### 2026-04-06: By [link](http://x.example) **bold**\n\nMail ann@example.com.\n\n",
    "### {Title}\n**By:** {name}\n\n",
    "### 2026-04-07: Trailing spaces   \n\ttext\t\n",
    "text without an end",
    "\n\n\n",
    "\r\n",
    "\r",
    "\u{feff}",
    "---\nby: Otto\ndate: 2026-05-01\n---\n",
    "---\nsupersedes: x\n",
    "### 2026-01-05: Tar the hull\n**By:** Uwe\n**What:** Black tar.\n**Why:** Leaks.\n\n",
    "### 2026-01-05: Tar the hull\n",
    "**Date:** 2026-06-01\n",
    "*2026-06-02, Otto*\n",
    "## How to use this file\n\n### Entry format\n\n### 2026-06-03: Example\n\n",
    "Prose about 2026-06-04: nothing.\n\n",
    "---\n\n---\ndate: 2026-05-02\nby: [Otto, Uwe]\n---\n\n# Pumps\n\nTwo.\n\n",
    "---\ndate: 2026-05-03\ntags:\n  - x\n---\nNo heading here.\n\n",
    "**2026-05-04** — Nets\nBy Otto. Because.\n\n- fine ones\n\n",
    "**2026-05-05 — Hooks**\n\n",
    "**Decision:** Lines\n**Date:** 2026-05-06\n**By:** Uwe\n\n",
    "## 2026\n\n### May\n\n#### 7 — Buoys\n\nred\n\n",
    "## 5/8/2026: Bells\n\n",
    "## 13/5/2026: Lamps\n\n",
    "### ~~2026-05-09: Oil~~ (withdrawn)\n\n",
    "### 1. Use tar\n\n",
    "### Rum [2026-05-10, Otto]\n\nnone\n\n",
];

fn look_alike() -> impl Strategy<Value = String> {
    let fragment =
        prop_oneof![8 => (0..FRAGMENTS.len()).prop_map(|at| FRAGMENTS[at].to_owned()), 1 => "[\\PC\n]{0,12}"];
    (prop::collection::vec(fragment, 0..14), 0..4u8).prop_map(|(fragments, ends)| {
        let text = fragments.concat();
        match ends {
            0 => text.replace('\n', "\r\n"),
            1 => format!("\u{feff}{text}"),
            _ => text,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn nothing_is_lost_of_any_file(text in look_alike()) {
        check("decisions.md", &text)?;
        check("decisions/inbox/2026-07-01-note.md", &text)?;
        check("decisions/archive/decisions-2026.md", &text)?;
    }
}

#[test]
fn regressions_found_by_random_tests() {
    for text in [
        // A list item contains an entry with a heading.
        "### {Title}\n**By:** {name}\n\n- 2026-02-03: Hire a cook\n  - 2026-02-04: and a boy\n- 2026-02-05 — Fire the cook\n\n   ### 2026-04-04: Indented\n",
        // The marker before a heading in a list is not part of the entry above.
        "\u{feff}- ### 2026-04-03: In a list\n  text\n0.   ### 2026-04-04: Indented\n",
        // A section that has lost the entry above it.
        "Tar again\n---------\n\n**By:** Uwe\n\n### {Title}\n**By:** {name}\n\n### Why\n\nOld.\n\n---\nby: Otto\ndate: 2026-05-01\n---\n",
        // Lines that come together give a section a date.
        "Tar again\n---------\n\n**By:** Uwe\n\n### {Title}\n**By:** {name}\n\n#### Dinner at six (2026-01-08)\n**Author:** Otto\n\nBring bread.\n- ### 2026-04-03: In a list\n  text\n---\nby: Otto\ndate: 2026-05-01\n---\n# Decisions\n\n",
        // Without the text in between, a line above becomes part of the title of a duplicate that stays.
        "**Date:** 2026-06-01\n---\nby: Otto\n---\n2026-04-01: Lined\n======\n\ntext\n\n2026-04-01: Lined\n======\n\ntext\n",
    ] {
        for (path, ends) in [("decisions.md", "\n"), ("decisions/inbox/2026-07-01-note.md", "\r\n")] {
            check(path, &text.replace('\n', ends)).unwrap();
        }
    }
}
