use std::fs;
use std::path::PathBuf;

use expect_test::expect;

use crate::support::TestRepo;

#[test]
fn the_team_is_shown_as_squad_reads_it() {
    let repo = TestRepo::with_small_team();
    repo.write(
        ".squad/agents/ada/charter.md",
        "# Ada — Backend Dev\n\n## Model\n\n- **Preferred:** `big-1`\n\n## Tools\n\n- `view`\n",
    );
    expect![[r#"
          Ada     Backend Dev  big-1              2 routes
          Bob     Tester       claude-sonnet-4.5  1 route
          Rex     Reviewer     claude-sonnet-4.5  1 route
          Scribe  Logger       built-in helper, its work is squad's own
          Old     Backend Dev  claude-sonnet-4.5  no route: reached only as @old, retired
        --- stderr

        5 members, 3 routing rules, 0 decisions in force
        note: .squad/team.md:6: Bob has no charter at .squad/agents/bob/charter.md
        hint: write one; until then the agent only knows its name and role
        note: .squad/team.md:7: Rex has no charter at .squad/agents/rex/charter.md
        hint: write one; until then the agent only knows its name and role
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["agents"]).to_string());
    let value: serde_json::Value = serde_json::from_str(&repo.squad(&["agents", "--json"]).out).expect("JSON");
    expect![[r#"{"name":"Ada","slug":"ada","role":"Backend Dev","kind":"agent","status":"active","charter":".squad/agents/ada/charter.md","model":"big-1","resolved_model":"big-1","model_layer":"charter","tools":["view"],"prompt_tokens":203,"compiled_hash":"c14fc1cb13dc11d6","source":".squad/team.md:5","runs":{"count":0,"failed":0,"last":null}}"#]].assert_eq(&value["agents"][0].to_string());
    expect![[r#"{"signal":"Security","agents":["ada"],"reviewer":"rex","examples":["login","password"],"source":".squad/routing.md:7"}"#]].assert_eq(&value["rules"][2].to_string());
    assert_eq!(value["decisions"].to_string(), r#"{"total":0,"dated":0,"attributed":0,"in_force":0,"archived":0}"#);
    let names: Vec<&String> = value.as_object().expect("an object").keys().collect();
    assert_eq!(
        names,
        ["agents", "rules", "decisions", "problems", "modules", "labels", "roles", "skills", "ceremonies"]
    );
}

#[test]
fn what_was_not_understood_is_said_and_is_no_failure() {
    let repo = TestRepo::with_small_team();
    repo.write(".squad/routing.md", "# Routing\n");
    let output = repo.squad(&["agents"]);
    assert!(output.code == 0 && output.err.contains("squad found no routing rule in it"), "{output}");
    repo.write(".squad/team.md", "");
    assert_eq!(repo.squad(&["agents", "--json"]).code, 0);
}

#[test]
fn of_many_problems_that_are_mended_alike_the_first_are_shown() {
    let mut repo = TestRepo::with_team();
    repo.variables.insert("SQUAD_ENGINE".to_owned(), "rehearsal".to_owned());
    let rows: String = (1..=6).map(|n| format!("| {{domain {n}}} | {{Name}} | |\n")).collect();
    repo.write(
        ".squad/routing.md",
        &format!("| Work Type | Route To | Examples |\n|-|-|-|\n| API | Backend | |\n{rows}"),
    );
    expect![[r#"
        ✓ engine     rehearsal 0.1.0 is ready
          governed   rehearsal: with `--permissions allow` each is allowed, but no file tool writes in `.git` and a few commands are refused; otherwise squad decides on each write and command
          sandbox    rules
        ! team       .squad/routing.md:4: `{domain 1}` is a template's placeholder row
                     fill it in or delete the row
        ! team       .squad/routing.md:5: `{domain 2}` is a template's placeholder row
                     fill it in or delete the row
        ! team       .squad/routing.md:6: `{domain 3}` is a template's placeholder row
                     fill it in or delete the row
                     and 3 more like it: --verbose shows all
        6 warnings
        --- exit 1
    "#]]
    .assert_eq(&repo.squad(&["doctor"]).to_string());
    let shown = |output: String| output.matches("placeholder row").count();
    assert_eq!(shown(repo.squad(&["doctor", "--verbose"]).out), 6);
    assert_eq!(shown(repo.squad(&["doctor", "--json"]).out), 6);
    let agents = repo.squad(&["agents"]).err;
    assert!(agents.contains("and 3 more like it") && shown(agents.clone()) == 3, "{agents}");
}

#[test]
fn the_doctor_finds_what_is_wrong_and_says_how_to_mend_it() {
    let mut repo = TestRepo::with_team();
    expect![[r#"
        ✓ team       6 members, 13 routes, 0 decisions in force
          governed   copilot: with `--permissions allow` each is allowed, but no file tool writes in `.git` and a few commands are refused; otherwise squad decides on each write and command
          sandbox    rules
        ✗ engine     copilot: there is no Copilot CLI at /nonexistent/copilot, where COPILOT_CLI_PATH says it is
                     correct the path, or install the CLI with `npm install -g @github/copilot`
        1 problem
        --- exit 1
    "#]]
    .assert_eq(&repo.squad(&["doctor"]).to_string());
    repo.variables.insert("SQUAD_ENGINE".to_owned(), "rehearsal".to_owned());
    expect![[r#"
        ✓ team       6 members, 13 routes, 0 decisions in force
        ✓ engine     rehearsal 0.1.0 is ready
          governed   rehearsal: with `--permissions allow` each is allowed, but no file tool writes in `.git` and a few commands are refused; otherwise squad decides on each write and command
          sandbox    rules
        Everything is in order.
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["doctor"]).to_string());
    repo.write(".squad/config.toml", "[sessions]\ntimout = \"1m\"\n");
    repo.write(".squad/routing.md", "");
    repo.git(&["checkout", "--quiet", "--detach"]);
    repo.squad(&["decisions", "add", "Kept"]);
    expect![[r#"
        ✓ engine     rehearsal 0.1.0 is ready
        ✓ ledger     1 entry, all readable
          governed   rehearsal: with `--permissions allow` each is allowed, but no file tool writes in `.git` and a few commands are refused; otherwise squad decides on each write and command
          sandbox    rules
          repository HEAD is detached, so no decision can land
                     `git switch` to a branch before a run whose decisions should land
        ! repository 1 decision recorded and on no branch yet
                     `squad decisions land` on the branch they were made for
        ! team       .squad/routing.md:1: squad found no routing rule in it
                     rules are rows of a table such as `| Work Type | Route To | Examples |`
        ! config     .squad/config.toml:2: there is no setting `sessions.timout`
                     did you mean `sessions.timeout`?
        3 warnings
        --- exit 1
    "#]]
    .assert_eq(&repo.squad(&["doctor"]).to_string());
}

/// An agent that fails in a step and is skipped in another has failed; one that was only skipped has not worked.
#[test]
fn the_list_says_how_often_each_has_worked() {
    let repo = TestRepo::with_small_team();
    let runs = |output: &str, name: &str| {
        let line = output.lines().find(|line| line.contains(name)).expect("a member").to_owned();
        line.split_once(" route").expect("it has routes").1.trim_start_matches('s').trim().to_owned()
    };
    let fails = "[[turn]]\nagent = \"ada\"\nsteps = [{ fail = \"the model is gone\" }]\n";
    let steps = "First @ada adds the endpoint, then @bob tests it, after that @ada polishes it";
    assert_eq!(repo.rehearse(fails, &["--permissions", "allow", steps]).code, 1);
    let listed = repo.squad(&["agents"]).out;
    let last = listed.split("last ").nth(1).and_then(|rest| rest.lines().next()).expect("a day").to_owned();
    assert_eq!(runs(&listed, "Ada"), format!("1 run, 1 failed, last {last}"));
    assert_eq!((runs(&listed, "Bob"), runs(&listed, "Rex")), (String::new(), String::new()));
    let works = ["ada", "bob"].map(|agent| format!("[[turn]]\nagent = \"{agent}\"\nsteps = [{{ say = \"Done.\" }}]\n"));
    let output = repo.rehearse(&works.concat(), &["--agent", "ada,bob", "What is in team.md?"]);
    assert_eq!(output.code, 0, "{output}");
    let listed = repo.squad(&["agents"]).out;
    assert_eq!(runs(&listed, "Ada"), format!("2 runs, 1 failed, last {last}"));
    assert_eq!(runs(&listed, "Bob"), format!("1 run, last {last}"));
    let json: serde_json::Value = serde_json::from_str(&repo.squad(&["agents", "--json"]).out).expect("JSON");
    assert_eq!((&json["agents"][0]["runs"]["count"], &json["agents"][2]["runs"]["count"]), (&2.into(), &0.into()));
}

/// Nothing is wrong with a repository that has no team; an engine that cannot work is.
#[test]
fn doctor_looks_at_a_repository_without_a_team() {
    let mut repo = TestRepo::empty();
    repo.write("README.md", "A project.\n");
    for agents in [false, true] {
        if agents {
            repo.write(".squad/agents/tester.md", "You test.\n");
        }
        repo.variables.insert("SQUAD_ENGINE".to_owned(), "rehearsal".to_owned());
        let output = repo.squad(&["doctor"]);
        assert!(output.code == 0 && output.out.contains("`squad init` makes a team"), "{output}");
        assert!(!output.out.contains("✓ team") && output.out.contains("✓ engine"), "{output}");
        assert!(output.out.ends_with("What is here is in order. There is no team yet: squad init\n"), "{output}");
        repo.variables.insert("SQUAD_ENGINE".to_owned(), "gemini".to_owned());
        let output = repo.squad(&["doctor"]);
        assert!(output.code == 1 && output.to_string().contains("gemini is not installed"), "{output}");
        assert!(output.out.ends_with("1 problem, and no team yet: squad init\n"), "{output}");
    }
    let outside = repo.root().parent().expect("a folder").to_owned();
    let output = repo.squad_in(&outside, &["doctor"]);
    assert!(output.code == 3 && output.err.contains("no git repository"), "{output}");
}

fn with_records() -> TestRepo {
    let repo = TestRepo::with_small_team();
    repo.write(
        ".squad/agents/ada/charter.md",
        "# Ada — Backend Dev\n\n## Model\n\n- **Preferred:** `big-1`\n\n## Tools\n\n- `view`\n",
    );
    repo.write(
        ".squad/agents/ada/history.md",
        "# Ada — History\n\n## Project Context\n\n- Owner: Ann\n\n## Learnings\n\n- 2026-01-02: The login form is slow.\n",
    );
    repo.write(
        ".squad/decisions.md",
        "# Decisions\n\n### 2026-01-03: Money is integer cents\n**By:** Ann\n\n## Forged heading\n\n\
         ### 2026-01-04: Logins use passkeys\n**By:** Ada\n\nNo passwords.\n",
    );
    repo
}

#[test]
fn an_agent_has_a_page() {
    let repo = with_records();
    expect![[r#"
        Ada — Backend Dev
        slug    ada
        kind    agent
        source  .squad/team.md:5
        charter .squad/agents/ada/charter.md
        model   big-1, named by the charter
        tools   view
        tokens  about 347 of 1800 at the standard tier: charter 20, skills and notes 0, decisions 80, history 65
        hash    c14fc1cb13dc11d6
        runs    none yet

        Rules that route here:
          Server, API  .squad/routing.md:5
          Security     .squad/routing.md:7
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["agents", "show", "Ada"]).to_string());
    repo.write(".squad/agents/bob/charter.md", "");
    expect![[r#"
        Bob — Tester
        slug    bob
        kind    agent
        source  .squad/team.md:6
        charter .squad/agents/bob/charter.md
        model   claude-sonnet-4.5, the tier's default
        tools   all
        tokens  about 276 of 1800 at the standard tier: charter 13, skills and notes 0, decisions 80, history 0
        hash    224c27e62104adf6
        runs    none yet

        Rules that route here:
          Testing  .squad/routing.md:6
        --- stderr
        warning: .squad/agents/bob/charter.md:1: the charter is empty
        hint: say who the agent is, what it owns and where its work ends
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["agents", "show", "bob"]).to_string());
    expect![[r#"
        Scribe — Logger
        slug    scribe
        kind    built-in helper, its work is squad's own, silent
        source  .squad/team.md:8
        charter none
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["agents", "show", "scribe"]).to_string());
}

#[test]
fn the_prompt_is_what_the_engine_gets() {
    let repo = with_records();
    let shown = repo.squad(&["agents", "show", "ada", "--prompt", "--task", "Make the login faster"]);
    expect![[r#"
        # Ada — Backend Dev

        ## Model

        - **Preferred:** `big-1`

        ## Tools

        - `view`

        ----- context -----
        # Working in this team

        You are one of a team of agents that squad runs in this repository. Others may be working in it at the same time.

        - Do the part of the task that is yours; say what you leave to whom.
        - When you decide something that others must follow, record it with `squad_log_decision`. It is written to the
          repository at once; never edit files under `.squad/` to record a decision.
        - When you learn something that will help you next time, keep it with `squad_remember`.
        - When a tool is refused, do not work around it: say what you could not do.
        - End with a short report: what you did, what you found, what is left.

        ## The team

        - Ada (`ada`): Backend Dev
        - Bob (`bob`): Tester
        - Rex (`rex`): Reviewer

        You are Ada.

        ## Decisions in force

        Quoted from the team's records; keep to them. Oldest first.

        Decision `b2a6ebd57f05` 2026-01-03, by Ann, `.squad/decisions.md:3`:
        > Money is integer cents
        > **By:** Ann

        Decision `c1a4b91a790c` 2026-01-04, by Ada, `.squad/decisions.md:8`:
        > Logins use passkeys
        > **By:** Ada
        >
        > No passwords.

        ## What you learned before

        Quoted from your own history; it may be out of date.

        From `.squad/agents/ada/history.md:5`, “Project Context”:
        > - Owner: Ann

        From `.squad/agents/ada/history.md:9`, “Learnings”:
        > - 2026-01-02: The login form is slow.
        --- exit 0
    "#]].assert_eq(&shown.to_string());
    let json = repo.squad(&["agents", "show", "ada", "--prompt", "--json", "--task", "Make the login faster"]);
    let value: serde_json::Value = serde_json::from_str(&json.out).expect("JSON");
    let (prompt, context) = (value["prompt"].as_str().expect("a text"), value["context"].as_str().expect("a text"));
    assert_eq!(shown.out, format!("{prompt}\n\n----- context -----\n{context}"));
}

#[test]
fn the_receipt_says_why() {
    let repo = with_records();
    expect![[r#"
        agent    ada, standard tier, big-1
        tokens   about 347 of 1800: prompt 20, context 327
                 decisions 80 of 1064
                 history 65 of 532
        session  c14fc1cb13dc11d6
        told     decisions aa7c08f2851713cc, history 1d878e4f50d3a42d, task 36d81d8ec2c3be74

        In the prompt:
        charter         20  520d27928fa417fc  .squad/agents/ada/charter.md:1
                            the agent's own prompt
        instructions   158  0c03b9a40323f8a0  squad
                            working rules for every agent
        roster          22  dc2b38838573a92c  .squad/team.md:5
                            the agents who can be given work
        decision        31  3a96c84ce132ba87  .squad/decisions.md:8  Logins use passkeys
                            about the task: login (4)
        decision        28  e1a5992982fc48bd  .squad/decisions.md:3  Money is integer cents
                            number 2 of the newest
        history         20  7324d81762eee278  .squad/agents/ada/history.md:5  Project Context
                            project context
        history         25  e88aa2f67ecd71e5  .squad/agents/ada/history.md:9  Learnings
                            about the task: login (4)
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["agents", "show", "ada", "--receipt", "--task", "Make the login faster"]).to_string());
    let light = repo.squad(&["agents", "show", "ada", "--receipt", "--tier", "lightweight", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&light.out).expect("JSON");
    let decision = value["inputs"].as_array().expect("a list").iter().find(|input| input["kind"] == "decision");
    expect![[r#"{"source":".squad/decisions.md:8","kind":"decision","title":"Logins use passkeys","hash":"3a96c84ce132ba87","tokens":10,"in":false,"why":"this tier gets no decisions"}"#]].assert_eq(&decision.expect("a decision").to_string());
}

#[test]
fn the_coordinator_has_a_prompt_too() {
    let output = with_records().squad(&["agents", "show", "coordinator", "--prompt"]);
    assert!(output.code == 0 && output.out.contains("# Squad coordinator"), "{output}");
    assert!(output.out.contains("- Server, API: `ada`") && output.out.contains("- Logins use passkeys ("), "{output}");
}

#[test]
fn names_are_checked() {
    let repo = TestRepo::with_small_team();
    expect![[r#"
        --- stderr
        error: the team has no agent `adda`
        hint: did you mean `ada`? the team's agents: ada, bob and rex
        --- exit 2
    "#]]
    .assert_eq(&repo.squad(&["agents", "show", "adda"]).to_string());
    expect![[r#"
        --- stderr
        error: .squad/team.md:9: Old is not an agent that can be started
        hint: the team's agents: ada, bob and rex
        --- exit 2
    "#]]
    .assert_eq(&repo.squad(&["agents", "show", "old", "--prompt"]).to_string());
}

/// Same content, same bytes: whatever the line ends, the order in which files were made, their times, the language
/// and the hour.
#[test]
fn the_same_team_gives_the_same_bytes() {
    const TEXTS: [(&str, &str); 6] = [
        (".squad/team.md", "| Name | Role |\n|---|---|\n| Ada | Dev |\n| Bob | Tester |\n"),
        (".squad/agents/ada/charter.md", "# Ada — Dev\n\n## What I Own\n\nThe **API**.\n\n```\ncode\n```\n"),
        (".squad/agents/ada/history.md", "## Learnings\n\n- one\n  more\n- two\n"),
        (".squad/decisions.md", "### 2026-01-03: First\n\nBecause.\n\n- a\n- b\n"),
        (
            ".squad/decisions/2026/01/04-b-00000000000b.md",
            "---\nid: 00000000000b\ndate: 2026-01-04\n---\n# B\n\ntext\nmore\n",
        ),
        (
            ".squad/decisions/2026/01/04-a-00000000000a.md",
            "---\nid: 00000000000a\ndate: 2026-01-04\n---\n# A\n\ntext\n",
        ),
    ];
    let shown = |repo: &TestRepo| {
        ["--prompt", "--receipt"]
            .map(|part| repo.squad(&["agents", "show", "ada", part, "--task", "a b", "--json"]).out)
    };
    let first = TestRepo::empty();
    TEXTS.iter().for_each(|(path, text)| first.write(path, text));
    let mut second = TestRepo::empty();
    for (name, value) in [("LC_ALL", "tr_TR.UTF-8"), ("LANG", "de_DE.UTF-8"), ("TZ", "Pacific/Kiritimati")] {
        second.variables.insert(name.to_owned(), value.to_owned());
    }
    second.write(".squad/z.txt", "made first");
    TEXTS.iter().rev().for_each(|(path, text)| {
        second.write(path, &text.replace('\n', "\r\n"));
        let file = fs::File::options().write(true).open(second.root().join(path)).expect("a file");
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000)).expect("a time");
    });
    assert!(first.squad(&["agents"]).code == 0 && shown(&first)[0].contains("> Because."));
    assert_eq!(shown(&first), shown(&second));
}

#[test]
fn what_is_remembered_of_a_team_changes_nothing_but_time() {
    let mut repo = TestRepo::with_small_team();
    let ask = |repo: &TestRepo| repo.squad(&["agents", "--json"]).out;
    let cache = repo.root().join(".git/squad/cache");
    let kept = |ending: &str| -> Vec<PathBuf> {
        let files = fs::read_dir(&cache).expect("a cache").flatten().map(|entry| entry.path());
        files.filter(|path| path.extension().is_some_and(|extension| extension == ending)).collect()
    };
    let first = ask(&repo);
    assert_eq!(kept("agents").len(), 1, "the report is kept");
    assert_eq!(ask(&repo), first);
    assert_eq!((kept("agents").len(), kept("team").len(), kept("index").len()), (1, 1, 1));

    repo.variables.insert("SQUAD_MODEL".to_owned(), "mine-1".to_owned());
    let changed = ask(&repo);
    assert!(changed.contains("mine-1") && changed != first, "{changed}");
    repo.variables.remove("SQUAD_MODEL");
    assert_eq!(ask(&repo), first);

    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ tool = \"squad_remember\", args = { text = \"Ports are shared.\" } }, { say = \"Done.\" }]\n";
    assert_eq!(repo.rehearse(script, &["--permissions", "allow", "--agent", "ada", "Look"]).code, 0);
    let learned = ask(&repo);
    assert_ne!(learned, first, "a learning is part of the prompt");
    repo.write(".squad/agents/ada/charter.md", "# Ada — Backend Dev\n\nI own the ports.\n");
    let rewritten = ask(&repo);
    assert_ne!(rewritten, learned);

    for ending in ["agents", "team", "index"] {
        for path in kept(ending) {
            let mut bytes = fs::read(&path).expect("a file");
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
            fs::write(&path, bytes).expect("a file");
        }
        assert_eq!(ask(&repo), rewritten, "{ending} damaged");
    }
    fs::remove_dir_all(&cache).expect("a cache");
    assert_eq!(ask(&repo), rewritten);
}

#[test]
fn what_all_of_the_team_should_know_reaches_the_prompt() {
    let repo = TestRepo::with_small_team();
    repo.write(".squad/skills/keys/SKILL.md", "---\nname: keys\ndescription: How keys are rotated.\n---\n# Keys\n");
    repo.write(".squad/identity/now.md", "---\nupdated_at: 2026-01-02\n---\n\n# Now\n\nThe login rewrite.\n");
    repo.write(
        ".squad/ceremonies.md",
        "## Review\n\n| Field | Value |\n|---|---|\n| When | before |\n| Facilitator | Ada |\n",
    );
    let prompt = repo.squad(&["agents", "show", "ada", "--prompt"]).out;
    expect![[r#"


        Where the task calls for one of these meetings, you facilitate it:

        - Review (`.squad/ceremonies.md:1`): before

        ## Skills

        Notes on how things are done here, by name and file. Open one when the task is about it.

        - keys (`.squad/skills/keys/SKILL.md`): How keys are rotated.

        ## What the team is on and has learned

        Quoted from notes for all of the team; they may be out of date.

        From `.squad/identity/now.md:2`:
        > updated_at: 2026-01-02
        > The login rewrite.
    "#]]
    .assert_eq(prompt.split_once("You are Ada.").expect("the roster's end").1);
    let receipt = repo.squad(&["agents", "show", "ada", "--receipt", "--json"]).out;
    let receipt: serde_json::Value = serde_json::from_str(&receipt).expect("JSON");
    let kinds: Vec<&str> =
        receipt["inputs"].as_array().expect("a list").iter().filter_map(|input| input["kind"].as_str()).collect();
    assert_eq!(kinds, ["charter", "instructions", "roster", "ceremony", "skill", "note", "note"]);
    // A link out of the project is no skill.
    #[cfg(unix)]
    {
        let secret = repo.root().parent().expect("a folder").join("secret");
        fs::write(&secret, "---\nname: secret\n---\n").expect("a file");
        fs::create_dir_all(repo.root().join(".squad/skills/x")).expect("a folder");
        std::os::unix::fs::symlink(&secret, repo.root().join(".squad/skills/x/SKILL.md")).expect("a link");
        let output = repo.squad(&["agents", "show", "ada", "--prompt"]);
        assert!(!output.out.contains("secret"), "{output}");
    }
}

/// As in other lists, and in one word as in several.
#[test]
fn a_list_of_agents_is_understood() {
    let repo = TestRepo::with_small_team();
    assert_eq!(repo.squad(&["agents", "list"]).to_string(), repo.squad(&["agents"]).to_string());
    let route = |arguments: &[&str]| repo.squad(&[&["route", "--json", "Do it"], arguments].concat()).to_string();
    assert_eq!(route(&["-a", "ada,bob"]), route(&["-a", "ada", "-a", "bob"]));
    let output = repo.squad(&["orchestrate", "--timeout", "5", "x"]);
    assert!(output.code == 2 && output.err.contains("`5` has no unit; write `5s` or `5m`"), "{output}");
}

#[test]
fn a_change_of_several_prompts_is_shown_once() {
    let repo = TestRepo::with_small_team();
    let team = repo.read(".squad/team.md");
    repo.write(".squad/team.md", &format!("{team}\n## Project Context\n\n- **Language:** a rare one\n"));
    repo.git(&["commit", "--quiet", "--all", "--message=context"]);
    let diff = repo.squad(&["agents", "diff", "HEAD~1"]);
    assert_eq!(diff.out.lines().filter(|line| line.starts_with("@@")).count(), 1, "{diff}");
    assert!(diff.out.contains("Ada  ") && diff.out.contains("Bob  "), "{diff}");
}
