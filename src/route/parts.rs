//! Work of several agents in one message: "add the endpoint with tests, and document it".

use super::Draft;
use super::index::Index;
use super::score::Ranking;
use super::steps::Assignment;
use super::support::{Unit, asked};
use crate::model::List;

/// A segment of the work is somebody's with this chance and this much evidence.
const CHANCE: f64 = 0.5;
const EVIDENCE: f64 = 0.8;
const OF_A_PART: usize = 3;

/// What people ask for beside the work, in the order in which it is done.
const BESIDE: [&str; 3] = ["testing", "documentation", "review"];

/// How the parts of a message divide the work.
pub(super) enum Parts {
    /// One agent's.
    One,
    Several(Draft),
    /// Several agents', but not clearly whose.
    Unclear,
}

pub(super) fn read<'u>(index: &'u Index<'u>, text: &'u str, whole: &Ranking<'u>) -> Parts {
    let areas = BESIDE.map(|name| index.areas.area(name));
    // By kind of work, the units and the areas that they ask for: the work itself, then what is beside it.
    let mut parts: [(Vec<&Unit<'_>>, Vec<usize>); 1 + BESIDE.len()] = Default::default();
    let (mut owner, mut kind, segments) = (None, 0, segments(&areas, &whole.units));
    if segments.len() < 2 {
        return Parts::One;
    }
    for (segment, is_finite) in segments {
        let asked = asked(segment.iter().copied());
        let own = kind_of(&areas, &segment, &asked);
        // `The page is fine now. Document it`: what only says how things stand is no part.
        if own.is_none() && is_finite {
            continue;
        }
        kind = own.unwrap_or(kind);
        parts[kind].0.extend(&segment);
        parts[kind].1.extend(&asked);
        if kind == 0 {
            let ranking = Ranking::of(index, text, segment, &asked);
            let is_clear = |best: &usize| ranking.evidence[*best] >= EVIDENCE && ranking.chance(*best) >= CHANCE;
            if let Some(best) = ranking.best.filter(is_clear)
                && *owner.get_or_insert(best) != best
            {
                return Parts::Unclear;
            }
        }
    }
    let parts = parts.into_iter().enumerate().filter(|(_, (units, _))| !units.is_empty());
    let ranked = parts.map(|(kind, (units, asked))| {
        Ranking::of(index, text, units, &kind.checked_sub(1).map_or(asked, |at| vec![areas[at]]))
    });
    let ranked: Vec<Ranking<'_>> = ranked.collect();
    if ranked.windows(2).all(|pair| pair[0].best == pair[1].best) {
        return Parts::One;
    }
    let mut draft = Draft { confidence: 1.0, ..Draft::default() };
    for (ranking, agent) in ranked.iter().filter_map(|ranking| Some((ranking, ranking.best?))) {
        let slug = &index.agents[agent].slug;
        draft.confidence *= ranking.confidence();
        let start = ranking.units.first().map_or(0, |unit| unit.range.start);
        draft.places.push(Assignment { agent: slug.clone(), start, is_part: true });
        if !draft.agents.contains(slug) {
            draft.reviewer = draft.reviewer.take().or_else(|| ranking.reviewer(agent));
            draft.evidence.extend(ranking.reasons(agent, OF_A_PART));
            draft.agents.push(slug.clone());
        }
    }
    Parts::Several(draft)
}

/// The user's words, cut at punctuation and conjunctions, and at `with tests`; and whether their clause says how things
/// stand.
fn segments<'u>(areas: &[usize], units: &[&'u Unit<'u>]) -> Vec<(Vec<&'u Unit<'u>>, bool)> {
    let mut segments: Vec<(Vec<&Unit<'_>>, bool)> = Vec::new();
    for clause in units.chunk_by(|a, b| a.token.clause == b.token.clause) {
        let is_finite = clause.iter().any(|unit| unit.token.any(&[List::Finite]));
        let mut segment = Vec::new();
        for (at, unit) in clause.iter().enumerate().filter(|(_, unit)| !unit.token.is_denied) {
            let is_beside = || clause[at + 1..].iter().take(3).any(|unit| beside(areas, unit).is_some());
            let joins = match &*unit.token.text {
                "and" | "then" | "plus" | "including" => true,
                // `with tests`, but not `with care`
                "with" => is_beside(),
                _ => false,
            };
            if joins {
                segments.push((std::mem::take(&mut segment), is_finite));
            } else {
                segment.push(*unit);
            }
        }
        segments.push((segment, is_finite));
    }
    segments.retain(|(segment, _)| !segment.is_empty());
    segments
}

/// The kind beside the work that a word is about, from 1.
fn beside(areas: &[usize], unit: &Unit<'_>) -> Option<usize> {
    areas.iter().position(|area| unit.kind == Some(*area)).map(|at| at + 1)
}

/// What a segment asks for: 0 the work itself, from 1 a kind beside it. `None`: it goes on with what is before it.
fn kind_of(areas: &[usize], segment: &[&Unit<'_>], asked: &[usize]) -> Option<usize> {
    let verb = areas.iter().position(|area| asked.contains(area)).map(|at| at + 1);
    verb.or_else(|| segment.iter().take(6).find_map(|unit| beside(areas, unit))).or_else(|| {
        let tells = segment.iter().skip(1).any(|unit| unit.telling > 0);
        (!asked.is_empty() && tells).then_some(0)
    })
}
