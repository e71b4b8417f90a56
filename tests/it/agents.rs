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
        Ada     Backend Dev  big-1
        Bob     Tester       claude-sonnet-4.5
        Rex     Reviewer     claude-sonnet-4.5
        Scribe  Logger       built-in helper, its work is squad's own
        Old     Backend Dev  claude-sonnet-4.5, retired
        --- stderr

        5 members, 3 routing rules, 0 decisions
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["agents"]).to_string());
    let value: serde_json::Value = serde_json::from_str(&repo.squad(&["agents", "--json"]).out).expect("JSON");
    expect![[r#"{"name":"Ada","slug":"ada","role":"Backend Dev","kind":"agent","status":"active","charter":".squad/agents/ada/charter.md","model":"big-1","resolved_model":"big-1","model_layer":"charter","tools":["view"],"prompt_tokens":203,"compiled_hash":"cb05edad7d7ee41a","source":".squad/team.md:5"}"#]].assert_eq(&value["agents"][0].to_string());
    expect![[r#"{"signal":"Security","agents":["ada"],"reviewer":"rex","examples":["login","password"],"source":".squad/routing.md:7"}"#]].assert_eq(&value["rules"][2].to_string());
    assert_eq!(value["decisions"].to_string(), r#"{"total":0,"dated":0,"attributed":0}"#);
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
fn the_doctor_finds_what_is_wrong_and_says_how_to_mend_it() {
    let mut repo = TestRepo::with_team();
    expect![[r#"
        error: engine copilot: there is no Copilot CLI at /nonexistent/copilot, where COPILOT_CLI_PATH says it is
          hint: correct the path, or install the CLI with `npm install -g @github/copilot`
        1 problem to mend
        --- exit 1
    "#]]
    .assert_eq(&repo.squad(&["doctor"]).to_string());
    repo.variables.insert("SQUAD_ENGINE".to_owned(), "rehearsal".to_owned());
    expect![[r#"
        Everything is in order.
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["doctor"]).to_string());
    repo.write(".squad/config.toml", "[sessions]\ntimout = \"1m\"\n");
    repo.write(".squad/routing.md", "");
    repo.git(&["checkout", "--quiet", "--detach"]);
    repo.squad(&["decisions", "add", "Kept"]);
    expect![[r#"
        note: REPO: HEAD is detached, so no decision can land
          hint: git switch a branch before a run whose decisions should land
        warning: REPO: 1 decision recorded and on no branch yet
          hint: `squad decisions land` on the branch they were made for
        warning: .squad/routing.md:1: squad found no routing rule in it
          hint: rules are rows of a table such as `| Work Type | Route To | Examples |`
        warning: .squad/config.toml:2: squad knows no setting `sessions.timout`
          hint: did you mean `sessions.timeout`?
        3 problems to mend
        --- exit 1
    "#]]
    .assert_eq(&repo.squad(&["doctor"]).to_string());
    assert_eq!(TestRepo::empty().squad(&["doctor"]).code, 3);
}
