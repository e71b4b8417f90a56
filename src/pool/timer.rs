//! Time limits for one message to an agent.
//!
//! Silence is limited only while no tool call is in progress. Each tool call and the total working time have their own
//! limits. No limit runs while the agent waits for an answer from squad, such as a person's, or while the connection to its
//! engine is broken: how long that may last is the engine's to say.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::engine::Fact;

/// Factor for models that do not stream: they are silent until the message is complete.
const WITHOUT_STREAMING: u32 = 3;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Since the last sign of life.
    pub(crate) silence: Duration,
    /// One tool call.
    pub(crate) tool: Duration,
    /// Total working time.
    pub(crate) work: Duration,
}

/// A limit that was exceeded.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum LimitReached {
    Silence(Duration),
    Tool(String, Duration),
    Work(Duration),
}

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silence(limit) => write!(f, "it showed no activity for {}", format_duration(*limit)),
            Self::Tool(tool, limit) => write!(f, "its call of `{tool}` did not end within {}", format_duration(*limit)),
            Self::Work(limit) => write!(f, "its work did not end within {}", format_duration(*limit)),
        }
    }
}

pub(super) struct Timer {
    limits: Limits,
    begun: Instant,
    /// Time of the last sign of life.
    last_sign: Instant,
    /// Tool calls in progress: tool and start time, by call id.
    calls: BTreeMap<String, (String, Instant)>,
    /// Whether messages arrive in pieces: assumed until one does not.
    streams: bool,
    has_pieces: bool,
    is_asking: bool,
    is_cut_off: bool,
    /// When waiting for an answer from squad, or for the connection, began.
    waiting: Option<Instant>,
}

impl Timer {
    pub(super) fn start(limits: Limits) -> Self {
        let now = Instant::now();
        let calls = BTreeMap::new();
        Self {
            limits,
            begun: now,
            last_sign: now,
            calls,
            streams: true,
            has_pieces: false,
            is_asking: false,
            is_cut_off: false,
            waiting: None,
        }
    }

    /// Registers a fact. Every fact is a sign of life but a warning: who asks a dead model again and again does no work.
    pub(super) fn register(&mut self, fact: &Fact) {
        let now = Instant::now();
        if !matches!(fact, Fact::Warning(_)) {
            self.last_sign = now;
        }
        if matches!(fact, Fact::ConnectionLost(_) | Fact::ConnectionRestored { .. }) || fact.is_last() {
            self.is_cut_off = matches!(fact, Fact::ConnectionLost(_));
            self.stand_or_run();
        }
        match fact {
            Fact::ToolStarted { call, tool, .. } => drop(self.calls.insert(call.clone(), (tool.clone(), now))),
            Fact::ToolCompleted { call, .. } => drop(self.calls.remove(call)),
            Fact::Interrupted(_) | Fact::Failed(_) | Fact::NoQuota { .. } | Fact::NoLogin { .. } => self.calls.clear(),
            Fact::MessageDelta(_) => self.has_pieces = true,
            Fact::Message(_) => self.streams = std::mem::take(&mut self.has_pieces),
            _ => {}
        }
    }

    /// Stops the clock while the agent waits for squad.
    pub(super) fn wait(&mut self, is_waiting: bool) {
        self.is_asking = is_waiting;
        self.stand_or_run();
    }

    fn stand_or_run(&mut self) {
        let now = Instant::now();
        match (self.is_asking || self.is_cut_off, self.waiting) {
            (true, None) => self.waiting = Some(now),
            (false, Some(since)) => {
                let waited = now - since;
                self.waiting = None;
                self.begun += waited;
                // One that came during the wait is not in the future.
                self.last_sign = (self.last_sign + waited).min(now);
                // A call that began during the wait is extended by its part of it only.
                self.calls.values_mut().for_each(|(_, begun)| *begun = (*begun + waited).min(now));
            }
            _ => {}
        }
    }

    /// The earliest limit and when it is reached, unless another fact comes first.
    pub(super) fn due(&self) -> Option<(Instant, LimitReached)> {
        if self.waiting.is_some() {
            return None;
        }
        let Limits { silence, tool: call, work } = self.limits;
        let silence = if self.streams { silence } else { silence.saturating_mul(WITHOUT_STREAMING) };
        let calls = self.calls.values().map(|(tool, begun)| (*begun, call, LimitReached::Tool(tool.clone(), call)));
        let quiet = self.calls.is_empty().then_some((self.last_sign, silence, LimitReached::Silence(silence)));
        let all = calls.chain(quiet).chain([(self.begun, work, LimitReached::Work(work))]);
        all.filter_map(|(begun, limit, limit_reached)| Some((begun.checked_add(limit)?, limit_reached)))
            .min_by_key(|(at, _)| *at)
    }

    /// Returns when the earliest limit is reached.
    pub(super) async fn limit_reached(&self) -> LimitReached {
        match self.due() {
            Some((at, limit_reached)) => {
                tokio::time::sleep_until(at).await;
                limit_reached
            }
            None => std::future::pending().await,
        }
    }
}

/// Counts the answers that an agent waits for.
#[derive(Clone)]
pub(super) struct PendingAnswers(watch::Sender<usize>);

impl PendingAnswers {
    pub(super) fn channel() -> (Self, watch::Receiver<usize>) {
        let (sender, receiver) = watch::channel(0);
        (Self(sender), receiver)
    }

    /// Counts one more answer until the guard is dropped.
    pub(super) fn begin(&self) -> PendingAnswer {
        self.0.send_modify(|count| *count += 1);
        PendingAnswer(self.0.clone())
    }
}

pub(super) struct PendingAnswer(watch::Sender<usize>);

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// `5m`, `90s`, `250ms`.
pub(super) fn format_duration(duration: Duration) -> String {
    jiff::SignedDuration::try_from(duration)
        .map_or_else(|_| format!("{duration:?}"), |duration| format!("{duration:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits =
        Limits { silence: Duration::from_secs(10), tool: Duration::from_secs(60), work: Duration::from_secs(300) };

    enum Step {
        /// After this many seconds.
        Hear(u64, Fact),
        Wait(u64, bool),
    }

    fn call(id: &str) -> Fact {
        Fact::ToolStarted { call: id.to_owned(), tool: "bash".to_owned(), detail: String::new(), writes: None }
    }

    fn end(id: &str) -> Fact {
        let (call, tool) = (id.to_owned(), "bash".to_owned());
        Fact::ToolCompleted { call, tool, ok: true, exit_code: None, detail: String::new() }
    }

    fn piece() -> Fact {
        Fact::MessageDelta("a".to_owned())
    }

    fn message() -> Fact {
        Fact::Message("a".to_owned())
    }

    /// How many seconds after the start a limit is reached, and which one.
    async fn ended(steps: Vec<Step>) -> (u64, LimitReached) {
        let begun = Instant::now();
        let mut timer = Timer::start(LIMITS);
        for step in steps {
            let (Step::Hear(seconds, _) | Step::Wait(seconds, _)) = step;
            tokio::select! {
                biased;
                limit_reached = timer.limit_reached() => return (begun.elapsed().as_secs(), limit_reached),
                () = tokio::time::sleep(Duration::from_secs(seconds)) => {}
            }
            match step {
                Step::Hear(_, fact) => timer.register(&fact),
                Step::Wait(_, is_waiting) => timer.wait(is_waiting),
            }
        }
        let limit_reached = timer.limit_reached().await;
        (begun.elapsed().as_secs(), limit_reached)
    }

    #[tokio::test(start_paused = true)]
    async fn each_limit_runs_only_when_it_applies() {
        use Step::{Hear, Wait};
        let (ten, thirty) = (LimitReached::Silence(LIMITS.silence), LimitReached::Silence(3 * LIMITS.silence));
        let tool = || LimitReached::Tool("bash".to_owned(), LIMITS.tool);
        let last_sign = |each: u64, times: usize| (0..times).map(|_| Hear(each, Fact::Alive)).collect::<Vec<_>>();
        for (what, steps, expected) in [
            ("silence from the beginning", vec![], (10, ten.clone())),
            ("any sign of life counts", last_sign(9, 3), (37, ten.clone())),
            (
                "a broken connection, while a person is asked, too",
                vec![
                    Hear(5, Fact::ConnectionLost("cut".to_owned())),
                    Wait(100, true),
                    Wait(100, false),
                    Hear(600, Fact::ConnectionRestored { attempts: 3 }),
                ],
                (815, ten.clone()),
            ),
            (
                "a call that a broken connection hides",
                vec![
                    Hear(5, call("1")),
                    Hear(5, Fact::ConnectionLost("cut".to_owned())),
                    Hear(900, Fact::ConnectionRestored { attempts: 1 }),
                ],
                (965, tool()),
            ),
            ("usage counts", vec![Hear(9, Fact::Usage(crate::model::Usage::default()))], (19, ten.clone())),
            (
                "a retry does not",
                vec![Hear(9, Fact::Alive), Hear(5, Fact::Warning("again".to_owned()))],
                (19, ten.clone()),
            ),
            ("pieces count", vec![Hear(9, piece()), Hear(9, piece())], (28, ten.clone())),
            ("work ends whatever is heard", last_sign(9, 40), (300, LimitReached::Work(LIMITS.work))),
            ("a call is no silence", vec![Hear(1, call("a")), Hear(55, end("a"))], (66, ten.clone())),
            ("a call has its own limit", vec![Hear(1, call("a"))], (61, tool())),
            ("each call has", vec![Hear(1, call("a")), Hear(20, call("b")), Hear(20, end("a"))], (81, tool())),
            (
                "one call's end leaves the other",
                vec![Hear(1, call("a")), Hear(1, call("b")), Hear(1, end("b"))],
                (61, tool()),
            ),
            (
                "an interruption ends its calls",
                vec![Hear(1, call("a")), Hear(5, Fact::Interrupted("killed".to_owned()))],
                (16, ten.clone()),
            ),
            ("a failure does", vec![Hear(1, call("a")), Hear(5, Fact::Failed("gone".to_owned()))], (16, ten.clone())),
            (
                "and an exhausted quota",
                vec![Hear(1, call("a")), Hear(5, Fact::NoQuota { reason: "429".to_owned(), reset: None })],
                (16, ten.clone()),
            ),
            ("what is said meanwhile does not prolong it", vec![Hear(1, call("a")), Hear(50, piece())], (61, tool())),
            ("a person thinks as long as they like", vec![Wait(5, true), Wait(1000, false)], (1010, ten.clone())),
            (
                "and so in a call",
                vec![Hear(1, call("a")), Wait(5, true), Wait(1000, false), Hear(50, end("a"))],
                (1066, ten.clone()),
            ),
            (
                "a call's time begins after the answer",
                vec![Hear(0, call("a")), Wait(0, true), Wait(500, false)],
                (560, tool()),
            ),
            ("without streaming it is three times as long", vec![Hear(1, message())], (31, thirty.clone())),
            ("with streaming it is not", vec![Hear(1, piece()), Hear(1, message())], (12, ten.clone())),
            ("the last message tells", vec![Hear(1, piece()), Hear(1, message()), Hear(1, message())], (33, thirty)),
        ] {
            assert_eq!(ended(steps).await, expected, "{what}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_does_not_count_as_work() {
        let mut steps = Vec::new();
        for _ in 0..4 {
            steps.extend((0..7).map(|_| Step::Hear(9, Fact::Alive)));
            steps.extend([Step::Wait(0, true), Step::Wait(3600, false)]);
        }
        steps.extend((0..40).map(|_| Step::Hear(9, Fact::Alive)));
        assert_eq!(ended(steps).await, (300 + 4 * 3600, LimitReached::Work(LIMITS.work)));
    }

    #[tokio::test(start_paused = true)]
    async fn pending_answers_are_counted_down_even_after_a_panic() {
        let (waits, mut count) = PendingAnswers::channel();
        let (one, two) = (waits.begin(), waits.begin());
        assert_eq!(*count.borrow_and_update(), 2);
        drop(one);
        let task = tokio::spawn(async move {
            let _held = two;
            unreachable!("a defect");
        });
        assert!(task.await.is_err());
        assert_eq!(*count.borrow_and_update(), 0);
    }
}
