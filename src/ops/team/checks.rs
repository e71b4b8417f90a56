//! The commands that build and check a project: one list, for everything that has to know them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::env::files::read_regular;
use crate::policy::looks_like_check;

/// Build and test commands by a file at the root.
const COMMANDS: [(&str, &[&str]); 14] = [
    ("Cargo.toml", &["cargo build", "cargo test"]),
    ("go.mod", &["go build ./...", "go test ./..."]),
    ("gradlew", &["./gradlew build"]),
    ("mvnw", &["./mvnw verify"]),
    ("pom.xml", &["mvn verify"]),
    ("mix.exs", &["mix test"]),
    ("artisan", &["php artisan test"]),
    ("manage.py", &["python manage.py test"]),
    ("Package.swift", &["swift build", "swift test"]),
    ("deno.json", &["deno test"]),
    ("mkdocs.yml", &["mkdocs build --strict"]),
    ("tox.ini", &["tox"]),
    ("CMakeLists.txt", &["cmake -B build && cmake --build build", "ctest --test-dir build"]),
    ("meson.build", &["meson setup build", "meson test -C build"]),
];

/// Files at the root whose text decides about commands.
const MANIFESTS: [&str; 9] = [
    "package.json",
    "Makefile",
    "justfile",
    "Justfile",
    "pyproject.toml",
    "requirements.txt",
    "composer.json",
    "pubspec.yaml",
    "Gemfile",
];
/// Larger files are not read.
const MAX_SIZE: u64 = 256 * 1024;
/// At most this many commands come from the team's and CI's files.
const MAX_STATED: usize = 40;

/// Files whose targets are commands.
pub(super) const TARGET_FILES: [&str; 3] = ["Makefile", "justfile", "Justfile"];
const WORKFLOWS: &str = ".github/workflows/";

/// The commands that check the project in this folder.
pub(crate) fn of_project(root: &Path) -> Vec<String> {
    let names = |folder: &str| -> Vec<String> {
        let files = fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
        files.filter_map(|file| file.file_name().into_string().ok()).collect()
    };
    let at_root = names("");
    let workflows = names(WORKFLOWS).into_iter().map(|name| format!("{WORKFLOWS}{name}"));
    let elsewhere = [".circleci/config.yml", ".squad/team.md", ".ai-team/team.md"].map(str::to_owned);
    let is_read = |path: &&String| is_ci(path) || path.ends_with("team.md") || MANIFESTS.contains(&path.as_str());
    let paths = at_root.iter().cloned().chain(workflows).chain(elsewhere);
    let texts = paths.filter(|path| is_read(&path)).filter_map(|path| Some((read(&root.join(&path))?, path)));
    let texts = texts.map(|(text, path)| (path, text)).collect();
    commands(&at_root.iter().map(String::as_str).collect(), &texts)
}

fn read(path: &Path) -> Option<String> {
    String::from_utf8(read_regular(path, MAX_SIZE)?).ok()
}

/// `texts` are those of files of the project, by their paths.
pub(super) fn commands(at_root: &BTreeSet<&str>, texts: &BTreeMap<String, String>) -> Vec<String> {
    let mut commands: Vec<String> = COMMANDS
        .iter()
        .filter(|(file, _)| at_root.contains(file) && !(*file == "pom.xml" && at_root.contains("mvnw")))
        .flat_map(|(_, commands)| commands.iter().map(|command| (*command).to_owned()))
        .collect();
    if let Some(text) = texts.get("package.json") {
        let manager = [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lockb", "bun"), ("bun.lock", "bun")];
        let manager = manager.into_iter().find(|(lock, _)| at_root.contains(lock)).map_or("npm", |(_, name)| name);
        let scripts = serde_json::from_str::<serde_json::Value>(text).unwrap_or_default();
        let has = |script: &str| scripts["scripts"][script].is_string();
        let named = ["build", "check", "lint", "typecheck", "test"].into_iter().filter(|script| has(script));
        commands.extend(named.map(|script| format!("{manager} run {script}")));
    }
    for (file, program) in TARGET_FILES.into_iter().zip(["make", "just", "just"]) {
        let lines = || texts.get(file).into_iter().flat_map(|text| text.lines());
        let makes = |target: &&str| lines().any(|line| line.starts_with(&format!("{target}:")));
        let named = ["build", "test", "check", "lint"].into_iter().filter(makes);
        commands.extend(named.map(|target| format!("{program} {target}")));
    }
    commands.extend(python_tests(at_root, texts));
    if let Some(text) = texts.get("composer.json").filter(|text| text.contains("phpunit/phpunit")) {
        let has_script = text.contains("\"test\":");
        commands.extend(
            (!at_root.contains("artisan"))
                .then(|| if has_script { "composer test" } else { "vendor/bin/phpunit" }.to_owned()),
        );
    }
    if let Some(text) = texts.get("pubspec.yaml") {
        commands.push(if text.contains("flutter:") { "flutter test" } else { "dart test" }.to_owned());
    }
    if at_root.iter().any(|path| path.ends_with(".tf")) {
        commands.extend(["terraform fmt -check".to_owned(), "terraform validate".to_owned()]);
    }
    if at_root.contains("Gemfile") {
        let has_rspec = texts.get("Gemfile").is_some_and(|text| text.contains("rspec"));
        commands.push(if has_rspec { "bundle exec rspec" } else { "bundle exec rake test" }.to_owned());
    }
    if at_root.iter().any(|path| path.ends_with(".sln") || path.ends_with(".csproj")) {
        commands.extend(["dotnet build".to_owned(), "dotnet test".to_owned()]);
    }
    commands.extend(texts.iter().flat_map(|(path, text)| stated(path, text)).take(MAX_STATED).map(str::to_owned));
    commands
}

/// The checks that a team's or CI's file states.
fn stated<'t>(path: &str, text: &'t str) -> Vec<&'t str> {
    let commands: Vec<&str> = match path {
        _ if path.ends_with("team.md") => text.lines().flat_map(|line| line.split('`').skip(1).step_by(2)).collect(),
        _ if is_ci(path) => text.lines().filter_map(step).collect(),
        _ => Vec::new(),
    };
    commands.into_iter().filter(|command| looks_like_check(command)).collect()
}

/// The command in a line of a CI file, if it is one: `- run: make test`, `- make test`, or a line of a script.
fn step(line: &str) -> Option<&str> {
    let line = line.trim().trim_start_matches("- ").trim();
    let command = line.strip_prefix("run:").map(str::trim);
    let is_key = |line: &str| line.split_once(':').is_some_and(|(key, _)| !key.contains([' ', '/', '=']));
    command.or_else(|| (!is_key(line)).then_some(line)).filter(|command| !command.starts_with(['#', '|', '>']))
}

fn is_ci(path: &str) -> bool {
    const FILES: [&str; 4] = [".gitlab-ci.yml", ".circleci/config.yml", "azure-pipelines.yml", ".travis.yml"];
    FILES.contains(&path) || (path.starts_with(WORKFLOWS) && [".yml", ".yaml"].iter().any(|end| path.ends_with(end)))
}

/// The command for Python tests, run by the tool that the lock file belongs to.
fn python_tests(at_root: &BTreeSet<&str>, texts: &BTreeMap<String, String>) -> Option<String> {
    let says_pytest = |path: &&str| texts.get(*path).is_some_and(|text| text.contains("pytest"));
    let has_pytest = ["pyproject.toml", "requirements.txt"].iter().any(says_pytest) || at_root.contains("pytest.ini");
    let locks = [("uv.lock", "uv run pytest"), ("poetry.lock", "poetry run pytest")];
    let found = locks.into_iter().find(|(lock, _)| at_root.contains(lock)).map_or("pytest", |(_, command)| command);
    has_pytest.then(|| found.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_come_from_manifests_ci_and_the_team() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, text).expect("a file");
        };
        write("package.json", r#"{"scripts": {"test": "x", "typecheck": "y", "start": "z"}}"#);
        write("Makefile", "all:\ncheck: all\n");
        write("justfile", "lint:\n");
        write(".squad/team.md", "- **Build and test:** `bin/verify --all`, after `bin/setup`.\n");
        write(
            ".github/workflows/ci.yml",
            "name: Test\njobs:\n  a:\n    steps:\n      - uses: actions/checkout@v4\n      - name: run tests\n        \
             run: ./ci/test.sh -v\n      - run: |\n          npm ci\n          npm run lint -- --fix\n",
        );
        write(".gitlab-ci.yml", "test:\n  script:\n    - tox -e py312\n");
        let expected = [
            "npm run typecheck",
            "npm run test",
            "make check",
            "just lint",
            "./ci/test.sh -v",
            "npm run lint -- --fix",
            "tox -e py312",
            "bin/verify --all",
        ];
        assert_eq!(of_project(folder.path()), expected);
        assert!(of_project(&folder.path().join("none")).is_empty());
    }
}
