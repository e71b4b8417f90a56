use super::*;
use crate::parse::{Files, team};
use crate::route::{Request, RouteOptions, Router};

/// A team whose slugs are also common words, and one with names.
fn teams() -> [Team; 2] {
    let read = |rows: &str| {
        let text = format!("| Name | Role | Status |\n|-|-|-|\n{rows}");
        let routing = "| Work Type | Route To | Examples |\n|-|-|-|\n\
                       | API, server | Backend | endpoint, database query |\n\
                       | API, server | Bea | endpoint, database query |\n";
        let texts = [("team.md".to_owned(), text), ("routing.md".to_owned(), routing.to_owned())];
        team(&Files { folder: ".squad".to_owned(), texts: texts.into_iter().collect() }).0
    };
    [
        read(
            "| Backend | Backend engineer | Active |\n| Docs | Technical writer | Active |\n\
              | Tester | Test engineer | Active |\n| Reviewer | Code reviewer | Active |\n",
        ),
        read(
            "| Bea | Backend Dev | Active |\n| Doc | Technical Writer | Active |\n\
              | Tess | Tester | Active |\n| Rex | Code Reviewer | Active |\n",
        ),
    ]
}

/// `bea; doc | rex tess`: the steps, and the reviewers.
fn planned(team: &Team, message: &str) -> String {
    let plan = Router::new(team, &[]).plan(&Request::new(message), &RouteOptions::default());
    let names = |agents: Vec<&Slug>| agents.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let steps: Vec<String> = plan.steps.iter().map(|step| names(step.iter().collect())).collect();
    format!("{} | {}", steps.join("; "), names(plan.reviewers().collect()))
}

#[test]
fn whoever_reviews_is_the_reviewer() {
    let [words, names] = teams();
    for (message, expected) in [
        ("@backend adds the endpoint, then @reviewer reviews it", "backend | reviewer"),
        ("@backend adds the endpoint; once it is done @reviewer reviews it", "backend | reviewer"),
        ("@backend adds the endpoint; have tester check backend's work afterwards", "backend | tester"),
        ("Add an endpoint for invoices and have tester check backend's work afterwards", "backend | tester"),
        ("Add an endpoint for invoices, reviewed by @reviewer", "backend | reviewer"),
        ("Add an endpoint for invoices, reviewed by reviewer", "backend | reviewer"),
        ("@backend adds the endpoint, reviewed by @tester and @reviewer", "backend | tester reviewer"),
        ("@reviewer reviews it after @backend has added the endpoint", "backend | reviewer"),
        ("@backend adds the endpoint, let reviewer approve it", "backend | reviewer"),
        ("Reviewed by @reviewer: add an endpoint for invoices", "backend | reviewer"),
        ("Reviewed by @tester, add an endpoint for invoices", "backend | tester"),
        ("With @tester's approval: add an endpoint for invoices", "backend | tester"),
        ("Reviewers: @tester. Add an endpoint for invoices", "backend | tester"),
        ("@backend adds the endpoint. @reviewer has the final say.", "backend | reviewer"),
        ("@backend adds the endpoint with @reviewer as reviewer", "backend | reviewer"),
        ("@backend adds the endpoint and hands it to @tester for review", "backend | tester"),
        ("@backend and @docs: add the endpoint. @tester signs off on it.", "backend docs | tester"),
        ("1. @backend adds the endpoint\n2. @reviewer reviews it", "backend | reviewer"),
        ("Once @backend is done, @tester and @reviewer review it", "backend | tester reviewer"),
        ("@reviewer reviews what @backend adds", "backend | reviewer"),
        ("Before merging, get approval from @reviewer. @backend adds the endpoint.", "backend | reviewer"),
        ("@backend adds the endpoint, which @reviewer should look over carefully", "backend | reviewer"),
        ("@backend adds the endpoint and @docs documents it after @reviewer's approval", "backend docs | reviewer"),
        ("@backend adds the endpoint, then @reviewer says whether it is good", "backend | reviewer"),
        ("@backend adds the endpoint, I want feedback from @reviewer", "backend | reviewer"),
        ("@backend adds the endpoint, then get @reviewer's opinion", "backend | reviewer"),
        ("@backend adds the endpoint; ask for comments from @tester", "backend | tester"),
        ("@backend adds the endpoint. Get a second opinion from @tester.", "backend | tester"),
        ("@backend adds the endpoint. No merge without @reviewer.", "backend | reviewer"),
        ("Add an endpoint for invoices. Don't merge it without @tester's ok.", "backend | tester"),
        ("@backend adds the endpoint, then @tester gives a thumbs up", "backend | tester"),
        ("@backend adds the endpoint. Never merge without @reviewer and @tester.", "backend | reviewer tester"),
        ("@backend adds the endpoint, don't merge without @reviewer and @tester's ok", "backend | reviewer tester"),
        ("Fix the endpoint, @backend, then @reviewer and @tester must sign off", "backend | reviewer tester"),
        ("No merge without @reviewer — no merge without @tester. @backend adds it.", "backend | reviewer tester"),
        // The role alone.
        ("@backend adds the endpoint, @reviewer gives feedback", "backend | reviewer"),
        ("@backend adds the endpoint, then @reviewer makes sure it is right", "backend | reviewer"),
        ("@backend adds the endpoint, dann schaut @reviewer darauf", "backend | reviewer"),
        ("@backend adds the endpoint. @reviewer: be strict.", "backend | reviewer"),
        // In the middle, and before the work.
        (
            "@backend adds the endpoint, then @reviewer reviews it, then @docs documents it",
            "backend; reviewer; docs | reviewer",
        ),
        ("First @reviewer reviews the module, then @backend fixes what it found", "reviewer; backend | reviewer"),
        // Of what is there already.
        ("@reviewer, review the diff of main", "reviewer | reviewer"),
        ("@reviewer: please review my branch", "reviewer | reviewer"),
    ] {
        assert_eq!(planned(&words, message), expected, "{message}");
    }
    for (message, expected) in [
        ("Bea, add the endpoint. Rex, review it.", "bea | rex"),
        ("Add an endpoint for invoices. Rex reviews it.", "bea | rex"),
        ("@bea adds the endpoint; Tess checks the result", "bea | tess"),
    ] {
        assert_eq!(planned(&names, message), expected, "{message}");
    }
}

/// Every work with every joint, and every way to ask for a review of it.
#[test]
fn the_reviewer_is_found_in_any_phrasing() {
    const WORKS: [&str; 4] = [
        "@bea adds the endpoint",
        "have @bea implement the endpoint",
        "Let Bea add the endpoint",
        "Please add an endpoint for invoices",
    ];
    const JOINTS: [&str; 7] =
        ["\n\n", ". After that ", ", then ", "; once it is done ", ". ", " and ", "; when bea is done, "];
    const REVIEWS: [&str; 46] = [
        "{} approves or rejects it",
        "{} has to sign off on it",
        "{} gives the verdict",
        "{} should look it over",
        "{} verifies the changes",
        "get a review from {}",
        "it has to be reviewed by {}",
        "it needs {}'s approval",
        "hand it to {} for review",
        "{} does the code review",
        "{} double-checks it",
        "{} is the reviewer",
        "{} must give the ok",
        "with sign-off from {}",
        "pending approval by {}",
        "{} will be reviewing it",
        "{} goes through the changes",
        "{} does a review",
        "make sure {} reviews it",
        "get {} to review it",
        "have it checked by {}",
        "{} to review",
        "review: {}",
        "subject to {}'s approval",
        "{} audits it",
        "{} examines bea's work",
        "wait for {} to approve",
        "{} takes a look at it",
        "{} inspects what bea did",
        "I'd like {} to check bea's work",
        "{} validates the result",
        "the review is done by {}",
        "{} judges it",
        "cc {} for review",
        "{} signs it off",
        "assign {} as the reviewer",
        "{} reviews everything",
        "{} reviews",
        "{} approves",
        "review by {}",
        "{} checks",
        "{} confirms the work",
        "{} can review it",
        "{} is asked to review it",
        "{} performs the final check",
        "let {} approve it",
    ];
    let [_, names] = teams();
    for (work, joint) in WORKS.iter().flat_map(|work| JOINTS.map(|joint| (work, joint))) {
        for (reviewer, name) in [("rex", "@rex"), ("tess", "@tess"), ("rex", "Rex"), ("tess", "tess")] {
            for review in REVIEWS.map(|review| review.replace("{}", name)) {
                let message = format!("{work}{joint}{review}");
                assert_eq!(planned(&names, &message), format!("bea | {reviewer}"), "{message}");
            }
        }
    }
}

#[test]
fn other_work_is_no_review() {
    let [words, names] = teams();
    for (message, expected) in [
        ("@backend adds the endpoint, then @tester tests it", "backend; tester | "),
        ("@backend adds the endpoint, then @tester checks the logs of the nightly build", "backend; tester | "),
        ("@backend adds the endpoint, then @tester reviews it and adds the missing tests", "backend; tester | "),
        ("@backend adds the endpoint and @docs documents it", "backend docs | "),
        ("@backend adds the endpoint, @reviewer writes the guide for reviewers", "backend reviewer | "),
        ("Fix the endpoint, @backend — @reviewer writes tests and reviews it", "backend reviewer | "),
        ("@backend addresses @reviewer's review comments", "backend | "),
        ("@backend apply the feedback from @reviewer", "backend | "),
        ("@backend addresses the comments from @reviewer", "backend | "),
        ("@backend address @reviewer's comments", "backend | "),
        ("@backend adds the endpoint as in @reviewer's feedback", "backend | "),
        ("@backend adds the endpoint, with a fix for @tester's review comments", "backend | "),
        ("@backend adds the endpoint, @tester reviews it. Then @tester adds the tests", "backend tester; tester | "),
        ("First @reviewer sets up the sandbox, then @backend adds the endpoint", "reviewer; backend | "),
        ("First @reviewer goes to the sandbox, then @backend adds the endpoint", "reviewer; backend | "),
        ("@backend adds the endpoint without @reviewer", "backend | "),
        ("@backend adds the endpoint, then @docs gives the page a new header", "backend; docs | "),
        ("@backend adds the endpoint, without a review by @tester", "backend | "),
        ("@backend adds the endpoint that was never reviewed by @tester", "backend tester | "),
        ("Add an endpoint for invoices with docs, review the endpoint", "backend docs | reviewer"),
        ("@backend adds the endpoint, then @tester should look at the flaky test", "backend; tester | "),
        ("@backend adds the endpoint, then ask @tester to check whether it works", "backend; tester | "),
        ("@backend adds the endpoint, then @tester should look it up", "backend; tester | "),
        ("@backend adds the endpoint, then @reviewer makes a check box", "backend; reviewer | "),
        ("First @backend starts it, then @docs looks", "backend; docs | "),
        ("@backend makes sure that comments by @reviewer are addressed", "backend | "),
        ("@tester checks the build", "tester | "),
        ("@docs, review the README", "docs | "),
        ("@reviewer writes a guide", "reviewer | "),
    ] {
        assert_eq!(planned(&words, message), expected, "{message}");
    }
    assert_eq!(planned(&names, "@bea adds the endpoint as @rex said"), "bea | ");
    // Whose role is more than reviewing works beside the others.
    for (role, expected) in
        [("Code Reviewer", "bea | rex"), ("Lead and reviewer", "bea rex | "), ("Lead / Reviewer", "bea rex | ")]
    {
        let mut team = names.clone();
        team.members
            .iter_mut()
            .filter(|member| member.slug.as_str() == "rex")
            .for_each(|rex| rex.role = role.to_owned());
        assert_eq!(planned(&team, "@bea and @rex: the endpoint"), expected, "{role}");
    }
    // Whoever reviews work does not do it.
    assert_eq!(planned(&names, "Add an endpoint for invoices, reviewed by @bea"), " | bea");
}
