//! `charter.md`: who an agent is.

use super::front_matter;
use super::markdown::{BlockKind, Document, Section, field};
use super::words::{comma_list, is_blank, without_pictographs};
use super::{Files, line_feeds};
use crate::model::{Charter, Problem, Severity};

pub(super) fn read(files: &Files, path: &str, text: &str, problems: &mut Vec<Problem>) -> Charter {
    let text = line_feeds(text);
    if text.trim().is_empty() {
        problems.push(
            Problem::warning(files.at(path, 1), "charter-empty", "the charter is empty")
                .hint("say who the agent is, what it owns and where its work ends"),
        );
    }
    let (matter, body_at) = front_matter::split(&text);
    let document = Document::new(&text[body_at..]);
    let mut charter = Charter::default();
    read_title(&document, &mut charter);
    for section in document.sections() {
        read_section(&document, &section, &mut charter);
    }
    if let Some(matter) = matter {
        match front_matter::read::<Matter>(matter) {
            Ok(matter) => matter.fill(&mut charter),
            Err(error) => problems.push(
                Problem::new(
                    Severity::Warning,
                    files.at(path, 1 + error.line),
                    "front-matter",
                    format!("the front matter is not YAML squad can read: {}", error.message),
                )
                .hint("the rest of the file is used"),
            ),
        }
    }
    charter.text = text;
    charter
}

#[derive(serde::Deserialize)]
struct Matter {
    name: Option<String>,
    description: Option<String>,
    model: Option<String>,
    tools: Option<Vec<String>>,
}

impl Matter {
    fn fill(self, charter: &mut Charter) {
        charter.name = charter.name.take().or(self.name);
        charter.role = charter.role.take().or(self.description);
        charter.model = charter.model.take().or_else(|| self.model.and_then(|text| model_name(&text)));
        charter.tools = charter.tools.take().or(self.tools);
    }
}

/// `# Name — Role`. The dash may have suffered: `ΓÇö` is an em dash read as code page 437.
fn read_title(document: &Document<'_>, charter: &mut Charter) {
    let title = document.blocks.iter().find_map(|block| match &block.kind {
        BlockKind::Heading { level: 1, text } => Some(without_pictographs(text)),
        _ => None,
    });
    let Some(title) = title else { return };
    let parts = [" — ", " – ", " - ", " ΓÇö ", ": "].iter().find_map(|dash| title.split_once(dash));
    let (name, role) = parts.map_or((title.as_str(), None), |(name, role)| (name, Some(role)));
    charter.name = Some(name.trim().to_owned()).filter(|name| !is_blank(name));
    charter.role = role.map(|role| role.trim().to_owned()).filter(|role| !is_blank(role));
}

fn read_section(document: &Document<'_>, section: &Section<'_>, charter: &mut Charter) {
    let title = section.title.to_lowercase();
    let body = document.text(&section.body);
    match title.trim() {
        "identity" | "model" => {
            for (line, _) in document.lines_in(&section.body) {
                // A paragraph of bold fields is one block with a field a line.
                for (key, value) in line.lines().filter_map(field) {
                    take_field(charter, &key, value);
                }
            }
        }
        "what i own" | "owns" | "ownership" | "responsibilities" | "scope" => {
            charter.owns.push_str(body.trim());
            charter.owns.push('\n');
        }
        "boundaries" => charter.boundaries.push_str(body.trim()),
        "tools" => {
            let tools =
                document.lines_in(&section.body).map(|(line, _)| tool_name(line)).filter(|name| !is_blank(name));
            charter.tools = Some(tools.collect::<Vec<_>>()).filter(|tools| !tools.is_empty());
        }
        _ => {}
    }
}

fn take_field(charter: &mut Charter, key: &str, value: &str) {
    match key {
        "name" if !is_blank(value) => charter.name = Some(without_pictographs(value)),
        "role" if !is_blank(value) => charter.role = Some(without_pictographs(value)),
        "expertise" => charter.expertise = comma_list(value),
        "preferred" | "model" => charter.model = model_name(value),
        _ => {}
    }
}

/// The id in a Model line: without backticks and remarks. `auto` and its like name none.
fn model_name(value: &str) -> Option<String> {
    let id = value.trim().trim_start_matches(['`', '"', '*']);
    let id: String = id.chars().take_while(|c| c.is_ascii_alphanumeric() || "._:/-".contains(*c)).collect();
    let named = !is_blank(&id)
        && !matches!(id.to_lowercase().as_str(), "auto" | "default" | "inherit" | "none" | "null" | "any");
    named.then_some(id)
}

/// A Tools item names its tool first: `view — read files`.
fn tool_name(line: &str) -> String {
    line.trim_start_matches('`').chars().take_while(|c| c.is_alphanumeric() || "_-.*".contains(*c)).collect()
}
