//! The page of `squad log --html` in a real Chromium.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::repository::TestRepo;

const SCRIPT: &str = r#"
[[turn]]
agent = "ada"
steps = [
  { tool = "squad_log_decision", args = { title = "Ports are shared", what = "One port.", why = "Less to open." } },
  { write = "src/a_file_with_a_very_long_name_that_does_not_fit_a_telephone/ports.toml", text = "<b>8080</b>\n" },
  { run = "echo one; echo two; false" },
  { say = "First.\n\nSecond, <img src=https://example.com/x.png>.\n\nThird.\n\nFourth.\n\nFifth." },
]
[[turn]]
agent = "bob"
steps = [
  { write = "src/b.txt", text = "مرحبا 日本語\n" },
  { say = "| a | b |\n|---|---|\n| 1 | 2 |\n\n![picture](https://example.com/x.png) <script>console.log(1)</script>" },
]
"#;

/// The first that is installed.
fn browser() -> &'static str {
    let is_there = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|said| said.status.success());
    let known = ["chromium-headless-shell", "chromium", "google-chrome"];
    known.into_iter().find(is_there).expect(".ci/install-real-parts installs one")
}

#[test]
fn the_page_of_a_run_is_quiet_and_fits() {
    let repo = TestRepo::with_small_team();
    let arguments = ["--permissions", "allow", "--agent", "ada", "--agent", "bob", "Share the ports <script>"];
    let output = repo.rehearse(SCRIPT, &arguments);
    assert_eq!(output.code, 0, "{output}");
    let output = repo.squad(&["log", "000001", "--html", "run.html"]);
    assert_eq!(output.code, 0, "{output}");
    let pictures = repo.root().with_file_name("pictures");
    fs::create_dir(&pictures).expect("a folder");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/browser.py");
    let mut command = Command::new("python3");
    command.arg(script).arg(browser()).arg(repo.root().join("run.html")).arg(&pictures);
    let output = command.output().expect("Python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(seen["title"], "Share the ports <script>");
    assert_eq!((&seen["console"], &seen["requests"], &seen["lost"]), (&json!([]), &json!([]), &json!([])), "{seen}");
    assert_eq!(seen["overflow"], json!({"360": 0, "1280": 0}), "{seen}");
    assert_ne!(seen["colors"]["light"], seen["colors"]["dark"], "{seen}");
    assert_eq!(
        (&seen["folded"], &seen["print"], &seen["opened"]),
        (&json!(false), &json!(true), &json!(true)),
        "{seen}"
    );
    assert!(seen["links"].as_array().is_some_and(|links| links.len() >= 3), "{seen}");
}
