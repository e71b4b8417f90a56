//! `squad engines NAME --bisect A..B`: names the releases of an engine's program that changed what holds for it.

mod search;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;
use tempfile::TempDir;

use self::search::Search;
use super::engines::{profile, require_known};
use super::prove::{loopback, settings, tried, until_interrupted};
use crate::engine::prove::Answer;
use crate::engine::releases::{Npm, is_before, is_prerelease, is_release, program_in};
use crate::engine::{EngineKind, copilot};
use crate::env::Env;
use crate::error::{Failure, FailureKind};
use crate::model::{Claim, list};
use crate::ops::runtime;
use crate::settings::Settings;

/// Releases from one to another, as `A..B`.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    from: String,
    to: String,
}

impl std::str::FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (from, to) = text.split_once("..").ok_or("it is written `A..B`, such as `1.0.43..1.0.102`")?;
        match [from, to].into_iter().find(|release| !is_release(release)) {
            Some(release) => Err(format!("`{release}` is no release's number, such as `1.0.43`")),
            None if from == to => Err("the two releases are the same".to_owned()),
            None => Ok(Self { from: from.to_owned(), to: to.to_owned() }),
        }
    }
}

/// What was found.
#[derive(Debug, Serialize)]
pub(crate) struct Bisected {
    pub(crate) engine: String,
    pub(crate) package: String,
    pub(crate) from: String,
    pub(crate) to: String,
    /// In the order in which they were.
    pub(crate) tried: Vec<Tried>,
    pub(crate) changed: Vec<Changed>,
}

/// A release that was tried.
#[derive(Debug, Serialize)]
pub(crate) struct Tried {
    pub(crate) release: String,
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
    #[serde(skip)]
    pub(crate) took: Duration,
    /// How many may still have to be.
    #[serde(skip)]
    pub(crate) left: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Claims(Vec<Answer>),
    /// It cannot be installed or started.
    Problem(String),
}

/// A claim whose answer changed.
#[derive(Debug, Serialize)]
pub(crate) struct Changed {
    pub(crate) claim: Claim,
    /// Whether it holds in `last`, and in `first`; `None`: it did not come to that.
    pub(crate) held: Option<bool>,
    pub(crate) holds: Option<bool>,
    /// The last release that was as before, and the first that was not.
    pub(crate) last: String,
    pub(crate) first: String,
    /// Those between them, which cannot be tried.
    pub(crate) skipped: Vec<String>,
}

/// Tries releases of an engine's program, and tells each.
///
/// # Errors
///
/// Nobody has said which npm package the engine is, or how it reaches a model here; npm or one of the two releases is not
/// there, or cannot be tried.
pub(crate) fn bisect(
    env: &Env,
    directory: &Path,
    name: &str,
    range: &Range,
    tell: impl FnMut(&Tried),
) -> Result<Bisected, Failure> {
    let settings = settings(env, directory);
    require_known(name, &settings)?;
    let packaged = Packaged::of(name, &settings)?;
    let npm = Npm::find(directory, &env.os_variables())?;
    runtime(env)?.block_on(until_interrupted(env, packaged.searched(env, &settings, &npm, range, tell)))
}

/// An engine whose program npm has.
struct Packaged {
    engine: String,
    package: String,
    /// As the package calls it.
    program: String,
}

impl Packaged {
    fn of(name: &str, settings: &Settings) -> Result<Self, Failure> {
        let (package, program) = match EngineKind::parse(name) {
            Some(EngineKind::Rehearsal) => {
                return Err(Failure::usage("the rehearsal engine is part of squad, and has no releases of its own"));
            }
            Some(EngineKind::Copilot) => (copilot::PACKAGE.to_owned(), "copilot".to_owned()),
            None => {
                let profile = profile(name, settings)?;
                loopback(&profile)?;
                let package = profile.package.ok_or_else(|| {
                    Failure::usage(format!("nobody has said which npm package has the program of `{name}`"))
                        .hint(format!("squad config set --user engines.{name}.package PACKAGE"))
                })?;
                let program = Path::new(&profile.program).file_stem().unwrap_or_default();
                (package, program.to_string_lossy().into_owned())
            }
        };
        Ok(Self { engine: name.to_owned(), package, program })
    }

    async fn searched(
        &self,
        env: &Env,
        settings: &Settings,
        npm: &Npm,
        range: &Range,
        mut tell: impl FnMut(&Tried),
    ) -> Result<Bisected, Failure> {
        let all = npm.releases(&self.package, folder()?.path()).await;
        let all = all.map_err(|reason| Failure::new(FailureKind::Engine, format!("{}: {reason}", self.package)))?;
        let releases = between(&all, range, &self.package)?;
        let (mut search, mut done) = (Search::over(releases.len()), Vec::new());
        while let Some(next) = search.next() {
            let (release, begun) = (releases[next].clone(), Instant::now());
            let answers = self.answers(env, settings, npm, &release).await;
            let known = answers
                .as_ref()
                .ok()
                .map(|all| all.iter().map(|answer| (answer.claim, answer.tried.then_some(answer.holds))).collect());
            search.record(next, known);
            let outcome = answers.map_or_else(Outcome::Problem, Outcome::Claims);
            let (took, left) = (begun.elapsed(), search.left());
            let tried = Tried { release, outcome, took, left };
            tell(&tried);
            match &tried.outcome {
                Outcome::Problem(reason) if next == 0 || next + 1 == releases.len() => {
                    let message = format!("{} {} cannot be tried: {reason}", self.package, tried.release);
                    return Err(Failure::new(FailureKind::Engine, message).hint("begin or end with another release"));
                }
                _ => done.push(tried),
            }
        }
        let changed = search.changes().into_iter().map(|change| Changed {
            claim: change.what,
            held: change.last.1,
            holds: change.first.1,
            last: releases[change.last.0].clone(),
            first: releases[change.first.0].clone(),
            skipped: releases[change.last.0 + 1..change.first.0].to_vec(),
        });
        Ok(Bisected {
            engine: self.engine.clone(),
            package: self.package.clone(),
            from: range.from.clone(),
            to: range.to.clone(),
            changed: changed.collect(),
            tried: done,
        })
    }

    /// Of one release, which is gone afterwards. Nothing is kept: npm's program is often a script that is the same in many
    /// releases.
    async fn answers(&self, env: &Env, settings: &Settings, npm: &Npm, release: &str) -> Result<Vec<Answer>, String> {
        let folder = folder().map_err(|failure| failure.message)?;
        let modules = npm.install(&self.package, release, folder.path()).await?;
        let settings = self.with_program(settings, &modules)?;
        let proof = tried(env, &settings, &self.engine, |_| {}).await;
        proof.map(|proof| proof.answers).map_err(|failure| failure.message)
    }

    /// Settings that start the program which was installed into `modules`.
    fn with_program(&self, settings: &Settings, modules: &Path) -> Result<Settings, String> {
        let mut settings = settings.clone();
        let in_bin = || program_in(modules, &self.program);
        let text = |path: PathBuf| path.display().to_string();
        match EngineKind::parse(&self.engine) {
            Some(_) => settings.engine.copilot.path = Some(text(copilot::installed(modules).map_or_else(in_bin, Ok)?)),
            None => settings.engines.entry(self.engine.clone()).or_default().program = Some(text(in_bin()?)),
        }
        Ok(settings)
    }
}

fn folder() -> Result<TempDir, Failure> {
    let folder = tempfile::Builder::new().prefix("squad-release-").tempdir();
    folder.map_err(|error| Failure::failed(format!("cannot create a temporary folder: {error}")))
}

/// The releases of a range, which is one of them; pre-releases where it begins or ends with one.
fn between(all: &[String], Range { from, to }: &Range, package: &str) -> Result<Vec<String>, Failure> {
    let at = |wanted: &String| {
        all.iter().position(|release| release == wanted).ok_or_else(|| {
            let failure = Failure::usage(format!("{package} has no release {wanted}"));
            match nearest(all, wanted) {
                near if near.is_empty() => failure,
                near => failure.hint(format!("the nearest are {}", list(near))),
            }
        })
    };
    let (first, last) = (at(from)?, at(to)?);
    if first > last {
        return Err(Failure::usage(format!("{from} is later than {to}")).hint(format!("--bisect {to}..{from}")));
    }
    let is_meant = |release: &&String| is_prerelease(from) || is_prerelease(to) || !is_prerelease(release);
    Ok(all[first..=last].iter().filter(is_meant).cloned().collect())
}

/// The releases before and after where one would be.
fn nearest(all: &[String], wanted: &str) -> Vec<String> {
    let after = all.partition_point(|release| is_before(release, wanted));
    all[after.saturating_sub(2)..all.len().min(after + 2)].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::with_hint;

    #[test]
    fn a_range_is_two_releases_that_exist_in_their_order() {
        let all = ["1.0.9", "1.0.10", "1.1.0-2", "1.1.0-10", "1.1.0", "2.0.0"].map(str::to_owned);
        for (range, expected) in [
            ("1.0.9..2.0.0", Ok("1.0.9, 1.0.10, 1.1.0 and 2.0.0")),
            ("1.0.10..1.1.0", Ok("1.0.10 and 1.1.0")),
            ("1.0.10..1.1.0-10", Ok("1.0.10, 1.1.0-2 and 1.1.0-10")),
            ("1.0.11..2.0.0", Err("p has no release 1.0.11; the nearest are 1.0.9, 1.0.10, 1.1.0-2 and 1.1.0-10")),
            ("0.1.0..2.0.0", Err("p has no release 0.1.0; the nearest are 1.0.9 and 1.0.10")),
            ("1.0.9..3.0.0", Err("p has no release 3.0.0; the nearest are 1.1.0 and 2.0.0")),
            ("2.0.0..1.1.0", Err("2.0.0 is later than 1.1.0; --bisect 1.1.0..2.0.0")),
            ("1.0.9", Err("it is written `A..B`, such as `1.0.43..1.0.102`")),
            ("..", Err("`` is no release's number, such as `1.0.43`")),
            ("1.0.9..latest", Err("`latest` is no release's number, such as `1.0.43`")),
            ("1.0.9..--help", Err("`--help` is no release's number, such as `1.0.43`")),
            ("1.0.9..1.0.9", Err("the two releases are the same")),
        ] {
            let found = range.parse().and_then(|range| {
                between(&all, &range, "p").map(list).map_err(|failure| {
                    assert_eq!(failure.kind, FailureKind::Usage);
                    with_hint(&failure.message, failure.hint.as_deref())
                })
            });
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{range}");
        }
    }
}
