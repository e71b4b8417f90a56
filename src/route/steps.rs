//! The order in which a message wants its agents to work.
//!
//! Each agent that gets work becomes a node, and another one each time a later part of the message gives it more. Words
//! of order add edges: `then` from everything before it, `after @bea is done` from the agents in that clause, `before`
//! the other way, and numbered items each from the one before. Nodes without edges run in parallel. A node's step is the
//! length of the longest path to it.

use std::ops::Range;

use super::{Draft, Reading};
use crate::model::Slug;

/// A point where the message gives an agent work.
#[derive(Clone, Debug)]
pub(super) struct Assignment {
    pub(super) agent: Slug,
    /// The name, or the beginning of the agent's part.
    pub(super) range: Range<usize>,
}

/// More than this is no order that a person wrote.
const MOST: usize = 40;

pattern!(MARK, r" [,;:(.!?—]( |$)|$");
pattern!(
    CUE,
    r"(?:^| )(?:(after that|after this|after which|afterwards|(?:and )?then|followed by|once (?:that|this) is done|once done|when that is done|when done|subsequently|danach|dann|anschließend|puis|ensuite|luego|después|depois)|(next|finally|lastly|secondly|thirdly)|(after|once|as soon as|when|until)|(before))(?: |$)"
);
pattern!(NO_CUE, r"\b(?:since|by|until|till|even|back|than|just|look)$");
pattern!(CONDITION, r"(?:^| )if ");
pattern!(DENIED, r"(?:^| )(?:not|never|cannot|\S+n't) ");
pattern!(
    DONE,
    r"(?:^| )(?:done|finished|finishes|ready|completed?|completes|merged|landed|there|through|passe[sd]|green|in|has|have)(?: |$)"
);
pattern!(LEADS_ON, r"(?:^| )(?:by|with|from|for|to|of|and|or|than)$");
pattern!(LISTED, r"^[@^~]\d+(?: ,)?(?: and)? $");
// Only conjunctions, other names and handing words stand before the name of whoever gets work.
pattern!(
    SUBJECT,
    r"^(?:(?:[@^~]\d+|\d+|and|then|also|please|to|finally|so|next|afterwards|let|have|ask|get|first|should|[,(:.]) )*$"
);
pattern!(NUMBERED, r"(?i)^[-* ]*(?:step )?(\d{1,3})[.):] +");

/// The steps of a plan. `None`: the orders contradict each other.
pub(super) fn of(reading: &Reading<'_>, draft: &Draft) -> Option<Vec<Vec<Slug>>> {
    if draft.agents.len() < 2 {
        return Some(draft.agents.iter().map(|agent| vec![agent.clone()]).collect());
    }
    let Reading { message, called, requests } = reading;
    let mut places = if draft.places.is_empty() { called.places.clone() } else { draft.places.clone() };
    places.retain(|place| draft.agents.contains(&place.agent));
    places.sort_by_key(|place| place.range.start);
    places.truncate(MOST);
    let (mut order, mut number, reviews) = (Order::default(), 0, requests.places());
    for sentence in message.sentences() {
        let range = sentence.range(0..sentence.text.len());
        let line = message.text[..range.start].rfind('\n').map_or(0, |end| end + 1);
        let item = NUMBERED.captures(&message.text[line..]);
        if let Some(item) = item.filter(|item| line + item[0].len() >= range.start) {
            let item: u32 = item[1].parse().unwrap_or(0);
            let end = message.text[line..].find('\n').map_or(message.text.len(), |end| line + end);
            // A list without names belongs to one agent's task.
            if item == number + 1 && number > 0 && places.iter().any(|place| (line..end).contains(&place.range.start)) {
                order.advance();
            }
            number = item;
        }
        let of_sentence = places.iter().filter(|place| range.contains(&place.range.start));
        let names: Vec<(usize, &Slug)> =
            of_sentence.filter_map(|place| Some((sentence.find(place.range.start)?, &place.agent))).collect();
        let reviews = reviews.iter().filter(|at| range.contains(at)).filter_map(|at| sentence.find(*at));
        let subjects: Vec<usize> = names.iter().map(|(at, _)| *at).chain(reviews).collect();
        order.read(&sentence.text, &segments(&sentence.text, &names, &subjects), &names);
    }
    order.steps(&draft.agents)
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
fn segments(text: &str, names: &[(usize, &Slug)], subjects: &[usize]) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    let mut start = 0;
    for mark in MARK.find_iter(text) {
        let clause = start..mark.start();
        start = mark.end();
        // `after @bea, @fay and @tess are done`: the clause goes on over the names.
        let goes_on = segments.last_mut().filter(|last| {
            let inner = names.iter().rfind(|(at, _)| last.range.contains(at));
            let next = names.iter().find(|(at, _)| clause.contains(at));
            let between = inner.zip(next).map(|((inner, _), (next, _))| &text[*inner..*next]);
            matches!(last.cue, Some(Cue::After | Cue::Before))
                && between.is_some_and(|between| LISTED.is_match(between))
                && DONE.is_match(&text[clause.clone()])
        });
        match goes_on {
            Some(last) => last.range.end = clause.end,
            None => segments.push(Segment { cue: None, range: clause.clone(), begins: true, is_done: false }),
        }
        let mut at = clause.start;
        while let Some((cue, found)) = next_cue(text, at, clause.clone()) {
            let (begins, is_done) =
                (found.start == clause.start, cue == Cue::After && DONE.is_match(&text[clause.clone()]));
            at = found.end;
            segments.last_mut().into_iter().for_each(|last| last.range.end = found.start);
            // `once it is done @tess tests it`: a name or a request for a review after the word for finished work
            // begins the main clause, unless a preposition or a conjunction leads to it.
            let begins_main = |main: &&usize| {
                let before = text[found.end.min(**main)..**main].trim_end();
                (found.end..clause.end).contains(*main) && DONE.is_match(before) && !LEADS_ON.is_match(before)
            };
            let main = subjects.iter().filter(begins_main).min().copied().filter(|_| is_done).unwrap_or(clause.end);
            segments.push(Segment { cue: Some(cue), range: found.end..main, begins, is_done });
            if main < clause.end {
                segments.push(Segment { cue: None, range: main..clause.end, begins: true, is_done: false });
            }
        }
    }
    segments
}

/// The next word of order in a clause, from a position on.
fn next_cue(text: &str, at: usize, clause: Range<usize>) -> Option<(Cue, Range<usize>)> {
    // A word follows a blank.
    let mut at = if at == clause.start { at.saturating_sub(1) } else { at };
    while let Some(found) = CUE.captures_at(&text[..clause.end], at) {
        let word = (1..=4).find_map(|group| Some((group, found.get(group)?)));
        let (group, word) = word.filter(|(_, word)| word.end() <= clause.end)?;
        at = word.end();
        let before = text[..word.start()].trim_end();
        let begins = word.start() == clause.start || before.ends_with(" and");
        let (after, rest) = (text[word.end()..].trim_start(), &text[word.end()..clause.end]);
        let cue = match group {
            // `since then`; `if it fails, then …` is a condition.
            1 if NO_CUE.is_match(before) || (word.as_str().ends_with("then") && CONDITION.is_match(before)) => continue,
            1 => Cue::Next,
            // `Next, …` and `next @bea`, but not `next week`.
            2 if begins && (rest.is_empty() || after.starts_with('@')) => Cue::Next,
            3 if !NO_CUE.is_match(before) && (word.as_str() == "after" || DONE.is_match(rest)) => Cue::After,
            // `must not start before @bea is done`
            4 if DENIED.is_match(before) => Cue::After,
            4 => Cue::Before,
            _ => continue,
        };
        return Some((cue, word.range()));
    }
    None
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

    fn read(&mut self, text: &str, segments: &[Segment], names: &[(usize, &'a Slug)]) {
        let has_names = |segment: &Segment| names.iter().any(|(at, _)| segment.range.contains(at));
        let mut main: Vec<usize> = Vec::new();
        let mut waiting: Vec<(Cue, Vec<usize>)> = Vec::new();
        for (place, segment) in segments.iter().enumerate() {
            let next = segments.get(place + 1).filter(|next| next.cue.is_none());
            match segment.cue {
                Some(cue @ (Cue::After | Cue::Before)) => match self.nodes_in(text, segment, names) {
                    named if named.is_empty() && segment.begins && segment.is_done => self.advance(),
                    named if named.is_empty() => {}
                    named if main.is_empty() || (segment.begins && next.is_some_and(has_names)) => {
                        waiting.push((cue, named));
                    }
                    named => self.constrain(cue, &named, &main),
                },
                cue => {
                    // `@bea opens the file, then parses it`: the order of one task.
                    let is_bare = !text[segment.range.clone()].contains(char::is_alphanumeric);
                    if cue == Some(Cue::Next) && (has_names(segment) || is_bare) {
                        self.advance();
                    }
                    let named = self.nodes_in(text, segment, names);
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
    fn nodes_in(&mut self, text: &str, segment: &Segment, names: &[(usize, &'a Slug)]) -> Vec<usize> {
        let mut found = Vec::new();
        for (at, agent) in names.iter().filter(|(at, _)| segment.range.contains(at)) {
            let known = self.nodes.iter().rposition(|node| node.agent == *agent);
            let is_subject = matches!(segment.cue, None | Some(Cue::Next))
                && SUBJECT.is_match(text[segment.range.start..*at].trim_start());
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
        let mut depths = vec![0; self.nodes.len()];
        // Each pass settles at least one more node of a path; what still moves after all of them is a cycle.
        for _ in 0..=self.nodes.len() {
            let settled = depths.clone();
            for (depth, node) in depths.iter_mut().zip(&self.nodes) {
                *depth = node.waits_for.iter().map(|other| settled[*other] + 1).max().unwrap_or(0);
            }
            if depths == settled {
                let last = depths.iter().copied().max().unwrap_or(0);
                let is_at = |agent: &&Slug, step: usize| {
                    let mut works = self.nodes.iter().zip(&depths).filter(|(node, _)| node.agent == *agent).peekable();
                    // Agents without an order begin at once.
                    if works.peek().is_none() { step == 0 } else { works.any(|(_, depth)| *depth == step) }
                };
                let at = |step: usize| agents.iter().filter(|agent| is_at(agent, step)).cloned().collect();
                return Some((0..=last).map(at).filter(|step: &Vec<Slug>| !step.is_empty()).collect());
            }
        }
        None
    }
}
