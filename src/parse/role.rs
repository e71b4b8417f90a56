//! Role files: front matter with a name and a description, and a text that becomes an agent's prompt. Data only: nothing
//! in one is ever evaluated.

use serde::Deserialize;

use super::charter::title;
use super::conflicts::{UNFINISHED, conflict};
use super::front_matter;
use super::{line_feeds, without_mark};
use crate::model::without_hidden;

/// What a role file says.
#[derive(Debug, PartialEq)]
pub(crate) struct RoleText {
    pub(crate) name: Option<String>,
    pub(crate) description: String,
    pub(crate) body: String,
    /// What its title says the role is called, and what it does: `# Name — Role`.
    pub(crate) title: (Option<String>, Option<String>),
}

#[derive(Deserialize, Default)]
struct Matter {
    name: Option<String>,
    description: Option<String>,
}

/// The fields of a Codex role that squad uses.
#[derive(Deserialize)]
struct CodexRole {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    developer_instructions: String,
    model: Option<String>,
}

/// A Codex role, which is TOML, as the text of a role file. The error says what is wrong with it.
pub(crate) fn codex_role(text: &str) -> Result<String, String> {
    let role: CodexRole = toml::from_str(text).map_err(|error| format!("not a Codex role: {}", error.message()))?;
    // The values are JSON, which is valid YAML.
    let field = |name: &str, value: &str| match value {
        "" => String::new(),
        value => format!("{name}: {}\n", serde_json::json!(value)),
    };
    let fields = [
        field("name", &role.name),
        field("description", &role.description),
        field("model", role.model.as_deref().unwrap_or_default()),
    ];
    Ok(format!("---\n{}---\n\n{}\n", fields.concat(), role.developer_instructions.trim()))
}

/// A role, or the line and what is wrong there.
pub(crate) fn role(text: &str) -> Result<RoleText, (usize, String)> {
    let text = line_feeds(without_mark(text));
    if let Some(line) = conflict("role.md", &text) {
        return Err((line, UNFINISHED.to_owned()));
    }
    let first = text.lines().next().unwrap_or_default();
    let (matter, body_at) = front_matter::split(&text);
    if let Some(language) = first.strip_prefix("---").filter(|_| matter.is_none()) {
        return Err((
            1,
            match language.trim() {
                "" => "the front matter has no closing `---` line".to_owned(),
                language if language.starts_with('-') => return Ok(of(Matter::default(), &text)),
                language => format!("front matter must be YAML, but this is marked `{language}`"),
            },
        ));
    }
    let matter = match matter.filter(|matter| !matter.trim().is_empty()) {
        None => Matter::default(),
        Some(matter) => front_matter::read::<Matter>(matter).map_err(|error| {
            (1 + error.line, format!("the front matter is not YAML squad can read: {}", error.message))
        })?,
    };
    let body = text.get(body_at..).unwrap_or_default();
    if body.trim().is_empty() {
        return Err((text.lines().count().max(1), "the role has no text below its front matter".to_owned()));
    }
    Ok(of(matter, body))
}

fn of(matter: Matter, body: &str) -> RoleText {
    let one_line = |text: String| without_hidden(text).split_whitespace().collect::<Vec<_>>().join(" ");
    RoleText {
        name: matter.name.map(one_line).filter(|name| !name.is_empty()),
        description: one_line(matter.description.unwrap_or_default()),
        body: body.trim_matches('\n').to_owned(),
        title: title(body),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_its_front_matter_and_its_text() {
        let text = "\u{feff}---\r\nname: Frontend\r\ndescription: >\r\n  UI and\r\n  UX\r\n---\r\n\r\nYou build.\r\n\r\n---\r\n\r\nMore.\r\n";
        let role = role(text).expect("a role");
        assert_eq!((role.name.as_deref(), role.description.as_str()), (Some("Frontend"), "UI and UX"));
        assert_eq!(role.body, "You build.\n\n---\n\nMore.");
        assert_eq!(super::role("Only text.").expect("a role").name, None);
        assert_eq!(super::role("----\nA rule.").expect("a role").body, "----\nA rule.");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let wrong = |text: &str| role(text).expect_err(text);
        assert_eq!(
            wrong("---js\nmodule.exports = 1\n---\nText"),
            (1, "front matter must be YAML, but this is marked `js`".to_owned())
        );
        let twice = "the front matter is not YAML squad can read: the key `name` appears twice";
        assert_eq!(wrong("---\nname: a\nname: b\n---\nText"), (3, twice.to_owned()));
        assert_eq!(wrong("---\nname: a\nText").0, 1);
        assert_eq!(wrong("---\nname: a\nb: [\n---\nText").0, 3);
        assert_eq!(wrong("---\nname: [1, 2]\n---\nText").0, 2);
        assert_eq!(wrong("---\nname: a\n---\n\n  \n").0, 5);
        assert_eq!(wrong("").0, 1);
        assert_eq!(wrong("# Guard\n<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n"), (2, UNFINISHED.to_owned()));
    }

    #[test]
    fn nothing_hidden_stands_in_a_description() {
        let text = "---\nname: Gu\u{202e}ard\ndescription: \"Reads\u{200b} \\e[31mall\"\n---\nYou guard.\n";
        let role = role(text).expect("a role");
        assert_eq!((role.name.as_deref(), role.description.as_str()), (Some("Guard"), "Reads [31mall"));
    }
}
