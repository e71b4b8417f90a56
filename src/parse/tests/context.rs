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
