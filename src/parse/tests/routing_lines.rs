//! Rules as lines of a routing file, what its cells may hold, and what it says of what it does not take.

use super::{codes, read};
use crate::model::{Problem, Team};

const TEAM: &str = "| Name | Role | Status |\n|-|-|-|\n| Ilse | Pilot | Active |\n| Otto Brand | Cook | Active |\n| Uwe | Lead | Active |\n| Ebba | Diver | Retired |\n| Kurt | Owner | 👤 Human |\n";

fn routed(routing: &str) -> (Team, Vec<Problem>) {
    read(&[("team.md", TEAM), ("routing.md", routing)])
}

fn rules(routing: &str) -> Vec<String> {
    let rule = |rule: &crate::model::Rule| {
        let agents: Vec<&str> = rule.agents.iter().map(|slug| slug.as_str()).collect();
        format!("{}: {}", rule.signal, agents.join(" "))
    };
    routed(routing).0.rules.iter().map(rule).collect()
}

#[test]
fn any_arrow_parts_work_from_members() {
    let text = "# Routing\n\n- Meals ➜ Otto\n\n> Storms → Uwe\n\nSails ➡️ Ilse\nFlags >> Otto, Ilse\n";
    assert_eq!(rules(text), ["Meals: otto-brand", "Storms: uwe", "Sails: ilse", "Flags: otto-brand ilse"]);
    assert_eq!(routed(text).1, []);
}

#[test]
fn prose_is_no_rule() {
    for line in [
        "- Ilse: never steers at night",
        "- Ilse — on leave until May",
        "- Uwe: Reviews all plans. Ask him first.",
        "- Storms: call Uwe at once",
        "- Owner: Uwe",
        "- Cook: Otto",
        "- Ilse: Otto's bread",
        "Ilse: tides",
        "When it leaks → Uwe looks first, then the rest of us.",
    ] {
        let (team, problems) = routed(&format!("{line}\n"));
        assert_eq!((team.rules.len(), codes(&problems)), (0, vec![("routing-empty", 1)]), "{line}");
    }
}

#[test]
fn beside_a_table_only_arrows_send() {
    let table = "| Work | Agent |\n|-|-|\n| Hull | Uwe |\n\n## Rules\n\n";
    assert_eq!(rules(&format!("{table}- Meals → Otto\n- Charts: Ilse\n")), ["Hull: uwe", "Meals: otto-brand"]);
    for said in [
        "- Charts: Ilse\n",
        "- Charts: Ilse\n- Ask before.\n",
        "- Ilse: charts whatever there is.\n- Otto: cooks when he likes.\n",
        "- When it leaks → Uwe looks, then the next watch\n",
        "- Uwe reads it\n",
    ] {
        let (team, problems) = routed(&format!("{table}{said}"));
        assert_eq!((team.rules.len(), codes(&problems)), (1, vec![("routing-unread", 7)]), "{said}");
    }
    // The line that says it, in a paragraph of several.
    for (above, line) in [("", 7), ("All of us cook.\n", 8), ("All of us cook.\nIn turns.\n", 9)] {
        let said = "When it leaks → Uwe looks, then the next watch\n";
        for below in ["", "Ask before.\n"] {
            let (_, problems) = routed(&format!("{table}{above}{said}{below}"));
            assert_eq!(codes(&problems), [("routing-unread", line)], "{above:?} {below:?}");
        }
    }
    let order =
        "- Reports in order. When the crew share one watch, they report in the order `first -> Ilse -> Otto -> Uwe`.\n";
    assert_eq!(routed(&format!("{table}{order}")).0.rules.len(), 1);
    for silent in ["- Eager by default — ask all\n", "- See Uwe's notes\n", "- Meals → Otto\n- Charts: Ilse\n"] {
        assert_eq!(routed(&format!("{table}{silent}")).1, [], "{silent}");
    }
}

/// Beside a table and without one, in both orders.
#[test]
fn items_that_put_work_beside_members_are_rules() {
    let table = "| Work | Agent |\n|-|-|\n| Hull | Uwe |\n\n## Rules\n\n";
    for (items, sent) in [
        ("- Charts: Ilse\n- Meals: Otto + Uwe\n", ["Charts: ilse", "Meals: otto-brand uwe"]),
        ("- **Charts:** Ilse\n- Meals — Otto, Uwe\n- Ask before.\n", ["Charts: ilse", "Meals: otto-brand uwe"]),
        ("- Ilse: charts\n- Otto, Uwe: meals\n", ["charts: ilse", "meals: otto-brand uwe"]),
        ("- Ilse owns charts.\n- Otto, Uwe handles: meals\n", ["charts.: ilse", "meals: otto-brand uwe"]),
        (
            "- Charts → Ilse — as ever, and more\n- Meals → @otto-brand, @uwe — or not\n",
            ["Charts: ilse", "Meals: otto-brand uwe"],
        ),
    ] {
        assert_eq!(rules(items), sent, "{items}");
        let all: Vec<&str> = ["Hull: uwe"].into_iter().chain(sent).collect();
        assert_eq!(rules(&format!("{table}{items}")), all, "{items}");
    }
}

#[test]
fn a_table_with_one_column_of_members_routes_whatever_it_is_called() {
    assert_eq!(rules("| Task Pattern | Agent | Priority |\n|-|-|-|\n| tar | Uwe | 1 |\n"), ["tar: uwe"]);
    assert_eq!(rules("| On deck | In charge |\n|-|-|\n| tar | Uwe |\n| wax | Ilse |\n"), ["tar: uwe", "wax: ilse"]);
    let table = "| Work | Agent |\n|-|-|\n| Hull | Uwe |\n\n";
    for about in [
        "| Watch | Deck |\n|-|-|\n| Ilse | Uwe |\n| Otto | Ilse |\n",
        "| Agent | Role |\n|-|-|\n| Uwe | Lead |\n",
        "| Author | Reviewer |\n|-|-|\n| Uwe | Ilse |\n",
    ] {
        let (team, problems) = routed(&format!("{table}{about}"));
        assert_eq!((team.rules.len(), problems), (1, vec![]), "{about}");
    }
}

#[test]
fn labels_and_modules_under_their_headings() {
    let text = "## Issue labels\n\n- `needs-triage` → Uwe\n\n| GitHub Label | Description | Assign |\n|-|-|-|\n| type:food | meals | Otto |\n\n\
        ## Code owners\n\n- `/galley/**` → Otto (primary), Ilse (secondary)\n- Storms → Uwe\n\n| File / Folder | Owner |\n|-|-|\n| `Makefile` | Uwe |\n";
    let (team, problems) = routed(text);
    let labels: Vec<_> = team.labels.iter().map(|rule| (rule.label.as_str(), rule.agents[0].as_str())).collect();
    assert_eq!(labels, [("type:food", "otto-brand"), ("needs-triage", "uwe")]);
    let modules: Vec<_> = team.modules.iter().map(|module| (module.path.as_str(), module.primary.as_str())).collect();
    assert_eq!(modules, [("Makefile", "uwe"), ("galley", "otto-brand")]);
    assert_eq!((rules(text), problems), (vec!["Storms: uwe".to_owned()], Vec::new()));
    assert_eq!(routed("| Label | Who |\n|-|-|\n| bug | Uwe |\n").1, []);
}

#[test]
fn headers_that_ask() {
    for header in ["Question | Ask", "If it is about… | Then call", "Signal | →", "Work | Assigned Agent(s)"] {
        assert_eq!(rules(&format!("| {header} |\n|-|-|\n| tar | Uwe |\n")), ["tar: uwe"], "{header}");
    }
    assert_eq!(rules("| Agent | When to use |\n|-|-|\n| Uwe | tar |\n"), ["tar: uwe"]);
    assert_eq!(
        rules("| Work | Lead Agent | Support Agents |\n|-|-|-|\n| tar | Uwe | Ilse, Otto |\n"),
        ["tar: uwe ilse otto-brand"]
    );
    let (team, _) = routed("| Work | Agent(s) | Reviewer(s) |\n|-|-|-|\n| tar | Ilse | Uwe |\n");
    assert_eq!(team.rules[0].reviewer.as_ref().map(|slug| slug.as_str()), Some("uwe"));
}

#[test]
fn cells_with_lines_strikes_and_bars() {
    for (cell, expected) in [
        ("~~Ilse~~ Uwe", "x: uwe"),
        ("Ilse<br>Uwe", "x: ilse uwe"),
        ("Ilse<br/>Otto Brand", "x: ilse otto-brand"),
        ("Ilse ∥ Uwe", "x: ilse uwe"),
        ("Ilse > Uwe", "x: ilse uwe"),
        ("primary: Ilse, backup: Uwe", "x: ilse uwe"),
        ("Ilse ~~", "x: ilse"),
    ] {
        assert_eq!(rules(&format!("| Signal | Agent |\n|-|-|\n| x | {cell} |\n")), [expected], "{cell}");
    }
    assert_eq!(
        rules("| Signal | Agent |\n|-|-|\n| tar<br>wax | Uwe |\n| ~~rum~~ | Otto |\n| tea | Ilse |\n"),
        ["tar, wax: uwe", "tea: ilse"]
    );
}

#[test]
fn who_has_gone_or_is_human_starts_nothing() {
    let text = "| Work | Agent |\n|-|-|\n| tar | Ebba |\n| wax | Ebba, Uwe |\n| pay | Kurt |\n| bread | Scribe |\n";
    let problems = routed(text).1;
    let mut lines: Vec<usize> = problems.iter().map(|problem| problem.line).collect();
    lines.sort_unstable();
    assert_eq!(lines, [3, 4, 5, 6]);
    let code = |line| if line == 6 { "routing-helper" } else { "routing-idle-agent" };
    assert!(problems.iter().all(|problem| problem.code == code(problem.line)), "{problems:?}");
    let severities: Vec<_> = problems.iter().map(|problem| problem.severity.to_string()).collect();
    assert_eq!(severities, ["warning", "warning", "warning", "note"]);
}

#[test]
fn pointers_that_lead_nowhere_and_entries_without_a_name_are_said() {
    let text = "See [the table](table.json), [this](gone.json), [that](../out.json) and `.squad/lost.json`.\n\n\
        | Work | Agent | Examples |\n|-|-|-|\n| tar | Uwe | package.json |\n";
    let table = "[{\"workType\": \"wax\"},\n {\"agent\": \"Uwe\"},\n {\"note\": 1}]";
    let (team, problems) = read(&[("team.md", TEAM), ("routing.md", text), ("table.json", table)]);
    assert_eq!(team.rules.len(), 1);
    let said: Vec<_> = problems.iter().map(|problem| (&*problem.code, problem.severity.to_string())).collect();
    assert_eq!(
        said,
        [
            ("routing-json-entry", "warning".to_owned()),
            ("routing-json-entry", "warning".to_owned()),
            ("routing-json", "note".to_owned()),
            ("routing-json", "note".to_owned()),
            ("routing-json", "note".to_owned()),
        ]
    );
}
