use super::land;
use crate::commands::{Context, Ended, text_or_input};
use crate::error::Failure;
use crate::model::list;
use crate::ops::decisions::list::{self as decisions, Addition};
use crate::ops::{Workspace, require_readable};

/// Record a decision of your own, and land it on the branch
///
/// Once its id is printed, the decision is stored durably, even if it cannot land yet. The first line of TEXT is its
/// title.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad decisions add \"Money is stored as integer cents\"
  squad decisions add --scope 'billing/**' - < decision.md")]
pub(super) struct Add {
    #[command(flatten)]
    addition: AdditionArgs,
}

/// Record a decision that replaces another one
///
/// Like `add`. Scope and tags of the replaced decision are kept unless you give new ones.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad decisions supersede 4f1c09 \"Money is stored as decimal strings\"")]
pub(super) struct Supersede {
    /// The id of the decision to replace, or a prefix of it
    id: String,
    #[command(flatten)]
    addition: AdditionArgs,
}

#[derive(clap::Args)]
struct AdditionArgs {
    /// The decision, or `-` to read it from standard input
    text: String,
    /// A path glob the decision applies to; may be repeated
    #[arg(long, value_name = "GLOB")]
    scope: Vec<String>,
    /// A tag to find it by; may be repeated
    #[arg(long = "tag", value_name = "WORD")]
    tags: Vec<String>,
}

impl Add {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        // Does not read the team's decisions, so that the cost does not grow with their number.
        let workspace = Workspace::find(context.env, &context.directory)?;
        require_readable(&workspace)?;
        let decision = decisions::add(context.env, &workspace, self.addition.read(context)?)?;
        let namesakes = decisions::namesakes(&workspace, &decision);
        land::new(context, &workspace, &decision);
        if !namesakes.is_empty() {
            context.ui.warning(&format!("decided before under the same title: {}", list(&namesakes)));
            context.ui.hint(&format!("if it is the same, delete one; `squad decisions show {}`", namesakes[0]));
        }
        Ok(0)
    }
}

impl Supersede {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let project = super::project(context)?;
        let decision = decisions::supersede(context.env, &project, &self.id, self.addition.read(context)?)?;
        land::new(context, &project, &decision);
        Ok(0)
    }
}

impl AdditionArgs {
    fn read(self, context: &Context<'_>) -> Result<Addition, Failure> {
        let text = text_or_input(&context.ui, &self.text)?;
        Ok(Addition { text, scope: self.scope, tags: self.tags, ..Addition::default() })
    }
}
