//! Lands learnings from the ledger in the agents' history files, in one commit, each learning once.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::env::Env;
use crate::error::Failure;
use crate::git::{Change, Edit, Landing, NewFile};
use crate::model::{Actor, EntryId, EventKind, Member, RunId, Slug, first_line, list, plural};
use crate::ops::Project;
use crate::ops::decisions::landing::Lander;
use crate::ops::ledger::contents::as_recorded;
use crate::ops::ledger::contents::{self as ledger, Lesson};
use crate::ops::ledger::journal::append;
use crate::ops::ledger::lost;
use crate::ops::ledger::rescue::{self, Reason};
use crate::ops::team::secrets;
use crate::ops::team::workspace::{below, project_path};
use crate::parse::{Encoding, learned, text_of};
use crate::record::Entry;
use crate::review;
use crate::store;

/// The learnings that land, or would.
#[derive(Debug, Default, Serialize)]
pub(crate) struct HistoryLanding {
    pub(crate) histories: Vec<History>,
    /// Agents that are not on the roster, with the number of their learnings, which stay in the ledger.
    pub(crate) strangers: BTreeMap<Slug, usize>,
    pub(crate) branch: String,
    pub(crate) commit: Option<String>,
    #[serde(skip)]
    change: Option<Change>,
    /// Every learning that this branch's files contain afterwards.
    #[serde(skip)]
    landed: Vec<EntryId>,
}

#[derive(Debug, Serialize)]
pub(crate) struct History {
    pub(crate) agent: Slug,
    pub(crate) file: String,
    pub(crate) learnings: Vec<EntryId>,
    /// In the format of `git diff`.
    pub(crate) diff: String,
}

/// Plans a landing. Changes nothing.
pub(crate) fn plan(env: &Env, project: &Project, agent: Option<&str>) -> Result<HistoryLanding, Failure> {
    let head = project.repository.head()?;
    let (Some(branch), Some(commit)) = (&head.branch, &head.commit) else {
        return Err(Failure::team("no branch with commits is checked out").hint("check one out"));
    };
    let folder = project.folder_in_repository();
    let agents = format!("{folder}/agents/");
    let is_history =
        |path: &str| (path.starts_with(&agents) && path.ends_with("/history.md")).then(|| store::largest(path));
    let files: BTreeMap<String, Vec<u8>> =
        project.repository.files_at(commit, &folder, is_history)?.into_iter().collect();
    let mut landing = HistoryLanding { branch: branch.clone(), ..HistoryLanding::default() };
    let (mut new, mut edits, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
    for (slug, entries) in waiting_learnings(project, agent)? {
        let Some(member) = project.team.member(&slug) else {
            landing.strangers.insert(slug, entries.len());
            continue;
        };
        let file = history_of(project, member, files.keys());
        let old = files.get(&file);
        let text = old.map_or(Ok(""), |bytes| readable(&file, bytes))?;
        landing.landed.extend(entries.iter().map(|entry| entry.id.clone()));
        let (fresh, added) = new_learnings(text, entries);
        if added.is_empty() {
            continue;
        }
        let text_after = learned::add(text, &member.name, &added);
        landing.histories.push(History {
            agent: slug,
            diff: format!("--- {file}\n+++ {file}\n{}", review::diff(text, &text_after)),
            file: file.clone(),
            learnings: fresh.iter().map(|entry| entry.id.clone()).collect(),
        });
        match old {
            Some(old) => edits.push(Edit { path: file, old: old.clone(), new: Some(text_after.into_bytes()) }),
            None => new.push(NewFile::plain(file, text_after.into_bytes())),
        }
        waiting.extend(fresh);
    }
    if waiting.is_empty() {
        return Ok(landing);
    }
    let paths = project.repository.paths_at(commit, &folder)?;
    let message = message(&waiting);
    let change = Change {
        command: "history land".to_owned(),
        branch: branch.clone(),
        allow_unborn: false,
        files: new,
        edits,
        message,
    };
    let obstacle =
        Lander::new(env, project).obstacle(!paths.is_empty()).map(|(reason, hint)| (reason, hint.to_owned()));
    let obstacle = obstacle.map_or_else(|| project.repository.obstacle(&change), |obstacle| Ok(Some(obstacle)))?;
    if let Some((reason, hint)) = obstacle {
        return Err(Failure::failed(format!("{} cannot land: {reason}", plural(waiting.len(), "learning"))).hint(hint));
    }
    landing.change = Some(change);
    Ok(landing)
}

/// The learnings that a history file does not contain yet, and the date and text to add for each.
fn new_learnings(text: &str, entries: Vec<Lesson>) -> (Vec<Lesson>, Vec<(String, String)>) {
    let (mut fresh, mut added): (Vec<Lesson>, Vec<(String, String)>) = Default::default();
    for entry in entries {
        let item = (entry.at.strftime("%Y-%m-%d").to_string(), entry.text.trim().to_owned());
        // Skips what an unrecorded landing has written already, and learnings with the same text.
        if !learned::holds(text, &item.0, &item.1) && !added.contains(&item) {
            added.push(item);
            fresh.push(entry);
        }
    }
    (fresh, added)
}

/// Lands the learnings and records the landing.
pub(crate) fn land(env: &Env, project: &Project, agent: Option<&str>) -> Result<HistoryLanding, Failure> {
    lost::settle(env, &project.repository);
    let lander = Lander::new(env, project);
    // Planned under the lock, so that nothing lands twice.
    let _lock = lander.lock()?;
    let mut landing = plan(env, project, agent)?;
    if let Some(change) = landing.change.take() {
        let touches: Vec<String> = change.edits.iter().map(|edit| edit.path.clone()).collect();
        if !touches.is_empty() {
            let why = format!("learnings become part of {}", list(&touches));
            rescue::save(env, &project.repository, Reason { command: "history land", why, touches })?;
        }
        match project.repository.land(&change, project.repository.identity().as_ref(), env.clock.now())? {
            Landing::Landed { commit } => landing.commit = Some(commit),
            Landing::NotLanded { reason, hint } => {
                return Err(Failure::failed(format!("the learnings cannot land: {reason}")).hint(hint));
            }
        }
    }
    if !landing.landed.is_empty() {
        let at = env.clock.now();
        let kind = EventKind::MemoryLanded {
            learnings: landing.landed.clone(),
            branch: as_recorded(Some(&landing.branch)).unwrap_or_default(),
            commit: landing.commit.clone().unwrap_or_default(),
        };
        let redactor = secrets::redactor(env, &project.folder.root);
        let mut entry = Entry::new(env.ids.entry(at), at, Actor::Squad, &kind, &redactor);
        entry.causes.clone_from(&landing.landed);
        append(&project.repository, &project.ledger_prefix(), &[entry], at)?;
    }
    Ok(landing)
}

/// The learnings that have not landed anywhere, by agent, oldest first.
fn waiting_learnings(project: &Project, agent: Option<&str>) -> Result<BTreeMap<Slug, Vec<Lesson>>, Failure> {
    let wanted = agent.map(|name| Slug::fold(name).filter(|slug| project.team.member(slug).is_some()).ok_or(name));
    let wanted = wanted
        .transpose()
        .map_err(|name| Failure::usage(format!("there is no agent `{name}`")).hint("`squad agents` lists the team"))?;
    let mut waiting: BTreeMap<Slug, Vec<Lesson>> = BTreeMap::new();
    for lesson in ledger::lessons(&project.repository, &project.ledger_prefix())? {
        let agent = project.team.member_once(&lesson.agent).map_or(&lesson.agent, |member| &member.slug).clone();
        if wanted.as_ref().is_none_or(|wanted| *wanted == agent) {
            waiting.entry(agent).or_default().push(lesson);
        }
    }
    Ok(waiting)
}

/// A member's history file, or the path for a new one.
fn history_of<'f>(project: &Project, member: &Member, mut files: impl Iterator<Item = &'f String>) -> String {
    let is_own = |path: &&String| {
        let folder = path.rsplit('/').nth(1).unwrap_or_default();
        Slug::of_folder(folder).as_ref() == Some(&member.slug)
    };
    let root = project_path(&project.folder, &project.work_dir);
    let charter_folder = member.charter.as_deref().and_then(|path| path.strip_suffix("/charter.md"));
    let next_to_charter = charter_folder.map(|folder| below(&root, &format!("{folder}/history.md")));
    files
        .find(is_own)
        .cloned()
        .or(next_to_charter)
        .unwrap_or_else(|| format!("{}/agents/{}/history.md", project.folder_in_repository(), member.slug))
}

fn readable<'b>(path: &str, bytes: &'b [u8]) -> Result<&'b str, Failure> {
    let is_utf8 = matches!(text_of(bytes.to_owned()).1, Encoding::Utf8);
    let text = std::str::from_utf8(bytes).ok().filter(|_| is_utf8);
    text.ok_or_else(|| {
        Failure::team("it is not UTF-8, so nothing can be added to it").at(path).hint("save it as UTF-8 and commit it")
    })
}

/// The commit's message: a subject, the learnings, and a trailer for each run and agent.
fn message(learnings: &[Lesson]) -> String {
    let mut message = match learnings {
        [one] => format!("squad: learn: {}\n", first_line(&one.text, 60)),
        all => {
            let lines: Vec<String> =
                all.iter().map(|entry| format!("- {}: {}", entry.agent, first_line(&entry.text, 70))).collect();
            format!("squad: add {} to history\n\n{}\n", plural(all.len(), "learning"), lines.join("\n"))
        }
    };
    let runs = learnings.iter().filter_map(|entry| entry.run.as_ref()).map(RunId::as_str);
    let trailers = runs.map(|run| format!("Squad-Run: {run}"));
    let trailers = trailers.chain(learnings.iter().map(|entry| format!("Squad-Agent: {}", entry.agent)));
    let mut seen = BTreeSet::new();
    let trailers: Vec<String> = trailers.filter(|trailer| seen.insert(trailer.clone())).collect();
    message.push_str(&format!("\n{}\n", trailers.join("\n")));
    message
}
