//! What a script's variables hold, as far as its text tells: values from plain assignments, `for` lists and `mktemp`.
//!
//! A use has a known value only after an assignment that surely ran: earlier in the same part of the script, or in one
//! around it. Then each value that the script gives the variable anywhere is possible.

use std::collections::{BTreeMap, BTreeSet};

use rable::{Node, NodeKind};

/// A word as the program gets it; `None` where that is known only when the command runs.
pub(super) type Word = Option<String>;

/// Longer values are no paths worth following.
const MAX_VALUE: usize = 256;
/// Of scripts with more parts nothing is known.
const MAX_PARTS: usize = 256;
/// The shell itself changes these.
const SPECIAL: [&str; 8] = ["_", "PWD", "OLDPWD", "DIRSTACK", "REPLY", "MAPFILE", "OPTARG", "COPROC"];
/// They change what values mean, or where `mktemp` makes something.
const MEANING: [&str; 2] = ["IFS", "TMPDIR"];
/// Commands that change variables in ways that only a shell understands.
const OPAQUE: [&str; 7] = ["eval", "source", ".", "alias", "declare", "typeset", "local"];

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Variable(String),
    /// By `mktemp`, at this path.
    Made(String),
    Unknown,
}

#[derive(Debug, Default)]
struct Variable {
    values: BTreeSet<String>,
    is_unknown: bool,
    /// The parts in which it was assigned so far.
    assigned: BTreeSet<usize>,
}

#[derive(Debug, Default)]
pub(super) struct Variables {
    by_name: BTreeMap<String, Variable>,
    /// The part around each part but the whole, which is 0.
    around: Vec<usize>,
    is_opaque: bool,
}

/// One value for each variable whose values are all known. The default knows nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Variant<'v> {
    values: BTreeMap<&'v str, &'v str>,
    knows_made: bool,
}

impl Variant<'_> {
    /// The word with these values; `None` where one is not known.
    pub(super) fn word(&self, pieces: &[Piece]) -> Word {
        let mut text = String::new();
        for piece in pieces {
            text.push_str(match piece {
                Piece::Text(part) => part,
                Piece::Made(path) if self.knows_made => path,
                Piece::Variable(name) => self.values.get(name.as_str())?,
                Piece::Made(_) | Piece::Unknown => return None,
            });
        }
        Some(text)
    }
}

impl Variables {
    /// A part of the script that may not run, or changes no variables of the one around it.
    pub(super) fn part_of(&mut self, scope: usize) -> usize {
        self.is_opaque |= self.around.len() >= MAX_PARTS;
        if !self.is_opaque {
            self.around.push(scope);
        }
        self.around.len()
    }

    /// A `for`. Without words it goes over the script's arguments.
    pub(super) fn each(&mut self, name: &str, words: Option<&[Node]>, scope: usize) {
        match words {
            None => self.assign(name, None, scope),
            Some(words) => words.iter().for_each(|word| self.assign(name, value(&pieces(word)), scope)),
        }
    }

    /// `NAME=value`. Before a command it holds for that command only.
    pub(super) fn assignment(&mut self, pieces: &[Piece], is_lasting: bool, scope: usize) {
        let Some((Piece::Text(first), rest)) = pieces.split_first() else { return };
        let Some((name, start)) = first.split_once('=') else { return };
        let whole: Vec<Piece> = std::iter::once(Piece::Text(start.to_owned())).chain(rest.iter().cloned()).collect();
        // `NAME+=value`, `NAME[0]=value`
        let bare = name.split(['+', '[']).next().unwrap_or_default();
        self.assign(bare, value(&whole).filter(|_| is_lasting && bare == name), scope);
    }

    fn assign(&mut self, name: &str, value: Option<String>, scope: usize) {
        let is_special = SPECIAL.contains(&name) || name.starts_with("BASH");
        self.is_opaque |= MEANING.contains(&name);
        let variable = self.by_name.entry(name.to_owned()).or_default();
        match value.filter(|_| !is_special) {
            Some(value) => drop(variable.values.insert(value)),
            None => variable.is_unknown = true,
        }
        variable.assigned.insert(scope);
    }

    pub(super) fn may_change(&mut self, name: &str) {
        self.by_name.entry(name.to_owned()).or_default().is_unknown = true;
    }

    /// A function takes the place of a program.
    pub(super) fn function(&mut self, name: &str) {
        self.is_opaque |= name == "mktemp";
    }

    /// What a command may do to variables.
    pub(super) fn command(&mut self, words: &[Vec<Piece>], scope: usize) {
        let names: Vec<Word> = words.iter().take(2).map(|word| Variant::default().word(word)).collect();
        let is_hidden = matches!(words.first().map(Vec::as_slice), Some([Piece::Variable(_) | Piece::Unknown]));
        self.is_opaque |= is_hidden || names.iter().flatten().any(|name| OPAQUE.contains(&name.as_str()));
        let exports = matches!(names.first(), Some(Some(name)) if name == "export" || name == "readonly");
        for word in words {
            match word.first() {
                Some(Piece::Text(text)) if exports && text.contains('=') => self.assignment(word, true, scope),
                Some(Piece::Text(text)) if !exports => self.text(text),
                _ => {}
            }
        }
    }

    /// Text that may change variables: `read NAME`, `unset NAME`, `${NAME:=value}`.
    pub(super) fn text(&mut self, text: &str) {
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        if text.bytes().all(|byte| is_name(&byte)) {
            return self.may_change(text);
        }
        for (at, _) in text.bytes().enumerate().filter(|(_, byte)| b"=+[".contains(byte)) {
            let before = text[..at].trim_end_matches(':');
            let name = before.len() - before.bytes().rev().take_while(is_name).count();
            self.may_change(&before[name..]);
        }
    }

    /// A word in which the uses of variables that may not be assigned yet are unknown.
    pub(super) fn known_in(&self, scope: usize, word: Vec<Piece>) -> Vec<Piece> {
        let known = |piece| match piece {
            Piece::Variable(name) if !self.is_assigned(&name, scope) => Piece::Unknown,
            piece => piece,
        };
        word.into_iter().map(known).collect()
    }

    fn is_assigned(&self, name: &str, mut scope: usize) -> bool {
        let Some(variable) = self.by_name.get(name) else { return false };
        loop {
            if variable.assigned.contains(&scope) {
                return true;
            }
            let Some(around) = scope.checked_sub(1).and_then(|index| self.around.get(index)) else { return false };
            scope = *around;
        }
    }

    /// All combinations of known values, at most `most`: variables that would make more of them stay unknown.
    pub(super) fn variants(&self, most: usize) -> Vec<Variant<'_>> {
        if self.is_opaque {
            return vec![Variant::default()];
        }
        let mut variants = vec![Variant { knows_made: true, ..Variant::default() }];
        for (name, variable) in &self.by_name {
            let count = variable.values.len();
            if variable.is_unknown || count == 0 || variants.len() * count > most.max(1) {
                continue;
            }
            if let Some(only) = variable.values.first().filter(|_| count == 1) {
                for variant in &mut variants {
                    variant.values.insert(name, only);
                }
                continue;
            }
            for variant in std::mem::take(&mut variants) {
                variants.extend(variable.values.iter().map(|value| {
                    let mut variant = variant.clone();
                    variant.values.insert(name, value);
                    variant
                }));
            }
        }
        variants
    }
}

/// A value that is one word wherever it is used.
fn value(pieces: &[Piece]) -> Option<String> {
    let text = Variant { knows_made: true, ..Variant::default() }.word(pieces)?;
    // The parser writes `for d` as a list with the literal text `"$@"`.
    let is_word = |c: char| !c.is_whitespace() && !"$`".contains(c);
    Some(text).filter(|text| text.len() <= MAX_VALUE && text.chars().all(is_word))
}

/// What a word consists of.
pub(super) fn pieces(node: &Node) -> Vec<Piece> {
    let NodeKind::Word { parts, .. } = &node.kind else { return vec![Piece::Unknown] };
    let mut quote = None;
    let mut piece = |part: &Node| match &part.kind {
        NodeKind::WordLiteral { value } => Piece::Text(unquoted(value, &mut quote)),
        NodeKind::AnsiCQuote { decoded, .. } => Piece::Text(decoded.clone()),
        NodeKind::ParamExpansion { param, op: None, .. } => Piece::Variable(param.clone()),
        NodeKind::CommandSubstitution { command, .. } => made_by(command).map_or(Piece::Unknown, Piece::Made),
        _ => Piece::Unknown,
    };
    parts.iter().map(&mut piece).filter(|piece| *piece != Piece::Text(String::new())).collect()
}

/// What `mktemp` prints, with its `X` for the letters that it chooses.
fn made_by(command: &Node) -> Option<String> {
    const OPTIONS: [&str; 7] = ["-d", "-q", "-dq", "-t", "-dt", "--directory", "--quiet"];
    let NodeKind::Command { assignments, words, .. } = &command.kind else { return None };
    let words: Option<Vec<String>> = words.iter().map(|word| Variant::default().word(&literal(word))).collect();
    let words = words.filter(|_| assignments.is_empty())?;
    let (program, arguments) = words.split_first()?;
    let (options, templates): (Vec<&String>, Vec<&String>) = arguments.iter().partition(|word| word.starts_with('-'));
    if program != "mktemp" || options.iter().any(|option| !OPTIONS.contains(&option.as_str())) {
        return None;
    }
    match templates[..] {
        [] => Some("/tmp/tmp.XXXXXXXXXX".to_owned()),
        [template] if options.iter().any(|option| option.ends_with('t')) => Some(format!("/tmp/{template}")),
        [template] => Some(template.clone()),
        _ => None,
    }
}

/// A word without what would need another look into it.
fn literal(word: &Node) -> Vec<Piece> {
    let NodeKind::Word { parts, .. } = &word.kind else { return vec![Piece::Unknown] };
    let is_text = |part: &Node| matches!(part.kind, NodeKind::WordLiteral { .. } | NodeKind::AnsiCQuote { .. });
    if parts.iter().all(is_text) { pieces(word) } else { vec![Piece::Unknown] }
}

/// What quotes and backslashes leave of a text without expansions. `quote` is open where the text begins, and where it
/// ends.
pub(super) fn unquoted(text: &str, quote: &mut Option<char>) -> String {
    if quote.is_none() && !text.bytes().any(|byte| b"'\"\\".contains(&byte)) {
        return text.to_owned();
    }
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(next) = chars.next() {
        match (*quote, next) {
            (None, '\'' | '"') => *quote = Some(next),
            (Some(open), _) if open == next => *quote = None,
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
    use crate::policy::shell::Script;

    /// The arguments of each `use` in each variant, with `?` for what is not known.
    fn uses(source: &str) -> Vec<String> {
        let script = Script::parse(source).expect(source);
        let variants = script.variants(16);
        let of = |words: &Vec<Option<String>>| {
            let words: Vec<&str> = words.iter().map(|word| word.as_deref().unwrap_or("?")).collect();
            words.join(" ").strip_prefix("use ").map(str::to_owned)
        };
        variants
            .iter()
            .map(|variant| script.commands(variant).iter().filter_map(of).collect::<Vec<_>>().join("; "))
            .collect()
    }

    #[test]
    fn values_of_assignments_lists_and_mktemp_are_followed() {
        for (source, values) in [
            ("D=a; use $D \"$D\" \"${D}/b c\" x$D", &["a a a/b c xa"][..]),
            ("D='a'b && x && use $D", &["ab"]),
            ("D=a || exit; use $D", &["a"]),
            ("export D=a; export D; use $D", &["a"]),
            ("for d in a b; do x && use $d/c; done", &["a/c", "b/c"]),
            ("for d in a b; do for e in c d; do use $d$e; done; done", &["ac", "ad", "bc", "bd"]),
            ("D=$(mktemp -d); use \"$D/a\"", &["/tmp/tmp.XXXXXXXXXX/a"]),
            ("D=`mktemp -d -t a.XXX`; use $D", &["/tmp/a.XXX"]),
            ("D=$(mktemp -d b/a.XXX); use $D", &["b/a.XXX"]),
            ("use $(mktemp)", &["/tmp/tmp.XXXXXXXXXX"]),
            ("D=a; if x; then (use $D); fi", &["a"]),
            ("if x; then D=a; use $D; fi", &["a"]),
            ("D=a; if x; then D=b; fi; use $D", &["a", "b"]),
            ("D=a; f() { D=b; }; f; use $D", &["a", "b"]),
        ] {
            assert_eq!(uses(source), values, "{source}");
        }
    }

    /// As many as are judged, and one more.
    #[test]
    fn values_are_followed_up_to_a_number() {
        for (lists, count) in [(&[16][..], 16), (&[17], 1), (&[4, 4], 16), (&[4, 5], 4)] {
            let names = ["D", "E"].iter().zip(lists);
            let loops: String = names
                .map(|(name, count)| {
                    let values: Vec<String> = (0..*count).map(|value: u8| value.to_string()).collect();
                    format!("for {name} in {}; do ", values.join(" "))
                })
                .collect();
            let source = format!("{loops}use $D$E{}", "; done".repeat(lists.len()));
            assert_eq!(uses(&source).len(), count, "{source}");
        }
    }

    #[test]
    fn what_is_not_sure_stays_unknown() {
        for source in [
            "use $D; D=a",
            "x && D=a; use $D",
            "x || D=a && use $D",
            "D=a & use $D",
            "D=a | x; use $D",
            "(D=a); use $D",
            "if x; then D=a; fi; use $D",
            "while x; do D=a; done; use $D",
            "for d in a; do x; done; use $d",
            "case x in y) D=a;; esac; use $D",
            "f() { D=a; }; use $D",
            "D=a use $D",
            "D=a; D=b x; use $D",
            "D=a; read -r D; use $D",
            "D=a; unset D; use $D",
            "D=a; printf -v D b; use $D",
            "D=a; D+=b; use $D",
            "D=a; D[0]=b; use $D",
            "D=a; D=$x; use $D",
            "D=a; : ${D:=b}; use $D",
            "D=a; eval 'D=b'; use $D",
            "D=a; . ./b; use $D",
            "D=a; declare -n x=D; use $D",
            "D=a; $x D=b; use $D",
            "D='a b'; use $D",
            "D=a; IFS=b; use $D",
            "PWD=a; use $PWD",
            "D=(a b); use $D",
            "D={a,b}; use $D",
            "D=$(mktemp -u); use $D",
            "D=$(mktemp -p /x); use $D",
            "D=$(mktemp -d; x); use $D",
            "mktemp() { x; }; D=$(mktemp); use $D",
            "export TMPDIR=/x; D=$(mktemp); use $D",
            "for d; do use $d; done",
            "for d in $x; do use $d; done",
            "select d in a b; do use $d; done",
            "for d in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do use $d; done",
        ] {
            assert_eq!(uses(source), ["?"], "{source}");
        }
    }
}
