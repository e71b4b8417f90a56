//! Handing work on, with a scripted engine: who may hand what to whom, and when it is done.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::workers_tests::{MINUTES, job, requests, slug, workers};
use super::*;
use crate::env::{Clock, Ids};
use crate::model::{Event, EventKind, Outcome, Position, RunId, Slug};
use crate::policy::Permissions;

/// Stores all events.
#[derive(Clone, Default)]
struct Seen(Arc<std::sync::Mutex<Vec<Event>>>);

impl Journal for Seen {
    async fn write(&mut self, _: &[Event]) -> Result<(), String> {
        Ok(())
    }
}

impl Show for Seen {
    fn show(&mut self, event: &Event) {
        self.0.lock().expect("one thread").push(event.clone());
    }
}

struct World {
    workers: Workers,
    seen: Seen,
    dispatching: JoinHandle<()>,
    begun: Instant,
    canceller: Canceller,
}

/// The result of a run.
struct Ended {
    /// Planned and handed-on work, in the order in which it ended.
    work: Vec<Work>,
    handed_on: Vec<Work>,
    events: Vec<Event>,
    seconds: u64,
}

impl World {
    fn new(script: &str, permits: usize) -> Self {
        let (workers, messages) = workers(script, permits, MINUTES);
        let (canceller, cancel) = Cancel::channel();
        let (colleagues, job_requests) = Colleagues::channel();
        let seen = Seen::default();
        let dispatcher = Dispatcher {
            run: RunId::new("r"),
            past: Vec::new(),
            clock: Clock::Stepping { start: jiff::Timestamp::UNIX_EPOCH, looks: Arc::default() },
            ids: Ids::Counting(Arc::default()),
            journal: seen.clone(),
            show: Box::new(seen.clone()),
            sessions: Arc::clone(&workers.sessions),
        };
        let dispatching = tokio::spawn(async move { drop(dispatcher.serve(messages).await) });
        tokio::spawn(make(job_requests));
        let workers = Workers { cancel, colleagues, ..workers }.at(Position::new(1, 1));
        Self { workers, seen, dispatching, begun: Instant::now(), canceller }
    }

    async fn run(self, agents: &[&str]) -> Ended {
        let work = self.workers.fan_out(agents.iter().map(|agent| job(agent)).collect());
        let work = tokio::time::timeout(Duration::from_secs(100_000), work).await.expect("nobody waits for ever");
        let seconds = self.begun.elapsed().as_secs();
        let handed_on = self.workers.colleagues.take_done();
        self.workers.reports.finish();
        self.dispatching.await.expect("no panic");
        // All handles on the run are dropped, so its engine can be ended.
        assert!(Arc::into_inner(self.workers.pool).is_some());
        let events = self.seen.0.lock().expect("one thread").clone();
        Ended { work, handed_on, events, seconds }
    }
}

/// Makes jobs for the colleagues ada, bob, cy, dan and eve.
async fn make(mut job_requests: mpsc::UnboundedReceiver<JobRequest<Job>>) {
    while let Some(JobRequest { to, task, reply, .. }) = job_requests.recv().await {
        let is_there = ["ada", "bob", "cy", "dan", "eve"].contains(&to.as_str());
        let job = is_there.then(|| Job { prompt: task, ..job(to.as_str()) });
        drop(reply.send(job.ok_or_else(|| format!("`{to}` is no colleague"))));
    }
}

impl Ended {
    fn outcomes(&self) -> Vec<(&str, Outcome)> {
        self.work.iter().chain(&self.handed_on).map(|work| (work.agent.as_str(), work.outcome)).collect()
    }

    /// The results of `squad_route` and similar tools for this agent, each with whether it succeeded.
    fn told(&self, agent: &str) -> Vec<(bool, String)> {
        let of = |event: &Event| match &event.kind {
            // Improvised turns read a file.
            EventKind::ToolCompleted { tool, ok, result, .. }
                if event.agent.as_ref() == Some(&slug(agent)) && tool.starts_with("squad_") =>
            {
                Some((*ok, result.clone()))
            }
            _ => None,
        };
        self.events.iter().filter_map(of).collect()
    }

    /// The agents that sent messages, in order.
    fn speakers(&self) -> Vec<String> {
        let said = self.events.iter().filter(|event| matches!(event.kind, EventKind::Message { .. }));
        said.filter_map(|event| event.agent.as_ref().map(Slug::to_string)).collect()
    }

    fn find(&self, is_meant: impl Fn(&Event) -> bool) -> &Event {
        self.events.iter().find(|event| is_meant(event)).expect("an event")
    }
}

fn turn(agent: &str, steps: &str) -> String {
    format!("[[turn]]\nagent = \"{agent}\"\nsteps = [{steps}]\n")
}

fn route(to: &str, wait: bool) -> String {
    format!("{{ tool = \"squad_route\", args = {{ agent = \"{to}\", task = \"Do {to}'s part\", wait = {wait} }} }}")
}

fn say(text: &str) -> String {
    format!("{{ say = \"{text}\" }}")
}

fn steps(steps: &[&str]) -> String {
    steps.join(", ")
}

const WAIT: &str = "{ wait = \"10s\" }";

use Outcome::{Cancelled, Completed, Failed, TimedOut};

#[tokio::test(start_paused = true)]
async fn a_waiting_caller_gets_the_report_and_releases_its_permit_and_time() {
    // ada may work for five minutes and waits longer than that; there is one permit.
    let colleague = |agent: &str| turn(agent, &steps(&["{ wait = \"200s\" }", &say(&format!("{agent} is done."))]));
    let ada = turn("ada", &steps(&[&route("bob", true), &route("cy", true), &say("Ada is done.")]));
    let ended = World::new(&(ada + &colleague("bob") + &colleague("cy")), 1).run(&["ada"]).await;
    assert_eq!(ended.outcomes(), [("ada", Completed), ("bob", Completed), ("cy", Completed)]);
    let report = |agent: &str| (true, format!("Report of `{agent}`:\n\n{agent} is done."));
    assert_eq!(ended.told("ada"), ["bob", "cy"].map(report));
    assert_eq!((ended.speakers().join(" "), ended.seconds), ("bob cy ada".to_owned(), 400));
    let requested = ended.find(|event| matches!(event.kind, EventKind::RouteRequested { .. }));
    let of = |agent: &str| {
        let (agent, created) = (slug(agent), |kind: &EventKind| matches!(kind, EventKind::SessionCreated { .. }));
        ended.find(|event| event.agent.as_ref() == Some(&agent) && created(&event.kind))
    };
    assert_eq!(
        (&requested.causes[..], &of("bob").causes[..]),
        (&[of("ada").id.clone()][..], &[requested.id.clone()][..])
    );
    assert_eq!(of("bob").position, Position::new(1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_does_not_wait_continues_and_the_run_waits_for_the_work() {
    let ada = turn("ada", &steps(&[&route("bob", false), &say("Ada is done.")]));
    let ended = World::new(&(ada + &turn("bob", &steps(&[WAIT, &say("Bob is done.")]))), 1).run(&["ada"]).await;
    assert_eq!(ended.outcomes(), [("ada", Completed), ("bob", Completed)]);
    assert_eq!((ended.speakers().join(" "), ended.seconds), ("ada bob".to_owned(), 10));
    assert!(ended.told("ada")[0].1.starts_with("`bob` has the task"), "{:?}", ended.told("ada"));
}

#[tokio::test(start_paused = true)]
async fn work_for_a_busy_agent_becomes_its_next_message() {
    let bob = turn("bob", &steps(&[WAIT, &say("First.")])) + &turn("bob", &steps(&[WAIT, &say("Second.")]));
    let ada = turn("ada", &steps(&[&route("bob", true), &say("Ada is done.")]));
    for permits in [1, 2] {
        let ended = World::new(&format!("{bob}{ada}"), permits).run(&["bob", "ada"]).await;
        assert_eq!(ended.outcomes(), [("bob", Completed), ("ada", Completed), ("bob", Completed)]);
        assert_eq!(ended.told("ada"), [(true, "Report of `bob`:\n\nSecond.".to_owned())]);
        assert_eq!(ended.seconds, 20);
        let opened: Vec<&str> = ended
            .events
            .iter()
            .filter(|event| event.agent == Some(slug("bob")))
            .filter_map(|event| match &event.kind {
                EventKind::SessionCreated { session, .. } => Some(session.as_str()),
                EventKind::SessionResumed { session, .. } => Some(if session == "bob" { "resumed" } else { "another" }),
                _ => None,
            })
            .collect();
        assert_eq!(opened, ["bob", "resumed"]);
    }
}

#[tokio::test(start_paused = true)]
async fn cycles_of_waiting_are_refused() {
    // Each waits for the next and the last for the first: at once, and one second later.
    for last in ["", "{ wait = \"1s\" }, "] {
        let script = turn("ada", &steps(&[&route("bob", true), &say("Ada.")]))
            + &turn("bob", &steps(&[&route("cy", true), &say("Bob.")]))
            + &turn("cy", &format!("{last}{}", steps(&[&route("ada", true), &say("Cy.")])));
        let ended = World::new(&script, 3).run(&["ada", "bob", "cy"]).await;
        let refused: Vec<&str> =
            ["ada", "bob", "cy"].into_iter().filter(|agent| ended.told(agent).iter().any(|(ok, _)| !ok)).collect();
        assert_eq!((refused.len(), ended.told(refused[0]).len()), (1, 1), "{refused:?}");
        assert!(ended.told(refused[0])[0].1.contains("waits for you"), "{:?}", ended.told(refused[0]));
        assert!(ended.outcomes().iter().all(|(_, outcome)| *outcome == Completed), "{:?}", ended.outcomes());
        assert_eq!(ended.handed_on.len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn refused_work_says_why() {
    let chain = |from: &str, to: &str| turn(from, &steps(&[&route(to, true), &say("Done.")]));
    let script = turn(
        "ada",
        &steps(&[
            &route("ada", true),
            &route("nobody", true),
            &route("🙂", false),
            "{ tool = \"squad_route\", args = { agent = \"bob\", task = \" \" } }",
            "{ tool = \"squad_route\", args = { agent = \"bob\" } }",
            &route("gus", true),
            &route("@Bob", true),
            &say("Ada."),
        ]),
    ) + &turn("bob", &steps(&[&route("ada", false), &route("cy", true), &say("Bob.")]))
        + &chain("cy", "dan")
        + &chain("dan", "eve");
    let world = World::new(&script, 3);
    world.workers.colleagues.keep_out([&slug("gus")], "it reviews the work");
    let ended = world.run(&["ada"]).await;
    let told: Vec<(bool, String)> = ended.told("ada");
    for (answer, part) in told.iter().zip([
        "you cannot hand work to yourself",
        "`nobody` is no colleague",
        "`🙂` names nobody",
        "`task` is empty",
        "missing field `task`",
        "`gus` cannot be given work in this run: it reviews the work",
    ]) {
        assert!(!answer.0 && answer.1.contains(part), "{part}: {answer:?}");
    }
    assert_eq!((told.len(), told[6].0), (7, true));
    assert!(ended.told("bob")[0].1.contains("`ada` handed you this work"), "{:?}", ended.told("bob"));
    assert!(ended.told("dan")[0].1.contains("handed on 3 times"), "{:?}", ended.told("dan"));
    assert_eq!(ended.outcomes(), ["ada", "dan", "cy", "bob"].map(|agent| (agent, Completed)));
}

#[tokio::test(start_paused = true)]
async fn each_of_a_thousand_calls_is_answered() {
    let calls: Vec<String> = (0..1000).map(|_| route("bob", false)).chain([say("Ada.")]).collect();
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    let ended = World::new(&turn("ada", &steps(&calls)), 2).run(&["ada"]).await;
    let told = ended.told("ada");
    let refused =
        told.iter().filter(|(ok, text)| !ok && text.contains("32 pieces of work have been handed on")).count();
    assert_eq!((told.len(), refused, ended.handed_on.len()), (1000, 968, 32));
}

#[tokio::test(start_paused = true)]
async fn handed_on_work_is_cancelled_with_its_caller_but_not_vice_versa() {
    let script = turn("ada", &steps(&[&route("bob", false), &route("cy", true), &say("Ada.")]))
        + &turn("bob", &steps(&[&route("dan", true), &say("Bob.")]))
        + &turn("cy", &steps(&[WAIT, WAIT, &say("Cy.")]))
        + &turn("dan", &steps(&[WAIT, WAIT, &say("Dan.")]))
        + &turn("eve", &steps(&[WAIT, WAIT, &say("Eve.")]));
    for (whom, cancelled) in [
        (Some("ada"), &["ada", "bob", "cy", "dan"][..]),
        (Some("bob"), &["bob", "dan"]),
        (Some("dan"), &["dan"]),
        (None, &["ada", "bob", "cy", "dan", "eve"]),
    ] {
        let world = World::new(&script, 8);
        let canceller = world.canceller.clone();
        let (ended, ()) = tokio::join!(world.run(&["ada", "eve"]), async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            whom.map_or_else(|| canceller.run(), |agent| canceller.agent(&slug(agent)));
        });
        let outcomes: BTreeMap<&str, Outcome> = ended.outcomes().into_iter().collect();
        let expected = ["ada", "bob", "cy", "dan", "eve"];
        let expected = expected.map(|agent| (agent, if cancelled.contains(&agent) { Cancelled } else { Completed }));
        assert_eq!(outcomes, BTreeMap::from(expected), "{whom:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_reported_to_the_caller_and_an_ended_caller_leaves_the_work_running() {
    let script = turn("ada", &steps(&[&route("bob", true), &say("Ada.")]))
        + &turn("bob", &steps(&[&say("Half of it."), "{ fail = \"no more tokens\" }"]));
    let ended = World::new(&script, 2).run(&["ada"]).await;
    let told = "`bob` did not complete it (failed: no more tokens). What it said last:\n\nHalf of it.";
    assert_eq!(
        (ended.outcomes(), ended.told("ada")),
        (vec![("ada", Completed), ("bob", Failed)], vec![(false, told.to_owned())])
    );
    // Its caller hangs and is ended.
    let script = turn("ada", &steps(&["{ wait = \"150s\" }", &route("bob", false), "{ hang = true }"]))
        + &turn("bob", &steps(&["{ wait = \"280s\" }", &say("Bob.")]));
    let ended = World::new(&script, 2).run(&["ada"]).await;
    assert_eq!((ended.outcomes(), ended.seconds), (vec![("ada", TimedOut), ("bob", Completed)], 430));
}

#[tokio::test(start_paused = true)]
async fn agents_can_ask_for_the_status_of_all() {
    let status = "{ tool = \"squad_status\" }";
    let script = turn("ada", &steps(&[&route("bob", false), "{ wait = \"1s\" }", status, WAIT, status, &say("Ada.")]))
        + &turn("bob", &steps(&["{ wait = \"5s\" }", &say("Bob.")]));
    let ended = World::new(&script, 2).run(&["ada"]).await;
    let told = ended.told("ada");
    assert_eq!(
        told[1].1,
        "- `ada` (you): working since 00:00:00 UTC, 0 tokens, on: work\n\
         - `bob`: working since 00:00:03 UTC, 0 tokens, on: Do bob's part\n"
    );
    assert!(told[2].1.ends_with("- `bob`: completed\n"), "{told:?}");
}

fn decide(title: &str, scope: &str) -> String {
    format!("{{ tool = \"squad_log_decision\", args = {{ title = \"{title}\", what = \"So.\", scope = [{scope}] }} }}")
}

/// This engine cannot notify a turn, so a decision comes with the next message of the agents it concerns.
#[tokio::test(start_paused = true)]
async fn a_decision_comes_with_the_next_message_of_agents_in_its_scope() {
    let script = turn(
        "ada",
        &steps(&[
            &decide("Tabs", ""),
            &decide("Docs only", "\"docs/**\""),
            WAIT,
            &route("bob", true),
            &route("cy", true),
            "{ tool = \"squad_decisions\", args = { query = \"docs\" } }",
            &say("Ada."),
        ]),
    ) + &turn("bob", &steps(&["{ wait = \"1s\" }", &say("First.")]));
    let mut world = World::new(&script, 3);
    let mut requests = requests(Permissions::Deny, None);
    requests.notices = Notices::new([(slug("cy"), vec!["src".to_owned()])].into());
    world.workers.requests = Arc::new(requests);
    let ended = world.run(&["ada", "bob"]).await;
    let delivered: Vec<(String, usize, usize)> = ended
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::DecisionDelivered { decisions, session } => {
                Some((session.clone(), decisions.len(), event.causes.len()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(delivered, [("bob".to_owned(), 2, 2), ("cy".to_owned(), 1, 1)]);
    assert!(ended.told("ada")[4].1.contains("Docs only"), "a search finds what was decided in this run");
    // It improvises on the first line of its prompt.
    let said = ended.told("ada").into_iter().map(|(_, text)| text).collect::<Vec<_>>();
    assert!(said[2].contains("`ada` decided this during the run; follow it"), "{said:?}");
}
