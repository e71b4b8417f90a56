//! Which of the commands that check a project are worth telling: those that exist, CI's before those that follow from a
//! manifest; and which of them squad can run itself.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Fact;
use crate::model::{IntoSet, Sort};
use crate::ops::team::checks::{self, Check};
use crate::policy::{CheckKind, CheckResult, Redactor, check_in, commands_of, kind_of_check};

/// The files of a project, and the texts of some.
#[derive(Clone, Copy)]
pub(super) struct Files<'f> {
    paths: &'f BTreeSet<&'f str>,
    texts: &'f BTreeMap<String, String>,
}

impl<'f> Files<'f> {
    pub(super) fn new(paths: &'f BTreeSet<&'f str>, texts: &'f BTreeMap<String, String>) -> Self {
        Self { paths, texts }
    }
}

/// The commands for a prompt: the project's own test, and those of CI, which are the truth, else those that follow from
/// the manifests.
pub(super) fn worth_telling(files: Files<'_>, languages: &[(&str, u64)]) -> Vec<Check> {
    const MAX_COUNT: usize = 5;
    const MAX_LENGTH: usize = 80;
    const ELSEWHERE: [&str; 12] = [
        "release", "publish", "deploy", "docs", "pages", "label", "stale", "nightly", "bench", "codeql", "triage",
        "bump",
    ];
    const OTHERS: [&str; 12] = [
        "docker",
        "docker-compose",
        "podman",
        "kubectl",
        "twine",
        "gh",
        "helm",
        "aws",
        "gcloud",
        "curl",
        "codecov",
        "sudo",
    ];
    let redactor = Redactor::default();
    let is_plain = |check: &Check| {
        let is_known = |c: char| c.is_ascii_alphanumeric() || " -_./:=,+@*'\"[]%&~".contains(c);
        let program = check.command.split(' ').next().unwrap_or_default();
        check.folder.is_some()
            && check.line().len() <= MAX_LENGTH
            && check.command.chars().all(is_known)
            && !OTHERS.contains(&program)
            && !ELSEWHERE.iter().any(|word| check.source.contains(word))
            && redactor.kinds(&check.command).is_empty()
    };
    let is_test = |check: &Check| check.kind <= CheckKind::Whole;
    // A package.json or a Makefile beside a project in another language says little of it.
    let is_scripted = languages.iter().any(|(name, _)| SCRIPTED.contains(name));
    let all = checks::checks(files.paths, files.texts);
    let (own, all): (Vec<Check>, Vec<Check>) = all.into_iter().partition(Check::is_own);
    let (mut told, manifests): (Vec<Check>, Vec<Check>) = all.into_iter().partition(|check| check.is_stated);
    told.retain(|check| is_plain(check) && exists(check, files));
    let mut told: Vec<Check> = own.into_iter().chain(told).collect();
    if !told.iter().any(is_test) {
        // What CI says with other options is the same check.
        let is_told = |check: &Check| told.iter().any(|told| told.command.starts_with(&check.command));
        let suits = |check: &Check| (is_scripted || check.source != "package.json") && !is_told(check);
        told.extend(manifests.into_iter().filter(suits).collect::<Vec<_>>());
    }
    let mut seen = BTreeSet::new();
    told.retain(|check| seen.insert(check.line()));
    if told.len() > MAX_COUNT {
        told.stable_sort_by_key(|check| !is_test(check));
        told.truncate(MAX_COUNT);
    }
    told
}

const SCRIPTED: [&str; 4] = ["TypeScript", "JavaScript", "Vue", "Svelte"];

/// The command that squad runs itself: the project's own test, else that of CI, else that of a manifest. Where one of
/// these has several, or one for a part of the project, nobody knows which is meant.
pub(super) fn check(told: &[Check], languages: &[(&str, u64)]) -> Option<Fact> {
    let suiting: Vec<&Check> = told.iter().filter(|check| is_of_main_language(&check.command, languages)).collect();
    let rank = |check: &Check| (!check.is_own(), !check.is_stated);
    let tests = suiting.iter().filter(|check| check.kind <= CheckKind::Whole);
    let first = tests.map(|check| rank(check)).min();
    let meant = suiting.into_iter().filter(|check| first.is_none_or(|first| rank(check) == first));
    only_check(meant.map(|check| {
        let fact = Fact { value: check.line(), source: check.source.clone() };
        (fact, check.is_at_root() && !check.needs_build)
    }))
}

/// Of some commands, each with whether it can run as it is, the only one that tests, else the only one that checks or
/// builds. It has to be one without a shell.
pub(in crate::ops::team) fn only_check(commands: impl Iterator<Item = (Fact, bool)>) -> Option<Fact> {
    let is_plain = |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:+@".contains(c));
    let kinds = commands.filter_map(|(fact, can_run)| Some((kind_of_check(&fact.value)?, fact, can_run)));
    let kinds: Vec<(CheckKind, Fact, bool)> = kinds.filter(|(kind, ..)| *kind != CheckKind::Lint).collect();
    let strongest = kinds.iter().map(|(kind, ..)| *kind).min()?;
    let mut of_kind = kinds.into_iter().filter(|(kind, ..)| *kind == strongest);
    match (of_kind.next(), of_kind.next()) {
        (Some((_, fact, true)), None) => Some(fact).filter(|fact| {
            fact.value.split(' ').all(is_plain) && check_in(&fact.value, &[]) == Some(CheckResult::OfLine)
        }),
        _ => None,
    }
}

/// Whether a command checks what at least half of the project is written in. Most programs do not say.
fn is_of_main_language(command: &str, languages: &[(&str, u64)]) -> bool {
    const PROGRAMS: [(&str, &[&str]); 4] = [
        ("npm yarn pnpm bun npx jest vitest", &["TypeScript", "JavaScript", "Vue", "Svelte", "HTML", "CSS"]),
        ("cargo", &["Rust"]),
        ("go", &["Go"]),
        ("pytest tox nox unittest", &["Python", "Jupyter"]),
    ];
    let commands = commands_of(command);
    let program = commands.first().and_then(|words| words.first()).map(String::as_str).unwrap_or_default();
    let Some((_, own)) = PROGRAMS.iter().find(|(names, _)| names.split(' ').any(|name| name == program)) else {
        return true;
    };
    let all: u64 = languages.iter().map(|(_, share)| share).sum();
    let shares = languages.iter().filter(|(name, _)| own.contains(name)).map(|(_, share)| share);
    shares.sum::<u64>() * 2 >= all
}

/// Files that a program works with: one of them is in its folder or above.
const WORKED_WITH: [(&str, &[&str]); 22] = [
    ("cargo", &["Cargo.toml"]),
    ("go", &["go.mod", "go.work"]),
    ("mvn", &["pom.xml"]),
    ("gradle", &["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"]),
    ("composer", &["composer.json"]),
    ("mix", &["mix.exs"]),
    ("rake", &["Rakefile"]),
    ("tox", &["tox.ini", "tox.toml", "setup.cfg", "pyproject.toml"]),
    ("nox", &["noxfile.py"]),
    ("sbt", &["build.sbt"]),
    ("swift", &["Package.swift"]),
    ("flutter", &["pubspec.yaml"]),
    ("dart", &["pubspec.yaml"]),
    ("cmake", &["CMakeLists.txt"]),
    ("ctest", &["CMakeLists.txt"]),
    ("meson", &["meson.build"]),
    ("zig", &["build.zig"]),
    ("stack", &["stack.yaml"]),
    ("lein", &["project.clj"]),
    ("task", &["Taskfile.yml", "Taskfile.yaml"]),
    ("pre-commit", &[".pre-commit-config.yaml"]),
    ("npx", &["package.json"]),
];

/// Whether what a command of CI names is in the repository: its folder, script, target and manifest.
fn exists(check: &Check, files: Files<'_>) -> bool {
    let Some(folder) = &check.folder else { return false };
    let is_folder = folder.is_empty() || files.has_below(folder, &[""]);
    is_folder && commands_of(&check.command).iter().all(|words| works(words, folder, files))
}

fn works(words: &[String], folder: &str, files: Files<'_>) -> bool {
    /// Options with another place to work in.
    const PLACES: [&str; 9] =
        ["-C", "--directory", "--prefix", "--manifest-path", "-f", "--file", "--makefile", "--cwd", "--project"];
    let Some(program) = words.first() else { return true };
    let is_place = |word: &str| PLACES.contains(&word.split('=').next().unwrap_or(word));
    let (program, rest) = (program.as_str(), &words[1..]);
    if program.contains('/') || [".py", ".sh", ".js", ".rb", ".pl"].iter().any(|end| program.ends_with(end)) {
        let program = program.trim_start_matches("./");
        let is_installed = ["node_modules/", "vendor/bin/", ".venv/", "venv/"].iter().any(|at| program.starts_with(at));
        return is_installed || program.starts_with('/') || files.has(folder, program);
    }
    if let Some(at) = rest.iter().position(|word| is_place(word)) {
        let place = match rest[at].split_once('=') {
            Some((_, place)) => place,
            None => rest.get(at + 1).map(String::as_str).unwrap_or_default(),
        };
        let place = place.trim_start_matches("./").trim_end_matches('/');
        // A folder that is built is not there yet.
        return place.is_empty() || files.has(folder, place) || files.has_below(&join(folder, place), &[""]);
    }
    let targets = || rest.iter().map(String::as_str).filter(|word| !word.starts_with('-') && !word.contains('='));
    match program {
        "make" => files.makes(folder, &["Makefile", "makefile", "GNUmakefile"], targets()).unwrap_or_else(|| {
            let made = ["Makefile.am", "Makefile.in", "Makefile.PL", "configure.ac", "configure", "CMakeLists.txt"];
            made.iter().any(|file| files.has(folder, file))
        }),
        "just" => files.makes(folder, &["justfile", "Justfile", ".justfile"], targets()).unwrap_or(false),
        "npm" | "yarn" | "pnpm" | "bun" => files.has_script(folder, program, rest),
        "terraform" => files.has_below(folder, &[".tf"]),
        "dotnet" => files.has_below(folder, &[".sln", ".slnx", ".csproj", ".fsproj", ".vbproj"]),
        _ => WORKED_WITH
            .iter()
            .find(|(name, _)| *name == program)
            .is_none_or(|(_, manifests)| manifests.iter().any(|manifest| files.has_above(folder, manifest))),
    }
}

fn join(folder: &str, path: &str) -> String {
    if folder.is_empty() { path.to_owned() } else { format!("{folder}/{path}") }
}

impl Files<'_> {
    fn has(self, folder: &str, path: &str) -> bool {
        self.paths.contains(join(folder, path).as_str())
    }

    /// Whether a file with one of these ends is in a folder or deeper.
    fn has_below(self, folder: &str, ends: &[&str]) -> bool {
        let start = join(folder, "");
        let start = if folder.is_empty() { "" } else { start.as_str() };
        let from_start = self.paths.range(start..).take_while(|path| path.starts_with(start));
        from_start.into_iter().any(|path| ends.iter().any(|end| path.ends_with(end)))
    }

    /// Whether a folder or one above has this file.
    fn has_above(self, folder: &str, name: &str) -> bool {
        let mut folder = folder;
        loop {
            if self.has(folder, name) {
                return true;
            }
            if folder.is_empty() {
                return false;
            }
            folder = folder.rsplit_once('/').map_or("", |(outer, _)| outer);
        }
    }

    /// Whether the file of targets there has these targets. `None`: there is no such file.
    fn makes<'t>(self, folder: &str, names: &[&str], mut targets: impl Iterator<Item = &'t str>) -> Option<bool> {
        let file = names.iter().find(|name| self.has(folder, name))?;
        // Of another file's targets, and those that make up their names, nothing is known.
        let Some(text) = self.texts.get(&join(folder, file)) else { return Some(true) };
        let is_open = text.lines().any(|line| {
            ["include ", "-include ", "import ", "mod ", "$("].iter().any(|start| line.starts_with(start))
                || (line.starts_with('%') && line.contains(':'))
        });
        Some(is_open || targets.all(|target| checks::has_target(text, target)))
    }

    /// Whether `npm run SCRIPT` and the like finds a script.
    fn has_script(self, folder: &str, manager: &str, words: &[String]) -> bool {
        if !self.has_above(folder, "package.json") {
            return false;
        }
        let Some(text) = self.texts.get(&join(folder, "package.json")) else { return true };
        let manifest: Value = serde_json::from_str(text).unwrap_or_default();
        let is_of_parts = words.iter().any(|word| {
            ["-r", "-w", "-ws", "-F"].contains(&word.as_str())
                || ["--workspace", "--filter", "--recursive"].iter().any(|start| word.starts_with(start))
        });
        let between: BTreeSet<&str> = ["run", "run-script"].into_iter().into_set();
        let script = words.iter().map(String::as_str).find(|word| !word.starts_with('-') && !between.contains(word));
        let script = match script {
            Some("t" | "tst") if manager == "npm" => "test",
            Some("workspace" | "workspaces" | "exec" | "x" | "dlx") => return true,
            Some(script) => script,
            None => return false,
        };
        // All but npm run programs of what the project depends on too. Bun has a test of its own.
        let is_dependency = |table: &str| !manifest[table][script].is_null();
        is_of_parts
            || manifest["scripts"][script].as_str().is_some_and(|script| !script.contains("no test specified"))
            || (manager != "npm" && (is_dependency("devDependencies") || is_dependency("dependencies")))
            || (manager == "bun" && script == "test")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::IntoMap;

    fn told(files: &[(&str, &str)], command: &str, folder: &str) -> bool {
        let paths: BTreeSet<&str> = files.iter().map(|(path, _)| *path).collect();
        let texts = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).into_map();
        let words = commands_of(command);
        !words.is_empty() && words.iter().all(|words| works(words, folder, Files::new(&paths, &texts)))
    }

    /// Each command with the file that it needs, and without.
    #[test]
    fn only_what_the_repository_has_exists() {
        for (command, path, text, other) in [
            ("make test", "Makefile", "test:\n", "check:\n"),
            ("make -j4 test", "Makefile", "build test: a\n", "test := a\n"),
            ("just test", "justfile", "test:\n", "lint:\n"),
            ("npm test", "package.json", "{\"scripts\": {\"test\": \"x\"}}", "{\"scripts\": {}}"),
            ("npm run test:unit", "package.json", "{\"scripts\": {\"test:unit\": \"x\"}}", "{}"),
            ("yarn jest", "package.json", "{\"devDependencies\": {\"jest\": \"1\"}}", "{\"jest\": {}}"),
        ] {
            assert!(told(&[(path, text)], command, ""), "{command}: {text}");
            assert!(!told(&[(path, other)], command, ""), "{command}: {other}");
            assert!(!told(&[], command, ""), "{command}");
        }
        for (command, path) in [
            ("cargo test", "Cargo.toml"),
            ("go test ./...", "go.mod"),
            ("./scripts/test.sh", "scripts/test.sh"),
            ("bash scripts/test.sh", "scripts/test.sh"),
            ("python tests/runtests.py", "tests/runtests.py"),
            ("python -m tox", "tox.ini"),
            ("bundle exec rake test", "Rakefile"),
            ("make check", "configure.ac"),
            ("make -C src test", "src/Makefile"),
            ("npm --prefix web test", "web/package.json"),
            ("cargo test --manifest-path a/Cargo.toml", "a/Cargo.toml"),
            ("terraform validate", "env/main.tf"),
            ("dotnet test", "src/A/A.csproj"),
        ] {
            assert!(told(&[(path, "")], command, ""), "{command}");
            assert!(!told(&[("README.md", "")], command, ""), "{command}");
        }
        assert!(told(&[("Cargo.toml", "")], "cargo test", "crates/a") && told(&[], "pytest -q", ""));
        assert!(!told(&[("Makefile", "test:\n")], "make test", "web"));
        assert!(told(&[("Makefile", "include a.mk\n")], "make test", ""));
    }

    #[test]
    fn squad_runs_a_check_only_where_one_is_meant() {
        let only = |commands: &[&str]| {
            let facts = commands.iter().map(|command| Fact { value: (*command).to_owned(), source: String::new() });
            only_check(facts.map(|fact| (fact, true))).map(|fact| fact.value)
        };
        for (commands, expected) in [
            (&["make build", "make check"][..], Some("make check")),
            (&["npm run lint", "npm run test"], Some("npm run test")),
            (&["cargo build", "cargo test"], Some("cargo test")),
            (&["yarn run build"], Some("yarn run build")),
            (&["npm run lint"], None),
            (&["pytest", "npm test"], None),
            (&["make check", "make verify"], None),
            (&["cargo test && make"], None),
            (&[], None),
        ] {
            assert_eq!(only(commands).as_deref(), expected, "{commands:?}");
        }
        let built = Fact { value: "dotnet test --no-build".to_owned(), source: String::new() };
        let build = Fact { value: "dotnet build".to_owned(), source: String::new() };
        assert_eq!(only_check([(built, false), (build, true)].into_iter()), None);
        for (command, languages, suits) in [
            ("npm test", &[("Python", 84), ("JavaScript", 16)][..], false),
            ("uv run pytest", &[("Python", 84), ("JavaScript", 16)], true),
            ("npm test", &[("TypeScript", 40), ("CSS", 30), ("Go", 30)], true),
            ("go test ./...", &[("Go", 33), ("Python", 33), ("TypeScript", 33)], false),
            ("make test", &[("Go", 33), ("Python", 33)], true),
            ("npm test", &[], true),
        ] {
            assert_eq!(is_of_main_language(command, languages), suits, "{command} {languages:?}");
        }
    }
}
