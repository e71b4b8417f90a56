use clap::ValueEnum;

use super::super::{Context, Ended};
use super::page::page;
use crate::ops::Workspace;
use crate::ops::decisions::review::{self, Range, Review};

/// Show what a pull request decides
///
/// Lists the decisions and notes of knowledge that BASE..HEAD adds, changes, supersedes and withdraws, what they
/// contradict, which decisions made for these commits never landed, and how the agents' prompts change. Needs no
/// checkout.
///
/// Prints Markdown for a comment, or JSON with --json. Likely contradictions never fail a build.
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
