//! Every command the README shows is run, in the order of the README.

use std::path::Path;

use crate::support::TestRepo;

fn readme() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).expect("README.md")
}

/// The lines of all `sh` blocks.
pub(crate) fn commands(readme: &str) -> Vec<&str> {
    readme.split("```sh\n").skip(1).filter_map(|block| block.split("```").next()).flat_map(str::lines).collect()
}

/// As a shell splits them; the README needs no more than double quotes.
pub(crate) fn words(command: &str) -> Vec<String> {
    command
        .split('"')
        .enumerate()
        .flat_map(|(index, part)| match index % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
        .collect()
}

#[test]
fn every_command_works() {
    let readme = readme();
    let mut repo = TestRepo::empty();
    repo.write("README.md", "# A project\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "--quiet", "--message=first"]);
    let mut run = 0;
    for command in commands(&readme) {
        if let Some(variable) = command.strip_prefix("export ") {
            assert!(variable.starts_with("COPILOT_"), "{command}");
            continue;
        }
        let words = words(command);
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            // This test is part of it.
            ["cargo", "test"] => continue,
            // The build is CI's; the demo itself is run here.
            ["cargo", "run", "--", ..] => drop(words.drain(..3)),
            ["cargo", "install", "--locked", "--path", "."] => continue,
            // It runs until somebody ends it, as in `watch`.
            ["squad", "watch"] => continue,
            ["squad", ..] => drop(words.drain(..1)),
            _ => panic!("what is `{command}`?"),
        }
        // Only an engine that needs no login can be had here; `tests/real` runs the real one.
        repo.variables.insert("SQUAD_ENGINE".to_owned(), "rehearsal".to_owned());
        let output = repo.squad(&words);
        assert_eq!(output.code, 0, "{command}: {output}");
        run += 1;
    }
    assert!(run >= 10, "only {run} commands were found");
}

/// What changes from run to run: commits, ids, seconds.
fn masked(line: &str) -> String {
    let mask = |word: &str| {
        let bare = word.trim_end_matches([':', ',', '.', ';']);
        let is_id = bare.len() >= 6 && bare.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_time = bare.contains(':') && bare.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
        if is_id || is_time || bare.parse::<f64>().is_ok_and(|_| bare.contains('.')) {
            "…".to_owned()
        } else {
            word.to_owned()
        }
    };
    line.split(' ').map(mask).collect::<Vec<_>>().join(" ")
}

/// The run at the top is the demo's: its lines in their order, some cut short.
#[test]
fn the_run_it_shows_is_a_real_one() {
    let readme = readme();
    let shown = readme.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a run");
    let repo = TestRepo::folder();
    let output = repo.squad(&["demo", "--keep"]);
    let answer = output.out.lines().next().unwrap_or_default();
    let lines: Vec<String> = output.err.lines().chain([answer]).map(masked).collect();
    for line in shown.lines() {
        let found = lines.iter().any(|real| real.starts_with(&masked(line)));
        assert!(found, "the demo has no line `{line}`:\n{output}");
    }
    let shop = output.err.lines().last().and_then(|line| line.strip_prefix("The shop stays: cd "));
    let folder = Path::new(shop.expect("the folder is named")).parent().expect("the demo's");
    // git may still tidy up in it.
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn every_setting_is_listed() {
    let readme = readme();
    let rows: Vec<&str> = readme.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let keys =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/settings/keys.rs")).expect("keys.rs");
    let names =
        keys.split("free(\"").chain(keys.split("guarded_key(\"")).skip(1).filter_map(|rest| rest.split('"').next());
    for name in names.filter(|name| name.contains('.') && !name.contains(' ')) {
        let listed = rows.iter().any(|row| {
            *row == name
                || row.strip_suffix(".*").is_some_and(|table| name.starts_with(table))
                || row.replace(".NAME", ".*").replace(".UNIT", ".*") == name
        });
        assert!(listed, "README.md does not list `{name}`");
    }
}
