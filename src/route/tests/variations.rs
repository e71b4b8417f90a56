//! What people and forms put around a message must not change whom it reaches: the same plan, or an abstention.
//!
//! The gate for whoever adds to the router. The messages are the project's own; figures on real teams are measured
//! outside, on teams that nobody has tuned for.

use super::*;

const MESSAGES: [&str; 22] = [
    "Add an endpoint for invoices",
    "The migration drops a column that the API still reads",
    "The database query behind the order list takes four seconds",
    "The button on the start page is misaligned",
    "Let the css layout of the settings page wrap on phones",
    "The flaky test in the importer fails every third run",
    "Write unit tests for the session store",
    "Document the export in the guide",
    "The README still names the old package",
    "Restart the containers of the deployment when a pipeline is done",
    "The orchard map does not show the newest trees",
    "Should we split the importer into a service or keep the monolith?",
    "Harvest queries return rows of last year",
    "Explain in a guide how harvest queries work, for people who are new",
    "The lint job is red on every pull request, look at the workflow file",
    "Cover the edge cases of the harvest parser",
    "Add a query to the endpoint and put a button with its layout on the page",
    "Export invoices: an endpoint of the API, and a button on the page",
    "Make it better",
    "Quarterly figures",
    "Is it done?",
    "Rename it everywhere",
];

const BUG: &str = "**Describe the bug**\n{}\n\n**To Reproduce**\nSteps to reproduce the behavior:\n1. Go to '...'\n\
    2. Click on '....'\n3. See error\n\n**Expected behavior**\nA clear and concise description of what you expected to \
    happen.\n\n**Screenshots**\nIf applicable, add screenshots to help explain your problem.\n\n**Desktop (please \
    complete the following information):**\n - OS: [e.g. iOS]\n - Browser [e.g. chrome, safari]\n\n**Additional \
    context**\nAdd any other context about the problem here.\n";
const FEATURE: &str = "**Is your feature request related to a problem? Please describe.**\nA clear and concise \
    description of what the problem is.\n\n**Describe the solution you'd like**\n{}\n\n**Describe alternatives you've \
    considered**\nA clear and concise description of any alternative solutions.\n";
const FORM: &str = "### Is there an existing issue for this?\n\n- [X] I have searched the existing issues\n\n### What \
    happened?\n\n{}\n\n### Steps to reproduce\n\n_No response_\n\n### Version\n\n1.2.0\n\n### What browsers are you \
    seeing the problem on?\n\nFirefox, Chrome\n\n### Relevant log output\n\n```shell\n\n```\n";
const CHECKS: &str = "## Summary\n\n{}\n\n## Type of change\n\n- [ ] Bug fix\n- [ ] Documentation update\n\n## \
    Checklist\n\n- [ ] I have added tests\n- [x] I have updated the docs\n";
const COMMENT: &str = "<!--\nThanks for the report! Search the documentation first, and attach a failing test\nor a \
    screenshot of the page.\n-->\n{}\n";
const LOG: &str = "{}\n\n```\n2026-11-02 10:00:01 ERROR docs/README.md: tests failed: unit tests, coverage\n   at \
    Page.render (/var/www/html/page.js:1:2)\n```\n";

/// What stands around a message; `{}` is the message.
const AROUND: [(&str, &str); 16] = [
    ("a problem's heading", "### Describe the problem\n\n{}"),
    ("a template for bugs", BUG),
    ("a template for features", FEATURE),
    ("a form", FORM),
    ("check boxes", CHECKS),
    ("a comment", COMMENT),
    ("a greeting", "Hi team, {}"),
    ("a polite beginning", "Hello everyone! Could you please have a look at this? {}"),
    ("thanks", "{}. Thanks a lot!"),
    ("a report", "A customer wrote: \"{}\""),
    ("a quotation above", "> Did anybody update the docs of the new page yet?\n\n{}"),
    ("a log below", LOG),
    ("a denial before", "This is not a security problem: {}"),
    ("a denial after", "{}. No need to touch the translations."),
    ("a copy", "cc @iris @rex: {}"),
    ("somebody's word", "As @rex said: {}"),
];

#[test]
fn what_stands_around_a_message_changes_nothing() {
    let mut lost = Vec::new();
    for (team, (how, around)) in [sample(), orchard()].iter().flat_map(|team| AROUND.map(|around| (team, around))) {
        for message in MESSAGES {
            lost.extend(changed(team, message, &around.replace("{}", message)).map(|got| format!("{how}: {got}")));
        }
    }
    assert_few(&lost, 2 * AROUND.len() * MESSAGES.len());
}

#[test]
fn how_a_message_is_written_changes_nothing() {
    let mut lost = Vec::new();
    for team in [sample(), orchard()] {
        for message in MESSAGES {
            let quoted: String = message.split('\n').map(|line| format!("> {line}\n")).collect();
            let twice = format!("{message}\n\n{message}");
            for written in [message.to_lowercase(), message.to_uppercase(), format!("  {message}\n"), quoted, twice] {
                lost.extend(changed(&team, message, &written));
            }
            lost.extend(
                (0..message.len()).step_by(7).filter_map(|at| changed(&team, message, &mistyped(message, at)?)),
            );
        }
    }
    assert_few(&lost, 2 * MESSAGES.len() * 12);
}

/// Two letters of a word that have changed places.
fn mistyped(message: &str, at: usize) -> Option<String> {
    let pair: Vec<char> = message.get(at..at + 2)?.chars().collect();
    let [first, second] = pair[..] else { return None };
    (first.is_lowercase() && second.is_lowercase())
        .then(|| format!("{}{second}{first}{}", &message[..at], &message[at + 2..]))
}

/// The other plan that a variation has, unless it abstains.
fn changed(team: &Team, message: &str, varied: &str) -> Option<String> {
    let (before, after) = (plan(team, message), plan(team, varied));
    let is_kept = after.kind == PlanKind::Abstain || (before.kind, &before.agents) == (after.kind, &after.agents);
    (!is_kept).then(|| format!("{message}: {:?} became {:?} in {varied:?}", before.agents, after.agents))
}

/// What DESIGN asks for is that nearly all are kept.
fn assert_few(lost: &[String], all: usize) {
    assert!(lost.len() * 50 <= all, "{} of {all} are lost:\n{}", lost.len(), lost.join("\n"));
}
