//! Decides which programs squad starts, and with which `PATH`. Only this module creates commands, so that one rule
//! covers all of them.
//!
//! A cloned repository cannot bring commands: squad runs no program in the work tree, or in a `node_modules` of a
//! folder above it, however it was found. That applies to every folder on the way to it, including links. Only an
//! absolute path that the user configured is run wherever it leads. Child processes look for their own helpers in
//! `PATH`, so they get one without such folders.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use crate::env::{Env, follow, real};

/// A process's environment.
pub(crate) type Variables = BTreeMap<OsString, OsString>;

/// The variable that all processes of an engine carry, to be known by.
pub(crate) const PROCESS_MARK: &str = "SQUAD_PROCESS";

/// The shell, and its option for a command line.
#[cfg(unix)]
pub(crate) const SHELL: (&str, &str) = ("sh", "-c");
#[cfg(not(unix))]
pub(crate) const SHELL: (&str, &str) = ("powershell", "-Command");

/// Where the C library looks without a `PATH`.
#[cfg(unix)]
const DEFAULT_PATH: &str = "/usr/bin:/bin";
#[cfg(not(unix))]
const DEFAULT_PATH: &str = "";

/// A program that may be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program(PathBuf);

impl Program {
    /// A program that the user configured by its absolute path, or is running.
    pub(crate) fn of_user(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn command(&self) -> Command {
        Command::new(&self.0)
    }

    /// For a process that outlives this one. On Windows it gets no console, whose closing would end it; elsewhere it
    /// detaches from the terminal by itself.
    pub(crate) fn command_apart(&self) -> Command {
        #[cfg_attr(not(windows), expect(unused_mut, reason = "only Windows says more"))]
        let mut command = self.command();
        #[cfg(windows)]
        {
            use std::os::windows::process::CommandExt;
            /// DETACHED_PROCESS and CREATE_NEW_PROCESS_GROUP.
            const DETACHED: u32 = 0x0000_0008 | 0x0000_0200;
            command.creation_flags(DETACHED);
        }
        command
    }
}

/// Leaves the terminal's session and process group, so that neither ends this process.
#[cfg(unix)]
pub(crate) fn leave_terminal() {
    // It fails only for a process group leader, which one that squad starts apart never is.
    let _ = rustix::process::setsid();
}

#[cfg(not(unix))]
pub(crate) fn leave_terminal() {}

/// Why a program must not be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProgramRefusal {
    /// In no folder of `PATH`.
    Missing(PathBuf),
    /// It is part of the checkout.
    InCheckout(PathBuf),
    /// Neither a name nor an absolute path.
    Relative(PathBuf),
}

impl fmt::Display for ProgramRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(name) => write!(f, "`{}` is in no folder of PATH", name.display()),
            Self::InCheckout(path) => {
                write!(f, "{} belongs to the checkout; squad runs no programs from a repository", path.display())
            }
            Self::Relative(path) => write!(f, "`{}` is not an absolute path", path.display()),
        }
    }
}

/// Takes the folders of the checkout around the working directory off `PATH`: a command that goes on elsewhere, as with
/// `-C`, starts from another checkout, but this one brings no programs either.
pub(crate) fn leave_checkout(env: &mut Env) {
    let mut variables = env.os_variables();
    Programs::new(&env.directory, &variables).restrict(&mut variables);
    for (name, value) in variables {
        if let (Ok(name), Ok(value)) = (name.into_string(), value.into_string()) {
            env.variables.insert(name, value);
        }
    }
}

/// Finds programs for a user working in a folder.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    checkout: Checkout,
    /// The folders of `PATH` that are searched, and those that are not.
    folders: Vec<PathBuf>,
    left_out: Vec<PathBuf>,
}

impl Programs {
    /// `directory` is where the user works; it determines the checkout.
    pub(crate) fn new(directory: &Path, variables: &Variables) -> Self {
        let checkout = Checkout::around(directory);
        let path = variable(variables, "PATH").unwrap_or_else(|| OsStr::new(DEFAULT_PATH));
        // An empty or relative folder means the current directory or below, and that is in the checkout.
        let (folders, left_out) =
            std::env::split_paths(path).partition(|folder| folder.is_absolute() && !checkout.contains(folder));
        Self { checkout, folders, left_out }
    }

    /// The folders of `PATH` from which programs may come.
    pub(crate) fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// The folders of `PATH` that are in the checkout.
    pub(crate) fn left_out(&self) -> &[PathBuf] {
        &self.left_out
    }

    /// Restricts a child's `PATH` to the same folders.
    pub(crate) fn restrict(&self, variables: &mut Variables) {
        if cfg!(windows) {
            // Windows would look in the current directory first.
            variables.insert("NoDefaultCurrentDirectoryInExePath".into(), "1".into());
        }
        if self.left_out.is_empty() {
            return;
        }
        let name = variables.keys().find(|name| is_named(name, "PATH")).cloned();
        // These come from a split `PATH`, so they can be joined.
        if let (Some(name), Ok(path)) = (name, std::env::join_paths(&self.folders)) {
            variables.insert(name, path);
        }
    }

    /// The first program of that name in `PATH` that may be run.
    pub(crate) fn find(&self, name: &Path) -> Result<Program, ProgramRefusal> {
        let file = with_suffix(name);
        let in_folders = |folders: &[PathBuf]| -> Vec<PathBuf> {
            folders.iter().map(|folder| folder.join(&file)).filter(|path| is_executable(path)).collect()
        };
        let found = in_folders(&self.folders);
        if let Some(program) = found.iter().find_map(|path| self.admit(path).ok()) {
            return Ok(program);
        }
        let refused = found.into_iter().next().or_else(|| in_folders(&self.left_out).into_iter().next());
        Err(refused.map_or_else(|| ProgramRefusal::Missing(name.to_owned()), ProgramRefusal::InCheckout))
    }

    /// The program at this path, unless it is part of the checkout.
    pub(crate) fn admit(&self, path: &Path) -> Result<Program, ProgramRefusal> {
        if self.checkout.contains(path) {
            Err(ProgramRefusal::InCheckout(path.to_owned()))
        } else {
            Ok(Program(path.to_owned()))
        }
    }

    /// A program that the user configured: an absolute path, which is run wherever it leads, or a name to look up.
    pub(crate) fn named(&self, path: &Path) -> Result<Program, ProgramRefusal> {
        if path.is_absolute() {
            return Ok(Program::of_user(path));
        }
        let mut parts = path.components();
        match (parts.next(), parts.next()) {
            (Some(Component::Normal(_)), None) => self.find(path),
            _ => Err(ProgramRefusal::Relative(path.to_owned())),
        }
    }
}

/// The folders that came with a repository, or may have.
#[derive(Clone, Debug)]
struct Checkout {
    /// Paths with all links resolved.
    roots: Vec<PathBuf>,
}

impl Checkout {
    fn around(directory: &Path) -> Self {
        let directory = real(directory);
        let mut roots = work_trees(&directory);
        let mut modules: Vec<PathBuf> = Vec::new();
        for place in roots.iter().chain([&directory]).flat_map(|root| root.ancestors()) {
            let folder = place.join("node_modules");
            if !modules.contains(&folder) {
                modules.push(folder);
            }
        }
        roots.extend(modules);
        Self { roots }
    }

    /// Whether a path is in the checkout or leads through it, following all links.
    fn contains(&self, path: &Path) -> bool {
        let is_in = |place: &Path| self.roots.iter().any(|root| is_below(place, root));
        let mut passes = false;
        let end = follow(path, |place| passes |= is_in(place));
        passes || end.is_none_or(|end| is_in(&end))
    }
}

/// The work tree that contains a folder and all others of its repository; of a submodule, also those of the superproject.
pub(crate) fn work_trees(directory: &Path) -> Vec<PathBuf> {
    let Some((folder, git_dir)) = nearest_git(directory) else { return Vec::new() };
    let mut trees = vec![folder];
    let main = git_dir.ancestors().find(|git_dir| git_dir.file_name() == Some(OsStr::new(".git")));
    let commons = [Some(common_of(&git_dir)), main.map(Path::to_owned)];
    let mains = main.and_then(Path::parent).map(Path::to_owned);
    for tree in mains.into_iter().chain(commons.into_iter().flatten().flat_map(|common| linked_trees(&common))) {
        if !trees.contains(&tree) {
            trees.push(tree);
        }
    }
    trees
}

/// The folders in which the repository around a folder keeps its own files.
pub(crate) fn git_folders(directory: &Path) -> Vec<PathBuf> {
    let found = nearest_git(directory).map(|(_, git_dir)| vec![common_of(&git_dir), git_dir]);
    found.unwrap_or_default()
}

/// The nearest work tree around a folder, and its git directory.
pub(crate) fn nearest_git(directory: &Path) -> Option<(PathBuf, PathBuf)> {
    // A relative path ends in an empty one, which is wherever the process runs.
    let mut folders = directory.ancestors().filter(|folder| !folder.as_os_str().is_empty());
    folders.find_map(|folder| Some((folder.to_owned(), git_dir_at(folder)?)))
}

/// The git directory of the work tree that a folder is the root of.
pub(crate) fn git_dir_at(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(".git");
    let git_dir = if git.is_file() {
        let text = fs::read_to_string(&git).unwrap_or_default();
        folder.join(text.trim_end().strip_prefix("gitdir:")?.trim())
    } else if git.join("HEAD").exists() && git.join("objects").is_dir() {
        git
    } else {
        return None;
    };
    Some(real(&git_dir))
}

/// The git directory that a linked work tree's one belongs to.
fn common_of(git_dir: &Path) -> PathBuf {
    let common = fs::read_to_string(git_dir.join("commondir")).ok().map(|text| git_dir.join(text.trim()));
    common.map_or_else(|| git_dir.to_owned(), |common| real(&common))
}

/// The linked work trees of a repository, as far as they exist.
fn linked_trees(common: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten();
    let tree = |entry: fs::DirEntry| {
        let text = fs::read_to_string(entry.path().join("gitdir")).ok()?;
        dunce::canonicalize(entry.path().join(text.trim()).parent()?).ok()
    };
    entries.filter_map(tree).collect()
}

/// The first of these files that a repository brings to a folder of a project: in the folder or around it, up to the
/// root of the work tree.
pub(crate) fn repository_file(project: &Path, directory: &Path, names: &[impl AsRef<Path>]) -> Option<PathBuf> {
    let (project, directory) = (real(project), real(directory));
    let mut roots = work_trees(&project);
    roots.push(project);
    let folders = directory.ancestors().take_while(|folder| roots.iter().any(|root| folder.starts_with(root)));
    let mut files = folders.flat_map(|folder| names.iter().map(|name| folder.join(name)));
    files.find(|file| file.symlink_metadata().is_ok())
}

/// Ignores case on systems whose file names usually do.
fn is_below(path: &Path, root: &Path) -> bool {
    if cfg!(any(windows, target_os = "macos")) {
        let mut parts = path.components();
        return root
            .components()
            .all(|part| parts.next().is_some_and(|other| other.as_os_str().eq_ignore_ascii_case(part.as_os_str())));
    }
    path.starts_with(root)
}

fn with_suffix(name: &Path) -> OsString {
    let mut file = name.as_os_str().to_owned();
    if cfg!(windows) && name.extension().is_none() {
        file.push(std::env::consts::EXE_SUFFIX);
    }
    file
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;

    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}

/// Whether a process with this id exists, as far as this one can see.
#[cfg(unix)]
pub(crate) fn may_be_alive(id: u32) -> bool {
    let id = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw);
    id.is_some_and(|id| rustix::process::test_kill_process(id) != Err(rustix::io::Errno::SRCH))
}

#[cfg(not(unix))]
pub(crate) fn may_be_alive(_id: u32) -> bool {
    true
}

/// A variable's value, if it is not empty.
pub(crate) fn variable<'a>(variables: &'a Variables, name: &str) -> Option<&'a OsStr> {
    let exact = variables.get(OsStr::new(name));
    let value = exact.or_else(|| variables.iter().find(|(other, _)| is_named(other, name)).map(|(_, value)| value));
    value.map(OsString::as_os_str).filter(|value| !value.is_empty())
}

/// On Windows, names ignore case, as in `Path`.
fn is_named(variable: &OsStr, name: &str) -> bool {
    if cfg!(windows) { variable.eq_ignore_ascii_case(name) } else { variable == name }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// A temporary folder that acts as the file system; `repo` in it is a work tree.
    struct World(tempfile::TempDir);

    impl World {
        fn new() -> Self {
            let world = Self(tempfile::tempdir().expect("a temporary folder"));
            for folder in ["repo/.git/objects", "repo/deep", "bin"] {
                fs::create_dir_all(world.path(folder)).expect("a folder");
            }
            fs::write(world.path("repo/.git/HEAD"), "ref: refs/heads/main\n").expect("a file");
            world
        }

        fn path(&self, path: &str) -> PathBuf {
            self.0.path().join(path)
        }

        fn program(&self, path: &str) -> PathBuf {
            let program = self.path(path);
            fs::create_dir_all(program.parent().expect("a folder")).expect("folders");
            fs::write(&program, "").expect("a file");
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("permissions");
            program
        }

        fn link(&self, path: &str, target: &Path) {
            let link = self.path(path);
            fs::create_dir_all(link.parent().expect("a folder")).expect("folders");
            symlink(target, link).expect("a link");
        }

        /// A linked work tree of `repo`.
        fn linked(&self, name: &str) {
            let entry = self.path("repo/.git/worktrees").join(name);
            fs::create_dir_all(&entry).expect("folders");
            fs::create_dir_all(self.path(name)).expect("folders");
            fs::write(entry.join("commondir"), "../..\n").expect("a file");
            fs::write(entry.join("gitdir"), format!("{}/.git\n", self.path(name).display())).expect("a file");
            fs::write(self.path(name).join(".git"), format!("gitdir: {}\n", entry.display())).expect("a file");
        }

        /// For a user in `directory`, with these folders in `PATH`.
        fn programs(&self, directory: &str, folders: &[&str]) -> Programs {
            let path = std::env::join_paths(folders.iter().map(|folder| match folder.strip_prefix('=') {
                Some(as_it_is) => PathBuf::from(as_it_is),
                None => self.path(folder),
            }));
            Programs::new(&self.path(directory), &[("PATH".into(), path.expect("folders"))].into())
        }
    }

    /// Each work tree of a repository, with each as the place of the program.
    #[test]
    fn no_work_tree_of_the_repository_brings_programs_to_another() {
        let world = World::new();
        world.linked("one");
        world.linked("two");
        for place in ["repo", "one", "two"] {
            world.program(&format!("{place}/bin/tool"));
            for directory in ["repo", "repo/deep", "one", "two"] {
                let found = world.programs(directory, &[&format!("{place}/bin")]).find(Path::new("tool"));
                assert!(matches!(found, Err(ProgramRefusal::InCheckout(_))), "{place} from {directory}: {found:?}");
            }
            assert!(world.programs("bin", &[&format!("{place}/bin")]).find(Path::new("tool")).is_ok(), "{place}");
            let own: Vec<_> =
                git_folders(&world.path(place)).iter().map(|folder| folder.starts_with(world.path(place))).collect();
            assert_eq!(own, if place == "repo" { [true, true] } else { [false, false] }, "{place}");
        }
    }

    #[test]
    fn no_program_of_the_checkout_is_run() {
        let brought = [
            "repo/tool",
            "repo/bin/tool",
            "repo/deep/node_modules/.bin/tool",
            "repo/node_modules/.bin/tool",
            "node_modules/.bin/tool",
            "node_modules/@scope/package/tool",
        ];
        for place in brought {
            let world = World::new();
            let program = world.program(place);
            let folder = Path::new(place).parent().and_then(Path::to_str).expect("a folder");
            world.link("links/tool", &program);
            world.link("elsewhere", &world.path(folder));
            world.link("first", &world.path("second"));
            world.link("second", &world.path(folder));
            for directory in ["repo", "repo/deep"] {
                for way in [folder, "links", "elsewhere", "first"] {
                    let found = world.programs(directory, &[way]).find(Path::new("tool"));
                    assert!(
                        matches!(found, Err(ProgramRefusal::InCheckout(_))),
                        "{place} by {way} from {directory}: {found:?}"
                    );
                }
                // Another program of the name is used instead.
                let own = world.program("bin/tool");
                let found = world.programs(directory, &[folder, "links", "first", "bin"]).find(Path::new("tool"));
                assert_eq!(found, Ok(Program(own.clone())), "{place} from {directory}");
                fs::remove_file(own).expect("a file");
            }
        }
    }

    #[test]
    fn a_path_through_the_checkout_counts_as_in_it() {
        let world = World::new();
        let own = world.program("bin/tool");
        world.link("repo/tool", &own);
        world.link("repo/bin", &world.path("bin"));
        world.link("alias", &world.path("repo"));
        for way in ["repo", "repo/bin", "alias", "alias/bin", "bin/../repo"] {
            let found = world.programs("repo", &[way]).find(Path::new("tool"));
            assert!(matches!(found, Err(ProgramRefusal::InCheckout(_))), "{way}: {found:?}");
        }
        world.link("round", &world.path("round"));
        assert!(world.programs("repo", &[]).admit(&world.path("round/tool")).is_err());
    }

    #[test]
    fn relative_path_folders_are_not_searched() {
        let world = World::new();
        let own = world.program("bin/tool");
        for relative in ["=", "=.", "=bin", "=../bin"] {
            let programs = world.programs("repo", &[relative, "bin"]);
            assert_eq!(programs.find(Path::new("tool")), Ok(Program(own.clone())), "{relative}");
            assert_eq!(programs.folders(), [world.path("bin")], "{relative}");
        }
    }

    #[test]
    fn linked_work_trees_and_submodules_belong_to_where_they_come_from() {
        for (place, git) in [("linked", "repo/.git/worktrees/linked"), ("repo/sub", "repo/.git/modules/sub")] {
            let world = World::new();
            fs::create_dir_all(world.path(git)).expect("a folder");
            fs::create_dir_all(world.path(place)).expect("a folder");
            let link = format!("gitdir: {}\n", world.path(git).display());
            fs::write(world.path(place).join(".git"), link).expect("a file");
            world.program("repo/bin/tool");
            world.program(&format!("{place}/own/tool"));
            for folder in ["repo/bin".to_owned(), format!("{place}/own")] {
                let found = world.programs(place, &[&folder]).find(Path::new("tool"));
                assert!(matches!(found, Err(ProgramRefusal::InCheckout(_))), "{folder} from {place}: {found:?}");
            }
        }
    }

    #[test]
    fn programs_outside_the_checkout_are_run() {
        let world = World::new();
        for place in ["bin/tool", "repository/tool", "lib/node_modules/package/tool", "other/node_modules/.bin/tool"] {
            let program = world.program(place);
            let folder = Path::new(place).parent().and_then(Path::to_str).expect("a folder");
            assert_eq!(world.programs("repo", &[folder]).find(Path::new("tool")), Ok(Program(program)), "{place}");
        }
        // Outside of any repository, a folder's programs are the user's own.
        let program = world.program("bin/deep/tool");
        assert_eq!(world.programs("bin", &["bin/deep"]).find(Path::new("tool")), Ok(Program(program)));
        world.program("bin/node_modules/.bin/tool");
        let found = world.programs("bin", &["bin/node_modules/.bin"]).find(Path::new("tool"));
        assert!(matches!(found, Err(ProgramRefusal::InCheckout(_))), "{found:?}");
    }

    #[test]
    fn an_absolute_path_from_the_user_is_run() {
        let world = World::new();
        let program = world.program("repo/bin/tool");
        let programs = world.programs("repo", &["repo/bin"]);
        assert_eq!(programs.named(&program), Ok(Program(program)));
        assert!(matches!(programs.named(Path::new("tool")), Err(ProgramRefusal::InCheckout(_))));
        for relative in ["bin/tool", "./tool", "../repo/bin/tool"] {
            assert_eq!(
                programs.named(Path::new(relative)),
                Err(ProgramRefusal::Relative(relative.into())),
                "{relative}"
            );
        }
        assert_eq!(programs.named(Path::new("nothing")), Err(ProgramRefusal::Missing("nothing".into())));
    }

    #[test]
    fn files_that_are_not_executable_are_skipped() {
        let world = World::new();
        fs::write(world.path("bin/tool"), "").expect("a file");
        fs::create_dir_all(world.path("more/tool")).expect("a folder");
        let own = world.program("last/tool");
        assert_eq!(world.programs("repo", &["bin", "more", "last"]).find(Path::new("tool")), Ok(Program(own)));
    }

    #[test]
    fn children_get_a_path_without_the_checkout() {
        let world = World::new();
        let (own, brought) = (world.path("bin"), world.path("repo/bin"));
        let path = std::env::join_paths([Path::new("relative"), &brought, &own]).expect("folders");
        let mut variables: Variables = [("PATH".into(), path), ("A".into(), "b".into())].into();
        Programs::new(&world.path("repo"), &variables).restrict(&mut variables);
        assert_eq!(variables, [("PATH".into(), own.into_os_string()), ("A".into(), "b".into())].into());
    }
}
