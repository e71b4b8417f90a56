//! `[hooks.NAME]`: a team's own programs, which are asked at certain points of an agent's work.

use std::time::Duration;

use globset::{GlobBuilder, GlobMatcher};
use toml::Value;

use super::keys::{arguments, duration, text, texts};
use crate::model::{Access, may_be_tool};

/// When a hook is asked. The names are those of other agent tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookPoint {
    /// A tool is about to be used. The hook may refuse that, or change the arguments.
    PreToolUse,
    /// A tool was used. The hook may change what the model reads of its result, or add to it.
    PostToolUse,
    /// A session begins work. The hook may refuse that, or add to the first message.
    SessionStart,
    /// An agent thinks that it is done. The hook may send it back to work.
    AgentStop,
    /// The work is over. The hook is told how.
    SessionEnd,
}

impl HookPoint {
    const ALL: [(&str, Self); 5] = [
        ("pre_tool_use", Self::PreToolUse),
        ("post_tool_use", Self::PostToolUse),
        ("session_start", Self::SessionStart),
        ("agent_stop", Self::AgentStop),
        ("session_end", Self::SessionEnd),
    ];

    pub(crate) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, point)| *point == self).map_or("", |(name, _)| name)
    }

    fn parse(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, point)| *point);
        found.ok_or_else(|| format!("is one of {}, not `{name}`", crate::model::list(Self::ALL.map(|(name, _)| name))))
    }
}

/// How long a hook may take.
const TIMEOUT: Duration = Duration::from_secs(30);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(600);

#[derive(Clone, Debug)]
pub(crate) struct HookSettings {
    /// `None`: not said yet, or not readable.
    pub(crate) on: Option<HookPoint>,
    /// The program and its arguments.
    pub(crate) run: Vec<String>,
    /// The tools that it is asked about; `None`: all.
    pub(crate) tools: Option<Vec<GlobMatcher>>,
    pub(crate) timeout: Duration,
}

impl Default for HookSettings {
    fn default() -> Self {
        Self { on: None, run: Vec::new(), tools: None, timeout: TIMEOUT }
    }
}

impl HookSettings {
    /// Sets one key. Fails with what is wrong with it, to follow its name.
    pub(super) fn put(&mut self, field: &str, value: &Value) -> Result<(), String> {
        match field {
            "on" => self.on = Some(HookPoint::parse(&text(value)?)?),
            "run" => self.run = arguments(value)?,
            "tools" => {
                let glob = |pattern: String| {
                    let glob = GlobBuilder::new(&pattern).case_insensitive(true).build();
                    glob.map(|glob| glob.compile_matcher())
                        .map_err(|error| format!("has the pattern `{pattern}`, which is no glob: {}", error.kind()))
                };
                let globs = texts(value)?.into_iter().map(glob).collect::<Result<Vec<_>, _>>()?;
                if globs.is_empty() {
                    return Err("is empty; leave it out for all tools".to_owned());
                }
                self.tools = Some(globs);
            }
            "timeout" => {
                let timeout = duration(value)?;
                if timeout > LONGEST_TIMEOUT {
                    return Err("is at most 10m".to_owned());
                }
                self.timeout = timeout;
            }
            _ => return Err("must be one of `on`, `run`, `tools` and `timeout`".to_owned()),
        }
        Ok(())
    }

    /// What it lacks, to follow its name.
    pub(super) fn lack(&self) -> Option<&'static str> {
        match (self.on, self.run.is_empty()) {
            (None, _) => Some("does not say when it is asked, such as `on = \"pre_tool_use\"`"),
            (_, true) => Some("does not say what to run, such as `run = [\"python3\", \"guard.py\"]`"),
            (Some(HookPoint::PreToolUse | HookPoint::PostToolUse), false) => None,
            (Some(_), false) => self.tools.is_some().then_some("is not asked about tools, and has `tools`"),
        }
    }

    /// Whether it is asked about this tool, by any engine's name for it.
    pub(crate) fn is_about(&self, tool: &str) -> bool {
        let is_named =
            |glob: &GlobMatcher| glob.is_match(tool) || may_be_tool(glob.glob().glob(), (tool, Access::Other));
        self.tools.as_ref().is_none_or(|tools| tools.iter().any(is_named))
    }
}
