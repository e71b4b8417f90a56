//! The order in which a message wants its agents to work.
//!
//! Each agent that gets work becomes a node, and another one each time a later part of the message gives it more. Words
//! of order add edges: `then` from everything before it, `after @bea is done` from the agents in that clause, `before`
//! the other way, and numbered items each from the one before. Nodes without edges run in parallel. A node's step is the
//! length of the longest path to it.

use std::ops::Range;

use super::message::{Token, Words};
use super::{Draft, Reading};
use crate::model::{List, Slug, Sort};

/// A point where the message gives an agent work.
#[derive(Clone, Debug)]
pub(super) struct Assignment {
    pub(super) agent: Slug,
    /// Where the name, or the agent's part, begins in the message.
    pub(super) start: usize,
    pub(super) is_part: bool,
}

/// The steps of a plan. `None`: the orders contradict each other.
pub(super) fn of(reading: &Reading<'_>, draft: &Draft) -> Option<Vec<Vec<Slug>>> {
    if draft.agents.len() < 2 {
        return Some(draft.agents.iter().map(|agent| vec![agent.clone()]).collect());
    }
    let Reading { message, called, requests } = reading;
    let mut places = if draft.places.is_empty() { called.places.clone() } else { draft.places.clone() };
    places.retain(|place| draft.agents.contains(&place.agent));
    places.stable_sort_by_key(|place| place.start);
    let (mut order, mut number, reviews) = (Order::default(), 0, requests.places());
    for sentence in message.sentences() {
        let range = sentence.place(0..sentence.len());
        let line = message.text[..range.start].rfind('\n').map_or(0, |end| end + 1);
        if let Some(item) = numbered(&message.text[line..]).filter(|(_, length)| line + length >= range.start) {
            let end = message.text[line..].find('\n').map_or(message.text.len(), |end| line + end);
            // A list without names belongs to one agent's task.
            if item.0 == number + 1 && number > 0 && places.iter().any(|place| (line..end).contains(&place.start)) {
                order.advance();
            }
            number = item.0;
        }
        let of_sentence = places.iter().filter(|place| range.contains(&place.start));
        let names: Vec<(usize, &Slug)> =
            of_sentence.filter_map(|place| Some((sentence.at(place.start)?, &place.agent))).collect();
        let reviews = reviews.iter().filter(|at| range.contains(at)).filter_map(|at| sentence.at(*at));
        let subjects: Vec<usize> = names.iter().map(|(at, _)| *at).chain(reviews).collect();
        order.read(sentence, &segments(sentence, &names, &subjects), &names);
    }
    order.steps(&draft.agents)
}

/// The number of a list's item that a line begins, and the length of the mark: `- Step 2: `.
fn numbered(line: &str) -> Option<(u32, usize)> {
    let text = line.trim_start_matches(['-', '*', ' ']);
    let is_step = text.get(..5).is_some_and(|step| step.eq_ignore_ascii_case("step "));
    let text = if is_step { &text[5..] } else { text };
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = text[..text.len() - rest.len()].parse().ok()?;
    let after = rest.strip_prefix(['.', ')', ':'])?.trim_start_matches(' ');
    (after.len() + 1 < rest.len()).then_some((number, line.len() - after.len()))
}

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
fn segments(words: Words<'_>, names: &[(usize, &Slug)], subjects: &[usize]) -> Vec<Segment> {
    let is_done = |range: Range<usize>| any(words, range, List::Done);
    let (mut segments, mut start): (Vec<Segment>, usize) = (Vec::new(), 0);
    for clause in words.split(Token::is_mark) {
        let clause = start..start + clause.len();
        start = clause.end + 1;
        // `after @bea, @fay and @tess are done`: the clause goes on over the names.
        let goes_on = |last: &&mut Segment| {
            let inner = names.iter().rfind(|(at, _)| last.range.contains(at));
            let next = names.iter().find(|(at, _)| clause.contains(at));
            let mut between =
                inner.zip(next).into_iter().flat_map(|((inner, _), (next, _))| inner + 1..*next).peekable();
            matches!(last.cue, Some(Cue::After | Cue::Before))
                && between.peek().is_some()
                && between.all(|at| matches!(words.word(at), "," | "and"))
                && is_done(clause.clone())
        };
        match segments.last_mut().filter(goes_on) {
            Some(last) => last.range.end = clause.end,
            None => segments.push(Segment { cue: None, range: clause.clone(), begins: true, is_done: false }),
        }
        let mut at = clause.start;
        while let Some((begin, (cue, end))) = (at..clause.end).find_map(|at| Some((at, cue(words, at, &clause)?))) {
            let is_done = cue == Cue::After && is_done(clause.clone());
            segments.last_mut().into_iter().for_each(|last| last.range.end = begin);
            // `once it is done @tess tests it`: a name or a request for a review after the word for finished work
            // begins the main clause, unless a preposition or a conjunction leads to it.
            let begins_main = |main: &&usize| {
                (end + 1..clause.end).contains(*main)
                    && any(words, end..**main, List::Done)
                    && !words.has(List::LeadsOn, **main - 1)
            };
            let main = subjects.iter().filter(begins_main).min().copied().filter(|_| is_done).unwrap_or(clause.end);
            segments.push(Segment { cue: Some(cue), range: end..main, begins: begin == clause.start, is_done });
            if main < clause.end {
                segments.push(Segment { cue: None, range: main..clause.end, begins: true, is_done: false });
            }
            // A word of order before the main clause is of what is done.
            at = if main < clause.end { main } else { end };
        }
    }
    segments
}

fn any(words: Words<'_>, mut range: Range<usize>, list: List) -> bool {
    range.any(|at| words.has(list, at))
}

/// The word of order that a place of a clause begins with, and where it ends.
fn cue(words: Words<'_>, at: usize, clause: &Range<usize>) -> Option<(Cue, usize)> {
    let end_of = |list: List| Some(at + words.part(at..clause.end).phrase(list, 0)?);
    let before = at.checked_sub(1).map_or("", |at| words.word(at));
    let is_said_before = |is_meant: fn(&str) -> bool| (0..at).any(|at| is_meant(words.word(at)));
    if let Some(end) = end_of(List::Next) {
        // `since then`; `if it fails, then …` is a condition.
        let is_condition = words.word(end - 1) == "then" && is_said_before(|word| word == "if");
        return (!List::NoCue.has(before) && !is_condition).then_some((Cue::Next, end));
    }
    if let Some(end) = end_of(List::NextFirst) {
        // `Next, …` and `next @bea`, but not `next week`.
        let is_turned = end == clause.end || words.get(end).is_some_and(|next| next.text == "@");
        return ((at == clause.start || before == "and") && is_turned).then_some((Cue::Next, end));
    }
    if let Some(end) = end_of(List::AfterCues) {
        let is_order = words.word(at) == "after" || any(words, end..clause.end, List::Done);
        return (is_order && !List::NoCue.has(before)).then_some((Cue::After, end));
    }
    let end = end_of(List::BeforeCues)?;
    // `must not start before @bea is done`
    let is_denied = is_said_before(|word| matches!(word, "not" | "never" | "cannot") || word.ends_with("n't"));
    Some((if is_denied { Cue::After } else { Cue::Before }, end))
}

/// A piece of work and the nodes that it waits for.
struct Node<'a> {
    agent: &'a Slug,
    waits_for: Vec<usize>,
    stage: usize,
}

#[derive(Default)]
struct Order<'a> {
    nodes: Vec<Node<'a>>,
    /// The current parallel nodes, and those that all of them follow.
    group: Vec<usize>,
    previous: Vec<usize>,
    /// The number of times that later work was ordered.
    stage: usize,
}

impl<'a> Order<'a> {
    /// Work from here on follows the work so far.
    fn advance(&mut self) {
        if !self.group.is_empty() {
            self.previous = std::mem::take(&mut self.group);
            self.stage += 1;
        }
    }

    fn read(&mut self, sentence: Words<'_>, segments: &[Segment], names: &[(usize, &'a Slug)]) {
        let has_names = |segment: &Segment| names.iter().any(|(at, _)| segment.range.contains(at));
        let mut main: Vec<usize> = Vec::new();
        let mut waiting: Vec<(Cue, Vec<usize>)> = Vec::new();
        for (place, segment) in segments.iter().enumerate() {
            let next = segments.get(place + 1).filter(|next| next.cue.is_none());
            match segment.cue {
                Some(cue @ (Cue::After | Cue::Before)) => match self.nodes_in(sentence, segment, names) {
                    named if named.is_empty() && segment.begins && segment.is_done => self.advance(),
                    named if named.is_empty() => {}
                    named if main.is_empty() || (segment.begins && next.is_some_and(has_names)) => {
                        waiting.push((cue, named));
                    }
                    named => self.constrain(cue, &named, &main),
                },
                cue => {
                    // `@bea opens the file, then parses it`: the order of one task.
                    let is_bare = sentence[segment.range.clone()].iter().all(Token::is_mark);
                    if cue == Some(Cue::Next) && (has_names(segment) || is_bare) {
                        self.advance();
                    }
                    let named = self.nodes_in(sentence, segment, names);
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
            self.nodes[*node].waits_for.extend(first.iter().filter(|other| *other != node));
        }
        self.group.retain(|node| !first.contains(node) && !second.contains(node));
        self.group.extend(second);
    }

    /// The work in a part of a sentence. An agent that has work already and is only mentioned gets no more.
    fn nodes_in(&mut self, sentence: Words<'_>, segment: &Segment, names: &[(usize, &'a Slug)]) -> Vec<usize> {
        let mut found = Vec::new();
        for (at, agent) in names.iter().filter(|(at, _)| segment.range.contains(at)) {
            let known = self.nodes.iter().rposition(|node| node.agent == *agent);
            let is_subject = matches!(segment.cue, None | Some(Cue::Next))
                && sentence[segment.range.start..*at].iter().all(|token| {
                    // Only conjunctions, other names and handing words stand before the name of whoever gets work.
                    token.is_name() || token.is_mark() || token.any(&[List::BeforeSubject])
                });
            let node = match known.filter(|node| !is_subject || self.nodes[*node].stage == self.stage) {
                Some(node) => node,
                // A second mention in a sentence that is not parted.
                None if known.is_some_and(|node| found.contains(&node)) => continue,
                None => {
                    self.nodes.push(Node { agent, waits_for: self.previous.clone(), stage: self.stage });
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
        let deeper = |depths: Vec<usize>| -> Vec<usize> {
            let depth = |node: &Node<'_>| node.waits_for.iter().map(|other| depths[*other] + 1).max().unwrap_or(0);
            self.nodes.iter().map(depth).collect()
        };
        // Each pass settles at least one more node of a path; what still moves after all of them is a cycle.
        let depths = (0..self.nodes.len()).fold(vec![0; self.nodes.len()], |depths, _| deeper(depths));
        if deeper(depths.clone()) != depths {
            return None;
        }
        let is_at = |agent: &Slug, step: usize| {
            let mut own = self.nodes.iter().zip(&depths).filter(|(node, _)| node.agent == agent).peekable();
            // Agents without an order begin at once.
            if own.peek().is_none() { step == 0 } else { own.any(|(_, depth)| *depth == step) }
        };
        let last = depths.iter().copied().max().unwrap_or(0);
        let at = |step: usize| agents.iter().filter(|agent| is_at(agent, step)).cloned().collect();
        Some((0..=last).map(at).filter(|step: &Vec<Slug>| !step.is_empty()).collect())
    }
}
