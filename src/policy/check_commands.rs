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
/// Words that stand between a program and its command.
const BETWEEN: &str = "run run-script exec x --";
/// Programs that run the program behind them.
const RUNNERS: &str = "sudo env time timeout nice npx bunx pnpx uvx uv poetry pipenv hatch pdm rye bundle xvfb-run command \
    php python python3 py exec nohup stdbuf";
const SHELLS: &str = "sh bash dash zsh";
/// Scripts in scripts.
const MAX_DEPTH: usize = 4;

/// Whether a command line runs a check, one of the project's own or an ordinary one; and whose exit code it has.
pub(crate) fn check_in(line: &str, own: &[String]) -> Option<CheckResult> {
    let own: Vec<Vec<String>> = own.iter().flat_map(|line| commands(line, 0)).collect();
    let commands = commands(line, 0);
    let is_check = |command: &Vec<String>| {
        !command.iter().any(|word| matches!(word.as_str(), "--help" | "-h" | "--version" | "--list"))
            && (own.iter().any(|own| !own.is_empty() && command.starts_with(own)) || is_ordinary(command))
    };
    let last = commands.iter().rposition(is_check)?;
    let plain = line.replace("2>&1", "").replace("&>", "").replace(">&", "").replace("&&", "");
    let is_chain = !line.contains("||") && !plain.trim_end().trim_end_matches(';').contains(['|', ';', '&', '\n']);
    let is_whole_pipe = line.contains("pipefail") && !line.contains("||") && !plain.contains('&');
    let is_last = last + 1 == commands.len() && !plain.contains('&') && !line.contains("||");
    Some(if is_chain || is_whole_pipe || is_last { CheckResult::OfLine } else { CheckResult::Hidden })
}

/// Whether a command of a team's or CI's file is worth counting as a check of the project.
pub(crate) fn looks_like_check(line: &str) -> bool {
    const NAMES: [&str; 8] = ["test", "check", "lint", "verify", "spec", "clippy", "validate", "build"];
    let names = |command: &Vec<String>| {
        let words = command.iter().take_while(|word| !word.starts_with('-')).take(3);
        words.into_iter().any(|word| NAMES.iter().any(|name| word.contains(name)))
    };
    let is_other = |command: &Vec<String>| {
        command
            .iter()
            .take(3)
            .any(|word| matches!(word.as_str(), "install" | "add" | "ci" | "checkout" | "echo" | "cd"))
    };
    commands(line, 0).iter().any(|command| (names(command) && !is_other(command)) || is_ordinary(command))
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
            is_in(COMMANDS, name) || name.split([':', '-', '_']).any(|part| is_in(COMMANDS, part))
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
        for line in ["./scripts/run-tests.sh", "cargo test", "npm run lint", "just verify", "bin/check --all"] {
            assert!(looks_like_check(line), "{line}");
        }
        for line in ["npm ci", "cargo install cargo-nextest", "echo test", "git checkout main", "cd tests", ""] {
            assert!(!looks_like_check(line), "{line}");
        }
    }
}
