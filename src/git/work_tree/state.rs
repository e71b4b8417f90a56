//! The state of the repository beside its work tree: `HEAD`, refs, index, configuration and hooks.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use gix::config;
use serde::{Deserialize, Serialize};

use super::status::{Entry, Status};
use crate::git::{
    error::Error,
    mode::is_executable,
    references::{Target, Values, is_own},
    repository::Repository,
};
use crate::model::{GitChanges, IntoMap, IntoSet, RefChange};

/// Refs whose commits others made: only their names are reported.
const REMOTES: [&str; 2] = ["refs/remotes/", "refs/squad/remotes/"];
/// Its commits are git's own.
const STASH: &str = "refs/stash";
/// At most this many new commits are listed.
const COMMITS: usize = 2000;

/// Size and time of a file.
type Stamp = (u64, SystemTime);
/// Index entries by path.
type Entries = BTreeMap<Vec<u8>, Entry>;

/// Compared with another one, it tells what somebody did to the repository.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RepositoryState {
    /// A ref, or the id of a commit.
    head: String,
    loose: BTreeMap<String, String>,
    /// Loose refs in squad's folders. `None`: unknown.
    #[serde(default)]
    own: Option<BTreeMap<String, String>>,
    /// There may be very many, which rarely change, so they are not kept. `None`: unknown.
    #[serde(skip)]
    packed: Option<Arc<BTreeMap<String, String>>>,
    /// Size and time of the file that `packed` is read from.
    packed_stamp: Option<Stamp>,
    /// Size and time of the index.
    #[serde(skip)]
    index_stamp: Option<Stamp>,
    /// Index entries that git is told not to look at.
    #[serde(skip)]
    pub(super) hidden: Arc<Entries>,
    /// The paths of submodules in the index.
    #[serde(skip)]
    pub(super) submodules: Arc<Vec<Vec<u8>>>,
    /// Files of attributes outside the work tree, as the configuration names them. `None`: unknown.
    #[serde(skip)]
    pub(super) attribute_files: Option<Arc<Vec<PathBuf>>>,
    /// What is staged, by path.
    staged: BTreeMap<String, String>,
    /// The text of each configuration file of the repository.
    config: Vec<String>,
    /// The text of each file of the repository that hides others from git.
    #[serde(default)]
    rules: BTreeMap<String, String>,
    /// Hashes of the hooks, by name.
    hooks: BTreeMap<String, String>,
}

impl RepositoryState {
    /// The status, and the state beside it, which is read, with whatever `also` reads, while git looks for changed files.
    pub(super) fn with_status<T>(
        repository: &Repository,
        previous: Option<&Self>,
        also: impl FnOnce() -> Result<T, Error>,
    ) -> Result<(Status, Self, T), Error> {
        let (status, (state, also)) = Status::of(repository, &[], || (Self::beside(repository, previous), also()))?;
        let staged = status.staged.iter().map(|(path, entry)| {
            let entry = entry.map(|(mode, id)| format!("{:o} {id}", mode.value())).unwrap_or_default();
            (String::from_utf8_lossy(path).into_owned(), entry)
        });
        let state = Self { staged: staged.into_map(), ..state? };
        Ok((status, state, also?))
    }

    /// The state without what is staged.
    fn beside(repository: &Repository, previous: Option<&Self>) -> Result<Self, Error> {
        let index_stamp = stamp(&repository.git_dir().join("index"));
        let same = previous.filter(|known| known.index_stamp.is_some() && known.index_stamp == index_stamp);
        let (hidden, submodules) = match same {
            Some(known) => (Arc::clone(&known.hidden), Arc::clone(&known.submodules)),
            None => {
                let (hidden, submodules) = Status::unlisted(repository)?;
                (Arc::new(hidden), Arc::new(submodules))
            }
        };
        let head = match repository.head_target()? {
            Target::Symbolic(name) => name,
            Target::Object(id) => id.to_string(),
        };
        let packed_stamp = stamp(&repository.common_dir().join("packed-refs"));
        let known = previous.filter(|known| known.packed_stamp.is_some() && known.packed_stamp == packed_stamp);
        let known = known.and_then(|known| known.packed.clone());
        let Values { loose, packed } = repository.references().values(known.is_none())?;
        let (own, loose) = loose.into_iter().partition(|(name, _)| is_own(name));
        let own = Some(own);
        let packed = Some(known.unwrap_or_else(|| Arc::new(packed)));
        let config = repository.own_config();
        let same = previous.filter(|known| known.config == config).and_then(|known| known.attribute_files.clone());
        let attribute_files = same.or_else(|| repository.attribute_files(&config).map(Arc::new));
        let hooks = hooks(&repository.common_dir().join("hooks"));
        let rules = ["exclude", "attributes"]
            .map(|name| (format!("info/{name}"), repository.common_dir().join("info").join(name)));
        let text = |path: &Path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let rules = rules.map(|(name, path)| (name, text(&path).unwrap_or_default())).into();
        let staged = BTreeMap::new();
        Ok(Self {
            head,
            loose,
            own,
            packed,
            packed_stamp,
            index_stamp,
            hidden,
            submodules,
            attribute_files,
            staged,
            config,
            rules,
            hooks,
        })
    }

    fn loose(&self, name: &str) -> Option<&String> {
        self.loose.get(name).or_else(|| self.own.as_ref()?.get(name))
    }

    fn value(&self, name: &str) -> Option<&String> {
        self.loose(name).or_else(|| self.packed.as_ref()?.get(name))
    }

    /// The refs that differ, with `HEAD`.
    fn moved(&self, later: &Self) -> Vec<RefChange> {
        let change = |name: &str, from: Option<&String>, to: Option<&String>| {
            (from != to).then(|| RefChange { name: name.to_owned(), from: from.cloned(), to: to.cloned() })
        };
        let own = [&self.own, &later.own].into_iter().flatten().flat_map(BTreeMap::keys);
        let mut names: BTreeSet<&String> = self.loose.keys().chain(later.loose.keys()).chain(own).into_set();
        match (&self.packed, &later.packed) {
            (Some(before), Some(now)) if Arc::ptr_eq(before, now) => {}
            (Some(before), Some(now)) => names.extend(before.keys().chain(now.keys())),
            // A ref may have been packed before.
            _ if self.packed_stamp != later.packed_stamp => names.retain(|name| self.loose(name).is_some()),
            _ => {}
        }
        if self.own.is_none() {
            names.retain(|name| !is_own(name));
        }
        // The same file holds the same refs.
        let is_same_file = self.packed_stamp == later.packed_stamp;
        let packed = self.packed.as_ref().or(later.packed.as_ref().filter(|_| is_same_file));
        let before = |name: &String| self.loose(name).or_else(|| packed?.get(name));
        let head = change("HEAD", Some(&self.head), Some(&later.head));
        let refs = names.into_iter().filter_map(|name| change(name, before(name), later.value(name)));
        head.into_iter().chain(refs).collect()
    }
}

impl Repository {
    /// What somebody did to the repository between two states. `is_squads`: squad moved this ref of its own.
    pub(crate) fn git_changes(
        &self,
        from: &RepositoryState,
        to: &RepositoryState,
        is_squads: impl Fn(&RefChange) -> bool,
    ) -> Result<GitChanges, Error> {
        let mut refs = from.moved(to);
        refs.retain(|moved| !is_own(&moved.name) || !is_squads(moved));
        let mut commits = if refs.is_empty() { Vec::new() } else { self.new_commits(&refs, from, to)? };
        let has_more_commits = commits.len() > COMMITS;
        commits.truncate(COMMITS);
        let config = from.config.iter().zip(&to.config).flat_map(|(from, to)| changed_keys(from, to));
        let rules = to.rules.iter().filter(|(name, text)| from.rules.get(*name) != Some(text));
        let config = config.chain(rules.map(|(name, _)| name.clone())).collect();
        let differs = |name: &&String| from.hooks.get(*name) != to.hooks.get(*name);
        let hooks: BTreeSet<&String> = from.hooks.keys().chain(to.hooks.keys()).filter(differs).into_set();
        // A commit unstages what it contains.
        let index: BTreeSet<&String> = match commits.is_empty() {
            true => from.staged.keys().chain(to.staged.keys()).collect(),
            false => to.staged.keys().collect(),
        };
        let index = index.into_iter().filter(|path| from.staged.get(*path) != to.staged.get(*path)).cloned();
        // Read back from an earlier process, the hidden ones are unknown.
        let is_known = from.index_stamp.is_some();
        let newly = to.hidden.keys().filter(|path| is_known && !from.hidden.contains_key(*path));
        let newly = newly.map(|path| String::from_utf8_lossy(path).into_owned());
        let hooks = hooks.into_iter().cloned().collect();
        let index = index.chain(newly).collect();
        Ok(GitChanges { commits, has_more_commits, refs, config, hooks, index })
    }

    /// The commits that no ref led to before, newest first, without those of remotes, up to one beyond the limit.
    fn new_commits(
        &self,
        refs: &[RefChange],
        from: &RepositoryState,
        to: &RepositoryState,
    ) -> Result<Vec<String>, Error> {
        let is_remote = |name: &str| REMOTES.iter().any(|remotes| name.starts_with(remotes));
        let is_id = |value: &&String| !value.starts_with("ref");
        let tips = refs
            .iter()
            .filter(|moved| !is_remote(&moved.name) && moved.name != STASH)
            .filter_map(|moved| moved.to.as_ref());
        let tips: Vec<&String> = tips.filter(is_id).collect();
        if tips.is_empty() {
            return Ok(Vec::new());
        }
        let remotes = to
            .loose
            .iter()
            .chain(to.packed.iter().flat_map(|packed| packed.iter()))
            .filter(|(name, _)| is_remote(name));
        let packed = from.packed.as_ref().or(to.packed.as_ref()).into_iter().flat_map(|packed| packed.values());
        let before = from.loose.values().chain(packed).chain([&from.head]);
        // What squad's refs led to are squad's commits.
        let moved = refs.iter().filter_map(|moved| moved.from.as_ref());
        let known = before.chain(remotes.map(|(_, id)| id)).chain(moved).filter(is_id);
        let input: String =
            tips.iter().map(|tip| format!("{tip}\n")).chain(known.map(|id| format!("^{id}\n"))).collect();
        // A ref may lead to an object that is gone.
        let call = self.call(&["rev-list", "--ignore-missing", "--stdin"]);
        let listed = call.arguments(&[format!("--max-count={}", COMMITS + 1)]).input(input).succeed()?.text();
        Ok(listed.lines().map(str::to_owned).collect())
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.len(), metadata.modified().ok()?))
}

/// The hashes of the hooks, without git's examples.
fn hooks(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let hash = |entry: &fs::DirEntry| -> io::Result<String> {
        let path = entry.path();
        let content = match entry.file_type()?.is_file() {
            true => fs::read(&path)?,
            false => fs::read_link(&path)?.into_os_string().into_encoded_bytes(),
        };
        Ok(format!("{} {}", is_executable(&path), blake3::hash(&content).to_hex()))
    };
    let named = entries.filter_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (!name.ends_with(".sample")).then(|| (name, hash(&entry).unwrap_or_default()))
    });
    named.into_map()
}

/// The keys whose values differ between two texts of a configuration file.
fn changed_keys(from: &str, to: &str) -> Vec<String> {
    if from == to {
        return Vec::new();
    }
    let (from, to) = (values(from), values(to));
    let keys: BTreeSet<&String> = from.keys().chain(to.keys()).into_set();
    keys.into_iter().filter(|key| from.get(*key) != to.get(*key)).cloned().collect()
}

/// A text that git cannot read either has one key: its own.
fn values(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let Ok(file) = config::File::try_from(text) else {
        return BTreeMap::from([("(unreadable)".to_owned(), vec![text.to_owned()])]);
    };
    for section in file.sections() {
        let header = section.header();
        let part = header.subsection_name().map(|name| format!(".{name}")).unwrap_or_default();
        for (key, value) in section.body() {
            values.entry(format!("{}{part}.{key}", header.name())).or_default().push(value.to_string());
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_keys_are_named_without_values() {
        let from = "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = a\n\turl = b\n[user]\n\tname = Ann\n";
        let to = "[core]\n\tbare = false\n\thooksPath = /tmp/x\n[remote \"origin\"]\n\turl = a\n\turl = c\n";
        assert_eq!(changed_keys(from, to), ["core.hooksPath", "remote.origin.url", "user.name"]);
        assert_eq!(changed_keys(from, &from.replace('\t', "  ")), Vec::<String>::new());
        assert_eq!(changed_keys("[core]\n", "[core\n"), ["(unreadable)"]);
    }
}
