use super::change::{self, WriteArgs};
use super::{Context, Ended};
use crate::model::{list, plural, printable_line};
use crate::ops::change::{Changed, ChangedFile};
use crate::ops::team::adopt::{self, Adopted, ImportedState};
use crate::ops::team::shell::OtherSquad;
use crate::ui::Ui;

/// Take over a team that another tool made
///
/// Works on teams in `.squad/` or `.ai-team/` that the npm package @bradygaster/squad-cli made. In one commit that
/// `git revert` undoes, it removes the files which that tool installed and nobody changed, replaces its coordinator
/// prompt and its MCP server with squad's, removes the `.gitignore` lines that hide decisions, and moves `.ai-team/` to
/// `.squad/`. What people wrote stays as it is. So do the tool's files that somebody changed; squad lists them.
///
/// If there is no team, it makes one from the role files in `.claude/agents/`, `.github/agents/` and `.codex/agents/`:
/// their texts become charters, word for word. With --roles, it adds the missing ones to the team.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad adopt --dry-run    Say what was understood of the team, and which files would change
  squad adopt --diff       Show the changes as a patch
  squad adopt
  squad adopt --roles      Add members out of role files of Claude Code, Copilot and Codex
  git revert HEAD          Undo it")]
pub(super) struct Args {
    /// Only add members out of role files of other hosts
    #[arg(long)]
    roles: bool,
    #[command(flatten)]
    pub(super) write: WriteArgs,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let adopt = if self.roles { adopt::adopt_roles } else { adopt::adopt };
        let adopted = adopt(context.env, &context.directory, self.write.mode())?;
        change::show(context, adopted, self.write.diff, |ui, adopted| said(ui, adopted, &self))
    }
}

fn said(ui: &mut Ui, adopted: &Changed<Adopted>, args: &Args) {
    let report = &adopted.change;
    if args.write.diff {
        return change::say_files(ui, report, true);
    }
    ui.data(&adopted.read.summary());
    ui.all_problems(&adopted.read.problems);
    for line in grouped(&report.files) {
        ui.data(&printable_line(&line));
    }
    for file in &adopted.skipped {
        ui.data(&printable_line(&format!("{:<8} {}  ({})", "left", file.path, file.why)));
    }
    let is_shown = report.is_dry_run;
    for joined in &adopted.joined {
        let verb = if is_shown { "would join" } else { "joined" };
        ui.say(&printable_line(&format!("{} {verb} the team, from {}.", joined.name, joined.source)));
    }
    if !adopted.unused_roles.is_empty() {
        ui.say(&printable_line(&format!("Not on the team: {}.", list(&adopted.unused_roles))));
        ui.hint("`squad adopt --roles` adds them as members");
    }
    if let Some(obstacle) = &adopted.obstacle {
        ui.warning(&printable_line(&obstacle.message));
        obstacle.hint.iter().for_each(|hint| ui.hint(&printable_line(hint)));
    }
    let state = adopted.new_state();
    if let Some(ImportedState { refs, decisions, learnings }) = state {
        let what = list([plural(*decisions, "decision"), plural(*learnings, "learning")]);
        let verb = if is_shown { "would go" } else { "went" };
        ui.say(&printable_line(&format!("{what} of {} {verb} to the ledger.", list(refs))));
        ui.hint("`squad decisions land` brings decisions of the ledger to this branch");
    }
    if state.is_none() && report.files.is_empty() && report.commit.is_none() {
        return ui.say(match args.roles {
            true => "There is nobody to add: no role file lacks a member.",
            false => "There is nothing to adopt: no file of another tool is left to change.",
        });
    }
    if !adopted.unignored.is_empty() {
        let verb = if is_shown { "would be" } else { "were" };
        let lines = adopted.unignored.join(", ");
        ui.say(&printable_line(&format!("Lines that hide decisions from git {verb} removed: {lines}.")));
    }
    said_triage(ui, adopted, is_shown);
    let count = plural(report.files.len(), "file");
    match is_shown {
        true => {
            ui.say(&format!("{count} would change."));
            let command = if args.roles { "squad adopt --roles" } else { "squad adopt" };
            ui.hint(&format!("`{command}` changes them, in one commit; `{command} --diff` shows how"));
        }
        false => ui.say(&format!("Adopted the team: {count}{}.", change::outcome(report))),
    }
    if report.commit.is_some() {
        ui.hint("`git revert` of that commit undoes it; `squad doctor` checks the team");
    }
    ui.all_problems(adopted.other_squad.as_ref().map(OtherSquad::problem).iter());
}

/// Names the removed workflows that ran for issues.
fn said_triage(ui: &mut Ui, adopted: &Adopted, is_shown: bool) {
    if adopted.triage.is_empty() {
        return;
    }
    let verb = if is_shown { "would stop" } else { "stops" };
    let files = list(&adopted.triage);
    ui.warning(&printable_line(&format!("triage of issues {verb}: squad has no replacement for {files}")));
    ui.hint("`squad orchestrate` and `squad watch` work on what they are given; restore the workflow to keep it");
}

/// The files, those of one folder with one fate in one line.
fn grouped(files: &[ChangedFile]) -> Vec<String> {
    const FEW: usize = 3;
    let top = |path: &String| match path.match_indices('/').nth(1) {
        Some((end, _)) => path[..=end].to_owned(),
        None => path.clone(),
    };
    let place = |file: &ChangedFile| (file.change, top(&file.path), file.from.as_ref().map(top));
    let mut lines: Vec<String> = Vec::new();
    let mut rest = files;
    while let Some(first) = rest.first() {
        let group = rest.iter().take_while(|file| place(file) == place(first)).count();
        let (same, after) = rest.split_at(group.max(1));
        rest = after;
        if same.len() > FEW {
            let (change, place, from) = place(first);
            let from = from.map(|from| format!("  (was {from})")).unwrap_or_default();
            lines.push(format!("{change:<8} {place} ({}){from}", plural(same.len(), "file")));
            continue;
        }
        for file in same {
            let from = file.from.as_ref().map(|from| format!("  (was {from})")).unwrap_or_default();
            lines.push(format!("{:<8} {}{from}", file.change, file.path));
        }
    }
    lines
}
