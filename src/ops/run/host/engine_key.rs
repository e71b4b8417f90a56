//! Identifies the engine a call would start, so that the call uses no different one.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::env::Env;
use crate::model::{IntoMap, IntoSet, list};
use crate::ops::Project;

/// Hashes of the settings of engines and of the MCP servers of their sessions, and the variables that determine where prompts and
/// keys go. Only hashes, because values may be secrets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::ops) struct EngineKey(BTreeMap<String, String>);

impl EngineKey {
    pub(in crate::ops) fn of(env: &Env, project: &Project) -> Self {
        let key =
            project.settings.engine.copilot.provider.as_ref().and_then(|provider| provider.api_key_env.as_deref());
        let variables = env.variables.iter().filter(|(name, _)| is_relevant(name) || Some(name.as_str()) == key);
        let variables = variables.map(|(name, value)| (name.clone(), hash(value)));
        let settings = project.settings.values().filter(|(name, ..)| is_of_engines(name));
        let settings = settings.map(|(name, value, _)| (format!("`{name}`"), hash(&value.to_string())));
        Self(settings.chain(variables).into_map())
    }

    /// The names of the entries that differ, if any.
    pub(in crate::ops) fn difference(&self, other: &Self) -> Option<String> {
        let names: BTreeSet<&String> = self.0.keys().chain(other.0.keys()).into_set();
        let others: Vec<&String> = names.into_iter().filter(|name| self.0.get(*name) != other.0.get(*name)).collect();
        (!others.is_empty()).then(|| list(others))
    }
}

fn is_of_engines(setting: &str) -> bool {
    ["engine.", "engines.", "agents.", "hosts.", "mcp."].iter().any(|prefix| setting.starts_with(prefix))
}

/// Proxy variables may be upper or lower case.
fn is_relevant(name: &str) -> bool {
    const PREFIXES: [&str; 9] =
        ["COPILOT_", "GH_", "GITHUB_", "HTTP", "ALL_PROXY", "NO_PROXY", "NODE_", "SSL_", "SQUAD_"];
    let name = name.to_ascii_uppercase();
    name == "HOME" || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

fn hash(value: &str) -> String {
    blake3::hash(value.as_bytes()).to_hex()[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_named_without_values() {
        let key = |entries: &[(&str, &str)]| {
            EngineKey(entries.iter().map(|(name, value)| ((*name).to_owned(), hash(value))).collect())
        };
        let one = key(&[("HOME", "/a"), ("GH_TOKEN", "secret")]);
        assert_eq!(one.difference(&one.clone()), None);
        let other = key(&[("HOME", "/a"), ("GH_TOKEN", "other"), ("https_proxy", "x")]);
        assert_eq!(one.difference(&other).as_deref(), Some("GH_TOKEN and https_proxy"));
        assert!(!serde_json::to_string(&one).expect("JSON").contains("secret"));
        assert!(is_relevant("https_proxy") && is_relevant("HTTPS_PROXY") && !is_relevant("EDITOR"));
    }
}
