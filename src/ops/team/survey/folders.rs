//! Languages by lines, and who of the built-in team owns which folder: by its name and by what is in it.

use crate::model::Sort;
use std::collections::BTreeMap;

/// Languages by file extension, and the kind of the text.
const LANGUAGES: [(&str, Text, &[&str]); 34] = [
    ("Rust", Text::Code, &["rs"]),
    ("Python", Text::Code, &["py"]),
    ("TypeScript", Text::Script, &["ts", "mts", "cts"]),
    ("TypeScript", Text::Screen, &["tsx"]),
    ("JavaScript", Text::Script, &["js", "mjs", "cjs"]),
    ("JavaScript", Text::Screen, &["jsx"]),
    ("Go", Text::Code, &["go"]),
    ("Java", Text::Code, &["java"]),
    ("Kotlin", Text::Code, &["kt", "kts"]),
    ("C#", Text::Code, &["cs"]),
    ("C++", Text::Code, &["cpp", "cc", "cxx", "hpp", "hh"]),
    ("C", Text::Code, &["c", "h"]),
    ("Ruby", Text::Code, &["rb"]),
    ("PHP", Text::Code, &["php"]),
    ("Swift", Text::Code, &["swift"]),
    ("Dart", Text::Code, &["dart"]),
    ("Elixir", Text::Code, &["ex", "exs"]),
    ("Scala", Text::Code, &["scala"]),
    ("Haskell", Text::Code, &["hs"]),
    ("Vue", Text::Screen, &["vue"]),
    ("Svelte", Text::Screen, &["svelte"]),
    ("OCaml", Text::Code, &["ml", "mli"]),
    ("Erlang", Text::Code, &["erl"]),
    ("Clojure", Text::Code, &["clj", "cljc", "cljs"]),
    ("Zig", Text::Code, &["zig"]),
    ("Nim", Text::Code, &["nim"]),
    ("Julia", Text::Code, &["jl"]),
    ("Lua", Text::Code, &["lua"]),
    ("Shell", Text::Code, &["sh", "bash"]),
    ("Terraform", Text::Code, &["tf"]),
    ("R", Text::Code, &["r", "R"]),
    ("Jupyter", Text::Code, &["ipynb"]),
    ("HTML", Text::Screen, &["html", "htm", "erb"]),
    ("CSS", Text::Screen, &["css", "scss", "sass", "less"]),
];
const PROSE: [&str; 5] = ["md", "mdx", "rst", "adoc", "asciidoc"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Text {
    Code,
    /// Of screens or of servers.
    Script,
    Screen,
    Prose,
}

/// The agents of the built-in team that own folders with these names, if what is in them fits.
const OWNERS: [(&str, &str); 4] = [
    ("Tester", "tests test spec specs __tests__ e2e"),
    ("Docs", "docs doc documentation guides website"),
    ("Frontend", "frontend web ui client webapp components pages views styles assets public static"),
    (
        "Backend",
        "server api backend cmd internal pkg crates lib services workers jobs db database migrations schema scripts",
    ),
];

/// The tracked files that count, each with its lines.
pub(super) struct Lines<'p>(Vec<(&'p str, Text, &'static str, u64)>);

/// Whether the lines of a file count.
pub(in crate::ops::team) fn is_text(path: &str) -> bool {
    text_of(path).is_some() && !is_foreign(path)
}

/// The programming language of a file that is the project's own.
pub(super) fn language(path: &str) -> Option<&'static str> {
    let (_, language) = text_of(path).filter(|_| !is_foreign(path))?;
    Some(language).filter(|language| !language.is_empty())
}

/// Vendored or made by a program.
fn is_foreign(path: &str) -> bool {
    const FOLDERS: &str =
        "vendor vendored node_modules third_party dist target build .squad .ai-team fixtures testdata";
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_foreign = |folder: &str| FOLDERS.split(' ').any(|name| name == folder);
    folders.split('/').any(is_foreign) || name.contains(".min.")
}

/// What every repository may have, whatever is in it.
pub(super) fn is_usual(path: &str) -> bool {
    const NAMES: &str = "readme license licence copying notice changelog contributing code_of_conduct security authors \
        codeowners maintainers support history";
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    let stem = name.split('.').next().unwrap_or_default();
    path.starts_with('.') || (!path.contains('/') && NAMES.split_whitespace().any(|known| known == stem))
}

/// Whether a file is work that squad knows nothing of, and neither prose nor what goes with it: a language that is not
/// listed here, for example.
pub(super) fn is_work(path: &str) -> bool {
    const BESIDE: &str = "png jpg jpeg gif svg webp ico pdf txt csv json jsonl yml yaml toml xml css scss bib tex lock \
        drawio mmd puml hbs j2 tmpl woff woff2 mp4";
    let name = path.rsplit('/').next().unwrap_or(path);
    let Some((_, end)) = name.rsplit_once('.') else { return false };
    let end = end.to_lowercase();
    let is_beside = PROSE.contains(&end.as_str()) || BESIDE.split_whitespace().any(|known| known == end);
    !is_usual(path) && !is_foreign(path) && !is_beside && text_of(path).is_none()
}

/// Below a folder whose manifests are not the project's own.
pub(super) fn is_aside(path: &str) -> bool {
    const ASIDE: &str = "tests test spec examples example samples docs templates e2e";
    let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
    is_foreign(path) || folders.split('/').any(|folder| ASIDE.split(' ').any(|name| name == folder))
}

fn text_of(path: &str) -> Option<(Text, &'static str)> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let (start, end) = name.rsplit_once('.')?;
    if PROSE.contains(&end) {
        return Some((Text::Prose, ""));
    }
    // How a tool is set up is not what the project is written in.
    if start.is_empty() || start.ends_with(".config") || start.starts_with('.') || start.ends_with(".gradle") {
        return None;
    }
    LANGUAGES.iter().find(|(_, _, ends)| ends.contains(&end)).map(|(language, text, _)| (*text, *language))
}

impl<'p> Lines<'p> {
    pub(super) fn count(paths: &'p [String], lines: impl Fn(&str) -> Option<u64>) -> Self {
        let own = paths.iter().filter(|path| is_text(path));
        let mut found: Vec<(&str, Text, &'static str, u64)> = own
            .filter_map(|path| {
                let (text, language) = text_of(path)?;
                Some((path.as_str(), text, language, lines(path)?))
            })
            .collect();
        // Headers belong to both.
        let has = |end: &str| found.iter().any(|(path, ..)| path.ends_with(end));
        if !has(".c") && found.iter().any(|(_, _, language, _)| *language == "C++") {
            found.iter_mut().filter(|(path, ..)| path.ends_with(".h")).for_each(|one| one.2 = "C++");
        }
        Self(found)
    }

    /// The most used first, with the share of lines in hundredths; what is less than a twentieth is left out.
    pub(super) fn languages(&self) -> Vec<(&'static str, u64)> {
        const MAX_COUNT: usize = 4;
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for (_, _, language, lines) in self.code() {
            *counts.entry(language).or_default() += lines;
        }
        let all: u64 = counts.values().sum();
        let mut found: Vec<(&str, u64)> = counts.into_iter().filter(|(_, lines)| lines * 20 >= all).collect();
        found.stable_sort_by_key(|(_, lines)| std::cmp::Reverse(*lines));
        found.truncate(MAX_COUNT);
        found.into_iter().map(|(name, lines)| (name, lines * 100 / all.max(1))).collect()
    }

    /// Neither prose nor what is made of it.
    fn code(&self) -> impl Iterator<Item = &(&'p str, Text, &'static str, u64)> {
        let is_doc = |path: &str| path.split('/').any(|folder| folder == "docs" || folder == "doc");
        self.0.iter().filter(move |(path, text, ..)| *text != Text::Prose && !is_doc(path))
    }

    pub(super) fn has_code(&self) -> bool {
        self.code().next().is_some()
    }

    /// Whether pages beyond the usual ones at the root are there.
    pub(super) fn has_pages(&self) -> bool {
        self.0.iter().any(|(path, text, ..)| *text == Text::Prose && !is_usual(path))
    }

    /// Whether a seventh of the code is that of screens.
    pub(super) fn has_screens(&self) -> bool {
        let of = |is_meant: fn(Text) -> bool| -> u64 {
            self.code().filter(|(path, text, ..)| is_meant(*text) && !is_aside(path)).map(|one| one.3).sum()
        };
        let screens = of(|text| text == Text::Screen);
        screens > 0 && screens * 7 >= of(|_| true)
    }

    /// The outermost folder of each path that has a well-known name, down to the second level, and holds what its owner
    /// works on.
    pub(super) fn owners(&self, dart_is_screens: bool) -> Vec<(String, &'static str)> {
        const MAX_COUNT: usize = 16;
        let mut found: BTreeMap<String, (&'static str, [u64; 4])> = BTreeMap::new();
        for (path, text, language, lines) in &self.0 {
            let text = if *language == "Dart" && dart_is_screens { Text::Screen } else { *text };
            let folders: Vec<&str> = path.split('/').collect();
            let folders = &folders[..folders.len() - 1];
            let owner = |folder: &&str| {
                let is_known = |names: &str| names.split(' ').any(|name| name == folder.to_lowercase());
                OWNERS.iter().find(|(_, names)| is_known(names)).map(|(owner, _)| *owner)
            };
            let Some((depth, owner)) =
                folders.iter().take(2).enumerate().find_map(|(depth, folder)| Some((depth, owner(folder)?)))
            else {
                continue;
            };
            let place = folders.get(..=depth).unwrap_or_default().join("/");
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
            if place.chars().all(is_plain) {
                found.entry(place).or_insert((owner, [0; 4])).1[text as usize] += lines;
            }
        }
        let fits = |owner: &str, [code, script, screen, prose]: [u64; 4]| {
            let all = code + script + screen + prose;
            match owner {
                "Docs" => prose * 2 > all,
                "Frontend" => (screen + script) * 2 > all,
                "Backend" => (code + script) * 2 > all && screen * 10 <= all,
                _ => (code + script + screen) * 2 > all,
            }
        };
        let fitting = found.into_iter().filter(|(_, (owner, lines))| fits(owner, *lines));
        fitting.map(|(place, (owner, _))| (place, owner)).take(MAX_COUNT).collect()
    }
}
