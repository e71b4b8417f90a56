//! The block below the lines: the state of the watch, a row for each agent, an open dialog, and the keys.

use jiff::Timestamp;
use unicode_width::UnicodeWidthStr;

use super::agents::{Agents, Key, Row};
use super::controls::{Controls, Dialog, Viewed};
use crate::model::{ConnectionState, plural};
use crate::view::LineStyle;
use crate::view::card::MAX_NAME;
use crate::view::region::Size;
use crate::view::text::Text;

/// Fewer columns than this have no room for a run's id.
const RUNS: usize = 60;
/// Lines shown of a question.
const MAX_QUESTION: usize = 8;
/// Characters shown of what is being typed, from its end.
const MAX_TYPED: usize = 50;

const KEYS: [&str; 10] = [
    "up, down, k, j  choose an agent",
    "Enter           look into it; Esc goes back",
    "m               send it a message while it works",
    "c               cancel its work",
    "a               answer what it asks",
    "D               what it changed in its run; Esc goes back",
    "/               choose the next agent that has a text",
    "?               these keys",
    "q, Ctrl-D       end the watch and what runs in it, like Ctrl-C",
    "Ctrl-Z          stop; `fg` goes on",
];

/// In the last line, those that can be missed most first.
const CHOICES: [&str; 9] =
    ["Enter its text", "↑↓ agent", "/ find", "D diff", "m message", "c cancel", "a answer", "? keys", "q quit"];
/// Between them.
const GAP: &str = "   ";
/// Fewer lines than this have no room for the header.
const HEADED: usize = 8;

pub(super) fn block(team: &str, agents: &Agents, controls: &Controls, now: Timestamp, size: Size) -> Vec<Text> {
    let mut block = Vec::from_iter((size.lines >= HEADED).then(|| header(team, agents)));
    let footer = footer(controls, size);
    let room = size.lines.saturating_sub(block.len() + footer.len() + 1);
    block.extend(rows(agents, controls, now, Size { lines: room, ..size }));
    block.extend(footer);
    // On some terminals, a line that reaches the edge wraps.
    let width = size.columns.saturating_sub(1);
    let mut block: Vec<Text> = block.iter().map(|line| line.cut(width)).collect();
    block.drain(..block.len().saturating_sub(size.lines.saturating_sub(1)));
    block
}

/// `squad watch · shop · copilot 1.0.102 · 1 run · 1 question`
fn header(team: &str, agents: &Agents) -> Text {
    let engine = match agents.connection {
        ConnectionState::Connected => agents.engine.clone(),
        state => format!("{} {state}", agents.engine).trim_start().to_owned(),
    };
    let runs = if agents.runs() == 0 { "no run".to_owned() } else { plural(agents.runs(), "run") };
    let mut entries = vec![team.to_owned(), engine, runs];
    entries.extend(Some(agents.questions()).filter(|count| *count > 0).map(|count| plural(count, "question")));
    let about = entries.iter().map(|entry| format!(" · {entry}")).collect::<String>();
    Text::default().with(LineStyle::Strong, "squad watch").with(LineStyle::Faint, &about)
}

fn rows(agents: &Agents, controls: &Controls, now: Timestamp, size: Size) -> Vec<Text> {
    let all: Vec<(&Key, &Row)> = agents.rows().iter().collect();
    let chosen = controls.chosen(agents).and_then(|chosen| all.iter().position(|(key, _)| *key == chosen));
    let fits = size.lines.min(all.len());
    let shown = if fits < all.len() { fits.saturating_sub(1) } else { fits };
    // Scroll so that the selected row is visible.
    let first = chosen.map_or(0, |chosen| (chosen + 1).saturating_sub(shown.max(1)));
    let name = all.iter().map(|(key, _)| key.agent.as_str().width()).max().unwrap_or_default().min(MAX_NAME);
    let line = |(index, (key, row)): (usize, &(&Key, &Row))| {
        let chosen = if chosen == Some(index) { ">" } else { " " };
        let line = line(agents, key, row, name, size.columns.saturating_sub(2), now);
        Text::default().with(LineStyle::Strong, chosen).extend(&line)
    };
    let mut lines: Vec<Text> = all.iter().enumerate().skip(first).take(shown).map(line).collect();
    let more = all.len() - lines.len();
    if more > 0 && fits > 0 {
        lines.push(Text::default().with(LineStyle::Faint, &format!("   and {more} more")));
    }
    lines
}

fn line(agents: &Agents, key: &Key, row: &Row, name: usize, columns: usize, now: Timestamp) -> Text {
    if let Some(work) = &row.work {
        // Of several runs, it is said which one it is.
        let run = (agents.runs() > 1).then(|| format!("  {}", work.run.short()));
        let run = run.filter(|_| columns >= RUNS).unwrap_or_default();
        let room = columns.saturating_sub(run.len());
        let line = work.row.line(name, room, now);
        return if run.is_empty() { line } else { line.filled(room).with(LineStyle::Faint, &run) };
    }
    let state = row.state.map_or_else(|| "waiting".to_owned(), |state| state.to_string());
    let line = Text::unmarked().with(LineStyle::Strong, key.agent.as_str()).cut(2 + name).filled(2 + name);
    let ended = row.ended.map(|outcome| format!(", {outcome}")).unwrap_or_default();
    line.plain("  ").with(LineStyle::Faint, &format!("{state}{ended}"))
}

/// The lines below the rows: dialog and keys.
fn footer(controls: &Controls, size: Size) -> Vec<Text> {
    let plain = |text: &str| Text::default().plain(text);
    let mut footer = Vec::new();
    match &controls.dialog {
        Dialog::None => {}
        Dialog::Help => footer.extend(KEYS.map(plain)),
        Dialog::Cancel { run, agent } => {
            footer.push(plain(&format!("cancel the work of {agent} in run {}? y/n", run.short())));
        }
        Dialog::Message { agent, text, .. } => {
            footer.push(plain(&format!("to {agent}: {}_   (Enter sends, Esc does not)", typed(text))));
        }
        Dialog::Find(text) => footer.push(plain(&format!("find: {}_   (Enter finds, Esc does not)", typed(text)))),
        Dialog::Permission { asked, .. } => {
            footer.extend(asked.lines(size));
            footer.push(plain("  (Esc leaves it open)"));
        }
        Dialog::Answer { question, text, .. } => {
            let most = question_lines(size.lines);
            let asked: Vec<&str> = question.text.lines().collect();
            // The last line matters most: for permissions it says what `y` means.
            let left_out = asked.len().saturating_sub(most);
            let (last, before) = asked.split_last().map_or(("", &[][..]), |(last, before)| (*last, before));
            footer.extend(before.iter().take(most - 1).map(|line| plain(line)));
            if left_out > 0 {
                footer.push(plain(&format!("  | … and {}, all shown above", plural(left_out, "more line"))));
            }
            let (asked, text) = (with_space(last), typed(text));
            footer.push(plain(&format!("{asked}{text}_   (Enter answers, Esc leaves it open)")));
        }
    }
    footer.push(plain(&keys(controls, size.columns.saturating_sub(1))));
    footer
}

/// The end of what is being typed.
fn typed(text: &str) -> &str {
    text.char_indices().rev().nth(MAX_TYPED).map_or(text, |(at, _)| &text[at..])
}

/// How many lines of a question the dialog shows on a terminal with this many lines.
pub(super) fn question_lines(lines: usize) -> usize {
    MAX_QUESTION.min(lines.saturating_sub(3)).max(1)
}

fn with_space(text: &str) -> String {
    if text.ends_with(' ') || text.is_empty() { text.to_owned() } else { format!("{text} ") }
}

/// The keys, each whole or not at all, or what is said instead.
fn keys(controls: &Controls, width: usize) -> String {
    if controls.is_ending {
        return "ending: running work is being stopped; press Ctrl-C or q again to exit at once".to_owned();
    }
    match (&controls.notice, &controls.viewed) {
        (Some(notice), _) => return notice.clone(),
        (None, Some(Viewed::LinesOf(agent))) => return format!("viewing {agent}: Esc goes back"),
        (None, Some(Viewed::ComingChanges { agent, .. })) => {
            return format!("looking up the changes of {agent} …: Esc goes back");
        }
        (None, Some(Viewed::ChangesOf(agent))) => return format!("viewing the changes of {agent}: Esc goes back"),
        (None, None) => {}
    }
    // The last are needed most.
    let shorter = (0..CHOICES.len()).map(|from| CHOICES[from..].join(GAP));
    shorter.into_iter().find(|keys| keys.width() <= width).unwrap_or_default()
}
