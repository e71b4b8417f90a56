//! An order that lies on a remote, carried out without anybody to talk to; its result is left there.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::time::{Instant, sleep, sleep_until};

use super::grant::Grant;
use super::purse::Purse;
use super::site::{self, Changes, Site};
use super::{LOCK, ORDER, folder_of, hello, make_private};
use crate::engine::remote::frames::{
    Ask, Asked, BatchOrder, Begun, NumberedFact, Order, PROTOCOL, is_root, method, moved,
};
use crate::engine::{Adapter, AdapterSession, Approval, Fact, Opening, Reply, Request, ToolCall, ToolResult, backoff};
use crate::env::{Clock, Env, lock};
use crate::error::Failure;
use crate::git::{Error, Head, Repository};
use crate::model::{Slug, from_json};
use crate::ops::ledger::journal::{aside, writer};
use crate::ops::ledger::sync::choose;
use crate::ops::run::hosts::{FACTS_FILE, MAX_FACTS, MAX_WORK, ORDER_FILE, ORDERS, RESULTS, TURNS, WORK_FILE, records};
use crate::ops::run::local_file;
use crate::ops::run::order;
use crate::ops::run::resume::Past;
use crate::ops::run::setup;
use crate::ops::runtime;
use crate::ops::team::workspace::git_environment;
use crate::policy::Permissions;
use crate::pool::{Cancel, Canceller, Message, Reports, RequestHandler, Requester};
use crate::tools::Tool;

/// Why a job's agent ends.
const USED_UP: &str = "what it might use of the budgets is used up";
/// The refs of orders that are being read.
const JOBS: &str = "refs/squad/jobs/";
/// Most bytes of an order.
const MAX_ORDER: u64 = 64 << 20;
/// How often what happened is put on the remote, if anything did, and that the job is at work if nothing did.
const EVERY: Duration = Duration::from_secs(10);
const HEARTBEAT: Duration = Duration::from_secs(60);
/// Bytes of the result that are left for how it ended.
const END: u64 = 1 << 20;
/// How often the remote may refuse the whole result, with waits that double from one second on.
const ATTEMPTS: u32 = 10;

/// The result of an order, as it is put on the remote.
struct Outbox {
    repository: Repository,
    remote: String,
    order: String,
    result: String,
    clock: Clock,
    /// The commit on the remote.
    posted: Option<String>,
    lines: Vec<u8>,
    /// The number of facts.
    count: u64,
    /// What nobody is told.
    secrets: Arc<Grant>,
}

/// Why an order is no more at work here.
enum Stopped {
    /// Nobody wants its result.
    Withdrawn,
    /// Another job has said something about it.
    Taken,
    Failed(String),
}

impl From<String> for Stopped {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

pub(super) fn carry_out(env: &Env, directory: &Path, reference: &str, remote: Option<&str>) -> Result<(), Failure> {
    let id = reference.strip_prefix(ORDERS).filter(|id| folder_of(env, id).is_ok());
    let id = id.ok_or_else(|| {
        Failure::usage(format!("`{reference}` is no order's ref")).hint(format!("it begins with {ORDERS}"))
    })?;
    let folder = folder_of(env, id).map_err(Failure::failed)?;
    let repository = Repository::discover(directory, &git_environment(env, directory))?;
    let remote = choose(&repository, remote)?;
    let there = repository.remote(&remote);
    if there.posted(reference)?.is_none() {
        return Err(
            Failure::usage(format!("{remote} has no order {reference}")).hint("it was carried out or withdrawn")
        );
    }
    make_private(env, &folder).map_err(|error| Failure::failed(format!("{}: {error}", folder.display())))?;
    let open = lock::open(&folder.join(LOCK)).and_then(|file| Ok((lock::try_take(&file)?, file)));
    let (is_free, _lock) = open.map_err(|error| Failure::failed(error.to_string()))?;
    if !is_free {
        return Err(Failure::failed(format!("another worker here carries out {reference}")));
    }
    // Not the order's own name: in the user's repository, that is what waits for its result.
    let kept = [format!("{JOBS}{id}"), format!("{JOBS}{id}_base")];
    let posted = there.fetch_post(reference, &kept[0])?;
    let bytes = posted.file(ORDER_FILE, MAX_ORDER)?.unwrap_or_default();
    let batch: BatchOrder = from_json(&bytes)
        .map_err(|error| Failure::usage(format!("{reference} holds no order that can be read: {error}")))?;
    if batch.order.protocol != PROTOCOL || batch.order.id != id {
        let own = env!("CARGO_PKG_VERSION");
        let why = format!("the order is of squad {}, which this squad {own} does not understand", batch.order.version);
        return Err(Failure::failed(why));
    }
    if posted.parent()? != batch.order.base {
        return Err(Failure::failed(format!("{reference} is not on top of the commit that it names")));
    }
    let store = store(env, &repository, &batch.order, &kept[1]);
    repository.delete_references(&kept)?;
    local_file::replace(&folder.join(ORDER), &batch.order).map_err(|error| Failure::failed(error.to_string()))?;
    let result = format!("{RESULTS}{id}");
    let outbox = Outbox {
        repository: repository.clone(),
        remote,
        order: reference.to_owned(),
        result,
        clock: env.clock.clone(),
        posted: None,
        lines: Vec::new(),
        count: 0,
        secrets: Arc::default(),
    };
    let _ = fs::write(folder.join(TURNS), batch.turns.to_string());
    let outcome = runtime(env)?.block_on(work(env, &folder, batch, store, outbox));
    match outcome {
        Ok(()) => {
            // All of it is in the result. What stays, `squad worker --gc` removes.
            let _ = fs::remove_dir_all(&folder);
            Ok(())
        }
        Err(Stopped::Withdrawn) => Err(Failure::failed(format!("{reference} was withdrawn"))),
        Err(Stopped::Taken) => Err(Failure::failed(format!("another job carries {reference} out"))),
        Err(Stopped::Failed(why)) => Err(Failure::failed(why)),
    }
}

/// What is here of the order's repository, with the commit to work on.
fn store(env: &Env, repository: &Repository, order: &Order, kept: &str) -> Result<Repository, String> {
    fn text(error: impl ToString) -> String {
        error.to_string()
    }
    let store = site::store(env, order)?;
    if !store.has_commit(&order.base) {
        let bases = store.bases().map_err(text)?;
        let known: Vec<String> = bases.iter().filter(|commit| repository.has_commit(commit)).cloned().collect();
        let bundle = NamedTempFile::new().map_err(text)?;
        repository.keep(kept, &order.base).map_err(text)?;
        repository.bundle(kept, &known, bundle.path()).map_err(text)?;
        store.take_base(bundle.path(), &order.base, &bases).map_err(text)?;
    }
    Ok(store)
}

async fn work(
    env: &Env,
    folder: &Path,
    batch: BatchOrder,
    store: Result<Repository, String>,
    mut outbox: Outbox,
) -> Result<(), Stopped> {
    outbox.say(method::HELLO, &json!(hello(env)))?;
    outbox.begin(env.threads).await?;
    let ended = match store {
        Ok(store) => agent(env, folder, batch, store, &mut outbox).await,
        Err(why) => Err(Stopped::Failed(why)),
    };
    let (last, bundle) = match ended {
        Ok(ended) => ended,
        Err(Stopped::Failed(why)) => (Fact::Failed(why), None),
        Err(stopped) => return Err(stopped),
    };
    outbox.end(last);
    outbox.post_surely(env.threads, bundle).await
}

/// Has the agent work. Returns the last fact, and a bundle of what it changed.
async fn agent(
    env: &Env,
    folder: &Path,
    batch: BatchOrder,
    store: Repository,
    outbox: &mut Outbox,
) -> Result<(Fact, Option<Vec<u8>>), Stopped> {
    let BatchOrder { order, root, opening, send, may_act, turns: _ } = batch;
    let budget = order.budget.clone();
    let site = Arc::new(Site::prepare(env, folder, &order, store).await?);
    outbox.secrets = Arc::clone(&site.grant);
    let (to, base) = (site.root.display().to_string(), order.base.clone());
    let set = Arc::clone(&site);
    aside(env.threads, move || set.set_base(&base)).await??;
    let begun = Begun { root: to.clone(), version: site.engine.version(), offer: site.engine.offer().await };
    outbox.say(method::BEGIN, &json!(begun))?;
    if !is_root(&root, &order.run) {
        return Err(Stopped::Failed("it names no folder of its run's".to_owned()));
    }
    let here = |value: Value| moved(value, &root, &to);
    let opening = here(serde_json::to_value(opening).map_err(|error| error.to_string())?);
    let mut opening: Opening = serde_json::from_value(opening).map_err(|error| error.to_string())?;
    if !opening.directory.starts_with(&site.root) {
        return Err(Stopped::Failed("it is for another folder".to_owned()));
    }
    // Nobody is there whom these would reach, and the client's files are not these.
    let gone = [Tool::Route, Tool::Status, Tool::Commit, Tool::Shell, Tool::FileOps];
    opening.tools.retain(|tool| !gone.iter().any(|gone| gone.name() == tool.name));
    let agent = Slug::fold(&order.agent).ok_or_else(|| "its agent has no valid name".to_owned())?;
    let (reports, messages) = Reports::channel();
    tokio::spawn(drain(messages));
    let (_canceller, cancel): (Canceller, Cancel) = Cancel::channel();
    let permissions = if may_act { Permissions::Allow } else { Permissions::Deny };
    let asked = order::Order { permissions, ..order::Order::default() };
    let head = Head { branch: order.branch, left: None, commit: None };
    let handler = setup::requests(env, &site.project, &asked, &head, &Past::default(), &[], cancel);
    let tier = opening.spec.tier;
    let requester = Requester::new(agent, reports, !may_act, None).at_tier(tier);
    let attachments = site.attach(send.attachments)?;
    let text = here(Value::String(send.text)).as_str().unwrap_or_default().to_owned();
    let asked = opening.spec.model.asked().map(str::to_owned);
    let mut session = site.engine.open(opening).await.map_err(|error| error.with_hint())?;
    let mut purse = Purse::of(budget);
    purse.opened(1, [Some(session.model().to_owned()).filter(|model| !model.is_empty()), asked]);
    session.send(&text, &attachments).await.map_err(|error| error.with_hint())?;
    if let Some(prepared) = site.prepared() {
        outbox.fact(prepared)?;
    }
    let (mut next, mut beat) = (Instant::now() + EVERY, Instant::now() + HEARTBEAT);
    let mut unposted = outbox.count;
    let last = loop {
        let fact = tokio::select! {
            fact = session.next() => fact,
            () = sleep_until(next) => {
                let looked = if outbox.count > unposted || Instant::now() >= beat {
                    (unposted, beat) = (outbox.count, Instant::now() + HEARTBEAT);
                    outbox.post(env.threads, None).await
                } else {
                    outbox.is_wanted(env.threads).await
                };
                if let Err(stopped @ (Stopped::Withdrawn | Stopped::Taken)) = looked {
                    session.abort().await;
                    session.close().await;
                    return Err(stopped);
                }
                next = Instant::now() + EVERY;
                if purse.is_empty() {
                    session.abort().await;
                    break Fact::Failed(USED_UP.to_owned());
                }
                continue;
            }
        };
        purse.count(outbox.count, 1, &fact);
        let told = match fact {
            Fact::Request(request) => answer(request, &handler, &requester, outbox).await,
            Fact::Alive | Fact::MessageDelta(_) => Ok(()),
            fact if fact.is_last() => break fact,
            fact => outbox.fact(fact),
        };
        let told = told.and_then(|()| if purse.is_empty() { Err(USED_UP.to_owned()) } else { Ok(()) });
        if let Err(why) = told {
            // What it changed so far is not lost.
            session.abort().await;
            break Fact::Failed(why);
        }
    };
    let seen = session.traffic().map(|traffic| traffic.seen_since(0)).unwrap_or_default();
    if !seen.is_empty() {
        outbox.fact(Fact::Reached(seen))?;
    }
    session.close().await;
    let changed = Arc::clone(&site);
    let changes = aside(env.threads, move || changed.changes()).await?;
    if let Some(site) = Arc::into_inner(site) {
        site.stop().await;
    }
    let Some(Changes { commit, bundle, left_out }) = changes? else { return Ok((last, None)) };
    for file in left_out {
        outbox.fact(Fact::Warning(format!("{} stays on its host: {}", file.path, file.why)))?;
    }
    let bytes = fs::read(bundle.path()).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_WORK {
        return Err(Stopped::Failed(format!("what it changed is larger than {MAX_WORK} bytes")));
    }
    outbox.say(method::WORK, &json!({ "commit": commit }))?;
    Ok((last, Some(bytes)))
}

/// Answers what can be answered here, and passes on what is to be recorded.
async fn answer(
    request: Request,
    handler: &RequestHandler,
    requester: &Requester,
    outbox: &mut Outbox,
) -> Result<(), String> {
    match request {
        Request::Tool(call, reply) if records(&call) => {
            outbox.ask(call)?;
            let text = "Noted. It is recorded when the run takes over this job's result.".to_owned();
            reply.send(ToolResult { ok: true, text });
        }
        Request::Permission { call, access, tool, detail, reply } => {
            let (own, given) = Reply::channel();
            let (asked, about) = (tool.clone(), detail.clone());
            handler.answer(requester, Request::Permission { call, access, tool, detail, reply: own }).await;
            let approval = given.await.unwrap_or_else(|_| Approval::Deny("nobody answers".to_owned()));
            if let Approval::Deny(reason) = &approval {
                let (access, tool, detail, reason) = (Some(access), asked, about, reason.clone());
                outbox.fact(Fact::Denied { access, tool, detail, reason })?;
            }
            reply.send(approval);
        }
        other => handler.answer(requester, other).await,
    }
    Ok(())
}

/// What the handler reports is not recorded here.
async fn drain(mut messages: tokio::sync::mpsc::UnboundedReceiver<Message>) {
    while let Some(message) = messages.recv().await {
        if let Message::Flush(done) = message {
            let _ = done.send(Ok(()));
        }
    }
}

impl Outbox {
    fn say(&mut self, method: &str, params: &Value) -> Result<(), String> {
        let before = self.lines.len();
        self.line(method, params);
        if self.lines.len() as u64 >= MAX_FACTS - END {
            self.lines.truncate(before);
            return Err(format!("what is reported of it is larger than {} bytes", MAX_FACTS - END));
        }
        Ok(())
    }

    fn line(&mut self, method: &str, params: &Value) {
        let mut line = json!({ "method": method, "params": params });
        self.secrets.hide(&mut line);
        self.lines.extend(line.to_string().into_bytes());
        self.lines.push(b'\n');
    }

    fn fact(&mut self, fact: Fact) -> Result<(), String> {
        self.count += 1;
        self.say(method::FACT, &json!(NumberedFact { number: self.count, session: 1, fact, priced: None }))
    }

    /// The last fact, for which there is always room.
    fn end(&mut self, fact: Fact) {
        self.count += 1;
        let of = |fact| json!(NumberedFact { number: self.count, session: 1, fact, priced: None });
        let last = of(fact);
        let last = match last.to_string().len() as u64 > END / 2 {
            true => of(Fact::Failed("how it ended is too long to be reported".to_owned())),
            false => last,
        };
        self.line(method::FACT, &last);
    }

    fn ask(&mut self, call: ToolCall) -> Result<(), String> {
        self.count += 1;
        self.say(method::ASK, &json!(Ask { id: self.count, session: 1, asked: Asked::Tool(call) }))
    }

    /// Puts the first word on the remote. Of several jobs with this order, the others end, unless the first has died.
    async fn begin(&mut self, threads: bool) -> Result<(), Stopped> {
        match self.post_surely(threads, None).await {
            Err(Stopped::Taken) => {}
            ended => return ended,
        }
        let (other, since) = (self.result(threads).await?, Instant::now());
        while since.elapsed() < 2 * HEARTBEAT {
            sleep(EVERY / 2).await;
            self.is_wanted(threads).await?;
            if self.result(threads).await? != other {
                return Err(Stopped::Taken);
            }
        }
        self.posted = other;
        self.post_surely(threads, None).await
    }

    async fn post_surely(&mut self, threads: bool, work: Option<Vec<u8>>) -> Result<(), Stopped> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            match self.post(threads, work.clone()).await {
                Err(Stopped::Failed(why)) if attempt < ATTEMPTS => {
                    tracing::warn!("the result cannot be left on the remote: {why}");
                    sleep(backoff(Duration::from_secs(1), attempt)).await;
                }
                ended => return ended,
            }
        }
    }

    /// The commit that the remote has as the order's result.
    async fn result(&self, threads: bool) -> Result<Option<String>, String> {
        self.there(threads, self.result.clone()).await
    }

    async fn is_wanted(&self, threads: bool) -> Result<(), Stopped> {
        self.there(threads, self.order.clone()).await?.map(drop).ok_or(Stopped::Withdrawn)
    }

    async fn there(&self, threads: bool, reference: String) -> Result<Option<String>, String> {
        let (repository, name) = (self.repository.clone(), self.remote.clone());
        let there = aside(threads, move || repository.remote(&name).posted(&reference)).await?;
        there.map_err(|error| error.to_string())
    }

    /// Puts what there is on the remote, unless nobody wants it any more.
    async fn post(&mut self, threads: bool, work: Option<Vec<u8>>) -> Result<(), Stopped> {
        let (repository, name, clock) = (self.repository.clone(), self.remote.clone(), self.clock.clone());
        let (order, result, before, lines) =
            (self.order.clone(), self.result.clone(), self.posted.clone(), self.lines.clone());
        let post = move || {
            let remote = repository.remote(&name);
            if remote.posted(&order)?.is_none() {
                return Ok(None);
            }
            let files = [(FACTS_FILE, lines)].into_iter().chain(work.map(|work| (WORK_FILE, work))).collect();
            remote.post(&result, files, None, before.as_deref(), (&writer(), clock.now())).map(Some)
        };
        let posted: Result<Option<Option<String>>, Error> = aside(threads, post).await?;
        match posted.map_err(|error| error.to_string())? {
            Some(Some(commit)) => self.posted = Some(commit),
            Some(None) => return Err(Stopped::Taken),
            None => return Err(Stopped::Withdrawn),
        }
        Ok(())
    }
}
