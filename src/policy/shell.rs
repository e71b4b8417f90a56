//! A shell's command line, parsed into the commands it runs: in chains, substitutions, loops and functions too.

use rable::{Node, NodeKind};

/// A word as the program gets it; `None` where that is known only when the command runs.
pub(super) type Word = Option<String>;

/// The commands of a script.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) commands: Vec<Vec<Word>>,
    /// It has text that runs commands and was not parsed.
    pub(super) hides_commands: bool,
}

/// The parser calls itself for each; more of them in one another are more than a small stack takes.
const MAX_NESTED: usize = 40;
/// Longer scripts are judged by their text: each command that hides its program asks for that.
const MAX_LENGTH: usize = 64 << 10;
/// Commands of a chain lie in one another, and are dropped so.
const MAX_CHAINED: usize = 2_000;
const NESTING: [&str; 11] =
    ["!", "if", "while", "until", "for", "case", "select", "time", "coproc", "function", "then"];

impl Script {
    /// `None`: it is no script that the parser understands, or it may be too deep.
    pub(super) fn parse(source: &str) -> Option<Self> {
        let words = source.split(|c: char| !(c.is_alphanumeric() || c == '!'));
        let nested = source.matches(['(', '{', '`']).count() + words.filter(|word| NESTING.contains(word)).count();
        if source.len() > MAX_LENGTH
            || nested > MAX_NESTED
            || source.matches([';', '&', '|', '\n']).count() > MAX_CHAINED
        {
            return None;
        }
        let nodes = rable::parse(source, true).ok()?;
        let mut script = Self::default();
        let mut rest: Vec<&Node> = nodes.iter().rev().collect();
        while let Some(node) = rest.pop() {
            let mut inner = Vec::new();
            script.visit(node, &mut inner);
            rest.extend(inner.into_iter().rev());
        }
        Some(script)
    }

    /// Adds what a node runs, and to `inner` the nodes in it.
    fn visit<'n>(&mut self, node: &'n Node, inner: &mut Vec<&'n Node>) {
        match &node.kind {
            NodeKind::Command { assignments, words, redirects } => {
                let given: Vec<Word> = words.iter().map(word).collect();
                if !given.is_empty() {
                    self.commands.push(given);
                }
                inner.extend(assignments.iter().chain(words).chain(redirects));
            }
            NodeKind::Word { value, parts, .. } => parts.iter().for_each(|part| self.part(part, value, inner)),
            NodeKind::Pipeline { commands, .. } => inner.extend(commands),
            NodeKind::List { items } => inner.extend(items.iter().map(|item| &item.command)),
            NodeKind::If { condition, then_body, else_body, redirects } => {
                inner.extend([&**condition, then_body].into_iter().chain(else_body.as_deref()).chain(redirects));
            }
            NodeKind::While { condition, body, redirects } | NodeKind::Until { condition, body, redirects } => {
                inner.extend([&**condition, body].into_iter().chain(redirects));
            }
            NodeKind::For { words, body, redirects, .. } | NodeKind::Select { words, body, redirects, .. } => {
                inner.extend(words.iter().flatten().chain([&**body]).chain(redirects));
            }
            NodeKind::ForArith { init, cond, incr, body, redirects } => {
                [init, cond, incr].into_iter().for_each(|text| self.text(text));
                inner.extend([&**body].into_iter().chain(redirects));
            }
            NodeKind::Case { word, patterns, redirects } => {
                let parts = patterns.iter().flat_map(|pattern| pattern.patterns.iter().chain(&pattern.body));
                inner.extend([&**word].into_iter().chain(parts).chain(redirects));
            }
            NodeKind::Subshell { body, redirects } | NodeKind::BraceGroup { body, redirects } => {
                inner.extend([&**body].into_iter().chain(redirects));
            }
            NodeKind::Function { body: only, .. }
            | NodeKind::Coproc { command: only, .. }
            | NodeKind::Negation { pipeline: only }
            | NodeKind::Time { pipeline: only, .. }
            | NodeKind::Redirect { target: only, .. }
            | NodeKind::CommandSubstitution { command: only, .. }
            | NodeKind::ProcessSubstitution { command: only, .. } => inner.push(only),
            NodeKind::HereDoc { content, quoted, .. } if !quoted => self.text(content),
            NodeKind::HereDoc { .. } | NodeKind::Comment { .. } | NodeKind::Empty => {}
            // Conditions and arithmetic keep what they substitute as text.
            _ => self.text(&format!("{node:?}")),
        }
    }

    /// A part of the word `whole`.
    fn part<'n>(&mut self, part: &'n Node, whole: &str, inner: &mut Vec<&'n Node>) {
        match &part.kind {
            NodeKind::WordLiteral { .. } | NodeKind::AnsiCQuote { .. } | NodeKind::BraceExpansion { .. } => {}
            NodeKind::CommandSubstitution { command, .. } | NodeKind::ProcessSubstitution { command, .. } => {
                inner.push(command);
            }
            NodeKind::ParamExpansion { op: None, .. } => {}
            _ => self.text(whole),
        }
    }

    fn text(&mut self, text: &str) {
        self.hides_commands |= ["$(", "`", "<(", ">("].iter().any(|start| text.contains(start));
    }
}

fn word(node: &Node) -> Word {
    let NodeKind::Word { parts, .. } = &node.kind else { return None };
    let mut text = String::new();
    for part in parts {
        match &part.kind {
            NodeKind::WordLiteral { value } => text.push_str(&unquoted(value)),
            NodeKind::AnsiCQuote { decoded, .. } => text.push_str(decoded),
            _ => return None,
        }
    }
    Some(text)
}

/// What quotes and backslashes leave of a text without expansions.
fn unquoted(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let (mut chars, mut quote) = (text.chars().peekable(), None);
    while let Some(next) = chars.next() {
        match (quote, next) {
            (None, '\'' | '"') => quote = Some(next),
            (Some(open), _) if open == next => quote = None,
            (None, '\\') => plain.extend(chars.next().filter(|escaped| *escaped != '\n')),
            (Some('"'), '\\') => match chars.next_if(|escaped| "$`\"\\\n".contains(*escaped)) {
                Some('\n') => {}
                Some(escaped) => plain.push(escaped),
                None => plain.push('\\'),
            },
            _ => plain.push(next),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(source: &str) -> Vec<String> {
        let script = Script::parse(source).expect(source);
        let word = |word: &Word| word.clone().unwrap_or_else(|| "?".to_owned());
        script.commands.iter().map(|words| words.iter().map(word).collect::<Vec<_>>().join("|")).collect()
    }

    #[test]
    fn words_are_what_the_program_gets() {
        for (source, words) in [
            ("git  push\t-f", "git|push|-f"),
            ("g\\it \"pu\"sh --'for'ce", "git|push|--force"),
            ("a 'b c' \"d \\\" \\x\" $'\\x41'", "a|b c|d \" \\x|A"),
            ("a $x \"$y\" z{1,2} b\\\nc", "a|?|?|?|bc"),
            ("echo \"git rebase\" # git push", "echo|git rebase"),
        ] {
            assert_eq!(shown(source), [words], "{source}");
        }
    }

    #[test]
    fn commands_are_found_wherever_they_stand() {
        for source in [
            "x; rm a",
            "x && rm a || y",
            "x | rm a &",
            "(rm a)",
            "{ rm a; }",
            "! time rm a",
            "x=$(rm a) y",
            "y \"$(rm a)\"",
            "y \"`rm a`\"",
            "y <(rm a)",
            "y > $(rm a)",
            "if rm a; then y; fi",
            "if y; then z; elif rm a; then y; fi",
            "while y; do rm a; done",
            "for i in $(rm a); do y; done",
            "case $x in y) rm a;; esac",
            "f() { rm a; }; f",
            "y\nrm a\n",
            "x=(\"$(rm a)\")",
        ] {
            assert!(shown(source).contains(&"rm|a".to_owned()), "{source}: {:?}", shown(source));
        }
    }

    #[test]
    fn what_is_kept_as_text_is_noticed() {
        let hides = |source: &str| Script::parse(source).expect(source).hides_commands;
        for source in
            ["${x:-$(rm a)}", "cat <<E\n$(rm a)\nE", "[[ $(rm a) ]]", "echo $((1 + $(rm a)))", "(( x = `rm a` ))"]
        {
            assert!(hides(source), "{source}");
        }
        for source in ["echo $x ${y}", "cat <<'E'\n$(rm a)\nE", "[[ -f a && $x == y ]]", "echo '$(rm a)'"] {
            assert!(!hides(source), "{source}");
        }
    }
}
