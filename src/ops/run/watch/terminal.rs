//! Forwards signals about the terminal to the view.

use crate::view::ViewSender;

#[cfg(unix)]
pub(super) async fn forward_signals(sender: ViewSender) {
    use rustix::process::Signal;
    use tokio::signal::unix::{SignalKind, signal};

    use crate::view::ViewInput;

    let of = |known: Signal| signal(SignalKind::from_raw(known.as_raw()));
    let all = [Signal::WINCH, Signal::TSTP, Signal::CONT].map(of);
    // Without them, a resize is noticed late and Ctrl-Z leaves the block on the screen.
    let [Ok(mut resized), Ok(mut stop), Ok(mut resumed)] = all else { return };
    loop {
        let input = tokio::select! {
            _ = resized.recv() => ViewInput::Resized,
            _ = stop.recv() => ViewInput::Stop,
            _ = resumed.recv() => ViewInput::Resumed,
        };
        sender.send(input);
    }
}

/// The size is queried on every redraw.
#[cfg(windows)]
pub(super) async fn forward_signals(_: ViewSender) {}
