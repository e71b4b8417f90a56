//! What a project depends on, by name, from its manifests. A manifest that cannot be read names nothing.

use serde_json::Value;

/// What a dependency says of the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// It has screens.
    Screens,
    /// It serves requests.
    Serves,
    /// It is a program for the command line.
    Tool,
    None,
}

use Sign::{None as Plain, Screens, Serves, Tool};

type Known = (&'static str, &'static str, Sign);

/// Frameworks, by manifest: the dependency's name or its beginning up to a `/`, `.` or `:`.
const FRAMEWORKS: [(&[&str], &[Known]); 11] = [
    (
        &["package.json"],
        &[
            ("react", "React", Screens),
            ("next", "Next.js", Screens),
            ("vue", "Vue", Screens),
            ("svelte", "Svelte", Screens),
            ("@angular/core", "Angular", Screens),
            ("electron", "Electron", Screens),
            ("react-native", "React Native", Screens),
            ("express", "Express", Serves),
            ("fastify", "Fastify", Serves),
            ("@nestjs/core", "NestJS", Serves),
            ("commander", "Commander", Tool),
            ("vite", "Vite", Plain),
            ("jest", "Jest", Plain),
            ("vitest", "Vitest", Plain),
            ("@playwright/test", "Playwright", Plain),
            ("cypress", "Cypress", Plain),
        ],
    ),
    (
        &["Cargo.toml"],
        &[
            ("axum", "Axum", Serves),
            ("actix-web", "Actix", Serves),
            ("tokio", "Tokio", Plain),
            ("clap", "clap", Tool),
            ("bevy", "Bevy", Plain),
            ("sqlx", "SQLx", Plain),
        ],
    ),
    (
        &["pyproject.toml", "requirements.txt"],
        &[
            ("django", "Django", Serves),
            ("flask", "Flask", Serves),
            ("fastapi", "FastAPI", Serves),
            ("click", "Click", Tool),
            ("typer", "Typer", Tool),
            ("pandas", "pandas", Plain),
            ("torch", "PyTorch", Plain),
            ("pytest", "pytest", Plain),
        ],
    ),
    (
        &["go.mod"],
        &[
            ("github.com/gin-gonic/gin", "Gin", Serves),
            ("github.com/labstack/echo", "Echo", Serves),
            ("github.com/spf13/cobra", "Cobra", Tool),
        ],
    ),
    (
        &["pom.xml", "build.gradle", "build.gradle.kts"],
        &[
            ("spring-boot", "Spring Boot", Serves),
            ("org.springframework.boot", "Spring Boot", Serves),
            ("com.android", "Android", Screens),
            ("junit", "JUnit", Plain),
            ("junit-jupiter", "JUnit", Plain),
            ("org.junit.jupiter", "JUnit", Plain),
        ],
    ),
    (&["mix.exs"], &[("phoenix", "Phoenix", Serves), ("ecto_sql", "Ecto", Plain)]),
    (&["Package.swift"], &[("vapor", "Vapor", Serves)]),
    (&["mkdocs.yml"], &[("site_name", "MkDocs", Plain)]),
    (
        &["Gemfile"],
        &[
            ("rails", "Rails", Serves),
            ("sinatra", "Sinatra", Serves),
            ("rspec", "RSpec", Plain),
            ("rspec-rails", "RSpec", Plain),
        ],
    ),
    (
        &["composer.json"],
        &[
            ("laravel/framework", "Laravel", Serves),
            ("symfony/framework-bundle", "Symfony", Serves),
            ("phpunit/phpunit", "PHPUnit", Plain),
        ],
    ),
    (&["pubspec.yaml"], &[("flutter", "Flutter", Screens)]),
];

pub(super) fn is_manifest(name: &str) -> bool {
    name.ends_with(".csproj") || FRAMEWORKS.iter().any(|(files, _)| files.contains(&name))
}

/// The frameworks that a manifest names, and what each says of the project.
pub(super) fn frameworks(name: &str, text: &str) -> Vec<(&'static str, Sign)> {
    if name.ends_with(".csproj") {
        let known = [("Microsoft.NET.Sdk.Web", "ASP.NET Core", Serves), ("<UseMaui>true", ".NET MAUI", Screens)];
        return known
            .into_iter()
            .filter(|(mark, ..)| text.contains(mark))
            .map(|(_, name, sign)| (name, sign))
            .collect();
    }
    let known = FRAMEWORKS.iter().find(|(files, _)| files.contains(&name)).map_or(&[][..], |(_, known)| known);
    let named = names(name, text);
    let is_named = |mark: &str| {
        let rest = |one: &String| {
            one.strip_prefix(mark).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '.', ':']))
        };
        named.iter().any(rest)
    };
    known.iter().filter(|(mark, ..)| is_named(mark)).map(|(_, name, sign)| (*name, *sign)).collect()
}

/// The dependencies that a manifest names, in lower case.
fn names(manifest: &str, text: &str) -> Vec<String> {
    let keys = |value: &Value, tables: &[&str]| -> Vec<String> {
        let tables = tables.iter().filter_map(|table| value[*table].as_object());
        tables.flat_map(|table| table.keys().map(|name| name.to_lowercase())).collect()
    };
    match manifest {
        "package.json" | "composer.json" => {
            let value = serde_json::from_str(text).unwrap_or_default();
            keys(&value, &["dependencies", "devDependencies", "peerDependencies", "require", "require-dev"])
        }
        "Cargo.toml" => {
            let value: Value = toml::from_str(text).unwrap_or_default();
            let mut found = keys(&value, &["dependencies", "dev-dependencies", "build-dependencies"]);
            found.extend(keys(&value["workspace"], &["dependencies"]));
            found
        }
        "pyproject.toml" => {
            let value: Value = toml::from_str(text).unwrap_or_default();
            let lists = [&value["project"]["dependencies"]].into_iter();
            let groups = [&value["project"]["optional-dependencies"], &value["dependency-groups"]];
            let lists = lists.chain(groups.into_iter().filter_map(Value::as_object).flat_map(|groups| groups.values()));
            let listed = lists.filter_map(Value::as_array).flatten().filter_map(Value::as_str);
            let mut found: Vec<String> = listed.map(requirement).collect();
            let poetry = &value["tool"]["poetry"];
            found.extend(keys(poetry, &["dependencies", "dev-dependencies"]));
            let groups = poetry["group"].as_object().into_iter().flat_map(|groups| groups.values());
            found.extend(groups.flat_map(|group| keys(group, &["dependencies"])));
            found
        }
        "requirements.txt" => text.lines().map(requirement).collect(),
        "go.mod" => {
            let lines = text.lines().map(|line| line.trim().trim_start_matches("require ").trim());
            let direct = lines.filter(|line| !line.ends_with("// indirect") && !line.starts_with("module "));
            direct.filter_map(|line| line.split_whitespace().next()).map(str::to_lowercase).collect()
        }
        // A language of its own: every word that is no comment.
        _ => {
            let code = text.lines().filter(|line| !line.trim_start().starts_with(['#', '*']) && !line.contains("<!--"));
            let code = code.map(|line| line.split_once("// ").map_or(line, |(code, _)| code));
            let is_inner = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
            let words = code.flat_map(|line| line.split(move |c: char| !is_inner(c)));
            words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
        }
    }
}

/// The name in `Flask[async]>=3 ; python_version > "3"`.
fn requirement(line: &str) -> String {
    let end = line.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))).unwrap_or(line.len());
    line.get(..end).unwrap_or_default().to_lowercase()
}
