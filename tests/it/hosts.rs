//! `squad hosts`: the user's other machines.

use serde_json::{Value, json};

#[cfg(unix)]
use crate::engines::squad;
use crate::support::TestRepo;

const OWN: &str = "../home/config/squad/config.toml";

#[test]
fn hosts_are_listed_with_what_they_are_for() {
    let repo = TestRepo::with_small_team();
    let none = repo.squad(&["hosts"]);
    assert!(none.code == 0 && none.err.contains("squad config set --user hosts.build1.launch"), "{none}");
    repo.write(
        OWN,
        "[hosts.build1]\nlaunch = [\"ssh\", \"build1\", \"--\", \"squad\", \"worker\"]\nslots = 4\nlabels = [\"big\", \"gpu\"]\n\
         [hosts.c]\nlaunch = [\"srun\", \"squad\", \"worker\"]\nengines = [\"copilot\"]\nlabels = [\"gpu\"]\n",
    );
    let listed = repo.squad(&["hosts"]);
    assert_eq!(
        listed.out,
        "  build1  4 slots, big, gpu   ssh build1 -- squad worker\n  c       1 slot, gpu, copilot   srun squad worker\n"
    );
    let of = |arguments: &[&str]| -> Vec<Value> {
        let output = repo.squad(&[&["hosts", "--json"], arguments].concat());
        let mut value: Value = serde_json::from_str(&output.out).expect("JSON");
        serde_json::from_value(value["hosts"].take()).expect("a list")
    };
    let names = |arguments: &[&str]| of(arguments).iter().map(|host| host["name"].clone()).collect::<Vec<_>>();
    let build1 = &of(&["build1"])[0];
    for (field, expected) in [
        ("reachable", Value::Null),
        ("version", Value::Null),
        ("busy", Value::Null),
        ("slots", json!(4)),
        ("engines", json!([])),
        ("labels", json!(["big", "gpu"])),
    ] {
        assert_eq!(build1[field], expected, "{field}: {build1}");
    }
    assert_eq!((names(&["gpu"]), names(&["c", "big"]), names(&["any"])), (names(&[]), names(&[]), names(&[])));
    let unknown = repo.squad(&["hosts", "build2"]);
    assert!(unknown.code == 2 && unknown.err.contains("the hosts are `build1` and `c`"), "{unknown}");
    // Without a team and a repository, too.
    assert_eq!(repo.squad_in(&repo.home(), &["hosts", "c"]).out, "  c  1 slot, gpu, copilot   srun squad worker\n");
    // A repository brings none before it is trusted.
    repo.write(".squad/config.toml", "[hosts.evil]\nlaunch = [\"sh\", \"evil.sh\"]\n");
    assert_eq!(names(&[]).len(), 2);
    assert_eq!(repo.squad(&["trust", "approve", "hosts.evil", "--yes"]).code, 0);
    assert_eq!(names(&[]).len(), 3);
}

/// What is there before × what the launcher and the host are: the program is there and runs, or it is said why not, and what
/// was there stays.
#[cfg(unix)]
#[test]
fn squad_is_installed_over_the_hosts_own_launcher() {
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    let repo = TestRepo::with_small_team();
    let home = repo.home().display().to_string();
    let own = repo.home().join("squad");
    // Without what debuggers want, it is a tenth of that.
    let stripped = Command::new("strip").arg("-o").arg(&own).arg(env!("CARGO_BIN_EXE_squad")).status();
    if !stripped.is_ok_and(|status| status.success()) {
        std::fs::copy(env!("CARGO_BIN_EXE_squad"), &own).expect("a copy");
    }
    let program = |path: String, text: &str| {
        repo.write(&format!("../home/{path}"), &format!("#!/bin/sh\n{text}\n"));
        let path = repo.home().join(path);
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("a mode");
    };
    program("mips/uname".to_owned(), "echo Plan9 mips");
    program("odd/base64".to_owned(), "cat >/dev/null; printf '#!/bin/sh\\necho squad 99.0\\n'");
    let mut configuration = "[hosts.night]\nmode = \"batch\"\n".to_owned();
    let hosts = ["new", "old", "mips", "odd", "none", "other"];
    for host in hosts {
        let path = format!("{home}/{host}");
        program(
            format!("{host}/launch.sh"),
            &format!(
                "echo Welcome to {host}.; HOME={path} PATH={path}:{path}/.local/bin:/usr/bin:/bin; export HOME PATH; exec \"$@\""
            ),
        );
        let words = match host {
            "none" => "[\"sh\", \"-c\", \"echo no shell here >&2; exit 126\", \"squad\", \"worker\"]".to_owned(),
            "other" => format!("[\"{path}/launch.sh\", \"squad\", \"worker\", \"--quiet\"]"),
            _ => format!("[\"{path}/launch.sh\", \"squad\", \"worker\"]"),
        };
        configuration.push_str(&format!("[hosts.{host}]\nlaunch = {words}\n"));
    }
    repo.write(OWN, &configuration);
    for host in ["old", "mips", "odd"] {
        program(format!("{host}/.local/bin/squad"), "echo squad 0.0.1");
    }
    let run = |arguments: &[&str]| {
        let done =
            repo.command(own.to_str().expect("UTF-8"), &repo.root()).args(arguments).output().expect("squad runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&done.stdout), text(&done.stderr), done.status.code())
    };
    let version = env!("CARGO_PKG_VERSION");
    for (host, expected) in [
        ("new", Ok("")),
        ("old", Ok(", in the place of squad 0.0.1")),
        ("new", Ok("")),
        ("mips", Err((1, "it is `Plan9 mips`, and this program is for"))),
        ("odd", Err((1, "the program does not run there: squad 99.0"))),
        ("none", Err((1, "no shell here"))),
        ("other", Err((2, "does not end in `squad worker`"))),
        ("night", Err((2, "nobody can talk to a job"))),
        ("nowhere", Err((2, "no host has the name or label `nowhere`"))),
    ] {
        let (out, err, code) = run(&["hosts", "install", host]);
        let told = format!("{host}: {out}{err}");
        match expected {
            Ok(instead) => {
                let place = format!("{host}: squad {version} is in {home}/{host}/.local/bin/squad (");
                assert!(
                    code == Some(0) && out.starts_with(&place) && out.trim_end().ends_with(&format!("){instead}")),
                    "{told}"
                );
                let (out, err, code) = run(&["hosts", host, "--check"]);
                assert!(code == Some(0) && out.contains(&format!("squad {version}")), "{out}{err}");
            }
            Err((expected, why)) => assert!(code == Some(expected) && err.contains(why), "{told}"),
        }
        let bin = repo.home().join(host).join(".local/bin");
        let left = std::fs::read_dir(bin).map_or(0, |entries| entries.count());
        assert!(left <= 1, "{told}: nothing else is left there");
    }
    assert_eq!(repo.read("../home/mips/.local/bin/squad"), "#!/bin/sh\necho squad 0.0.1\n");
    assert_eq!(repo.read("../home/odd/.local/bin/squad"), "#!/bin/sh\necho squad 0.0.1\n");
}

/// Launchers that do their work, and that do not.
#[cfg(unix)]
#[test]
fn each_host_is_tried_and_says_why_it_cannot_be_reached() {
    const OTHER: &str =
        r#"{"method":"hello","params":{"protocol":99,"version":"9.9.9","platform":"x","engines":[],"busy":0}}"#;
    let repo = TestRepo::with_small_team();
    let worker = format!("exec '{}' worker", env!("CARGO_BIN_EXE_squad"));
    let here = repo.root().with_file_name("here");
    let other = format!("echo '{OTHER}'; exec cat");
    let expected = [
        ("banner", format!("echo Welcome; echo '{{}}'; echo 7; {worker}"), None),
        (
            "ends",
            "printf 'one\\n\\033[2Jno route\\n' >&2; exit 255".to_owned(),
            Some("(exit status: 255): [U+001B][2Jno route"),
        ),
        ("floods", "exec yes".to_owned(), Some("said nothing within 5 s")),
        ("good", worker, None),
        ("other", other, Some("its squad 9.9.9 does not understand this one")),
        ("silent", format!("echo $$ >'{}'; exec sleep 600", here.display()), Some("said nothing within 5 s")),
    ];
    let mut configuration = "[hosts.missing]\nlaunch = [\"no-such-launcher\"]\n".to_owned();
    for (name, script, _) in &expected {
        configuration.push_str(&format!("[hosts.{name}]\nlaunch = [\"sh\", \"-c\", '''{script}''']\nslots = 3\n"));
        configuration.push_str("engines = [\"rehearsal\", \"nobodys\"]\n");
    }
    repo.write(OWN, &configuration);
    let tried = squad(&repo, &["hosts", "--check", "--timeout", "5s", "--json"]);
    assert_eq!(tried.code, 1, "{tried}");
    let value: Value = serde_json::from_str(&tried.out).expect("JSON");
    let of = |name: &str| -> &Value {
        let host = value["hosts"].as_array().expect("a list").iter().find(|host| host["name"] == name);
        host.expect("a host")
    };
    for (name, _, problem) in &expected {
        let host = of(name);
        assert_eq!(host["reachable"], problem.is_none(), "{host}");
        match problem {
            Some(problem) => assert!(host["problem"].as_str().is_some_and(|text| text.contains(problem)), "{host}"),
            None => {
                assert_eq!((&host["engines"], &host["busy"]), (&json!(["rehearsal"]), &json!(0)), "{host}");
                assert_eq!(host["version"], env!("CARGO_PKG_VERSION"), "{host}");
                assert!(host["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{host}");
            }
        }
    }
    assert!(!tried.out.contains("\\u001b"), "{tried}");
    assert!(of("missing")["problem"].as_str().is_some_and(|text| text.contains("is in no folder of PATH")), "{value}");
    let id = std::fs::read_to_string(here).expect("it was started");
    let is_there = std::process::Command::new("kill").args(["-0", id.trim()]).output().expect("kill runs");
    assert!(!is_there.status.success(), "{id}");
    let good = squad(&repo, &["hosts", "good", "--check"]);
    assert!(good.code == 0 && good.out.contains("3 of 3 slots free, rehearsal"), "{good}");
    let ends = squad(&repo, &["hosts", "ends", "missing", "--check"]);
    assert!(ends.code == 1 && ends.out.contains("no route") && !ends.out.contains('\u{1b}'), "{ends}");
    for wrong in [&["--timeout", "5s"][..], &["--check", "--timeout", "5"]] {
        assert_eq!(repo.squad(&[&["hosts"], wrong].concat()).code, 2, "{wrong:?}");
    }
}
