use serde_json::{Value, json};

use super::{Context, Ended};
use crate::error::Failure;
use crate::model::{plural, printable_line};
use crate::ops::ledger::sync::{self, Options, Synced};
use crate::ops::team::links::{self, LinkSync};
use crate::ops::{Project, repository};
use crate::settings::Layer;
use crate::ui::{Consent, Ui};

/// Share the ledger through a remote
///
/// Fetches the ledger from REMOTE, merges it with this clone's ledger and pushes the result. Both sides end up with
/// the entries of both; nothing is force-pushed and no entry is lost. The first sync asks for consent, because
/// everyone who can read the remote can then read the ledger. After that, `git fetch` brings the ledger too.
///
/// Before that it fetches the notes of knowledge of the repositories that `[links.NAME]` names in your configuration, and
/// pins them at their newest commit until the next sync. Nothing else of those repositories is taken, and nothing of them
/// runs.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad sync --dry-run        Show what would be pushed
  squad sync                  Sync with the remote that this branch tracks, else `origin`
  squad sync upstream --yes   Agree to the first sync without a question
  squad sync --own-ref --yes  In CI, where many jobs push at once
  squad sync --links          Only fetch the notes of linked projects")]
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
    /// Only fetch the notes of linked projects
    #[arg(long, conflicts_with_all = ["remote", "dry_run", "yes", "own_ref"])]
    links: bool,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let links = self.sync_links(context)?;
        let has_failed = links.iter().any(|link| link.problem.is_some());
        if self.links || (!links.is_empty() && self.remote.is_none() && !has_remotes(context)?) {
            if context.ui.json() {
                context.value(json!({ "links": links }));
            } else if links.is_empty() {
                context.ui.say("There are no links.");
                context.ui.hint("squad config set --user links.shop.git https://example.com/shop.git");
            }
            return Ok(u8::from(has_failed));
        }
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
            let mut value = serde_json::to_value(&synced).unwrap_or_default();
            if let (Value::Object(value), false) = (&mut value, links.is_empty()) {
                value.insert("links".to_owned(), json!(links));
            }
            context.value(value);
        } else {
            show(&mut context.ui, &synced);
        }
        Ok(u8::from(has_failed))
    }

    fn sync_links(&self, context: &mut Context<'_>) -> Result<Vec<LinkSync>, Failure> {
        if self.dry_run || self.own_ref {
            return Ok(Vec::new());
        }
        let project = match Project::open(context.env, &context.directory, Layer::default()) {
            Ok(project) => project,
            Err(failure) if self.links => return Err(failure),
            // A ledger can be synchronized without a team.
            Err(_) => return Ok(Vec::new()),
        };
        if let Some(failure) = project.require_configuration().err().filter(|_| !self.links) {
            let Failure { message, source, .. } = failure;
            context.ui.warning(&format!("no link is fetched: {}: {message}", source.unwrap_or_default()));
            return Ok(Vec::new());
        }
        let links = links::sync(context.env, &project)?;
        // Those of the repository's own configuration.
        let ignored = project.problems.iter().filter(|problem| problem.message.starts_with("`links."));
        context.ui.problems(&ignored.cloned().collect::<Vec<_>>());
        if !context.ui.json() {
            links.iter().for_each(|link| show_link(&mut context.ui, link));
        }
        Ok(links)
    }
}

fn has_remotes(context: &Context<'_>) -> Result<bool, Failure> {
    let (repository, _) = repository(context.env, &context.directory)?;
    Ok(!repository.remotes()?.is_empty())
}

fn show_link(ui: &mut Ui, link: &LinkSync) {
    let LinkSync { name, git, commit, notes, added, removed, left_out, problem } = link;
    if let Some(problem) = problem {
        let kept =
            if *notes > 0 { format!("; its {} of the last sync stay", plural(*notes, "note")) } else { String::new() };
        ui.warning(&format!("link {name} was not fetched from {git}: {problem}{kept}"));
        return;
    }
    let commit = commit.as_deref().unwrap_or_default();
    let commit = commit.get(..12).unwrap_or(commit);
    ui.data(&printable_line(&format!(
        "link {name}: {}, {added} new, {removed} gone, at {commit}",
        plural(*notes, "note")
    )));
    for (reason, count) in left_out {
        ui.say(&printable_line(&format!("  {count} not told: {reason}")));
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
