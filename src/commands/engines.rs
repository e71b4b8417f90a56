use super::{Context, Ended};
use crate::error::FailureKind;
use crate::model::{list, plural, printable};
use crate::ops::Workspace;
use crate::ops::team::bisect::{Changed, Outcome, Tried};
use crate::ops::team::engines::{self, Readiness, Report};
use crate::ops::team::{bisect, prove};
use crate::ui::{BAD, FAINT, GOOD, STRONG, Ui};
use crate::view::{LineStyle, Mark, Text};

/// List the engines and whether they are ready
///
/// Starts each engine and tries your MCP servers. With NAME or `-v`, shows its version, its protocol, who is logged in, and
/// what holds for its agents' writes and commands, with and without `--permissions allow`. An engine of which squad cannot
/// ask whether it is logged in is `installed`. Exits with 4 when the engine in use is not ready. `squad help engines` says more.
///
/// With `--prove`, runs NAME's program against a model inside squad, in a throw-away home and repository, without a login: a
/// minute in which it is asked to do what is refused, killed and resumed. What was seen is kept
/// for this program, until it changes. Exits with 1 when it does not do all that squad relies on.
///
/// With `--bisect A..B`, tries releases of NAME's npm package in the same way, each in a temporary folder, and names those that
/// changed an answer.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  squad engines\n  squad engines claude\n  squad engines copilot --json\n  squad engines copilot --prove\n  squad engines copilot --bisect 1.0.43..1.0.102"
)]
pub(super) struct Args {
    /// Only this engine
    name: Option<String>,
    /// Try its installed program: does it obey, and can it do what squad relies on?
    #[arg(long, requires = "name")]
    prove: bool,
    /// Find the releases of its npm package, from A to B, that changed what `--prove` sees
    #[arg(long, requires = "name", conflicts_with = "prove", value_name = "A..B")]
    bisect: Option<bisect::Range>,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        if let (true, Some(name)) = (self.prove, &self.name) {
            return prove(context, name);
        }
        if let (Some(range), Some(name)) = (&self.bisect, &self.name) {
            return bisect(context, name, range);
        }
        let reports = engines::check(context.env, &context.directory, self.name.as_deref())?;
        // Without a team there is only the user's own configuration.
        let scope = if Workspace::find(context.env, &context.directory).is_ok() { "" } else { " --user" };
        let ui = &mut context.ui;
        if ui.json() {
            ui.value(&serde_json::json!({ "engines": reports }));
        } else {
            let is_detailed = self.name.is_some() || ui.is_verbose();
            match is_detailed {
                true => reports.iter().for_each(|report| shown(ui, report)),
                false => ui.texts(&listed(&reports, scope)),
            }
        }
        let is_usable = reports.iter().all(|report| report.ready.is_usable() || !report.chosen);
        Ok(if is_usable { 0 } else { FailureKind::Engine.exit_code() })
    }
}

fn prove(context: &mut Context<'_>, name: &str) -> Ended {
    let (env, ui) = (context.env, &mut context.ui);
    let is_json = ui.json();
    let proof = prove::prove(env, &context.directory, name, |answer| {
        if !is_json {
            let (style, mark) = match (answer.holds, answer.tried) {
                (true, _) => (LineStyle::Good, Mark::Good),
                (false, true) => (LineStyle::Bad, Mark::Bad),
                (false, false) => (LineStyle::Warning, Mark::Attention),
            };
            let text = Text::marked(style, mark).with(LineStyle::Strong, &format!("{:<22}", answer.claim)).plain("  ");
            ui.texts(&[text
                .hanging()
                .plain(answer.claim.about())
                .with(LineStyle::Faint, &format!("   {}", answer.seen))]);
        }
    })?;
    let (passed, failed) = (proof.passed().len(), proof.failed());
    if is_json {
        ui.value(&serde_json::json!({
            "engine": proof.engine, "program": proof.program, "hash": proof.hash, "sandbox": proof.sandbox, "at": proof.at,
            "claims": proof.answers,
        }));
    } else {
        ui.say(&format!("{name} keeps {passed} of {}, in the sandbox `{}`", passed + failed.len(), proof.sandbox));
    }
    Ok(u8::from(!failed.is_empty()))
}

fn bisect(context: &mut Context<'_>, name: &str, range: &bisect::Range) -> Ended {
    let (env, ui) = (context.env, &mut context.ui);
    let is_json = ui.json();
    let found = bisect::bisect(env, &context.directory, name, range, |tried| {
        if !is_json {
            ui.texts(&[step(tried)]);
        }
    })?;
    if is_json {
        ui.value(&found);
        return Ok(0);
    }
    if found.changed.is_empty() {
        ui.say(&format!("{} keeps the same in {} and in {}", found.package, found.from, found.to));
    }
    let state = |holds: Option<bool>| match holds {
        Some(true) => "holds",
        Some(false) => "does not hold",
        None => "was not tried",
    };
    for Changed { claim, held, holds, last, first, skipped } in &found.changed {
        let (before, after) = (state(*held), state(*holds));
        let doubt = match skipped.len() {
            0 => String::new(),
            _ => format!("; between them, {} cannot be tried", list(skipped)),
        };
        ui.say(&format!("`{claim}` {before} in {last} and {after} in {first}{doubt}"));
    }
    Ok(0)
}

/// A release that was tried.
fn step(tried: &Tried) -> Text {
    let (style, mark, seen) = match &tried.outcome {
        Outcome::Claims(answers) => {
            let failed: Vec<&str> =
                answers.iter().filter(|answer| !answer.holds).map(|answer| answer.claim.name()).collect();
            let kept = format!("keeps {} of {}", answers.len() - failed.len(), answers.len());
            match failed.is_empty() {
                true => (LineStyle::Good, Mark::Good, kept),
                false => (LineStyle::Bad, Mark::Bad, format!("{kept}, not {}", list(failed))),
            }
        }
        Outcome::Problem(reason) => (LineStyle::Warning, Mark::Attention, format!("cannot be tried: {reason}")),
    };
    let left = match tried.left {
        0 => String::new(),
        left => format!(", {} left", plural(left, "release")),
    };
    Text::marked(style, mark)
        .with(LineStyle::Strong, &tried.release)
        .plain("  ")
        .hanging()
        .plain(&printable(&seen))
        .with(LineStyle::Faint, &format!("   {:.1} s{left}", tried.took.as_secs_f64()))
}

/// A line for each engine that is there or in use.
fn listed(reports: &[Report], scope: &str) -> Vec<Text> {
    let is_there = |report: &&Report| report.chosen || report.installed;
    let (there, missing): (Vec<&Report>, Vec<&Report>) = reports.iter().partition(is_there);
    let label = |report: &Report| match &report.version {
        Some(version) => format!("{} {version}", report.name),
        None => report.name.clone(),
    };
    let width = there.iter().map(|report| label(report).chars().count()).max().unwrap_or_default();
    let line = |report: &&Report| {
        let (style, mark) = match report.ready {
            Readiness::Ready => (LineStyle::Good, Mark::Good),
            Readiness::Installed => (LineStyle::Warning, Mark::Attention),
            Readiness::NotReady => (LineStyle::Bad, Mark::Bad),
        };
        let is_usable = report.ready.is_usable();
        let line = Text::marked(style, mark).with(LineStyle::Strong, &label(report)).filled(2 + width).plain("  ");
        let disobeys = report.proved.as_ref().is_some_and(|proved| !proved.disobeyed.is_empty());
        let state = match &report.problem {
            _ if is_usable && disobeys => "does what it is told not to do",
            _ if report.ready == Readiness::Ready && report.proved.is_some() => "ready, proved",
            Some(problem) if !is_usable => problem,
            _ => report.ready.name(),
        };
        let used = if report.chosen { "in use, " } else { "" };
        let hint = match &report.hint {
            Some(hint) if !is_usable => hint.clone(),
            _ if is_usable && !report.chosen => format!("squad config set{scope} engine.name {}", report.name),
            _ => String::new(),
        };
        line.hanging().plain(&format!("{used}{state}")).with(LineStyle::Faint, &format!("   {hint}"))
    };
    let mut lines: Vec<Text> = there.iter().map(line).collect();
    if !missing.is_empty() {
        let names = list(missing.iter().map(|report| &report.name));
        let text = format!("not installed: {names}; `squad engines NAME` says more");
        lines.push(Text::unmarked().with(LineStyle::Faint, &text));
    }
    lines
}

fn shown(ui: &mut Ui, report: &Report) {
    let name = ui.out_paint(STRONG, &format!("{:<13}", report.name));
    let paint = match report.ready {
        Readiness::Ready => GOOD,
        Readiness::Installed => FAINT,
        Readiness::NotReady => BAD,
    };
    let state = ui.out_paint(paint, report.ready.name());
    let chosen = if report.chosen { ", the one in use" } else { "" };
    ui.data(&format!("{name} {state}{chosen}"));
    let protocol = report.protocol.map(|version| {
        let supported = report.supported_protocol.as_deref().unwrap_or("-");
        format!("{version} (squad speaks {supported})")
    });
    let can = Some(list(report.can.names())).filter(|names| !names.is_empty());
    let governed = report.governed.as_ref().map(ToString::to_string);
    let sandbox = report.sandbox.map(|level| level.to_string());
    let network = report.network.map(|access| match &report.network_open {
        Some(reason) => format!("{access}: {reason}"),
        None => access.to_string(),
    });
    let proved = Some(
        report
            .proved
            .as_ref()
            .map_or_else(|| format!("never: `squad engines {} --prove` tries it", report.name), ToString::to_string),
    );
    for (key, value) in [
        ("about", &report.about),
        ("program", &report.program),
        ("version", &report.version),
        ("protocol", &protocol),
        ("login", &report.login),
        ("can", &can),
        ("governed", &governed),
        ("sandbox", &sandbox),
        ("network", &network),
        ("proved", &proved),
        ("problem", &report.problem),
        ("fix", &report.hint),
    ] {
        if let Some(value) = value {
            ui.data(&format!("  {key:<9} {}", printable(value)));
        }
    }
    for (name, problem) in &report.servers {
        let state = problem.as_deref().unwrap_or("answers");
        ui.data(&format!("  server    {}", printable(&format!("{name}: {state}"))));
    }
    for model in &report.models {
        ui.data(&format!("  model     {}", printable(&model.to_string())));
    }
}
