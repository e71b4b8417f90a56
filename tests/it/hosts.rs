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
