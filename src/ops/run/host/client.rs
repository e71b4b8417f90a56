//! Requests to a host, one to a connection, and its replies.

use std::io::{self, BufReader, Write};
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

/// What the agents of a run do; `None`: it does not answer.
pub(in crate::ops) fn activity(run: &LiveRun) -> Option<RunActivity> {
    match ask(run.endpoint.as_ref()?, &FromClient::Status {}, STATUS_TIMEOUT) {
        Ok(FromHost::Activity(activity)) => Some(*activity),
        _ => None,
    }
}

/// The same, once the agent is in it: a run that has just begun has not decided yet who works.
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
    if endpoint.protocol != PROTOCOL {
        let reason = format!("it is squad {}, this is {}", endpoint.version, env!("CARGO_PKG_VERSION"));
        return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
    }
    let reply = send(endpoint, request)?.recv_timeout(patience);
    reply.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Sends a request from a thread of its own: no system limits the time of every step.
pub(in crate::ops) fn send(endpoint: &Endpoint, request: &FromClient) -> io::Result<Receiver<io::Result<FromHost>>> {
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
