//! Runs the named members side by side, within the limit of concurrent agents: in one step, or in two where some answer
//! the others.

use std::time::Duration;

use super::output::OutputFile;
use super::shape;
use crate::engine::{Caller, Capability, Opening};
use crate::model::{
    EventKind, Evidence, Kind, Member, Outcome, Plan, PlanKind, Position, SessionSpec, Source, Status, Tier,
};
use crate::ops::run::executor::{Executor, Results};
use crate::ops::run::order::NamedMember;
use crate::ops::run::reviewing::cross;
use crate::ops::team::{engines, secrets};
use crate::pool::{Job, Work, WorkKind, session_id};
use crate::route::asks_for_work;
use crate::tools::Tool;

/// The plan of a run whose members are given.
pub(in crate::ops) fn plan(members: &[NamedMember]) -> Plan {
    let agents: Vec<_> = members.iter().map(|member| member.given.id.clone()).collect();
    let evidence = members.iter().map(|member| Evidence {
        agent: member.given.id.clone(),
        why: format!("the caller names it, in the role `{}`", member.given.role),
        source: "mcp".to_owned(),
        weight: 1.0,
    });
    let steps = steps(members).map(|step| step.iter().map(|member| member.given.id.clone()).collect());
    Plan {
        kind: PlanKind::Agents,
        steps: steps.into_iter().filter(|step: &Vec<_>| !step.is_empty()).collect(),
        agents,
        reviewer: None,
        other_reviewers: Vec::new(),
        tier: Tier::Standard,
        confidence: 1.0,
        evidence: evidence.collect(),
        ceremonies: Vec::new(),
        overlaps: Vec::new(),
    }
}

/// Those that work at once, and those that answer them.
fn steps(members: &[NamedMember]) -> [Vec<&NamedMember>; 2] {
    members.iter().partition::<Vec<_>, _>(|member| member.given.answers_for.is_none()).into()
}

impl Executor<'_> {
    pub(in crate::ops::run) async fn members(&self, results: &mut Results) {
        let [first, second] = steps(&self.order.members);
        let tasks = first.iter().map(|named| Some(named.given.task.clone())).collect();
        let done = self.member_step(1, &first, tasks).await;
        let tasks = if second.is_empty() { Vec::new() } else { self.second_tasks(&first, &second, &done) };
        results.work.extend(done);
        if !second.is_empty() {
            results.work.extend(self.member_step(2, &second, tasks).await);
        }
    }

    /// What those of the second step have to answer. The texts are redacted as the ledger's are, from which the findings
    /// are numbered again.
    fn second_tasks(&self, first: &[&NamedMember], second: &[&NamedMember], done: &[Work]) -> Vec<Option<String>> {
        let redactor = secrets::redactor(self.env, &self.project.work_dir);
        let texts: Vec<String> = done.iter().map(|work| redactor.text(&work.text, &mut Vec::new())).collect();
        let said: Vec<_> = done.iter().map(|work| &work.agent).zip(texts.iter().map(String::as_str)).collect();
        let task = first.first().map_or("", |named| named.given.task.as_str());
        let task_of = |named: &&NamedMember| cross::task(task, &said, named.given.answers_for.as_ref()?);
        second.iter().map(task_of).collect()
    }

    /// Those without a task have nothing to do.
    async fn member_step(&self, step: u32, members: &[&NamedMember], tasks: Vec<Option<String>>) -> Vec<Work> {
        let workers = self.workers.at(Position::new(step, 1));
        let agents = members.iter().map(|member| member.given.id.clone()).collect();
        workers.reports.tell(None, EventKind::StepStarted { agents });
        let (mut given, mut jobs, mut idle) = (Vec::new(), Vec::new(), Vec::new());
        for (named, task) in members.iter().zip(tasks) {
            match task {
                Some(task) => {
                    jobs.push(self.member_job(named, &task));
                    given.push(*named);
                }
                None => idle.push(workers.skip(&named.given.id, "the others found nothing that it could answer")),
            }
        }
        let in_session: Vec<bool> = jobs.iter().map(|job| self.is_in_session(&job.opening.spec)).collect();
        let mut done = workers.fan_out(jobs).await;
        for ((named, work), _) in given.iter().zip(&done).zip(in_session).filter(|(_, in_session)| *in_session) {
            // Engines with sessions have no output but the last message, which the ledger has too.
            let _ = self.output(named, "stdout").write(&work.text);
        }
        let status = done.iter().map(|work| work.outcome).find(|outcome| *outcome != Outcome::Completed);
        workers.reports.tell(None, EventKind::StepCompleted { status: status.unwrap_or(Outcome::Completed) });
        done.extend(idle);
        done
    }

    fn member_job(&self, named: &NamedMember, task: &str) -> Job {
        let given = &named.given;
        let own = named.agent.as_ref().and_then(|agent| self.project.team.member(agent)).cloned();
        let member = own.unwrap_or_else(|| of_role(named));
        let mut job = self.job(&member, Tier::Standard, String::new(), WorkKind::Work, given.chat.is_some());
        let session = given.chat.clone().unwrap_or_else(|| session_id(&given.id, self.run));
        job.situation = String::new();
        job.limit = given.limit.and_then(|limit| Duration::try_from_secs_f64(limit).ok());
        job.must_resume = given.chat.is_some();
        job.asks_for_work = asks_for_work(task);
        let mut spec = job.opening.spec;
        spec.agent = given.id.clone();
        spec.prompt = named.body.clone();
        spec.engine = given.engine.clone().or(spec.engine);
        if self.is_in_session(&spec) {
            job.prompt = shape::message(task, given.keeps_chat && given.chat.is_none());
            let told = shape::whole(given.chat.is_none().then_some(&named.body), &job.prompt);
            // A failure here does not undo the work.
            let _ = self.output(named, "prompt").write(&told);
        } else {
            // Command engines combine role and task themselves, and get none of squad's tools.
            task.clone_into(&mut job.prompt);
            if named.agent.is_none() {
                (spec.team, spec.context) = (String::new(), String::new());
            }
        }
        let root = &self.project.folder.root;
        let directory = given.directory.as_ref().map_or_else(|| root.clone(), |inner| root.join(inner));
        // There is nobody to hand work to, and a role file does not mention squad's tools.
        let tools = match self.is_in_session(&spec) || named.agent.is_some() {
            true => [Tool::LogDecision, Tool::Remember, Tool::Decisions].map(Tool::spec).to_vec(),
            false => Vec::new(),
        };
        let caller = Some(Caller { role: given.role.clone(), keeps_chat: given.keeps_chat });
        job.opening = Opening { session, spec, directory, tools, caller, ..job.opening };
        job
    }

    /// Whether its engine is one that squad governs in a session, as opposed to a command engine.
    fn is_in_session(&self, spec: &SessionSpec) -> bool {
        let (settings, described) = (&self.project.settings, self.order.described.as_ref());
        let engine = spec.engine.as_ref().unwrap_or(&settings.engine.name);
        engines::capabilities(engine, described, settings).has(Capability::Hooks)
    }

    fn output(&self, named: &NamedMember, kind: &str) -> OutputFile {
        let session = session_id(&named.given.id, self.run);
        OutputFile::of_session(&self.project.local(), &session, &format!("result.{kind}"))
    }
}

/// A member of the team, made from a role file.
fn of_role(named: &NamedMember) -> Member {
    Member {
        name: named.name.clone(),
        slug: named.given.id.clone(),
        role: named.name.clone(),
        kind: Kind::Agent,
        status: Status::Active,
        charter: None,
        scope: String::new(),
        source: Source::new(&named.given.role, 0),
    }
}
