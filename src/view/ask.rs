//! Asking the person at the terminal, one question at a time.

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::mpsc;

use indicatif::MultiProgress;
use tokio::sync::oneshot;

use crate::model::printable;
use crate::pool::Ask;

/// Reads answers from standard input on a thread of its own, since reading cannot be interrupted. Progress stands still
/// while a question is open. At the end of input every question goes unanswered.
pub(crate) fn asker(progress: MultiProgress) -> Ask {
    let (sender, questions) = mpsc::channel::<(String, oneshot::Sender<String>)>();
    let spawned = std::thread::Builder::new().name("questions".to_owned()).spawn(move || {
        for (question, answer) in questions {
            let line = progress.suspend(|| {
                eprint!("\n{}", printable(&question));
                let _ = std::io::stderr().flush();
                let mut line = String::new();
                std::io::stdin().lock().read_line(&mut line).ok().filter(|read| *read > 0).map(|_| line)
            });
            match line {
                Some(line) => drop(answer.send(line)),
                None => break,
            }
        }
    });
    // Without the thread the receiver is gone, and whoever asks is told that there is nobody.
    drop(spawned);
    Arc::new(move |question, answer| drop(sender.send((question, answer))))
}
