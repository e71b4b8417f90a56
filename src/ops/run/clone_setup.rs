//! What a new clone gets besides the project's files: what git ignores, and what the project's set-up makes of it.
//!
//! ```text
//! isolation.bring ─┬→ laid over the clone, where its sandbox can
//!                  └→ copied ─┐
//! .worktreeinclude ─→ copied ─┴→ isolation.setup ─→ ready
//! ```

use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::{Component, Path, PathBuf};

use crate::engine::command::OwnCommand;
use crate::env::files::{Found, is_folder, keep_time, open_below, remove_tree, replace};
use crate::env::{Env, lock, real};
use crate::git::Repository;
use crate::model::{EventKind, RunId, SandboxLevel, Slug, command_line, from_json, list, plural, seconds, to_json};
use crate::ops::Project;
use crate::ops::run::own_commands::{program, require_approved};
use crate::ops::team::sandbox::state_folder;
use crate::ops::team::trust::{self, INCLUDED};
use crate::pool::{Cancel, session_id};
use crate::program::Programs;
use crate::sandbox::{Layer, Sandbox};
use crate::settings::Origin;

const SETUP: &str = "isolation.setup";
const BRING: &str = "isolation.bring";
/// Bytes of the end of the set-up's output that are kept in the record.
const SHOWN: u64 = 4 * 1024;
/// Ports that each clone has to itself.
const PORTS: u16 = 20;
/// The first port of the first clone. Above those of usual services, below those that systems give to clients.
const FIRST_PORT: u16 = 12_000;
const BLOCKS: u16 = 1_000;
/// The file that says that a clone is set up.
pub(super) const READY: &str = "ready";
/// The folder for what agents change in layers.
const LAYERS: &str = "layers";
/// The file in it that names them.
const PATHS: &str = "paths.json";
/// Of what patterns of [`INCLUDED`] match, a clone gets no more: files, their bytes, and folders around one.
const INCLUDED_FILES: usize = 2_000;
const INCLUDED_BYTES: u64 = 256 << 20;
const INCLUDED_DEPTH: usize = 32;

/// What keeps that which runs in a clone out of the way of what runs in others.
pub(super) struct Own {
    pub(super) variables: [(String, String); 3],
    /// Nobody else is given its ports while this is kept.
    _ports: Option<fs::File>,
}

impl Own {
    pub(super) fn new(env: &Env, run: &RunId, agent: &Slug) -> Self {
        let name = format!("squad-{run}-{agent}");
        let (port, ports) = take_ports(state_folder(env).map(|folder| folder.join("ports")).as_deref(), &name);
        let variables = [
            ("SQUAD_CLONE".to_owned(), agent.to_string()),
            ("SQUAD_PORT".to_owned(), port.to_string()),
            ("COMPOSE_PROJECT_NAME".to_owned(), name.to_lowercase()),
        ];
        Self { variables, _ports: ports }
    }
}

/// The first of [`PORTS`] ports that nobody listens on and no other clone has, the same for the same name while that
/// holds, and the lock that keeps them. `locks`: a file for each block.
fn take_ports(locks: Option<&Path>, name: &str) -> (u16, Option<fs::File>) {
    let digest = blake3::hash(name.as_bytes());
    let wanted = u16::from_le_bytes([digest.as_bytes()[0], digest.as_bytes()[1]]);
    let block = |at: u16| FIRST_PORT + (wanted.wrapping_add(at) % BLOCKS) * PORTS;
    let is_free = |first: u16| (first..first + PORTS).all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok());
    for first in (0..BLOCKS).map(block) {
        let file = locks.and_then(|locks| lock::open(&locks.join(first.to_string())).ok());
        // Without a folder for locks, only who listens is seen.
        if file.as_ref().is_none_or(|file| lock::try_take(file).unwrap_or(true)) && is_free(first) {
            return (first, file);
        }
    }
    (block(0), None)
}

/// Lays folders that the settings bring over a clone, where the sandbox can: its programs have them at once, and the user's
/// stay as they are. Returns what else the record has to say.
///
/// # Errors
///
/// `place`, the clone's own folder, cannot be read or written.
pub(super) fn lay(
    project: &Project,
    (place, root, clone): (&Path, &Path, &Repository),
    sandbox: Option<Sandbox>,
) -> Result<(Option<Sandbox>, Vec<String>), String> {
    let (folder, ready) = (place.join(LAYERS), place.join(READY));
    let failed = |error: io::Error| format!("{}: {error}", folder.display());
    let known = fs::read(folder.join(PATHS)).ok().and_then(|text| from_json::<Vec<String>>(text).ok());
    let is_possible = |sandbox: &Sandbox| sandbox.level() == SandboxLevel::Full;
    let paths = match (known.unwrap_or_default(), ready.exists()) {
        (known, true) if known.is_empty() => return Ok((sandbox, Vec::new())),
        (known, true) if sandbox.as_ref().is_some_and(is_possible) => known,
        // What an earlier set-up has left is begun again. So is a clone whose programs would not find what was there.
        _ => {
            forget_layers(place).map_err(failed)?;
            sandbox.as_ref().filter(|sandbox| is_possible(sandbox)).map_or_else(Vec::new, |_| layered(project, clone))
        }
    };
    let (Some(sandbox), false) = (&sandbox, paths.is_empty()) else { return Ok((sandbox, Vec::new())) };
    let tried = paths.iter().map(|path| layer(project, path, (&folder, root), sandbox));
    let layers = tried.collect::<Result<Vec<Layer>, String>>();
    let laid = layers.and_then(|layers| {
        let (within, reasons) = sandbox.clone().with_layers(&layers)?;
        Ok((within, reasons, layers))
    });
    let copied =
        |reason: &str, paths: &str| format!("{paths} is copied into the clone, because no layer can be: {reason}");
    let (within, reasons, layers) = match laid {
        Ok(laid) => laid,
        Err(reason) => {
            forget_layers(place).map_err(failed)?;
            return Ok((Some(sandbox.clone()), vec![copied(&reason, &list(&paths))]));
        }
    };
    let lost: Vec<String> =
        paths.iter().zip(&reasons).filter_map(|(path, reason)| Some(copied(reason.as_ref()?, path))).collect();
    let is_new = !ready.exists();
    if !lost.is_empty() && !is_new {
        forget_layers(place).map_err(failed)?;
        return Ok((Some(sandbox.clone()), lost));
    }
    let of_layers = paths.iter().zip(&layers).zip(&reasons).filter(|(_, reason)| reason.is_none());
    let of_layers: Vec<(&String, &Layer)> = of_layers.map(|(layer, _)| layer).collect();
    let names: Vec<&String> = of_layers.iter().map(|(path, _)| *path).collect();
    let text = to_json(&names).map_err(|error| error.to_string())?;
    replace(&folder.join(PATHS), text.as_bytes()).map_err(failed)?;
    let hidden =
        of_layers.iter().flat_map(|(path, layer)| layer.without.iter().map(|inner| Path::new(path).join(inner)));
    let hidden: Vec<String> = hidden.map(|path| path.display().to_string()).collect();
    Ok((Some(within), lost.into_iter().chain(left_out(&hidden).filter(|_| is_new)).collect()))
}

/// Removes what agents changed in layers; the clone is made ready again.
fn forget_layers(place: &Path) -> io::Result<()> {
    let folder = place.join(LAYERS);
    if folder.exists() {
        let _ = fs::remove_file(place.join(READY));
        remove_tree(&folder)?;
    }
    Ok(())
}

/// What the settings bring that can be a layer: folders without tracked files, since git would not see what becomes of those.
fn layered(project: &Project, clone: &Repository) -> Vec<String> {
    let all = &project.settings.isolation.bring;
    let is_inner = |path: &str| all.iter().any(|other| path != other && Path::new(path).starts_with(other));
    let can_be = |path: &&String| {
        let in_repository = in_repository(project, path);
        !is_inner(path)
            && source(project, path).is_ok_and(|from| is_folder(&from))
            && project.repository.is_ignored(&in_repository)
            && clone.is_tracked(&in_repository).is_ok_and(|is_tracked| !is_tracked)
    };
    let mut paths: Vec<String> = all.iter().filter(can_be).cloned().collect();
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// A layer whose folders are there.
fn layer(project: &Project, path: &str, (folder, root): (&Path, &Path), sandbox: &Sandbox) -> Result<Layer, String> {
    let own = folder.join(&blake3::hash(path.as_bytes()).to_hex()[..12]);
    for name in ["upper", "work"] {
        fs::create_dir_all(own.join(name)).map_err(|error| format!("{}: {error}", own.display()))?;
    }
    let at = in_folders(root, Path::new(path))?;
    if !is_folder(&at) {
        fs::create_dir(&at).map_err(|error| format!("{}: {error}", at.display()))?;
    }
    let source = real(&project.folder.root);
    let from = source.join(path);
    let without = sandbox.hidden_below(&from).filter_map(|hidden| Some(hidden.strip_prefix(&from).ok()?.to_owned()));
    let without = without.filter(|inner| !inner.as_os_str().is_empty()).collect();
    Ok(Layer { source, root: root.to_owned(), path: path.into(), folder: own, without })
}

fn in_repository(project: &Project, path: &str) -> String {
    format!("{}{}", project.path_in_repository(), path.replace('\\', "/"))
}

/// Brings what git ignores, and runs the set-up. The error says why the clone is not ready.
pub(super) async fn prepare(
    (env, project, run): (&Env, &Project, &RunId),
    (agent, (root, sandbox), clone): (&Slug, (&Path, Option<&Sandbox>), &Repository),
    own: &Own,
    tell: &(dyn Fn(EventKind) + Sync),
    mut cancel: Cancel,
) -> Result<(), String> {
    let mut hidden = Vec::new();
    let is_layer = |path: &str| sandbox.is_some_and(|sandbox| sandbox.is_layer(&root.join(path)));
    for path in project.settings.isolation.bring.iter().filter(|path| !is_layer(path)) {
        bring(project, path, (root, sandbox, clone), &mut hidden)
            .map_err(|why| format!("`{BRING}` cannot bring `{path}`: {why}"))?;
    }
    let note = |reason: String| tell(EventKind::SessionError { session: String::new(), reason });
    if is_included(env, project) {
        include(project, (sandbox, clone), &mut hidden)
            .map_err(|why| format!("`{INCLUDED}`: {why}"))?
            .into_iter()
            .for_each(note);
    }
    left_out(&hidden).into_iter().for_each(note);
    if !project.settings.isolation.bring.is_empty() {
        clone.keep_times(&project.repository).map_err(|error| error.to_string())?;
    }
    let arguments = &project.settings.isolation.setup;
    if arguments.is_empty() {
        return Ok(());
    }
    require_approved(env, project, SETUP)?;
    let command = (SETUP, &**arguments, &[][..]);
    set_up((env, project, run), (agent, (root, sandbox), clone), own, command, tell, cancel.wait()).await
}

/// Runs the set-up of a setting, with these more variables by name.
pub(super) async fn set_up(
    (env, project, run): (&Env, &Project, &RunId),
    (agent, (root, sandbox), clone): (&Slug, (&Path, Option<&Sandbox>), &Repository),
    own: &Own,
    (setting, arguments, more): (&str, &[String], &[String]),
    tell: &(dyn Fn(EventKind) + Sync),
    cancelled: impl Future<Output = ()>,
) -> Result<(), String> {
    let Some(name) = arguments.first() else { return Ok(()) };
    let mut variables = env.os_variables();
    variables.extend(own.variables.iter().map(|(name, value)| (name.into(), value.into())));
    let program = program(name, root, &Programs::new(root, &variables))?;
    let (local, session) = (project.local(), format!("{}-setup", session_id(agent, run)));
    let command = OwnCommand {
        program,
        arguments: &arguments[1..],
        directory: root,
        variables,
        more,
        sandbox,
        squad: env.program.as_deref(),
        local: &local,
        session: &session,
        input: None,
        kept: SHOWN,
    };
    let line = command_line(arguments);
    tell(EventKind::ClonePreparing { command: line.clone() });
    let ended = command.run(project.settings.sessions.tool_limit, cancelled).await;
    let ended = ended.map_err(|error| format!("`{setting}` cannot be started: {error}"))?;
    let why = match ended.exit_code {
        Some(0) => None,
        Some(code) => Some(format!("`{line}` exited with {code}")),
        None => Some(format!("`{line}`: {}", ended.reason)),
    };
    let prepared = EventKind::ClonePrepared {
        command: line,
        exit_code: ended.exit_code,
        reason: ended.reason,
        seconds: seconds(ended.duration),
        output: ended.output,
        output_file: ended.output_file,
    };
    tell(prepared);
    if let Some(why) = why {
        return Err(why);
    }
    // It would be taken for the agent's work, and conflict with what the others' set-ups left.
    match clone.has_changes() {
        Ok(false) => Ok(()),
        Ok(true) => Err(format!(
            "`{setting}` changed files that git does not ignore; `git status` in {} shows them",
            root.display()
        )),
        Err(error) => Err(error.to_string()),
    }
}

/// What a path of [`BRING`] names in the project.
fn source(project: &Project, path: &str) -> Result<PathBuf, String> {
    let inner = Path::new(path);
    if inner.as_os_str().is_empty() || !inner.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err("it is no path below the project's folder".to_owned());
    }
    Ok(project.folder.root.join(inner))
}

/// Makes the folders around a path below a root, and returns the path. A set-up that failed may have left links, through
/// which something would be written elsewhere.
fn in_folders(root: &Path, inner: &Path) -> Result<PathBuf, String> {
    let mut folder = root.to_owned();
    for part in inner.parent().into_iter().flat_map(Path::components) {
        folder.push(part);
        match folder.symlink_metadata() {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(format!("{} is no folder", folder.display())),
            Err(_) => fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?,
        }
    }
    Ok(root.join(inner))
}

/// Copies a file or folder that git ignores from the project. What is not there is not brought, and neither is what the
/// sandbox hides in a folder.
fn bring(
    project: &Project,
    path: &str,
    (root, sandbox, clone): (&Path, Option<&Sandbox>, &Repository),
    hidden: &mut Vec<String>,
) -> Result<(), String> {
    let from = source(project, path)?;
    if from.symlink_metadata().is_err() {
        return Ok(());
    }
    let in_repository = in_repository(project, path);
    if !project.repository.is_ignored(&in_repository) {
        return Err("git does not ignore it, so it is in the clone as it is committed".to_owned());
    }
    let to = in_folders(root, Path::new(path))?;
    let cleared = match to.symlink_metadata() {
        Ok(found) if found.is_dir() => remove_tree(&to),
        Ok(_) => fs::remove_file(&to),
        Err(_) => Ok(()),
    };
    let top = real(&project.folder.root).join(path);
    let without: Vec<&PathBuf> =
        sandbox.into_iter().flat_map(|sandbox| sandbox.hidden_below(&top)).filter(|hidden| **hidden != top).collect();
    cleared.and_then(|()| copy(&top, &to, &without)).map_err(|error| error.to_string())?;
    hidden.extend(without.iter().filter_map(|path| shown(project, path)));
    // Tracked files in an ignored folder are as others have committed them.
    clone.restore_tracked(&in_repository).map_err(|error| error.to_string())
}

fn shown(project: &Project, path: &Path) -> Option<String> {
    Some(path.strip_prefix(real(&project.folder.root)).ok()?.display().to_string())
}

/// What the record says of files that the sandbox hides, and that are in no clone.
fn left_out(hidden: &[String]) -> Option<String> {
    let more = hidden.len().saturating_sub(3);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    let named = list(hidden.iter().take(3));
    (!hidden.is_empty()).then(|| format!("not in the clone, because the sandbox hides it: {named}{more}"))
}

/// Copies as the system does it fastest: where the file system can, the copies share their blocks until one changes.
/// Links are copied as links; what is neither file, folder nor link is left out. Times stay: what is newer than another is so
/// in the copy.
fn copy(from: &Path, to: &Path, without: &[&PathBuf]) -> io::Result<()> {
    let facts = from.symlink_metadata()?;
    let kind = facts.file_type();
    if without.iter().any(|path| *path == from) {
        Ok(())
    } else if kind.is_symlink() {
        #[cfg(unix)]
        return std::os::unix::fs::symlink(fs::read_link(from)?, to);
        // Links need a right of their own there.
        #[cfg(not(unix))]
        Ok(())
    } else if kind.is_dir() {
        fs::create_dir(to)?;
        fs::read_dir(from)?
            .try_for_each(|entry| entry.and_then(|entry| copy(&entry.path(), &to.join(entry.file_name()), without)))?;
        keep_time(&facts, to);
        Ok(())
    } else if kind.is_file() {
        fs::copy(from, to).map(|_| keep_time(&facts, to))
    } else {
        Ok(())
    }
}

/// Whether clones are to get what [`INCLUDED`] names, by this user's word. What users bring themselves stands in its place.
fn is_included(env: &Env, project: &Project) -> bool {
    asks_to_include(project) && trust::is_approved(env, project, INCLUDED)
}

fn asks_to_include(project: &Project) -> bool {
    let is_chosen = !matches!(project.settings.origin(BRING), Origin::Default | Origin::Project(..));
    !is_chosen && !trust::included(project).is_empty()
}

/// What is to be said to a user who has not approved [`INCLUDED`].
pub(super) fn not_included(env: &Env, project: &Project) -> Option<String> {
    (asks_to_include(project) && !trust::is_approved(env, project, INCLUDED)).then(|| {
        format!(
            "clones get nothing of what `{INCLUDED}` names, because you have not approved it as it is: `squad trust` shows \
             it, and `squad trust approve {INCLUDED}` approves it"
        )
    })
}

/// Copies the ignored files that patterns of [`INCLUDED`] match. Returns what the record has to say.
fn include(
    project: &Project,
    (sandbox, clone): (Option<&Sandbox>, &Repository),
    hidden: &mut Vec<String>,
) -> Result<Vec<String>, String> {
    let (from, Some(to)) = (real(&project.work_dir), clone.work_dir()) else { return Ok(Vec::new()) };
    let found = project.repository.ignored_matching(&trust::included(project), INCLUDED_FILES);
    let (paths, more) = found.map_err(|error| error.to_string())?;
    let mut left = INCLUDED_BYTES;
    let mut beyond: Vec<String> = Vec::new();
    for path in paths {
        let inner = Path::new(&path);
        let is_hidden = |sandbox: &Sandbox| sandbox.hides(&from.join(inner));
        if sandbox.is_some_and(is_hidden) {
            hidden.push(path);
            continue;
        }
        // Neither links nor pipes are followed.
        let Ok(Found::File(mut file)) = open_below(&from, inner) else { continue };
        let facts = file.metadata().map_err(|error| format!("{path}: {error}"))?;
        if facts.len() > left || inner.components().count() > INCLUDED_DEPTH {
            beyond.push(path);
            continue;
        }
        left -= facts.len();
        let at = in_folders(to, inner)?;
        let _ = fs::remove_file(&at);
        let copied = fs::File::create_new(&at).and_then(|mut copy| {
            copy.set_permissions(facts.permissions())?;
            io::copy(&mut io::Read::take(&mut file, facts.len()), &mut copy)
        });
        copied.map_err(|error| format!("{path}: {error}"))?;
        keep_time(&facts, &at);
    }
    let mut said = Vec::new();
    if !beyond.is_empty() || more > 0 {
        let files = plural(beyond.len() + more, "file");
        let first = beyond.first().map(|path| format!(", such as {path}")).unwrap_or_default();
        said.push(format!(
            "{files} that `{INCLUDED}` names {} not in the clone{first}: it copies {INCLUDED_FILES} files, 256 MiB and \
             {INCLUDED_DEPTH} folders deep; `isolation.bring` has no such bounds",
            if beyond.len() + more == 1 { "is" } else { "are" }
        ));
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names whose wish for a block is the same, and what becomes of it when one of them is done.
    #[test]
    fn no_two_clones_at_once_have_the_same_ports() {
        let locks = tempfile::tempdir().expect("a folder");
        let take = |name: &str| take_ports(Some(locks.path()), name);
        let all: Vec<_> = (0..200).map(|number| take(&format!("agent-{number}"))).collect();
        let firsts: std::collections::BTreeSet<u16> = all.iter().map(|(first, _)| *first).collect();
        assert_eq!(firsts.len(), all.len());
        assert!(firsts.iter().zip(firsts.iter().skip(1)).all(|(one, next)| next - one >= PORTS));
        let (mine, lock) = take("mine");
        let (beside, _lock) = take("mine");
        assert_ne!(mine, beside);
        drop(lock);
        // A process that another test is about to start has the lock for a moment, too.
        let is_free = |_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            take("mine").0 == mine
        };
        assert!((0..100).any(is_free));
    }
}
