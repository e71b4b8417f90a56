//! What routing has to reach on messages and teams of the project's own making.

use super::*;

/// One agent alone would leave a part of these undone.
#[test]
fn a_list_is_not_swallowed_by_one_agent() {
    for message in [
        "README for the invoices, plus unit tests for the export",
        "An endpoint for invoices and smoke tests that start it",
        "Unit tests and a guide for the database query",
        "Add an endpoint for tags, test it and document it",
        "A css layout for the page, an endpoint for the form",
        "Add a migration for tags; show them as a button on the page",
        "Change the layout of the start page, including a guide for it",
        "Add the endpoint with unit tests",
        "Write the guide and cover the importer with unit tests",
        "Add an API query for orders, a page that lists them and unit tests",
    ] {
        let plan = plan(&sample(), message);
        assert_ne!(plan.agents.len(), 1, "{message}: {plan:?}");
    }
}

#[test]
fn nobody_is_started_for_a_question_or_for_nothing() {
    for message in [
        "Why does the endpoint return 500?",
        "Which tests cover the importer?",
        "What is the css layout of the start page based on?",
        "Does the API server cache database queries?",
        "Where do we keep the migrations?",
        "Is the flaky test fixed?",
        "How many endpoints do we have?",
        "Remind me what the coverage was",
        "Who wrote the guide?",
        "help",
        "make it better",
        "please fix it",
        "improve things",
        "Is it done?",
    ] {
        for team in [sample(), orchard()] {
            let plan = plan(&team, message);
            assert!(plan.kind != PlanKind::Agents && plan.agents.is_empty(), "{message}: {plan:?}");
        }
    }
    // An order in the form of a question is one.
    assert_eq!(agents("Could you fix the css layout of the page?").1, ["fay"]);
    assert_eq!(agents("Can someone please look at the flaky test?").1, ["tess"]);
}

#[test]
fn a_decision_is_the_leads_or_the_coordinators() {
    for message in [
        "Should the API server use one database or two?",
        "Decide how the endpoint and the page share their types",
        "Compare css modules with plain css for the page layout",
        "Plan the migration of the database",
        "We have two css layouts. Which should we keep?",
    ] {
        let plan = plan(&sample(), message);
        assert!(plan.agents.iter().all(|agent| agent.as_str() == "lead"), "{message}: {plan:?}");
        assert!(plan.agents.len() == 1 || plan.evidence.iter().any(|one| one.agent.as_str() == "lead"), "{plan:?}");
    }
}

#[test]
fn the_whole_team_is_started_only_when_somebody_confirms_it() {
    for message in ["Team, introduce yourselves", "@everyone: read the new plan", "Everyone, update your history"] {
        let plan = plan(&sample(), message);
        assert_eq!((plan.kind, plan.agents.len()), (PlanKind::Abstain, 6), "{message}: {plan:?}");
    }
    for message in ["Hey team, can someone look at the flaky test?", "Team, could you fix the flaky test please"] {
        assert_eq!(agents(message).1, ["tess"], "{message}");
    }
    // Six agents of the full tier too; but whoever names them has decided.
    let all = "@lead @bea @fay @tess @doc @rex rework it with the premium model";
    assert_eq!(plan(&sample(), all).kind, PlanKind::Abstain);
    assert_eq!(plan(&sample(), &all.replace(" with the premium model", "")).kind, PlanKind::Agents);
    assert_eq!(plan(&sample(), "@bea @fay rework it with the premium model").tier, Tier::Full);
    let of_one = read(&[("team.md", "| Name | Role |\n|-|-|\n| Ada | Developer |\n")]);
    let alone = plan(&of_one, "Team, fix the parser");
    assert_eq!((alone.kind, alone.agents.len()), (PlanKind::Agents, 1));
}

#[test]
fn a_team_of_one_is_not_unsure_of_work() {
    let team = read(&[("team.md", "| Name | Role |\n|-|-|\n| Ada | Developer |\n")]);
    for message in ["Fix the login form", "upgrade tokio to 1.54", "Write a README", "The zorbs frobnicate twice"] {
        assert_eq!(plan(&team, message).agents.len(), 1, "{message}");
    }
    for message in ["help", "Why is the build slow?"] {
        assert_ne!(plan(&team, message).kind, PlanKind::Agents, "{message}");
    }
}

/// Nobody could say whose these are, or whether anything is to be done.
const AMBIGUOUS: [&str; 21] = [
    "Make it feel more polished",
    "It should be faster",
    "Users complain",
    "Clean this up",
    "Something is off since Friday",
    "We need to get better at this",
    "Fix the thing from yesterday",
    "Quality is too low",
    "Errors are bad",
    "Have a look at the feedback",
    "Do what we talked about",
    "This does not work",
    "Go on",
    "Take care of the rest",
    "More of the same, please",
    "It feels slow and looks odd",
    "Polish everything",
    "There is a problem with the last change",
    "Improve the project",
    "Get it ready for Monday",
    "The customer is unhappy with it",
];

#[test]
fn what_could_be_anybodys_is_nobodys() {
    for team in [sample(), orchard(), harbour()] {
        let is_started = |message: &&&str| plan(&team, message).kind == PlanKind::Agents;
        let started: Vec<&&str> = AMBIGUOUS.iter().filter(is_started).collect();
        assert!(100 * started.len() <= 15 * AMBIGUOUS.len(), "{started:?}");
    }
}

/// Ten members whose trades overlap.
pub(super) fn harbour() -> Team {
    read(&[
        (
            "team.md",
            "| Name | Role |\n|-|-|\n| Anna | Tech lead |\n| Ben | Backend developer |\n| Cleo | Frontend developer |\n\
             | Dan | Database engineer |\n| Edda | QA engineer |\n| Finn | DevOps engineer |\n| Gwen | Security engineer |\n\
             | Hugo | Technical writer |\n| Ines | Mobile developer |\n| Jon | Data engineer |\n",
        ),
        (
            "routing.md",
            "| Work Type | Route To | Examples |\n|-|-|-|\n| Architecture | Anna | module boundaries, roadmap |\n\
             | API | Ben | endpoints, berth booking, webhooks |\n| Web | Cleo | pages, map of the quay, forms |\n\
             | Schema | Dan | migrations, slow queries |\n| Quality | Edda | unit tests, flaky tests |\n\
             | Delivery | Finn | pipelines, containers, releases |\n| Security | Gwen | login, secrets, audits |\n\
             | Docs | Hugo | README, guides |\n| App | Ines | iOS, Android, push messages |\n\
             | Reports | Jon | ETL, warehouse, dashboards |\n",
        ),
    ])
}

#[test]
fn a_few_words_too_many_or_too_strange_are_never_a_sure_guess() {
    let none = read(&[("team.md", "| Name | Role |\n|-|-|\n| Ann | |\n| Bob | |\n"), ("routing.md", "")]);
    let hollow = read(&[
        ("team.md", "| Name | Role |\n|-|-|\n| Ann | Member |\n| Bob | Member |\n"),
        ("routing.md", "| Work Type | Route To | Examples |\n|-|-|-|\n| the | Ann | and, of |\n| a | Bob | — |\n"),
    ]);
    for team in [none, hollow] {
        for message in ["the", "Fix it", "Rename Foo.Bar.Baz", "ログイン画面を直して", "Añade una página", "and of the"]
        {
            assert_eq!(plan(&team, message).kind, PlanKind::Abstain, "{message}");
        }
    }
    // A name that is a word.
    let team = read(&[("team.md", "| Name | Role |\n|-|-|\n| Will | Developer |\n| Page | Frontend developer |\n")]);
    assert_ne!(plan(&team, "Will it rain on every page?").kind, PlanKind::Agents);
    let rows: String = (0..500).map(|number| format!("| A{number} | Engineer {number} |\n")).collect();
    let crowd = read(&[("team.md", &format!("| Name | Role |\n|-|-|\n{rows}"))]);
    let crowded = plan(&crowd, "Fix the login form");
    assert_eq!(crowded.kind, PlanKind::Abstain);
    assert!(crowded.evidence.len() < 40);
}

/// One identifier of an old note is one reason, and work that was done counts more than a name in passing.
#[test]
fn a_history_teaches_once_and_by_what_was_done() {
    let team = read(&[
        ("team.md", "| Name | Role |\n|-|-|\n| Ada | Developer |\n| Bob | Developer |\n"),
        ("agents/ada/history.md", "## Learnings\n\n- Renamed Foo.Bar.Baz in the importer\n- Rebuilt the zorb cache\n"),
        ("agents/bob/history.md", "## Team\n\n- Ada rebuilds the zorb cache, Foo.Bar.Baz is hers\n"),
    ]);
    let plan = plan(&team, "Rename Foo.Bar.Baz in the zorb cache");
    assert_eq!(plan.agents.iter().map(Slug::as_str).collect::<Vec<_>>(), ["ada"], "{plan:?}");
    let of_name: Vec<_> = plan.evidence.iter().filter(|one| one.why.contains("Foo.Bar.Baz")).collect();
    assert_eq!(of_name.len(), 1, "{plan:?}");
}
