use crate::commands::change::short;
use crate::commands::decisions::land;
use crate::commands::{Context, Ended, text_or_input};
use crate::model::NoteKind;
use crate::ops::decisions::knowledge::{self, NewNote};

/// Record a note, and land it on the branch
///
/// The first line of TEXT is its title. What the note rests on is its evidence: once that changes, the note is stale, and
/// agents are no longer told it. Without evidence it is an opinion, and agents are told so. A note is not changed but
/// superseded: the new one keeps scope, tags, languages and frameworks unless you give others, and has the evidence that
/// you give.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad knowledge add --kind pitfall --tag tokens --evidence src/auth.rs:10-20 \"Hash tokens before storing them\"
  squad knowledge add --language Rust --evidence commit:HEAD - < note.md
  squad knowledge add --from-decision 4f1c09
  squad knowledge add --from-proposal 7a20b1 \"Pin the clock in tests of expiry\"
  squad knowledge add --supersedes 4f1c09 \"Hash tokens with a key\"")]
pub(super) struct Add {
    /// The note, or `-` to read it from standard input; by default what it is made from
    #[arg(required_unless_present_any = ["from_decision", "from_proposal"])]
    text: Option<String>,
    /// What it is: `practice` unless you say otherwise
    #[arg(long, value_enum)]
    kind: Option<NoteKind>,
    /// A path glob the note applies to; may be repeated
    #[arg(long, value_name = "GLOB")]
    scope: Vec<String>,
    /// A tag to find it by; may be repeated
    #[arg(long = "tag", value_name = "WORD")]
    tags: Vec<String>,
    /// Only for projects with this programming language; may be repeated
    #[arg(long = "language", value_name = "NAME")]
    languages: Vec<String>,
    /// Only for projects with this framework; may be repeated
    #[arg(long = "framework", value_name = "NAME")]
    frameworks: Vec<String>,
    /// What it rests on: a path, a path with lines such as `src/auth.rs:10-20`, `commit:REVISION`, `decision:ID` or
    /// `run:ID`; may be repeated
    #[arg(long, value_name = "PLACE")]
    evidence: Vec<String>,
    /// Make it from this decision, which is its evidence
    #[arg(long, value_name = "ID")]
    from_decision: Option<String>,
    /// Accept what an agent proposes; `squad knowledge list --proposed` shows it, `decline` refuses it
    #[arg(long, value_name = "ID", conflicts_with = "from_decision")]
    from_proposal: Option<String>,
    /// The note that it replaces
    #[arg(long, value_name = "ID")]
    supersedes: Option<String>,
}

/// Refuse a note that an agent proposes
///
/// It is no longer listed, here and, after a `squad sync`, in other clones. It stays a learning of the agent.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  squad knowledge decline 7a20b1")]
pub(super) struct Decline {
    /// The proposal's id, or a prefix of it; `squad knowledge list --proposed` shows it
    id: String,
}

/// Delete a note and what it superseded from the branch
///
/// Projects that are linked to this one have it no longer after their next `squad sync`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  squad knowledge retire 4f1c09")]
pub(super) struct Retire {
    /// The note's id, or a prefix of it
    id: String,
}

impl Add {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let project = super::project(context)?;
        let text = self.text.map(|text| text_or_input(&context.ui, &text)).transpose()?;
        let Self {
            kind, scope, tags, languages, frameworks, evidence, from_decision, from_proposal, supersedes, ..
        } = self;
        let new = NewNote {
            text,
            kind,
            scope,
            tags,
            languages,
            frameworks,
            evidence,
            from_decision,
            from_proposal,
            supersedes,
        };
        let note = knowledge::add(context.env, &project, &context.directory, new)?;
        land::new(context, &project, &note);
        if let Some(doubt) = knowledge::doubt(&project, &note)? {
            context.ui.warning(&format!("no agent of this project is told it: {doubt}"));
        }
        if note.note.as_ref().is_some_and(|note| note.evidence.is_empty()) && !context.ui.json() {
            context.ui.hint("it has no evidence, so agents are told that it is an opinion; `--evidence` names some");
        }
        Ok(0)
    }
}

impl Decline {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let project = super::project(context)?;
        let declined = knowledge::decline(context.env, &project, &self.id)?;
        if context.ui.json() {
            context.value(serde_json::json!({ "id": declined.id, "agent": declined.agent }));
        } else {
            context.ui.say(&format!("Proposal {} declined.", declined.id));
        }
        Ok(0)
    }
}

impl Retire {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let project = super::project(context)?;
        let (note, commit) = knowledge::retire(context.env, &project, &self.id)?;
        context.say_passed_hooks();
        let (id, ui) = (note.listed.id, &mut context.ui);
        if ui.json() {
            ui.value(&serde_json::json!({ "id": id, "commit": commit }));
        } else {
            ui.say(&format!("Note {id} retired in {}.", short(&commit)));
        }
        Ok(0)
    }
}
