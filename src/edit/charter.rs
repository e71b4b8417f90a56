//! Charters, and mentions of a member in all other files of the team.

use super::cells::{add_line, line, lines, set_line};
use super::naming::{Naming, with_paths};
use super::{Draft, NewMember};
use crate::model::{Member, Slug, Source};
use crate::parse::{FORMERLY, line_end};

const TEMPLATE: &str = include_str!("../../templates/charter.md");

/// The path of a new member's charter, like its neighbour's.
pub(super) fn path_for(draft: &Draft<'_>, like: &Member, slug: &Slug) -> String {
    let own = format!("agents/{slug}/charter.md");
    let Some((place, path)) = draft.home(like).zip(draft.charter(like)) else { return own };
    let is_aside = place.matches('/').count() > 1;
    match path.strip_prefix(&place) {
        Some(rest) if !is_aside => format!("{}{rest}", renamed_home(&place, slug)),
        _ => own,
    }
}

/// A sibling of a folder or file, named after a slug.
pub(super) fn renamed_home(place: &str, slug: &Slug) -> String {
    let (folder, name) = place.rsplit_once('/').unwrap_or(("agents", place));
    let end = [".agent.md", ".md"].into_iter().find(|end| name.ends_with(end)).unwrap_or_default();
    format!("{folder}/{slug}{end}")
}

pub(super) fn new(draft: &Draft<'_>, new: &NewMember, like: &Member) -> String {
    let owns: Vec<String> = match new.signals.is_empty() {
        true => vec!["- What the routing table sends here".to_owned()],
        false => new.signals.iter().map(|signal| format!("- {signal}")).collect(),
    };
    let text = TEMPLATE
        .replace("{owns}", &owns.join("\n"))
        .replace("{model}", new.model.as_deref().unwrap_or("auto"))
        .replace("{role}", &new.role)
        .replace("{name}", &new.name);
    let end = draft.charter(like).map_or("\n", |path| line_end(draft.text(&path)));
    text.replace("\r\n", "\n").replace('\n', end)
}

/// Renames title, name and front matter of the charter. The old name is kept in a field, because the ledger's records
/// use it.
pub(super) fn rename(draft: &mut Draft<'_>, member: &Member, naming: &Naming<'_>) {
    let Some(path) = draft.charter(member) else { return };
    let mut text = draft.text(&path).to_owned();
    let mut title_is_done = false;
    for number in 1..=lines(&text).len() {
        let Some(old) = line(&text, number).map(str::to_owned) else { break };
        let is_title = !title_is_done && old.trim_start_matches('\u{feff}').starts_with('#');
        title_is_done |= is_title;
        if (is_title || is_field(&old, "name"))
            && let Some(renamed) = set_line(&text, number, &naming.in_words(&old))
        {
            text = renamed;
        }
    }
    if naming.old_slug != naming.new_slug {
        text = with_former_name(&text, naming.old).unwrap_or(text);
    }
    draft.put(&path, text);
}

/// `- **Name:** Ada`, `name: ada`, `| **Name** | Ada |`
fn is_field(line: &str, key: &str) -> bool {
    let plain = line.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '-' | '*' | '+' | '|' | '_'));
    let rest =
        plain.get(..key.len()).filter(|start| start.eq_ignore_ascii_case(key)).and_then(|_| plain.get(key.len()..));
    rest.is_some_and(|rest| rest.trim_start_matches(['*', '_', ' ']).starts_with([':', '|']))
}

/// Adds a name to the field of former names, which is created below the name field or the title.
fn with_former_name(text: &str, name: &str) -> Option<String> {
    let numbers = 1..=lines(text).len();
    let find = |is: &dyn Fn(&str) -> bool| numbers.clone().find(|number| line(text, *number).is_some_and(is));
    if let Some(number) = find(&|line| is_field(line, FORMERLY)) {
        let old = line(text, number)?.trim_end();
        let (inner, bar) = old.strip_suffix('|').map_or((old, ""), |inner| (inner.trim_end(), " |"));
        return set_line(text, number, &format!("{inner}, {name}{bar}"));
    }
    // Front matter has no such field.
    let is_name = |line: &str| is_field(line, "name") && !line.starts_with(['n', 'N']);
    if let Some(number) = find(&is_name) {
        let old = line(text, number)?;
        let at = old.to_lowercase().find("name")?;
        let value_at = old.rfind([':', '|'].as_slice()).filter(|_| !old.trim_end().ends_with('|'));
        let value_at = value_at.or_else(|| old.get(at..)?.find('|').map(|bar| at + bar))?;
        let (key, value) = (old.get(at + "name".len()..=value_at)?, old.get(value_at + 1..)?);
        let marks: String = value.chars().take_while(|c| matches!(c, '*' | '_' | ' ')).collect();
        let end = if value.trim_end().ends_with('|') { " |" } else { "" };
        let field = format!("{}Formerly{key}{marks}{name}{end}", old.get(..at)?);
        return add_line(text, number, &field);
    }
    let title = find(&|line| line.trim_start_matches('\u{feff}').starts_with("# "))?;
    add_line(&add_line(text, title, "")?, title + 1, &format!("- **Formerly:** {name}"))
}

/// Whether mentions in a file are renamed. Decisions and histories are records and stay unchanged.
fn has_mentions(path: &str) -> bool {
    let is_record = path.ends_with("/history.md") || path.starts_with("decisions") || path.starts_with("archive");
    path.ends_with(".md") && !is_record
}

/// Renames facilitators and participants of ceremonies.
fn ceremonies(draft: &mut Draft<'_>, naming: &Naming<'_>) {
    const CEREMONIES: &str = "ceremonies.md";
    let mut text = draft.text(CEREMONIES).to_owned();
    for number in 1..=lines(&text).len() {
        let old = line(&text, number).unwrap_or_default();
        let is_about_people = ["facilitator", "participants"].iter().any(|key| is_field(old, key));
        let renamed = is_about_people.then(|| set_line(&text, number, &naming.in_names(old))).flatten();
        text = renamed.unwrap_or(text);
    }
    if text != draft.text(CEREMONIES) {
        draft.put(CEREMONIES, text);
    }
}

/// Renames mentions and paths in all files of the team.
pub(super) fn mentions(draft: &mut Draft<'_>, naming: &Naming<'_>, moved: Option<&(String, String)>) {
    ceremonies(draft, naming);
    let paths: Vec<String> = draft.files.texts.keys().filter(|path| has_mentions(path)).cloned().collect();
    for path in paths {
        let text = draft.text(&path);
        let renamed = naming.in_mentions(text);
        let renamed = moved.map_or(renamed.clone(), |(new, old)| with_paths(&renamed, old, new));
        if renamed != text {
            draft.put(&path, renamed);
        }
    }
}

/// The lines that still contain the old name.
pub(super) fn remaining_mentions(draft: &Draft<'_>, member: &Member, naming: &Naming<'_>) -> Vec<Source> {
    let own = draft.home(member).map(|place| format!("{place}/"));
    let is_own = |path: &str| own.as_ref().is_some_and(|own| path.starts_with(own));
    let files = draft.files.texts.iter().filter(|(path, _)| has_mentions(path) || path.starts_with("config."));
    let mut found = Vec::new();
    for (path, text) in files {
        for (at, line) in lines(text).into_iter().enumerate() {
            let line = text.get(line).unwrap_or_default();
            if naming.is_in(line) && !is_field(line, FORMERLY) && !(is_own(path) && draft.moved.is_none()) {
                found.push(Source::new(draft.files.shown(path), at + 1));
            }
        }
    }
    found
}
