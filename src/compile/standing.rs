//! What a session is made of whatever its task: who the agent is, how to work here, who else is on the team.

use super::prompt;
use super::text::{line, one_line, place, push_within};
use crate::model::{Ceremony, Charter, Member, Team};

pub(super) fn has_text(charter: Option<&Charter>) -> bool {
    charter.is_some_and(|charter| !charter.text.trim().is_empty())
}

pub(super) fn agent_prompt(member: &Member, charter: Option<&Charter>) -> String {
    match charter.filter(|charter| has_text(Some(charter))) {
        Some(charter) => beside_inbox(charter.text.trim_end()),
        None if member.role.is_empty() => format!("# {}\n\nYou are {}.", member.name, member.name),
        None => format!("# {} — {}\n\nYou are {}, the team's {}.", member.name, member.role, member.name, member.role),
    }
}

/// The charter, with a remark behind each line that names the folder in which other tools collect decisions.
fn beside_inbox(charter: &str) -> String {
    if !names_inbox(charter) {
        return charter.to_owned();
    }
    let mut text = String::with_capacity(charter.len() + 4 * prompt::INSTEAD_OF_INBOX.len());
    for line in charter.split_inclusive('\n') {
        let inner = line.trim_end();
        if names_inbox(inner) {
            // The last cell of a row ends with a bar.
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

/// What the roster takes of an agent's prompt at most, in bytes: a team of hundreds would leave no room for the work.
pub(super) const ROSTER_LENGTH: usize = 6_000;

/// Whom work can be given to.
pub(super) fn roster(team: &Team, limit: usize) -> String {
    roster_of(team.startable().map(|member| roster_line(member, "")), limit)
}

/// The same with what each of them owns, where there is room for all of that: names come first.
pub(super) fn roster_of_owners(team: &Team) -> String {
    let line = |member: &Member| roster_line(member, &owned(team, member, true));
    let told = roster_of(team.startable().map(line), usize::MAX);
    if told.len() <= ROSTER_LENGTH { told } else { roster(team, ROSTER_LENGTH) }
}

fn roster_of(lines: impl Iterator<Item = String>, limit: usize) -> String {
    let mut roster = String::new();
    push_within(&mut roster, "\n## The team\n\n", lines, limit);
    roster
}

/// Bytes of what a colleague owns.
const OWNED: usize = 160;

/// `; owns src/api/**; Endpoints; The database`. What the routing file gives a member by its path comes first.
pub(super) fn owned(team: &Team, member: &Member, with_paths: bool) -> String {
    /// Lines that say nothing by themselves.
    const FRAME: [char; 4] = ['#', '|', '<', '`'];
    let item = |line: &'_ str| match line.trim().split_once(' ') {
        Some(("-" | "*" | "+" | "•", rest)) => rest.trim().replace("**", ""),
        _ => line.trim().replace("**", ""),
    };
    let modules = team.modules.iter().filter(|module| with_paths && module.primary == member.slug);
    let charter = team.charters.get(&member.slug).map_or("", |charter| &charter.owns);
    let said = [&member.scope, charter].into_iter().flat_map(str::lines).map(item);
    let said = said.filter(|line| !line.is_empty() && !line.starts_with(FRAME));
    let owned: Vec<String> = modules.map(|module| module.path.clone()).chain(said).collect();
    if owned.is_empty() { String::new() } else { format!("; owns {}", owned.join("; ")) }
}

/// What every session is told alike, so that providers can keep it from one agent to the next.
pub(super) fn team_context(project: &str, roster: &str) -> String {
    [prompt::TEAMWORK, project, roster].concat()
}

/// What only this member is told, whatever its task.
pub(super) fn own_context(team: &Team, member: &Member) -> String {
    let mut context = format!("\nYou are {}.\n", one_line(&member.name));
    let ceremonies: String = facilitated(team, member).map(ceremony_line).collect();
    if !ceremonies.is_empty() {
        context
            .push_str(&format!("\nWhere the task calls for one of these meetings, you facilitate it:\n\n{ceremonies}"));
    }
    context
}

/// The ceremonies that are this member's to facilitate.
pub(super) fn facilitated<'a>(team: &'a Team, member: &'a Member) -> impl Iterator<Item = &'a Ceremony> {
    let is_own = |ceremony: &&Ceremony| ceremony.enabled && ceremony.facilitator.as_ref() == Some(&member.slug);
    team.ceremonies.iter().filter(is_own)
}

pub(super) fn ceremony_line(ceremony: &Ceremony) -> String {
    let said: Vec<String> = [&ceremony.when, &ceremony.condition]
        .iter()
        .map(|text| line(text, 200))
        .filter(|text| !text.is_empty())
        .collect();
    let said = if said.is_empty() { String::new() } else { format!(": {}", said.join("; ")) };
    format!("- {} ({}){said}\n", one_line(&ceremony.name), place(&ceremony.source))
}

fn roster_line(member: &Member, owned: &str) -> String {
    let role = if member.role.is_empty() { String::new() } else { format!(": {}", one_line(&member.role)) };
    format!("- {} (`{}`){role}{}\n", one_line(&member.name), member.slug, line(owned, OWNED))
}

/// Beside the charter; where there is none, in the agent's folder.
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
