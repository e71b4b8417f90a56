//! Selects what an agent is told of its own charter.
//!
//! All of it where it fits; else as many of its sections as fit, in their order, and the titles of the others. That does not
//! depend on the task, which would change the session.

use super::budget::tokens;
use super::notes::sections_of;
use super::receipt::{Input, InputKind, hash};
use super::text::one_line;
use crate::model::{Sort, list};

/// Less than these bytes of a section are not worth it.
const MIN_BYTES: usize = 200;

/// After the beginning of a section.
const MORE: &str = "\n[…]\n\n";

/// A charter, as far as it is told.
pub(super) struct Selected {
    pub(super) text: String,
    /// One for each section; none where all is told.
    inputs: Vec<Input>,
}

/// Selects sections that fit into so many bytes: the shorter first, for the long ones are to look things up in; then the
/// beginning of the first that did not fit. `file`: what the agent opens for the rest.
pub(super) fn select(text: String, file: Option<&String>, limit: usize) -> Selected {
    let Some(file) = file.filter(|_| text.len() > limit) else { return Selected { text, inputs: Vec::new() } };
    let sections = sections_of(&text);
    let mut room = limit.saturating_sub(rest(file, sections.iter().map(|(title, _)| *title)).len());
    let mut told = vec![0; sections.len()];
    let mut by_size: Vec<_> = sections.iter().zip(&mut told).collect();
    by_size.stable_sort_by_key(|((_, section), _)| section.len());
    for ((_, section), told) in by_size {
        if let Some(left) = room.checked_sub(section.len()) {
            (*told, room) = (section.len(), left);
        }
    }
    let cut = sections.iter().zip(&mut told).find(|(_, told)| **told == 0);
    if let Some(((_, section), told)) = cut.filter(|_| room >= MIN_BYTES) {
        *told = beginning(section, room - MORE.len());
    }
    let sections = || sections.iter().zip(&told).map(|((title, section), told)| (*title, *section, *told));
    let mut line = 1;
    let input = |(title, section, told): (&str, &str, usize)| {
        let why = match told {
            0 => "no room left; the agent's own prompt",
            told if told < section.len() => "the agent's own prompt; cut to fit",
            _ => "the agent's own prompt",
        };
        let source = format!("{file}:{line}");
        line += section.matches('\n').count();
        Input {
            source,
            kind: InputKind::Charter,
            title: title.to_owned(),
            hash: hash(&[section]),
            tokens: tokens(if told > 0 { &section[..told] } else { section }),
            included: told > 0,
            why: why.to_owned(),
        }
    };
    let inputs = sections().map(input).collect();
    let missing = sections().filter(|(_, section, told)| *told < section.len()).map(|(title, ..)| title);
    let shown = |(_, section, told): (&str, &str, usize)| {
        let more = if told > 0 && told < section.len() { MORE } else { "" };
        format!("{}{more}", &section[..told])
    };
    let shown: String = sections().map(shown).collect();
    Selected { text: format!("{}{}", shown.trim_end(), rest(file, missing)), inputs }
}

/// The bytes of the whole lines that fit, without half of a fence.
fn beginning(section: &str, room: usize) -> usize {
    let (mut end, mut at, mut is_fenced) = (0, 0, false);
    for line in section.split_inclusive('\n') {
        at += line.len();
        if at > room {
            break;
        }
        is_fenced ^= ["```", "~~~"].iter().any(|mark| line.trim_start().starts_with(mark));
        if !is_fenced {
            end = at;
        }
    }
    end
}

/// Where the rest is.
fn rest<'t>(file: &str, titles: impl Iterator<Item = &'t str>) -> String {
    let titles: Vec<String> =
        titles.filter(|title| !title.is_empty()).map(|title| format!("“{}”", one_line(title))).collect();
    let titles = if titles.is_empty() { String::new() } else { format!(": {}", list(titles)) };
    format!("\n\nThis is not all of your charter. Read `{file}` when your task is about the rest{titles}.")
}

impl Selected {
    /// `whole`: the one input where all of it is told.
    pub(super) fn receipt(&self, whole: Input, inputs: &mut Vec<Input>) {
        if self.inputs.is_empty() {
            inputs.push(whole);
        } else {
            let (ins, outs): (Vec<_>, Vec<_>) = self.inputs.iter().cloned().partition(|input| input.included);
            inputs.extend(ins.into_iter().chain(outs));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, limit: usize) -> Selected {
        select(text.to_owned(), Some(&"a/charter.md".to_owned()), limit)
    }

    /// How long each section is, and what is told of it where all of them, or all but some, fit.
    #[test]
    fn short_sections_are_told_and_long_ones_are_named() {
        let section = |title: &str, lines: usize| format!("## {title}\n\n{}\n", "- one line of it\n".repeat(lines));
        let text =
            ["# Ada\n\nI build.\n\n", &section("Mine", 3), &section("Lore", 90), &section("Not mine", 2)].concat();
        for (limit, parts, missing) in [
            (text.len(), &["I build.", "## Mine", "## Lore", "## Not mine"][..], ""),
            (text.len() - 1, &["I build.", "## Mine", "## Lore", "[…]", "## Not mine"], "“Lore”"),
            (700, &["I build.", "## Mine", "## Lore", "[…]", "## Not mine"], "“Lore”"),
            (360, &["I build.", "## Mine", "## Not mine"], "“Lore”"),
            (230, &["I build.", "## Not mine"], "“Mine” and “Lore”"),
            (0, &[], "“Ada”, “Mine”, “Lore” and “Not mine”"),
        ] {
            let Selected { text: told, inputs } = of(&text, limit);
            let mut rest = told.as_str();
            for part in parts {
                rest = rest.split_once(part).unwrap_or_else(|| panic!("{limit}: {part}: {told}")).1;
            }
            assert_eq!(told.contains("Read `a/charter.md`"), !missing.is_empty(), "{limit}: {told}");
            assert!(told.ends_with(&format!(": {missing}.")) || missing.is_empty(), "{limit}: {told}");
            assert!(told.len() <= limit.max(200), "{limit}: {told}");
            let included = inputs.iter().filter(|input| input.included).count();
            let sections = parts.iter().filter(|part| **part != "[…]").count();
            assert_eq!((inputs.len(), included), if missing.is_empty() { (0, 0) } else { (4, sections) }, "{limit}");
        }
        let lines: Vec<String> = of(&text, 700).inputs.into_iter().map(|input| input.source).collect();
        assert_eq!(lines, ["a/charter.md:1", "a/charter.md:5", "a/charter.md:11", "a/charter.md:104"]);
    }

    #[test]
    fn half_of_a_fence_is_left_out_and_a_heading_in_one_is_none() {
        let text = format!("# Ada\n\nfirst\n\n```sh\n{}```\nlast\n", "## no heading\n".repeat(60));
        let told = of(&text, 600).text;
        assert!(told.contains("first") && !told.contains("```") && !told.contains("no heading"), "{told}");
        // Without a file there is nothing to read on in.
        assert_eq!(select(text.clone(), None, 0).text, text);
    }

    #[test]
    fn no_limit_breaks_a_character() {
        let text = "# Zoë\n\n## Ä\n\nöäü\n\n## Ö\n\nßßß\n".repeat(20);
        (0..text.len()).for_each(|limit| drop(of(&text, limit)));
    }
}
