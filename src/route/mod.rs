//! Who works on a message: decided here, in code, with evidence.
//!
//! ```text
//! message → text → units ─┬→ mention, hard, direct, rules ───────────────────┬→ plan
//! team → lines → index ───┴→ support → score → parts (several agents) → steps ─┘
//! ```
//!
//! The router tries, in this order: agents named on the command line, messages that need no agent, members called by
//! name, labels and paths, what is the coordinator's whatever its words (`rules`), and then a ranking of the agents. If
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

mod areas;
mod asks_for_work;
pub(crate) mod ceremonies;
pub(crate) mod choice;
mod denial;
pub(crate) mod direct;
pub(crate) mod evaluate;
mod evidence;
mod hard;
mod index;
mod lines;
mod mention;
mod orders;
mod parts;
mod reviewers;
mod rules;
mod score;
mod steps;
mod support;
mod text;
mod tier;
mod units;

use std::collections::BTreeSet;
use std::sync::OnceLock;

use serde::Serialize;

pub(crate) use asks_for_work::{asks_each_for_work, asks_for_work};

use crate::model::{Evidence, Plan, PlanKind, Slug, Team, Tier};
use areas::Areas;
use evidence::Explainer;
use index::Index;
use parts::Parts;
use rules::Asks;
use score::Ranking;
use steps::Assignment;
use support::Reading;
use text::Span;

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

/// A plan by words needs this much evidence.
const LEAST: f64 = 0.5;
/// Factor on the confidence when the message calls a member that cannot be started.
const UNAVAILABLE: f64 = 0.8;
/// The threshold of a team without settings.
const THRESHOLD: f64 = 0.70;

/// A team's router: made once, asked often.
pub(crate) struct Router<'t> {
    team: &'t Team,
    past: &'t [PastWork],
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
        Self { team, past, threshold: THRESHOLD, index: OnceLock::new() }
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
            return direct(vec![note("asked for with --tier".to_owned(), "command line")]);
        }
        let draft = match named(&route_options.agents) {
            Some(draft) => draft,
            None => match self.decide(request) {
                Decided::Direct(evidence) if route_options.tier.is_none() => return direct(evidence),
                Decided::Direct(_) => self.rank(request, &text::spans(request.text)),
                Decided::Draft(draft) => draft,
            },
        };
        let requests = reviewers::requests(self.team, request.text);
        let of_parts = reviewers::of_parts(self.team, request.text, &draft.places);
        let (Draft { agents, reviewer, confidence, evidence, asks_first, .. }, steps) = self.in_steps(draft, request);
        let kind = if agents.is_empty() || asks_first { PlanKind::Abstain } else { PlanKind::Agents };
        let confidence = (confidence * 100.0).round() / 100.0;
        let mut plan = planned(kind, agents, steps, Tier::Standard, confidence, evidence);
        reviewers::appoint(self.team, request.text, &requests, &of_parts, &mut plan);
        let (suggested, why) = self.suggested_tier(request, &plan.agents, route_options.default_tier);
        plan.tier = route_options.tier.unwrap_or(suggested);
        let is_chosen = !route_options.agents.is_empty() || route_options.tier.is_some();
        if plan.tier == Tier::Full && plan.agents.len() >= MANY && !is_chosen {
            plan.kind = PlanKind::Abstain;
            plan.evidence
                .push(note(format!("{} agents on the premium model: asks first", plan.agents.len()), "message"));
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
            self.complete_shortlist(request, &mut plan.evidence);
        }
        plan
    }

    /// The members that a message calls, by `@name` or by addressing them by name.
    pub(crate) fn called(&self, message: &str) -> Vec<Slug> {
        mention::read(self.team, message, &text::spans(message)).agents
    }

    /// The tier from a single agent's charter, else from the configuration, else from the message; with the reason.
    fn suggested_tier(&self, request: &Request<'_>, agents: &[Slug], default: Option<Tier>) -> (Tier, Evidence) {
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
        let (tier, why) = tier::of(request.text);
        (tier, note(why, "message"))
    }

    /// The `@names` of a message that nobody on the team has, each with the agent's name that it is like.
    pub(crate) fn mistyped(&self, message: &str) -> Vec<(String, Option<String>)> {
        mention::read(self.team, message, &text::spans(message)).mistyped
    }

    /// The labels and paths of a request that match nothing in the team's files, as (`label` or `path`, text).
    pub(crate) fn unknown<'r>(&self, request: &Request<'r>) -> Vec<(&'static str, &'r str)> {
        hard::unknown(self.team, request)
    }

    /// Agents that match the message but do not appear in its plan, best first.
    pub(crate) fn considered(&self, request: &Request<'_>, plan: &Plan) -> Vec<Considered> {
        let is_other =
            |slug: &Slug| !plan.agents.contains(slug) && !plan.evidence.iter().any(|evidence| evidence.agent == *slug);
        self.others(request, is_other)
    }

    /// The agents that pass `is_other` and match the message, best first.
    fn others(&self, request: &Request<'_>, is_other: impl Fn(&Slug) -> bool) -> Vec<Considered> {
        let (index, message) = (self.index(), request.text);
        let ranking = self.ranking(message, &text::spans(message));
        let explainer = Explainer { index, message, ranking: &ranking };
        let others = ranking.order.iter().filter(|agent| is_other(&index.agents[**agent].slug));
        let considered = others.map(|agent| Considered {
            agent: index.agents[*agent].slug.clone(),
            weight: (ranking.scores[*agent] * 100.0).round() / 100.0,
            evidence: explainer.of(*agent, OF_ONE_CONSIDERED),
        });
        considered.filter(|considered| !considered.evidence.is_empty()).take(CONSIDERED).collect()
    }

    /// Fills the shortlist for the coordinator up to five candidates, and always adds the lead.
    fn complete_shortlist(&self, request: &Request<'_>, evidence: &mut Vec<Evidence>) {
        let is_startable = |slug: &Slug| self.team.startable_member(slug).is_some();
        let known: BTreeSet<Slug> = evidence.iter().map(|it| it.agent.clone()).filter(is_startable).collect();
        if known.is_empty() {
            let others = self.others(request, is_startable);
            evidence.extend(others.into_iter().take(SHORTLIST).flat_map(|other| other.evidence));
        }
        if let Some(lead) = rules::lead(self.team).filter(|lead| evidence.iter().all(|it| it.agent != lead.slug)) {
            evidence.push(Evidence::new(&lead.slug, "leads the team", lead.source.to_string(), 0.0));
        }
    }

    fn decide(&self, request: &Request<'_>) -> Decided {
        let nobody = direct::read(self.team, request.text);
        let nobody = nobody.filter(|_| request.labels.is_empty() && request.paths.is_empty());
        // "Hey Bea, how are you?" calls somebody and asks for no work.
        if let Some(why) = nobody.filter(|_| !request.text.contains('@')) {
            return Decided::Direct(vec![note(why.to_owned(), "message")]);
        }
        let spans = text::spans(request.text);
        let mut called = mention::read(self.team, request.text, &spans);
        let requests = reviewers::requests(self.team, request.text);
        // `Add an endpoint, reviewed by @rex`: who adds it?
        let rest = requests.rest(request.text).filter(|_| called.agents.iter().all(|agent| requests.has(agent)));
        if rest.is_some() {
            called.agents.clear();
        } else if called.agents.is_empty() {
            called.agents = requests.agents();
            called.evidence.extend(called.agents.iter().map(reviewers::asked));
        }
        let called = match called.draft() {
            Ok(draft) => return Decided::Draft(draft),
            Err(called) => called,
        };
        let request = &Request { text: rest.as_deref().unwrap_or(request.text), ..*request };
        if let Some(draft) = mention::the_team(self.team, request.text) {
            return Decided::Draft(Draft { asks_first: self.team.startable().nth(1).is_some(), ..draft });
        }
        let fixed = hard::read(self.team, request);
        let mut draft = fixed.unwrap_or_else(|| self.rank(request, &text::spans(request.text)));
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
        Decided::Draft(draft)
    }

    /// The steps that the message asks for. If they contradict each other, the coordinator decides.
    fn in_steps(&self, mut draft: Draft, request: &Request<'_>) -> (Draft, Vec<Vec<Slug>>) {
        if draft.agents.len() < 2 {
            let steps = draft.agents.iter().map(|agent| vec![agent.clone()]).collect();
            return (draft, steps);
        }
        let spans = text::spans(request.text);
        let mut places = std::mem::take(&mut draft.places);
        if places.is_empty() {
            places = mention::read(self.team, request.text, &spans).places;
        }
        let reviews = reviewers::requests(self.team, request.text).places();
        let Some(steps) = steps::of(request.text, &spans, &draft.agents, places, &reviews) else {
            draft.evidence.push(note("the order of the work contradicts itself".to_owned(), "message"));
            draft.confidence = 0.0;
            draft.abstain_below(self.threshold);
            return (draft, Vec::new());
        };
        (draft, steps)
    }

    fn ranking(&self, message: &str, spans: &[Span]) -> Ranking {
        let index = self.index();
        Ranking::of(index, Reading::of(index, message, support::units(index, message, spans)))
    }

    fn rank(&self, request: &Request<'_>, spans: &[Span]) -> Draft {
        let (index, message) = (self.index(), request.text);
        if let Some(draft) = self.owner(message, spans) {
            return draft;
        }
        let whole = self.ranking(message, spans);
        let explainer = Explainer { index, message, ranking: &whole };
        let Some(best) = whole.best() else { return Draft::default() };
        let unsure = |confidence: f64| {
            let first = &whole.order[..SHORTLIST.min(whole.order.len())];
            // The last place is the lead's, if no other is.
            let has_lead = first.iter().any(|agent| rules::is_lead(index, *agent)) || rules::lead(self.team).is_none();
            let first = first.iter().take(if has_lead { SHORTLIST } else { SHORTLIST - 1 });
            let evidence = first.flat_map(|agent| explainer.of(*agent, OF_A_CANDIDATE));
            Draft {
                confidence: confidence.min(self.threshold - 0.01).max(0.0),
                evidence: evidence.collect(),
                ..Draft::default()
            }
        };
        let is_coordinators = match rules::asks(message, spans) {
            Asks::Question | Asks::Everybody => true,
            Asks::Decision => !rules::is_lead(index, best),
            Asks::Work => false,
        };
        let confidence = whole.confidence();
        if !rules::is_solid(&whole) || (index.agents.len() > 1 && whole.evidence(best) < LEAST) {
            return unsure(0.0);
        }
        if is_coordinators {
            return unsure(confidence);
        }
        let draft = match parts::read(index, message, &whole) {
            Parts::Unclear => return unsure(confidence),
            Parts::Several(draft) => draft,
            Parts::One => Draft {
                agents: vec![index.agents[best].slug.clone()],
                reviewer: explainer.reviewer(best),
                confidence,
                evidence: explainer.of(best, ANSWERED),
                ..Draft::default()
            },
        };
        if draft.confidence < self.threshold { unsure(draft.confidence) } else { draft }
    }

    /// The owner of the files that a message names, unless the rest of the message asks for work that only one agent
    /// does: the agent who tests or documents a file need not own it.
    fn owner(&self, message: &str, spans: &[Span]) -> Option<Draft> {
        let (draft, places) = hard::in_text(self.team, message, spans)?;
        let mut rest = message.to_owned();
        places.into_iter().for_each(|place| rest.replace_range(place.clone(), &" ".repeat(place.len())));
        let is_special = |(_, point, _): &(usize, score::Point, f64)| {
            matches!(point, score::Point::Asked(_) | score::Point::Said(_))
        };
        (!self.ranking(&rest, spans).points.iter().any(is_special)).then_some(draft)
    }
}

enum Decided {
    /// No agent is started, with the reason.
    Direct(Vec<Evidence>),
    Draft(Draft),
}

fn direct(evidence: Vec<Evidence>) -> Plan {
    let (kind, tier) = (PlanKind::Direct, Tier::Direct);
    planned(kind, Vec::new(), Vec::new(), tier, 1.0, evidence)
}

/// A plan without reviewers and meetings.
fn planned(
    kind: PlanKind,
    agents: Vec<Slug>,
    steps: Vec<Vec<Slug>>,
    tier: Tier,
    confidence: f64,
    evidence: Vec<Evidence>,
) -> Plan {
    let (reviewer, other_reviewers, ceremonies) = Default::default();
    Plan { kind, agents, steps, reviewer, other_reviewers, tier, confidence, evidence, ceremonies }
}

/// Finds the reviewers of a plan whose agents somebody else has chosen.
pub(crate) fn appoint_reviewers(team: &Team, plan: &mut Plan, message: &str) {
    reviewers::appoint(team, message, &reviewers::requests(team, message), &[], plan);
}

/// A note in the evidence that favors no agent.
fn note(why: String, source: &str) -> Evidence {
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
