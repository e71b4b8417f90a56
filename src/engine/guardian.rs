//! Finds and ends what a killed engine left behind, and what is left when squad itself is killed.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

use crate::program::Program;

/// What squad says to its guardian when all is in order.
const DISMISSED: &[u8] = b"dismissed";
/// The CLI ends by itself when its input closes, and stores its sessions meanwhile.
const PATIENCE: Duration = Duration::from_secs(1);

/// A process that outlives squad: when its input closes without a word, squad is dead, and what carries the mark is
/// ended. The kernel closes the input however squad dies.
pub(super) struct Guardian(Child);

impl Guardian {
    /// `squad` is the program that is told to [`guard`]. Without one there is no guardian.
    pub(super) fn start(squad: &Program, name: &str, value: &str) -> Option<Self> {
        let mut command = Command::from(squad.command());
        command.args(["guard", name, value]).env_clear().process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().inspect_err(|error| tracing::warn!("there is no guardian: {error}")).ok().map(Self)
    }

    pub(super) async fn dismiss(mut self) {
        if let Some(mut input) = self.0.stdin.take() {
            // One that is gone needs no word.
            let _ = input.write_all(DISMISSED).await;
        }
        let _ = tokio::time::timeout(PATIENCE, self.0.wait()).await;
    }
}

/// What the guardian does after its input has closed.
pub(crate) async fn guard(name: &str, value: &str, heard: &[u8]) {
    if heard != DISMISSED {
        tokio::time::sleep(PATIENCE).await;
        end(&[(name, value)]).await;
    }
}

/// The same for what a session has left behind. What ends with the session is given the time for it.
pub(super) async fn end_left_running(marks: &[(&str, &str)]) -> Vec<String> {
    static SCANS: LazyLock<Scans> = LazyLock::new(Scans::default);
    if !SCANS.next().await.iter().any(|process| process.carries(marks)) {
        return Vec::new();
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    end(marks).await
}

/// Kills every process that carries these variables in its environment, but no `git`: that holds locks, and ends by
/// itself. Gives their command lines.
pub(crate) async fn end(marks: &[(&str, &str)]) -> Vec<String> {
    // By their ids: one that dies slowly is met again.
    let mut ended = BTreeMap::new();
    // A process may start another between being seen and being killed, so look again, but not for ever.
    let deadline = Instant::now() + Duration::from_millis(200);
    loop {
        let found: Vec<i32> =
            scan().into_iter().filter(|process| process.carries(marks)).map(|process| process.id).collect();
        if found.is_empty() || Instant::now() >= deadline {
            return ended.into_values().collect();
        }
        for id in found {
            let line = command_line(id);
            if kill(id) {
                ended.entry(id).or_insert(line);
            }
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Whether a process of the group runs; one that is dead and not taken note of does not.
pub(super) fn is_group_alive(group: u32) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten();
    let ids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    ids.filter_map(|id| fs::read_to_string(format!("/proc/{id}/stat")).ok()).any(|stat| {
        // The name in parentheses may hold anything. Behind it: state, parent, group.
        let mut fields = stat.rsplit_once(')').map(|(_, fields)| fields.split_whitespace()).into_iter().flatten();
        let (state, group_of) = (fields.next(), fields.nth(1));
        !matches!(state, None | Some("Z" | "X")) && group_of.and_then(|id| id.parse().ok()) == Some(group)
    })
}

/// A process with variables of squad's.
struct Marked {
    id: i32,
    /// As the kernel has it: every variable with a NUL behind it.
    environment: Vec<u8>,
}

impl Marked {
    fn carries(&self, marks: &[(&str, &str)]) -> bool {
        marks.iter().all(|(name, value)| {
            let mark = format!("{name}={value}");
            self.environment.split(|&byte| byte == 0).any(|variable| variable == mark.as_bytes())
        })
    }
}

/// All of them but this one and every `git`.
fn scan() -> Vec<Marked> {
    let processes = fs::read_dir("/proc").into_iter().flatten();
    let ids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let read = |id| {
        // Another user's process cannot be read, nor is it ours. That of a zombie is empty.
        let environment = fs::read(format!("/proc/{id}/environ")).ok()?;
        let is_ours = environment.split(|&byte| byte == 0).any(|variable| variable.starts_with(b"SQUAD_"));
        (is_ours && !is_git(id)).then_some(Marked { id, environment })
    };
    ids.filter(|&id| id != own).filter_map(read).collect()
}

/// A scan reads every process of the machine. Sessions that close at the same time share one, which begins after all of
/// them have asked.
#[derive(Default)]
struct Scans {
    asked: AtomicU64,
    /// The last scan, and how many had asked before it began.
    last: Mutex<(u64, Arc<Vec<Marked>>)>,
}

impl Scans {
    async fn next(&self) -> Arc<Vec<Marked>> {
        let number = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let mut last = self.last.lock().await;
        if last.0 < number {
            let before = self.asked.load(Ordering::SeqCst);
            // It fails only when the program ends, and then nothing else is awaited.
            let found = tokio::task::spawn_blocking(scan).await.unwrap_or_default();
            *last = (before, Arc::new(found));
        }
        Arc::clone(&last.1)
    }
}

fn command_line(id: i32) -> String {
    let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ").trim_end().to_owned()
}

fn is_git(id: i32) -> bool {
    fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|name| name.trim_end().starts_with("git"))
}

fn kill(id: i32) -> bool {
    Pid::from_raw(id).is_some_and(|id| kill_process(id, Signal::KILL).is_ok())
}
