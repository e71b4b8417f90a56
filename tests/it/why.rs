use std::collections::BTreeMap;

use expect_test::expect;
use serde_json::Value;

use crate::support::TestRepo;

/// Ada writes a file and decides something; rex reviews.
const WORK: &str = r#"
[[turn]]
agent = "ada"
steps = [
  { write = "src/api.txt", text = "pub fn health() -> Response {\n    Response::json(200, STATUS)\n}\n" },
  { tool = "squad_log_decision", args = { title = "Errors are JSON", what = "One shape.", why = "Clients parse it." } },
  { say = "The endpoint is there." },
]
[[turn]]
agent = "rex"
steps = [{ say = "Good.\n\nVERDICT: approved" }]
"#;

fn commit(repo: &TestRepo, message: &str) {
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message", message]);
}

fn why(repo: &TestRepo, subject: &str) -> Value {
    serde_json::from_str(&repo.squad(&["why", subject, "--json"]).out).expect("JSON")
}

#[test]
fn a_line_has_a_task_an_agent_and_a_review() {
    let mut repo = TestRepo::with_small_team();
    let output = repo.rehearse(WORK, &["--permissions", "allow", "Rework the login"]);
    assert_eq!(output.code, 0, "{output}");
    expect![[r#"
        src/api.txt:2  Response::json(200, STATUS)
          agent     ada, in run 20260105-090000-000001, completed
          task      Rework the login
          review    rex: approved
          decided   000000000008 Errors are JSON
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["why", "src/api.txt:2"]).to_string());
    repo.set_gits_clock();
    repo.git(&["switch", "--quiet", "--create", "feature"]);
    commit(&repo, "endpoint");
    repo.git(&["switch", "--quiet", "main"]);
    repo.git(&["merge", "--quiet", "--squash", "feature"]);
    repo.git(&["commit", "--quiet", "--message", "squashed"]);
    repo.git(&["branch", "--quiet", "-D", "feature"]);
    let answer = why(&repo, "src/api.txt:1");
    assert_eq!((&answer["commit"]["subject"], &answer["origins"][0]["agent"]), (&"squashed".into(), &"ada".into()));
    let id = answer["origins"][0]["decisions"][0]["id"].as_str().expect("an id").to_owned();
    expect![[r#"
        .squad/decisions/2026/01/05-errors-are-json-000000000008.md
          decision  000000000008 Errors are JSON
          agent     ada, in run 20260105-090000-000001, completed
          task      Rework the login
          review    rex: approved
          decided   000000000008 Errors are JSON
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["why", &id[..10]]).to_string());
    expect![[r#"
        src/api.txt:3  }
          commit    8508616488 squashed (Ann, 2026-01-05)
          unknown   the line is one that anybody writes
        --- exit 1
    "#]]
    .assert_eq(&repo.squad(&["why", "src/api.txt:3"]).to_string());
    let file = answer["path"].as_str().expect("a path");
    assert_eq!(why(&repo, file)["origins"].as_array().map(Vec::len), Some(1));
}

#[test]
fn nobody_is_blamed_without_proof() {
    let repo = TestRepo::with_small_team();
    repo.rehearse(WORK, &["--permissions", "allow", "Rework the login"]);
    repo.write(
        "src/api.txt",
        "// by hand, long before anybody\npub fn health() -> Response {\n    Response::json(200, STATUS)\n}\n",
    );
    repo.write("src/other.txt", "pub fn health() -> Response {\n    Response::json(200, STATUS)\n}\n");
    for (subject, reason) in [
        ("src/api.txt:1", "no run is known to have written it"),
        ("src/api.txt:4", "anybody writes"),
        ("src/other.txt:2", "no run is known"),
        ("README.md:1", "neither a file"),
        ("src/api.txt:9", "has 4 lines"),
        ("src/api.txt:0", "names no line"),
        ("../outside:1", "neither a file"),
    ] {
        let output = repo.squad(&["why", subject]);
        let told = format!("{}{}", output.out, output.err);
        assert!(output.code != 0 && told.contains(reason), "{subject}: {output}");
    }
    // A second run that writes the same line makes it anybody's.
    repo.write("src/api.txt", "");
    repo.rehearse(WORK, &["--permissions", "allow", "Rework the login again"]);
    assert!(why(&repo, "src/api.txt:1")["unknown"].as_str().is_some_and(|why| why.contains("several runs")));
}

/// Histories at random, against a book that knows who wrote each line. Right or unknown, never wrong.
#[test]
fn no_history_leads_to_a_wrong_answer() {
    let mut known = 0;
    let mut asked = 0;
    for seed in 1..=3 {
        let (right, all) = one_history(seed);
        known += right;
        asked += all;
    }
    println!("{known} of {asked} lines of agents were known, none was wrong");
    assert!(known * 10 >= asked * 7, "{known} of {asked}");
}

/// The lines of agents that were known, and how many there were.
fn one_history(seed: u64) -> (usize, usize) {
    let mut repo = TestRepo::with_small_team();
    let mut dice = Dice(seed);
    // The agents that wrote a line, each with its task.
    let mut book: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut gone: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for step in 0..10 {
        let path = format!("src/file{}.txt", dice.below(2));
        let mut fresh: Vec<String> =
            (0..=dice.below(3)).map(|at| format!("let value_{step}_{at} = compute_{}();", dice.below(1000))).collect();
        let lines = texts.entry(path.clone()).or_default();
        let at = dice.below(lines.len() + 1);
        let author = (dice.below(3) > 0).then(|| (["ada", "bob"][dice.below(2)].to_owned(), format!("Task {step}")));
        for line in &fresh {
            book.entry(line.clone()).or_default().extend(author.clone());
        }
        // Now and then something that was there before comes back: who restores it by hand is not who wrote it.
        if let Some(back) = gone.entry(path.clone()).or_default().pop().filter(|_| dice.below(2) == 0) {
            book.entry(back.clone()).or_default().extend(author.clone());
            fresh.push(back);
        }
        lines.splice(at..at, fresh);
        let indent = " ".repeat(dice.below(3));
        let whole: String = lines.iter().map(|line| format!("{indent}{line}\n")).collect();
        match &author {
            // It writes the whole file, and most of that is not its doing.
            Some((agent, task)) => {
                let text = serde_json::to_string(&whole).expect("JSON");
                let script = format!(
                    "[[turn]]\nagent = \"{agent}\"\nsteps = [{{ write = \"{path}\", text = {text} }}, {{ say = \"Done.\" }}]\n"
                );
                let output = repo.rehearse(&script, &["--permissions", "allow", "--agent", agent, task]);
                assert_eq!(output.code, 0, "{output}");
            }
            None => repo.write(&path, &whole),
        }
        repo.set_gits_clock();
        history(&repo, &mut dice, step);
        if lines.len() > 3 && dice.below(2) == 0 {
            gone.entry(path.clone()).or_default().push(lines.remove(dice.below(lines.len())));
            repo.write(&path, &lines.iter().map(|line| format!("{line}\n")).collect::<String>());
            commit(&repo, "something removed");
        }
    }
    let (mut known, mut all) = (0, 0);
    for (path, lines) in &texts {
        for (at, line) in lines.iter().enumerate() {
            let answer = why(&repo, &format!("{path}:{}", at + 1));
            let named = answer["origins"].get(0).map(|origin| {
                let text = |field: &str| origin[field].as_str().unwrap_or_default().to_owned();
                (text("agent"), text("task"))
            });
            let truth = &book[line];
            all += usize::from(!truth.is_empty());
            known += usize::from(named.is_some());
            assert!(
                named.iter().all(|named| truth.contains(named)),
                "seed {seed}: {path}:{}: {answer} but {truth:?}",
                at + 1
            );
        }
    }
    (known, all)
}

/// Commits what there is, in one of the ways people do.
fn history(repo: &TestRepo, dice: &mut Dice, step: usize) {
    let branch = format!("b{step}");
    match dice.below(6) {
        0 => {}
        1 => commit(repo, "plain"),
        2 => {
            repo.git(&["add", "--all"]);
            repo.git(&["commit", "--quiet", "--amend", "--no-edit"]);
        }
        3 => {
            repo.git(&["switch", "--quiet", "--create", &branch]);
            commit(repo, "squash me");
            repo.git(&["switch", "--quiet", "main"]);
            repo.git(&["merge", "--quiet", "--squash", &branch]);
            repo.git(&["commit", "--quiet", "--message", "squashed"]);
        }
        4 => {
            repo.git(&["switch", "--quiet", "--create", &branch]);
            commit(repo, "rebase me");
            repo.git(&["switch", "--quiet", "main"]);
            repo.write(&format!("other{step}.txt"), "other\n");
            commit(repo, "beside");
            repo.git(&["rebase", "--quiet", "main", &branch]);
            repo.git(&["switch", "--quiet", "main"]);
            repo.git(&["merge", "--quiet", "--ff-only", &branch]);
        }
        _ => {
            commit(repo, "to be reverted");
            repo.git(&["revert", "--no-edit", "HEAD"]);
            repo.git(&["revert", "--no-edit", "HEAD"]);
        }
    }
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        // SplitMix64: the same histories every time.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((x ^ (x >> 31)) % end as u64).expect("it is small")
    }
}
