use super::{Context, Ended};
use crate::git::Extent;
use crate::model::{RunId, SkippedFile, megabytes, plural, printable};
use crate::ops::ledger::gc::{self, GcReport, OnlyCopies, Options};
use crate::ui::Ui;
use crate::view::{LineStyle, Mark, Text};

/// How many copies of a run are listed that stay.
const MAX_SHOWN: usize = 5;

/// Pack the ledger and remove old snapshots and sessions
///
/// Each ledger entry is a small pack in git's object database, and squad merges these packs as they accumulate. `gc`
/// merges them into one now, and runs git's own maintenance for loose objects. It deletes an object only if another
/// pack has it.
///
/// It removes the work tree snapshots of runs that ended more than 14 days ago. Snapshots that hold the only copy of a
/// file or commit stay, and are listed; `--force` removes them too.
///
/// It also removes sessions that the engine stored under `.git/squad/homes`: those of completed runs after 3 days, or the
/// oldest of them beyond 256 MiB in total, and all others after 14 days. Sessions of live runs are never removed.
///
/// The clones of ended runs are removed, unless one holds changes that are not committed.
///
/// The caches of the sandbox lie in squad's state folder, one for each project. Those that were not used for 14 days are
/// removed, and the oldest of them beyond 2 GiB in total.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad gc --dry-run
  squad gc
  squad gc --json")]
pub(super) struct Args {
    /// Also remove old snapshots that hold the only copy of something, and list what they held; and such clones
    #[arg(long)]
    force: bool,
    /// Show what would be removed and packed, and change nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let options = Options { force: self.force, dry_run: self.dry_run };
        let tidied = gc::gc(context.env, &context.directory, options)?;
        let ui = &mut context.ui;
        ui.all_problems(&tidied.problems);
        match ui.json() {
            true => ui.value(&tidied),
            false => show(ui, &tidied),
        }
        Ok(0)
    }
}

fn show(ui: &mut Ui, tidied: &GcReport) {
    let start = || match tidied.dry_run {
        true => Text::unmarked(),
        false => Text::marked(LineStyle::Good, Mark::Good),
    };
    let removed = if tidied.dry_run { "would be removed" } else { "removed" };
    let mut lines = Vec::new();
    if tidied.snapshots > 0 {
        lines.push(start().plain(&format!("{} of finished runs {removed}", plural(tidied.snapshots, "snapshot"))));
    }
    for only in &tidied.only_copies {
        lines.extend(only_copies(only, tidied));
    }
    let sized = [
        (tidied.clones, tidied.clone_bytes, "clone", " of ended runs"),
        (tidied.sessions, tidied.session_bytes, "stored session", ""),
        (tidied.sandboxes, tidied.sandbox_bytes, "old folder", " of sandboxes"),
    ];
    for (count, bytes, noun, rest) in sized.into_iter().filter(|(count, ..)| *count > 0) {
        let text = format!("{}{rest} {removed} ({})", plural(count, noun), megabytes(bytes));
        lines.push(start().plain(&text));
    }
    lines.extend(packed(tidied).iter().map(|text| start().plain(text)));
    for run in &tidied.unmerged {
        let text = format!("some work of run {0} is on no branch: `squad merge {0}` brings it", run.short());
        lines.push(Text::marked(LineStyle::Warning, Mark::Attention).plain(&text));
    }
    ui.texts(&lines);
    if lines.is_empty() {
        let (packs, size) = (plural(tidied.after.packs, "pack"), tidied.after.pack_kibibytes);
        ui.say(&format!("There is nothing to remove or to pack: the ledger is {packs} of {size} KiB."));
    }
    if !tidied.force && !tidied.only_copies.is_empty() {
        ui.hint("`git show REF:PATH` prints a file; `squad gc --force` removes these snapshots");
    }
    for SkippedFile { path, why } in &tidied.clones_kept {
        ui.warning(&format!("the clone {} stays: {why}", printable(path)));
    }
}

fn only_copies(OnlyCopies { run, copies }: &OnlyCopies, tidied: &GcReport) -> Vec<Text> {
    let short = RunId::parse(run).map_or_else(|| run.clone(), |run| run.short().to_owned());
    let verb = match (tidied.force, tidied.dry_run) {
        (false, _) => "kept:",
        (true, false) => "removed with",
        (true, true) => "would be removed with",
    };
    let text = format!("snapshots of run {short} {verb} {}", plural(copies.len(), "only copy"));
    let head = Text::marked(LineStyle::Warning, Mark::Attention).plain(&text);
    let shown = if tidied.force { copies.len() } else { MAX_SHOWN };
    let listed = copies.iter().take(shown).map(|copy| Text::unmarked().plain("  ").hanging().plain(copy));
    let more = copies.len().saturating_sub(shown);
    let more = (more > 0).then(|| Text::unmarked().plain(&format!("  and {more} more")));
    std::iter::once(head).chain(listed).chain(more).collect()
}

/// What was packed, or would be.
fn packed(tidied: &GcReport) -> Vec<String> {
    let (Extent { objects, kibibytes, packs, pack_kibibytes }, after) = (&tidied.before, &tidied.after);
    let packed = if tidied.dry_run { "would be packed" } else { "packed" };
    let of_ledger = match tidied.dry_run {
        true => "one".to_owned(),
        false => format!("{} of {} KiB", after.packs, after.pack_kibibytes),
    };
    let is_ledger = *packs > if tidied.dry_run { 1 } else { after.packs };
    let is_loose = *objects > if tidied.dry_run { 0 } else { after.objects };
    let ledger = is_ledger
        .then(|| format!("{} of {pack_kibibytes} KiB {packed} into {of_ledger}", plural(*packs, "ledger pack")));
    let loose = is_loose.then(|| format!("{} of {kibibytes} KiB {packed}", plural(*objects, "loose object")));
    ledger.into_iter().chain(loose).collect()
}
