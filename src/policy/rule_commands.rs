//! Which commands of a line a rule of `[policy]` is about.
//!
//! A rule that allows has to be sure, and one that denies must not be evaded by another way to write the same: the first
//! matches plain commands only, the second whatever may be such a command, wherever it stands in the line. Where it is not
//! sure that it is one, a person is asked.

use std::collections::HashSet;
use std::ops::Range;

use super::always::{INTERPRETERS, is_one_of, plain_commands, plain_name};
use super::code::may_run_others;
use super::shell::{HereText, Script};
use super::shell_rules::{GIT_WITH_VALUE, MAX_DEPTH, SHELLS, WRAPPERS, file_of, is_cluster, name_of};
use super::shell_values::Word;

/// Combinations of the values of a script's variables.
const MAX_VARIANTS: usize = 16;
/// Scripts in a line, in one another or side by side.
const MAX_SCRIPTS: usize = 64;
/// Arguments of a program that runs another.
const MAX_WRAPPED: usize = 64;
/// Words of a text between a program's name and what it is to do.
const MAX_APART: usize = 6;

/// Programs that run the command behind this option of theirs, and no other of their arguments.
const FINDERS: [&str; 2] = ["find", "fd"];
const FINDERS_OPTIONS: [&str; 8] = ["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];
/// Wrappers whose first argument is none of the command's words.
const WITH_OPERAND: [&str; 6] = ["timeout", "flock", "chroot", "taskset", "chrt", "ssh"];
/// Wrappers' options that have the next word as their value.
const WITH_VALUE: [(&str, &str); 12] = [
    ("xargs", "-P -n -L -d -a -s -E -I -J"),
    ("sudo", "-u -g -h -p -C -r -t -U"),
    ("nice", "-n"),
    ("timeout", "-k -s"),
    ("env", "-u -C"),
    ("doas", "-u -C"),
    ("runuser", "-u -g -G"),
    ("watch", "-n"),
    ("strace", "-o -e -p -s -u"),
    ("ionice", "-c -n -p -t"),
    ("stdbuf", "-i -o -e"),
    ("flock", "-w -E"),
];
/// Wrappers that give one of their arguments to a shell.
const TAKES_SCRIPT: [&str; 6] = ["ssh", "su", "watch", "parallel", "script", "flock"];
/// These are told what to run as a script, which is parsed.
const TAKES_PARSED: [&str; 6] = ["eval", "trap", "source", ".", "alias", "git"];
/// Programs that run none of their arguments. Any other one may: `poetry run git push`.
const PLAIN: &str = "echo printf cat ls head tail wc grep egrep fgrep rg ag cd pushd popd pwd mkdir rmdir touch cp mv rm \
                     ln chmod chown test [ [[ true false exit return which type whereis diff cmp sort uniq cut tr jq \
                     stat file du df sleep export set unset read tee date basename dirname realpath readlink kill ps";
/// With these among its arguments, git runs others of them.
const GIT_RUNS: &str = "submodule bisect filter-branch difftool mergetool -x --exec";
/// What else sends commits or their objects to a remote: a rule on `git push` is about these too.
const PUSHES: [&[&str]; 4] = [&["send-pack"], &["http-push"], &["subtree", "push"], &["lfs", "push"]];
/// git's own commands, the usual ones first. Any other one may be an alias, which runs whatever somebody's configuration says.
const GIT_OWN: &str = "status diff log add commit show push pull fetch checkout switch restore branch merge rebase \
    stash reset rm mv grep ls-files rev-parse am annotate apply archimport archive backfill bisect blame bugreport \
    bundle cat-file check-attr check-ignore check-mailmap check-ref-format checkout-index cherry cherry-pick citool \
    clean clone column commit-graph commit-tree config count-objects credential credential-cache credential-store \
    cvsexportcommit cvsimport cvsserver daemon describe diagnose diff-files diff-index diff-pairs diff-tree difftool \
    fast-export fast-import fetch-pack filter-branch fmt-merge-msg for-each-ref format-patch fsck \
    fsck-objects gc get-tar-commit-id gui hash-object help history hook http-backend http-fetch http-push imap-send \
    index-pack init init-db instaweb interpret-trailers last-modified lfs ls-remote ls-tree mailinfo mailsplit \
    maintenance merge-base merge-file merge-index merge-one-file merge-tree mergetool mktag mktree multi-pack-index \
    name-rev notes p4 pack-objects pack-refs patch-id prune prune-packed quiltimport range-diff read-tree \
    receive-pack reflog refs remote repack replace replay repo request-pull rerere rev-list revert scalar send-email \
    send-pack shell shortlog show-branch show-index show-ref sparse-checkout stage stripspace submodule subtree svn \
    symbolic-ref tag unpack-file unpack-objects update-index update-ref update-server-info upload-archive upload-pack \
    var verify-commit verify-pack verify-tag version whatchanged worktree write-tree";
/// Ends of the names of variables, and of git's options, whose values are run.
const RUN_NAMES: [&str; 12] = [
    "EDITOR",
    "PAGER",
    "COMMAND",
    "ASKPASS",
    "GIT_SSH",
    "EXTERNAL_DIFF",
    "BROWSER",
    "LESSOPEN",
    "LESSCLOSE",
    "-pack",
    "--exec",
    "-cmd",
];
/// Such names that others end in, too.
const RUN_WHOLE_NAMES: [&str; 6] = ["BASH_ENV", "LESS", "MAKEFLAGS", "PS4", "VISUAL", "--open-files-in-pager"];

/// Whether a line consists of plain commands, each of which begins with the words of one of these.
pub(super) fn are_covered(line: &str, patterns: &[&str]) -> bool {
    let begins = |command: &Vec<String>, pattern: &str| {
        let mut words = pattern.split_whitespace();
        let mut own = command.iter();
        // Another file of the same name is another program.
        let is_it = own.next().map(|program| plain(program)) == words.next().map(plain);
        is_it && !command.is_empty() && words.all(|word| own.next().is_some_and(|own| own == word))
    };
    let is_covered = |command: &Vec<String>| patterns.iter().any(|pattern| begins(command, pattern));
    plain_commands(line).is_some_and(|commands| commands.iter().all(is_covered))
}

/// The words of each command that a line runs, with `?` for what is known only then; in scripts and wrappers too.
pub(crate) fn commands_in(line: &str) -> Vec<Vec<String>> {
    let words =
        |command: Command| command.words.into_iter().map(|word| word.unwrap_or_else(|| "?".to_owned())).collect();
    let all = Commands::of(line).all.into_iter();
    let is_sure = |program: &Program| program.at == 0 && program.sure == Found::Surely;
    all.filter(|command| command.programs.first().is_some_and(is_sure)).map(words).collect()
}

fn plain_path(path: &str) -> &str {
    path.strip_prefix("./").unwrap_or(path)
}

fn plain(program: &str) -> &str {
    program.strip_prefix("./").filter(|rest| rest.contains('/')).unwrap_or(program)
}

/// Whether a shell may make another word of it.
fn is_pattern(word: &str) -> bool {
    !["[", "[["].contains(&word) && word.contains(['*', '?', '[', '{'])
}

/// Whether a line runs what a pattern means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Found {
    No,
    Maybe,
    Surely,
}

/// What a line may run.
#[derive(Debug, Default)]
pub(super) struct Commands {
    /// A program and its arguments each.
    all: Vec<Command>,
    /// What programs get to read or to run, in whatever language.
    texts: Vec<Text>,
    /// Something in it is known only when it runs.
    pub(super) hides_some: bool,
    /// The scripts so far, and how sure it is that they run: wrappers in wrappers name the same one.
    scripts: Vec<(String, Found)>,
    /// Files that it writes, and what it may write into them.
    written: Vec<String>,
    contents: Vec<String>,
}

#[derive(Debug)]
struct Command {
    words: Vec<Word>,
    programs: Vec<Program>,
}

impl Command {
    /// The files that it runs, or that a shell or another interpreter of its may run.
    fn files(&self) -> impl Iterator<Item = &str> {
        let reads_files = |name: &str| {
            SHELLS.contains(&name)
                || ["source", ".", "make"].contains(&name)
                || is_one_of(INTERPRETERS, plain_name(name))
        };
        let reader = self.programs.iter().find(|program| reads_files(&program.name));
        let read = &self.words[reader.map_or(self.words.len(), |program| program.at + 1)..];
        let run = self.programs.iter().filter(|program| program.sure == Found::Surely);
        run.map(|program| &self.words[program.at]).chain(read).flatten().map(|word| plain_path(word))
    }
}

/// A word that may be the program of a command with the words behind it.
#[derive(Debug)]
struct Program {
    at: usize,
    name: String,
    sure: Found,
}

/// A text, taken apart once for all rules.
#[derive(Debug)]
struct Text {
    text: String,
    lower: String,
    /// Where each word is, and the name of the program that it may be.
    words: Vec<(Range<usize>, Range<usize>)>,
}

impl Text {
    fn new(text: String) -> Self {
        let lower = text.to_ascii_lowercase();
        let is_part = |c: char| c.is_alphanumeric() || "-_+./\\".contains(c);
        let mut words = Vec::new();
        let mut at = 0;
        for word in lower.split_inclusive(|c| !is_part(c)) {
            let (start, part) = (at, word.trim_end_matches(|c| !is_part(c)));
            at += word.len();
            if !part.is_empty() {
                let name = name_of(part);
                let begin = start + part.rfind(['/', '\\']).map_or(0, |slash| slash + 1);
                words.push((start..start + part.len(), begin..begin + name.len()));
            }
        }
        Self { text, lower, words }
    }
}

impl Commands {
    pub(super) fn of(line: &str) -> Self {
        let mut found = Self::default();
        found.script(line, 0, Found::Surely);
        // `cat > x <<E … E; sh x`
        let run: HashSet<&str> = match found.written.is_empty() {
            true => HashSet::new(),
            false => found.all.iter().flat_map(Command::files).collect(),
        };
        if found.written.iter().any(|file| run.contains(plain_path(file))) {
            let contents = std::mem::take(&mut found.contents);
            found.texts.extend(contents.into_iter().map(Text::new));
        }
        found
    }

    /// Whether one of them is a command that begins with a pattern's words, with options between them.
    pub(super) fn include(&self, pattern: &CommandPattern) -> Found {
        let of_program = |Command { words, .. }: &Command, program: &Program| {
            let arguments = &words[program.at + 1..];
            if program.name == pattern.program {
                return pattern.goes_on(arguments).min(program.sure);
            }
            // `git-lfs push` is `git lfs push`.
            let after = if pattern.program == "git" { program.name.strip_prefix("git-") } else { None };
            let Some(first) = after else { return Found::No };
            let arguments: Vec<Word> =
                std::iter::once(Some(first.to_owned())).chain(arguments.iter().cloned()).collect();
            pattern.goes_on(&arguments).min(program.sure)
        };
        let of_command = |command: &Command| command.programs.iter().map(|program| of_program(command, program)).max();
        let found = self.all.iter().filter_map(of_command).max().unwrap_or(Found::No);
        let is_in_text = || self.texts.iter().any(|text| pattern.is_named_in(text));
        if found == Found::No && is_in_text() { Found::Maybe } else { found }
    }

    fn script(&mut self, source: &str, depth: usize, sure: Found) {
        if self.scripts.iter().any(|(known, as_surely)| known == source && *as_surely >= sure) {
            return;
        }
        let is_bounded = depth < MAX_DEPTH && self.scripts.len() < MAX_SCRIPTS;
        if is_bounded {
            self.scripts.push((source.to_owned(), sure));
        }
        let script = if is_bounded { Script::parse(source) } else { None };
        let Some(script) = script else {
            self.hides_some = true;
            return;
        };
        self.hides_some |= script.hides_commands;
        for variant in script.variants(MAX_VARIANTS) {
            script.assigned(&variant).for_each(|(name, value)| self.variable(name, value));
            for (at, words) in script.commands(&variant).into_iter().enumerate() {
                let read = script.read.iter().filter(|(place, _)| *place == at);
                let read: Vec<&HereText> = read.map(|(_, text)| text).collect();
                let files = script.written.iter().filter(|(place, _)| *place == at);
                self.written.extend(files.filter_map(|(_, file)| variant.word(file)));
                self.command(words, &read, depth, sure);
            }
        }
    }

    /// What git and other programs may run.
    fn variable(&mut self, name: &str, value: Word) {
        match value {
            _ if name.starts_with("GIT_CONFIG") => self.hides_some = true,
            _ if !is_run(name) => {}
            Some(value) => self.texts.push(Text::new(value)),
            None => self.hides_some = true,
        }
    }

    /// `read` are the texts of the script that it reads.
    fn command(&mut self, mut words: Vec<Word>, read: &[&HereText], depth: usize, sure: Found) {
        let Some((program, arguments)) = words.split_first() else { return };
        let program = program.as_deref().filter(|program| !is_pattern(program)).map(name);
        let is_plain = program.as_ref().is_some_and(|program| is_one_of(PLAIN, program));
        if !is_plain {
            self.texts.extend(read.iter().map(|read| Text::new(read.text.clone())));
        } else {
            self.contents.extend(read.iter().map(|read| read.text.clone()));
            match program.as_deref() {
                Some("echo" | "printf") => {
                    self.contents.push(arguments.iter().flatten().cloned().collect::<Vec<_>>().join(" "));
                }
                Some("tee") => self.written.extend(arguments.iter().flatten().cloned()),
                _ => {}
            }
        }
        let Some(program) = program else {
            self.hides_some = true;
            return;
        };
        self.scripts_of(&program, (arguments, read), depth, sure);
        let is_wrapper = is_wrapper(&program);
        if is_wrapper {
            put_in_by_xargs(&mut words);
        }
        let arguments = &words[1..];
        let mut programs = vec![Found::No; words.len()];
        programs[0] = sure;
        match &*program {
            // It only looks where the program is.
            "command" if arguments.first().is_some_and(|word| word.as_deref().is_some_and(only_looks)) => {}
            wrapper if is_wrapper || FINDERS.contains(&wrapper) => {
                self.wrapped(wrapper, (&words, read), &mut programs, depth);
            }
            // A file that it runs, and what that runs.
            shell if SHELLS.contains(&shell) => programs[1..].fill(Found::Maybe),
            parsed if is_plain || TAKES_PARSED.contains(&parsed) => {}
            _ => {
                programs[1..].fill(Found::Maybe);
                let texts = arguments.iter().flatten().filter(|word| word.contains(char::is_whitespace));
                self.texts.extend(texts.cloned().map(Text::new));
            }
        }
        let programs = programs.into_iter().enumerate().filter(|(_, sure)| *sure > Found::No);
        let programs = programs.filter_map(|(at, sure)| Some(Program { at, name: name(words[at].as_deref()?), sure }));
        let programs = programs.collect();
        self.all.push(Command { words, programs });
    }

    /// Which arguments of a wrapper are the program that it runs depends on its options.
    fn wrapped(&mut self, wrapper: &str, (words, read): (&[Word], &[&HereText]), programs: &mut [Found], depth: usize) {
        self.hides_some |= words.len() > MAX_WRAPPED;
        let sure = programs[0];
        let names: Vec<String> =
            words.iter().take(MAX_WRAPPED).map(|word| word.as_deref().map(name).unwrap_or_default()).collect();
        let is_finder = FINDERS.contains(&wrapper);
        let mut before = Wrapped::default();
        for at in 1..names.len() {
            before.pass(words[at - 1].as_deref(), &names[at - 1]);
            let (found, is_first) = if is_finder { found_at(words, at) } else { before.next(at + 1 == words.len()) };
            programs[at] = found.min(sure);
            match words[at].as_ref().filter(|_| programs[at] > Found::No) {
                Some(_) => self.scripts_of(&names[at], (&words[at + 1..], read), depth, programs[at]),
                // The program, or a value of an option before it.
                None => self.hides_some |= words[at].is_none() && is_first,
            }
        }
        let mut before = None;
        for word in words[1..].iter().flatten() {
            // `env -S'git push'`
            let splits =
                wrapper == "env" && (before == Some("-S") || word.starts_with("-S") || word.starts_with("--s"));
            before = Some(word.as_str());
            if !word.contains(char::is_whitespace) {
                continue;
            }
            let script = word.trim_start_matches('-');
            let inner = script.split_once('=').map_or_else(|| script.strip_prefix('S'), |(_, inner)| Some(inner));
            let sure = if splits || TAKES_SCRIPT.contains(&wrapper) { sure } else { Found::Maybe };
            [Some(script), inner].into_iter().flatten().for_each(|script| self.script(script, depth + 1, sure));
        }
    }

    /// What a shell, or git, is told to run.
    fn scripts_of(&mut self, program: &str, (arguments, read): (&[Word], &[&HereText]), depth: usize, sure: Found) {
        let has_option = |letter| arguments.iter().flatten().any(|word| is_cluster(word, letter));
        let is_option = |word: &&Word| word.as_deref().is_some_and(|word| word.starts_with('-'));
        let options = || arguments.iter().filter(is_option).flatten();
        let mut rest = arguments.iter().filter(|word| !is_option(word));
        match program {
            // Which of them is the script depends on the options.
            shell if SHELLS.contains(&shell) && has_option('c') => {
                self.hides_some |= arguments.iter().any(Option::is_none);
                rest.flatten().for_each(|script| self.script(script, depth + 1, sure));
            }
            // Without a file it reads what to run.
            shell if SHELLS.contains(&shell) => {
                let takes_more =
                    |option: &String| option.trim_start_matches('-').contains(['o', 's']) || option.starts_with("--");
                let is_file = |word: &Word| word.as_deref().is_some_and(|word| !word.starts_with("/dev/"));
                if !options().any(takes_more) && rest.next().is_some_and(is_file) {
                    return;
                }
                let is_seen = !read.is_empty() && read.iter().all(|read| read.is_whole);
                self.hides_some |= !is_seen;
                let is_sure = is_seen && arguments.is_empty();
                let sure = if is_sure { sure } else { sure.min(Found::Maybe) };
                read.iter().for_each(|read| self.script(&read.text, depth + 1, sure));
            }
            "source" | "." => {
                self.hides_some |= rest.any(|word| word.as_deref().is_none_or(|word| word.starts_with("/dev/")));
            }
            "eval" | "trap" => {
                let parts: Option<Vec<String>> = rest.cloned().collect();
                match parts {
                    Some(parts) => self.script(&parts.join(" "), depth + 1, sure),
                    None => self.hides_some = true,
                }
            }
            "alias" => self.hides_some = true,
            // These give another name to a program.
            "hash" => self.hides_some |= has_option('p'),
            "enable" => self.hides_some |= has_option('f'),
            "git" => self.texts_of_git(arguments),
            // `export GIT_EDITOR='git push'`
            "export" | "env" => {
                let settings = rest.flatten().filter_map(|word| word.split_once('='));
                settings.for_each(|(name, value)| self.variable(name, Some(value.to_owned())));
            }
            _ => self.hides_some = self.hides_some || may_run_others(program, arguments, read),
        }
    }

    /// What git runs: values of its settings and of some options, and the arguments of some of its commands.
    fn texts_of_git(&mut self, arguments: &[Word]) {
        let mut before = "";
        for word in arguments {
            let known = word.as_deref().unwrap_or_default();
            let setting = known.split_once('=').filter(|(name, _)| before == "-c" || is_run(name));
            self.texts.extend(setting.map(|(_, value)| Text::new(value.to_owned())));
            // `git fetch --upload-pack 'git push' x`, `git clone -u 'git push' x`
            let is_program = before.starts_with("--") && is_run(before) || before == "-u";
            if is_program && known.contains(char::is_whitespace) {
                self.texts.push(Text::new(known.to_owned()));
            }
            // An alias may be any of git's commands.
            self.hides_some |= (before == "-c" || before.starts_with("--") && is_run(before)) && word.is_none();
            self.hides_some |= known.starts_with("alias.") || known.starts_with("--config-env");
            // An address of this kind is a command.
            self.hides_some |= known.starts_with("ext::");
            // `git grep -O'git push'`
            self.texts.extend(
                known.strip_prefix("-O").filter(|pager| pager.contains(' ')).map(|pager| Text::new(pager.to_owned())),
            );
            before = known;
        }
        let command = command_of_git(arguments);
        self.hides_some = self.hides_some || command.is_some_and(|command| !is_one_of(GIT_OWN, command));
        if command == Some("config") || arguments.iter().flatten().any(|word| is_one_of(GIT_RUNS, word)) {
            self.hides_some |= arguments.iter().any(Option::is_none);
            let known: Vec<&str> = arguments.iter().flatten().map(String::as_str).collect();
            self.texts.push(Text::new(known.join(" ")));
        }
    }
}

/// The word behind `git` and its options, if that is known.
fn command_of_git(arguments: &[Word]) -> Option<&str> {
    let mut words = arguments.iter().map(Option::as_deref);
    loop {
        match words.next()?? {
            option if GIT_WITH_VALUE.contains(&option) => drop(words.next()?),
            option if option.starts_with('-') => {}
            command => return Some(command),
        }
    }
}

/// Makes unknown what `xargs` puts in: behind its command, or where its `-I` says.
fn put_in_by_xargs(words: &mut Vec<Word>) {
    let Some(at) = words.iter().position(|word| word.as_deref().is_some_and(|word| name(word) == "xargs")) else {
        return;
    };
    let mut before = "".to_owned();
    let mut place: Option<String> = None;
    for word in &mut words[at + 1..] {
        let Some(known) = word.clone() else { continue };
        if let Some(place) = &place
            && known.contains(&**place)
        {
            *word = None;
        }
        let short = known.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        let given = short.and_then(|letters| letters.split_once(['I', 'J'])).map(|(_, given)| given);
        match known.strip_prefix("--replace=").or(given) {
            Some("") => {}
            Some(given) => place = Some(given.to_owned()),
            None if before.starts_with('-') && before.ends_with(['I', 'J']) => place = Some(known.clone()),
            None => place = known.strip_prefix("-i").map(|_| "{}".to_owned()).or(place),
        }
        before = known;
    }
    words.push(None);
}

/// `command -v`
fn only_looks(option: &str) -> bool {
    is_cluster(option, 'v') || is_cluster(option, 'V')
}

/// Whether the value of a variable or option is run: `GIT_SSH_COMMAND`, `--upload-pack`
fn is_run(name: &str) -> bool {
    RUN_NAMES.iter().any(|end| name.ends_with(end)) || RUN_WHOLE_NAMES.contains(&name)
}

fn is_wrapper(program: &str) -> bool {
    WRAPPERS.contains(&program) || program == "ssh"
}

/// What the arguments of a wrapper before one of them say of that one.
#[derive(Default)]
struct Wrapped<'w> {
    wrapper: &'w str,
    option: &'w str,
    has_operand: bool,
    /// Behind an option, it may be that one's value.
    is_value: bool,
    may_be_behind: bool,
    /// What a variable holds may be options, and the program; or a word was the program.
    may_be_past: bool,
}

impl<'w> Wrapped<'w> {
    /// Whether the next argument is the program that the wrapper runs, and whether nothing before it can be that.
    fn next(&self, is_last: bool) -> (Found, bool) {
        if self.may_be_past {
            return (Found::Maybe, false);
        }
        // Without a program, `xargs` only shows what it reads.
        let only_shows = self.wrapper == "xargs" && is_last;
        let is_other = self.has_operand || self.may_be_behind || self.is_surely_value() || only_shows;
        (if self.is_value { Found::Maybe } else { Found::Surely }, !is_other)
    }

    fn is_surely_value(&self) -> bool {
        let values = || WITH_VALUE.iter().find(|(name, _)| *name == self.wrapper).map_or("", |(_, options)| options);
        self.is_value && is_one_of(values(), self.option)
    }

    /// Goes past a word, which is called `name`.
    fn pass(&mut self, word: Option<&'w str>, name: &'w str) {
        let Some(word) = word else {
            self.may_be_past |= !self.is_surely_value();
            self.is_value = false;
            return;
        };
        let is_wrapper = is_wrapper(name);
        let is_option = word.starts_with('-');
        let is_known = is_option || is_wrapper || self.is_value || self.has_operand || word.contains('=');
        if !is_known && !word.starts_with(|c: char| c.is_ascii_digit()) {
            self.may_be_past = true;
        }
        self.may_be_behind |= self.is_value && !is_option && !is_wrapper && !self.is_surely_value();
        self.has_operand = is_wrapper && WITH_OPERAND.contains(&name) || self.has_operand && is_option;
        // `xargs -n1`
        let has_value = self.wrapper == "xargs" && word.len() > 2 && !word.ends_with('I') || word.contains('=');
        self.is_value = is_option && !has_value && word != "--";
        self.option = word;
        if is_wrapper {
            self.wrapper = name;
        }
    }
}

fn found_at(words: &[Word], at: usize) -> (Found, bool) {
    let is_behind = words[at - 1].as_deref().is_some_and(|before| FINDERS_OPTIONS.contains(&before));
    (if is_behind { Found::Surely } else { Found::No }, is_behind)
}

/// A program's name, as file systems that fold case and Windows have it.
fn name(program: &str) -> String {
    let mut name = file_of(program).to_lowercase();
    if name.ends_with(".exe") {
        name.truncate(name.len() - ".exe".len());
    }
    name
}

/// The words of a rule for commands.
#[derive(Debug)]
pub(super) struct CommandPattern {
    /// Its name, in lower case.
    program: String,
    options: Vec<String>,
    /// The words, and others that do the same.
    forms: Vec<Vec<String>>,
}

impl CommandPattern {
    pub(super) fn new(text: &str) -> Self {
        let mut words = text.split_whitespace();
        let program = words.next().map(name).unwrap_or_default();
        let (options, words): (_, Vec<String>) =
            words.map(str::to_owned).partition(|word: &String| word.starts_with('-'));
        let mut forms = Vec::new();
        if let Some(("push", rest)) = words.split_first().map(|(first, rest)| (first.as_str(), rest))
            && program == "git"
        {
            for form in PUSHES {
                forms.push(form.iter().copied().chain(rest.iter().map(String::as_str)).map(str::to_owned).collect());
            }
        }
        forms.insert(0, words);
        Self { program, options, forms }
    }

    /// Whether a text in any language names the program and, soon after it, the words.
    fn is_named_in(&self, Text { text, lower, words }: &Text) -> bool {
        let is_form = |form: &Vec<String>, at: usize| {
            let mut from = at + 1;
            form.iter().all(|wanted| {
                // `s/x/git push/e`
                let is_it = |word: &Range<usize>| {
                    let word = &text[word.clone()];
                    word == wanted || word.split(['/', '\\']).any(|part| part == wanted)
                };
                let near = words.iter().skip(from).take(MAX_APART).position(|(word, _)| is_it(word));
                from += near.unwrap_or_default() + 1;
                near.is_some()
            })
        };
        let goes_on = |at: usize| self.forms.iter().any(|form| is_form(form, at));
        words.iter().enumerate().any(|(at, (_, name))| lower[name.clone()] == self.program && goes_on(at))
    }

    /// Whether a program's arguments begin with the words behind the program; between them options may stand, with their
    /// values. An option of the pattern may stand anywhere.
    fn goes_on(&self, arguments: &[Word]) -> Found {
        let options = self.options.iter().map(|option| has_option(arguments, option)).min();
        let found = options.unwrap_or(Found::Surely);
        if found == Found::No {
            return found;
        }
        self.forms.iter().map(|form| self.form_goes_on(form, arguments)).max().unwrap_or(Found::No).min(found)
    }

    fn form_goes_on(&self, form: &[String], arguments: &[Word]) -> Found {
        let mut found = Found::Surely;
        let is_git = self.program == "git";
        let mut left = form.iter().peekable();
        let mut before = "";
        for word in arguments {
            let Some(wanted) = left.peek() else { return found };
            // It may be the word.
            let Some(word) = word.as_deref() else { return Found::Maybe };
            let is_option = word.starts_with('-');
            if is_git && GIT_WITH_VALUE.contains(&before) {
                before = "";
                continue;
            }
            match word {
                // Which it is depends on the option.
                _ if !is_git && !is_option && !before.is_empty() => {
                    found = Found::Maybe;
                    left.next_if(|wanted| *wanted == word);
                }
                _ if word == *wanted => drop(left.next()),
                // `cargo +nightly publish`
                _ if is_option || word.starts_with('+') => {}
                _ if is_pattern(word) => return Found::Maybe,
                _ => return Found::No,
            }
            before = if is_option && word != "--" && !word.contains('=') { word } else { "" };
        }
        if left.peek().is_none() { found } else { Found::No }
    }
}

/// Whether the option is among the arguments: itself, the letters of one like `-rf` together or apart, or perhaps another
/// form of it, such as `-f` or `--forc` for `--force`.
fn has_option(arguments: &[Word], option: &str) -> Found {
    let is_long = |word: &str, letter| word.strip_prefix("--").is_some_and(|name| name.starts_with(letter));
    let as_letter = |letter: char| {
        let of_word = |word: &Word| match word.as_deref() {
            Some(word) if is_cluster(word, letter) => Found::Surely,
            Some(word) if !is_long(word, letter) => Found::No,
            _ => Found::Maybe,
        };
        arguments.iter().map(of_word).max().unwrap_or(Found::No)
    };
    let as_word = |word: &Word| match word.as_deref() {
        None => Found::Maybe,
        Some(word) if word == option => Found::Surely,
        Some(word) if word.strip_prefix(option).is_some_and(|rest| rest.starts_with('=')) => Found::Surely,
        Some(word) if word.len() > 3 && option.starts_with(word) => Found::Maybe,
        Some(word) => {
            let first = option.strip_prefix("--").and_then(|name| name.chars().next());
            if first.is_some_and(|first| is_cluster(word, first)) { Found::Maybe } else { Found::No }
        }
    };
    let whole = arguments.iter().map(as_word).max().unwrap_or(Found::No);
    let letters = option.strip_prefix('-').filter(|letters| letters.bytes().all(|byte| byte.is_ascii_alphabetic()));
    let apart = letters.and_then(|letters| letters.chars().map(as_letter).min()).unwrap_or(Found::No);
    whole.max(apart)
}
