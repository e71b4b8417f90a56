//! Where a path really leads. Every question whether something may be read or written at a path starts here; the rules
//! are in [`crate::policy`].

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::policy::PathScope;

/// The number of links Linux follows.
const MAX_LINKS: usize = 40;

/// Resolves links, so that paths to the same file compare equal. A path that cannot be resolved stays as it is.
pub(crate) fn real(path: &Path) -> PathBuf {
    dunce::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Follows every link of a path, also one that leads to nothing: a write makes what it leads to. `pass` gets each place
/// on the way. What does not exist, or may not be looked at, is taken literally. `None`: the links go in a circle.
pub(crate) fn follow(path: &Path, mut pass: impl FnMut(&Path)) -> Option<PathBuf> {
    let mut remaining: VecDeque<OsString> = path.components().map(|part| part.as_os_str().to_owned()).collect();
    let mut current = PathBuf::new();
    // Below what does not exist there is no link.
    let mut missing: Option<PathBuf> = None;
    let mut links = 0;
    while let Some(part) = remaining.pop_front() {
        match Path::new(&part).components().next() {
            Some(Component::ParentDir) => drop(current.pop()),
            Some(Component::CurDir) | None => {}
            // A prefix or root replaces the path so far.
            Some(_) => current.push(&part),
        }
        pass(&current);
        missing = missing.filter(|missing| current.starts_with(missing));
        if missing.is_some() {
            continue;
        }
        match fs::read_link(&current) {
            Ok(target) => {
                links += 1;
                if links > MAX_LINKS {
                    return None;
                }
                current.pop();
                for part in target.components().rev() {
                    remaining.push_front(part.as_os_str().to_owned());
                }
            }
            // An empty path is where the process runs.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !current.as_os_str().is_empty() => {
                missing = Some(current.clone());
            }
            Err(_) => {}
        }
    }
    // The system may have several names for what exists: another case, another form of Unicode.
    let is_missing = |path: &&Path| missing.as_ref().is_some_and(|missing| path.starts_with(missing));
    let mut above = current.ancestors().skip_while(is_missing);
    let existing = above.find_map(|above| Some((dunce::canonicalize(above).ok()?, above)));
    let full = existing.and_then(|(real, above)| {
        Some(real.components().chain(current.strip_prefix(above).ok()?.components()).collect())
    });
    Some(full.unwrap_or(current))
}

/// A path of a project with all links resolved.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProjectPath {
    pub(crate) root: PathBuf,
    pub(crate) path: PathBuf,
    /// From the project's root, with `/`; empty for the root.
    pub(crate) shown: String,
}

impl ProjectPath {
    /// A path, taken from `directory`. The reason why it is none of the project follows the path in a sentence.
    pub(crate) fn resolve(root: &Path, directory: &Path, path: impl AsRef<Path>) -> Result<Self, String> {
        Self::of(root, follow(&directory.join(path), |_| {}))
    }

    /// A path whose last name is not followed if it is a link: git knows the link by it.
    pub(crate) fn named(root: &Path, directory: &Path, path: impl AsRef<Path>) -> Result<Self, String> {
        let path = real(directory).join(path);
        match path.parent().zip(path.file_name()) {
            Some((folder, name)) => Self::of(root, follow(folder, |_| {}).map(|folder| folder.join(name))),
            None => Self::resolve(root, directory, path),
        }
    }

    /// An existing folder, taken from the project's root.
    pub(crate) fn folder(root: &Path, folder: impl AsRef<Path>) -> Result<Self, String> {
        let found = Self::resolve(root, root, folder)?;
        match found.path.metadata() {
            Ok(about) if about.is_dir() => Ok(found),
            Ok(_) => Err("is not a folder".to_owned()),
            Err(error) => Err(format!("cannot be used: {error}")),
        }
    }

    fn of(root: &Path, path: Option<PathBuf>) -> Result<Self, String> {
        let (root, path) = (real(root), path.ok_or("leads through a link that cannot be followed")?);
        let shown = PathScope::of(&path, &root).in_project()?;
        Ok(Self { root, path, shown })
    }
}

/// Whether a path below `root` exists and no part of it is a link.
pub(crate) fn is_without_links(root: &Path, path: &Path) -> bool {
    let mut place = root.to_owned();
    path.components().all(|part| {
        place.push(part);
        matches!(part, Component::Normal(_)) && place.symlink_metadata().is_ok_and(|about| !about.is_symlink())
    })
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use proptest::prelude::*;

    use super::*;

    /// A project with links of every kind, beside a secret.
    fn world() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("project");
        for inner in ["project/.git/hooks", "project/.squad", "project/sub/.git", "outside"] {
            fs::create_dir_all(folder.path().join(inner)).expect("folders");
        }
        for (place, target) in [
            ("out", "../outside"),
            ("absolute", "/"),
            ("git", ".git"),
            ("sub/self", "../sub"),
            ("sub/up", ".."),
            ("new", "sub/not-there"),
            ("lost", "../outside/not-there"),
            ("hook", "sub/../.git/hooks/post-commit"),
            ("loop", "pool"),
            ("pool", "loop"),
        ] {
            symlink(target, root.join(place)).expect("a link");
        }
        fs::write(root.join("sub/file"), "text").expect("a file");
        folder
    }

    #[test]
    fn a_path_is_where_its_links_lead() {
        let world = world();
        let root = world.path().join("project");
        let resolve = |path: &str| ProjectPath::resolve(&root, &root.join("sub"), path).map(|found| found.shown);
        for (path, shown) in [
            ("file", "sub/file"),
            ("self/self/file", "sub/file"),
            ("up/sub/./x", "sub/x"),
            ("../new", "sub/not-there"),
            ("none/../file", "sub/file"),
            ("..", ""),
            ("../.squad/team.md", ".squad/team.md"),
        ] {
            assert_eq!(resolve(path).as_deref(), Ok(shown), "{path}");
        }
        for (path, reason) in [
            ("../out/x", "is outside"),
            ("../out", "is outside"),
            ("../lost", "is outside"),
            ("../absolute/etc", "is outside"),
            ("up/../outside", "is outside"),
            ("/etc", "is outside"),
            ("../git/config", "is git's"),
            ("../hook", "is git's"),
            (".git/x", "is git's"),
            ("../.GIT/x", "is git's"),
            ("none/../../out/x", "is outside"),
            ("../none/x/../../git/config", "is git's"),
            ("../loop/x", "cannot be followed"),
        ] {
            assert!(resolve(path).is_err_and(|said| said.contains(reason)), "{path}");
        }
        let named = |path: &str| ProjectPath::named(&root, &root.join("sub"), path).map(|found| found.shown);
        assert_eq!(named("../out").as_deref(), Ok("out"), "the link itself");
        assert!(named("../out/x").is_err());
        assert_eq!((named(".").as_deref(), named("..").as_deref()), (Ok("sub"), Ok("")));
        assert!(ProjectPath::folder(&root, "sub/self").is_ok_and(|found| found.shown == "sub"));
        assert!(ProjectPath::folder(&root, "sub/file").is_err() && ProjectPath::folder(&root, "none").is_err());
        for (path, is_plain) in
            [("sub/file", true), ("sub/self/file", false), ("out", false), ("none", false), ("../x", false)]
        {
            assert_eq!(is_without_links(&root, Path::new(path)), is_plain, "{path}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn no_path_of_a_project_leads_out_of_it(parts in prop::collection::vec(
            prop::sample::select(vec![
                "out", "absolute", "git", "sub", "self", "up", "new", "lost", "hook", "loop", "file", "x", "..", ".",
                ".git", ".squad", "outside", "project",
            ]),
            0..8,
        )) {
            let world = world();
            let root = real(&world.path().join("project"));
            let path = parts.join("/");
            let real_path = root.join(&path).canonicalize().ok();
            if let Ok(found) = ProjectPath::resolve(&root, &root, &path) {
                prop_assert_eq!(&found.path, &root.join(&found.shown));
                // The system reads what exists in the same way, and would make the rest in the project.
                prop_assert!(real_path.is_none_or(|real| real == found.path), "{}", path);
                let above = found.path.ancestors().find_map(|above| above.canonicalize().ok()).expect("a root");
                prop_assert!(above.starts_with(&root), "{}", path);
                prop_assert!(!found.shown.split('/').any(|name| name == ".git"), "{}", path);
                let again = ProjectPath::resolve(&root, &root, &found.shown);
                prop_assert_eq!(again, Ok(found));
            }
        }
    }
}
