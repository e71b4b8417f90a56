use std::collections::BTreeMap;

use super::entry::{VERSION, entry_path};
use super::*;
use crate::model::{Decision, DecisionId, Outcome, Plan, PlanKind, RunId, Source, Tier, Usage, Verdict};

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
        status: None,
        source: None,
    }
}

/// One of each kind. A kind that is missing here has no golden file, so keep the list whole.
fn every_kind() -> Vec<What> {
    let slug = |name: &str| Slug::fold(name).expect("a slug");
    let usage =
        Usage { input_tokens: 1200, output_tokens: 80, cost_usd: Some(0.25), turns: 1, tool_calls: 2, seconds: 3.5 };
    let text = || "Line one.\n---\nkind: \"forged\"\n".to_owned();
    let session = || "squad-tester-20260105-090000-000001".to_owned();
    vec![
        What::RunStarted {
            text: "Add a health endpoint".to_owned(),
            engine: "rehearsal".to_owned(),
            version: "0.1.0".to_owned(),
            branch: Some("main".to_owned()),
            commit: None,
        },
        What::RoutePlanned(Plan {
            kind: PlanKind::Agents,
            agents: vec![slug("backend")],
            reviewer: Some(slug("reviewer")),
            tier: Tier::Standard,
            confidence: 0.75,
            evidence: vec![crate::model::Evidence {
                agent: slug("backend"),
                why: "row matches endpoint".to_owned(),
                source: ".squad/routing.md:9".to_owned(),
                weight: 2.5,
            }],
        }),
        What::EngineFallback { from: "copilot".to_owned(), to: "rehearsal".to_owned(), reason: "not found".to_owned() },
        What::ConnectionLost { reason: "the engine exited".to_owned() },
        What::ConnectionRestored { attempts: 2 },
        What::SessionCreated {
            session: session(),
            model: "claude-sonnet-4.5".to_owned(),
            compiled_hash: "0011223344556677".to_owned(),
        },
        What::SessionResumed { session: session() },
        What::SessionIdle { session: session() },
        What::SessionDestroyed { session: session() },
        What::SessionError { session: session(), reason: "no answer".to_owned() },
        What::Message { text: text() },
        What::ToolCompleted {
            call: "c1".to_owned(),
            tool: "bash".to_owned(),
            ok: true,
            detail: "cargo test".to_owned(),
            result: "ok".to_owned(),
            wrote: None,
        },
        What::ToolDenied { tool: "bash".to_owned(), detail: "rm x".to_owned(), reason: "not allowed".to_owned() },
        What::DecisionLogged { decision: Decision { run: None, ..decision() }, branch: Some("main".to_owned()) },
        What::DecisionLanded {
            decisions: vec![decision().id],
            branch: "main".to_owned(),
            commit: "0123abc".to_owned(),
        },
        What::MemoryLogged { text: "The suite needs TZ=UTC.".to_owned() },
        What::Usage(usage.clone()),
        What::Completed { text: text(), usage: usage.clone() },
        What::Failed { reason: "the model refused".to_owned(), text: String::new(), usage: usage.clone() },
        What::TimedOut { reason: "no end after 5m".to_owned(), text: String::new(), usage: usage.clone() },
        What::Cancelled { reason: "interrupted".to_owned(), text: String::new(), usage: usage.clone() },
        What::ReviewVerdict { verdict: Verdict::Rejected, authors: vec![slug("backend")], text: text() },
        What::Answer { text: "Done.".to_owned() },
        What::RunCompleted {
            status: Outcome::TimedOut,
            agents: BTreeMap::from([(slug("backend"), Outcome::Completed)]),
            commits: vec!["0123abc".to_owned()],
            usage,
        },
        What::ModelFallback {
            from: "claude-opus-4.5".to_owned(),
            to: "gpt-5.2".to_owned(),
            reason: "copilot does not offer it".to_owned(),
        },
        What::MemoryLanded {
            learnings: vec![EntryId::new("019b8d1f-6c00-7000-8000-000000000016")],
            branch: "main".to_owned(),
            commit: "0123abc".to_owned(),
        },
        What::ScrubCompleted {
            entries: vec!["log/2026/01/05/019b8d1f-6c00-7000-8000-000000000011-agent.message.md".to_owned()],
            kinds: vec!["github-token".to_owned()],
        },
        What::Lockout { reviewer: slug("reviewer") },
    ]
}

fn entries() -> Vec<Entry> {
    let event = |(number, what)| Event {
        seq: number,
        at: at(),
        run: RunId::new("20260105-090000-000001"),
        agent: Slug::fold("tester").filter(|_| !matches!(what, What::RunStarted { .. } | What::RunCompleted { .. })),
        what,
    };
    (1..)
        .zip(every_kind())
        .map(event)
        .map(|event| {
            let id = EntryId::new(format!("019b8d1f-6c00-7000-8000-{:012}", event.seq));
            entry_of(&event, id, &Redactor::default())
        })
        .collect()
}

/// What is written is read for ever. To accept a change of what is *written*, run with `UPDATE_EXPECT=1` and raise
/// `VERSION`; the old files stay, and go on being read.
#[test]
fn the_envelope_is_pinned_by_golden_files() {
    for entry in entries() {
        let name = format!("fixtures/entries/v{VERSION}/{}.md", entry.kind);
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        expect_test::expect_file![path].assert_eq(&String::from_utf8(entry.render()).expect("UTF-8"));
    }
}

#[test]
fn an_entry_reads_back_as_the_event_it_was() {
    for (entry, what) in entries().into_iter().zip(every_kind()) {
        assert_eq!(Entry::parse(&entry.render()), Read::Entry(Box::new(entry.clone())), "{}", entry.kind);
        assert_eq!(entry.what(), Some(what), "{}", entry.kind);
    }
}

#[test]
fn entries_of_later_squads_are_kept_as_unknown() {
    let entry = b"---\nsquad: 2\nid: \"x\"\nshape: [1]\n---\ntext\n";
    assert_eq!(Entry::parse(entry), Read::Newer { version: 2 });
    let mut entry = entries().remove(0);
    entry.kind = "run.paused".to_owned();
    assert!(matches!(Entry::parse(&entry.render()), Read::Entry(_)));
    assert_eq!(entry.what(), None);
}

#[test]
fn damage_is_said_and_never_panics() {
    for bytes in
        [&b""[..], b"---\n", b"---\n---\n", b"---\nsquad: x\n---\n", b"\xff\xfe", b"---\nsquad: 1\n---\n", b"x"]
    {
        assert!(matches!(Entry::parse(bytes), Read::Damaged { .. }), "{bytes:?}");
    }
}

#[test]
fn no_secret_reaches_an_entry() {
    let secret = format!("ghp_{}", "a1B2".repeat(9));
    let mut entry = Entry::new(
        EntryId::new("x"),
        at(),
        Actor::Agent,
        &What::ToolDenied { tool: "bash".to_owned(), detail: format!("curl -H {secret}"), reason: String::new() },
    );
    entry.redact(&Redactor::default());
    let file = String::from_utf8(entry.render()).expect("UTF-8");
    assert!(
        !file.contains(&secret) && file.contains("redactions: [{\"kind\":\"github-token\",\"count\":1}]"),
        "{file}"
    );
}

#[test]
fn entries_lie_in_folders_by_team_and_time() {
    let id = EntryId::new("i");
    let entry = Entry::new(id.clone(), at(), Actor::User, &What::MemoryLogged { text: String::new() });
    assert!(entry.lies_at(&entry.path("teams/a/"), "teams/a/"));
    assert!(entry.lies_at("memory/2026/01/05/i-memory.logged.md", ""), "as it was at first");
    assert!(!entry.lies_at("memory/2026/01/06/i-memory.logged.md", ""));
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
    assert_eq!(crate::parse::decision_file(&render_decision(&decision), source), Ok(decision));
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
        proptest::prop_assert_eq!(read, Ok(decision));
    }

    #[test]
    fn any_text_reads_back(text in "[\\PC\n\r]{0,200}") {
        let mut entry = Entry::new(EntryId::new("i"), at(), Actor::User, &What::MemoryLogged { text });
        entry.redact(&Redactor::default());
        proptest::prop_assert_eq!(Entry::parse(&entry.render()), Read::Entry(Box::new(entry)));
    }
}
