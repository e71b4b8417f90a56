//! Who works on a message: decided here, in code, with evidence.
//!
//! ```text
//! message ─┬→ calls, hard, direct, asks ─────────────────────────────────────────┬→ plan
//!          └→ support → score → parts (several agents) → steps, reviewers ───────────┘
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
//! decisions. `tests/calibration.rs` is the fourth: a stated confidence is kept, also by large teams.

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
mod hard;
mod index;
mod lines;
mod message;
pub(crate) mod overlaps;
mod parts;
mod reviewers;
mod score;
mod stems;
mod steps;
mod support;
mod work;

use std::cell::OnceCell;
use std::sync::OnceLock;

use serde::Serialize;

pub(crate) use work::{asks_each_for_work, asks_for_work};

use crate::model::{Evidence, Plan, PlanKind, Slug, Team, Tier};
use areas::Areas;
use asks::Asks;
use calls::Addressed;
use index::{Index, Why};
use message::{Message, Names, unread};
use parts::Parts;
use reviewers::Requests;
use score::Ranking;
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

/// An agent that the message speaks for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Considered {
    pub(crate) agent: Slug,
    /// The agent's score in the ranking.
    pub(crate) weight: f64,
    /// The strongest reasons.
    pub(crate) evidence: Vec<Evidence>,
}

/// How many of them are listed beside a plan, and for the coordinator.
const CONSIDERED: usize = 5;
const SHORTLIST: usize = 6;

/// Limits on the evidence of a plan, and of each of several agents.
const REASONS: usize = 8;
const REASONS_EACH: usize = 4;

/// This many agents of the full tier are started only when somebody confirms it.
const MANY: usize = 6;

/// A plan by words needs this much evidence: one word that only often means an area is none.
const LEAST: f64 = 1.2;
/// Factor on the confidence when the message calls a member that cannot be started, and means no stand-in.
const UNAVAILABLE: f64 = 0.8;
/// The threshold of a team without settings.
const THRESHOLD: f64 = 0.70;

/// What the words of a message say, worked out once.
type Units<'u> = OnceCell<Vec<Unit<'u>>>;

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
        let is_named = !route_options.agents.is_empty();
        match route_options.tier {
            Some(Tier::Direct) => return direct(note("asked for with --tier", "command line")),
            None if !is_named => {
                if let Some(why) = self.needs_nobody(request) {
                    return direct(note(why, "message"));
                }
            }
            _ => {}
        }
        let reading = Reading::of(self.team, &self.names, request.text);
        let units = OnceCell::new();
        let mut draft = if is_named { named(&route_options.agents) } else { self.decide(request, &reading, &units) };
        let steps = steps::of(&reading, &draft).unwrap_or_else(|| {
            draft.evidence.push(note("the order of the work contradicts itself", "message"));
            draft.agents.clear();
            draft.confidence = 0.0;
            Vec::new()
        });
        let kind = if draft.agents.is_empty() || draft.asks_first { PlanKind::Abstain } else { PlanKind::Agents };
        let confidence = (draft.confidence * 100.0).round() / 100.0;
        let mut plan =
            Plan { kind, agents: draft.agents, steps, confidence, evidence: draft.evidence, ..Plan::default() };
        reviewers::appoint(self.team, &reading, &draft.places, &mut plan);
        let (tier, why) = self.tier(&reading.message, &plan.agents, route_options);
        plan.tier = tier;
        if tier == Tier::Full && plan.agents.len() >= MANY && !is_named && route_options.tier.is_none() {
            plan.kind = PlanKind::Abstain;
            let why = format!("{} agents on the premium model: asks first", plan.agents.len());
            plan.evidence.push(note(why, "message"));
        }
        // Nobody reviews what a read-only tier leaves unchanged, unless the message asks for it.
        let of_row = draft.reviewer.filter(|it| !plan.agents.is_empty() && !plan.agents.contains(it));
        plan.reviewer = plan.reviewer.take().or(of_row.filter(|_| tier != Tier::Lightweight));
        if let unread @ 1.. = unread(request.text) {
            let why = format!("the message is long: {} KiB in its middle were not read", unread.div_ceil(1024));
            plan.evidence.push(note(why, "message"));
        }
        if !plan.agents.is_empty() || route_options.tier.is_some() {
            plan.evidence.push(why);
        }
        if plan.agents.is_empty() {
            plan.evidence.splice(0..0, self.shortlist(&reading.message, &units));
        }
        plan
    }

    /// The members that a message calls, by `@name` or by addressing them by name.
    pub(crate) fn called(&self, message: &str) -> Vec<Slug> {
        Reading::of(self.team, &self.names, message).called.agents
    }

    /// The `@names` of a message that nobody on the team has, each with the agent's name that it is like.
    pub(crate) fn mistyped(&self, message: &str) -> Vec<(String, Option<String>)> {
        Reading::of(self.team, &self.names, message).called.mistyped
    }

    /// The labels and paths of a request that match nothing in the team's files, as (`label` or `path`, text).
    pub(crate) fn unknown<'r>(&self, request: &Request<'r>) -> Vec<(&'static str, &'r str)> {
        hard::unknown(self.team, request)
    }

    /// The tier that the user asks for, else that of a single agent's charter, of the configuration, of the message.
    fn tier(&self, message: &Message<'_>, agents: &[Slug], route_options: &RouteOptions) -> (Tier, Evidence) {
        let own = match agents {
            [only] => self.team.member(only).zip(self.team.charters.get(only)),
            _ => None,
        };
        let own = own.and_then(|(member, charter)| Some((member, charter.tier?)));
        let (tier, why, source) = match (route_options.tier, own, route_options.default_tier) {
            (Some(tier), ..) => (tier, "asked for".to_owned(), "command line".to_owned()),
            (_, Some((member, tier)), _) => {
                let source = member.charter.clone().unwrap_or_else(|| member.source.to_string());
                (tier, format!("the charter of {} names it", member.name), source)
            }
            (.., Some(tier)) => (tier, "`sessions.default_tier`".to_owned(), "configuration".to_owned()),
            _ => {
                let (tier, why) = asks::tier(message);
                (tier, why.to_owned(), "message".to_owned())
            }
        };
        (tier, note(format!("tier {tier}: {why}"), &source))
    }

    /// Agents that match the message but do not appear in its plan, best first.
    pub(crate) fn considered(&self, request: &Request<'_>, plan: &Plan) -> Vec<Considered> {
        let is_shown = |slug: &Slug| plan.agents.contains(slug) || plan.evidence.iter().any(|one| one.agent == *slug);
        let message = Message::read(&self.names, request.text);
        self.candidates(&message, &OnceCell::new(), CONSIDERED, |slug| !is_shown(slug))
    }

    /// The agents that a message speaks for, best first.
    fn candidates<'u>(
        &'u self,
        message: &'u Message<'_>,
        units: &Units<'u>,
        most: usize,
        is_meant: impl Fn(&Slug) -> bool,
    ) -> Vec<Considered> {
        let index = self.index();
        let ranking = self.ranking(message, units);
        let order = ranking.order().into_iter().filter(|agent| is_meant(&index.agents[*agent].slug));
        let candidates = order.map(|agent| Considered {
            agent: index.agents[agent].slug.clone(),
            weight: (ranking.scores[agent] * 100.0).round() / 100.0,
            evidence: ranking.reasons(agent, REASONS_EACH),
        });
        candidates.filter(|candidate| !candidate.evidence.is_empty()).take(most).collect()
    }

    /// Whom the coordinator chooses among: the best, and always the lead.
    fn shortlist<'u>(&'u self, message: &'u Message<'_>, units: &Units<'u>) -> Vec<Evidence> {
        let mut shortlist = self.candidates(message, units, SHORTLIST, |_| true);
        let lead = self.index().lead.filter(|lead| shortlist.iter().all(|it| it.agent != lead.slug));
        shortlist.truncate(SHORTLIST - usize::from(lead.is_some()));
        let lead = lead.map(|lead| Evidence::new(&lead.slug, "leads the team", lead.source.to_string(), 0.0));
        shortlist.into_iter().flat_map(|candidate| candidate.evidence).chain(lead).collect()
    }

    /// Why no agent is needed, if none is.
    fn needs_nobody(&self, request: &Request<'_>) -> Option<&'static str> {
        // "Hey Bea, how are you?" calls somebody and asks for no work.
        let is_bare = request.labels.is_empty() && request.paths.is_empty() && !request.text.contains('@');
        if is_bare { direct::read(self.team, &self.names, request.text) } else { None }
    }

    fn decide<'u>(&'u self, request: &Request<'_>, reading: &'u Reading<'_>, units: &Units<'u>) -> Draft {
        let Reading { message, called, requests } = reading;
        // `Add an endpoint, reviewed by @rex`: who adds it?
        let is_of_others = called.agents.iter().all(|agent| requests.has(agent));
        let rest = requests.rest(message).filter(|_| is_of_others);
        let mut evidence = called.evidence.clone();
        if rest.is_none() {
            let mut agents = called.agents.clone();
            if agents.is_empty() {
                agents = requests.agents();
                evidence.extend(agents.iter().map(reviewers::asked));
            }
            agents.retain(|agent| !called.ruled_out.contains(agent));
            if !agents.is_empty() {
                return Draft { places: called.places.clone(), ..Draft::sure(agents, evidence) };
            }
        }
        if let Some(draft) = calls::the_team(self.team, message.text) {
            return Draft { asks_first: self.team.startable().nth(1).is_some(), ..draft };
        }
        let ranked = || match &rest {
            Some(rest) => self.rank(rest, &OnceCell::new()),
            None => self.rank(message, units),
        };
        let mut draft = hard::read(self.team, request).unwrap_or_else(ranked);
        draft.agents.retain(|agent| !requests.has(agent));
        if called.any_unavailable {
            draft.confidence *= UNAVAILABLE;
        }
        let is_empty = draft.agents.is_empty();
        if is_empty
            || draft.confidence < self.threshold
            || called.ruled_out.iter().any(|agent| draft.agents.contains(agent))
        {
            draft = Draft { confidence: draft.confidence.min(self.unsure()), ..Draft::default() };
        }
        draft.evidence.extend(evidence);
        draft
    }

    fn ranking<'s, 'u: 's>(&'u self, message: &'u Message<'_>, units: &'s Units<'u>) -> Ranking<'s> {
        let units = units.get_or_init(|| support::read(self.index(), message));
        Ranking::of(self.index(), message.text, units.iter().collect(), &support::asked(units))
    }

    fn rank<'u>(&'u self, message: &'u Message<'_>, units: &Units<'u>) -> Draft {
        let index = self.index();
        if let Some(draft) = self.owner(message) {
            return draft;
        }
        let whole = self.ranking(message, units);
        let Some(best) = whole.best else { return Draft::default() };
        if !whole.is_solid() || (index.agents.len() > 1 && whole.evidence[best] < LEAST) {
            return Draft::default();
        }
        let slug = &index.agents[best].slug;
        let is_coordinators = match Asks::of(message) {
            Asks::Question => true,
            Asks::Decision => index.lead.is_none_or(|lead| lead.slug != *slug),
            Asks::Work => false,
        };
        let (draft, is_clear) = match parts::read(index, message.text, &whole) {
            Parts::Several(draft) => (draft, true),
            one_or_unclear => {
                let sure = Draft::sure(vec![slug.clone()], whole.reasons(best, REASONS));
                let draft = Draft { reviewer: whole.reviewer(best), confidence: whole.confidence(), ..sure };
                (draft, matches!(one_or_unclear, Parts::One))
            }
        };
        if is_clear && !is_coordinators && draft.confidence >= self.threshold {
            return draft;
        }
        Draft { confidence: draft.confidence.min(self.unsure()), ..Draft::default() }
    }

    /// The most that is said of a plan that is not started.
    fn unsure(&self) -> f64 {
        (self.threshold - 0.01).max(0.0)
    }

    /// The owner of the files that a message names, unless the rest of the message asks for work that only one agent
    /// does: the agent who tests or documents a file need not own it.
    fn owner(&self, message: &Message<'_>) -> Option<Draft> {
        let (draft, places) = hard::in_text(self.team, message)?;
        let (rest, units) = (message.without(&places), OnceCell::new());
        (!self.ranking(&rest, &units).points.iter().any(|it| matches!(it.why, Why::Asked(_, true) | Why::Said(_))))
            .then_some(draft)
    }
}

/// A message, and what it says of the team's members.
struct Reading<'m> {
    message: Message<'m>,
    called: Addressed,
    requests: Requests,
}

impl<'m> Reading<'m> {
    fn of(team: &Team, names: &Names, text: &'m str) -> Self {
        let message = Message::read(names, text);
        let (called, requests) = (calls::read(team, &message), reviewers::requests(team, &message));
        Self { message, called, requests }
    }
}

fn direct(why: Evidence) -> Plan {
    let evidence = vec![why];
    Plan { kind: PlanKind::Direct, tier: Tier::Direct, confidence: 1.0, evidence, ..Plan::default() }
}

/// Finds the reviewers of a plan whose agents somebody else has chosen.
pub(crate) fn appoint_reviewers(team: &Team, plan: &mut Plan, message: &str) {
    reviewers::appoint(team, &Reading::of(team, &Names::of(team), message), &[], plan);
}

/// A note in the evidence that favors no agent.
fn note(why: impl Into<String>, source: &str) -> Evidence {
    Evidence::new(&Slug::coordinator(), why, source, 0.0)
}

/// A plan before its steps, reviewers and tier.
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
}

fn named(agents: &[Slug]) -> Draft {
    let evidence = agents.iter().map(|agent| Evidence::new(agent, "named with --agent", "command line", 1.0));
    Draft::sure(agents.to_vec(), evidence.collect())
}

#[cfg(test)]
mod tests;
