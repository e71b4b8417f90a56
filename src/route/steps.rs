//! The order in which a message wants its agents to work.
//!
//! Each agent that gets work becomes a node, and another one each time a later part of the message gives it more. Words
//! of order add edges: `then` from everything before it, `after @bea is done` from the agents in that clause, `before`
//! the other way, and numbered items each from the one before. Nodes without edges run in parallel. A node's step is the
//! length of the longest path to it.

use std::ops::Range;

use super::text::{OWN, Span};
use crate::model::{List, Slug};

/// A point where the message gives an agent work.
#[derive(Clone, Debug)]
pub(super) struct Assignment {
    pub(super) agent: Slug,
    /// The name, or the beginning of the agent's part.
    pub(super) range: Range<usize>,
}

/// More than this is no order that a person wrote.
const MOST: usize = 40;

/// The steps of a plan for these agents. `None`: the orders contradict each other. `reviews`: where the message begins to
/// ask for one.
pub(super) fn of(
    message: &str,
    spans: &[Span],
    agents: &[Slug],
    mut places: Vec<Assignment>,
    reviews: &[usize],
) -> Option<Vec<Vec<Slug>>> {
    places.retain(|place| agents.contains(&place.agent));
    places.sort_by_key(|place| place.range.start);
    places.truncate(MOST);
    let mut order =
        Order { message, places: &places, nodes: Vec::new(), group: Vec::new(), previous: Vec::new(), stage: 0 };
    let mut number = 0;
    let own: Vec<&Span> = spans.iter().filter(|span| span.weight >= OWN).collect();
    for sentence in own.chunk_by(|a, b| a.sentence == b.sentence) {
        if let Some(item) = number_before(message, sentence[0].range.start) {
            // A list without names belongs to one agent's task.
            let names = |line: &Range<usize>| places.iter().any(|place| line.contains(&place.range.start));
            if item == number + 1 && number > 0 && names(&item_at(message, sentence[0].range.start)) {
                order.advance();
            }
            number = item;
        }
        order.read(&segments(message, sentence, &places, reviews));
    }
    order.steps(agents)
}

/// The number of the list item whose text begins here: `2. `, `2) `, `Step 2: `.
fn number_before(message: &str, at: usize) -> Option<u32> {
    let line = message[..at].rfind('\n').map_or(0, |end| end + 1);
    let before = message[line..].trim_start().trim_start_matches(['-', '*', ' ']);
    let before = before.strip_prefix("Step ").unwrap_or(before);
    let digits = before.find(|c: char| !c.is_ascii_digit())?;
    let rest = before[digits..].strip_prefix(['.', ')', ':'])?;
    let text = message.len() - rest.trim_start().len();
    // Only the first text of the line follows the number, or contains it if no full stop separates them.
    (at <= text && rest.starts_with(' ')).then(|| before[..digits].parse().ok())?
}

/// The item that begins here: its line and the indented lines below.
fn item_at(message: &str, at: usize) -> Range<usize> {
    let rest = message.get(at..).unwrap_or_default();
    let mut ends = rest.match_indices('\n').map(|(end, _)| end);
    let is_next = |end: &usize| !rest[end + 1..].starts_with([' ', '\t']);
    at..at + ends.find(is_next).unwrap_or(rest.len())
}

/// What a part of a sentence says about the order.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cue {
    /// It follows everything before it.
    Next,
    /// It names work that comes before the rest of the sentence.
    After,
    /// It names work that comes after the rest of the sentence.
    Before,
}

struct Segment {
    cue: Option<Cue>,
    range: Range<usize>,
    /// It begins a clause.
    begins: bool,
    /// It states that something is done: `once the endpoint is there`.
    is_done: bool,
}

/// Splits a sentence at words of order and at the ends of their clauses.
fn segments(message: &str, sentence: &[&Span], places: &[Assignment], reviews: &[usize]) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    let mut clause = None;
    let start = sentence[0].range.start;
    let end = sentence.last().map_or(start, |last| last.range.end);
    for span in sentence.iter().filter(|span| !span.is_code) {
        let goes_on = clause.replace(span.clause) == Some(span.clause);
        let ends = segments.last().is_none_or(|last| match last.cue {
            Some(Cue::After | Cue::Before) => {
                let rest = message.get(span.range.start..end).unwrap_or_default();
                !(goes_on || is_listed(message, last, span, places) && says_done(rest))
            }
            _ => false,
        });
        if ends {
            segments.push(Segment { cue: None, range: span.range.clone(), begins: true, is_done: false });
        }
        let text = &message[span.range.clone()];
        for word in word_starts(text) {
            if let Some((cue, length)) = cue(&text[word..], &message[start..span.range.start + word], word == 0) {
                let at = span.range.start + word;
                if let Some(last) = segments.last_mut() {
                    last.range.end = at;
                }
                let (begins, is_done) = (word == 0, cue == Cue::After && says_done(text));
                segments.push(Segment { cue: Some(cue), range: at + length..span.range.end, begins, is_done });
                let subjects = places.iter().map(|place| place.range.start).chain(reviews.iter().copied());
                let main = main_clause(message, at + length..span.range.end, subjects);
                if let Some(main) = main.filter(|_| is_done) {
                    if let Some(clause) = segments.last_mut() {
                        clause.range.end = main;
                    }
                    segments.push(Segment { cue: None, range: main..span.range.end, begins: true, is_done: false });
                }
            }
        }
        if let Some(last) = segments.last_mut() {
            last.range.end = last.range.end.max(span.range.end);
        }
    }
    segments
}

/// Where the main clause begins if no comma parts it from the clause before: `once it is done @tess tests it`. A name or
/// a request for a review after the word for finished work begins it, unless a preposition or a conjunction leads to it.
fn main_clause(message: &str, clause: Range<usize>, subjects: impl Iterator<Item = usize>) -> Option<usize> {
    const LEADS: [&str; 9] = ["by", "with", "from", "for", "to", "of", "and", "or", "than"];
    let begins_main = |at: &usize| {
        let before = &message[clause.start..*at];
        let last = before.split_whitespace().next_back().unwrap_or_default().to_lowercase();
        says_done(before) && !LEADS.contains(&last.as_str())
    };
    subjects.filter(|at| clause.contains(at)).filter(begins_main).min()
}

/// `after @bea, @fay and @tess are done`: the clause goes on over the names.
fn is_listed(message: &str, clause: &Segment, next: &Span, places: &[Assignment]) -> bool {
    let inner = places.iter().rfind(|place| clause.range.contains(&place.range.start));
    let follows = places.iter().find(|place| next.range.contains(&place.range.start));
    let between = inner.zip(follows).and_then(|(inner, next)| message.get(inner.range.end..next.range.start));
    between.is_some_and(|between| between.split([',', ' ', '@', '&']).all(|word| matches!(word, "" | "and")))
}

fn word_starts(text: &str) -> impl Iterator<Item = usize> {
    let begins = move |at: usize| !text[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '-' | '\''));
    text.char_indices().filter(move |(at, c)| c.is_alphabetic() && begins(*at)).map(|(at, _)| at)
}

/// The cue at the beginning of a text, and its length. `begins`: the text begins a clause.
fn cue(text: &str, before: &str, begins: bool) -> Option<(Cue, usize)> {
    let start = text[..text.floor_char_boundary(40)].to_ascii_lowercase();
    let length = |rest: &str| start.len() - rest.len();
    let word = |text: &str| text.split(|c: char| !c.is_alphanumeric()).next_back().unwrap_or_default().to_lowercase();
    let last = word(before.trim_end());
    let begins = begins || last == "and";
    if let Some(length) = List::Next.begins(&start).map(length) {
        // `since then`; `if it fails, then …` is a condition.
        let is_condition = start.starts_with("then")
            && (List::NotThen.has(&last) || before.split_whitespace().any(|word| word.eq_ignore_ascii_case("if")));
        return (!is_condition).then_some((Cue::Next, length));
    }
    if let Some(length) = List::NextBegins.begins(&start).map(length).filter(|_| begins) {
        // `Next, …` and `next @bea`, but not `next week`.
        let rest = text[length..].trim_start();
        return (rest.is_empty() || rest.starts_with('@')).then_some((Cue::Next, length));
    }
    if let Some(length) = List::After.begins(&start).map(length) {
        return (last != "look" && (start.starts_with("after") || says_done(text))).then_some((Cue::After, length));
    }
    let rest = List::Before.begins(&start)?;
    // `must not start before @bea is done`
    let is_denied = before.split_whitespace().any(|word| {
        let word = word.to_ascii_lowercase();
        matches!(word.as_str(), "not" | "never" | "cannot") || word.ends_with("n't") || word.ends_with("n’t")
    });
    Some((if is_denied { Cue::After } else { Cue::Before }, length(rest)))
}

/// `once @bea has finished`, `when the endpoint is there`.
fn says_done(clause: &str) -> bool {
    clause.split(|c: char| !c.is_alphanumeric()).any(|word| List::IsDone.has(&word.to_lowercase()))
}

/// A piece of work and the nodes that it waits for.
struct Node {
    agent: Slug,
    waits_for: Vec<usize>,
    stage: usize,
}

struct Order<'m> {
    message: &'m str,
    places: &'m [Assignment],
    nodes: Vec<Node>,
    /// The current parallel nodes, and those that all of them follow.
    group: Vec<usize>,
    previous: Vec<usize>,
    /// The number of times that later work was ordered.
    stage: usize,
}

impl Order<'_> {
    /// Work from here on follows the work so far.
    fn advance(&mut self) {
        if !self.group.is_empty() {
            self.previous = std::mem::take(&mut self.group);
            self.stage += 1;
        }
    }

    fn read(&mut self, segments: &[Segment]) {
        let leads_to_work = |next: Option<&Segment>| {
            let is_main = next.filter(|next| next.cue.is_none());
            is_main.is_some_and(|main| self.places.iter().any(|place| main.range.contains(&place.range.start)))
        };
        let mut main: Vec<usize> = Vec::new();
        let mut waiting: Vec<(Cue, Vec<usize>)> = Vec::new();
        for (place, segment) in segments.iter().enumerate() {
            match segment.cue {
                Some(cue @ (Cue::After | Cue::Before)) => match self.nodes_in(segment) {
                    named if named.is_empty() && segment.begins && segment.is_done => self.advance(),
                    named if named.is_empty() => {}
                    named if main.is_empty() || (segment.begins && leads_to_work(segments.get(place + 1))) => {
                        waiting.push((cue, named))
                    }
                    named => self.constrain(cue, &named, &main),
                },
                cue => {
                    // `@bea opens the file, then parses it`: the order of one task.
                    let names = self.places.iter().any(|place| segment.range.contains(&place.range.start));
                    let text = self.message.get(segment.range.clone()).unwrap_or_default();
                    if cue == Some(Cue::Next) && (names || !text.contains(char::is_alphanumeric)) {
                        self.advance();
                    }
                    let named = self.nodes_in(segment);
                    if !named.is_empty() {
                        waiting.drain(..).for_each(|(cue, clause)| self.constrain(cue, &clause, &named));
                        main = named;
                    }
                }
            }
        }
    }

    fn constrain(&mut self, cue: Cue, clause: &[usize], main: &[usize]) {
        let (first, second) = if cue == Cue::After { (clause, main) } else { (main, clause) };
        for node in second {
            let others = first.iter().filter(|other| *other != node);
            self.nodes[*node].waits_for.extend(others);
        }
        self.group.retain(|node| !first.contains(node) && !second.contains(node));
        self.group.extend(second);
    }

    /// The work in a part of a sentence. An agent that has work already and is only mentioned gets no more.
    fn nodes_in(&mut self, segment: &Segment) -> Vec<usize> {
        let mut found = Vec::new();
        for place in self.places.iter().filter(|place| segment.range.contains(&place.range.start)) {
            let known = self.nodes.iter().rposition(|node| node.agent == place.agent);
            let is_subject = matches!(segment.cue, None | Some(Cue::Next))
                && leads(&self.message[segment.range.start..place.range.start]);
            let node = match known.filter(|node| !is_subject || self.nodes[*node].stage == self.stage) {
                Some(node) => node,
                // A second mention in a sentence that is not parted.
                None if known.is_some_and(|node| found.contains(&node)) => continue,
                None => {
                    self.nodes.push(Node {
                        agent: place.agent.clone(),
                        waits_for: self.previous.clone(),
                        stage: self.stage,
                    });
                    self.group.push(self.nodes.len() - 1);
                    self.nodes.len() - 1
                }
            };
            if !found.contains(&node) {
                found.push(node);
            }
        }
        found
    }

    fn steps(&self, agents: &[Slug]) -> Option<Vec<Vec<Slug>>> {
        let mut depths = vec![0; self.nodes.len()];
        // Each pass settles at least one more node of a path; anything that still moves is in a cycle.
        for pass in 0..=self.nodes.len() {
            let mut moved = false;
            for (place, node) in self.nodes.iter().enumerate() {
                let depth = node.waits_for.iter().map(|other| depths[*other] + 1).max().unwrap_or(0);
                moved |= depth > depths[place];
                depths[place] = depth.max(depths[place]);
            }
            if !moved {
                break;
            }
            if pass == self.nodes.len() {
                return None;
            }
        }
        let last = depths.iter().copied().max().unwrap_or(0);
        let is_at = |agent: &Slug, step: usize| {
            let mut works = self.nodes.iter().zip(&depths).filter(|(node, _)| node.agent == *agent).peekable();
            // Agents without an order begin at once.
            if works.peek().is_none() { step == 0 } else { works.any(|(_, depth)| *depth == step) }
        };
        let at = |step: usize| agents.iter().filter(|agent| is_at(agent, step)).cloned().collect();
        Some((0..=last).map(at).filter(|step: &Vec<Slug>| !step.is_empty()).collect())
    }
}

/// Whether only conjunctions and other names stand before a name.
fn leads(before: &str) -> bool {
    let mut words = before.split(|c: char| c.is_whitespace() || matches!(c, ',' | '(' | ':' | '&' | '.' | ')'));
    words.all(|word| {
        let word = word.to_lowercase();
        word.is_empty()
            || word.starts_with('@')
            || word.chars().all(|c| c.is_ascii_digit())
            || List::BeforeVerb.has(&word)
            || matches!(word.as_str(), "let" | "have" | "ask" | "get" | "first" | "should" | "-" | "*")
    })
}
