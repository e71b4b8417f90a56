use super::change::short;
use super::{Context, Ended};
use crate::error::Failure;
use crate::git::Outcome;
use crate::model::{ChangeKind, RunId, list, printable_line};
use crate::ops::run::merge::{self, LeftWork, MergeReport, Options, Talk};
use crate::ui::{Consent, Ui};

/// Lines of a red check's output.
const SHOWN: usize = 8;

/// Bring what a run's agents did in their clones to your branch
///
/// Merges the work of each agent, in the order of the plan, and commits it to the checked-out branch: one commit for each
/// agent, and a merge commit on top. Where your uncommitted changes are in the way, the result is the branch squad/RUN
/// instead. Work that conflicts goes back to its agent, at most twice and once you agree (--yes); what it does not resolve
/// is set aside and named. Changed files that programs run by themselves, such as a
/// Makefile or .envrc, are listed before: no sandbox bounds those in your hands.
///
/// Where `check.run` is set, squad first runs it on all of the work together, in a clone and in the sandbox. If that is red,
/// it looks for the work that makes it so, sets that aside with the end of the check's output, and merges the rest.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad merge 20260105-0900 --dry-run   Show what would be merged, and what conflicts
  squad merge 20260105-0900
  squad merge 20260105-0900 --squash    One plain commit
  squad merge 20260105-0900 --no-check  Leave out the project's check")]
pub(super) struct Args {
    /// The run's short or whole id, or a prefix of it
    run: String,
    /// Make one plain commit, instead of a merge of one for each agent
    #[arg(long)]
    squash: bool,
    /// Fail if no check is configured; with --dry-run, run it too
    #[arg(long, conflicts_with = "no_check")]
    check: bool,
    /// Do not run the project's check
    #[arg(long)]
    no_check: bool,
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
        let check = (self.check || self.no_check).then_some(self.check);
        let (dry_run, squash, returns) = (self.dry_run, self.squash, true);
        let options = Options { run: &self.run, dry_run, squash, check, returns };
        let mut talk = Terminal { ui: &mut context.ui, yes: self.yes };
        let report = merge::merge(context.env, &context.directory, &options, &mut talk)?;
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

struct Terminal<'a> {
    ui: &'a mut Ui,
    yes: bool,
}

impl Talk for Terminal<'_> {
    fn say(&mut self, text: &str) {
        self.ui.say(&printable_line(text));
    }

    fn may_return(&mut self, question: &str) -> bool {
        matches!(self.ui.confirm(&printable_line(question), self.yes), Consent::Yes)
    }

    fn agree(&mut self, report: &MergeReport) -> Result<(), Failure> {
        warn(self.ui, report);
        require_consent(self.ui, report, self.yes)
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
    for check in report.check.iter().filter(|check| !check.rewritten.is_empty()) {
        let (command, files) = (printable_line(&check.command), printable_line(&list(&check.rewritten)));
        ui.warning(&format!("`{command}` runs what the work itself changed: {files}"));
    }
    if !report.runs_by_itself.is_empty() {
        ui.hint("no sandbox bounds what runs in your own hands: `squad diff` shows these files");
    }
}

/// The end of a check's output.
fn last_lines(output: &str) -> impl Iterator<Item = &str> {
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    let begin = lines.len().saturating_sub(SHOWN);
    lines.into_iter().skip(begin)
}

fn show(ui: &mut Ui, report: &MergeReport) {
    if report.dry_run {
        warn(ui, report);
        for path in &report.files {
            ui.data(&printable_line(path));
        }
    }
    for LeftWork { agent, why, commit, check, .. } in &report.left {
        ui.warning(&format!("the work of {agent} is not merged: {}", printable_line(why)));
        for line in check.iter().flat_map(|check| last_lines(&check.output)) {
            ui.say(&format!("  {}", printable_line(line)));
        }
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
