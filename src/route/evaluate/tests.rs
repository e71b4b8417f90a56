use expect_test::expect;

use super::*;
use crate::model::Tier;

fn slug(name: &str) -> Slug {
    Slug::fold(name).expect("a slug")
}

fn plan(kind: PlanKind, agents: &[&str], confidence: f64, evidence: &[(&str, &str, f64)]) -> Plan {
    Plan {
        kind,
        agents: agents.iter().map(|name| slug(name)).collect(),
        steps: Vec::new(),
        reviewer: None,
        other_reviewers: Vec::new(),
        tier: Tier::Standard,
        confidence,
        evidence: evidence
            .iter()
            .map(|(agent, source, weight)| Evidence {
                agent: slug(agent),
                why: "row matches".to_owned(),
                source: (*source).to_owned(),
                weight: *weight,
            })
            .collect(),
        ceremonies: Vec::new(),
        overlaps: Vec::new(),
    }
}

const CASES: &str = r#"{"message":"a","kind":"single","agent":"ada","accept":["ada","Bob"],"all":false}
{"message":"b","kind":"single","agent":"ada"}

{"message":"c","kind":"single","accept":["ada"],"tree":"ignored"}
{"message":"d","kind":"single","accept":["ada"]}
{"message":"e","kind":"multi","agent":null,"accept":["ada","bob"],"all":true}
{"message":"f","kind":"ambiguous","accept":[]}
{"message":"g","kind":"ambiguous"}
{"message":"h","kind":"direct"}
"#;

fn evaluation() -> Evaluation {
    let row = ".squad/routing.md:5";
    let plans = [
        plan(PlanKind::Agents, &["bob"], 0.9, &[]),
        plan(PlanKind::Agents, &["bob", "ada"], 0.6, &[("bob", row, 2.0), ("bob", "x:1", 1.0), ("ada", "y:1", 3.0)]),
        plan(PlanKind::Agents, &["bob"], 0.7, &[("bob", row, 2.5)]),
        plan(PlanKind::Abstain, &[], 0.4, &[("ada", "y:1", 0.5), ("bob", row, 0.4)]),
        plan(PlanKind::Agents, &["bob"], 0.8, &[("bob", row, 1.0)]),
        plan(PlanKind::Abstain, &[], 0.1, &[]),
        plan(PlanKind::Agents, &["rex"], 0.8, &[("rex", "z:1", 1.0)]),
        plan(PlanKind::Direct, &[], 1.0, &[]),
    ];
    let (cases, problems) = cases(CASES, "cases.jsonl");
    assert_eq!(problems, []);
    evaluate(cases.into_iter().zip(plans))
}

#[test]
fn every_kind_of_case_has_its_figures() {
    let figures = evaluation().figures;
    let Figures { accuracy, coverage, precision, multi_recall, abstain_rate, direct_rate } = figures;
    assert_eq!([accuracy, coverage, precision].map(|rate| rate.cases), [4, 4, 3]);
    assert_eq!([accuracy, coverage, precision].map(Option::from), [Some(0.25), Some(0.75), Some(1.0 / 3.0)]);
    assert_eq!([multi_recall, abstain_rate, direct_rate].map(Option::from), [Some(0.5), Some(0.5), Some(1.0)]);
    assert_eq!(Option::<f64>::from(Figures::default().precision), None);
}

#[test]
fn mistakes_are_grouped_by_what_misled() {
    let shown: Vec<String> = evaluation()
        .groups
        .iter()
        .map(|group| {
            let by = group.misled_by.as_ref().map(|evidence| format!("{} {}", evidence.agent, evidence.source));
            format!("{:?} {by:?} {:?}\n", group.mistake, group.lines)
        })
        .collect();
    expect![[r#"
        WrongAgent Some("bob .squad/routing.md:5") [2, 4]
        Incomplete None [6]
        NotAnswered Some("bob .squad/routing.md:5") [5]
        NotAbstained Some("rex z:1") [8]
    "#]]
    .assert_eq(&shown.concat());
}

#[test]
fn the_curve_rises_with_the_confidence_that_is_asked_for() {
    let points: Vec<(f64, f64, f64)> =
        evaluation().curve.iter().map(|point| (point.confidence, point.coverage, point.precision)).collect();
    assert_eq!(points, [(0.6, 0.75, 1.0 / 3.0), (0.7, 0.5, 0.5), (0.9, 0.25, 1.0)]);
}

#[test]
fn bad_lines_have_a_place_and_a_reason() {
    let text = "{\"message\":\"a\",\"kind\":\"single\",\"agent\":\"ada\"}\nnot JSON\n\n[1]\n{]\n{\"message\":\"a\",\"kind\":\"odd\"}\n\
                {\"kind\":\"direct\"}\n{\"message\":\"a\",\"kind\":\"multi\",\"accept\":[]}\n{\"message\":1,\"kind\":\"direct\"}\n";
    let (cases, problems) = cases(text, "cases.jsonl");
    assert_eq!(cases.len(), 1);
    let shown: Vec<String> = problems.iter().map(|problem| format!("{problem} [{}]\n", problem.code)).collect();
    expect![[r#"
        cases.jsonl:2: not a JSON object [case-not-json]
        cases.jsonl:4: not a JSON object [case-not-json]
        cases.jsonl:5: not JSON: key must be a string at column 2 [case-not-json]
        cases.jsonl:6: unknown variant `odd`, expected one of `single`, `multi`, `ambiguous`, `direct` [case-incomplete]
        cases.jsonl:7: missing field `message` [case-incomplete]
        cases.jsonl:8: `accept` or `agent` has to say who is right [case-incomplete]
        cases.jsonl:9: invalid type: integer `1`, expected a string [case-incomplete]
    "#]]
    .assert_eq(&shown.concat());
}

proptest::proptest! {
    #[test]
    fn any_text_is_cases_and_problems(text in "[\\PC\n]{0,200}") {
        let lines = text.trim_start_matches('\u{feff}').lines().filter(|line| !line.trim().is_empty()).count();
        let (cases, problems) = cases(&text, "f");
        proptest::prop_assert_eq!(cases.len() + problems.len(), lines);
    }
}

#[test]
fn names_of_cases_are_read_as_people_write_them() {
    let (cases, problems) = cases("{\"message\":\"a\",\"kind\":\"single\",\"accept\":[\"@Ada\",\" bob \"]}", "x");
    assert_eq!(problems, []);
    assert_eq!(cases[0].accepted().into_iter().collect::<Vec<_>>(), [slug("ada"), slug("bob")]);
}

/// The most frequent cause comes first, and what weighs nothing misleads nobody.
#[test]
fn causes_are_in_the_order_of_their_cases() {
    let lines =
        ["a", "b", "c"].map(|text| format!("{{\"message\":\"{text}\",\"kind\":\"single\",\"agent\":\"ada\"}}\n"));
    let (cases, _) = cases(&lines.concat(), "x");
    let plans = [("x:1", 1.0), ("y:1", 0.0), ("y:1", 0.0)]
        .map(|(source, weight)| plan(PlanKind::Agents, &["bob"], 0.9, &[("bob", source, weight)]));
    let groups = evaluate(cases.into_iter().zip(plans)).groups;
    let shown: Vec<_> = groups.iter().map(|group| (group.misled_by.is_some(), group.lines.clone())).collect();
    assert_eq!(shown, [(false, vec![2, 3]), (true, vec![1])]);
}
