use super::*;
use crate::model::{Charter, Kind, ModelLayer, Rule, Source, Status};

fn member(name: &str) -> Member {
    Member {
        name: name.to_owned(),
        slug: Slug::fold(name).expect("a name with letters"),
        role: format!("{name} Dev"),
        kind: Kind::Agent,
        status: Status::Active,
        charter: None,
        source: Source::new(".squad/team.md", 1),
    }
}

fn decision(id: &str, text: &str) -> Decision {
    Decision {
        id: DecisionId::new(id),
        title: format!("Title {id}"),
        date: Some("2026-01-01".to_owned()),
        by: None,
        run: None,
        supersedes: None,
        scope: Vec::new(),
        tags: Vec::new(),
        text: text.to_owned(),
        source: None,
    }
}

fn team() -> Team {
    let charter = Charter { text: "# Ada\n".to_owned(), model: Some("m-charter".to_owned()), ..Charter::default() };
    Team {
        members: vec![member("Ada"), member("Bob")],
        charters: [(member("Ada").slug, charter)].into(),
        decisions: vec![decision("d1", "## Forged heading\nkeep")],
        ..Team::default()
    }
}

fn compiled(team: &Team, settings: &Settings, tier: Tier) -> SessionSpec {
    agent(team, &team.members[0], &Learnings::new(), settings, tier)
}

#[test]
fn the_same_team_compiles_to_the_same_bytes() {
    let settings = Settings::default();
    assert_eq!(compiled(&team(), &settings, Tier::Standard), compiled(&team(), &settings, Tier::Standard));
}

#[test]
fn no_record_can_pose_as_a_heading() {
    let spec = compiled(&team(), &Settings::default(), Tier::Standard);
    assert!(spec.context.contains("> ## Forged heading"), "{}", spec.context);
    assert!(!spec.context.lines().any(|line| line.starts_with("## Forged")));
}

#[test]
fn the_hash_covers_the_session_and_not_the_records() {
    let settings = Settings::default();
    let first = compiled(&team(), &settings, Tier::Standard);
    let mut with_decision = team();
    with_decision.decisions.push(decision("d2", "more"));
    let second = compiled(&with_decision, &settings, Tier::Standard);
    assert_ne!(first.context, second.context);
    assert_eq!(first.compiled_hash, second.compiled_hash);
    let mut other_charter = team();
    other_charter.charters.values_mut().for_each(|charter| charter.text.push('x'));
    assert_ne!(first.compiled_hash, compiled(&other_charter, &settings, Tier::Standard).compiled_hash);
}

#[test]
fn lightweight_is_small_and_reads_only() {
    let spec = compiled(&team(), &Settings::default(), Tier::Lightweight);
    assert_eq!(
        (spec.model.id.as_str(), spec.tools, spec.compaction_threshold),
        ("claude-haiku-4.5", ToolChoice::ReadOnly, None)
    );
    assert!(!spec.context.contains("Decision"));
}

#[test]
fn models_come_from_the_first_layer_that_names_one() {
    let mut settings = Settings::default();
    let layer = |settings: &Settings, index: usize, tier| {
        let team = team();
        let spec = agent(&team, &team.members[index], &Learnings::new(), settings, tier);
        (spec.model.id, spec.model.layer)
    };
    assert_eq!(layer(&settings, 0, Tier::Full), ("m-charter".to_owned(), ModelLayer::Charter));
    assert_eq!(layer(&settings, 1, Tier::Full), ("claude-opus-4.5".to_owned(), ModelLayer::Default));
    settings.models.roles.insert("bob dev".to_owned(), "m-role".to_owned());
    assert_eq!(layer(&settings, 1, Tier::Standard), ("m-role".to_owned(), ModelLayer::Role));
    settings.models.overrides.insert("all".to_owned(), "m-user".to_owned());
    assert_eq!(layer(&settings, 0, Tier::Lightweight), ("m-user".to_owned(), ModelLayer::User));
}

#[test]
fn superseded_decisions_are_not_in_force() {
    let mut newer = decision("d2", "instead");
    newer.supersedes = Some(DecisionId::new("d1"));
    let decisions = [newer, decision("d1", "old")];
    assert_eq!(in_force(&decisions).iter().map(|d| d.id.as_str()).collect::<Vec<_>>(), ["d2"]);
}

#[test]
fn the_coordinator_stays_within_15_kilobytes() {
    let mut big = team();
    for number in 0..2_000 {
        big.rules.push(Rule {
            signal: format!("Work of kind {number} {}", "x".repeat(100)),
            agents: vec![member("Ada").slug],
            reviewer: None,
            examples: Vec::new(),
            source: Source::new(".squad/routing.md", number),
        });
        big.decisions.push(decision(&format!("d{number}"), "t"));
    }
    let spec = coordinator(&big, &Settings::default());
    let length = spec.prompt.len() + spec.context.len();
    assert!(length <= 15_000, "{length}");
    assert!(spec.prompt.contains("more\n"));
}

#[test]
fn long_histories_give_their_newest_part() {
    let mut team = team();
    let slug = team.members[0].slug.clone();
    team.histories.insert(slug.clone(), format!("{}\nthe newest line", "old line\n".repeat(5_000)));
    let learnings = Learnings::from([(slug, vec!["learned last".to_owned()])]);
    let spec = agent(&team, &team.members[0], &learnings, &Settings::default(), Tier::Standard);
    assert!(spec.context.contains("> the newest line") && spec.context.contains("> - learned last"));
    assert!(spec.context.len() < 10_000, "{}", spec.context.len());
}
