use super::{Context, Ended};
use crate::model::plural;
use crate::ops::ledger::sync::{self, Options, Synced};
use crate::ui::{Consent, Ui};

/// Share the ledger through a remote
///
/// Fetches the ledger from REMOTE, merges it with this clone's ledger and pushes the result. Both sides end up with
/// the entries of both; nothing is force-pushed and no entry is lost. The first sync asks for consent, because
/// everyone who can read the remote can then read the ledger. After that, `git fetch` brings the ledger too.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad sync --dry-run        Show what would be pushed
  squad sync                  Sync with the remote that this branch tracks, else `origin`
  squad sync upstream --yes   Agree to the first sync without a question
  squad sync --own-ref --yes  In CI, where many jobs push at once")]
pub(super) struct Args {
    /// A configured remote; by default the one that this branch tracks, else `origin`
    remote: Option<String>,
    /// Only show what would be pushed
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Agree to store the ledger on this remote
    #[arg(long, short, conflicts_with = "dry_run")]
    yes: bool,
    /// Push to a ref of this clone's own, under refs/squad/clones, and fetch nothing
    ///
    /// For CI, where many jobs push at once: no job waits for another. The next plain `squad sync` merges the entries
    /// into the ledger and deletes the ref.
    #[arg(long, conflicts_with = "dry_run")]
    own_ref: bool,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let options = Options { remote: self.remote, dry_run: self.dry_run, own_ref: self.own_ref };
        let ui = &mut context.ui;
        let mut consent = Consent::Unavailable;
        let synced = sync::sync(context.env, &context.directory, &options, |plan| {
            let question = format!(
                "{} would be pushed to `{}`, for everyone who can read it, and {} fetched. Store the ledger there?",
                plural(plan.sent, "entry"),
                plan.remote,
                plural(plan.taken, "entry")
            );
            consent = ui.confirm(&question, self.yes);
            consent == Consent::Yes
        });
        if consent == Consent::No {
            context.ui.say("Nothing was pushed.");
            return Ok(0);
        }
        let synced = synced?;
        if context.ui.json() {
            context.value(&synced);
        } else {
            show(&mut context.ui, &synced);
        }
        Ok(0)
    }
}

fn show(ui: &mut Ui, synced: &Synced) {
    let (sent, taken) = (plural(synced.sent, "entry"), plural(synced.taken, "entry"));
    if synced.dry_run {
        ui.data(&format!("{sent} would be pushed to {}, {taken} fetched", synced.remote));
        return;
    }
    if let (Some(reason), Some(reference)) = (&synced.refused, &synced.reference) {
        if reference.starts_with("refs/heads/") {
            ui.warning(&format!("{} refuses refs for the ledger: {reason}", synced.remote));
            ui.hint(&format!("the ledger is in its branch {reference} until that changes"));
        } else {
            ui.warning(&format!("{} rejected refs/squad/log this time: {reason}", synced.remote));
            ui.hint(&format!("every entry is there all the same, under {reference}; the next sync tries again"));
        }
    }
    ui.data(&format!("{sent} pushed to {}, {taken} fetched", synced.remote));
}
