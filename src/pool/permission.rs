//! Decides whether an agent may do something: by rule, by what a person has allowed with "always", or by asking one.

use super::always_allowed::{Rules, named};
use super::permission_judge::{Asked, PermissionJudge};
use super::proposal::{PROXY, proposal};
use super::requests::{INTERRUPTED, RequestHandler, Requester, in_project};
use crate::engine::Approval;
use crate::model::{Access, EventKind, Slug, list};
use crate::policy::{
    Answer, Answered, PermissionAnswer, Permissions, READS_GIT, Ruling, always_rules, only_reads_git, rule,
};

/// How a request was decided by a person.
struct Decided {
    is_allowed: bool,
    /// The "always" that it begins or falls under.
    rule: Option<String>,
    reason: Option<String>,
}

impl RequestHandler {
    pub(super) async fn permission(
        &self,
        requester: &Requester,
        access: Access,
        tool: &str,
        detail: &str,
    ) -> Option<Approval> {
        let judge = self.judge(requester);
        let asked = judge.asked(access, tool, detail);
        if let Some(reason) = self.never(requester, &judge, (&asked, detail)) {
            return Some(Approval::Deny(reason));
        }
        let (ruling, by_rule) = judge.ruling(&asked);
        Some(match ruling {
            Ruling::Deny(reason) => Approval::Deny(reason),
            Ruling::Ask => return self.ask_permission(requester, access, (tool, detail), by_rule.as_ref()).await,
            Ruling::Allow => {
                let rule = by_rule.filter(|_| rule(self.permissions, access, &asked.scope) != Ruling::Allow);
                if let Some(Answered { rule, .. }) = rule {
                    let (tool, detail, rule) = (tool.to_owned(), detail.to_owned(), Some(rule));
                    requester.tell(EventKind::PermissionAnswered { tool, detail, allowed: true, rule, reason: None });
                }
                Approval::Allow
            }
        })
    }

    /// Whether an agent's programs may reach a place that the sandbox does not list: by a rule of the user's, or because a
    /// person is asked. No mode allows it: the list is a bound, and not advice.
    pub(super) async fn reach(&self, requester: &Requester, place: &str) -> Approval {
        let judge = self.judge(requester);
        let scheme = if place.ends_with(":80") { "http" } else { "https" };
        let address = format!("{scheme}://{place}");
        let by_rule = judge.by_rule(&judge.asked(Access::Network, PROXY, &address));
        match by_rule.as_ref().map(|answered| answered.answer) {
            Some(Answer::Deny) => return Approval::Deny(by_rule.map(|by| by.reason()).unwrap_or_default()),
            Some(Answer::Allow) => return Approval::Allow,
            Some(Answer::Ask) | None => {}
        }
        let may_ask = self.permissions == Permissions::Ask && self.ask.is_some() && !requester.reads_only;
        let asked = match may_ask {
            true => self.ask_permission(requester, Access::Network, (PROXY, &address), by_rule.as_ref()).await,
            false => Some(Approval::Deny("it is not listed".to_owned())),
        };
        asked.unwrap_or_else(|| Approval::Deny(INTERRUPTED.to_owned()))
    }

    /// What judges the requests of an agent where it works.
    pub(super) fn judge<'r>(&'r self, requester: &'r Requester) -> PermissionJudge<'r> {
        PermissionJudge {
            rules: &self.policy,
            mode: self.permissions,
            agent: &requester.agent,
            tier: requester.tier,
            reads_only: requester.reads_only,
            project: self.project_of(requester),
            approved_files: &self.approved_files,
            attached: &self.attached,
        }
    }

    /// What `[policy]` says of one of squad's own tools.
    fn by_rule_on_own(&self, requester: &Requester, tool: &str, arguments: &str) -> Option<Answered> {
        let judge = self.judge(requester);
        judge.by_rule(&judge.asked(Access::Own, tool, arguments))
    }

    pub(super) fn denies_tool(&self, requester: &Requester, tool: &str) -> bool {
        self.by_rule_on_own(requester, tool, "").is_some_and(|answered| answered.answer == Answer::Deny)
    }

    /// Whether a rule lets an agent use one of squad's own tools, or a person does.
    pub(super) async fn own_tool(&self, requester: &Requester, tool: &str, arguments: &str) -> Result<(), String> {
        let approval = match self.by_rule_on_own(requester, tool, arguments) {
            Some(answered) if answered.answer == Answer::Deny => Approval::Deny(answered.reason()),
            Some(answered) if answered.answer == Answer::Ask => {
                let asked = self.ask_permission(requester, Access::Own, (tool, arguments), Some(&answered)).await;
                asked.ok_or(INTERRUPTED)?
            }
            _ => Approval::Allow,
        };
        let Approval::Deny(reason) = approval else { return Ok(()) };
        requester.note_refused(None);
        let (tool, detail) = (tool.to_owned(), arguments.to_owned());
        requester.tell(EventKind::ToolDenied { tool, detail, reason: reason.clone() });
        Err(reason)
    }

    /// Why no mode and no rule allows it.
    fn never(
        &self,
        requester: &Requester,
        judge: &PermissionJudge<'_>,
        (asked, detail): (&Asked<'_>, &str),
    ) -> Option<String> {
        // A server's tool may change anything.
        if requester.reads_only && matches!(asked.access, Access::Write | Access::Mcp) {
            return Some("agents that review, choose or answer may only read files".to_owned());
        }
        if let Some(reason) = judge.never(asked) {
            return Some(reason);
        }
        if asked.access == Access::Write && !self.locked.is_empty() {
            // The path as named, and where its links lead.
            let paths = [in_project(judge.project, detail), asked.written().map(str::to_owned)];
            let why = |path: String| self.locked.get(&(requester.agent.clone(), path));
            return paths.into_iter().flatten().find_map(why).cloned();
        }
        let is_refused = asked.access == Access::Shell
            && requester.is_reviewing()
            && !only_reads_git(detail)
            && !judge.only_reads(asked);
        is_refused.then(|| format!("reviewers may run only {READS_GIT}, without options that do more, and read files"))
    }

    /// Where a write of an agent leads, relative to the project's root with `/`; `None`: outside of it.
    pub(super) fn path_in_project(&self, requester: &Requester, path: &str) -> Option<String> {
        self.judge(requester).asked(Access::Write, "write", path).written().map(str::to_owned)
    }

    /// `by`: the rule that wants it. `None`: the run was interrupted before there was an answer.
    async fn ask_permission(
        &self,
        requester: &Requester,
        access: Access,
        (tool, detail): (&str, &str),
        by: Option<&Answered>,
    ) -> Option<Approval> {
        let agent = &requester.agent;
        let path = (access == Access::Write).then(|| self.path_in_project(requester, detail)).flatten();
        // Who wants to be asked about this is asked each time.
        let project = self.project_of(requester);
        let rules = if by.is_some() { None } else { always_rules(access, detail, path.as_deref(), project) };
        let answered = |decided: Decided| {
            let Decided { is_allowed: allowed, rule, reason } = decided;
            let (tool, detail) = (tool.to_owned(), detail.to_owned());
            requester.tell(EventKind::PermissionAnswered { tool, detail, allowed, rule, reason });
        };
        if let Some(by) = rules.as_ref().and_then(|rules| self.allowed.covering(agent, rules)) {
            answered(Decided { is_allowed: true, rule: Some(by), reason: None });
            return Some(Approval::Allow);
        }
        if !requester.may_ask(self.most_questions) {
            return Some(Approval::Deny(format!(
                "asked {} times in this piece of work, and `policy.questions` allows no more",
                self.most_questions
            )));
        }
        if let (Some(by), None) = (by, &self.ask) {
            return Some(Approval::Deny(format!(
                "the rule `{}` ({}) wants a person asked, and nobody is there",
                by.rule, by.source
            )));
        }
        let always = rules.as_ref().map(list);
        let writing = requester.announced(|writing| {
            writing.path == detail || path.is_some() && self.path_in_project(requester, &writing.path) == path
        });
        let asked = proposal(project, agent, (access, tool, detail), path.as_deref(), writing.as_ref(), always);
        requester.tell(EventKind::PermissionAsked { tool: tool.to_owned(), access, detail: detail.to_owned() });
        let _waits = requester.waits_for_person();
        let (approval, decided) = tokio::select! {
            biased;
            answer = self.ask_person(&requester.reports, Some(agent), asked.text(), Some(asked)) => {
                if answer.is_none() && self.cancel.is_set() {
                    return None;
                }
                self.decide_by(agent, rules.as_ref(), answer.as_deref().map(PermissionAnswer::parse))
            }
            by = self.allowed.covers(agent, rules.as_ref()) => {
                (Approval::Allow, Decided { is_allowed: true, rule: Some(by), reason: None })
            }
        };
        answered(decided);
        Some(approval)
    }

    fn decide_by(&self, agent: &Slug, rules: Option<&Rules>, answer: Option<PermissionAnswer>) -> (Approval, Decided) {
        let allow = |rule| (Approval::Allow, Decided { is_allowed: true, rule, reason: None });
        let deny = |said: String, reason| (Approval::Deny(said), Decided { is_allowed: false, rule: None, reason });
        let refused = || "the user refused it".to_owned();
        let whom = match &answer {
            Some(PermissionAnswer::ForAgent) => Some(agent),
            _ => None,
        };
        let is_kept = answer == Some(PermissionAnswer::Keep);
        match (answer, rules) {
            (Some(PermissionAnswer::Once), _) => allow(None),
            (Some(PermissionAnswer::ForAgent | PermissionAnswer::ForRun | PermissionAnswer::Keep), Some(rules)) => {
                self.allowed.add(whom, rules);
                if let (true, Some(keep)) = (is_kept, &self.keep) {
                    keep(rules.iter().map(ToString::to_string).collect());
                }
                allow(Some(named(whom, rules)))
            }
            (Some(PermissionAnswer::No(Some(why))), _) => deny(format!("{}: {why}", refused()), Some(why)),
            // There is no "always" for it.
            (Some(_), _) => deny(refused(), None),
            (None, _) => deny("there is nobody to ask".to_owned(), None),
        }
    }
}
