//! Secrets and e-mail addresses, taken out of text before it is hashed into the object database.
//!
//! What is replaced becomes `[redacted:KIND]`. A rule is only compiled when one of its anchors occurs in the text, so
//! that ordinary text costs a few substring searches.
//!
//! Token formats: the makers' own documentation, as collected by GitHub secret scanning and gitleaks.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::OnceLock;

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// That something was taken out of an entry, of which kind and how often. Never what it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Redaction {
    pub(crate) kind: String,
    pub(crate) count: usize,
}

/// Finds secrets: the common formats, and literal values that are known to be secret here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Redactor {
    /// Longest first, so that one that contains another goes as a whole.
    literals: Vec<String>,
}

struct Rule {
    kind: &'static str,
    /// One of these occurs, in any case, wherever the pattern matches.
    anchors: &'static [&'static str],
    /// The first group, where there is one, is the secret; otherwise the whole match.
    pattern: &'static str,
    accept: fn(&str, Range<usize>) -> bool,
    compiled: OnceLock<Option<Regex>>,
}

const fn rule(kind: &'static str, anchors: &'static [&'static str], pattern: &'static str) -> Rule {
    Rule { kind, anchors, pattern, accept: |_, _| true, compiled: OnceLock::new() }
}

const fn judged(
    kind: &'static str,
    anchors: &'static [&'static str],
    pattern: &'static str,
    accept: fn(&str, Range<usize>) -> bool,
) -> Rule {
    Rule { kind, anchors, pattern, accept, compiled: OnceLock::new() }
}

/// In this order: what is certain first, what depends on its context last.
static RULES: [Rule; 25] = [
    rule(
        "private-key",
        &["private key"],
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
    ),
    rule(
        "github-token",
        &["gh", "github_pat_"],
        r"\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})",
    ),
    rule("gitlab-token", &["glpat-", "glrt-", "gldt-"], r"\bgl(?:pat|rt|dt)-[A-Za-z0-9_-]{20,}"),
    rule("aws-access-key", &["akia", "asia", "abia", "acca"], r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b"),
    rule("slack-token", &["xox"], r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    rule(
        "slack-webhook",
        &["hooks.slack.com"],
        r"https://hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{20,}",
    ),
    rule("google-api-key", &["aiza"], r"\bAIza[0-9A-Za-z_-]{35}"),
    rule("anthropic-key", &["sk-ant-"], r"\bsk-ant-[A-Za-z0-9_-]{20,}"),
    rule("openai-key", &["sk-"], r"\bsk-(?:proj-|svcacct-|admin-|or-v1-)?[A-Za-z0-9_-]{20,}"),
    rule("stripe-key", &["_live_", "_test_"], r"\b(?:sk|rk|pk|whsec)_(?:live|test)_[0-9A-Za-z]{10,}"),
    rule("npm-token", &["npm_"], r"\bnpm_[A-Za-z0-9]{36}"),
    rule("pypi-token", &["pypi-ageicHlwaS5vcmc", "pypi-ageichlwas5vcmc"], r"\bpypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,}"),
    rule("hugging-face-token", &["hf_"], r"\bhf_[A-Za-z0-9]{34,}"),
    rule("sendgrid-key", &["sg."], r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    rule("digitalocean-token", &["do"], r"\bdo[opr]_v1_[a-f0-9]{64}"),
    rule(
        "azure-key",
        &["accountkey=", "sharedaccesskey="],
        r"(?i)(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/=]{40,})",
    ),
    rule("jwt", &["eyj"], r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}"),
    judged("url-password", &["://"], r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@]*:([^\s/@]{3,})@", is_secret_value),
    judged(
        "authorization",
        &["bearer", "basic"],
        r"(?i)\b(?:bearer|basic)\s+([A-Za-z0-9._~+/=-]{16,})",
        |text, range| entropy(&text[range.clone()]) >= 3.0 && is_secret_value(text, range),
    ),
    // A password may be any word, so where a form leaves no doubt that it is one, what it looks like does not matter.
    judged(
        "password",
        &["passw", "passphrase", "pwd"],
        r#"(?i)(?:password|passwd|passphrase|pwd)["'`]?\s*[:=]\s*(?:"([^"\n]{4,})"|'([^'\n]{4,})'|`([^`\n]{4,})`)"#,
        is_password,
    ),
    judged(
        "password",
        &["passw", "passphrase", "pwd"],
        r#"\b[A-Z0-9_]*(?:PASSWORD|PASSWD|PASSPHRASE|PWD)=([^\s"'`]{4,})"#,
        is_password,
    ),
    judged(
        "password",
        &["--pass", "-u "],
        r#"(?:--(?:password|passwd|passphrase)[= ]|\bcurl\b[^\n]*?\s(?:-u|--user)[= ]+[^\s:]+:)([^\s"'`-][^\s"'`]{3,})"#,
        is_password,
    ),
    judged(
        "password",
        &["passw", "passphrase", "pwd"],
        r#"(?i)\b(?:password|passwd|passphrase|pwd)\s*[:=]\s*([^\s"'`,;<>(){}]{5,})"#,
        |text, range| text[range.clone()].bytes().any(|b| b.is_ascii_digit()) && is_password(text, range),
    ),
    judged(
        "assigned-secret",
        &["passw", "passphrase", "secret", "token", "key", "credential", "pwd"],
        r#"(?i)(?:passw(?:or)?d|passphrase|passwd|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)["'`]?\s*(?::|=>?|:=)\s*["'`]?([^\s"'`,;<>(){}]{8,})"#,
        is_random_value,
    ),
    judged("email", &["@"], r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}\b", is_email),
];

impl Redactor {
    /// `secrets` are values to take out wherever they occur, such as those of the project's `.env` files. Values
    /// shorter than eight characters are left out: they would hit ordinary words.
    pub(crate) fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut literals: Vec<String> = secrets.into_iter().filter(|secret| secret.chars().count() >= 8).collect();
        literals.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        literals.dedup();
        Self { literals }
    }

    /// The text without secrets. What was found is added to `found`.
    pub(crate) fn text(&self, text: &str, found: &mut Vec<Redaction>) -> String {
        let mut text = text.to_owned();
        for literal in self.literals.iter().filter(|literal| !literal.is_empty()) {
            let count = text.matches(literal.as_str()).count();
            if count > 0 {
                text = text.replace(literal.as_str(), "[redacted:known-secret]");
                note(found, "known-secret", count);
            }
        }
        let lower = text.to_ascii_lowercase();
        for rule in &RULES {
            if rule.anchors.iter().any(|anchor| lower.contains(&anchor.to_ascii_lowercase())) {
                text = rule.apply(text, found);
            }
        }
        text
    }

    /// Every text within a JSON value, keys included.
    pub(crate) fn value(&self, value: &mut Value, found: &mut Vec<Redaction>) {
        match value {
            Value::String(text) => *text = self.text(text, found),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item, found)),
            Value::Object(map) => {
                *map = std::mem::take(map)
                    .into_iter()
                    .map(|(key, mut value)| {
                        self.value(&mut value, found);
                        (self.text(&key, found), value)
                    })
                    .collect();
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

impl Rule {
    fn apply(&self, text: String, found: &mut Vec<Redaction>) -> String {
        // A pattern that does not compile would be found by the tests, which run every rule.
        let Some(regex) = self.compiled.get_or_init(|| Regex::new(self.pattern).ok()) else { return text };
        let mut clean = String::with_capacity(text.len());
        let (mut at, mut count) = (0, 0);
        for captures in regex.captures_iter(&text) {
            let Some(secret) = captures.iter().skip(1).flatten().next().or_else(|| captures.get(0)) else { continue };
            if (self.accept)(&text, secret.range()) {
                clean.push_str(&text[at..secret.start()]);
                clean.push_str(&format!("[redacted:{}]", self.kind));
                at = secret.end();
                count += 1;
            }
        }
        if count == 0 {
            return text;
        }
        note(found, self.kind, count);
        clean.push_str(&text[at..]);
        clean
    }
}

fn note(found: &mut Vec<Redaction>, kind: &str, count: usize) {
    match found.iter_mut().find(|redaction| redaction.kind == kind) {
        Some(redaction) => redaction.count += count,
        None => found.push(Redaction { kind: kind.to_owned(), count }),
    }
}

/// Not a variable, a placeholder, a code expression, or something redacted already. Only what is wholly one of these
/// counts: a password may well have an ordinary word in it.
fn is_secret_value(text: &str, range: Range<usize>) -> bool {
    const PLACEHOLDERS: [&str; 12] = [
        "password",
        "passwort",
        "passwd",
        "pass",
        "secret",
        "token",
        "example",
        "changeme",
        "placeholder",
        "redacted",
        "username",
        "none",
    ];
    const EXPRESSIONS: [&str; 9] =
        ["process.env", "os.environ", "os.getenv", "env.", "env[", "secrets.", "config.", "settings.", "your"];
    let value = &text[range];
    let lower = value.to_lowercase();
    let is_filler = lower.chars().all(|c| matches!(c, 'x' | '*' | '.' | '-' | '_'));
    !(value.starts_with(['$', '<', '{', '[', '%', '*', '(', '&'])
        || is_filler
        || PLACEHOLDERS.contains(&lower.as_str())
        || EXPRESSIONS.iter().any(|start| lower.starts_with(start)))
}

/// Looks made by a generator rather than by a person writing prose or code: letters and digits, mixed enough.
fn is_random_value(text: &str, range: Range<usize>) -> bool {
    let value = &text[range.clone()];
    let letters = value.bytes().any(|b| b.is_ascii_alphabetic());
    let others = value.bytes().any(|b| b.is_ascii_digit() || b"!@#$%^&*+/=_".contains(&b));
    letters
        && others
        && value.bytes().any(|b| b.is_ascii_digit())
        && entropy(value) >= 2.75
        && is_secret_value(text, range)
}

/// Not a path: `PWD` is the working directory to every shell.
fn is_password(text: &str, range: Range<usize>) -> bool {
    !text[range.clone()].starts_with(['/', '.', '~']) && is_secret_value(text, range)
}

/// `git@host:path`, `user@host:dir/file` and `ssh://user@host` are remotes, not people.
fn is_email(text: &str, range: Range<usize>) -> bool {
    let local = text[range.clone()].split('@').next().unwrap_or_default();
    let path = text[range.end..].strip_prefix(':').and_then(|rest| rest.split_whitespace().next()).unwrap_or_default();
    let is_remote = path.contains('/') || path.ends_with(".git");
    !(local == "git" || text[..range.start].ends_with("://") || is_remote)
}

/// Shannon entropy, bits per byte.
fn entropy(text: &str) -> f64 {
    let mut counts = BTreeMap::new();
    for byte in text.bytes() {
        *counts.entry(byte).or_insert(0u32) += 1;
    }
    let length = text.len() as f64;
    counts.values().map(|&count| f64::from(count) / length).map(|share| -share * share.log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(text: &str) -> (String, Vec<(String, usize)>) {
        let mut found = Vec::new();
        let text = Redactor::new(["hunter2-hunter2".to_owned(), "short".to_owned()]).text(text, &mut found);
        (text, found.into_iter().map(|redaction| (redaction.kind, redaction.count)).collect())
    }

    #[test]
    fn every_rule_compiles() {
        for rule in &RULES {
            assert!(Regex::new(rule.pattern).is_ok(), "{}", rule.kind);
        }
    }

    #[test]
    fn the_common_formats_go() {
        // Put together here, so that no scanner takes this file for a leak.
        let cases = [
            ("github-token", format!("ghp_{}", "a1B2".repeat(9))),
            ("github-token", format!("github_pat_{}", "a1B2c3".repeat(5))),
            ("gitlab-token", format!("glpat-{}", "a1B2c3".repeat(4))),
            ("aws-access-key", format!("AKIA{}", "ABCD2345".repeat(2))),
            ("slack-token", format!("xoxb-{}", "1234567890-abcdef")),
            ("slack-webhook", format!("https://hooks.slack.com/services/{}", "T00000000/B00000000/abcdefghijkl")),
            ("google-api-key", format!("AIza{}", "a1B2c".repeat(7))),
            ("anthropic-key", format!("sk-ant-{}", "api03-abcdefghijklmnop1234")),
            ("openai-key", format!("sk-proj-{}", "abcdefghijklmnop1234")),
            ("stripe-key", format!("sk_live_{}", "abcdefghij1234")),
            ("npm-token", format!("npm_{}", "a1B2".repeat(9))),
            ("pypi-token", format!("pypi-AgEIcHlwaS5vcmc{}", "a1B2c".repeat(11))),
            ("hugging-face-token", format!("hf_{}", "a1B2".repeat(9))),
            ("sendgrid-key", format!("SG.{}.{}", "a1B2".repeat(5), "a1B2".repeat(10))),
            ("digitalocean-token", format!("dop_v1_{}", "a1b2".repeat(16))),
            ("jwt", format!("eyJ{}.eyJ{}.{}", "hbGciOiJIUzI1", "zdWIiOiIxMjM0", "SflKxwRJSM")),
            (
                "private-key",
                format!("-----BEGIN RSA {}-----\nMIIE\n-----END RSA {}-----", "PRIVATE KEY", "PRIVATE KEY"),
            ),
        ];
        for (kind, secret) in cases {
            let (text, found) = redacted(&format!("before {secret} after"));
            assert_eq!(text, format!("before [redacted:{kind}] after"));
            assert_eq!(found, [(kind.to_owned(), 1)]);
        }
    }

    #[test]
    fn context_gives_a_secret_away() {
        assert_eq!(redacted("DB=postgres://app:s3cr3tpw@db/x").0, "DB=postgres://app:[redacted:url-password]@db/x");
        assert_eq!(
            redacted("Authorization: Bearer abc123def456ghi789jkl").0,
            "Authorization: Bearer [redacted:authorization]"
        );
        assert_eq!(redacted("password = \"kJ8#mQ2$vX9\"").0, "password = \"[redacted:password]\"");
        assert_eq!(redacted("postgres://app:MyPassword9x@db/x").0, "postgres://app:[redacted:url-password]@db/x");
        assert_eq!(redacted("passphrase: S3cr3t-example-Q9").0, "passphrase: [redacted:password]");
        assert_eq!(redacted("it is hunter2-hunter2").0, "it is [redacted:known-secret]");
    }

    #[test]
    fn people_go_and_remotes_stay() {
        assert_eq!(redacted("ask ann.b+c@acme.io, please").0, "ask [redacted:email], please");
        for person in
            ["mailto:a@acme.io", "Contact:a@acme.io", "see a@acme.io:please", "https://x/a@acme.io", "<a@acme.io>"]
        {
            assert_eq!(redacted(person).0, person.replace("a@acme.io", "[redacted:email]"));
        }
        for kept in
            ["git@github.com:acme/x.git", "ssh://git@host.example/x", "deploy@build.acme.io:/srv/x", "a @mention here"]
        {
            assert_eq!(redacted(kept), (kept.to_owned(), Vec::new()));
        }
    }

    #[test]
    fn a_password_may_be_any_word() {
        for (text, secret) in [
            ("password: hunter2", "hunter2"),
            ("DB_PASSWORD=correcthorse", "correcthorse"),
            ("password = \"correct horse battery\"", "correct horse battery"),
            ("{\"password\":\"sunshine\"}", "sunshine"),
            ("MYSQL_PWD=Summer!", "Summer!"),
            ("--password sunshine123", "sunshine123"),
            ("curl -u admin:letmein99 https://x", "letmein99"),
        ] {
            assert_eq!(redacted(text).0, text.replace(secret, "[redacted:password]"));
        }
        for kept in [
            "PWD=/home/ann/project",
            "the password: ask Ann",
            "--password-file x.txt",
            "DB_PASSWORD=$SECRET",
            "password = \"\"",
        ] {
            assert_eq!(redacted(kept), (kept.to_owned(), Vec::new()), "{kept}");
        }
    }

    #[test]
    fn ordinary_text_stays() {
        for kept in [
            "the token: see docs for it",
            "password: process.env.DB_PASSWORD",
            "secret = ${{ secrets.NPM_TOKEN }}",
            "token=<your-token-here>",
            "primary key: customer_identifier",
            "sort key = created_at_descending",
            "sk-learn is a library",
            "commit 8f3a0c9d21be4f5a6b7c8d9e0f1a2b3c4d5e6f70",
            "key: Ctrl+Shift+P",
            "basic understanding of things is enough",
        ] {
            assert_eq!(redacted(kept), (kept.to_owned(), Vec::new()), "{kept}");
        }
    }

    #[test]
    fn redacting_twice_changes_nothing() {
        let once = redacted(&format!("token: ghp_{} by a@b.io", "a1B2".repeat(9))).0;
        assert_eq!(redacted(&once), (once.clone(), Vec::new()));
    }

    #[test]
    fn values_are_cleaned_throughout() {
        let mut value = serde_json::json!({"a": [{"b": "mail x@y.org"}], "n": 1});
        let mut found = Vec::new();
        Redactor::default().value(&mut value, &mut found);
        assert_eq!(value, serde_json::json!({"a": [{"b": "mail [redacted:email]"}], "n": 1}));
    }
}
