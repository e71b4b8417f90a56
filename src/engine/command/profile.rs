//! Profiles: how to start each command-line agent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use super::arguments::Arguments;
use super::values::Values;
use crate::engine::releases::is_package;
use crate::engine::{Capabilities, Capability, EngineError, EngineHosts};
use crate::env::files::read_within;
use crate::env::real;
use crate::model::{HostPattern, HostPort, SandboxLevel, list};
use crate::program::{Variables, variable};
use crate::settings::{
    Chats as ChatSource, EngineProfile, Loopback, PromptWay, SessionProtocol, StateMode, StreamKind, ToolsWay,
};

/// The built-in profiles, in the format of the user's own configuration.
static BUILT_IN: LazyLock<Vec<(String, EngineProfile)>> = LazyLock::new(|| {
    // A test checks that it parses.
    let table: toml::Table = toml::from_str(include_str!("profiles.toml")).unwrap_or_default();
    let read = table.into_iter().filter_map(|(name, fields)| Some((name, fields.try_into().ok()?)));
    let all: Vec<(String, EngineProfile)> = read.collect();
    let base = |fields: &EngineProfile| {
        let base = all.iter().find(|(name, _)| Some(name) == fields.like.as_ref());
        base.map(|(_, fields)| fields.clone()).unwrap_or_default()
    };
    all.iter().map(|(name, fields)| (name.clone(), fields.clone().over(base(fields)))).collect()
});

fn built_in(name: &str) -> Option<&'static EngineProfile> {
    BUILT_IN.iter().find(|(other, _)| other == name).map(|(_, fields)| fields)
}

/// A complete profile. See [`EngineProfile`] for its fields.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) program: String,
    /// See [`EngineProfile`].
    pub(crate) protocol: Option<SessionProtocol>,
    pub(crate) arguments: Arguments,
    /// `None`: it has no read-only mode.
    pub(crate) strict: Option<Vec<String>>,
    pub(crate) free: Vec<String>,
    /// See [`EngineProfile`].
    pub(crate) inside: Option<Vec<String>>,
    pub(super) home: Vec<String>,
    pub(super) settings: Vec<String>,
    /// See [`EngineProfile`].
    pub(super) endpoint: Vec<String>,
    pub(super) hosts: Vec<String>,
    pub(crate) chat: ChatSource,
    pub(crate) create_chat: Option<Arguments>,
    /// The program that creates a chat, if it is another one.
    pub(crate) create_program: Option<String>,
    pub(crate) is_stateful: bool,
    pub(crate) prompt: PromptWay,
    pub(crate) stream: StreamKind,
    pub(crate) env: Vec<String>,
    pub(crate) set: BTreeMap<String, String>,
    pub(crate) model: Option<String>,
    pub(crate) reads: Vec<String>,
    pub(crate) trusts_repository: bool,
    /// See [`EngineProfile`].
    pub(crate) package: Option<String>,
    pub(crate) install: Option<String>,
    pub(super) login: Option<Login>,
    pub(crate) tools: Option<ServedTools>,
    /// See [`EngineProfile`].
    pub(crate) loopback: Option<Loopback>,
}

/// How to find out whether a program is logged in. See [`EngineProfile`].
#[derive(Clone, Debug)]
pub(super) struct Login {
    /// `None`: what is not seen may be there.
    pub(super) how: Option<String>,
    pub(super) check: Vec<String>,
    by: Vec<String>,
}

fn login(how: Option<String>, check: Option<Vec<String>>, by: Option<Vec<String>>) -> Option<Login> {
    let is_known = how.is_some() || check.is_some() || by.is_some();
    is_known.then(|| Login { how, check: check.unwrap_or_default(), by: by.unwrap_or_default() })
}

impl Login {
    /// Whether there is something that makes a login unnecessary.
    pub(super) fn is_unnecessary(&self, variables: &Variables) -> bool {
        let has_word = |path: &str, word: &str| {
            let text = expanded(path, variables).and_then(|path| read_within(&path, LARGEST_SETTINGS).ok()?.ok());
            text.is_some_and(|text| String::from_utf8_lossy(&text).contains(word))
        };
        self.by.iter().any(|by| match (by.strip_prefix('$'), by.split_once('#')) {
            (_, Some((path, word))) => has_word(path, word),
            (Some(name), None) if !name.contains('/') => {
                variable(variables, name).is_some_and(|value| !value.is_empty())
            }
            _ => expanded(by, variables).is_some_and(|path| path.exists()),
        })
    }
}

/// What an entry of a list of hosts names; `None`: it is not there.
fn places(entry: &str, variables: &Variables) -> Option<Vec<HostPattern>> {
    let of_url = |url: &str| HostPort::of_url(url).map(HostPattern::from);
    if let Some((path, word)) = entry.split_once('#') {
        let text = read_within(&expanded(path, variables)?, LARGEST_SETTINGS).ok()?.ok()?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let behind = |(at, _): (usize, &str)| {
            // `word = "…"`, `"word": "…"`
            let value = text.get(at + word.len()..)?.trim_start_matches(['"', ' ', '=', ':', '\'']);
            of_url(value.split(['"', '\'', '\n', '\r', ' ']).next()?)
        };
        let found: Vec<HostPattern> = text.match_indices(word).filter_map(behind).collect();
        return Some(found).filter(|found| !found.is_empty());
    }
    if let Some(name) = entry.strip_prefix('$') {
        let value = variable(variables, name).filter(|value| !value.is_empty())?;
        // One that is no address says that the models are elsewhere.
        return Some(of_url(&value.to_string_lossy()).into_iter().collect());
    }
    HostPattern::parse(entry).ok().map(|host| vec![host])
}

/// The largest file of settings that is searched for a word, in bytes.
const LARGEST_SETTINGS: u64 = 1 << 20;

/// How a program gets squad's tools.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServedTools {
    pub(super) way: ToolsWay,
    /// It also has tools of its own, which squad does not control.
    has_own: bool,
}

impl Profile {
    /// The names of the built-in profiles and the user's.
    pub(crate) fn names(users: &BTreeMap<String, EngineProfile>) -> Vec<String> {
        let others = users.keys().filter(|name| built_in(name).is_none());
        BUILT_IN.iter().map(|(name, _)| name).chain(others).cloned().collect()
    }

    /// The profile of a name, with the user's table over the built-in one. The error says what is wrong with the table.
    pub(crate) fn find(name: &str, users: &BTreeMap<String, EngineProfile>) -> Option<Result<Self, String>> {
        let table = users.get(name);
        let base = table.and_then(|table| table.like.as_deref()).unwrap_or(name);
        let built_in = built_in(base);
        if table.is_some_and(|table| table.like.is_some()) && built_in.is_none() {
            let known = list(BUILT_IN.iter().map(|(name, _)| format!("`{name}`")));
            return Some(Err(format!("names `{base}` in `like`, which is not a built-in engine; those are {known}")));
        }
        // As the user's table says, also if the built-in profile has another way by now.
        let one_shot = table.filter(|table| table.is_one_shot()).and(built_in);
        let built_in = one_shot.and_then(|fields| self::built_in(fields.like.as_deref()?)).or(built_in);
        let fields = match (table, built_in) {
            (None, None) => return None,
            (table, built_in) => table.cloned().unwrap_or_default().over(built_in.cloned().unwrap_or_default()),
        };
        Some(Self::complete(name, fields))
    }

    /// The built-in profile of a program.
    pub(super) fn of_program(program: &str) -> Option<Self> {
        let (name, fields) = BUILT_IN.iter().find(|(_, fields)| fields.program.as_deref() == Some(program))?;
        Self::complete(name, fields.clone()).ok()
    }

    fn complete(name: &str, fields: EngineProfile) -> Result<Self, String> {
        if let Some(wrong) = fields.wrong {
            return Err(wrong);
        }
        let program = fields.program.ok_or("needs a `program`")?;
        if let Some(package) = fields.package.as_ref().filter(|package| !is_package(package)) {
            return Err(format!("names `{package}` in `package`, which is no name of an npm package"));
        }
        let chat = fields.chat.unwrap_or(ChatSource::None);
        if chat == ChatSource::Command && fields.create_chat.is_none() {
            return Err("gets its chats from a command but has no `create_chat`".to_owned());
        }
        let stream = fields.stream.unwrap_or(StreamKind::Text);
        if chat == ChatSource::Answer && stream == StreamKind::Text {
            return Err("gets its chats from its answers but has no `stream` to read them by".to_owned());
        }
        let arguments = Arguments::Listed(fields.args.unwrap_or_default());
        let prompt = fields.prompt.unwrap_or(match arguments.has_prompt() {
            true => PromptWay::File,
            false => PromptWay::Stdin,
        });
        if prompt == PromptWay::File && !arguments.has_prompt() {
            return Err("has no `{prompt}` or `{task}` in its `args` and does not read standard input".to_owned());
        }
        let has_own_tools = fields.own_tools.unwrap_or(true);
        if !has_own_tools && (fields.tools.is_none() || !arguments.has_tools()) {
            return Err(
                "has no tools of its own, so it needs squad's: set `tools`, and put `{tools}` in its `args`".to_owned()
            );
        }
        Ok(Self {
            name: name.to_owned(),
            about: fields.about.unwrap_or_else(|| format!("`{program}`, as your configuration starts it")),
            program,
            protocol: fields.protocol,
            arguments,
            strict: fields.strict,
            free: fields.free.unwrap_or_default(),
            inside: fields.inside,
            home: fields.home.unwrap_or_default(),
            settings: fields.settings.unwrap_or_default(),
            endpoint: fields.endpoint.unwrap_or_default(),
            hosts: fields.hosts.unwrap_or_default(),
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
            install: fields.install.or_else(|| Some(format!("npm install -g {}", fields.package.as_ref()?))),
            package: fields.package,
            login: login(fields.login, fields.login_check, fields.login_by),
            tools: fields.tools.map(|way| ServedTools { way, has_own: has_own_tools }),
            loopback: fields.loopback,
        })
    }

    /// The same for the same profile.
    pub(crate) fn fingerprint(&self) -> String {
        blake3::hash(format!("{self:?}").as_bytes()).to_hex()[..16].to_owned()
    }

    /// What the program calls a model; `None`: it is not known to be one of its own. Charters spell Anthropic's models as
    /// Copilot does, with a dot.
    pub(super) fn own_model(&self, id: &str) -> Option<String> {
        let way = self.tools.as_ref().map(|tools| tools.way);
        let dashed = || id.replace('.', "-");
        match (self.stream, id.split('-').next()?) {
            (StreamKind::Claude, "claude") if way == Some(ToolsWay::Claude) => Some(dashed()),
            (StreamKind::Codex, "gpt") | (StreamKind::Gemini, "gemini") => Some(id.to_owned()),
            (StreamKind::Opencode, "claude") => Some(format!("anthropic/{}", dashed())),
            (StreamKind::Opencode, "gpt") => Some(format!("openai/{id}")),
            (StreamKind::Opencode, "gemini") => Some(format!("google/{id}")),
            _ => None,
        }
    }

    /// Where it keeps its login and its sessions. Folders are made: what is not there cannot be allowed.
    pub(super) fn home_paths(&self, variables: &Variables) -> Vec<PathBuf> {
        let named = |path: &str| path.starts_with('$') && expanded(path, variables).is_some();
        let is_moved = self.home.iter().any(|path| named(path));
        for path in self.home.iter().filter(|path| path.ends_with('/') && (!is_moved || named(path))) {
            // One that cannot be made is missing for the program as well, which says so.
            let _ = expanded(path, variables).map(std::fs::create_dir_all);
        }
        self.home.iter().filter_map(|path| expanded(path, variables)).collect()
    }

    /// What it may only read there.
    pub(super) fn settings_paths(&self, variables: &Variables) -> Vec<PathBuf> {
        self.settings.iter().filter_map(|path| expanded(path, variables)).collect()
    }

    /// Where all engines keep their logins and sessions.
    pub(crate) fn homes(users: &BTreeMap<String, EngineProfile>, variables: &Variables) -> Vec<PathBuf> {
        let profiles = BUILT_IN.iter().map(|(_, fields)| fields).chain(users.values());
        let paths = profiles.flat_map(|fields| fields.home.iter().flatten());
        paths.filter_map(|path| expanded(path, variables)).collect()
    }

    /// The whole command line, for display.
    pub(crate) fn preview(&self, values: &Values) -> Vec<String> {
        std::iter::once(self.program.clone()).chain(self.expand(&self.arguments, values)).collect()
    }

    /// The command line that creates a chat, for display.
    pub(crate) fn preview_of_chat(&self, values: &Values) -> Option<Vec<String>> {
        let arguments = self.create_chat.as_ref().filter(|_| self.is_stateful && self.chat == ChatSource::Command)?;
        let program = self.create_program.as_ref().unwrap_or(&self.program);
        Some(std::iter::once(program.clone()).chain(arguments.expand(values)).collect())
    }

    /// The mode's arguments come first if they have no placeholder.
    pub(super) fn expand(&self, arguments: &Arguments, values: &Values) -> Vec<String> {
        let mut expanded = arguments.expand(values);
        if !arguments.has_mode() {
            expanded.splice(0..0, values.mode.iter().cloned());
        }
        expanded
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        if let Some(protocol) = self.protocol {
            return Capabilities::of(protocol);
        }
        let has_stream = self.stream != StreamKind::Text;
        let can = [
            (Capability::Resume, self.is_stateful),
            (Capability::Tools, self.tools.is_some()),
            (Capability::Usage, has_stream),
            (Capability::Models, self.arguments.has_model()),
            (Capability::Sandbox, true),
        ];
        Capabilities::from_iter(can.into_iter().filter(|(_, can)| *can).map(|(capability, _)| capability))
    }

    /// Whether it tells tokens, and what they cost.
    pub(in crate::engine) fn tells_usage(&self) -> [bool; 2] {
        let is_claude = self.protocol == Some(SessionProtocol::Claude);
        let tells_cost = is_claude || matches!(self.stream, StreamKind::Claude | StreamKind::Opencode);
        [self.capabilities().has(Capability::Usage), tells_cost]
    }

    /// How to log in, for people.
    pub(in crate::engine) fn login_hint(&self) -> Option<&str> {
        self.login.as_ref()?.how.as_deref()
    }

    /// Whether it can act without squad's tools.
    pub(crate) fn has_own_tools(&self) -> bool {
        self.tools.is_none_or(|tools| tools.has_own)
    }

    /// Whether its output contains its tool calls. Calls of squad's tools report themselves.
    pub(super) fn reports_tools(&self) -> bool {
        self.stream != StreamKind::Text || !self.has_own_tools()
    }

    /// Whether it reports its tools, but not which calls its mode refuses.
    pub(super) fn hides_refusals(&self) -> bool {
        self.stream == StreamKind::Codex && self.has_own_tools()
    }

    /// Fails if it must ask before it acts and can neither do that nor be kept from acting.
    pub(crate) fn require_mode(&self, is_unrestricted: bool) -> Result<(), EngineError> {
        if is_unrestricted || self.strict.is_some() || !self.has_own_tools() {
            return Ok(());
        }
        let name = &self.name;
        Err(EngineError::Unusable {
            reason: format!("{name} does not ask before it acts and has no read-only mode"),
            hint: Some(format!(
                "use `--permissions allow`, or set `engines.{name}.strict` in your own configuration to the arguments of a \
                 read-only mode"
            )),
        })
    }

    /// The hosts that it needs.
    pub(in crate::engine) fn hosts(&self, variables: &Variables) -> EngineHosts {
        let mut own = variables.clone();
        own.extend(self.set.iter().map(|(name, value)| (name.into(), value.into())));
        let named = |entry: &String| places(entry, &own);
        let found = self.endpoint.iter().find_map(named).unwrap_or_default();
        let others = self.hosts.iter().filter_map(named).flatten();
        let others = found.iter().skip(1).cloned().chain(others).collect();
        let endpoint = found.into_iter().next().and_then(|pattern| pattern.place());
        EngineHosts { endpoint, others }
    }

    /// The arguments of the mode that it works in, in squad's sandbox of this level.
    pub(crate) fn mode(&self, is_unrestricted: bool, level: SandboxLevel) -> Vec<String> {
        match &self.inside {
            Some(inside) if level != SandboxLevel::Rules => inside.clone(),
            _ if is_unrestricted => self.free.clone(),
            _ => self.strict.clone().unwrap_or_default(),
        }
    }

    /// The model for an agent of which this is chosen, as the engine calls it, if it `applies` to this engine; otherwise
    /// the profile's.
    pub(crate) fn model_for(&self, id: &str, applies: bool) -> String {
        match self.own_model(id) {
            _ if !applies => self.model.clone().unwrap_or_default(),
            Some(own) => own,
            None => id.to_owned(),
        }
    }

    /// Describes what governs its actions in squad's sandbox of this level. `is_unrestricted`: it may act without asking.
    pub(crate) fn governed(&self, is_unrestricted: bool, level: SandboxLevel) -> String {
        let flags = |flags: &[String]| match flags {
            [] => "its default".to_owned(),
            flags => format!("`{}`", flags.join(" ")),
        };
        match (&self.arguments, is_unrestricted, &self.strict) {
            _ if self.inside.is_some() && level != SandboxLevel::Rules => match is_unrestricted {
                true => format!("squad's sandbox (`{level}`)"),
                false => format!("squad's sandbox (`{level}`), where it cannot write in the project"),
            },
            _ if !self.has_own_tools() => "squad's permissions: it acts only through squad's tools".to_owned(),
            (Arguments::Template(_), false, Some(strict)) => format!(
                "only its command line, the user's own template, which `engines.{}.strict` ({}) calls read-only",
                self.name,
                flags(strict)
            ),
            (Arguments::Template(_), true, _) => "only its command line, the user's own template".to_owned(),
            (_, true, _) => format!("its own mode for work ({})", flags(&self.free)),
            (_, false, Some(strict)) if strict.is_empty() && built_in(&self.name).is_none() => {
                format!("its default mode, which `engines.{}.strict` calls read-only", self.name)
            }
            (_, false, Some(strict)) => format!("its own strictest mode ({})", flags(strict)),
            (_, false, None) => "nothing: it has no read-only mode".to_owned(),
        }
    }
}

/// An absolute path; `None`: a variable is not set.
fn expanded(path: &str, variables: &Variables) -> Option<PathBuf> {
    let (name, rest) = match path.strip_prefix('$') {
        Some(path) => path.split_once('/').unwrap_or((path, "")),
        None => match path.strip_prefix("~/") {
            Some(rest) => ("HOME", rest),
            None => return Some(PathBuf::from(path)).filter(|path| path.is_absolute()),
        },
    };
    let folder = Path::new(variable(variables, name)?);
    let path = if rest.is_empty() { folder.to_owned() } else { folder.join(rest) };
    path.is_absolute().then(|| real(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_have_names_of_their_own_for_models() {
        let of = |engine: &str, id: &str| {
            Profile::find(engine, &BTreeMap::new()).expect("it is built in").expect("it is whole").own_model(id)
        };
        for (engine, id, own) in [
            ("claude", "claude-opus-4.5", Some("claude-opus-4-5")),
            ("claude", "gpt-5.2", None),
            ("codex", "gpt-5.2", Some("gpt-5.2")),
            ("codex", "claude-opus-4.5", None),
            ("gemini", "gemini-2.5-flash", Some("gemini-2.5-flash")),
            ("opencode", "claude-opus-4.5", Some("anthropic/claude-opus-4-5")),
            ("opencode", "gpt-5.2", Some("openai/gpt-5.2")),
            ("opencode", "fake-1", None),
            ("cursor", "claude-opus-4.5", None),
            ("copilot-print", "claude-opus-4.5", None),
            ("claude", "", None),
        ] {
            assert_eq!(of(engine, id).as_deref(), own, "{engine} {id}");
        }
    }

    #[test]
    fn every_built_in_profile_is_complete() {
        let names = Profile::names(&BTreeMap::new());
        assert_eq!(names.len(), 8);
        for name in names {
            let profile = Profile::find(&name, &BTreeMap::new()).expect(&name).expect(&name);
            assert!(profile.strict.is_some() && profile.install.is_some(), "{name}");
            assert_eq!(profile.prompt == PromptWay::File, profile.arguments.has_prompt(), "{name}");
        }
    }

    #[test]
    fn a_users_table_changes_only_the_fields_it_names() {
        let users: BTreeMap<String, EngineProfile> = toml::from_str(
            "[claude]\nprogram = \"/opt/claude\"\n[mine]\nlike = \"codex\"\nmodel = \"m\"\n[odd]\nlike = \"none\"\n\
             [bare]\nargs = [\"x\"]\n",
        )
        .expect("tables");
        let find = |name| Profile::find(name, &users).expect("a profile");
        let claude = find("claude").expect("complete");
        assert_eq!((claude.program.as_str(), claude.stream), ("/opt/claude", StreamKind::Claude));
        assert_eq!(claude.protocol, Some(SessionProtocol::Claude));
        let whole =
            toml::from_str("[claude]\nargs = [\"-p\"]\n[mine]\nlike = \"claude\"\nchat = \"none\"\n").expect("tables");
        for name in ["claude", "mine"] {
            let one_shot = Profile::find(name, &whole).expect("a profile").expect("complete");
            assert_eq!((one_shot.protocol, one_shot.stream), (None, StreamKind::Claude), "{name}");
            assert_eq!(one_shot.about, "Claude Code, one process for each message");
        }
        let mine = find("mine").expect("complete");
        assert_eq!((mine.program.as_str(), mine.model.as_deref()), ("codex", Some("m")));
        assert!(find("odd").is_err() && find("bare").is_err());
        assert!(Profile::find("nobody", &users).is_none());
        assert_eq!(Profile::names(&users).len(), 11);
    }
}
