//! Collects known secrets, so that they are never recorded: values from the project's `.env` files and from squad's
//! environment variables.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::known_files::KnownFiles;
use crate::env::Env;
use crate::error::Failure;
use crate::model::{IntoSet, Problem, Severity, Source, plural, printable};
use crate::policy::{EMAIL, Redaction, Redactor};

/// Larger files are not `.env` files.
const MAX_SIZE: u64 = 256 * 1024;

pub(crate) fn redactor(env: &Env, project: &Path) -> Redactor {
    redactor_with(env, project, std::iter::empty())
}

/// Like [`redactor`], with more variables.
pub(crate) fn redactor_with<'a>(
    env: &'a Env,
    project: &Path,
    more: impl Iterator<Item = (&'a str, &'a str)>,
) -> Redactor {
    let variables = env.variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).chain(more);
    let variables = variables.filter(|(name, _)| is_secret(name)).map(|(_, value)| value.to_owned());
    // The path of a file or socket that holds a secret is not itself secret.
    let mut secrets: Vec<String> =
        variables.filter(|value| !Path::new(value).is_absolute() && is_unlike_a_word(value)).collect();
    for file in environment_files(project) {
        secrets.extend(values(&fs::read_to_string(file).unwrap_or_default()));
    }
    Redactor::new(secrets)
}

/// The `.env` files of a project.
pub(crate) fn environment_files(project: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    collect(project, MAX_DEPTH, &mut files);
    files
}

/// Parts of a project may have their own `.env` files: `apps/api/.env`.
const MAX_DEPTH: usize = 3;

/// Folders with vendored or generated files.
const SKIPPED_FOLDERS: [&str; 7] = ["node_modules", "target", "vendor", "dist", "build", "venv", "__pycache__"];

/// Lists the `.env` files of a folder and its subfolders.
fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_sample = [".example", ".sample", ".template", ".dist"].iter().any(|end| name.ends_with(end));
        let is_env = name == ".env" || (name.starts_with(".env.") && !is_sample);
        if is_env && entry.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MAX_SIZE) {
            files.push(entry.path());
        } else if depth > 1
            && !name.starts_with('.')
            && !SKIPPED_FOLDERS.contains(&name.as_str())
            // Links are not followed, since they may form cycles.
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
        {
            collect(&entry.path(), depth - 1, files);
        }
    }
}

/// The values with secret-looking names. Redacting others would remove ordinary words.
fn values(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.trim().trim_start_matches("export ").split_once('='))
        .filter(|(name, _)| is_secret(name))
        .map(|(_, value)| value.trim().trim_matches(['"', '\'']).to_owned())
        .collect()
}

/// Variables with such names may hold settings, and `production` must not be redacted everywhere.
fn is_unlike_a_word(value: &str) -> bool {
    value.len() >= 12 || value.bytes().any(|byte| byte.is_ascii_digit())
}

/// Compares the ends of words: `GH_TOKEN` is secret, and `AUTHOR` is not.
fn is_secret(name: &str) -> bool {
    const ENDS: [&str; 10] =
        ["key", "token", "secret", "password", "passwd", "passphrase", "pwd", "pass", "credentials", "dsn"];
    name.to_lowercase().split(|c: char| !c.is_alphanumeric()).any(|word| ENDS.iter().any(|end| word.ends_with(end)))
}

/// The code of the problem for a suspected secret.
const SECRET: &str = "secret";

/// For each file, a problem at the first suspected secret, and one at the first e-mail address: teams sign their records
/// with them, so that is said and stops nothing. What the other tool installs holds examples, and nobody's secret.
pub(super) fn suspicious<'a>(
    env: &Env,
    project: &Path,
    files: impl Iterator<Item = (&'a str, &'a [u8])>,
) -> Vec<Problem> {
    let (redactor, installed) = (redactor(env, project), KnownFiles::of(env));
    let mut problems = Vec::new();
    for (path, bytes) in files.filter(|(_, bytes)| !installed.contains(bytes)) {
        let text = String::from_utf8_lossy(bytes);
        let mut found = Vec::new();
        redactor.text(&text, &mut found);
        let (addresses, secrets): (Vec<_>, Vec<_>) = found.into_iter().partition(|found| found.kind == EMAIL);
        let mut add = |code, severity, message: String, found: &[Redaction]| {
            let line = first_line_with(&redactor, &text, found);
            problems.push(Problem::new(severity, Source::new(path, line), code, message));
        };
        if !secrets.is_empty() {
            let kinds: BTreeSet<&str> = secrets.iter().map(|found| found.kind.as_str()).into_set();
            let kinds = kinds.into_iter().collect::<Vec<_>>().join(", ");
            add(
                SECRET,
                Severity::Warning,
                format!("it holds what looks like a secret ({})", printable(&kinds)),
                &secrets,
            );
        }
        let count = addresses.iter().map(|found| found.count).sum::<usize>();
        if count > 0 {
            let message = format!("it holds {}", plural(count, "e-mail address"));
            add("email", Severity::Note, message, &addresses);
        }
    }
    problems
}

/// The first line that holds one of these kinds by itself; 0 if they stretch over several lines.
fn first_line_with(redactor: &Redactor, text: &str, kinds: &[Redaction]) -> usize {
    let is_in = |line: &str| {
        let mut found = Vec::new();
        redactor.text(line, &mut found);
        found.iter().any(|found| kinds.iter().any(|kind| kind.kind == found.kind))
    };
    text.lines().position(is_in).map_or(0, |at| at + 1)
}

/// Fails with the first suspected secret, if there is one.
pub(super) fn refuse(suspicious: &[Problem], hint: &str) -> Result<(), Failure> {
    let secrets: Vec<&Problem> = suspicious.iter().filter(|problem| problem.code == SECRET).collect();
    let Some(first) = secrets.first() else { return Ok(()) };
    let more = if secrets.len() > 1 { format!(", and {} more", secrets.len() - 1) } else { String::new() };
    let place = format!("{}:{}", first.file, first.line);
    Err(Failure::failed(format!("{}{more}", first.message)).at(place).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_variables_are_recognized_by_name() {
        for secret in ["OPENAI_API_KEY", "GH_TOKEN", "DB_PASSWORD", "APIKEY", "AWS_SECRET_ACCESS_KEY"] {
            assert!(is_secret(secret), "{secret}");
        }
        for open in ["GIT_AUTHOR_DATE", "KEYBOARD", "PASSTHROUGH", "SSH_AUTH_SOCK", "PATH"] {
            assert!(!is_secret(open), "{open}");
        }
    }

    #[test]
    fn env_files_in_subfolders_are_read() {
        let project = tempfile::tempdir().expect("a folder");
        for (folder, value) in [("", "root-12345"), ("apps/api", "api-12345"), ("node_modules/x", "foreign-12345")] {
            let folder = project.path().join(folder);
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join(".env.local"), format!("API_KEY={value}\n")).expect("a file");
        }
        let read = environment_files(project.path()).into_iter().map(|file| fs::read_to_string(file).expect("text"));
        let mut secrets: Vec<String> = read.flat_map(|text| values(&text)).collect();
        secrets.sort();
        assert_eq!(secrets, ["api-12345", "root-12345"]);
    }

    #[test]
    fn only_values_with_secret_names_count() {
        let text = "# x\nexport API_KEY=\"abcdefgh1\"\nPORT=8080\nDB_PASSWORD='p w d 1 2'\n";
        assert_eq!(values(text), ["abcdefgh1", "p w d 1 2"]);
    }
}
