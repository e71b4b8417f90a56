//! Asks a team's own programs at certain points of an agent's work.
//!
//! ```text
//! point ─ JSON ─→ hook, in the agents' sandbox ─ JSON, or exit code 2 and a reason ─→ effect
//! ```
//!
//! A hook can deny, change and add, and never allow: what it lets pass is judged by everything else. One that gives no
//! answer that can be used has denied.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Cancel, Reports};
use crate::engine::command::OwnCommand;
use crate::engine::{ToolCall, ToolResult};
use crate::env::{files, real};
use crate::model::{EventKind, HookAnswered, HookEffect, RunId, Slug, first_line, from_json, quote, without_hidden};
use crate::program::{Program, Variables};
use crate::sandbox::Sandbox;
use crate::settings::{HookPoint, HookSettings};

/// How often hooks may send an agent back to work in one piece of work.
const MOST_HOLDS: usize = 3;
/// Most bytes of each of a hook's streams.
const MAX_ANSWER: u64 = 1 << 20;
/// Most bytes of a reason or an addition that the model reads.
const MAX_SAID: usize = 16 * 1024;
/// The exit code that denies, with the reason on standard error, as with other agent tools.
const DENIED: i64 = 2;

/// One program that is asked.
#[derive(Clone, Debug)]
pub(crate) struct Hook {
    pub(crate) name: String,
    pub(crate) point: HookPoint,
    pub(crate) settings: HookSettings,
    /// The file and line that it is from, for reasons.
    pub(crate) source: String,
    /// The error is why it cannot be started.
    pub(crate) program: Result<Program, String>,
    /// What its command names, as it was when the run began.
    pub(crate) files: Vec<(PathBuf, FileState)>,
}

/// Where a path leads, and the content there if that is a file; `None`: nowhere.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FileState(Option<(PathBuf, Option<blake3::Hash>)>);

impl FileState {
    /// # Errors
    ///
    /// It is a file that cannot be read, or is larger than squad recognizes.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        if !path.exists() {
            return Ok(Self(None));
        }
        let path = real(path);
        let content = if path.is_file() { Some(files::hash(&path)?) } else { None };
        Ok(Self(Some((path, content))))
    }
}

/// What all hooks of a run share.
#[derive(Clone, Debug)]
pub(crate) struct HookPlace {
    pub(crate) run: RunId,
    /// The project's root, which they run in.
    pub(crate) directory: PathBuf,
    pub(crate) variables: Variables,
    /// squad's own program, which ends what is left if squad is killed.
    pub(crate) squad: Option<PathBuf>,
    /// They run what agents may have written.
    pub(crate) sandbox: Option<Sandbox>,
}

/// A run's hooks, in the order of their names.
#[derive(Clone, Default)]
pub(crate) struct Hooks(Option<Arc<(Vec<Hook>, HookPlace)>>);

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    deny: Option<String>,
    arguments: Option<Map<String, Value>>,
    result: Option<String>,
    context: Option<String>,
}

impl Answer {
    /// Reads an answer. Fails with what is wrong with it.
    fn read(text: &str, point: HookPoint) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let answer: Self = from_json(text).map_err(|error| format!("its answer cannot be read: {error}"))?;
        let Self { deny, arguments, result, context } = &answer;
        let given = [
            ("deny", deny.is_some()),
            ("arguments", arguments.is_some()),
            ("result", result.is_some()),
            ("context", context.is_some()),
        ];
        let takes: &[&str] = match point {
            HookPoint::PreToolUse => &["deny", "arguments"],
            HookPoint::PostToolUse => &["result", "context"],
            HookPoint::SessionStart => &["deny", "context"],
            HookPoint::AgentStop => &["deny"],
            HookPoint::SessionEnd => &[],
        };
        match given.iter().find(|(name, is_given)| *is_given && !takes.contains(name)) {
            Some((name, _)) => Err(format!("its answer has `{name}`, which {} does not take", point.name())),
            None => Ok(answer),
        }
    }
}

/// What becomes of an agent that thinks that it is done.
pub(super) enum Stop {
    May,
    /// It goes on, with this message.
    Held(String),
    /// It may neither stop nor go on.
    Failed(String),
}

impl Hooks {
    pub(crate) fn new(hooks: Vec<Hook>, place: HookPlace) -> Self {
        Self((!hooks.is_empty()).then(|| Arc::new((hooks, place))))
    }

    /// The same, run in another folder and sandbox.
    pub(crate) fn moved_to(&self, directory: &Path, sandbox: Option<&Sandbox>) -> Self {
        let moved = self.0.as_deref().map(|(hooks, place)| {
            let (directory, sandbox) = (directory.to_owned(), sandbox.cloned());
            Arc::new((hooks.clone(), HookPlace { directory, sandbox, ..place.clone() }))
        });
        Self(moved)
    }

    /// The project's files that the hooks' commands name.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        let hooks = self.0.as_deref().map(|(hooks, _)| hooks.as_slice()).unwrap_or_default();
        hooks.iter().flat_map(|hook| &hook.files).map(|(path, _)| path.as_path())
    }

    fn at(&self, point: HookPoint) -> impl Iterator<Item = &Hook> {
        let hooks = self.0.as_deref().map(|(hooks, _)| hooks.as_slice()).unwrap_or_default();
        hooks.iter().filter(move |hook| hook.point == point)
    }

    /// The first hook that is asked about calls, which an engine that asks nobody would not obey.
    pub(super) fn about_calls(&self) -> Option<&str> {
        let mut hooks = self.at(HookPoint::PreToolUse).chain(self.at(HookPoint::PostToolUse));
        hooks.next().map(|hook| hook.name.as_str())
    }

    /// The arguments that a call is made with; the error is why it is not made.
    pub(super) async fn before_tool(
        &self,
        agent: &Slug,
        call: &ToolCall,
        reports: &Reports,
        cancel: &Cancel,
    ) -> Result<Option<Value>, String> {
        let mut changed = None;
        for hook in self.at(HookPoint::PreToolUse).filter(|hook| hook.settings.is_about(&call.tool)) {
            let arguments = changed.as_ref().unwrap_or(&call.arguments);
            let asked = json!({ "tool": call.tool, "arguments": arguments });
            let answer = self.ask(hook, agent, asked, cancel).await;
            match answer {
                Ok(Answer { deny: Some(reason), .. }) => return Err(hook.denial(&reason)),
                Ok(Answer { arguments: Some(new), .. }) => {
                    let new = Value::Object(new);
                    reports.tell(Some(agent), hook.answered(Some(&call.tool), HookEffect::Changed, new.to_string()));
                    changed = Some(new);
                }
                Ok(_) => {}
                Err(wrong) => return Err(hook.denial(&wrong)),
            }
        }
        Ok(changed)
    }

    /// What the model reads in the place of a call's result, if anything.
    pub(super) async fn after_tool(
        &self,
        agent: &Slug,
        (call, ended): (&ToolCall, &ToolResult),
        reports: &Reports,
        cancel: &Cancel,
    ) -> Option<String> {
        let (tool, mut read, mut added) = (&call.tool, None, String::new());
        for hook in self.at(HookPoint::PostToolUse).filter(|hook| hook.settings.is_about(tool)) {
            let result = read.as_ref().unwrap_or(&ended.text);
            let asked = json!({ "tool": tool, "arguments": call.arguments, "ok": ended.ok, "result": result });
            let tell = |effect, detail: &str| {
                reports.tell(Some(agent), hook.answered(Some(tool), effect, detail.to_owned()));
            };
            match self.ask(hook, agent, asked, cancel).await {
                Ok(Answer { result, context, .. }) => {
                    if let Some(result) = result {
                        tell(HookEffect::Changed, &result);
                        read = Some(result);
                    }
                    if let Some(context) = context {
                        tell(HookEffect::Added, &context);
                        added.push_str(&format!("\n\n[hook {}] {}", hook.name, said(&context)));
                    }
                }
                Err(wrong) => {
                    tell(HookEffect::Failed, &wrong);
                    // What it would have kept from the model is not known.
                    return Some(format!("The result is withheld: {}", hook.denial(&wrong)));
                }
            }
        }
        if read.is_none() && added.is_empty() {
            return None;
        }
        Some(read.unwrap_or_else(|| ended.text.clone()) + &added)
    }

    /// What hooks add to the first message in a session, by hook; the error is why the work does not begin.
    pub(super) async fn session_start(
        &self,
        (agent, session, source): (&Slug, &str, &str),
        reports: &Reports,
        cancel: &Cancel,
    ) -> Result<Vec<(String, String)>, String> {
        let mut added = Vec::new();
        for hook in self.at(HookPoint::SessionStart) {
            let tell = |effect, detail| reports.tell(Some(agent), hook.answered(None, effect, detail));
            let asked = json!({ "session": session, "source": source });
            match self.ask(hook, agent, asked, cancel).await {
                Ok(Answer { deny: Some(reason), .. }) => {
                    tell(HookEffect::Denied, reason.clone());
                    return Err(hook.denial(&reason));
                }
                Ok(Answer { context: Some(context), .. }) => {
                    added.push((hook.name.clone(), said(&context)));
                    tell(HookEffect::Added, context);
                }
                Ok(_) => {}
                Err(wrong) => {
                    tell(HookEffect::Failed, wrong.clone());
                    return Err(hook.denial(&wrong));
                }
            }
        }
        Ok(added)
    }

    /// Asks whether an agent may stop that has been held this often.
    pub(super) async fn agent_stop(
        &self,
        (agent, session, text): (&Slug, &str, &str),
        holds: usize,
        reports: &Reports,
        cancel: &Cancel,
    ) -> Stop {
        for hook in self.at(HookPoint::AgentStop) {
            let tell = |effect, detail| reports.tell(Some(agent), hook.answered(None, effect, detail));
            let asked = json!({ "session": session, "text": text, "held": holds });
            match self.ask(hook, agent, asked, cancel).await {
                Ok(Answer { deny: Some(reason), .. }) if holds < MOST_HOLDS => {
                    tell(HookEffect::Denied, reason.clone());
                    return Stop::Held(format!(
                        "The team's hook `{}` does not let you stop yet. What it says:\n\n{}",
                        hook.name,
                        quote(&said(&reason))
                    ));
                }
                Ok(Answer { deny: Some(reason), .. }) => {
                    let reason = first_line(&reason, 200);
                    return Stop::Failed(format!(
                        "the hook `{}` sent it back {MOST_HOLDS} times, and is still not content: {reason}",
                        hook.name
                    ));
                }
                Ok(_) => {}
                Err(wrong) => {
                    tell(HookEffect::Failed, wrong.clone());
                    return Stop::Failed(hook.denial(&wrong));
                }
            }
        }
        Stop::May
    }

    /// Tells how the work in a session ended.
    pub(super) async fn session_end(&self, (agent, session, reason): (&Slug, &str, &str), reports: &Reports) {
        // It is told of a cancellation, too.
        let (_canceller, cancel) = Cancel::channel();
        for hook in self.at(HookPoint::SessionEnd) {
            let asked = json!({ "session": session, "reason": reason });
            if let Err(wrong) = self.ask(hook, agent, asked, &cancel).await {
                reports.tell(Some(agent), hook.answered(None, HookEffect::Failed, wrong));
            }
        }
    }

    /// Asks one hook. The error is why there is no answer.
    async fn ask(&self, hook: &Hook, agent: &Slug, mut asked: Value, cancel: &Cancel) -> Result<Answer, String> {
        let Some((_, place)) = self.0.as_deref() else { return Ok(Answer::default()) };
        asked["event"] = hook.point.name().into();
        asked["hook"] = hook.name.clone().into();
        asked["run"] = place.run.as_str().into();
        asked["agent"] = agent.as_str().into();
        hook.ask(place, &asked.to_string(), cancel).await
    }
}

impl Hook {
    async fn ask(&self, place: &HookPlace, asked: &str, cancel: &Cancel) -> Result<Answer, String> {
        let program = self.program.clone()?;
        for (path, known) in &self.files {
            let is_known = FileState::of(path).is_ok_and(|now| now == *known);
            if !is_known {
                return Err(format!("{} has changed since the run began", path.display()));
            }
        }
        let local = tempfile::tempdir().map_err(|error| format!("there is no place for its output: {error}"))?;
        let command = OwnCommand {
            program,
            arguments: self.settings.run.get(1..).unwrap_or_default(),
            directory: &place.directory,
            variables: place.variables.clone(),
            more: &[],
            sandbox: place.sandbox.as_ref(),
            squad: place.squad.as_deref(),
            local: local.path(),
            session: "hook",
            input: Some(asked),
            kept: MAX_ANSWER,
        };
        let ended = command.run(self.settings.timeout, cancel.clone().wait()).await;
        let ended = ended.map_err(|error| format!("it cannot be run: {error}"))?;
        match ended.exit_code {
            Some(0) => Answer::read(&ended.output, self.point),
            Some(DENIED) => {
                let reason = ended.errors.trim();
                let reason = if reason.is_empty() { "it gives no reason" } else { reason };
                let answer = Answer { deny: Some(reason.to_owned()), ..Answer::default() };
                match self.point {
                    HookPoint::PreToolUse | HookPoint::SessionStart | HookPoint::AgentStop => Ok(answer),
                    HookPoint::PostToolUse | HookPoint::SessionEnd => Err(format!("exit code 2: {reason}")),
                }
            }
            Some(code) => Err(format!("exit code {code}: {}", first_line(ended.errors.trim(), 300))),
            None => Err(ended.reason),
        }
    }

    /// Why something does not happen.
    fn denial(&self, reason: &str) -> String {
        format!("the hook `{}` ({}): {}", self.name, self.source, said(reason))
    }

    fn answered(&self, tool: Option<&str>, effect: HookEffect, detail: String) -> EventKind {
        let detail = detail.get(..detail.floor_char_boundary(MAX_SAID)).unwrap_or_default().to_owned();
        let (hook, on) = (self.name.clone(), self.point.name().to_owned());
        EventKind::HookAnswered(HookAnswered { hook, on, tool: tool.map(str::to_owned), effect, detail })
    }
}

/// What a hook says, as far as the model reads it.
fn said(text: &str) -> String {
    let text = text.trim();
    without_hidden(text.get(..text.floor_char_boundary(MAX_SAID)).unwrap_or_default().to_owned())
}
