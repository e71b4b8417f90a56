//! The order that a message gives, and none where it gives none.

use super::*;

/// `bea; tess doc`: bea first, then the others side by side.
fn steps(message: &str) -> String {
    let plan = plan(&sample(), message);
    let step = |step: &Vec<Slug>| step.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    plan.steps.iter().map(step).collect::<Vec<_>>().join("; ")
}

#[test]
fn what_a_message_orders_runs_in_that_order() {
    for (message, expected) in [
        ("First @bea adds the endpoint, then @tess tests it, after that @doc documents it", "bea; tess; doc"),
        ("@bea adds the endpoint and then @tess tests it", "bea; tess"),
        ("@bea adds the endpoint. Then @tess tests it and @doc documents it.", "bea; tess doc"),
        ("@bea and @fay build the page; afterwards @tess tests it. Finally, @doc documents it", "bea fay; tess; doc"),
        ("1. @bea adds the endpoint\n2. @tess tests it\n3. @doc documents it", "bea; tess; doc"),
        ("Please:\n\n1) @bea: the endpoint\n2) @tess and @doc: tests, guide\n", "bea; tess doc"),
        ("Step 1: @bea adds the endpoint.\nStep 2: @tess tests it.", "bea; tess"),
        ("Once @bea is done with the endpoint, @tess tests it", "bea; tess"),
        ("@tess tests the page once @fay has finished it", "fay; tess"),
        ("@doc documents it after @bea and @fay, and @tess are done", "bea fay tess; doc"),
        ("After @bea adds the endpoint, @tess tests it. Then @doc documents it", "bea; tess; doc"),
        ("@bea adds the endpoint before @doc documents it", "bea; doc"),
        ("Before @doc documents it, @bea adds the endpoint", "bea; doc"),
        ("@bea adds the endpoint. Once it is merged, @doc documents it", "bea; doc"),
        ("@bea adds the endpoint; once @bea is done, @tess tests it, then @bea fixes what she finds", "bea; tess; bea"),
        ("First @bea adds the endpoint, then @tess tests what @bea built", "bea; tess"),
        ("@tess must not start before @bea is done", "bea; tess"),
        ("@tess never starts before @bea is done", "bea; tess"),
        ("@tess cannot start before @bea is done", "bea; tess"),
        ("@tess shouldn't start before @bea is done", "bea; tess"),
        ("@tess can’t start before @bea is done", "bea; tess"),
        ("First @tess writes the tests, then @bea makes them pass", "tess; bea"),
        ("Once the endpoint is done by @bea, @tess tests it", "bea; tess"),
        ("Next, @doc", "doc"),
        ("After @bea adds the endpoint, @bea and @tess test it", "bea; tess"),
        ("After @bea, @tess tests it", "bea; tess"),
        // Once a panic: a word of order in what is done.
        ("Once @bea is done after the release @tess tests it", "bea; tess"),
        ("After @bea, @fay and @tess are done, @doc documents it", "bea fay tess; doc"),
        ("1. Add the endpoint. @bea\n2. Write the tests. @tess", "bea; tess"),
        ("@bea adds the endpoint. Then: @tess tests it", "bea; tess"),
        ("@bea opens the file, then parses it, then @tess tests it", "bea; tess"),
        ("Bea, add the endpoint. Then Tess, write the tests.", "bea; tess"),
        ("Erst legt @bea den Endpunkt an, dann testet ihn @tess", "bea; tess"),
        ("Add an endpoint for invoices, then write unit tests for it", "bea; tess"),
    ] {
        assert_eq!(steps(message), expected, "{message}");
    }
}

#[test]
fn what_a_message_leaves_side_by_side_stays_so() {
    for (message, expected) in [
        ("@bea adds the endpoint and @doc documents it", "bea doc"),
        ("@bea adds the endpoint. @doc documents it.", "bea doc"),
        ("- @bea adds the endpoint\n- @doc documents it", "bea doc"),
        ("Since then @bea and @doc are on it", "bea doc"),
        ("@bea adds the endpoint and since then @doc documents it", "bea doc"),
        ("If it fails, then @bea and @tess look at it", "bea tess"),
        ("@bea and @tess: next week the release is due, look at it once a day", "bea tess"),
        ("@fay and @tess look after the page when the user clicks the button", "fay tess"),
        ("@bea: the endpoint, after the release. @doc: the guide", "bea doc"),
        ("> first @bea then @doc\n\n@bea, @doc: what does this quote mean?", "bea doc"),
        ("Add a health endpoint with tests, and document it", "bea tess doc"),
        ("@bea: open the file, then parse it. @doc: the guide", "bea doc"),
        ("@bea adds what is due next. @doc documents it", "bea doc"),
        ("1. @bea adds the endpoint\n3. @doc documents the page", "bea doc"),
        ("1. @bea adds the endpoint\n1. @doc documents the page", "bea doc"),
        ("@bea adds this:\n1. an endpoint\n2. a test\n@doc documents it", "bea doc"),
    ] {
        assert_eq!(steps(message), expected, "{message}");
    }
}

#[test]
fn an_order_that_contradicts_itself_is_the_coordinators_to_settle() {
    let plan = plan(&sample(), "@bea starts after @tess is done, and @tess after @bea is done");
    assert_eq!((plan.kind, plan.steps.len(), plan.agents.len()), (PlanKind::Abstain, 0, 0));
    assert!(plan.evidence.iter().any(|evidence| evidence.why.contains("contradicts itself")));
}

#[test]
fn who_is_named_by_the_user_works_in_the_order_of_the_message() {
    let route_options = RouteOptions { agents: vec![slug_of("doc"), slug_of("bea")], ..RouteOptions::default() };
    let message = Request::new("First @bea adds the endpoint, then @doc documents it");
    let plan = Router::new(&sample(), &[]).plan(&message, &route_options);
    assert_eq!(plan.steps, [vec![slug_of("bea")], vec![slug_of("doc")]]);
    // One at a time is not side by side.
    assert_eq!(plan.tier, Tier::Standard);
    // Of whom the message orders nothing begins at once.
    let route_options = RouteOptions { agents: ["fay", "doc", "bea"].map(slug_of).to_vec(), ..RouteOptions::default() };
    let plan = Router::new(&sample(), &[]).plan(&message, &route_options);
    assert_eq!(plan.steps, [vec![slug_of("fay"), slug_of("bea")], vec![slug_of("doc")]]);
}

fn slug_of(name: &str) -> Slug {
    Slug::fold(name).expect("a slug")
}

proptest::proptest! {
    #[test]
    fn words_of_order_and_names_always_have_a_plan(
        words in proptest::collection::vec(proptest::sample::select(&WORDS[..]), 0..24)
    ) {
        let plan = plan(&sample(), &words.join(" "));
        let placed: BTreeSet<&Slug> = plan.steps.iter().flatten().collect();
        proptest::prop_assert_eq!(placed, plan.agents.iter().collect());
    }
}

const WORDS: [&str; 30] = [
    "@bea", "@tess", "@rex", "@doc", "Tess", "Bea", "@bea's", "once", "after", "before", "then", "until", "when",
    "done", "is", "it", "first", "reviews", "reviewed", "by", "without", "and", "or", ",", ".", ":", "not", "have",
    "tests", "review",
];
