//! `shell`: a command line, for agents of engines that have no tool for it.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use crate::engine::command::Finished;
use crate::program::SHELL;

const TIMEOUT: u64 = 120;
const LONGEST_TIMEOUT: u64 = 1800;
const LONGEST_COMMAND: usize = if cfg!(windows) { 8 * 1024 } else { 100 * 1024 };

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShellCall {
    pub(crate) command: String,
    /// A folder of the project, relative to the agent's working directory.
    #[serde(default)]
    pub(crate) cwd: Option<String>,
    #[serde(default = "timeout")]
    timeout_sec: u64,
}

fn timeout() -> u64 {
    TIMEOUT
}

impl ShellCall {
    pub(super) fn check(self) -> Result<Self, String> {
        let Self { command, timeout_sec, .. } = &self;
        if command.trim().is_empty() {
            return Err("`command` is empty".to_owned());
        }
        if command.contains('\0') || command.len() > LONGEST_COMMAND {
            return Err(format!("`command` must be at most {LONGEST_COMMAND} bytes long, without NUL"));
        }
        if !(1..=LONGEST_TIMEOUT).contains(timeout_sec) {
            return Err(format!("`timeout_sec` must be from 1 to {LONGEST_TIMEOUT}"));
        }
        Ok(self)
    }

    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_sec)
    }

    pub(crate) fn shell(&self) -> (&'static Path, [&str; 2]) {
        (Path::new(SHELL.0), [SHELL.1, &self.command])
    }

    /// The result as the model reads it: how the command ended, then both streams.
    pub(crate) fn result(&self, finished: &Finished) -> String {
        let how = match (finished.cut_short(), finished.exit_code()) {
            (Some(because), _) => format!("ended: {because} (`timeout_sec` is {})", self.timeout_sec),
            (None, code) => format!("exit code {}", code.map_or("unknown".to_owned(), |code| code.to_string())),
        };
        let mut result = format!("[{how}]");
        for (name, (text, bytes)) in [("stdout", &finished.stdout), ("stderr", &finished.stderr)] {
            if *bytes > 0 {
                let cut = if *bytes > Finished::SHOWN { format!(", the end of {bytes} bytes") } else { String::new() };
                result.push_str(&format!("\n[{name}{cut}]\n{}", text.trim_end()));
            }
        }
        result
    }
}
