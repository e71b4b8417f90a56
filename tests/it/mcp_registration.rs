//! `squad mcp --register`: the server is added to clients' files, which keep all else.

use std::fs;

use serde_json::{Value, json};

use crate::support::TestRepo;

/// Each client, its file in a project and in the user's home, and the key of its servers.
const CLIENTS: [(&str, &str, &str, &str); 5] = [
    ("copilot", ".github/mcp.json", ".copilot/mcp-config.json", "mcpServers"),
    ("claude", ".mcp.json", ".claude.json", "mcpServers"),
    ("vscode", ".vscode/mcp.json", "config/Code/User/mcp.json", "servers"),
    ("cursor", ".cursor/mcp.json", ".cursor/mcp.json", "mcpServers"),
    ("codex", ".codex/config.toml", ".codex/config.toml", "mcp_servers"),
];

fn read(text: &str, path: &str) -> Value {
    match path.ends_with(".toml") {
        true => toml::from_str(text).expect("TOML"),
        false => serde_json::from_str(text).expect("JSON"),
    }
}

#[test]
fn every_client_is_registered_once_in_the_project_and_at_home() {
    let repo = TestRepo::with_small_team();
    for (client, in_project, at_home, list) in CLIENTS {
        for (scope, path) in [(&[][..], in_project), (&["--user"], at_home)] {
            let args = [&["mcp", "--register", client], scope].concat();
            let path = if scope.is_empty() { repo.root().join(path) } else { repo.home().join(path) };
            let output = repo.squad(&args);
            assert!(output.code == 0 && output.err.contains("registered squad with"), "{output}");
            let text = fs::read_to_string(&path).expect("the client's file");
            let server = &read(&text, &path.to_string_lossy())[list]["squad"];
            assert_eq!(server["args"], json!(["mcp"]), "{text}");
            let again = repo.squad(&args);
            assert!(again.code == 0 && again.err.contains("has squad already") && again.out.is_empty(), "{again}");
            assert_eq!(fs::read_to_string(&path).expect("the client's file"), text);
        }
    }
    assert_eq!(repo.git(&["diff", "--cached", "--name-only"]), "", "the index is the user's");
}

#[test]
fn what_a_client_has_already_stays() {
    let repo = TestRepo::with_small_team();
    let old = "{\r\n  // ours\r\n  \"inputs\": [],\r\n  \"servers\": {\r\n    \"git\": {\"command\": \"uvx\"}, // kept\r\n    \
        \"squad\": {\r\n      \"command\": \"/old/squad\",\r\n      \"args\": [\"-C\", \"/old\", \"mcp\"],\r\n      \
        \"env\": {\"MINE\": \"1\"},\r\n      \"disabled\": true,\r\n    },\r\n  },\r\n}\r\n";
    repo.write(".vscode/mcp.json", old);
    let output = repo.squad(&["mcp", "--register", "vscode"]);
    assert!(output.code == 0 && output.out.contains("-      \"command\": \"/old/squad\""), "{output}");
    let new = repo.read(".vscode/mcp.json");
    let expected = old
        .replace("\"/old/squad\"", "\"squad\"")
        .replace("[\"-C\", \"/old\", \"mcp\"]", "[\"mcp\"]")
        .replace("\"disabled\": true,\r\n", "\"disabled\": true,\r\n      \"type\": \"stdio\",\r\n");
    assert_eq!(new, expected);

    let strict = "[mcp_servers.squad]\r\ncommand = \"squad\"\r\ndefault_tools_approval_mode = \"prompt\"\r\n";
    repo.write(".codex/config.toml", strict);
    assert_eq!(repo.squad(&["mcp", "--register", "codex"]).code, 0);
    let expected = format!("{strict}args = [\"mcp\"]\r\ntool_timeout_sec = 3600\r\n");
    assert_eq!(repo.read(".codex/config.toml"), expected);

    let old = "# mine\nmodel = \"gpt-5\" # best\n\n[mcp_servers.squad]\ncommand = \"squad\" # here\nargs = ['-C', '/old', 'mcp']\n\n\
        [mcp_servers.squad.env]\nMINE = \"1\"\n\n[mcp_servers.git]\ncommand = \"uvx\"\n";
    repo.write(".codex/config.toml", old);
    let mut repo = repo;
    repo.variables.insert("STATE_MODE".to_owned(), "stateful".to_owned());
    let output = repo.squad(&["mcp", "--register", "codex"]);
    assert_eq!(output.code, 0, "{output}");
    let expected = old
        .replace(
            "['-C', '/old', 'mcp']",
            "[\"mcp\"]\ntool_timeout_sec = 3600\ndefault_tools_approval_mode = \"approve\"",
        )
        .replace("MINE = \"1\"\n", "MINE = \"1\"\nSTATE_MODE = \"stateful\"\n");
    assert_eq!(repo.read(".codex/config.toml"), expected);
}

#[test]
fn nothing_of_this_machine_goes_into_a_file_of_the_project() {
    let mut repo = TestRepo::with_small_team();
    let roles = repo.home().join("roles");
    fs::create_dir_all(&roles).expect("a folder");
    repo.variables.insert("AGENTS_DIRECTORY_PATH".to_owned(), roles.display().to_string());
    repo.variables.insert("STATE_MODE".to_owned(), "stateful".to_owned());
    let flags = ["--permissions", "allow", "--model", "m 1"];
    let shared = repo.squad(&[&["mcp", "--register", "claude"], &flags[..]].concat());
    assert!(shared.code == 0 && shared.err.contains("AGENTS_DIRECTORY_PATH is for this machine"), "{shared}");
    let text = repo.read(".mcp.json");
    let server = &read(&text, ".mcp.json")["mcpServers"]["squad"];
    assert_eq!(server["args"], json!(["mcp", "--model=m 1", "--permissions=allow"]));
    assert_eq!((&server["command"], &server["env"]), (&json!("squad"), &json!({"STATE_MODE": "stateful"})), "{text}");
    let own = repo.squad(&["mcp", "--register", "claude", "--user", "--json"]);
    let own: Value = serde_json::from_str(&own.out).expect("JSON");
    let diff = own["diff"].as_str().expect("a diff");
    assert!(own["changed"] == json!(true) && diff.contains("AGENTS_DIRECTORY_PATH"), "{own}");
}

#[test]
fn a_file_that_is_not_the_clients_is_left_alone() {
    let repo = TestRepo::with_small_team();
    for (client, path, text) in [
        ("claude", ".mcp.json", "{\"mcpServers\": "),
        ("claude", ".mcp.json", "[]"),
        ("claude", ".mcp.json", "{\"mcpServers\": []}"),
        ("claude", ".mcp.json", "{\"mcpServers\": {\"squad\": 1}}"),
        ("cursor", ".cursor/mcp.json", "mcpServers: {}"),
        ("codex", ".codex/config.toml", "[mcp_servers\n"),
        ("codex", ".codex/config.toml", "mcp_servers = 1\n"),
        ("codex", ".codex/config.toml", "[[mcp_servers.squad]]\n"),
        ("codex", ".codex/config.toml", "[mcp_servers.squad]\ncommand = \"other\"\n"),
        ("claude", ".mcp.json", "{\"mcpServers\": {\"squad\": {\"type\": \"http\", \"url\": \"http://x\"}}}"),
        ("claude", ".mcp.json", "{\"mcpServers\": {\"squad\": {\"command\": \"my\"}}}"),
        ("claude", ".mcp.json", "{\"mcpServers\": {}, \"mcpServers\": {}}"),
        ("vscode", ".vscode/mcp.json", &"[".repeat(100_000)),
    ] {
        repo.write(path, text);
        let output = repo.squad(&["mcp", "--register", client]);
        assert!(output.code == 1 && output.err.contains("has not changed it"), "{text:.60}: {output}");
        assert!(output.err.contains(path) && output.err.contains(&format!("--print-config {client}")), "{output}");
        assert_eq!(repo.read(path), text);
    }
    repo.write(".mcp.json", "{}");
    fs::write(repo.root().join(".mcp.json"), b"{\"a\": \"\xff\"}").expect("a file");
    let output = repo.squad(&["mcp", "--register", "claude"]);
    assert!(output.code == 1 && output.err.contains("utf-8"), "{output}");
}

#[test]
fn links_folders_and_read_only_files_are_not_written() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let repo = TestRepo::with_small_team();
    let elsewhere = repo.home().join("elsewhere");
    fs::create_dir_all(&elsewhere).expect("a folder");
    fs::write(elsewhere.join("mcp.json"), "{}").expect("a file");
    symlink(elsewhere.join("mcp.json"), repo.root().join(".mcp.json")).expect("a link");
    symlink(&elsewhere, repo.root().join(".cursor")).expect("a link");
    symlink(elsewhere.join("missing"), repo.home().join(".claude.json")).expect("a link");
    fs::create_dir_all(repo.root().join(".vscode/mcp.json")).expect("a folder");
    repo.write(".github/mcp.json", "{}");
    fs::set_permissions(repo.root().join(".github/mcp.json"), fs::Permissions::from_mode(0o444)).expect("a mode");
    for (args, reason) in [
        (&["claude"][..], "it is a link"),
        (&["claude", "--user"], "it is a link"),
        (&["cursor"], "it is a link"),
        (&["vscode"], "it is not a file"),
        (&["copilot"], "it is read-only"),
    ] {
        let output = repo.squad(&[&["mcp", "--register"], args].concat());
        assert!(output.code == 1 && output.err.contains(reason), "{args:?}: {output}");
    }
    assert_eq!(fs::read_to_string(elsewhere.join("mcp.json")).expect("a file"), "{}");
    assert!(!elsewhere.join("missing").exists());
    // The mode of a file stays.
    fs::remove_file(repo.root().join(".mcp.json")).expect("a link");
    repo.write(".mcp.json", "{}");
    fs::set_permissions(repo.root().join(".mcp.json"), fs::Permissions::from_mode(0o600)).expect("a mode");
    assert_eq!(repo.squad(&["mcp", "--register", "claude"]).code, 0);
    let mode = fs::metadata(repo.root().join(".mcp.json")).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    fs::remove_file(repo.home().join(".claude.json")).expect("a link");
    fs::write(repo.home().join(".claude.json"), "{}").expect("a file");
    fs::set_permissions(repo.home().join(".claude.json"), fs::Permissions::from_mode(0o640)).expect("a mode");
    assert_eq!(repo.squad(&["mcp", "--register", "claude", "--user"]).code, 0);
    let mode = fs::metadata(repo.home().join(".claude.json")).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
}

#[test]
fn what_is_printed_is_what_is_registered() {
    for (client, in_project, at_home, _) in CLIENTS {
        for (scope, path) in [(&[][..], in_project), (&["--user"], at_home)] {
            let mut repo = TestRepo::with_small_team();
            let roles = repo.home().join("roles");
            fs::create_dir_all(&roles).expect("a folder");
            repo.variables.insert("AGENTS_DIRECTORY_PATH".to_owned(), roles.display().to_string());
            repo.variables.insert("STATE_MODE".to_owned(), "stateful".to_owned());
            let printed = repo.squad(&[&["mcp", "--print-config", client], scope].concat());
            assert_eq!(repo.squad(&[&["mcp", "--register", client], scope].concat()).code, 0);
            let path = if scope.is_empty() { repo.root().join(path) } else { repo.home().join(path) };
            let text = fs::read_to_string(&path).expect("the client's file");
            let text = text.replace(&repo.home().display().to_string(), "HOME");
            assert_eq!(printed.out.trim_end(), text.trim_end(), "{scope:?}");
            let is_of_here = printed.out.contains("AGENTS_DIRECTORY_PATH");
            let is_left_out = printed.err.contains("AGENTS_DIRECTORY_PATH is for this machine and was left out");
            assert_eq!((is_of_here, is_left_out), (!scope.is_empty(), scope.is_empty()), "{printed}");
        }
    }
    let neither = TestRepo::with_small_team().squad(&["mcp", "--user"]);
    assert!(neither.code == 2 && neither.err.contains("--register"), "{neither}");
}

#[test]
fn a_registration_keeps_flags_and_variables() {
    let mut repo = TestRepo::with_small_team();
    for (name, value) in [("STATE_MODE", "stateful"), ("PROCESS_TIMEOUT_MS", "60000"), ("SQUAD_MODEL", "it's \"big\"")]
    {
        repo.variables.insert(name.to_owned(), value.to_owned());
    }
    let flags = ["--permissions", "allow", "--engine", "rehearsal", "--model", "m 1", "--max-concurrent", "3"];
    let printed = |client| repo.squad(&[&["mcp", "--print-config", client], &flags[..]].concat()).out;
    let args = json!(["mcp", "--engine=rehearsal", "--max-concurrent=3", "--model=m 1", "--permissions=allow"]);
    let variables = json!({"PROCESS_TIMEOUT_MS": "60000", "SQUAD_MODEL": "it's \"big\"", "STATE_MODE": "stateful"});
    let claude: Value = serde_json::from_str(&printed("claude")).expect("JSON");
    let server = &claude["mcpServers"]["squad"];
    assert_eq!((&server["args"], &server["env"]), (&args, &variables));
    let codex: Value = toml::from_str(&printed("codex")).expect("TOML");
    let server = &codex["mcp_servers"]["squad"];
    assert_eq!((&server["args"], &server["env"]), (&args, &variables));
    let output = repo.squad(&["mcp", "--print-config", "claude", "--max-concurrent", "many"]);
    assert!(output.code == 2 && output.out.is_empty(), "{output}");
}
