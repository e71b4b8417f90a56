//! `squad demo`: creates a throw-away repository for a rehearsal.

use std::collections::BTreeMap;
use std::io;

use tempfile::TempDir;

use crate::engine::rehearsal::Script;
use crate::env::Env;
use crate::error::Failure;
use crate::git::Repository;
use crate::ops::Project;
use crate::ops::run::order::Order;
use crate::ops::team::init;
use crate::ops::team::workspace::git_environment;
use crate::policy::Permissions;
use crate::program::leave_checkout;
use crate::route::RouteOptions;
use crate::settings;

const SCRIPT: &str = include_str!("../../../templates/rehearsal/demo.toml");
const MESSAGE: &str = "Add a health endpoint with tests, and document it";

pub(crate) struct Demo {
    /// The environment, in which squad's own state is the demo's too.
    pub(crate) env: Env,
    /// Removed with what is in it when this is dropped.
    pub(crate) folder: TempDir,
    pub(crate) project: Project,
    pub(crate) order: Order,
}

pub(crate) fn prepare(env: &Env) -> Result<Demo, Failure> {
    let failed = |error: io::Error| {
        Failure::failed(format!("cannot create a temporary folder: {error}"))
            .hint("set TMPDIR to a folder you may write to")
    };
    let folder = tempfile::Builder::new().prefix("squad-demo-").tempdir().map_err(failed)?;
    let shop = folder.path().join("shop");
    std::fs::create_dir(&shop).map_err(failed)?;
    let mut env = env.clone();
    leave_checkout(&mut env);
    for (variable, name) in [("XDG_STATE_HOME", "state"), ("XDG_DATA_HOME", "data"), ("LOCALAPPDATA", "data")] {
        env.variables.insert(variable.to_owned(), folder.path().join(name).display().to_string());
    }
    Repository::create(&shop, &git_environment(&env, &shop))?;
    init::init(&env, &shop, init::Options { commit: true, ..init::Options::default() }, |_| Ok(true))?;
    let engine = [("engine.name", Some("rehearsal".to_owned()), "squad demo")];
    let project = Project::open(&env, &shop, settings::from_command_line(engine))?;
    let script = Script::parse(SCRIPT).map_err(Failure::failed)?;
    let order = Order {
        message: MESSAGE.to_owned(),
        route_options: RouteOptions::default(),
        flags: BTreeMap::new(),
        attachments: Vec::new(),
        // Safe: the repository and the script are the demo's own.
        permissions: Permissions::Allow,
        script: Some(script),
        commit: true,
        ask: None,
        land: None,
        conversation: None,
        fresh: false,
        resumed: None,
        members: Vec::new(),
        described: None,
    };
    Ok(Demo { env, folder, project, order })
}

/// Removes the folder, where a git that packs the repository in the background may still write.
pub(crate) fn remove(folder: TempDir) {
    const ATTEMPTS: usize = 20;
    let path = folder.keep();
    for _ in 0..ATTEMPTS {
        if std::fs::remove_dir_all(&path).is_ok() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}
