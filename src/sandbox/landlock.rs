//! Landlock: which files a process and all that it starts may read and write. It allows by tree, so what is hidden is
//! what nothing around it allows.

use std::fs;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus,
    Scope, path_beneath_rules,
};

use super::Rules;
use crate::model::SandboxLevel;

/// Without version 3, a file anywhere could be cut to nothing; without version 2, no file could be moved to another folder.
const FLOOR: ABI = ABI::V3;
/// Version 6 adds signals to processes outside, and abstract sockets.
const NEWEST: ABI = ABI::V6;
/// Devices that programs expect to write, and where terminals and shared memory are made.
const DEVICES: [&str; 9] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
];

/// Binds this process, for ever.
///
/// # Errors
///
/// The kernel has no Landlock, or one that does not hold.
pub(super) fn enter(rules: &Rules) -> Result<(), String> {
    let handled = Handled::by(version())?;
    let status = restrict(rules, &handled).map_err(|error| format!("Landlock: {error}"))?;
    match status {
        RulesetStatus::FullyEnforced => Ok(()),
        RulesetStatus::NotEnforced | RulesetStatus::PartiallyEnforced => {
            Err("Landlock: this kernel does not do what it says".to_owned())
        }
    }
}

/// The kernel's version of Landlock, from 1; 0 or less: it has none.
#[expect(unsafe_code, reason = "the crate tells it only when it has bound the process")]
fn version() -> i64 {
    const VERSION: u32 = 1;
    // SAFETY: with this flag, the call takes no structure.
    unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0_usize, VERSION) }
}

/// What a version of Landlock forbids unless a rule allows it.
#[derive(Debug, PartialEq)]
struct Handled {
    access: BitFlags<AccessFs>,
    scope: BitFlags<Scope>,
}

impl Handled {
    /// # Errors
    ///
    /// The version does not hold.
    fn by(version: i64) -> Result<Self, String> {
        let known = match version {
            ..=0 => return Err("Landlock: this kernel has none".to_owned()),
            1 | 2 => {
                return Err(format!("Landlock: this kernel has version {version}, and 3 is needed, of Linux 6.2"));
            }
            3 => FLOOR,
            4 => ABI::V4,
            5 => ABI::V5,
            6.. => NEWEST,
        };
        Ok(Self { access: AccessFs::from_all(known), scope: Scope::from_all(known) })
    }
}

fn restrict(rules: &Rules, Handled { access, scope }: &Handled) -> Result<RulesetStatus, landlock::RulesetError> {
    let mut ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(*access)?;
    // Its versions before 6 have none.
    if !scope.is_empty() {
        ruleset = ruleset.scope(*scope)?;
    }
    let reading = AccessFs::from_read(NEWEST) & *access;
    let devices = DEVICES.iter().map(PathBuf::from);
    let writable = rules
        .writable
        .iter()
        .chain([&rules.temporary])
        .chain(rules.replaced.iter().map(|(path, _)| path))
        .cloned()
        .chain(devices);
    // Who cannot list a home folder fails in odd ways, so all names are seen, in what is hidden as well. Contents are not.
    let names = path_beneath_rules(["/"], AccessFs::ReadDir);
    let ruleset = ruleset
        .create()?
        .add_rules(path_beneath_rules(readable(rules), reading))?
        .add_rules(path_beneath_rules(writable, *access))?
        .add_rules(names)?;
    Ok(ruleset.restrict_self()?.ruleset)
}

/// What may be read as a whole: the roots of the largest trees without anything hidden.
fn readable(rules: &Rules) -> Vec<PathBuf> {
    // At level `full` mounts hide it.
    let hidden = if rules.level == SandboxLevel::Full { &[][..] } else { &rules.hidden[..] };
    // What is hidden in another tree stays so.
    let is_exception = |path: &&PathBuf| hidden.iter().any(|hidden| path.starts_with(hidden));
    let mut readable: Vec<PathBuf> = rules.readable.iter().filter(is_exception).cloned().collect();
    around(Path::new("/"), hidden, &mut readable);
    readable
}

fn around(folder: &Path, hidden: &[PathBuf], readable: &mut Vec<PathBuf>) {
    if hidden.iter().any(|hidden| hidden == folder) {
        return;
    }
    if !hidden.iter().any(|hidden| hidden.starts_with(folder)) {
        readable.push(folder.to_owned());
        return;
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        // A link is a name, and leads where that may be read or not.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            around(&entry.path(), hidden, readable);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The version × what it forbids beyond the one before, or why it is not used.
    #[test]
    fn a_version_forbids_what_it_knows_or_is_not_used() {
        for version in [i64::MIN, -1, 0] {
            assert_eq!(Handled::by(version), Err("Landlock: this kernel has none".to_owned()), "{version}");
        }
        for version in [1, 2] {
            let reason = Handled::by(version).expect_err("it does not hold");
            assert!(reason.contains(&format!("has version {version}, and 3 is needed")), "{reason}");
        }
        let always = [AccessFs::WriteFile, AccessFs::ReadFile, AccessFs::Execute, AccessFs::Refer, AccessFs::Truncate];
        for (version, has_devices, has_scope) in
            [(3, false, false), (4, false, false), (5, true, false), (6, true, true), (7, true, true), (99, true, true)]
        {
            let Handled { access, scope } = Handled::by(version).expect("it holds");
            assert!(always.iter().all(|one| access.contains(*one)), "{version}: {access:?}");
            assert_eq!(access.contains(AccessFs::IoctlDev), has_devices, "{version}");
            assert_eq!(scope.is_empty(), !has_scope, "{version}");
            assert_eq!(scope.contains(Scope::Signal), has_scope, "{version}");
        }
    }

    /// What this kernel has binds as each version that it knows; in a process of its own, because nothing takes it back.
    #[test]
    fn each_version_that_holds_binds() {
        const ASKED: &str = "SQUAD_TEST_LANDLOCK";
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        if let Some((version, folder)) = std::env::var(ASKED).ok().as_deref().and_then(|asked| asked.split_once(' ')) {
            let folder = PathBuf::from(folder);
            let rules = Rules {
                level: SandboxLevel::Files,
                writable: vec![folder.join("inside")],
                read_only: Vec::new(),
                hidden: vec![folder.join("key")],
                hidden_in_project: Vec::new(),
                readable: Vec::new(),
                temporary: folder.join("inside"),
                replaced: Vec::new(),
                empty: folder.join("empty"),
                prepared: Vec::new(),
                set: std::collections::BTreeMap::new(),
                unset: Vec::new(),
                own_processes: false,
                layers: None,
                network: None,
            };
            let handled = Handled::by(version.parse().expect("a number")).expect("it holds");
            assert_eq!(restrict(&rules, &handled).expect("it binds"), RulesetStatus::FullyEnforced);
            fs::create_dir(folder.join("inside/deep")).expect("it may be written");
            fs::write(folder.join("inside/a"), "a").expect("it may be written");
            fs::rename(folder.join("inside/a"), folder.join("inside/deep/a")).expect("it may be moved");
            assert!(fs::write(folder.join("outside"), "").is_err());
            assert!(fs::read(folder.join("key")).is_err());
            assert!(fs::OpenOptions::new().write(true).open(folder.join("kept")).is_err());
            return;
        }
        fs::create_dir(path("inside")).expect("a folder");
        for name in ["key", "kept"] {
            fs::write(path(name), name).expect("a file");
        }
        let known = version();
        for version in (3..=6).filter(|version| *version <= known) {
            let _ = fs::remove_dir_all(path("inside"));
            fs::create_dir(path("inside")).expect("a folder");
            let mut command = std::process::Command::new(std::env::current_exe().expect("this program"));
            command.args(["--exact", "sandbox::landlock::tests::each_version_that_holds_binds", "--nocapture"]);
            let output = command.env(ASKED, format!("{version} {}", folder.path().display())).output();
            let output = output.expect("it starts");
            assert!(output.status.success(), "{version}: {}", String::from_utf8_lossy(&output.stdout));
            assert!(path("inside/deep/a").exists() && !path("outside").exists(), "{version}");
        }
    }
}
