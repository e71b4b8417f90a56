use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::{Context, Ended, insist_on_flags};
use crate::ops::Project;
use crate::ops::run::order::flag_settings;
use crate::ops::run::watch::{self, WatchOrder};
use crate::ops::team::engines;
use crate::settings;
use crate::view::{Board, Live, Watched, keys};

/// Keep the team's sessions warm and up to date
///
/// Starts the engine once and opens a session for each core agent (`sessions.core`). While it runs, `squad orchestrate`
/// in another terminal works in these sessions instead of starting an engine of its own. When a charter changes, the
/// sessions made of it are made anew, with their history; one at work when its turn is over. Sessions that nobody needs
/// for `sessions.idle_timeout` are suspended. Ctrl-C ends it, and with it the runs that are going on.
///
/// On a terminal, a row for each agent stands below the lines. Keys: up and down (or k and j) choose an agent, Enter shows
/// only what it says and does, Esc goes back; `c` cancels its work, `a` answers what it asks, `?` shows the keys, `q` ends
/// the watch. A question is asked where the work was asked for, and can be answered in either place.
///
/// It commits nothing: what agents decide is landed by the `squad orchestrate` that asked for the work.
///
/// With --json, stdout carries every event of every run, one a line.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad watch                        Keep the team ready, and show what it does
  squad watch --json                 Every event, for programs
  squad watch --engine rehearsal     No model, no login, no network")]
pub(super) struct Args {
    /// The engine that runs the sessions; `squad engines` lists them
    #[arg(long, value_name = "NAME")]
    engine: Option<String>,
    /// The script that the rehearsal engine plays; chooses that engine
    #[arg(long, value_name = "FILE")]
    script: Option<String>,
    /// How many agents work at the same time, in all runs
    #[arg(long, value_name = "N")]
    max_concurrent: Option<String>,
}

impl Args {
    pub(super) fn run(self, mut context: Context<'_>) -> (Context<'_>, Ended) {
        let order = match self.prepare(&mut context) {
            Ok(order) => order,
            Err(failure) => return (context, Err(failure)),
        };
        let Context { env, directory, ui, recovered } = context;
        let is_json = ui.json();
        let is_live = ui.shows_progress() && ui.can_ask() && keys::is_ours();
        let (ended, ui) = if is_live {
            let board = Mutex::new(Board::new(ui));
            let ended = watch::watch(env, &directory, order, &mut Live::new(&board, env.clock.clone()));
            (ended, board.into_inner().unwrap_or_else(PoisonError::into_inner).into_screen())
        } else {
            let screen = Mutex::new(ui);
            let ended = watch::watch(env, &directory, order, &mut Watched::new(&screen, is_json));
            (ended, screen.into_inner().unwrap_or_else(PoisonError::into_inner))
        };
        (Context { env, directory, ui, recovered }, ended.map(|()| 0))
    }

    fn prepare(&self, context: &mut Context<'_>) -> Result<WatchOrder, crate::error::Failure> {
        let implied = self.script.as_ref().map(|_| "rehearsal".to_owned());
        let values = [("engine", self.engine.clone().or(implied)), ("max-concurrent", self.max_concurrent.clone())];
        let flags: BTreeMap<String, String> =
            values.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        let mut layer = flag_settings(&flags);
        let script = ("engine.rehearsal.script", self.script.clone(), "--script");
        layer.entries.extend(settings::from_command_line([script]).entries);
        let project = Project::open(context.env, &context.directory, layer)?;
        insist_on_flags(&project)?;
        context.ui.problems(&project.problems);
        project.insist_on_sound()?;
        engines::check_names(&project)?;
        let script = engines::script(&project.settings, &context.directory)?;
        Ok(WatchOrder { project, flags, script, asks: context.ui.can_ask() })
    }
}
