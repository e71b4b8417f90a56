//! The project's own secrets: values of its `.env` files, so that they can be kept out of the record.

use std::fs;
use std::path::Path;

use crate::policy::Redactor;

/// Larger files are no `.env` files.
const LARGEST: u64 = 256 * 1024;

pub(crate) fn redactor(project: &Path) -> Redactor {
    let Ok(entries) = fs::read_dir(project) else { return Redactor::default() };
    let mut secrets = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_sample = [".example", ".sample", ".template", ".dist"].iter().any(|end| name.ends_with(end));
        let is_env = name == ".env" || (name.starts_with(".env.") && !is_sample);
        if is_env && entry.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() <= LARGEST) {
            secrets.extend(values(&fs::read_to_string(entry.path()).unwrap_or_default()));
        }
    }
    Redactor::new(secrets)
}

/// The values whose names say that they are secret; others would take ordinary words out of the record.
fn values(text: &str) -> Vec<String> {
    const SECRET: [&str; 9] = ["key", "token", "secret", "pass", "pwd", "credential", "private", "auth", "dsn"];
    text.lines()
        .filter_map(|line| line.trim().trim_start_matches("export ").split_once('='))
        .filter(|(name, _)| SECRET.iter().any(|word| name.to_lowercase().contains(word)))
        .map(|(_, value)| value.trim().trim_matches(['"', '\'']).to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_values_that_are_called_secret_count() {
        let text = "# x\nexport API_KEY=\"abcdefgh1\"\nPORT=8080\nDB_PASSWORD='p w d 1 2'\n";
        assert_eq!(values(text), ["abcdefgh1", "p w d 1 2"]);
    }
}
