use clap::ValueEnum;

use super::super::{Context, Ended};
use super::page::{capital, page};
use super::radar::contradiction;
use crate::model::Decision;
use crate::ops::Workspace;
use crate::ops::decisions::review::{self, Range, Review, Unlanded};
use crate::review::{Changes, Superseded};
use crate::view::{LineStyle, Mark, Text};

/// Show what a pull request decides
///
/// Lists the decisions and notes of knowledge that BASE..HEAD adds, changes, supersedes and withdraws, what they
/// contradict, which decisions made for these commits never landed, and how the agents' prompts change. Needs no
/// checkout.
///
/// Prints Markdown for a comment, a summary on a terminal, or JSON with --json. Likely contradictions never fail a build.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad decisions review main..HEAD
  squad decisions review origin/main..feature --fail-on explicit
  squad decisions review main.. --every-team
  squad decisions review main.. --json | jq '.conflicts'
  squad decisions review origin/main.. | gh pr comment --body-file -")]
pub(super) struct Args {
    /// BASE..HEAD; BASE alone means BASE up to the checked-out commit
    range: String,
    /// Review every team in the repository that the range affects, not only this one
    #[arg(long)]
    every_team: bool,
    /// Exit with 1 when there are any of these; may be repeated
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',')]
    fail_on: Vec<FailOn>,
    /// Print at most N characters of Markdown; the text says what was left out
    #[arg(long, value_name = "N", default_value_t = COMMENT)]
    limit: usize,
}

/// GitHub accepts 65,536 characters in a comment.
const COMMENT: usize = 60_000;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// Decisions that supersede the same one, decide the same scope, or supersede an unknown one
    Explicit,
    /// Decisions made for these commits that are not in them
    Unlanded,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let workspace = Workspace::find_or_root(context.env, &context.directory)?;
        let range = Range::find(&workspace, &self.range)?;
        let reviews = match self.every_team {
            true => review::of_all_teams(&workspace, &range)?,
            false => vec![review::review(&workspace, range)?],
        };
        match (context.ui.json(), self.every_team) {
            (true, true) => context.value(serde_json::json!({ "teams": reviews })),
            (true, false) => reviews.iter().for_each(|review| context.value(review)),
            (false, _) if context.ui.output_is_terminal() && !context.ui.is_verbose() => {
                for review in &reviews {
                    context.ui.texts(&shown(review));
                    context.ui.say(&format!("{}.", capital(&review.summary())));
                }
                context.ui.hint("-v prints the whole as Markdown, with the changes of prompts, and so does a pipe");
            }
            (false, _) => {
                let limit = self.limit / reviews.len().max(1);
                let pages: Vec<String> = reviews.iter().map(|review| page(review, limit)).collect();
                context.ui.verbatim(&pages.join("\n"));
            }
        }
        let fails = self.fail_on.iter().any(|what| match what {
            FailOn::Explicit => reviews.iter().any(Review::has_explicit_conflicts),
            FailOn::Unlanded => reviews.iter().any(|review| !review.unlanded.is_empty()),
        });
        Ok(u8::from(fails))
    }
}

/// What people at a terminal look for: what contradicts, and what is decided.
fn shown(review: &Review) -> Vec<Text> {
    let mut lines: Vec<Text> = review.conflicts.iter().flat_map(|conflict| contradiction(conflict, "")).collect();
    let Changes { new, changed, superseded, withdrawn } = &review.decisions.0;
    let line = |start: Text, what: &str, decision: &Decision, rest: &str| {
        let by = decision.by.as_ref().map(|by| format!("   {by}")).unwrap_or_default();
        let line = start.plain(what).filled(14).with(LineStyle::Strong, decision.id.short()).plain("  ").hanging();
        line.plain(&decision.title).with(LineStyle::Faint, &by).plain(rest)
    };
    let warned = || Text::marked(LineStyle::Warning, Mark::Attention);
    lines.extend(new.iter().map(|decision| line(Text::unmarked(), "new", decision, "")));
    lines.extend(changed.iter().map(|change| line(Text::unmarked(), "changed", &change.after, "")));
    lines.extend(superseded.iter().map(|Superseded { decision, by }| {
        line(Text::unmarked(), "superseded", decision, &format!("   by {}", by.short()))
    }));
    lines.extend(withdrawn.iter().map(|decision| line(warned(), "withdrawn", decision, "")));
    lines.extend(review.unlanded.iter().map(|Unlanded { decision, branch }| {
        let branch = branch.as_ref().map(|branch| format!("   made for {branch}")).unwrap_or_default();
        line(warned(), "never landed", decision, &branch)
    }));
    lines.extend(review.notes.iter().map(|note| Text::unmarked().with(LineStyle::Faint, note)));
    lines
}
