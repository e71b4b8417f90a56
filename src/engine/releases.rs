//! The releases of an engine's program: those that npm knows, and one of them in a folder of its own. What npm and its
//! registry say is untrusted.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::EngineError;
use super::child::last_line;
use super::command::allowed_variables;
use super::copilot::version_key;
use super::process_group::{Ending, ProcessGroup};
use crate::model::{Sort, first_line, printable};
use crate::program::{Program, Programs, Variables};

/// How long npm may take to list the releases of a package, and to install one of some hundred megabytes.
const LISTS: Duration = Duration::from_secs(60);
const INSTALLS: Duration = Duration::from_secs(600);
/// The most that npm may say, in bytes.
const MAX_OUTPUT: u64 = 8 << 20;
/// How long to wait until what was killed writes no more.
const DIES: Duration = Duration::from_secs(1);

/// What npm is configured by, beside its files.
const OWN_VARIABLES: [&str; 3] = ["npm_config_*", "NPM_*", "NODE_OPTIONS"];

/// The user's npm.
pub(crate) struct Npm {
    program: Program,
    variables: Variables,
}

impl Npm {
    /// `directory` is where the user works.
    ///
    /// # Errors
    ///
    /// There is none outside of the checkout.
    pub(crate) fn find(directory: &Path, variables: &Variables) -> Result<Self, EngineError> {
        let programs = Programs::new(directory, variables);
        let program = programs.find(Path::new(&script("npm"))).map_err(|refusal| EngineError::Missing {
            what: format!("releases come from npm: {refusal}"),
            hint: "install Node.js, which has it: https://nodejs.org".to_owned(),
        })?;
        let mut variables = allowed_variables(variables, &OWN_VARIABLES.map(str::to_owned));
        programs.restrict(&mut variables);
        Ok(Self { program, variables })
    }

    /// All releases of a package, the oldest first. `folder`: an empty one, where no file configures npm.
    pub(crate) async fn releases(&self, package: &str, folder: &Path) -> Result<Vec<String>, String> {
        let output = self.run(folder, LISTS, &["view", package, "versions"]).await?;
        let said: Value =
            serde_json::from_slice(&output).map_err(|error| format!("npm's answer is no JSON: {error}"))?;
        // Of a single one, it says that one.
        let all = match said {
            Value::Array(all) => all,
            one => vec![one],
        };
        let mut releases: Vec<String> = all.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        releases.retain(|release| is_release(release));
        releases.stable_sort_by_key(|release| version_key(release));
        releases.dedup();
        Ok(releases)
    }

    /// Installs a release into a folder. Returns its `node_modules`.
    pub(crate) async fn install(&self, package: &str, release: &str, folder: &Path) -> Result<PathBuf, String> {
        let package = format!("{package}@{release}");
        self.run(folder, INSTALLS, &["install", "--no-save", "--no-audit", "--no-fund", &package]).await?;
        Ok(folder.join("node_modules"))
    }

    /// Returns what npm printed.
    async fn run(&self, folder: &Path, limit: Duration, arguments: &[&str]) -> Result<Vec<u8>, String> {
        let mut command = Command::from(self.program.command());
        command.args(arguments).arg("--json").arg("--prefix").arg(folder);
        command.env_clear().envs(&self.variables).current_dir(folder);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let spawned = ProcessGroup::spawn(&mut command).map_err(|error| format!("npm cannot be run: {error}"))?;
        let mut running = Running(spawned.0, Some(spawned.1));
        let Running(child, _) = &mut running;
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let ended = async { tokio::join!(read(output), read(errors), child.wait()) };
        let (output, errors, status) =
            timeout(limit, ended).await.map_err(|_| format!("npm has not ended within {} s", limit.as_secs()))?;
        running.1 = None;
        match status {
            Ok(status) if status.success() => Ok(output),
            _ => Err(complaint(&output).unwrap_or_else(|| format!("npm failed: {}", last_line(&errors)))),
        }
    }
}

/// A process, and all that it starts, which end when nobody waits for them any more.
struct Running(Child, Option<ProcessGroup>);

impl Drop for Running {
    fn drop(&mut self) {
        let Some(group) = &mut self.1 else { return };
        group.signal(Ending::Killed);
        // The folder is removed after this, and nobody may write in it meanwhile.
        let killed = Instant::now();
        while group.is_alive() && killed.elapsed() < DIES {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

async fn read(stream: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut text = Vec::new();
    if let Some(stream) = stream {
        // What was read before an error is all that there is.
        let _ = stream.take(MAX_OUTPUT).read_to_end(&mut text).await;
    }
    text
}

/// Why npm failed, as `--json` has it.
fn complaint(output: &[u8]) -> Option<String> {
    let said: Value = serde_json::from_slice(output).ok()?;
    let error = &said["error"];
    let parts = [&error["code"], &error["summary"]].into_iter().filter_map(Value::as_str);
    let text = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ");
    (!text.is_empty()).then(|| format!("npm failed: {}", first_line(&printable(&text), 200)))
}

/// The program of a package that was installed into `modules`.
pub(crate) fn program_in(modules: &Path, name: &str) -> Result<PathBuf, String> {
    let program = modules.join(".bin").join(script(name));
    if program.is_file() { Ok(program) } else { Err(format!("it has no program `{name}`")) }
}

/// What npm starts a script by.
fn script(name: &str) -> String {
    format!("{name}{}", if cfg!(windows) { ".cmd" } else { "" })
}

/// Whether npm takes the text for the name of a package, and for nothing else that it can install.
pub(crate) fn is_package(name: &str) -> bool {
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "-._~".contains(c))
    };
    match name.strip_prefix('@') {
        Some(scoped) => scoped.split_once('/').is_some_and(|(scope, name)| is_part(scope) && is_part(name)),
        None => is_part(name),
    }
}

/// Whether it is a version as npm numbers them.
pub(crate) fn is_release(version: &str) -> bool {
    let (numbers, pre) = version.split_once('-').unwrap_or((version, "0"));
    let is_number = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
    numbers.split('.').count() == 3
        && numbers.split('.').all(is_number)
        && !pre.is_empty()
        && pre.chars().all(|c| c.is_ascii_alphanumeric() || "-.".contains(c))
}

/// Whether a release comes before another.
pub(crate) fn is_before(release: &str, other: &str) -> bool {
    version_key(release) < version_key(other)
}

/// Whether a release is one before its time.
pub(crate) fn is_prerelease(version: &str) -> bool {
    version.contains('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_versions_are_nothing_else_that_npm_understands() {
        for (name, expected) in [
            ("@github/copilot", true),
            ("opencode-ai", true),
            ("a.b_c~d", true),
            ("", false),
            ("-g", false),
            ("--prefix=/", false),
            ("../up", false),
            (".", false),
            ("/abs", false),
            ("a/b", false),
            ("@a", false),
            ("@a/", false),
            ("@/b", false),
            ("@a/b/c", false),
            ("@a/../b", false),
            ("file:x", false),
            ("a@1", false),
            ("git+ssh://h/x", false),
            ("a b", false),
            ("a\n", false),
        ] {
            assert_eq!(is_package(name), expected, "{name:?}");
        }
        for (version, expected) in [
            ("1.0.102", true),
            ("1.0.81-2", true),
            ("0.169.0-alpha.1", true),
            ("1.0", false),
            ("1.0.0.0", false),
            ("1.0.x", false),
            ("v1.0.0", false),
            ("latest", false),
            ("-1.0.0", false),
            ("1.0.0-", false),
            ("1.0.0-a/b", false),
            ("1.0.0 || 2", false),
            ("", false),
        ] {
            assert_eq!(is_release(version), expected, "{version:?}");
        }
    }

    #[test]
    fn npm_says_why_it_failed() {
        let cases = [
            (r#"{"error":{"code":"E404","summary":"Not\u001b[1m Found"}}"#, Some("npm failed: E404: Not")),
            (r#"{"error":{"code":"","summary":"no"}}"#, Some("npm failed: no")),
            (r#"{"error":{"code":7}}"#, None),
            ("[]", None),
            ("npm", None),
        ];
        for (output, expected) in cases {
            let found = complaint(output.as_bytes());
            let is_as_expected = match (&found, expected) {
                (Some(found), Some(expected)) => found.starts_with(expected) && !found.contains('\u{1b}'),
                (found, expected) => found.is_none() && expected.is_none(),
            };
            assert!(is_as_expected, "{output}: {found:?}");
        }
    }
}
