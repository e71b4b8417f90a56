//! Measuring a team's routing.

use std::fs;
use std::path::Path;
use std::thread;

use crate::env::Env;
use crate::error::Failure;
use crate::model::{Plan, to_json};
use crate::ops::run::past;
use crate::ops::{Project, write_text};
use crate::route::evaluate::{self, Case, Evaluation};
use crate::route::{self, PastWork, Request, RouteOptions, Router};

/// Loads the router's tables on another thread while the command starts; without threads they are loaded when needed.
pub(crate) fn prepare(env: &Env) {
    if env.threads {
        drop(thread::Builder::new().spawn(route::read_tables));
    }
}

/// Plans every case and compares the plan with the expectation.
///
/// Leaves out past work on the same message, which would give the answer away.
pub(crate) fn evaluate(project: &Project, cases: Vec<Case>) -> Result<Evaluation, Failure> {
    let past = past::work(project)?;
    let threshold = project.settings.routing.threshold;
    let router = Router::new(&project.team, &past).answering_from(threshold);
    let plan = |case: &Case| -> Plan {
        let request = Request { text: &case.message, labels: &case.labels, paths: &case.paths };
        let message = past::key(&case.message);
        let is_other = |work: &&PastWork| past::key(&work.message) != message;
        if past.iter().all(|work| is_other(&work)) {
            return router.plan(&request, &RouteOptions::default());
        }
        let others: Vec<PastWork> = past.iter().filter(is_other).cloned().collect();
        Router::new(&project.team, &others).answering_from(threshold).plan(&request, &RouteOptions::default())
    };
    Ok(evaluate::evaluate(cases.into_iter().map(|case| {
        let plan = plan(&case);
        (case, plan)
    })))
}

/// Reads a file of cases.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    let shown = path.display();
    let bytes = fs::read(path).map_err(|error| Failure::usage(format!("cannot read the cases {shown}: {error}")))?;
    String::from_utf8(bytes).map_err(|_| Failure::usage("not UTF-8").at(shown))
}

/// Writes cases to a new file. An existing file is not overwritten, because it may have been corrected by hand.
pub(crate) fn write(path: &Path, cases: &[Case]) -> Result<(), Failure> {
    let mut lines = String::new();
    for case in cases {
        lines += &to_json(case).map_err(|error| Failure::failed(error.to_string()))?;
        lines.push('\n');
    }
    write_text(path, None, &lines)
}
