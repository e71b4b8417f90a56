//! Importing decisions: splits files with many entries into one file per decision, in one commit.
//!
//! The entries are recorded in the ledger first. They are on the branch already, so they are recorded as landed there.
//! If the commit fails, their state is the same as before, and the next import finishes the job.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;

use crate::env::{Env, ProjectPath};
use crate::error::Failure;
use crate::model::{
    Actor, ChangeKind, Decision, DecisionId, EventKind, IntoMap, IntoSet, Problem, Source, list, plural,
};
use crate::ops::Project;
use crate::ops::change::{Change, FileChange, WriteMode, branch_tip, lock};
use crate::ops::decisions::list::team_files;
use crate::ops::ledger::contents::as_recorded;
use crate::ops::ledger::journal::append;
use crate::ops::ledger::{contents as ledger, lost};
use crate::ops::team::commit::refuse_conflict_markers;
use crate::ops::team::secrets;
use crate::parse::{self, Files};
use crate::record::{Entry, SplitFile, part};

/// Which files are imported.
pub(crate) enum Which {
    /// Only the file that agents read.
    Main,
    /// Also the inbox and archives.
    All,
    /// The named files, by paths relative to the working directory.
    These(Vec<String>),
}

/// What an import does, or would do.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Import {
    pub(crate) imported: Vec<Imported>,
    /// Entries that are not imported, because the decision's own file has different text.
    pub(crate) left: Vec<Source>,
    /// The files they came from, with the number of bytes each keeps; `null`: the file is deleted.
    pub(crate) sources: BTreeMap<String, Option<usize>>,
    pub(crate) commit: Option<String>,
    /// Kinds of secrets in the entries, and therefore in the repository's history.
    #[serde(skip)]
    pub(crate) secrets: BTreeSet<String>,
    /// How many of the imported entries have no date.
    pub(crate) undated: usize,
}

#[derive(Debug, Serialize)]
pub(crate) struct Imported {
    pub(crate) id: DecisionId,
    pub(crate) title: String,
    pub(crate) source: Option<Source>,
    #[serde(skip)]
    decision: Decision,
}

impl From<Decision> for Imported {
    fn from(decision: Decision) -> Self {
        let (id, title, source) = (decision.id.clone(), decision.title.clone(), decision.source.clone());
        Self { id, title, source, decision }
    }
}

/// Records and commits an import of the committed files, or only says what it would do.
pub(crate) fn import(
    env: &Env,
    project: &Project,
    directory: &Path,
    which: &Which,
    mode: WriteMode,
) -> Result<Import, Failure> {
    require_readable(project)?;
    let _lock = if mode.is_dry_run() { None } else { Some(lock(&project.repository, None)?) };
    let (branch, base) = branch_tip(&project.repository, false)?;
    let texts = team_files(project, &base)?;
    let read = texts.iter().map(|(path, bytes)| (path.clone(), parse::text_of(bytes.clone()).0));
    let files = Files { folder: project.folder.name.to_owned(), texts: read.into_map() };
    refuse_conflict_markers(&files, "HEAD")?;
    let mut own_texts = own_texts(&files);
    let folder = project.folder_in_repository();
    let mut import = Import::default();
    let mut changes = Vec::new();
    for path in chosen(project, directory, &files, which)? {
        let old = texts.get(&path).cloned().unwrap_or_default();
        require_utf8(&files.folder, &path, &old)?;
        let SplitFile { decisions, files: new, left, rest } = part(&files, &path, &folder, &mut own_texts);
        import.left.extend(left.into_iter().filter_map(|decision| decision.source));
        if decisions.is_empty() {
            continue;
        }
        let full = format!("{folder}/{path}");
        // Without the main file, agents would read an archive instead.
        let stays =
            || parse::stands_before_another(&files, &path).then(|| format!("# Decisions\n\n{}\n", parse::IMPORTED));
        let rest = rest.or_else(stays);
        import.sources.insert(full.clone(), rest.as_ref().map(String::len));
        changes.push(FileChange::new(full, Some(old), rest.map(String::into_bytes)));
        changes.extend(new.into_iter().map(|(path, text)| FileChange::added(path, text)));
        import.imported.extend(decisions.into_iter().map(Imported::from));
    }
    let mut seen = BTreeSet::new();
    import.imported.retain(|imported| seen.insert(imported.id.clone()));
    import.undated = import.imported.iter().filter(|imported| imported.decision.date.is_none()).count();
    if !changes.is_empty() {
        let change = Change::new(ChangeKind::ImportDecisions, message(&import), changes);
        change.require_committable(&project.repository)?;
        if !mode.is_dry_run() {
            lost::settle(env, &project.repository);
            record(env, project, &mut import, (&branch, &base))?;
            import.commit = Some(change.commit(env, &project.repository)?);
        }
    }
    Ok(import)
}

fn message(import: &Import) -> String {
    let count = plural(import.imported.len(), "decision");
    let sources: Vec<&str> = import.sources.keys().map(String::as_str).collect();
    format!("squad: import {count}\n\nFrom {}, each to a file of its own, word for word.\n", list(sources))
}

/// Fails for a borrowed team, and for decision files that cannot be read: those could belong to any entry.
fn require_readable(project: &Project) -> Result<(), Failure> {
    if project.folder.is_borrowed() {
        return Err(Failure::team("the team belongs to the main work tree").hint("import its decisions there"));
    }
    match project.problems.iter().find(|problem| problem.code == "decision-front-matter") {
        Some(Problem { message, file, line, .. }) => {
            Err(Failure::team(message.clone()).at(format!("{file}:{line}")).hint("fix it, then import again"))
        }
        None => Ok(()),
    }
}

fn require_utf8(folder: &str, path: &str, bytes: &[u8]) -> Result<(), Failure> {
    let Err(error) = std::str::from_utf8(bytes) else { return Ok(()) };
    let line = 1 + bytes.iter().take(error.valid_up_to()).filter(|byte| **byte == b'\n').count();
    Err(Failure::team("it is not UTF-8, so its entries cannot be copied byte for byte")
        .at(format!("{folder}/{path}:{line}"))
        .hint("save it as UTF-8 and commit it"))
}

/// The decisions that have files of their own, with the text of the file.
fn own_texts(files: &Files) -> BTreeMap<DecisionId, String> {
    let of_many: BTreeSet<&str> = parse::sources(files).into_iter().into_set();
    let own = parse::decisions(files).into_iter().filter_map(|decision| {
        let file = decision.source?.file;
        let path = file.strip_prefix(&files.folder)?.trim_start_matches('/');
        Some((decision.id, files.texts.get(path).filter(|_| !of_many.contains(path))?.clone()))
    });
    own.into_map()
}

/// The files to import, relative to the team folder.
fn chosen(project: &Project, directory: &Path, files: &Files, which: &Which) -> Result<Vec<String>, Failure> {
    let sources = parse::sources(files);
    let names = match which {
        Which::All => return Ok(sources.into_iter().map(str::to_owned).collect()),
        Which::Main => {
            let main = sources.into_iter().find(|path| *path == parse::main_file(files));
            return Ok(main.map(str::to_owned).into_iter().collect());
        }
        Which::These(names) => names,
    };
    let find = |name: &String| {
        let inner = ProjectPath::resolve(&project.folder.path, directory, name).ok()?.shown;
        sources.contains(&inner.as_str()).then_some(inner)
    };
    let missing = |name: &String| {
        let known: Vec<String> = sources.iter().map(|path| format!("{}/{path}", files.folder)).collect();
        Failure::usage(format!("the committed version of {name} contains no decisions")).hint(match known.is_empty() {
            true => "there is no file with decisions".to_owned(),
            false => format!("decisions are read from {}", known.join(", ")),
        })
    };
    names.iter().map(|name| find(name).ok_or_else(|| missing(name))).collect()
}

/// Records the decisions and their landing on this branch, unless the ledger has them already.
fn record(env: &Env, project: &Project, import: &mut Import, (branch, base): (&str, &str)) -> Result<(), Failure> {
    let prefix = project.ledger_prefix();
    let recorded = as_recorded(Some(branch)).unwrap_or_default();
    let known = ledger::decisions(&project.repository, &prefix)?;
    let find = |id: &DecisionId| known.iter().find(|logged| logged.decision.id == *id);
    let redactor = secrets::redactor(env, &project.folder.root);
    let at = env.clock.now();
    let mut entries = Vec::new();
    for Imported { decision, .. } in import.imported.iter().filter(|imported| find(&imported.id).is_none()) {
        let kind = EventKind::DecisionLogged { decision: decision.clone(), branch: Some(branch.to_owned()) };
        let entry = Entry::new(env.ids.entry(at), at, Actor::User, &kind, &redactor);
        // The warning does not need e-mail addresses: they are no secrets, and the repository has them already.
        import.secrets.extend(entry.redactions.iter().map(|found| found.kind.clone()).filter(|kind| kind != "email"));
        entries.push(entry);
    }
    let landed =
        |id: &DecisionId| find(id).is_some_and(|logged| logged.landed.iter().any(|taken| taken.branch == recorded));
    let decisions: Vec<DecisionId> =
        import.imported.iter().map(|imported| imported.id.clone()).filter(|id| !landed(id)).collect();
    if !decisions.is_empty() {
        let logged = decisions.iter().filter_map(find).map(|logged| logged.entry.clone());
        let causes = entries.iter().map(|entry| entry.id.clone()).chain(logged).collect();
        let kind = EventKind::DecisionLanded { decisions, branch: recorded, commit: base.to_owned() };
        entries.push(Entry { causes, ..Entry::new(env.ids.entry(at), at, Actor::Squad, &kind, &redactor) });
        append(&project.repository, &prefix, &entries, at)?;
    }
    Ok(())
}
