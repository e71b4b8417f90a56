//! What a person's answer allows: this request, and which later ones.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::workers_tests::requests;
use super::*;
use crate::engine::{Approval, Reply, Request};
use crate::model::{Access, Slug};
use crate::policy::Permissions;

/// A run whose person gives these answers, and then none. What was asked is kept.
struct Scene {
    handler: RequestHandler,
    asked: Arc<Mutex<Vec<Question>>>,
}

impl Scene {
    fn new(answers: &[&'static str]) -> Self {
        let asked = Arc::<Mutex<Vec<Question>>>::default();
        let (kept, answers) = (Arc::clone(&asked), Mutex::new(answers.iter().copied().collect::<VecDeque<_>>()));
        let ask: Ask = Arc::new(move |question, sender: oneshot::Sender<String>| {
            kept.lock().push(question);
            if let Some(answer) = answers.lock().pop_front() {
                drop(sender.send(answer.to_owned()));
            }
        });
        Self { handler: requests(Permissions::Ask, Some(ask)), asked }
    }

    /// Nobody is there to ask.
    fn alone(permissions: Permissions) -> Self {
        Self { handler: requests(permissions, None), asked: Arc::default() }
    }

    async fn runs(&self, agent: &str, command: &str) -> Approval {
        self.wants(agent, Access::Shell, command).await
    }

    async fn wants(&self, agent: &str, access: Access, detail: &str) -> Approval {
        self.asked_by(requester(agent, false), access, detail).await
    }

    async fn asked_by(&self, requester: Requester, access: Access, detail: &str) -> Approval {
        self.asks(&requester, access, detail).await
    }

    async fn asks(&self, requester: &Requester, access: Access, detail: &str) -> Approval {
        let (reply, answer) = Reply::channel();
        let (tool, detail) = ("shell".to_owned(), detail.to_owned());
        let request = Request::Permission { call: None, access, tool, detail, reply };
        self.handler.answer(requester, request).await;
        answer.await.expect("an answer")
    }

    /// Whether an agent's programs reach a place that no list names.
    async fn reaches(&self, requester: &Requester, place: &str) -> bool {
        let (reply, answer) = Reply::channel();
        self.handler.answer(requester, Request::Host(place.to_owned(), reply)).await;
        answer.await.expect("an answer") == Approval::Allow
    }

    /// What an agent is told that has a question of its own.
    async fn question(&self, requester: &Requester, text: &str) -> Option<String> {
        let (reply, answer) = Reply::channel();
        let (text, choices) = (text.to_owned(), Vec::new());
        self.handler.answer(requester, Request::Question { text, choices, reply }).await;
        answer.await.expect("an answer")
    }

    fn count(&self) -> usize {
        self.asked.lock().len()
    }
}

fn requester(agent: &str, reads_only: bool) -> Requester {
    // Nobody records anything here.
    let (reports, _) = Reports::channel();
    Requester::new(Slug::fold(agent).expect("a name"), reports, reads_only, None)
}

/// How many questions are allowed × how many of them are permissions, the others an agent's own. What needs no question
/// is none, and each piece of work has its own number.
#[tokio::test]
async fn an_agent_asks_a_bounded_number_of_times() {
    for most in 1..4 {
        for permissions in 0..=most {
            let mut scene = Scene::new(&["y"; 9]);
            scene.handler.most_questions = most;
            let (one, another) = (requester("ada", false), requester("ada", false));
            for number in 0..permissions {
                let answer = scene.asks(&one, Access::Shell, &format!("make {number}")).await;
                assert!(matches!(answer, Approval::Allow), "{most} {permissions}: {answer:?}");
                scene.asks(&one, Access::Own, "squad_status").await;
            }
            for _ in permissions..most {
                assert_eq!(scene.question(&one, "Which?").await.as_deref(), Some("y"), "{most} {permissions}");
            }
            let answer = scene.asks(&one, Access::Shell, "make more").await;
            let is_told = matches!(&answer, Approval::Deny(why) if why.contains("`policy.questions` allows no more"));
            assert!(is_told, "{most} {permissions}: {answer:?}");
            let answer = scene.question(&one, "Which?").await.expect("a reason");
            assert!(answer.starts_with("no more questions: "), "{most} {permissions}: {answer}");
            assert_eq!(scene.count() as u64, most);
            assert!(matches!(scene.asks(&another, Access::Shell, "make more").await, Approval::Allow), "{most}");
        }
    }
}

/// Whoever may change nothing may still read git; nobody else gets more than before.
#[tokio::test(start_paused = true)]
async fn those_who_may_only_read_read_git_too() {
    for (command, of_deny, of_reader, of_reviewer) in [
        ("git diff HEAD~1 -- src", true, true, true),
        ("git status --short", true, true, true),
        ("git blame src/a.rs", true, true, true),
        ("git grep -n main", true, true, true),
        ("git grep -Oless main", false, false, false),
        ("git diff --output=x", false, false, false),
        ("git diff /etc/passwd x", false, false, false),
        ("git log > x", false, false, false),
        ("git commit -m x", false, false, false),
        ("cargo test", false, false, false),
    ] {
        let is_allowed = async |permissions, reads_only: bool, reviews: bool| {
            let requester = requester("ada", reads_only);
            let requester = if reviews { requester.reviewing() } else { requester };
            Scene::alone(permissions).asked_by(requester, Access::Shell, command).await == Approval::Allow
        };
        assert_eq!(is_allowed(Permissions::Deny, false, false).await, of_deny, "{command}: deny");
        assert_eq!(is_allowed(Permissions::Ask, true, false).await, of_reader, "{command}: a reader");
        assert_eq!(is_allowed(Permissions::Ask, true, true).await, of_reviewer, "{command}: a reviewer");
        assert!(!is_allowed(Permissions::Ask, false, false).await, "{command}: ask");
    }
}

const FIRST: &str = "cargo test --lib";

/// Each answer × each second request: whether that is asked again.
#[tokio::test(start_paused = true)]
async fn an_answer_covers_what_it_names_and_nothing_else() {
    let seconds: [(&str, &str, [bool; 4]); 10] = [
        // By: once, always for ada, always in this run, no.
        ("ada", FIRST, [true, false, false, true]),
        ("ada", "cargo test --doc", [true, false, false, true]),
        ("bob", "cargo test --doc", [true, true, false, true]),
        ("ada", "cargo fmt", [true; 4]),
        ("ada", "cargo test && rm a", [true; 4]),
        ("ada", "cargo test; rm a", [true; 4]),
        ("ada", "cargo test | sh", [true; 4]),
        ("ada", "cargo test $(rm a)", [true; 4]),
        ("ada", "cargo test\nrm a", [true; 4]),
        ("ada", "cargo test > a", [true; 4]),
    ];
    for (agent, command, asks) in seconds {
        for (answer, asks_again) in ["y", "a", "r", "n"].into_iter().zip(asks) {
            let scene = Scene::new(&[answer, "n"]);
            assert_eq!(scene.runs("ada", FIRST).await == Approval::Allow, answer != "n");
            let second = scene.runs(agent, command).await;
            assert_eq!(scene.count(), 1 + usize::from(asks_again), "{answer}: {agent}: {command}");
            assert_eq!(second == Approval::Allow, !asks_again, "{answer}: {agent}: {command}");
        }
    }
    // Another run begins with nothing.
    let other = Scene::new(&["n"]);
    assert!(matches!(other.runs("ada", FIRST).await, Approval::Deny(_)));
    assert_eq!(other.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_has_no_always_is_not_allowed_by_one() {
    for command in ["rm a.txt", "sh -c 'cargo test'", "git push", "sudo cargo test"] {
        let scene = Scene::new(&["a", "y"]);
        assert_eq!(scene.runs("ada", command).await, Approval::Deny("the user refused it".to_owned()), "{command}");
        assert_eq!(scene.runs("ada", command).await, Approval::Allow, "{command}");
        assert!(scene.asked.lock().iter().all(|asked| asked.proposal.as_ref().is_some_and(|it| it.always.is_none())));
    }
}

#[tokio::test(start_paused = true)]
async fn the_model_reads_why() {
    let scene = Scene::new(&["no new dependencies without a decision"]);
    let refused = scene.runs("ada", "pip install requests").await;
    let why = "the user refused it: no new dependencies without a decision";
    assert_eq!(refused, Approval::Deny(why.to_owned()));
    assert_eq!(scene.asked.lock()[0].text.lines().nth(1), Some("  $ pip install requests"));
}

/// The second is asked while the first is open, and the answer to the first allows it.
#[tokio::test(start_paused = true)]
async fn an_always_answers_the_open_questions_that_it_covers() {
    for (answer, agent, is_covered) in [("r", "bob", true), ("a", "ada", true), ("a", "bob", false)] {
        let answers = Arc::<Mutex<Vec<oneshot::Sender<String>>>>::default();
        let kept = Arc::clone(&answers);
        let ask: Ask = Arc::new(move |_, sender| kept.lock().push(sender));
        let scene = Scene { handler: requests(Permissions::Ask, Some(ask)), asked: Arc::default() };
        let both = async { tokio::join!(scene.runs("ada", FIRST), scene.runs(agent, "cargo test --doc")) };
        let answering = async {
            while answers.lock().len() < 2 {
                tokio::task::yield_now().await;
            }
            drop(answers.lock().remove(0).send(answer.to_owned()));
            if !is_covered {
                drop(answers.lock().remove(0).send("n".to_owned()));
            }
        };
        let ((first, second), ()) = tokio::join!(both, answering);
        assert_eq!((first, second == Approval::Allow), (Approval::Allow, is_covered), "{answer} {agent}");
    }
}

#[tokio::test(start_paused = true)]
async fn writes_and_hosts_are_covered_too() {
    let scene = Scene::new(&["a"; 4]);
    assert_eq!(scene.wants("ada", Access::Network, "https://a.example/x").await, Approval::Allow);
    assert_eq!(scene.wants("ada", Access::Network, "https://a.example/y").await, Approval::Allow);
    assert_eq!(scene.count(), 1);
    assert_eq!(scene.wants("ada", Access::Network, "https://b.example/y").await, Approval::Allow);
    assert_eq!(scene.count(), 2);
}

/// What may change something × each mode × whether the agent only reads. A person says yes to everything.
#[tokio::test(start_paused = true)]
async fn who_only_reads_is_allowed_nothing_that_may_change_something() {
    for (access, detail) in [(Access::Write, "a.txt"), (Access::Mcp, "docs/search {}")] {
        for mode in [Permissions::Allow, Permissions::Ask, Permissions::Deny] {
            for reads_only in [false, true] {
                let mut scene = Scene::new(&["y"]);
                scene.handler.permissions = mode;
                let answer = scene.asked_by(requester("ada", reads_only), access, detail).await;
                let is_allowed = !reads_only && mode != Permissions::Deny;
                assert_eq!(answer == Approval::Allow, is_allowed, "{access:?} {mode:?} {reads_only}");
                assert_eq!(scene.count() == 1, !reads_only && mode == Permissions::Ask, "{access:?} {mode:?}");
            }
        }
    }
}

/// What is locked, a file or a link to it × how a tool names it × whose tool it is.
#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn a_file_is_locked_under_its_name_and_where_a_link_leads() {
    let folder = tempfile::tempdir().expect("a folder");
    let project = crate::env::real(folder.path());
    std::fs::write(project.join("file.txt"), "x").expect("a file");
    std::os::unix::fs::symlink("file.txt", project.join("link.txt")).expect("a link");
    let ada = Slug::fold("ada").expect("a name");
    for (locked, named, is_locked) in [
        ("file.txt", "file.txt", true),
        ("file.txt", "link.txt", true),
        ("file.txt", "other.txt", false),
        ("link.txt", "link.txt", true),
        ("link.txt", "file.txt", false),
        ("new.txt", "new.txt", true),
    ] {
        let mut scene = Scene::alone(Permissions::Allow);
        scene.handler.project = project.display().to_string();
        scene.handler.locked.insert((ada.clone(), locked.to_owned()), "rejected".to_owned());
        for path in [named.to_owned(), format!("./{named}"), project.join(named).display().to_string()] {
            let refused = Approval::Deny("rejected".to_owned());
            assert_eq!(scene.wants("ada", Access::Write, &path).await == refused, is_locked, "{locked}: {path}");
            assert_eq!(scene.wants("bob", Access::Write, &path).await, Approval::Allow, "{locked}: {path}");
        }
    }
}

/// The mode, and whether somebody is there, with what is reached of a host that no list names. No mode opens it.
#[tokio::test]
async fn a_host_that_is_not_listed_is_asked_about() {
    let new = || requester("ada", false);
    for mode in [Permissions::Allow, Permissions::Deny, Permissions::Ask] {
        assert!(!Scene::alone(mode).reaches(&new(), "new.example:443").await, "{mode:?}");
    }
    for (answer, first, again, other, asked) in [
        ("y", true, false, false, 3),
        ("a", true, true, false, 2),
        ("r", true, true, true, 1),
        ("n", false, false, false, 3),
        ("s use another", false, false, false, 3),
    ] {
        let scene = Scene::new(&[answer]);
        assert_eq!(scene.reaches(&new(), "new.example:443").await, first, "{answer}");
        assert_eq!(scene.reaches(&new(), "new.example:443").await, again, "{answer}");
        assert_eq!(scene.reaches(&requester("bob", false), "new.example:443").await, other, "{answer}");
        assert_eq!(scene.count(), asked, "{answer}");
        assert!(scene.asked.lock()[0].text.contains("new.example"), "{answer}: {:?}", scene.asked.lock()[0]);
        assert!(!scene.reaches(&new(), "new.example:22").await, "{answer}: another port is another question");
    }
    let scene = Scene::new(&["y"]);
    assert!(!scene.reaches(&requester("ada", true), "new.example:443").await, "who may only read asks nobody");
    assert_eq!(scene.count(), 0);
}
