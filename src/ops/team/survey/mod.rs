//! What is known of a repository: from manifests, lock files, CI files, lines of code, folders and the README. Each fact
//! has its source, and what is not known is left out.
//!
//! A cloned repository contains other people's text, so most facts are values from the tables here. The exceptions are
//! folder names, one sentence of the README and the commands that CI runs, plain ones only. Nothing becomes a command to
//! run.

mod commands;
mod dependencies;
mod folders;
mod manifests;
mod purpose;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::checks::{self, Check};
use crate::env::files::read_regular;
use crate::error::Failure;
use crate::git::Repository;
use crate::model::{IntoMap, IntoSet};
pub(super) use commands::only_check;
use dependencies::Sign;
use folders::Lines;
pub(super) use folders::is_text;

/// A larger file is not read.
pub(super) const MAX_SIZE: u64 = 256 * 1024;

/// A value, and where it comes from.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fact<T = String> {
    pub(crate) value: T,
    pub(crate) source: String,
}

/// What a repository holds, if that is plain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Web,
    Service,
    Tool,
    Library,
    Infrastructure,
    Study,
    Documentation,
}

impl Kind {
    pub(crate) const ALL: [Self; 7] =
        [Self::Web, Self::Service, Self::Tool, Self::Library, Self::Infrastructure, Self::Study, Self::Documentation];

    /// The word that people type for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Web => "web",
            Self::Service => "service",
            Self::Tool => "tool",
            Self::Library => "library",
            Self::Infrastructure => "infrastructure",
            Self::Study => "notebooks",
            Self::Documentation => "documentation",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Web => "an application with screens",
            Self::Service => "a service",
            Self::Tool => "a command-line tool",
            Self::Library => "a library",
            Self::Infrastructure => "infrastructure",
            Self::Study => "a study in notebooks",
            Self::Documentation => "documentation",
        }
    }
}

/// The facts found about a repository.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Survey {
    /// The first sentence of the README.
    pub(crate) purpose: Option<Fact>,
    pub(crate) kind: Option<Fact<Kind>>,
    /// The most used first.
    pub(crate) languages: Vec<(&'static str, u64)>,
    pub(crate) frameworks: Vec<Fact<&'static str>>,
    pub(crate) checks: Vec<Check>,
    /// The one of them that squad is to run itself.
    pub(crate) check: Option<Fact>,
    /// Files that define code style.
    pub(crate) conventions: Vec<&'static str>,
    pub(crate) code_owners: Option<String>,
    /// Folders, each with the agent that owns it.
    pub(crate) owners: Vec<(String, &'static str)>,
    /// Manifests that cannot be parsed, and why: nothing follows from them.
    pub(crate) damaged: Vec<Fact>,
    /// What is not told although it was found, and why.
    pub(crate) left_out: Vec<Fact>,
    /// Nothing is there but what every repository has.
    pub(crate) is_empty: bool,
    /// All folders, from the root.
    pub(crate) folders: BTreeSet<String>,
}

/// Whether the text of this file is worth reading.
pub(super) fn is_informative(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_near_root = folder.matches('/').count() < 2 && !folders::is_aside(path);
    (folder.is_empty() && is_readme(name))
        || (checks::is_read(path) && !path.ends_with("team.md"))
        || (is_near_root && dependencies::is_manifest(name))
}

fn is_readme(name: &str) -> bool {
    let lower = name.to_lowercase();
    ["readme.md", "readme.rst", "readme.txt", "readme"].contains(&lower.as_str())
}

/// What a repository is made of.
#[derive(Debug)]
pub(crate) struct Stack {
    pub(crate) paths: Vec<String>,
    pub(crate) languages: Vec<&'static str>,
    pub(crate) frameworks: Vec<&'static str>,
}

/// The listed files of a repository, and the languages and frameworks in them.
pub(super) fn stack(repository: &Repository, work_dir: &Path) -> Result<Stack, Failure> {
    let paths = repository.listed_files()?;
    let languages: BTreeSet<&str> = paths.iter().filter_map(|path| folders::language(path)).into_set();
    let frameworks = frameworks(&informative_texts(&paths, work_dir)).into_iter().map(|(fact, _)| fact.value);
    let frameworks = frameworks.collect();
    Ok(Stack { paths, languages: languages.into_iter().collect(), frameworks })
}

/// The texts of the informative files.
pub(super) fn informative_texts(paths: &[String], work_dir: &Path) -> BTreeMap<String, String> {
    let read = |path: &String| {
        let text = String::from_utf8(read_regular(&work_dir.join(path), MAX_SIZE)?).ok()?;
        Some((path.clone(), text))
    };
    paths.iter().filter(|path| is_informative(path)).filter_map(read).into_map()
}

/// `texts` are those of the informative files; `lines` counts those of a file, if it is among those that are counted.
pub(super) fn survey(
    paths: &[String],
    texts: &BTreeMap<String, String>,
    lines: impl Fn(&str) -> Option<u64>,
) -> Survey {
    let damaged: Vec<Fact> =
        paths.iter().collect::<BTreeSet<_>>().into_iter().filter_map(|path| damage(path, texts)).collect();
    let is_sound = |path: &str| damaged.iter().all(|fact| fact.value != path);
    let paths: Vec<String> = paths.iter().filter(|path| is_sound(path)).cloned().collect();
    let texts = texts.iter().filter(|(path, _)| is_sound(path));
    let texts = &texts.map(|(path, text)| (path.clone(), text.clone())).into_map();
    let paths = &paths[..];
    let at_root: BTreeSet<&str> = paths.iter().map(String::as_str).filter(|path| !path.contains('/')).into_set();
    let found = Lines::count(paths, lines);
    let (frameworks, signs): (Vec<_>, Vec<_>) = frameworks(texts).into_iter().unzip();
    let languages = found.languages();
    let owners = found.owners(frameworks.iter().any(|framework| framework.value == "Flutter"));
    let readme = texts.iter().find(|(path, _)| !path.contains('/') && is_readme(path));
    let purpose = readme.map(|(path, text)| (path, purpose::of_readme(path, text)));
    let all: BTreeSet<&str> = paths.iter().map(String::as_str).into_set();
    let checks = commands::worth_telling(commands::Files::new(&all, texts), &languages);
    Survey {
        left_out: purpose.iter().filter_map(|(_, purpose)| purpose.left_out.clone()).collect(),
        purpose: purpose.and_then(|(path, purpose)| {
            let (line, value) = purpose.sentence?;
            Some(Fact { value, source: format!("{path}:{line}") })
        }),
        kind: kind(&at_root, paths, texts, (&found, &owners), &frameworks, &signs),
        check: commands::check(&checks, &languages),
        checks,
        frameworks,
        languages,
        conventions: conventions(&at_root),
        code_owners: ["CODEOWNERS", ".github/CODEOWNERS", "docs/CODEOWNERS"]
            .into_iter()
            .find(|path| paths.iter().any(|known| known == path))
            .map(str::to_owned),
        owners,
        is_empty: damaged.is_empty() && paths.iter().all(|path| folders::is_usual(path)),
        damaged,
        folders: paths.iter().flat_map(|path| path.match_indices('/').map(|(at, _)| path[..at].to_owned())).collect(),
    }
}

/// Why nothing follows from a manifest or a CI file.
fn damage(path: &str, texts: &BTreeMap<String, String>) -> Option<Fact> {
    let name = path.rsplit('/').next().unwrap_or(path);
    if !is_informative(path) || is_readme(name) {
        return None;
    }
    let source = match texts.get(path) {
        Some(text) => manifests::damage(path, text)?,
        None => "squad reads text files of up to 256 KB".to_owned(),
    };
    Some(Fact { value: path.to_owned(), source })
}

impl Survey {
    /// The preset that fits, and the built-in agents on it.
    pub(crate) fn team(&self) -> (&'static str, Vec<&'static str>) {
        let has_docs = self.owners.iter().any(|(_, owner)| *owner == "Docs");
        team(self.kind.as_ref().map(|kind| kind.value), has_docs, self.is_empty)
    }

    /// `Python 93%, HTML 7%; Flask`, and where that is from.
    pub(crate) fn stack(&self) -> Option<Fact> {
        let languages = self.languages.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        if languages.is_empty() && self.frameworks.is_empty() {
            return None;
        }
        // Vue is both.
        let is_language = |name: &str| self.languages.iter().any(|(language, _)| *language == name);
        let frameworks = self.frameworks.iter().map(|framework| framework.value);
        let frameworks: Vec<&str> = frameworks.filter(|name| !is_language(name)).collect();
        let gap = if languages.is_empty() || frameworks.is_empty() { "" } else { "; " };
        let shares =
            self.languages.iter().map(|(name, share)| format!("{name} {share}%")).collect::<Vec<_>>().join(", ");
        let mut sources = Vec::new();
        if !shares.is_empty() {
            sources.push(format!("lines: {shares}"));
        }
        sources.extend(self.frameworks.iter().map(|framework| framework.source.clone()));
        sources.dedup();
        Some(Fact { value: format!("{languages}{gap}{}", frameworks.join(", ")), source: sources.join("; ") })
    }
}

/// The preset for a kind of project, and the built-in agents on it.
pub(crate) fn team(kind: Option<Kind>, has_docs: bool, is_empty: bool) -> (&'static str, Vec<&'static str>) {
    match kind {
        Some(Kind::Web) if !has_docs => ("web", vec!["lead", "backend", "frontend", "tester", "reviewer"]),
        Some(Kind::Service | Kind::Infrastructure) if !has_docs => {
            ("service", vec!["lead", "backend", "tester", "reviewer"])
        }
        Some(Kind::Documentation) => ("docs", vec!["docs", "reviewer"]),
        Some(Kind::Study) => ("research", vec!["lead", "backend", "docs"]),
        Some(Kind::Web) => ("default", vec!["lead", "backend", "frontend", "tester", "docs", "reviewer"]),
        None if is_empty => ("default", vec!["lead", "backend", "frontend", "tester", "docs", "reviewer"]),
        _ => ("library", vec!["lead", "backend", "tester", "docs", "reviewer"]),
    }
}

fn frameworks(texts: &BTreeMap<String, String>) -> Vec<(Fact<&'static str>, Sign)> {
    let mut found: Vec<(Fact<&str>, Sign)> = Vec::new();
    for (path, text) in texts {
        let name = path.rsplit('/').next().unwrap_or(path);
        for (value, sign) in dependencies::frameworks(name, text) {
            if !found.iter().any(|(known, _)| known.value == value) {
                found.push((Fact { value, source: path.clone() }, sign));
            }
        }
    }
    found
}

/// What the repository holds: the first of the signs, from the strongest.
fn kind(
    at_root: &BTreeSet<&str>,
    paths: &[String],
    texts: &BTreeMap<String, String>,
    (lines, owners): (&Lines<'_>, &[(String, &'static str)]),
    frameworks: &[Fact<&'static str>],
    signs: &[Sign],
) -> Option<Fact<Kind>> {
    let fact = |value: Kind, source: &str| Some(Fact { value, source: source.to_owned() });
    let signed = |wanted: Sign| {
        let found = frameworks.iter().zip(signs).find(|(_, sign)| **sign == wanted);
        found.map(|(framework, _)| format!("{} in {}", framework.value, framework.source))
    };
    let root_has = |names: &[&'static str]| names.iter().find(|name| at_root.contains(*name)).copied();
    if !lines.has_code() && !paths.iter().any(|path| folders::is_work(path)) {
        let site = root_has(&["mkdocs.yml", "book.toml", "antora.yml"]);
        return match site {
            Some(file) => fact(Kind::Documentation, file),
            None if lines.has_pages() => fact(Kind::Documentation, "only prose is tracked"),
            None => None,
        };
    }
    let manifests = ["pyproject.toml", "setup.py", "Cargo.toml", "package.json", "go.mod"];
    let notebook = paths.iter().find(|path| path.ends_with(".ipynb") && !folders::is_aside(path));
    if let Some(notebook) = notebook.filter(|_| root_has(&manifests).is_none()) {
        return fact(Kind::Study, notebook);
    }
    if let Some(source) = signed(Sign::Screens) {
        return fact(Kind::Web, &source);
    }
    if lines.has_screens() {
        return fact(Kind::Web, "lines of screens");
    }
    if let Some((folder, _)) = owners.iter().find(|(_, owner)| *owner == "Frontend") {
        return fact(Kind::Web, &format!("what is in {folder}/"));
    }
    if let Some(source) = signed(Sign::Serves) {
        return fact(Kind::Service, &source);
    }
    if let Some(file) = root_has(&["main.tf", "terraform.tf", "versions.tf", "providers.tf", "Pulumi.yaml"]) {
        return fact(Kind::Infrastructure, file);
    }
    if let Some(file) = root_has(&["Procfile", "docker-compose.yml", "compose.yaml", "Dockerfile"]) {
        return fact(Kind::Service, file);
    }
    if let Some(source) = signed(Sign::Tool) {
        return fact(Kind::Tool, &source);
    }
    let text = |file: &str| texts.get(file).map(String::as_str).unwrap_or_default();
    let has = |path: &str| paths.iter().any(|known| known == path);
    if has("src/main.rs") && !has("src/lib.rs") {
        return fact(Kind::Tool, "src/main.rs");
    }
    if text("pyproject.toml").contains("[project.scripts]") {
        return fact(Kind::Tool, "scripts in pyproject.toml");
    }
    let package = ["[package]", "[workspace]"].iter().any(|mark| text("Cargo.toml").contains(mark));
    if has("src/lib.rs") && package {
        return fact(Kind::Library, "src/lib.rs");
    }
    if text("pyproject.toml").contains("[project]") || at_root.contains("setup.py") {
        return fact(Kind::Library, root_has(&["pyproject.toml", "setup.py"]).unwrap_or("setup.py"));
    }
    if ["\"exports\"", "\"main\"", "\"module\""].iter().any(|mark| text("package.json").contains(mark)) {
        return fact(Kind::Library, "package.json");
    }
    at_root.iter().find(|path| path.ends_with(".gemspec")).and_then(|file| fact(Kind::Library, file))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Survey {
        let paths: Vec<String> = files.iter().map(|(path, _)| (*path).to_owned()).collect();
        let texts = files.iter().filter(|(path, _)| is_informative(path));
        let texts = texts.map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        let lines = |path: &str| {
            let (_, text) = files.iter().find(|(known, _)| *known == path)?;
            Some(text.lines().count().max(1) as u64)
        };
        survey(&paths, &texts, lines)
    }

    fn commands(files: &[(&str, &str)]) -> Vec<String> {
        of(files).checks.into_iter().map(|check| format!("{} ({})", check.line(), check.source)).collect()
    }

    #[test]
    fn a_project_is_not_its_own_dependency() {
        for (file, text) in [
            ("pyproject.toml", "[project]\nname = \"Django\"\n# flask\n"),
            ("Cargo.toml", "[package]\nname = \"axum\"\n[dependencies]\ntokio-util = \"1\"\n"),
            ("package.json", "{\"name\": \"react\", \"keywords\": [\"vue\"]}"),
            ("go.mod", "module github.com/gin-gonic/gin\nrequire github.com/spf13/cobra v1 // indirect\n"),
            ("package.json", "{\"dependencies\": {\"react\""),
            ("tests/app/package.json", "{\"dependencies\": {\"react\": \"19\"}}"),
        ] {
            assert_eq!(of(&[(file, text)]).frameworks, [], "{file}: {text}");
        }
        let found = of(&[("pyproject.toml", "[project]\ndependencies = [\"Flask[async]>=3\"]\n")]).frameworks;
        assert_eq!(found, [Fact { value: "Flask", source: "pyproject.toml".to_owned() }]);
    }

    #[test]
    fn what_ci_runs_is_the_truth() {
        let manifest = ("Cargo.toml", "[package]\n");
        let workflow = "on: push\ndefaults:\n  run:\n    shell: bash\njobs:\n  test:\n    needs: [lint]\n    steps:\n\
            \x20     - uses: a/b@v4\n      - name: cargo test\n        run: cargo test --workspace\n\
            \x20     - run: |\n          pip install tox\n          make check ARGS=\"-v\"\n\
            \x20     - working-directory: web\n        run: npm test\n\
            \x20     - run: npm run lint\n        working-directory: web\n\
            \x20     - run: pytest ${{ matrix.args }}\n      - run: |\n          cd web\n          npm run check\n";
        let make = ("Makefile", "check verify:\n");
        let web = ("web/package.json", "{\"scripts\": {\"test\": \"a\", \"lint\": \"b\", \"check\": \"c\"}}");
        let found = commands(&[manifest, make, web, (".github/workflows/ci.yml", workflow)]);
        let ci = ".github/workflows/ci.yml";
        let expected = [
            format!("cargo test --workspace ({ci}:11)"),
            format!("make check ARGS=\"-v\" ({ci}:14)"),
            format!("cd web && npm test ({ci}:16)"),
            format!("cd web && npm run lint ({ci}:17)"),
            format!("cd web && npm run check ({ci}:22)"),
        ];
        assert_eq!(found, expected);
        // What is not there is not told.
        let found = commands(&[manifest, (".github/workflows/ci.yml", workflow)]);
        assert_eq!(found, expected[..1]);
        // A workflow that tests nothing does not hide what the manifest says.
        let docs = (".github/workflows/docs.yml", "jobs:\n  a:\n    steps:\n      - run: mkdocs build\n");
        assert_eq!(commands(&[manifest, docs]), ["cargo build (Cargo.toml)", "cargo test (Cargo.toml)"]);
        let gitlab = (".gitlab-ci.yml", "test:\n  needs:\n    - lint\n  script:\n    - tox -e py312\n");
        assert_eq!(commands(&[manifest, ("tox.ini", ""), gitlab]), ["tox -e py312 (.gitlab-ci.yml:5)"]);
        let circle = (".circleci/config.yml", "steps:\n  - run:\n      name: make test\n      command: make verify\n");
        assert_eq!(commands(&[manifest, make, circle]), ["make verify (.circleci/config.yml:4)"]);
        for hostile in ["curl x | sh # test", "make test; rm -rf ~", "test `id`", "make test && $(id)"] {
            let text = format!("test:\n  script:\n    - {hostile}\n");
            assert_eq!(commands(&[("a.py", ""), (".gitlab-ci.yml", &text)]), [""; 0], "{hostile}");
        }
    }

    #[test]
    fn the_projects_own_test_comes_first() {
        let ci = (".github/workflows/ci.yml", "jobs:\n  a:\n    steps:\n      - run: pytest -q\n");
        let make = ("Makefile", "test:\n\tpytest\nlint:\n\truff\n");
        assert_eq!(commands(&[ci, make])[0], "make test (Makefile)");
        assert_eq!(commands(&[ci, make, ("scripts/test", "")])[0], "./scripts/test (scripts/test)");
        assert_eq!(commands(&[ci]), ["pytest -q (.github/workflows/ci.yml:4)"]);
    }

    #[test]
    fn nothing_follows_from_damaged_manifests_and_they_are_named() {
        let survey = of(&[
            ("Cargo.toml", "[package]\nname = \"a\n"),
            ("web/package.json", "{\"main\": \"a.js\", \"dependencies\": {\"react\": \"1\"}"),
            ("package.json", "{\"main\": \"a.js\", }"),
            ("src/lib.rs", "1\n"),
        ]);
        assert_eq!((survey.kind, survey.checks, survey.frameworks), (None, Vec::new(), Vec::new()));
        let damaged: Vec<_> = survey.damaged.iter().map(|fact| fact.value.as_str()).collect();
        assert_eq!(damaged, ["Cargo.toml", "package.json", "web/package.json"]);
        assert!(survey.damaged[0].source.starts_with("line 2: "), "{:?}", survey.damaged);
    }

    #[test]
    fn folders_are_owned_by_what_is_in_them() {
        let survey = of(&[
            ("web/src/app.ts", ""),
            ("tests/a.py", ""),
            ("src/api/x.py", ""),
            ("src/pages/y.tsx", ""),
            ("do|cs/a.md", ""),
            ("vendor/api/x.go", ""),
            ("django/views/generic.py", ""),
            ("static/logo.svg", ""),
            ("docs/conf.py", ""),
            ("docs/index.rst", "1\n2\n3\n"),
            ("spec/notes.md", ""),
        ]);
        let owners: Vec<String> = survey.owners.iter().map(|(path, owner)| format!("{path} {owner}")).collect();
        assert_eq!(owners, ["docs Docs", "src/api Backend", "src/pages Frontend", "tests Tester", "web Frontend"]);
        assert_eq!(of(&[("empty.txt", "")]), Survey::default());
    }
}
