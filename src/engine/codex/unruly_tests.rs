//! Programs that misbehave in Codex's place, as small shell scripts.

use std::fs;
use std::time::Instant;

use super::*;
use crate::engine::copilot::testing::{opening, show};
use crate::engine::{AdapterSession, Fact, Request};
use crate::model::ToolChoice;

/// Deadlines that suit a busy machine, but for those that a test waits for.
const TIMEOUTS: Timeouts = Timeouts {
    start: Duration::from_secs(20),
    request: Duration::from_secs(20),
    open: Duration::from_secs(20),
    abort: Duration::from_secs(20),
    grace: Duration::from_millis(400),
    ping: Duration::from_secs(60),
    backoff: Duration::from_millis(10),
};
const GREETING: &str = r#"{"userAgent":"squad/0.169.0 (x)"}"#;
const ACCOUNT: &str = r#"{"account":null,"requiresOpenaiAuth":false}"#;

struct World(tempfile::TempDir);

impl World {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    /// A program that serves; `first` runs before, `turn` in each turn, and `last` when its input has ended.
    fn script(first: &str, turn: &str, last: &str) -> String {
        format!(
            r#"{first}
            reply() {{ printf '{{"id":%s,"result":%s}}\n' "$id" "$1"; }}
            say() {{ printf '%s\n' '{{"method":"item/completed","params":{{"threadId":"t","item":{{"type":"agentMessage","id":"m","text":"done"}}}}}}'; }}
            done_() {{ printf '%s\n' '{{"method":"turn/completed","params":{{"threadId":"t","turn":{{"id":"u","status":"completed"}}}}}}'; }}
            while read -r line; do
                id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
                case "$line" in
                    *'"initialize"'*) reply '{GREETING}' ;;
                    *'"account/read"'*) reply '{ACCOUNT}' ;;
                    *'"thread/start"'*|*'"thread/resume"'*) reply '{{"thread":{{"id":"t"}},"model":"m"}}' ;;
                    *'"turn/start"'*) reply '{{"turn":{{"id":"u"}}}}'; {turn} ;;
                    *'"id"'*) reply '{{}}' ;;
                esac
            done
            {last}"#
        )
    }

    async fn start(&self, script: &str, timeouts: Timeouts) -> Result<Codex, EngineError> {
        let program = self.0.path().join("codex");
        crate::script::write(&program, &format!("#!/bin/sh\n{script}\n"));
        let users = toml::from_str(&format!("[codex]\nprogram = '{}'\n", program.display())).expect("a table");
        let options = command::Options {
            profile: command::Profile::find("codex", &users).expect("there").expect("complete"),
            squad: None,
            variables: [("PATH".into(), "/usr/bin:/bin".into()), ("HOME".into(), self.0.path().into())].into(),
            directory: self.0.path().to_owned(),
            local: self.0.path().join("local"),
            place: String::new(),
            run: self.0.path().display().to_string(),
            sandbox: None,
            mcp_servers: Default::default(),
        };
        Codex::start_with(options, timeouts).await
    }

    async fn refused(&self, script: &str, timeouts: Timeouts) -> EngineError {
        self.start(script, timeouts).await.err().expect("it cannot be used")
    }

    async fn session(&self, script: &str) -> Session {
        let engine = self.start(script, TIMEOUTS).await.expect("it starts");
        let opening = Opening { directory: self.0.path().to_owned(), ..opening("squad-ada", ToolChoice::All) };
        engine.open(opening).await.expect("it opens")
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).unwrap_or_default()
    }
}

/// A turn's facts, up to its end. Whatever is asked, nobody answers.
async fn turn(session: &mut Session) -> Vec<String> {
    session.send("go", &[]).await.expect("it is sent");
    let mut seen = Vec::new();
    loop {
        let fact = session.next().await;
        let is_over = matches!(fact, Fact::Idle | Fact::Interrupted(_) | Fact::Failed(_) | Fact::Lost(_));
        match &fact {
            Fact::Alive => {}
            Fact::Request(Request::AfterTool(..)) => {}
            fact => seen.push(show(fact)),
        }
        if is_over {
            return seen;
        }
    }
}

#[tokio::test]
async fn one_that_cannot_be_used_is_refused_with_the_way_out() {
    let short = Timeouts { start: Duration::from_millis(700), ..TIMEOUTS };
    let greets =
        |agent: &str, account: &str| World::script("", "", "").replace(GREETING, agent).replace(ACCOUNT, account);
    for (script, timeouts, reason, hint) in [
        (greets(r#"{"userAgent":"squad/0.99.0 (x)"}"#, ACCOUNT), TIMEOUTS, "codex is 0.99.0", "codex-print"),
        (greets("{}", ACCOUNT), TIMEOUTS, "of an unknown version", "npm install"),
        (greets("7", ACCOUNT), TIMEOUTS, "of an unknown version", "npm install"),
        (greets(GREETING, r#"{"account":null,"requiresOpenaiAuth":true}"#), TIMEOUTS, "not logged in", "codex login"),
        ("echo no such command >&2; exit 2".to_owned(), TIMEOUTS, "no such command", "--help"),
        ("cat > /dev/null".to_owned(), short, "no answer within 0.7 s", "--help"),
        ("while :; do echo noise; sleep 0.1; done".to_owned(), short, "no answer within 0.7 s", "--help"),
    ] {
        let error = World::new().refused(&script, timeouts).await;
        assert!(error.to_string().contains(reason), "{error}");
        assert!(error.hint().is_some_and(|text| text.contains(hint)), "{error:?}");
    }
}

/// It would wait for ever.
#[tokio::test]
async fn noise_is_skipped_and_every_request_is_answered() {
    let requests = [
        r#"{"id":70,"method":"account/chatgptAuthTokens/refresh","params":{}}"#,
        r#"{"id":71,"method":"item/commandExecution/requestApproval","params":{"threadId":"t","itemId":"c","command":"/bin/sh -c ls","cwd":"/"}}"#,
        r#"{"id":72,"method":"item/fileChange/requestApproval","params":7}"#,
        r#"{"id":73,"method":"item/tool/call","params":{"tool":"nothing"}}"#,
        r#"{"id":74,"method":"mcpServer/elicitation/request","params":{}}"#,
        r#"{"id":75,"method":"item/tool/requestUserInput","params":{"questions":[{"id":"q"},7]}}"#,
    ];
    let asked: String = requests.iter().map(|request| format!("printf '%s\\n' '{request}'; ")).collect();
    let turn_script = format!(
        "echo Welcome; printf '\\033[0m{{half\\n[]\\n'; {asked} \
         n=0; while [ $n -lt 6 ]; do read -r answer; \
         case \"$answer\" in \
         *inject_items*) id=$(printf '%s' \"$answer\" | sed -n 's/.*\"id\":\\([0-9]*\\).*/\\1/p'); reply '{{}}' ;; \
         *) printf '%s\\n' \"$answer\" >> answers; n=$((n+1)) ;; esac; done; say; done_"
    );
    let world = World::new();
    let mut session = world.session(&World::script("", &turn_script, "")).await;
    let seen = turn(&mut session).await;
    assert_eq!(seen[seen.len() - 2..], ["message done", "idle"], "{seen:?}");
    // The order is theirs.
    let answers = world.read("answers");
    let answer = |id: u64| answers.lines().find(|line| line.contains(&format!("\"id\":{id}"))).unwrap_or_default();
    for (id, wanted) in [
        (70, "-32601"),
        (71, r#""decision":"decline""#),
        (72, "decline"),
        (73, r#""success":false"#),
        (74, r#""action":"cancel""#),
        (75, "Nobody is available"),
    ] {
        assert!(answer(id).contains(wanted), "{id}: {answers}");
    }
    session.close().await;
}

#[tokio::test]
async fn one_that_dies_is_started_again_and_given_up_in_the_end() {
    let world = World::new();
    let mut session = world.session(&World::script("", "say; kill -9 $$", "")).await;
    let seen = turn(&mut session).await;
    let begins = |line: &String, start: &str| line.starts_with(start);
    assert!(begins(&seen[0], "message") && begins(&seen[1], "connection lost: codex: "), "{seen:?}");
    assert!(begins(&seen[2], "connection restored") && begins(&seen[3], "interrupted"), "{seen:?}");
    session.close().await;

    let world = World::new();
    // The first inspects, the second serves.
    let first = "echo x >> started; [ $(wc -l < started) -gt 2 ] && exit 3";
    let mut session = world.session(&World::script(first, "kill -9 $$", "")).await;
    let seen = turn(&mut session).await;
    let end = seen.last().expect("an end");
    assert!(end.starts_with("lost ") && end.contains("cannot be restored"), "{seen:?}");
    assert!(matches!(session.next().await, Fact::Lost(_)));
    assert!(session.send("go", &[]).await.is_err());
    session.close().await;
}

/// Stopped, it closes nothing and answers nothing.
/// Before it has a turn its thread is nowhere, so the next process has another one.
#[tokio::test]
async fn one_that_dies_before_its_first_turn_gets_that_once() {
    for pause in [0, 1, 5, 20, 100] {
        let world = World::new();
        let script = World::script("", r#"echo "$line" >> "$HOME/turns"; say; done_"#, "")
            .replace(r#""threadId":"t""#, r#""threadId":"t'"$$"'""#)
            .replace(
                r#"reply '{"thread":{"id":"t"},"model":"m"}'"#,
                r#"reply '{"thread":{"id":"t'"$$"'"},"model":"m"}'; mkdir "$HOME/died" 2>/dev/null && exit 1"#,
            )
            .replace(
                r#"reply '{"turn":{"id":"u"}}';"#,
                r#"case "$line" in *'"threadId":"t'"$$"'"'*) ;;
                    *) printf '{"id":%s,"error":{"code":-1,"message":"thread not found"}}\n' "$id"; continue ;; esac
                    reply '{"turn":{"id":"u"}}';"#,
            );
        let mut session = world.session(&script).await;
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let mut seen = turn(&mut session).await;
        if seen.last().is_some_and(|last| last.contains("interrupted")) {
            seen.extend(turn(&mut session).await);
        }
        assert_eq!(seen.last().map(String::as_str), Some("idle"), "{pause}: {seen:?}");
        session.close().await;
        assert_eq!(world.read("turns").lines().count(), 1, "{pause}: {seen:?}");
    }
}

#[tokio::test]
async fn one_that_hangs_or_ignores_its_end_is_killed() {
    let world = World::new();
    let script = World::script("", "kill -STOP $$", "");
    let short = Timeouts { ping: Duration::from_millis(300), ..TIMEOUTS };
    let engine = world.start(&script, short).await.expect("it starts");
    let opening = Opening { directory: world.0.path().to_owned(), ..opening("squad-ada", ToolChoice::All) };
    let mut session = engine.open(opening).await.expect("it opens");
    let seen = turn(&mut session).await;
    assert!(seen[0].contains("does not answer any more"), "{seen:?}");
    session.close().await;

    let world = World::new();
    let mut session = world.session(&World::script("trap '' TERM", "say; done_", "while :; do sleep 1; done")).await;
    assert_eq!(turn(&mut session).await, ["message done", "idle"]);
    let since = Instant::now();
    session.close().await;
    assert!(since.elapsed() < Duration::from_secs(10));
}
