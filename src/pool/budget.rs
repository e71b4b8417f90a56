//! What a run and each of its agents may spend, and all runs of a team: counted before it is spent where squad is asked, else as it is told.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::spending::{OfRun, Spending, Spent};
use super::timer::format_duration;
use crate::engine::remote::frames::BudgetLease;
use crate::model::{Billed, EventKind, IntoMap, IntoSet, Slug, Usage, plural};
use crate::settings::{BudgetLimits, BudgetSettings, Price};

/// The settings of a day's budgets begin with it.
const OF_DAY: &str = "budget.day.";
/// How often to look at the time that other runs spend.
const LOOK: Duration = Duration::from_secs(2);

/// The budgets of a run, with what is spent of them.
pub(crate) struct Budget {
    limits: BudgetSettings,
    /// What all runs have spent; `None`: nobody asks. The error is why that is unknown, so that nothing may be spent.
    spending: Result<Option<Spending>, String>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    run: Account,
    agents: BTreeMap<Slug, Account>,
    /// Calls that have begun, by agent and id, and whether they were within the budgets.
    calls: BTreeMap<(Slug, String), bool>,
    /// Who wanted more than there is.
    over: BTreeMap<Slug, Exhausted>,
    reported: BTreeSet<(Option<Slug>, String)>,
    /// What agents on other machines may use without being asked.
    leases: BTreeMap<Slug, Leased>,
    /// How much of the run's time is counted among that of all runs.
    counted: Duration,
}

/// What an agent may use without being asked, and what it had spent when that was said.
#[derive(Default)]
struct Leased {
    lease: Spent,
    /// What it may use by earlier leases if this one has not reached its machine.
    earlier: Spent,
    since: Spent,
    /// Nobody hears of what it uses now.
    is_away: bool,
}

impl Leased {
    /// What is left of it, for an agent that has spent this much.
    fn left(&self, now: &Spent) -> Spent {
        let Self { lease, earlier, since, .. } = self;
        lease.without(now, since).or_more(&earlier.without(now, since))
    }
}

impl Spent {
    /// What is left of it after what was spent since then.
    fn without(&self, now: &Self, since: &Self) -> Self {
        let count = |lease: u64, now: u64, since: u64| lease.saturating_sub(now.saturating_sub(since));
        let amount = |lease: f64, now: f64, since: f64| (lease - (now - since)).max(0.0);
        let of_unit = |unit: &String| [now, since].map(|spent| spent.billed.get(unit).copied().unwrap_or_default());
        let billed = self.billed.iter().map(|(unit, lease)| {
            let [now, since] = of_unit(unit);
            (unit.clone(), amount(*lease, now, since))
        });
        Self {
            turns: 0,
            tool_calls: count(self.tool_calls, now.tool_calls, since.tool_calls),
            // The time of agents side by side counts once.
            time: Duration::ZERO,
            tokens: count(self.tokens, now.tokens, since.tokens),
            cost_usd: amount(self.cost_usd, now.cost_usd, since.cost_usd),
            billed: billed.into_map(),
        }
    }
}

#[derive(Default)]
struct Account {
    /// Without the time since `since`.
    spent: Spent,
    /// How many work now, and since when anybody does.
    at_work: usize,
    since: Option<Instant>,
}

impl Account {
    fn now(&self) -> Spent {
        let since = self.since.map(|since| since.elapsed()).unwrap_or_default();
        Spent { time: self.spent.time + since, ..self.spent.clone() }
    }

    fn begin(&mut self) {
        self.at_work += 1;
        self.since.get_or_insert_with(Instant::now);
    }

    fn end(&mut self) {
        self.spent.time += self.since.map(|since| since.elapsed()).unwrap_or_default();
        self.at_work = self.at_work.saturating_sub(1);
        self.since = (self.at_work > 0).then(Instant::now);
    }
}

impl State {
    /// What is left of others' leases.
    fn promised(&self, agent: &Slug, counts: impl Fn(&Leased) -> bool) -> Spent {
        let mut promised = Spent::default();
        for (other, leased) in self.leases.iter().filter(|(other, leased)| *other != agent && counts(leased)) {
            promised.add_all(&leased.left(&self.agents.get(other).map(Account::now).unwrap_or_default()));
        }
        promised
    }
}

impl BudgetLease {
    /// Takes a table of limits into account, of which this is spent. `shared`: what of it others were promised, and how many
    /// share what is left.
    fn limit(&mut self, limits: &BudgetLimits, spent: &Spent, shared: Option<(&Spent, usize)>) {
        let none = Spent::default();
        let (promised, sharers) = shared.unwrap_or((&none, 1));
        let amount = |limit: f64, spent: f64, promised: f64| {
            let left = (limit - spent).max(0.0);
            (left - promised).max(0.0).min(left / sharers as f64)
        };
        let count = |limit: u64, spent: u64, promised: u64| {
            let left = limit.saturating_sub(spent);
            left.saturating_sub(promised).min(left / sharers as u64)
        };
        let least = |known: Option<u64>, new: Option<u64>| known.into_iter().chain(new).min();
        let smallest = |known: Option<f64>, new: Option<f64>| known.into_iter().chain(new).reduce(f64::min);
        let calls = limits.tool_calls.map(|limit| count(limit, spent.tool_calls, promised.tool_calls));
        self.tool_calls = least(self.tool_calls, calls);
        self.tokens = least(self.tokens, limits.tokens.map(|limit| count(limit, spent.tokens, promised.tokens)));
        let cost = limits.cost_usd.map(|limit| amount(limit, spent.cost_usd, promised.cost_usd));
        self.cost_usd = smallest(self.cost_usd, cost);
        let time = limits.time.map(|limit| limit.saturating_sub(spent.time).as_secs_f64());
        self.time = smallest(self.time, time);
        for (unit, limit) in &limits.billed {
            let [spent, promised] = [spent, promised].map(|of| of.billed.get(unit).copied().unwrap_or_default());
            let left = amount(*limit, spent, promised);
            self.billed.entry(unit.clone()).and_modify(|known| *known = known.min(left)).or_insert(left);
        }
    }

    /// All of it, without what has no limit.
    fn amounts(&self) -> Spent {
        Spent {
            tool_calls: self.tool_calls.unwrap_or_default(),
            tokens: self.tokens.unwrap_or_default(),
            cost_usd: self.cost_usd.unwrap_or_default(),
            billed: self.billed.clone(),
            ..Spent::default()
        }
    }

    /// Whether this much is more than it allows, or all of it where the next model call would use more.
    pub(crate) fn is_used_up(&self, used: &Spent) -> bool {
        let over_unit = |(unit, limit): (&String, &f64)| used.billed.get(unit).copied().unwrap_or_default() >= *limit;
        self.tool_calls.is_some_and(|limit| used.tool_calls > limit)
            || self.tokens.is_some_and(|limit| used.tokens >= limit)
            || self.cost_usd.is_some_and(|limit| used.cost_usd >= limit)
            || self.time.is_some_and(|limit| used.time.as_secs_f64() >= limit)
            || self.billed.iter().any(over_unit)
    }
}

/// What an agent wants to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Turn,
    Call,
    /// To go on.
    Nothing,
}

/// A budget that has nothing left.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Exhausted {
    /// The setting, such as `budget.agent.turns`.
    name: String,
    limit: f64,
    spent: f64,
    /// `3 turns`; empty: it is unknown what is left.
    amount: String,
    /// Why that is unknown.
    reason: String,
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.amount.is_empty() {
            true => write!(f, "it is unknown what is left of the budget (`{}`): {}", self.name, self.reason),
            false => write!(f, "the budget of {} is used up (`{}`)", self.amount, self.name),
        }
    }
}

/// Why it is unknown what is left.
impl From<String> for Exhausted {
    fn from(reason: String) -> Self {
        Self { name: "budget".to_owned(), limit: 0.0, spent: 0.0, amount: String::new(), reason }
    }
}

impl BudgetLimits {
    /// The first limit that keeps from what is wanted. `table`: the settings' names begin with it.
    fn exhausted(&self, spent: &Spent, wanted: Wanted, table: &str) -> Option<Exhausted> {
        let exhausted = |name: &str, limit: f64, spent: f64, amount: String| Exhausted {
            name: format!("{table}{name}"),
            limit,
            spent,
            amount,
            reason: String::new(),
        };
        let count = |name: &str, limit: Option<u64>, spent: u64, noun: &str| {
            let limit = limit.filter(|limit| spent >= *limit)?;
            Some(exhausted(name, limit as f64, spent as f64, plural(limit as usize, noun)))
        };
        let turns = || count("turns", self.turns, spent.turns, "turn").filter(|_| wanted == Wanted::Turn);
        let calls =
            || count("tool_calls", self.tool_calls, spent.tool_calls, "tool call").filter(|_| wanted == Wanted::Call);
        let tokens = || count("tokens", self.tokens, spent.tokens, "token");
        let time = || {
            let limit = self.time.filter(|limit| spent.time >= *limit)?;
            Some(exhausted("time", limit.as_secs_f64(), spent.time.as_secs_f64(), format_duration(limit)))
        };
        let cost = || {
            let limit = self.cost_usd.filter(|limit| spent.cost_usd >= *limit)?;
            Some(exhausted("cost_usd", limit, spent.cost_usd, format!("${limit:.2}")))
        };
        let billed = || {
            self.billed.iter().find_map(|(unit, limit)| {
                let spent = spent.billed.get(unit).copied().unwrap_or_default();
                let amount = format!("{limit} {}", unit.replace('_', " "));
                (spent >= *limit).then(|| exhausted(&format!("billed.{unit}"), *limit, spent, amount))
            })
        };
        turns().or_else(calls).or_else(time).or_else(tokens).or_else(cost).or_else(billed)
    }
}

impl Budget {
    /// `before`: what each agent had spent before the run was interrupted, and the time of them all.
    pub(crate) fn new(limits: BudgetSettings, before: BTreeMap<Slug, Spent>, time: Duration) -> Self {
        let mut state = State::default();
        for (agent, spent) in before {
            state.run.spent.add_all(&spent);
            state.agents.insert(agent, Account { spent, ..Account::default() });
        }
        (state.run.spent.time, state.counted) = (time, time);
        Self { limits, spending: Ok(None), state: Mutex::new(state) }
    }

    /// Together with all runs of the team; the error is why it is unknown what those have spent.
    pub(crate) fn with_spending(self, spending: Result<Spending, String>) -> Self {
        Self { spending: spending.map(Some), ..self }
    }

    /// What the run and each agent have spent.
    #[cfg(test)]
    pub(crate) fn spent(&self) -> (Spent, BTreeMap<Slug, Spent>) {
        let state = self.state.lock();
        (state.run.now(), state.agents.iter().map(|(agent, account)| (agent.clone(), account.now())).collect())
    }

    /// Takes a turn, before its message is sent.
    pub(super) fn take_turn(&self, agent: &Slug) -> Result<(), Exhausted> {
        let mut state = self.state.lock();
        self.take(&mut state, agent, Wanted::Turn, &Spent::turn())?;
        // Engines may count their calls anew.
        state.calls.retain(|(caller, _), _| caller != agent);
        Ok(())
    }

    /// Takes a tool call, before it acts; each once. Without an id it is counted when it is told that it has begun.
    pub(super) fn take_call(&self, agent: &Slug, call: Option<&str>) -> Result<(), Exhausted> {
        let mut state = self.state.lock();
        let Some(call) = call else { return self.check(&mut state, agent, Wanted::Call) };
        let key = (agent.clone(), call.to_owned());
        if state.calls.get(&key) == Some(&true) {
            return Ok(());
        }
        let taken = self.take(&mut state, agent, Wanted::Call, &Spent::call());
        state.calls.insert(key, taken.is_ok());
        taken
    }

    /// Counts something before it is done, in all budgets or in none.
    fn take(&self, state: &mut State, agent: &Slug, wanted: Wanted, more: &Spent) -> Result<(), Exhausted> {
        self.check_own(state, agent, wanted)?;
        if let Err(exhausted) = self.count(state, agent, more, Some(wanted)) {
            state.over.insert(agent.clone(), exhausted.clone());
            return Err(exhausted);
        }
        state.run.spent.add_all(more);
        state.agents.entry(agent.clone()).or_default().spent.add_all(more);
        Ok(())
    }

    /// Counts something among what all runs have spent, with the time since the last count. `wanted`: only if there is some
    /// left.
    fn count(&self, state: &mut State, agent: &Slug, more: &Spent, wanted: Option<Wanted>) -> Result<(), Exhausted> {
        let spending = match &self.spending {
            Ok(None) => return Ok(()),
            Ok(Some(spending)) => spending,
            Err(reason) => return Err(reason.clone().into()),
        };
        let time = state.run.now().time;
        let since = Spent { time: time.saturating_sub(state.counted), ..Spent::default() };
        let agents = state.agents.iter().map(|(agent, account)| (agent.clone(), account.now())).into_map();
        let check = |day: &Spent, all: &Spent| match wanted.and_then(|wanted| self.exhausted_of_all(day, all, wanted)) {
            Some(exhausted) => Err(exhausted),
            None => Ok(()),
        };
        let counted = spending.spend(&since, OfRun { agents, time }, check, (agent, more));
        match counted {
            // The budgets of the run itself do not need the file.
            Err(exhausted) if exhausted.amount.is_empty() && !self.limits.spans_runs() => Ok(()),
            counted => {
                state.counted = time;
                counted
            }
        }
    }

    fn exhausted_of_all(&self, day: &Spent, all: &Spent, wanted: Wanted) -> Option<Exhausted> {
        let BudgetSettings { day: of_day, repository, .. } = &self.limits;
        let of_all = || repository.exhausted(all, wanted, "budget.repository.");
        of_day.exhausted(day, wanted, OF_DAY).map(|exhausted| self.dated(exhausted)).or_else(of_all)
    }

    /// Says of which day a budget is.
    fn dated(&self, exhausted: Exhausted) -> Exhausted {
        match &self.spending {
            Ok(Some(spending)) if exhausted.name.starts_with(OF_DAY) => {
                Exhausted { amount: format!("{} for {}", exhausted.amount, spending.day()), ..exhausted }
            }
            _ => exhausted,
        }
    }

    /// Whether a call was one too many.
    pub(super) fn is_beyond(&self, agent: &Slug, call: &str) -> bool {
        self.state.lock().calls.get(&(agent.clone(), call.to_owned())) == Some(&false)
    }

    /// What tokens of a model cost, if the user has named one of these prices.
    pub(super) fn price_of(&self, models: [Option<&str>; 2]) -> Option<&Price> {
        self.limits.price_of(models)
    }

    /// The budgets that do not bound whoever tells none of some of this: tokens, costs, tool calls; or bills in other units.
    pub(super) fn uncounted(&self, [tokens, cost, calls]: [bool; 3], billed: &[Billed]) -> BTreeSet<String> {
        let BudgetSettings { run, agent, day, repository, .. } = &self.limits;
        let tables = [(run, "budget."), (agent, "budget.agent."), (day, OF_DAY), (repository, "budget.repository.")];
        let of_table = |(limits, table): (&BudgetLimits, &str)| -> Vec<String> {
            let counts = [
                ("tokens", limits.tokens.is_some() && !tokens),
                ("cost_usd", limits.cost_usd.is_some() && !cost),
                ("tool_calls", limits.tool_calls.is_some() && !calls),
            ];
            let is_told = |unit: &str| tokens && (billed.is_empty() || billed.iter().any(|known| known.unit == unit));
            let units = limits.billed.keys().filter(|unit| !is_told(unit)).map(|unit| format!("{table}billed.{unit}"));
            let counts = counts.into_iter().filter(|(_, is_lost)| *is_lost);
            counts.map(|(name, _)| format!("{table}{name}")).chain(units).collect()
        };
        tables.into_iter().flat_map(of_table).into_set()
    }

    /// Whether this was not reported before.
    pub(super) fn is_news(&self, of: &str) -> bool {
        self.state.lock().reported.insert((None, of.to_owned()))
    }

    /// Counts what a model call has used.
    pub(super) fn settle(&self, agent: &Slug, usage: &Usage) {
        let mut state = self.state.lock();
        let mut spent = Spent::default();
        spent.add(usage);
        // What cannot be counted is found out by whoever wants more.
        let _ = self.count(&mut state, agent, &spent, None);
        state.run.spent.add_all(&spent);
        state.agents.entry(agent.clone()).or_default().spent.add_all(&spent);
    }

    /// What an agent may use without being asked: of what nobody else was promised, a share that leaves something to the
    /// others. `None`: nothing limits it.
    pub(crate) fn lease(&self, agent: &Slug) -> Option<BudgetLease> {
        let mut state = self.state.lock();
        let own = state.agents.get(agent).map(Account::now).unwrap_or_default();
        let promised = state.promised(agent, |_| true);
        let sharers = state.run.at_work.max(1) + 1;
        let totals = match &self.spending {
            Ok(Some(spending)) if self.limits.spans_runs() => spending.totals(),
            Err(reason) if self.limits.spans_runs() => Err(reason.clone()),
            _ => Ok(Default::default()),
        };
        // Where it is unknown what is left, nothing may be used.
        let Ok((mut day, mut all)) = totals else {
            return Some(BudgetLease { time: Some(0.0), ..BudgetLease::default() });
        };
        let uncounted = state.run.now().time.saturating_sub(state.counted);
        (day.time, all.time) = (day.time + uncounted, all.time + uncounted);
        let BudgetSettings { run, agent: each, day: of_day, repository, .. } = &self.limits;
        let shared = [(run, state.run.now()), (of_day, day), (repository, all)];
        let tables = shared.into_iter().map(|(limits, spent)| (limits, spent, Some((&promised, sharers))));
        let mut lease = BudgetLease::default();
        for (limits, spent, shared) in tables.chain([(each, own.clone(), None)]) {
            lease.limit(limits, &spent, shared);
        }
        if lease == BudgetLease::default() {
            state.leases.remove(agent);
            return None;
        }
        if lease.cost_usd.is_some() {
            lease.prices.clone_from(&self.limits.prices);
        }
        let before = state.leases.get(agent);
        let earlier = before.map(|before| before.left(&own)).unwrap_or_default();
        let is_away = before.is_some_and(|before| before.is_away);
        state.leases.insert(agent.clone(), Leased { lease: lease.amounts(), earlier, since: own, is_away });
        Some(lease)
    }

    /// An agent's machine has its last lease, and goes by no earlier one.
    pub(crate) fn has_lease(&self, agent: &Slug) {
        if let Some(leased) = self.state.lock().leases.get_mut(agent) {
            leased.earlier = Spent::default();
        }
    }

    /// Nobody hears of what an agent uses, or somebody does again.
    pub(super) fn cut_off(&self, agent: &Slug, is_away: bool) {
        if let Some(leased) = self.state.lock().leases.get_mut(agent) {
            leased.is_away = is_away;
        }
    }

    /// An agent needs no lease any more. One that was never heard of again may have used it.
    fn release(&self, agent: &Slug) {
        let mut state = self.state.lock();
        if state.leases.get(agent).is_some_and(|leased| !leased.is_away) {
            state.leases.remove(agent);
        }
    }

    /// Why an agent has to end, once its calls have.
    pub(super) fn ends(&self, agent: &Slug) -> Option<Exhausted> {
        let mut state = self.state.lock();
        // The error is kept, too.
        let _ = self.check(&mut state, agent, Wanted::Nothing);
        state.over.get(agent).cloned()
    }

    fn check(&self, state: &mut State, agent: &Slug, wanted: Wanted) -> Result<(), Exhausted> {
        self.check_own(state, agent, wanted)?;
        if !self.limits.spans_runs() {
            return Ok(());
        }
        let totals = match &self.spending {
            Ok(Some(spending)) => spending.totals(),
            Ok(None) => return Ok(()),
            Err(reason) => Err(reason.clone()),
        };
        let exhausted = match totals {
            Ok((mut day, mut all)) => {
                let time = state.run.now().time.saturating_sub(state.counted);
                (day.time, all.time) = (day.time + time, all.time + time);
                self.exhausted_of_all(&day, &all, wanted)
            }
            Err(reason) => Some(reason.into()),
        };
        let Some(exhausted) = exhausted else { return Ok(()) };
        state.over.insert(agent.clone(), exhausted.clone());
        Err(exhausted)
    }

    /// The budgets of this run alone.
    fn check_own(&self, state: &mut State, agent: &Slug, wanted: Wanted) -> Result<(), Exhausted> {
        let mut of_all = state.run.now();
        of_all.add_all(&state.promised(agent, |leased| leased.is_away));
        let of_run = self.limits.run.exhausted(&of_all, wanted, "budget.");
        let spent = state.agents.get(agent).map(Account::now).unwrap_or_default();
        let exhausted = of_run.or_else(|| self.limits.agent.exhausted(&spent, wanted, "budget.agent."));
        let Some(exhausted) = exhausted else { return Ok(()) };
        state.over.insert(agent.clone(), exhausted.clone());
        Err(exhausted)
    }

    /// Runs the clock of an agent that begins to work, or no longer waits.
    pub(super) fn begin(&self, agent: &Slug) {
        let mut state = self.state.lock();
        state.run.begin();
        state.agents.entry(agent.clone()).or_default().begin();
    }

    pub(super) fn end(&self, agent: &Slug) {
        let mut state = self.state.lock();
        state.run.end();
        state.agents.entry(agent.clone()).or_default().end();
        let _ = self.count(&mut state, agent, &Spent::default(), None);
    }

    /// Returns when the time of an agent that works, or of the run, is used up.
    pub(super) async fn time_up(&self, agent: &Slug) -> Exhausted {
        loop {
            let all = match &self.spending {
                Ok(Some(spending)) if self.limits.spans_runs() => spending.totals().unwrap_or_default(),
                _ => Default::default(),
            };
            let left = {
                let state = self.state.lock();
                let here = state.run.now().time.saturating_sub(state.counted);
                let [of_day, of_all] = [all.0, all.1].map(|all| Spent { time: all.time + here, ..all });
                let spent = state.agents.get(agent).map(Account::now).unwrap_or_default();
                let times = [
                    (&self.limits.run, state.run.now(), "budget."),
                    (&self.limits.agent, spent, "budget.agent."),
                    (&self.limits.day, of_day, OF_DAY),
                    (&self.limits.repository, of_all, "budget.repository."),
                ];
                let left = |(limits, spent, table): (&BudgetLimits, Spent, &str)| {
                    let limits = BudgetLimits { time: Some(limits.time?), ..BudgetLimits::default() };
                    match limits.exhausted(&spent, Wanted::Nothing, table) {
                        Some(exhausted) => Some(Err(self.dated(exhausted))),
                        None => Some(Ok(limits.time?.saturating_sub(spent.time))),
                    }
                };
                times.into_iter().filter_map(left).collect::<Result<Vec<Duration>, Exhausted>>()
            };
            match left.map(|left| left.into_iter().min()) {
                Err(exhausted) => return exhausted,
                Ok(None) => std::future::pending().await,
                // Whoever waits meanwhile spends none of it.
                Ok(Some(left)) if self.limits.spans_runs() => sleep(left.min(LOOK)).await,
                Ok(Some(left)) => sleep(left).await,
            }
        }
    }

    /// The event that says so, the first time.
    pub(super) fn event(&self, agent: &Slug, exhausted: &Exhausted) -> Option<(Option<Slug>, EventKind)> {
        let Exhausted { name, limit, spent, .. } = exhausted.clone();
        let whose = name.starts_with("budget.agent.").then(|| agent.clone());
        let is_new = self.state.lock().reported.insert((whose.clone(), name.clone()));
        let budget = name.trim_start_matches("budget.").to_owned();
        is_new.then_some((whose, EventKind::BudgetReached { budget, limit, spent }))
    }
}

/// An agent's clock, which stands while it waits, and at the end.
pub(super) struct WorkClock<'b> {
    budget: &'b Budget,
    agent: Slug,
    runs: bool,
}

impl<'b> WorkClock<'b> {
    pub(super) fn start(budget: &'b Budget, agent: &Slug) -> Self {
        budget.begin(agent);
        Self { budget, agent: agent.clone(), runs: true }
    }

    pub(super) fn wait(&mut self, is_waiting: bool) {
        match (self.runs, is_waiting) {
            (true, true) => self.budget.end(&self.agent),
            (false, false) => self.budget.begin(&self.agent),
            _ => return,
        }
        self.runs = !is_waiting;
    }
}

impl Drop for WorkClock<'_> {
    fn drop(&mut self) {
        self.wait(true);
        self.budget.release(&self.agent);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::Outcome;
    use crate::pool::Workers;
    use crate::pool::dispatcher::Message;
    use crate::pool::workers_tests::{MINUTES, job, slug, workers};

    /// Two turns of ada's and one of bob's; each makes three calls and takes three seconds.
    fn script() -> String {
        let call = "{ wait = \"1s\" }, { tool = \"squad_decisions\", args = { query = \"x\" } }";
        let turn = |agent: &str| {
            format!("[[turn]]\nagent = \"{agent}\"\nsteps = [{call}, {call}, {call}, {{ say = \"Done.\" }}]\n")
        };
        format!("models = [\"m\"]\n{}{}{}", turn("ada"), turn("ada"), turn("bob"))
    }

    fn with(limits: BudgetSettings) -> Workers {
        playing(&script(), limits)
    }

    /// Workers whose reports are durable at once.
    fn playing(script: &str, limits: BudgetSettings) -> Workers {
        let (workers, mut messages) = workers(script, 8, MINUTES);
        tokio::spawn(async move {
            while let Some(message) = messages.recv().await {
                if let Message::Flush(done) = message {
                    let _ = done.send(Ok(()));
                }
            }
        });
        Workers { budget: Arc::new(Budget::new(limits, BTreeMap::new(), Duration::ZERO)), ..workers }
    }

    fn of_run(limits: BudgetLimits) -> BudgetSettings {
        BudgetSettings { run: limits, ..BudgetSettings::default() }
    }

    fn of_agent(limits: BudgetLimits) -> BudgetSettings {
        BudgetSettings { agent: limits, ..BudgetSettings::default() }
    }

    /// How much there is × how many share it: whatever they use of what they were promised, and however often they ask again,
    /// what is spent and promised is never more than there is, and everybody is promised something in the end.
    #[test]
    fn leases_are_never_more_than_is_left() {
        for limit in [1_u64, 10, 1000] {
            for count in [1, 2, 8] {
                let run = BudgetLimits { tokens: Some(limit), ..BudgetLimits::default() };
                let limits = BudgetSettings { run, ..BudgetSettings::default() };
                let budget = Budget::new(limits, BTreeMap::new(), Duration::ZERO);
                let agents: Vec<Slug> = (0..count).map(|at| slug(&format!("a{at}"))).collect();
                let mut left = vec![0; count];
                let mut spent = 0;
                for round in 0..4 {
                    for (at, agent) in agents.iter().enumerate() {
                        if round == 0 {
                            budget.begin(agent);
                        }
                        left[at] = budget.lease(agent).and_then(|lease| lease.tokens).expect("a lease");
                        budget.has_lease(agent);
                        let all = spent + left.iter().sum::<u64>();
                        assert!(all <= limit, "{count} of {limit}, round {round}: {spent} + {left:?}");
                    }
                    let is_fair = round == 0 || limit < 100 || left.iter().all(|left| *left > 0);
                    assert!(is_fair, "{count} of {limit}, round {round}: {left:?}");
                    for (at, agent) in agents.iter().enumerate() {
                        let used = left[at] / 3;
                        budget.settle(agent, &Usage { output_tokens: used, ..Usage::default() });
                        (left[at], spent) = (left[at] - used, spent + used);
                    }
                }
            }
        }
    }

    /// How many share how much × which renewals never arrive: whoever goes by the last lease that it has, and uses all of it
    /// unheard, spends with all others no more than there is.
    #[test]
    fn a_renewal_that_is_lost_spends_nothing_twice() {
        for limit in [10_u64, 1000] {
            for count in [2, 8] {
                for lost in 0..16_u32 {
                    let run = BudgetLimits {
                        tokens: Some(limit),
                        cost_usd: Some(limit as f64),
                        tool_calls: Some(limit),
                        billed: BTreeMap::from([("credit".to_owned(), limit as f64)]),
                        ..BudgetLimits::default()
                    };
                    let limits = BudgetSettings { run, ..BudgetSettings::default() };
                    let budget = Budget::new(limits, BTreeMap::new(), Duration::ZERO);
                    let agents: Vec<Slug> = (0..count).map(|at| slug(&format!("a{at}"))).collect();
                    agents.iter().for_each(|agent| budget.begin(agent));
                    // Tokens and calls, dollars and credits.
                    let (mut has, mut heard) = (vec![[0.0; 4]; count], [0.0; 4]);
                    for round in 0..4_u32 {
                        for (at, agent) in agents.iter().enumerate() {
                            let lease = budget.lease(agent).expect("a lease");
                            // Every second agent loses those rounds.
                            if at % 2 == 0 || lost & (1 << round) == 0 {
                                budget.has_lease(agent);
                                let counts =
                                    [lease.tokens, lease.tool_calls].map(|count| count.expect("a limit") as f64);
                                let cost = lease.cost_usd.expect("a limit");
                                has[at] = [counts[0], counts[1], cost, lease.billed["credit"]];
                            }
                            for of in 0..4 {
                                let all = heard[of] + has.iter().map(|has| has[of]).sum::<f64>();
                                let told = format!("{count} of {limit}, lost {lost:b}, round {round}: {has:?}");
                                assert!(all <= limit as f64 + 1e-9, "{told}: {all} of {of}");
                            }
                        }
                        for (at, agent) in agents.iter().enumerate() {
                            let used = has[at].map(|has| (has / 3.0_f64).floor());
                            let billed = vec![Billed { unit: "credit".to_owned(), amount: used[3] }];
                            let (output_tokens, cost_usd) = (used[0] as u64, Some(used[2]));
                            budget.settle(agent, &Usage { output_tokens, billed, cost_usd, ..Usage::default() });
                            let calls = (0..used[1] as u64).map(|call| format!("{round} {call}"));
                            calls.for_each(|call| drop(budget.take_call(agent, Some(&call))));
                            for of in 0..4 {
                                (has[at][of], heard[of]) = (has[at][of] - used[of], heard[of] + used[of]);
                            }
                        }
                    }
                }
            }
        }
    }

    /// Who is heard of × who asks: only what others may use unheard keeps one from spending the rest.
    #[test]
    fn what_may_be_used_unheard_is_nobody_elses() {
        let run = BudgetLimits { tokens: Some(100), ..BudgetLimits::default() };
        let budget = Budget::new(BudgetSettings { run, ..BudgetSettings::default() }, BTreeMap::new(), Duration::ZERO);
        let [ada, bob] = ["ada", "bob"].map(slug);
        assert_eq!(budget.lease(&ada).and_then(|lease| lease.tokens), Some(50));
        budget.settle(&bob, &Usage { output_tokens: 60, ..Usage::default() });
        for (is_away, ends) in [(false, false), (true, true), (false, false)] {
            budget.cut_off(&ada, is_away);
            let taken = (budget.take_turn(&ada).is_err(), budget.take_turn(&bob).is_err());
            assert_eq!(taken, (false, ends), "away: {is_away}");
        }
        // It may have used all of it.
        budget.cut_off(&ada, true);
        budget.release(&ada);
        assert!(budget.take_turn(&bob).is_err());
        assert_eq!(budget.lease(&bob).and_then(|lease| lease.tokens), Some(0));
        budget.cut_off(&ada, false);
        budget.release(&ada);
        assert!(budget.take_turn(&bob).is_ok());
    }

    /// Each limit, of the run and of each agent: the smaller one counts, and what has none is not limited.
    #[test]
    fn a_lease_has_the_limits_of_each_table() {
        let of = |run, agent| {
            let limits = BudgetSettings { run, agent, ..BudgetSettings::default() };
            Budget::new(limits, BTreeMap::new(), Duration::ZERO).lease(&slug("ada"))
        };
        let none = BudgetLimits::default;
        assert_eq!(of(none(), BudgetLimits { turns: Some(3), ..none() }), None);
        let all = |number: u64| BudgetLimits {
            turns: None,
            tool_calls: Some(number),
            time: Some(Duration::from_secs(number)),
            tokens: Some(number),
            cost_usd: Some(number as f64),
            billed: BTreeMap::from([("credit".to_owned(), number as f64)]),
        };
        let lease = |number: u64, seconds: f64| BudgetLease {
            tool_calls: Some(number),
            time: Some(seconds),
            tokens: Some(number),
            cost_usd: Some(number as f64),
            billed: BTreeMap::from([("credit".to_owned(), number as f64)]),
            prices: BTreeMap::new(),
        };
        // A run's is shared, but for its time.
        for (run, agent, expected) in
            [(all(8), none(), lease(4, 8.0)), (none(), all(8), lease(8, 8.0)), (all(8), all(3), lease(3, 3.0))]
        {
            assert_eq!(of(run, agent), Some(expected));
        }
        let lease = lease(4, 8.0);
        let spent = |tool_calls, tokens, cost_usd, credit: f64, seconds| Spent {
            turns: 9,
            tool_calls,
            tokens,
            cost_usd,
            billed: BTreeMap::from([("credit".to_owned(), credit)]),
            time: Duration::from_secs(seconds),
        };
        for (used, expected) in [
            (spent(4, 3, 3.9, 3.9, 7), false),
            (spent(5, 3, 3.9, 3.9, 7), true),
            (spent(4, 4, 3.9, 3.9, 7), true),
            (spent(4, 3, 4.0, 3.9, 7), true),
            (spent(4, 3, 3.9, 4.0, 7), true),
            (spent(4, 3, 3.9, 3.9, 8), true),
        ] {
            assert_eq!(lease.is_used_up(&used), expected, "{used:?}");
        }
    }

    /// Each budget × the run's and an agent's × just enough and one less: what is done is never more, and whoever wants
    /// more is stopped.
    #[tokio::test(start_paused = true)]
    async fn nobody_spends_more_than_there_is() {
        let turns = |turns| BudgetLimits { turns: Some(turns), ..BudgetLimits::default() };
        let calls = |tool_calls| BudgetLimits { tool_calls: Some(tool_calls), ..BudgetLimits::default() };
        let time = |seconds| BudgetLimits { time: Some(Duration::from_secs(seconds)), ..BudgetLimits::default() };
        for (limits, stopped) in [
            (of_run(turns(3)), 0),
            (of_run(turns(2)), 1),
            (of_agent(turns(2)), 0),
            (of_agent(turns(1)), 1),
            (of_run(calls(9)), 0),
            (of_run(calls(8)), 1),
            (of_run(calls(5)), 2),
            (of_agent(calls(6)), 0),
            (of_agent(calls(3)), 1),
            // Who works at the same time spends the run's time once.
            (of_run(time(7)), 0),
            (of_run(time(5)), 1),
            (of_agent(time(7)), 0),
            (of_agent(time(4)), 1),
            (of_run(time(2)), 3),
        ] {
            let workers = with(limits.clone());
            let mut work = workers.fan_out(vec![job("ada"), job("bob")]).await;
            work.extend(workers.fan_out(vec![job("ada")]).await);
            let ends: Vec<String> = work.iter().map(|work| format!("{} {}", work.outcome, work.reason)).collect();
            let count = work.iter().filter(|work| work.outcome == Outcome::Stopped).count();
            assert_eq!(count, stopped, "{limits:?}: {ends:?}");
            let others = work.iter().filter(|work| work.outcome == Outcome::Completed).count();
            assert_eq!(count + others, 3, "{limits:?}: {ends:?}");
            let sum = |count: fn(&Usage) -> u64, whose: Option<&str>| -> u64 {
                let of = work.iter().filter(|work| whose.is_none_or(|agent| work.agent.as_str() == agent));
                of.map(|work| count(&work.usage)).sum()
            };
            for (limits, whose) in [(&limits.run, None), (&limits.agent, Some("ada")), (&limits.agent, Some("bob"))] {
                assert!(sum(|usage| usage.turns, whose) <= limits.turns.unwrap_or(u64::MAX), "{limits:?}: {ends:?}");
                assert!(sum(|usage| usage.tool_calls, whose) <= limits.tool_calls.unwrap_or(u64::MAX), "{limits:?}");
            }
        }
    }

    /// Fifty agents, eight at a time, want three calls each: what there is is spent to the last, and nothing beyond it.
    #[tokio::test(start_paused = true)]
    async fn many_agents_share_one_budget() {
        let names: Vec<String> = (0..50).map(|number| format!("agent-{number}")).collect();
        let turns = names.iter().map(|name| script().replace("\"bob\"", &format!("\"{name}\"")));
        let turns = turns.map(|script| script.split("[[turn]]").last().unwrap_or_default().to_owned());
        let script = turns.map(|turn| format!("[[turn]]{turn}")).collect::<String>();
        for (turns, tool_calls, spent) in
            [(Some(20), None, (20, 60)), (None, Some(37), (50, 37)), (Some(9), Some(5), (9, 5))]
        {
            let limits = of_run(BudgetLimits { turns, tool_calls, ..BudgetLimits::default() });
            let workers = playing(&format!("models = [\"m\"]\n{script}"), limits);
            let work = workers.fan_out(names.iter().map(|name| job(name)).collect()).await;
            let sum = |count: fn(&Usage) -> u64| work.iter().map(|work| count(&work.usage)).sum::<u64>();
            assert_eq!((sum(|usage| usage.turns), sum(|usage| usage.tool_calls)), spent);
            assert!(work.iter().all(|work| matches!(work.outcome, Outcome::Completed | Outcome::Stopped)));
        }
    }

    /// Of tokens, cost and units, what is spent beyond the limit is one model call of each agent at work, and no more.
    #[tokio::test(start_paused = true)]
    async fn model_calls_go_beyond_by_one_for_each_agent_at_work() {
        const AT_WORK: u64 = 8;
        let names: Vec<String> = (0..50).map(|number| format!("agent-{number}")).collect();
        let call = "{ wait = \"1s\" }, { usage = { input_tokens = 90, output_tokens = 10, cost_usd = 0.5, \
                    billed = [{ unit = \"credit\", amount = 2 }] } }, { tool = \"squad_decisions\", args = { query = \"x\" } }";
        let turn = |name: &String| {
            format!("[[turn]]\nagent = \"{name}\"\nsteps = [{call}, {call}, {call}, {{ say = \"Done.\" }}]\n")
        };
        let script = names.iter().map(turn).collect::<String>();
        let units = BTreeMap::from([("credit".to_owned(), 47.0)]);
        for limits in [
            BudgetLimits { tokens: Some(2_350), ..BudgetLimits::default() },
            BudgetLimits { cost_usd: Some(11.75), ..BudgetLimits::default() },
            BudgetLimits { billed: units, ..BudgetLimits::default() },
        ] {
            let workers = playing(&format!("models = [\"m\"]\n{script}"), of_run(limits.clone()));
            let work = workers.fan_out(names.iter().map(|name| job(name)).collect()).await;
            let spent: u64 = work.iter().map(|work| work.usage.input_tokens + work.usage.output_tokens).sum();
            assert!((2_350..2_350 + AT_WORK * 100).contains(&spent), "{limits:?}: {spent}");
            assert!(work.iter().any(|work| work.outcome == Outcome::Stopped), "{limits:?}");
        }
    }

    /// What a run had spent before it was interrupted counts; what was spent on one model call too many ends the next.
    #[tokio::test(start_paused = true)]
    async fn what_was_spent_before_counts() {
        let billed = BTreeMap::from([("premium_request".to_owned(), 3.0)]);
        let spent = Spent { turns: 1, tool_calls: 2, time: Duration::from_secs(1), tokens: 90, cost_usd: 0.5, billed };
        let units =
            |unit: &str, limit| BudgetLimits { billed: [(unit.to_owned(), limit)].into(), ..BudgetLimits::default() };
        for (limits, outcome) in [
            (BudgetLimits { turns: Some(2), ..BudgetLimits::default() }, Outcome::Completed),
            (BudgetLimits { turns: Some(1), ..BudgetLimits::default() }, Outcome::Stopped),
            (BudgetLimits { tool_calls: Some(5), ..BudgetLimits::default() }, Outcome::Completed),
            (BudgetLimits { tool_calls: Some(4), ..BudgetLimits::default() }, Outcome::Stopped),
            (BudgetLimits { time: Some(Duration::from_millis(4500)), ..BudgetLimits::default() }, Outcome::Completed),
            (BudgetLimits { time: Some(Duration::from_millis(3500)), ..BudgetLimits::default() }, Outcome::Stopped),
            (BudgetLimits { tokens: Some(91), ..BudgetLimits::default() }, Outcome::Completed),
            (BudgetLimits { tokens: Some(90), ..BudgetLimits::default() }, Outcome::Stopped),
            (BudgetLimits { cost_usd: Some(0.6), ..BudgetLimits::default() }, Outcome::Completed),
            (BudgetLimits { cost_usd: Some(0.4), ..BudgetLimits::default() }, Outcome::Stopped),
            (units("premium_request", 3.5), Outcome::Completed),
            (units("premium_request", 3.0), Outcome::Stopped),
            (units("ai_credit", 3.0), Outcome::Completed),
        ] {
            let workers = with(BudgetSettings::default());
            let before = BTreeMap::from([(slug("ada"), spent.clone())]);
            for limits in [of_run(limits.clone()), of_agent(limits.clone())] {
                let budget = Arc::new(Budget::new(limits.clone(), before.clone(), spent.time));
                let work = Workers { budget, ..workers.clone() }.work(job("ada")).await;
                assert_eq!(work.outcome, outcome, "{limits:?}: {}", work.reason);
            }
        }
    }

    /// A model call that spends the rest is the last: its turn may end, but calls no tool.
    #[test]
    fn who_has_spent_all_ends_by_itself_or_at_the_next_call() {
        let limits = of_run(BudgetLimits { tokens: Some(100), ..BudgetLimits::default() });
        let budget = Budget::new(limits, BTreeMap::new(), Duration::ZERO);
        let (ada, bob) = (slug("ada"), slug("bob"));
        assert!(budget.take_turn(&ada).is_ok() && budget.take_call(&ada, Some("1")).is_ok());
        budget.settle(&ada, &Usage { input_tokens: 99, output_tokens: 9, ..Usage::default() });
        assert!(budget.take_call(&ada, Some("1")).is_ok(), "it has begun");
        let exhausted = budget.take_call(&bob, Some("1")).expect_err("nothing is left");
        assert_eq!(exhausted.to_string(), "the budget of 100 tokens is used up (`budget.tokens`)");
        assert!(budget.is_beyond(&bob, "1") && !budget.is_beyond(&ada, "1"));
        assert!(budget.take_turn(&bob).is_err() && budget.ends(&ada).is_some());
        assert!(
            budget.event(&ada, &exhausted).is_some() && budget.event(&bob, &exhausted).is_none(),
            "it is the run's"
        );
    }
}
