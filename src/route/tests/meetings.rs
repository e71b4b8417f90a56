//! Meetings that become steps of a plan, and those that are left to people.

use super::*;
use crate::model::{Ceremony, CeremonyTiming, Source};

fn meeting(facilitator: &str, when: &str) -> Ceremony {
    Ceremony {
        name: format!("{facilitator} {when}"),
        facilitator: Slug::fold(facilitator),
        trigger: "auto".to_owned(),
        when: when.to_owned(),
        condition: "multi-agent task".to_owned(),
        agenda: Vec::new(),
        enabled: true,
        source: Source::new(".squad/ceremonies.md", 1),
    }
}

/// `lead; bea fay | rex`: the steps with their meetings, then why others are left to people.
fn held(ceremonies: Vec<Ceremony>, message: &str, tier: Option<Tier>) -> String {
    let team = Team { ceremonies, ..sample() };
    let mut plan = Router::new(&team, &[]).plan(&Request::new(message), &RouteOptions { tier, ..Default::default() });
    ceremonies::add(&team, &mut plan, message);
    let step = |step: &Vec<Slug>| step.iter().map(Slug::as_str).collect::<Vec<_>>().join(" ");
    let steps = plan.steps.iter().map(step).collect::<Vec<_>>().join("; ");
    let left = plan.evidence.iter().filter_map(|one| one.why.split_once("left to people: ").map(|(_, why)| why));
    format!("{steps} | {}", left.collect::<Vec<_>>().join(", "))
}

#[test]
fn a_meeting_is_a_step_before_or_after_the_work() {
    const WORK: &str = "@bea adds the endpoint, then @fay adds the page";
    for (ceremonies, message, tier, expected) in [
        (vec![meeting("lead", "before")], WORK, None, "lead; bea; fay | "),
        (vec![meeting("lead", "after")], WORK, None, "bea; fay; lead | "),
        (vec![meeting("lead", "after"), meeting("doc", "before")], WORK, None, "doc; bea; fay; lead | "),
        (vec![meeting("lead", "before"), meeting("doc", "before")], WORK, None, "lead; doc; bea; fay | "),
        // Whoever works there anyway needs no step.
        (vec![meeting("bea", "before")], WORK, None, "bea; fay | "),
        (vec![meeting("bea", "after")], WORK, None, "bea; fay; bea | "),
        // The same meeting twice is one.
        (vec![meeting("lead", "before"), meeting("lead", "before")], WORK, None, "lead; bea; fay | "),
        (vec![meeting("lead", "before")], "@bea adds the endpoint", None, "bea | "),
        (vec![meeting("lead", "before")], WORK, Some(Tier::Lightweight), "bea; fay | tier lightweight"),
        (vec![meeting("old", "before")], WORK, None, "bea; fay | nobody who can be started facilitates it"),
        (
            vec![meeting("rex", "after")],
            "@bea adds the endpoint, @fay adds the page, @rex reviews it",
            None,
            "bea fay | rex reviews the work",
        ),
        (
            vec![meeting("lead", "before")],
            "@bea adds the endpoint, then @fay adds the page, not @lead",
            None,
            "bea; fay | the message rules lead out",
        ),
        (vec![Ceremony { enabled: false, ..meeting("lead", "before") }], WORK, None, "bea; fay | "),
        (vec![Ceremony { trigger: "manual".to_owned(), ..meeting("lead", "before") }], WORK, None, "bea; fay | "),
        (
            vec![Ceremony { condition: "schema change".to_owned(), ..meeting("lead", "before") }],
            WORK,
            None,
            "bea; fay | squad cannot tell whether it is due",
        ),
    ] {
        let names: Vec<String> = ceremonies.iter().map(|one| one.name.clone()).collect();
        assert_eq!(held(ceremonies, message, tier), expected, "{names:?}: {message}");
    }
}

#[test]
fn a_plan_holds_four_meetings_and_says_what_it_leaves() {
    let all = ["lead", "doc", "tess", "rex", "fay", "bea"];
    let meetings = all.iter().map(|name| meeting(name, "before")).collect();
    let text = held(meetings, "@bea adds the endpoint, then @fay adds the page", None);
    assert_eq!(text, "lead; doc; tess; rex; bea; fay | 4 others are held, 4 others are held");
    let mut plan = plan(&sample(), "@bea adds the endpoint, then @fay adds the page");
    let team = Team { ceremonies: vec![meeting("lead", "before"), meeting("doc", "after")], ..sample() };
    ceremonies::add(&team, &mut plan, "");
    let planned: Vec<_> = plan.ceremonies.iter().map(|one| (one.when, one.step)).collect();
    assert!(
        matches!(planned[..], [(CeremonyTiming::Before, Some(1)), (CeremonyTiming::After, Some(4))]),
        "{planned:?}"
    );
    assert_eq!(plan.agents.iter().map(Slug::as_str).collect::<Vec<_>>(), ["bea", "fay", "lead", "doc"]);
}
