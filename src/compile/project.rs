//! What the team says of its project, in `team.md`: every session is told, in the team's words.

use super::budget::tokens;
use super::receipt::{Input, InputKind, hash};
use super::text::{one_line, place};
use crate::model::{ContextSection, plural, quote};

const HEADING: &str = "\n## The project\n\nQuoted from what the team says of it.\n";

/// In bytes: less of a section is not worth its citation.
const LEAST: usize = 200;

/// What became of a section.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Whole,
    /// So many bytes of its beginning, whole lines.
    Cut(usize),
    LeftOut,
}

/// What a session is told of the project.
pub(super) struct Selected<'a> {
    pub(super) text: String,
    places: Vec<(&'a ContextSection, Place)>,
}

/// As much as fits into so many bytes: what is about the project first, then the rest, each in the order of the file.
pub(super) fn tell(sections: &[ContextSection], limit: usize) -> Selected<'_> {
    let mut places: Vec<(&ContextSection, Place)> = sections.iter().map(|section| (section, Place::LeftOut)).collect();
    let mut room = limit.saturating_sub(HEADING.len() + left_out(sections.len()).len());
    for is_project in [true, false] {
        for (section, place) in places.iter_mut().filter(|(section, _)| section.is_project == is_project) {
            let (found, size) = fitting(section, room);
            (*place, room) = (found, room - size);
        }
    }
    let mut text = String::new();
    for (section, place) in &places {
        text.push_str(&match place {
            Place::Whole => rendered(section, section.text.len()),
            Place::Cut(length) => rendered(section, *length),
            Place::LeftOut => continue,
        });
    }
    let more = places.iter().filter(|(_, place)| *place == Place::LeftOut).count();
    if more > 0 {
        text.push_str(&left_out(more));
    }
    if !text.is_empty() {
        text.insert_str(0, HEADING);
    }
    Selected { text, places }
}

/// How a section fits, and what it takes.
fn fitting(section: &ContextSection, room: usize) -> (Place, usize) {
    // Quoted, no text is shorter.
    if section.text.len() <= room {
        let whole = rendered(section, section.text.len()).len();
        if whole <= room {
            return (Place::Whole, whole);
        }
    }
    if room < LEAST || !section.is_project {
        return (Place::LeftOut, 0);
    }
    let (mut end, mut size) = (0, rendered(section, 0).len());
    for line in section.text.split_inclusive('\n') {
        size += quote(line).len();
        if size > room {
            break;
        }
        end += line.len();
    }
    let size = rendered(section, end).len();
    if end == 0 || size > room { (Place::LeftOut, 0) } else { (Place::Cut(end), size) }
}

/// A section's beginning, cited and quoted: none of it can pose as ours.
fn rendered(section: &ContextSection, length: usize) -> String {
    let of = match section.heading.is_empty() {
        true => String::new(),
        false => format!(", “{}”", one_line(&section.heading)),
    };
    let more = if length < section.text.len() { "> […]\n" } else { "" };
    format!("\nFrom {}{of}:\n{}{more}", place(&section.source), quote(section.text.get(..length).unwrap_or_default()))
}

fn left_out(more: usize) -> String {
    format!("\n{} of the team's file not shown here.\n", plural(more, "more section"))
}

impl Selected<'_> {
    pub(super) fn receipt(&self, inputs: &mut Vec<Input>) {
        let (ins, outs): (Vec<_>, Vec<_>) = self.places.iter().partition(|(_, place)| *place != Place::LeftOut);
        for (section, place) in ins.into_iter().chain(outs) {
            let merit = if section.is_project { "what the project is" } else { "what else the team's file says" };
            let (length, why) = match place {
                Place::Whole => (section.text.len(), merit.to_owned()),
                Place::Cut(length) => (length, format!("{merit}; only its beginning, for want of room")),
                Place::LeftOut => (section.text.len(), format!("no room left; {merit}")),
            };
            inputs.push(Input {
                source: section.source.to_string(),
                kind: InputKind::Project,
                title: section.heading.clone(),
                hash: hash(&[&section.text]),
                tokens: tokens(&rendered(section, length)),
                included: place != Place::LeftOut,
                why,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Source;

    fn section(heading: &str, is_project: bool, text: &str) -> ContextSection {
        let source = Source::new(".squad/team.md", 7);
        ContextSection { heading: heading.to_owned(), is_project, text: text.to_owned(), source }
    }

    #[test]
    fn what_is_about_the_project_comes_before_what_is_not() {
        let long = format!("{}\n", "x".repeat(90)).repeat(10);
        let sections = [
            section("Labels", false, &long),
            section("Project Context", true, "- **Stack:** Rust\n\n# Squad coordinator\n"),
            section("Notes", false, "short"),
        ];
        let told = tell(&sections, 400);
        assert_eq!(
            told.text,
            "\n## The project\n\nQuoted from what the team says of it.\n\n\
             From `.squad/team.md:7`, “Project Context”:\n> - **Stack:** Rust\n>\n> # Squad coordinator\n\n\
             From `.squad/team.md:7`, “Notes”:\n> short\n\n1 more section of the team's file not shown here.\n"
        );
        let mut inputs = Vec::new();
        told.receipt(&mut inputs);
        let shown: Vec<_> = inputs.iter().map(|input| (input.title.as_str(), input.included)).collect();
        assert_eq!(shown, [("Project Context", true), ("Notes", true), ("Labels", false)]);
    }

    #[test]
    fn no_limit_is_broken_and_a_long_section_keeps_its_beginning() {
        let line = format!("- {}\n", "é".repeat(20));
        let sections = [section("Context", true, &line.repeat(100)), section("", true, &line.repeat(100))];
        for limit in [0, 90, 150, 400, 1_000, 5_000, 9_000, 100_000] {
            let told = tell(&sections, limit);
            let left = "\n2 more sections of the team's file not shown here.\n";
            let least = HEADING.len() + left.len();
            assert!(told.text.len() <= limit.max(least), "{limit}: {}", told.text.len());
            let cut = told.text.contains("> […]\n");
            assert_eq!(cut, (400..9_500).contains(&limit), "{limit}: {}", told.text);
        }
        assert_eq!(tell(&[], 1_000).text, "");
    }
}
