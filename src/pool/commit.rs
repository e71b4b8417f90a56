//! `squad_commit`: commits an agent's own files for it. The sandbox keeps its own git from that.

use std::collections::{BTreeMap, BTreeSet};

use super::requests::{RequestHandler, Requester};
use super::work_tree::Committable;
use crate::engine::Approval;
use crate::git::Landing;
use crate::model::{Access, list};
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
        if !self.may_commit {
            let only = "squad commits only in a command that the user runs in the foreground and that may commit";
            return Err(format!("{only}; leave your changes in the work tree and say so"));
        }
        let detail = as_command(&message, &paths);
        if let Approval::Deny(reason) =
            self.permit(requester, Some(call), Access::Shell, Tool::Commit.name(), &detail).await
        {
            return Err(reason);
        }
        let done = match tree.committable(&requester.agent).await {
            None => Err("it is not known which changes are yours, so squad commits none".to_owned()),
            Some(found) => {
                let (files, left) = chosen(found, paths);
                match files.is_empty() {
                    true => Err(format!("there is nothing of yours to commit{}", named(&left))),
                    false => {
                        let shown = list(&files);
                        let done = tree.commit(&requester.agent, files, message).await;
                        done.map(|landing| (landing, shown, named(&left)))
                    }
                }
            }
        };
        // Not every engine reports the end of such a call.
        tree.end_call(&requester.agent, call, done.is_ok());
        match done? {
            (Landing::Landed { commit }, files, left) => {
                let commit = commit.get(..12).unwrap_or(&commit);
                Ok(format!("Committed as {commit}: {files}.{left}"))
            }
            (Landing::NotLanded { reason, hint }, ..) => Err(format!("nothing is committed: {reason} ({hint})")),
        }
    }
}

/// The files to commit, and those that are left out, with the reason.
fn chosen(found: Committable, paths: Vec<String>) -> (Vec<String>, BTreeMap<String, String>) {
    let Committable { own, others } = found;
    let wanted: BTreeSet<String> = match paths.is_empty() {
        true => own.iter().chain(others.keys()).cloned().collect(),
        false => paths.into_iter().map(|path| path.trim_start_matches("./").to_owned()).collect(),
    };
    let reason = |path: &String| {
        let why = others.get(path).map_or("you have not changed it in this run", |why| why);
        (path.clone(), why.to_owned())
    };
    let (files, left): (Vec<String>, Vec<String>) = wanted.into_iter().partition(|path| own.contains(path));
    (files, left.iter().map(reason).collect())
}

fn named(left: &BTreeMap<String, String>) -> String {
    let lines = left.iter().map(|(path, why)| format!("\nLeft out: {path}: {why}"));
    lines.collect()
}

/// The call as the rules on commands and a person read it.
fn as_command(message: &str, paths: &[String]) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let mut command = format!("git commit -m {}", quoted(message));
    if !paths.is_empty() {
        command.push_str(" --");
        paths.iter().for_each(|path| command.push_str(&format!(" {}", quoted(path))));
    }
    command
}
