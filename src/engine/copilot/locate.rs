//! Finds the Copilot CLI.
//!
//! npm's `copilot` unpacks a `copilot-runtime` on its first run: the same server, 30 times faster to start and a fifth
//! of the memory. Where the search finds a `copilot`, its runtime is preferred. A path that someone wrote down is run
//! as it is.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::options::Options;
use crate::engine::EngineError;

const INSTALL: &str = "npm install -g @github/copilot";

pub(crate) fn locate(options: &Options) -> Result<PathBuf, EngineError> {
    if let Some(program) = &options.program {
        return given(program, "the configuration");
    }
    if let Some(program) = options.variable("COPILOT_CLI_PATH") {
        return given(Path::new(program), "COPILOT_CLI_PATH");
    }
    let search = Search { options, platform: platform() };
    search.newest_runtime().or_else(|| search.npm()).or_else(|| search.path()).ok_or_else(|| EngineError::Missing {
        what: "the Copilot CLI is not installed".to_owned(),
        hint: format!("install it with `{INSTALL}`, or set COPILOT_CLI_PATH to where it is"),
    })
}

/// A path that was asked for is the one to use: to fall through to another program would hide a mistake.
fn given(program: &Path, by: &str) -> Result<PathBuf, EngineError> {
    if program.is_file() {
        return Ok(program.to_owned());
    }
    Err(EngineError::Missing {
        what: format!("there is no Copilot CLI at {}, where {by} says it is", program.display()),
        hint: format!("correct the path, or install the CLI with `{INSTALL}`"),
    })
}

struct Search<'a> {
    options: &'a Options,
    /// As npm and the CLI name it, such as `linux-x64`.
    platform: String,
}

impl Search<'_> {
    fn newest_runtime(&self) -> Option<PathBuf> {
        let versions = std::fs::read_dir(self.unpacked()?).ok()?;
        let mut versions: Vec<_> = versions.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        versions.sort_by_key(|version| version_key(version));
        versions.iter().rev().find_map(|version| self.runtime_of(version))
    }

    fn runtime_of(&self, version: &str) -> Option<PathBuf> {
        let prebuilt = self.unpacked()?.join(version).join("prebuilds").join(&self.platform);
        existing(prebuilt.join(program_name("copilot-runtime")))
    }

    /// Where the CLI unpacks itself: one folder for each version.
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

    fn npm(&self) -> Option<PathBuf> {
        let local = self.options.directory.ancestors().map(|folder| folder.join("node_modules"));
        let global = self.path_folders().into_iter().filter_map(|folder| global_modules(&folder));
        local.chain(global).find_map(|modules| self.packaged(&modules))
    }

    /// The platform's own package, beside `@github/copilot` or below it. Not `.bin/copilot`, a Node script: when that
    /// is killed, the real CLI lives on.
    fn packaged(&self, modules: &Path) -> Option<PathBuf> {
        let package = Path::new("@github").join(format!("copilot-{}", self.platform));
        let below = Path::new("@github/copilot/node_modules").join(&package);
        [package, below].iter().find_map(|package| self.copilot(&modules.join(package).join(program_name("copilot"))))
    }

    fn path(&self) -> Option<PathBuf> {
        self.path_folders().iter().find_map(|folder| self.copilot(&folder.join(program_name("copilot"))))
    }

    fn path_folders(&self) -> Vec<PathBuf> {
        let path = self.options.variable("PATH").unwrap_or_else(|| OsStr::new(""));
        // A relative folder in PATH would run what the repository brings along.
        std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect()
    }

    /// A `copilot`, or rather the runtime that belongs to it.
    fn copilot(&self, program: &Path) -> Option<PathBuf> {
        let program = existing(program.to_owned())?;
        let real = program.canonicalize().unwrap_or_else(|_| program.clone());
        let beside = existing(real.with_file_name(program_name("copilot-runtime")));
        beside.or_else(|| self.runtime_of(&package_version(&real)?)).or(Some(program))
    }
}

/// The `node_modules` of an npm prefix, given its folder of programs.
fn global_modules(programs: &Path) -> Option<PathBuf> {
    if cfg!(windows) {
        return Some(programs.join("node_modules"));
    }
    (programs.file_name()? == "bin").then(|| programs.with_file_name("lib").join("node_modules"))
}

/// The version in the `package.json` beside a program.
fn package_version(program: &Path) -> Option<String> {
    let package = std::fs::read(program.with_file_name("package.json")).ok()?;
    let package: Value = serde_json::from_slice(&package).ok()?;
    let version = package.get("version")?.as_str()?;
    // It becomes a folder's name.
    version.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-+".contains(&byte)).then(|| version.to_owned())
}

/// Orders `1.0.9` before `1.0.10`, and a pre-release before its release.
fn version_key(version: &str) -> (Vec<u64>, bool, String) {
    let (release, pre) = version.split_once('-').unwrap_or((version, ""));
    let numbers = release.split('.').map(|part| part.parse().unwrap_or(0)).collect();
    (numbers, pre.is_empty(), pre.to_owned())
}

fn existing(program: PathBuf) -> Option<PathBuf> {
    program.is_file().then_some(program)
}

fn program_name(name: &str) -> String {
    format!("{name}{}", std::env::consts::EXE_SUFFIX)
}

/// The platform in Node's words.
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
    use super::super::options::{Home, Timeouts, Variables};
    use super::*;

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
                run: "run".into(),
                timeouts: Timeouts::default(),
            }
        }
    }

    #[test]
    fn a_path_that_was_given_is_used_or_missed_by_name() {
        let world = World::new();
        world.program("bin/copilot");
        let mut options = world.options(&[("COPILOT_CLI_PATH", "elsewhere/copilot"), ("PATH", "bin")]);
        let error = locate(&options).expect_err("it is not there");
        assert!(error.to_string().contains("elsewhere"), "{error}");
        assert!(error.to_string().contains("COPILOT_CLI_PATH"), "{error}");
        let chosen = world.program("chosen/copilot");
        options.program = Some(chosen.clone());
        assert_eq!(locate(&options), Ok(chosen));
    }

    #[test]
    fn the_newest_unpacked_runtime_comes_first() {
        let world = World::new();
        world.program("cache/copilot/pkg/PLATFORM/1.0.9/prebuilds/PLATFORM/copilot-runtime");
        let newest = world.program("cache/copilot/pkg/PLATFORM/1.0.10/prebuilds/PLATFORM/copilot-runtime");
        world.program("cache/copilot/pkg/PLATFORM/1.0.11/half-unpacked");
        world.program("project/node_modules/@github/copilot-PLATFORM/copilot");
        if cfg!(not(windows)) {
            assert_eq!(locate(&world.options(&[])), Ok(newest));
        }
    }

    #[cfg(unix)]
    #[test]
    fn npm_packages_are_found_upward_and_by_prefix() {
        let world = World::new();
        let global =
            world.program("usr/lib/node_modules/@github/copilot/node_modules/@github/copilot-PLATFORM/copilot");
        assert_eq!(locate(&world.options(&[("PATH", "usr/bin")])), Ok(global));
        let local = world.program("project/node_modules/@github/copilot-PLATFORM/copilot");
        assert_eq!(locate(&world.options(&[("PATH", "usr/bin")])), Ok(local.clone()));
        std::fs::write(local.with_file_name("package.json"), r#"{"version":"2.0.0"}"#).expect("a file");
        let runtime = world.program("other/pkg/PLATFORM/2.0.0/prebuilds/PLATFORM/copilot-runtime");
        assert_eq!(locate(&world.options(&[("COPILOT_CACHE_HOME", "other")])), Ok(runtime));
    }

    #[cfg(unix)]
    #[test]
    fn path_is_the_last_resort() {
        let world = World::new();
        let error = locate(&world.options(&[("PATH", "bin")])).expect_err("nothing is installed");
        assert!(error.hint().is_some_and(|hint| hint.contains(INSTALL)), "{error}");
        let program = world.program("bin/copilot");
        assert_eq!(locate(&world.options(&[("PATH", "bin")])), Ok(program));
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
