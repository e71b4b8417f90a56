//! Rules on what is allowed, for parsed values, without files or clock.

mod always;
mod check_commands;
mod checks;
mod code;
#[cfg(test)]
mod command_corpus_tests;
mod paths;
mod permission;
mod read_commands;
mod redact;
mod review_commands;
mod rule_commands;
mod rules;
#[cfg(test)]
mod rules_tests;
mod secret_patterns;
mod shell;
mod shell_rules;
mod shell_values;

pub(crate) use always::{AlwaysRule, always_rules};
pub(crate) use check_commands::{CheckKind, CheckResult, check_in, commands_of, kind_of_check};
pub(crate) use paths::{PathScope, is_git, is_in_inbox, is_portable, is_portable_here, names_git};
pub(crate) use permission::{PermissionAnswer, Permissions, REVIEWING, Ruling, is_yes, rule};
pub(crate) use read_commands::reads_files;
pub(crate) use redact::{EMAIL, Redaction, Redactor, SCRUBBED};
pub(crate) use review_commands::{READS_GIT, only_reads_git};
pub(crate) use rule_commands::commands_in;
pub(crate) use rules::{Answer, Answered, PolicyRequest, PolicyRules, ruling};
pub(crate) use shell_rules::forbidden;
