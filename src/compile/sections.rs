//! What the team says in prose, quoted: of its project in `team.md`, which every session is told; of its routing and
//! of how it wants to be coordinated, which the coordinator is.

use super::budget::tokens;
use super::receipt::{Input, InputKind, hash};
use super::text::{one_line, place};
use crate::model::{ContextSection, plural, quote};

/// One kind of prose, and why it is told.
pub(super) struct Prose {
    heading: &'static str,
    kind: InputKind,
    /// What a section that matters is, and what the rest of them are.
    matters: &'static str,
    rest: &'static str,
}

pub(super) const PROJECT: Prose = Prose {
    heading: "\n## The project\n\nQuoted from what the team says of it.\n",
    kind: InputKind::Project,
    matters: "what the project is",
    rest: "what else the team's file says",
};

pub(super) const ROUTING: Prose = Prose {
    heading: "\n## How this team routes work\n\nQuoted from its routing file.\n",
    kind: InputKind::Rules,
    matters: "how the team routes work",
    rest: "what else the routing file says",
};

pub(super) const CHARTER: Prose = Prose {
    heading: "\n## How this team wants to be coordinated\n\nQuoted from its charter for you.\n",
    kind: InputKind::Charter,
    matters: "the coordinator's own charter",
    rest: "",
};

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
    prose: &'static Prose,
    places: Vec<(&'a ContextSection, Place)>,
}

/// As much as fits into so many bytes: what matters first, then the rest, each in the order of the file.
pub(super) fn tell<'a>(
    prose: &'static Prose,
    sections: impl IntoIterator<Item = &'a ContextSection>,
    limit: usize,
) -> Selected<'a> {
    let mut places: Vec<(&ContextSection, Place)> =
        sections.into_iter().map(|section| (section, Place::LeftOut)).collect();
    let mut room = limit.saturating_sub(prose.heading.len() + left_out(places.len()).len());
    for matters in [true, false] {
        for (section, place) in places.iter_mut().filter(|(section, _)| section.matters == matters) {
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
        text.insert_str(0, prose.heading);
    }
    Selected { text, prose, places }
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
    if room < LEAST || !section.matters {
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
    format!("\n{} of that file not shown here.\n", plural(more, "more section"))
}

impl Selected<'_> {
    pub(super) fn receipt(&self, inputs: &mut Vec<Input>) {
        let (ins, outs): (Vec<_>, Vec<_>) = self.places.iter().partition(|(_, place)| *place != Place::LeftOut);
        for (section, place) in ins.into_iter().chain(outs) {
            let merit = if section.matters { self.prose.matters } else { self.prose.rest };
            let (length, why) = match place {
                Place::Whole => (section.text.len(), merit.to_owned()),
                Place::Cut(length) => (length, format!("{merit}; only its beginning, for want of room")),
                Place::LeftOut => (section.text.len(), format!("no room left; {merit}")),
            };
            inputs.push(Input {
                source: section.source.to_string(),
                kind: self.prose.kind,
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

    fn section(heading: &str, matters: bool, text: &str) -> ContextSection {
        let source = Source::new(".squad/team.md", 7);
        ContextSection { heading: heading.to_owned(), matters, text: text.to_owned(), source }
    }

    #[test]
    fn what_is_about_the_project_comes_before_what_is_not() {
        let long = format!("{}\n", "x".repeat(90)).repeat(10);
        let sections = [
            section("Labels", false, &long),
            section("Project Context", true, "- **Stack:** Rust\n\n# Squad coordinator\n"),
            section("Notes", false, "short"),
        ];
        let told = tell(&PROJECT, &sections, 400);
        assert_eq!(
            told.text,
            "\n## The project\n\nQuoted from what the team says of it.\n\n\
             From `.squad/team.md:7`, “Project Context”:\n> - **Stack:** Rust\n>\n> # Squad coordinator\n\n\
             From `.squad/team.md:7`, “Notes”:\n> short\n\n1 more section of that file not shown here.\n"
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
            let told = tell(&PROJECT, &sections, limit);
            let left = "\n2 more sections of that file not shown here.\n";
            let least = PROJECT.heading.len() + left.len();
            assert!(told.text.len() <= limit.max(least), "{limit}: {}", told.text.len());
            let cut = told.text.contains("> […]\n");
            assert_eq!(cut, (400..9_500).contains(&limit), "{limit}: {}", told.text);
        }
        assert_eq!(tell(&PROJECT, &[], 1_000).text, "");
    }
}
