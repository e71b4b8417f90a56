//! Issues in, plans out, a line each.

use std::io::{BufRead, Read};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::Failure;
use crate::model::Plan;
use crate::ops::triage::{self, Unread};
use crate::route::{Router, Wishes};
use crate::ui::Ui;

/// Longer lines are no issue; and what never ends must not fill the memory.
const LONGEST: u64 = 64 << 20;

#[derive(Serialize)]
struct Answer<'a> {
    /// What the issue is called by whoever asks.
    #[serde(flatten)]
    passed: &'a Map<String, Value>,
    #[serde(flatten)]
    plan: Plan,
}

/// Answers each line before it reads the next, so that a program can converse. Exits with 1 when a line was bad; the
/// others are answered all the same.
pub(super) fn run(ui: &mut Ui, router: &Router<'_>) -> u8 {
    let mut input = ui.input();
    let mut code = 0;
    for number in 1.. {
        let answered = match next(&mut input) {
            Ok(None) => break,
            Ok(Some(line)) if line.iter().all(u8::is_ascii_whitespace) => continue,
            Ok(Some(line)) if line.len() as u64 >= LONGEST => Err(Unread::because("the line is too long")),
            Ok(Some(line)) => triage::Issue::read(&line),
            Err(error) => {
                let failure = Failure::usage(format!("cannot read standard input: {error}"));
                ui.value(&serde_json::json!({ "error": failure }));
                return 1;
            }
        };
        match answered {
            Ok(issue) => {
                let plan = router.plan(&issue.request(), &Wishes::default());
                ui.value(&Answer { passed: &issue.passed, plan });
            }
            Err(unread) => {
                code = 1;
                let failure = Failure::usage(unread.reason).at(format!("-:{number}"));
                let mut answer = unread.passed;
                answer.insert("error".to_owned(), serde_json::json!(failure));
                ui.value(&answer);
            }
        }
        if !ui.is_heard() {
            break;
        }
    }
    code
}

/// A line without its end, or so much of it as may be read; `None` at the end.
fn next(input: &mut impl BufRead) -> std::io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    if input.by_ref().take(LONGEST).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.len() as u64 == LONGEST && !line.ends_with(b"\n") {
        input.skip_until(b'\n')?;
    }
    Ok(Some(line))
}
