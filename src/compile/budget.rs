//! How much a session may be told.

use serde::Serialize;

use crate::model::Tier;

/// How many tokens a text is, about: a token is taken for four bytes, which errs by −6 … +17 % on real team files.
/// Exact counts would need the vocabulary of every model that may be chosen.
pub(crate) fn tokens(text: &str) -> usize {
    text.len().div_ceil(4)
}

/// Decisions may take this much of what the charter leaves, history the rest. The two shares are apart, so that a new
/// decision never changes which part of an agent's history it sees.
const DECISIONS_SHARE: (usize, usize) = (2, 3);
/// What all of the team may know, its skills and its notes, each take at most this part of what the charter leaves. A
/// team without them has all of it for its records.
const KNOWLEDGE_SHARE: usize = 8;
/// A long charter never leaves a session without the team's decisions.
const LEAST_FOR_RECORDS: usize = 1_500;

/// Tokens of prompt and context together, and of that what the records may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Budget {
    pub(crate) total: usize,
    pub(crate) skills: usize,
    pub(crate) notes: usize,
    pub(crate) decisions: usize,
    pub(crate) history: usize,
}

fn total(tier: Tier) -> usize {
    match tier {
        Tier::Direct | Tier::Lightweight => 4_000,
        Tier::Standard => 8_000,
        Tier::Full => 12_000,
    }
}

impl Budget {
    /// Bytes that what the team says of its project may take: a quarter of the tokens, at four bytes to one.
    pub(super) fn of_project(tier: Tier) -> usize {
        total(tier)
    }

    /// `fixed` is what is always told: charter, way of working, project, roster. `skills` and `notes` are what all of them would
    /// take.
    pub(super) fn new(tier: Tier, fixed: usize, skills: usize, notes: usize) -> Self {
        let total = total(tier);
        if matches!(tier, Tier::Direct | Tier::Lightweight) {
            return Self { total, skills: 0, notes: 0, decisions: 0, history: 0 };
        }
        let room = total.saturating_sub(fixed).max(LEAST_FOR_RECORDS);
        let [skills, notes] = [skills, notes].map(|wanted| wanted.min(room / KNOWLEDGE_SHARE));
        let room = room - skills - notes;
        let decisions = room * DECISIONS_SHARE.0 / DECISIONS_SHARE.1;
        Self { total, skills, notes, decisions, history: room - decisions }
    }
}
