//! The list of known secret formats.
//!
//! Each rule names the source of its format: a rule of gitleaks (its default configuration of July 2026, commit
//! b58d3f1), a detector of trufflehog (August 2026, commit 3ab759f), or the vendor's own page. Patterns are as loose as
//! possible without matching ordinary text: if a vendor adds a character, squad must not leak the secret.

use std::ops::Range;
use std::sync::OnceLock;

use regex::Regex;

use super::checks::{is_authorization, is_email, is_mixed, is_password, is_random_value, is_secret_value};

pub(super) struct Rule {
    pub(super) kind: &'static str,
    /// Where the format is described.
    #[cfg_attr(not(test), expect(dead_code, reason = "documents the list"))]
    pub(super) source: &'static str,
    /// At least one occurs in every match, ignoring case. In lower case.
    pub(super) anchors: &'static [&'static str],
    /// The first group is the secret if there is one, else the whole match.
    pub(super) pattern: &'static str,
    /// Checks a match of the pattern.
    pub(super) accept: fn(&str, Range<usize>) -> bool,
    /// Every match has a colon or an equals sign.
    is_assignment: bool,
    compiled: OnceLock<Option<Regex>>,
}

impl Rule {
    const fn assigned(mut self) -> Self {
        self.is_assignment = true;
        self
    }

    /// `false`: nothing in the text can match, although an anchor occurs. Compiling a pattern takes longer than writing an
    /// entry, and names such as `input_tokens` are in every run's.
    pub(super) fn may_match(&self, text: &str) -> bool {
        !self.is_assignment || text.contains([':', '='])
    }

    pub(super) fn regex(&self) -> Option<&Regex> {
        // The tests run every rule, so they would find a pattern that does not compile.
        self.compiled.get_or_init(|| Regex::new(self.pattern).ok()).as_ref()
    }
}

const fn rule(
    kind: &'static str,
    source: &'static str,
    anchors: &'static [&'static str],
    pattern: &'static str,
) -> Rule {
    checked(kind, source, anchors, pattern, |_, _| true)
}

const fn checked(
    kind: &'static str,
    source: &'static str,
    anchors: &'static [&'static str],
    pattern: &'static str,
    accept: fn(&str, Range<usize>) -> bool,
) -> Rule {
    Rule { kind, source, anchors, pattern, accept, is_assignment: false, compiled: OnceLock::new() }
}

/// In order: unambiguous formats first, those that depend on context last.
pub(super) static RULES: [Rule; 77] = [
    rule(
        "private-key",
        "gitleaks private-key",
        &["private key"],
        // Up to the end marker, or as far as it looks like a key: prose that quotes the first line continues after it.
        r#"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:(?:[^-]|-{1,4}[^-])*-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|(?:\\+[nr]|[\s"'`+>|#*,]|[A-Z][A-Za-z-]+: [^\n]*\n)*[A-Za-z0-9+/=]{8,}(?:(?:\\+[nr]|[\s"'`+>|#*,])+[A-Za-z0-9+/=]{16,})*(?:(?:\\+[nr]|[\s"'`+>|#*,])+[A-Za-z0-9+/=]+\z)?)"#,
    ),
    rule("private-key", "gitleaks age-secret-key", &["age-secret-key-1"], r"AGE-SECRET-KEY-1[A-Z0-9]{58}"),
    // The newest installation tokens have parts like a JWT.
    rule(
        "github-token",
        "gitleaks github-pat, github-oauth, github-app-token, github-refresh-token, github-fine-grained-pat",
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
        r"\b(?:gh[pousr]_[A-Za-z0-9_-]{36,}(?:\.[A-Za-z0-9_-]+)*|github_pat_[A-Za-z0-9_]{22,})",
    ),
    rule(
        "gitlab-token",
        "gitleaks gitlab-pat, gitlab-ptt, gitlab-cicd-job-token and the like",
        &[
            "glpat-", "glrt-", "gldt-", "glptt-", "glcbt-", "gloas-", "glsoat-", "glft-", "glffct-", "glimt-",
            "glagent-",
        ],
        r"\bgl(?:pat|rt|dt|ptt|cbt|oas|soat|ft|ffct|imt|agent)-[A-Za-z0-9_-]{20,}(?:\.[a-z0-9]{9})?",
    ),
    rule("gitlab-token", "gitleaks gitlab-rrt", &["gr1348941"], r"\bGR1348941[A-Za-z0-9_-]{20}"),
    rule("bitbucket-token", "trufflehog bitbucketapppassword", &["atbb"], r"\bATBB[A-Za-z0-9_=.-]{28,}"),
    rule("atlassian-token", "gitleaks atlassian-api-token", &["atatt3", "atctt3"], r"\bAT[AC]TT3[A-Za-z0-9_=-]{60,}"),
    rule(
        "aws-access-key",
        "gitleaks aws-access-token",
        &["akia", "asia", "abia", "acca"],
        r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b",
    ),
    rule(
        "aws-bedrock-key",
        "gitleaks aws-amazon-bedrock-api-key-long-lived",
        &["absk"],
        r"\bABSK[A-Za-z0-9+/]{80,}={0,2}",
    ),
    rule(
        "aws-bedrock-key",
        "gitleaks aws-amazon-bedrock-api-key-short-lived",
        &["bedrock-api-key-"],
        r"\bbedrock-api-key-[A-Za-z0-9+/=]{20,}",
    ),
    rule("google-api-key", "gitleaks gcp-api-key", &["aiza"], r"\bAIza[0-9A-Za-z_-]{35}"),
    rule(
        "google-oauth",
        "trufflehog googleoauth2",
        &["ya29.", "gocspx-"],
        r"\b(?:ya29\.[0-9A-Za-z_-]{20,}|GOCSPX-[0-9A-Za-z_-]{28})",
    ),
    rule("azure-secret", "gitleaks azure-ad-client-secret", &["q~"], r"\b[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}"),
    rule(
        "azure-secret",
        "https://learn.microsoft.com/azure/storage/common/storage-configure-connection-string",
        &["accountkey=", "sharedaccesskey="],
        r"(?i)(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/=]{40,})",
    ),
    rule(
        "azure-secret",
        "https://learn.microsoft.com/azure/storage/common/storage-sas-overview",
        &["sig="],
        r"[?&]sig=([A-Za-z0-9%+/=_-]{40,})",
    ),
    rule(
        "azure-devops-token",
        "https://learn.microsoft.com/azure/devops/organizations/accounts/use-personal-access-tokens-to-authenticate",
        &["azdo"],
        r"\b[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}\b",
    ),
    rule(
        "slack-token",
        "gitleaks slack-bot-token, slack-user-token, slack-app-token and the like",
        &["xox", "xapp-"],
        r"\b(?:xox[abceoprsd](?:\.xox[bp])?-[A-Za-z0-9-]{10,}|xapp-\d-[A-Za-z0-9]+-\d+-[A-Za-z0-9]+)",
    ),
    rule(
        "slack-webhook",
        "gitleaks slack-webhook-url",
        &["hooks.slack.com"],
        r"(?:https://)?hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/_-]{20,}",
    ),
    rule(
        "teams-webhook",
        "gitleaks microsoft-teams-webhook",
        &["webhook.office.com"],
        r"(?:https://)?[a-z0-9]+\.webhook\.office\.com/webhookb2/[A-Za-z0-9@/-]{60,}",
    ),
    rule(
        "discord-webhook",
        "trufflehog discordwebhook",
        &["api/webhooks/"],
        r"(?:https://)?discord(?:app)?\.com/api/webhooks/\d{16,20}/[A-Za-z0-9_-]{40,}",
    ),
    rule(
        "discord-token",
        "trufflehog discordbottoken",
        &["discord", "bot"],
        r"\b[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",
    ),
    rule("telegram-token", "gitleaks telegram-bot-api-token", &[":aa"], r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}\b"),
    rule(
        "stripe-key",
        "gitleaks stripe-access-token",
        &["_live_", "_test_", "_prod_"],
        r"\b(?:sk|rk|pk)_(?:live|test|prod)_[0-9A-Za-z]{10,}",
    ),
    rule("stripe-key", "https://docs.stripe.com/webhooks/signature", &["whsec_"], r"\bwhsec_[0-9A-Za-z+/=]{24,}"),
    rule(
        "square-token",
        "gitleaks square-access-token; trufflehog squareapp",
        &["sq0atp-", "sq0csp-", "eaaa"],
        r"\b(?:EAAA[A-Za-z0-9_-]{56,60}|sq0(?:atp|csp)-[A-Za-z0-9_-]{22,})",
    ),
    rule(
        "shopify-token",
        "gitleaks shopify-access-token",
        &["shpat_", "shpca_", "shppa_", "shpss_"],
        r"\bshp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}",
    ),
    rule("npm-token", "gitleaks npm-access-token", &["npm_"], r"\bnpm_[A-Za-z0-9]{36}"),
    rule("pypi-token", "gitleaks pypi-upload-token", &["pypi-ageic"], r"\bpypi-AgEIc[A-Za-z0-9_-]{50,}"),
    rule("rubygems-token", "gitleaks rubygems-api-token", &["rubygems_"], r"\brubygems_[a-f0-9]{48}"),
    rule("crates-token", "crates.io's src/util/token.rs", &["cio"], r"\bcio[A-Za-z0-9]{32}\b"),
    rule("nuget-key", "trufflehog nugetapikey", &["oy2"], r"\boy2[a-z0-9]{43}\b"),
    rule("docker-token", "trufflehog dockerhub", &["dckr_"], r"\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{27,}"),
    rule(
        "anthropic-key",
        "gitleaks anthropic-api-key, anthropic-admin-api-key",
        &["sk-ant-"],
        r"\bsk-ant-[A-Za-z0-9_-]{20,}",
    ),
    checked(
        "openai-key",
        "gitleaks openai-api-key",
        &["sk-"],
        r"\bsk-(?:proj-|svcacct-|admin-|or-v1-)?[A-Za-z0-9_-]{20,}",
        is_mixed,
    ),
    rule(
        "hugging-face-token",
        "gitleaks huggingface-access-token",
        &["hf_", "api_org_"],
        r"\b(?:hf|api_org)_[A-Za-z0-9]{34,}",
    ),
    rule("perplexity-key", "gitleaks perplexity-api-key", &["pplx-"], r"\bpplx-[A-Za-z0-9]{48}"),
    rule("groq-key", "trufflehog groq", &["gsk_"], r"\bgsk_[A-Za-z0-9]{48,}"),
    rule("xai-key", "trufflehog xai", &["xai-"], r"\bxai-[A-Za-z0-9_]{70,}"),
    rule("replicate-token", "trufflehog replicate", &["r8_"], r"\br8_[A-Za-z0-9_-]{37,}"),
    // With its first digit: `task` is in every other text.
    rule(
        "twilio-key",
        "gitleaks twilio-api-key",
        &[
            "sk0", "sk1", "sk2", "sk3", "sk4", "sk5", "sk6", "sk7", "sk8", "sk9", "ska", "skb", "skc", "skd", "ske",
            "skf",
        ],
        r"\bSK[0-9a-f]{32}\b",
    ),
    rule("sendgrid-key", "gitleaks sendgrid-api-token", &["sg."], r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    rule("mailgun-key", "gitleaks mailgun-private-api-token", &["key-"], r"\bkey-[a-f0-9]{32}\b"),
    rule("mailchimp-key", "gitleaks mailchimp-api-key", &["-us"], r"\b[a-f0-9]{32}-us\d{1,2}\b"),
    rule(
        "digitalocean-token",
        "gitleaks digitalocean-pat",
        &["doo_v1_", "dop_v1_", "dor_v1_"],
        r"\bdo[opr]_v1_[a-f0-9]{64}",
    ),
    rule("heroku-key", "gitleaks heroku-api-key-v2", &["hrku-"], r"\bHRKU-[A-Za-z0-9_-]{36,}"),
    rule(
        "fly-token",
        "gitleaks flyio-access-token",
        &["fo1_", "fm1a_", "fm1r_", "fm2_"],
        r"\b(?:fo1_[A-Za-z0-9_-]{43}|fm(?:1[ar]|2)_[A-Za-z0-9+/]{100,}={0,3})",
    ),
    rule("cloudflare-key", "gitleaks cloudflare-origin-ca-key", &["v1.0-"], r"\bv1\.0-[a-f0-9]{24}-[a-f0-9]{146}"),
    rule(
        "supabase-key",
        "trufflehog supabasetoken; https://supabase.com/docs/guides/api/api-keys",
        &["sbp_", "sb_secret_"],
        r"\b(?:sbp_[a-f0-9]{40}|sb_secret_[A-Za-z0-9_-]{20,})",
    ),
    rule(
        "planetscale-token",
        "gitleaks planetscale-api-token",
        &["pscale_"],
        r"\bpscale_(?:tkn|oauth|pw)_[A-Za-z0-9_=.-]{32,}",
    ),
    rule(
        "vault-token",
        "gitleaks vault-service-token, vault-batch-token",
        &["hvs.", "hvb."],
        r"\bhv[sb]\.[A-Za-z0-9_-]{24,}",
    ),
    rule(
        "terraform-token",
        "gitleaks hashicorp-tf-api-token",
        &[".atlasv1."],
        r"\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}",
    ),
    rule("pulumi-token", "gitleaks pulumi-api-token", &["pul-"], r"\bpul-[a-f0-9]{40}"),
    rule("databricks-token", "gitleaks databricks-api-token", &["dapi"], r"\bdapi[a-f0-9]{32}"),
    rule(
        "doppler-token",
        "gitleaks doppler-api-token",
        &["dp.pt.", "dp.st.", "dp.ct.", "dp.sa."],
        r"\bdp\.(?:pt|st|ct|sa)\.(?:[a-z0-9_-]+\.)?[A-Za-z0-9]{40,}",
    ),
    rule(
        "grafana-token",
        "gitleaks grafana-cloud-api-token, grafana-service-account-token",
        &["glc_", "glsa_"],
        r"\b(?:glc_[A-Za-z0-9+/]{32,}={0,3}|glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8})",
    ),
    rule("newrelic-key", "gitleaks new-relic-user-api-key", &["nrak-"], r"\bNRAK-[A-Za-z0-9]{27}"),
    rule(
        "sentry-token",
        "gitleaks sentry-org-token, sentry-user-token",
        &["sntrys_", "sntryu_"],
        r"\bsntry(?:s_[A-Za-z0-9+/=_-]{40,}|u_[a-f0-9]{64})",
    ),
    rule(
        "dynatrace-token",
        "gitleaks dynatrace-api-token",
        &["dt0c01."],
        r"\bdt0c01\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}",
    ),
    rule("linear-key", "gitleaks linear-api-key", &["lin_api_"], r"\blin_api_[A-Za-z0-9]{40}"),
    rule("notion-token", "gitleaks notion-api-token", &["ntn_"], r"\bntn_[0-9]{11}[A-Za-z0-9]{35}"),
    rule("postman-key", "gitleaks postman-api-token", &["pmak-"], r"\bPMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    rule(
        "figma-token",
        "trufflehog figmapersonalaccesstoken",
        &["figd_", "figp_", "figu_", "figo_"],
        r"\bfig[dpuo][rh]?_[A-Za-z0-9_=-]{36,}",
    ),
    rule("airtable-token", "gitleaks airtable-personnal-access-token", &["pat"], r"\bpat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    rule(
        "sourcegraph-token",
        "gitleaks sourcegraph-access-token",
        &["sgp_"],
        r"\bsgp_(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40}",
    ),
    rule("artifactory-key", "gitleaks artifactory-api-key", &["akcp"], r"\bAKCp[A-Za-z0-9]{69}"),
    rule("openshift-token", "gitleaks openshift-user-token", &["sha256~"], r"\bsha256~[A-Za-z0-9_-]{43}"),
    rule(
        "onepassword-token",
        "gitleaks 1password-service-account-token",
        &["ops_eyj"],
        r"\bops_eyJ[A-Za-z0-9+/_-]{100,}={0,3}",
    ),
    rule("facebook-token", "gitleaks facebook-page-access-token", &["eaam", "eaac"], r"\bEAA[MC][A-Za-z0-9]{100,}"),
    rule("jwt", "gitleaks jwt", &["eyj"], r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}"),
    checked(
        "url-password",
        "https://www.rfc-editor.org/rfc/rfc3986#section-3.2.1",
        &["://"],
        r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@]*:([^\s/@]{3,})@",
        is_secret_value,
    ),
    checked(
        "authorization",
        "https://www.rfc-editor.org/rfc/rfc6750#section-2.1",
        &["bearer", "basic"],
        r"(?i)\b(?:bearer|basic)\s+([A-Za-z0-9._~+/=-]{16,})",
        is_authorization,
    ),
    // A password may be any word. If the syntax leaves no doubt, its value does not matter.
    checked(
        "password",
        "gitleaks hashicorp-tf-password, nuget-config-password",
        &["passw", "passphrase", "pwd"],
        r#"(?i)(?:password|passwd|passphrase|pwd)["'`]?\s*[:=]\s*(?:"([^"\n]{4,})"|'([^'\n]{4,})'|`([^`\n]{4,})`)"#,
        is_password,
    ),
    checked(
        "password",
        "gitleaks hashicorp-tf-password",
        &["passw", "passphrase", "pwd"],
        r#"\b[A-Z0-9_]*(?:PASSWORD|PASSWD|PASSPHRASE|PWD)=([^\s"'`]{4,})"#,
        is_password,
    ),
    checked(
        "password",
        "gitleaks curl-auth-user",
        &["--pass", "-u ", "--user"],
        r#"(?:--(?:password|passwd|passphrase)[= ]|\bcurl\b[^\n]*?\s(?:-u|--user)[= ]+[^\s:]+:)([^\s"'`-][^\s"'`]{3,})"#,
        is_password,
    ),
    checked(
        "password",
        "gitleaks hashicorp-tf-password",
        &["passw", "passphrase", "pwd"],
        r#"(?i)\b(?:password|passwd|passphrase|pwd)\s*[:=]\s*([^\s"'`,;<>(){}]{5,})"#,
        |text, range| text[range.clone()].bytes().any(|b| b.is_ascii_digit()) && is_password(text, range),
    ),
    checked(
        "assigned-secret",
        "gitleaks generic-api-key",
        &["passw", "passphrase", "secret", "token", "key", "credential", "pwd"],
        r#"(?i)(?:passw(?:or)?d|passphrase|passwd|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)["'`]?\s*(?::|=>?|:=)\s*["'`]?([^\s"'`,;<>(){}]{8,})"#,
        is_random_value,
    )
    .assigned(),
    checked(
        "email",
        "https://html.spec.whatwg.org/multipage/input.html#valid-e-mail-address",
        &["@"],
        r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}\b",
        is_email,
    ),
];

#[cfg(test)]
#[path = "secret_patterns_tests.rs"]
mod tests;
