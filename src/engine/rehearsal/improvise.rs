//! What an agent does when the script has nothing for it.

use std::time::Duration;

use super::script::Step;
use crate::model::{Attachment, SessionSpec, Slug, first_line, list};

/// Why it chose an agent. Nobody learns from that.
pub(crate) const IMPROVISED: &str = "improvised by the rehearsal engine";

pub(super) fn turn(spec: &SessionSpec, prompt: &str, attachments: &[Attachment]) -> Vec<Step> {
    let line = if spec.agent.as_str() == Slug::COORDINATOR {
        if prompt.contains("{\"agents\":") {
            format!("{{\"agents\": [\"{}\"], \"reason\": \"{IMPROVISED}\"}}", someone(spec, prompt))
        } else {
            format!("(rehearsal) {}", summary(prompt))
        }
    } else if prompt.contains("VERDICT:") {
        "(rehearsal) I would read the change here.\n\nVERDICT: approved".to_owned()
    } else {
        let with = match attachments {
            [] => String::new(),
            files => format!(" (with {})", list(files.iter().map(|file| &file.path))),
        };
        format!("(rehearsal) As {} I would now work on: {}{with}", spec.role, first_line(prompt, 100))
    };
    vec![Step::Wait(Duration::from_millis(120)), Step::Say(line)]
}

/// The first agent that something speaks for, or the first of the team.
fn someone(spec: &SessionSpec, prompt: &str) -> String {
    let begins = ["Who may:", "The router was not sure."].iter().find_map(|begin| prompt.split_once(begin));
    let spoken_for = begins.and_then(|(_, rest)| {
        rest.lines().find_map(|line| line.strip_prefix("> ")?.split_once(':').map(|(slug, _)| slug))
    });
    let listed = || {
        let (_, roster) = spec.prompt.split_once("## The team")?;
        let (_, rest) = roster.split_once("(`")?;
        rest.split_once('`').map(|(slug, _)| slug)
    };
    spoken_for.or_else(listed).unwrap_or_default().to_owned()
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
