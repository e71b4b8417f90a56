use std::collections::BTreeSet;

use super::{Context, Ended};
use crate::env::Clock;
use crate::model::{DecisionId, IntoSet, Verdict, first_line};
use crate::ops::Project;
use crate::ops::ledger::contents::Authors;
use crate::ops::overview::why::{self, Answer, Origin, Review};
use crate::settings::Layer;
use crate::ui::Ui;
use crate::view::{LineStyle, Mark, Text, mark_of};

/// The column in which what a line says begins.
const VALUE: usize = 12;

/// Show where a line, a file, a decision or a note comes from
///
/// Names the task, agent, run, review and decisions behind it. The answer comes from what agents wrote through
/// their tools and by commands, as recorded in the ledger, so squashed and rebased commits do not matter. If the answer
/// is not certain (the line also occurs in other files, or more often in this one than a run wrote it), squad prints
/// "unknown" with the reason and exits with 1.
///
/// A line retyped by hand counts as restored. A verdict counts only for the content that was reviewed: any later change of
/// the file ends it.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad why src/health.rs:42
  squad why src/health.rs
  squad why 4f1c09
  squad why src/health.rs:42 --json | jq -r '.origins[].task'")]
pub(super) struct Args {
    /// A path, a path with a line, or the id of a decision or a note
    #[arg(value_name = "PATH[:LINE]|DECISION")]
    pub(super) subject: String,
    /// What it is about will be gone, so no command is named that shows more.
    #[arg(skip)]
    pub(super) is_passing: bool,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let project = Project::open(context.env, &context.directory, Layer::default())?;
        project.require_readable()?;
        let subject = why::subject(&project, &context.directory, &self.subject)?;
        let answer = why::why(context.env, &project, subject)?;
        if context.ui.json() {
            context.value(&answer);
        } else {
            show(&mut context.ui, &answer, &context.env.clock, !self.is_passing);
        }
        Ok(u8::from(answer.unknown.is_some()))
    }
}

fn show(ui: &mut Ui, answer: &Answer, clock: &Clock, names_commands: bool) {
    let place = match (&answer.path, answer.line) {
        (Some(path), Some(line)) => format!("{path}:{line}"),
        (Some(path), None) => path.clone(),
        (None, _) => String::new(),
    };
    let text = match answer.absent {
        true if answer.commit.is_some() => Some("deleted"),
        true => Some("not in the work tree"),
        false => answer.text.as_deref(),
    };
    let text = text.map(|text| format!("  {}", first_line(text, 100)));
    let heading = Text::default().with(LineStyle::Strong, &place).plain(&text.unwrap_or_default());
    // A line of code is not prose.
    let heading = if ui.output_is_terminal() { heading.cut(ui.out_columns()) } else { heading };
    if heading.width() > 0 {
        ui.texts(&[heading]);
    }
    let lines: Vec<Text> =
        [about(answer), committed(answer, clock), origins(answer, clock, names_commands), rest(answer)].concat();
    ui.texts(&lines);
}

fn field(start: Text, name: &str, value: &str) -> Text {
    start.with(LineStyle::Faint, name).plain(" ").filled(VALUE).hanging().plain(value)
}

fn plain(name: &str, value: &str) -> Text {
    field(Text::unmarked(), name, value)
}

/// What the decision or note itself says.
fn about(answer: &Answer) -> Vec<Text> {
    let mut lines = Vec::new();
    if let Some(decision) = &answer.decision {
        let name = answer.note.as_ref().map_or("decision", |note| note.kind.word());
        lines.push(decided(name, &decision.id, &decision.title));
    }
    if let Some((note, decision)) = answer.note.as_ref().zip(answer.decision.as_ref()) {
        let by = decision.by.as_deref().unwrap_or("nobody named");
        let day = decision.date.as_deref().and_then(|date| date.get(..10)).unwrap_or("an unknown day");
        lines.push(plain("project", &format!("{}, by {by}, {day}", note.project.as_deref().unwrap_or("unknown"))));
        lines.extend(note.evidence.iter().map(|evidence| plain("evidence", evidence)));
    }
    if let (Some(link), Some(decision)) = (&answer.link, &answer.decision) {
        lines.push(plain("link", &format!("{}, {} at {}, {}", link.name, link.git, link.short_commit(), link.path)));
        if let Some(run) = &decision.run {
            lines.push(plain("run", &format!("{run}; `squad why {}` in that project shows it", decision.id)));
        }
    }
    lines
}

fn committed(answer: &Answer, clock: &Clock) -> Vec<Text> {
    let Some(commit) = &answer.commit else { return Vec::new() };
    let short = commit.id.get(..10).unwrap_or(&commit.id);
    let name = if answer.absent { "removed" } else { "commit" };
    let subject = first_line(&commit.subject, 60);
    let head = plain(name, &format!("{short} {subject} ({}, {})", commit.author, clock.day(commit.at)));
    let checkpoints = commit.checkpoints.iter().map(|checkpoint| {
        let (key, value) = checkpoint.split_once(':').unwrap_or((checkpoint, ""));
        plain(key, value.trim())
    });
    std::iter::once(head).chain(checkpoints).collect()
}

/// The runs, each once, with all who wrote it there.
fn origins(answer: &Answer, clock: &Clock, names_commands: bool) -> Vec<Text> {
    let mut lines = Vec::new();
    let mut push = |line: Text| {
        if lines.last() != Some(&line) {
            lines.push(line);
        }
    };
    let mut told: BTreeSet<&str> = answer.decision.iter().map(|decision| decision.id.as_str()).into_set();
    for of_run in answer.origins.chunk_by(|origin, next| origin.run == next.run) {
        of_run.iter().for_each(|origin| push(author(origin, clock)));
        if let Some(task) = of_run.iter().find_map(|origin| origin.task.as_ref()) {
            push(plain("task", &first_line(task, 100)));
        }
        of_run.iter().filter_map(|origin| origin.review.as_ref()).for_each(|review| push(reviewed(review)));
        if let Some(check) = of_run.iter().find_map(|origin| origin.check.as_ref()) {
            push(plain("checked", check));
        }
        if of_run.iter().any(|origin| origin.is_review_outdated) {
            push(marked(
                LineStyle::Warning,
                Mark::Attention,
                "review",
                "of earlier content: the file has changed since",
            ));
        }
        for decision in of_run.iter().flat_map(|origin| &origin.decisions) {
            if told.insert(decision.id.as_str()) {
                push(decided("decided", &decision.id, &decision.title));
            }
        }
    }
    if let Some(newest) = answer.origins.first().filter(|_| names_commands) {
        push(plain("next", &format!("squad log {}   what happened there", newest.run.short())));
    }
    lines
}

fn author(origin: &Origin, clock: &Clock) -> Text {
    let (mark, style) = origin.outcome.map_or((Mark::Neutral, LineStyle::Faint), mark_of);
    let outcome = origin.outcome.map(|outcome| format!(", {outcome}")).unwrap_or_default();
    let by = if origin.by == Authors::default() { "nobody in particular".to_owned() } else { origin.by.to_string() };
    let (run, day) = (origin.run.short(), clock.day(origin.at));
    marked(style, mark, "agent", &format!("{by}, in run {run}, {day}{outcome}"))
}

fn rest(answer: &Answer) -> Vec<Text> {
    let unknown = answer.unknown.iter().map(|reason| marked(LineStyle::Warning, Mark::Attention, "unknown", reason));
    let review = answer.review.iter().map(reviewed);
    let in_scope = answer.in_scope.iter().map(|decision| decided("in scope", &decision.id, &decision.title));
    unknown.chain(review).chain(in_scope).collect()
}

fn marked(style: LineStyle, mark: Mark, name: &str, value: &str) -> Text {
    field(Text::marked(style, mark), name, value)
}

fn decided(name: &str, id: &DecisionId, title: &str) -> Text {
    marked(LineStyle::Strong, Mark::Decision, name, &format!("{} {title}", id.short()))
}

fn reviewed(review: &Review) -> Text {
    let reviewer = review.reviewer.as_ref().map_or("a reviewer", |reviewer| reviewer.as_str());
    let (style, mark, verdict) = match review.verdict {
        Verdict::Approved => (LineStyle::Good, Mark::Good, "approved"),
        Verdict::Rejected => (LineStyle::Bad, Mark::Bad, "rejected"),
        Verdict::Unclear => (LineStyle::Warning, Mark::Attention, "unclear"),
    };
    marked(style, mark, "review", &format!("{reviewer}: {verdict}"))
}
