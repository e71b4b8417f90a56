//! Commands that only read files: how an agent reads whose engine has no other tool for it.

/// Programs that print what their operands hold or list, whatever their options.
const READERS: [&str; 6] = ["cat", "head", "tail", "wc", "nl", "ls"];
/// Options of ripgrep that start programs.
const STARTS_PROGRAMS: [&str; 3] = ["--pre", "--hostname-bin", "--search-zip"];

/// The paths that a command reads, if it is a single one that does nothing else; relative ones from where it runs.
pub(crate) fn reads_files(command: &str) -> Option<Vec<String>> {
    let words = plain_words(command)?;
    let (program, arguments) = words.split_first()?;
    let (options, operands): (Vec<&String>, Vec<&String>) =
        arguments.iter().partition(|word| word.len() > 1 && word.starts_with('-'));
    // An option may take a path as well.
    if options.iter().any(|option| option.contains(['/', '~']) || option.contains("..")) {
        return None;
    }
    let paths: &[&String] = match program.as_str() {
        "pwd" if operands.is_empty() => &[],
        name if READERS.contains(&name) => &operands,
        "sed" => match (&options[..], &operands[..]) {
            ([only], [script, paths @ ..]) if *only == "-n" && prints_lines(script) => paths,
            _ => return None,
        },
        "grep" | "rg" => {
            let is_program = |option: &&&String| {
                STARTS_PROGRAMS.iter().any(|known| option.starts_with(known))
                    || program == "rg" && !option.starts_with("--") && option.contains('z')
            };
            if options.iter().any(|option| is_program(&option)) {
                return None;
            }
            // The first operand is the pattern, unless an option has named it or there is none.
            let is_named = options.iter().any(|option| {
                let option = option.as_str();
                option.starts_with("--f") || option.starts_with("--r") || has_letter(option, ['e', 'f'])
            });
            if is_named { &operands } else { operands.get(1..)? }
        }
        _ => return None,
    };
    let paths: Vec<String> = paths.iter().map(|path| (*path).clone()).collect();
    Some(if paths.is_empty() { vec![".".to_owned()] } else { paths })
}

/// Whether one of these letters is among a group of short options.
fn has_letter(option: &str, letters: [char; 2]) -> bool {
    !option.starts_with("--") && option.contains(letters)
}

/// Whether a script of `sed` only prints lines by their numbers.
fn prints_lines(script: &str) -> bool {
    let is_number = |text: &str| text == "$" || !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    script.strip_suffix('p').is_some_and(|lines| lines.split(',').count() <= 2 && lines.split(',').all(is_number))
}

/// The words of a command line in which quotes only group; `None`: a shell would do more with it than to split it.
fn plain_words(line: &str) -> Option<Vec<String>> {
    const SHELLS: [char; 18] =
        ['|', '&', ';', '<', '>', '(', ')', '$', '`', '\\', '{', '}', '*', '?', '[', '~', '#', '^'];
    // Quotes of PowerShell.
    const TYPOGRAPHIC: [char; 6] = ['“', '”', '„', '‘', '’', '‚'];
    if line.contains(char::is_control) || line.contains(TYPOGRAPHIC) {
        return None;
    }
    let (mut words, mut word, mut quote): (Vec<String>, Option<String>, Option<char>) = Default::default();
    for c in line.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some('"') if ['$', '`', '\\', '!'].contains(&c) => return None,
            None if ['"', '\''].contains(&c) => {
                word.get_or_insert_default();
                quote = Some(c);
            }
            None if c.is_whitespace() => words.extend(word.take()),
            // For zsh, `=cat` is a path.
            None if SHELLS.contains(&c) || c == '!' || c == '=' && word.is_none() => return None,
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::reads_files;

    #[test]
    fn commands_that_only_read_name_their_paths() {
        for (command, paths) in [
            ("cat src/lib.rs 'a file'", vec!["src/lib.rs", "a file"]),
            ("ls -la", vec!["."]),
            ("pwd", vec!["."]),
            ("head -n 20 README.md", vec!["20", "README.md"]),
            ("sed -n '1,200p' src/main.rs", vec!["src/main.rs"]),
            ("sed -n 7p /etc/hosts", vec!["/etc/hosts"]),
            ("rg -n \"fn main\\b\" src", vec![]),
            ("rg -n 'fn main\\b' src", vec!["src"]),
            ("rg --files", vec!["."]),
            ("rg --files /etc", vec!["/etc"]),
            ("rg -e x ../other", vec!["x", "../other"]),
            ("grep -rn '$HOME' .", vec!["."]),
            ("wc -l a b", vec!["a", "b"]),
        ] {
            let wanted: Vec<String> = paths.into_iter().map(str::to_owned).collect();
            assert_eq!(reads_files(command), Some(wanted).filter(|wanted| !wanted.is_empty()), "{command}");
        }
    }

    #[test]
    fn whatever_may_do_more_is_none_of_them() {
        for command in [
            "",
            "rm a",
            "cat a > b",
            "cat a | tee b",
            "cat $(rm a)",
            "cat `rm a`",
            "cat a; rm a",
            "cat a\nrm a",
            "cat a && rm a",
            "cat *",
            "cat {a,b}",
            "cat ~/.ssh/id_rsa",
            "cat \"$HOME/x\"",
            "cat 'a",
            "X=1 cat a",
            "/bin/cat a",
            "sed -n 'w out' a",
            "sed -n '1,2p;w out' a",
            "sed -i -n 1p a",
            "sed 1p a",
            "sed -n -e 1p a",
            "rg --pre ./evil x",
            "rg --pre=evil x",
            "rg -z x",
            "rg --search-zip x",
            "grep",
            "wc --files0-from=/etc/passwd",
            "find . -delete",
            "bash -c ls",
            "=cat a",
            "cat ‘a’",
        ] {
            assert_eq!(reads_files(command), None, "{command}");
        }
    }
}
