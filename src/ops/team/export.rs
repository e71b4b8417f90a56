//! Exports a team to one file.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::env::{Env, real};
use crate::error::Failure;
use crate::model::{ChangeKind, IntoMap, Problem, Severity, Source, plural};
use crate::ops::change::{Change, Changed, FileChange, WriteMode};
use crate::ops::ledger::journal::writer;
use crate::ops::team::project::require_merged;
use crate::ops::team::secrets;
use crate::ops::{Workspace, repository, write_file};
use crate::parse::{self, Files};
use crate::policy::is_portable;

/// The GitHub workflow that carries out work orders.
const WORKFLOW: &str = ".github/workflows/squad-worker.yml";
static WORKFLOW_TEXT: &[u8] = include_bytes!("../../../templates/ci/squad-worker.yml");

/// Nothing more is to be said of it than what changed.
#[derive(Debug, Serialize)]
pub(crate) struct Workflow {}

/// Writes the workflow that makes runners of GitHub Actions a host.
pub(crate) fn export_workflow(env: &Env, directory: &Path, mode: WriteMode) -> Result<Changed<Workflow>, Failure> {
    let (repository, work_dir) = repository(env, directory)?;
    if work_dir.join(WORKFLOW).symlink_metadata().is_ok() {
        return Err(Failure::usage("the file is there already").at(WORKFLOW).hint("delete it to have it written anew"));
    }
    let message = "squad: carry out work orders in CI\n\nA run's agents may work in jobs of GitHub Actions.\n";
    let change =
        Change::new(ChangeKind::ExportWorkflow, message, vec![FileChange::added(WORKFLOW.to_owned(), WORKFLOW_TEXT)]);
    Ok(Changed { change: change.apply(env, &repository, mode)?, kind: change.kind, details: Workflow {} })
}

#[derive(Debug)]
pub(crate) struct Options {
    /// `None`: named after the repository.
    pub(crate) file: Option<PathBuf>,
    pub(crate) ledger: bool,
    /// Overwrite an existing file, and export suspected secrets.
    pub(crate) force: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct Exported {
    pub(crate) file: PathBuf,
    pub(crate) files: usize,
    pub(crate) bytes: u64,
    pub(crate) ledger: bool,
    /// Uncommitted changes, which are not exported, and suspected secrets.
    pub(crate) problems: Vec<Problem>,
}

/// Exports the team of the checked-out commit. Without a team there is only the ledger.
pub(crate) fn export(env: &Env, directory: &Path, options: &Options) -> Result<Exported, Failure> {
    let workspace = Workspace::find_or_recorded(env, directory)?;
    let has_team = Workspace::find(env, directory).is_ok();
    if !has_team && !options.ledger {
        return Err(Failure::team("there is no team to export").hint("`--ledger` exports what was recorded"));
    }
    let repository = &workspace.repository;
    let folder = workspace.folder_in_repository();
    let committed = repository.head()?.commit;
    let has = |commit: &String| match has_team {
        true => repository.has_at(commit, &format!("{folder}/team.md")),
        false => Ok(true),
    };
    let Some(commit) = committed.map(|commit| Ok::<_, Failure>(has(&commit)?.then_some(commit))).transpose()?.flatten()
    else {
        return Err(Failure::failed(format!("{folder}/team.md is not committed"))
            .hint("commit the team first: only committed files are exported"));
    };
    let activity = env.damage.activity();
    activity.begin("reading the team");
    let files = match has_team {
        true => repository.files_at(&commit, &folder, |_| Some(MAX_SIZE))?,
        false => Vec::new(),
    };
    let mut problems = checked(env, &workspace, &files, options.force)?;
    let changed = repository.changed_below(&folder)?;
    if let Some(path) = changed.first() {
        let message = format!("{} with uncommitted changes, which are not exported", plural(changed.len(), "file"));
        problems.push(Problem::new(Severity::Warning, Source::new(path.clone(), 0), "export-uncommitted", message));
    }
    let file = std::path::absolute(directory.join(target(options, &workspace))).unwrap_or_default();
    activity.begin("writing the file");
    write_file(&file, Some(options.force), |draft| {
        Ok(repository.write_bundle(&commit, has_team.then_some(&*folder), options.ledger, &writer(), draft)?)
    })?;
    let bytes = std::fs::metadata(&file).map_or(0, |facts| facts.len());
    let file = real(&file);
    Ok(Exported { file, files: files.len(), bytes, ledger: options.ledger, problems })
}

/// What is to be said of a team's files. Fails at one of an unfinished merge, and unless it is forced, at a suspected secret.
fn checked(
    env: &Env,
    workspace: &Workspace,
    files: &[(String, Vec<u8>)],
    force: bool,
) -> Result<Vec<Problem>, Failure> {
    let folder = workspace.folder_in_repository();
    let text = |(path, bytes): &(String, Vec<u8>)| {
        let inner = path.strip_prefix(&folder)?.trim_start_matches('/');
        Some((inner.to_owned(), String::from_utf8(bytes.clone()).ok()?))
    };
    let texts = files.iter().filter_map(text).into_map();
    require_merged(&parse::conflicts(&Files { folder: folder.clone(), texts }))?;
    let contents = files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice()));
    let mut problems = secrets::suspicious(env, &workspace.work_dir, contents);
    if !force {
        secrets::refuse(&problems, "remove it and commit the change, or export it anyway with --force")?;
    }
    problems.extend(files.iter().filter(|(path, _)| !is_portable(path)).map(|(path, _)| {
        let message = "its name cannot be that of a file on every system";
        Problem::new(Severity::Note, Source::new(path.clone(), 0), "export-name", message)
    }));
    Ok(problems)
}

/// Larger files are not part of a team.
pub(super) const MAX_SIZE: u64 = 64 * 1024 * 1024;

fn target(options: &Options, workspace: &Workspace) -> PathBuf {
    let default = || {
        let name = workspace.work_dir.file_name().map_or_else(|| "team".into(), |name| name.to_string_lossy());
        PathBuf::from(format!("{name}.squad"))
    };
    options.file.clone().unwrap_or_else(default)
}
