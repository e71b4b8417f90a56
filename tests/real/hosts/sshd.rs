//! Two machines behind `ssh`: each a daemon with an address and a home of its own.

use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::{Hosts, NAME, NAMES, free_port, launches_squad, runs, user};
use crate::model_server::Script;
use crate::support::{COORDINATOR, KEY, World, decide, plays, shell};

/// Machines whose programs have these variables.
pub(super) fn start(variables: &[(&str, &str)]) -> Hosts {
    let mut hosts = Hosts::of("openssh");
    let (key, host_key) = (hosts.path("key"), hosts.path("host_key"));
    for file in [&key, &host_key] {
        let mut command = Command::new(hosts.program("ssh-keygen"));
        let done = command.args(["-q", "-t", "ed25519", "-N", "", "-f", file]).status().expect("ssh-keygen runs");
        assert!(done.success());
    }
    let squad = Path::new(env!("CARGO_BIN_EXE_squad")).parent().expect("a folder").display().to_string();
    let (program, libraries) = (hosts.program("sshd"), hosts.libraries().display().to_string());
    let (name, value) = hosts.mark();
    let mark = format!("{name}={value}");
    let mut configuration = String::new();
    for (address, host) in ["127.0.0.2", "127.0.0.3"].into_iter().zip(NAMES) {
        let (port, home) = (free_port(address), hosts.path(host));
        std::fs::create_dir(&home).expect("a folder");
        let variables: Vec<String> = variables.iter().map(|(name, value)| format!(" {name}={value}")).collect();
        let file = hosts.write(
            &format!("{host}.conf"),
            &format!(
                "ListenAddress {address}\nPort {port}\nHostKey {host_key}\nAuthorizedKeysFile {key}.pub\n\
                 UsePAM no\nStrictModes no\nPidFile none\nPermitRootLogin yes\nPasswordAuthentication no\nMaxStartups 100\n\
                 SetEnv {mark} {NAME}={host} HOME={home} PATH={squad}:/usr/local/bin:/usr/bin:/bin{}\n",
                variables.concat()
            ),
        );
        hosts.start(&program, &["-D", "-e", "-f", &file], &[("LD_LIBRARY_PATH", &libraries)]);
        configuration.push_str(&format!(
            "Host {host}\n  HostName {address}\n  Port {port}\n  User {}\n  IdentityFile {key}\n  IdentitiesOnly yes\n  \
             StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n",
            user()
        ));
        hosts.wait_until(|| TcpStream::connect((address, port)).is_ok());
    }
    let (ssh, configuration) = (hosts.program("ssh"), hosts.write("ssh.conf", &configuration));
    hosts.launchers = NAMES.map(|host| [&ssh, "-F", &configuration, host, "--"].map(str::to_owned).to_vec());
    hosts
}

#[test]
fn ssh_launches_squad() {
    launches_squad(start(&[]));
}

#[test]
fn agents_behind_ssh_do_what_they_do_here() {
    runs::are_the_same(&start(&[]));
}

#[test]
fn agents_behind_ssh_survive_their_launchers() {
    runs::survive(&start(&[]), |_, repo| runs::launchers(repo, "ssh"), false);
}

#[test]
fn agents_behind_ssh_survive_their_workers() {
    runs::survive(&start(&[]), |hosts, _| hosts.workers(), true);
}

#[test]
fn agents_behind_ssh_survive_squad() {
    runs::survive_squad(&start(&[]));
}

#[test]
fn agents_behind_ssh_survive_at_any_moment() {
    runs::survive_at_any_moment(&mut start(&[]), "ssh", "sshd");
}

#[test]
fn a_host_that_is_gone_fails_its_own_agent() {
    runs::fail_where_a_host_is_gone(&mut start(&[]));
}

/// Two hosts with the real CLI, and the key of its model in their own environment.
#[test]
fn the_real_cli_works_behind_ssh() {
    let world = World::new(|_| {
        let steps = |name: &str| {
            [shell(&format!("echo {name} > {name}.txt; echo at=${NAME}=")), decide(&format!("{name} decides"))]
        };
        let plays_all = |agent: &str| {
            let own = steps(agent);
            plays(agent, &own.iter().map(String::as_str).chain(["say:Done."]).collect::<Vec<_>>())
        };
        [plays_all("ada"), plays_all("bob"), plays_all("cy"), Script::new(COORDINATOR, ["say:All is done."])]
    });
    let is_engines = |name: &str| name.starts_with("COPILOT_") || name == "XDG_CACHE_HOME";
    let variables = world.repo.variables.clone();
    let variables: Vec<(&str, &str)> = variables
        .iter()
        .filter(|(name, _)| is_engines(name))
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let hosts = start(&variables);
    runs::configure(&world.repo, &hosts, 1);
    let arguments =
        ["orchestrate", "--json", "--permissions", "allow", "--on", "any", "@ada and @bob write their names"];
    let ended = world.run(&arguments);
    let completed = json!({ "ada": "completed", "bob": "completed", "coordinator": "completed" });
    ended.assert_status(0, "completed", &completed);
    assert_eq!(runs::places(&ended.events()), NAMES.into(), "{ended}");
    let merged = world.run(&["merge", ended.events()[0]["run"].as_str().expect("an id"), "--yes"]);
    assert_eq!(merged.code, Some(0), "{merged}");
    assert_eq!((world.repo.read("ada.txt"), world.repo.read("bob.txt")), ("ada\n".to_owned(), "bob\n".to_owned()));
    assert_eq!(ended.of("decision.logged").len(), 2, "{ended}");
    assert_eq!(hosts.workers(), [], "{ended}");
    let objects = world.repo.git(&["cat-file", "--batch-all-objects", "--batch"]);
    assert!(!objects.contains(KEY), "{ended}");
}
