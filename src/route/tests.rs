mod calibration;
mod gates;
mod limits;
mod meetings;
mod pairs;
mod spoken;
mod steps;
mod threshold;
mod variations;

use std::collections::BTreeSet;

use super::choice::Chosen;
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
    Router::new(team, &[]).plan(&Request::new(message), &RouteOptions::default())
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
fn the_tier_is_the_users_then_the_charters_then_the_configured_one() {
    let mut team = sample();
    let tier = |team: &Team, wished: Option<Tier>, default_tier: Option<Tier>| {
        let route_options = RouteOptions { tier: wished, default_tier, ..RouteOptions::default() };
        let plan = Router::new(team, &[]).plan(&Request::new("Add an endpoint for invoices"), &route_options);
        let said = plan.evidence.iter().find(|it| it.why.starts_with("tier")).map(|it| it.why.clone());
        (plan.tier, said.unwrap_or_default())
    };
    let default = Some(Tier::Lightweight);
    assert_eq!(tier(&team, None, None).0, Tier::Standard);
    assert_eq!(tier(&team, None, default), (Tier::Lightweight, "tier lightweight: `sessions.default_tier`".to_owned()));
    let charter = crate::model::Charter { tier: Some(Tier::Full), ..Default::default() };
    team.charters.insert(Slug::fold("bea").expect("a slug"), charter);
    assert_eq!(tier(&team, None, default), (Tier::Full, "tier full: the charter of Bea names it".to_owned()));
    assert_eq!(tier(&team, Some(Tier::Standard), default).0, Tier::Standard);
    // Nobody is started for what needs nobody, whatever the tier of work is.
    let route_options = RouteOptions { default_tier: default, ..RouteOptions::default() };
    assert_eq!(Router::new(&team, &[]).plan(&Request::new("Thanks!"), &route_options).kind, PlanKind::Direct);
}

#[test]
fn one_message_may_be_several_agents_work() {
    let (kind, agents, reviewer, tier) = agents("Add a health endpoint with tests, and document it");
    // Agents side by side are not yet the full tier.
    assert_eq!((kind, tier), (PlanKind::Agents, Tier::Standard));
    assert_eq!(agents, ["bea", "tess", "doc"]);
    assert_eq!(reviewer.as_deref(), Some("rex"));
}

#[test]
fn what_a_message_begins_with_is_joined_to_nothing() {
    // Once a panic: there is no part before the first.
    for message in [" and a button", "and why.", "with a ## B)))", "plus a, and a", "then the — and —"] {
        assert_ne!(agents(message).0, PlanKind::Direct, "{message}");
    }
    assert_eq!(agents("and add a button with its layout to the page").1, ["fay"]);
}

#[test]
fn orders_are_parts_and_what_is_told_or_listed_is_none() {
    assert_eq!(agents("Fix the css layout, the button, the page and its css").1, ["fay"]);
    assert_eq!(agents("The endpoint and the query are fine now. Document the endpoint in the guide").1, ["doc"]);
    assert_eq!(agents("Add an API endpoint that is fast, and document it in the guide").1, ["bea", "doc"]);
}

#[test]
fn a_part_that_would_not_stand_alone_leaves_the_split_to_the_coordinator() {
    for message in [
        "Add a migration for tags and a button on the page",
        "Add a query to the endpoint and put a button with its layout on the page",
        "Improve it, and write tests for it",
    ] {
        let plan = plan(&sample(), message);
        assert_eq!(plan.kind, PlanKind::Abstain, "{message}: {plan:?}");
        assert!(plan.confidence < THRESHOLD && !plan.evidence.is_empty(), "{plan:?}");
    }
}

#[test]
fn a_mention_beats_the_rows() {
    assert_eq!(agents("@tess look at the endpoint").1, ["tess"]);
    assert_eq!(agents("@Fay and @bea: agree on the page").1, ["fay", "bea"]);
    // Not a mention: an e-mail address, a package, code, a retired member.
    assert_eq!(agents("mail bea@tess.example about the css layout").1, ["fay"]);
    assert_eq!(agents("`@tess` in the css layout").1, ["fay"]);
    assert_eq!(agents("update @tess/css for the button layout").1, ["fay"]);
    assert_eq!(agents("@old adjust the css layout of the start page").1, ["fay"]);
}

#[test]
fn names_that_are_not_read_are_named() {
    let rows: String = (1..=60).map(|number| format!("| Agent {number} | Developer |\n")).collect();
    let team = read(&[("team.md", &format!("| Name | Role |\n|---|---|\n{rows}"))]);
    let calls = |count: usize| (1..=count).map(|number| format!("@agent-{number} ")).collect::<String>();
    let is_said = |plan: &Plan| plan.evidence.iter().any(|evidence| evidence.why.contains("more than 40 @mentions"));
    assert!(!is_said(&plan(&team, &calls(40))));
    let many = plan(&team, &calls(60));
    assert!(is_said(&many) && many.agents.len() == 40, "{many:?}");
    assert!(many.evidence.iter().any(|evidence| evidence.why.contains("those from @agent-41 on")), "{many:?}");
}

#[test]
fn the_team_is_everyone_who_can_be_started() {
    assert_eq!(agents("Team, introduce yourselves").1, ["lead", "bea", "fay", "tess", "doc", "rex"]);
}

#[test]
fn who_decides_instead_sees_the_candidates_and_always_the_lead() {
    let (kind, shown) = shortlist(&sample(), "flaky migration of the css guide");
    assert_eq!(kind, PlanKind::Abstain);
    assert_eq!(shown[..4].iter().collect::<BTreeSet<_>>().len(), 4, "{shown:?}");
    assert_eq!(shown.last().map(String::as_str), Some("lead"), "{shown:?}");
    assert_eq!(shortlist(&sample(), "zzz qqq").1, ["lead"]);
    let team = read(&[(
        "team.md",
        "| Name | Role |\n|-|-|\n| Quin | QA Lead |\n| Tara | Tech Lead / Reviewer |\n| Art | Lead |\n",
    )]);
    assert_eq!(shortlist(&team, "zzz qqq").1, ["art"]);
}

/// Those whom the evidence of an abstention names, in its order.
fn shortlist(team: &Team, message: &str) -> (PlanKind, Vec<String>) {
    let plan = plan(team, message);
    let mut agents: Vec<String> = plan.evidence.iter().map(|it| it.agent.to_string()).collect();
    let mut seen = BTreeSet::new();
    agents.retain(|agent| seen.insert(agent.clone()));
    (plan.kind, agents)
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
    let row = plan.evidence.iter().find(|one| one.source == ".squad/routing.md:4" && one.why.contains("`css`"));
    assert!(row.is_some_and(|row| row.weight > 0.0), "{:?}", plan.evidence);
}

/// Of the rows of one agent that are about the same the evidence names the one that has the message's words.
#[test]
fn evidence_names_the_row_that_a_person_points_to() {
    let team = read(&[
        ("team.md", "| Name | Role |\n|-|-|\n| Bea | Backend Developer |\n| Fay | Frontend Developer |\n"),
        (
            "routing.md",
            "| Work Type | Route To | Examples |\n|-|-|-|\n| Backend, server, services and API | Bea | build script |\n\
             | Health | Bea | endpoint |\n| UI | Fay | page |\n",
        ),
    ]);
    let plan = plan(&team, "Add a health endpoint");
    let about = |area: &str| plan.evidence.iter().find(|one| one.why.contains(area)).map(|one| one.source.as_str());
    assert_eq!(about("`health endpoint`"), Some(".squad/routing.md:4"), "{plan:?}");
    assert_eq!(about("asks for implementation"), Some(".squad/team.md:3"), "{plan:?}");
    assert!(plan.evidence.iter().all(|one| one.source != ".squad/routing.md:3"), "{plan:?}");
}

#[test]
fn the_coordinators_choice_is_checked() {
    let team = sample();
    let plan = plan(&team, "Make it better");
    let chosen = |answer: &str| match choice::apply(&team, &plan, answer).expect("a choice") {
        Chosen::Agents(plan) => (plan, String::new()),
        Chosen::Nobody(plan, answer) => (plan, answer),
    };
    let (agents, _) = chosen("```json\n{\"agents\": [\"fay\"], \"reason\": \"UI\"}\n```");
    assert_eq!(
        (agents.kind, agents.agents[0].as_str(), agents.evidence[0].why.as_str()),
        (PlanKind::Agents, "fay", "UI")
    );
    let (twice, _) = chosen("{\"steps\": [[\"fay\", \"@Fay\"], [\"bea\", \"fay\"]]}");
    assert_eq!((twice.steps.iter().map(Vec::len).collect::<Vec<_>>(), twice.agents.len()), (vec![1, 2], 2));
    let (nobody, answer) = chosen("{\"agents\": [], \"answer\": \"It is port 80.\"}");
    assert_eq!((nobody.kind, nobody.agents.len(), nobody.tier), (PlanKind::Direct, 0, Tier::Direct));
    assert_eq!((nobody.evidence[0].source.as_str(), answer.as_str()), ("coordinator", "It is port 80."));
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
    let plan = Router::new(&team, &[past])
        .plan(&Request::new("Reconcile the quarterly figures once more"), &RouteOptions::default());
    assert_eq!(plan.agents, [team.members[1].slug.clone()]);
    assert!(plan.evidence.iter().any(|one| one.source == "run 1"), "{:?}", plan.evidence);
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
        router.plan(&request, &RouteOptions::default()).agents.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(ask(&["squad:bea"], &["src/web/a.ts"]), ["bea"]);
    assert_eq!(ask(&["ui"], &[]), ["fay"]);
    assert_eq!(ask(&[], &["src/web/a.ts"]), ["fay"]);
    assert_eq!(ask(&[], &["src/website/a.ts"]), ["bea"]);
    assert_eq!(ask(&["other"], &["docs/a.md"]), [""; 0]);
}

#[test]
fn a_file_that_the_message_names_is_its_owners() {
    let team = read(&[
        ("team.md", "| Name | Role |\n|-|-|\n| Bea | Developer |\n| Fay | Developer |\n| Tess | Tester |\n"),
        ("routing.md", "| Path | Primary |\n|-|-|\n| src/ | Bea |\n| src/web/ | Fay |\n"),
    ]);
    let asked = |message: &str| plan(&team, message).agents.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(asked("`src/web/a.ts` swallows the second event."), ["fay"]);
    assert_eq!(asked("Rename the option in src/core.rs, please"), ["bea"]);
    assert_eq!(asked("Write unit tests for src/web/a.ts"), ["tess"]);
    assert_eq!(asked("src/core.rs and src/web/a.ts disagree"), [""; 0]);
    assert_eq!(asked("See https://example.org/src/web/a.ts"), [""; 0]);
    // A row may be found inside a path, and what a file is called asks for nothing.
    assert_eq!(asked("packages/shop/src/web/a.ts swallows the second event"), ["fay"]);
    assert_eq!(asked("`src/web/TestPrompt.tsx:12:4` swallows the second event"), ["fay"]);
    // A folder of the machine is nobody's.
    assert_eq!(asked("It fails in /var/www/src/web/a.ts"), [""; 0]);
}

#[test]
fn a_folder_of_the_machine_speaks_for_nobody() {
    for trace in [
        "at Object.load (/var/www/html/pages/button.js:10:5)",
        "C:\\web\\css\\page.css is missing",
        "The disk is full in /var/www/css/page.css",
    ] {
        let plan = plan(&sample(), trace);
        assert!(plan.evidence.iter().all(|it| !it.why.contains("frontend") && !it.why.contains("css")), "{plan:?}");
    }
}

/// A team of another trade, whose files are small, and what its members are asked in words that are not in them.
fn orchard() -> Team {
    read(&[
        (
            "team.md",
            "| Name | Role | Status |\n|-|-|-|\n| Iris | Lead | Active |\n| Moss | Backend Developer | Active |\n\
             | Fern | Frontend Developer | Active |\n| Thorn | Tester | Active |\n| Sage | Technical Writer | Active |\n\
             | Flint | DevOps Engineer | Active |\n| Hazel | Security Engineer | Retired |\n| Rowan | Owner | 👤 Human |\n",
        ),
        (
            "routing.md",
            "| Work Type | Route To | Examples |\n|-|-|-|\n\
             | Architecture, scope, priorities | Iris | What to build next, trade-offs |\n\
             | API, database | Moss | Harvest endpoints, queries |\n\
             | Web pages | Fern | Components, orchard map |\n\
             | Testing | Thorn | Unit tests, edge cases |\n\
             | Documentation | Sage | README, guides |\n\
             | CI/CD, deployment | Flint | Pipelines, containers |\n",
        ),
    ])
}

#[test]
fn areas_of_work_are_known_by_other_words() {
    let team = orchard();
    for (message, agent) in [
        ("The lint job is red on every pull request, look at the workflow file", "flint"),
        ("Write a quickstart for people who are new to the project", "sage"),
        ("Should we split the importer into a service or keep the monolith?", "iris"),
        ("The assertion in HarvestParser.spec.ts is flaky, make it deterministic", "thorn"),
        ("El endpoint de la API falla, corrige la consulta de la base de datos", "moss"),
        ("Bitte schreibe Tests für den Parser, die Testabdeckung ist zu niedrig", "thorn"),
        ("请修复按钮，页面布局也错了", "fern"),
    ] {
        let plan = plan(&team, message);
        let agents: Vec<&str> = plan.agents.iter().map(Slug::as_str).collect();
        assert_eq!(agents, [agent], "{message}: {plan:?}");
    }
}

#[test]
fn the_only_one_for_a_kind_of_work_is_chosen_whatever_it_is_about() {
    let team = orchard();
    let asked = plan(&team, "Explain in a guide how harvest queries work, for people who are new");
    assert_eq!(asked.agents.iter().map(Slug::as_str).collect::<Vec<_>>(), ["sage"], "{asked:?}");
    let is_role = |one: &Evidence| one.weight > 0.0 && one.source.ends_with("team.md:7");
    assert!(asked.evidence.iter().any(|one| is_role(one) && one.why.contains("only this agent's role")), "{asked:?}");
}

#[test]
fn what_nobody_needs_to_work_on_is_direct() {
    let team = orchard();
    for message in [
        "Thanks everyone, great sprint!",
        "hello",
        "Who owns the database?",
        "What did we decide about ids?",
        "What's the status?",
    ] {
        assert_eq!(plan(&team, message).kind, PlanKind::Direct, "{message}");
    }
    for message in [
        "Hi, the login page is broken",
        "Thanks, now add tests for the parser",
        "Why does the endpoint return 500?",
        "Which parts of the parser have no tests?",
        "How should we store sessions?",
        "Can you add an endpoint?",
    ] {
        assert_ne!(plan(&team, message).kind, PlanKind::Direct, "{message}");
    }
}

#[test]
fn members_are_called_by_name_where_a_sentence_turns_to_them() {
    let team = orchard();
    let called = |message: &str| plan(&team, message).agents.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(called("Moss, have a look at the page"), ["moss"]);
    assert_eq!(called("Please ask Thorn to look at the page"), ["thorn"]);
    assert_eq!(called("Fern should rewrite the README"), ["fern"]);
    // Words that only look like names, and a name in passing.
    assert_ne!(called("The thorn in our side is the deployment pipeline"), ["thorn"]);
    assert_ne!(called("What Sage wrote about the endpoint is wrong, fix the endpoint"), ["sage"]);
}

#[test]
fn who_is_called_and_cannot_be_started_is_said() {
    let team = orchard();
    for (message, said) in [
        ("@hazel rotate the keys", "retired"),
        ("@rowan decide on the colors", "a person"),
        ("@mallory fix the endpoint", "not on the team"),
    ] {
        let plan = plan(&team, message);
        assert!(plan.evidence.iter().any(|one| one.why.contains(said)), "{message}: {plan:?}");
        assert!(plan.agents.iter().all(|agent| agent.as_str() != "hazel" && agent.as_str() != "rowan"), "{plan:?}");
    }
}

#[test]
fn what_shall_not_be_done_speaks_for_nobody() {
    let team = orchard();
    for message in [
        "Don't touch the docs and leave the tests alone: the dropdown menu overlaps the sidebar",
        "No new tests and no README changes please, only restart the containers in the deployment",
    ] {
        let plan = plan(&team, message);
        let said_for = |name: &str| plan.evidence.iter().any(|one| one.agent.as_str() == name && one.weight > 0.0);
        assert!(!said_for("sage") && !said_for("thorn"), "{plan:?}");
        assert!(said_for("fern") || said_for("flint"), "{plan:?}");
    }
}

#[test]
fn pasted_text_does_not_decide() {
    let log = "```\nERROR in docs/README.md: tests failed: unit tests, coverage\n```\n";
    let plan = plan(&orchard(), &format!("{}The dropdown menu overlaps the sidebar on the page", log.repeat(20)));
    assert_eq!(plan.agents.iter().map(Slug::as_str).collect::<Vec<_>>(), ["fern"], "{plan:?}");
}

#[test]
fn a_plan_says_why_it_has_its_tier() {
    let plan = plan(&orchard(), "Fix the endpoint of the database");
    assert!(plan.evidence.iter().any(|one| one.why.starts_with("tier standard")), "{plan:?}");
}

#[test]
fn huge_messages_are_read_in_part() {
    let team = orchard();
    for message in
        ["`a".repeat(1 << 20), "@moss, and ".repeat(1 << 17), "don't, (x) ".repeat(1 << 17), "x".repeat(1 << 22)]
    {
        let plan = plan(&team, &message);
        assert!(plan.evidence.len() < 100);
    }
}

proptest::proptest! {
    #[test]
    fn any_message_has_a_plan(message in "\\PC{0,200}", code in "[`@.,:/ \\n#'a-zé世-]{0,80}") {
        let team = orchard();
        let router = Router::new(&team, &[]);
        for text in [message.as_str(), code.as_str()] {
            let request = Request::new(text);
            let plan = router.plan(&request, &RouteOptions::default());
            proptest::prop_assert!((0.0..=1.0).contains(&plan.confidence));
            proptest::prop_assert_eq!(plan.kind == PlanKind::Agents, !plan.agents.is_empty());
            let placed: BTreeSet<&Slug> = plan.steps.iter().flatten().collect();
            proptest::prop_assert_eq!(placed, plan.agents.iter().collect());
            proptest::prop_assert_eq!(&plan, &router.plan(&request, &RouteOptions::default()));
        }
    }
}
