//! Command lines in the format of `run-agent.template`: words quoted as for a shell, `<%= name %>` for values, and
//! `<% if (name) { %>` … `<% } %>` for parts that need a value. No shell is involved: the text is split into words, and
//! then the values are inserted into the words.

use super::values::{Values, escape_option};
use crate::settings::PLACEHOLDERS;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Template {
    nodes: Vec<Node>,
    /// The first word is the program, not an argument.
    has_program: bool,
    filter: Option<Filter>,
}

/// The program that the output is piped into.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Filter {
    pub(super) program: String,
    line: usize,
}

impl Filter {
    /// Why it cannot be used.
    pub(super) fn refusal(&self) -> String {
        needs_shell('|', self.line)
    }
}

/// A part of a template. A text has the number of its first line.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    Text(String, usize),
    Value(&'static str),
    If { name: &'static str, is_negated: bool, then: Vec<Node>, other: Vec<Node> },
}

/// A part of a word.
#[derive(Debug)]
enum Piece {
    Text(char),
    Value(&'static str),
}

#[derive(Debug, Default)]
struct Word {
    pieces: Vec<Piece>,
    is_quoted: bool,
}

impl Template {
    /// The error names the line and what is wrong there.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if let Some(before) = text.split_once('\0').map(|(before, _)| before) {
            return Err(format!("line {}: there is a NUL character", 1 + before.matches('\n').count()));
        }
        let mut parser = Parser { rest: text, line: 1 };
        let (nodes, end) = parser.nodes(0)?;
        if end != End::Text {
            return Err(format!("line {}: `<% }} %>` closes nothing", parser.line));
        }
        let mut template = Self { nodes, has_program: false, filter: None };
        // Checks the words of both branches now, so that no error remains for later.
        for has_value in [true, false] {
            let mut flat = Vec::new();
            flatten(&template.nodes, &|_| has_value, &mut flat);
            let filter = split(&flat)?.1;
            if let (Some(known), Some(other)) = (&template.filter, &filter)
                && known.program != other.program
            {
                return Err(other.refusal());
            }
            template.filter = template.filter.or(filter);
        }
        if template.words(&|_| true).is_empty() {
            return Err("the template is empty".to_owned());
        }
        Ok(template)
    }

    /// The names of the inserted values.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        let mut names = Vec::new();
        collect_names(&self.nodes, &mut names);
        names.into_iter()
    }

    pub(super) fn filter(&self) -> Option<&Filter> {
        self.filter.as_ref()
    }

    /// The first word, if it does not depend on any value.
    pub(super) fn first_word(&self) -> Option<String> {
        let first = |has_value: bool| -> Option<String> {
            let words = self.words(&|_| has_value);
            let pieces = &words.first()?.pieces;
            pieces.iter().map(|piece| if let Piece::Text(c) = piece { Some(*c) } else { None }).collect()
        };
        first(true).filter(|word| first(false).as_ref() == Some(word))
    }

    /// Takes the first word for the program if it is one of these names.
    pub(super) fn without_program(self, names: &[&str]) -> Self {
        let has_program = self.first_word().is_some_and(|word| names.contains(&word.as_str()));
        Self { has_program, ..self }
    }

    fn words(&self, has_value: &dyn Fn(&str) -> bool) -> Vec<Word> {
        let mut flat = Vec::new();
        flatten(&self.nodes, has_value, &mut flat);
        // `parse` has reported any error.
        split(&flat).unwrap_or_default().0
    }

    pub(super) fn arguments(&self, values: &Values) -> Vec<String> {
        let has_value = |name: &str| values.get(name).is_some_and(|value| !value.is_empty());
        let words = self.words(&has_value).into_iter().skip(usize::from(self.has_program));
        words
            .filter_map(|word| {
                let mut text = String::new();
                let starts_with_value = matches!(word.pieces.first(), Some(Piece::Value(_)));
                for piece in &word.pieces {
                    match piece {
                        Piece::Text(c) => text.push(*c),
                        Piece::Value(name) => text.push_str(values.get(name).unwrap_or_default()),
                    }
                }
                let text = if starts_with_value { escape_option(&text) } else { text };
                (word.is_quoted || !text.is_empty()).then_some(text)
            })
            .collect()
    }
}

fn collect_names(nodes: &[Node], names: &mut Vec<&'static str>) {
    for node in nodes {
        match node {
            Node::Text(..) => {}
            Node::Value(name) => names.push(name),
            Node::If { then, other, .. } => {
                collect_names(then, names);
                collect_names(other, names);
            }
        }
    }
}

/// Replaces each condition by one of its branches.
fn flatten<'n>(nodes: &'n [Node], has_value: &dyn Fn(&str) -> bool, flat: &mut Vec<&'n Node>) {
    for node in nodes {
        match node {
            Node::If { name, is_negated, then, other } => {
                flatten(if has_value(name) == *is_negated { other } else { then }, has_value, flat);
            }
            node => flat.push(node),
        }
    }
}

fn needs_shell(what: char, line: usize) -> String {
    format!("line {line}: `{what}` needs a shell, and no shell is used")
}

/// Splits text into words as a shell does, up to a `|`. What else a shell would do is an error.
fn split(flat: &[&Node]) -> Result<(Vec<Word>, Option<Filter>), String> {
    let mut words: Vec<Word> = Vec::new();
    let mut word: Option<Word> = None;
    let mut quote: Option<char> = None;
    let mut last_line = 1;
    // What belongs to a filter is checked like the rest and then left out.
    let mut filter: Option<(usize, usize)> = None;
    for node in flat {
        let (text, mut line) = match node {
            Node::Value(name) => {
                word.get_or_insert_default().pieces.push(Piece::Value(name));
                continue;
            }
            Node::Text(text, line) => (text, *line),
            Node::If { .. } => continue,
        };
        let mut characters = text.chars().peekable();
        while let Some(c) = characters.next() {
            match (quote, c) {
                (None, '|') if filter.is_none() && characters.peek() != Some(&'|') => {
                    words.extend(word.take());
                    filter = Some((words.len(), line));
                }
                (Some('\''), '\'') | (Some('"'), '"') => quote = None,
                (None, '\'' | '"') => {
                    quote = Some(c);
                    word.get_or_insert_default().is_quoted = true;
                }
                (None | Some('"'), '\\') => match characters.next() {
                    Some('\n') => line += 1,
                    Some('\r') if characters.next_if_eq(&'\n').is_some() => line += 1,
                    Some(next) => {
                        let pieces = &mut word.get_or_insert_default().pieces;
                        if quote.is_some() && !matches!(next, '"' | '\\' | '$' | '`') {
                            pieces.push(Piece::Text('\\'));
                        }
                        pieces.push(Piece::Text(next));
                    }
                    None => return Err(format!("line {line}: nothing follows `\\`")),
                },
                (None | Some('"'), '$' | '`') => return Err(needs_shell(c, line)),
                (None, '|' | '&' | ';' | '<' | '>' | '(' | ')' | '*' | '?') => return Err(needs_shell(c, line)),
                (None, '#') if word.is_none() => while characters.next_if(|c| *c != '\n').is_some() {},
                (None, c) if c.is_whitespace() => {
                    line += usize::from(c == '\n');
                    words.extend(word.take());
                }
                (_, c) => {
                    line += usize::from(c == '\n');
                    word.get_or_insert_default().pieces.push(Piece::Text(c));
                }
            }
        }
        last_line = line;
    }
    if quote.is_some() {
        return Err(format!("line {last_line}: a quote is not closed"));
    }
    words.extend(word);
    let filter = filter.map(|(at, line)| {
        let text = |piece: &Piece| if let Piece::Text(c) = piece { Some(*c) } else { None };
        let program = words.split_off(at).first().map(|word| word.pieces.iter().filter_map(text).collect());
        Filter { program: program.unwrap_or_default(), line }
    });
    Ok((words, filter))
}

struct Parser<'t> {
    rest: &'t str,
    line: usize,
}

/// What ends a list of nodes.
#[derive(PartialEq)]
enum End {
    Text,
    Close,
    Else,
}

/// Maximum depth of nested conditions.
const MAX_DEPTH: usize = 16;

impl<'t> Parser<'t> {
    fn nodes(&mut self, depth: usize) -> Result<(Vec<Node>, End), String> {
        let mut nodes = Vec::new();
        while let Some((before, rest)) = self.rest.split_once("<%") {
            self.text(before, &mut nodes);
            let line = self.line;
            let (tag, rest) =
                rest.split_once("%>").ok_or_else(|| format!("line {line}: `<%` is not closed by `%>`"))?;
            self.line += tag.matches('\n').count();
            self.rest = rest;
            let unknown = || {
                format!(
                    "line {line}: `<%{tag}%>` is not supported; squad supports `<%= NAME %>`, `<% if (NAME) {{ %>`, \
                     `<% }} else {{ %>` and `<% }} %>`"
                )
            };
            if tag.starts_with('#') {
                continue;
            }
            if let Some(value) = tag.strip_prefix(['=', '-']) {
                nodes.push(Node::Value(placeholder(value.trim_end_matches(['-', '_']), line)?));
                continue;
            }
            let words: String = tag.trim_matches(['-', '_']).split_whitespace().collect();
            let words = without_type_test(&words);
            match words.as_str() {
                "}" => return Ok((nodes, End::Close)),
                "}else{" => return Ok((nodes, End::Else)),
                words => {
                    let name =
                        words.strip_prefix("if(").and_then(|rest| rest.strip_suffix("){")).ok_or_else(unknown)?;
                    let (name, is_negated) = name.strip_prefix('!').map_or((name, false), |name| (name, true));
                    let name = placeholder(name, line)?;
                    if depth >= MAX_DEPTH {
                        return Err(format!("line {line}: conditions are nested too deeply"));
                    }
                    nodes.push(self.branch((name, is_negated), depth, line)?);
                }
            }
        }
        let rest = std::mem::take(&mut self.rest);
        self.text(rest, &mut nodes);
        Ok((nodes, End::Text))
    }

    fn branch(&mut self, (name, is_negated): (&'static str, bool), depth: usize, line: usize) -> Result<Node, String> {
        let not_closed = || format!("line {line}: `<% if … %>` is not closed by `<% }} %>`");
        let (then, end) = self.nodes(depth + 1)?;
        let (other, end) = if end == End::Else { self.nodes(depth + 1)? } else { (Vec::new(), end) };
        if end == End::Close { Ok(Node::If { name, is_negated, then, other }) } else { Err(not_closed()) }
    }

    fn text(&mut self, text: &'t str, nodes: &mut Vec<Node>) {
        nodes.push(Node::Text(text.to_owned(), self.line));
        self.line += text.matches('\n').count();
    }
}

/// `if (typeof NAME !== undefined && NAME) {` asks the same as `if (NAME) {` here. The text has no blanks.
fn without_type_test(words: &str) -> String {
    let plain = words.strip_prefix("if(typeof").and_then(|rest| rest.split_once("&&")).and_then(|(test, name)| {
        let (tested, undefined) = test.split_once("!==").or_else(|| test.split_once("!="))?;
        let is_test = undefined.trim_matches(['"', '\'']) == "undefined" && name.strip_suffix("){") == Some(tested);
        is_test.then(|| format!("if({name}"))
    });
    plain.unwrap_or_else(|| words.to_owned())
}

fn placeholder(name: &str, line: usize) -> Result<&'static str, String> {
    let name = name.trim();
    PLACEHOLDERS.into_iter().find(|known| *known == name).ok_or_else(|| {
        format!("line {line}: there is no value `{name}`; values are {}", crate::model::list(PLACEHOLDERS))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CURSOR: &str = "cursor-agent --approve-mcps --model composer-1 --print \\\n\
        <% if (chatId) { %> --resume <%= chatId %> <% } %> \\\nagent \"<%= prompt %>\"\n";

    fn expanded(template: &str, prompt: &str, chat: Option<&str>) -> Vec<String> {
        let values = Values { prompt: Some(prompt.to_owned()), chat_id: chat.map(str::to_owned), ..Values::default() };
        Template::parse(template).expect("a template").arguments(&values)
    }

    #[test]
    fn conditions_are_evaluated_and_values_stay_whole() {
        let head = ["cursor-agent", "--approve-mcps", "--model", "composer-1", "--print"];
        let hostile = "say \"hi\"; rm -rf / `id` $(id) 'x'\n\\ <%= task %> &amp;";
        assert_eq!(expanded(CURSOR, hostile, None), [&head[..], &["agent", hostile]].concat());
        let chat = "x; touch /tmp/owned";
        assert_eq!(expanded(CURSOR, "p", Some(chat)), [&head[..], &["--resume", chat, "agent", "p"]].concat());
        assert_eq!(expanded("a <% if (!chatId) { %>new<% } else { %>old<% } %>", "p", None), ["a", "new"]);
        assert_eq!(expanded("a <% if (!chatId) { %>new<% } else { %>old<% } %>", "p", Some("c")), ["a", "old"]);
        assert_eq!(expanded("a --x=<%= prompt %>b <%= chatId %> '<%- chatId %>'", "p q", None), ["a", "--x=p qb", ""]);
        assert_eq!(expanded("a 'b c' d\\ e \"f\\\"g\" # h", "", None), ["a", "b c", "d e", "f\"g"]);
        assert_eq!(expanded("a <%= prompt %>", "--yolo", None), ["a", " --yolo"]);
    }

    #[test]
    fn a_test_for_undefined_is_one_for_a_value_and_a_filter_is_no_argument() {
        for undefined in ["undefined", "'undefined'", "\"undefined\""] {
            let text = format!(
                "a<% if (typeof chatId !== {undefined} && chatId) {{ %> -r <%= chatId %><% }} %> \"<%= prompt %>\" \\\n  | jq -r '.x | $y'\n"
            );
            assert_eq!(expanded(&text, "p", Some("c")), ["a", "-r", "c", "p"], "{text}");
            assert_eq!(expanded(&text, "p | q", None), ["a", "p | q"], "{text}");
            let template = Template::parse(&text).expect("a template");
            let filter = template.filter().expect("a filter");
            assert_eq!(filter.program, "jq");
            assert!(filter.refusal().starts_with("line 2: `|` needs a shell"));
        }
        assert_eq!(Template::parse("a '|' b").expect("a template").filter(), None);
    }

    #[test]
    fn errors_name_the_line_and_what_is_not_supported() {
        for (template, expected) in [
            ("a || b", "line 1: `|` needs a shell"),
            ("a | jq -r .x | tee y", "line 1: `|` needs a shell"),
            ("a | jq -r .x > y", "line 1: `>` needs a shell"),
            ("a | jq -r .x && rm y", "line 1: `&` needs a shell"),
            ("a <% if (chatId) { %> | jq . <% } else { %>\n| tee x <% } %>", "line 2: `|` needs a shell"),
            ("a\nb \"$(id)\"", "line 2: `$` needs a shell"),
            ("a\nb\0", "line 2: there is a NUL character"),
            ("a > b", "line 1: `>` needs a shell"),
            ("a `id`", "line 1: ``` needs a shell"),
            ("a && b", "line 1: `&` needs a shell"),
            ("a \\\n<%= secret %>", "line 2: there is no value `secret`"),
            ("<% while (1) { %>", "line 1: `<% while (1) { %>` is not supported"),
            ("a <% if (chatId) { %> b", "line 1: `<% if … %>` is not closed"),
            ("a <% } %>", "line 1: `<% } %>` closes nothing"),
            ("a \"b", "line 1: a quote is not closed"),
            ("a <% if (chatId) { %> & b <% } %>", "line 1: `&` needs a shell"),
            ("a <% if (typeof chatId !== undefined && task) { %>b<% } %>", "line 1: there is no value `typeof"),
            ("a <%= prompt", "line 1: `<%` is not closed"),
            (" \n", "the template is empty"),
        ] {
            let error = Template::parse(template).expect_err(template);
            assert!(error.starts_with(expected), "{template}: {error}");
        }
    }
}
