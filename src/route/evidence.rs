//! What speaks for an agent, in words and with where it stands.

use super::decide::Standing;
use super::index::Index;
use super::lexicon::AreaKind;
use super::rank::{KIND, REQUEST, TOPIC};
use super::weights::WEIGHTS;
use crate::model::{Evidence, list};

pub(super) struct Witness<'w, 't> {
    pub(super) index: &'w Index<'t>,
    pub(super) message: &'w str,
    pub(super) standing: &'w Standing,
}

/// A line that speaks for an agent: by its words, or by the area it is about.
struct Reason {
    line: usize,
    area: Option<usize>,
    weight: f64,
}

/// A pasted word can be of any length, and a message can have all the words of a line.
const WORD: usize = 40;
const WORDS: usize = 8;

/// An area that is less of what was agreed on is not worth a word.
const LEAST_SHARE: f64 = 0.15;

impl Witness<'_, '_> {
    /// What speaks most for and against an agent, the strongest first.
    pub(super) fn of(&self, agent: usize, most: usize) -> Vec<Evidence> {
        let mut reasons = self.lines(agent);
        reasons.extend(self.areas(agent));
        reasons.sort_by(|a, b| b.weight.abs().total_cmp(&a.weight.abs()).then(a.line.cmp(&b.line)));
        reasons.truncate(most);
        reasons.retain(|reason| (reason.weight * 100.0).round() != 0.0);
        reasons.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.line.cmp(&b.line)));
        reasons.iter().map(|reason| self.told(agent, reason)).collect()
    }

    fn told(&self, agent: usize, reason: &Reason) -> Evidence {
        let line = &self.index.lines[reason.line];
        let what = line.field.what();
        let why = match reason.area {
            Some(area) => format!("the message is about {}, and so is its {what}", self.index.lexicon.areas[area].name),
            None => {
                let hits =
                    self.standing.measured.hits.iter().filter(|hit| hit.agent == agent && hit.line == reason.line);
                let mut words: Vec<&str> = hits.map(|hit| self.word(hit.word)).collect();
                words.dedup();
                words.truncate(WORDS);
                format!("{what}: {}", list(words.iter().map(|word| format!("`{word}`"))))
            }
        };
        let weight = (reason.weight * 100.0).round() / 100.0;
        Evidence { agent: self.index.agents[agent].slug.clone(), why, source: line.source.clone(), weight }
    }

    /// The lines of the team's files that have words of the message.
    fn lines(&self, agent: usize) -> Vec<Reason> {
        let mut lines: Vec<Reason> = Vec::new();
        for hit in self.standing.measured.hits.iter().filter(|hit| hit.agent == agent) {
            let weight = hit.amount * WEIGHTS[hit.field as usize];
            match lines.iter_mut().find(|reason| reason.line == hit.line) {
                Some(reason) => reason.weight += weight,
                None => lines.push(Reason { line: hit.line, area: None, weight }),
            }
        }
        lines
    }

    fn word(&self, place: usize) -> &str {
        let range = self.standing.said.words[place].found.range.clone();
        let word = self.message.get(range).unwrap_or_default();
        word.char_indices().nth(WORD).map_or(word, |(end, _)| &word[..end])
    }

    /// The areas that the message speaks of and that are the agent's.
    fn areas(&self, agent: usize) -> Vec<Reason> {
        let (said, index) = (&self.standing.said, self.index);
        let features = &self.standing.measured.features[agent];
        let mut reasons = Vec::new();
        for (kind, slots) in [(AreaKind::Kind, &[KIND, REQUEST][..]), (AreaKind::Topic, &[TOPIC])] {
            let weight: f64 = slots.iter().map(|slot| features[*slot] * WEIGHTS[*slot]).sum();
            // What only the message's form says is no reason to name.
            let form = |area: usize| said.form.filter(|(of, _)| *of == area).map_or(0.0, |(_, weight)| weight);
            let agreed = |area: usize| (said.areas[area] - form(area)).max(0.0).powi(2) * index.areas[agent][area];
            let areas = (0..said.areas.len()).filter(|area| index.lexicon.areas[*area].kind == kind);
            let total: f64 = areas.clone().map(agreed).sum();
            for area in areas.filter(|area| total > 0.0 && agreed(*area) > LEAST_SHARE * total) {
                let weight = weight * agreed(area) / total;
                reasons.extend(index.area_lines[agent][area].map(|line| Reason { line, area: Some(area), weight }));
            }
        }
        reasons
    }
}
