//! The order of the modules, as `src/lib.rs` and the design give it, checked against the code.

use std::fs;
use std::path::{Path, PathBuf};

/// Each module may use those before it.
const ORDER: [&str; 25] = [
    "model", "settings", "parse", "edit", "compile", "route", "policy", "record", "review", "env", "program",
    "sandbox", "store", "git", "engine", "tools", "pool", "watch", "mcp", "view", "error", "ui", "ops", "trace",
    "commands",
];

/// No files, no async, no clock.
const PURE: [&str; 9] = ["model", "settings", "parse", "edit", "compile", "route", "policy", "record", "review"];

/// Modules of tests only. Fuzz targets reach whatever they like.
const OF_TESTS: [&str; 2] = ["fuzz", "script"];

/// These do not know each other.
const STRANGERS: [&str; 3] = ["store", "git", "engine"];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

pub(crate) fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// The code of each module without comments and tests: what `#[cfg(test)]` begins ends the file.
fn code() -> Vec<(String, PathBuf, String)> {
    let mut all = Vec::new();
    files(&source(), &mut all);
    all.into_iter()
        .filter(|path| !path.to_string_lossy().contains("tests"))
        .filter_map(|path| {
            let inner = path.strip_prefix(source()).expect("below src");
            let module = inner.components().next()?.as_os_str().to_string_lossy().trim_end_matches(".rs").to_owned();
            let text = fs::read_to_string(&path).expect("a source file");
            let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned();
            let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
            Some((module, path, lines.join("\n")))
        })
        .collect()
}

/// The modules that a text names after `crate::`, one a group counted.
fn used(text: &str) -> Vec<String> {
    text.match_indices("crate::")
        .flat_map(|(at, _)| {
            let rest = &text[at + "crate::".len()..];
            match rest.strip_prefix('{') {
                Some(group) => group.split('}').next().unwrap_or_default().split(',').map(first_word).collect(),
                None => vec![first_word(rest)],
            }
        })
        .collect()
}

fn first_word(text: &str) -> String {
    text.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

#[test]
fn every_module_has_its_place() {
    let text = fs::read_to_string(source().join("lib.rs")).expect("lib.rs");
    let declared: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';')).collect();
    let declared: Vec<&str> = declared.into_iter().filter(|module| !OF_TESTS.contains(module)).collect();
    let mut ordered = ORDER.to_vec();
    ordered.sort_unstable();
    assert_eq!(declared, ordered);
}

#[test]
fn modules_use_only_those_before_them() {
    let place = |module: &str| ORDER.iter().position(|other| *other == module);
    for (module, path, text) in code() {
        let Some(here) = place(&module) else { continue };
        for other in used(&text).into_iter().filter(|other| !OF_TESTS.contains(&other.as_str())) {
            let there = place(&other).unwrap_or_else(|| panic!("{}: crate::{other}?", path.display()));
            assert!(there <= here, "{}: `{module}` uses `{other}`, which comes after it", path.display());
            let strange =
                STRANGERS.contains(&module.as_str()) && STRANGERS.contains(&other.as_str()) && module != other;
            assert!(!strange, "{}: `{module}` and `{other}` do not know each other", path.display());
        }
    }
}

#[test]
fn the_pure_modules_touch_nothing() {
    const WORLD: [&str; 7] =
        ["std::fs", "std::env", "std::io", "tokio", "async ", "Timestamp::now", "std::time::SystemTime"];
    for (module, path, text) in code() {
        if PURE.contains(&module.as_str()) {
            for word in WORLD {
                assert!(!text.contains(word), "{}: `{word}` in a pure module", path.display());
            }
        }
    }
}

#[test]
fn only_git_knows_git_and_only_its_adapter_knows_an_engine() {
    for (module, path, text) in code() {
        assert!(module == "git" || !text.contains("gix::"), "{}: gix", path.display());
        let programs =
            ["git", "program", "sandbox"].contains(&module.as_str()) || path.to_string_lossy().contains("engine");
        assert!(programs || !text.contains("process::Command"), "{}: starts a program", path.display());
    }
}

#[test]
fn one_place_decides_which_programs_are_started() {
    const WAYS: [&str; 7] =
        ["Command::new", "Command as", "type Command", "gix_command", "execv", "posix_spawn", "CreateProcess"];
    for (module, path, text) in code() {
        for way in WAYS.iter().filter(|_| module != "program") {
            assert!(!text.contains(way), "{}: `{way}` passes `program::Programs` by", path.display());
        }
    }
}

/// What a room of `ops` does not know.
const UNKNOWN_ROOMS: [(&str, &[&str]); 5] = [
    ("change", &["decisions", "run", "overview"]),
    ("team", &["decisions", "overview"]),
    ("decisions", &["run", "overview"]),
    ("ledger", &["change", "decisions", "overview"]),
    ("run", &["overview"]),
];

#[test]
fn rooms_of_ops_know_only_those_before_them() {
    for (module, path, text) in code() {
        let inner = path.strip_prefix(source().join("ops")).ok();
        let room = inner.and_then(|inner| inner.components().next()).map(|room| room.as_os_str().to_string_lossy());
        let Some((room, unknown)) = UNKNOWN_ROOMS.iter().find(|(name, _)| room.as_deref() == Some(name)) else {
            continue;
        };
        let named: Vec<String> = text
            .match_indices("ops::")
            .flat_map(|(at, _)| match text[at + "ops::".len()..].strip_prefix('{') {
                Some(group) => group.split('}').next().unwrap_or_default().split(',').map(first_word).collect(),
                None => vec![first_word(&text[at + "ops::".len()..])],
            })
            .collect();
        let strange = named.iter().find(|name| unknown.contains(&name.as_str()));
        assert!(strange.is_none(), "{}: `{module}/{room}` uses `{}`", path.display(), strange.expect("a room"));
    }
}
