//! Standard input and output as a connection.

use std::io::{self, BufRead, Write};
use std::thread;

use rmcp::service::serve_directly;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use super::handler::{Gate, Shared};
use super::line::{self, LONGEST, Line};
use super::service::Service;
use super::transport::Lines;

/// Lines between a stream and the server.
const QUEUE: usize = 16;

/// Serves until the client closes its end, or reads no more.
pub(crate) fn serve<S: Service>(
    service: S,
    runtime: Runtime,
    input: fn() -> Box<dyn BufRead>,
    mut output: Box<dyn Write + Send>,
) -> io::Result<()> {
    let (lines, heard) = mpsc::channel(QUEUE);
    let reader = thread::Builder::new().spawn(move || read(input, &lines))?;
    let (out, mut said) = mpsc::channel::<String>(QUEUE);
    let writer = thread::Builder::new().spawn(move || {
        while let Some(mut line) = said.blocking_recv() {
            line.push('\n');
            if output.write_all(line.as_bytes()).and_then(|()| output.flush()).is_err() {
                return;
            }
        }
    })?;
    let handler = Shared::new(service).handler();
    let calls = handler.calls();
    let ended = runtime.block_on(async {
        let running = serve_directly(Gate(handler), Lines::new(heard, out, calls), None);
        running.waiting().await
    });
    // Calls that nobody waits for come to their end, and what was said is out, before this returns.
    drop(runtime);
    let _ = writer.join();
    // One that still waits for a line is left behind.
    if reader.is_finished() {
        reader.join().map_err(|_| io::Error::other("the reader panicked"))??;
    }
    ended.map(drop).map_err(io::Error::other)
}

fn read(input: fn() -> Box<dyn BufRead>, lines: &mpsc::Sender<Line>) -> io::Result<()> {
    let mut input = input();
    loop {
        match line::next(&mut *input, LONGEST)? {
            Line::End => return Ok(()),
            line => {
                if lines.blocking_send(line).is_err() {
                    return Ok(());
                }
            }
        }
    }
}
