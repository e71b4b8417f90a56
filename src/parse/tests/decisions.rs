//! The forms of decision files.

use super::{codes, read};
use crate::model::{Decision, LegacyStatus, Problem};

const TEAM: (&str, &str) = ("team.md", "| Name | Role |\n|-|-|\n| Ilse | Pilot |\n");
const ROUTING: (&str, &str) = ("routing.md", "| Signal | Agent |\n|-|-|\n| x | Ilse |\n");

fn decided(text: &str) -> (Vec<Decision>, Vec<Problem>) {
    let (team, problems) = read(&[TEAM, ROUTING, ("decisions.md", text)]);
    (team.decisions, problems)
}

/// `date title by`, in the order of the file.
fn rows(text: &str) -> Vec<String> {
    let mut decisions = decided(text).0;
    decisions.sort_by_key(|decision| decision.source.as_ref().map(|source| source.line));
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    decisions.iter().map(|d| format!("{} {} / {}", or_dash(&d.date), d.title, or_dash(&d.by))).collect()
}

#[test]
fn dated_headings_at_any_level() {
    let text = "# Decisions\n\n> shared\n\n## 2026-01-05: Tar the hull\n**By:** Uwe\n\n### Why\nold\n\n### 2026-01-06T08:00:00Z — New ropes\n\n\
        ### 📌 2026-01-07: Flags\n\n#### Dinner at six (2026-01-08)\n**Author:** Otto\n";
    let all = ["2026-01-05 Tar the hull / Uwe", "2026-01-06 New ropes / -", "2026-01-07 Flags / -"];
    assert_eq!(rows(text), [&all[..], &["2026-01-08 Dinner at six / Otto"]].concat());
    assert!(decided(text).0.iter().any(|d| d.text.contains("### Why\nold")));
    // Inside an entry, a date alone is of a section.
    assert_eq!(rows(&text.replace("**Author:** Otto", "Fish.")), all);
    assert_eq!(rows("### Dinner at six (2026-01-08)\n**Author:** Otto\n"), ["2026-01-08 Dinner at six / Otto"]);
}

/// A section that is called as the file is belongs to its entry.
#[test]
fn a_title_that_stands_below_an_entry_is_a_section() {
    let text = "# Crew Decisions\n\n## Tar\n**By:** Uwe\n\n### Crew Decisions\nall of it\n";
    assert!(decided(text).0[0].text.contains("all of it"));
}

/// Two files in one, a heading over entries, and braces in a title.
#[test]
fn headings_that_end_no_entry_or_begin_one() {
    for (text, expected) in [
        (
            "# Decisions\n\n## 2026-01-05: Tar\ntext\n\n# Decisions\n\nShared.\n\n### Wax\n**By:** Uwe\n",
            vec!["2026-01-05 Tar / -", "- Wax / Uwe"],
        ),
        (
            "## 2026-01-05: Fittings\n\n### 2026-01-04: Tar\ntext\n\n### Wax\n**Date:** 2026-01-03\n",
            vec!["2026-01-04 Tar / -", "2026-01-03 Wax / -"],
        ),
        ("## 2026-01-05: Fittings\n\n### Tar\ntext\n", vec!["2026-01-05 Fittings / -"]),
        ("### 2026-01-05: Charts in {hold}/charts\ntext\n", vec!["2026-01-05 Charts in {hold}/charts / -"]),
        ("### {date}: {title}\n**By:** {name}\n\n### 2026-01-05: Tar\ntext\n", vec!["2026-01-05 Tar / -"]),
    ] {
        assert_eq!(rows(text), expected, "{text}");
    }
}

/// A file of another name: what it says × what is known already.
#[test]
fn files_of_other_names_hold_what_has_a_date_and_is_no_copy() {
    for (file, found) in [
        ("### 2026-01-05: Tar\ntext\n\n### 2026-01-06: Wax\ntext\n", vec!["Tar", "Wax"]),
        ("### 2026-01-05: Tar\nother text\n", vec!["Tar"]),
        ("# Wax\n**Date:** 2026-01-06\n", vec!["Tar", "Wax"]),
        ("# Wax\n\nWe think of it.\n", vec!["Tar"]),
        ("# Wax\n**By:** Uwe\n", vec!["Tar"]),
    ] {
        let main = ("decisions.md", "### 2026-01-05: Tar\ntext\n");
        let (team, _) = read(&[TEAM, ROUTING, main, ("decisions/uwe-talks.md", file)]);
        let mut titles: Vec<&str> = team.decisions.iter().map(|decision| &*decision.title).collect();
        titles.sort_unstable();
        assert_eq!(titles, found, "{file}");
    }
}

/// Who is named × whether somebody signs, and whether there is such a member.
#[test]
fn a_title_may_name_its_author() {
    for (title, lines, by) in [
        ("Tar the hull (Ilse)", "", Some("Ilse")),
        ("Ilse — tar the hull", "", Some("Ilse")),
        ("Ilse: tar the hull", "", Some("Ilse")),
        ("Tar the hull (Ilse)", "**By:** Uwe\n", Some("Uwe")),
        ("Tar the hull (Hob)", "", None),
        ("Hob: tar the hull", "", None),
        ("Ilse tars the hull", "", None),
    ] {
        let text = format!("### 2026-01-05: {title}\n{lines}\ntext\n");
        let (team, _) = read(&[TEAM, ROUTING, ("agents/ilse/charter.md", "# Ilse\n"), ("decisions.md", &text)]);
        assert_eq!(team.decisions[0].by.as_deref(), by, "{title}");
    }
}

#[test]
fn metadata_lines_in_every_form() {
    for lines in [
        "**Date:** 2026-03-01\n**Author:** Uwe\n**Status:** Accepted\n",
        "- **Date:** 2026-03-01T10:00:00-04:00\n- **Owner:** Uwe\n",
        "- Date: 2026-03-01\n- By: Uwe\n",
        "| Field | Value |\n|-|-|\n| **Date** | 2026-03-01 |\n| Decided by | Uwe |\n",
        "**Date:** 2026-03-01 | **By:** Uwe\n",
        "> **When:** March 1, 2026\n> **Agent:** Uwe\n",
        "**Date:** 2026-03-01\n**Author:** Uwe\n---\n",
    ] {
        let text = format!("# Team Decisions\n\n## Tar the hull\n{lines}\nText.\n\n## Paint\n{lines}\n");
        assert_eq!(rows(&text), ["2026-03-01 Tar the hull / Uwe", "2026-03-01 Paint / Uwe"], "{lines}");
    }
}

#[test]
fn pasted_notes_keep_their_sections() {
    let text = "# Decisions\n\n## Active Decisions\n\n# Decision: Tar the hull\n\n**Date:** 2026-03-01\n**Author:** Uwe\n\n## Context\n\nOld.\n\n## Decision\n\n### Which tar\nblack\n\n---\n\n\
        # Uwe: Ropes\n\n- **Date:** 2026-03-02\n\n## Why\n\n### 2026-03-03: A pasted entry\n**By:** Otto\n\n## Files\n\nnone\n\n## Governance\n\n- ask first\n";
    assert_eq!(
        rows(text),
        ["2026-03-01 Decision: Tar the hull / Uwe", "2026-03-02 Uwe: Ropes / -", "2026-03-03 A pasted entry / Otto"]
    );
    let decisions = decided(text).0;
    let pasted = decisions.iter().find(|d| d.title == "A pasted entry").expect("the entry");
    assert!(pasted.text.contains("## Files") && !pasted.text.contains("ask first"));
}

#[test]
fn undated_siblings_are_entries_and_sections_are_not() {
    let text = "# Decisions\n\n## Active Decisions\n\n### Ropes later\n\nnot now\n\n### Rationale\n\nmoney\n\n### Tar the hull (2026-03-01)\n\n#### Which (2026-03-01)\nblack\n\n### Hulls in winter\n\ncold\n\n## Governance\n\n### Who decides\nall\n";
    assert_eq!(rows(text), ["- Ropes later / -", "2026-03-01 Tar the hull / -"]);
}

#[test]
fn plain_headings_are_read_by_their_outline() {
    let text = "# Decisions\n\n## Active Decisions\n\n### Tar the hull\n\nBlack.\n\n#### More\nx\n\n### Ropes\n\n#### Context\nOld.\n\n## Governance\n\n- ask\n";
    assert_eq!(rows(text), ["- Tar the hull / -", "- Ropes / -"]);
    let grouped = "# Decisions\n\n## Hull\n\n### Tar it\n\nx\n\n### Paint it\n\nx\n\n## Deck\n\nScrub it.\n";
    assert_eq!(rows(grouped), ["- Tar it / -", "- Paint it / -", "- Deck / -"]);
    assert_eq!(rows("# Squad Decisions\n\n## Active Decisions\n\nNone yet.\n\n## Governance\n\n- ask\n"), [""; 0]);
}

#[test]
fn days_over_their_entries() {
    let text = "# Decisions\n\n## 2026-01-05\n\n### Tar\n\nx\n\n#### Why\ny\n\n### Ropes\n\nx\n\n## 2026-01-06\n\nWe hoist no flags.\n\n## 2026-01-07\n\n### Context\n\nx\n";
    assert_eq!(
        rows(text),
        ["2026-01-05 Tar / -", "2026-01-05 Ropes / -", "2026-01-06 2026-01-06 / -", "2026-01-07 2026-01-07 / -"]
    );
}

#[test]
fn a_year_leads_but_is_no_date() {
    let text =
        "### 2026-01-05: Tar\n\n### 2026: Ropes\n**By:** Uwe\n\n### Flags\n**Date:** 2026-07\n**Author:** Otto\n";
    assert_eq!(rows(text), ["2026-01-05 Tar / -", "- 2026: Ropes / Uwe", "- Flags / Otto"]);
}

#[test]
fn a_long_file_without_an_entry_is_reported() {
    let (decisions, problems) = decided(&"We talked about tar again. ".repeat(60));
    assert_eq!(decisions, []);
    assert_eq!(codes(&problems), [("decisions-empty", 1)]);
}

#[test]
fn twins_are_reported_and_counted_once() {
    let entry = "### 2026-01-05: Tar\n**By:** Uwe\n\nblack\n\n";
    let text = format!("# Decisions\n\n{entry}### 2026-01-05: Tar\n\nred\n\n{entry}");
    let (decisions, problems) = decided(&text);
    assert_eq!(decisions.len(), 2);
    assert_eq!(codes(&problems), [("decision-duplicate", 12)]);
    let merged = "# Decision: Tar\n\n# Decision: Tar\n\n**Date:** 2026-01-05\n";
    assert_eq!(rows(merged), ["2026-01-05 Decision: Tar / -"]);
}

#[test]
fn inbox_archive_and_own_files() {
    let own = "---\nid: 0a\ndate: 2026-04-01\nby: uwe\n---\n# Own\n\nx\n";
    let (team, problems) = read(&[
        TEAM,
        ROUTING,
        ("decisions.md", "### 2026-01-05: Tar\n"),
        ("decisions/inbox/uwe-ropes.md", "# Ropes\n\n**Date:** 2026-01-06\n\n## Why\n\nold\n"),
        ("decisions/inbox/2026-01-07-plain.md", "We hoist no flags.\n"),
        ("decisions/inbox/matter.md", "---\ndate: 2026-01-08\nauthor: otto\n---\n\nDinner at six.\n"),
        ("decisions/inbox/two.md", "### 2026-01-09: One\n\n### 2026-01-10: Two\n"),
        ("decisions/inbox/empty.md", "\n"),
        ("decisions/2026/04/01-own-0a.md", own),
        ("decisions/decisions.md", "### 2025-01-01: Old\n"),
        ("decisions-archive.md", "### 2025-01-02: Older\n"),
        ("decisions/archive/2024.md", "### 2024-01-02: Oldest\n"),
        ("decisions/notes.md", "### 2024-01-02: By another name\n"),
    ]);
    let rows = |list: &[Decision]| -> Vec<String> {
        list.iter().map(|d| format!("{} {}", d.date.as_deref().unwrap_or("-"), d.title)).collect()
    };
    assert_eq!(
        rows(&team.decisions),
        [
            "2026-04-01 Own",
            "2026-01-10 Two",
            "2026-01-09 One",
            "2026-01-08 Dinner at six.",
            "2026-01-07 We hoist no flags.",
            "2026-01-06 Ropes",
            "2026-01-05 Tar",
            "2024-01-02 By another name"
        ]
    );
    assert_eq!(rows(&team.archived), ["2025-01-02 Older", "2025-01-01 Old", "2024-01-02 Oldest"]);
    assert_eq!(codes(&problems), []);
    let (team, _) = read(&[TEAM, ROUTING, ("decisions/decisions.md", "### 2025-01-01: Only\n")]);
    assert_eq!((team.decisions.len(), team.archived.len()), (1, 0));
}

/// A merge may bring back an entry that has a file of its own by now.
#[test]
fn an_entry_that_has_a_file_of_its_own_counts_once() {
    let entry = "### 2026-01-05: Tar\n\nblack\n";
    for path in ["decisions.md", "decisions-archive.md"] {
        let (team, _) = read(&[TEAM, ROUTING, (path, entry)]);
        let id = team.decisions.iter().chain(&team.archived).next().expect("an entry").id.to_string();
        for (of_it, count) in [(&*id, 1), ("0a0a0a0a0a0a", 2)] {
            let own = format!("---\nid: {of_it}\ndate: 2026-01-05\n---\n# Tar\n\nred\n");
            let file = format!("decisions/2026/01/05-tar-{of_it}.md");
            let (team, _) = read(&[TEAM, ROUTING, (path, entry), (&file, &own)]);
            assert_eq!(team.decisions.len() + team.archived.len(), count, "{path} {of_it}");
            assert!(team.decisions.iter().any(|decision| decision.text.contains("red")), "{path} {of_it}");
        }
    }
}

#[test]
fn no_byte_of_text_is_lost() {
    let text = "# Decisions\n\n### 2026-01-05: A\n\nalpha\n\n```\n### 2026-01-06: fenced\n```\n\n## Open Questions\n\nbeta\n\n### 2026-01-07: B\n\ngamma\n";
    let decisions = decided(text).0;
    assert_eq!(decisions.len(), 2);
    for word in ["alpha", "fenced", "Open Questions", "beta", "gamma"] {
        assert_eq!(decisions.iter().filter(|d| d.text.contains(word)).count(), 1, "{word}");
    }
}

#[test]
fn what_a_decision_says_of_its_standing_is_read_from_fields_only() {
    let text = "# Decisions\n\n### 2026-03-01: Tar\n**Status:** Superseded by wax\n\n### 2026-03-02: Wax\n- **By:** Uwe\n- **Status:** ✅ Accepted\n\n\
        It was proposed and never rejected.\n\n### 2026-03-03: Sails\n\n#### Status\n\n**Rejected** by Otto.\n\n#### Why\nnone\n\n### 2026-03-04: Oars\n\
        **Status:** Proposed\n\n**Superseded by:** none\n\n### 2026-03-05: Rum\n**Superseded by:** Water\n";
    let statuses = |text: &str| {
        let mut decisions = decided(text).0;
        decisions.reverse();
        decisions.into_iter().map(|decision| decision.status).collect::<Vec<_>>()
    };
    let (proposed, superseded, rejected) = (LegacyStatus::Proposed, LegacyStatus::Superseded, LegacyStatus::Rejected);
    assert_eq!(statuses(text), [Some(superseded), None, Some(rejected), Some(proposed), Some(superseded)]);
}

#[test]
fn months_and_fields_may_be_in_another_language() {
    let text = "# Décisions\n\n## 5 février 2026 — Goudron\n\n**Auteur :** Otto\n\n## Cera, 6 de marzo de 2026\n**Autor:** Uwe\n\n## Segel\n**Datum:** 7 februar 2026\n**Von:** Ute\n";
    assert_eq!(rows(text), ["2026-02-05 Goudron / Otto", "2026-03-06 Cera / Uwe", "2026-02-07 Segel / Ute"]);
}
