//! The output of one process, as facts.

use std::collections::BTreeSet;

use super::calls::Calls;
use super::served::{own_name, reports_itself};
use super::spool::Tail;
use super::stream::StreamParser;
use crate::engine::Fact;

/// Output that is read while it is written.
pub(super) struct Stream {
    pub(super) tail: Tail,
    pub(super) parser: StreamParser,
    /// Bytes of plain text that were last seen.
    pub(super) printed: u64,
    /// The stream will contain the id of a new chat.
    pub(super) is_new_chat: bool,
    /// Calls of squad's tools, for an engine without tools of its own.
    pub(super) calls: Option<Calls>,
    /// The engine's ids of open calls that report themselves.
    own_calls: BTreeSet<String>,
}

impl Stream {
    pub(super) fn new(tail: Tail, parser: StreamParser, is_new_chat: bool, calls: Option<Calls>) -> Self {
        Self { tail, parser, printed: 0, is_new_chat, calls, own_calls: BTreeSet::new() }
    }

    /// The facts of a line, except calls that squad's tools report themselves. squad's tools have their own names.
    pub(super) fn facts(&mut self, line: &str) -> Vec<Fact> {
        let mut facts = self.parser.parse(line);
        for fact in &mut facts {
            if let Fact::ToolStarted { tool, .. } | Fact::ToolCompleted { tool, .. } | Fact::Denied { tool, .. } = fact
                && let Some(name) = own_name(tool)
            {
                *tool = name.to_owned();
            }
        }
        if self.calls.is_some() {
            facts.retain(|fact| match fact {
                Fact::ToolStarted { call, tool, .. } if reports_itself(tool) => {
                    self.own_calls.insert(call.clone());
                    false
                }
                Fact::ToolCompleted { call, .. } => !self.own_calls.remove(call),
                _ => true,
            });
        }
        facts
    }
}
