//! When the router is sure: just below and just above where it was fitted.

use super::*;
use crate::model::Module;
use crate::model::Source;

fn ranking<T>(confidence: f64, then: impl FnOnce(&Ranking, &Index<'_>) -> T) -> T {
    let team = sample();
    let index = Index::new(&team, &[]);
    let text = "Add an endpoint for invoices";
    let message = Message::read(&index, text, text::spans(text));
    let mut ranking = Ranking::of(&index, index.signals(&message, &message.spans));
    let (agent, _) = ranking.best.expect("a row speaks of endpoints");
    ranking.best = Some((agent, confidence));
    then(&ranking, &index)
}

/// The numbers stand here as they were measured: whoever changes them has measured again.
#[test]
fn it_answers_from_this_confidence_on() {
    for (confidence, is_sure) in [(0.0, false), (0.74, false), (0.785, false), (0.79, true), (0.81, true), (1.0, true)]
    {
        ranking(confidence, |ranking, index| {
            assert_eq!(ranking.sure().is_some(), is_sure, "{confidence}");
            let draft = ranking.draft(index, "Add an endpoint for invoices");
            assert_eq!(draft.agents.is_empty(), !is_sure, "{confidence}");
            assert!((draft.confidence - confidence).abs() < 1e-9 && !draft.evidence.is_empty());
        });
    }
}

/// Whatever is asked: who is not sure chooses nobody, and says how unsure.
#[test]
fn a_plan_by_the_words_is_sure_and_an_abstention_is_not() {
    let (mut sure, mut unsure) = (0, 0);
    let openings = ["Add", "Look at", "Fix", "Think about", "We need", "Improve"];
    let things = ["an endpoint", "the page", "coverage", "the guide", "the query on the page", "things", "a database"];
    for message in openings.iter().flat_map(|opening| things.iter().map(move |thing| format!("{opening} {thing}"))) {
        let plan = plan(&sample(), &message);
        match plan.kind {
            PlanKind::Agents if plan.agents.len() == 1 => {
                sure += 1;
                assert!(plan.confidence >= 0.79, "{message}: {}", plan.confidence);
            }
            PlanKind::Abstain => {
                unsure += 1;
                assert!(plan.confidence < 0.79, "{message}: {}", plan.confidence);
            }
            _ => {}
        }
    }
    assert!(sure > 5 && unsure > 2, "{sure} sure, {unsure} not");
}

/// The module that holds a path most closely decides, in whatever order the table has them.
#[test]
fn the_longest_path_owns_a_file() {
    let module = |path: &str, owner: &str| Module {
        path: path.to_owned(),
        primary: Slug::fold(owner).expect("a slug"),
        secondary: None,
        source: Source::new(".squad/routing.md", 1),
    };
    let mut rows = vec![module("src/", "bea"), module("src/ui/", "fay"), module("src/ui/tests/*", "tess")];
    for _ in 0..rows.len() {
        rows.rotate_left(1);
        let team = Team { modules: rows.clone(), ..sample() };
        for (path, owner) in [
            ("src/main.rs", "bea"),
            ("src/ui/page.rs", "fay"),
            ("./src/ui/page.rs", "fay"),
            ("src/ui/tests/a.rs", "tess"),
            // No part of a name is a folder.
            ("src/uitools/a.rs", "bea"),
        ] {
            let paths = [path.to_owned()];
            let request = Request { paths: &paths, ..Request::new("Change this file") };
            let plan = Router::new(&team, &[]).plan(&request, &RouteOptions::default());
            assert_eq!(plan.agents.iter().map(ToString::to_string).collect::<Vec<_>>(), [owner], "{path}");
        }
    }
}
