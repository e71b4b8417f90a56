//! Runs, and the prompts and output of their members, as resources.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use std::path::MAIN_SEPARATOR;

use serde_json::{Value, json};

use super::uri::{encoded, output as output_uri};
use super::{McpServer, answers};
use crate::mcp::Fault;
use crate::model::{RunId, first_line, to_json};
use crate::ops::ledger::log::{self, Choice};
use crate::ops::run::members::{MemberResult, RunResult};
use crate::ops::run::squads;
use crate::ops::team::projects::{self, Found, KnownProject};
use crate::ops::{Project, Workspace};

/// Most bytes of a resource; longer output is only in the file.
const LARGEST: u64 = 16 * 1024 * 1024;

/// Most bytes of a task: that of a review holds the diff.
const TASK: usize = 2_000;

/// Most runs that are listed, newest first.
const LISTED: usize = 10;

impl McpServer {
    /// The decisions and the newest runs, if there is a team.
    pub(super) fn other_resources(&self) -> Vec<Value> {
        let Ok(workspace) = Workspace::find_or_recorded(&self.env, &self.directory) else { return Vec::new() };
        let (prefix, leases) = (workspace.ledger_prefix(), workspace.leases());
        let runs = log::runs(&workspace.repository, &prefix, &leases, &Choice::default(), LISTED).unwrap_or_default();
        let resource = |uri: String, name: String, about: String| json!({"uri": uri, "name": name, "description": about, "mimeType": "application/json"});
        let about = "The team's decisions, the newest first".to_owned();
        let mut all = vec![resource("squad://decisions".to_owned(), "decisions".to_owned(), about)];
        all.extend(runs.iter().map(|run| {
            let about = format!("{}: {}", run.status, first_line(&run.message, 80));
            resource(format!("squad://runs/{}", run.run), format!("run {}", run.run), about)
        }));
        all
    }

    /// The user's projects with a team.
    pub(super) fn squad_resources(&self) -> Vec<Value> {
        let known = projects::all(&self.env);
        let resource = |project: &KnownProject| {
            let uri = format!("squad://squads/{}", encoded(&project.handle(&known)));
            let about = format!("The team in {}", projects::shown(&self.env, &project.path));
            json!({"uri": uri, "name": format!("squad {}", project.name()), "description": about, "mimeType": "application/json"})
        };
        known.iter().filter(|project| project.state == Found::Here).map(resource).collect()
    }

    pub(super) fn squad_contents(&self, uri: &str, name: &str) -> Result<Vec<Value>, Fault> {
        let squad = squads::one(&self.env, name).map_err(|_| Fault::no_resource(uri))?;
        let text = to_json(&squad).map_err(|error| Fault::internal(error.to_string()))?;
        Ok(vec![json!({"uri": uri, "mimeType": "application/json", "text": text})])
    }

    pub(super) fn run_contents(&self, uri: &str, run: &str) -> Result<Vec<Value>, Fault> {
        let (project, result) = self.result(uri, run)?;
        let member = |member: &MemberResult| {
            let mut value = answers::described(&result.run, member, self.env.clock.now());
            if member.end.is_some() {
                value["text"] = answers::answer(member).into();
            }
            // All of it is in the prompt.
            value["task"] = answers::beginning(&member.given.task, TASK).into();
            for kind in ["stdout", "stderr", "prompt"] {
                value[kind] = output_uri(&result.run, member, kind).into();
            }
            value
        };
        let members: Vec<Value> = result.members.iter().map(member).collect();
        let mut value = json!({"squadId": result.run, "status": result.shown_status(), "message": result.message, "members": members});
        if let Some(review) = self.review_of(&project, &result) {
            value["review"] = json!(review);
        }
        if let Some(answer) = &result.answer {
            value["answer"] = answer.as_str().into();
        }
        Ok(vec![json!({"uri": uri, "mimeType": "application/json", "text": value.to_string()})])
    }

    pub(super) fn output_contents(&self, uri: &str, run: &str, member: &str, kind: &str) -> Result<Vec<Value>, Fault> {
        let nothing = || Fault::no_resource(uri);
        if !["text", "stdout", "stderr", "prompt"].contains(&kind) {
            return Err(nothing());
        }
        let (project, result) = self.result(uri, run)?;
        let member = result.members.iter().find(|known| known.given.id.as_str() == member).ok_or_else(nothing)?;
        if kind == "text" {
            let (_, end) = member.end.as_ref().ok_or_else(nothing)?;
            return Ok(vec![json!({"uri": uri, "mimeType": "text/markdown", "text": end.text})]);
        }
        let Some(file) = member.output(&project, &result.run, kind) else {
            // It was cleared, or there never was any.
            let text = match kind {
                "stdout" => member.said(),
                "stderr" => Some(String::new()),
                _ => None,
            };
            let text = text.ok_or_else(nothing)?;
            return Ok(vec![json!({"uri": uri, "mimeType": "text/plain", "text": text})]);
        };
        let size = file.size().unwrap_or_default();
        let mut bytes = file.end(LARGEST).map_err(|error| Fault::internal(error.to_string()))?;
        if size > LARGEST {
            let path = file.path().strip_prefix(&project.work_dir).unwrap_or(file.path());
            let path = path.display().to_string().replace(MAIN_SEPARATOR, "/");
            bytes = last_part(&bytes, size, &path).into_bytes();
        }
        Ok(vec![match String::from_utf8(bytes) {
            Ok(text) => json!({"uri": uri, "mimeType": "text/plain", "text": text}),
            Err(error) => {
                json!({"uri": uri, "mimeType": "application/octet-stream", "blob": BASE64_STANDARD.encode(error.as_bytes())})
            }
        }])
    }

    fn result(&self, uri: &str, run: &str) -> Result<(Project, RunResult), Fault> {
        let run = RunId::parse(run).ok_or_else(|| Fault::no_resource(uri))?;
        let project = self.project().map_err(|failure| Fault::internal(failure.message))?;
        let result = RunResult::read(&project, &run).map_err(|failure| Fault::internal(failure.message))?;
        Ok((project, result.ok_or_else(|| Fault::no_resource(uri))?))
    }
}

/// The end of a longer output as text, after a line that says what is left out. Begins with a whole line if there is
/// one.
fn last_part(bytes: &[u8], size: u64, path: &str) -> String {
    let whole_line = bytes.iter().position(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let shown = bytes.get(whole_line..).filter(|shown| !shown.is_empty()).unwrap_or(bytes);
    let left_out = size.saturating_sub(shown.len() as u64);
    let text = String::from_utf8_lossy(shown);
    format!("[the first {left_out} of {size} bytes are left out; all are in {path}]\n{text}")
}
