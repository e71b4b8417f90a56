//! Removing secrets from recorded entries.

use serde_json::Value;

use super::{Entry, Read};
use crate::model::{Damage, EventKind, Sort};
use crate::policy::{Redaction, Redactor, SCRUBBED};

/// A ledger file without the secrets `redactor` finds, and their kinds; `None`: there are none.
pub(crate) fn scrubbed(bytes: &[u8], redactor: &Redactor) -> Option<(Vec<u8>, Vec<String>)> {
    let Read::Entry(mut entry) = Entry::parse(bytes) else {
        return redactor.bytes(bytes).map(|(clean, found)| (clean, kinds(&found)));
    };
    let before = std::mem::take(&mut entry.redactions);
    entry.redact(redactor);
    let mut found = std::mem::replace(&mut entry.redactions, before);
    found.iter().for_each(|redaction| add(&mut entry.redactions, redaction));
    let mut clean = if found.is_empty() { bytes.to_owned() } else { entry.render() };
    // A value named by the user is removed wherever it occurs; rules need the text around a secret.
    if redactor.is_of_value()
        && let Some((cleaner, more)) = redactor.bytes(&clean)
    {
        clean = cleaner;
        more.iter().for_each(|redaction| add(&mut found, redaction));
    }
    (!found.is_empty()).then(|| (clean, kinds(&found)))
}

fn kinds(found: &[Redaction]) -> Vec<String> {
    found.iter().map(|redaction| redaction.kind.clone()).collect()
}

fn add(redactions: &mut Vec<Redaction>, one: &Redaction) {
    match redactions.iter_mut().find(|other| other.kind == one.kind) {
        Some(other) => other.count += one.count,
        None => redactions.push(one.clone()),
    }
}

/// The changed files and the damage set aside, according to a scrub record.
pub(crate) fn scrubbed_paths(record: &[u8]) -> (Vec<String>, Vec<Damage>) {
    match Entry::parse(record) {
        Read::Entry(entry) => match entry.known_kind() {
            Some(EventKind::ScrubCompleted { entries, set_aside, .. }) if set_aside.is_empty() => (entries, set_aside),
            Some(EventKind::ScrubCompleted { set_aside, .. }) => (Vec::new(), set_aside),
            _ => Default::default(),
        },
        Read::Newer { .. } | Read::Damaged { .. } => Default::default(),
    }
}

/// Merges two versions of a file, one or both of which were scrubbed: what was removed from either stays removed. The
/// same for (a, b) and (b, a).
///
/// Of two texts, one is the scrubbed version if filling in its redactions can yield the other. If neither is, both were
/// scrubbed of different secrets, and the whole text is redacted.
pub(crate) fn settle(a: &[u8], b: &[u8]) -> Vec<u8> {
    let (a, b) = if a <= b { (a, b) } else { (b, a) };
    let (Read::Entry(mut one), Read::Entry(other)) = (Entry::parse(a), Entry::parse(b)) else {
        let texts = std::str::from_utf8(a).ok().zip(std::str::from_utf8(b).ok());
        return texts.map_or_else(redacted, |(a, b)| merged(a, b)).into_bytes();
    };
    one.text = merged_lines(&one.text, &other.text);
    let mut payload = Value::Object(one.payload.clone());
    merge_values(&mut payload, &Value::Object(other.payload.clone()));
    if let Value::Object(payload) = payload {
        one.payload = payload;
    }
    for redaction in &other.redactions {
        match one.redactions.iter_mut().find(|known| known.kind == redaction.kind) {
            Some(known) => known.count = known.count.max(redaction.count),
            None => one.redactions.push(redaction.clone()),
        }
    }
    one.redactions.stable_sort_by(|a, b| a.kind.cmp(&b.kind));
    one.render()
}

fn merge_values(one: &mut Value, other: &Value) {
    match (&mut *one, other) {
        (Value::String(a), Value::String(b)) => *a = merged_lines(a, b),
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter_mut().zip(b).for_each(|(a, b)| merge_values(a, b));
        }
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            a.values_mut().zip(b.values()).for_each(|(a, b)| merge_values(a, b));
        }
        (a, b) if *a == *b => {}
        _ => *one = Value::String(redacted()),
    }
}

fn merged_lines(a: &str, b: &str) -> String {
    if a.split('\n').count() != b.split('\n').count() {
        return merged(a, b);
    }
    a.split('\n').zip(b.split('\n')).map(|(a, b)| merged(a, b)).collect::<Vec<_>>().join("\n")
}

fn merged(a: &str, b: &str) -> String {
    if a == b || covers(a, b) {
        return a.to_owned();
    }
    if covers(b, a) { b.to_owned() } else { redacted() }
}

fn redacted() -> String {
    format!("[redacted:{SCRUBBED}]")
}

/// Whether `redacted` is `whole` with parts replaced by redactions.
fn covers(redacted: &str, whole: &str) -> bool {
    const OPEN: &str = "[redacted:";
    let mut pieces = Vec::new();
    let mut rest = redacted;
    while let Some((before, after)) = rest.split_once(OPEN) {
        let Some((kind, after)) = after.split_once(']') else { break };
        if !kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return false;
        }
        pieces.push(before);
        rest = after;
    }
    let (Some(first), last) = (pieces.first(), rest) else { return false };
    let Some(mut left) = whole.strip_prefix(first) else { return false };
    for piece in pieces.iter().skip(1) {
        let Some((_, after)) = left.split_once(piece) else { return false };
        left = after;
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Actor, Decision, DecisionId, EntryId};

    fn entry(kind: &EventKind) -> Entry {
        Entry::new(EntryId::new("i"), jiff::Timestamp::UNIX_EPOCH, Actor::User, kind, &Redactor::default())
    }

    fn decided(title: &str, text: &str) -> Vec<u8> {
        let decision = Decision {
            id: DecisionId::new("d"),
            title: title.to_owned(),
            date: None,
            by: None,
            run: None,
            supersedes: None,
            scope: vec!["src/**".to_owned()],
            tags: Vec::new(),
            text: text.to_owned(),
            note: None,
            status: None,
            source: None,
        };
        entry(&EventKind::DecisionLogged { decision, branch: Some("main".to_owned()) }).render()
    }

    fn without(file: &[u8], value: &str) -> Vec<u8> {
        scrubbed(file, &Redactor::of_value(value)).expect("it is in it").0
    }

    #[test]
    fn a_value_is_removed_from_text_and_payload_and_counted() {
        let file = decided("Use s3cr3t", "s3cr3t and \"s3cr3t\"");
        let (clean, kinds) = scrubbed(&file, &Redactor::of_value("s3cr3t")).expect("it is in it");
        let clean = String::from_utf8(clean).expect("UTF-8");
        assert!(
            !clean.contains("s3cr3t") && clean.contains("redactions: [{\"kind\":\"scrubbed\",\"count\":3}]"),
            "{clean}"
        );
        assert_eq!(kinds, ["scrubbed"]);
        assert_eq!(scrubbed(clean.as_bytes(), &Redactor::of_value("s3cr3t")), None);
        assert_eq!(scrubbed(&file, &Redactor::default()), None);
    }

    #[test]
    fn unknown_files_are_scrubbed_too() {
        let newer = b"---\nsquad: 9\nid: \"x\"\nshape: \"a\\\"b\"\n---\na\"b\n";
        let clean = String::from_utf8(without(newer, "a\"b")).expect("UTF-8");
        assert_eq!(clean, "---\nsquad: 9\nid: \"x\"\nshape: \"[redacted:scrubbed]\"\n---\n[redacted:scrubbed]\n");
        assert_eq!(without(b"\xffabcabc\xfe", "abc"), b"\xff[redacted:scrubbed][redacted:scrubbed]\xfe");
    }

    #[test]
    fn the_scrubbed_version_wins() {
        let file = decided("Use s3cr3t", "one\ntwo pa55\nthree");
        let (first, second) = (without(&file, "s3cr3t"), without(&file, "pa55"));
        assert_eq!(settle(&file, &first), first);
        assert_eq!(settle(&first, &file), first);
        let both = String::from_utf8(settle(&first, &second)).expect("UTF-8");
        assert_eq!(both.as_bytes(), settle(&second, &first));
        assert!(!both.contains("s3cr3t") && !both.contains("pa55"), "{both}");
        assert!(both.contains("Use [redacted") && both.contains("one\ntwo [redacted:scrubbed]\nthree"), "{both}");
    }

    #[test]
    fn ambiguous_versions_are_fully_redacted() {
        // In one line, two secrets.
        let file = decided("t", "s3cr3t pa55");
        let both = String::from_utf8(settle(&without(&file, "s3cr3t"), &without(&file, "pa55"))).expect("UTF-8");
        assert!(both.ends_with("---\n[redacted:scrubbed]\n"), "{both}");
        assert_eq!(settle(b"\xff", b"\xfe"), redacted().into_bytes());
        assert_eq!(settle(b"a [redacted:x] c", b"a b c"), b"a [redacted:x] c");
    }

    proptest::proptest! {
        #[test]
        fn no_secret_comes_back(before in "[a-z \n]{0,20}", after in "[a-z \n]{0,20}", again in 0..3usize) {
            let text = format!("{before}S1{after}{}", "S2 ".repeat(again));
            let file = decided("S1 S2", &text);
            let (first, second) = (without(&file, "S1"), without(&file, "S2"));
            let merged = String::from_utf8(settle(&first, &second)).expect("UTF-8");
            proptest::prop_assert!(!merged.contains("S1") && !merged.contains("S2"), "{merged}");
            proptest::prop_assert_eq!(settle(&first, &file), first);
        }
    }
}
