//! Decides whether an agent may do something.

use serde::{Deserialize, Serialize};

use super::PathScope;
use crate::model::Access;

/// How to answer a request that no rule decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Permissions {
    /// Ask the person at the terminal
    #[default]
    Ask,
    /// Allow everything the agents ask for: an agent can do what you can do
    Allow,
    /// Refuse what would change something or reach outside the project
    Deny,
}

impl Permissions {
    /// The mode explained to an agent, so that it need not find out by being refused.
    pub(crate) fn explained(self, somebody_answers: bool) -> &'static str {
        match self {
            Self::Allow => "allow. What you ask for is allowed.",
            Self::Ask if somebody_answers => {
                "ask. A person is asked before a file is changed, a command runs, the network is reached or something \
                 outside the project is read, and may refuse."
            }
            Self::Ask | Self::Deny => {
                "deny. Reading the project is allowed, and so are `git diff`, `log`, `show`, `status`, `blame` and `grep`. \
                 Changing files, running other commands, reaching the network and reading outside the project are \
                 refused, and nobody is there to ask: say what you would do instead of trying."
            }
        }
    }

    /// The name used in records.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}

/// The rules for a reviewer, explained to it. They hold in every mode.
pub(crate) const REVIEWING: &str = "read only, because you review. Reading the project is allowed, and so are `git diff`, \
                                    `log`, `show`, `status`, `blame` and `grep`. Changing files and running other \
                                    commands are refused, and nobody is asked.";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ruling {
    Allow,
    Ask,
    /// With the reason, for the model and the user.
    Deny(String),
}

/// Reading inside the project and squad's own tools need no permission; the mode decides on everything else. `scope`:
/// where a path that is read leads.
pub(crate) fn rule(mode: Permissions, access: Access, scope: &PathScope) -> Ruling {
    match (mode, access) {
        (Permissions::Allow, _) | (_, Access::Own) => Ruling::Allow,
        (_, Access::Read) if matches!(scope, PathScope::Project(_)) => Ruling::Allow,
        (Permissions::Ask, _) => Ruling::Ask,
        (Permissions::Deny, _) => {
            let what = match access {
                Access::Read if *scope == PathScope::Git => "reading git's own files",
                Access::Read => "reading outside the project",
                Access::Write => "changing files",
                Access::Shell => "running commands",
                Access::Network => "reaching the network",
                Access::Mcp => "calling MCP tools",
                Access::Own | Access::Other => "this tool",
            };
            Ruling::Deny(format!("{what} is not allowed in this run (permissions: deny)"))
        }
    }
}

/// A person's answer to a request for permission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PermissionAnswer {
    Once,
    /// And whatever else is like it, of this agent or of all.
    ForAgent,
    ForRun,
    /// In later runs too.
    Keep,
    /// With the reason, for the model.
    No(Option<String>),
}

impl PermissionAnswer {
    /// Whatever is not one of the few words for it is no permission.
    pub(crate) fn parse(text: &str) -> Self {
        if let Some(why) = text.strip_prefix("s ") {
            return Self::No(Some(why.trim().to_owned()));
        }
        match text.trim().to_lowercase().as_str() {
            "y" | "yes" => Self::Once,
            "a" | "always" => Self::ForAgent,
            "r" => Self::ForRun,
            "k" => Self::Keep,
            "" | "n" | "no" => Self::No(None),
            _ => Self::No(Some(text.trim().to_owned())),
        }
    }
}

/// Whether an answer to a yes-or-no question is a yes.
pub(crate) fn is_yes(answer: &str) -> bool {
    ["y", "yes"].iter().any(|yes| answer.trim().eq_ignore_ascii_case(yes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_the_project_is_always_allowed() {
        for (scope, is_allowed) in [
            (PathScope::Project("src/a.rs".to_owned()), true),
            (PathScope::Outside, false),
            (PathScope::Git, false),
            (PathScope::NotUnicode, false),
        ] {
            assert_eq!(rule(Permissions::Deny, Access::Read, &scope) == Ruling::Allow, is_allowed, "{scope:?}");
        }
    }

    /// Every mode with every kind of access, to something outside the project where applicable.
    #[test]
    fn each_mode_rules_on_each_kind_of_access() {
        use Access::{Mcp, Network, Other, Own, Read, Shell, Write};
        let word = |mode, access| match rule(mode, access, &PathScope::Outside) {
            Ruling::Allow => "allow",
            Ruling::Ask => "ask",
            Ruling::Deny(_) => "deny",
        };
        for access in [Read, Write, Shell, Network, Mcp, Own, Other] {
            let (asked, denied) = if access == Own { ("allow", "allow") } else { ("ask", "deny") };
            assert_eq!(word(Permissions::Allow, access), "allow", "{access:?}");
            assert_eq!(word(Permissions::Ask, access), asked, "{access:?}");
            assert_eq!(word(Permissions::Deny, access), denied, "{access:?}");
        }
    }

    #[test]
    fn the_mode_decides_the_rest() {
        assert_eq!(rule(Permissions::Allow, Access::Shell, &PathScope::Outside), Ruling::Allow);
        assert_eq!(rule(Permissions::Ask, Access::Write, &PathScope::Outside), Ruling::Ask);
        assert!(matches!(rule(Permissions::Deny, Access::Write, &PathScope::Outside), Ruling::Deny(_)));
        assert_eq!(rule(Permissions::Deny, Access::Own, &PathScope::Outside), Ruling::Allow);
    }
}
