//! Rules whose ordinary case is tested elsewhere, here with the other value of a second variable.

use super::*;

/// What speaks for an agent.
pub(super) fn weight(team: &Team, message: &str, agent: &str) -> f64 {
    let plan = plan(team, message);
    plan.evidence.iter().filter(|one| one.agent.as_str() == agent && one.weight > 0.0).map(|one| one.weight).sum()
}

fn two(rows: &str, more: &[(&str, &str)]) -> Team {
    let team = "| Name | Role |\n|-|-|\n| Ann | Member |\n| Ben | Member |\n";
    let rows = format!("| Work Type | Route To | Examples |\n|-|-|-|\n{rows}");
    read(&[&[("team.md", team), ("routing.md", rows.as_str())], more].concat())
}

#[test]
fn one_question_is_answered_and_two_are_not() {
    let team = orchard();
    for (message, is_direct) in [
        ("Who owns the database?", true),
        ("Hello! Who owns the database?", true),
        ("Who owns the database? What's the status?", false),
        ("What's the status? Restart the containers", false),
    ] {
        assert_eq!(plan(&team, message).kind == PlanKind::Direct, is_direct, "{message}");
    }
}

#[test]
fn a_question_word_makes_no_question_of_a_statement() {
    let team = orchard();
    for message in
        ["When the page loads, the dropdown menu overlaps the sidebar", "Which button the page shows is wrong"]
    {
        let said = plan(&team, message);
        assert_eq!(said.agents.iter().map(Slug::as_str).collect::<Vec<_>>(), ["fern"], "{message}: {said:?}");
        let asked = plan(&team, &format!("{message}?"));
        assert_ne!(asked.kind, PlanKind::Agents, "{message}?: {asked:?}");
    }
}

#[test]
fn a_word_counts_once_however_often_it_is_said() {
    let team = two("| zeppelins | Ann | |\n| balloons | Ben | |\n", &[]);
    let once = weight(&team, "Mend the zeppelins", "ann");
    assert!(once > 0.0);
    assert_eq!(weight(&team, "Mend the zeppelins: zeppelins, zeppelins and zeppelins", "ann"), once);
}

#[test]
fn a_rows_first_agent_comes_before_its_second() {
    for (row, first, second) in [("Ann, Ben", "ann", "ben"), ("Ben, Ann", "ben", "ann")] {
        let team = two(&format!("| zeppelins | {row} | |\n"), &[]);
        let of = |agent| weight(&team, "Mend the zeppelins", agent);
        assert!(of(first) > of(second), "{row}: {} {}", of(first), of(second));
    }
}

/// A short row's word says more than a long row's.
#[test]
fn a_word_of_a_short_row_weighs_more() {
    let long = "zeppelins, rigs, kites, gliders, drones, blimps, rotors, wings, tails, fins";
    for (ann, ben, more) in [("zeppelins", long, "ann"), (long, "zeppelins", "ben")] {
        let team = two(&format!("| {ann} | Ann | |\n| {ben} | Ben | |\n"), &[]);
        let less = if more == "ann" { "ben" } else { "ann" };
        let of = |agent| weight(&team, "Mend the zeppelins", agent);
        assert!(of(more) > 1.5 * of(less), "{more}: {} {}", of(more), of(less));
    }
}

/// One's own name in one's history is oneself; a colleague's is the colleague.
#[test]
fn a_history_tells_what_its_owner_did() {
    let history = |who: &str| format!("# History\n\n## Learnings\n\n- {who} rebuilt the zeppelins\n");
    let of = |who: &str| {
        let team = two("| rigs | Ann | |\n| kites | Ben | |\n", &[("agents/ann/history.md", &history(who))]);
        weight(&team, "Mend the zeppelins", "ann")
    };
    assert!(of("Ann") > 0.0);
    assert_eq!(of("Ann"), of("We"));
    assert!(of("Ben") < of("Ann"), "{} {}", of("Ben"), of("Ann"));
}

#[test]
fn what_a_charter_denies_does_not_speak_for_it() {
    let charter = |line: &str| format!("# Ann — Member\n\n## What I own\n\n- {line}\n");
    let of = |line: &str| {
        let team = two("| rigs | Ann | |\n| kites | Ben | |\n", &[("agents/ann/charter.md", &charter(line))]);
        weight(&team, "Mend the zeppelins", "ann")
    };
    assert!(of("zeppelins") > 0.0);
    for line in ["I don't handle zeppelins", "Not responsible for zeppelins", "When unsure about zeppelins, ask"] {
        assert_eq!(of(line), 0.0, "{line}");
    }
}

#[test]
fn one_who_cannot_be_started_spoils_the_coordinators_choice() {
    let team = sample();
    let plan = plan(&team, "Make it better");
    for (answer, is_choice) in [
        (r#"{"agents": ["fay", "bea"]}"#, true),
        (r#"{"agents": ["fay", "mallory"]}"#, false),
        (r#"{"agents": ["mallory", "fay"]}"#, false),
        (r#"{"steps": [["fay"], ["old"]]}"#, false),
        (r#"{"steps": [["fay"], ["bea"]]}"#, true),
    ] {
        assert_eq!(choice::apply(&team, &plan, answer).is_ok(), is_choice, "{answer}");
    }
}

/// What a message begins by asking for weighs more than a word, and most where only one agent does that.
#[test]
fn a_verb_at_the_beginning_speaks_for_whoever_does_it() {
    let second = "| Name | Role |\n|-|-|\n| Ben | Backend Dev |\n| Tess | Tester |\n| Tom | Tester |\n";
    for (team, message, agent, area, is_alone) in [
        (sample(), "Document the endpoint", "doc", "documentation", true),
        (sample(), "Verify the endpoint", "tess", "testing", true),
        (sample(), "And then please verify the endpoint", "tess", "testing", true),
        (sample(), "Nobody did verify the endpoint", "tess", "testing", false),
        (read(&[("team.md", second)]), "Verify the endpoint", "tess", "testing", false),
    ] {
        let plan = plan(&team, message);
        let of = |why: String| plan.evidence.iter().find(|one| one.agent.as_str() == agent && one.why == why);
        let asked = of(format!("the message asks for {area}")).map_or(0.0, |one| one.weight);
        let alone = of(format!("the message asks for {area}, which only this agent's role covers"));
        assert_eq!(alone.map(|one| one.weight), is_alone.then_some(1.2), "{message}: {plan:?}");
        assert_eq!(asked > 0.7, !message.starts_with("Nobody"), "{message}: {plan:?}");
    }
}

/// A word that only often means an area claims it less than one that always does, and a claim without a rival is no
/// certainty.
#[test]
fn rows_claim_areas_by_how_plainly_they_name_them() {
    let of = |rows: &str, agent: &str| weight(&two(rows, &[]), "Add distributed tracing", agent);
    let rows = "| outages | Ann | |\n| monitoring | Ben | |\n";
    assert!(of(rows, "ann") > 0.0 && of(rows, "ann") < 0.5 * of(rows, "ben"), "{}", of(rows, "ann"));
    let alone = of("| outages | Ann | |\n| kites | Ben | |\n", "ann");
    assert!(alone > of(rows, "ann") && alone < of(rows, "ben"), "{alone}");
}

#[test]
fn a_charter_speaks_by_what_its_sections_and_labels_own() {
    for (text, speaks) in [
        ("## What I own\n\n- zeppelins\n", true),
        ("## What I own\n\n### Aircraft\n\n- zeppelins\n", true),
        ("## Voice\n\n### Aircraft\n\n- zeppelins\n", false),
        ("## What I don't own\n\n- zeppelins\n", false),
        ("## Voice\n\n- zeppelins\n", false),
        ("## Voice\n\n- **Expertise:** zeppelins\n", true),
        ("## What I own\n\n- **Style:** zeppelins\n", false),
        ("## What I own\n\n```\nzeppelins\n```\n", false),
    ] {
        let charter = format!("# Ann — Member\n\n{text}");
        let team = two("| rigs | Ann | |\n| kites | Ben | |\n", &[("agents/ann/charter.md", &charter)]);
        assert_eq!(weight(&team, "Mend the zeppelins", "ann") > 0.0, speaks, "{text}");
    }
}

/// A role that names a part of the product and no kind of work is a developer's of that part.
#[test]
fn whoever_is_called_after_a_part_implements_it() {
    for (role, implements) in [("Frontend", true), ("Frontend developer", true), ("Tester", false), ("Lead", false)] {
        let team = read(&[("team.md", &format!("| Name | Role |\n|-|-|\n| Ann | {role} |\n| Ben | Member |\n"))]);
        let plan = plan(&team, "Fix the crash");
        let is_asked = |one: &Evidence| one.agent.as_str() == "ann" && one.why == "the message asks for implementation";
        assert_eq!(plan.evidence.iter().any(is_asked), implements, "{role}: {plan:?}");
    }
}

#[test]
fn words_of_one_line_are_one_reason_and_weigh_together() {
    let evidence = plan(&sample(), "Fix the css layout of the button").evidence;
    let rows: Vec<&Evidence> = evidence.iter().filter(|one| one.source == ".squad/routing.md:4").collect();
    assert_eq!(rows[0].why, "routing examples: `css`, `layout` and `button`", "{evidence:?}");
    let [one, all] = ["Fix the css", "Fix the css layout of the button"].map(|it| weight(&sample(), it, "fay"));
    assert!(all > one + 2.0, "{one} {all}");
}

/// An identifier that the trade knows is one word, in the team's files as in messages.
#[test]
fn a_known_identifier_is_not_its_pieces() {
    let team = two("| JavaScript | Ann | |\n| Java | Ben | |\n", &[]);
    assert!(weight(&team, "Mend the Java", "ben") > 0.0 && weight(&team, "Mend the JavaScript", "ann") > 0.0);
    assert_eq!(weight(&team, "Mend the Java", "ann"), 0.0);
    // Its only piece of two letters is a word that tells nothing.
    let team = two("| iOS | Ann | |\n| kites | Ben | |\n", &[]);
    assert!(weight(&team, "Mend the iOS build", "ann") > 1.0);
}

#[test]
fn the_strongest_reasons_are_told_wherever_they_stand() {
    let rows: String = ["rigs", "kites", "masts", "sails", "oars", "keels", "decks", "holds", "hulls"]
        .map(|word| format!("| old {word} | Ann | |\n"))
        .concat();
    let team = two(&format!("{rows}| zeppelins | Ann | |\n| balloons | Ben | |\n"), &[]);
    let plan = plan(&team, "Mend rigs, kites, masts, sails, oars, keels, decks, holds, hulls, zeppelins");
    assert!(plan.evidence.iter().any(|one| one.why.contains("`zeppelins`")), "{plan:?}");
}

#[test]
fn a_read_only_tier_is_not_reviewed() {
    for (tier, reviewer) in [(Tier::Standard, Some("rex")), (Tier::Lightweight, None)] {
        let route_options = RouteOptions { tier: Some(tier), ..RouteOptions::default() };
        let team = sample();
        let plan = Router::new(&team, &[]).plan(&Request::new("Add an endpoint for invoices"), &route_options);
        assert_eq!(plan.reviewer.as_ref().map(Slug::as_str), reviewer, "{tier}");
    }
}

#[test]
fn six_are_on_the_shortlist_and_the_lead_is_one_of_them() {
    let message =
        "endpoints, pages, migrations, flaky tests, pipelines, secrets, guides, Android, dashboards: all of it";
    let (kind, shown) = shortlist(&gates::harbour(), message);
    let agents: BTreeSet<&String> = shown.iter().filter(|agent| *agent != "coordinator").collect();
    assert_eq!((kind, agents.len()), (PlanKind::Abstain, 6), "{shown:?}");
    assert!(shown.contains(&"anna".to_owned()), "{shown:?}");
}

#[test]
fn who_is_considered_beside_a_plan_is_not_in_it() {
    let team = gates::harbour();
    let router = Router::new(&team, &[]);
    let request = Request::new("Write unit tests for the endpoints, webhooks, migrations, pipelines, forms and guides");
    let plan = router.plan(&request, &RouteOptions::default());
    let considered = router.considered(&request, &plan);
    assert!(!considered.is_empty() && considered.len() <= CONSIDERED, "{considered:?}");
    let is_shown = |one: &Considered| plan.evidence.iter().any(|it| it.agent == one.agent);
    assert!(!considered.iter().any(is_shown), "{considered:?}");
    assert!(considered.windows(2).all(|pair| pair[0].weight >= pair[1].weight), "{considered:?}");
}

/// A name that is a word is a call only where it is written as one.
#[test]
fn a_word_that_is_a_name_is_no_call() {
    let team = read(&[("team.md", "| Name | Role |\n|-|-|\n| Will | Developer |\n| Page | Frontend developer |\n")]);
    for (message, is_called) in [("Page: align the form", true), ("page: align the form", false)] {
        let plan = plan(&team, message);
        let says = |one: &Evidence| one.why == "the message says Page";
        assert_eq!(plan.evidence.iter().any(says), is_called, "{message}: {plan:?}");
    }
}

#[test]
fn what_is_excluded_is_not_what_a_message_is_about() {
    for (message, is_about) in
        [("The flaky test of the endpoint", true), ("Don't touch the flaky test: fix the endpoint", false)]
    {
        let (team, request) = (sample(), Request::new(message));
        let router = Router::new(&team, &[]);
        let plan = router.plan(&request, &RouteOptions::default());
        let others = router.considered(&request, &plan).into_iter().flat_map(|one| one.evidence);
        let mut evidence = plan.evidence.iter().cloned().chain(others);
        let is_said = evidence.any(|one| one.why.starts_with("the message is most about testing"));
        assert_eq!(is_said, is_about, "{message}: {plan:?}");
    }
}

/// A word of a row or a role speaks for its agent also where it does not stand alone there.
#[test]
fn each_word_of_rows_and_roles_speaks() {
    let rows = two("| harbour tariffs | Ann | |\n| kites | Ben | |\n", &[]);
    let roles =
        read(&[("team.md", "| Name | Role |\n|-|-|\n| Ann | Sonar specialist |\n| Ben | Crane specialist |\n")]);
    for (team, message) in [(rows, "Mend the tariffs"), (roles, "Mend the sonar")] {
        let [ann, ben] = ["ann", "ben"].map(|agent| weight(&team, message, agent));
        assert!(ann > 0.5 && ben == 0.0, "{message}: {ann} {ben}");
    }
}

/// Where words do not tell agents apart, whoever implements is meant before others, unless it leads.
#[test]
fn whoever_implements_comes_first_of_equals() {
    for (role, first) in [("Developer", "ann"), ("Lead developer", "ben"), ("Tester", "ben")] {
        let roster = format!("| Name | Role |\n|-|-|\n| Ben | Member |\n| Ann | {role} |\n");
        let rows = "| Work Type | Route To |\n|-|-|\n| zorbs | Ben |\n| zorbs | Ann |\n";
        let team = read(&[("team.md", roster.as_str()), ("routing.md", rows)]);
        assert_eq!(shortlist(&team, "The zorbs").1[0], first, "{role}");
    }
}
