//! Who works on a message: decided here, in code, with evidence.
//!
//! In this order: agents named by the user, `@mentions`, `team, …`, the rows of the routing table with the charters
//! behind them, and when none of these is sure the router abstains: then the coordinator decides among the candidates,
//! and [`choice`] checks its answer against the roster.

pub(crate) mod choice;
pub(crate) mod evaluate;
mod hard;
mod mention;
mod rank;
mod tier;

use crate::model::{Evidence, Plan, PlanKind, Slug, Team, Tier};

/// What the user has already decided.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    /// Checked against the roster before.
    pub(crate) agents: Vec<Slug>,
    pub(crate) tier: Option<Tier>,
}

/// A message, and what else is known of the work.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Request<'a> {
    pub(crate) text: &'a str,
    /// Of the issue the message comes from.
    pub(crate) labels: &'a [String],
    /// Files the work is about, from the project's root with `/`.
    pub(crate) paths: &'a [String],
}

impl<'a> Request<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, ..Self::default() }
    }
}

/// Work that was given to agents before: it teaches the router.
#[derive(Clone, Debug)]
pub(crate) struct PastWork {
    pub(crate) message: String,
    pub(crate) agents: Vec<Slug>,
    /// `run ID`
    pub(crate) source: String,
}

/// A team's router: made once, asked often.
pub(crate) struct Router<'t> {
    team: &'t Team,
    index: rank::Index<'t>,
}

impl<'t> Router<'t> {
    pub(crate) fn new(team: &'t Team, past: &[PastWork]) -> Self {
        Self { team, index: rank::Index::new(team, past) }
    }

    pub(crate) fn plan(&self, request: &Request<'_>, wishes: &Wishes) -> Plan {
        if wishes.tier == Some(Tier::Direct) {
            return Plan {
                kind: PlanKind::Direct,
                agents: Vec::new(),
                reviewer: None,
                tier: Tier::Direct,
                confidence: 1.0,
                evidence: Vec::new(),
            };
        }
        let draft = named(&wishes.agents)
            .or_else(|| mention::read(self.team, request.text))
            .or_else(|| hard::read(self.team, request))
            .unwrap_or_else(|| rank::rank(&self.index, request.text));
        let tier = wishes.tier.unwrap_or_else(|| tier::of(request.text, draft.agents.len()));
        Plan {
            kind: if draft.agents.is_empty() { PlanKind::Abstain } else { PlanKind::Agents },
            reviewer: draft.reviewer.filter(|reviewer| !draft.agents.contains(reviewer) && tier != Tier::Lightweight),
            agents: draft.agents,
            tier,
            confidence: draft.confidence,
            evidence: draft.evidence,
        }
    }
}

/// A plan before its tier.
#[derive(Default)]
struct Draft {
    agents: Vec<Slug>,
    reviewer: Option<Slug>,
    confidence: f64,
    evidence: Vec<Evidence>,
}

fn named(agents: &[Slug]) -> Option<Draft> {
    let evidence = agents.iter().map(|agent| Evidence {
        agent: agent.clone(),
        why: "named with --agent".to_owned(),
        source: "command line".to_owned(),
        weight: 1.0,
    });
    (!agents.is_empty()).then(|| Draft {
        agents: agents.to_vec(),
        reviewer: None,
        confidence: 1.0,
        evidence: evidence.collect(),
    })
}

#[cfg(test)]
mod tests;
