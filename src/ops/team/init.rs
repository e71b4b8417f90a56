//! Installs a team: a few Markdown files, in one commit.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::env::files::read_regular;
use crate::env::{Env, real};
use crate::error::Failure;
use crate::git::Repository;
use crate::model::{ChangeKind, IntoSet};
use crate::ops::change::{Change, FileChange, Report, WriteMode};
use crate::ops::team::adopt::{self, TeamRead};
use crate::ops::team::fit::{self, TeamFiles};
use crate::ops::team::manifest::{FILE, Manifest};
use crate::ops::team::preset::Preset;
use crate::ops::team::projects;
use crate::ops::team::proposal::Proposal;
use crate::ops::team::survey::{self, Survey};
use crate::ops::team::templates::Templates;
use crate::ops::team::workspace::not_left_out;
use crate::ops::{Workspace, repository};
use crate::store;

pub(in crate::ops) const FOLDER: &str = ".squad";

/// The GitHub workflow that reviews pull requests.
const WORKFLOW: &str = ".github/workflows/squad-review.yml";
static WORKFLOW_TEXT: &[u8] = include_bytes!("../../../templates/ci/squad-review.yml");

/// The options of `squad init`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// The slugs of the agents to install; empty for all.
    pub(crate) agents: Vec<String>,
    pub(crate) commit: bool,
    /// Also install the workflow that reviews pull requests.
    pub(crate) ci: bool,
    /// The user's own preset, instead of the built-in team.
    pub(crate) preset: Option<Preset>,
}

/// The result of `init`.
pub(crate) enum Installed {
    /// A team exists; nothing was changed. `read` describes a team that `adopt` would take over.
    Already {
        folder: String,
        read: Option<TeamRead>,
    },
    New(Report, Box<Proposal>),
    /// Nothing was written.
    Proposed(Box<Proposal>),
}

/// Installs a team at the repository's root. Existing files stay unchanged, so running it again changes nothing. `agree`
/// may change what is written, and says whether anything is.
pub(crate) fn init(
    env: &Env,
    directory: &Path,
    options: Options,
    agree: impl FnOnce(&mut Proposal) -> Result<bool, Failure>,
) -> Result<Installed, Failure> {
    let (repository, work_dir, existing) = place(env, directory)?;
    let mut files = Vec::new();
    let mut proposal = Box::<Proposal>::default();
    if existing.is_none() {
        let is_own_preset = options.preset.is_some();
        let mut team = match options.preset {
            Some(preset) => preset_files(preset, directory, &work_dir),
            None => team_files(env),
        };
        let survey = surveyed(&repository, &work_dir)?;
        let known = &mut proposal;
        **known = Proposal::new(env, directory, survey, options.agents, |slug| {
            !is_own_preset && team.contains_key(&format!("agents/{slug}/charter.md"))
        })?;
        if !agree(known)? {
            return Ok(Installed::Proposed(proposal));
        }
        if !known.agents.is_empty() {
            fit::select_agents(&mut team, &known.agents)?;
        }
        fit::fill_in(&mut team, known, is_own_preset);
        if let Some(engine) = &known.engine {
            fit::use_engine(&mut team, engine);
        }
        if let Some(check) = &known.check {
            fit::use_check(&mut team, check);
        }
        files.extend(team.into_iter().map(|(path, bytes)| FileChange::added(format!("{FOLDER}/{path}"), bytes)));
    }
    if options.ci && work_dir.join(WORKFLOW).symlink_metadata().is_err() {
        files.push(FileChange::added(WORKFLOW.to_owned(), WORKFLOW_TEXT));
    }
    if let Some(folder) = existing.filter(|_| files.is_empty()) {
        let has_manifest = work_dir.join(&folder).join(FILE).exists();
        let dry_run = WriteMode::DryRun { as_commit: false };
        let adopted = if has_manifest { None } else { adopt::adopt(env, &work_dir, dry_run).ok() };
        let adopted = adopted.filter(|it| !it.change.files.is_empty() || it.new_state().is_some());
        let read = adopted.map(|adopted| adopted.details.read);
        return Ok(Installed::Already { folder, read });
    }
    let message = if files.len() == 1 { WORKFLOW_MESSAGE } else { MESSAGE };
    let change = Change::new(ChangeKind::Init, message, files);
    let written = change.apply_somehow(env, &repository, options.commit)?;
    if let Ok(workspace) = Workspace::find(env, directory) {
        projects::remember(env, &workspace);
    }
    Ok(Installed::New(written, proposal))
}

/// Fails if no team can be installed in this place, so that nobody is asked in vain.
pub(crate) fn require_place(env: &Env, directory: &Path) -> Result<(), Failure> {
    place(env, directory).map(drop)
}

/// The repository, its work tree, and the folder of the team that is there already.
fn place(env: &Env, directory: &Path) -> Result<(Repository, PathBuf, Option<String>), Failure> {
    let (repository, work_dir) = repository(env, directory)?;
    let existing = existing_team(&work_dir)?;
    if existing.is_none() {
        not_left_out(&repository)?;
    }
    Ok((repository, work_dir, existing))
}

const MESSAGE: &str = "squad: install a team\n\n\
    Adds the agents that work in this repository, and the rules that route work to them.\n";

const WORKFLOW_MESSAGE: &str = "squad: review pull requests in CI\n\n\
    Comments on pull requests with the decisions they make.\n";

/// The folder of an existing team.
pub(super) fn existing_team(work_dir: &Path) -> Result<Option<String>, Failure> {
    if let Some(found) = store::locate(work_dir, work_dir, None) {
        return if found.path.join("team.md").is_file() {
            Ok(Some(found.name.to_owned()))
        } else {
            Err(Failure::team("the folder exists but contains no team.md")
                .at(found.path.display())
                .hint("move the folder away, or write a team.md: a table with a Name and a Role column"))
        };
    }
    let place = work_dir.join(FOLDER);
    if place.symlink_metadata().is_ok() && !store::has_only_roles(&place) {
        return Err(Failure::team("it exists but is not a folder").at(place.display()).hint("move it away"));
    }
    Ok(None)
}

/// The files of a new team, by path relative to its folder, including the manifest for `squad upgrade`.
fn team_files(env: &Env) -> TeamFiles {
    with_manifest(Templates::of(env), None)
}

/// The same for a team from the user's own preset.
fn preset_files(preset: Preset, directory: &Path, work_dir: &Path) -> TeamFiles {
    let folder = directory.join(&preset.from);
    let is_elsewhere = folder.is_dir() && dunce::canonicalize(directory).ok().as_deref() != Some(work_dir);
    let from = match is_elsewhere {
        true => real(&folder).display().to_string(),
        false => preset.from,
    };
    with_manifest(Templates::of_preset(preset.files), Some(from))
}

fn with_manifest(templates: Templates, preset: Option<String>) -> TeamFiles {
    let manifest = (FILE.to_owned(), Manifest::of(&templates, preset).text().into_bytes());
    templates.files.into_iter().chain([manifest]).collect()
}

fn surveyed(repository: &Repository, work_dir: &Path) -> Result<Survey, Failure> {
    // Of more files, every so many-th is read: shares stay as they are.
    const MAX_COUNTED: usize = 2_000;
    let mut paths = repository.listed_files()?;
    // What a sparse checkout leaves out is not damaged.
    paths.retain(|path| !survey::is_informative(path) || work_dir.join(path).symlink_metadata().is_ok());
    let texts = survey::informative_texts(&paths, work_dir);
    let counted: Vec<&String> = paths.iter().filter(|path| survey::is_text(path)).collect();
    let step = counted.len().div_ceil(MAX_COUNTED).max(1);
    let counted: BTreeSet<&str> = counted.into_iter().step_by(step).map(String::as_str).into_set();
    let lines = |path: &str| {
        let bytes = counted.contains(path).then(|| read_regular(&work_dir.join(path), survey::MAX_SIZE))??;
        Some(bytes.iter().filter(|byte| **byte == b'\n').count().max(1) as u64)
    };
    Ok(survey::survey(&paths, &texts, lines))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::{self, NewMember};
    use crate::model::Severity;
    use crate::parse::{Files, team};
    use crate::route::{Request, RouteOptions, Router};

    fn files() -> TeamFiles {
        team_files(&Env::capture().expect("a world"))
    }

    fn installed() -> Files {
        let texts = files().into_iter().map(|(path, bytes)| (path, String::from_utf8(bytes).expect("UTF-8")));
        Files { folder: FOLDER.to_owned(), texts: texts.collect() }
    }

    #[test]
    fn the_template_is_small_and_sound() {
        let files = files();
        assert!(files.len() <= 40, "{}", files.len());
        assert!(files.values().map(Vec::len).sum::<usize>() <= 64 * 1024);
        let (team, problems) = team(&installed());
        assert_eq!(problems, []);
        let slugs: Vec<&str> = team.startable().map(|member| member.slug.as_str()).collect();
        assert_eq!(slugs, ["lead", "backend", "frontend", "tester", "docs", "reviewer"]);
        assert!(team.members.iter().all(|member| member.charter.is_some()));
        assert!(problems.iter().all(|problem| problem.severity == Severity::Note));
    }

    #[test]
    fn the_template_routes() {
        let (team, _) = team(&installed());
        let router = Router::new(&team, &[]);
        for (message, agents) in [
            ("write docs for login", &["docs"][..]),
            ("Add an endpoint that lists invoices", &["backend"]),
            ("The dialog's buttons overlap on small screens", &["frontend"]),
            ("Add regression tests for the parser", &["tester"]),
            ("Review the pull request", &["reviewer"]),
            ("Plan the architecture of the import", &["lead"]),
            ("Add a health endpoint with tests, and document it", &["backend", "tester", "docs"]),
        ] {
            let plan = router.plan(&Request::new(message), &RouteOptions::default());
            assert_eq!(plan.agents.iter().map(|slug| slug.as_str()).collect::<Vec<_>>(), agents, "{message}: {plan:?}");
        }
    }

    fn of_preset(name: &str) -> Files {
        let mut team = files();
        fit::select_agents(&mut team, &fit::preset(name).expect("a preset")).expect("its agents are known");
        let texts = team.into_iter().map(|(path, bytes)| (path, String::from_utf8(bytes).expect("UTF-8")));
        Files { folder: FOLDER.to_owned(), texts: texts.collect() }
    }

    /// How many messages are routed to the right agent, how many to a wrong one, and how many there are.
    fn reached(preset: &str, cases: &str) -> (usize, usize, usize) {
        let (team, _) = team(&of_preset(preset));
        let router = Router::new(&team, &[]);
        let has = |slug: &str| team.startable().any(|member| member.slug.as_str() == slug);
        let stand_in = ["backend", "docs"].into_iter().find(|slug| has(slug));
        let (mut right, mut wrong, mut all) = (0, 0, 0);
        for line in cases.lines() {
            let case: serde_json::Value = serde_json::from_str(line).expect("JSON");
            let accepted: Vec<&str> =
                case["accept"].as_array().expect("agents").iter().filter_map(|one| one.as_str()).collect();
            let is_right = |slug: &str| {
                accepted.contains(&slug) || (Some(slug) == stand_in && accepted.iter().any(|slug| !has(slug)))
            };
            let message = case["message"].as_str().expect("a message");
            let plan = router.plan(&Request::new(message), &RouteOptions::default());
            all += 1;
            match &plan.agents[..] {
                [] => {}
                agents if agents.iter().all(|agent| is_right(agent.as_str())) => right += 1,
                _ => wrong += 1,
            }
        }
        (right, wrong, all)
    }

    const PRESETS: [&str; 7] = ["default", "solo", "library", "web", "service", "docs", "research"];

    const EVERYDAY: [&str; 3] = [
        include_str!("../../../fixtures/routing/everyday.jsonl"),
        include_str!("../../../fixtures/routing/fresh.jsonl"),
        include_str!("../../../fixtures/routing/unseen.jsonl"),
    ];

    /// Of each set at least seven in ten, of each preset more than eight, and hardly ever a wrong agent.
    #[test]
    fn everyday_messages_reach_the_right_agent_of_every_preset() {
        for preset in PRESETS {
            let (mut right, mut wrong, mut all) = (0, 0, 0);
            for cases in EVERYDAY {
                let of_set = reached(preset, cases);
                assert!(10 * of_set.0 >= 7 * of_set.2, "{preset}: {of_set:?}");
                (right, wrong, all) = (right + of_set.0, wrong + of_set.1, all + of_set.2);
            }
            assert!(
                100 * right >= 75 * all && 100 * wrong <= 3 * all,
                "{preset}: {right} right, {wrong} wrong of {all}"
            );
            assert!(preset != "solo" || 100 * right >= 96 * all, "{right} of {all}");
        }
    }

    /// Rows that `squad agents add --routes` adds get the messages with their words.
    #[test]
    fn a_row_that_a_user_adds_gets_its_messages() {
        for preset in PRESETS {
            let (mut right, mut wrong, mut all) = (0, 0, 0);
            for line in include_str!("../../../fixtures/routing/added.jsonl").lines() {
                let case: serde_json::Value = serde_json::from_str(line).expect("JSON");
                let text = |name: &str| case[name].as_str().expect("a text").to_owned();
                let (name, signals) = (text("name"), vec![text("routes")]);
                let new = NewMember { name: name.clone(), role: text("role"), model: None, signals };
                let edited = edit::add(&of_preset(preset), &new).expect("it can be added");
                let (team, _) = team(&edited.files);
                let router = Router::new(&team, &[]);
                for message in case["messages"].as_array().expect("messages") {
                    let request = Request::new(message.as_str().expect("a message"));
                    let plan = router.plan(&request, &RouteOptions::default());
                    let is_right = plan.agents.iter().all(|agent| agent.as_str() == name.to_lowercase());
                    all += 1;
                    right += usize::from(!plan.agents.is_empty() && is_right);
                    wrong += usize::from(!is_right);
                }
            }
            assert!(
                100 * right >= 80 * all && 100 * wrong <= 3 * all,
                "{preset}: {right} right, {wrong} wrong of {all}"
            );
        }
    }

    /// What README and help show of routing is what the team does that `squad init` installs.
    #[test]
    fn the_examples_of_readme_and_help_route_as_they_say() {
        const SHOWN: [&str; 4] = [
            include_str!("../../../README.md"),
            include_str!("../../commands/mod.rs"),
            include_str!("../../commands/route/mod.rs"),
            include_str!("../../commands/orchestrate/args.rs"),
        ];
        let (team, _) = team(&installed());
        let router = Router::new(&team, &[]);
        for (message, agents, reviewers, is_shown) in [
            ("Fix the login form", &["frontend"][..], &["reviewer"][..], true),
            ("Add a health endpoint", &["backend"], &["reviewer"], true),
            ("Add a health endpoint with tests", &["backend", "tester"], &["reviewer"], true),
            ("Add a health endpoint with tests, and document it", &["backend", "tester", "docs"], &["reviewer"], true),
            ("@tester cover the parser", &["tester"], &[], true),
            (
                "@backend adds the endpoint, reviewed by @tester and @reviewer",
                &["backend"],
                &["tester", "reviewer"],
                true,
            ),
            ("cc @tester: fix the login form", &["frontend"], &["reviewer"], false),
            ("Fix the login form as @tester said", &["frontend"], &["reviewer"], false),
            ("not @frontend: fix the login form", &[], &[], false),
        ] {
            assert!(!is_shown || SHOWN.iter().any(|text| text.contains(message)), "nobody shows {message}");
            let plan = router.plan(&Request::new(message), &RouteOptions::default());
            let names = |slugs: Vec<&crate::model::Slug>| slugs.iter().map(ToString::to_string).collect::<Vec<_>>();
            assert_eq!(names(plan.agents.iter().collect()), agents, "{message}: {plan:?}");
            assert_eq!(names(plan.reviewers().collect()), reviewers, "{message}: {plan:?}");
        }
    }
}
