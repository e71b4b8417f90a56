//! Who works on a message: decided here, in code, with evidence.
//!
//! ```text
//! message → text → sentence ─┬→ calls, hard, direct, asks ────────────────────────┬→ plan
//!                     └→ support → score → parts (several agents) → steps, reviewers ┘
//! team → lines → index ──┘
//! ```
//!
//! The router tries, in this order: agents named on the command line, messages that need no agent, members called by
//! name, labels and paths, what is the coordinator's whatever its words (`asks`), and then a ranking of the agents. If
//! none of these is confident enough, the router abstains: the coordinator picks from the candidates, and [`choice`]
//! checks its answer against the roster.
//!
//! Each word supports an agent once, by the strongest of its reasons (`index`), and these supports are the evidence that
//! is shown. Weights are round numbers: fitting them made nothing better on teams they were not fitted to. All plans use
//! one confidence scale (`score`); a split is as sure as its parts together.
//!
//! A listed word or a special case stays only if removing it makes routing worse on at least ten teams that it was not
//! tuned on, with messages labelled before the run. `tests/variations.rs` is the second gate: greetings, templates and
//! typos around a message must not change which agents it reaches. `tests/gates.rs` is the third: lists, questions,
//! decisions, large teams.

/// A pattern that is compiled when it is first used.
macro_rules! pattern {
    ($name:ident, $pattern:expr) => {
        static $name: std::sync::LazyLock<regex::Regex> =
            std::sync::LazyLock::new(|| regex::Regex::new($pattern).expect("the pattern is fixed"));
    };
}

mod areas;
mod asks;
mod calls;
pub(crate) mod ceremonies;
pub(crate) mod choice;
pub(crate) mod direct;
pub(crate) mod evaluate;
mod evidence;
mod hard;
mod index;
mod lines;
mod parts;
mod reviewers;
mod score;
mod sentence;
mod steps;
mod support;
mod text;
mod units;
mod work;

use std::sync::OnceLock;

use serde::Serialize;

pub(crate) use work::{asks_each_for_work, asks_for_work};

use crate::model::{Evidence, Plan, PlanKind, Slug, Team, Tier};
use areas::Areas;
use asks::Asks;
use evidence::Explainer;
use index::Index;
use parts::Parts;
use score::Ranking;
use sentence::{Message, Names};
use steps::Assignment;
use support::Unit;

/// What the user has already decided.
#[derive(Clone, Debug, Default)]
pub(crate) struct RouteOptions {
    /// Checked against the roster before.
    pub(crate) agents: Vec<Slug>,
    pub(crate) tier: Option<Tier>,
    /// Where nobody asks for one, and no charter names one.
    pub(crate) default_tier: Option<Tier>,
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

/// Earlier work and the agents who got it. The router learns from it.
#[derive(Clone, Debug)]
pub(crate) struct PastWork {
    pub(crate) message: String,
    pub(crate) agents: Vec<Slug>,
    /// `run ID`
    pub(crate) source: String,
}

/// An agent that was not chosen, with the evidence for it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Considered {
    pub(crate) agent: Slug,
    /// The agent's score in the ranking.
    pub(crate) weight: f64,
    /// The strongest reasons.
    pub(crate) evidence: Vec<Evidence>,
}

/// How many of them are listed, and how many reasons each.
const CONSIDERED: usize = 5;
const OF_ONE_CONSIDERED: usize = 3;

/// Limits on the evidence of a plan, and of each candidate for the coordinator.
const ANSWERED: usize = 8;
const SHORTLIST: usize = 6;
const OF_A_CANDIDATE: usize = 4;

/// This many agents of the full tier are started only when somebody confirms it.
const MANY: usize = 6;

/// A plan by words needs this much evidence: one word that only often means an area is none.
const LEAST: f64 = 1.2;
/// Factor on the confidence when the message calls a member that cannot be started.
const UNAVAILABLE: f64 = 0.8;
/// The threshold of a team without settings.
const THRESHOLD: f64 = 0.70;

/// A team's router: made once, asked often.
pub(crate) struct Router<'t> {
    team: &'t Team,
    past: &'t [PastWork],
    names: Names,
    /// It answers from this confidence on.
    threshold: f64,
    /// Built on first use: many messages are decided without it.
    index: OnceLock<Index<'t>>,
}

/// Loads the tables. It takes a few milliseconds, so a thread can do it while the team is read.
pub(crate) fn read_tables() {
    Areas::get();
}

impl<'t> Router<'t> {
    pub(crate) fn new(team: &'t Team, past: &'t [PastWork]) -> Self {
        Self { team, past, names: Names::of(team), threshold: THRESHOLD, index: OnceLock::new() }
    }

    /// With `[routing] threshold`.
    pub(crate) fn answering_from(self, threshold: f64) -> Self {
        Self { threshold, ..self }
    }

    fn index(&self) -> &Index<'t> {
        self.index.get_or_init(|| Index::new(self.team, self.past))
    }

    pub(crate) fn plan(&self, request: &Request<'_>, route_options: &RouteOptions) -> Plan {
        if route_options.tier == Some(Tier::Direct) {
            return direct(note("asked for with --tier", "command line"));
        }
        let message = Message::read(&self.names, request.text);
        let draft = match self.direct(request).filter(|_| route_options.agents.is_empty()) {
            Some(why) if route_options.tier.is_none() => return direct(note(why, "message")),
            Some(_) => self.rank(&message),
            None => named(&route_options.agents).unwrap_or_else(|| self.decide(request, &message)),
        };
        let requests = reviewers::requests(self.team, &message);
        let parts = draft.places.clone();
        let (draft, steps) = self.in_steps(draft, &message, &requests);
        let Draft { agents, reviewer, confidence, evidence, asks_first, .. } = draft;
        let kind = if agents.is_empty() || asks_first { PlanKind::Abstain } else { PlanKind::Agents };
        let confidence = (confidence * 100.0).round() / 100.0;
        let mut plan = Plan { agents, steps, confidence, evidence, ..empty(kind) };
        reviewers::appoint(self.team, &message, &requests, &parts, &mut plan);
        let (suggested, why) = self.suggested_tier(&message, &plan.agents, route_options.default_tier);
        plan.tier = route_options.tier.unwrap_or(suggested);
        let is_chosen = !route_options.agents.is_empty() || route_options.tier.is_some();
        if plan.tier == Tier::Full && plan.agents.len() >= MANY && !is_chosen {
            plan.kind = PlanKind::Abstain;
            let why = format!("{} agents on the premium model: asks first", plan.agents.len());
            plan.evidence.push(note(why, "message"));
        }
        // Nobody reviews what a read-only tier leaves unchanged, unless the message asks for it.
        let of_row = reviewer.filter(|reviewer| !plan.agents.contains(reviewer) && plan.tier != Tier::Lightweight);
        plan.reviewer = plan.reviewer.take().or(of_row);
        if let unread @ 1.. = text::unread(request.text) {
            let why = format!("the message is long: {} KiB in its middle were not read", unread.div_ceil(1024));
            plan.evidence.push(note(why, "message"));
        }
        match route_options.tier {
            Some(tier) => plan.evidence.push(note(format!("tier {tier}: asked for"), "command line")),
            None if !plan.agents.is_empty() => plan.evidence.push(why),
            None => {}
        }
        if plan.agents.is_empty() {
            self.complete_shortlist(&message, &mut plan.evidence);
        }
        plan
    }

    /// The members that a message calls, by `@name` or by addressing them by name.
    pub(crate) fn called(&self, message: &str) -> Vec<Slug> {
        calls::read(self.team, &Message::read(&self.names, message)).agents
    }

    /// The `@names` of a message that nobody on the team has, each with the agent's name that it is like.
    pub(crate) fn mistyped(&self, message: &str) -> Vec<(String, Option<String>)> {
        calls::read(self.team, &Message::read(&self.names, message)).mistyped
    }

    /// The labels and paths of a request that match nothing in the team's files, as (`label` or `path`, text).
    pub(crate) fn unknown<'r>(&self, request: &Request<'r>) -> Vec<(&'static str, &'r str)> {
        hard::unknown(self.team, request)
    }

    /// The tier from a single agent's charter, else from the configuration, else from the message; with the reason.
    fn suggested_tier(&self, message: &Message<'_>, agents: &[Slug], default: Option<Tier>) -> (Tier, Evidence) {
        let own = match agents {
            [only] => self.team.member(only).zip(self.team.charters.get(only)),
            _ => None,
        };
        if let Some((member, tier)) = own.and_then(|(member, charter)| Some((member, charter.tier?))) {
            let source = member.charter.clone().unwrap_or_else(|| member.source.to_string());
            return (tier, note(format!("tier {tier}: the charter of {} names it", member.name), &source));
        }
        if let Some(tier) = default {
            return (tier, note(format!("tier {tier}: `sessions.default_tier`"), "configuration"));
        }
        let (tier, why) = asks::tier(message);
        (tier, note(why, "message"))
    }

    /// Agents that match the message but do not appear in its plan, best first.
    pub(crate) fn considered(&self, request: &Request<'_>, plan: &Plan) -> Vec<Considered> {
        let is_other =
            |slug: &Slug| !plan.agents.contains(slug) && !plan.evidence.iter().any(|evidence| evidence.agent == *slug);
        self.others(&Message::read(&self.names, request.text), is_other)
    }

    /// The agents that pass `is_other` and match the message, best first.
    fn others(&self, message: &Message<'_>, is_other: impl Fn(&Slug) -> bool) -> Vec<Considered> {
        let index = self.index();
        let units = support::read(index, message.text, &message.spans);
        let ranking = self.ranking(&units);
        let explainer = Explainer { index, message: message.text, ranking: &ranking };
        let others = ranking.order.iter().filter(|agent| is_other(&index.agents[**agent].slug));
        let considered = others.map(|agent| Considered {
            agent: index.agents[*agent].slug.clone(),
            weight: (ranking.scores[*agent] * 100.0).round() / 100.0,
            evidence: explainer.of(*agent, OF_ONE_CONSIDERED),
        });
        considered.filter(|considered| !considered.evidence.is_empty()).take(CONSIDERED).collect()
    }

    /// Fills the shortlist for the coordinator up to five candidates, and always adds the lead.
    fn complete_shortlist(&self, message: &Message<'_>, evidence: &mut Vec<Evidence>) {
        let is_startable = |slug: &Slug| self.team.startable_member(slug).is_some();
        if !evidence.iter().any(|it| is_startable(&it.agent)) {
            evidence.extend(self.others(message, is_startable).into_iter().flat_map(|other| other.evidence));
        }
        if let Some(lead) = asks::lead(self.team).filter(|lead| evidence.iter().all(|it| it.agent != lead.slug)) {
            evidence.push(Evidence::new(&lead.slug, "leads the team", lead.source.to_string(), 0.0));
        }
    }

    /// Why no agent is needed, if none is.
    fn direct(&self, request: &Request<'_>) -> Option<&'static str> {
        // "Hey Bea, how are you?" calls somebody and asks for no work.
        let is_bare = request.labels.is_empty() && request.paths.is_empty() && !request.text.contains('@');
        if is_bare { direct::read(self.team, request.text) } else { None }
    }

    fn decide(&self, request: &Request<'_>, message: &Message<'_>) -> Draft {
        let mut called = calls::read(self.team, message);
        let requests = reviewers::requests(self.team, message);
        // `Add an endpoint, reviewed by @rex`: who adds it?
        let rest = requests.rest(message.text).filter(|_| called.agents.iter().all(|agent| requests.has(agent)));
        if rest.is_some() {
            called.agents.clear();
        } else if called.agents.is_empty() {
            called.agents = requests.agents();
            called.evidence.extend(called.agents.iter().map(reviewers::asked));
        }
        let called = match called.draft() {
            Ok(draft) => return draft,
            Err(called) => called,
        };
        let of_rest = rest.as_deref().map(|rest| Message::read(&self.names, rest));
        let message = of_rest.as_ref().unwrap_or(message);
        if let Some(draft) = calls::the_team(self.team, message.text) {
            return Draft { asks_first: self.team.startable().nth(1).is_some(), ..draft };
        }
        let mut draft = hard::read(self.team, request).unwrap_or_else(|| self.rank(message));
        draft.agents.retain(|agent| !requests.has(agent));
        if called.any_unavailable {
            // The user meant somebody who cannot be started, so a stand-in is less certain than the words suggest.
            draft.confidence *= UNAVAILABLE;
        }
        if called.ruled_out.iter().any(|agent| draft.agents.contains(agent)) {
            draft.confidence = 0.0;
        }
        draft.abstain_below(self.threshold);
        draft.evidence.extend(called.evidence);
        draft
    }

    /// The steps that the message asks for. If they contradict each other, the coordinator decides.
    fn in_steps(
        &self,
        mut draft: Draft,
        message: &Message<'_>,
        requests: &reviewers::Requests,
    ) -> (Draft, Vec<Vec<Slug>>) {
        if draft.agents.len() < 2 {
            let steps = draft.agents.iter().map(|agent| vec![agent.clone()]).collect();
            return (draft, steps);
        }
        let mut places = std::mem::take(&mut draft.places);
        if places.is_empty() {
            places = calls::read(self.team, message).places;
        }
        let steps = steps::of(message, &draft.agents, places, &requests.places()).unwrap_or_else(|| {
            draft.evidence.push(note("the order of the work contradicts itself", "message"));
            draft.confidence = 0.0;
            draft.abstain_below(self.threshold);
            Vec::new()
        });
        (draft, steps)
    }

    fn ranking<'u>(&self, units: &'u [Unit]) -> Ranking<'u> {
        Ranking::of(self.index(), units.iter().collect(), &support::asked(units, false))
    }

    fn rank(&self, message: &Message<'_>) -> Draft {
        let index = self.index();
        if let Some(draft) = self.owner(message) {
            return draft;
        }
        let units = support::read(index, message.text, &message.spans);
        let whole = self.ranking(&units);
        let Some(best) = whole.best() else { return Draft::default() };
        let explainer = Explainer { index, message: message.text, ranking: &whole };
        let lead = asks::lead(self.team).map(|lead| &lead.slug);
        let leads = |agent: &usize| lead == Some(&index.agents[*agent].slug);
        let unsure = |confidence: f64| {
            let first = &whole.order[..SHORTLIST.min(whole.order.len())];
            // The last place is the lead's, if no other is.
            let count = if lead.is_none() || first.iter().any(leads) { SHORTLIST } else { SHORTLIST - 1 };
            let evidence = first.iter().take(count).flat_map(|agent| explainer.of(*agent, OF_A_CANDIDATE));
            let confidence = confidence.min(self.threshold - 0.01).max(0.0);
            Draft { confidence, evidence: evidence.collect(), ..Draft::default() }
        };
        if !whole.is_solid() || (index.agents.len() > 1 && whole.evidence[best] < LEAST) {
            return unsure(0.0);
        }
        let is_coordinators = match Asks::of(message) {
            Asks::Question | Asks::Everybody => true,
            Asks::Decision => !leads(&best),
            Asks::Work => false,
        };
        let confidence = whole.confidence();
        if is_coordinators {
            return unsure(confidence);
        }
        match parts::read(index, message.text, &whole) {
            Parts::Several(draft) if draft.confidence >= self.threshold => draft,
            Parts::Several(draft) => unsure(draft.confidence),
            Parts::One if confidence >= self.threshold => Draft {
                agents: vec![index.agents[best].slug.clone()],
                reviewer: explainer.reviewer(best),
                confidence,
                evidence: explainer.of(best, ANSWERED),
                ..Draft::default()
            },
            Parts::One | Parts::Unclear => unsure(confidence),
        }
    }

    /// The owner of the files that a message names, unless the rest of the message asks for work that only one agent
    /// does: the agent who tests or documents a file need not own it.
    fn owner(&self, message: &Message<'_>) -> Option<Draft> {
        let (draft, places) = hard::in_text(self.team, message.text, &message.spans)?;
        let mut rest = message.text.to_owned();
        places.into_iter().for_each(|place| rest.replace_range(place.clone(), &" ".repeat(place.len())));
        let units = support::read(self.index(), &rest, &message.spans);
        (!self.ranking(&units).points.iter().any(|point| point.is_alone)).then_some(draft)
    }
}

fn direct(why: Evidence) -> Plan {
    Plan { tier: Tier::Direct, confidence: 1.0, evidence: vec![why], ..empty(PlanKind::Direct) }
}

/// A plan without agents, reviewers and meetings.
fn empty(kind: PlanKind) -> Plan {
    let (agents, steps, reviewer, other_reviewers, evidence, ceremonies) = Default::default();
    let (tier, confidence) = (Tier::Standard, 0.0);
    Plan { kind, agents, steps, reviewer, other_reviewers, tier, confidence, evidence, ceremonies }
}

/// Finds the reviewers of a plan whose agents somebody else has chosen.
pub(crate) fn appoint_reviewers(team: &Team, plan: &mut Plan, message: &str) {
    let message = Message::read(&Names::of(team), message);
    reviewers::appoint(team, &message, &reviewers::requests(team, &message), &[], plan);
}

/// A note in the evidence that favors no agent.
fn note(why: impl Into<String>, source: &str) -> Evidence {
    Evidence::new(&Slug::coordinator(), why, source, 0.0)
}

/// A plan before its tier.
#[derive(Default)]
struct Draft {
    agents: Vec<Slug>,
    reviewer: Option<Slug>,
    confidence: f64,
    evidence: Vec<Evidence>,
    /// Where the message assigns work to them.
    places: Vec<Assignment>,
    /// The coordinator or a person confirms it.
    asks_first: bool,
}

impl Draft {
    fn sure(agents: Vec<Slug>, evidence: Vec<Evidence>) -> Self {
        Self { agents, evidence, confidence: 1.0, ..Self::default() }
    }

    /// The threshold is the same for every plan.
    fn abstain_below(&mut self, threshold: f64) {
        if self.confidence < threshold {
            self.agents.clear();
            self.reviewer = None;
        }
    }
}

fn named(agents: &[Slug]) -> Option<Draft> {
    let evidence = agents.iter().map(|agent| Evidence::new(agent, "named with --agent", "command line", 1.0));
    (!agents.is_empty()).then(|| Draft::sure(agents.to_vec(), evidence.collect()))
}

#[cfg(test)]
mod tests;
