//! Whether what a program of another language than a shell's gets to run may start commands that nobody can name.

use super::always::{INTERPRETERS, is_one_of, plain_name};
use super::shell::HereText;
use super::shell_rules::is_cluster;
use super::shell_values::Word;

/// More programs that run code which they read.
const READERS: &str = "tclsh expect osascript pwsh powershell";
/// Options of interpreters that have the next word as their value, and that value is no code.
const WITH_VALUE: &str = "-W -X -I -r -C -d -l -L -S --require --import --loader";
/// With these, no code is read.
const SHOWS: &str = "--version --help --test -V -h";
/// Options that have code as their value.
const CODE: [char; 6] = ['c', 'e', 'E', 'n', 'p', 'r'];
/// How the names begin by which code starts programs, or runs more code that it puts together.
const STARTS: &str = "system popen exec spawn subprocess child_process eval fork pty shell passthru proc_open open3 \
                      __import__ importlib getattr ctypes qx";

/// Whether a program may run commands that neither its arguments nor the texts that it is fed name.
pub(super) fn may_run_others(program: &str, arguments: &[Word], fed: &[&HereText]) -> bool {
    let name = plain_name(program);
    match name {
        "at" | "batch" => true,
        "crontab" => !arguments.iter().flatten().any(|word| is_cluster(word, 'l')),
        "make" => arguments.iter().flatten().any(|word| ["-", "-f-", "/dev/stdin"].contains(&word.as_str())),
        "parallel" => {
            let is_file = |word: &str| ["-a", "::::"].contains(&word) || word.starts_with("--arg-file");
            let is_command = |word: &str| !word.starts_with('-') && !word.starts_with(|c: char| c.is_ascii_digit());
            let words = || arguments.iter().flatten().map(String::as_str);
            words().any(is_file) || !words().any(is_command)
        }
        _ if is_one_of(INTERPRETERS, name) || is_one_of(READERS, name) => {
            let is_unseen = reads_input(name, arguments) && (fed.is_empty() || fed.iter().any(|text| !text.is_whole));
            let has_code = arguments.iter().flatten().any(|word| takes_code(word));
            let is_code = |word: &&String| has_code && word.contains(['(', '`', ' ', '\n']);
            let mut codes = arguments.iter().flatten().filter(is_code).chain(fed.iter().map(|fed| &fed.text));
            is_unseen || codes.any(|code| starts_programs(code, name))
        }
        _ => false,
    }
}

/// Whether it is its input that an interpreter runs: none of its arguments is a file, a module or code.
fn reads_input(name: &str, arguments: &[Word]) -> bool {
    let mut is_value = false;
    for word in arguments {
        // It may be any of them.
        let Some(word) = word.as_deref() else { return true };
        if is_one_of(SHOWS, word) || word == "-v" && !name.starts_with("py") {
            return false;
        }
        if word == "-" || word.starts_with("/dev/") {
            return true;
        }
        if !word.starts_with('-') && !is_value {
            return false;
        }
        is_value = !is_value && is_one_of(WITH_VALUE, word) && (name, word) != ("php", "-r");
    }
    true
}

fn takes_code(option: &str) -> bool {
    let is_short = option.starts_with('-') && !option.starts_with("--");
    ["--eval", "--print"].iter().any(|name| option.starts_with(name)) || is_short && option.contains(CODE)
}

fn starts_programs(code: &str, language: &str) -> bool {
    let mut words = code.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
    let is_one = |word: &str| {
        STARTS.split(' ').any(|start| {
            word.len() >= start.len()
                && word.is_char_boundary(start.len())
                && word[..start.len()].eq_ignore_ascii_case(start)
        })
    };
    // In other languages these are only quotes.
    let has_quotes = || is_one_of("perl ruby php", language) && (code.contains('`') || code.contains("%x"));
    words.any(is_one) || has_quotes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(program: &str, arguments: &[&str], fed: Option<(&str, bool)>) -> bool {
        let arguments: Vec<Word> = arguments.iter().map(|word| (*word != "?").then(|| (*word).to_owned())).collect();
        let fed = fed.map(|(text, is_whole)| HereText { text: text.to_owned(), is_whole });
        may_run_others(program, &arguments, &fed.iter().collect::<Vec<_>>())
    }

    /// A program with its arguments, and whether it runs what nobody sees.
    #[test]
    fn code_that_is_not_seen_may_run_anything() {
        for (line, expected) in [
            ("python3", true),
            ("python3 -", true),
            ("python3 -u -", true),
            ("python3 -W ignore", true),
            ("python3 /dev/stdin", true),
            ("python3 ?", true),
            ("python3 -c ?", true),
            ("python3 -v", true),
            ("python3 x.py -", false),
            ("python3 x.py ?", false),
            ("python3 -W ignore x.py", false),
            ("python3 -m json.tool", false),
            ("python3 --version", false),
            ("python3 -V", false),
            ("python3.11 -c print(1)", false),
            ("python3 -c os.system(x)", true),
            ("python3 -c __import__('os')", true),
            ("python3 x.py exec(1)", false),
            ("node", true),
            ("node -v", false),
            ("node --test", false),
            ("node --require ./a", true),
            ("node -e execSync(x)", true),
            ("node -e console.log(`x`)", false),
            ("node -p process.version", false),
            ("perl -ne print(`x`)", true),
            ("perl -pe s/a/b/ x", false),
            ("php -r print(1);", false),
            ("php -r shell_exec(1);", true),
            ("ruby", true),
            ("ruby -e puts(%x(ls))", true),
            ("deno run a.ts", false),
            ("tclsh", true),
            ("pwsh -File a.ps1", false),
            ("at now", true),
            ("at -l", true),
            ("crontab -", true),
            ("crontab -l", false),
            ("make", false),
            ("make -f -", true),
            ("parallel", true),
            ("parallel -j 4", true),
            ("parallel -a x echo", true),
            ("parallel echo", false),
            ("parallel echo ::: a", false),
            ("cargo test -", false),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(judged(words[0], &words[1..], None), expected, "{line}");
        }
    }

    /// Whether a text is all that is read, with what it says.
    #[test]
    fn a_text_that_is_read_is_code() {
        for (text, is_whole, expected) in [
            ("print(1)", true, false),
            ("print(1)", false, true),
            ("import subprocess", true, true),
            ("import os; os.popen(x)", true, true),
            ("x = \"ex\u{e9}cute\"", true, false),
        ] {
            assert_eq!(judged("python3", &["-"], Some((text, is_whole))), expected, "{text} {is_whole}");
        }
    }
}
