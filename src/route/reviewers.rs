//! Who reviews: the members that a message asks to judge the work of others, and those whose role it is.
//!
//! A message asks a member for a review where the member is the subject of a verb of reviewing (`@rex reviews it`,
//! `have rex check bea's work`), or where a passive or a noun names it (`reviewed by @rex`, `a review by @rex`). Verbs
//! that are used for other work too count only if their object is the work of others.

use std::ops::Range;
use std::sync::LazyLock;

use regex::{Match, Regex};

use super::Reading;
use super::calls;
use super::message::Message;
use super::steps::Assignment;
use super::work::{asks_for_work, is_work};
use crate::model::{Evidence, Plan, Slug, Team, words};

/// What stands for what in a phrase.
const PARTS: [(&str, &str); 10] = [
    ("NAMES", r"(?:the |our )?([@^~]\d+(?:(?: ,)?(?: and| or)? [@^~]\d+)*)"),
    // Whether a request goes on after the name.
    (
        "FILLERS",
        r"((?: (?:to|then|should|must|will|shall|can|could|would|may|might|please|also|finally|afterwards|later|next|now|still|has|have|needs?|wants?|is|are|be|being|again|carefully|thoroughly|just|first|both|all|does|who|gets|asked|expected|supposed))*)",
    ),
    // Verbs that mean a review whatever their object, and those that do if it is the work of others.
    (
        "REVIEWS",
        r"(?:(?:peer-|re-)?review|approv|judg|vet|critiqu|double-check|proofread|scrutini[sz]|sign-?off)(?:e?s|ing|e)?\b|sign(?:s|ing)?(?: \S+)? off\b",
    ),
    (
        "CHECKS",
        r"(?:(?:check|verif|inspect|examin|assess|evaluat|validat|audit|accept|reject|confirm)(?:e?s|ies|y|ing|e)?|(?:look|go|read)(?:e?s|ing)?(?: (?:it|them|this|carefully))? (?:over|at|through))(?: ARTICLE(?:\S+ )?(?:results?|works?|changes?|diffs?|output|outcome|code|patch|prs?|pull|branch|implementation|commits?|draft|endpoint|solution)\b| (?:what|all|(?:\S+ )?[@^~]\d+'s)|(?: (?:it|them|this|that|everything))?(?: (?:over|through|again|too|carefully|thoroughly))?(?: (?:and|then|before|after|afterwards|later|once|when|first|finally)\b| [,;:(.!?—@^~]|$))",
    ),
    (
        "GIVES",
        r"(?:(?:do|give|mak|perform|conduct|ha[sv]|run|handl|provid|cast|is responsible|is in charge)(?:e?s|ing|e)? (?:for |of )?ARTICLENOUN|(?:tak|ha[sv])(?:es|ing|e|) ARTICLElook)\b",
    ),
    (
        "NOUN",
        r"(?:(?:code-|code )?reviews?|approval|sign-?off|verdict|ok|okay|go-ahead|blessing|audit|inspection|critique|reviewer|approver|say|(?:final|last) (?:check|look))",
    ),
    (
        "ARTICLE",
        r"(?:(?:the|a|an|our|my|your|his|her|its|their|this|that|final|last|whole|quick|careful|thorough|short|independent|full|new|peer) )*",
    ),
    (
        "JUDGED",
        r"(?:review|approv|judg|vett?|critiqu|double-check|check|verifi|inspect|examin|assess|evaluat|validat|audit|accept|confirm)ed",
    ),
    ("DENIES", r"(?:not|never|no|without|nobody|cannot|\w+n't)"),
    ("GATES", r"(?:after|once|until|with|pending|needs?|requires?|gets?|awaits?|for|under|to|by|on)"),
];

/// A pattern of these parts.
fn phrase(pattern: &str) -> Regex {
    let pattern = PARTS.iter().fold(pattern.to_owned(), |pattern, (part, of)| pattern.replace(part, of));
    super::compiled(&pattern)
}

macro_rules! phrase {
    ($name:ident, $pattern:expr) => {
        static $name: LazyLock<Regex> = LazyLock::new(|| phrase($pattern));
    };
}

phrase!(SUBJECT, "(?:^| )NAMES( [,:—])?FILLERS ((?:REVIEWS|CHECKS|GIVES))");
phrase!(
    BY,
    r"(?:^| )(?:(?:JUDGED|signed off|read)(?: \S+){0,2}? by|NOUN(?: \S+){0,3}? (?:by|from|through|via)|(?:reviewers?|approvers?|reviews?)(?: [:—]| is| are)) NAMES"
);
phrase!(AS, "(?:^| )NAMES (?:for|as|is|will be) ARTICLENOUN");
phrase!(
    GATE,
    r"(?:^| )(?:GATES|DENIES(?: \S+){1,3} without) ([@^~]\d+)'s ARTICLENOUN( comments?| findings| notes| remarks| feedback)?"
);
phrase!(ORDERS, "^FILLERS(?:^| )?(?:REVIEWS|CHECKS|GIVES)");
phrase!(WORKS, r"(?:^| )NAMES(?: [,:—])?FILLERS (\S+)");
phrase!(DENIED, r"\bDENIES(?: \S+){0,2}$");
phrase!(
    HANDED,
    r"(?:^| )(?:(?:and |then |please )*(?:have|let|ask|get|tell|want|need|make sure|with|sure|ensure|that|wait for|like|(?:hand|give|pass|send|assign|submit|cc|bring|show)s?(?: \S+){0,3}?))$"
);
phrase!(
    ENDS,
    r" [,;:(.!?—]| (?:then|before|after|once|when|until|while|so|because|unless|if|as|which|who)\b| [@^~]\d+(?: |$)"
);
phrase!(ALSO, r"^[^@^~,;:]*? (?:and|or) (\S+)");
phrase!(ASKING, r"\b(?:to|should|must|will|shall|can|could|would|may|please)\b");
phrase!(NUMBER, r"\d+");

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
    let startable = |names: &str| -> Vec<Slug> {
        let members =
            NUMBER.find_iter(names).filter_map(|number| team.members.get(number.as_str().parse::<usize>().ok()?));
        members.filter(|member| member.is_startable()).map(|member| member.slug.clone()).collect()
    };
    for sentence in message.naming() {
        if requests.reviews.len() + requests.works.len() >= MOST {
            break;
        }
        let text = sentence.text.as_str();
        let asked = reviews(text);
        for found in WORKS.captures_iter(text).filter(|found| is_authoring(&found[3])) {
            if !asked.iter().any(|(names, _)| std::ptr::eq(*names, &found[1])) {
                requests.works.extend(startable(&found[1]));
            }
        }
        for (names, range) in asked {
            let range = sentence.range(range);
            requests.reviews.extend(startable(names).into_iter().map(|agent| (agent, range.clone())));
        }
    }
    let Requests { reviews, works } = &mut requests;
    reviews.retain(|(agent, _)| !works.contains(agent));
    requests
}

/// The names that a sentence asks for a review, and where.
fn reviews(text: &str) -> Vec<(&str, Range<usize>)> {
    let mut found = Vec::new();
    let clause_end = |at: usize| at + ENDS.find(&text[at..]).map_or(text.len() - at, |end| end.start());
    let begins = |names: &Match<'_>| {
        let before = text[..names.start()].trim_end_matches([' ']).trim_end_matches(" the").trim_end_matches(" our");
        HANDED.find(before).map(|handed| handed.start())
    };
    let mut at = 0;
    while let Some(captures) = SUBJECT.captures_at(text, at) {
        let (Some(names), Some(verb)) = (captures.get(1), captures.get(4)) else { break };
        at = names.end();
        let word = verb.as_str().split(' ').next().unwrap_or_default();
        let (handed, is_apart) = (begins(&names), captures.get(2).is_some());
        let is_asked = (handed.is_some() && !is_apart) || ASKING.is_match(&captures[3]);
        let is_base = !word.ends_with('s') && !word.ends_with("ing");
        let is_addressed = names.as_str().contains('@') || (names.as_str().starts_with('^') && is_apart);
        // `docs, review and tests` is a list; `reviews it and adds tests` is more than a review.
        let is_more = ALSO.captures(&text[verb.start()..]).is_some_and(|also| is_authoring(&also[1]));
        if (!is_base || is_addressed || is_asked) && !is_more {
            found.push((names.as_str(), handed.unwrap_or(names.start())..clause_end(verb.end())));
        }
    }
    for (pattern, group) in [(&BY, 1), (&AS, 1), (&GATE, 1)] {
        for captures in pattern.captures_iter(text) {
            let (Some(all), Some(names)) = (captures.get(0), captures.get(group)) else { continue };
            if DENIED.is_match(&text[..all.start()]) || captures.get(2).is_some() {
                continue;
            }
            let start = if std::ptr::eq(pattern, &AS) { begins(&names).unwrap_or(names.start()) } else { all.start() };
            found.push((names.as_str(), start..clause_end(all.end())));
        }
    }
    found.sort_by_key(|(_, range)| range.start);
    found
}

/// Whether a verb means that something is made or changed: `adds`, not `reports`.
fn is_authoring(verb: &str) -> bool {
    let y = verb.strip_suffix("ies").map(|stem| format!("{stem}y"));
    let bases = [Some(verb), verb.strip_suffix('s'), verb.strip_suffix("es"), y.as_deref()];
    bases.iter().flatten().any(|verb| is_work(verb)) && !ORDERS.is_match(verb)
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
    found.is_some_and(|(sentence, at)| ORDERS.is_match(&sentence.text[at..]))
}

/// Makes agents that review the plan's reviewers: those that the message asks, and those whose role it is where others
/// work. If nobody else works, the review is of what is there already, and only an agent whose role it is judges that.
/// `parts`: where the parts of the message begin that are some agent's.
pub(super) fn appoint(team: &Team, reading: &Reading<'_>, parts: &[Assignment], plan: &mut Plan) {
    let Reading { message, requests, .. } = reading;
    plan.reviewer.take_if(|reviewer| plan.agents.contains(reviewer));
    plan.other_reviewers.retain(|reviewer| !plan.agents.contains(reviewer));
    let mut asked = requests.agents();
    let of_parts = parts.iter().filter(|part| part.range.is_empty() && orders_review(message, part.range.start));
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
