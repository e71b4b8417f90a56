//! The parts of a session that do not depend on its task: identity, instructions, roster.

use super::prompt;
use super::text::{cite_source, line, one_line, push_within};
use crate::model::{Ceremony, Charter, Member, Team};

pub(super) fn has_text(charter: Option<&Charter>) -> bool {
    charter.is_some_and(|charter| !charter.text.trim().is_empty())
}

pub(super) fn agent_prompt(member: &Member, charter: Option<&Charter>) -> String {
    match charter.filter(|charter| has_text(Some(charter))) {
        Some(charter) => with_inbox_remarks(charter.text.trim_end()),
        None if member.role.is_empty() => format!("# {}\n\nYou are {}.", member.name, member.name),
        None => format!("# {} — {}\n\nYou are {}, the team's {}.", member.name, member.role, member.name, member.role),
    }
}

/// The charter, with a remark after each line that names another tool's decision inbox.
fn with_inbox_remarks(charter: &str) -> String {
    if !names_inbox(charter) {
        return charter.to_owned();
    }
    let mut text = String::with_capacity(charter.len() + 4 * prompt::INSTEAD_OF_INBOX.len());
    for line in charter.split_inclusive('\n') {
        let inner = line.trim_end();
        if names_inbox(inner) {
            // A table row ends with a bar, which stays last.
            let end = inner.strip_suffix('|').map_or(inner.len(), str::len);
            text.push_str(inner[..end].trim_end());
            text.push_str(prompt::INSTEAD_OF_INBOX);
            text.push_str(if end < inner.len() { " |" } else { "" });
            text.push_str(&line[inner.len()..]);
        } else {
            text.push_str(line);
        }
    }
    text
}

/// `.squad/decisions/inbox/`, `.ai-team\decisions\inbox`
fn names_inbox(text: &str) -> bool {
    const FOLDER: &[u8] = b"decisions/inbox";
    let is_like =
        |(found, wanted): (&u8, &u8)| found.eq_ignore_ascii_case(wanted) || (*wanted, *found) == (b'/', b'\\');
    text.as_bytes().windows(FOLDER.len()).any(|window| window.iter().zip(FOLDER).all(is_like))
}

/// Most bytes of the roster in an agent's prompt, so that a team of hundreds leaves space for the work.
const ROSTER_LENGTH: usize = 1_600;

/// The members that can be given work.
pub(super) fn roster(team: &Team, limit: usize) -> String {
    roster_of(team.startable().map(|member| roster_line(member, "")), limit)
}

/// The roster with what each member owns if all of that fits , else without.
pub(super) fn roster_of_owners(team: &Team) -> String {
    let line = |member: &Member| roster_line(member, &owned(team, member, true));
    let full = roster_of(team.startable().map(line), usize::MAX);
    if full.len() <= ROSTER_LENGTH { full } else { roster(team, ROSTER_LENGTH) }
}

fn roster_of(lines: impl Iterator<Item = String>, limit: usize) -> String {
    let mut roster = String::new();
    push_within(&mut roster, "\n## The team\n\n", lines, limit);
    roster
}

/// Most bytes of what a member owns.
const MAX_OWNED: usize = 160;

/// `; owns src/api/**; Endpoints; The database`. Paths from the routing file come first.
pub(super) fn owned(team: &Team, member: &Member, with_paths: bool) -> String {
    /// Lines of markup without text.
    const MARKUP: [char; 4] = ['#', '|', '<', '`'];
    let item = |line: &'_ str| match line.trim().split_once(' ') {
        Some(("-" | "*" | "+" | "•", rest)) => rest.trim().replace("**", ""),
        _ => line.trim().replace("**", ""),
    };
    let modules = team.modules.iter().filter(|module| with_paths && module.primary == member.slug);
    let charter = team.charters.get(&member.slug).map_or("", |charter| &charter.owns);
    let lines_with_text = [&member.scope, charter].into_iter().flat_map(str::lines).map(item);
    let lines_with_text = lines_with_text.filter(|line| !line.is_empty() && !line.starts_with(MARKUP));
    let owned: Vec<String> = modules.map(|module| module.path.clone()).chain(lines_with_text).collect();
    if owned.is_empty() { String::new() } else { format!("; owns {}", owned.join("; ")) }
}

/// Context shared by all sessions, so that providers can cache it across agents.
pub(super) fn team_context(project: &str, roster: &str) -> String {
    [prompt::TEAMWORK, project, roster].concat()
}

/// Context for this member only, independent of the task.
pub(super) fn own_context(team: &Team, member: &Member) -> String {
    let mut context = format!("\nYou are {}.\n", one_line(&member.name));
    let ceremonies: String = facilitated(team, member).map(ceremony_line).collect();
    if !ceremonies.is_empty() {
        context
            .push_str(&format!("\nWhere the task calls for one of these meetings, you facilitate it:\n\n{ceremonies}"));
    }
    context
}

/// The ceremonies that this member facilitates.
pub(super) fn facilitated<'a>(team: &'a Team, member: &'a Member) -> impl Iterator<Item = &'a Ceremony> {
    let is_own = |ceremony: &&Ceremony| ceremony.enabled && ceremony.facilitator.as_ref() == Some(&member.slug);
    team.ceremonies.iter().filter(is_own)
}

pub(super) fn ceremony_line(ceremony: &Ceremony) -> String {
    let details: Vec<String> = [&ceremony.when, &ceremony.condition]
        .iter()
        .map(|text| line(text, 200))
        .filter(|text| !text.is_empty())
        .collect();
    let details = if details.is_empty() { String::new() } else { format!(": {}", details.join("; ")) };
    format!("- {} ({}){details}\n", one_line(&ceremony.name), cite_source(&ceremony.source))
}

fn roster_line(member: &Member, owned: &str) -> String {
    let role = if member.role.is_empty() { String::new() } else { format!(": {}", one_line(&member.role)) };
    format!("- {} (`{}`){role}{}\n", one_line(&member.name), member.slug, line(owned, MAX_OWNED))
}

/// In the folder of the charter; without one, in the agent's folder.
pub(super) fn history_file(member: &Member) -> String {
    let folder = match &member.charter {
        Some(charter) => charter.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned(),
        None => {
            let team = member.source.file.rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{team}/agents/{}", member.slug)
        }
    };
    format!("{folder}/history.md")
}
