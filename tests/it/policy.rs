//! Rules that a person writes: what they deny is not done, in every mode, and a repository cannot loosen them.

use serde_json::Value;

use crate::support::{Output, TestRepo};

const OWN: &str = "../home/config/squad/config.toml";

fn judged(repo: &TestRepo, arguments: &[&str]) -> (String, Value) {
    let output = repo.squad(&[&["policy", "test", "--json"], arguments].concat());
    assert_eq!(output.code, 0, "{output}");
    let value: Value = serde_json::from_str(&output.out).expect("JSON");
    (value["answer"].as_str().expect("an answer").to_owned(), value)
}

/// Plays ada, who tries each of these steps, and returns the files that are there afterwards.
fn play(repo: &TestRepo, steps: &[&str], mode: &str) -> (Output, Vec<&'static str>) {
    const FILES: [&str; 4] = ["src/a.txt", "infra/a.txt", "ran", "tested"];
    FILES.iter().for_each(|file| drop(std::fs::remove_file(repo.root().join(file))));
    let steps: String = steps.iter().map(|step| format!("  {{ {step} }},\n")).collect();
    let script = format!("[[turn]]\nagent = \"ada\"\nsteps = [\n{steps}  {{ say = \"Done.\" }},\n]\n");
    let output = repo.rehearse(&script, &["@ada do it", "--permissions", mode, "--json"]);
    (output, FILES.into_iter().filter(|file| repo.exists(file)).collect())
}

const STEPS: [&str; 4] = [
    "write = \"src/a.txt\", text = \"a\"",
    "write = \"infra/a.txt\", text = \"a\"",
    "run = \"echo x > ran\"",
    "run = \"touch tested\"",
];

/// Each mode with rules of the repository, of the user, and of both. A repository's `allow` is no rule.
#[test]
fn what_a_rule_denies_is_not_done_in_any_mode() {
    let deny = "[policy]\nwrites.deny = [\"infra/**\"]\ncommands.deny = [\"touch\"]\n";
    let allow = "[policy]\nwrites.allow = [\"**\"]\ncommands.allow = [\"touch\"]\n";
    let ask = "[policy]\nwrites.ask = [\"src/**\"]\n";
    let repo = TestRepo::with_small_team();
    for (team, own, mode, expected) in [
        ("", "", "allow", &["src/a.txt", "infra/a.txt", "ran", "tested"][..]),
        (deny, "", "allow", &["src/a.txt", "ran"]),
        ("", deny, "allow", &["src/a.txt", "ran"]),
        (deny, allow, "allow", &["src/a.txt", "ran"]),
        (deny, allow, "deny", &["src/a.txt"]),
        ("", allow, "deny", &["src/a.txt", "infra/a.txt", "tested"]),
        (allow, "", "deny", &[]),
        // Nobody is there to be asked.
        (ask, "", "allow", &["infra/a.txt", "ran", "tested"]),
        (ask, allow, "deny", &["infra/a.txt", "tested"]),
        ("[policy]\nagents.bob.writes.deny = [\"**\"]\n", "", "allow", &["src/a.txt", "infra/a.txt", "ran", "tested"]),
        ("[policy]\nagents.\"backend dev\".writes.deny = [\"**\"]\n", "", "allow", &["ran", "tested"]),
        ("[policy]\ntools.only = [\"view\"]\n", "", "allow", &[]),
        // A file of the project is another program than the one of that name.
        ("", "[policy]\ncommands.allow = [\"touch\"]\n", "deny", &["tested"]),
    ] {
        repo.write(".squad/config.toml", team);
        repo.write(OWN, own);
        let (output, files) = play(&repo, &STEPS, mode);
        assert_eq!(files, expected, "{team}{own}{mode}: {output}");
    }
}

#[test]
fn a_denial_says_why_and_what_would_be_allowed() {
    let repo = TestRepo::with_small_team();
    repo.write(".squad/config.toml", "[policy]\nwrites.only = [\"src/**\"]\n");
    let (output, _) = play(&repo, &STEPS[..2], "allow");
    let denied = TestRepo::events(&output).into_iter().find(|event| event["type"] == "tool.denied").expect("a denial");
    assert_eq!(
        denied["reason"],
        "denied by the rule `policy.writes.only` (.squad/config.toml:2); what it allows: src/**"
    );
    // What a rule allows is recorded as its.
    repo.write(OWN, "[policy]\nwrites.allow = [\"src\"]\n");
    let (output, _) = play(&repo, &STEPS[..1], "deny");
    let events = TestRepo::events(&output);
    let answered = events.iter().find(|event| event["type"] == "permission.answered").expect("an answer");
    assert_eq!((&answered["allowed"], &answered["rule"]), (&true.into(), &"policy.writes.allow: src".into()));
}

/// The path that is judged is where the write leads.
#[cfg(unix)]
#[test]
fn a_link_does_not_evade_a_rule() {
    let repo = TestRepo::with_small_team();
    repo.write("infra/.keep", "");
    std::os::unix::fs::symlink("infra", repo.root().join("src")).expect("a link");
    repo.write(OWN, "[policy]\nwrites.deny = [\"infra/**\"]\n");
    let (output, files) = play(&repo, &STEPS[..1], "allow");
    assert!(files.is_empty(), "{output}");
}

/// `policy test` judges as a run does: the same table, asked and played.
#[test]
fn a_test_says_what_a_run_does() {
    let repo = TestRepo::with_small_team();
    repo.write(
        ".squad/config.toml",
        "[policy]\nwrites.deny = [\"infra/**\"]\nagents.ada.commands.deny = [\"touch\"]\n\
         hosts.deny = [\"10.0.0.1\", \"*.evil.com\"]\n",
    );
    repo.write(OWN, "[policy]\nwrites.allow = [\"src/**\"]\n");
    for mode in ["allow", "deny"] {
        let (_, files) = play(&repo, &STEPS, mode);
        for (what, file) in [
            ("src/a.txt", "src/a.txt"),
            ("infra/a.txt", "infra/a.txt"),
            ("echo x > ran", "ran"),
            ("touch tested", "tested"),
        ] {
            let (answer, value) = judged(&repo, &[what, "--agent", "ada", "--permissions", mode]);
            assert_eq!(answer == "allow", files.contains(&file), "{what} {mode}: {value} {files:?}");
        }
    }
    let (answer, value) = judged(&repo, &["infra/a.txt"]);
    assert_eq!(answer, "deny");
    assert_eq!(value["rule"], "policy.writes.deny: infra/**");
    assert_eq!(value["source"], ".squad/config.toml:2");
    assert_eq!(
        (&value["as"], &value["path"], &value["permissions"]),
        (&"path".into(), &"infra/a.txt".into(), &"ask".into())
    );
    // What is judged is what is read of it.
    repo.write("src/.keep", "");
    let output = repo.squad(&["policy", "test", "./src/../infra/a.txt", "--agent", "ada", "--permissions", "deny"]);
    assert_eq!(
        output.out,
        "✗ deny  ./src/../infra/a.txt\n  rule       policy.writes.deny: infra/** (.squad/config.toml:2)\n  \
         path       infra/a.txt\n  judged as  a path, for ada, tier standard, in a run with --permissions deny\n"
    );
    let (_, value) = judged(&repo, &["sudo touch \"a b\" $X", "--agent", "ada", "--tier", "full"]);
    assert_eq!(value["commands"], serde_json::json!([["sudo", "touch", "a b", "?"]]));
    let found = ["agent", "tier", "answer", "source"].map(|name| value[name].as_str());
    assert_eq!(found, ["ada", "full", "deny", ".squad/config.toml:3"].map(Some));
    // A rule for ada alone.
    assert_eq!(judged(&repo, &["touch tested"]).0, "ask");
    for (what, kind, answer, source) in [
        ("git push -f", "command", "deny", "built in".into()),
        (".git/config", "path", "deny", "built in".into()),
        ("https://a.example", "address", "ask", Value::Null),
        ("deploy", "tool", "ask", Value::Null),
    ] {
        let (found, value) = judged(&repo, &[what, "--as", kind]);
        assert_eq!((found.as_str(), &value["source"]), (answer, &source), "{what}: {value}");
    }
    // A command that names an address, and hosts as rules name them.
    let (answer, value) = judged(&repo, &["touch x; wget https://good.com/a", "--agent", "ada"]);
    assert_eq!((answer.as_str(), value["as"].as_str()), ("deny", Some("command")), "{value}");
    for (host, answer) in [("10.0.0.1", "deny"), ("10.0.0.1:80", "deny"), ("a.evil.com", "deny"), ("good.com", "ask")] {
        assert_eq!(judged(&repo, &[host, "--as", "address"]).0, answer, "{host}");
    }
    // Without `--as`, each is what it most likely is.
    repo.write("there.com", "");
    for (what, kind) in [
        ("a.evil.com", "address"),
        ("good.com:8080", "address"),
        ("unknown.zz:443", "address"),
        ("10.0.0.1", "address"),
        ("[::1]", "address"),
        ("localhost", "address"),
        ("localhost:80", "address"),
        ("https://good.com/a", "address"),
        ("there.com", "path"),
        ("good.com/a", "path"),
        ("main.rs", "path"),
        ("README.md", "path"),
        ("a.test.ts", "path"),
        ("src:80/a", "path"),
        ("deploy", "command"),
        ("ping good.com", "command"),
    ] {
        assert_eq!(judged(&repo, &[what]).1["as"], kind, "{what}");
    }
    let output = repo.squad(&["policy", "test", "ls", "--agent", "nobody"]);
    assert_eq!(output.code, 2, "{output}");
}

#[test]
fn a_rule_that_is_none_is_said_where_it_stands() {
    let repo = TestRepo::with_small_team();
    repo.write(OWN, "[policy.kept]\n\"/a\" = 5\n");
    let (output, _) = play(&repo, &STEPS[..1], "allow");
    assert!(output.code == 3 && output.out.contains("config.toml:2"), "{output}");
    repo.write(OWN, "");
    // A rule that nobody can read holds nobody back, so nobody starts.
    for rule in
        ["writes.deny = \"infra\"", "commands.deny = [\"touch\", 5]", "hosts.dney = []", "agents.zoe.tools.deny = []"]
    {
        repo.write(".squad/config.toml", &format!("[policy]\n{rule}\n"));
        let (output, files) = play(&repo, &STEPS, "allow");
        assert!(
            output.code == 3 && files.is_empty() && output.out.contains(".squad/config.toml:2"),
            "{rule}: {output}"
        );
    }
    for rule in ["*", "rm -rf | x", "echo *"] {
        repo.write(".squad/config.toml", &format!("[policy]\ncommands.deny = [\"{rule}\"]\n"));
        let output = repo.squad(&["policy", "test", "echo hi"]);
        assert!(output.code == 3 && output.err.contains("is not the beginning of one command"), "{rule}: {output}");
    }
    // Nearly the name of a table that bounds what happens.
    for table in ["polic.commands", "Policy.commands", "hook.tidy", "checks"] {
        repo.write(".squad/config.toml", &format!("[{table}]\ndeny = [\"touch\"]\n"));
        let (output, files) = play(&repo, &STEPS, "allow");
        assert!(output.code == 3 && files.is_empty() && output.out.contains("did you mean"), "{table}: {output}");
    }
    let nested = format!("{}a{}", "{".repeat(2_000), "}".repeat(2_000));
    for host in ["bücher.example", "[::1", "127.1", "ann@example.com", "https://example.com"] {
        repo.write(".squad/config.toml", &format!("[policy]\nhosts.deny = [\"{host}\"]\n"));
        let output = repo.squad(&["policy", "test", "https://a.example"]);
        assert!(output.code == 3 && output.err.contains(".squad/config.toml:2"), "{host}: {output}");
    }
    for pattern in
        [nested, "a".repeat(300_000), "?".repeat(400_000), "/etc/**".to_owned(), "../a".to_owned(), String::new()]
    {
        repo.write(".squad/config.toml", &format!("[policy]\nwrites.deny = [\"{pattern}\"]\n"));
        let output = repo.squad(&["policy", "test", "src/a"]);
        assert_eq!(output.code, 3, "{}", output.err.get(..300).unwrap_or(&output.err));
    }
    repo.write(
        ".squad/config.toml",
        "[policy]\nwrites.deny = [\"a[\"]\nwrits.deny = [\"a\"]\ncommands.deny = \"rm\"\ncommands.allow = [\"rm\"]\n\
         agents.zoe.tools.deny = [\"bash\"]\ntiers.huge.tools.deny = [\"bash\"]\nquestions = 0\n",
    );
    let output = repo.squad(&["policy", "--verbose"]);
    assert_eq!(output.code, 0, "{output}");
    for (line, said) in [
        (2, "is no glob"),
        (3, "is no rule"),
        (4, "needs a list of strings"),
        (5, "but not allow"),
        (6, "is for nobody"),
        (7, "names no tier"),
        (8, "must be above 0"),
    ] {
        let at = format!(".squad/config.toml:{line}");
        assert!(output.err.lines().any(|text| text.contains(&at) && text.contains(said)), "{line} {said}: {output}");
    }
    let output = repo.squad(&["config", "set", "policy.commands.allow", "[\"cargo test\"]"]);
    assert!(output.code == 2 && output.err.contains("--user"), "{output}");
    let output = repo.squad(&["config", "set", "--user", "policy.commands.allow", "[\"cargo test\"]"]);
    assert_eq!(output.code, 0, "{output}");
    let output = repo.squad(&["policy", "list"]);
    assert!(output.out.contains("policy.commands.allow = cargo test"), "{output}");
}

#[test]
fn a_rule_without_effect_is_said_where_it_stands() {
    let repo = TestRepo::with_small_team();
    repo.write("src/a.txt", "");
    repo.write(OWN, "[policy]\ncommands.allow = [\"git push\"]\nwrites.deny = [\"nowhere/**\"]\n");
    repo.write(
        ".squad/config.toml",
        "[policy]\ncommands.deny = [\"git push\"]\nwrites.deny = [\"infr/**\", \"src/**/x\", \"**/*.lock\"]\n\
         writes.only = [\"src/b.txt\", \"@owned\", \"infr/**\"]\ncommands.ask = [\"git\"]\n",
    );
    let output = repo.squad(&["policy", "--verbose"]);
    let told: Vec<&str> = output.err.lines().filter(|line| line.contains("` has `")).collect();
    for (at, line) in [
        "config.toml:2: `policy.commands.allow` has `git push`, which `policy.commands.deny` denies (.squad/config.toml:2)",
        ".squad/config.toml:3: `policy.writes.deny` has `infr/**`, and the project has no `infr`",
        ".squad/config.toml:4: `policy.writes.only` has `src/b.txt`, and the project has no `src/b.txt`",
        ".squad/config.toml:4: `policy.writes.only` has `infr/**`, which `policy.writes.deny` denies (.squad/config.toml:3)",
    ].iter().enumerate() {
        assert!(told.iter().any(|told| told.ends_with(line)), "{at}: {line}: {output}");
    }
    assert_eq!(told.len(), 4, "{output}");
}

/// What was kept for later does not answer a rule that wants a person asked.
#[test]
fn a_rule_that_asks_is_not_answered_by_what_was_kept() {
    let repo = TestRepo::with_small_team();
    let root = repo.root().canonicalize().expect("a folder");
    let id = "0123456789abcdef".repeat(2);
    repo.write(".git/squad/project", &id);
    let project = format!("{} {id}", root.display());
    repo.write(OWN, &format!("[policy.kept]\n{project:?} = [\"writes in this project\"]\n"));
    assert_eq!(judged(&repo, &["src/a.txt"]).0, "allow");
    repo.write(".squad/config.toml", "[policy]\nwrites.ask = [\"infra/**\"]\n");
    for (mode, expected) in [("deny", &[][..]), ("allow", &["src/a.txt"])] {
        let (output, files) = play(&repo, &STEPS[..2], mode);
        assert_eq!(files, expected, "{mode}: {output}");
    }
}

/// A rule comes before what is free for those who only read, in the run and in the test.
#[test]
fn reading_git_is_asked_about_where_a_rule_says_so() {
    let repo = TestRepo::with_small_team();
    for (rule, is_done) in [("", true), ("ask", false), ("deny", false), ("allow", true)] {
        let rules =
            if rule.is_empty() { String::new() } else { format!("[policy]\ncommands.{rule} = [\"git log\"]\n") };
        repo.write(OWN, &rules);
        let (output, _) = play(&repo, &["run = \"git log -1\""], "deny");
        let denied = TestRepo::events(&output).iter().filter(|event| event["type"] == "tool.denied").count();
        assert_eq!(denied == 0, is_done, "{rule}: {output}");
        assert_eq!(judged(&repo, &["git log -1", "--permissions", "deny"]).0 == "allow", is_done, "{rule}");
    }
}

/// Calls of all kinds, each with another way to write it: commands that read, write, hide what they run and are refused in
/// every mode; paths in the project, around it, behind links and of git.
const CALLS: [&str; 62] = [
    "ls",
    "ls src",
    "ls ..",
    "ls /",
    "cat README.md",
    "cat src/../README.md",
    "cat link/a.txt",
    "cat out/a.txt",
    "cat .git/HEAD",
    "cat ~/x",
    "cat README.md | tail -1",
    "cat README.md > copied",
    "head -1 README.md",
    "sed -n 1p README.md",
    "sed -i s/a/b/ README.md",
    "grep a README.md",
    "rg --pre sh a",
    "wc -l secret/a.txt",
    "pwd",
    "git status",
    "git log -1",
    "git log -1 --output=x",
    "git diff",
    "git show HEAD:README.md",
    "git push",
    "git push -f",
    "git -c a.b=c push",
    "git reset --hard",
    "git reset --ha HEAD",
    "git clean -fd",
    "git commit -m x --allow-empty",
    "sh -c 'git push'",
    "sh -c 'touch made'",
    "echo git push",
    "echo $(git push)",
    "$X push",
    "touch made",
    "touch infra/made",
    "/usr/bin/touch made",
    "env A=1 touch made",
    "true && touch made",
    "rm -f made",
    "rm -rf ../nowhere",
    "rm -rf src/nothing",
    "rm -rf \"$X\"",
    "mkdir -p made.d",
    "true",
    "false",
    "test -f README.md",
    "true; false; true",
    "for i in a b; do true $i; done",
    "write src/new.txt",
    "write src/../infra/new.txt",
    "write infra/new.txt",
    "write ./new.txt",
    "write link/new.txt",
    "write out/new.txt",
    "write ../new.txt",
    "write .git/new.txt",
    "write src/.git/new.txt",
    "write tools/approved.sh",
    "write .squad/new.md",
];

/// What a run does with each call is what the test says of it, with rules of both files and without any, in each mode that
/// asks nobody: what a rule wants asked is then denied.
#[cfg(unix)]
#[test]
fn a_test_and_a_run_agree_on_each_call() {
    let team =
        "[policy]\nwrites.deny = [\"infra/**\"]\ncommands.ask = [\"false\"]\nagents.ada.commands.deny = [\"touch\"]\n";
    let own = "[policy]\nwrites.allow = [\"src/**\", \"link\"]\ncommands.allow = [\"true\", \"mkdir\", \"touch\"]\n\
               commands.deny = [\"git push\"]\n";
    let check = "[check]\nrun = [\"sh\", \"tools/approved.sh\"]\n";
    for (team, own) in [("", ""), (team, own)] {
        let repo = TestRepo::with_small_team();
        for path in ["README.md", "src/a.txt", "infra/a.txt", "secret/a.txt", "../outside/a.txt"] {
            repo.write(path, "a\n");
        }
        repo.write("tools/approved.sh", "true\n");
        for (to, link) in [("infra", "link"), ("../outside", "out")] {
            std::os::unix::fs::symlink(to, repo.root().join(link)).expect("a link");
        }
        repo.write(".squad/config.toml", &format!("{check}{team}"));
        repo.write(OWN, own);
        assert_eq!(repo.squad(&["trust", "approve", "check.run", "--yes"]).code, 0);
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-qm", "all"]);
        let step = |call: &&str| match call.strip_prefix("write ") {
            Some(path) => format!("  {{ write = {path:?}, text = \"new\" }},\n"),
            None => format!("  {{ run = {call:?} }},\n"),
        };
        let steps: String = CALLS.iter().map(step).collect();
        let script = format!("[[turn]]\nagent = \"ada\"\nsteps = [\n{steps}  {{ say = \"Done.\" }},\n]\n");
        for mode in ["deny", "allow"] {
            let output = repo.rehearse(&script, &["@ada do it", "--permissions", mode, "--json"]);
            let events = TestRepo::events(&output);
            let denied: Vec<&str> = events
                .iter()
                .filter(|event| event["type"] == "tool.denied")
                .filter_map(|event| event["detail"].as_str())
                .collect();
            for call in CALLS {
                let (what, kind) = call.strip_prefix("write ").map_or((call, "command"), |path| (path, "path"));
                let (answer, value) = judged(&repo, &[what, "--as", kind, "--agent", "ada", "--permissions", mode]);
                let is_done = !denied.contains(&what);
                assert_eq!(answer == "allow", is_done, "{mode} {call}: {value} {team}{own}");
            }
        }
    }
}

/// Each tool that changes something × whom the rule is for × what it says × the mode. What is denied is not done, and the
/// denial names the rule, where it stands and what would be allowed; what the rule is not about, the mode decides.
#[test]
fn a_rule_is_for_those_whom_it_names_and_every_tool() {
    let tools = [
        ("write = \"src/a.txt\", text = \"a\"", "writes", "src/**", "docs/**"),
        ("run = \"touch tested\"", "commands", "touch", "cargo test"),
        ("tool = \"squad_log_decision\", args = { title = \"A\", what = \"b\" }", "tools", "squad_log_*", ""),
    ];
    let repo = TestRepo::with_small_team();
    for (step, subject, denied, only) in tools {
        for (whom, is_for_ada) in [
            ("", true),
            ("agents.ada.", true),
            ("agents.\"backend dev\".", true),
            ("agents.bob.", false),
            ("tiers.standard.", true),
            ("tiers.full.", false),
        ] {
            for (word, pattern) in [("deny", denied), ("only", only)] {
                // Lists of an engine's tools say nothing of squad's.
                if pattern.is_empty() {
                    continue;
                }
                repo.write(".squad/config.toml", &format!("[policy]\n{whom}{subject}.{word} = [{pattern:?}]\n"));
                for mode in ["deny", "allow"] {
                    let (output, files) = play(&repo, &[step], mode);
                    let events = TestRepo::events(&output);
                    // A decision that is in force already is not recorded again.
                    let is_own = |event: &Value| event["tool"] == "squad_log_decision" && event["ok"] == true;
                    let is_done = !files.is_empty() || events.iter().any(is_own);
                    let mode_allows = mode == "allow" || subject == "tools";
                    let what = format!("{whom}{subject}.{word} {mode}: {output}");
                    assert_eq!(is_done, !is_for_ada && mode_allows, "{what}");
                    let reasons: Vec<&str> = events
                        .iter()
                        .filter(|event| event["type"] == "tool.denied")
                        .filter_map(|event| event["reason"].as_str())
                        .collect();
                    assert_eq!(reasons.len(), usize::from(!is_done), "{what}");
                    if is_for_ada {
                        let name = format!("policy.{}{subject}.{word}", whom.replace('"', ""));
                        let rule = if word == "deny" { format!("{name}: {pattern}") } else { name };
                        let instead =
                            if word == "only" { format!("; what it allows: {pattern}") } else { String::new() };
                        let expected = format!("denied by the rule `{rule}` (.squad/config.toml:2){instead}");
                        assert_eq!(reasons, [expected], "{what}");
                    }
                }
            }
        }
    }
}
