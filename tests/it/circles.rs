//! Files inside a module form no circle: whoever reads one can read what it uses first, and be done.
//!
//! A file uses another where its `use` lines, or paths in its code, lead to something that is defined there; what a
//! module re-exports counts as used from the file that defines it. A module and the files below it belong together, so
//! what they use of each other does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use regex::Regex;

/// A module by the names that lead to it from the crate's root.
type Module = Vec<String>;

struct Import {
    path: Vec<String>,
    name: String,
    is_public: bool,
}

#[derive(Default)]
struct File {
    imports: Vec<Import>,
    /// Paths in the code itself.
    paths: Vec<Vec<String>>,
}

struct House(BTreeMap<Module, File>);

impl House {
    fn read() -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut files = Vec::new();
        super::house::files(&source, &mut files);
        let mut house = BTreeMap::new();
        for path in files {
            let inner = path.strip_prefix(&source).expect("below src").with_extension("");
            let mut module: Module = inner.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            if module.last().is_some_and(|name| ["mod", "lib", "main"].contains(&name.as_str())) {
                module.pop();
            }
            if !module.is_empty() && !module.iter().any(|name| name.contains("test")) {
                house.insert(module, File::read(&fs::read_to_string(&path).expect("a source file")));
            }
        }
        Self(house)
    }

    /// The file that defines what a path in `module` leads to. `None`: it is not ours.
    fn definition(&self, path: &[String], module: &Module, depth: usize) -> Option<Module> {
        let mut at = module.clone();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => {
                at.clear();
                rest = &path[1..];
            }
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|name| name == "super") {
                    at.pop();
                    rest = &rest[1..];
                }
            }
            first if self.0.contains_key(&joined(module, first)) => {}
            _ => return None,
        }
        while let Some(below) = rest.first().map(|name| joined(&at, name)).filter(|below| self.0.contains_key(below)) {
            at = below;
            rest = &rest[1..];
        }
        let file = self.0.get(&at)?;
        let imported = rest.first().and_then(|name| file.imports.iter().find(|import| import.name == *name));
        let further = imported.filter(|_| depth > 0).and_then(|import| self.definition(&import.path, &at, depth - 1));
        Some(further.unwrap_or(at))
    }

    /// The files that each file uses.
    fn uses(&self) -> BTreeMap<&Module, BTreeSet<Module>> {
        let of = |(module, file): (&'_ Module, &File)| {
            let imports = file.imports.iter().filter(|import| !import.is_public).map(|import| &import.path);
            let found = imports.chain(&file.paths).filter_map(|path| self.definition(path, module, 8));
            found.filter(|other| !other.starts_with(module) && !module.starts_with(other)).collect()
        };
        self.0.iter().map(|(module, file)| (module, of((module, file)))).collect()
    }
}

impl File {
    fn read(text: &str) -> Self {
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let text = lines.join("\n");
        let line = Regex::new(r"(?m)^\s*(pub(?:\([^)]*\))? )?use ([^;]+);").expect("a pattern");
        let mut imports = Vec::new();
        for found in line.captures_iter(&text) {
            expand(&found[2], &[], found.get(1).is_some(), &mut imports);
        }
        let code = line.replace_all(&text, "");
        let path = Regex::new(r"\b[a-z_]\w*(?:::\w+)+").expect("a pattern");
        let paths = path.find_iter(&code).map(|found| found.as_str().split("::").map(str::to_owned).collect());
        Self { imports, paths: paths.collect() }
    }
}

/// `a::{b, c::{self, d as e}}` as single paths.
fn expand(tree: &str, prefix: &[String], is_public: bool, into: &mut Vec<Import>) {
    let tree = tree.trim();
    let segments = |text: &str| -> Vec<String> {
        let parts = text.split("::").map(str::trim).filter(|part| !part.is_empty());
        prefix.iter().cloned().chain(parts.map(str::to_owned)).collect()
    };
    if let Some((before, group)) = tree.split_once('{') {
        let prefix = segments(before);
        let group = group.trim_end().strip_suffix('}').unwrap_or(group);
        let (mut depth, mut start) = (0, 0);
        for (at, c) in group.char_indices().chain([(group.len(), ',')]) {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    expand(&group[start..at], &prefix, is_public, into);
                    start = (at + 1).min(group.len());
                }
                _ => {}
            }
        }
        return;
    }
    let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(path, alias)| (path, Some(alias.trim())));
    let mut path = segments(path);
    if path.len() > 1 && path.last().is_some_and(|name| name == "self") {
        path.pop();
    }
    let Some(name) = alias.map(str::to_owned).or_else(|| path.last().cloned()) else { return };
    into.push(Import { path, name, is_public });
}

fn joined(module: &[String], name: &str) -> Module {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

#[test]
fn files_form_no_circle() {
    let house = House::read();
    let uses = house.uses();
    assert!(uses.values().map(BTreeSet::len).sum::<usize>() > 500, "the code uses itself more than that");
    // What uses nothing that is left goes, again and again; whatever stays is in a circle or uses one.
    let mut left = uses;
    loop {
        let before = left.len();
        let names: BTreeSet<Module> = left.keys().map(|module| (*module).clone()).collect();
        left.retain(|_, used| used.iter().any(|other| names.contains(other)));
        if left.len() == before {
            break;
        }
    }
    let shown: Vec<String> = left
        .iter()
        .map(|(module, used)| {
            let used: Vec<String> =
                used.iter().filter(|other| left.contains_key(other)).map(|other| other.join("/")).collect();
            format!("{} uses {}", module.join("/"), used.join(", "))
        })
        .collect();
    assert!(shown.is_empty(), "files in circles, and those that use them:\n{}", shown.join("\n"));
}
