//! What an agent's standing session knows, kept beside what its engine stores of it.
//!
//! ```text
//! .git/squad/sessions/KEY-SESSION.json    what the session was told, and in which runs
//! .git/squad/sessions/KEY-SESSION.lock    held by the process that has the session
//! ```
//!
//! Without it the agent gets a fresh session. `KEY` stands for the team and the work tree.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::session_id::standing_session_id;
use crate::env::files::{read_regular, replace};
use crate::env::lock;
use crate::model::{ContextItem, DecisionId, RunId, Slug, first_line, from_json, to_json};

/// A session remembers the last of its runs, and of the context it was told.
const MOST_SERVED: usize = 20;
const MOST_TOLD: usize = 2_000;
const LARGEST: u64 = 4 << 20;
/// Characters of a title that is told when its decision has ended.
const TITLE: usize = 160;
/// Characters of a task that tell it from others.
const TASK: usize = 400;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SessionMemory {
    /// The engine that stores the session.
    engine: String,
    /// The hash of what it was made of: charter, model, tools, policy.
    compiled: String,
    /// The runs and conversations that it worked in, the last one last; none if it was never used.
    served: Vec<RunId>,
    /// Hashes of the context that it was told.
    told: Vec<String>,
    /// The decisions in that, with their titles and hashes.
    decisions: BTreeMap<DecisionId, (String, String)>,
    /// The hash of the last situation that it was told.
    situation: String,
    /// Hashes of the turns of conversations that it knows.
    turns: Vec<String>,
    /// The beginning of the last task that it did.
    task: String,
    /// It took the place of one that could not be resumed, and was not used yet.
    is_replacement: bool,
}

/// Context that a session has not been told.
#[derive(Debug, Default, PartialEq)]
pub(super) struct News {
    pub(super) text: String,
    /// The decisions in it, unless all of it is new.
    pub(super) decisions: Vec<DecisionId>,
}

impl SessionMemory {
    /// Whether the session has a history.
    pub(super) fn is_used(&self) -> bool {
        !self.served.is_empty()
    }

    pub(super) fn has_served(&self, id: &RunId) -> bool {
        self.served.contains(id)
    }

    /// The session is a new one, in the place of this one.
    pub(super) fn replace(&mut self) {
        let is_replacement = self.is_used() || self.is_replacement;
        *self = Self { engine: std::mem::take(&mut self.engine), is_replacement, ..Self::default() };
    }

    pub(super) fn take_replacement(&mut self) -> bool {
        std::mem::take(&mut self.is_replacement)
    }

    /// Notes what it is made of now. Returns whether it worked as something else before.
    pub(super) fn compile(&mut self, hash: &str) -> bool {
        let before = std::mem::replace(&mut self.compiled, hash.to_owned());
        !before.is_empty() && before != hash
    }

    /// Notes the task that it does now.
    pub(super) fn begin(&mut self, task: &str) {
        self.task = task.chars().take(TASK).collect();
    }

    /// The beginning of the last task that it did, which its engine has stored if it has all of the session.
    pub(super) fn last_task(&self) -> Option<&str> {
        (!self.task.is_empty()).then_some(&self.task)
    }

    /// Begins work in a run or conversation. Returns whether it worked in another one before.
    pub(super) fn serve(&mut self, id: &RunId) -> bool {
        let is_new = self.served.last().is_some_and(|last| last != id);
        self.served.retain(|served| served != id);
        self.served.push(id.clone());
        self.served.drain(..self.served.len().saturating_sub(MOST_SERVED));
        is_new
    }

    /// The part of a context that it has not been told, all of it the first time; and the decisions it was told that are no
    /// longer in force.
    pub(super) fn news(
        &mut self,
        whole: &str,
        items: &[ContextItem],
        is_in_force: impl Fn(&DecisionId) -> bool,
    ) -> News {
        let is_first = self.told.is_empty();
        let mut news = News::default();
        let mut heading = "";
        for item in items {
            let hash = hash(&item.text);
            if self.told.contains(&hash) {
                continue;
            }
            self.told.push(hash.clone());
            if item.heading != heading {
                heading = item.heading;
                news.text.push_str(heading);
            }
            news.text.push_str(&item.text);
            if let Some((id, title)) = &item.decision {
                self.decisions.insert(id.clone(), (first_line(title, TITLE), hash));
                news.decisions.push(id.clone());
            }
        }
        self.told.drain(..self.told.len().saturating_sub(MOST_TOLD));
        if is_first {
            news = News { text: whole.to_owned(), decisions: Vec::new() };
        }
        let (kept, ended) = std::mem::take(&mut self.decisions).into_iter().partition(|(id, _)| is_in_force(id));
        self.decisions = kept;
        for (id, (title, hash)) in ended {
            // It may come back into force.
            self.told.retain(|told| *told != hash);
            news.text.push_str(&format!("\nNo longer in force: decision `{id}`, {title}\n"));
        }
        news
    }

    /// What it was told in its first messages may be gone: a summary by a model keeps what that finds worth it.
    pub(super) fn forget_context(&mut self) {
        self.told.clear();
        self.situation.clear();
    }

    /// A situation, unless it is the one that it was told last.
    pub(super) fn situation(&mut self, text: String) -> String {
        let hash = hash(&text);
        if std::mem::replace(&mut self.situation, hash.clone()) == hash { String::new() } else { text }
    }

    /// The turns of a conversation that it does not know. It will know these, and the present one if it is `own`, which is
    /// the next one if it gets an answer.
    pub(super) fn turns(
        &mut self,
        conversation: &RunId,
        turns: &[(String, String)],
        own: Option<&str>,
    ) -> Vec<(String, String)> {
        let name = |at: usize, message: &str| hash(&format!("{conversation}\n{at}\n{message}"));
        let mut new = Vec::new();
        for (at, turn) in turns.iter().enumerate() {
            let name = name(at, &turn.0);
            if !self.turns.contains(&name) {
                self.turns.push(name);
                new.push(turn.clone());
            }
        }
        self.turns.extend(own.map(|message| name(turns.len(), message)));
        self.turns.drain(..self.turns.len().saturating_sub(MOST_TOLD));
        new
    }
}

fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
}

/// The memories of a team's standing sessions in a work tree.
#[derive(Clone, Debug)]
pub(crate) struct SessionStore {
    folder: PathBuf,
    key: String,
}

/// A memory that no other process has.
pub(super) struct HeldMemory {
    pub(super) memory: SessionMemory,
    /// Why it knows nothing, although the session was there.
    pub(super) lost: Option<String>,
    path: PathBuf,
    lock: File,
}

impl SessionStore {
    pub(crate) fn new(folder: PathBuf, key: String) -> Self {
        Self { folder, key }
    }

    /// `None`: another process has the session, or the folder cannot be written.
    pub(super) fn take(&self, agent: &Slug, engine: &str) -> Option<HeldMemory> {
        let path = self.folder.join(format!("{}-{}.json", self.key, standing_session_id(agent)));
        let lock = lock::open(&path.with_extension("lock"));
        let lock = lock.inspect_err(|error| tracing::debug!("no standing session for {agent}: {error}")).ok()?;
        if !lock::try_take(&lock).ok()? {
            return None;
        }
        let known = read_regular(&path, LARGEST).and_then(|bytes| from_json::<SessionMemory>(bytes).ok());
        let lost = match &known {
            Some(memory) if memory.engine == engine || !memory.is_used() => None,
            Some(memory) => Some(format!("its history is with the engine {}", memory.engine)),
            None => path.exists().then(|| "what it was told cannot be read".to_owned()),
        };
        // One that cannot be read, or that another engine has, is replaced.
        let anew =
            || SessionMemory { engine: engine.to_owned(), is_replacement: path.exists(), ..SessionMemory::default() };
        let memory = known.filter(|memory| memory.engine == engine).unwrap_or_else(anew);
        Some(HeldMemory { memory, lost, path, lock })
    }

    /// The names of the sessions that were used, and when the last of them was.
    pub(crate) fn used(&self) -> (Vec<String>, Option<SystemTime>) {
        let prefix = format!("{}-{}", self.key, "squad-");
        let (mut names, mut last) = (Vec::new(), None);
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let Some(agent) = name.strip_prefix(&prefix).and_then(|name| name.strip_suffix(".json")) else { continue };
            let memory = read_regular(&entry.path(), LARGEST);
            let memory = memory.and_then(|bytes| from_json::<SessionMemory>(bytes).ok());
            if memory.is_some_and(|memory| memory.is_used()) {
                names.push(agent.to_owned());
                last = last.max(entry.metadata().and_then(|about| about.modified()).ok());
            }
        }
        names.sort_unstable();
        (names, last)
    }
}

impl HeldMemory {
    /// A failure costs the session, and nothing else.
    pub(super) fn write(&self) {
        let written = to_json(&self.memory).map_err(Into::into).and_then(|text| replace(&self.path, text.as_bytes()));
        if let Err(error) = written {
            tracing::debug!("{} cannot be written: {error}", self.path.display());
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Drop for HeldMemory {
    fn drop(&mut self) {
        // Closing it is not enough: a child that another thread has just forked has the file open, too.
        let _ = self.lock.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(text: &str, decision: Option<&str>) -> ContextItem {
        let decision = decision.map(|id| (DecisionId::new(id), format!("About {id}")));
        ContextItem { decision, ..ContextItem::new("\n## Things\n", text.to_owned()) }
    }

    #[test]
    fn what_was_told_is_not_told_again_and_what_ended_is_said() {
        let mut memory = SessionMemory::default();
        let (a, b, c) = (item("A\n", Some("a")), item("B\n", Some("b")), item("C\n", None));
        let all = |_: &DecisionId| true;
        let first = memory.news("whole", &[a.clone(), c.clone()], all);
        assert_eq!(first, News { text: "whole".to_owned(), decisions: Vec::new() });
        assert_eq!(memory.news("whole", &[c.clone(), a.clone()], all), News::default());
        let later = memory.news("whole", &[a.clone(), b.clone(), c.clone()], all);
        assert_eq!(later, News { text: "\n## Things\nB\n".to_owned(), decisions: vec![DecisionId::new("b")] });
        let ended = memory.news("whole", std::slice::from_ref(&b), |id| id.as_str() != "a");
        assert_eq!(ended.text, "\nNo longer in force: decision `a`, About a\n");
        assert_eq!(memory.news("whole", &[b], |id| id.as_str() != "a"), News::default(), "once");
        assert_eq!(
            memory.news("whole", std::slice::from_ref(&a), all).decisions,
            [DecisionId::new("a")],
            "it came back"
        );
        // A shortened one may have lost it, or have kept what is in force no longer.
        memory.forget_context();
        let again = memory.news("whole", std::slice::from_ref(&c), |id| id.as_str() != "a");
        assert_eq!(again.text, "whole\nNo longer in force: decision `a`, About a\n");
        assert_eq!(memory.news("whole", std::slice::from_ref(&c), all), News::default());
        // A session in its place knows nothing.
        memory.serve(&RunId::new("r1"));
        memory.replace();
        assert!(!memory.is_used() && memory.take_replacement() && !memory.take_replacement());
        assert_eq!(memory.news("whole", &[a, c], all).text, "whole");
    }

    #[test]
    fn a_session_gets_the_turns_it_was_not_in() {
        let mut memory = SessionMemory::default();
        let (one, other) = (RunId::new("c1"), RunId::new("c2"));
        let turns = |count: usize| (0..count).map(|at| (format!("m{at}"), "a".to_owned())).collect::<Vec<_>>();
        let mut told = |conversation, count, own: Option<&str>| {
            let new = memory.turns(conversation, &turns(count), own).into_iter().map(|(message, _)| message);
            new.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(told(&one, 0, Some("m0")), "");
        assert_eq!(told(&one, 1, Some("m1")), "", "its own");
        assert_eq!(told(&one, 4, Some("boom")), "m2 m3");
        assert_eq!(told(&one, 5, None), "m4", "its own turn failed, and this one was another's");
        assert_eq!(told(&one, 6, Some("m6")), "m5", "it was not alone in it");
        assert_eq!(told(&other, 1, None), "m0");
        assert_eq!(told(&one, 7, None), "");
        assert_eq!(
            (memory.situation("x".to_owned()), memory.situation("x".to_owned())),
            ("x".to_owned(), String::new())
        );
    }

    #[test]
    fn one_process_has_a_session_and_another_engine_none_of_its_history() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SessionStore::new(folder.path().join("sessions"), "key".to_owned());
        let ada = Slug::fold("ada").expect("a slug");
        let mut held = store.take(&ada, "copilot").expect("it is free");
        assert!(store.take(&ada, "copilot").is_none());
        held.memory.serve(&RunId::new("r1"));
        held.write();
        drop(held);
        assert_eq!(store.used().0, ["ada"]);
        assert!(store.take(&ada, "copilot").expect("it is free").memory.has_served(&RunId::new("r1")));
        assert!(!store.take(&ada, "claude").expect("it is free").memory.is_used());
        fs::write(folder.path().join("sessions/key-squad-ada.json"), "{").expect("a file");
        assert!(!store.take(&ada, "copilot").expect("it is free").memory.is_used(), "a torn file");
        let nowhere = SessionStore::new(folder.path().join("sessions/key-squad-ada.json"), "key".to_owned());
        assert!(nowhere.take(&ada, "copilot").is_none());
    }
}
