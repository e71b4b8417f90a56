//! Tests on real repositories, created and checked by the real `git` program.

pub(super) mod beside_gc;
pub(super) mod disk;
mod edits;
mod kinds;
mod landing;
mod ledger;
mod odd_trees;
mod others;
mod packs;
mod power;
mod processes;
mod queue;
mod repository;
mod rescue;
mod stopped;
mod sync;
mod transfer;
mod work_tree;

#[path = "../../tests/support/temporary.rs"]
mod temporary;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use jiff::Timestamp;
use tempfile::TempDir;

use super::{Change, Environment, Identity, Landing, NewFile, Repository};
use crate::model::ChangeKind;

/// A folder with a repository in it, and a git without outside configuration.
struct World {
    folder: TempDir,
    environment: Environment,
}

/// The `git init` options that this git supports. reftable came with git 2.45; older gits cannot have such
/// repositories.
fn known_formats(options: &[&'static str]) -> Vec<&'static str> {
    let help = Command::new("git").args(["init", "-h"]).output().unwrap();
    let knows_reftable = String::from_utf8_lossy(&help.stdout).contains("--ref-format")
        || String::from_utf8_lossy(&help.stderr).contains("--ref-format");
    options.iter().copied().filter(|option| knows_reftable || !option.contains("reftable")).collect()
}

impl World {
    /// A repository with one commit on `main`.
    fn new() -> Self {
        Self::with(&[])
    }

    fn with(init: &[&str]) -> Self {
        Self::unborn(init).committed()
    }

    fn unborn(init: &[&str]) -> Self {
        Self::empty().begun(init)
    }

    fn begun(self, init: &[&str]) -> Self {
        fs::create_dir(self.root()).unwrap();
        self.git(&[&["init", "-qb", "main"], init].concat());
        self
    }

    fn committed(self) -> Self {
        self.write("README.md", "hello\n");
        self.git(&["add", "."]);
        self.git(&["commit", "-qm", "first"]);
        self
    }

    /// No repository yet.
    fn empty() -> Self {
        Self::empty_in(temporary::folder())
    }

    /// One commit on `main`, on a file system that has to flush.
    fn on_disk() -> Self {
        Self::empty_in(temporary::folder_on_disk()).begun(&[]).committed()
    }

    fn empty_in(folder: TempDir) -> Self {
        let home = folder.path().join("home");
        fs::create_dir(&home).unwrap();
        let path = std::env::var_os("PATH").unwrap();
        let global = home.join("gitconfig");
        fs::write(&global, "[user]\n name = Ada\n email = ada@example.com\n[protocol \"file\"]\n allow = always\n")
            .unwrap();
        let variables = BTreeMap::from([
            (OsString::from("PATH"), path),
            ("HOME".into(), home.into()),
            ("GIT_CONFIG_GLOBAL".into(), global.into()),
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
            ("GIT_CEILING_DIRECTORIES".into(), folder.path().into()),
        ]);
        let environment = Environment::new("git".into(), &folder.path().join("repo"), variables);
        Self { folder, environment }
    }

    /// A copy of the repository.
    fn copied(&self) -> Self {
        let copy = Self::empty();
        copy_folder(&self.root(), &copy.root());
        copy
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    /// The repository, with this script in place of git.
    #[cfg(unix)]
    fn wrapped(&self, script: &str) -> Repository {
        let wrapper = self.folder.path().join("git-wrapper");
        crate::script::write(&wrapper, script);
        let environment = Environment { git: wrapper, ..self.environment.clone() };
        Repository::discover(&self.root(), &environment).unwrap()
    }

    fn repository(&self) -> Repository {
        self.at("")
    }

    fn at(&self, folder: &str) -> Repository {
        Repository::discover(&self.root().join(folder), &self.environment).unwrap()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).unwrap()
    }

    /// Deletes an object and returns its id.
    fn lose(&self, what: &str) -> String {
        let id = self.git(&["rev-parse", what]).trim().to_owned();
        let objects = self.root().join(".git/objects");
        for file in fs::read_dir(objects.join("pack")).unwrap().map(|file| file.unwrap().path()) {
            let aside = self.folder.path().join(file.file_name().unwrap());
            fs::rename(&file, &aside).unwrap();
            if aside.extension().is_some_and(|extension| extension == "pack") {
                let mut command = self.command(&self.root(), &["unpack-objects", "-q"]);
                assert!(command.stdin(fs::File::open(aside).unwrap()).status().unwrap().success());
            }
        }
        fs::remove_file(objects.join(&id[..2]).join(&id[2..])).unwrap();
        id
    }

    /// git's output for this input.
    fn git_with(&self, arguments: &[&str], text: &str) -> String {
        let mut command = self.command(&self.root(), arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap().trim().to_owned()
    }

    fn command(&self, folder: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.current_dir(folder).env_clear().envs(&self.environment.variables).args(arguments).stdin(Stdio::null());
        command
    }

    fn try_git(&self, arguments: &[&str]) -> Output {
        self.command(&self.root(), arguments).output().unwrap()
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.git_in(&self.root(), arguments)
    }

    fn git_in(&self, folder: &Path, arguments: &[&str]) -> String {
        let output = self.command(folder, arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "git {arguments:?}\n{}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    }

    /// Asserts that the real `git fsck` reports nothing.
    fn assert_sound(&self) {
        let output = self.try_git(&["fsck", "--full", "--strict"]);
        let complaints = String::from_utf8_lossy(&output.stderr);
        let complaints: Vec<_> = complaints.lines().filter(|line| !line.starts_with("notice:")).collect();
        assert!(output.status.success() && complaints.is_empty(), "{complaints:?}");
    }

    /// Unpacks every object into a loose file, as squad once wrote them.
    fn unpack(&self) {
        for pack in files_in(&self.packs(), "pack") {
            let aside = self.folder.path().join("aside.pack");
            fs::rename(&pack, &aside).unwrap();
            fs::remove_file(pack.with_extension("idx")).unwrap();
            let input = fs::File::open(&aside).unwrap();
            let unpacked = self.command(&self.root(), &["unpack-objects", "-q"]).stdin(input).status().unwrap();
            assert!(unpacked.success());
        }
    }

    fn packs(&self) -> PathBuf {
        self.root().join(".git/objects/pack")
    }

    fn entries(&self) -> Vec<String> {
        let listed = self.git(&["ls-tree", "-r", "--name-only", "refs/squad/log"]);
        listed.lines().map(str::to_owned).collect()
    }

    fn append(&self, path: &str, text: &str) {
        self.repository().ledger().append(&[entry(path, text)], "entry", &ada(), noon()).unwrap();
    }
}

/// The files with this extension, sorted by name.
fn files_in(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|found| found == extension)).collect();
    files.sort();
    files
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        // Skip the many sample hooks, which do nothing.
        #[cfg(unix)]
        if from.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&from).unwrap(), &to).unwrap();
            continue;
        }
        if from.is_dir() && !from.ends_with("hooks") {
            copy_folder(&from, &to);
        } else if from.is_file() {
            fs::copy(&from, &to).unwrap();
        }
    }
}

fn ada() -> Identity {
    Identity { name: "Ada".into(), email: "ada@example.com".into() }
}

fn noon() -> Timestamp {
    "2026-03-04T12:00:00Z".parse().unwrap()
}

fn entry(path: &str, text: &str) -> (String, Vec<u8>) {
    (path.to_owned(), text.as_bytes().to_vec())
}

fn change(files: &[(&str, &str)]) -> Change {
    Change {
        kind: ChangeKind::LandDecisions,
        branch: "main".into(),
        allow_unborn: false,
        files: files.iter().map(|(path, text)| NewFile::plain(*path, text.as_bytes().to_vec())).collect(),
        edits: Vec::new(),
        message: "squad: decide\n\nSquad-Run: 1".into(),
    }
}

fn land(repository: &Repository, change: &Change) -> Landing {
    repository.land(change, Some(&ada()), noon()).unwrap()
}

fn landed(repository: &Repository, change: &Change) -> String {
    let landing = land(repository, change);
    assert!(matches!(landing, Landing::Landed { .. }), "{landing:?}");
    let Landing::Landed { commit } = landing else { unreachable!() };
    commit
}

fn refused(repository: &Repository, change: &Change) -> String {
    let landing = land(repository, change);
    assert!(matches!(landing, Landing::NotLanded { .. }), "{landing:?}");
    let Landing::NotLanded { reason, .. } = landing else { unreachable!() };
    reason
}
