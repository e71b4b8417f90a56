//! Work on this machine that no client has taken, for people to fetch.

use std::fs;
use std::fs::File;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::site::{self, Site};
use super::{LOCK, ORDER, folder_of, is_running, orders};
use crate::engine::EngineKind;
use crate::engine::remote::frames::Order;
use crate::env::{Env, lock};
use crate::error::Failure;
use crate::model::SandboxLevel;
use crate::ops::run::local_file;
use crate::ops::runtime;

/// What was found of an order whose process is gone.
#[derive(Debug, Serialize)]
pub(crate) struct Recovered {
    pub(crate) id: String,
    pub(crate) run: String,
    pub(crate) agent: String,
    /// The bundle; `None`: its client has all of it.
    pub(crate) file: Option<PathBuf>,
    /// The ref in the bundle.
    pub(crate) reference: Option<String>,
    pub(crate) bytes: u64,
    /// Why it could not be recovered.
    pub(crate) problem: Option<String>,
}

/// Puts what no client has taken of ended orders, or of the one with this id, in bundles.
pub(crate) fn recover(env: &Env, id: Option<&str>) -> Result<Vec<Recovered>, Failure> {
    let mut ids: Vec<String> = orders(env).into_iter().map(|(id, _)| id).collect();
    if let Some(id) = id {
        if !ids.iter().any(|known| known == id) {
            let failure = Failure::usage(format!("there is no order `{id}` on this machine"));
            return Err(failure.hint("`squad worker --list` shows them"));
        }
        ids.retain(|known| known == id);
    }
    let runtime = runtime(env)?;
    let mut found = Vec::new();
    for name in ids {
        let folder = folder_of(env, &name).map_err(Failure::failed)?;
        if is_running(&folder) {
            if id.is_some() {
                let failure = Failure::failed(format!("the order `{name}` is at work"));
                return Err(failure.hint("its client takes what it does; when that is gone, it ends by itself"));
            }
            continue;
        }
        let Some(order) = local_file::read::<Order>(&folder.join(ORDER)) else { continue };
        let (run, agent) = (order.run.clone(), order.agent.clone());
        let none = Recovered { id: name, run, agent, file: None, reference: None, bytes: 0, problem: None };
        let lock = hold(&folder);
        let untaken = lock.and_then(|_lock| runtime.block_on(untaken(env, &folder, order)));
        found.push(match untaken {
            Ok(None) => none,
            Ok(Some((file, reference))) => {
                let bytes = fs::metadata(&file).map(|facts| facts.len()).unwrap_or_default();
                Recovered { file: Some(file), reference: Some(reference), bytes, ..none }
            }
            Err(why) => Recovered { problem: Some(why), ..none },
        });
    }
    Ok(found)
}

/// The lock of an order whose process is gone: none begins with it meanwhile.
pub(super) fn hold(folder: &Path) -> Result<File, String> {
    let open = lock::open(&folder.join(LOCK)).and_then(|file| Ok((lock::try_take(&file)?, file)));
    match open.map_err(|error| error.to_string())? {
        (true, file) => Ok(file),
        (false, _) => Err("it has just begun to work again".to_owned()),
    }
}

/// Puts what no client has taken of an order in a bundle, and names the ref in it. The order's lock is held.
pub(super) async fn untaken(env: &Env, folder: &Path, order: Order) -> Result<Option<(PathBuf, String)>, String> {
    if !site::has_clone(folder, &order) {
        return Ok(None);
    }
    // An engine that needs no program: nobody works there any more.
    let engine = EngineKind::Rehearsal.name().to_owned();
    let (secrets, setup) = Default::default();
    let sandbox = SandboxLevel::Rules;
    let reachable = Vec::new();
    let order = Order { engine, script: None, secrets, setup, sandbox, requires_sandbox: false, reachable, ..order };
    let store = site::store(env, &order)?;
    let site = Site::prepare(env, folder, &order, store).await?;
    let recovered = site.recover();
    site.stop().await;
    recovered
}
