use expect_test::expect;

use crate::support::TestRepo;

fn id(output: &str) -> String {
    output.lines().next().expect("an id").to_owned()
}

#[test]
fn a_decision_is_added_listed_and_shown() {
    let repo = TestRepo::with_small_team();
    let added =
        repo.squad(&["decisions", "add", "--scope", "billing/**", "Money is integer cents\n\nFloats lose cents."]);
    expect![[r#"
        000000000001
        --- stderr
        1 decision landed on main in 6c21bfca70.
        --- exit 0
    "#]]
    .assert_eq(&added.to_string());
    expect![[r#"
          000000  2026-01-05  in force  Ann  Money is integer cents
        --- stderr

        1 decision: 1 in force
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["decisions", "list"]).to_string());
    expect![[r#"
        Money is integer cents
        id       000000000001
        state    in force
        date     2026-01-05T09:00:00.000Z
        by       Ann
        source   .squad/decisions/2026/01/05-money-is-integer-cents-000000000001.md:1
        scope    billing/**

        Floats lose cents.
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["decisions", "show", &id(&added.out)[..6]]).to_string());
    expect![[r#"
        {"decisions":[{"id":"000000000001","title":"Money is integer cents","date":"2026-01-05T09:00:00.000Z","by":"Ann","state":"in_force","source":".squad/decisions/2026/01/05-money-is-integer-cents-000000000001.md:1","scope":["billing/**"],"supersedes":null,"superseded_by":[],"text":"Floats lose cents."}]}
        --- exit 0
    "#]].assert_eq(&repo.squad(&["decisions", "list", "--json"]).to_string());
    expect![[r#"
        squad: decide: Money is integer cents

        Squad-Decision: 000000000001


        diff --git a/.squad/decisions/2026/01/05-money-is-integer-cents-000000000001.md b/.squad/decisions/2026/01/05-money-is-integer-cents-000000000001.md
        new file mode 100644
        index 0000000..450ef11
        --- /dev/null
        +++ b/.squad/decisions/2026/01/05-money-is-integer-cents-000000000001.md
        @@ -0,0 +1,9 @@
        +---
        +id: "000000000001"
        +date: "2026-01-05T09:00:00.000Z"
        +by: "Ann"
        +scope: ["billing/**"]
        +---
        +# Money is integer cents
        +
        +Floats lose cents.
    "#]].assert_eq(&repo.git(&["show", "--format=%B", "HEAD"]));
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    repo.assert_sound();
}

#[test]
fn a_decision_that_cannot_land_is_durable_and_said() {
    let repo = TestRepo::with_small_team();
    repo.git(&["checkout", "--quiet", "--detach"]);
    let output = repo.squad(&["decisions", "add", "Use SQLite"]);
    assert!(output.code == 0 && output.err.contains("not on the branch yet"), "{output}");
    assert!(repo.squad(&["decisions", "list"]).out.contains("unlanded"));
}

#[test]
fn states_follow_the_branch() {
    let repo = TestRepo::with_small_team();
    repo.git(&["checkout", "--quiet", "-b", "feature"]);
    let first = id(&repo.squad(&["decisions", "add", "First"]).out);
    let state = |wanted: &str| {
        let list = repo.squad(&["decisions", "list"]).out;
        assert!(
            list.lines().any(|line| line[2..].starts_with(&first[..6]) && line.contains(wanted)),
            "{wanted}: {list}"
        );
    };
    state("in force");
    repo.git(&["checkout", "--quiet", "main"]);
    state("elsewhere");
    // Squashed, the decision is in force all the same: identity is in the file.
    repo.git(&["merge", "--quiet", "--squash", "feature"]);
    repo.git(&["commit", "--quiet", "--message=squashed"]);
    state("in force");
    let file = repo.git(&["ls-files", ".squad/decisions"]);
    repo.git(&["checkout", "--quiet", "feature"]);
    repo.git(&["rm", "--quiet", file.trim()]);
    repo.git(&["commit", "--quiet", "--message=rejected"]);
    state("withdrawn");
    repo.git(&["checkout", "--quiet", "main"]);
    let mut text = repo.read(file.trim()).replace(&first, "000000000bbb").replace("First", "Second");
    text = text.replacen("---\n", &format!("---\nsupersedes: {first}\n"), 1);
    repo.write(".squad/decisions/2026/02/01-second-000000000bbb.md", &text);
    state("in force");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "--quiet", "--message=replaced"]);
    state("superseded");
}

#[test]
fn a_decision_lands_on_the_branch_it_was_made_for() {
    let repo = TestRepo::with_small_team();
    repo.git(&["checkout", "--quiet", "-b", "feature"]);
    repo.write(".git/MERGE_HEAD", "0000000000000000000000000000000000000001\n");
    let output = repo.squad(&["decisions", "add", "First"]);
    assert!(output.err.contains("merge"), "{output}");
    std::fs::remove_file(repo.root().join(".git/MERGE_HEAD")).expect("it is there");
    repo.git(&["checkout", "--quiet", "main"]);
    let output = repo.squad(&["decisions", "land"]);
    assert!(output.code == 1 && output.err.contains("made for other branches"), "{output}");
    repo.git(&["checkout", "--quiet", "feature"]);
    let output = repo.squad(&["decisions", "land"]);
    assert!(output.code == 0 && output.err.contains("1 decision landed on feature"), "{output}");
    assert_eq!(repo.squad(&["decisions", "land"]).err, "There is nothing to land.\n");
}

/// Killed between the index and the branch, the files are staged and on no branch.
#[test]
fn a_landing_that_was_cut_short_is_finished_by_the_next() {
    let repo = TestRepo::with_small_team();
    repo.write(".git/MERGE_HEAD", "0000000000000000000000000000000000000001\n");
    repo.squad(&["decisions", "add", "First"]);
    std::fs::remove_file(repo.root().join(".git/MERGE_HEAD")).expect("it is there");
    let head = repo.git(&["rev-parse", "HEAD"]);
    assert_eq!(repo.squad(&["decisions", "land"]).code, 0);
    repo.git(&["reset", "--quiet", "--soft", head.trim()]);
    repo.git(&["update-ref", "refs/squad/log", "refs/squad/log~1"]);
    assert!(repo.squad(&["decisions", "list"]).out.contains("unlanded"));
    let output = repo.squad(&["decisions", "land"]);
    assert!(output.err.contains("1 decision landed on main"), "{output}");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    assert_ne!(repo.git(&["rev-parse", "HEAD"]), head);
}

#[test]
fn a_decision_of_no_branch_lands_where_it_is_asked_to() {
    let repo = TestRepo::with_small_team();
    repo.git(&["checkout", "--quiet", "--detach"]);
    repo.squad(&["decisions", "add", "Made in between"]);
    repo.git(&["checkout", "--quiet", "main"]);
    repo.squad(&["decisions", "add", "Made here"]);
    assert!(repo.squad(&["decisions", "list"]).out.contains("unlanded"));
    let output = repo.squad(&["decisions", "land"]);
    assert!(output.err.contains("1 decision landed on main"), "{output}");
    assert!(!repo.squad(&["decisions", "list"]).out.contains("unlanded"));
}

#[test]
fn a_branch_may_be_called_like_an_address() {
    let repo = TestRepo::with_small_team();
    repo.git(&["checkout", "--quiet", "-b", "ann@example.com"]);
    let output = repo.squad(&["decisions", "add", "Made here"]);
    assert!(output.err.contains("1 decision landed on ann@example.com"), "{output}");
    assert!(repo.squad(&["decisions", "list"]).out.contains("in force"));
}

#[test]
fn an_ignored_team_gets_no_commits() {
    let repo = TestRepo::empty();
    repo.write(".gitignore", ".squad/\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "--quiet", "--message=first"]);
    repo.write(".squad/team.md", "| Name | Role |\n|---|---|\n| Ada | Dev |\n");
    let output = repo.squad(&["decisions", "add", "Kept"]);
    assert!(output.code == 0 && output.err.contains("git ignores .squad"), "{output}");
    assert_eq!(repo.git(&["ls-files"]), ".gitignore\n");
}

#[test]
fn what_the_user_staged_and_edited_stays() {
    let repo = TestRepo::with_small_team();
    repo.write("a.txt", "one\n");
    repo.git(&["add", "a.txt"]);
    repo.write("a.txt", "two\n");
    repo.write("b.txt", "new\n");
    let before = repo.git(&["status", "--porcelain"]);
    repo.squad(&["decisions", "add", "First"]);
    assert_eq!(repo.git(&["status", "--porcelain"]), before);
    assert_eq!(repo.git(&["show", ":a.txt"]), "one\n");
}

#[test]
fn mistakes_have_a_way_out() {
    let repo = TestRepo::with_small_team();
    expect![[r#"
        --- stderr
        error: there is no decision `ffff`
        hint: `squad decisions list` shows them all
        --- exit 2
    "#]]
    .assert_eq(&repo.squad(&["decisions", "show", "ffff"]).to_string());
    expect![[r#"
        --- stderr
        error: the decision is empty
        hint: squad decisions add "Money is stored as integer cents"
        --- exit 2
    "#]]
    .assert_eq(&repo.squad(&["decisions", "add", "  "]).to_string());
    expect![[r#"
        --- stderr
        There are no decisions yet.
        hint: squad decisions add "Money is stored as integer cents"
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["decisions", "list"]).to_string());
}

#[test]
fn what_says_itself_that_it_has_ended_is_not_in_force() {
    let repo = TestRepo::with_small_team();
    repo.write(
        ".squad/decisions.md",
        "# Decisions\n\n### 2026-01-01: Use tar\n**Status:** Superseded\n\n### 2026-01-02: Use wax\n**Status:** Proposed\n\n\
         ### 2026-01-03: Use rum\n**Status:** Rejected\n",
    );
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "--quiet", "--message=decisions"]);
    let list = repo.squad(&["decisions", "list", "--json"]).out;
    let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
    let states: Vec<String> = list["decisions"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|decision| format!("{} {}", decision["title"], decision["state"]))
        .collect();
    assert_eq!(states, [r#""Use rum" "withdrawn""#, r#""Use wax" "in_force""#, r#""Use tar" "superseded""#]);
    let prompt = repo.squad(&["agents", "show", "ada", "--prompt"]).out;
    assert!(
        prompt.contains("2026-01-02, proposed, `.squad/decisions.md:6`") && !prompt.contains("Use rum"),
        "{prompt}"
    );
    // The second time from what was kept of the first.
    assert_eq!(repo.squad(&["agents", "show", "ada", "--prompt"]).out, prompt);
    let receipt = repo.squad(&["agents", "show", "ada", "--receipt", "--json"]).out;
    assert!(receipt.contains("its own text says that it was rejected"), "{receipt}");
}

#[test]
fn decisions_are_found_by_word_state_author_tag_and_scope() {
    let repo = TestRepo::with_small_team();
    repo.squad(&[
        "decisions",
        "add",
        "--tag",
        "money",
        "--scope",
        "billing/**",
        "Prices are integer cents\n\nNo floats.",
    ]);
    let id = repo.squad(&["decisions", "add", "Errors are plain text"]).out.trim().to_owned();
    repo.squad(&["decisions", "supersede", &id, "Errors have a code"]);
    let titles = |arguments: &[&str]| {
        let output = repo.squad(&[&["decisions", "list"], arguments].concat());
        let titles = ["Prices are integer cents", "Errors are plain text", "Errors have a code"];
        titles.into_iter().filter(|title| output.out.contains(title)).collect::<Vec<_>>()
    };
    assert_eq!(titles(&[]).len(), 3);
    assert_eq!(titles(&["FLOATS", "cents"]), ["Prices are integer cents"]);
    assert_eq!(titles(&["--state", "superseded"]), ["Errors are plain text"]);
    assert_eq!(titles(&["--tag", "Money"]), ["Prices are integer cents"]);
    assert_eq!(titles(&["--scope", "billing/cart.rs"]), ["Prices are integer cents"]);
    assert_eq!(titles(&["--scope", "docs"]), [""; 0]);
    assert_eq!(titles(&["--author", "ann"]).len(), 3);
    assert_eq!(titles(&["--author", "ada"]), [""; 0]);
    let all = repo.squad(&["decisions"]);
    assert!(all.err.contains("3 decisions: 2 in force, 1 superseded"), "{all}");
    assert!(repo.squad(&["agents"]).err.contains("2 decisions in force"));
    let none = repo.squad(&["decisions", "list", "nothing"]);
    assert!(none.code == 0 && none.err.contains("None of the 3 decisions matches."), "{none}");
    for (command, shown) in [("config", "engine.name"), ("rescue", "")] {
        let (bare, list) = (repo.squad(&[command]), repo.squad(&[command, "list"]));
        assert!(bare.code == 0 && bare.out.contains(shown) && bare.to_string() == list.to_string(), "{bare}");
    }
}

#[test]
fn the_same_decided_again_is_said() {
    let repo = TestRepo::with_small_team();
    let first = repo.squad(&["decisions", "add", "Ports are \u{fc}ber-shared"]);
    assert!(!first.err.contains("warning"), "{first}");
    assert!(repo.git(&["ls-files"]).contains("-ports-are-uber-shared-"));
    let again = repo.squad(&["decisions", "add", "Ports are \u{fc}ber-shared!"]);
    assert!(again.err.contains(&format!("under the same title: {}", first.out.trim())), "{again}");
    let other = repo.squad(&["decisions", "add", "Ports are \u{fc}ber-shared and open"]);
    assert!(!other.err.contains("warning"), "{other}");
}

#[test]
fn the_radar_names_what_contradicts_itself_on_the_base() {
    let repo = TestRepo::with_small_team();
    repo.squad(&["decisions", "add", "--scope", "app/**", "Prices are integer cents"]);
    let quiet = repo.squad(&["decisions", "radar"]);
    assert!(quiet.out.is_empty(), "{quiet}");
    repo.squad(&["decisions", "add", "--scope", "app/**", "Prices are floats"]);
    let radar = repo.squad(&["decisions", "radar"]);
    assert!(radar.out.starts_with("✗ main: contradiction: both decide app/**"), "{radar}");
}

/// By the same agent, by another one, in a later run: it is one decision, on the card, in the list and in the status.
#[test]
fn what_agents_decide_again_is_counted_once() {
    let repo = TestRepo::with_small_team();
    let decides = "{ tool = \"squad_log_decision\", args = { title = \"Ports are shared\", what = \"One port.\", \
                   why = \"Less to open.\" } }";
    let script = format!(
        "[[turn]]\nagent = \"ada\"\nsteps = [{decides}, {decides}, {{ say = \"Done.\" }}]\n\
         [[turn]]\nagent = \"bob\"\nsteps = [{decides}, {{ say = \"Done.\" }}]\n"
    );
    for (number, message) in ["@ada @bob decide it", "@ada decide it", "@bob decide it"].iter().enumerate() {
        let output = repo.rehearse(&script, &["--max-concurrent", "1", message]);
        assert_eq!(output.code, 0, "{output}");
        let counts = (output.err.matches("◆").count(), output.err.matches("  decision  ").count());
        assert_eq!(counts, if number == 0 { (1, 1) } else { (0, 0) }, "{output}");
        let listed = repo.squad(&["decisions", "list"]);
        assert!(listed.err.contains("1 decision: 1 in force"), "{listed}");
        let status = repo.squad(&["status"]);
        assert!(!status.out.contains("decision"), "{status}");
    }
}
