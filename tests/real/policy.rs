//! Rules of `[policy]` on the real CLI's own tools, looked at on disk.

use serde_json::json;

use crate::support::{World, call, create, creed, plays, shell};

/// Each tool that writes or runs something, in a run that allows everything and in one that allows nothing, with rules
/// for both.
#[test]
fn what_a_rule_denies_is_not_done_by_any_tool() {
    for (mode, rules, expected) in [
        ("allow", "writes.deny = [\"infra/**\"]\ncommands.deny = [\"touch\"]\n", [true, false, false, true, false]),
        ("deny", "writes.allow = [\"src/**\"]\ncommands.allow = [\"mkdir\"]\n", [true, false, false, true, false]),
        ("allow", "agents.bob.writes.deny = [\"**\"]\n", [true, true, true, true, true]),
    ] {
        let world = World::new(|root| {
            let edit = call("edit", &json!({ "path": root.join("infra/b.txt"), "old_str": "old", "new_str": "new" }));
            let created = [create(&root.join("src/a.txt"), "a"), create(&root.join("infra/a.txt"), "a")];
            let ran = [shell("mkdir made"), shell("sh -c 'touch touched'")];
            [plays("ada", &[&created[0], &created[1], &edit, &ran[0], &ran[1], "say:I tried."])]
        });
        world.repo.write("infra/b.txt", "old\n");
        world.repo.write("src/b.txt", "");
        world.repo.write("../home/config/squad/config.toml", &format!("[policy]\n{rules}"));
        let ended = world.run(&["orchestrate", "--json", "--permissions", mode, "--agent", "ada", "Do it"]);
        let is_new = world.repo.read("infra/b.txt") == "new\n";
        let exists = |path: &str| world.repo.root().join(path).exists();
        let done = [exists("src/a.txt"), exists("infra/a.txt"), is_new, exists("made"), exists("touched")];
        assert_eq!(done, expected, "{mode} {rules} {ended}");
    }
}

/// What is denied is not offered, and nothing else goes with it.
#[test]
fn a_denied_tool_is_not_offered() {
    for (rule, is_offered) in [
        ("", [true, true, true]),
        ("tools.deny = [\"grep\"]", [false, true, true]),
        ("tools.only = [\"view\", \"grep\"]", [true, false, true]),
    ] {
        let world = World::new(|_| [plays("ada", &["say:Done."])]);
        world.repo.write("../home/config/squad/config.toml", &format!("[policy]\n{rule}\n"));
        world.run(&["orchestrate", "--permissions", "allow", "--agent", "ada", "Do it"]);
        let request = world.requests_with(creed("ada")).remove(0);
        let offers = ["grep", "glob", "view"].map(|tool| request.contains(&format!("\"name\":\"{tool}\"")));
        assert_eq!(offers, is_offered, "{rule}");
    }
}
