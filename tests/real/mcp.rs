//! MCP servers of the user's own, as the real CLI starts them.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::support::{World, call, creed, plays};

/// A server with one tool, which says what it was started with.
const SERVER: &str = r#"#!/bin/sh
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*)
      answer '{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"tides","version":"1"}}' ;;
    *'"tools/list"'*)
      answer '{"tools":[{"name":"tide","description":"Says the tide","inputSchema":{"type":"object","properties":{}}},{"name":"spill","description":"Spills it","inputSchema":{"type":"object","properties":{}}}]}' ;;
    *'"tools/call"'*) answer "{\"content\":[{\"type\":\"text\",\"text\":\"high tide at $1, by $TIDES_KEY\"}]}" ;;
    *) [ -n "$id" ] && answer '{}' ;;
  esac
done
"#;

/// Nobody's secret.
const KEY: &str = "k39dkf83jd02mfq";

fn world() -> World {
    let world = World::new(|_| [plays("ada", &[&call("tides-tide", &json!({})), "say:I looked."])]);
    let server = Path::new(&world.repo.variables["HOME"]).with_file_name("tides.sh");
    crate::repository::script::write(&server, SERVER);
    let user = format!(
        "[mcp.servers.tides]\ncommand = \"{}\"\nargs = [\"noon\"]\nenv = {{ TIDES_KEY = \"{KEY}\" }}\n\
         [mcp.servers.gone]\ncommand = \"no-such-server\"\n",
        server.display()
    );
    world.repo.write("../home/config/squad/config.toml", &user);
    world
}

fn run(world: &World, more: &[&str]) -> crate::support::Ended {
    world.run(&[&["orchestrate", "--json", "--agent", "ada"], more, &["Look"]].concat())
}

#[test]
fn the_users_servers_give_agents_tools_and_a_repositorys_do_not() {
    let world = world();
    let evil = "[mcp.servers.evil]\ncommand = \"touch\"\nargs = [\"pwned\"]\n";
    world.repo.write(".squad/config.toml", evil);
    let ended = run(&world, &["--permissions", "allow"]);
    ended.assert_status(0, "completed", &json!({ "ada": "completed" }));
    let requests = world.requests_with(creed("ada"));
    assert!(requests[0].contains("\"tides-tide\"") && requests[0].contains("Says the tide"), "{}", requests[0]);
    assert!(requests[1].contains(&format!("high tide at noon, by {KEY}")), "{}", requests[1]);
    let warned = "config.toml:2: `mcp.servers.evil` is ignored: a repository may not set it";
    assert!(ended.err.contains(warned) && !world.repo.exists("pwned"), "{ended}");
    let errors = ended.of("session.error");
    assert!(errors.iter().any(|event| event["reason"].to_string().contains("the MCP server `gone` cannot be used")));
    // What a server is given is kept out of the record, and out of lists.
    assert!(ended.only("tool.completed")["result"].to_string().contains("by [redacted:"), "{ended}");
    assert!(!world.ledger("tool.completed").concat().contains(KEY));
    assert!(!world.repo.squad(&["config", "list"]).out.contains(KEY));
}

/// Once it is approved, with a key from the environment, and only the tools that it says; and no more once its program
/// changes. In each place that can bring one; what a charter brings is for its agent alone.
#[test]
fn a_repositorys_server_is_used_once_it_is_approved() {
    let server = r#"{"type": "local", "command": "sh", "args": ["tools/tides.sh", "noon"], "tools": ["tide"], "env": {"TIDES_KEY": "${TIDES_SECRET}"}}"#;
    let charter = ".squad/agents/ada/charter.md";
    for place in [".squad/config.toml", ".squad/config.json", charter] {
        let turns = |name| plays(name, &[&call("tides-tide", &json!({})), "say:I looked."]);
        let world = World::new(|_| [turns("ada"), turns("bob")]);
        let text = match place {
            ".squad/config.toml" => "[mcp.servers.tides]\ncommand = \"sh\"\nargs = [\"tools/tides.sh\", \"noon\"]\n\
                 tools = [\"tide\"]\nenv = { TIDES_KEY = \"${TIDES_SECRET}\" }\n"
                .to_owned(),
            ".squad/config.json" => format!(r#"{{"mcp": {{"servers": {{"tides": {server}}}}}}}"#),
            _ => format!(
                "---\ntools: [view, \"tides/tide\"]\nmcp-servers:\n  tides: {server}\n---\n{}",
                world.repo.read(charter)
            ),
        };
        world.repo.write(place, &text);
        is_used_once_it_is_approved(world, place != charter);
    }
}

fn is_used_once_it_is_approved(mut world: World, is_for_all: bool) {
    world.repo.variables.insert("TIDES_SECRET".to_owned(), KEY.to_owned());
    world.repo.write("tools/tides.sh", SERVER);
    let uses = |world: &World| {
        let before = world.requests_with(creed("ada")).len();
        let ended = run(world, &["--permissions", "allow"]);
        let requests = world.requests_with(creed("ada")).split_off(before);
        assert!(!requests.concat().contains("tides-spill"), "{ended}");
        requests.concat().contains(&format!("high tide at noon, by {KEY}"))
    };
    assert!(!uses(&world));
    let listed = world.repo.squad(&["trust"]).out;
    assert!(listed.contains("mcp.servers.tides  not approved") && listed.contains("file tools/tides.sh"), "{listed}");
    let approved = world.repo.squad(&["trust", "approve", "mcp.servers.tides", "--yes"]);
    assert_eq!(approved.code, 0, "{approved}");
    assert!(uses(&world));
    let ended = world.run(&["orchestrate", "--json", "--permissions", "allow", "--agent", "bob", "Look"]);
    assert_eq!(world.requests_with(creed("bob")).concat().contains("Says the tide"), is_for_all, "{ended}");
    world.repo.write("tools/tides.sh", &SERVER.replace("high", "low"));
    assert!(!uses(&world));
    assert!(world.repo.squad(&["trust"]).out.contains("changed since you approved it"));
}

#[test]
fn their_tools_need_a_permission_and_small_questions_go_without() {
    let world = world();
    let ended = run(&world, &["--permissions", "deny"]);
    assert!(!world.requests_with(creed("ada"))[1].contains("high tide"), "{ended}");
    assert_eq!(ended.only("tool.denied")["reason"], "calling MCP tools is not allowed in this run (permissions: deny)");
    let before = world.model.requests().len();
    run(&world, &["--permissions", "allow", "--tier", "lightweight"]);
    assert!(!world.model.requests()[before].to_string().contains("tides-tide"));
}

#[test]
fn a_silent_server_is_named_and_the_others_are_used() {
    let world = world();
    let config = "../home/config/squad/config.toml";
    let user = world.repo.read(config) + "[mcp.servers.silent]\ncommand = \"sleep\"\nargs = [\"600\"]\n";
    world.repo.write(config, &user);
    let ended = run(&world, &["--permissions", "allow"]);
    ended.assert_status(0, "completed", &json!({ "ada": "completed" }));
    assert!(world.requests_with(creed("ada"))[1].contains("high tide at noon"), "{ended}");
    let errors = ended.of("session.error");
    let is_named = |event: &&Value| event["reason"].to_string().contains("the MCP server `silent`");
    assert!(errors.iter().any(|event| is_named(&event)), "{ended}");
    assert_eq!(world.processes(), [], "{ended}");
}

/// A server that goes wrong later than with its first answer: the run goes on, ends, and leaves nothing running.
#[test]
fn a_server_that_floods_or_falls_silent_holds_nobody_up() {
    // What the server does first with a request of that kind.
    let at = |method: &str, does: &str| {
        let about = if method.is_empty() { "*".to_owned() } else { format!("*'\"{method}\"'*") };
        SERVER.replacen("  case", &format!("  case \"$line\" in {about}) {does} ;; esac\n  case"), 1)
    };
    let message = r#"#!/bin/sh
exec yes '{"jsonrpc":"2.0","method":"notifications/message"}'
"#;
    // The session's start is the second one, after the trial, and in a sandbox.
    let once = |does: &str| {
        let counted = format!("#!/bin/sh\nif [ -e .git/tried ]; then {does}; fi\ntouch .git/tried\n");
        SERVER.replacen("#!/bin/sh\n", &counted, 1)
    };
    let tool = |number: usize| {
        format!(
            r#"{{"name":"tide{number}","description":"One more","inputSchema":{{"type":"object","properties":{{}}}}}}"#
        )
    };
    let many: Vec<String> = (0..1000).map(tool).collect();
    let many = SERVER.replace(r#"{"tools":["#, &format!(r#"{{"tools":[{},"#, many.join(",")));
    for (what, server, is_unusable) in [
        ("floods at once", "#!/bin/sh\nexec yes\n".to_owned(), true),
        ("floods with messages", message.to_owned(), true),
        ("never lists", at("tools/list", "continue"), true),
        ("never answers a call", at("tools/call", "continue"), false),
        ("floods in a call", at("tools/call", "yes x | head -c 40000000 | tr -d '\\n'; exit"), false),
        ("dies in a call", at("tools/call", "exit 3"), false),
        ("prints noise", at("", "echo 'noise {' ; echo '[1, 2]'"), false),
        ("has 1,000 tools", many, false),
        ("dies after its trial", once("exit 3"), true),
        ("falls silent after its trial", once("exec sleep 600"), true),
    ] {
        let world = world();
        let path = Path::new(&world.repo.variables["HOME"]).with_file_name("tides.sh");
        std::fs::write(&path, &server).expect("a file");
        let config = "../home/config/squad/config.toml";
        let user = world.repo.read(config).replace("args = [\"noon\"]", "args = [\"noon\"]\ntimeout = \"3s\"");
        world.repo.write(config, &user);
        let began = std::time::Instant::now();
        let ended = run(&world, &["--permissions", "allow"]);
        println!("{what}: {:?}", began.elapsed());
        ended.assert_status(0, "completed", &json!({ "ada": "completed" }));
        assert!(ended.out.len() < 4 << 20, "{what}: {} bytes", ended.out.len());
        let errors = ended.of("session.error");
        let is_named = errors.iter().any(|event| event["reason"].to_string().contains("the MCP server `tides`"));
        assert_eq!(is_named, is_unusable, "{what}: {ended}");
        assert_eq!(world.processes(), [], "{what}: {ended}");
    }
}

#[test]
fn an_endpoint_of_ones_own_says_how_much_it_takes() {
    let mut world = World::new(|_| [plays("ada", &["say:Done."])]);
    world.repo.variables.insert("COPILOT_PROVIDER_MAX_PROMPT_TOKENS".to_owned(), "64000".to_owned());
    let limit = |ended: crate::support::Ended| ended.only("agent.completed")["usage"]["context"]["limit"].clone();
    assert_eq!(limit(run(&world, &[])), 64_000);
    let provider = format!(
        "[engine.copilot.provider]\nbase_url = \"{}\"\nmodels = [\"fake-1\"]\nmax_prompt_tokens = 32000\n",
        world.model.url()
    );
    world.repo.write("../home/config/squad/config.toml", &provider);
    assert_eq!(limit(run(&world, &[])), 32_000);
}

/// MCP servers at `https`, with a certificate of their own.
struct Servers {
    child: Child,
    certificate: PathBuf,
    ports: Vec<String>,
}

impl Servers {
    fn start(folder: &Path, behaviours: &[&str]) -> Self {
        let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
        let mut command = Command::new("openssl");
        command.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]);
        command.args(["-addext", "subjectAltName=IP:127.0.0.1", "-out"]).arg(&certificate).arg("-keyout").arg(&key);
        let made = command.output().expect("openssl");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mut command = Command::new("python3");
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/mcp_server.py")).arg(folder);
        let mut child = command.args(behaviours).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("ports");
        Self { child, certificate, ports: line.split_whitespace().map(str::to_owned).collect() }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        // Without its input it ends.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Each way not to be of use, of a server at `https`, beside one that is: it is named with the reason by `engines`, by
/// `doctor` and in a run, which goes on with the other's tools.
#[test]
fn a_server_at_https_that_is_of_no_use_is_named_and_the_others_are_used() {
    let cases = [
        ("silent", "it did not answer within 10 s"),
        ("mute", "it did not answer within 10 s"),
        ("401", "it answers 401 Unauthorized"),
        ("403", "403 Forbidden"),
        ("500", "500 Internal Server Error"),
    ];
    let mut world = World::new(|_| [plays("ada", &["say:I looked."])]);
    // Where the sandbox shows it.
    let folder = world.repo.root().join("certificate");
    std::fs::create_dir(&folder).expect("a folder");
    let behaviours: Vec<&str> = std::iter::once("tools").chain(cases.map(|(behaviour, _)| behaviour)).collect();
    let servers = Servers::start(&folder, &behaviours);
    let certificate = servers.certificate.display().to_string();
    world.repo.variables.insert("NODE_EXTRA_CA_CERTS".to_owned(), certificate);
    let table = |(name, port): (&&str, &String)| {
        format!(
            "[mcp.servers.\"s{name}\"]\nurl = \"https://127.0.0.1:{port}/mcp\"\nheaders = {{ X-Key = \"{KEY}\" }}\n"
        )
    };
    let user: String = behaviours.iter().zip(&servers.ports).map(table).collect();
    world.repo.write("../home/config/squad/config.toml", &user);
    let ended = run(&world, &["--permissions", "allow"]);
    ended.assert_status(0, "completed", &json!({ "ada": "completed" }));
    let request = world.requests_with(creed("ada")).remove(0);
    assert!(request.contains("\"stools-tide\""), "{ended}");
    let told: Vec<String> = ended.of("session.error").iter().map(|event| event["reason"].to_string()).collect();
    let engines: Value = serde_json::from_str(&world.run(&["engines", "copilot", "--json"]).out).expect("JSON");
    let listed = &engines["engines"][0]["servers"];
    let doctor = world.run(&["doctor"]);
    for (name, why) in cases {
        let is_it = |text: &str| text.contains(&format!("`s{name}`")) && text.contains(why);
        assert_eq!(told.iter().filter(|text| is_it(text)).count(), 1, "{name}: {told:#?}");
        let listed = listed[format!("s{name}")].as_str().unwrap_or_default();
        assert!(listed.contains(why), "{name}: {engines}");
        assert!(doctor.out.lines().chain(doctor.err.lines()).any(is_it), "{name}: {doctor}");
    }
    assert!(listed["stools"].is_null() && !doctor.out.contains("`stools`"), "{engines} {doctor}");
    assert_eq!(world.processes(), [], "{ended}");
}
