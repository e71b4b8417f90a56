//! Every rule finds its secrets in any position. Secrets are generated from forms, so that no scanner reports this file
//! as a leak.

use crate::policy::Redactor;

use super::{RULES, Rule};

/// Kind and form. `{x9}`: nine characters of a class (`a` letters and digits, `l` lower case and digits, `h` hex, `u`
/// upper case and 2–7, `d` digits, `b` base64, `w` letters, digits, `-` and `_`).
const FORMS: [(&str, &str); 96] = [
    ("private-key", "-----BEGIN RSA PRI{}VATE KEY-----\n{b64}\n{b64}\n-----END RSA PRI{}VATE KEY-----"),
    ("private-key", "-----BEGIN OPENSSH PRI{}VATE KEY-----\n{b64}\n-----END OPENSSH PRI{}VATE KEY-----"),
    ("private-key", "-----BEGIN PRI{}VATE KEY-----\\n{b64}\\n-----END PRI{}VATE KEY-----"),
    ("private-key", "-----BEGIN PGP PRI{}VATE KEY BLOCK-----\n\n{b64}\n=abcd\n-----END PGP PRI{}VATE KEY BLOCK-----"),
    ("private-key", "AGE-SECRET-KEY-1{u58}"),
    ("github-token", "ghp_{a36}"),
    ("github-token", "gho_{a36}"),
    ("github-token", "ghu_{a36}"),
    ("github-token", "ghs_{a36}"),
    ("github-token", "ghr_{a76}"),
    ("github-token", "ghs_{d6}_eyJ{a30}.eyJ{a60}.{w86}"),
    ("github-token", "github_pat_{a22}_{a59}"),
    ("gitlab-token", "glpat-{w20}"),
    ("gitlab-token", "glpat-{w40}.{l2}{l7}"),
    ("gitlab-token", "glrt-{w20}"),
    ("gitlab-token", "gldt-{w20}"),
    ("gitlab-token", "glptt-{h40}"),
    ("gitlab-token", "glcbt-{a2}_{w20}"),
    ("gitlab-token", "gloas-{h64}"),
    ("gitlab-token", "GR1348941{w20}"),
    ("bitbucket-token", "ATBB{a32}"),
    ("atlassian-token", "ATATT3{w186}"),
    ("aws-access-key", "AKIA{u16}"),
    ("aws-access-key", "ASIA{u16}"),
    ("aws-bedrock-key", "ABSK{b120}"),
    ("aws-bedrock-key", "bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t{b40}"),
    ("google-api-key", "AIza{w35}"),
    ("google-oauth", "ya29.{w80}"),
    ("google-oauth", "GOCSPX-{w28}"),
    ("azure-secret", "{a3}8Q~{a34}"),
    ("azure-secret", "AccountKey={b86}=="),
    ("azure-secret", "SharedAccessKey={b43}="),
    ("azure-secret", "?sv=2024-05-04&sig={a40}%3D"),
    ("azure-devops-token", "{a76}AZDO{a4}"),
    ("slack-token", "xoxb-{d12}-{d12}-{a24}"),
    ("slack-token", "xoxp-{d12}-{d12}-{d12}-{h32}"),
    ("slack-token", "xapp-1-A{u10}-{d13}-{h64}"),
    ("slack-token", "xoxe.xoxb-1-{u160}"),
    ("slack-webhook", "https://hooks.slack.com/services/T{u8}/B{u8}/{a24}"),
    ("teams-webhook", "https://acme.webhook.office.com/webhookb2/{h36}@{h36}/IncomingWebhook/{h32}/{h36}"),
    ("discord-webhook", "https://discord.com/api/webhooks/{d18}/{w68}"),
    ("discord-token", "discord M{a23}.{a6}.{w27}"),
    ("telegram-token", "{d10}:AA{a33}"),
    ("stripe-key", "sk_live_{a24}"),
    ("stripe-key", "rk_test_{a24}"),
    ("stripe-key", "whsec_{a32}"),
    ("square-token", "sq0atp-{w22}"),
    ("square-token", "EAAA{w60}"),
    ("shopify-token", "shpat_{h32}"),
    ("npm-token", "npm_{a36}"),
    ("pypi-token", "pypi-AgEIcHlwaS5vcmc{w80}"),
    ("rubygems-token", "rubygems_{h48}"),
    ("crates-token", "cio{a32}"),
    ("nuget-key", "oy2{l43}"),
    ("docker-token", "dckr_pat_{w27}"),
    ("anthropic-key", "sk-ant-api03-{w93}AA"),
    ("openai-key", "sk-proj-{w74}T3BlbkFJ{w74}"),
    ("openai-key", "sk-{a20}T3BlbkFJ{a20}"),
    ("openai-key", "sk-or-v1-{h64}"),
    ("hugging-face-token", "hf_{a34}"),
    ("perplexity-key", "pplx-{a48}"),
    ("groq-key", "gsk_{a52}"),
    ("xai-key", "xai-{a80}"),
    ("replicate-token", "r8_{a37}"),
    ("twilio-key", "SK{h32}"),
    ("sendgrid-key", "SG.{w22}.{w43}"),
    ("mailgun-key", "key-{h32}"),
    ("mailchimp-key", "{h32}-us12"),
    ("digitalocean-token", "dop_v1_{h64}"),
    ("heroku-key", "HRKU-AA{w58}"),
    ("fly-token", "fo1_{w43}"),
    ("fly-token", "fm2_{b120}"),
    ("cloudflare-key", "v1.0-{h24}-{h146}"),
    ("supabase-key", "sbp_{h40}"),
    ("planetscale-token", "pscale_tkn_{w43}"),
    ("vault-token", "hvs.{w95}"),
    ("terraform-token", "{a14}.atlasv1.{w67}"),
    ("pulumi-token", "pul-{h40}"),
    ("databricks-token", "dapi{h32}"),
    ("doppler-token", "dp.pt.{a43}"),
    ("grafana-token", "glsa_{a32}_{h8}"),
    ("newrelic-key", "NRAK-{u27}"),
    ("sentry-token", "sntryu_{h64}"),
    ("dynatrace-token", "dt0c01.{u24}.{u64}"),
    ("linear-key", "lin_api_{a40}"),
    ("notion-token", "ntn_{d11}{a35}"),
    ("postman-key", "PMAK-{h24}-{h34}"),
    ("figma-token", "figd_{w40}"),
    ("airtable-token", "pat{a14}.{h64}"),
    ("sourcegraph-token", "sgp_{h40}"),
    ("artifactory-key", "AKCp{a69}"),
    ("openshift-token", "sha256~{w43}"),
    ("onepassword-token", "ops_eyJ{a260}"),
    ("facebook-token", "EAAM{a120}"),
    ("jwt", "eyJ{a20}.eyJ{a60}.{w43}"),
    ("url-password", "postgres://app:{a16}@db.internal:5432/x"),
];

/// Forms recognized only by their context.
const CONTEXTS: [(&str, &str); 12] = [
    ("authorization", "Authorization: Bearer {w40}"),
    ("authorization", "curl -H 'Authorization: Basic {b40}'"),
    ("password", "password = \"{a12}\""),
    ("password", "DB_PASSWORD={w14}"),
    ("password", "mysql --password={a12} -e x"),
    ("password", "curl -u admin:{a12} https://x"),
    ("password", "Server=db;User Id=app;Password={a10}8;"),
    ("assigned-secret", "AWS_SECRET_ACCESS_KEY={b40}"),
    ("assigned-secret", "\"client_secret\": \"{a32}\""),
    ("assigned-secret", "api_key: '{h32}'"),
    ("assigned-secret", "TWILIO_AUTH_TOKEN={h32}"),
    ("email", "{a6}@acme.io"),
];

/// A deterministic generator: the same secrets in every run, different ones for each `seed`.
fn made(form: &str, seed: u64) -> (String, Vec<String>) {
    let mut state = seed;
    let mut next = move |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit
    };
    let (mut text, mut parts) = (String::new(), Vec::new());
    let mut rest = form;
    while let Some((before, inner)) = rest.split_once('{') {
        let (class, after) = inner.split_once('}').expect("a form is closed");
        text.push_str(before);
        rest = after;
        let Some((class, count)) = class.split_at_checked(1).filter(|(class, _)| !class.is_empty()) else { continue };
        let alphabet: &[u8] = match class {
            "a" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
            "l" => b"abcdefghijklmnopqrstuvwxyz0123456789",
            "h" => b"0123456789abcdef",
            "u" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
            "d" => b"0123456789",
            "b" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
            _ => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-",
        };
        let mut part: String =
            (0..count.parse::<usize>().expect("a count")).map(|_| char::from(alphabet[next(alphabet.len())])).collect();
        // `\b` does not match after a final `-`, and real secrets do not end with one.
        if part.ends_with(['-', '_', '+', '/']) {
            part.pop();
            part.push('x');
        }
        text.push_str(&part);
        parts.push(part);
    }
    (text + rest, parts)
}

fn kinds_of(text: &str) -> (String, Vec<String>) {
    let mut found = Vec::new();
    let clean = Redactor::default().text(text, &mut found);
    (clean, found.into_iter().map(|redaction| redaction.kind).collect())
}

#[test]
fn every_form_is_redacted_in_any_position() {
    const PLACES: [&str; 8] = [
        "{}",
        "I used {} for it.",
        "`{}`",
        "{\"text\": \"{}\"}",
        "export X={}\n",
        "| {} | a table |",
        "curl 'https://x.example/?t={}'",
        "<b>{}</b>, and so on",
    ];
    for (kind, form) in FORMS {
        for seed in 0..25 {
            let (secret, parts) = made(form, seed);
            for place in PLACES {
                let text = place.replacen("{}", &secret, 1).replace("{}", &secret);
                let (clean, kinds) = kinds_of(&text);
                let leaked = parts.iter().filter(|part| part.len() >= 16).find(|part| clean.contains(part.as_str()));
                assert!(leaked.is_none(), "{kind}: {text} became {clean}");
                assert!(!kinds.is_empty(), "{kind}: {text}");
                if place == "{}" {
                    assert!(kinds.iter().any(|found| found == kind), "{kind}: {text} became {clean}");
                }
            }
        }
    }
}

#[test]
fn context_identifies_a_secret() {
    for (kind, form) in CONTEXTS {
        for seed in 0..25 {
            let (text, parts) = made(form, seed);
            let (clean, kinds) = kinds_of(&text);
            assert_eq!(kinds, [kind], "{text} became {clean}");
            assert!(!parts.iter().any(|part| clean.contains(part)), "{text} became {clean}");
        }
    }
}

#[test]
fn every_rule_has_a_source_and_a_form_with_an_anchor() {
    let made: Vec<(&str, String)> =
        FORMS.iter().chain(&CONTEXTS).map(|(kind, form)| (*kind, made(form, 3).0)).collect();
    for Rule { kind, source, anchors, .. } in &RULES {
        assert!(!source.is_empty(), "{kind}");
        assert!(anchors.iter().all(|anchor| **anchor == anchor.to_lowercase()), "{kind}");
    }
    for rule in &RULES {
        let regex = rule.regex().expect(rule.kind);
        let found = made.iter().any(|(kind, text)| {
            *kind == rule.kind
                && regex.is_match(text)
                && rule.anchors.iter().any(|anchor| text.to_lowercase().contains(anchor))
        });
        assert!(found, "no form for a rule of {} ({})", rule.kind, rule.source);
        let mut matches = made.iter().filter(|(_, text)| regex.is_match(text));
        assert!(matches.all(|(_, text)| rule.may_match(text)), "{} ({}) misses a form", rule.kind, rule.source);
    }
}
