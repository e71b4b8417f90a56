use super::{Context, Ended};
use crate::model::{Verdict, first_line, printable};
use crate::ops::Project;
use crate::ops::ledger::contents::Authors;
use crate::ops::overview::why::{self, Answer, Origin, Review};
use crate::settings::Layer;
use crate::ui::{FAINT, STRONG, Ui};

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
            show(&mut context.ui, &answer);
        }
        Ok(u8::from(answer.unknown.is_some()))
    }
}

fn show(ui: &mut Ui, answer: &Answer) {
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
    let heading = ui.out_paint(STRONG, &printable(&place));
    ui.data(format!("{heading}{}", printable(&text.unwrap_or_default())).trim());
    let mut field = |name: &str, value: &str| {
        let name = ui.out_paint(FAINT, &format!("  {name:<9}"));
        ui.data(&format!("{name} {}", printable(value)));
    };
    if let Some(decision) = &answer.decision {
        let name = answer.note.as_ref().map_or("decision", |note| note.kind.word());
        field(name, &format!("{} {}", decision.id, decision.title));
    }
    if let Some((note, decision)) = answer.note.as_ref().zip(answer.decision.as_ref()) {
        let by = decision.by.as_deref().unwrap_or("nobody named");
        let day = decision.date.as_deref().and_then(|date| date.get(..10)).unwrap_or("an unknown day");
        field("project", &format!("{}, by {by}, {day}", note.project.as_deref().unwrap_or("unknown")));
        note.evidence.iter().for_each(|evidence| field("evidence", evidence));
    }
    if let (Some(link), Some(decision)) = (&answer.link, &answer.decision) {
        field("link", &format!("{}, {} at {}, {}", link.name, link.git, link.short_commit(), link.path));
        if let Some(run) = &decision.run {
            field("run", &format!("{run}; `squad why {}` in that project shows it", decision.id));
        }
    }
    if let Some(commit) = &answer.commit {
        let short = commit.id.get(..10).unwrap_or(&commit.id);
        let day = commit.at.strftime("%Y-%m-%d");
        let name = if answer.absent { "removed" } else { "commit" };
        field(name, &format!("{short} {} ({}, {day})", first_line(&commit.subject, 60), commit.author));
    }
    for checkpoint in answer.commit.iter().flat_map(|commit| &commit.checkpoints) {
        let (key, value) = checkpoint.split_once(':').unwrap_or((checkpoint, ""));
        field(key, value.trim());
    }
    for origin in &answer.origins {
        show_origin(&mut field, origin);
    }
    if let Some(reason) = &answer.unknown {
        field("unknown", reason);
    }
    if let Some(review) = &answer.review {
        field("review", &verdict_of(review));
    }
    for decision in &answer.in_scope {
        field("in scope", &format!("{} {}", decision.id, decision.title));
    }
}

fn show_origin(field: &mut impl FnMut(&str, &str), origin: &Origin) {
    let outcome = origin.outcome.map(|outcome| format!(", {outcome}")).unwrap_or_default();
    let by = if origin.by == Authors::default() { "nobody in particular".to_owned() } else { origin.by.to_string() };
    field("agent", &format!("{by}, in run {}{outcome}", origin.run));
    if let Some(task) = &origin.task {
        field("task", &first_line(task, 100));
    }
    if let Some(review) = &origin.review {
        field("review", &verdict_of(review));
    }
    if let Some(check) = &origin.check {
        field("checked", check);
    }
    if origin.is_review_outdated {
        field("review", "of earlier content: the file has changed since");
    }
    for decision in &origin.decisions {
        field("decided", &format!("{} {}", decision.id, decision.title));
    }
}

fn verdict_of(review: &Review) -> String {
    let reviewer = review.reviewer.as_ref().map_or("a reviewer", |reviewer| reviewer.as_str());
    let verdict = match review.verdict {
        Verdict::Approved => "approved",
        Verdict::Rejected => "rejected",
        Verdict::Unclear => "unclear",
    };
    format!("{reviewer}: {verdict}")
}
