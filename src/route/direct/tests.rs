use super::*;

use crate::parse::{Files, team};

fn sample() -> Team {
    let roster = "| Name | Role |\n|-|-|\n| Ada | Backend Dev |\n| Bob | Tester |\n";
    team(&Files { folder: ".squad".to_owned(), texts: [("team.md".to_owned(), roster.to_owned())].into() }).0
}

fn read(message: &str) -> Option<Question> {
    Question::read(message, &sample())
}

#[test]
fn pleasantries_are_returned() {
    for message in ["Hi", "hello team!", "Good morning, everyone.", "Hey Ada, how are you?", "¡Hola!"] {
        assert_eq!(read(message), Some(Question::Greeting), "{message}");
    }
    for message in ["Thanks!", "thank you so much, Bob", "Hi all. Thanks for the great work!"] {
        assert_eq!(read(message), Some(Question::Thanks), "{message}");
    }
}

#[test]
fn what_goes_on_is_asked_in_many_ways() {
    for message in [
        "status",
        "What's going on?",
        "what is happening right now?",
        "Hi team! What happened last?",
        "How did the last run go?",
        "any updates?",
        "What are you working on?",
        "who is working on what?",
    ] {
        assert_eq!(read(message), Some(Question::Status), "{message}");
    }
    for message in ["Which runs were there?", "list the last runs", "what ran today?"] {
        assert_eq!(read(message), Some(Question::Runs), "{message}");
    }
}

#[test]
fn the_team_and_its_members_are_asked_for() {
    for message in [
        "Who is on the team?",
        "who's on this squad",
        "list the agents",
        "Who are you?",
        "What can you do?",
        "How many agents are there?",
    ] {
        assert_eq!(read(message), Some(Question::Team), "{message}");
    }
    for message in ["Who is Ada?", "what does ada do?", "Tell me about Ada", "What is Ada's role?"] {
        assert_eq!(
            read(message).map(|question| format!("{question:?}")),
            Some("Member(Slug(\"ada\"))".to_owned()),
            "{message}"
        );
    }
}

#[test]
fn work_is_asked_for_by_its_name() {
    for (message, topic) in [
        ("Who handles the API?", "api"),
        ("who is responsible for the login form", "login form"),
        ("Can you tell me who owns src/api please", "src/api"),
        ("Which agent writes the docs?", "writes the docs"),
        ("Who do I ask about CI?", "ci"),
        ("Who should I ask about migrations?", "migrations"),
    ] {
        assert_eq!(read(message), Some(Question::Handler(topic.to_owned())), "{message}");
    }
    for message in ["Who can fix the flaky test?", "Who should review migrations?", "Who broke the build?"] {
        assert_eq!(read(message), None, "{message}");
    }
}

#[test]
fn decisions_are_asked_for_by_topic() {
    for (message, topic) in [
        ("What did we decide about error handling?", "error handling"),
        ("what was decided on money", "money"),
        ("Is there a decision on the API?", "api"),
        ("what was decided about v1.2?", "v1.2"),
        ("list our decisions", ""),
        ("What are the latest decisions?", ""),
        ("what auth decisions are there?", "auth"),
        ("Have we decided to use Postgres yet?", "use postgres"),
    ] {
        assert_eq!(read(message), Some(Question::Decisions(topic.to_owned())), "{message}");
    }
}

#[test]
fn what_squad_does_not_understand_is_left_to_the_coordinator() {
    for message in [
        "",
        "?",
        "How many people are on this squad, and what stack do we use?",
        "Where does the design doc live?",
        "Decide on a database",
        "Hello, fix the login",
        "What is the status of the login form?",
        "Who is Mallory?",
        "Is it decided? And who does it?",
        "Thanks, now fix the tests",
        "What happened to the parser?",
        "Update the docs",
        "What can the parser do?",
        "work",
    ] {
        assert_eq!(read(message), None, "{message}");
    }
    assert_eq!(read(&"who handles it ".repeat(40)), None);
}

proptest::proptest! {
    #[test]
    fn any_message_is_read(message in "\\PC{0,80}") {
        let _ = read(&message);
    }

    #[test]
    fn any_words_are_read(words in proptest::collection::vec("(who|what|is|the|decided|decisions|ada|ada's|about|which|agent|runs|hi|do|x|can|you)", 0..8)) {
        let _ = read(&words.join(" "));
    }
}

/// They look like small talk or like questions that files answer.
const ARE_WORK: [&str; 42] = [
    "hello world example crashes on Windows",
    "The hello endpoint returns 404",
    "Say hello to new users on the start page",
    "Greeting emails are sent twice",
    "Add a thank-you page after checkout",
    "Thanks, but the button is still misaligned",
    "Good morning! The nightly build is red",
    "Hi Milo, the queue drops jobs",
    "Hey, quick one: rename the column to exposure_id",
    "status bar is broken",
    "The status endpoint returns 500",
    "Add a status page to the docs",
    "status code 418 is not handled",
    "Show the status of each exposure in the table",
    "Update the status label colours",
    "What's the status code for an empty queue? It should be 204",
    "who wrote this bug? fix it",
    "Find out who calls this function and remove it",
    "Who can fix the flaky test in the parser?",
    "Who broke the build? Please revert it",
    "Make a list of who owns which module in CODEOWNERS",
    "whoami prints the wrong user in the container",
    "Write down what we decided about ids in the README",
    "Decide on a database and write it up",
    "Implement the decision about error codes",
    "The decision table has a wrong rule for night mode",
    "Document our decisions on logging",
    "What would it take to support dark mode?",
    "Where does the memory go when the star map is open?",
    "Which tests are missing for the parser?",
    "Which queries are slow and why?",
    "When I click the dialog twice it freezes",
    "When does the retry loop give up? It seems to run forever",
    "How many requests per second can the API take? Measure it",
    "Is the deployment pipeline done twice for each tag? Look into it",
    "Team page shows retired members",
    "List exposures by date in the API",
    "Show the roster on the team page",
    "Remind users by e-mail before the session ends",
    "Where is the leak in the importer?",
    "Which license headers are missing in src?",
    "Is the release script still broken after the merge?",
];

#[test]
fn work_that_looks_like_talk_is_work() {
    let roster = "| Name | Role |\n|-|-|\n| Milo | Backend Dev |\n| Grace | Tester |\n| Penn | Writer |\n";
    let team =
        team(&Files { folder: ".squad".to_owned(), texts: [("team.md".to_owned(), roster.to_owned())].into() }).0;
    for message in ARE_WORK {
        assert_eq!(super::read(&team, &Names::of(&team), message), None, "{message}");
    }
}
