//! When the router is sure.

use super::*;
use crate::model::Module;
use crate::model::Source;

/// Whatever is asked: who is not sure chooses nobody, and says how unsure.
#[test]
fn a_plan_by_the_words_is_sure_and_an_abstention_is_not() {
    let team = sample();
    let openings = ["Add", "Look at", "Fix", "Think about", "We need", "Improve"];
    let things = ["an endpoint", "the page", "coverage", "the guide", "the query on the page", "things", "a database"];
    for threshold in [0.30, 0.70, 0.80] {
        let router = Router::new(&team, &[]).answering_from(threshold);
        let (mut sure, mut unsure) = (0, 0);
        for message in openings.iter().flat_map(|opening| things.iter().map(move |thing| format!("{opening} {thing}")))
        {
            let plan = router.plan(&Request::new(&message), &RouteOptions::default());
            sure += usize::from(plan.kind == PlanKind::Agents && plan.confidence >= threshold);
            unsure += usize::from(plan.kind == PlanKind::Abstain && plan.confidence < threshold);
        }
        assert_eq!(sure + unsure, openings.len() * things.len());
        assert!(sure > 5 && unsure > 2, "{threshold}: {sure} sure, {unsure} not");
    }
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
