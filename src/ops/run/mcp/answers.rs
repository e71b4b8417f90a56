//! The members of a run in a reply: first what each answered, then the raw output, as far as a host keeps it.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::uri;
use crate::model::{Change, RunId, Sort};
use crate::ops::Project;
use crate::ops::run::members::{MemberResult, RunResult};
use crate::ops::team::engines;

/// Bytes of a link to a member's output, beside its URI.
const LINK: usize = 100;
/// The part of the rest that is kept for raw output.
const RAW: usize = 5;
/// Most changed files of a member that are listed.
const CHANGED: usize = 12;
/// Most bytes of a reason.
const REASON: usize = 1_000;
const BRIEF_REASON: usize = 100;

/// How many bytes of a reply's JSON the client keeps. Codex keeps the least; of others, one kept 42 KB and not 140,
/// another not 39.
pub(super) fn room(client: Option<&str>) -> usize {
    match client.and_then(engines::of_client) {
        Some("codex") => 8 * 1024,
        _ => 20 * 1024,
    }
}

/// Whether a value fits into what earlier ones have left of so many bytes of JSON.
pub(super) fn fits(mut room: usize) -> impl FnMut(&Value) -> bool {
    move |value| {
        let left = room.checked_sub(size(value) + 1);
        room = left.unwrap_or(0);
        left.is_some()
    }
}

fn size(value: &Value) -> usize {
    value.to_string().len()
}

/// Each member's result, in so many bytes of JSON. Answers share what there is: short ones are whole, the longest are cut
/// and linked. Of many members, each has its status and its answer only, and the last may be left out.
pub(super) fn of(project: &Project, result: &RunResult, now: Timestamp, room: usize) -> Vec<Value> {
    let run = &result.run;
    let whole = result.members.iter().map(|member| {
        let mut value = described(run, member, now);
        value["rawStdout"] = "".into();
        value["rawStderr"] = "".into();
        value["truncated"] = false.into();
        value["logUri"] = uri::output(run, member, "stdout").into();
        value
    });
    let mut shown: Vec<Value> = whole.collect();
    let mut used: usize = shown.iter().map(|value| size(value) + LINK + 1).sum();
    let is_whole = used <= room / 2;
    if !is_whole {
        shown = result.members.iter().map(brief).take_while(fits(room)).collect();
        used = shown.iter().map(|value| size(value) + 1).sum();
    }
    let room = room.saturating_sub(used);
    let lengths: Vec<usize> = result.members.iter().take(shown.len()).map(|member| cost(answer(member))).collect();
    let shares = shares(&lengths, if is_whole { room - room / RAW } else { room });
    let raw = room.saturating_sub(shares.iter().sum()) / (2 * shown.len().max(1));
    for ((value, member), share) in shown.iter_mut().zip(&result.members).zip(shares) {
        if member.end.is_some() {
            let text = beginning(answer(member), share);
            value["text"] = text.into();
            if text.len() == answer(member).len()
                && let Some(value) = value.as_object_mut()
            {
                value.shift_remove("textUri");
            }
        }
        if is_whole {
            let (stdout, is_cut) = output(project, run, member, "stdout", raw);
            let (stderr, is_cut_too) = output(project, run, member, "stderr", raw);
            value["rawStdout"] = stdout.into();
            value["rawStderr"] = stderr.into();
            value["truncated"] = (is_cut || is_cut_too).into();
        }
    }
    shown
}

/// A member of whose answer little is shown.
fn brief(member: &MemberResult) -> Value {
    let mut value = json!({"memberId": member.given.id, "roleId": member.given.role, "status": member.status});
    if let Some(reason) = member.reason() {
        value["reason"] = beginning(&reason, BRIEF_REASON).into();
    }
    if member.end.is_some() {
        value["text"] = "".into();
    }
    value
}

pub(super) fn answer(member: &MemberResult) -> &str {
    member.end.as_ref().map_or("", |(_, end)| end.text.as_str())
}

/// How many bytes each may take of `room`, so that only the longest are cut, and those alike.
fn shares(lengths: &[usize], mut room: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.stable_sort_by_key(|&index| lengths[index]);
    let mut shares = vec![0; lengths.len()];
    for (done, index) in order.into_iter().enumerate() {
        shares[index] = lengths[index].min(room / (lengths.len() - done));
        room -= shares[index];
    }
    shares
}

/// The bytes of a text in JSON.
fn cost(text: &str) -> usize {
    text.chars().map(cost_of).sum()
}

fn cost_of(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' => 2,
        c if c.is_control() => 6,
        c => c.len_utf8(),
    }
}

/// The beginning of a text that costs at most that many bytes.
pub(super) fn beginning(text: &str, most: usize) -> &str {
    let mut left = most;
    let end = text.char_indices().find(|(_, c)| {
        let cost = cost_of(*c);
        let is_over = cost > left;
        left = left.saturating_sub(cost);
        is_over
    });
    end.map_or(text, |(at, _)| &text[..at])
}

/// A member without its answer and output.
pub(super) fn described(run: &RunId, member: &MemberResult, now: Timestamp) -> Value {
    let given = &member.given;
    let mut value = json!({"memberId": given.id, "roleId": given.role, "status": member.status});
    if let Some(reason) = member.reason() {
        value["reason"] = beginning(&reason, REASON).into();
    }
    if let Some((_, end)) = &member.end {
        value["text"] = "".into();
        value["textUri"] = uri::output(run, member, "text").into();
        if let Some(changed) = &end.changed {
            value["changed"] = changed.iter().take(CHANGED).map(change).collect();
            if changed.len() > CHANGED {
                value["changedMore"] = (changed.len() - CHANGED).into();
            }
        }
        value["inputTokens"] = end.usage.input_tokens.into();
        value["outputTokens"] = end.usage.output_tokens.into();
    }
    if let Some(directory) = &given.directory {
        value["cwd"] = directory.as_str().into();
    }
    if given.keeps_chat {
        value["chatId"] = member.session.as_str().into();
    }
    if let Some(exited) = &member.exited {
        if let Some(code) = exited.exit_code {
            value["exitCode"] = code.into();
        }
        if let Some(signal) = exited.signal {
            value["signal"] = signal.into();
        }
    }
    if let Some(governed) = &member.governed {
        value["governedBy"] = governed.as_str().into();
    }
    let seconds = member.end.as_ref().map_or_else(|| member.seconds_at(now), |(_, end)| end.usage.seconds);
    // No run takes longer than 64 bits of milliseconds.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds are never negative")]
    let milliseconds = (seconds * 1000.0).round() as u64;
    value["durationMs"] = milliseconds.into();
    value
}

fn change(change: &Change) -> Value {
    json!({"path": change.path, "added": change.added, "removed": change.removed})
}

/// The end of an output, and whether something was cut.
fn output(project: &Project, run: &RunId, member: &MemberResult, kind: &str, most: usize) -> (String, bool) {
    let (mut text, mut is_cut) = (None, false);
    if let Some(file) = member.output(project, run, kind)
        && let (Some(size), Ok(bytes)) = (file.size(), file.end(most as u64))
    {
        is_cut = size > most as u64;
        // A character that was cut in the middle is removed.
        let begin = if is_cut { bytes.iter().take(3).take_while(|&&byte| byte & 0xC0 == 0x80).count() } else { 0 };
        text = Some(String::from_utf8_lossy(bytes.get(begin..).unwrap_or_default()).into_owned());
    }
    // The file may be gone: output is kept for a while only, and in this clone. The ledger has the messages.
    let text = text.or_else(|| member.said().filter(|_| kind == "stdout")).unwrap_or_default();
    let mut left = most;
    let start = text.char_indices().rev().find(|(_, c)| {
        let cost = cost_of(*c);
        let is_over = cost > left;
        left = left.saturating_sub(cost);
        is_over
    });
    match start {
        None => (text, is_cut),
        Some((at, c)) => (text[at + c.len_utf8()..].to_owned(), true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_longest_are_cut_and_those_alike() {
        assert_eq!(shares(&[10, 20, 30], 100), [10, 20, 30]);
        assert_eq!(shares(&[10, 500, 30, 400], 240), [10, 100, 30, 100]);
        assert_eq!(shares(&[], 10), [0; 0]);
        assert_eq!(shares(&[5, 5], 0), [0, 0]);
    }

    #[test]
    fn a_cut_text_costs_what_it_may() {
        let text = "é\"\n\u{1}x";
        for most in 0..cost(text) {
            let cut = beginning(text, most);
            assert!(cost(cut) <= most && text.starts_with(cut), "{most}: {cut}");
        }
        assert_eq!((beginning(text, cost(text)), cost(text)), (text, serde_json::json!(text).to_string().len() - 2));
    }
}
