//! Roles, as a tool, as resources and as prompts. They say nothing of engines, models or places.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{McpServer, arguments, failed, uri};
use crate::error::Failure;
use crate::mcp::{Fault, Object, ToolResult};
use crate::model::{Problem, Severity};
use crate::ops::Project;
use crate::ops::team::roles::{Role, Roles};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListRoles {
    #[serde(default)]
    query: String,
}

impl McpServer {
    /// What there is at this moment, with the project where there is one.
    pub(super) fn roles(&self) -> Result<(Roles, Option<Project>), Failure> {
        let project = match (self.project(), &self.options.roles) {
            (Ok(project), _) => Some(project),
            // Without a team, the user's own folder is all there is.
            (Err(_), Some(_)) => None,
            (Err(failure), None) => return Err(failure),
        };
        let roles = Roles::read(project.as_ref(), self.options.roles.as_deref()).map_err(Failure::team)?;
        Ok((roles, project))
    }

    pub(super) fn list_roles(&self, given: Object) -> ToolResult {
        let query = match arguments::<ListRoles>(given) {
            Ok(ListRoles { query }) => query.to_lowercase(),
            Err(reason) => return ToolResult::error(&reason),
        };
        let (roles, project) = match self.roles() {
            Ok(found) => found,
            Err(failure) => return failed(&failure),
        };
        let is_meant = |role: &&Role| {
            let text = [&role.id, &role.name, &role.description].map(|text| text.to_lowercase()).join(" ");
            query.split_whitespace().all(|word| text.contains(word))
        };
        let mut value = json!({"roles": roles.all.iter().filter(is_meant).map(shown).collect::<Vec<_>>()});
        let problems = project.iter().flat_map(|project| &project.problems);
        let errors: Vec<String> =
            problems.filter(|problem| problem.severity == Severity::Error).map(Problem::to_string).collect();
        if !errors.is_empty() {
            value["problems"] = errors.into();
        }
        ToolResult::of(value)
    }

    /// Those that can be used; none where there is no team.
    fn usable(&self) -> Vec<Role> {
        self.roles().map(|(roles, _)| roles.all).unwrap_or_default()
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
