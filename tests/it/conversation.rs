//! `squad orchestrate` without a message: a conversation, at a real terminal.

use std::fs::File;
use std::io::Write;

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::live_view::{modes, waits_for_modes};
use crate::process::{is_stopped, signal};
use crate::support::TestRepo;
use crate::terminal::Person;

const BINARY: &str = env!("CARGO_BIN_EXE_squad");

const TWO: &str = "[[turn]]\nagent = \"ada\"\nsteps = [{ say = \"First.\" }]\n\
    [[turn]]\nagent = \"ada\"\nsteps = [{ say = \"Second.\" }]\n";
const ENDLESS: &str = "[[turn]]\nagent = \"ada\"\nsteps = [{ say = \"I think.\" }, { hang = true }]\n";

fn begun(repo: &TestRepo, script: &str) -> (Person, std::process::Child) {
    repo.write("../script.toml", script);
    let mut person = Person::sits_down();
    let mut command = repo.command(BINARY, &repo.root());
    command.args(["orchestrate", "--script", "../script.toml", "--permissions", "allow"]).env("TERM", "xterm");
    let child = person.starts(command);
    person.waits_for("squad> ");
    (person, child)
}

/// Those that Ada worked in, by the ledger.
fn sessions(repo: &TestRepo) -> Vec<String> {
    let found = repo.git(&["grep", "-h", "-o", "squad-ada[-0-9a-f]*", "refs/squad/log"]);
    found.lines().map(str::to_owned).collect()
}

#[test]
fn messages_follow_upon_each_other_in_the_same_sessions() {
    let repo = TestRepo::with_small_team();
    let (mut person, mut child) = begun(&repo, TWO);
    person.types("@ada begin\r");
    person.waits_for("First.");
    person.waits_for_times("squad> ", 2);
    // An agent's name is completed, and a line that ends with a backslash goes on.
    person.types("@ad\tgo on \\\rwith it\r");
    person.waits_for("Second.");
    person.types("/status\r");
    person.waits_for("ledger ");
    person.types("/nonsense @bob is a message\r");
    person.waits_for("  1 bob");
    // Typed while the team works, it is read when it is done.
    person.types("/agents\r");
    person.waits_for("Backend Dev");
    person.types("/quit\r");
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{}", person.screen);
    let used = sessions(&repo);
    assert!(used.len() >= 2 && used.iter().all(|session| *session == used[0]), "one session: {used:?}");
    let runs: serde_json::Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
    let messages: Vec<&str> =
        runs["runs"].as_array().expect("a list").iter().filter_map(|run| run["message"].as_str()).collect();
    assert!(messages.contains(&"@ada begin") && messages.contains(&"@ada go on \nwith it"), "{messages:?}");
}

/// While squad reads what the run needs, the terminal is silent, too.
#[test]
fn what_is_typed_before_the_run_begins_is_not_echoed() {
    let repo = TestRepo::with_small_team();
    let (mut person, mut child) = begun(&repo, "");
    let pipe = repo.root().join("../script.toml");
    std::fs::remove_file(&pipe).expect("it was written");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("it runs").success());
    person.types("@ada begin\r");
    // Opens as soon as squad reads the script.
    let mut script = File::options().write(true).open(&pipe).expect("a pipe");
    let modes = modes(&person);
    script.write_all(TWO.as_bytes()).expect("it is read");
    drop(script);
    assert!(!modes.contains(LocalModes::ECHO), "{modes:?}");
    person.types("/agents");
    person.waits_for("squad> /agents");
    person.waits_for("First.");
    person.types("\r");
    person.waits_for("Backend Dev");
    person.types("/quit\r");
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{}", person.screen);
}

/// A charter that is saved while a conversation goes on holds from the next message on, in the same session.
#[test]
fn a_charter_saved_in_a_conversation_holds_from_the_next_message() {
    let repo = TestRepo::with_small_team();
    let (mut person, mut child) = begun(&repo, TWO);
    person.types("@ada begin\r");
    person.waits_for("First.");
    person.waits_for_times("squad> ", 2);
    repo.write(".squad/agents/ada/charter.md", "# Ada\n\nI write it twice.\n");
    person.types("@ada go on\r");
    person.waits_for("session is made anew");
    person.waits_for("Second.");
    person.types("/quit\r");
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{}", person.screen);
    let used = sessions(&repo);
    assert!(used.len() >= 2 && used.iter().all(|session| *session == used[0]), "one session: {used:?}");
    let resumed = repo.git(&["grep", "-h", "\"changed\":true", "refs/squad/log"]);
    assert_eq!(resumed.lines().count(), 1, "{resumed}");
}

#[test]
fn an_interrupt_ends_the_turn_and_the_conversation_goes_on() {
    let repo = TestRepo::with_small_team();
    let (mut person, mut child) = begun(&repo, ENDLESS);
    person.types("@ada think\r");
    person.waits_for("I think.");
    let done = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(done.expect("kill runs").success());
    person.waits_for("what happened");
    person.types("/help\r");
    person.waits_for("Each line is a message to the team");
    person.types("/quit\r");
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{}", person.screen);
    repo.assert_sound();
}

/// Stopped by Ctrl-Z, the terminal is the shell's for a while, which wants whole lines.
#[test]
fn after_a_stop_keys_are_heard_as_before() {
    let repo = TestRepo::with_small_team();
    let (mut person, mut child) = begun(&repo, ENDLESS);
    person.types("@ada think\r");
    person.waits_for("I think.");
    let raw = modes(&person);
    signal(&child, "STOP");
    is_stopped(&child);
    let mut lines = tcgetattr(&person.terminal).expect("a terminal");
    lines.local_modes.insert(LocalModes::ICANON | LocalModes::ECHO);
    tcsetattr(&person.terminal, OptionalActions::Now, &lines).expect("set");
    signal(&child, "CONT");
    waits_for_modes(&person, raw);
    person.types("/cancel\r");
    person.waits_for("what happened");
    person.types("/quit\r");
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{}", person.screen);
}

/// At the prompt there is nothing to be ended first, before a message and after it.
#[test]
fn a_signal_at_the_prompt_ends_the_program_and_gives_the_terminal_back() {
    for messages in [0, 1] {
        let repo = TestRepo::with_small_team();
        repo.write("../script.toml", TWO);
        let mut person = Person::sits_down();
        let before = modes(&person);
        let mut command = repo.command(BINARY, &repo.root());
        command.args(["orchestrate", "--script", "../script.toml", "--permissions", "allow"]).env("TERM", "xterm");
        let mut child = person.starts(command);
        person.waits_for("squad> ");
        for _ in 0..messages {
            person.types("@ada begin\r");
            person.waits_for("what happened");
            person.waits_for_times("squad> ", 2);
        }
        // As long as the prompt takes from its words to its signals.
        std::thread::sleep(std::time::Duration::from_millis(300));
        let done = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
        assert!(done.expect("kill runs").success());
        assert_eq!(child.wait().expect("it ends").code(), Some(130), "{}", person.screen);
        assert_eq!(modes(&person), before, "{messages}");
    }
}

#[test]
fn a_terminal_that_is_closed_at_work_ends_the_program() {
    let repo = TestRepo::with_small_team();
    let (mut person, mut child) = begun(&repo, ENDLESS);
    person.types("@ada think\r");
    person.waits_for("I think.");
    drop(person);
    let done = std::process::Command::new("kill").args(["-HUP", &child.id().to_string()]).status();
    assert!(done.expect("kill runs").success());
    let code = child.wait().expect("it ends").code();
    assert!(code.is_some_and(|code| code != 101), "no panic: {code:?}");
    repo.assert_sound();
}

#[test]
fn what_was_killed_in_its_first_message_is_gone_on_with() {
    let repo = TestRepo::with_small_team();
    let (mut person, mut child) = begun(&repo, ENDLESS);
    person.types("@ada think\r");
    person.waits_for("I think.");
    child.kill().expect("killed");
    child.wait().expect("it ends");
    repo.write("../script.toml", "[[turn]]\nagent = \"ada\"\nsteps = [{ say = \"Thought.\" }]\n");
    let mut person = Person::sits_down();
    let mut command = repo.command(BINARY, &repo.root());
    command.args(["orchestrate", "--script", "../script.toml", "--permissions", "allow"]).env("TERM", "xterm");
    let mut child = person.starts(command);
    person.waits_for("(its first message was cut short)? [y/N] ");
    person.types("y\r");
    person.waits_for("/resume continues it");
    person.waits_for("squad> ");
    person.types("/resume\r");
    person.waits_for("Thought.");
    person.waits_for("what happened");
    person.types("/quit\r");
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{}", person.screen);
}

/// A command is no answer, and the question stands until it has one.
#[test]
fn commands_are_obeyed_while_a_question_stands() {
    let repo = TestRepo::with_small_team();
    let ask = "[[turn]]\nagent = \"ada\"\nsteps = [{ ask = \"Which port?\" }, { say = \"Done.\" }]\n";
    let (mut person, mut child) = begun(&repo, ask);
    person.types("@ada ask\r");
    person.waits_for("  | Which port?");
    person.types("/status\r");
    person.waits_for("ledger ");
    person.waits_for_times("  | Which port?", 2);
    person.types("8080\r");
    person.waits_for("The answer is: 8080");
    person.waits_for("what happened");
    person.types("/quit\r");
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{}", person.screen);
}

/// The line that is typed next is no answer to what nobody asks any more.
#[test]
fn a_question_that_is_cancelled_takes_no_line() {
    let repo = TestRepo::with_small_team();
    let write = "[[turn]]\nagent = \"ada\"\nsteps = [{ write = \"a.txt\", text = \"x\" }, { say = \"Done.\" }]\n";
    repo.write("../script.toml", write);
    let mut person = Person::sits_down();
    let mut command = repo.command(BINARY, &repo.root());
    command.args(["orchestrate", "--script", "../script.toml", "--permissions", "ask"]).env("TERM", "xterm");
    let mut child = person.starts(command);
    person.waits_for("squad> ");
    person.types("@ada write it\r");
    person.is_asked("ada wants to write a.txt");
    let done = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(done.expect("kill runs").success());
    person.waits_for_times("squad> ", 2);
    // As long as the question's reader may take to see that it is over.
    std::thread::sleep(std::time::Duration::from_millis(300));
    person.types("/help\r");
    person.waits_for("Each line is a message to the team");
    person.types("/quit\r");
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{}", person.screen);
    assert!(!repo.exists("a.txt"));
}

/// Answers the question that stands, and waits until it has gone.
fn allows(person: &mut Person) {
    person.types("y");
    // The question's own last frame has one such line, too.
    while person.screen.rsplit("? help").next().is_some_and(|after| after.matches("Ctrl-C stops").count() < 2) {
        person.reads();
    }
}

/// What is typed when a question comes is kept, and can be gone on with.
#[test]
fn a_question_gives_back_the_line_that_was_begun() {
    let repo = TestRepo::with_small_team();
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ run = \"while [ ! -e go ]; do sleep 0.1; done\" }, \
        { write = \"a.txt\", text = \"x\" }, { listen = true }]\n[[turn]]\nagent = \"bob\"\nsteps = [{ say = \"Tested.\" }]\n";
    repo.write("../script.toml", script);
    let mut person = Person::sits_down();
    let mut command = repo.command(BINARY, &repo.root());
    command.args(["orchestrate", "--script", "../script.toml", "--permissions", "ask"]).env("TERM", "xterm");
    let mut child = person.starts(command);
    person.waits_for("squad> ");
    person.types("@ada begin\r");
    person.is_asked("ada wants to run");
    allows(&mut person);
    person.types("@bob test it aft");
    person.waits_for("squad> @bob test it aft");
    repo.write("go", "");
    person.is_asked("ada wants to write a.txt");
    allows(&mut person);
    person.types("erwards\r");
    person.waits_for("squad> @bob test it afterwards");
    person.waits_for("queued as the next message");
    person.types("@ada done\r");
    person.waits_for("Tested.");
    person.waits_for("what happened");
    person.types("/quit\r");
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{}", person.screen);
    assert_eq!(repo.read("a.txt"), "x");
}

#[test]
fn an_agent_at_work_is_told_what_is_typed_and_another_line_is_the_next_message() {
    let repo = TestRepo::with_small_team();
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ say = \"I begin.\" }, { listen = true }]\n\
        [[turn]]\nagent = \"bob\"\nsteps = [{ say = \"Tested.\" }]\n";
    let (mut person, mut child) = begun(&repo, script);
    person.types("@ada begin\r");
    person.waits_for("I begin.");
    // While the prompt has the terminal, the run waits; a line that is taken back says nothing.
    person.types("@bob test it afterwards");
    person.waits_for("test it afterwards");
    person.types("\r");
    person.waits_for("queued as the next message");
    person.types("/status\r");
    person.waits_for("ledger ");
    person.types("@ada without the cache\r");
    person.waits_for("I was told: without the cache");
    person.waits_for("Tested.");
    person.waits_for_times("what happened", 2);
    person.types("/quit\r");
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{}", person.screen);
    let said = repo.git(&["grep", "-h", "-A30", "kind: \"user.message\"", "refs/squad/log"]);
    assert!(said.contains("without the cache") && said.contains("agent: \"ada\""), "{said}");
    repo.assert_sound();
}

#[test]
fn an_agent_is_cancelled_at_the_prompt_and_the_other_goes_on() {
    let repo = TestRepo::with_small_team();
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ say = \"I think.\" }, { hang = true }]\n\
        [[turn]]\nagent = \"bob\"\nsteps = [{ say = \"I hear.\" }, { listen = true }]\n";
    let (mut person, mut child) = begun(&repo, script);
    person.types("@ada @bob begin\r");
    person.waits_for("I think.");
    person.waits_for("I hear.");
    person.types("/cancel ada\r");
    person.waits_for("cancelled by the user");
    person.types("@ada and you?\r");
    person.waits_for("queued as the next message");
    person.types("@bob stop now\r");
    person.waits_for("I was told: stop now");
    person.waits_for_times("what happened", 2);
    person.types("/quit\r");
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{}", person.screen);
}

#[test]
fn the_next_start_goes_on_with_the_conversation_that_was_left() {
    let repo = TestRepo::with_small_team();
    let (mut person, mut child) = begun(&repo, TWO);
    person.types("@ada begin\r");
    person.waits_for_times("squad> ", 2);
    child.kill().expect("killed");
    child.wait().expect("it ends");
    let mut person = Person::sits_down();
    let mut command = repo.command(BINARY, &repo.root());
    command.args(["orchestrate", "--script", "../script.toml", "--permissions", "allow"]).env("TERM", "xterm");
    let mut child = person.starts(command);
    person.waits_for("(1 message, the last “@ada begin”)? [y/N] ");
    person.types("y\r");
    person.waits_for("squad> ");
    person.types("@ada go on\r");
    person.waits_for("what happened");
    person.types("/quit\r");
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{}", person.screen);
    let used = sessions(&repo);
    assert!(used.len() >= 2 && used.iter().all(|session| *session == used[0]), "one session: {used:?}");
}

#[test]
fn without_a_terminal_there_is_no_conversation() {
    let repo = TestRepo::with_small_team();
    let output = repo.squad(&["orchestrate"]);
    assert!(output.code == 2 && output.err.contains("the message is empty"), "{output}");
}
