//! Lands learnings from the ledger in the agents' history files, in one commit, each learning once.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::env::Env;
use crate::error::Failure;
use crate::model::{ChangeKind, EntryId, EventKind, Member, RunId, Slug, first_line, plural};
use crate::ops::Project;
use crate::ops::change::{Change, FileChange, WriteMode, branch_tip, lock};
use crate::ops::decisions::landing::{Lander, record_event};
use crate::ops::ledger::contents::as_recorded;
use crate::ops::ledger::contents::{self as ledger, Lesson};
use crate::ops::team::workspace::{below, project_path};
use crate::parse::{Encoding, learned, text_of};
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
    /// How many learnings agents have recorded, landed or not, of all or of the one that is asked for.
    pub(crate) recorded: usize,
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

/// Plans a landing.
fn plan(env: &Env, project: &Project, agent: Option<&str>) -> Result<(HistoryLanding, Change), Failure> {
    let (branch, commit) = branch_tip(&project.repository, false)?;
    let folder = project.folder_in_repository();
    let agents = format!("{folder}/agents/");
    let is_history =
        |path: &str| (path.starts_with(&agents) && path.ends_with("/history.md")).then(|| store::largest(path));
    let files: BTreeMap<String, Vec<u8>> =
        project.repository.files_at(&commit, &folder, is_history)?.into_iter().collect();
    let recorded = recorded(project, agent)?;
    let mut landing = HistoryLanding { branch, recorded, ..HistoryLanding::default() };
    let (mut changes, mut waiting) = (Vec::new(), Vec::new());
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
        changes.push(FileChange::new(file, old.cloned(), Some(text_after.into_bytes())));
        waiting.extend(fresh);
    }
    if !waiting.is_empty()
        && let Some((reason, hint)) =
            Lander::new(env, project).obstacle(!project.repository.paths_at(&commit, &folder)?.is_empty())
    {
        return Err(Failure::failed(format!("{} cannot land: {reason}", plural(waiting.len(), "learning"))).hint(hint));
    }
    Ok((landing, Change::new(ChangeKind::LandHistory, message(&waiting), changes)))
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

/// Lands the learnings and records the landing, or only says what would land.
pub(crate) fn land(
    env: &Env,
    project: &Project,
    agent: Option<&str>,
    mode: WriteMode,
) -> Result<HistoryLanding, Failure> {
    // Planned under the lock, so that nothing lands twice.
    let _lock = if mode.is_dry_run() { None } else { Some(lock(&project.repository, None)?) };
    let (mut landing, change) = plan(env, project, agent)?;
    landing.commit = change.apply(env, &project.repository, mode)?.commit;
    if !mode.is_dry_run() && !landing.landed.is_empty() {
        let kind = EventKind::MemoryLanded {
            learnings: landing.landed.clone(),
            branch: as_recorded(Some(&landing.branch)).unwrap_or_default(),
            commit: landing.commit.clone().unwrap_or_default(),
        };
        record_event(env, project, &kind, &landing.landed)?;
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

fn recorded(project: &Project, agent: Option<&str>) -> Result<usize, Failure> {
    let wanted = agent.and_then(Slug::fold);
    let known = ledger::known_lessons(&project.repository, &project.ledger_prefix())?;
    let is_wanted = |agent: &str| wanted.as_ref().is_none_or(|wanted| wanted.as_str() == agent);
    Ok(known.iter().filter(|(agent, _)| is_wanted(agent)).count())
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
