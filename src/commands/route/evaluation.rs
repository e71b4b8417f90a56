//! Prints how well routing scores, for people and as JSON.

use serde::Serialize;

use super::page::one_line;
use crate::commands::{Context, Ended, text_or_input};
use crate::error::Failure;
use crate::model::{Problem, Severity, first_line, list, plural};
use crate::ops::Project;
use crate::ops::run::routing;
use crate::route::evaluate::{self, Case, CaseKind, Evaluation, Figures, Group, Mistake, Point, Prediction};
use crate::ui::{FAINT, STRONG, Ui};

pub(super) fn run(context: &mut Context<'_>, project: &Project, file: &str) -> Ended {
    let cases = cases(context, project, file)?;
    let evaluation = routing::evaluate(project, cases)?;
    let ui = &mut context.ui;
    if ui.json() {
        ui.value(&Report::of(&evaluation));
    } else {
        show(ui, &evaluation, file);
    }
    Ok(0)
}

/// Reads all cases or fails: scores over some of them could be mistaken for scores over all.
fn cases(context: &mut Context<'_>, project: &Project, file: &str) -> Result<Vec<Case>, Failure> {
    let text = match file {
        "-" => text_or_input(&context.ui, file)?,
        _ => routing::read(&context.directory.join(file))?,
    };
    let (cases, problems) = evaluate::cases(&text, file);
    context.ui.problems(&problems);
    if let Some(Problem { file, line, message, .. }) =
        problems.into_iter().find(|problem| problem.severity == Severity::Error)
    {
        return Err(Failure::usage(message).at(format!("{file}:{line}")).hint("`squad route --help` shows the format"));
    }
    if cases.is_empty() {
        return Err(Failure::usage("there are no cases").at(file).hint("`squad route --help` shows the format"));
    }
    context.ui.problems(&evaluate::strangers(&project.team, &cases, file));
    Ok(cases)
}

/// The JSON output. A rate is `null` if there is no case for it.
#[derive(Serialize)]
struct Report<'a> {
    counts: Counts,
    #[serde(flatten)]
    figures: &'a Figures,
    curve: &'a [Point],
    mistakes: &'a [Group],
    predictions: &'a [Prediction],
}

#[derive(Serialize)]
struct Counts {
    single: usize,
    multi: usize,
    ambiguous: usize,
    direct: usize,
}

impl<'a> Report<'a> {
    fn of(evaluation: &'a Evaluation) -> Self {
        let figures = &evaluation.figures;
        let counts = Counts {
            single: figures.accuracy.cases,
            multi: figures.multi_recall.cases,
            ambiguous: figures.abstain_rate.cases,
            direct: figures.direct_rate.cases,
        };
        Self {
            counts,
            figures,
            curve: &evaluation.curve,
            mistakes: &evaluation.groups,
            predictions: &evaluation.predictions,
        }
    }
}

fn show(ui: &mut Ui, evaluation: &Evaluation, file: &str) {
    for line in figures(&evaluation.figures) {
        ui.data(&line);
    }
    if evaluation.curve.len() > 1 {
        ui.data("\nIf routing only answered from this confidence up:");
        for Point { confidence, coverage, precision } in &evaluation.curve {
            let (coverage, precision) = (percent(*coverage), percent(*precision));
            ui.data(&format!("  {confidence:.2}  coverage {coverage:>6}  precision {precision:>6}"));
        }
    }
    let mut before = None;
    for group in &evaluation.groups {
        if before != Some(group.mistake) {
            let all = evaluation.predictions.iter().filter(|prediction| prediction.mistake == Some(group.mistake));
            let title = format!("{} ({})", capital(group.mistake.words()), all.count());
            ui.data(&format!("\n{}", ui.out_paint(STRONG, &title)));
        }
        before = Some(group.mistake);
        show_group(ui, group, evaluation, file);
    }
}

fn figures(figures: &Figures) -> Vec<String> {
    let mut lines = Vec::new();
    if figures.accuracy.cases > 0 {
        lines.push(format!(
            "{:>4} single     accuracy {}, coverage {}, precision {}",
            figures.accuracy.cases,
            percent(figures.accuracy),
            percent(figures.coverage),
            percent(figures.precision)
        ));
    }
    for (rate, kind, what) in [
        (figures.multi_recall, "multi", "recall"),
        (figures.abstain_rate, "ambiguous", "abstained"),
        (figures.direct_rate, "direct", "seen"),
    ] {
        if rate.cases > 0 {
            lines.push(format!("{:>4} {kind:<10} {what} {}", rate.cases, percent(rate)));
        }
    }
    lines
}

fn show_group(ui: &mut Ui, group: &Group, evaluation: &Evaluation, file: &str) {
    let cause = match &group.misled_by {
        None => "no evidence for any other agent".to_owned(),
        Some(evidence) => {
            format!("{}, {}: {}", evidence.agent, one_line(&evidence.source), one_line(&evidence.why))
        }
    };
    ui.data(&format!("  {cause} {}", ui.out_paint(FAINT, &format!("({})", plural(group.lines.len(), "case")))));
    for line in &group.lines {
        let Some(prediction) = evaluation.predictions.iter().find(|prediction| prediction.line == *line) else {
            continue;
        };
        let place = ui.out_paint(FAINT, &one_line(&format!("{file}:{line}")));
        let message = first_line(&one_line(&prediction.message), 70);
        ui.data(&format!("    {place}  {}{message}", outcome(prediction, group.mistake)));
    }
}

/// The expected and the actual agents, unless the kind of the mistake says it already.
fn outcome(prediction: &Prediction, mistake: Mistake) -> String {
    let wanted = match prediction.kind {
        CaseKind::Single => prediction.accept.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or "),
        CaseKind::Multi => list(&prediction.accept),
        CaseKind::Ambiguous | CaseKind::Direct => String::new(),
    };
    let got = list(&prediction.plan.agents);
    match mistake {
        Mistake::WrongAgent | Mistake::Incomplete => format!("wanted {wanted}, got {got}: "),
        Mistake::NotAnswered | Mistake::TakenForDirect if !wanted.is_empty() => format!("wanted {wanted}: "),
        Mistake::NotAbstained | Mistake::NotDirect if !got.is_empty() => format!("got {got}: "),
        _ => String::new(),
    }
}

fn percent(rate: impl Into<Option<f64>>) -> String {
    rate.into().map_or_else(|| "-".to_owned(), |rate| format!("{:.1}%", 100.0 * rate))
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}
