//! How long a run has waited for a person, told from its events.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::session::milliseconds;
use super::{EventKind, PersonWait, Slug};

/// Counts the time in which questions were open and nobody worked: every agent at work was the one that asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct PersonTime {
    at_work: BTreeSet<Slug>,
    open: BTreeMap<u64, Option<Slug>>,
    wait: PersonWait,
}

impl PersonTime {
    pub(crate) fn see(&mut self, at: Timestamp, agent: Option<&Slug>, kind: &EventKind) {
        match (agent, kind) {
            (Some(agent), EventKind::SessionCreated { .. } | EventKind::SessionResumed { .. }) => {
                self.at_work.insert(agent.clone());
            }
            (agent, EventKind::QuestionAsked { question, .. }) => {
                self.open.insert(*question, agent.cloned());
            }
            (_, EventKind::QuestionAnswered { question }) => drop(self.open.remove(question)),
            (Some(agent), kind) if kind.end().is_some() => {
                self.at_work.remove(agent);
                self.open.retain(|_, asker| asker.as_ref() != Some(agent));
            }
            _ => return,
        }
        let asks = |agent: &Slug| self.open.values().flatten().any(|asker| asker == agent);
        let waits = !self.open.is_empty() && self.at_work.iter().all(asks);
        match self.wait.since {
            None if waits => self.wait.since = Some(at),
            Some(since) if !waits => {
                self.wait.counted += milliseconds(since, at);
                self.wait.since = None;
            }
            _ => {}
        }
    }

    /// Seconds until `now`.
    pub(crate) fn seconds(&self, now: Timestamp) -> f64 {
        self.wait.seconds(now)
    }

    pub(crate) fn wait(&self) -> PersonWait {
        self.wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{End, Outcome};

    fn seconds(events: &[(i64, &str, &str)], now: i64) -> f64 {
        let mut time = PersonTime::default();
        for (second, agent, what) in events {
            let kind = match *what {
                "works" => EventKind::SessionResumed { session: String::new(), seconds: 0.0, changed: false },
                "ends" => EventKind::of_end(Outcome::Completed, End::default()),
                "1?" | "2?" => EventKind::QuestionAsked {
                    question: if *what == "1?" { 1 } else { 2 },
                    text: String::new(),
                    proposal: None,
                },
                number => EventKind::QuestionAnswered { question: number.parse().expect("a number") },
            };
            time.see(Timestamp::from_second(*second).expect("a time"), Slug::fold(agent).as_ref(), &kind);
        }
        time.seconds(Timestamp::from_second(now).expect("a time"))
    }

    /// Who asks × who else works meanwhile.
    #[test]
    fn a_run_waits_for_a_person_while_nobody_works() {
        let alone = [(0, "ada", "works"), (10, "ada", "1?")];
        assert_eq!(seconds(&alone, 40), 30.0);
        assert_eq!(seconds(&[&alone[..], &[(25, "ada", "1")]].concat(), 40), 15.0);
        assert_eq!(seconds(&[&alone[..], &[(25, "ada", "ends")]].concat(), 40), 15.0);
        assert_eq!(seconds(&[&alone[..], &[(5, "ada", "1")]].concat(), 40), 0.0, "the clock was set back");
        let other = [&[(0, "bob", "works")], &alone[..]].concat();
        assert_eq!(seconds(&other, 40), 0.0, "bob works");
        assert_eq!(seconds(&[&other[..], &[(20, "bob", "ends")]].concat(), 40), 20.0);
        let both = [&other[..], &[(20, "bob", "2?")]].concat();
        assert_eq!(seconds(&both, 40), 20.0);
        assert_eq!(seconds(&[&both[..], &[(30, "ada", "1")]].concat(), 40), 10.0);
        assert_eq!(seconds(&[(0, "", "1?"), (7, "", "1")], 40), 7.0, "the run asks");
        assert_eq!(seconds(&[(0, "bob", "works"), (0, "", "1?"), (7, "", "1")], 40), 0.0);
    }
}
