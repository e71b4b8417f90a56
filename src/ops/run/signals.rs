//! Ctrl-C and its like.

use std::io;
use std::time::Duration;

use tokio::sync::Notify;

use crate::error::FailureKind;
use crate::pool::Canceller;
use crate::view::keys::restore;

/// Programs around squad may pass one Ctrl-C on twice, so what comes right behind the first is the same.
const SAME: Duration = Duration::from_millis(500);

/// The signals that end a run. From the moment this exists they no longer end the program by themselves.
pub(in crate::ops) struct Signals(platform::Streams);

impl Signals {
    pub(in crate::ops) fn listen() -> io::Result<Self> {
        platform::Streams::open().map(Self)
    }

    /// Waits for one.
    pub(in crate::ops) async fn next(&mut self) {
        self.0.next().await;
    }

    async fn next_or(&mut self, said: &Notify) {
        tokio::select! {
            () = self.0.next() => {}
            () = said.notified() => {}
        }
    }

    /// Ends every agent at the first signal, and the program at the second.
    pub(in crate::ops) async fn obey(self, interrupt: Canceller) {
        self.obey_or(interrupt, &Notify::new()).await;
    }

    /// The same for what a person may say in another way.
    pub(in crate::ops) async fn obey_or(mut self, interrupt: Canceller, said: &Notify) {
        self.next_or(said).await;
        interrupt.run();
        tokio::time::sleep(SAME).await;
        self.next_or(said).await;
        restore();
        std::process::exit(i32::from(FailureKind::Interrupted.exit_code()));
    }
}

#[cfg(unix)]
mod platform {
    use std::io;

    use tokio::signal::unix::{Signal, SignalKind, signal};

    pub(in crate::ops) struct Streams {
        interrupt: Signal,
        terminate: Signal,
        hang_up: Signal,
    }

    impl Streams {
        pub(in crate::ops) fn open() -> io::Result<Self> {
            Ok(Self {
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
                hang_up: signal(SignalKind::hangup())?,
            })
        }

        pub(in crate::ops) async fn next(&mut self) {
            tokio::select! {
                _ = self.interrupt.recv() => {}
                _ = self.terminate.recv() => {}
                _ = self.hang_up.recv() => {}
            }
        }
    }
}

#[cfg(windows)]
mod platform {
    use std::io;

    use tokio::signal::windows::{CtrlBreak, CtrlC, ctrl_break, ctrl_c};

    pub(in crate::ops) struct Streams {
        interrupt: CtrlC,
        stop: CtrlBreak,
    }

    impl Streams {
        pub(in crate::ops) fn open() -> io::Result<Self> {
            Ok(Self { interrupt: ctrl_c()?, stop: ctrl_break()? })
        }

        pub(in crate::ops) async fn next(&mut self) {
            tokio::select! {
                _ = self.interrupt.recv() => {}
                _ = self.stop.recv() => {}
            }
        }
    }
}
