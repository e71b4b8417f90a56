//! Answers simple questions from the team's files and the ledger, without an engine. The router recognizes the question
//! and `answer` formats the reply, both pure; this module gathers the facts.

mod answer;

use self::answer::RecentActivity;
use crate::error::Failure;
use crate::model::{DecisionState, RunId};
use crate::ops::Project;
use crate::ops::decisions::list as decisions;
use crate::ops::ledger::log;
use crate::ops::ledger::log::{Choice, RunSummary};
use crate::ops::run::lease::Leases;
use crate::route::direct::Question;
use crate::route::{Request, RouteOptions, Router};

/// squad's own answer to a message that needs no agent. `None`: the coordinator has to answer.
///
/// `asking`: the current run, which is left out of the answer.
pub(in crate::ops) fn answer(
    project: &Project,
    router: &Router<'_>,
    message: &str,
    asking: Option<&RunId>,
) -> Result<Option<String>, Failure> {
    let team = &project.team;
    let Some(question) = Question::read(message, team) else { return Ok(None) };
    Ok(match question {
        Question::Greeting => Some(answer::greeting(team)),
        Question::Thanks => Some(answer::thanks()),
        Question::Team => Some(answer::team(team)),
        Question::Member(slug) => answer::member(team, &slug),
        Question::Handler(topic) => {
            let plan = router.plan(&Request::new(&topic), &RouteOptions::default());
            Some(answer::handler(team, &topic, &plan))
        }
        Question::Decisions(topic) => Some(answer::decisions(&topic, &decisions::all(project)?)),
        Question::Runs => Some(answer::runs(&runs(project, &leases(project, asking), 10)?)),
        Question::Status => {
            let leases = leases(project, asking);
            // Leaves out earlier runs that only answered a question.
            let mut runs = runs(project, &leases, 50)?;
            runs.retain(|run| !run.agents.is_empty() || run.ended.is_none());
            runs.truncate(3);
            let standing = decisions::all(project)?;
            let unlanded = standing.iter().filter(|decision| decision.state == DecisionState::Unlanded).count();
            Some(answer::status(&RecentActivity { live: &leases.live, runs: &runs, unlanded }))
        }
    })
}

fn leases(project: &Project, asking: Option<&RunId>) -> Leases {
    let mut leases = project.leases();
    leases.live.retain(|live| Some(&live.run) != asking);
    leases
}

fn runs(project: &Project, leases: &Leases, limit: usize) -> Result<Vec<RunSummary>, Failure> {
    Ok(log::runs(&project.repository, &project.ledger_prefix(), leases, &Choice::default(), limit)?)
}
