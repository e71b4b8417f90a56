//! Questions about commits, asked of the `git` program: what a revision is called is git's to say.

use super::error::Error;
use super::repository::Repository;

impl Repository {
    /// The commit that a revision names; `None` when it names none here.
    pub(crate) fn resolve(&self, revision: &str) -> Result<Option<String>, Error> {
        let wanted = format!("{revision}^{{commit}}");
        let answer = self.call(&["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted]).run()?;
        // Older gits print the separator too.
        Ok(answer.is_success().then(|| answer.text().lines().last().unwrap_or_default().to_owned()))
    }

    /// The commit where two histories part; `None` where they have nothing in common, or too little is here to tell.
    pub(crate) fn merge_base(&self, one: &str, other: &str) -> Result<Option<String>, Error> {
        let answer = self.call(&["merge-base", one, other]).run()?;
        Ok(answer.is_success().then(|| answer.text()).filter(|id| !id.is_empty()))
    }

    /// The values of a trailer in the commits that `head` has and `base` has not.
    pub(crate) fn trailers(&self, name: &str, base: &str, head: &str) -> Result<Vec<String>, Error> {
        let format = format!("--format=%(trailers:key={name},valueonly,only)");
        let answer = self.call(&["log", &format, &format!("{base}..{head}")]).succeed()?;
        Ok(answer.text().lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
    }

    /// Branches, local and of remotes: their names as people write them and their commits.
    pub(crate) fn branches(&self) -> Result<Vec<(String, String)>, Error> {
        let format = "--format=%(refname:short)%00%(objectname)%00%(symref)";
        let answer = self.call(&["for-each-ref", format, "refs/heads", "refs/remotes"]).succeed()?;
        let text = answer.text();
        let lines = text.lines().filter_map(|line| {
            let mut parts = line.split('\0');
            let (name, commit, symbolic) = (parts.next()?, parts.next()?, parts.next()?);
            symbolic.is_empty().then(|| (name.to_owned(), commit.to_owned()))
        });
        Ok(lines.collect())
    }

    /// The branches that a revision means: the checked-out one for `HEAD`, `x` for `origin/x`, and for a bare commit
    /// those that are at it.
    pub(crate) fn branches_of(&self, revision: &str, commit: &str) -> Result<Vec<String>, Error> {
        let answer =
            self.call(&["rev-parse", "--symbolic-full-name", "--quiet", "--end-of-options", revision]).run()?;
        let text = answer.text();
        if let Some(branch) = text.lines().last().and_then(branch) {
            return Ok(vec![branch.to_owned()]);
        }
        let at = format!("--points-at={commit}");
        let answer =
            self.call(&["for-each-ref", "--format=%(refname)", &at, "refs/heads", "refs/remotes"]).succeed()?;
        Ok(answer.text().lines().filter_map(branch).map(str::to_owned).collect())
    }
}

/// The branch that a ref is, or follows on a remote.
fn branch(reference: &str) -> Option<&str> {
    let remote = reference.strip_prefix("refs/remotes/").and_then(|name| name.split_once('/')).map(|(_, name)| name);
    reference.strip_prefix("refs/heads/").or(remote).filter(|name| *name != "HEAD")
}
