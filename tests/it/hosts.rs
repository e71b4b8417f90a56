//! `squad hosts`: the user's other machines.

use serde_json::{Value, json};

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
