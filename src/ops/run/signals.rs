//! Ctrl-C and other signals that end a run.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::engine::spawn;
use crate::env::Env;
use crate::error::{Failure, FailureKind};
use crate::model::DamageLog;
use crate::ops::runtime;
use crate::pool::Canceller;
use crate::view::{clear_region, keys::restore, outlive};

/// Programs around squad may deliver one Ctrl-C twice, so a signal this soon after the first is ignored.
const SAME: Duration = Duration::from_millis(500);

/// The signals that end a run. While handled here, they no longer end the program by themselves.
pub(in crate::ops) struct Signals(platform::Streams);

impl Signals {
    pub(in crate::ops) fn listen() -> io::Result<Self> {
        platform::Streams::open().map(Self)
    }

    /// Waits for a signal.
    pub(in crate::ops) async fn next(&mut self) {
        self.0.next().await;
    }

    async fn next_or(&mut self, said: &Notify) {
        tokio::select! {
            () = self.0.next() => {}
            () = said.notified() => {}
        }
    }

    /// `log` says at once what the first signal does: the run's end waits for agents, and for locks.
    async fn obey(mut self, interrupt: Canceller, said: Arc<Notify>, log: Option<DamageLog>) {
        self.next_or(&said).await;
        interrupt.run();
        log.iter().for_each(|log| log.say("- stopping; files stay as they are; Ctrl-C again: at once"));
        let repeated = async {
            loop {
                self.next_or(&said).await;
            }
        };
        let _ = tokio::time::timeout(SAME, repeated).await;
        self.next_or(&said).await;
        restore();
        clear_region();
        std::process::exit(i32::from(FailureKind::Interrupted.exit_code()));
    }
}

/// Leaves Ctrl-C to the program that has the terminal, such as a pager.
pub(crate) fn leave_interrupts(env: &Env) {
    if env.signals
        && let Ok(runtime) = runtime(env)
    {
        runtime.block_on(async {
            tokio::select! {
                biased;
                // It listens from the first time it is asked, and nothing undoes that.
                _ = tokio::signal::ctrl_c() => {}
                () = std::future::ready(()) => {}
            }
        });
    }
}

/// While this exists, the first signal cancels the run, and the second ends the program.
pub(in crate::ops) struct SignalGuard(Option<JoinHandle<()>>);

impl SignalGuard {
    pub(in crate::ops) fn by(interrupt: &Canceller, env: &Env) -> Result<Self, Failure> {
        Self::listening(interrupt, env, Arc::default(), Some(env.damage.clone()))
    }

    /// The same, with a notification that counts as a signal, such as a key. The view says what happens.
    pub(in crate::ops) fn by_or(interrupt: &Canceller, env: &Env, said: Arc<Notify>) -> Result<Self, Failure> {
        Self::listening(interrupt, env, said, None)
    }

    fn listening(interrupt: &Canceller, env: &Env, said: Arc<Notify>, log: Option<DamageLog>) -> Result<Self, Failure> {
        if env.signals {
            outlive();
        }
        let signals = env.signals.then(Signals::listen).transpose();
        let signals = signals.map_err(|error| Failure::failed(format!("cannot install signal handlers: {error}")))?;
        Ok(Self(signals.map(|signals| spawn(signals.obey(interrupt.clone(), said, log)))))
    }
}

impl Drop for SignalGuard {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

#[cfg(unix)]
mod platform {
    use std::io;

    use tokio::signal::unix::{Signal, SignalKind, signal};

    use crate::view::keys::resume;

    pub(in crate::ops) struct Streams {
        interrupt: Signal,
        terminate: Signal,
        hang_up: Signal,
        continued: Signal,
    }

    impl Streams {
        pub(in crate::ops) fn open() -> io::Result<Self> {
            Ok(Self {
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
                hang_up: signal(SignalKind::hangup())?,
                continued: signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?,
            })
        }

        pub(in crate::ops) async fn next(&mut self) {
            loop {
                tokio::select! {
                    _ = self.interrupt.recv() => return,
                    _ = self.terminate.recv() => return,
                    _ = self.hang_up.recv() => return,
                    // The shell has changed the terminal's mode meanwhile.
                    _ = self.continued.recv() => resume(),
                }
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
