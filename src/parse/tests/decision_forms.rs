//! Decision files as notes appended to one another, as lists of days, and as people number, quote and end them.

use super::{codes, files, read};
use crate::model::{Decision, DecisionState, Problem};

const TEAM: (&str, &str) = ("team.md", "| Name | Role |\n|-|-|\n| Ilse | Pilot |\n");
const ROUTING: (&str, &str) = ("routing.md", "| Signal | Agent |\n|-|-|\n| x | Ilse |\n");

fn decided(text: &str) -> (Vec<Decision>, Vec<Problem>) {
    let (team, problems) = read(&[TEAM, ROUTING, ("decisions.md", text)]);
    let mut decisions = team.decisions;
    decisions.sort_by_key(|decision| decision.source.as_ref().map(|source| source.line));
    (decisions, problems)
}

/// `date title / by`, in the order of the file.
fn rows(text: &str) -> Vec<String> {
    decided(text).0.iter().map(row).collect()
}

fn row(decision: &Decision) -> String {
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    format!("{} {} / {}", or_dash(&decision.date), decision.title, or_dash(&decision.by))
}

/// Every byte of the file is in a piece or between two, and the pieces are the entries.
fn parts(text: &str) -> Vec<String> {
    let files = files(&[("decisions.md", text)]);
    let pieces = crate::parse::split(&files, "decisions.md");
    assert!(pieces.is_sorted_by(|a, b| a.range.end <= b.range.start), "{pieces:?}");
    assert!(pieces.iter().all(|piece| piece.range.contains(&piece.body) || piece.body == piece.range.end));
    pieces.iter().map(|piece| text[piece.range.clone()].to_owned()).collect()
}

#[test]
fn a_heading_may_begin_with_a_number() {
    let text = "# Log\n\n## 2026-01-05: Tar\n\n## 1. Use wax\n\n## 3 masts\n\n## #5 Ropes\n\n## 2026-2-8: Flags\n\n## 2. Context\nold\n\n### 7 days\n\nlong\n";
    assert_eq!(rows(text), ["2026-01-05 Tar / -", "2026-02-08 Flags / -"]);
    // Above what is dated they are entries.
    let before = format!(
        "# Log\n\n{}\n\n## 2026-01-05: Tar\n",
        "## 1. Use wax\n\n## 3 masts\n\n## #5 Ropes\n\n## 2. Context\nold\n\n### 7 days\n\nlong"
    );
    assert_eq!(rows(&before), ["- 1. Use wax / -", "- 3 masts / -", "- #5 Ropes / -", "2026-01-05 Tar / -"]);
    // The parts of what stands above them.
    let parts = "## 2026-01-05: Tar\n\n# Proposal\n\n## Steps\n\n## 1. Scrape\nx\n\n### 1.1 Sand\ny\n";
    assert!(rows(parts).iter().all(|row| !row.contains("Sand")), "{:?}", rows(parts));
}

#[test]
fn a_quoted_heading_is_part_of_its_entry() {
    let text = "### 2026-01-05: Tar\n\n> ### 2026-01-01: Rum\n> **By:** Otto\n\nBlack.\n\n### 2026-01-06: Wax\n> **By:** Uwe\n";
    assert_eq!(rows(text), ["2026-01-05 Tar / -", "2026-01-06 Wax / Uwe"]);
    assert_eq!(parts(text).concat(), text);
    assert!(decided(text).0[0].text.contains("Rum") && decided(text).0[0].text.contains("Black."));
}

#[test]
fn who_decided_has_many_names() {
    for lines in ["**Date:** 2026-03-01\n**Decision maker:** Uwe\n", "- Date: 2026-03-01\n- Logged by: Uwe\n"] {
        let text = format!("# Decisions\n\n## Tar\n{lines}\n## Wax\n**Date:** 2026-03-02\n");
        assert_eq!(rows(&text)[0], "2026-03-01 Tar / Uwe", "{lines}");
    }
    assert_eq!(rows("### Tar (2026-03-01, second look)\n"), ["2026-03-01 Tar — second look / -"]);
    assert_eq!(rows("### 2026-03-01: Tar\nBy design, it is black.\n"), ["2026-03-01 Tar / -"]);
}

#[test]
fn what_is_struck_or_said_to_be_withdrawn_is_ended() {
    let text = "### 2026-01-05: ~~Tar~~ (withdrawn)\n\n### ~~2026-01-06: Wax~~\n\n### 2026-01-07: Rum [SUPERSEDED by tea]\n\n### 2026-01-08: ~~Oak~~ Pine masts\n";
    let ended: Vec<_> = decided(text).0.iter().map(|decision| (decision.title.clone(), decision.ended())).collect();
    let wanted = [
        ("Tar", Some(DecisionState::Withdrawn)),
        ("Wax", Some(DecisionState::Withdrawn)),
        ("Rum [SUPERSEDED by tea]", Some(DecisionState::Superseded)),
        ("~~Oak~~ Pine masts", None),
    ];
    assert_eq!(ended, wanted.map(|(title, state)| (title.to_owned(), state)));
}

/// Titles of those in force and of those in archives.
fn titles(texts: &[(&str, &str)]) -> (Vec<String>, Vec<String>, Vec<Problem>) {
    let (team, problems) = read(&[&[TEAM, ROUTING], texts].concat());
    let titles = |list: &[Decision]| list.iter().map(|decision| decision.title.clone()).collect();
    (titles(&team.decisions), titles(&team.archived), problems)
}

#[test]
fn records_archives_and_merged_notes_are_found_by_their_names() {
    let (current, archived, problems) = titles(&[
        ("DECISIONS.md", "### 2026-01-09: Tar\n"),
        ("decisions/0007-wax.md", "# 7. Wax\n\nDate: 2026-01-08\n\n## Status\n\nAccepted\n\n## Context\n\nDry.\n"),
        ("decisions/2026-01-07-oars.md", "# Oars\n\n**By:** Uwe\n"),
        ("decisions/adr-12.md", "# Sails\n\n**Date:** 2026-01-06\n"),
        ("decisions-2025.md", "### 2025-01-05: Rum\n"),
        ("decisions_archive.md", "### 2025-01-04: Tea\n"),
        ("archive/decisions.md", "### 2025-01-03: Salt\n"),
        ("decisions/merged/uwe-tar.md", "# Tar\n\n**Date:** 2026-01-09\n"),
        ("decisions/inbox/processed/uwe-bread.md", "# Bread\n\n**Date:** 2025-01-02\n"),
        ("decisions/README.md", "### 2026-01-01: An example\n"),
        ("decisions/talks.md", "### 2026-01-01: Flags\n"),
    ]);
    assert_eq!(current, ["Tar", "7. Wax", "Oars", "Sails", "Flags"]);
    assert_eq!(archived, ["Rum", "Tea", "Salt", "Bread"]);
    assert_eq!(codes(&problems), []);
    for (path, holds) in [
        ("decisions.md", true),
        ("decisions-archive-2025-Q1.md", true),
        ("decisions/inbox/note.md", true),
        ("decisions/notes.md", true),
        ("decisions/2026/talks/notes.md", true),
        ("decisions/README.md", false),
        ("decisions/3d-print.md", true),
        ("decisions/archive/2026-05/print.md", false),
        ("team.md", false),
        ("decisions-how-to.md", false),
    ] {
        assert_eq!(crate::parse::holds_decisions(path), holds, "{path}");
    }
}

#[test]
fn lists_and_twins_in_front_matter() {
    let file = |id: &str, more: &str, title: &str| format!("---\nid: {id}\ndate: 2026-01-05\n{more}---\n# {title}\n");
    let (one, two) = (file("a1", "", "Tar"), file("a1", "", "Wax"));
    let three = file("c3", "by: [Uwe, y]\nsupersedes: [a1, \"b2\"]\nscope: src/**\n", "Rum");
    let texts = [
        ("decisions/2026/01/05-tar-a1.md", &*one),
        ("decisions/2026/01/05-wax-a1.md", &*two),
        ("decisions/2026/01/05-rum-c3.md", &*three),
    ];
    let (team, problems) = read(&[&[TEAM, ROUTING], &texts[..]].concat());
    assert_eq!(codes(&problems), [("decision-supersedes-many", 1), ("decision-id-twice", 1)]);
    let rum = team.decisions.iter().find(|decision| decision.title == "Rum").expect("it is read");
    assert_eq!((rum.by.as_deref(), rum.scope.as_slice()), (Some("Uwe, y"), &["src/**".to_owned()][..]));
    assert_eq!(rum.supersedes.as_ref().map(|id| id.as_str()), Some("a1"));
    let note = "---\ndate: 2026-01-05\nby: [Uwe, Otto]\n---\nWe hoist no flags.\n";
    let (team, _) = read(&[TEAM, ROUTING, ("decisions/inbox/flags.md", note)]);
    assert_eq!(team.decisions[0].by.as_deref(), Some("Uwe, Otto"));
}

#[test]
fn a_day_that_is_none_leaves_a_decisions_file_undated() {
    let file = |date: &str| format!("---\nid: a1\ndate: {date}\n---\n# Tar\n");
    for (date, wanted, count) in [
        ("soon", None, 1),
        ("2026-02-30", None, 1),
        ("2026-01-05", Some("2026-01-05"), 0),
        ("2026-01-05T10:00:00Z", Some("2026-01-05T10:00:00Z"), 0),
    ] {
        let text = file(date);
        let (team, problems) = read(&[TEAM, ROUTING, ("decisions/2026/01/05-tar-a1.md", &text)]);
        assert_eq!(team.decisions[0].date.as_deref(), wanted);
        assert_eq!(codes(&problems), vec![("decision-date", 1); count], "{date}");
    }
}

#[test]
fn notes_put_aside_are_archived_however_the_folder_is_called() {
    let note = "# Tar the hull\n\n## Scope completed\n\nAll.\n\n## Files changed\n\nNone.\n";
    for folder in ["inbox-archive", "inbox/_processed", "merged-notes", "archive"] {
        let (team, problems) = read(&[TEAM, ROUTING, (&format!("decisions/{folder}/tar.md"), note)]);
        assert_eq!((team.decisions.len(), team.archived.len(), codes(&problems)), (0, 1, vec![]), "{folder}");
    }
}

#[test]
fn sections_of_a_note_pasted_below_an_entry_are_its() {
    let text = "# Log\n\n## Active Decisions\n\n### 2026-01-05: Tar\n\nAll.\n\n## What was done\n\n### Step one\n\nBoil.\n\n\
        ### Step two\n\nBrush.\n\n## Open ends\n\n### 2026-01-06: Ropes\n\nNew.\n\n### 2026-01-07: GET /boats/{id}\n\nOne.\n\n## Format\n\n#### {date}: {title}\n\nText.\n";
    assert_eq!(rows(text), ["2026-01-05 Tar / -", "2026-01-06 Ropes / -", "2026-01-07 GET /boats/{id} / -"]);
    // Where most entries say nothing of their day, groups hold entries.
    let mixed =
        "# Log\n\n## Hull\n\n### Tar it\n\nAll.\n\n### Dry it\n\nAll.\n\n## Later\n\n### 2026-01-05: Ropes\n\nNew.\n";
    assert_eq!(rows(mixed).len(), 3);
    let first = "# Log\n\n## Testing\n\n### Tar it\n\nAll.\n\n## Status\n\n### Dry it\n\nAll.\n\n## Later\n\n### 2026-01-05: Ropes\n\nNew.\n";
    assert_eq!(rows(first).len(), 3);
    // Usual sections of notes at that level tell otherwise.
    let pasted = "# Log\n\n### 2026-01-05: Tar\n\n**By:** Uwe\n\n## Context\n\nSalt.\n\n## Plan of work\n\n### First\n\nBoil.\n\n### Second\n\nBrush.\n\n\
        ### Third\n\nDry.\n\n## Consequences\n\nDry.\n\n### 2026-01-06: Ropes\n\nNew.\n";
    assert_eq!(rows(pasted), ["2026-01-05 Tar / Uwe", "2026-01-06 Ropes / -"]);
}

#[test]
fn a_note_with_a_title_is_one_decision() {
    let note = "# The hull is tarred twice\n\n## Decision\n\nTwice.\n\n## Affected boats\n\nAll.\n\n## What was lost\n\nTar.\n";
    for (text, count) in [
        (note, 1),
        ("## Decision\n\nTwice.\n\n## Why\n\nSalt.\n", 1),
        ("# Decisions of May\n\n## Tar\n\nAll.\n\n## Ropes\n\nNew.\n", 2),
    ] {
        let path = "decisions/inbox/2026-01-05-hull.md";
        let (team, _) = read(&[TEAM, ROUTING, (path, text)]);
        assert_eq!(team.decisions.len(), count, "{text}");
        assert_eq!(team.decisions.iter().filter(|d| d.date.is_some()).count(), usize::from(count == 1), "{text}");
        let ids: Vec<_> =
            crate::parse::split(&files(&[(path, text)]), path).into_iter().map(|p| p.decision.id).collect();
        assert_eq!(ids.len(), count, "{text}");
        assert!(team.decisions.iter().all(|d| ids.contains(&d.id)), "{text}");
    }
}

#[test]
fn what_a_merge_writes_over_notes_is_no_decision() {
    let text = "# Decisions\n\n### 2026-01-05: Tar\n\nAll.\n\n## 2026-01-06T10:00Z: MERGED ENTRIES\n\n## MERGED FROM INBOX: ropes.md\n\n# Ropes\n\n\
        **Date:** 2026-01-06\n\nNew.\n\n### 7. (Merged from sails.md)\n\n**Date:** 2026-01-07\n\nDry.\n";
    assert_eq!(rows(text), ["2026-01-05 Tar / -", "2026-01-06 Ropes / -", "2026-01-07 7. (Merged from sails.md) / -"]);
}

#[test]
fn undated_headings_below_a_dated_entry_are_parts_of_it() {
    for (text, wanted) in [
        // Pasted notes whose sections are no deeper than the entries.
        (
            "# Decisions\n\n## 2026-01-05: Tar\n\nBlack.\n\n## API Changes\n\nNone.\n\n### Rollout\n\nSlow.\n\n## Wax\n\nNo.\n\n## 2026-01-06: Ropes\n\nLong.\n",
            &["2026-01-05 Tar / -", "2026-01-06 Ropes / -"][..],
        ),
        ("## 2026-01-05: Tar\n\n# Notes on tar\n\nBlack.\n\n## Open questions\n\nMany.\n", &["2026-01-05 Tar / -"]),
        // A frame's name is a section's too.
        ("## 2026-01-05: Tar\n\n## Decisions\n\n### First\n\nBlack.\n\n### Second\n\nHot.\n", &["2026-01-05 Tar / -"]),
        // They carry something of their own.
        ("## 2026-01-05: Tar\n\n## Wax\n\n**By:** Uwe\n", &["2026-01-05 Tar / -", "- Wax / Uwe"]),
        ("## 2026-01-05: Tar\n\n## Wax\n\n**What:** White.\n", &["2026-01-05 Tar / -", "- Wax / -"]),
        ("## 2026-01-05: Tar\n\n## Wax\n\n**Date:** 2026-01-06\n", &["2026-01-05 Tar / -", "2026-01-06 Wax / -"]),
        ("## 2026-01-05: Tar\n\n## ADR-7 Wax\n\nWhite.\n", &["2026-01-05 Tar / -", "- ADR-7 Wax / -"]),
        // Above every dated one, and below another frame, nothing dated holds them.
        ("## Wax\n\nWhite.\n\n## 2026-01-05: Tar\n\nBlack.\n", &["- Wax / -", "2026-01-05 Tar / -"]),
        (
            "## Active Decisions\n\n### 2026-01-05: Tar\n\nBlack.\n\n## Archived Decisions\n\n### Wax\n\nWhite.\n",
            &["2026-01-05 Tar / -", "- Wax / -"],
        ),
    ] {
        assert_eq!(rows(text), wanted, "{text}");
    }
}

/// Sections of notes that were pasted below others are no decisions, whoever signs them.
#[test]
fn pasted_sections_are_no_decisions() {
    for title in ["Verdict", "Consequences", "Notes", "2. Files changed"] {
        for signed in ["", "**By:** Rex\n", "**Date:** 2026-01-07\n**By:** Rex\n"] {
            let text = format!(
                "# Decisions\n\n## 2026-01-05: Tar\n**By:** Uwe\n\nBlack.\n\n## {title}\n{signed}\nGood.\n\n\
                 ### Second look\n\nMore.\n\n## 2026-01-06: Wax\n**By:** Mia\n\nWhite.\n"
            );
            assert_eq!(rows(&text), ["2026-01-05 Tar / Uwe", "2026-01-06 Wax / Mia"], "{text}");
        }
        let text = format!("# Decisions\n\n## Use tar\n\nBlack.\n\n## {title}\n\nGood.\n\n## Use wax\n\nWhite.\n");
        assert_eq!(rows(&text), ["- Use tar / -", "- Use wax / -"], "{text}");
    }
}

#[test]
fn remarks_are_no_part_of_an_author() {
    for (by, expected) in [
        ("Uwe (Lead)", "Uwe"),
        ("Uwe (Lead) + Mia (via chat, in (part))", "Uwe + Mia"),
        ("Uwe (Lead), Mia (Docs)", "Uwe, Mia"),
        ("Uwe (Lead", "Uwe"),
        ("(unknown)", "(unknown)"),
    ] {
        assert_eq!(
            rows(&format!("## 2026-01-05: Tar\n**By:** {by}\n\nBlack.\n")),
            [format!("2026-01-05 Tar / {expected}")]
        );
    }
}

#[test]
fn front_matter_says_the_subject_and_the_owner() {
    for (text, wanted) in [
        ("---\nsubject: Tar the hull\nowner: Uwe\ndate: 2026-01-05\n---\n\nBlack.\n", "2026-01-05 Tar the hull / Uwe"),
        (
            "---\ntitle: \"Tar the hull\"\nowner: Uwe\n---\n\n## Context\n\nIt leaks.\n\n## Decision\n\nBlack.\n",
            "- Tar the hull / Uwe",
        ),
        ("---\ndate: 2026-01-05\nsubject: Hulls\n---\n\n# Tar the hull\n\nBlack.\n", "2026-01-05 Tar the hull / -"),
        ("---\ndate: 2026-01-05\n---\n\nWe tar.\n", "2026-01-05 We tar. / -"),
    ] {
        let (team, _) = read(&[TEAM, ROUTING, ("decisions/inbox/note.md", text)]);
        let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let notes: Vec<String> =
            team.decisions.iter().map(|d| format!("{} {} / {}", or_dash(&d.date), d.title, or_dash(&d.by))).collect();
        assert_eq!(notes, [wanted], "{text}");
    }
}

#[test]
fn milliseconds_and_seconds_sort_together() {
    let file = |id: &str, date: &str| {
        (format!("decisions/2026/01/05-{id}.md"), format!("---\nid: \"{id}\"\ndate: \"{date}\"\n---\n# {id}\n"))
    };
    let own = [
        file("a1", "2026-01-05T09:00:00.250Z"),
        file("b2", "2026-01-05T09:00:00Z"),
        file("c3", "2026-01-05T09:00:00.010Z"),
        file("d4", "2026-01-05"),
        file("e5", "2026-01-05T09:00:01Z"),
    ];
    let mut all: Vec<(&str, &str)> = vec![TEAM, ROUTING];
    all.extend(own.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    let ids: Vec<String> = read(&all).0.decisions.iter().map(|decision| decision.id.to_string()).collect();
    assert_eq!(ids, ["e5", "a1", "c3", "b2", "d4"]);
}

/// One document is one decision, wherever it is kept and whether or not its sections say by whom and when.
#[test]
fn sections_of_one_document_are_no_decisions() {
    let body = "## Context\n\nIt leaks.\n\n## Verdict\n\nTar.\n\n## Consequences\n\nBlack hands.\n\n## Files changed\n\nhull.md\n";
    let signed = body.replace("## Verdict\n", "## Verdict\n**By:** Uwe\n**Date:** 2026-03-01\n");
    let first = body.replace("## Context\n", "## Context\n**By:** Uwe\n**Date:** 2026-03-01\n");
    for (text, expected) in [
        (format!("# Review of the hull\n\n{body}"), "- Review of the hull / -"),
        (format!("# Review of the hull\n\nIn short: tar.\n\n{body}"), "- Review of the hull / -"),
        (format!("# Review of the hull (2026-03-01)\n\n{signed}"), "2026-03-01 Review of the hull / -"),
        (format!("# Review of the hull\n\n{signed}"), "2026-03-01 Review of the hull / Uwe"),
        (
            format!("# Archive\n\n{}", format!("# Review of the hull\n\n{signed}").replace("# ", "## ")),
            "2026-03-01 Review of the hull / Uwe",
        ),
        (format!("# Review of the hull\n\n{first}"), "2026-03-01 Review of the hull / Uwe"),
        (format!("# Review of the hull\n**Date:** 2026-02-01\n\n{first}"), "2026-02-01 Review of the hull / Uwe"),
    ] {
        for path in ["decisions.md", "decisions-archive.md", "decisions/archive/hull.md"] {
            let (team, _) = read(&[TEAM, ROUTING, (path, &text)]);
            let found: Vec<String> = team.decisions.iter().chain(&team.archived).map(row).collect();
            assert_eq!(found, [expected], "{path}: {text}");
        }
    }
    // A list stays a list.
    for text in
        ["# Choices\n\n## Use tar\n\nx\n\n## Use wax\n\ny\n", "# Decisions\n\n## Why tar\n\nx\n\n## Use wax\n\ny\n"]
    {
        assert_eq!(rows(text).len(), 2, "{text}");
    }
    assert_eq!(rows("# Choices\n\n## Context\n\nx\n\n## Use tar\n\nx\n\n## Use wax\n\ny\n").len(), 3);
}

#[test]
fn who_asked_for_a_decision_did_not_make_it() {
    for (lines, by) in [
        ("**Requested by:** Ann\n", "-"),
        ("**Requested by:** Ann\n**Owner:** Uwe\n", "Uwe"),
        ("**By:** Uwe\n**Requested by:** Ann\n", "Uwe"),
        ("**By:** Uwe (hull), requested by Ann\n", "Uwe"),
        ("**By:** Uwe (Requested by Ann)\n", "Uwe"),
        ("**By:** Requested by Ann\n", "Requested by Ann"),
    ] {
        assert_eq!(
            rows(&format!("### 2026-03-01: Tar\n{lines}\nBlack.\n")),
            [format!("2026-03-01 Tar / {by}")],
            "{lines}"
        );
    }
}

#[test]
fn several_bold_keys_may_share_a_line() {
    for line in [
        "**By:** Uwe **Date:** 2026-03-01",
        "**Date:** 2026-03-01 **By:** Uwe",
        "**By:** Uwe, **Date:** 2026-03-01",
        "**By:** Uwe | **Date:** 2026-03-01",
        "- **By:** Uwe **Date:** 2026-03-01 **Status:** accepted",
        "**Date:** 2026-03-01   **By:** Uwe **What:** black, **not** blue",
    ] {
        assert_eq!(rows(&format!("# Decisions\n\n## Tar\n{line}\n\nBlack.\n")), ["2026-03-01 Tar / Uwe"], "{line}");
    }
    // A bold word in a sentence is no key.
    let text = "### 2026-03-01: Tar\n**By:** Uwe of the **Date: 2025-01-01** club\n";
    assert_eq!(rows(text), ["2026-03-01 Tar / Uwe of the Date: 2025-01-01 club"]);
}

#[test]
fn a_dated_heading_does_not_swallow_signed_entries() {
    let inner = "### Tar\n**By:** Uwe\n\nBlack.\n\n### Wax\n**By:** Ilse\n\n#### Why\n\nIt shines.\n";
    let both = ["2026-03-01 Tar / Uwe", "2026-03-01 Wax / Ilse"];
    for heading in ["## 2026-03-01: Meeting", "## 2026-03-01", "## Meeting (2026-03-01)"] {
        let text = format!("# Decisions\n\n{heading}\n\n{inner}\n## 2026-02-01: Flags\n\nRed.\n");
        assert_eq!(rows(&text), [&both[..], &["2026-02-01 Flags / -"]].concat(), "{heading}");
    }
    // What the heading says itself is an entry too.
    let text = format!("## 2026-03-01: Meeting\n\nAll were there.\n\n{inner}");
    assert_eq!(rows(&text), [&["2026-03-01 Meeting / -"][..], &both].concat());
    // Sections, or what only one of them signs, belong to the entry.
    for text in [
        "## 2026-03-01: Tar\n\nBlack.\n\n### Review\n**By:** Ilse\n\n### Steps\n\nx\n",
        "## 2026-03-01: Tar\n\nBlack.\n\n### Verdict\n**By:** Ilse\n",
        "## 2026-03-01: Tar\n**By:** Uwe\n\n### Answer\n**By:** Ilse\n",
    ] {
        assert_eq!(rows(text).len(), 1, "{text}");
    }
}
