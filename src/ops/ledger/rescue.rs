//! Rescues: backs up uncommitted files before squad removes or overwrites something in a work tree, and restores them.

use std::path::{Path, PathBuf};

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use serde::{Deserialize, Serialize};

use crate::env::Env;
use crate::error::Failure;
use crate::git::{FileStatus, NewRescue, Repository, Rescue, RescuedFile, TargetState};
use crate::model::{ChangeKind, SkippedFile, from_json, list, plural};
use crate::ops::ledger::journal::writer;
use crate::ops::team::secrets;
use crate::ops::team::workspace::path_below;
use crate::ops::{only, repository};

/// The reason for a rescue.
pub(crate) struct Reason<'a> {
    /// Without the leading `squad`.
    pub(crate) command: &'a str,
    pub(crate) why: String,
    /// The files to be changed or removed, as paths from the repository's root.
    pub(crate) touches: Vec<String>,
}

/// Metadata on the last line of a rescue's message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Note {
    command: String,
    why: String,
    branch: Option<String>,
    /// How many files differed from the commit.
    files: usize,
    touches: Vec<String>,
    left_out: Vec<SkippedFile>,
    /// Files from which `squad scrub` removed a secret.
    scrubbed: Vec<String>,
}

/// Backs up all uncommitted files; durable when it returns. Files with suspected secrets are never written to the
/// object database: they are omitted and reported.
pub(crate) fn save(env: &Env, repository: &Repository, reason: Reason<'_>) -> Result<NewRescue, Failure> {
    let at = env.clock.now();
    let redactor = secrets::redactor(env, repository.work_dir().unwrap_or(repository.git_dir()));
    let objection = |bytes: &[u8]| {
        let kinds = redactor.kinds(std::str::from_utf8(bytes).ok()?);
        (!kinds.is_empty()).then(|| format!("it holds what looks like a secret: {}", list(kinds)))
    };
    let branch = repository.head()?.work().map(str::to_owned);
    let Reason { command, why, touches } = reason;
    let message = |files: usize, omitted: &[SkippedFile]| {
        let left_out = omitted.to_vec();
        let note = Note { command: command.to_owned(), why, branch, files, touches, left_out, scrubbed: Vec::new() };
        format!("rescue before squad {command}\n\n{}\n\n{}\n", note.why, serde_json::json!(note))
    };
    Ok(repository.rescue(objection, message, &writer(), at)?)
}

/// A rescue for a list.
#[derive(Debug, Serialize)]
pub(crate) struct Listed {
    pub(crate) id: String,
    pub(crate) at: Timestamp,
    pub(crate) command: String,
    pub(crate) why: String,
    pub(crate) branch: Option<String>,
    pub(crate) files: usize,
    pub(crate) left_out: Vec<SkippedFile>,
    pub(crate) scrubbed: Vec<String>,
    pub(crate) commit: String,
    /// The commit that was checked out.
    pub(crate) head: Option<String>,
    #[serde(skip)]
    touches: Vec<String>,
}

impl Listed {
    fn new(rescue: &Rescue) -> Self {
        // Rescues without our metadata are listed and restorable too.
        let note: Note = rescue.message.lines().last().and_then(|line| from_json(line).ok()).unwrap_or_default();
        Self {
            id: rescue.id.clone(),
            at: rescue.at,
            command: note.command,
            why: note.why,
            branch: note.branch,
            files: note.files,
            left_out: note.left_out,
            scrubbed: note.scrubbed,
            commit: rescue.commit(),
            head: rescue.head(),
            touches: note.touches,
        }
    }
}

/// The message of a rescue after a scrub.
pub(in crate::ops) fn message_after_scrub(rescue: &Rescue, paths: &[String], clean: impl Fn(&str) -> String) -> String {
    let message = clean(&rescue.message);
    let (rest, last) = message.trim_end().rsplit_once('\n').unwrap_or((&message, ""));
    match from_json::<Note>(last) {
        Ok(mut note) => {
            note.scrubbed
                .extend(paths.iter().filter(|path| !note.scrubbed.contains(path)).cloned().collect::<Vec<_>>());
            format!("{rest}\n{}\n", serde_json::json!(note))
        }
        Err(_) => message,
    }
}

/// All rescues, newest first.
pub(crate) fn listed(env: &Env, directory: &Path) -> Result<Vec<Listed>, Failure> {
    let (repository, _) = repository(env, directory)?;
    Ok(repository.rescues()?.iter().map(Listed::new).collect())
}

/// A rescue with its files.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    #[serde(flatten)]
    pub(crate) rescue: Listed,
    pub(crate) contents: Vec<File>,
}

#[derive(Debug, Serialize)]
pub(crate) struct File {
    pub(crate) path: String,
    /// `changed`, `new`, `untracked`, `removed`; `unchanged` if only the index differed.
    pub(crate) state: &'static str,
    /// Whether the index had its own version.
    pub(crate) staged: bool,
}

/// The uncommitted files of one rescue.
pub(crate) fn show(env: &Env, directory: &Path, id: &str) -> Result<Shown, Failure> {
    let (repository, _) = repository(env, directory)?;
    let rescue = find(&repository, id)?;
    let files = repository.rescued(&rescue)?.into_iter().filter(RescuedFile::is_uncommitted);
    let contents = files.map(|file| File { state: status_name(file.state), staged: file.staged, path: file.path });
    Ok(Shown { rescue: Listed::new(&rescue), contents: contents.collect() })
}

fn status_name(state: FileStatus) -> &'static str {
    match state {
        FileStatus::Unchanged => "unchanged",
        FileStatus::Changed => "changed",
        FileStatus::New => "new",
        FileStatus::Untracked => "untracked",
        FileStatus::Removed => "removed",
    }
}

/// The options of a restore.
pub(crate) struct RestoreOptions {
    pub(crate) id: String,
    /// Files and folders, relative to the current folder; if empty, all uncommitted files and those the command
    /// changed.
    pub(crate) paths: Vec<String>,
    /// A target folder other than the work tree.
    pub(crate) to: Option<PathBuf>,
    /// Restore the index versions.
    pub(crate) staged: bool,
    pub(crate) dry_run: bool,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct Restored {
    pub(crate) id: String,
    pub(crate) dry_run: bool,
    /// Files that did not exist.
    pub(crate) written: Vec<String>,
    /// Files with different content, which was backed up to the rescue `saved`.
    pub(crate) overwritten: Vec<String>,
    /// Files that are already there unchanged.
    pub(crate) same: usize,
    pub(crate) saved: Option<String>,
}

/// Restores files of a rescue. Existing files that differ are backed up first; index, stash and everything else stay
/// untouched.
pub(crate) fn restore(env: &Env, directory: &Path, options: &RestoreOptions) -> Result<Restored, Failure> {
    let (repository, work_dir) = repository(env, directory)?;
    let rescue = find(&repository, &options.id)?;
    let listed_rescue = Listed::new(&rescue);
    let files = chosen(repository.rescued(&rescue)?, &listed_rescue, directory, &work_dir, options)?;
    let extracted = repository.extract(files, options.staged)?;
    let root = options.to.as_ref().map_or(work_dir, |to| directory.join(to));
    let targets = extracted.target_states(&root)?;
    let mut restored = Restored { id: listed_rescue.id.clone(), dry_run: options.dry_run, ..Restored::default() };
    for (path, state) in &targets {
        match state {
            TargetState::Free => restored.written.push(path.clone()),
            TargetState::Same => restored.same += 1,
            TargetState::Differs(_) => restored.overwritten.push(path.clone()),
            TargetState::Blocked(what) => {
                return Err(Failure::failed(format!("{path} cannot be restored: {what}"))
                    .hint("move it out of the way, or restore into another folder with --to"));
            }
        }
    }
    if options.to.is_some()
        && let [first, ..] = &restored.overwritten[..]
    {
        let what = plural(restored.overwritten.len(), "file");
        return Err(Failure::failed(format!("{what} there would be overwritten, such as {first}"))
            .hint("use another folder, or one that does not exist yet"));
    }
    if options.dry_run {
        return Ok(restored);
    }
    if !restored.overwritten.is_empty() {
        let why = format!("files of the rescue {} replace others", listed_rescue.id);
        let touches = restored.overwritten.clone();
        let saved = save(env, &repository, Reason { command: "rescue restore", why, touches })?;
        let lost = saved.left_out.iter().find(|left| restored.overwritten.contains(&left.path));
        if let Some(SkippedFile { path, why }) = lost {
            return Err(Failure::failed(format!("{path} would be lost, since {why}"))
                .hint("move it out of the way, or restore into another folder with --to"));
        }
        restored.saved = Some(saved.id);
    }
    extracted.write(&repository, &ChangeKind::Restore { rescue: listed_rescue.id.clone() }, &root, &targets)?;
    Ok(restored)
}

fn chosen(
    files: Vec<RescuedFile>,
    listed_rescue: &Listed,
    directory: &Path,
    work_dir: &Path,
    options: &RestoreOptions,
) -> Result<Vec<RescuedFile>, Failure> {
    let exists = |file: &RescuedFile| if options.staged { file.staged } else { file.state != FileStatus::Removed };
    if options.paths.is_empty() {
        let matters =
            |file: &RescuedFile| exists(file) && (file.is_uncommitted() || listed_rescue.touches.contains(&file.path));
        return Ok(files.into_iter().filter(matters).collect());
    }
    let mut places = Vec::new();
    for path in &options.paths {
        let place = path_below(work_dir, directory, path);
        let is_in =
            |file: &RescuedFile| below(&file.path, &place) && (options.staged || file.state != FileStatus::Removed);
        if !files.iter().any(is_in) {
            return Err(Failure::usage(format!("the rescue {} does not contain {path}", listed_rescue.id))
                .hint(format!("`squad rescue show {}` lists its files", listed_rescue.id)));
        }
        places.push(place);
    }
    Ok(files.into_iter().filter(|file| places.iter().any(|place| below(&file.path, place))).collect())
}

fn below(path: &str, place: &str) -> bool {
    place.is_empty() || path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Deletes the rescues with these ids, and all from before a day.
pub(crate) fn delete(
    env: &Env,
    directory: &Path,
    ids: &[String],
    before: Option<Date>,
) -> Result<Vec<Listed>, Failure> {
    let (repository, _) = repository(env, directory)?;
    let mut chosen = ids.iter().map(|id| find(&repository, id)).collect::<Result<Vec<_>, _>>()?;
    if let Some(day) = before {
        let is_older = |rescue: &Rescue| rescue.at.to_zoned(TimeZone::UTC).date() < day;
        chosen.extend(repository.rescues()?.into_iter().filter(is_older));
    }
    chosen.iter().try_for_each(|rescue| repository.forget(rescue))?;
    Ok(chosen.iter().map(Listed::new).collect())
}

fn find(repository: &Repository, id: &str) -> Result<Rescue, Failure> {
    let found = repository.rescues()?.into_iter().filter(|rescue| rescue.id.starts_with(id)).collect();
    only(found, id, |rescue| &rescue.id)?
        .ok_or_else(|| Failure::usage(format!("there is no rescue `{id}`")).hint("`squad rescue list` shows them all"))
}
