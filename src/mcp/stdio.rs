//! Serves one client over standard input and output.

use std::io::{self, BufRead, Write};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;

use rmcp::service::serve_directly;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};

use super::handler::{IdentityGuard, Shared};
use super::line::{self, Line, MAX_MESSAGE};
use super::service::Service;
use super::transport::{END_LIMIT, LineTransport};

/// Lines queued in each direction.
const QUEUE: usize = 16;

/// Serves until the client closes its end of either stream.
pub(crate) fn serve(
    service: Arc<dyn Service>,
    runtime: Runtime,
    input: fn() -> Box<dyn BufRead>,
    mut output: Box<dyn Write + Send>,
) -> io::Result<()> {
    let (lines, incoming) = mpsc::channel(QUEUE);
    let reader = thread::Builder::new().spawn(move || read(input, &lines))?;
    let (outgoing, mut queued) = mpsc::channel::<String>(QUEUE);
    // Closed when the writer ends.
    let (progress, written) = sync_channel(1);
    thread::Builder::new().spawn(move || {
        while let Some(mut line) = queued.blocking_recv() {
            line.push('\n');
            if output.write_all(line.as_bytes()).and_then(|()| output.flush()).is_err() {
                return;
            }
            // Nobody may be waiting for it.
            let _ = progress.try_send(());
        }
    })?;
    let handler = Shared::new(service).handler();
    let calls = handler.calls();
    let is_deaf = watch::Sender::new(false);
    let ended = runtime.block_on(async {
        let running = serve_directly(
            IdentityGuard(handler),
            LineTransport::new(incoming, outgoing, calls, is_deaf.clone()),
            None,
        );
        running.waiting().await
    });
    // Waits for calls still in progress.
    drop(runtime);
    // Until queued lines are written, as long as the client reads. A writer that still waits for it is left behind.
    while !*is_deaf.borrow() && written.recv_timeout(END_LIMIT).is_ok() {}
    // So is a reader that still waits for input.
    if reader.is_finished() {
        reader.join().map_err(|_| io::Error::other("the reader panicked"))??;
    }
    ended.map(drop).map_err(io::Error::other)
}

fn read(input: fn() -> Box<dyn BufRead>, lines: &mpsc::Sender<Line>) -> io::Result<()> {
    let mut input = input();
    loop {
        match line::next(&mut *input, MAX_MESSAGE)? {
            Line::End => return Ok(()),
            line => {
                if lines.blocking_send(line).is_err() {
                    return Ok(());
                }
            }
        }
    }
}
