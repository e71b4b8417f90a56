//! The commands that build and check a project: one list, for everything that has to know them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::env::files::read_regular;
use crate::model::{IntoMap, IntoSet};
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
    ("mkdocs.yml", &["mkdocs build"]),
    ("tox.ini", &["tox"]),
    ("CMakeLists.txt", &["cmake -B build && cmake --build build"]),
    ("meson.build", &["meson setup build", "meson test -C build"]),
];

/// Files at the root whose text decides about commands.
const MANIFESTS: [&str; 13] = [
    "Cargo.toml",
    "package.json",
    "CMakeLists.txt",
    "requirements-dev.txt",
    "setup.cfg",
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

/// Scripts that test a project.
const SCRIPTS: [&str; 5] = ["scripts/test", "script/test", "bin/test", "scripts/test.sh", "test.sh"];
/// Files whose targets are commands.
const TARGET_FILES: [&str; 3] = ["Makefile", "justfile", "Justfile"];
const WORKFLOWS: &str = ".github/workflows/";

/// A command that builds or checks the project.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Check {
    pub(crate) command: String,
    /// `Cargo.toml`, `.github/workflows/ci.yml:12`.
    pub(crate) source: String,
    /// The team's or CI's file has it word for word; the others follow from the kind of file.
    pub(super) is_stated: bool,
    /// It runs in the root folder.
    pub(super) is_at_root: bool,
    /// It works on something that is not in the repository, and that another command makes.
    pub(super) needs_build: bool,
}

impl Check {
    /// Whether it is the project's own test: a script, or a target that a file of the project defines.
    pub(super) fn is_own(&self) -> bool {
        SCRIPTS.contains(&self.source.as_str())
            || (TARGET_FILES.contains(&self.source.as_str()) && self.command.ends_with(" test"))
    }
}

/// Whether a file's text says what checks the project.
pub(super) fn is_read(path: &str) -> bool {
    is_ci(path) || path.ends_with("team.md") || MANIFESTS.contains(&path)
}

/// The commands that check the project in this folder.
pub(crate) fn of_project(root: &Path) -> Vec<String> {
    let names = |folder: &str| -> Vec<String> {
        let files = fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
        files.filter_map(|file| file.file_name().into_string().ok()).collect()
    };
    let at_root = names("");
    let workflows = names(WORKFLOWS).into_iter().map(|name| format!("{WORKFLOWS}{name}"));
    let elsewhere = [".circleci/config.yml", ".squad/team.md", ".ai-team/team.md"].map(str::to_owned);
    let paths = at_root.iter().cloned().chain(workflows).chain(elsewhere);
    let texts = paths.filter(|path| is_read(path)).filter_map(|path| Some((read(&root.join(&path))?, path)));
    let texts = texts.map(|(text, path)| (path, text)).into_map();
    let scripts = SCRIPTS.iter().filter(|path| root.join(path).is_file()).copied();
    let found = checks(&at_root.iter().map(String::as_str).chain(scripts).collect(), &texts);
    found.into_iter().map(|check| check.command).collect()
}

fn read(path: &Path) -> Option<String> {
    String::from_utf8(read_regular(path, MAX_SIZE)?).ok()
}

/// `paths` are those of the files of the project, at least of those at the root, and `texts` those of some of them.
pub(super) fn checks(paths: &BTreeSet<&str>, texts: &BTreeMap<String, String>) -> Vec<Check> {
    let scripts = SCRIPTS.iter().filter(|path| paths.contains(*path));
    let mut checks: Vec<Check> = scripts.map(|path| of_file(path, &format!("./{path}"))).collect();
    let files: BTreeSet<&str> = paths.iter().copied().filter(|path| !path.contains('/')).into_set();
    checks.extend(of_manifests(&files, texts));
    let stated = texts.iter().flat_map(|(path, text)| stated(path, text));
    checks.extend(stated.take(MAX_STATED));
    let at_root: BTreeSet<&str> = paths.iter().filter_map(|path| path.split('/').next()).into_set();
    checks.iter_mut().for_each(|check| check.needs_build = is_of_built(&check.command, &at_root));
    checks
}

/// Whether a command works on what is not there before something is built: a folder it is told, its own program, or a
/// file of targets.
fn is_of_built(command: &str, at_root: &BTreeSet<&str>) -> bool {
    const FOLDERS: [&str; 4] = ["-C", "--test-dir", "--build", "--directory"];
    let top = |path: &str| path.trim_start_matches("./").split('/').next().unwrap_or_default().to_owned();
    let is_there = |path: &str| path.starts_with('/') || at_root.contains(top(path).as_str());
    let words: Vec<&str> = command.split(' ').collect();
    let program = words.first().copied().unwrap_or_default();
    let folder = words.windows(2).find(|pair| FOLDERS.contains(&pair[0])).map(|pair| pair[1]);
    let of_targets = program == "make" && folder.is_none();
    folder.is_some_and(|folder| !is_there(folder))
        || (program.contains('/') && !is_there(program))
        || (of_targets && !["Makefile", "makefile", "GNUmakefile"].iter().any(|file| at_root.contains(file)))
}

fn of_file(file: &str, command: &str) -> Check {
    let (command, source) = (command.to_owned(), file.to_owned());
    Check { command, source, is_stated: false, is_at_root: true, needs_build: false }
}

fn of_manifests(at_root: &BTreeSet<&str>, texts: &BTreeMap<String, String>) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut add = |file: &str, command: &str| checks.push(of_file(file, command));
    let text = |file: &str| texts.get(file).map(String::as_str).unwrap_or_default();
    for (file, commands) in COMMANDS.iter().filter(|(file, _)| at_root.contains(file)) {
        let is_repeated = *file == "pom.xml" && at_root.contains("mvnw");
        let is_broken =
            *file == "Cargo.toml" && !["[package]", "[workspace]"].iter().any(|mark| text(file).contains(mark));
        commands.iter().filter(|_| !is_repeated && !is_broken).for_each(|command| add(file, command));
    }
    if at_root.contains("CMakeLists.txt")
        && ["enable_testing", "include(CTest)"].iter().any(|mark| text("CMakeLists.txt").contains(mark))
    {
        add("CMakeLists.txt", "ctest --test-dir build");
    }
    if at_root.contains("configure.ac") && at_root.contains("Makefile.am") {
        add("configure.ac", "autoreconf -fi && ./configure && make");
        add("Makefile.am", "make check");
    }
    let manager = [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lockb", "bun"), ("bun.lock", "bun")];
    let manager = manager.into_iter().find(|(lock, _)| at_root.contains(lock)).map_or("npm", |(_, name)| name);
    let scripts = serde_json::from_str::<serde_json::Value>(text("package.json")).unwrap_or_default();
    for script in ["build", "check", "lint", "typecheck", "test"] {
        // npm itself writes a test that only fails.
        if scripts["scripts"][script].as_str().is_some_and(|script| !script.contains("no test specified")) {
            add("package.json", &format!("{manager} run {script}"));
        }
    }
    for (file, program) in TARGET_FILES.into_iter().zip(["make", "just", "just"]) {
        let makes = |target: &&str| text(file).lines().any(|line| line.starts_with(&format!("{target}:")));
        let named = ["build", "test", "check", "lint"].into_iter().filter(makes);
        named.for_each(|target| add(file, &format!("{program} {target}")));
    }
    if let Some((file, command)) = python_tests(at_root, texts) {
        add(file, command);
    }
    if text("composer.json").contains("phpunit/phpunit") && !at_root.contains("artisan") {
        let has_script = text("composer.json").contains("\"test\":");
        add("composer.json", if has_script { "composer test" } else { "vendor/bin/phpunit" });
    }
    if let Some(text) = texts.get("pubspec.yaml") {
        add("pubspec.yaml", if text.contains("flutter:") { "flutter test" } else { "dart test" });
    }
    if let Some(file) = at_root.iter().find(|path| path.ends_with(".tf")) {
        add(file, "terraform fmt -check");
        add(file, "terraform validate");
    }
    if text("Gemfile").contains("rspec") {
        add("Gemfile", "bundle exec rspec");
    } else if at_root.contains("Gemfile") && at_root.contains("Rakefile") {
        add("Rakefile", "bundle exec rake test");
    }
    if let Some(file) = at_root.iter().find(|path| path.ends_with(".sln") || path.ends_with(".csproj")) {
        add(file, "dotnet build");
        add(file, "dotnet test");
    }
    checks
}

/// The checks that a team's or CI's file states.
fn stated(path: &str, text: &str) -> Vec<Check> {
    let check = |number: usize, command: &str, is_at_root: bool| Check {
        command: command.to_owned(),
        source: format!("{path}:{number}"),
        is_stated: true,
        is_at_root,
        needs_build: false,
    };
    let all: Vec<Check> = match path {
        _ if path.ends_with("team.md") => (1..)
            .zip(text.lines())
            .flat_map(|(number, line)| line.split('`').skip(1).step_by(2).map(move |command| (number, command)))
            .map(|(number, command)| check(number, command, true))
            .collect(),
        _ if is_ci(path) => ci_commands(text)
            .into_iter()
            .map(|(number, command, is_at_root)| check(number, command, is_at_root))
            .collect(),
        _ => Vec::new(),
    };
    all.into_iter().filter(|check| looks_like_check(&check.command)).collect()
}

/// The commands of a CI file, each with its line's number, and whether it runs at the root: the values of `run`,
/// `script` and the like. Not a parser of YAML: it reads the ways in which people write these.
fn ci_commands(text: &str) -> Vec<(usize, &str, bool)> {
    const KEYS: [&str; 4] = ["run", "script", "command", "bash"];
    const BLOCKS: [&str; 6] = ["|", "|-", "|+", ">", ">-", ">+"];
    let lines: Vec<&str> = text.lines().collect();
    let indent_of = |line: &str| line.len() - line.trim_start().len();
    let default = lines.iter().position(|line| line.trim() == "defaults:").map(|start| {
        let inner = lines[start + 1..].iter().take_while(|line| indent_of(line) > indent_of(lines[start]));
        inner.into_iter().any(|line| line.contains("working-directory:"))
    });
    let has_default = default.unwrap_or(false);
    let mut found = Vec::new();
    // The indentation of the key that a block belongs to, whether it may hold items only, and whether it is at the root.
    let mut block: Option<(usize, bool, bool)> = None;
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let (indent, trimmed) = (indent_of(line), line.trim());
        if let Some((outer, is_list, is_at_root)) = &mut block {
            let is_item = trimmed.starts_with("- ");
            let is_inside = indent > *outer || (*is_list && is_item && indent == *outer);
            if is_inside && (!*is_list || is_item) {
                let command = if *is_list { unquoted(trimmed.trim_start_matches("- ")) } else { trimmed };
                *is_at_root &= !command.starts_with("cd ") || command.contains("&&");
                found.push((index + 1, command, *is_at_root));
                continue;
            }
            block = None;
        }
        let item = trimmed.trim_start_matches("- ");
        let Some((_, value)) = item.split_once(':').filter(|(key, _)| KEYS.contains(key)) else { continue };
        let key_indent = indent + trimmed.len() - item.len();
        let is_elsewhere = has_default || is_sibling(&lines, index, key_indent, "working-directory:");
        match value.trim() {
            "" => block = Some((key_indent, true, !is_elsewhere)),
            value if BLOCKS.contains(&value) => block = Some((key_indent, false, !is_elsewhere)),
            value => found.push((index + 1, unquoted(value), !is_elsewhere)),
        }
    }
    found.retain(|(_, command, _)| !command.starts_with('#') && !command.ends_with('\\'));
    found
}

/// Whether the mapping with this line has a key at the same indentation.
fn is_sibling(lines: &[&str], index: usize, indent: usize, key: &str) -> bool {
    let place = |line: &str| {
        let item = line.trim_start().trim_start_matches("- ");
        (line.len() - item.len(), line.trim_start().starts_with("- "), item.starts_with(key))
    };
    let is_inside = |line: &&&str| line.trim().is_empty() || place(line).0 >= indent;
    let before = lines[..=index].iter().rev();
    let start = before.clone().position(|line| !is_inside(&line) || (place(line).0 == indent && place(line).1));
    let before = before.take(start.map_or(index + 1, |start| start + 1));
    let after = lines[index + 1..].iter().take_while(is_inside);
    let after = after.take_while(|line| !(place(line).0 == indent && place(line).1));
    before.chain(after).any(|line| place(line).0 == indent && place(line).2)
}

fn unquoted(value: &str) -> &str {
    let value = value.trim();
    let inner = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(value)
}

fn is_ci(path: &str) -> bool {
    const FILES: [&str; 4] = [".gitlab-ci.yml", ".circleci/config.yml", "azure-pipelines.yml", ".travis.yml"];
    FILES.contains(&path) || (path.starts_with(WORKFLOWS) && [".yml", ".yaml"].iter().any(|end| path.ends_with(end)))
}

/// The command for Python tests, run by the tool that the lock file belongs to, and the file that says so.
fn python_tests(at_root: &BTreeSet<&str>, texts: &BTreeMap<String, String>) -> Option<(&'static str, &'static str)> {
    let says_pytest = |path: &&str| texts.get(*path).is_some_and(|text| text.contains("pytest"));
    let file =
        ["pyproject.toml", "requirements.txt", "requirements-dev.txt", "setup.cfg"].into_iter().find(says_pytest);
    let file = file.or_else(|| at_root.contains("pytest.ini").then_some("pytest.ini"))?;
    let locks = [("uv.lock", "uv run pytest"), ("poetry.lock", "poetry run pytest")];
    let found = locks.into_iter().find(|(lock, _)| at_root.contains(lock)).map_or("pytest", |(_, command)| command);
    Some((file, found))
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

    #[test]
    fn what_must_be_built_first_is_known_by_what_is_not_there() {
        let at_root = BTreeSet::from(["Makefile", "src", "gradlew", "ci"]);
        for (command, expected) in [
            ("cargo test", false),
            ("make check", false),
            ("make -C src test", false),
            ("make -C out test", true),
            ("./gradlew build", false),
            ("./ci/test.sh -v", false),
            ("out/tests --all", true),
            ("ctest --test-dir build", true),
            ("meson test -C builddir", true),
            ("/usr/bin/env pytest", false),
        ] {
            assert_eq!(is_of_built(command, &at_root), expected, "{command}");
        }
        assert!(is_of_built("make check", &BTreeSet::from(["Makefile.am", "configure.ac"])));
    }
}
