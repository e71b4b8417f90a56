use std::path::Path;

use serde_json::json;

use crate::commands::{Context, Ended, begin_with};
use crate::model::{DecisionState, NoteKind, plural, printable, printable_line};
use crate::ops::decisions::knowledge::{self, KnownNote, NoteProposal};
use crate::parse::KNOWLEDGE;
use crate::ui::{STRONG, Ui};
use crate::view::{LineStyle, Mark, Text};

/// List the notes of this project and of those it is linked to
///
/// The states are those of decisions; a note in force is `stale` once its evidence has changed, and `not told` if it hides
/// text, speaks to a model, or is for other languages, frameworks or paths than are here.
#[derive(Default, clap::Args)]
#[command(after_help = "\
Examples:
  squad knowledge list
  squad knowledge list --stale
  squad knowledge list --proposed")]
pub(super) struct List {
    /// Only those whose evidence has changed
    #[arg(long, conflicts_with = "proposed")]
    stale: bool,
    /// What agents propose with `squad_remember`, for `squad knowledge add --from-proposal`
    #[arg(long)]
    proposed: bool,
    /// Only those of KIND
    #[arg(long, value_enum)]
    kind: Option<NoteKind>,
}

/// Show the notes that an agent with this task would be offered
///
/// The most relevant first. A note takes part if the task names a tag that few notes have, or shares two words with it, one
/// of them in its title, tags or scope.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  squad knowledge search \"Store the refresh token of a login\"")]
pub(super) struct Search {
    /// A task, or words
    #[arg(required = true, value_name = "WORD")]
    words: Vec<String>,
}

/// Show one note, with where it comes from and what it rests on
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  squad knowledge show 4f1c09\n  squad knowledge show shop/4f1c09")]
pub(super) struct Show {
    /// The note's id, or a prefix of it; `LINK/ID` for a note that several links have
    id: String,
}

impl List {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let project = super::project_or_none(context)?;
        let is_meant = |kind| self.kind.is_none_or(|wanted| wanted == kind);
        if self.proposed {
            let mut proposals = knowledge::proposals(&project)?;
            proposals.retain(|proposal| is_meant(proposal.kind));
            propose(context, &proposals);
            return Ok(0);
        }
        let folder = Path::new(project.folder.name).join(KNOWLEDGE);
        let problems = project.problems.iter().filter(|problem| Path::new(&problem.file).starts_with(&folder));
        context.ui.problems(&problems.cloned().collect::<Vec<_>>());
        let mut notes = knowledge::all(&project)?;
        let known = notes.len();
        notes.retain(|known| is_meant(known.note.kind) && (!self.stale || known.stale.is_some()));
        if context.ui.json() {
            context.value(json!({ "notes": notes }));
        } else if notes.is_empty() && known > 0 {
            context.ui.say(&format!("None of the {} matches.", plural(known, "note")));
        } else if notes.is_empty() {
            context.ui.say("There are no notes yet.");
            let example = "squad knowledge add \"Hash tokens before storing them\"";
            context.ui.hint(begin_with(&project.folder, example));
        } else {
            show_list(&mut context.ui, &notes);
        }
        Ok(0)
    }
}

impl Search {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let project = super::project_or_none(context)?;
        let found = knowledge::search(&project, &self.words.join(" "))?;
        if context.ui.json() {
            context.value(json!({ "notes": found }));
        } else if found.is_empty() {
            context.ui.say("No note is about that.");
        } else {
            show_list(&mut context.ui, &found);
        }
        Ok(0)
    }
}

impl Show {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let project = super::project_or_none(context)?;
        let note = knowledge::find(knowledge::all(&project)?, &self.id)?;
        if context.ui.json() {
            context.value(&note);
        } else {
            show(&mut context.ui, &note);
        }
        Ok(0)
    }
}

fn state(known: &KnownNote) -> (&'static str, LineStyle) {
    match known.listed.state {
        DecisionState::InForce if known.objection.is_some() => ("not told", LineStyle::Bad),
        DecisionState::InForce if known.stale.is_some() => ("stale", LineStyle::Warning),
        DecisionState::InForce => ("in force", LineStyle::Good),
        DecisionState::Superseded => ("superseded", LineStyle::Faint),
        DecisionState::Unlanded => ("unlanded", LineStyle::Warning),
        DecisionState::Elsewhere => ("elsewhere", LineStyle::Faint),
        DecisionState::Withdrawn => ("retired", LineStyle::Faint),
    }
}

fn show_list(ui: &mut Ui, notes: &[KnownNote]) {
    let from = |known: &KnownNote| match (&known.link, &known.listed.by) {
        (Some(link), _) => link.name.clone(),
        (None, by) => by.clone().unwrap_or_else(|| "-".to_owned()),
    };
    let widest = |of: &dyn Fn(&KnownNote) -> usize| notes.iter().map(of).max().unwrap_or_default();
    let state_width = widest(&|known| state(known).0.len());
    let kind_width = widest(&|known| known.note.kind.word().len());
    let from_width = widest(&|known| from(known).chars().count().min(12));
    let lines = notes.iter().map(|known| {
        let listed = &known.listed;
        let date = listed.date.as_deref().and_then(|date| date.get(..10)).unwrap_or("-");
        let (word, style) = state(known);
        let is_told = matches!(style, LineStyle::Good | LineStyle::Faint);
        let start = if is_told { Text::unmarked() } else { Text::marked(style, Mark::Attention) };
        let line = start.with(LineStyle::Strong, listed.id.short());
        let line =
            line.with(LineStyle::Faint, &format!("  {date:<10}  ")).with(style, &format!("{word:<state_width$}"));
        let (kind, from) = (known.note.kind.word(), from(known));
        line.plain(&format!("  {kind:<kind_width$}  {from:<from_width$}  ")).hanging().plain(&listed.title)
    });
    ui.texts(&lines.collect::<Vec<_>>());
    let stale = notes.iter().filter(|known| known.stale.is_some()).count();
    let linked = notes.iter().filter(|known| known.link.is_some()).count();
    let untold = notes.iter().filter(|known| known.objection.is_some()).count();
    let parts = [(linked, "by links"), (stale, "stale"), (untold, "not told")];
    let parts = parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("; {count} {what}"));
    ui.say(&format!("\n{}{}", plural(notes.len(), "note"), parts.collect::<String>()));
}

fn show(ui: &mut Ui, known: &KnownNote) {
    let KnownNote { listed, note, .. } = known;
    let title = ui.out_paint(STRONG, &printable_line(&listed.title));
    ui.data(&title);
    let joined = |list: &[String]| Some(list.join(", ")).filter(|text| !text.is_empty());
    let link = known.link.as_ref();
    let link = link.map(|link| format!("{}, {} at {}, {}", link.name, link.git, link.short_commit(), link.path));
    let evidence = if known.opinion { Some("none: it is an opinion".to_owned()) } else { joined(&note.evidence) };
    let facts = [
        ("id", Some(listed.id.to_string())),
        ("kind", Some(note.kind.word().to_owned())),
        ("state", Some(state(known).0.to_owned())),
        ("why", known.objection.clone().or_else(|| known.stale.clone())),
        ("replaces", listed.supersedes.as_ref().map(ToString::to_string)),
        ("date", listed.date.clone()),
        ("by", listed.by.clone()),
        ("project", note.project.clone()),
        ("run", known.run.as_ref().map(ToString::to_string)),
        ("from", note.from.as_ref().map(ToString::to_string)),
        ("link", link),
        ("source", listed.source.as_ref().map(ToString::to_string)),
        ("evidence", evidence),
        ("scope", joined(&listed.scope)),
        ("tags", joined(&known.tags)),
        ("for", joined(&[note.languages.clone(), note.frameworks.clone()].concat())),
    ];
    for (name, value) in facts {
        if let Some(value) = value {
            ui.data(&format!("{name:<8} {}", printable_line(&value)));
        }
    }
    if !listed.text.is_empty() {
        ui.data(&format!("\n{}", printable(&listed.text)));
    }
}

fn propose(context: &mut Context<'_>, proposals: &[NoteProposal]) {
    if context.ui.json() {
        context.value(json!({ "proposals": proposals }));
        return;
    }
    let ui = &mut context.ui;
    let lines = proposals.iter().map(|NoteProposal { id, kind, agent, date, text, .. }| {
        let line = Text::unmarked().with(LineStyle::Strong, id.as_str());
        let line = line.with(LineStyle::Faint, &format!("  {}", date.get(..10).unwrap_or(date)));
        line.plain(&format!("  {}  {agent}  ", kind.word())).hanging().plain(text)
    });
    ui.texts(&lines.collect::<Vec<_>>());
    match proposals.first() {
        Some(NoteProposal { id, .. }) => ui.hint(&format!(
            "`squad knowledge add --from-proposal {id}` accepts one, `squad knowledge decline {id}` refuses it"
        )),
        None => ui.say("No agent proposes a note."),
    }
}
