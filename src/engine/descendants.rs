//! What an engine has started, and what that has started in turn: tools run their shells in sessions of their own, so
//! a killed engine leaves them behind. They inherit variables of squad's.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio::time::sleep;

use super::processes::{Birth, Process, Processes};
use crate::engine::spawn_blocking;
use crate::sandbox::is_entering;

/// The processes that carry these variables in their environment, but no `git`: that holds locks, and ends by itself.
pub(super) struct Descendants {
    /// As `NAME=value`.
    variables: Vec<String>,
    /// Those that do not show their environment, found while their parents lived.
    hidden: Vec<Birth>,
}

impl Descendants {
    pub(super) fn of(variables: &[(&str, &str)]) -> Self {
        let variables = variables.iter().map(|(name, value)| format!("{name}={value}"));
        Self { variables: variables.collect(), hidden: Vec::new() }
    }

    /// Notes those that cannot be found once their parents have ended. To be called before an engine's process is ended.
    pub(super) fn look(&mut self) {
        self.hidden.extend(Processes::read().carrying(&self.variables).filter_map(Process::birth));
    }

    /// Ends them, and gives their command lines. What ends by itself in this moment is given the time for it.
    pub(super) async fn end_left_running(&self) -> Vec<String> {
        static SCANS: LazyLock<Scans> = LazyLock::new(Scans::default);
        if self.among(&*SCANS.next().await).is_empty() {
            return Vec::new();
        }
        sleep(Duration::from_millis(100)).await;
        self.end().await
    }

    /// Ends them at once, and gives their command lines. squad's own way into the sandbox is nothing that a tool left.
    pub(super) async fn end(&self) -> Vec<String> {
        self.end_all_in(Processes::read).await
    }

    /// Ends those that `read` finds, however long it takes to read.
    async fn end_all_in(&self, read: impl Fn() -> Processes) -> Vec<String> {
        // By their ids: one that dies slowly is met again.
        let mut ended = BTreeMap::new();
        let mut deadline = None;
        loop {
            let processes = read();
            let mut found = self.among(&processes);
            // With the first process of a sandbox end all others there, before anybody has named them.
            found.sort_by_key(|process| is_entering(&process.command_line));
            for process in &found {
                if process.kill() && !is_entering(&process.command_line) {
                    ended.entry(process.id).or_insert_with(|| process.command_line.clone());
                }
            }
            // A process may start another between being seen and being killed, so look again, but not for ever. The time
            // counts from the first kills: on a busy machine one look takes longer.
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + Duration::from_millis(200));
            if found.is_empty() || Instant::now() >= deadline {
                return ended.into_values().collect();
            }
            sleep(Duration::from_millis(5)).await;
        }
    }

    fn among<'a>(&self, processes: &'a Processes) -> Vec<&'a Process> {
        let found = processes.carrying(&self.variables).chain(processes.born(&self.hidden));
        found.filter(|process| !process.is_git()).collect()
    }
}

/// A scan reads every process of the machine. Sessions that close at the same time share one, which begins after all of
/// them have asked.
#[derive(Default)]
struct Scans {
    asked: AtomicU64,
    /// The last scan, and how many had asked before it began.
    last: Mutex<(u64, Arc<Processes>)>,
}

impl Scans {
    async fn next(&self) -> Arc<Processes> {
        let number = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let mut last = self.last.lock().await;
        if last.0 < number {
            let before = self.asked.load(Ordering::SeqCst);
            // It fails only when the program ends, and then nothing else is awaited.
            let found = spawn_blocking(Processes::read).await.unwrap_or_default();
            *last = (before, Arc::new(found));
        }
        Arc::clone(&last.1)
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Child, Command, Stdio};

    use super::*;

    const NAME: &str = "SQUAD_TEST_DESCENDANTS";

    /// A shell that carries the variable, and the command line of a child of it that has no environment.
    fn shell(value: &str, seconds: u32) -> (Child, String) {
        let script = format!("env -i sleep {seconds} & echo; wait");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).env(NAME, value).stdout(Stdio::piped());
        let mut shell = shell.spawn().expect("a shell");
        let mut line = String::new();
        BufReader::new(shell.stdout.take().expect("a pipe")).read_line(&mut line).expect("it has started its child");
        let line = format!("sleep {seconds}");
        // `env` shows its environment until it has become `sleep`.
        while !Processes::read().0.values().any(|process| process.command_line == line) {
            std::thread::sleep(Duration::from_millis(5));
        }
        (shell, line)
    }

    #[tokio::test]
    async fn a_process_without_an_environment_is_its_parents() {
        let (mut shell, child) = shell("its-parents", 7401);
        assert_eq!(Descendants::of(&[(NAME, "another")]).end().await, [""; 0]);
        let ended = Descendants::of(&[(NAME, "its-parents")]).end().await;
        assert!(ended.contains(&child) && ended.len() == 2, "{ended:?}");
        shell.wait().expect("it has ended");
    }

    #[tokio::test]
    async fn a_slow_look_ends_them_all_the_same() {
        let (mut shell, child) = shell("slow", 7403);
        let slow = || {
            std::thread::sleep(Duration::from_millis(300));
            Processes::read()
        };
        let ended = Descendants::of(&[(NAME, "slow")]).end_all_in(slow).await;
        shell.kill().expect("it ends");
        shell.wait().expect("it has ended");
        assert!(ended.contains(&child) && ended.len() == 2, "{ended:?}");
    }

    #[tokio::test]
    async fn who_enters_the_sandbox_is_ended_and_not_reported() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("within"), "echo; read line; true").expect("a script");
        for (rules, reported) in [("{\"level\":\"full\"}", 0), ("{}", 1)] {
            let mut command = Command::new("sh");
            command.args(["within", rules, "sh"]).current_dir(folder.path()).env(NAME, "within");
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a shell");
            child.stdout.as_mut().expect("a pipe").read_exact(&mut [0]).expect("a line");
            assert_eq!(Descendants::of(&[(NAME, "within")]).end().await.len(), reported);
            assert!(!child.wait().expect("it has ended").success());
        }
    }

    #[tokio::test]
    async fn a_git_ends_by_itself() {
        let folder = tempfile::tempdir().expect("a folder");
        let start = |name: &str| {
            let path = folder.path().join(name);
            std::os::unix::fs::symlink("/bin/sh", &path).expect("a link");
            let mut command = Command::new(path);
            command.args(["-c", "echo; read line; true"]).env(NAME, "git");
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a shell");
            // Until it runs, the kernel shows no variables of it.
            child.stdout.as_mut().expect("a pipe").read_exact(&mut [0]).expect("a line");
            child
        };
        let mut children = ["git", "git-remote-https", "agit"].map(start);
        assert_eq!(Descendants::of(&[(NAME, "git")]).end().await.len(), 1);
        drop(children.each_mut().map(|child| child.stdin.take()));
        assert_eq!(children.each_mut().map(|child| child.wait().expect("it ends").success()), [true, true, false]);
    }

    #[tokio::test]
    async fn it_is_known_when_its_parent_has_ended() {
        let (mut shell, child) = shell("ended", 7402);
        let (late, mut early) = (Descendants::of(&[(NAME, "ended")]), Descendants::of(&[(NAME, "ended")]));
        early.look();
        shell.kill().expect("it ends");
        shell.wait().expect("it has ended");
        assert_eq!(late.end_left_running().await, [""; 0]);
        assert_eq!(early.end_left_running().await, [child]);
    }
}
