//! Who reviews: the members that a message asks to judge the work of others, and those whose role it is.
//!
//! A message asks a member for a review where its clause goes on with a word for one (`@rex reviews it`, `have rex check
//! bea's work`), or where one leads to its name (`reviewed by @rex`, `a review by @rex`). Verbs that are used for other
//! work too count only if their object is the work of others.

use std::ops::Range;

use super::Reading;
use super::calls;
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

fn denies(word: &str) -> bool {
    word.ends_with("n't") || List::Denying.has(word)
}

/// Some names of a sentence, joined in a list, and their clause.
struct Named<'s> {
    sentence: Words<'s>,
    names: Range<usize>,
    begin: usize,
    end: usize,
    is_apart: bool,
}

impl<'s> Named<'s> {
    fn of(sentence: Words<'s>, names: Range<usize>) -> Self {
        let ends = |at: &usize| ends_clause(sentence, *at);
        let is_apart = matches!(sentence.word(names.end), "," | ":" | "—");
        let begin = (0..names.start).rev().find(ends).map_or(0, |at| at + 1);
        let end = clause_end(sentence, names.end + usize::from(is_apart));
        Self { sentence, names, begin, end, is_apart }
    }

    /// The part of the sentence that asks them for a review by words before them: `reviewed by @rex`, `no merge without
    /// @rex`, `after @rex's approval`, `get @rex's feedback`, but not `address @rex's review comments`.
    fn led_to(&self) -> Option<Range<usize>> {
        let Self { sentence, names, begin, .. } = self;
        let sentence = *sentence;
        // `Reviewed by @rex: add an endpoint`
        let end = &clause_end(sentence, names.end);
        let word = |at: usize| sentence.word(at);
        let has = |list: List, at: usize| list.has(word(at));
        let link = (0..names.start).rev().find(|at| !has(List::Articles, *at));
        let (linked, link) = link.map_or(("", names.start), |at| (word(at), at));
        if linked == "without" {
            return (0..link).find(|at| denies(word(*at))).map(|from| from..*end);
        }
        let noun = (names.end..*end).find(|at| !has(List::Articles, *at)).unwrap_or(*end);
        let from = match linked {
            _ if (*begin..names.start).any(|at| denies(word(at))) => None,
            _ if sentence[names.end - 1].is_possessive => {
                let is_gate = List::Gates.has(linked) && has(List::ReviewNouns, noun) && !has(List::Remarks, noun + 1);
                (is_gate || (List::Wanted.has(linked) && has(List::Remarks, noun))).then_some(link)
            }
            "by" | "from" | "through" | "via" => (*begin..link).find(|at| {
                let is_wanted = || (*begin..*at).any(|at| has(List::Wanted, at));
                sentence.any(&[List::ReviewNouns, List::Judged], *at) || (has(List::Remarks, *at) && is_wanted())
            }),
            // `reviewers: @rex`
            ":" | "—" | "is" | "are" => {
                let is_title = |at: &usize| List::ReviewNouns.has(word(*at).trim_end_matches('s'));
                link.checked_sub(1).filter(is_title)
            }
            _ => None,
        };
        from.map(|from| from..*end)
    }

    /// The same by words after them: `@rex should review it`, `and then have @rex check the result`, `@rex as the
    /// reviewer`. The first word of these that says something counts as their verb.
    fn goes_on(&self, verb: usize) -> Option<Range<usize>> {
        let Self { sentence, names, begin, end, is_apart } = self;
        let sentence = *sentence;
        let word = |at: usize| sentence.word(at);
        let hands = |at: &usize| sentence.any(&[List::Giving, List::Having], *at) || word(*at) == "wait";
        let handed = ((*begin).max(names.start.saturating_sub(4))..names.start).find(hands).filter(|_| !is_apart);
        let asks = (names.end..verb).map(word).any(|word| {
            List::AsksAfterName.has(word) || is_form(List::Gives, word) || matches!(word, "as" | "for" | "is")
        });
        let is_sign = |sign: &str| sentence[names.start].text == sign;
        // `docs, review and tests` is a list; `reviews it and adds tests` is more than a review.
        let is_meant = word(verb).ends_with('s') || word(verb).ends_with("ing") || asks || handed.is_some();
        let mut others = (verb + 1..*end).filter(|at| matches!(word(*at - 1), "and" | "or"));
        let is_more = others.any(|at| is_authoring(word(at), word(at + 1)));
        let is_possessive = sentence[names.end - 1].is_possessive;
        if !(is_meant || is_sign("@") || (*is_apart && is_sign("^")))
            || is_possessive
            || is_more
            || !is_review(sentence, verb, *end)
        {
            return None;
        }
        let from = handed.unwrap_or(names.start);
        let joins = |at: &usize| matches!(word(*at), "and" | "then" | "please" | "make");
        let from = (*begin..from).rev().take_while(joins).last().unwrap_or(from);
        Some(from..*end)
    }
}

fn ends_clause(sentence: Words<'_>, at: usize) -> bool {
    let (token, word) = (&sentence[at], sentence.word(at));
    token.is_name() || token.is_mark() || (List::ClauseBegins.has(word) && word != "as")
}

fn clause_end(sentence: Words<'_>, from: usize) -> usize {
    let all = sentence.len();
    (from..all).find(|at| ends_clause(sentence, *at)).unwrap_or(all)
}

/// Whether a clause asks for a review from its verb on. `checks it again` does, `checks the logs` does not.
fn is_review(sentence: Words<'_>, verb: usize, end: usize) -> bool {
    let has = |list: List, at: usize| list.has(sentence.word(at));
    let is_form = |list: List| verb < end && is_form(list, sentence.word(verb));
    let last = (verb + 1..end).rev().find(|at| !sentence.any(&[List::Thoroughly, List::ThenWords], *at));
    let is_of_others = || {
        let skipped = |at: &usize| sentence.any(&[List::Articles, List::Thoroughly], *at);
        sentence.get(end).is_some_and(|token| token.is_possessive)
            || last.is_none_or(|at| has(List::Pronouns, at))
            || (verb + 1..end).filter(|at| !skipped(at)).take(2).any(|at| has(List::Results, at))
    };
    // `gives the ok`, `takes a look`, `does the final check`, `says whether it is right`
    let is_given = |at: usize| match sentence.word(at) {
        "look" | "whether" => true,
        "check" => matches!(sentence.word(at - 1), "final" | "last"),
        noun => List::ReviewNouns.has(noun),
    };
    is_form(List::Reviews)
        || (verb < end && has(List::ReviewNouns, verb + usize::from(sentence.word(verb) == "code")))
        || (is_form(List::Gives) && (verb + 1..end.min(verb + 6)).any(is_given))
        || (is_form(List::Checks) && is_of_others())
}

/// Whether a verb means that something is made or changed: `adds`, not `reports`, `gives feedback`, `makes sure`.
fn is_authoring(verb: &str, next: &str) -> bool {
    let y = verb.strip_suffix("ies").map(|stem| format!("{stem}y"));
    let bases = [Some(verb), verb.strip_suffix('s'), verb.strip_suffix("es"), y.as_deref()];
    let judges = is_form(List::Reviews, verb) || ["giv", "provid", "ensur"].iter().any(|stem| verb.starts_with(stem));
    bases.iter().flatten().any(|verb| is_work(verb)) && !judges && next != "sure"
}

/// Reads the user's own sentences.
pub(super) fn requests(team: &Team, message: &Message<'_>) -> Requests {
    let (mut reviews, mut works) = (Vec::new(), Vec::new());
    for sentence in message.naming() {
        let mut at = 0;
        while let Some(start) = (at..sentence.len()).find(|at| sentence[*at].is_name()) {
            at = sentence.names_end(start, |_| true);
            let members = sentence[start..at].iter().filter_map(|token| team.members.get(token.member?));
            let slugs = members.filter(|member| member.is_startable()).map(|member| member.slug.clone());
            let named = Named::of(sentence, start..at);
            let is_filler = |at: &usize| {
                matches!(sentence.word(*at), "as" | "for") || sentence.any(&[List::AfterName, List::Articles], *at)
            };
            let from = at + usize::from(named.is_apart);
            let verb = (from..named.end).find(|at| !is_filler(at)).unwrap_or(named.end);
            if let Some(asked) = named.led_to().or_else(|| named.goes_on(verb)) {
                reviews.extend(slugs.map(|agent| (agent, sentence.place(asked.clone()))));
            } else if is_authoring(sentence.word(verb), sentence.word(verb + 1)) {
                works.extend(slugs);
            }
        }
    }
    reviews.retain(|(agent, _)| !works.contains(agent));
    reviews.stable_sort_by_key(|(_, range): &(Slug, Range<usize>)| range.start);
    reviews.truncate(MOST);
    Requests { reviews, works }
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
