//! Environment variables that configure similar MCP servers, so that their configuration also works here:
//! `ENGINE_COMMAND` (or `ENGINE`), `RUN_TEMPLATE_PATH`, `CREATE_CHAT_TEMPLATE_PATH`, `STATE_MODE`, `AGENTS_DIRECTORY_PATH`,
//! `PROCESS_TIMEOUT_MS`.
//!
//! Command lines come only from the user, so a template inside the checkout is refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::arguments::Arguments;
use super::profile::Profile;
use super::template::Template;
use crate::program::{Programs, Variables, variable};
use crate::settings::{Chats as ChatSource, EngineProfile, PromptWay, StreamKind};

/// The configuration from these variables.
#[derive(Clone, Debug)]
pub(crate) struct Blueprint {
    /// `None`: they name no engine, so the configured one is used.
    pub(crate) profile: Option<Profile>,
    pub(crate) is_stateful: bool,
    /// The limit for one message to a member.
    pub(crate) timeout: Duration,
    /// A folder of role files.
    pub(crate) agents: Option<PathBuf>,
}

const DEFAULT_TIMEOUT_MS: u64 = 300_000;
const MAX_TIMEOUT_MS: u64 = 7 * 24 * 60 * 60 * 1000;
const MAX_TEMPLATE_BYTES: u64 = 64 * 1024;

impl Blueprint {
    /// Each error names a variable that cannot be used, and its valid values.
    pub(crate) fn from_environment(
        variables: &Variables,
        directory: &Path,
        users: &BTreeMap<String, EngineProfile>,
    ) -> Result<Self, Vec<String>> {
        let reader = EnvironmentReader { variables, directory, users, programs: Programs::new(directory, variables) };
        let mut errors = Vec::new();
        let is_stateful = or_default(reader.is_stateful(), &mut errors, false);
        let timeout = or_default(reader.timeout_ms(), &mut errors, DEFAULT_TIMEOUT_MS);
        let agents = or_default(reader.agents(), &mut errors, None);
        let profile = or_default(reader.profile(is_stateful), &mut errors, None);
        let timeout = Duration::from_millis(timeout);
        if errors.is_empty() { Ok(Self { profile, is_stateful, timeout, agents }) } else { Err(errors) }
    }
}

/// Collects an error, so that all variables are checked.
fn or_default<T>(value: Result<T, String>, errors: &mut Vec<String>, default: T) -> T {
    value.unwrap_or_else(|error| {
        errors.push(error);
        default
    })
}

struct EnvironmentReader<'a> {
    variables: &'a Variables,
    directory: &'a Path,
    users: &'a BTreeMap<String, EngineProfile>,
    programs: Programs,
}

impl EnvironmentReader<'_> {
    fn value(&self, name: &str) -> Result<Option<&str>, String> {
        let Some(value) = variable(self.variables, name) else { return Ok(None) };
        let value = value.to_str().ok_or_else(|| format!("{name} is not Unicode"))?.trim();
        Ok(Some(value).filter(|value| !value.is_empty()))
    }

    fn is_stateful(&self) -> Result<bool, String> {
        match self.value("STATE_MODE")? {
            None | Some("stateless") => Ok(false),
            Some("stateful") => Ok(true),
            Some(other) => Err(format!("STATE_MODE is `{other}`; it must be `stateless` or `stateful`")),
        }
    }

    fn timeout_ms(&self) -> Result<u64, String> {
        let Some(value) = self.value("PROCESS_TIMEOUT_MS")? else { return Ok(DEFAULT_TIMEOUT_MS) };
        let milliseconds = value.parse().ok().filter(|number| (1..=MAX_TIMEOUT_MS).contains(number));
        milliseconds.ok_or_else(|| {
            format!("PROCESS_TIMEOUT_MS is `{value}`; it must be a number of milliseconds from 1 to {MAX_TIMEOUT_MS}")
        })
    }

    fn agents(&self) -> Result<Option<PathBuf>, String> {
        let Some(value) = self.value("AGENTS_DIRECTORY_PATH")? else { return Ok(None) };
        let folder = self.directory.join(value);
        if folder.is_dir() {
            Ok(Some(folder))
        } else {
            Err(format!("AGENTS_DIRECTORY_PATH is `{value}`, which is not a folder"))
        }
    }

    fn profile(&self, is_stateful: bool) -> Result<Option<Profile>, String> {
        let engine = match self.value("ENGINE_COMMAND")? {
            Some(engine) => Some(engine),
            None => self.value("ENGINE")?.filter(|name| self.is_known(name)),
        };
        let run = self.template("RUN_TEMPLATE_PATH")?;
        let create = self.template("CREATE_CHAT_TEMPLATE_PATH")?;
        let known = match engine.and_then(|name| Profile::find(name, self.users)) {
            Some(profile) => Some(
                profile
                    .map_err(|reason| format!("ENGINE_COMMAND: `engines.{}` {reason}", engine.unwrap_or_default()))?,
            ),
            None => None,
        };
        let known = known.or_else(|| engine.filter(|_| run.is_none()).and_then(of_other_name));
        match (run, known, engine) {
            (Some(run), known, _) => self.template_profile(run, create, known, engine, is_stateful).map(Some),
            (None, Some(_), _) if create.is_some() => {
                Err("CREATE_CHAT_TEMPLATE_PATH is set but RUN_TEMPLATE_PATH is not".to_owned())
            }
            (None, Some(known), _) => {
                if is_stateful && known.chat == ChatSource::None {
                    return Err(format!("STATE_MODE is `stateful`, but {} has no chats to continue", known.name));
                }
                // The environment describes a program that is started for each message.
                Ok(Some(Profile { is_stateful, protocol: None, ..known }))
            }
            (None, None, Some(engine)) => Err(self.unknown_engine(engine)),
            (None, None, None) if create.is_some() => {
                Err("CREATE_CHAT_TEMPLATE_PATH is set but RUN_TEMPLATE_PATH is not".to_owned())
            }
            (None, None, None) => Ok(None),
        }
    }

    /// A name that may also be set for other programs is not taken for a wrong one.
    fn is_known(&self, engine: &str) -> bool {
        Profile::find(engine, self.users).is_some() || of_other_name(engine).is_some()
    }

    /// Names a configuration that works as it is written.
    fn unknown_engine(&self, engine: &str) -> String {
        let name = name_of(engine);
        let is_path = Path::new(engine).components().count() > 1;
        let program = if is_path { self.directory.join(engine).display().to_string() } else { engine.to_owned() };
        let program = toml::Value::from(program);
        let also = if name == engine { String::new() } else { format!(", and set ENGINE_COMMAND to `{name}`") };
        format!(
            "ENGINE_COMMAND is `{engine}`, which squad does not know how to start: set RUN_TEMPLATE_PATH, or add \
             `[engines.{name}]` with `program = {program}` to your own squad/config.toml{also}"
        )
    }

    /// A profile that starts the engine as the user's templates say.
    fn template_profile(
        &self,
        run: Template,
        create: Option<Template>,
        known: Option<Profile>,
        engine: Option<&str>,
        is_stateful: bool,
    ) -> Result<Profile, String> {
        let program = match (&known, engine) {
            (Some(known), _) => known.program.clone(),
            (None, Some(engine)) => engine.to_owned(),
            (None, None) => run
                .first_word()
                .ok_or("RUN_TEMPLATE_PATH: its first word must be the program because ENGINE_COMMAND is not set")?,
        };
        let base = known.or_else(|| Profile::of_program(&program));
        let stream = unfiltered("RUN_TEMPLATE_PATH", &run, base.as_ref())?;
        if let Some(create) = &create {
            unfiltered("CREATE_CHAT_TEMPLATE_PATH", create, base.as_ref())?;
        }
        // Without its filter, what creates a chat would be a whole answer: the first real one names the chat as well.
        let is_answer = stream != StreamKind::Text && base.as_ref().is_some_and(|base| base.chat == ChatSource::Answer);
        let create = create.filter(|create| create.filter().is_none());
        if is_stateful && create.is_none() && !is_answer {
            return Err(
                "STATE_MODE is `stateful`, but CREATE_CHAT_TEMPLATE_PATH, which creates a chat, is not set".to_owned()
            );
        }
        let without_program = |template: Template| template.without_program(&[&program, engine.unwrap_or_default()]);
        let arguments = Arguments::Template(without_program(run));
        // Without ENGINE_COMMAND, each template starts with a program of its own.
        let create_program = create.as_ref().filter(|_| engine.is_none()).and_then(Template::first_word);
        let create_program = create_program.filter(|own| *own != program);
        let create = create.map(|create| match &create_program {
            Some(own) => create.without_program(&[own]),
            None => without_program(create),
        });
        let name = engine.map_or_else(|| name_of(&program), name_of);
        Ok(Profile {
            about: format!("`{program}`, as your template starts it"),
            prompt: if arguments.has_prompt() { PromptWay::File } else { PromptWay::Stdin },
            arguments,
            // The user's command line replaces any mode, and only the user knows whether it changes nothing.
            strict: self.users.get(&name).and_then(|table| table.strict.clone()),
            free: Vec::new(),
            inside: None,
            loopback: None,
            package: None,
            protocol: None,
            home: base.as_ref().map(|base| base.home.clone()).unwrap_or_default(),
            endpoint: Vec::new(),
            hosts: Vec::new(),
            settings: base.as_ref().map(|base| base.settings.clone()).unwrap_or_default(),
            chat: match (is_stateful, &create) {
                (false, _) => ChatSource::None,
                (true, Some(_)) => ChatSource::Command,
                (true, None) => ChatSource::Answer,
            },
            create_chat: create.filter(|_| is_stateful).map(Arguments::Template),
            create_program,
            is_stateful,
            tools: None,
            stream,
            env: base.as_ref().map(|base| base.env.clone()).unwrap_or_default(),
            set: base.as_ref().map(|base| base.set.clone()).unwrap_or_default(),
            model: base.as_ref().and_then(|base| base.model.clone()),
            reads: Vec::new(),
            trusts_repository: true,
            login: base.as_ref().and_then(|base| base.login.clone()),
            install: base.and_then(|base| base.install),
            program,
            name,
        })
    }

    fn template(&self, name: &str) -> Result<Option<Template>, String> {
        let Some(value) = self.value(name)? else { return Ok(None) };
        let path = self.directory.join(value);
        let cannot = |error: std::io::Error| format!("{name}: cannot read {}: {error}", path.display());
        if fs::metadata(&path).map_err(cannot)?.len() > MAX_TEMPLATE_BYTES {
            return Err(format!("{name}: {} is larger than {MAX_TEMPLATE_BYTES} bytes", path.display()));
        }
        if self.programs.admit(&path).is_err() {
            return Err(format!(
                "{name}: {} belongs to the checkout, and squad runs no command lines from a repository; copy it to a \
                 folder of your own",
                path.display()
            ));
        }
        let text = fs::read_to_string(&path).map_err(cannot)?;
        Template::parse(&text).map(Some).map_err(|error| format!("{name}: {}: {error}", path.display()))
    }
}

fn of_other_name(name: &str) -> Option<Profile> {
    Profile::of_program(if name == "claude-code" { "claude" } else { name })
}

/// How the output of a template's program is read. A filter that takes the answer from a known program's JSON is not
/// needed: squad reads that itself. Any other one is an error.
fn unfiltered(variable: &str, template: &Template, known: Option<&Profile>) -> Result<StreamKind, String> {
    match (template.filter(), known.map(|known| known.stream)) {
        (None, _) => Ok(StreamKind::Text),
        (Some(filter), Some(stream)) if filter.program == "jq" && stream != StreamKind::Text => Ok(stream),
        (Some(filter), _) => Err(format!("{variable}: {}", filter.refusal())),
    }
}

/// An engine's name, safe as a file name.
fn name_of(program: &str) -> String {
    let name = Path::new(program).file_stem().map_or(program.into(), |name| name.to_string_lossy());
    name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::values::Values;
    use super::*;

    struct World(tempfile::TempDir);

    impl World {
        fn new() -> Self {
            let world = Self(tempfile::tempdir().expect("a folder"));
            for folder in ["repo/.git/objects", "repo/agents", "own"] {
                fs::create_dir_all(world.0.path().join(folder)).expect("a folder");
            }
            world.write("repo/.git/HEAD", "ref: refs/heads/main\n");
            world
        }

        fn write(&self, path: &str, text: &str) -> String {
            let path = self.0.path().join(path);
            fs::write(&path, text).expect("a file");
            path.display().to_string()
        }

        fn read(&self, variables: &[(&str, &str)]) -> Result<Blueprint, Vec<String>> {
            let variables = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
            let users = toml::from_str("[mute]\nprogram = '/opt/mute'\nargs = [\"{prompt}\"]\n").expect("a table");
            Blueprint::from_environment(&variables, &self.0.path().join("repo"), &users)
        }
    }

    #[test]
    fn the_defaults_are_stateless_and_five_minutes() {
        let blueprint = World::new().read(&[("STATE_MODE", "")]).expect("nothing is wrong");
        assert!(blueprint.profile.is_none() && !blueprint.is_stateful && blueprint.agents.is_none());
        assert_eq!(blueprint.timeout, Duration::from_millis(300_000));
    }

    #[test]
    fn templates_make_a_profile() {
        let world = World::new();
        let run = world.write(
            "own/run.template",
            "cursor-agent --print \\\n<% if (chatId) { %> --resume <%= chatId %> <% } %> agent \"<%= prompt %>\"\n",
        );
        let create = world.write("own/create.template", "cursor-agent create-chat\n");
        let both = [("RUN_TEMPLATE_PATH", run.as_str()), ("CREATE_CHAT_TEMPLATE_PATH", &create)];
        for engine in ["", "cursor-agent", "cursor"] {
            let variables = [&both[..], &[("STATE_MODE", "stateful"), ("ENGINE_COMMAND", engine)]].concat();
            let blueprint = world.read(&variables).expect(engine);
            let profile = blueprint.profile.expect("a profile");
            assert_eq!((profile.program.as_str(), profile.is_stateful), ("cursor-agent", true), "{engine}");
            assert_eq!(profile.env, ["CURSOR_*"], "{engine}");
            let values = Values {
                prompt: Some("a\n\"b\" $(c)".to_owned()),
                chat_id: Some("c-1".to_owned()),
                ..Values::default()
            };
            let expected = ["cursor-agent", "--print", "--resume", "c-1", "agent", "a\n\"b\" $(c)"];
            assert_eq!(profile.preview(&values), expected, "{engine}");
            let create = profile.create_chat.expect("a template").expand(&Values::default());
            assert_eq!(create, ["create-chat"], "{engine}");
        }
        let variables = [("RUN_TEMPLATE_PATH", run.as_str()), ("ENGINE_COMMAND", "/opt/other")];
        let profile = world.read(&variables).expect("usable").profile.expect("a profile");
        let line = profile.preview(&Values::default());
        assert_eq!(line, ["/opt/other", "cursor-agent", "--print", "agent", ""]);
    }

    /// Written like the templates that another server's repository publishes.
    #[test]
    fn published_templates_load() {
        let world = World::new();
        let test = "<% if (typeof chatId !== undefined && chatId) { %>";
        let jq = "\\\n  | jq -rc '\n    if .type == \"x\" then .text\n    else empty end'\n\n";
        let file = |name: &str, text: String| world.write(&format!("own/{name}.template"), &text);
        let claude = file(
            "claude",
            format!(
                "claude -p --output-format=json{test} --session-id \"<%= chatId %>\"<% }} %> \"<%= prompt %>\" {jq}"
            ),
        );
        let new_claude = file("new-claude", "echo \"<%= generatedUuid %>\"\n".to_owned());
        let codex =
            file("codex", format!("codex exec --json{test} resume <%= chatId %><% }} %> \"<%= prompt %>\" {jq}"));
        let new_codex = file("new-codex", format!("codex exec --json \"\" {jq}"));
        let cursor = file(
            "cursor",
            format!("cursor-agent --print{test} --resume <%= chatId %><% }} %> agent \"<%= prompt %>\"\n"),
        );
        let new_cursor = file("new-cursor", "cursor agent create-chat\n".to_owned());
        for (run, create, chat, stream) in [
            (&claude, &new_claude, ChatSource::Command, StreamKind::Claude),
            (&codex, &new_codex, ChatSource::Answer, StreamKind::Codex),
            (&cursor, &new_cursor, ChatSource::Command, StreamKind::Text),
        ] {
            for (state, chat) in [("stateless", ChatSource::None), ("stateful", chat)] {
                let both =
                    [("RUN_TEMPLATE_PATH", run.as_str()), ("CREATE_CHAT_TEMPLATE_PATH", create), ("STATE_MODE", state)];
                let profile = world.read(&both).expect("it loads").profile.expect("a profile");
                assert_eq!((profile.chat, profile.stream), (chat, stream), "{run} {state}");
                let chat_id = Some("c-1".to_owned());
                let line = profile.preview(&Values { prompt: Some("p".to_owned()), chat_id, ..Values::default() });
                assert!(line.last().is_some_and(|last| last == "p") && line.contains(&"c-1".to_owned()), "{line:?}");
                let generated_uuid = Some("u-1".to_owned());
                let create =
                    profile.create_chat.map(|create| create.expand(&Values { generated_uuid, ..Values::default() }));
                assert_eq!(create.is_some(), profile.chat == ChatSource::Command, "{run} {state}");
                assert!(run != &claude || create.is_none_or(|create| create == ["u-1"]));
            }
        }
    }

    #[test]
    fn a_known_engine_needs_no_template() {
        let world = World::new();
        let read = |state| world.read(&[("ENGINE_COMMAND", "claude"), ("STATE_MODE", state)]).expect("usable");
        assert!(read("stateful").profile.expect("a profile").is_stateful);
        assert!(!read("stateless").profile.expect("a profile").is_stateful);
        for (command, engine) in [("cursor-agent", "cursor"), ("claude-code", "claude"), ("codex", "codex")] {
            for variable in ["ENGINE_COMMAND", "ENGINE"] {
                let read = world.read(&[(variable, command)]).expect("usable");
                assert_eq!(read.profile.expect("a profile").name, engine);
            }
        }
        let read = |other| world.read(&[("ENGINE", other), ("ENGINE_COMMAND", "codex")]).expect("usable").profile;
        assert_eq!(read("claude").expect("a profile").name, "codex");
        assert!(world.read(&[("ENGINE", "podman")]).expect("it is another program's").profile.is_none());
    }

    #[test]
    fn the_configuration_for_an_unknown_engine_works_as_it_is_written() {
        let world = World::new();
        let inner = if cfg!(windows) { "C:\\tools\\my.agent.exe" } else { "/opt/it's/my.agent" };
        for engine in ["nobody", "two words", inner, "./agent"] {
            let error = world.read(&[("ENGINE_COMMAND", engine)]).expect_err("it is not known").join("\n");
            let parts: Vec<&str> = error.split('`').collect();
            let users: toml::Table = format!("{}\n{}", parts[3], parts[5]).parse().expect(&error);
            let users = users["engines"].clone().try_into().expect("profiles");
            let name = parts.get(7).copied().unwrap_or(engine);
            let variables = [("ENGINE_COMMAND".into(), name.into())].into();
            let read = Blueprint::from_environment(&variables, &world.0.path().join("repo"), &users).expect("usable");
            let program = read.profile.expect("a profile").program;
            assert!(program.ends_with(engine.trim_start_matches("./")), "{error}");
            assert!(engine != "./agent" || Path::new(&program).is_absolute(), "{error}");
        }
    }

    #[test]
    fn every_wrong_variable_is_reported() {
        let world = World::new();
        let inside = world.write("repo/run.template", "a <%= prompt %>");
        let odd = world.write("own/odd.template", "a\nb | jq .x");
        let plain = world.write("own/plain.template", "a <%= prompt %>");
        // jq reads the JSON of claude, and nothing reads that of tee.
        let tee = world.write("own/tee.template", "claude -p <%= prompt %> | tee log");
        for (variables, expected) in [
            (vec![("STATE_MODE", "Stateful")], vec!["STATE_MODE is `Stateful`; it must be"]),
            (vec![("PROCESS_TIMEOUT_MS", "5m")], vec!["PROCESS_TIMEOUT_MS is `5m`; it must be"]),
            (
                vec![("PROCESS_TIMEOUT_MS", "0"), ("STATE_MODE", "x")],
                vec!["STATE_MODE is", "PROCESS_TIMEOUT_MS is `0`"],
            ),
            (vec![("AGENTS_DIRECTORY_PATH", "nowhere")], vec!["AGENTS_DIRECTORY_PATH is `nowhere`, which"]),
            (vec![("RUN_TEMPLATE_PATH", "nowhere")], vec!["RUN_TEMPLATE_PATH: cannot read"]),
            (vec![("RUN_TEMPLATE_PATH", inside.as_str())], vec!["belongs to the checkout"]),
            (vec![("RUN_TEMPLATE_PATH", "run.template")], vec!["belongs to the checkout"]),
            (vec![("RUN_TEMPLATE_PATH", odd.as_str())], vec!["RUN_TEMPLATE_PATH: line 2: `|` needs a shell"]),
            (vec![("ENGINE_COMMAND", "nobody")], vec!["ENGINE_COMMAND is `nobody`, which"]),
            (vec![("ENGINE_COMMAND", "mute"), ("STATE_MODE", "stateful")], vec!["has no chats"]),
            (vec![("CREATE_CHAT_TEMPLATE_PATH", odd.as_str())], vec!["CREATE_CHAT_TEMPLATE_PATH is set but"]),
            (
                vec![("CREATE_CHAT_TEMPLATE_PATH", odd.as_str()), ("RUN_TEMPLATE_PATH", plain.as_str())],
                vec!["CREATE_CHAT_TEMPLATE_PATH: line 2: `|` needs a shell"],
            ),
            (vec![("RUN_TEMPLATE_PATH", tee.as_str())], vec!["RUN_TEMPLATE_PATH: line 1: `|` needs a shell"]),
        ] {
            let errors = world.read(&variables).expect_err("something is wrong");
            assert_eq!(errors.len(), expected.len(), "{errors:?}");
            for (error, expected) in errors.iter().zip(expected) {
                assert!(error.contains(expected), "{variables:?}: {error}");
            }
        }
        let agents = world.read(&[("AGENTS_DIRECTORY_PATH", "agents")]).expect("usable").agents;
        assert!(agents.is_some_and(|agents| agents.ends_with("repo/agents")));
    }
}
