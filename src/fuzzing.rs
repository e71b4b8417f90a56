//! The parsers, the router and the rules for secrets, as `tests/fuzz` reaches them. No part of what squad offers to others.

use std::sync::LazyLock;

use crate::model::{Evidence, Member, Plan, PlanKind, Problem, Team};
use crate::parse::{Files, team};
use crate::policy::Redactor;
use crate::route::{Request, RouteOptions, Router};

/// What there is to feed.
pub const PARSERS: [&str; 12] = [
    "team",
    "routing",
    "routing-json",
    "charter",
    "decisions",
    "decision",
    "skill",
    "ceremonies",
    "registry",
    "identity",
    "message",
    "secrets",
];

/// A roster for texts that name members.
const TEAM: &str = include_str!("../fixtures/forms/team.md");

/// A routing file that points to `work.json`.
const ROUTING: &str = include_str!("../fixtures/forms/routing.md");

/// Put together here, so that no scanner takes it for a leak.
static SECRETS: LazyLock<String> = LazyLock::new(|| {
    let (token, key) = ("a1B2".repeat(9), "PRIVATE KEY");
    format!(
        "-----BEGIN {key}-----\n{token}\n-----END {key}-----\ntoken: ghp_{token} by ann@acme.io\nAPI_KEY=\"{token}\"\n\
         Authorization: Bearer {token}\npostgres://app:s3cr3t@db/x git@host:a/b password = kJ8#mQ2$ sk-ant-{token}\n"
    )
});

/// The team that messages are routed in.
const ROSTER: &str = include_str!("../fixtures/routing/team.md");
const ROWS: &str = include_str!("../fixtures/routing/routing.md");

/// The text that mutations of a parser's input begin with.
pub fn seed(parser: &str) -> &'static str {
    match parser {
        "team" => TEAM,
        "routing" => ROUTING,
        "routing-json" => include_str!("../fixtures/forms/work.json"),
        "charter" => include_str!("../fixtures/forms/charter.md"),
        "decisions" => include_str!("../fixtures/forms/decisions.md"),
        "skill" => include_str!("../fixtures/forms/skill.md"),
        "ceremonies" => include_str!("../fixtures/forms/ceremonies.md"),
        "registry" => include_str!("../fixtures/forms/registry.json"),
        "identity" => include_str!("../fixtures/forms/now.md"),
        "message" => include_str!("../fixtures/routing/message.md"),
        "secrets" => &SECRETS,
        _ => include_str!("../fixtures/forms/decision.md"),
    }
}

/// Feeds a text to a parser; an error says which promise was broken.
pub fn feed(parser: &str, text: &str) -> Result<(), String> {
    match parser {
        "message" => return route(text),
        "secrets" => return redact(text),
        _ => {}
    }
    let files = files(parser, text);
    let (read, problems) = team(&files);
    for problem in &problems {
        inside(&files, problem)?;
    }
    if team(&files) != (read, problems) {
        return Err("read differently the second time".to_owned());
    }
    Ok(())
}

fn files(parser: &str, text: &str) -> Files {
    let paths: &[&str] = match parser {
        "team" => &["team.md"],
        "routing" => &["routing.md"],
        "routing-json" => &["work.json"],
        "charter" => &["agents/ilse/charter.md", "roles/diver.md"],
        "decisions" => &["decisions.md", "decisions-archive.md", "decisions/inbox/note.md"],
        "skill" => &["skills/tunnels/SKILL.md"],
        "ceremonies" => &["ceremonies.md"],
        "registry" => &["casting/registry.json"],
        "identity" => &["identity/now.md", "identity/wisdom.md"],
        _ => &["decisions/2026/03/01-paint-0a1b2c3d4e5f.md"],
    };
    let mut files = Files { folder: ".squad".to_owned(), ..Files::default() };
    for (path, text) in [("team.md", TEAM), ("routing.md", ROUTING)] {
        files.texts.insert(path.to_owned(), text.to_owned());
    }
    for path in paths {
        files.texts.insert((*path).to_owned(), text.to_owned());
    }
    files
}

fn inside(files: &Files, problem: &Problem) -> Result<(), String> {
    let path = problem.file.strip_prefix(".squad/").unwrap_or(&problem.file);
    let text = files.text(path).unwrap_or_default().replace("\r\n", "\n").replace('\r', "\n");
    let lines = text.lines().count().max(1);
    let known = files.texts.contains_key(path);
    if known && (1..=lines).contains(&problem.line) { Ok(()) } else { Err(format!("outside the file: {problem:?}")) }
}

static ROUTED: LazyLock<Team> = LazyLock::new(|| {
    let texts = [("team.md", ROSTER), ("routing.md", ROWS)].map(|(path, text)| (path.to_owned(), text.to_owned()));
    team(&Files { folder: ".squad".to_owned(), texts: texts.into() }).0
});

static ROUTER: LazyLock<Router<'static>> = LazyLock::new(|| Router::new(&ROUTED, &[]));

fn route(message: &str) -> Result<(), String> {
    let plan = ROUTER.plan(&Request::new(message), &RouteOptions::default());
    let starts = |member: &&Member| plan.agents.iter().chain(&plan.reviewer).any(|slug| member.slug == *slug);
    if ROUTED.startable().filter(starts).count() != plan.agents.len() + usize::from(plan.reviewer.is_some()) {
        return Err(format!("names somebody who cannot be started, or somebody twice: {plan:?}"));
    }
    if (plan.kind == PlanKind::Agents) == plan.agents.is_empty() || !(0.0..=1.0).contains(&plan.confidence) {
        return Err(format!("contradicts itself: {plan:?}"));
    }
    plan.evidence.iter().try_for_each(|evidence| holds(message, evidence))?;
    let again: Plan = ROUTER.plan(&Request::new(message), &RouteOptions::default());
    if again == plan { Ok(()) } else { Err("planned differently the second time".to_owned()) }
}

fn redact(text: &str) -> Result<(), String> {
    let mut found = Vec::new();
    let clean = Redactor::default().text(text, &mut found);
    if found.is_empty() && clean != text {
        return Err("changed without a word".to_owned());
    }
    let mut again = Vec::new();
    if Redactor::default().text(&clean, &mut again) == clean && again.is_empty() {
        return Ok(());
    }
    Err(format!("not clean: {again:?} in {clean:?}"))
}

/// Evidence quotes words that the message has, and lines that the team's files have.
fn holds(message: &str, evidence: &Evidence) -> Result<(), String> {
    let of_a_file = evidence.source.rsplit_once(':').map(|(file, line)| (file, line.parse::<usize>().unwrap_or(0)));
    let (is_there, quotes) = match of_a_file {
        Some((".squad/team.md", line)) => ((1..=ROSTER.lines().count()).contains(&line), true),
        Some((".squad/routing.md", line)) => ((1..=ROWS.lines().count()).contains(&line), true),
        Some(_) => (false, false),
        None => (evidence.source == "message", false),
    };
    let mut quoted = evidence.why.split('`').skip(1).step_by(2).filter(|_| quotes);
    if is_there && evidence.weight.is_finite() && quoted.all(|word| !word.is_empty() && message.contains(word)) {
        return Ok(());
    }
    Err(format!("evidence of nothing: {evidence:?}"))
}
