use super::*;
use crate::model::{Kind, Slug, Status};

mod bytes;
mod charters;
mod context;
mod decision_forms;
mod decisions;
mod odd_rosters;
mod rosters;
mod routing;
mod routing_lines;

fn read(texts: &[(&str, &str)]) -> (Team, Vec<Problem>) {
    team(&files(texts))
}

/// Most teams of these tests have no charters, and that they have none is not what they are about.
fn team(files: &Files) -> (Team, Vec<Problem>) {
    let (team, mut problems) = super::team(files);
    problems.retain(|problem| problem.code != "charter-missing");
    (team, problems)
}

fn codes(problems: &[Problem]) -> Vec<(&str, usize)> {
    problems.iter().map(|problem| (&*problem.code, problem.line)).collect()
}

fn files(texts: &[(&str, &str)]) -> Files {
    Files {
        folder: ".squad".to_owned(),
        texts: texts.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect(),
    }
}

const TEAM: &str = "# Moles\n\n## Coordinator\n\n| Name | Role | Notes |\n|---|---|---|\n| Squad | Coordinator | x |\n\n\
    ## Members\n\n| Name | Role | Charter | Status |\n|---|---|---|---|\n\
    | 🏗️ Mira | Lead | [charter](.squad/agents/mira/charter.md) | ✅ Active |\n\
    | **Jo Ek** | Backend Dev | `agents/jo/charter.md` | 🔒 Retired |\n\
    | Scribe | Session Logger | — | 📋 Silent |\n| Sam | Product | — | 👤 Human |\n\n\
    ## Coding Agent\n\n| Name | Role | Charter | Status |\n|---|---|---|---|\n| @copilot | Coding Agent | — | 🤖 Coding Agent |\n";

#[test]
fn a_roster_lists_who_can_be_started() {
    let (team, _) = team(&files(&[("team.md", TEAM), ("agents/mira/charter.md", "# Mira — Lead\n")]));
    let rows: Vec<_> = team
        .members
        .iter()
        .map(|m| (m.name.as_str(), m.slug.as_str(), m.role.as_str(), m.kind, m.status, m.source.line, m.is_startable()))
        .collect();
    assert_eq!(
        rows,
        [
            ("Mira", "mira", "Lead", Kind::Agent, Status::Active, 13, true),
            ("Jo Ek", "jo", "Backend Dev", Kind::Agent, Status::Retired, 14, false),
            ("Scribe", "scribe", "Session Logger", Kind::Helper, Status::Silent, 15, false),
            ("Sam", "sam", "Product", Kind::Human, Status::Active, 16, false),
            ("copilot", "copilot", "Coding Agent", Kind::Bot, Status::Active, 22, false),
        ]
    );
    assert_eq!(team.members[0].charter.as_deref(), Some(".squad/agents/mira/charter.md"));
}

#[test]
fn a_byte_order_mark_and_crlf_change_nothing() {
    let odd = format!("\u{feff}{}", TEAM.replace('\n', "\r\n"));
    let (plain, _) = team(&files(&[("team.md", TEAM)]));
    let (odd, _) = team(&files(&[("team.md", &odd)]));
    assert_eq!(plain, odd);
}

#[test]
fn a_routing_row_names_who_works_and_who_reviews() {
    let routing = "# R\n\n| Work Type | Route To | Examples |\n|---|---|---|\n\
        | API, schema | Mira (impl) + Sam (review) | new endpoint, \"a, b\" |\n| {domain 1} | {Name} | x |\n| Docs | Nobody | |\n\
        \n| Label | Action | Who |\n|---|---|---|\n| `bug` | fix | Mira |\n";
    let (team, problems) = team(&files(&[("team.md", TEAM), ("routing.md", routing)]));
    assert_eq!(team.rules.len(), 2);
    let rule = &team.rules[0];
    assert_eq!((rule.signal.as_str(), rule.source.line), ("API, schema", 5));
    assert_eq!(rule.agents.iter().map(Slug::as_str).collect::<Vec<_>>(), ["mira"]);
    assert_eq!(rule.reviewer.as_ref().map(Slug::as_str), Some("sam"));
    assert_eq!(rule.examples, ["new endpoint", "a, b"]);
    let codes: Vec<_> = problems.iter().map(|p| (&*p.code, p.line)).collect();
    assert_eq!(codes, [("routing-placeholder", 6), ("routing-unknown-agent", 7)]);
}

#[test]
fn a_charter_says_who_the_agent_is() {
    let charter = "---\nmodel: from-matter\n---\n# Mira ΓÇö Lead\n\n## Identity\n\n- **Name**: Mira\n- **Role:** Tech Lead\n\
        - **Expertise:** design, review\n\n## What I Own\n\n### Core\n- engine\n\n## Boundaries\n\none\n\n---\n\ntwo\n\n\
        ## Model\n\n- **Preferred:** `claude-opus-4.6` (for reviews)\n\n## Tools\n\n- `view` — read\n- grep\n";
    let (team, problems) = team(&files(&[("team.md", TEAM), ("agents/mira/charter.md", charter), ("routing.md", "")]));
    let charter = &team.charters[&team.members[0].slug];
    assert_eq!(charter.name.as_deref(), Some("Mira"));
    assert_eq!(charter.role.as_deref(), Some("Tech Lead"));
    assert_eq!(charter.expertise, ["design", "review"]);
    assert!(
        charter.owns.contains("engine") && charter.boundaries.contains("one") && charter.boundaries.contains("two")
    );
    assert_eq!(charter.model.as_deref(), Some("claude-opus-4.6"));
    assert_eq!(charter.tools.as_deref(), Some(&["view".to_owned(), "grep".to_owned()][..]));
    assert_eq!(problems.iter().map(|p| &*p.code).collect::<Vec<_>>(), ["routing-empty"]);
}

#[test]
fn auto_is_not_a_model() {
    let charter = "# x\n\n## Model\n\n- **Preferred:** auto\n";
    let (team, _) = team(&files(&[("team.md", TEAM), ("agents/mira/charter.md", charter)]));
    assert_eq!(team.charters[&team.members[0].slug].model, None);
}

#[test]
fn decisions_are_read_from_entries_and_files() {
    let entries = "# Decisions\n\n> log\n\n### 2026-01-05: Use SQLite\n**By:** Kane\n**What:** one file\n\n#### Sub\ntext\n\n\
        ### Ship weekly (2026-01-06)\n\n### 2026-02-14T09:30:00Z: Alpha\n**Author:** A\n";
    let file = "---\nid: 0a1b\ndate: 2026-03-01\nby: mira\nscope: [\"src/**\"]\n---\n# Own file\n\nWhat.\n";
    let (team, problems) = team(&files(&[
        ("team.md", TEAM),
        ("routing.md", "| Signal | Agent |\n|-|-|\n| x | Mira |\n"),
        ("decisions.md", entries),
        ("decisions/2026/03/01-own-file-0a1b.md", file),
        ("decisions/README.md", "not a decision"),
    ]));
    let rows: Vec<_> = team.decisions.iter().map(|d| (d.title.as_str(), d.date.as_deref(), d.by.as_deref())).collect();
    assert_eq!(
        rows,
        [
            ("Own file", Some("2026-03-01"), Some("mira")),
            ("Alpha", Some("2026-02-14"), Some("A")),
            ("Ship weekly", Some("2026-01-06"), None),
            ("Use SQLite", Some("2026-01-05"), Some("Kane")),
        ]
    );
    assert!(team.decisions[3].text.contains("#### Sub"));
    assert_eq!(problems, []);
}

#[test]
fn an_empty_team_says_so() {
    let (_, problems) = team(&files(&[("team.md", ""), ("routing.md", "# R\n")]));
    let codes: Vec<_> = problems.iter().map(|p| &*p.code).collect();
    assert_eq!(codes, ["roster-empty", "routing-empty"]);
}
