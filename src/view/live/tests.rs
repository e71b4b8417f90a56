//! Events and keys in, text out, without a terminal.

use std::sync::Arc;

use expect_test::{Expect, expect};
use jiff::Timestamp;
use parking_lot::Mutex;
use proptest::prelude::*;
use unicode_width::UnicodeWidthStr;

use super::agents::Agents;
use super::block as blocks;
use super::controls::{Action, Controls, Dialog};
use super::recent::Recent;
use super::{Board, Live};
use crate::env::{Clock, Streams};
use crate::model::samples::every_kind;
use crate::model::{
    ConnectionState, End, EntryId, Event, EventKind, Outcome, Plan, PlanKind, Position, Proposal, RunId, Slug, Tier,
    Usage,
};
use crate::pool::LiveSessions;
use crate::ui::{OutputOptions, Ui};
use crate::view::channel::{UserCommand, ViewInput, ViewReceiver};
use crate::view::every_kind_tests::{ESCAPES, commands, planted};
use crate::view::keys::Key;
use crate::view::region::Size;
use crate::view::rows::Rows;
use crate::view::text::Text;

const WATCH: &str = "20260105-090000-0000aa";
const RUN: &str = "20260105-090000-0000b1";
const OTHER: &str = "20260105-090000-0000c2";
const WIDE: Size = Size { lines: 30, columns: 120 };

fn block(agents: &Agents, controls: &Controls, now: Timestamp, size: Size) -> Vec<String> {
    let lines = blocks::block("shop", agents, controls, now, size);
    lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect()
}

fn slug(name: &str) -> Slug {
    Slug::fold(name).expect("a name")
}

fn at(run: &str, agent: &str, second: u32, kind: EventKind) -> Event {
    Event {
        seq: 1,
        at: format!("2026-01-05T09:{:02}:{:02}Z", second / 60, second % 60).parse().expect("a time stamp"),
        run: RunId::new(run),
        agent: Slug::fold(agent),
        kind,
        id: EntryId::new("i"),
        position: Position::new(1, 1),
        causes: Vec::new(),
    }
}

fn created(session: &str) -> EventKind {
    let (model, compiled_hash) = ("gpt-5".to_owned(), String::new());
    EventKind::SessionCreated { session: session.to_owned(), model, compiled_hash, seconds: 0.1, warm: false }
}

fn run_started() -> EventKind {
    serde_json::from_value(serde_json::json!({
        "type": "run.started", "text": "Add it", "engine": "rehearsal", "branch": null, "commit": null,
    }))
    .expect("an event")
}

fn planned(agents: &[&str], steps: usize) -> EventKind {
    let agents: Vec<Slug> = agents.iter().map(|agent| slug(agent)).collect();
    EventKind::RoutePlanned(Plan {
        kind: PlanKind::Agents,
        agents: agents.clone(),
        steps: vec![agents; steps],
        reviewer: None,
        other_reviewers: Vec::new(),
        tier: Tier::Standard,
        confidence: 1.0,
        evidence: Vec::new(),
        ceremonies: Vec::new(),
        overlaps: Vec::new(),
    })
}

fn connection(state: ConnectionState) -> Event {
    at(WATCH, "", 0, EventKind::ConnectionChanged { engine: "rehearsal".to_owned(), state })
}

fn question(number: u64, text: &str) -> EventKind {
    EventKind::QuestionAsked { question: number, text: text.to_owned(), proposal: None }
}

fn tool(tool: &str, detail: &str) -> EventKind {
    EventKind::ToolStarted { call: "1".to_owned(), tool: tool.to_owned(), detail: detail.to_owned() }
}

/// A team with no one at work.
fn rested() -> Agents {
    let mut agents = Agents::default();
    let started = EventKind::EngineStarted {
        engine: "rehearsal".to_owned(),
        version: "1.0".to_owned(),
        seconds: 0.1,
        warm: false,
    };
    for event in [
        connection(ConnectionState::Connecting),
        at(WATCH, "", 0, started),
        connection(ConnectionState::Connected),
        at(WATCH, "ada", 1, created("squad-ada")),
        at(WATCH, "bob", 1, created("squad-bob")),
    ] {
        agents.note(&event);
    }
    agents
}

/// The same with ada at work.
fn at_work() -> Agents {
    let mut agents = rested();
    for event in [
        at(RUN, "", 2, run_started()),
        at(RUN, "", 2, planned(&["ada"], 2)),
        at(RUN, "ada", 3, created("squad-ada")),
        at(RUN, "ada", 4, tool("shell", "cargo test --workspace")),
    ] {
        agents.note(&event);
    }
    agents
}

fn inputs(agents: &Agents, controls: &Controls, size: Size, expected: &Expect) {
    let now = "2026-01-05T09:01:05Z".parse().expect("a time stamp");
    let mut text = block(agents, controls, now, size).join("\n");
    assert!(text.lines().all(|line| line.width() < size.columns), "{text}");
    assert!(text.lines().count() < size.lines, "{text}");
    text.push('\n');
    expected.assert_eq(&text);
}

#[test]
fn each_agent_has_a_row_with_its_activity() {
    let mut agents = rested();
    let controls = Controls::default();
    inputs(
        &agents,
        &controls,
        WIDE,
        &expect![[r#"
            squad watch · shop · rehearsal 1.0 · no run
            >  ada  idle
               bob  idle
            Enter its text   ↑↓ agent   / find   D diff   m message   c cancel   a answer   ? keys   q quit
        "#]],
    );
    agents = at_work();
    let usage = Usage { input_tokens: 12_345, output_tokens: 987, cost_usd: Some(0.123), ..Usage::default() };
    agents.note(&at(RUN, "ada", 5, EventKind::Usage(usage)));
    // In a second run, the working agent has an extra session, and another agent waits.
    agents.note(&at(OTHER, "", 6, run_started()));
    agents.note(&at(OTHER, "", 6, EventKind::StepStarted { agents: vec![slug("ada"), slug("zoe")] }));
    agents.note(&at(OTHER, "ada", 7, created("squad-ada-other")));
    agents.note(&at(OTHER, "ada", 8, EventKind::MessageDelta { text: "I".to_owned() }));
    agents.note(&at(WATCH, "bob", 9, EventKind::SessionSuspended { session: "squad-bob".to_owned() }));
    inputs(
        &agents,
        &controls,
        WIDE,
        &expect![[r#"
            squad watch · shop · rehearsal 1.0 · 2 runs
            >● ada  $ cargo test --workspace  61 s                                                              1:02    13k  0000b1
             ● ada  I                                                                                                  0:58  0000c2
               bob  suspended
             ○ zoe  waits for a slot                                                                                         0000c2
            Enter its text   ↑↓ agent   / find   D diff   m message   c cancel   a answer   ? keys   q quit
        "#]],
    );
    // After the end, its own session stays and the extra one is gone.
    agents.note(&at(RUN, "ada", 20, EventKind::Completed(End::default())));
    agents.note(&at(OTHER, "ada", 20, EventKind::Failed(End::default())));
    agents.note(&at(WATCH, "bob", 21, EventKind::SessionSpawning { session: "squad-bob".to_owned() }));
    agents.note(&connection(ConnectionState::Reconnecting));
    inputs(
        &agents,
        &controls,
        WIDE,
        &expect![[r#"
            squad watch · shop · rehearsal 1.0 reconnecting · 2 runs
            >  ada  idle, completed
               bob  spawning
             ○ zoe  waits for a slot                                                                                         0000c2
            Enter its text   ↑↓ agent   / find   D diff   m message   c cancel   a answer   ? keys   q quit
        "#]],
    );
}

#[test]
fn a_small_terminal_shows_what_fits() {
    let mut agents = at_work();
    for name in ["cyd", "dan", "eve", "a-very-long-name-indeed", "日本"] {
        agents.note(&at(WATCH, name, 1, created(&format!("squad-{name}"))));
    }
    let mut controls = Controls::default();
    inputs(
        &agents,
        &controls,
        Size { lines: 6, columns: 48 },
        &expect![[r#"
            >  a-very-long…  idle
             ● ada           $ cargo test --workspa…   1:02
               bob           idle
               and 3 more
            c cancel   a answer   ? keys   q quit
        "#]],
    );
    for _ in 0..5 {
        controls.press(Key::Down, &agents);
    }
    inputs(
        &agents,
        &controls,
        Size { lines: 6, columns: 48 },
        &expect![[r#"
               cyd           idle
               dan           idle
            >  eve           idle
               and 3 more
            c cancel   a answer   ? keys   q quit
        "#]],
    );
    for size in [(2, 20), (3, 10), (4, 3), (2, 1)] {
        let (lines, columns) = size;
        shows_something(&agents, &controls, Size { lines, columns });
    }
}

fn shows_something(agents: &Agents, controls: &Controls, size: Size) {
    let block = block(agents, controls, "2026-01-05T09:01:05Z".parse().expect("a time stamp"), size);
    assert!(block.len() < size.lines, "{block:?}");
    assert!(block.iter().all(|line| line.width() < size.columns), "{block:?}");
}

#[test]
fn output_of_models_cannot_move_the_cursor() {
    let mut agents = at_work();
    agents.note(&at(RUN, "ada", 5, tool("shell\u{1b}[2J", "a\u{1b}]0;x\u{7}\rb")));
    inputs(
        &agents,
        &Controls::default(),
        WIDE,
        &expect![[r#"
            squad watch · shop · rehearsal 1.0 · 1 run
            >● ada  shell[U+001B][2J a[U+001B]]0;x[U+0007][U+000D]b  60 s                                                      1:02
               bob  idle
            Enter its text   ↑↓ agent   / find   D diff   m message   c cancel   a answer   ? keys   q quit
        "#]],
    );
    agents.note(&at(RUN, "ada", 5, question(1, "ada asks:\n  | \u{1b}[1A?\n> ")));
    let mut controls = Controls::default();
    controls.press(Key::Char('a'), &agents);
    controls.press(Key::Char('\u{9b}'), &agents);
    let now = "2026-01-05T09:01:05Z".parse().expect("a time stamp");
    let text = block(&agents, &controls, now, WIDE).join("\n");
    assert!(!text.contains(|letter: char| letter != '\n' && letter.is_control()), "{text:?}");
}

#[test]
fn a_question_is_answered_by_key() {
    let mut agents = at_work();
    let asks = "ada wants to write a.txt, a new file of 1 line\n     1 + x\ny yes, once, n no, or say why not: ";
    agents.note(&at(RUN, "ada", 5, question(7, asks)));
    let mut controls = Controls::default();
    inputs(
        &agents,
        &controls,
        WIDE,
        &expect![[r#"
            squad watch · shop · rehearsal 1.0 · 1 run · 1 question
            >! ada  asks: write a.txt, a new file of 1 line                                                                    0:02
               bob  idle
            Enter its text   ↑↓ agent   / find   D diff   m message   c cancel   a answer   ? keys   q quit
        "#]],
    );
    assert_eq!(controls.press(Key::Char('a'), &agents), Action::ShowQuestion(asks.to_owned()));
    for key in [Key::Char('n'), Key::Backspace, Key::Char('y')] {
        assert_eq!(controls.press(key, &agents), Action::Nothing);
    }
    inputs(
        &agents,
        &controls,
        WIDE,
        &expect![[r#"
            squad watch · shop · rehearsal 1.0 · 1 run · 1 question
            >! ada  asks: write a.txt, a new file of 1 line                                                                    0:02
               bob  idle
            ada wants to write a.txt, a new file of 1 line
                 1 + x
            y yes, once, n no, or say why not: y_   (Enter answers, Esc leaves it open)
            Enter its text   ↑↓ agent   / find   D diff   m message   c cancel   a answer   ? keys   q quit
        "#]],
    );
    let answer = UserCommand::Answer { run: RunId::new(RUN), question: 7, text: "y".to_owned() };
    assert_eq!(controls.press(Key::Enter, &agents), Action::UserCommand(answer));
    // A question answered elsewhere while the user types is closed.
    controls.press(Key::Char('a'), &agents);
    agents.note(&at(RUN, "ada", 6, EventKind::QuestionAnswered { question: 7 }));
    controls.settle(&agents);
    inputs(
        &agents,
        &controls,
        WIDE,
        &expect![[r#"
            squad watch · shop · rehearsal 1.0 · 1 run
            >● ada  $ cargo test --workspace  61 s                                                                             1:01
               bob  idle
            the question was answered or is no longer needed
        "#]],
    );
    assert_eq!(controls.press(Key::Char('a'), &agents), Action::Nothing);
    assert_eq!(controls.notice.as_deref(), Some("ada asks nothing"));
    // The coordinator's row shows the run's own question while it is open.
    let asks = Event { agent: None, ..at(RUN, "", 7, question(8, "Who works on it: ada, bob? [Enter: nobody] ")) };
    agents.note(&asks);
    inputs(
        &agents,
        &controls,
        WIDE,
        &expect![[r#"
            squad watch · shop · rehearsal 1.0 · 1 run · 1 question
            >● ada          $ cargo test --workspace  61 s                                                                     1:01
               bob          idle
             ! coordinator  asks: Who works on it: ada, bob? [Enter: nobody]
            ada asks nothing
        "#]],
    );
    agents.note(&Event { agent: None, ..at(RUN, "", 8, EventKind::QuestionAnswered { question: 8 }) });
    assert_eq!(agents.rows().len(), 2);
}

/// The same question, with the same keys, as at the terminal of a run.
#[test]
fn a_permission_is_answered_with_one_key() {
    let mut agents = at_work();
    let proposal = Proposal {
        agent: Slug::fold("ada").expect("a slug"),
        title: "ada wants to write a.txt, a new file of 1 line".to_owned(),
        body: vec!["     1 + x".to_owned()],
        is_command: false,
        always: Some("writes in this project".to_owned()),
    };
    let asked = EventKind::QuestionAsked { question: 7, text: proposal.text(), proposal: Some(Box::new(proposal)) };
    agents.note(&at(RUN, "ada", 5, asked));
    let mut controls = Controls::default();
    let answer = |text: &str| {
        Action::UserCommand(UserCommand::Answer { run: RunId::new(RUN), question: 7, text: text.to_owned() })
    };
    assert_eq!(controls.press(Key::Char('a'), &agents), Action::Nothing);
    inputs(
        &agents,
        &controls,
        WIDE,
        &expect![[r#"
            squad watch · shop · rehearsal 1.0 · 1 run · 1 question
            >! ada  asks: write a.txt, a new file of 1 line                                                                    0:02
               bob  idle
            ! ada wants to write a.txt, a new file of 1 line
                 1 + x
              y yes, once    a always for ada: writes in this project    r always in this run, for any agent
              k in later runs too    n no    s no, and say why (ada reads it)    ? help
              (Esc leaves it open)
            Enter its text   ↑↓ agent   / find   D diff   m message   c cancel   a answer   ? keys   q quit
        "#]],
    );
    // Enter answers nothing, and Esc leaves it open.
    assert_eq!(controls.press(Key::Enter, &agents), Action::Nothing);
    assert_eq!(controls.press(Key::Escape, &agents), Action::Nothing);
    assert!(matches!(controls.dialog, Dialog::None));
    for (keys, text) in [("ay", "y"), ("ar", "r"), ("aa", "a"), ("an", "n")] {
        let pressed: Vec<Action> = keys.chars().map(|key| controls.press(Key::Char(key), &agents)).collect();
        assert_eq!(pressed, [Action::Nothing, answer(text)], "{keys}");
    }
    for key in "asno".chars() {
        assert_eq!(controls.press(Key::Char(key), &agents), Action::Nothing);
    }
    assert_eq!(controls.press(Key::Enter, &agents), answer("s no"));
}

#[test]
fn work_is_cancelled_by_key_after_a_yes_and_told_by_key() {
    let agents = at_work();
    let mut controls = Controls::default();
    controls.press(Key::Char('c'), &agents);
    inputs(
        &agents,
        &controls,
        WIDE,
        &expect![[r#"
            squad watch · shop · rehearsal 1.0 · 1 run
            >● ada  $ cargo test --workspace  61 s                                                                             1:02
               bob  idle
            cancel the work of ada in run 0000b1? y/n
            Enter its text   ↑↓ agent   / find   D diff   m message   c cancel   a answer   ? keys   q quit
        "#]],
    );
    assert_eq!(controls.press(Key::Char('n'), &agents), Action::Nothing);
    controls.press(Key::Char('c'), &agents);
    let cancel = UserCommand::Cancel { run: RunId::new(RUN), agent: slug("ada") };
    assert_eq!(controls.press(Key::Char('y'), &agents), Action::UserCommand(cancel));
    for key in "mstop!".chars().map(Key::Char).chain([Key::Backspace]) {
        assert_eq!(controls.press(key, &agents), Action::Nothing);
    }
    inputs(
        &agents,
        &controls,
        WIDE,
        &expect![[r#"
            squad watch · shop · rehearsal 1.0 · 1 run
            >● ada  $ cargo test --workspace  61 s                                                                             1:02
               bob  idle
            to ada: stop_   (Enter sends, Esc does not)
            Enter its text   ↑↓ agent   / find   D diff   m message   c cancel   a answer   ? keys   q quit
        "#]],
    );
    let say = UserCommand::Say { run: RunId::new(RUN), agent: slug("ada"), text: "stop".to_owned() };
    assert_eq!(controls.press(Key::Enter, &agents), Action::UserCommand(say));
    controls.press(Key::Char('m'), &agents);
    assert_eq!(controls.press(Key::Enter, &agents), Action::Nothing, "it says nothing");
    controls.press(Key::Down, &agents);
    controls.press(Key::Char('c'), &agents);
    assert_eq!(controls.notice.as_deref(), Some("bob is not at work"));
    assert_eq!(controls.press(Key::Char('q'), &agents), Action::End);
    assert_eq!(controls.press(Key::Control('d'), &agents), Action::End);
    controls.press(Key::Char('?'), &agents);
    inputs(
        &agents,
        &controls,
        WIDE,
        &expect![[r#"
            squad watch · shop · rehearsal 1.0 · 1 run
             ● ada  $ cargo test --workspace  61 s                                                                             1:02
            >  bob  idle
            up, down, k, j  choose an agent
            Enter           look into it; Esc goes back
            m               send it a message while it works
            c               cancel its work
            a               answer what it asks
            D               what it changed in its run; Esc goes back
            /               choose the next agent that has a text
            ?               these keys
            q, Ctrl-D       end the watch and what runs in it, like Ctrl-C
            Ctrl-Z          stop; `fg` goes on
            Enter its text   ↑↓ agent   / find   D diff   m message   c cancel   a answer   ? keys   q quit
        "#]],
    );
    assert_eq!(controls.press(Key::Escape, &agents), Action::Nothing);
    assert_eq!(controls.press(Key::Enter, &agents), Action::Inspect(slug("bob")));
    assert_eq!(controls.press(Key::Escape, &agents), Action::Back);
}

#[test]
fn changes_are_those_of_the_run_that_an_agent_works_in_or_worked_in_last() {
    let mut agents = at_work();
    let mut controls = Controls::default();
    let of_ada = || Action::ShowChanges { run: RunId::new(RUN), agent: slug("ada") };
    assert_eq!(controls.press(Key::Char('D'), &agents), of_ada());
    agents.note(&at(RUN, "ada", 20, EventKind::Completed(End::default())));
    assert_eq!(controls.press(Key::Char('D'), &agents), of_ada(), "it has ended");
    // Another run in which it waits is the one that it works in.
    agents.note(&at(OTHER, "", 21, run_started()));
    agents.note(&at(OTHER, "", 21, EventKind::StepStarted { agents: vec![slug("ada")] }));
    let other = Action::ShowChanges { run: RunId::new(OTHER), agent: slug("ada") };
    assert_eq!(controls.press(Key::Char('D'), &agents), other);
    controls.press(Key::Down, &agents);
    assert_eq!(controls.press(Key::Char('D'), &agents), Action::Nothing);
    assert_eq!(controls.notice.as_deref(), Some("bob has not worked here yet; `squad diff` shows the newest run"));
    assert_eq!(Controls::default().press(Key::Char('D'), &Agents::default()), Action::Nothing, "nobody is there");
}

/// Shown × Esc in the meantime × nothing to show, and each time the rows go on while they are looked up.
#[test]
fn changes_are_looked_up_while_the_rows_go_on() {
    for (found, key, expected, footer) in [
        (Ok("+one"), None, "+one", Some("viewing the changes of ada: Esc goes back")),
        (Ok("+one"), Some(Key::Escape), "", None),
        (Err("nothing"), None, "", Some("nothing")),
    ] {
        let out = tempfile::NamedTempFile::new().expect("a file");
        let streams = Streams { err: Box::new(out.reopen().expect("it is there")), ..Streams::silent() };
        let board = Mutex::new(Board::new(Ui::new(streams, OutputOptions::default())));
        let (ready, wait) = std::sync::mpsc::channel();
        let wait = Mutex::new(wait);
        let changes = move |_: &RunId, _: &Slug| {
            wait.lock().recv().expect("the test goes on");
            found.map(|line| vec![Text::default().plain(line)]).map_err(str::to_owned)
        };
        let (commands, end) = (tokio::sync::mpsc::unbounded_channel().0, Arc::default());
        let inputs = ViewReceiver::channel(commands, end).1;
        let mut live = Live::new(&board, "shop".to_owned(), Clock::System, Arc::new(changes));
        live.agents = at_work();
        let footer_of = |live: &Live<'_, Ui>| block(&live.agents, &live.controls, Timestamp::UNIX_EPOCH, WIDE).pop();
        // The second one changes nothing: there is one answer.
        for key in [Key::Char('D'), Key::Char('D')] {
            live.handle(ViewInput::Key(key), &inputs);
        }
        live.handle(ViewInput::Event(Box::new(at(RUN, "ada", 6, tool("shell", "cargo doc")))), &inputs);
        let shown = block(&live.agents, &live.controls, Timestamp::UNIX_EPOCH, WIDE).join("\n");
        assert!(shown.contains("cargo doc"), "{shown}");
        assert_eq!(footer_of(&live).as_deref(), Some("looking up the changes of ada …: Esc goes back"));
        if let Some(key) = key {
            live.handle(ViewInput::Key(key), &inputs);
        }
        ready.send(()).expect("they are looked up");
        let changes = inputs.next(None).expect("they come");
        live.handle(changes, &inputs);
        assert!(inputs.next(Some(std::time::Duration::ZERO)).is_none(), "once");
        let text = std::fs::read_to_string(out.path()).expect("text");
        assert_eq!(text.lines().filter(|line| line.starts_with('+')).collect::<String>(), expected, "{text}");
        let all = "Enter its text   ↑↓ agent   / find   D diff   m message   c cancel   a answer   ? keys   q quit";
        assert_eq!(footer_of(&live).as_deref(), Some(footer.unwrap_or(all)));
    }
}

#[test]
fn a_text_is_looked_for_behind_the_chosen_agent() {
    let agents = at_work();
    let mut controls = Controls::default();
    assert_eq!(controls.press(Key::Char('/'), &agents), Action::Nothing);
    assert_eq!(controls.press(Key::Enter, &agents), Action::Nothing, "there is nothing to look for");
    for key in "/ Healx".chars().map(Key::Char).chain([Key::Backspace]) {
        assert_eq!(controls.press(key, &agents), Action::Nothing);
    }
    inputs(
        &agents,
        &controls,
        WIDE,
        &expect![[r#"
            squad watch · shop · rehearsal 1.0 · 1 run
            >● ada  $ cargo test --workspace  61 s                                                                             1:02
               bob  idle
            find:  Heal_   (Enter finds, Esc does not)
            Enter its text   ↑↓ agent   / find   D diff   m message   c cancel   a answer   ? keys   q quit
        "#]],
    );
    assert_eq!(controls.press(Key::Enter, &agents), Action::Find("Heal".to_owned()));
    controls.press(Key::Char('/'), &agents);
    assert_eq!(controls.press(Key::Enter, &agents), Action::Find("Heal".to_owned()), "the same again");
    let names = |controls: &Controls| {
        controls.behind_chosen(&agents).iter().map(|row| row.agent.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(&controls), ["bob", "ada"]);
    controls.go_to(controls.behind_chosen(&agents).remove(0));
    assert_eq!(names(&controls), ["ada", "bob"]);
    assert!(Controls::default().behind_chosen(&Agents::default()).is_empty());

    let mut recent = Recent::default();
    for text in ["GET /health is there.", "All is tested."] {
        recent.note(&at(RUN, "ada", 5, EventKind::Message { text: text.to_owned() }));
    }
    let mut found = |agent: &str, text: &str| {
        let lines = recent.find(&slug(agent), text)?;
        Some(lines.iter().map(Text::to_string).collect::<Vec<_>>())
    };
    assert_eq!(found("ada", "HEALTH"), Some(vec!["  ada    GET /health is there.".to_owned()]));
    assert_eq!(found("ada", "tested"), Some(vec!["  ada    All is tested.".to_owned()]), "said last");
    assert_eq!(found("bob", "Bo"), Some(Vec::new()), "its name");
    assert_eq!(found("bob", "health"), None);
}

/// Whoever is looked into says the same as in the terminal of the run, and each message once.
#[test]
fn who_is_looked_into_has_the_lines_of_the_story() {
    let mut recent = Recent::default();
    let mut note = |kind| recent.note(&at(RUN, "ada", 5, kind)).iter().map(Text::to_string).collect::<Vec<_>>();
    assert_eq!(note(EventKind::MessageDelta { text: "First".to_owned() }), Vec::<String>::new());
    assert_eq!(note(EventKind::Message { text: "First line.\nSecond.".to_owned() }), Vec::<String>::new());
    let denied =
        EventKind::ToolDenied { tool: "write".to_owned(), detail: "a".to_owned(), reason: "not allowed".to_owned() };
    let shown = ["  ada    First line.", "         Second.", "✗ ada    write a    refused: not allowed"];
    assert_eq!(note(denied), shown);
    assert_eq!(note(EventKind::Message { text: "Done.".to_owned() }), Vec::<String>::new());
    let lines: Vec<String> = recent.lines(&slug("ada")).iter().map(Text::to_string).collect();
    assert_eq!(lines, [&shown[..], &["  ada    Done."]].concat());
    assert_eq!(recent.lines(&slug("ada")).len(), 4, "once");
}

/// Every kind × the rows, the lines of who is looked into, and a dialog.
#[test]
fn no_kind_lets_an_escape_sequence_into_the_block() {
    let now = "2026-01-05T09:01:05Z".parse().expect("a time stamp");
    let asked = EventKind::QuestionAsked { question: 1, text: format!("May I?\n{ESCAPES} y/n"), proposal: None };
    let mut shown = 0;
    for kind in every_kind().into_iter().chain([asked]) {
        for dialog in ["", "?", "a", "c", "m", "/"] {
            let (planted, _) = planted(&kind, ESCAPES);
            let (mut agents, mut recent, mut controls) = (at_work(), Recent::default(), Controls::default());
            let event = at(RUN, "ada", 5, planted);
            agents.note(&event);
            let lines = recent.note(&event);
            dialog.chars().for_each(|key| drop(controls.press(Key::Char(key), &agents)));
            let mut text = block(&agents, &controls, now, WIDE).join("\n");
            lines.iter().chain(&recent.lines(&slug("ada"))).for_each(|line| text.push_str(&line.to_string()));
            assert_eq!(commands(&text), [' '; 0], "{kind:?}: {text:?}");
            shown += usize::from(text.contains("U+001B"));
        }
    }
    assert!(shown > 10, "{shown}");
}

/// What is known of an agent from its events alone.
#[derive(Clone, Debug, Default)]
struct Known {
    has_begun: bool,
    has_ended: bool,
    open: Vec<u64>,
    waits_for_quota: bool,
    is_cut_off: bool,
}

impl Known {
    fn waits(&self) -> bool {
        !self.has_begun || !self.open.is_empty() || self.waits_for_quota || self.is_cut_off
    }

    /// The event that a number stands for; `None`: it cannot happen now.
    fn next(&mut self, number: usize, question: u64) -> Option<EventKind> {
        let is_alive = self.has_begun && !self.has_ended;
        Some(match number {
            0 | 1 if !is_alive => {
                *self = Self { has_begun: true, ..Self::default() };
                if number == 0 {
                    created("s")
                } else {
                    EventKind::SessionResumed { session: "s".to_owned(), seconds: 0.1, changed: false }
                }
            }
            2 if is_alive => {
                self.open.push(question);
                self::question(question, "May I?")
            }
            3 => EventKind::QuestionAnswered { question: self.open.pop()? },
            4 if !self.has_ended => {
                self.waits_for_quota = true;
                EventKind::QuotaWaiting { engine: "copilot".to_owned() }
            }
            5 => {
                self.waits_for_quota = false;
                EventKind::QuotaWaited {}
            }
            6 if is_alive => {
                self.is_cut_off = true;
                EventKind::ConnectionLost { reason: "gone".to_owned() }
            }
            7 => {
                self.is_cut_off = false;
                EventKind::ConnectionRestored { attempts: 1 }
            }
            8 => {
                self.is_cut_off = false;
                EventKind::MessageDelta { text: "working".to_owned() }
            }
            9 => tool("shell", "make"),
            10 => EventKind::Usage(Usage { input_tokens: 7, ..Usage::default() }),
            11 if is_alive => {
                *self = Self { has_begun: true, has_ended: true, ..Self::default() };
                EventKind::of_end(Outcome::Failed, End::default())
            }
            _ => return None,
        })
    }
}

proptest! {
    /// Random events × the rows of a run, those of a watch, `squad status` and its JSON: whoever waits is not shown at
    /// work, and whoever has ended is not shown alive.
    #[test]
    fn who_waits_is_not_at_work_and_who_ended_is_not_alive(
        steps in prop::collection::vec((0..3usize, 0..12usize), 1..60),
    ) {
        let names = ["ada", "bob", "zoe"];
        let (mut rows, mut agents, sessions) = (Rows::default(), rested(), LiveSessions::default());
        let mut known: [Known; 3] = Default::default();
        let step = EventKind::StepStarted { agents: names.map(slug).to_vec() };
        for kind in [run_started(), planned(&names, 1), step] {
            let event = at(RUN, "", 2, kind);
            rows.see(&event);
            agents.note(&event);
            sessions.note(&event);
        }
        for (second, (agent, number)) in (3..).zip(steps) {
            let Some(kind) = known[agent].next(number, u64::from(second)) else { continue };
            let event = at(RUN, names[agent], second, kind);
            rows.see(&event);
            agents.note(&event);
            sessions.note(&event);
            let wide = Size { lines: 60, columns: 100 };
            let of_run = rows.lines(wide, event.at).iter().map(Text::to_string).collect::<Vec<_>>();
            let of_watch = block(&agents, &Controls::default(), event.at, wide);
            let activity = sessions.activity();
            let json = serde_json::to_value(&activity).expect("JSON");
            for (name, known) in names.iter().zip(&known) {
                let marks = |lines: &[String]| {
                    let of = lines.iter().filter(|line| line.split_whitespace().any(|word| word == *name));
                    of.filter_map(|line| line.chars().find(|c| "●○!".contains(*c))).collect::<String>()
                };
                let (of_run, of_watch) = (marks(&of_run), marks(&of_watch));
                let state = json["agents"][name].as_str().unwrap_or_default();
                if known.has_ended {
                    prop_assert_eq!((of_run.as_str(), of_watch.as_str(), state), ("", "", "failed"));
                } else if known.waits() {
                    prop_assert!(!of_run.contains('●') && !of_watch.contains('●'), "{} {}", of_run, of_watch);
                    prop_assert!(state.starts_with("waiting"), "{}", state);
                } else {
                    prop_assert_eq!((of_run.as_str(), of_watch.as_str(), state), ("●", "●", "working"));
                }
            }
        }
    }
}
