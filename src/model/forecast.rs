//! What a run is likely to use, from runs that are like it.

use serde::{Deserialize, Serialize};

use super::sort::Sort;
use super::{Usage, abbreviated};

/// With fewer runs than these there is no forecast.
const FEWEST: usize = 5;

/// What runs with the same agents have used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Forecast {
    /// How many there are.
    pub(crate) runs: usize,
    /// Input and output.
    pub(crate) tokens: Spread,
    /// US dollars; `None`: the engine does not say what runs cost.
    pub(crate) cost_usd: Option<Spread>,
}

/// Half of the runs used no more than the median, and nine of ten no more than `p90`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) p90: f64,
}

impl Spread {
    /// `None`: there are too few values.
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.stable_sort_by(f64::total_cmp);
        // Of the values, the first that is at least as large as this share of them.
        let at = |tenths: usize| values.get((values.len() * tenths).div_ceil(10).saturating_sub(1)).copied();
        (values.len() >= FEWEST).then_some(())?;
        Some(Self { median: at(5)?, p90: at(9)? })
    }
}

impl Forecast {
    /// From what like runs have used. `None`: there are too few of which that is known.
    pub(crate) fn of<'u>(past: impl Iterator<Item = &'u Usage>) -> Option<Self> {
        let known: Vec<&Usage> = past.filter(|usage| tokens(usage) > 0).collect();
        let costs: Vec<f64> = known.iter().filter_map(|usage| usage.cost_usd).collect();
        let is_costed = costs.len() == known.len();
        let counts = known.iter().map(|usage| tokens(usage) as f64).collect();
        let cost_usd = if is_costed { Spread::of(costs) } else { None };
        Some(Self { runs: known.len(), tokens: Spread::of(counts)?, cost_usd })
    }

    /// `61.2k tokens, up to 90.0k; $0.41, up to $0.70 (12 runs like it)`
    pub(crate) fn text(&self) -> String {
        let Self { runs, tokens, cost_usd } = self;
        let short = |amount: f64| abbreviated(amount as u64);
        let cost = cost_usd.map(|Spread { median, p90 }| format!("; ${median:.2}, up to ${p90:.2}"));
        let (median, p90) = (short(tokens.median), short(tokens.p90));
        format!("{median} tokens, up to {p90}{} ({runs} runs like it)", cost.unwrap_or_default())
    }

    /// How it did: what was used, next to what was likely.
    pub(crate) fn against(&self, used: &Usage) -> String {
        let is_above = tokens(used) as f64 > self.tokens.p90;
        let was = if is_above { "above that" } else { "within that" };
        format!("{}; used {}, {was}", self.text(), abbreviated(tokens(used)))
    }
}

fn tokens(usage: &Usage) -> u64 {
    usage.input_tokens + usage.output_tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(tokens: u64, cost_usd: Option<f64>) -> Usage {
        Usage { input_tokens: tokens / 2, output_tokens: tokens - tokens / 2, cost_usd, ..Usage::default() }
    }

    #[test]
    fn five_runs_that_are_known_make_a_forecast() {
        let runs: Vec<Usage> = (1..=10).map(|number| usage(number * 100, Some(number as f64))).collect();
        let forecast = Forecast::of(runs.iter()).expect("there are enough");
        let spread = |median, p90| Spread { median, p90 };
        assert_eq!((forecast.tokens, forecast.cost_usd), (spread(500.0, 900.0), Some(spread(5.0, 9.0))));
        assert_eq!(Forecast::of(runs.iter().take(4)), None);
        let unknown = [usage(0, None), usage(100, None)];
        assert_eq!(Forecast::of(runs.iter().take(4).chain([&unknown[0]])), None, "nothing is known of that one");
        let mixed = Forecast::of(runs.iter().take(5).chain([&unknown[1]])).expect("there are enough");
        assert_eq!((mixed.runs, mixed.cost_usd), (6, None), "of one the cost is unknown");
        let told = "500 tokens, up to 900; $5.00, up to $9.00 (10 runs like it); used ";
        for (used, was) in [(900, "900, within that"), (901, "901, above that")] {
            assert_eq!(forecast.against(&usage(used, None)), format!("{told}{was}"));
        }
    }

    /// A ledger played again: of each run what the ones before it forecast. Nine of ten stay within the ninth tenth, and
    /// half within the median, give or take what so many runs allow.
    #[test]
    fn forecasts_hold_for_runs_of_one_kind() {
        let mut state = 7_u64;
        let mut next = || {
            // Numerical Recipes' generator: the same runs on every machine.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / f64::from(1_u32 << 31)
        };
        // Most runs are small, and some are very large.
        let runs: Vec<Usage> = (0..500).map(|_| usage((1_000.0 / (1.001 - next())) as u64, None)).collect();
        let (mut within_half, mut within_most, mut count) = (0, 0, 0);
        for (number, run) in runs.iter().enumerate().skip(50) {
            let forecast = Forecast::of(runs[..number].iter()).expect("there are enough");
            within_half += usize::from(tokens(run) as f64 <= forecast.tokens.median);
            within_most += usize::from(tokens(run) as f64 <= forecast.tokens.p90);
            count += 1;
        }
        let share = |within: usize| within as f64 / f64::from(count);
        assert!((0.43..=0.57).contains(&share(within_half)), "{}", share(within_half));
        assert!((0.85..=0.95).contains(&share(within_most)), "{}", share(within_most));
    }
}
