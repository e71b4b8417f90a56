//! The forms of charters and role files.

use super::read;
use crate::model::{Charter, Problem, Severity};

fn charter(text: &str) -> Charter {
    charter_and_problems(text).0
}

fn charter_and_problems(text: &str) -> (Charter, Vec<Problem>) {
    let (mut team, problems) = read(&[
        ("team.md", "| Name | Role |\n|-|-|\n| Ilse | Pilot |\n"),
        ("routing.md", "| Signal | Agent |\n|-|-|\n| x | Ilse |\n"),
        ("agents/ilse/charter.md", text),
    ]);
    (team.charters.pop_first().map(|(_, charter)| charter).unwrap_or_default(), problems)
}

fn name_and_role(text: &str) -> (Option<String>, Option<String>) {
    let charter = charter(text);
    (charter.name, charter.role)
}

#[test]
fn titles_with_every_dash() {
    for title in [
        "Ilse — Pilot",
        "Ilse – Pilot",
        "Ilse - Pilot",
        "Ilse -- Pilot",
        "Ilse ΓÇö Pilot",
        "Ilse â€” Pilot",
        "Ilse \u{fffd}\u{fffd} Pilot",
        "Ilse: Pilot",
        "Ilse (Pilot)",
        "⚓ Ilse | Pilot",
    ] {
        let (name, role) = name_and_role(&format!("# {title}\n\ntext\n"));
        assert_eq!((name.as_deref(), role.as_deref()), (Some("Ilse"), Some("Pilot")), "{title}");
    }
    assert_eq!(name_and_role("# Charter: Ilse\n").0.as_deref(), Some("Ilse"));
    assert_eq!(name_and_role("# Ilse's Charter\n").0.as_deref(), Some("Ilse"));
    assert_eq!(name_and_role("# {Name} — {Role}\n"), (None, None));
}

#[test]
fn identity_in_every_form() {
    for body in [
        "- **Name:** Ilse\n- **Role:** Pilot\n- **Expertise:** tides, charts\n",
        "- **Name**: Ilse\n- **Role**: Pilot\n- **Expertise**: tides, charts\n",
        "- Name: Ilse\n- Role: Pilot\n- Expertise: tides, charts\n",
        "**Name:** Ilse\n**Role:** Pilot\n**Expertise:** tides, charts\n",
        "| Field | Value |\n|-|-|\n| **Name** | Ilse |\n| Role | Pilot |\n| Expertise | tides, charts |\n",
        "| Name | Ilse |\n|-|-|\n| Role: | Pilot |\n| Expertise | tides, charts |\n",
        "Name: Ilse | Role: Pilot | Expertise: tides, charts\n",
    ] {
        let charter = charter(&format!("# x\n\n## 🪪 Identity\n\n{body}\n## Voice\n\n- Name: no\n"));
        assert_eq!((charter.name.as_deref(), charter.role.as_deref()), (Some("Ilse"), Some("Pilot")), "{body}");
        assert_eq!(charter.expertise, ["tides", "charts"], "{body}");
    }
    let bare = charter("# Ilse — Pilot\n\n## Identity\n\nKnows the harbour.\n");
    assert_eq!(bare.role.as_deref(), Some("Pilot"));
    assert_eq!(charter("# Ilse\n\n**Role:** Pilot\n**Model:** gpt-5\n\n## X\n").model.as_deref(), Some("gpt-5"));
    assert_eq!(charter("# Ilse\n\n## Role\n\nPilot\n").role.as_deref(), Some("Pilot"));
}

#[test]
fn models_in_every_form() {
    for section in [
        "## Model\n\n- **Preferred:** gpt-5.1\n- **Fallback:** Standard chain\n",
        "## Model\n\nPreferred: gpt-5.1\n",
        "## Model\n\n**Preferred:** `gpt-5.1` (for charts)\n",
        "## Model\n\ngpt-5.1\n",
        "## Model\n\n- `gpt-5.1` — steady\n- Rationale: 3 reasons\n",
        "## Model\n\n| Setting | Value |\n|-|-|\n| Preferred | gpt-5.1 |\n",
        "## Model Preference\n\n- Preferred model: gpt-5.1\n",
        "## Model: gpt-5.1\n",
        "## Identity\n\n- **Model:** gpt-5.1\n",
    ] {
        assert_eq!(charter(&format!("# Ilse\n\n{section}")).model.as_deref(), Some("gpt-5.1"), "{section}");
    }
    for section in ["## Model\n\n- **Preferred:** auto\n- gpt-5\n", "## Model\n\n", "## Model\n\nThe 2 usual ones.\n"] {
        assert_eq!(charter(&format!("# Ilse\n\n{section}")).model, None, "{section}");
    }
    let more = charter(
        "# Ilse\n\n## Model\n\n- Preferred: Claude Opus 4.7\n- Reasoning Effort: high\n- Fallback: gpt-5.1 → gpt-5-mini\n",
    );
    assert_eq!(more.model.as_deref(), Some("Claude Opus 4.7"));
    assert_eq!(more.reasoning_effort.as_deref(), Some("high"));
    assert_eq!(more.fallback, ["gpt-5.1", "gpt-5-mini"]);
}

#[test]
fn a_charter_may_name_the_tier_of_its_work() {
    use crate::model::Tier;
    for (text, tier) in [
        ("---\nname: Ilse\ntier: lightweight\n---\n# Ilse\n", Some(Tier::Lightweight)),
        ("# Ilse\n\n## Tier\n\n`Full` (it is delicate)\n", Some(Tier::Full)),
        ("# Ilse\n\n## Identity\n\n- **Response Mode:** Standard\n", Some(Tier::Standard)),
        ("# Ilse\n\n## Model\n\n- **Tier:** standard\n", None),
        ("# Ilse\n\n## Tier\n\npremium\n", None),
    ] {
        assert_eq!(charter(text).tier, tier, "{text}");
    }
}

#[test]
fn a_section_ends_at_the_next_heading_of_its_level() {
    let charter = charter(
        "# Ilse\n\n## What I Own\n\n### Charts\n- maps\n\n### Tools\n- sextant\n\n---\n\nlast\n---\n\n## Boundaries\n\nno cooking\n\n```\n## Model\n- Preferred: fenced\n```\n\n## Model\n\n- Preferred: gpt-5\n",
    );
    for word in ["maps", "sextant", "last"] {
        assert!(charter.owns.contains(word), "{word}");
    }
    assert!(charter.boundaries.contains("no cooking") && charter.boundaries.contains("fenced"));
    assert_eq!(charter.model.as_deref(), Some("gpt-5"));
}

#[test]
fn tools_are_names() {
    let tools = |section: &str| charter(&format!("# Ilse\n\n## Tools\n\n{section}\n")).tools;
    let list = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    assert_eq!(tools("- `view` — read\n- grep\n- files/*\n"), list(&["view", "grep", "files/*"]));
    assert_eq!(tools("view, grep"), list(&["view", "grep"]));
    assert_eq!(tools("Whatever the work needs, and no more."), None);
    assert_eq!(tools("- Use the compass before the wheel"), None);
}

#[test]
fn allowed_and_denied_tools_are_told_apart_from_prose() {
    let read = |section: &str| charter_and_problems(&format!("# Ilse\n\n## Tools\n\n{section}\n"));
    let is_noted = |problems: &[Problem]| problems.iter().any(|problem| problem.code == "charter-tools");
    let (charter, problems) = read("- **Allowed:** read, grep, shell\n- **Denied:** shell");
    assert_eq!(
        (charter.allowed_tools().unwrap_or_default().join(" "), charter.denied_tools),
        ("read grep".to_owned(), vec!["shell".to_owned()])
    );
    assert!(!is_noted(&problems));
    for stated in [
        "- **Allowed:** read, grep, shell (tests — nothing else)\n- **Denied:** shell (at sea)",
        "- **Allowed:** read, grep, shell — as a reviewer\n- **Denied:** shell\n- **Rationale:** the pilot looks on",
        "The tools of a pilot.\n\n- **Allowed:** read, grep, shell\n- **Denied:** shell",
    ] {
        let (charter, problems) = read(stated);
        assert_eq!(
            (charter.tools.unwrap_or_default().join(" "), charter.denied_tools),
            ("read grep shell".to_owned(), vec!["shell".to_owned()]),
            "{stated}"
        );
        assert!(!is_noted(&problems), "{stated}");
    }
    let (charter, _) = read("| Tool | When |\n|-|-|\n| `read` | always |\n| `shell` | tests |");
    assert_eq!(charter.tools.unwrap_or_default(), ["read", "shell"]);
    for prose in ["None.", "- `gh` CLI for issues\n- **Bash** — run tests", "- terraform\n- bash", "I use `gh` a lot."]
    {
        let (charter, problems) = read(prose);
        assert_eq!((charter.tools, is_noted(&problems)), (None, true), "{prose}");
    }
    for all in ["- All", "- auto", ""] {
        let (charter, problems) = read(all);
        assert_eq!((charter.tools, is_noted(&problems)), (None, false), "{all}");
    }
}

#[test]
fn models_that_are_not_named_as_such_are_said() {
    let model = |section: &str| {
        let (charter, problems) = charter_and_problems(&format!("# Ilse\n\n## Model\n\n{section}\n"));
        let said = problems.into_iter().find(|problem| problem.code == "charter-model");
        (charter.model, said.map(|problem| (problem.severity, problem.line)))
    };
    assert_eq!(model("- **Preferred:** ~~gpt-4~~ gpt-5"), (Some("gpt-5".to_owned()), None));
    assert_eq!(model("- **Preferred:** claude opus"), (None, Some((Severity::Warning, 3))));
    assert_eq!(model("- Preferred: Sonnet"), (Some("Sonnet".to_owned()), Some((Severity::Note, 5))));
    assert_eq!(model("- Preferred: auto (usually gpt-5)"), (None, None));
    assert_eq!(model("Whatever the coordinator picks; never gpt-4."), (None, None));
}

#[test]
fn front_matter_that_is_broken_is_said_and_the_rest_is_read() {
    let (charter, problems) = charter_and_problems("---\nname: Pilot: harbour\nmodel: gpt-5\n---\n# Ilse — Pilot\n");
    let found: Vec<_> = problems.iter().filter(|p| p.code == "front-matter").map(|p| p.line).collect();
    assert_eq!((found, charter.model, charter.role.as_deref()), (vec![2], None, Some("Pilot")));
    assert_eq!(charter_and_problems("---\n\ntext: x\n").1, []);
}

#[test]
fn a_charter_that_fills_a_session_is_said() {
    let (_, problems) = charter_and_problems(&format!("# Ilse\n\n{}\n", "sail ".repeat(8_000)));
    assert_eq!(problems.iter().map(|p| &*p.code).collect::<Vec<_>>(), ["charter-long"]);
}

#[test]
fn front_matter_is_data() {
    let text = "---\nname: ilse\ndescription: Pilot\nmodel: gpt-5\ntools: view, grep\nextra: !!python/object x\n---\nYou steer.\n";
    let (charter, problems) = charter_and_problems(text);
    assert_eq!(charter.model.as_deref(), Some("gpt-5"), "{problems:?}");
    assert_eq!(charter.role.as_deref(), Some("Pilot"));
    assert_eq!(charter.tools.as_deref().map(<[String]>::len), Some(2));
    let (_, problems) = charter_and_problems("---\nname: [\n---\n# Ilse — Pilot\n");
    assert_eq!(problems.iter().map(|p| &*p.code).collect::<Vec<_>>(), ["front-matter"]);
}
