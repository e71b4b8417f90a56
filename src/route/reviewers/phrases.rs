//! Phrases that ask a member to review the work of others, and verbs that give it other work.

use std::ops::Range;

use super::sentence::Word;
use crate::model::List;

/// Verbs that mean a review whatever their object.
const REVIEW: &str = "review peer-review re-review approve judge vet critique double-check proofread scrutinize \
                      scrutinise sign-off signoff";
/// Verbs that mean one if their object is the work of others.
const CHECK: &str = "check verify inspect examine assess evaluate validate audit accept reject confirm read look go \
                     crosscheck cross-check";
/// Nouns for a review and its result.
const NOUN: &str = "review reviews code-review approval sign-off signoff verdict ok okay go-ahead blessing audit check \
                    inspection critique look reviewer approver say";
/// Who gives one: `@rex gives the verdict`.
const GIVES: &str = "do give make perform conduct have get take write run handle own provide cast issue";
/// Verbs of someone who judges or reports and changes nothing.
const REPORTS: &str = "report comment list summarise summarize recommend propose say tell decide explain describe \
                       notify ask let raise show send note outline compare know find";
const FILLERS: &str = "to then should must will shall can could would please also finally afterwards later next now \
                       still only has have had needs need is are be being been again carefully thoroughly \
                       critically i we want you it's kindly just first both all wants does who that may might ought \
                       gets get asked expected supposed";
const NOT: &str = "not never no without don't doesn't won't can't cannot nobody isn't shouldn't mustn't didn't";
/// Words that begin another clause.
const CLAUSE: &str = "then before after once when until while so because unless if as which who";
const ARTICLES: &str = "the a an our my your his her its their this that final second last quick code peer careful \
                        thorough short independent full proper another one formal technical security whole critical";
/// What people call the work of others.
const WORK: &str = "result results work works change changes diff diffs output outcome code patch pr prs branch \
                    implementation commit commits draft pull endpoint solution";
const PRONOUN: &str = "it them this that everything all both these those";
/// Verbs that hand a task to a member: `have rex check it`.
const HANDS: &str = "have let ask get tell want need make with and sure ensure that wait for";

/// The words of the list that a verb may be a form of: the third person or `-ing`.
fn is_form(word: &str, list: &str) -> bool {
    let is_in = |base: &str| list.split(' ').any(|verb| verb == base);
    let third = [Some(word), word.strip_suffix('s'), word.strip_suffix("es")];
    is_in_any(&third, &is_in)
        || word.strip_suffix("ies").is_some_and(|stem| is_in(&format!("{stem}y")))
        || word.strip_suffix("ing").is_some_and(|stem| is_in(stem) || is_in(&format!("{stem}e")))
}

fn is_in_any(bases: &[Option<&str>], is_in: &impl Fn(&str) -> bool) -> bool {
    bases.iter().flatten().any(|base| is_in(base))
}

/// A participle: `reviewed`, `approved`, `verified`, `vetted`.
fn is_done_form(word: &str, list: &str) -> bool {
    let is_in = |base: &str| list.split(' ').any(|verb| verb == base);
    let Some(stem) = word.strip_suffix("ed") else { return matches!(word, "read" | "signed") };
    is_in(stem)
        || is_in(&format!("{stem}e"))
        || stem.strip_suffix('i').is_some_and(|stem| is_in(&format!("{stem}y")))
        || (stem.len() > 1 && is_in(&stem[..stem.floor_char_boundary(stem.len() - 1)]))
}

fn is_authoring(word: &str) -> bool {
    let is_verb = |base: &str| List::Verb.has(base);
    let is_any = is_in_any(&[Some(word), word.strip_suffix('s'), word.strip_suffix("es")], &is_verb)
        || word.strip_suffix("ies").is_some_and(|stem| is_verb(&format!("{stem}y")))
        || is_form(word, "do make build code fix create test begin start own");
    is_any && ![REVIEW, CHECK, REPORTS].iter().any(|list| is_form(word, list))
}

/// The text that asks the member named at `at` for a review.
pub(super) fn review_by(words: &[Word<'_>], at: usize) -> Option<Range<usize>> {
    let (first, last) = group(words, at);
    active(words, first, last).or_else(|| nominal(words, first, last))
}

/// Whether a sentence gives the member other work: `@bea adds the endpoint`.
pub(super) fn works(words: &[Word<'_>], at: usize) -> bool {
    let (_, last) = group(words, at);
    !words[at].is_possessive && verb_after(words, last).is_some_and(|verb| is_authoring(&words[verb].text))
}

/// Whether the words from `at` on order a review: `review the diff`, `please have a look at my changes`.
pub(super) fn orders_review(words: &[Word<'_>], at: usize) -> bool {
    let fillers = words[at..].iter().take_while(|word| word.is(FILLERS) && !word.is("have get")).count();
    words.get(at + fillers).is_some() && is_review(words, at + fillers).is_some()
}

/// The names around a name that a list joins: `@rex and @tess`.
fn group(words: &[Word<'_>], at: usize) -> (usize, usize) {
    let (mut first, mut last) = (at, at);
    let joins = |one: usize, other: usize| match &words[one + 1..other] {
        [] => words[other].follows_comma(),
        [and] => and.is("and or") && !words[other].is_apart(),
        _ => false,
    };
    let is_plain = |at: usize| words[at].member.is_some() && !words[at].is_possessive;
    while let Some(next) = (last + 1..words.len().min(last + 3)).find(|next| is_plain(*next) && joins(last, *next)) {
        last = next;
    }
    while let Some(before) = (first.saturating_sub(2)..first).rev().find(|at| is_plain(*at) && joins(*at, first)) {
        first = before;
    }
    (first, last)
}

/// The first word after a name that is no filler and is not denied.
fn verb_after(words: &[Word<'_>], last: usize) -> Option<usize> {
    let mut at = last + 1;
    while at < words.len() && words[at].is(FILLERS) && words[at].member.is_none() {
        at += 1;
    }
    (at < words.len() && at <= last + 7 && !words[at].is(NOT)).then_some(at)
}

/// `@rex reviews it`, `let rex approve it`, `@rex: check bea's work`, `@rex to sign off`.
fn active(words: &[Word<'_>], first: usize, last: usize) -> Option<Range<usize>> {
    let name = &words[last];
    if name.is_possessive {
        return None;
    }
    // `hand it to @rex for review`
    let after = |count: usize| words.get(last + count).filter(|word| !word.is_apart());
    if let Some(link) = after(1).filter(|word| word.is("for as is")) {
        let rest = words[last + 2..].iter().take(4);
        let noun = rest.take_while(|word| !word.is_apart()).find(|word| !word.is(ARTICLES));
        let is_noun = noun.is_some_and(|word| word.is(NOUN) && (link.is("for") || word.is("reviewer approver")));
        if is_noun {
            let hands =
                |word: &Word<'_>| is_form(&word.text, "hand give pass send go assign submit forward bring show");
            let from = first.saturating_sub(4);
            let start = words[from..first].iter().rposition(hands).map_or(first, |at| from + at);
            return Some(range_of(words, start, last + 2));
        }
    }
    // `has to review` and `has the final say`: fillers may be the verb.
    let verbs = last + 1..=verb_after(words, last)?;
    let (verb, end) = verbs.rev().find_map(|verb| Some((verb, is_review(words, verb)?)))?;
    let (text, between) = (&words[verb], &words[last + 1..verb]);
    let is_base = !text.text.ends_with('s') && !text.text.ends_with("ing");
    let before = words[..first].iter().rfind(|word| !word.is("the our a"));
    let is_handed = before.is_some_and(|before| before.is(HANDS) && !words[first].is_apart())
        || between.iter().any(|word| word.is("to should must will shall can could would please may"));
    let is_addressed = name.is_at || (name.is_capital && (words[last + 1].is_apart() || is_handed));
    // `docs, review and tests` is a list.
    if (is_base && !is_addressed && !is_handed) || is_also_authoring(words, verb) {
        return None;
    }
    let joined = words[..first].iter().rposition(|word| !word.is(HANDS)).map_or(0, |at| at + 1);
    let apart = (joined..=first).rev().find(|at| words[*at].is_apart()).unwrap_or(joined);
    let start = if words[first].is_apart() { first } else { apart };
    Some(range_of(words, start, end))
}

/// The last word of a phrase of reviewing that begins at `verb`.
fn is_review(words: &[Word<'_>], verb: usize) -> Option<usize> {
    let word = &words[verb];
    let next = |count: usize| words.get(verb + count).filter(|word| !word.is_apart());
    if is_form(&word.text, "sign") && next(1).is_some_and(|word| word.is("off it the this")) {
        return Some(verb + 1);
    }
    if is_form(&word.text, REVIEW) {
        return Some(verb);
    }
    if is_form(&word.text, GIVES) || word.is("responsible charge") {
        let object =
            words[verb + 1..].iter().take(5).take_while(|word| !word.is_apart() && !word.is(CLAUSE) && !word.is("to"));
        let noun = object.enumerate().find(|(_, word)| word.is(NOUN))?;
        let is_final = words[verb + noun.0].is("final last");
        let is_look = words[verb].is("take takes have has") || is_final || !noun.1.is("look check");
        // `gets a review` says that somebody else reviews it.
        return (is_look && !word.is("get gets")).then_some(verb + 1 + noun.0);
    }
    if !is_form(&word.text, CHECK) {
        return None;
    }
    // `look it over`
    if next(1).is_some_and(|word| word.is(PRONOUN)) && next(2).is_some_and(|word| word.is("over through")) {
        return Some(verb + 2);
    }
    let particles = words[verb + 1..].iter().take_while(|word| word.is("over at through off again into carefully"));
    let object = verb + 1 + particles.count();
    let needs_particle = is_form(&word.text, "look go read") && object == verb + 1;
    (!needs_particle && is_work_of_others(words, object)).then_some(object.min(words.len() - 1))
}

/// Whether an object is the work of others: `it`, `the result`, `bea's work`, `what @bea did`, or nothing at all.
fn is_work_of_others(words: &[Word<'_>], at: usize) -> bool {
    let Some(object) = words.get(at).filter(|word| !word.is_apart()) else { return true };
    if object.is_possessive || object.is("what whatever") {
        return true;
    }
    if object.is(PRONOUN) {
        let ends = "afterwards after later too again carefully thoroughly before once when and for then first finally \
                    of at as well with against over off when until";
        return words.get(at + 1).is_none_or(|next| next.is_apart() || next.is(ends) || next.member.is_some());
    }
    if object.is(CLAUSE) || object.is("afterwards later finally and") {
        return true;
    }
    let noun = words[at..].iter().take(4).find(|word| !word.is(ARTICLES) && word.member.is_none());
    noun.is_some_and(|noun| noun.is(WORK))
}

/// `reviews it and adds tests`: more than a review.
fn is_also_authoring(words: &[Word<'_>], verb: usize) -> bool {
    let rest = words.iter().skip(verb + 1).take_while(|word| word.member.is_none() || word.is_possessive);
    let rest: Vec<&Word<'_>> = rest.take_while(|word| !word.is(CLAUSE)).collect();
    rest.windows(2).any(|pair| pair[0].is("and or") && !pair[0].is_apart() && is_authoring(&pair[1].text))
}

/// `reviewed by @rex`, `a review by @rex`, `reviewer: @rex`, `after @rex's approval`.
fn nominal(words: &[Word<'_>], first: usize, last: usize) -> Option<Range<usize>> {
    let before = words[..first].iter().rposition(|word| !word.is("the our a colleague and agent member"))?;
    let is_denied = |from: usize| words[from.saturating_sub(3)..from].iter().any(|word| word.is(NOT));
    if words[last].is_possessive {
        const GATES: &str = "after once until with pending needs need requires require get gets await awaits for \
                             under to by wants on";
        let noun = words[last + 1..].iter().take(2).position(|word| word.is(NOUN))?;
        let is_of_comments =
            words.get(last + 2 + noun).is_some_and(|word| word.is("comment comments findings notes remarks feedback"));
        // `no merge without @rex's approval`
        let is_gate = words[before].is(GATES) && !is_denied(before);
        let is_needed = words[before].is("without") && is_denied(before);
        return ((is_gate || is_needed) && !is_of_comments).then(|| range_of(words, before, last + 1 + noun));
    }
    let is_judged = |word: &Word<'_>| [REVIEW, CHECK].iter().any(|list| is_done_form(&word.text, list));
    match &words[before] {
        word if word.is("by from through via") => {
            let from = words[before.saturating_sub(5)..before].iter().rposition(|word| {
                (is_judged(word) && words[before].is("by")) || word.is(NOUN) || is_form(&word.text, "sign")
            })?;
            let from = before.saturating_sub(5) + from;
            (!is_denied(from)).then(|| range_of(words, from, last))
        }
        word if word.is("reviewer reviewers approver approvers review reviews") => {
            let is_title = words[before + 1].is_apart() && !words[before + 1].follows_comma();
            is_title.then(|| range_of(words, before, last))
        }
        word if word.is("is are be") => {
            let title = words[..before].last().filter(|word| word.is("reviewer reviewers approver approvers"));
            title.map(|_| range_of(words, before - 1, last))
        }
        _ => None,
    }
}

/// From one word to the end of the clause that contains the other.
fn range_of(words: &[Word<'_>], first: usize, last: usize) -> Range<usize> {
    let next = words.iter().skip(last + 1);
    let more =
        next.take_while(|word| !word.is_apart() && !word.is(CLAUSE) && (word.member.is_none() || word.is_possessive));
    let end = words[(last + more.count()).min(words.len() - 1)].range.end;
    words[first].range.start..end
}
