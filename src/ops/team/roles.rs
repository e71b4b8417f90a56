//! The roles in which a caller may start members: the team's agents and role files. They are read each time, so changes
//! apply at once. An invalid file does not affect the others.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use crate::env::Env;
use crate::error::Failure;
use crate::model::{Member, Slug, list, printable, without_hidden};
use crate::ops::{Project, Workspace};
use crate::parse::{self, RoleText};
use crate::store;

/// Folders of a team that hold role files.
const FOLDERS: [&str; 2] = ["agents", "roles"];

/// The ending of role files.
const MARKDOWN: &str = ".md";
/// That of Codex's.
const CODEX: &str = ".toml";

/// Folders in which other programs keep their agents, and the ending of the files.
const HOST_FOLDERS: [(&str, &str); 5] = [
    (".claude/agents", MARKDOWN),
    (".github/agents", MARKDOWN),
    (".codex/agents", CODEX),
    (".codex/agents", MARKDOWN),
    ("agents", MARKDOWN),
];

/// The longest text of a role, in bytes: it is in each prompt, beside the task.
const LONGEST: usize = 64 * 1024;

/// A role as callers see it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Role {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: String,
    /// The prompt, or why it cannot be read.
    pub(crate) body: Result<String, String>,
    /// A hash of the content.
    pub(crate) digest: String,
    /// The file, for display.
    pub(crate) source: String,
    /// The team's agent, if the role is one.
    pub(crate) agent: Option<Slug>,
    /// Not the team's or the user's own: built in, or another program's.
    pub(crate) is_foreign: bool,
}

/// All roles. If an id occurs several times, the first one wins: the team's agents, then role files in the team's folders,
/// then those in the folder that the user named.
pub(crate) struct Roles {
    pub(crate) all: Vec<Role>,
    /// Roles whose id an earlier role has.
    pub(crate) hidden: Vec<Role>,
}

impl Roles {
    /// Without a project, reads only `folder`.
    pub(crate) fn read(project: Option<&Project>, folder: Option<&Path>) -> Result<Self, String> {
        let mut found = Vec::new();
        if let Some(project) = project {
            found.extend(project.team.startable().map(|member| of_member(project, member)));
            for name in FOLDERS {
                let path = project.folder.path.join(name);
                found.extend(of_folder(
                    &path,
                    &project.folder.root,
                    (&format!("{}/{name}", project.folder.name), MARKDOWN),
                )?);
            }
        }
        if let Some(folder) = folder {
            let root = project.map_or(folder, |project| &project.folder.root);
            found.extend(of_folder(folder, root, (&folder.display().to_string(), MARKDOWN))?);
        } else if let Some(project) = project.filter(|project| !project.has_team()) {
            found.extend(without_team(&project.folder.root)?);
        }
        let mut roles = Self { all: Vec::new(), hidden: Vec::new() };
        // squad's own agent for a host would only call squad again.
        for role in found.into_iter().filter(|role| !(role.id == "squad" && role.is_foreign)) {
            let is_known = roles.all.iter().any(|known| known.id == role.id);
            if is_known { &mut roles.hidden } else { &mut roles.all }.push(role);
        }
        Ok(roles)
    }

    pub(crate) fn find(&self, id: &str) -> Option<&Role> {
        self.all.iter().find(|role| role.id == id)
    }
}

fn of_member(project: &Project, member: &Member) -> Role {
    let charter = project.team.charters.get(&member.slug).map(|charter| charter.text.trim()).unwrap_or_default();
    let body = match (charter, member.role.as_str()) {
        ("", "") => format!("You are {}.", member.name),
        ("", role) => format!("You are {}, the team's {role}.", member.name),
        (charter, _) => charter.to_owned(),
    };
    let description = [&member.role, &member.scope].map(String::as_str).into_iter().filter(|text| !text.is_empty());
    Role {
        id: member.slug.to_string(),
        name: member.name.clone(),
        description: description.collect::<Vec<_>>().join(": "),
        digest: digest(body.as_bytes()),
        body: Ok(body),
        source: member.charter.clone().unwrap_or_else(|| member.source.to_string()),
        agent: Some(member.slug.clone()),
        is_foreign: false,
    }
}

/// What a repository without a team offers: the roles it has for other programs, and the built-in ones.
fn without_team(root: &Path) -> Result<Vec<Role>, String> {
    let mut found = Vec::new();
    for (shown, ending) in HOST_FOLDERS {
        found.extend(of_folder(&root.join(shown), root, (shown, ending))?);
    }
    for role in &mut found {
        role.is_foreign = true;
        // `.github/agents/reviewer.agent.md`
        if let Some(id) = role.id.strip_suffix(".agent") {
            role.id = id.to_owned();
        }
    }
    found.extend(LIBRARY.iter().filter_map(|(id, _)| built_in(id)));
    Ok(found)
}

fn of_folder(folder: &Path, root: &Path, (shown, ending): (&str, &str)) -> Result<Vec<Role>, String> {
    let files = store::files_in(folder, root, ending).map_err(|error| format!("{shown} cannot be read: {error}"))?;
    let roles = files.into_iter().filter(|(name, _)| !name.eq_ignore_ascii_case("readme"));
    Ok(roles.map(|(id, read)| of_file(id, read, (shown, ending))).collect())
}

fn of_file(id: String, read: store::Bytes, (folder, ending): (&str, &str)) -> Role {
    let source = format!("{folder}/{id}{ending}");
    let digest = digest(read.as_deref().unwrap_or_default());
    let text = read.and_then(|bytes| String::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned()));
    let text = text.and_then(|text| if ending == CODEX { parse::codex_role(&text) } else { Ok(text) });
    let role = text
        .map_err(|reason| format!("{source}: {reason}"))
        .and_then(|text| parse::role(&text).map_err(|(line, message)| format!("{source}:{line}: {message}")))
        .and_then(|role| match role.body.len() {
            0..=LONGEST => Ok(role),
            size => Err(format!("{source}: its text has {size} bytes, and a role at most {LONGEST}; shorten it")),
        });
    let (name, description, body) = match role {
        Ok(role) => (role.name.clone().unwrap_or_else(|| id.clone()), described(&role), Ok(role.body)),
        Err(reason) => (id.clone(), String::new(), Err(printable(&reason))),
    };
    Role { id, name, description, body, digest, source, agent: None, is_foreign: false }
}

/// Without a description, a caller chooses by the heading.
fn described(role: &RoleText) -> String {
    let (name, about) = &role.title;
    let heading = about.as_ref().or(name.as_ref()).filter(|_| role.description.is_empty());
    without_hidden(heading.unwrap_or(&role.description).clone())
}

/// The built-in roles, by id.
static LIBRARY: [(&str, &str); 6] = [
    ("reviewer", include_str!("../../../templates/roles/reviewer.md")),
    ("tester", include_str!("../../../templates/roles/tester.md")),
    ("researcher", include_str!("../../../templates/roles/researcher.md")),
    ("writer", include_str!("../../../templates/roles/writer.md")),
    ("planner", include_str!("../../../templates/roles/planner.md")),
    ("debugger", include_str!("../../../templates/roles/debugger.md")),
];

/// A built-in role.
pub(crate) fn built_in(id: &str) -> Option<Role> {
    let (id, text) = LIBRARY.iter().find(|(known, _)| *known == id)?;
    let role = of_file((*id).to_owned(), Ok(text.as_bytes().to_vec()), ("", MARKDOWN));
    Some(Role { source: "built in".to_owned(), is_foreign: true, ..role })
}

/// Copies built-in roles to the team's folder; existing files stay unchanged. Returns each file's path and whether it is
/// new.
pub(crate) fn add(env: &Env, directory: &Path, names: &[String]) -> Result<Vec<(String, bool)>, Failure> {
    let workspace = Workspace::find_without_team(env, directory)?;
    let find = |name: &String| LIBRARY.iter().find(|(id, _)| *id == name.trim());
    if let Some(unknown) = names.iter().find(|name| find(name).is_none()) {
        let known = list(LIBRARY.iter().map(|(id, _)| id));
        return Err(
            Failure::usage(format!("there is no role `{unknown}` to add")).hint(format!("the roles are {known}"))
        );
    }
    let folder = workspace.folder.path.join("roles");
    store::require_own(&workspace.folder, &folder)
        .map_err(|reason| Failure::team(format!("{} {reason}", folder.display())))?;
    let failed = |error: io::Error| Failure::team(format!("cannot write to {}: {error}", folder.display()));
    fs::create_dir_all(&folder).map_err(failed)?;
    let mut added = Vec::new();
    for (id, text) in names.iter().filter_map(find) {
        let shown = format!("{}/roles/{id}.md", workspace.folder.name);
        let written =
            File::create_new(folder.join(format!("{id}.md"))).and_then(|mut file| file.write_all(text.as_bytes()));
        match written {
            Ok(()) => added.push((shown, true)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => added.push((shown, false)),
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(added)
}

fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..16].to_owned()
}
