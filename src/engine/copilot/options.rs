//! The adapter's options, all set by the caller: nothing here is read from the process environment.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::engine::{Account, EngineError, EngineHosts, EngineKind};
use crate::model::{HostPattern, HostPort, Slug};
use crate::program::{Variables, variable};
use crate::sandbox::Sandbox;

#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// The CLI that the user configured; `None` to search for one.
    pub(crate) program: Option<PathBuf>,
    /// This program, which is started a second time as a guardian: if squad is killed, the guardian ends the processes
    /// started by the engine's tools. Linux only.
    pub(crate) squad: Option<PathBuf>,
    /// The environment for the CLI. squad adds `COPILOT_HOME`, `SQUAD_RUN` and `SQUAD_PROCESS`.
    pub(crate) variables: Variables,
    /// The absolute path of the user's working directory: the CLI must not come from its checkout.
    pub(crate) directory: PathBuf,
    pub(crate) home: Home,
    /// The user's own model endpoint, which needs no login.
    pub(crate) provider: Option<Provider>,
    /// By name.
    pub(crate) mcp_servers: McpServers,
    /// Set as `SQUAD_RUN` in the environment of the CLI, and so of every process its tools start.
    pub(crate) run: String,
    pub(crate) timeouts: Timeouts,
    /// `None`: the CLI may do what the user can do.
    pub(crate) sandbox: Option<Sandbox>,
}

impl Options {
    pub(crate) fn variable(&self, name: &str) -> Option<&OsStr> {
        variable(&self.variables, name)
    }

    /// The hosts that it needs: the endpoint of its own, or GitHub's.
    pub(crate) fn hosts(&self) -> EngineHosts {
        const GITHUB: &str = "github.com";
        if let Some(Provider { base_url, .. }) = &self.provider {
            return EngineHosts { endpoint: HostPort::of_url(base_url), others: Vec::new() };
        }
        let named = ["COPILOT_GH_HOST", "GH_HOST"].iter().find_map(|name| self.variable(name));
        let named = named.map(|host| host.to_string_lossy().into_owned()).filter(|host| host != GITHUB);
        let hosts = match &named {
            // Which host of a company's own has the models, the login says.
            Some(host) => vec![host.clone(), format!("*.{host}")],
            None => [GITHUB, "api.github.com", "*.githubcopilot.com"].map(str::to_owned).to_vec(),
        };
        let endpoint = if named.is_none() { HostPort::new("api.githubcopilot.com", 443) } else { None };
        EngineHosts { endpoint, others: hosts.iter().filter_map(|host| HostPattern::parse(host).ok()).collect() }
    }

    /// Whose quota it uses: that of the endpoint's key, or else of the login.
    pub(crate) fn account(&self) -> Account {
        let name = EngineKind::Copilot.name();
        if let Some(Provider { base_url, api_key, .. }) = &self.provider {
            return Account::new(name, Some(base_url), api_key.iter().map(String::as_bytes));
        }
        let tokens = ["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_HOME"];
        let tokens = tokens.iter().filter_map(|token| self.variable(token)).map(OsStr::as_encoded_bytes);
        let home = match &self.home {
            Home::At(folder) => Some(folder.as_os_str().as_encoded_bytes()),
            Home::Auto { .. } | Home::User => None,
        };
        Account::new(name, None, tokens.chain(home))
    }
}

/// Where the CLI stores its sessions (`COPILOT_HOME`). A login is never copied between homes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Home {
    /// The repository's own home if the CLI is logged in there or needs no login; else the user's.
    Auto {
        local: PathBuf,
    },
    At(PathBuf),
    User,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// From spawning the CLI to its first answer.
    pub(crate) start: Duration,
    pub(crate) request: Duration,
    /// How long a run waits for the list of models.
    pub(crate) offer: Duration,
    /// Creating or resuming a session.
    pub(crate) open: Duration,
    /// How long one of the user's MCP servers may take for its first answer.
    pub(crate) server: Duration,
    pub(crate) abort: Duration,
    /// How long a ping of a working CLI may take before we warn. [`Self::ping_interval`] is how often it is sent.
    pub(crate) ping: Duration,
    pub(crate) ping_interval: Duration,
    /// When to give up on a CLI that answers no ping and uses no processor time.
    pub(crate) hang: Duration,
    /// The time between asking the CLI to end and killing it.
    pub(crate) grace: Duration,
    /// The delay before the first reconnection attempt; it doubles with each.
    pub(crate) backoff: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(20),
            request: Duration::from_secs(30),
            offer: Duration::from_secs(5),
            open: Duration::from_secs(60),
            server: Duration::from_secs(10),
            abort: Duration::from_secs(5),
            ping: Duration::from_secs(5),
            ping_interval: Duration::from_secs(4),
            hang: Duration::from_secs(30),
            grace: Duration::from_secs(5),
            backoff: Duration::from_secs(1),
        }
    }
}

/// The user's own model endpoint.
#[derive(Clone, PartialEq)]
pub(crate) struct Provider {
    pub(crate) kind: ProviderKind,
    /// `None`: the CLI's default for the kind.
    pub(crate) wire_api: Option<WireApi>,
    pub(crate) base_url: String,
    pub(crate) api_key: Option<String>,
    /// The models it serves, default first. Empty: any model.
    pub(crate) models: Vec<String>,
    /// The maximum tokens of one request; `None`: the CLI's value for the model.
    pub(crate) max_prompt_tokens: Option<u64>,
}

pub(crate) type McpServers = BTreeMap<String, McpServer>;

/// A source of further tools, in the form the CLI expects.
#[derive(Clone, PartialEq, serde::Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum McpServer {
    /// A program that the CLI starts for each session.
    Local {
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, String>,
        #[serde(flatten)]
        offer: McpOffer,
    },
    Http {
        url: String,
        headers: BTreeMap<String, String>,
        #[serde(flatten)]
        offer: McpOffer,
    },
    Sse {
        url: String,
        headers: BTreeMap<String, String>,
        #[serde(flatten)]
        offer: McpOffer,
    },
}

/// What of a server agents are offered.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub(crate) struct McpOffer {
    /// `None`: all of its tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<Vec<String>>,
    /// Milliseconds that a call may take; `None`: the CLI's own limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout: Option<u64>,
    /// The agents that have it; `None`: all.
    #[serde(skip)]
    pub(crate) agents: Option<Vec<Slug>>,
}

impl McpServer {
    pub(crate) fn is_for(&self, agent: &Slug) -> bool {
        let (Self::Local { offer, .. } | Self::Http { offer, .. } | Self::Sse { offer, .. }) = self;
        offer.agents.as_ref().is_none_or(|agents| agents.contains(agent))
    }
}

impl McpServer {
    /// The host that it is on, if the user configured one.
    pub(crate) fn host(&self) -> Option<HostPort> {
        match self {
            Self::Local { .. } => None,
            Self::Http { url, .. } | Self::Sse { url, .. } => HostPort::of_url(url),
        }
    }

    /// Whether agents are offered its tool of this name.
    pub(crate) fn offers(&self, tool: &str) -> bool {
        let (Self::Local { offer, .. } | Self::Http { offer, .. } | Self::Sse { offer, .. }) = self;
        offer.tools.as_ref().is_none_or(|tools| tools.iter().any(|name| name == "*" || name == tool))
    }
}

impl fmt::Debug for McpServer {
    /// Omits variables and headers, which may hold keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local { command, .. } => f.debug_struct("Local").field("command", command).finish_non_exhaustive(),
            Self::Sse { url, .. } => f.debug_struct("Sse").field("url", url).finish_non_exhaustive(),
            Self::Http { url, .. } => f.debug_struct("Http").field("url", url).finish_non_exhaustive(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ProviderKind {
    Openai,
    Anthropic,
    Azure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WireApi {
    Completions,
    Responses,
}

impl fmt::Debug for Provider {
    /// Omits the key: debug output ends up in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider")
            .field("kind", &self.kind)
            .field("wire_api", &self.wire_api)
            .field("base_url", &self.base_url)
            .field("api_key", &self.api_key.as_ref().map(|_| "…"))
            .field("models", &self.models)
            .finish()
    }
}

impl ProviderKind {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "openai" => Some(Self::Openai),
            "anthropic" => Some(Self::Anthropic),
            "azure" => Some(Self::Azure),
            _ => None,
        }
    }
}

impl WireApi {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "completions" => Some(Self::Completions),
            "responses" => Some(Self::Responses),
            _ => None,
        }
    }
}

impl Provider {
    /// The provider from the CLI's own variables (`copilot help providers`); `None` without
    /// `COPILOT_PROVIDER_BASE_URL`.
    pub(crate) fn from_environment(variables: &Variables) -> Result<Option<Self>, EngineError> {
        let text = |name| variable(variables, name).map(|value| value.to_string_lossy().into_owned());
        let Some(base_url) = text("COPILOT_PROVIDER_BASE_URL") else { return Ok(None) };
        let kind = match text("COPILOT_PROVIDER_TYPE") {
            None => ProviderKind::Openai,
            Some(kind) => ProviderKind::parse(&kind)
                .ok_or_else(|| unknown_value("COPILOT_PROVIDER_TYPE", &kind, "openai, anthropic or azure"))?,
        };
        let wire_api = match text("COPILOT_PROVIDER_WIRE_API") {
            None => None,
            Some(wire) => Some(
                WireApi::parse(&wire)
                    .ok_or_else(|| unknown_value("COPILOT_PROVIDER_WIRE_API", &wire, "completions or responses"))?,
            ),
        };
        let models = text("COPILOT_MODEL").into_iter().collect();
        let max_prompt_tokens = match text("COPILOT_PROVIDER_MAX_PROMPT_TOKENS") {
            None => None,
            Some(tokens) => Some(
                tokens
                    .parse()
                    .map_err(|_| unknown_value("COPILOT_PROVIDER_MAX_PROMPT_TOKENS", &tokens, "a number of tokens"))?,
            ),
        };
        let api_key = text("COPILOT_PROVIDER_API_KEY");
        Ok(Some(Self { kind, wire_api, base_url, api_key, models, max_prompt_tokens }))
    }

    /// The model to request: `wanted` if the provider serves it, else the provider's default.
    pub(crate) fn model<'a>(&'a self, wanted: &'a str) -> &'a str {
        match self.models.first() {
            Some(default) if !self.models.iter().any(|model| model == wanted) => default,
            _ => wanted,
        }
    }
}

fn unknown_value(name: &str, value: &str, known: &str) -> EngineError {
    EngineError::Unusable {
        reason: format!("`{value}` is not a value of {name}"),
        hint: Some(format!("set {name} to {known}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn the_clis_own_variables_make_a_provider() {
        let provider = Provider::from_environment(&variables(&[
            ("COPILOT_PROVIDER_BASE_URL", "http://127.0.0.1:1/v1"),
            ("COPILOT_PROVIDER_TYPE", "anthropic"),
            ("COPILOT_PROVIDER_API_KEY", "not-a-real-key"),
            ("COPILOT_MODEL", "m-1"),
            ("COPILOT_PROVIDER_MAX_PROMPT_TOKENS", "64000"),
        ]));
        let provider = provider.expect("known values").expect("a base URL");
        assert_eq!(provider.kind, ProviderKind::Anthropic);
        assert_eq!((provider.models.as_slice(), provider.max_prompt_tokens), (&["m-1".to_owned()][..], Some(64_000)));
        assert!(!format!("{provider:?}").contains("not-a-real-key"));
        assert_eq!(Provider::from_environment(&variables(&[("COPILOT_MODEL", "m-1")])), Ok(None));
        assert_eq!(Provider::from_environment(&variables(&[("COPILOT_PROVIDER_BASE_URL", "")])), Ok(None));
    }

    #[test]
    fn a_mistyped_provider_is_named() {
        let error = Provider::from_environment(&variables(&[
            ("COPILOT_PROVIDER_BASE_URL", "http://127.0.0.1:1"),
            ("COPILOT_PROVIDER_TYPE", "opnai"),
        ]));
        assert_eq!(error.expect_err("no such kind").to_string(), "`opnai` is not a value of COPILOT_PROVIDER_TYPE");
    }

    #[test]
    fn a_model_the_provider_lacks_becomes_its_default() {
        let mut provider = Provider {
            kind: ProviderKind::Openai,
            wire_api: None,
            base_url: String::new(),
            api_key: None,
            models: vec!["a".into(), "b".into()],
            max_prompt_tokens: None,
        };
        assert_eq!(provider.model("b"), "b");
        assert_eq!(provider.model("claude"), "a");
        provider.models.clear();
        assert_eq!(provider.model("claude"), "claude");
    }
}
