//! All output: data to stdout, messages to stderr. Colour never carries meaning.

mod pager;

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, BufRead, Read, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use self::pager::Pager;
use crate::env::Streams;
use crate::error::Failure;
use crate::model::{Activity, Event, Problem, Severity, printable};
use crate::policy::is_yes;
use crate::view::{Painter, Progress, Screen, Size, Text, line_was_ended, markdown, size, without_signs};

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorChoice {
    #[default]
    Auto,
    Always,
    Never,
}

/// Options for output.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OutputOptions {
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    pub(crate) verbose: bool,
    pub(crate) color: ColorChoice,
    /// A terminal without Unicode.
    pub(crate) ascii: bool,
    /// A dumb terminal, which cannot redraw lines.
    pub(crate) plain: bool,
    /// The terminal has no colours, or `NO_COLOR` (no-color.org) is set.
    pub(crate) colorless: bool,
    /// Long output may be shown in a pager.
    pub(crate) pages: bool,
}

/// The answer to a yes-or-no question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consent {
    Yes,
    No,
    /// Nobody can be asked.
    Unavailable,
}

/// Lines are laid out for at most this many columns.
const COLUMNS: usize = 100;

pub(crate) struct Ui {
    streams: Streams,
    options: OutputOptions,
    /// The reader of stdout is gone. The work continues without output.
    out_closed: bool,
    out_error: Option<io::Error>,
    pager: Option<Pager>,
}

/// The words next to a colour carry the meaning.
pub(crate) const STRONG: Style = Style::new().bold();
pub(crate) const FAINT: Style = Style::new().dimmed();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default().bold();
pub(crate) const NOTE: Style = AnsiColor::Cyan.on_default();

impl Ui {
    pub(crate) fn new(streams: Streams, options: OutputOptions) -> Self {
        Self { streams, options, out_closed: false, out_error: None, pager: None }
    }

    /// A user interface without output.
    pub(crate) fn silent() -> Self {
        Self::new(Streams::silent(), OutputOptions::default())
    }

    pub(crate) fn json(&self) -> bool {
        self.options.json
    }

    pub(crate) fn is_verbose(&self) -> bool {
        self.options.verbose
    }

    /// Whether stderr is a terminal that can show animation.
    pub(crate) fn shows_progress(&self) -> bool {
        self.streams.err_is_terminal && !self.options.quiet && !self.options.json && !self.options.plain
    }

    /// Shows what is done until the result is dropped.
    pub(crate) fn progress(&self, activity: &Activity) -> Progress {
        let is_shown = self.shows_progress() || self.says_alive();
        Progress::of(activity, is_shown.then(|| self.shows_progress()))
    }

    pub(crate) fn input_is_terminal(&self) -> bool {
        self.streams.in_is_terminal
    }

    /// Whether a user can answer questions.
    pub(crate) fn can_ask(&self) -> bool {
        self.streams.in_is_terminal && self.streams.err_is_terminal
    }

    /// Whether a user can hold a conversation: input and output are a terminal.
    pub(crate) fn can_converse(&self) -> bool {
        self.can_ask() && self.streams.out_is_terminal
    }

    /// Standard input.
    pub(crate) fn input(&self) -> Box<dyn BufRead> {
        (self.streams.input)()
    }

    /// Opens standard input in another thread.
    pub(crate) fn input_opener(&self) -> fn() -> Box<dyn BufRead> {
        self.streams.input
    }

    /// Takes stdout for a protocol; from now on nothing else is written there.
    pub(crate) fn take_output(&mut self) -> Box<dyn Write + Send> {
        std::mem::replace(&mut self.streams.out, Box::new(io::sink()))
    }

    /// Asks the user a yes-or-no question, unless `yes` has answered it.
    pub(crate) fn confirm(&mut self, question: &str, yes: bool) -> Consent {
        if yes {
            return Consent::Yes;
        }
        if !self.can_ask() || self.options.json {
            return Consent::Unavailable;
        }
        let question = wrapped(&format!("{} [y/N]", printable(question)), self.columns());
        let _ = write!(self.streams.err, "{question} ").and_then(|()| self.streams.err.flush());
        let mut line = String::new();
        let answered = self.input().read_line(&mut line).is_ok();
        line_was_ended();
        if answered && is_yes(&line) { Consent::Yes } else { Consent::No }
    }

    /// Asks the user for a line; `default` if it is empty. `None`: the end of input.
    pub(crate) fn ask(&mut self, question: &str, default: &str) -> Option<String> {
        let question = wrapped(&format!("{} [{}]", printable(question), printable(default)), self.columns());
        let _ = write!(self.streams.err, "{question} ").and_then(|()| self.streams.err.flush());
        let mut line = String::new();
        let read = self.input().read_line(&mut line).ok();
        line_was_ended();
        read.filter(|count| *count > 0)?;
        let answer = line.trim();
        Some(if answer.is_empty() { default } else { answer }.to_owned())
    }

    /// Reads a secret without echo, or all of standard input if there is no user.
    pub(crate) fn read_secret(&self, prompt: &str) -> io::Result<Vec<u8>> {
        if self.can_ask() { (self.streams.secret)(prompt).map(String::into_bytes) } else { self.read_input() }
    }

    /// All of standard input.
    pub(crate) fn read_input(&self) -> io::Result<Vec<u8>> {
        const MOST: u64 = 64 << 20;
        let mut bytes = Vec::new();
        let read = Read::take(self.input(), MOST + 1).read_to_end(&mut bytes)? as u64;
        if read > MOST { Err(io::Error::other("it is longer than 64 MiB")) } else { Ok(bytes) }
    }

    /// Whether stdout is still open.
    pub(crate) fn is_heard(&self) -> bool {
        !self.out_closed
    }

    /// Writes a line of data to stdout.
    pub(crate) fn data(&mut self, text: &str) {
        let is_seen = self.output_is_terminal() && !self.options.json;
        let text = if is_seen { self.lettered(text) } else { Cow::Borrowed(text) };
        self.write_out(format!("{}\n", text.trim_end_matches('\n')).as_bytes());
    }

    /// Writes text unchanged; on a terminal, without harmful characters.
    pub(crate) fn verbatim(&mut self, text: &str) {
        match self.output_is_terminal() {
            true => self.write_out(printable(text).as_bytes()),
            false => self.write_out(text.as_bytes()),
        }
    }

    /// Whether people see stdout, and no program reads it.
    pub(crate) fn output_is_terminal(&self) -> bool {
        self.streams.out_is_terminal
    }

    /// Writes bytes to stdout, which is no terminal.
    pub(crate) fn write_out(&mut self, bytes: &[u8]) {
        if self.out_closed {
            return;
        }
        let written = self.streams.out.write_all(bytes).and_then(|()| self.streams.out.flush());
        if let Err(error) = written {
            self.out_closed = true;
            self.out_error = (error.kind() != io::ErrorKind::BrokenPipe).then_some(error);
        }
    }

    /// Writes a value to stdout as one line of JSON.
    pub(crate) fn value(&mut self, value: &impl Serialize) {
        match crate::view::json_line(value) {
            Ok(line) => self.data(&line),
            Err(error) => self.warning(&format!("a value could not be written as JSON: {error}")),
        }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.options.quiet
    }

    /// Writes a message to stderr. Errors are ignored: a closed stderr means that nobody wants it.
    pub(crate) fn say(&mut self, text: &str) {
        if !self.options.quiet {
            // What has styles is laid out.
            let is_prose = self.streams.err_is_terminal && !text.contains('\u{1b}');
            let shown = if is_prose { &wrapped(text, self.columns()) } else { text };
            let _ = writeln!(self.streams.err, "{}", self.lettered(shown));
        }
    }

    /// Writes what the user asked for and stdout has no place for, also if little is to be said.
    pub(crate) fn notice(&mut self, text: &str) {
        let _ = writeln!(self.streams.err, "{text}");
    }

    pub(crate) fn warning(&mut self, text: &str) {
        let shown = self.err_prose(WARN, "warning:", text);
        let _ = writeln!(self.streams.err, "{shown}");
    }

    pub(crate) fn hint(&mut self, text: &str) {
        let shown = self.err_prose(NOTE, "hint:", text);
        self.say(&shown);
    }

    /// Shows problems, except the first error: the command that fails because of it reports it.
    pub(crate) fn problems(&mut self, problems: &[Problem]) {
        let fatal = problems.iter().position(|problem| problem.severity == Severity::Error);
        let verbose = self.options.verbose;
        let is_shown = |(index, problem): &(usize, &Problem)| {
            Some(*index) != fatal && (problem.severity != Severity::Note || verbose)
        };
        self.all_problems(problems.iter().enumerate().filter(is_shown).map(|(_, problem)| problem));
    }

    pub(crate) fn all_problems<'p>(&mut self, problems: impl IntoIterator<Item = &'p Problem>) {
        let problems: Vec<&Problem> = problems.into_iter().collect();
        for (place, more) in self.folded(&problems) {
            let problem = problems[place];
            let mark = format!("{}:", problem.severity);
            let shown = self.err_prose(style(problem.severity), &mark, &problem.to_string());
            self.say(&shown);
            if let Some(hint) = &problem.hint {
                self.hint(hint);
            }
            if more > 0 {
                self.say(&more_like_it(more));
            }
        }
    }

    /// The problems to show, by their places, each with the number of similar ones left out after it. Of many with the
    /// same code and hint, only the first few are shown.
    pub(crate) fn folded<'p>(&self, problems: &[&'p Problem]) -> Vec<(usize, usize)> {
        const MANY: usize = 5;
        const SHOWN: usize = 3;
        fn alike(problem: &Problem) -> (&str, Option<&str>) {
            (&problem.code, problem.hint.as_deref())
        }
        let mut counts: HashMap<(&str, Option<&str>), (usize, usize)> = HashMap::new();
        for problem in problems {
            counts.entry(alike(problem)).or_default().0 += 1;
        }
        let show = |(place, problem): (usize, &&'p Problem)| {
            let (all, shown) = counts.get_mut(&alike(problem))?;
            *shown += 1;
            match *all >= MANY && !self.options.verbose {
                true if *shown > SHOWN => None,
                true if *shown == SHOWN => Some((place, *all - SHOWN)),
                _ => Some((place, 0)),
            }
        };
        problems.iter().enumerate().filter_map(show).collect()
    }

    /// Reports why a command failed.
    pub(crate) fn failure(&mut self, failure: &Failure) {
        if self.options.json && !self.out_closed {
            self.value(&serde_json::json!({ "error": failure }));
            return;
        }
        let location = failure.source.as_ref().map(|source| format!("{source}: ")).unwrap_or_default();
        let shown = self.err_prose(BAD, "error:", &format!("{location}{}", failure.message));
        let _ = writeln!(self.streams.err, "{shown}");
        for hint in failure.hint.iter().flat_map(|hint| hint.lines()) {
            let shown = self.err_prose(NOTE, "hint:", hint);
            let _ = writeln!(self.streams.err, "{shown}");
        }
    }

    pub(crate) fn out_paint(&self, style: Style, text: &str) -> String {
        paint(self.colors(self.streams.out_is_terminal), style, text)
    }

    pub(crate) fn err_paint(&self, style: Style, text: &str) -> String {
        paint(self.colors(self.streams.err_is_terminal), style, text)
    }

    /// With letters that the terminal has.
    fn lettered<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.options.ascii { Cow::Owned(without_signs(text)) } else { Cow::Borrowed(text) }
    }

    fn err_prose(&self, style: Style, mark: &str, text: &str) -> String {
        let columns = self.streams.err_is_terminal.then(|| self.columns());
        prose(columns, &self.err_paint(style, mark), (mark, &self.lettered(text)))
    }

    /// An error while writing to stdout, such as a full disk, but not a closed pipe.
    pub(crate) fn output_failure(&mut self) -> Option<Failure> {
        self.out_error.take().map(|error| Failure::failed(format!("cannot write the output: {error}")))
    }

    fn colors(&self, is_terminal: bool) -> bool {
        match self.options.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => is_terminal && !self.options.colorless,
        }
    }
}

pub(crate) fn more_like_it(count: usize) -> String {
    format!("and {count} more like it: --verbose shows all")
}

fn style(severity: Severity) -> Style {
    match severity {
        Severity::Error => BAD,
        Severity::Warning => WARN,
        Severity::Note => NOTE,
    }
}

/// Lines that are wrapped by word.
fn wrapped(text: &str, columns: usize) -> String {
    let lines = text.split('\n').flat_map(|line| Text::prose(line).wrapped(columns));
    lines.map(|line| line.to_string()).collect::<Vec<_>>().join("\n")
}

/// Sentences behind a mark, wrapped by word for a terminal of so many columns.
fn prose(columns: Option<usize>, painted: &str, (mark, text): (&str, &str)) -> String {
    let text = format!("{mark} {}", printable(text));
    let shown = match columns {
        Some(columns) => wrapped(&text, columns),
        None => text,
    };
    format!("{painted}{}", shown.strip_prefix(mark).unwrap_or(&shown))
}

fn paint(colored: bool, style: Style, text: &str) -> String {
    if colored { format!("{style}{text}{style:#}") } else { text.to_owned() }
}

impl Ui {
    /// Writes lines of data, wrapped on a terminal.
    pub(crate) fn texts(&mut self, lines: &[Text]) {
        let (is_terminal, columns) = (self.streams.out_is_terminal, self.out_columns());
        for line in lines {
            let shown = self.painted(line, is_terminal, columns);
            self.data(&shown);
        }
    }

    /// The width that data is laid out for.
    pub(crate) fn out_columns(&self) -> usize {
        columns(self.streams.out_is_terminal.then(|| size(&io::stdout())))
    }

    /// A line with its styles, wrapped if a terminal shows it.
    fn painted(&self, line: &Text, is_terminal: bool, columns: usize) -> String {
        let lines = if is_terminal { line.wrapped(columns) } else { vec![line.clone()] };
        let painter = Painter { has_colors: self.colors(is_terminal), is_ascii: self.options.ascii };
        lines.iter().map(|line| painter.paint(line)).collect::<Vec<_>>().join("\n")
    }
}

fn columns(terminal: Option<Option<Size>>) -> usize {
    terminal.flatten().map_or(COLUMNS, |size| size.columns.min(COLUMNS))
}

impl Screen for Ui {
    fn answer(&mut self, text: &str) {
        if !self.output_is_terminal() {
            let text = printable(text);
            return self.data(&text);
        }
        let gap = || std::iter::once(Text::default());
        let lines: Vec<Text> = gap().chain(markdown(text, self.out_columns())).chain(gap()).collect();
        self.texts(&lines);
    }

    fn event(&mut self, event: &Event) {
        self.value(event);
    }

    fn text(&mut self, line: &Text) {
        let shown = self.painted(line, self.streams.err_is_terminal, self.columns());
        self.say(&shown);
    }

    fn card(&mut self, lines: &[Text]) {
        let (is_terminal, columns) = (self.streams.err_is_terminal, self.columns());
        for line in lines {
            let shown = self.painted(line, is_terminal, columns);
            self.say(&shown);
        }
    }

    fn columns(&self) -> usize {
        columns(self.streams.err_is_terminal.then(|| size(&io::stderr())))
    }

    fn painter(&self) -> Painter {
        Painter { has_colors: self.colors(self.streams.err_is_terminal), is_ascii: self.options.ascii }
    }

    fn is_animated(&self) -> bool {
        self.shows_progress()
    }

    fn says_alive(&self) -> bool {
        !self.shows_progress() && !self.options.quiet && !self.options.json
    }

    fn is_verbose(&self) -> bool {
        self.options.verbose
    }
}
