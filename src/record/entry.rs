//! The format of a ledger entry. It is versioned, and every version stays readable for ever, so `fixtures/entries` pins
//! the bytes.
//!
//! An entry is a Markdown file with front matter. Each front matter line is a key and a JSON value (JSON is valid
//! YAML); the entry's text, if any, follows unchanged:
//!
//! ```text
//! ---
//! squad: 1
//! id: "01987f2e-6c00-7000-8000-000000000001"
//! at: "2026-01-05T09:00:00Z"
//! kind: "memory.logged"
//! run: "20260105-090000-000001"
//! seq: 7
//! agent: "tester"
//! step: 1
//! attempt: 1
//! actor: "agent"
//! causes: []
//! redactions: []
//! payload: {}
//! ---
//! The suite needs TZ=UTC.
//! ```

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::text;
use crate::model::{Actor, EntryId, Event, EventKind, Position, RunId, Slug};
use crate::policy::{Redaction, Redactor};

/// The version this squad writes. It reads this version and all earlier ones, and shows entries of later ones as
/// unknown. So raise it for a change that an earlier squad would misread, not for a new kind or field, which it
/// ignores.
pub(crate) const VERSION: u64 = 1;

/// One recorded event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) squad: u64,
    pub(crate) id: EntryId,
    pub(crate) at: Timestamp,
    /// An event's type, such as `agent.completed`.
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) run: Option<RunId>,
    /// The event's number within its run.
    #[serde(default)]
    pub(crate) seq: Option<u64>,
    #[serde(default)]
    pub(crate) agent: Option<Slug>,
    #[serde(flatten)]
    pub(crate) position: Position,
    pub(crate) actor: Actor,
    /// Entries this one follows from.
    #[serde(default)]
    pub(crate) causes: Vec<EntryId>,
    #[serde(default)]
    pub(crate) redactions: Vec<Redaction>,
    /// The event's own fields, without its text.
    #[serde(default)]
    pub(crate) payload: Map<String, Value>,
    #[serde(skip)]
    pub(crate) text: String,
}

/// The result of parsing a ledger file. Nothing is dropped: files that cannot be understood are shown as such.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Read {
    Entry(Box<Entry>),
    /// Written by a later squad.
    Newer {
        version: u64,
    },
    /// Not a valid entry, and why.
    Damaged {
        reason: String,
    },
}

impl Entry {
    /// Redacts secrets in every field of every kind. This is the only way to create an entry from an event.
    pub(crate) fn new(id: EntryId, at: Timestamp, actor: Actor, kind: &EventKind, redactor: &Redactor) -> Self {
        // Every kind of event serializes to a map with a `type`; `record::tests` checks each of them.
        let mut payload = kind.to_map().unwrap_or_default();
        let mut take = |key: &str| match payload.shift_remove(key) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        let (kind, text) = (take("type"), take("text"));
        let mut entry = Self {
            squad: VERSION,
            id,
            at,
            kind,
            run: None,
            seq: None,
            agent: None,
            position: Position::default(),
            actor,
            causes: Vec::new(),
            redactions: Vec::new(),
            payload,
            text,
        };
        entry.redact(redactor);
        entry
    }

    /// Redacts every field.
    pub(super) fn redact(&mut self, redactor: &Redactor) {
        self.text = redactor.text(&self.text, &mut self.redactions);
        let mut payload = Value::Object(std::mem::take(&mut self.payload));
        redactor.value(&mut payload, &mut self.redactions);
        if let Value::Object(payload) = payload {
            self.payload = payload;
        }
        self.shorten();
    }

    /// A tool's input and result can have any length. Cut them after redaction, since half a secret would not be
    /// recognized.
    fn shorten(&mut self) {
        for (key, cut) in [("detail", text::head_and_tail as fn(&str) -> String), ("result", text::tail)] {
            if let Some(Value::String(text)) = self.payload.get_mut(key) {
                *text = cut(text);
            }
        }
    }

    /// The recorded event; `None` for an unknown kind or a malformed entry.
    pub(crate) fn known_kind(&self) -> Option<EventKind> {
        self.understood().ok().flatten()
    }

    /// The recorded event with its place in its run; `None` also for one of no run.
    pub(crate) fn event(&self) -> Option<Event> {
        let Self { id, run, agent, causes, .. } = self;
        let (id, run, agent, causes) = (id.clone(), run.clone()?, agent.clone(), causes.clone());
        let (at, position, kind) = (self.at, self.position, self.known_kind()?);
        Some(Event { seq: self.seq?, at, run, agent, kind, id, position, causes })
    }

    /// The recorded event; `None` for an unknown kind. Fails if the kind is known but the entry is malformed.
    pub(crate) fn understood(&self) -> Result<Option<EventKind>, String> {
        self.kind_with(self.payload.clone())
    }

    /// The same, where nobody needs the payload any more. That of a run that changed very many files is large.
    pub(crate) fn take_understood(&mut self) -> Result<Option<EventKind>, String> {
        let payload = std::mem::take(&mut self.payload);
        self.kind_with(payload)
    }

    fn kind_with(&self, mut map: Map<String, Value>) -> Result<Option<EventKind>, String> {
        map.insert("type".to_owned(), Value::String(self.kind.clone()));
        map.insert("text".to_owned(), Value::String(self.text.clone()));
        match EventKind::of_map(map) {
            Ok(kind) => Ok(Some(kind)),
            // serde's wording; `record::tests` would notice a change.
            Err(error) if error.to_string().starts_with(&format!("unknown variant `{}`", self.kind)) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    pub(crate) fn render(&self) -> Vec<u8> {
        let mut file = String::from("---\n");
        let Self { id, kind, run, agent, causes, redactions, .. } = self;
        let (id, kind, run, agent) = (id.clone(), kind.clone(), run.clone(), agent.clone());
        let (causes, redactions) = (causes.clone(), redactions.clone());
        let (squad, at, seq, position, actor) = (self.squad, self.at, self.seq, self.position, self.actor);
        let (payload, text) = (Map::new(), String::new());
        let facts = Self { squad, id, at, kind, run, seq, agent, position, actor, causes, redactions, payload, text };
        if let Ok(Value::Object(map)) = serde_json::to_value(facts) {
            for (key, value) in map {
                match key.as_str() {
                    // It is large where very many files were changed.
                    "payload" => {
                        let payload = serde_json::to_string(&self.payload).unwrap_or_default();
                        file.extend(["payload: ", &payload, "\n"]);
                    }
                    _ => file.push_str(&format!("{key}: {value}\n")),
                }
            }
        }
        file.push_str("---\n");
        if !self.text.is_empty() {
            file.push_str(&self.text);
            file.push('\n');
        }
        file.into_bytes()
    }

    pub(crate) fn parse(bytes: &[u8]) -> Read {
        let damaged = |reason: &str| Read::Damaged { reason: reason.to_owned() };
        let Ok(file) = std::str::from_utf8(bytes) else { return damaged("not UTF-8") };
        let Some(rest) = file.strip_prefix("---\n") else { return damaged("no front matter") };
        let Some((matter, text)) = rest.split_once("\n---\n") else {
            return damaged("front matter without a closing line");
        };
        let mut map = Map::new();
        for line in matter.lines() {
            let Some((key, value)) = line.split_once(": ") else {
                return damaged("a line that is not a key and a value");
            };
            let Ok(value) = serde_json::from_str(value) else { return damaged("a value that is not JSON") };
            map.insert(key.to_owned(), value);
        }
        match map.get("squad").and_then(Value::as_u64) {
            None => return damaged("no version"),
            Some(version) if version > VERSION => return Read::Newer { version },
            Some(_) => {}
        }
        match serde_json::from_value::<Self>(Value::Object(map)) {
            Ok(mut entry) => {
                entry.text = text.strip_suffix('\n').unwrap_or(text).to_owned();
                Read::Entry(Box::new(entry))
            }
            Err(error) => damaged(&error.to_string()),
        }
    }

    /// The entry's path in the ledger's tree.
    pub(crate) fn path(&self, team: &str) -> String {
        entry_path(team, &self.id, self.at, &self.kind)
    }

    /// Whether `path` is the entry's path in the current or the old layout.
    pub(crate) fn has_path(&self, path: &str, team: &str) -> bool {
        [MINUTES, DAYS].iter().any(|folders| path_in(folders, team, &self.id, self.at, &self.kind) == path)
    }
}

/// The folders of entries, as a `strftime` format.
const MINUTES: &str = "%Y/%m/%d/%H/%M";
/// The old layout.
const DAYS: &str = "%Y/%m/%d";

/// `log/yyyy/mm/dd/hh/mm/<id>-<kind>.md`, with decisions, learnings and scrubs under `decisions/`, `memory/` and
/// `scrubs/`. An append rewrites the folders above the file; one folder per minute keeps that cheap however large the
/// ledger and however busy the day. The kind in the name lets readers open only the entries they need.
///
/// A team that is not at the repository's root has its own folder: `teams/<place>/log/…`.
pub(crate) fn entry_path(team: &str, id: &EntryId, at: Timestamp, kind: &str) -> String {
    path_in(MINUTES, team, id, at, kind)
}

fn path_in(folders: &str, team: &str, id: &EntryId, at: Timestamp, kind: &str) -> String {
    let area = match kind.split('.').next() {
        Some("decision") => "decisions",
        Some("memory") => "memory",
        Some("scrub") => "scrubs",
        _ => "log",
    };
    let folder = at.strftime(folders);
    format!("{team}{area}/{folder}/{id}-{kind}.md")
}
