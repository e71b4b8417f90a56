use super::{Context, Ended};
use crate::error::Failure;
use crate::model::{list, plural, printable};
use crate::ops::scrub::{self, Pruned, Scrubbed, Search};
use crate::ui::Ui;

/// Take a secret that slipped through out of what squad keeps
///
/// Rewrites the ledger and the rescues of this clone without it, records that this was done and never what was taken out,
/// and lets go of copies of remotes' ledgers that lead to it. Files on branches that hold it are named, not rewritten.
/// `squad sync` then keeps it out: what other clones still have of the old text is not taken over. A remote that has the
/// old ledger is not overwritten by squad; `squad sync` says which push replaces it. Make the secret invalid where it is
/// used in any case.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("search").args(["value_stdin", "kind", "rescan"]))]
#[command(after_help = "\
Examples:
  squad scrub --value-stdin --dry-run < secret.txt    Where it is
  squad scrub --value-stdin --prune < secret.txt      Take it out, and remove the old objects
  squad scrub --kind github-token
  squad scrub --rescan --dry-run                      What today's rules find")]
pub(super) struct Args {
    /// Take out the value that is read from standard input
    #[arg(long)]
    value_stdin: bool,
    /// Take out every secret of one kind, such as `github-token` or `email`
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Take out what today's rules and `.env` files know as secret
    #[arg(long)]
    rescan: bool,
    /// Remove the old objects from git's object database too
    ///
    /// Only those that nothing else leads to. Without this they go in git's own time, after some two weeks. May be given
    /// alone, for what was taken out before.
    #[arg(long, required_unless_present = "search", conflicts_with = "dry_run")]
    prune: bool,
    /// Show what would be taken out, and change nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let (env, directory, ui) = (context.env, &context.directory, &mut context.ui);
        let search = match (self.value_stdin, self.kind) {
            (true, _) => Some(Search::Value(value(ui)?)),
            (false, Some(kind)) => Some(Search::Kind(kind)),
            (false, None) => self.rescan.then_some(Search::Everything),
        };
        let scrubbed = search.map(|search| scrub::scrub(env, directory, &search, self.dry_run)).transpose()?;
        let pruned = if self.prune { Some(scrub::prune(env, directory)?) } else { None };
        if ui.json() {
            ui.value(&serde_json::json!({ "scrubbed": scrubbed, "pruned": pruned }));
        } else {
            if let Some(scrubbed) = &scrubbed {
                said(ui, scrubbed, self.prune);
            }
            if let Some(pruned) = &pruned {
                said_pruned(ui, pruned);
            }
        }
        Ok(u8::from(pruned.is_some_and(|pruned| !pruned.left.is_empty())))
    }
}

/// One line end belongs to the file or the pipe that it came through.
fn value(ui: &Ui) -> Result<String, Failure> {
    let text = super::text_or_input(ui, "-")?;
    Ok(text.strip_suffix('\n').map_or(&*text, |text| text.strip_suffix('\r').unwrap_or(text)).to_owned())
}

fn said(ui: &mut Ui, scrubbed: &Scrubbed, prunes: bool) {
    for (path, kinds) in &scrubbed.entries {
        ui.data(&printable(&format!("ledger   {path}  {}", list(kinds))));
    }
    for (id, files) in &scrubbed.rescues {
        let files = if files.is_empty() { "its message".to_owned() } else { list(files) };
        ui.data(&printable(&format!("rescue   {id}  {files}")));
    }
    let (entries, rescues) = (plural(scrubbed.entries.len(), "entry"), plural(scrubbed.rescues.len(), "rescue"));
    let is_found = !scrubbed.entries.is_empty() || !scrubbed.rescues.is_empty();
    match (is_found, scrubbed.dry_run) {
        (false, _) => ui.say("Nothing of it is in the ledger or a rescue."),
        (true, true) => ui.say(&format!("It would go from {entries} of the ledger and {rescues}.")),
        (true, false) => {
            ui.say(&format!("It is gone from {entries} of the ledger and {rescues}."));
            if !prunes {
                ui.hint("git still has the old objects for some weeks; `squad scrub --prune` removes them");
            }
        }
    }
    for remote in &scrubbed.remotes {
        ui.warning(&format!("`{remote}` still has the old ledger, as far as this clone knows"));
        ui.hint("`squad sync` says how to replace it; other clones take that over with their next `squad sync`");
    }
    for place in &scrubbed.branches {
        ui.warning(&format!("{place} holds it; branches are yours to rewrite"));
    }
    for place in &scrubbed.local {
        ui.warning(&format!("{place} holds it; it may be removed, with the session it belongs to"));
    }
}

fn said_pruned(ui: &mut Ui, pruned: &Pruned) {
    ui.say(&format!("{} removed from the object database.", plural(pruned.removed, "object")));
    if let [first, ..] = &pruned.left[..] {
        ui.warning(&format!("{} could not be removed, such as {first}", plural(pruned.left.len(), "object")));
        ui.hint("they are in a pack that git is told to keep, or in the objects of another repository");
    }
}
