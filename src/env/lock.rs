//! Lock files, and who holds them. The kernel frees the lock of a process that dies, however it dies.

use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::files::open_regular;

/// How long a wait may be silent.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// How long a lock may be held without an owner: a child that another process or thread has just forked has the file
/// open until it executes its program.
const OWNERLESS: Duration = Duration::from_secs(1);

/// Opens a lock file, and makes it if it is missing.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    open_regular(File::options().read(true).write(true).create(true).truncate(false), path)
}

/// Takes a lock if it is free.
pub(crate) fn try_take(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => mark(file),
        Err(TryLockError::WouldBlock) => return Ok(false),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    Ok(true)
}

/// Takes a lock unless somebody keeps it. False: somebody does.
pub(crate) fn take(file: &File) -> io::Result<bool> {
    take_within(file, OWNERLESS, || false, &|_| {})
}

/// Takes a lock within a time. False: somebody keeps it for longer, or until `is_over`. `tell` says who, when that takes
/// long.
pub(crate) fn take_within(
    file: &File,
    limit: Duration,
    is_over: impl Fn() -> bool,
    tell: &(dyn Fn(&Holder) + Sync),
) -> io::Result<bool> {
    let start = Instant::now();
    let poll = || loop {
        match try_take(file) {
            Ok(false) if start.elapsed() < limit && !is_over() => thread::sleep(Duration::from_millis(5)),
            answer => return answer,
        }
    };
    if try_take(file)? { Ok(true) } else { wait_for(file, tell, poll) }
}

/// Waits for a lock, however long that takes.
pub(crate) fn wait(file: &File, tell: &(dyn Fn(&Holder) + Sync)) -> io::Result<()> {
    if !try_take(file)? {
        wait_for(file, tell, || file.lock())?;
        mark(file);
    }
    Ok(())
}

/// Whether somebody holds a lock. If nobody does, the file keeps others from taking it until it is closed.
pub(crate) fn is_held(file: &File) -> bool {
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// For those who wait. The owner of the file may be another user.
fn mark(file: &File) {
    let _ = file.set_modified(SystemTime::now());
}

/// The process that holds a lock.
#[derive(Debug, Default)]
pub(crate) struct Holder {
    process: Option<Process>,
    /// How long it has held the lock.
    held_for: Option<Duration>,
}

#[derive(Debug)]
struct Process {
    id: u32,
    command_line: String,
    is_stopped: bool,
}

impl Holder {
    /// Of a lock file whose date is that of its last change of hands.
    pub(crate) fn of(lock: &File) -> Self {
        let metadata = lock.metadata();
        let held_for = metadata.as_ref().ok().and_then(|metadata| metadata.modified().ok()?.elapsed().ok());
        Self { process: metadata.ok().and_then(|metadata| system::holder(&metadata)), held_for }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.process {
            Some(Process { id, command_line, .. }) if command_line.is_empty() => write!(f, "process {id}")?,
            Some(Process { id, command_line, .. }) => write!(f, "process {id} (`{command_line}`)")?,
            None => write!(f, "another process")?,
        }
        write!(f, " has held it")?;
        match self.held_for {
            Some(time) => write!(f, " for {} s", time.as_secs())?,
            None => write!(f, " all the time")?,
        }
        match &self.process {
            Some(Process { id, is_stopped: true, .. }) => {
                write!(f, ", and is stopped: `kill -CONT {id}` lets it go on, `kill -KILL {id}` ends it")
            }
            _ => Ok(()),
        }
    }
}

/// Waits, and has `tell` say who holds the lock when that takes long.
fn wait_for<T>(lock: &File, tell: &(dyn Fn(&Holder) + Sync), wait: impl FnOnce() -> T) -> T {
    let (end, ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let told = thread::Builder::new().spawn_scoped(scope, move || {
            if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                tell(&Holder::of(lock));
            }
        });
        // The system may refuse a thread; then the wait is silent.
        drop(told);
        let result = wait();
        drop(end);
        result
    })
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs::{self, Metadata};
    use std::os::unix::fs::MetadataExt;

    use super::Process;

    /// Read from `/proc/locks`, which has lines like `1: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF`.
    pub(super) fn holder(lock: &Metadata) -> Option<Process> {
        let locks = fs::read_to_string("/proc/locks").ok()?;
        let inode = format!(":{}", lock.ino());
        let holders = locks.lines().filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            match fields[..] {
                // A waiting process has an arrow in the second field.
                [_, "FLOCK", _, "WRITE", id, file, ..] if file.ends_with(&inode) => id.parse().ok(),
                _ => None,
            }
        });
        let id = { holders }.find(|id| has_open(*id, lock))?;
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let state = stat.rsplit_once(')').and_then(|(_, fields)| fields.trim_start().chars().next());
        let words = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let command_line = String::from_utf8_lossy(&words).replace('\0', " ").trim_end().to_owned();
        Some(Process { id, command_line, is_stopped: matches!(state, Some('T' | 't')) })
    }

    /// The list of locks names devices as only the kernel knows them, and another file may have the same inode.
    fn has_open(id: u32, file: &Metadata) -> bool {
        let opened = fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().flatten();
        let mut opened = opened.filter_map(|opened| fs::metadata(opened.path()).ok());
        opened.any(|opened| (opened.dev(), opened.ino()) == (file.dev(), file.ino()))
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::fs::Metadata;

    use super::Process;

    pub(super) fn holder(_lock: &Metadata) -> Option<Process> {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Who is cancelled does not wait until the other has finished.
    #[test]
    fn a_wait_ends_with_what_it_is_for() {
        for (is_cancelled, is_taken) in [(true, false), (false, true)] {
            let folder = tempfile::tempdir().expect("a folder");
            let [held, other] = [(); 2].map(|()| open(&folder.path().join("lock")).expect("opened"));
            assert!(try_take(&held).expect("locked"));
            let (done, is_done) = mpsc::channel::<()>();
            let holder = thread::spawn(move || {
                let _ = is_done.recv_timeout(Duration::from_secs(2));
                drop(held);
            });
            let asked = AtomicUsize::new(0);
            let is_over = || asked.fetch_add(1, Ordering::Relaxed) > 1 && is_cancelled;
            let taken = take_within(&other, Duration::from_secs(60), is_over, &|_| {}).expect("a lock");
            assert_eq!(taken, is_taken, "while it is held");
            let _ = done.send(());
            holder.join().expect("it ended");
        }
    }
}
