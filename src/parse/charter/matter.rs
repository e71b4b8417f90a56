//! The front matter of charters and role files: YAML, or TOML between `+++` lines.

use super::super::Files;
use super::super::front_matter;
use super::super::words::comma_list;
use super::model_name;
use crate::model::{Charter, Problem};

#[derive(Default, serde::Deserialize)]
pub(super) struct Matter {
    name: Option<String>,
    description: Option<String>,
    model: Option<Several>,
    tools: Option<Several>,
    tier: Option<String>,
    engine: Option<String>,
}

/// A list, or one text with commas.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Several {
    List(Vec<String>),
    Text(String),
}

impl Several {
    /// An empty text means unset; an empty list means none.
    fn list(self) -> Option<Vec<String>> {
        match self {
            Self::List(list) => Some(list),
            Self::Text(text) if text.trim().trim_matches(['\'', '"']) == "*" => Some(vec!["*".to_owned()]),
            Self::Text(text) => Some(comma_list(&text)).filter(|list| !list.is_empty()),
        }
    }

    fn first(self) -> Option<String> {
        match self {
            Self::List(list) => list.into_iter().next(),
            Self::Text(text) => Some(text),
        }
    }
}

impl Matter {
    pub(super) fn fill(self, charter: &mut Charter) {
        charter.name = charter.name.take().or(self.name);
        charter.role = charter.role.take().or(self.description);
        charter.model =
            charter.model.take().or_else(|| self.model.and_then(Several::first).and_then(|text| model_name(&text)));
        charter.tier = charter.tier.or(self.tier.as_deref().and_then(super::tier_name));
        charter.engine = charter.engine.take().or(self.engine.as_deref().and_then(super::engine_name));
        charter.tools = charter.tools.take().or(self.tools.and_then(Several::list));
    }

    /// Reads invalid front matter line by line: only plain `key: value`.
    fn of_lines<'t>(lines: impl Iterator<Item = &'t str>) -> Self {
        let mut matter = Self::default();
        for (key, value) in lines.filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            if value.is_empty() || value.starts_with(['[', '{', '!', '&', '*', '|', '>']) {
                continue;
            }
            let value = value.trim_matches(['"', '\'']).to_owned();
            match key {
                "name" => matter.name = Some(value),
                "description" => matter.description = Some(value),
                "model" => matter.model = Some(Several::Text(value)),
                "tools" => matter.tools = Some(Several::Text(value)),
                "tier" => matter.tier = Some(value),
                "engine" => matter.engine = Some(value),
                _ => {}
            }
        }
        matter
    }
}

/// The front matter, if any, and the offset of the text after it. Invalid YAML is reported, and its plain lines are
/// used. Needs LF line ends.
pub(super) fn read(files: &Files, path: &str, text: &str, problems: &mut Vec<Problem>) -> (Option<Matter>, usize) {
    if let Some((matter, body_at)) = toml_in(text) {
        return match toml::from_str(matter) {
            Ok(matter) => (Some(matter), body_at),
            Err(error) => {
                let line = 2 + error.span().map_or(0, |span| lines_before(matter, span.start));
                let message = format!("the front matter is not TOML squad can read: {}", error.message());
                let source = files.at(path, line.min(text.lines().count().max(1)));
                problems.push(Problem::warning(source, "front-matter", message).hint("the rest of the file is used"));
                (None, body_at)
            }
        };
    }
    match front_matter::split(text) {
        (Some(matter), body_at) => match front_matter::read(matter) {
            Ok(matter) => (Some(matter), body_at),
            Err(error) => {
                let hint = "put values with a colon in quotes; until then only its plain lines are used";
                problems.push(error.problem(files, path).hint(hint));
                (Some(Matter::of_lines(matter.lines())), body_at)
            }
        },
        (None, body_at) => {
            let lines: Vec<&str> = text.strip_prefix("---\n").into_iter().flat_map(str::lines).collect();
            let is_field = |line: &&&str| line.split_once(':').is_some_and(|(key, _)| is_key(key));
            let fields = lines.iter().take_while(is_field);
            let count = fields.clone().count();
            if count == 0 {
                return (None, body_at);
            }
            let message = "the front matter that begins here has no end";
            let problem = Problem::warning(files.at(path, 1), "front-matter", message);
            problems.push(problem.hint("add a line `---` after its last field"));
            (Some(Matter::of_lines(fields.copied())), body_at)
        }
    }
}

/// The number of line ends before a byte.
fn lines_before(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

/// `name`, `allowed-tools`
fn is_key(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

/// Front matter between `+++` lines.
fn toml_in(text: &str) -> Option<(&str, usize)> {
    let rest = text.strip_prefix("+++\n")?;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "+++" {
            return Some((&rest[..at], 4 + at + line.len()));
        }
        at += line.len();
    }
    None
}
