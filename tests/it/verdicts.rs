//! Who judges, and what a verdict covers: the contents that the reviewer was shown.
//!
//! `SQUAD_PHRASINGS=2000 cargo test --test it verdicts::` plays more phrasings.

use serde_json::Value;

use crate::support::{Dice, Output, TestRepo, number_of};

/// `agent` takes these steps; each one's turns are played in order.
fn turn(agent: &str, steps: &str) -> String {
    format!("[[turn]]\nagent = \"{agent}\"\nsteps = [{steps}]\n")
}

fn writes(path: &str, text: &str) -> String {
    format!("{{ write = \"{path}\", text = \"{text}\\n\" }}, {{ say = \"Done.\" }}")
}

fn says(verdict: &str) -> String {
    format!("{{ say = \"I have looked.\\n\\nVERDICT: {verdict}\" }}")
}

fn judges(approved: bool) -> String {
    format!(
        "{{ tool = \"squad_verdict\", args = {{ approved = {approved}, reasons = \"Because.\" }} }}, {{ say = \"So.\" }}"
    )
}

fn chooses(agent: &str) -> String {
    turn("coordinator", &format!("{{ say = '{{\"agents\": [\"{agent}\"], \"reason\": \"knows it\"}}' }}"))
}

/// What a message says, so that ada does the work and rex or bob judges it.
fn play(message: &str, script: &[String]) -> (TestRepo, Output, Vec<Value>) {
    let repo = TestRepo::with_small_team();
    let output = repo.rehearse(&script.concat(), &["--permissions", "allow", "--json", message]);
    let events = TestRepo::events(&output);
    (repo, output, events)
}

fn of_type<'e>(events: &'e [Value], name: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["type"] == name).collect()
}

/// Authors, connectors, verbs and reviewers, in both orders.
fn phrasing(dice: &mut Dice) -> (String, &'static str) {
    const WORK: [&str; 4] =
        ["@ada adds the endpoint", "@ada, add the endpoint", "Ada should add the endpoint", "Add an endpoint"];
    const JOINTS: [&str; 8] =
        [", then ", "; once it is done ", ". ", ", and then ", "; when that is done, ", ". After that ", ", ", "\n\n"];
    const REVIEWS: [&str; 16] = [
        "{} reviews it",
        "{} checks it",
        "{} approves or rejects it",
        "have {} check ada's work afterwards",
        "let {} approve it",
        "ask {} to review the result",
        "{} has to sign off on it",
        "{} gives the verdict",
        "{} should look it over",
        "{} verifies the changes",
        "get a review from {}",
        "it has to be reviewed by {}",
        "it needs {}'s approval",
        "hand it to {} for review",
        "{} does the code review",
        "reviewer: {}",
    ];
    const BEFORE: [&str; 6] = [
        "{} reviews it after ada is done: ",
        "Reviewed by {}: ",
        "{} reviews what comes of this. ",
        "With {} as reviewer, ",
        "Once ada is done, {} reviews it. ",
        "I want {} to review the result. ",
    ];
    let (reviewer, names) = [("rex", ["@rex", "Rex"]), ("bob", ["@bob", "@Bob"])][dice.below(2)];
    let (name, work) = (names[dice.below(2)], WORK[dice.below(WORK.len())]);
    let message = match dice.below(3) {
        0 => format!("{}{work}", BEFORE[dice.below(BEFORE.len())].replace("{}", name)),
        _ => {
            let review = REVIEWS[dice.below(REVIEWS.len())].replace("{}", name);
            format!("{work}{}{review}", JOINTS[dice.below(JOINTS.len())])
        }
    };
    (message, reviewer)
}

#[test]
fn what_a_reviewer_rejects_never_succeeds_however_it_is_asked() {
    let mut dice = Dice(34);
    for _ in 0..number_of("SQUAD_PHRASINGS", 60) {
        let (message, reviewer) = phrasing(&mut dice);
        let verdict = if dice.below(2) == 0 { says("rejected") } else { judges(false) };
        let script = [
            turn("ada", &writes("api.txt", "endpoint")),
            turn(reviewer, &verdict),
            chooses("nobody"),
            turn("coordinator", "{ say = \"It was rejected.\" }"),
        ];
        let (_, output, events) = play(&message, &script);
        assert_eq!(output.code, 1, "{message}\n{output}");
        let plan = of_type(&events, "route.planned")[0];
        assert_eq!((&plan["agents"], &plan["reviewer"]), (&serde_json::json!(["ada"]), &reviewer.into()), "{message}");
        let verdicts: Vec<&Value> =
            of_type(&events, "review.verdict").into_iter().map(|event| &event["verdict"]).collect();
        assert_eq!(verdicts, ["rejected"], "{message}\n{output}");
        let place = |name: &str, agent: &str| {
            events.iter().position(|event| event["type"] == name && event["agent"] == agent).expect(name)
        };
        assert!(place("agent.completed", "ada") < place("session.created", reviewer), "{message}");
        // A reviewer has no tool that writes, and is not given one.
        assert_eq!(of_type(&events, "review.lockout")[0]["files"], serde_json::json!(["api.txt"]), "{message}");
    }
}

#[test]
fn a_rejection_in_a_report_fails_the_run_whoever_writes_it() {
    let script = [turn("ada", &writes("api.txt", "endpoint")), turn("bob", &says("rejected"))];
    let (_, output, _) = play("@ada adds the endpoint, then @bob tests it", &script);
    assert_eq!(output.code, 1, "{output}");
    assert!(output.out.contains("bob rejects the work in its report"), "{output}");
}

#[test]
fn a_review_of_what_is_there_reads_only_and_its_rejection_fails_the_run() {
    for (verdict, code) in [(judges(true), 0), (judges(false), 1), (says("rejected"), 1), (says("approved"), 0)] {
        let script = [turn("rex", &format!("{{ write = \"a.txt\", text = \"x\" }}, {verdict}"))];
        let (repo, output, events) = play("@rex, review the diff of main", &script);
        assert_eq!(output.code, code, "{output}");
        assert!(!repo.exists("a.txt") && of_type(&events, "tool.denied").len() == 1, "{output}");
        assert_eq!(of_type(&events, "review.verdict").len(), 1, "{output}");
        assert_eq!(of_type(&events, "review.lockout").len(), 0, "{output}");
    }
}

#[test]
fn all_reviewers_that_the_message_names_have_to_approve() {
    let message = "@ada adds the endpoint, reviewed by @bob and @rex";
    // Who comes after one that does not approve is not asked.
    for (first, second, code, judged) in [
        (judges(true), judges(true), 0, 2),
        (judges(true), judges(false), 1, 2),
        (judges(true), says("unclear"), 1, 2),
        (says("unclear"), judges(true), 1, 1),
        (judges(false), judges(true), 1, 1),
    ] {
        let script = [turn("ada", &writes("api.txt", "endpoint")), turn("bob", &first), turn("rex", &second)];
        let (_, output, events) = play(message, &[&script[..], &[chooses("nobody")]].concat());
        assert_eq!((output.code, of_type(&events, "review.verdict").len()), (code, judged), "{output}");
    }
}

#[test]
fn what_follows_a_review_waits_for_its_approval() {
    let message = "@ada adds the endpoint, then @rex reviews it, then @bob tests it";
    for (verdict, code, tests) in [(judges(true), 0, true), (says("unclear"), 1, false)] {
        let script = [
            turn("ada", &writes("api.txt", "endpoint")),
            turn("rex", &verdict),
            turn("bob", &writes("tests.txt", "tests")),
        ];
        let (repo, output, events) = play(message, &script);
        assert_eq!((output.code, repo.exists("tests.txt")), (code, tests), "{output}");
        assert_eq!(of_type(&events, "agent.skipped").len(), usize::from(!tests), "{output}");
    }
}

/// A review of what is there comes first: what it finds is for those who come after it. Each verdict.
#[test]
fn what_follows_a_review_of_what_is_there_is_done() {
    for (verdict, code) in [(judges(true), 0), (judges(false), 1), (says("unclear"), 1)] {
        let script = [turn("rex", &verdict), turn("bob", &writes("tests.txt", "tests"))];
        let (repo, output, events) = play("First @rex reviews the diff of main, then @bob adds tests", &script);
        assert_eq!((output.code, repo.exists("tests.txt")), (code, true), "{output}");
        assert_eq!(of_type(&events, "agent.skipped").len(), 0, "{output}");
        assert_eq!(of_type(&events, "review.verdict").len(), 1, "{output}");
    }
}

/// ada's work is rejected; bob is to revise it; then it is approved.
fn revised(revision: &str) -> (TestRepo, Output, Vec<Value>) {
    let script = [
        turn("ada", &writes("login.txt", "plain")),
        turn("rex", &judges(false)),
        chooses("bob"),
        turn("bob", revision),
        turn("rex", &judges(true)),
        turn("coordinator", "{ say = \"That is all.\" }"),
    ];
    play("@ada reworks login.txt, then @rex reviews it", &script)
}

#[test]
fn an_approval_of_the_rejected_content_does_not_count() {
    for revision in [
        "{ tool = \"squad_remember\", args = { text = \"It is fine.\" } }, { say = \"It is fine as it is.\" }"
            .to_owned(),
        writes("other.txt", "beside it"),
        writes("login.txt", "plain"),
    ] {
        let (repo, output, events) = revised(&revision);
        assert_eq!(output.code, 1, "{output}");
        assert_eq!(events.last().expect("an end")["status"], "failed");
        assert!(output.out.contains("login.txt did not change since it was rejected"), "{output}");
        // The lockout and `why` say the same.
        let again =
            repo.rehearse(&turn("ada", &writes("login.txt", "mine")), &["--permissions", "allow", "Add an endpoint"]);
        assert!(again.err.contains("rejected your work on login.txt"), "{again}");
        let why = repo.squad(&["why", "login.txt"]);
        assert!(why.out.contains("rex: rejected") && !why.out.contains("approved"), "{why}");
    }
}

/// Whoever only says that it is fine has revised nothing, so nobody reviews it again.
#[test]
fn a_revision_that_is_only_claimed_leaves_the_rejection() {
    let (_, output, events) = revised("{ say = \"It is fine as it is.\" }");
    let end = events.last().expect("an end");
    assert_eq!((output.code, &end["status"], &end["agents"]["bob"]), (1, &"failed".into(), &"claimed".into()));
}

#[test]
fn a_verdict_records_the_contents_that_were_shown() {
    let (repo, output, events) = revised(&writes("login.txt", "hashed"));
    assert_eq!(output.code, 0, "{output}");
    let verdicts = of_type(&events, "review.verdict");
    assert_eq!(verdicts.len(), 2);
    for (verdict, text) in verdicts.into_iter().zip(["plain\n", "hashed\n"]) {
        repo.write("copy.txt", text);
        let id = repo.git(&["hash-object", "copy.txt"]);
        assert_eq!(verdict["contents"], serde_json::json!({ "login.txt": id.trim() }));
    }
    // The last line does not hide it, and the log neither.
    let run = events[0]["run"].as_str().expect("an id");
    let log = repo.squad(&["log", run]);
    assert!(log.out.contains("✓ completed after 1 rejection in "), "{log}");
}

/// A commit on a branch that is not checked out.
fn commits_aside(text: &str) -> String {
    let git = format!(
        "git checkout -q side || git checkout -q -b side; echo '{text}' > side.txt; git add side.txt; git commit -qm work; git checkout -q main"
    );
    format!("{{ run = \"{git}\" }}, {{ say = \"Done.\" }}")
}

/// What the branch holds × the verdict.
#[test]
fn a_verdict_covers_commits_on_another_branch() {
    for approved in [true, false] {
        let script =
            [turn("ada", &commits_aside("fn on_the_side() {}")), turn("rex", &judges(approved)), chooses("nobody")];
        let (repo, output, events) = play("@ada adds the endpoint, then @rex reviews it", &script);
        assert_eq!(output.code, u8::from(!approved), "{output}");
        repo.write("copy.txt", "fn on_the_side() {}\n");
        let id = repo.git(&["hash-object", "copy.txt"]);
        let verdict = of_type(&events, "review.verdict")[0];
        assert_eq!(verdict["aside"], serde_json::json!({ "side.txt": [id.trim()] }), "{output}");
        let locked: Vec<&Value> = of_type(&events, "review.lockout").iter().map(|event| &event["files"]).collect();
        let files = serde_json::json!(["side.txt"]);
        assert_eq!(locked, if approved { vec![] } else { vec![&files] }, "{output}");
        repo.git(&["merge", "--quiet", "side"]);
        let word = if approved { "rex: approved" } else { "rex: rejected" };
        for subject in ["side.txt", "side.txt:1"] {
            let why = repo.squad(&["why", subject]);
            assert!(why.out.contains(word), "{why}");
        }
        repo.write("side.txt", "fn on_the_side() { backdoor() }\n");
        let why = repo.squad(&["why", "side.txt"]);
        assert!(!why.out.contains("rex: "), "{why}");
    }
}

/// Revisions of rejected work on a branch × whether the branch still holds what was rejected.
#[test]
fn a_rejection_stands_as_long_as_a_branch_has_what_was_rejected() {
    let done = |run: &str| format!("{{ run = \"{run}\" }}, {{ say = \"Done.\" }}");
    for (revision, code) in [
        (writes("other.txt", "beside it"), 1),
        (writes("side.txt", "revised"), 1),
        (commits_aside("fn revised() {}"), 0),
        (done("git branch -D side; echo revised > side.txt"), 0),
        (done("git branch -m side better"), 1),
        (done("git update-ref refs/squad/aside/side side; git branch -D side"), 1),
        (done("git update-ref refs/squad/runs/a/1 side; git branch -D side"), 1),
    ] {
        let script = [
            turn("ada", &commits_aside("fn on_the_side() {}")),
            turn("rex", &judges(false)),
            chooses("bob"),
            turn("bob", &revision),
            turn("rex", &judges(true)),
            turn("coordinator", "{ say = \"That is all.\" }"),
        ];
        let (_, output, events) = play("@ada adds the endpoint, then @rex reviews it", &script);
        assert_eq!(of_type(&events, "review.verdict").len(), 2, "{revision}: {output}");
        assert_eq!(output.code, code, "{revision}: {output}");
        let says = output.out.contains("side.txt did not change since it was rejected");
        assert_eq!(says, code == 1, "{revision}: {output}");
    }
}

#[test]
fn an_approval_ends_with_the_content_that_it_is_about() {
    let script = [turn("ada", &writes("api.txt", "fn health_of_the_service() {}")), turn("rex", &judges(true))];
    let (repo, output, _) = play("@ada adds the endpoint, then @rex reviews it", &script);
    assert_eq!(output.code, 0, "{output}");
    let why = |subject: &str| repo.squad(&["why", subject]).out;
    assert!(
        why("api.txt:1").contains("rex: approved") && why("api.txt").contains("rex: approved"),
        "{}",
        why("api.txt")
    );
    // A person's later change beside the line.
    repo.write("api.txt", "fn health_of_the_service() {}\nfn backdoor_of_the_person() {}\n");
    for subject in ["api.txt:1", "api.txt"] {
        let said = why(subject);
        assert!(!said.contains("approved") && said.contains("of earlier content"), "{said}");
    }
    // Back to what was approved.
    repo.write("api.txt", "fn health_of_the_service() {}\n");
    assert!(why("api.txt:1").contains("rex: approved"), "{}", why("api.txt:1"));
}

#[test]
fn a_checkpoint_of_another_tool_is_shown() {
    let repo = TestRepo::with_small_team();
    repo.write("api.txt", "fn health_of_the_service() {}\n");
    repo.git(&["add", "--all"]);
    let trailers = "Signed-off-by: Ann <ann@example.com>\nEntire-Checkpoint: 4f1c09d2";
    repo.git(&["commit", "--quiet", "--message", &format!("endpoint\n\nIt says so.\n\n{trailers}\n")]);
    let why = repo.squad(&["why", "api.txt:1"]);
    assert!(why.out.contains("Entire-Checkpoint 4f1c09d2") && !why.out.contains("Signed-off"), "{why}");
    let json: Value = serde_json::from_str(&repo.squad(&["why", "api.txt:1", "--json"]).out).expect("JSON");
    assert_eq!(json["commit"]["checkpoints"], serde_json::json!(["Entire-Checkpoint: 4f1c09d2"]));
}
