//! What a sandbox's programs may reach, what they have reached, and what somebody is asked about it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use crate::model::{HostPattern, HostPort, ReachedHosts};

/// How long a question waits for a session that takes it to a person. Between two turns nobody does.
const TAKEN_WITHIN: Duration = Duration::from_secs(5);
/// Most hosts that are kept of each kind: programs may try any number.
const MOST: usize = 100;

/// The traffic of one process, or of several with the same rights.
pub(crate) struct Traffic {
    /// By which a process says whose it is.
    key: String,
    hosts: Vec<HostPattern>,
    /// Its session takes questions to a person.
    asks: bool,
    state: Mutex<State>,
    asked: Notify,
}

/// `Err`: why not, for the program.
pub(crate) type Answer = Result<(), String>;

#[derive(Default)]
struct State {
    answers: BTreeMap<HostPort, Answer>,
    open: BTreeMap<HostPort, Open>,
    questions: VecDeque<HostPort>,
    /// With when each was last noted.
    reached: BTreeMap<String, u64>,
    refused: BTreeMap<String, u64>,
    /// Counts what is noted.
    noted: u64,
}

impl State {
    fn note(&mut self, is_reached: bool, place: &HostPort) {
        self.noted += 1;
        let seen = if is_reached { &mut self.reached } else { &mut self.refused };
        let name = place.to_string();
        if seen.len() < MOST || seen.contains_key(&name) {
            seen.insert(name, self.noted);
        }
    }
}

#[derive(Default)]
struct Open {
    is_taken: bool,
    waiting: Vec<oneshot::Sender<Answer>>,
}

impl Traffic {
    pub(super) fn new(hosts: Vec<HostPattern>, asks: bool) -> Self {
        let key = crate::env::unique_id().simple().to_string();
        Self { key, hosts, asks, state: Mutex::default(), asked: Notify::new() }
    }

    /// Reaches one place, which no list names, and so no port is passed in for it.
    pub(super) fn only(place: Option<&HostPort>) -> Self {
        let traffic = Self::new(Vec::new(), false);
        place.iter().for_each(|place| traffic.answer(place, Ok(())));
        traffic
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    pub(super) fn hosts(&self) -> &[HostPattern] {
        &self.hosts
    }

    /// The place on this machine that a port inside leads to.
    pub(super) fn passed_in(&self, port: u16) -> Option<HostPort> {
        self.hosts.iter().filter_map(HostPattern::passed_in).find(|place| place.port() == port)
    }

    pub(super) fn is_listed(&self, place: &HostPort) -> bool {
        self.hosts.iter().any(|pattern| pattern.is(place))
    }

    /// Whether a program may reach this place: it is listed, or a person allows it. An answer holds until
    /// [`Self::seen_since`] is called.
    pub(super) async fn permit(&self, place: &HostPort) -> Answer {
        if self.is_listed(place) {
            return Ok(());
        }
        let answer = self.ask(place).await;
        if answer.is_err() {
            self.state.lock().note(false, place);
        }
        answer
    }

    async fn ask(&self, place: &HostPort) -> Answer {
        let nobody = || Err("it is not listed".to_owned());
        let answered = {
            let mut state = self.state.lock();
            if let Some(answer) = state.answers.get(place) {
                return answer.clone();
            }
            if !self.asks || state.open.len() >= MOST {
                return nobody();
            }
            let (sender, answered) = oneshot::channel();
            let is_new = match state.open.entry(place.clone()) {
                Entry::Occupied(mut open) => {
                    open.get_mut().waiting.push(sender);
                    false
                }
                Entry::Vacant(entry) => {
                    entry.insert(Open { is_taken: false, waiting: vec![sender] });
                    true
                }
            };
            if is_new {
                state.questions.push_back(place.clone());
                self.asked.notify_one();
            }
            answered
        };
        let mut answered = answered;
        if let Ok(answer) = timeout(TAKEN_WITHIN, &mut answered).await {
            return answer.unwrap_or_else(|_| nobody());
        }
        let is_taken = self.state.lock().open.get(place).is_some_and(|open| open.is_taken);
        if !is_taken {
            self.withdraw(place);
        }
        answered.await.unwrap_or_else(|_| nobody())
    }

    /// The next question, for a session to take to a person. Cancel safe.
    pub(crate) async fn question(self: &Arc<Self>) -> HostQuestion {
        loop {
            let asked = self.asked.notified();
            {
                let mut state = self.state.lock();
                while let Some(place) = state.questions.pop_front() {
                    if let Some(open) = state.open.get_mut(&place) {
                        open.is_taken = true;
                        if !state.questions.is_empty() {
                            self.asked.notify_one();
                        }
                        return HostQuestion { place, traffic: Arc::clone(self), is_answered: false };
                    }
                }
            }
            asked.await;
        }
    }

    /// Whoever waits is told that nobody answers, and asks again next time.
    fn withdraw(&self, place: &HostPort) {
        let mut state = self.state.lock();
        state.questions.retain(|question| question != place);
        state.open.remove(place);
    }

    fn answer(&self, place: &HostPort, answer: Answer) {
        let mut state = self.state.lock();
        state.answers.insert(place.clone(), answer.clone());
        for waiting in state.open.remove(place).into_iter().flat_map(|open| open.waiting) {
            // Its program may be gone.
            let _ = waiting.send(answer.clone());
        }
    }

    pub(super) fn note_reached(&self, place: &HostPort) {
        self.state.lock().note(true, place);
    }

    /// Now, for [`Self::seen_since`].
    pub(crate) fn mark(&self) -> u64 {
        self.state.lock().noted
    }

    /// What was reached and refused since a mark. What was answered counts no longer.
    pub(crate) fn seen_since(&self, mark: u64) -> ReachedHosts {
        let mut state = self.state.lock();
        state.answers.clear();
        let since = |seen: &BTreeMap<String, u64>| {
            seen.iter().filter(|(_, noted)| **noted > mark).map(|(name, _)| name.clone()).collect()
        };
        ReachedHosts { reached: since(&state.reached), refused: since(&state.refused) }
    }
}

impl fmt::Debug for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traffic").field("hosts", &self.hosts).field("asks", &self.asks).finish_non_exhaustive()
    }
}

/// May a program reach this? Dropping it means that nobody answers.
pub(crate) struct HostQuestion {
    pub(crate) place: HostPort,
    traffic: Arc<Traffic>,
    is_answered: bool,
}

impl HostQuestion {
    pub(crate) fn answer(mut self, answer: Answer) {
        self.is_answered = true;
        self.traffic.answer(&self.place, answer);
    }
}

impl Drop for HostQuestion {
    fn drop(&mut self) {
        if !self.is_answered {
            self.traffic.withdraw(&self.place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic(asks: bool) -> Arc<Traffic> {
        Arc::new(Traffic::new(vec![HostPattern::parse("good.example").expect("a host")], asks))
    }

    fn place(host: &str) -> HostPort {
        HostPort::new(host, 443).expect("a host")
    }

    #[tokio::test(start_paused = true)]
    async fn who_cannot_ask_reaches_what_is_listed() {
        let traffic = traffic(false);
        assert_eq!(traffic.permit(&place("good.example")).await, Ok(()));
        assert!(traffic.permit(&place("bad.example")).await.is_err());
        let seen = traffic.seen_since(0);
        assert_eq!(seen.refused.iter().collect::<Vec<_>>(), ["bad.example:443"]);
        let mark = traffic.mark();
        assert!(traffic.seen_since(mark).is_empty());
        assert!(traffic.permit(&place("bad.example")).await.is_err());
        assert_eq!(traffic.seen_since(mark), seen);
    }

    /// Connections to the same place wait for one answer, which holds for the later ones.
    #[tokio::test(start_paused = true)]
    async fn a_place_is_asked_about_once() {
        for answer in [Ok(()), Err("the user refused it".to_owned())] {
            let traffic = traffic(true);
            let wanted = place("new.example");
            let ask = || async { traffic.permit(&wanted).await };
            let person = async {
                let question = traffic.question().await;
                assert_eq!(question.place, wanted);
                tokio::time::sleep(TAKEN_WITHIN * 9).await;
                question.answer(answer.clone());
            };
            let (one, other, ()) = tokio::join!(ask(), ask(), person);
            assert_eq!((&one, &other, &ask().await), (&answer, &answer, &answer));
            assert_eq!(traffic.seen_since(0).refused.len(), usize::from(answer.is_err()));
            // It is asked again in the next piece of work, where nobody answers.
            assert!(ask().await.is_err());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_that_nobody_answers_is_a_refusal_and_asked_again() {
        let traffic = traffic(true);
        let wanted = place("new.example");
        let dropped = async { drop(traffic.question().await) };
        let (answer, ()) = tokio::join!(traffic.permit(&wanted), dropped);
        assert!(answer.is_err());
        let (answer, ()) = tokio::join!(traffic.permit(&wanted), async { traffic.question().await.answer(Ok(())) });
        assert_eq!(answer, Ok(()));
    }

    /// Programs may try as many as they like.
    #[tokio::test(start_paused = true)]
    async fn what_is_kept_is_bounded() {
        let traffic = traffic(false);
        for number in 0..MOST * 2 {
            assert!(traffic.permit(&place(&format!("n{number}.example"))).await.is_err());
        }
        assert_eq!(traffic.seen_since(0).refused.len(), MOST);
    }
}
