//! What all runs of a team have spent, in one file of their clone: taken from it before it is spent, whatever becomes of
//! the process.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::env::{Clock, SharedFile, zone_name};
use crate::model::{Billed, RunId, Slug, Usage};
use crate::settings::Price;

/// Runs of which the file tells what each agent has spent: they may have been killed, and are to be resumed.
const RUNS: usize = 16;
/// Days that are kept.
const DAYS: usize = 40;

/// What was spent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Spent {
    pub(crate) turns: u64,
    pub(crate) tool_calls: u64,
    pub(crate) time: Duration,
    pub(crate) tokens: u64,
    pub(crate) cost_usd: f64,
    /// In the engines' own units.
    pub(crate) billed: BTreeMap<String, f64>,
}

impl Spent {
    pub(super) fn turn() -> Self {
        Self { turns: 1, ..Self::default() }
    }

    pub(super) fn call() -> Self {
        Self { tool_calls: 1, ..Self::default() }
    }

    pub(crate) fn add_all(&mut self, other: &Self) {
        self.turns += other.turns;
        self.tool_calls += other.tool_calls;
        self.time += other.time;
        self.tokens += other.tokens;
        self.cost_usd += other.cost_usd;
        for (unit, amount) in &other.billed {
            *self.billed.entry(unit.clone()).or_default() += amount;
        }
    }

    /// The larger of each of two counts of the same.
    pub(crate) fn or_more(mut self, other: &Self) -> Self {
        for (unit, amount) in other.billed.clone() {
            let known = self.billed.entry(unit).or_default();
            *known = known.max(amount);
        }
        Self {
            turns: self.turns.max(other.turns),
            tool_calls: self.tool_calls.max(other.tool_calls),
            time: self.time.max(other.time),
            tokens: self.tokens.max(other.tokens),
            cost_usd: self.cost_usd.max(other.cost_usd),
            billed: self.billed,
        }
    }

    /// Adds what a model call has used.
    pub(crate) fn add(&mut self, usage: &Usage) {
        self.tokens += usage.input_tokens + usage.output_tokens;
        self.cost_usd += usage.cost_usd.unwrap_or_default();
        for Billed { unit, amount } in &usage.billed {
            *self.billed.entry(unit.clone()).or_default() += amount;
        }
    }
}

/// What the model calls of a session have cost by the user's prices since its engine last told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Priced(f64);

impl Priced {
    /// What a call adds to the cost: what its engine tells is of all calls since it last did. `None`: unknown.
    pub(crate) fn cost(&mut self, usage: &Usage, price: Option<&Price>) -> Option<f64> {
        match usage.cost_usd {
            Some(told) => Some(told - std::mem::take(&mut self.0)),
            None => {
                let cost = price.and_then(|price| price.cost(usage));
                self.0 += cost.unwrap_or_default();
                cost
            }
        }
    }
}

pub(crate) struct Spending {
    file: SharedFile<Totals>,
    clock: Clock,
    run: RunId,
    /// It had the sums of earlier runs: what is missing later was taken away.
    was_whole: OnceLock<()>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Totals {
    /// The sums below include what the ledger tells of earlier runs.
    pub(crate) is_whole: bool,
    pub(crate) all: Spent,
    /// By the user's date.
    pub(crate) days: BTreeMap<String, Spent>,
    pub(crate) runs: BTreeMap<RunId, OfRun>,
}

/// What a run has spent so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct OfRun {
    pub(crate) agents: BTreeMap<Slug, Spent>,
    /// Of all together.
    pub(crate) time: Duration,
}

impl Spending {
    pub(crate) fn new(file: PathBuf, clock: Clock, run: RunId) -> Self {
        Self { file: SharedFile::new(file), clock, run, was_whole: OnceLock::new() }
    }

    /// What the run had spent when its process ended.
    pub(crate) fn of_run(&self) -> Option<OfRun> {
        self.file.read().ok().flatten()?.runs.remove(&self.run)
    }

    /// Adds what earlier runs have spent, unless that is known: by date and run, of each run that has ended. The file of an
    /// earlier squad, or one that cannot be read, is made anew.
    pub(crate) fn complete<E>(
        &self,
        earlier: impl FnOnce(&BTreeMap<RunId, OfRun>) -> Result<Vec<(String, Spent)>, E>,
    ) -> Result<(), E>
    where
        E: From<String>,
    {
        if let Err(reason) = self.file.read() {
            tracing::warn!("what was spent is summed up again from the ledger: {reason}");
            // Others wait for the lock, and then find a new one.
            let _ = std::fs::remove_file(self.file.path());
        }
        self.file.change(|totals| {
            let totals = totals.get_or_insert_default();
            let _ = self.was_whole.set(());
            if totals.is_whole {
                return Ok(());
            }
            (totals.all, totals.days) = Default::default();
            for (date, spent) in earlier(&totals.runs)? {
                totals.all.add_all(&spent);
                totals.days.entry(date).or_default().add_all(&spent);
            }
            totals.is_whole = true;
            Ok(())
        })?
    }

    /// Counts what is spent now, unless `check` finds that the day or the repository has nothing left.
    pub(super) fn spend<E: From<String>>(
        &self,
        spent: &Spent,
        so_far: OfRun,
        check: impl FnOnce(&Spent, &Spent) -> Result<(), E>,
        (agent, more): (&Slug, &Spent),
    ) -> Result<(), E> {
        let today = self.today();
        self.file.change(|totals| {
            let totals = totals.get_or_insert_default();
            // What was done already is counted in any case.
            totals.add(&today, spent);
            totals.runs.insert(self.run.clone(), so_far);
            if self.was_whole.get().is_some() && !totals.is_whole {
                return Err(format!("{} is gone", self.file.path().display()).into());
            }
            drop_oldest(&mut totals.runs, RUNS, &self.run);
            drop_oldest(&mut totals.days, DAYS, &today);
            let of_day = totals.days.get(&today).cloned().unwrap_or_default();
            check(&of_day, &totals.all)?;
            totals.add(&today, more);
            if let Some(of_run) = totals.runs.get_mut(&self.run) {
                of_run.agents.entry(agent.clone()).or_default().add_all(more);
            }
            Ok(())
        })?
    }

    /// What this day and all days have spent.
    pub(super) fn totals(&self) -> Result<(Spent, Spent), String> {
        let totals = self.file.read()?.unwrap_or_default();
        Ok((totals.days.get(&self.today()).cloned().unwrap_or_default(), totals.all))
    }

    fn today(&self) -> String {
        date(&self.clock, self.clock.now())
    }

    /// Today, and in which zone: `2026-01-05 (UTC+1)`.
    pub(super) fn day(&self) -> String {
        let now = self.clock.now().to_zoned(self.clock.zone());
        format!("{} ({})", now.date(), zone_name(&now))
    }
}

/// Drops the first of more than `most`, but not this one.
fn drop_oldest<K: Ord + Clone, V>(all: &mut BTreeMap<K, V>, most: usize, kept: &K) {
    while all.len() > most {
        let Some(oldest) = all.keys().find(|key| *key != kept).cloned() else { return };
        all.remove(&oldest);
    }
}

/// The date of a time, as the user's calendar has it.
pub(crate) fn date(clock: &Clock, at: jiff::Timestamp) -> String {
    at.to_zoned(clock.zone()).date().to_string()
}

impl Totals {
    fn add(&mut self, today: &str, spent: &Spent) {
        self.all.add_all(spent);
        self.days.entry(today.to_owned()).or_default().add_all(spent);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

    use super::*;
    use crate::pool::Budget;
    use crate::settings::{BudgetLimits, BudgetSettings};

    /// Set forward over midnight, the clock gives the new day's budget; set back, it gives nothing of the old day anew.
    #[test]
    fn a_clock_that_jumps_over_midnight_gives_no_day_twice() {
        let folder = tempfile::tempdir().expect("a folder");
        let looks = Arc::new(AtomicU64::default());
        let start = "2026-03-28T22:00:00Z".parse().expect("a time");
        let ada = Slug::fold("ada").expect("a slug");
        let clock = Clock::Stepping { start, looks: Arc::clone(&looks) };
        let run = |at: u64| {
            looks.store(at, Ordering::Relaxed);
            let limits = BudgetLimits { turns: Some(2), ..BudgetLimits::default() };
            let limits = BudgetSettings { day: limits, ..BudgetSettings::default() };
            let spending = Spending::new(folder.path().join("spent.json"), clock.clone(), RunId::new("r"));
            let budget = Budget::new(limits, BTreeMap::new(), Duration::ZERO).with_spending(Ok(spending));
            let mut taken = 0;
            let why = loop {
                match budget.take_turn(&ada) {
                    Ok(()) => taken += 1,
                    Err(why) => break why.to_string(),
                }
            };
            (taken, why)
        };
        const HOUR: u64 = 3_600;
        for (hour, turns, date) in [
            (0, 2, "2026-03-28"),
            (3, 2, "2026-03-29"),
            (1, 0, "2026-03-28"),
            (24 * 400, 2, "2027-05-02"),
            (4, 0, "2026-03-29"),
            (24 * 400, 0, "2027-05-02"),
        ] {
            let says = format!("the budget of 2 turns for {date} (UTC) is used up (`budget.day.turns`)");
            assert_eq!(run(hour * HOUR), (turns, says), "{hour}");
        }
    }

    /// Fifty agents of three squads that share a file: each call is taken once, and the last one is the last.
    #[test]
    fn squads_at_once_spend_to_the_last_call_and_none_beyond() {
        let folder = tempfile::tempdir().expect("a folder");
        let taken = AtomicUsize::default();
        std::thread::scope(|scope| {
            for squad in 0..3 {
                let limits = BudgetLimits { tool_calls: Some(100), ..BudgetLimits::default() };
                let limits = BudgetSettings { repository: limits, ..BudgetSettings::default() };
                let run = RunId::new(format!("r-{squad}"));
                let spending = Spending::new(folder.path().join("spent.json"), Clock::System, run);
                let budget = Budget::new(limits, BTreeMap::new(), Duration::ZERO).with_spending(Ok(spending));
                let taken = &taken;
                scope.spawn(move || {
                    for call in 0..3 {
                        for agent in 0..50 {
                            let agent = Slug::fold(&format!("agent-{agent}")).expect("a slug");
                            let is_taken = budget.take_call(&agent, Some(&call.to_string())).is_ok();
                            taken.fetch_add(usize::from(is_taken), Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!(taken.into_inner(), 100);
    }
}
