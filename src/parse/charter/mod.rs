//! `charter.md`: who an agent is.

mod matter;
mod model;
mod tools;

use super::markdown::{BlockKind, Document, Section};
use super::words::{comma_list, is_blank, is_placeholder, remark, without_pictographs};
use super::{Files, front_matter, line_feeds};
use crate::model::{Charter, Problem, Severity, Tier};
use matter::Matter;
use model::ModelLines;
pub(super) use model::model_name;

/// In bytes. Of a longer charter, an agent is told less than half; see `compile`.
const LONG: usize = 9_500;

/// The field with an agent's former names, which old records use.
pub(crate) const FORMERLY: &str = "formerly";

/// Unclear text about tools or models, with its offset.
#[derive(Default)]
struct Unclear {
    tools: Option<usize>,
    model: Option<(usize, String)>,
}

/// The MCP servers in the front matter, as other tools write them: a table, or a list of tables. With the line.
pub(super) fn servers(text: &str) -> Option<(serde_json::Value, usize)> {
    const KEYS: [&str; 2] = ["mcp-servers", "mcpServers"];
    if !text.starts_with("---") {
        return None;
    }
    let text = line_feeds(text);
    let matter = front_matter::split(&text).0.filter(|matter| KEYS.iter().any(|key| matter.contains(key)))?;
    let mut matter: serde_json::Map<String, serde_json::Value> = front_matter::read(matter).ok()?;
    let key = KEYS.iter().find(|key| matter.contains_key(**key))?;
    let line = text.lines().position(|line| line.starts_with(key)).map_or(1, |at| at + 1);
    let tables = match matter.remove(*key)? {
        serde_json::Value::Array(items) => items,
        table => vec![table],
    };
    let tables = tables.into_iter().filter_map(|table| serde_json::from_value(table).ok());
    let servers: serde_json::Map<_, _> = tables.flat_map(|table: serde_json::Map<_, _>| table).collect();
    (!servers.is_empty()).then_some((servers.into(), line))
}

pub(super) fn read(files: &Files, path: &str, text: &str, problems: &mut Vec<Problem>) -> Charter {
    let text = line_feeds(text);
    if text.trim().is_empty() {
        problems.push(
            Problem::warning(files.at(path, 1), "charter-empty", "the charter is empty")
                .hint("say who the agent is, what it owns and where its work ends"),
        );
    } else if text.len() > LONG {
        let message = format!("the charter has {} bytes; the agent is told the first 4,000 or so", text.len());
        problems.push(
            Problem::warning(files.at(path, 1), "charter-long", message)
                .hint("what is at its end is only named to the agent; move knowledge to skills or history.md"),
        );
    }
    let (matter, body_at): (Matter, usize) = front_matter::of_file(files, path, &text, problems);
    let document = Document::new(&text[body_at..]);
    let (mut charter, mut unclear) = (Charter::default(), Unclear::default());
    read_title(&document, &mut charter);
    for section in document.sections() {
        read_section(&document, &section, &mut charter, &mut unclear);
    }
    read_lead(&document, &mut charter);
    matter.fill(&mut charter);
    let at = |offset: usize| {
        let line = document.line(offset.saturating_sub(1)) + text[..body_at].matches('\n').count();
        files.at(path, line.min(text.lines().count().max(1)))
    };
    if let Some(offset) = unclear.tools {
        let message = "the Tools section is not a plain list of tools, so it limits nothing";
        let hint = "to limit the agent, name each tool as the engine does: `- view`, `- bash`";
        problems.push(Problem::new(Severity::Note, at(offset), "charter-tools", message).hint(hint));
    }
    if let Some((offset, said)) = unclear.model.filter(|_| charter.model.is_none()) {
        let hint = "write `- **Preferred:**` and the model's id, such as `claude-sonnet-4.5`, or `auto`";
        problems.push(Problem::warning(at(offset), "charter-model", said).hint(hint));
    }
    if let Some((model, id)) = charter.model.as_deref().and_then(|model| Some((model, model::id_for(model)?))) {
        let at = text.lines().position(|line| line.contains(model)).unwrap_or(0);
        let message = format!("`{model}` is a display name; engines know models by id");
        let problem = Problem::new(Severity::Note, files.at(path, at + 1), "charter-model", message);
        problems.push(problem.hint(format!("write the id, such as `{id}`")));
    }
    charter.text = text;
    charter
}

/// Separators of name and role. Some are misread em dashes: `ΓÇö` in code page 437, `â€”` in Windows-1252.
const DASHES: [&str; 12] =
    [" — ", " – ", " - ", " ― ", " -- ", " ΓÇö ", " ΓÇô ", " â€” ", " â€“ ", " \u{fffd} ", " | ", ": "];

/// The name and the role of a text's title.
pub(super) fn title(text: &str) -> (Option<String>, Option<String>) {
    let mut charter = Charter::default();
    read_title(&Document::new(text), &mut charter);
    (charter.name, charter.role)
}

/// `# Name — Role`, `# Name (Role)`, `# Charter: Name`.
fn read_title(document: &Document<'_>, charter: &mut Charter) {
    let Some(title) = document.title() else { return };
    let (name, role) = name_and_role(title);
    charter.name = Some(name).filter(|name| !is_blank(name) && !is_placeholder(name));
    charter.role = Some(role).filter(|role| !is_blank(role) && !is_placeholder(role) && !is_charter(role));
}

fn name_and_role(title: &str) -> (String, String) {
    let title = title.replace("\u{fffd}\u{fffd}", "\u{fffd}");
    let parts = DASHES.iter().find_map(|dash| title.split_once(dash));
    let (name, role) = parts.unwrap_or_else(|| remark(&title));
    let (name, role) = if is_charter(name) { (role, "") } else { (name, role) };
    let name = without_pictographs(name);
    let name = name.strip_suffix("'s Charter").or_else(|| name.strip_suffix(" Charter")).unwrap_or(&name);
    (name.to_owned(), without_pictographs(role))
}

/// `standard`, `` `Full` ``, `lightweight (it only reads)`
fn tier_name(text: &str) -> Option<Tier> {
    let name = remark(text).0.to_lowercase();
    Tier::of_work(name.trim_matches(|c: char| !c.is_alphanumeric()))
}

/// `claude`, `` `codex` ``: the name of an engine, which is one word.
fn engine_name(text: &str) -> Option<String> {
    let name = remark(text).0.trim_matches(['`', '*', '"', '\'', ' ']).to_owned();
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    (is_name && !is_blank(&name) && !is_placeholder(&name)).then_some(name)
}

fn is_charter(text: &str) -> bool {
    matches!(without_pictographs(text).to_lowercase().as_str(), "charter" | "agent charter" | "agent")
}

/// Reads fields above the first section, unless a section has them.
fn read_lead(document: &Document<'_>, charter: &mut Charter) {
    let is_section = |kind: &BlockKind| matches!(kind, BlockKind::Heading { level: 2.., .. });
    let end = document.blocks.iter().find(|block| is_section(&block.kind)).map_or(usize::MAX, |b| b.range.start);
    for (key, value) in document.fields_in(&(0..end)) {
        match key.as_str() {
            "role" if charter.role.is_none() => take_field(charter, &key, &value),
            "model" | "preferred model" if charter.model.is_none() => charter.model = model_name(&value),
            FORMERLY if charter.formerly.is_empty() => take_field(charter, &key, &value),
            _ => {}
        }
    }
}

fn read_section(document: &Document<'_>, section: &Section<'_>, charter: &mut Charter, unclear: &mut Unclear) {
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
            unclear.model = lines.unclear.map(|said| (section.body.start, said));
            charter.model = lines.preferred.or(charter.model.take());
            let engine = fields.iter().find(|(key, _)| key == "engine");
            charter.engine = engine.and_then(|(_, value)| engine_name(value)).or(charter.engine.take());
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
        "tier" | "response tier" | "response mode" => {
            let mut lines = document.lines_in(&section.body);
            charter.tier = lines.find_map(|(text, _)| tier_name(text)).or(charter.tier);
        }
        "boundaries" => charter.boundaries.push_str(body.trim()),
        "tools" | "allowed tools" | "tool access" => {
            let tools = tools::read(document, section);
            (charter.tools, charter.denied_tools) = (tools.allowed, tools.denied);
            unclear.tools = unclear.tools.or(tools.is_prose.then_some(section.body.start));
        }
        // `## Model: claude-…`
        _ => {
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
        // `Tier` alone may be a model's: premium, fast.
        "response tier" | "response mode" => charter.tier = tier_name(value).or(charter.tier),
        "role" | "title" => charter.role = Some(without_pictographs(value)),
        "expertise" | "skills" | "specialties" => charter.expertise = comma_list(value),
        FORMERLY => charter.formerly = comma_list(value),
        "preferred" | "model" | "preferred model" => charter.model = model_name(value),
        _ => {}
    }
}
