//! Two machines behind `ssh`: each a daemon with an address and a home of its own.

use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use super::{Hosts, NAMES, free_port, launches_squad, user};

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
                 SetEnv {mark} HOME={home} PATH={squad}:/usr/local/bin:/usr/bin:/bin{}\n",
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
