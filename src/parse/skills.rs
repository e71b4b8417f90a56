//! `skills/*/SKILL.md`: instructions that an agent opens when it needs them.

use super::front_matter;
use super::markdown::{BlockKind, Document};
use super::words::{is_blank, is_placeholder, without_pictographs};
use super::{Files, line_feeds};
use crate::model::{Problem, Severity, Skill};

/// The skills by path.
pub(super) fn read(files: &Files, problems: &mut Vec<Problem>) -> Vec<Skill> {
    let skills = files.texts.keys().filter_map(|path| Some((path, folder(path)?)));
    skills.map(|(path, folder)| skill(files, path, folder, problems)).collect()
}

/// `skills/…/<folder>/SKILL.md`
fn folder(path: &str) -> Option<&str> {
    let (folder, file) = path.strip_prefix("skills/")?.rsplit_once('/')?;
    file.eq_ignore_ascii_case("skill.md").then(|| folder.rsplit('/').next().unwrap_or(folder))
}

#[derive(Default, serde::Deserialize)]
struct Matter {
    name: Option<String>,
    description: Option<String>,
    domain: Option<String>,
}

fn skill(files: &Files, path: &str, folder: &str, problems: &mut Vec<Problem>) -> Skill {
    let text = line_feeds(files.text(path).unwrap_or_default());
    let (matter, body_at): (Matter, usize) = front_matter::of_file(files, path, &text, problems);
    let filled = |text: Option<String>| text.filter(|text| !is_blank(text) && !is_placeholder(text));
    let (name, description) = (filled(matter.name), filled(matter.description));
    let (title, lead) = match (&name, &description) {
        (Some(_), Some(_)) => (None, None),
        _ => title_and_lead(text.get(body_at..).unwrap_or_default()),
    };
    let description = description.or(lead).unwrap_or_default();
    if description.is_empty() {
        let message = "the skill has no description, so agents see only its name".to_owned();
        problems.push(
            Problem::new(Severity::Note, files.at(path, 1), "skill-without-description", message)
                .hint("begin the file with front matter that has `name` and `description`"),
        );
    }
    Skill {
        name: name.or(title).unwrap_or_else(|| folder.to_owned()),
        description: description.split_whitespace().collect::<Vec<_>>().join(" "),
        domain: filled(matter.domain).unwrap_or_default(),
        path: files.shown(path),
    }
}

/// The document's title and its first paragraph.
fn title_and_lead(body: &str) -> (Option<String>, Option<String>) {
    let document = Document::new(body);
    let title = document.title().map(without_pictographs);
    let lead = document.blocks.iter().find_map(|block| match &block.kind {
        BlockKind::Paragraph(text) if !is_blank(text) && !is_placeholder(text) => Some(text.clone()),
        _ => None,
    });
    (title.filter(|title| !is_blank(title) && !is_placeholder(title)), lead)
}
