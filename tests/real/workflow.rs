//! The workflow that `squad init --ci` writes: its own scripts, run by bash with curl and jq as on a runner, on real
//! clones, against a server that answers like GitHub's comments.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::repository::TestRepo;

/// As whom a job's own token writes.
const BOT: &str = "github-actions[bot]";

/// The comments of one pull request.
struct Comments {
    url: String,
    /// By whom, and what; their ids count from 1.
    all: Arc<Mutex<Vec<(String, String)>>>,
}

impl Comments {
    fn serve() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let url = format!("http://{}", listener.local_addr().expect("a bound listener has an address"));
        let all = Arc::<Mutex<Vec<(String, String)>>>::default();
        let kept = Arc::clone(&all);
        thread::spawn(move || listener.incoming().flatten().for_each(|stream| answer(stream, &kept)));
        Self { url, all }
    }

    fn texts(&self) -> Vec<String> {
        self.all.lock().expect("no one panics with it").iter().map(|(_, text)| text.clone()).collect()
    }
}

/// One request a connection.
fn answer(stream: TcpStream, kept: &Mutex<Vec<(String, String)>>) {
    let mut reader = BufReader::new(&stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).expect("a line") == 0 {
            return;
        }
    }
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).expect("a body");
    assert!(head.contains("Bearer a-token"), "{head}");
    let text = || {
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        body["body"].as_str().expect("a body").to_owned()
    };
    let mut all = kept.lock().expect("no one panics with it");
    let path = head.split(' ').nth(1).unwrap_or_default();
    let reply = match head.split(' ').next() {
        Some("GET") => {
            let page: usize = path.rsplit("page=").next().and_then(|page| page.parse().ok()).expect("a page");
            let comment = |(at, (by, body)): (usize, &(String, String))| json!({"id": at + 1, "user": {"login": by}, "body": body});
            let comments = all.iter().enumerate().map(comment);
            json!(comments.skip(100 * (page - 1)).take(100).collect::<Vec<_>>())
        }
        Some("POST") => {
            all.push((BOT.to_owned(), text()));
            json!({})
        }
        Some("PATCH") => {
            let id: usize = path.rsplit('/').next().and_then(|id| id.parse().ok()).expect("an id");
            all[id - 1].1 = text();
            json!({})
        }
        _ => return,
    }
    .to_string();
    let reply = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{reply}", reply.len());
    (&stream).write_all(reply.as_bytes()).expect("a client that listens");
}

/// A script of the workflow, by its step's name.
fn step(workflow: &Value, name: &str) -> String {
    let steps = workflow["jobs"]["review"]["steps"].as_array().expect("steps");
    let step = steps.iter().find(|step| step["name"] == name).expect(name);
    step["run"].as_str().expect("a script").to_owned()
}

fn run(script: &str, clone: &Path, repo: &TestRepo, comments: &Comments) -> Output {
    let squad = Path::new(env!("CARGO_BIN_EXE_squad")).parent().expect("a folder");
    let path = format!("{}:{}", squad.display(), std::env::var("PATH").expect("a path"));
    let temporary = clone.join(".git/runner");
    std::fs::create_dir_all(&temporary).expect("a folder");
    let mut command = Command::new("bash");
    command.args(["-e", "-c", script]).current_dir(clone).env("PATH", path);
    for (name, value) in [
        ("BASE", repo.git(&["rev-parse", "main"]).trim()),
        ("HEAD", repo.git(&["rev-parse", "feature"]).trim()),
        ("NUMBER", "7"),
        ("GITHUB_REPOSITORY", "someone/something"),
        ("GITHUB_API_URL", &comments.url),
        ("GITHUB_TOKEN", "a-token"),
        ("RUNNER_TEMP", &temporary.display().to_string()),
        ("GITHUB_STEP_SUMMARY", &temporary.join("summary.md").display().to_string()),
    ] {
        command.env(name, value);
    }
    command.output().expect("bash")
}

/// As the job's first step does it: the base, and never what the pull request brings.
fn check_out(repo: &TestRepo, clone: &Path) {
    repo.git(&["clone", "--quiet", &repo.root().display().to_string(), &clone.display().to_string()]);
    repo.git_in(clone, &["checkout", "--quiet", "--detach", "origin/main"]);
}

fn has_run(output: &Output) -> bool {
    assert!(output.stderr.is_empty() || output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.status.success()
}

#[test]
fn a_pull_request_gets_one_comment_that_is_kept_up_to_date() {
    let repo = TestRepo::with_small_team();
    assert_eq!(repo.squad(&["init", "--ci"]).code, 0);
    let workflow: Value = serde_saphyr::from_str(&repo.read(".github/workflows/squad-review.yml")).expect("YAML");
    let [fetch, review, comment, fail] =
        ["Fetch", "Review", "Comment", "Explicit contradictions fail"].map(|name| step(&workflow, name));
    // What comes from a pull request is data to these scripts, and never a part of them.
    assert!(
        [&fetch, &review, &comment, &fail, &step(&workflow, "Install squad")]
            .iter()
            .all(|script| !script.contains("${{"))
    );

    repo.git(&["switch", "--quiet", "--create", "feature"]);
    assert_eq!(repo.squad(&["decisions", "add", "Names are short"]).code, 0);
    repo.write(".git/index.lock", "");
    assert_eq!(repo.squad(&["decisions", "add", "Kept in the ledger"]).code, 0);
    std::fs::remove_file(repo.root().join(".git/index.lock")).expect("a lock");
    let comments = Comments::serve();
    // More comments than a page holds, none of them ours, though one says so.
    let said = |n| if n == 7 { "<!-- squad review -->\nAll is well.".to_owned() } else { format!("comment {n}") };
    let others = (0..130).map(|n| ("mallory".to_owned(), said(n)));
    comments.all.lock().expect("no one panics with it").extend(others);

    let clones = tempfile::tempdir().expect("a folder");
    let clone = clones.path().join("runner");
    check_out(&repo, &clone);
    for round in 0..2 {
        assert!(has_run(&run(&fetch, &clone, &repo, &comments)));
        assert!(has_run(&run(&review, &clone, &repo, &comments)));
        assert!(has_run(&run(&comment, &clone, &repo, &comments)));
        let texts = comments.texts();
        assert_eq!((texts.len(), &*texts[7]), (131, "<!-- squad review -->\nAll is well."), "round {round}");
        assert!(texts[130].starts_with("<!-- squad review -->\n## Decisions in"), "{}", texts[130]);
        assert!(texts[130].contains("Names are short") && texts[130].contains("Kept in the ledger"), "{}", texts[130]);
    }
    assert!(has_run(&run(&fail, &clone, &repo, &comments)));

    // Without a ledger on the remote it says what it could not see.
    repo.git(&["update-ref", "-d", "refs/squad/log"]);
    let bare = clones.path().join("another");
    check_out(&repo, &bare);
    assert!(has_run(&run(&fetch, &bare, &repo, &comments)));
    assert!(has_run(&run(&review, &bare, &repo, &comments)));
    let summary = std::fs::read_to_string(bare.join(".git/runner/summary.md")).expect("a summary");
    assert!(summary.contains("This clone has no ledger") && !summary.contains("Kept in the ledger"), "{summary}");

    // A race over one decision fails the last step, and no other.
    for branch in ["main", "feature"] {
        repo.git(&["switch", "--quiet", branch]);
        repo.write(
            &format!(".squad/decisions/2026/01/05-{branch}.md"),
            &format!("---\nid: {branch}\nsupersedes: gone\n---\n# {branch}\n"),
        );
        repo.git(&["add", "--all"]);
        repo.git(&["commit", "--quiet", "--message", branch]);
    }
    let again = clones.path().join("again");
    check_out(&repo, &again);
    assert!(has_run(&run(&fetch, &again, &repo, &comments)));
    assert!(has_run(&run(&review, &again, &repo, &comments)));
    assert_eq!(run(&fail, &again, &repo, &comments).status.code(), Some(1));
}

#[test]
fn a_comment_that_cannot_be_posted_fails_nothing() {
    let repo = TestRepo::with_small_team();
    assert_eq!(repo.squad(&["init", "--ci"]).code, 0);
    let workflow: Value = serde_saphyr::from_str(&repo.read(".github/workflows/squad-review.yml")).expect("YAML");
    repo.git(&["switch", "--quiet", "--create", "feature"]);
    assert_eq!(repo.squad(&["decisions", "add", "Names are short"]).code, 0);
    // Nobody answers there, as nobody lets a fork's token write.
    let nobody = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let url = format!("http://{}", nobody.local_addr().expect("a bound listener has an address"));
    drop(nobody);
    let comments = Comments { url, all: Arc::default() };
    let clones = tempfile::tempdir().expect("a folder");
    let clone = clones.path().join("runner");
    check_out(&repo, &clone);
    for name in ["Fetch", "Review", "Comment"] {
        let script = step(&workflow, name).replace("--retry 3", "--retry 0");
        let done = run(&script, &clone, &repo, &comments);
        assert!(has_run(&done));
        if name == "Comment" {
            assert!(String::from_utf8_lossy(&done.stdout).contains("::warning::"), "{done:?}");
        }
    }
}
