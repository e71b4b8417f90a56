//! What became of an agent's commands.

use crate::model::{CheckRun, CommandCounts};
use crate::policy::{CheckResult, check_in};

/// An agent's finished commands, and the last of them that looks like a check of the project.
#[derive(Default)]
pub(super) struct CommandLog {
    pub(super) counts: CommandCounts,
    pub(super) check: Option<CheckRun>,
    /// Refused commands whose end is still to come.
    refused: Vec<String>,
    /// Commands that failed without an exit code: their refusal may be still to come.
    failed: Vec<String>,
}

impl CommandLog {
    /// A refused command counts as neither passed nor failed. Engines report its end as a failure, before or after.
    pub(super) fn refuse(&mut self, command: &str) {
        if take(&mut self.failed, command) {
            self.counts.failed = self.counts.failed.saturating_sub(1);
            self.check.take_if(|check| check.command == command);
        } else {
            self.refused.push(command.to_owned());
        }
    }

    /// Takes the end of a command. `checks` are the project's own.
    pub(super) fn end(&mut self, command: &str, ok: bool, exit_code: Option<i64>, checks: &[String]) {
        let passed = exit_code.map_or(ok, |code| code == 0);
        if !passed && exit_code.is_none() {
            if take(&mut self.refused, command) {
                return;
            }
            self.failed.push(command.to_owned());
        }
        let count = if passed { &mut self.counts.passed } else { &mut self.counts.failed };
        *count += 1;
        match check_in(command, checks) {
            None => {}
            Some(CheckResult::OfLine) => self.check = Some(CheckRun { command: command.to_owned(), passed, exit_code }),
            // What an earlier check found may no longer hold.
            Some(CheckResult::Hidden) => self.check = None,
        }
    }
}

fn take(commands: &mut Vec<String>, command: &str) -> bool {
    let place = commands.iter().position(|known| known.trim() == command.trim());
    place.map(|place| commands.remove(place)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(log: &mut CommandLog, command: &str, exit_code: Option<i64>) {
        log.end(command, exit_code == Some(0), exit_code, &[]);
    }

    #[test]
    fn commands_are_counted_and_the_last_check_is_kept() {
        let mut log = CommandLog::default();
        for (command, code) in [("ls", 0), ("cargo test", 101), ("cat a", 1)] {
            end(&mut log, command, Some(code));
        }
        assert_eq!(log.counts, CommandCounts { passed: 1, failed: 2 });
        let failed = CheckRun { command: "cargo test".to_owned(), passed: false, exit_code: Some(101) };
        assert_eq!(log.check, Some(failed));
        end(&mut log, "cargo test -q", Some(0));
        assert!(log.check.as_ref().is_some_and(|check| check.passed));
        end(&mut log, "cargo test | tail", Some(0));
        assert_eq!(log.check, None);
    }

    #[test]
    fn refused_commands_are_neither_passed_nor_failed() {
        let mut log = CommandLog::default();
        log.refuse("cargo test");
        end(&mut log, "cargo test", None);
        end(&mut log, "npm test", None);
        assert_eq!(log.counts.failed, 1);
        log.refuse("npm test");
        // Engines cut blanks, before or after.
        log.refuse(" ls\n");
        end(&mut log, "ls", None);
        end(&mut log, "pwd ", None);
        log.refuse("pwd");
        assert_eq!((log.counts, log.check), (CommandCounts::default(), None));
    }
}
