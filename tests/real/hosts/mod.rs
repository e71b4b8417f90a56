//! Other machines, played by daemons on loopback: OpenSSH's and Slurm's, which `.ci/install-real-parts` unpacks.

mod runs;
mod slurm;
mod sshd;

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::support::{PATIENCE, processes_with, signal};

const NAMES: [&str; 2] = ["one", "two"];

/// The variable by which a program knows its machine.
const NAME: &str = "SQUAD_TEST_HOST";

/// Two machines that programs are started on. All that runs there ends with this value.
struct Hosts {
    folder: TempDir,
    daemons: Vec<Child>,
    /// How each of them was started: its program, arguments and variables.
    started: Vec<(String, Vec<String>, Vec<(String, String)>)>,
    /// Where their programs were unpacked.
    part: PathBuf,
    /// A program and its arguments that start what follows them on a machine, in the order of [`NAMES`].
    launchers: [Vec<String>; 2],
}

impl Hosts {
    /// Without any daemon yet.
    fn of(part: &str) -> Self {
        let part = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/.cache").join(part);
        let folder = tempfile::Builder::new().prefix("squad-test-").tempdir().expect("a temporary folder");
        Self { folder, daemons: Vec::new(), started: Vec::new(), part, launchers: [Vec::new(), Vec::new()] }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).expect("a file");
        self.path(name)
    }

    /// A program of that part, unpacked or of the system.
    fn program(&self, name: &str) -> String {
        let roots = [self.part.as_path(), Path::new("/")];
        let places = roots.into_iter().flat_map(|root| ["usr/sbin", "usr/bin"].map(|bin| root.join(bin).join(name)));
        let found = places.into_iter().find(|path| path.is_file());
        found
            .unwrap_or_else(|| panic!("no {name}; .ci/install-real-parts unpacks it"))
            .to_str()
            .expect("UTF-8")
            .to_owned()
    }

    fn libraries(&self) -> PathBuf {
        self.part.join("usr/lib/x86_64-linux-gnu")
    }

    /// What marks all that runs on the machines.
    fn mark(&self) -> (&str, String) {
        ("SQUAD_TEST_HOSTS", self.folder.path().display().to_string())
    }

    /// Starts a program that stays. Its output goes to a file.
    fn start(&mut self, program: &str, arguments: &[&str], variables: &[(&str, &str)]) {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.started.push((program.to_owned(), arguments, variables));
        let daemon = self.spawn(self.daemons.len());
        self.daemons.push(daemon);
    }

    fn spawn(&self, number: usize) -> Child {
        let (program, arguments, variables) = &self.started[number];
        let log = File::options().create(true).append(true).open(self.path(&format!("{number}.log"))).expect("a file");
        let mut command = Command::new(program);
        let (name, value) = self.mark();
        command.args(arguments).env(name, value).envs(variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a file")).stderr(log);
        command.spawn().unwrap_or_else(|error| panic!("{program}: {error}"))
    }

    /// Kills the daemons that serve launchers, and starts them again.
    fn restart(&mut self) {
        for number in 0..self.daemons.len() {
            // Slurm's controller is one for all machines.
            if !self.started[number].0.contains("slurmctld") {
                let _ = self.daemons[number].kill();
                let _ = self.daemons[number].wait();
                self.daemons[number] = self.spawn(number);
            }
        }
    }

    fn wait_until(&mut self, is_ready: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_ready() {
            let ended = self.daemons.iter_mut().any(|daemon| daemon.try_wait().expect("a child").is_some());
            assert!(!ended && Instant::now() < deadline, "{}", self.logs());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// What the daemons said.
    fn logs(&self) -> String {
        let of = |number| std::fs::read_to_string(self.path(&format!("{number}.log"))).unwrap_or_default();
        (0..self.daemons.len()).map(of).collect::<Vec<_>>().join("---\n")
    }

    /// The arguments that run a program on a machine.
    fn launch(&self, host: usize, command: &[&str]) -> Vec<String> {
        self.launchers[host].iter().cloned().chain(command.iter().map(|word| (*word).to_owned())).collect()
    }

    /// What runs on the machines apart from the daemons.
    fn processes(&self) -> Vec<(u32, String)> {
        let (name, value) = self.mark();
        let daemons: Vec<u32> = self.daemons.iter().map(Child::id).collect();
        let all = processes_with(&format!("{name}={value}")).into_iter();
        all.filter(|(id, _)| !daemons.contains(id)).collect()
    }
}

impl Hosts {
    /// The programs of agents' work that run on the machines.
    fn workers(&self) -> Vec<(u32, String)> {
        let mut all = self.processes();
        all.retain(|(_, line)| line.contains("squad"));
        all
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        let deadline = Instant::now() + PATIENCE;
        while let all = self.processes()
            && !all.is_empty()
            && Instant::now() < deadline
        {
            for (id, _) in all {
                // Slurm's own process beside a job has another title, no environment, and stays for a while.
                for id in parent(id).filter(|parent| title(*parent).starts_with("slurmstepd")).into_iter().chain([id]) {
                    kill(id);
                }
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Kills a process that may have ended already.
fn kill(process: u32) {
    let _ = Command::new("kill").args(["-KILL", &process.to_string()]).stderr(Stdio::null()).status();
}

fn title(process: u32) -> String {
    let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).into_owned()
}

fn parent(process: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// A port that nobody listens on.
fn free_port(address: &str) -> u16 {
    TcpListener::bind((address, 0)).and_then(|listener| listener.local_addr()).expect("a port").port()
}

/// The user of this process.
fn user() -> String {
    let done = Command::new("id").arg("-un").output().expect("id runs");
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

/// What a program on a machine prints of its input, and its exit code.
fn answer(hosts: &Hosts, host: usize, command: &[&str], input: &str) -> (String, Option<i32>) {
    let file = hosts.write("input", input);
    let arguments = hosts.launch(host, command);
    let mut command = Command::new(&arguments[0]);
    command.args(&arguments[1..]).stdin(File::open(file).expect("a file"));
    let output = command.output().expect("a launcher starts");
    (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code())
}

/// Input, output and exit code pass, and nothing stays behind.
fn launches_squad(hosts: Hosts) {
    let script = hosts.write("seven.sh", "cat; exit 7");
    for host in 0..NAMES.len() {
        let version = format!("squad {}\n", env!("CARGO_PKG_VERSION"));
        assert_eq!(answer(&hosts, host, &["squad", "--version"], ""), (version, Some(0)), "{}", hosts.logs());
        assert_eq!(answer(&hosts, host, &["sh", &script], "a\nb"), ("a\nb".to_owned(), Some(7)));
    }
    let mut sleeper = {
        let arguments = hosts.launch(0, &["sleep", "600"]);
        Command::new(&arguments[0]).args(&arguments[1..]).spawn().expect("a launcher starts")
    };
    let deadline = Instant::now() + PATIENCE;
    let is_there = |hosts: &Hosts| hosts.processes().iter().any(|(_, line)| line.ends_with("sleep 600 "));
    while !is_there(&hosts) {
        assert!(Instant::now() < deadline, "{:?}", hosts.processes());
        thread::sleep(Duration::from_millis(10));
    }
    let mark = hosts.mark();
    let mark = format!("{}={}", mark.0, mark.1);
    drop(hosts);
    assert_eq!(processes_with(&mark), []);
    signal(sleeper.id(), "KILL");
    let _ = sleeper.wait();
}
