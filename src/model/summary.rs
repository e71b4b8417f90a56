//! What the work of a run comes to, in the words that the screen, the log and prompts share.

use std::fmt;

use super::{
    AgentGitChanges, Change, ChangeClass, ChangeEvidence, GitChanges, RefChange, Slug, first_line, list, plural,
    printable_line,
};

/// Who worked together: an agent that is alone did with another run.
pub(crate) fn together(by: &[Slug]) -> String {
    match by {
        [agent] => format!("{agent} and another run"),
        by => list(by),
    }
}

/// `failed (exit 3): no such file`
pub(crate) fn failure(exit_code: Option<i64>, result: &str) -> String {
    let code = exit_code.map(|code| format!(" (exit {code})")).unwrap_or_default();
    match first_line(result, RESULT) {
        line if line.is_empty() => format!("failed{code}"),
        line => format!("failed{code}: {line}"),
    }
}

/// `src/a.rs (+3 -1; together: ada and bob)`
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.added.zip(self.removed).map(|(added, removed)| format!("+{added} -{removed}"));
        let how = (self.how == Some(ChangeEvidence::Command)).then(|| "by a command".to_owned());
        let parts: Vec<String> = lines.into_iter().chain(self.whose()).chain(how).collect();
        f.write_str(&printable_line(&self.path))?;
        if parts.is_empty() { Ok(()) } else { write!(f, " ({})", parts.join("; ")) }
    }
}

impl Change {
    /// Who made it, if not the agent alone.
    pub(crate) fn whose(&self) -> Option<String> {
        let class = self.class;
        Some(match class {
            ChangeClass::Own => return None,
            ChangeClass::Together => format!("{class}: {}", together(&self.by)),
            ChangeClass::Yours => format!("{class}: the person or another program"),
            ChangeClass::OtherRun => class.to_string(),
            ChangeClass::Unknown => format!("{class}: while the run was down"),
        })
    }
}

/// Characters shown of a result.
const RESULT: usize = 90;
/// The most commits or refs that are named.
const NAMED: usize = 3;

impl fmt::Display for GitChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { commits, has_more_commits, refs, config, hooks, index } = self;
        let mut parts = Vec::new();
        if !commits.is_empty() {
            let short = commits.iter().map(|commit| commit.get(..7).unwrap_or(commit));
            let more = if *has_more_commits { "more than " } else { "" };
            parts.push(format!("{more}{} ({})", plural(commits.len(), "commit"), named(short, commits.len())));
        }
        // A branch moves with its new commits; a new one, another ref, and a `HEAD` that left its branch say where they are.
        let has_moved_along = |RefChange { name, from, to }: &RefChange| {
            let is_branch = name == "HEAD" || name.starts_with("refs/heads/");
            let was_commit = from.as_ref().is_some_and(|from| !from.starts_with("ref"));
            is_branch && was_commit && to.as_ref().is_some_and(|to| commits.contains(to))
        };
        let is_news = |moved: &&RefChange| !has_moved_along(moved);
        let refs: Vec<String> = refs.iter().filter(is_news).map(RefChange::to_string).collect();
        parts.extend((!refs.is_empty()).then(|| named(&refs, refs.len())));
        parts.extend((!config.is_empty()).then(|| format!("configuration {}", named(config, config.len()))));
        parts.extend((!hooks.is_empty()).then(|| format!("hooks {}", named(hooks, hooks.len()))));
        parts.extend((!index.is_empty()).then(|| format!("{} staged or unstaged", plural(index.len(), "path"))));
        f.write_str(&parts.join(", "))
    }
}

impl fmt::Display for AgentGitChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = (!self.own.is_empty()).then(|| self.own.to_string());
        let shared = self.together.iter();
        let shared =
            shared.map(|shared| format!("{} ({}): {}", ChangeClass::Together, together(&shared.by), shared.changes));
        let unknown = (!self.unknown.is_empty()).then(|| format!("{}: {}", ChangeClass::Unknown, self.unknown));
        f.write_str(&own.into_iter().chain(shared).chain(unknown).collect::<Vec<_>>().join("; "))
    }
}

fn named(names: impl IntoIterator<Item = impl fmt::Display>, count: usize) -> String {
    let shown = list(names.into_iter().take(NAMED));
    if count > NAMED { format!("{shown} and {} more", count - NAMED) } else { shown }
}

impl fmt::Display for RefChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, from, to } = self;
        let short = |value: &str| {
            let value = value.strip_prefix("refs/heads/").unwrap_or(value);
            let is_id = value.len() >= 40 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
            if is_id { value.get(..7).unwrap_or(value).to_owned() } else { value.to_owned() }
        };
        let name = match name.split_at_checked("refs/heads/".len()) {
            Some(("refs/heads/", branch)) => format!("branch {branch}"),
            _ if name == "refs/stash" => "the stash".to_owned(),
            _ => name.strip_prefix("refs/tags/").map_or_else(|| name.clone(), |tag| format!("tag {tag}")),
        };
        match (from, to) {
            (Some(_), None) => write!(f, "{name} deleted"),
            (None, Some(_)) => write!(f, "{name} created"),
            (Some(from), Some(to)) => write!(f, "{name} moved from {} to {}", short(from), short(to)),
            (None, None) => f.write_str(&name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_say_where_they_are_unless_their_branch_moved_along() {
        let (old, new) = ("a".repeat(40), "b".repeat(40));
        for (name, from, said) in [
            ("refs/heads/main", Some(&*old), ""),
            ("HEAD", Some(&*old), ""),
            ("HEAD", Some("refs/heads/main"), ", HEAD moved from main to bbbbbbb"),
            ("refs/heads/main", None, ", branch main created"),
            ("refs/tags/v1", Some(&*old), ", tag v1 moved from aaaaaaa to bbbbbbb"),
            ("refs/squad/log", Some(&*old), ", refs/squad/log moved from aaaaaaa to bbbbbbb"),
        ] {
            let (name, from) = (name.to_owned(), from.map(str::to_owned));
            let refs = vec![RefChange { name, from, to: Some(new.clone()) }];
            let changes = GitChanges { commits: vec![new.clone()], refs, ..GitChanges::default() };
            assert_eq!(changes.to_string(), format!("1 commit (bbbbbbb){said}"));
        }
    }
}
