use std::collections::BTreeMap;

use super::*;

fn files(texts: &[(&str, &str)]) -> Files {
    let texts = texts.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
    Files { folder: ".squad".to_owned(), texts: texts.collect() }
}

fn nora(signals: &[&str]) -> NewMember {
    let signals = signals.iter().map(|signal| (*signal).to_owned()).collect();
    NewMember { name: "Nora".to_owned(), role: "Data engineer".to_owned(), model: None, signals }
}

fn slug(name: &str) -> Slug {
    Slug::fold(name).expect("a name")
}

/// What is otherwise, by path: lines that went with `-`, lines that came with `+`.
fn changes(before: &Files, after: &Files) -> Vec<String> {
    let mut changes = Vec::new();
    let paths: BTreeMap<&String, ()> = before.texts.keys().chain(after.texts.keys()).map(|path| (path, ())).collect();
    for path in paths.into_keys() {
        match (before.texts.get(path), after.texts.get(path)) {
            (Some(_), None) => changes.push(format!("{path} is gone")),
            (None, Some(_)) => changes.push(format!("{path} is new")),
            (Some(old), Some(new)) => {
                for change in similar::TextDiff::from_lines(old, new).iter_all_changes() {
                    if change.tag() != similar::ChangeTag::Equal {
                        changes.push(format!("{}{:?}", change.tag(), change.value()));
                    }
                }
            }
            (None, None) => {}
        }
    }
    changes
}

/// With a byte order mark, CRLF, bars below each other, and a picture in front of each name.
fn decorated() -> Files {
    files(&[
        (
            "team.md",
            "\u{feff}# Crew\r\n\r\n## Members\r\n\r\n| Name      | Role  | Charter                      | Status    |\r\n\
             |-----------|-------|------------------------------|-----------|\r\n\
             | Ilse      | Lead  | `.squad/agents/ilse/charter.md` | ✅ Active |\r\n\
             | 🔧 Bo     | Cook  | `.squad/agents/bo/charter.md` | ✅ Active |\r\n\
             | Scribe    | Logs  | —                            | 📋 Silent |\r\n",
        ),
        (
            "routing.md",
            "| Domain | Agent | Examples |\r\n|---|---|---|\r\n| Food | Bo 🔧 + Ilse (review) | soup |\r\n\
             | Course | **Ilse** | — |\r\n| Logs | Scribe | — |\r\n\r\n- Stew goes to Bo first\r\n",
        ),
        ("agents/ilse/charter.md", "# Ilse — Lead\r\n\r\nAsk @bo, not Bo's dog. See .squad/agents/bo/notes.md\r\n"),
        ("agents/bo/charter.md", "# Bo — Cook\r\n\r\n## Identity\r\n\r\n- **Name:** Bo\r\n"),
        ("agents/bo/history.md", "Bo cooked for @bo.\r\n"),
        ("decisions.md", "### 2026-01-05: Salt\r\n\r\n**By:** Bo\r\n"),
    ])
}

#[test]
fn a_new_row_looks_like_its_neighbours() {
    let before = decorated();
    let edited = add(&before, &nora(&["ETL, warehouse", "reports"])).expect("it can be added");
    assert_eq!(
        changes(&before, &edited.files),
        [
            "agents/nora/charter.md is new",
            "+\"| ETL, warehouse | Nora | — |\\r\\n\"",
            "+\"| reports | Nora | — |\\r\\n\"",
            "+\"| Nora | Data engineer | `.squad/agents/nora/charter.md` | ✅ Active |\\r\\n\"",
        ]
    );
    let charter = &edited.files.texts["agents/nora/charter.md"];
    assert!(charter.starts_with("# Nora — Data engineer\r\n") && !charter.replace("\r\n", "").contains('\n'));
    let team = parse::team(&edited.files).0;
    assert_eq!(
        team.members.iter().map(|member| member.slug.as_str()).collect::<Vec<_>>(),
        ["ilse", "bo", "nora", "scribe"]
    );
}

#[test]
fn rosters_of_other_shapes_take_a_row_of_theirs() {
    let row = |roster: &str| {
        let before = files(&[("team.md", roster), ("agents/ann/charter.md", "# Ann — Lead\n")]);
        let edited = add(&before, &nora(&[])).unwrap_or_else(|problem| panic!("{roster}: {problem:?}"));
        changes(&before, &edited.files).into_iter().filter(|change| change.starts_with('+')).collect::<String>()
    };
    for (roster, added) in [
        ("|Role|Name|\n|-|-|\n|Lead|**Ann**|\n", "+\"|Data engineer|**Nora**|\\n\""),
        (
            "## Members\n\n| Name | Role | Scope | Emoji |\n|---|---|---|---|\n| Ann | Lead | all | 🏗️ |\n| Bob | Dev | | 🔧 |\n",
            "+\"| Nora | Data engineer |  |  |\\n\"",
        ),
        (
            "# Team\n\n## Members\n\n- **Ann** — Lead\n  likes tea\n- **Scribe** — Logger\n",
            "+\"- **Nora** — Data engineer\\n\"",
        ),
        (
            "| Agent | Label | Role | Status |\n|---|---|---|---|\n| Ann | squad:ann | Lead | 🧠 Active |",
            "+\"| Nora | squad:nora | Data engineer | Active |\"",
        ),
    ] {
        assert!(row(roster).ends_with(added), "{roster}\n{}", row(roster));
    }
}

#[test]
fn who_retires_says_so_in_the_teams_own_way() {
    let before = decorated();
    let edited = retire(&before, &slug("bo")).expect("it can retire");
    assert_eq!(
        changes(&before, &edited.files),
        [
            "-\"| Food | Bo 🔧 + Ilse (review) | soup |\\r\\n\"",
            "-\"| 🔧 Bo     | Cook  | `.squad/agents/bo/charter.md` | ✅ Active |\\r\\n\"",
            "+\"| 🔧 Bo     | Cook  | `.squad/agents/bo/charter.md` | 🔒 Retired |\\r\\n\"",
        ]
    );
    // Of its row somebody is left who only reviews.
    assert_eq!(edited.idle, []);
    assert_eq!(edited.rows, ["the row `Food` is removed: nobody else works on it"]);
    assert!(retire(&edited.files, &slug("bo")).is_err_and(|problem| problem.message.contains("already")));

    let plain = files(&[("team.md", "## Members\n\n| Name | Role |\n|---|---|\n| Ann | Lead |\n| Bob | Dev |\n")]);
    let edited = retire(&plain, &slug("ann")).expect("it can retire");
    assert_eq!(changes(&plain, &edited.files), ["-\"| Ann | Lead |\\n\"", "+\"| ~~Ann~~ | Lead |\\n\""]);
}

#[test]
fn rows_that_others_work_on_stay_and_so_does_the_last_of_a_table() {
    let before = files(&[
        ("team.md", "| Name | Role |\n|---|---|\n| Ann | Lead |\n| Bob | Dev |\n| Cy | Dev |\n"),
        (
            "routing.md",
            "| Work | Who |\n|---|---|\n| API | Bob, Cy |\n| Web | Bob |\n| Jobs | Cy |\n\n\
          | Work | Who |\n|---|---|\n| Docs | Bob |\n",
        ),
    ]);
    let edited = retire(&before, &slug("bob")).expect("it can retire");
    assert_eq!(edited.rows, ["the row `API` goes to Cy", "the row `Web` is removed: nobody else works on it"]);
    let lost = changes(&before, &edited.files);
    assert!(lost.contains(&"-\"| Web | Bob |\\n\"".to_owned()) && lost.len() == 3, "{lost:?}");
    assert_eq!(edited.idle.iter().filter(|problem| problem.message.contains("Docs")).count(), 1, "{:?}", edited.idle);
}

#[test]
fn a_new_row_takes_its_words_out_of_others() {
    let before = files(&[
        ("team.md", "| Name | Role |\n|---|---|\n| Ann | Lead |\n| Bob | Dev |\n"),
        (
            "routing.md",
            "| Work | Who | Examples |\n|---|---|---|\n| API | Bob | endpoint, reports, warehouse |\n\
          | Plans | Ann | roadmap (reports, later), Report |\n",
        ),
    ]);
    let edited = add(&before, &nora(&["ETL, warehouse", "report"])).expect("it can be added");
    assert_eq!(edited.rows, ["`reports` and `warehouse` taken out of the row `API`"]);
    let text = edited.files.text("routing.md").expect("it is there").to_owned();
    assert!(text.contains("| API | Bob | endpoint |\n| Plans | Ann | roadmap (reports, later), Report |\n"), "{text}");
    assert!(text.contains("| ETL, warehouse | Nora |") && text.contains("| report | Nora |"), "{text}");
    assert_eq!(add(&before, &nora(&["quays"])).expect("it can be added").rows, [""; 0]);
    // What a row is about loses them too, unless nothing else is left of it.
    let before = files(&[
        ("team.md", "| Name | Role |\n|---|---|\n| Ann | Lead |\n| Bob | Dev |\n"),
        (
            "routing.md",
            "| Work | Who | Examples |\n|---|---|---|\n| CI, builds and releases | Bob | pipeline, kubernetes |\n\
          | Kubernetes | Ann | roadmap |\n| CI and Kubernetes | Ann | |\n",
        ),
    ]);
    let edited = add(&before, &nora(&["CI, Kubernetes"])).expect("it can be added");
    assert_eq!(edited.rows, ["`kubernetes` and `CI` taken out of the row `CI, builds and releases`"]);
    let text = edited.files.text("routing.md").expect("it is there").to_owned();
    assert!(text.contains("| builds and releases | Bob | pipeline |\n| Kubernetes | Ann | roadmap |\n"), "{text}");
}

#[test]
fn who_retires_goes_where_the_others_are() {
    let before = files(&[
        (
            "team.md",
            "## Alumni\n\n| Role | Name | Left |\n|---|---|---|\n| Cook | Old | 2025 |\n\n## Members\n\n\
             | Name | Role | Charter | Status |\n|---|---|---|---|\n| Ann | Lead | [it](agents/ann/charter.md) | Active |\n\
             | Bob | Dev | [it](agents/bob/charter.md) | Active |\n",
        ),
        ("agents/_alumni/old/charter.md", "# Old — Cook\n"),
        ("agents/ann/charter.md", "# Ann — Lead\n"),
        ("agents/bob/charter.md", "# Bob — Dev\n"),
        ("agents/bob/history.md", "# Bob\n"),
        (
            "casting/registry.json",
            "{\"agents\": {\n  \"dev\": {\"persistent_name\": \"Bob\", \"status\": \"active\"}\n}}\n",
        ),
    ]);
    let edited = retire(&before, &slug("bob")).expect("it can retire");
    assert_eq!(edited.moved, Some(("agents/bob".to_owned(), "agents/_alumni/bob".to_owned())));
    assert_eq!(
        changes(&before, &edited.files),
        [
            "agents/_alumni/bob/charter.md is new",
            "agents/_alumni/bob/history.md is new",
            "agents/bob/charter.md is gone",
            "agents/bob/history.md is gone",
            "-\"  \\\"dev\\\": {\\\"persistent_name\\\": \\\"Bob\\\", \\\"status\\\": \\\"active\\\"}\\n\"",
            "+\"  \\\"dev\\\": {\\\"persistent_name\\\": \\\"Bob\\\", \\\"status\\\": \\\"retired\\\"}\\n\"",
            "+\"| Dev | Bob |  |\\n\"",
            "-\"| Bob | Dev | [it](agents/bob/charter.md) | Active |\\n\"",
        ]
    );
}

#[test]
fn a_new_name_stands_wherever_the_old_one_was_meant() {
    let before = decorated();
    let edited = rename(&before, &slug("bo"), "Zoe Lee").expect("it can be renamed");
    assert_eq!(edited.moved, Some(("agents/bo".to_owned(), "agents/zoe-lee".to_owned())));
    assert_eq!(
        changes(&before, &edited.files),
        [
            "agents/bo/charter.md is gone",
            "agents/bo/history.md is gone",
            "-\"Ask @bo, not Bo's dog. See .squad/agents/bo/notes.md\\r\\n\"",
            "+\"Ask @zoe-lee, not Bo's dog. See .squad/agents/zoe-lee/notes.md\\r\\n\"",
            "agents/zoe-lee/charter.md is new",
            "agents/zoe-lee/history.md is new",
            "-\"| Food | Bo 🔧 + Ilse (review) | soup |\\r\\n\"",
            "+\"| Food | Zoe Lee 🔧 + Ilse (review) | soup |\\r\\n\"",
            "-\"| 🔧 Bo     | Cook  | `.squad/agents/bo/charter.md` | ✅ Active |\\r\\n\"",
            "+\"| 🔧 Zoe Lee | Cook  | `.squad/agents/zoe-lee/charter.md` | ✅ Active |\\r\\n\"",
        ]
    );
    let charter = &edited.files.texts["agents/zoe-lee/charter.md"];
    assert_eq!(charter, "# Zoe Lee — Cook\r\n\r\n## Identity\r\n\r\n- **Name:** Zoe Lee\r\n- **Formerly:** Bo\r\n");
    assert_eq!(edited.files.texts["agents/zoe-lee/history.md"], "Bo cooked for @bo.\r\n");
    let mentions: Vec<String> = edited.mentions.iter().map(ToString::to_string).collect();
    assert_eq!(mentions, [".squad/agents/ilse/charter.md:3", ".squad/routing.md:7"]);

    // What the ledger has of Bo is Zoe's, and of whoever else was called so after that.
    let again = rename(&edited.files, &slug("zoe-lee"), "Kim").expect("it can be renamed");
    let team = parse::team(&again.files).0;
    for old in ["bo", "zoe-lee", "kim"] {
        assert_eq!(team.member_once(&slug(old)).map(|member| member.slug.as_str()), Some("kim"), "{old}");
    }
    assert!(add(&again.files, &NewMember { name: "Bo".to_owned(), ..nora(&[]) }).is_err());
}

#[test]
fn a_name_that_is_only_written_otherwise_keeps_its_folder() {
    let before = files(&[
        ("team.md", "| Name | Role |\n|---|---|\n| ann | Lead |\n"),
        ("agents/ann/charter.md", "# ann — Lead\n"),
    ]);
    let edited = rename(&before, &slug("ann"), "Ann").expect("it can be renamed");
    assert_eq!(edited.moved, None);
    assert_eq!(edited.files.texts["agents/ann/charter.md"], "# Ann — Lead\n");
}

#[test]
fn names_in_lists_and_json_change_too() {
    let before = files(&[
        ("team.md", "## Members\n\n- **Ann Lee** — Lead\n- **Bob** — Dev\n"),
        ("routing.md", "Rules: [table](rules.json)\n\n- Lee shore, Ann's → Ann Lee\n- tests → Bob, Ann\n"),
        ("rules.json", "[{\"workType\": \"plans\", \"routeTo\": \"Ann Lee\", \"examples\": [\"Ann Lees\"]}]\n"),
        ("ceremonies.md", "## Retro\n\n- **Facilitator:** Ann Lee\n- **Condition:** Ann Lee says so\n"),
    ]);
    let edited = rename(&before, &slug("ann-lee"), "Kim").expect("it can be renamed");
    assert_eq!(
        changes(&before, &edited.files),
        [
            "-\"- **Facilitator:** Ann Lee\\n\"",
            "+\"- **Facilitator:** Kim\\n\"",
            "-\"- Lee shore, Ann's → Ann Lee\\n\"",
            "-\"- tests → Bob, Ann\\n\"",
            "+\"- Lee shore, Ann's → Kim\\n\"",
            "+\"- tests → Bob, Kim\\n\"",
            "-\"[{\\\"workType\\\": \\\"plans\\\", \\\"routeTo\\\": \\\"Ann Lee\\\", \\\"examples\\\": [\\\"Ann Lees\\\"]}]\\n\"",
            "+\"[{\\\"workType\\\": \\\"plans\\\", \\\"routeTo\\\": \\\"Kim\\\", \\\"examples\\\": [\\\"Ann Lees\\\"]}]\\n\"",
            "-\"- **Ann Lee** — Lead\\n\"",
            "+\"- **Kim** — Lead\\n\"",
        ]
    );
}

#[test]
fn what_cannot_be_a_name_or_a_row_is_refused() {
    let before = decorated();
    for name in [
        "",
        " ",
        "a|b",
        "a\nb",
        "@x",
        "../x",
        "Scribe",
        "copilot",
        "con",
        "COM1",
        "Ilse",
        "bo",
        "TBD",
        "everyone",
        "x\u{202e}y",
        "Coordinator",
        "Squad",
        "you",
        ".git",
        "007",
    ] {
        let refused = add(&before, &NewMember { name: name.to_owned(), ..nora(&[]) });
        assert!(refused.is_err(), "{name:?}");
        assert!(name == "bo" || rename(&before, &slug("bo"), name).is_err(), "{name:?}");
    }
    for role in ["", "a|b", "a\nb", "{role}"] {
        assert!(add(&before, &NewMember { role: role.to_owned(), ..nora(&[]) }).is_err(), "{role:?}");
        assert!(add(&before, &nora(&[role])).is_err(), "{role:?}");
    }
    assert!(add(&files(&[("team.md", "# Nobody\n")]), &nora(&[])).is_err());
    assert!(rename(&before, &slug("scribe"), "Kim").is_err());
}

#[test]
fn a_change_that_would_change_more_is_none() {
    // The only engineer has the rule, and would not be the only one.
    let before = files(&[
        ("team.md", "| Name | Role |\n|---|---|\n| Ann | Lead engineer |\n"),
        ("routing.md", "| Work Type | Route To |\n|---|---|\n| plans | Engineer |\n"),
    ]);
    let problem = add(&before, &nora(&[])).expect_err("it would change a rule");
    assert!(problem.message.contains("plans"), "{problem:?}");
    // Nobody has the rule, and Nora would get it without being asked for.
    let before = files(&[
        ("team.md", "| Name | Role |\n|---|---|\n| Ann | Lead |\n"),
        ("routing.md", "| Work Type | Route To |\n|---|---|\n| reports | Data |\n| plans | Ann |\n"),
    ]);
    let problem = add(&before, &nora(&[])).expect_err("it would change a rule");
    assert!(problem.message.contains("reports"), "{problem:?}");
}
