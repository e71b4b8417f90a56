//! Agents in clones of their own, with the real CLI: an engine for each, in a sandbox of its own.

use std::fs;

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
