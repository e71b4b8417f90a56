//! The machines on which the agents of a run work: which one, and how many at the same time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use parking_lot::Mutex;
use tempfile::NamedTempFile;
use tokio::sync::Notify;

use crate::engine::ToolCall;
use crate::engine::remote::batch::{Mailbox, Received};
use crate::engine::remote::{Launch, Mirror};
use crate::env::{Clock, Env};
use crate::error::Failure;
use crate::git::{Error, Repository};
use crate::model::{IntoMap, Member, RunId, Slug, list};
use crate::ops::Project;
use crate::ops::ledger::journal::writer;
use crate::ops::ledger::sync::choose;
use crate::ops::run::own_commands::program;
use crate::ops::team::engines;
use crate::ops::team::workspace::git_environment;
use crate::pool::{Permit, Permits, Priority};
use crate::program::Programs;
use crate::settings::{HostSettings, Origin, Settings};
use crate::tools::{self, Intent};

/// The refs of orders on a remote, and those of their results.
pub(super) const ORDERS: &str = "refs/squad/orders/";
pub(super) const RESULTS: &str = "refs/squad/results/";
/// The files on them.
pub(super) const ORDER_FILE: &str = "order.json";
pub(super) const FACTS_FILE: &str = "facts.ndjson";
pub(super) const WORK_FILE: &str = "work.bundle";
/// The file with the number of an agent's completed turns.
pub(super) const TURNS: &str = "turns";
/// Most bytes of each: they are read into memory.
pub(super) const MAX_FACTS: u64 = 64 << 20;
pub(super) const MAX_WORK: u64 = 512 << 20;

/// The free slots of the user's hosts, in this run.
pub(super) struct Hosts {
    free: Mutex<BTreeMap<String, usize>>,
    /// The slots that all runs of the user share, by host.
    shared: BTreeMap<String, Arc<Permits>>,
    freed: Notify,
}

/// A slot on a host, until it is dropped.
pub(super) struct Slot {
    hosts: Arc<Hosts>,
    pub(super) host: String,
    /// Held until the slot is given back.
    permit: Option<Permit>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.permit.take();
        if let Some(free) = self.hosts.free.lock().get_mut(&self.host) {
            *free += 1;
        }
        self.hosts.freed.notify_waiters();
    }
}

impl Hosts {
    pub(super) fn new(env: &Env, settings: &Settings) -> Arc<Self> {
        let free = settings.hosts.iter().map(|(name, host)| (name.clone(), host.slots)).into_map();
        let folder = env.user_state().map(|folder| folder.join("hosts"));
        let permits = |(name, host): (&String, &HostSettings)| {
            Some((name.clone(), Permits::shared(host.slots, &folder.as_ref()?.join(name))))
        };
        let shared = settings.hosts.iter().filter_map(permits).into_map();
        Arc::new(Self { free: Mutex::new(free), shared, freed: Notify::new() })
    }

    /// Waits for a slot on one of these hosts, which other runs may have, too.
    pub(super) async fn take(self: &Arc<Self>, hosts: &[&str]) -> Slot {
        let mut slot = self.take_here(hosts).await;
        if let Some(shared) = self.shared.get(&slot.host) {
            slot.permit = Some(shared.take(Priority::default()).await);
        }
        slot
    }

    /// Takes a slot where this run has most of them free.
    async fn take_here(self: &Arc<Self>, hosts: &[&str]) -> Slot {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // From here on no slot becomes free unnoticed.
            freed.as_mut().enable();
            {
                let mut free = self.free.lock();
                let best = hosts.iter().max_by_key(|host| free.get(**host).copied().unwrap_or(0));
                if let Some(left) = best.and_then(|host| free.get_mut(*host)).filter(|left| **left > 0) {
                    *left -= 1;
                    let host = best.map(|host| (*host).to_owned()).unwrap_or_default();
                    return Slot { hosts: Arc::clone(self), host, permit: None };
                }
            }
            freed.await;
        }
    }
}

/// Whether any of these members works on another machine.
pub(super) fn is_any_away<'m>(settings: &Settings, members: impl IntoIterator<Item = &'m Member>) -> bool {
    members.into_iter().any(|member| settings.host_of(&member.names()).is_some())
}

/// The hosts that an agent may work on with its engine; `None`: it works here.
pub(super) fn hosts_of<'s>(project: &'s Project, agent: &Slug) -> Result<Option<Vec<&'s str>>, String> {
    let settings = &project.settings;
    let Some(member) = project.team.member(agent) else { return Ok(None) };
    let Some(named) = settings.host_of(&member.names()) else { return Ok(None) };
    let engine = engines::of_agent(project, agent);
    let engine = engine.as_ref().unwrap_or(&settings.engine.name);
    let all = settings.hosts_named(named);
    let has = |host: &&str| {
        settings.hosts.get(*host).is_some_and(|host| host.engines.is_empty() || host.engines.contains(engine))
    };
    let fit: Vec<&str> = all.iter().copied().filter(has).collect();
    match fit.is_empty() {
        true => Err(format!("none of its hosts ({}) may start the engine `{engine}`", list(all))),
        false => Ok(Some(fit)),
    }
}

/// How many agents work at the same time where all work on hosts; `None`: nothing more is said than anywhere else.
pub(super) fn slots(settings: &Settings) -> Option<usize> {
    let named = settings.isolation.host.as_deref()?;
    let is_said = matches!(settings.origin("sessions.max_concurrent"), Origin::Flag(_));
    let slots = |host: &str| settings.hosts.get(host).map_or(0, |host| host.slots);
    (!is_said).then(|| settings.hosts_named(named).into_iter().map(slots).sum())
}

/// How to start a worker on a host.
pub(in crate::ops) fn launch(env: &Env, directory: &Path, settings: &Settings, host: &str) -> Result<Launch, String> {
    let configured = settings.hosts.get(host).ok_or_else(|| format!("there is no host `{host}` any more"))?;
    let variables = env.os_variables();
    let (program, arguments) = match configured.launch.split_first() {
        Some((name, arguments)) => {
            (Some(program(name, directory, &Programs::new(directory, &variables))?), arguments.to_vec())
        }
        None => (None, Vec::new()),
    };
    let host = host.to_owned();
    Ok(Launch {
        host,
        program,
        arguments,
        directory: directory.to_owned(),
        variables,
        #[cfg(test)]
        wire: None,
    })
}

/// An agent's clone here, of which one on a host has the same.
pub(super) struct CloneMirror {
    /// The user's, which has the clone's objects.
    store: Repository,
    clone: Repository,
    /// Where in it what is sent is kept, and what comes back.
    references: [String; 2],
    /// The file with the clone's commit when its agent came from another host, and what that one had sent on top of it.
    carried: PathBuf,
}

impl CloneMirror {
    pub(super) fn of(
        store: &Repository,
        clone: &Repository,
        references: [String; 2],
        carried: PathBuf,
    ) -> Arc<dyn Mirror> {
        Arc::new(Self { store: store.clone(), clone: clone.clone(), references, carried })
    }
}

/// What an agent did on a host that it was given up on: it goes to a ref, and into no clone.
pub(super) struct Left {
    /// The user's.
    store: Repository,
    reference: String,
    base: String,
}

impl Left {
    pub(super) fn of(store: &Repository, reference: &str, base: String) -> Arc<dyn Mirror> {
        Arc::new(Self { store: store.clone(), reference: reference.to_owned(), base })
    }
}

impl Mirror for Left {
    fn base(&self) -> Result<String, String> {
        Ok(self.base.clone())
    }

    fn bundle(&self, _: &str, _: &[String], _: &Path) -> Result<(), String> {
        Err("it never had the order".to_owned())
    }

    fn take(&self, file: &Path, commit: &str) -> Result<(), String> {
        match commit == self.base {
            true => Ok(()),
            false => {
                self.store.take_work(file, (commit, &self.reference), std::slice::from_ref(&self.base)).map_err(text)
            }
        }
    }
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

impl Mirror for CloneMirror {
    fn base(&self) -> Result<String, String> {
        let head = self.clone.head().map_err(text)?.commit.ok_or_else(|| "its clone has no commit".to_owned())?;
        let carried = fs::read_to_string(&self.carried).unwrap_or_default();
        let carried = carried.lines().collect::<Vec<_>>();
        Ok(match carried[..] {
            [from, commit] if from == head => commit.to_owned(),
            _ => head,
        })
    }

    fn bundle(&self, commit: &str, has: &[String], file: &Path) -> Result<(), String> {
        let known: Vec<String> = has.iter().filter(|commit| self.store.has_commit(commit)).cloned().collect();
        let [reference, _] = &self.references;
        self.store.keep(reference, commit).and_then(|()| self.store.bundle(reference, &known, file)).map_err(text)
    }

    fn take(&self, file: &Path, commit: &str) -> Result<(), String> {
        let base = self.base()?;
        if commit != base {
            self.store.take_work(file, (commit, &self.references[1]), &[base]).map_err(text)?;
        }
        self.clone.show(commit).map_err(text)
    }
}

/// An agent's orders and their results on a remote.
pub(super) struct RemoteMailbox {
    /// The user's.
    repository: Repository,
    remote: String,
    /// What the ids of the agent's orders begin with.
    agent: String,
    /// The file with the number of turns that the agent has completed.
    turns: PathBuf,
    clock: Clock,
}

impl RemoteMailbox {
    /// `place`: the folder for what is kept of the agent's clone here.
    pub(super) fn of(
        env: &Env,
        repository: &Repository,
        agent: String,
        place: &Path,
    ) -> Result<Arc<dyn Mailbox>, String> {
        let none = |_| "orders for it lie on a remote, and there is none: git remote add origin URL".to_owned();
        let remote = choose(repository, None).map_err(none)?;
        let (repository, turns, clock) = (repository.clone(), place.join(TURNS), env.clock.clone());
        Ok(Arc::new(Self { repository, remote, agent, turns, clock }))
    }
}

/// Whether a call only records something.
pub(super) fn records(call: &ToolCall) -> bool {
    matches!(tools::read(call), Ok(Intent::Decide(_) | Intent::Remember { .. } | Intent::Judge(_)))
}

/// Takes the orders of a run away whose process is gone, with their results. Returns their number.
pub(super) fn withdraw(repository: &Repository, run: &RunId) -> Result<usize, Failure> {
    let prefix = format!("{ORDERS}{run}-");
    let mut orders = repository.references_below(ORDERS)?;
    orders.retain(|order| order.starts_with(&prefix));
    if !orders.is_empty() {
        remove(repository, &choose(repository, None)?, &orders)?;
    }
    Ok(orders.len())
}

/// Removes orders with their results, first there: what stays there is still known here.
fn remove(repository: &Repository, remote: &str, orders: &[String]) -> Result<(), Error> {
    let results = orders.iter().map(|order| order.replacen(ORDERS, RESULTS, 1));
    let references: Vec<String> = orders.iter().cloned().chain(results).collect();
    repository.remote(remote).unpost(&references)?;
    repository.delete_references(&references)
}

/// The number of turns in a file that [`count_turn`] writes.
pub(super) fn turns(file: &Path) -> usize {
    fs::read_to_string(file).ok().and_then(|turns| turns.trim().parse().ok()).unwrap_or(0)
}

pub(super) fn count_turn(file: &Path) {
    // Only what the rehearsal engine plays next depends on it.
    let _ = fs::write(file, (turns(file) + 1).to_string());
}

/// Whether the remote answers on which orders are left.
pub(super) fn try_remote(env: &Env, directory: &Path) -> Result<(), String> {
    let repository = Repository::discover(directory, &git_environment(env, directory)).map_err(text)?;
    let remote = choose(&repository, None).map_err(|failure| failure.message)?;
    repository.remote(&remote).posted(ORDERS).map(drop).map_err(text)
}

impl Mailbox for RemoteMailbox {
    fn pending(&self) -> Result<Option<(String, bool)>, String> {
        let ids = self.repository.references_below(ORDERS).map_err(text)?;
        let mut ids = ids.iter().filter_map(|name| name.strip_prefix(ORDERS));
        // Other agents' names may begin as this one's.
        let is_own = |id: &&str| id.strip_prefix(&self.agent).is_some_and(|rest| rest.rfind('-') == Some(0));
        let Some(id) = ids.rfind(is_own) else { return Ok(None) };
        let remote = self.repository.remote(&self.remote);
        let is_there = |kind: &str| remote.posted(&format!("{kind}{id}")).map(|posted| posted.is_some()).map_err(text);
        let has_begun = is_there(RESULTS)?;
        if has_begun || is_there(ORDERS)? {
            return Ok(Some((id.to_owned(), has_begun)));
        }
        // It never got there.
        self.repository.delete_references(&[self.reference(id)]).map_err(text)?;
        Ok(None)
    }

    fn reference(&self, id: &str) -> String {
        format!("{ORDERS}{id}")
    }

    fn send(&self, id: &str, order: &[u8], base: &str) -> Result<(), String> {
        let (reference, remote) = (self.reference(id), self.repository.remote(&self.remote));
        let files = vec![(ORDER_FILE, order.to_vec())];
        let posted = remote.post(&reference, files, Some(base), None, (&writer(), self.clock.now()));
        match posted.map_err(text).and_then(|posted| posted.ok_or_else(|| "it has such an order already".to_owned())) {
            Ok(_) => Ok(()),
            Err(why) => {
                self.repository.delete_references(&[reference]).map_err(text)?;
                Err(format!("the order cannot be left on {}: {why}", self.remote))
            }
        }
    }

    fn receive(&self, id: &str, known: Option<&str>) -> Result<Option<Received>, String> {
        let (reference, remote) = (format!("{RESULTS}{id}"), self.repository.remote(&self.remote));
        let now = remote.posted(&reference).map_err(text)?;
        if now.is_none() || now.as_deref() == known {
            return Ok(None);
        }
        let posted = remote.fetch_post(&reference, &reference).map_err(text)?;
        let facts = posted.file(FACTS_FILE, MAX_FACTS).map_err(text)?.unwrap_or_default();
        let work = posted.file(WORK_FILE, MAX_WORK).map_err(text)?.map(|bytes| {
            let file = NamedTempFile::new()?;
            fs::write(file.path(), bytes)?;
            Ok::<_, io::Error>(file)
        });
        Ok(Some(Received { identity: posted.commit, facts, work: work.transpose().map_err(text)? }))
    }

    fn clear(&self, id: &str) -> Result<(), String> {
        remove(&self.repository, &self.remote, &[self.reference(id)]).map_err(text)
    }

    fn records(&self, call: &ToolCall) -> bool {
        records(call)
    }

    fn turns(&self) -> usize {
        turns(&self.turns)
    }

    fn count_turn(&self) {
        count_turn(&self.turns);
    }
}

#[cfg(all(test, unix))]
#[path = "hosts_simulation.rs"]
mod simulation;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::task::JoinSet;
    use tokio::time::{Instant, sleep};

    use super::*;

    fn hosts(slots: &[usize]) -> Arc<Hosts> {
        let free = slots.iter().enumerate().map(|(at, slots)| (format!("h{at}"), *slots)).collect();
        Arc::new(Hosts { free: Mutex::new(free), shared: BTreeMap::new(), freed: Notify::new() })
    }

    /// Agents with times and hosts of their own: no host has more than its slots, none stays idle while one waits for it, and
    /// whoever stops waiting takes none.
    #[tokio::test(start_paused = true)]
    async fn every_slot_is_used_and_none_twice() {
        for seed in 0..20_u64 {
            let number = |at: u64, below: u64| {
                let digest = blake3::hash(format!("{seed} {at}").as_bytes());
                u64::from(digest.as_bytes()[0]) % below
            };
            let slots = [1 + number(0, 4) as usize, 1 + number(1, 4) as usize];
            let (hosts, mut agents) = (hosts(&slots), JoinSet::new());
            let working = Arc::new(Mutex::new(BTreeMap::<String, usize>::new()));
            let begun = Instant::now();
            let mut total = 0;
            for agent in 2..202 {
                let (hosts, working, time) = (Arc::clone(&hosts), Arc::clone(&working), 1 + number(agent, 5));
                if number(agent + 1000, 10) == 0 {
                    // It is cancelled while it waits.
                    let given_up = tokio::time::timeout(Duration::from_millis(1), hosts.take(&["h0", "h1"])).await;
                    drop(given_up);
                    continue;
                }
                total += time;
                agents.spawn(async move {
                    let slot = hosts.take(&["h0", "h1"]).await;
                    *working.lock().entry(slot.host.clone()).or_default() += 1;
                    for (at, slots) in slots.iter().enumerate() {
                        assert!(working.lock().get(&format!("h{at}")).copied().unwrap_or(0) <= *slots);
                    }
                    sleep(Duration::from_secs(time)).await;
                    *working.lock().entry(slot.host.clone()).or_default() -= 1;
                });
            }
            while let Some(done) = agents.join_next().await {
                done.expect("it worked");
            }
            let all = slots.iter().sum::<usize>() as u64;
            let ideal = total.div_ceil(all);
            let took = begun.elapsed().as_secs();
            assert!(took <= ideal + 6, "seed {seed}: {took} s for {ideal} s on {slots:?}");
            assert_eq!(hosts.free.lock().values().copied().collect::<Vec<_>>(), slots);
        }
    }
}
