//! `squad log`: lists runs, shows one run, or follows new entries.

mod page;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;

use self::page::Page;
use super::{Context, Ended, begin_with, diff};
use crate::error::Failure;
use crate::model::{RunId, Slug, plural, printable_line};
use crate::ops::ledger::log::{self, Choice, Follower, Timeline};
use crate::ops::ledger::lost;
use crate::ops::run::{changes, past, routing};
use crate::ops::{Project, Workspace, write_text};
use crate::record::Read;
use crate::route::evaluate::Case;
use crate::settings::Layer;
use crate::ui::Ui;
use crate::view::HtmlPage;

/// How many runs are listed by default.
const RUNS: u32 = 20;

/// Show past runs
///
/// Without RUN, lists the newest runs; with RUN, tells what happened in it. `--events` shows every entry as it was
/// recorded; `git log -p refs/squad/log` shows the same data.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad log                        The newest runs
  squad log 602796                 One run, by the end or the beginning of its id
  squad log 602796 --events        Everything that was recorded of it
  squad log 602796 --html run.html One page without scripts, to look at in a browser or to send
  squad log --agent backend --since yesterday
  squad log --usage --since 1w     Tokens and cost of the last week
  squad log --usage --html use.html The same as pictures, by day and agent, with forecasts
  squad log --follow               Whatever any squad in this repository records from now on
  squad log --follow --json | jq 'select(.type == \"decision.logged\")'
  squad log --json | jq '.runs[0]'
  squad log --export-routing cases.jsonl && squad route --eval cases.jsonl

WHEN is today, yesterday, a day (2026-01-05), an RFC 3339 time, or how long ago: 90s, 45m, 2h, 3d, 1w.")]
#[command(group(clap::ArgGroup::new("shown").args(["run", "usage"])))]
pub(super) struct Args {
    /// The run's short or whole id, or a prefix of it
    run: Option<String>,
    /// How many runs to show (20 by default), or how many of RUN's newest entries
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Only runs that AGENT was chosen for or worked in; with RUN, only its entries
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only runs that began at WHEN or later; with RUN, only entries since then
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Show entries as they are recorded, until Ctrl-C or until RUN ends
    ///
    /// With --since, starts with the entries since then; with RUN, with those the run has so far.
    #[arg(long, short, conflicts_with = "limit")]
    follow: bool,
    /// Show every entry of RUN as it was recorded
    #[arg(long, requires = "run")]
    events: bool,
    /// Sum up what agents used, by day, agent, model and run
    #[arg(long, conflicts_with_all = ["run", "limit", "follow", "all", "export_routing"])]
    usage: bool,
    /// Write RUN, or with --usage the sums, as a page of HTML to a new FILE
    ///
    /// The page has no scripts and loads nothing; it can be sent to others as it is.
    #[arg(long, value_name = "FILE", requires = "shown", conflicts_with_all = ["limit", "follow", "events"])]
    html: Option<PathBuf>,
    /// Overwrite an existing FILE of --html
    #[arg(long, requires = "html")]
    force: bool,
    /// List greetings and questions, too
    #[arg(long, conflicts_with = "run")]
    all: bool,
    /// Write the completed runs as labelled cases for `squad route --eval`, to a new FILE or to stdout (`-`)
    ///
    /// Each run is labelled with the agents that completed it; check the cases and correct wrong labels. Failed,
    /// cancelled and rejected runs are left out.
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    #[arg(conflicts_with_all = ["run", "limit", "agent", "since", "follow"])]
    export_routing: Option<Option<PathBuf>>,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let workspace = Workspace::find_without_team(context.env, &context.directory)?;
        if let Some(file) = self.export_routing {
            let file = file.filter(|file| file.as_os_str() != "-").map(|file| context.directory.join(file));
            return export(&mut context.ui, &past::cases(&workspace)?, file.as_deref());
        }
        let choice = self.choice(context)?;
        if let Some(name) = &self.agent
            && let Ok(project) = Project::open(context.env, &context.directory, Layer::default())
            && project.require_readable().is_ok()
        {
            past::require_known(&project, name)?;
        }
        let (repository, prefix) = (&workspace.repository, workspace.ledger_prefix());
        if self.usage {
            let sums = log::usage(repository, &prefix, &choice, &context.env.clock)?;
            if let Some(file) = &self.html {
                let forecasts = log::forecasts(repository, &prefix, &sums.runs)?;
                let page = page::usage_html(&sums, &forecasts);
                write_text(&context.directory.join(file), Some(self.force), &page)?;
                return Self::wrote(context, file, &serde_json::json!({ "usage": sums, "file": file }));
            }
            page::usage(&mut context.ui, &sums);
            return Ok(0);
        }
        let run = self.run.as_deref().map(|id| log::one_run(repository, &prefix, id)).transpose()?;
        if self.follow {
            return self.follow(context, &workspace, run, choice);
        }
        let Some(run) = run else {
            let limit = self.limit.unwrap_or(RUNS) as usize;
            let runs = log::runs(repository, &prefix, &workspace.leases(), &choice, limit)?;
            if context.ui.json() {
                context.value(serde_json::json!({ "runs": runs }));
            } else if runs.is_empty() && choice != Choice::default() {
                context.ui.say("No run matches.");
            } else if runs.is_empty() {
                context.ui.say("There are no runs yet.");
                context.ui.hint(begin_with(&workspace.folder, "squad orchestrate \"what to do\""));
            } else {
                page::runs(&mut context.ui, &runs, self.all || choice.agent.is_some(), &context.env.clock);
            }
            return Ok(0);
        };
        if workspace.leases().dead.contains(&run) {
            // Its end tells what its agents had changed.
            lost::settle(context.env, repository);
        }
        let mut timeline = log::timeline(repository, &prefix, Some(&run), &choice)?;
        if let Some(file) = &self.html {
            if choice != Choice::default() {
                let failure = Failure::usage("--html shows a run as a whole, without --agent and --since");
                return Err(failure.hint("`squad log --usage --html FILE` knows both"));
            }
            return self.write_html(context, &workspace, &run, &timeline, file);
        }
        if let Some(limit) = self.limit {
            timeline.keep_last(limit as usize)?;
        }
        let is_whole = choice == Choice::default() && self.limit.is_none();
        context.page();
        let mut page = self.page(&mut context.ui, &run, context.env.clock.zone());
        for entry in timeline.entries() {
            let (path, read) = entry?;
            if page.show(&path, read).is_break() {
                return Ok(0);
            }
        }
        page.end(is_whole.then(|| workspace.leases().status(&run)));
        Ok(0)
    }

    fn write_html(
        &self,
        context: &mut Context<'_>,
        workspace: &Workspace,
        run: &RunId,
        timeline: &Timeline<'_>,
        file: &Path,
    ) -> Ended {
        let mut page = HtmlPage::new(run.clone(), context.env.clock.zone());
        for entry in timeline.entries() {
            match entry? {
                (_, Read::Entry(entry)) => {
                    if let Some(kind) = entry.known_kind() {
                        page.see(entry.at, entry.agent.as_ref(), entry.position, &kind);
                    }
                }
                (path, read) => page.note(&page::not_understood(&path, &read)),
            }
        }
        // Another clone has the snapshots, or they are deleted: the page is the rest.
        let diff = changes::diff(context.env, &context.directory, Some(run.as_str()), None);
        let files = diff.as_ref().map_or(&[][..], |diff| &diff.files);
        let patches: Vec<_> = files.iter().map(|file| (diff::head(file, (0, 0)), file.readable())).collect();
        let page = page.finish(workspace.leases().status(run), &patches);
        write_text(&context.directory.join(file), Some(self.force), &page)?;
        Self::wrote(context, file, &serde_json::json!({ "run": run, "file": file }))
    }

    fn wrote(context: &mut Context<'_>, file: &Path, value: &serde_json::Value) -> Ended {
        match context.ui.json() {
            true => context.value(value),
            false => context.ui.say(&format!("Wrote {}.", printable_line(&file.display().to_string()))),
        }
        Ok(0)
    }

    fn choice(&self, context: &Context<'_>) -> Result<Choice, Failure> {
        let no_agent = |name: &str| Failure::usage(format!("`{name}` is not an agent's name"));
        let agent = self.agent.as_deref().map(|name| Slug::fold(name).ok_or_else(|| no_agent(name))).transpose()?;
        let no_time =
            |reason| Failure::usage(reason).hint("write 2h, 3d, yesterday, 2026-01-05 or 2026-01-05T09:00:00Z");
        let now = || context.env.clock.now();
        let zone = context.env.clock.zone();
        let since = self.since.as_deref().map(|when| log::since(when, now, &zone).map_err(no_time)).transpose()?;
        Ok(Choice { agent, since })
    }

    fn page<'u>(&self, ui: &'u mut Ui, run: &RunId, zone: TimeZone) -> Page<'u> {
        if self.events || ui.json() { Page::of_run(ui, run) } else { Page::story(ui, run, zone) }
    }

    /// Shows the entries recorded so far, if a run or a time is given, and then new ones as they come.
    fn follow(&self, context: &mut Context<'_>, workspace: &Workspace, run: Option<RunId>, choice: Choice) -> Ended {
        let (repository, prefix) = (&workspace.repository, workspace.ledger_prefix());
        let mut page = match &run {
            Some(run) => self.page(&mut context.ui, run, context.env.clock.zone()),
            None => Page::of_all(&mut context.ui),
        };
        let mut tip = repository.ledger().tip()?;
        if run.is_some() || choice.since.is_some() {
            let timeline = log::timeline(repository, &prefix, run.as_ref(), &choice)?;
            for entry in timeline.entries() {
                let (path, read) = entry?;
                if page.show(&path, read).is_break() {
                    return Ok(0);
                }
            }
            tip = timeline.tip().map(str::to_owned);
        }
        let is_whole = choice == Choice::default();
        let follower = Follower::new(repository, &prefix, run.clone(), choice, tip.as_deref())?;
        // A run is live as long as its process; runs of other clones count as over.
        let is_over = || run.as_ref().is_some_and(|run| workspace.leases().status(run) != "running");
        let code = log::follow(context.env, follower, is_over, |path, read| page.show(path, read))?;
        if let Some(run) = run.as_ref().filter(|_| is_whole) {
            page.end(Some(workspace.leases().status(run)));
        }
        Ok(code)
    }
}

fn export(ui: &mut Ui, cases: &[Case], file: Option<&Path>) -> Ended {
    match file {
        None => cases.iter().for_each(|case| ui.value(case)),
        Some(file) => routing::write(file, cases)?,
    }
    ui.say(&format!("{} from the team's completed runs", plural(cases.len(), "case")));
    Ok(0)
}

/// Breaks when nobody reads the output any more.
fn while_read(ui: &Ui) -> ControlFlow<()> {
    if ui.is_heard() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}
