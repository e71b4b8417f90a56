//! Runs a command of squad's own, supervised and bounded as an engine's processes are.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::process;
use tokio::sync::watch;

use super::environment;
use super::run::{Ended, MAX_OUTPUT, Output, run_limited};
use super::spool::Spool;
use crate::engine::process_group::Mark;
use crate::program::{Program, Programs, Variables};
use crate::sandbox::{Sandbox, command_in};

/// The file that has both streams, in the order in which they were written; or the first of them.
const OUTPUT: &str = "output";
const ERRORS: &str = "errors";

/// A command that is to be run.
pub(crate) struct OwnCommand<'a> {
    pub(crate) program: Program,
    pub(crate) arguments: &'a [String],
    pub(crate) directory: &'a Path,
    pub(crate) variables: Variables,
    /// The names of those that it gets besides the common ones.
    pub(crate) more: &'a [String],
    pub(crate) sandbox: Option<&'a Sandbox>,
    /// squad's own program, which ends what is left if squad is killed.
    pub(crate) squad: Option<&'a Path>,
    /// squad's local folder, and the name under which its output is kept there.
    pub(crate) local: &'a Path,
    pub(crate) session: &'a str,
    /// What it reads. Its two streams are kept apart then, and all of each is wanted: it ends if one is longer than `kept`.
    pub(crate) input: Option<&'a str>,
    /// Bytes of the end of each stream that are returned.
    pub(crate) kept: u64,
}

/// How it ended.
pub(crate) struct OwnResult {
    pub(crate) exit_code: Option<i64>,
    /// Why there is no exit code.
    pub(crate) reason: String,
    pub(crate) duration: Duration,
    /// The end of its output, the bytes of all of it, and its file relative to squad's local folder.
    pub(crate) output: String,
    pub(crate) output_bytes: u64,
    pub(crate) output_file: String,
    /// The end of its second stream, if that is apart.
    pub(crate) errors: String,
}

impl OwnCommand<'_> {
    /// Runs it to its end, at most for `limit`, or until `cancelled` ends. Nothing that it started outlives it.
    pub(crate) async fn run(self, limit: Duration, cancelled: impl Future<Output = ()>) -> io::Result<OwnResult> {
        let spool = Spool::next(self.local, self.session)?;
        let mut mark = Mark::new();
        mark.guard(self.squad, false);
        let mut variables = environment::allowed(&self.variables, self.more);
        Programs::new(self.directory, &self.variables).restrict(&mut variables);
        let mut command = process::Command::from(command_in(self.sandbox, &self.program));
        command.args(self.arguments).env_clear().envs(variables).envs([mark.variable()]);
        command.current_dir(self.directory);
        let (input, stderr) = match self.input {
            Some(text) => (Stdio::from(File::open(spool.write_prompt(text)?)?), ERRORS),
            None => (Stdio::null(), OUTPUT),
        };
        let most = if self.input.is_some() { self.kept } else { MAX_OUTPUT };
        let output = Output { spool: &spool, stdout: OUTPUT, stderr, most };
        let began = Instant::now();
        let (stop, stopped) = watch::channel(false);
        let mut running = std::pin::pin!(run_limited(command, input, &output, limit, &stopped));
        let ended = tokio::select! {
            biased;
            ended = &mut running => ended,
            () = cancelled => {
                stop.send_replace(true);
                // Its processes end first.
                running.await
            }
        };
        mark.end().await;
        let (Ended { code, signal, stop_reason, .. }, is_timeout) = ended?;
        let reason = match (stop_reason, signal) {
            (Some(_), _) if is_timeout => "it took too long".to_owned(),
            (Some(reason), _) => reason,
            (None, Some(signal)) => format!("it was ended by signal {signal}"),
            (None, None) => String::new(),
        };
        Ok(OwnResult {
            exit_code: code.filter(|_| reason.is_empty()).map(i64::from),
            reason,
            duration: began.elapsed(),
            output: spool.last_text(OUTPUT, self.kept),
            errors: if self.input.is_some() { spool.last_text(ERRORS, self.kept) } else { String::new() },
            output_bytes: spool.len(OUTPUT),
            output_file: spool.relative_path(OUTPUT),
        })
    }
}
