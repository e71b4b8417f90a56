use super::*;
use crate::parse::{Files, team};

fn read(texts: &[(&str, &str)]) -> Team {
    let texts = texts.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    team(&Files { folder: ".squad".to_owned(), texts }).0
}

fn sample() -> Team {
    read(&[
        (
            "team.md",
            "| Name | Role | Status |\n|-|-|-|\n| Lead | Lead | Active |\n| Bea | Backend Dev | Active |\n\
             | Fay | Frontend Dev | Active |\n| Tess | Tester | Active |\n| Doc | Technical Writer | Active |\n\
             | Rex | Reviewer | Active |\n| Old | Backend Dev | Retired |\n| Scribe | Logger | Silent |\n",
        ),
        (
            "routing.md",
            "| Work Type | Route To | Examples |\n|-|-|-|\n\
             | API, server | Bea + Rex (review) | endpoint, database query, migration |\n\
             | UI, components | Fay | css, layout, button, page |\n\
             | Testing | Tess | unit tests, flaky test, coverage |\n\
             | Documentation | Doc | README, guide, document a feature |\n\
             | Session logging | Scribe | automatic |\n",
        ),
    ])
}

fn plan(team: &Team, message: &str) -> Plan {
    Router::new(team, &[]).plan(&Request::new(message), &Wishes::default())
}

fn agents(message: &str) -> (PlanKind, Vec<String>, Option<String>, Tier) {
    let plan = plan(&sample(), message);
    let agents = plan.agents.iter().map(ToString::to_string).collect();
    (plan.kind, agents, plan.reviewer.map(|slug| slug.to_string()), plan.tier)
}

#[test]
fn a_row_decides_and_names_the_reviewer() {
    assert_eq!(
        agents("Add an endpoint for invoices"),
        (PlanKind::Agents, vec!["bea".to_owned()], Some("rex".to_owned()), Tier::Standard)
    );
    assert_eq!(agents("the button on the start page is misaligned").1, ["fay"]);
}

#[test]
fn one_message_may_be_several_agents_work() {
    let (kind, agents, reviewer, tier) = agents("Add a health endpoint with tests, and document it");
    assert_eq!((kind, tier), (PlanKind::Agents, Tier::Full));
    assert_eq!(agents, ["bea", "tess", "doc"]);
    assert_eq!(reviewer.as_deref(), Some("rex"));
}

#[test]
fn a_mention_beats_the_rows() {
    assert_eq!(agents("@tess look at the endpoint").1, ["tess"]);
    assert_eq!(agents("@Fay and @bea: agree on the page").1, ["fay", "bea"]);
    // Not a mention: an e-mail address, a package, code, a retired member.
    assert_eq!(agents("mail bea@tess.example about css").1, ["fay"]);
    assert_eq!(agents("`@tess` in css").1, ["fay"]);
    assert_eq!(agents("update @tess/css").1, ["fay"]);
    assert_eq!(agents("@old adjust css").1, ["fay"]);
}

#[test]
fn the_team_is_everyone_who_can_be_started() {
    assert_eq!(agents("Team, introduce yourselves").1, ["lead", "bea", "fay", "tess", "doc", "rex"]);
}

#[test]
fn the_router_abstains_when_it_does_not_know() {
    for message in ["Make it better", "", "Quarterly figures", "the the the"] {
        let (kind, agents, _, _) = agents(message);
        assert_eq!((kind, agents.len()), (PlanKind::Abstain, 0), "{message}");
    }
}

#[test]
fn nobody_is_chosen_by_a_part_of_a_word() {
    assert_eq!(agents("rebuild the rapid specifics").0, PlanKind::Abstain);
}

#[test]
fn evidence_names_the_row() {
    let plan = plan(&sample(), "fix the css layout");
    assert_eq!(plan.evidence[0].source, ".squad/routing.md:4");
    assert!(plan.evidence[0].why.contains("css"), "{:?}", plan.evidence);
}

#[test]
fn the_coordinators_choice_is_checked() {
    let team = sample();
    let plan = plan(&team, "Make it better");
    let chosen =
        choice::apply(&team, &plan, "```json\n{\"agents\": [\"fay\"], \"reason\": \"UI\"}\n```").expect("a choice");
    assert_eq!(
        (chosen.kind, chosen.agents[0].as_str(), chosen.evidence[0].why.as_str()),
        (PlanKind::Agents, "fay", "UI")
    );
    for wrong in ["I think Fay", "{\"agents\": [\"mallory\"]}", "{\"agents\": []}", "{\"agents\": [\"old\"]}", "} {"] {
        assert!(choice::apply(&team, &plan, wrong).is_err(), "{wrong}");
    }
}

#[test]
fn past_work_teaches() {
    let team = sample();
    let past = PastWork {
        message: "Reconcile the quarterly figures".to_owned(),
        agents: vec![team.members[1].slug.clone()],
        source: "run 1".to_owned(),
    };
    let plan = Router::new(&team, &[past]).plan(&Request::new("Quarterly figures reconcile badly"), &Wishes::default());
    assert_eq!(plan.agents, [team.members[1].slug.clone()]);
    assert_eq!(plan.evidence[0].source, "run 1");
}

#[test]
fn labels_and_paths_are_rules() {
    let team = read(&[
        ("team.md", "| Name | Role |\n|-|-|\n| Bea | Backend |\n| Fay | Frontend |\n"),
        (
            "routing.md",
            "| Path | Primary |\n|-|-|\n| src/ | Bea |\n| src/web/ | Fay |\n\n\
             | Label | Action | Who |\n|-|-|-|\n| ui | Pick up | Fay |\n",
        ),
    ]);
    let router = Router::new(&team, &[]);
    let ask = |labels: &[&str], paths: &[&str]| {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let (labels, paths) = (owned(labels), owned(paths));
        let request = Request { text: "it is broken", labels: &labels, paths: &paths };
        router.plan(&request, &Wishes::default()).agents.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(ask(&["squad:bea"], &["src/web/a.ts"]), ["bea"]);
    assert_eq!(ask(&["ui"], &[]), ["fay"]);
    assert_eq!(ask(&[], &["src/web/a.ts"]), ["fay"]);
    assert_eq!(ask(&[], &["src/website/a.ts"]), ["bea"]);
    assert_eq!(ask(&["other"], &["docs/a.md"]), [""; 0]);
}
