//! Requests to a host, one to a connection, and its replies.

use std::io::{self, BufReader, Write};
use std::slice;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use interprocess::local_socket::Stream;
use interprocess::local_socket::traits::Stream as _;

use super::frames::{FromClient, FromHost, next, to_line};
use super::socket::{Endpoint, PROTOCOL, name};
use crate::model::{RunActivity, Slug};
use crate::ops::run::lease::LiveRun;

/// How long a run may take to say what its agents do.
const STATUS_TIMEOUT: Duration = Duration::from_millis(500);
/// How long it may take to decide who works, and how often to look.
const PLANNING: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(20);

type Reply = Receiver<io::Result<FromHost>>;

/// What the agents of each run do; `None`: it does not answer. All runs are asked at once.
pub(in crate::ops) fn activities(runs: &[LiveRun]) -> Vec<Option<RunActivity>> {
    let asked: Vec<_> = runs.iter().map(|run| send(run.endpoint.as_ref()?, &FromClient::Status {}).ok()).collect();
    let deadline = Instant::now() + STATUS_TIMEOUT;
    let reply = |reply: Option<Reply>| match reply?.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        Ok(Ok(FromHost::Activity(activity))) => Some(*activity),
        _ => None,
    };
    asked.into_iter().map(reply).collect()
}

pub(in crate::ops) fn activity(run: &LiveRun) -> Option<RunActivity> {
    activities(slice::from_ref(run)).pop()?
}

/// The same of one run, once the agent is in it: a run that has just begun has not decided yet who works.
pub(in crate::ops) fn activity_with(run: &LiveRun, agent: &Slug) -> Option<RunActivity> {
    let begun = Instant::now();
    loop {
        let activity = activity(run)?;
        if activity.agents.contains_key(agent) || begun.elapsed() > PLANNING {
            return Some(activity);
        }
        thread::sleep(LOOK);
    }
}

/// Asks a host. The error says why there is no reply; a host that is suspended acts on the request once it continues.
pub(in crate::ops) fn ask(endpoint: &Endpoint, request: &FromClient, patience: Duration) -> io::Result<FromHost> {
    let reply = send(endpoint, request)?.recv_timeout(patience);
    reply.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Sends a request from a thread of its own: no system limits the time of every step.
pub(in crate::ops) fn send(endpoint: &Endpoint, request: &FromClient) -> io::Result<Reply> {
    if endpoint.protocol != PROTOCOL {
        let reason = format!("it is squad {}, this is {}", endpoint.version, env!("CARGO_PKG_VERSION"));
        return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
    }
    let (socket, line) = (name(&endpoint.socket)?, to_line(request));
    let (sender, reply) = channel();
    let exchange = move || {
        let mut stream = Stream::connect(socket)?;
        stream.write_all(&line)?;
        next(&mut BufReader::new(stream)).ok_or_else(|| io::ErrorKind::InvalidData.into())
    };
    // Nobody may be waiting any more.
    thread::Builder::new().spawn(move || drop(sender.send(exchange())))?;
    Ok(reply)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::model::RunId;

    /// A suspended run takes the connection and says nothing; a dead one has no socket.
    #[test]
    fn a_silent_run_does_not_cost_the_others_their_reply() {
        let folder = tempfile::tempdir().expect("a folder");
        let run = |name: &str| {
            let socket = folder.path().join(name).display().to_string();
            let endpoint = Some(Endpoint { version: "0".to_owned(), protocol: PROTOCOL, socket });
            let (run, started) = (RunId::parse("20260105-090000-000001").expect("an id"), jiff::Timestamp::UNIX_EPOCH);
            LiveRun { run, pid: 1, started, message: String::new(), endpoint }
        };
        let silent = UnixListener::bind(folder.path().join("silent")).expect("a socket");
        let answering = UnixListener::bind(folder.path().join("answering")).expect("a socket");
        let host = thread::spawn(move || {
            let (mut stream, _) = answering.accept().expect("a connection");
            let asked: Option<FromClient> = next(&mut BufReader::new(stream.try_clone().expect("a handle")));
            assert_eq!(to_line(&asked), to_line(&FromClient::Status {}));
            stream.write_all(&to_line(&FromHost::Activity(Box::default()))).expect("it listens");
        });
        let earlier = LiveRun { endpoint: None, ..run("earlier") };
        let runs = [run("silent"), run("gone"), earlier, run("answering")];
        assert_eq!(activities(&runs), [None, None, None, Some(RunActivity::default())]);
        host.join().expect("it answered");
        drop(silent);
    }
}
