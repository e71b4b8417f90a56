//! The forms of `routing.md`.

use super::super::linked_files;
use super::{codes, files, read};
use crate::model::{Problem, Severity, Team};

const TEAM: &str = "| Name | Role | Status |\n|-|-|-|\n| Ilse | Pilot | Active |\n| Otto Brand | Cook | Active |\n| Uwe | Lead | Active |\n| Scribe | Session Logger | Silent |\n";

fn routed(routing: &str) -> (Team, Vec<Problem>) {
    read(&[("team.md", TEAM), ("routing.md", routing)])
}

/// `signal: agents / reviewer`
fn rules(team: &Team) -> Vec<String> {
    let rule = |rule: &crate::model::Rule| {
        let agents: Vec<&str> = rule.agents.iter().map(|slug| slug.as_str()).collect();
        let reviewer = rule.reviewer.as_ref().map(|slug| format!(" / {slug}")).unwrap_or_default();
        format!("{}: {}{reviewer}", rule.signal, agents.join(" "))
    };
    team.rules.iter().map(rule).collect()
}

#[test]
fn every_kind_of_header() {
    for header in [
        "Work Type | Route To | Examples",
        "Work Type | Agent | Examples",
        "Signal | Agent | Notes",
        "Domain | Agent/Owner | Examples",
        "Domain | Agent / Owner | Examples",
        "Domain / Keywords | Primary Agent | Secondary",
        "**Task Type** | **Assigned To** | Example",
        "🔎 Signal | 🤖 Agent | x",
        "What people ask | Routes to | x",
        "Domain (and keywords) | Person | x",
        "Pattern / Trigger | Owner | Reason",
    ] {
        let text = format!("| {header} |\n|-|-|-|\n| tides | **Ilse** 🌊 | |\n");
        assert_eq!(rules(&routed(&text).0), ["tides: ilse"], "{header}");
    }
    // Under a header that says so, rows for people whom squad does not know leave the others theirs.
    let text =
        "| Pattern / Trigger | Owner | Reason |\n|-|-|-|\n| tides | Ilse | |\n| storms | whoever sees them | |\n";
    assert_eq!(rules(&routed(text).0), ["tides: ilse", "storms: "]);
}

#[test]
fn every_kind_of_agent_cell() {
    for (cell, expected) in [
        ("Ilse", "ilse"),
        ("[Ilse](agents/ilse/charter.md)", "ilse"),
        ("@ilse", "ilse"),
        ("`ilse`", "ilse"),
        ("Ilse 🌊", "ilse"),
        ("Ilse + Otto", "ilse otto-brand"),
        ("Ilse, Otto Brand and Uwe", "ilse otto-brand uwe"),
        ("Ilse (impl) + Otto (verify)", "ilse otto-brand"),
        ("Ilse (charts, tables) → Uwe", "ilse uwe"),
        ("Ilse (Uwe review)", "ilse / uwe"),
        ("Ilse (impl), reviewed by Uwe", "ilse / uwe"),
        ("Ilse + Uwe (review)", "ilse / uwe"),
        ("Ilse; Uwe reviews", "ilse / uwe"),
        ("Lead (Uwe)", "uwe"),
        ("Cook", "otto-brand"),
        ("Logger", "scribe"),
        ("Ilse — for all of it", "ilse"),
        ("Ilse when tidal", "ilse"),
        ("Ralph", "ralph"),
    ] {
        let (team, _) = routed(&format!("| Signal | Agent |\n|-|-|\n| x | {cell} |\n"));
        assert_eq!(rules(&team), [format!("x: {expected}")], "{cell}");
    }
}

#[test]
fn a_signal_keeps_its_text_and_examples_are_a_list() {
    let (team, _) = routed(
        "| Work Type | Route To | Examples |\n|-|-|-|\n| Tides & currents, `/charts` | Ilse | \"high, low\", springs; neaps |\n",
    );
    assert_eq!(team.rules[0].signal, "Tides & currents, /charts");
    assert_eq!(team.rules[0].examples, ["high, low", "springs", "neaps"]);
}

#[test]
fn primary_before_secondary() {
    let (team, _) = routed(
        "| Domain | Primary | Secondary |\n|-|-|-|\n| Hull | Uwe | Otto |\n| Galley | Otto | — |\n| Deck | Ilse | Uwe (review) |\n",
    );
    assert_eq!(rules(&team), ["Hull: uwe otto-brand", "Galley: otto-brand", "Deck: ilse / uwe"]);
}

#[test]
fn modules_and_labels_are_no_rules() {
    let text = "## Work\n\n| Work Type | Agent |\n|-|-|\n| Core | Uwe |\n\n## Module Ownership\n\n| Module | Primary | Secondary |\n|-|-|-|\n\
        | `src\\hull` | Uwe | Otto |\n| `./src/deck/**`, docs/ | Ilse | — |\n\n## Issues\n\n| Label | Action | Who |\n|-|-|-|\n| `squad` | Triage | Uwe (Lead) |\n| `squad:{name}` | Pick up | Named member |\n";
    let (team, problems) = routed(text);
    assert_eq!(rules(&team), ["Core: uwe"]);
    let modules: Vec<_> = team
        .modules
        .iter()
        .map(|m| (m.path.as_str(), m.primary.as_str(), m.secondary.as_ref().map(|slug| slug.as_str()), m.source.line))
        .collect();
    assert_eq!(
        modules,
        [("src/hull", "uwe", Some("otto-brand"), 11), ("src/deck", "ilse", None, 12), ("docs", "ilse", None, 12)]
    );
    assert_eq!(
        (team.labels.len(), team.labels[0].label.as_str(), team.labels[0].action.as_str()),
        (1, "squad", "Triage")
    );
    assert_eq!(problems, []);
}

#[test]
fn list_items_with_an_arrow_are_rules_when_they_name_members() {
    let text = "## Rules\n\n- `hull-work` → Uwe\n- **Meals**: -> Otto, Ilse\n- Quick facts → answer at once\n- \"Team, …\" → fan-out\n1. Storms → Ilse (pilot) + Uwe (review)\n";
    assert_eq!(rules(&routed(text).0), ["hull-work: uwe", "Meals: otto-brand ilse", "Storms: ilse / uwe"]);
}

#[test]
fn a_json_table_beside_the_file() {
    let routing = "# Routing\n\nData: [`.squad/work-table.json`](work-table.json), and `./labels.json`.\n";
    let work = "[\n  {\"workType\": \"Hull \\\"steel\\\"\", \"routeTo\": \"Uwe\", \"examples\": [\"rust\", \"paint, red\"]},\n  {\"work_type\": \"Meals\", \"agents\": [\"Otto\", \"Ilse\"]},\n  {\"note\": 1},\n  {\"module\": \"src/x\", \"owner\": \"Ilse\"}\n]\n";
    let labels = "{\"version\": 1, \"labels\": [{\"label\": \"squad\", \"action\": \"triage\", \"who\": \"Uwe\"}]}";
    let (team, problems) = read(&[
        ("team.md", TEAM),
        ("routing.md", routing),
        ("work-table.json", work),
        ("labels.json", labels),
        ("other.json", work),
    ]);
    assert_eq!(rules(&team), ["Hull \"steel\": uwe", "Meals: otto-brand ilse"]);
    assert_eq!(team.rules[0].examples, ["rust", "paint, red"]);
    let lines: Vec<_> = team.rules.iter().map(|rule| rule.source.to_string()).collect();
    assert_eq!(lines, [".squad/work-table.json:2", ".squad/work-table.json:3"]);
    assert_eq!((team.modules.len(), team.labels.len()), (1, 1));
    assert_eq!(problems, []);
    let (team, problems) = read(&[("team.md", TEAM), ("routing.md", routing), ("work-table.json", "[\n{]")]);
    assert_eq!(team.rules, []);
    assert_eq!(codes(&problems), [("routing-empty", 1), ("routing-json", 2)]);
}

#[test]
fn only_files_in_the_folder_are_linked() {
    let text = "[a](a.json) [b](../b.json) </etc/c.json> <https://x/d.json> `.squad/sub/e.json` f.json. .json";
    assert_eq!(linked_files(&files(&[("routing.md", text)])), ["a.json", "sub/e.json", "f.json"]);
    let roster = "| [x](squads/dock/agents/ilse/charter.md) | `.squad/squads/dock/agents/uwe/charter.md` | \
        ../crew/agents/x/charter.md | /crew/agents/x/charter.md | https://x/agents/x/charter.md | agents/x/charter.md |";
    let crew = ["squads/dock/agents/ilse/charter.md", "squads/dock/agents/uwe/charter.md"];
    assert_eq!(linked_files(&files(&[("team.md", roster)])), crew);
}

#[test]
fn charters_may_stand_elsewhere_in_the_folder() {
    let text =
        "## Members\n\n| Name | Role | Charter |\n|-|-|-|\n| Ilse | Pilot | squads/dock/agents/helm/charter.md |\n";
    let charter = "# Helm\n\n## Model\n\n- **Preferred:** big-1\n";
    let (team, problems) = read(&[("team.md", text), ("squads/dock/agents/helm/charter.md", charter)]);
    assert_eq!(team.members[0].slug.as_str(), "helm");
    assert_eq!(team.members[0].charter.as_deref(), Some(".squad/squads/dock/agents/helm/charter.md"));
    assert_eq!(codes(&problems), [("routing-missing", 1)]);
}

#[test]
fn placeholders_and_strangers_are_reported() {
    let text = "| Work Type | Route To | Examples |\n|-|-|-|\n| {domain 1} | {Name} | {examples} |\n| Hull | Nobody + Uwe | `src/{a,b}` |\n| Sails | Nemo | |\n";
    let (team, problems) = routed(text);
    assert_eq!(rules(&team), ["Hull: uwe", "Sails: "]);
    assert_eq!(
        codes(&problems),
        [("routing-placeholder", 3), ("routing-unknown-agent", 5), ("routing-unknown-agent", 4)]
    );
    assert!(problems.iter().all(|problem| problem.hint.is_some()));
}

#[test]
fn tables_that_route_nothing() {
    let text = "| Situation | Action |\n|-|-|\n| Storm | Anchor |\n\n| Ceremony | Facilitator | When |\n|-|-|-|\n| Retro | Uwe | Friday |\n\n| Task | Model |\n|-|-|\n| Code | large |\n";
    let (team, problems) = routed(text);
    assert_eq!(team.rules, []);
    assert_eq!(codes(&problems), [("routing-empty", 1)]);
}

#[test]
fn a_table_with_headers_nobody_knows_routes_when_its_cells_are_members() {
    let team = ("team.md", "| Name | Role |\n|-|-|\n| Ada | Lead |\n| Bo | Backend Engineer |\n");
    let rules = |routing: &str| {
        let (team, _) = read(&[team, ("routing.md", routing)]);
        let rule = |rule: &crate::model::Rule| format!("{} → {}", rule.signal, rule.agents[0]);
        (team.rules.iter().map(rule).collect::<Vec<_>>(), team.modules.len())
    };
    let table = "| If it is about… | Then ask | Notes |\n|-|-|-|\n| databases | Bo | |\n| plans | Ada | |\n";
    assert_eq!(rules(table).0, ["databases → bo", "plans → ada"]);
    assert_eq!(rules("| Tipo de trabajo | Agente |\n|-|-|\n| Datos | Bo |\n").0, ["Datos → bo"]);
    for other in [
        "| Ceremony | Facilitator |\n|-|-|\n| Review | Ada |\n| Retro | Bo |\n",
        "| Agent | Backup of |\n|-|-|\n| Ada | Bo |\n| Bo | Ada |\n",
        "| Question | Answer |\n|-|-|\n| Who leads? | Ada |\n| When? | at noon |\n",
    ] {
        assert!(rules(other).0.is_empty(), "{other}");
    }
    assert_eq!(rules("| Pattern | Agent |\n|-|-|\n| `src/**/*.rs` | Bo |\n| docs/ | Ada |\n"), (Vec::new(), 2));
    assert_eq!(rules("| Area | Agent |\n|-|-|\n| CI/CD | Bo |\n").0, ["CI/CD → bo"]);
}

#[test]
fn what_goes_to_the_coordinator_is_no_problem() {
    let team = ("team.md", "| Name | Role |\n|-|-|\n| Ada | Lead |\n| Scribe | Log |\n");
    let routing = "| Work | Agent |\n|-|-|\n| Small talk | Squad (Coordinator) |\n| Plans | Coordinator |\n| Notes | (automatic) Scribe |\n";
    let (team, problems) = read(&[team, ("routing.md", routing)]);
    let agents: Vec<_> = team.rules.iter().map(|rule| rule.agents.len()).collect();
    assert_eq!((agents, codes(&problems)), (vec![0, 0, 1], vec![("routing-helper", 5)]));
}

#[test]
fn who_is_not_on_the_roster_is_said() {
    let text = "| Signal | Route To |\n|-|-|\n| Several | Uwe + relevant agents |\n| Fix | Uwe → Specialist → Ilse |\n\
        | Facts | Direct (no spawn) |\n| All | All agents |\n| Odd | Uwe + Nemo |\n";
    let (team, problems) = routed(text);
    assert_eq!(rules(&team), ["Several: uwe", "Fix: uwe ilse", "Facts: ", "All: ", "Odd: uwe"]);
    let lines: Vec<usize> = codes(&problems).into_iter().map(|(_, line)| line).collect();
    assert_eq!(lines, [6, 3, 4, 7]);
}

/// Rows for built-in helpers match no message, on the roster or not. What they do in other tools, squad does.
#[test]
fn rows_for_helpers_only_are_said() {
    for (cell, said) in [
        ("Scribe", Some("`scribe`")),
        ("Scribe, Ralph", Some("`scribe` and `ralph`")),
        ("Rai", Some("`rai`")),
        ("@scribe", Some("`scribe`")),
        ("Scribe, Ilse", None),
        ("Ilse", None),
    ] {
        for (work, severity) in [("bread", Severity::Warning), ("Session logging", Severity::Note)] {
            let (team, problems) = routed(&format!("# Routing\n\n| Signal | Agent |\n|-|-|\n| {work} | {cell} |\n"));
            assert_eq!(team.rules.len(), 1, "{cell}");
            let found = problems.iter().find(|problem| problem.code == "routing-helper");
            assert_eq!(found.map(|found| (found.line, found.severity)), said.map(|_| (5, severity)), "{cell}");
            let message = found.map(|found| found.message.clone()).unwrap_or_default();
            let begins = |names| message.starts_with(&format!("`{work}` routes only to {names}"));
            assert!(said.is_none_or(begins), "{message}");
        }
    }
}

/// A row for the coding agent, which only a roster makes one of the team.
#[test]
fn a_bot_that_is_not_on_the_roster_is_said() {
    let bot = "| @copilot | Coding Agent | Active |\n";
    for (cell, has_bot, said) in [
        ("@copilot", false, Some(("routing-unknown-agent", Severity::Warning))),
        ("@copilot \u{1f916}", false, Some(("routing-unknown-agent", Severity::Warning))),
        ("Ilse, @copilot", false, Some(("routing-unknown-agent", Severity::Note))),
        ("@copilot", true, Some(("routing-idle-agent", Severity::Warning))),
        ("Ilse, @copilot", true, None),
    ] {
        let team =
            format!("| Name | Role | Status |\n|-|-|-|\n| Ilse | Pilot | Active |\n{}", if has_bot { bot } else { "" });
        let routing = format!("# Routing\n\n| Signal | Agent |\n|-|-|\n| chores | {cell} |\n");
        let (_, problems) = read(&[("team.md", &team), ("routing.md", &routing)]);
        let found: Vec<_> = problems.iter().filter(|problem| problem.file.ends_with("routing.md")).collect();
        let found: Vec<_> = found.iter().map(|problem| (&*problem.code, problem.severity, problem.line)).collect();
        assert_eq!(found, said.map(|(code, severity)| (code, severity, 5)).into_iter().collect::<Vec<_>>(), "{cell}");
    }
}
