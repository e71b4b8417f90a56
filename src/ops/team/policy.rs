//! How a command, a path, an address or a tool is judged, and by which rule.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::Path;

use super::trust;
use crate::env::Env;
use crate::model::{Access, Slug, Tier, host_name, list};
use crate::ops::Project;
use crate::policy::{Permissions, Ruling, always_rules, commands_in};
use crate::pool::PermissionJudge;
use crate::tools::Tool;

/// The answer to something that an agent may ask for.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Judged {
    pub(crate) what: String,
    #[serde(rename = "as")]
    pub(crate) kind: &'static str,
    /// The words of each command that the line runs, as far as they are known; `?` stands for others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) commands: Vec<Vec<String>>,
    /// Where a path leads, from the project's root; `None`: outside of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
    pub(crate) agent: Slug,
    pub(crate) tier: Tier,
    pub(crate) permissions: &'static str,
    pub(crate) answer: &'static str,
    /// `None`: no rule is about it, and the run's mode decides.
    pub(crate) rule: Option<String>,
    /// Where the rule stands: a file and line, or `built in`.
    pub(crate) source: Option<String>,
}

/// What stands behind a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// A command line
    Command,
    /// A file that is written
    Path,
    /// An address that is reached
    Address,
    /// A tool, by its name
    Tool,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Path => "path",
            Self::Address => "address",
            Self::Tool => "tool",
        }
    }

    /// What a text most likely is.
    pub(crate) fn of(what: &str, project: &Project) -> Self {
        // A command may name an address.
        let is_word = !what.contains(char::is_whitespace);
        let is_there = project.folder.root.join(what).exists();
        match what {
            _ if is_word && (what.contains("://") || !is_there && is_host(what)) => Self::Address,
            _ if is_word && (is_there || what.contains(['/', '.'])) => Self::Path,
            _ => Self::Command,
        }
    }
}

/// Whether a word looks like a host, with or without a port, and not like a file.
fn is_host(word: &str) -> bool {
    // Those that no file ends in: `.md` and `.rs` are countries.
    const DOMAINS: [&str; 12] =
        ["com", "org", "net", "io", "dev", "ai", "app", "cloud", "edu", "gov", "example", "internal"];
    let (name, port) = word.rsplit_once(':').unwrap_or((word, ""));
    let has_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let Some(name) = host_name(if has_port { name } else { word }) else { return false };
    let is_address = name.starts_with('[') || name.parse::<Ipv4Addr>().is_ok();
    let ends_like_one = name.rsplit_once('.').is_some_and(|(_, end)| DOMAINS.contains(&end));
    has_port || is_address || ends_like_one || name == "localhost"
}

/// Judges as a run in this mode does for an agent that may change files. `directory` is where a relative path starts.
pub(crate) fn judge(
    env: &Env,
    project: &Project,
    (agent, tier): (&Slug, Tier),
    (kind, what): (Kind, &str),
    mode: Permissions,
    directory: &Path,
) -> Judged {
    // Rules name hosts alone, so people try them.
    let address = (kind == Kind::Address && !what.contains("://")).then(|| format!("https://{what}"));
    let what = address.as_deref().unwrap_or(what);
    let (access, tool) = match kind {
        Kind::Command => (Access::Shell, "bash"),
        Kind::Path => (Access::Write, "edit"),
        Kind::Address => (Access::Network, "web_fetch"),
        Kind::Tool if Tool::ALL.iter().any(|tool| tool.spec().name == what) => (Access::Own, what),
        Kind::Tool => (Access::Other, what),
    };
    let root = project.folder.root.display().to_string();
    let (rules, approved_files) = (project.policy(), trust::approved_files(env, project));
    let judge = PermissionJudge {
        rules: &rules,
        mode,
        agent,
        tier,
        reads_only: false,
        project: &root,
        approved_files: &approved_files,
        attached: &BTreeSet::new(),
    };
    let placed = directory.join(what).display().to_string();
    let is_elsewhere = kind == Kind::Path && directory != project.folder.root;
    let detail = if is_elsewhere { &placed } else { what };
    let asked = judge.asked(access, tool, detail);
    let judged = |answer, rule: Option<String>, source: Option<String>| Judged {
        what: what.to_owned(),
        kind: kind.name(),
        commands: if kind == Kind::Command { commands_in(what) } else { Vec::new() },
        path: asked.written().map(str::to_owned),
        agent: agent.clone(),
        tier,
        permissions: mode.name(),
        answer,
        rule,
        source,
    };
    if let Some(reason) = judge.never(&asked) {
        return judged("deny", Some(reason), Some("built in".to_owned()));
    }
    let (ruling, by_rule) = judge.ruling(&asked);
    if ruling == Ruling::Ask && by_rule.is_none() {
        let kept = project.kept_rules();
        let always = always_rules(access, detail, asked.written(), &root);
        if let Some(always) = always.filter(|rules| rules.iter().all(|rule| kept.contains(&rule.to_string()))) {
            return judged("allow", Some(format!("kept: {}", list(always))), Some(project.kept_name()));
        }
    }
    let answer = match ruling {
        Ruling::Allow => "allow",
        Ruling::Ask => "ask",
        Ruling::Deny(_) => "deny",
    };
    let (rule, source) = by_rule.map(|answered| (answered.rule, answered.source)).unzip();
    judged(answer, rule, source)
}
