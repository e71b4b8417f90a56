//! A decision as a file of its own, for people to read, edit and review.

use serde_json::Value;

use crate::model::{Decision, Slug};

/// `.squad/decisions/<yyyy>/<mm>/<dd>-<slug>-<id>.md`, from the project's root. `None` for a decision without a date:
/// squad gives every one it makes a date.
pub(crate) fn decision_path(folder: &str, decision: &Decision) -> Option<String> {
    let date = decision.date.as_deref()?.get(..10)?;
    let (year, rest) = date.split_once('-')?;
    let (month, day) = rest.split_once('-')?;
    let slug = Slug::fold(&decision.title).map_or_else(|| "decision".to_owned(), |slug| short(slug.as_str()));
    Some(format!("{folder}/decisions/{year}/{month}/{day}-{slug}-{}.md", decision.id))
}

/// At a word's end, so that paths stay readable and far below what Windows can hold.
fn short(slug: &str) -> String {
    const LONGEST: usize = 48;
    if slug.len() <= LONGEST {
        return slug.to_owned();
    }
    let cut = &slug[..LONGEST];
    cut.rsplit_once('-').map_or(cut, |(words, _)| words).to_owned()
}

/// `parse::decision_file` reads this back.
pub(crate) fn render_decision(decision: &Decision) -> String {
    let mut file = String::from("---\n");
    let mut line = |key: &str, value: Option<&str>| {
        if let Some(value) = value {
            // A JSON text is a YAML text, whatever is in it.
            file.push_str(&format!("{key}: {}\n", Value::from(value)));
        }
    };
    line("id", Some(decision.id.as_str()));
    line("date", decision.date.as_deref());
    line("by", decision.by.as_deref());
    line("run", decision.run.as_ref().map(|run| run.as_str()));
    line("supersedes", decision.supersedes.as_ref().map(|id| id.as_str()));
    for (key, list) in [("scope", &decision.scope), ("tags", &decision.tags)] {
        if !list.is_empty() {
            file.push_str(&format!("{key}: {}\n", Value::from(list.clone())));
        }
    }
    file.push_str("---\n");
    let title = decision.title.split_whitespace().collect::<Vec<_>>().join(" ");
    file.push_str(&format!("# {title}\n"));
    let text = decision.text.trim();
    if !text.is_empty() {
        file.push_str(&format!("\n{text}\n"));
    }
    file
}
