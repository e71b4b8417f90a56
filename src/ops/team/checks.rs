//! The commands that build and check a project: one list, for everything that has to know them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::ci;
use crate::env::files::read_regular;
use crate::model::{IntoMap, IntoSet};
use crate::policy::{CheckKind, kind_of_check};

/// Build and test commands by a file at the root.
const COMMANDS: [(&str, &[&str]); 13] = [
    ("Cargo.toml", &["cargo build", "cargo test"]),
    ("go.mod", &["go build ./...", "go test ./..."]),
    ("gradlew", &["./gradlew build"]),
    ("mvnw", &["./mvnw verify"]),
    ("pom.xml", &["mvn verify"]),
    ("mix.exs", &["mix test"]),
    ("artisan", &["php artisan test"]),
    ("manage.py", &["python manage.py test"]),
    ("Package.swift", &["swift build", "swift test"]),
    ("mkdocs.yml", &["mkdocs build"]),
    ("tox.ini", &["tox"]),
    ("CMakeLists.txt", &["cmake -B build && cmake --build build"]),
    ("meson.build", &["meson setup build", "meson test -C build"]),
];

/// Files at the root whose text decides about commands.
const MANIFESTS: [&str; 15] = [
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
    "deno.json",
    "pubspec.yaml",
    "Gemfile",
    "Rakefile",
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
    pub(super) kind: CheckKind,
    /// The folder it runs in, from the root; `None`: not known.
    pub(super) folder: Option<String>,
    /// It works on something that is not in the repository, and that another command makes.
    pub(super) needs_build: bool,
}

impl Check {
    /// The command for a shell in the root folder.
    pub(super) fn line(&self) -> String {
        match self.folder.as_deref() {
            None | Some("") => self.command.clone(),
            Some(folder) => format!("cd {folder} && {}", self.command),
        }
    }

    pub(super) fn is_at_root(&self) -> bool {
        self.folder.as_deref() == Some("")
    }

    /// Whether it is the project's own test: a script, or a target that a file of the project defines.
    pub(super) fn is_own(&self) -> bool {
        SCRIPTS.contains(&self.source.as_str())
            || (TARGET_FILES.contains(&self.source.as_str()) && self.command.ends_with(" test"))
    }
}

/// Whether a file's text says what checks the project.
pub(super) fn is_read(path: &str) -> bool {
    ci::is_ci(path) || path.ends_with("team.md") || MANIFESTS.contains(&path)
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
    let default_task = texts.get("Rakefile").is_some_and(|text| has_default_test(text));
    let kind_of = |command: &str| match default_task && RAKE.contains(&command) {
        true => Some(CheckKind::Test),
        false => kind_of_check(command),
    };
    let stated = texts.iter().flat_map(|(path, text)| stated(path, text));
    let stated = stated.filter_map(|check| Some(Check { kind: kind_of(&check.command)?, ..check }));
    checks.extend(stated.take(MAX_STATED));
    let at_root: BTreeSet<&str> = paths.iter().filter_map(|path| path.split('/').next()).into_set();
    checks.iter_mut().for_each(|check| check.needs_build = needs_build(&check.command, &at_root));
    checks
}

/// Whether a command works on what is not there before something is built or set up: a folder it is told, its own program,
/// or a file of targets.
fn needs_build(command: &str, at_root: &BTreeSet<&str>) -> bool {
    const FOLDERS: [&str; 4] = ["-C", "--test-dir", "--build", "--directory"];
    let top = |path: &str| path.trim_start_matches("./").split('/').next().unwrap_or_default().to_owned();
    let is_there = |path: &str| path.starts_with('/') || at_root.contains(top(path).as_str());
    let words: Vec<&str> = command.split(' ').collect();
    let program = words.first().copied().unwrap_or_default();
    let folder = words.windows(2).find(|pair| FOLDERS.contains(&pair[0])).map(|pair| pair[1]);
    let of_targets = program == "make" && folder.is_none();
    // `terraform init` makes what the others need.
    let is_set_up = command.starts_with("terraform validate")
        || words.iter().any(|word| matches!(*word, "--no-build" | "--no-restore"));
    is_set_up
        || folder.is_some_and(|folder| !is_there(folder))
        || (program.contains('/') && !is_there(program))
        || (of_targets && !["Makefile", "makefile", "GNUmakefile"].iter().any(|file| at_root.contains(file)))
}

fn of_file(file: &str, command: &str) -> Check {
    let (command, source) = (command.to_owned(), file.to_owned());
    // Whatever else there is of a project builds it.
    let kind = kind_of_check(&command).unwrap_or(CheckKind::Build);
    Check { command, source, kind, is_stated: false, folder: Some(String::new()), needs_build: false }
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
        let named = ["build", "test", "check", "lint"].into_iter().filter(|target| has_target(text(file), target));
        named.for_each(|target| add(file, &format!("{program} {target}")));
    }
    if let Some((file, command)) = python_tests(at_root, texts) {
        add(file, command);
    }
    if at_root.contains("deno.json") {
        // A task has the permissions that the tests need.
        let tasks = serde_json::from_str::<serde_json::Value>(text("deno.json")).unwrap_or_default();
        add("deno.json", if tasks["tasks"]["test"].is_null() { "deno test" } else { "deno task test" });
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
    let mut gems = text("Gemfile").lines().filter(|line| !line.trim_start().starts_with('#'));
    if gems.any(|line| line.contains("rspec")) {
        add("Gemfile", "bundle exec rspec");
    } else if at_root.contains("Gemfile")
        && let Some(task) = test_task(text("Rakefile"))
    {
        add("Rakefile", &format!("bundle exec rake {task}"));
    }
    if let Some(file) = at_root.iter().find(|path| path.ends_with(".sln") || path.ends_with(".csproj")) {
        add(file, "dotnet build");
        add(file, "dotnet test");
    }
    checks
}

/// How the default task of a Rakefile is run.
const RAKE: [&str; 2] = ["rake", "bundle exec rake"];

/// The task of a Rakefile that tests.
fn test_task(rakefile: &str) -> Option<&'static str> {
    let has = |marks: &[&str]| {
        let code = rakefile.lines().filter(|line| !line.trim_start().starts_with('#'));
        code.into_iter().any(|line| marks.iter().any(|mark| line.contains(mark)))
    };
    match () {
        () if has(&["RSpec::Core::RakeTask"]) => Some("spec"),
        () if has(&["Rake::TestTask", "Minitest::TestTask", "task :test", "task test:", "load_tasks"]) => Some("test"),
        () => None,
    }
}

/// Whether the default task of a Rakefile tests.
fn has_default_test(rakefile: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut defaults = rakefile.lines().map(str::trim).filter_map(|line| line.strip_prefix("task "));
    defaults.any(|line| {
        let mut words = line.split(|c: char| !is_word(c)).filter(|word| !word.is_empty());
        words.next() == Some("default") && words.any(|word| ["test", "spec", "check"].contains(&word))
    })
}

/// Whether a Makefile or a justfile has a target.
pub(super) fn has_target(text: &str, target: &str) -> bool {
    let heads = text.lines().filter(|line| !line.starts_with(['\t', ' ', '#', '.']));
    let rules = heads.filter_map(|line| line.split_once(':').filter(|(_, rest)| !rest.starts_with('=')));
    rules.into_iter().any(|(names, _)| names.split_whitespace().any(|name| name.trim_start_matches('@') == target))
}

/// What a team's or CI's file states, checks among it.
fn stated(path: &str, text: &str) -> Vec<Check> {
    let check = |number: usize, command: &str, folder: Option<String>| Check {
        command: command.to_owned(),
        source: format!("{path}:{number}"),
        is_stated: true,
        kind: CheckKind::Build,
        folder,
        needs_build: false,
    };
    match path {
        _ if path.ends_with("team.md") => (1..)
            .zip(text.lines())
            .flat_map(|(number, line)| line.split('`').skip(1).step_by(2).map(move |command| (number, command)))
            .map(|(number, command)| check(number, command, Some(String::new())))
            .collect(),
        _ if ci::is_ci(path) => {
            let commands = ci::commands(text).unwrap_or_default().into_iter();
            commands.map(|found| check(found.line, &found.command, found.folder)).collect()
        }
        _ => Vec::new(),
    }
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
    fn a_rakefile_has_the_tasks_that_it_defines() {
        let (rspec, minitest) = ("RSpec::Core::RakeTask.new(:spec)\n", "Rake::TestTask.new do |t|\nend\n");
        for (rakefile, task, has_default) in [
            (format!("{rspec}task default: :spec\n"), Some("spec"), true),
            (format!("{rspec}task :default => [:spec, :lint]\n"), Some("spec"), true),
            (format!("{minitest}task default: %i[rubocop test]\n"), Some("test"), true),
            (format!("{minitest}task default: :build\n"), Some("test"), false),
            ("# Rake::TestTask\ntask :release\n".to_owned(), None, false),
            (String::new(), None, false),
        ] {
            assert_eq!((test_task(&rakefile), has_default_test(&rakefile)), (task, has_default), "{rakefile}");
            let texts = [("Rakefile", rakefile), (".travis.yml", "script: bundle exec rake\n".to_owned())];
            let texts = texts.map(|(path, text)| (path.to_owned(), text)).into_iter().into_map();
            let found = checks(&BTreeSet::from(["Gemfile", "Rakefile", ".travis.yml"]), &texts);
            let commands: Vec<String> = found.into_iter().map(|check| check.command).collect();
            let of_task = task.map(|task| format!("bundle exec rake {task}"));
            let of_ci = has_default.then(|| "bundle exec rake".to_owned());
            assert_eq!(commands, of_task.into_iter().chain(of_ci).collect::<Vec<_>>());
        }
    }

    #[test]
    fn targets_are_names_of_rules() {
        for (text, has) in [
            ("test:\n", true),
            ("build test: a\n", true),
            ("test::\n", true),
            ("@test arg='x':\n", true),
            ("test := a\n", false),
            ("test:=a\n", false),
            (".PHONY: test\n", false),
            ("a: test\n", false),
            ("a:\n\techo test: b\n", false),
            ("latest:\n", false),
        ] {
            assert_eq!(has_target(text, "test"), has, "{text}");
        }
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
            ("dotnet test", false),
            ("dotnet test --no-build", true),
            ("terraform fmt -check", false),
            ("terraform validate", true),
        ] {
            assert_eq!(needs_build(command, &at_root), expected, "{command}");
        }
        assert!(needs_build("make check", &BTreeSet::from(["Makefile.am", "configure.ac"])));
    }
}
