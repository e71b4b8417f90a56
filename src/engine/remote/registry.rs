//! What a worker reports, passed on to the sessions that it is about.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::sync::{mpsc, watch};

use super::Mirror;
use super::frames::{Ask, Hello, NumberedFact, Work, method, moved};
use crate::engine::connection::{Connection, Incoming, Responder};
use crate::engine::{Fact, Opening, spawn_blocking};

/// Why nothing is heard of several workers.
const SEVERAL: &str = "its launcher starts more than one worker, and may start one, as `srun -n1` does";
/// Bytes of one bundle. A host must not fill the disk.
const MAX_WORK: u64 = 4 << 30;
/// Bytes of what is told of one turn. They wait in memory until they are recorded.
const MAX_TOLD: u64 = 128 << 20;
/// How many answers are remembered for questions that are asked again.
const MAX_ANSWERS: usize = 256;

/// The sessions on a host.
#[derive(Default)]
pub(super) struct Registry {
    inner: Mutex<Inner>,
    /// Held while a part is taken: after a break it may come again.
    bundle: Mutex<Bundle>,
    /// The project's root here, and on the host.
    roots: OnceLock<(String, String)>,
    mirror: OnceLock<Arc<dyn Mirror>>,
}

#[derive(Default)]
struct Inner {
    last_session: u64,
    last_fact: u64,
    sessions: BTreeMap<u64, Live>,
    asked: BTreeMap<u64, Pending>,
    /// Why an agent's work could not be taken, until its turn ends.
    refused: Option<String>,
    /// The facts before and after those that are missing, if any were.
    gap: Option<(u64, u64)>,
    /// Several workers have answered at once: what they say about an order is not one story.
    has_several: bool,
}

/// The bundle that is coming in.
#[derive(Default)]
struct Bundle {
    file: Option<NamedTempFile>,
    /// The commit and number of the part that was taken last.
    taken: Option<(String, u64)>,
}

struct Live {
    facts: mpsc::UnboundedSender<Fact>,
    opening: Opening,
    /// The host has opened it.
    is_open: bool,
    is_working: bool,
    /// Bytes that were told of the turn. Beyond the limit, nothing more of it is heard.
    told: u64,
}

/// A question of a session's engine.
enum Pending {
    Waiting(Responder),
    /// `None`: nobody will answer.
    Answered(Option<Value>),
}

/// Receives what one connection brings.
pub(super) struct Receiver {
    pub(super) registry: Arc<Registry>,
    pub(super) hello: watch::Sender<Option<Hello>>,
}

/// Where the answer to one question goes, whichever connection there is then.
struct Asking {
    /// `None` once answered.
    registry: Option<Arc<Registry>>,
    id: u64,
}

impl Asking {
    fn end(&mut self, answer: Option<Value>) {
        if let Some(registry) = self.registry.take() {
            registry.answer(self.id, answer);
        }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.end(None);
    }
}

impl Registry {
    pub(super) fn new(mirror: Arc<dyn Mirror>) -> Arc<Self> {
        Arc::new(Self { mirror: mirror.into(), ..Self::default() })
    }

    /// From here on, paths are translated.
    pub(super) fn translate(&self, here: &str, there: &str) {
        // The first one holds: a host does not move a clone.
        let _ = self.roots.set((here.to_owned(), there.to_owned()));
    }

    /// As the host spells it.
    pub(super) fn outward(&self, value: Value) -> Value {
        match self.roots.get() {
            Some((here, there)) => moved(value, here, there),
            None => value,
        }
    }

    /// As it is spelt here.
    pub(super) fn inward(&self, value: Value) -> Value {
        match self.roots.get() {
            Some((here, there)) => moved(value, there, here),
            None => value,
        }
    }

    pub(super) fn add(&self, opening: Opening) -> (u64, mpsc::UnboundedReceiver<Fact>) {
        let (facts, received) = mpsc::unbounded_channel();
        let mut inner = self.inner.lock();
        inner.last_session += 1;
        let number = inner.last_session;
        inner.sessions.insert(number, Live { facts, opening, is_open: false, is_working: false, told: 0 });
        (number, received)
    }

    pub(super) fn remove(&self, session: u64) {
        self.inner.lock().sessions.remove(&session);
    }

    pub(super) fn opened(&self, session: u64) {
        if let Some(live) = self.inner.lock().sessions.get_mut(&session) {
            live.is_open = true;
        }
    }

    pub(super) fn begin_turn(&self, session: u64) {
        if let Some(live) = self.inner.lock().sessions.get_mut(&session) {
            (live.is_working, live.told) = (true, 0);
        }
    }

    /// Why work could not be taken that came outside any turn.
    pub(super) fn refused(&self) -> Option<String> {
        self.inner.lock().refused.clone()
    }

    pub(super) fn has_several(&self) -> bool {
        self.inner.lock().has_several
    }

    pub(super) fn last_fact(&self) -> u64 {
        self.inner.lock().last_fact
    }

    /// How each open session would be opened again, and whether it is at work.
    pub(super) fn sessions(&self) -> Vec<(u64, Opening, bool)> {
        let inner = self.inner.lock();
        let open = inner.sessions.iter().filter(|(_, live)| live.is_open);
        open.map(|(number, live)| (*number, live.opening.clone(), live.is_working)).collect()
    }

    pub(super) fn report(&self, session: u64, fact: Fact) {
        let mut inner = self.inner.lock();
        let refused = if fact.is_last() { inner.refused.take() } else { None };
        let Some(live) = inner.sessions.get_mut(&session) else { return };
        live.is_working &= !fact.is_last();
        let fact = match refused {
            Some(why) => Fact::Failed(format!("what it changed could not be taken from its host: {why}")),
            None => fact,
        };
        // The session may be about to be closed.
        let _ = live.facts.send(fact);
    }

    pub(super) fn report_all(&self, fact: impl Fn() -> Fact) {
        let numbers: Vec<u64> = self.inner.lock().sessions.keys().copied().collect();
        numbers.into_iter().for_each(|number| self.report(number, fact()));
    }

    /// `bytes`: those of its texts. `false`: one before it is missing, so that it is not taken.
    fn fact(&self, NumberedFact { number, session, fact, .. }: NumberedFact, bytes: u64) -> bool {
        let mut is_too_much = false;
        {
            let mut inner = self.inner.lock();
            if number > 0 && number <= inner.last_fact {
                return true;
            }
            // An older worker does not begin with 1 for each client. What does not come again is not there: its disk was full.
            let gap = Some((inner.last_fact, number));
            if inner.last_fact > 0 && number > inner.last_fact.saturating_add(1) && inner.gap != gap {
                inner.gap = gap;
                return false;
            }
            inner.last_fact = inner.last_fact.max(number);
            if let Some(live) = inner.sessions.get_mut(&session) {
                let before = live.told;
                live.told = before.saturating_add(bytes);
                if before > MAX_TOLD {
                    return true;
                }
                is_too_much = live.told > MAX_TOLD;
            }
        }
        let fact = match is_too_much {
            true => Fact::Failed(format!("its host says more than {} MiB of one message", MAX_TOLD >> 20)),
            false => fact,
        };
        self.report(session, fact);
        true
    }

    /// Passes a question on, unless it was asked before.
    fn ask(self: &Arc<Self>, Ask { id, session, asked }: Ask, responder: Responder) {
        let mut inner = self.inner.lock();
        match inner.asked.get_mut(&id) {
            Some(Pending::Waiting(waiting)) => *waiting = responder,
            Some(Pending::Answered(answer)) => {
                if let Some(answer) = answer.clone() {
                    responder.answer(self.outward(answer));
                }
            }
            None => {
                inner.asked.insert(id, Pending::Waiting(responder));
                drop(inner);
                let mut asking = Asking { registry: Some(Arc::clone(self)), id };
                self.report(session, Fact::Request(asked.request(move |answer| asking.end(Some(answer)))));
            }
        }
    }

    fn answer(&self, id: u64, answer: Option<Value>) {
        let mut inner = self.inner.lock();
        let Some(pending) = inner.asked.get_mut(&id) else { return };
        let waiting = std::mem::replace(pending, Pending::Answered(answer.clone()));
        if let (Pending::Waiting(responder), Some(answer)) = (waiting, answer) {
            responder.answer(self.outward(answer));
        }
        while inner.asked.len() > MAX_ANSWERS {
            let oldest = inner.asked.iter().find(|(_, pending)| matches!(pending, Pending::Answered(_)));
            let Some(oldest) = oldest.map(|(id, _)| *id) else { return };
            inner.asked.remove(&oldest);
        }
    }

    /// Takes a part of a bundle, and with the last one the work. The error is what the host is told.
    fn work(&self, Work { commit, objects, part }: Work) -> Result<(), String> {
        let mut bundle = self.bundle.lock();
        let this = Some((commit.clone(), part));
        if bundle.taken == this {
            return Ok(());
        }
        // What fails is sent again from the first part on.
        bundle.taken = None;
        let file = match bundle.file.take() {
            Some(file) if part > 0 => file,
            None if part > 0 => return Err("a part of a bundle without its first one".to_owned()),
            _ => NamedTempFile::new().map_err(|error| error.to_string())?,
        };
        let data = STANDARD.decode(&objects.data).map_err(|error| format!("it is not in base 64: {error}"))?;
        let bytes = file.as_file().metadata().map_or(u64::MAX, |facts| facts.len()) + data.len() as u64;
        if bytes > MAX_WORK {
            return Err(format!("its bundle is larger than {MAX_WORK} bytes"));
        }
        file.as_file().write_all(&data).map_err(|error| error.to_string())?;
        match objects.is_last {
            false => bundle.file = Some(file),
            true => self.mirror.get().ok_or("nobody takes it")?.take(file.path(), &commit)?,
        }
        bundle.taken = this;
        Ok(())
    }
}

/// Bytes of all texts in a value, and some for each value.
fn text_bytes(value: &Value) -> u64 {
    const EACH: u64 = 16;
    EACH + match value {
        Value::String(text) => text.len() as u64,
        Value::Array(values) => values.iter().map(text_bytes).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() as u64 + text_bytes(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

impl Receiver {
    fn read<T: DeserializeOwned>(&self, params: Value) -> Option<T> {
        let read = serde_json::from_value(self.registry.inward(params));
        read.inspect_err(|error| tracing::warn!("a worker sent what cannot be read: {error}")).ok()
    }
}

impl Incoming for Receiver {
    /// Something else may be mixed in with what the worker says, and that is no harm by the line; but what was a message is
    /// missing then, and the next connection brings it again.
    fn unreadable(&self, connection: &Arc<Connection>, content: &[u8]) {
        let holds = |word: &[u8]| content.windows(word.len()).any(|part| part == word);
        if self.hello.borrow().is_some() && (holds(b"\"method\"") || holds(b"\"id\"")) {
            connection.fail("its launcher mixes something in with a message of its worker");
        }
    }

    fn notified(&self, connection: &Arc<Connection>, name: &str, params: Value) {
        match name {
            method::HELLO if self.hello.borrow().is_some() => {
                self.registry.inner.lock().has_several = true;
                connection.fail(SEVERAL);
            }
            method::HELLO => {
                if let Some(hello) = self.read(params) {
                    self.hello.send_replace(Some(hello));
                }
            }
            method::FACT => {
                let bytes = text_bytes(&params);
                if let Some(fact) = self.read(params)
                    && !self.registry.fact(fact, bytes)
                {
                    connection.fail("a message of its worker is missing");
                }
            }
            other => tracing::debug!("a worker told `{other}`"),
        }
    }

    fn requested(&self, responder: Responder, name: &str, params: Value) {
        match name {
            method::ASK => match self.read(params) {
                Some(ask) => self.registry.ask(ask, responder),
                None => responder.invalid("this question is unknown"),
            },
            // Not translated: no path of the project is in it.
            method::WORK => match serde_json::from_value::<Work>(params) {
                Ok(work) => {
                    let registry = Arc::clone(&self.registry);
                    let take = move || match registry.work(work) {
                        Ok(()) => responder.answer(json!({})),
                        Err(why) => {
                            registry.inner.lock().refused = Some(why.clone());
                            responder.invalid(&why);
                        }
                    };
                    drop(spawn_blocking(take));
                }
                Err(error) => responder.invalid(&error.to_string()),
            },
            other => responder.unknown_method(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::super::frames::Objects;
    use super::*;
    use crate::engine::copilot::testing::opening;
    use crate::engine::dialect::Dialect;
    use crate::model::ToolChoice;

    /// Takes what it is given, but for the first time.
    #[derive(Default)]
    struct Forgetful(Mutex<Vec<String>>);

    impl Mirror for Forgetful {
        fn base(&self) -> Result<String, String> {
            Ok(String::new())
        }

        fn bundle(&self, _: &str, _: &[String], _: &Path) -> Result<(), String> {
            Ok(())
        }

        fn take(&self, file: &Path, commit: &str) -> Result<(), String> {
            let mut taken = self.0.lock();
            taken.push(format!("{commit} {}", fs::read_to_string(file).expect("a file")));
            if taken.len() == 1 { Err("the disk is full".to_owned()) } else { Ok(()) }
        }
    }

    /// Many small facts and few large ones: of what a host tells of one turn, so much is heard, and the next turn begins anew.
    #[tokio::test]
    async fn a_host_that_floods_fails_its_agent() {
        for size in [16_usize << 10, 1 << 20] {
            let registry = Registry::new(Arc::new(Forgetful::default()) as Arc<dyn Mirror>);
            let (session, mut heard) = registry.add(opening("s", ToolChoice::Nothing));
            let receiver = Receiver { registry: Arc::clone(&registry), hello: watch::Sender::new(None) };
            let (one, other) = tokio::io::duplex(64);
            drop(one);
            let (output, input) = tokio::io::split(other);
            let told = Arc::new(Receiver { registry: Arc::clone(&registry), hello: watch::Sender::new(None) });
            let connection = Connection::start(Dialect::Lines, input, output, told);
            let (text, count) = ("x".repeat(size), (150 << 20) / size as u64);
            let mut number = 0;
            for turn in 0..2 {
                registry.begin_turn(session);
                for _ in 0..count {
                    number += 1;
                    let fact = json!({ "number": number, "session": session, "fact": { "message": &text } });
                    receiver.notified(&connection, method::FACT, fact);
                }
                let (mut bytes, mut ends) = (0, 0);
                while let Ok(fact) = heard.try_recv() {
                    match fact {
                        Fact::Message(text) => bytes += text.len() as u64,
                        Fact::Failed(why) => ends += usize::from(why.contains("128 MiB")),
                        other => assert!(matches!(other, Fact::Alive), "{other:?}"),
                    }
                }
                assert!(bytes <= MAX_TOLD && ends == 1, "turn {turn}, each {size}: {bytes}, {ends}");
            }
        }
    }

    /// What comes over a connection × whether it is of use after that, and what was heard: nothing is heard past a gap, and the
    /// next connection brings it.
    #[tokio::test]
    async fn what_is_mixed_in_costs_no_fact() {
        let hello = json!({ "method": method::HELLO, "params":
            { "protocol": 1, "version": "1", "platform": "x", "engines": [], "busy": 0 } })
        .to_string();
        let fact = |number: u64| {
            let fact = NumberedFact { number, session: 1, fact: Fact::Message(number.to_string()), priced: None };
            json!({ "method": method::FACT, "params": fact }).to_string()
        };
        let [one, two, three, nine] = [1, 2, 3, 9].map(fact);
        let (glued, half) = (format!("warning: {two}"), two[..30].to_owned());
        let passing = fact(0);
        for (lines, is_open, heard) in [
            (vec![&*hello, &one, &two, &three], true, "1 2 3"),
            (vec![&hello, &one, "warning: a host key", "", "{}", "7", &two], true, "1 2"),
            (vec!["id: \"id\"", &glued, &hello, &one], true, "1"),
            (vec![&hello, &one, &three, &two], false, "1"),
            (vec![&hello, &one, &glued, &three], false, "1"),
            (vec![&hello, &one, &half, &three], false, "1"),
            (vec![&hello, &one, &one, &passing, &two], true, "1 0 2"),
            // An older worker counts on for another client.
            (vec![&hello, &nine, &three], true, "9"),
            (vec![&hello, &hello, &one], false, ""),
            (vec![&hello, &one, &hello, &two], false, "1"),
        ] {
            let registry = Registry::new(Arc::new(Forgetful::default()) as Arc<dyn Mirror>);
            let (session, mut facts) = registry.add(opening("s", ToolChoice::Nothing));
            registry.begin_turn(session);
            let (mut worker, there) = tokio::io::duplex(1 << 16);
            let (output, input) = tokio::io::split(there);
            let receiver = Receiver { registry: Arc::clone(&registry), hello: watch::Sender::new(None) };
            let connection = Connection::start(Dialect::Lines, input, output, Arc::new(receiver));
            let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
            tokio::io::AsyncWriteExt::write_all(&mut worker, text.as_bytes()).await.expect("it is read");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            let mut told = Vec::new();
            while let Ok(Fact::Message(text)) = facts.try_recv() {
                told.push(text);
            }
            assert_eq!((connection.is_open(), told.join(" ")), (is_open, heard.to_owned()), "{lines:?}");
            // It does not come over the next one either.
            if lines.len() == 4 && lines[2] == three {
                assert!(
                    registry.fact(
                        serde_json::from_value(serde_json::from_str::<Value>(&three).expect("JSON")["params"].take())
                            .expect("a fact"),
                        1
                    )
                );
            }
            let greetings = lines.iter().filter(|line| **line == hello).count();
            assert_eq!(registry.has_several(), greetings > 1, "{lines:?}");
        }
    }

    /// Parts come again after a break, and all of them after a failure: nothing is taken twice, or counts as taken.
    #[test]
    fn work_is_taken_once_and_again_if_it_could_not_be() {
        let mirror = Arc::new(Forgetful::default());
        let registry = Registry::new(Arc::clone(&mirror) as Arc<dyn Mirror>);
        let send = |part: u64, text: &str, is_last: bool| {
            let objects = Objects { data: STANDARD.encode(text), is_last };
            registry.work(Work { commit: "c1".to_owned(), objects, part })
        };
        assert!(send(1, "b", false).is_err(), "its first part is missing");
        for (at, end) in [(0, Err("the disk is full".to_owned())), (1, Ok(()))] {
            assert_eq!(send(0, "a", false), Ok(()));
            assert_eq!(send(0, "a", false), Ok(()));
            assert_eq!(send(1, "b", true), end);
            assert_eq!(mirror.0.lock().len(), at + 1);
        }
        assert_eq!(send(1, "b", true), Ok(()), "its answer was lost");
        assert_eq!(*mirror.0.lock(), ["c1 ab", "c1 ab"]);
        let odd = Work { commit: "c2".to_owned(), objects: Objects { data: "!".to_owned(), is_last: true }, part: 0 };
        assert!(registry.work(odd).unwrap_err().contains("base 64"));
    }
}
