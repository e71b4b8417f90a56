//! Who is called, who is only spoken of, and what words are taken for work.

use super::pairs::weight;
use super::*;

fn weight_of(message: &str, agent: &str) -> f64 {
    weight(&sample(), message, agent)
}

#[test]
fn who_is_spoken_of_is_not_called() {
    for (message, called) in [
        ("@fay fix the layout as @bea suggested", &["fay"][..]),
        ("not @bea - @fay please, the endpoint", &["fay"]),
        ("cc @bea — Fay, the query is slow", &["fay"]),
        ("the endpoint is slow, do it as @tess said", &["bea"]),
        ("cc @tess: the css layout of the page is broken", &["fay"]),
        ("cc @endpoint: the css layout of the page is broken", &["fay"]),
        ("per @rex and @tess, the css layout of the page has to go", &["fay"]),
        ("@tess's idea for the css layout of the page: build it", &["fay"]),
        ("do it as @bea said", &[]),
        ("not @fay: the css layout of the page is broken", &[]),
        ("@bea and @fay: agree on the page. Not @bea", &["fay"]),
        ("@bea add the endpoint, and have it reviewed by @rex", &["bea"]),
        ("Bea and Fay, please pair on it", &["bea", "fay"]),
        ("Can Bea check it in the evening?", &["bea"]),
        ("I'd like Tess to look at it", &["tess"]),
        ("@fay请画大一点", &["fay"]),
        ("请@fay画大一点", &["fay"]),
        ("Can Bea components be blue?", &[]),
        ("Bea, Fay and Tess: agree on the page", &["bea", "fay", "tess"]),
        ("Bea, css and layout of the page are broken", &["fay"]),
        ("Bea's should go: the css layout of the page", &["fay"]),
        ("Team page has a broken css layout", &["fay"]),
        ("@bea said that the css layout of the page is broken", &["fay"]),
        ("Bea can wait: the css layout of the page is broken", &["fay"]),
        ("Can you fix the css layout of the page? Bea could not", &["fay"]),
    ] {
        assert_eq!(agents(message).1, called, "{message}");
    }
}

#[test]
fn a_word_that_only_describes_a_thing_asks_for_no_work() {
    for (message, not) in [
        ("the document preview component renders blank", "doc"),
        ("the approve button on the expense page does nothing", "rex"),
        ("the review queue worker crashes on startup", "rex"),
    ] {
        assert!(!agents(message).1.contains(&not.to_owned()), "{message}: {:?}", agents(message));
    }
    assert_eq!(agents("the flaky test in CI").1, ["tess"]);
    assert_eq!(agents("document the preview in the guide").1, ["doc"]);
}

#[test]
fn what_of_a_long_message_is_not_read_is_said() {
    let plan = plan(&sample(), &format!("Fix the button on the page. {}", "word ".repeat(20_000)));
    assert!(plan.evidence.iter().any(|one| one.why.ends_with("66 KiB in its middle were not read")), "{plan:?}");
}

#[test]
fn lines_of_a_log_are_not_the_users_words() {
    for line in [
        "2026-11-02T10:00:01 flaky unit tests",
        "[10:00:01] flaky unit tests",
        "ERROR flaky unit tests",
        "> flaky unit tests",
        "- [ ] flaky unit tests",
        "<!-- flaky unit tests -->",
        "<!-- flaky\nunit tests -->",
        "at Importer.run(importer.js:7) flaky unit tests",
        "## Steps to reproduce\n\nflaky unit tests\n\n## Problem\n",
    ] {
        let plan = plan(&sample(), &format!("{line}\nThe css layout of the page is broken"));
        assert_eq!(plan.agents.iter().map(Slug::as_str).collect::<Vec<_>>(), ["fay"], "{line}: {plan:?}");
        assert!(plan.evidence.iter().all(|one| !one.why.contains("flaky")), "{line}: {plan:?}");
    }
}

#[test]
fn abbreviations_have_plurals() {
    let evidence = plan(&sample(), "Query the APIs of the server").evidence;
    assert!(evidence.iter().any(|one| one.why.contains("`API`")), "{evidence:?}");
}

#[test]
fn what_is_ruled_out_is_not_started() {
    for (message, not) in [
        ("skip the tests, just fix the query of the endpoint", "tess"),
        ("I don't want tests, I want the endpoint fixed", "tess"),
        ("rather than the README, fix the endpoint", "doc"),
        ("everything but the README: rename the endpoint", "doc"),
        ("Update the endpoint only, not the README or the guide", "doc"),
        ("nicht das README anfassen, nur den endpoint", "doc"),
    ] {
        assert!(!agents(message).1.contains(&not.to_owned()), "{message}: {:?}", agents(message));
    }
    assert_eq!(weight_of("Fix the endpoint without touching the README or the guide", "doc"), 0.0);
    // And what is left to be done is not.
    let evidence = plan(&sample(), "Don't change anything but the button on the page").evidence;
    assert!(evidence.iter().any(|one| one.why.contains("`button`") && one.weight > 0.0), "{evidence:?}");
    assert_eq!(agents("instead of the endpoint, change the button on the page").1, ["fay"]);
}

#[test]
fn what_the_roster_says_beside_the_role_speaks_for_a_member() {
    let team = read(&[(
        "team.md",
        "## Members\n\n| Name | Role | Specialization | Charter |\n|-|-|-|-|\n\
         | Mia | Engineer | sonar arrays, hydrophones | agents/mia/charter.md |\n\
         | Udo | Engineer | winches | Keeps cranes and davits going |\n",
    )]);
    for (message, agent, line) in [("Calibrate the hydrophones", "mia", 5), ("Grease the cranes and davits", "udo", 6)]
    {
        let evidence = plan(&team, message).evidence;
        let speaks = |one: &Evidence| {
            one.agent.as_str() == agent && one.source == format!(".squad/team.md:{line}") && one.weight > 0.0
        };
        assert!(evidence.iter().any(speaks), "{message}: {evidence:?}");
        assert!(evidence.iter().all(|one| one.weight <= 0.0 || one.agent.as_str() == agent), "{message}: {evidence:?}");
    }
}

#[test]
fn a_name_that_nobody_has_is_told_where_it_begins_a_sentence_or_is_like_one() {
    let team = sample();
    let router = Router::new(&team, &[]);
    for (message, expected) in [
        ("@quentin fix the css layout", Some(("quentin", None))),
        ("the @Override in the css layout", None),
        ("fix the css layout, @beaa", Some(("beaa", Some("bea")))),
        ("@bea fix the css layout", None),
        ("@team fix the css layout", None),
    ] {
        let expected = expected.map(|(name, near): (&str, Option<&str>)| (name.to_owned(), near.map(str::to_owned)));
        assert_eq!(router.mistyped(message), Vec::from_iter(expected), "{message}");
    }
}

#[test]
fn what_only_looks_like_a_denial_or_a_form_is_read() {
    for message in [
        "No idea why the css layout of the page is broken",
        "Without a session the css layout of the start page is broken on small phones",
        "### Fix the css layout of the page",
        "# The css layout of the page is broken\n\nSee above.",
    ] {
        assert_eq!(agents(message).1, ["fay"], "{message}");
    }
}

#[test]
fn a_call_of_somebody_who_cannot_be_started_makes_less_sure() {
    let [of_nobody, of_old] =
        ["", "@old "].map(|call| plan(&sample(), &format!("{call}adjust the css layout")).confidence);
    assert!(of_old < 0.9 * of_nobody, "{of_old} {of_nobody}");
}
