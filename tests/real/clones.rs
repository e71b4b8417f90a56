//! Agents in clones of their own, with the real CLI: an engine for each, in a sandbox of its own.

use std::fs;
#[cfg(target_os = "linux")]
use std::{path::Path, process::Command};

use serde_json::json;

use crate::model_server::Script;
use crate::support::{COORDINATOR, World, plays, shell};

const RUN: [&str; 6] = ["orchestrate", "--json", "--permissions", "allow", "--isolation", "clone"];

/// Three side by side, each of which looks for the others and for the user's project; the next step has all their work.
#[test]
fn three_agents_work_in_three_clones_at_once_and_the_next_step_has_all_of_it() {
    let world = World::new(|root| {
        let project = root.display().to_string();
        let steps = |name: &str| {
            [
                shell(&format!("echo {name} > {name}.txt; ls; pwd")),
                shell(&format!("echo {name} > {project}/intruder.txt; echo {name} > {project}/.git/intruder; true")),
                shell(&format!("git -C {project} update-ref refs/heads/stolen HEAD; git status --short; true")),
            ]
        };
        // A second turn plays the same again.
        let plays_all = |agent: &str| {
            let own = steps(agent);
            plays(agent, &own.iter().map(String::as_str).chain(["say:Done."]).collect::<Vec<_>>())
        };
        [plays_all("ada"), plays_all("bob"), plays_all("cy"), Script::new(COORDINATOR, ["say:All is done."])]
    });
    world.repo.write("uncommitted.txt", "mine\n");
    let refs = world.repo.git(&["for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/stash"]);
    let ended = world.run(&[&RUN[..], &["@ada, @bob and @cy write their names, then @ada reads them"]].concat());
    let completed = json!({ "ada": "completed", "bob": "completed", "cy": "completed", "coordinator": "completed" });
    ended.assert_status(0, "completed", &completed);
    let events = ended.events();
    let results: Vec<String> = events
        .iter()
        .filter(|event| event["type"] == "tool.completed")
        .map(|event| event["result"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert!(results.iter().any(|result| result.starts_with("ada.txt\nbob.txt\ncy.txt\n")), "{results:?}\n{ended}");
    let alone = |name: &str| results.iter().any(|result| result.starts_with(&format!("{name}.txt\nedited.txt\n")));
    assert!(["ada", "bob", "cy"].into_iter().all(alone), "{results:?}\n{ended}");
    assert_eq!(events.iter().filter(|event| event["type"] == "clone.created").count(), 3, "{ended}");
    let levels: Vec<String> = ended.of("agent.completed").iter().map(|event| event["sandbox"].to_string()).collect();
    // All have the same: that of the system.
    assert!(levels.iter().all(|level| *level == levels[0]), "{levels:?}\n{ended}");
    if levels[0] == "\"full\"" {
        assert!(!world.repo.exists("intruder.txt") && !world.repo.exists(".git/intruder"), "{ended}");
        let now = world.repo.git(&["for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/stash"]);
        assert_eq!(now, refs);
    }
    assert_eq!(world.repo.git(&["status", "--porcelain", "uncommitted.txt"]), "?? uncommitted.txt\n");
    assert!(["ada.txt", "bob.txt", "cy.txt"].iter().all(|name| !world.repo.exists(name)));
    let run = events[0]["run"].as_str().expect("an id");
    let merged = world.run(&["merge", run, "--yes", "--json"]);
    assert_eq!(merged.code, Some(0), "{merged}");
    let text = |name: &str| fs::read_to_string(world.repo.root().join(name)).expect("a file");
    assert_eq!([text("ada.txt"), text("bob.txt"), text("cy.txt")], ["ada\n", "bob\n", "cy\n"]);
    world.assert_left_in_order(&ended);
}

/// Packages of a real `node_modules` lie over two clones at once: one agent breaks them, the other loads them all the same,
/// and the user's are untouched.
#[cfg(target_os = "linux")]
#[test]
fn a_real_node_modules_lies_over_each_clone() {
    let load = shell("node -e \"console.log(require('zod').z.string().parse('zod'), 'loads')\" || echo broken");
    let spoil =
        shell("echo broken > node_modules/zod/index.cjs; rm -r node_modules/ws; ls node_modules; git status --short");
    let world = World::on_disk(|_| {
        [
            plays("ada", &[&spoil, &load, "say:Done."]),
            plays("bob", &[&shell("sleep 3; ls node_modules"), &load, "say:Done."]),
            Script::new(COORDINATOR, ["say:All is done."]),
        ]
    });
    let folder = world.repo.root().join("node_modules");
    fs::create_dir(&folder).expect("a folder");
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/node_modules");
    for package in ["zod", "ws"] {
        let done = Command::new("cp").arg("-r").args([ours.join(package), folder.join(package)]).status();
        assert!(done.expect("it runs").success());
    }
    world.repo.write(".gitignore", "node_modules\n");
    world.repo.git(&["add", ".gitignore"]);
    world.repo.git(&["commit", "-qm", "ignore"]);
    world.repo.write("../home/config/squad/config.toml", "[isolation]\nbring = [\"node_modules\"]\n");
    let index = fs::read(folder.join("zod/index.cjs")).expect("a file");
    let ended = world.run(&[&RUN[..], &["@ada and @bob look at it"]].concat());
    let completed = json!({ "ada": "completed", "bob": "completed", "coordinator": "completed" });
    ended.assert_status(0, "completed", &completed);
    let of = |agent: &str| -> String {
        let all = ended.of("tool.completed");
        all.iter().filter(|event| event["agent"] == agent).map(|event| event["result"].to_string()).collect()
    };
    assert!(of("ada").contains("zod\\n") && !of("ada").contains("ws") && !of("ada").contains("loads"), "{ended}");
    assert!(of("bob").contains("ws\\nzod") && of("bob").contains("zod loads"), "{ended}");
    assert_eq!(fs::read(folder.join("zod/index.cjs")).expect("a file"), index);
    assert!(folder.join("ws/package.json").exists());
}
