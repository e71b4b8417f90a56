use super::{Context, Ended};
use crate::view::frames::frames;

/// Draw the rows of many agents, for `cargo bench`
///
/// Prints for each frame its nanoseconds, those of its lines as text alone, and its bytes.
#[derive(clap::Args)]
pub(super) struct Args {
    agents: usize,
    /// The terminal's lines, of which rows have a third
    lines: usize,
    count: u32,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        for frame in frames(self.agents, self.lines, self.count) {
            let (time, floor) = (frame.time.as_nanos(), frame.floor.as_nanos());
            context.ui.data(&format!("{time} {floor} {}", frame.bytes));
        }
        Ok(0)
    }
}
