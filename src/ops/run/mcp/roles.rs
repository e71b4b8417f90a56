//! Roles as a tool, as resources and as prompts. They do not show engines and models.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{McpServer, arguments, uri};
use crate::engine::command::shape;
use crate::error::Failure;
use crate::mcp::{Fault, Object, ToolResult};
use crate::model::{Problem, Severity, first_line};
use crate::ops::Project;
use crate::ops::team::cache::FileStamps;
use crate::ops::team::roles::{Role, Roles};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListRoles {
    #[serde(default)]
    query: String,
}

/// The roles, and the state of the files they were read from.
pub(super) struct KnownRoles {
    roles: Roles,
    /// Errors in the team's files.
    problems: Vec<String>,
    /// The server's directory, with links resolved.
    place: Option<PathBuf>,
    /// `None`: file stamps cannot show whether something has changed.
    stamps: Option<FileStamps>,
}

impl KnownRoles {
    fn holds(&self, place: Option<&PathBuf>) -> bool {
        self.place.as_ref() == place && self.stamps.as_ref().is_some_and(FileStamps::holds)
    }
}

impl McpServer {
    /// The current roles. Reads them only if a file has changed.
    fn known_roles(&self) -> Result<Arc<KnownRoles>, Failure> {
        let place = fs::canonicalize(&self.directory).ok();
        let known = self.known.lock().clone();
        if let Some(known) = known.filter(|known| known.holds(place.as_ref())) {
            return Ok(known);
        }
        let since = Instant::now();
        let (roles, project) = self.roles()?;
        let problems = project.iter().flat_map(|project| &project.problems);
        let problems = problems.filter(|problem| problem.severity == Severity::Error).map(Problem::to_string).collect();
        let stamps = project.zip(place.as_deref()).and_then(|(project, place)| self.stamps(&project, place, since));
        let known = Arc::new(KnownRoles { roles, problems, place, stamps });
        *self.known.lock() = Some(Arc::clone(&known));
        Ok(known)
    }

    /// Stamps of everything that roles depend on: the team, the user's roles and settings, and which team is found.
    fn stamps(&self, project: &Project, place: &Path, since: Instant) -> Option<FileStamps> {
        if !project.has_team() {
            return None;
        }
        let trees = std::iter::once(&*project.folder.path).chain(self.options.roles.as_deref());
        let folders = place.ancestors().take_while(|folder| folder.starts_with(&project.work_dir));
        let above = [project.work_dir.join(".git")].into_iter().chain(self.env.user_config());
        let others: Vec<PathBuf> = folders.map(Path::to_owned).chain(above).collect();
        FileStamps::take(&project.local().join("cache"), since, &trees.collect::<Vec<_>>(), &others)
    }

    /// Reads the current roles, and the project if there is one.
    pub(super) fn roles(&self) -> Result<(Roles, Option<Project>), Failure> {
        let project = match (self.project(), &self.options.roles) {
            (Ok(project), _) => Some(project),
            // Without a repository, only the user's folder has roles.
            (Err(_), Some(_)) => None,
            (Err(failure), None) => return Err(failure),
        };
        Ok((self.roles_of(project.as_ref())?, project))
    }

    pub(super) fn roles_of(&self, project: Option<&Project>) -> Result<Roles, Failure> {
        Roles::read(project, self.options.roles.as_deref()).map_err(Failure::team)
    }

    pub(super) fn list_roles(&self, given: Object) -> Result<ToolResult, Failure> {
        let ListRoles { query } = arguments(given)?;
        let (query, known) = (query.to_lowercase(), self.known_roles()?);
        let is_meant = |role: &&Role| {
            let text = [&role.id, &role.name, &role.description].map(|text| text.to_lowercase()).join(" ");
            query.split_whitespace().all(|word| text.contains(word))
        };
        let mut value = json!({"roles": known.roles.all.iter().filter(is_meant).map(shown).collect::<Vec<_>>()});
        if !known.problems.is_empty() {
            value["problems"] = known.problems.clone().into();
        }
        Ok(ToolResult::structured(value))
    }

    /// The valid roles; none without a team.
    fn usable(&self) -> Vec<Role> {
        self.known_roles().map(|known| known.roles.all.clone()).unwrap_or_default()
    }

    pub(super) fn role_resources(&self) -> Vec<Value> {
        let resource = |role: &Role| {
            let (uri, name) = (format!("squad://roles/{}", uri::encoded(&role.id)), format!("role {}", role.id));
            json!({"uri": uri, "name": name, "description": role.description, "mimeType": "text/markdown"})
        };
        self.usable().iter().filter(|role| role.body.is_ok()).map(resource).collect()
    }

    pub(super) fn role_contents(&self, uri: &str, id: &str) -> Result<Vec<Value>, Fault> {
        let roles = self.usable();
        let role = roles.iter().find(|role| role.id == id).ok_or_else(|| Fault::no_resource(uri))?;
        let body = role.body.as_ref().map_err(Fault::internal)?;
        Ok(vec![json!({"uri": uri, "mimeType": "text/markdown", "text": body})])
    }

    pub(super) fn role_prompts(&self) -> Vec<Value> {
        let task = json!([{"name": "task", "description": "The task", "required": false}]);
        let prompt = |role: &Role| json!({"name": role.id, "title": role.name, "description": role.description, "arguments": task});
        self.usable().iter().filter(|role| role.body.is_ok()).map(prompt).collect()
    }

    pub(super) fn role_prompt(&self, name: &str, given: &Object) -> Result<Value, Fault> {
        let roles = self.usable();
        let role = roles.iter().find(|role| role.id == name);
        let role = role.ok_or_else(|| Fault::invalid_params(format!("there is no role `{}`", first_line(name, 80))))?;
        let body = role.body.as_ref().map_err(Fault::internal)?;
        let text = match given.get("task") {
            None => shape::role_alone(body),
            Some(Value::String(task)) => shape::stateless(body, task),
            Some(_) => return Err(Fault::invalid_params("`task` is not a string")),
        };
        let message = json!({"role": "user", "content": {"type": "text", "text": text}});
        Ok(json!({"description": role.description, "messages": [message]}))
    }
}

/// Without engine and model: callers do not need them.
fn shown(role: &Role) -> Value {
    let mut value = json!({
        "id": role.id, "name": role.name, "description": role.description, "source": role.source, "digest": role.digest,
    });
    if let Err(reason) = &role.body {
        value["error"] = reason.as_str().into();
    }
    value
}
