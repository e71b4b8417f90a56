//! Explains in words, and with sources, what speaks for an agent.

use super::Draft;
use super::decide::Ranking;
use super::fields::Field;
use super::index::Index;
use super::lexicon::AreaKind;
use super::measure::{ASKED, Hit, KIND, MOST_KIND, MOST_TOPIC, REQUEST, Specialty, TOPIC};
use super::weights::WEIGHTS;
use crate::model::{Evidence, list};

/// Limits on the evidence of a plan.
const ANSWERED: usize = 8;
const CANDIDATES: usize = 5;
const OF_A_CANDIDATE: usize = 4;

impl Ranking {
    pub(super) fn draft(&self, index: &Index<'_>, message: &str) -> Draft {
        let Some((_, confidence)) = self.best else { return Draft::default() };
        let explainer = Explainer { index, message, ranking: self };
        match self.sure() {
            Some(agent) => Draft {
                agents: vec![index.agents[agent].slug.clone()],
                reviewer: self.reviewer(index, agent),
                confidence,
                evidence: explainer.of(agent, ANSWERED),
                ..Draft::default()
            },
            None => {
                let mut evidence = Vec::new();
                for agent in self.candidates().into_iter().take(CANDIDATES) {
                    evidence.extend(explainer.of(agent, OF_A_CANDIDATE));
                }
                evidence.sort_by(|a, b| b.weight.total_cmp(&a.weight));
                Draft { confidence, evidence, is_whole: true, ..Draft::default() }
            }
        }
    }
}

pub(super) struct Explainer<'w, 't> {
    pub(super) index: &'w Index<'t>,
    pub(super) message: &'w str,
    pub(super) ranking: &'w Ranking,
}

/// A line that speaks for an agent.
struct Reason<'h> {
    line: usize,
    weight: f64,
    because: Because<'h>,
}

enum Because<'h> {
    /// It shares words with the message.
    Words(&'h [Hit]),
    Area(usize),
    /// The agent is the only one with this role.
    Alone(Specialty),
}

/// Limits on one quoted word, and on the number of quoted words.
const WORD: usize = 40;
const WORDS: usize = 8;

/// Areas with a smaller share of the match are not mentioned.
const LEAST_SHARE: f64 = 0.15;

impl Explainer<'_, '_> {
    /// The strongest reasons for and against an agent.
    pub(super) fn of(&self, agent: usize, most: usize) -> Vec<Evidence> {
        let mut hits = self.index.hits(&self.ranking.signals, &self.ranking.measured, agent);
        hits.sort_by_key(|hit| hit.line);
        let mut reasons = lines(&hits);
        reasons.extend(self.areas(agent, &reasons));
        reasons.extend(self.specialties(agent));
        reasons.sort_by(|a, b| b.weight.abs().total_cmp(&a.weight.abs()).then(a.line.cmp(&b.line)));
        reasons.truncate(most);
        reasons.retain(|reason| (reason.weight * 100.0).round() != 0.0);
        reasons.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.line.cmp(&b.line)));
        reasons.iter().map(|reason| self.evidence(agent, reason)).collect()
    }

    fn evidence(&self, agent: usize, reason: &Reason<'_>) -> Evidence {
        let line = &self.index.lines[reason.line];
        let what = line.field.what();
        let why = match &reason.because {
            Because::Area(area) => {
                ["message and ", what, " are both about ", self.index.lexicon.areas[*area].name].concat()
            }
            Because::Alone(Specialty { slot, area, .. }) => {
                let asks = if *slot == ASKED { "asks for" } else { "is most about" };
                let area = self.index.lexicon.areas[*area].name;
                ["the message ", asks, " ", area, ", which only this agent's ", what, " covers"].concat()
            }
            Because::Words(hits) => {
                let mut words: Vec<&str> = hits.iter().map(|hit| self.word(hit.word)).collect();
                words.dedup();
                words.truncate(WORDS);
                format!("{what}: {}", list(words.iter().map(|word| format!("`{word}`"))))
            }
        };
        let weight = (reason.weight * 100.0).round() / 100.0;
        Evidence { agent: self.index.agents[agent].slug.clone(), why, source: line.source.clone(), weight }
    }

    fn word(&self, place: usize) -> &str {
        let range = self.ranking.signals.words[place].token.range.clone();
        let word = self.message.get(range).unwrap_or_default();
        word.char_indices().nth(WORD).map_or(word, |(end, _)| &word[..end])
    }

    /// The kinds of work that only this agent does.
    fn specialties(&self, agent: usize) -> Vec<Reason<'static>> {
        let measured = &self.ranking.measured;
        let alone = measured.specialties.iter().filter(move |specialty| specialty.agent == agent);
        let reasons = alone.map(|specialty| Reason {
            line: specialty.line,
            weight: measured.features[agent][specialty.slot] * WEIGHTS[specialty.slot],
            because: Because::Alone(*specialty),
        });
        reasons.collect()
    }

    /// The areas that the message and the agent share.
    fn areas(&self, agent: usize, words: &[Reason<'_>]) -> Vec<Reason<'static>> {
        let (signals, index) = (&self.ranking.signals, self.index);
        let features = &self.ranking.measured.features[agent];
        // The form of the message is no reason worth naming.
        let form = |area: usize| signals.form.filter(|(of, _)| *of == area).map_or(0.0, |(_, weight)| weight);
        let agreed = signals.areas.iter().zip(&index.areas[agent]).enumerate().filter_map(|(area, (amount, share))| {
            let amount = amount - form(area);
            (amount > 0.0).then(|| (area, amount.powi(2) * share))
        });
        let agreed: Vec<(usize, f64)> = agreed.collect();
        // Of the lines about an area, a person would point to the row that also shares words with the message; for
        // general kinds of work, to the role.
        let telling = |area: usize, line: usize, weight: f64| -> (f64, f64) {
            let of_row = words.iter().filter(|reason| index.lines[reason.line].source == index.lines[line].source);
            let is_role = index.lines[line].field == Field::Role && index.is_general(area);
            (of_row.map(|reason| reason.weight).sum(), if is_role { f64::INFINITY } else { weight })
        };
        let mut reasons = Vec::new();
        for (kind, slots) in
            [(AreaKind::Kind, &[KIND, REQUEST, MOST_KIND][..]), (AreaKind::Topic, &[TOPIC, MOST_TOPIC])]
        {
            let weight: f64 = slots.iter().map(|slot| features[*slot] * WEIGHTS[*slot]).sum();
            let areas = agreed.iter().filter(|(area, _)| index.lexicon.areas[*area].kind == kind);
            let total: f64 = areas.clone().map(|(_, agreed)| agreed).sum();
            for &(area, agreed) in areas.filter(|(_, agreed)| total > 0.0 && *agreed > LEAST_SHARE * total) {
                let weight = weight * agreed / total;
                let lines = index.area_lines[agent][area].iter().map(|(line, of)| (*line, telling(area, *line, *of)));
                let best = lines
                    .max_by(|(one, a), (other, b)| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)).then(other.cmp(one)));
                reasons.extend(best.map(|(line, _)| Reason { line, weight, because: Because::Area(area) }));
            }
        }
        reasons
    }
}

/// The lines that share words with the message. The hits are sorted by line.
fn lines(hits: &[Hit]) -> Vec<Reason<'_>> {
    let of_line = |hits: &'_ [Hit]| hits.iter().map(|hit| hit.amount * WEIGHTS[hit.field as usize]).sum();
    hits.chunk_by(|a, b| a.line == b.line)
        .map(|hits| Reason { line: hits[0].line, weight: of_line(hits), because: Because::Words(hits) })
        .collect()
}
