//! Finds and ends what a killed engine left behind, and what is left when squad itself is killed.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

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
    if marked(marks).is_empty() {
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
        let found = marked(marks);
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

fn marked(marks: &[(&str, &str)]) -> Vec<i32> {
    let marks: Vec<String> = marks.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let processes = fs::read_dir("/proc").into_iter().flatten();
    let ids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    ids.filter(|&id| id != own && carries(id, &marks) && !is_git(id)).collect()
}

fn carries(id: i32, marks: &[String]) -> bool {
    // Another user's process cannot be read, nor is it ours. That of a zombie is empty.
    let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
    let has = |mark: &String| environment.split(|&byte| byte == 0).any(|variable| variable == mark.as_bytes());
    marks.iter().all(has)
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
