//! Runs the named members side by side in one step, within the limit of concurrent agents.

use std::time::Duration;

use super::output::OutputFile;
use super::shape;
use crate::engine::{Caller, EngineKind, Opening};
use crate::model::{
    EventKind, Evidence, Kind, Member, Outcome, Plan, PlanKind, Position, SessionSpec, Source, Status, Tier,
};
use crate::ops::run::executor::{Executor, Results};
use crate::ops::run::order::NamedMember;
use crate::pool::{Job, WorkKind, session_id};
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
    Plan {
        kind: PlanKind::Agents,
        steps: vec![agents.clone()],
        agents,
        reviewer: None,
        other_reviewers: Vec::new(),
        tier: Tier::Standard,
        confidence: 1.0,
        evidence: evidence.collect(),
        ceremonies: Vec::new(),
    }
}

impl Executor<'_> {
    pub(in crate::ops::run) async fn members(&self, results: &mut Results) {
        let workers = self.workers.at(Position::new(1, 1));
        let members = &self.order.members;
        let agents = members.iter().map(|member| member.given.id.clone()).collect();
        workers.reports.tell(None, EventKind::StepStarted { agents });
        let jobs: Vec<Job> = members.iter().map(|member| self.member_job(member)).collect();
        let in_session: Vec<bool> = jobs.iter().map(|job| self.is_in_session(&job.opening.spec)).collect();
        let done = workers.fan_out(jobs).await;
        for ((named, work), _) in members.iter().zip(&done).zip(in_session).filter(|(_, in_session)| *in_session) {
            // Engines with sessions have no output but the last message, which the ledger has too.
            let _ = self.output(named, "stdout").write(&work.text);
        }
        let status = done.iter().map(|work| work.outcome).find(|outcome| *outcome != Outcome::Completed);
        workers.reports.tell(None, EventKind::StepCompleted { status: status.unwrap_or(Outcome::Completed) });
        results.work.extend(done);
    }

    fn member_job(&self, named: &NamedMember) -> Job {
        let given = &named.given;
        let own = named.agent.as_ref().and_then(|agent| self.project.team.member(agent)).cloned();
        let member = own.unwrap_or_else(|| of_role(named));
        let mut job = self.job(&member, Tier::Standard, String::new(), WorkKind::Work, given.chat.is_some());
        let session = given.chat.clone().unwrap_or_else(|| session_id(&given.id, self.run));
        job.situation = String::new();
        job.limit = given.limit.and_then(|limit| Duration::try_from_secs_f64(limit).ok());
        job.must_resume = given.chat.is_some();
        job.asks_for_work = asks_for_work(&given.task);
        let mut spec = job.opening.spec;
        spec.agent = given.id.clone();
        spec.prompt = named.body.clone();
        spec.engine = given.engine.clone().or(spec.engine);
        if self.is_in_session(&spec) {
            job.prompt = shape::message(&given.task, given.keeps_chat && given.chat.is_none());
            let told = shape::whole(given.chat.is_none().then_some(&named.body), &job.prompt);
            // A failure here does not undo the work.
            let _ = self.output(named, "prompt").write(&told);
        } else {
            // Command engines combine role and task themselves, and get none of squad's tools.
            job.prompt.clone_from(&given.task);
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

    /// Whether its engine keeps sessions, as opposed to a command engine.
    fn is_in_session(&self, spec: &SessionSpec) -> bool {
        EngineKind::parse(spec.engine.as_ref().unwrap_or(&self.project.settings.engine.name)).is_some()
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
