use super::{Context, Ended};
use crate::error::Failure;
use crate::model::{megabytes, plural, printable};
use crate::ops::run::worker::{self, Cleared, Recovered, Untaken};
use crate::ui::Ui;

/// Carry out a work order of a squad on another machine
///
/// A launcher in the other machine's `[hosts]` starts this, such as `ssh HOST squad worker`. The order comes on standard
/// input; what happens goes to standard output. If the connection breaks, the work goes on until it has to ask something,
/// and the next launch takes it up.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// List the orders on this machine
    #[arg(long, conflicts_with = "gc")]
    list: bool,
    /// Put the work of ended orders, or of order ID, that no squad has taken in bundles, and say how to fetch it
    #[arg(long, value_name = "ID", num_args = 0..=1, conflicts_with_all = ["list", "gc"])]
    recover: Option<Option<String>>,
    /// Remove the clones of ended orders whose work was taken
    #[arg(long)]
    gc: bool,
    /// With `--gc`, also remove what nobody has taken for 14 days, and name it
    #[arg(long, requires = "gc")]
    force: bool,
    /// Carry out the order on this ref of a remote, and leave its result there: for jobs that nobody talks to
    #[arg(long, value_name = "REF", conflicts_with_all = ["list", "gc", "recover"])]
    order: Option<String>,
    /// The remote with the order [default: the one that `squad sync` uses]
    #[arg(long, value_name = "REMOTE", requires = "order")]
    remote: Option<String>,
    /// Carry out the order ID; squad starts this itself
    #[arg(long, value_name = "ID", hide = true, conflicts_with_all = ["list", "gc", "recover", "order"])]
    serve: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  squad worker --list    Show which orders are, or were, at work on this machine
  squad worker --recover
                         Save the work of ended orders whose squad is gone
  squad worker --gc      Remove what ended orders left
  squad worker --order refs/squad/orders/ID
                         In a job's clone of the repository: carry out the order of `mode = \"batch\"`";

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let (env, ui) = (context.env, &mut context.ui);
        if let Some(id) = self.serve {
            worker::serve(env, &id)?;
        } else if let Some(order) = self.order {
            worker::batch(env, &context.directory, &order, self.remote.as_deref())?;
        } else if self.list {
            let orders = worker::list(env);
            if ui.json() {
                ui.value(&serde_json::json!({ "orders": orders }));
            } else {
                for order in orders {
                    let state = if order.running { "running" } else { "ended" };
                    ui.data(&format!("{}  {state}  {}", order.id, order.directory));
                }
            }
        } else if let Some(id) = self.recover {
            let found = worker::recover(env, id.as_deref())?;
            let is_whole = found.iter().all(|it| it.problem.is_none());
            if ui.json() {
                ui.value(&serde_json::json!({ "recovered": found }));
            } else {
                show(ui, &found);
            }
            return Ok(u8::from(!is_whole));
        } else if self.gc {
            let cleared = worker::clear(env, self.force)?;
            if ui.json() {
                ui.value(&cleared);
            } else {
                show_cleared(ui, &cleared);
            }
        } else if ui.input_is_terminal() {
            return Err(Failure::usage("`squad worker` reads a work order on standard input, and this is a terminal")
                .hint("a squad on another machine starts it: `squad help hosts` says how"));
        } else {
            worker::relay(env, ui.input_opener(), ui.take_output())?;
        }
        Ok(0)
    }
}

fn show_cleared(ui: &mut Ui, Cleared { removed, bytes, kept, dropped }: &Cleared) {
    ui.data(&format!("removed {} ({})", plural(*removed, "order"), megabytes(*bytes)));
    let named = |untaken: &Untaken| match &untaken.problem {
        Some(why) => format!("{}, of which it is not known: {}", untaken.id, printable(why)),
        None => untaken.id.clone(),
    };
    for untaken in dropped {
        ui.warning(&format!("no squad had taken the work of {}", named(untaken)));
    }
    for untaken in kept {
        ui.warning(&format!("kept, as no squad has taken its work: {}", named(untaken)));
    }
    if !kept.is_empty() {
        ui.hint("`squad worker --recover` puts it in bundles; `--gc --force` removes what is older than 14 days");
    }
}

fn show(ui: &mut Ui, found: &[Recovered]) {
    for Recovered { id, run, file, reference, bytes, problem, .. } in found {
        match (file, reference, problem) {
            (Some(file), Some(reference), _) => {
                let file = file.display();
                ui.data(&format!("{id}  {file} ({})", megabytes(*bytes)));
                ui.hint(&format!(
                    "in the project: `squad orchestrate --resume {run}` takes it, if the run began there"
                ));
                ui.hint(&format!(
                    "or copy the file there, and `git fetch ./work.bundle {reference}:refs/squad/recovered/{id}`"
                ));
            }
            (_, _, Some(why)) => ui.warning(&format!("{id}: {}", printable(why))),
            _ => {}
        }
    }
    if found.iter().all(|it| it.file.is_none() && it.problem.is_none()) {
        ui.notice("No ended order has work that its squad has not taken.");
    }
}
