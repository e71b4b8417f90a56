use clap::Subcommand;

use super::{Context, Ended};
use crate::error::Failure;
use crate::model::{Severity, list, printable_line};
use crate::ops::Workspace;
use crate::ops::team::trust::{State, Unit, needing_approval, revoke_all, settle};
use crate::ui::{Consent, FAINT};

/// Show and approve what this repository's team would run or loosen
///
/// A cloned repository brings no commands with it: engines' programs, MCP servers, endpoints, fallback engines, higher limits and rules that allow
/// something have no effect in .squad/config.toml, config.json and charters until you approve them here, and again when they change: the values, or the files of the
/// repository that they name. Files that those load in turn, and what lies in folders that they name, are not looked at. The same holds for .worktreeinclude, which names ignored files that agents' clones get. Approvals are kept in your own data folder, for this repository
/// in this place.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad trust                              Show what there is, and what has changed
  squad trust approve mcp.servers.tides
  squad trust approve --all --yes
  squad trust revoke --all")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Show what needs approval, and whether it has it
    #[command(after_help = "Examples:\n  squad trust list\n  squad trust list --json")]
    List,
    /// Approve it as it is now
    #[command(after_help = "Examples:\n  squad trust approve mcp.servers.tides\n  squad trust approve --all --yes")]
    Approve {
        #[command(flatten)]
        which: Which,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Take approvals back
    #[command(after_help = "Examples:\n  squad trust revoke mcp.servers.tides\n  squad trust revoke --all")]
    Revoke(Which),
}

#[derive(clap::Args)]
struct Which {
    /// Names, as `squad trust` shows them
    #[arg(required_unless_present = "all", value_name = "NAME")]
    names: Vec<String>,
    /// All of them
    #[arg(long, conflicts_with = "names")]
    all: bool,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let workspace = Workspace::find(context.env, &context.directory)?;
        let (units, problems) = needing_approval(context.env, &workspace);
        let command = self.command.unwrap_or(Command::List);
        // To take everything back, nothing has to be read.
        let takes_all = matches!(&command, Command::Revoke(which) if which.all);
        let problem = problems.iter().find(|problem| problem.severity == Severity::Error && !takes_all);
        if let Some(problem) = problem {
            return Err(Failure::of_problem(problem));
        }
        match command {
            Command::List => show(context, &units.iter().collect::<Vec<_>>()),
            Command::Approve { which, yes } => {
                let units: Vec<Unit> = units.into_iter().filter(|unit| unit.state != State::Removed).collect();
                let chosen = which.of(&units, |state| matches!(state, State::New | State::Changed))?;
                if !chosen.is_empty() && !context.ui.json() {
                    show(context, &chosen);
                }
                let names = list(chosen.iter().map(|unit| &unit.name));
                match context.ui.confirm(&format!("Approve {names}?"), yes || chosen.is_empty()) {
                    Consent::Yes => {}
                    Consent::No => return Ok(1),
                    Consent::Unavailable => {
                        return Err(Failure::usage("nobody is there to approve it").hint("--yes approves it as it is"));
                    }
                }
                settle(context.env, &workspace, &chosen, true)?;
                report(context, &chosen, "approved");
            }
            Command::Revoke(which) => {
                let chosen = which.of(&units, |state| state != State::New)?;
                if takes_all {
                    revoke_all(context.env, &workspace)?;
                } else {
                    settle(context.env, &workspace, &chosen, false)?;
                }
                report(context, &chosen, "revoked");
            }
        }
        Ok(0)
    }
}

impl Which {
    fn of<'u>(&self, units: &'u [Unit], wanted: impl Fn(State) -> bool) -> Result<Vec<&'u Unit>, Failure> {
        if self.all {
            return Ok(units.iter().filter(|unit| wanted(unit.state)).collect());
        }
        let find = |name: &String| {
            units.iter().find(|unit| unit.name == *name).ok_or_else(|| {
                Failure::usage(format!("this repository brings no `{}` to approve", printable_line(name)))
                    .hint("`squad trust` shows what it brings")
            })
        };
        self.names.iter().map(find).collect()
    }
}

fn report(context: &mut Context<'_>, units: &[&Unit], what: &str) {
    let names: Vec<&String> = units.iter().map(|unit| &unit.name).collect();
    match names.is_empty() {
        _ if context.ui.json() => context.ui.value(&serde_json::json!({ what: names })),
        true => context.ui.say("There is nothing to do."),
        false => context.ui.say(&format!("{}: {}", what, printable_line(&list(names)))),
    }
}

fn show(context: &mut Context<'_>, units: &[&Unit]) {
    let ui = &mut context.ui;
    if ui.json() {
        let row = |unit: &&Unit| {
            let settings: serde_json::Map<_, _> = unit
                .entries
                .iter()
                .map(|(name, value, _)| (name.clone(), serde_json::to_value(value).unwrap_or_default()))
                .collect();
            let source = unit.entries.first().map(|(_, _, origin)| origin.to_string());
            serde_json::json!({"name": unit.name, "state": unit.state, "settings": settings, "files": unit.files, "folders": unit.folders, "source": source})
        };
        return ui.value(&serde_json::json!({"trust": units.iter().map(row).collect::<Vec<_>>()}));
    }
    if units.is_empty() {
        return ui.say("This repository brings nothing that needs your approval.");
    }
    for unit in units {
        let state = match unit.state {
            State::New => "not approved",
            State::Changed => "changed since you approved it",
            State::Approved => "approved",
            State::Removed => "approved, and not there any more",
        };
        ui.data(&format!("{}  {state}", printable_line(&unit.name)));
        for (name, value, origin) in &unit.entries {
            let source = ui.out_paint(FAINT, &format!("({})", printable_line(&origin.to_string())));
            ui.data(&format!("  {} = {}  {source}", printable_line(name), printable_line(&value.to_string())));
        }
        for file in &unit.files {
            ui.data(&format!("  file {}", printable_line(file)));
        }
        for folder in &unit.folders {
            ui.data(&format!("  folder {}, whose files may change unseen", printable_line(folder)));
        }
    }
}
