//! What a thread is told: text that changes least comes first, so that providers can cache it between calls and runs.
//!
//! ```text
//! base instructions        ours: how to work here, the project, the team     they take the place of Codex's own
//! developer instructions   the repository's AGENTS.md, the charter, the texts chosen for the task
//! ```

use std::path::Path;

use crate::engine::Opening;
use crate::engine::copilot::{DEFAULT_IDENTITY, NOTIFICATIONS};
use crate::env::ProjectPath;
use crate::env::files::read_within;
use crate::model::ToolChoice;

/// Codex reads it only where the user trusts all else that the repository configures, too.
const INSTRUCTIONS: &str = "AGENTS.md";
/// Most bytes of such a file, as Codex reads them.
const MAX_INSTRUCTIONS: u64 = 32 << 10;

/// Base and developer instructions.
pub(super) fn texts(root: &Path, opening: &Opening) -> (String, String) {
    let spec = &opening.spec;
    if spec.tools == ToolChoice::Nothing {
        return ([spec.prompt.as_str(), &spec.full_context()].concat(), String::new());
    }
    let team = if spec.team.trim().is_empty() { DEFAULT_IDENTITY } else { spec.team.trim() };
    let of_repository = instructions(root, &opening.directory);
    let parts = [of_repository.trim(), spec.prompt.trim(), spec.context.trim()];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    (format!("{team}\n\n{NOTIFICATIONS}"), parts.join("\n\n"))
}

/// The repository's instructions from the project's root down to a folder.
fn instructions(root: &Path, directory: &Path) -> String {
    let mut folders: Vec<&Path> = directory.ancestors().take_while(|folder| folder.starts_with(root)).collect();
    folders.reverse();
    let read = |folder: &Path| {
        // A link may lead to another file of the project, and nowhere else.
        let path = ProjectPath::resolve(root, folder, INSTRUCTIONS).ok()?.path;
        let text = read_within(&path, MAX_INSTRUCTIONS).ok()?.ok()?;
        let place = folder.strip_prefix(root).ok()?.join(INSTRUCTIONS);
        Some(format!("# {} of this repository\n\n{}\n\n", place.display(), String::from_utf8_lossy(&text).trim()))
    };
    folders.into_iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_repositorys_instructions_come_before_the_charter_and_never_from_outside() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = dunce::canonicalize(folder.path()).expect("a path").join("project");
        let inner = root.join("a/b");
        fs::create_dir_all(&inner).expect("a folder");
        fs::write(root.join("AGENTS.md"), "Say please.\n").expect("a file");
        fs::write(root.join("a/AGENTS.md"), "x".repeat(40 << 10)).expect("a file");
        fs::write(inner.join("AGENTS.md"), "Say thanks.\n").expect("a file");
        fs::write(root.join("../AGENTS.md"), "Say nothing.\n").expect("a file");
        let opening =
            |tools| Opening { directory: inner.clone(), ..crate::engine::copilot::testing::opening("s", tools) };
        let (base, more) = texts(&root, &opening(ToolChoice::All));
        assert!(base.starts_with("# Team\n\n<system_notifications>"), "{base}");
        let place = Path::new("a/b/AGENTS.md").display().to_string();
        let expected = format!(
            "# AGENTS.md of this repository\n\nSay please.\n\n# {place} of this repository\n\nSay thanks.\n\n\
             You are Ada.\n\n# Decisions"
        );
        assert_eq!(more, expected);
        assert_eq!(
            texts(&root, &opening(ToolChoice::Nothing)),
            ("You are Ada.# Team# Decisions".to_owned(), String::new())
        );
        #[cfg(unix)]
        {
            fs::remove_file(inner.join("AGENTS.md")).expect("a file");
            std::os::unix::fs::symlink(root.join("../AGENTS.md"), inner.join("AGENTS.md")).expect("a link");
            assert!(!texts(&root, &opening(ToolChoice::All)).1.contains("nothing"));
        }
    }
}
