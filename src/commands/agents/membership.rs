use super::super::{Context, Ended, change};
use crate::edit::NewMember;
use crate::model::{list, plural, printable_line};
use crate::ops::change::{Changed, WriteMode};
use crate::ops::team::membership::{self, Membership, MembershipReport};
use crate::ui::Ui;

/// Add an agent to the team
///
/// Adds a row to team.md that looks like its neighbors, a charter to fill in, and a row to routing.md for each
/// --routes, in one commit. The words of --routes leave the examples of other rows, so that the next message with them
/// reaches the new agent. No other byte of these files changes, and your index, stash and edits stay as they are.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad agents add Nora --role \"Data engineer\"
  squad agents add Nora --role \"Data engineer\" --routes \"ETL, warehouse\" --routes \"reports\"
  squad agents add Nora --role \"Data engineer\" --model claude-opus-4.5 --dry-run")]
pub(super) struct Add {
    /// What the agent is called
    name: String,
    /// What it does, in a few words
    #[arg(long)]
    role: String,
    /// The model its charter names
    #[arg(long, value_name = "ID")]
    model: Option<String>,
    /// Work to route to it: one routing row; may be repeated
    #[arg(long, value_name = "SIGNAL,…")]
    routes: Vec<String>,
    #[command(flatten)]
    pub(super) write: WriteArgs,
}

/// Retire an agent
///
/// Its row in team.md is marked, or moves to the table of former members. Its charter stays, so that its past work can
/// still be understood. Routing rows that lead to nobody else go with it; it is said who has its other rows.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad agents retire Frontend --dry-run
  squad agents retire Frontend")]
pub(super) struct Retire {
    /// The agent's name
    name: String,
    #[command(flatten)]
    pub(super) write: WriteArgs,
}

/// Rename an agent
///
/// Changes its row in team.md, the routing rows that name it, its charter and its folder, and each @mention of it in
/// the team's files, in one commit. Decisions and histories stay as they were written. The charter keeps the old name
/// under `Formerly`: what the ledger recorded under that name, such as learnings, still belongs to the agent.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad agents rename Backend Ada --dry-run
  squad agents rename Backend Ada")]
pub(super) struct Rename {
    /// The agent's name
    name: String,
    /// Its new name
    new: String,
    #[command(flatten)]
    pub(super) write: WriteArgs,
}

#[derive(clap::Args)]
pub(super) struct WriteArgs {
    /// Write the files but do not commit them
    #[arg(long)]
    no_commit: bool,
    /// Show the change as a patch and change nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
}

impl WriteArgs {
    pub(super) fn writes(&self) -> bool {
        !self.dry_run
    }

    fn mode(&self) -> WriteMode {
        WriteMode::new(self.dry_run, self.no_commit)
    }
}

impl Add {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let Self { name, role, model, routes, write } = self;
        let new = NewMember { name, role: role.trim().to_owned(), model, signals: routes };
        run(context, &Membership::Add(new), &write)
    }
}

impl Retire {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        run(context, &Membership::Retire(self.name), &self.write)
    }
}

impl Rename {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        run(context, &Membership::Rename { from: self.name, to: self.new }, &self.write)
    }
}

fn run(context: &mut Context<'_>, membership: &Membership, write: &WriteArgs) -> Ended {
    if let Some((_, commit)) = context.finished(&membership::kind(membership)) {
        if context.ui.json() {
            context.ui.value(&serde_json::json!({ "commit": commit }));
        }
        return Ok(0);
    }
    let changed = membership::change(context.env, &context.directory, membership, write.mode())?;
    let git = change::git_here(context);
    change::show(context, changed, write.dry_run, |ui, report| said(ui, report, &git))
}

fn said(ui: &mut Ui, report: &Changed<MembershipReport>, git: &str) {
    let change = &report.change;
    change::say_files(ui, change, change.is_dry_run);
    let count = plural(change.files.len(), "file");
    match change.is_dry_run {
        true => ui.say(&format!("{count} would change.")),
        false => ui.say(&format!("{count} changed{}.", change::outcome(change))),
    }
    if !change.is_dry_run && change.commit.is_none() {
        ui.hint(&change::to_add(change, git));
    }
    report.rows.iter().for_each(|row| ui.say(&format!("routing: {row}.")));
    ui.all_problems(&report.idle);
    if let Some(old) = &report.forgotten {
        ui.warning(&format!(
            "the ledger's entries of `{old}` are not shown for `{}`, which has no charter",
            report.agent
        ));
        ui.hint(&format!("write it a charter with the line `- **Formerly:** {old}`"));
    }
    if !report.mentions.is_empty() {
        const SHOWN: usize = 5;
        let shown = report.mentions.iter().take(SHOWN).map(ToString::to_string);
        let more = report.mentions.len().saturating_sub(SHOWN);
        let more = (more > 0).then(|| plural(more, "other line"));
        ui.warning(&format!("the old name is still in {}", printable_line(&list(shown.chain(more)))));
        ui.hint("squad cannot tell whether these words mean the agent");
    }
}
