//! Outcomes of a team's jobs, with a scripted engine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::dispatcher::Message;
use super::requests::in_project;
use super::*;
use crate::engine::rehearsal::{Rehearsal, Script};
use crate::engine::{Approval, Engine, Opening, Reply, Request};
use crate::git::{Landing, WorkTreeSnapshot};
use crate::model::{
    Access, Change, Content, DecisionId, GitChanges, ModelChoice, ModelLayer, OtherRuns, Outcome, RunId, SessionSpec,
    Slug, Tier, ToolChoice,
};
use crate::policy::{Permissions, PolicyRules};
use crate::settings::BudgetSettings;

pub(super) fn slug(name: &str) -> Slug {
    Slug::fold(name).expect("a slug")
}

pub(super) fn job(agent: &str) -> Job {
    let spec = SessionSpec {
        agent: slug(agent),
        name: agent.to_owned(),
        role: "Dev".to_owned(),
        tier: Tier::Standard,
        prompt: String::new(),
        team: String::new(),
        items: Vec::new(),
        context: String::new(),
        model: ModelChoice::new("m", ModelLayer::Default),
        engine: None,
        tools: ToolChoice::All,
        denied_tools: Vec::new(),
        compaction_threshold: None,
        effort: None,
        compiled_hash: "00".to_owned(),
    };
    let (session, tools, directory) = (agent.to_owned(), Vec::new(), "/project".into());
    let opening = Opening { session, spec, tools, directory, resume: false, asks: false, form: None, caller: None };
    Job {
        opening,
        prompt: "work".to_owned(),
        situation: String::new(),
        earlier: None,
        attachments: Vec::new(),
        kind: WorkKind::Work,
        goes_on: None,
        handed_by: None,
        limit: None,
        asks_for_work: true,
        must_resume: false,
    }
}

struct NoNotes;

impl Notes for NoNotes {
    fn search(&self, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn holds(&self, _: &DecisionId) -> bool {
        false
    }
}

/// A team that has not worked before.
struct NoRuns;

impl EarlierRuns for NoRuns {
    fn last_work(&self, _: &Slug) -> Option<String> {
        None
    }

    fn changed_since(&self, _: &Slug) -> BTreeMap<Slug, Vec<String>> {
        BTreeMap::new()
    }
}

/// Workers with an engine that plays this script, and their reports.
pub(super) fn workers(script: &str, permits: usize, timeout: Duration) -> (Workers, mpsc::UnboundedReceiver<Message>) {
    let (reports, messages) = Reports::unwritten();
    let cancel = never();
    let requests = requests(Permissions::Deny, None);
    let engine = Engine::Rehearsal(Rehearsal::start(Some(Script::parse(script).expect("a script"))));
    let workers = Workers {
        owner: SessionOwner { id: RunId::new("r"), is_conversation: false },
        is_fresh: false,
        earlier: Arc::new(NoRuns),
        pool: Arc::new(SessionPool::of_one_run(engine, Permits::new(permits))),
        core: Arc::default(),
        requests: Arc::new(requests),
        reports,
        cancel,
        limits: Limits { silence: timeout, tool: timeout, work: timeout },
        budget: Arc::new(Budget::new(BudgetSettings::default(), BTreeMap::new(), Duration::ZERO)),
        quota: Arc::default(),
        retries: 1,
        tree: None,
        places: None,
        place: None,
        sessions: Arc::default(),
        colleagues: Colleagues::channel().0,
    };
    (workers, messages)
}

/// Never cancelled.
pub(super) fn never() -> Cancel {
    let (keep, cancel) = Cancel::channel();
    std::mem::forget(keep);
    cancel
}

pub(super) fn requests(permissions: Permissions, ask: Option<Ask>) -> RequestHandler {
    let (attached, branch, decisions, locked, recorded, recorded_here, notices, user_messages) = Default::default();
    let project = "/project".to_owned();
    let cancel = never();
    RequestHandler {
        notes: Arc::new(NoNotes),
        attached,
        permissions,
        policy: PolicyRules::default(),
        approved_files: Default::default(),
        hooks: Default::default(),
        most_questions: u64::MAX,
        project,
        branch,
        decisions,
        locked,
        recorded,
        recorded_here,
        notices,
        user_messages,
        ask,
        asked: Default::default(),
        cancel,
        checks: Vec::new(),
        allowed: AlwaysAllowed::default(),
        keep: None,
        may_commit: true,
    }
}

pub(super) const MINUTES: Duration = Duration::from_secs(300);

const THREE: &str = r#"
[[turn]]
agent = "ada"
steps = [{ wait = "3s" }, { say = "Ada." }]
[[turn]]
agent = "bob"
steps = [{ wait = "1s" }, { say = "Bob." }]
[[turn]]
agent = "rex"
steps = [{ wait = "2s" }, { fail = "no" }]
"#;

#[tokio::test(start_paused = true)]
async fn results_are_in_the_order_of_the_jobs_whoever_ends_first() {
    for names in [["ada", "bob", "rex"], ["rex", "ada", "bob"], ["bob", "rex", "ada"]] {
        let (workers, _messages) = workers(THREE, 3, MINUTES);
        let work = workers.fan_out(names.map(job).into()).await;
        assert_eq!(work.iter().map(|work| work.agent.as_str()).collect::<Vec<_>>(), names);
        let outcomes = names.map(|name| if name == "rex" { Outcome::Failed } else { Outcome::Completed });
        assert_eq!(work.iter().map(|work| work.outcome).collect::<Vec<_>>(), outcomes);
    }
}

/// Seconds until all three are done, one after the other or in parallel.
#[tokio::test(start_paused = true)]
async fn no_more_work_at_a_time_than_permits() {
    for (permits, seconds) in [(1, 6.0), (2, 3.0), (3, 3.0)] {
        let (workers, _messages) = workers(THREE, permits, MINUTES);
        let started = tokio::time::Instant::now();
        workers.fan_out(["ada", "bob", "rex"].map(job).into()).await;
        assert_eq!(started.elapsed().as_secs_f64().round(), seconds, "{permits} permits");
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_ends_at_its_time_limit_and_not_before() {
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ wait = \"10s\" }, { say = \"Done.\" }]\n";
    for (limit, outcome) in [(9, Outcome::TimedOut), (11, Outcome::Completed)] {
        let (workers, _messages) = workers(script, 1, Duration::from_secs(limit));
        let work = workers.work(job("ada")).await;
        assert_eq!(work.outcome, outcome, "{limit}: {}", work.reason);
    }
}

/// Cancelling one agent cancels no other, whether it works or waits for a permit.
#[tokio::test(start_paused = true)]
async fn an_agent_is_cancelled_alone_and_a_run_as_a_whole() {
    use Outcome::{Cancelled, Completed, Failed};

    for (whom, permits, outcomes) in [
        (Some("bob"), 3, [Completed, Cancelled, Failed]),
        (Some("bob"), 1, [Completed, Cancelled, Failed]),
        (Some("nobody"), 3, [Completed, Completed, Failed]),
        (None, 3, [Cancelled, Cancelled, Cancelled]),
        (None, 1, [Cancelled, Cancelled, Cancelled]),
    ] {
        let (mut workers, _messages) = workers(THREE, permits, MINUTES);
        let (canceller, cancel) = Cancel::channel();
        workers.cancel = cancel;
        let (work, ()) = tokio::join!(workers.fan_out(["ada", "bob", "rex"].map(job).into()), async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            match whom {
                Some(name) => assert!(canceller.agent(&slug(name)) && !canceller.agent(&slug(name))),
                None => assert!(canceller.run() && !canceller.run()),
            }
        });
        assert_eq!(work.iter().map(|work| work.outcome).collect::<Vec<_>>(), outcomes, "{whom:?} {permits}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_or_blank_message_is_no_answer() {
    for (said, outcome) in [("", Outcome::Failed), (" \\n\\t ", Outcome::Failed), ("Done.", Outcome::Completed)] {
        let script = format!("[[turn]]\nagent = \"ada\"\nsteps = [{{ say = \"{said}\" }}]\n");
        let (workers, _messages) = workers(&script, 1, MINUTES);
        assert_eq!(workers.work(job("ada")).await.outcome, outcome, "{said:?}");
    }
}

/// The answer to a writing tool when a person answers this; `None`: the person goes away.
async fn asked(answer: Option<&'static str>) -> Approval {
    let ask: Ask = Arc::new(move |_, sender: oneshot::Sender<String>| match answer {
        Some(answer) => drop(sender.send(answer.to_owned())),
        None => drop(sender),
    });
    wants_to_write(requests(Permissions::Ask, Some(ask))).await
}

async fn wants_to_write(requests: RequestHandler) -> Approval {
    let (reply, answer) = Reply::channel();
    let request = Request::Permission {
        call: None,
        access: Access::Write,
        tool: "write".to_owned(),
        detail: "a.txt".to_owned(),
        reply,
    };
    // Nobody records anything here.
    let (reports, _) = Reports::channel();
    requests.answer(&Requester::new(slug("ada"), reports, false, None), request).await;
    answer.await.expect("an answer")
}

#[tokio::test(start_paused = true)]
async fn only_a_plain_yes_is_a_yes() {
    for answer in ["y", "Y", "yes", "Yes", "YES", "yEs\r\n", " y\n"] {
        assert_eq!(asked(Some(answer)).await, Approval::Allow, "{answer:?}");
    }
    for answer in [Some(""), Some("\n"), Some("n"), Some("no"), Some("yes, but"), Some("yy"), Some("1"), None] {
        assert!(matches!(asked(answer).await, Approval::Deny(_)), "{answer:?}");
    }
    let nobody = wants_to_write(requests(Permissions::Ask, None)).await;
    assert_eq!(nobody, Approval::Deny("there is nobody to ask".to_owned()));
}

/// Each mode and each way to name a file of git's, by a permission and by a call that says what it writes.
#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn no_mode_lets_a_tool_write_gits_own_files() {
    use std::os::unix::fs::symlink;

    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("project");
    let inner = ["project/vendor/lib/.git/hooks", "project/vendor/lib/.git/objects"];
    let others = ["project/.git/hooks", "project/.git/objects", "project/sub", "store/objects", "linked"];
    for folders in inner.iter().chain(&others) {
        std::fs::create_dir_all(folder.path().join(folders)).expect("folders");
    }
    for git in [".git", "vendor/lib/.git"] {
        std::fs::write(root.join(git).join("HEAD"), "ref: refs/heads/main\n").expect("a file");
    }
    symlink("vendor/lib/.git/hooks/pre-commit", root.join("hook")).expect("a link");
    symlink("vendor/lib/.git/hooks", root.join("hooks")).expect("a link");
    std::fs::write(folder.path().join("linked/.git"), "gitdir: ../store\n").expect("a file");
    symlink(".git", root.join("link")).expect("a link");
    symlink("../.git/hooks/pre-commit", root.join("sub/dangling")).expect("a link");
    let absolute = root.join(".git/config").display().to_string();
    let store = folder.path().join("store/config").display().to_string();
    let json = r#"{"kind":"write","path":".git/config"}"#;
    let own = [".git/config", "sub/../.git/hooks/pre-commit", "link/config", "sub/dangling", ".GIT/config", ".git"];
    let inner = ["vendor/lib/.git/config", "hook", "hooks/pre-push", "vendor/lib/../lib/.git/hooks/new"];
    let refused = own.into_iter().chain(inner).chain([&*absolute, json]).map(|path| (path, &root));
    let linked = folder.path().join("linked");
    let refused: Vec<_> = refused.chain([("../store/config", &linked), (&*store, &linked)]).collect();
    let allowed = ["a.txt", ".gitignore", "sub/.github/x.yml", "sub/new/a"].map(|path| (path, &root));
    for mode in [Permissions::Allow, Permissions::Ask, Permissions::Deny] {
        let yes: Ask = Arc::new(|_, sender: oneshot::Sender<String>| drop(sender.send("yes".to_owned())));
        for (path, project) in refused.iter().chain(&allowed) {
            let handler =
                RequestHandler { project: project.display().to_string(), ..requests(mode, Some(yes.clone())) };
            // Nobody records anything here.
            let (reports, _) = Reports::channel();
            let requester = Requester::new(slug("ada"), reports, false, None);
            let is_gits = refused.iter().any(|(other, _)| other == path);
            let (reply, answer) = Reply::channel();
            let (tool, detail) = ("write".to_owned(), (*path).to_owned());
            let permission = Request::Permission { call: None, access: Access::Write, tool, detail, reply };
            handler.answer(&requester, permission).await;
            let denied = matches!(answer.await, Ok(Approval::Deny(_)));
            assert_eq!(denied, is_gits || mode == Permissions::Deny, "{mode:?} {path}");
            let (reply, answer) = Reply::channel();
            let writing =
                crate::engine::Writing { path: (*path).to_owned(), old: None, text: "x".to_owned(), is_whole: true };
            handler.answer(&requester, Request::Write(vec![writing], reply)).await;
            let instead = answer.await.expect("an answer");
            assert_eq!(instead.is_some_and(|result| !result.ok), is_gits, "{mode:?} {path}");
        }
    }
}

/// A work tree in which nothing can be seen.
struct Blind;

impl RunRepository for Blind {
    fn take(&self, _: Option<&WorkTreeSnapshot>) -> Result<WorkTreeSnapshot, String> {
        Err("no disk".to_owned())
    }

    fn changed(&self, _: &WorkTreeSnapshot, _: &WorkTreeSnapshot) -> Result<Vec<Change>, String> {
        Ok(Vec::new())
    }

    fn git_changes(&self, _: &WorkTreeSnapshot, _: &WorkTreeSnapshot) -> Result<GitChanges, String> {
        Ok(GitChanges::default())
    }

    fn uncommitted(&self, _: &WorkTreeSnapshot, _: &BTreeSet<String>) -> Result<BTreeSet<String>, String> {
        Ok(BTreeSet::new())
    }

    fn commit(&self, _: &Slug, _: &WorkTreeSnapshot, _: &[String], _: &str) -> Result<Landing, String> {
        Err("it has no repository".to_owned())
    }

    fn fingerprint(&self, _: &str) -> Option<blake3::Hash> {
        None
    }

    fn diff(&self, _: &WorkTreeSnapshot, _: &WorkTreeSnapshot, _: &[String]) -> Result<String, String> {
        Ok(String::new())
    }

    fn announce(&self, _: Action<'_>) {}

    fn others(&self) -> (OtherRuns, OtherRuns) {
        Default::default()
    }

    fn contents(&self, _: &WorkTreeSnapshot, _: &[String]) -> Result<BTreeMap<String, Content>, String> {
        Ok(BTreeMap::new())
    }
}

/// Changes that are known to be none × unknown, of an agent that used no tool.
#[tokio::test]
async fn nobody_claims_work_whose_changes_cannot_be_seen() {
    for (is_blind, outcome) in [(false, Outcome::Claimed), (true, Outcome::Completed)] {
        let (mut workers, _messages) = workers("[[turn]]\nagent = \"ada\"\nsteps = [{ say = \"Done.\" }]", 1, MINUTES);
        workers.requests = Arc::new(requests(Permissions::Allow, None));
        workers.tree = is_blind.then(|| WorkTree::new(Arc::new(Blind), false, String::new(), Reports::channel().0));
        workers.tree.iter().for_each(WorkTree::begin);
        assert_eq!(workers.perform(job("ada")).await.outcome, outcome, "{is_blind}");
    }
}

/// A question that the user does not answer gets no answer, rather than a guess.
#[tokio::test(start_paused = true)]
async fn an_unanswered_question_has_no_answer() {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    for (typed, expected) in [("  the red one \n", Some("the red one")), (" \n", None)] {
        // Nobody waits for what nobody reads.
        let reports = Reports::channel().0;
        let heard = Arc::clone(&asked);
        let ask: Ask = Arc::new(move |question, sender: oneshot::Sender<String>| {
            heard.lock().expect("one thread").push(question.text);
            let _ = sender.send(typed.to_owned());
        });
        let (reply, answer) = Reply::channel();
        let choices = vec!["red".to_owned(), "blue".to_owned()];
        let request = Request::Question { text: "Which?".to_owned(), choices, reply };
        requests(Permissions::Ask, Some(ask)).answer(&Requester::new(slug("ada"), reports, false, None), request).await;
        assert_eq!(answer.await.expect("an answer").as_deref(), expected);
    }
    assert!(
        asked
            .lock()
            .expect("one thread")
            .iter()
            .all(|text| ["Which?", "red / blue"].iter().all(|part| text.contains(part))),
        "{asked:?}"
    );
}

#[test]
fn session_ids_are_short_safe_and_unique_per_agent() {
    let run = RunId::new("20260105-090000-000001");
    let long = "an-agent-with-a-name-that-goes-on-and-on-and-on-and-on-and-on-and-on-and-on";
    let names = ["ada", "zoë", "zoé", long, &format!("{long}-2"), "überprüfer", "x"];
    let ids: Vec<String> = names.iter().map(|name| session_id(&slug(name), &run)).collect();
    for id in &ids {
        assert!(id.starts_with("squad-") && id.ends_with(run.as_str()) && id.len() < 110, "{id}");
        assert!(id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')), "{id}");
    }
    assert!(ids.iter().all(|id| run_of_session(id).as_ref() == Some(&run)), "{ids:?}");
    for id in ["squad-ada", "squad-20260105-090000-000001", "ada-20260105-090000-000001", "squad-ada-2026-01-05", ""] {
        assert_eq!(run_of_session(id), None, "{id}");
    }
    let different: BTreeSet<&String> = ids.iter().collect();
    let slugs: BTreeSet<Slug> = names.iter().map(|name| slug(name)).collect();
    assert_eq!(different.len(), slugs.len(), "{ids:?}");
}

/// A turn that timed out is told to stop; its output and usage until then count.
#[cfg(unix)]
#[tokio::test]
async fn output_and_usage_of_a_stopped_agent_count() {
    use serde_json::json;

    use crate::engine::copilot::Copilot;
    use crate::engine::copilot::testing::{READ, answer, event, options};

    let folder = tempfile::tempdir().expect("a folder");
    let results =
        [r#"{"protocolVersion":3,"version":"1.0.102"}"#, r#"{"isAuthenticated":true}"#, "{}", "{}", "{}", "{}"];
    let opened: Vec<String> =
        (1..).zip(results).map(|(id, result)| format!("{READ}; {}", answer(id, result))).collect();
    let script = [
        opened.join("\n"),
        // The request to stop.
        READ.to_owned(),
        event("ada", "assistant.usage", &json!({ "inputTokens": 70, "outputTokens": 7 })),
        event("ada", "assistant.message", &json!({ "content": "Half of it is done." })),
        event("ada", "session.idle", &json!({ "aborted": true })),
        answer(7, "{}"),
        // The session is saved and closed.
        format!("{READ}; {}; {READ}; {}", answer(8, "{}"), answer(9, "{}")),
        "cat >/dev/null".to_owned(),
    ];
    let engine = Copilot::start(options(&folder, &script.join("\n"))).await.expect("it starts");
    let (workers, _messages) = workers("models = [\"m\"]", 1, Duration::from_millis(100));
    let workers =
        Workers { pool: Arc::new(SessionPool::of_one_run(Engine::Copilot(engine), Permits::new(1))), ..workers };
    let work = workers.work(job("ada")).await;
    assert_eq!((work.outcome, work.text.as_str()), (Outcome::TimedOut, "Half of it is done."));
    assert_eq!((work.usage.input_tokens, work.usage.output_tokens), (70, 7));
}

#[test]
fn only_paths_in_the_project_are_accepted() {
    let root = if cfg!(windows) { "C:" } else { "" };
    let project = format!("{root}/repo");
    for (path, inner) in [
        ("src/a.rs", Some("src/a.rs")),
        ("./src/./a.rs", Some("src/a.rs")),
        (&format!("{project}/src/a.rs"), Some("src/a.rs")),
        (&format!("{project}/../etc/passwd"), None),
        ("src/../../etc/passwd", None),
        ("src/../a.rs", None),
        ("/etc/passwd", None),
        (&format!("{root}/repository/a.rs"), None),
        (&project, None),
        ("", None),
    ] {
        assert_eq!(in_project(&project, path).as_deref(), inner, "{path}");
    }
}
