//! Logs the messages to and from the engine.

use serde::Serialize;
use serde_json::Value;
use tracing::Level;

/// Names of values that are always masked, ignoring case and separators.
const SECRET: [&str; 9] =
    ["env", "apikey", "token", "authorization", "bearertoken", "password", "secret", "headers", "accesstoken"];

/// Logs an outgoing message; like [`received`], it costs nothing unless logging is enabled.
pub(super) fn sent(message: &impl Serialize) {
    if tracing::enabled!(Level::DEBUG) {
        log("->", serde_json::to_value(message));
    }
}

pub(super) fn received(content: &[u8]) {
    if tracing::enabled!(Level::DEBUG) {
        log("<-", serde_json::from_slice(content));
    }
}

fn log(direction: &str, message: serde_json::Result<Value>) {
    match message {
        Ok(message) => tracing::debug!("{direction} {}", masked(message)),
        Err(error) => tracing::debug!("{direction} a message that is not JSON: {error}"),
    }
}

fn masked(message: Value) -> Value {
    match message {
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| {
                let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
                let is_secret = SECRET.contains(&plain.to_ascii_lowercase().as_str()) && !value.is_null();
                (name, if is_secret { Value::from("[masked]") } else { masked(value) })
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(items) => items.into_iter().map(masked).collect::<Vec<_>>().into(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_masked_everywhere() {
        let message = serde_json::json!({"params": {"providers": [{"apiKey": "k", "baseUrl": "u", "bearer_token": "b"}],
            "headers": {"x": "y"}, "env": {"A": "b"}, "prompt": "a token", "tokens": 5, "apikey": null}});
        assert_eq!(
            masked(message),
            serde_json::json!({"params": {"providers": [{"apiKey": "[masked]", "baseUrl": "u", "bearer_token": "[masked]"}],
                "headers": "[masked]", "env": "[masked]", "prompt": "a token", "tokens": 5, "apikey": null}})
        );
    }
}
