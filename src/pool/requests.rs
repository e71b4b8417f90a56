//! Answers requests of engines: calls of squad's own tools, permissions, questions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::colleagues::Caller;
use super::commands::CommandLog;
use super::{AlwaysAllowed, Cancel, Hooks, Notices, Place, Reports, UserMessages, WorkTree};
use crate::engine::{Approval, Reply, Request, ToolCall, ToolResult, Writing, subject};
use crate::env::real;
use crate::model::{
    Access, Decision, DecisionId, EventKind, Judgement, NoteKind, Proposal, Slug, Tier, change_by, list, marked,
    without_hidden,
};
use crate::policy::{PathScope, Permissions, PolicyRules, is_in_inbox};
use crate::tools::{self, Intent};

/// Asks a person. The answer may take any time; dropping the sender means no answer.
pub(crate) type Ask = Arc<dyn Fn(Question, oneshot::Sender<String>) + Send + Sync>;

/// Keeps rules, in the words in which a person was shown them.
pub(crate) type Keep = Arc<dyn Fn(Vec<String>) + Send + Sync>;

/// A question to a person.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Question {
    /// Counts from 1 within a run.
    pub(crate) number: u64,
    pub(crate) text: String,
    /// What the same asks for, if it asks for a permission.
    pub(crate) proposal: Option<Proposal>,
}

impl Question {
    /// Who asks.
    pub(crate) fn asker(&self) -> String {
        let named = || self.text.split_whitespace().next().unwrap_or_default().to_owned();
        self.proposal.as_ref().map_or_else(named, |proposal| proposal.agent.to_string())
    }
}

/// The notes of knowledge of the project and its links.
pub(crate) trait Notes: Send + Sync {
    /// Those with all words of a query, quoted with their sources.
    fn search(&self, query: &str) -> Vec<String>;

    /// Whether agents may still be told a note.
    fn holds(&self, id: &DecisionId) -> bool;
}

pub(crate) struct RequestHandler {
    /// Absolute paths of files attached by the user, which may always be read.
    pub(crate) attached: BTreeSet<String>,
    pub(crate) permissions: Permissions,
    pub(crate) policy: PolicyRules,
    /// Files that the user approved as they are, relative to the project's root: they are run.
    pub(crate) approved_files: BTreeSet<String>,
    /// A team's own programs that are asked.
    pub(crate) hooks: Hooks,
    /// Most questions that an agent may ask in one piece of work.
    pub(crate) most_questions: u64,
    /// The project's root, in the form that paths are compared with.
    pub(crate) project: String,
    /// The branch that decisions are made for.
    pub(crate) branch: Option<String>,
    /// In force when the run began, newest first.
    pub(crate) decisions: Vec<Decision>,
    pub(crate) notes: Arc<dyn Notes>,
    /// Why an agent may not write a file, by agent and path relative to the project's root.
    pub(crate) locked: BTreeMap<(Slug, String), String>,
    /// Recorded before the run was interrupted; a repeated call records nothing twice.
    pub(crate) recorded: Recorded,
    /// Recorded since then.
    pub(crate) recorded_here: Mutex<Recorded>,
    /// Delivers new decisions to agents.
    pub(crate) notices: Notices,
    /// Messages from the user during the run.
    pub(crate) user_messages: Arc<UserMessages>,
    /// `None`: nobody can be asked.
    pub(crate) ask: Option<Ask>,
    /// The number of questions so far.
    pub(crate) asked: AtomicU64,
    /// Once the run is cancelled, questions need no answers.
    pub(crate) cancel: Cancel,
    /// Command lines that check the project.
    pub(crate) checks: Vec<String>,
    pub(crate) allowed: AlwaysAllowed,
    /// Keeps what a person allows in later runs too.
    pub(crate) keep: Option<Keep>,
    /// A command in the foreground carries the run, and may commit.
    pub(crate) may_commit: bool,
}

/// Decisions and lessons recorded by agents.
#[derive(Default)]
pub(crate) struct Recorded {
    pub(crate) decisions: Vec<Decision>,
    pub(crate) learned: Vec<(Slug, String)>,
}

/// Most announced writes that are remembered.
const MAX_ANNOUNCED: usize = 20;

/// What an agent is told whose question nobody answers any more. It is no refusal.
pub(super) const INTERRUPTED: &str = "the run was interrupted before anybody answered";

/// Most decisions returned by a search.
const MAX_FOUND: usize = 20;

/// How long a person was waited for, whose answers may be open at the same time.
#[derive(Default)]
struct PersonWaits {
    open: usize,
    since: Option<Instant>,
    counted: Duration,
}

struct PersonWait<'r>(&'r Requester);

impl Drop for PersonWait<'_> {
    fn drop(&mut self) {
        let mut waits = self.0.waits.lock();
        waits.open -= 1;
        if waits.open == 0 {
            let since = waits.since.take();
            waits.counted += since.map_or(Duration::ZERO, |since| since.elapsed());
        }
    }
}

/// The agent that makes requests, with counts of what was granted.
pub(crate) struct Requester {
    pub(crate) agent: Slug,
    pub(crate) tier: Tier,
    pub(crate) reports: Reports,
    /// Its role forbids changes: a reviewer, the coordinator, an agent of a read-only tier.
    pub(crate) reads_only: bool,
    /// Its work tree; `None` if it has no tools that change anything.
    pub(crate) tree: Option<Arc<WorkTree>>,
    /// Its clone; `None`: it works in the project.
    place: Option<Arc<Place>>,
    refused: AtomicU64,
    /// What became of its commands.
    pub(super) commands: Mutex<CommandLog>,
    /// Its engine works in a mode that changes nothing.
    is_confined: AtomicBool,
    /// Only writes and commands.
    changes_refused: AtomicU64,
    changes_allowed: AtomicU64,
    /// What it has asked a person.
    questions: AtomicU64,
    waits: Mutex<PersonWaits>,
    /// What its tools have said they are about to write, until they ask for it.
    announced: Mutex<Vec<Writing>>,
    /// A reviewer's verdict so far; `None`: it reviews nothing.
    judgement: Option<Mutex<Option<Judgement>>>,
    /// `None`: it may not hand work on.
    pub(super) caller: Option<Caller>,
}

impl Requester {
    pub(crate) fn new(agent: Slug, reports: Reports, reads_only: bool, tree: Option<Arc<WorkTree>>) -> Self {
        let (refused, changes_refused, changes_allowed, questions, waits) = Default::default();
        let (commands, is_confined, announced) = Default::default();
        Self {
            agent,
            tier: Tier::default(),
            reports,
            reads_only,
            tree,
            place: None,
            refused,
            commands,
            is_confined,
            changes_refused,
            changes_allowed,
            questions,
            waits,
            announced,
            judgement: None,
            caller: None,
        }
    }

    pub(crate) fn at_tier(self, tier: Tier) -> Self {
        Self { tier, ..self }
    }

    /// Whether it works in a clone.
    pub(super) fn is_placed(&self) -> bool {
        self.place.is_some()
    }

    pub(crate) fn placed(self, place: Option<Arc<Place>>) -> Self {
        Self { place, ..self }
    }

    pub(crate) fn reviewing(self) -> Self {
        Self { judgement: Some(Mutex::default()), ..self }
    }

    pub(super) fn with_caller(self, caller: Caller) -> Self {
        Self { caller: Some(caller), ..self }
    }

    /// The reviewer's latest verdict.
    pub(crate) fn judgement(&self) -> Option<Judgement> {
        self.judgement.as_ref()?.lock().clone()
    }

    fn judge(&self, judgement: Judgement) -> Result<String, String> {
        let Some(slot) = &self.judgement else {
            return Err("only the reviewer of this work can give a verdict on it".to_owned());
        };
        *slot.lock() = Some(judgement);
        Ok("The verdict is noted. End with your reasons.".to_owned())
    }

    /// Counts a refusal; `None`: it is not known to keep the agent from its work.
    pub(super) fn note_refused(&self, access: Option<Access>) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        if is_change(access) {
            self.changes_refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn note_allowed(&self, access: Option<Access>) {
        if is_change(access) {
            self.changes_allowed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether its role or its engine's mode keeps it from all changes.
    pub(super) fn cannot_change(&self) -> bool {
        self.reads_only || self.is_confined.load(Ordering::Relaxed)
    }

    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// The number of refused writes and commands, if none was allowed and its role is not the reason.
    pub(crate) fn all_changes_refused(&self) -> Option<u64> {
        let count = self.changes_refused.load(Ordering::Relaxed);
        let is_kept = count > 0 && self.changes_allowed.load(Ordering::Relaxed) == 0 && !self.reads_only;
        is_kept.then_some(count)
    }

    /// Counts the time until the result is dropped as waiting for a person.
    pub(super) fn waits_for_person(&self) -> impl Drop {
        let mut waits = self.waits.lock();
        if waits.open == 0 {
            waits.since = Some(Instant::now());
        }
        waits.open += 1;
        PersonWait(self)
    }

    /// How long it has waited for a person.
    pub(super) fn waited(&self) -> Duration {
        let waits = self.waits.lock();
        waits.counted + waits.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Counts a question, unless there have been so many.
    pub(super) fn may_ask(&self, most: u64) -> bool {
        self.questions.fetch_add(1, Ordering::Relaxed) < most
    }

    pub(super) fn is_reviewing(&self) -> bool {
        self.judgement.is_some()
    }

    /// The latest announced write of which this is true. It is forgotten.
    pub(super) fn announced(&self, is_it: impl Fn(&Writing) -> bool) -> Option<Writing> {
        let mut announced = self.announced.lock();
        let place = announced.iter().rposition(is_it)?;
        Some(announced.remove(place))
    }

    fn announce(&self, files: Vec<Writing>) {
        let mut announced = self.announced.lock();
        announced.extend(files);
        // Those that nobody asked about.
        let surplus = announced.len().saturating_sub(MAX_ANNOUNCED);
        announced.drain(..surplus);
    }

    pub(super) fn tell(&self, kind: EventKind) {
        self.reports.tell(Some(&self.agent), kind);
    }
}

impl RequestHandler {
    /// The same with a team's hooks, whose files no tool changes.
    pub(crate) fn with_hooks(mut self, hooks: Hooks) -> Self {
        let root = real(Path::new(&self.project));
        let inner = |path: &Path| Some(path.strip_prefix(&root).ok()?.to_str()?.to_owned());
        self.approved_files.extend(hooks.files().filter_map(inner));
        Self { hooks, ..self }
    }

    /// The project's root where an agent works.
    pub(super) fn project_of<'r>(&'r self, requester: &'r Requester) -> &'r str {
        requester.place.as_ref().map_or(&self.project, |place| &place.project)
    }

    /// The hooks where an agent works.
    pub(super) fn hooks_of<'r>(&'r self, requester: &'r Requester) -> &'r Hooks {
        requester.place.as_ref().map_or(&self.hooks, |place| &place.hooks)
    }

    /// Whether the mode lets an agent change anything.
    pub(super) fn lets_change(&self) -> bool {
        match self.permissions {
            Permissions::Allow => true,
            Permissions::Ask => self.ask.is_some(),
            Permissions::Deny => false,
        }
    }

    pub(crate) async fn answer(&self, requester: &Requester, request: Request) {
        match request {
            Request::Tool(call, reply) => reply.send(self.tool(requester, call).await),
            Request::Write(files, reply) => {
                let judge = self.judge(requester);
                let refusal = |path: &str| judge.git_refusal(&judge.asked(Access::Write, "write", path));
                let refused = files.iter().find_map(|file| Some((&file.path, refusal(&file.path)?)));
                let instead = match refused {
                    Some((path, reason)) => {
                        requester.note_refused(Some(Access::Write));
                        let (tool, detail) = ("write".to_owned(), path.clone());
                        requester.tell(EventKind::ToolDenied { tool, detail, reason: reason.clone() });
                        Some(ToolResult { ok: false, text: reason })
                    }
                    None => {
                        requester.announce(files.clone());
                        self.record_inbox_files(requester, files).await
                    }
                };
                reply.send(instead);
            }
            Request::Permission { call, access, tool, detail, reply } => {
                reply.send(self.permit(requester, call.as_deref(), access, &tool, &detail).await);
            }
            Request::Host(place, reply) => reply.send(self.reach(requester, &place).await),
            Request::BeforeTool(call, reply) => reply.send(self.before_tool(requester, &call).await),
            Request::AfterTool(call, ended, reply) => {
                let instead = self.after_tool(requester, &call, &ended).await;
                // If it cannot be written, the next call that has an effect is refused.
                let _ = requester.reports.flush().await;
                reply.send(instead);
            }
            Request::Unasked(reply) => {
                let rule = self.policy.restricts(&requester.agent, requester.tier).map(|rule| format!("`{rule}`"));
                let hook = || self.hooks.about_calls().map(|hook| format!("the hook `{hook}`"));
                let restricted = rule.or_else(hook);
                let mode_allows = self.permissions == Permissions::Allow && !requester.reads_only;
                if let Some(rule) = restricted.as_ref().filter(|_| mode_allows) {
                    let reason = format!(
                        "its engine asks nobody before it acts, so {rule} keeps {} in the engine's strictest mode",
                        requester.agent
                    );
                    requester.tell(EventKind::SessionError { session: String::new(), reason });
                }
                let may_act = mode_allows && restricted.is_none();
                requester.is_confined.store(!may_act, Ordering::Relaxed);
                // It makes no further requests, so all of its turn may be a command.
                if let (true, Some(tree)) = (may_act, &requester.tree) {
                    tree.begin_command(&requester.agent, None).await;
                }
                reply.send(may_act);
            }
            Request::Question { text, choices, reply } => self.question(requester, &text, &choices, reply).await,
        }
    }

    /// The arguments that a call is made with; the error is why it is not made.
    pub(super) async fn before_tool(&self, requester: &Requester, call: &ToolCall) -> Result<Option<Value>, String> {
        let Requester { agent, reports, .. } = requester;
        let asked = self.hooks_of(requester).before_tool(agent, call, reports, &self.cancel).await;
        if let Err(reason) = &asked {
            requester.note_refused(change_by(&call.tool));
            let (tool, detail) = (call.tool.clone(), subject(&call.arguments));
            requester.tell(EventKind::ToolDenied { tool, detail, reason: reason.clone() });
        }
        asked
    }

    async fn after_tool(&self, requester: &Requester, call: &ToolCall, ended: &ToolResult) -> Option<String> {
        let Requester { agent, reports, .. } = requester;
        self.hooks_of(requester).after_tool(agent, (call, ended), reports, &self.cancel).await
    }

    /// Decides about a call, records that, and notes that it begins.
    pub(super) async fn permit(
        &self,
        requester: &Requester,
        call: Option<&str>,
        access: Access,
        tool: &str,
        detail: &str,
    ) -> Approval {
        let Some(approval) = self.permission(requester, access, tool, detail).await else {
            return Approval::Deny(INTERRUPTED.to_owned());
        };
        let judge = self.judge(requester);
        let access = if judge.only_reads(&judge.asked(access, tool, detail)) { Access::Read } else { access };
        let approval = match approval {
            Approval::Allow => match self.begin_call(requester, call, access, detail).await {
                Ok(()) => Approval::Allow,
                Err(reason) => Approval::Deny(reason),
            },
            denied @ Approval::Deny(_) => denied,
        };
        match &approval {
            Approval::Allow => requester.note_allowed(Some(access)),
            Approval::Deny(reason) => {
                requester.note_refused(Some(access));
                if access == Access::Shell {
                    requester.commands.lock().refuse(detail);
                }
                let (tool, detail) = (tool.to_owned(), detail.to_owned());
                requester.tell(EventKind::ToolDenied { tool, detail, reason: reason.clone() });
            }
        }
        approval
    }

    /// Notes that a call begins. Whatever becomes of the run, that is known: otherwise a call with an effect may not begin.
    async fn begin_call(
        &self,
        requester: &Requester,
        call: Option<&str>,
        access: Access,
        detail: &str,
    ) -> Result<(), String> {
        if let Some(tree) = requester.tree.as_ref() {
            match access {
                Access::Read | Access::Network | Access::Own => {}
                // Such commands only show something.
                Access::Shell if requester.reads_only => {}
                Access::Write => {
                    if let Some(path) = self.path_in_project(requester, detail) {
                        tree.begin_write(&requester.agent, call.unwrap_or_default(), &path, true);
                    }
                    tree.is_ready().await;
                }
                Access::Shell | Access::Mcp | Access::Other => tree.begin_command(&requester.agent, call).await,
            }
        }
        if access == Access::Read { Ok(()) } else { requester.reports.flush().await }
    }

    async fn tool(&self, requester: &Requester, call: ToolCall) -> ToolResult {
        let Requester { reports, agent, .. } = requester;
        if let Err(reason) = self.own_tool(requester, &call.tool, &call.arguments.to_string()).await {
            return result(Err(reason));
        }
        let done = match tools::read(&call) {
            Err(wrong) => Err(wrong),
            Ok(Intent::Decide(decision)) => self.decide(reports, agent, *decision).await,
            Ok(Intent::Remember { text, share }) => self.remember(reports, agent, text, share).await,
            Ok(Intent::Search(query)) => Ok(self.search(&query)),
            Ok(Intent::Judge(judgement)) => requester.judge(judgement),
            Ok(Intent::Route(_) | Intent::Status) => {
                Err("agents that choose, review or only read cannot hand on work".to_owned())
            }
            Ok(Intent::Commit(committing)) => self.commit(requester, &call.call, committing).await,
            Ok(Intent::Shell(_) | Intent::Files(_)) => Err("use the tools that you have for it".to_owned()),
        };
        result(done)
    }

    async fn decide(&self, reports: &Reports, agent: &Slug, decision: Decision) -> Result<String, String> {
        let title = decision.title.clone();
        let decision = Decision { by: Some(agent.to_string()), ..decision };
        // An earlier process may have redacted the text, so the title has to identify it.
        let is_same = |other: &&Decision| other.title == title && other.by == decision.by;
        // Whoever made it: two that say the same are one.
        let is_equal = |other: &&Decision| other.title == title && other.text.trim() == decision.text.trim();
        let before = self.recorded.decisions.iter().find(is_same).map(|known| known.id.clone());
        let here = || self.recorded_here.lock().decisions.iter().find(is_equal).map(|known| known.id.clone());
        if let Some(id) = before.or_else(here) {
            return Ok(format!("Decision {id} is recorded already: {title}"));
        }
        if let Some(known) = self.decisions.iter().find(is_equal) {
            return Ok(format!("Decision {} is in force already: {title}", known.id));
        }
        let logged = EventKind::DecisionLogged { decision: decision.clone(), branch: self.branch.clone() };
        let entry = reports.record(Some(agent), logged).await?;
        let id = entry.decision();
        let decision = Decision { id: id.clone(), ..decision };
        self.recorded_here.lock().decisions.push(decision.clone());
        self.notices.log(agent, entry, decision);
        Ok(format!("Decision {id} is recorded: {title}"))
    }

    async fn remember(
        &self,
        reports: &Reports,
        agent: &Slug,
        text: String,
        share: Option<NoteKind>,
    ) -> Result<String, String> {
        let lesson = (agent.clone(), text.clone());
        if self.recorded.learned.contains(&lesson) || self.recorded_here.lock().learned.contains(&lesson) {
            return Ok("It is already recorded.".to_owned());
        }
        reports.record(Some(agent), EventKind::MemoryLogged { text, share }).await?;
        self.recorded_here.lock().learned.push(lesson);
        Ok(match share {
            Some(_) => "It is kept, and proposed as a note: a person decides whether other projects see it.".to_owned(),
            None => "It is kept.".to_owned(),
        })
    }

    /// Records files written to another tool's inbox as decisions, instead of writing them.
    async fn record_inbox_files(&self, requester: &Requester, files: Vec<Writing>) -> Option<ToolResult> {
        let is_note =
            |file: &Writing| self.path_in_project(requester, &file.path).is_some_and(|path| is_in_inbox(&path));
        let (notes, others): (Vec<Writing>, Vec<Writing>) = files.into_iter().partition(is_note);
        if notes.is_empty() {
            return None;
        }
        let (mut ok, mut replies) = (true, Vec::new());
        for note in &notes {
            let found = tools::note(&self.resulting_text(requester, note));
            for decision in found.as_deref().unwrap_or_default() {
                let done = self.decide(&requester.reports, &requester.agent, decision.clone()).await;
                ok &= done.is_ok();
                replies.push(done.unwrap_or_else(|reason| reason));
            }
            if let Err(reason) = found {
                ok = false;
                replies.push(format!("Nothing is recorded: {reason}; use `squad_log_decision`."));
            }
        }
        replies.push("No file is written for it.".to_owned());
        if !others.is_empty() {
            let paths = list(others.iter().map(|file| format!("`{}`", file.path)));
            replies.push(format!("The call did not run: write {paths} without it."));
        }
        Some(ToolResult { ok, text: replies.join(" ") })
    }

    /// The text of a file after the call.
    fn resulting_text(&self, requester: &Requester, file: &Writing) -> String {
        let held = || std::fs::read_to_string(Path::new(self.project_of(requester)).join(&file.path)).ok();
        let edited = file.old.as_ref().filter(|old| !old.is_empty()).and_then(|old| {
            let held = held().filter(|held| held.contains(old.as_str()))?;
            Some(held.replacen(old.as_str(), &file.text, 1))
        });
        edited.unwrap_or_else(|| file.text.clone())
    }

    async fn question(&self, requester: &Requester, text: &str, choices: &[String], reply: Reply<Option<String>>) {
        let Requester { agent, reports, .. } = requester;
        if !requester.may_ask(self.most_questions) {
            let most = self.most_questions;
            return reply.send(Some(format!(
                "no more questions: {most} are as many as `policy.questions` allows; decide yourself"
            )));
        }
        let choices = if choices.is_empty() { String::new() } else { format!("\n({})", choices.join(" / ")) };
        let question = format!("{agent} asks:\n{}> ", marked(&format!("{text}{choices}")));
        let waits = requester.waits_for_person();
        let answer = self.ask_person(reports, Some(agent), question, None).await;
        drop(waits);
        reply.send(answer.map(|answer| answer.trim().to_owned()).filter(|answer| !answer.is_empty()));
    }

    /// `None`: there is nobody to ask, or no answer.
    pub(crate) async fn ask_person(
        &self,
        reports: &Reports,
        agent: Option<&Slug>,
        text: String,
        proposal: Option<Proposal>,
    ) -> Option<String> {
        let ask = self.ask.as_ref()?;
        let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let asked =
            EventKind::QuestionAsked { question: number, text: text.clone(), proposal: proposal.clone().map(Box::new) };
        reports.tell(agent, asked);
        let _guard = QuestionGuard { reports, agent, number };
        // What led to the question is shown before it.
        let _ = reports.flush().await;
        let (sender, answer) = oneshot::channel();
        ask(Question { number, text, proposal }, sender);
        let mut cancel = self.cancel.clone();
        tokio::select! {
            biased;
            // A line typed after that is no answer.
            () = cancel.wait() => None,
            answer = answer => answer.ok(),
        }
    }

    fn search(&self, query: &str) -> String {
        let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
        let found: Vec<String> = self
            .notices
            .decisions()
            .iter()
            .chain(&self.decisions)
            .filter(|decision| {
                let text = format!("{} {}", decision.title, decision.text).to_lowercase();
                words.iter().all(|word| text.contains(word))
            })
            .take(MAX_FOUND)
            .map(|decision| format!("[{}] {}\n{}", decision.id, decision.title, decision.text))
            .collect();
        let found: Vec<String> = found.into_iter().chain(self.notes.search(query)).collect();
        match found.is_empty() {
            true => "No decision in force and no note matches.".to_owned(),
            false => found.join("\n\n"),
        }
    }
}

/// A question without an answer. Dropping it ends the question, answered or not.
struct QuestionGuard<'a> {
    reports: &'a Reports,
    agent: Option<&'a Slug>,
    number: u64,
}

impl Drop for QuestionGuard<'_> {
    fn drop(&mut self) {
        self.reports.tell(self.agent, EventKind::QuestionAnswered { question: self.number });
    }
}

fn is_change(access: Option<Access>) -> bool {
    matches!(access, Some(Access::Write | Access::Shell))
}

/// The result as the model reads it.
pub(super) fn result(done: Result<String, String>) -> ToolResult {
    let (ok, text) = done.map_or_else(|text| (false, text), |text| (true, text));
    ToolResult { ok, text: without_hidden(text) }
}

/// A path as an engine names it, relative to the project's root with `/`; `None` if outside.
pub(crate) fn in_project(project: &str, path: &str) -> Option<String> {
    let project = Path::new(project);
    PathScope::of(&project.join(path), project).in_project().ok().filter(|path| !path.is_empty())
}
