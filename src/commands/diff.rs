use std::path::Path;

use super::{Context, Ended};
use crate::env::Env;
use crate::model::{ChangeClass, ChangeEvidence, RunId, SkippedFile, Slug, but, list, plural, printable_line};
use crate::ops::run::changes::{FileDiff, RunDiff, diff};
use crate::ui::Ui;
use crate::view::{LineStyle, Text, counted};

/// Lines that `squad watch` shows of changes. What is longer is read elsewhere.
const MOST: usize = 1_000;

/// Show what a run changed in the work tree
///
/// Shows the newest run, or RUN, as a unified diff: what is no terminal gets exactly what `git apply` takes. On a
/// terminal and with --stat, who changed a file stands above it: an agent; `together`, where several worked at once;
/// `yours`, if no agent was at work; `other run`; or `unknown`. Of a live run, shows the changes so far. The diff comes from snapshots that squad took in this clone while the run
/// went on; `squad gc` deletes them after 14 days. Ignored files, files over 32 MiB and files that seem to contain a
/// secret are not in them.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad diff                          What the newest run changed
  squad diff 20260105-0900 --stat     Only the files and line counts of a run
  squad diff 20260105-0900 backend    Only what backend changed
  squad diff --json | jq -r '.files[].path'")]
pub(super) struct Args {
    /// The run's short or whole id, or a prefix of it
    run: Option<String>,
    /// Only what this agent changed, or may have
    agent: Option<String>,
    /// List the files with line counts, without the diff
    #[arg(long)]
    stat: bool,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let diff = diff(context.env, &context.directory, self.run.as_deref(), self.agent.as_deref())?;
        if context.ui.json() {
            context.value(&diff);
        } else {
            context.page();
            show(&mut context.ui, &diff, self.stat);
        }
        Ok(0)
    }
}

fn show(ui: &mut Ui, diff: &RunDiff, is_stat: bool) {
    if diff.live {
        ui.say(&format!("Run {} goes on; this is what it had changed at its last snapshot.", diff.run.short()));
    }
    if diff.undone {
        ui.say(&format!("Run {} is undone{}; these were its changes.", diff.run.short(), but(&diff.left)));
    }
    if diff.files.is_empty() && diff.not_covered.is_empty() {
        let so_far = if diff.live { " so far" } else { "" };
        ui.say(&format!("Run {} changed nothing in the work tree{so_far}.", diff.run.short()));
    }
    let widths = widths(diff);
    let is_seen = ui.output_is_terminal();
    for file in &diff.files {
        match is_stat {
            true => ui.texts(&[head(file, widths)]),
            false if is_seen => ui.texts(&patch(file, widths)),
            false => ui.write_out(&file.raw),
        }
    }
    for left in &diff.not_covered {
        ui.warning(&not_covered(left));
    }
    for reference in &diff.commits {
        ui.hint(&format!("an agent's own commit is kept: `git show {reference}`"));
    }
}

/// What an agent changed in a run, for who looks at it at work, or why there is nothing to show.
pub(super) fn of_agent(env: &Env, directory: &Path, run: &RunId, agent: &Slug) -> Result<Vec<Text>, String> {
    let diff = diff(env, directory, Some(run.as_str()), Some(agent.as_str())).map_err(|failure| failure.message)?;
    beginning(&diff, agent)
}

fn beginning(diff: &RunDiff, agent: &Slug) -> Result<Vec<Text>, String> {
    let (run, had, so_far) = match diff.live {
        true => (diff.run.short(), " had", " at its last snapshot"),
        false => (diff.run.short(), "", ""),
    };
    if diff.files.is_empty() && diff.not_covered.is_empty() {
        return Err(format!("{agent}{had} changed nothing in run {run}{so_far}"));
    }
    let title = format!("what {agent}{had} changed in run {run}{so_far}; Esc goes back");
    let mut lines = vec![Text::default().with(LineStyle::Faint, &title)];
    lines.extend(diff.files.iter().flat_map(|file| patch(file, widths(diff))));
    let more = lines.len().saturating_sub(MOST);
    if more > 0 {
        lines.truncate(MOST);
        let rest = format!("… {}: squad diff {run} {agent}", plural(more, "more line"));
        lines.push(Text::unmarked().with(LineStyle::Faint, &rest));
    }
    lines.extend(diff.not_covered.iter().map(|left| Text::unmarked().plain(&not_covered(left))));
    Ok(lines)
}

fn not_covered(left: &SkippedFile) -> String {
    format!("not covered: {}: {}", left.path, left.why)
}

fn widths(diff: &RunDiff) -> (usize, usize) {
    let width = |text: fn(&FileDiff) -> String| diff.files.iter().map(|file| text(file).chars().count()).max();
    (width(who).unwrap_or_default(), width(path).unwrap_or_default())
}

/// A file's patch as people read it.
fn patch(file: &FileDiff, widths: (usize, usize)) -> Vec<Text> {
    let mut is_hunk = false;
    let line = |line: &str| {
        is_hunk |= line.starts_with("@@ ");
        let style = match line.as_bytes().first() {
            _ if !is_hunk => LineStyle::Faint,
            Some(b'+') => LineStyle::Good,
            Some(b'-') => LineStyle::Bad,
            _ => LineStyle::Plain,
        };
        Text::default().with(style, line).verbatim()
    };
    std::iter::once(head(file, widths)).chain(file.readable().lines().map(line)).collect()
}

/// The line above a file's patch.
pub(super) fn head(file: &FileDiff, (who_width, path_width): (usize, usize)) -> Text {
    let lines = match (file.added, file.removed) {
        (Some(added), Some(removed)) => counted(added, removed),
        _ => Text::default().plain("no lines"),
    };
    let line = Text::unmarked().with(LineStyle::Strong, &format!("{:<who_width$}", who(file))).plain("   ").hanging();
    let line = line.plain(&format!("{:<path_width$}   ", path(file))).extend(&lines);
    let remark = remark(file);
    if remark.is_empty() { line } else { line.plain(&format!("   {remark}")) }
}

fn path(file: &FileDiff) -> String {
    printable_line(&file.path)
}

fn who(file: &FileDiff) -> String {
    match (file.class, &file.by[..]) {
        (ChangeClass::Own, [agent]) => agent.to_string(),
        (class, _) => class.to_string(),
    }
}

fn remark(file: &FileDiff) -> String {
    match file.class {
        ChangeClass::Own if file.how == Some(ChangeEvidence::Command) => "by a command".to_owned(),
        ChangeClass::Own => String::new(),
        ChangeClass::Together if file.by.len() < 2 => format!("{} and another run worked here at once", list(&file.by)),
        ChangeClass::Together => format!("{} worked here at once", list(&file.by)),
        ChangeClass::Yours => "changed by you or another program, not by the run".to_owned(),
        ChangeClass::OtherRun => "changed by or beside another run".to_owned(),
        ChangeClass::Unknown => "changed while the run was down".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::env::Streams;
    use crate::model::RunId;
    use crate::ui::OutputOptions;

    fn of(files: Vec<FileDiff>) -> RunDiff {
        let run = RunId::new("20260301-090000-abcdef");
        RunDiff {
            run,
            live: false,
            undone: false,
            left: Vec::new(),
            files,
            not_covered: Vec::new(),
            commits: Vec::new(),
        }
    }

    fn file(path: &str, patch: &str) -> FileDiff {
        FileDiff {
            path: path.to_owned(),
            class: ChangeClass::Yours,
            by: Vec::new(),
            how: None,
            added: None,
            removed: None,
            patch: patch.to_owned(),
            raw: patch.as_bytes().to_owned(),
        }
    }

    /// The title, the file's line and two of git's stand before the lines of a change.
    #[test]
    fn a_watch_shows_the_beginning_of_long_changes_and_where_the_rest_is() {
        let ada = Slug::fold("ada").expect("a name");
        let rest = |more: &str| format!("  … {more}: squad diff abcdef ada");
        for (lines, last) in [
            (MOST - 4, format!("+line {}", MOST - 4)),
            (MOST - 3, rest("1 more line")),
            (5 * MOST, rest("4004 more lines")),
        ] {
            let text = (1..=lines).map(|line| format!("+line {line}\n")).collect::<String>();
            let diff = of(vec![file("a", &format!("diff --git a/a b/a\n@@ -0,0 +1 @@\n{text}"))]);
            let shown = beginning(&diff, &ada).expect("there are changes");
            let shown: Vec<String> = shown.iter().map(Text::to_string).collect();
            assert_eq!(shown.last(), Some(&last), "{lines}");
            assert_eq!(shown.len(), MOST + usize::from(last.contains('…')), "{lines}");
            assert_eq!(shown[0], "what ada changed in run abcdef; Esc goes back");
        }
        assert_eq!(beginning(&of(Vec::new()), &ada), Err("ada changed nothing in run abcdef".to_owned()));
    }

    /// What an agent names a file or writes into it does nothing to a terminal, where only people read.
    #[test]
    fn a_terminal_gets_what_people_can_read() {
        let red = "diff --git a/a b/a\n@@ -0,0 +1 @@\n+\u{1b}[31mred\u{1b}]0;x\u{7}\n";
        let image = "diff --git a/b b/b\nGIT binary patch\nliteral 2\nJc${No03gVL\n\n";
        let diff = of(vec![file("a\u{1b}c", red), file("b", image)]);
        for out_is_terminal in [true, false] {
            let out = tempfile::NamedTempFile::new().expect("a file");
            let opened = Box::new(out.reopen().expect("it is there"));
            let streams = Streams { out: opened, out_is_terminal, ..Streams::silent() };
            show(&mut Ui::new(streams, OutputOptions::default()), &diff, false);
            let shown = fs::read_to_string(out.path()).expect("text");
            match out_is_terminal {
                true => {
                    assert!(!shown.contains("\u{1b}]") && !shown.contains("\u{1b}[31m"), "{shown:?}");
                    assert!(
                        shown.contains("yours") && shown.contains("red") && !shown.contains("literal"),
                        "{shown:?}"
                    );
                }
                false => assert_eq!(shown, [red, image].concat()),
            }
        }
    }
}
