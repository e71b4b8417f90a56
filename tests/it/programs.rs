//! A cloned repository brings no programs with it.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::support::TestRepo;

/// Programs that squad starts, and that git or the CLI start for it.
const NAMES: [&str; 7] = ["git", "copilot", "copilot-runtime", "ssh", "gpg", "false", "gh"];

/// A program that leaves a mark.
fn brought(repo: &TestRepo, path: &str) {
    repo.write_script(path, "#!/bin/sh\necho \"$0\" \"$@\" >>\"$HOME/cache/ran\"\n");
}

fn ran(repo: &TestRepo) -> String {
    fs::read_to_string(repo.root().join("../home/cache/ran")).unwrap_or_default()
}

fn platform_package() -> String {
    let system = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let processor = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    format!("node_modules/@github/copilot-{system}-{processor}")
}

/// Every command that starts a program, and one of each kind that only git is started for.
const COMMANDS: [&[&str]; 9] = [
    &["engines"],
    &["doctor"],
    &["orchestrate", "--agent", "ada", "Build it"],
    &["orchestrate", "--agent", "ada", "--engine", "rehearsal", "Build it"],
    &["decisions", "add", "Names are short"],
    &["agents", "--json"],
    &["sync"],
    &["gc"],
    &["status"],
];

/// The folder that holds the programs, and what `PATH` begins with, from the work tree.
const WAYS: [(&str, &str); 8] = [
    ("bin", "REPO/bin"),
    ("node_modules/.bin", "REPO/node_modules/.bin"),
    ("../node_modules/.bin", "REPO/../node_modules/.bin"),
    ("node_modules/.bin", "node_modules/.bin"),
    (".", "."),
    (".", ""),
    ("bin", "REPO/../alias/bin"),
    ("bin", "REPO/../links"),
];

#[test]
fn the_checkout_around_the_user_brings_no_programs_to_another() {
    let (mut repo, other) = (TestRepo::with_small_team(), TestRepo::with_small_team());
    for name in NAMES {
        brought(&repo, &format!("bin/{name}"));
    }
    let path = format!("{}:{}", repo.root().join("bin").display(), repo.variables["PATH"]);
    repo.variables.insert("PATH".to_owned(), path);
    let other = other.root().display().to_string();
    for command in COMMANDS {
        repo.squad(&[&["-C", other.as_str()], command].concat());
        assert_eq!(ran(&repo), "", "{command:?}");
    }
}

#[test]
fn no_command_runs_what_the_checkout_brings() {
    for (folder, path) in WAYS {
        let mut repo = TestRepo::with_small_team();
        repo.git(&["remote", "add", "origin", "ssh://127.0.0.1:1/nowhere"]);
        for name in NAMES {
            brought(&repo, &format!("{folder}/{name}"));
        }
        for parent in [".", ".."] {
            brought(&repo, &format!("{parent}/{}/copilot", platform_package()));
        }
        symlink(repo.root(), repo.root().join("../alias")).expect("a link");
        fs::create_dir(repo.root().join("../links")).expect("a folder");
        for name in NAMES {
            symlink(repo.root().join(folder).join(name), repo.root().join("../links").join(name)).expect("a link");
        }
        let own = repo.variables["PATH"].clone();
        let path = path.replace("REPO", &repo.root().display().to_string());
        repo.variables.insert("PATH".to_owned(), format!("{path}:{own}"));
        repo.variables.remove("COPILOT_CLI_PATH");
        for command in COMMANDS {
            let output = repo.squad(command);
            assert_eq!(ran(&repo), "", "{path}: {command:?}\n{output}");
            let needs_only_git = matches!(command[0], "decisions" | "gc" | "status" | "agents");
            assert!(!needs_only_git || output.code == 0, "the user's own git serves\n{output}");
        }
    }
}

#[test]
fn what_is_not_run_is_named_with_what_to_set() {
    let mut repo = TestRepo::with_small_team();
    let package = format!("{}/copilot", platform_package());
    brought(&repo, &package);
    brought(&repo, "bin/git");
    repo.variables.remove("COPILOT_CLI_PATH");
    let output = repo.squad(&["orchestrate", "--agent", "ada", "Build it"]);
    assert_eq!(output.code, 4, "{output}");
    assert!(output.err.contains(&format!("REPO/{package} belongs to the checkout")), "{output}");
    assert!(output.err.contains("squad config set --user engine.copilot.path"), "{output}");

    repo.variables.insert("PATH".to_owned(), repo.root().join("bin").display().to_string());
    for command in ["gc", "doctor"] {
        let output = repo.squad(&[command]).to_string();
        assert!(output.contains("git cannot be run: REPO/bin/git belongs to the checkout"), "{output}");
        assert!(output.contains("squad config set --user git.program 'REPO/bin/git'"), "{output}");
    }
    assert_eq!(ran(&repo), "");
}

#[test]
fn what_the_user_names_is_run_though_it_lies_in_the_checkout() {
    let mut repo = TestRepo::with_small_team();
    let (git, copilot) = (repo.root().join("bin/git"), repo.root().join(platform_package()).join("copilot"));
    brought(&repo, "bin/git");
    brought(&repo, &format!("{}/copilot", platform_package()));
    repo.variables.remove("COPILOT_CLI_PATH");
    let named = |program: &Path| {
        fs::read_to_string(repo.root().join("../home/cache/ran"))
            .unwrap_or_default()
            .contains(program.to_str().expect("UTF-8"))
    };

    assert_eq!(repo.squad(&["config", "set", "--user", "git.program", git.to_str().expect("UTF-8")]).code, 0);
    repo.squad(&["gc"]);
    assert!(named(&git), "{}", ran(&repo));
    // A repository cannot name it.
    fs::remove_file(repo.root().join("../home/config/squad/config.toml")).expect("the user's file");
    fs::remove_file(repo.root().join("../home/cache/ran")).expect("the mark");
    repo.write(".squad/config.toml", &format!("[git]\nprogram = {:?}\n", git.display().to_string()));
    let output = repo.squad(&["doctor"]);
    assert!(output.out.contains("`git.program` is ignored: a repository may not set it"), "{output}");
    assert!(!named(&git), "{}", ran(&repo));

    for key in ["engine.copilot.path", "COPILOT_CLI_PATH"] {
        let mut repo = TestRepo::with_small_team();
        let copilot = repo.root().join("tool/copilot");
        brought(&repo, "tool/copilot");
        repo.variables.remove("COPILOT_CLI_PATH");
        match key {
            "COPILOT_CLI_PATH" => drop(repo.variables.insert(key.to_owned(), copilot.display().to_string())),
            _ => assert_eq!(repo.squad(&["config", "set", "--user", key, copilot.to_str().expect("UTF-8")]).code, 0),
        }
        // In a process of its own: where the clock is paused, a program has no time to begin.
        let mut engines = repo.command(env!("CARGO_BIN_EXE_squad"), &repo.root());
        engines.arg("engines").output().expect("squad runs");
        assert!(ran(&repo).contains(copilot.to_str().expect("UTF-8")), "{key}: {}", ran(&repo));
    }
    assert!(!named(&copilot), "{}", ran(&repo));
}

/// Agents would look in vain for what an activated virtual environment brings.
#[test]
fn doctor_names_the_folders_of_the_path_that_are_left_out() {
    let mut repo = TestRepo::with_small_team();
    let folder = repo.root().join(".venv/bin");
    fs::create_dir_all(&folder).expect("a folder");
    let path = std::env::join_paths([folder.as_path(), Path::new("/usr/bin"), Path::new("/bin")]).expect("folders");
    assert!(!repo.squad(&["doctor"]).out.contains("in the work tree"));
    repo.variables.insert("PATH".to_owned(), path.into_string().expect("UTF-8"));
    let output = repo.squad(&["doctor"]);
    assert!(output.out.contains("  config     PATH: REPO/.venv/bin is in the work tree"), "{output}");
}
