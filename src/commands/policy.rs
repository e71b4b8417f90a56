use clap::Subcommand;

use super::{Context, Ended, TierName};
use crate::error::Failure;
use crate::model::{Problem, Severity, Slug, Tier, printable_line};
use crate::ops::Project;
use crate::ops::team::config::{ConfigFile, Place};
use crate::ops::team::members::named_agents;
use crate::ops::team::policy::{Judged, Kind, judge};
use crate::policy::Permissions;
use crate::settings::Layer;
use crate::view::{LineStyle, Mark, Text};

/// The column in which what a line says begins.
const VALUE: usize = 13;

/// Show the rules on what agents may do, and try them
///
/// Rules stand in `[policy]` of the team's .squad/config.toml, which may only deny and have you asked, and of your own
/// configuration file. Those of a repository that allow need `squad trust`. Without a command, lists them.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad policy
  squad policy test \"git push -f\" --agent backend
  squad policy test src/api/login.rs --permissions deny
  squad policy remove \"cargo test\"
  squad config set --user policy.commands.allow \"cargo test,cargo fmt\"

Rules are called `policy.SUBJECT.WORD`, and are lists:
  commands   first words of a command: \"git push\"
  writes     globs on paths from the project's root: \"infra/**\"; \"@owned\" is what routing says an agent owns
  hosts      globs on hosts, with or without a port: \"*.example.com\"
  tools      globs on the tools' names: \"github-*\"
with one of these words, of which the first that fits decides:
  deny, only (everything else is denied), ask (a person, in every mode), allow (nobody is asked)
A rule for one agent or role is called `policy.agents.NAME.SUBJECT.WORD`, for a tier `policy.tiers.TIER.SUBJECT.WORD`.
What no rule is about, the run's `--permissions` decide.")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// List the rules, with where they stand
    #[command(after_help = "Examples:\n  squad policy list\n  squad policy list --json")]
    List,
    /// Show how a command, path or address is judged, and by which rule
    ///
    /// This is how a run judges it, but for the team's `[hooks]`, which only runs ask: they may deny more.
    #[command(after_help = "\
Examples:
  squad policy test \"git push -f\" --agent backend
  squad policy test https://api.example.com/v1
  squad policy test deploy --as command --permissions deny")]
    Test {
        /// The command line, path or address
        what: String,
        /// For this agent, by name or role; without it, the rules for everybody
        #[arg(long, short, value_name = "NAME")]
        agent: Option<String>,
        /// For work of this tier
        #[arg(long, value_name = "TIER")]
        tier: Option<TierName>,
        /// What it is, where that is not plain
        #[arg(long = "as", value_name = "KIND")]
        kind: Option<Kind>,
        /// In a run with these permissions
        #[arg(long, value_enum, default_value_t = Permissions::Ask, value_name = "MODE")]
        permissions: Permissions,
    },
    /// Ask again about what you have allowed for later runs too
    #[command(after_help = "Examples:\n  squad policy remove \"cargo test\"")]
    Remove {
        /// As `squad policy list` shows it
        rule: String,
    },
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let project = Project::open(context.env, &context.directory, Layer::default())?;
        match self.command.unwrap_or(Command::List) {
            Command::List => {
                // A note such as on a missing charter changes no rule.
                let matters = |problem: &&Problem| problem.severity != Severity::Note || context.ui.is_verbose();
                let problems: Vec<&Problem> = project.problems.iter().filter(matters).collect();
                context.ui.all_problems(problems);
                list(context, &project);
            }
            Command::Test { what, agent, tier, kind, permissions } => {
                context.ui.problems(&project.problems);
                project.require_sound()?;
                let agent = named_agents(&project.team, agent.as_slice())?.into_iter().next();
                let of_agent = if agent.is_some() { Tier::default() } else { Tier::Direct };
                let tier = tier.map_or(of_agent, Tier::from);
                let kind = kind.unwrap_or_else(|| Kind::of(&what, &project));
                let judged = judge(
                    context.env,
                    &project,
                    (&agent.unwrap_or_else(Slug::coordinator), tier),
                    (kind, &what),
                    permissions,
                    &context.directory,
                );
                show(context, &judged);
            }
            Command::Remove { rule } => {
                let file = ConfigFile::find(context.env, None, Place::User)?;
                if !file.remove(&project.kept_name(), &rule)? {
                    let failure = Failure::usage(format!("`{}` is not kept for this project", printable_line(&rule)));
                    return Err(
                        failure.hint("`squad policy list` shows what is; rules in a file: `squad config unset`")
                    );
                }
                if context.ui.json() {
                    context.ui.value(&serde_json::json!({"removed": rule}));
                } else {
                    context.ui.say(&format!("{} is asked about again", printable_line(&rule)));
                }
            }
        }
        Ok(0)
    }
}

fn list(context: &mut Context<'_>, project: &Project) {
    let rules: Vec<_> = project.settings.policy_rules().collect();
    let ui = &mut context.ui;
    let kept = project.kept_rules();
    if ui.json() {
        let row = |rule: &crate::settings::PolicyEntry| serde_json::json!({"name": rule.name, "patterns": rule.patterns, "source": rule.origin.to_string()});
        return ui.value(&serde_json::json!({"rules": rules.iter().map(row).collect::<Vec<_>>(), "kept": kept}));
    }
    if rules.is_empty() && kept.is_empty() {
        return ui.say("No rules: what agents may do is for each run's --permissions to decide. `squad help policy` shows how to write one.");
    }
    let of_files = rules.into_iter().map(|rule| {
        let line =
            Text::unmarked().with(LineStyle::Strong, &rule.name).plain(&format!(" = {}", rule.patterns.join(", ")));
        line.with(LineStyle::Faint, &format!("  ({})", rule.origin))
    });
    let kept = kept.into_iter().map(|rule| {
        let line = Text::unmarked().with(LineStyle::Strong, &rule);
        line.with(LineStyle::Faint, "  (you allowed it for later runs too)")
    });
    let lines: Vec<Text> = of_files.chain(kept).collect();
    ui.texts(&lines);
}

fn show(context: &mut Context<'_>, judged: &Judged) {
    let ui = &mut context.ui;
    if ui.json() {
        return ui.value(judged);
    }
    let Judged { what, kind, commands, path, agent, tier, permissions, answer, rule, source } = judged;
    let (style, mark) = match *answer {
        "allow" => (LineStyle::Good, Mark::Good),
        "deny" => (LineStyle::Bad, Mark::Bad),
        _ => (LineStyle::Warning, Mark::Attention),
    };
    let head = Text::marked(style, mark).with(style, answer).plain("  ").hanging().plain(what);
    let field =
        |name: &str, value: &str| Text::unmarked().with(LineStyle::Faint, name).filled(VALUE).hanging().plain(value);
    let by = match (rule, source) {
        (Some(rule), Some(source)) => format!("{rule} ({source})"),
        _ => format!("none is about it, so --permissions {permissions} decides"),
    };
    let mut lines = vec![head, field("rule", &by)];
    // One that is written as it is run says nothing new.
    if commands.len() > 1 || commands.first().is_some_and(|words| words.join(" ") != *what) {
        for words in commands {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            lines.push(field("command", &words.join(" ")));
        }
    }
    if *kind == "path" {
        lines.push(field("path", path.as_deref().unwrap_or("outside of the project")));
    }
    let article = if *kind == "address" { "an" } else { "a" };
    let whom = match *agent == Slug::coordinator() {
        true => "by the rules for everybody".to_owned(),
        false => format!("for {agent}, tier {tier}"),
    };
    let whom = format!("{article} {kind}, {whom}, in a run with --permissions {permissions}");
    lines.push(field("judged as", &whom));
    ui.texts(&lines);
}
