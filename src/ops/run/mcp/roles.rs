//! Roles, as a tool, as resources and as prompts. They say nothing of engines, models or places.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{McpServer, arguments, failed, uri};
use crate::error::Failure;
use crate::mcp::{Fault, Object, ToolResult};
use crate::model::{Problem, Severity};
use crate::ops::Project;
use crate::ops::team::cache::FileStamps;
use crate::ops::team::roles::{Role, Roles};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListRoles {
    #[serde(default)]
    query: String,
}

/// The roles, and what they were made from.
pub(super) struct KnownRoles {
    roles: Roles,
    /// Errors of the team's files.
    problems: Vec<String>,
    /// Where the server works, with all links resolved.
    place: Option<PathBuf>,
    /// `None`: looks do not tell whether anything has changed.
    look: Option<FileStamps>,
}

impl KnownRoles {
    fn holds(&self, place: Option<&PathBuf>) -> bool {
        self.place.as_ref() == place && self.look.as_ref().is_some_and(FileStamps::holds)
    }
}

impl McpServer {
    /// The roles there are at this moment. They are read only when a file has changed.
    fn known_roles(&self) -> Result<Arc<KnownRoles>, Failure> {
        let place = fs::canonicalize(&self.directory).ok();
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known.filter(|known| known.holds(place.as_ref())) {
            return Ok(known);
        }
        let begun = Instant::now();
        let (roles, project) = self.roles()?;
        let problems = project.iter().flat_map(|project| &project.problems);
        let problems = problems.filter(|problem| problem.severity == Severity::Error).map(Problem::to_string).collect();
        let look = project.zip(place.as_deref()).and_then(|(project, place)| self.look(&project, place, begun));
        let known = Arc::new(KnownRoles { roles, problems, place, look });
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&known));
        Ok(known)
    }

    /// At everything that roles depend on: the team, the user's own roles and settings, and which team it is.
    fn look(&self, project: &Project, place: &Path, begun: Instant) -> Option<FileStamps> {
        let trees = std::iter::once(&*project.folder.path).chain(self.options.roles.as_deref());
        let folders = place.ancestors().take_while(|folder| folder.starts_with(&project.work_dir));
        let above = [project.work_dir.join(".git")].into_iter().chain(self.env().user_config());
        let others: Vec<PathBuf> = folders.map(Path::to_owned).chain(above).collect();
        FileStamps::take(&project.local().join("cache"), begun, &trees.collect::<Vec<_>>(), &others)
    }

    /// What there is at this moment, with the project where there is one.
    pub(super) fn roles(&self) -> Result<(Roles, Option<Project>), Failure> {
        let project = match (self.project(), &self.options.roles) {
            (Ok(project), _) => Some(project),
            // Without a team, the user's own folder is all there is.
            (Err(_), Some(_)) => None,
            (Err(failure), None) => return Err(failure),
        };
        Ok((self.roles_of(project.as_ref())?, project))
    }

    pub(super) fn roles_of(&self, project: Option<&Project>) -> Result<Roles, Failure> {
        Roles::read(project, self.options.roles.as_deref()).map_err(Failure::team)
    }

    pub(super) fn list_roles(&self, given: Object) -> ToolResult {
        let query = match arguments::<ListRoles>(given) {
            Ok(ListRoles { query }) => query.to_lowercase(),
            Err(reason) => return ToolResult::error(&reason),
        };
        let known = match self.known_roles() {
            Ok(known) => known,
            Err(failure) => return failed(&failure),
        };
        let is_meant = |role: &&Role| {
            let text = [&role.id, &role.name, &role.description].map(|text| text.to_lowercase()).join(" ");
            query.split_whitespace().all(|word| text.contains(word))
        };
        let mut value = json!({"roles": known.roles.all.iter().filter(is_meant).map(shown).collect::<Vec<_>>()});
        if !known.problems.is_empty() {
            value["problems"] = known.problems.clone().into();
        }
        ToolResult::structured(value)
    }

    /// Those that can be used; none where there is no team.
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
        let task = json!([{"name": "task", "description": "What is to be done", "required": false}]);
        let prompt = |role: &Role| json!({"name": role.id, "title": role.name, "description": role.description, "arguments": task});
        self.usable().iter().filter(|role| role.body.is_ok()).map(prompt).collect()
    }

    pub(super) fn role_prompt(&self, name: &str, given: &Object) -> Result<Value, Fault> {
        let roles = self.usable();
        let role = roles.iter().find(|role| role.id == name);
        let role = role.ok_or_else(|| Fault::invalid_params(format!("there is no role `{name}`")))?;
        let body = role.body.as_ref().map_err(Fault::internal)?;
        let text = match given.get("task") {
            None => format!("# Role\n\n{body}"),
            Some(Value::String(task)) => format!("# Role\n\n{body}\n\n---\n\n# Task\n\n{task}"),
            Some(_) => return Err(Fault::invalid_params("`task` is not a text")),
        };
        let message = json!({"role": "user", "content": {"type": "text", "text": text}});
        Ok(json!({"description": role.description, "messages": [message]}))
    }
}

/// No engine, no model and no place: whoever starts members need not know.
fn shown(role: &Role) -> Value {
    let mut value = json!({"id": role.id, "name": role.name, "description": role.description, "digest": role.digest});
    if let Err(reason) = &role.body {
        value["error"] = reason.as_str().into();
    }
    value
}
