//! Changing a configuration file: only the value that is meant, every other byte stays.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Item, Table, TableLike, value};

use super::{Workspace, turn};
use crate::env::Env;
use crate::error::Failure;
use crate::settings;
use crate::store;

/// Which file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Project,
    User,
}

/// A configuration file that can be changed.
pub(crate) struct ConfigFile {
    place: Place,
    /// What it is called.
    pub(crate) path: PathBuf,
    /// Locked while it is read, changed and written.
    lock: PathBuf,
}

impl ConfigFile {
    pub(crate) fn find(env: &Env, workspace: Option<&Workspace>, place: Place) -> Result<Self, Failure> {
        match (place, workspace) {
            (Place::Project, Some(workspace)) => {
                let path = workspace.folder.path.join("config.toml");
                store::insist_on_own(&workspace.folder, &path).map_err(|reason| {
                    Failure::team(reason)
                        .at(path.display())
                        .hint("change the file it leads to, or put a file in its place")
                })?;
                Ok(Self { place, path, lock: workspace.local().join("config.lock") })
            }
            (Place::Project, None) => {
                Err(Failure::team("there is no team here").hint("`squad init` makes one, or use --user"))
            }
            (Place::User, _) => {
                let path = env.user_config().ok_or_else(|| {
                    Failure::failed("there is no place for your own file: neither XDG_CONFIG_HOME nor HOME is set")
                })?;
                Ok(Self { place, lock: path.with_extension("lock"), path })
            }
        }
    }

    /// Sets one value. The file is made where it is missing; where it is a link, the file it leads to is changed.
    pub(crate) fn set(&self, name: &str, text: &str) -> Result<(), Failure> {
        let new = settings::from_text(name, text);
        settings::check(name, &new, self.place == Place::Project).map_err(Failure::usage)?;
        let _turn = turn::take(&self.lock, "changing the configuration", None)?;
        let path = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        write(&path, name, &new)
    }
}

fn write(path: &Path, name: &str, new: &toml::Value) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::failed(format!("cannot write {}: {error}", path.display()));
    let old = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Failure::failed(format!("cannot read {}: {error}", path.display()))),
    };
    let changed = with(&old, name, new).map_err(|reason| Failure::team(reason).at(path.display()))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(failed)?;
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    file.write_all(changed.as_bytes()).map_err(failed)?;
    // A temporary file is its owner's alone; a configuration file keeps what it had.
    if let Ok(metadata) = fs::metadata(path) {
        fs::set_permissions(file.path(), metadata.permissions()).map_err(failed)?;
    }
    file.persist(path).map(drop).map_err(|error| failed(error.error))
}

/// The text with one value changed.
fn with(text: &str, name: &str, new: &toml::Value) -> Result<String, String> {
    let mark = if text.starts_with('\u{feff}') { "\u{feff}" } else { "" };
    let mut document: DocumentMut = text[mark.len()..]
        .parse()
        .map_err(|error: toml_edit::TomlError| format!("is not TOML: {}", error.message()))?;
    let mut parts: Vec<&str> = name.split('.').collect();
    // `models.roles.*` and its like: a name may hold dots of its own.
    if parts.len() > 3 && parts[0] == "models" {
        parts = name.splitn(3, '.').collect();
    }
    // A file of remarks only: they stay before what is new.
    let mut remarks = String::new();
    if document.as_table().is_empty() {
        document.set_trailing("");
        remarks = text[mark.len()..].to_owned();
        if !remarks.is_empty() && !remarks.ends_with('\n') {
            remarks.push('\n');
        }
    }
    let (last, tables) = parts.split_last().ok_or("the name is empty")?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for part in tables {
        let item = table.entry(part).or_insert_with(|| {
            let mut inner = Table::new();
            inner.set_implicit(true);
            Item::Table(inner)
        });
        table = item.as_table_like_mut().ok_or_else(|| format!("`{part}` is no table in it"))?;
    }
    let mut item = plain(new);
    match table.get_mut(last) {
        // The old value's spaces, its remark behind it and how its name is written stay.
        Some(old) => {
            if let (Some(old), Some(item)) = (old.as_value(), item.as_value_mut()) {
                *item.decor_mut() = old.decor().clone();
            }
            *old = item;
        }
        None => drop(table.insert(last, item)),
    }
    let changed = format!("{remarks}{document}");
    // toml_edit writes LF; a file with CRLF keeps it.
    let changed = if text.contains("\r\n") { changed.replace("\r\n", "\n").replace('\n', "\r\n") } else { changed };
    Ok(format!("{mark}{changed}"))
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

    #[test]
    fn only_the_value_changes() {
        let old = "# mine\n[models]\ndefault = \"a\"  # why\n\n[sessions]\nmax_concurrent=2\n";
        assert_eq!(with(old, "models.default", &text("b")), Ok(old.replace("\"a\"", "\"b\"")));
        let tight = "models={default=\"a\"}\nsessions.timeout=\"1m\"\n";
        assert_eq!(with(tight, "models.default", &text("b")), Ok(tight.replace("\"a\"", "\"b\"")));
        assert_eq!(with(tight, "sessions.timeout", &text("2m")), Ok(tight.replace("1m", "2m")));
        let windows = old.replace('\n', "\r\n");
        assert_eq!(with(&windows, "models.default", &text("b")), Ok(windows.replace("\"a\"", "\"b\"")));
    }

    #[test]
    fn what_is_missing_is_made() {
        assert_eq!(with("", "models.roles.a.b", &text("m")), Ok("[models.roles]\n\"a.b\" = \"m\"\n".to_owned()));
        assert_eq!(
            with("[engine]\nname = \"x\"\n", "engine.copilot.path", &text("/p")),
            Ok("[engine]\nname = \"x\"\n\n[engine.copilot]\npath = \"/p\"\n".to_owned())
        );
        assert!(
            with("models = 1\n", "models.default", &text("m")).is_err()
                && with("[", "models.default", &text("m")).is_err()
        );
    }
}
