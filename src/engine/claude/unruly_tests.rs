//! Programs that behave as badly as a real one can, as small shell scripts that speak its protocol.

use std::fs;
use std::time::{Duration, Instant};

use super::*;
use crate::engine::command::Profile;
use crate::engine::copilot::testing::{opening, show};
use crate::engine::{AdapterSession, Fact, Request};
use crate::model::ToolChoice;

/// Reads lines, and does this with a user's.
fn script(on_user: &str) -> String {
    format!(
        "echo \"$@\" >>args\n\
         say() {{ echo '{{\"type\":\"assistant\",\"message\":{{\"content\":[{{\"type\":\"text\",\"text\":\"'\"$1\"'\"}}]}}}}'; }}\n\
         done_() {{ echo '{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"\"}}'; }}\n\
         ask() {{ echo '{{\"type\":\"control_request\",\"request_id\":\"q1\",\"request\":{{'\"$1\"'}}}}'; }}\n\
         while read -r line; do case \"$line\" in\n\
         *'\"initialize\"'*) id=${{line#*request_id\\\":\\\"}}; id=${{id%%\\\"*}}\n\
         echo '{{\"type\":\"control_response\",\"response\":{{\"subtype\":\"success\",\"request_id\":\"'$id'\",\"response\":{{}}}}}}';;\n\
         *'\"type\":\"user\"'*) {on_user};;\n\
         *control_response*) echo \"$line\" >>answers; case \"$line\" in *q1*) say answered; done_;; esac;;\n\
         esac; done\n"
    )
}

struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn new(script: &str) -> Self {
        let world = Self { folder: tempfile::tempdir().expect("a folder") };
        fs::create_dir_all(world.path("project")).expect("a folder");
        world.set(script);
        world
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn set(&self, script: &str) {
        crate::script::write(&self.path("agent"), &format!("#!/bin/sh\n{script}"));
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path("project").join(name)).unwrap_or_default()
    }

    fn engine(&self) -> Claude {
        let text = format!("[agent]\nlike = \"claude\"\nprogram = '{}'\n", self.path("agent").display());
        let users = toml::from_str(&text).expect("a table");
        let variables = [("PATH", "/usr/bin:/bin".into()), ("HOME", self.path("home").into_os_string())];
        Claude::start(Options {
            profile: Profile::find("agent", &users).expect("there").expect("complete"),
            squad: None,
            variables: variables.map(|(name, value)| (name.into(), value)).into(),
            directory: self.path("project"),
            local: self.path("local"),
            place: String::new(),
            run: "run".to_owned(),
            sandbox: None,
            mcp_servers: Default::default(),
        })
        .expect("the program is there")
    }

    async fn open(&self, resume: bool) -> Result<Session, EngineError> {
        let directory = self.path("project");
        self.engine().open(Opening { directory, resume, ..opening("squad-ada", ToolChoice::All) }).await
    }
}

/// The facts of a turn, whose requests nobody answers.
async fn turn(session: &mut Session) -> Vec<String> {
    session.send("work", &[]).await.expect("it is taken");
    let mut lines = Vec::new();
    loop {
        let fact = session.next().await;
        lines.extend(Some(show(&fact)).filter(|line| line != "alive"));
        if matches!(fact, Fact::Idle | Fact::Interrupted(_) | Fact::Failed(_)) {
            return lines;
        }
    }
}

#[tokio::test]
async fn noise_is_skipped_and_what_squad_does_not_know_is_refused() {
    let noise = "echo Update available; printf '\\033[0m\\n'; echo '[1]'; echo '{\"type\":7}'; echo '{}'";
    let world = World::new(&script(&format!("{noise}; ask '\"subtype\":\"set_the_house_on_fire\"'")));
    let mut session = world.open(false).await.expect("it opens");
    assert_eq!(turn(&mut session).await, ["message answered", "idle"]);
    let answer = world.read("answers");
    assert!(answer.contains("\"subtype\":\"error\"") && answer.contains("no method set_the_house_on_fire"), "{answer}");
    session.close().await;
}

#[tokio::test]
async fn what_nobody_answers_is_a_no() {
    let hook = |id: &str| {
        let input = r#""input":{"tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"c"}"#;
        format!(r#""subtype":"hook_callback","callback_id":"{id}",{input}"#)
    };
    let may = r#""subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"c""#;
    let question = r#""subtype":"can_use_tool","tool_name":"AskUserQuestion","input":{"questions":[{"question":"?"}]}"#;
    let call = r#""subtype":"mcp_message","message":{"id":1,"method":"tools/call","params":{"name":"squad_status"}}"#;
    let denied = "\"behavior\":\"deny\"";
    for (request, expected) in [
        (hook("before"), "\"permissionDecision\":\"deny\""),
        (hook("nobody"), "\"subtype\":\"error\""),
        (may.to_owned(), denied),
        (question.to_owned(), denied),
        (call.to_owned(), "\"isError\":true"),
    ] {
        let world = World::new(&script(&format!("ask '{request}'")));
        let mut session = world.open(false).await.expect("it opens");
        let lines = turn(&mut session).await;
        assert_eq!(lines.last().map(String::as_str), Some("idle"), "{request}: {lines:?}");
        let answer = world.read("answers");
        assert!(answer.contains(expected), "{request}: {answer}");
        // Nor is a question outside a turn put to anybody.
        let asks = format!("done_; sleep 0.1; ask '{request}'");
        world.set(&script(&asks));
        fs::remove_file(world.path("project/answers")).expect("it is there");
        let mut session = world.open(false).await.expect("it opens");
        assert_eq!(turn(&mut session).await, ["idle"]);
        let deadline = Instant::now() + Duration::from_secs(20);
        while !world.read("answers").ends_with('\n') && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let answer = world.read("answers");
        assert!(answer.contains(expected), "{request}: {answer}");
        let late = tokio::time::timeout(Duration::from_millis(50), session.next()).await;
        assert!(!matches!(late, Ok(Fact::Request(Request::Permission { .. } | Request::Tool(..)))), "{late:?}");
    }
}

#[tokio::test]
async fn a_program_that_does_not_serve_says_why() {
    let world = World::new("echo starting >&2; echo 'error: unknown option --verbose' >&2; exit 2");
    let error = world.open(false).await.err().expect("it does not serve");
    let reason = "agent does not serve a session: its process ended (exit status: 2): error: unknown option --verbose";
    assert_eq!(error.to_string(), reason);
    // One that is killed is started again.
    world.set(&format!("if [ ! -e second ]; then touch second; kill -9 $$; fi\n{}", script("say well; done_")));
    let mut session = world.open(false).await.expect("it opens");
    let lines = turn(&mut session).await;
    assert!(
        lines[0].starts_with("connection lost: ") && lines.contains(&"connection restored: 1".to_owned()),
        "{lines:?}"
    );
    assert_eq!(lines[lines.len() - 2..], ["message well", "idle"]);
    session.close().await;
}

#[tokio::test]
async fn one_that_dies_in_a_turn_goes_on_in_its_session() {
    let world = World::new(&script("say begun; echo 'out of memory' >&2; exit 1"));
    let mut session = world.open(false).await.expect("it opens");
    let lines = turn(&mut session).await;
    let reason = "agent was lost: its process ended (exit status: 1): out of memory";
    assert_eq!(lines, ["message begun", &format!("connection lost: {reason}"), &format!("interrupted {reason}")]);
    assert!(!session.recall("work").await.expect("it is known").has_prompt);
    // Its session was not stored, so it gets another.
    let strict = "case \"$*\" in *--resume*) echo 'No conversation found with session ID: x' >&2; exit 1;; esac\n";
    world.set(&(strict.to_owned() + &script("say again; done_")));
    assert_eq!(turn(&mut session).await, ["connection restored: 1", "message again", "idle"]);
    session.close().await;
    let args = world.read("args");
    let ids: Vec<&str> = args.lines().filter_map(|line| line.rsplit(' ').next()).collect();
    assert!(ids.len() == 2 && ids[0] != ids[1], "{args}");
    let error = world.open(true).await.err().expect("there is none");
    assert!(matches!(error, EngineError::NotResumable { .. }), "{error}");
}

#[tokio::test]
async fn one_that_ignores_its_end_is_killed() {
    let world = World::new(&(script("done_") + "trap '' TERM\nwhile :; do sleep 1; done\n"));
    let mut session = world.open(false).await.expect("it opens");
    assert_eq!(turn(&mut session).await, ["idle"]);
    let begun = Instant::now();
    session.close().await;
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    // One that does not answer to an abort is ended as well.
    world.set(&script("sleep 60"));
    let mut session = world.open(false).await.expect("it opens");
    session.send("work", &[]).await.expect("it is taken");
    session.abort().await;
    assert_eq!(show(&session.next().await), "failed the turn was aborted");
    assert!(session.running.is_none());
    session.close().await;
}
