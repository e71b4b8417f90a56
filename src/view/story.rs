//! What happened in a run, told from its events: each thing once, in the order of the events.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;

use super::card::{MAX_NAME, mark_of, reasons};
use super::text::{Mark, Text};
use super::{DETAIL, LineStyle, agent_line, call};
use crate::model::{
    Access, End, EventKind, NO_ENGINE, Outcome, Plan, PlanKind, Position, ProjectCheck, RunId, Slug, TakenSnapshot,
    Verdict, change_by, clock, first_line, list, plural, tools_called,
};

/// Lines of a failed command's output that are shown.
const OUTPUT: usize = 3;
/// Files that were read one after the other and are named.
const READS: usize = 2;

/// Rows that a message or a call may take while the run goes on, and their columns.
const ROWS: usize = 3;
const COLUMNS: usize = 85;
/// The longest name before a plan is known.
const NAME: usize = 5;

/// What allowed a call, and from when to when it waited for that.
#[derive(Debug)]
struct Allowed {
    by: String,
    waited: Option<(Timestamp, Timestamp)>,
}

/// Turns events into lines.
#[derive(Debug, Default)]
pub(crate) struct Story {
    /// It is told while the run goes on: without times, and with the beginnings of texts.
    is_live: bool,
    is_verbose: bool,
    run: Option<RunId>,
    /// No engine runs: squad answers from its files.
    is_alone: bool,
    first: Option<Timestamp>,
    name: usize,
    steps: usize,
    /// The agent whose last message is the answer.
    answering: Option<Slug>,
    /// Each agent's latest message, until it is known that it is not the answer.
    pending: BTreeMap<Slug, (Timestamp, String)>,
    reads: BTreeMap<Slug, (Timestamp, Vec<String>)>,
    /// When a call was asked about, and what allowed it.
    asked: HashMap<(Option<Slug>, String), Timestamp>,
    allowed: HashMap<(Option<Slug>, String), Allowed>,
    /// Agents whose engine calls squad's own tools outside of the run, which sees nothing of them but the calls.
    governed: BTreeSet<Slug>,
    /// Calls that were refused; the failure that follows is the same news.
    refused: Vec<Slug>,
    /// Whose work a reviewer has rejected, to be said of all at once.
    locked: Option<(Timestamp, Slug, Vec<Slug>)>,
    pub(crate) answer: Option<String>,
}

impl Story {
    pub(crate) fn live(is_verbose: bool) -> Self {
        Self { is_live: true, is_verbose, name: NAME, ..Self::default() }
    }

    /// Names the run in its plan.
    pub(super) fn begin(&mut self, run: &RunId) {
        self.run.get_or_insert_with(|| run.clone());
    }

    /// A line of squad's own.
    pub(super) fn note(&self, mark: Option<(Mark, LineStyle)>, text: &str) -> Text {
        self.line(Timestamp::UNIX_EPOCH, mark, "squad", text)
    }

    /// The lines that an event adds.
    pub(crate) fn see(
        &mut self,
        at: Timestamp,
        agent: Option<&Slug>,
        position: Position,
        kind: &EventKind,
    ) -> Vec<Text> {
        self.first = self.first.or(Some(at));
        let mut lines = Vec::new();
        let is_same = |reviewer: &Slug| self.locked.as_ref().is_some_and(|(_, by, _)| by == reviewer);
        if !matches!(kind, EventKind::Lockout { reviewer, .. } if is_same(reviewer)) {
            self.flush_locked(&mut lines);
        }
        if let EventKind::RunStarted { engine, .. } = kind {
            self.is_alone = engine == NO_ENGINE;
        }
        match (agent, kind) {
            (_, EventKind::RunStarted { .. } | EventKind::RunCompleted(_) | EventKind::RunUndone(_)) => {
                self.flush_all(&mut lines);
            }
            (_, EventKind::Answer { text }) => {
                // squad may have put something in front of it.
                self.pending.retain(|_, (_, pending)| !text.ends_with(pending.as_str()));
                self.flush_all(&mut lines);
                self.answer = Some(text.clone());
            }
            (_, EventKind::RoutePlanned(plan)) => lines.extend(self.planned(plan)),
            (_, EventKind::PermissionAsked { detail, .. }) => {
                // What leads to a question stands before it.
                agent.iter().for_each(|agent| self.flush(agent, &mut lines));
                self.asked.insert((agent.cloned(), detail.clone()), at);
            }
            (Some(agent), EventKind::QuestionAsked { .. }) => self.flush(agent, &mut lines),
            (_, EventKind::PermissionAnswered { detail, allowed, rule, .. }) => {
                let call = (agent.cloned(), detail.clone());
                let asked = self.asked.remove(&call);
                let after = asked.map(|asked| clock(seconds_between(asked, at)));
                let by = match (rule, after) {
                    (Some(rule), Some(after)) => format!("allowed {rule}, after {after}"),
                    (Some(rule), None) => format!("allowed by \"{rule}\""),
                    (None, after) => format!("allowed once, after {}", after.unwrap_or_default()),
                };
                if *allowed {
                    self.allowed.insert(call, Allowed { by, waited: asked.map(|asked| (asked, at)) });
                }
            }
            (None, kind) => self.of_run(at, position, kind, &mut lines),
            (Some(agent), kind) => self.of_agent(at, agent, kind, &mut lines),
        }
        lines
    }

    fn of_run(&mut self, at: Timestamp, position: Position, kind: &EventKind, lines: &mut Vec<Text>) {
        let text = match kind {
            EventKind::StepStarted { .. } if self.steps > 1 => {
                self.flush_all(lines);
                let step = format!("Step {} of {}", position.step.unwrap_or(1), self.steps);
                lines.push(self.at(at).plain("  ").with(LineStyle::Strong, &step));
                return;
            }
            EventKind::RunResumed { done, steps_done, steps, .. } => {
                self.steps = self.steps.max(*steps);
                let is_in_steps = *steps > 1 && steps_done < steps;
                let place =
                    if is_in_steps { format!(" with step {} of {steps}", steps_done + 1) } else { String::new() };
                let done = if done.is_empty() { String::new() } else { format!(": {} completed before", list(done)) };
                format!("the run goes on{place}{done}")
            }
            EventKind::CheckStarted { .. } if !self.is_live => return,
            EventKind::CheckStarted { command } => format!("checks all changes: $ {command}"),
            EventKind::CheckCompleted(check) => return self.checked(at, check, lines),
            EventKind::EngineFallback { from, to, reason } => format!("{from} cannot start ({reason}); uses {to}"),
            EventKind::EngineDisobeys { engine, claims } => {
                let names = list(claims.iter().map(|claim| format!("`{claim}`")));
                format!("{engine} does what it is told not to do: it failed {names} when it was tried")
            }
            EventKind::SandboxWeaker { level, reason } => {
                format!("the agents' sandbox is only `{level}` here: {reason}")
            }
            EventKind::ConnectionFailed { reason, .. } => reason.clone(),
            EventKind::SnapshotTaken(TakenSnapshot { left_out, .. }) if !left_out.is_empty() => {
                let named = list(left_out.iter().take(3).map(|left| format!("{} ({})", left.path, left.why)));
                let more = left_out.len().saturating_sub(3);
                let more = if more > 0 { format!(", and {more} more") } else { String::new() };
                format!("left out of the snapshot: {named}{more}")
            }
            kind => match agent_line(kind) {
                Some((_, text)) => text,
                None => return,
            },
        };
        let is_bad = matches!(
            kind,
            EventKind::SessionError { .. }
                | EventKind::CancelRequested { .. }
                | EventKind::EngineFallback { .. }
                | EventKind::QuotaOpened { .. }
                | EventKind::EngineDisobeys { .. }
                | EventKind::SandboxWeaker { .. }
        );
        let mark = is_bad.then_some((Mark::Attention, LineStyle::Warning));
        lines.push(self.line(at, mark, "squad", &text));
    }

    /// The result of squad's own check.
    fn checked(&mut self, at: Timestamp, check: &ProjectCheck, lines: &mut Vec<Text>) {
        let (mark, style) = match check.passed {
            true => (Mark::Good, LineStyle::Good),
            false => (Mark::Bad, LineStyle::Bad),
        };
        let took = if check.seconds >= 1.0 { format!(", {}", took(check.seconds)) } else { String::new() };
        let ends = format!("    {}{took}", check.result());
        self.call_lines(at, Some((mark, style)), "squad", &format!("$ {}", check.command), &ends, lines);
        if !check.passed {
            let output: Vec<&str> = check.output.lines().filter(|line| !line.trim().is_empty()).collect();
            let shown = if self.is_live { OUTPUT } else { output.len() };
            lines.extend(output[output.len().saturating_sub(shown)..].iter().map(|line| self.below(line)));
            let is_more = !self.is_live && check.output_bytes > check.output.len() as u64;
            if let Some(file) = check.output_file.as_ref().filter(|_| is_more) {
                lines.push(self.below(&format!("… all {} bytes: {file} in squad's local folder", check.output_bytes)));
            }
        }
        let mark = Some((Mark::Attention, LineStyle::Warning));
        lines.extend(check.remarks().iter().map(|text| self.line(at, mark, "squad", &format!("check: {text}"))));
    }

    fn of_agent(&mut self, at: Timestamp, agent: &Slug, kind: &EventKind, lines: &mut Vec<Text>) {
        let name = agent.as_str();
        if let EventKind::ToolCompleted { tool, ok: true, detail, .. } = kind
            && tools_called(tool) == Some(&["view"])
        {
            self.flush_message(agent, lines);
            self.reads.entry(agent.clone()).or_insert_with(|| (at, Vec::new())).1.push(detail.clone());
            return;
        }
        match kind {
            EventKind::Message { text } => {
                self.flush(agent, lines);
                // The coordinator's choices are for squad.
                let is_choice = text.trim_start().starts_with(['{', '`']);
                if *agent != Slug::coordinator() || !is_choice {
                    self.pending.insert(agent.clone(), (at, text.clone()));
                }
            }
            EventKind::ToolCompleted { tool, ok, exit_code, seconds, detail, result, .. } => {
                if *ok && tool.starts_with("squad_") && !self.governed.contains(agent) {
                    return;
                }
                self.flush(agent, lines);
                if !*ok && self.has_refused(agent) {
                    return;
                }
                let after = self.allowed.remove(&(Some(agent.clone()), detail.clone()));
                let waited = after.as_ref().and_then(|allowed| allowed.waited);
                let worked = seconds - waited.map_or(0.0, |waited| within(waited, *seconds, at));
                let after = after.map(|Allowed { by, .. }| format!("    {by}"));
                let end = match (ok, exit_code) {
                    (true, _) => String::new(),
                    (false, Some(code)) => format!("    exit {code}"),
                    (false, None) => format!("    failed: {}", first_line(result, 160)),
                };
                // How long a file takes to be written says nothing.
                let is_write = change_by(tool) == Some(Access::Write);
                let took = if worked >= 1.0 && !is_write { format!(", {}", took(worked)) } else { String::new() };
                let took = if end.is_empty() { took.replace(", ", "    ") } else { took };
                let mark = match (ok, change_by(tool)) {
                    (false, _) => Some((Mark::Bad, LineStyle::Bad)),
                    (true, Some(_)) => Some((Mark::Good, LineStyle::Good)),
                    (true, None) => None,
                };
                let call = call(tool, detail, exit_code.is_some());
                let ends = format!("{end}{took}{}", after.unwrap_or_default());
                self.call_lines(at, mark, name, &call, &ends, lines);
                if !*ok && exit_code.is_some() {
                    let output: Vec<&str> = result.lines().filter(|line| !line.trim().is_empty()).collect();
                    let last = &output[output.len().saturating_sub(OUTPUT)..];
                    lines.extend(last.iter().map(|line| self.below(line)));
                }
            }
            EventKind::ToolDenied { tool, detail, reason } => {
                self.flush(agent, lines);
                self.refused.push(agent.clone());
                let call = call(tool, detail, false);
                let mark = Some((Mark::Bad, LineStyle::Bad));
                self.call_lines(at, mark, name, &call, &format!("    refused: {reason}"), lines);
            }
            EventKind::DecisionLogged { decision, .. } => {
                self.flush(agent, lines);
                let text = format!("decision {}: {}", decision.id.short(), decision.title);
                lines.push(self.line(at, Some((Mark::Decision, LineStyle::Strong)), name, &text));
            }
            EventKind::ReviewVerdict { verdict, text, authors, .. } => {
                self.flush(agent, lines);
                if *verdict == Verdict::Rejected {
                    // Rejected work is not the answer; the coordinator writes one.
                    authors.iter().for_each(|author| self.flush(author, lines));
                    self.answering = Some(Slug::coordinator());
                }
                let (mark, style, word) = match verdict {
                    Verdict::Approved => (Mark::Good, LineStyle::Good, "approved"),
                    Verdict::Rejected => (Mark::Bad, LineStyle::Bad, "rejected"),
                    Verdict::Unclear => (Mark::Attention, LineStyle::Warning, "gave no clear verdict"),
                };
                let reasons = reasons(text);
                let reasons = if reasons.is_empty() { reasons } else { format!(": {reasons}") };
                lines.push(self.line(at, Some((mark, style)), name, &format!("{word}{reasons}")));
            }
            EventKind::Lockout { files, .. } if files.is_empty() => {}
            EventKind::Lockout { reviewer, .. } => {
                let locked = self.locked.get_or_insert_with(|| (at, reviewer.clone(), Vec::new()));
                locked.2.push(agent.clone());
            }
            kind => {
                if matches!(kind, EventKind::EngineGoverned { .. }) {
                    self.governed.insert(agent.clone());
                }
                if let Some((outcome, end)) = kind.end() {
                    if outcome != Outcome::Completed || self.answering.as_ref() != Some(agent) {
                        self.flush(agent, lines);
                    }
                    if outcome != Outcome::Completed {
                        let (mark, style) = mark_of(outcome);
                        let text = format!("{outcome}: {}", first_line(&end.reason, 200));
                        lines.push(self.line(at, Some((mark, style)), name, text.trim_end_matches(": ")));
                    }
                    self.left_behind(at, name, end, lines);
                } else if let Some((style, text)) = agent_line(kind) {
                    self.flush(agent, lines);
                    let mark = (style == LineStyle::Warning).then_some((Mark::Attention, style));
                    lines.push(self.line(at, mark, name, &text));
                }
            }
        }
    }

    fn flush_locked(&mut self, lines: &mut Vec<Text>) {
        let Some((at, reviewer, agents)) = self.locked.take() else { return };
        let (name, who) = match &agents[..] {
            [agent] => (agent.as_str(), String::new()),
            several => ("squad", format!("{} ", list(several))),
        };
        let text = format!("{who}may not revise what {reviewer} rejected");
        lines.push(self.line(at, Some((Mark::Attention, LineStyle::Warning)), name, &text));
    }

    /// What an agent leaves behind besides changed files.
    fn left_behind(&self, at: Timestamp, name: &str, end: &End, lines: &mut Vec<Text>) {
        let mut notes = Vec::new();
        if !end.git.is_empty() {
            notes.push(format!("changed git: {}", end.git));
        }
        if !end.left_running.is_empty() {
            let count = end.left_running.len();
            let what = if count == 1 { "1 process".to_owned() } else { format!("{count} processes") };
            notes.push(format!("left {what} running, now stopped: {}", first_line(&list(&end.left_running), DETAIL)));
        }
        let mark = Some((Mark::Attention, LineStyle::Warning));
        lines.extend(notes.iter().map(|text| self.line(at, mark, name, text)));
    }

    /// Notes what the plan says of the lines to come, and shows it.
    fn planned(&mut self, plan: &Plan) -> Vec<Text> {
        self.steps = plan.steps.len();
        let names = plan.agents.iter().chain(plan.reviewers()).map(|agent| agent.as_str().chars().count());
        let least = if self.is_live { NAME } else { 0 };
        self.name = names.max().unwrap_or_default().clamp(least, MAX_NAME);
        self.answering = Some(match &plan.agents[..] {
            [agent] => agent.clone(),
            _ => Slug::coordinator(),
        });
        let text = match plan.kind {
            PlanKind::Direct if self.is_alone => "answered from the team's files and its ledger".to_owned(),
            PlanKind::Direct => "the coordinator answers".to_owned(),
            PlanKind::Abstain if plan.agents.is_empty() => "not sure; the coordinator chooses".to_owned(),
            PlanKind::Abstain => format!("asks before it starts {}", list(&plan.agents)),
            PlanKind::Agents => {
                let reviewers = plan.final_reviewers().cloned().collect::<Vec<_>>();
                let last = (!reviewers.is_empty()).then_some(reviewers);
                let steps = plan.steps.iter().cloned().chain(last);
                let named = |(number, agents): (usize, Vec<Slug>)| {
                    let agents = agents.iter().map(Slug::as_str).collect::<Vec<_>>().join(", ");
                    format!("{number} {agents}")
                };
                (1..).zip(steps).map(named).collect::<Vec<_>>().join("   ")
            }
        };
        let mut sources: Vec<&str> = Vec::new();
        for evidence in plan.evidence.iter().filter(|evidence| plan.agents.contains(&evidence.agent)) {
            if evidence.weight > 0.0 && !sources.contains(&evidence.source.as_str()) {
                sources.push(&evidence.source);
            }
        }
        let sources = sources.iter().take(3).copied().collect::<Vec<_>>().join(", ");
        let line = Text::default().with(LineStyle::Strong, "Plan").plain("  ").hanging().plain(&text);
        let run = self.run.as_ref().map(|run| format!(", run {}", run.short())).unwrap_or_default();
        let tier = format!("   tier {}{run}", plan.tier);
        vec![line.with(LineStyle::Faint, &tier).with(LineStyle::Faint, &format!("   {sources}"))]
    }

    fn has_refused(&mut self, agent: &Slug) -> bool {
        let place = self.refused.iter().position(|refused| refused == agent);
        place.map(|place| self.refused.remove(place)).is_some()
    }

    fn flush(&mut self, agent: &Slug, lines: &mut Vec<Text>) {
        self.flush_message(agent, lines);
        let Some((at, read)) = self.reads.remove(agent) else { return };
        let text = match &read[..] {
            [one] => format!("read {one}"),
            read => {
                let named = read.iter().take(READS).map(String::as_str).collect::<Vec<_>>().join(", ");
                let more = read.len().saturating_sub(READS);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                format!("read {}: {named}{more}", plural(read.len(), "file"))
            }
        };
        lines.push(self.line(at, None, agent.as_str(), &text));
    }

    fn flush_message(&mut self, agent: &Slug, lines: &mut Vec<Text>) {
        if let Some((at, text)) = self.pending.remove(agent) {
            self.block(at, None, agent.as_str(), text.trim(), lines);
        }
    }

    fn flush_all(&mut self, lines: &mut Vec<Text>) {
        let agents: Vec<Slug> = self.pending.keys().chain(self.reads.keys()).cloned().collect();
        agents.iter().for_each(|agent| self.flush(agent, lines));
    }

    /// What is left at the end of the events.
    pub(crate) fn rest(&mut self) -> Vec<Text> {
        let mut lines = Vec::new();
        self.flush_locked(&mut lines);
        self.flush_all(&mut lines);
        lines
    }

    /// A call with its end behind it, or behind the first line of a command of several.
    fn call_lines(
        &self,
        at: Timestamp,
        mark: Option<(Mark, LineStyle)>,
        name: &str,
        call: &str,
        end: &str,
        lines: &mut Vec<Text>,
    ) {
        let (shown, more) = self.beginning(call.trim());
        let mut rest = shown.into_iter();
        let first = format!("{}{end}", rest.next().unwrap_or_default());
        lines.push(self.line(at, mark, name, &first));
        lines.extend(rest.chain(more).map(|line| self.below(&line)));
    }

    /// Text of several lines.
    fn block(&self, at: Timestamp, mark: Option<(Mark, LineStyle)>, name: &str, text: &str, lines: &mut Vec<Text>) {
        let (shown, more) = self.beginning(text);
        let mut rest = shown.into_iter();
        lines.push(self.line(at, mark, name, &rest.next().unwrap_or_default()));
        lines.extend(rest.chain(more).map(|line| self.below(&line)));
    }

    /// The lines of a text that are shown, and one that counts the others.
    fn beginning(&self, text: &str) -> (Vec<String>, Option<String>) {
        let lines = text.lines().map(str::trim_end);
        if !self.is_live || self.is_verbose {
            return (lines.map(str::to_owned).collect(), None);
        }
        let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        let (mut rows, mut shown) = (0, Vec::new());
        for line in &lines {
            let line = Text::default().plain(line).cut((ROWS - rows) * COLUMNS);
            rows += line.width().div_ceil(COLUMNS).max(1);
            shown.push(line.to_string());
            if rows >= ROWS {
                break;
            }
        }
        let more = lines.len() - shown.len();
        let more = (more > 0).then(|| format!("… {}; -v shows them", plural(more, "more line")));
        (shown, more)
    }

    fn at(&self, at: Timestamp) -> Text {
        if self.is_live {
            return Text::default();
        }
        let since = self.first.map_or(0, |first| seconds_between(first, at));
        Text::default().with(LineStyle::Faint, &format!("{:>5}", clock(since))).plain(" ")
    }

    fn line(&self, at: Timestamp, mark: Option<(Mark, LineStyle)>, name: &str, text: &str) -> Text {
        let line = match mark {
            Some((mark, style)) => self.at(at).with(style, mark.as_str()).plain(" "),
            None => self.at(at).plain("  "),
        };
        let name = format!("{name:<width$}", width = self.name);
        line.with(LineStyle::Strong, &name).plain("  ").hanging().plain(text)
    }

    /// A further line of what the line above shows.
    fn below(&self, text: &str) -> Text {
        let time = if self.is_live { 0 } else { 5 + 1 };
        Text::default().filled(time + 2 + self.name + 2).hanging().plain(text)
    }
}

/// `2.1 s`, then `0:42`.
fn took(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.1} s") } else { clock(seconds as u64) }
}

/// How many of the last seconds before `at` are in a span of time.
fn within((from, to): (Timestamp, Timestamp), seconds: f64, at: Timestamp) -> f64 {
    let before = |time: Timestamp| at.duration_since(time).as_secs_f64();
    (before(from).min(seconds) - before(to)).max(0.0)
}

fn seconds_between(start: Timestamp, end: Timestamp) -> u64 {
    end.as_second().saturating_sub(start.as_second()).max(0).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::End;

    fn told(events: &[(i64, &str, EventKind)]) -> Vec<String> {
        let mut story = Story::default();
        let mut lines = Vec::new();
        for (second, agent, kind) in events {
            let at = Timestamp::from_second(*second).expect("a time");
            lines.extend(story.see(at, Slug::fold(agent).as_ref(), Position::new(1, 1), kind));
        }
        lines.extend(story.rest());
        lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect()
    }

    fn says(text: &str) -> EventKind {
        EventKind::Message { text: text.to_owned() }
    }

    fn called(tool: &str, detail: &str, exit_code: Option<i64>, result: &str) -> EventKind {
        let (call, wrote, seconds) = (String::new(), None, 2.1);
        let ok = exit_code.unwrap_or(0) == 0;
        let (tool, detail, result) = (tool.to_owned(), detail.to_owned(), result.to_owned());
        EventKind::ToolCompleted { call, tool, ok, exit_code, seconds, detail, result, wrote }
    }

    #[test]
    fn reads_that_follow_each_other_are_one_line_and_come_before_what_follows_them() {
        let reads = ["a", "b", "c"].map(|path| (1, "ada", called("read", path, None, "")));
        let more = [(2, "bob", called("read", "x", None, "")), (3, "ada", says("Read."))];
        let end = [(4, "ada", EventKind::of_end(Outcome::Completed, End::default()))];
        assert_eq!(
            told(&[&reads[..], &more, &end].concat()),
            [" 0:00   ada  read 3 files: a, b and 1 more", " 0:02   ada  Read.", " 0:01   bob  read x"]
        );
    }

    /// Also where the record ends with them.
    #[test]
    fn lockouts_of_several_reviewers_are_told_apart() {
        let locked = |agent, by: &str| {
            let (reviewer, files) = (Slug::fold(by).expect("a slug"), vec!["a.txt".to_owned()]);
            (1, agent, EventKind::Lockout { reviewer, files })
        };
        assert_eq!(
            told(&[locked("ada", "rex"), locked("bob", "rex"), locked("ada", "sue")]),
            [
                " 0:00 ! squad  ada and bob may not revise what rex rejected",
                " 0:00 ! ada  may not revise what sue rejected"
            ]
        );
    }

    /// A refusal is told once: the end of that call is no second line. Whose call fails × who was refused.
    #[test]
    fn a_refusal_takes_the_place_of_that_agents_call_alone() {
        let refused = |agent| {
            let (tool, detail) = ("shell".to_owned(), "rm x".to_owned());
            (1, agent, EventKind::ToolDenied { tool, detail, reason: "a rule".to_owned() })
        };
        let failed = |agent| (2, agent, called("shell", "make", Some(2), "broken\n"));
        for (events, shown) in [
            (vec![refused("ada"), failed("ada")], 0),
            (vec![refused("ada"), failed("bob")], 1),
            (vec![refused("ada"), failed("bob"), failed("ada")], 1),
            (vec![refused("ada"), failed("ada"), failed("ada")], 1),
            (vec![refused("ada"), refused("bob"), failed("bob"), failed("ada")], 0),
        ] {
            let told = told(&events);
            assert_eq!(told.iter().filter(|line| line.contains("exit 2")).count(), shown, "{told:#?}");
        }
    }

    #[test]
    fn a_failed_command_has_the_end_of_its_output_and_an_allowed_one_says_so() {
        let asked = EventKind::PermissionAsked {
            tool: "shell".to_owned(),
            access: Access::Shell,
            detail: "make\ncheck".to_owned(),
        };
        let (tool, detail) = ("shell".to_owned(), "make\ncheck".to_owned());
        let answered = EventKind::PermissionAnswered { tool, detail, allowed: true, rule: None, reason: None };
        assert_eq!(
            told(&[
                (0, "ada", asked),
                (7, "ada", answered),
                (9, "ada", called("shell", "make\ncheck", Some(2), "1\n\n2\n3\n4\n")),
            ]),
            [
                " 0:09 ✗ ada  $ make    exit 2, 2.0 s    allowed once, after 0:07",
                "          check",
                "          2",
                "          3",
                "          4"
            ]
        );
    }

    /// The coordinator's choice is for squad, the answer comes once, and a refusal is not a failure, too.
    #[test]
    fn each_thing_is_told_once() {
        let denied = EventKind::ToolDenied {
            tool: "write".to_owned(),
            detail: "a".to_owned(),
            reason: "not allowed".to_owned(),
        };
        let failed = EventKind::ToolCompleted {
            call: String::new(),
            tool: "write".to_owned(),
            ok: false,
            exit_code: None,
            seconds: 0.0,
            detail: "a".to_owned(),
            result: "not allowed".to_owned(),
            wrote: None,
        };
        assert_eq!(
            told(&[
                (0, "coordinator", says("{\"agents\": [\"ada\"]}")),
                (1, "ada", denied),
                (1, "ada", failed),
                (2, "ada", says("It is done.")),
                (3, "", EventKind::Answer { text: "It is done.".to_owned() }),
            ]),
            [" 0:01 ✗ ada  write a    refused: not allowed"]
        );
    }
}
