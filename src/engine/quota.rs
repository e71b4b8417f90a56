//! What engines say of their accounts: which errors mean that a quota is used up, and when it is there again; and which
//! that nobody is logged in.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// When a quota is there again, as far as the engine says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Reset {
    In(Duration),
    At(Timestamp),
}

/// Whose quota it is. Sessions with equal keys share one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    /// The engine, and its endpoint if the user named one.
    pub(crate) name: String,
    /// A hash of the endpoint, and of the key or the place of the login.
    pub(crate) key: String,
}

impl Account {
    /// `secrets`: what tells one account of the engine from another.
    pub(crate) fn new<'s>(engine: &str, endpoint: Option<&str>, secrets: impl IntoIterator<Item = &'s [u8]>) -> Self {
        let mut hasher = blake3::Hasher::new();
        let mut add = |part: &[u8]| {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        };
        [engine, endpoint.unwrap_or_default()].map(str::as_bytes).into_iter().for_each(&mut add);
        secrets.into_iter().for_each(add);
        // An address may hold a password.
        let shown = |endpoint: &str| match endpoint.split_once("://") {
            Some((scheme, rest)) => format!("{scheme}://{}", rest.rsplit('@').next().unwrap_or_default()),
            None => endpoint.to_owned(),
        };
        let name = endpoint.map_or_else(|| engine.to_owned(), |endpoint| format!("{engine} at {}", shown(endpoint)));
        Self { name, key: hasher.finalize().to_hex()[..16].to_owned() }
    }
}

/// Words of errors about a quota, in the engines' and their models' services.
const SAID: [&str; 19] = [
    "rate limit",
    "rate-limit",
    "rate_limit",
    "ratelimit",
    "too many requests",
    "usage limit",
    "usage_limit",
    "hit your limit",
    "quota exceeded",
    "quota_exceeded",
    "exceeded your current quota",
    "exceeded your quota",
    "insufficient_quota",
    "resource exhausted",
    "resource_exhausted",
    "resourceexhausted",
    "credit balance is too low",
    "out of credits",
    "no quota",
];

/// Whether an error of an engine says that a quota is used up, and until when. `None`: it is another error.
pub(crate) fn quota_error(error: &str) -> Option<Option<Reset>> {
    let text = error.to_lowercase();
    let has = |word: &&str| text.contains(word);
    let is_status = has_status(&text, "429");
    let is_reached = text.contains("limit reached") && text.contains("reset");
    (is_status || is_reached || SAID.iter().any(has)).then(|| reset_in(&text))
}

fn has_status(text: &str, status: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == status)
        && ["status", "http", "error", "code"].iter().any(|word| text.contains(word))
}

/// Words of errors about a login.
const NO_LOGIN: [&str; 9] = [
    "not logged in",
    "run /login",
    "failed to authenticate",
    "not authenticated",
    "authentication_error",
    "invalid api key",
    "invalid_api_key",
    "invalid x-api-key",
    "token has expired",
];

/// Whether an error of an engine says that nobody is logged in, or that the login does not hold any more.
pub(crate) fn login_error(error: &str) -> bool {
    let text = error.to_lowercase();
    has_status(&text, "401") || NO_LOGIN.iter().any(|word| text.contains(word))
}

/// When it is over, if the text says that in a way that needs no time zone.
fn reset_in(text: &str) -> Option<Reset> {
    let after = |word: &str| text.split_once(word).map(|(_, rest)| rest.trim_start_matches(['"', '\'', ':', ' ', '=']));
    let seconds =
        |at: &str| Timestamp::from_second(number(at)? as i64).ok().filter(|at| at.as_second() > 1_000_000_000);
    let at = ["resets_at", "resetsat", "reset_at", "limit reached|"].iter().find_map(|word| seconds(after(word)?));
    if let Some(at) = at {
        return Some(Reset::At(at));
    }
    let plain =
        ["resets_in_seconds", "retry-after", "retry_after", "retryafter"].iter().find_map(|word| number(after(word)?));
    let spelled =
        ["try again in ", "retry in ", "retry after ", "resets in "].iter().find_map(|word| duration(after(word)?));
    spelled.or_else(|| plain.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())).map(Reset::In)
}

/// The number that a text begins with.
fn number(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text[..end].trim_end_matches('.').parse().ok()
}

/// The sum of the amounts that a text begins with, such as `3 days 4 hours` or `1m30.5s`; seconds, if it has no units.
fn duration(text: &str) -> Option<Duration> {
    let (mut sum, mut rest) = (None, text);
    while let Some(amount) = number(rest) {
        let of_number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let unit = rest[of_number..].trim_start();
        let end = unit.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(unit.len());
        let seconds = match &unit[..end] {
            "ms" | "milliseconds" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" | "" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3_600.0,
            "d" | "day" | "days" => 86_400.0,
            _ => break,
        };
        sum = Some(sum.unwrap_or_default() + amount * seconds);
        rest = unit[end..].trim_start_matches([',', ' ']);
        rest = rest.strip_prefix("and ").unwrap_or(rest);
    }
    Duration::try_from_secs_f64(sum?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What engines were seen to say, and other errors that come near.
    #[test]
    fn errors_about_quotas_are_told_from_others() {
        let at = |second| Some(Some(Reset::At(Timestamp::from_second(second).expect("a time"))));
        let within = |seconds| Some(Some(Reset::In(Duration::from_secs_f64(seconds))));
        for (error, expected) in [
            ("claude ended with exit code 1: Claude AI usage limit reached|1777936568", at(1_777_936_568)),
            ("You've hit your limit · resets 3pm (Europe/Berlin)", Some(None)),
            ("5-hour limit reached ∙ resets 3pm", Some(None)),
            ("API Error: 429 {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\"}}", Some(None)),
            (
                "{\"type\":\"usage_limit_reached\",\"resets_at\":1777936568,\"resets_in_seconds\":13872}",
                at(1_777_936_568),
            ),
            ("exceeded retry limit, last status: 429 Too Many Requests, request id: c4", Some(None)),
            ("You've hit your usage limit. Try again in 3 days 4 hours 12 minutes.", within(274_320.0)),
            ("Rate limit reached for gpt-5 … Please try again in 1m30.5s. Visit", within(90.5)),
            ("You exceeded your current quota. Please retry in 34.07s.", within(34.07)),
            ("429 error, Retry-After: 20", within(20.0)),
            ("[unavailable] Error: RESOURCE_EXHAUSTED", Some(None)),
            ("Credit balance is too low", Some(None)),
            ("the context limit was reached", None),
            ("HTTP 500 from port 4290", None),
            ("file-429.txt is missing", None),
            ("it ended without an answer", None),
        ] {
            assert_eq!(quota_error(error), expected, "{error}");
        }
        for odd in [
            "try again in 9e999",
            "retry after -5",
            "try again in 99999999999999999999999999 days",
            "rate limit|",
            "\u{130}",
        ] {
            // No panic, whatever it says.
            let _ = quota_error(&format!("429 error: {odd}"));
        }
    }

    #[test]
    fn errors_of_a_login_are_known() {
        for (error, expected) in [
            ("Not logged in · Please run /login", true),
            ("Failed to authenticate. API Error: 401 scripted error", true),
            ("unexpected status 401 Unauthorized: no, url: http://127.0.0.1:1/v1/responses", true),
            ("Invalid API key · Fix external API key", true),
            (r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#, true),
            ("OAuth token has expired", true),
            ("HTTP 500 from port 4010", false),
            ("unexpected status 403 Forbidden", false),
            ("it ended without an answer", false),
            ("file-401.txt is missing", false),
        ] {
            assert_eq!(login_error(error), expected, "{error}");
        }
    }

    #[test]
    fn accounts_differ_by_endpoint_and_key() {
        let of = |engine, endpoint, key: &str| Account::new(engine, endpoint, [key.as_bytes()]);
        let one = of("copilot", Some("http://a/v1"), "secret");
        assert_eq!(one, of("copilot", Some("http://a/v1"), "secret"));
        assert_eq!(one.name, "copilot at http://a/v1");
        assert!(!one.key.contains("secret"));
        for other in [
            of("copilot", Some("http://b/v1"), "secret"),
            of("copilot", Some("http://a/v1"), "other"),
            of("claude", Some("http://a/v1"), "secret"),
            of("copilot", None, "http://a/v1secret"),
        ] {
            assert_ne!(one.key, other.key);
        }
    }
}
