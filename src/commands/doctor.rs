use super::{Context, Ended};
use crate::model::{Damage, Severity, plural};
use crate::ops::ledger::repair;
use crate::ops::overview::doctor::{self, Diagnosis, Finding};
use crate::ui::{Consent, Ui, more_like_it};
use crate::view::{LineStyle, Mark, Text};

/// Columns of what a line is about.
const ABOUT: usize = 11;

/// Find problems and show how to fix them
///
/// Checks the repository, the team's files, the configuration and the engines, and says what holds for their agents'
/// writes and commands. Exits with 1 when it finds a problem.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  squad doctor\n  squad doctor --prove\n  squad doctor --json | jq -r '.problems[].hint'"
)]
pub(super) struct Args {
    /// Also read the whole ledger, rebuild everything derived from it and compare, and check its invariants
    #[arg(long, conflicts_with = "repair")]
    prove: bool,
    /// Fetch lost parts of the ledger from remotes, and set aside what no remote has
    ///
    /// What is set aside leaves the ledger, so that `git gc` works again; a record says what it was and keeps other
    /// clones from bringing it back. Asks first.
    #[arg(long)]
    repair: bool,
    /// Repair without asking
    #[arg(long, short, requires = "repair")]
    yes: bool,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        if self.repair {
            return repaired(context, self.yes);
        }
        let diagnosed = doctor::diagnose(context.env, &context.directory, self.prove);
        let diagnosis = diagnosed.inspect_err(|_| without_team(context))?;
        match context.ui.json() {
            true => context.ui.value(&diagnosis),
            false => show(&mut context.ui, &diagnosis),
        }
        Ok(u8::from(!diagnosis.is_healthy()))
    }
}

/// Says which engines are ready even where nothing else can be looked at.
fn without_team(context: &mut Context<'_>) {
    if !context.ui.json() {
        let ready = doctor::ready_engines(context.env, &context.directory);
        let lines = ready.iter().map(|state| well("engine", state));
        context.ui.texts(&lines.collect::<Vec<_>>());
    }
}

fn show(ui: &mut Ui, diagnosis: &Diagnosis) {
    if let Some(proof) = &diagnosis.proof {
        ui.data(&proof.to_string());
    }
    let mut lines: Vec<Text> = diagnosis.well.iter().map(|(about, text)| well(about, text)).collect();
    let neutral = |about: &str, text: &str| about_it(Text::unmarked(), about, text);
    let governed = diagnosis.governed.iter();
    lines.extend(governed.map(|(engine, governed)| neutral("governed", &format!("{engine}: {governed}"))));
    lines.extend(diagnosis.sandbox.map(|level| neutral("sandbox", &level.to_string())));
    lines.extend(diagnosis.network.map(|access| match &diagnosis.network_open {
        Some(reason) => neutral("network", &format!("{access}: {reason}")),
        None => neutral("network", access.name()),
    }));
    let problems: Vec<_> = diagnosis.problems.iter().map(|finding| &finding.problem).collect();
    for (place, more) in ui.folded(&problems) {
        let finding = &diagnosis.problems[place];
        let mark = match finding.problem.severity {
            Severity::Error => Text::marked(LineStyle::Bad, Mark::Bad),
            Severity::Warning => Text::marked(LineStyle::Warning, Mark::Attention),
            Severity::Note => Text::unmarked(),
        };
        lines.push(about_it(mark, finding.area.word(), &finding.text()));
        let below = |text: &str| Text::default().filled(2 + ABOUT).hanging().with(LineStyle::Faint, text);
        lines.extend(finding.problem.hint.as_deref().map(below));
        lines.extend((more > 0).then(|| below(&more_like_it(more))));
    }
    ui.texts(&lines);
    let count = |severity, noun| {
        let is_of_it = |finding: &&Finding| finding.problem.severity == severity;
        let count = diagnosis.problems.iter().filter(is_of_it).count();
        (count > 0).then(|| plural(count, noun))
    };
    let counts = [count(Severity::Error, "problem"), count(Severity::Warning, "warning")];
    let counts: Vec<String> = counts.into_iter().flatten().collect();
    let sum = match (counts.is_empty(), diagnosis.lacks_team()) {
        (true, false) => "Everything is in order.".to_owned(),
        (true, true) => "What is here is in order. There is no team yet: squad init".to_owned(),
        (false, false) => counts.join(", "),
        (false, true) => format!("{}, and no team yet: squad init", counts.join(", ")),
    };
    ui.data(&sum);
}

fn well(about: &str, text: &str) -> Text {
    about_it(Text::marked(LineStyle::Good, Mark::Good), about, text)
}

fn about_it(mark: Text, about: &str, text: &str) -> Text {
    mark.with(LineStyle::Strong, about).filled(2 + ABOUT).hanging().plain(text)
}

fn repaired(context: &mut Context<'_>, is_agreed: bool) -> Ended {
    let (env, ui) = (context.env, &mut context.ui);
    let repaired = repair::repair(env, &context.directory, |plan| {
        ui.all_problems(&plan.set_aside.iter().map(Damage::problem).collect::<Vec<_>>());
        ui.confirm(&format!("{}. Repair the ledger?", plan.summary()), is_agreed) == Consent::Yes
    })?;
    for remote in &repaired.unreachable {
        ui.warning(&format!("could not reach: {remote}"));
    }
    for remote in &repaired.remotes {
        ui.warning(&format!("`{remote}` still has the ledger as it was, as far as this clone knows"));
        ui.hint("`squad sync` says how to replace it");
    }
    let is_left = repaired.dry_run && !repaired.is_needless();
    if ui.json() {
        ui.value(&repaired);
    } else if repaired.is_needless() {
        ui.data("The ledger is whole.");
    } else if is_left {
        ui.say(&format!("Nothing was changed: {}.", repaired.summary()));
        ui.hint("squad doctor --repair --yes");
    } else {
        ui.data(&format!("The ledger is whole: {}.", repaired.summary()));
    }
    Ok(u8::from(is_left))
}
