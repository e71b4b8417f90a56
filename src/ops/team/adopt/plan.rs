//! What becomes of each file.

use std::collections::BTreeSet;

use serde::Serialize;

use super::files::ToolFiles;
use super::known::Known;
use crate::edit::{swap_servers, with_folder_renamed, without_hidden_decisions};
use crate::ops::team::changeset::FileChange;
use crate::ops::team::hosts::{PROMPT, PROMPT_TEXT};
use crate::store;

/// Folders whose files are all the other tool's.
const TEMPLATES: [&str; 2] = [".squad-templates/", ".ai-team-templates/"];

/// Where MCP servers are named.
const SERVERS: [&str; 4] = [".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json", ".copilot/mcp-config.json"];

/// A file of the other tool's that stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Left {
    pub(crate) path: String,
    pub(crate) why: String,
}

/// What becomes of the files, with paths from the repository's root.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) changes: Vec<FileChange>,
    pub(super) left: Vec<Left>,
    /// MCP servers that become squad's, by file and name.
    pub(super) servers: Vec<String>,
    /// Lines of `.gitignore` that hid decisions.
    pub(super) lifted: Vec<String>,
}

impl Plan {
    /// `folder` is the team's.
    pub(super) fn new(files: &ToolFiles, folder: &str, known: &Known) -> Self {
        let mut plan = Self::default();
        let removed = plan.removals(files, known);
        plan.prompt(files, known);
        plan.servers(files);
        plan.ignored(files, folder);
        plan.moves(files, folder, &removed);
        plan.changes.sort_by(|one, other| one.path.cmp(&other.path));
        plan.left.sort_by(|one, other| one.path.cmp(&other.path));
        plan
    }

    /// Takes out what a release of the other tool installs, but for the team's own files and what people's files use.
    fn removals(&mut self, files: &ToolFiles, known: &Known) -> BTreeSet<String> {
        let mut removed = BTreeSet::new();
        let users: Vec<(&String, String)> = files
            .texts
            .iter()
            .filter(|(path, bytes)| may_use_templates(path) && !known.has(bytes))
            .map(|(path, bytes)| (path, String::from_utf8_lossy(bytes).into_owned()))
            .collect();
        for (path, bytes) in files.texts.iter().filter(|(path, _)| is_installed(path)) {
            let user = || users.iter().find(|(user, text)| *user != path && text.contains(path.as_str()));
            let why = match known.has(bytes) {
                false if !is_the_tools(path) => continue,
                false => "not as a known release installs it".to_owned(),
                true => match user() {
                    Some((user, _)) => format!("{} uses it", files.full(user)),
                    None => {
                        removed.insert(path.clone());
                        self.changes.push(change(files, path, None));
                        continue;
                    }
                },
            };
            self.left.push(Left { path: files.full(path), why });
        }
        removed
    }

    fn prompt(&mut self, files: &ToolFiles, known: &Known) {
        match files.texts.get(PROMPT) {
            Some(bytes) if known.has(bytes) => {
                self.changes.push(change(files, PROMPT, Some(PROMPT_TEXT.as_bytes().to_owned())))
            }
            Some(bytes) if bytes != PROMPT_TEXT.as_bytes() => {
                let why = "not as a known release installs it; delete it, or replace it by squad's own".to_owned();
                self.left.push(Left { path: files.full(PROMPT), why });
            }
            _ => {}
        }
    }

    fn servers(&mut self, files: &ToolFiles) {
        for path in SERVERS {
            if files.other.iter().any(|other| other == path) {
                let why = "a link or no plain file: look for the other tool's MCP server in it by hand".to_owned();
                self.left.push(Left { path: files.full(path), why });
            }
            let Some(Ok(text)) = files.texts.get(path).map(|bytes| std::str::from_utf8(bytes)) else { continue };
            match swap_servers(text) {
                Some((swapped, names)) => {
                    self.changes.push(change(files, path, Some(swapped.into_bytes())));
                    self.servers.extend(names.iter().map(|name| format!("{}: {name}", files.full(path))));
                }
                None if text.contains("squad_state") => {
                    let why = "it names the other tool's MCP server where squad cannot change it: by hand".to_owned();
                    self.left.push(Left { path: files.full(path), why });
                }
                None => {}
            }
        }
    }

    fn ignored(&mut self, files: &ToolFiles, folder: &str) {
        for path in [".gitignore", ".gitattributes"] {
            let Some(Ok(text)) = files.texts.get(path).map(|bytes| std::str::from_utf8(bytes)) else { continue };
            let (mut new, mut lines) = (text.to_owned(), Vec::new());
            if path == ".gitignore" {
                (new, lines) = without_hidden_decisions(text);
            }
            if folder != store::FOLDERS[0] {
                new = with_folder_renamed(&new, folder, store::FOLDERS[0]);
            }
            if new != text {
                self.lifted.extend(lines.iter().map(|line| format!("{}:{line}", files.full(path))));
                self.changes.push(change(files, path, Some(new.into_bytes())));
            }
        }
    }

    /// The files of a folder with the old name go to the new one, as they are.
    fn moves(&mut self, files: &ToolFiles, folder: &str, removed: &BTreeSet<String>) {
        let old = store::FOLDERS[1];
        let inner = |path: &str| path.strip_prefix(old)?.strip_prefix('/').map(str::to_owned);
        let staying = files.texts.iter().filter(|(path, _)| !removed.contains(*path));
        if folder != old {
            let unused = staying.filter(|(path, _)| inner(path).is_some()).count();
            if unused > 0 {
                let why = format!("not used: `{folder}/` is the team; move what you still need and delete it");
                self.left.retain(|left| inner(&left.path).is_none());
                self.left.push(Left { path: files.full(&format!("{old}/")), why });
            }
            return;
        }
        for (path, bytes) in staying {
            let Some(rest) = inner(path) else { continue };
            let (bytes, executable) = (Some(bytes.clone()), files.executables.contains(path));
            let (path, from) = (files.full(&format!("{}/{rest}", store::FOLDERS[0])), files.full(path));
            self.left.iter_mut().filter(|left| left.path == from).for_each(|left| left.path.clone_from(&path));
            self.changes.push(FileChange { path, from: Some(from), old: bytes.clone(), new: bytes, executable });
        }
        for path in files.other.iter().filter(|path| inner(path).is_some()) {
            let why = format!("a link or a very large file: move it to `{}/` with `git mv`", store::FOLDERS[0]);
            self.left.push(Left { path: files.full(path), why });
        }
    }
}

fn change(files: &ToolFiles, path: &str, new: Option<Vec<u8>>) -> FileChange {
    let old = files.texts.get(path).cloned();
    FileChange { executable: files.executables.contains(path), ..FileChange::new(files.full(path), old, new) }
}

/// A path from the team's folder, of either name.
pub(super) fn in_team(path: &str) -> Option<&str> {
    store::FOLDERS.iter().find_map(|folder| path.strip_prefix(folder)?.strip_prefix('/'))
}

/// Whether the other tool installs files there that neither squad nor that tool's own checks need.
fn is_installed(path: &str) -> bool {
    if let Some(inner) = in_team(path) {
        return match inner.split_once('/') {
            None => !store::is_team_file(inner),
            Some((folder, _)) => ["templates", "skills"].contains(&folder),
        };
    }
    const FOLDERS: [&str; 3] = [".github/workflows/", ".github/skills/", ".copilot/"];
    TEMPLATES.iter().chain(&FOLDERS).any(|folder| path.starts_with(folder)) || path == "squad.config.ts"
}

/// Whether a file there is the other tool's, even where somebody has changed it.
fn is_the_tools(path: &str) -> bool {
    const WORKFLOWS: &str = ".github/workflows/";
    let is_template = in_team(path).is_some_and(|inner| inner.starts_with("templates/"));
    let is_workflow = path.strip_prefix(WORKFLOWS).is_some_and(|name| {
        name.starts_with("squad-") && name != "squad-review.yml" || name == "sync-squad-labels.yml"
    });
    is_template || is_workflow || TEMPLATES.iter().any(|folder| path.starts_with(folder)) || path == "squad.config.ts"
}

/// Whether a file says what is to be done, so that a template that it names is needed. Records only tell what was.
fn may_use_templates(path: &str) -> bool {
    path == PROMPT
        || path.starts_with(".github/")
        || in_team(path).is_some_and(|inner| {
            ["team.md", "routing.md", "ceremonies.md"].contains(&inner)
                || inner.starts_with("skills/")
                || inner.ends_with("/charter.md")
        })
}
