use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Context, Ended, diff, require_flags};
use crate::model::{IntoMap, RunId, Slug, printable, printable_line};
use crate::ops::Project;
use crate::ops::run::order::flag_settings;
use crate::ops::run::recall;
use crate::ops::run::watch::{self, WatchOrder};
use crate::ops::team::engines;
use crate::settings;
use crate::view::{Board, Live, Watched, keys};

/// Keep the team's sessions warm and up to date
///
/// Starts the engine once and opens a session for each core agent (`sessions.core`). While it runs, `squad orchestrate`
/// in another terminal works in these sessions instead of starting an engine of its own, and so do the next runs: each
/// agent remembers its earlier tasks, also after the watch has ended, unless a run is given `--fresh`. A watch serves one
/// team in one work tree; another engine process takes 38 to 131 MB. When a charter changes, its
/// sessions are recreated with their history, a busy one at the end of its turn. Sessions that are not used for
/// `sessions.idle_timeout` are suspended. Ctrl-C ends the watch and all its runs.
///
/// On a terminal, the last lines show a row for each agent. Keys: up and down (or k and j) select an agent, Enter shows
/// only its output, Esc goes back; `m` sends it a message while it works, `c` cancels its work, `a` answers its question,
/// `D` shows what it changed in its run, `/` finds the next agent whose name or last lines have a text, `?` shows the
/// keys, `q` ends the watch.
/// A question also appears in the terminal that started the run; answer it in either.
///
/// The watch commits nothing: the `squad orchestrate` that started a run lands its decisions.
///
/// With --json, prints every event of every run to stdout, one per line.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad watch                        Keep the team ready and show what it does
  squad watch --json                 Print every event, for programs
  squad watch --engine rehearsal     No model, no login, no network")]
pub(super) struct Args {
    /// The engine that runs the sessions; `squad engines` lists them
    #[arg(long, value_name = "NAME")]
    engine: Option<String>,
    /// A script for the rehearsal engine; implies `--engine rehearsal`
    #[arg(long, value_name = "FILE")]
    script: Option<String>,
    /// How many agents work at the same time, in all runs together
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
            let team = order.project.work_dir.file_name().unwrap_or_default().to_string_lossy();
            let (changes_env, changes_directory) = (env.clone(), directory.clone());
            let changes =
                Arc::new(move |run: &RunId, agent: &Slug| diff::of_agent(&changes_env, &changes_directory, run, agent));
            let live = Live::new(&board, printable_line(&team), env.clock.clone(), changes);
            let ended = watch::watch(env, &directory, order, &mut { live });
            (ended, board.into_inner().into_screen())
        } else {
            let screen = Mutex::new(ui);
            let ended = watch::watch(env, &directory, order, &mut Watched::new(&screen, is_json));
            (ended, screen.into_inner())
        };
        (Context { env, directory, ui, recovered }, ended.map(|()| 0))
    }

    fn prepare(&self, context: &mut Context<'_>) -> Result<WatchOrder, crate::error::Failure> {
        let implied = self.script.as_ref().map(|_| "rehearsal".to_owned());
        let values = [("engine", self.engine.clone().or(implied)), ("max-concurrent", self.max_concurrent.clone())];
        let flags: BTreeMap<String, String> =
            values.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).into_map();
        let mut layer = flag_settings(&flags);
        let script = ("engine.rehearsal.script", self.script.clone(), "--script");
        layer.entries.extend(settings::from_command_line([script]).entries);
        let project = Project::open(context.env, &context.directory, layer)?;
        require_flags(&project.problems)?;
        context.ui.problems(&project.problems);
        project.require_sound()?;
        engines::check_names(&project)?;
        let script = engines::script(&project.settings, &context.directory)?;
        if let Some(recalled) = recall::line(context.env, &project) {
            context.ui.say(&printable(&recalled));
        }
        Ok(WatchOrder { project, flags, script, asks: context.ui.can_ask() })
    }
}
