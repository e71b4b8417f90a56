//! A team from one file: of `squad export`'s, or of the npm tool's.

mod npm;

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::env::Env;
use crate::error::Failure;
use crate::git::{NewFile, Repository};
use crate::model::{Problem, Severity, Source, plural};
use crate::ops::ledger::journal::writer;
use crate::ops::repository;
use crate::ops::team::export::LARGEST;
use crate::ops::team::init::{self, FOLDER, Installed};
use crate::ops::team::secrets;
use crate::ops::team::workspace::not_left_out;
use crate::record::{scrubbed_paths, settle};
use crate::store;

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) file: PathBuf,
    pub(crate) commit: bool,
    pub(crate) dry_run: bool,
    /// With what looks like a secret.
    pub(crate) force: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct Imported {
    /// From the repository's root; none where the team is there already.
    pub(crate) files: Vec<String>,
    pub(crate) commit: Option<String>,
    /// Why there is no commit.
    pub(crate) reason: Option<String>,
    /// Entries of the ledger that were not here.
    pub(crate) entries: usize,
    pub(crate) problems: Vec<Problem>,
}

/// What a file holds.
struct Contents {
    /// By path from the team's folder.
    files: Vec<NewFile>,
    entries: Option<usize>,
    problems: Vec<Problem>,
}

/// Puts the team of a file at the repository's root. A team that is there already stays as it is.
pub(crate) fn import(env: &Env, directory: &Path, wish: &Wish) -> Result<Imported, Failure> {
    let (repository, work_dir) = repository(env, directory)?;
    let file = directory.join(&wish.file);
    let file = dunce::canonicalize(&file).unwrap_or(file);
    let read = read(&repository, &file);
    let imported = read.and_then(|contents| take(env, (&repository, &work_dir), wish, contents));
    repository.forget_imports()?;
    imported
}

fn read(repository: &Repository, file: &Path) -> Result<Contents, Failure> {
    if fs::metadata(file).is_ok_and(|facts| !facts.is_file()) {
        return Err(Failure::failed("it is no file").at(file.display()));
    }
    let start = fs::File::open(file).and_then(|file| {
        let mut start = Vec::new();
        std::io::Read::read_to_end(&mut std::io::Read::take(file, 16), &mut start).map(|_| start)
    });
    let start = start.map_err(|error| Failure::failed(format!("cannot be read: {error}")).at(file.display()))?;
    if !start.starts_with(b"# v") {
        return npm::read(file);
    }
    let bundle = repository.read_bundle(file, LARGEST).map_err(|error| {
        Failure::failed(format!("it holds no team, or is cut off or damaged: {error}"))
            .at(file.display())
            .hint("`squad export` writes such files")
    })?;
    let left_out = |path: String| {
        let message = "it is a link or a submodule, and neither is imported";
        Problem::new(Severity::Warning, Source::new(format!("{FOLDER}/{path}"), 0), "import-link", message)
    };
    let problems = bundle.left_out.into_iter().map(left_out).collect();
    Ok(Contents { files: bundle.files, entries: bundle.entries, problems })
}

fn take(
    env: &Env,
    (repository, work_dir): (&Repository, &Path),
    wish: &Wish,
    contents: Contents,
) -> Result<Imported, Failure> {
    let Contents { files, entries, mut problems } = contents;
    if !files.iter().any(|file| file.path == "team.md") {
        return Err(Failure::team("it holds no team.md").at(wish.file.display()));
    }
    let texts = files.iter().map(|file| (file.path.as_str(), file.bytes.as_slice()));
    let suspicious = secrets::suspicious(env, work_dir, texts);
    if !wish.force {
        secrets::refuse(&suspicious, "take it out where the team is from, or import it all the same with --force")?;
    }
    problems.extend(suspicious);
    let is_there = is_there(work_dir, &files)?;
    let below = |file: NewFile| NewFile { path: format!("{FOLDER}/{}", file.path), ..file };
    let files: Vec<NewFile> = if is_there { Vec::new() } else { files.into_iter().map(below).collect() };
    let paths = files.iter().map(|file| file.path.clone()).collect();
    let mut imported = Imported { files: paths, commit: None, reason: None, entries: entries.unwrap_or(0), problems };
    if wish.dry_run {
        return Ok(imported);
    }
    if !is_there {
        not_left_out(repository)?;
        match init::install(env, (repository, work_dir), ("import", MESSAGE), wish.commit, files)? {
            Installed::Committed { commit, .. } => imported.commit = Some(commit),
            Installed::Written { reason, .. } => imported.reason = Some(reason),
            Installed::Already { .. } => {}
        }
    }
    if entries.is_some_and(|count| count > 0) {
        repository.take_bundled_ledger(&scrubbed_paths, &settle, &writer())?;
    }
    Ok(imported)
}

const MESSAGE: &str = "squad: import a team\n";

/// Whether just this team is there. Fails where another one is.
fn is_there(work_dir: &Path, files: &[NewFile]) -> Result<bool, Failure> {
    let Some(folder) = init::standing_team(work_dir)? else { return Ok(false) };
    let root = work_dir.join(&folder);
    let differs = |file: &&NewFile| fs::read(root.join(&file.path)).ok().as_ref() != Some(&file.bytes);
    let different = files.iter().filter(differs).count();
    if different == 0 && folder == FOLDER {
        return Ok(true);
    }
    let what = format!("there is a team already, and {} of it would not be as they are", plural(different, "file"));
    let at = store::locate(work_dir, work_dir, None).map_or(root, |found| found.path);
    if folder != FOLDER {
        return Err(Failure::team(what)
            .at(at.display())
            .hint("`squad adopt` moves that team to `.squad/`; import into a repository without a team"));
    }
    Err(Failure::team(what)
        .at(at.display())
        .hint("import into a repository without a team, or take this one out with `squad remove --team` first"))
}
