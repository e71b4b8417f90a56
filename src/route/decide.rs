//! From what was measured to who works, or to nobody when it is not sure.

use super::index::Index;
use super::measure::Measured;
use super::said::Said;
use super::weights::{CALIBRATION, EXPLAINED, FAR_FEWER, NEARLY_ALL, SURE};
use crate::model::{Member, Slug};

/// How the agents stand to a text.
pub(super) struct Ranking {
    pub(super) said: Said,
    pub(super) measured: Measured,
    /// By agent.
    pub(super) fits: Vec<f64>,
    /// The best agent's place, and how sure it is, 0..1.
    pub(super) best: Option<(usize, f64)>,
    /// How much better the best fits than the next.
    pub(super) lead: f64,
}

impl Ranking {
    pub(super) fn of(index: &Index<'_>, said: Said) -> Self {
        let measured = index.measure(&said);
        let fits = Index::fit(&measured);
        let best = best(&fits, &measured);
        let lead = best.map_or(0.0, |best| fits[best] - most_of_others(&fits, best));
        let best = best.map(|best| (best, confidence(&measured, best, lead)));
        Self { said, measured, fits, best, lead }
    }

    /// Who is sure to be the one.
    pub(super) fn sure(&self) -> Option<usize> {
        self.best.filter(|(_, confidence)| *confidence >= SURE).map(|(agent, _)| agent)
    }

    /// The candidates, best first.
    pub(super) fn candidates(&self) -> Vec<usize> {
        let mut agents: Vec<usize> = (0..self.fits.len()).filter(|agent| self.measured.speaks_for(*agent)).collect();
        agents.sort_by(|a, b| self.fits[*b].total_cmp(&self.fits[*a]).then(a.cmp(b)));
        agents
    }

    /// The reviewer of the row that speaks most for the agent.
    pub(super) fn reviewer(&self, index: &Index<'_>, agent: usize) -> Option<Slug> {
        let mut rows: Vec<(usize, f64)> = Vec::new();
        let hits = index.hits(&self.said, &self.measured, agent);
        for hit in hits.iter().filter(|hit| hit.amount > 0.0) {
            if let Some(rule) = index.lines[hit.line].rule {
                match rows.iter_mut().find(|(row, _)| *row == rule) {
                    Some((_, amount)) => *amount += hit.amount,
                    None => rows.push((rule, hit.amount)),
                }
            }
        }
        if rows.is_empty() {
            rows.extend(self.rows_by_areas(index, agent));
        }
        let (row, _) = rows.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?;
        let reviewer = index.team.rules.get(row)?.reviewer.as_ref()?;
        index.team.member(reviewer).filter(|member| member.is_startable()).map(|member: &Member| member.slug.clone())
    }
}

impl Ranking {
    /// The rows that make what is spoken of the agent's, where none of their words is said.
    fn rows_by_areas(&self, index: &Index<'_>, agent: usize) -> Vec<(usize, f64)> {
        let of_area = |(area, said): (usize, &f64)| {
            let rows = index.area_lines[agent][area].iter().filter(|(line, _)| index.lines[*line].rule.is_some());
            let (line, _) = rows.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?;
            let row = index.lines[*line].rule?;
            (*said > 0.0).then(|| (row, said * said * index.areas[agent][area]))
        };
        self.said.areas.iter().enumerate().filter_map(of_area).collect()
    }
}

fn best(fits: &[f64], measured: &Measured) -> Option<usize> {
    let best = (0..fits.len()).max_by(|a, b| fits[*a].total_cmp(&fits[*b]).then(b.cmp(a)))?;
    measured.speaks_for(best).then_some(best)
}

fn most_of_others(of: &[f64], best: usize) -> f64 {
    of.iter().enumerate().filter(|(agent, _)| *agent != best).map(|(_, of)| *of).reduce(f64::max).unwrap_or(0.0)
}

/// How often an agent that stands like this is the right one, as it was found on labelled messages.
fn confidence(measured: &Measured, best: usize, lead: f64) -> f64 {
    if !measured.has_substance {
        return 0.0;
    }
    let [start, of_lead, of_said, of_inquiry] = CALIBRATION;
    let asks = if measured.is_inquiry { of_inquiry } else { 0.0 };
    let sure = start + of_lead * lead + of_said * measured.said.max(0.0).ln_1p() + asks;
    // Past work is a lesson: the very same work goes to whom a person gave it.
    let done = measured.done[best];
    let is_known = measured.said >= 1.0 && done >= NEARLY_ALL * measured.said;
    let sure =
        if is_known && most_of_others(&measured.done, best) <= FAR_FEWER * done { sure + EXPLAINED } else { sure };
    1.0 / (1.0 + (-sure).exp())
}
