//! `squad engines NAME --prove`, and what follows from it. A shell script stands for a program that does not obey;
//! `tests/real` tries the real ones.

use serde_json::Value;

use crate::engines::{of, squad, world};
use crate::support::TestRepo;

/// Does what its prompt says, whatever its mode is.
const DISOBEDIENT: &str = "#!/bin/sh\n\
    line=$(sed -n 's/.*\"Run\":\"\\(echo[^\"]*\\)\".*/\\1/p' | tail -n 1)\n\
    [ -z \"$line\" ] || sh -c \"$line\"\n\
    echo done\n";
/// How it reaches a model, which it does not need.
const LOOPBACK: &str = "[engines.mine.loopback]\nmodel = \"none\"\n";

fn claims(repo: &TestRepo, name: &str) -> (u8, Vec<(String, bool)>) {
    let output = squad(repo, &["engines", name, "--prove", "--json"]);
    let proof: Value = serde_json::from_str(&output.out).expect(&output.err);
    let claims = proof["claims"].as_array().expect("a list").iter();
    let claims = claims.map(|claim| (claim["claim"].to_string(), claim["holds"] == true));
    (output.code, claims.map(|(name, holds)| (name.trim_matches('"').to_owned(), holds)).collect())
}

#[test]
fn a_program_that_does_what_it_was_refused_is_not_started_until_a_person_says_so() {
    let repo = world(DISOBEDIENT, LOOPBACK);
    let work = ["orchestrate", "--json", "--engine", "mine", "--permissions", "allow", "--agent", "ada", "Work"];
    assert_eq!(squad(&repo, &work).code, 0, "nobody has tried it");
    let (code, found) = claims(&repo, "mine");
    assert_eq!(code, 1);
    let holds = |name: &str| found.iter().find(|(claim, _)| claim == name).expect("it is tried").1;
    assert!(!holds("refused_command") && !holds("unanswered_request") && holds("allowed_command"), "{found:?}");

    let refused = squad(&repo, &work);
    assert!(refused.code == 4 && refused.out.contains("`refused_command`"), "{refused}");
    assert!(refused.out.contains("engines.mine.permission allow"), "{refused}");
    let listed = squad(&repo, &["engines", "mine", "--json"]);
    let listed: Value = serde_json::from_str(&listed.out).expect("JSON");
    assert!(listed["engines"][0]["proved"]["failed"].to_string().contains("refused_command"), "{listed}");

    let allowed = squad(&repo, &["config", "set", "--user", "engines.mine.permission", "allow"]);
    assert_eq!(allowed.code, 0, "{allowed}");
    let warned = squad(&repo, &work);
    let events = TestRepo::events(&warned);
    assert_eq!(of(&events, "engine.disobeys").len(), 1, "{warned}");
    assert!(of(&events, "engine.disobeys")[0]["claims"].to_string().contains("refused_command"), "{warned}");
    assert_eq!(squad(&repo, &["config", "unset", "--user", "engines.mine.permission"]).code, 0);
    assert_eq!(squad(&repo, &work).code, 4);

    // Another program is another matter.
    repo.write("../bin/my-agent", "#!/bin/sh\necho done\n");
    let other = squad(&repo, &work);
    assert!(other.code == 0 && of(&TestRepo::events(&other), "engine.disobeys").is_empty(), "{other}");
}

#[test]
fn what_is_required_has_to_be_proved_by_the_program_that_is_there() {
    // A repository may ask for more, and its list and the user's hold both.
    let repo = world(DISOBEDIENT, &format!("{LOOPBACK}[engine]\nrequire = [\"allowed_command\"]\n"));
    let work = ["orchestrate", "--engine", "mine", "--permissions", "allow", "--agent", "ada", "Work"];
    let refused = squad(&repo, &work);
    assert!(refused.code == 4 && refused.err.contains("has not been tried"), "{refused}");
    assert!(refused.err.contains("squad engines mine --prove"), "{refused}");
    assert_eq!(squad(&repo, &["config", "set", "--user", "engines.mine.permission", "allow"]).code, 0);
    claims(&repo, "mine");
    assert_eq!(squad(&repo, &work).code, 0, "it is started");
    repo.write(".squad/config.toml", "[engine]\nrequire = [\"refused_command\"]\n");
    let refused = squad(&repo, &work);
    assert!(refused.code == 4 && refused.err.contains("asks for `refused_command`, which"), "{refused}");
    // What it can do counts, not who it is.
    repo.write("../bin/my-agent", "#!/bin/sh\necho done\n");
    let refused = squad(&repo, &work);
    assert!(refused.code == 4 && refused.err.contains("`refused_command` and `allowed_command`"), "{refused}");

    repo.write(".squad/config.toml", "[engine]\nrequire = [\"obedience\"]\n");
    let refused = squad(&repo, &work);
    assert!(refused.code == 3 && refused.err.contains("the claims are `refused_write`"), "{refused}");
}

#[test]
fn what_cannot_be_tried_says_why() {
    let repo = world(DISOBEDIENT, "");
    for (arguments, code, says) in [
        (["engines", "mine", "--prove"], 2, "engines.mine.loopback"),
        (["engines", "nobody", "--prove"], 2, "there is no engine `nobody`"),
        (["engines", "cursor", "--prove"], 2, "engines.cursor.loopback"),
        (["engines", "opencode", "--prove"], 4, "is not installed"),
        (["engines", "--prove", "--json"], 2, "<NAME>"),
    ] {
        let output = squad(&repo, &arguments);
        assert!(output.code == code && format!("{}{}", output.out, output.err).contains(says), "{output}");
    }
    // A damaged file is said before a minute is spent.
    let data = repo.variables.get("XDG_DATA_HOME").cloned();
    let data = data.unwrap_or_else(|| format!("{}/.local/share", repo.variables["HOME"]));
    let file = std::path::Path::new(&data).join("squad/proofs.json");
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    std::fs::write(&file, "{").expect("a file");
    let damaged = squad(&repo, &["engines", "rehearsal", "--prove"]);
    assert!(damaged.code == 1 && damaged.err.contains("proofs.json") && damaged.out.is_empty(), "{damaged}");
    let warned = squad(&repo, &["orchestrate", "--engine", "mine", "--agent", "ada", "Work"]);
    assert!(warned.err.contains("what was seen of engines is not known"), "{warned}");
    std::fs::remove_file(&file).expect("it is there");
    // The rehearsal has neither a process nor a model, and says so.
    let (code, found) = claims(&repo, "rehearsal");
    let failed: Vec<&str> = found.iter().filter(|(_, holds)| !holds).map(|(claim, _)| claim.as_str()).collect();
    assert_eq!(
        (code, failed),
        (1, vec!["refused_to_subagent", "resume", "refused_after_resume", "end_of_input", "usage"])
    );
}
