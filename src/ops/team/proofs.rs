//! What was seen when engines' programs were tried, and what it means for starting them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::engine::prove::Answer;
use crate::engine::{EngineError, EngineKind, Startable};
use crate::env::{Env, SharedFile, real};
use crate::error::Failure;
use crate::model::{Claim, SandboxLevel, list};
use crate::settings::{Permission, Settings};

/// What was seen of an engine's program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Proof {
    pub(crate) engine: String,
    /// The program; squad's own version for an engine inside squad.
    pub(crate) program: String,
    /// Of the program's file; empty without one.
    pub(crate) hash: String,
    /// The file's size in bytes, and when it was changed, in nanoseconds since 1970: while both are the same, the file is
    /// taken to be.
    size: u64,
    changed: u128,
    /// What bounded it meanwhile.
    pub(crate) sandbox: SandboxLevel,
    pub(crate) at: Timestamp,
    pub(crate) answers: Vec<Answer>,
}

impl Proof {
    /// Of a program as it is now, before anything is seen; without a program, of what squad is.
    pub(super) fn begun(engine: &str, program: Option<&Path>, sandbox: SandboxLevel, at: Timestamp) -> Self {
        let hash = program.and_then(hash_of).unwrap_or_default();
        let Stamp { size, changed } = program.and_then(Stamp::of).unwrap_or_default();
        let program = program.map_or_else(|| VERSION.to_owned(), |path| path.display().to_string());
        Self { engine: engine.to_owned(), program, hash, size, changed, sandbox, at, answers: Vec::new() }
    }

    fn claims(&self, holds: bool) -> impl Iterator<Item = Claim> {
        self.answers.iter().filter(move |answer| answer.holds == holds).map(|answer| answer.claim)
    }

    pub(crate) fn passed(&self) -> Vec<Claim> {
        self.claims(true).collect()
    }

    pub(crate) fn failed(&self) -> Vec<Claim> {
        self.claims(false).collect()
    }

    /// What it did although it was told not to.
    fn disobeyed(&self) -> Vec<Claim> {
        self.claims(false).filter(|claim| claim.is_obedience()).collect()
    }
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

type Proofs = SharedFile<BTreeMap<String, Proof>>;

fn proofs(env: &Env) -> Option<Proofs> {
    Some(SharedFile::new(env.user_data()?.join("proofs.json")))
}

/// A program's file as it is now.
#[derive(Default)]
struct Stamp {
    size: u64,
    changed: u128,
}

impl Stamp {
    fn of(program: &Path) -> Option<Self> {
        let metadata = program.metadata().ok()?;
        let changed = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_nanos();
        Some(Self { size: metadata.len(), changed })
    }
}

fn hash_of(program: &Path) -> Option<String> {
    let mut hasher = blake3::Hasher::new();
    std::io::copy(&mut fs::File::open(program).ok()?, &mut hasher).ok()?;
    Some(hasher.finalize().to_hex().to_string())
}

/// What was seen of an engine's program as it is now. An unreadable file of proofs counts as none: the engine is then tried
/// again.
pub(super) fn proof_of(env: &Env, name: &str, program: impl FnOnce() -> Option<PathBuf>) -> Option<Proof> {
    let proofs = proofs(env)?.read().ok()??;
    let mut of_engine = proofs.into_values().filter(|proof| proof.engine == name).peekable();
    of_engine.peek()?;
    let Some(program) = program() else {
        return of_engine.find(|proof| proof.program == VERSION);
    };
    let program = real(&program);
    let (stamp, of_engine) = (Stamp::of(&program)?, Vec::from_iter(of_engine));
    let is_same = |proof: &&Proof| {
        Path::new(&proof.program) == program && (proof.size, proof.changed) == (stamp.size, stamp.changed)
    };
    if let Some(proof) = of_engine.iter().find(is_same) {
        return Some(proof.clone());
    }
    let hash = hash_of(&program)?;
    of_engine.into_iter().find(|proof| proof.hash == hash)
}

/// Fails if the engine may not be started: the settings require what it has not proved, or it did what was refused. The
/// claims that it did not keep, where it may be started all the same.
pub(super) fn require(
    env: &Env,
    settings: &Settings,
    name: &str,
    startable: &Startable,
) -> Result<Vec<Claim>, EngineError> {
    if EngineKind::parse(name) == Some(EngineKind::Rehearsal) || matches!(startable, Startable::Not(_)) {
        return Ok(Vec::new());
    }
    let proof = proof_of(env, name, || startable.program());
    let passed: BTreeSet<Claim> = proof.iter().flat_map(Proof::passed).collect();
    let missing: Vec<Claim> = settings.engine.require.difference(&passed).copied().collect();
    let tried = || format!("`squad engines {name} --prove` tries it");
    if !missing.is_empty() {
        let names = list(missing.iter().map(|claim| format!("`{claim}`")));
        let reason = match &proof {
            None => format!("`engine.require` asks for {names}, and {name}'s program has not been tried"),
            Some(_) => format!("`engine.require` asks for {names}, which {name}'s program does not keep"),
        };
        return Err(EngineError::Unusable { reason, hint: Some(tried()) });
    }
    let disobeyed = proof.as_ref().map(Proof::disobeyed).unwrap_or_default();
    if disobeyed.is_empty() || is_permitted(settings, name) {
        return Ok(disobeyed);
    }
    let names = list(disobeyed.iter().map(|claim| format!("`{claim}`")));
    let key = match EngineKind::parse(name) {
        Some(_) => format!("engine.{name}.permission"),
        None => format!("engines.{name}.permission"),
    };
    Err(EngineError::Unusable {
        reason: format!("{name} does what it is told not to do: its program failed {names} when it was tried"),
        hint: Some(format!(
            "use another version of it, which {}; or start it all the same: `squad config set --user {key} allow`",
            tried()
        )),
    })
}

fn is_permitted(settings: &Settings, name: &str) -> bool {
    let permission = match EngineKind::parse(name) {
        Some(_) => settings.engine.copilot.permission,
        None => settings.engines.get(name).and_then(|profile| profile.permission).unwrap_or_default(),
    };
    permission == Permission::Allow
}

/// Keeps it, in the place of an earlier one of the same program.
pub(super) fn keep(env: &Env, proof: &Proof) -> Result<(), Failure> {
    let Some(proofs) = proofs(env) else { return Ok(()) };
    let key = format!("{} {}", proof.engine, proof.hash);
    let kept = proofs.change(|all| drop(all.get_or_insert_default().insert(key, proof.clone())));
    kept.map_err(|reason| {
        Failure::failed(format!("what was seen cannot be kept: {reason}"))
            .hint("move it away, and try the engine again")
    })
}
