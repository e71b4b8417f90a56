//! Decides whether an agent may do something: by rule, by what a person has allowed with "always", or by asking one.

use std::path::Path;

use super::always_allowed::{Rules, named};
use super::proposal::proposal;
use super::requests::{INTERRUPTED, RequestHandler, Requester, in_project};
use crate::engine::Approval;
use crate::env::{follow, real};
use crate::model::{Access, EventKind, Slug, list};
use crate::policy::{
    Answer, Answered, PathScope, PermissionAnswer, Permissions, PolicyRequest, READS_GIT, Ruling, always_rules,
    forbidden, only_reads_git, reads_files, rule, ruling,
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
        if let Some(reason) = self.never(requester, access, detail) {
            return Some(Approval::Deny(reason));
        }
        let by_rule = self.by_rule(requester, access, tool, detail);
        let (place, scope) = self.read_from(requester, access, detail);
        if by_rule.is_none()
            && (place.is_some_and(|place| self.attached.contains(&place)) || self.only_reads(requester, access, detail))
        {
            return Some(Approval::Allow);
        }
        let may_only_read = requester.reads_only || self.permissions == Permissions::Deny;
        Some(match ruling(by_rule.as_ref(), (self.permissions, may_only_read), access, detail, &scope) {
            Ruling::Deny(reason) => Approval::Deny(reason),
            Ruling::Ask => return self.ask_permission(requester, access, (tool, detail), by_rule.as_ref()).await,
            Ruling::Allow => {
                let rule = by_rule.filter(|_| rule(self.permissions, access, &scope) != Ruling::Allow);
                if let Some(Answered { rule, .. }) = rule {
                    let (tool, detail, rule) = (tool.to_owned(), detail.to_owned(), Some(rule));
                    requester.tell(EventKind::PermissionAnswered { tool, detail, allowed: true, rule, reason: None });
                }
                Approval::Allow
            }
        })
    }

    /// What `[policy]` says.
    fn by_rule(&self, requester: &Requester, access: Access, tool: &str, detail: &str) -> Option<Answered> {
        let Requester { agent, tier, .. } = requester;
        let path = (access == Access::Write).then(|| self.path_in_project(requester, detail)).flatten();
        self.policy.answer(&PolicyRequest { agent, tier: *tier, access, tool, detail, path: path.as_deref() })
    }

    pub(super) fn denies_tool(&self, requester: &Requester, tool: &str) -> bool {
        self.by_rule(requester, Access::Own, tool, "").is_some_and(|answered| answered.answer == Answer::Deny)
    }

    /// Whether a rule lets an agent use one of squad's own tools, or a person does.
    pub(super) async fn own_tool(&self, requester: &Requester, tool: &str, arguments: &str) -> Result<(), String> {
        let approval = match self.by_rule(requester, Access::Own, tool, arguments) {
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
    fn never(&self, requester: &Requester, access: Access, detail: &str) -> Option<String> {
        // A server's tool may change anything.
        if requester.reads_only && matches!(access, Access::Write | Access::Mcp) {
            return Some("agents that review, choose or answer may read files, but not change them".to_owned());
        }
        if let Some(reason) = (access == Access::Write).then(|| self.git_refusal(requester, detail)).flatten() {
            return Some(reason);
        }
        if access == Access::Write && !self.approved_files.is_empty() {
            let path = self.path_in_project(requester, detail).filter(|path| self.approved_files.contains(path));
            if let Some(path) = path {
                return Some(format!(
                    "`{path}` runs as the user approved it with `squad trust`, and no tool changes it"
                ));
            }
        }
        if access == Access::Write && !self.locked.is_empty() {
            // The path as named, and where its links lead.
            let paths = [in_project(self.project_of(requester), detail), self.path_in_project(requester, detail)];
            let why = |path: String| self.locked.get(&(requester.agent.clone(), path));
            if let Some(why) = paths.into_iter().flatten().find_map(why) {
                return Some(why.clone());
            }
        }
        if access != Access::Shell {
            return None;
        }
        let by_role = || {
            let is_free = only_reads_git(detail) || self.only_reads(requester, access, detail);
            (requester.is_reviewing() && !is_free)
                .then(|| format!("reviewers may run only {READS_GIT}, without options that do more, and read files"))
        };
        forbidden(detail, self.project_of(requester)).or_else(by_role)
    }

    /// Where a path that is read really leads: a link in the project may point anywhere.
    fn read_from(&self, requester: &Requester, access: Access, detail: &str) -> (Option<String>, PathScope) {
        let project = real(Path::new(self.project_of(requester)));
        // An engine may read `~` as a shell does.
        let is_path = access == Access::Read && !detail.is_empty() && !detail.starts_with('~');
        let place = is_path.then(|| follow(&project.join(detail), |_| {})).flatten();
        let scope = place.as_ref().map_or(PathScope::Outside, |place| PathScope::of(place, &project));
        (place.map(|place| place.display().to_string()), scope)
    }

    /// Whether it is a command that only reads files of the project, which no mode forbids and no rule is about.
    pub(super) fn only_reads(&self, requester: &Requester, access: Access, detail: &str) -> bool {
        let is_free = |path: &String| {
            let is_inside = matches!(self.read_from(requester, Access::Read, path).1, PathScope::Project(_));
            is_inside && self.by_rule(requester, Access::Read, "view", path).is_none()
        };
        access == Access::Shell && reads_files(detail).is_some_and(|paths| paths.iter().all(is_free))
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
