//! Tool calls that involve other agents: handing work to a colleague, and asking for everyone's status.

use std::sync::Arc;

use tokio::sync::watch;

use super::colleagues::{Admitted, Caller, HandOnRequest, HandedBy, OpenWork, WaitGuard};
use super::requests::{Requester, result};
use super::workers::{Job, Work, Workers};
use crate::engine::{Approval, Request, ToolCall, spawn};
use crate::model::{Access, EventKind, Outcome, Slug, list};
use crate::policy::is_in_inbox;
use crate::tools::{self, Handing, Intent};

/// Receives the finished work.
type WorkReceiver = watch::Receiver<Option<Work>>;

/// Most bytes of a colleague's report.
const REPORT: usize = 16 * 1024;

impl Workers {
    /// Answers a request. It drops its handles on the run before waiting, so that the engine can end without an answer.
    pub(super) async fn answer(self, requester: Arc<Requester>, request: Request) {
        let request = match self.within_budget(&requester, request) {
            Some(request) => request,
            None => return,
        };
        let intent = match (&request, &requester.caller) {
            // Another answer tells the agent that a rule denies it.
            (Request::Tool(call, _), Some(caller)) if !self.requests.denies_tool(&requester, &call.tool) => {
                tools::read(call).ok().zip(Some(caller))
            }
            _ => None,
        };
        let done = match intent {
            Some((Intent::Route(handing), caller)) => match self.hand_on(&requester, caller, handing).await {
                Ok(handed_on) => {
                    drop(self);
                    handed_on.answer(caller).await
                }
                Err(reason) => Err(reason),
            },
            Some((Intent::Status, _)) => Ok(self.sessions.summary_for(&requester.agent)),
            _ => {
                let requests = Arc::clone(&self.requests);
                drop(self);
                return requests.answer(&requester, request).await;
            }
        };
        if let Request::Tool(_, reply) = request {
            reply.send(result(done));
        }
    }

    /// Refuses a call that is one too many. Returns the request otherwise.
    fn within_budget(&self, requester: &Requester, request: Request) -> Option<Request> {
        let (call, access, tool, detail) = match &request {
            Request::Tool(ToolCall { call, tool, .. }, _) => (Some(call), None, tool.as_str(), String::new()),
            Request::Permission { call, access, tool, detail, .. } => {
                (call.as_ref(), Some(*access), tool.as_str(), detail.clone())
            }
            // Counted when it asks for permission, unless squad takes the file itself.
            Request::Write(files, _) if files.iter().all(|file| !is_in_inbox(&file.path)) => return Some(request),
            Request::Write(files, _) => {
                let path = files.first().map(|file| file.path.clone()).unwrap_or_default();
                (None, Some(Access::Write), "write", path)
            }
            _ => return Some(request),
        };
        let Err(exhausted) = self.budget.take_call(&requester.agent, call.map(String::as_str)) else {
            return Some(request);
        };
        requester.note_refused(access);
        if access == Some(Access::Shell) {
            requester.commands.lock().refuse(&detail);
        }
        let reason = exhausted.to_string();
        requester.tell(EventKind::ToolDenied { tool: tool.to_owned(), detail, reason: reason.clone() });
        match request {
            Request::Tool(_, reply) => reply.send(result(Err(reason))),
            Request::Permission { reply, .. } => reply.send(Approval::Deny(reason)),
            Request::Write(_, reply) => reply.send(Some(result(Err(reason)))),
            _ => {}
        }
        None
    }

    /// Hands work on. The error is for the model.
    async fn hand_on(&self, requester: &Requester, caller: &Caller, handing: Handing) -> Result<HandedOn, String> {
        let Handing { agent, task, wait } = handing;
        let to = Slug::fold(agent.trim().trim_start_matches('@')).ok_or_else(|| format!("`{agent}` names nobody"))?;
        let from = &requester.agent;
        if let Some(done) =
            self.colleagues.known(&HandOnRequest { from: from.clone(), to: to.clone(), task: task.clone() })
        {
            let waiting = if wait { Some(self.colleagues.wait(from, &to)?) } else { None };
            return Ok(HandedOn { to, waiting: waiting.map(|waiting| (waiting, done)) });
        }
        let Admitted { open, waiting } = self.colleagues.admit(from, &caller.asked_by, &to, wait)?;
        let job = self.colleagues.job(from, &to, &task, caller.tier).await?;
        let requested = EventKind::RouteRequested { to: to.clone(), text: task, wait };
        let entry = requester.reports.record(Some(from), requested).await?;
        let agents = [&caller.asked_by[..], std::slice::from_ref(from)].concat();
        let job = Job { handed_by: Some(HandedBy { agents, entry }), ..job };
        let done = Self { reports: requester.reports.clone(), ..self.clone() }.begin(job, open);
        Ok(HandedOn { to, waiting: waiting.map(|waiting| (waiting, done)) })
    }

    fn begin(self, job: Job, open: OpenWork<Job, Work>) -> WorkReceiver {
        let (sender, done) = watch::channel(None);
        spawn(async move {
            let work = self.perform(job).await;
            self.colleagues.end(work.clone());
            sender.send_replace(Some(work));
            drop(open);
        });
        done
    }

    /// Continues work that was handed on before the run was interrupted. A repeated request gets its report.
    pub(crate) fn take_up(&self, request: HandOnRequest, job: Job) {
        let done = self.clone().begin(job, self.colleagues.open());
        self.colleagues.remember(request, done);
    }

    /// Likewise for work that was finished before.
    pub(crate) fn remember(&self, request: HandOnRequest, work: Work) {
        self.colleagues.remember(request, watch::channel(Some(work)).1);
    }
}

/// Work that has been handed on, with its receiver if the caller waits.
struct HandedOn {
    to: Slug,
    waiting: Option<(WaitGuard<Job, Work>, WorkReceiver)>,
}

impl HandedOn {
    /// The answer for the caller's model: the colleague's report, or that it has begun. It holds nothing of the run
    /// meanwhile, because the caller may have ended.
    async fn answer(self, caller: &Caller) -> Result<String, String> {
        let Some((waiting, mut done)) = self.waiting else {
            let to = self.to;
            return Ok(format!("`{to}` has the task and starts when it is free. You do not get its report."));
        };
        caller.permit.begin_wait();
        let work = done.wait_for(Option::is_some).await.ok().and_then(|work| work.clone());
        drop(waiting);
        caller.permit.end_wait().await;
        report(&work.ok_or("squad lost track of it; this is a bug")?)
    }
}

fn report(work: &Work) -> Result<String, String> {
    let Work { agent, outcome, reason, text, changed, .. } = work;
    let end = text.floor_char_boundary(REPORT);
    let more = if end < text.len() {
        format!("\n(It continues for another {} bytes.)", text.len() - end)
    } else {
        String::new()
    };
    let paths: Vec<&str> = changed.iter().flatten().map(|change| change.path.as_str()).take(50).collect();
    let files = if paths.is_empty() { String::new() } else { format!("\n\nFiles it changed: {}", list(paths)) };
    let text = format!("{}{more}{files}", &text[..end]);
    match outcome {
        Outcome::Completed => Ok(format!("Report of `{agent}`:\n\n{text}")),
        outcome => Err(format!("`{agent}` did not complete it ({outcome}: {reason}). What it said last:\n\n{text}")),
    }
}
