//! The forms of `team.md`.

use super::{codes, files, read};
use crate::model::{Kind, Status, Team};

fn rows(team: &Team) -> Vec<(&str, &str, &str, Kind, Status)> {
    team.members.iter().map(|m| (m.slug.as_str(), m.name.as_str(), m.role.as_str(), m.kind, m.status)).collect()
}

fn slugs(team: &Team) -> Vec<&str> {
    team.members.iter().map(|m| m.slug.as_str()).collect()
}

const AGENT: Kind = Kind::Agent;
const ACTIVE: Status = Status::Active;

#[test]
fn columns_may_have_many_names_and_stand_anywhere() {
    let text = "# Harbour\n\n## Team Roster\n\n| Emoji | Agent | Title | Scope |\n|--|--|--|--|\n\
        | ⚓ | Ilse | Pilot | berths |\n\n## Humans\n\n| Team Member | Role | Badge |\n|--|--|--|\n| Otto | Owner | 👤 Human |\n";
    let (team, _) = read(&[("team.md", text)]);
    assert_eq!(rows(&team), [("ilse", "Ilse", "Pilot", AGENT, ACTIVE), ("otto", "Otto", "Owner", Kind::Human, ACTIVE)]);
    let text = "| Name | Specialization | Status |\n|-|-|-|\n| Ilse | Tides | Active |\n";
    assert_eq!(rows(&read(&[("team.md", text)]).0), [("ilse", "Ilse", "Tides", AGENT, ACTIVE)]);
}

#[test]
fn names_may_have_quotes_parentheses_and_emoji() {
    let text = "| Name | Role |\n|-|-|\n| 🏗️ Anna Berg | Lead |\n| Carl Dorn (The Anvil) | Smith |\n| \"Eb\" | Cook |\n\
        | C3-P1 | Test |\n| � Finn | Docs |\n| Gus (human) | Owner |\n| — | — |\n| ✨ | Sparkle |\n";
    let (team, problems) = read(&[("team.md", text)]);
    assert_eq!(slugs(&team), ["anna-berg", "carl-dorn-the-anvil", "eb", "c3-p1", "finn", "gus"]);
    assert_eq!(team.members[4].name, "Finn");
    assert_eq!(team.members[5].kind, Kind::Human);
    assert_eq!(problems.iter().filter(|p| p.code == "roster-name").map(|p| p.line).collect::<Vec<_>>(), [10]);
}

#[test]
fn a_member_has_the_slug_of_its_folder_however_that_is_folded() {
    let text = "| Name | Role | Charter |\n|-|-|-|\n| Tide Watch | Look-out | — |\n| Bo Reed | Dev | [charter](.squad/agents/reed/charter.md) |\n\
        | Kim | Dev | `agents\\kim_two\\charter.md` |\n| Lou Vane | Dev | — |\n| Pat | Dev | roles/patricia.md |\n| Lou Page | Dev | |\n";
    let charter = "# X — Y\n\n## Model\n\n- **Preferred:** gpt-5\n";
    let paths = [
        "agents/TideWatch/charter.md",
        "agents/reed/charter.md",
        "agents/kim_two/charter.md",
        "agents/lou/charter.md",
        "roles/patricia.md",
        "agents/stray/charter.md",
        "roles/diver.md",
    ];
    let mut texts: Vec<(&str, &str)> = paths.iter().map(|path| (*path, charter)).collect();
    texts.extend([("team.md", text), ("agents/TideWatch/history.md", "learned\n")]);
    let (team, problems) = read(&texts);
    assert_eq!(slugs(&team), ["tidewatch", "reed", "kim_two", "lou", "pat", "lou-page"]);
    let charters: Vec<_> = team.members.iter().map(|m| m.charter.as_deref().unwrap_or("")).collect();
    assert_eq!(
        charters,
        [
            ".squad/agents/TideWatch/charter.md",
            ".squad/agents/reed/charter.md",
            ".squad/agents/kim_two/charter.md",
            ".squad/agents/lou/charter.md",
            ".squad/roles/patricia.md",
            ""
        ]
    );
    assert_eq!(team.charters.len(), 5);
    assert_eq!(team.histories.len(), 1);
    assert_eq!(team.roles.keys().map(|slug| slug.as_str()).collect::<Vec<_>>(), ["diver"]);
    assert!(codes(&problems).contains(&("agent-not-on-roster", 1)), "{problems:?}");
}

#[test]
fn status_words_in_the_wild() {
    for (cell, status) in [
        ("✅ Active", Status::Active),
        ("", Status::Active),
        ("🧠 Active", Status::Active),
        ("📋 Silent", Status::Silent),
        ("🔄 Monitor", Status::Monitor),
        ("🔒 Retired (2026-03)", Status::Retired),
        ("🚫 Inactive", Status::Inactive),
        ("🚫", Status::Inactive),
        ("💤 Dormant", Status::Inactive),
        ("Not active", Status::Inactive),
        ("Alumni", Status::Retired),
    ] {
        let text = format!("| Name | Role | Status |\n|-|-|-|\n| Ilse | Pilot | {cell} |\n");
        assert_eq!(read(&[("team.md", &text)]).0.members[0].status, status, "{cell}");
    }
    let text = "## Alumni\n\n| Name | Role |\n|-|-|\n| Ilse | Pilot |\n\n## Members\n\n| Name | Role |\n|-|-|\n| ~~Otto~~ | Cook |\n";
    let (team, _) = read(&[("team.md", text)]);
    assert_eq!(rows(&team)[0].4, Status::Retired);
    assert_eq!(rows(&team)[1], ("otto", "Otto", "Cook", AGENT, Status::Retired));
}

#[test]
fn what_stands_behind_a_row() {
    let text = "## Coordinator\n\n| Name | Role |\n|-|-|\n| Squad | Coordinator |\n\n## Members\n\n| Name | Role | Status |\n|-|-|-|\n\
        | Scribe | Session Logger | x |\n| Ralph | Work Monitor | x |\n| Ute | Human Factors | Active |\n| Vic | Reviewer (Human) | Active |\n\
        | Copilot | 🤖 Coding Agent | Enabled |\n| Wim | Coordinator | Active |\n";
    let (team, _) =
        read(&[("team.md", text), ("agents/ute/charter.md", "# Ute\n"), ("agents/wim/charter.md", "# Wim\n")]);
    let kinds: Vec<_> = team.members.iter().map(|m| (m.slug.as_str(), m.kind)).collect();
    assert_eq!(
        kinds,
        [
            ("scribe", Kind::Helper),
            ("ralph", Kind::Helper),
            ("ute", AGENT),
            ("vic", Kind::Human),
            ("copilot", Kind::Bot),
            ("wim", AGENT)
        ]
    );
}

#[test]
fn other_tables_add_nobody() {
    let text = "## Members\n\n| Name | Role |\n|-|-|\n| Ilse | Pilot |\n\n## Labels\n\n| Member | Label | Color |\n|-|-|-|\n| Xan | `squad:xan` | red |\n\n\
        ## Changes\n\n| Agent | Previous Role | New Role |\n|-|-|-|\n| Yan | Cook | Chef |\n\n## Stakeholders\n\n| Name | Role | Email |\n|-|-|-|\n| Zoe | Sponsor | z@x |\n\n\
        ## Example\n\n| Name | Role | Status |\n|-|-|-|\n| Sample | Dev | Active |\n\n## Now\n\n| Name | Role |\n|-|-|\n| Ilse (Pilot) | Pilot |\n| {Name} | {Role} |\n";
    let (team, problems) = read(&[("team.md", text)]);
    assert_eq!(slugs(&team), ["ilse"]);
    let codes: Vec<_> = codes(&problems).into_iter().filter(|(code, _)| code.starts_with("roster")).collect();
    assert_eq!(codes, []);
    let beside = text
        .replace("Email", "Scope")
        .replace("## Stakeholders", "## Bench\n\n| Name | Role |\n|-|-|\n| Tor | Dev |\n\n## Human Staff\n\n| Name | Role |\n|-|-|\n| Ole | Dev |\n\n## Others");
    let beside = beside
        .replace("| Zoe | Sponsor | z@x |", "| Zoe | Sponsor | z@x |\n| @copilot | Coder | - |\n| Vic | Dev | - |");
    let (team, _) = read(&[("team.md", &beside), ("agents/vic/charter.md", "# Vic\n")]);
    assert_eq!(slugs(&team), ["ilse", "tor", "ole", "copilot", "vic"]);
}

#[test]
fn a_roster_may_be_a_list_or_headings() {
    let list = "# T\n\n- **Project:** boats\n\n## Team Members\n\n- 🏗️ **Ilse** — Pilot\n- **Otto**: Cook\n  - Charter: agents/otto/charter.md\n- Uwe (Diver)\n\n## Notes\n\n- Wind — strong\n";
    let (team, problems) = read(&[("team.md", list)]);
    assert_eq!(
        team.members.iter().map(|m| (m.slug.as_str(), m.role.as_str())).collect::<Vec<_>>(),
        [("ilse", "Pilot"), ("otto", "Cook"), ("uwe", "Diver")]
    );
    assert!(!codes(&problems).iter().any(|(code, _)| *code == "roster-empty"));
    let headings = "# T\n\n## Members\n\n### Ilse — Pilot\n- Expertise: tides\n\n### Otto — Cook\n";
    let (team, _) = read(&[("team.md", headings)]);
    assert_eq!(
        team.members.iter().map(|m| (m.slug.as_str(), m.role.as_str())).collect::<Vec<_>>(),
        [("ilse", "Pilot"), ("otto", "Cook")]
    );
}

#[test]
fn an_empty_roster_is_an_error() {
    let (team, problems) = read(&[("team.md", "## Members\n\n| Name | Role | Charter | Status |\n|-|-|-|-|\n")]);
    assert_eq!(team.members, []);
    assert_eq!(codes(&problems)[0], ("roster-empty", 3));
    let (_, problems) = read(&[("team.md", "| Name | Role |\n|-|-|\n| Squad | Coordinator |\n")]);
    assert_eq!(codes(&problems)[0], ("roster-empty", 1));
    assert!(files(&[]).texts.is_empty());
}

#[test]
fn no_member_has_the_coordinators_name() {
    let text = "| Name | Role |\n|--|--|\n| coordinator | Dock master |\n| Ilse | Pilot |\n";
    let (team, problems) =
        read(&[("team.md", text), ("agents/coordinator/charter.md", "# Coordinator — Dock master\n")]);
    assert_eq!(slugs(&team), ["coordinator-agent", "ilse"]);
    assert!(codes(&problems).contains(&("roster-reserved", 3)), "{problems:?}");
    assert!(team.charters.keys().any(|slug| slug.as_str() == "coordinator-agent"));
}

/// `name role status` of each member.
fn shown(text: &str) -> Vec<String> {
    let (team, _) = read(&[("team.md", text)]);
    team.members.iter().map(|m| format!("{} / {} / {:?} {:?}", m.name, m.role, m.kind, m.status)).collect()
}

#[test]
fn headers_may_be_in_another_language() {
    for (text, wanted) in [
        (
            "| Name | Rolle | Status |\n|-|-|-|\n| Ute | Leitung | Aktiv |\n| Jan | Prüfer | Ausgeschieden |\n",
            ["Ute / Leitung / Agent Active", "Jan / Prüfer / Agent Retired"],
        ),
        (
            "| Nombre | Rol | Estado |\n|-|-|-|\n| Ana | Líder | ✅ Activo |\n| Luis | Pruebas | Inactivo |\n",
            ["Ana / Líder / Agent Active", "Luis / Pruebas / Agent Inactive"],
        ),
        (
            "| 姓名 | 角色 | 状态 |\n|-|-|-|\n| Ana | 架构师 | 活跃 |\n| Luis | 测试 | 已退役 |\n",
            ["Ana / 架构师 / Agent Active", "Luis / 测试 / Agent Retired"],
        ),
    ] {
        assert_eq!(shown(text), wanted);
    }
}

#[test]
fn lists_may_be_nested_numbered_and_followed_by_other_lists() {
    let text = "# Our squad\n\n## The Squad\n\n1. **Ada** - Lead. Owns the rigging.\n2. **Bo** – Deckhand\n\n## How we work\n\n- Ship - fast\n- Calm: always\n";
    assert_eq!(shown(text), ["Ada / Lead / Agent Active", "Bo / Deckhand / Agent Active"]);
    let text = "## Members\n\n- Cy (Cook)\n- Knots\n\n### 1. Ada — Lead\n\n- Owns: rigging\n";
    assert_eq!(shown(text), ["Ada / Lead / Agent Active"]);
}

#[test]
fn the_heading_above_and_marks_say_what_somebody_is() {
    let text = "## Human Members\n\n| Name | Role |\n|-|-|\n| Ann | Owner |\n\n## Crew\n\n| Codename | Function | State |\n|-|-|-|\n\
        | Gull | Lookout | 🪦 |\n| Tern | Cook | Deprecated |\n| Squad Coordinator | Routes work | Active |\n";
    let (team, _) = read(&[("team.md", text)]);
    assert_eq!(team.members[0].kind, Kind::Human);
    let crew = "| Codename | Function | State |\n|-|-|-|\n| Gull | Lookout | 🪦 |\n| Tern | Cook | Deprecated |\n| Squad Coordinator | Routes work | Active |\n";
    assert_eq!(shown(crew), ["Gull / Lookout / Agent Retired", "Tern / Cook / Agent Retired"]);
}

#[test]
fn what_only_looks_like_a_roster_is_none() {
    let roster = "## Members\n\n| Name | Role | Status |\n|-|-|-|\n| Ada | Lead | Active |\n| TBD | Cook | |\n| _open_ | Smith | Vacant |\n\n";
    for other in [
        "## Capabilities\n\n| Name | Function |\n|-|-|\n| Build | compiles |\n",
        "## Documents\n\n| Name | Title |\n|-|-|\n| a.md | Rules of the deck |\n",
    ] {
        let (team, problems) = read(&[("team.md", &format!("{roster}{other}"))]);
        assert_eq!(slugs(&team), ["ada"], "{other}");
        assert_eq!(codes(&problems).iter().filter(|(code, _)| *code == "roster-placeholder").count(), 2);
    }
}

#[test]
fn quotes_and_strikes_within_names() {
    let text = "| Name | Role |\n|-|-|\n| \"Bo\" Berg | Cook |\n| ~~Cy~~ | ~~Smith~~ |\n";
    assert_eq!(shown(text), ["\"Bo\" Berg / Cook / Agent Active", "Cy / Smith / Agent Retired"]);
}

#[test]
fn rows_behind_a_gap_are_joined_and_rows_without_a_table_reported() {
    let text = "| Name | Role |\n|-|-|\n| Ada | Lead |\n\n| Bo | Cook |\n<!-- auto-assign: false -->\n| Cy | Diver |\n\nText\n\n| Di | Smith |\n";
    let (team, problems) = read(&[("team.md", text)]);
    assert_eq!(slugs(&team), ["ada", "bo", "cy"]);
    assert!(codes(&problems).contains(&("table-rows", 11)), "{problems:?}");
}
