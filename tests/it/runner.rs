//! A run's own process, which acts only when somebody waits for it.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

use crate::support::TestRepo;

const BINARY: &str = env!("CARGO_BIN_EXE_squad");

/// What comes after the request × whether the run is carried out.
#[test]
fn a_runner_without_its_word_does_nothing() {
    let go = "{\"go\":{}}\n";
    for (word, acts) in
        [("", false), ("{", false), (go.trim(), false), ("no\n", false), (&format!("\n{go}"), false), (go, true)]
    {
        let mut repo = TestRepo::with_small_team();
        repo.variables.insert("SQUAD_ENGINE".to_owned(), "rehearsal".to_owned());
        repo.write("../script.toml", "[[turn]]\nagent = \"ada\"\nsteps = [{ write = \"made.txt\", text = \"x\" }]\n");
        repo.variables.insert("SQUAD_REHEARSAL".to_owned(), "../script.toml".to_owned());
        let mut runner = repo.command(BINARY, &repo.root());
        let runner = runner.arg("carry").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut runner = runner.spawn().expect("squad runs");
        let mut input = runner.stdin.take().expect("a pipe");
        let request = r#"{"orchestrate":{"message":"@ada write it","agents":[],"tier":null,"flags":{},"attachments":[],
            "permissions":"allow","asks":false,"commit":false,"resume":null,"conversation":null,"engine":null}}"#;
        let request = request.replace('\n', "");
        writeln!(input, "{request}").expect("it reads");
        let mut output = BufReader::new(runner.stdout.take().expect("a pipe"));
        let mut received = String::new();
        output.read_line(&mut received).expect("it answers");
        assert_eq!(received, "{\"ready\":{}}\n");
        let _ = input.write_all(word.as_bytes());
        drop(input);
        let mut rest = String::new();
        output.read_to_string(&mut rest).expect("it ends");
        let done = runner.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.success(), acts, "{word:?}: {rest}{said}");
        assert_eq!(repo.exists("made.txt"), acts, "{word:?}: {rest}");
        assert_eq!(rest.contains("run.started"), acts, "{word:?}: {rest}");
        assert_eq!(said.contains("nobody waits for this run any more"), !acts, "{word:?}: {said}");
        let runs: serde_json::Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
        assert_eq!(runs["runs"].as_array().map(Vec::len), Some(usize::from(acts)), "{word:?}: {runs}");
    }
}
