//! What commands do, apart from how they are spelled and how they speak.
//!
//! The rooms: [`change`] (how files of the repository are changed); [`team`] (where it lives, what it is made of),
//! [`decisions`], [`ledger`] (what is kept) and [`run`]; and [`overview`], which looks at all of them.

pub(crate) mod change;
pub(crate) mod decisions;
pub(crate) mod ledger;
mod output;
pub(crate) mod overview;
pub(crate) mod run;
pub(crate) mod team;

use std::io;
#[cfg(unix)]
use std::os::unix::net::UnixStream;

use tokio::runtime::Runtime;

use crate::env::Env;
use crate::error::Failure;
use crate::model::list;
#[cfg(feature = "bench")]
pub(crate) use ledger::journal::{append, writer};
pub(crate) use output::{write_file, write_text};
pub(crate) use team::layers::own_settings;
pub(crate) use team::project::{Project, require_merged, require_readable, team_settings};
pub(crate) use team::workspace::{Workspace, repository};

/// The one thing whose id begins with what the user typed; `None` if there is none.
fn only<T>(mut found: Vec<T>, typed: &str, id: impl Fn(&T) -> &str) -> Result<Option<T>, Failure> {
    if found.len() < 2 {
        return Ok(found.pop());
    }
    let ids = list(found.iter().take(5).map(|one| format!("`{}`", id(one))));
    Err(Failure::usage(format!("`{typed}` is ambiguous: {ids}")).hint("use a longer prefix"))
}

/// The asynchronous runtime, for the commands that need one.
pub(crate) fn runtime(env: &Env) -> Result<Runtime, Failure> {
    let runtime = has_descriptors().and_then(|()| (env.runtime)());
    runtime.map_err(|error| Failure::failed(format!("the asynchronous runtime cannot start: {error}")))
}

/// Fails if the process may not open the files that a runtime needs: tokio would panic.
#[cfg(unix)]
fn has_descriptors() -> io::Result<()> {
    (0..5).map(|_| UnixStream::pair()).collect::<io::Result<Vec<_>>>().map(drop)
}

#[cfg(not(unix))]
fn has_descriptors() -> io::Result<()> {
    Ok(())
}
