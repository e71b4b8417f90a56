//! Who reviews: the members that a message asks to judge the work of others, and those whose role it is.
//!
//! A message asks a member for a review where its clause goes on with a word for one (`@rex reviews it`, `have rex check
//! bea's work`), or where one leads to its name (`reviewed by @rex`, `a review by @rex`). Verbs that are used for other
//! work too count only if their object is the work of others.

use std::ops::Range;

use super::Reading;
use super::calls;
use super::choice::distinct;
use super::message::{Message, Words};
use super::steps::Assignment;
use super::work::{is_asked_for, is_work};
use crate::model::{Evidence, List, Plan, Slug, Sort, Team, words};

/// What a message says of its members.
#[derive(Default)]
pub(super) struct Requests {
    /// The members that it asks for a review, and the text that does.
    reviews: Vec<(Slug, Range<usize>)>,
    /// The members that it gives other work.
    works: Vec<Slug>,
}

/// More than this is a pasted list.
const MOST: usize = 40;

/// Whether a word is a form of one of a list's stems: `reviews`, `approving`.
fn is_form(list: List, word: &str) -> bool {
    let ending = |stem: &&str| word.strip_prefix(stem);
    list.entries().iter().filter_map(ending).any(|end| matches!(end, "" | "s" | "es" | "e" | "ing" | "y" | "ies"))
}

/// Some names of a sentence, joined in a list, and their clause.
struct Named<'s> {
    words: Words<'s>,
    names: Range<usize>,
    begin: usize,
    end: usize,
    is_apart: bool,
}

impl<'s> Named<'s> {
    fn of(words: Words<'s>, names: Range<usize>) -> Self {
        let is_apart = matches!(words.word(names.end), "," | ":" | "—");
        let begin = (0..names.start).rev().find(|at| ends_clause(words, *at)).map_or(0, |at| at + 1);
        let end = clause_end(words, names.end + usize::from(is_apart));
        Self { words, names, begin, end, is_apart }
    }

    /// The part of the sentence that asks them for a review by words before them: `reviewed by @rex`, `no merge without
    /// @rex`, `after @rex's approval`, `get @rex's feedback`, but not `address @rex's review comments`.
    fn led_to(&self) -> Option<Range<usize>> {
        let Self { words, names, begin, .. } = self;
        let has = |list: List, at: usize| words.has(list, at);
        let denies = |at: &usize| words.word(*at).ends_with("n't") || has(List::Denying, *at);
        // `Reviewed by @rex: add an endpoint`
        let end = clause_end(*words, names.end);
        let link = (0..names.start).rev().find(|at| !has(List::Articles, *at))?;
        let from = match words.word(link) {
            "without" => (0..link).find(denies)?,
            _ if (*begin..names.start).any(|at| denies(&at)) => return None,
            _ if words[names.end - 1].is_possessive => {
                let noun = (names.end..end).find(|at| !has(List::Articles, *at)).unwrap_or(end);
                let is_gate = has(List::Gates, link) && has(List::ReviewNouns, noun) && !has(List::Remarks, noun + 1);
                Some(link).filter(|_| is_gate || (has(List::Wanted, link) && has(List::Remarks, noun)))?
            }
            "by" | "from" | "through" | "via" => (*begin..link).find(|at| {
                let is_wanted = || (*begin..*at).any(|at| has(List::Wanted, at));
                words.any(&[List::ReviewNouns, List::Judged], *at) || (has(List::Remarks, *at) && is_wanted())
            })?,
            // `reviewers: @rex`
            ":" | "—" | "is" | "are" => {
                let is_title = |at: &usize| List::ReviewNouns.has(words.word(*at).trim_end_matches('s'));
                link.checked_sub(1).filter(is_title)?
            }
            _ => return None,
        };
        Some(from..end)
    }

    /// The same by words after them: `@rex should review it`, `and then have @rex check the result`, `@rex as the
    /// reviewer`. The first word of these that says something counts as their verb.
    fn goes_on(&self, verb: usize) -> Option<Range<usize>> {
        let Self { words, names, begin, end, is_apart } = self;
        let word = |at: usize| words.word(at);
        let hands = |at: &usize| words.any(&[List::Giving, List::Having], *at) || word(*at) == "wait";
        let handed = ((*begin).max(names.start.saturating_sub(4))..names.start).find(hands).filter(|_| !is_apart);
        let mut between = names.end..verb;
        let mut others = (verb + 1..*end).filter(|at| matches!(word(*at - 1), "and" | "or"));
        // `docs, review and tests` is a list; `reviews it and adds tests` is more than a review.
        let is_meant = (*words[names.start].text == *"@" || (*is_apart && *words[names.start].text == *"^"))
            || handed.is_some()
            || word(verb).ends_with('s')
            || word(verb).ends_with("ing")
            || between.any(|at| {
                words.has(List::AsksAfterName, at)
                    || is_form(List::Gives, word(at))
                    || matches!(word(at), "as" | "for" | "is")
            });
        let is_review = is_meant && !words[names.end - 1].is_possessive && is_review(*words, verb, *end);
        let from = handed.unwrap_or(names.start);
        let joins = |at: &usize| matches!(word(*at), "and" | "then" | "please" | "make");
        let from = (*begin..from).rev().take_while(joins).last().unwrap_or(from);
        (is_review && !others.any(|at| is_authoring(word(at), word(at + 1)))).then_some(from..*end)
    }
}

fn ends_clause(words: Words<'_>, at: usize) -> bool {
    words[at].is_name() || words[at].is_mark() || (words.has(List::ClauseBegins, at) && words.word(at) != "as")
}

fn clause_end(words: Words<'_>, from: usize) -> usize {
    (from..words.len()).find(|at| ends_clause(words, *at)).unwrap_or(words.len())
}

/// Whether a clause asks for a review from its verb on. `checks it again` does, `checks the logs` does not.
fn is_review(words: Words<'_>, verb: usize, end: usize) -> bool {
    let clause = words.part(verb..end);
    let has = |list: List, at: usize| clause.has(list, at);
    let is_form = |list: List| is_form(list, clause.word(0));
    let is_of_others = || {
        let said = |at: &usize| !clause.any(&[List::Articles, List::Thoroughly], *at);
        let last = (1..clause.len()).rev().find(|at| !clause.any(&[List::Thoroughly, List::ThenWords], *at));
        // `looks over it`, but not `then @bob looks`
        let is_looked = !["look", "go"].iter().any(|verb| clause.word(0).starts_with(verb)) || clause.len() > 1;
        words.get(end).is_some_and(|token| token.is_possessive)
            || (is_looked && last.is_none_or(|at| has(List::Pronouns, at)))
            || (1..clause.len()).filter(said).take(2).any(|at| has(List::Results, at))
    };
    // `gives the ok`, `takes a look`, `does the final check`, `says whether it is right`
    let is_given = |at: usize| match clause.word(at) {
        "look" | "whether" => true,
        "check" => matches!(clause.word(at - 1), "final" | "last"),
        _ => has(List::ReviewNouns, at),
    };
    is_form(List::Reviews)
        || has(List::ReviewNouns, usize::from(clause.word(0) == "code"))
        || (is_form(List::Gives) && (1..6).any(is_given))
        || (is_form(List::Checks) && is_of_others())
}

/// Whether a verb means that something is made or changed: `adds`, not `reports`, `gives feedback`, `makes sure`.
fn is_authoring(verb: &str, next: &str) -> bool {
    let y = verb.strip_suffix("ies").map(|stem| format!("{stem}y"));
    let mut bases = [Some(verb), verb.strip_suffix('s'), verb.strip_suffix("es"), y.as_deref()].into_iter().flatten();
    let judges = is_form(List::Reviews, verb) || ["giv", "provid", "ensur"].iter().any(|stem| verb.starts_with(stem));
    bases.any(is_work) && !judges && next != "sure"
}

/// Reads the user's own sentences.
pub(super) fn requests(team: &Team, message: &Message<'_>) -> Requests {
    let mut requests = Requests::default();
    for words in message.naming() {
        let mut at = 0;
        while let Some(start) = (at..words.len()).find(|at| words[*at].is_name()) {
            at = words.names_end(start, |_| true);
            let members = words[start..at].iter().filter_map(|token| team.members.get(token.member?));
            let slugs = members.filter(|member| member.is_startable()).map(|member| member.slug.clone());
            let named = Named::of(words, start..at);
            let is_filler = |at: &usize| {
                matches!(words.word(*at), "as" | "for") || words.any(&[List::AfterName, List::Articles], *at)
            };
            let from = at + usize::from(named.is_apart);
            let verb = (from..named.end).find(|at| !is_filler(at)).unwrap_or(named.end);
            if let Some(asked) = named.led_to().or_else(|| named.goes_on(verb)) {
                requests.reviews.extend(slugs.map(|agent| (agent, words.place(asked.clone()))));
            } else if is_authoring(words.word(verb), words.word(verb + 1)) {
                requests.works.extend(slugs);
            }
        }
    }
    let Requests { reviews, works } = &mut requests;
    reviews.retain(|(agent, _)| !works.contains(agent));
    reviews.stable_sort_by_key(|(_, range): &(Slug, Range<usize>)| range.start);
    reviews.truncate(MOST);
    requests
}

impl Requests {
    /// The members that the message asks for a review, in its order.
    pub(super) fn agents(&self) -> Vec<Slug> {
        distinct(self.reviews.iter().map(|(agent, _)| agent.clone()).collect())
    }

    /// Where the message begins to ask for each.
    pub(super) fn places(&self) -> Vec<usize> {
        self.reviews.iter().map(|(_, range)| range.start).collect()
    }

    pub(super) fn has(&self, agent: &Slug) -> bool {
        self.reviews.iter().any(|(other, _)| other == agent)
    }

    /// The message without its requests for a review; `None` if it has none, or the rest asks for no work.
    pub(super) fn rest<'m>(&self, message: &Message<'m>) -> Option<Message<'m>> {
        if self.reviews.is_empty() {
            return None;
        }
        let places: Vec<Range<usize>> = self.reviews.iter().map(|(_, range)| range.clone()).collect();
        let rest = message.without(&places);
        (!self.works.is_empty() || is_asked_for(&rest)).then_some(rest)
    }
}

/// Whether a part of a message orders a review: `… , then review it`.
fn orders_review(message: &Message<'_>, from: usize) -> bool {
    let found = message.sentences().find_map(|sentence| Some((sentence, sentence.at(from)?)));
    found.is_some_and(|(sentence, at)| {
        let end = sentence.len();
        let verb = (at..end).find(|at| !sentence.has(List::AfterName, *at)).unwrap_or(end);
        let end = (verb..end).find(|at| sentence[*at].is_mark()).unwrap_or(end);
        is_review(sentence, verb, end)
    })
}

/// Makes agents that review the plan's reviewers: those that the message asks, and those whose role it is where others
/// work. If nobody else works, the review is of what is there already, and only an agent whose role it is judges that.
/// `parts`: where the parts of the message begin that are some agent's.
pub(super) fn appoint(team: &Team, reading: &Reading<'_>, parts: &[Assignment], plan: &mut Plan) {
    let Reading { message, requests, .. } = reading;
    plan.reviewer.take_if(|reviewer| plan.agents.contains(reviewer));
    plan.other_reviewers.retain(|reviewer| !plan.agents.contains(reviewer));
    let mut asked = requests.agents();
    let of_parts = parts.iter().filter(|part| part.is_part && orders_review(message, part.start));
    asked.extend(of_parts.map(|part| part.agent.clone()).filter(|agent| !requests.has(agent)));
    let role = |agent: &Slug| team.startable_member(agent).map_or("", |member| &member.role);
    let (judging, working): (Vec<&Slug>, Vec<&Slug>) = plan.agents.iter().partition(|agent| asked.contains(agent));
    let reviewers: Vec<Slug> = match &working[..] {
        [] if plan.agents.is_empty() => asked,
        // It would review its own work.
        [] if requests.rest(message).is_some() => Vec::new(),
        [] => judging.into_iter().filter(|agent| is_reviewer(role(agent))).cloned().collect(),
        [only] if asked.is_empty() && plan.agents.len() == 1 => {
            let mut clauses = message.tokens.chunk_by(|a, b| a.clause == b.clause).map(|clause| clause[0].place.start);
            let reviews = is_reviewer(role(only)) && clauses.any(|from| orders_review(message, from));
            reviews.then(|| (*only).clone()).into_iter().collect()
        }
        several => {
            let is_for_all = calls::the_team(team, message.text).is_some();
            let is_by_role = |agent: &&Slug| {
                let is_given_work = is_for_all || requests.works.contains(agent);
                only_reviews(role(agent)) && !is_given_work && follows(plan, agent)
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
    let works = |agent: &Slug| !reviewers.contains(agent);
    let last = plan.steps.iter().rposition(|step| step.iter().any(works)).unwrap_or(plan.steps.len());
    let split = |(number, step): (usize, Vec<Slug>)| {
        let (working, judging): (Vec<Slug>, Vec<Slug>) = step.into_iter().partition(works);
        [working, if number >= last { Vec::new() } else { judging }]
    };
    plan.steps = std::mem::take(&mut plan.steps).into_iter().enumerate().flat_map(split).collect();
    plan.steps.retain(|step| !step.is_empty());
    plan.agents.retain(|agent| plan.steps.iter().flatten().any(|other| other == agent));
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

fn is_reviewer(role: &str) -> bool {
    words(&role.to_lowercase()).any(|word| word.starts_with("review") || matches!(word, "gatekeeper" | "approver"))
}

/// Whether a review is all that a member does: `Code reviewer`, not `Lead and reviewer`.
fn only_reviews(role: &str) -> bool {
    let does_more = role.contains(['/', '&', ',', '+', '(', '|', ';']) || words(role).any(|word| word == "and");
    is_reviewer(role) && !does_more
}

#[cfg(test)]
mod tests;
