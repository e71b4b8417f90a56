//! Selects and quotes prose of the team: on the project from `team.md` for every session; on routing and coordination
//! for the coordinator.

use super::budget::tokens;
use super::receipt::{Input, InputKind, hash};
use super::text::{cite_source, one_line};
use crate::model::{ContextSection, plural, quote};

/// A kind of prose, with the reasons given in receipts.
pub(super) struct ProseKind {
    heading: &'static str,
    kind: InputKind,
    /// The reason for sections that matter, and for all others.
    matters: &'static str,
    rest: &'static str,
}

pub(super) const PROJECT: ProseKind = ProseKind {
    heading: "\n## The project\n\nQuoted from the team's own description.\n",
    kind: InputKind::Project,
    matters: "what the project is",
    rest: "the rest of the team's file",
};

pub(super) const ROUTING: ProseKind = ProseKind {
    heading: "\n## How this team routes work\n\nQuoted from its routing file.\n",
    kind: InputKind::Rules,
    matters: "how the team routes work",
    rest: "the rest of the routing file",
};

pub(super) const CHARTER: ProseKind = ProseKind {
    heading: "\n## How this team wants to be coordinated\n\nQuoted from its charter for you.\n",
    kind: InputKind::Charter,
    matters: "the coordinator's own charter",
    rest: "",
};

/// Minimum bytes for part of a section; less is not worth its citation.
const MIN_BYTES: usize = 200;

/// How much of a section is included.
#[derive(Clone, Copy, PartialEq)]
enum Inclusion {
    Whole,
    /// The first bytes, ending with a whole line.
    Cut(usize),
    LeftOut,
}

/// The selected sections.
pub(super) struct Selected<'a> {
    pub(super) text: String,
    kind: &'static ProseKind,
    inclusions: Vec<(&'a ContextSection, Inclusion)>,
}

/// Selects sections that fit into `limit` bytes: first those that matter, then the others, each in the order of the
/// file.
pub(super) fn select<'a>(
    kind: &'static ProseKind,
    sections: impl IntoIterator<Item = &'a ContextSection>,
    limit: usize,
) -> Selected<'a> {
    let mut inclusions: Vec<(&ContextSection, Inclusion)> =
        sections.into_iter().map(|section| (section, Inclusion::LeftOut)).collect();
    let mut room = limit.saturating_sub(kind.heading.len() + left_out(inclusions.len()).len());
    for matters in [true, false] {
        for (section, inclusion) in inclusions.iter_mut().filter(|(section, _)| section.matters == matters) {
            let (found, size) = fitting(section, room);
            (*inclusion, room) = (found, room - size);
        }
    }
    let mut text = String::new();
    for (section, inclusion) in &inclusions {
        text.push_str(&match inclusion {
            Inclusion::Whole => rendered(section, section.text.len()),
            Inclusion::Cut(length) => rendered(section, *length),
            Inclusion::LeftOut => continue,
        });
    }
    let more = inclusions.iter().filter(|(_, inclusion)| *inclusion == Inclusion::LeftOut).count();
    if more > 0 {
        text.push_str(&left_out(more));
    }
    if !text.is_empty() {
        text.insert_str(0, kind.heading);
    }
    Selected { text, kind, inclusions }
}

/// How much of a section fits, and its rendered size.
fn fitting(section: &ContextSection, room: usize) -> (Inclusion, usize) {
    // Quoting never makes a text shorter.
    if section.text.len() <= room {
        let whole = rendered(section, section.text.len()).len();
        if whole <= room {
            return (Inclusion::Whole, whole);
        }
    }
    if room < MIN_BYTES || !section.matters {
        return (Inclusion::LeftOut, 0);
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
    if end == 0 || size > room { (Inclusion::LeftOut, 0) } else { (Inclusion::Cut(end), size) }
}

/// The beginning of a section, cited and quoted, so that none of it can act as squad's text.
fn rendered(section: &ContextSection, length: usize) -> String {
    let of = match section.heading.is_empty() {
        true => String::new(),
        false => format!(", “{}”", one_line(&section.heading)),
    };
    let more = if length < section.text.len() { "> […]\n" } else { "" };
    format!(
        "\nFrom {}{of}:\n{}{more}",
        cite_source(&section.source),
        quote(section.text.get(..length).unwrap_or_default())
    )
}

fn left_out(more: usize) -> String {
    format!("\n{} of that file not shown here.\n", plural(more, "more section"))
}

impl Selected<'_> {
    pub(super) fn receipt(&self, inputs: &mut Vec<Input>) {
        let (ins, outs): (Vec<_>, Vec<_>) =
            self.inclusions.iter().partition(|(_, inclusion)| *inclusion != Inclusion::LeftOut);
        for (section, inclusion) in ins.into_iter().chain(outs) {
            let reason = if section.matters { self.kind.matters } else { self.kind.rest };
            let (length, why) = match inclusion {
                Inclusion::Whole => (section.text.len(), reason.to_owned()),
                Inclusion::Cut(length) => (length, format!("{reason}; cut to fit")),
                Inclusion::LeftOut => (section.text.len(), format!("no room left; {reason}")),
            };
            inputs.push(Input {
                source: section.source.to_string(),
                kind: self.kind.kind,
                title: section.heading.clone(),
                hash: hash(&[&section.text]),
                tokens: tokens(&rendered(section, length)),
                included: inclusion != Inclusion::LeftOut,
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
    fn sections_about_the_project_come_first() {
        let long = format!("{}\n", "x".repeat(90)).repeat(10);
        let sections = [
            section("Labels", false, &long),
            section("Project Context", true, "- **Stack:** Rust\n\n# Squad coordinator\n"),
            section("Notes", false, "short"),
        ];
        let told = select(&PROJECT, &sections, 400);
        assert_eq!(
            told.text,
            "\n## The project\n\nQuoted from the team's own description.\n\n\
             From `.squad/team.md:7`, “Project Context”:\n> - **Stack:** Rust\n>\n> # Squad coordinator\n\n\
             From `.squad/team.md:7`, “Notes”:\n> short\n\n1 more section of that file not shown here.\n"
        );
        let mut inputs = Vec::new();
        told.receipt(&mut inputs);
        let shown: Vec<_> = inputs.iter().map(|input| (input.title.as_str(), input.included)).collect();
        assert_eq!(shown, [("Project Context", true), ("Notes", true), ("Labels", false)]);
    }

    #[test]
    fn the_limit_is_kept_and_a_long_section_keeps_its_beginning() {
        let line = format!("- {}\n", "é".repeat(20));
        let sections = [section("Context", true, &line.repeat(100)), section("", true, &line.repeat(100))];
        for limit in [0, 90, 150, 400, 1_000, 5_000, 9_000, 100_000] {
            let told = select(&PROJECT, &sections, limit);
            let left = "\n2 more sections of that file not shown here.\n";
            let least = PROJECT.heading.len() + left.len();
            assert!(told.text.len() <= limit.max(least), "{limit}: {}", told.text.len());
            let cut = told.text.contains("> […]\n");
            assert_eq!(cut, (400..9_500).contains(&limit), "{limit}: {}", told.text);
        }
        assert_eq!(select(&PROJECT, &[], 1_000).text, "");
    }
}
