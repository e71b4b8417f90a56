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
