//! Queries about commits, answered by the `git` program, since only git knows how to resolve a revision.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use jiff::Timestamp;
use jiff::civil::Date;

use gix::ObjectId;

use super::error::Error;
use super::object_store::ObjectStore;
use super::references::{OWN_REFS, REFS, is_own};
use super::repository::Repository;
use super::walk::{Limits, PassedOver, Walk};
use crate::model::{IntoMap, IntoSet};

/// The input of a call that reads one item from each line.
fn lines(items: impl Iterator<Item = String>) -> String {
    items.map(|item| item + "\n").collect()
}

impl Repository {
    /// The commit that a revision names; `None` if there is none here.
    pub(crate) fn resolve(&self, revision: &str) -> Result<Option<String>, Error> {
        let wanted = format!("{revision}^{{commit}}");
        let answer = self.call(&["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted]).run()?;
        // Older gits print the separator too.
        Ok(answer.is_success().then(|| answer.text().lines().last().unwrap_or_default().to_owned()))
    }

    /// The merge base of two commits; `None` if they have no common history, or too little of it is here to tell.
    pub(crate) fn merge_base(&self, one: &str, other: &str) -> Result<Option<String>, Error> {
        let answer = self.call(&["merge-base", one, other]).run()?;
        Ok(answer.is_success().then(|| answer.text()).filter(|id| !id.is_empty()))
    }

    /// Which of these commits are in the history of `into`. A commit that is not in this clone counts as unmerged.
    pub(crate) fn merged(&self, commits: &BTreeSet<String>, into: &str) -> Result<BTreeSet<String>, Error> {
        let store = self.objects();
        let is_here = |commit: &&String| self.parse_commit(commit).is_ok_and(|id| store.tree_of(&id).is_ok());
        let mut merged: BTreeSet<String> = commits.iter().filter(is_here).cloned().into_set();
        if !merged.is_empty() {
            let input = lines(merged.iter().cloned().chain([format!("^{into}")]));
            let outside = self.call(&["rev-list", "--stdin"]).input(input).succeed()?;
            let outside = outside.text();
            let outside: BTreeSet<&str> = outside.lines().into_set();
            merged.retain(|commit| !outside.contains(commit.as_str()));
        }
        Ok(merged)
    }

    /// What these commits, which `head` does not have, leave in the files that they change: the contents at the last of
    /// them that a branch or another ref still has. `None`: there is no such file. Of the refs in squad's folders, only
    /// those count that the commits' authors `moved`.
    pub(crate) fn contents_aside(
        &self,
        commits: &BTreeSet<String>,
        moved: &BTreeSet<String>,
        head: Option<&str>,
    ) -> Result<BTreeMap<String, BTreeSet<Option<String>>>, Error> {
        let exclude: Vec<String> =
            OWN_REFS.iter().flat_map(|kind| ["", "/*"].map(|all| format!("--exclude={REFS}{kind}{all}"))).collect();
        let references = self.references();
        // A symbolic one adds nothing to what it leads to.
        let moved = moved.iter().filter(|name| is_own(name)).filter_map(|name| references.read(name).ok()?);
        let tips = moved.map(|id| id.to_string()).chain(head.map(|head| format!("^{head}")));
        let call = self.call(&["rev-list", "--topo-order", "--parents"]).arguments(&exclude).arguments(&["--all"]);
        let listed = call.arguments(&tips.collect::<Vec<_>>()).succeed()?.text();
        let lines = listed.lines().map(|line| line.split(' '));
        let parents: HashMap<&str, Vec<&str>> =
            lines.clone().filter_map(|mut ids| Some((ids.next()?, ids.collect()))).collect();
        let changed = self.changed_by(commits.iter().filter(|commit| parents.contains_key(commit.as_str())))?;
        let mut contents: BTreeMap<String, BTreeSet<Option<String>>> = BTreeMap::new();
        let mut seen = HashSet::new();
        // Children stand before their parents.
        for tip in lines.filter_map(|mut ids| ids.next()).filter(|commit| changed.contains_key(*commit)) {
            if seen.contains(tip) {
                continue;
            }
            let (store, root) = self.tree_at(tip)?;
            let (mut history, mut next) = (HashSet::new(), vec![tip]);
            while let Some(commit) = next.pop() {
                if history.insert(commit) {
                    next.extend(parents.get(commit).into_iter().flatten());
                }
            }
            for path in history.iter().filter_map(|commit| changed.get(*commit)).flatten() {
                let content = store.find(root, path)?.map(|(_, id)| id.to_string());
                contents.entry(path.clone()).or_default().insert(content);
            }
            seen.extend(history);
        }
        Ok(contents)
    }

    /// The files that each of these commits changes in its first parent; without those whose names are not UTF-8.
    fn changed_by<'c>(
        &self,
        commits: impl Iterator<Item = &'c String>,
    ) -> Result<BTreeMap<String, Vec<String>>, Error> {
        let pairs = self.with_first_parents(commits)?;
        let ids = pairs.lines().filter_map(|line| line.split(' ').next());
        let mut changed: BTreeMap<String, Vec<String>> = ids.map(|id| (id.to_owned(), Vec::new())).into_map();
        let call = self.call(&["diff-tree", "--stdin", "--raw", "-z", "-r", "--root", "--no-renames"]);
        let listed = call.input(pairs).succeed()?.stdout;
        let mut of_commit = None;
        let mut records = listed.split(|byte| *byte == 0);
        while let Some(record) = records.next() {
            if record.starts_with(b":") {
                let name = records.next().and_then(|name| String::from_utf8(name.to_vec()).ok());
                of_commit.iter_mut().for_each(|files: &mut &mut Vec<String>| files.extend(name.clone()));
            } else if let Ok(id) = str::from_utf8(record) {
                of_commit = changed.get_mut(id);
            }
        }
        Ok(changed)
    }

    /// These commits, each with its first parent, as `diff-tree` reads them: it compares the two.
    fn with_first_parents<'c>(&self, commits: impl Iterator<Item = &'c String>) -> Result<String, Error> {
        let call = self.call(&["rev-list", "--no-walk=unsorted", "--parents", "--stdin"]);
        let listed = call.input(lines(commits.cloned())).succeed()?.text();
        Ok(lines(listed.lines().map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" "))))
    }

    /// What each of these commits changes in its first parent, below a line that names it.
    pub(crate) fn diff_of_commits(&self, commits: &BTreeSet<String>) -> Result<String, Error> {
        if commits.is_empty() {
            return Ok(String::new());
        }
        let options = ["--stdin", "-p", "-r", "--root", "--no-color", "--no-renames", "--no-ext-diff", "--no-textconv"];
        let title = "--pretty=format:%nIn commit %H, which the checked-out branch does not have:%n";
        let call = self.call(&["diff-tree", title]).arguments(&options);
        let diffs = call.input(self.with_first_parents(commits.iter())?).succeed()?.stdout;
        Ok(String::from_utf8_lossy(&diffs).into_owned())
    }

    /// The values of a trailer in the commits of `base..head`.
    pub(crate) fn trailers(&self, name: &str, base: &str, head: &str) -> Result<Vec<String>, Error> {
        let format = format!("--format=%(trailers:key={name},valueonly,only)");
        let answer = self.call(&["log", &format, &format!("{base}..{head}")]).succeed()?;
        Ok(answer.text().lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
    }

    /// Who last changed a line of a file, following renames and ignoring white space. `path` is relative to the
    /// repository's root, `line` counts from 1. `None`: git knows no such line.
    pub(crate) fn blame(&self, revision: Option<&str>, path: &str, line: usize) -> Result<Option<Blame>, Error> {
        let range = format!("{line},{line}");
        let mut arguments = vec!["blame", "--porcelain", "-w", "-M", "-L", &range];
        arguments.extend(revision);
        arguments.extend(["--", path]);
        let answer = self.call(&arguments).run()?;
        Ok(answer.is_success().then(|| Blame::parse(&answer.stdout)).flatten())
    }

    /// The blob id that git would give a file of the work tree; `None`: there is no such file. `path` is relative to the
    /// repository's root.
    pub(crate) fn id_in_work_tree(&self, path: &str) -> Result<Option<String>, Error> {
        let Some(file) = self.work_dir().map(|root| root.join(path)) else { return Ok(None) };
        match std::fs::symlink_metadata(&file) {
            Err(_) => Ok(None),
            Ok(metadata) if metadata.is_symlink() => {
                let target = std::fs::read_link(&file).unwrap_or_default();
                self.id_of_text(target.as_os_str().as_encoded_bytes()).map(Some)
            }
            // git cannot read a folder, and waits for what comes out of a pipe.
            Ok(metadata) if !metadata.is_file() => Ok(None),
            Ok(_) => Ok(Some(self.call(&["hash-object", "--", path]).succeed()?.text())),
        }
    }

    /// The trailers of a commit whose keys end in a text, as they are written: `Key: value`.
    pub(crate) fn trailers_ending_in(&self, ending: &str, commit: &str) -> Result<Vec<String>, Error> {
        let call = self.call(&["log", "--max-count=1", "--format=%(trailers:only,unfold)", "--end-of-options", commit]);
        let text = call.succeed()?.text();
        let has_key = |line: &&str| line.split_once(':').is_some_and(|(key, _)| key.ends_with(ending));
        Ok(text.lines().map(str::trim).filter(has_key).map(str::to_owned).collect())
    }

    /// The names of all files that a folder has had at any depth, in this commit and those that led to it since a day.
    pub(crate) fn names_since(
        &self,
        commit: &str,
        folder: &str,
        since: Option<Date>,
    ) -> Result<BTreeSet<String>, Error> {
        let since = since.map(|day| format!("--since={day}T00:00:00Z"));
        // Without `--full-history`, a merge with a branch that never had the file hides that the other one had it.
        // Git names the commits only: it walks a folder at each of its paths, and there can be billions.
        let log = self.call(&["log", "--full-history", "--format=%H %P"]);
        let changes = log.arguments(since.as_slice()).arguments(&[commit, "--", folder]).succeed()?.text();
        let commits: BTreeSet<&str> = changes.split_whitespace().chain([commit]).into_set();
        let (store, mut walk, mut names) = (self.limited_objects(), Walk::new(Limits::HISTORY), BTreeSet::new());
        for commit in commits {
            let found =
                self.reading(&store, commit, |store| store.find(store.tree_of(&self.parse_commit(commit)?)?, folder))?;
            let top = found.filter(|(mode, _)| mode.is_tree()).map(|(_, id)| (folder.to_owned(), id));
            let mut folders: Vec<(String, ObjectId)> = top.into_iter().collect();
            while let Some((path, id)) = folders.pop() {
                if walk.has_entered(&id) {
                    continue;
                }
                walk.enter(&path, id).map_err(|why| Error::TooLarge(PassedOver { path: path.clone(), why }))?;
                for entry in self.reading(&store, &id.to_string(), |store| store.tree(&id))?.entries {
                    let name = entry.filename.to_string();
                    walk.count(&name);
                    if entry.mode.is_tree() {
                        folders.push((format!("{path}/{name}"), entry.oid));
                    } else if !names.contains(&name) {
                        names.insert(name);
                    }
                }
            }
        }
        Ok(names)
    }

    /// Reads an object, which a partial clone may have to fetch first.
    fn reading<T>(
        &self,
        store: &ObjectStore,
        object: &str,
        read: impl Fn(&ObjectStore) -> Result<T, Error>,
    ) -> Result<T, Error> {
        read(store).or_else(|error| match error {
            Error::Object { .. }
                if self.call(&["rev-list", "--objects", "--max-count=1", object]).run()?.is_success() =>
            {
                read(store)
            }
            error => Err(error),
        })
    }

    /// The full paths of all folders with one of these names, at any depth. Skips names that are not UTF-8; what is too
    /// large to be walked is reported at the command's end.
    pub(crate) fn folders_named(&self, commit: &str, names: &[&str]) -> Result<Vec<String>, Error> {
        let (store, root) = self.tree_at(commit)?;
        let (mut found, mut passed_over) = (Vec::new(), Vec::new());
        store.walk_below(root, "", &mut passed_over, |(path, mode, _)| {
            if mode.is_tree() && path.rsplit('/').next().is_some_and(|name| names.contains(&name)) {
                found.push(path);
            }
        })?;
        self.report(commit, &passed_over);
        found.sort();
        Ok(found)
    }

    /// Whether another tracked file in the work tree has a line with this text; only the start of a very long text
    /// counts. `path` is relative to the repository's root.
    pub(crate) fn is_elsewhere(&self, text: &str, path: &str) -> Result<bool, Error> {
        // The limit for a program's argument.
        const LONGEST: usize = 4096;
        let text = text.get(..text.floor_char_boundary(LONGEST)).unwrap_or(text);
        let list = ["grep", "-l", "-z", "-I", "--full-name", "--fixed-strings", "-e", text];
        let answer = self.call(&list).run()?;
        if !answer.is_success() && !answer.error_lines().is_empty() {
            return Err(Error::Program { command: "git grep".to_owned(), message: answer.error_line() });
        }
        Ok(answer.stdout.split(|byte| *byte == 0).any(|other| !other.is_empty() && other != path.as_bytes()))
    }

    /// The newest commit of the current branch that changed a file.
    pub(crate) fn last_change_of(&self, path: &str) -> Result<Option<String>, Error> {
        let answer = self.call(&["log", "--max-count=1", "--format=%H", "HEAD", "--", path]).run()?;
        Ok(Some(answer.text()).filter(|commit| answer.is_success() && !commit.is_empty()))
    }

    /// That commit, in the form of a line's origin.
    pub(crate) fn last_change(&self, path: &str) -> Result<Option<Blame>, Error> {
        let format = "--format=%H%x00%s%x00%an%x00%ct";
        let answer = self.call(&["log", "--max-count=1", format, "HEAD", "--", path]).run()?;
        let text = answer.text();
        let fields: Vec<&str> = text.split('\0').collect();
        let [commit, subject, author, at] = fields[..] else { return Ok(None) };
        let at = at.parse().ok().and_then(|at| Timestamp::from_second(at).ok());
        let (commit, path) = (Some(commit.to_owned()), path.to_owned());
        Ok(at.map(|at| Blame { commit, subject: subject.to_owned(), author: author.to_owned(), at, path }))
    }

    /// Whether the history was cut off when it was fetched.
    pub(crate) fn is_shallow(&self) -> bool {
        self.common_dir().join("shallow").exists()
    }

    /// The texts that a file had on the current branch, newest first; those that the clone lacks are left out.
    pub(crate) fn versions_of(&self, path: &str) -> Result<Vec<Vec<u8>>, Error> {
        /// More changes than a team makes to a file that squad installed.
        const MOST: &str = "--max-count=500";
        /// The largest file in bytes, far above what squad installs.
        const LARGEST: u64 = 1024 * 1024;
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let answer = self.call(&["log", MOST, "--format=%H", "HEAD", "--", path]).run()?;
        let commits = answer.text();
        let mut versions = Vec::new();
        for commit in commits.lines().filter(|_| answer.is_success()) {
            let found = self.files_at(commit, folder, |file| (file == path).then_some(LARGEST)).unwrap_or_default();
            versions.extend(found.into_iter().map(|(_, bytes)| bytes));
        }
        Ok(versions)
    }

    /// Whether a commit exists in this clone and on no remote-tracking branch.
    pub(crate) fn is_of_this_clone(&self, commit: &str) -> bool {
        let contains = format!("--contains={commit}");
        // A partial clone would fetch missing objects.
        let call =
            self.call(&["for-each-ref", "--count=1", &contains, "refs/remotes"]).variable("GIT_NO_LAZY_FETCH", "1");
        call.run().is_ok_and(|answer| answer.is_success() && answer.stdout.is_empty())
    }

    /// Local and remote-tracking branches: short names and commits.
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
    /// those that point at it.
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

/// The origin of a line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Blame {
    /// `None`: the line is not committed.
    pub(crate) commit: Option<String>,
    pub(crate) subject: String,
    pub(crate) author: String,
    /// When it was committed.
    pub(crate) at: Timestamp,
    /// The file's path in that commit, relative to the repository's root.
    pub(crate) path: String,
}

impl Blame {
    /// Parses `git blame --porcelain` output for one line.
    fn parse(output: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(output);
        let mut lines = text.lines();
        let commit = lines.next()?.split(' ').next()?.to_owned();
        let fields: BTreeMap<&str, &str> =
            lines.take_while(|line| !line.starts_with('\t')).filter_map(|line| line.split_once(' ')).into_map();
        let is_committed = commit.bytes().any(|byte| byte != b'0');
        Some(Self {
            commit: is_committed.then_some(commit),
            subject: fields.get("summary")?.to_string(),
            author: fields.get("author")?.to_string(),
            at: Timestamp::from_second(fields.get("committer-time")?.parse().ok()?).ok()?,
            path: unquoted(fields.get("filename")?),
        })
    }
}

/// Unquotes a path; git quotes odd characters with C escapes.
pub(crate) fn unquoted(path: &str) -> String {
    let Some(inner) = path.strip_prefix('"').and_then(|path| path.strip_suffix('"')) else { return path.to_owned() };
    let mut bytes = Vec::new();
    let mut rest = inner.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(digit @ b'0'..=b'3') => {
                let digits = [Some(digit), rest.next(), rest.next()];
                let octal = digits.into_iter().flatten().fold(0u32, |sum, digit| sum * 8 + u32::from(digit & 7));
                bytes.push(u8::try_from(octal).unwrap_or(b'?'));
            }
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(other) => bytes.push(other),
            None => {}
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The name of a local or remote-tracking branch.
fn branch(reference: &str) -> Option<&str> {
    let remote = reference.strip_prefix("refs/remotes/").and_then(|name| name.split_once('/')).map(|(_, name)| name);
    reference.strip_prefix("refs/heads/").or(remote).filter(|name| *name != "HEAD")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_paths_are_read_back() {
        assert_eq!(unquoted("src/a.rs"), "src/a.rs");
        assert_eq!(unquoted(r#""a \"b\" \303\244\\x""#), "a \"b\" ä\\x");
        assert_eq!(unquoted(r#""\3""#), "\u{3}");
    }
}
