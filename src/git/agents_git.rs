//! A copy of the repository for agents' own git in the sandbox, and their commits there.
//!
//! ```text
//! COPY           HEAD, index, refs, settings and hooks: as the user's were
//! COPY/shared    the user's objects, read-only inside; a file of alternates names them
//! COPY/modules   the user's, read-only inside
//! ```
//!
//! No overlay file system: the kernel leaves undefined what is seen in one whose lower folder changes, and squad and the
//! user write in theirs meanwhile.
//!
//! Agents can write everything in it, so git runs on it only in their sandbox. What it answers is somebody else's bundle.

use std::{collections::BTreeSet, fs, io, path::Path, time::Duration};

use super::{error::Error, program::Call, repository::Repository, work_tree::FOLDER};
use crate::env::{
    files::{keep_time, read_regular},
    unique_id,
};
use crate::sandbox::Sandbox;

/// Where agents' git finds the user's objects and submodules: the folder in the copy, and the user's.
pub(crate) const SHARED: [(&str, &str); 2] = [("shared", "objects"), ("modules", "modules")];
/// What the copy has not: what [`SHARED`] stands for, what squad keeps for itself, and large files of extensions.
const OMITTED: [&str; 5] = ["objects", "modules", "squad", "lfs", "annex"];
/// The bytes of everything else. A repository with 100,000 files has an index of 10 MB.
const LARGEST: u64 = 1 << 30;
/// Nobody signs for an agent, and cleaning up is no use.
const SETTINGS: &str = "\n[commit]\n\tgpgSign = false\n[tag]\n\tgpgSign = false\n[gc]\n\tauto = 0\n";
/// The commits of an agent that are fetched at once.
const TIPS: usize = 64;
/// The commits that a bundle is made on.
const BASES: usize = 16;
/// The bytes of a bundle.
const LARGEST_BUNDLE: u64 = 512 << 20;
const TIMEOUT: Duration = Duration::from_secs(300);
/// Where the copy names what is fetched.
const KEPT: &str = "refs/squad/kept/";

/// A commit of an agent's own git.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FetchedCommit {
    pub(crate) reference: String,
    pub(crate) commit: String,
    /// What its agent calls it: a ref.
    pub(crate) name: String,
}

impl Repository {
    /// Makes an empty folder the copy. No agent may reach it yet.
    pub(crate) fn copy_for_agents(&self, folder: &Path) -> Result<(), Error> {
        let mut copying = Copying { bytes: 0 };
        copying.folder(self.common_dir(), folder, &OMITTED)?;
        // A ref is packed before its file goes.
        copying.entry(&self.common_dir().join("packed-refs"), &folder.join("packed-refs"))?;
        for name in ["objects/info", "objects/pack", "shared", "modules"].map(|name| folder.join(name)) {
            fs::create_dir_all(&name).map_err(Error::io("create", &name))?;
        }
        let alternates = folder.join("objects/info/alternates");
        fs::write(&alternates, "../shared\n").map_err(Error::io("write", &alternates))?;
        let config = folder.join("config");
        let text = fs::read(&config).map_err(Error::io("read", &config))?;
        fs::write(&config, [&text, SETTINGS.as_bytes()].concat()).map_err(Error::io("write", &config))
    }

    /// Fetches the commits of the agents' git that are not here, as refs `refs/squad/runs/NAME/NUMBER`.
    pub(crate) fn fetch_from_agents(&self, sandbox: &Sandbox, name: &str) -> Result<Vec<FetchedCommit>, Error> {
        let place = self.work_dir().unwrap_or(self.git_dir());
        let call = |arguments: &[&str]| Call::inside(sandbox, self.environment(), place, arguments).timeout(TIMEOUT);
        let tips = self.tips_of_agents(&call)?;
        if tips.is_empty() {
            return Ok(Vec::new());
        }
        let bases = self.newest_tips()?;
        let names: Vec<String> = (0..tips.len()).map(|number| format!("{KEPT}{number}")).collect();
        let updates = names.iter().zip(&tips).map(|(name, (id, _))| format!("update {name} {id}\n"));
        call(&["update-ref", "--no-deref", "--stdin"]).input(updates.collect::<String>()).succeed()?;
        let bundle = sandbox.temporary().join(format!("{}.bundle", unique_id()));
        let create = call(&["bundle", "create", "--quiet"]).arguments(&[&bundle]).arguments(&names);
        let made = create.arguments(&["--not"]).arguments(&bases).succeed();
        let bytes = read_regular(&bundle, LARGEST_BUNDLE);
        // It goes with the run in any case.
        let _ = fs::remove_file(&bundle);
        made?;
        let bytes =
            bytes.ok_or_else(|| Error::damaged(&bundle, format!("it is no file of up to {LARGEST_BUNDLE} bytes")))?;
        // Where no agent can put another in its place.
        let file = tempfile::NamedTempFile::new().map_err(Error::io("write to", std::env::temp_dir()))?;
        fs::write(file.path(), bytes).map_err(Error::io("write", file.path()))?;
        let mut number = self.last_snapshot(name)?;
        let fetch = |(commit, called): (String, String)| {
            number += 1;
            let reference = format!("{FOLDER}{name}/{number}");
            self.take_work(file.path(), (&commit, &reference), &bases)?;
            Ok(FetchedCommit { reference, commit, name: called })
        };
        tips.into_iter().map(fetch).collect()
    }

    /// The ends of branches and stashes that are not here: their ids and names.
    fn tips_of_agents(&self, call: &impl Fn(&[&str]) -> Call) -> Result<Vec<(String, String)>, Error> {
        let format = "--format=%(objectname) %(refname)";
        let refs = call(&["for-each-ref", format, "refs/heads", "refs/stash"]).succeed()?.text();
        // Without a stash, or a commit, they fail.
        let stashes = call(&["log", "--walk-reflogs", "--format=%H refs/stash", "refs/stash", "--"]).run()?.text();
        let head = call(&["rev-parse", "--verify", "--quiet", "HEAD"]).run()?.text();
        let (mut tips, mut seen) = (Vec::new(), BTreeSet::new());
        for line in refs.lines().chain(stashes.lines()).chain([format!("{head} HEAD").as_str()]) {
            let Some((id, name)) = line.split_once(' ') else { continue };
            let Ok(id) = self.parse_commit(id).map(|id| id.to_string()) else { continue };
            if seen.insert(id.clone()) && !self.has_commit(&id) {
                tips.push((id, name.to_owned()));
            }
        }
        match tips.len() {
            0..=TIPS => Ok(tips),
            many => Err(Error::damaged(self.git_dir(), format!("{many} new branches are more than {TIPS}"))),
        }
    }

    fn newest_tips(&self) -> Result<Vec<String>, Error> {
        let count = format!("--count={BASES}");
        let call =
            ["for-each-ref", "--sort=-committerdate", &count, "--format=%(objectname)", "refs/heads", "refs/remotes"];
        let listed = self.call(&call).succeed()?.text();
        let head = self.head()?.commit;
        let ids: BTreeSet<String> =
            listed.lines().map(str::to_owned).chain(head).filter(|id| self.has_commit(id)).collect();
        Ok(ids.into_iter().collect())
    }
}

struct Copying {
    bytes: u64,
}

impl Copying {
    fn folder(&mut self, from: &Path, to: &Path, omitted: &[&str]) -> Result<(), Error> {
        fs::create_dir_all(to).map_err(Error::io("create", to))?;
        for entry in fs::read_dir(from).map_err(Error::io("read", from))?.flatten() {
            let name = entry.file_name();
            let is_lock = Path::new(&name).extension().is_some_and(|kind| kind == "lock");
            if !is_lock && !omitted.iter().any(|omitted| name == *omitted) {
                self.entry(&entry.path(), &to.join(name))?;
            }
        }
        Ok(())
    }

    /// What goes meanwhile is passed over, and so is what is no file, folder or link.
    fn entry(&mut self, from: &Path, to: &Path) -> Result<(), Error> {
        let Ok(facts) = fs::symlink_metadata(from) else { return Ok(()) };
        if facts.is_dir() {
            return self.folder(from, to, &[]);
        }
        self.bytes += facts.len();
        if self.bytes > LARGEST {
            return Err(Error::damaged(from, format!("what git keeps beside its objects is over {LARGEST} bytes")));
        }
        let copied = match facts.is_file() {
            // git compares file times with the index's own time to find racy entries.
            true => fs::copy(from, to).map(|_| keep_time(&facts, to)),
            false => copy_link(from, to),
        };
        match copied {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(Error::io("copy", from)(cause)),
            _ => Ok(()),
        }
    }
}

#[cfg(unix)]
fn copy_link(from: &Path, to: &Path) -> io::Result<()> {
    match fs::read_link(from) {
        Ok(target) => std::os::unix::fs::symlink(target, to),
        // A socket or pipe.
        Err(_) => Ok(()),
    }
}

#[cfg(not(unix))]
fn copy_link(_from: &Path, _to: &Path) -> io::Result<()> {
    Ok(())
}
