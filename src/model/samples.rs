//! One event of each kind, for tests that cover all of them.

use std::collections::BTreeMap;

use super::*;

fn slug(name: &str) -> Slug {
    Slug::fold(name).expect("a slug")
}

fn text(text: &str) -> String {
    text.to_owned()
}

fn usage() -> Usage {
    Usage {
        input_tokens: 1200,
        output_tokens: 80,
        cache_read_tokens: 900,
        cache_write_tokens: 40,
        reasoning_tokens: 16,
        billed: vec![Billed { unit: text("premium_request"), amount: 0.33 }],
        cost_usd: Some(0.25),
        turns: 1,
        tool_calls: 2,
        refused: 1,
        seconds: 3.5,
        context: None,
    }
}

fn changed() -> Vec<Change> {
    let by = vec![slug("backend"), slug("tester")];
    vec![
        Change { path: text("src/api.rs"), added: Some(12), removed: Some(3), by: Vec::new() },
        Change { path: text("logo.png"), added: None, removed: None, by },
    ]
}

fn end(reason: &str, said: &str) -> End {
    End { reason: text(reason), text: text(said), changed: Some(changed()), left_running: Vec::new(), usage: usage() }
}

fn decision() -> Decision {
    Decision {
        id: DecisionId::new("000000000001"),
        title: text("Health checks answer as JSON"),
        date: Some(text("2026-01-05T09:00:00Z")),
        by: Some(text("backend")),
        run: None,
        supersedes: Some(DecisionId::new("0000000000aa")),
        scope: vec![text("src/**")],
        tags: vec![text("api")],
        text: text("**What:** JSON, not text.\n\n**Why:** the load balancer reads it."),
        status: None,
        source: None,
    }
}

fn plan() -> Plan {
    Plan {
        kind: PlanKind::Agents,
        agents: vec![slug("backend")],
        steps: vec![vec![slug("backend")]],
        reviewer: Some(slug("reviewer")),
        tier: Tier::Standard,
        confidence: 0.75,
        evidence: vec![Evidence {
            agent: slug("backend"),
            why: text("row matches endpoint"),
            source: text(".squad/routing.md:9"),
            weight: 2.5,
        }],
        ceremonies: Vec::new(),
    }
}

/// A test fails if a kind is missing here.
pub(crate) fn every_kind() -> Vec<What> {
    let forged = || text("Line one.\n---\nkind: \"forged\"\n");
    let session = || text("squad-tester-20260105-090000-000001");
    let until = "2026-01-05T10:00:00Z".parse().ok();
    let commit = || text("0123abc");
    vec![
        What::RunStarted {
            text: text("Add a health endpoint"),
            engine: text("rehearsal"),
            version: None,
            permissions: Some(text("deny")),
            branch: Some(text("main")),
            commit: None,
            agents: Vec::new(),
            tier: None,
            no_commit: false,
            flags: BTreeMap::new(),
            attachments: Vec::new(),
            members: Vec::new(),
        },
        What::EngineStarted { engine: text("rehearsal"), version: text("0.1.0"), seconds: 0.25, warm: false },
        What::RoutePlanned(plan()),
        What::EngineFallback { from: text("copilot"), to: text("rehearsal"), reason: text("not found") },
        What::ConnectionFailed { engine: text("copilot"), reason: text("not found") },
        What::ConnectionLost { reason: text("the engine exited") },
        What::ConnectionRestored { attempts: 2 },
        What::StepStarted { agents: vec![slug("backend")] },
        What::StepCompleted { status: Outcome::Completed },
        What::SessionCreated {
            session: session(),
            model: text("claude-sonnet-4.5"),
            compiled_hash: text("0011223344556677"),
            seconds: 0.5,
            warm: false,
        },
        What::SessionResumed { session: session(), seconds: 0.5 },
        What::SessionIdle { session: session() },
        What::SessionSuspended { session: session() },
        What::SessionDestroyed { session: session() },
        What::SessionError { session: session(), reason: text("no answer") },
        What::SessionCompacted { session: session(), tokens_before: 90_000, tokens_after: Some(12_000) },
        What::SessionTruncated { session: session(), tokens_before: 90_000, tokens_after: None },
        What::PoolEmpty { waiting: 2 },
        What::MessageDelta { text: text("Line") },
        What::Message { text: forged() },
        What::ToolStarted { call: text("c1"), tool: text("bash"), detail: text("cargo test") },
        What::ToolCompleted {
            call: text("c1"),
            tool: text("bash"),
            ok: false,
            exit_code: Some(101),
            seconds: 1.25,
            detail: text("cargo test\ncargo doc"),
            result: text("one\ntwo"),
            wrote: None,
        },
        What::ToolDenied { tool: text("bash"), detail: text("rm x"), reason: text("not allowed") },
        What::PermissionAsked { tool: text("bash"), access: Access::Shell, detail: text("rm x") },
        What::PermissionAnswered { tool: text("bash"), detail: text("rm x"), allowed: false },
        What::SnapshotTaken {
            commit: commit(),
            left_out: vec![LeftOut { path: text("dump.sql"), why: text("it is larger than 32 MiB") }],
            seconds: 0.05,
        },
        What::DecisionLogged { decision: decision(), branch: Some(text("main")) },
        What::DecisionLanded { decisions: vec![decision().id], branch: text("main"), commit: commit() },
        What::DecisionDelivered { decisions: vec![decision().id], session: session() },
        What::MemoryLogged { text: text("The suite needs TZ=UTC.") },
        What::MemoryLanded {
            learnings: vec![EntryId::new("019b8d1f-6c00-7000-8000-000000000016")],
            branch: text("main"),
            commit: commit(),
        },
        What::ScrubCompleted {
            entries: vec![text("log/2026/01/05/019b8d1f-6c00-7000-8000-000000000011-agent.message.md")],
            kinds: vec![text("github-token")],
            set_aside: Vec::new(),
        },
        What::Usage(usage()),
        What::QuotaOpened { engine: text("copilot"), reason: text("429"), until },
        What::QuotaClosed { engine: text("copilot") },
        What::BudgetReached { budget: text("run.tokens"), limit: 1000.0, spent: 1200.0 },
        What::CancelRequested { reason: text("asked for in another terminal") },
        What::Completed(end("", "Line one.\n---\nkind: \"forged\"\n")),
        What::Failed(end("the model refused", "")),
        What::TimedOut(end("no end after 5m", "")),
        What::Cancelled(end("interrupted", "")),
        What::Stopped(end("everything was refused", "")),
        What::Skipped(end("step 1 did not complete", "")),
        What::Lost(end("the process of its run died", "")),
        What::ReviewVerdict {
            verdict: Verdict::Rejected,
            authors: vec![slug("backend")],
            files: vec![text("src/api.rs")],
            text: forged(),
        },
        What::Lockout { reviewer: slug("reviewer"), files: vec![text("src/api.rs")] },
        What::ModelFallback {
            from: text("claude-opus-4.5"),
            to: text("gpt-5.2"),
            reason: text("copilot does not offer it"),
        },
        What::Answer { text: text("Done.") },
        What::RunCompleted {
            status: Outcome::TimedOut,
            agents: BTreeMap::from([(slug("backend"), Outcome::Completed)]),
            work: vec![WorkReport {
                agent: slug("backend"),
                step: Some(1),
                attempt: Some(1),
                status: Outcome::Completed,
                changed: Some(changed()),
                refused: 1,
                verified: None,
                usage: usage(),
            }],
            commits: vec![commit()],
            usage: usage(),
            error: Some(RunError {
                kind: text("engine"),
                message: text("no Copilot CLI was found"),
                hint: Some(text("npm install -g @github/copilot")),
                source: None,
            }),
        },
        What::RunResumed {
            permissions: text("allow"),
            branch: Some(text("main")),
            commit: Some(commit()),
            done: vec![slug("backend")],
            steps_done: 1,
            steps: 2,
            flags: BTreeMap::new(),
            attachments: Vec::new(),
        },
        // Appended at the end: existing samples keep their numbers.
        What::RouteRequested { to: slug("tester"), text: text("Cover the parser"), wait: true },
        What::LockoutLifted { agents: vec![slug("backend")] },
        What::TeamChanged {
            changed: vec![slug("backend")],
            joined: vec![slug("docs")],
            left: Vec::new(),
            problem: Some(text(".squad/team.md:3: half a merge")),
        },
        What::CharterChanged { diff: text("-Be brief.\n+Be thorough.\n") },
        What::ConnectionChanged { engine: text("copilot"), state: ConnectionState::Connecting },
        What::SessionSpawning { session: text("squad-backend") },
        What::QuestionAsked { question: 1, text: text("backend asks:\n  | Which?\n>") },
        What::QuestionAnswered { question: 1 },
        What::UserMessage { text: text("Without the cache, please") },
        What::EngineGoverned { engine: text("claude"), by: text("its own strictest mode (--permission-mode plan)") },
        What::EngineExited(Exited {
            engine: text("claude"),
            session: text("squad-backend"),
            turn: 1,
            exit_code: Some(0),
            signal: None,
            seconds: 1.5,
            stdout: text("output/squad-backend/1.stdout"),
            stderr: text("output/squad-backend/1.stderr"),
            stdout_bytes: 12,
            stderr_bytes: 0,
            chat: true,
        }),
    ]
}

#[test]
fn no_kind_is_missing() {
    let mut sampled: Vec<&str> = every_kind().iter().map(What::name).collect();
    let mut known = What::NAMES.to_vec();
    sampled.sort_unstable();
    known.sort_unstable();
    assert_eq!(sampled, known);
}
