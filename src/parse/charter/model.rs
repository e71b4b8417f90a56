//! Reads model names in charters.

use super::super::words::{is_blank, trim_pictographs, without_struck};
use crate::model::first_line;

/// The content of a Model section.
#[derive(Default)]
pub(super) struct ModelLines {
    pub(super) preferred: Option<String>,
    pub(super) fallback: Vec<String>,
    pub(super) effort: Option<String>,
    /// The problem of a field that names no model.
    pub(super) unclear: Option<String>,
}

const PREFERRED: [&str; 9] =
    ["preferred", "preferred model", "model", "primary", "primary model", "default", "default model", "id", "model id"];
const FALLBACK: [&str; 5] = ["fallback", "fallbacks", "fallback model", "fallback chain", "fallback models"];
const EFFORT: [&str; 5] = ["reasoning effort", "reasoning_effort", "reasoningeffort", "reasoning", "effort"];

impl ModelLines {
    /// Takes the model from a field, or else from the first line that is a model id.
    pub(super) fn read(fields: &[(String, String)], lines: &[&str]) -> Self {
        let value = |names: &[&str]| {
            names.iter().find_map(|name| fields.iter().find(|(key, _)| key == name)).map(|(_, value)| value.as_str())
        };
        let stated = value(&PREFERRED);
        let plain = || lines.iter().filter(|line| !line.contains(": ")).find_map(|line| plain_name(line));
        let preferred = stated.map_or_else(plain, model_name);
        Self {
            unclear: if preferred.is_some() { None } else { unclear(stated) },
            preferred,
            fallback: value(&FALLBACK).map(chain).unwrap_or_default(),
            effort: value(&EFFORT).and_then(effort),
        }
    }
}

/// The problem of a field that neither names a model nor leaves the choice open.
fn unclear(stated: Option<&str>) -> Option<String> {
    let value = stated?;
    let is_nothing = is_blank(value) || is_choice(value.trim().trim_start_matches(MARKUP));
    (!is_nothing).then(|| format!("`{}` names no model", first_line(value, 60)))
}

/// The id for a model's display name, such as `Claude Opus 4.5`. `None`: the name is an id, or unknown.
pub(super) fn id_for(model: &str) -> Option<String> {
    let has_digit = model.contains(|c: char| c.is_ascii_digit());
    let known = ["sonnet", "opus", "haiku", "claude", "gemini", "gpt"];
    let lower = model.to_lowercase();
    if model.contains(' ') && has_digit {
        return Some(lower.replace(' ', "-"));
    }
    let id = match lower.as_str() {
        "sonnet" | "claude" => "claude-sonnet-4.5",
        "opus" => "claude-opus-4.5",
        "haiku" => "claude-haiku-4.5",
        "gemini" => "gemini-3-pro",
        _ => "gpt-5",
    };
    known.contains(&lower.as_str()).then(|| id.to_owned())
}

/// The model in a value, without backticks and remarks. `None` for `auto` and similar words.
pub(in super::super) fn model_name(value: &str) -> Option<String> {
    let kept = without_struck(value);
    let trimmed = trim_pictographs(&kept).trim_start_matches(MARKUP);
    // The name ends at the first remark.
    let end = REMARKS.iter().filter_map(|mark| trimmed.find(mark)).min().unwrap_or(trimmed.len());
    let name = trimmed[..end].trim().trim_end_matches(MARKUP).trim_end_matches(['.', ',', ';']).trim();
    if is_blank(name) || is_choice(name) {
        return None;
    }
    let words: Vec<&str> = name.split_whitespace().collect();
    let first = words.first().copied().unwrap_or_default();
    let has_digit = |text: &str| text.contains(|c: char| c.is_ascii_digit());
    if words.len() == 1 {
        return Some(name.to_owned());
    }
    let is_display = first.starts_with(|c: char| c.is_ascii_uppercase());
    let is_id = |word: &&str| has_digit(word) && word.contains(['-', '/', ':']) && !word.contains(char::is_uppercase);
    // `Use `claude-opus-5`. It is …`: an id in prose.
    let bare = words.iter().map(|word| word.trim_matches(|c| MARKUP.contains(&c) || ".,;:!".contains(c)));
    if let Some(id) = bare.into_iter().find(is_id) {
        return Some(id.to_owned());
    }
    let versioned = words.iter().take(5).position(|word| has_digit(word))?;
    let known =
        words[..=versioned].iter().all(|word| word.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)));
    // `GPT-5.6 Sol`: a display name may go on after its version.
    let goes_on = is_display && !words[versioned].ends_with('.');
    let is_part = |word: &&&str| goes_on && is_capitalized(word);
    let end = versioned + 1 + words.iter().skip(versioned + 1).take_while(is_part).count();
    known.then(|| words[..end].join(" ").trim_end_matches('.').to_owned())
}

/// Whether a word is a part of a name: letters and digits, the first of them a capital or a digit.
fn is_capitalized(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_uppercase() || c.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

const MARKUP: &[char] = &['`', '"', '\'', '*', '_', '“', '”', ' '];

/// Beginnings of a remark after a name.
const REMARKS: [&str; 14] =
    [" (", " — ", " – ", " - ", " ΓÇö ", " -- ", " # ", ", ", "; ", " / ", " | ", " → ", " -> ", " or "];

/// Whether a value leaves the choice to squad.
fn is_choice(name: &str) -> bool {
    let lower = name.to_lowercase();
    let first = lower.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let whole =
        ["premium", "standard", "fast", "cheap", "lightweight", "n/a", "tbd", "none", "null", "any", "coordinator"];
    whole.contains(&lower.as_str())
        || matches!(first, "auto" | "automatic" | "default" | "inherit" | "inherits" | "inherited" | "unspecified")
        || lower.contains('{')
}

/// The model of a line that contains only its id and perhaps a remark.
fn plain_name(line: &str) -> Option<String> {
    let name = model_name(line)?;
    let is_id = name.contains(|c: char| c.is_ascii_digit()) && name.contains(|c: char| c.is_ascii_alphabetic());
    let line = line.trim().trim_start_matches("Use ").trim_start_matches(MARKUP);
    let rest = line.strip_prefix(&name)?.trim_start_matches(['`', '*', '"']);
    let ends = rest.trim_matches(['.', ' ']).is_empty() || REMARKS.iter().any(|mark| rest.starts_with(mark));
    (is_id && ends && name.len() >= 3).then_some(name)
}

/// `a → b → c`, or `a, b`. Sentences give nothing.
fn chain(value: &str) -> Vec<String> {
    value
        .replace("->", "→")
        .split(['→', ',', '>', ';'])
        .filter_map(model_name)
        .filter(|name| name.contains(|c: char| c.is_ascii_digit()))
        .collect()
}

fn effort(value: &str) -> Option<String> {
    let word: String =
        value.trim().trim_start_matches(MARKUP).chars().take_while(|c| c.is_ascii_alphabetic()).collect();
    let word = word.to_lowercase();
    ["none", "minimal", "low", "medium", "high", "xhigh", "max"].contains(&word.as_str()).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_cleaned_of_markup_and_remarks() {
        for (value, name) in [
            ("`claude-opus-4.6` (bumped for reviews)", "claude-opus-4.6"),
            ("claude-opus-4.6", "claude-opus-4.6"),
            ("**gpt-5.2-codex** — for code", "gpt-5.2-codex"),
            ("claude-sonnet-4.5 for most work", "claude-sonnet-4.5"),
            ("Claude Opus 4.7", "Claude Opus 4.7"),
            ("Claude Opus 4.7 (premium)", "Claude Opus 4.7"),
            ("GPT-5.6 Sol", "GPT-5.6 Sol"),
            ("**GPT-5.6 Sol** — for code", "GPT-5.6 Sol"),
            ("GPT-5.6 Sol for reviews", "GPT-5.6 Sol"),
            ("GPT-5.6 for reviews", "GPT-5.6"),
            ("GPT-5.6. Reviews only.", "GPT-5.6"),
            ("Claude Opus 4.7 Thinking", "Claude Opus 4.7 Thinking"),
            ("gpt-5.6 Sol", "gpt-5.6"),
            ("gpt-5, then whatever is there", "gpt-5"),
            ("Use `claude-opus-5`.", "claude-opus-5"),
            ("`claude-sonnet-4.6`. I'm the planning brain — keep it", "claude-sonnet-4.6"),
            ("`claude-sonnet-4.6`, `gpt-5`", "claude-sonnet-4.6"),
            ("\"gemini-3-pro\"", "gemini-3-pro"),
            ("vendor/model:7b", "vendor/model:7b"),
            ("sonnet", "sonnet"),
            ("~~gpt-4~~ gpt-5", "gpt-5"),
            ("✅ gpt-5", "gpt-5"),
        ] {
            assert_eq!(model_name(value).as_deref(), Some(name), "{value}");
        }
        for value in [
            "auto",
            "`auto`",
            "Auto (the coordinator decides)",
            "default",
            "—",
            "",
            "{model}",
            "standard",
            "Use the best",
        ] {
            assert_eq!(model_name(value), None, "{value}");
        }
    }

    #[test]
    fn a_section_may_be_a_plain_line() {
        let lines = ModelLines::read(&[], &["claude-haiku-4.5", "Writes little code."]);
        assert_eq!(lines.preferred.as_deref(), Some("claude-haiku-4.5"));
        assert_eq!(ModelLines::read(&[], &["Use `gpt-5`."]).preferred.as_deref(), Some("gpt-5"));
        assert_eq!(ModelLines::read(&[], &["Never use `gpt-5`."]).preferred, None);
        assert_eq!(ModelLines::read(&[], &["Writes code; quality first in 2 of 3 cases."]).preferred, None);
        let fields = [
            ("preferred".to_owned(), "auto".to_owned()),
            ("fallback".to_owned(), "gpt-5.2 → `claude-haiku-4.5`".to_owned()),
            ("reasoning effort".to_owned(), "High".to_owned()),
        ];
        let lines = ModelLines::read(&fields, &["gpt-4"]);
        assert_eq!(lines.preferred, None);
        assert_eq!(lines.fallback, ["gpt-5.2", "claude-haiku-4.5"]);
        assert_eq!(lines.effort.as_deref(), Some("high"));
        let fields = [("fallback".to_owned(), "Standard chain — handled elsewhere".to_owned())];
        assert!(ModelLines::read(&fields, &[]).fallback.is_empty());
    }
}
