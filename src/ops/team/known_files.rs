//! Recognizes unchanged files of the other tool by hashes of what its releases install.

use std::collections::BTreeSet;

use crate::env::Env;
use crate::git::sha1_of_blob;

/// Made by `.ci/known-files`, which has the same function as [`normal`].
static TABLE: &str = include_str!("known.txt");

/// The length of a hash in the table.
const DIGITS: usize = 12;

/// The beginnings of lines that name the release that wrote a file.
const VERSION_LINES: [&[u8]; 2] = [VERSION, b"- **Version:** "];
const VERSION: &[u8] = b"<!-- version: ";

/// The markers around the generated section of the coordinator's prompt.
const GENERATED: [&[u8]; 2] = [b"<!-- SQUAD:TEAM-CAPABILITIES:BEGIN -->", b"<!-- SQUAD:TEAM-CAPABILITIES:END -->"];

/// Short hashes of the files that releases install.
pub(super) struct KnownFiles(BTreeSet<String>);

impl KnownFiles {
    /// The built-in table; tests can add files.
    pub(super) fn of(env: &Env) -> Self {
        let table = TABLE.lines().filter(|line| !line.starts_with('#')).map(str::to_owned);
        Self(table.chain(env.installed.iter().filter_map(|text| short_hash(text))).collect())
    }

    /// Whether some release installs this text, ignoring line endings and generated parts.
    pub(super) fn contains(&self, bytes: &[u8]) -> bool {
        short_hash(bytes).is_some_and(|hash| self.0.contains(&hash))
    }
}

fn short_hash(bytes: &[u8]) -> Option<String> {
    sha1_of_blob(&normal(bytes))?.get(..DIGITS).map(str::to_owned)
}

/// The text without version lines, carriage returns and the generated section.
fn normal(bytes: &[u8]) -> Vec<u8> {
    let is_version = |line: &&[u8]| VERSION_LINES.iter().any(|begin| line.starts_with(begin));
    let plain: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != b'\r').collect();
    let plain =
        plain.split_inclusive(|byte| *byte == b'\n').filter(|line| !is_version(line)).collect::<Vec<_>>().concat();
    let find = |text: &[u8], word: &[u8]| text.windows(word.len()).position(|part| part == word);
    let [begin, end] = GENERATED;
    let around = find(&plain, begin).and_then(|start| {
        let length = find(plain.get(start..)?, end)?;
        Some((plain.get(..start)?, plain.get(start + length + end.len()..)?))
    });
    around.map_or_else(|| plain.clone(), |(before, after)| [before, after].concat())
}

/// The release that a prompt names.
pub(super) fn release(prompt: &[u8]) -> Option<String> {
    let line = prompt.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(VERSION))?;
    Some(String::from_utf8_lossy(line).split_whitespace().next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_hash() {
        let mut lines = TABLE.lines().filter(|line| !line.starts_with('#'));
        assert!(lines.clone().count() > 100);
        assert!(lines.all(|line| line.len() == DIGITS && line.bytes().all(|byte| byte.is_ascii_hexdigit())));
    }

    #[test]
    fn a_release_and_line_ends_make_no_difference() {
        let prompt = "a\n<!-- version: 0.10.0 -->\n<!-- SQUAD:TEAM-CAPABILITIES:BEGIN -->\nAda\n\
            <!-- SQUAD:TEAM-CAPABILITIES:END -->\nb\n";
        let other = prompt.replace("0.10.0", "0.0.0-source").replace("Ada", "Bob").replace('\n', "\r\n");
        assert_eq!(normal(prompt.as_bytes()), normal(other.as_bytes()));
        assert_ne!(normal(prompt.as_bytes()), normal(prompt.replace('b', "c").as_bytes()));
        assert_eq!(release(other.as_bytes()).as_deref(), Some("0.0.0-source"));
    }

    #[test]
    fn a_text_of_a_release_is_known() {
        let is_known = |text: &[u8]| TABLE.lines().any(|line| Some(line) == short_hash(text).as_deref());
        assert!(is_known(b"{\n  \"type\": \"commonjs\"\n}\n") && is_known(b"{\r\n  \"type\": \"commonjs\"\r\n}\r\n"));
        assert!(!is_known(b"") && !is_known(b"# Team\n"));
    }
}
