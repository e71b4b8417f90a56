//! What a person allows with "always", for the rest of a run.

use std::collections::BTreeSet;
use std::fmt;

use rable::{Node, NodeKind};

use super::shell::Script;
use super::shell_values::{Piece, pieces};
use crate::model::{Access, host_name, numeric_hosts};

/// A kind of request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AlwaysRule {
    /// Writing files of the project.
    Writes,
    /// Reaching a host, with its port if the address has one.
    Host(String),
    /// The first words of a command, and its options where others may do something else.
    Command(Vec<String>, BTreeSet<String>),
}

impl fmt::Display for AlwaysRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Writes => f.write_str("writes in this project"),
            Self::Host(host) => f.write_str(host),
            Self::Command(words, options) => {
                f.write_str(&words.join(" "))?;
                options.iter().try_for_each(|option| write!(f, " {option}"))
            }
        }
    }
}

/// Programs that run the code or the command in their arguments, reach another machine, edit by commands, or change who
/// may do what or how later commands run. Nobody can tell from the first words what comes later.
const NEVER: &str = "rm sudo doas su env command builtin exec eval source . nohup nice ionice time timeout xargs stdbuf \
    setsid busybox chroot flock watch parallel script ssh awk gawk mawk sed osascript cmd powershell pwsh dd tee trap alias \
    chmod chown kill at crontab export declare typeset readonly set unset cd pushd popd strace ltrace gdb taskset hyperfine \
    docker podman nerdctl kubectl helm psql mysql sqlite3 redis-cli mongosh scp sftp rsync nc ncat socat curl wget vi vim \
    nvim emacs ed ex less more man fd tsx ts-node tar unzip cpio 7z patch";
/// Programs that run a file of the project, or code: from an option or from their input.
pub(super) const INTERPRETERS: &str =
    "sh bash dash zsh ksh ash fish python pypy py node nodejs bun deno ruby perl php lua Rscript julia";
/// Programs whose second word is a program.
const LAUNCHERS: &str = "npx bunx pnpx uvx";
/// Second words behind which the name of a task or a program stands.
const TASKS: &str = "run run-script exec x dlx task tool -m";
/// Programs that build and test the project, and so run its code anyway, or only show: with them, other options are
/// allowed too. With all others, "always" covers the options of the command that was shown.
const OPEN: &str = "cargo go npm pnpm yarn npx bunx uv python pytest tox dotnet mvn gradle gradlew jest vitest mocha ruff \
    mypy eslint prettier tsc rspec bundle just ls cat head tail wc grep pwd echo diff";
/// Programs whose second word is the name of a group: the third says what is done.
const GROUPS: &str = "gh glab aws gcloud az terraform";
/// `find` with one of these does more than find. `git` does only these without more than its options.
const FIND_ACTS: &str = "-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls";
const GIT_SAFE: &str = "status diff log show blame add commit fetch grep shortlog describe rev-parse ls-files";

/// What "always" would cover for a request; a request of several parts needs each. `None`: it has to be asked each time.
/// `path` is where a write leads, relative to the project's root.
pub(crate) fn always_rules(
    access: Access,
    detail: &str,
    path: Option<&str>,
    project: &str,
) -> Option<BTreeSet<AlwaysRule>> {
    let only = |rule| BTreeSet::from([rule]);
    match access {
        Access::Write => path.filter(|path| is_plain_file(path)).map(|_| only(AlwaysRule::Writes)),
        Access::Network => host(detail)?.rule().map(only),
        Access::Shell => command_rules(detail, project),
        Access::Read | Access::Mcp | Access::Own | Access::Other => None,
    }
}

/// Hidden files and folders configure programs: `.squad`, hooks, workflows, editors.
fn is_plain_file(path: &str) -> bool {
    !path.is_empty() && !path.split(['/', '\\']).any(|part| part.starts_with('.'))
}

/// A host with the port that is reached there.
#[derive(Debug)]
pub(super) struct Host {
    /// More than one if programs read the address differently.
    pub(super) names: Vec<String>,
    pub(super) port: u16,
    has_usual_port: bool,
    has_user: bool,
    /// Every program reads it the same.
    pub(super) is_sure: bool,
}

/// The host that an address leads to.
pub(super) fn host(address: &str) -> Option<Host> {
    let address = address.trim().to_ascii_lowercase();
    let (rest, usual) = match address.strip_prefix("https://") {
        Some(rest) => (rest, 443),
        None => (address.strip_prefix("http://")?, 80),
    };
    let place = rest.split(['/', '?', '#']).next()?;
    let is_of_user = |c: char| c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:%".contains(c);
    let (has_user, place) = match place.split_once('@') {
        // Programs agree on where the host begins.
        Some((user, place)) if user.chars().all(is_of_user) => (true, place),
        Some(_) => return None,
        None => (false, place),
    };
    let (name, port) = match place.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) {
        Some((name, "")) => (name, usual),
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (name, port.parse().ok()?),
        Some(_) => return None,
        None => (place, usual),
    };
    let sure = host_name(name);
    let is_sure = sure.is_some();
    let names = sure.map_or_else(|| numeric_hosts(name), |name| vec![name]);
    let host = Host { names, port, has_usual_port: port == usual, has_user, is_sure };
    (!host.names.is_empty()).then_some(host)
}

impl Host {
    /// By which it is known in a rule.
    fn rule(&self) -> Option<AlwaysRule> {
        let name = self.names.first().filter(|_| self.is_sure && !self.has_user)?;
        Some(AlwaysRule::Host(if self.has_usual_port { name.clone() } else { format!("{name}:{}", self.port) }))
    }
}

/// A rule for each command of a line that consists of plain commands.
fn command_rules(line: &str, project: &str) -> Option<BTreeSet<AlwaysRule>> {
    let commands = plain_commands(line)?;
    let rule_of = |words: &Vec<String>| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if words.iter().any(|word| leads_outside(word, project)) { None } else { rule(&words) }
    };
    commands.iter().map(rule_of).collect()
}

/// The words of each command of a line that consists of plain commands: nothing in them is known only when they run, and
/// they write no file by a redirection. `None`: another line, or an empty one.
pub(super) fn plain_commands(line: &str) -> Option<Vec<Vec<String>>> {
    let script = Script::parse(line)?;
    let mut rest: Vec<&Node> = script.nodes.iter().collect();
    let mut commands = Vec::new();
    while let Some(node) = rest.pop() {
        match &node.kind {
            NodeKind::Command { assignments, words, redirects } => {
                if !assignments.is_empty() || !redirects.iter().all(goes_nowhere) {
                    return None;
                }
                commands.push(words.iter().map(literal).collect::<Option<_>>()?);
            }
            NodeKind::Pipeline { commands, .. } => rest.extend(commands),
            NodeKind::List { items } => rest.extend(items.iter().map(|item| &item.command)),
            NodeKind::Comment { .. } | NodeKind::Empty => {}
            _ => return None,
        }
    }
    (!commands.is_empty()).then_some(commands)
}

/// `2>&1`, `>/dev/null`
fn goes_nowhere(redirect: &Node) -> bool {
    let NodeKind::Redirect { op, target, .. } = &redirect.kind else { return false };
    let Some(target) = literal(target) else { return false };
    let is_descriptor = target.trim_start_matches('&').bytes().all(|byte| byte.is_ascii_digit());
    op.starts_with('>') && (target == "/dev/null" || op.contains('&') && is_descriptor)
}

/// A word that is known before the command runs.
fn literal(word: &Node) -> Option<String> {
    let texts = pieces(word).into_iter().map(|piece| match piece {
        Piece::Text(text) => Some(text),
        _ => None,
    });
    texts.collect()
}

/// Whether a word may name something outside of the project, or a hidden file in it, by itself or behind an option. What a
/// shell would make of a pattern is unknown.
fn leads_outside(word: &str, project: &str) -> bool {
    if word.contains(['*', '?', '[', '{']) {
        return true;
    }
    let named = match word.strip_prefix('-') {
        Some(option) => option.find(['=', '/', '~']).map_or("", |at| option[at..].trim_start_matches('=')),
        None => word.split_once('=').map_or(word, |(_, value)| value),
    };
    let is_below = |path: &str| path.strip_prefix(project).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let is_absolute = named.starts_with(['/', '\\']) || named.as_bytes().get(1) == Some(&b':');
    let is_hidden = |part: &str| part.starts_with('.') && part != "." && part != "...";
    // `-C.git`, `-t../x`
    let is_glued = word.strip_prefix('-').is_some_and(|option| {
        let letters = option.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        letters.len() < option.len() && is_hidden(letters)
    });
    named.starts_with('~')
        || named.split(['/', '\\', ',', ':', '=']).any(is_hidden)
        || is_glued
        || is_absolute && !named.contains("://") && !is_below(named)
}

/// Whether a list of words, with a space between each two, has this one.
pub(super) fn is_one_of(list: &str, word: &str) -> bool {
    let is_space = |at: Option<usize>| at.and_then(|at| list.as_bytes().get(at)).is_none_or(|byte| *byte == b' ');
    let is_whole = |(at, _): (usize, &str)| is_space(at.checked_sub(1)) && is_space(Some(at + word.len()));
    // Most words are in no list, and `contains` is fast.
    list.contains(word) && list.match_indices(word).any(is_whole)
}

/// A program's name without folder and version: `python3.11` is `python`.
pub(super) fn plain_name(program: &str) -> &str {
    let name = program.rsplit('/').next().unwrap_or(program);
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if plain.is_empty() { name } else { plain }
}

fn rule(words: &[&str]) -> Option<AlwaysRule> {
    let named = first_words(words)?;
    // Behind its targets, `make` takes assignments, also of the shell that it runs.
    if words.first().is_some_and(|program| plain_name(program) == "make") && words.iter().any(|word| word.contains('='))
    {
        return None;
    }
    let is_open = words.first().is_some_and(|program| is_one_of(OPEN, plain_name(program)));
    let mut options = BTreeSet::new();
    if !is_open {
        options.extend(words.iter().filter(|word| word.starts_with('-')).map(|word| (*word).to_owned()));
    }
    Some(AlwaysRule::Command(named, options))
}

/// The words by which a command is known: two, or three where the second says that the third is what is done.
fn first_words(words: &[&str]) -> Option<Vec<String>> {
    let (program, rest) = words.split_first()?;
    let name = plain_name(program);
    let second = rest.first().copied();
    let is_module = second == Some("-m") && name.starts_with("py");
    let is_interpreter = is_one_of(INTERPRETERS, name);
    // Behind an option nobody knows which word says what is done, but where options only say how to show something.
    let only_shows = is_one_of("ls cat head tail wc grep diff find", name);
    let is_hidden = match second {
        _ if is_one_of(NEVER, name) => true,
        None => is_interpreter || name == "make",
        _ if is_module => false,
        Some(second) if second.starts_with('-') => !only_shows || rest.iter().any(|word| is_one_of(FIND_ACTS, word)),
        Some(second) if is_interpreter => second == "eval" || second == "repl",
        Some(second) if name == "git" => !is_one_of(GIT_SAFE, second),
        Some(_) if name == "find" => rest.iter().any(|word| is_one_of(FIND_ACTS, word)),
        Some(second) if is_one_of(LAUNCHERS, name) => !is_named_program(second),
        Some(second) => second.starts_with('+'),
    };
    let count = match second {
        Some(second) if is_one_of(TASKS, second) => {
            // What runs has to have a name, and be none of those that hide what they run.
            let task = rest.get(1).filter(|task| !task.starts_with('-'))?;
            if !is_module && !is_named_program(task) {
                return None;
            }
            3
        }
        Some(_) if is_one_of(GROUPS, name) => 3,
        _ => 2,
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:@+=,%".contains(&byte);
    // An option among the first words stands in the place of what is done.
    let is_name = |word: &str| !word.is_empty() && word.bytes().all(is_plain) && (is_module || !word.starts_with('-'));
    let named = words.iter().take(if only_shows { 1 } else { count });
    let named: Vec<String> = named.map(|word| (*word).to_owned()).collect();
    (!is_hidden && named.iter().all(|word| is_name(word))).then_some(named)
}

/// Whether a program that another one starts is known by its name.
fn is_named_program(program: &str) -> bool {
    let name = plain_name(program);
    !program.starts_with('-') && !is_one_of(NEVER, name) && !is_one_of(INTERPRETERS, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROJECT: &str = "/home/ann/shop";

    fn named(line: &str) -> Option<Vec<String>> {
        let rules = always_rules(Access::Shell, line, None, PROJECT)?;
        Some(rules.iter().map(AlwaysRule::to_string).collect())
    }

    #[test]
    fn a_command_is_known_by_its_first_words() {
        for (line, rules) in [
            ("ls", &["ls"][..]),
            ("cargo test --lib card", &["cargo test"]),
            ("python3 -m unittest -v", &["python3 -m unittest"]),
            ("python3 tools/check.py", &["python3 tools/check.py"]),
            ("npm run test -- --watch=false", &["npm run test"]),
            ("npx eslint src", &["npx eslint"]),
            ("uv run pytest -q", &["uv run pytest"]),
            ("cargo test && cargo fmt", &["cargo fmt", "cargo test"]),
            ("cargo test 2>&1 | tail -5", &["cargo test", "tail"]),
            ("go test ./... -run X", &["go test"]),
            ("./gradlew test", &["./gradlew test"]),
            ("make test", &["make test"]),
            ("find . -name x", &["find -name"]),
            ("gh pr list --json x", &["gh pr list --json"]),
            ("git diff --stat", &["git diff --stat"]),
            ("cargo test >/dev/null 2>&1", &["cargo test"]),
            ("cargo test; cargo test --doc", &["cargo test"]),
            ("cat /home/ann/shop/a.txt", &["cat"]),
            ("git commit -m 'a b'", &["git commit -m"]),
        ] {
            assert_eq!(named(line).expect(line), rules, "{line}");
        }
    }

    #[test]
    fn what_may_do_anything_is_asked_each_time() {
        for line in [
            "",
            "rm a.txt",
            "cargo test && rm -rf target",
            "cargo test; rm a",
            "cargo test\nrm a",
            "cargo test | sh",
            "cargo test | sudo tee a",
            "cargo test $(rm a)",
            "cargo test `rm a`",
            "cargo test <(rm a)",
            "cargo test $FLAGS",
            "cargo test > notes.txt",
            "cargo test < notes.txt",
            "cargo test <<E\nrm\nE",
            "RUSTC=./evil cargo test",
            "(cargo test)",
            "for i in a; do cargo test; done",
            "f() { cargo test; }; f",
            "sh -c 'cargo test'",
            "bash -s",
            "bash",
            "node -e 'x'",
            "node --eval=x",
            "python3 -c 'x'",
            "python3 -",
            "python3",
            "perl -pe x a",
            "awk 'BEGIN { system(\"rm a\") }'",
            "sudo cargo test",
            "env cargo test",
            "xargs rm",
            "git push",
            "git -c alias.x=!rm x",
            "git config core.hooksPath hooks",
            "git diff --output=.git/hooks/pre-commit",
            "cp hook .GIT/hooks/pre-commit",
            "tar -xf a.tar -C.git",
            "cp -r h/hooks -t.git",
            "make test -C..",
            "make test SHELL=src/evil",
            "cp hook .gi[t]/hooks",
            "cp a.txt .squad/team.md",
            "git stash list",
            "git checkout main",
            "git ls-remote",
            "git init",
            "sed -n 1,5p README.md",
            "python3.11 -c 'print(1)'",
            "export CI=1",
            "uv run python check.py",
            "npx tsx check.ts",
            "cargo -q test",
            "cargo +nightly fmt",
            "kubectl -n shop get pods",
            "npm --prefix web test",
            "docker compose ps",
            "curl https://example.com",
            "rsync -a docs out",
            "rg -n x",
            "cd && tail -1 README.md",
            "find . -fprint0 x",
            "gh pr --repo x list",
            "tar xf a.tar",
            "python3 -m -c x",
            "find . -name a -delete",
            "find . -exec rm {} +",
            "uv run python -c x",
            "uv run --with x y",
            "npx rm a",
            "npx --package=x y",
            "npm run",
            "cat ../a",
            "cat ~/.ssh/id",
            "cat /etc/passwd",
            "cat /home/ann/shopping",
            "make -C/etc",
            "tar --directory=/etc x",
            "cp a b=../c",
            "./run*",
            "'a b' c",
            "cargo 't\u{202e}est'",
        ] {
            assert_eq!(named(line), None, "{line}");
        }
    }

    /// With programs that do nothing but build, test or show, other options are covered; with all others they are not.
    #[test]
    fn another_option_is_another_rule_where_it_may_do_something_else() {
        for (one, other, is_covered) in [
            ("cargo test --lib a", "cargo test --doc", true),
            ("tail -5 a", "tail -f b", true),
            ("git commit -m a", "git commit -m b", true),
            ("git commit -m a", "git commit -m b --no-verify", false),
            ("git diff", "git diff --output=x", false),
            ("git fetch", "git fetch --upload-pack=x", false),
            ("git grep x", "git grep --open-files-in-pager=x y", false),
            ("make test", "make test --eval=x", false),
            ("gh pr list", "gh pr merge 3", false),
            ("sort a", "sort a -o b", false),
        ] {
            assert_eq!(named(one).expect(one) == named(other).unwrap_or_default(), is_covered, "{one}: {other}");
        }
    }

    #[test]
    fn files_and_hosts_have_rules() {
        let write = |path| always_rules(Access::Write, "x", path, PROJECT).is_some();
        assert!(write(Some("src/a.rs")) && write(Some("hooks/use.ts")));
        for path in [".squad/team.md", ".github/workflows/x.yml", "a/.env", ".gitattributes", ""] {
            assert!(!write(Some(path)), "{path}");
        }
        assert!(!write(None), "outside");
        let reach = |address: &str| {
            always_rules(Access::Network, address, None, PROJECT)
                .map(|rules| rules.iter().map(AlwaysRule::to_string).collect::<String>())
        };
        assert_eq!(reach("https://API.example.com/a?b").as_deref(), Some("api.example.com"));
        assert_eq!(reach("http://localhost:8080").as_deref(), Some("localhost:8080"));
        assert_eq!(reach("https://[0:0::1]:443/a").as_deref(), Some("[::1]"));
        for address in [
            "",
            "api.example.com",
            "https://",
            "https://a@b",
            "http://127.1",
            "https://a%2eb",
            "https://a\\b",
            "file:///etc/passwd",
        ] {
            assert_eq!(reach(address), None, "{address}");
        }
        for access in [Access::Read, Access::Mcp, Access::Other] {
            assert_eq!(always_rules(access, "a", Some("a"), PROJECT), None);
        }
    }
}
