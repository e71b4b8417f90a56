//! A whole team in one file.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::env::Env;
use crate::error::Failure;
use crate::model::{Problem, Severity, Source, plural, printable};
use crate::ops::Workspace;
use crate::ops::ledger::journal::writer;
use crate::ops::team::secrets;

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Wish {
    /// Named after the repository where it is `None`.
    pub(crate) file: Option<PathBuf>,
    pub(crate) ledger: bool,
    /// Over a file that is there, and with what looks like a secret.
    pub(crate) force: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct Exported {
    pub(crate) file: PathBuf,
    pub(crate) files: usize,
    pub(crate) bytes: u64,
    pub(crate) ledger: bool,
    /// What is not in it as one might think, and what should not be.
    pub(crate) problems: Vec<Problem>,
}

/// Writes the team as the commit that is checked out has it.
pub(crate) fn export(env: &Env, directory: &Path, wish: &Wish) -> Result<Exported, Failure> {
    let workspace = Workspace::find(env, directory)?;
    let repository = &workspace.repository;
    let folder = workspace.folder_in_repository();
    let committed = repository.head()?.commit;
    let has = |commit: &String| repository.has_at(commit, &format!("{folder}/team.md"));
    let Some(commit) = committed.map(|commit| Ok::<_, Failure>(has(&commit)?.then_some(commit))).transpose()?.flatten()
    else {
        return Err(Failure::failed(format!("{folder}/team.md is in no commit yet"))
            .hint("commit the team first: what is exported is what is committed"));
    };
    let files = repository.files_at(&commit, &folder, |_| Some(LARGEST))?;
    let mut problems = suspicious(env, &workspace, &files);
    if !problems.is_empty() && !wish.force {
        let first = &problems[0];
        let more = if problems.len() > 1 { format!(", and {} more", problems.len() - 1) } else { String::new() };
        return Err(Failure::failed(format!("{}{more}", first.message))
            .at(format!("{}:{}", first.file, first.line))
            .hint("take it out and commit that, or export it all the same with --force"));
    }
    let changed = repository.changed_below(&folder)?;
    if let Some(path) = changed.first() {
        let message =
            format!("{} with changes that are not committed, and not exported", plural(changed.len(), "file"));
        problems.push(Problem::new(Severity::Warning, Source::new(path.clone(), 0), "export-uncommitted", message));
    }
    let file = std::path::absolute(directory.join(place(wish, &workspace))).unwrap_or_default();
    if file.exists() && !wish.force {
        return Err(Failure::failed("it is there already")
            .at(file.display())
            .hint("name another file, or use --force"));
    }
    repository.write_bundle(&commit, &folder, wish.ledger, &writer(), &file)?;
    let bytes = std::fs::metadata(&file).map_or(0, |facts| facts.len());
    let file = dunce::canonicalize(&file).unwrap_or(file);
    Ok(Exported { file, files: files.len(), bytes, ledger: wish.ledger, problems })
}

/// No file of a team's is larger.
pub(super) const LARGEST: u64 = 64 * 1024 * 1024;

fn place(wish: &Wish, workspace: &Workspace) -> PathBuf {
    let named = || {
        let name = workspace.work_dir.file_name().map_or_else(|| "team".into(), |name| name.to_string_lossy());
        PathBuf::from(format!("{name}.squad"))
    };
    wish.file.clone().unwrap_or_else(named)
}

/// Lines that look like secrets.
fn suspicious(env: &Env, workspace: &Workspace, files: &[(String, Vec<u8>)]) -> Vec<Problem> {
    let redactor = secrets::redactor(env, &workspace.work_dir);
    let mut problems = Vec::new();
    for (path, bytes) in files {
        let mut found = Vec::new();
        let text = String::from_utf8_lossy(bytes);
        redactor.text(&text, &mut found);
        if found.is_empty() {
            continue;
        }
        let is_in = |line: &str| {
            let mut found = Vec::new();
            redactor.text(line, &mut found);
            !found.is_empty()
        };
        let line = text.lines().position(is_in).map_or(0, |at| at + 1);
        let kinds: Vec<String> = redactor.kinds(&text).into_iter().collect();
        let message = format!("it holds what looks like a secret ({})", printable(&kinds.join(", ")));
        problems.push(Problem::new(Severity::Warning, Source::new(path.clone(), line), "export-secret", message));
    }
    problems
}
