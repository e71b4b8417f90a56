//! Events and keys in, text out, without a terminal.

use expect_test::{Expect, expect};
use unicode_width::UnicodeWidthStr;

use super::agents::Agents;
use super::block::{block, partial_line};
use super::controls::{Action, Controls, Dialog};
use super::recent::Recent;
use crate::model::samples::every_kind;
use crate::model::{
    ConnectionState, End, EntryId, Event, EventKind, Plan, PlanKind, Position, Proposal, RunId, Slug, Tier, Usage,
};
use crate::view::channel::UserCommand;
use crate::view::every_kind_tests::{ESCAPES, commands, planted};
use crate::view::keys::Key;
use crate::view::region::Size;

const WATCH: &str = "20260105-090000-0000aa";
const RUN: &str = "20260105-090000-0000b1";
const OTHER: &str = "20260105-090000-0000c2";
const WIDE: Size = Size { lines: 30, columns: 120 };

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
            > ada  idle
              bob  idle
            rehearsal 1.0 connected; no run; Enter looks in; up/down choose; c cancels; a answers; ? keys; q ends
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
            > ada  active     0000b1 step 1/2  shell cargo test --workspace                             1:02  12k in 987 out  $0.12
              ada  active     0000c2  is writing                                                                               0:58
              bob  suspended
              zoe  waiting    0000c2  waits for its turn                                                                       0:59
            rehearsal 1.0 connected; 2 runs; Enter looks in; up/down choose; c cancels; a answers; ? keys; q ends
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
            > ada  idle       completed                                                                       12k in 987 out  $0.12
              bob  spawning
              zoe  waiting    0000c2  waits for its turn                                                                       0:59
            rehearsal 1.0 reconnecting; 2 runs; Enter looks in; up/down choose; c cancels; a answers; ? keys; q ends
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
            > a-very-long-n…  idle
              ada             active     0000b1 step 1/2  …
              bob             idle
              and 3 more
            c cancels; a answers; ? keys; q ends
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
              cyd             idle
              dan             idle
            > eve             idle
              and 3 more
            c cancels; a answers; ? keys; q ends
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
            > ada  active     0000b1 step 1/2  shell[U+001B][2J a[U+001B]]0;x[U+0007][U+000D]b                                 1:02
              bob  idle
            rehearsal 1.0 connected; 1 run; Enter looks in; up/down choose; c cancels; a answers; ? keys; q ends
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
            > ada  active     0000b1 step 1/2  asks: wants to write a.txt, a new file of 1 line                                1:02
              bob  idle
            rehearsal 1.0 connected; 1 run; Enter looks in; up/down choose; c cancels; a answers; ? keys; q ends
        "#]],
    );
    let ada = Slug::fold("ada").expect("a slug");
    assert_eq!(controls.press(Key::Char('a'), &agents), Action::ShowQuestion(ada, asks.to_owned()));
    for key in [Key::Char('n'), Key::Backspace, Key::Char('y')] {
        assert_eq!(controls.press(key, &agents), Action::Nothing);
    }
    inputs(
        &agents,
        &controls,
        WIDE,
        &expect![[r#"
            > ada  active     0000b1 step 1/2  asks: wants to write a.txt, a new file of 1 line                                1:02
              bob  idle
            ada wants to write a.txt, a new file of 1 line
                 1 + x
            y yes, once, n no, or say why not: y_   (Enter answers, Esc leaves it open)
            rehearsal 1.0 connected; 1 run; Enter looks in; up/down choose; c cancels; a answers; ? keys; q ends
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
        > ada  active     0000b1 step 1/2  shell cargo test --workspace                                                    1:02
          bob  idle
        rehearsal 1.0 connected; 1 run; the question was answered or is no longer needed
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
        > ada          active     0000b1 step 1/2  shell cargo test --workspace                                            1:02
          bob          idle
          coordinator  waiting    0000b1 step 1/2  asks: Who works on it: ada, bob? [Enter: nobody]                        0:58
        rehearsal 1.0 connected; 1 run; ada asks nothing
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
            > ada  active     0000b1 step 1/2  asks: wants to write a.txt, a new file of 1 line                                1:02
              bob  idle
            ! ada wants to write a.txt, a new file of 1 line
                 1 + x
              y yes, once    a always for ada: writes in this project    r always in this run, for any agent
              k in later runs too    n no    s no, and say why (ada reads it)    ? help
              (Esc leaves it open)
            rehearsal 1.0 connected; 1 run; Enter looks in; up/down choose; c cancels; a answers; ? keys; q ends
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
fn work_is_cancelled_by_key_and_only_after_a_yes() {
    let agents = at_work();
    let mut controls = Controls::default();
    controls.press(Key::Char('c'), &agents);
    inputs(
        &agents,
        &controls,
        WIDE,
        &expect![[r#"
            > ada  active     0000b1 step 1/2  shell cargo test --workspace                                                    1:02
              bob  idle
            cancel the work of ada in run 0000b1? y/n
            rehearsal 1.0 connected; 1 run; Enter looks in; up/down choose; c cancels; a answers; ? keys; q ends
        "#]],
    );
    assert_eq!(controls.press(Key::Char('n'), &agents), Action::Nothing);
    controls.press(Key::Char('c'), &agents);
    let cancel = UserCommand::Cancel { run: RunId::new(RUN), agent: slug("ada") };
    assert_eq!(controls.press(Key::Char('y'), &agents), Action::UserCommand(cancel));
    controls.press(Key::Down, &agents);
    controls.press(Key::Char('c'), &agents);
    assert_eq!(controls.notice.as_deref(), Some("bob has no work to cancel"));
    assert_eq!(controls.press(Key::Char('q'), &agents), Action::End);
    assert_eq!(controls.press(Key::Control('d'), &agents), Action::End);
    controls.press(Key::Char('?'), &agents);
    inputs(
        &agents,
        &controls,
        WIDE,
        &expect![[r#"
              ada  active     0000b1 step 1/2  shell cargo test --workspace                                                    1:02
            > bob  idle
            up, down, k, j  choose an agent
            Enter           look into it; Esc goes back
            c               cancel its work
            a               answer what it asks
            ?               these keys
            q, Ctrl-D       end the watch and what runs in it, like Ctrl-C
            Ctrl-Z          stop; `fg` goes on
            rehearsal 1.0 connected; 1 run; Enter looks in; up/down choose; c cancels; a answers; ? keys; q ends
        "#]],
    );
    assert_eq!(controls.press(Key::Escape, &agents), Action::Nothing);
    assert_eq!(controls.press(Key::Enter, &agents), Action::Inspect(slug("bob")));
    assert_eq!(controls.press(Key::Escape, &agents), Action::Back);
}

#[test]
fn a_message_in_pieces_is_shown_once() {
    let mut recent = Recent::default();
    let mut note = |kind| recent.note(&at(RUN, "ada", 5, kind)).into_iter().map(|(_, line)| line).collect::<Vec<_>>();
    let delta = |text: &str| EventKind::MessageDelta { text: text.to_owned() };
    assert_eq!(note(delta("First li")), Vec::<String>::new());
    assert_eq!(note(delta("ne.\nSec")), ["First line."]);
    assert_eq!(note(delta("ond.")), Vec::<String>::new());
    assert_eq!(note(EventKind::Message { text: "First line.\nSecond.".to_owned() }), ["Second."]);
    assert_eq!(note(EventKind::Message { text: "All\nat once.".to_owned() }), ["All", "at once."]);
    assert_eq!(note(delta("Cut o")), Vec::<String>::new());
    assert_eq!(note(tool("shell", "ls")), ["Cut o", "shell ls"]);
    let ada = slug("ada");
    assert_eq!(recent.lines(&ada).count(), 6);
    recent.note(&at(RUN, "ada", 6, delta("so far")));
    assert_eq!(recent.partial_line(&ada), "so far");
}

/// Every kind × the rows, the line being written, and a dialog.
#[test]
fn no_kind_lets_an_escape_sequence_into_the_block() {
    let now = "2026-01-05T09:01:05Z".parse().expect("a time stamp");
    let asked = EventKind::QuestionAsked { question: 1, text: format!("May I?\n{ESCAPES} y/n"), proposal: None };
    let mut shown = 0;
    for kind in every_kind().into_iter().chain([asked]) {
        for dialog in ["", "?", "a", "c"] {
            let (planted, _) = planted(&kind, ESCAPES);
            let (mut agents, mut recent, mut controls) = (at_work(), Recent::default(), Controls::default());
            let event = at(RUN, "ada", 5, planted);
            agents.note(&event);
            recent.note(&event);
            dialog.chars().for_each(|key| drop(controls.press(Key::Char(key), &agents)));
            let mut text = block(&agents, &controls, now, WIDE).join("\n");
            text.push_str(&partial_line(recent.partial_line(&slug("ada")), WIDE));
            assert_eq!(commands(&text), [' '; 0], "{kind:?}: {text:?}");
            shown += usize::from(text.contains("U+001B"));
        }
    }
    assert!(shown > 10, "{shown}");
}
