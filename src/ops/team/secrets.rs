//! The secrets that are known here, so that they can be kept out of the record: values of the project's `.env` files
//! and of the variables squad was started with.

use std::fs;
use std::path::Path;

use crate::env::Env;
use crate::error::Failure;
use crate::model::{Problem, Severity, Source, printable};
use crate::policy::Redactor;

/// Larger files are no `.env` files.
const LARGEST: u64 = 256 * 1024;

pub(crate) fn redactor(env: &Env, project: &Path) -> Redactor {
    redactor_with(env, project, std::iter::empty())
}

/// Beside these, named like variables.
pub(crate) fn redactor_with<'a>(
    env: &'a Env,
    project: &Path,
    more: impl Iterator<Item = (&'a str, &'a str)>,
) -> Redactor {
    let variables = env.variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).chain(more);
    let variables = variables.filter(|(name, _)| is_secret(name)).map(|(_, value)| value.to_owned());
    // A variable may name a file or a socket that holds a secret; the path is none.
    let mut secrets: Vec<String> =
        variables.filter(|value| !Path::new(value).is_absolute() && is_no_word(value)).collect();
    collect(project, DEEPEST, &mut secrets);
    Redactor::new(secrets)
}

/// Where the parts of a project keep their `.env` files: `apps/api/.env`.
const DEEPEST: usize = 3;

/// Folders that hold other people's files, or made ones.
const FOREIGN: [&str; 7] = ["node_modules", "target", "vendor", "dist", "build", "venv", "__pycache__"];

/// Reads the `.env` files of a folder and of those in it.
fn collect(folder: &Path, depth: usize, secrets: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_sample = [".example", ".sample", ".template", ".dist"].iter().any(|end| name.ends_with(end));
        let is_env = name == ".env" || (name.starts_with(".env.") && !is_sample);
        if is_env && entry.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() <= LARGEST) {
            secrets.extend(values(&fs::read_to_string(entry.path()).unwrap_or_default()));
        } else if depth > 1
            && !name.starts_with('.')
            && !FOREIGN.contains(&name.as_str())
            // A link is not followed: it may lead in a circle.
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
        {
            collect(&entry.path(), depth - 1, secrets);
        }
    }
}

/// The values whose names say that they are secret; others would take ordinary words out of the record.
fn values(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.trim().trim_start_matches("export ").split_once('='))
        .filter(|(name, _)| is_secret(name))
        .map(|(_, value)| value.trim().trim_matches(['"', '\'']).to_owned())
        .collect()
}

/// Variables with such names may hold settings too: `production` is not to go from every text.
fn is_no_word(value: &str) -> bool {
    value.len() >= 12 || value.bytes().any(|byte| byte.is_ascii_digit())
}

/// By the words of its name: `AUTHOR` has `auth` in it and no secret.
fn is_secret(name: &str) -> bool {
    const ENDS: [&str; 10] =
        ["key", "token", "secret", "password", "passwd", "passphrase", "pwd", "pass", "credentials", "dsn"];
    name.to_lowercase().split(|c: char| !c.is_alphanumeric()).any(|word| ENDS.iter().any(|end| word.ends_with(end)))
}

/// Files with what looks like a secret, each with the first such line.
pub(super) fn suspicious<'a>(
    env: &Env,
    project: &Path,
    files: impl Iterator<Item = (&'a str, &'a [u8])>,
) -> Vec<Problem> {
    let redactor = redactor(env, project);
    let mut problems = Vec::new();
    for (path, bytes) in files {
        let mut found = Vec::new();
        let text = String::from_utf8_lossy(bytes);
        redactor.text(&text, &mut found);
        if found.is_empty() {
            continue;
        }
        let is_in = |line: &str| {
            let mut found = Vec::new();
            redactor.text(line, &mut found);
            !found.is_empty()
        };
        let line = text.lines().position(is_in).map_or(0, |at| at + 1);
        let kinds: Vec<String> = redactor.kinds(&text).into_iter().collect();
        let message = format!("it holds what looks like a secret ({})", printable(&kinds.join(", ")));
        problems.push(Problem::new(Severity::Warning, Source::new(path, line), "secret", message));
    }
    problems
}

/// Fails on the first of them.
pub(super) fn refuse(suspicious: &[Problem], hint: &str) -> Result<(), Failure> {
    let Some(first) = suspicious.first() else { return Ok(()) };
    let more = if suspicious.len() > 1 { format!(", and {} more", suspicious.len() - 1) } else { String::new() };
    let place = format!("{}:{}", first.file, first.line);
    Err(Failure::failed(format!("{}{more}", first.message)).at(place).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_by_their_words() {
        for secret in ["OPENAI_API_KEY", "GH_TOKEN", "DB_PASSWORD", "APIKEY", "AWS_SECRET_ACCESS_KEY"] {
            assert!(is_secret(secret), "{secret}");
        }
        for open in ["GIT_AUTHOR_DATE", "KEYBOARD", "PASSTHROUGH", "SSH_AUTH_SOCK", "PATH"] {
            assert!(!is_secret(open), "{open}");
        }
    }

    #[test]
    fn the_parts_of_a_project_have_files_of_their_own() {
        let project = tempfile::tempdir().expect("a folder");
        for (folder, value) in [("", "root-12345"), ("apps/api", "api-12345"), ("node_modules/x", "foreign-12345")] {
            let folder = project.path().join(folder);
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join(".env.local"), format!("API_KEY={value}\n")).expect("a file");
        }
        let mut secrets = Vec::new();
        collect(project.path(), DEEPEST, &mut secrets);
        secrets.sort();
        assert_eq!(secrets, ["api-12345", "root-12345"]);
    }

    #[test]
    fn only_values_that_are_called_secret_count() {
        let text = "# x\nexport API_KEY=\"abcdefgh1\"\nPORT=8080\nDB_PASSWORD='p w d 1 2'\n";
        assert_eq!(values(text), ["abcdefgh1", "p w d 1 2"]);
    }
}
