use clap::Subcommand;

use super::{Context, Ended};
use crate::error::Failure;
use crate::model::printable;
use crate::ops::team::config::{ConfigFile, Place};
use crate::ops::{Workspace, require_merged, team_settings};
use crate::settings::{self, Settings};
use crate::ui::FAINT;

/// View and change the configuration
///
/// Without a command, lists every setting. Later sources win: built-in defaults, the team's config.json and config.toml, your own squad/config.toml, SQUAD_
/// variables, the command line.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// List every setting, with the source of its value
    #[command(after_help = "Examples:\n  squad config list\n  squad config list --json")]
    List,
    /// Print one value; exits with 1 when it is not set
    #[command(after_help = "Examples:\n  squad config get models.default")]
    Get {
        /// The setting's name
        name: String,
    },
    /// Set one value in a file
    #[command(after_help = "\
Examples:
  squad config set models.default claude-opus-4.5
  squad config set --user engine.copilot.path ~/bin/copilot")]
    Set {
        /// In the team's file, .squad/config.toml (the default)
        #[arg(long, conflicts_with = "user")]
        project: bool,
        /// In your own configuration file
        #[arg(long)]
        user: bool,
        /// The setting's name
        name: String,
        /// Its new value; separate the items of a list with commas
        value: String,
    },
    /// Remove one value from a file, so that earlier sources decide
    #[command(after_help = "\
Examples:
  squad config unset models.default
  squad config unset --user engine.fallback")]
    Unset {
        /// From the team's file, .squad/config.toml (the default)
        #[arg(long, conflicts_with = "user")]
        project: bool,
        /// From your own configuration file
        #[arg(long)]
        user: bool,
        /// The setting's name
        name: String,
    },
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let workspace = Workspace::find(context.env, &context.directory);
        // Outside of any team, the user's own configuration still counts.
        let (settings, problems) = team_settings(context.env, workspace.as_ref().ok());
        require_merged(&problems)?;
        context.ui.all_problems(&problems);
        match self.command.unwrap_or(Command::List) {
            Command::List => list(context, &settings),
            Command::Get { name } => return get(context, &settings, &name),
            Command::Set { user, name, value, .. } => {
                let file = file(context, workspace.as_ref().ok(), user)?;
                file.set(&name, &value)?;
                changed(context, &file, &name, "is set");
            }
            Command::Unset { user, name, .. } => {
                let file = file(context, workspace.as_ref().ok(), user)?;
                if !file.unset(&name)? {
                    let failure = Failure::failed(format!("`{name}` is not set there")).at(file.path.display());
                    return Err(failure.hint("`squad config list` shows where each value comes from"));
                }
                changed(context, &file, &name, "is no longer set");
            }
        }
        Ok(0)
    }
}

fn file(context: &Context<'_>, workspace: Option<&Workspace>, user: bool) -> Result<ConfigFile, Failure> {
    ConfigFile::find(context.env, workspace, if user { Place::User } else { Place::Project })
}

fn changed(context: &mut Context<'_>, file: &ConfigFile, name: &str, what: &str) {
    let path = file.path.display().to_string();
    if context.ui.json() {
        context.ui.value(&serde_json::json!({"name": name, "file": path}));
    } else {
        context.ui.say(&format!("{} {what} in {}", printable(name), printable(&path)));
    }
}

fn list(context: &mut Context<'_>, settings: &Settings) {
    let ui = &mut context.ui;
    if ui.json() {
        let entry = |(name, value, origin): (&str, &toml::Value, &settings::Origin)| serde_json::json!({"name": name, "value": masked(name, value), "source": origin.to_string()});
        let entries: Vec<serde_json::Value> = settings.values().map(entry).collect();
        ui.value(&serde_json::json!({ "settings": entries }));
        return;
    }
    let lines: Vec<(String, String)> = settings
        .values()
        .map(|(name, value, origin)| (format!("{name} = {}", masked(name, value)), origin.to_string()))
        .collect();
    let width = lines.iter().map(|(line, _)| line.chars().count()).max().unwrap_or(0);
    for (line, origin) in lines {
        let origin = ui.out_paint(FAINT, &format!("({})", printable(&origin)));
        ui.data(&format!("{:<width$}  {origin}", printable(&line)));
    }
}

/// Confidential values are masked here: people share the output of `list`.
fn masked(name: &str, value: &toml::Value) -> toml::Value {
    if settings::is_confidential(name) { "[masked]".into() } else { value.clone() }
}

fn get(context: &mut Context<'_>, settings: &Settings, name: &str) -> Ended {
    settings::is_known(name).map_err(Failure::usage)?;
    let mut is_set = false;
    // Of rules, all layers hold.
    for (_, value, origin) in settings.values().filter(|(known, _, _)| *known == name) {
        is_set = true;
        if context.ui.json() {
            context.ui.value(&serde_json::json!({"name": name, "value": value, "source": origin.to_string()}));
        } else {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            context.ui.data(&printable(&text));
        }
    }
    Ok(u8::from(!is_set))
}
