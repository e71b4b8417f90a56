//! Landlock: which files a process and all that it starts may read and write. It allows by tree, so what is hidden is
//! what nothing around it allows.

use std::fs;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
    path_beneath_rules,
};

use super::Rules;
use crate::model::SandboxLevel;

/// Without version 3, a file anywhere could be cut to nothing.
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
    let status = restrict(rules).map_err(|error| format!("Landlock: {error}"))?;
    match status {
        RulesetStatus::NotEnforced => Err("this kernel has no Landlock".to_owned()),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

fn restrict(rules: &Rules) -> Result<RulesetStatus, landlock::RulesetError> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(FLOOR))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?
        .add_rules(path_beneath_rules(readable(rules), AccessFs::from_read(NEWEST)))?;
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
    let ruleset = ruleset.add_rules(path_beneath_rules(writable, AccessFs::from_all(NEWEST)))?.add_rules(names)?;
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
