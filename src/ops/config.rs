//! Changing a configuration file: only the value that is meant, every other byte stays.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Item, Table, value};

use super::Workspace;
use crate::env::Env;
use crate::error::Failure;
use crate::settings;

/// Which file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Project,
    User,
}

/// Where that file is.
pub(crate) fn file(env: &Env, workspace: Option<&Workspace>, place: Place) -> Result<PathBuf, Failure> {
    match (place, workspace) {
        (Place::Project, Some(workspace)) => Ok(workspace.folder.path.join("config.toml")),
        (Place::Project, None) => {
            Err(Failure::team("there is no team here").hint("`squad init` makes one, or use --user"))
        }
        (Place::User, _) => env.user_config().ok_or_else(|| {
            Failure::failed("there is no place for your own file: neither XDG_CONFIG_HOME nor HOME is set")
        }),
    }
}

/// Sets one value. The file is made where it is missing.
pub(crate) fn set(path: &Path, place: Place, name: &str, text: &str) -> Result<(), Failure> {
    let new = settings::from_text(name, text);
    settings::check(name, &new, place == Place::Project).map_err(Failure::usage)?;
    let failed = |error: io::Error| Failure::failed(format!("cannot write {}: {error}", path.display()));
    let old = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Failure::failed(format!("cannot read {}: {error}", path.display()))),
    };
    let changed = with(&old, name, &new).map_err(|reason| Failure::team(reason).at(path.display()))?;
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
    let (last, tables) = parts.split_last().ok_or("the name is empty")?;
    let mut table: &mut Table = document.as_table_mut();
    for part in tables {
        let item = table.entry(part).or_insert_with(|| {
            let mut inner = Table::new();
            inner.set_implicit(true);
            Item::Table(inner)
        });
        table = item.as_table_mut().ok_or_else(|| format!("`{part}` is no table in it"))?;
    }
    let mut item = plain(new);
    // The old value's spaces and its remark behind it stay.
    if let (Some(old), Some(item)) = (table.get(last).and_then(Item::as_value), item.as_value_mut()) {
        *item.decor_mut() = old.decor().clone();
    }
    table.insert(last, item);
    let changed = document.to_string();
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
