//! Imports a team from a file that `squad export` or the npm tool wrote.

mod npm;

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::env::{Env, real};
use crate::error::Failure;
use crate::git::{BundledLedger, NewFile, Repository};
use crate::model::{ChangeKind, Problem, Severity, Source, plural};
use crate::ops::change::{Change, FileChange};
use crate::ops::ledger::journal::writer;
use crate::ops::ledger::lost;
use crate::ops::repository;
use crate::ops::team::export::MAX_SIZE;
use crate::ops::team::init::{self, FOLDER};
use crate::ops::team::secrets;
use crate::ops::team::workspace::not_left_out;
use crate::record::{scrubbed_paths, settle};
use crate::store;

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) file: PathBuf,
    pub(crate) commit: bool,
    pub(crate) dry_run: bool,
    /// Import suspected secrets.
    pub(crate) force: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct Imported {
    /// Relative to the repository's root; empty if the same team is installed already.
    pub(crate) files: Vec<String>,
    pub(crate) commit: Option<String>,
    /// Why there is no commit.
    pub(crate) reason: Option<String>,
    /// New ledger entries.
    pub(crate) entries: usize,
    /// There is no team in it.
    #[serde(skip)]
    pub(crate) is_ledger_alone: bool,
    pub(crate) problems: Vec<Problem>,
}

/// The contents of an export file.
struct Contents {
    /// Paths are from the team's folder.
    files: Vec<NewFile>,
    ledger: Option<BundledLedger>,
    problems: Vec<Problem>,
}

/// Installs the team at the repository's root. An existing team stays unchanged.
pub(crate) fn import(env: &Env, directory: &Path, options: &Options) -> Result<Imported, Failure> {
    let (repository, work_dir) = repository(env, directory)?;
    let file = real(&directory.join(&options.file));
    env.damage.activity().begin("reading the file");
    let read = read(&repository, &file);
    env.damage.activity().begin("writing the team");
    read.and_then(|contents| install(env, (&repository, &work_dir), options, contents))
}

fn read(repository: &Repository, file: &Path) -> Result<Contents, Failure> {
    if fs::metadata(file).is_ok_and(|facts| !facts.is_file()) {
        return Err(Failure::failed("it is not a regular file")
            .at(file.display())
            .hint("`squad export FILE`, in the repository with the team, writes the file to import"));
    }
    let start = fs::File::open(file).and_then(|file| {
        let mut start = Vec::new();
        std::io::Read::read_to_end(&mut std::io::Read::take(file, 16), &mut start).map(|_| start)
    });
    let start = start.map_err(|error| Failure::failed(format!("cannot be read: {error}")).at(file.display()))?;
    if !start.starts_with(b"# v") {
        return npm::read(file);
    }
    let bundle = repository.read_bundle(file, MAX_SIZE).map_err(|error| {
        // git's command line only says where the bundle was read.
        let why = match error {
            crate::git::Error::Program { message, .. } => message.trim_start_matches("fatal: ").to_owned(),
            error => error.to_string(),
        };
        Failure::failed(format!("it contains no team, or is damaged: {why}"))
            .at(file.display())
            .hint("use a file that `squad export` wrote")
    })?;
    let left_out = |path: String| {
        let message = "links and submodules are not imported";
        Problem::new(Severity::Warning, Source::new(format!("{FOLDER}/{path}"), 0), "import-link", message)
    };
    let problems = bundle.left_out.into_iter().map(left_out).collect();
    Ok(Contents { files: bundle.files, ledger: bundle.ledger, problems })
}

fn install(
    env: &Env,
    (repository, work_dir): (&Repository, &Path),
    options: &Options,
    contents: Contents,
) -> Result<Imported, Failure> {
    let Contents { files, ledger, mut problems } = contents;
    let entries = ledger.as_ref().map_or(0, |ledger| ledger.entries);
    let is_ledger_alone = files.is_empty() && ledger.is_some();
    if !is_ledger_alone && !files.iter().any(|file| file.path == "team.md") {
        return Err(Failure::team("it contains no team.md").at(options.file.display()));
    }
    let texts = files.iter().map(|file| (file.path.as_str(), file.bytes.as_slice()));
    let suspicious = secrets::suspicious(env, work_dir, texts);
    if !options.force {
        secrets::refuse(&suspicious, "remove it and export the team again, or import it anyway with --force")?;
    }
    problems.extend(suspicious);
    let is_installed = is_ledger_alone || is_installed(work_dir, &files)?;
    let in_folder = |NewFile { path, bytes, executable }: NewFile| FileChange {
        executable,
        ..FileChange::added(format!("{FOLDER}/{path}"), bytes)
    };
    let files: Vec<FileChange> = if is_installed { Vec::new() } else { files.into_iter().map(in_folder).collect() };
    let paths = files.iter().map(|file| file.path.clone()).collect();
    let mut imported = Imported { files: paths, commit: None, reason: None, entries, is_ledger_alone, problems };
    if options.dry_run {
        return Ok(imported);
    }
    if !is_installed {
        not_left_out(repository)?;
        let change = Change::new(ChangeKind::Import, "squad: import a team\n", files);
        let report = change.apply_somehow(env, repository, options.commit)?;
        (imported.commit, imported.reason) = (report.commit, report.uncommitted);
    }
    lost::settle(env, repository);
    if let Some(ledger) = ledger.filter(|_| entries > 0) {
        repository.take_bundled_ledger(&ledger, &scrubbed_paths, &settle, &writer())?;
    }
    Ok(imported)
}

/// Whether this very team is installed already. Fails if there is a different one.
fn is_installed(work_dir: &Path, files: &[NewFile]) -> Result<bool, Failure> {
    let Some(folder) = init::existing_team(work_dir)? else { return Ok(false) };
    let root = work_dir.join(&folder);
    let differs = |file: &&NewFile| fs::read(root.join(&file.path)).ok().as_ref() != Some(&file.bytes);
    let different = files.iter().filter(differs).count();
    if different == 0 && folder == FOLDER {
        return Ok(true);
    }
    let what = format!("there is another team already: {} would change", plural(different, "file"));
    let at = store::locate(work_dir, work_dir, None).map_or(root, |found| found.path);
    if folder != FOLDER {
        return Err(Failure::team(what)
            .at(at.display())
            .hint("`squad adopt` moves that team to `.squad/`; import into a repository without a team"));
    }
    Err(Failure::team(what)
        .at(at.display())
        .hint("import into a repository without a team, or remove this one with `squad remove --team` first"))
}
