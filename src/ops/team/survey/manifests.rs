//! Manifests that cannot be read, and why: nothing follows from them.

use serde_json::Value;

use crate::model::first_line;
use crate::ops::team::ci;

/// Why a file cannot be read as what its name says it is.
pub(super) fn damage(path: &str, text: &str) -> Option<String> {
    let name = path.rsplit('/').next()?;
    match name {
        "package.json" | "composer.json" => match serde_json::from_str::<Value>(text) {
            Ok(value) if value.is_object() => None,
            Ok(_) => Some("not an object".to_owned()),
            Err(error) => Some(error.to_string()),
        },
        "Cargo.toml" | "pyproject.toml" => {
            let error = toml::from_str::<toml::Table>(text).err()?;
            let at = error.span().map_or(0, |span| span.start);
            let line = text.get(..at).unwrap_or_default().matches('\n').count() + 1;
            Some(format!("line {line}: {}", first_line(error.message(), 100)))
        }
        "go.mod" => go_module(text),
        _ if name == "pom.xml" || name.ends_with(".csproj") => {
            let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
            let error = roxmltree::Document::parse_with_options(text.trim_start_matches('\u{feff}'), options).err()?;
            Some(format!("line {}: {}", error.pos().row, first_line(&error.to_string(), 100)))
        }
        _ if ci::is_ci(path) => ci::commands(text).err(),
        _ => None,
    }
}

/// Why this is no `go.mod`: see <https://go.dev/ref/mod#go-mod-file-grammar>.
fn go_module(text: &str) -> Option<String> {
    const DIRECTIVES: [&str; 10] =
        ["module", "go", "toolchain", "godebug", "require", "exclude", "replace", "retract", "tool", "ignore"];
    let (mut block, mut has_module) = (None, false);
    for (number, line) in (1..).zip(text.lines()) {
        let code = line.split("//").next().unwrap_or_default().trim();
        let mut words = code.split_whitespace();
        match (words.next(), block) {
            (None, _) => {}
            (Some(")"), Some(_)) => block = None,
            (Some(_), Some(directive)) => has_module |= directive == "module",
            (Some(word), None) => {
                let word = word.trim_end_matches('(');
                let Some(directive) = DIRECTIVES.into_iter().find(|directive| *directive == word) else {
                    return Some(format!("line {number}: unknown directive: {}", first_line(word, 40)));
                };
                match code.ends_with('(') {
                    true => block = Some(directive),
                    false if words.next().is_none() => return Some(format!("line {number}: `{directive}` of nothing")),
                    false => has_module |= directive == "module",
                }
            }
        }
    }
    match block {
        Some(directive) => Some(format!("the block of `{directive}` does not end")),
        None if !has_module => Some("no module is named".to_owned()),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_that_cannot_be_read_are_told_from_others() {
        for (path, text) in [
            ("go.mod", "modul"),
            ("go.mod", "modul a\n"),
            ("go.mod", "module\n"),
            ("go.mod", ""),
            ("go.mod", "go 1.24\n"),
            ("go.mod", "module a\nrequire (\n\tb v1\n"),
            ("pom.xml", "<project><"),
            ("pom.xml", "<project><dependencies></project>"),
            ("pom.xml", ""),
            ("a/b.csproj", "<Project>"),
            ("Cargo.toml", "[package\n"),
            ("pyproject.toml", "a = \n"),
            ("package.json", "{"),
            ("package.json", "[]"),
            ("web/package.json", "{,}"),
            ("composer.json", "7"),
            (".github/workflows/ci.yml", "jobs: [\n"),
            (".gitlab-ci.yml", "a: b: c\n"),
        ] {
            assert!(damage(path, text).is_some_and(|why| !why.is_empty()), "{path}: {text}");
        }
        for (path, text) in [
            ("go.mod", "// a\nmodule example.com/a // b\n\ngo 1.24\nrequire (\n\tb v1 // indirect\n)\nrequire c v2\n"),
            ("go.mod", "module (\n\ta\n)\n"),
            ("pom.xml", "\u{feff}<?xml version=\"1.0\"?>\n<!-- a -->\n<project xmlns=\"http://a\"><b/></project>\n"),
            ("b.csproj", "<Project Sdk=\"Microsoft.NET.Sdk.Web\"></Project>"),
            ("Cargo.toml", ""),
            ("package.json", "{}"),
            (".github/workflows/ci.yml", "on: push\n"),
            (".gitlab-ci.yml", "a:\n  script: !reference [b, c]\n"),
            (".github/dependabot.yml", "a: [\n"),
            ("build.gradle", "}"),
        ] {
            assert_eq!(damage(path, text), None, "{path}: {text}");
        }
    }
}
