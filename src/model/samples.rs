//! One event of each kind, for tests that cover all of them.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::model::interval::SharedGitChanges;

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
        waited: 0.25,
        seconds: 3.5,
        context: None,
    }
}

fn changed() -> Vec<Change> {
    let by = vec![slug("backend"), slug("tester")];
    vec![
        Change {
            path: text("src/api.rs"),
            added: Some(12),
            removed: Some(3),
            class: ChangeClass::Own,
            by: vec![slug("backend")],
            how: Some(ChangeEvidence::Named),
            ..Change::default()
        },
        Change {
            path: text("logo.png"),
            class: ChangeClass::Together,
            by,
            how: Some(ChangeEvidence::Command),
            ..Change::default()
        },
    ]
}

fn end(reason: &str, said: &str) -> End {
    End {
        reason: text(reason),
        text: text(said),
        changed: Some(changed()),
        git: AgentGitChanges {
            own: git(),
            together: vec![SharedGitChanges { by: vec![slug("backend")], changes: git() }],
            unknown: git(),
        },
        commands: CommandCounts { passed: 2, failed: 1 },
        check: Some(CheckRun { command: text("cargo test"), passed: false, exit_code: Some(101) }),
        no_tool_used: false,
        uncounted: BTreeSet::new(),
        left_running: Vec::new(),
        sandbox: Some(SandboxLevel::Files),
        network: None,
        hosts: ReachedHosts::default(),
        model: Some(WorkModel { engine: text("claude"), asked: Some(text("claude-opus-4.5")), used: None }),
        usage: usage(),
    }
}

fn commit() -> String {
    text("0123abc")
}

fn git() -> GitChanges {
    let main = RefChange { name: text("refs/heads/main"), from: None, to: Some(commit()) };
    GitChanges {
        commits: vec![commit()],
        has_more_commits: false,
        refs: vec![main],
        config: vec![text("core.hooksPath")],
        hooks: vec![text("pre-commit")],
        index: vec![text("src/api.rs")],
    }
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
        note: None,
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
        other_reviewers: vec![slug("security")],
        tier: Tier::Standard,
        confidence: 0.75,
        evidence: vec![Evidence {
            agent: slug("backend"),
            why: text("row matches endpoint"),
            source: text(".squad/routing.md:9"),
            weight: 2.5,
        }],
        ceremonies: Vec::new(),
        overlaps: Vec::new(),
    }
}

/// A test fails if a kind is missing here.
pub(crate) fn every_kind() -> Vec<EventKind> {
    let forged = || text("Line one.\n---\nkind: \"forged\"\n");
    let session = || text("squad-tester-20260105-090000-000001");
    let until = "2026-01-05T10:00:00Z".parse().ok();
    vec![
        EventKind::RunStarted {
            text: text("Add a health endpoint"),
            engine: text("rehearsal"),
            version: None,
            permissions: Some(text("deny")),
            branch: Some(text("main")),
            commit: None,
            work_tree: None,
            agents: Vec::new(),
            tier: None,
            no_commit: false,
            flags: BTreeMap::new(),
            attachments: Vec::new(),
            members: Vec::new(),
        },
        EventKind::EngineStarted { engine: text("rehearsal"), version: text("0.1.0"), seconds: 0.25, warm: false },
        EventKind::RoutePlanned(plan()),
        EventKind::EngineFallback { from: text("copilot"), to: text("rehearsal"), reason: text("not found") },
        EventKind::ConnectionFailed { engine: text("copilot"), reason: text("not found") },
        EventKind::ConnectionLost { reason: text("the engine exited") },
        EventKind::ConnectionRestored { attempts: 2 },
        EventKind::StepStarted { agents: vec![slug("backend")] },
        EventKind::StepCompleted { status: Outcome::Completed },
        EventKind::SessionCreated {
            session: session(),
            model: text("claude-sonnet-4.5"),
            compiled_hash: text("0011223344556677"),
            seconds: 0.5,
            warm: false,
        },
        EventKind::SessionResumed { session: session(), seconds: 0.5, changed: false },
        EventKind::SessionIdle { session: session() },
        EventKind::SessionSuspended { session: session() },
        EventKind::SessionDestroyed { session: session() },
        EventKind::SessionError { session: session(), reason: text("no answer") },
        EventKind::SessionCompacted { session: session(), tokens_before: 90_000, tokens_after: Some(12_000) },
        EventKind::SessionTruncated { session: session(), tokens_before: 90_000, tokens_after: None },
        EventKind::PoolEmpty { waiting: 2 },
        EventKind::MessageDelta { text: text("Line") },
        EventKind::Message { text: forged() },
        EventKind::ToolStarted { call: text("c1"), tool: text("bash"), detail: text("cargo test") },
        EventKind::ToolCompleted {
            call: text("c1"),
            tool: text("bash"),
            ok: false,
            exit_code: Some(101),
            seconds: 1.25,
            detail: text("cargo test\ncargo doc"),
            result: text("one\ntwo"),
            wrote: None,
        },
        EventKind::ToolDenied { tool: text("bash"), detail: text("rm x"), reason: text("not allowed") },
        EventKind::PermissionAsked { tool: text("bash"), access: Access::Shell, detail: text("rm x") },
        EventKind::PermissionAnswered {
            tool: text("bash"),
            detail: text("rm x"),
            allowed: false,
            rule: Some(text("always for ada: ls")),
            reason: Some(text("no")),
        },
        EventKind::SnapshotTaken(TakenSnapshot {
            commit: commit(),
            left_out: vec![SkippedFile { path: text("dump.sql"), why: text("it is larger than 32 MiB") }],
            seconds: 0.05,
            commands: BTreeSet::from([slug("backend")]),
            running: BTreeSet::from([slug("tester")]),
            writing: BTreeMap::from([(slug("backend"), BTreeSet::from([text("call-7")]))]),
            others: OtherRuns {
                commands: BTreeSet::from([slug("docs")]),
                named: BTreeMap::from([(text("README.md"), BTreeSet::from([slug("docs")]))]),
                squad: BTreeSet::from([text(".squad/team.md")]),
                landed: BTreeSet::from([text(".squad/decisions/2026/01/05-json-0a1b.md")]),
            },
            git: git(),
            work_tree: Some(text("linked")),
            down: true,
        }),
        EventKind::DecisionLogged { decision: decision(), branch: Some(text("main")) },
        EventKind::DecisionLanded { decisions: vec![decision().id], branch: text("main"), commit: commit() },
        EventKind::DecisionDelivered { decisions: vec![decision().id], session: session() },
        EventKind::MemoryLogged { text: text("The suite needs TZ=UTC."), share: None },
        EventKind::MemoryLanded {
            learnings: vec![EntryId::new("019b8d1f-6c00-7000-8000-000000000016")],
            branch: text("main"),
            commit: commit(),
        },
        EventKind::ScrubCompleted {
            entries: vec![text("log/2026/01/05/019b8d1f-6c00-7000-8000-000000000011-agent.message.md")],
            kinds: vec![text("github-token")],
            set_aside: Vec::new(),
        },
        EventKind::EngineDisobeys { engine: text("claude"), claims: vec![Claim::RefusedWrite] },
        EventKind::SandboxWeaker { level: SandboxLevel::Files, reason: text("`full`: no user namespace") },
        EventKind::Usage(usage()),
        EventKind::QuotaOpened { engine: text("copilot"), reason: text("429"), until },
        EventKind::QuotaClosed { engine: text("copilot") },
        EventKind::BudgetReached { budget: text("run.tokens"), limit: 1000.0, spent: 1200.0 },
        EventKind::CancelRequested { reason: text("asked for in another terminal") },
        EventKind::Completed(end("", "Line one.\n---\nkind: \"forged\"\n")),
        EventKind::Claimed(End { no_tool_used: true, ..end("it used no tool and changed nothing", "All done.") }),
        EventKind::Failed(end("the model refused", "")),
        EventKind::TimedOut(end("no end after 5m", "")),
        EventKind::Cancelled(end("interrupted", "")),
        EventKind::Stopped(end("everything was refused", "")),
        EventKind::Skipped(end("step 1 did not complete", "")),
        EventKind::Lost(end("the process of its run died", "")),
        EventKind::ReviewVerdict {
            verdict: Verdict::Rejected,
            authors: vec![slug("backend")],
            judged: JudgedFiles {
                files: vec![text("src/api.rs"), text("src/old.rs")],
                contents: [("src/api.rs", Some("0d1f")), ("src/old.rs", None)]
                    .map(|(path, id)| (path.to_owned(), id.map(str::to_owned)))
                    .into(),
                aside: [(text("src/api.rs"), [Some(text("9c3e")), None].into())].into(),
                rejected: Some(vec![text("src/api.rs")]),
                are_named: true,
            },
            text: forged(),
        },
        EventKind::Lockout { reviewer: slug("reviewer"), files: vec![text("src/api.rs")] },
        EventKind::ModelFallback {
            from: text("claude-opus-4.5"),
            to: text("gpt-5.2"),
            reason: text("copilot does not offer it"),
        },
        EventKind::Answer { text: text("Done.") },
        EventKind::RunCompleted(RunEnd {
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
                git: AgentGitChanges { own: git(), ..AgentGitChanges::default() },
                commands: CommandCounts { passed: 2, failed: 1 },
                check: None,
                no_tool_used: false,
                uncounted: BTreeSet::new(),
                reason: String::new(),
                model: None,
                usage: usage(),
            }],
            rejections: 1,
            stuck: false,
            check: None,
            forecast: None,
            commits: vec![commit()],
            usage: usage(),
            error: Some(RunError {
                kind: text("engine"),
                message: text("no Copilot CLI was found"),
                hint: Some(text("npm install -g @github/copilot")),
                source: None,
            }),
        }),
        EventKind::RunResumed {
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
        EventKind::RouteRequested { to: slug("tester"), text: text("Cover the parser"), wait: true },
        EventKind::LockoutLifted { agents: vec![slug("backend")] },
        EventKind::TeamChanged {
            changed: vec![slug("backend")],
            joined: vec![slug("docs")],
            left: Vec::new(),
            problem: Some(text(".squad/team.md:3: half a merge")),
        },
        EventKind::CharterChanged { diff: text("-Be brief.\n+Be thorough.\n") },
        EventKind::ConnectionChanged { engine: text("copilot"), state: ConnectionState::Connecting },
        EventKind::SessionSpawning { session: text("squad-backend") },
        EventKind::QuestionAsked { question: 1, text: text("backend asks:\n  | Which?\n>"), proposal: None },
        EventKind::QuestionAnswered { question: 1 },
        EventKind::UserMessage { text: text("Without the cache, please") },
        EventKind::EngineGoverned {
            engine: text("claude"),
            by: text("its own strictest mode (--permission-mode plan)"),
            lacks_tools: false,
        },
        EventKind::EngineExited(Exited {
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
        EventKind::RunUndone(Undone {
            only: Some(slug("backend")),
            redo: false,
            files: vec![text("src/health.rs")],
            left: vec![SkippedFile { path: text("docs/health.md"), why: text("it was changed since") }],
            rescue: Some(text("20260105-090000-1f2a3b")),
            commit: None,
        }),
        EventKind::CheckStarted { command: text("cargo test") },
        EventKind::CheckCompleted(ProjectCheck {
            command: text("cargo test"),
            passed: false,
            exit_code: Some(101),
            reason: String::new(),
            seconds: 12.5,
            output: text("test api ... FAILED\n"),
            output_bytes: 20,
            output_file: Some(text("output/squad-check-20260105-090000-000001/1.output")),
            changed: vec![Change { path: text("Cargo.lock"), class: ChangeClass::Yours, ..Change::default() }],
            rewritten: vec![text("tests/api.rs")],
            snapshot: Some(commit()),
        }),
        EventKind::HookAnswered(HookAnswered {
            hook: text("guard"),
            on: text("pre_tool_use"),
            tool: Some(text("bash")),
            effect: HookEffect::Changed,
            detail: text("rm x"),
        }),
        EventKind::ClonePrepared {
            command: text("npm ci"),
            exit_code: Some(0),
            reason: String::new(),
            seconds: 4.2,
            output: text("added 12 packages"),
            output_file: text("output/squad-ada-r1-setup/1/output"),
        },
        EventKind::HostAssigned { host: text("build1") },
        EventKind::CloneCreated { directory: text("/state/clones/ada"), commit: commit(), seconds: 0.2 },
        EventKind::CloneCommitted {
            reference: text("refs/squad/runs/20260105-090000-602796/backend"),
            commit: commit(),
            conflicts: vec![text("src/api.rs")],
        },
        EventKind::RunMerged {
            branch: text("main"),
            commit: commit(),
            merged: vec![slug("backend")],
            by: Some(forged()),
            left: vec![slug("tester")],
            check: None,
        },
        EventKind::WorkSetAside {
            commit: commit(),
            conflicts: Vec::new(),
            check: Some(Box::new(ProjectCheck {
                command: text("cargo test"),
                exit_code: Some(101),
                output: text("test api ... FAILED\n"),
                ..ProjectCheck::default()
            })),
        },
        EventKind::MemoryDeclined { learnings: vec![EntryId::new("019b8d1f-6c00-7000-8000-000000000016")] },
        EventKind::QuotaWaiting { engine: text("copilot") },
        EventKind::QuotaWaited {},
        EventKind::ClonePreparing { command: text("npm ci") },
        EventKind::GitFetched {
            reference: text("refs/squad/runs/20260105-090000-602796_git/1"),
            commit: commit(),
            name: text("refs/heads/fix"),
        },
    ]
}

#[test]
fn no_kind_is_missing() {
    let mut sampled: Vec<&str> = every_kind().iter().map(EventKind::name).collect();
    let mut known = EventKind::NAMES.to_vec();
    sampled.sort_unstable();
    known.sort_unstable();
    assert_eq!(sampled, known);
}
