//! Recognizes commands that check a project: its tests, linters and builds.

use super::shell::Script;
use super::shell_values::{Variant, Word};

/// What the exit code of a command line says about the check in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckResult {
    /// It is the check's own, or that of a chain which the check has to pass.
    OfLine,
    /// It is another command's: `cargo test | tail`.
    Hidden,
}

/// What a command checks, the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CheckKind {
    Test,
    /// `check`, `verify`: often the tests and more.
    Whole,
    Lint,
    Build,
}

/// Programs that check whenever they run.
const CHECKERS: &str = "pytest tox nox mypy ruff flake8 pylint pyright jest vitest mocha ava eslint biome tsc playwright \
    cypress phpunit pest phpstan psalm rspec rubocop ctest golangci-lint staticcheck shellcheck clippy-driver nextest \
    cargo-nextest unittest ktlint detekt checkstyle hadolint stylelint markdownlint yamllint actionlint tflint";
/// Programs that check with one of some commands.
const PROGRAMS: &str = "cargo go make just task rake npm yarn pnpm bun deno node composer gradle gradlew mvn mvnw sbt mix \
    dotnet swift dart flutter zig stack cabal bazel nx turbo terraform artisan manage.py meson cmake pre-commit lein ninja";
/// Their commands, up to the first `:` or `-`.
const COMMANDS: &str = "test tests check checks lint clippy nextest build vet verify validate typecheck type spec specs \
    credo analyze analyse unittest fmtcheck run-many phpunit";
/// Commands that check nothing, whatever follows.
const MANAGING: &str = "install i add ci update upgrade remove uninstall new init publish get mod";
/// Programs whose own `clean` removes only what they have built: `mvn clean verify`.
const CLEANING: &str = "mvn mvnw gradle gradlew sbt";
/// Words that stand between a program and its command.
const BETWEEN: &str = "run run-script exec x --";
/// Programs that run the program behind them.
const RUNNERS: &str = "sudo env time timeout nice npx bunx pnpx uvx uv poetry pipenv hatch pdm rye bundle xvfb-run command \
    php python python3 py exec nohup stdbuf";
const SHELLS: &str = "sh bash dash zsh";
/// The kinds of checks, by words of the command.
const KINDS: [(CheckKind, &str); 4] = [
    (
        CheckKind::Test,
        "test tests runtests runtest nextest unittest pytest tox nox spec specs rspec jest vitest mocha ctest phpunit pest",
    ),
    (CheckKind::Whole, "check checks verify validate"),
    (CheckKind::Lint, "lint linter clippy vet typecheck fmtcheck"),
    (CheckKind::Build, "build"),
];
/// Scripts in scripts.
const MAX_DEPTH: usize = 4;

/// Whether a command line runs a check, one of the project's own or an ordinary one; and whose exit code it has.
pub(crate) fn check_in(line: &str, own: &[String]) -> Option<CheckResult> {
    let own: Vec<Vec<String>> = own.iter().flat_map(|line| commands(line, 0)).collect();
    let commands = commands(line, 0);
    let is_check = |command: &Vec<String>| {
        !is_preview(command)
            && (own.iter().any(|own| !own.is_empty() && command.starts_with(own)) || is_ordinary(command))
    };
    let last = commands.iter().rposition(is_check)?;
    let plain = line.replace("2>&1", "").replace("&>", "").replace(">&", "").replace("&&", "");
    let is_chain = !line.contains("||") && !plain.trim_end().trim_end_matches(';').contains(['|', ';', '&', '\n']);
    let is_whole_pipe = line.contains("pipefail") && !line.contains("||") && !plain.contains('&');
    let is_last = last + 1 == commands.len() && !plain.contains('&') && !line.contains("||");
    Some(if is_chain || is_whole_pipe || is_last { CheckResult::OfLine } else { CheckResult::Hidden })
}

/// What a command of a team's or CI's file checks. `None`: nothing, or it changes something besides: `make deploy-test`.
pub(crate) fn kind_of_check(line: &str) -> Option<CheckKind> {
    let commands = commands(line, 0);
    let changes = |command: &Vec<String>| {
        let program = command.first().map_or("", |program| name_of(program));
        let is_harmless = |word: &str| word == "clean" && is_in(CLEANING, program);
        let words = command.iter().map(String::as_str).filter(|word| !is_harmless(word));
        std::iter::once(program).chain(words).any(changes_something)
    };
    if commands.iter().any(|command| is_preview(command) || changes(command)) {
        return None;
    }
    commands.iter().filter_map(|command| kind_of(command)).min()
}

fn kind_of(command: &[String]) -> Option<CheckKind> {
    let is_other = command
        .iter()
        .take(3)
        .any(|word| matches!(word.as_str(), "install" | "add" | "ci" | "checkout" | "echo" | "cd"));
    let (program, rest) = command.split_at(command.len().min(1));
    // `mvn -B verify`, `make -j4 check`
    let is_tool = program.first().is_some_and(|program| is_in(PROGRAMS, name_of(program)));
    let rest = rest.iter().skip_while(|word| is_tool && word.starts_with('-'));
    let before_options = program.iter().chain(rest).take_while(|word| !word.starts_with('-')).take(3);
    let parts = before_options.flat_map(|word| parts(word)).filter(|_| !is_other);
    let kinds = parts.filter_map(|part| KINDS.iter().find(|(_, words)| is_in(words, part)).map(|(kind, _)| *kind));
    let lints = is_ordinary(command) || command.iter().any(|word| matches!(word.as_str(), "--check" | "-check"));
    kinds.min().or(lints.then_some(CheckKind::Lint))
}

/// Whether a word of a command names something that changes what others see or have, as `update` in
/// `test:update-snapshots`. A path is what is worked on.
fn changes_something(word: &str) -> bool {
    const CHANGING: &str = "deploy deployment publish release upload push clean cleanup clear purge update upgrade reset \
        destroy drop delete remove rollback teardown apply promote sign notarize migrate seed bless accept";
    !word.starts_with('-') && !word.contains('/') && parts(word).any(|part| is_in(CHANGING, part))
}

/// Whether it only tells what it would do, or prepares it.
fn is_preview(command: &[String]) -> bool {
    const OPTIONS: &str = "--help -h --version --list --list-tests --listTests --collect-only --co --no-run --dry-run \
        --update --update-snapshots --updateSnapshot --snapshot-update";
    command.iter().any(|word| is_in(OPTIONS, word))
}

/// The words in a word: `test` and `unit` in `test:unit`.
fn parts(word: &str) -> impl Iterator<Item = &str> {
    word.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty())
}

/// The commands that a line runs, each as words, without assignments and programs that only run others.
pub(crate) fn commands_of(line: &str) -> Vec<Vec<String>> {
    commands(line, 0)
}

/// The commands that a line runs, without assignments and programs that only run others.
fn commands(line: &str, depth: usize) -> Vec<Vec<String>> {
    let Some(script) = Script::parse(line).filter(|_| depth < MAX_DEPTH) else { return Vec::new() };
    let mut found = Vec::new();
    for words in script.commands(&Variant::default()) {
        let words: Vec<String> = words.into_iter().map(Word::unwrap_or_default).collect();
        let mut words = &words[..];
        while let [first, rest @ ..] = words
            && is_in(RUNNERS, name_of(first))
        {
            words = behind_options(rest);
        }
        match words {
            // `bash -lc 'cargo test'`
            [shell, option, script, ..] if is_in(SHELLS, name_of(shell)) && option.ends_with('c') => {
                found.extend(commands(script, depth + 1));
            }
            [shell, script, ..] if is_in(SHELLS, name_of(shell)) && !script.starts_with('-') => {
                found.push(words.get(1..).unwrap_or_default().to_vec());
            }
            [] => {}
            words => found.push(words.to_vec()),
        }
    }
    found
}

/// What stands behind the options of a program that runs another: `-m`, `60`, `run`, `A=b`.
fn behind_options(words: &[String]) -> &[String] {
    let is_option = |word: &String| {
        word.starts_with(['-', '+'])
            || word.contains('=')
            || is_in(BETWEEN, word)
            || word.starts_with(|c: char| c.is_ascii_digit())
    };
    let start = words.iter().take_while(|word| is_option(word)).count();
    words.get(start..).unwrap_or_default()
}

fn is_ordinary(command: &[String]) -> bool {
    let [program, rest @ ..] = command else { return false };
    let program = name_of(program);
    if is_in(CHECKERS, program) {
        return true;
    }
    // `cargo +nightly test`, `npm run test:unit`, `make -j4 check`, `gradle :app:test`
    let is_passed_over = |word: &&String| word.starts_with(['-', '+']) || is_in(BETWEEN, word);
    let commands = rest.iter().filter(|word| !is_passed_over(word)).take(2);
    let mut commands = commands.take_while(|word| !is_in(MANAGING, word));
    is_in(PROGRAMS, program)
        && commands.any(|word| {
            let name = word.trim_start_matches(':').rsplit('/').next().unwrap_or_default();
            let is_named = is_in(COMMANDS, name) || name.split([':', '-', '_']).any(|part| is_in(COMMANDS, part));
            is_named && !changes_something(name)
        })
}

fn name_of(program: &str) -> &str {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    name.strip_suffix(".exe")
        .or_else(|| name.strip_suffix(".cmd"))
        .or_else(|| name.strip_suffix(".bat"))
        .unwrap_or(name)
}

/// The lists are words with blanks between them.
fn is_in(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|known| known == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_recognized_however_they_are_started() {
        for line in [
            "cargo test",
            "cargo +nightly clippy --all-targets -- -D warnings",
            "RUST_LOG=debug cargo test -p a",
            "cd app && cargo test --workspace 2>&1",
            "bash -lc 'cargo test'",
            "timeout 60 npm run test:unit",
            "npm test",
            "npx --yes jest src",
            "pnpm -r lint",
            "uv run pytest -q",
            "python -m unittest discover",
            "python3 -m pytest tests/test_a.py",
            "python manage.py test",
            "./gradlew :app:test",
            "bundle exec rspec",
            "go test ./...",
            "make -j4 check",
            "node_modules/.bin/tsc --noEmit",
            "dotnet test",
            "cd x; cargo test",
            "set -o pipefail; cargo test | tail -5",
        ] {
            assert_eq!(check_in(line, &[]), Some(CheckResult::OfLine), "{line}");
        }
        for line in [
            "cargo test | tail",
            "cargo test || true",
            "true || cargo test",
            "set -o pipefail; cargo test || true",
            "cargo test; echo done",
            "cargo test &",
            "ls & cargo test",
            "npm test\nls",
        ] {
            assert_eq!(check_in(line, &[]), Some(CheckResult::Hidden), "{line}");
        }
        for line in [
            "ls",
            "cargo run",
            "git commit -m 'cargo test'",
            "echo cargo test",
            "npm install",
            "cargo test --help",
            "(",
        ] {
            assert_eq!(check_in(line, &[]), None, "{line}");
        }
    }

    #[test]
    fn a_projects_own_checks_count() {
        let own = ["./scripts/ci.sh --all".to_owned(), "mdbook build".to_owned()];
        assert_eq!(check_in("./scripts/ci.sh --all --fast", &own), Some(CheckResult::OfLine));
        assert_eq!(check_in("bash -c 'mdbook build docs'", &own), Some(CheckResult::OfLine));
        assert_eq!((check_in("./scripts/ci.sh", &own), check_in("mdbook serve", &own)), (None, None));
    }

    #[test]
    fn commands_of_files_that_check_are_told_from_others() {
        use CheckKind::{Build, Lint, Test, Whole};
        for (line, kind) in [
            ("./scripts/run-tests.sh", Test),
            ("cargo test", Test),
            ("python -Wall tests/runtests.py --verbosity=2", Test),
            ("bundle exec rspec", Test),
            ("npm run test:unit", Test),
            ("cargo test --release", Test),
            ("pytest tests/test_update.py", Test),
            ("npm run lint", Lint),
            ("eslint src", Lint),
            ("terraform fmt -check -recursive", Lint),
            ("cargo fmt --check", Lint),
            ("go vet ./...", Lint),
            ("just verify", Whole),
            ("bin/check --all", Whole),
            ("make build check", Whole),
            ("cargo build && cargo test", Test),
            ("dotnet build", Build),
            ("mvn clean verify", Whole),
            ("mvn -B clean verify -P it", Whole),
            ("./gradlew clean test", Test),
            ("make -j4 check", Whole),
            ("npm --silent run test:unit", Test),
            ("eslint --ext .ts check", Lint),
        ] {
            assert_eq!(kind_of_check(line), Some(kind), "{line}");
        }
        for line in [
            "npm ci",
            "cargo install cargo-nextest",
            "echo test",
            "git checkout main",
            "cd tests",
            "",
            "make latest",
            "make contest",
            "make oldtest",
            "make testdb-reset",
            "pytest --collect-only",
            "cargo test --no-run",
            "cargo test && make deploy",
        ] {
            assert_eq!(kind_of_check(line), None, "{line}");
        }
        // Nothing that tests and does more, however the two are put together.
        for more in ["deploy", "publish", "release", "clean", "cleanup", "update", "reset", "destroy", "migrate"] {
            for line in [
                format!("make {more}-test"),
                format!("make test_{more}"),
                format!("make test {more}"),
                format!("npm run test:{more}"),
                format!("npm run {more}:test"),
                format!("./{more}.sh test"),
                format!("scripts/{more}.sh test"),
                format!("rake test:{more}"),
                format!("./gradlew {more}-all test"),
                format!("task {more} test"),
            ] {
                assert_eq!(kind_of_check(&line), None, "{line}");
            }
            assert_eq!(check_in(&format!("npm run test:{more}"), &[]), None, "{more}");
        }
    }
}
