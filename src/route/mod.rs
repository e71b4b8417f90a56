//! Who works on a message: decided here, in code, with evidence.
//!
//! ```text
//! message → text, terms ─┬→ mention, hard, direct ───────────────────────────┬→ plan
//! team → fields → index ─┴→ signals → measure → decide → parts (several agents) ─┘
//! ```
//!
//! The router tries, in this order: agents named on the command line, messages that need no agent, members called by
//! name, labels and paths, and then a ranking of the agents by their rows, roles, charters and past work. If none of
//! these is confident enough, the router abstains: the coordinator picks from the candidates, and [`choice`] checks its
//! answer against the roster.
//!
//! The ranking compares words (`terms`) and areas of work (`lexicon`: testing, delivery, design …) with weights fitted
//! on labelled messages (`weights`). All plans use one confidence scale; each part of a split must reach the same
//! threshold as a plan for one agent.
//!
//! A listed word or a special case stays only if removing it makes routing worse on at least ten teams that it was not
//! tuned on, with messages labelled before the run. `tests/variations.rs` is the second gate: greetings, templates and
//! typos around a message must not change which agents it reaches.

mod asks_for_work;
pub(crate) mod ceremonies;
pub(crate) mod choice;
mod clauses;
mod decide;
mod denial;
pub(crate) mod direct;
pub(crate) mod evaluate;
mod evidence;
mod fields;
mod form;
mod hard;
mod index;
mod indexing;
mod lexicon;
mod measure;
mod mention;
mod message;
mod orders;
mod parts;
mod reviewers;
mod signals;
mod steps;
mod terms;
mod text;
mod tier;
mod weights;

use std::collections::BTreeSet;
use std::sync::OnceLock;

use serde::Serialize;

pub(crate) use asks_for_work::{asks_each_for_work, asks_for_work};

use crate::model::{Evidence, Member, Plan, PlanKind, Slug, Team, Tier, words};
use decide::Ranking;
use evidence::Explainer;
use index::Index;
use message::Message;
use steps::Assignment;
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

/// A team's router: made once, asked often.
pub(crate) struct Router<'t> {
    team: &'t Team,
    past: &'t [PastWork],
    /// Built on first use: many messages are decided without it.
    index: OnceLock<Index<'t>>,
}

/// Loads the tables. It takes a few milliseconds, so a thread can do it while the team is read.
pub(crate) fn read_tables() {
    lexicon::Lexicon::get();
}

impl<'t> Router<'t> {
    pub(crate) fn new(team: &'t Team, past: &'t [PastWork]) -> Self {
        Self { team, past, index: OnceLock::new() }
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
                Decided::Direct(_) => self.rank(request, text::spans(request.text)),
                Decided::Draft(draft) => draft,
            },
        };
        let requests = reviewers::requests(self.team, request.text);
        let of_parts = reviewers::of_parts(self.team, request.text, &draft.places);
        let (Draft { agents, reviewer, confidence, evidence, is_whole, .. }, steps) = self.in_steps(draft, request);
        let kind = if agents.is_empty() { PlanKind::Abstain } else { PlanKind::Agents };
        let confidence = (confidence * 100.0).round() / 100.0;
        let mut plan = planned(kind, agents, steps, Tier::Standard, confidence, evidence);
        reviewers::appoint(self.team, request.text, &requests, &of_parts, &mut plan);
        let at_once = plan.steps.iter().map(Vec::len).max().unwrap_or(0);
        let (suggested, why) = self.suggested_tier(request, &plan.agents, at_once, route_options.default_tier);
        plan.tier = route_options.tier.unwrap_or(suggested);
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
            self.complete_shortlist(request, is_whole, &mut plan.evidence);
        }
        plan
    }

    /// The members that a message calls, by `@name` or by addressing them by name.
    pub(crate) fn called(&self, message: &str) -> Vec<Slug> {
        mention::read(self.team, message, &text::spans(message)).agents
    }

    /// The tier from a single agent's charter, else from the configuration, else from the message; with the reason.
    fn suggested_tier(
        &self,
        request: &Request<'_>,
        agents: &[Slug],
        at_once: usize,
        default: Option<Tier>,
    ) -> (Tier, Evidence) {
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
        let (tier, why) = tier::of(request.text, at_once);
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
        let index = self.index();
        let message = Message::read(index, request.text, text::spans(request.text));
        let ranking = Ranking::of(index, index.signals(&message, &message.spans));
        let explainer = Explainer { index, message: request.text, ranking: &ranking };
        let is_other = |agent: &usize| is_other(&index.agents[*agent].slug);
        let considered = ranking.candidates().into_iter().filter(is_other).map(|agent| Considered {
            agent: index.agents[agent].slug.clone(),
            weight: (ranking.fits[agent] * 100.0).round() / 100.0,
            evidence: explainer.of(agent, OF_ONE_CONSIDERED),
        });
        considered.filter(|considered| considered.weight > 0.0).take(CONSIDERED).collect()
    }

    /// Fills the shortlist for the coordinator up to five candidates, and always adds the lead.
    fn complete_shortlist(&self, request: &Request<'_>, is_whole: bool, evidence: &mut Vec<Evidence>) {
        let is_startable = |slug: &Slug| self.team.startable_member(slug).is_some();
        let known: BTreeSet<Slug> = evidence.iter().map(|it| it.agent.clone()).filter(is_startable).collect();
        if !is_whole {
            let others = self.others(request, |slug| !known.contains(slug) && is_startable(slug));
            let others = others.into_iter().take(CONSIDERED.saturating_sub(known.len()));
            evidence.extend(others.flat_map(|other| other.evidence));
        }
        if let Some(lead) = lead(self.team).filter(|lead| evidence.iter().all(|it| it.agent != lead.slug)) {
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
        let fixed = mention::the_team(self.team, request.text).or_else(|| hard::read(self.team, request));
        let mut draft = fixed.unwrap_or_else(|| self.rank(request, text::spans(request.text)));
        draft.agents.retain(|agent| !requests.has(agent));
        if called.any_unavailable {
            // The user meant somebody who cannot be started, so a stand-in is less certain than the words suggest.
            draft.confidence *= weights::UNAVAILABLE;
        }
        if called.ruled_out.iter().any(|agent| draft.agents.contains(agent)) {
            draft.confidence = 0.0;
        }
        draft.abstain_if_unsure();
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
            draft.abstain_if_unsure();
            return (draft, Vec::new());
        };
        (draft, steps)
    }

    fn rank(&self, request: &Request<'_>, spans: Vec<Span>) -> Draft {
        let index = self.index();
        let message = Message::read(index, request.text, spans);
        let whole = Ranking::of(index, index.signals(&message, &message.spans));
        let draft = self.owner(index, &message).or_else(|| parts::read(index, &message, &whole));
        let mut draft = draft.unwrap_or_else(|| whole.draft(index, request.text));
        draft.abstain_if_unsure();
        draft
    }

    /// The owner of the files that a message names, unless the rest of the message asks for work that only one agent
    /// does: the agent who tests or documents a file need not own it.
    fn owner(&self, index: &Index<'_>, message: &Message<'_>) -> Option<Draft> {
        let (draft, places) = hard::in_text(self.team, message.text, &message.spans)?;
        let mut rest = message.text.to_owned();
        places.into_iter().for_each(|place| rest.replace_range(place.clone(), &" ".repeat(place.len())));
        let rest = Message::read(index, &rest, message.spans.clone());
        Ranking::of(index, index.signals(&rest, &rest.spans)).measured.specialties.is_empty().then_some(draft)
    }
}

enum Decided {
    /// No agent is started, with the reason.
    Direct(Vec<Evidence>),
    Draft(Draft),
}

/// The lead is the member with the shortest role that says so: a QA lead does not lead the team.
fn lead(team: &Team) -> Option<&Member> {
    const ROLES: [&str; 8] = ["lead", "leader", "architect", "manager", "head", "chief", "principal", "director"];
    ROLES.iter().find_map(|word| {
        let is_called = |member: &&Member| words(&member.role).any(|it| it.eq_ignore_ascii_case(word));
        team.startable().filter(is_called).min_by_key(|member| words(&member.role).count())
    })
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
    /// The evidence already covers all candidates, up to the number shown.
    is_whole: bool,
    /// Where the message assigns work to them.
    places: Vec<Assignment>,
}

impl Draft {
    fn sure(agents: Vec<Slug>, evidence: Vec<Evidence>) -> Self {
        Self { agents, evidence, confidence: 1.0, ..Self::default() }
    }

    /// The threshold is the same for every plan.
    fn abstain_if_unsure(&mut self) {
        if self.confidence < weights::SURE {
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
