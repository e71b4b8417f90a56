//! `squad demo`: creates a throw-away repository for a rehearsal.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::engine::rehearsal::Script;
use crate::env::Env;
use crate::error::Failure;
use crate::git::Repository;
use crate::ops::Project;
use crate::ops::run::order::Order;
use crate::ops::team::init;
use crate::ops::team::workspace::git_environment;
use crate::policy::Permissions;
use crate::route::RouteOptions;
use crate::settings;

const SCRIPT: &str = include_str!("../../../templates/rehearsal/demo.toml");
const MESSAGE: &str = "Add a health endpoint with tests, and document it";

pub(crate) struct Demo {
    pub(crate) folder: PathBuf,
    pub(crate) project: Project,
    pub(crate) order: Order,
}

pub(crate) fn prepare(env: &Env) -> Result<Demo, Failure> {
    let folder = tempfile::Builder::new()
        .prefix("squad-demo-")
        .tempdir()
        .map_err(|error| {
            Failure::failed(format!("cannot create a temporary folder: {error}"))
                .hint("set TMPDIR to a folder you may write to")
        })?
        .keep();
    Repository::create(&folder, &git_environment(env, &folder))?;
    init::init(env, &folder, init::Options { commit: true, ..init::Options::default() }, |_| Ok(true))?;
    let engine = [("engine.name", Some("rehearsal".to_owned()), "squad demo")];
    let project = Project::open(env, &folder, settings::from_command_line(engine))?;
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
        resumed: None,
        members: Vec::new(),
        described: None,
    };
    Ok(Demo { folder, project, order })
}

/// The branch's commits, newest first.
pub(crate) fn history(project: &Project) -> Result<String, Failure> {
    Ok(if project.repository.head()?.commit.is_some() { project.repository.log(20)? } else { String::new() })
}
