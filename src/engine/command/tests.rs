//! Sessions of small programs that behave as badly as real ones can.

use std::fs;
use std::time::Duration;

use super::*;
use crate::engine::copilot::testing::{opening, show};
use crate::engine::{AdapterSession, Caller, Fact, Request};
use crate::model::{Exited, ToolChoice};
use crate::settings::EngineProfile;

struct World {
    folder: tempfile::TempDir,
    variables: Variables,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("project/sub")).expect("a folder");
        let variables = ["PATH", "HOME"].iter().filter_map(|name| Some(((*name).into(), std::env::var_os(name)?)));
        let mut variables: Variables = variables.collect();
        variables.insert("ACME_KEY".into(), "mine".into());
        variables.insert("OTHER_SECRET".into(), "not mine".into());
        Self { folder, variables }
    }

    /// An engine whose program is a shell script. `fields` are added to its profile.
    fn engine(&self, script: &str, fields: &str) -> Command {
        let program = self.folder.path().join("agent");
        crate::script::write(&program, &format!("#!/bin/sh\n{script}"));
        let text = format!("[agent]\nprogram = '{}'\nstrict = [\"--safe\"]\n{fields}", program.display());
        let users: BTreeMap<String, EngineProfile> = toml::from_str(&text).expect("a table");
        Command::start(Options {
            profile: Profile::find("agent", &users).expect("there").expect("complete"),
            squad: None,
            variables: self.variables.clone(),
            directory: self.project(),
            local: self.folder.path().join("local"),
            place: String::new(),
            mcp_servers: Default::default(),
            sandbox: None,
            run: "run".to_owned(),
        })
        .expect("the program is there")
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn opening(&self, resume: bool) -> Opening {
        let directory = self.project();
        Opening { directory, resume, ..opening("squad-ada", ToolChoice::All) }
    }

    fn spooled(&self, name: &str) -> Vec<u8> {
        fs::read(self.folder.path().join("local/output/squad-ada").join(name)).expect("a file")
    }

    fn pid(&self) -> u32 {
        let text = fs::read_to_string(self.project().join("pid")).expect("a file");
        text.trim().parse().expect("a number")
    }
}

/// The facts of a turn, with how its process ended.
struct TurnResult {
    lines: Vec<String>,
    exited: Option<Exited>,
}

impl TurnResult {
    fn last(&self) -> &str {
        self.lines.last().map_or("", String::as_str)
    }

    fn exited(&self) -> &Exited {
        self.exited.as_ref().expect("its process has ended")
    }
}

async fn finish_turn(session: &mut Session, may_act_unasked: bool) -> TurnResult {
    let mut result = TurnResult { lines: Vec::new(), exited: None };
    loop {
        let fact = session.next().await;
        result.lines.push(show(&fact));
        match fact {
            Fact::Request(Request::Unasked(reply)) => reply.send(may_act_unasked),
            Fact::Exited(exited) => result.exited = Some(exited),
            Fact::Idle | Fact::Failed(_) | Fact::Lost(_) => {
                result.lines.retain(|line| line != "alive" && line != "may it act unasked");
                return result;
            }
            _ => {}
        }
    }
}

async fn turn(session: &mut Session, prompt: &str) -> TurnResult {
    session.send(prompt, &[]).await.expect("it is taken");
    finish_turn(session, true).await
}

async fn run_once(world: &World, script: &str, fields: &str, prompt: &str) -> TurnResult {
    let engine = world.engine(script, fields);
    let mut session = engine.open(world.opening(false)).await.expect("a session");
    turn(&mut session, prompt).await
}

fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

#[tokio::test]
async fn hostile_text_stays_in_its_arguments_and_output_is_stored_unchanged() {
    let world = World::new();
    let hostile = "'; touch owned; $(touch owned) `touch owned` \"\n-rf --yolo | tee owned \u{202e}&amp; %PATH%";
    let script =
        "for a in \"$@\"; do printf '<%s>' \"$a\"; done; printf '\\351\\000x' ; echo \"$ACME_KEY$OTHER_SECRET\" >&2";
    let fields = "args = [\"{mode}\", \"{task}\", [\"-m\", \"{model}\"], \"{roleId}\", \"{cwd}\", \"{prompt}\"]\nenv = [\"ACME_*\"]";
    let result = run_once(&world, script, fields, hostile).await;
    assert_eq!(result.last(), "idle", "{:?}", result.lines);
    let stdout = String::from_utf8_lossy(&world.spooled("1.stdout")).into_owned();
    assert!(stdout.starts_with(&format!("<{hostile}><ada><{}><# Role", world.project().display())), "{stdout}");
    assert!(world.spooled("1.stdout").ends_with(b"\xe9\0x"));
    assert_eq!(world.spooled("1.stderr"), b"mine\n");
    let exited = result.exited();
    assert_eq!((exited.exit_code, exited.turn, exited.chat), (Some(0), 1, false));
    assert_eq!(exited.stdout, "output/squad-ada/1.stdout");
    assert!(fs::read_dir(world.project()).expect("a folder").all(|entry| entry.expect("one").file_name() == "sub"));
}

#[tokio::test]
async fn a_task_never_becomes_an_option() {
    let world = World::new();
    run_once(&world, "echo \"<$1>\"", "args = [\"{task}\", \"{prompt}\"]", "--dangerously").await;
    assert_eq!(world.spooled("1.stdout"), b"< --dangerously>\n");
}

#[tokio::test]
async fn a_long_prompt_is_passed_in_a_file_or_on_standard_input() {
    let world = World::new();
    let long = "x".repeat(300 * 1024);
    for prompt in [long.as_str(), "a\0b"] {
        let result = run_once(&world, "echo \"$1\"", "args = [\"{prompt}\"]", prompt).await;
        assert_eq!(result.last(), "idle", "{:?}", result.lines);
        let turn = result.exited().turn;
        let stdout = String::from_utf8_lossy(&world.spooled(&format!("{turn}.stdout"))).into_owned();
        let file = format!("{turn}.prompt:");
        assert!(stdout.starts_with("Read the file /") && stdout.contains(&file), "{stdout}");
        let sent = String::from_utf8_lossy(&world.spooled(&format!("{turn}.prompt"))).into_owned();
        assert!(sent.contains(prompt) && sent.starts_with("# Role"));
        let result = run_once(&world, "wc -c", "", prompt).await;
        let bytes = world.spooled(&format!("{}.prompt", result.exited().turn)).len();
        assert!(result.lines.contains(&format!("message {bytes}")), "{:?}", result.lines);
    }
}

#[tokio::test]
async fn a_hundred_megabytes_are_stored_but_not_held_in_memory() {
    let world = World::new();
    let script = "head -c 104857600 /dev/zero | tr '\\0' 'a'; echo; echo the end";
    let result = run_once(&world, script, "", "print").await;
    assert_eq!(result.last(), "idle", "{:?}", result.lines.last());
    assert_eq!(result.exited().stdout_bytes, 104_857_600 + 9);
    let message = result.lines.iter().find(|line| line.starts_with("message")).expect("an answer");
    assert!(message.len() < 300 * 1024 && message.ends_with("the end"), "{}", message.len());
}

#[tokio::test]
async fn a_program_that_ignores_term_and_one_that_leaves_children_are_ended() {
    let world = World::new();
    // It prints forever and ignores TERM, and its child holds its output open.
    let script = "trap '' TERM; sleep 1000 & echo $! > pid; while :; do echo again; sleep 0.01; done";
    let engine = world.engine(script, "");
    let mut session = engine.open(world.opening(false)).await.expect("a session");
    session.send("begin", &[]).await.expect("it is taken");
    loop {
        match session.next().await {
            Fact::Request(Request::Unasked(reply)) => reply.send(true),
            Fact::Governed { .. } => break,
            _ => {}
        }
    }
    while fs::read_to_string(world.project().join("pid")).unwrap_or_default().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    session.abort().await;
    let result = finish_turn(&mut session, true).await;
    assert_eq!(result.exited().signal, Some(9));
    assert!(result.last().starts_with("failed agent was ended: it was stopped"), "{}", result.last());
    assert!(!is_alive(world.pid()));
    // It ends by itself, but its child holds its output open.
    let result = run_once(&world, "sleep 1000 & echo $! > pid; echo done", "", "begin").await;
    assert_eq!(result.last(), "idle", "{:?}", result.lines);
    assert!(!is_alive(world.pid()));
}

#[tokio::test]
async fn processes_outside_the_group_end_with_their_session() {
    let world = World::new();
    let engine = world.engine("setsid sleep 1234 & sleep 0.2; echo done", "");
    let mut session = engine.open(world.opening(false)).await.expect("a session");
    assert_eq!(turn(&mut session, "begin").await.last(), "idle");
    let left = session.close().await;
    if cfg!(target_os = "linux") {
        assert_eq!(left, ["sleep 1234"]);
    }
}

#[tokio::test]
async fn failures_are_described() {
    let world = World::new();
    for (script, expected) in [
        ("echo broken >&2; exit 3", "failed agent ended with exit code 3: broken"),
        ("kill -9 $$", "failed agent was ended by signal 9"),
        ("exit 7", "failed agent ended with exit code 7"),
    ] {
        let result = run_once(&world, script, "", "work").await;
        assert_eq!(result.last(), expected);
    }
    // The exit code of plain text counts, also without text.
    for script in ["true", "echo noise >&2", "printf ' \\n'"] {
        let result = run_once(&world, script, "", "work").await;
        let message = "message (It printed nothing on its standard output.)".to_owned();
        assert!(result.last() == "idle" && result.lines.contains(&message), "{:?}", result.lines);
    }
    // A stream without a message is no answer.
    let result = run_once(&world, "echo '{}'", "stream = \"claude\"", "work").await;
    assert!(!result.lines.iter().any(|line| line.starts_with("message")), "{:?}", result.lines);
}

#[tokio::test]
async fn output_that_a_program_replaces_is_read_all_the_same() {
    let world = World::new();
    for replace in ["mkfifo $out", "ln -s /etc/passwd $out", "true"] {
        let script = format!(
            "out=$(ls -t ../local/output/squad-ada/*.stdout | head -n 1); echo begun; rm $out; {replace}; echo the end"
        );
        let result = run_once(&world, &script, "", "work").await;
        assert_eq!(result.last(), "idle", "{:?}", result.lines);
        assert!(result.lines.contains(&"message begun\nthe end".to_owned()), "{:?}", result.lines);
        assert_eq!(result.exited().stdout_bytes, 14);
    }
}

#[tokio::test]
async fn a_caller_that_keeps_no_chat_gets_none() {
    let script = "if [ \"$1\" = create-chat ]; then touch created; echo chat-7; exit; fi; cat; echo \"$@\"";
    for chat in ["chat = \"command\"\ncreate_chat = [\"create-chat\"]", "chat = \"client\""] {
        let world = World::new();
        let fields = format!("args = [[\"--resume\", \"{{chatId}}\"], \"{{roleId}}\"]\nprompt = \"stdin\"\n{chat}");
        let engine = world.engine(script, &fields);
        let caller = |keeps_chat| Some(Caller { role: "Ünï".to_owned(), keeps_chat });
        let opening = Opening { caller: caller(false), ..world.opening(false) };
        let result = turn(&mut engine.open(opening).await.expect("a session"), "x").await;
        let message = result.lines.iter().find(|line| line.starts_with("message")).expect("an answer");
        assert!(
            message.starts_with("message # Role\n\nYou are Ada.") && message.contains("\n# Task\n\nx\n"),
            "{message}"
        );
        assert!(!message.contains("--resume") && message.ends_with("Ünï") && !result.exited().chat, "{message}");
        assert!(!world.project().join("created").exists());
        let opening = Opening { caller: caller(true), ..world.opening(false) };
        let result = turn(&mut engine.open(opening).await.expect("a session"), "x").await;
        let message = result.lines.iter().find(|line| line.starts_with("message")).expect("an answer");
        assert!(message.contains("\n# Initial Task\n\nx\n") && message.contains("--resume"), "{message}");
    }
}

#[tokio::test]
async fn chats_continue_and_their_ids_come_only_from_the_engine() {
    let world = World::new();
    let script = "if [ \"$1\" = create-chat ]; then echo Welcome; echo chat-7; exit; fi; cat; echo \"$@\"";
    let fields = "args = [[\"--resume\", \"{chatId}\"]]\nprompt = \"stdin\"\nchat = \"command\"\ncreate_chat = [\"create-chat\"]";
    let engine = world.engine(script, fields);
    let mut session = engine.open(world.opening(false)).await.expect("a session");
    let result = turn(&mut session, "first").await;
    assert!(result.exited().chat, "{:?}", result.lines);
    let stdout = String::from_utf8_lossy(&world.spooled("1.stdout")).into_owned();
    assert!(stdout.starts_with("# Role\n\nYou are Ada.") && stdout.contains("# Initial Task\n\nfirst"), "{stdout}");
    assert!(stdout.ends_with("--resume chat-7\n"), "{stdout}");
    session.close().await;
    // A resumed session continues the chat with only the task.
    let mut session = engine.open(world.opening(true)).await.expect("it is known");
    turn(&mut session, "second").await;
    let stdout = String::from_utf8_lossy(&world.spooled("2.stdout")).into_owned();
    assert!(stdout.starts_with("# Task\n\nsecond") && stdout.ends_with("--resume chat-7\n"), "{stdout}");
    // Invented ids are refused.
    for invented in ["chat-7", "squad-other", "../squad-ada", "--yolo"] {
        let opening = Opening { session: invented.to_owned(), ..world.opening(true) };
        let opened = engine.open(opening).await;
        assert!(matches!(opened, Err(EngineError::NotResumable { .. })), "{invented}");
    }
    session.close().await;
    // One that may keep no state begins anew each time.
    let world = World::new();
    let engine = world.engine(script, &format!("{fields}\nstate = \"stateless\""));
    for resume in [false, false, true] {
        let mut session = engine.open(world.opening(resume)).await.expect("a session");
        let result = turn(&mut session, "first").await;
        let message = result.lines.iter().find(|line| line.starts_with("message")).expect("an answer");
        assert!(message.starts_with("message # Role\n\nYou are Ada."), "{message}");
        assert!(!message.contains("--resume") && !result.exited().chat, "{message}");
        session.close().await;
    }
}

#[tokio::test]
async fn a_chat_that_cannot_be_created_fails_the_turn() {
    let world = World::new();
    let fields = "prompt = \"stdin\"\nchat = \"command\"\ncreate_chat = [\"create-chat\"]";
    let result = run_once(&world, "echo Log in first, please.", fields, "x").await;
    assert_eq!(result.last(), "failed agent printed no id of the chat it created");
    let result = run_once(&world, "echo no; echo why >&2; exit 2", fields, "x").await;
    assert_eq!(result.last(), "failed agent created no chat: ended with exit code 2: why");
}

#[tokio::test]
async fn without_permission_it_runs_in_its_strictest_mode_or_not_at_all() {
    let world = World::new();
    // Arguments of a mode stay in their order, with a place of their own and before the others.
    for arguments in ["{mode}\", \"{prompt}", "{prompt}"] {
        let fields = format!("args = [\"{arguments}\"]\nfree = [\"--mode\", \"free\"]");
        let result = run_once(&world, "echo \"$1 $2\"", &fields, "x").await;
        assert!(result.lines.contains(&"message --mode free".to_owned()), "{:?}", result.lines);
    }
    let engine = world.engine("echo \"$1\"", "args = [\"{mode}\", \"{prompt}\"]\nfree = [\"--yolo\"]");
    let mut session = engine.open(world.opening(false)).await.expect("a session");
    session.send("x", &[]).await.expect("it is taken");
    let result = finish_turn(&mut session, false).await;
    assert_eq!(result.lines[0], "agent governed by its own strictest mode (`--safe`)");
    assert!(result.lines.contains(&"message --safe".to_owned()), "{:?}", result.lines);
    let result = turn(&mut session, "x").await;
    assert_eq!(result.lines[0], "agent governed by its own mode for work (`--yolo`)");
    // An engine without a strict mode.
    let text = "[agent]\nprogram = '/bin/true'\n";
    let users = toml::from_str(text).expect("a table");
    let options = Options {
        profile: Profile::find("agent", &users).expect("there").expect("complete"),
        squad: None,
        variables: world.variables.clone(),
        directory: world.project(),
        local: world.folder.path().join("local"),
        place: String::new(),
        mcp_servers: Default::default(),
        sandbox: None,
        run: "run".to_owned(),
    };
    let engine = Command::start(options).expect("it is there");
    let mut session = engine.open(world.opening(false)).await.expect("a session");
    session.send("x", &[]).await.expect("it is taken");
    let result = finish_turn(&mut session, false).await;
    assert!(result.last().contains("has no read-only mode"), "{:?}", result.lines);
    assert!(result.exited.is_none());
}

#[tokio::test]
async fn it_works_only_in_the_project_and_never_where_a_repository_configures_it() {
    let world = World::new();
    let engine = world.engine("pwd", "reads = [\".agent/hooks\"]");
    let at = |folder: &Path| Opening { directory: folder.to_owned(), ..world.opening(false) };
    for outside in ["/", "/etc", "..", "missing"] {
        let opened = engine.open(at(&world.project().join(outside))).await;
        assert!(matches!(opened, Err(EngineError::Unusable { .. })), "{outside}");
    }
    std::os::unix::fs::symlink("/etc", world.project().join("link")).expect("a link");
    assert!(engine.open(at(&world.project().join("link"))).await.is_err());
    assert!(engine.open(at(&world.project().join("sub"))).await.is_ok());
    fs::create_dir_all(world.project().join(".agent/hooks")).expect("a folder");
    for folder in [world.project(), world.project().join("sub")] {
        let Err(error) = engine.open(at(&folder)).await else { panic!("it was opened") };
        assert!(error.hint().is_some_and(|hint| hint.contains("engines.agent.trust_repository")), "{error}");
    }
    // A team in a subfolder: the file is at the root of the work tree.
    fs::rename(world.project().join(".agent"), world.folder.path().join(".agent")).expect("it is moved");
    assert!(engine.open(at(&world.project())).await.is_ok(), "it is outside of the repository");
    fs::create_dir_all(world.folder.path().join(".git/objects")).expect("a folder");
    fs::write(world.folder.path().join(".git/HEAD"), "ref: refs/heads/main\n").expect("a file");
    for folder in [world.project(), world.project().join("sub")] {
        assert!(matches!(engine.open(at(&folder)).await, Err(EngineError::Unusable { .. })), "{}", folder.display());
    }
    let engine = world.engine("pwd", "reads = [\".agent/hooks\"]\ntrust_repository = true");
    assert!(engine.open(at(&world.project())).await.is_ok());
}

#[test]
fn codex_trusts_no_project_around_the_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let option: toml::Table = toml::from_str(&codex_projects(folder.path())).expect("TOML");
    let projects = option["projects"].as_table().expect("a table");
    let path = dunce::canonicalize(folder.path()).expect("a path");
    for around in path.ancestors() {
        assert_eq!(projects[&around.display().to_string()]["trust_level"].as_str(), Some("untrusted"));
    }
    assert_eq!(codex_projects(Path::new("{cwd}")), r#"projects={ "{cwd}" = { trust_level = "untrusted" } }"#);
}

#[tokio::test]
async fn who_only_tries_again_gives_no_sign_of_life() {
    let world = World::new();
    let retry = r#"{"type":"system","subtype":"api_retry","attempt":2,"max_retries":9,"retry_delay_ms":1000,"error_status":529}"#;
    let script = format!("printf '%s\\n' '{retry}' '{retry}'; echo '{{\"type\":\"system\",\"subtype\":\"status\"}}'\n");
    let engine = world.engine(&script, "stream = \"claude\"\nargs = [\"{prompt}\"]");
    let mut session = engine.open(world.opening(false)).await.expect("a session");
    session.send("work", &[]).await.expect("it is taken");
    let mut lines = Vec::new();
    while lines.last().is_none_or(|line: &String| line != "idle") {
        match session.next().await {
            Fact::Request(Request::Unasked(reply)) => reply.send(false),
            fact => lines.push(show(&fact)),
        }
    }
    let warning = "warning agent: the model's service answered 529; retry 2 of 9 in 1.0 s";
    assert_eq!(lines.iter().filter(|line| *line == warning).count(), 2, "{lines:?}");
    assert_eq!(lines.iter().filter(|line| *line == "alive").count(), 1, "only the other line is one: {lines:?}");
}

#[test]
fn nobody_works_in_a_git_directory() {
    let folder = tempfile::tempdir().expect("a folder");
    for inner in ["sub/.git/hooks", ".GIT"] {
        fs::create_dir_all(folder.path().join(inner)).expect("a folder");
        assert!(confined(folder.path(), Path::new(inner)).is_err(), "{inner}");
    }
}
