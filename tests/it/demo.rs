use crate::support::TestRepo;

#[test]
fn the_demo_shows_a_team_at_work_and_leaves_its_folder_to_look_at() {
    let repo = TestRepo::folder();
    let output = repo.squad(&["demo"]);
    assert_eq!(output.code, 0, "{output}");
    assert!(output.out.contains("squad: decide: GET /health answers"), "{output}");
    assert!(output.out.starts_with("The service has a health endpoint."), "{output}");
    for line in
        ["Plan  1 backend, tester, docs   2 reviewer   tier standard", "✓ reviewer  approved", " landed on main: "]
    {
        assert!(output.err.contains(line), "{line}: {output}");
    }
    let folder = output.err.lines().next().and_then(|line| line.rsplit_once(": ")).map(|(_, folder)| folder.to_owned());
    let folder = std::path::PathBuf::from(folder.expect("the folder is named"));
    assert!(folder.join("app/health.py").is_file() && folder.join("docs/health.md").is_file());
    let listed = repo.squad_in(&folder, &["decisions", "list"]);
    assert!(listed.out.contains("in force"), "{listed}");
    std::fs::remove_dir_all(folder).expect("it is ours");
}

/// As in an image for builds, where variables are set and empty.
#[test]
fn the_demo_needs_no_name() {
    let mut repo = TestRepo::folder();
    for name in ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"] {
        repo.variables.insert(name.to_owned(), String::new());
    }
    let output = repo.squad(&["demo"]);
    assert!(output.code == 0 && output.err.contains(" landed on main: "), "{output}");
    let folder = output.err.lines().next().and_then(|line| line.rsplit_once(": ")).map(|(_, folder)| folder.to_owned());
    remove(&folder.expect("the folder is named"));
}

/// What it ends with can be typed as it stands, whether `squad` is on the `PATH` or not.
#[cfg(unix)]
#[test]
fn the_commands_it_ends_with_work_in_that_shell() {
    let repo = TestRepo::folder();
    let output = repo.squad(&["demo"]);
    let (_, next) = output.err.split_once("Where to look next:\n").expect("it says where to look");
    let commands: Vec<&str> = next.lines().map(|line| line.trim().split("  ").next().expect("a command")).collect();
    assert_eq!(commands.len(), 6, "{output}");
    let done = repo.command("sh", &repo.root()).args(["-e", "-c", &commands.join("\n")]).output().expect("a shell");
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
    assert!(said.contains("GET /health answers 200 or 503"), "{said}");
    remove(commands[0].strip_prefix("cd ").expect("it is the first"));
}

/// A git that packs the repository in the background may still write there.
fn remove(folder: &str) {
    let is_gone = || std::fs::remove_dir_all(folder).is_ok() || !std::path::Path::new(folder).exists();
    for _ in 0..500 {
        if is_gone() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(is_gone(), "{folder} stays");
}
