//! What an agent may use of the run's budgets while nobody is there to ask, and what it has used.

use std::collections::BTreeMap;

use tokio::time::Instant;

use crate::engine::Fact;
use crate::engine::remote::frames::{BudgetLease, NumberedFact};
use crate::model::Usage;
use crate::pool::{Priced, Spent};
use crate::settings::price_of;

/// Why a turn ends that goes on without a client.
pub(super) const USED_UP: &str = "what it might use of the budgets while the connection was broken is used up";

pub(super) struct Purse {
    lease: Option<BudgetLease>,
    since: Instant,
    /// Since the client last said what it has counted, by the number of the fact that told it.
    used: BTreeMap<u64, Spent>,
    /// By session: the names of its model, and what its calls have cost by the user's prices.
    models: BTreeMap<u64, [Option<String>; 2]>,
    priced: BTreeMap<u64, Priced>,
}

impl Purse {
    pub(super) fn of(lease: Option<BudgetLease>) -> Self {
        let (used, models, priced) = Default::default();
        Self { lease, since: Instant::now(), used, models, priced }
    }

    /// Says what may be used from now on by a client that has counted what the facts up to this number tell. `told`: all
    /// facts that were kept, also by a process that was killed.
    pub(super) fn renew(
        &mut self,
        lease: Option<BudgetLease>,
        after: u64,
        told: impl FnOnce() -> std::io::Result<Vec<NumberedFact>>,
    ) -> std::io::Result<()> {
        if self.used.is_empty() && lease.is_some() {
            let of = |NumberedFact { number, fact, priced, .. }| Some((number, spent(&fact, priced)?));
            self.used.extend(told()?.into_iter().filter_map(of));
        }
        (self.lease, self.since) = (lease, Instant::now());
        self.used.retain(|number, _| *number > after);
        Ok(())
    }

    /// The names of the model that a session works on, for its price.
    pub(super) fn opened(&mut self, session: u64, models: [Option<String>; 2]) {
        self.models.insert(session, models);
    }

    /// Counts what a fact tells that was used. Returns what it adds to the cost, if the user's prices say it, or earlier ones
    /// of the session were counted by them.
    pub(super) fn count(&mut self, number: u64, session: u64, fact: &Fact) -> Option<f64> {
        let priced = self.price(session, fact);
        self.used.extend(spent(fact, priced).map(|spent| (number, spent)));
        priced
    }

    fn price(&mut self, session: u64, fact: &Fact) -> Option<f64> {
        let Fact::Usage(usage) = fact else { return None };
        let lease = self.lease.as_ref().filter(|lease| !lease.prices.is_empty())?;
        let names = self.models.get(&session)?.each_ref().map(Option::as_deref);
        let price = price_of(&lease.prices, names);
        self.priced.entry(session).or_default().cost(&usage.clone().bounded(), price)
    }

    /// Whether nothing may be used any more.
    pub(super) fn is_empty(&self) -> bool {
        let mut used = Spent { time: self.since.elapsed(), ..Spent::default() };
        self.used.values().for_each(|spent| used.add_all(spent));
        self.lease.as_ref().is_some_and(|lease| lease.is_used_up(&used))
    }
}

/// What a fact tells that was used. `priced`: what it adds to the cost, if that is known from elsewhere.
fn spent(fact: &Fact, priced: Option<f64>) -> Option<Spent> {
    let mut spent = Spent::default();
    match fact {
        Fact::Usage(usage) => {
            let told = usage.clone().bounded();
            spent.add(&Usage { cost_usd: priced.or(told.cost_usd), ..told });
        }
        Fact::ToolStarted { .. } => spent.tool_calls = 1,
        _ => return None,
    }
    Some(spent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Price;

    /// What the engine tells of its costs × what the user's prices say: the cost counts once, and a process that comes after
    /// counts what the one before had found out.
    #[tokio::test]
    async fn money_is_counted_by_the_users_prices() {
        let price = Price { input: Some(1.0), output: Some(2.0), ..Price::default() };
        let lease = |limit, models: &[&str]| BudgetLease {
            cost_usd: Some(limit),
            prices: models.iter().map(|name| ((*name).to_owned(), price.clone())).collect(),
            ..BudgetLease::default()
        };
        let million = |cost_usd| Fact::Usage(Usage { output_tokens: 1_000_000, cost_usd, ..Usage::default() });
        for (models, told, limit, lasts) in [
            // By its price, each call costs two dollars.
            (&["m"][..], &[None, None][..], 4.1, true),
            (&["m"], &[None, None], 4.0, false),
            // The name that was asked for has a price, too, and letters may be large.
            (&["big"], &[None, None], 4.0, false),
            // It has none.
            (&["other"], &[None, None], 0.1, true),
            (&[], &[None, None], 0.1, true),
            // The engine tells what all have cost since it last did.
            (&["m"], &[None, Some(3.0)], 3.1, true),
            (&["m"], &[None, Some(3.0)], 3.0, false),
            (&["m"], &[Some(1.0), None], 3.1, true),
            (&[], &[Some(1.0), Some(2.0)], 3.0, false),
        ] {
            let mut purse = Purse::of(Some(lease(limit, models)));
            purse.opened(1, [Some("M".to_owned()), Some("Big".to_owned())]);
            let mut kept = Vec::new();
            for (number, cost) in (1..).zip(told) {
                assert!(!purse.is_empty(), "{models:?} {told:?} {limit}: {number}");
                let fact = million(*cost);
                let priced = purse.count(number, 1, &fact);
                kept.push(NumberedFact { number, session: 1, fact, priced });
            }
            assert_eq!(!purse.is_empty(), lasts, "{models:?} {told:?} {limit}");
            let mut next = Purse::of(None);
            next.renew(Some(lease(limit, models)), 0, || Ok(kept)).expect("they can be read");
            assert_eq!(!next.is_empty(), lasts, "{models:?} {told:?} {limit}, read again");
        }
    }
}
