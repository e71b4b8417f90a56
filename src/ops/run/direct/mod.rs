//! Answers from the team's files and the ledger, without any engine. The router says what is asked and `answer` puts it
//! into words, both pure; here the facts are gathered.

mod answer;

use self::answer::Happenings;
use crate::error::Failure;
use crate::model::{DecisionState, RunId};
use crate::ops::Project;
use crate::ops::decisions::list as decisions;
use crate::ops::ledger::log;
use crate::ops::ledger::log::{Choice, RunSummary};
use crate::ops::run::lease::Leases;
use crate::route::direct::question::Question;
use crate::route::{Request, Router, Wishes};

/// Squad's own answer to a message that needs no agent; `None` where the coordinator has to find one.
///
/// `asking` is the run in which it is asked: it is no news.
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
            let plan = router.plan(&Request::new(&topic), &Wishes::default());
            Some(answer::handler(team, &topic, &plan))
        }
        Question::Decisions(topic) => Some(answer::decisions(&topic, &decisions::standing(project)?)),
        Question::Runs => Some(answer::runs(&runs(project, &leases(project, asking), 10)?)),
        Question::Status => {
            let leases = leases(project, asking);
            // That somebody asked something before is not what happened.
            let mut runs = runs(project, &leases, 50)?;
            runs.retain(|run| !run.agents.is_empty() || run.ended.is_none());
            runs.truncate(3);
            let standing = decisions::standing(project)?;
            let unlanded = standing.iter().filter(|decision| decision.state == DecisionState::Unlanded).count();
            Some(answer::status(&Happenings { live: &leases.live, runs: &runs, unlanded }))
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
