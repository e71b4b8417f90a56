use clap::ValueEnum;

use crate::commands::{Context, Ended, begin_with};
use crate::model::{self, DecisionId, DecisionState, Problem, Slug, plural, printable};
use crate::ops::decisions::list::{self as decisions, ListedDecision};
use crate::review::concerns;
use crate::ui::{STRONG, Ui};
use crate::view::{LineStyle, Mark, Text};

/// List every decision and its state
///
/// The states are `in force` (its file is on this branch), `superseded` (another decision here replaces it),
/// `unlanded` (recorded, but on no branch yet), `elsewhere` (landed only on another branch) and `withdrawn` (landed
/// here, then its file was deleted).
#[derive(Default, clap::Args)]
#[command(after_help = "\
Examples:
  squad decisions list
  squad decisions list cents --state in-force
  squad decisions list --author backend --scope src/cart.rs
  squad decisions list --json | jq '.decisions[].title'")]
pub(super) struct List {
    /// Only those whose id, title or text has each WORD
    #[arg(value_name = "WORD")]
    words: Vec<String>,
    /// Only those in STATE
    #[arg(long, value_enum)]
    state: Option<DecisionState>,
    /// Only those that AUTHOR made, a member or a person
    #[arg(long)]
    author: Option<String>,
    /// Only those with TAG
    #[arg(long)]
    tag: Option<String>,
    /// Only those whose scope may include PATH
    #[arg(long, value_name = "PATH")]
    scope: Option<String>,
}

/// Show one decision
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  squad decisions show 4f1c09")]
pub(super) struct Show {
    /// The decision's id, or a prefix of it
    id: String,
}

impl List {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let project = super::project(context)?;
        let wrong: Vec<Problem> = project.problems.iter().filter(|problem| is_of_decisions(problem)).cloned().collect();
        context.ui.problems(&wrong);
        let mut all = decisions::all(&project)?;
        let known = all.len();
        all.retain(|decision| self.matches(decision));
        if context.ui.json() {
            context.value(serde_json::json!({ "decisions": all }));
        } else if all.is_empty() && known > 0 {
            context.ui.say(&format!("None of the {} matches.", plural(known, "decision")));
        } else {
            let example = begin_with(&project.folder, "squad decisions add \"Money is stored as integer cents\"");
            list(&mut context.ui, &all, wrong.iter().any(is_of_files), example);
        }
        Ok(0)
    }

    fn matches(&self, decision: &ListedDecision) -> bool {
        let Self { words, state, author, tag, scope } = self;
        let text = format!("{}\n{}\n{}", decision.id, decision.title, decision.text).to_lowercase();
        let is_author = |author: &String| {
            let same = |by: &str| by.eq_ignore_ascii_case(author) || Slug::fold(by) == Slug::fold(author);
            decision.by.as_deref().is_some_and(same)
        };
        words.iter().all(|word| text.contains(&word.to_lowercase()))
            && state.is_none_or(|state| decision.state == state)
            && author.as_ref().is_none_or(is_author)
            && tag.as_ref().is_none_or(|tag| decision.tags.iter().any(|other| other.eq_ignore_ascii_case(tag)))
            && scope.as_ref().is_none_or(|path| concerns(&decision.scope, &[path]))
    }
}

impl Show {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let project = super::project(context)?;
        show(&mut context.ui, &decisions::find(decisions::all(&project)?, &self.id)?);
        Ok(0)
    }
}

/// Whether a problem is about the content of decision files, or about decision files that cannot be read.
fn is_of_decisions(problem: &Problem) -> bool {
    problem.code.starts_with("decision-") || is_of_files(problem)
}

/// Whether a problem is about a decision file that exists but cannot be read.
fn is_of_files(problem: &Problem) -> bool {
    let is_unread = ["unreadable", "link-outside", "link-broken", "not-a-file"].contains(&&*problem.code);
    let inner = problem.file.split_once('/').map_or("", |(_, path)| path);
    is_unread && inner.to_lowercase().starts_with("decisions")
}

fn list(ui: &mut Ui, all: &[ListedDecision], is_partial: bool, example: &str) {
    if all.is_empty() && is_partial {
        ui.say("No decision can be read.");
    } else if all.is_empty() {
        ui.say("There are no decisions yet.");
        ui.hint(example);
    }
    let by = |decision: &ListedDecision| decision.by.as_deref().map_or(1, |by| by.chars().count().min(12));
    let by_width = all.iter().map(by).max().unwrap_or_default();
    let state_width = all.iter().map(|decision| word(decision.state).0.len()).max().unwrap_or_default();
    for decision in all {
        let date = decision.date.as_deref().and_then(|date| date.get(..10)).unwrap_or("-");
        let by = decision.by.as_deref().unwrap_or("-");
        let (word, style) = word(decision.state);
        let is_elsewhere = matches!(decision.state, DecisionState::Unlanded | DecisionState::Elsewhere);
        let start = if is_elsewhere { Text::marked(style, Mark::Attention) } else { Text::unmarked() };
        let line = start.with(LineStyle::Strong, decision.id.short());
        let line = line.with(LineStyle::Faint, &format!("  {date:<10}")).plain("  ");
        let line = line.with(style, &format!("{word:<state_width$}")).plain(&format!("  {by:<by_width$}  ")).hanging();
        let superseders: Vec<&str> = decision.superseded_by.iter().map(DecisionId::short).collect();
        let place = match (&superseders[..], &decision.branches[..]) {
            ([], []) => String::new(),
            ([], branches) => format!("    on {}", model::list(branches)),
            (superseders, _) => format!("    by {}", model::list(superseders)),
        };
        ui.texts(&[line.plain(&decision.title).with(LineStyle::Faint, &place)]);
    }
    if !all.is_empty() {
        let states = DecisionState::value_variants().iter().map(|state| {
            let count = all.iter().filter(|decision| decision.state == *state).count();
            (count, word(*state).0)
        });
        let states = states.filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
        ui.say(&format!("\n{}: {}", plural(all.len(), "decision"), states.collect::<Vec<_>>().join(", ")));
    }
}

fn word(state: DecisionState) -> (&'static str, LineStyle) {
    match state {
        DecisionState::InForce => ("in force", LineStyle::Good),
        DecisionState::Superseded => ("superseded", LineStyle::Faint),
        DecisionState::Unlanded => ("unlanded", LineStyle::Warning),
        DecisionState::Elsewhere => ("elsewhere", LineStyle::Faint),
        DecisionState::Withdrawn => ("withdrawn", LineStyle::Bad),
    }
}

fn show(ui: &mut Ui, decision: &ListedDecision) {
    if ui.json() {
        ui.value(decision);
        return;
    }
    let title = ui.out_paint(STRONG, &printable(&decision.title));
    ui.data(&title);
    let mut state = word(decision.state).0.to_owned();
    if !decision.superseded_by.is_empty() {
        state.push_str(&format!(" by {}", model::list(&decision.superseded_by)));
    }
    if !decision.branches.is_empty() {
        state.push_str(&format!(", on {}", model::list(&decision.branches)));
    }
    let facts = [
        ("id", Some(decision.id.to_string())),
        ("state", Some(state)),
        ("replaces", decision.supersedes.as_ref().map(ToString::to_string)),
        ("date", decision.date.clone()),
        ("by", decision.by.clone()),
        ("source", decision.source.as_ref().map(ToString::to_string)),
        ("scope", Some(decision.scope.join(", ")).filter(|scope| !scope.is_empty())),
    ];
    for (name, value) in facts {
        if let Some(value) = value {
            ui.texts(&[Text::default().plain(name).filled(9).hanging().plain(&value)]);
        }
    }
    if !decision.text.is_empty() {
        let lines = std::iter::once("").chain(decision.text.lines());
        ui.texts(&lines.map(Text::prose).collect::<Vec<_>>());
    }
}
