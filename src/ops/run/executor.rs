//! Executes one run, in this order: route, choose, fan out, review, answer, land, end.

use std::convert::Infallible;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::compile::{self, Colleague, Compiler, Situation};
use crate::engine::{EngineError, Form, Opening};
use crate::env::Env;
use crate::error::Failure;
use crate::model::{
    EventKind, FileVerdicts, Forecast, Member, Outcome, Plan, PlanKind, RunEnd, RunId, SessionSpec, Slug, Tier,
    ToolChoice, Verdict, WorkReport, first_line, list, printable, seconds,
};
use crate::ops::Project;
use crate::ops::decisions::landing::{Landed, Lander, Pending};
use crate::ops::ledger::journal::aside;
use crate::ops::run::checked::Checked;
use crate::ops::run::clones::Clones;
use crate::ops::run::forecast::forecast;
use crate::ops::run::order::{Ended, Order};
use crate::ops::run::resume::{HandedOn, Past};
use crate::ops::team::sandbox;
use crate::policy::REVIEWING;
use crate::pool::{
    EarlierTurns, HandOnRequest, HandedBy, Job, JobRequest, Limits, Work, WorkKind, Workers, session_id,
};
use crate::route::asks_for_work;
use crate::route::choice::{self, Chosen};
use crate::route::{self, ceremonies, overlaps};
use crate::tools::Tool;

/// A run's inputs; its methods are the phases.
pub(in crate::ops) struct Executor<'a> {
    pub(in crate::ops) env: &'a Env,
    pub(in crate::ops) project: &'a Project,
    pub(in crate::ops) order: &'a Order,
    pub(in crate::ops) run: &'a RunId,
    pub(in crate::ops) compiler: &'a Compiler<'a>,
    pub(in crate::ops) workers: &'a Workers,
    /// `None`: no agent of the team works in a clone.
    pub(in crate::ops) clones: Option<&'a Clones>,
    /// What the run had done before it was interrupted.
    pub(in crate::ops) past: &'a Past,
    /// The plan is for one agent and no reviewer.
    pub(in crate::ops) is_alone: bool,
}

/// What the agents did.
#[derive(Default)]
pub(super) struct Results {
    pub(super) work: Vec<Work>,
    /// The reviewer's verdicts, in order.
    pub(super) verdicts: Vec<Verdict>,
    /// What they say of each file's contents.
    pub(super) file_verdicts: FileVerdicts,
    /// Some work was reviewed and is not approved.
    pub(super) is_unapproved: bool,
    pub(super) answer: Option<String>,
    /// Nobody may revise the rejected work.
    pub(super) is_stuck: bool,
    pub(super) checked: Checked,
    /// Why nobody was chosen for the work.
    unchosen: Option<Failure>,
    /// What the run was likely to use.
    forecast: Option<Forecast>,
}

impl Executor<'_> {
    pub(in crate::ops) async fn perform(&self, mut plan: Plan) -> Ended {
        let started = Instant::now();
        let coordinator = Slug::coordinator();
        let before = self.past.coordinators().map(|end| self.workers.recorded(&coordinator, end.clone()));
        let mut results = Results { work: before.collect(), ..Results::default() };
        match self.past.plan() {
            Some(decided) => plan = decided.clone(),
            None => {
                plan.evidence.extend(self.compiler.model_evidence(&plan));
                self.tell(None, EventKind::RoutePlanned(plan.clone()));
            }
        }
        if let Some(returned) = &self.past.returned {
            results.work.clear();
            self.return_works(&plan, returned, &mut results.work).await;
            return self.finish(results, started).await;
        }
        match plan.kind {
            PlanKind::Agents if !self.order.members.is_empty() => self.members(&mut results).await,
            PlanKind::Agents => self.forecast_agents(&plan, &mut results).await,
            PlanKind::Direct => self.answer(&mut results).await,
            PlanKind::Abstain => {
                if let Some(plan) = self.choose(&plan, &mut results).await {
                    match self.clones.map_or(Ok(()), |clones| clones.require_order(&plan)) {
                        Ok(()) => self.forecast_agents(&plan, &mut results).await,
                        Err(failure) => results.unchosen = Some(failure),
                    }
                }
            }
        }
        self.finish(results, started).await
    }

    /// Lets the agents work. What they are likely to use is known in the end, so nobody waits for it.
    async fn forecast_agents(&self, plan: &Plan, results: &mut Results) {
        let (repository, prefix, given) = (self.project.repository.clone(), self.project.ledger_prefix(), plan.clone());
        let likely = aside(self.env.threads, move || forecast(&repository, &prefix, &given));
        let ((), likely) = tokio::join!(self.agents(plan, results), likely);
        results.forecast = likely.ok().flatten();
    }

    /// Lets the coordinator choose agents. `None`: it answers the message itself, or nobody is chosen.
    async fn choose(&self, plan: &Plan, results: &mut Results) -> Option<Plan> {
        if let Some(confirmed) = self.person_confirms(plan).await {
            return Some(confirmed);
        }
        let prompt = self.compiler.choice_prompt(&self.order.message, plan);
        let mut job = self.coordinator(prompt, false);
        job.opening.form = Some(Form { name: "choice".into(), schema: choice::schema(&self.project.team) });
        let work = self.workers.work(job).await;
        let chosen = (work.outcome == Outcome::Completed).then(|| choice::apply(&self.project.team, plan, &work.text));
        let plan = match chosen {
            None => None,
            Some(Ok(Chosen::Nobody(plan, answer))) => {
                self.tell(None, EventKind::RoutePlanned(plan));
                results.answer = Some(answer);
                None
            }
            Some(Ok(Chosen::Agents(mut plan))) => {
                self.plan_chosen(&mut plan);
                Some(plan)
            }
            Some(Err(reason)) => {
                let by_person = self.person_plans(plan, &reason).await;
                if by_person.is_none() {
                    let candidates = list(choice::candidates(&self.project.team, plan));
                    let hint = format!("name one with `--agent NAME`: {candidates}");
                    results.unchosen = Some(Failure::usage(reason).hint(hint));
                }
                by_person
            }
        };
        results.work.push(work);
        plan
    }

    /// Asks the person at the terminal before many agents start. `None`: nobody is there, or wants it.
    async fn person_confirms(&self, plan: &Plan) -> Option<Plan> {
        if plan.agents.is_empty() {
            return None;
        }
        let question = format!("Start {} agents ({})? [y/N] ", plan.agents.len(), list(&plan.agents));
        let answer = self.workers.requests.ask_person(&self.workers.reports, None, question, None).await?;
        matches!(answer.trim().to_lowercase().as_str(), "y" | "yes").then(|| {
            let mut plan = Plan { kind: PlanKind::Agents, ..plan.clone() };
            self.plan_chosen(&mut plan);
            plan
        })
    }

    /// Completes and records a plan that somebody has chosen.
    fn plan_chosen(&self, plan: &mut Plan) {
        route::appoint_reviewers(&self.project.team, plan, &self.order.message);
        ceremonies::add(&self.project.team, plan, &self.order.message);
        overlaps::add(&self.project.team, plan);
        plan.evidence.extend(self.compiler.model_evidence(plan));
        self.tell(None, EventKind::RoutePlanned(plan.clone()));
    }

    /// Asks the person at the terminal if the coordinator cannot choose. `None`: nobody is there, or no agent is named.
    async fn person_plans(&self, plan: &Plan, reason: &str) -> Option<Plan> {
        let team = &self.project.team;
        let names = list(choice::candidates(team, plan));
        let reason = first_line(&printable(reason), 200);
        let question = format!("{reason}. Who works on it: {names}? [Enter: nobody] ");
        let answer = self.workers.requests.ask_person(&self.workers.reports, None, question, None).await?;
        let mut plan = choice::by_person(team, plan, &answer)?;
        self.plan_chosen(&mut plan);
        Some(plan)
    }

    /// Lets the coordinator write the answer: about the work of several agents, or to a message that needs none.
    pub(super) async fn answer(&self, results: &mut Results) {
        if self.workers.cancel.is_set() {
            return;
        }
        // The run was interrupted after its answer.
        if let Some(answer) = self.past.answer() {
            results.answer = Some(answer.to_owned());
            return;
        }
        let of_agents = results.work.iter().filter(|work| work.agent.as_str() != Slug::COORDINATOR);
        let agents: Vec<Work> = of_agents.cloned().collect();
        let check = results.checked.check.as_ref();
        let prompt = compile::answer_prompt(&self.order.message, &reports_of(&agents), check);
        let job = match agents.is_empty() {
            true => self.open(self.compiler.answering_coordinator().spec, prompt, WorkKind::Answer, false),
            false => self.coordinator(prompt, results.has_worked(&Slug::coordinator())),
        };
        let done = self.workers.work(job).await;
        if done.outcome == Outcome::Completed {
            results.answer = Some(done.text.clone());
        }
        results.work.push(done);
    }

    /// Turns work that agents hand on into jobs, as long as the run lasts.
    pub(in crate::ops) async fn serve(&self, mut job_requests: mpsc::UnboundedReceiver<JobRequest<Job>>) -> Infallible {
        while let Some(request) = job_requests.recv().await {
            let job = self.handed(&request);
            // The agent that asked may be gone.
            let _ = request.reply.send(job);
        }
        std::future::pending().await
    }

    fn handed(&self, request: &JobRequest<Job>) -> Result<Job, String> {
        let JobRequest { from, to, task, tier, .. } = request;
        self.handed_job(from, to, task, *tier)
    }

    /// Takes up work that was handed on before the run was interrupted: finished work is kept, the rest is resumed.
    pub(super) fn take_up_handed_on(&self, tier: Tier) -> Vec<Work> {
        let mut done = Vec::new();
        for HandedOn { request, from, to, task, begun, end } in self.past.handed_on() {
            let workers = self.workers.at(request.position);
            let asked = HandOnRequest { from: from.clone(), to: to.clone(), task: task.to_owned() };
            if let Some(end) = end {
                let work = workers.recorded(to, end.clone());
                workers.remember(asked, work.clone());
                done.push(work);
            } else if let Ok(job) = self.handed_job(from, to, task, tier) {
                let handed_by = Some(HandedBy { agents: vec![from.clone()], entry: request.id.clone() });
                workers.take_up(asked, Job { goes_on: begun, handed_by, ..job });
            }
        }
        done
    }

    fn handed_job(&self, from: &Slug, to: &Slug, task: &str, tier: Tier) -> Result<Job, String> {
        let team = &self.project.team;
        let Some(member) = team.startable_member(to) else {
            let others = list(team.startable().map(|member| &member.slug).filter(|slug| *slug != from));
            return Err(format!("`{to}` cannot be given work; these colleagues can: {others}"));
        };
        let directory = self.directory_of(to);
        let prompt = compile::handed_prompt(task, from, &self.order.message, &directory, self.run.as_str());
        // Attachments belong to the user's message, and this task is a colleague's.
        let job = self.job(member, tier, prompt, WorkKind::Work, false);
        Ok(Job { attachments: Vec::new(), asks_for_work: asks_for_work(task), ..job })
    }

    /// Answers, lands, then records the end, in this order, so that the last event has everything.
    async fn finish(&self, mut results: Results, started: Instant) -> Ended {
        self.workers.colleagues.settled().await;
        results.work.extend(self.workers.colleagues.take_done());
        let status = results.status();
        let rejections = results.verdicts.iter().filter(|verdict| **verdict == Verdict::Rejected).count() as u64;
        let report = |work: &Work| WorkReport { verified: results.checked.verified(work), ..work.report() };
        let mut end = RunEnd::of(status, results.work.iter().map(report).collect(), seconds(started.elapsed()));
        let refused = end.usage.refused;
        (end.rejections, end.stuck) = (rejections, results.is_stuck);
        let no_login = results.work.iter().find_map(|work| Some(about(&work.agent, work.no_login.clone()?)));
        let (answer, error) = (results.answer.clone(), results.unchosen.take().or(no_login));
        if let Some(text) = results.answer.filter(|_| self.past.answer().is_none()) {
            self.tell(None, EventKind::Answer { text });
        }
        let mut unlanded = None;
        let mut unrecorded = None;
        if self.order.commit {
            match self.land().await {
                Ok(mut landed) => {
                    unlanded = landed.left.take();
                    end.commits.extend(landed.commit.clone());
                    if let Some(kind) = landed.event() {
                        let causes = std::mem::take(&mut landed.causes);
                        unrecorded = self.workers.reports.record_because(kind, causes).await.err();
                    }
                }
                // The decisions are in the ledger; a failed landing does not keep the run from ending.
                Err(failure) => unlanded = Some(Pending::because(failure)),
            }
        }
        let has_committed = !end.commits.is_empty();
        if let Some(tree) = &self.workers.tree {
            tree.close();
        }
        end.error = error.as_ref().map(Failure::of_run);
        (end.check, end.forecast) = (results.checked.check.map(Box::new), results.forecast.map(Box::new));
        let end = if self.past.returned.is_some() { self.past.end_with(end) } else { end };
        unrecorded = self.workers.reports.record(None, EventKind::RunCompleted(end)).await.err().or(unrecorded);
        let run = self.run.clone();
        Ended { run, status, answer, refused, has_committed, unlanded, unrecorded, error }
    }

    async fn land(&self) -> Result<Landed, Failure> {
        if let Some(land) = &self.order.land {
            let (done, landed) = oneshot::channel();
            land(done);
            let nobody = || Failure::failed("the terminal that asked for the work is gone").hint("the work is done");
            return landed.await.unwrap_or_else(|_| Err(nobody()));
        }
        let lander = Lander::new(self.env, self.project).until(self.workers.cancel.clone());
        lander.land_aside(self.env.threads).await
    }

    /// The project's root where an agent works.
    pub(super) fn directory_of(&self, agent: &Slug) -> String {
        match self.clones.filter(|clones| clones.is_for(agent)) {
            Some(clones) => clones.root(agent),
            None => self.workers.requests.project.clone(),
        }
    }

    /// The clones, if there is work in them.
    pub(super) fn used_clones(&self) -> Option<&Clones> {
        self.clones.filter(|clones| clones.is_used())
    }

    /// Brings together what these agents did, for those who come after them. Returns whose work conflicts; work that
    /// cannot be committed has failed.
    pub(super) async fn collect(&self, agents: &[Slug], works: &mut [Work]) -> Vec<Slug> {
        let Some(clones) = self.clones else { return Vec::new() };
        let conflicting = clones.collect(agents).await;
        clones.fail_uncommitted(works);
        conflicting
    }

    pub(super) fn fail_uncommitted(&self, works: &mut [Work]) {
        self.clones.iter().for_each(|clones| clones.fail_uncommitted(works));
    }

    fn tell(&self, agent: Option<&Slug>, kind: EventKind) {
        self.workers.reports.tell(agent, kind);
    }

    pub(super) fn complain(&self, reason: &str) {
        self.tell(None, EventKind::SessionError { session: String::new(), reason: reason.to_owned() });
    }

    pub(super) fn job(&self, member: &Member, tier: Tier, prompt: String, kind: WorkKind, resume: bool) -> Job {
        let compiled = match kind {
            WorkKind::Review => self.compiler.reviewer(member, tier),
            WorkKind::Work | WorkKind::Answer => self.compiler.agent(member, tier),
        };
        self.open(compiled.spec, prompt, kind, resume)
    }

    pub(super) fn coordinator(&self, prompt: String, resume: bool) -> Job {
        self.open(self.compiler.coordinator().spec, prompt, WorkKind::Answer, resume)
    }

    fn open(&self, spec: SessionSpec, prompt: String, kind: WorkKind, resume: bool) -> Job {
        let session = session_id(&spec.agent, self.run);
        // Interrupted work continues in the same session, also in another process.
        let resume = resume || self.past.has_session(&spec.agent);
        if self.past.is_remade(&spec.agent, &spec.compiled_hash) {
            let reason =
                "its charter, tools or model have changed since the run started; it continues with the new ones";
            let kind = EventKind::SessionError { session: session.clone(), reason: reason.to_owned() };
            self.tell(Some(&spec.agent), kind);
        }
        // An agent without tools could not open them.
        let attachments = if spec.tools == ToolChoice::Nothing { Vec::new() } else { self.order.attachments.clone() };
        let asks = self.workers.requests.ask.is_some();
        let situation = match kind {
            WorkKind::Answer => String::new(),
            WorkKind::Review => self.situation(&spec.agent, REVIEWING),
            WorkKind::Work => self.situation(&spec.agent, self.workers.requests.permissions.explained(asks)),
        };
        let earlier = self.order.conversation.as_ref().map(|conversation| EarlierTurns {
            conversation: conversation.id.clone(),
            turns: conversation.earlier.clone(),
            own: self.is_alone.then(|| self.order.message.clone()),
        });
        let opening = Opening { resume, ..opening(self.project, spec, session, kind, asks) };
        let (goes_on, handed_by, limit, must_resume) = (None, None, None, false);
        let asks_for_work = asks_for_work(&self.order.message);
        Job {
            opening,
            prompt,
            situation,
            earlier,
            attachments,
            kind,
            goes_on,
            handed_by,
            limit,
            asks_for_work,
            must_resume,
        }
    }

    /// What agents are told about this run.
    fn situation(&self, agent: &Slug, permissions: &str) -> String {
        let (requests, Limits { silence, tool, work }) = (&self.workers.requests, self.workers.limits);
        let user = self.project.repository.user();
        let (branch, limits) = (requests.branch.as_deref(), [silence, tool, work]);
        let (bounds, is_cloned) = (self.workers.pool.sandbox(), self.clones.is_some_and(|clones| clones.is_for(agent)));
        let git =
            (requests.may_commit && !is_cloned, !is_cloned && bounds.is_some_and(|bounds| bounds.git().is_some()));
        let sandbox = sandbox::explained(bounds, &self.project.settings.sandbox, git);
        Situation { user, branch, permissions, sandbox, limits }.text()
    }
}

/// How a session for this kind of work is opened.
pub(super) fn opening(project: &Project, spec: SessionSpec, session: String, kind: WorkKind, asks: bool) -> Opening {
    let may_hand_on = kind == WorkKind::Work && spec.tier != Tier::Lightweight && project.team.startable().count() > 1;
    let tools = Tool::ALL.into_iter().filter(|tool| match tool {
        _ if spec.tools == ToolChoice::Nothing => false,
        // A command engine without tools offers them by itself.
        Tool::Shell | Tool::FileOps => false,
        Tool::Verdict => kind == WorkKind::Review,
        Tool::Route | Tool::Status => may_hand_on,
        Tool::Commit => kind == WorkKind::Work && spec.tier != Tier::Lightweight,
        Tool::LogDecision | Tool::Remember | Tool::Decisions => true,
    });
    let (tools, directory) = (tools.map(Tool::spec).collect(), project.folder.root.clone());
    Opening { session, spec, tools, directory, resume: false, asks, form: None, caller: None }
}

/// Why an agent could not work.
fn about(agent: &Slug, error: EngineError) -> Failure {
    let failure = Failure::from(error);
    Failure { message: format!("{agent}: {}", failure.message), ..failure }
}

impl Results {
    pub(super) fn has_worked(&self, agent: &Slug) -> bool {
        self.work.iter().any(|work| work.agent == *agent && work.outcome != Outcome::Skipped)
    }

    /// The run's outcome: the worst one of its agents.
    fn status(&self) -> Outcome {
        let has = |outcome| self.work.iter().any(|work| work.outcome == outcome);
        if has(Outcome::Cancelled) || self.checked.is_cancelled {
            Outcome::Cancelled
        } else if has(Outcome::Failed) || has(Outcome::Lost) || self.is_unapproved || self.checked.has_failed() {
            Outcome::Failed
        } else if has(Outcome::TimedOut) {
            Outcome::TimedOut
        } else if has(Outcome::Stopped) {
            Outcome::Stopped
        } else if has(Outcome::Claimed) {
            Outcome::Claimed
        } else if self.unchosen.is_some() {
            Outcome::Skipped
        } else {
            Outcome::Completed
        }
    }
}

pub(super) fn reports_of(work: &[Work]) -> Vec<Colleague<'_>> {
    work.iter()
        .map(|work| Colleague {
            agent: &work.agent,
            outcome: work.outcome,
            text: if work.text.is_empty() { &work.reason } else { &work.text },
            changed: work.changed.as_deref(),
            git: &work.git,
            verdict: work.verdict,
        })
        .collect()
}
