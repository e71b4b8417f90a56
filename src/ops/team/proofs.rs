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
use crate::model::{Claim, IntoSet, SandboxLevel, Sort, list};
use crate::settings::{Permission, Settings};

/// What was seen of an engine's program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Proof {
    pub(crate) engine: String,
    /// The program; squad's own version for an engine inside squad.
    pub(crate) program: String,
    /// Of the program's file; empty without one.
    pub(crate) hash: String,
    /// How it was started.
    profile: String,
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
    pub(super) fn begun(engine: &str, started: Started, sandbox: SandboxLevel, at: Timestamp) -> Self {
        let Started { program, profile } = started;
        let program = program.map(|program| real(&program));
        let hash = program.as_deref().and_then(hash_of).unwrap_or_default();
        let Stamp { size, changed } = program.as_deref().and_then(Stamp::of).unwrap_or_default();
        let program = program.map_or_else(|| VERSION.to_owned(), |path| path.display().to_string());
        let (engine, answers) = (engine.to_owned(), Vec::new());
        Self { engine, program, hash, profile, size, changed, sandbox, at, answers }
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
    pub(super) fn disobeyed(&self) -> Vec<Claim> {
        let broken = self.answers.iter().filter(|answer| answer.tried && !answer.holds);
        broken.map(|answer| answer.claim).filter(|claim| claim.is_obedience()).collect()
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

/// What an engine starts.
pub(super) struct Started {
    /// `None`: it needs no program.
    pub(super) program: Option<PathBuf>,
    /// How it is started, as `Profile::fingerprint` has it.
    pub(super) profile: String,
}

impl Started {
    pub(super) fn by(startable: &Startable) -> Self {
        let profile = match startable {
            Startable::Command(options) => options.profile.fingerprint(),
            _ => String::new(),
        };
        Self { program: startable.program(), profile }
    }
}

/// All that was seen, read once: what it is asked about is compared with the program as it is now.
pub(super) struct KnownProofs(Vec<Proof>);

impl KnownProofs {
    /// None where the file cannot be read, which is said.
    pub(super) fn read(env: &Env) -> Self {
        let read = proofs(env).map_or(Ok(None), |proofs| proofs.read());
        let all = read.unwrap_or_else(|reason| {
            env.damage.say(&format!(
                "warning: what was seen of engines is not known: {reason}; move it away, and try them again"
            ));
            None
        });
        Self(all.unwrap_or_default().into_values().collect())
    }

    /// Of an engine's program as it is now, at each level of the sandbox, the newest first.
    pub(super) fn of(&self, name: &str, started: impl FnOnce() -> Started) -> Vec<Proof> {
        let found = self.0.iter().filter(|proof| proof.engine == name).cloned().collect();
        as_it_is(found, started)
    }
}

fn as_it_is(mut found: Vec<Proof>, started: impl FnOnce() -> Started) -> Vec<Proof> {
    if found.is_empty() {
        return found;
    }
    let Started { program, profile } = started();
    found.retain(|proof| proof.profile == profile);
    found.stable_sort_by_key(|proof| std::cmp::Reverse(proof.at));
    let Some(program) = program.map(|program| real(&program)) else {
        found.retain(|proof| proof.program == VERSION);
        return found;
    };
    let Some(stamp) = Stamp::of(&program) else { return Vec::new() };
    let is_same = |proof: &Proof| {
        Path::new(&proof.program) == program && (proof.size, proof.changed) == (stamp.size, stamp.changed)
    };
    let hash = std::cell::OnceCell::new();
    found.retain(|proof| is_same(proof) || Some(&proof.hash) == hash.get_or_init(|| hash_of(&program)).as_ref());
    found
}

/// Fails if the engine may not be started: the settings require what it has not proved, or it did what was refused. The
/// claims that it did not keep, where it may be started all the same.
///
/// What held in a sandbox holds in one that is as strong; what was broken in one is in one that is no stronger.
pub(super) fn require(
    known: &KnownProofs,
    settings: &Settings,
    (name, startable): (&str, &Startable),
    level: SandboxLevel,
) -> Result<Vec<Claim>, EngineError> {
    if EngineKind::parse(name) == Some(EngineKind::Rehearsal) || matches!(startable, Startable::Not(_)) {
        return Ok(Vec::new());
    }
    let proofs = known.of(name, || Started::by(startable));
    let holding = proofs.iter().filter(|proof| level <= proof.sandbox);
    let passed: BTreeSet<Claim> = holding.flat_map(Proof::passed).into_set();
    let missing: Vec<Claim> = settings.engine.require.difference(&passed).copied().collect();
    let tried = || format!("`squad engines {name} --prove` tries it");
    if !missing.is_empty() {
        let names = list(missing.iter().map(|claim| format!("`{claim}`")));
        let reason = match proofs.is_empty() {
            true => format!("`engine.require` asks for {names}, and {name}'s program has not been tried"),
            false => format!(
                "`engine.require` asks for {names}, which {name}'s program does not keep in the sandbox `{level}`"
            ),
        };
        return Err(EngineError::Unusable { reason, hint: Some(tried()) });
    }
    let broken = proofs.iter().filter(|proof| level >= proof.sandbox);
    let disobeyed: Vec<Claim> = broken.flat_map(Proof::disobeyed).into_set().into_iter().collect();
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

/// Fails if there is something that a proof could not be added to.
pub(super) fn require_readable(env: &Env) -> Result<(), Failure> {
    proofs(env).map_or(Ok(None), |proofs| proofs.read()).map(drop).map_err(unkept)
}

fn unkept(reason: String) -> Failure {
    Failure::failed(format!("what is seen cannot be kept: {reason}")).hint("move it away, and try the engine again")
}

/// Keeps it, in the place of an earlier one of the same program at the same level.
pub(super) fn keep(env: &Env, proof: &Proof) -> Result<(), Failure> {
    let Some(proofs) = proofs(env) else { return Ok(()) };
    let key = format!("{} {} {} {}", proof.engine, proof.hash, proof.profile, proof.sandbox);
    let kept = proofs.change(|all| drop(all.get_or_insert_default().insert(key, proof.clone())));
    kept.map_err(unkept)
}
