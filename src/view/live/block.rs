//! The block below the lines: a row for each agent, an open dialog, and the status.

use jiff::Timestamp;
use unicode_width::UnicodeWidthStr;

use super::agents::{Agents, Key, Row};
use super::controls::{Controls, Dialog};
use crate::model::{Usage, abbreviated, clock, plural, printable_line};
use crate::view::region::Size;
use crate::view::text::{Text, end_of};

/// Columns of an agent's name.
const MAX_NAME: usize = 14;
/// Fewer columns than this are too narrow to show an agent's activity.
const MIN_ACTIVITY: usize = 12;
/// Lines shown of a question.
const MAX_QUESTION: usize = 8;
/// Characters shown of an answer being typed, from its end.
const MAX_TYPED: usize = 50;

const KEYS: [&str; 7] = [
    "up, down, k, j  choose an agent",
    "Enter           look into it; Esc goes back",
    "c               cancel its work",
    "a               answer what it asks",
    "?               these keys",
    "q, Ctrl-D       end the watch and what runs in it, like Ctrl-C",
    "Ctrl-Z          stop; `fg` goes on",
];

/// In the status line, those that can be missed most first.
const CHOICES: [&str; 6] = ["Enter looks in", "up/down choose", "c cancels", "a answers", "? keys", "q ends"];

pub(super) fn block(agents: &Agents, controls: &Controls, now: Timestamp, size: Size) -> Vec<String> {
    let footer = footer(agents, controls, size);
    let room = size.lines.saturating_sub(footer.len() + 1);
    let mut block = rows(agents, controls, now, Size { lines: room, ..size });
    block.extend(footer);
    // On some terminals, a line that reaches the edge wraps.
    let width = size.columns.saturating_sub(1);
    let mut block: Vec<String> = block.iter().map(|line| cut(line, width)).collect();
    block.drain(..block.len().saturating_sub(size.lines.saturating_sub(1)));
    block
}

fn cut(line: &str, width: usize) -> String {
    beginning(&printable_line(line), width).trim_end().to_owned()
}

/// The beginning of a text, with a sign if it is not all.
fn beginning(text: &str, width: usize) -> String {
    Text::default().plain(text).cut(width).to_string()
}

fn rows(agents: &Agents, controls: &Controls, now: Timestamp, size: Size) -> Vec<String> {
    let all: Vec<(&Key, &Row)> = agents.rows().iter().collect();
    let chosen = controls.chosen(agents).and_then(|chosen| all.iter().position(|(key, _)| *key == chosen));
    let fits = size.lines.min(all.len());
    let shown = if fits < all.len() { fits.saturating_sub(1) } else { fits };
    // Scroll so that the selected row is visible.
    let first = chosen.map_or(0, |chosen| (chosen + 1).saturating_sub(shown.max(1)));
    let name = all.iter().map(|(key, _)| key.agent.as_str().len()).max().unwrap_or_default().min(MAX_NAME);
    let line = |(index, (key, row)): (usize, &(&Key, &Row))| {
        let mark = if chosen == Some(index) { "> " } else { "  " };
        format!("{mark}{}", line(agents, key, row, name, now, size.columns.saturating_sub(3)))
    };
    let mut lines: Vec<String> = all.iter().enumerate().skip(first).take(shown).map(line).collect();
    let more = all.len() - lines.len();
    if more > 0 && fits > 0 {
        lines.push(format!("  and {more} more"));
    }
    lines
}

fn line(agents: &Agents, key: &Key, row: &Row, name: usize, now: Timestamp, width: usize) -> String {
    let state = row.state.map_or_else(|| "waiting".to_owned(), |state| state.to_string());
    let agent = beginning(key.agent.as_str(), name);
    let mut left = format!("{agent:<name$}  {state:<9}");
    let mut doing = row.ended.map(|outcome| outcome.to_string()).unwrap_or_default();
    let mut right = spent(&row.usage);
    if let Some(work) = &row.work {
        let steps = agents.steps(&work.run).zip(work.step);
        let step = steps.map(|(steps, step)| format!(" step {step}/{steps}")).unwrap_or_default();
        left.push_str(&format!("  {}{step}", work.run.short()));
        doing = match work.questions.first() {
            Some(question) => format!("asks: {}", question.short()),
            None => work.doing.clone(),
        };
        right.insert(0, elapsed(work.since, now));
    }
    let right = right.join("  ");
    let taken = left.width() + right.width() + 4;
    match width.checked_sub(taken).filter(|room| *room >= MIN_ACTIVITY) {
        Some(room) => {
            let doing = beginning(&printable_line(&doing), room);
            let gap = " ".repeat(room.saturating_sub(doing.width()));
            format!("{left}  {doing}{gap}  {right}")
        }
        None => format!("{left}  {doing}"),
    }
}

/// The lines below the rows: dialog and status.
fn footer(agents: &Agents, controls: &Controls, size: Size) -> Vec<String> {
    let mut footer = Vec::new();
    match &controls.dialog {
        Dialog::None => {}
        Dialog::Help => footer.extend(KEYS.map(str::to_owned)),
        Dialog::Cancel { run, agent } => footer.push(format!("cancel the work of {agent} in run {}? y/n", run.short())),
        Dialog::Permission { asked, .. } => {
            footer.extend(asked.lines(size).iter().map(Text::to_string));
            footer.push("  (Esc leaves it open)".to_owned());
        }
        Dialog::Answer { question, text, .. } => {
            let most = question_lines(size.lines);
            let asked: Vec<&str> = question.text.lines().collect();
            // The last line matters most: for permissions it says what `y` means.
            let left_out = asked.len().saturating_sub(most);
            let (last, before) = asked.split_last().map_or(("", &[][..]), |(last, before)| (*last, before));
            footer.extend(before.iter().take(most - 1).map(|line| (*line).to_owned()));
            if left_out > 0 {
                footer.push(format!(
                    "  | … and {}, all shown above",
                    if left_out == 1 { "1 more line".to_owned() } else { format!("{left_out} more lines") }
                ));
            }
            let end = text.char_indices().rev().nth(MAX_TYPED).map_or(text.as_str(), |(at, _)| &text[at..]);
            footer.push(format!("{}{end}_   (Enter answers, Esc leaves it open)", with_space(last)));
        }
    }
    footer.push(status(agents, controls, size.columns.saturating_sub(1)));
    footer
}

/// How many lines of a question the dialog shows on a terminal with this many lines.
pub(super) fn question_lines(lines: usize) -> usize {
    MAX_QUESTION.min(lines.saturating_sub(3)).max(1)
}

/// The end of a message that an agent is writing.
pub(super) fn partial_line(text: &str, size: Size) -> String {
    end_of(&printable_line(text), size.columns.saturating_sub(2))
}

fn with_space(text: &str) -> String {
    if text.ends_with(' ') || text.is_empty() { text.to_owned() } else { format!("{text} ") }
}

/// What is going on, and the keys, each whole or not at all.
fn status(agents: &Agents, controls: &Controls, width: usize) -> String {
    if controls.is_ending {
        return "ending: running work is being stopped; press Ctrl-C or q again to exit at once".to_owned();
    }
    let runs = if agents.runs() == 0 { "no run".to_owned() } else { plural(agents.runs(), "run") };
    let engine = if agents.engine.is_empty() { String::new() } else { format!("{} ", agents.engine) };
    let mut entries = vec![format!("{engine}{}", agents.connection), runs];
    match (&controls.notice, &controls.inspected) {
        (Some(notice), _) => entries.push(notice.clone()),
        (None, Some(agent)) => entries.push(format!("viewing {agent}: Esc goes back")),
        (None, None) => entries.extend(CHOICES.map(str::to_owned)),
    }
    // The last are needed most.
    while entries.len() > 1 && entries.join("; ").width() > width {
        entries.remove(0);
    }
    entries.join("; ")
}

fn spent(usage: &Usage) -> Vec<String> {
    let mut parts = Vec::new();
    if usage.input_tokens + usage.output_tokens > 0 {
        parts.push(format!("{} in {} out", abbreviated(usage.input_tokens), abbreviated(usage.output_tokens)));
    }
    parts.extend(usage.cost_usd.map(|cost| format!("${cost:.2}")));
    parts
}

/// Never negative, even if the clock was set back.
fn elapsed(since: Timestamp, now: Timestamp) -> String {
    clock(now.as_second().saturating_sub(since.as_second()).max(0).unsigned_abs())
}
