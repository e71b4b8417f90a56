//! What it costs to judge a call of an agent by sixty rules, beside 50 µs.

use std::fs::{self, File};
use std::process::Command;
use std::time::Duration;

use crate::{SQUAD, median, print, run};

const TARGET: Duration = Duration::from_micros(50);

/// As agents write them.
const COMMANDS: [&str; 8] = [
    "ls -la src",
    "git status --short && git diff --stat",
    "cargo test --workspace --locked -- --nocapture 2>&1 | tail -40",
    "cd web && npm ci && NODE_ENV=test npx vitest run --coverage || true",
    "for file in $(git ls-files '*.rs'); do rustfmt --check \"$file\" || exit 1; done",
    "sudo -u ci env A=1 sh -c 'git push \"$(git remote | head -1)\" --force' | tee /tmp/log",
    "python3 - <<'EOT'\nimport json\nprint(json.dumps({'a': 1}))\nEOT",
    "find . -name '*.orig' -print0 | xargs -0 rm -f -- && kubectl --context prod apply -f deploy/",
];
const PATHS: [&str; 4] =
    ["src/main.rs", "infra/prod/main.tf", "web/src/components/Login.tsx", "../elsewhere/secret.pem"];

pub(crate) fn bench() {
    println!("\n{:<48} {:>10} {:>10} {:>7}", "a call judged by 60 rules", "squad", "target", "ratio");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let repo = folder.path();
    run(repo, "git", &["init", "--quiet", "--initial-branch=main"]);
    run(repo, SQUAD, &["--quiet", "init", "--no-commit"]);
    let list = |count: usize, item: &dyn Fn(usize) -> String| (0..count).map(item).collect::<Vec<_>>();
    let rules = format!(
        "[policy]\ncommands.deny = {:?}\ncommands.ask = {:?}\nwrites.deny = {:?}\nhosts.deny = {:?}\n",
        list(20, &|n| format!("tool{n} push")),
        list(15, &|n| format!("kubectl delete {n}")),
        list(15, &|n| format!("infra/{n}/**/*.{{tf,pem}}")),
        list(10, &|n| format!("*.bad{n}.example")),
    );
    fs::write(repo.join(".squad/config.toml"), rules).expect("a file");
    let one_line = |command: &str| command.replace('\n', "; ");
    for (what, lines) in [
        ("a command, median", COMMANDS.map(one_line).to_vec()),
        ("a path, median", PATHS.map(|path| format!("write {path}")).to_vec()),
        ("a command of 64 KiB, median", vec![format!("echo {}", "'a b' ".repeat(11_000))]),
    ] {
        let input = repo.join("lines");
        let times = if lines.len() == 1 { 20 } else { 500 };
        fs::write(&input, format!("{}\n", lines.join("\n")).repeat(times)).expect("a file");
        let mut command = Command::new(SQUAD);
        command.arg("bench-policy").current_dir(repo).stdin(File::open(&input).expect("a file"));
        let done = command.output().expect("squad runs");
        assert!(done.status.success(), "bench-policy: {}", String::from_utf8_lossy(&done.stderr));
        let text = String::from_utf8(done.stdout).expect("UTF-8");
        let nanos = text.lines().filter_map(|line| line.split(' ').next()?.parse().ok());
        let mut times: Vec<Duration> = nanos.map(Duration::from_nanos).collect();
        print(what, median(times.clone()), TARGET);
        let of_line = |line: usize| median(times.iter().copied().skip(line).step_by(lines.len()).collect());
        let slowest = (0..lines.len()).map(of_line).max().unwrap_or_default();
        if lines.len() > 1 {
            print(&what.replace("median", "the slowest line's median"), slowest, TARGET);
        }
        times.sort();
        print(&what.replace("median", "99th percentile"), times[times.len() * 99 / 100], TARGET);
    }
}
