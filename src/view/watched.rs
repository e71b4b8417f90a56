//! The output of `squad watch`: changes of the team and its sessions, and each run's events.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::{LineStyle, Lines, Painter, Screen, Text, ViewInput, ViewReceiver, WatchView};
use crate::model::{Event, EventKind, RunId, Slug, first_line, list};
use crate::pool::Show;

/// Characters shown of an answer.
const ANSWER: usize = 200;

pub(crate) struct Watched<'s, S> {
    screen: Shared<'s, S>,
    is_json: bool,
    runs: BTreeMap<RunId, Lines<Shared<'s, S>>>,
    /// The number of current runs, shared with their screens.
    count: Arc<AtomicUsize>,
}

impl<'s, S: Screen> Watched<'s, S> {
    pub(crate) fn new(screen: &'s Mutex<S>, is_json: bool) -> Self {
        let count = Arc::<AtomicUsize>::default();
        let screen = Shared { screen, run: None, count: Arc::clone(&count) };
        Self { screen, is_json, runs: BTreeMap::new(), count }
    }

    fn show_own(&mut self, agent: Option<&Slug>, kind: &EventKind) {
        let who = agent.map_or("squad", Slug::as_str);
        let (style, text) = match kind {
            EventKind::EngineStarted { engine, version, seconds, .. } => {
                (LineStyle::Good, format!("engine {engine} {version}, started in {seconds:.1} s"))
            }
            EventKind::EngineFallback { from, to, reason } => {
                (LineStyle::Warning, format!("{from} cannot start ({reason}); falling back to {to}"))
            }
            EventKind::SessionCreated { model, seconds, .. } => {
                (LineStyle::Faint, format!("has a session on {model}, opened in {seconds:.2} s"))
            }
            EventKind::SessionResumed { seconds, .. } => {
                (LineStyle::Faint, format!("continues in its session, {seconds:.2} s"))
            }
            EventKind::SessionSuspended { .. } => (LineStyle::Faint, "is suspended until it is needed".to_owned()),
            EventKind::SessionDestroyed { .. } => (LineStyle::Faint, "has its session closed".to_owned()),
            EventKind::SessionError { reason, .. } => (LineStyle::Warning, reason.clone()),
            EventKind::ConnectionLost { reason } => (LineStyle::Warning, format!("connection lost: {reason}")),
            EventKind::ConnectionRestored { .. } => (LineStyle::Good, "connection restored".to_owned()),
            EventKind::TeamChanged { problem: Some(problem), .. } => {
                (LineStyle::Warning, format!("the team stays as it was: {problem}"))
            }
            EventKind::TeamChanged { changed, joined, left, .. } => {
                (LineStyle::Plain, team_changes(changed, joined, left))
            }
            EventKind::CharterChanged { diff } => (LineStyle::Plain, diff.trim_end().to_owned()),
            _ => return,
        };
        for line in text.lines() {
            self.screen.line(who, style, line);
        }
    }
}

fn team_changes(changed: &[Slug], joined: &[Slug], left: &[Slug]) -> String {
    let part = |who: &[Slug], verb: &str| (!who.is_empty()).then(|| format!("{} {verb}", list(who)));
    let parts: Vec<String> =
        [part(changed, "changed"), part(joined, "joined"), part(left, "left")].into_iter().flatten().collect();
    if parts.is_empty() { "the team can be read again".to_owned() } else { format!("team: {}", parts.join("; ")) }
}

impl<S: Screen> Show for Watched<'_, S> {
    fn show(&mut self, event: &Event) {
        if self.is_json {
            return self.screen.event(event);
        }
        if let EventKind::RunStarted { text, .. } = &event.kind {
            self.screen.line("squad", LineStyle::Plain, &format!("run {}: {}", event.run, first_line(text, ANSWER)));
        }
        if matches!(event.kind, EventKind::RunStarted { .. } | EventKind::RunResumed { .. }) {
            let screen = Shared { run: Some(event.run.clone()), ..self.screen.clone() };
            self.runs.insert(event.run.clone(), Lines::new(screen));
            self.count.store(self.runs.len(), Ordering::Relaxed);
        }
        match self.runs.get_mut(&event.run) {
            Some(lines) => lines.show(event),
            None => self.show_own(event.agent.as_ref(), &event.kind),
        }
        if matches!(event.kind, EventKind::RunCompleted(_)) {
            self.runs.remove(&event.run);
            self.count.store(self.runs.len(), Ordering::Relaxed);
        }
    }
}

impl<S: Screen> WatchView for Watched<'_, S> {
    fn answers(&self) -> bool {
        false
    }

    fn follow(&mut self, inputs: ViewReceiver) {
        loop {
            match inputs.next(None) {
                Some(ViewInput::Event(event)) => self.show(&event),
                Some(ViewInput::End) => return,
                _ => {}
            }
        }
    }
}

/// One screen for several runs, without animation. Answers are only announced: the client that asked prints them.
struct Shared<'s, S> {
    screen: &'s Mutex<S>,
    /// The run these lines belong to, named while there are others.
    run: Option<RunId>,
    count: Arc<AtomicUsize>,
}

impl<S> Shared<'_, S> {}

impl<S> Clone for Shared<'_, S> {
    fn clone(&self) -> Self {
        Self { screen: self.screen, run: self.run.clone(), count: Arc::clone(&self.count) }
    }
}

impl<S: Screen> Screen for Shared<'_, S> {
    fn answer(&mut self, text: &str) {
        self.line("squad", LineStyle::Plain, &format!("answer: {}", first_line(text, ANSWER)));
    }

    fn event(&mut self, event: &Event) {
        self.screen.lock().event(event);
    }

    fn text(&mut self, line: &Text) {
        match self.run.as_ref().filter(|_| self.count.load(Ordering::Relaxed) > 1) {
            Some(run) => {
                let named = Text::default().with(LineStyle::Faint, &format!("[{}] ", run.short()));
                self.screen.lock().text(&named.extend(line));
            }
            None => self.screen.lock().text(line),
        }
    }

    /// Only its first line, which names the run.
    fn card(&mut self, lines: &[Text]) {
        lines.iter().take(1).for_each(|line| self.text(line));
    }

    fn columns(&self) -> usize {
        self.screen.lock().columns()
    }

    fn painter(&self) -> Painter {
        self.screen.lock().painter()
    }

    fn is_animated(&self) -> bool {
        false
    }

    fn is_verbose(&self) -> bool {
        self.screen.lock().is_verbose()
    }
}
