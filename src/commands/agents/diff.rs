use super::super::{Context, Ended};
use crate::compile::Task;
use crate::model::printable;
use crate::ops::decisions::review::{Range, prompt_changes};
use crate::ops::team::knowledge::{LinkChange, changes_by_links};
use crate::ops::team::prompts::{Prompt, PromptChange};
use crate::ops::{Project, Workspace};
use crate::settings::Layer;
use crate::ui::{BAD, FAINT, GOOD, STRONG, Ui};

/// Show how a range of commits changes the agents' prompts
///
/// Compiles the prompts from the team's files in both commits, at the standard tier and without a task. Your own
/// configuration and the ledger's learnings are left out. Needs no checkout.
///
/// With `--links`, shows how the last `squad sync` that brought another commit of a linked repository changed the notes that
/// agents may be told; with `--task`, only those that are about a task.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad agents diff main..HEAD
  squad agents diff HEAD~1
  squad agents diff main.. --json | jq '.prompts[].agent'
  squad agents diff --links --task \"Rotate the signing keys\"")]
pub(super) struct Args {
    /// BASE..HEAD; BASE alone means BASE up to the checked-out commit
    #[arg(required_unless_present = "links", conflicts_with = "links")]
    range: Option<String>,
    /// Show what the last update of linked repositories changed
    #[arg(long)]
    links: bool,
    /// Only what is about this task
    #[arg(long, value_name = "TEXT", requires = "links")]
    task: Option<String>,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let Some(range) = &self.range else { return self.of_links(context) };
        let workspace = Workspace::find_or_root(context.env, &context.directory)?;
        let prompts = prompt_changes(&workspace, &Range::find(&workspace, range)?)?;
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

impl Args {
    fn of_links(&self, context: &mut Context<'_>) -> Ended {
        let project = Project::open(context.env, &context.directory, Layer::default())?;
        let task = self.task.as_deref().map(Task::new);
        let changes = changes_by_links(&project, task.as_ref())?;
        let ui = &mut context.ui;
        if ui.json() {
            ui.value(&serde_json::json!({ "links": changes }));
            return Ok(0);
        }
        let is_changed = |change: &&LinkChange| !change.diff.is_empty();
        if !changes.iter().any(|change| is_changed(&change)) {
            ui.say("No note of a linked repository changes in a prompt.");
        }
        let short = |commit: &Option<String>| match commit {
            Some(commit) => commit.get(..12).unwrap_or(commit).to_owned(),
            None => "nothing".to_owned(),
        };
        for LinkChange { link, before, after, diff } in changes.iter().filter(is_changed) {
            let name = ui.out_paint(STRONG, link);
            ui.data(&format!("link {name}, from {} to {}", short(before), short(after)));
            lines(ui, diff);
        }
        Ok(0)
    }
}

/// Prompts that change alike.
fn shown(ui: &mut Ui, changes: &[&PromptChange]) {
    changes.iter().for_each(|change| heading(ui, change));
    lines(ui, changes.first().map_or("", |change| &change.diff));
}

fn lines(ui: &mut Ui, diff: &str) {
    for line in diff.lines() {
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
