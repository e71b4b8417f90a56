//! A shell's command line, parsed into the commands it runs: in chains, substitutions, loops and functions too.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use rable::{ListItem, ListOperator, Node, NodeKind};

use super::shell_values::{Piece, Variables, Variant, Word, pieces};

/// The commands of a script.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) nodes: Vec<Node>,
    commands: Vec<Vec<Vec<Piece>>>,
    variables: Variables,
    /// `NAME=value`, before commands and alone.
    assignments: Vec<Vec<Piece>>,
    /// What commands, by their places, read from the script itself.
    pub(super) read: Vec<(usize, HereText)>,
    /// The files that commands, by their places, write into.
    pub(super) written: Vec<(usize, Vec<Piece>)>,
    /// It has text that runs commands and was not parsed.
    pub(super) hides_commands: bool,
}

/// What a command reads from the script.
#[derive(Debug)]
pub(super) struct HereText {
    pub(super) text: String,
    /// It reads just that: nothing in it is put in by the shell, and no other input takes its place.
    pub(super) is_whole: bool,
}

/// The parser calls itself for each; more of them in one another are more than a small stack takes.
const MAX_NESTED: usize = 40;
/// Longer scripts are judged by their text: each command that hides its program asks for that.
const MAX_LENGTH: usize = 64 << 10;
/// Commands of a chain lie in one another, and are dropped so.
const MAX_CHAINED: usize = 2_000;
/// A node, and the part of the script that it stands in.
type Inner<'n> = (&'n Node, usize);

fn nodes(source: &str) -> Option<Vec<Node>> {
    let bytes = source.as_bytes();
    let words = bytes.split(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'!'));
    let is_nesting = |word: &&[u8]| {
        matches!(
            *word,
            b"!" | b"if"
                | b"while"
                | b"until"
                | b"for"
                | b"case"
                | b"select"
                | b"time"
                | b"coproc"
                | b"function"
                | b"then"
        )
    };
    let nested = bytes.iter().filter(|byte| matches!(byte, b'(' | b'{' | b'`')).count();
    let chained = bytes.iter().filter(|byte| matches!(byte, b';' | b'&' | b'|' | b'\n')).count();
    let is_too_deep = || nested + words.filter(is_nesting).count() > MAX_NESTED || chained > MAX_CHAINED;
    if source.len() > MAX_LENGTH || is_too_deep() { None } else { rable::parse(source, true).ok() }
}

impl Script {
    /// `None`: it is no script that the parser understands, or it may be too deep. One call of an agent is asked about
    /// several times in a row, so the scripts of the last one are remembered.
    pub(super) fn parse(source: &str) -> Option<Rc<Self>> {
        type Parsed = (String, Option<Rc<Script>>);
        const REMEMBERED: usize = 4;
        thread_local! {
            static PARSED: RefCell<VecDeque<Parsed>> = const { RefCell::new(VecDeque::new()) };
        }
        PARSED.with_borrow_mut(|parsed| {
            if let Some((_, script)) = parsed.iter().find(|(known, _)| known == source) {
                return script.clone();
            }
            let script = nodes(source).map(|nodes| Rc::new(Self::of(nodes)));
            parsed.truncate(REMEMBERED - 1);
            parsed.push_front((source.to_owned(), script.clone()));
            script
        })
    }

    fn of(nodes: Vec<Node>) -> Self {
        let mut script = Self::default();
        let mut rest: Vec<(&Node, usize)> = nodes.iter().rev().map(|node| (node, 0)).collect();
        while let Some((node, scope)) = rest.pop() {
            let mut inner = Vec::new();
            script.visit(node, scope, &mut inner);
            rest.extend(inner.into_iter().rev());
        }
        script.nodes = nodes;
        script
    }

    /// All combinations of values that variables may have, at most `most`.
    pub(super) fn variants(&self, most: usize) -> Vec<Variant<'_>> {
        self.variables.variants(most)
    }

    /// The commands with these values of variables.
    pub(super) fn commands(&self, variant: &Variant<'_>) -> Vec<Vec<Word>> {
        let words = |words: &Vec<Vec<Piece>>| words.iter().map(|word| variant.word(word)).collect();
        self.commands.iter().map(words).collect()
    }

    /// The names that are assigned, with the values.
    pub(super) fn assigned<'s>(&'s self, variant: &Variant<'_>) -> impl Iterator<Item = (&'s str, Word)> {
        self.assignments.iter().filter_map(move |pieces| {
            let Some(Piece::Text(text)) = pieces.first() else { return None };
            let (name, _) = text.split_once('=')?;
            let value = variant.word(pieces).and_then(|whole| whole.get(name.len() + 1..).map(str::to_owned));
            Some((name, value))
        })
    }

    /// Adds what a node runs, and to `inner` the nodes in it.
    fn visit<'n>(&mut self, node: &'n Node, scope: usize, inner: &mut Vec<Inner<'n>>) {
        let here = |node: &'n Node| (node, scope);
        match &node.kind {
            NodeKind::Command { assignments, words, redirects } => {
                self.simple_command(assignments, words, scope, inner);
                if let Some(at) = self.commands.len().checked_sub(1).filter(|_| !words.is_empty()) {
                    let inputs = redirects.iter().filter(|redirect| is_input(redirect)).count();
                    let texts = redirects.iter().filter_map(here_text);
                    self.read.extend(
                        texts.map(|(text, is_plain)| (at, HereText { text, is_whole: is_plain && inputs == 1 })),
                    );
                    self.written.extend(redirects.iter().filter_map(output).map(|file| (at, file)));
                }
                inner.extend(redirects.iter().map(here));
            }
            NodeKind::Word { value, parts, .. } => parts.iter().for_each(|part| self.part(part, value, scope, inner)),
            NodeKind::Pipeline { commands, .. } if commands.len() > 1 => {
                inner.extend(commands.iter().map(|command| (command, self.variables.part_of(scope))));
            }
            NodeKind::Pipeline { commands, .. } => inner.extend(commands.iter().map(here)),
            NodeKind::List { items } => self.chain(items, scope, inner),
            NodeKind::If { condition, then_body, else_body, redirects } => {
                inner.extend([&**condition].into_iter().chain(redirects).map(here));
                let bodies = [&**then_body].into_iter().chain(else_body.as_deref());
                inner.extend(bodies.map(|body| (body, self.variables.part_of(scope))));
            }
            NodeKind::While { condition, body, redirects } | NodeKind::Until { condition, body, redirects } => {
                inner.extend([&**condition].into_iter().chain(redirects).map(here));
                inner.push((body, self.variables.part_of(scope)));
            }
            NodeKind::For { .. } | NodeKind::Select { .. } | NodeKind::ForArith { .. } => {
                self.list_loop(&node.kind, scope, inner);
            }
            NodeKind::Case { word, patterns, redirects } => {
                inner.extend([&**word].into_iter().chain(redirects).map(here));
                for pattern in patterns {
                    let within = self.variables.part_of(scope);
                    inner.extend(pattern.patterns.iter().chain(&pattern.body).map(|node| (node, within)));
                }
            }
            NodeKind::Subshell { body, redirects } | NodeKind::BraceGroup { body, redirects } => {
                inner.extend(redirects.iter().map(here));
                inner.push((body, self.variables.part_of(scope)));
            }
            NodeKind::Function { body, name } => {
                self.variables.function(name);
                inner.push((body, self.variables.part_of(scope)));
            }
            NodeKind::Coproc { command: only, .. }
            | NodeKind::CommandSubstitution { command: only, .. }
            | NodeKind::ProcessSubstitution { command: only, .. } => {
                inner.push((only, self.variables.part_of(scope)));
            }
            NodeKind::Negation { pipeline: only }
            | NodeKind::Time { pipeline: only, .. }
            | NodeKind::Redirect { target: only, .. } => inner.push(here(only)),
            NodeKind::HereDoc { content, quoted, .. } if !quoted => self.text(content),
            NodeKind::HereDoc { .. } | NodeKind::Comment { .. } | NodeKind::Empty => {}
            // Conditions and arithmetic keep what they substitute as text.
            _ => self.text(&format!("{node:?}")),
        }
    }

    fn list_loop<'n>(&mut self, kind: &'n NodeKind, scope: usize, inner: &mut Vec<Inner<'n>>) {
        let within = self.variables.part_of(scope);
        match kind {
            NodeKind::For { var, words, body, redirects } => {
                self.variables.each(var, words.as_deref(), within);
                inner.extend(words.iter().flatten().chain(redirects).map(|node| (node, scope)));
                inner.push((body, within));
            }
            NodeKind::Select { var, words, body, redirects } => {
                self.variables.may_change(var);
                inner.extend(words.iter().flatten().chain(redirects).map(|node| (node, scope)));
                inner.push((body, within));
            }
            NodeKind::ForArith { init, cond, incr, body, redirects } => {
                [init, cond, incr].into_iter().for_each(|text| self.text(text));
                inner.extend(redirects.iter().map(|node| (node, scope)));
                inner.push((body, within));
            }
            _ => {}
        }
    }

    fn simple_command<'n>(
        &mut self,
        assignments: &'n [Node],
        words: &'n [Node],
        scope: usize,
        inner: &mut Vec<Inner<'n>>,
    ) {
        let given = words.iter().map(|word| self.variables.known_in(scope, pieces(word)));
        let given: Vec<Vec<Piece>> = given.collect();
        for assignment in assignments {
            let whole = pieces(assignment);
            self.variables.assignment(&whole, given.is_empty(), scope);
            self.assignments.push(self.variables.known_in(scope, whole));
        }
        if !given.is_empty() {
            self.variables.command(&given, scope);
            let is_named = |name: &str| given[0] == [Piece::Text(name.to_owned())];
            let (values, given) = if ASSIGNING.iter().any(|name| is_named(name)) {
                given.into_iter().partition(|word| sets_variable(word))
            } else {
                (Vec::new(), given)
            };
            self.assignments.extend(values);
            self.commands.push(given);
        }
        inner.extend(assignments.iter().chain(words).map(|node| (node, scope)));
    }

    /// Commands with `;`, `&`, `&&` and `||` between them. What follows `&&` ran after all before it in its chain; what
    /// follows `||`, and then all of the chain, after the first command alone.
    fn chain<'n>(&mut self, items: &'n [ListItem], scope: usize, inner: &mut Vec<Inner<'n>>) {
        let (mut within, mut has_choice, mut before) = (scope, false, None);
        for (command, operator) in unfolded(items) {
            match before {
                Some(ListOperator::And) if !has_choice => within = self.variables.part_of(within),
                Some(ListOperator::And | ListOperator::Or) => {
                    has_choice = true;
                    within = self.variables.part_of(scope);
                }
                _ => (within, has_choice) = (scope, false),
            }
            let is_background = operator == Some(ListOperator::Background);
            inner.push((command, if is_background { self.variables.part_of(within) } else { within }));
            before = operator;
        }
    }

    /// A part of the word `whole`.
    fn part<'n>(&mut self, part: &'n Node, whole: &str, scope: usize, inner: &mut Vec<Inner<'n>>) {
        match &part.kind {
            NodeKind::WordLiteral { .. } | NodeKind::AnsiCQuote { .. } | NodeKind::BraceExpansion { .. } => {}
            NodeKind::CommandSubstitution { command, .. } | NodeKind::ProcessSubstitution { command, .. } => {
                inner.push((command, self.variables.part_of(scope)));
            }
            // A subscript may run commands.
            NodeKind::ParamExpansion { op: None, .. } if !whole.contains('[') => {}
            _ => self.text(whole),
        }
    }

    fn text(&mut self, text: &str) {
        self.variables.text(text);
        self.hides_commands |= ["$(", "`", "<(", ">("].iter().any(|start| text.contains(start));
    }
}

/// Whether a word is `NAME=value` with a value that is known only when the command runs.
fn sets_variable(word: &[Piece]) -> bool {
    let [Piece::Text(text), _, ..] = word else { return false };
    let name = text.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))
}

fn is_input(redirect: &Node) -> bool {
    match &redirect.kind {
        NodeKind::HereDoc { .. } => true,
        NodeKind::Redirect { op, .. } => op.starts_with('<'),
        _ => false,
    }
}

/// The file behind `>` and `>>`.
fn output(redirect: &Node) -> Option<Vec<Piece>> {
    match &redirect.kind {
        NodeKind::Redirect { op, target, .. } if op.starts_with(['>', '&']) => Some(pieces(target)),
        _ => None,
    }
}

/// The text of `<<E` and `<<<`, and whether the shell puts nothing into it.
fn here_text(redirect: &Node) -> Option<(String, bool)> {
    match &redirect.kind {
        NodeKind::HereDoc { content, quoted, .. } => {
            Some((content.clone(), *quoted || !content.contains(['$', '`', '\\'])))
        }
        NodeKind::Redirect { op, target, .. } if op == "<<<" => Some((Variant::default().word(&pieces(target))?, true)),
        _ => None,
    }
}

/// Programs that take `NAME=value` before the program that they run, or alone.
const ASSIGNING: [&str; 4] = ["env", "sudo", "doas", "export"];

/// The commands of a chain, which the parser may have put into its first one.
fn unfolded(items: &[ListItem]) -> Vec<(&Node, Option<ListOperator>)> {
    let mut found = Vec::new();
    let mut rest: Vec<(&Node, Option<ListOperator>)> =
        items.iter().rev().map(|item| (&item.command, item.operator)).collect();
    while let Some((node, operator)) = rest.pop() {
        match (&node.kind, operator) {
            (NodeKind::List { items }, Some(ListOperator::And | ListOperator::Or)) => {
                // The last one is followed by what follows them all.
                let inner = items.iter().rev().enumerate();
                rest.extend(
                    inner.map(|(index, item)| (&item.command, if index == 0 { operator } else { item.operator })),
                );
            }
            _ => found.push((node, operator)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(source: &str) -> Vec<String> {
        let script = Script::parse(source).expect(source);
        let word = |word: &Word| word.clone().unwrap_or_else(|| "?".to_owned());
        script
            .commands(&Variant::default())
            .iter()
            .map(|words| words.iter().map(word).collect::<Vec<_>>().join("|"))
            .collect()
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
