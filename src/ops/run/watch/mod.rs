//! `squad watch`: holds the engine and the team's sessions, updates them when the team's files change, and executes
//! runs for other squad processes of the same user.
//!
//! ```text
//! .squad files ─→ ticks ─→ KnownTeam ─→ SessionPool ←─ runs ←─ connections ←─ squad orchestrate
//!                                           └──────── events ──────→ view
//! ```

mod client;
mod engine;
mod lease;
mod peer;
mod serve;
mod status;
mod team;
mod terminal;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::thread;

use interprocess::local_socket::traits::tokio::Listener as _;
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio::time::Duration;

pub(crate) use client::{Asked, orchestrate};
use engine::report;
use lease::WatchLease;
pub(in crate::ops) use lease::is_anywhere;
pub(crate) use lease::{WatchFiles, Watcher};
use peer::Client;
use team::KnownTeam;

use crate::engine::rehearsal::Script;
use crate::engine::spawn;
use crate::env::Env;
use crate::error::{Failure, FailureKind};
use crate::model::{ConnectionState, Event, EventKind, RunId};
use crate::ops::run::host::{EngineKey, FromClient, send};
use crate::ops::run::lease as run_lease;
use crate::ops::run::memory;
use crate::ops::run::order::flag_settings;
use crate::ops::run::signals::SignalGuard;
use crate::ops::{Project, runtime};
use crate::pool::{Cancel, Canceller, LiveSessions, Reports, SessionPool};
use crate::settings::Layer;
use crate::view::{UserCommand, ViewInput, ViewReceiver, ViewSender, WatchView, keys};
use crate::watch::FolderChanges;

/// Delay after a failed connection.
const RETRY_DELAY: Duration = Duration::from_millis(250);

/// How long runs have to end when the watch ends.
const GRACE: Duration = Duration::from_secs(15);
/// How long the view has to show the last events.
const VIEW_GRACE: Duration = Duration::from_secs(2);

/// The order for `squad watch`.
pub(crate) struct WatchOrder {
    /// The project when the watch begins.
    pub(crate) project: Project,
    /// Settings given on the command line, by flag name without dashes.
    pub(crate) flags: BTreeMap<String, String>,
    pub(crate) script: Option<Script>,
    /// Sessions need a user who answers questions.
    pub(crate) asks: bool,
}

/// A running watch.
struct Watch {
    env: Env,
    directory: PathBuf,
    /// The root of the project.
    root: PathBuf,
    /// Squad's state in this clone.
    local: PathBuf,
    flags: BTreeMap<String, String>,
    script: Option<Script>,
    asks: bool,
    /// The user at this terminal answers questions that no client answers.
    answers: bool,
    /// For the watch's own events.
    run: RunId,
    reports: Reports,
    events: mpsc::UnboundedSender<Event>,
    /// `None`: the watch is ending.
    pool: RefCell<Option<Arc<SessionPool>>>,
    engine_key: EngineKey,
    /// The configured engine.
    engine_name: String,
    is_starting: Cell<bool>,
    /// Signalled when an engine has been started.
    started: Notify,
    /// The connection state that was reported last.
    reported_connection: Cell<ConnectionState>,
    team: RefCell<KnownTeam>,
    /// Session details from the events of all runs.
    sessions: LiveSessions,
    /// How to cancel each active run, and its client, by connection number.
    active_runs: RefCell<BTreeMap<u64, (Canceller, Arc<Client>)>>,
    connections: Cell<u64>,
    ended: Notify,
}

/// The channels to and from the view.
struct ViewChannels {
    sender: ViewSender,
    answers: bool,
    commands: mpsc::UnboundedReceiver<UserCommand>,
    /// Signalled when the view wants the watch to end.
    end: Arc<Notify>,
}

/// Watches until it is interrupted.
pub(crate) fn watch<F: WatchView + Send>(
    env: &Env,
    directory: &Path,
    order: WatchOrder,
    view: &mut F,
) -> Result<(), Failure> {
    memory::limit();
    let local = order.project.local();
    let files = WatchFiles::of(&order.project);
    let unwritable = |error: std::io::Error| {
        Failure::team(format!("cannot write to {}: {error}", local.display()))
            .hint("squad keeps its local state there; check the folder's permissions")
    };
    let Some(lease) = files.take(env.clock.now()).map_err(unwritable)? else {
        let who =
            files.watcher().map_or_else(|| "another process".to_owned(), |watcher| format!("process {}", watcher.pid));
        return Err(Failure::failed(format!("{who} is already watching this team"))
            .hint("`squad status` shows it; `squad orchestrate` uses its sessions"));
    };
    let runtime = runtime(env)?;
    // A view that blocks, such as on a stopped terminal, must not stop the team.
    let end = Arc::<Notify>::default();
    let (command_sender, commands) = mpsc::unbounded_channel();
    let (sender, inputs) = ViewReceiver::channel(command_sender, Arc::clone(&end));
    let channels = ViewChannels { sender, answers: view.answers(), commands, end };
    thread::scope(|scope| {
        let view_thread = scope.spawn(move || view.follow(inputs));
        let served = serve(env, directory, order, lease, channels);
        let ended = LocalSet::new().block_on(&runtime, served);
        runtime.shutdown_background();
        let deadline = std::time::Instant::now() + VIEW_GRACE;
        while !view_thread.is_finished() {
            if std::time::Instant::now() > deadline {
                keys::restore();
                // The view is blocked, so do not wait for it.
                std::process::exit(i32::from(ended.err().map_or(0, |failure| failure.kind.exit_code())));
            }
            thread::sleep(Duration::from_millis(5));
        }
        ended
    })
}

async fn serve(
    env: &Env,
    directory: &Path,
    order: WatchOrder,
    lease: WatchLease,
    mut channels: ViewChannels,
) -> Result<(), Failure> {
    let (canceller, mut cancel) = Cancel::channel();
    let _signals = SignalGuard::by_or(&canceller, env, Arc::clone(&channels.end))?;
    if channels.answers {
        spawn(terminal::forward_signals(channels.sender.clone()));
    }
    let listener = lease.listen().map_err(|error| {
        Failure::failed(format!("cannot listen for other squad processes: {error}"))
            .hint("squad keeps its socket next to its local state; check the folder's permissions")
    })?;
    let (events, mut incoming) = mpsc::unbounded_channel();
    let (watch, project, reporting) = Watch::new(env, directory, order, channels.answers, events);
    tokio::select! {
        biased;
        () = cancel.wait() => return Err(Failure::new(FailureKind::Interrupted, "interrupted before it began")),
        started = watch.start(&project) => drop(started?),
        () = channels.forward(&mut incoming) => {}
    }
    let tasks = [
        spawn_local(Rc::clone(&watch).follow(FolderChanges::of(&project.folder.path))),
        spawn_local(Rc::clone(&watch).tell_connection()),
    ];
    loop {
        tokio::select! {
            biased;
            () = cancel.wait() => break,
            Some(event) = incoming.recv() => {
                watch.sessions.note(&event);
                channels.sender.event(event);
            }
            Some(command) = channels.commands.recv() => watch.execute(command),
            connection = listener.accept() => match connection {
                Ok(connection) => drop(spawn_local(Rc::clone(&watch).connect(connection))),
                // For example too many open files; a later connection may succeed.
                Err(error) => {
                    tracing::debug!("a connection could not be made: {error}");
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            },
        }
    }
    drop(listener);
    channels.sender.send(ViewInput::Ending);
    tasks.iter().for_each(JoinHandle::abort);
    tokio::select! {
        () = watch.finish(reporting) => {}
        // Events are still shown while it ends.
        () = channels.forward(&mut incoming) => {}
    }
    while let Ok(event) = incoming.try_recv() {
        channels.sender.event(event);
    }
    Ok(())
}

impl ViewChannels {
    /// Forwards events to the view. Never returns.
    async fn forward(&self, events: &mut mpsc::UnboundedReceiver<Event>) {
        while let Some(event) = events.recv().await {
            self.sender.event(event);
        }
        pending().await
    }
}

impl Drop for ViewChannels {
    fn drop(&mut self) {
        self.sender.send(ViewInput::End);
    }
}

impl Watch {
    /// A watch without an engine, with its project and the task that reports its own events.
    fn new(
        env: &Env,
        directory: &Path,
        order: WatchOrder,
        answers: bool,
        events: mpsc::UnboundedSender<Event>,
    ) -> (Rc<Self>, Project, JoinHandle<()>) {
        let run = env.ids.run(env.clock.now());
        let WatchOrder { project, flags, script, asks } = order;
        let (reports, reporting) = report(env, &project, &run, &events);
        let watch = Self {
            env: env.clone(),
            directory: directory.to_owned(),
            root: project.folder.root.clone(),
            local: project.local(),
            flags,
            script,
            asks,
            answers,
            run,
            reports,
            events,
            pool: RefCell::default(),
            engine_key: EngineKey::of(env, &project),
            engine_name: project.settings.engine.name.clone(),
            is_starting: Cell::default(),
            started: Notify::new(),
            reported_connection: Cell::new(ConnectionState::Disconnected),
            team: RefCell::default(),
            sessions: LiveSessions::default(),
            active_runs: RefCell::default(),
            connections: Cell::default(),
            ended: Notify::new(),
        };
        (Rc::new(watch), project, reporting)
    }

    fn settings(&self) -> Layer {
        flag_settings(&self.flags)
    }

    /// The team's sessions. Starts the engine again if it has failed for good.
    async fn pool(&self, project: &Project) -> Result<Arc<SessionPool>, Failure> {
        let pool = self.pool.borrow().clone();
        match pool {
            Some(pool) if pool.is_usable() => return Ok(pool),
            Some(_) => {}
            None => return Err(Failure::failed("squad watch is about to end")),
        }
        let pool = self.start(project).await?;
        // The next check sees a team without sessions, and opens those of its core agents.
        self.team.take();
        Ok(pool)
    }

    /// Executes a command of the user at this terminal.
    fn execute(&self, command: UserCommand) {
        match command {
            UserCommand::Cancel { run, agent } => self.send(&run, &FromClient::Cancel { agent: Some(agent) }),
            UserCommand::Say { run, agent, text } => self.send(&run, &FromClient::Say { agent, text }),
            UserCommand::Answer { run, question, text } => {
                let active_runs = self.active_runs.borrow();
                if let Some((_, client)) = active_runs.values().find(|(_, client)| client.is_of(&run)) {
                    client.answer(question, text);
                }
            }
        }
    }

    /// Sends a request to a run, unless it has ended.
    fn send(&self, run: &RunId, request: &FromClient) {
        let live = run_lease::look(&self.local).live.into_iter().find(|live| live.run == *run);
        if let Some(endpoint) = live.and_then(|live| live.endpoint) {
            // On failure the run has ended.
            let _ = send(&endpoint, request);
        }
    }

    /// Updates the sessions whenever the team's files change.
    async fn follow(self: Rc<Self>, mut changes: FolderChanges) {
        if let Some(problem) = &changes.problem {
            let reason = format!("checking for changed files once a second, because: {problem}");
            self.reports.tell(None, EventKind::SessionError { session: String::new(), reason });
        }
        loop {
            let is_unsure = self.refresh_team().await;
            tokio::select! {
                () = changes.tick() => {}
                () = tokio::time::sleep(team::SETTLE_TIME), if is_unsure => {}
            }
        }
    }

    /// Cancels all runs, waits for them and stops the engine.
    async fn finish(&self, reporting: JoinHandle<()>) {
        self.active_runs.borrow().values().for_each(|(canceller, _)| {
            canceller.run();
        });
        let all_ended = async {
            while !self.active_runs.borrow().is_empty() {
                self.ended.notified().await;
            }
        };
        // A client that is ending may still have to land decisions.
        let _ = tokio::time::timeout(GRACE, all_ended).await;
        let Some(pool) = self.pool.borrow_mut().take() else { return };
        // Other owners end with the process, and so does the engine.
        if let Some(pool) = Arc::into_inner(pool) {
            pool.stop().await;
        }
        self.note_connection();
        self.reports.finish();
        // The last reports are still shown.
        let _ = reporting.await;
    }
}
