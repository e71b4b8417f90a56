use super::change::short;
use super::{Context, Ended};
use crate::error::Failure;
use crate::model::{ChangeKind, Slug, but};
use crate::ops::run::undo::{self, Options, PlannedUndo, RunDecision, UndoReport};
use crate::ui::{Consent, Ui};
use crate::view::{LineStyle, Mark, Text};

/// Take back what a run changed in the work tree
///
/// Files that nobody changed since are as they were before the run. Where you or another run changed a file since, those
/// changes stay and the run's are taken out; where the two overlap, the file stays as it is, and its versions from
/// before the run and from after it lie beside it as FILE.before and FILE.run. What was committed since stays, unless
/// --commit is given, and so do the run's decisions, unless --decisions is. The work tree is saved to a rescue first;
/// index and stash stay. See `squad diff` for what is taken back, and what is not covered.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad undo 20260105-0900 --dry-run    Show what would be taken back
  squad undo 20260105-0900
  squad undo 20260105-0900 backend      Only what backend changed
  squad undo 20260105-0900 --redo       Bring it back")]
pub(super) struct Args {
    /// The run's short or whole id, or a prefix of it
    run: String,
    /// Only what this agent changed
    agent: Option<String>,
    /// Bring back what an undo took out
    #[arg(long)]
    redo: bool,
    /// Take what was committed since out of the branch, in a new commit
    #[arg(long, conflicts_with = "redo")]
    commit: bool,
    /// Withdraw the run's decisions that are on the branch, in a new commit
    #[arg(long, conflicts_with = "redo")]
    decisions: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Show what would be changed, and change nothing
    #[arg(long, short = 'n')]
    pub(super) dry_run: bool,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let (commit, decisions) = (self.commit, self.decisions);
        let options = Options { run: &self.run, agent: self.agent.as_deref(), redo: self.redo, commit, decisions };
        if !self.dry_run && self.is_finished(context) {
            return Ok(0);
        }
        let planned = undo::plan(context.env, &context.directory, &options)?;
        let ui = &mut context.ui;
        let is_any = planned.changes_anything();
        let report = match self.dry_run || !is_any {
            true if self.dry_run => planned.report,
            true => planned.apply(context.env)?,
            false => {
                self.require_consent(ui, &planned)?;
                planned.apply(context.env)?
            }
        };
        match ui.json() {
            true => context.value(&report),
            false => show(ui, &report),
        }
        Ok(0)
    }

    /// Whether the same undo, stopped earlier, has just been finished.
    fn is_finished(&self, context: &Context<'_>) -> bool {
        let Some(recovered) = &context.recovered else { return false };
        let ChangeKind::Undo(record) = &recovered.kind else { return false };
        let is_agent = |name: &String| Slug::fold(name) == record.undone.only;
        let is_same_part = self.agent.as_ref().map_or(record.undone.only.is_none(), is_agent);
        record.run.is_meant_by(&self.run) && record.undone.redo == self.redo && is_same_part
    }

    /// Fails unless the user agrees, by `--yes` or at the terminal.
    fn require_consent(&self, ui: &mut Ui, planned: &PlannedUndo) -> Result<(), Failure> {
        let verb = if self.redo { "Bring them back" } else { "Take them back" };
        let question = format!("{}. {verb}?", undo::summary(planned));
        let message = match ui.confirm(&question, self.yes) {
            Consent::Yes => return Ok(()),
            Consent::No => "nothing was changed",
            Consent::Unavailable => "this needs --yes: nobody can be asked here",
        };
        Err(Failure::usage(format!("{question} {message}")).hint("--dry-run shows what would be changed"))
    }
}

fn show(ui: &mut Ui, report: &UndoReport) {
    // Wide enough for its longest word.
    let width = if report.redo { 16 } else { 13 };
    let line = |(mark, style): (Mark, LineStyle), verb: &str, text: &str| {
        Text::marked(style, mark).plain(verb).filled(width).hanging().plain(text)
    };
    let done = (Mark::Good, LineStyle::Good);
    let restored = if report.redo { "brought back" } else { "restored" };
    let mut lines = Vec::new();
    for (verb, paths) in [(restored, &report.changed), ("removed", &report.removed)] {
        for path in paths {
            let followed = if report.followed.contains(path) { "  (moved since)" } else { "" };
            lines.push(line(done, verb, &format!("{path}{followed}")));
        }
    }
    for left in &report.left {
        let copies =
            report.copies.iter().filter(|copy| copy.rsplit_once('.').is_some_and(|(name, _)| name == left.path));
        let copies: Vec<&str> = copies.map(String::as_str).collect();
        let see = if copies.is_empty() { String::new() } else { format!("; see {}", copies.join(" and ")) };
        let text = format!("{}: {}{see}", left.path, left.why);
        lines.push(line((Mark::Attention, LineStyle::Warning), "left", &text));
    }
    lines.extend(report.reverted.iter().map(|path| line(done, "reverted", path)));
    for RunDecision { id, title, .. } in &report.decisions {
        let verb = if report.withdrawn { "withdrawn" } else { "stands" };
        let text = format!("decision {} {title}", id.short());
        lines.push(line((Mark::Decision, LineStyle::Strong), verb, &text));
    }
    ui.texts(&lines);
    for left in &report.not_covered {
        ui.warning(&format!("not covered: {}: {}", left.path, left.why));
    }
    let count = report.changed.len() + report.removed.len();
    if !report.left.is_empty() && !report.dry_run {
        let left: Vec<String> = report.left.iter().map(|left| left.path.clone()).collect();
        let verb = if report.redo { "brought back" } else { "taken back" };
        ui.say(&format!("Run {} is {verb}{}.", report.run.short(), but(&left)));
    }
    if let Some(commit) = &report.commit {
        ui.say(&format!("Committed in {}.", short(commit)));
    }
    if !report.decisions.is_empty() && !report.withdrawn && !report.redo {
        ui.hint(&format!("`squad undo {} --decisions` withdraws the decisions", report.run.short()));
    }
    match (&report.rescue, count) {
        (Some(id), _) => ui.say(&format!("What was there before is in rescue {id}.")),
        (None, 0) if report.left.is_empty() && report.commit.is_none() && !report.dry_run => {
            let run = report.run.short();
            ui.say(&match (report.redo, report.is_gone) {
                (true, _) => format!("There is nothing to bring back of run {run}."),
                (false, true) => format!("Nothing of what run {run} changed is left."),
                (false, false) => format!("There is nothing to undo of run {run}."),
            });
        }
        _ => {}
    }
}
