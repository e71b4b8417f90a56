//! `SQUAD_LOG=debug` shows on stderr what squad and its engines say to each other: for reports of defects. Without the
//! variable nothing is set up.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use tracing::Level;

use crate::env::Env;
use crate::model::printable;
use crate::ops::team::secrets;
use crate::policy::Redactor;

/// The variable that asks for a log.
const VARIABLE: &str = "SQUAD_LOG";

/// Begins to log, if that was asked for. An error is for the user: the variable does not hold a level.
pub(crate) fn start(env: &Env, project: &Path) -> Result<(), String> {
    let Some(level) = env.variable(VARIABLE) else { return Ok(()) };
    let known: Level = level
        .parse()
        .map_err(|_| format!("{VARIABLE}={level} is not a level; use error, warn, info, debug or trace"))?;
    let redactor = Arc::new(secrets::redactor(env, project));
    let writer = move || Masked { redactor: Arc::clone(&redactor), to: io::stderr() };
    // In one process the first run of squad decides.
    let _ = tracing_subscriber::fmt().with_max_level(known).with_ansi(false).with_writer(writer).try_init();
    Ok(())
}

/// Writes whole lines, without secrets and without anything that a terminal would act on.
struct Masked<W> {
    redactor: Arc<Redactor>,
    to: W,
}

impl<W: Write> Write for Masked<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = printable(&self.redactor.text(&String::from_utf8_lossy(bytes), &mut Vec::new()));
        self.to.write_all(text.as_bytes()).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_log_holds_no_secret_and_moves_no_cursor() {
        let redactor = Arc::new(Redactor::new(["hunter2hunter2".to_owned()]));
        let mut masked = Masked { redactor, to: Vec::new() };
        let line = b"-> session.send {\"prompt\":\"hunter2hunter2 \x1b[2K\"}\n";
        assert_eq!(masked.write(line).expect("written"), line.len());
        let written = String::from_utf8(masked.to).expect("UTF-8");
        assert_eq!(written, "-> session.send {\"prompt\":\"[redacted:known-secret] [U+001B][2K\"}\n");
    }
}
