//! A team's own hooks on the real CLI's own tools, looked at on disk and in what the model is sent.

use serde_json::json;

use crate::support::{World, call, create, creed, decide, plays, shell};

/// Hooks by point and tools, each a script for `sh`.
fn configure(world: &World, hooks: &[(&str, &str, &str)]) {
    let mut text = String::new();
    for (number, (on, tools, script)) in hooks.iter().enumerate() {
        let file = format!("hook{number}.sh");
        world.repo.write(&file, script);
        text.push_str(&format!("[hooks.h{number}]\non = \"{on}\"\nrun = [\"sh\", \"{file}\"]\n{tools}\n"));
    }
    world.repo.write("../home/config/squad/config.toml", &text);
}

/// What is denied is not done, by each tool that does something; what is changed is done as it was changed, once.
#[test]
fn what_a_hook_denies_or_changes_is_what_happens() {
    let world = World::new(|root| {
        let edit = call("edit", &json!({ "path": root.join("b.txt"), "old_str": "old", "new_str": "new" }));
        let steps =
            [create(&root.join("a.txt"), "a"), edit, shell("touch ran"), shell("touch asked"), decide("Denied")];
        let steps: Vec<&str> = steps.iter().map(String::as_str).chain(["say:I tried."]).collect();
        [plays("ada", &steps)]
    });
    world.repo.write("b.txt", "old\n");
    let changed = "{\"arguments\": {\"command\": \"echo x >> changed\", \"description\": \"d\"}}";
    let only = format!("grep -q asked && echo '{changed}'; exit 0");
    configure(
        &world,
        &[
            ("pre_tool_use", "tools = [\"create\", \"edit\", \"squad_*\"]", "echo 'not on Fridays' >&2; exit 2"),
            (
                "pre_tool_use",
                "tools = [\"bash\"]",
                &format!(
                    "tee seen | grep -q 'touch ran' && exit 2\n{}",
                    only.replace("grep -q asked", "grep -q asked seen")
                ),
            ),
        ],
    );
    let ended = world.run(&["orchestrate", "--json", "--permissions", "allow", "--agent", "ada", "Do it"]);
    let exists = |path: &str| world.repo.root().join(path).exists();
    assert!(!exists("a.txt") && !exists("ran") && !exists("asked"), "{ended}");
    assert_eq!(
        (world.repo.read("b.txt"), world.repo.read("changed")),
        ("old\n".to_owned(), "x\n".to_owned()),
        "{ended}"
    );
    assert_eq!(ended.of("tool.denied").len(), 4, "{ended}");
    assert!(ended.of("decision.logged").is_empty(), "{ended}");
    let requests = world.requests_with(creed("ada"));
    assert!(requests.last().expect("a request").contains("not on Fridays"), "the model is told why");
    // Each call that began has one end.
    assert_eq!(ended.of("tool.started").len(), ended.of("tool.completed").len(), "{ended}");
}

/// What the model reads of a result, of the beginning, and when it would stop.
#[test]
fn what_hooks_say_reaches_the_model() {
    let world = World::new(|_| [plays("ada", &[&shell("echo original-output"), "say:Done."])]);
    configure(
        &world,
        &[
            (
                "post_tool_use",
                "tools = [\"bash\"]",
                "echo '{\"result\": \"nothing to see\", \"context\": \"mind the gap\"}'",
            ),
            ("session_start", "", "echo '{\"context\": \"# Today is quiet.\"}'"),
            ("agent_stop", "", "grep -q '\"held\":0' && echo '{\"deny\": \"run the tests first\"}'; exit 0"),
            ("session_end", "", "cat > ended.json"),
        ],
    );
    let ended = world.run(&["orchestrate", "--json", "--permissions", "allow", "--agent", "ada", "Do it"]);
    let requests = world.requests_with(creed("ada"));
    // The scripted model plays its turn again for each message.
    assert_eq!(requests.len(), 4, "{ended}");
    assert!(requests[0].contains("> # Today is quiet."), "it is quoted: {}", requests[0]);
    assert!(
        requests[1].contains("nothing to see") && requests[1].contains("[hook h0] mind the gap"),
        "{}",
        requests[1]
    );
    assert!(!requests[1].contains("original-output\\n"), "{}", requests[1]);
    assert!(requests[2].contains("run the tests first"), "{}", requests[2]);
    let end = ended.only("agent.completed");
    assert_eq!((&end["text"], ended.of("agent.message").len()), (&json!("Done."), 2), "{ended}");
    assert!(world.repo.read("ended.json").contains("\"reason\":\"completed\""), "{ended}");
}
