//! What must hold for any bytes at all.

use proptest::prelude::*;

use super::{files, team};
use crate::model::{Problem, Team};

/// Pieces that team files are made of, so that random texts look like them now and then.
const PIECES: [&str; 36] = [
    "# ",
    "## ",
    "### ",
    "\n",
    "\n\n",
    "| ",
    " |",
    "|-|-|-|\n",
    "Name",
    "Role",
    "Signal",
    "Agent",
    "Status",
    "Ilse",
    "Uwe",
    "- ",
    "**",
    "`",
    "```\n",
    "---\n",
    "2026-01-05",
    ": ",
    " — ",
    "Date: ",
    "By: ",
    "{x}",
    "→",
    "(",
    ")",
    "[a](b.json)",
    "\u{fffd}",
    "\u{feff}",
    "🏗️",
    "ΓÇö",
    "> ",
    "  ",
];

fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => proptest::sample::select(PIECES.to_vec()).prop_map(str::to_owned),
        1 => "[\\PC\n\r\t|#`*:{}()-]{0,6}",
    ];
    proptest::collection::vec(piece, 0..80).prop_map(|pieces| pieces.concat())
}

const PATHS: [&str; 11] = [
    "team.md",
    "routing.md",
    "decisions.md",
    "decisions-archive.md",
    "b.json",
    "agents/ilse/charter.md",
    "agents/uwe.md",
    "roles/uwe.md",
    "decisions/2026/01/01-x-1.md",
    "decisions/inbox/x.md",
    "agents/ilse/history.md",
];

fn everywhere(text: &str) -> (Team, Vec<Problem>) {
    let texts: Vec<(&str, &str)> = PATHS.iter().map(|path| (*path, text)).collect();
    team(&files(&texts))
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic_and_problems_are_inside_the_file(text in text()) {
        let (team, problems) = everywhere(&text);
        let lines = text.replace("\r\n", "\n").replace('\r', "\n").lines().count().max(1);
        for problem in &problems {
            prop_assert!((1..=lines).contains(&problem.line), "{problem:?} of {lines}");
            let known = PATHS.iter().any(|path| problem.file.strip_prefix(".squad/") == Some(*path));
            prop_assert!(known, "{problem:?}");
        }
        let sources = team.rules.iter().map(|rule| &rule.source).chain(team.members.iter().map(|member| &member.source));
        for source in sources.chain(team.decisions.iter().filter_map(|decision| decision.source.as_ref())) {
            prop_assert!((1..=lines).contains(&source.line), "{source}");
        }
    }

    #[test]
    fn the_same_text_gives_the_same_team(text in text()) {
        prop_assert_eq!(everywhere(&text), everywhere(&text));
    }

    #[test]
    fn line_ends_and_a_byte_order_mark_change_nothing(text in text()) {
        let text = text.replace(['\r', '\u{feff}'], "");
        let (team, problems) = everywhere(&text);
        let windows = format!("\u{feff}{}", text.replace('\n', "\r\n"));
        prop_assert_eq!(everywhere(&windows), (team, problems));
    }
}

#[test]
fn mixed_line_ends_are_line_ends() {
    let mixed = "| Name | Role |\r\n|-|-|\n| Ilse | Pilot |\r\n| Uwe | Lead |\n";
    let (mixed, _) = team(&files(&[("team.md", mixed)]));
    let (plain, _) = team(&files(&[("team.md", "| Name | Role |\n|-|-|\n| Ilse | Pilot |\n| Uwe | Lead |\n")]));
    assert_eq!(mixed, plain);
}

/// Time is not measured here: a reader that is not linear would make this test the slowest of all.
#[test]
fn deep_and_huge_files_are_read() {
    let deep = format!("{}x\n{}{}", "> ".repeat(3000), "- ".repeat(3000), "#".repeat(3000));
    everywhere(&deep);
    let row = |n: usize| format!("| Name{n} | Role {n} | Active |\n");
    let roster: String = (0..4000).map(row).collect();
    let roster = format!("| Name | Role | Status |\n|-|-|-|\n{roster}");
    let rules: String = (0..4000).map(|n| format!("| work {n} | Name{n} + Nobody{n} |\n")).collect();
    let rules = format!("| Signal | Agent |\n|-|-|\n{rules}");
    let entries: String =
        (0..6000).map(|n| format!("### 2026-01-05: Entry {n}\n**By:** Ilse\n\n## Context\n\ntext\n\n")).collect();
    let (team, problems) = team(&files(&[("team.md", &roster), ("routing.md", &rules), ("decisions.md", &entries)]));
    assert_eq!((team.members.len(), team.rules.len(), team.decisions.len()), (4000, 4000, 6000));
    assert_eq!(problems.len(), 4000);
}
