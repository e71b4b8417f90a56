//! Formats answers in Markdown. Pure; every statement names its source.

use crate::model::{DecisionState, Kind, Member, Plan, PlanKind, Slug, Sort, Team, first_line, list, plural, stems};
use crate::ops::decisions::list::ListedDecision;
use crate::ops::ledger::log::RunSummary;
use crate::ops::run::lease::LiveRun;

/// How many decisions or candidates an answer lists.
const MOST: usize = 5;
/// How many characters of a message or text are shown.
const LINE: usize = 100;

pub(super) fn greeting(team: &Team) -> String {
    let agents: Vec<&Member> = team.startable().collect();
    let names = list(agents.iter().map(|member| format!("{} ({})", member.name, member.role)));
    let source = agents.first().map(|member| format!(" ({})", member.source)).unwrap_or_default();
    format!(
        "Hello. This team has {}: {names}{source}.\n\nSay what to do, or ask who handles something, what was \
         decided, or what is going on.",
        plural(agents.len(), "agent")
    )
}

pub(super) fn thanks() -> String {
    "You are welcome.".to_owned()
}

pub(super) fn team(team: &Team) -> String {
    let agents: Vec<&Member> = team.startable().collect();
    let mut lines = vec![format!("The team has {}:\n", plural(agents.len(), "agent"))];
    lines.extend(agents.iter().map(|member| format!("- {}, {} ({})", member.name, member.role, member.source)));
    let others: Vec<String> = team
        .members
        .iter()
        .filter(|member| !member.is_startable())
        .map(|member| format!("- {}, {}: {} ({})", member.name, member.role, why_not(member), member.source))
        .collect();
    if !others.is_empty() {
        lines.push("\nOn the roster, but never started:\n".to_owned());
        lines.extend(others);
    }
    lines.join("\n")
}

fn why_not(member: &Member) -> String {
    match member.kind {
        Kind::Agent => format!("{:?}", member.status).to_lowercase(),
        Kind::Helper => "a built-in helper".to_owned(),
        Kind::Human => "a person".to_owned(),
        Kind::Bot => "works elsewhere".to_owned(),
    }
}

pub(super) fn member(team: &Team, slug: &Slug) -> Option<String> {
    let member = team.member(slug)?;
    let mut text = format!("{} is the team's {} ({})", member.name, member.role, member.source);
    text.push_str(&if member.is_startable() { ".".to_owned() } else { format!(": {}.", why_not(member)) });
    if let (Some(charter), Some(file)) = (team.charters.get(slug), &member.charter) {
        if !charter.expertise.is_empty() {
            text.push_str(&format!("\n\nExpertise: {} ({file}).", charter.expertise.join(", ")));
        }
        let owns: Vec<&str> = charter.owns.lines().filter(|line| !line.trim().is_empty()).collect();
        if !owns.is_empty() {
            text.push_str(&format!("\n\nOwns ({file}):\n\n{}", owns.join("\n")));
        }
    }
    let rules: Vec<String> = team
        .rules
        .iter()
        .filter(|rule| rule.agents.contains(slug))
        .map(|rule| format!("- {} ({})", rule.signal, rule.source))
        .collect();
    if !rules.is_empty() {
        text.push_str(&format!("\n\nGets this work:\n\n{}", rules.join("\n")));
    }
    Some(text)
}

pub(super) fn handler(team: &Team, topic: &str, plan: &Plan) -> String {
    let name = |slug: &Slug| {
        team.member(slug).map_or_else(|| slug.to_string(), |member| format!("{} ({})", member.name, member.role))
    };
    let because = |slug: &Slug| {
        let best = plan.evidence.iter().filter(|evidence| evidence.agent == *slug && evidence.weight > 0.0);
        let best = best.max_by(|a, b| a.weight.total_cmp(&b.weight));
        best.map(|evidence| format!(": {} ({})", evidence.why, evidence.source)).unwrap_or_default()
    };
    let line = |slug: &Slug| format!("- {}{}", name(slug), because(slug));
    if plan.kind == PlanKind::Agents {
        let verb = if plan.agents.len() == 1 { "handles" } else { "handle" };
        let lines: Vec<String> = plan.agents.iter().map(line).collect();
        let reviewer = plan.final_reviewers().map(|slug| format!("\n\n{} reviews it.", name(slug))).collect::<String>();
        return format!("{} {verb} “{topic}”:\n\n{}{reviewer}", list(plan.agents.iter().map(name)), lines.join("\n"));
    }
    let mut candidates: Vec<&Slug> = Vec::new();
    for evidence in plan.evidence.iter().filter(|evidence| evidence.weight > 0.0) {
        if !candidates.contains(&&evidence.agent) {
            candidates.push(&evidence.agent);
        }
    }
    if candidates.is_empty() {
        return format!("Nothing in the team's files says who handles “{topic}”.");
    }
    let lines: Vec<String> = candidates.into_iter().take(MOST).map(line).collect();
    format!("The team's files do not say for sure who handles “{topic}”. The evidence:\n\n{}", lines.join("\n"))
}

/// Current and recent activity; runs are sorted newest first.
pub(super) struct RecentActivity<'a> {
    pub(super) live: &'a [LiveRun],
    pub(super) runs: &'a [RunSummary],
    pub(super) unlanded: usize,
}

pub(super) fn status(activity: &RecentActivity<'_>) -> String {
    let mut lines = Vec::new();
    if activity.live.is_empty() {
        lines.push("Nothing is running.".to_owned());
    } else {
        lines.push("Running now:\n".to_owned());
        lines.extend(activity.live.iter().map(|live| {
            let since = live.started.strftime("%Y-%m-%d %H:%M UTC");
            format!("- {} since {since}: {}", live.run, first_line(&live.message, LINE))
        }));
    }
    lines.push(String::new());
    lines.push(runs(activity.runs));
    if activity.unlanded > 0 {
        let waiting = plural(activity.unlanded, "decision");
        lines.push(format!("\n{waiting} not on the branch yet; `squad decisions list` shows them."));
    }
    lines.join("\n")
}

pub(super) fn runs(runs: &[RunSummary]) -> String {
    if runs.is_empty() {
        return "No run is recorded yet.".to_owned();
    }
    let mut lines = vec!["The last runs:\n".to_owned()];
    lines.extend(runs.iter().map(|run| {
        let agents = if run.agents.is_empty() { "nobody".to_owned() } else { list(run.agents.keys()) };
        let status = run.status.replace('_', " ");
        format!("- {} {status}, {agents}: {}", run.run, first_line(&run.message, LINE))
    }));
    lines.join("\n")
}

/// The decisions about a topic, best match first; without a topic, the newest.
pub(super) fn decisions(topic: &str, all: &[ListedDecision]) -> String {
    let wanted = stems(topic);
    let found = about(&wanted, all);
    let total = plural(all.len(), "decision");
    if found.is_empty() {
        return match (wanted.is_empty(), all.is_empty()) {
            (_, true) => "No decision is recorded yet.".to_owned(),
            _ => format!("None of the team's {total} mentions “{topic}”."),
        };
    }
    let head = match (wanted.is_empty(), found.len()) {
        (true, _) => format!("The team has {total}. The newest:\n"),
        (false, count) => format!(
            "{} “{topic}”:\n",
            if count == 1 {
                "1 decision mentions".to_owned()
            } else {
                format!("{} mention", plural(count, "decision"))
            }
        ),
    };
    let mut lines = vec![head];
    lines.extend(found.iter().take(MOST).map(|decision| one_decision(decision)));
    if found.len() > MOST {
        lines.push(format!("\n{} more; `squad decisions list` shows them all.", found.len() - MOST));
    }
    lines.join("\n")
}

/// The decisions with the most words of a topic, if that is at least half of them.
fn about<'a>(wanted: &[String], all: &'a [ListedDecision]) -> Vec<&'a ListedDecision> {
    let mut scored: Vec<(usize, usize, &ListedDecision)> = all
        .iter()
        .map(|decision| {
            let held = |text: &str| {
                let held = stems(text);
                wanted.iter().filter(|stem| held.contains(stem)).count()
            };
            (held(&format!("{} {}", decision.title, decision.text)), held(&decision.title), decision)
        })
        .collect();
    let best = scored.iter().map(|(held, ..)| *held).max().unwrap_or(0);
    if best * 2 < wanted.len() || (best == 0 && !wanted.is_empty()) {
        return Vec::new();
    }
    scored.retain(|(held, ..)| *held == best);
    // Decisions in force come first; the sort is stable, so equal ones stay newest first.
    let rank = |decision: &ListedDecision| usize::from(decision.state != DecisionState::InForce);
    scored.stable_sort_by(|a, b| b.1.cmp(&a.1).then(rank(a.2).cmp(&rank(b.2))));
    scored.into_iter().map(|(_, _, decision)| decision).collect()
}

fn one_decision(decision: &ListedDecision) -> String {
    let state = match decision.state {
        DecisionState::InForce => "in force",
        DecisionState::Superseded => "superseded",
        DecisionState::Unlanded => "not on the branch yet",
        DecisionState::Elsewhere => "on another branch",
        DecisionState::Withdrawn => "withdrawn",
    };
    let date = decision.date.as_deref().and_then(|date| date.get(..10)).map(|date| format!("{date}, "));
    let by = decision.by.as_deref().map(|by| format!("by {}, ", first_line(by, 40)));
    let source = decision.source.as_ref().map(|source| format!("; {source}")).unwrap_or_default();
    let text = first_line(gist(&decision.text), 2 * LINE);
    let text = if text.is_empty() { text } else { format!("\n  {text}") };
    format!(
        "- {} ({}{}{state}; {}{source}){text}",
        first_line(&decision.title, LINE),
        date.unwrap_or_default(),
        by.unwrap_or_default(),
        decision.id
    )
}

/// The line that says what was decided, and not by whom.
fn gist(text: &str) -> &str {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_label = |line: &str| line.trim_start_matches(['-', '*', ' ']) != line;
    let what = lines.clone().find(|line| line.trim_start_matches(['-', '*', ' ']).starts_with("What"));
    what.or_else(|| lines.clone().find(|line| !is_label(line))).or_else(|| lines.next()).unwrap_or_default()
}
