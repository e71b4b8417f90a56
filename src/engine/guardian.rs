//! A process that ends what squad's engines left running when squad itself is killed.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

use super::descendants::Descendants;
use crate::program::Program;

/// What squad says to its guardian when all is in order.
const DISMISSED: &[u8] = b"dismissed";
/// The CLI ends by itself when its input closes, and stores its sessions meanwhile.
const PATIENCE: Duration = Duration::from_secs(1);

/// A process that outlives squad: when its input closes without a word, squad is dead, and what carries the mark is
/// ended. The kernel closes the input however squad dies.
pub(super) struct Guardian(Child);

impl Guardian {
    /// `squad` is the program that is told to [`guard`]. Without one there is no guardian.
    /// Some engines are ended at once: they would go on without squad.
    pub(super) fn start(squad: &Program, (name, value): (&str, &str), at_once: bool) -> Option<Self> {
        let mut command = Command::from(squad.command());
        command.args(["guard", name, value]).args(at_once.then_some("--at-once")).env_clear().process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().inspect_err(|error| tracing::warn!("there is no guardian: {error}")).ok().map(Self)
    }

    pub(super) async fn dismiss(mut self) {
        if let Some(mut input) = self.0.stdin.take() {
            // One that is gone needs no word.
            let _ = input.write_all(DISMISSED).await;
        }
        let _ = tokio::time::timeout(PATIENCE, self.0.wait()).await;
    }
}

/// What the guardian does after its input has closed.
pub(crate) async fn guard(name: &str, value: &str, at_once: bool, heard: &[u8]) {
    if heard != DISMISSED {
        let mut descendants = Descendants::of(&[(name, value)]);
        descendants.look();
        if !at_once {
            tokio::time::sleep(PATIENCE).await;
        }
        descendants.end().await;
    }
}
