//! The turn of an agent that has none in the script.

use std::path::Path;
use std::time::Duration;

use super::script::Step;
use crate::engine::Opening;
use crate::model::{Attachment, SessionSpec, Slug, ToolChoice, first_line, list};

/// The reason for its choices of agents. Nothing is learned from choices with this reason.
pub(crate) const IMPROVISED: &str = "improvised by the rehearsal engine";

/// Files that an agent reads, in order of preference.
const FILES: [&str; 3] = ["README.md", ".squad/team.md", ".ai-team/team.md"];

/// An agent that works reads a file and writes none: otherwise its report would be a mere claim.
pub(super) fn turn(opening: &Opening, prompt: &str, attachments: &[Attachment]) -> Vec<Step> {
    let spec = &opening.spec;
    let mut steps = vec![Step::Wait(Duration::from_millis(120))];
    let is_coordinator = spec.agent.as_str() == Slug::COORDINATOR;
    if !is_coordinator && spec.tools != ToolChoice::Nothing {
        steps.push(Step::Read(file_of(&opening.directory)));
    }
    let line = if is_coordinator {
        if prompt.contains("{\"agents\":") {
            format!("{{\"agents\": [\"{}\"], \"reason\": \"{IMPROVISED}\"}}", best_candidate(spec, prompt))
        } else {
            format!("(rehearsal) {}", summary(prompt))
        }
    } else if prompt.contains("{\"verdict\":") {
        "(rehearsal) I would read the diff here.\n\n{\"verdict\": \"approve\", \"findings\": []}".to_owned()
    } else if prompt.contains("VERDICT:") {
        "(rehearsal) I would read the change here.\n\nVERDICT: approved".to_owned()
    } else {
        let with = match attachments {
            [] => String::new(),
            files => format!(" (with {})", list(files.iter().map(|file| &file.path))),
        };
        format!("(rehearsal) As {} I would now work on: {}{with}", spec.role, first_line(prompt, 100))
    };
    steps.push(Step::Say(line));
    steps
}

/// A file of the project.
fn file_of(project: &Path) -> String {
    let known = FILES.iter().find(|path| project.join(path).is_file()).map(|path| (*path).to_owned());
    let first = || {
        let files = std::fs::read_dir(project).ok()?.flatten().filter(|entry| entry.path().is_file());
        files.filter_map(|entry| entry.file_name().into_string().ok()).min()
    };
    known.or_else(first).unwrap_or_else(|| FILES[0].to_owned())
}

/// The first agent that the prompt gives evidence for, or else the first of the team.
fn best_candidate(spec: &SessionSpec, prompt: &str) -> String {
    let begins = ["These agents may:", "The router was not sure."].iter().find_map(|begin| prompt.split_once(begin));
    let with_evidence = begins.and_then(|(_, rest)| {
        rest.lines().find_map(|line| line.strip_prefix("> ")?.split_once(':').map(|(slug, _)| slug))
    });
    let listed = || {
        let (_, roster) = spec.prompt.split_once("## The team")?;
        let (_, rest) = roster.split_once("(`")?;
        rest.split_once('`').map(|(slug, _)| slug)
    };
    with_evidence.or_else(listed).unwrap_or_default().to_owned()
}

fn summary(prompt: &str) -> String {
    let reports =
        prompt.lines().filter_map(|line| line.strip_prefix("Report of ")).map(|line| line.trim_end_matches(':'));
    let reports: Vec<&str> = reports.collect();
    if reports.is_empty() {
        "I would answer here.".to_owned()
    } else {
        format!("Reports came from {}.", reports.join(", "))
    }
}
