//! What squad relies on in an engine, one by one.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! claims {
    ($($variant:ident $name:literal $about:literal,)*) => {
        /// One thing that an engine does, or does not do, and that can be tried with its program.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub(crate) enum Claim {
            $(#[serde(rename = $name)] $variant,)*
        }

        impl Claim {
            pub(crate) const ALL: &[Self] = &[$(Self::$variant),*];

            /// As configuration and JSON have it.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What holds if it is true.
            pub(crate) fn about(self) -> &'static str {
                match self { $(Self::$variant => $about,)* }
            }
        }
    };
}

claims! {
    RefusedWrite "refused_write" "a write that is refused does not happen",
    RefusedCommand "refused_command" "a command that is refused does not happen",
    RefusedToSubagent "refused_to_subagent" "no sub-agent does what is refused",
    RefusedAfterResume "refused_after_resume" "nor does a session that was resumed",
    UnansweredRequest "unanswered_request" "a request that nobody answers is refused",
    RepositoryHooks "repository_hooks" "what the repository configures is not run",
    AllowedCommand "allowed_command" "a command that is allowed happens",
    ChangedArguments "changed_arguments" "a hook can change the arguments of a call",
    OwnTool "own_tool" "it calls squad's tools, and its model reads the answer",
    MessageWhileWorking "message_while_working" "its model reads a message while it works",
    Resume "resume" "a session goes on after its program was killed",
    Usage "usage" "it reports the tokens that it used",
    EndOfInput "end_of_input" "it ends when its input does",
    NoOrphans "no_orphans" "nothing that it started is left",
}

impl Claim {
    /// Without it, an engine does what it was told not to do.
    pub(crate) fn is_obedience(self) -> bool {
        self <= Self::RepositoryHooks
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|claim| claim.name() == name)
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
