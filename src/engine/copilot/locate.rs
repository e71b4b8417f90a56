//! Finds the Copilot CLI.
//!
//! npm's `copilot` unpacks a `copilot-runtime` on its first run: the same server, which starts 30 times faster and uses
//! a fifth of the memory. If the search finds a `copilot`, it prefers its runtime. A configured path is run as it is.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::options::Options;
use crate::engine::EngineError;
use crate::env::real;
use crate::model::Sort;
use crate::program::{Program, ProgramRefusal, Programs};

/// Its package, as npm knows it.
pub(crate) const PACKAGE: &str = "@github/copilot";
const INSTALL: &str = "npm install -g @github/copilot";

pub(crate) fn locate(options: &Options) -> Result<Program, EngineError> {
    if let Some(program) = &options.program {
        return configured(program, "engine.copilot.path");
    }
    if let Some(program) = options.variable("COPILOT_CLI_PATH") {
        return configured(Path::new(program), "COPILOT_CLI_PATH");
    }
    let programs = Programs::new(&options.directory, &options.variables);
    let search = Search { options, programs, platform: platform(), refused: RefCell::default() };
    let found = search.newest_runtime().or_else(|| search.npm()).or_else(|| search.path());
    found.ok_or_else(|| match search.in_checkout() {
        None => EngineError::Missing {
            what: "the Copilot CLI is not installed".to_owned(),
            hint: format!("install it with `{INSTALL}`, or set COPILOT_CLI_PATH to where it is"),
        },
        Some(path) => EngineError::Missing {
            what: format!("the only Copilot CLI is not run: {}", ProgramRefusal::InCheckout(path.clone())),
            hint: format!(
                "install it with `{INSTALL}`; or, if you trust that one: squad config set --user engine.copilot.path \
                 '{}'",
                path.display()
            ),
        },
    })
}

/// A configured path is final: falling back to another program would hide a mistake.
fn configured(program: &Path, by: &str) -> Result<Program, EngineError> {
    let hint = format!("correct the path, or install the CLI with `{INSTALL}`");
    if !program.is_absolute() {
        // A relative path would name a different program in each folder, and in a checkout one of the checkout's.
        let what = format!("{by} is `{}`, which is not an absolute path", program.display());
        return Err(EngineError::Missing { what, hint });
    }
    if program.is_file() {
        return Ok(Program::of_user(program));
    }
    let what = format!("there is no Copilot CLI at {}, where {by} says it is", program.display());
    Err(EngineError::Missing { what, hint })
}

struct Search<'a> {
    options: &'a Options,
    programs: Programs,
    /// The platform as npm and the CLI name it, such as `linux-x64`.
    platform: String,
    /// Programs that were found but must not be run.
    refused: RefCell<Vec<PathBuf>>,
}

impl Search<'_> {
    fn newest_runtime(&self) -> Option<Program> {
        let versions = std::fs::read_dir(self.unpacked()?).ok()?;
        let mut versions: Vec<_> = versions.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        versions.stable_sort_by_key(|version| version_key(version));
        versions.iter().rev().find_map(|version| self.runtime_of(version))
    }

    fn runtime_of(&self, version: &str) -> Option<Program> {
        let prebuilt = self.unpacked()?.join(version).join("prebuilds").join(&self.platform);
        self.existing(prebuilt.join(program_name("copilot-runtime")))
    }

    /// Where the CLI unpacks itself, with one folder per version.
    fn unpacked(&self) -> Option<PathBuf> {
        Some(self.cache()?.join("pkg").join(&self.platform))
    }

    fn cache(&self) -> Option<PathBuf> {
        let folder = |name| self.options.variable(name).map(PathBuf::from);
        if let Some(cache) = folder("COPILOT_CACHE_HOME") {
            return Some(cache);
        }
        let caches = folder("XDG_CACHE_HOME").or_else(|| {
            if cfg!(windows) {
                return folder("LOCALAPPDATA");
            }
            let home = folder("HOME")?;
            Some(home.join(if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" }))
        });
        Some(caches?.join("copilot"))
    }

    /// Searches npm's global packages. The project's packages belong to the checkout.
    fn npm(&self) -> Option<Program> {
        let global = self.programs.folders().iter().filter_map(|folder| global_modules(folder));
        global.into_iter().find_map(|modules| self.packaged(&modules))
    }

    /// The platform's package, next to `@github/copilot` or below it. Not `.bin/copilot`, a Node script: if that is
    /// killed, the real CLI keeps running.
    fn packaged(&self, modules: &Path) -> Option<Program> {
        packaged(modules, &self.platform).iter().find_map(|program| self.copilot(program))
    }

    fn path(&self) -> Option<Program> {
        self.programs.folders().iter().find_map(|folder| self.copilot(&folder.join(program_name("copilot"))))
    }

    /// A CLI that exists but must not be run, for a hint.
    fn in_checkout(&self) -> Option<PathBuf> {
        self.options.directory.ancestors().find_map(|folder| self.packaged(&folder.join("node_modules")));
        self.refused.borrow().first().cloned().or_else(|| match self.programs.find(Path::new("copilot")) {
            Err(ProgramRefusal::InCheckout(path)) => Some(path),
            _ => None,
        })
    }

    /// The runtime that belongs to a `copilot`, or the `copilot` itself.
    fn copilot(&self, program: &Path) -> Option<Program> {
        let found = self.existing(program.to_owned())?;
        let real = real(program);
        let sibling = self.existing(real.with_file_name(program_name("copilot-runtime")));
        sibling.or_else(|| self.runtime_of(&package_version(&real)?)).or(Some(found))
    }

    fn existing(&self, program: PathBuf) -> Option<Program> {
        if !program.is_file() {
            return None;
        }
        self.programs.admit(&program).inspect_err(|_| self.refused.borrow_mut().push(program)).ok()
    }
}

/// Where the platform's program is below some `node_modules`.
fn packaged(modules: &Path, platform: &str) -> [PathBuf; 2] {
    let package = Path::new("@github").join(format!("copilot-{platform}")).join(program_name("copilot"));
    [modules.join(&package), modules.join(PACKAGE).join("node_modules").join(package)]
}

/// The CLI that npm has installed into some `node_modules`; `None`: an older one, which is only a script.
pub(crate) fn installed(modules: &Path) -> Option<PathBuf> {
    packaged(modules, &platform()).into_iter().find(|program| program.is_file())
}

/// The `node_modules` of an npm prefix, from its `bin` folder.
fn global_modules(programs: &Path) -> Option<PathBuf> {
    if cfg!(windows) {
        return Some(programs.join("node_modules"));
    }
    (programs.file_name()? == "bin").then(|| programs.with_file_name("lib").join("node_modules"))
}

/// The version in the `package.json` next to a program.
fn package_version(program: &Path) -> Option<String> {
    let package = std::fs::read(program.with_file_name("package.json")).ok()?;
    let package: Value = serde_json::from_slice(&package).ok()?;
    let version = package.get("version")?.as_str()?;
    // It is used as a folder name.
    version.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-+".contains(&byte)).then(|| version.to_owned())
}

/// Orders `1.0.9` before `1.0.10`, and a pre-release before its release.
pub(in crate::engine) fn version_key(version: &str) -> (Vec<u64>, bool, Vec<Identifier>) {
    let (release, pre) = version.split_once('-').unwrap_or((version, ""));
    let numbers = release.split('.').map(|part| part.parse().unwrap_or(0)).collect();
    let identifier = |part: &str| part.parse().map_or_else(|_| Identifier::Word(part.to_owned()), Identifier::Number);
    (numbers, pre.is_empty(), pre.split('.').map(identifier).collect())
}

/// A part of a pre-release's name.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::engine) enum Identifier {
    Number(u64),
    Word(String),
}

fn program_name(name: &str) -> String {
    format!("{name}{}", std::env::consts::EXE_SUFFIX)
}

/// The platform as Node names it.
fn platform() -> String {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        other => other,
    };
    let processor = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{system}-{processor}")
}

#[cfg(test)]
mod tests {
    use super::super::options::{Home, Timeouts};
    use super::*;
    use crate::program::Variables;

    struct World(tempfile::TempDir);

    impl World {
        fn new() -> Self {
            Self(tempfile::tempdir().expect("a temporary folder"))
        }

        fn path(&self, path: &str) -> PathBuf {
            self.0.path().join(path.replace("PLATFORM", &platform()))
        }

        fn program(&self, path: &str) -> PathBuf {
            let program = self.path(path);
            std::fs::create_dir_all(program.parent().expect("a folder")).expect("folders");
            std::fs::write(&program, "").expect("a file");
            #[cfg(unix)]
            std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a file");
            program
        }

        fn options(&self, variables: &[(&str, &str)]) -> Options {
            let mut all: Variables =
                variables.iter().map(|(name, path)| (name.into(), self.path(path).into())).collect();
            all.entry("XDG_CACHE_HOME".into()).or_insert_with(|| self.path("cache").into());
            Options {
                program: None,
                squad: None,
                variables: all,
                directory: self.path("project/deep"),
                home: Home::User,
                provider: None,
                sandbox: None,
                run: "run".into(),
                mcp_servers: Default::default(),
                timeouts: Timeouts::default(),
            }
        }
    }

    /// The path of the CLI that is found.
    fn located(options: &Options) -> Result<PathBuf, EngineError> {
        locate(options).map(|program| program.path().to_owned())
    }

    #[test]
    fn a_configured_path_is_used_or_named_in_the_error() {
        let world = World::new();
        world.program("bin/copilot");
        let mut options = world.options(&[("COPILOT_CLI_PATH", "elsewhere/copilot"), ("PATH", "bin")]);
        let error = locate(&options).expect_err("it is not there");
        assert!(error.to_string().contains("elsewhere"), "{error}");
        assert!(error.to_string().contains("COPILOT_CLI_PATH"), "{error}");
        let chosen = world.program("chosen/copilot");
        options.program = Some(chosen.clone());
        assert_eq!(located(&options), Ok(chosen));
    }

    #[test]
    fn the_newest_unpacked_runtime_comes_first() {
        let world = World::new();
        world.program("cache/copilot/pkg/PLATFORM/1.0.9/prebuilds/PLATFORM/copilot-runtime");
        let newest = world.program("cache/copilot/pkg/PLATFORM/1.0.10/prebuilds/PLATFORM/copilot-runtime");
        world.program("cache/copilot/pkg/PLATFORM/1.0.11/half-unpacked");
        world.program("project/node_modules/@github/copilot-PLATFORM/copilot");
        if cfg!(not(windows)) {
            assert_eq!(located(&world.options(&[])), Ok(newest));
        }
    }

    #[cfg(unix)]
    #[test]
    fn npm_packages_are_found_by_prefix() {
        let world = World::new();
        let global =
            world.program("usr/lib/node_modules/@github/copilot/node_modules/@github/copilot-PLATFORM/copilot");
        assert_eq!(located(&world.options(&[("PATH", "usr/bin")])), Ok(global));
        let first = world.program("usr/lib/node_modules/@github/copilot-PLATFORM/copilot");
        assert_eq!(located(&world.options(&[("PATH", "usr/bin")])), Ok(first.clone()));
        std::fs::write(first.with_file_name("package.json"), r#"{"version":"2.0.0"}"#).expect("a file");
        let runtime = world.program("other/pkg/PLATFORM/2.0.0/prebuilds/PLATFORM/copilot-runtime");
        assert_eq!(located(&world.options(&[("COPILOT_CACHE_HOME", "other")])), Ok(runtime));
    }

    #[cfg(unix)]
    #[test]
    fn path_is_the_last_resort() {
        let world = World::new();
        let error = locate(&world.options(&[("PATH", "bin")])).expect_err("nothing is installed");
        assert!(error.hint().is_some_and(|hint| hint.contains(INSTALL)), "{error}");
        let program = world.program("bin/copilot");
        assert_eq!(located(&world.options(&[("PATH", "bin")])), Ok(program));
    }

    /// For every way to find the CLI, the variant where it is in a checkout.
    #[cfg(unix)]
    #[test]
    fn a_cli_of_the_checkout_is_named_and_not_run() {
        let package = "node_modules/@github/copilot-PLATFORM/copilot";
        let ways: [(&str, &[(&str, &str)]); 9] = [
            (&format!("project/{package}"), &[]),
            (&format!("project/deep/{package}"), &[]),
            (package, &[]),
            (&format!("project/lib/{package}"), &[("PATH", "project/bin")]),
            ("project/node_modules/.bin/copilot", &[("PATH", "project/node_modules/.bin")]),
            ("node_modules/.bin/copilot", &[("PATH", "node_modules/.bin")]),
            ("project/bin/copilot", &[("PATH", "project/bin")]),
            ("project/pkg/PLATFORM/1.0.9/prebuilds/PLATFORM/copilot-runtime", &[("COPILOT_CACHE_HOME", "project")]),
            ("project/copilot/pkg/PLATFORM/1.0.9/prebuilds/PLATFORM/copilot-runtime", &[("XDG_CACHE_HOME", "project")]),
        ];
        for (place, variables) in ways {
            let world = World::new();
            std::fs::create_dir_all(world.path("project/.git/objects")).expect("a folder");
            std::fs::create_dir_all(world.path("project/deep")).expect("a folder");
            std::fs::write(world.path("project/.git/HEAD"), "").expect("a file");
            let program = world.program(place);
            let error = locate(&world.options(variables)).expect_err(place);
            // An npm prefix in the checkout is not searched.
            if !place.starts_with("project/lib") {
                assert!(error.to_string().contains(&program.display().to_string()), "{place}: {error}");
                assert!(error.hint().is_some_and(|hint| hint.contains("engine.copilot.path")), "{place}: {error:?}");
            }
            let mut options = world.options(variables);
            options.program = Some(program.clone());
            assert_eq!(located(&options), Ok(program.clone()), "the user named it");
            let mut options = world.options(variables);
            options.variables.insert("COPILOT_CLI_PATH".into(), program.clone().into());
            assert_eq!(located(&options), Ok(program), "the user named it");
        }
    }

    #[test]
    fn a_relative_path_names_no_program() {
        let world = World::new();
        world.program("project/deep/copilot");
        for path in ["copilot", "./copilot"] {
            let mut options = world.options(&[]);
            options.variables.insert("COPILOT_CLI_PATH".into(), path.into());
            let error = locate(&options).expect_err("it is relative").to_string();
            assert!(error.contains("COPILOT_CLI_PATH") && error.contains("absolute"), "{error}");
        }
    }

    #[test]
    fn a_broken_package_file_is_no_version() {
        let world = World::new();
        let program = world.program("package/copilot");
        for text in ["", "[]", r#"{"version":7}"#, r#"{"version":"../../x"}"#] {
            std::fs::write(program.with_file_name("package.json"), text).expect("a file");
            assert_eq!(package_version(&program), None, "{text}");
        }
    }
}
