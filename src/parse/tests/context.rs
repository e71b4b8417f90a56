//! What a team folder holds beside roster, routing, charters and decisions.

use super::*;

const ROSTER: &str = "# T\n\n| Name | Role | Status |\n|---|---|---|\n| Mira | Lead | |\n| Jo | Tester | Active |\n| Ike | Diver | — |\n";

#[test]
fn skills_say_what_they_are_for() {
    let (team, problems) = read(&[
        ("team.md", ROSTER),
        ("routing.md", include_str!("../../../fixtures/forms/routing.md")),
        ("skills/tunnels/SKILL.md", include_str!("../../../fixtures/forms/skill.md")),
        ("skills/plain/skill.md", "# 🧰 Plain words\r\n\r\nSay it\r\nshortly.\r\n"),
        ("skills/broken/SKILL.md", "---\nname: [x\n---\n# Broken\n"),
        ("skills/tunnels/notes.md", "no skill"),
    ]);
    let skills: Vec<_> = team.skills.iter().map(|skill| (skill.name.as_str(), skill.description.as_str())).collect();
    assert_eq!(
        skills,
        [
            ("Broken", ""),
            ("Plain words", "Say it shortly."),
            ("tunnel-survey", "How a new tunnel is surveyed before anyone digs: gauges, chalk marks, and who signs.")
        ]
    );
    assert_eq!(team.skills[2].path, ".squad/skills/tunnels/SKILL.md");
    let mut found = codes(&problems);
    found.retain(|(code, _)| code.contains("skill") || *code == "front-matter");
    assert_eq!(found, [("front-matter", 2), ("skill-without-description", 1)]);
}

#[test]
fn ceremonies_know_who_facilitates() {
    let (team, problems) =
        read(&[("team.md", ROSTER), ("ceremonies.md", include_str!("../../../fixtures/forms/ceremonies.md"))]);
    let ceremonies: Vec<_> = team
        .ceremonies
        .iter()
        .map(|c| (c.name.as_str(), c.facilitator.as_ref().map(Slug::as_str), c.when.as_str(), c.enabled, c.source.line))
        .collect();
    assert_eq!(
        ceremonies,
        [
            ("Tunnel Review", Some("mira"), "before", true, 5),
            ("Look Back", Some("jo"), "after", false, 20),
            ("Toast", None, "after", true, 28)
        ]
    );
    assert_eq!(team.ceremonies[0].agenda, ["Read the plan", "Name the risks"]);
    let triggers: Vec<&str> = team.ceremonies.iter().map(|ceremony| ceremony.trigger.as_str()).collect();
    assert_eq!(triggers, ["auto", "manual", ""]);
    assert!(team.ceremonies[1].agenda.is_empty(), "{:?}", team.ceremonies[1]);
    assert!(codes(&problems).contains(&("ceremony-facilitator", 28)), "{problems:?}");
}

#[test]
fn the_registry_speaks_where_the_roster_is_silent() {
    let registry = include_str!("../../../fixtures/forms/registry.json");
    let (team, problems) = read(&[("team.md", ROSTER), ("casting/registry.json", registry)]);
    let statuses: Vec<_> = team.members.iter().map(|member| (member.slug.as_str(), member.status)).collect();
    assert_eq!(statuses, [("mira", Status::Active), ("jo", Status::Active), ("ike", Status::Retired)]);
    assert_eq!(team.casts.len(), 5);
    let mut found = codes(&problems);
    found.retain(|(code, _)| code.starts_with("cast"));
    assert_eq!(found, [("casting-contradicts", 4), ("cast-not-on-roster", 6)]);
    // A list instead of a map says the same.
    let list = r#"[{ "persistent_name": "Ike", "status": "retired" }]"#;
    let (team, _) = read(&[("team.md", ROSTER), ("casting/registry.json", list)]);
    assert_eq!(team.members[2].status, Status::Retired);
    let (team, problems) = read(&[("team.md", ROSTER), ("casting/registry.json", "{\n\"agents\": oops")]);
    assert_eq!(team.members[2].status, Status::Active);
    assert!(codes(&problems).contains(&("casting-json", 2)), "{problems:?}");
}

#[test]
fn identity_files_that_say_nothing_are_left_out() {
    let (team, _) = read(&[
        ("team.md", ROSTER),
        ("identity/now.md", include_str!("../../../fixtures/forms/now.md")),
        ("identity/wisdom.md", "# Team Wisdom\n\n## Patterns\n\n<!-- Append entries below. -->\n"),
    ]);
    let [now] = &team.notes[..] else { panic!("{:?}", team.notes) };
    assert!(now.is_current && now.text.contains("third gallery") && !now.text.contains("version"), "{now:?}");
    assert_eq!(now.text.lines().position(|line| line.contains("the pumps")), Some(9));
}

/// Headings, lines and texts of what `team.md` says beside the roster.
fn context(team_md: &str) -> Vec<(String, usize, bool, String)> {
    let (team, _) = read(&[("team.md", team_md)]);
    let section = |section: &crate::model::ContextSection| {
        (section.heading.clone(), section.source.line, section.matters, section.text.clone())
    };
    team.context.iter().map(section).collect()
}

#[test]
fn what_is_no_roster_is_about_the_project() {
    let of =
        |heading: &str, line: usize, matters: bool, text: &str| (heading.to_owned(), line, matters, text.to_owned());
    let team = "# Moles\r\n\r\n> We dig.\r\n\r\n## Coordinator\r\n\r\n| Name | Role |\r\n|---|---|\r\n| Squad | Coordinator |\r\n\r\n\
        ## Members\r\n\r\n| Name | Role |\r\n|---|---|\r\n| Mira | Lead |\r\n| {name} | {role} |\r\n\r\nJo left.\r\n\r\n---\r\n\r\n\
        ## Project Context\r\n<!-- auto: true -->\r\n- **Stack:** clay\r\n\r\n\r\n  - and sand\r\n\r\n### Words\r\n\r\n| Field | Value |\r\n|---|---|\r\n| **User** | Ann |\r\n\r\n\
        ```\r\n# no heading\r\n```\r\n\r\n## Empty\r\n\r\n## Labels\r\n\r\n| Label | Color |\r\n|---|---|\r\n| x | red |\r\n";
    assert_eq!(
        context(team),
        [
            of("", 3, true, "> We dig."),
            of("Members", 18, false, "Jo left."),
            of("Project Context", 24, true, "- **Stack:** clay\n\n  - and sand"),
            of(
                "Project Context › Words",
                31,
                true,
                "| Field | Value |\n|---|---|\n| **User** | Ann |\n\n```\n# no heading\n```"
            ),
            of("Labels", 43, false, "| Label | Color |\n|---|---|\n| x | red |"),
        ]
    );
}

#[test]
fn a_roster_of_any_form_is_no_context() {
    for (team, wanted) in [
        (
            "# T\n\n## Team\n\n- **Ada** — Backend Dev\n  - likes tea\n- **Bob** — Tester\n\n## About\n\nTunnels.\n",
            "Tunnels.",
        ),
        (
            "# T\n\n## Team\n\n### Ada — Backend Dev\n\nLikes tea.\n\n### Bob — Tester\n\n## Stack\n\nTunnels.\n",
            "Tunnels.",
        ),
        ("# T\n\n## Proyecto\n\nTunnels.\n\n## Team\n\n- Ada — Backend Dev\n- Bob — Tester\n", "Tunnels."),
        ("# About\n\nTunnels.\n\n| Name | Role |\n|---|---|\n| Ada | Dev |\n| Bob | Tester |\n", "Tunnels."),
        ("Tunnels.\n\n| Name | Role |\n|---|---|\n| Ada | Dev |\n", "Tunnels."),
        ("| Name | Role |\n|---|---|\n| Ada | Dev |\n", ""),
        ("", ""),
    ] {
        let texts: Vec<String> = context(team).into_iter().map(|(.., text)| text).collect();
        assert_eq!(texts.join("|"), wanted, "{team}");
    }
}

#[test]
fn what_the_routing_file_says_beside_its_rows_is_kept() {
    let routing = "# Work Routing\n\nHow to decide.\n\n| Work | Agent |\n|-|-|\n| Tunnels | Mira |\n\n## Issue Routing\n\n\
        | Label | Action | Who |\n|-|-|-|\n| `squad` | Triage | Mira |\n\n### How labels come about\n\nBy hand.\n\n## Rules\n\n\
        1. Two could do it: Mira.\n- Maps → Jo, and tell Ike\n";
    let (team, _) = read(&[("team.md", ROSTER), ("routing.md", routing)]);
    let shown: Vec<_> =
        team.routing.iter().map(|it| (it.heading.as_str(), it.matters, it.source.line, it.text.as_str())).collect();
    assert_eq!(
        shown,
        [
            ("", true, 3, "How to decide."),
            ("Issue Routing › How labels come about", false, 17, "By hand."),
            ("Rules", true, 21, "1. Two could do it: Mira.\n- Maps → Jo, and tell Ike"),
        ]
    );
    // Where no table routes, the lines that do are rules and no prose.
    let (team, _) = read(&[("team.md", ROSTER), ("routing.md", "## Rules\n\n- Maps → Jo\n- Ask first.\n")]);
    assert_eq!((team.rules.len(), team.routing[0].text.trim()), (1, "- Ask first."));
}

#[test]
fn the_coordinators_charter_is_found_where_teams_keep_it() {
    let text = "# Coordinator\n\nEscalate releases.\n";
    let charter = |roster: &str, path: &str| {
        let (team, problems) = read(&[("team.md", roster), (path, text)]);
        let notes = codes(&problems).iter().filter(|(code, _)| *code == "agent-not-on-roster").count();
        (team.coordinator.map(|it| (it.source.to_string(), it.text)), notes, team.members.len())
    };
    let own = "## Coordinator\n\n| Name | Role | Charter |\n|-|-|-|\n| Squad | Coordinator | [c](lead/charter.md) |\n\n## Members\n\n";
    let own = ROSTER.replace("| Name | Role | Status |", &format!("{own}| Name | Role | Status |"));
    for (roster, path) in [
        (ROSTER, "agents/coordinator/charter.md"),
        (ROSTER, "agents/Squad/charter.md"),
        (ROSTER, "roles/coordinator.md"),
        (&own, "lead/charter.md"),
    ] {
        let found = Some((format!(".squad/{path}:1"), text.trim().to_owned()));
        assert_eq!(charter(roster, path), (found, 0, 3), "{path}");
    }
    // A member of that name is a member.
    let dock = format!("{ROSTER}| Coordinator | Dock master | |\n");
    assert_eq!(charter(&dock, "agents/coordinator/charter.md"), (None, 0, 4));
    assert_eq!(charter(ROSTER, "agents/ghost/charter.md"), (None, 1, 3));
}
