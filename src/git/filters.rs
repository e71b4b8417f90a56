//! Filters of the user's configuration, which git starts with the work tree as working folder: one that is a file there, or
//! loads some, is code of whoever writes there.

use std::collections::BTreeSet;
use std::path::Path;

use crate::model::IntoSet;

/// Programs that run what a word names, or code of a module in the working folder.
const INTERPRETERS: [&str; 15] = [
    "env", "sh", "bash", "zsh", "dash", "fish", "python", "python2", "python3", "node", "deno", "bun", "ruby", "perl",
    "php",
];

/// The names of filters that may run code of the work tree. `settings`: keys below `filter.`, and their values.
pub(super) fn in_tree<'s>(settings: impl Iterator<Item = (&'s str, &'s str)>) -> Vec<String> {
    let commands = settings.filter_map(|(key, command)| {
        let (name, what) = key.rsplit_once('.')?;
        (["clean", "smudge", "process"].contains(&what) && runs_the_tree(command)).then(|| name.to_owned())
    });
    let names: BTreeSet<String> = commands.into_set();
    names.into_iter().collect()
}

fn runs_the_tree(command: &str) -> bool {
    let Some(words) = shlex::split(command) else { return true };
    let Some((program, arguments)) = words.split_first() else { return false };
    let is_relative = |word: &String| word.contains('/') && !Path::new(word).is_absolute() && !word.starts_with("~/");
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program).trim_end_matches(".exe");
    // A script by its name alone, `-m`, `-c` or `-e`.
    let is_script = |word: &String| !Path::new(word).is_absolute() && word != "%f";
    let interprets = INTERPRETERS.contains(&name) && arguments.iter().any(is_script);
    let is_more = command.contains(['$', '`', ';', '|', '&', '<', '>', '\n']) || program.contains('=');
    interprets || is_more || words.iter().any(is_relative)
}

/// The options of git that leave out a filter.
pub(super) fn off(name: &str) -> [String; 8] {
    let [clean, smudge, process] = ["clean", "smudge", "process"].map(|what| format!("filter.{name}.{what}="));
    let required = format!("filter.{name}.required=false");
    let option = || "-c".to_owned();
    [option(), clean, option(), smudge, option(), process, option(), required]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_code_of_the_work_tree_is_told_from_what_does_not() {
        for (command, expected) in [
            ("git-lfs clean -- %f", false),
            ("git-lfs filter-process", false),
            ("/usr/bin/indent -st", false),
            ("/usr/bin/python3 /opt/clean.py %f", false),
            ("cat", false),
            ("", false),
            ("./clean.sh", true),
            ("tools/clean.sh %f", true),
            ("sh clean.sh", true),
            ("\"/usr/bin/python3\" -m nbstripout", true),
            ("python3 -c 'import x'", true),
            ("/usr/bin/env python3 tools/x.py", true),
            ("cat; ./x", true),
            ("A=1 cat", true),
            ("'unclosed", true),
        ] {
            assert_eq!(runs_the_tree(command), expected, "{command}");
        }
        let settings =
            [("lfs.clean", "git-lfs clean -- %f"), ("a.b.smudge", "./x"), ("a.b.clean", "./y"), ("c.required", "./z")];
        assert_eq!(in_tree(settings.into_iter()), ["a.b"]);
    }
}
