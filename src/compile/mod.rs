//! A team, compiled: for each agent what its session is made of.
//!
//! A pure function of the team's files, the settings and the tier: no clock, no locale, LF line ends, a stable order
//! with what changes least first (so that the provider's prompt cache hits). The same input gives the same bytes.
//!
//! Text of the team's records is quoted, line by line, so that none of it can pose as a heading of ours.

mod model_choice;
mod prompt;

pub(crate) use prompt::{Colleague, answer_prompt, choice_prompt, review_prompt, task_prompt};

use std::collections::BTreeMap;

use crate::model::{Decision, DecisionId, Member, SessionSpec, Slug, Team, Tier, ToolChoice, first_line, quote};
use crate::settings::Settings;

/// What agents have learned, newest last, as the ledger has it.
pub(crate) type Learnings = BTreeMap<Slug, Vec<String>>;

/// Decisions offered to a session at most (DESIGN §3, from the "squads" document).
const DECISIONS: usize = 20;
/// Characters of one decision that go into a prompt; the rest is in its file.
const DECISION_LENGTH: usize = 700;
/// Characters of an agent's history and learnings that go into a prompt, the newest.
const HISTORY_LENGTH: usize = 6_000;
/// The coordinator's prompt at most, in bytes (PRD 5: 15 KB).
const COORDINATOR_LENGTH: usize = 15_000;

/// The session of one agent.
pub(crate) fn agent(
    team: &Team,
    member: &Member,
    learnings: &Learnings,
    settings: &Settings,
    tier: Tier,
) -> SessionSpec {
    let charter = team.charters.get(&member.slug);
    let prompt =
        charter.map(|charter| charter.text.trim_end().to_owned()).filter(|text| !text.is_empty()).unwrap_or_else(
            || format!("# {} — {}\n\nYou are {}, the team's {}.", member.name, member.role, member.name, member.role),
        );
    let tools = match tier {
        Tier::Direct | Tier::Lightweight => ToolChoice::ReadOnly,
        Tier::Standard | Tier::Full => charter
            .and_then(|charter| charter.tools.clone())
            .filter(|_| tier == Tier::Standard)
            .map_or(ToolChoice::All, ToolChoice::Only),
    };
    let model = model_choice::resolve(member, charter, settings, tier);
    let compaction_threshold = match tier {
        _ if !settings.sessions.infinite => None,
        Tier::Direct | Tier::Lightweight => None,
        Tier::Standard => Some(settings.sessions.compaction_threshold),
        // Full sessions carry more at once and so begin to compact earlier (PRD 4: 0.70 beside 0.80).
        Tier::Full => Some((settings.sessions.compaction_threshold - 0.10).max(0.10)),
    };
    let fixed = fixed_context(team, member);
    let mut context = fixed.clone();
    if matches!(tier, Tier::Standard | Tier::Full) {
        push_decisions(&mut context, team);
        push_history(&mut context, team, member, learnings);
    }
    let mut spec = SessionSpec {
        agent: member.slug.clone(),
        name: member.name.clone(),
        role: member.role.clone(),
        tier,
        prompt,
        context,
        model,
        tools,
        compaction_threshold,
        compiled_hash: String::new(),
    };
    spec.compiled_hash = compiled_hash(&spec, &fixed);
    spec
}

/// The coordinator's session: it chooses where the router abstains, answers what needs no agent, and writes the final
/// answer of several agents' work.
pub(crate) fn coordinator(team: &Team, settings: &Settings) -> SessionSpec {
    let mut prompt = prompt::COORDINATOR.to_owned();
    prompt.push_str("\n## The team\n\n");
    for member in team.startable() {
        prompt.push_str(&roster_line(member));
    }
    push_within(&mut prompt, "\n## Who does what\n\n", team.rules.iter().map(rule_line), COORDINATOR_LENGTH);
    let mut context = String::new();
    let titles = in_force(&team.decisions).into_iter().take(DECISIONS).map(decision_title);
    push_within(&mut context, "## Decisions in force\n\n", titles, COORDINATOR_LENGTH.saturating_sub(prompt.len()));
    let mut spec = SessionSpec {
        agent: Slug::coordinator(),
        name: "Coordinator".to_owned(),
        role: "Coordinator".to_owned(),
        tier: Tier::Direct,
        prompt,
        context,
        model: model_choice::coordinator(settings),
        tools: ToolChoice::ReadOnly,
        compaction_threshold: settings.sessions.infinite.then_some(settings.sessions.compaction_threshold),
        compiled_hash: String::new(),
    };
    spec.compiled_hash = compiled_hash(&spec, "");
    spec
}

/// Covers what a session is made of. Decisions, history and task reach a living session with its next turn.
fn compiled_hash(spec: &SessionSpec, fixed_context: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    let tools = match &spec.tools {
        ToolChoice::All => "all".to_owned(),
        ToolChoice::ReadOnly => "read-only".to_owned(),
        ToolChoice::Only(tools) => format!("only {}", tools.join(" ")),
    };
    let compaction = spec.compaction_threshold.map_or(String::new(), |threshold| threshold.to_string());
    for part in [&spec.prompt, fixed_context, &spec.model.id, &tools, &spec.tier.to_string(), &compaction] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

fn fixed_context(team: &Team, member: &Member) -> String {
    let mut context = prompt::TEAMWORK.to_owned();
    context.push_str("\n## The team\n\n");
    for colleague in team.startable() {
        context.push_str(&roster_line(colleague));
    }
    context.push_str(&format!("\nYou are {}.\n", one_line(&member.name)));
    context
}

fn push_decisions(context: &mut String, team: &Team) {
    let decisions = in_force(&team.decisions);
    if decisions.is_empty() {
        return;
    }
    context.push_str("\n## Decisions in force\n\nQuoted from the team's records; keep to them.\n");
    // Oldest first, as they came about.
    for decision in decisions.iter().take(DECISIONS).rev() {
        context.push_str(&format!("\nDecision {}:\n", cite(decision)));
        context.push_str(&quote(&format!("{}\n{}", decision.title, head(&decision.text, DECISION_LENGTH))));
    }
    if let Some(more) = decisions.len().checked_sub(DECISIONS).filter(|more| *more > 0) {
        context.push_str(&format!("\n{more} older decisions are not shown; ask with `squad_decisions`.\n"));
    }
}

fn push_history(context: &mut String, team: &Team, member: &Member, learnings: &Learnings) {
    let mut history = team.histories.get(&member.slug).cloned().unwrap_or_default();
    for learning in learnings.get(&member.slug).into_iter().flatten() {
        history.push_str("\n- ");
        history.push_str(learning.trim());
    }
    if !history.trim().is_empty() {
        context.push_str("\n## What you learned before\n\nQuoted from your history, the newest part.\n\n");
        context.push_str(&quote(tail(&history, HISTORY_LENGTH)));
    }
}

/// Decisions that no other one supersedes, newest first.
pub(crate) fn in_force(decisions: &[Decision]) -> Vec<&Decision> {
    let superseded: Vec<&DecisionId> = decisions.iter().filter_map(|decision| decision.supersedes.as_ref()).collect();
    decisions.iter().filter(|decision| !superseded.contains(&&decision.id)).collect()
}

fn roster_line(member: &Member) -> String {
    format!("- {} (`{}`): {}\n", one_line(&member.name), member.slug, one_line(&member.role))
}

fn rule_line(rule: &crate::model::Rule) -> String {
    let agents: Vec<String> = rule.agents.iter().map(|slug| format!("`{slug}`")).collect();
    format!("- {}: {}\n", one_line(&rule.signal), agents.join(", "))
}

fn decision_title(decision: &Decision) -> String {
    format!("- {} ({})\n", one_line(&decision.title), cite(decision))
}

fn cite(decision: &Decision) -> String {
    let date = decision.date.as_deref().map_or("", |date| date.get(..10).unwrap_or(date));
    let by = decision.by.as_deref().map(|by| format!(", by {}", one_line(by))).unwrap_or_default();
    format!("`{}` {date}{by}", one_line(decision.id.as_str()))
}

/// Text that stands in a line of ours: one line, and short.
fn one_line(text: &str) -> String {
    first_line(&text.replace(['\u{85}', '\u{2028}', '\u{2029}', '`'], " "), 160)
}

/// Adds a heading and as many lines as fit, and says how many did not.
fn push_within(text: &mut String, heading: &str, lines: impl Iterator<Item = String>, limit: usize) {
    const SAID: usize = 40;
    let mut lines = lines.peekable();
    if lines.peek().is_none() || text.len() + heading.len() + SAID > limit {
        return;
    }
    text.push_str(heading);
    let mut left_out = 0;
    for line in lines {
        if text.len() + line.len() + SAID > limit {
            left_out += 1;
        } else {
            text.push_str(&line);
        }
    }
    if left_out > 0 {
        text.push_str(&format!("- and {left_out} more\n"));
    }
}

/// The first characters, cut at a character and said to be.
fn head(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((at, _)) => format!("{} […]", text[..at].trim_end()),
        None => text.to_owned(),
    }
}

/// The last characters, from the beginning of a line on.
fn tail(text: &str, limit: usize) -> &str {
    let Some((at, _)) = text.char_indices().rev().nth(limit) else { return text };
    text[at..].split_once('\n').map_or(&text[at..], |(_, rest)| rest)
}

#[cfg(test)]
mod tests;
