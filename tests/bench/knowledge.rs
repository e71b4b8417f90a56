//! A search in ten thousand notes, of the project itself and of a linked one, against `git grep` in the same files.

use std::fs;
use std::path::Path;

use crate::{SQUAD, compare, run, stream};

const NOTES: usize = 10_000;

pub(crate) fn bench() {
    println!("\n{:<48} {:>10} {:>10} {:>7}", format!("{NOTES} notes"), "squad", "peer", "ratio");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (noted, linked) = (folder.path().join("noted"), folder.path().join("linked"));
    for repo in [&noted, &linked] {
        fs::create_dir(repo).expect("a folder");
        run(repo, "git", &["init", "--quiet", "--initial-branch=main"]);
        run(repo, "git", &["config", "user.name", "bench"]);
        run(repo, "git", &["config", "user.email", "bench@example.com"]);
    }
    stream(&noted, &notes());
    run(&noted, "git", &["reset", "--quiet", "--hard"]);
    run(&linked, SQUAD, &["--quiet", "init"]);
    // The user's own configuration, as an approved repository's would be.
    let config = folder.path().join("config/squad");
    fs::create_dir_all(&config).expect("a folder");
    fs::write(config.join("config.toml"), format!("[links.noted]\ngit = {:?}\n", noted.display().to_string()))
        .expect("a file");
    // SAFETY: this program has one thread.
    #[expect(unsafe_code, reason = "the commands of this benchmark inherit it")]
    unsafe {
        std::env::set_var("XDG_CONFIG_HOME", folder.path().join("config"));
    }
    run(&linked, SQUAD, &["sync", "--links", "--quiet"]);
    // Files as new as this are not yet trusted to be unchanged by their looks alone.
    std::thread::sleep(std::time::Duration::from_millis(2_100));
    run(&noted, SQUAD, &["knowledge", "search", "token 77", "--quiet"]);
    for (what, words) in [("of a few notes", "Rotate the token of part 77"), ("of many", "token service")] {
        search(&noted, &format!("search {what}, own, and `git grep`"), words, &noted);
        search(&linked, &format!("search {what}, linked, and `git grep`"), words, &noted);
    }
    compare(&linked, "`agents`, linked, and `git status`", &["agents"], ("git", &["status"]));
}

fn search(repo: &Path, what: &str, words: &str, peer: &Path) {
    let peer = peer.display().to_string();
    let grep = ["-C", peer.as_str(), "grep", "-i", "-l", "-e", "token", "--", ".squad/knowledge"];
    compare(repo, what, &["knowledge", "search", words], ("git", &grep));
}

/// For `git fast-import`: one commit of a small team and its notes.
fn notes() -> String {
    let mut stream =
        String::from("commit refs/heads/main\ncommitter a <a@example.com> 1767600000 +0000\ndata 5\nnotes\n");
    let mut add = |path: String, text: String| {
        stream.push_str(&format!("M 100644 inline {path}\ndata {}\n{text}\n", text.len()));
    };
    add(".squad/team.md".to_owned(), "| Name | Role | Status |\n|---|---|---|\n| Ada | Dev | Active |\n".to_owned());
    for number in 0..NOTES {
        let (id, part, day) = (format!("{number:012x}"), number % 400, 1 + number % 28);
        let text = format!(
            "---\nid: \"{id}\"\ndate: \"2026-01-{day:02}\"\nby: \"ann\"\nkind: practice\nproject: noted\ntags: [part{part}]\n---\n\
             # Rotate what part {part} keeps, number {number}\n\n{}",
            "Each service renews its token before it expires, and the old one is refused after a minute.\n".repeat(3)
        );
        add(format!(".squad/knowledge/2026/01/{day:02}-rotate-{id}.md"), text);
    }
    stream
}
