use super::change::short;
use super::{Context, Ended};
use crate::error::Failure;
use crate::git::Outcome;
use crate::model::{ChangeKind, RunId, list, printable_line};
use crate::ops::run::merge::{self, LeftWork, MergeReport, Options};
use crate::ui::{Consent, Ui};

/// Bring what a run's agents did in their clones to your branch
///
/// Merges the work of each agent, in the order of the plan, and commits it to the checked-out branch: one commit for each
/// agent, and a merge commit on top. Where your uncommitted changes are in the way, the result is the branch squad/RUN
/// instead. Work that conflicts is set aside and named. Changed files that programs run by themselves, such as a
/// Makefile or .envrc, are listed before: no sandbox bounds those in your hands.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad merge 20260105-0900 --dry-run   Show what would be merged, and what conflicts
  squad merge 20260105-0900
  squad merge 20260105-0900 --squash    One plain commit")]
pub(super) struct Args {
    /// The run's short or whole id, or a prefix of it
    run: String,
    /// Make one plain commit, instead of a merge of one for each agent
    #[arg(long)]
    squash: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Show what would be merged, and change nothing
    #[arg(long, short = 'n')]
    pub(super) dry_run: bool,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        if let Some(run) = self.finished(context).filter(|_| !self.dry_run) {
            merge::settle(context.env, &context.directory, &run)?;
            return Ok(0);
        }
        let options = Options { run: &self.run, dry_run: self.dry_run, squash: self.squash };
        let (yes, ui) = (self.yes, &mut context.ui);
        let report = merge::merge(context.env, &context.directory, &options, |report| {
            warn(ui, report);
            require_consent(ui, report, yes)
        })?;
        let is_whole = report.left.is_empty();
        match context.ui.json() {
            true => context.value(&report),
            false => show(&mut context.ui, &report),
        }
        Ok(u8::from(!is_whole))
    }

    /// The run, if the same merge, stopped earlier, has just been finished.
    fn finished(&self, context: &Context<'_>) -> Option<RunId> {
        let recovered = context.recovered.as_ref()?;
        let ChangeKind::Merge { run } = &recovered.kind else { return None };
        let is_it = run.is_meant_by(&self.run) && matches!(recovered.outcome, Outcome::Finished { .. });
        is_it.then(|| run.clone())
    }
}

/// Fails unless the user agrees, by `--yes` or at the terminal.
fn require_consent(ui: &mut Ui, report: &MergeReport, yes: bool) -> Result<(), Failure> {
    let question = format!("{}. Merge them?", printable_line(&merge::summary(report)));
    let message = match ui.confirm(&question, yes) {
        Consent::Yes => return Ok(()),
        Consent::No => "nothing was changed",
        Consent::Unavailable => "this needs --yes: nobody can be asked here",
    };
    Err(Failure::usage(format!("{question} {message}")).hint("--dry-run shows what would be merged"))
}

fn warn(ui: &mut Ui, report: &MergeReport) {
    for file in &report.runs_by_itself {
        ui.warning(&format!("{}: {}", printable_line(&file.path), file.why));
    }
    if !report.runs_by_itself.is_empty() {
        ui.hint("no sandbox bounds what runs in your own hands: `squad diff` shows these files");
    }
}

fn show(ui: &mut Ui, report: &MergeReport) {
    if report.dry_run {
        warn(ui, report);
        for path in &report.files {
            ui.data(&printable_line(path));
        }
    }
    for LeftWork { agent, why, commit, .. } in &report.left {
        ui.warning(&format!("the work of {agent} is not merged: {}", printable_line(why)));
        let commit = short(commit);
        ui.hint(&format!(
            "it is commit {commit}: `git cherry-pick {commit}`, or merge again once nothing is in its way"
        ));
    }
    let agents = list(&report.merged);
    match (&report.branch, &report.commit) {
        (Some(branch), Some(commit)) => {
            ui.data(&format!("merged {agents} into {branch}, in {}", short(commit)));
            if let Some(reason) = &report.aside {
                ui.say(&format!("Your branch stays as it is, because {reason}."));
                ui.hint(&format!("`git merge {branch}` brings it there"));
            }
        }
        _ if report.dry_run => ui.say(&format!("{}.", printable_line(&merge::summary(report)))),
        _ if report.merged.is_empty() => ui.say("Nothing is merged."),
        _ => ui.say("The branch has all of it already."),
    }
}
