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
        let program = own.next().map(|word| name_of(word));
        program.is_some() && program == words.next() && words.all(|word| own.next().is_some_and(|own| own == word))
    };
    let is_covered = |command: &Vec<String>| patterns.iter().any(|pattern| begins(command, pattern));
    plain_commands(line).is_some_and(|commands| commands.iter().all(is_covered))
}

/// What a line may run.
#[derive(Debug, Default)]
pub(super) struct Commands {
    /// Also those in the arguments of others.
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
        let words: Vec<&str> = pattern.split_whitespace().collect();
        self.all.iter().any(|command| may_begin(command, &words))
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
        let Some(program) = program.as_deref().map(name_of) else {
            self.hides_some = true;
            return;
        };
        self.scripts_of(program, arguments, depth);
        if WRAPPERS.contains(&program) || ["find", "fd", "ssh"].contains(&program) {
            // Which of their arguments is the program depends on the options of each.
            self.hides_some |= arguments.len() > MAX_WRAPPED;
            for at in 0..arguments.len().min(MAX_WRAPPED) {
                let inner = &arguments[at..];
                if let Some(program) = inner[0].as_deref().map(name_of) {
                    self.scripts_of(program, &inner[1..], depth);
                    self.all.push(inner.to_vec());
                }
            }
            for script in arguments.iter().flatten().filter(|word| word.contains(char::is_whitespace)) {
                self.script(script, depth + 1);
            }
        }
        self.all.push(words);
    }

    /// What a shell is told to run.
    fn scripts_of(&mut self, program: &str, arguments: &[Word], depth: usize) {
        let is_shell = SHELLS.contains(&program);
        let at = arguments.iter().position(|word| word.as_deref().is_some_and(|word| is_cluster(word, 'c')));
        let script: Option<Word> = match at.filter(|_| is_shell) {
            Some(at) => arguments.get(at + 1).cloned(),
            // Without a file it reads what to run.
            None if is_shell => {
                self.hides_some |= !arguments.iter().flatten().any(|word| !word.starts_with('-'));
                None
            }
            None if program == "eval" => {
                Some(arguments.iter().cloned().collect::<Option<Vec<String>>>().map(|parts| parts.join(" ")))
            }
            None => None,
        };
        match script {
            Some(Some(script)) => self.script(&script, depth + 1),
            Some(None) => self.hides_some = true,
            None => {}
        }
    }
}

/// Whether a command's words begin with the pattern's; between them options may stand, with their values. An option of the
/// pattern may stand anywhere.
fn may_begin(command: &[Word], pattern: &[&str]) -> bool {
    let [program, arguments @ ..] = command else { return false };
    let [first, rest @ ..] = pattern else { return false };
    if program.as_deref().map(name_of) != Some(first) {
        return false;
    }
    let (options, words): (Vec<&str>, Vec<&str>) = rest.iter().partition(|word| word.starts_with('-'));
    let has_option = |option: &&str| {
        arguments.iter().any(|word| match word.as_deref() {
            None => true,
            Some(word) => {
                let letter = option.strip_prefix('-').filter(|letter| letter.len() == 1);
                let is_among = letter.and_then(|letter| letter.chars().next()).is_some_and(|c| is_cluster(word, c));
                word == *option || is_among || word.strip_prefix(option).is_some_and(|rest| rest.starts_with('='))
            }
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
            Some(_) => return false,
        }
    }
    left.peek().is_none()
}
