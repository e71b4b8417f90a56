//! A run for people: one line per event, a row for each agent at work, and the answer at the end.

use std::collections::{BTreeMap, BTreeSet};

use super::ask::{Output, Terminal};
use super::{Card, DETAIL, LineStyle, Screen, agent_line};
use crate::engine::EngineKind;
use crate::model::{
    End, Event, EventKind, NO_ENGINE, Outcome, Plan, PlanKind, SkippedFile, Slug, TakenSnapshot, Usage, Verdict,
    failure, first_line, indented, indented_beginning, list, plural,
};
use crate::pool::Show;

pub(crate) struct Lines<S> {
    screen: S,
    terminal: Terminal,
    card: Box<Card>,
    /// Each agent's latest message. It is shown when the agent continues. The last one is shown with the outcome, or is
    /// the answer.
    pending: BTreeMap<Slug, String>,
    /// Agents with a refused tool whose failure event is still to come and would repeat the news.
    refused: BTreeSet<Slug>,
    /// Agents whose engine calls squad's own tools outside of the run, which sees nothing of them but the calls.
    governed: BTreeSet<Slug>,
    /// The agent whose last message is the answer: a plan's only agent, else the coordinator.
    answering: Slug,
    /// The number of steps in the plan.
    steps: usize,
    /// No engine runs: squad answers from its files.
    is_alone: bool,
    has_engine: bool,
    may_change: bool,
}

impl<S: Screen> Lines<S> {
    pub(crate) fn new(screen: S) -> Self {
        Self {
            terminal: Terminal::new(&screen),
            screen,
            card: Box::default(),
            pending: BTreeMap::new(),
            refused: BTreeSet::new(),
            governed: BTreeSet::new(),
            answering: Slug::coordinator(),
            steps: 0,
            is_alone: false,
            has_engine: true,
            may_change: true,
        }
    }

    /// The terminal that questions are asked on.
    pub(crate) fn terminal(&self) -> Terminal {
        self.terminal.clone()
    }

    pub(super) fn into_screen(mut self) -> S {
        self.terminal.release(&mut self.screen);
        self.screen
    }

    fn line(&mut self, who: &str, style: LineStyle, text: &str) {
        self.terminal.queue(text.lines().map(|line| Output::Line(who.to_owned(), style, line.to_owned())));
        self.terminal.release(&mut self.screen);
    }

    pub(super) fn say(&mut self, text: &str) {
        self.line("squad", LineStyle::Faint, text);
    }

    fn say_pending(&mut self, agent: &Slug) {
        if let Some(text) = self.pending.remove(agent) {
            self.line(agent.as_str(), LineStyle::Plain, &text);
        }
    }

    /// The rows as they are shown.
    #[cfg(test)]
    pub(super) fn animated(&self) -> Vec<String> {
        self.terminal.rows()
    }

    fn run_event(&mut self, step: Option<u32>, kind: &EventKind) {
        match kind {
            EventKind::RunStarted { engine, permissions, attachments, .. } => {
                self.is_alone = engine == NO_ENGINE;
                self.may_change = permissions.as_deref() != Some("deny");
                if !attachments.is_empty() {
                    let paths = attachments.iter().map(|attachment| &attachment.path);
                    self.line("squad", LineStyle::Faint, &format!("attached: {}", list(paths)));
                }
            }
            EventKind::EngineStarted { engine, version, warm, .. } => self.engine_started(engine, version, *warm),
            EventKind::RunResumed { done, steps_done, steps, .. } => self.run_resumed(done, *steps_done, *steps),
            EventKind::RoutePlanned(plan) => self.route_planned(plan),
            EventKind::StepStarted { agents } if self.steps > 1 => {
                let step = step.unwrap_or(1);
                self.line("squad", LineStyle::Plain, &format!("step {step} of {}: {}", self.steps, list(agents)));
            }
            EventKind::EngineFallback { from, to, reason } => {
                self.line(
                    "squad",
                    LineStyle::Warning,
                    &format!("{from} cannot start ({reason}); falling back to {to}"),
                );
            }
            EventKind::SandboxWeaker { level, reason } => {
                self.line(
                    "squad",
                    LineStyle::Warning,
                    &format!("the agents' sandbox is only `{level}` here: {reason}"),
                );
            }
            // The error message that follows says why.
            EventKind::ConnectionFailed { .. } => self.has_engine = false,
            EventKind::SessionError { .. }
            | EventKind::CancelRequested { .. }
            | EventKind::ConnectionLost { .. }
            | EventKind::ConnectionRestored { .. } => {
                if let Some((style, text)) = agent_line(kind) {
                    self.line("squad", style, &text);
                }
            }
            EventKind::SnapshotTaken(TakenSnapshot { left_out, .. }) if !left_out.is_empty() => {
                let name = |left: &SkippedFile| format!("{} ({})", left.path, left.why);
                let shown = list(left_out.iter().take(3).map(name));
                let more = left_out.len().saturating_sub(3);
                let more = if more > 0 { format!(", and {more} more") } else { String::new() };
                self.line("squad", LineStyle::Faint, &format!("left out of the snapshot: {shown}{more}"));
            }
            EventKind::RunCompleted { .. } if self.has_engine => {
                // The message turned out not to be the answer.
                let answering = self.answering.clone();
                self.say_pending(&answering);
                self.terminal.queue([Output::Card(self.card.lines(self.screen.columns()))]);
                self.terminal.release(&mut self.screen);
            }
            _ => {}
        }
    }

    fn engine_started(&mut self, engine: &str, version: &str, is_warm: bool) {
        let text = match EngineKind::parse(engine) {
            Some(EngineKind::Rehearsal) => "the rehearsal engine: a script plays, no model is asked".to_owned(),
            _ => format!("engine {engine} {version}"),
        };
        let ready = if is_warm { ", ready under `squad watch`" } else { "" };
        self.line("squad", LineStyle::Faint, &format!("{text}{ready}"));
        if !self.may_change {
            let text = "nothing may be changed: writes and commands are refused; \
                        `--permissions allow` lets agents make them";
            self.line("squad", LineStyle::Warning, text);
        }
    }

    fn run_resumed(&mut self, done: &[Slug], steps_done: usize, steps: usize) {
        let text = if done.is_empty() {
            "nothing of it is done yet".to_owned()
        } else {
            format!("{} completed before", list(done))
        };
        self.steps = steps;
        let is_in_steps = steps > 1 && steps_done < steps;
        let position = if is_in_steps { format!(" with step {} of {steps}", steps_done + 1) } else { String::new() };
        self.line("squad", LineStyle::Plain, &format!("the run goes on{position}: {text}"));
    }

    fn route_planned(&mut self, plan: &Plan) {
        self.steps = plan.steps.len();
        self.answering = match &plan.agents[..] {
            [agent] => agent.clone(),
            _ => Slug::coordinator(),
        };
        let why = plan.evidence.first().map(|evidence| format!(" ({}: {})", evidence.source, evidence.why));
        let text = match plan.kind {
            PlanKind::Agents => {
                format!("{}; tier {}{}", plan.summary(Slug::to_string), plan.tier, why.unwrap_or_default())
            }
            PlanKind::Direct if self.is_alone => "answered from the team's files and its ledger".to_owned(),
            PlanKind::Direct => "the coordinator answers".to_owned(),
            PlanKind::Abstain if !plan.agents.is_empty() => format!("asks before it starts {}", list(&plan.agents)),
            PlanKind::Abstain => "routing is not sure; the coordinator chooses".to_owned(),
        };
        self.line("squad", LineStyle::Plain, &text);
        if let Some(text) = plan.left_to_people() {
            self.line("squad", LineStyle::Plain, &text);
        }
    }

    fn agent_event(&mut self, agent: &Slug, kind: &EventKind) {
        let who = agent.as_str();
        match kind {
            EventKind::Message { text } => {
                self.say_pending(agent);
                self.pending.insert(agent.clone(), text.clone());
            }
            EventKind::ToolStarted { .. } => self.say_pending(agent),
            EventKind::ToolCompleted { tool, ok, exit_code, detail, result, .. } => {
                self.tool_completed(agent, tool, (*ok, *exit_code), (detail, result));
            }
            EventKind::ToolDenied { tool, detail, reason } => {
                self.refused.insert(agent.clone());
                let text = self.call_and_end(tool, detail, &format!("was refused: {reason}"));
                self.line(who, LineStyle::Warning, &text);
            }
            EventKind::ReviewVerdict { verdict, authors, .. } => self.review_verdict(agent, *verdict, authors),
            // There was nothing to revise.
            EventKind::Lockout { files, .. } if files.is_empty() => {}
            EventKind::Lockout { reviewer, .. } => {
                self.line(who, LineStyle::Warning, &format!("may not revise what {reviewer} rejected"));
            }
            EventKind::Completed(end) => {
                if *agent != self.answering {
                    self.say_pending(agent);
                }
                self.line(
                    who,
                    LineStyle::Good,
                    &format!("completed, {}", spent_and_remarks(&end.usage, end.remarks())),
                );
            }
            kind => {
                if matches!(kind, EventKind::EngineGoverned { .. }) {
                    self.governed.insert(agent.clone());
                }
                if let Some((style, text)) = agent_line(kind) {
                    self.line(who, style, &text);
                } else if let Some((outcome, end)) = kind.end() {
                    let (first, rest) = (std::iter::once(end.reason.clone()), end.remarks());
                    // The reason of a claim says that no tool was used.
                    let rest = rest.into_iter().filter(|_| outcome != Outcome::Claimed);
                    self.ended(agent, &format!("{outcome}: {}", first.chain(rest).collect::<Vec<_>>().join(", ")));
                }
            }
        }
        if let Some((_, End { git, .. })) = kind.end()
            && !git.is_empty()
        {
            self.line(who, LineStyle::Warning, &format!("changed git: {git}"));
        }
        if let Some((_, End { left_running, .. })) = kind.end()
            && !left_running.is_empty()
        {
            let named = first_line(&list(left_running), DETAIL);
            let what = if left_running.len() == 1 {
                "1 process".to_owned()
            } else {
                format!("{} processes", left_running.len())
            };
            self.line(who, LineStyle::Warning, &format!("left {what} running, now stopped: {named}"));
        }
    }

    fn tool_completed(
        &mut self,
        agent: &Slug,
        tool: &str,
        (ok, exit_code): (bool, Option<i64>),
        (detail, result): (&str, &str),
    ) {
        // Other engines' calls of squad's own tools show up as other events.
        if ok && (!tool.starts_with("squad_") || self.governed.contains(agent)) {
            let call = self.call(tool, detail);
            self.line(agent.as_str(), LineStyle::Faint, &call);
        } else if !ok && !self.refused.remove(agent) {
            let text = self.call_and_end(tool, detail, &failure(exit_code, result));
            self.line(agent.as_str(), LineStyle::Warning, &text);
        }
    }

    fn call(&self, tool: &str, detail: &str) -> String {
        let shown = match self.screen.is_verbose() {
            true => indented(detail),
            false => indented_beginning(detail, DETAIL, "-v shows them"),
        };
        format!("{tool} {shown}").trim_end().to_owned()
    }

    /// The end of a call stands on a line of its own if its command has several.
    fn call_and_end(&self, tool: &str, detail: &str, end: &str) -> String {
        let call = self.call(tool, detail);
        let gap = if call.contains('\n') { '\n' } else { ' ' };
        format!("{call}{gap}{end}")
    }

    fn review_verdict(&mut self, reviewer: &Slug, verdict: Verdict, authors: &[Slug]) {
        let (style, word) = match verdict {
            Verdict::Approved => (LineStyle::Good, "approves"),
            Verdict::Rejected => (LineStyle::Bad, "rejects"),
            Verdict::Unclear => (LineStyle::Warning, "gives no clear verdict on"),
        };
        if authors.is_empty() {
            // A review of what was there before is the answer.
            return self.line(reviewer.as_str(), style, &format!("{word} it"));
        }
        if verdict == Verdict::Rejected {
            // Rejected work is not the answer; the coordinator writes one.
            let author = std::mem::replace(&mut self.answering, Slug::coordinator());
            self.say_pending(&author);
        }
        self.line(reviewer.as_str(), style, &format!("{word} the work of {}", list(authors)));
    }

    fn ended(&mut self, agent: &Slug, text: &str) {
        self.say_pending(agent);
        self.line(agent.as_str(), LineStyle::Bad, text);
    }
}

impl<S: Screen> Show for Lines<S> {
    fn show(&mut self, event: &Event) {
        self.card.see(event.at, Some(&event.run), event.agent.as_ref(), event.position, &event.kind);
        self.terminal.see(event);
        match (&event.agent, &event.kind) {
            (_, EventKind::Answer { text }) => {
                if self.pending.get(&self.answering).is_some_and(|pending| pending == text) {
                    self.pending.remove(&self.answering);
                }
                self.terminal.queue([Output::Answer(text.clone())]);
                self.terminal.release(&mut self.screen);
            }
            (Some(agent), kind) => self.agent_event(agent, kind),
            (None, kind) => self.run_event(event.position.step, kind),
        }
    }
}

fn spent_and_remarks(usage: &Usage, remarks: Vec<String>) -> String {
    std::iter::once(spent(usage)).chain(remarks).collect::<Vec<_>>().join(", ")
}

fn spent(usage: &Usage) -> String {
    let mut parts = vec![format!("{:.1} s", usage.seconds)];
    if usage.tool_calls > 0 {
        parts.push(plural(usage.tool_calls as usize, "tool call"));
    }
    if usage.refused > 0 {
        parts.push(format!("{} refused", usage.refused));
    }
    if usage.input_tokens + usage.output_tokens > 0 {
        parts.push(format!("{} tokens in, {} out", usage.input_tokens, usage.output_tokens));
    }
    if let Some(cost) = usage.cost_usd {
        parts.push(format!("${cost:.2}"));
    }
    parts.join(", ")
}
