//! Adds, retires and renames members: takes a team's files and returns them without any other change.
//!
//! Each result is parsed again. If the team differs in anything but the requested change, the change is refused: teams
//! write their files in more ways than squad can know.

mod cells;
mod charter;
mod check;
mod ignored;
mod naming;
mod registry;
mod roster;
mod routing;
mod servers;

pub(crate) use ignored::{with_folder_renamed, without_hidden_decisions};
pub(crate) use servers::{swap_servers, with_json_server, with_toml_server};

use crate::model::{Kind, Member, Problem, Severity, Slug, Source, Status, Team, hidden, printable};
use crate::parse::{self, BOT, Files, Folders, HELPERS, line_feeds, names_everyone, names_nobody, remark};
use naming::Naming;

/// A member to add.
pub(crate) struct NewMember {
    pub(crate) name: String,
    pub(crate) role: String,
    pub(crate) model: Option<String>,
    /// Work for new rows of the routing table.
    pub(crate) signals: Vec<String>,
}

/// A team's files after a change.
#[derive(Debug)]
pub(crate) struct EditedTeam {
    pub(crate) slug: Slug,
    pub(crate) files: Files,
    /// The old and new path of a moved folder or file, in the team folder.
    pub(crate) moved: Option<(String, String)>,
    /// Lines that still contain the old name, where it may mean something else.
    pub(crate) mentions: Vec<Source>,
    /// Rules that now lead to nobody.
    pub(crate) idle: Vec<Problem>,
    /// What else became of routing rows.
    pub(crate) rows: Vec<String>,
}

/// The code of refusals.
const CODE: &str = "team-edit";

fn refusal(source: Source, message: impl Into<String>, hint: impl Into<String>) -> Problem {
    Problem::new(Severity::Error, source, CODE, message).hint(hint)
}

/// A change in progress.
struct Draft<'a> {
    before: &'a Files,
    team: Team,
    problems: Vec<Problem>,
    folders: Folders,
    files: Files,
    moved: Option<(String, String)>,
    rows: Vec<String>,
}

impl<'a> Draft<'a> {
    fn new(before: &'a Files) -> Self {
        let (team, problems) = parse::team(before);
        let folders = Folders::new(before);
        Self { before, team, problems, folders, files: before.clone(), moved: None, rows: Vec::new() }
    }

    /// A file's text as the parser sees it.
    fn readable(&self, path: &str) -> String {
        self.files.text(path).map(line_feeds).unwrap_or_default()
    }

    fn text(&self, path: &str) -> &str {
        self.files.texts.get(path).map_or("", String::as_str)
    }

    fn put(&mut self, path: &str, text: String) {
        self.files.texts.insert(path.to_owned(), text);
    }

    /// Replaces a file's text. `None`: the line could not be changed, which is refused.
    fn put_at(&mut self, source: &Source, text: Option<String>) -> Result<(), Problem> {
        let Some((path, text)) = self.path(&source.file).zip(text) else {
            let message = "squad cannot change this line without changing more";
            return Err(refusal(source.clone(), message, "change it by hand"));
        };
        self.put(path, text);
        Ok(())
    }

    /// The path in the team folder of a path from the project's root.
    fn path<'p>(&self, shown: &'p str) -> Option<&'p str> {
        shown.strip_prefix(&self.before.folder).map(|path| path.trim_start_matches('/'))
    }

    /// The path of a member's charter in the team folder.
    fn charter(&self, member: &Member) -> Option<String> {
        self.path(member.charter.as_deref()?).map(str::to_owned)
    }

    /// The path that moves with a member: its folder, or its charter.
    fn home(&self, member: &Member) -> Option<String> {
        let charter = self.charter(member);
        let own_folder = charter.as_deref().and_then(|path| path.rsplit_once('/')).map(|(folder, _)| folder);
        let is_folder = |path: &str| self.folders.folder(&member.slug) == Some(path);
        match own_folder.filter(|folder| is_folder(folder)) {
            Some(folder) => Some(folder.to_owned()),
            None => charter.or_else(|| self.folders.folder(&member.slug).map(str::to_owned)),
        }
    }

    /// Moves a folder or a file.
    fn move_to(&mut self, old: String, new: String) -> Result<(), Problem> {
        let inner = format!("{new}/");
        if self.files.texts.keys().any(|path| *path == new || path.starts_with(&inner)) {
            let source = Source::new(format!("{}/{new}", self.before.folder), 0);
            return Err(refusal(source, "it is there already", "move it away, or choose another name"));
        }
        let paths: Vec<String> = self.files.texts.keys().cloned().collect();
        for path in paths {
            let Some(rest) = path.strip_prefix(&old).filter(|rest| rest.is_empty() || rest.starts_with('/')) else {
                continue;
            };
            if let Some(text) = self.files.texts.remove(&path) {
                self.files.texts.insert(format!("{new}{rest}"), text);
            }
        }
        self.moved = Some((old, new));
        Ok(())
    }

    /// Verifies the change. `compare` gives the expected and the actual lines of the changed team.
    fn finish(
        self,
        slug: Slug,
        mentions: Vec<Source>,
        compare: impl FnOnce(&Team) -> (Vec<String>, Vec<String>),
    ) -> Result<EditedTeam, Problem> {
        let (team, problems) = parse::team(&self.files);
        let is_idle = |problem: &&Problem| problem.code == check::IDLE && !self.problems.contains(problem);
        let idle = problems.iter().filter(is_idle).cloned().collect();
        let (expected, found) = compare(&team);
        check::verify(self.before, &expected, &found, (&self.problems, &problems))?;
        Ok(EditedTeam { slug, files: self.files, moved: self.moved, mentions, idle, rows: self.rows })
    }
}

/// Adds a member: a row in the roster, a charter, and rows in the routing table.
pub(crate) fn add(files: &Files, new: &NewMember) -> Result<EditedTeam, Problem> {
    let mut draft = Draft::new(files);
    let slug = free_slug(&draft, &new.name)?;
    let at_roster = Source::new(draft.files.shown("team.md"), 0);
    for text in [&new.role].into_iter().chain(&new.signals) {
        if !text.contains(char::is_alphanumeric) || !is_plain(text) || text.contains(['{', '}']) {
            let message = format!("`{}` cannot be written into a table of the team", printable(text));
            return Err(refusal(at_roster, message, "write a few plain words"));
        }
    }
    let like = roster::neighbour(&draft).ok_or_else(|| {
        let hint = "write the first row by hand: | Name | Role | Charter | Status |";
        refusal(at_roster.clone(), "the roster has no row that a new one could follow", hint)
    })?;
    let path = charter::path_for(&draft, &like, &slug);
    let is_new = !files.texts.contains_key(&path);
    roster::add(&mut draft, new, &slug, &like, &path)?;
    if is_new {
        let text = charter::new(&draft, new, &like);
        draft.put(&path, text);
    }
    draft.rows = routing::take_words(&mut draft, new)?;
    for signal in &new.signals {
        routing::add(&mut draft, signal, new)?;
    }
    let mut expected = check::snapshot(&draft.team);
    expected.extend(check::joined(new, &slug, &draft.files.shown(&path)));
    match is_new {
        true => draft.finish(slug, Vec::new(), |team| (expected, check::snapshot(team))),
        false => {
            let own = slug.clone();
            let known = |lines| check::without_own(lines, &own);
            draft.finish(slug, Vec::new(), |team| (known(expected), known(check::snapshot(team))))
        }
    }
}

/// Retires a member. Its row gets a new status, or moves to the table of former members.
pub(crate) fn retire(files: &Files, slug: &Slug) -> Result<EditedTeam, Problem> {
    let mut draft = Draft::new(files);
    let Some(member) = draft.team.member(slug).cloned() else { return Err(unknown(files, slug)) };
    if member.status == Status::Retired {
        let message = format!("{} is retired already", member.name);
        return Err(refusal(member.source, message, "`squad agents` lists the team"));
    }
    let mut expected = draft.team.clone();
    if let Some(place) = draft.home(&member).filter(|_| files.texts.keys().any(|path| path.starts_with(ALUMNI))) {
        let name = place.rsplit('/').next().unwrap_or_default().to_owned();
        let new = format!("{ALUMNI}{name}");
        check::move_charter(&mut expected, slug, (&files.shown(&place), &files.shown(&new)));
        draft.move_to(place, new)?;
    }
    roster::retire(&mut draft, &member)?;
    registry::retire(&mut draft, &member);
    check::retire(&mut expected, slug);
    draft.rows = routing::retire(&mut draft, &member, &mut expected)?;
    draft.finish(slug.clone(), Vec::new(), |team| (check::snapshot(&expected), check::snapshot(team)))
}

/// The folder of former members, in teams that have it.
const ALUMNI: &str = "agents/_alumni/";

/// Renames a member.
pub(crate) fn rename(files: &Files, slug: &Slug, to: &str) -> Result<EditedTeam, Problem> {
    let mut draft = Draft::new(files);
    let Some(member) = draft.team.member(slug).cloned() else { return Err(unknown(files, slug)) };
    if matches!(member.kind, Kind::Helper | Kind::Bot) {
        let message = format!("{} is built in or works elsewhere, and is known by its name", member.name);
        return Err(refusal(member.source, message, "only agents and people can be renamed"));
    }
    let to = to.trim();
    let new_slug = match Slug::spelled(to) {
        // Only the spelling changes.
        Some(same) if same == *slug && is_writable(to) => same,
        _ => free_slug(&draft, to)?,
    };
    let old = remark(&member.name).0.to_owned();
    let naming = Naming { old: &old, old_slug: slug.as_str(), new: to, new_slug: new_slug.as_str() };
    let mut expected = draft.team.clone();
    check::rename(&mut expected, &member, &naming);
    let place = draft.home(&member);
    let moved = place.clone().map(|place| (charter::renamed_home(&place, &new_slug), place));
    let moved = moved.filter(|(new, old)| new != old && *slug != new_slug);
    roster::rename(&mut draft, &member, &naming, moved.as_ref())?;
    routing::rename(&mut draft, &member, &naming)?;
    registry::rename(&mut draft, &naming);
    charter::rename(&mut draft, &member, &naming);
    charter::mentions(&mut draft, &naming, moved.as_ref());
    if let Some((new, old)) = moved {
        check::move_charter(&mut expected, &new_slug, (&files.shown(&old), &files.shown(&new)));
        draft.move_to(old, new)?;
    }
    let mentions = charter::remaining_mentions(&draft, &member, &naming);
    draft.finish(new_slug, mentions, |team| (check::snapshot(&expected), check::snapshot(team)))
}

fn unknown(files: &Files, slug: &Slug) -> Problem {
    let source = Source::new(files.shown("team.md"), 0);
    refusal(source, format!("the team has no agent `{slug}`"), "`squad agents` lists the team")
}

/// The slug of a new name, unless somebody has or had it.
fn free_slug(draft: &Draft<'_>, name: &str) -> Result<Slug, Problem> {
    let at_roster = Source::new(draft.files.shown("team.md"), 0);
    let slug = Slug::spelled(name).filter(|_| is_writable(name));
    let Some(slug) = slug else {
        let message = format!("`{}` cannot be the name of a member", printable(name));
        return Err(refusal(at_roster, message, "a name is a few letters, digits, spaces and hyphens, a letter first"));
    };
    let is_reserved = HELPERS.contains(&slug.as_str())
        || matches!(slug.as_str(), BOT | "squad" | "you" | "git")
        || slug == Slug::coordinator();
    if is_reserved || is_device(slug.as_str()) {
        let message = format!("`{slug}` is reserved, by squad or by an operating system");
        return Err(refusal(at_roster, message, "choose another name"));
    }
    let members = &draft.team.members;
    let is_same = |member: &&Member| member.slug == slug || Slug::spelled(&member.name).as_ref() == Some(&slug);
    if let Some(member) = members.iter().find(is_same) {
        let message = format!("{} is on the roster already", member.name);
        let hint = match member.status {
            Status::Retired | Status::Inactive => "to bring it back, change its status in that row",
            _ => "choose another name",
        };
        return Err(refusal(member.source.clone(), message, hint));
    }
    if let Some(member) = members.iter().find(|member| draft.team.formerly(member).any(|old| old == slug)) {
        let message = format!("`{slug}` is a former name of {}, under which the ledger knows it", member.name);
        let hint = "choose another name, or delete the line `Formerly` from its charter";
        return Err(refusal(member.source.clone(), message, hint));
    }
    Ok(slug)
}

/// Whether a text can be a name in tables, charters and file names.
fn is_writable(name: &str) -> bool {
    const LONGEST: usize = 60;
    const MARKUP: &[char] = &['*', '`', '~', '#', '[', ']', '<', '>', '{', '}', '@', '"', ',', ';', '/', '+', '&', ':'];
    let is_bare = is_plain(name) && !name.contains(MARKUP) && name.trim() == name;
    is_bare
        && name.starts_with(char::is_alphabetic)
        && name.chars().count() <= LONGEST
        && !names_nobody(name)
        && !names_everyone(name)
        && remark(name).1.is_empty()
}

/// Whether a text is one line without hidden characters, bars and backslashes.
fn is_plain(text: &str) -> bool {
    !text.contains(|c: char| c.is_control() || matches!(c, '|' | '\\')) && hidden(text).next().is_none()
}

/// Names that no file may have on Windows.
fn is_device(slug: &str) -> bool {
    let numbered = |stem| slug.strip_prefix(stem).is_some_and(|rest: &str| rest.len() == 1 && rest != "0");
    matches!(slug, "con" | "prn" | "aux" | "nul")
        || (numbered("com") || numbered("lpt")) && slug.ends_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests;
