//! Decisions that the next commit would withdraw, because their files are deleted in the index. Somebody may want that;
//! or a `git rebase --autostash`, say, read the branch before a landing and wrote the index after it.

use std::collections::BTreeSet;

use crate::git::{Error, Repository};
use crate::model::{IntoSet, plural};
use crate::parse::KNOWLEDGE;

/// Decision files that HEAD has and the index has not.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Withdrawn {
    /// Paths from the repository's root.
    paths: Vec<String>,
    /// Those whose file is still in the work tree.
    there: Vec<String>,
}

impl Withdrawn {
    /// `folder`: the team's, from the repository's root.
    pub(crate) fn find(repository: &Repository, folder: &str) -> Result<Self, Error> {
        let folders = ["decisions", KNOWLEDGE].map(|name| format!("{folder}/{name}"));
        let changed = repository.staged_moves(&folders.each_ref().map(String::as_str))?;
        // A decision keeps its id at the end of its file's name, whatever people do to the rest.
        let end = |path: &String| path.rsplit('-').next().unwrap_or(path).to_owned();
        let added: BTreeSet<String> = changed.added.iter().map(end).into_set();
        let paths: Vec<String> = changed.deleted.into_iter().filter(|path| !added.contains(&end(path))).collect();
        let is_there = |path: &&String| repository.work_dir().is_some_and(|root| root.join(path).exists());
        let there = paths.iter().filter(is_there).cloned().collect();
        Ok(Self { paths, there })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    pub(crate) fn message(&self) -> String {
        let files = plural(self.paths.len(), "decision");
        let (verb, what) = if self.paths.len() == 1 { ("is", "it") } else { ("are", "them") };
        format!("{files} of this branch {verb} deleted in the index: the next commit withdraws {what}")
    }

    /// The commands that bring them back. A file that is there is not overwritten.
    pub(crate) fn hint(&self) -> String {
        let gone: Vec<&String> = self.paths.iter().filter(|path| !self.there.contains(path)).collect();
        let command = |options: &str, paths: Vec<&String>| {
            let paths = paths.into_iter().map(|path| format!(" ':/{path}'")).collect::<String>();
            format!("`git restore {options} --{paths}`")
        };
        let commands = [("--staged", self.there.iter().collect()), ("--staged --worktree", gone)];
        let commands = commands.into_iter().filter(|(_, paths): &(_, Vec<&String>)| !paths.is_empty());
        let commands: Vec<String> = commands.map(|(options, paths)| command(options, paths)).collect();
        format!("unless you want that: {}", commands.join(" and "))
    }
}
