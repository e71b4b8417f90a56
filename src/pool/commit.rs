//! `squad_commit`: commits an agent's own files for it. The sandbox keeps its own git from that.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::requests::{RequestHandler, Requester};
use super::work_tree::Committable;
use crate::engine::Approval;
use crate::git::Landing;
use crate::model::{Access, IntoMap, list};
use crate::policy::PathScope;
use crate::tools::{Committing, Tool};

impl RequestHandler {
    /// What the model reads: the commit with its files and what was left out, or why there is none.
    pub(super) async fn commit(
        &self,
        requester: &Requester,
        call: &str,
        Committing { message, paths }: Committing,
    ) -> Result<String, String> {
        let tree = requester.tree.as_ref().filter(|_| !requester.cannot_change());
        let tree = tree.ok_or("you may not change anything here")?;
        if requester.is_placed() {
            let by_itself = "you work in a clone of your own: squad commits what you leave in its work tree";
            return Err(format!("{by_itself} when your work ends"));
        }
        if !self.may_commit {
            let only = "squad commits only in a command that the user runs in the foreground and that may commit";
            return Err(format!("{only}; leave your changes in the work tree and say so"));
        }
        let unknown = || "it is not known which changes are yours, so squad commits none".to_owned();
        let (found, snapshot) = tree.committable(&requester.agent).await.ok_or_else(unknown)?;
        let prefix = tree.prefix();
        let paths = paths.iter().map(|path| self.in_repository(prefix, path)).collect();
        let (files, left) = chosen(found, paths);
        let left: String =
            left.iter().map(|(path, why)| format!("\nLeft out: {}: {why}", shown(prefix, path))).collect();
        if files.is_empty() {
            return Err(format!("there is nothing of yours to commit{left}"));
        }
        let names: Vec<&str> = files.iter().map(|path| shown(prefix, path)).collect();
        let detail = as_command(&message, &names);
        if let Approval::Deny(reason) =
            self.permit(requester, Some(call), Access::Shell, Tool::Commit.name(), &detail).await
        {
            return Err(reason);
        }
        // What was asked about, whatever has happened until there was an answer.
        let done = tree.commit(&requester.agent, snapshot, files.clone(), message).await;
        // Not every engine reports the end of such a call.
        tree.end_call(&requester.agent, call, done.is_ok());
        match done? {
            Landing::Landed { commit } => {
                let commit = commit.get(..12).unwrap_or(&commit);
                Ok(format!("Committed as {commit}: {}.{left}", list(names)))
            }
            Landing::NotLanded { reason, hint } => Err(format!("nothing is committed: {reason} ({hint})")),
        }
    }
}

impl RequestHandler {
    /// A path as a model names it, relative to the repository's root, which is empty itself.
    fn in_repository(&self, prefix: &str, path: &str) -> String {
        let root = self.project.strip_suffix(prefix.trim_end_matches('/')).unwrap_or(&self.project);
        let named = Path::new(&self.project).join(path);
        PathScope::of(&named, Path::new(root)).in_project().unwrap_or_else(|_| path.to_owned())
    }
}

/// The files to commit, and those that are left out, with the reason.
fn chosen(found: Committable, paths: Vec<String>) -> (Vec<String>, BTreeMap<String, String>) {
    const BY_COMMAND: &str =
        "it changed while your command ran, or since you wrote it: name it in `paths` if that was you";
    let Committable { own, by_command, others } = found;
    let is_named = !paths.is_empty();
    let known = || own.iter().chain(&by_command).chain(others.keys());
    let mut wanted: BTreeSet<String> = BTreeSet::new();
    if !is_named {
        wanted.extend(known().cloned());
    }
    for path in paths {
        // A folder stands for what is in it.
        let is_in = |file: &&String| Path::new(file).starts_with(&path);
        let found: Vec<String> = known().filter(is_in).cloned().collect();
        match found.is_empty() {
            true => drop(wanted.insert(path)),
            false => wanted.extend(found),
        }
    }
    let reason = |path: String| {
        let why = others.get(&path).map(String::as_str);
        let why = why.or_else(|| by_command.contains(&path).then_some(BY_COMMAND));
        let why = why.unwrap_or("you have not changed it in this run").to_owned();
        (path, why)
    };
    let is_chosen = |path: &String| own.contains(path) || is_named && by_command.contains(path);
    let (files, left): (Vec<String>, Vec<String>) = wanted.into_iter().partition(is_chosen);
    (files, left.into_iter().map(reason).into_map())
}

/// A path as a model names it: relative to the project's root.
fn shown<'p>(prefix: &str, path: &'p str) -> &'p str {
    path.strip_prefix(prefix).unwrap_or(path)
}

/// The call as the rules on commands and a person read it.
fn as_command(message: &str, files: &[&str]) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let files: String = files.iter().map(|path| format!(" {}", quoted(path))).collect();
    format!("git commit -m {} --{files}", quoted(message))
}
