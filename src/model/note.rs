//! What makes a decision a note of knowledge, which holds beyond its project.

use std::cell::Cell;
use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use super::{DecisionId, RunId};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum NoteKind {
    /// What works well.
    #[default]
    Practice,
    /// What goes wrong.
    Pitfall,
    /// How things are named or done.
    Convention,
}

impl NoteKind {
    pub(crate) const ALL: [Self; 3] = [Self::Practice, Self::Pitfall, Self::Convention];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Practice => "practice",
            Self::Pitfall => "pitfall",
            Self::Convention => "convention",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word().eq_ignore_ascii_case(word.trim()))
    }
}

/// Paths it applies to and tags are the decision's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Note {
    pub(crate) kind: NoteKind,
    /// It applies to projects with one of these; empty: to any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) languages: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) frameworks: Vec<String>,
    /// The name of the project where it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) project: Option<String>,
    /// The decision or the agent's proposal that it was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<DecisionId>,
    /// As [`NoteEvidence`] is written; empty: it is an opinion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) evidence: Vec<String>,
}

/// Where a note of another project comes from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct NoteLink {
    /// The link's name in the configuration.
    pub(crate) name: String,
    /// The repository's address, without a password.
    pub(crate) git: String,
    /// The commit that was fetched.
    pub(crate) commit: String,
    /// The note's file there.
    pub(crate) path: String,
}

impl NoteLink {
    pub(crate) fn short_commit(&self) -> &str {
        self.commit.get(..12).unwrap_or(&self.commit)
    }
}

/// What a note rests on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NoteEvidence {
    /// `src/auth.rs@3b18e512…`: a file, and its blob at that time; `src/auth.rs:10-20@9c55ad…`: lines of it, counted from 1,
    /// and the hash of their text, [`hash_of_lines`].
    File { path: String, lines: Option<(usize, usize)>, hash: String },
    /// `commit:3b18e512…`
    Commit(String),
    /// `decision:4f1c09`
    Decision(DecisionId),
    /// `run:20260105-090000-000001`
    Run(RunId),
}

impl NoteEvidence {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_id = |id: &str| (4..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        if let Some(commit) = text.strip_prefix("commit:") {
            return is_id(commit).then(|| Self::Commit(commit.to_owned()));
        }
        if let Some(id) = text.strip_prefix("decision:") {
            return DecisionId::parse(id).map(Self::Decision);
        }
        if let Some(run) = text.strip_prefix("run:") {
            return RunId::parse(run).map(Self::Run);
        }
        let (place, hash) = text.rsplit_once('@').filter(|(_, hash)| is_id(hash))?;
        let (path, lines) = place_of(place);
        (!path.is_empty()).then(|| Self::File { path, lines, hash: hash.to_owned() })
    }

    /// Without the hash: `src/auth.rs:10-20`.
    pub(crate) fn place(&self) -> String {
        match self {
            Self::File { path, lines: None, .. } => path.clone(),
            Self::File { path, lines: Some((first, last)), .. } if first == last => format!("{path}:{first}"),
            Self::File { path, lines: Some((first, last)), .. } => format!("{path}:{first}-{last}"),
            other => other.to_string(),
        }
    }
}

impl Display for NoteEvidence {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { hash, .. } => write!(f, "{}@{hash}", self.place()),
            Self::Commit(commit) => write!(f, "commit:{commit}"),
            Self::Decision(id) => write!(f, "decision:{id}"),
            Self::Run(run) => write!(f, "run:{run}"),
        }
    }
}

/// Evidence of more lines than these is not searched for.
pub(crate) const MAX_EVIDENCE_LINES: usize = 200;

/// The BLAKE3 hash of lines of a text, without their line ends, in 40 hexadecimal digits.
pub(crate) fn hash_of_lines(lines: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for line in lines {
        hasher.update(line.strip_suffix('\r').unwrap_or(line).as_bytes());
        hasher.update(b"\n");
    }
    hasher.finalize().to_hex()[..40].to_owned()
}

/// Whether a text still has lines with this hash, wherever. Takes the bytes that it hashes from `budget`; `None`: they are
/// used up.
pub(crate) fn has_lines(text: &str, (first, last): (usize, usize), hash: &str, budget: &Cell<u64>) -> Option<bool> {
    let count = last - first + 1;
    if count > MAX_EVIDENCE_LINES {
        return Some(false);
    }
    budget.set(budget.get().checked_sub(text.len() as u64)?);
    let lines: Vec<&str> = text.lines().collect();
    // Where they were, to begin with.
    let places = std::iter::once(first - 1).chain(0..(lines.len() + 1).saturating_sub(count));
    for part in places.filter_map(|at| lines.get(at..at + count)) {
        let bytes = part.iter().map(|line| line.len() as u64 + 1).sum();
        budget.set(budget.get().checked_sub(bytes)?);
        if hash_of_lines(part) == hash {
            return Some(true);
        }
    }
    Some(false)
}

/// A path, and its lines if it ends in `:10` or `:10-20`.
pub(crate) fn place_of(text: &str) -> (String, Option<(usize, usize)>) {
    let lines = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let lines = (first.parse().ok()?, last.parse().ok()?);
        (0 < lines.0 && lines.0 <= lines.1).then_some(lines)
    };
    match text.rsplit_once(':').and_then(|(path, range)| Some((path, lines(range)?))) {
        Some((path, lines)) => (path.to_owned(), Some(lines)),
        None => (text.to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_read_as_it_is_written() {
        for text in [
            "src/auth.rs:10-20@3b18e512dba79e4c8300dd08aeb37f8e728b8dad",
            "src/a b@c:d.rs@3b18",
            "src/auth.rs:7@3b18",
            "commit:3b18e512",
            "decision:4f1c09",
            "run:20260105-090000-000001",
        ] {
            let evidence = NoteEvidence::parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(evidence.to_string(), text);
        }
        for text in ["", "src/auth.rs", "@3b18", "commit:HEAD", "src/auth.rs@main", "decision:../x", "https://x/@y"] {
            assert_eq!(NoteEvidence::parse(text), None, "{text}");
        }
        let text = "a\r\nb\nc\nd\n";
        let budget = Cell::new(100);
        let has = |lines, hash: &str| has_lines(text, lines, hash, &budget);
        let bc = hash_of_lines(&["b", "c\r"]);
        // Moved, of another length, gone, and beyond the file or what is searched.
        assert_eq!(
            (has((7, 8), &bc), has((2, 2), &bc), has((2, 3), &hash_of_lines(&["x"]))),
            (Some(true), Some(false), Some(false))
        );
        assert_eq!((has((1, usize::MAX), &bc), has((1, 201), &bc)), (Some(false), Some(false)));
        budget.set(text.len() as u64 + 7);
        assert_eq!((has((1, 2), &bc), budget.get()), (None, 3));
        assert_eq!(place_of("a.rs:7"), ("a.rs".to_owned(), Some((7, 7))));
        assert_eq!(place_of("a.rs:9-7"), ("a.rs:9-7".to_owned(), None));
    }
}
