//! Frames of the rows of many agents, for `cargo bench`.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::region::{Size, changes};
use super::rows::Rows;
use super::text::{Painter, Text};
use crate::model::{EntryId, Event, EventKind, Position, RunId, Slug};

/// What one frame costs.
pub(crate) struct Frame {
    pub(crate) time: Duration,
    /// The same lines as text, without anything else.
    pub(crate) floor: Duration,
    pub(crate) bytes: usize,
}

/// Frames in which one of these agents has written a word, as it does most often, and the times of all go on.
pub(crate) fn frames(agents: usize, lines: usize, count: u32) -> Vec<Frame> {
    let size = Size { lines, columns: 100 };
    let painter = Painter { has_colors: true, is_ascii: false };
    let names: Vec<Slug> = (1..=agents).filter_map(|number| Slug::fold(&format!("agent-{number}"))).collect();
    let Some(run) = RunId::parse("20260105-090000-0000b1") else { return Vec::new() };
    let mut rows = Rows::default();
    let mut see = |second: u32, agent: Option<&Slug>, kind: EventKind| -> (Timestamp, Vec<Text>, Duration) {
        let at = Timestamp::UNIX_EPOCH + Duration::from_secs(second.into());
        let (run, id, position, causes) = (run.clone(), EntryId::unrecorded(), Position::new(1, 1), Vec::new());
        let event = Event { seq: 1, at, run, agent: agent.cloned(), kind, id, position, causes };
        let start = Instant::now();
        rows.see(&event);
        let lines = rows.lines(size, at);
        (at, lines, start.elapsed())
    };
    see(0, None, EventKind::StepStarted { agents: names.clone() });
    for name in &names {
        let (session, model, compiled_hash) = (name.to_string(), "m".to_owned(), String::new());
        see(0, Some(name), EventKind::SessionCreated { session, model, compiled_hash, seconds: 0.1, warm: false });
        let text = "The cause goes to the log and not to the caller, because no login is asked, 日本語. ".repeat(3);
        see(0, Some(name), EventKind::MessageDelta { text });
    }
    let mut before = see(1, None, EventKind::StepStarted { agents: Vec::new() }).1;
    let mut frames = Vec::new();
    for (number, name) in (0..count).zip(names.iter().cycle()) {
        let (_, after, seen) = see(2 + number, Some(name), EventKind::MessageDelta { text: "word ".to_owned() });
        let start = Instant::now();
        let text = changes(&before, &after, painter);
        let time = seen + start.elapsed();
        let start = Instant::now();
        let plain = after.iter().map(Text::to_string).collect::<String>();
        let floor = start.elapsed();
        assert!(plain.contains("agent-1"), "there are rows");
        frames.push(Frame { time, floor, bytes: text.len() });
        before = after;
    }
    frames
}
