//! What a new clone gets besides the project's files: what git ignores, and what the project's set-up makes of it.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::{Component, Path};

use crate::engine::command::OwnCommand;
use crate::env::files::keep_time;
use crate::env::{Env, lock};
use crate::git::Repository;
use crate::model::{EventKind, RunId, Slug, command_line, seconds};
use crate::ops::Project;
use crate::ops::run::own_commands::{program, require_approved};
use crate::ops::team::sandbox::state_folder;
use crate::pool::{Cancel, session_id};
use crate::program::Programs;
use crate::sandbox::Sandbox;

const SETUP: &str = "isolation.setup";
const BRING: &str = "isolation.bring";
/// Bytes of the end of the set-up's output that are kept in the record.
const SHOWN: u64 = 4 * 1024;
/// Ports that each clone has to itself.
const PORTS: u16 = 20;
/// The first port of the first clone. Above those of usual services, below those that systems give to clients.
const FIRST_PORT: u16 = 12_000;
const BLOCKS: u16 = 1_000;

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

/// Brings what git ignores, and runs the set-up. The error says why the clone is not ready.
pub(super) async fn prepare(
    (env, project, run): (&Env, &Project, &RunId),
    (agent, (root, sandbox), clone): (&Slug, (&Path, Option<&Sandbox>), &Repository),
    own: &Own,
    tell: &(dyn Fn(EventKind) + Sync),
    mut cancel: Cancel,
) -> Result<(), String> {
    for path in &project.settings.isolation.bring {
        bring(project, path, (root, clone)).map_err(|why| format!("`{BRING}` cannot bring `{path}`: {why}"))?;
    }
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

/// Copies a file or folder that git ignores from the project. What is not there is not brought.
fn bring(project: &Project, path: &str, (root, clone): (&Path, &Repository)) -> Result<(), String> {
    let inner = Path::new(path);
    if inner.as_os_str().is_empty() || !inner.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err("it is no path below the project's folder".to_owned());
    }
    let from = project.folder.root.join(inner);
    if from.symlink_metadata().is_err() {
        return Ok(());
    }
    let in_repository = format!("{}{}", project.path_in_repository(), path.replace('\\', "/"));
    if !project.repository.is_ignored(&in_repository) {
        return Err("git does not ignore it, so it is in the clone as it is committed".to_owned());
    }
    // A set-up that failed may have left links, through which this would write elsewhere.
    let mut to = root.to_owned();
    for part in inner.parent().into_iter().flat_map(Path::components) {
        to.push(part);
        match to.symlink_metadata() {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(format!("{} is no folder", to.display())),
            Err(_) => fs::create_dir(&to).map_err(|error| error.to_string())?,
        }
    }
    let to = root.join(inner);
    let cleared = match to.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(&to),
        Ok(_) => fs::remove_file(&to),
        Err(_) => Ok(()),
    };
    cleared.and_then(|()| copy(&from, &to)).map_err(|error| error.to_string())?;
    // Tracked files in an ignored folder are as others have committed them.
    clone.restore_tracked(&in_repository).map_err(|error| error.to_string())
}

/// Copies as the system does it fastest: where the file system can, the copies share their blocks until one changes.
/// Links are copied as links; what is neither file, folder nor link is left out. Times stay: what is newer than another is so
/// in the copy.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let facts = from.symlink_metadata()?;
    let kind = facts.file_type();
    if kind.is_symlink() {
        #[cfg(unix)]
        return std::os::unix::fs::symlink(fs::read_link(from)?, to);
        // Links need a right of their own there.
        #[cfg(not(unix))]
        Ok(())
    } else if kind.is_dir() {
        fs::create_dir(to)?;
        fs::read_dir(from)?
            .try_for_each(|entry| entry.and_then(|entry| copy(&entry.path(), &to.join(entry.file_name()))))?;
        keep_time(&facts, to);
        Ok(())
    } else if kind.is_file() {
        fs::copy(from, to).map(|_| keep_time(&facts, to))
    } else {
        Ok(())
    }
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
