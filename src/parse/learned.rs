//! Learnings in a history file: adds them without changing other bytes, and finds them again.
//!
//! Each is a bullet that begins with its date. Its other lines are indented, so that none can become a heading.

use std::ops::Range;

use super::bytes::line_end;
use super::line_feeds;
use super::markdown::Document;
use crate::model::stems;

const SECTION: &str = "learnings";

/// A learning as a bullet.
fn bullet(mark: char, date: &str, text: &str) -> String {
    let text = line_feeds(text.trim());
    let lines: Vec<String> =
        text.split('\n').map(|line| if line.is_empty() { String::new() } else { format!("  {line}") }).collect();
    format!("{mark} {date}: {}", lines.join("\n").trim_start())
}

/// Whether a history contains a learning verbatim.
pub(crate) fn holds(history: &str, date: &str, text: &str) -> bool {
    let history = line_feeds(history);
    MARKS.iter().any(|mark| {
        let wanted = bullet(*mark, date, text);
        history.match_indices(&wanted).any(|(at, _)| {
            let (before, after) = (&history[..at], &history[at + wanted.len()..]);
            // Indented lines below belong to the bullet.
            let next = after.lines().skip(1).find(|line| !line.trim().is_empty());
            let ends =
                after.is_empty() || (after.starts_with('\n') && !next.is_some_and(|line| line.starts_with("  ")));
            (before.is_empty() || before.ends_with('\n')) && ends
        })
    })
}

/// Whether a history seems to contain an edited learning: a line with its date and at least half of its words.
pub(crate) fn holds_edited(history: &str, date: &str, text: &str) -> bool {
    let wanted = stems(text);
    history.lines().filter(|line| line.contains(date)).any(|line| {
        let there = stems(line);
        let shared = wanted.iter().filter(|stem| there.contains(stem)).count();
        shared >= 2 && shared * 2 >= wanted.len()
    })
}

const MARKS: [char; 3] = ['-', '*', '+'];

/// The lessons of a history: each `###` section, and each bullet elsewhere with its indented lines.
pub(crate) fn lessons(history: &str) -> Vec<String> {
    let mut lessons: Vec<String> = Vec::new();
    let (mut is_open, mut is_section) = (false, false);
    for line in history.lines() {
        match line {
            _ if line.starts_with("### ") => {
                lessons.push(line.trim_start_matches('#').trim().to_owned());
                (is_open, is_section) = (true, true);
                continue;
            }
            _ if line.starts_with("# ") || line.starts_with("## ") => (is_open, is_section) = (false, false),
            _ if bullet_mark(line).is_some() && !is_section => {
                lessons.push(line.get(2..).unwrap_or_default().to_owned());
                is_open = true;
                continue;
            }
            _ if !is_section && !line.starts_with([' ', '\t']) && !line.is_empty() => is_open = false,
            _ => {}
        }
        if let (true, Some(last)) = (is_open, lessons.last_mut()) {
            last.push('\n');
            last.push_str(line.trim_end());
        }
    }
    lessons.iter_mut().for_each(|lesson| *lesson = lesson.trim().to_owned());
    lessons.retain(|lesson| !lesson.is_empty());
    lessons
}

/// Adds learnings, as date and text, at the end of the `## Learnings` section, which is created if missing. `name` is
/// the title of a new history.
pub(crate) fn add(history: &str, name: &str, learnings: &[(String, String)]) -> String {
    if history.trim_start_matches('\u{feff}').trim().is_empty() {
        return format!("{history}# {name}\n\n## Learnings\n\n{}\n", bullets('-', learnings));
    }
    let end = line_end(history);
    let section = section(history);
    let last = history[..section.as_ref().map_or(history.len(), |section| section.end)].trim_end().len();
    // Keep trailing blanks on their line.
    let at = history[last..].find(['\n', '\r']).map_or(history.len(), |rest| last + rest);
    let body = section.map(|section| history.get(section.start..at).unwrap_or_default());
    let lines = || body.unwrap_or_default().lines();
    let mark = lines().rev().find_map(bullet_mark);
    let added = bullets(mark.unwrap_or('-'), learnings);
    let added = match body {
        None => format!("\n\n## Learnings\n\n{added}"),
        // The history has a section per day.
        Some(_) if lines().any(|line| line.starts_with("### ")) => by_day(mark.unwrap_or('-'), learnings),
        Some(_) if lines().next_back().is_some_and(|last| last.starts_with("  ") || bullet_mark(last).is_some()) => {
            format!("\n{added}")
        }
        Some(_) => format!("\n\n{added}"),
    };
    let (before, after) = history.split_at(at);
    let last = if after.contains(['\n', '\r']) { "" } else { end };
    format!("{before}{}{last}{after}", added.replace('\n', end))
}

fn bullet_mark(line: &str) -> Option<char> {
    MARKS.into_iter().find(|mark| line.strip_prefix(*mark).is_some_and(|rest| rest.starts_with(' ')))
}

fn bullets(mark: char, learnings: &[(String, String)]) -> String {
    learnings.iter().map(|(date, text)| bullet(mark, date, text)).collect::<Vec<_>>().join("\n")
}

fn by_day(mark: char, learnings: &[(String, String)]) -> String {
    let days = learnings.chunk_by(|one, next| one.0 == next.0);
    days.map(|day| {
        let date = day.first().map_or("", |(date, _)| date);
        format!("\n\n### {date}\n\n{}", bullets(mark, day))
    })
    .collect()
}

/// The body of the last Learnings section.
fn section(history: &str) -> Option<Range<usize>> {
    let document = Document::new(history);
    let mut found = document.sections().into_iter().filter(|section| section.title.trim().to_lowercase() == SECTION);
    found.next_back().map(|section| section.body)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn learnings() -> Vec<(String, String)> {
        let one = |date: &str, text: &str| (date.to_owned(), text.to_owned());
        vec![one("2026-01-05", "The suite needs TZ=UTC."), one("2026-01-06", "Two lines:\n\n## no heading\n- x")]
    }

    #[test]
    fn a_history_is_a_list_of_lessons() {
        let history = "# Ada\n\nIntro\n\n## Learnings\n- One\n  more\n* Two\nrest\n\n### 2026-01-02: Three\n- a\n\nb\n## End\n-\n- \n";
        assert_eq!(lessons(history), ["One\n  more", "Two", "2026-01-02: Three\n- a\n\nb"]);
        assert!(lessons("").is_empty() && lessons("# Ada\n").is_empty());
    }

    #[test]
    fn they_go_to_the_end_of_their_section() {
        expect![[r#"
            # Ada

            ## Learnings

            - One.
            - 2026-01-05: The suite needs TZ=UTC.
            - 2026-01-06: Two lines:

              ## no heading
              - x

            ## Later

            x
        "#]]
        .assert_eq(&add("# Ada\n\n## Learnings\n\n- One.\n\n## Later\n\nx\n", "Ada", &learnings()));
        expect![[r###"
            ## Learnings

            <!-- here -->

            ### 2026-01-02: Old

            text

            ### 2026-01-05

            - 2026-01-05: The suite needs TZ=UTC.

            ### 2026-01-06

            - 2026-01-06: Two lines:

              ## no heading
              - x"###]]
        .assert_eq(
            add("## Learnings\n\n<!-- here -->\n\n### 2026-01-02: Old\n\ntext\n", "Ada", &learnings()).trim_end(),
        );
    }

    #[test]
    fn a_section_is_made_where_there_is_none() {
        let one = &learnings()[..1];
        let all = "\n\n## Learnings\n\n- 2026-01-05: The suite needs TZ=UTC.\n";
        assert_eq!(add("", "Ada", one), format!("# Ada{all}"));
        assert_eq!(add("# Ada\n\nText", "Ada", one), format!("# Ada\n\nText{all}"));
        let crlf = all.replace('\n', "\r\n");
        assert_eq!(add("\u{feff}# Ada\r\n", "Ada", one), format!("\u{feff}# Ada{crlf}"));
        assert_eq!(add("## Learnings", "Ada", one), "## Learnings\n\n- 2026-01-05: The suite needs TZ=UTC.\n");
        assert_eq!(
            add("## Learnings\n* x\n", "Ada", one),
            "## Learnings\n* x\n* 2026-01-05: The suite needs TZ=UTC.\n"
        );
    }

    #[test]
    fn only_the_whole_text_counts() {
        let held = |history: &str| holds(history, "2026-01-05", "Use it.");
        assert!(held("- 2026-01-05: Use it.\r\n- more\r\n") && held("x\n* 2026-01-05: Use it."));
        for other in ["", "- 2026-01-05: Use it. Never.", "- 2026-01-05: Use it.\n  Never.\n", "2026-01-05: Use it."] {
            assert!(!held(other), "{other}");
        }
    }

    #[test]
    fn an_edited_one_is_known_by_its_day_and_most_of_its_words() {
        let held = |history: &str| holds_edited(history, "2026-01-05", "The suite needs TZ=UTC.");
        assert!(held("- 2026-01-05: Set TZ=UTC before you run the suite.\n"));
        for other in ["", "- 2026-01-05: The suite is slow.", "- 2026-01-06: The suite needs TZ=UTC."] {
            assert!(!held(other), "{other}");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_byte_stays_and_every_text_is_known_again(
            history in "(# [a-z]{1,5}\r?\n|## Learnings\r?\n|### [a-z]{1,5}\r?\n|- [a-z]{1,9}\r?\n|[a-z ]{0,9}\r?\n|```\n){0,12}[a-z]{0,3}",
            texts in proptest::collection::vec("[a-z#`>\n -]{0,30}[a-z]", 1..4),
        ) {
            let learnings: Vec<_> = texts.iter().map(|text| ("2026-01-05".to_owned(), text.trim().to_owned())).collect();
            let added = add(&history, "Ada", &learnings);
            for (date, text) in &learnings {
                proptest::prop_assert!(holds(&added, date, text), "{added}");
            }
            // Taken out again, what was added leaves the file as it was.
            let front = history.bytes().zip(added.bytes()).take_while(|(a, b)| a == b).count();
            proptest::prop_assert!(added.ends_with(&history[history.floor_char_boundary(front)..]) || history.trim().is_empty());
        }
    }
}
