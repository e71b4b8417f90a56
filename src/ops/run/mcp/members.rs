//! `start_squad_members`, `get_run` and `cancel_run`. Runs belong to the repository; a call only observes them.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answers::beginning;
use super::check::{StartMembers, check};
use super::schemas::UNUSED;
use super::{McpServer, answers, arguments, uri};
use crate::error::Failure;
use crate::mcp::{Call, Object, ToolResult, Wake};
use crate::model::{DecisionState, IntoMap, RunId, first_line, plural};
use crate::ops::Project;
use crate::ops::decisions::list;
use crate::ops::run::cancel::{agent_named, cancel, end_of};
use crate::ops::run::host::Request;
use crate::ops::run::members::{self, MemberResult, RunResult, Runner, StartedRun};

/// How often to report progress: hosts give up on a silent call.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);
/// Bytes of a reply for its members' name, how many are left out, and a link.
pub(super) const FRAME: usize = 120;
/// How often to check a run of another process.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// How long a process may take to end after its run.
const ENDING: Duration = Duration::from_secs(10);
/// How long to wait for a cancelled run to end; its engine has five seconds.
const CANCELLING: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GetRun {
    squad_id: String,
    #[serde(default)]
    wait_sec: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CancelRun {
    squad_id: String,
    member_id: Option<String>,
}

impl McpServer {
    pub(super) fn start_members(&self, given: Object, call: &Call) -> Result<ToolResult, Failure> {
        let unused: Vec<String> =
            UNUSED.into_iter().filter(|name| given.contains_key(*name)).map(unused_note).collect();
        let asked: StartMembers = arguments(given)?;
        let runner = self.runner()?;
        call.progress(0.0, None, "checking the members");
        let project = self.project()?;
        members::require_sound(&project)?;
        let roles = self.roles_of(Some(&project))?;
        let members = match check(&self.env, &project, &roles, &self.options, &asked) {
            Ok(members) => members,
            Err(problems) => return Ok(refused(&problems)),
        };
        let message = match &members[..] {
            [member] => member.given.task.clone(),
            several => {
                let tasks =
                    several.iter().map(|member| format!("{}: {}", member.given.id, first_line(&member.given.task, 80)));
                tasks.collect::<Vec<_>>().join("\n")
            }
        };
        let started = runner.start(&project, Request { members, ..self.request(message) })?;
        self.follow(&project, started, asked.wait, call, &|result| self.reply_with(&project, result, &unused))
    }

    pub(super) fn runner(&self) -> Result<Runner, Failure> {
        let spare = self.spare.lock().take();
        spare.map_or_else(|| Runner::spawn(&self.env, &self.directory), Ok)
    }

    /// A request with the server's options. A command in the foreground lands the decisions.
    pub(super) fn request(&self, message: String) -> Request {
        let (permissions, flags) = (self.options.permissions, self.flags());
        let (agents, attachments, members, asks, commit) = Default::default();
        let (tier, resume, conversation, engine) = Default::default();
        Request {
            message,
            agents,
            tier,
            flags,
            attachments,
            permissions,
            asks,
            commit,
            resume,
            conversation,
            members,
            fresh: false,
            engine,
        }
    }

    /// Waits for a run to end, unless the caller does not want to. Cancelling the call cancels the run; a client that
    /// disconnects does not.
    pub(super) fn follow(
        &self,
        project: &Project,
        started: StartedRun,
        waits: bool,
        call: &Call,
        reply: &dyn Fn(&RunResult) -> ToolResult,
    ) -> Result<ToolResult, Failure> {
        let (run, tip) = (started.run.clone(), started.tip.clone());
        let read = || RunResult::read_since(project, &run, tip.as_deref());
        let signal = Arc::clone(&call.signal);
        // Waits even if nobody else does, so that no zombie process stays.
        let (env, directory, spare) = (self.env.clone(), self.directory.clone(), Arc::clone(&self.spare));
        let (ended, process) = channel();
        let _ = thread::Builder::new().spawn(move || {
            let failure = started.wait(|| signal.done());
            let _ = ended.send(failure);
            let mut spare = spare.lock();
            if spare.is_none() {
                *spare = Runner::spawn(&env, &directory).ok();
            }
        });
        if waits && call.wants_task() {
            return self.as_task(project, &run);
        }
        let begun = Instant::now();
        for tick in 1.. {
            let left = self.options.patience.saturating_sub(begun.elapsed());
            match if waits && !left.is_zero() { call.signal.wait(PROGRESS_INTERVAL.min(left)) } else { Wake::Closing } {
                Wake::Elapsed => {
                    let found = read().ok().flatten();
                    call.progress(f64::from(tick), None, &how_it_is(&run, found.as_ref(), self.env.clock.now()));
                }
                Wake::Cancelled(reason) => {
                    if !is_impatience(&reason) {
                        let _ = cancel(&self.env, &self.directory, run.as_str(), None);
                    }
                    break;
                }
                Wake::Closing => break,
                Wake::Done => {
                    let is_recorded = |result: &RunResult| !["running", "lost", "unknown"].contains(&&*result.status);
                    if let Some(result) = read()?.filter(is_recorded) {
                        return Ok(reply(&result));
                    }
                    // The run's end could not be recorded, so the end of its process counts.
                    let failure = process.recv_timeout(ENDING).ok().flatten();
                    return self.unrecorded(project, &run, failure);
                }
            }
        }
        self.shown_as(project, &run, reply)
    }

    pub(super) fn said(&self, project: &Project, run: &RunId) -> String {
        how_it_is(run, RunResult::read(project, run).ok().flatten().as_ref(), self.env.clock.now())
    }

    /// What is known of a run whose end could not be recorded, and why it could not.
    fn unrecorded(&self, project: &Project, run: &RunId, failure: Option<Failure>) -> Result<ToolResult, Failure> {
        let Some(failure) = failure else { return self.shown(project, run) };
        let Some(mut result) = RunResult::read(project, run)? else { return Err(failure) };
        result.reason = Some(failure.message);
        result.hint = failure.hint;
        Ok(self.reply(project, &result))
    }

    fn shown(&self, project: &Project, run: &RunId) -> Result<ToolResult, Failure> {
        self.shown_as(project, run, &|result| self.reply(project, result))
    }

    pub(super) fn shown_as(
        &self,
        project: &Project,
        run: &RunId,
        reply: &dyn Fn(&RunResult) -> ToolResult,
    ) -> Result<ToolResult, Failure> {
        match RunResult::read(project, run)? {
            Some(result) => Ok(reply(&result)),
            None => Ok(ToolResult::error(&format!("there is no run `{run}`"))),
        }
    }

    pub(super) fn get_run(&self, given: Object, call: &Call) -> Result<ToolResult, Failure> {
        let asked: GetRun = arguments(given)?;
        let (run, project) = (run_named(&asked.squad_id)?, self.project()?);
        self.wait_for(&project, &run, Duration::from_secs(asked.wait_sec), call);
        self.shown(&project, &run)
    }

    pub(super) fn cancel_run(&self, given: Object, call: &Call) -> Result<ToolResult, Failure> {
        let asked: CancelRun = arguments(given)?;
        let (run, project) = (run_named(&asked.squad_id)?, self.project()?);
        let member = asked.member_id.as_deref();
        if members::is_live(&project, &run) {
            cancel(&self.env, &self.directory, run.as_str(), member)?;
            if member.is_none() {
                self.wait_for(&project, &run, CANCELLING, call);
            }
        } else if let Some(member) = member {
            end_of(&project.repository, &project.ledger_prefix(), &run, Some(&agent_named(member)?))?;
        }
        self.shown(&project, &run)
    }

    pub(super) fn wait_for(&self, project: &Project, run: &RunId, at_most: Duration, call: &Call) {
        let begun = Instant::now();
        let mut reported = begun;
        let mut tick = 0.0;
        while begun.elapsed() < at_most && members::is_live(project, run) {
            if call.signal.wait(CHECK_INTERVAL.min(at_most.saturating_sub(begun.elapsed()))) != Wake::Elapsed {
                return;
            }
            if reported.elapsed() >= PROGRESS_INTERVAL {
                reported = Instant::now();
                tick += 1.0;
                call.progress(tick, None, &self.said(project, run));
            }
        }
    }

    pub(super) fn reply(&self, project: &Project, result: &RunResult) -> ToolResult {
        self.reply_with(project, result, &[])
    }

    fn reply_with(&self, project: &Project, result: &RunResult, notes: &[String]) -> ToolResult {
        let room = self.room();
        let mut value = json!({"squadId": result.run, "status": result.shown_status(), "members": []});
        if !notes.is_empty() {
            value["notes"] = json!(notes);
        }
        if let Some(reason) = result.reason.clone().or_else(|| result.claim()) {
            value["reason"] = beginning(&reason, room / 8).into();
        }
        if let Some(hint) = &result.hint {
            value["hint"] = hint.as_str().into();
        }
        let mut is_cut = false;
        if result.members.is_empty() {
            value["agents"] = json!(result.agents);
            let share = room / 4 / result.reasons.len().max(1);
            let reasons = result.reasons.iter().map(|(agent, reason)| (agent, beginning(reason, share)));
            if !result.reasons.is_empty() {
                value["reasons"] = json!(reasons.into_map());
            }
            if let Some(answer) = &result.answer {
                let shown = beginning(answer, room / 2);
                value["answer"] = shown.into();
                is_cut = shown.len() < answer.len();
            }
        }
        let decisions = decisions(project, result);
        if decisions.iter().any(|decision| decision["state"] == json!(DecisionState::Unlanded)) {
            value["hint"] = "`squad decisions land` puts unlanded decisions on the branch".into();
        }
        if !decisions.is_empty() {
            value["decisions"] = decisions.into_iter().take_while(answers::fits(room / 8)).collect();
        }
        let left = room.saturating_sub(value.to_string().len() + FRAME);
        let members = answers::of(project, result, self.env.clock.now(), left);
        if members.len() < result.members.len() {
            value["membersMore"] = (result.members.len() - members.len()).into();
        }
        let is_whole = |(shown, _): &(&Value, &MemberResult)| shown["logUri"].is_string();
        let linked = members.iter().zip(&result.members).filter(is_whole);
        let linked: Vec<&MemberResult> = linked.map(|(_, member)| member).collect();
        if is_cut || linked.len() < result.members.len() {
            value["uri"] = uri::run(&result.run).into();
        }
        value["members"] = members.into();
        let mut shown = ToolResult::structured(value);
        for member in linked.into_iter().filter(|member| member.end.is_some()) {
            let uri = uri::output(&result.run, member, "stdout");
            shown.link(&uri, &format!("{} stdout", member.given.id));
        }
        shown
    }
}

pub(super) fn run_named(id: &str) -> Result<RunId, Failure> {
    RunId::parse(id).ok_or_else(|| Failure::usage(format!("{id:?} is not a run's id")))
}

/// `run 20260105-…: 1 of 2 done; ada completed, bob running 12 s`.
fn how_it_is(run: &RunId, result: Option<&RunResult>, now: Timestamp) -> String {
    const NAMED: usize = 8;
    match result {
        Some(result) if !result.members.is_empty() => {
            let (done, all) = result.done();
            let each = result.members.iter().take(NAMED).map(|member| {
                let status = json!(member.status);
                let seconds = member.seconds_at(now);
                let seconds = if seconds >= 1.0 { format!(" {seconds:.0} s") } else { String::new() };
                format!("{} {}{seconds}", member.given.id, status.as_str().unwrap_or_default())
            });
            let each = each.collect::<Vec<_>>().join(", ");
            let more = if all > NAMED { ", …" } else { "" };
            format!("run {run}: {done} of {} done; {each}{more}", plural(all, "member"))
        }
        _ => format!("run {run} is in progress"),
    }
}

/// A client that times out does not mean to stop the work.
fn is_impatience(reason: &str) -> bool {
    let reason = reason.to_lowercase();
    ["timed out", "timeout", "time out", "-32001"].iter().any(|word| reason.contains(word))
}

fn unused_note(argument: &str) -> String {
    format!("`{argument}` changes nothing here: squad goes by the project that the server works in")
}

fn refused(problems: &[String]) -> ToolResult {
    let problems: String = problems.iter().map(|problem| format!("\n- {problem}")).collect();
    ToolResult::error(&format!("no member was started:{problems}"))
}

/// The run's decisions, and whether each is on the branch: no command in the foreground has landed them.
fn decisions(project: &Project, result: &RunResult) -> Vec<Value> {
    if result.decisions.is_empty() {
        return Vec::new();
    }
    // The tools for decisions report what cannot be read.
    let all = list::all(project).unwrap_or_default();
    let own = all.iter().filter(|decision| result.decisions.contains(&decision.id));
    own.map(|decision| json!({"id": decision.id, "title": decision.title, "state": decision.state})).collect()
}
