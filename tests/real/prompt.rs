//! What a model call carries: our text and tools word for word, the CLI's by its size and hash.

use std::path::Path;

use expect_test::expect_file;
use serde_json::{Value, json};

use crate::model_server::Script;
use crate::support::{COORDINATOR, World, creed, plays};

const RULES: &str = "# House rules\n\nTabs, not blanks.\n";
/// Of a system prompt and its tools, in bytes (DESIGN §10).
const LARGEST: usize = 30_000;

/// A request as it reached the model, without what differs from one place and run to the next.
struct Carried {
    system: String,
    user: String,
    tools: Vec<Value>,
    format: Value,
}

impl Carried {
    fn of(world: &World, run: &Value, request: &Value) -> Self {
        let plain = |text: &str| {
            let text = text.replace(world.repo.root().to_str().expect("UTF-8"), "ROOT");
            let text = text.replace(run.as_str().expect("an id"), "RUN");
            let machine =
                |line: &str| line.starts_with("* Operating System:") || line.starts_with("* Available tools:");
            let stamped = |line: &str| line.starts_with("<current_datetime>");
            let lines = text.lines().filter(|line| !machine(line) && !stamped(line));
            lines.map(|line| format!("{line}\n")).collect::<String>()
        };
        let of = |role: &str| {
            let all = request["messages"].as_array().expect("messages");
            let texts = all.iter().filter(|message| message["role"] == role).map(|message| &message["content"]);
            plain(&texts.map(|text| text.as_str().expect("a text")).collect::<String>())
        };
        let tools = request["tools"].as_array().cloned().unwrap_or_default();
        Self { system: of("system"), user: of("user"), tools, format: request["response_format"].clone() }
    }

    /// Everything, with the CLI's own between these two lines by its size and hash only: it is not ours to keep.
    fn shown(&self, own: Option<(&str, &str)>) -> String {
        let system = match own {
            None => self.system.clone(),
            Some((first, last)) => {
                let (before, rest) = self.system.split_once(first).expect("where the CLI's own text begins");
                let (own, after) = rest.split_once(last).expect("where it ends");
                format!("{before}{}\n{last}{after}", digest("text", &format!("{first}{own}")))
            }
        };
        let tool = |tool: &Value| match tool["function"]["name"].as_str() {
            Some(name) if name.starts_with("squad_") => format!("{}\n", tool["function"]),
            name => format!("{}\n", digest(name.expect("a name"), &tool.to_string())),
        };
        let tools: String = self.tools.iter().map(tool).collect();
        format!("{system}\n=== tools\n{tools}\n=== format\n{}\n\n=== user\n{}", self.format, self.user)
    }

    fn bytes(&self) -> usize {
        self.system.len() + json!(self.tools).to_string().len()
    }
}

fn digest(name: &str, text: &str) -> String {
    format!("[the CLI's own {name}: {} bytes, {}]", text.len(), &blake3::hash(text.as_bytes()).to_hex()[..12])
}

fn golden(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/wire").join(name)
}

fn commit(world: &World, path: &str, text: &str) {
    world.repo.write(path, text);
    world.repo.git(&["add", path]);
    world.repo.git(&["commit", "--quiet", "--message=more"]);
}

/// The requests whose messages hold this text.
fn requests(world: &World, text: &str) -> Vec<Value> {
    let holds = |request: &Value| request["messages"].to_string().contains(text);
    world.model.requests().into_iter().filter(holds).collect()
}

#[test]
fn an_agent_is_told_what_is_the_same_first_and_nothing_that_contradicts() {
    let mut world = World::new(|_| [plays("ada", &["say:Done."])]);
    // The prompt says where an agent may write, which depends on the system.
    world.repo.variables.insert("SQUAD_SANDBOX_LEVEL".to_owned(), "rules".to_owned());
    commit(&world, "AGENTS.md", RULES);
    let bob = "# Bob — Tester\n\n## What I Own\n\n- Every test\n- The data they need\n";
    commit(&world, ".squad/agents/bob/charter.md", bob);
    let tell = |message| {
        let ended = world.run(&["orchestrate", "--json", "--agent", "ada", "--permissions", "allow", message]);
        (ended.events()[0]["run"].clone(), ended.only("agent.completed")["usage"]["context"].clone())
    };
    let (first, second) = (tell("Explain the endpoint"), tell("Times are UTC: say so"));
    let requests = requests(&world, creed("ada"));
    let [one, two] = &requests[..] else { panic!("{requests:#?}") };
    let carried = [Carried::of(&world, &first.0, one), Carried::of(&world, &second.0, two)];
    let own = Some(("<code_change_instructions>", "<custom_instruction>"));
    expect_file![golden("agent.txt")].assert_eq(&carried[0].shown(own));
    for text in ["ask_user", "ask for guidance", "try alternative tools", "Co-authored-by", "Session folder"] {
        assert!(!carried[0].system.contains(text), "{text}: {}", carried[0].system);
    }
    // Nothing before what is chosen for the task differs from one run to the next: not the charter, nor the tools.
    let system = |request: &Value| request["messages"][0]["content"].as_str().expect("a text").to_owned();
    let upto = |text: String| text.split("You are Ada.\n").next().map(str::to_owned);
    assert_eq!(upto(system(one)), upto(system(two)));
    assert!(system(one).find(creed("ada")) < system(one).find("You are Ada.\n"), "{}", system(one));
    assert_eq!(one["tools"], two["tools"]);
    let context = first.1;
    for part in ["system_tokens", "tool_tokens", "conversation_tokens", "limit"] {
        assert!(context[part].as_u64().is_some_and(|tokens| tokens > 0), "{part}: {context}");
    }
}

#[test]
fn who_only_decides_has_our_text_alone_and_answers_in_a_form() {
    let choice = r#"say:{"agents":["ada"],"steps":[],"reason":"It is hers.","answer":""}"#;
    let world = World::new(|_| [Script::new(COORDINATOR, [choice]), plays("ada", &["say:Done."])]);
    commit(&world, "AGENTS.md", RULES);
    let ended = world.run(&["orchestrate", "--json", "--permissions", "allow", "Zzz qqq"]);
    ended.assert_status(0, "completed", &json!({ "ada": "completed", "coordinator": "completed" }));
    let requests = requests(&world, COORDINATOR);
    let carried = Carried::of(&world, &ended.events()[0]["run"], &requests[0]);
    expect_file![golden("coordinator.txt")].assert_eq(&carried.shown(None));
    assert_eq!(carried.tools, Vec::<Value>::new());
}

#[test]
fn a_model_that_takes_no_form_is_asked_without() {
    let choice = r#"plain:{"agents":["ada"],"reason":"It is hers."}"#;
    let world = World::new(|_| [Script::new(COORDINATOR, [choice]), plays("ada", &["say:Done."])]);
    let ended = world.run(&["orchestrate", "--json", "--permissions", "allow", "Zzz qqq"]);
    ended.assert_status(0, "completed", &json!({ "ada": "completed", "coordinator": "completed" }));
    let formats: Vec<bool> =
        requests(&world, COORDINATOR).iter().map(|request| request.get("response_format").is_some()).collect();
    assert_eq!(formats, [true, false], "{ended}");
    let warned = ended.of("session.error");
    assert!(warned.iter().any(|event| event["reason"].to_string().contains("asked without")), "{ended}");
}

#[test]
fn a_call_for_an_agent_of_our_own_team_stays_small() {
    let world = World::new(|_| []);
    world.repo.git(&["rm", "-r", "--quiet", ".squad"]);
    world.repo.git(&["commit", "--quiet", "--message=away"]);
    assert_eq!(world.repo.squad(&["init"]).code, 0);
    let ended =
        world.run(&["orchestrate", "--json", "--agent", "backend", "--permissions", "allow", "Add an endpoint"]);
    let request = world.model.requests().remove(0);
    let bytes = Carried::of(&world, &ended.events()[0]["run"], &request).bytes();
    println!("{bytes} bytes");
    assert!(bytes <= LARGEST, "{bytes}");
}

/// A team that has grown: many members, long charters, records of months.
fn grow(world: &World) {
    let repo = &world.repo;
    let line = "- What is said here is as long as such lines are, and there are many of them in a file.\n";
    let roles: String = (0..14).map(|number| format!("| Agent{number} | Developer of part {number} |\n")).collect();
    let about = format!("## Project Context\n\n{}\n## Labels\n\n{}", line.repeat(12), line.repeat(20));
    repo.write(".squad/team.md", &format!("# Team\n\n## Members\n\n| Name | Role |\n|---|---|\n{roles}\n{about}"));
    let section = |title: &str, lines: usize| format!("## {title}\n\n{}\n", line.repeat(lines));
    let charter =
        ["# Agent0\n\nYou are Agent0.\n\n".to_owned(), section("What I Own", 5), section("How I Work", 60)].concat();
    let charter = [charter, section("Boundaries", 4), section("Voice", 9), section("Collaboration", 8)].concat();
    repo.write(".squad/agents/agent0/charter.md", &charter);
    let decisions: String = (0..60)
        .map(|number| format!("### 2026-01-02: Endpoint rule {number}\n\n**By:** Agent1\n\n{}\n", line.repeat(8)))
        .collect();
    repo.write(".squad/decisions.md", &format!("# Decisions\n\n{decisions}"));
    repo.write(".squad/agents/agent0/history.md", &format!("# History\n\n## Learnings\n\n{}", line.repeat(300)));
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "--quiet", "--message=grown"]);
}

/// The call that such a team's agent makes first, in bytes, without the task.
fn first_call(world: &World) -> usize {
    grow(world);
    let ended = world.run(&["orchestrate", "--json", "--agent", "agent0", "--permissions", "allow", "Add an endpoint"]);
    let request = world.model.requests().into_iter().next().unwrap_or_else(|| panic!("a request: {ended}"));
    let text = request.to_string();
    assert!(text.contains("Boundaries") && text.contains("How I Work") && text.contains("Endpoint rule"), "{text}");
    text.len()
}

/// On each of the three engines: charter, team and records are selected.
#[test]
fn a_call_for_an_agent_of_a_grown_team_stays_small() {
    let copilot = World::new(|_| []);
    let claude = crate::session_engines::world_of("", |_| []);
    let mut codex = World::new(|_| []);
    crate::codex::on_codex(&mut codex, &[], "gpt-6.1-sol");
    for (engine, world) in [("copilot", copilot), ("claude", claude), ("codex", codex)] {
        let bytes = first_call(&world);
        println!("{engine}: {bytes} bytes");
        // The task and the form of the request are in it.
        assert!(bytes <= LARGEST + 1_000, "{engine}: {bytes}");
    }
}
