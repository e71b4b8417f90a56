//! Rosters as people write them who follow no template.

use super::{codes, files, read};
use crate::model::{Kind, Problem, Severity, Status, Team};

/// `name (slug): role` of each member.
fn said(team: &Team) -> Vec<String> {
    team.members.iter().map(|m| format!("{} ({}): {}", m.name, m.slug, m.role)).collect()
}

fn members(text: &str) -> Vec<String> {
    said(&read(&[("team.md", text)]).0)
}

/// The team with these agents' folders, each with an empty charter but for its title.
fn with_folders(text: &str, folders: &[&str]) -> (Team, Vec<Problem>) {
    let paths: Vec<String> = folders.iter().map(|folder| format!("agents/{folder}/charter.md")).collect();
    let mut texts: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "# Charter\n\nx\n")).collect();
    texts.push(("team.md", text));
    read(&texts)
}

#[test]
fn columns_have_many_names_under_a_heading_over_members() {
    for header in [
        "Name | Primary Role",
        "Name | Responsibilities",
        "Name | Discipline",
        "Agent | Persona",
        "Agent | Purpose",
        "Agent | Description",
        "Character | Role",
        "Handle | Role",
        "Slug | Role",
        "Agent ID | Role",
        "Name (slug) | Role",
        "Name/Handle | Role",
        "Names | Roles",
        "Who | What",
    ] {
        let text = format!("## Members\n\n| {header} | Status |\n|-|-|-|\n| Ilse | Pilot | Active |\n");
        assert_eq!(members(&text), ["Ilse (ilse): Pilot"], "{header}");
    }
    for header in ["Role | Assigned To", "Role | Owner", "Role | Who", "Position | Person"] {
        let text = format!("## Crew\n\n| {header} |\n|-|-|\n| Pilot | Ilse |\n");
        assert_eq!(members(&text), ["Ilse (ilse): Pilot"], "{header}");
    }
    let long = "| Agent Name | Primary Role | Charter Path | Current Status |\n|-|-|-|-|\n| Ilse | Pilot | agents/boat/charter.md | Retired |\n";
    let (team, _) = with_folders(long, &["boat"]);
    assert_eq!((said(&team), team.members[0].status), (vec!["Ilse (boat): Pilot".to_owned()], Status::Retired));
    let numbered = "# Boats\n\n| # | Agent Name | Primary Role | Key files |\n|-|-|-|-|\n| 1 | Ilse | Pilot | x |\n\n\
        ## Universe\n\n| Slot | Callsign | Job |\n|-|-|-|\n| A | Gull | look-out |\n";
    assert_eq!(members(numbered), ["Ilse (ilse): Pilot"]);
}

#[test]
fn tables_of_things_list_nobody() {
    let text = "## Members\n\n| Name | Role |\n|-|-|\n| Ilse | Pilot |\n\n## Services we run\n\n| Name | Role | Port |\n|-|-|-|\n| cache | keeps | 1 |\n\n\
        ## Service accounts\n\n| Name | Role | Access |\n|-|-|-|\n| ci | deploys | write |\n\n## Tables\n\n| Name | Role |\n|-|-|\n| logs | keeps |\n\n\
        ## Changes\n\n| Agent | Previous Role | New Role |\n|-|-|-|\n| Yan | Cook | Chef |\n";
    assert_eq!(members(text), ["Ilse (ilse): Pilot"]);
    let bots = "## Members\n\n| Name | Role |\n|-|-|\n| Ilse | Pilot |\n\n## Bots\n\n| Name | Role |\n|-|-|\n| @dependabot | Updates |\n| @github-actions[bot] | CI |\n";
    let (team, _) = read(&[("team.md", bots)]);
    assert_eq!(team.members.iter().map(|m| m.kind).collect::<Vec<_>>(), [Kind::Agent, Kind::Bot, Kind::Bot]);
    let blanks = "## Members\n\n| Name | Role |\n|-|-|\n| [Name] | [Role] |\n| Your name here | Dev |\n| All agents | x |\n| Ilse | Pilot |\n";
    let (team, problems) = read(&[("team.md", blanks)]);
    assert_eq!(said(&team), ["Ilse (ilse): Pilot"]);
    assert_eq!(codes(&problems).iter().filter(|(code, _)| *code == "roster-placeholder").count(), 2);
}

#[test]
fn a_second_table_proves_nobody() {
    let text = "# Crew\n\n## Members\n\n### Infrastructure\n\n| Name | Role | Status |\n|-|-|-|\n| Ilse | Pilot | Active |\n\n## Who answers for what\n\n\
        | Agent | Responsibilities |\n|-|-|\n| Ilse | charts |\n| Squad | hands out work |\n| Yan | nothing |\n| Uwe | soup |\n\n## Working as a team\n\n- **Yan** — not here\n- **Eva** — Sails\n";
    let (team, _) = with_folders(text, &["ilse", "uwe", "eva"]);
    assert_eq!(said(&team), ["Ilse (ilse): Pilot", "Uwe (uwe): soup", "Eva (eva): Sails"]);
    let chats =
        "## Chat Bot Team\n\n| Name | Role |\n|-|-|\n| Ilse | Keeper of \"truth\" |\n| Squad | Hands out work |\n";
    let (team, _) = read(&[("team.md", chats)]);
    assert_eq!((said(&team), team.members[0].kind), (vec!["Ilse (ilse): Keeper of \"truth\"".to_owned()], Kind::Agent));
}

#[test]
fn a_list_names_members_and_their_roles() {
    let text =
        "## Members\n\n- **Ilse** — Pilot\n- @uwe – Cook\n- [ ] Jan — Ropes\n- ⚓ **Otto**, Smith\n- Ute (Sails)\n";
    let (team, problems) = read(&[("team.md", text)]);
    assert_eq!(said(&team), ["Ilse (ilse): Pilot", "uwe (uwe): Cook", "Jan (jan): Ropes", "Ute (ute): Sails"]);
    // What cannot be read is said.
    assert!(codes(&problems).contains(&("roster-line", 6)), "{problems:?}");
    let headings = "## Members\n\n### Ilse — Pilot\n\n### Otto\n- **Role:** Smith\n";
    let (team, problems) = read(&[("team.md", headings)]);
    assert_eq!(said(&team), ["Ilse (ilse): Pilot"]);
    assert!(codes(&problems).contains(&("roster-line", 5)), "{problems:?}");
}

#[test]
fn a_list_may_put_the_role_first() {
    let text = "## Roster\n\n- **Lead:** Ilse\n- **QA:** Uwe\n";
    assert_eq!(members(text), ["Ilse (ilse): Lead", "Uwe (uwe): QA"]);
    assert_eq!(members("## Roster\n\n- **Ilse:** Lead\n- **Uwe:** QA\n"), ["Ilse (ilse): Lead", "Uwe (uwe): QA"]);
    // Folders may be called by roles.
    let by_role = "## Roster\n\n- **Ilse** — Lead\n- **Uwe** — QA\n";
    assert_eq!(said(&with_folders(by_role, &["lead", "qa"]).0), ["Ilse (ilse): Lead", "Uwe (uwe): QA"]);
}

#[test]
fn a_folder_is_found_whatever_letters_its_name_may_have() {
    let text = "| Name | Role | Charte |\n|-|-|-|\n| Élodie | a | |\n| Jürgen | b | |\n| Ørsted | c | |\n| Иван | d | |\n| 太郎 | e | |\n\
        | Zoë | f | |\n| Carl | g | .squad/agents/_alumni/carl/charter.md |\n| Bo | h | .squad/agents/nowhere/charter.md |\n| The J | i | agents/the%20j/charter.md |\n";
    let (team, _) = with_folders(text, &["elodie", "juergen", "orsted", "ivan", "_alumni/carl", "the j"]);
    let slugs: Vec<&str> = team.members.iter().map(|m| m.slug.as_str()).collect();
    assert_eq!(slugs, ["elodie", "juergen", "orsted", "ivan", "tai-lang", "zoe", "carl", "bo", "the-j"]);
    let charters = team.members.iter().filter(|m| m.charter.is_some()).count();
    assert_eq!(charters, 6);
}

#[test]
fn names_that_fold_alike_are_all_kept() {
    let (team, problems) = read(&[(
        "team.md",
        "| Name | Role |\n|-|-|\n| C++ | Engine |\n| C# | Tools |\n| c++ | Twice |\n| C# | Twice |\n",
    )]);
    assert_eq!(said(&team), ["C++ (c): Engine", "C# (c-2): Tools"]);
    let codes: Vec<_> = codes(&problems).into_iter().filter(|(code, _)| code.starts_with("roster")).collect();
    assert_eq!(codes, [("roster-slug", 4), ("roster-duplicate", 5), ("roster-duplicate", 6)]);
}

#[test]
fn a_charter_says_whose_it_is_and_what_the_roster_leaves_open() {
    let text = "| Name | Role | Model |\n|-|-|-|\n| Ilse | — | `gpt-5` |\n| Uwe | | gpt-5 |\n";
    let (team, _) = read(&[
        ("team.md", text),
        ("agents/ilse/charter.md", "# Ilse — Pilot\n"),
        ("agents/uwe/charter.md", "---\ndescription: Cook\nmodel: gpt-4.1\n---\nYou cook.\n"),
    ]);
    assert_eq!(said(&team), ["Ilse (ilse): Pilot", "Uwe (uwe): Cook"]);
    let models: Vec<_> = team.charters.values().map(|charter| charter.model.as_deref()).collect();
    assert_eq!(models, [Some("gpt-5"), Some("gpt-4.1")]);
}

#[test]
fn the_first_word_of_a_status_counts() {
    for (cell, status) in [
        ("Active, was retired once", Status::Active),
        ("inactive → active 2026-02-03", Status::Active),
        ("In-active", Status::Inactive),
        ("no longer active", Status::Retired),
        ("no", Status::Inactive),
        ("✗", Status::Inactive),
        ("left", Status::Retired),
        ("Active until 2026-01-01", Status::Active),
        ("✅ Re-activated", Status::Active),
        ("Ruhestand", Status::Retired),
    ] {
        let row =
            |heading: &str| format!("## {heading}\n\n| Name | Role | Status |\n|-|-|-|\n| Ilse | Pilot | {cell} |\n");
        let status_under = |heading: &str| read(&[("team.md", &row(heading))]).0.members[0].status;
        assert_eq!(status_under("Members"), status, "{cell}");
        if cell.contains("until") {
            assert_eq!(status_under("Former Members"), Status::Retired);
        }
    }
    let role =
        |role: &str| read(&[("team.md", &format!("| Name | Role |\n|-|-|\n| Ilse | {role} |\n"))]).0.members[0].kind;
    assert_eq!(role("Human Resources Agent"), Kind::Agent);
    assert_eq!(role("Human (Product Owner)"), Kind::Human);
}

/// Code, severity and message of those that begin so.
fn problems_of(texts: &[(&str, &str)], code: &str) -> Vec<(Severity, String)> {
    let (_, problems) = crate::parse::team(&files(texts));
    problems.into_iter().filter(|p| p.code.starts_with(code)).map(|p| (p.severity, p.message)).collect()
}

#[test]
fn an_agent_without_a_charter_is_said() {
    let text = "| Name | Role | Charter | Status |\n|-|-|-|-|\n| Ilse | Pilot | | |\n| Uwe | Cook | agents/owe/charter.md | |\n| Eva | Dev | | Retired |\n| Jan | Dev | | 👤 Human |\n";
    assert_eq!(
        problems_of(&[("team.md", text)], "charter-missing"),
        [
            (
                Severity::Warning,
                "Uwe's charter is not at .squad/agents/owe/charter.md nor at .squad/agents/uwe/charter.md".to_owned()
            ),
            (Severity::Note, "Ilse has no charter at .squad/agents/ilse/charter.md".to_owned()),
        ]
    );
    for path in ["agents/ilse/CHARTER.md", "charters/ilse.md"] {
        let texts = [("team.md", "| Name | Role |\n|-|-|\n| Ilse | Pilot |\n"), (path, "# Ilse\n\nx\n")];
        assert_eq!(problems_of(&texts, "charter-missing"), [], "{path}");
    }
}

#[test]
fn why_there_is_no_roster() {
    let hint = |texts: &[(&str, &str)]| {
        let (_, problems) = read(texts);
        (problems[0].line, problems[0].message.clone(), problems[0].hint.clone().unwrap_or_default())
    };
    let (line, _, said) = hint(&[("team.md", "# T\n\n| Boat | Mast |\n|-|-|\n| a | b |\n")]);
    assert!(line == 3 && said.contains("`Boat` and `Mast`"), "{line} {said}");
    let (line, message, _) = hint(&[("team.md", "# T\n\n<table>\n<tr><td>Ilse</td></tr>\n</table>\n")]);
    assert!(line == 3 && message.contains("HTML"), "{line} {message}");
    let (_, _, said) = hint(&[("agents/ilse/charter.md", "# Ilse\n\nx\n"), ("agents/uwe/charter.md", "# Uwe\n\nx\n")]);
    assert!(said.ends_with("agents/ has ilse and uwe"), "{said}");
}

#[test]
fn members_without_names_are_called_by_their_roles() {
    let text = "# Dock crew\n\n## Members\n\n| Role | Focus | Charter |\n|-|-|-|\n\
        | Pilot | Tides and shoals | [charter](agents/pilot/charter.md) |\n\
        | Cook | Stores | [charter](agents/cook/charter.md) |\n";
    let (team, problems) = with_folders(text, &["pilot", "cook"]);
    assert_eq!(said(&team), ["Pilot (pilot): Tides and shoals", "Cook (cook): Stores"]);
    assert!(codes(&problems).iter().all(|(code, _)| !code.starts_with("roster")), "{problems:?}");
    // Where names stand, roles are no members.
    let both = "## Members\n\n| Name | Role |\n|-|-|\n| Ilse | Pilot |\n\n## Baseline roles\n\n| Role | Charter |\n|-|-|\n\
        | Pilot | agents/ilse/charter.md |\n";
    assert_eq!(said(&with_folders(both, &["ilse"]).0), ["Ilse (ilse): Pilot"]);
}

#[test]
fn another_cell_may_name_the_folder() {
    for (header, cell) in [("GitHub Label", "`squad:helmdev`"), ("Slot", "helmdev"), ("Slug", "helmdev")] {
        let text = format!("## Members\n\n| {header} | Agent | Role |\n|-|-|-|\n| {cell} | C# Dev | Helm |\n");
        assert_eq!(said(&with_folders(&text, &["helmdev"]).0), ["C# Dev (helmdev): Helm"], "{header}");
        // Who has a helper's place is no helper.
        let text = text.replace("helmdev", "ralph");
        let (team, _) = with_folders(&text, &["ralph"]);
        assert_eq!((said(&team), team.members[0].kind), (vec!["C# Dev (c-dev): Helm".to_owned()], Kind::Agent));
        assert!(team.members[0].charter.is_some());
        // A label of a folder that is not there says nothing.
        assert_eq!(said(&with_folders(&text, &["other"]).0), ["C# Dev (c-dev): Helm"], "{header}");
    }
}

#[test]
fn fields_below_a_broken_table_are_no_members() {
    let rows = "| Name | Role |\nAda | Backend |\n| Bob | Tester |\n\n";
    let fields = "- **Database:** Postgres\n- **Front end:** React\n- **Cloud:** none yet\n";
    let (team, problems) = read(&[("team.md", &format!("# Team\n\n## Members\n\n{rows}{fields}"))]);
    assert_eq!(said(&team), [] as [&str; 0]);
    assert!(problems.iter().any(|problem| problem.severity == Severity::Error), "{problems:?}");
    // Without the rows, or as `Name — Role`, they are a list of members.
    assert_eq!(members("## Members\n\n- **Ada:** Backend\n- **Bob:** Tester\n").len(), 2);
    assert_eq!(members(&format!("## Members\n\n{rows}- **Ada** — Backend\n- **Bob** — Tester\n")).len(), 2);
    // The rows of one section say nothing about another.
    assert_eq!(members(&format!("## Project\n\n{rows}## Members\n\n- **Ada:** Backend\n- **Bob:** Tester\n")).len(), 2);
}
