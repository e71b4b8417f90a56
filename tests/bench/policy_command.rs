use std::collections::BTreeSet;
use std::hint::black_box;
use std::time::Instant;

use super::{Context, Ended, text_or_input};
use crate::model::{Access, Slug, Tier};
use crate::ops::Project;
use crate::policy::{Permissions, always_rules};
use crate::pool::PermissionJudge;
use crate::settings::Layer;

/// Judge commands and paths from standard input, one a line, for `cargo bench`
///
/// A path begins with `write `. Prints how many nanoseconds each took, as an agent's call is judged, with the rules that a
/// question offers.
#[derive(clap::Args)]
pub(super) struct Args {}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let project = Project::open(context.env, &context.directory, Layer::default())?;
        let (rules, agent) = (project.policy(), Slug::coordinator());
        let (root, none) = (project.folder.root.display().to_string(), BTreeSet::new());
        let judge = PermissionJudge {
            rules: &rules,
            mode: Permissions::Ask,
            agent: &agent,
            tier: Tier::Standard,
            reads_only: false,
            project: &root,
            approved_files: &none,
            attached: &none,
        };
        for line in text_or_input(&context.ui, "-")?.lines() {
            let (access, tool, detail) = match line.strip_prefix("write ") {
                Some(path) => (Access::Write, "edit", path),
                None => (Access::Shell, "bash", line),
            };
            let start = Instant::now();
            let asked = judge.asked(access, tool, detail);
            let is_refused = judge.never(&asked).is_some();
            black_box(judge.ruling(&asked));
            black_box(always_rules(access, detail, asked.written(), &root));
            context.ui.data(&format!("{} {is_refused}", start.elapsed().as_nanos()));
        }
        Ok(0)
    }
}
