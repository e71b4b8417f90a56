//! How much is said and read, and what of it counts: each rule on both sides of its limit.

use super::pairs::weight;
use super::*;
use crate::model::{Module, Source};

fn two(rows: &str, more: &[(&str, &str)]) -> Team {
    let rows = format!("| Work Type | Route To | Examples |\n|-|-|-|\n{rows}");
    let team = "| Name | Role |\n|-|-|\n| Ann | Member |\n| Ben | Member |\n";
    read(&[&[("team.md", team), ("routing.md", rows.as_str())], more].concat())
}

/// Whom a message about files reaches, by the rows `path owner second`.
fn owner(rows: &[(&str, &str, Option<&str>)], message: &str) -> String {
    let slug = |name: &str| Slug::fold(name).expect("a slug");
    let row = |(path, primary, secondary): &(&str, &str, Option<&str>)| Module {
        path: (*path).to_owned(),
        primary: slug(primary),
        secondary: secondary.map(slug),
        source: Source::new(".squad/routing.md", 1),
    };
    let team = Team { modules: rows.iter().map(row).collect(), ..sample() };
    plan(&team, message).agents.iter().map(Slug::as_str).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_named_file_has_one_owner_or_none() {
    let rows = [("src/cli", "bea", None), ("src/zorb", "fay", None)];
    assert_eq!(owner(&rows, "`packages/x/src/cli/a.ts` swallows the second event"), "bea");
    // Two rows are in the middle of the path.
    assert_eq!(owner(&rows, "`packages/src/zorb/src/cli/a.ts` swallows the second event"), "");
    assert_eq!(owner(&rows, "Leave src/cli/b.rs as it is: rename the option in src/zorb/a.ts"), "");
    assert_eq!(owner(&rows, "Don't touch src/cli/b.rs: rename the option in src/zorb/a.ts"), "fay");
    // Where the first owner is retired, the second owns it.
    assert_eq!(owner(&[("src/cli", "old", Some("bea"))], "`src/cli/a.ts` swallows the second event"), "bea");
    assert_eq!(owner(&[("src/cli", "old", None)], "`src/cli/a.ts` swallows the second event"), "");
}

#[test]
fn the_reasons_of_a_plan_are_few_and_the_strongest_first() {
    let words = ["rigs", "kites", "masts", "sails", "oars", "keels", "decks", "holds", "hulls", "ropes", "flags"];
    let rows: String = words.iter().map(|word| format!("| {word} | Ann | |\n")).collect();
    let team = two(&format!("{rows}| balloons | Ben | |\n"), &[]);
    for count in [1, 5, 8, 11] {
        let plan = plan(&team, &format!("Mend {}", words[..count].join(", ")));
        let of_ann: Vec<f64> = plan.evidence.iter().filter(|one| one.weight > 0.0).map(|one| one.weight).collect();
        let most = if plan.kind == PlanKind::Agents { REASONS } else { REASONS_EACH };
        assert_eq!(of_ann.len(), count.min(most), "{plan:?}");
    }
    let plan = plan(&sample(), "Document the endpoint of the API in the README and the guide");
    let weights: Vec<f64> = plan.evidence.iter().filter(|one| one.weight > 0.0).map(|one| one.weight).collect();
    assert!(weights.len() > 2 && weights.windows(2).all(|pair| pair[0] >= pair[1]), "{plan:?}");
}

/// Only a row that speaks for the agent names its reviewer.
#[test]
fn the_reviewer_is_of_the_row_that_speaks() {
    let roster = "| Name | Role |\n|-|-|\n| Bea | Backend Dev |\n| Tess | Tester |\n| Rex | Reviewer |\n";
    let rows = "| Work Type | Route To |\n|-|-|\n| zorbs | Bea + Rex (review) |\n| API | Bea |\n";
    let team = read(&[("team.md", roster), ("routing.md", rows)]);
    for (message, agent, reviewer) in [
        ("Test it: unit tests, regression tests, coverage", "tess", None),
        ("Mend the zorbs", "bea", Some("rex")),
        ("Extend the API endpoint", "bea", None),
    ] {
        let plan = plan(&team, message);
        assert_eq!(plan.agents.iter().map(Slug::as_str).collect::<Vec<_>>(), [agent], "{message}");
        assert_eq!(plan.reviewer.as_ref().map(Slug::as_str), reviewer, "{message}: {plan:?}");
    }
}

#[test]
fn nobody_is_needed_only_for_bare_messages_or_where_the_user_says_so() {
    let (team, labels) = (sample(), ["ui".to_owned()]);
    let router = Router::new(&team, &[]);
    let kind = |request: &Request<'_>, tier| router.plan(request, &RouteOptions { tier, ..Default::default() }).kind;
    assert_eq!(kind(&Request::new("Thanks!"), None), PlanKind::Direct);
    assert_ne!(kind(&Request { labels: &labels, ..Request::new("Thanks!") }, None), PlanKind::Direct);
    assert_ne!(kind(&Request { paths: &labels, ..Request::new("Thanks!") }, None), PlanKind::Direct);
    assert_eq!(kind(&Request::new("Fix the css layout"), Some(Tier::Direct)), PlanKind::Direct);
    assert_eq!(kind(&Request::new("Fix the css layout"), Some(Tier::Full)), PlanKind::Agents);
}

#[test]
fn a_short_question_is_cheap() {
    for (message, tier) in [
        ("Why is the query slow?".to_owned(), Tier::Lightweight),
        ("Why is the query slow? ".repeat(6), Tier::Standard),
        ("Could you fix the query?".to_owned(), Tier::Standard),
        ("The query is slow".to_owned(), Tier::Standard),
    ] {
        assert_eq!(plan(&sample(), &message).tier, tier, "{message}");
    }
}

#[test]
fn an_abstention_is_never_sure() {
    for message in ["not @fay: the css layout of the page is broken", "Add an endpoint for invoices, reviewed by @bea"]
    {
        let plan = plan(&sample(), message);
        assert_eq!(plan.kind, PlanKind::Abstain, "{message}");
        assert!(plan.confidence < THRESHOLD, "{message}: {}", plan.confidence);
    }
}

/// The lead that an agent has counts up to a point, and the more else is said the less.
#[test]
fn words_alone_are_no_certainty() {
    let many = plan(&sample(), "Fix the css of the layout, the button, the page and the UI components");
    assert!(many.kind == PlanKind::Agents && many.confidence < 0.995, "{many:?}");
    let strange = ["zorb", "quux", "blib", "frob", "grok", "plugh", "xyzzy", "waldo"].join(" ");
    let [few, more] = ["", &strange[..]].map(|more| plan(&sample(), &format!("Fix the css {more}")).confidence);
    let half = plan(&sample(), "Fix the css zorb quux blib frob").confidence;
    assert!(few > half + 0.03 && half > more + 0.03, "{few} {half} {more}");
}

#[test]
fn whom_a_person_is_offered_is_a_short_list() {
    let nobody = Plan::default();
    let harbour = gates::harbour();
    assert_eq!(choice::candidates(&sample(), &nobody).len(), 6);
    assert_eq!(choice::candidates(&harbour, &nobody).len(), 8);
    let unsure = plan(&harbour, "endpoints and dashboards: all of it");
    let offered = choice::candidates(&harbour, &unsure);
    assert!(offered.iter().any(|slug| slug.as_str() == "jon") && offered.len() < 8, "{offered:?}");
    let chosen = choice::by_person(&harbour, &unsure, " @Jon ").expect("a choice");
    assert_eq!(chosen.agents.iter().map(Slug::as_str).collect::<Vec<_>>(), ["jon"]);
    assert!(choice::by_person(&harbour, &unsure, "mallory").is_none());
}

/// Of a long history the end is read: the newest work.
#[test]
fn old_work_is_forgotten() {
    let of = |before: usize, after: usize| {
        let filler = "- Closed the gate\n";
        let history =
            format!("## Learnings\n\n{}- Rebuilt the zeppelins\n{}", filler.repeat(before), filler.repeat(after));
        let team = two("| rigs | Ann | |\n| kites | Ben | |\n", &[("agents/ann/history.md", &history)]);
        weight(&team, "Mend the zeppelins", "ann")
    };
    assert!(of(0, 0) > 0.0);
    assert_eq!((of(1000, 0) > 0.0, of(0, 1000) > 0.0), (true, false));
}

/// What a charter says once more makes no role stronger; having done something makes no area one's own.
#[test]
fn an_area_is_claimed_by_roles_and_expertise_and_not_by_deeds() {
    let of = |more: &[(&str, &str)]| {
        let team = "| Name | Role |\n|-|-|\n| Ann | Tester |\n| Ben | Tester |\n";
        let team = read(&[&[("team.md", team)], more].concat());
        weight(&team, "The flaky assertion", "ann")
    };
    let bare = of(&[]);
    assert!(bare > 0.0);
    assert_eq!(of(&[("agents/ann/charter.md", "# Ann — Tester\n\n## Voice\n\n- kind\n")]), bare);
    let own = "# Ann — Tester\n\n## What I own\n\n- flakiness of unit tests, end to end tests, fixtures, coverage\n";
    assert!(of(&[("agents/ann/charter.md", own)]) > bare + 0.02);
    let did = "## Learnings\n\n- Wrote unit tests, end to end tests and fixtures for coverage\n".repeat(3);
    assert_eq!(of(&[("agents/ann/history.md", &did)]), bare);
}

/// Everybody implements, plans and looks things up: that only one role names it tells nothing.
#[test]
fn only_some_kinds_of_work_make_a_specialist() {
    let team = "| Name | Role |\n|-|-|\n| Ann | Developer |\n| Ben | Tester |\n| Kim | Lead |\n| Ray | Researcher |\n";
    let team = read(&[("team.md", team)]);
    for (message, is_special) in
        [("Implement the zorb", false), ("Plan the zorb", false), ("Research the zorb", false), ("Test the zorb", true)]
    {
        let plan = plan(&team, message);
        let router = Router::new(&team, &[]);
        let others = router.considered(&Request::new(message), &plan).into_iter().flat_map(|one| one.evidence);
        let mut evidence = plan.evidence.iter().cloned().chain(others);
        assert_eq!(evidence.any(|one| one.why.contains("only this agent's role")), is_special, "{message}: {plan:?}");
    }
}

#[test]
fn words_on_both_sides_of_a_slash_are_words() {
    let team = two("| export | Ann | |\n| kites | Ben | |\n", &[]);
    for (message, said) in [
        ("Mend kiosk/export", "routing row: `export`"),
        ("Mend kiosk-export", "routing row: `export`"),
        ("Mend src/kiosk/export.rs", "routing row: `src/kiosk/export.rs`"),
    ] {
        let evidence = plan(&team, message).evidence;
        assert!(evidence.iter().any(|one| one.why == said), "{message}: {evidence:?}");
    }
}

/// Parts that are one agent's name it once, and a list goes on with what it began with.
#[test]
fn an_agent_of_two_parts_is_named_once() {
    let roster = "| Name | Role |\n|-|-|\n| Ann | Developer |\n| Tess | Tester |\n";
    let rows = "| Work Type | Route To | Examples |\n|-|-|-|\n| API | Ann | endpoint |\n| Docs | Ann | guide, README |\n\
                | Testing | Tess | unit tests |\n";
    let team = read(&[("team.md", roster), ("routing.md", rows)]);
    let plan = plan(&team, "Add an API endpoint, write unit tests for it and document it in the guide");
    assert_eq!(plan.agents.iter().map(Slug::as_str).collect::<Vec<_>>(), ["ann", "tess"], "{plan:?}");
    for message in [
        "Write unit tests for the parser, the importer and the exporter",
        "Write unit tests for the parser, the zorb, the flange",
        "Write unit tests for the parser and run them",
        "Write unit tests for the parser, then fix and run them",
    ] {
        assert_eq!(agents(message).1, ["tess"], "{message}");
    }
}

/// Of several kinds of work that a message asks for, an agent's largest share counts, whichever comes first.
#[test]
fn the_kind_that_is_an_agents_most_is_what_is_asked_for() {
    let roster = "| Name | Role |\n|-|-|\n| Ann | Technical Writer |\n| Ben | Technical Writer |\n| Tess | Tester |\n";
    let rows = "| Work Type | Route To |\n|-|-|\n| unit tests | Ann |\n| kites | Ben |\n";
    let team = read(&[("team.md", roster), ("routing.md", rows)]);
    for message in ["Document the zorb. Verify the zorb", "Verify the zorb. Document the zorb"] {
        let evidence = shortlisted(&team, message);
        let of_ann: Vec<&str> =
            evidence.iter().filter(|one| one.agent.as_str() == "ann").map(|one| &*one.why).collect();
        assert!(of_ann.contains(&"the message asks for documentation"), "{message}: {evidence:?}");
    }
}

fn shortlisted(team: &Team, message: &str) -> Vec<Evidence> {
    let (router, request) = (Router::new(team, &[]), Request::new(message));
    let plan = router.plan(&request, &RouteOptions::default());
    let considered = router.considered(&request, &plan).into_iter().flat_map(|one| one.evidence);
    plan.evidence.iter().cloned().chain(considered).collect()
}

/// Of an agent's role and row about the same area, the row is shown: people look there first.
#[test]
fn an_area_is_shown_by_its_row() {
    let roster = "| Name | Role |\n|-|-|\n| Tess | Tester |\n| Ben | Member |\n";
    for (rows, said) in [
        (
            "| Work Type | Route To |\n|-|-|\n| Testing, unit tests | Tess |\n",
            "message and routing row are both about testing",
        ),
        ("| Work Type | Route To |\n|-|-|\n| kites | Tess |\n", "message and role are both about testing"),
    ] {
        let evidence = shortlisted(&read(&[("team.md", roster), ("routing.md", rows)]), "The flaky assertion");
        assert!(evidence.iter().any(|one| one.why == said), "{rows}: {evidence:?}");
    }
}
