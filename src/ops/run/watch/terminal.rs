//! What the system tells of the terminal, for the view.

use crate::view::Showing;

#[cfg(unix)]
pub(super) async fn tell(showing: Showing) {
    use rustix::process::Signal;
    use tokio::signal::unix::{SignalKind, signal};

    use crate::view::Shown;

    let of = |known: Signal| signal(SignalKind::from_raw(known.as_raw()));
    let all = [Signal::WINCH, Signal::TSTP, Signal::CONT].map(of);
    // Without these a size is known late, and Ctrl-Z leaves the rows on the screen.
    let [Ok(mut resized), Ok(mut stop), Ok(mut goes_on)] = all else { return };
    loop {
        let shown = tokio::select! {
            _ = resized.recv() => Shown::Resized,
            _ = stop.recv() => Shown::Stop,
            _ = goes_on.recv() => Shown::GoesOn,
        };
        showing.send(shown);
    }
}

/// The size is asked for whenever something is drawn.
#[cfg(windows)]
pub(super) async fn tell(_: Showing) {}
