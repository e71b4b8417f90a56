//! Who worked when, as bars with what was done on them.

use std::fmt::Write;

use jiff::Timestamp;

use super::escaped;
use crate::model::{Access, AgentWaits, EventKind, Slug, Sort, change_by, clock, first_line};
use crate::view::call;

/// The width of the drawing, whatever it has on the screen.
const WIDTH: i64 = 1000;
/// The width of what is done at one moment.
const MOMENT: i64 = 8;

#[derive(Debug, Default)]
pub(super) struct Timeline {
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    /// In the order in which they begin.
    rows: Vec<(Slug, Row)>,
}

#[derive(Debug, Default)]
struct Row {
    works_since: Option<Timestamp>,
    /// What comes behind its end, such as what a reviewer says of it, is no work.
    has_ended: bool,
    /// Requests that a person has not answered.
    asked: usize,
    is_out_of_quota: bool,
    waits: AgentWaits,
    waits_since: Option<Timestamp>,
    spans: Vec<(&'static str, Timestamp, Timestamp)>,
    moments: Vec<Moment>,
}

/// What was done, and the event of the story that tells of it.
#[derive(Debug)]
struct Moment {
    class: &'static str,
    at: Timestamp,
    what: String,
    event: usize,
}

impl Timeline {
    pub(super) fn see(&mut self, at: Timestamp, agent: Option<&Slug>, kind: &EventKind, event: usize) {
        self.first = self.first.or(Some(at));
        self.last = self.last.max(Some(at));
        let Some(agent) = agent else { return self.rows.iter_mut().for_each(|(_, row)| row.see_all(at, kind)) };
        let place = self.rows.iter().position(|(name, _)| name == agent).unwrap_or_else(|| {
            self.rows.push((agent.clone(), Row::default()));
            self.rows.len() - 1
        });
        self.rows[place].1.see(at, kind, event);
    }

    /// Nothing if nobody worked.
    pub(super) fn drawn(&self) -> String {
        let Some((first, last)) = self.first.zip(self.last).filter(|_| !self.rows.is_empty()) else {
            return String::new();
        };
        let millis = |at: Timestamp| at.as_millisecond().saturating_sub(first.as_millisecond()).max(0);
        let whole = millis(last).max(1);
        let x = |at: Timestamp| millis(at).saturating_mul(WIDTH) / whole;
        let mut drawn = String::from("<div class=times>");
        for (name, row) in &self.rows {
            let _ = write!(drawn, "<span>{name}</span><svg viewBox=\"0 0 {WIDTH} 20\" preserveAspectRatio=none>");
            let open = [("bar", row.works_since), ("wait", row.waits_since)];
            let open = open.into_iter().filter_map(|(class, since)| Some((class, since?, last)));
            let mut spans: Vec<_> = row.spans.iter().copied().chain(open).collect();
            // Waits lie above the work.
            spans.stable_sort_by_key(|(class, ..)| *class == "wait");
            for (class, from, to) in spans {
                let (from, to) = (x(from), x(to));
                let _ = write!(drawn, "<rect class={class} x={from} y=0 width={} height=20 />", (to - from).max(2));
            }
            for Moment { class, at, what, event } in &row.moments {
                let (place, time) = (x(*at).min(WIDTH - MOMENT), clock(millis(*at).unsigned_abs() / 1000));
                let title = escaped(&format!("{time} {what}"));
                let rect = format!("<rect class={class} x={place} y=2 width={MOMENT} height=16>");
                let _ = write!(drawn, "<a href=#e{event}>{rect}<title>{title}</title></rect></a>");
            }
            drawn += "</svg>";
        }
        let end = clock(whole.unsigned_abs() / 1000);
        let ends = format!("<span></span><div class=ends><span>0:00</span><span>{end}</span></div>");
        let key = [("good", "write"), ("", "command"), ("warning", "decision, wait"), ("bad", "failed")];
        let key: String = key.iter().map(|(class, what)| format!("<b class=\"{class}\">■</b> {what}  ")).collect();
        drawn + &format!("{ends}<div class=key>{key}</div></div>\n")
    }
}

impl Row {
    fn see(&mut self, at: Timestamp, kind: &EventKind, event: usize) {
        self.has_ended &= !matches!(kind, EventKind::SessionCreated { .. } | EventKind::SessionResumed { .. });
        if !self.has_ended {
            self.works_since = self.works_since.or(Some(at));
            self.wait(at, kind);
        }
        match kind {
            EventKind::ToolCompleted { tool, ok, exit_code, detail, .. } => {
                let class = match (ok, change_by(tool)) {
                    (false, _) => "failed",
                    (true, Some(Access::Shell)) => "command",
                    (true, Some(_)) => "write",
                    (true, None) => return,
                };
                self.moment(class, at, &call(tool, detail, exit_code.is_some()), event);
            }
            EventKind::ToolDenied { tool, detail, .. } => {
                self.moment("failed", at, &call(tool, detail, false), event);
            }
            EventKind::DecisionLogged { decision, .. } => self.moment("decision", at, &decision.title, event),
            kind if kind.end().is_some() => {
                self.has_ended = true;
                self.spans.extend(self.works_since.take().map(|since| ("bar", since, at)));
            }
            _ => {}
        }
    }

    /// An event of no agent.
    fn see_all(&mut self, at: Timestamp, kind: &EventKind) {
        match kind {
            EventKind::QuotaOpened { .. } => self.is_out_of_quota = self.works_since.is_some(),
            EventKind::QuotaClosed { .. } => self.is_out_of_quota = false,
            _ => return,
        }
        self.rest(at);
    }

    fn wait(&mut self, at: Timestamp, kind: &EventKind) {
        self.waits.see(kind);
        match kind {
            EventKind::PermissionAsked { .. } => self.asked += 1,
            EventKind::PermissionAnswered { .. } => self.asked = self.asked.saturating_sub(1),
            // Its engine is another one.
            EventKind::Message { .. } | EventKind::ToolStarted { .. } => self.is_out_of_quota = false,
            EventKind::SessionCreated { .. } | EventKind::SessionResumed { .. } => self.is_out_of_quota = false,
            kind if kind.end().is_some() => (self.asked, self.is_out_of_quota) = (0, false),
            _ => {}
        }
        self.rest(at);
    }

    fn rest(&mut self, at: Timestamp) {
        if self.asked > 0 || self.is_out_of_quota || self.waits.state().is_some() {
            self.waits_since = self.waits_since.or(Some(at));
        } else {
            self.spans.extend(self.waits_since.take().map(|since| ("wait", since, at)));
        }
    }

    fn moment(&mut self, class: &'static str, at: Timestamp, what: &str, event: usize) {
        self.moments.push(Moment { class, at, what: first_line(what, 120), event });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{End, Outcome};

    fn kind(value: serde_json::Value) -> EventKind {
        serde_json::from_value(value).expect("an event")
    }

    /// What is known of an agent from its events alone.
    #[derive(Clone, Debug, Default)]
    struct Known {
        is_alive: bool,
        asked: usize,
        is_cut_off: bool,
        is_out_of_quota: bool,
    }

    /// The event that a number stands for, and whether it is an agent's.
    fn event(number: usize) -> (EventKind, bool) {
        let json = match number {
            0 => {
                serde_json::json!({"type": "session.created", "session": "s", "model": "m", "compiled_hash": "", "seconds": 0.1, "warm": false})
            }
            1 => serde_json::json!({"type": "permission.asked", "tool": "write", "access": "write", "detail": "a"}),
            2 => serde_json::json!({"type": "permission.answered", "tool": "write", "detail": "a", "allowed": true}),
            3 => serde_json::json!({"type": "connection.lost", "reason": "gone"}),
            4 => serde_json::json!({"type": "connection.restored", "attempts": 1}),
            5 => serde_json::json!({"type": "agent.message", "text": "I work."}),
            6 => return (EventKind::of_end(Outcome::Failed, End::default()), true),
            7 => serde_json::json!({"type": "tool.denied", "tool": "write", "detail": "a", "reason": "no"}),
            8 => serde_json::json!({"type": "quota.opened", "engine": "copilot", "reason": "used up", "until": null}),
            _ => serde_json::json!({"type": "quota.closed", "engine": "copilot"}),
        };
        (kind(json), number < 8)
    }

    impl Known {
        fn see(&mut self, number: usize) {
            match number {
                0 => (self.is_alive, self.is_cut_off, self.is_out_of_quota) = (true, false, false),
                1 => self.asked += 1,
                2 => self.asked = self.asked.saturating_sub(1),
                3 => self.is_cut_off = true,
                4 => self.is_cut_off = false,
                5 => (self.is_cut_off, self.is_out_of_quota) = (false, false),
                6 => *self = Self::default(),
                8 => self.is_out_of_quota = true,
                9 => self.is_out_of_quota = false,
                _ => {}
            }
        }
    }

    proptest! {
        /// As in the rows of a run and in `squad status`: on the page nobody who waits is drawn at work, and nobody who
        /// has ended is drawn alive.
        #[test]
        fn who_waits_is_not_drawn_at_work_and_who_ended_is_not_drawn_alive(
            steps in prop::collection::vec((0..3usize, 0..10usize), 1..60),
        ) {
            let names = ["ada", "bob", "zoe"];
            let (mut timeline, mut known): (_, [Known; 3]) = (Timeline::default(), Default::default());
            let at = |second: usize| Timestamp::from_second(1_767_600_000 + second as i64).expect("a time");
            // Each begins once; what is heard of one behind its end, is no beginning.
            let begun = names.iter().enumerate().map(|(agent, _)| (agent, 0));
            let all: Vec<(usize, usize)> = begun.chain(steps).collect();
            for (second, (agent, number)) in all.iter().enumerate() {
                let (kind, is_agents) = event(*number);
                let slug = Slug::fold(names[*agent]).filter(|_| is_agents);
                timeline.see(at(second), slug.as_ref(), &kind, second);
                let heard = known.iter_mut().enumerate().filter(|(other, _)| !is_agents || other == agent);
                heard.filter(|(_, known)| known.is_alive || *number == 0).for_each(|(_, known)| known.see(*number));
            }
            // The run goes on for a while.
            timeline.see(at(2 * all.len()), None, &EventKind::QuotaWaited {}, 0);
            let drawn = timeline.drawn();
            for (name, known) in names.iter().zip(&known) {
                let row = drawn.split_once(&format!("<span>{name}</span>")).expect(&drawn).1;
                let row = row.split_once("</svg>").expect(&drawn).0;
                let number = |text: &str| text.split([' ', '>']).next().and_then(|it| it.parse::<i64>().ok()).expect(row);
                let open = |class: &str| {
                    row.split(&format!("<rect class={class} x=")).skip(1).any(|rect| {
                        let width = rect.split_once("width=").expect(row).1;
                        number(rect) + number(width) >= WIDTH
                    })
                };
                let waits = known.asked > 0 || known.is_cut_off || known.is_out_of_quota;
                prop_assert_eq!(open("bar"), known.is_alive, "{} {:?}: {}", name, known, row);
                prop_assert_eq!(open("wait"), known.is_alive && waits, "{} {:?}: {}", name, known, row);
            }
        }
    }
}
