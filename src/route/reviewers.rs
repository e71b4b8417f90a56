//! Who reviews: the members that a message asks to judge the work of others, and those whose role it is.
//!
//! A message asks a member for a review where the member is the subject of a verb of reviewing (`@rex reviews it`,
//! `have rex check bea's work`), or where a passive or a noun names it (`reviewed by @rex`, `a review by @rex`). Verbs
//! that are used for other work too count only if their object is the work of others.

use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::Reading;
use super::calls;
use super::message::{Message, Sentence};
use super::steps::Assignment;
use super::work::{asks_for_work, is_work};
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

// How a sentence asks for a review, where names are `@` (`^`, `~` without that sign, `&` for `rex's`, `#` if excluded).
// `{Part}` stands for what is below or for a list. `n` are the names, `e` belongs to what follows.
const FORMS: [&str; 5] = [
    // `no merge without @rex`, `don't merge it without @rex's ok`
    r"(?:{Denying}|\S+n't) (?:.*? )?without (?P<n>[@^~#](?:(?: ,)?(?: and| or)? [@^~#&])*|(?:\S+ ){0,3}&)",
    // `after @rex's approval`, `get @rex's feedback`, but not `after @rex's review comments`, `apply @rex's feedback`
    r"(?P<d>)(?:{Gates} (?P<n>&) {Articles}*{Noun}(?: (?P<not>{Remarks}))?|{Wanted} (?P<m>&) {Remarks})",
    // `@rex should review it`, `and then have @rex check the result`
    r"(?P<h>{Handed})?(?P<n>{Names})(?P<apart> [,:—])?(?P<fill>(?: {AfterName})*) (?P<v>{Verb})",
    // `reviewed by @rex`, `I want feedback from @rex`, `reviewers: @rex`
    r"(?P<d>)(?:(?:{Judged}|\S+ off)(?: \S+){0,2} by|(?:{Noun}|{Wanted} (?:\S+ ){0,2}{Remarks})(?: \S+){0,3} (?:by|from|through|via)|(?:reviewer|approver|review)s? (?::|—|is|are)) (?:the |our )?(?P<n>{Names})",
    // `@rex as the reviewer`
    r"(?P<d>)(?P<h>{Handed})?(?P<n>{Names}) (?:for|as|is|will be) {Articles}*{Noun}",
];
const ENDING: &str = "(?:s|es|e|ing|y|ies)?";
const PARTS: [(&str, &str); 6] = [
    (
        "{Verb}",
        r"(?:{Reviews~}|signs?e?(?:ing)? (?:\S+ )?off|(?:{Gives~}|is (?:responsible|in)) (?:(?:\S+ ){0,2}(?:for|of) )?{Articles}*(?:{Noun}|look)|(?:say|tell|decid)(?:s|es|ing|e)? (?:\S+ )?(?:whether|if) (?:{Result}|{Pronouns})|(?:{Checks~}|(?:look|go|read)(?:s|es|ing|e)? (?:\S+ ){0,2}(?:over|at|through))(?: {Result}| (?:what|all)\b|(?: {Pronouns})?(?: {Thoroughly})?(?P<e>$| (?:{ThenWords}|[^\w`]))))",
    ),
    // `and then have`, `send it to`
    ("{Handed}", r"(?:(?:and|then|please|make) )*(?:{Having}|wait for|{Giving}(?: \S+){0,3}) (?:the |our )?"),
    ("{Names}", "[@^~](?:(?: ,)?(?: and| or)? [@^~])*"),
    ("{Result}", r"{Articles}*(?:\S+ )?(?:{Results}|&)"),
    ("{Noun}", r"(?:code )?(?:{ReviewNouns}|(?:final|last) (?:check|look)\b)"),
    ("{Articles}*", "(?:{Articles} )*"),
];

/// A pattern with its parts. `{List}` stands for a word of a list, `{List~}` for a form of one of its stems.
fn grammar(pattern: &str) -> Regex {
    pattern!(LIST, r"\{([A-Z]\w+)(~?)\}");
    let all = PARTS.iter().fold(pattern.to_owned(), |pattern, (mark, text)| pattern.replace(mark, text));
    let words = |found: &Captures<'_>| {
        let words = List::named(&found[1]).map_or(&[][..], List::entries).join("|");
        format!("(?:{words}){}\\b", if found[2].is_empty() { "" } else { ENDING })
    };
    Regex::new(&LIST.replace_all(&all, words)).expect("the pattern is fixed")
}

static ASKS: LazyLock<Vec<Regex>> =
    LazyLock::new(|| FORMS.iter().map(|form| grammar(&format!(r"(?:^| ){form}"))).collect());
static WORK: LazyLock<Regex> =
    LazyLock::new(|| grammar(r"(?P<n>{Names})(?: [,:—])?(?: {AfterName})* (?P<v>[^\s@^~&#]+)(?: (?P<o>[^\s@^~&#]+))?"));
static JUDGES: LazyLock<Regex> = LazyLock::new(|| grammar("^(?:{Reviews~}|(?:giv|provid|ensur)(?:e|es|ing))$"));
static ORDER: LazyLock<Regex> = LazyLock::new(|| grammar("^(?:{AfterName} )*{Verb}"));
static CLAUSE: LazyLock<Regex> = LazyLock::new(|| grammar(r" (?:{ClauseBegins}|[,;:(.!?—@^~&#](?: |$))"));

/// A sentence as the forms read it, and where each token begins in it.
struct Line<'s> {
    sentence: &'s Sentence,
    text: String,
    starts: Vec<usize>,
}

impl<'s> Line<'s> {
    fn of(sentence: &'s Sentence) -> Self {
        let (mut text, mut starts) = (String::new(), Vec::with_capacity(sentence.tokens.len()));
        for token in &sentence.tokens {
            text.push_str(if text.is_empty() { "" } else { " " });
            starts.push(text.len());
            text.push_str(match token.text.as_str() {
                _ if token.is_name && token.is_possessive => "&",
                "!" if token.is_name => "#",
                other => other,
            });
        }
        Self { sentence, text, starts }
    }

    fn token(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start < at)
    }

    /// The members that stand in a part of it.
    fn members(&self, team: &Team, part: Range<usize>) -> Vec<Slug> {
        let tokens = &self.sentence.tokens[self.token(part.start)..self.token(part.end)];
        let members = tokens.iter().filter_map(|token| team.members.get(token.member?));
        members.filter(|member| member.is_startable()).map(|member| member.slug.clone()).collect()
    }

    /// What a form that a sentence has asks for, from where to where in the message; `None` if that is no review.
    fn review(&self, found: &Captures<'_>) -> Option<(Range<usize>, Range<usize>)> {
        let part = |name: &str| found.name(name).map(|part| part.range());
        let names = part("n").or_else(|| part("m"))?;
        let all = found.get(0)?;
        let from = all.start() + usize::from(all.as_str().starts_with(' '));
        let is_denied = part("d").is_some()
            && self.text[..from]
                .split(' ')
                .rev()
                .skip(1)
                .take(3)
                .any(|it| it.ends_with("n't") || List::Denying.has(it));
        if part("not").is_some() || is_denied {
            return None;
        }
        let end = part("e").map_or(all.end(), |rest| rest.start);
        if let Some(verb) = part("v") {
            let word = self.text[verb.start..].split(' ').next().unwrap_or_default();
            let is_apart = part("apart").is_some();
            let fill = part("fill").map_or("", |fill| &self.text[fill]);
            let asks = fill.split(' ').any(|word| List::AsksAfterName.has(word)) || (part("h").is_some() && !is_apart);
            let is_addressed =
                self.text[names.clone()].contains('@') || (is_apart && self.text[names.start..].starts_with('^'));
            // `docs, review and tests` is a list; `reviews it and adds tests` is more than a review.
            let is_base = !word.ends_with('s') && !word.ends_with("ing");
            if (is_base && !is_addressed && !asks) || self.goes_on(verb.start) {
                return None;
            }
        }
        let end = CLAUSE.find_at(&self.text, end).map_or(self.text.len(), |next| next.start());
        Some((names, self.sentence.range(self.token(from)..self.token(end))))
    }

    /// Whether other work follows in the clause from a place on.
    fn goes_on(&self, from: usize) -> bool {
        let clause = self.text[from..].split([',', ';', ':', '@', '^', '~', '&', '#']).next().unwrap_or_default();
        let mut words = clause.split(' ').skip_while(|word| !matches!(*word, "and" | "or")).skip(1);
        words.next().is_some_and(|verb| is_authoring(verb, words.next().unwrap_or_default()))
    }
}

/// Whether a verb means that something is made or changed: `adds`, not `reports`, `gives feedback`, `makes sure`.
fn is_authoring(verb: &str, next: &str) -> bool {
    let y = verb.strip_suffix("ies").map(|stem| format!("{stem}y"));
    let bases = [Some(verb), verb.strip_suffix('s'), verb.strip_suffix("es"), y.as_deref()];
    bases.iter().flatten().any(|verb| is_work(verb)) && !JUDGES.is_match(verb) && next != "sure"
}

/// Reads the user's own sentences.
pub(super) fn requests(team: &Team, message: &Message<'_>) -> Requests {
    let (mut reviews, mut works) = (Vec::new(), Vec::new());
    for line in message.naming().map(Line::of) {
        let asked = ASKS.iter().flat_map(|form| form.captures_iter(&line.text)).filter_map(|it| line.review(&it));
        let asked: Vec<(Range<usize>, Range<usize>)> = asked.take(MOST).collect();
        for found in WORK.captures_iter(&line.text) {
            let names = found.name("n").map_or(0..0, |names| names.range());
            let is_asked = asked.iter().any(|(asked, _)| asked.contains(&names.start));
            if !is_asked && is_authoring(&found["v"], found.name("o").map_or("", |next| next.as_str())) {
                works.extend(line.members(team, names));
            }
        }
        for (names, range) in asked {
            reviews.extend(line.members(team, names).into_iter().map(|agent| (agent, range.clone())));
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
    found.is_some_and(|(sentence, at)| ORDER.is_match(&sentence.text(at..sentence.tokens.len())))
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
