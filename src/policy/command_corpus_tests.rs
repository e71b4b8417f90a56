//! Commands that do harm and ordinary ones, each with the answer that the rules give today.
//!
//! `UPDATE_EXPECT=1 cargo test --lib command_corpus` accepts other answers, and rewrites README's table of them.

use std::path::Path;

use expect_test::expect_file;

use super::forbidden;

const BEGIN: &str = "<!-- What is refused: made from fixtures/commands by a test. -->\n";
const END: &str = "<!-- End of what is refused. -->\n";

struct Line<'t> {
    class: &'t str,
    is_refused: bool,
    command: &'t str,
}

/// The lines of a file as the rules answer them, and again as text.
fn played(file: &str) -> (Vec<Line<'_>>, String) {
    let mut text = String::new();
    let lines = file.lines().map(|line| {
        let (class, rest) = line.split_once(" | ").expect("a class");
        let (_, command) = rest.split_once(" | ").expect("an answer");
        let is_refused = forbidden(command, "/home/ann/shop").is_some();
        text += &format!("{class} | {} | {command}\n", if is_refused { "refused" } else { "passes" });
        Line { class, is_refused, command }
    });
    (lines.collect(), text)
}

fn at_root(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

const HARMFUL: &str = include_str!("../../fixtures/commands/harmful.txt");
const ORDINARY: &str = include_str!("../../fixtures/commands/ordinary.txt");

#[test]
fn every_command_is_answered_as_before() {
    for (path, file, least) in
        [("fixtures/commands/harmful.txt", HARMFUL, 300), ("fixtures/commands/ordinary.txt", ORDINARY, 150)]
    {
        let (lines, text) = played(file);
        expect_file![at_root(path)].assert_eq(&text);
        let mut commands: Vec<&str> = lines.iter().map(|line| line.command).collect();
        commands.sort_unstable();
        commands.dedup();
        assert!(commands.len() >= least && commands.len() == lines.len(), "{path}: {}", commands.len());
    }
}

fn row(class: &str, lines: &[&Line]) -> String {
    let refused = lines.iter().filter(|line| line.is_refused).count();
    // The totals, in bold, need no example.
    let is_example = |line: &&&Line| {
        !class.starts_with('*') && !line.is_refused && line.command.len() <= 60 && !line.command.contains(['|', '`'])
    };
    let passes = lines.iter().find(is_example).map(|line| format!("`{}`", line.command)).unwrap_or_default();
    format!("| {class} | {refused} of {} | {passes} |\n", lines.len())
}

#[test]
fn the_readme_counts_what_is_refused() {
    let (harmful, ordinary) = (played(HARMFUL).0, played(ORDINARY).0);
    let mut table = "| class | refused | an example that is not |\n| --- | --- | --- |\n".to_owned();
    let mut classes: Vec<&str> = harmful.iter().map(|line| line.class).collect();
    classes.dedup();
    for class in classes {
        table += &row(class, &harmful.iter().filter(|line| line.class == class).collect::<Vec<_>>());
    }
    table += &row("**harmful commands in all**", &harmful.iter().collect::<Vec<_>>());
    table += &row("**ordinary commands**", &ordinary.iter().collect::<Vec<_>>());
    let path = at_root("README.md");
    let readme = std::fs::read_to_string(&path).expect("README.md").replace("\r\n", "\n");
    let (before, rest) = readme.split_once(BEGIN).expect("where the table begins");
    let (_, after) = rest.split_once(END).expect("where the table ends");
    expect_file![path].assert_eq(&format!("{before}{BEGIN}\n{table}\n{END}{after}"));
}
