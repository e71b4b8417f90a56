//! Ctrl-C and its like.

use std::time::Duration;

use tokio::sync::watch;

use crate::error::FailureKind;

/// Ends every agent at the first signal, and the program at the second. Programs around squad may pass one Ctrl-C on
/// twice, so what comes right behind the first is the same.
pub(super) async fn interrupts(interrupt: watch::Sender<bool>, heard: bool) {
    const SAME: Duration = Duration::from_millis(500);
    if !heard {
        return std::future::pending().await;
    }
    signal().await;
    interrupt.send_replace(true);
    tokio::time::sleep(SAME).await;
    signal().await;
    std::process::exit(i32::from(FailureKind::Interrupted.exit_code()));
}

#[cfg(unix)]
async fn signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut hang_up)) = (signal(SignalKind::terminate()), signal(SignalKind::hangup())) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
}

#[cfg(not(unix))]
async fn signal() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}
