use super::super::{Context, Ended};
use crate::model::printable;
use crate::ops::Workspace;
use crate::ops::decisions::review::{Range, prompt_changes};
use crate::ops::team::prompts::{Prompt, PromptChange};
use crate::ui::{BAD, FAINT, GOOD, STRONG, Ui};

/// Show how a range of commits changes the agents' prompts
///
/// Compiles the prompts from the team's files in both commits, at the standard tier and without a task. Your own
/// configuration and the ledger's learnings are left out. Needs no checkout.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad agents diff main..HEAD
  squad agents diff HEAD~1
  squad agents diff main.. --json | jq '.prompts[].agent'")]
pub(super) struct Args {
    /// BASE..HEAD; BASE alone means BASE up to the checked-out commit
    range: String,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let workspace = Workspace::find_or_root(context.env, &context.directory)?;
        let prompts = prompt_changes(&workspace, &Range::find(&workspace, &self.range)?)?;
        let ui = &mut context.ui;
        if ui.json() {
            ui.value(&serde_json::json!({ "prompts": prompts }));
            return Ok(0);
        }
        if prompts.is_empty() {
            ui.say("No agent's prompt changes.");
        }
        let mut groups: Vec<(Vec<&str>, Vec<&PromptChange>)> = Vec::new();
        for change in &prompts {
            // The same change stands at another line, and between others, in each prompt.
            let body = change.diff.lines().filter(|line| line.starts_with(['+', '-'])).collect();
            match groups.iter_mut().find(|(other, _)| *other == body) {
                Some((_, changes)) => changes.push(change),
                None => groups.push((body, vec![change])),
            }
        }
        groups.iter().for_each(|(_, changes)| shown(ui, changes));
        Ok(0)
    }
}

/// Prompts that change alike.
fn shown(ui: &mut Ui, changes: &[&PromptChange]) {
    changes.iter().for_each(|change| heading(ui, change));
    for line in changes.first().map_or("", |change| &change.diff).lines() {
        let style = match line.as_bytes().first() {
            Some(b'+') => GOOD,
            Some(b'-') => BAD,
            Some(b'@') => FAINT,
            _ => anstyle::Style::new(),
        };
        ui.data(&ui.out_paint(style, &printable(line)));
    }
    ui.data("");
}

fn heading(ui: &mut Ui, change: &PromptChange) {
    let told = |told: &Prompt| format!("{} tokens on {}", told.tokens, told.model);
    let how = match (&change.before, &change.after) {
        (Some(before), Some(after)) => format!("{}, before {}", told(after), told(before)),
        (None, Some(after)) => format!("new, {}", told(after)),
        (Some(before), None) => format!("gone, before {}", told(before)),
        (None, None) => String::new(),
    };
    let name = ui.out_paint(STRONG, &printable(&change.name));
    let was = change.was.as_ref().map(|slug| format!("`{}`, before `{slug}`, ", change.agent)).unwrap_or_default();
    ui.data(&format!("{name}  {was}{}", printable(&how)));
}
