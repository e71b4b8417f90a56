//! Two nodes of a Slurm cluster.

use std::path::Path;
use std::process::Command;

use super::{Hosts, NAME, NAMES, free_port, launches_squad, runs, user};

pub(super) fn start() -> Hosts {
    let mut hosts = Hosts::of("slurm");
    let libraries = hosts.libraries();
    let plugins = [libraries.join("slurm-wlm"), "/usr/lib/x86_64-linux-gnu/slurm-wlm".into()];
    let plugins = plugins.into_iter().find(|path| path.is_dir()).expect(".ci/install-real-parts unpacks Slurm");
    let name = Command::new("hostname").output().expect("hostname runs").stdout;
    let name = String::from_utf8_lossy(&name).trim().to_owned();
    let (user, folder) = (user(), hosts.folder.path().display().to_string());
    let mut text = format!(
        "ClusterName=loop\nSlurmctldHost={name}(127.0.0.1)\nSlurmctldPort={}\nAuthType=auth/none\nCredType=cred/none\n\
         CommunicationParameters=NoCtldInAddrAny,NoInAddrAny\nProctrackType=proctrack/linuxproc\n\
         TaskPlugin=task/none\nSlurmUser={user}\nSlurmdUser={user}\nSlurmdParameters=config_overrides\n\
         StateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/%n\nSlurmctldPidFile={folder}/ctld.pid\n\
         SlurmdPidFile={folder}/%n.pid\nPluginDir={}\nSelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\n\
         ReturnToService=2\nSwitchType=switch/none\nMpiDefault=none\n\
         AccountingStorageType=accounting_storage/none\nJobAcctGatherType=jobacct_gather/none\n",
        free_port("127.0.0.1"),
        plugins.display()
    );
    for node in NAMES {
        let port = free_port("127.0.0.1");
        text.push_str(&format!(
            "NodeName={node} NodeAddr=127.0.0.1 NodeHostname={name} Port={port} CPUs=8 State=UNKNOWN\n"
        ));
    }
    text.push_str("PartitionName=p Nodes=one,two Default=YES OverSubscribe=FORCE:8 MaxTime=INFINITE State=UP\n");
    let configuration = hosts.write("slurm.conf", &text);
    let search = format!("{}:{}", libraries.display(), plugins.display());
    let variables = [("SLURM_CONF", configuration.as_str()), ("LD_LIBRARY_PATH", &search)];
    let (controller, node, step) =
        (hosts.program("slurmctld-wlm"), hosts.program("slurmd-wlm"), hosts.program("slurmstepd-wlm"));
    std::fs::create_dir(hosts.path("state")).expect("a folder");
    hosts.start(&controller, &["-D", "-c"], &variables);
    for name in NAMES {
        hosts.start(&node, &["-D", "-N", name, "-d", &step], &variables);
    }
    let sinfo = hosts.program("sinfo");
    hosts.wait_until(|| {
        let listed = Command::new(&sinfo).args(["-h", "-N", "-o", "%t"]).envs(variables).output().expect("sinfo runs");
        String::from_utf8_lossy(&listed.stdout).lines().filter(|state| *state == "idle").count() == NAMES.len()
    });
    let squad = Path::new(env!("CARGO_BIN_EXE_squad")).parent().expect("a folder").display().to_string();
    let (mark, value) = hosts.mark();
    let variables = [
        format!("{mark}={value}"),
        format!("SLURM_CONF={configuration}"),
        format!("LD_LIBRARY_PATH={search}"),
        format!("PATH={squad}:/usr/local/bin:/usr/bin:/bin"),
    ];
    let srun = hosts.program("srun");
    hosts.launchers = NAMES.map(|node| {
        let call = [&srun, "-n1", "-w", node, "--quiet"].map(str::to_owned);
        ["env".to_owned(), format!("{NAME}={node}")].into_iter().chain(variables.clone()).chain(call).collect()
    });
    hosts
}

#[test]
fn slurm_launches_squad() {
    launches_squad(start());
}

#[test]
fn agents_behind_slurm_do_what_they_do_here() {
    runs::are_the_same(&start());
}

#[test]
fn agents_behind_slurm_survive_their_launchers() {
    runs::survive(&start(), |_, repo| runs::launchers(repo, "srun"), false);
}

#[test]
fn agents_behind_slurm_survive_their_workers() {
    runs::survive(&start(), |hosts, _| hosts.workers(), true);
}

#[test]
fn agents_behind_slurm_survive_squad() {
    runs::survive_squad(&start());
}

#[test]
fn agents_behind_slurm_survive_at_any_moment() {
    runs::survive_at_any_moment(&mut start(), "srun", "slurmstepd");
}

#[test]
fn agents_in_jobs_do_what_they_do_here() {
    let hosts = start();
    runs::jobs_are_the_same(&hosts, |host, line| {
        let (srun, sbatch) = (hosts.program("srun"), hosts.program("sbatch"));
        let mut call = hosts.launch(host, &["--output", &hosts.path("job-%j.txt"), "--wrap", line]);
        call.iter_mut().filter(|word| **word == srun).for_each(|word| word.clone_from(&sbatch));
        call
    });
}
