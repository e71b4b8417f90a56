use std::collections::BTreeSet;
use std::path::Path;

use super::change::{git_here, outcome, to_add};
use super::{Context, Ended};
use crate::env::Env;
use crate::error::{Failure, FailureKind};
use crate::model::{ChangeKind, first_line, list, plural, printable_line, without_hidden};
use crate::ops::change::Report;
use crate::ops::team::fit::capitalized;
use crate::ops::team::init::{self, Installed, Options};
use crate::ops::team::preset::Preset;
use crate::ops::team::proposal::{Fact, Kind, Line, Proposal, YOURS};
use crate::ops::team::trust::{self, Unit};
use crate::ops::team::{engines, fit};
use crate::ops::{Workspace, own_settings};
use crate::ui::{FAINT, Ui};

/// Install a team in this repository
///
/// Writes a small `.squad/` folder to the root of the repository and commits it: agents with charters, a routing table,
/// notes on decisions and a configuration file. Purpose, stack, checks, folder owners and the agents that fit are read
/// from the repository, each with its source; what is not known is left out. At a terminal it asks before it writes, and
/// each line can be changed first. It writes nothing else, and changes nothing if a team already exists.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad init                 Install a team, in one commit
  squad init --dry-run       Only show what it would write
  squad init --yes           Ask nothing
  squad init --preset library    A team without a frontend
  squad init --agents backend,tester
  squad init --from ../presets/payments             Your own preset: a folder with a team.md
  squad init --from https://example.com/team.git    The same, in a repository
  squad init --no-commit     Write the files and leave the commit to you
  squad init --ci            Also a GitHub workflow that comments on pull requests what they decide")]
pub(super) struct Args {
    /// A smaller team: default, solo, library, web, service, docs or research
    #[arg(long, value_name = "PRESET", conflicts_with = "agents")]
    preset: Option<String>,
    /// Only these of lead, backend, frontend, tester, docs and reviewer
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    agents: Vec<String>,
    /// Your own preset: a folder or a git URL. Its Markdown and models are taken, and nothing that could run
    #[arg(long, value_name = "PATH|GIT", conflicts_with = "preset")]
    from: Option<String>,
    /// Show what would be written, and where it comes from
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Write without asking, and approve the check that is proposed
    #[arg(long, short)]
    yes: bool,
    /// Write the files but do not commit them
    #[arg(long)]
    no_commit: bool,
    /// Also write .github/workflows/squad-review.yml, which comments on the decisions in pull requests
    #[arg(long)]
    ci: bool,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let preset = self.preset.as_deref().map(fit::preset).transpose()?;
        let agents = self
            .agents
            .into_iter()
            .map(|agent| agent.trim().to_lowercase())
            .filter(|agent| !agent.is_empty())
            .collect();
        let own = self.from.map(|from| Preset::read(context.env, &context.directory, &from)).transpose()?;
        let options =
            Options { agents: preset.unwrap_or(agents), commit: !self.no_commit, ci: self.ci, preset: own.clone() };
        let is_asked = !self.yes && context.ui.can_ask() && !context.ui.json() && !context.ui.is_quiet();
        let approves = is_asked || self.yes;
        let Context { env, directory, ui, .. } = context;
        let agree = |proposal: &mut Proposal| {
            if !ui.json() {
                show(ui, proposal);
            }
            match is_asked && !self.dry_run {
                true => agreed(env, ui, proposal, own.as_ref()),
                false => Ok(!self.dry_run),
            }
        };
        let installed = init::init(env, directory, options, agree)?;
        if let Installed::New(_, proposal) = &installed
            && approves
            && proposal.check.is_some()
        {
            approve_check(env, directory)?;
        }
        let installed = match (installed, context.finished(&ChangeKind::Init)) {
            // By this very call, for the one before it.
            (Installed::Already { .. }, Some((paths, commit @ Some(_)))) => {
                Installed::New(Report::of_added(paths, commit), Box::default())
            }
            (installed, _) => installed,
        };
        let git = git_here(context);
        let ui = &mut context.ui;
        if ui.json() {
            let mut value = match &installed {
                Installed::Already { folder, .. } => serde_json::json!({
                    "installed": false, "folder": folder, "files": 0, "commit": null
                }),
                Installed::Proposed(proposal) => serde_json::json!({
                    "installed": false, "folder": ".squad", "found": proposal.lines(), "missing": proposal.missing()
                }),
                Installed::New(report, proposal) => serde_json::json!({
                    "installed": true, "folder": ".squad", "files": report.files.len(), "commit": report.commit,
                    "found": proposal.lines(), "missing": proposal.missing()
                }),
            };
            if let Some(own) = own {
                value["left_out"] = serde_json::to_value(own.left_out).unwrap_or_default();
            }
            ui.value(&value);
            return Ok(0);
        }
        match installed {
            Installed::Already { folder, read } => {
                ui.say(&format!("There is a team in {folder}/ already; nothing was changed."));
                match read {
                    Some(read) => {
                        ui.say(&read.summary());
                        ui.hint("`squad adopt --dry-run` shows how squad would take over the team of another tool");
                    }
                    None => ui.hint("`squad agents` shows it, and `squad upgrade` brings its files up to date"),
                }
            }
            Installed::Proposed(_) if self.dry_run => ui.say("Nothing was written: --dry-run."),
            Installed::Proposed(_) => ui.say("Nothing was written."),
            Installed::New(report, proposal) => {
                for left in own.iter().flat_map(|own| &own.left_out) {
                    ui.say(&printable_line(&format!("left out {}: {}", left.path, left.why)));
                }
                let files: Vec<&str> = report.files.iter().map(|file| file.path.as_str()).collect();
                ui.say(&format!("Installed {}{}.", what(&files), outcome(&report)));
                if report.commit.is_none() {
                    ui.hint(&format!("{} && {git} commit -m \"Add a squad\"", to_add(&report, &git)));
                }
                let kind = proposal.kind.as_ref().map(|kind| kind.value);
                next_steps(ui, &files, kind, proposal.check.is_some() && !approves);
            }
        }
        Ok(0)
    }
}

/// The person has seen the command and what it is for, or has said beforehand that they need not be asked.
fn approve_check(env: &Env, directory: &Path) -> Result<(), Failure> {
    let workspace = Workspace::find(env, directory)?;
    let (units, _) = trust::needing_approval(env, &workspace);
    let check: Vec<&Unit> = units.iter().filter(|unit| unit.name == "check.run").collect();
    trust::settle(env, &workspace, &check, true)
}

/// What is known and what is not, each line with its source.
fn show(ui: &mut Ui, proposal: &Proposal) {
    for Line { name, value, source } in proposal.lines() {
        let source = ui.err_paint(FAINT, &format!("({})", printable_line(&source)));
        ui.say(&format!("  {name:<9} {}  {source}", printable_line(&value)));
    }
    let missing = proposal.missing().join(", ");
    if !missing.is_empty() {
        ui.say(&format!("  {:<9} {missing}: write them in .squad/team.md", "missing"));
    }
}

/// Asks whether to write, until the answer is yes or no. Any line can be changed before.
fn agreed(env: &Env, ui: &mut Ui, proposal: &mut Proposal, own: Option<&Preset>) -> Result<bool, Failure> {
    const CHANGES: &str = "p purpose, u users, k kind, s stack, c checks, f folders, t team, e engine";
    loop {
        let known = |answer: &str| match answer.trim().to_lowercase().as_str() {
            answer @ ("y" | "yes" | "n" | "no" | "p" | "u" | "k" | "s" | "c" | "f" | "t" | "e") => {
                Ok(answer.to_owned())
            }
            _ => Err(Failure::usage("y writes it, n writes nothing; to change a line:").hint(CHANGES)),
        };
        let approves = if proposal.check.is_some() { " (approves the check too)" } else { "" };
        ui.say(&format!("A letter changes a line: {CHANGES}."));
        match checked(ui, &format!("Write this? y{approves}, n, or a letter:"), "y", known)?.as_str() {
            "y" | "yes" => return Ok(true),
            "n" | "no" => return Ok(false),
            key => change(env, ui, proposal, own, key)?,
        }
        show(ui, proposal);
    }
}

/// Asks for another value of one line; `-` leaves the line out, and the value that is there changes nothing.
fn change(env: &Env, ui: &mut Ui, proposal: &mut Proposal, own: Option<&Preset>, key: &str) -> Result<(), Failure> {
    let text = |ui: &mut Ui, question: &str, fact: &Option<Fact>| -> Result<Option<Option<Fact>>, Failure> {
        let now = fact.as_ref().map_or("-", |fact| fact.value.as_str());
        let plain = |answer: &str| Ok(first_line(&without_hidden(answer.to_owned()), 400));
        let answer = checked(ui, &format!("{question} (- for none)"), now, plain)?;
        let is_new = answer != now;
        Ok(is_new.then(|| Some(answer).filter(|answer| answer != "-").map(yours)))
    };
    let shown = |items: &[String]| if items.is_empty() { "-".to_owned() } else { items.join(", ") };
    match key {
        "p" => {
            proposal.purpose =
                text(ui, "What is the project for?", &proposal.purpose)?.unwrap_or(proposal.purpose.take())
        }
        "u" => proposal.users = text(ui, "Who uses it?", &proposal.users)?.unwrap_or(proposal.users.take()),
        "s" => {
            proposal.stack =
                text(ui, "Which languages and frameworks?", &proposal.stack)?.unwrap_or(proposal.stack.take());
        }
        "k" => {
            let now = proposal.kind.as_ref().map(|kind| kind.value);
            let known = list(Kind::ALL.map(Kind::word));
            let question = format!("What is it? {known} (- for none of them)");
            let kind = checked(ui, &question, now.map_or("-", Kind::word), |answer| match answer.trim() {
                "-" => Ok(None),
                word => match Kind::ALL.into_iter().find(|kind| kind.word() == word) {
                    None => Err(Failure::usage(format!("`{word}` is no kind")).hint(format!("there are {known}"))),
                    kind => Ok(kind),
                },
            })?;
            if kind != now {
                proposal.set_kind(kind);
            }
        }
        "c" => {
            let now: Vec<String> = proposal.checks.iter().map(|check| check.value.clone()).collect();
            let question = "Which commands build and test it? (- for none)";
            let answer = checked(ui, question, &shown(&now), |answer| Ok(items(&answer.replace('`', ""))))?;
            if answer != now {
                proposal.set_checks(answer.into_iter().map(yours).collect());
            }
        }
        "f" => {
            let now: Vec<String> = proposal.owners().map(|(path, owner)| format!("{path} {owner}")).collect();
            let agents = match (own, &proposal.agents[..]) {
                (Some(own), []) => own.agents(),
                (_, agents) => agents.to_vec(),
            };
            let question = "Which folders have owners? (- for none)";
            let owners = checked(ui, question, &shown(&now), |answer| {
                items(answer).iter().map(|item| owned(item, &agents, &proposal.folders)).collect::<Result<Vec<_>, _>>()
            })?;
            if owners.iter().ne(proposal.owners()) {
                proposal.owners = owners;
                proposal.owners_source = YOURS.to_owned();
            }
        }
        "t" => {
            let now = if proposal.agents.is_empty() { "all".to_owned() } else { proposal.agents.join(", ") };
            let agents = match own {
                None => checked(ui, "Who is on the team? A preset, or names:", &now, fit::agents)?,
                Some(own) => checked(ui, "Who is on the team? All of the preset, or names:", &now, |answer| {
                    some_of(own, answer)
                })?,
            };
            if agents != proposal.agents {
                proposal.agents = agents;
                proposal.team = YOURS.to_owned();
            }
        }
        _ => {
            let settings = own_settings(env);
            let now = proposal.used_engine.value.clone();
            let answer =
                checked(ui, "Which engine runs them?", &now, |answer| match engines::is_known(answer, &settings) {
                    true => Ok(answer.to_owned()),
                    false => {
                        Err(Failure::usage(format!("there is no engine `{answer}`")).hint("`squad engines` lists them"))
                    }
                })?;
            if answer != now {
                proposal.engine = Some(answer.clone()).filter(|answer| *answer != settings.engine.name);
                proposal.used_engine = yours(answer);
            }
        }
    }
    Ok(())
}

fn yours(value: String) -> Fact {
    Fact { value, source: YOURS.to_owned() }
}

/// What stands between the commas of an answer.
fn items(answer: &str) -> Vec<String> {
    let items = answer.split(',').map(|item| item.trim().to_owned());
    items.filter(|item| !item.is_empty() && item != "-").collect()
}

/// `docs Docs`: a folder of the repository and an agent of the team.
fn owned(item: &str, agents: &[String], folders: &BTreeSet<String>) -> Result<(String, String), Failure> {
    let mistake = |what: String, hint: String| Err(Failure::usage(what).hint(hint));
    let Some((path, owner)) = item.rsplit_once(' ') else {
        return mistake(
            format!("`{item}` is not a folder and an agent"),
            "like this: src/api Backend, docs Docs".to_owned(),
        );
    };
    let (path, owner) = (path.trim().trim_start_matches("./").trim_end_matches('/'), owner.to_lowercase());
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    if !agents.contains(&owner) {
        return mistake(format!("there is no agent `{owner}` on this team"), format!("there are {}", list(agents)));
    }
    if !folders.contains(path) || !path.chars().all(plain) {
        let hint = "git has to track a file in it, or to be about to; `-` is for no folder at all".to_owned();
        return mistake(format!("there is no folder `{path}` in this repository"), hint);
    }
    Ok((path.to_owned(), capitalized(&owner)))
}

/// The agents of a preset that an answer names; none where it means all of them.
fn some_of(own: &Preset, answer: &str) -> Result<Vec<String>, Failure> {
    if answer.trim() == "all" {
        return Ok(Vec::new());
    }
    let known = own.agents();
    let named: Vec<String> = answer.split(',').map(|name| name.trim().to_lowercase()).collect();
    match named.iter().find(|name| !known.contains(name)) {
        None => Ok(named),
        Some(unknown) => {
            Err(Failure::usage(format!("the preset has no agent `{unknown}`")).hint(format!("it has {}", list(&known))))
        }
    }
}

/// Asks until the answer means something. `None`: nobody answers any more.
fn checked<T>(
    ui: &mut Ui,
    question: &str,
    default: &str,
    check: impl Fn(&str) -> Result<T, Failure>,
) -> Result<T, Failure> {
    loop {
        let Some(answer) = ui.ask(question, default) else {
            return Err(
                Failure::new(FailureKind::Interrupted, "nothing was installed").hint("`squad init --yes` asks nothing")
            );
        };
        match check(&answer) {
            Ok(answer) => return Ok(answer),
            Err(failure) => ui.failure(&failure),
        }
    }
}

/// `a team in .squad/: 10 files`, `.github/workflows/squad-review.yml`.
fn what(files: &[&str]) -> String {
    let (team, other): (Vec<&str>, Vec<&str>) = files.iter().partition(|path| path.starts_with(".squad/"));
    let team = (!team.is_empty()).then(|| format!("a team in .squad/: {}", plural(team.len(), "file")));
    list(team.into_iter().chain(other.into_iter().map(str::to_owned)))
}

fn next_steps(ui: &mut Ui, files: &[&str], kind: Option<Kind>, has_check: bool) {
    if files.iter().any(|path| path.starts_with(".github/")) {
        ui.say("The workflow installs squad with the command in the repository variable SQUAD_INSTALL.");
    }
    let message = match kind {
        None | Some(Kind::Web | Kind::Service) => "Add a health endpoint",
        Some(Kind::Tool | Kind::Library) => "Add unit tests for edge cases",
        Some(Kind::Infrastructure) => "Add a linter to the pipeline",
        Some(Kind::Study | Kind::Documentation) => "Write a getting started guide",
    };
    let dry_run = format!("squad orchestrate --dry-run \"{message}\"");
    let width = dry_run.len();
    ui.say(&format!("\nNext:\n  {dry_run}   see who would work, and why"));
    for (command, about) in [
        (format!("squad orchestrate \"{message}\""), "let the team work"),
        ("squad engines".to_owned(), "see whether an engine is ready"),
    ] {
        ui.say(&format!("  {command:<width$}   {about}"));
    }
    if has_check {
        let command = "squad trust approve check.run";
        ui.say(&format!("  {command:<width$}   let squad check what agents change"));
    }
}
