//! Information about the current run, appended to an agent's task. It is not part of any hash or cached prefix.

use std::collections::BTreeMap;
use std::time::Duration;

use super::text::{head, one_line};
use crate::model::{Slug, quote};

/// Information about a run.
pub(crate) struct Situation<'a> {
    /// The user according to git.
    pub(crate) user: Option<&'a str>,
    pub(crate) branch: Option<&'a str>,
    /// How requests that change something are answered, in words.
    pub(crate) permissions: &'a str,
    /// Where its programs may write; `None`: nothing but the permissions keeps them from anything.
    pub(crate) sandbox: Option<String>,
    /// Time limits: silence, one tool call, total work.
    pub(crate) limits: [Duration; 3],
}

impl Situation<'_> {
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        if let Some(user) = self.user {
            text.push_str(&format!("You work for {}.\n", one_line(user)));
        }
        if let Some(branch) = self.branch {
            text.push_str(&format!("Branch: {}\n", one_line(branch)));
        }
        let [silence, tool, work] =
            self.limits.map(|limit| if limit == Duration::MAX { None } else { Some(format_duration(limit)) });
        let limits = [
            silence.map(|limit| format!("{limit} without a sign of life")),
            tool.map(|limit| format!("{limit} for one tool call")),
            work.map(|limit| format!("{limit} of work")),
        ];
        let limits: Vec<String> = limits.into_iter().flatten().collect();
        text.push_str(&format!("Permissions: {}\n", self.permissions));
        if let Some(sandbox) = &self.sandbox {
            text.push_str(&format!("Sandbox: {sandbox}\n"));
        }
        if !limits.is_empty() {
            text.push_str(&format!("Time limits: {}.\n", limits.join(", ")));
        }
        text.push_str("Processes that you leave running are stopped and reported when you are done.\n");
        text
    }
}

/// Files that colleagues have written in the run so far.
pub(crate) fn written_by_others(files: &BTreeMap<Slug, Vec<String>>) -> String {
    files_of(files, "has written", "in this run")
}

/// Files that colleagues have changed since an agent's last task.
pub(crate) fn changed_by_others(files: &BTreeMap<Slug, Vec<String>>) -> String {
    files_of(files, "has changed", "since your last task")
}

fn files_of(files: &BTreeMap<Slug, Vec<String>>, did: &str, when: &str) -> String {
    /// Most files listed of one colleague.
    const MAX_FILES: usize = 20;
    let mut text = String::new();
    for (agent, paths) in files.iter().filter(|(_, paths)| !paths.is_empty()) {
        let shown: Vec<String> = paths.iter().take(MAX_FILES).map(|path| format!("`{}`", one_line(path))).collect();
        let more = paths.len().saturating_sub(MAX_FILES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        text.push_str(&format!("`{agent}` {did} {}{more} {when}.\n", shown.join(", ")));
    }
    text
}

/// Before the message of another run: what was asked earlier no longer holds.
pub(crate) fn new_task() -> &'static str {
    "A new task begins here. What you were asked before is over; files may have changed since. The task:\n\n"
}

/// squad's record of an agent's last work, for a session that has no history of it.
pub(crate) fn recorded_work(record: &str) -> String {
    format!(
        "\nYou worked in this project before, in a session that could not be continued. squad has recorded of your last \
         task:\n{}",
        quote(record)
    )
}

/// Earlier messages and answers of a conversation, oldest first, quoted so that none of it can act as squad's text.
pub(crate) fn earlier_turns(turns: &[(String, String)]) -> String {
    /// Most turns included. Agents that worked on older ones have them in their session.
    const MAX_TURNS: usize = 3;
    const MAX_MESSAGE: usize = 400;
    const MAX_ANSWER: usize = 1_000;
    let mut text = String::new();
    for (message, answer) in &turns[turns.len().saturating_sub(MAX_TURNS)..] {
        let (message, answer) = (head(message, MAX_MESSAGE), head(answer, MAX_ANSWER));
        text.push_str(&format!(
            "\nEarlier in this conversation:\n{}\nThe answer was:\n{}\n",
            quote(&message),
            quote(&answer)
        ));
    }
    text
}

/// `5m`, `1h 30m`.
fn format_duration(duration: Duration) -> String {
    jiff::SignedDuration::try_from(duration)
        .map_or_else(|_| format!("{duration:?}"), |duration| format!("{duration:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_about_the_run_take_a_few_lines() {
        let minutes = |count: u64| Duration::from_secs(60 * count);
        let situation = Situation {
            user: Some("Ann\n# Root"),
            branch: Some("feature/x"),
            permissions: "allow. All is allowed.",
            sandbox: Some("what you start can write here.".to_owned()),
            limits: [minutes(5), minutes(30), Duration::MAX],
        };
        assert_eq!(
            situation.text(),
            "You work for Ann.\nBranch: feature/x\nPermissions: allow. All is allowed.\n\
             Sandbox: what you start can write here.\n\
             Time limits: 5m without a sign of life, 30m for one tool call.\n\
             Processes that you leave running are stopped and reported when you are done.\n"
        );
        let (user, branch, sandbox, permissions) = (None, None, None, "deny.");
        let bare = Situation { user, branch, permissions, sandbox, limits: [Duration::MAX; 3] };
        assert!(bare.text().starts_with("Permissions: deny.\nProcesses"), "{}", bare.text());
    }

    #[test]
    fn files_of_colleagues_are_listed_up_to_a_limit() {
        let slug = |name: &str| Slug::fold(name).expect("a slug");
        let many: Vec<String> = (0..30).map(|at| format!("src/{at}.rs")).collect();
        let files =
            BTreeMap::from([(slug("ada"), vec!["a.rs".to_owned()]), (slug("bob"), many), (slug("cy"), Vec::new())]);
        let text = written_by_others(&files);
        assert!(text.starts_with("`ada` has written `a.rs` in this run.\n`bob` has written `src/0.rs`, "), "{text}");
        assert!(text.ends_with("`src/19.rs` and 10 more in this run.\n"), "{text}");
    }
}
