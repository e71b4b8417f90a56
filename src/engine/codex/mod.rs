//! Codex in its app-server mode: a JSON message a line on its standard streams.
//!
//! ```text
//! Codex ── Session (one process each) ─┬─ supervise     the process, restarted when it is lost
//!                                      ├─ Connection    lines, requests and answers
//!                                      └─ Conversation  Codex's messages as facts, its requests as squad's
//! ```
//!
//! Each session has a process of its own. So what a session may do is in the process's arguments, which no resumed
//! thread forgets; its tools' processes are known by the session's mark; and a process that dies takes one session
//! along. The processes share Codex's code: a further one costs about 20 MB.
//!
//! Codex makes calls only as they are, and does not wait before its model reads a result. So a hook cannot change a
//! call's arguments, only refuse it and tell the arguments to use; and what it says of a result reaches the model
//! besides the result, with the next model call.

mod answers;
mod arguments;
mod conversation;
mod items;
mod process;
mod prompt;
#[cfg(all(test, target_os = "linux"))]
#[path = "../../../tests/real/engine/codex.rs"]
mod real_tests;
mod recall;
mod session;
#[cfg(all(test, unix))]
mod unruly_tests;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

pub(crate) use session::Session;

use self::arguments::Purpose;
use self::process::Process;
use super::command::{self, Command, Shared};
use super::{Adapter, EngineError, Opening};
use crate::model::{AvailableModels, IntoMap};
use crate::program::Variables;

/// What its own sandbox lets its programs write besides the folder in which they work.
pub(super) fn writable_folders(variables: &Variables) -> Vec<PathBuf> {
    let temporary = variables.get(OsStr::new("TMPDIR")).map(PathBuf::from).filter(|folder| folder.is_absolute());
    [PathBuf::from("/tmp")].into_iter().chain(temporary).collect()
}

/// How long Codex may take: to start, to answer, to open a thread, to stop a turn, and to end.
#[derive(Clone, Copy, Debug)]
struct Timeouts {
    start: Duration,
    request: Duration,
    open: Duration,
    abort: Duration,
    grace: Duration,
    /// How often it is asked whether it still answers, and how long that may take.
    ping: Duration,
    /// The wait before it is started again; it doubles with each attempt.
    backoff: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(20),
            request: Duration::from_secs(30),
            open: Duration::from_secs(60),
            abort: Duration::from_secs(5),
            grace: Duration::from_secs(5),
            ping: Duration::from_secs(15),
            backoff: Duration::from_secs(1),
        }
    }
}

/// A Codex that can be used.
pub(crate) struct Codex {
    command: Command,
    version: String,
    models: AvailableModels,
    timeouts: Timeouts,
}

impl Codex {
    /// Finds the program, and checks its version and that it has a login or a model endpoint that needs none.
    pub(crate) async fn start(options: command::Options) -> Result<Self, EngineError> {
        Self::start_with(options, Timeouts::default()).await
    }

    async fn start_with(options: command::Options, timeouts: Timeouts) -> Result<Self, EngineError> {
        let command = Command::start(options)?;
        let shared = &command.0;
        let process = Process::start(shared, &Purpose::Inspect, Arc::new(process::Nobody), timeouts).await?;
        let asked = async {
            let account = process.connection.request("account/read", &json!({}), timeouts.request).await;
            let account = account.map_err(|error| refused(shared, "asking for its login", &error.to_string()))?;
            require_login(shared, &account)?;
            let models = process.connection.request("model/list", &json!({}), timeouts.request).await;
            Ok(available_models(shared.profile.name.clone(), &account, &models.unwrap_or_default()))
        };
        let asked = asked.await;
        let version = process.version.clone();
        process.end(timeouts.grace).await;
        Ok(Self { version, models: asked?, command, timeouts })
    }

    pub(crate) fn name(&self) -> &str {
        self.command.name()
    }

    pub(crate) fn version(&self) -> String {
        self.version.clone()
    }
}

impl Adapter for Codex {
    type Session = Session;

    async fn open(&self, opening: Opening) -> Result<Session, EngineError> {
        Session::open(Arc::clone(&self.command.0), opening, self.timeouts).await
    }

    async fn offer(&self) -> AvailableModels {
        self.models.clone()
    }

    async fn stop(self) {
        self.command.stop().await;
    }
}

fn refused(shared: &Shared, doing: &str, reason: &str) -> EngineError {
    EngineError::Request { what: format!("{doing} ({})", shared.profile.name), reason: reason.to_owned() }
}

fn require_login(shared: &Shared, account: &Value) -> Result<(), EngineError> {
    if account["requiresOpenaiAuth"] != json!(true) || account["account"].is_object() {
        return Ok(());
    }
    let name = &shared.profile.name;
    Err(EngineError::Unauthenticated {
        reason: format!("{name} is installed, but not logged in"),
        hint: shared.profile.login_hint().unwrap_or("run `codex login`").to_owned(),
    })
}

/// Another provider's models are not in Codex's list.
fn available_models(engine: String, account: &Value, listed: &Value) -> AvailableModels {
    let listed = listed["data"].as_array().filter(|_| account["requiresOpenaiAuth"] == json!(true));
    let Some(listed) = listed.filter(|listed| !listed.is_empty()) else {
        return AvailableModels { engine, ..AvailableModels::default() };
    };
    let id = |model: &Value| model["model"].as_str().map(str::to_owned);
    let efforts: BTreeMap<String, Vec<String>> = listed
        .iter()
        .filter_map(|model| {
            let efforts = model["supportedReasoningEfforts"].as_array().into_iter().flatten();
            let efforts = efforts.filter_map(|effort| effort["reasoningEffort"].as_str().map(str::to_owned));
            Some((id(model)?, efforts.collect()))
        })
        .into_map();
    let default = listed.iter().find(|model| model["isDefault"] == json!(true)).and_then(id);
    AvailableModels {
        engine,
        models: Some(efforts.keys().cloned().collect()),
        default,
        efforts: Some(efforts),
        is_users: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_openais_own_models_are_known() {
        let listed = json!({ "data": [
            { "model": "gpt-6", "isDefault": true, "supportedReasoningEfforts": [{ "reasoningEffort": "low" }] },
            { "model": "gpt-5", "supportedReasoningEfforts": 7 },
            { "id": "odd" },
        ] });
        let account = |needs: bool| json!({ "account": { "type": "chatgpt" }, "requiresOpenaiAuth": needs });
        let known = available_models("codex".to_owned(), &account(true), &listed);
        assert_eq!(known.models, Some(vec!["gpt-5".to_owned(), "gpt-6".to_owned()]));
        assert_eq!(known.default.as_deref(), Some("gpt-6"));
        assert_eq!(known.efforts.expect("levels")["gpt-6"], ["low"]);
        for (account, listed) in [(account(false), listed.clone()), (account(true), json!({})), (json!(7), listed)] {
            assert_eq!(available_models("codex".to_owned(), &account, &listed).models, None);
        }
    }
}
