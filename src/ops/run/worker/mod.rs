//! `squad worker`: carries out a work order of a squad on another machine, over standard input and output.
//!
//! ```text
//! squad ── launcher ── squad worker ── socket ── squad worker --serve ID ── engine, in a clone
//! ```
//!
//! The process that a launcher starts only passes on what is said: when the launcher's connection breaks, it ends, and
//! the one that works does not. The next launch finds that one by the order's id, or takes up what it left.

mod batch;
mod grant;
mod outbox;
mod purse;
mod recover;
mod serve;
mod session;
mod site;

use std::fs;
use std::io::{self, BufRead, Read as _, Write, copy};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

pub(crate) use self::recover::{Recovered, recover};
use interprocess::local_socket::Stream;
use interprocess::local_socket::traits::Stream as _;
use serde::Serialize;
use serde_json::{Value, json};

use crate::engine::remote::frames::{Hello, Order, PROTOCOL, method};
use crate::env::files::{Measured, measure};
use crate::env::{Env, lock};
use crate::error::Failure;
use crate::ops::run::host::{Endpoint, name};
use crate::ops::run::local_file;
use crate::ops::team::engines;
use crate::ops::{own_settings, runtime};
use crate::program::Program;

const LOCK: &str = "lock";
const ENDPOINT: &str = "endpoint.json";
const ORDER: &str = "order.json";
/// Bytes of the first line: an order, with a script.
const MAX_ORDER: u64 = 16 * 1024 * 1024;
/// How long the process that works may take until it can be reached.
const STARTING: Duration = Duration::from_secs(20);
const INTERVAL: Duration = Duration::from_millis(5);
/// How long the work of an order that nobody came back to is kept in any case.
const KEPT: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// An order on this host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct OrderStatus {
    pub(crate) id: String,
    pub(crate) run: String,
    pub(crate) agent: String,
    pub(crate) running: bool,
    pub(crate) directory: String,
    #[serde(flatten)]
    pub(crate) size: Measured,
}

/// Passes messages between standard input and output and the process that works, which it starts if need be.
pub(crate) fn relay(env: &Env, input: fn() -> Box<dyn BufRead>, mut out: Box<dyn Write + Send>) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::failed(error.to_string());
    let hello = json!({ "method": method::HELLO, "params": hello(env) });
    // A banner may end without a line break.
    writeln!(out, "\n{hello}").and_then(|()| out.flush()).map_err(failed)?;
    let mut line = Vec::new();
    if input().take(MAX_ORDER).read_until(b'\n', &mut line).map_err(failed)? == 0 {
        return Ok(());
    }
    let message: Value = serde_json::from_slice(&line).unwrap_or_default();
    let is_order = message["method"] == method::ORDER;
    let id = message["params"]["id"].as_str().filter(|_| is_order);
    let id = id.ok_or_else(|| {
        Failure::usage("what came on standard input is no work order")
            .hint("`squad orchestrate --on HOST` gives one; see `squad help hosts`")
    })?;
    let (stream, child) = reach(env, id).map_err(Failure::failed)?;
    let (stream, (ended, end)) = (Arc::new(stream), channel());
    (&*stream).write_all(&line).map_err(failed)?;
    let (from, told) = (Arc::clone(&stream), ended.clone());
    let outward = move || {
        let _ = copy(&mut &*from, &mut out);
        let _ = told.send(());
    };
    thread::Builder::new().spawn(outward).map_err(failed)?;
    let to = Arc::clone(&stream);
    let inward = move || {
        let _ = copy(&mut input(), &mut &*to);
        let _ = ended.send(());
    };
    thread::Builder::new().spawn(inward).map_err(failed)?;
    // Either end ends both: the process that works sees that its client is gone.
    let _ = end.recv();
    if let Some(mut child) = child.filter(|_| close(&stream)) {
        // A launcher may end all processes of a job with its first one.
        let _ = child.wait();
    }
    Ok(())
}

/// Ends a connection that other threads still use. `false`: only the process's end can.
#[cfg(unix)]
fn close(stream: &Stream) -> bool {
    use std::os::fd::AsFd;
    let Stream::UdSocket(stream) = stream;
    rustix::net::shutdown(stream.as_fd(), rustix::net::Shutdown::Both).is_ok()
}

#[cfg(not(unix))]
fn close(_: &Stream) -> bool {
    false
}

/// Carries out the order on a ref of a remote, and leaves its result there.
pub(crate) fn batch(env: &Env, directory: &Path, reference: &str, remote: Option<&str>) -> Result<(), Failure> {
    batch::carry_out(env, directory, reference, remote)
}

/// Carries out the order of an id.
pub(crate) fn serve(env: &Env, id: &str) -> Result<(), Failure> {
    serve::serve(env, id)
}

fn hello(env: &Env) -> Hello {
    let settings = own_settings(env);
    let all = engines::names(&settings).into_iter();
    Hello {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        platform: format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH),
        engines: engines::installed(env, &env.directory, &settings, all).collect(),
        busy: orders(env).iter().filter(|(_, folder)| is_running(folder)).count(),
    }
}

/// Connects to the process that carries out an order, and starts it unless it is there.
fn reach(env: &Env, id: &str) -> Result<(Stream, Option<Child>), String> {
    let folder = folder_of(env, id)?;
    make_private(env, &folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let end = Instant::now() + STARTING;
    let mut child = None;
    loop {
        if !is_running(&folder) && child.is_none() {
            child = Some(start(env, id, &folder)?);
        }
        let endpoint: Option<Endpoint> = local_file::read(&folder.join(ENDPOINT));
        let reached = match endpoint.and_then(|endpoint| name(&endpoint.socket).ok()) {
            Some(name) => Stream::connect(name).map_err(|error| error.to_string()),
            None => Err("it does not listen".to_owned()),
        };
        match reached {
            Ok(stream) => return Ok((stream, child)),
            Err(error) if Instant::now() >= end => {
                return Err(format!("the worker in {} cannot be reached: {error}", folder.display()));
            }
            Err(_) => thread::sleep(INTERVAL),
        }
    }
}

/// What agents do and read is nobody else's business there.
fn make_private(env: &Env, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    #[cfg(unix)]
    if let Ok(workers) = site::workers_folder(env) {
        fs::set_permissions(workers, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    }
    #[cfg(not(unix))]
    let _ = env;
    Ok(())
}

fn start(env: &Env, id: &str, folder: &Path) -> Result<Child, String> {
    let program = env.program.as_ref().ok_or("this program's own path is not known")?;
    // Of a process that was killed.
    let _ = fs::remove_file(folder.join(ENDPOINT));
    let mut command = Program::of_user(program).command_apart();
    command.args(["worker", "--serve", id]).current_dir(folder);
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map_err(|error| error.to_string())
}

fn folder_of(env: &Env, id: &str) -> Result<PathBuf, String> {
    let is_id = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if id.is_empty() || id.len() > 100 || !id.bytes().all(is_id) {
        return Err("the order has no valid id".to_owned());
    }
    Ok(site::workers_folder(env)?.join("orders").join(id))
}

fn is_running(folder: &Path) -> bool {
    lock::open(&folder.join(LOCK)).and_then(|file| lock::try_take(&file)).is_ok_and(|is_free| !is_free)
}

fn orders(env: &Env) -> Vec<(String, PathBuf)> {
    let folder = site::workers_folder(env).map(|folder| folder.join("orders"));
    let entries = folder.into_iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    let mut found: Vec<_> =
        entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path()))).collect();
    found.sort();
    found
}

/// The orders on this host, by id.
pub(crate) fn list(env: &Env) -> Vec<OrderStatus> {
    let status = |(id, folder): (String, PathBuf)| {
        let order: Option<Order> = local_file::read(&folder.join(ORDER));
        let (run, agent) = order.map(|order| (order.run, order.agent)).unwrap_or_default();
        let (directory, size) = (folder.display().to_string(), measure([folder.clone()], usize::MAX));
        OrderStatus { id, run, agent, running: is_running(&folder), directory, size }
    };
    orders(env).into_iter().map(status).collect()
}

/// What became of the ended orders on this host.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Cleared {
    /// The number of those that were removed, and their bytes.
    pub(crate) removed: usize,
    pub(crate) bytes: u64,
    /// Those that stay.
    pub(crate) kept: Vec<Untaken>,
    /// Those that were removed because of their age.
    pub(crate) dropped: Vec<Untaken>,
}

/// An ended order with work that no client has taken, as far as is known.
#[derive(Debug, Serialize)]
pub(crate) struct Untaken {
    pub(crate) id: String,
    /// Why that is not known.
    pub(crate) problem: Option<String>,
}

/// Removes ended orders whose work was taken; others only if they are old and `force` says so.
pub(crate) fn clear(env: &Env, force: bool) -> Result<Cleared, Failure> {
    let (runtime, mut cleared) = (runtime(env)?, Cleared::default());
    for (id, folder) in orders(env) {
        let Ok(lock) = recover::hold(&folder) else { continue };
        let file = folder.join(ORDER);
        let untaken = match local_file::read::<Order>(&file) {
            Some(order) => runtime.block_on(recover::untaken(env, &folder, order)).map(|untaken| untaken.is_some()),
            // It ended before it had one.
            None if !file.exists() => Ok(false),
            None => Err("its order cannot be read".to_owned()),
        };
        if !matches!(untaken, Ok(false)) {
            let is_old = force && age(env, &file).is_some_and(|age| age > KEPT);
            let list = if is_old { &mut cleared.dropped } else { &mut cleared.kept };
            list.push(Untaken { id, problem: untaken.err() });
            if !is_old {
                continue;
            }
        }
        let size = measure([folder.clone()], usize::MAX).bytes;
        if cfg!(windows) {
            // A folder with an open file cannot be removed there.
            drop(lock);
        }
        // What stays is tried again by the next call.
        if fs::remove_dir_all(&folder).is_ok() {
            (cleared.removed, cleared.bytes) = (cleared.removed + 1, cleared.bytes + size);
        }
    }
    Ok(cleared)
}

/// How long ago an order was last given; `None`: unknown, or in the future of this machine's clock.
fn age(env: &Env, file: &Path) -> Option<Duration> {
    let at = file.metadata().and_then(|facts| facts.modified()).ok()?;
    SystemTime::from(env.clock.now()).duration_since(at).ok()
}
