//! Rescue: what no commit holds is kept before squad removes or overwrites something of a work tree, and given back.

use std::path::{Path, PathBuf};

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use serde::{Deserialize, Serialize};

use crate::env::Env;
use crate::error::Failure;
use crate::git::{Kept, LeftOut, Place, Repository, Rescue, Saved, State};
use crate::model::{list, plural};
use crate::ops::ledger::journal::writer;
use crate::ops::repository;
use crate::ops::team::secrets;
use crate::ops::team::workspace::path_below;

/// Why something is kept.
pub(crate) struct Occasion<'a> {
    /// As one types it after `squad`.
    pub(crate) command: &'a str,
    pub(crate) why: String,
    /// The files that are going to change or go, from the repository's root.
    pub(crate) touches: Vec<String>,
}

/// What a rescue's message says of it, on its last line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Note {
    command: String,
    why: String,
    branch: Option<String>,
    /// How many files were not as the commit has them.
    files: usize,
    touches: Vec<String>,
    left_out: Vec<Left>,
    /// Files that `squad scrub` took a secret out of.
    scrubbed: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Left {
    pub(crate) path: String,
    pub(crate) why: String,
}

impl From<&LeftOut> for Left {
    fn from(left: &LeftOut) -> Self {
        Self { path: left.path.clone(), why: left.why.clone() }
    }
}

/// Keeps everything that no commit holds; durable when it returns. What looks like a secret is never written to the
/// object database: such files are left out, and said to be.
pub(crate) fn save(env: &Env, repository: &Repository, occasion: Occasion<'_>) -> Result<Saved, Failure> {
    let at = env.clock.now();
    let redactor = secrets::redactor(env, repository.work_dir().unwrap_or(repository.git_dir()));
    let objection = |bytes: &[u8]| {
        let kinds = redactor.kinds(std::str::from_utf8(bytes).ok()?);
        (!kinds.is_empty()).then(|| format!("it holds what looks like a secret: {}", list(kinds)))
    };
    let branch = repository.head()?.work().map(str::to_owned);
    let Occasion { command, why, touches } = occasion;
    let message = |files: usize, left: &[LeftOut]| {
        let left_out = left.iter().map(Left::from).collect();
        let note = Note { command: command.to_owned(), why, branch, files, touches, left_out, scrubbed: Vec::new() };
        format!("rescue before squad {command}\n\n{}\n\n{}\n", note.why, serde_json::json!(note))
    };
    Ok(repository.rescue(objection, message, &writer(), at)?)
}

/// A rescue in a line.
#[derive(Debug, Serialize)]
pub(crate) struct Listed {
    pub(crate) id: String,
    pub(crate) at: Timestamp,
    pub(crate) command: String,
    pub(crate) why: String,
    pub(crate) branch: Option<String>,
    pub(crate) files: usize,
    pub(crate) left_out: Vec<Left>,
    pub(crate) scrubbed: Vec<String>,
    pub(crate) commit: String,
    /// The commit that was checked out.
    pub(crate) head: Option<String>,
    #[serde(skip)]
    touches: Vec<String>,
}

impl Listed {
    fn new(rescue: &Rescue) -> Self {
        // Whatever somebody else put there is listed too, and restored.
        let note: Note =
            rescue.message.lines().last().and_then(|line| serde_json::from_str(line).ok()).unwrap_or_default();
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

/// The message of a rescue out of which something was taken.
pub(in crate::ops) fn message_after_scrub(rescue: &Rescue, paths: &[String], clean: impl Fn(&str) -> String) -> String {
    let message = clean(&rescue.message);
    let (rest, last) = message.trim_end().rsplit_once('\n').unwrap_or((&message, ""));
    match serde_json::from_str::<Note>(last) {
        Ok(mut note) => {
            note.scrubbed
                .extend(paths.iter().filter(|path| !note.scrubbed.contains(path)).cloned().collect::<Vec<_>>());
            format!("{rest}\n{}\n", serde_json::json!(note))
        }
        Err(_) => message,
    }
}

/// Everything that is kept, the newest first.
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
    /// `changed`, `new`, `untracked`, `removed`; `unchanged` where only the index had something else.
    pub(crate) state: &'static str,
    /// Whether the index held something of its own.
    pub(crate) staged: bool,
}

/// What no commit held, of one rescue.
pub(crate) fn show(env: &Env, directory: &Path, id: &str) -> Result<Shown, Failure> {
    let (repository, _) = repository(env, directory)?;
    let rescue = find(&repository, id)?;
    let files = repository.rescued(&rescue)?.into_iter().filter(Kept::is_uncommitted);
    let contents = files.map(|file| File { state: word(file.state), staged: file.staged, path: file.path });
    Ok(Shown { rescue: Listed::new(&rescue), contents: contents.collect() })
}

fn word(state: State) -> &'static str {
    match state {
        State::Unchanged => "unchanged",
        State::Changed => "changed",
        State::New => "new",
        State::Untracked => "untracked",
        State::Removed => "removed",
    }
}

/// What is to be given back, and where.
pub(crate) struct Wish {
    pub(crate) id: String,
    /// Files and folders, from the folder that one is in; none: what no commit held, and what the command changed.
    pub(crate) paths: Vec<String>,
    /// Another folder than the work tree.
    pub(crate) to: Option<PathBuf>,
    /// As the index held them.
    pub(crate) staged: bool,
    pub(crate) is_rehearsal: bool,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct Restored {
    pub(crate) id: String,
    pub(crate) dry_run: bool,
    /// Files that were not there.
    pub(crate) written: Vec<String>,
    /// Files that held something else, which is kept in the rescue `saved`.
    pub(crate) overwritten: Vec<String>,
    /// Files that are there as they were.
    pub(crate) same: usize,
    pub(crate) saved: Option<String>,
}

/// Writes files of a rescue back. What differs is kept first; index, stash and everything else stay as they are.
pub(crate) fn restore(env: &Env, directory: &Path, wish: &Wish) -> Result<Restored, Failure> {
    let (repository, work_dir) = repository(env, directory)?;
    let rescue = find(&repository, &wish.id)?;
    let about = Listed::new(&rescue);
    let files = chosen(repository.rescued(&rescue)?, &about, directory, &work_dir, wish)?;
    let wanted = repository.wanted(files, wish.staged)?;
    let root = wish.to.as_ref().map_or(work_dir, |to| directory.join(to));
    let places = wanted.places(&root)?;
    let mut restored = Restored { id: about.id.clone(), dry_run: wish.is_rehearsal, ..Restored::default() };
    for (path, place) in &places {
        match place {
            Place::Free => restored.written.push(path.clone()),
            Place::Same => restored.same += 1,
            Place::Differs(_) => restored.overwritten.push(path.clone()),
            Place::Blocked(what) => {
                return Err(Failure::failed(format!("{path} cannot be restored: {what}"))
                    .hint("move it out of the way, or restore into another folder with --to"));
            }
        }
    }
    if wish.to.is_some()
        && let [first, ..] = &restored.overwritten[..]
    {
        let what = plural(restored.overwritten.len(), "file");
        return Err(Failure::failed(format!("{what} there would be overwritten, such as {first}"))
            .hint("use another folder, or one that does not exist yet"));
    }
    if wish.is_rehearsal {
        return Ok(restored);
    }
    if !restored.overwritten.is_empty() {
        let why = format!("files of the rescue {} take the place of others", about.id);
        let touches = restored.overwritten.clone();
        let saved = save(env, &repository, Occasion { command: "rescue restore", why, touches })?;
        let lost = saved.left_out.iter().find(|left| restored.overwritten.contains(&left.path));
        if let Some(LeftOut { path, why }) = lost {
            return Err(Failure::failed(format!("{path} would be lost, since {why}"))
                .hint("move it out of the way, or restore into another folder with --to"));
        }
        restored.saved = Some(saved.id);
    }
    wanted.write(&repository, &format!("rescue restore {}", about.id), &root, &places)?;
    Ok(restored)
}

fn chosen(
    files: Vec<Kept>,
    about: &Listed,
    directory: &Path,
    work_dir: &Path,
    wish: &Wish,
) -> Result<Vec<Kept>, Failure> {
    let is_there = |file: &Kept| if wish.staged { file.staged } else { file.state != State::Removed };
    if wish.paths.is_empty() {
        let matters = |file: &Kept| is_there(file) && (file.is_uncommitted() || about.touches.contains(&file.path));
        return Ok(files.into_iter().filter(matters).collect());
    }
    let mut places = Vec::new();
    for path in &wish.paths {
        let place = path_below(work_dir, directory, path);
        let is_in = |file: &Kept| below(&file.path, &place) && (wish.staged || file.state != State::Removed);
        if !files.iter().any(is_in) {
            return Err(Failure::usage(format!("the rescue {} holds no {path}", about.id))
                .hint(format!("`squad rescue show {}` shows what it holds", about.id)));
        }
        places.push(place);
    }
    Ok(files.into_iter().filter(|file| places.iter().any(|place| below(&file.path, place))).collect())
}

fn below(path: &str, place: &str) -> bool {
    place.is_empty() || path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Gives rescues up: these, or all from before a day.
pub(crate) fn give_up(
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
    let mut found: Vec<Rescue> = repository.rescues()?.into_iter().filter(|rescue| rescue.id.starts_with(id)).collect();
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Failure::usage(format!("there is no rescue `{id}`")).hint("`squad rescue list` shows them all")),
        _ => {
            let ids = list(found.iter().take(5).map(|rescue| format!("`{}`", rescue.id)));
            Err(Failure::usage(format!("`{id}` is ambiguous: {ids}")).hint("use a longer prefix"))
        }
    }
}
