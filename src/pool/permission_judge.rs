//! How a request for permission is judged before a person is asked about it: in a run, and by `squad policy test`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::env::{follow, real};
use crate::model::{Access, Slug, Tier, first_words};
use crate::policy::{
    Answered, PathScope, Permissions, PolicyRequest, PolicyRules, Ruling, forbidden, names_git, reads_files, ruling,
};
use crate::program::git_folders;

/// Who asks, where, and what holds there.
pub(crate) struct PermissionJudge<'j> {
    pub(crate) rules: &'j PolicyRules,
    pub(crate) mode: Permissions,
    pub(crate) agent: &'j Slug,
    pub(crate) tier: Tier,
    /// It reviews, chooses or answers.
    pub(crate) reads_only: bool,
    /// The root of the project where it works.
    pub(crate) project: &'j str,
    /// Files from there that run as the user approved them.
    pub(crate) approved_files: &'j BTreeSet<String>,
    /// Absolute paths of files that the user attached, which may always be read.
    pub(crate) attached: &'j BTreeSet<String>,
}

/// A request, and where a path in it really leads, which is looked up once.
pub(crate) struct Asked<'a> {
    pub(super) access: Access,
    tool: &'a str,
    detail: &'a str,
    /// `None`: its links go in a circle.
    place: Option<PathBuf>,
    /// [`PathScope::Outside`] for what is no path.
    pub(super) scope: PathScope,
}

impl Asked<'_> {
    /// Where a write leads, relative to the project's root with `/`; `None`: outside of it.
    pub(crate) fn written(&self) -> Option<&str> {
        match &self.scope {
            PathScope::Project(path) if self.access == Access::Write => Some(path),
            _ => None,
        }
    }
}

impl PermissionJudge<'_> {
    pub(crate) fn asked<'a>(&self, access: Access, tool: &'a str, detail: &'a str) -> Asked<'a> {
        // An engine may read `~` as a shell does.
        let is_read = access == Access::Read && !detail.is_empty() && !detail.starts_with('~');
        let (mut place, mut scope) = (None, PathScope::Outside);
        if is_read || access == Access::Write {
            let project = real(Path::new(self.project));
            // A link in the project may point anywhere.
            place = follow(&project.join(detail), |_| {});
            scope = place.as_ref().map_or(PathScope::Outside, |place| PathScope::of(place, &project));
        }
        Asked { access, tool, detail, place, scope }
    }

    /// Why no mode and no rule allows it.
    pub(crate) fn never(&self, asked: &Asked<'_>) -> Option<String> {
        match asked.access {
            Access::Shell => forbidden(asked.detail, self.project),
            Access::Write => self.git_refusal(asked).or_else(|| {
                let path = asked.written().filter(|path| self.approved_files.contains(*path))?;
                Some(format!("`{path}` runs as the user approved it with `squad trust`, and no tool changes it"))
            }),
            _ => None,
        }
    }

    /// What is done about a request that is never refused, and the rule about it.
    pub(crate) fn ruling(&self, asked: &Asked<'_>) -> (Ruling, Option<Answered>) {
        let by_rule = self.by_rule(asked);
        let is_attached = || {
            let place = asked.place.as_ref().filter(|_| asked.access == Access::Read);
            place.is_some_and(|place| self.attached.contains(&*place.to_string_lossy()))
        };
        if by_rule.is_none() && (is_attached() || self.only_reads(asked)) {
            return (Ruling::Allow, None);
        }
        let may_only_read = self.reads_only || self.mode == Permissions::Deny;
        let Asked { access, detail, scope, .. } = asked;
        (ruling(by_rule.as_ref(), (self.mode, may_only_read), *access, detail, scope), by_rule)
    }

    /// What `[policy]` says.
    pub(super) fn by_rule(&self, asked: &Asked<'_>) -> Option<Answered> {
        let Self { agent, tier, .. } = *self;
        let Asked { access, tool, detail, .. } = *asked;
        self.rules.answer(&PolicyRequest { agent, tier, access, tool, detail, path: asked.written() })
    }

    /// Whether it is a command that only reads files of the project, which no mode forbids and no rule is about.
    pub(super) fn only_reads(&self, asked: &Asked<'_>) -> bool {
        let is_free = |path: &String| {
            let read = self.asked(Access::Read, "view", path);
            matches!(read.scope, PathScope::Project(_)) && self.by_rule(&read).is_none()
        };
        asked.access == Access::Shell && reads_files(asked.detail).is_some_and(|paths| paths.iter().all(is_free))
    }

    /// Why no mode lets an agent write there: it is git's, as named or where links lead.
    pub(super) fn git_refusal(&self, asked: &Asked<'_>) -> Option<String> {
        let shown = || first_words(asked.detail, 100);
        let Some(place) = &asked.place else {
            return Some(format!("`{}` leads through a link that cannot be followed", shown()));
        };
        let is_inside = |folder: &PathBuf| place.starts_with(folder);
        let is_gits = names_git(asked.detail)
            || names_git(&place.to_string_lossy())
            || git_folders(Path::new(self.project)).iter().any(is_inside);
        is_gits.then(|| format!("`{}` is git's, which no tool may write in any mode; use `git`", shown()))
    }
}
