//! What squad knows of a command-line agent.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::arguments::Arguments;
use super::values::Values;
use crate::model::list;
use crate::settings::{Chats as ChatSource, EngineProfile, PromptWay, StateMode, StreamKind, ToolsWay};

/// How each is started, in the format that a user's own configuration has too.
static BUILT_IN: LazyLock<BTreeMap<String, EngineProfile>> = LazyLock::new(|| {
    // A test reads it too.
    toml::from_str(include_str!("profiles.toml")).unwrap_or_default()
});

/// A profile that is complete.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) program: String,
    pub(crate) arguments: Arguments,
    /// `None`: it has no mode in which it changes nothing.
    pub(crate) strict: Option<Vec<String>>,
    pub(crate) free: Vec<String>,
    pub(crate) chat: ChatSource,
    pub(crate) create_chat: Option<Arguments>,
    /// The program that makes a chat, if it is not the engine itself.
    pub(crate) create_program: Option<String>,
    pub(crate) is_stateful: bool,
    pub(crate) prompt: PromptWay,
    pub(crate) stream: StreamKind,
    pub(crate) env: Vec<String>,
    pub(crate) set: BTreeMap<String, String>,
    pub(crate) model: Option<String>,
    pub(crate) reads: Vec<String>,
    pub(crate) trusts_repository: bool,
    pub(crate) install: Option<String>,
    pub(crate) tools: Option<ServedTools>,
}

/// How a program gets tools of squad's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServedTools {
    pub(super) way: ToolsWay,
    /// It has others, with which it acts by itself.
    has_own: bool,
}

impl Profile {
    /// The names of those that are there: squad's own and the user's.
    pub(crate) fn names(users: &BTreeMap<String, EngineProfile>) -> Vec<String> {
        let own = ["claude", "codex", "gemini", "cursor", "opencode", "copilot-print"].map(str::to_owned);
        let others = users.keys().filter(|name| !own.contains(name)).cloned();
        own.iter().cloned().chain(others).collect()
    }

    /// `None`: there is none of that name. The error says what its table lacks.
    pub(crate) fn find(name: &str, users: &BTreeMap<String, EngineProfile>) -> Option<Result<Self, String>> {
        let users_own = users.get(name);
        let base = users_own.and_then(|own| own.like.as_deref()).unwrap_or(name);
        let built_in = BUILT_IN.get(base);
        if users_own.is_some_and(|own| own.like.is_some()) && built_in.is_none() {
            let known = list(BUILT_IN.keys().map(|name| format!("`{name}`")));
            return Some(Err(format!("is like `{base}`, which squad does not know; it knows {known}")));
        }
        let fields = match (users_own, built_in) {
            (None, None) => return None,
            (own, built_in) => own.cloned().unwrap_or_default().over(built_in.cloned().unwrap_or_default()),
        };
        Some(Self::complete(name, fields))
    }

    /// The one that squad brings for a program.
    pub(super) fn of_program(program: &str) -> Option<Self> {
        let (name, fields) = BUILT_IN.iter().find(|(_, fields)| fields.program.as_deref() == Some(program))?;
        Self::complete(name, fields.clone()).ok()
    }

    fn complete(name: &str, fields: EngineProfile) -> Result<Self, String> {
        if let Some(wrong) = fields.wrong {
            return Err(wrong);
        }
        let program = fields.program.ok_or("needs a `program`")?;
        let chat = fields.chat.unwrap_or(ChatSource::None);
        if chat == ChatSource::Command && fields.create_chat.is_none() {
            return Err("has its chats from a command and no `create_chat`".to_owned());
        }
        let stream = fields.stream.unwrap_or(StreamKind::Text);
        if chat == ChatSource::Answer && stream == StreamKind::Text {
            return Err("has its chats from its answers, and `stream` does not say how to read them".to_owned());
        }
        let arguments = Arguments::Listed(fields.args.unwrap_or_default());
        let prompt = fields.prompt.unwrap_or(match arguments.has_prompt() {
            true => PromptWay::File,
            false => PromptWay::Stdin,
        });
        if prompt == PromptWay::File && !arguments.has_prompt() {
            return Err(
                "has neither `{prompt}` nor `{task}` among its `args`, and does not read standard input".to_owned()
            );
        }
        let has_own_tools = fields.own_tools.unwrap_or(true);
        if !has_own_tools && (fields.tools.is_none() || !arguments.has_tools()) {
            return Err(
                "has no tools of its own, and is not told of squad's: it needs `tools`, and `{tools}` among its `args`"
                    .to_owned(),
            );
        }
        Ok(Self {
            name: name.to_owned(),
            about: fields.about.unwrap_or_else(|| format!("`{program}`, as your configuration starts it")),
            program,
            arguments,
            strict: fields.strict,
            free: fields.free.unwrap_or_default(),
            chat,
            create_chat: fields.create_chat.map(Arguments::Listed),
            create_program: None,
            is_stateful: chat != ChatSource::None && fields.state != Some(StateMode::Stateless),
            prompt,
            stream,
            env: fields.env.unwrap_or_default(),
            set: fields.set.unwrap_or_default(),
            model: fields.model,
            reads: fields.reads.unwrap_or_default(),
            trusts_repository: fields.trust_repository.unwrap_or(false),
            install: fields.install,
            tools: fields.tools.map(|way| ServedTools { way, has_own: has_own_tools }),
        })
    }

    /// The command line, for somebody to look at.
    pub(crate) fn preview(&self, values: &Values) -> Vec<String> {
        std::iter::once(self.program.clone()).chain(self.filled(&self.arguments, values)).collect()
    }

    /// The mode's arguments come first where the profile does not say where they belong.
    pub(super) fn filled(&self, arguments: &Arguments, values: &Values) -> Vec<String> {
        let mut filled = arguments.filled(values);
        if !arguments.has_mode() {
            filled.splice(0..0, values.mode.iter().cloned());
        }
        filled
    }

    /// Whether it acts by itself, and not through squad's tools alone.
    pub(super) fn has_own_tools(&self) -> bool {
        self.tools.is_none_or(|tools| tools.has_own)
    }

    /// What governs it, in words.
    pub(crate) fn governed(&self, is_free: bool) -> String {
        let flags = |flags: &[String]| match flags {
            [] => "as it starts by itself".to_owned(),
            flags => format!("`{}`", flags.join(" ")),
        };
        match (&self.arguments, is_free, &self.strict) {
            _ if !self.has_own_tools() => "squad's permissions: it acts through squad's tools alone".to_owned(),
            (Arguments::Template(_), ..) => "its command line alone, which is the user's own template".to_owned(),
            (_, true, _) => format!("its own mode for work ({})", flags(&self.free)),
            (_, false, Some(strict)) => format!("its own strictest mode ({})", flags(strict)),
            (_, false, None) => "nothing: it has no mode in which it changes nothing".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_profile_is_complete() {
        let names = Profile::names(&BTreeMap::new());
        assert_eq!(BUILT_IN.len(), names.len());
        assert_eq!(
            crate::settings::SESSION_ENGINES,
            crate::engine::EngineKind::ALL.map(crate::engine::EngineKind::name)
        );
        for name in names {
            let profile = Profile::find(&name, &BTreeMap::new()).expect(&name).expect(&name);
            assert!(profile.strict.is_some() && profile.install.is_some(), "{name}");
            assert_eq!(profile.prompt == PromptWay::File, profile.arguments.has_prompt(), "{name}");
        }
    }

    #[test]
    fn a_users_table_changes_what_it_names() {
        let users: BTreeMap<String, EngineProfile> = toml::from_str(
            "[claude]\nprogram = \"/opt/claude\"\n[mine]\nlike = \"codex\"\nmodel = \"m\"\n[odd]\nlike = \"none\"\n\
             [bare]\nargs = [\"x\"]\n",
        )
        .expect("tables");
        let find = |name| Profile::find(name, &users).expect("a profile");
        let claude = find("claude").expect("complete");
        assert_eq!((claude.program.as_str(), claude.stream), ("/opt/claude", StreamKind::Claude));
        let mine = find("mine").expect("complete");
        assert_eq!((mine.program.as_str(), mine.model.as_deref()), ("codex", Some("m")));
        assert!(find("odd").is_err() && find("bare").is_err());
        assert!(Profile::find("nobody", &users).is_none());
        assert_eq!(Profile::names(&users).len(), 9);
    }
}
