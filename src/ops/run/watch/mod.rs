//! `squad watch`: holds the engine and the team's sessions, keeps them as the team's files say, and carries out what
//! other squads of the same user ask for.
//!
//! ```text
//! .squad files ─→ ticks ─→ KnownTeam ─→ SessionPool ←─ runs ←─ connections ←─ squad orchestrate
//!                                           └──────── events ──────→ view
//! ```

mod client;
mod engine;
mod engine_key;
mod lease;
mod memory;
mod peer;
mod serve;
mod state;
mod team;
mod terminal;
mod wire;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::thread;

use interprocess::local_socket::ListenerOptions;
use interprocess::local_socket::tokio::Listener;
use interprocess::local_socket::traits::tokio::Listener as _;
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio::time::Duration;

pub(crate) use client::{Asked, leave, orchestrate};
use engine::report;
use engine_key::EngineKey;
use lease::WatchLease;
pub(in crate::ops) use lease::is_anywhere;
pub(crate) use lease::{WatchFiles, Watcher};
use peer::Client;
pub(crate) use state::{WatchState, state};
use team::KnownTeam;

use crate::engine::rehearsal::Script;
use crate::env::Env;
use crate::error::{Failure, FailureKind};
use crate::model::{ConnectionState, Event, RunId, What};
use crate::ops::run::live;
use crate::ops::run::order::flag_settings;
use crate::ops::run::signals::Obeyed;
use crate::ops::{Project, runtime};
use crate::pool::{Cancel, Canceller, LiveSessions, Reports, SessionPool};
use crate::settings::Layer;
use crate::view::{Follow, Showing, Shown, Shows, Wish, keys};
use crate::watch::FolderChanges;

/// How long to wait where no connection can be made.
const PAUSE: Duration = Duration::from_millis(250);

/// How long runs have to end when the watch does.
const GRACE: Duration = Duration::from_secs(15);
/// How long what is shown last may take.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What is asked of `squad watch`.
pub(crate) struct WatchOrder {
    /// As it is when the watch begins.
    pub(crate) project: Project,
    /// Settings that the call named, by their flags without dashes.
    pub(crate) flags: BTreeMap<String, String>,
    pub(crate) script: Option<Script>,
    /// Sessions are made for somebody who answers questions.
    pub(crate) asks: bool,
}

/// A watch at work.
struct Watch {
    env: Env,
    directory: PathBuf,
    /// The project's.
    root: PathBuf,
    /// Squad's state of this clone.
    local: PathBuf,
    flags: BTreeMap<String, String>,
    script: Option<Script>,
    asks: bool,
    /// Somebody at this terminal answers what nobody else does.
    answers: bool,
    /// Of its own events.
    run: RunId,
    reports: Reports,
    events: mpsc::UnboundedSender<Event>,
    files: WatchFiles,
    /// `None`: it ends.
    pool: RefCell<Option<Arc<SessionPool>>>,
    engine_key: EngineKey,
    /// The engine that is asked for.
    engine_name: String,
    is_starting: Cell<bool>,
    /// Told when an engine has been started.
    started: Notify,
    /// The state of its connection that was told last.
    told: Cell<ConnectionState>,
    team: RefCell<KnownTeam>,
    /// What sessions have done, by the events of all runs.
    sessions: LiveSessions,
    /// Ends what is going on, and for whom that is, by the connection's number.
    at_work: RefCell<BTreeMap<u64, (Canceller, Arc<Client>)>>,
    connections: Cell<u64>,
    changed: Notify,
    ended: Notify,
}

/// The ways to and from whoever shows what happens.
struct Audience {
    showing: Showing,
    answers: bool,
    wishes: mpsc::UnboundedReceiver<Wish>,
    /// They want an end of it.
    end: Arc<Notify>,
}

/// Watches until it is interrupted.
pub(crate) fn watch<F: Follow + Send>(
    env: &Env,
    directory: &Path,
    order: WatchOrder,
    view: &mut F,
) -> Result<(), Failure> {
    memory::give_back();
    let local = order.project.local();
    let files = WatchFiles::of(&order.project);
    let unwritable = |error: std::io::Error| {
        Failure::team(format!("cannot write to {}: {error}", local.display()))
            .hint("squad keeps its local state there; check the folder's permissions")
    };
    let Some(lease) = files.take(env.clock.now()).map_err(unwritable)? else {
        let who =
            files.watcher().map_or_else(|| "another process".to_owned(), |watcher| format!("process {}", watcher.pid));
        return Err(Failure::failed(format!("{who} watches this team already"))
            .hint("`squad status` shows it; `squad orchestrate` uses its sessions"));
    };
    let runtime = runtime(env)?;
    // Whoever reads slowly what is shown, or stops the terminal, must not stop the team.
    let end = Arc::<Notify>::default();
    let (wish, wishes) = mpsc::unbounded_channel();
    let (showing, shows) = Shows::channel(wish, Arc::clone(&end));
    let audience = Audience { showing, answers: view.answers(), wishes, end };
    thread::scope(|scope| {
        let viewing = scope.spawn(move || view.follow(shows));
        let served = serve(env, directory, order, (files, lease), audience);
        let ended = LocalSet::new().block_on(&runtime, served);
        runtime.shutdown_background();
        let deadline = std::time::Instant::now() + LAST_WORDS;
        while !viewing.is_finished() {
            if std::time::Instant::now() > deadline {
                keys::restore();
                // Nobody reads it, so there is nobody to wait for.
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
    (files, lease): (WatchFiles, WatchLease),
    mut audience: Audience,
) -> Result<(), Failure> {
    let (canceller, mut cancel) = Cancel::channel();
    let _obeyed = Obeyed::by_or(&canceller, env, Arc::clone(&audience.end))?;
    if audience.answers {
        tokio::spawn(terminal::tell(audience.showing.clone()));
    }
    let listener = listen(&lease)?;
    let (events, mut heard) = mpsc::unbounded_channel();
    let run = env.ids.run(env.clock.now());
    let WatchOrder { project, flags, script, asks } = order;
    let (reports, reporting) = report(env, &project, &run, &events);
    let watch = Rc::new(Watch {
        env: env.beside(),
        directory: directory.to_owned(),
        root: project.folder.root.clone(),
        local: project.local(),
        flags,
        script,
        asks,
        answers: audience.answers,
        run,
        reports,
        events,
        files,
        pool: RefCell::default(),
        engine_key: EngineKey::of(env, &project),
        engine_name: project.settings.engine.name.clone(),
        is_starting: Cell::default(),
        started: Notify::new(),
        told: Cell::new(ConnectionState::Disconnected),
        team: RefCell::default(),
        sessions: LiveSessions::default(),
        at_work: RefCell::default(),
        connections: Cell::default(),
        changed: Notify::new(),
        ended: Notify::new(),
    });
    tokio::select! {
        biased;
        () = cancel.wait() => return Err(Failure::new(FailureKind::Interrupted, "interrupted before it began")),
        started = watch.start(&project) => drop(started?),
        () = audience.hear(&mut heard) => {}
    }
    let tasks = [
        spawn_local(Rc::clone(&watch).follow(FolderChanges::of(&project.folder.path))),
        spawn_local(Rc::clone(&watch).tell_connection()),
        spawn_local(Rc::clone(&watch).tell_state()),
    ];
    loop {
        tokio::select! {
            biased;
            () = cancel.wait() => break,
            Some(event) = heard.recv() => {
                watch.sessions.note(&event);
                audience.showing.event(event);
                watch.changed.notify_one();
            }
            Some(wish) = audience.wishes.recv() => watch.obey(wish),
            connection = listener.accept() => match connection {
                Ok(connection) => drop(spawn_local(Rc::clone(&watch).connect(connection))),
                // Such as too many open files: the next one may come through.
                Err(error) => {
                    tracing::debug!("a connection could not be made: {error}");
                    tokio::time::sleep(PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    audience.showing.send(Shown::Ending);
    tasks.iter().for_each(JoinHandle::abort);
    tokio::select! {
        () = watch.finish(reporting) => {}
        // What ends is still shown.
        () = audience.hear(&mut heard) => {}
    }
    while let Ok(event) = heard.try_recv() {
        audience.showing.event(event);
    }
    Ok(())
}

impl Audience {
    /// Shows what comes. Never returns.
    async fn hear(&self, events: &mut mpsc::UnboundedReceiver<Event>) {
        while let Some(event) = events.recv().await {
            self.showing.event(event);
        }
        pending().await
    }
}

impl Drop for Audience {
    fn drop(&mut self) {
        self.showing.send(Shown::End);
    }
}

fn listen(lease: &WatchLease) -> Result<Listener, Failure> {
    let options = |name| {
        let options = ListenerOptions::new().name(name).reclaim_name(false);
        #[cfg(unix)]
        let options = interprocess::os::unix::local_socket::ListenerOptionsExt::mode(options, 0o600);
        options
    };
    lease.socket().and_then(|name| options(name).create_tokio()).map_err(|error| {
        Failure::failed(format!("cannot listen for other squads: {error}"))
            .hint("squad keeps its socket beside its local state; check the folder's permissions")
    })
}

impl Watch {
    fn settings(&self) -> Layer {
        flag_settings(&self.flags)
    }

    /// The team's sessions. An engine that is gone for good is started again.
    async fn pool(&self, project: &Project) -> Result<Arc<SessionPool>, Failure> {
        let pool = self.pool.borrow().clone();
        match pool {
            Some(pool) if pool.is_usable() => return Ok(pool),
            Some(_) => {}
            None => return Err(Failure::failed("squad watch is about to end")),
        }
        let pool = self.start(project).await?;
        // The next look finds a team without sessions, and warms up its core.
        self.team.take();
        Ok(pool)
    }

    /// What a person at this terminal wants.
    fn obey(&self, wish: Wish) {
        match wish {
            Wish::Cancel { run, agent } => {
                // A run that cannot be asked has ended, and its folder with it.
                let _ = live::ask_to_cancel(&self.local, &run, Some(&agent));
            }
            Wish::Answer { run, question, text } => {
                let at_work = self.at_work.borrow();
                if let Some((_, client)) = at_work.values().find(|(_, client)| client.is_of(&run)) {
                    client.answer(question, text);
                }
            }
        }
    }

    /// Keeps the sessions as the team's files say.
    async fn follow(self: Rc<Self>, mut changes: FolderChanges) {
        if let Some(problem) = &changes.problem {
            let reason = format!("changes of files are looked for once a second: {problem}");
            self.reports.tell(None, What::SessionError { session: String::new(), reason });
        }
        loop {
            let is_unsure = self.look().await;
            tokio::select! {
                () = changes.tick() => {}
                () = tokio::time::sleep(team::DOUBT), if is_unsure => {}
            }
        }
    }

    /// Ends what is going on, and then the engine.
    async fn finish(&self, reporting: JoinHandle<()>) {
        self.at_work.borrow().values().for_each(|(canceller, _)| {
            canceller.run();
        });
        let all_ended = async {
            while !self.at_work.borrow().is_empty() {
                self.ended.notified().await;
            }
        };
        // A client that is stopped may have been asked to land what was decided.
        let _ = tokio::time::timeout(GRACE, all_ended).await;
        let Some(pool) = self.pool.borrow_mut().take() else { return };
        // What still holds it ends with the process, and the engine with it.
        if let Some(pool) = Arc::into_inner(pool) {
            pool.stop().await;
        }
        self.note_connection();
        self.reports.finish();
        // What it was told last is shown.
        let _ = reporting.await;
    }
}
