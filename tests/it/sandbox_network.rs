//! What an agent's programs reach at level `full`. On a system without it, its stories say so and end.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use crate::sandbox::{World, results};
use crate::support::{Output, TestRepo};
use crate::terminal::Person;

/// A host on this machine, which says `hello` to everybody.
fn host() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 6\r\n\r\nhello\n");
        }
    });
    port
}

/// A proxy of the user's, which says `hello` in the place of whatever host it is asked for, and its address.
fn upstream() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let head = |mut stream: &std::net::TcpStream| {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        let mut byte = [0];
                        match stream.read(&mut byte) {
                            Ok(1..) => head.extend(byte),
                            _ => break,
                        }
                    }
                    String::from_utf8_lossy(&head).into_owned()
                };
                let asked = head(&stream);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
                let _ = head(&stream);
                let said = format!("hello by {}\n", asked.split(' ').nth(1).unwrap_or_default());
                let length = said.len();
                let answer = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{said}");
                let _ = stream.write_all(answer.as_bytes());
            });
        }
    });
    address
}

fn world(network: Option<&str>) -> Option<World> {
    let mut world = World::at("full")?;
    if let Some(network) = network {
        world.repo.variables.insert("SQUAD_SANDBOX_NETWORK".into(), network.into());
    }
    let tried = completed(&world.run(&["true"]));
    if network != Some("open") && tried["network"] != "listed" {
        eprintln!("this system has no network of a program's own: {tried}");
        return None;
    }
    Some(world)
}

/// What was recorded of the agent's work.
fn completed(output: &Output) -> serde_json::Value {
    let events = TestRepo::events(output);
    let work = events.into_iter().find(|event| event["type"] == "agent.completed");
    assert!(work.is_some(), "{output}");
    work.unwrap_or_default()
}

/// A port of this machine is reached where the user lists it, at that port, and nothing else of it is.
#[test]
fn what_is_listed_is_reached_and_nothing_else() {
    let (listed, other) = (host(), host());
    let fetch = |port: u16| format!("curl -s --max-time 5 http://127.0.0.1:{port}/ || echo none");
    // Past every variable.
    let direct = |port: u16| {
        format!(
            "env -i PATH=\"$PATH\" python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 5)' || echo none"
        )
    };
    let proxied = "curl -s --max-time 5 -o /dev/null -w '%{http_code} %{errormsg}' http://unlisted.invalid/";
    let tunnel = "curl -s --max-time 5 https://unlisted.invalid/ -o /dev/null -w '%{http_connect}'";
    // It is looked up inside, and nobody else hears of it.
    let name = "getent hosts example.com";
    let commands =
        [fetch(listed), fetch(other), direct(listed), direct(other), proxied.into(), tunnel.into(), name.into()];
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    for (network, reaches) in [(None, false), (Some("listed"), false), (Some("open"), true)] {
        let Some(mut world) = world(network) else { return };
        let hosts = format!("127.0.0.1:{listed}");
        world.repo.variables.insert("SQUAD_SANDBOX_HOSTS".into(), hosts.clone());
        let output = world.run(&commands);
        let said = results(&output);
        let said: Vec<&str> = said.lines().collect();
        assert_eq!(said.len(), commands.len(), "{output}");
        assert!(said[0].contains("hello"), "{network:?}: {said:#?}");
        assert_eq!(said[1].contains("hello"), reaches, "{network:?}: {said:#?}");
        assert!(!said[2].contains("none"), "{network:?}: {said:#?}");
        assert_eq!(!said[3].contains("none"), reaches, "{network:?}: {said:#?}");
        let work = completed(&output);
        assert_eq!(work["sandbox"], "full");
        if reaches {
            assert_eq!(work["network"], "open", "{work}");
            assert!(work["hosts"].is_null(), "{work}");
            continue;
        }
        assert!(said[4].contains("403"), "{said:#?}");
        assert!(said[5].contains("403"), "{said:#?}");
        assert!(said[6].contains("127.77."), "{said:#?}");
        assert_eq!(work["network"], "listed", "{work}");
        assert_eq!(work["hosts"]["reached"], serde_json::json!([hosts]), "{work}");
        let refused = serde_json::json!(["unlisted.invalid:443", "unlisted.invalid:80"]);
        assert_eq!(work["hosts"]["refused"], refused, "{work}");
    }
}

/// Programs that know of no proxy × a host that is listed and one that is not: those are reached by their names, and these
/// are refused by their names.
#[test]
fn programs_that_know_of_no_proxy_reach_what_is_listed() {
    let Some(mut world) = world(None) else { return };
    world.repo.variables.insert("HTTPS_PROXY".into(), upstream());
    world.repo.variables.insert("SQUAD_SANDBOX_HOSTS".into(), "good.invalid,*.wide.invalid,db.invalid:5432".into());
    // It sends a request, and prints what comes back.
    let raw = |host: &str, port: u16| {
        format!(
            "env -i PATH=\"$PATH\" python3 -c 'import socket; s = socket.create_connection((\"{host}\", {port}), 9); \
             s.sendall(b\"GET / HTTP/1.1\\r\\n\\r\\n\"); print((s.makefile().read() or \"closed\").strip())' 2>&1 | tail -n 1"
        )
    };
    let node = |host: &str| {
        format!(
            "env -i PATH=\"$PATH\" node -e 'fetch(\"http://{host}/\").then(a => a.text()).then(console.log, e => \
             console.log(\"failed\", e.cause.code))'"
        )
    };
    let wget = |host: &str| format!("env -i PATH=\"$PATH\" curl -s --max-time 9 http://{host}/ || echo failed");
    let ssh =
        "env -i PATH=\"$PATH\" ssh -o StrictHostKeyChecking=no -o ConnectTimeout=9 git@ssh.invalid 2>&1 | tail -n 1";
    let git = "git ls-remote git://git.invalid/x.git 2>&1";
    let has_node = std::process::Command::new("node").arg("--version").output().is_ok();
    let has_ssh = std::process::Command::new("ssh").arg("-V").output().is_ok();
    let cases = [
        (true, raw("good.invalid", 443), "hello by good.invalid:443", None),
        (true, raw("good.invalid", 80), "hello by good.invalid:80", None),
        (true, raw("a.wide.invalid", 443), "hello by a.wide.invalid:443", None),
        (true, raw("GOOD.invalid.", 443), "hello by good.invalid:443", None),
        (true, wget("good.invalid"), "hello by good.invalid:80", None),
        (has_node, node("good.invalid"), "hello by good.invalid:80", None),
        (true, raw("bad.invalid", 443), "closed", Some("bad.invalid:443")),
        (true, raw("good.invalid", 22), "closed", Some("good.invalid:22")),
        (true, raw("db.invalid", 443), "closed", Some("db.invalid:443")),
        // The port of its own leads to squad, which finds no such host.
        (true, raw("db.invalid", 5432), "closed", None),
        (true, raw("good.invalid", 5432), "refused", None),
        (true, raw("127.0.0.1", 443), "closed", None),
        (true, raw("192.0.2.1", 443), "unreachable", None),
        (true, wget("curl.invalid"), "failed", Some("curl.invalid:80")),
        (has_node, node("node.invalid"), "failed", Some("node.invalid:80")),
        (has_ssh, ssh.to_owned(), "closed", Some("ssh.invalid:22")),
        (true, git.to_owned(), "refused", None),
    ];
    let cases: Vec<_> = cases.into_iter().filter(|(is_there, ..)| *is_there).collect();
    let output = world.run(&cases.iter().map(|(_, command, ..)| command.as_str()).collect::<Vec<_>>());
    let said = results(&output);
    let said: Vec<&str> = said.lines().collect();
    assert_eq!(said.len(), cases.len(), "{output}");
    for (said, (_, command, expected, _)) in said.iter().zip(&cases) {
        let is_closed = *expected == "closed" && said.contains("reset by");
        assert!(said.contains(expected) || is_closed, "{command}: {expected}: {said}");
    }
    let work = completed(&output);
    let names: std::collections::BTreeSet<&str> = cases.iter().filter_map(|(.., refused)| *refused).collect();
    assert_eq!(work["hosts"]["refused"], serde_json::json!(names), "{work}");
    let reached = ["a.wide.invalid:443", "good.invalid:443", "good.invalid:80"];
    assert_eq!(work["hosts"]["reached"], serde_json::json!(reached), "{work}");
}

/// Nothing that lies in the repository adds a host.
#[test]
fn a_repository_lists_no_host() {
    let Some(world) = world(None) else { return };
    let port = host();
    world.repo.write(".squad/config.toml", &format!("[sandbox]\nhosts = [\"127.0.0.1:{port}\"]\nnetwork = \"open\"\n"));
    world.repo.write(".npmrc", &format!("registry=http://127.0.0.1:{port}/\nproxy=http://127.0.0.1:{port}/\n"));
    world.repo.write("pip.conf", &format!("[global]\nindex-url = http://127.0.0.1:{port}/\n"));
    let output = world.run(&[
        &format!("curl -s --max-time 5 --noproxy '*' http://127.0.0.1:{port}/ || echo none"),
        &format!("curl -s --max-time 5 http://evil.invalid:{port}/ -o /dev/null -w '%{{http_code}}'"),
    ]);
    let said = results(&output);
    assert!(!said.contains("hello") && said.contains("none") && said.contains("403"), "{output}");
    assert_eq!(completed(&output)["network"], "listed", "{output}");
}

/// What the programs know of the way out is squad's own, whatever the user has set.
#[test]
fn programs_are_told_of_the_proxy() {
    let Some(mut world) = world(None) else { return };
    world.repo.variables.insert("HTTPS_PROXY".into(), "http://ann:secret@proxy.invalid:8080".into());
    let said = results(&world.run(&["env | grep -i proxy | sort"]));
    for name in ["HTTP_PROXY", "https_proxy", "ALL_PROXY", "npm_config_https_proxy", "PIP_PROXY", "CARGO_HTTP_PROXY"] {
        assert!(said.contains(&format!("{name}=http://127.0.0.1:3128")), "{name}: {said}");
    }
    assert!(said.contains("NO_PROXY=127.0.0.1,localhost,::1") && !said.contains("secret"), "{said}");
}

/// What is asked for and cannot be had is said, or nobody starts.
#[test]
fn a_proxy_that_cannot_be_used_leaves_the_network_open_or_nobody_starts() {
    for (network, is_required, code) in [(None, "true", 0), (Some("listed"), "false", 0), (Some("listed"), "true", 5)] {
        let Some(mut world) = world(None) else { return };
        world.repo.variables.insert("ALL_PROXY".into(), "socks5://127.0.0.1:1".into());
        world.repo.variables.insert("SQUAD_SANDBOX_REQUIRE".into(), is_required.into());
        if let Some(network) = network {
            world.repo.variables.insert("SQUAD_SANDBOX_NETWORK".into(), network.into());
        }
        let output = world.run(&["true"]);
        assert_eq!(output.code, code, "{network:?} {is_required}: {output}");
        let text = format!("{}{}", output.out, output.err);
        assert_eq!(text.contains("none of `http://`"), network.is_some(), "{output}");
        if code == 0 {
            assert_eq!(completed(&output)["network"], "open", "{output}");
        }
    }
}

/// A person is asked about a host that nobody lists, while the program waits, and once for all of its connections.
#[test]
fn a_host_that_is_not_listed_is_asked_about() {
    let port = host();
    let local = format!("localhost:{port}");
    // This machine is reached without the proxy, unless a program insists.
    let proxied = format!("curl -s --max-time 30 --noproxy '' -x $http_proxy http://{local}/ >> out.txt");
    let direct = "env -u http_proxy -u all_proxy -u ALL_PROXY curl -s --max-time 30 http://new.invalid/ >> out.txt";
    for (place, fetch, answer, hello, kind) in [
        (local.as_str(), proxied.as_str(), "y", 2, "reached"),
        (&local, &proxied, "n", 0, "refused"),
        ("new.invalid:80", direct, "y", 2, "reached"),
        ("new.invalid:80", direct, "n", 0, "refused"),
    ] {
        let Some(mut world) = world(None) else { return };
        world.repo.variables.insert("HTTPS_PROXY".into(), upstream());
        let script = format!(
            "[[turn]]\nagent = \"backend\"\nsteps = [{{ run = \"{fetch}; {fetch}\" }}, {{ say = \"Done.\" }}]\n"
        );
        world.repo.write("../script.toml", &script);
        let mut person = Person::sits_down();
        let mut command = world.repo.command(env!("CARGO_BIN_EXE_squad"), &world.repo.root());
        command.args(["orchestrate", "--script", "../script.toml", "--permissions", "ask", "@backend fetch it"]);
        command.env("TERM", "xterm");
        let mut child = person.starts(command);
        person.is_asked("backend wants to run a command");
        person.types("y");
        person.is_asked(&format!("backend wants to reach {place}"));
        person.types(answer);
        person.waits_for("; run ");
        assert_eq!(child.wait().expect("it ends").code(), Some(0), "{}", person.screen);
        let fetched = world.repo.read("out.txt");
        assert_eq!(fetched.matches("hello").count(), hello, "{answer}: {fetched}");
        // A connection without a proxy ends without a word.
        let told = if place == local { 2 - hello } else { 0 };
        assert_eq!(fetched.matches("squad: localhost").count(), told, "{answer}: {fetched}");
        let log = world.repo.squad(&["log", "--json"]);
        let run = serde_json::from_str::<serde_json::Value>(&log.out).expect("JSON")["runs"][0]["run"].clone();
        let story = world.repo.squad(&["log", run.as_str().expect("an id"), "--json"]);
        let named = format!("\"{kind}\":[\"{place}\"]");
        assert!(story.out.contains(&named), "{answer}: {named}: {story}");
    }
}

/// The endpoint of an engine's models × what the settings say, with what its programs reach. One that squad does not reach
/// by the proxy, or does not know, is no reason to break the engine.
#[test]
fn an_engine_that_does_not_get_by_with_a_list_has_an_open_network() {
    let (there, other) = (host(), host());
    let gone = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    for (endpoint, network, access) in [
        (Some(there), None, "listed"),
        (Some(gone), None, "open"),
        (None, None, "open"),
        (Some(gone), Some("listed"), "listed"),
        (None, Some("listed"), "listed"),
        (Some(there), Some("open"), "open"),
    ] {
        let Some(world) = world(network) else { return };
        let program = world.home("bin/mine");
        let fetch = |port: u16| format!("curl -s --max-time 5 http://127.0.0.1:{port}/ || echo none");
        let text = format!("#!/bin/sh\n{}\n{}\n", fetch(there), fetch(other));
        crate::support::script::write(&program, &text);
        let endpoint = endpoint.map(|port| format!("endpoint = [\"$MINE_URL\", \"127.0.0.1:{port}\"]\n"));
        let config = format!(
            "[engines.mine]\nprogram = \"{}\"\nargs = [\"{{prompt}}\"]\nstrict = []\n{}",
            program.display(),
            endpoint.as_deref().unwrap_or_default()
        );
        world.write(&world.home("config/squad/config.toml"), &config);
        let arguments = ["orchestrate", "--engine", "mine", "--permissions", "allow", "--json", "@backend do it"];
        let output = world.repo.squad(&arguments);
        let tell = format!("{endpoint:?} {network:?}: {output}");
        let work = completed(&output);
        assert_eq!(work["network"], access, "{tell}");
        let said = work["text"].as_str().expect("text");
        // Its endpoint is listed, and passed in; the other port is neither.
        let is_listed = access == "listed";
        assert_eq!(said.contains("none"), is_listed, "{tell}");
        let reaches_endpoint = !is_listed || endpoint.is_some_and(|endpoint| endpoint.contains(&there.to_string()));
        assert_eq!(said.contains("hello"), reaches_endpoint, "{tell}");
    }
}

#[test]
fn doctor_says_what_is_reached() {
    let (there, gone) = (host(), TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address"));
    let at = |port: u16| ("COPILOT_PROVIDER_BASE_URL", format!("http://127.0.0.1:{port}/v1"));
    let rehearsal = ("SQUAD_ENGINE_NAME", "rehearsal".to_owned());
    for ((name, value), network, access, why) in [
        (rehearsal.clone(), None, "listed", String::new()),
        (rehearsal, Some("open"), "open", String::new()),
        (at(there), None, "listed", String::new()),
        (at(gone.port()), None, "open", format!("open: 127.0.0.1:{} cannot be reached", gone.port())),
        (at(gone.port()), Some("listed"), "listed", String::new()),
    ] {
        let Some(mut world) = world(network) else { return };
        world.repo.variables.insert(name.into(), value.clone());
        let output = world.repo.squad(&["doctor"]);
        let line = output.out.lines().find_map(|line| line.trim().strip_prefix("network")).unwrap_or_default();
        assert!(line.trim().starts_with(if why.is_empty() { access } else { &why }), "{value} {network:?}: {output}");
        let told: serde_json::Value = serde_json::from_str(&world.repo.squad(&["doctor", "--json"]).out).expect("JSON");
        assert_eq!(told["network"], access, "{value} {network:?}: {told}");
    }
}

/// What package managers and others make of the proxy: they ask it, for the host that they were to reach.
#[test]
fn ordinary_programs_ask_the_proxy() {
    let Some(mut world) = world(None) else { return };
    if let Some(home) = std::env::home_dir() {
        // Without it, cargo is a program that looks for another one.
        let rustup = std::env::var("RUSTUP_HOME").unwrap_or_else(|_| home.join(".rustup").display().to_string());
        world.repo.variables.insert("RUSTUP_HOME".into(), rustup);
    }
    let commands = [
        ("curl", "curl -s --max-time 9 https://curl.invalid/"),
        ("git", "git ls-remote https://git.invalid/x.git"),
        ("python3", "python3 -c \"import urllib.request as u; u.urlopen('https://python3.invalid/', timeout=9)\""),
        ("pip", "pip download --no-input --retries 0 --timeout 9 --index-url https://pip.invalid/simple x"),
        ("npm", "npm view x --registry https://npm.invalid/ --fetch-retries 0"),
        ("cargo", "CARGO_NET_RETRY=0 cargo search --index sparse+https://cargo.invalid/ x"),
    ];
    let tried = commands.map(|(program, command)| {
        format!("if {program} --version > /dev/null 2>&1; then {command}; echo tried-{program}; fi")
    });
    let output = world.run(&tried.each_ref().map(String::as_str));
    let (said, refused) = (results(&output), completed(&output)["hosts"]["refused"].to_string());
    println!("refused: {refused}");
    for (program, _) in commands.iter().filter(|(program, _)| said.contains(&format!("tried-{program}"))) {
        assert!(refused.contains(&format!("{program}.invalid:443")), "{program}: {refused}: {output}");
    }
    assert!(said.contains("tried-curl") && said.contains("tried-git"), "{output}");
}
