use std::hint::black_box;
use std::time::Instant;

use super::{Context, Ended, text_or_input};
use crate::env::ProjectPath;
use crate::model::{Access, Slug, Tier};
use crate::ops::Project;
use crate::policy::{PathScope, Permissions, PolicyRequest, always_rules, forbidden, ruling};
use crate::settings::Layer;

/// Judge commands and paths from standard input, one a line, for `cargo bench`
///
/// A path begins with `write `. Prints how many nanoseconds each took, as an agent's call is judged: what every mode refuses,
/// the resolved path, the rules, the mode, and the rules that a question offers.
#[derive(clap::Args)]
pub(super) struct Args {}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let project = Project::open(context.env, &context.directory, Layer::default())?;
        let (rules, root) = (project.policy(), &project.folder.root);
        let (shown, agent) = (root.display().to_string(), Slug::coordinator());
        for line in text_or_input(&context.ui, "-")?.lines() {
            let (access, tool, detail) = match line.strip_prefix("write ") {
                Some(path) => (Access::Write, "edit", path),
                None => (Access::Shell, "bash", line),
            };
            let start = Instant::now();
            let is_refused = access == Access::Shell && forbidden(detail, &shown).is_some();
            let path = (access == Access::Write).then(|| ProjectPath::resolve(root, root, detail).ok()).flatten();
            let path = path.map(|path| path.shown);
            let request =
                PolicyRequest { agent: &agent, tier: Tier::Standard, access, tool, detail, path: path.as_deref() };
            let answered = rules.answer(&request);
            let mode = (Permissions::Ask, false);
            black_box(ruling(answered.as_ref(), mode, access, detail, &PathScope::Outside));
            black_box(always_rules(access, detail, path.as_deref(), &shown));
            context.ui.data(&format!("{} {is_refused}", start.elapsed().as_nanos()));
        }
        Ok(0)
    }
}
