//! Limits the size of a session's context.

use serde::Serialize;

use crate::model::Tier;

/// The approximate number of tokens, at four bytes each: off by −6 … +17 % on real team files. Exact counts would need
/// the vocabulary of every possible model.
pub(crate) fn tokens(text: &str) -> usize {
    text.len().div_ceil(4)
}

/// The fraction for decisions of the space left by the charter; the rest is for history. The shares are fixed, so that
/// a new decision never changes which part of its history an agent sees.
const DECISIONS_SHARE: (usize, usize) = (2, 3);
/// Skills, notes and knowledge get at most these fractions of the space left by the charter; knowledge the largest, for it
/// is only of what the task is about. A team without them has all of it for its records.
const KNOWLEDGE_SHARES: [usize; 3] = [8, 8, 3];
/// Tokens for records whatever else there is, so that a session always has the team's decisions.
const LEAST_FOR_RECORDS: usize = 500;

/// Token limits of a session, in total and for its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Budget {
    pub(crate) total: usize,
    pub(crate) skills: usize,
    pub(crate) notes: usize,
    pub(crate) knowledge: usize,
    pub(crate) decisions: usize,
    pub(crate) history: usize,
}

fn total(tier: Tier) -> usize {
    match tier {
        Tier::Direct | Tier::Lightweight => 1_200,
        Tier::Standard | Tier::Full => 1_800,
    }
}

impl Budget {
    /// Bytes for prose about the project: an eighth of the tokens, at four bytes each.
    pub(super) fn of_project(tier: Tier) -> usize {
        total(tier) / 2
    }

    /// Bytes for the charter: what is left by project and roster of five eighths of the tokens.
    pub(super) fn of_charter(tier: Tier, team: usize) -> usize {
        (total(tier) * 4 * 5 / 8).saturating_sub(team)
    }

    /// `fixed`: size of charter, instructions, project and roster. `wanted`: sizes needed for all skills, notes and
    /// knowledge.
    pub(super) fn new(tier: Tier, fixed: usize, wanted: [usize; 3]) -> Self {
        let total = total(tier);
        if matches!(tier, Tier::Direct | Tier::Lightweight) {
            return Self { total, skills: 0, notes: 0, knowledge: 0, decisions: 0, history: 0 };
        }
        let room = total.saturating_sub(fixed).max(LEAST_FOR_RECORDS);
        let [of_skills, of_notes, of_knowledge] = KNOWLEDGE_SHARES.map(|share| room / share);
        let [skills, notes, knowledge] = wanted;
        let (skills, notes, knowledge) = (skills.min(of_skills), notes.min(of_notes), knowledge.min(of_knowledge));
        let room = room - skills - notes - knowledge;
        let decisions = room * DECISIONS_SHARE.0 / DECISIONS_SHARE.1;
        Self { total, skills, notes, knowledge, decisions, history: room - decisions }
    }
}
