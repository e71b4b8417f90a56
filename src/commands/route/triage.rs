//! `squad route --stdin`: reads issues and prints plans, one per line.

use std::io::{self, BufRead, BufReader, Read};
use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::Failure;
use crate::model::Plan;
use crate::ops::run::triage::{self, InvalidIssue};
use crate::route::{RouteOptions, Router};
use crate::ui::Ui;
use crate::view::json_line;

/// The longest line that is read as an issue, in bytes, so that endless input cannot fill the memory.
const LONGEST: u64 = 64 << 20;

/// The size of the read buffer, in bytes.
const READ: usize = 64 << 10;
/// How many lines make another thread worthwhile.
const FOR_A_THREAD: usize = 32;

#[derive(Serialize)]
struct Answer<'a> {
    /// The caller's id or number of the issue.
    #[serde(flatten)]
    passed: &'a Map<String, Value>,
    #[serde(flatten)]
    plan: Plan,
}

/// A line of JSON, and whether it is a plan.
struct Answered {
    text: String,
    is_plan: bool,
}

/// Answers the lines that have arrived before it waits for more, so that a program can send a line and wait for its
/// plan. The exit code is 1 if a line was bad; the other lines are still answered.
pub(super) fn run(ui: &mut Ui, router: &Router<'_>) -> u8 {
    let mut input = BufReader::with_capacity(READ, ui.input());
    let (mut code, mut before) = (0, 0);
    while ui.is_heard() {
        let lines = match lines(&mut input) {
            Ok(lines) if lines.is_empty() => break,
            Ok(lines) => lines,
            Err(error) => {
                let failure = Failure::usage(format!("cannot read standard input: {error}"));
                ui.value(&serde_json::json!({ "error": failure }));
                return 1;
            }
        };
        let mut text = String::new();
        for answer in side_by_side(&lines, |place, line| answer(router, before + place + 1, line)) {
            code |= u8::from(!answer.is_plan);
            text.push_str(&answer.text);
            text.push('\n');
        }
        if !text.is_empty() {
            ui.data(&text);
        }
        before += lines.len();
    }
    code
}

/// Answers lines in parallel and returns the answers in order; empty lines have none.
fn side_by_side(lines: &[Vec<u8>], answer: impl Fn(usize, &[u8]) -> Option<Answered> + Sync) -> Vec<Answered> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(lines.len() / FOR_A_THREAD).max(1);
    let share = lines.len().div_ceil(threads).max(1);
    let answers = |part: usize| {
        let lines = lines.iter().enumerate().skip(part * share).take(share);
        lines.filter_map(|(place, line)| answer(place, line)).collect::<Vec<_>>()
    };
    thread::scope(|scope| {
        let answers = &answers;
        let others: Vec<_> = (1..threads).map(|part| scope.spawn(move || answers(part))).collect();
        let mut all = answers(0);
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        all
    })
}

fn answer(router: &Router<'_>, number: usize, line: &[u8]) -> Option<Answered> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    let issue = match line.len() as u64 >= LONGEST {
        true => Err(InvalidIssue::because("the line is too long")),
        false => triage::Issue::read(line),
    };
    let (written, is_plan) = match issue {
        Ok(issue) => {
            let plan = router.plan(&issue.request(), &RouteOptions::default());
            (json_line(&Answer { passed: &issue.passed, plan }), true)
        }
        Err(invalid) => {
            let failure = Failure::usage(invalid.reason).at(format!("-:{number}"));
            let mut answer = invalid.passed;
            answer.insert("error".to_owned(), serde_json::json!(failure));
            (json_line(&answer), false)
        }
    };
    Some(match written {
        Ok(text) => Answered { text, is_plan },
        Err(error) => Answered { text: serde_json::json!({ "error": error.to_string() }).to_string(), is_plan: false },
    })
}

/// The complete lines in the buffer, or else the next line; empty at the end.
fn lines(input: &mut impl BufRead) -> io::Result<Vec<Vec<u8>>> {
    let there = input.fill_buf()?;
    let Some(last) = there.iter().rposition(|byte| *byte == b'\n') else {
        return Ok(next(input)?.into_iter().collect());
    };
    let lines = there[..=last].split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    input.consume(last + 1);
    Ok(lines)
}

/// The next line, cut at [`LONGEST`]; `None` at the end.
fn next(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    if input.by_ref().take(LONGEST).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.len() as u64 == LONGEST && !line.ends_with(b"\n") {
        input.skip_until(b'\n')?;
    }
    Ok(Some(line))
}
