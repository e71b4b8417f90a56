//! Detects languages, frameworks, commands and conventions of a repository from file names and a few manifests.
//!
//! A cloned repository contains other people's text, so results are only values from the tables here. The exceptions are
//! folder names and one sentence of the README. Nothing becomes a command to run.

use std::collections::{BTreeMap, BTreeSet};

use super::checks;

/// Languages by file extension.
const LANGUAGES: [(&str, &[&str]); 23] = [
    ("Rust", &["rs"]),
    ("Python", &["py"]),
    ("TypeScript", &["ts", "tsx"]),
    ("JavaScript", &["js", "jsx", "mjs", "cjs"]),
    ("Go", &["go"]),
    ("Java", &["java"]),
    ("Kotlin", &["kt", "kts"]),
    ("C#", &["cs"]),
    ("C++", &["cpp", "cc", "cxx", "hpp"]),
    ("C", &["c", "h"]),
    ("Ruby", &["rb"]),
    ("PHP", &["php"]),
    ("Swift", &["swift"]),
    ("Dart", &["dart"]),
    ("Elixir", &["ex", "exs"]),
    ("Scala", &["scala"]),
    ("Haskell", &["hs"]),
    ("Vue", &["vue"]),
    ("Svelte", &["svelte"]),
    ("Shell", &["sh", "bash"]),
    ("Terraform", &["tf"]),
    ("R", &["r", "R"]),
    ("Jupyter", &["ipynb"]),
];

/// Files that list dependencies, with the text by which each framework is recognized.
const FRAMEWORKS: [(&str, &[(&str, &str)]); 14] = [
    (
        "package.json",
        &[
            ("\"react\"", "React"),
            ("\"next\"", "Next.js"),
            ("\"vue\"", "Vue"),
            ("\"svelte\"", "Svelte"),
            ("\"@angular/core\"", "Angular"),
            ("\"express\"", "Express"),
            ("\"@nestjs/core\"", "NestJS"),
            ("\"electron\"", "Electron"),
            ("\"vite\"", "Vite"),
            ("\"jest\"", "Jest"),
            ("\"vitest\"", "Vitest"),
            ("\"@playwright/test\"", "Playwright"),
            ("\"cypress\"", "Cypress"),
        ],
    ),
    (
        "Cargo.toml",
        &[
            ("axum", "Axum"),
            ("actix-web", "Actix"),
            ("tokio", "Tokio"),
            ("clap", "clap"),
            ("bevy", "Bevy"),
            ("sqlx", "SQLx"),
        ],
    ),
    ("pyproject.toml", PYTHON),
    ("requirements.txt", PYTHON),
    ("go.mod", &[("gin-gonic/gin", "Gin"), ("labstack/echo", "Echo"), ("spf13/cobra", "Cobra")]),
    ("pom.xml", &[("spring-boot", "Spring Boot"), ("junit", "JUnit")]),
    ("build.gradle", GRADLE),
    ("build.gradle.kts", GRADLE),
    ("mix.exs", &[(":phoenix", "Phoenix"), (":ecto_sql", "Ecto")]),
    ("Package.swift", &[("vapor", "Vapor")]),
    ("mkdocs.yml", &[("site_name", "MkDocs")]),
    ("Gemfile", &[("rails", "Rails"), ("sinatra", "Sinatra"), ("rspec", "RSpec")]),
    ("composer.json", &[("laravel/framework", "Laravel"), ("symfony/", "Symfony"), ("phpunit", "PHPUnit")]),
    ("pubspec.yaml", &[("flutter:", "Flutter")]),
];

const GRADLE: &[(&str, &str)] =
    &[("springframework", "Spring"), ("com.android", "Android"), ("compose", "Compose"), ("junit", "JUnit")];

const PYTHON: &[(&str, &str)] = &[
    ("django", "Django"),
    ("flask", "Flask"),
    ("fastapi", "FastAPI"),
    ("pandas", "pandas"),
    ("torch", "PyTorch"),
    ("pytest", "pytest"),
];

/// The agents of the built-in team that own folders with these names.
const OWNERS: [(&str, &[&str]); 4] = [
    (
        "Frontend",
        &[
            "frontend",
            "web",
            "ui",
            "client",
            "webapp",
            "components",
            "pages",
            "views",
            "styles",
            "assets",
            "public",
            "static",
        ],
    ),
    ("Tester", &["tests", "test", "spec", "__tests__", "e2e", "cypress", "testdata", "fixtures"]),
    ("Docs", &["docs", "doc", "documentation", "website", "examples", "guides"]),
    (
        "Backend",
        &[
            "server",
            "api",
            "backend",
            "cmd",
            "internal",
            "pkg",
            "crates",
            "lib",
            "services",
            "workers",
            "jobs",
            "db",
            "database",
            "migrations",
            "schema",
            "infra",
            "deploy",
            "terraform",
            "k8s",
            "helm",
            "ci",
            "scripts",
        ],
    ),
];

/// The facts found about a repository.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Survey {
    /// The first sentence of the README.
    pub(super) purpose: Option<String>,
    /// The most used first.
    pub(super) languages: Vec<&'static str>,
    pub(super) frameworks: Vec<&'static str>,
    pub(super) commands: Vec<String>,
    /// Files that define code style.
    pub(super) conventions: Vec<&'static str>,
    pub(super) code_owners: Option<String>,
    /// Folders, each with the agent that owns it.
    pub(super) owners: Vec<(String, &'static str)>,
}

/// Whether the text of this file is worth reading.
pub(super) fn is_informative(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_near_root = folder.matches('/').count() < 1;
    let is_manifest = FRAMEWORKS.iter().any(|(file, _)| *file == name) || name.ends_with(".csproj");
    (folder.is_empty() && (is_readme(name) || checks::TARGET_FILES.contains(&name))) || (is_near_root && is_manifest)
}

fn is_readme(name: &str) -> bool {
    let lower = name.to_lowercase();
    ["readme.md", "readme.rst", "readme.txt", "readme"].contains(&lower.as_str())
}

/// `texts` are those of the informative files.
pub(super) fn survey(paths: &[String], texts: &BTreeMap<String, String>) -> Survey {
    let own: Vec<&str> = paths.iter().map(String::as_str).filter(|path| !is_vendored_or_generated(path)).collect();
    let at_root: BTreeSet<&str> = own.iter().copied().filter(|path| !path.contains('/')).collect();
    Survey {
        purpose: texts.iter().find(|(path, _)| is_readme(path)).and_then(|(_, text)| purpose(text)),
        languages: languages(&own),
        frameworks: frameworks(texts),
        commands: checks::commands(&at_root, texts),
        conventions: conventions(&at_root),
        code_owners: ["CODEOWNERS", ".github/CODEOWNERS", "docs/CODEOWNERS"]
            .into_iter()
            .find(|path| own.contains(path))
            .map(str::to_owned),
        owners: owners(&own),
    }
}

fn is_vendored_or_generated(path: &str) -> bool {
    const FOLDERS: [&str; 8] =
        ["vendor", "node_modules", "third_party", "dist", "target", "build", ".squad", ".ai-team"];
    let mut folders = path.rsplit_once('/').map_or("", |(folder, _)| folder).split('/');
    folders.any(|folder| FOLDERS.contains(&folder))
}

fn languages(paths: &[&str]) -> Vec<&'static str> {
    const MAX_COUNT: usize = 4;
    let mut counts = [0_usize; LANGUAGES.len()];
    for path in paths {
        let Some((_, end)) = path.rsplit_once('.') else { continue };
        if let Some(at) = LANGUAGES.iter().position(|(_, ends)| ends.contains(&end)) {
            counts[at] += 1;
        }
    }
    let all: usize = counts.iter().sum();
    let mut found: Vec<(usize, &str)> = counts
        .into_iter()
        .zip(LANGUAGES.map(|(name, _)| name))
        .filter(|(count, _)| count * 20 >= all && *count > 0)
        .collect();
    found.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    found.into_iter().map(|(_, name)| name).take(MAX_COUNT).collect()
}

fn frameworks(texts: &BTreeMap<String, String>) -> Vec<&'static str> {
    let mut found = Vec::new();
    for (path, text) in texts {
        let name = path.rsplit('/').next().unwrap_or(path);
        let known = FRAMEWORKS.iter().find(|(file, _)| *file == name).map_or(&[][..], |(_, known)| known);
        let lower = text.to_lowercase();
        let is_word = |mark: &str| {
            let is_inner = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
            lower.match_indices(mark).any(|(at, _)| {
                let (before, after) = (&lower[..at], &lower[at + mark.len()..]);
                // In JSON, dependencies are keys.
                let is_key = !mark.ends_with('"') || after.trim_start().starts_with(':');
                !before.ends_with(is_inner) && (mark.ends_with('/') || !after.starts_with(is_inner)) && is_key
            })
        };
        found.extend(known.iter().filter(|(mark, _)| is_word(mark)).map(|(_, name)| *name));
        if name.ends_with(".csproj") {
            found.extend(text.contains("Microsoft.NET.Sdk.Web").then_some("ASP.NET Core"));
            found.extend(text.contains("<UseMaui>true").then_some(".NET MAUI"));
        }
    }
    let mut seen = BTreeSet::new();
    found.retain(|name| seen.insert(*name));
    found
}

fn conventions(at_root: &BTreeSet<&str>) -> Vec<&'static str> {
    const FILES: [&str; 16] = [
        ".editorconfig",
        "rustfmt.toml",
        "clippy.toml",
        ".prettierrc",
        ".eslintrc.json",
        "eslint.config.js",
        "biome.json",
        "ruff.toml",
        ".flake8",
        ".golangci.yml",
        ".rubocop.yml",
        ".clang-format",
        ".pre-commit-config.yaml",
        "CONTRIBUTING.md",
        "AGENTS.md",
        "phpcs.xml",
    ];
    FILES.into_iter().filter(|file| at_root.contains(file)).collect()
}

/// The outermost folder of each path that has a well-known name, down to the second level.
fn owners(paths: &[&str]) -> Vec<(String, &'static str)> {
    const MAX_COUNT: usize = 16;
    let mut found: BTreeMap<String, &'static str> = BTreeMap::new();
    for path in paths {
        let parts: Vec<&str> = path.split('/').collect();
        let folders = &parts[..parts.len() - 1];
        for (depth, folder) in folders.iter().enumerate().take(2) {
            let owner = OWNERS.iter().find(|(_, names)| names.contains(&folder.to_lowercase().as_str()));
            let Some((owner, _)) = owner else { continue };
            let place = folders.get(..=depth).unwrap_or_default().join("/");
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
            if place.chars().all(is_plain) {
                found.insert(place, owner);
            }
            break;
        }
    }
    found.into_iter().take(MAX_COUNT).collect()
}

/// The first sentence of the first paragraph that is plain text.
fn purpose(readme: &str) -> Option<String> {
    const MAX_LENGTH: usize = 240;
    let mut paragraph = String::new();
    let mut is_code = false;
    for line in readme.lines().map(str::trim) {
        is_code ^= line.starts_with("```");
        // An underlined paragraph is a heading.
        if line.len() >= 3 && line.chars().all(|c| "=-~^".contains(c)) {
            paragraph.clear();
            continue;
        }
        let is_prose =
            line.starts_with(char::is_alphanumeric) || line.starts_with(['`', '*', '_']) && !line.starts_with("```");
        if is_code || !is_prose || line.starts_with("* ") {
            if !paragraph.is_empty() {
                break;
            }
            continue;
        }
        paragraph.push_str(line);
        paragraph.push(' ');
    }
    let plain = crate::model::without_hidden(paragraph.replace(['*', '`', '_'], ""));
    let end = plain.find(". ").map_or(plain.trim_end().len(), |at| at + 1);
    let sentence = plain.get(..end)?.trim();
    let is_sentence = sentence.split_whitespace().count() >= 3 && !sentence.contains(['<', '|', '{']);
    (is_sentence && sentence.chars().count() <= MAX_LENGTH).then(|| sentence.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Survey {
        let paths: Vec<String> = files.iter().map(|(path, _)| (*path).to_owned()).collect();
        let texts = files.iter().filter(|(path, _)| is_informative(path));
        survey(&paths, &texts.map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
    }

    /// Files, and the expected languages, frameworks and commands.
    type Case = (&'static [(&'static str, &'static str)], &'static str, &'static str, &'static str);

    #[test]
    fn common_stacks_are_recognized() {
        let cases: [Case; 8] = [
            (
                &[("Cargo.toml", "axum = \"1\"\ntokio-util = \"1\""), ("src/main.rs", "")],
                "Rust",
                "Axum",
                "cargo build, cargo test",
            ),
            (
                &[
                    (
                        "package.json",
                        "{\"scripts\": {\"test\": \"x\", \"build\": \"y\"}, \"dependencies\": {\"react\": \"19\"}}",
                    ),
                    ("pnpm-lock.yaml", ""),
                    ("src/app.tsx", ""),
                    ("node_modules/x/a.js", ""),
                ],
                "TypeScript",
                "React",
                "pnpm run build, pnpm run test",
            ),
            (&[("pyproject.toml", "fastapi\npytest"), ("app/main.py", "")], "Python", "FastAPI, pytest", "pytest"),
            (
                &[("go.mod", "github.com/spf13/cobra v1"), ("cmd/x/main.go", "")],
                "Go",
                "Cobra",
                "go build ./..., go test ./...",
            ),
            (&[("pom.xml", "<artifactId>spring-boot-starter</artifactId>"), ("A.java", "")], "Java", "", "mvn verify"),
            (&[("Gemfile", "gem 'rails'\ngem 'rspec'"), ("a.rb", "")], "Ruby", "Rails, RSpec", "bundle exec rspec"),
            (
                &[("x.sln", ""), ("a/a.csproj", "<Project Sdk=\"Microsoft.NET.Sdk.Web\">"), ("a/p.cs", "")],
                "C#",
                "ASP.NET Core",
                "dotnet build, dotnet test",
            ),
            (&[("Makefile", "test: all\n\tx\n"), ("a.c", "")], "C", "", "make test"),
        ];
        for (files, languages, frameworks, commands) in cases {
            let survey = of(files);
            assert_eq!(
                (survey.languages.join(", "), survey.frameworks.join(", "), survey.commands.join(", ")),
                (languages.into(), frameworks.into(), commands.into())
            );
        }
        assert_eq!(of(&[("empty.txt", "")]), Survey::default());
    }

    #[test]
    fn folders_have_owners_by_their_names() {
        let survey = of(&[
            ("web/src/app.ts", ""),
            ("tests/a.py", ""),
            ("src/api/x.py", ""),
            ("src/pages/y.ts", ""),
            ("do|cs/a", ""),
            ("vendor/api/x", ""),
        ]);
        let owners: Vec<String> = survey.owners.iter().map(|(path, owner)| format!("{path} {owner}")).collect();
        assert_eq!(owners, ["src/api Backend", "src/pages Frontend", "tests Tester", "web Frontend"]);
    }

    #[test]
    fn the_purpose_is_a_sentence_of_the_readme() {
        for (readme, expected) in [
            ("# X\n\n[![b](c)](d)\n\n**X** turns notes into maps. It is fast.\n", Some("X turns notes into maps.")),
            ("# X\n\n```sh\nnpm i\n```\n\nShort one\n", None),
            ("<p>html</p>\n", None),
        ] {
            assert_eq!(purpose(readme).as_deref(), expected);
        }
    }
}
