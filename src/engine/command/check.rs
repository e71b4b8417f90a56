//! Runs a command of squad's own, supervised and bounded as an engine's processes are.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::process;
use tokio::sync::watch;

use super::environment;
use super::run::{Ended, Output, run_limited};
use super::spool::Spool;
use crate::engine::process_group::Mark;
use crate::program::{Program, Programs, Variables};
use crate::sandbox::{Sandbox, command_in};

/// The file that has both streams, in the order in which they were written.
const OUTPUT: &str = "output";
/// Bytes of its end that are kept.
const SHOWN: u64 = 4 * 1024;

/// A command that is to be run.
pub(crate) struct OwnCommand<'a> {
    pub(crate) program: Program,
    pub(crate) arguments: &'a [String],
    pub(crate) directory: &'a Path,
    pub(crate) variables: Variables,
    pub(crate) sandbox: Option<&'a Sandbox>,
    /// squad's own program, which ends what is left if squad is killed.
    pub(crate) squad: Option<&'a Path>,
    /// squad's local folder, and the name under which its output is kept there.
    pub(crate) local: &'a Path,
    pub(crate) session: &'a str,
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
}

impl OwnCommand<'_> {
    /// Runs it to its end, at most for `limit`, or until `stop` is set. Nothing that it started outlives it.
    pub(crate) async fn run(self, limit: Duration, stop: &watch::Receiver<bool>) -> io::Result<OwnResult> {
        let spool = Spool::next(self.local, self.session)?;
        let mut mark = Mark::new();
        mark.guard(self.squad);
        let mut variables = environment::allowed(&self.variables, &[]);
        Programs::new(self.directory, &self.variables).restrict(&mut variables);
        let mut command = process::Command::from(command_in(self.sandbox, &self.program));
        command.args(self.arguments).env_clear().envs(variables).envs([mark.variable()]);
        command.current_dir(self.directory);
        let output = Output { spool: &spool, stdout: OUTPUT, stderr: OUTPUT };
        let began = Instant::now();
        let ended = run_limited(command, &output, limit, stop).await;
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
            output: spool.last_text(OUTPUT, SHOWN),
            output_bytes: spool.len(OUTPUT),
            output_file: spool.relative_path(OUTPUT),
        })
    }
}
