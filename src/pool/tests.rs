use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::*;
use crate::engine::{Approval, Reply, Request, ToolCall};
use crate::env::{Clock, Ids};
use crate::model::{Access, Decision, DecisionId, Event, EventKind, Keeping, RunId, Slug};
use crate::policy::Permissions;

/// Writes and displays in order: `wrote KIND` and `showed KIND`.
type Trace = Arc<Mutex<Vec<String>>>;

struct FakeJournal {
    trace: Trace,
    /// How many writes fail before one succeeds.
    failures: Arc<AtomicU64>,
}

impl Journal for FakeJournal {
    async fn write(&mut self, events: &[Event]) -> Result<(), String> {
        let failing = self.failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if failing.is_ok() {
            return Err("the disk is full".to_owned());
        }
        let kinds: Vec<String> = events.iter().map(kind).collect();
        self.trace.lock().expect("one thread").push(format!("wrote {}", kinds.join(" ")));
        Ok(())
    }
}

struct FakeScreen(Trace);

impl Show for FakeScreen {
    fn show(&mut self, event: &Event) {
        self.0.lock().expect("one thread").push(format!("showed {}", kind(event)));
    }
}

fn kind(event: &Event) -> String {
    let value = serde_json::to_value(event).expect("events are JSON");
    value["type"].as_str().expect("a type").to_owned()
}

fn decision() -> EventKind {
    let decision = Decision::new(DecisionId::unrecorded(), "t".to_owned(), String::new());
    EventKind::DecisionLogged { decision, branch: None }
}

fn message() -> EventKind {
    EventKind::Message { text: "m".to_owned() }
}

/// Runs `story` next to a dispatcher. Returns the trace and the result of the last write.
async fn played<F: Future<Output = ()>>(
    failures: u64,
    story: impl FnOnce(Reports) -> F,
) -> (Vec<String>, Result<(), String>) {
    let trace = Trace::default();
    let (reports, receiver) = Reports::channel();
    let dispatcher = Dispatcher {
        run: RunId::new("r"),
        past: Vec::new(),
        clock: Clock::Stepping { start: jiff::Timestamp::UNIX_EPOCH, looks: Arc::default() },
        ids: Ids::Counting(Arc::default()),
        journal: FakeJournal { trace: Arc::clone(&trace), failures: Arc::new(AtomicU64::new(failures)) },
        show: Box::new(FakeScreen(Arc::clone(&trace))),
        sessions: Arc::default(),
    };
    let serving = tokio::spawn(dispatcher.serve(receiver));
    story(reports.clone()).await;
    reports.finish();
    let written = serving.await.expect("no panic");
    let trace = trace.lock().expect("one thread").clone();
    (trace, written)
}

#[tokio::test(start_paused = true)]
async fn durable_events_are_written_before_they_are_shown() {
    let (trace, written) = played(0, |reports| async move {
        let agent = Slug::fold("ada").expect("a slug");
        assert!(reports.record(Some(&agent), decision()).await.is_ok());
    })
    .await;
    assert_eq!(trace, ["wrote decision.logged", "showed decision.logged"]);
    assert_eq!(written, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn what_was_told_before_a_flush_is_durable_after_it() {
    let (trace, _) = played(0, |reports| async move {
        reports.tell(None, message());
        assert_eq!(reports.flush().await, Ok(()));
        reports.tell(None, message());
    })
    .await;
    assert_eq!(trace, ["wrote agent.message", "showed agent.message", "showed agent.message", "wrote agent.message"]);
    // A failed write holds nobody up; it is retried.
    let (trace, written) = played(1, |reports| async move {
        reports.tell(None, message());
        assert!(reports.flush().await.is_err_and(|reason| reason.contains("cannot be recorded")));
    })
    .await;
    assert_eq!((trace, written), (vec!["showed agent.message".to_owned(), "wrote agent.message".to_owned()], Ok(())));
}

/// A decision that was recorded × before an interruption and since × by the same agent and another.
#[tokio::test(start_paused = true)]
async fn only_the_same_agents_same_decision_is_recorded_already() {
    let (_, written) = played(0, |reports| async move {
        let handler = workers_tests::requests(Permissions::Allow, None);
        let [ada, bob] =
            ["ada", "bob"].map(|name| Requester::new(workers_tests::slug(name), reports.clone(), false, None));
        assert!(!is_known(&handler, &ada, "Use UTC").await);
        let earlier = handler.recorded_here.into_inner();
        let handler = RequestHandler { recorded: earlier, ..workers_tests::requests(Permissions::Allow, None) };
        assert!(is_known(&handler, &ada, "Use UTC").await, "before the interruption");
        assert!(!is_known(&handler, &bob, "Use UTC").await, "another agent's");
        assert!(is_known(&handler, &bob, "Use UTC").await, "since then");
        assert!(!is_known(&handler, &ada, "Use local times").await, "another decision");
    })
    .await;
    assert_eq!(written, Ok(()));
}

/// Whether the handler says that this decision was recorded already.
async fn is_known(handler: &RequestHandler, requester: &Requester, title: &str) -> bool {
    let (reply, answer) = Reply::channel();
    let arguments = serde_json::json!({ "title": title, "why": "Because." });
    let call = ToolCall { call: "1".to_owned(), tool: "squad_log_decision".to_owned(), arguments };
    handler.answer(requester, Request::Tool(call, reply)).await;
    let result = answer.await.expect("an answer");
    assert!(result.ok, "{}", result.text);
    result.text.contains("is recorded already")
}

/// An agent that is killed while a call runs is known to have begun it.
#[tokio::test(start_paused = true)]
async fn a_call_is_on_record_before_it_is_allowed() {
    let (trace, _) = played(0, |reports| async move {
        let requests = workers_tests::requests(Permissions::Allow, None);
        let requester = Requester::new(Slug::coordinator(), reports.clone(), false, None);
        for access in [Access::Read, Access::Shell] {
            let (call, tool, detail) = ("c1".to_owned(), "bash".to_owned(), "make".to_owned());
            reports.tell(None, EventKind::ToolStarted { call, tool: tool.clone(), detail: detail.clone() });
            let (reply, answer) = Reply::channel();
            requests.answer(&requester, Request::Permission { call: None, access, tool, detail, reply }).await;
            assert_eq!(answer.await, Ok(Approval::Allow));
            reports.tell(None, message());
        }
    })
    .await;
    let wrote: Vec<&String> = trace.iter().filter(|line| line.starts_with("wrote")).collect();
    assert_eq!(
        wrote,
        ["wrote tool.started agent.message tool.started", "wrote agent.message"],
        "reading changes nothing"
    );
}

/// Each kind is either durable before it is shown, written after it is shown, or only shown.
#[tokio::test(start_paused = true)]
async fn every_kind_is_kept_as_its_kind_says() {
    for kind in crate::model::samples::every_kind() {
        let (name, keeping) = (kind.name(), kind.keeping());
        let (trace, _) = played(0, |reports| async move { reports.tell(None, kind) }).await;
        let (wrote, showed) = (format!("wrote {name}"), format!("showed {name}"));
        assert_eq!(
            trace,
            match keeping {
                Keeping::AtOnce => vec![wrote, showed],
                Keeping::Batched => vec![showed, wrote],
                Keeping::Never => vec![showed],
            }
        );
        let lasts = ["agent.", "decision.l", "memory.", "review.", "run.", "route.", "step.", "scrub.", "engine.f"];
        let is_said = ["agent.message", "agent.message_delta"].contains(&name);
        if lasts.iter().any(|begin| name.starts_with(begin)) && !is_said {
            assert_eq!(keeping, Keeping::AtOnce, "{name}");
        }
    }
}

/// Programs read until the run's last line, so nothing is reported after it; senders that wait for an answer learn
/// that.
#[tokio::test(start_paused = true)]
async fn nothing_is_reported_after_the_end_of_a_run() {
    let end = crate::model::samples::every_kind().into_iter().find(|kind| kind.name() == "run.completed");
    let (trace, written) = played(0, |reports| async move {
        reports.tell(None, end.expect("a sample"));
        reports.tell(None, message());
        assert!(reports.record(None, decision()).await.is_err());
    })
    .await;
    assert_eq!((trace, written), (vec!["wrote run.completed".to_owned(), "showed run.completed".to_owned()], Ok(())));
}

#[tokio::test(start_paused = true)]
async fn commentary_is_shown_at_once_and_written_in_batches() {
    let (trace, _) = played(0, |reports| async move {
        reports.tell(None, message());
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        reports.tell(None, message());
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    })
    .await;
    assert_eq!(trace, ["showed agent.message", "showed agent.message", "wrote agent.message agent.message"]);
}

#[tokio::test(start_paused = true)]
async fn a_decision_whose_write_failed_is_not_kept_later() {
    let (trace, written) = played(1, |reports| async move {
        reports.tell(None, message());
        assert_eq!(reports.record(None, decision()).await, Err("the disk is full".to_owned()));
    })
    .await;
    // The commentary in the same batch is retried.
    assert_eq!(trace, ["showed agent.message", "wrote agent.message"]);
    assert_eq!(written, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_failed_write_is_an_error_at_the_end() {
    let (trace, written) = played(u64::MAX, |reports| async move { reports.tell(None, message()) }).await;
    assert_eq!(trace, ["showed agent.message"]);
    assert_eq!(written, Err("the disk is full".to_owned()));
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_in_the_project_is_judged_by_its_target() {
    let (project, outside) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    std::fs::write(outside.path().join("secret"), "x").expect("a file");
    std::fs::write(outside.path().join("brief"), "x").expect("a file");
    std::fs::write(project.path().join("own"), "x").expect("a file");
    std::os::unix::fs::symlink(outside.path(), project.path().join("link")).expect("a link");
    let root = project.path().canonicalize().expect("it is there");
    let (reports, _messages) = Reports::channel();
    let requests = RequestHandler {
        attached: [outside.path().canonicalize().expect("a folder").join("brief").display().to_string()].into(),
        project: root.display().to_string(),
        ..workers_tests::requests(Permissions::Deny, None)
    };
    for (path, is_allowed) in
        [("own", true), ("link/secret", false), ("link/brief", true), ("missing", true), ("../missing", false)]
    {
        for detail in [path.to_owned(), root.join(path).display().to_string()] {
            let (reply, answer) = Reply::channel();
            let tool = "view".to_owned();
            let request = Request::Permission { call: None, access: Access::Read, tool, detail: detail.clone(), reply };
            requests.answer(&Requester::new(Slug::coordinator(), reports.clone(), true, None), request).await;
            assert_eq!(answer.await.expect("an answer") == Approval::Allow, is_allowed, "{detail}");
        }
    }
}
