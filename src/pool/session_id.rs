//! What sessions are called: stable names, derived from what they are for.

use crate::model::{RunId, Slug};

/// `squad-<agent>-<run>`: `[A-Za-z0-9_-]` only, which is what the Copilot CLI takes, and no longer than a file's name
/// may be.
pub(crate) fn session_id(agent: &Slug, run: &RunId) -> String {
    format!("squad-{}-{run}", part_of_id(agent))
}

/// `squad-<agent>`: the session that stays.
pub(crate) fn standing_session_id(agent: &Slug) -> String {
    format!("squad-{}", part_of_id(agent))
}

/// A long slug is cut and told apart by its hash.
fn part_of_id(agent: &Slug) -> String {
    const LONGEST: usize = 64;
    let slug: String = agent.as_str().chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')).collect();
    if slug == agent.as_str() && slug.len() <= LONGEST {
        return slug;
    }
    let start = &slug[..slug.len().min(LONGEST - 9)];
    format!("{start}-{}", &blake3::hash(agent.as_str().as_bytes()).to_hex()[..8])
}

/// The run that a session was opened for; `None`: for none.
pub(crate) fn run_of_session(id: &str) -> Option<RunId> {
    let mut parts = id.strip_prefix("squad-")?.rsplitn(4, '-');
    let (random, time, date, _agent) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_number = |text: &str, length| text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_run = is_number(date, 8) && is_number(time, 6);
    RunId::parse(&format!("{date}-{time}-{random}")).filter(|_| is_run)
}
