//! Who reviews: the members that a message asks to judge the work of others, and those whose role it is.
//!
//! A message asks a member for a review where the member is the subject of a verb of reviewing (`@rex reviews it`,
//! `have rex check bea's work`), or where a passive or a noun names it (`reviewed by @rex`, `a review by @rex`). Verbs
//! that are used for other work too count only if their object is the work of others.

use std::ops::Range;

use super::Reading;
use super::calls;
use super::message::{Message, Sentence, Token};
use super::steps::Assignment;
use super::work::{asks_for_work, is_work};
use crate::model::{Evidence, List, Plan, Slug, Team, words};

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

/// Reads the user's own sentences.
pub(super) fn requests(team: &Team, message: &Message<'_>) -> Requests {
    let mut requests = Requests::default();
    for sentence in message.naming() {
        let mut at = 0;
        while at < sentence.tokens.len() && requests.reviews.len() + requests.works.len() < MOST {
            let end = sentence.names_end(at).max(at + 1);
            let members = sentence.tokens[at..end].iter().filter_map(|token| team.members.get(token.member?));
            let members = members.filter(|member| member.is_startable()).map(|member| member.slug.clone());
            let (fillers, is_subject) = (sentence.fillers_end(end), sentence.tokens[at].is_plain_name());
            if let Some(range) = sentence.review(at, end) {
                let range = sentence.range(range);
                requests.reviews.extend(members.map(|agent| (agent, range.clone())));
            } else if is_subject && sentence.is_authoring(fillers) {
                requests.works.extend(members);
            }
            at = end;
        }
    }
    let Requests { reviews, works } = &mut requests;
    reviews.retain(|(agent, _)| !works.contains(agent));
    requests
}

impl Sentence {
    fn is(&self, at: usize, list: List) -> bool {
        list.has(self.word(at))
    }

    /// Where the words end that a request goes on with after a name: `, should then please`.
    fn fillers_end(&self, end: usize) -> usize {
        let mut at = end + usize::from(matches!(self.word(end), "," | ":" | "—"));
        while self.is(at, List::AfterName) {
            at += 1;
        }
        at
    }

    /// The tokens that ask the names of a range for a review, or the one that is somebody's.
    fn review(&self, start: usize, end: usize) -> Option<Range<usize>> {
        let word_before = |back: usize| start.checked_sub(back).map_or("", |at| self.word(at));
        let article = usize::from(matches!(word_before(1), "the" | "our"));
        let handed = self.handed(start - article.min(start));
        // `No merge without @rex`, but not `Merge it without @rex`
        let without = (1..=4).find(|back| word_before(*back) == "without").map(|back| start - back);
        if let Some(without) = without.filter(|without| without + 1 == start || self.tokens[start].is_possessive) {
            let denial = (0..without).rev().find(|at| self.is_denial(*at))?;
            return Some(denial..self.clause_end(end));
        }
        // `after @rex's approval`, `get @rex's feedback`, but not `after @rex's review comments`, `apply @rex's feedback`
        if self.tokens[start].is_possessive {
            let is_gate = |after: &usize| List::Gates.has(word_before(1)) && !self.is(*after, List::Remarks);
            let is_wanted = List::Wanted.has(word_before(1)) && self.is(end, List::Remarks);
            let after = self.review_noun(end).filter(is_gate).or(is_wanted.then_some(end + 1))?;
            return self.unless_denied(start.saturating_sub(1), after);
        }
        if !self.tokens[start].is_plain_name() {
            return None;
        }
        let is_apart = matches!(self.word(end), "," | ":" | "—");
        let fillers = self.fillers_end(end);
        let first = end + usize::from(is_apart);
        if let Some((verb, after)) = (first..=fillers).rev().find_map(|at| Some((at, self.review_verb(at)?))) {
            let asking = (first..verb).any(|at| self.is(at, List::AsksAfterName));
            let is_asked = asking || (handed.is_some() && !is_apart);
            let word = self.word(verb);
            let is_base = !word.ends_with('s') && !word.ends_with("ing");
            let is_addressed = self.tokens[start..end].iter().any(|token| token.text == "@")
                || (is_apart && self.tokens[start].text == "^");
            // `docs, review and tests` is a list; `reviews it and adds tests` is more than a review.
            let goes_on = |at: &usize| !self.tokens[*at].is_name && !matches!(self.word(*at), "," | ";" | ":");
            let mut rest = (verb..self.tokens.len()).take_while(goes_on);
            let is_more = rest.find(|at| *at > verb && matches!(self.word(*at), "and" | "or"));
            let is_more = is_more.is_some_and(|at| self.is_authoring(at + 1));
            if (!is_base || is_addressed || is_asked) && !is_more {
                return Some(handed.unwrap_or(start)..self.clause_end(after));
            }
        }
        // `reviewed by @rex`, `a review from @rex`, `reviewers: @rex`
        let by = start.checked_sub(1 + article);
        let judged = by.filter(|by| matches!(self.word(*by), "by" | "from" | "through" | "via")).and_then(|by| {
            let is_passive = |at: usize| self.is(at, List::Judged) || (self.word(at) == "off" && at > 0);
            let near = |most: usize, is: &dyn Fn(usize) -> bool| (by.saturating_sub(most)..by).rev().find(|at| is(*at));
            let passive = if self.word(by) == "by" { near(3, &is_passive) } else { None };
            let is_wanted = |at: usize| {
                let mut before = (at.saturating_sub(3)..at).map(|at| self.word(at));
                self.is(at, List::Remarks) && before.any(|word| List::Wanted.has(word))
            };
            passive.or_else(|| near(4, &|at| self.is_review_noun(at) || is_wanted(at)))
        });
        let listed =
            by.filter(|by| matches!(self.word(*by), ":" | "—" | "is" | "are")).and_then(|by| by.checked_sub(1));
        let listed =
            listed.filter(|at| matches!(self.word(*at).trim_end_matches('s'), "reviewer" | "approver" | "review"));
        if let Some(from) = judged.or(listed) {
            return self.unless_denied(from, end);
        }
        // `@rex as the reviewer`
        let is_as =
            matches!(self.word(end), "for" | "as" | "is") || (self.word(end) == "will" && self.word(end + 1) == "be");
        let noun = end + 1 + usize::from(self.word(end) == "will");
        let after = self.review_noun(noun).filter(|_| is_as)?;
        self.unless_denied(start, after).map(|range| handed.unwrap_or(range.start)..range.end)
    }

    /// A request from a token on, to the end of the clause around another, unless it is denied.
    fn unless_denied(&self, from: usize, end: usize) -> Option<Range<usize>> {
        (!(from.saturating_sub(3)..from).any(|at| self.is_denial(at))).then(|| from..self.clause_end(end))
    }

    fn is_denial(&self, at: usize) -> bool {
        self.is(at, List::Denying) || self.word(at).ends_with("n't")
    }

    /// Where a clause ends that goes on from a token.
    fn clause_end(&self, from: usize) -> usize {
        let ends = |token: &Token| token.is_mark() || token.is_name || List::ClauseBegins.has(&token.text);
        let rest = self.tokens.get(from..).unwrap_or_default();
        rest.iter().position(ends).map_or(self.tokens.len(), |end| from + end)
    }

    /// Where words begin that hand something to whoever is named next: `and then have`, `send it to`.
    fn handed(&self, end: usize) -> Option<usize> {
        let before = |back: usize| end.checked_sub(back).filter(|at| !self.word(*at).is_empty());
        let give = (1..=4).filter_map(before).find(|at| self.is(*at, List::Giving));
        let ask = before(1).filter(|at| self.is(*at, List::Having));
        let wait = before(2).filter(|at| self.word(*at) == "wait" && self.word(at + 1) == "for");
        let mut start = ask.or(wait).or(give)?;
        while start > 0 && matches!(self.word(start - 1), "and" | "then" | "please" | "make") {
            start -= 1;
        }
        Some(start)
    }

    /// Where the object of a verb of reviewing ends. Verbs that are used for other work too need one of the work of
    /// others.
    fn review_verb(&self, at: usize) -> Option<usize> {
        let is_of = |list: List| list.entries().iter().any(|stem| is_form(self.word(at), stem));
        if is_of(List::Reviews) {
            return Some(at + 1);
        }
        if is_form(self.word(at), "sign") {
            return (at + 1..at + 3).find(|at| self.word(*at) == "off").map(|at| at + 1);
        }
        if is_of(List::Gives) || matches!((self.word(at), self.word(at + 1)), ("is", "responsible" | "in")) {
            let of = (at + 1..at + 4).rev().find(|at| matches!(self.word(*at), "for" | "of"));
            let is_look = |end: &usize| self.word(*end) == "look" && *end > at + 1;
            let look = Some(self.articles_end(at + 1)).filter(is_look).map(|at| at + 1);
            return self.review_noun(of.map_or(at + 1, |of| of + 1)).or(look);
        }
        let result_after = |object: usize| {
            let is_result = |at: &usize| {
                self.is(*at, List::Results) || self.tokens.get(*at).is_some_and(|token| token.is_possessive)
            };
            let noun = self.articles_end(object);
            [noun, noun + 1].into_iter().find(is_result).map(|result| result + 1)
        };
        // `says whether it is good`
        if ["say", "tell", "decid"].iter().any(|stem| is_form(self.word(at), stem)) {
            let object = (at + 1..at + 3).find(|at| matches!(self.word(*at), "whether" | "if"))? + 1;
            return result_after(object).or(self.is(object, List::Pronouns).then_some(object + 1));
        }
        let over = (at + 1..at + 4).find(|at| matches!(self.word(*at), "over" | "at" | "through"));
        let is_look = ["look", "go", "read"].iter().any(|stem| is_form(self.word(at), stem));
        let object = if is_of(List::Checks) { Some(at + 1) } else { over.filter(|_| is_look).map(|at| at + 1) }?;
        if let Some(after) = result_after(object) {
            return Some(after);
        }
        if matches!(self.word(object), "what" | "all") {
            return Some(object + 1);
        }
        let mut end = object + usize::from(self.is(object, List::Pronouns));
        end += usize::from(self.is(end, List::Thoroughly));
        let is_end = self.tokens.get(end).is_none_or(|token| token.is_mark() || token.is_name);
        (is_end || self.is(end, List::ThenWords)).then_some(end)
    }

    /// Whether a verb means that something is made or changed: `adds`, not `reports`, `gives feedback`, `makes sure`.
    fn is_authoring(&self, at: usize) -> bool {
        let verb = self.word(at);
        let y = verb.strip_suffix("ies").map(|stem| format!("{stem}y"));
        let bases = [Some(verb), verb.strip_suffix('s'), verb.strip_suffix("es"), y.as_deref()];
        let stems = List::Reviews.entries().iter().chain(&["giv", "provid", "ensur"]);
        let is_judging = stems.into_iter().any(|stem| is_form(verb, stem)) || self.word(at + 1) == "sure";
        bases.iter().flatten().any(|verb| is_work(verb)) && !is_judging
    }

    fn articles_end(&self, from: usize) -> usize {
        let mut at = from;
        while self.is(at, List::Articles) {
            at += 1;
        }
        at
    }

    fn is_review_noun(&self, at: usize) -> bool {
        let is_last = at > 0 && matches!(self.word(at - 1), "final" | "last");
        self.is(at, List::ReviewNouns) || (is_last && matches!(self.word(at), "check" | "look"))
    }

    /// Where a noun for a review ends that begins with articles.
    fn review_noun(&self, from: usize) -> Option<usize> {
        let at = self.articles_end(from);
        let at = at + usize::from(self.word(at) == "code");
        self.is_review_noun(at).then_some(at + 1)
    }
}

/// Whether a word is a form of the verb with this stem.
fn is_form(word: &str, stem: &str) -> bool {
    word.strip_prefix(stem).is_some_and(|end| matches!(end, "" | "s" | "es" | "e" | "ing" | "y" | "ies"))
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
        if self.reviews.is_empty() {
            return None;
        }
        let mut rest = message.to_owned();
        for (_, range) in &self.reviews {
            rest.replace_range(range.clone(), &" ".repeat(range.len()));
        }
        let is_work = !self.works.is_empty() || asks_for_work(&rest);
        is_work.then_some(rest)
    }
}

/// Whether a part of a message orders a review: `… , then review it`.
fn orders_review(message: &Message<'_>, from: usize) -> bool {
    let found = message.sentences().iter().find_map(|sentence| Some((sentence, sentence.find(from)?)));
    found.is_some_and(|(sentence, at)| {
        let mut verb = at;
        while sentence.is(verb, List::AfterName) {
            verb += 1;
        }
        (at..=verb).any(|at| sentence.review_verb(at).is_some())
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
        [] if requests.rest(message.text).is_some() => Vec::new(),
        [] => judging.into_iter().filter(|agent| is_reviewer(role(agent))).cloned().collect(),
        [only] if asked.is_empty() && plan.agents.len() == 1 => {
            let mut clauses = message.spans.iter().map(|span| span.range.start);
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
