use expect_test::expect;
use serde_json::Value;

use crate::support::{Output, TestRepo};

fn json(output: &Output) -> Value {
    serde_json::from_str(&output.out).expect(&output.out)
}

#[test]
fn a_plan_is_a_page() {
    let repo = TestRepo::with_small_team();
    expect![[r#"
        ada works on it, then rex reviews; tier standard, confidence 0.96
          routing examples: `login` and `password` (.squad/routing.md:7); --explain: all
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["route", "Fix the login password check"]).to_string());
    expect![[r#"
        not sure: nothing names anyone's work, so the coordinator would choose from ada, bob and rex
          squad orchestrate -a ada "Make it better"
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["route", "Make it better"]).to_string());
    expect![[r#"
        bob works on it; tier lightweight, confidence 1.00
          named with --agent (command line); --explain: all
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["route", "--agent", "bob", "--tier", "lightweight", "Make it better"]).to_string());
    assert_eq!(repo.squad(&["log"]).out, "", "nobody was started and nothing recorded");
}

#[test]
fn explaining_shows_everything_there_is() {
    let repo = TestRepo::with_small_team();
    let plan = json(&repo.squad(&["route", "--json", "cover the login endpoint with unit tests"]));
    let output = repo.squad(&["route", "--explain", "cover the login endpoint with unit tests"]);
    let evidence = plan["evidence"].as_array().expect("evidence");
    assert!(!evidence.is_empty());
    for evidence in evidence {
        let shown = format!("  {}", evidence["source"].as_str().expect("a source"));
        assert!(
            output.out.contains(evidence["why"].as_str().expect("a reason")) && output.out.contains(&shown),
            "{output}"
        );
    }
    let of_plan = output.out.lines().take_while(|line| *line != "Also considered:");
    assert_eq!(of_plan.filter(|line| line.starts_with("  ")).count(), evidence.len(), "{output}");
}

#[test]
fn explaining_shows_who_else_was_considered() {
    let repo = TestRepo::with_small_team();
    let message = "Fix the login password check, the quality of the server is poor";
    expect![[r#"
        ada works on it, then rex reviews; tier standard, confidence 0.94

        Why:
          ada            3.85  routing examples: `login` and `password`        .squad/routing.md:7
                         1.92  routing row: `server`                           .squad/routing.md:5
                         1.54  the message asks for implementation             .squad/team.md:5
                         0.92  message and role are both about implementation  .squad/team.md:5
          coordinator    0.00  tier standard: work to do                       message

        Also considered:
          bob    2.22  in total, of which:
                 2.22  message and routing row are both about testing  .squad/routing.md:6
          rex    0.92  in total, of which:
                 0.92  message and role are both about review          .squad/team.md:7
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["route", "--explain", message]).to_string());
    let plan = json(&repo.squad(&["route", "--json", "--explain", message]));
    let considered = plan["considered"].as_array().expect("a list");
    let is_another = |one: &Value| one["agent"] != plan["agents"][0] && one["weight"].as_f64() > Some(0.0);
    assert!(!considered.is_empty() && considered.iter().all(is_another), "{plan}");
}

#[test]
fn edge_cases_of_all_kinds_are_routed_but_for_these() {
    let repo = TestRepo::empty();
    for (path, text) in OBSERVATORY {
        repo.write(&format!(".squad/{path}"), text);
    }
    repo.write("cases.jsonl", include_str!("../../fixtures/routing/cases.jsonl"));
    let report = json(&repo.squad(&["route", "--json", "--eval", "cases.jsonl"]));
    let predictions = report["predictions"].as_array().expect("a list");
    let mistakes: Vec<String> = predictions
        .iter()
        .filter(|prediction| !prediction["mistake"].is_null())
        .map(|prediction| format!("{}: {}\n", prediction["mistake"], prediction["message"]))
        .collect();
    expect![[r#"
        6 of 72 wrong:
        "not_answered": "@scribe the README says the wrong port, correct it"
        "not_answered": "Bump @milo/buttons, the components of the web pages need it"
        "not_answered": "Leave the pipeline alone and write unit tests for the exposure parser"
        "not_answered": "Team, introduce yourselves"
        "not_answered": "@everyone read the new plan and say what is missing"
        "not_answered": "请修复网页按钮的布局和样式"
    "#]]
    .assert_eq(&format!("{} of {} wrong:\n{}", mistakes.len(), predictions.len(), mistakes.concat()));
}

const OBSERVATORY: [(&str, &str); 8] = [
    ("team.md", include_str!("../../fixtures/routing/team.md")),
    ("routing.md", include_str!("../../fixtures/routing/routing.md")),
    ("agents/nora/charter.md", include_str!("../../fixtures/routing/agents/nora/charter.md")),
    ("agents/milo/charter.md", include_str!("../../fixtures/routing/agents/milo/charter.md")),
    ("agents/page/charter.md", include_str!("../../fixtures/routing/agents/page/charter.md")),
    ("agents/grace/charter.md", include_str!("../../fixtures/routing/agents/grace/charter.md")),
    ("agents/will/charter.md", include_str!("../../fixtures/routing/agents/will/charter.md")),
    ("agents/penn/charter.md", include_str!("../../fixtures/routing/agents/penn/charter.md")),
];

#[test]
fn the_json_contract_holds() {
    let repo = TestRepo::with_small_team();
    let plan = json(&repo.squad(&["route", "--json", "Fix the login password check"]));
    let keys: Vec<&String> = plan.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["kind", "agents", "steps", "reviewer", "tier", "confidence", "evidence"]);
    assert_eq!(
        (&plan["kind"], &plan["agents"][0], &plan["reviewer"]),
        (&"agents".into(), &"ada".into(), &"rex".into())
    );
    let keys: Vec<&String> = plan["evidence"][0].as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["agent", "why", "source", "weight"]);
    let plan = json(&repo.squad(&["route", "--json", "--", "--xyzzy"]));
    assert_eq!((&plan["kind"], &plan["agents"]), (&"abstain".into(), &serde_json::json!([])));
}

#[test]
fn labels_and_paths_count() {
    let repo = TestRepo::with_small_team();
    repo.write(
        ".squad/routing.md",
        "| Label | Action | Who |\n|---|---|---|\n| `flaky` | Fix the test | Bob |\n\n\
         | Module | Primary | Secondary |\n|---|---|---|\n| `src/api/` | Ada | Bob |\n",
    );
    let agents = |arguments: &[&str]| json(&repo.squad(arguments))["agents"].to_string();
    assert_eq!(agents(&["route", "--json", "--label", "flaky"]), "[\"bob\"]");
    assert_eq!(agents(&["route", "--json", "--path", "src/api/login.rs", "It hangs"]), "[\"ada\"]");
    // As somebody types it who stands elsewhere in the project.
    repo.write("src/api/login.rs", "");
    let inside = repo.root().join("src/api");
    let output = repo.squad_in(&inside, &["route", "--json", "--path", "./login.rs", "It hangs"]);
    assert_eq!(json(&output)["agents"].to_string(), "[\"ada\"]");
}

#[test]
fn misuse_and_unusable_teams_have_their_exit_codes() {
    let mut repo = TestRepo::with_small_team();
    for arguments in [
        &["route"][..],
        &["route", " "],
        &["route", "--agent", "mallory", "x"],
        &["route", "--tier", "odd", "x"],
        &["route", "--stdin", "x"],
        &["route", "--eval", "missing.jsonl"],
        &["route", "--eval", "-", "--stdin"],
    ] {
        assert_eq!(repo.squad(arguments).code, 2, "{arguments:?}");
    }
    repo.input = "Fix the login\n";
    assert_eq!(json(&repo.squad(&["route", "--json", "-"]))["agents"][0], "ada");
    assert_eq!(TestRepo::empty().squad(&["route", "x"]).code, 3);
}

#[test]
fn nothing_in_a_message_or_a_team_reaches_the_terminal_as_it_is() {
    let repo = TestRepo::with_small_team();
    repo.write(
        ".squad/routing.md",
        "| Work Type | Route To | Examples |\n|---|---|---|\n| Serv\u{1b}[31mer | Ada | end\u{202e}point \u{1b}]0;x\u{7} |\n",
    );
    let output = repo.squad(&["route", "--explain", "\u{1b}[2J endpoint \u{202e} server"]);
    assert_eq!(output.code, 0);
    assert!(!output.out.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{output:?}", output = output.out);
}

const CASES: &str = r#"{"message":"Add an endpoint for invoices","kind":"single","agent":"ada","accept":["ada"]}
{"message":"Raise the coverage of the parser","kind":"single","accept":["ada"]}
{"message":"Quarterly figures","kind":"single","accept":["bob","rex"]}
{"message":"An endpoint, and unit tests for it","kind":"multi","accept":["ada","bob"],"all":true}
{"message":"Make it better","kind":"ambiguous","accept":[]}
{"message":"The coverage again","kind":"ambiguous"}
"#;

#[test]
fn cases_are_scored_and_mistakes_grouped() {
    let repo = TestRepo::with_small_team();
    repo.write("cases.jsonl", CASES);
    expect![[r#"
           3 single     accuracy 33.3%, coverage 66.7%, precision 50.0%
           1 multi      recall 100.0%
           2 ambiguous  abstained 50.0%

        If routing only answered from this confidence up:
          0.89  coverage  66.7%  precision  50.0%
          0.96  coverage  33.3%  precision 100.0%

        The wrong agent (1)
          bob, .squad/routing.md:6: routing examples: `coverage` (1 case)
            cases.jsonl:2  wanted ada, got bob: Raise the coverage of the parser

        Abstained, and need not have (1)
          no evidence for any other agent (1 case)
            cases.jsonl:3  wanted bob or rex: Quarterly figures

        Answered, and should have abstained (1)
          bob, .squad/routing.md:6: routing examples: `coverage` (1 case)
            cases.jsonl:6  got bob: The coverage again
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["route", "--eval", "cases.jsonl"]).to_string());
    let report = json(&repo.squad(&["route", "--json", "--eval", "cases.jsonl"]));
    let keys: Vec<&String> = report.as_object().expect("an object").keys().collect();
    assert_eq!(
        keys,
        [
            "counts",
            "accuracy",
            "coverage",
            "precision",
            "multi_recall",
            "abstain_rate",
            "direct_rate",
            "curve",
            "mistakes",
            "predictions"
        ]
    );
    assert_eq!((&report["direct_rate"], &report["abstain_rate"]), (&Value::Null, &0.5.into()));
    assert_eq!(report["predictions"].as_array().map(Vec::len), Some(6));
    assert_eq!(report["predictions"][0]["plan"]["agents"][0], "ada");
}

#[test]
fn bad_cases_are_no_figures() {
    let mut repo = TestRepo::with_small_team();
    repo.input = "{\"message\":\"x\",\"kind\":\"direct\"}\nnonsense\n{\"message\":\"x\",\"kind\":\"single\"}\n";
    expect![[r#"
        --- stderr
        error: -:3: `accept` or `agent` has to say who is right
        error: -:2: not a JSON object
        hint: `squad route --help` shows the format
        --- exit 2
    "#]]
    .assert_eq(&repo.squad(&["route", "--eval", "-"]).to_string());
    expect![[r#"
        {"error":{"kind":"usage","message":"not a JSON object","hint":"`squad route --help` shows the format","source":"-:2"}}
        --- stderr
        error: -:3: `accept` or `agent` has to say who is right
        --- exit 2
    "#]].assert_eq(&repo.squad(&["route", "--json", "--eval", "-"]).to_string());
    repo.input = "\n";
    assert_eq!(repo.squad(&["route", "--eval", "-"]).code, 2);
    repo.input = "{\"message\":\"endpoint\",\"kind\":\"single\",\"accept\":[\"old\",\"ada\"]}\n";
    expect![[r#"
           1 single     accuracy 100.0%, coverage 100.0%, precision 100.0%
        --- stderr
        warning: -:1: the team has no agent `old` that can be started
        hint: the team's agents: ada, bob and rex
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["route", "--eval", "-"]).to_string());
}

#[test]
fn issues_are_triaged_a_line_each() {
    let mut repo = TestRepo::with_small_team();
    repo.input = "{\"number\":7,\"title\":\"Login is refused\",\"body\":null,\"labels\":[{\"name\":\"bug\"}],\"url\":\"x\"}\n\
        nonsense\n\n{\"id\":\"a\",\"title\":1}\n{\"id\":\"b\",\"title\":\"Make it better\"}";
    let output = repo.squad(&["route", "--stdin"]);
    let answers: Vec<Value> = output.out.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert_eq!((answers.len(), output.code), (4, 1));
    assert_eq!(
        (&answers[0]["number"], &answers[0]["kind"], &answers[0]["agents"][0]),
        (&7.into(), &"agents".into(), &"ada".into())
    );
    expect![[
        r#"{"error":{"kind":"usage","message":"not JSON: expected ident at column 2","hint":null,"source":"-:2"}}"#
    ]]
    .assert_eq(&answers[1].to_string());
    expect![[r#"{"id":"a","error":{"kind":"usage","message":"invalid type: integer `1`, expected a string","hint":null,"source":"-:4"}}"#]].assert_eq(&answers[2].to_string());
    assert_eq!((&answers[3]["id"], &answers[3]["kind"]), (&"b".into(), &"abstain".into()));
    repo.input = "";
    assert_eq!(repo.squad(&["route", "--stdin"]).to_string(), "--- exit 0\n");
}

#[test]
fn what_a_team_did_measures_its_routing() {
    let repo = TestRepo::with_small_team();
    let choice =
        "[[turn]]\nagent = \"coordinator\"\nsteps = [{ say = '{\"agents\": [\"bob\"], \"reason\": \"quality\"}' }]\n";
    let fail = "[[turn]]\nagent = \"ada\"\nsteps = [{ fail = \"no\" }]\n";
    let reject = "[[turn]]\nagent = \"rex\"\nsteps = [{ say = 'VERDICT: rejected' }]\n\
        [[turn]]\nagent = \"rex\"\nsteps = [{ say = 'VERDICT: rejected' }]\n\
        [[turn]]\nagent = \"ada\"\nsteps = [{ say = 'Done.' }]\n";
    let improvise = |arguments: &[&str]| repo.squad(&[&["orchestrate", "--engine", "rehearsal"], arguments].concat());
    improvise(&["@ada add an endpoint for invoices"]);
    improvise(&["@ada and @bob: an endpoint, and unit tests for it"]);
    repo.rehearse(choice, &["Make it better"]);
    repo.rehearse(fail, &["--agent", "ada", "Never done"]);
    repo.rehearse(reject, &["Fix the login password check"]);
    improvise(&["--tier", "direct", "Hello there"]);
    let output = repo.squad(&["log", "--export-routing"]);
    expect![[r#"
        {"message":"@ada add an endpoint for invoices","kind":"single","agent":"ada","accept":["ada"],"all":false}
        {"message":"@ada and @bob: an endpoint, and unit tests for it","kind":"multi","agent":"ada","accept":["ada","bob"],"all":true}
        {"message":"Make it better","kind":"single","agent":"bob","accept":["bob"],"all":false}
        {"message":"Hello there","kind":"direct","agent":null,"accept":[],"all":false}
        --- stderr
        4 cases from the team's completed runs
        --- exit 0
    "#]]
    .assert_eq(&output.to_string());
    let output = repo.squad(&["log", "--export-routing", "cases.jsonl"]);
    assert_eq!((output.code, output.out.as_str()), (0, ""), "{output}");
    assert!(repo.squad(&["log", "--export-routing", "-"]).out == repo.read("cases.jsonl") && !repo.exists("-"));
    let again = repo.squad(&["log", "--export-routing", "cases.jsonl"]);
    assert!(again.code == 2 && again.err.contains("already exists"), "corrections by hand are safe: {again}");
    let report = json(&repo.squad(&["route", "--json", "--eval", "cases.jsonl"]));
    assert_eq!(report["counts"], serde_json::json!({"single": 2, "multi": 1, "ambiguous": 0, "direct": 1}));
    // The run that the coordinator chose for is not asked about itself.
    assert_eq!(report["predictions"][2]["plan"]["kind"], "abstain");
}

/// The last end of a run counts, however often it was resumed.
#[test]
fn what_a_resumed_run_ended_with_teaches() {
    for resumptions in [&["fail"][..], &["say"], &["fail", "say"], &["fail", "fail", "fail"]] {
        let repo = TestRepo::with_small_team();
        let script = |step: &str| format!("[[turn]]\nagent = \"ada\"\nsteps = [{{ {step} = \"Done.\" }}]\n");
        repo.rehearse(&script("fail"), &["--agent", "ada", "Explain the zeppelin"]);
        let run = json(&repo.squad(&["log", "--json"]))["runs"][0]["run"].as_str().expect("an id").to_owned();
        for step in resumptions {
            // A turn that was played is not played again.
            let script = script("fail") + &resumptions.iter().map(|step| script(step)).collect::<String>();
            let output = repo.rehearse(&script, &["--resume", &run]);
            assert_eq!(output.code, u8::from(*step == "fail"), "{output}");
        }
        let cases = repo.squad(&["log", "--export-routing"]).out;
        assert_eq!(cases.contains("zeppelin"), resumptions.last() == Some(&"say"), "{resumptions:?}: {cases}");
    }
}

#[test]
fn what_a_person_or_the_coordinator_chose_is_kept_and_teaches() {
    let repo = TestRepo::with_small_team();
    let message = "Untangle the zeppelin hangar";
    assert_eq!(json(&repo.squad(&["route", "--json", message]))["kind"], "abstain");
    let script = "[[turn]]\nagent = \"coordinator\"\nsteps = [{ say = '{\"agents\": [\"bob\"], \"reason\": \"hangars are his\"}' }]\n";
    let output = repo.rehearse(script, &[message]);
    assert_eq!(output.code, 0, "{output}");
    let ledger = repo.squad(&["log", "--json", "20260105"]).out;
    let chosen = "{\"agent\":\"bob\",\"why\":\"hangars are his\",\"source\":\"coordinator\",\"weight\":1.0}";
    assert!(ledger.contains(chosen), "{ledger}");
    let speaks_for = |agent: &str, run: &str| {
        let plan = json(&repo.squad(&["route", "--json", message]));
        let evidence = plan["evidence"].as_array().expect("evidence").clone();
        evidence.iter().any(|evidence| evidence["agent"] == agent && evidence["source"].as_str() == Some(run))
    };
    assert!(speaks_for("bob", "run 20260105-090000-000001"), "{}", repo.squad(&["route", "--json", message]));
    // A person's word is weightier, whatever was before or comes after.
    repo.squad(&["orchestrate", "--engine", "rehearsal", "--agent", "ada", message]);
    let runs = json(&repo.squad(&["log", "--json"]));
    let corrected = format!("run {}", runs["runs"][0]["run"].as_str().expect("an id"));
    assert!(speaks_for("ada", &corrected) && !speaks_for("bob", "run 20260105-090000-000001"));
}

#[test]
fn what_a_rehearsal_improvised_teaches_nothing() {
    let repo = TestRepo::with_small_team();
    let before = json(&repo.squad(&["route", "--json", "Make it better"]));
    assert_eq!(before["kind"], "abstain");
    let output = repo.squad(&["orchestrate", "--engine", "rehearsal", "Make it better"]);
    assert_eq!(output.code, 0, "{output}");
    assert_eq!(json(&repo.squad(&["route", "--json", "Make it better"])), before);
    assert_eq!(repo.squad(&["log", "--export-routing"]).out, "");
}

/// Agents side by side whose modules overlap: said before anybody starts, and only of those.
#[test]
fn agents_side_by_side_on_the_same_paths_are_named() {
    let repo = TestRepo::with_small_team();
    let modules = "\n## Modules\n\n| Module | Primary | Secondary |\n|---|---|---|\n| `src/api/**` | Ada | |\n\
                   | `src/api/tests` | Bob | |\n| `docs` | Rex | |\n";
    let routing = repo.read(".squad/routing.md");
    repo.write(".squad/routing.md", &(routing + modules));
    let says = "ada and bob work side by side, and both on src/api/tests";
    for (message, is_said) in
        [("@ada and @bob do it", true), ("@ada does it, then @bob tests it", false), ("@ada and @rex do it", false)]
    {
        let routed = repo.squad(&["route", message]);
        assert_eq!(routed.err.contains(says), is_said, "{routed}");
        let json: Value = serde_json::from_str(&repo.squad(&["route", "--json", message]).out).expect("JSON");
        assert_eq!(json["overlaps"][0]["agents"] == serde_json::json!(["ada", "bob"]), is_said, "{json}");
        let dry = repo.squad(&["orchestrate", "--engine", "rehearsal", "--dry-run", message]);
        assert_eq!(dry.err.contains(says), is_said, "{dry}");
        let run = repo.squad(&["orchestrate", "--engine", "rehearsal", message]);
        let (warned, begun) = (run.err.find(says), run.err.find("asks for"));
        assert_eq!(warned.is_some(), is_said, "{run}");
        assert!(begun.is_none_or(|begun| warned.is_none_or(|warned| warned < begun)), "{run}");
    }
}
