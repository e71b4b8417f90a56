//! Session names: stable, and derived from their purpose.

use crate::model::{RunId, Slug};

/// `squad-<agent>-<run>`: limited to `[A-Za-z0-9_-]`, as the Copilot CLI requires, and to the length of a file name.
pub(crate) fn session_id(agent: &Slug, run: &RunId) -> String {
    format!("squad-{}-{run}", part_of_id(agent))
}

/// `squad-<agent>`: the session kept between runs.
pub(crate) fn standing_session_id(agent: &Slug) -> String {
    format!("squad-{}", part_of_id(agent))
}

/// A long slug is truncated and made unique by its hash.
fn part_of_id(agent: &Slug) -> String {
    const MAX_LENGTH: usize = 64;
    let slug: String = agent.as_str().chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')).collect();
    if slug == agent.as_str() && slug.len() <= MAX_LENGTH {
        return slug;
    }
    let start = &slug[..slug.len().min(MAX_LENGTH - 9)];
    format!("{start}-{}", &blake3::hash(agent.as_str().as_bytes()).to_hex()[..8])
}

/// The run that a session was opened for, if any.
pub(crate) fn run_of_session(id: &str) -> Option<RunId> {
    let mut parts = id.strip_prefix("squad-")?.rsplitn(4, '-');
    let (random, time, date, _agent) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_number = |text: &str, length| text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_run = is_number(date, 8) && is_number(time, 6);
    RunId::parse(&format!("{date}-{time}-{random}")).filter(|_| is_run)
}
