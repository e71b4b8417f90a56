//! Committing what files hold in the work tree, as `git commit --only` does.

use std::collections::BTreeMap;

use gix::objs::tree::EntryMode;
use jiff::Timestamp;

use super::{
    Landing, NewCommit, Stop, check_ready, known, move_branch, not_landed, recovered, refuse, wants_signature,
    write_commit,
};
use crate::git::{
    commit::Identity, error::Error, objects::NewObjects, path::check_path, references::parse_id, repository::Repository,
};

impl Repository {
    /// Commits what these files hold in the work tree, and nothing else, to the checked-out branch: with the user's
    /// signature if that is configured, without hooks. What is staged of other files stays so. Paths are relative to the
    /// root; a file that is gone is removed.
    ///
    /// The index is changed first: if this process is killed before the branch moves, the files are staged.
    pub(crate) fn commit_files(
        &self,
        paths: &[String],
        message: &str,
        committer: Option<&Identity>,
        at: Timestamp,
    ) -> Result<Landing, Error> {
        paths.iter().map(String::as_str).try_for_each(check_path)?;
        let lock = self.lock_work_tree()?;
        let committed =
            recovered(self, &lock, committer, at).and_then(|()| commit_files(self, paths, message, committer, at));
        committed.map_or_else(not_landed, |commit| Ok(Landing::Landed { commit }))
    }
}

fn commit_files(
    repository: &Repository,
    paths: &[String],
    message: &str,
    committer: Option<&Identity>,
    at: Timestamp,
) -> Result<String, Stop> {
    let Some(branch) = repository.head()?.branch else {
        return refuse("HEAD is detached: no branch is checked out", "git switch BRANCH");
    };
    let (_, base) = check_ready(repository, &branch, false)?;
    let new = NewCommit { branch: &branch, base, message, committer: known(committer)?, at };
    let status = ["status", "--porcelain=v2", "-z", "--no-renames", "--untracked-files=no", "--"];
    let status = repository.call(&status).arguments(paths).succeed()?.stdout;
    // `1 XY …`: what is staged differs from the commit, and the work tree from what is staged.
    let is_other =
        |record: &&[u8]| matches!(record, [b'1', b' ', staged, work, ..] if *staged != b'.' && *work != b'.');
    if let Some(record) = status.split(|byte| *byte == 0).find(is_other) {
        let path = record.splitn(9, |byte| *byte == b' ').last().unwrap_or_default();
        let path = String::from_utf8_lossy(path);
        return refuse(format!("{path} is staged with other content"), format!("git restore --staged {path}"));
    }
    let input: Vec<u8> = paths.iter().flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
    let staged =
        repository.call(&["update-index", "--add", "--remove", "--replace", "-z", "--stdin"]).input(input.clone());
    staged.succeed()?;
    let committed = commit_staged(repository, paths, &new);
    if !matches!(committed, Ok(Some(_))) {
        let reset = ["reset", "--quiet", "--pathspec-from-file=-", "--pathspec-file-nul"];
        repository.call(&reset).input(input).succeed()?;
    }
    match committed? {
        Some(commit) => Ok(commit),
        None => refuse("there is nothing to commit: the branch has these files as they are", "see `git status`"),
    }
}

/// Commits these files as the index has them. `None`: the branch has them already.
fn commit_staged(repository: &Repository, paths: &[String], new: &NewCommit<'_>) -> Result<Option<String>, Stop> {
    let store = repository.objects();
    let listed = repository.call(&["ls-files", "--stage", "-z", "--"]).arguments(paths).succeed()?.stdout;
    let mut edits: BTreeMap<Vec<u8>, _> = paths.iter().map(|path| (path.clone().into_bytes(), None)).collect();
    for record in listed.split(|byte| *byte == 0) {
        // `MODE ID STAGE\tPATH`
        let Some(tab) = record.iter().position(|byte| *byte == b'\t') else { continue };
        let mut fields = record[..tab].split(|byte| *byte == b' ');
        let mode = fields.next().and_then(EntryMode::from_bytes);
        let id = fields.next().and_then(|id| parse_id(id, repository.hash()));
        edits.insert(record[tab + 1..].to_vec(), mode.zip(id));
    }
    let base = new.base.map(|base| store.tree_of(&base)).transpose()?;
    let mut objects = NewObjects::new(repository.hash());
    let tree = repository.edited(&store, base, &edits, &mut objects)?;
    if base == Some(tree) {
        return Ok(None);
    }
    let (commit, kept) = write_commit(repository, &mut objects, tree, new, wants_signature(repository)?)?;
    match move_branch(repository, new, (commit, &kept))? {
        true => Ok(Some(commit.to_string())),
        false => refuse(format!("the branch {} moved meanwhile", new.branch), super::TRY_AGAIN),
    }
}
