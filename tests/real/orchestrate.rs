use serde_json::{Value, json};

use crate::model_server::Script;
use crate::support::{COORDINATOR, Ended, KEY, World, call, create, creed, decide, plays, shell, signal};

const THREE: [&str; 8] = ["orchestrate", "--json", "--agent", "ada", "--agent", "bob", "--agent", "cy"];

/// What the user had not committed when squad was started.
#[derive(Debug, PartialEq)]
struct Unfinished {
    staged: String,
    edited: String,
    stash: String,
}

impl Unfinished {
    fn begin(world: &World) -> Self {
        let repo = &world.repo;
        repo.write("edited.txt", "put away\n");
        repo.git(&["stash", "--quiet"]);
        repo.write("staged.txt", "two\n");
        repo.git(&["add", "staged.txt"]);
        repo.write("staged.txt", "three\n");
        repo.write("edited.txt", "two\n");
        Self::of(world)
    }

    fn of(world: &World) -> Self {
        let git = |arguments: &[&str]| world.repo.git(arguments);
        Self { staged: git(&["diff", "--cached"]), edited: git(&["diff"]), stash: git(&["stash", "list"]) }
    }
}

#[test]
fn three_agents_change_files_decide_and_learn_and_one_fails() {
    let world = World::new(|root| {
        let file = create(&root.join("ada.txt"), "ada\n");
        [
            plays("ada", &[&file, &decide("Errors are JSON"), "say:The endpoint is there."]),
            plays(
                "bob",
                &[
                    &shell("printenv > bob.txt"),
                    &call("squad_remember", &json!({ "text": "The suite needs TZ=UTC." })),
                    "stream:3 say:The tests are there.",
                ],
            ),
            plays("cy", &[&create(&root.join("cy.txt"), "cy\n"), "error:400"]),
            Script::new(COORDINATOR, ["say:Ada and Bob are done, and Cy failed."]),
        ]
    });
    let unfinished = Unfinished::begin(&world);
    let before = world.repo.git(&["rev-parse", "HEAD"]);
    let ended = world.run(&[&THREE[..], &["--permissions", "allow", "Build the health endpoint"]].concat());

    let agents = json!({ "ada": "completed", "bob": "completed", "coordinator": "completed", "cy": "failed" });
    ended.assert_status(1, "failed", &agents);
    assert_eq!(ended.only("run.answer")["text"], "Ada and Bob are done, and Cy failed.", "{ended}");
    assert_eq!(ended.only("agent.failed")["reason"], "400 scripted error", "{ended}");
    world.assert_left_in_order(&ended);
    the_files_are_the_agents(&world, &ended);
    assert_eq!(Unfinished::of(&world), unfinished, "{ended}");
    the_ledger_knows(&world, &ended);
    the_decision_is_one_commit(&world, &ended, &before);
    each_model_was_told_its_own(&world, &ended);
}

fn the_files_are_the_agents(world: &World, ended: &Ended) {
    let status = " M edited.txt\nMM staged.txt\n?? ada.txt\n?? bob.txt\n?? cy.txt\n";
    assert_eq!(world.repo.git(&["status", "--porcelain"]), status, "{ended}");
    assert_eq!((world.repo.read("ada.txt").as_str(), world.repo.read("cy.txt").as_str()), ("ada\n", "cy\n"));
    let environment = world.repo.read("bob.txt");
    let run = ended.events()[0]["run"].as_str().expect("an id").to_owned();
    assert!(environment.contains(&format!("SQUAD_RUN={run}\n")), "{environment}");
    let home = format!("COPILOT_HOME={}/.git/squad/", world.repo.root().display());
    assert!(environment.contains(&home) && !environment.contains(KEY), "{environment}");
}

fn the_ledger_knows(world: &World, ended: &Ended) {
    for (kind, agents) in [
        ("run.started", &[""][..]),
        ("agent.completed", &["ada", "bob", "coordinator"]),
        ("agent.failed", &["cy"]),
        ("decision.logged", &["ada"]),
        ("decision.landed", &[""]),
        ("memory.logged", &["bob"]),
        ("run.answer", &[""]),
        ("run.completed", &[""]),
    ] {
        let entries = world.ledger(kind);
        assert_eq!(entries.len(), agents.len(), "{kind}: {entries:#?}\n{ended}");
        for agent in agents.iter().filter(|agent| !agent.is_empty()) {
            let line = format!("\nagent: \"{agent}\"\n");
            assert!(entries.iter().any(|entry| entry.contains(&line)), "{kind} of {agent}: {entries:#?}");
        }
    }
    // Every event but pieces of messages.
    let kept = |event: &&Value| event["type"] != "agent.message_delta";
    let count = world.repo.git(&["ls-tree", "-r", "--name-only", "refs/squad/log"]).lines().count();
    assert_eq!(count, ended.events().iter().filter(kept).count(), "{ended}");
    let log: Value = serde_json::from_str(&world.repo.squad(&["log", "--json"]).out).expect("JSON");
    let last = ended.only("run.completed");
    assert_eq!((&log["runs"][0]["status"], &log["runs"][0]["agents"]), (&last["status"], &last["agents"]), "{log}");
}

fn the_decision_is_one_commit(world: &World, ended: &Ended, before: &str) {
    let (git, logged) = (|arguments: &[&str]| world.repo.git(arguments), ended.only("decision.logged"));
    let (id, run) = (logged["id"].as_str().expect("an id"), logged["run"].as_str().expect("an id"));
    assert_eq!(git(&["rev-parse", "HEAD~1"]), before, "{ended}");
    assert_eq!(ended.only("run.completed")["commits"], json!([git(&["rev-parse", "HEAD"]).trim()]), "{ended}");
    let files = git(&["show", "--format=", "--name-status", "HEAD"]);
    let end = format!("-errors-are-json-{id}.md\n");
    let is_its_file = files.starts_with("A\t.squad/decisions/20") && files.ends_with(&end);
    assert!(is_its_file && files.lines().count() == 1, "{files}");
    let trailers = git(&["log", "-1", "--format=%(trailers:only,unfold)"]);
    assert_eq!(trailers.trim(), format!("Squad-Run: {run}\nSquad-Agent: ada\nSquad-Decision: {id}"));
    let list = world.repo.squad(&["decisions", "list", "--json"]).out;
    let list: Value = serde_json::from_str(&list).expect("JSON");
    let all = list["decisions"].as_array().expect("a list");
    assert!(all.iter().any(|one| one["id"] == id && one["state"] == "in_force" && one["by"] == "ada"), "{list}");
}

fn each_model_was_told_its_own(world: &World, ended: &Ended) {
    let all = ["ada", "bob", "cy"];
    for agent in all {
        let requests = world.requests_with(creed(agent));
        assert!(requests.len() >= 2, "{agent}: {requests:#?}\n{ended}");
        for request in requests {
            let others = all.iter().filter(|other| **other != agent);
            let foreign: Vec<_> = others.filter(|other| request.contains(creed(other))).collect();
            assert!(foreign.is_empty() && !request.contains(COORDINATOR), "{agent} was told of {foreign:?}: {request}");
            for told in ["# Working in this team", "- Cy (`cy`): Tech Writer", "Times are UTC", "Build the health"] {
                assert!(request.contains(told), "{agent} was not told `{told}`: {request}");
            }
            assert!(!request.contains("Times are local"), "a superseded decision is not in force: {request}");
        }
    }
    let requests = world.requests_with(COORDINATOR);
    assert_eq!(requests.len(), 1, "{requests:#?}");
    let told =
        |text: &str| assert!(requests[0].contains(text), "the coordinator was not told `{text}`: {}", requests[0]);
    told(r"Report of `ada` (completed):\n\n> The endpoint is there.");
    told(r"Report of `bob` (completed):\n\n> The tests are there.");
    told(r"Report of `cy` (failed):\n\n> 400 scripted error");
    told("Times are UTC");
    assert!(all.iter().all(|agent| !requests[0].contains(creed(agent))), "{}", requests[0]);
}

#[test]
fn without_permission_nothing_changes() {
    let world = World::new(|root| {
        let touch = shell("touch ada.txt");
        [
            plays("ada", &[&touch, &create(&root.join("ada.md"), "x"), &decide("Errors are JSON"), "say:I may not."]),
            plays("bob", &[&call("view", &json!({ "path": root.join("edited.txt") })), "say:I have read it."]),
            Script::new(COORDINATOR, ["say:Nothing was changed."]),
        ]
    });
    let unfinished = Unfinished::begin(&world);
    let ended = world.run(&["orchestrate", "--json", "-a", "ada", "-a", "bob", "Build it"]);
    ended.assert_status(5, "stopped", &json!({ "ada": "stopped", "bob": "completed", "coordinator": "completed" }));
    let denied: Vec<_> = ended.of("tool.denied").iter().map(|event| json!([event["agent"], event["tool"]])).collect();
    assert_eq!(denied, [json!(["ada", "bash"]), json!(["ada", "create"])], "{ended}");
    assert_eq!(world.ledger("tool.denied").len(), 2, "{ended}");
    // Reading and deciding are free.
    let read = ended.of("tool.completed").into_iter().find(|event| event["agent"] == "bob").unwrap_or_default();
    assert!(read["tool"] == "view" && read["ok"] == true, "{ended}");
    assert_eq!(ended.only("decision.landed")["branch"], "main", "{ended}");
    assert_eq!(world.repo.git(&["status", "--porcelain"]), " M edited.txt\nMM staged.txt\n", "{ended}");
    assert_eq!(Unfinished::of(&world), unfinished, "{ended}");
    world.assert_left_in_order(&ended);
}

#[test]
fn an_interrupt_in_the_middle_of_turns_leaves_no_process() {
    let words = "stream:600 say:".to_owned() + &"word ".repeat(600);
    let world = World::new(|_| {
        [plays("ada", &[&decide("Errors are JSON"), &words]), plays("bob", &[&shell("setsid sleep 300 & sleep 300")])]
    });
    let mut run =
        world.start(&["orchestrate", "--json", "--permissions", "allow", "-a", "ada", "-a", "bob", "Build it"]);
    run.wait_for(&["agent.message_delta", "ada"]);
    world.process("sleep");
    signal(run.id(), "INT");
    let ended = run.end();
    ended.assert_status(130, "cancelled", &json!({ "ada": "cancelled", "bob": "cancelled" }));
    world.assert_left_in_order(&ended);
    assert_eq!(world.ledger("agent.cancelled").len(), 2, "{ended}");
    assert_eq!(world.repo.git(&["show", "--format=%s", "--no-patch"]), "squad: decide: Errors are JSON\n", "{ended}");
    assert_eq!(world.repo.git(&["status", "--porcelain"]), "", "{ended}");
}

#[test]
fn an_agent_is_cancelled_from_another_terminal() {
    let world = World::new(|_| {
        [
            plays("ada", &["say:The endpoint is there."]),
            plays("bob", &[&shell("setsid sleep 300 & sleep 300")]),
            Script::new(COORDINATOR, ["say:Only Ada is done."]),
        ]
    });
    let arguments = ["orchestrate", "--json", "--permissions", "allow", "-a", "ada", "-a", "bob", "Explain it"];
    let mut run = world.start(&arguments);
    run.wait_for(&["agent.completed", "\"ada\""]);
    world.process("sleep");
    let status: Value = serde_json::from_str(&world.repo.squad(&["status", "--json"]).out).expect("JSON");
    let id = status["runs_live"][0]["run"].as_str().expect("a run");
    let sessions = status["sessions"].as_array().expect("a list");
    let session = sessions.iter().find(|session| session["agent"] == "bob").expect("a session");
    assert_eq!((&session["model"], &session["state"]), (&json!("fake-1"), &json!("active")), "{status}");
    assert!(session["workspace"].as_str().is_some_and(|path| path.contains(".git/squad/homes")), "{status}");
    let cancelled = world.repo.squad(&["cancel", id, "bob"]);
    assert_eq!(cancelled.code, 0, "{cancelled}");
    let ended = run.end();
    let agents = json!({ "ada": "completed", "bob": "cancelled", "coordinator": "completed" });
    ended.assert_status(130, "cancelled", &agents);
    assert_eq!(ended.only("cancel.requested")["agent"], "bob", "{ended}");
    assert_eq!(ended.only("run.answer")["text"], "Only Ada is done.", "{ended}");
    world.assert_left_in_order(&ended);
}

/// The engine comes back for whoever works next.
#[test]
fn a_cli_that_is_killed_ends_no_turn() {
    let world = World::new(|_| {
        [
            plays(
                "ada",
                &[
                    &decide("Errors are JSON"),
                    &shell("test -e flag || { touch flag; setsid sleep 300 & sleep 300; }"),
                    "say:The endpoint is there.",
                ],
            ),
            plays("bob", &["say:The tests are there."]),
            Script::new(COORDINATOR, ["say:Both are done."]),
        ]
    });
    let arguments = ["orchestrate", "--json", "--permissions", "allow", "--max-concurrent", "1"];
    let mut run = world.start(&[&arguments[..], &["-a", "ada", "-a", "bob", "Explain it"]].concat());
    run.wait_for(&["decision.logged"]);
    world.process("sleep");
    signal(world.process("copilot-runtime"), "KILL");
    let ended = run.end();
    ended.assert_status(0, "completed", &json!({ "ada": "completed", "bob": "completed", "coordinator": "completed" }));
    assert_eq!(ended.only("connection.lost")["agent"], "ada", "{ended}");
    assert_eq!(ended.only("connection.restored")["attempts"], 1, "{ended}");
    assert_eq!(ended.only("session.resumed")["agent"], "ada", "{ended}");
    let said = ended
        .of("session.error")
        .iter()
        .any(|event| event["reason"].as_str().is_some_and(|reason| reason.contains("lost in the middle of the turn")));
    assert!(said, "{ended}");
    assert_eq!(ended.only("run.answer")["text"], "Both are done.", "{ended}");
    let told = world
        .model
        .requests()
        .iter()
        .any(|request| request.to_string().contains("It is unknown what your last calls of `bash` did"));
    assert!(told, "{ended}");
    world.assert_left_in_order(&ended);
    let decided = ended.only("decision.logged")["id"].clone();
    assert_eq!(ended.only("decision.landed")["decisions"], json!([decided]), "{ended}");
    assert_eq!(world.repo.git(&["show", "--format=%s", "--no-patch"]), "squad: decide: Errors are JSON\n", "{ended}");
}

/// The engine ends by itself when its input closes, and the guardian ends what its tools had started.
#[test]
fn a_squad_that_is_killed_takes_its_engine_along() {
    let world = World::new(|_| [plays("ada", &[&decide("Errors are JSON"), &shell("setsid sleep 300 & sleep 300")])]);
    let mut run = world.start(&["orchestrate", "--json", "--permissions", "allow", "--agent", "ada", "Build it"]);
    run.wait_for(&["decision.logged"]);
    world.process("sleep");
    signal(run.id(), "KILL");
    world.settle();
    world.repo.assert_sound();
    let list = world.repo.squad(&["decisions", "list"]);
    assert!(list.out.lines().any(|line| line.contains("unlanded") && line.contains("Errors are JSON")), "{list}");
    let land = world.repo.squad(&["decisions", "land"]);
    assert_eq!(world.repo.git(&["show", "--format=%s", "--no-patch"]), "squad: decide: Errors are JSON\n", "{land}");
}

#[test]
fn a_turn_that_takes_too_long_is_ended() {
    let world = World::new(|_| [plays("ada", &["sleep:300 say:never"])]);
    let ended = world.run(&["orchestrate", "--json", "--timeout", "2s", "--agent", "ada", "Build it"]);
    ended.assert_status(1, "timed_out", &json!({ "ada": "timed_out" }));
    assert_eq!(ended.only("agent.timed_out")["reason"], "it showed no activity for 2s", "{ended}");
    assert_eq!(world.ledger("agent.timed_out").len(), 1, "{ended}");
    world.assert_left_in_order(&ended);
}

#[test]
fn a_lightweight_turn_only_reads() {
    let world = World::new(|_| [plays("ada", &[&shell("touch ada.txt"), "say:It is in src."])]);
    let ended = world.run(&["orchestrate", "--json", "--permissions", "allow", "-a", "ada", "Where is the parser?"]);
    ended.assert_status(0, "completed", &json!({ "ada": "completed" }));
    assert_eq!(ended.only("route.planned")["tier"], "lightweight", "{ended}");
    for request in world.model.requests() {
        let tools = request["tools"].as_array().into_iter().flatten();
        let tools: Vec<_> = tools.filter_map(|tool| tool["function"]["name"].as_str()).collect();
        assert_eq!(tools, ["view", "grep", "glob", "squad_log_decision", "squad_remember", "squad_decisions"]);
    }
    // The model knew the tool all the same.
    let touched = ended.only("tool.completed");
    assert!(touched["tool"] == "bash" && touched["ok"] == false, "{ended}");
    assert_eq!(world.repo.git(&["status", "--porcelain"]), "", "{ended}");
    world.assert_left_in_order(&ended);
}

/// In the sandbox its own git cannot write.
#[test]
fn an_agent_commits_with_squads_tool() {
    let world = World::new(|root| {
        let commit = call("squad_commit", &json!({ "message": "Add the endpoint" }));
        let steps =
            [&create(&root.join("ada.txt"), "ada\n"), &shell("git add -A; git commit -m no"), &commit, "say:Done."];
        [plays("ada", &steps.map(|step: &str| step))]
    });
    world.repo.write("yours.txt", "yours\n");
    let ended = world.run(&["orchestrate", "--json", "--permissions", "allow", "--agent", "ada", "Add it and commit"]);
    ended.assert_status(0, "completed", &json!({ "ada": "completed" }));
    let results = ended.of("tool.completed");
    let result =
        |tool: &str| results.iter().find(|event| event["tool"] == tool).map(|event| event["result"].to_string());
    assert!(result("bash").is_some_and(|said| said.contains("Read-only file system")), "{ended}");
    assert!(result("squad_commit").is_some_and(|said| said.contains("Committed as ")), "{ended}");
    let shown = world.repo.git(&["show", "--format=%s", "--name-status", "HEAD"]);
    assert_eq!(shown, "Add the endpoint\n\nA\tada.txt\n", "{ended}");
    assert_eq!(world.repo.git(&["status", "--porcelain"]), "?? yours.txt\n", "{ended}");
    assert_eq!(ended.only("agent.completed")["git"]["commits"].as_array().map(Vec::len), Some(1), "{ended}");
}

const CHOOSE: &str = "Choose who works on the message";
const ANSWER: &str = "Write the final answer";

#[test]
fn the_coordinator_chooses_where_routing_is_not_sure() {
    let world = World::new(|_| {
        let choice = r#"say:```json\n{"agents": ["bob"], "reason": "it is about quality"}\n```"#;
        [Script::new(CHOOSE, [choice]), plays("bob", &[&shell("echo bob > bob.txt"), "say:It is better."])]
    });
    let ended = world.run(&["orchestrate", "--permissions", "allow", "Make it better"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "It is better."), "{ended}");
    for line in [
        "  squad  engine copilot 1.0.102",
        "Plan  not sure; the coordinator chooses",
        "Plan  1 bob   tier standard",
        "✓ completed in ",
    ] {
        assert!(ended.err.lines().any(|said| said.starts_with(line)), "{line}\n{ended}");
    }
    assert_eq!(world.repo.read("bob.txt"), "bob\n", "{ended}");
    assert_eq!(world.requests_with(CHOOSE).len(), 1, "{ended}");
    world.assert_left_in_order(&ended);
}

#[test]
fn the_coordinator_that_chose_several_is_resumed_for_the_answer() {
    let world = World::new(|_| {
        [
            plays("ada", &["say:The endpoint is there."]),
            plays("cy", &["say:The page is there."]),
            // Its second turn still holds the first one's prompt.
            Script::new(ANSWER, ["say:Both are there."]),
            Script::new(CHOOSE, [r#"say:{"agents": ["ada", "cy"], "reason": "both"}"#]),
        ]
    });
    let ended = world.run(&["orchestrate", "--json", "Make it better"]);
    ended.assert_status(0, "completed", &json!({ "ada": "completed", "coordinator": "completed", "cy": "completed" }));
    assert_eq!(ended.only("session.resumed")["agent"], "coordinator", "{ended}");
    assert_eq!(ended.only("run.answer")["text"], "Both are there.", "{ended}");
    let answering = world.requests_with(ANSWER);
    assert!(answering.len() == 1 && answering[0].contains(CHOOSE), "{answering:#?}\n{ended}");
    world.assert_left_in_order(&ended);
}

#[test]
fn what_the_clis_tools_wrote_is_known_line_by_line() {
    let world = World::new(|root| {
        let path = root.join("api.txt");
        let file = create(&path, "pub fn health() -> Response {\n    Response::ok(200)\n}\n");
        let view = call("view", &json!({ "path": path }));
        let (old, new) = ("    Response::ok(200)\n", "    Response::ok(200)\n        .with_header(CACHE_CONTROL)\n");
        let edit = call("edit", &json!({ "path": path, "old_str": old, "new_str": new }));
        [plays("ada", &[&file, &view, &edit, "say:Done."])]
    });
    let ended = world.run(&["orchestrate", "--json", "--permissions", "allow", "--agent", "ada", "Rework the login"]);
    assert_eq!(ended.code, Some(0), "{ended}");
    for (line, text) in [(1, "pub fn health() -> Response {"), (3, "        .with_header(CACHE_CONTROL)")] {
        let answer = world.repo.squad(&["why", &format!("api.txt:{line}"), "--json"]);
        let answer: Value = serde_json::from_str(&answer.out).expect("JSON");
        assert_eq!(
            (&answer["text"], &answer["origins"][0]["agent"]),
            (&text.into(), &"ada".into()),
            "{answer} {ended}"
        );
    }
}

#[test]
fn the_log_for_reports_shows_the_traffic_and_no_key() {
    let mut world = World::new(|_| [plays("ada", &["say:Done."])]);
    world.repo.variables.insert("SQUAD_LOG".to_owned(), "debug".to_owned());
    let ended = world.run(&["orchestrate", "--json", "--agent", "ada", "Tidy up"]);
    let log = &ended.err;
    for line in ["-> {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"connect\"", "session.create", "<- {", "session.idle"] {
        assert!(log.contains(line), "{line}: {log}");
    }
    assert!(log.contains("\"apiKey\":\"[masked]\"") && !log.contains(KEY), "{log}");
}

/// The model's service answers 429 for good: whoever asked ends, and nobody else asks, in this run or the next.
#[test]
fn a_quota_that_is_used_up_is_met_by_one_agent_alone() {
    let world = World::new(|_| ["ada", "bob", "cy"].map(|agent| plays(agent, &["error:429"])));
    let one_by_one = [&THREE[..], &["--max-concurrent", "1", "Build the health endpoint"]].concat();
    let ended = world.run(&one_by_one);
    let agents = json!({ "ada": "stopped", "bob": "stopped", "cy": "stopped" });
    ended.assert_status(5, "stopped", &agents);
    assert_eq!(ended.only("quota.opened")["engine"], "copilot", "{ended}");
    assert!(ended.only("quota.opened")["reason"].as_str().is_some_and(|reason| reason.contains("429")), "{ended}");
    let asked = ["ada", "bob", "cy"].map(|agent| world.requests_with(creed(agent)).len());
    assert_eq!(asked.iter().filter(|count| **count > 0).count(), 1, "{asked:?}: {ended}");
    let again = world.run(&one_by_one);
    again.assert_status(5, "stopped", &agents);
    assert_eq!(asked, ["ada", "bob", "cy"].map(|agent| world.requests_with(creed(agent)).len()), "{again}");
    let file = std::path::Path::new(&world.repo.variables["HOME"]).join(".local/state/squad/quota.json");
    let known = std::fs::read_to_string(file).expect("the file is there");
    assert!(known.contains("copilot at http://127.0.0.1") && !known.contains(KEY), "{known}");
}
