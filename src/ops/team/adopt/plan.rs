//! Decides what to do with each file.

use std::collections::BTreeSet;

use super::Adopted;
use super::files::ToolFiles;
use crate::edit::{swap_servers, with_folder_renamed, without_hidden_decisions};
use crate::model::{SkippedFile, Sort};
use crate::ops::change::FileChange;
use crate::ops::team::ci;
use crate::ops::team::hosts::{PROMPT, PROMPT_TEXT};
use crate::ops::team::known_files::KnownFiles;
use crate::store;

/// Folders that contain only files of the other tool.
const TEMPLATES: [&str; 2] = [".squad-templates/", ".ai-team-templates/"];

/// Configuration files of MCP servers.
const SERVERS: [&str; 4] = [".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json", ".copilot/mcp-config.json"];

/// The changes of an adoption, with paths from the repository's root.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) changes: Vec<FileChange>,
    /// What the changes are about.
    pub(super) adopted: Adopted,
}

impl Plan {
    /// `folder` is the team's folder.
    pub(super) fn new(files: &ToolFiles, folder: &str, known: &KnownFiles) -> Self {
        let mut plan = Self::default();
        let edited = coordination(files).find(|path| !is_replaceable(files, path, known));
        let removed = plan.removals(files, known, edited);
        plan.prompt(files, known, edited);
        plan.servers(files);
        plan.git_files(files, folder);
        plan.moves(files, folder, &removed);
        plan.changes.stable_sort_by(|one, other| one.path.cmp(&other.path));
        plan.adopted.skipped.stable_sort_by(|one, other| one.path.cmp(&other.path));
        plan
    }

    /// Removes unchanged files that the other tool installed, unless another file uses them. Workflows stay if some part
    /// of the coordination was edited.
    fn removals(&mut self, files: &ToolFiles, known: &KnownFiles, edited: Option<&str>) -> BTreeSet<String> {
        let mut removed = BTreeSet::new();
        let users: Vec<(&String, String)> = files
            .texts
            .iter()
            .filter(|(path, bytes)| may_use_templates(path) && !known.contains(bytes))
            .map(|(path, bytes)| (path, String::from_utf8_lossy(bytes).into_owned()))
            .collect();
        for (path, bytes) in files.texts.iter().filter(|(path, _)| is_installed(path)) {
            let user = || users.iter().find(|(user, text)| *user != path && text.contains(path.as_str()));
            let why = match known.contains(bytes) {
                false if !belongs_to_tool(path) => continue,
                false => "no known release installs this version of it".to_owned(),
                true => match (user(), edited.filter(|_| is_workflow(path))) {
                    (_, Some(edited)) => format!("it works with {}, which was edited", files.full(edited)),
                    (Some((user, _)), None) => format!("{} uses it", files.full(user)),
                    (None, None) => {
                        removed.insert(path.clone());
                        self.changes.push(change(files, path, None));
                        if is_workflow(path) && ci::reacts_to(&String::from_utf8_lossy(bytes), "issues") {
                            self.adopted.triage.push(files.full(path));
                        }
                        continue;
                    }
                },
            };
            self.adopted.skipped.push(SkippedFile { path: files.full(path), why });
        }
        removed
    }

    fn prompt(&mut self, files: &ToolFiles, known: &KnownFiles, edited: Option<&str>) {
        match files.texts.get(PROMPT) {
            Some(bytes) if known.contains(bytes) && edited.is_some() => {
                let edited = files.full(edited.unwrap_or_default());
                let why = format!("it works with {edited}, which was edited");
                self.adopted.skipped.push(SkippedFile { path: files.full(PROMPT), why });
            }
            Some(bytes) if known.contains(bytes) => {
                self.changes.push(change(files, PROMPT, Some(PROMPT_TEXT.as_bytes().to_owned())))
            }
            Some(bytes) if bytes != PROMPT_TEXT.as_bytes() => {
                let why = "no known release installs this version of it; delete it, or replace it with squad's own"
                    .to_owned();
                self.adopted.skipped.push(SkippedFile { path: files.full(PROMPT), why });
            }
            _ => {}
        }
    }

    fn servers(&mut self, files: &ToolFiles) {
        for path in SERVERS {
            if files.other.iter().any(|other| other == path) {
                let why = "not a regular file: replace the other tool's MCP server in it by hand".to_owned();
                self.adopted.skipped.push(SkippedFile { path: files.full(path), why });
            }
            let Some(Ok(text)) = files.texts.get(path).map(|bytes| std::str::from_utf8(bytes)) else { continue };
            match swap_servers(text) {
                Some((swapped, names)) => {
                    self.changes.push(change(files, path, Some(swapped.into_bytes())));
                    self.adopted.servers.extend(names.iter().map(|name| format!("{}: {name}", files.full(path))));
                }
                None if text.contains("squad_state") => {
                    let why = "it names the other tool's MCP server in a form squad cannot edit: change it by hand"
                        .to_owned();
                    self.adopted.skipped.push(SkippedFile { path: files.full(path), why });
                }
                None => {}
            }
        }
    }

    /// Changes `.gitignore` and `.gitattributes`.
    fn git_files(&mut self, files: &ToolFiles, folder: &str) {
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
                self.adopted.unignored.extend(lines.iter().map(|line| format!("{}:{line}", files.full(path))));
                self.changes.push(change(files, path, Some(new.into_bytes())));
            }
        }
    }

    /// Moves the files of a folder with the old name to the new one.
    fn moves(&mut self, files: &ToolFiles, folder: &str, removed: &BTreeSet<String>) {
        let old = store::FOLDERS[1];
        let inner = |path: &str| path.strip_prefix(old)?.strip_prefix('/').map(str::to_owned);
        let remaining = files.texts.iter().filter(|(path, _)| !removed.contains(*path));
        if folder != old {
            let unused = remaining.filter(|(path, _)| inner(path).is_some()).count();
            if unused > 0 {
                let why = format!("not used: the team is in `{folder}/`; move what you still need and delete the rest");
                self.adopted.skipped.retain(|file| inner(&file.path).is_none());
                self.adopted.skipped.push(SkippedFile { path: files.full(&format!("{old}/")), why });
            }
            return;
        }
        for (path, bytes) in remaining {
            let Some(rest) = inner(path) else { continue };
            let (bytes, executable) = (Some(bytes.clone()), files.executables.contains(path));
            let (path, from) = (files.full(&format!("{}/{rest}", store::FOLDERS[0])), files.full(path));
            self.adopted
                .skipped
                .iter_mut()
                .filter(|file| file.path == from)
                .for_each(|file| file.path.clone_from(&path));
            self.changes.push(FileChange { path, from: Some(from), old: bytes.clone(), new: bytes, executable });
        }
        for path in files.other.iter().filter(|path| inner(path).is_some()) {
            let why = format!("a link or a very large file: move it to `{}/` with `git mv`", store::FOLDERS[0]);
            self.adopted.skipped.push(SkippedFile { path: files.full(path), why });
        }
    }
}

fn change(files: &ToolFiles, path: &str, new: Option<Vec<u8>>) -> FileChange {
    let old = files.texts.get(path).cloned();
    FileChange { executable: files.executables.contains(path), ..FileChange::new(files.full(path), old, new) }
}

/// A path inside a team folder of either name, relative to it.
pub(super) fn in_team(path: &str) -> Option<&str> {
    store::FOLDERS.iter().find_map(|folder| path.strip_prefix(folder)?.strip_prefix('/'))
}

/// Whether the other tool installs files at this path that neither squad nor the tool's own checks need.
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

/// The files that give issues to agents: the coordinator's prompt and the workflows. They name each other, so they are
/// taken over together or not at all.
fn coordination(files: &ToolFiles) -> impl Iterator<Item = &str> {
    files.texts.keys().map(String::as_str).filter(|path| *path == PROMPT || is_workflow(path))
}

/// Whether squad may replace or remove this part of the coordination.
fn is_replaceable(files: &ToolFiles, path: &str, known: &KnownFiles) -> bool {
    let is_own = |bytes: &Vec<u8>| path == PROMPT && bytes == PROMPT_TEXT.as_bytes();
    files.texts.get(path).is_none_or(|bytes| known.contains(bytes) || is_own(bytes))
}

/// Whether this is one of the other tool's workflows, edited or not.
fn is_workflow(path: &str) -> bool {
    path.strip_prefix(".github/workflows/")
        .is_some_and(|name| name.starts_with("squad-") && name != "squad-review.yml" || name == "sync-squad-labels.yml")
}

/// Whether a file at this path belongs to the other tool even if it was edited.
fn belongs_to_tool(path: &str) -> bool {
    let is_template = in_team(path).is_some_and(|inner| inner.starts_with("templates/"));
    is_template
        || is_workflow(path)
        || TEMPLATES.iter().any(|folder| path.starts_with(folder))
        || path == "squad.config.ts"
}

/// Whether agents or CI follow this file, so that templates it names are needed. Mentions in records do not count.
fn may_use_templates(path: &str) -> bool {
    path == PROMPT
        || path.starts_with(".github/")
        || in_team(path).is_some_and(|inner| {
            ["team.md", "routing.md", "ceremonies.md"].contains(&inner)
                || inner.starts_with("skills/")
                || inner.ends_with("/charter.md")
        })
}
