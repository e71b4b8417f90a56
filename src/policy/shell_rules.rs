//! Commands that are refused in every mode, because nobody can bring back what they destroy.
//!
//! The rules hold for the commands that a command line runs, wherever they stand in it, and not for its text. Where the
//! line hides what it runs, its text decides.

use std::cell::{Cell, OnceCell};

use super::paths::is_git;
use super::shell::Script;
use super::shell_values::Word;

const FORCED_PUSH: &str = "`git push` with force, a mirror or a `+` overwrites what others have pushed and is refused in \
                           every mode; push without it, or with --force-with-lease";
const RESET: &str = "`git reset --hard` discards changes that are in no commit and is refused in every mode; commit them, \
                     or `git stash` first";
const CLEAN: &str = "`git clean -f` deletes files that are in no commit and is refused in every mode; delete the files you \
                     made by their names";
const ALIAS: &str =
    "an alias on git's command line hides what it runs and is refused in every mode; write the command out";
const UNKNOWN: &str = "what this `rm -r` would delete is known only when it runs, so it is refused in every mode; name \
                       paths below the project's root, without `cd` and variables";
const HIDDEN: &str = "this command line hides what it runs, and names a command that is refused in every mode; write each \
                      command out in full";

/// Programs that run the command in their arguments.
pub(super) const WRAPPERS: [&str; 36] = [
    "env",
    "sudo",
    "doas",
    "su",
    "command",
    "builtin",
    "exec",
    "nohup",
    "nice",
    "ionice",
    "time",
    "timeout",
    "xargs",
    "stdbuf",
    "setsid",
    "busybox",
    "chroot",
    "flock",
    "watch",
    "parallel",
    "script",
    "strace",
    "unshare",
    "setpriv",
    "taskset",
    "chrt",
    "prlimit",
    "choom",
    "fakeroot",
    "systemd-run",
    "runuser",
    "pkexec",
    "nsenter",
    "xvfb-run",
    "entr",
    "toybox",
];
pub(super) const SHELLS: [&str; 11] =
    ["sh", "bash", "rbash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "csh", "tcsh"];
/// git's options that have the next word as their value.
pub(super) const GIT_WITH_VALUE: [&str; 9] = [
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--config-env",
    "--attr-source",
    "--shallow-file",
    "--super-prefix",
];
/// Scripts in scripts, and programs that run others.
pub(super) const MAX_DEPTH: usize = 8;
const MAX_FOLDERS: usize = 16;
/// Combinations of the values that a script's variables may have. Each is judged.
const MAX_VARIANTS: usize = 16;
/// Scripts in a line that are parsed.
const MAX_SCRIPTS: usize = 512;

/// Why a command line is refused in every mode; `None`: the mode decides. It runs in `project`, the project's root.
pub(crate) fn forbidden(command: &str, project: &str) -> Option<String> {
    let root = below(&[], project);
    let start = Folders { all: vec![root.clone()], are_known: true };
    let (variants_left, scripts_left) = (Cell::new(MAX_VARIANTS * MAX_VARIANTS), Cell::new(MAX_SCRIPTS));
    Judge { root, variants_left, scripts_left }.script(command, &start, 0)
}

/// Where commands may run: each `cd` adds folders.
#[derive(Clone)]
struct Folders {
    all: Vec<Vec<String>>,
    are_known: bool,
}

struct Judge {
    root: Vec<String>,
    /// Scripts in scripts multiply them.
    variants_left: Cell<usize>,
    /// What is more is judged by its text.
    scripts_left: Cell<usize>,
}

impl Judge {
    fn script(&self, source: &str, start: &Folders, depth: usize) -> Option<String> {
        let scripts_left = self.scripts_left.get();
        self.scripts_left.set(scripts_left.saturating_sub(1));
        let script = if depth < MAX_DEPTH && scripts_left > 0 { Script::parse(source) } else { None };
        let Some(script) = script else { return by_text(source) };
        if script.hides_commands && by_text(source).is_some() {
            return Some(HIDDEN.to_owned());
        }
        let left = self.variants_left.get();
        let variants = script.variants(MAX_VARIANTS.min(left));
        self.variants_left.set(left.saturating_sub(variants.len() - 1));
        let hidden = OnceCell::new();
        variants.iter().find_map(|variant| {
            let commands = script.commands(variant);
            let place = Place { judge: self, source, hidden: &hidden, folders: start.after(&commands), depth };
            commands.iter().find_map(|words| place.command(words))
        })
    }

    /// Whether a recursive deletion of this path is refused.
    fn deletion(&self, path: &str, folders: &Folders) -> Option<String> {
        let is_relative = !is_absolute(path);
        if is_relative && !folders.are_known {
            return Some(UNKNOWN.to_owned());
        }
        let what = |what: &str| Some(format!("`rm -r {path}` would delete {what}, and is refused in every mode"));
        folders.all.iter().find_map(|folder| {
            let full = below(folder, path);
            match full.strip_prefix(&*self.root) {
                _ if path.starts_with('~') => what("files outside of the project"),
                None if is_temporary(&full) && !self.root.starts_with(&full) => None,
                None => what("files outside of the project"),
                Some([]) => what("the whole project"),
                Some([only]) if only.trim_start_matches('.') == "*" => what("the whole project"),
                Some(inner) if inner.iter().any(|name| is_git(name)) => what("git's own files"),
                Some(_) => None,
            }
        })
    }
}

impl Folders {
    fn after(&self, commands: &[Vec<Word>]) -> Self {
        let mut found = self.clone();
        for words in commands {
            let [Some(program), arguments @ ..] = &words[..] else { continue };
            if !["cd", "pushd"].contains(&name_of(program)) {
                continue;
            }
            let target = arguments.iter().find(|word| word.as_deref().is_none_or(|word| !word.starts_with('-')));
            match target {
                Some(Some(path)) if !path.starts_with('~') && found.all.len() < MAX_FOLDERS => {
                    let more: Vec<_> = found.all.iter().map(|folder| below(folder, path)).collect();
                    found.all.extend(more);
                    found.all.sort();
                    found.all.dedup();
                }
                _ => found.are_known = false,
            }
        }
        found
    }
}

/// Where a command stands.
struct Place<'a> {
    judge: &'a Judge,
    source: &'a str,
    /// What the source's text says, which many commands may ask for.
    hidden: &'a OnceCell<Option<String>>,
    folders: Folders,
    depth: usize,
}

impl Place<'_> {
    fn command(&self, words: &[Word]) -> Option<String> {
        let (program, arguments) = words.split_first()?;
        let Some(program) = program else { return self.by_text() };
        match name_of(program) {
            "git" => self.git(arguments),
            "rm" => self.rm(arguments),
            "find" => self.find(arguments),
            "eval" => match arguments.iter().cloned().collect::<Option<Vec<String>>>() {
                Some(parts) => self.inner(&parts.join(" ")),
                None => self.by_text(),
            },
            shell if SHELLS.contains(&shell) => self.shell(arguments),
            wrapper if WRAPPERS.contains(&wrapper) => self.wrapped(wrapper, arguments),
            _ => None,
        }
    }

    /// A command in the arguments of another.
    fn run(&self, words: &[Word]) -> Option<String> {
        let depth = self.depth + 1;
        if depth >= MAX_DEPTH {
            return self.by_text();
        }
        let Self { judge, source, hidden, .. } = *self;
        Place { judge, source, hidden, folders: self.folders.clone(), depth }.command(words)
    }

    fn by_text(&self) -> Option<String> {
        self.hidden.get_or_init(|| by_text(self.source)).clone()
    }

    fn inner(&self, script: &str) -> Option<String> {
        self.judge.script(script, &self.folders, self.depth + 1)
    }

    /// A wrapper may run another one: what counts is the first other program in its arguments.
    fn wrapped(&self, wrapper: &str, arguments: &[Word]) -> Option<String> {
        let is_program =
            |word: &Word| ["git", "rm", "find", "eval"].contains(&called(word)) || SHELLS.contains(&called(word));
        let at = arguments.iter().position(is_program).unwrap_or(arguments.len());
        let (before, inner) = arguments.split_at(at);
        let mut inner = inner.to_vec();
        let reads = wrapper == "xargs" || before.iter().any(|word| called(word) == "xargs");
        if reads && !inner.is_empty() {
            // What it reads.
            inner.push(None);
        }
        // A shell is judged with its script.
        let shell = inner.split_first().filter(|(program, _)| SHELLS.contains(&called(program)));
        let told = shell.and_then(|(_, arguments)| told(arguments)?.as_ref());
        let mut scripts =
            arguments.iter().flatten().filter(|word| Some(*word) != told && word.contains(char::is_whitespace));
        self.run(&inner).or_else(|| scripts.find_map(|script| self.inner(script)))
    }

    fn shell(&self, arguments: &[Word]) -> Option<String> {
        match told(arguments) {
            Some(Some(script)) => return self.inner(script),
            Some(None) => return self.by_text(),
            None => {}
        }
        // Without a file it reads what to run.
        let has_file = arguments.iter().any(|word| word.as_deref().is_none_or(|word| !word.starts_with('-')));
        if has_file { None } else { self.by_text() }
    }

    fn find(&self, arguments: &[Word]) -> Option<String> {
        let is_place = |word: &&Word| word.as_deref().is_none_or(|word| !word.starts_with(['-', '(', '!']));
        let mut places: Vec<Word> = arguments.iter().take_while(is_place).cloned().collect();
        let mut rest = &arguments[places.len()..];
        if places.is_empty() {
            places.push(Some(".".to_owned()));
        }
        // What it finds is below them, whatever its name is.
        let found: Vec<Word> =
            places.iter().map(|place| place.as_ref().map(|place| format!("{place}/found*"))).collect();
        while let Some((word, after)) = rest.split_first() {
            rest = after;
            let refused = match word.as_deref() {
                Some("-delete") => self.recursive(&found),
                Some("-exec" | "-execdir" | "-ok" | "-okdir") => {
                    let is_end = |word: &Word| matches!(word.as_deref(), Some(";" | "+"));
                    let own = after.split(|word| is_end(word)).next().unwrap_or_default();
                    rest = &after[own.len()..];
                    let words: Vec<Word> = own
                        .iter()
                        .flat_map(|word| match word.as_deref() {
                            Some("{}") => found.clone(),
                            _ => vec![word.clone()],
                        })
                        .collect();
                    self.run(&words)
                }
                _ => None,
            };
            if refused.is_some() {
                return refused;
            }
        }
        None
    }

    fn rm(&self, arguments: &[Word]) -> Option<String> {
        let mut options =
            arguments.split(|word| word.as_deref() == Some("--")).next().unwrap_or_default().iter().flatten();
        let is_recursive = |word: &String| {
            is_cluster(word, 'r') || is_cluster(word, 'R') || word.len() > 2 && "--recursive".starts_with(&**word)
        };
        if !options.any(is_recursive) {
            return None;
        }
        let targets = arguments.iter().filter(|word| word.as_deref().is_none_or(|word| !word.starts_with('-')));
        self.recursive(&targets.cloned().collect::<Vec<_>>())
    }

    fn recursive(&self, targets: &[Word]) -> Option<String> {
        targets.iter().find_map(|target| match target {
            Some(path) => self.judge.deletion(path, &self.folders),
            None => Some(UNKNOWN.to_owned()),
        })
    }

    fn git(&self, arguments: &[Word]) -> Option<String> {
        let mut rest = arguments;
        let command = loop {
            let (word, after) = rest.split_first()?;
            rest = after;
            match word.as_deref() {
                None => return self.by_text(),
                Some(option) if GIT_WITH_VALUE.contains(&option) => {
                    let (value, after) = rest.split_first()?;
                    rest = after;
                    if value.as_deref().is_none_or(|value| value.to_lowercase().starts_with("alias.")) {
                        return Some(ALIAS.to_owned());
                    }
                }
                Some(option) if option.starts_with('-') => {}
                Some(command) => break command,
            }
        };
        let has = |is_meant: &dyn Fn(&str) -> bool| rest.iter().flatten().any(|word| is_meant(word));
        let refused = match command {
            "push" | "send-pack" | "http-push"
                if has(&|word| is_forced(word) || word == "--mirror" || word.starts_with('+')) =>
            {
                FORCED_PUSH
            }
            "reset" if has(&|word| word.len() > 3 && "--hard".starts_with(word)) => RESET,
            "clean" if has(&is_forced) => CLEAN,
            "push" | "send-pack" | "http-push" | "reset" | "clean" if rest.iter().any(Option::is_none) => {
                return self.by_text();
            }
            _ => return None,
        };
        Some(refused.to_owned())
    }
}

fn is_forced(word: &str) -> bool {
    is_cluster(word, 'f') || word == "--force"
}

/// Whether these are short options, with this one among them. What follows `-o` is its value.
pub(super) fn is_cluster(word: &str, option: char) -> bool {
    let Some(letters) = word.strip_prefix('-') else { return false };
    let is_plain = letters.chars().all(|c| c.is_ascii_alphanumeric());
    is_plain && letters.chars().take_while(|letter| *letter != 'o' || option == 'o').any(|letter| letter == option)
}

/// The word behind a shell's `-c`.
fn told(arguments: &[Word]) -> Option<&Word> {
    let at = arguments.iter().position(|word| word.as_deref().is_some_and(|word| is_cluster(word, 'c')))?;
    Some(arguments.get(at + 1).unwrap_or(&None))
}

fn called(word: &Word) -> &str {
    word.as_deref().map(name_of).unwrap_or_default()
}

pub(super) fn name_of(program: &str) -> &str {
    let name = file_of(program);
    name.strip_suffix(".exe").unwrap_or(name)
}

/// The last part of a program's path.
pub(super) fn file_of(program: &str) -> &str {
    let slash = program.bytes().rposition(|byte| b"/\\".contains(&byte));
    slash.map_or(program, |slash| &program[slash + 1..])
}

fn is_absolute(path: &str) -> bool {
    path.starts_with(['/', '\\', '~']) || path.get(1..2) == Some(":")
}

/// Whether a path is below a folder for temporary files. A pattern there may match other people's.
fn is_temporary(path: &[String]) -> bool {
    let below = match path {
        [tmp, below @ ..] if tmp == "tmp" => below,
        [var, tmp, below @ ..] if var == "var" && tmp == "tmp" => below,
        _ => return false,
    };
    below.first().is_some_and(|name| !name.contains(['*', '?', '[', '{']))
}

/// The parts of a path that is named in a folder.
fn below(folder: &[String], path: &str) -> Vec<String> {
    let mut parts = if is_absolute(path) { Vec::new() } else { folder.to_vec() };
    for part in path.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part.to_owned()),
        }
    }
    parts
}

/// For a command line that cannot be taken apart.
fn by_text(source: &str) -> Option<String> {
    let words: Vec<&str> =
        source.split(|c: char| !(c.is_alphanumeric() || "-+_".contains(c))).filter(|word| !word.is_empty()).collect();
    let has = |name: &str| words.iter().any(|word| word.trim_start_matches(['-', '+']) == name);
    let has_option = |options: &str| words.iter().any(|word| options.chars().any(|option| is_cluster(word, option)));
    let is_forced = source.contains("force") || has_option("f");
    let is_refused = (has("push") || has("send-pack") || has("http-push"))
        && (is_forced || source.contains("mirror") || words.iter().any(|word| word.starts_with('+')))
        || has("reset") && source.contains("hard")
        || has("clean") && is_forced
        || has("rm") && (source.contains("recursive") || has_option("rR"));
    is_refused.then(|| HIDDEN.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_cannot_be_brought_back_is_refused_however_it_is_written() {
        for command in [
            "git push --force",
            "git push -f origin main",
            "git  push\t-uf origin main",
            "git push origin +main",
            "git push --mirror",
            "git send-pack --force origin main",
            "git http-push https://example.com/a.git +main",
            "git send-pack $X --force",
            "git -C sub -c a.b=c push 'origin' \"--for\"ce",
            "/usr/bin/git push -f",
            "cargo test && git push -f || true",
            "(cd sub; git push -f) | tee log",
            "echo $(git push --force)",
            "echo \"`git push --force`\"",
            "sh -c 'git push -f'",
            "bash -lc \"cd sub && git push --force\"",
            "env A=b sudo -u me git push -f",
            "env -S 'git push -f'",
            "timeout 5 git push -f",
            "eval git push -f",
            "f() { git push -f; }; f",
            "if true; then git push -f; fi",
            "F=--force; git push $F",
            "git $(echo push) --force",
            "$GIT push --force",
            "echo 'git push -f' | sh",
            "cat <<E | sh\ngit push --force\nE",
            "${x:-$(git push --force)}",
            "git -c alias.p='push -f' p",
            "git push --force; if",
            "git  reset  --hard",
            "git reset HEAD~1 --ha",
            "git clean -fdx",
            "git clean --force",
        ] {
            assert!(forbidden(command, "/home/ann/shop").is_some(), "{command}");
        }
    }

    #[test]
    fn nothing_outside_of_the_project_is_deleted_with_all_that_is_in_it() {
        for command in [
            "rm -rf /",
            "rm -fr /home/ann/other",
            "rm -r -f ../other",
            "rm --recursive src/../..",
            "rm --rec src/../..",
            "rm -Rf ~/x",
            "rm -rf \"$HOME\"",
            "rm -rf $(pwd)/..",
            "rm -rf 'src'/../../x",
            "rm src -r -- /var/x",
            "rm -rf /tmp",
            "rm -rf /tmp/*",
            "rm -rf /tmp/x/../../etc",
            "rm -rf .",
            "rm -rf *",
            "rm -rf .*",
            "rm -rf src/../.*",
            "rm -rf ./",
            "rm -rf .git",
            "rm -rf src/../.GIT/hooks",
            "rm -rf vendor/lib/.git",
            "rm -rf .git./hooks",
            "cd /opt && rm -rf build",
            "cd src; cd ../..; rm -rf x",
            "cd $x && rm -rf build",
            "cd - && rm -rf build",
            "cd /opt && sh -c 'rm -rf build'",
            "sudo rm -rf /var/lib",
            "echo /x | xargs rm -rf",
            "find /tmp -name x -exec rm -rf {} +",
            "find / -delete",
            "cd .. && find -delete",
            "for d in a ..; do rm -rf $d; done",
            "for d in *; do rm -rf $d; done",
            "for d in $(ls); do rm -rf $d; done",
            "D=; rm -rf \"$D/\"",
            "D=build; D=..; rm -rf \"$D\"",
            "rm -rf $D; D=build",
            "D=$(mktemp -d); rm -rf $D/../../x",
            "D=$(mktemp -d); rm -rf $D/..",
            "D=/opt; cd $D && rm -rf build",
            "D=..; sh -c \"rm -rf $D\"",
            "D=build; sh -c 'rm -rf $D'",
            "rm -rf {a,..}",
        ] {
            assert!(forbidden(command, "/home/ann/shop").is_some(), "{command}");
        }
        assert!(forbidden("rm -rf /tmp/a", "/tmp/a/repo").is_some());
    }

    #[test]
    fn other_commands_are_for_the_mode_to_decide() {
        for command in [
            "rm -rf /tmp/build /var/tmp/x",
            "cd /tmp/x && rm -rf build",
            "",
            "cargo test",
            "echo \"git push --force\"",
            "git commit -m 'git reset --hard'",
            "grep -rf patterns src",
            "git push",
            "git push --force-with-lease origin topic",
            "git send-pack origin main",
            "git push -o ci.skip origin main",
            "git reset --soft HEAD~1",
            "git clean -n",
            "git log --format=%h push",
            "rm a.txt",
            "rm -f /tmp/x",
            "rm -rf target",
            "rm -rf ./target/debug dist/*",
            "rm -rf /home/ann/shop/target",
            "cd sub && rm -rf node_modules",
            "sh -c 'cargo test'",
            "sh build.sh -f",
            "echo $((1 + 2)) > a",
            "git push origin $BRANCH",
            "find . -name node_modules -exec rm -rf {} +",
            "find . -name '*.orig' -delete",
            "xargs cargo test < list",
            "$EDITOR a.txt",
            "D=$(mktemp -d); cp a \"$D\"; rm -rf \"$D\"",
            "D=$(mktemp -d) && cd $D && rm -rf build",
            "for d in build dist; do rm -rf \"$d\"; done",
            "bash -c 'for d in a b; do rm -rf $d/target; done'",
            "if",
        ] {
            assert_eq!(forbidden(command, "/home/ann/shop"), None, "{command}");
        }
    }

    #[test]
    fn scripts_in_scripts_come_to_an_end() {
        let nested = (0..12).fold("true".to_owned(), |inner, _| format!("sh -c {inner:?}"));
        assert_eq!(forbidden(&nested, "/home/ann/shop"), None);
        let many = "cd a;".repeat(5_000) + "rm -rf b";
        assert!(forbidden(&many, "/home/ann/shop").is_some());
        let all = "0 1 2 3 4 5 6 7 8 9 a b c d e f";
        let nested = (0..6).fold("rm -rf $d".to_owned(), |inner, _| format!("for d in {all}; do eval {inner:?}; done"));
        assert!(forbidden(&nested, "/home/ann/shop").is_some());
        let assigned = format!("D={}; ", "x".repeat(250)) + &"use $D; ".repeat(1_900);
        assert_eq!(forbidden(&assigned, "/home/ann/shop"), None);
        for opening in ["$(", "{ ", "(", "`", "! ", "if ", "x=(", "${x:-", "while ", "$((", "[[ ( ", "time "] {
            for count in [39, 20_000] {
                let deep = opening.repeat(count) + "rm -rf /";
                assert!(forbidden(&deep, "/home/ann/shop").is_some(), "{deep:.80}");
            }
        }
    }

    /// Each of these asks the same of the whole line again and again: it took seconds, and minutes without optimization.
    #[test]
    fn many_commands_take_no_more_than_their_number() {
        let many = |command: &dyn Fn(usize) -> String| (0..1_900).map(command).collect::<Vec<_>>().join("; ");
        for line in [
            many(&|_| "git push $X".to_owned()),
            many(&|n| format!("X{n}=a")),
            many(&|n| format!("sudo env sh -c 'x {n}'")),
            many(&|_| "find . -exec $X +".to_owned()),
        ] {
            assert_eq!(forbidden(&line, "/home/ann/shop"), None, "{line:.60}");
            assert!(forbidden(&format!("{line}; git push -f"), "/home/ann/shop").is_some(), "{line:.60}");
        }
    }

    /// However many wrappers stand before a command, it is that which is judged, and each script in it.
    #[test]
    fn wrappers_in_wrappers_hide_nothing() {
        for (command, is_refused) in [
            ("g\\it pu\\sh -f", true),
            ("sh -c 'g\\it pu\\sh -f'", true),
            ("sh x.sh 'g\\it pu\\sh -f'", true),
            ("xargs rm -r", true),
            ("git commit -m 'reset --hard, then push -f and rm -r'", false),
            ("sh -c 'echo rm -r; echo clean -f'", false),
        ] {
            for count in [1, 7, 8, 20] {
                let line = format!("{}{command}", "nice sudo ".repeat(count));
                assert_eq!(forbidden(&line, "/home/ann/shop").is_some(), is_refused, "{line}");
            }
        }
    }

    #[test]
    fn many_programs_that_run_others_exhaust_nothing() {
        let hidden = "$x; ".repeat(1_900) + &"x".repeat(10 << 20);
        assert_eq!(forbidden(&hidden, "/home/ann/shop"), None);
        for runner in ["env ", "find . -exec ", "sudo env ", "find . -exec env "] {
            let many = runner.repeat(3_000);
            assert!(forbidden(&format!("{many} git push -f"), "/home/ann/shop").is_some(), "{runner}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_an_answer(text in "[a-z '\"$(){}|;&<>`\\\\\n*-]{0,60}|\\PC{0,40}") {
            let _ = forbidden(&text, "/home/ann/shop");
            let _ = forbidden(&format!("git push -f\n{text}"), "/home/ann/shop");
        }
    }
}
