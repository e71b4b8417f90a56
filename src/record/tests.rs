use super::entry::{VERSION, entry_path};
use super::*;
use crate::model::samples::every_kind;
use crate::model::{
    Actor, ChangeClass, Decision, DecisionId, EntryId, Event, EventKind, Note, NoteKind, Position, RunId, Slug, Source,
};

fn at() -> jiff::Timestamp {
    "2026-01-05T09:00:00Z".parse().expect("a time stamp")
}

fn decision() -> Decision {
    Decision {
        id: DecisionId::new("000000000001"),
        title: "Health checks answer as JSON".to_owned(),
        date: Some("2026-01-05T09:00:00Z".to_owned()),
        by: Some("backend".to_owned()),
        run: Some(RunId::new("20260105-090000-000001")),
        supersedes: Some(DecisionId::new("0000000000aa")),
        scope: vec!["src/**".to_owned()],
        tags: vec!["api".to_owned()],
        text: "**What:** JSON, not text.\n\n**Why:** the load balancer reads it.".to_owned(),
        note: None,
        status: None,
        source: None,
    }
}

fn events() -> Vec<Event> {
    let is_the_runs = |kind: &EventKind| matches!(kind, EventKind::RunStarted { .. } | EventKind::RunCompleted(_));
    let id = |number: u64| EntryId::new(format!("019b8d1f-6c00-7000-8000-{number:012}"));
    let event = |(seq, kind): (u64, EventKind)| Event {
        seq,
        at: at(),
        run: RunId::new("20260105-090000-000001"),
        agent: Slug::fold("tester").filter(|_| !is_the_runs(&kind)),
        position: if is_the_runs(&kind) { Position::default() } else { Position::new(1, 2) },
        causes: (1..seq).rev().take(1).map(id).collect(),
        id: id(seq),
        kind,
    };
    (1..).zip(every_kind()).map(event).collect()
}

fn entries() -> Vec<Entry> {
    events().iter().map(|event| entry_of(event, &Redactor::default())).collect()
}

/// Written entries stay readable for ever. `UPDATE_EXPECT=1` accepts a change of what is *written*, into a new folder
/// next to the old one, whose files are still read; see [`VERSION`].
#[test]
fn the_envelope_is_pinned_by_golden_files() {
    for entry in entries() {
        let path = fixtures().join(format!("entries/v{VERSION}.2/{}.md", entry.kind));
        expect_test::expect_file![path].assert_eq(&String::from_utf8(entry.render()).expect("UTF-8"));
    }
}

#[test]
fn events_are_pinned_as_the_lines_of_json_that_programs_read() {
    let lines: Vec<String> = events().iter().map(|event| serde_json::to_string(event).expect("JSON")).collect();
    expect_test::expect_file![fixtures().join("events.ndjson")].assert_eq(&(lines.join("\n") + "\n"));
}

#[test]
fn entries_of_every_earlier_squad_are_read() {
    let mut counts = Vec::new();
    for version in ["v1", "v1.1"] {
        let mut count = 0;
        for file in std::fs::read_dir(fixtures().join("entries").join(version)).expect("a folder").flatten() {
            let Read::Entry(entry) = Entry::parse(&std::fs::read(file.path()).expect("a file")) else {
                panic!("{} is no entry", file.path().display());
            };
            let kind = entry.known_kind().unwrap_or_else(|| panic!("{} is of no known kind", entry.kind));
            assert_eq!(kind.name(), entry.kind.as_str());
            if version == "v1" {
                assert_eq!((entry.position, &entry.causes), (Position::default(), &vec![]));
            }
            if let Some((_, end)) = kind.end() {
                let changed = end.changed.iter().flatten();
                let changed: Vec<_> = changed.map(|change| (change.class, change.by.len())).collect();
                let expected = [(ChangeClass::Own, 0), (ChangeClass::Together, 2)];
                assert_eq!(changed, if version == "v1" { &[] } else { &expected[..] }, "{}", entry.kind);
                assert_eq!((end.usage.input_tokens, end.git.is_empty()), (1200, true), "{}", entry.kind);
            }
            count += 1;
        }
        counts.push(count);
    }
    assert_eq!(counts, [28, 61]);
}

fn fixtures() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// Copies of a value, each with one text replaced.
fn with_each_text_replaced(value: &serde_json::Value, text: &str) -> Vec<serde_json::Value> {
    use serde_json::Value;
    match value {
        Value::String(_) => vec![Value::from(text)],
        Value::Array(items) => (0..items.len())
            .flat_map(|at| with_each_text_replaced(&items[at], text).into_iter().map(move |new| (at, new)))
            .map(|(at, new)| {
                let mut items = items.clone();
                items[at] = new;
                Value::Array(items)
            })
            .collect(),
        Value::Object(map) => map
            .iter()
            .flat_map(|(key, old)| with_each_text_replaced(old, text).into_iter().map(move |new| (key, new)))
            .map(|(key, new)| {
                let mut map = map.clone();
                map.insert(key.clone(), new);
                Value::Object(map)
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// A secret in any text of any kind is not stored.
#[test]
fn no_kind_of_entry_keeps_a_secret() {
    let secret = format!("ghp_{}", "a1B2".repeat(9));
    let mut planted = std::collections::BTreeSet::new();
    for event in events() {
        let value = serde_json::to_value(&event.kind).expect("JSON");
        for value in with_each_text_replaced(&value, &format!("it is {secret}")) {
            // Some texts are enum values or times.
            let Ok(kind) = serde_json::from_value::<EventKind>(value) else { continue };
            planted.insert(kind.name());
            let entry = entry_of(&Event { kind, ..event.clone() }, &Redactor::default());
            let file = String::from_utf8(entry.render()).expect("UTF-8");
            assert!(!file.contains(&secret) && file.contains("[redacted:github-token]"), "{file}");
        }
    }
    let missing: Vec<_> = EventKind::NAMES.iter().filter(|name| !planted.contains(*name)).collect();
    // These have no text, or only slugs, which cannot be such a text.
    let without = [
        "step.started",
        "step.completed",
        "connection.restored",
        "pool.empty",
        "question.answered",
        "quota.waited",
        "review.lifted",
    ];
    assert_eq!(missing, without.iter().collect::<Vec<_>>());
}

#[test]
fn an_entry_reads_back_as_the_event_it_was() {
    for (entry, kind) in entries().into_iter().zip(every_kind()) {
        assert_eq!(Entry::parse(&entry.render()), Read::Entry(Box::new(entry.clone())), "{}", entry.kind);
        assert_eq!(entry.known_kind(), Some(kind), "{}", entry.kind);
    }
}

#[test]
fn entries_of_later_squads_are_kept_as_unknown() {
    let entry = b"---\nsquad: 2\nid: \"x\"\nshape: [1]\n---\ntext\n";
    assert_eq!(Entry::parse(entry), Read::Newer { version: 2 });
    let mut entry = entries().remove(0);
    entry.kind = "run.paused".to_owned();
    assert!(matches!(Entry::parse(&entry.render()), Read::Entry(_)));
    assert_eq!(entry.understood(), Ok(None));
    // A known kind with malformed content.
    let mut entry = entries().into_iter().find(|entry| entry.kind == "decision.logged").expect("there is one");
    entry.payload.insert("id".to_owned(), "../../x".into());
    let reason = entry.understood().expect_err("no path is made of it");
    assert!(reason.contains("\"../../x\" cannot be an id"), "{reason}");
}

#[test]
fn damage_is_reported_and_never_panics() {
    for bytes in
        [&b""[..], b"---\n", b"---\n---\n", b"---\nsquad: x\n---\n", b"\xff\xfe", b"---\nsquad: 1\n---\n", b"x"]
    {
        assert!(matches!(Entry::parse(bytes), Read::Damaged { .. }), "{bytes:?}");
    }
}

#[test]
fn an_entry_lists_its_redactions() {
    let secret = format!("ghp_{}", "a1B2".repeat(9));
    let kind =
        EventKind::ToolDenied { tool: "bash".to_owned(), detail: format!("curl -H {secret}"), reason: String::new() };
    let entry = Entry::new(EntryId::new("x"), at(), Actor::Agent, &kind, &Redactor::default());
    assert_eq!(entry.redactions, [crate::policy::Redaction { kind: "github-token".to_owned(), count: 1 }]);
}

#[test]
fn entries_lie_in_folders_by_team_and_time() {
    let id = EntryId::new("i");
    let entry = Entry::new(
        id.clone(),
        at(),
        Actor::User,
        &EventKind::MemoryLogged { text: String::new(), share: None },
        &Redactor::default(),
    );
    assert!(entry.has_path(&entry.path("teams/a/"), "teams/a/"));
    assert!(entry.has_path("memory/2026/01/05/i-memory.logged.md", ""), "as it was at first");
    assert!(!entry.has_path("memory/2026/01/06/i-memory.logged.md", ""));
    assert_eq!(entry_path("", &id, at(), "run.started"), "log/2026/01/05/09/00/i-run.started.md");
    assert_eq!(
        entry_path("teams/a/", &id, at(), "decision.logged"),
        "teams/a/decisions/2026/01/05/09/00/i-decision.logged.md"
    );
}

#[test]
fn a_decision_file_reads_back() {
    let mut decision = decision();
    decision.title = "Use \"quotes\": and #marks".to_owned();
    assert_eq!(decision_path(".squad", &decision), ".squad/decisions/2026/01/05-use-quotes-and-marks-000000000001.md");
    let source = Source::new("x", 1);
    decision.source = Some(source.clone());
    assert_eq!(crate::parse::decision_file(&render_decision(&decision), source), Ok((decision, Vec::new())));
}

/// Texts of any characters, and of those with a meaning in YAML.
fn odd() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    let mark = prop::sample::select(vec![
        "---",
        "\n---\n",
        "\r\n",
        "\n",
        "\"",
        "'",
        "\\",
        "\\u0000",
        ": ",
        " #",
        "- ",
        "[",
        "]",
        "{",
        "}",
        ",",
        "&a",
        "*a",
        "!!int",
        "|",
        ">",
        "%",
        "@",
        "`",
        "~",
        "null",
        "true",
        "0x1",
        "1e3",
        "\t",
        "\0",
        "\u{7f}",
        "\u{85}",
        "\u{9b}",
        "\u{a0}",
        "\u{2028}",
        "\u{2029}",
        "\u{feff}",
        "\u{fffe}",
        "\u{ffff}",
        "\u{202e}",
        "\u{1f680}",
        "\u{10ffff}",
    ]);
    let piece = prop_oneof![mark.prop_map(str::to_owned), any::<char>().prop_map(String::from), "[a-z*/ ]{1,8}"];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest::proptest! {
    #[test]
    fn any_decision_reads_back(title in "[^\\s\u{feff}#][\\PC]{0,60}", by in "\\PC{0,20}", text in "[\\PC\n]{0,200}") {
        let mut decision = decision();
        decision.title = title.split_whitespace().collect::<Vec<_>>().join(" ");
        decision.by = Some(by);
        decision.text = text.trim().to_owned();
        let source = Source::new("x", 1);
        decision.source = Some(source.clone());
        let read = crate::parse::decision_file(&render_decision(&decision), source);
        proptest::prop_assert_eq!(read, Ok((decision, Vec::new())));
    }

    /// With any characters: quotes, line breaks, control characters, YAML and front matter markers.
    #[test]
    fn any_front_matter_reads_back(
        scope in proptest::collection::vec(odd(), 0..4),
        tags in proptest::collection::vec(odd(), 0..4),
        by in odd(),
        supersedes in odd(),
        run in odd(),
    ) {
        let mut decision = decision();
        (decision.scope, decision.tags, decision.by) = (scope, tags, Some(by));
        decision.supersedes = DecisionId::parse(&supersedes);
        decision.run = RunId::parse(&run);
        let source = Source::new("x", 1);
        decision.source = Some(source.clone());
        let read = crate::parse::decision_file(&render_decision(&decision), source);
        proptest::prop_assert_eq!(read, Ok((decision, Vec::new())));
    }

    #[test]
    fn any_text_reads_back(text in "[\\PC\n\r]{0,200}") {
        let kind = EventKind::MemoryLogged { text, share: None };
        let entry = Entry::new(EntryId::new("i"), at(), Actor::User, &kind, &Redactor::default());
        proptest::prop_assert_eq!(Entry::parse(&entry.render()), Read::Entry(Box::new(entry)));
    }
}

#[test]
fn a_note_reads_back_from_its_file() {
    let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let note = Note {
        kind: NoteKind::Pitfall,
        languages: texts(&["C#", "y"]),
        frameworks: texts(&["Next.js, or not: both"]),
        project: Some("shop: \"the\" old one".to_owned()),
        from: DecisionId::parse("4f1c09"),
        evidence: texts(&["src/a, b.rs:1-2@3b18e512", "commit:3b18e512"]),
    };
    let decision = Decision { note: Some(note), tags: texts(&["login"]), ..decision() };
    let path = decision_path(".squad", &decision);
    assert!(path.starts_with(".squad/knowledge/"), "{path}");
    let source = Source::new(&path, 1);
    let read = crate::parse::decision_file(&render_decision(&decision), source.clone());
    assert_eq!(read, Ok((Decision { source: Some(source), ..decision }, Vec::new())));
}
