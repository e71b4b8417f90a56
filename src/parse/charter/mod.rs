//! `charter.md`: who an agent is.

mod model;
mod tools;

use super::front_matter;
use super::markdown::{BlockKind, Document, Section};
use super::words::{comma_list, is_blank, is_placeholder, remark, without_pictographs};
use super::{Files, line_feeds};
use crate::model::{Charter, Problem};
use model::{ModelLines, model_name};

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
    read_lead(&document, &mut charter);
    if let Some(matter) = matter {
        match front_matter::read::<Matter>(matter) {
            Ok(matter) => matter.fill(&mut charter),
            Err(error) => problems.push(error.problem(files, path)),
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
    tools: Option<Several>,
}

/// A list, or one text with commas.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Several {
    List(Vec<String>),
    Text(String),
}

impl Several {
    fn list(self) -> Vec<String> {
        match self {
            Self::List(list) => list,
            Self::Text(text) => comma_list(&text),
        }
    }
}

impl Matter {
    fn fill(self, charter: &mut Charter) {
        charter.name = charter.name.take().or(self.name);
        charter.role = charter.role.take().or(self.description);
        charter.model = charter.model.take().or_else(|| self.model.and_then(|text| model_name(&text)));
        charter.tools = charter.tools.take().or(self.tools.map(Several::list));
    }
}

/// What parts a name from a role. Some dashes have suffered: `ΓÇö` is an em dash read as code page 437, `â€”` as 1252.
const DASHES: [&str; 12] =
    [" — ", " – ", " - ", " ― ", " -- ", " ΓÇö ", " ΓÇô ", " â€” ", " â€“ ", " \u{fffd} ", " | ", ": "];

/// `# Name — Role`, `# Name (Role)`, `# Charter: Name`.
fn read_title(document: &Document<'_>, charter: &mut Charter) {
    let title = document.blocks.iter().find_map(|block| match &block.kind {
        BlockKind::Heading { level: 1, text } => Some(text.replace("\u{fffd}\u{fffd}", "\u{fffd}")),
        _ => None,
    });
    let Some(title) = title else { return };
    let parts = DASHES.iter().find_map(|dash| title.split_once(dash));
    let (name, role) = parts.unwrap_or_else(|| remark(&title));
    let (name, role) = if is_charter(name) { (role, "") } else { (name, role) };
    let name = without_pictographs(name);
    let name = name.strip_suffix("'s Charter").or_else(|| name.strip_suffix(" Charter")).unwrap_or(&name);
    let (role, name) = (without_pictographs(role), name.to_owned());
    charter.name = Some(name).filter(|name| !is_blank(name) && !is_placeholder(name));
    charter.role = Some(role).filter(|role| !is_blank(role) && !is_placeholder(role) && !is_charter(role));
}

fn is_charter(text: &str) -> bool {
    matches!(without_pictographs(text).to_lowercase().as_str(), "charter" | "agent charter" | "agent")
}

/// Fields above the first section, for what no section said.
fn read_lead(document: &Document<'_>, charter: &mut Charter) {
    let is_section = |kind: &BlockKind| matches!(kind, BlockKind::Heading { level: 2.., .. });
    let end = document.blocks.iter().find(|block| is_section(&block.kind)).map_or(usize::MAX, |b| b.range.start);
    for (key, value) in document.fields_in(&(0..end)) {
        match key.as_str() {
            "role" if charter.role.is_none() => take_field(charter, &key, &value),
            "model" | "preferred model" if charter.model.is_none() => charter.model = model_name(&value),
            _ => {}
        }
    }
}

fn read_section(document: &Document<'_>, section: &Section<'_>, charter: &mut Charter) {
    let title = without_pictographs(section.title).to_lowercase();
    let body = document.text(&section.body);
    let title = title.trim_end_matches(':');
    match title {
        "identity" | "about" | "profile" => {
            for (key, value) in document.fields_in(&section.body) {
                take_field(charter, &key, &value);
            }
        }
        "model" | "model preference" | "preferred model" | "model selection" | "models" => {
            let fields = document.fields_in(&section.body);
            let lines: Vec<&str> =
                document.lines_in(&section.body).filter_map(|(text, _)| text.lines().next()).collect();
            let lines = ModelLines::read(&fields, &lines);
            charter.model = lines.preferred.or(charter.model.take());
            charter.fallback = lines.fallback;
            charter.reasoning_effort = lines.effort;
        }
        "what i own" | "owns" | "ownership" | "responsibilities" | "scope" | "areas of ownership" | "domain" => {
            charter.owns.push_str(body.trim());
            charter.owns.push('\n');
        }
        "role" => {
            let line = document.lines_in(&section.body).next().map(|(text, _)| without_pictographs(text));
            // A sentence describes the work; a role is a few words.
            let line = line.filter(|line| line.split_whitespace().count() <= 6 && !is_blank(line));
            charter.role = charter.role.take().or(line);
        }
        "boundaries" => charter.boundaries.push_str(body.trim()),
        "tools" | "allowed tools" => charter.tools = tools::read(document, section),
        _ => {
            // `## Model: claude-…`
            if let Some(("model", value)) = title.split_once(": ") {
                charter.model = model_name(value).or(charter.model.take());
            }
        }
    }
}

fn take_field(charter: &mut Charter, key: &str, value: &str) {
    if is_blank(value) || is_placeholder(value) {
        return;
    }
    match key {
        "name" => charter.name = Some(without_pictographs(value)),
        "role" | "title" => charter.role = Some(without_pictographs(value)),
        "expertise" | "skills" | "specialties" => charter.expertise = comma_list(value),
        "preferred" | "model" | "preferred model" => charter.model = model_name(value),
        _ => {}
    }
}
