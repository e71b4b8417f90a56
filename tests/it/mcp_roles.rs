//! `squad mcp`: roles that are odd, and calls that are.

use serde_json::{Value, json};

use crate::mcp_client::McpClient;
use crate::support::TestRepo;

fn members(role: &str) -> Value {
    json!({"members": [{"roleId": role, "task": "Look."}]})
}

#[test]
fn a_user_with_roles_needs_no_team() {
    let repo = TestRepo::empty();
    repo.write("../own/critic.md", "---\nname: Critic\n---\nYou doubt.\n");
    let folder = repo.root().with_file_name("own");
    let variables = [("AGENTS_DIRECTORY_PATH", folder.to_str().expect("UTF-8"))];
    let start = || McpClient::start_in(&repo, &repo.root(), &["--engine", "rehearsal"], &variables).greet("2025-06-18");
    let mut client = start();
    assert_eq!(client.structured("list_roles", json!({}))["roles"][0]["id"], "critic");
    let result = client.structured("start_squad_members", members("critic"));
    assert_eq!(result["members"][0]["status"], "completed", "{result}");
    let again = start().structured("get_run", json!({"squadId": result["squadId"]}));
    assert_eq!(again["members"], result["members"]);
    assert!(!repo.exists(".squad"));
    repo.assert_sound();
    // Without such a folder the role is not there.
    let mut without = McpClient::greeted(&repo, "2025-06-18", &["--engine", "rehearsal"]);
    assert!(without.refused("start_squad_members", members("critic")).contains("there is no role `critic`"));
}

#[test]
fn a_role_that_cannot_be_read_stops_nobody_else() {
    let repo = TestRepo::with_small_team();
    let large = "You test.\n".repeat(150_000);
    repo.write(".squad/roles/large.md", &large);
    repo.write(".squad/agents/huge.md", &large);
    let mut client = McpClient::greeted(&repo, "2025-06-18", &["--engine", "rehearsal"]);
    let listed = client.structured("list_roles", json!({}));
    for id in ["large", "huge"] {
        let roles = listed["roles"].as_array().expect("a list");
        let role = roles.iter().find(|role| role["id"] == id).expect("it is listed");
        assert!(role["error"].as_str().is_some_and(|error| error.contains("1048576 are read")), "{role}");
        assert!(client.refused("start_squad_members", members(id)).contains("cannot be used"));
    }
    let result = client.structured("start_squad_members", members("ada"));
    assert_eq!(result["members"][0]["status"], "completed", "{result}");
}

/// A role is in each prompt, so it is used whole or not at all.
#[test]
fn a_role_is_not_as_long_as_a_book() {
    let repo = TestRepo::with_small_team();
    repo.write(".squad/roles/long.md", &"You test.\n".repeat(6_500));
    repo.write(".squad/roles/longer.md", &"You test.\n".repeat(6_600));
    let mut client = McpClient::greeted(&repo, "2025-06-18", &["--engine", "rehearsal"]);
    assert_eq!(client.structured("start_squad_members", members("long"))["status"], "completed");
    let said = client.refused("start_squad_members", members("longer"));
    assert!(said.contains(".squad/roles/longer.md: its text has 65999 bytes, and a role at most 65536"), "{said}");
    let check = repo.squad(&["mcp", "--check", "--engine", "rehearsal"]);
    assert!(check.code == 1 && check.err.contains("longer.md: its text has 65999 bytes"), "{check}");
}

#[test]
fn a_wrong_argument_is_named_by_its_path() {
    let repo = TestRepo::with_small_team();
    let mut client = McpClient::greeted(&repo, "2025-06-18", &["--engine", "rehearsal"]);
    let mut wrong = members("ada");
    wrong["members"][0]["timeoutSec"] = "soon".into();
    let said = client.refused("start_squad_members", wrong);
    assert!(said == "`members[0].timeoutSec` must be an integer, not a string", "{said}");
    let long = "x".repeat(100_000);
    let mut wrong = members(&long);
    wrong["members"][0]["cwd"] = long.as_str().into();
    wrong["members"][0]["engine"] = long.as_str().into();
    let said = client.refused("start_squad_members", wrong);
    assert!(said.contains("xxx…`") && said.contains("xxx…\" ") && said.len() < 1000, "{} bytes", said.len());
    for limit in [0, 501] {
        let said = client.refused("list_decisions", json!({"limit": limit}));
        assert_eq!(said, "`limit` must be between 1 and 500");
    }
    let said = client.refused("get_run", json!({"squadId": 7}));
    assert!(said.starts_with("`squadId` must be a string, not "), "{said}");
}

#[test]
fn a_member_at_work_says_for_how_long() {
    let repo = TestRepo::with_small_team();
    let script = repo.root().with_file_name("script.toml");
    std::fs::write(&script, "[[turn]]\nagent = \"ada\"\nsteps = [{ hang = true }]\n").expect("a script");
    let variables = [("SQUAD_REHEARSAL", script.to_str().expect("UTF-8"))];
    let mut client =
        McpClient::start_in(&repo, &repo.root(), &["--engine", "rehearsal"], &variables).greet("2025-06-18");
    let mut asked = members("ada");
    asked["wait"] = false.into();
    let run = client.structured("start_squad_members", asked)["squadId"].clone();
    let begun = std::time::Instant::now();
    loop {
        let member = client.structured("get_run", json!({"squadId": run}))["members"][0].clone();
        if member["status"] == "running" && member["durationMs"].as_u64() > Some(0) {
            break;
        }
        assert!(begun.elapsed().as_secs() < 60, "{member}");
    }
    client.structured("cancel_run", json!({"squadId": run}));
}
