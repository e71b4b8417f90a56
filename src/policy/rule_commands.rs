//! Which commands of a line a rule of `[policy]` is about.
//!
//! A rule that allows has to be sure, and one that denies must not be evaded by another way to write the same: the first
//! matches plain commands only, the second whatever may be such a command, wherever it stands in the line.

use super::always::plain_commands;
use super::shell::Script;
use super::shell_rules::{MAX_DEPTH, SHELLS, WRAPPERS, is_cluster, name_of};
use super::shell_values::Word;

/// Combinations of the values of a script's variables.
const MAX_VARIANTS: usize = 16;
/// Scripts in a line, in one another or side by side.
const MAX_SCRIPTS: usize = 64;
/// Arguments of a program that runs another.
const MAX_WRAPPED: usize = 64;

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

fn plain(program: &str) -> &str {
    program.strip_prefix("./").filter(|rest| rest.contains('/')).unwrap_or(program)
}

/// Whether a shell may make another word of it.
fn is_pattern(word: &str) -> bool {
    !["[", "[["].contains(&word) && word.contains(['*', '?', '[', '{'])
}

/// What a line may run.
#[derive(Debug, Default)]
pub(super) struct Commands {
    /// Also those in the arguments of others. The first word of each is the program's name, without its folder.
    all: Vec<Vec<Word>>,
    /// Something in it is known only when it runs.
    pub(super) hides_some: bool,
    /// The number of scripts so far.
    scripts: usize,
}

impl Commands {
    pub(super) fn of(line: &str) -> Self {
        let mut found = Self::default();
        found.script(line, 0);
        found
    }

    /// Whether one of them may be a command that begins with these words, with options between them.
    pub(super) fn include(&self, pattern: &str) -> bool {
        let mut words = pattern.split_whitespace();
        let Some(program) = words.next().map(name) else { return false };
        let words: Vec<&str> = words.collect();
        let mut meant = self.all.iter().filter(|command| command[0].as_deref() == Some(&program));
        meant.any(|command| may_go_on(&command[1..], &words))
    }

    fn add(&mut self, mut words: Vec<Word>) {
        if let Some(program) = words.first_mut() {
            *program = program.as_deref().map(name);
            self.all.push(words);
        }
    }

    fn script(&mut self, source: &str, depth: usize) {
        self.scripts += 1;
        let script = if depth < MAX_DEPTH && self.scripts <= MAX_SCRIPTS { Script::parse(source) } else { None };
        let Some(script) = script else {
            self.hides_some = true;
            return;
        };
        self.hides_some |= script.hides_commands;
        for variant in script.variants(MAX_VARIANTS) {
            script.commands(&variant).into_iter().for_each(|words| self.command(words, depth));
        }
    }

    fn command(&mut self, words: Vec<Word>, depth: usize) {
        let Some((program, arguments)) = words.split_first() else { return };
        let Some(program) = program.as_deref().filter(|program| !is_pattern(program)).map(name) else {
            self.hides_some = true;
            return;
        };
        self.scripts_of(&program, arguments, depth);
        if WRAPPERS.contains(&&*program) || ["find", "fd", "ssh"].contains(&&*program) {
            // Which of their arguments is the program depends on the options of each.
            self.hides_some |= arguments.len() > MAX_WRAPPED;
            for at in 0..arguments.len().min(MAX_WRAPPED) {
                let mut inner = arguments[at..].to_vec();
                if let Some(program) = inner[0].as_deref().map(name) {
                    self.scripts_of(&program, &inner[1..], depth);
                    // What it reads.
                    inner.extend((words[0].as_deref().map(name).as_deref() == Some("xargs")).then_some(None));
                    self.add(inner);
                }
            }
            for script in arguments.iter().flatten().filter(|word| word.contains(char::is_whitespace)) {
                // `env -S'git push'`
                let script = script.trim_start_matches('-');
                let inner = script.split_once('=').map_or_else(|| script.strip_prefix('S'), |(_, inner)| Some(inner));
                [Some(script), inner].into_iter().flatten().for_each(|script| self.script(script, depth + 1));
            }
        }
        self.add(words);
    }

    /// What a shell is told to run.
    fn scripts_of(&mut self, program: &str, arguments: &[Word], depth: usize) {
        let has_option = |letter| arguments.iter().flatten().any(|word| is_cluster(word, letter));
        let (options, rest): (Vec<&Word>, Vec<&Word>) =
            arguments.iter().partition(|word| word.as_deref().is_some_and(|word| word.starts_with('-')));
        match program {
            // Which of them is the script depends on the options.
            shell if SHELLS.contains(&shell) && has_option('c') => {
                self.hides_some |= rest.iter().any(|word| word.is_none());
                rest.into_iter().flatten().for_each(|script| self.script(script, depth + 1));
            }
            // Without a file it reads what to run.
            shell if SHELLS.contains(&shell) => {
                let takes_more =
                    |option: &String| option.trim_start_matches('-').contains(['o', 's']) || option.starts_with("--");
                let takes_more = options.iter().copied().flatten().any(takes_more);
                let is_file = |word: &&Word| word.as_deref().is_some_and(|word| !word.starts_with("/dev/"));
                self.hides_some |= takes_more || !rest.first().is_some_and(is_file);
            }
            "source" | "." => {
                self.hides_some |= rest.iter().any(|word| word.as_deref().is_none_or(|word| word.starts_with("/dev/")));
            }
            "eval" | "trap" => {
                let parts: Option<Vec<String>> = rest.into_iter().cloned().collect();
                match parts {
                    Some(parts) => self.script(&parts.join(" "), depth + 1),
                    None => self.hides_some = true,
                }
            }
            "alias" => self.hides_some = true,
            _ => {}
        }
    }
}

/// A program's name, as file systems that fold case and Windows have it.
fn name(program: &str) -> String {
    name_of(&program.to_lowercase()).to_owned()
}

/// Whether a command's arguments begin with the pattern's words behind the program; between them options may stand, with their
/// values. An option of the pattern may stand anywhere.
fn may_go_on(arguments: &[Word], pattern: &[&str]) -> bool {
    let (options, words): (Vec<&str>, Vec<&str>) = pattern.iter().partition(|word| word.starts_with('-'));
    let has_option = |option: &&str| {
        // `-rf` is `-r` and `-f`, together or apart.
        let letters = option.strip_prefix('-').filter(|letters| letters.bytes().all(|byte| byte.is_ascii_alphabetic()));
        let has = |letter| arguments.iter().flatten().any(|word| is_cluster(word, letter));
        letters.is_some_and(|letters| !letters.is_empty() && letters.chars().all(has))
            || arguments.iter().any(|word| match word.as_deref() {
                None => true,
                Some(word) => word == *option || word.strip_prefix(option).is_some_and(|rest| rest.starts_with('=')),
            })
    };
    if !options.iter().all(has_option) {
        return false;
    }
    let mut left = words.into_iter().peekable();
    let mut may_be_value = false;
    for word in arguments {
        let Some(wanted) = left.peek() else { return true };
        match word.as_deref() {
            // It may be the word.
            None => return true,
            Some(word) if word == *wanted => {
                left.next();
                may_be_value = false;
            }
            Some(word) if word.starts_with('-') => may_be_value = !word.contains('='),
            Some(_) if may_be_value => may_be_value = false,
            Some(word) if is_pattern(word) => return true,
            Some(_) => return false,
        }
    }
    left.peek().is_none()
}
