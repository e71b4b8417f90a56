//! Changes one value of a configuration file, and no other byte.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use toml_edit::{Document, DocumentMut, Item, Key, Table, TableLike, TomlError, value};

use crate::env::{Env, real};
use crate::error::Failure;
use crate::model::DamageLog;
use crate::ops::Workspace;
use crate::ops::team::lock;
use crate::settings;
use crate::store;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Project,
    User,
}

/// A configuration file that can be changed.
pub(crate) struct ConfigFile {
    place: Place,
    pub(crate) path: PathBuf,
    /// The lock file, held while the configuration is read, changed and written.
    lock: PathBuf,
    /// Where a long wait for the lock is said.
    log: DamageLog,
}

impl ConfigFile {
    pub(crate) fn find(env: &Env, workspace: Option<&Workspace>, place: Place) -> Result<Self, Failure> {
        let log = env.damage.clone();
        match (place, workspace) {
            (Place::Project, Some(workspace)) => {
                let path = workspace.folder.path.join("config.toml");
                store::require_own(&workspace.folder, &path).map_err(|reason| {
                    Failure::team(reason)
                        .at(path.display())
                        .hint("change the file that it leads to, or replace the link by a file")
                })?;
                Ok(Self { place, path, lock: workspace.local().join("config.lock"), log })
            }
            (Place::Project, None) => {
                Err(Failure::team("there is no team here").hint("`squad init` makes one, or use --user"))
            }
            (Place::User, _) => {
                let path = env.user_config().ok_or_else(|| {
                    Failure::failed(
                        "cannot tell where your configuration file is: neither XDG_CONFIG_HOME nor HOME is set",
                    )
                })?;
                Ok(Self { place, lock: path.with_extension("lock"), path, log })
            }
        }
    }

    /// Sets one value. Creates the file if it is missing, and follows a link.
    pub(crate) fn set(&self, name: &str, text: &str) -> Result<(), Failure> {
        let new = settings::from_text(name, text);
        settings::check(name, &new, self.place == Place::Project).map_err(Failure::usage)?;
        self.change(name, Some(&new)).map(drop)
    }

    /// Removes one value, whether squad knows it or not, so that lower layers apply. Returns whether the file set it.
    pub(crate) fn unset(&self, name: &str) -> Result<bool, Failure> {
        self.change(name, None)
    }

    /// Adds items to a list, or begins it.
    pub(crate) fn add(&self, name: &str, items: &[String]) -> Result<(), Failure> {
        self.edit(name, |list| {
            let new = items.iter().filter(|item| !list.contains(item)).cloned().collect::<Vec<_>>();
            list.extend(new);
        })
        .map(drop)
    }

    /// Removes an item from a list, and the list with its last one. Returns whether it was there.
    pub(crate) fn remove(&self, name: &str, item: &str) -> Result<bool, Failure> {
        self.edit(name, |list| list.retain(|known| known != item))
    }

    /// Edits a list of strings. Returns whether it changed.
    fn edit(&self, name: &str, edit: impl FnOnce(&mut Vec<String>)) -> Result<bool, Failure> {
        let _lock = lock::acquire(&self.lock, "changing the configuration", &self.log, None)?;
        let path = real(&self.path);
        let text = fs::read_to_string(&path).unwrap_or_default();
        let (layer, _) = settings::from_toml(&text, |_| settings::Origin::Default);
        let value = layer.entries.into_iter().find(|(known, ..)| known == name).map(|(_, value, _)| value);
        let old: Vec<String> = value.and_then(|value| value.try_into().ok()).unwrap_or_default();
        let mut list = old.clone();
        edit(&mut list);
        let changed = list != old;
        if changed {
            let new = (!list.is_empty()).then(|| toml::Value::from(list));
            write(&path, &self.lock.with_extension("new"), name, new.as_ref())?;
        }
        Ok(changed)
    }

    /// Returns whether the file changed.
    fn change(&self, name: &str, new: Option<&toml::Value>) -> Result<bool, Failure> {
        let _lock = lock::acquire(&self.lock, "changing the configuration", &self.log, None)?;
        let path = real(&self.path);
        // The draft is outside of the work tree, so `git add` does not find it. A draft from a killed process is replaced.
        write(&path, &self.lock.with_extension("new"), name, new)
    }
}

fn write(path: &Path, draft: &Path, name: &str, new: Option<&toml::Value>) -> Result<bool, Failure> {
    let failed = |error: io::Error| Failure::failed(format!("cannot write {}: {error}", path.display()));
    let old = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Failure::failed(format!("cannot read {}: {error}", path.display()))),
    };
    let changed = with(&old, name, new).map_err(|reason| Failure::team(reason).at(path.display()))?;
    if changed == old {
        return Ok(false);
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(failed)?;
    match replace(path, draft, &changed) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            replace(path, &folder.join(".squad-config.tmp"), &changed)
        }
        answer => answer,
    }
    .map_err(failed)?;
    Ok(true)
}

/// The caller holds the lock, so no other process uses the draft.
fn replace(path: &Path, draft: &Path, text: &str) -> io::Result<()> {
    match fs::remove_file(draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = fs::File::create_new(draft)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| match fs::metadata(path) {
        Ok(metadata) => fs::set_permissions(draft, metadata.permissions()),
        Err(_) => Ok(()),
    });
    written.and_then(|()| file.sync_all()).and_then(|()| fs::rename(draft, path)).inspect_err(|_| {
        let _ = fs::remove_file(draft);
    })
}

/// The text with one value changed, or removed if `new` is `None`.
///
/// toml_edit changes an existing value well, but puts a new value before its table's comments and drops the comments above
/// a removed one. So adding and removing edit whole lines instead.
fn with(text: &str, name: &str, new: Option<&toml::Value>) -> Result<String, String> {
    let mark = if text.starts_with('\u{feff}') { "\u{feff}" } else { "" };
    let old = &text[mark.len()..];
    // In names such as `models.roles.a.b`, the last part may contain dots.
    let limit = if name.starts_with("models.") || name.starts_with("policy.kept.") { 3 } else { usize::MAX };
    let parts: Vec<&str> = name.splitn(limit, '.').collect();
    let changed = match new {
        Some(new) => {
            let is_set = |text: &String| {
                Document::parse(text.as_str()).is_ok_and(|set| value_at(set.as_table(), &parts).is_some())
            };
            match with_line(old, &parts, new)?.filter(is_set) {
                Some(changed) => changed,
                None => with_value(old, &parts, new)?,
            }
        }
        None => without(old, &parts)?,
    };
    // Keep CRLF line endings.
    let changed = if text.contains("\r\n") { changed.replace("\r\n", "\n").replace('\n', "\r\n") } else { changed };
    Ok(format!("{mark}{changed}"))
}

fn not_toml(error: &TomlError) -> String {
    format!("is not TOML: {}", error.message())
}

fn item_at<'t>(root: &'t Table, parts: &[&str]) -> Option<&'t Item> {
    let (first, rest) = parts.split_first()?;
    rest.iter().try_fold(root.get(first)?, |item, part| item.as_table_like()?.get(part))
}

fn value_at<'t>(root: &'t Table, parts: &[&str]) -> Option<&'t Item> {
    item_at(root, parts).filter(|item| item.is_value())
}

/// Adds a line for a new value: in place of its commented-out line, or at the end of its table. `None`: the value is set
/// already, or its table has no header.
fn with_line(text: &str, parts: &[&str], new: &toml::Value) -> Result<Option<String>, String> {
    let document = Document::parse(text).map_err(|error| not_toml(&error))?;
    let root = document.as_table();
    let Some((last, tables)) = parts.split_last() else { return Ok(None) };
    if tables.is_empty() || value_at(root, parts).is_some() {
        return Ok(None);
    }
    let line = format!("{} = {}\n", Key::new(*last), plain(new));
    let Some(item) = item_at(root, tables) else {
        let path: Vec<String> = tables.iter().map(|part| Key::new(*part).to_string()).collect();
        let gap = match text {
            "" => "",
            _ if text.ends_with('\n') => "\n",
            _ => "\n\n",
        };
        return Ok(Some(format!("{text}{gap}[{}]\n{line}", path.join("."))));
    };
    let Some(start) = item.as_table().filter(|table| !table.is_dotted()).and_then(Table::span) else { return Ok(None) };
    let mut headers = Vec::new();
    header_starts(root, &mut headers);
    let end = headers.into_iter().filter(|next| *next > start.start).min().unwrap_or(text.len());
    let (before, section, after) = (&text[..start.start], &text[start.start..end], &text[end..]);
    let lines: Vec<&str> = section.split_inclusive('\n').collect();
    let (kept, replaced) = match lines.iter().position(|line| is_commented_out(line, last)) {
        Some(at) => (at, 1),
        None => (end_of_table(&lines, !after.is_empty()), 0),
    };
    let mut head = format!("{before}{}", lines[..kept].concat());
    if !head.ends_with('\n') {
        head.push('\n');
    }
    Ok(Some(format!("{head}{line}{}{after}", lines[kept + replaced..].concat())))
}

/// Collects the offset of each table's header.
fn header_starts(table: &Table, starts: &mut Vec<usize>) {
    for (_, item) in table {
        let tables: Vec<&Table> = match item {
            Item::Table(table) => vec![table],
            Item::ArrayOfTables(tables) => tables.iter().collect(),
            _ => continue,
        };
        for table in tables {
            starts.extend(table.span().map(|span| span.start));
            header_starts(table, starts);
        }
    }
}

/// Whether a line is `# key = …`.
fn is_commented_out(line: &str, key: &str) -> bool {
    let text = line.trim_start().strip_prefix('#').and_then(|comment| comment.split_once('='));
    text.is_some_and(|(name, _)| name.trim().trim_matches(['"', '\'']) == key)
}

/// The number of lines that belong to a section's table. Comments directly above the next header belong to that header.
fn end_of_table(lines: &[&str], is_followed: bool) -> usize {
    let is_comment = |line: &&&str| line.trim_start().starts_with('#');
    let comments = if is_followed { lines.iter().rev().take_while(is_comment).count() } else { 0 };
    let blank = lines[..lines.len() - comments].iter().rev().take_while(|line| line.trim().is_empty()).count();
    lines.len() - comments - blank
}

/// Sets the value with toml_edit. Keeps the old value's spacing and trailing comment, and the spelling of its name.
fn with_value(text: &str, parts: &[&str], new: &toml::Value) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|error| not_toml(&error))?;
    let (last, tables) = parts.split_last().ok_or("the name is empty")?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for part in tables {
        let item = table.entry(part).or_insert_with(|| Item::Table(Table::new()));
        table = item.as_table_like_mut().ok_or_else(|| format!("`{part}` is not a table"))?;
    }
    let mut item = plain(new);
    match table.get_mut(last) {
        Some(old) => {
            if let (Some(old), Some(item)) = (old.as_value(), item.as_value_mut()) {
                *item.decor_mut() = old.decor().clone();
            }
            *old = item;
        }
        None => drop(table.insert(last, item)),
    }
    Ok(document.to_string())
}

/// Removes a value with its line. Below a comment the line is commented out instead, so that the comment is still about
/// something; one with a secret is removed all the same.
fn without(text: &str, parts: &[&str]) -> Result<String, String> {
    let document = Document::parse(text).map_err(|error| not_toml(&error))?;
    let Some(span) = value_at(document.as_table(), parts).and_then(Item::span) else { return Ok(text.to_owned()) };
    let start = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[span.end..].find('\n').map_or(text.len(), |at| span.end + at + 1);
    let rest = format!("{}{}", &text[..start], &text[end..]);
    // An inline table may hold more than this value, on one line or several.
    let is_alone = !text[start..end].contains('{') && Document::parse(rest.as_str()).is_ok();
    let comment = text[..start].lines().next_back().and_then(|line| line.trim_start().strip_prefix('#'));
    // Another value that is commented out is about itself.
    let is_explained =
        comment.is_some_and(|comment| comment.trim().is_empty() || comment.parse::<DocumentMut>().is_err());
    if is_alone && is_explained && !settings::is_confidential(&parts.join(".")) {
        let commented_out = text[start..end].split_inclusive('\n').map(|line| format!("# {line}"));
        return Ok(format!("{}{}{}", &text[..start], commented_out.collect::<String>(), &text[end..]));
    }
    if is_alone {
        return Ok(rest);
    }
    let mut document: DocumentMut = text.parse().map_err(|error| not_toml(&error))?;
    let (last, tables) = parts.split_last().ok_or("the name is empty")?;
    let mut table: Option<&mut dyn TableLike> = Some(document.as_table_mut());
    for part in tables {
        table = table.and_then(|table| table.get_mut(part)).and_then(Item::as_table_like_mut);
    }
    table.and_then(|table| table.remove(last));
    Ok(document.to_string())
}

fn plain(new: &toml::Value) -> Item {
    match new {
        toml::Value::Integer(number) => value(*number),
        toml::Value::Float(number) => value(*number),
        toml::Value::Boolean(flag) => value(*flag),
        toml::Value::Array(items) => value(items.iter().filter_map(toml::Value::as_str).collect::<toml_edit::Array>()),
        other => value(other.as_str().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> toml::Value {
        toml::Value::String(value.to_owned())
    }

    fn set(old: &str, name: &str, value: &str) -> String {
        let new = with(old, name, Some(&text(value))).expect("TOML");
        let document: DocumentMut = new.trim_start_matches('\u{feff}').parse().expect("TOML");
        let mut parts: Vec<&str> = name.splitn(3, '.').collect();
        if !name.starts_with("models.roles") {
            parts = name.split('.').collect();
        }
        assert_eq!(value_at(document.as_table(), &parts).and_then(Item::as_str), Some(value), "{new}");
        new
    }

    fn unset(old: &str, name: &str) -> String {
        with(old, name, None).expect("TOML")
    }

    #[test]
    fn only_the_value_changes() {
        let old = "# mine\n[models]\ndefault = \"a\"  # why\n\n[sessions]\nmax_concurrent=2\n";
        assert_eq!(set(old, "models.default", "b"), old.replace("\"a\"", "\"b\""));
        let tight = "models={default=\"a\"}\nsessions.timeout=\"1m\"\n";
        assert_eq!(set(tight, "models.default", "b"), tight.replace("\"a\"", "\"b\""));
        assert_eq!(set(tight, "sessions.timeout", "2m"), tight.replace("1m", "2m"));
        let windows = old.replace('\n', "\r\n");
        assert_eq!(set(&windows, "models.default", "b"), windows.replace("\"a\"", "\"b\""));
        let marked = format!("\u{feff}{old}");
        assert_eq!(set(&marked, "models.default", "b"), marked.replace("\"a\"", "\"b\""));
    }

    /// A file in the style that `squad init` writes.
    const COMMENTED: &str = "\
# Ours.

[models]
# The model of an agent whose charter names none:
# default = \"sonnet\"
# For small questions:
#lightweight = \"haiku\"

# How sessions go.
[sessions]
# timeout = \"5m\"
";

    #[test]
    fn a_commented_out_value_is_replaced() {
        let old = COMMENTED;
        assert_eq!(set(old, "models.default", "b"), old.replace("# default = \"sonnet\"", "default = \"b\""));
        assert_eq!(set(old, "models.lightweight", "b"), old.replace("#lightweight = \"haiku\"", "lightweight = \"b\""));
        assert_eq!(set(old, "sessions.timeout", "2m"), old.replace("# timeout = \"5m\"", "timeout = \"2m\""));
        let windows = old.replace('\n', "\r\n");
        assert_eq!(
            set(&windows, "models.default", "b"),
            windows.replace("# default = \"sonnet\"", "default = \"b\""),
            "line ends stay"
        );
    }

    #[test]
    fn what_is_set_and_unset_again_leaves_the_file_as_it_was() {
        let old = COMMENTED.replace("#lightweight", "# lightweight");
        for (name, value) in [("models.default", "sonnet"), ("models.lightweight", "haiku")] {
            assert_eq!(unset(&set(&old, name, value), name), old, "{name}");
        }
        assert_eq!(unset(&set(&old, "sessions.core", "b"), "sessions.core"), old, "below another value's comment");
    }

    #[test]
    fn a_new_key_goes_to_the_end_of_its_table() {
        let old = COMMENTED;
        assert_eq!(set(old, "models.premium", "b"), old.replace("\"haiku\"\n", "\"haiku\"\npremium = \"b\"\n"));
        assert_eq!(set(old, "sessions.core", "b"), format!("{old}core = \"b\"\n"));
        let unended = old.trim_end();
        assert_eq!(set(unended, "sessions.core", "b"), format!("{old}core = \"b\"\n"));
        let tight = "[models]\n[sessions]\n";
        assert_eq!(set(tight, "models.default", "b"), "[models]\ndefault = \"b\"\n[sessions]\n");
        let quoted = "[models]\nnote = \"\"\"\n# default = 1\n[x]\n\"\"\"\n[x]\n";
        set(quoted, "models.premium", "b");
        set(quoted, "models.default", "b");
    }

    #[test]
    fn uncommenting_a_value_afterwards_works() {
        let new = set(COMMENTED, "models.roles.lead", "b");
        assert_eq!(new, format!("{COMMENTED}\n[models.roles]\nlead = \"b\"\n"));
        let followed = new.replace("# default", "default");
        let document: DocumentMut = followed.parse().expect("TOML");
        assert_eq!(document["models"]["default"].as_str(), Some("sonnet"));
    }

    #[test]
    fn a_missing_table_is_made() {
        assert_eq!(set("", "models.roles.a.b", "m"), "[models.roles]\n\"a.b\" = \"m\"\n");
        assert_eq!(
            set("[engine]\nname = \"x\"", "engine.copilot.path", "/p"),
            "[engine]\nname = \"x\"\n\n[engine.copilot]\npath = \"/p\"\n"
        );
        set("engine = {name = \"x\"}\n", "engine.copilot.path", "/p");
        set("engine.name = \"x\"\n", "engine.copilot.path", "/p");
        set("[engine.copilot]\npath = \"x\"\n", "engine.name", "/p");
        assert!(with("models = 1\n", "models.default", Some(&text("m"))).is_err());
        assert!(with("[", "models.default", Some(&text("m"))).is_err());
    }

    #[test]
    fn a_value_is_removed_with_its_line() {
        let old = "# a\n[models]\n# why\ndefault = \"a\"  # because\npremium = \"b\"\n";
        assert_eq!(unset(old, "models.default"), old.replace("default =", "# default ="));
        assert_eq!(unset(old, "models.premium"), old.replace("premium = \"b\"\n", ""));
        let secret = "[mcp.servers.a.env]\n# mine\nTOKEN = \"s3cret\"\n";
        assert_eq!(unset(secret, "mcp.servers.a.env.TOKEN"), "[mcp.servers.a.env]\n# mine\n");
        assert_eq!(
            unset("[engine]\n# why\nfallback = [\n  \"a\",\n]\n", "engine.fallback"),
            "[engine]\n# why\n# fallback = [\n#   \"a\",\n# ]\n"
        );
        assert_eq!(unset(old, "models.lightweight"), old);
        assert_eq!(unset("sessions.timeout = \"1m\"\n", "sessions.timeout"), "");
        assert_eq!(unset("[engine]\nfallback = [\n  \"a\",\n]\n", "engine.fallback"), "[engine]\n");
        let inline = unset("models = {default = \"a\", premium = \"b\"}\n", "models.default");
        assert!(!inline.contains("default") && inline.contains("premium = \"b\""), "{inline}");
        assert_eq!(unset("models = {default = \"a\"}\n", "models.default").trim(), "models = {}");
        assert!(with("[", "models.default", None).is_err());
    }
}
