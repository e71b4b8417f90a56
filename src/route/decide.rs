//! Turns measurements into a ranking with a confidence.

use std::collections::BTreeMap;

use super::index::Index;
use super::measure::Measured;
use super::signals::Signals;
use super::weights::{CALIBRATION, EXPLAINED, FAR_FEWER, NEARLY_ALL, SURE};
use crate::model::Slug;

/// The agents ranked for one text.
pub(super) struct Ranking {
    pub(super) signals: Signals,
    pub(super) measured: Measured,
    /// By agent.
    pub(super) fits: Vec<f64>,
    /// The index of the best agent and the confidence in it, 0..1.
    pub(super) best: Option<(usize, f64)>,
    /// The score of the best agent minus that of the next.
    pub(super) lead: f64,
}

impl Ranking {
    pub(super) fn of(index: &Index<'_>, signals: Signals) -> Self {
        let measured = index.measure(&signals);
        let fits = Index::fit(&measured);
        let best = best(&fits, &measured);
        let lead = best.map_or(0.0, |best| fits[best] - most_of_others(&fits, best));
        let best = best.map(|best| (best, confidence(&signals, &measured, best, lead)));
        Self { signals, measured, fits, best, lead }
    }

    /// The best agent, if the confidence reaches the threshold.
    pub(super) fn sure(&self) -> Option<usize> {
        self.best.filter(|(_, confidence)| *confidence >= SURE).map(|(agent, _)| agent)
    }

    /// The candidates, best first.
    pub(super) fn candidates(&self) -> Vec<usize> {
        let mut agents: Vec<usize> = (0..self.fits.len()).filter(|agent| self.measured.speaks_for(*agent)).collect();
        agents.sort_by(|a, b| self.fits[*b].total_cmp(&self.fits[*a]).then(a.cmp(b)));
        agents
    }

    /// The reviewer named in the row that contributes most to the agent's score.
    pub(super) fn reviewer(&self, index: &Index<'_>, agent: usize) -> Option<Slug> {
        let mut by_words: BTreeMap<usize, f64> = BTreeMap::new();
        for hit in index.hits(&self.signals, &self.measured, agent).iter().filter(|hit| hit.amount > 0.0) {
            if let Some(row) = index.lines[hit.line].rule {
                *by_words.entry(row).or_default() += hit.amount;
            }
        }
        let mut rows: Vec<(usize, f64)> = by_words.into_iter().collect();
        if rows.is_empty() {
            rows = self.rows_by_areas(index, agent);
        }
        let (row, _) = rows.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?;
        let reviewer = index.team.rules.get(row)?.reviewer.as_ref()?;
        index.team.startable_member(reviewer).map(|member| member.slug.clone())
    }

    /// Rows that match by area where no word of any row matches.
    fn rows_by_areas(&self, index: &Index<'_>, agent: usize) -> Vec<(usize, f64)> {
        let of_area = |(area, amount): (usize, &f64)| {
            let rows = index.area_lines[agent][area].iter().filter(|(line, _)| index.lines[*line].rule.is_some());
            let (line, _) = rows.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?;
            let row = index.lines[*line].rule?;
            (*amount > 0.0).then(|| (row, amount * amount * index.areas[agent][area]))
        };
        self.signals.areas.iter().enumerate().filter_map(of_area).collect()
    }
}

fn best(fits: &[f64], measured: &Measured) -> Option<usize> {
    let best = (0..fits.len()).max_by(|a, b| fits[*a].total_cmp(&fits[*b]).then(b.cmp(a)))?;
    measured.speaks_for(best).then_some(best)
}

fn most_of_others(of: &[f64], best: usize) -> f64 {
    of.iter().enumerate().filter(|(agent, _)| *agent != best).map(|(_, of)| *of).reduce(f64::max).unwrap_or(0.0)
}

/// The probability that the best agent is right, calibrated on labelled messages.
fn confidence(signals: &Signals, measured: &Measured, best: usize, lead: f64) -> f64 {
    if !measured.has_substance {
        return 0.0;
    }
    let [start, of_lead, of_content, of_inquiry] = CALIBRATION;
    let asks = if signals.is_inquiry { of_inquiry } else { 0.0 };
    let sure = start + of_lead * lead + of_content * measured.content.max(0.0).ln_1p() + asks;
    // A repeat of past work goes to the agent who did it before.
    let done = measured.done[best];
    let is_known = measured.content >= 1.0 && done >= NEARLY_ALL * measured.content;
    let sure =
        if is_known && most_of_others(&measured.done, best) <= FAR_FEWER * done { sure + EXPLAINED } else { sure };
    1.0 / (1.0 + (-sure).exp())
}
