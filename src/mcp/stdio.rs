//! Serves one client over standard input and output.

use std::io::{self, BufRead, Write};
use std::thread;

use rmcp::service::serve_directly;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use super::handler::{IdentityGuard, Shared};
use super::line::{self, Line, MAX_MESSAGE};
use super::service::Service;
use super::transport::LineTransport;

/// Lines queued in each direction.
const QUEUE: usize = 16;

/// Serves until the client closes its end of either stream.
pub(crate) fn serve<S: Service>(
    service: S,
    runtime: Runtime,
    input: fn() -> Box<dyn BufRead>,
    mut output: Box<dyn Write + Send>,
) -> io::Result<()> {
    let (lines, incoming) = mpsc::channel(QUEUE);
    let reader = thread::Builder::new().spawn(move || read(input, &lines))?;
    let (outgoing, mut queued) = mpsc::channel::<String>(QUEUE);
    let writer = thread::Builder::new().spawn(move || {
        while let Some(mut line) = queued.blocking_recv() {
            line.push('\n');
            if output.write_all(line.as_bytes()).and_then(|()| output.flush()).is_err() {
                return;
            }
        }
    })?;
    let handler = Shared::new(service).handler();
    let calls = handler.calls();
    let ended = runtime.block_on(async {
        let running = serve_directly(IdentityGuard(handler), LineTransport::new(incoming, outgoing, calls), None);
        running.waiting().await
    });
    // Waits for calls still in progress, and until queued lines are written.
    drop(runtime);
    let _ = writer.join();
    // A reader that still waits for input is left behind.
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
