//! The processes of this machine, as far as squad's variables are in their environments or may be.

use crate::model::IntoMap;
use std::collections::BTreeMap;

/// A process at a moment.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) id: i32,
    name: String,
    pub(super) command_line: String,
    environment: Environment,
}

#[derive(Debug)]
#[cfg_attr(windows, expect(dead_code, reason = "nothing is read there"))]
enum Environment {
    /// Every variable with a NUL behind it.
    Known(Vec<u8>),
    /// macOS does not show that of its own programs, such as `/bin/sh` (psutil's issue 2084). Elsewhere a process may
    /// have none: `env -i`. What it is part of is told by its parent, while that lives.
    Hidden { parent: i32, started: u64 },
}

/// What identifies a process whose parent may end, and whose id may be given to another.
pub(super) type Birth = (i32, u64);

/// All processes but this one that have squad's variables or a hidden environment.
#[derive(Default)]
pub(super) struct Processes(pub(super) BTreeMap<i32, Process>);

impl Processes {
    pub(super) fn read() -> Self {
        let own = i32::try_from(std::process::id()).unwrap_or(0);
        Self(system::processes().filter(|process| process.id != own).map(|process| (process.id, process)).into_map())
    }

    /// Those that carry all of these variables, and those with a hidden environment that descend from one of them.
    pub(super) fn carrying(&self, variables: &[String]) -> impl Iterator<Item = &Process> {
        self.0.values().filter(|process| self.carries(process, variables))
    }

    fn carries(&self, process: &Process, variables: &[String]) -> bool {
        let parent = |process: &&Process| self.0.get(&process.parent()?);
        // A list that is read while processes end and begin could have a circle.
        let line = std::iter::successors(Some(process), parent).take(self.0.len());
        line.map(|process| &process.environment).find_map(|environment| environment.carries(variables)).unwrap_or(false)
    }

    pub(super) fn born(&self, births: &[Birth]) -> impl Iterator<Item = &Process> {
        births.iter().filter_map(|birth| self.0.get(&birth.0).filter(|process| process.birth() == Some(*birth)))
    }
}

impl Environment {
    /// `None`: it is hidden.
    fn carries(&self, variables: &[String]) -> Option<bool> {
        let Self::Known(environment) = self else { return None };
        let has = |wanted: &String| environment.split(|&byte| byte == 0).any(|variable| variable == wanted.as_bytes());
        Some(variables.iter().all(has))
    }
}

impl Process {
    fn parent(&self) -> Option<i32> {
        match self.environment {
            Environment::Hidden { parent, .. } => Some(parent),
            Environment::Known(_) => None,
        }
    }

    /// `None`: its environment is known, so it is found by that.
    pub(super) fn birth(&self) -> Option<Birth> {
        match self.environment {
            Environment::Hidden { started, .. } => Some((self.id, started)),
            Environment::Known(_) => None,
        }
    }

    /// Git holds locks, and ends by itself.
    pub(super) fn is_git(&self) -> bool {
        self.name.starts_with("git")
    }

    /// Whether there was anything to kill.
    #[cfg(unix)]
    pub(super) fn kill(&self) -> bool {
        use rustix::process::{Pid, Signal, kill_process};

        Pid::from_raw(self.id).is_some_and(|id| kill_process(id, Signal::KILL).is_ok())
    }

    /// The job of an engine ends what it has started.
    #[cfg(windows)]
    pub(super) fn kill(&self) -> bool {
        false
    }
}

#[cfg(unix)]
fn is_marked(environment: &[u8]) -> bool {
    environment.split(|&byte| byte == 0).any(|variable| variable.starts_with(b"SQUAD_"))
}

#[cfg(target_os = "linux")]
pub(super) use system::is_group_alive;

/// Read from `/proc`: in a third of the time that `sysinfo` takes for it, and it happens at the end of each session.
#[cfg(target_os = "linux")]
mod system {
    use std::fs;

    use super::{Environment, Process, is_marked};

    pub(super) fn processes() -> impl Iterator<Item = Process> {
        ids().filter_map(|id| {
            // Another user's process cannot be read, nor is it ours.
            let environment = fs::read(format!("/proc/{id}/environ")).ok()?;
            let environment = match is_marked(&environment) {
                true => Environment::Known(environment),
                false if environment.is_empty() => {
                    let (parent, started) = stat(id).and_then(|stat| stat.birth())?;
                    Environment::Hidden { parent, started }
                }
                false => return None,
            };
            let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
            let words = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            let command_line = String::from_utf8_lossy(&words).replace('\0', " ").trim_end().to_owned();
            Some(Process { id, name, command_line, environment })
        })
    }

    /// Whether a process of the group runs; one that is dead and not taken note of does not.
    pub(in crate::engine) fn is_group_alive(group: u32) -> bool {
        ids().filter_map(stat).any(|stat| stat.is_alive() && stat.number(2) == Some(u64::from(group)))
    }

    fn ids() -> impl Iterator<Item = i32> {
        let processes = fs::read_dir("/proc").into_iter().flatten();
        processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
    }

    /// The fields behind a process's name: state, parent, group, and so on (proc_pid_stat(5)).
    struct Stat(String);

    fn stat(id: i32) -> Option<Stat> {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name in parentheses may hold anything.
        stat.rsplit_once(')').map(|(_, fields)| Stat(fields.to_owned()))
    }

    impl Stat {
        fn is_alive(&self) -> bool {
            !matches!(self.0.split_whitespace().next(), None | Some("Z" | "X"))
        }

        fn number(&self, index: usize) -> Option<u64> {
            self.0.split_whitespace().nth(index)?.parse().ok()
        }

        /// The parent and the time of the start; `None` for the dead and for threads of the kernel, children of 0 or 2.
        fn birth(&self) -> Option<(i32, u64)> {
            let parent = i32::try_from(self.number(1)?).ok()?;
            (self.is_alive() && !matches!(parent, 0 | 2)).then_some((parent, self.number(19)?))
        }
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
mod system {
    use sysinfo::{ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, System, UpdateKind};

    use super::{Environment, Process, is_marked};

    pub(super) fn processes() -> impl Iterator<Item = Process> {
        let kind = ProcessRefreshKind::nothing().with_environ(UpdateKind::Always).with_cmd(UpdateKind::Always);
        let system = System::new().inspect_err(|error| tracing::warn!("processes cannot be read: {error}"));
        let mut found = Vec::new();
        if let Ok(mut system) = system {
            system.refresh_processes_specifics(ProcessesToUpdate::All, true, kind);
            found.extend(system.processes().values().filter_map(process));
        }
        found.into_iter()
    }

    fn process(process: &sysinfo::Process) -> Option<Process> {
        let variables = process.environ().iter();
        let environment: Vec<u8> =
            variables.flat_map(|variable| [variable.as_encoded_bytes(), b"\0"].concat()).collect();
        let environment = match is_marked(&environment) {
            true => Environment::Known(environment),
            false if environment.is_empty() && process.status() != ProcessStatus::Zombie => {
                let parent = i32::try_from(process.parent()?.as_u32()).ok()?;
                Environment::Hidden { parent, started: process.start_time() }
            }
            false => return None,
        };
        let words: Vec<_> = process.cmd().iter().map(|word| word.to_string_lossy()).collect();
        Some(Process {
            id: i32::try_from(process.pid().as_u32()).ok()?,
            name: process.name().to_string_lossy().into_owned(),
            command_line: words.join(" "),
            environment,
        })
    }
}

#[cfg(windows)]
mod system {
    use super::Process;

    pub(super) fn processes() -> impl Iterator<Item = Process> {
        std::iter::empty()
    }
}
