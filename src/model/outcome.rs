//! Results of work: outcome, changes and usage.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::{AgentGitChanges, NetworkAccess, ReachedHosts, SandboxLevel, Slug, first_line, plural};

/// How an agent's work, or a run, ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Completed,
    /// It was asked for work, reports success, and neither used a tool nor changed anything.
    Claimed,
    Failed,
    TimedOut,
    Cancelled,
    /// Ended by policy or budget.
    Stopped,
    /// Work it depends on did not complete.
    Skipped,
    /// The run's process died, or the machine is gone that it worked on: what it did last is not known. It stays one state,
    /// as people and programs do the same about both: `--resume`.
    Lost,
}

impl Outcome {
    /// Reads the name that JSON has.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        serde_json::from_value(name.into()).ok()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Completed => "completed",
            Self::Claimed => "claimed",
            Self::Failed => "failed",
            Self::TimedOut => "timed out",
            Self::Cancelled => "cancelled",
            Self::Stopped => "stopped",
            Self::Skipped => "skipped",
            Self::Lost => "lost",
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    Approved,
    Rejected,
    /// The reviewer's answer does not have the requested form. Never counts as approval.
    Unclear,
}

/// A verdict that a reviewer gave with the tool for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Judgement {
    pub(crate) approved: bool,
    pub(crate) reasons: String,
    /// The files that the reasons are about, as named by the reviewer; empty: all.
    pub(crate) files: Vec<String>,
}

impl Verdict {
    /// Reads the first or last line, which must be `VERDICT: approved` or `VERDICT: rejected`, ignoring emphasis and
    /// case. If the two contradict each other, neither counts.
    pub(crate) fn read(text: &str) -> Self {
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let read = |line: Option<&&str>| Self::of_line(line.copied().unwrap_or_default());
        match (read(lines.first()), read(lines.last())) {
            (Some(first), Some(last)) if first != last => Self::Unclear,
            (first, last) => last.or(first).unwrap_or(Self::Unclear),
        }
    }

    fn of_line(line: &str) -> Option<Self> {
        let plain: String = line.chars().filter(|c| !matches!(c, '*' | '_' | '`' | '.' | '#')).collect();
        match plain.trim().to_lowercase().split_whitespace().collect::<Vec<_>>()[..] {
            ["verdict:", "approved"] => Some(Self::Approved),
            ["verdict:", "rejected"] => Some(Self::Rejected),
            _ => None,
        }
    }
}

/// The end of an agent's work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct End {
    /// Why it did not complete.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
    /// The agent's last message.
    pub(crate) text: String,
    /// What changed in the work tree while it worked; `None` if unknown.
    #[serde(default)]
    pub(crate) changed: Option<Vec<Change>>,
    /// What its commands changed in the repository itself.
    #[serde(default)]
    pub(crate) git: AgentGitChanges,
    #[serde(default)]
    pub(crate) commands: CommandCounts,
    /// Its last command that looks like a check of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) check: Option<CheckRun>,
    /// It used no tool and changed nothing, as far as its engine tells.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) no_tool_used: bool,
    /// Command lines of processes it left running, which were stopped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) left_running: Vec<String>,
    /// What bounded the programs of its engine; `None`: it started none, or an older squad wrote this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sandbox: Option<SandboxLevel>,
    /// What of the network they reached; `None`: at level `full` only, or an older squad wrote this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) network: Option<NetworkAccess>,
    /// The hosts they reached and were refused, where the network is not open. Agents that share an engine's process share
    /// these too.
    #[serde(default, skip_serializing_if = "ReachedHosts::is_empty")]
    pub(crate) hosts: ReachedHosts,
    /// `None`: it had no session, or an older squad wrote this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<WorkModel>,
    /// The budgets that did not bound it, by their settings: its engine tells too little.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) uncounted: BTreeSet<String>,
    pub(crate) usage: Usage,
}

/// The model that an agent worked on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct WorkModel {
    pub(crate) engine: String,
    /// What squad chose; `None`: the engine's default.
    pub(crate) asked: Option<String>,
    /// What the engine was given; `None`: its default.
    pub(crate) used: Option<String>,
}

impl WorkModel {
    /// `claude: claude-opus-4-5`
    pub(crate) fn shown(&self) -> String {
        format!("{}: {}", self.engine, self.used.as_deref().unwrap_or("its default"))
    }
}

/// A file that changed while an agent worked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "ChangeRecord")]
pub(crate) struct Change {
    /// Relative to the repository's root, with `/`.
    pub(crate) path: String,
    /// Lines; `None` for files without lines, such as images.
    pub(crate) added: Option<u64>,
    pub(crate) removed: Option<u64>,
    pub(crate) class: ChangeClass,
    /// The agents that changed it, or may have.
    pub(crate) by: Vec<Slug>,
    /// How it is known that they did; `None` if it is not known who did.
    pub(crate) how: Option<ChangeEvidence>,
    /// The added lines, if no tool call has recorded them. Not recorded, because the project has them.
    #[serde(skip)]
    pub(crate) text: String,
    /// Fingerprints of those lines, in order; see `record::marks`. Only in the ledger.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) lines: Vec<String>,
}

/// A change as recorded by this and earlier versions, which had no classes.
#[derive(Deserialize)]
struct ChangeRecord {
    path: String,
    added: Option<u64>,
    removed: Option<u64>,
    class: Option<ChangeClass>,
    #[serde(default)]
    by: Vec<Slug>,
    #[serde(default)]
    how: Option<ChangeEvidence>,
    #[serde(default)]
    lines: Vec<String>,
}

impl From<ChangeRecord> for Change {
    fn from(record: ChangeRecord) -> Self {
        let ChangeRecord { path, added, removed, class, by, how, lines } = record;
        let earlier = if by.is_empty() { ChangeClass::Own } else { ChangeClass::Together };
        Self { path, added, removed, class: class.unwrap_or(earlier), by, how, text: String::new(), lines }
    }
}

/// Who made a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChangeClass {
    /// One agent of the run.
    #[default]
    Own,
    /// Several agents were at work; one or more of them.
    Together,
    /// No agent was at work: the person, or another program.
    Yours,
    /// Another run in the same work tree.
    OtherRun,
    /// It was made while the run was interrupted.
    Unknown,
}

impl Change {
    /// Without the lines, which only the end of an agent's work records.
    pub(crate) fn summary(&self) -> Self {
        Self { text: String::new(), lines: Vec::new(), ..self.clone() }
    }

    /// Agents made it by commands, so that no tool call has recorded its lines.
    pub(crate) fn is_by_command(&self) -> bool {
        self.class.is_of_agents() && self.how == Some(ChangeEvidence::Command)
    }
}

impl ChangeClass {
    /// Whether agents of the run made the change. Others' changes lock nobody out.
    pub(crate) fn is_of_agents(self) -> bool {
        matches!(self, Self::Own | Self::Together)
    }

    /// What is known of a change that no agent of the run made; `None`: one did.
    pub(crate) fn of_others(self) -> Option<&'static str> {
        match self {
            Self::Own | Self::Together => None,
            Self::Yours => Some("changed by you or another program"),
            Self::OtherRun => Some("changed by or beside another run"),
            Self::Unknown => Some("changed while the run was down"),
        }
    }
}

impl fmt::Display for ChangeClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own => "own",
            Self::Together => "together",
            Self::Yours => "yours",
            Self::OtherRun => "other run",
            Self::Unknown => "unknown",
        })
    }
}

/// How it is known who made a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ChangeEvidence {
    /// A tool call named the path.
    Named,
    /// Only these agents' commands were running.
    Command,
}

/// How many commands succeeded and failed; refused ones count as neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct CommandCounts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

/// The result of a command that looks like a check of the project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CheckRun {
    pub(crate) command: String,
    pub(crate) passed: bool,
    pub(crate) exit_code: Option<i64>,
}

impl fmt::Display for CheckRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = first_line(&self.command, 80);
        match self.exit_code {
            Some(code) => write!(f, "`{command}` (exit {code})"),
            None => write!(f, "`{command}`"),
        }
    }
}

/// What a person has to know of an end besides its status.
pub(super) fn remarks(no_tool_used: bool, commands: CommandCounts, check: Option<&CheckRun>) -> Vec<String> {
    let no_tool = no_tool_used.then(|| "no tool used".to_owned());
    let failed = (commands.failed > 0).then(|| format!("{} failed", plural(commands.failed as usize, "command")));
    let check = check.filter(|check| !check.passed).map(|check| format!("last check failed: {check}"));
    [no_tool, failed, check].into_iter().flatten().collect()
}

impl End {
    pub(crate) fn remarks(&self) -> Vec<String> {
        remarks(self.no_tool_used, self.commands, self.check.as_ref())
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// One piece of work in the summary at a run's end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WorkReport {
    pub(crate) agent: Slug,
    #[serde(default)]
    pub(crate) step: Option<u32>,
    #[serde(default)]
    pub(crate) attempt: Option<u32>,
    pub(crate) status: Outcome,
    #[serde(default)]
    pub(crate) changed: Option<Vec<Change>>,
    /// Refused writes and commands.
    #[serde(default)]
    pub(crate) refused: u64,
    /// Whether its checks passed; `None` if there are none.
    #[serde(default)]
    pub(crate) verified: Option<bool>,
    #[serde(default, skip_serializing_if = "AgentGitChanges::is_empty")]
    pub(crate) git: AgentGitChanges,
    #[serde(default)]
    pub(crate) commands: CommandCounts,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) check: Option<CheckRun>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) no_tool_used: bool,
    /// Why it did not complete.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<WorkModel>,
    /// See [`End`].
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) uncounted: BTreeSet<String>,
    pub(crate) usage: Usage,
}

impl WorkReport {
    pub(crate) fn of(agent: Slug, (step, attempt): (Option<u32>, Option<u32>), status: Outcome, end: End) -> Self {
        let End { reason, changed, git, commands, check, no_tool_used, model, uncounted, usage, .. } = end;
        let (refused, verified) = (usage.refused, None);
        let changed = changed.map(|changed| changed.iter().map(Change::summary).collect());
        Self {
            agent,
            step,
            attempt,
            status,
            changed,
            refused,
            verified,
            git,
            commands,
            check,
            no_tool_used,
            reason,
            model,
            uncounted,
            usage,
        }
    }
}

/// Resources used. Fields missing in entries of older versions are zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Usage {
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) cache_read_tokens: u64,
    pub(crate) cache_write_tokens: u64,
    pub(crate) reasoning_tokens: u64,
    /// In the engine's own units, each listed once.
    pub(crate) billed: Vec<Billed>,
    /// US dollars; `None` if unknown. Of one model call it may be negative, where earlier ones cost less than their prices.
    pub(crate) cost_usd: Option<f64>,
    pub(crate) turns: u64,
    pub(crate) tool_calls: u64,
    /// Requests that were refused.
    pub(crate) refused: u64,
    /// Wall-clock time.
    pub(crate) seconds: f64,
    /// How much of it was spent waiting for a person.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) waited: f64,
    /// The context of the last model call, if known. It is not summed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) context: Option<ContextSize>,
}

/// The context of a model call, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ContextSize {
    pub(crate) system_tokens: u64,
    pub(crate) tool_tokens: u64,
    pub(crate) conversation_tokens: u64,
    /// The model's limit.
    pub(crate) limit: u64,
}

/// An amount charged to an engine's account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Billed {
    /// For example `premium_request`.
    pub(crate) unit: String,
    pub(crate) amount: f64,
}

/// More tokens than any model call has: what an engine says is not to be trusted, and is added up.
const MOST_TOKENS: u64 = 1 << 40;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(seconds: &f64) -> bool {
    *seconds == 0.0
}

impl Usage {
    /// Seconds of work: none in which a person was waited for.
    pub(crate) fn worked(&self) -> f64 {
        (self.seconds - self.waited).max(0.0)
    }

    /// Of a service that counts input which it had cached, or caches now, apart: as input, as all the others do.
    pub(crate) fn with_cached_input(mut self) -> Self {
        let cached = self.cache_read_tokens.saturating_add(self.cache_write_tokens);
        self.input_tokens = self.input_tokens.saturating_add(cached);
        self
    }

    /// What one model call may have used at most. More cached than there was input is counted apart from it.
    pub(crate) fn bounded(mut self) -> Self {
        let counts = [
            &mut self.input_tokens,
            &mut self.output_tokens,
            &mut self.cache_read_tokens,
            &mut self.cache_write_tokens,
            &mut self.reasoning_tokens,
            &mut self.turns,
            &mut self.tool_calls,
        ];
        counts.into_iter().for_each(|count| *count = (*count).min(MOST_TOKENS));
        self.cost_usd = self.cost_usd.map(|cost| cost.max(0.0));
        let is_apart = self.cache_read_tokens + self.cache_write_tokens > self.input_tokens;
        if is_apart { self.with_cached_input() } else { self }
    }
}

impl AddAssign<&Usage> for Usage {
    fn add_assign(&mut self, other: &Usage) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cache_read_tokens += other.cache_read_tokens;
        self.cache_write_tokens += other.cache_write_tokens;
        self.reasoning_tokens += other.reasoning_tokens;
        for Billed { unit, amount } in &other.billed {
            match self.billed.iter_mut().find(|billed| billed.unit == *unit) {
                Some(billed) => billed.amount += amount,
                None => self.billed.push(Billed { unit: unit.clone(), amount: *amount }),
            }
        }
        self.cost_usd = match (self.cost_usd, other.cost_usd) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0.0) + b.unwrap_or(0.0)),
        };
        self.turns += other.turns;
        self.tool_calls += other.tool_calls;
        self.refused += other.refused;
        self.seconds += other.seconds;
        self.waited += other.waited;
    }
}

/// Seconds rounded to milliseconds, as recorded.
pub(crate) fn seconds(duration: std::time::Duration) -> f64 {
    (duration.as_secs_f64() * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_input_is_input_also_where_it_is_counted_apart() {
        for (input, read, written, expected) in [(100, 40, 20, 100), (100, 100, 0, 100), (10, 40, 20, 70), (0, 0, 0, 0)]
        {
            let (input_tokens, cache_read_tokens, cache_write_tokens) = (input, read, written);
            let usage = Usage { input_tokens, cache_read_tokens, cache_write_tokens, ..Usage::default() };
            assert_eq!(usage.bounded().input_tokens, expected, "{input} {read} {written}");
        }
        let most = Usage { cache_read_tokens: u64::MAX, input_tokens: u64::MAX, ..Usage::default() };
        assert_eq!(most.bounded().input_tokens, MOST_TOKENS);
    }

    #[test]
    fn only_a_plain_verdict_approves() {
        assert_eq!(Verdict::read("Good.\n\n**VERDICT: approved**\n"), Verdict::Approved);
        assert_eq!(Verdict::read("verdict: Rejected."), Verdict::Rejected);
        assert_eq!(Verdict::read("\n## VERDICT: rejected\n\nNo tests."), Verdict::Rejected);
        assert_eq!(Verdict::read("VERDICT: approved\nAll of it.\n"), Verdict::Approved);
        assert_eq!(Verdict::read("VERDICT: approved\n\nSo:\n\nVERDICT: approved"), Verdict::Approved);
        for unclear in [
            "VERDICT: not approved",
            "NOT APPROVED",
            "VERDICT: approved or not",
            "VERDICT: approved\n…\nVERDICT: rejected",
            "Well.\nVERDICT: approved\nor not",
            "> VERDICT: approved",
            "",
            "approved",
        ] {
            assert_eq!(Verdict::read(unclear), Verdict::Unclear, "{unclear}");
        }
    }
}
