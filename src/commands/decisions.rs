mod import;
mod page;
mod radar;
mod review;

use clap::Subcommand;

use super::{Context, Ended, text_or_input};
use crate::model::{self, Decision, DecisionState, plural, printable};
use crate::ops::Project;
use crate::ops::decisions::{self, Addition, Standing};
use crate::ops::landing::{self, Landed, Lander, Which};
use crate::settings::Layer;
use crate::ui::{BAD, FAINT, GOOD, STRONG, Ui, WARN};

/// See, add and land what the team has decided
///
/// A decision is in force when its file is on the branch and no other decision there supersedes it.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List every decision and how it stands
    ///
    /// in force: its file is on this branch. superseded: replaced by another one here. unlanded: recorded, on no
    /// branch yet. elsewhere: landed on another branch only. withdrawn: landed here, file deleted since.
    #[command(
        after_help = "Examples:\n  squad decisions list\n  squad decisions list --json | jq '.decisions[].title'"
    )]
    List,
    /// Show one decision
    #[command(after_help = "Examples:\n  squad decisions show 4f1c09")]
    Show {
        /// The decision's id, or the beginning of it
        id: String,
    },
    /// Record a decision of your own, and land it on the branch
    ///
    /// It is durable when its id is printed, landed or not. The first line of TEXT is its title.
    #[command(after_help = "\
Examples:
  squad decisions add \"Money is stored as integer cents\"
  squad decisions add --scope 'billing/**' - < decision.md")]
    Add {
        /// What is decided; `-` reads it from standard input
        text: String,
        /// A path glob the decision is about; may be given several times
        #[arg(long, value_name = "GLOB")]
        scope: Vec<String>,
        /// A word to find it by; may be given several times
        #[arg(long = "tag", value_name = "WORD")]
        tags: Vec<String>,
    },
    /// Record a decision that replaces another one
    ///
    /// Like `add`. Scope and tags are those of the replaced decision unless they are given anew.
    #[command(after_help = "\
Examples:
  squad decisions supersede 4f1c09 \"Money is stored as decimal strings\"")]
    Supersede {
        /// The id of the decision it replaces, or the beginning of it
        id: String,
        /// What is decided; `-` reads it from standard input
        text: String,
        /// A path glob the decision is about; may be given several times
        #[arg(long, value_name = "GLOB")]
        scope: Vec<String>,
        /// A word to find it by; may be given several times
        #[arg(long = "tag", value_name = "WORD")]
        tags: Vec<String>,
    },
    Import(import::Args),
    /// Commit the recorded decisions that were made for this branch and are not on it yet
    #[command(after_help = "Examples:\n  squad decisions land")]
    Land,
    Review(review::Args),
    Radar(radar::Args),
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let command = match self.command {
            // These look at commits, whatever the work tree holds.
            Command::Review(args) => return args.run(context),
            Command::Radar(args) => return args.run(context),
            command => command,
        };
        let project = Project::open(context.env, &context.directory, Layer::default())?;
        project.insist_on_readable()?;
        let ui = &mut context.ui;
        match command {
            Command::Review(_) | Command::Radar(_) => {}
            Command::List => {
                let wrong = project.problems.iter().filter(|problem| problem.code.starts_with("decision-"));
                ui.problems(&wrong.cloned().collect::<Vec<_>>());
                list(ui, &decisions::standing(&project)?);
            }
            Command::Show { id } => show(ui, &decisions::find(decisions::standing(&project)?, &id)?),
            Command::Add { text, scope, tags } => {
                let text = text_or_input(ui, &text)?;
                let addition = Addition { text, scope, tags, supersedes: None };
                let decision = decisions::add(context.env, &project, addition)?;
                settle(context, &project, &decision);
            }
            Command::Supersede { id, text, scope, tags } => {
                let text = text_or_input(ui, &text)?;
                let addition = Addition { text, scope, tags, supersedes: None };
                let decision = decisions::supersede(context.env, &project, &id, addition)?;
                settle(context, &project, &decision);
            }
            Command::Import(args) => return args.run(context, &project),
            Command::Land => {
                let landed = Lander::new(context.env, &project).land(Which::AndOfNone)?;
                landing::record(context.env, &project, &landed)?;
                if ui.json() {
                    ui.value(&serde_json::json!({
                        "landed": landed.decisions,
                        "commit": landed.commit,
                        "unlanded": landed.left.as_ref().and_then(|left| left.count).unwrap_or(0),
                    }));
                } else if landed.decisions.is_empty() && landed.left.is_none() {
                    ui.say("There is nothing to land.");
                } else {
                    said(ui, &landed);
                }
                return Ok(u8::from(landed.left.is_some()));
            }
        }
        Ok(0)
    }
}

/// Says a new decision's id and tries to land it. Landing is a second matter: the decision is safe whatever becomes of
/// it, and its id is said first.
fn settle(context: &mut Context<'_>, project: &Project, decision: &Decision) {
    let ui = &mut context.ui;
    if !ui.json() {
        ui.data(decision.id.as_str());
    }
    let landed = Lander::new(context.env, project).land(Which::OfThisBranch).and_then(|landed| {
        landing::record(context.env, project, &landed)?;
        Ok(landed)
    });
    if ui.json() {
        let commit = landed.as_ref().ok().and_then(|landed| landed.commit.clone());
        let reason = match &landed {
            Ok(landed) => landed.left.as_ref().map(|left| left.reason.clone()),
            Err(failure) => Some(failure.message.clone()),
        };
        ui.value(&serde_json::json!({"id": decision.id, "commit": commit, "unlanded": reason}));
        return;
    }
    match &landed {
        Ok(landed) => said(ui, landed),
        Err(failure) => ui.warning(&format!("the decision is recorded and not on the branch yet: {}", failure.message)),
    }
}

fn said(ui: &mut Ui, landed: &Landed) {
    if let Some(commit) = &landed.commit {
        let short = commit.get(..10).unwrap_or(commit);
        ui.say(&format!("{} landed on {} in {short}.", plural(landed.decisions.len(), "decision"), landed.branch));
    }
    if let Some(left) = &landed.left {
        ui.warning(&format!("{} recorded and not on the branch yet: {}", left.what(), left.reason));
        ui.hint(&format!("{}; then `squad decisions land`", left.hint));
    }
}

fn list(ui: &mut Ui, all: &[Standing]) {
    if ui.json() {
        ui.value(&serde_json::json!({ "decisions": all }));
        return;
    }
    if all.is_empty() {
        ui.say("Nothing is decided yet.");
        ui.hint("squad decisions add \"Money is stored as integer cents\"");
    }
    for decision in all {
        let id = ui.out_paint(STRONG, &format!("{:<12}", printable(decision.id.as_str())));
        let date = decision.date.as_deref().and_then(|date| date.get(..10)).unwrap_or("-");
        let by = decision.by.as_deref().unwrap_or("-");
        let (word, style) = word(decision.state);
        let state = ui.out_paint(style, &format!("{word:<10}"));
        ui.data(&format!(
            "{id}  {date:<10}  {state}  {}  {}",
            printable(&format!("{by:<12}")),
            printable(&decision.title)
        ));
    }
}

fn word(state: DecisionState) -> (&'static str, anstyle::Style) {
    match state {
        DecisionState::InForce => ("in force", GOOD),
        DecisionState::Superseded => ("superseded", FAINT),
        DecisionState::Unlanded => ("unlanded", WARN),
        DecisionState::Elsewhere => ("elsewhere", FAINT),
        DecisionState::Withdrawn => ("withdrawn", BAD),
    }
}

fn show(ui: &mut Ui, decision: &Standing) {
    if ui.json() {
        ui.value(decision);
        return;
    }
    let title = ui.out_paint(STRONG, &printable(&decision.title));
    ui.data(&title);
    let mut state = word(decision.state).0.to_owned();
    if !decision.superseded_by.is_empty() {
        state.push_str(&format!(" by {}", model::list(&decision.superseded_by)));
    }
    let facts = [
        ("id", Some(decision.id.to_string())),
        ("state", Some(state)),
        ("replaces", decision.supersedes.as_ref().map(ToString::to_string)),
        ("date", decision.date.clone()),
        ("by", decision.by.clone()),
        ("source", decision.source.as_ref().map(ToString::to_string)),
        ("scope", Some(decision.scope.join(", ")).filter(|scope| !scope.is_empty())),
    ];
    for (name, value) in facts {
        if let Some(value) = value {
            ui.data(&format!("{name:<8} {}", printable(&value)));
        }
    }
    if !decision.text.is_empty() {
        ui.data(&format!("\n{}", printable(&decision.text)));
    }
}
