//! Who reviews: the members that a message asks to judge the work of others, and those whose role it is.
//!
//! A message asks a member for a review where the member is the subject of a verb of reviewing (`@rex reviews it`,
//! `have rex check bea's work`), or where a passive or a noun names it (`reviewed by @rex`, `a review by @rex`). Verbs
//! that are used for other work too count only if their object is the work of others.

mod phrases;
mod sentence;

use std::ops::Range;

use super::mention;
use super::steps::Assignment;
use super::text::{self, OWN, Span};
use crate::model::{Evidence, Plan, Slug, Team, words};

/// What a message says of its members.
#[derive(Default)]
pub(super) struct Requests {
    /// The members that it asks for a review, and the text that does.
    reviews: Vec<(Slug, Range<usize>)>,
    /// The members that it gives other work.
    works: Vec<Slug>,
    /// The message itself orders a review: `review the diff`.
    is_review: bool,
}

/// More than this is a pasted list.
const MOST: usize = 40;

/// Reads the user's own sentences.
pub(super) fn requests(team: &Team, message: &str) -> Requests {
    let spans = text::spans(message);
    let mut requests = Requests::default();
    let own: Vec<&Span> = spans.iter().filter(|span| span.weight >= OWN && !span.is_code).collect();
    for sentence in own.chunk_by(|a, b| a.sentence == b.sentence) {
        let words = sentence::words_of(team, message, sentence);
        let begins = |at: usize| at == 0 || words[at].is_apart();
        requests.is_review |= (0..words.len()).any(|at| begins(at) && phrases::orders_review(&words, at));
        for (at, word) in words.iter().enumerate() {
            let Some(member) = word.member.filter(|member| member.is_startable()) else { continue };
            if requests.reviews.len() + requests.works.len() >= MOST {
                return requests;
            }
            if let Some(range) = phrases::review_by(&words, at) {
                requests.reviews.push((member.slug.clone(), range));
            } else if phrases::works(&words, at) {
                requests.works.push(member.slug.clone());
            }
        }
    }
    let Requests { reviews, works, .. } = &mut requests;
    reviews.retain(|(agent, _)| !works.contains(agent));
    requests
}

impl Requests {
    /// The members that the message asks for a review, in its order.
    pub(super) fn agents(&self) -> Vec<Slug> {
        let mut agents: Vec<Slug> = Vec::new();
        for (agent, _) in &self.reviews {
            if !agents.contains(agent) {
                agents.push(agent.clone());
            }
        }
        agents
    }

    /// Where the message begins to ask for each.
    pub(super) fn places(&self) -> Vec<usize> {
        self.reviews.iter().map(|(_, range)| range.start).collect()
    }

    pub(super) fn has(&self, agent: &Slug) -> bool {
        self.reviews.iter().any(|(other, _)| other == agent)
    }

    /// The message without its requests for a review, byte for byte; `None` if it has none, or the rest asks for no
    /// work.
    pub(super) fn rest(&self, message: &str) -> Option<String> {
        let mut rest = message.to_owned();
        for (_, range) in &self.reviews {
            rest.replace_range(range.clone(), &" ".repeat(range.len()));
        }
        let asks = |span: &Span| {
            const WISHES: [&str; 7] = ["need", "needs", "want", "wants", "should", "must", "let's"];
            let text = &rest[span.range.clone()];
            span.weight >= OWN
                && (super::orders::is_order(text) || words(text).any(|word| WISHES.contains(&&*word.to_lowercase())))
        };
        let is_work = !self.works.is_empty() || text::spans(&rest).iter().any(asks);
        (!self.reviews.is_empty() && is_work).then_some(rest)
    }
}

/// The agents whose part of a message orders a review: `add an endpoint, then review it`.
pub(super) fn of_parts(team: &Team, message: &str, parts: &[Assignment]) -> Vec<Slug> {
    let spans = text::spans(message);
    let orders_review = |part: &&Assignment| {
        let rest = |span: &Span| Span { range: part.range.start.max(span.range.start)..span.range.end, ..span.clone() };
        let is_in = |span: &&Span| span.range.end > part.range.start && span.weight >= OWN && !span.is_code;
        let Some(span) = spans.iter().find(is_in).map(rest).filter(|_| part.range.is_empty()) else { return false };
        let words = sentence::words_of(team, message, &[&span]);
        !words.is_empty() && phrases::orders_review(&words, 0)
    };
    parts.iter().filter(orders_review).map(|part| part.agent.clone()).collect()
}

/// Makes agents that review the plan's reviewers: those that the message asks, and those whose role it is where others
/// work. If nobody else works, the review is of what is there already, and only an agent whose role it is judges that.
pub(super) fn appoint(team: &Team, message: &str, requests: &Requests, of_parts: &[Slug], plan: &mut Plan) {
    plan.reviewer.take_if(|reviewer| plan.agents.contains(reviewer));
    plan.other_reviewers.retain(|reviewer| !plan.agents.contains(reviewer));
    let mut asked = requests.agents();
    asked.extend(of_parts.iter().filter(|agent| !requests.has(agent)).cloned());
    let role = |agent: &Slug| team.startable_member(agent).map_or(Role::Other, |member| Role::of(&member.role));
    let (judging, working): (Vec<&Slug>, Vec<&Slug>) = plan.agents.iter().partition(|agent| asked.contains(agent));
    let reviewers: Vec<Slug> = match &working[..] {
        [] if plan.agents.is_empty() => asked,
        // It would review its own work.
        [] if requests.rest(message).is_some() => Vec::new(),
        [] => judging.into_iter().filter(|agent| role(agent) != Role::Other).cloned().collect(),
        [only] if asked.is_empty() && plan.agents.len() == 1 => {
            let is_reviewer = requests.is_review && role(only) != Role::Other;
            is_reviewer.then(|| (*only).clone()).into_iter().collect()
        }
        several => {
            let is_for_all = mention::the_team(team, message).is_some();
            let is_by_role = |agent: &&Slug| {
                let is_given_work = is_for_all || requests.works.contains(agent);
                role(agent) == Role::Review && !is_given_work && follows(plan, agent)
            };
            let by_role: Vec<Slug> = several.iter().copied().filter(is_by_role).cloned().collect();
            let does_anybody_work = by_role.len() < several.len();
            asked.into_iter().chain(by_role.into_iter().filter(|_| does_anybody_work)).collect()
        }
    };
    place(plan, reviewers);
}

/// Whether an agent works beside or after another.
fn follows(plan: &Plan, agent: &Slug) -> bool {
    let last = plan.steps.iter().rposition(|step| step.contains(agent));
    let first = plan.steps.iter().position(|step| step.iter().any(|other| other != agent));
    last.zip(first).is_some_and(|(last, first)| first <= last)
}

/// Takes reviewers out of the steps, except where work follows their review or there is no other.
fn place(plan: &mut Plan, reviewers: Vec<Slug>) {
    if reviewers.is_empty() {
        return;
    }
    let is_reviewer = |agent: &Slug| reviewers.contains(agent);
    let last_work = plan.steps.iter().rposition(|step| step.iter().any(|agent| !is_reviewer(agent)));
    let mut steps: Vec<Vec<Slug>> = Vec::new();
    for (number, step) in plan.steps.iter().enumerate() {
        let (judging, working): (Vec<Slug>, Vec<Slug>) = step.iter().cloned().partition(is_reviewer);
        let is_over = last_work.is_some_and(|last| number >= last);
        steps.extend([working, if is_over { Vec::new() } else { judging }].into_iter().filter(|step| !step.is_empty()));
    }
    plan.agents.retain(|agent| steps.iter().flatten().any(|other| other == agent));
    plan.steps = steps;
    for agent in &reviewers {
        if plan.evidence.iter().all(|evidence| evidence.agent != *agent) {
            plan.evidence.push(asked(agent));
        }
    }
    let mut reviewers = reviewers.into_iter();
    plan.reviewer = reviewers.next();
    plan.other_reviewers = reviewers.collect();
}

/// Why an agent reviews that the message asks for it.
pub(super) fn asked(agent: &Slug) -> Evidence {
    Evidence::new(agent, "the message asks it for a review", "message", 1.0)
}

#[derive(Clone, Copy, PartialEq)]
enum Role {
    /// It is all that the member does: `Code reviewer`.
    Review,
    /// `Lead and reviewer`
    ReviewToo,
    Other,
}

impl Role {
    fn of(role: &str) -> Self {
        let is_it = |word: &str| {
            let word = word.to_lowercase();
            word.starts_with("review") || matches!(word.as_str(), "gatekeeper" | "approver")
        };
        if !words(role).any(is_it) {
            return Self::Other;
        }
        let is_several = role.contains(['/', '&', ',', '+', '(', '|', ';']) || words(role).any(|word| word == "and");
        if is_several { Self::ReviewToo } else { Self::Review }
    }
}

#[cfg(test)]
mod tests;
