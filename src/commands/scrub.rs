use super::{Context, Ended};
use crate::error::Failure;
use crate::model::{list, plural, printable_line};
use crate::ops::ledger::scrub::{self, Pruned, Scrubbed, Search};
use crate::policy::SCRUBBED;
use crate::ui::{Consent, Ui};

/// Remove a leaked secret from the ledger and rescues
///
/// Rewrites the ledger and the rescues of this clone without the secret, and drops copies of remotes' ledgers that
/// contain it. An entry records that something was removed, never what. Files on branches that contain the secret
/// are listed, not rewritten. From then on `squad sync` keeps the old text out, whatever other clones still have;
/// it never overwrites a remote, but tells you which push does. Revoke the secret in any case.
///
/// Shows what it found and asks before changing anything; without a terminal it needs --yes.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("search").args(["value_stdin", "kind", "rescan"]))]
#[command(after_help = "\
Examples:
  squad scrub --value-stdin --dry-run < secret.txt          Where it is
  squad scrub --value-stdin --yes < secret.txt              Remove it
  squad scrub --value-stdin --yes --prune < secret.txt      Remove it, and the old objects too
  squad scrub --value-stdin                                 Type it without echo
  squad scrub --kind github-token
  squad scrub --rescan --dry-run                            What today's rules find")]
pub(super) struct Args {
    /// Remove the value given on standard input; a terminal does not echo it
    #[arg(long)]
    value_stdin: bool,
    /// Remove every secret of one kind, such as `github-token` or `email`
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Remove everything that today's rules and `.env` files identify as a secret
    #[arg(long)]
    rescan: bool,
    /// Also delete the old objects from git's object database
    ///
    /// Deletes only objects that nothing else refers to. On its own, --prune completes an earlier scrub.
    #[arg(long, conflicts_with = "dry_run")]
    prune: bool,
    /// Show what would be removed and change nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short, conflicts_with = "dry_run")]
    yes: bool,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let (env, directory, ui) = (context.env, &context.directory, &mut context.ui);
        let search = match (self.value_stdin, &self.kind) {
            (true, _) => Some(Search::Value(value(ui)?)),
            (false, Some(kind)) => Some(Search::Kind(kind.clone())),
            (false, None) => self.rescan.then_some(Search::Everything),
        };
        if search.is_none() && !self.prune {
            return Err(Failure::usage("`squad scrub` needs what to remove").hint(
                "--value-stdin asks for the value, --kind github-token and --rescan look for what looks like one, and \
                 --prune completes an earlier scrub",
            ));
        }
        let mut scrubbed = None;
        if let Some(search) = &search {
            let found = scrub::scrub(env, directory, search, true)?;
            scrubbed = Some(if self.dry_run {
                found
            } else {
                if !found.is_nothing() {
                    self.ask_for_consent(ui, &found)?;
                }
                scrub::scrub(env, directory, search, false)?
            });
        } else {
            require_consent(ui, self.yes, "Remove the old objects from git's object database, for good?")?;
        }
        let pruned = if self.prune { Some(scrub::prune(env, directory)?) } else { None };
        if ui.json() {
            let name = if self.dry_run { "found" } else { "scrubbed" };
            ui.value(&serde_json::json!({ name: scrubbed, "pruned": pruned }));
        } else {
            if let Some(scrubbed) = &scrubbed {
                show(ui, scrubbed, self.prune);
            }
            if let Some(pruned) = &pruned {
                show_pruned(ui, pruned);
            }
        }
        Ok(u8::from(pruned.is_some_and(|pruned| !pruned.left.is_empty())))
    }
}

impl Args {
    fn ask_for_consent(&self, ui: &mut Ui, found: &Scrubbed) -> Result<(), Failure> {
        if !self.yes && ui.can_ask() && !ui.json() {
            show_places(ui, found);
        }
        let objects = if self.prune { ", and delete the old objects for good" } else { "" };
        require_consent(ui, self.yes, &format!("Remove it from {}{objects}?", extent(found)))
    }
}

/// Fails unless the user agrees, by `--yes` or at the terminal.
fn require_consent(ui: &mut Ui, is_agreed: bool, question: &str) -> Result<(), Failure> {
    let message = match ui.confirm(question, is_agreed) {
        Consent::Yes => return Ok(()),
        Consent::No => "nothing was changed",
        Consent::Unavailable => "this needs --yes: nobody can be asked here",
    };
    Err(Failure::usage(format!("{question} {message}")).hint("--dry-run shows what would be changed"))
}

/// Reads the value, without the line end that a file or pipe adds.
fn value(ui: &Ui) -> Result<String, Failure> {
    let unreadable = |error: std::io::Error| Failure::failed(format!("cannot read the value: {error}"));
    let bytes = ui.read_secret("Value to remove (not shown): ").map_err(unreadable)?;
    let text = String::from_utf8(bytes).map_err(|_| Failure::usage("the value is not UTF-8"))?;
    Ok(text.strip_suffix('\n').map_or(&*text, |text| text.strip_suffix('\r').unwrap_or(text)).to_owned())
}

/// Lists where it is, or was.
fn show_places(ui: &mut Ui, scrubbed: &Scrubbed) {
    for (path, kinds) in &scrubbed.entries {
        // A given value has the kind `scrubbed`, which would be wrong before the scrub.
        let kinds = kinds.iter().map(|kind| if kind == SCRUBBED { "the value" } else { kind });
        ui.data(&printable_line(&format!("ledger   {path}  {}", list(kinds))));
    }
    for (id, files) in &scrubbed.rescues {
        let files = if files.is_empty() { "its message".to_owned() } else { list(files) };
        ui.data(&printable_line(&format!("rescue   {id}  {files}")));
    }
}

fn extent(scrubbed: &Scrubbed) -> String {
    let (entries, rescues) = (plural(scrubbed.entries.len(), "entry"), plural(scrubbed.rescues.len(), "rescue"));
    format!("{entries} of the ledger and {rescues}")
}

fn show(ui: &mut Ui, scrubbed: &Scrubbed, prunes: bool) {
    show_places(ui, scrubbed);
    match (scrubbed.is_nothing(), scrubbed.dry_run) {
        (true, _) => ui.say("It is neither in the ledger nor in a rescue."),
        (false, true) => ui.say(&format!("It would be removed from {}.", extent(scrubbed))),
        (false, false) => {
            ui.say(&format!("Removed from {}.", extent(scrubbed)));
            if !prunes {
                ui.hint("`squad scrub --prune` removes the old objects from git's object database");
            }
        }
    }
    for remote in &scrubbed.remotes {
        ui.warning(&format!("`{remote}` still has the old ledger, as far as this clone knows"));
        ui.hint("`squad sync` says how to replace it; other clones follow with their next `squad sync`");
    }
    for place in &scrubbed.branches {
        ui.warning(&format!("{place} contains it; squad does not rewrite branches"));
    }
    for place in &scrubbed.local {
        ui.warning(&format!("{place} contains it; you may delete it, together with its session"));
    }
}

fn show_pruned(ui: &mut Ui, pruned: &Pruned) {
    ui.say(&format!("{} removed from the object database.", plural(pruned.removed, "object")));
    if let [first, ..] = &pruned.left[..] {
        ui.warning(&format!("{} could not be removed, such as {first}", plural(pruned.left.len(), "object")));
        ui.hint("they are in a pack that git is told to keep, or in the objects of another repository");
    }
}
