use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use super::hidden::printable;
use super::{RunId, UndoRecord};

/// What changes files of the repository. The intent of a change records it, so that the command given again after a kill
/// recognizes its own work.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum ChangeKind {
    #[serde(rename = "init")]
    Init,
    #[serde(rename = "import")]
    Import,
    #[serde(rename = "adopt")]
    Adopt,
    #[serde(rename = "adopt --roles")]
    AdoptRoles,
    #[serde(rename = "upgrade")]
    Upgrade,
    #[serde(rename = "remove --team")]
    RemoveTeam,
    #[serde(rename = "agents add")]
    AddAgent { name: String },
    #[serde(rename = "agents retire")]
    RetireAgent { name: String },
    #[serde(rename = "agents rename")]
    RenameAgent { from: String, to: String },
    #[serde(rename = "agents export")]
    Export { to: Vec<String> },
    #[serde(rename = "export --to actions")]
    ExportWorkflow,
    #[serde(rename = "decisions import")]
    ImportDecisions,
    #[serde(rename = "decisions land")]
    LandDecisions,
    #[serde(rename = "knowledge retire")]
    RetireNote { id: String },
    #[serde(rename = "history land")]
    LandHistory,
    #[serde(rename = "rescue restore")]
    Restore { rescue: String },
    #[serde(rename = "undo")]
    Undo(Box<UndoRecord>),
    /// The commit of an undo.
    #[serde(rename = "undo --commit")]
    RevertRun { run: RunId },
    #[serde(rename = "merge")]
    Merge { run: RunId },
    #[serde(rename = "mcp --register")]
    Register { client: String },
    /// Of another version of squad: its command.
    #[serde(untagged)]
    Other(String),
}

impl ChangeKind {
    /// Whether the command can leave the commit to the user.
    pub(crate) fn takes_no_commit(&self) -> bool {
        !matches!(
            self,
            Self::RemoveTeam
                | Self::ImportDecisions
                | Self::LandDecisions
                | Self::RetireNote { .. }
                | Self::LandHistory
                | Self::RevertRun { .. }
                | Self::Merge { .. }
        )
    }
}

/// The command without the leading `squad` and without options.
impl Display for ChangeKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let quoted = |name: &str| {
            let name = printable(name);
            if name.contains(char::is_whitespace) { format!("\"{name}\"") } else { name }
        };
        match self {
            Self::Init => f.write_str("init"),
            Self::Import => f.write_str("import"),
            Self::Adopt => f.write_str("adopt"),
            Self::AdoptRoles => f.write_str("adopt --roles"),
            Self::Upgrade => f.write_str("upgrade"),
            Self::RemoveTeam => f.write_str("remove --team"),
            Self::AddAgent { name } => write!(f, "agents add {}", quoted(name)),
            Self::RetireAgent { name } => write!(f, "agents retire {}", quoted(name)),
            Self::RenameAgent { from, to } => write!(f, "agents rename {} {}", quoted(from), quoted(to)),
            Self::Export { to } => write!(f, "agents export --to {}", to.join(",")),
            Self::ExportWorkflow => f.write_str("export --to actions"),
            Self::ImportDecisions => f.write_str("decisions import"),
            Self::LandDecisions => f.write_str("decisions land"),
            Self::RetireNote { id } => write!(f, "knowledge retire {id}"),
            Self::LandHistory => f.write_str("history land"),
            Self::Undo(record) => {
                let agent = record.undone.only.as_ref().map(|agent| format!(" {agent}")).unwrap_or_default();
                let redo = if record.undone.redo { " --redo" } else { "" };
                write!(f, "undo {}{agent}{redo}", record.run)
            }
            Self::Merge { run } => write!(f, "merge {run}"),
            Self::RevertRun { run } => write!(f, "undo {run} --commit"),
            Self::Restore { rescue } => write!(f, "rescue restore {rescue}"),
            Self::Register { client } => write!(f, "mcp --register {client}"),
            Self::Other(command) => f.write_str(&printable(command)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_read_again_and_so_is_a_command_of_another_version() {
        let name = || "Nora".to_owned();
        for kind in [
            ChangeKind::Init,
            ChangeKind::AddAgent { name: name() },
            ChangeKind::RenameAgent { from: name(), to: "Ada L".to_owned() },
            ChangeKind::Export { to: vec!["claude".to_owned()] },
        ] {
            let text = serde_json::to_string(&kind).expect("JSON");
            assert_eq!(serde_json::from_str::<ChangeKind>(&text).expect("a kind"), kind, "{text}");
        }
        let old = |text: &str| serde_json::from_value::<ChangeKind>(text.into()).expect("a kind");
        assert_eq!(old("decisions land"), ChangeKind::LandDecisions);
        assert_eq!(old("agents add Nora"), ChangeKind::Other("agents add Nora".to_owned()));
        assert_eq!(old("agents add Nora").to_string(), "agents add Nora");
    }
}
