use super::change::{outcome, to_add};
use super::{Context, Ended};
use crate::env::Env;
use crate::error::{Failure, FailureKind};
use crate::model::{ChangeKind, first_line, list, plural, printable_line};
use crate::ops::change::Report;
use crate::ops::own_settings;
use crate::ops::team::init::{self, Answers, Installed, Options};
use crate::ops::team::preset::Preset;
use crate::ops::team::{engines, fit};
use crate::ui::Ui;

/// Install a team in this repository
///
/// Writes a small `.squad/` folder to the root of the repository and commits it: six agents with charters, a
/// routing table, notes on decisions and a configuration file. Purpose, languages, commands and folder owners are filled
/// in from the repository. At a terminal it asks what the project is for, who is on the team and which engine runs it,
/// unless --preset or --agents say so. It writes nothing else, and changes nothing if a team already exists.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad init                 Install a team, in one commit
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
        let is_silent =
            !options.agents.is_empty() || !context.ui.can_ask() || context.ui.json() || context.ui.is_quiet();
        let Context { env, directory, ui, .. } = context;
        let ask = |purpose: Option<&str>| {
            if is_silent { Ok(Answers::default()) } else { answers(env, ui, purpose, own.as_ref()) }
        };
        let installed = init::init(env, directory, options, ask)?;
        let installed = match (installed, context.finished(&ChangeKind::Init)) {
            // By this very call, for the one before it.
            (Installed::Already { .. }, Some((paths, commit @ Some(_)))) => {
                Installed::New(Report::of_added(paths, commit))
            }
            (installed, _) => installed,
        };
        let ui = &mut context.ui;
        if ui.json() {
            let (is_new, folder, files, commit) = match &installed {
                Installed::Already { folder, .. } => (false, folder.as_str(), 0, None),
                Installed::New(report) => (true, ".squad", report.files.len(), report.commit.as_ref()),
            };
            let mut value = serde_json::json!({
                "installed": is_new, "folder": folder, "files": files, "commit": commit
            });
            if let Some(own) = own {
                value["left_out"] = serde_json::to_value(own.left_out).unwrap_or_default();
            }
            ui.value(&value);
            return Ok(0);
        }
        match installed {
            Installed::Already { folder, read } => {
                ui.say(&format!("There is a team in {folder}/ already; nothing was changed."));
                if let Some(read) = read {
                    ui.say(&read.summary());
                    ui.hint("`squad adopt --dry-run` shows how squad would take over the team of another tool");
                }
            }
            Installed::New(report) => {
                for left in own.iter().flat_map(|own| &own.left_out) {
                    ui.say(&printable_line(&format!("left out {}: {}", left.path, left.why)));
                }
                let files: Vec<&str> = report.files.iter().map(|file| file.path.as_str()).collect();
                ui.say(&format!("Installed {}{}.", what(&files), outcome(&report)));
                if report.commit.is_none() {
                    ui.hint(&format!("{} && git commit -m \"Add a squad\"", to_add(&report)));
                }
                next_steps(ui, &files);
            }
        }
        Ok(0)
    }
}

/// Three questions, of which each has an answer already.
fn answers(env: &Env, ui: &mut Ui, purpose: Option<&str>, own: Option<&Preset>) -> Result<Answers, Failure> {
    let settings = own_settings(env);
    let usual = settings.engine.name.clone();
    let purpose = checked(ui, "What is this project for?", purpose.unwrap_or("later"), |answer| {
        let plain: String = answer.chars().filter(|letter| !letter.is_control()).collect();
        Ok(Some(plain).filter(|answer| answer != "later").map(|answer| first_line(&answer, 400)))
    })?;
    let agents = match own {
        None => checked(ui, "Who is on the team? A preset, or names:", "default", fit::agents)?,
        Some(own) => {
            checked(ui, "Who is on the team? All of the preset, or names:", "all", |answer| some_of(own, answer))?
        }
    };
    let engine = checked(ui, "Which engine runs them?", &usual, |answer| match engines::is_known(answer, &settings) {
        true => Ok(Some(answer.to_owned()).filter(|answer| *answer != usual)),
        false => Err(Failure::usage(format!("there is no engine `{answer}`")).hint("`squad engines` lists them")),
    });
    Ok(Answers { purpose, agents, engine: engine? })
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
            return Err(Failure::new(FailureKind::Interrupted, "nothing was installed")
                .hint("`squad init --preset default` asks nothing"));
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

fn next_steps(ui: &mut Ui, files: &[&str]) {
    if files.iter().any(|path| path.starts_with(".github/")) {
        ui.say("The workflow installs squad with the command in the repository variable SQUAD_INSTALL.");
    }
    ui.say("\nNext:\n  squad orchestrate --dry-run \"Add a health endpoint\"   see who would work, and why");
    ui.say("  squad orchestrate \"Add a health endpoint\"             let the team work");
    ui.say("  squad engines                                         see whether an engine is ready");
}
