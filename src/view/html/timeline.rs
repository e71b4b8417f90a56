//! Who worked when, as bars with what was done on them.

use std::fmt::Write;

use jiff::Timestamp;

use super::escaped;
use crate::model::{Access, EventKind, Slug, Sort, change_by, clock, first_line};
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
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    agent: Slug,
    works_since: Option<Timestamp>,
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
        let Some(agent) = agent else { return };
        let place = self.rows.iter().position(|row| row.agent == *agent).unwrap_or_else(|| {
            let (works_since, waits_since, spans, moments) = Default::default();
            self.rows.push(Row { agent: agent.clone(), works_since, waits_since, spans, moments });
            self.rows.len() - 1
        });
        self.rows[place].see(at, kind, event);
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
        for row in &self.rows {
            let _ =
                write!(drawn, "<span>{}</span><svg viewBox=\"0 0 {WIDTH} 20\" preserveAspectRatio=none>", row.agent);
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
        let key = [("good", "write"), ("", "command"), ("warning", "decision, wait for a person"), ("bad", "failed")];
        let key: String = key.iter().map(|(class, what)| format!("<b class=\"{class}\">■</b> {what}  ")).collect();
        drawn + &format!("{ends}<div class=key>{key}</div></div>\n")
    }
}

impl Row {
    fn see(&mut self, at: Timestamp, kind: &EventKind, event: usize) {
        self.works_since = self.works_since.or(Some(at));
        match kind {
            EventKind::PermissionAsked { .. } => self.waits_since = self.waits_since.or(Some(at)),
            EventKind::PermissionAnswered { .. } => self.wait_ends(at),
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
                self.wait_ends(at);
                self.spans.extend(self.works_since.take().map(|since| ("bar", since, at)));
            }
            _ => {}
        }
    }

    fn wait_ends(&mut self, at: Timestamp) {
        self.spans.extend(self.waits_since.take().map(|since| ("wait", since, at)));
    }

    fn moment(&mut self, class: &'static str, at: Timestamp, what: &str, event: usize) {
        self.moments.push(Moment { class, at, what: first_line(what, 120), event });
    }
}
