use std::time::Duration;

use super::{Context, Ended};
use crate::model::plural;
use crate::ops::torture::{self, Torture};

/// Kill writers of the ledger at random moments and check that nothing is lost
///
/// Works in repositories of its own, which are removed afterwards, on the file system of the folder it is started in.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  squad torture\n  squad torture --kills 20000 --writers 8 --json")]
pub(super) struct Args {
    /// How many processes to kill
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    kills: u32,
    /// Stop after this time, however many were killed
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..))]
    seconds: Option<u32>,
    /// How many processes write at once
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64))]
    writers: u8,
    /// Be one of the processes that write
    #[arg(long, hide = true, value_name = "NAME", conflicts_with_all = ["kills", "seconds", "writers"])]
    writer: Option<String>,
    /// How many entries to write; without it, until killed
    #[arg(long, hide = true, requires = "writer")]
    count: Option<u64>,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let (env, ui) = (context.env, &mut context.ui);
        if let Some(name) = &self.writer {
            torture::write(env, &context.directory, name, self.count, |micros, path| {
                ui.data(&format!("{micros} {path}"));
            })?;
            return Ok(0);
        }
        let torture = Torture {
            kills: self.kills as usize,
            limit: self.seconds.map(|seconds| Duration::from_secs(seconds.into())),
            writers: self.writers.into(),
        };
        let verdict = torture::torture(env, &context.directory, &torture, |verdict| {
            ui.say(&format!(
                "{:7.1} s  {:6} kills  {:7} acknowledged  {} lost",
                verdict.seconds,
                verdict.kills,
                verdict.acknowledged,
                verdict.lost.len()
            ));
        })?;
        if ui.json() {
            ui.value(&verdict);
            return Ok(u8::from(!verdict.is_well()));
        }
        for path in &verdict.lost {
            ui.data(&format!("lost: {path}"));
        }
        for complaint in &verdict.unsound {
            ui.data(&format!("git fsck: {complaint}"));
        }
        if let Some(repository) = &verdict.repository {
            ui.data(&format!("kept to look at: {}", repository.display()));
        }
        let outcome = if verdict.is_well() { "nothing lost, sound, nobody stuck" } else { "not well" };
        let killed = plural(verdict.kills, "kill");
        ui.data(&format!("{killed}, {}: {outcome}", plural(verdict.acknowledged, "acknowledged entry")));
        Ok(u8::from(!verdict.is_well()))
    }
}
