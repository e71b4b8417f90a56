//! Work of several agents in one message: "add the endpoint with tests, and document it".

use super::Draft;
use super::areas::{How, Says};
use super::evidence::Explainer;
use super::index::Index;
use super::score::Ranking;
use super::steps::Assignment;
use super::support::{Reading, Unit};
use super::text::OWN;
use crate::model::List;

/// Longer messages tell a story; their clauses list no work.
const WORDS: usize = 70;
/// A part with less evidence would not stand alone.
const LEAST: f64 = 0.8;
/// A segment of the work is somebody's with this chance.
const PULLS: f64 = 0.4;
const OF_A_PART: usize = 3;

/// What people ask for beside the work, in the order in which it is done.
const BESIDE: [&str; 3] = ["testing", "documentation", "review"];

/// Words beside which a kind of work is what the work is about: `the test fails`, `broken docs`.
const BROKEN: [&str; 11] =
    ["fail", "fails", "failed", "failing", "failure", "failures", "flaky", "broken", "red", "slow", "hangs"];

fn cuts(word: &str) -> bool {
    matches!(word, "and" | "then" | "plus" | "including" | "&")
}

/// How the parts of a message divide the work.
pub(super) enum Parts {
    /// One agent's.
    One,
    Several(Draft),
    /// Several agents', but not clearly whose.
    Unclear,
}

pub(super) fn read(index: &Index<'_>, message: &str, whole: &Ranking) -> Parts {
    let units = &whole.reading.units;
    if units.len() > WORDS {
        return Parts::One;
    }
    let mut parts: Vec<(usize, Vec<Unit>)> = Vec::new();
    let mut work: Vec<Vec<Unit>> = Vec::new();
    let mut kind_before = 0;
    for (segment, is_finite) in segments(index, message, units) {
        let kind = kind_of(index, message, &segment);
        // `The page is fine now. Document it`: what only says how things stand is no part.
        if kind.is_none() && is_finite {
            continue;
        }
        if kind == Some(0) || (kind.is_none() && kind_before == 0) {
            work.push(segment.clone());
        }
        let kind = kind.unwrap_or(kind_before);
        kind_before = kind;
        match parts.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, units)) => units.extend(segment),
            None => parts.push((kind, segment)),
        }
    }
    let mut ranked: Vec<(usize, usize, Ranking)> = Vec::new();
    for (kind, units) in parts {
        let start = units.first().map_or(0, |unit| unit.range.start);
        let mut reading = Reading::of(index, message, units);
        if let Some(area) = kind.checked_sub(1).and_then(|at| index.area(BESIDE[at])) {
            reading.asked = vec![(area, 1.0)];
        }
        ranked.push((kind, start, Ranking::of(index, reading)));
    }
    ranked.sort_by_key(|(kind, ..)| *kind);
    let best: Vec<usize> = ranked.iter().filter_map(|(.., ranking)| ranking.best()).collect();
    let pulls: Vec<usize> = work.into_iter().filter_map(|units| pull(index, message, units)).collect();
    let is_torn = pulls.windows(2).any(|pair| pair[0] != pair[1]);
    if best.windows(2).all(|pair| pair[0] == pair[1]) {
        return if is_torn { Parts::Unclear } else { Parts::One };
    }
    let is_weak =
        |(.., ranking): &(usize, usize, Ranking)| ranking.best().is_none_or(|best| ranking.evidence(best) < LEAST);
    if is_torn || ranked.iter().any(is_weak) {
        return Parts::Unclear;
    }
    let mut draft = Draft { confidence: 1.0, ..Draft::default() };
    for ((_, start, ranking), agent) in ranked.iter().zip(best) {
        let slug = index.agents[agent].slug.clone();
        draft.confidence *= ranking.confidence();
        draft.places.push(Assignment { agent: slug.clone(), range: *start..*start });
        if draft.agents.contains(&slug) {
            continue;
        }
        let explainer = Explainer { index, message, ranking };
        draft.reviewer = draft.reviewer.take().or_else(|| explainer.reviewer(agent));
        draft.evidence.extend(explainer.of(agent, OF_A_PART));
        draft.agents.push(slug);
    }
    Parts::Several(draft)
}

/// The agent that a segment of the work clearly belongs to.
fn pull(index: &Index<'_>, message: &str, units: Vec<Unit>) -> Option<usize> {
    let ranking = Ranking::of(index, Reading::of(index, message, units));
    ranking.best().filter(|best| ranking.chance(*best) >= PULLS && ranking.evidence(*best) >= LEAST)
}

/// The user's own words, cut at punctuation and conjunctions, and at `with tests`; and whether the clause of each says how
/// things stand.
fn segments(index: &Index<'_>, message: &str, units: &[Unit]) -> Vec<(Vec<Unit>, bool)> {
    let mut segments: Vec<(Vec<Unit>, bool)> = Vec::new();
    let mut clause = 0;
    for (at, unit) in units.iter().enumerate().filter(|(_, unit)| unit.quality >= OWN) {
        let word = message[unit.range.clone()].to_lowercase();
        let begins_kind =
            word == "with" && units[at + 1..].iter().take(3).any(|unit| names_kind(index, unit).is_some());
        if unit.is_apart || begins_kind || cuts(&word) || segments.is_empty() {
            clause = if unit.is_apart { segments.len() } else { clause };
            segments.push((Vec::new(), segments.get(clause).is_some_and(|(_, is_finite)| *is_finite)));
        }
        if List::Finite.has(&word) {
            segments[clause..].iter_mut().for_each(|(_, is_finite)| *is_finite = true);
        }
        if let Some((last, _)) = segments.last_mut().filter(|_| !begins_kind && !cuts(&word)) {
            let mut unit = unit.clone();
            unit.begins = if last.is_empty() { 1.0 } else { unit.begins };
            last.push(unit);
        }
    }
    segments.retain(|(segment, _)| !segment.is_empty());
    segments
}

/// The kind beside the work that a word is about, from 1.
fn names_kind(index: &Index<'_>, unit: &Unit) -> Option<usize> {
    let hints = unit.term().map_or(&[][..], |term| index.areas.hints(term));
    let strong = hints.iter().find(|hint| hint.how == How::Strong);
    strong.and_then(|hint| BESIDE.iter().position(|name| index.areas.list[hint.area].name == *name)).map(|at| at + 1)
}

/// What a segment asks for: 0 the work itself, from 1 a kind beside it. `None`: it goes on with what is before it.
fn kind_of(index: &Index<'_>, message: &str, segment: &[Unit]) -> Option<usize> {
    let reading = Reading::of(index, message, segment.to_vec());
    let asked = |name: &str| index.area(name).is_some_and(|area| reading.asked.iter().any(|(of, _)| *of == area));
    if let Some(at) = BESIDE.iter().position(|name| asked(name)) {
        return Some(at + 1);
    }
    let is_broken =
        |at: usize| segment.get(at).is_some_and(|unit| BROKEN.contains(&&*message[unit.range.clone()].to_lowercase()));
    let is_beside_broken = |at: usize| is_broken(at + 1) || at.checked_sub(1).is_some_and(is_broken);
    let nouns = segment.iter().take(6).enumerate().filter(|(at, _)| !is_beside_broken(*at));
    if let Some(kind) = nouns.filter_map(|(_, unit)| names_kind(index, unit)).next() {
        return Some(kind);
    }
    let tells = segment.iter().skip(1).any(|unit| unit.says > Says::Nothing);
    (!reading.asked.is_empty() && tells).then_some(0)
}
