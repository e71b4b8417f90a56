//! The engine of a watch, and what is reported of it between runs.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::peer::Feed;
use crate::engine::rehearsal::Script;
use crate::env::Env;
use crate::error::Failure;
use crate::model::{Event, RunId, What, seconds};
use crate::ops::Project;
use crate::ops::team::engines::{self, Started};
use crate::ops::team::secrets;
use crate::pool::{Dispatcher, Journal, LiveSessions, Reports, SessionPool};
use crate::view::Cautious;

/// Of what happens between runs: shown, and not recorded. The runs' own record has what they said and used.
pub(super) fn report(env: &Env, project: &Project, run: &RunId, events: &mpsc::UnboundedSender<Event>) -> Reports {
    let (reports, messages) = Reports::channel();
    let dispatcher = Dispatcher {
        run: run.clone(),
        past: Vec::new(),
        clock: env.clock.clone(),
        ids: env.ids.clone(),
        journal: Unrecorded,
        show: Cautious::new(Feed { watch: events.clone(), client: None }, secrets::redactor(env, &project.folder.root)),
        sessions: Arc::new(LiveSessions::default()),
    };
    tokio::spawn(async move { drop(dispatcher.serve(messages).await) });
    reports
}

pub(super) async fn start(
    env: &Env,
    project: &Project,
    run: &RunId,
    script: Option<Script>,
    reports: &Reports,
) -> Result<Arc<SessionPool>, Failure> {
    let asked = Instant::now();
    let Started { engine, fallbacks } = engines::start(env, project, run, script).await?;
    for (from, to, reason) in fallbacks {
        reports.tell(None, What::EngineFallback { from, to, reason });
    }
    let (name, version) = (engine.kind().name().to_owned(), engine.version());
    let seconds = seconds(asked.elapsed());
    reports.tell(None, What::EngineStarted { engine: name, version, seconds, warm: false });
    Ok(Arc::new(SessionPool::keeping(engine, project.settings.sessions.max_concurrent, reports.clone())))
}

/// What the engine is that a call would start: its settings, the MCP servers of its sessions, and the variables that say
/// where prompts and keys go.
pub(super) fn engine_key(env: &Env, project: &Project) -> String {
    const PREFIXES: [&str; 5] = ["COPILOT_", "GH_", "GITHUB_", "HTTP", "SQUAD_"];
    let (settings, servers) = (&project.settings.engine, &project.settings.mcp);
    let key = settings.copilot.provider.as_ref().and_then(|provider| provider.api_key_env.as_deref());
    let matters = |name: &str| PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || Some(name) == key;
    let variables = env.variables.iter().filter(|(name, _)| matters(name)).collect::<Vec<_>>();
    blake3::hash(format!("{settings:?}\n{servers:?}\n{variables:?}").as_bytes()).to_hex().to_string()
}

/// Keeps nothing.
struct Unrecorded;

impl Journal for Unrecorded {
    async fn write(&mut self, _: &[Event]) -> Result<(), String> {
        Ok(())
    }
}
