//! Checks the arguments of `start_squad_members` completely before any member starts, and reports every problem. An engine
//! that cannot work here is none, as long as others can: that member fails, and says why.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::Options;
use crate::env::{Env, ProjectPath};
use crate::model::{GivenMember, RunId, Slug, first_line, printable, seconds};
use crate::ops::Project;
use crate::ops::run::members::{RunResult, require_engine, user_of};
use crate::ops::run::order::NamedMember;
use crate::ops::team::engines::is_known;
use crate::ops::team::roles::Roles;
use crate::pool::run_of_session;

/// Most bytes of a task.
const LONGEST_TASK: usize = 4 * 1024 * 1024;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct StartMembers {
    members: Vec<Member>,
    #[serde(default = "yes")]
    pub(super) wait: bool,
    /// The caller's own; squad ignores it.
    #[serde(default, rename = "metadata")]
    _metadata: Option<Value>,
    #[serde(default, rename = "orchestratorChatId")]
    _chat: Option<String>,
    #[serde(default, rename = "workspaceId")]
    _workspace: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Member {
    role_id: String,
    task: String,
    cwd: Option<String>,
    chat_id: Option<String>,
    engine: Option<String>,
    timeout_sec: Option<u64>,
}

fn yes() -> bool {
    true
}

/// The members to start, or all reasons why none starts.
pub(super) fn check(
    env: &Env,
    project: &Project,
    roles: &Roles,
    options: &Options,
    asked: &StartMembers,
) -> Result<Vec<NamedMember>, Vec<String>> {
    let checker = Checker { project, roles, options };
    let (mut named, mut problems) = (Vec::new(), Vec::new());
    let of_member = |index: usize, reason: &str| format!("members[{index}]: {}", printable(reason));
    for (index, member) in asked.members.iter().enumerate() {
        let id = member_id(&member.role_id, &named);
        let mut wrong = Vec::new();
        named.push(checker.member(member, id, &mut wrong));
        problems.extend(wrong.iter().map(|reason| of_member(index, reason)));
    }
    let chats: Vec<&String> = named.iter().filter_map(|member| member.given.chat.as_ref()).collect();
    let twice = chats.iter().enumerate().find(|(index, chat)| chats[..*index].contains(chat));
    problems.extend(twice.map(|(_, chat)| format!("chatId `{}` is used twice", printable(chat))));
    if !problems.is_empty() {
        return Err(problems);
    }
    require_engine(env, project, &named, options.described.as_ref(), options.permissions)
        .map_err(|reasons| (0..).zip(&reasons).map(|(index, reason)| of_member(index, reason)).collect::<Vec<_>>())?;
    Ok(named)
}

/// The role's name, numbered if several members have this role.
fn member_id(role: &str, others: &[NamedMember]) -> Slug {
    let name = Slug::spelled(role).filter(|slug| slug.as_str().len() <= 40);
    let name = name.or_else(|| Slug::fold("member")).unwrap_or_else(Slug::coordinator);
    let is_free =
        |slug: &Slug| slug.as_str() != Slug::COORDINATOR && others.iter().all(|member| member.given.id != *slug);
    let numbered = (2..).map(|number| name.numbered(number));
    std::iter::once(name.clone()).chain(numbered).find(is_free).unwrap_or(name)
}

struct Checker<'a> {
    project: &'a Project,
    roles: &'a Roles,
    options: &'a Options,
}

impl Checker<'_> {
    fn member(&self, member: &Member, id: Slug, wrong: &mut Vec<String>) -> NamedMember {
        let role = self.roles.find(&member.role_id);
        let body = match role.map(|role| &role.body) {
            None if member.role_id.trim().is_empty() => {
                wrong.push("`roleId` is empty".to_owned());
                String::new()
            }
            None => {
                wrong.push(format!("there is no role `{}`; `list_roles` says which there are", brief(&member.role_id)));
                String::new()
            }
            Some(Err(reason)) => {
                wrong.push(format!("role `{}` cannot be used: {reason}", member.role_id));
                String::new()
            }
            Some(Ok(body)) => body.clone(),
        };
        if member.task.trim().is_empty() {
            wrong.push("`task` is empty".to_owned());
        } else if member.task.len() > LONGEST_TASK {
            wrong.push(format!("`task` must have at most {LONGEST_TASK} bytes, not {}", member.task.len()));
        } else if member.task.contains('\0') {
            wrong.push("`task` has a NUL character".to_owned());
        }
        let engine = member.engine.as_ref().filter(|engine| !engine.is_empty());
        if let Some(engine) = engine.filter(|engine| !is_known(engine, &self.project.settings)) {
            let engine = brief(engine);
            wrong.push(format!("there is no engine `{engine}`; `squad engines` lists those there are"));
        }
        let given = GivenMember {
            id,
            role: member.role_id.clone(),
            task: member.task.clone(),
            answers_for: None,
            directory: self.directory(member.cwd.as_deref(), wrong),
            chat: self.chat(member, wrong),
            keeps_chat: self.options.is_stateful,
            engine: engine.cloned(),
            limit: Some(seconds(member.timeout_sec.map_or(self.options.limit, Duration::from_secs))),
        };
        let name = role.map_or_else(|| member.role_id.clone(), |role| role.name.clone());
        NamedMember { given, name, body, agent: role.and_then(|role| role.agent.clone()) }
    }

    /// The member's working directory, with links resolved.
    fn directory(&self, cwd: Option<&str>, wrong: &mut Vec<String>) -> Option<String> {
        let cwd = cwd.filter(|cwd| !cwd.is_empty())?;
        match ProjectPath::folder(&self.project.folder.root, cwd) {
            Ok(folder) => Some(folder.shown).filter(|inner| !inner.is_empty()),
            Err(reason) => {
                wrong.push(format!("`cwd` {:?} {reason}", brief(cwd)));
                None
            }
        }
    }

    /// A chat id that squad has returned for a member in this role.
    fn chat(&self, member: &Member, wrong: &mut Vec<String>) -> Option<String> {
        let chat = member.chat_id.as_ref().filter(|chat| !chat.is_empty())?;
        if !self.options.is_stateful {
            wrong.push("`chatId` needs a server that is started with STATE_MODE=stateful".to_owned());
            return None;
        }
        match self.role_of(chat) {
            Some(role) if role == member.role_id => {
                if let Some(run) = user_of(self.project, chat) {
                    wrong.push(format!("chatId `{chat}` is in use by run {run}; wait for its end"));
                }
                Some(chat.clone())
            }
            Some(role) => {
                let chat = brief(chat);
                wrong.push(format!("chatId `{chat}` belongs to a member in the role `{role}`"));
                None
            }
            None => {
                let chat = brief(chat);
                wrong.push(format!("chatId `{chat}` is not one that squad has given out here"));
                None
            }
        }
    }

    fn role_of(&self, chat: &str) -> Option<String> {
        let run: RunId = run_of_session(chat)?;
        let result = RunResult::read(self.project, &run).ok()??;
        let member = result.members.into_iter().find(|member| member.session == chat && member.given.keeps_chat)?;
        Some(member.given.role)
    }
}

/// A wrong value, short enough for a message.
fn brief(value: &str) -> String {
    first_line(value, 80)
}
