//! What a run and each of its agents may spend, and all runs of a team: counted before it is spent where squad is asked, else as it is told.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::spending::{OfRun, Spending, Spent};
use super::timer::format_duration;
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
    /// How much of the run's time is counted among that of all runs.
    counted: Duration,
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
        let of_run = self.limits.run.exhausted(&state.run.now(), wanted, "budget.");
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
