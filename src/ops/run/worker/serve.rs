//! The process that carries out an order. It outlives the connection to its client, which the next one takes up again.

use std::collections::BTreeMap;
use std::future::Future;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use interprocess::local_socket::tokio::Stream;
use interprocess::local_socket::traits::tokio::Listener as _;
use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::outbox::Outbox;
use super::session::{Command, Handle, Task, deliver};
use super::site::{self, Site};
use super::{ENDPOINT, LOCK, ORDER, folder_of};
use crate::engine::connection::{Connection, Incoming, Responder};
use crate::engine::dialect::Dialect;
use crate::engine::remote::frames::{Alive, Begun, Objects, OfSession, Opened, Order, PROTOCOL, Taken, method};
use crate::engine::{Adapter, AdapterSession, EngineError, Opening, spawn};
use crate::env::{Env, lock};
use crate::error::Failure;
use crate::model::IntoMap;
use crate::ops::ledger::journal::aside;
use crate::ops::run::host::{Endpoint, listen};
use crate::ops::run::local_file;
use crate::ops::runtime;
use crate::program::leave_terminal;

/// How long a worker waits for its order, and for a client that is gone before there is a session: all else is on disk.
const NO_WORK: Duration = Duration::from_secs(120);
/// How long sessions may take to close for another client.
const CLOSING: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_millis(100);
const FACTS: &str = "facts.ndjson";

struct Worker {
    env: Env,
    folder: PathBuf,
    order: Mutex<Option<Order>>,
    site: tokio::sync::Mutex<Option<Arc<Site>>>,
    sessions: Mutex<Sessions>,
    /// Held while a session is opened, so that none is opened twice.
    opening: tokio::sync::Mutex<()>,
    outbox: Arc<Outbox>,
    asked: Arc<AtomicU64>,
    is_finished: watch::Sender<bool>,
}

#[derive(Default)]
struct Sessions {
    open: BTreeMap<u64, Handle>,
    tasks: JoinSet<()>,
}

/// What comes over one connection.
struct Client {
    worker: Arc<Worker>,
    bundle: Mutex<Option<NamedTempFile>>,
    /// Whether it gave the order before, over a connection that broke.
    is_known: Mutex<bool>,
}

#[derive(Deserialize)]
struct OpenSession {
    session: u64,
    opening: Opening,
}

/// Carries out the order of an id; the process is for that alone.
pub(super) fn serve(env: &Env, id: &str) -> Result<(), Failure> {
    let folder = folder_of(env, id).map_err(Failure::failed)?;
    let open = lock::open(&folder.join(LOCK)).and_then(|file| Ok((lock::take(&file)?, file)));
    let (is_free, _lock) = open.map_err(|error| Failure::failed(error.to_string()))?;
    if !is_free {
        return Ok(());
    }
    leave_terminal();
    let served = runtime(env)?.block_on(Worker::serve(env, &folder, id));
    served.map_err(Failure::failed)
}

impl Worker {
    async fn serve(env: &Env, folder: &Path, id: &str) -> Result<(), String> {
        let endpoint = Endpoint::new(folder, id).map_err(|error| error.to_string())?;
        let listener = listen(&endpoint).map_err(|error| error.to_string())?;
        local_file::replace(&folder.join(ENDPOINT), &endpoint).map_err(|error| error.to_string())?;
        let outbox = Outbox::open(&folder.join(FACTS)).map_err(|error| error.to_string())?;
        let worker = Arc::new(Self {
            env: env.clone(),
            folder: folder.to_owned(),
            order: Mutex::new(local_file::read(&folder.join(ORDER))),
            site: tokio::sync::Mutex::default(),
            sessions: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            outbox: Arc::new(outbox),
            // A client remembers the questions of a process that was killed.
            asked: Arc::new(AtomicU64::new(env.clock.now().as_microsecond().unsigned_abs())),
            is_finished: watch::Sender::new(false),
        });
        let mut finished = worker.is_finished.subscribe();
        loop {
            tokio::select! {
                connection = listener.accept() => match connection {
                    Ok(stream) => worker.connect(stream),
                    // For example too many open files; a later connection may succeed.
                    Err(_) => sleep(RETRY).await,
                },
                () = worker.outbox.is_abandoned(|| worker.lease()) => break,
                _ = finished.wait_for(|is_finished| *is_finished) => {
                    // Its client ends the connection once it has the answer.
                    let _ = timeout(CLOSING, worker.outbox.is_abandoned(|| Duration::ZERO)).await;
                    break;
                }
            }
        }
        worker.finish().await;
        endpoint.clear();
        Ok(())
    }

    fn connect(self: &Arc<Self>, stream: Stream) {
        let (output, input) = tokio::io::split(stream);
        let client = Client { worker: Arc::clone(self), bundle: Mutex::default(), is_known: Mutex::default() };
        let connection = Connection::start(Dialect::Lines, input, output, Arc::new(Receiver(Arc::new(client))));
        let outbox = Arc::clone(&self.outbox);
        spawn(async move {
            connection.closed().await;
            outbox.detach(&connection);
        });
    }

    fn lease(&self) -> Duration {
        let has_session = !self.sessions.lock().open.is_empty();
        let order = self.order.lock();
        order.as_ref().filter(|_| has_session).map_or(NO_WORK, |order| Duration::from_secs(order.lease))
    }

    /// Closes the sessions and ends the engine. The clone stays.
    async fn finish(&self) {
        self.close_sessions().await;
        if let Some(site) = self.site.lock().await.take().and_then(Arc::into_inner) {
            site.stop().await;
        }
    }

    async fn close_sessions(&self) {
        let mut sessions = std::mem::take(&mut *self.sessions.lock());
        sessions.open.clear();
        self.outbox.set_closing(true);
        // A client that is there may not answer, and an engine may not end.
        let _ = timeout(CLOSING, async { while sessions.tasks.join_next().await.is_some() {} }).await;
        sessions.tasks.shutdown().await;
        self.outbox.set_closing(false);
    }
}

impl Client {
    /// Takes the order, and says what is lacking for it.
    async fn order(&self, order: Order) -> Result<Value, String> {
        let worker = &self.worker;
        if order.protocol != PROTOCOL {
            let own = env!("CARGO_PKG_VERSION");
            return Err(format!("the order is of squad {}, which this squad {own} does not understand", order.version));
        }
        if folder_of(&worker.env, &order.id)? != worker.folder {
            return Err("the order is for another worker".to_owned());
        }
        let before = worker.order.lock().clone();
        let is_known = before.as_ref().is_some_and(|before| before.client == order.client);
        if !is_known {
            worker.finish().await;
            worker.outbox.forget().map_err(|error| error.to_string())?;
        }
        *self.is_known.lock() = is_known;
        let (env, given) = (worker.env.clone(), order.clone());
        let threads = env.threads;
        let store = aside(threads, move || site::store(&env, &given)).await??;
        // In this order: another worker may bring the base meanwhile, and a bundle without it would be empty.
        let has = store.bases().map_err(|error| error.to_string())?;
        let lacks = !store.has_commit(&order.base);
        worker.outbox.renew(order.budget.clone(), order.after).map_err(|error| error.to_string())?;
        local_file::replace(&worker.folder.join(ORDER), &order).map_err(|error| error.to_string())?;
        *worker.order.lock() = Some(order);
        let open = &worker.sessions.lock().open;
        let sessions =
            open.iter().map(|(number, handle)| (*number, handle.working.load(Ordering::Relaxed) > 0)).into_map();
        Ok(json!(Taken { lacks, has, sessions }))
    }

    async fn objects(&self, Objects { data, is_last }: Objects) -> Result<Value, String> {
        let bundle = {
            let mut bundle = self.bundle.lock();
            if bundle.is_none() {
                *bundle = Some(NamedTempFile::new().map_err(|error| error.to_string())?);
            }
            let data = STANDARD.decode(data).map_err(|error| error.to_string())?;
            let written = bundle.as_mut().map(|file| file.write_all(&data));
            written.transpose().map_err(|error| error.to_string())?;
            if is_last { bundle.take() } else { None }
        };
        let Some(bundle) = bundle else { return Ok(Value::Null) };
        let (env, order) = (self.worker.env.clone(), self.ordered()?);
        let take = move || {
            let store = site::store(&env, &order)?;
            let bases = store.bases().map_err(|error| error.to_string())?;
            store.take_base(bundle.path(), &order.base, &bases).map_err(|error| error.to_string())
        };
        aside(self.worker.env.threads, take).await??;
        Ok(Value::Null)
    }

    fn ordered(&self) -> Result<Order, String> {
        self.worker.order.lock().clone().ok_or_else(|| "there is no order yet".to_owned())
    }

    /// Makes everything ready, and tells this client from then on what happens.
    async fn begin(&self, connection: Arc<Connection>) -> Result<Value, String> {
        let (worker, order) = (&self.worker, self.ordered()?);
        let mut place = worker.site.lock().await;
        let site = match &*place {
            Some(site) => Arc::clone(site),
            None => {
                let (env, given) = (worker.env.clone(), order.clone());
                let store = aside(worker.env.threads, move || site::store(&env, &given)).await??;
                let site = Site::prepare(&worker.env, &worker.folder, &order, store).await?;
                worker.outbox.hide(&site.grant);
                Arc::clone(place.insert(Arc::new(site)))
            }
        };
        drop(place);
        let (set, base) = (Arc::clone(&site), order.base.clone());
        aside(worker.env.threads, move || set.set_base(&base)).await??;
        worker.outbox.attach(connection, order.after).map_err(|error| error.to_string())?;
        if !*self.is_known.lock() {
            // What was done for a client that is gone.
            deliver(&site, &worker.outbox, None, worker.env.threads).await?;
        }
        let (root, version, offer) =
            (site.root.display().to_string(), site.engine.version(), site.engine.offer().await);
        Ok(json!(Begun { root, version, offer }))
    }

    async fn open(&self, OpenSession { session: number, opening }: OpenSession) -> Result<Value, String> {
        let worker = &self.worker;
        let site = worker.site.lock().await.clone().ok_or("the work has not begun")?;
        let _one_at_a_time = worker.opening.lock().await;
        if let Some(handle) = worker.sessions.lock().open.get(&number) {
            return Ok(json!(Ok::<_, EngineError>(&handle.opened)));
        }
        let asked = opening.spec.model.asked().map(str::to_owned);
        let session = match site.engine.open(opening).await {
            Ok(session) => session,
            Err(error) => return Ok(json!(Err::<Opened, _>(error))),
        };
        let opened = Opened {
            model: session.model().to_owned(),
            workspace: session.workspace(),
            reports_tools: session.reports_tools(),
            sandbox: session.sandbox(),
            is_listed: session.is_listed(),
        };
        worker.outbox.opened(number, [Some(opened.model.clone()).filter(|model| !model.is_empty()), asked]);
        if let Some(prepared) = site.prepared() {
            worker.outbox.tell(number, prepared);
        }
        let (commands, received) = mpsc::unbounded_channel();
        let working = Arc::new(AtomicU64::new(0));
        let task = Task {
            number,
            session,
            commands: received,
            working: Arc::clone(&working),
            outbox: Arc::clone(&worker.outbox),
            site,
            asked: Arc::clone(&worker.asked),
            mark: 0,
            threads: worker.env.threads,
        };
        let mut sessions = worker.sessions.lock();
        sessions.tasks.spawn(task.run());
        sessions.open.insert(number, Handle { commands, opened: opened.clone(), working });
        Ok(json!(Ok::<_, EngineError>(opened)))
    }

    fn command(&self, method: &str, of: OfSession, responder: Responder) {
        let mut sessions = self.worker.sessions.lock();
        let Some(handle) = sessions.open.get(&of.session) else { return responder.invalid("no such session is open") };
        let number = of.session;
        let command = Command { method: method.to_owned(), of, responder };
        let sent = handle.commands.send(command);
        if method == method::CLOSE || sent.is_err() {
            sessions.open.remove(&number);
        }
    }
}

/// Requests about one session are passed on in their order; others are awaited by the client one by one.
struct Receiver(Arc<Client>);

impl Receiver {
    fn aside<T: DeserializeOwned + Send + 'static, F: Future<Output = Result<Value, String>> + Send>(
        &self,
        (responder, params): (Responder, Value),
        work: impl FnOnce(Arc<Client>, T) -> F + Send + 'static,
    ) {
        let client = Arc::clone(&self.0);
        match serde_json::from_value(params) {
            Ok(params) => drop(spawn(async move {
                match work(client, params).await {
                    Ok(answer) => responder.answer(answer),
                    Err(why) => responder.invalid(&why),
                }
            })),
            Err(error) => responder.invalid(&error.to_string()),
        }
    }
}

impl Incoming for Receiver {
    fn notified(&self, _: &Arc<Connection>, _: &str, _: Value) {}

    fn requested(&self, responder: Responder, name: &str, params: Value) {
        let connection = responder.connection();
        match name {
            method::ALIVE => {
                // An older client says nothing with it.
                if let Ok(Alive { after: after @ 1.., budget }) = serde_json::from_value(params) {
                    let _ = self.0.worker.outbox.renew(budget, after);
                }
                responder.answer(Value::Null);
            }
            method::ORDER => {
                self.aside((responder, params), async |client: Arc<Client>, order| client.order(order).await);
            }
            method::OBJECTS => {
                self.aside((responder, params), async |client: Arc<Client>, objects| client.objects(objects).await);
            }
            method::BEGIN => self
                .aside((responder, params), async move |client: Arc<Client>, _: Value| client.begin(connection).await),
            method::OPEN => {
                self.aside((responder, params), async |client: Arc<Client>, session| client.open(session).await);
            }
            method::FINISH => self.aside((responder, params), async |client: Arc<Client>, _: Value| {
                client.worker.finish().await;
                client.worker.is_finished.send_replace(true);
                Ok(Value::Null)
            }),
            _ => match serde_json::from_value(params) {
                Ok(of) => self.0.command(name, of, responder),
                Err(error) => responder.invalid(&error.to_string()),
            },
        }
    }
}
