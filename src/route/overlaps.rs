//! Agents that would work side by side on the same paths, by the team's module tables.

use crate::model::{Module, Overlap, Plan, PlanKind, Slug, Team};

/// Most rows of an agent that are looked at, and paths and pairs that are named.
const ROWS: usize = 200;
const PATHS: usize = 3;
const PAIRS: usize = 5;

/// Notes them in a plan whose steps are decided.
pub(crate) fn add(team: &Team, plan: &mut Plan) {
    if plan.kind != PlanKind::Agents {
        return;
    }
    let rows = |agent: &Slug| -> Vec<&Module> {
        let is_of = |module: &&Module| module.primary == *agent || module.secondary.as_ref() == Some(agent);
        team.modules.iter().filter(is_of).take(ROWS).collect()
    };
    let mut found: Vec<Overlap> = Vec::new();
    for agents in &plan.steps {
        let agents: Vec<&Slug> = agents.iter().filter(|agent| !plan.is_reviewer(agent)).collect();
        for (place, one) in agents.iter().enumerate() {
            for other in &agents[place + 1..] {
                let mut overlap = Overlap { agents: vec![(*one).clone(), (*other).clone()], ..Overlap::default() };
                let (ones, others) = (rows(one), rows(other));
                for (a, b) in ones.iter().flat_map(|a| others.iter().map(move |b| (a, b))) {
                    // The narrower of the two.
                    let inner = if a.path.len() > b.path.len() { a } else { b };
                    if overlap.paths.len() < PATHS && meet(&a.path, &b.path) && !overlap.paths.contains(&inner.path) {
                        overlap.paths.push(inner.path.clone());
                        if overlap.source.is_empty() {
                            overlap.source = inner.source.to_string();
                        }
                    }
                }
                if !overlap.paths.is_empty()
                    && found.len() < PAIRS
                    && !found.iter().any(|it| it.agents == overlap.agents)
                {
                    found.push(overlap);
                }
            }
        }
    }
    plan.overlaps = found;
}

/// Whether a file can be in both. Where globs do not tell, it can.
fn meet(one: &str, other: &str) -> bool {
    let ((one, one_kind), (other, other_kind)) = (scope(one), scope(other));
    let is_below = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| outer.is_empty() || rest.is_empty() || rest.starts_with('/'))
    };
    let is_anywhere = one.is_empty() || other.is_empty();
    match (one_kind, other_kind) {
        (Some(one_kind), Some(other_kind)) if one_kind != other_kind => false,
        // `**/*.md` is everybody's: that says nothing of a folder.
        (None, _) | (_, None) if is_anywhere => false,
        _ => is_below(one, other) || is_below(other, one),
    }
}

/// The folder or file before the first glob, and the ending of the files in it that are meant.
fn scope(path: &str) -> (&str, Option<&str>) {
    let path = path.trim_start_matches("./").trim_end_matches('/');
    let Some(glob) = path.find(['*', '?', '[', '{']) else {
        let name = path.rsplit('/').next().unwrap_or(path);
        return (path, name.rsplit_once('.').map(|(_, ending)| ending).filter(|ending| !ending.is_empty()));
    };
    let folder = path[..glob].rfind('/').map_or("", |end| &path[..end]);
    let ending = path[glob..].rsplit_once("*.").map(|(_, ending)| ending);
    (folder, ending.filter(|ending| ending.chars().all(char::is_alphanumeric)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Source;

    /// `ada bob: src/api/a.rs`, or nothing.
    fn found(rows: &[(&str, &str, Option<&str>)], reviewer: Option<&str>) -> Vec<String> {
        let slug = |name: &str| Slug::fold(name).expect("a slug");
        let row = |(path, primary, secondary): &(&str, &str, Option<&str>)| Module {
            path: (*path).to_owned(),
            primary: slug(primary),
            secondary: secondary.map(slug),
            source: Source::new(".squad/routing.md", 1),
        };
        let team = Team { modules: rows.iter().map(row).collect(), ..Team::default() };
        let agents = vec![slug("ada"), slug("bob")];
        let steps = vec![agents.clone()];
        let mut plan = Plan { kind: PlanKind::Agents, agents, steps, reviewer: reviewer.map(slug), ..Plan::default() };
        add(&team, &mut plan);
        plan.overlaps.iter().map(|it| format!("{} {}: {}", it.agents[0], it.agents[1], it.paths.join(" "))).collect()
    }

    #[test]
    fn who_works_side_by_side_on_a_path_is_named() {
        const NONE: [&str; 0] = [];
        let rows = [("src/api/", "ada", None), ("src/api/v2/a.rs", "bob", None), ("docs", "rex", None)];
        assert_eq!(found(&rows, None), ["ada bob: src/api/v2/a.rs"]);
        assert_eq!(found(&[rows[1], rows[0]], None), ["ada bob: src/api/v2/a.rs"]);
        // Who judges the work changes nothing.
        assert_eq!(found(&rows, Some("bob")), NONE);
        assert_eq!(found(&rows[1..], None), NONE);
        // A second owner is one too.
        assert_eq!(found(&[("src/api/", "rex", Some("ada")), rows[1]], None), ["ada bob: src/api/v2/a.rs"]);
        let many: Vec<String> = (0..9).map(|number| format!("src/{number}")).collect();
        let many: Vec<_> = many.iter().map(|path| (path.as_str(), "ada", Some("bob"))).collect();
        assert_eq!(found(&many, None), ["ada bob: src/0 src/1 src/2"]);
    }

    #[test]
    fn paths_meet_where_one_is_in_the_other() {
        for (one, other, expected) in [
            ("src/api/", "src/api", true),
            ("src", "src/api/**", true),
            ("src/api/**", "src/api/v2/a.rs", true),
            ("./src/api/*.rs", "src/api/main.rs", true),
            ("src/**/*.rs", "src/api/*.rs", true),
            ("**/*.md", "docs/*.md", true),
            ("src/api", "src/apis", false),
            ("src/api", "src/web", false),
            ("src/*.rs", "src/*.md", false),
            ("src/*.rs", "src/notes.md", false),
            ("**/*.md", "src", false),
            ("", "src", false),
            ("src/[", "src/{", true),
            ("é*", "é", false),
        ] {
            assert_eq!((meet(one, other), meet(other, one)), (expected, expected), "{one} {other}");
        }
    }
}
