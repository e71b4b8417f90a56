//! The prompt: reads a line with completion and history, and parses it.

use std::path::{Path, PathBuf};

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Config, Editor, Helper};

use crate::error::Failure;
use crate::model::Slug;

pub(super) const PROMPT: &str = "squad> ";

/// A parsed line.
#[derive(Debug, PartialEq)]
pub(super) enum Typed {
    Message(String),
    /// Cancel the current work, or one agent's.
    Cancel(Option<String>),
    /// Resume the last message, which was not answered.
    Resume,
    Status,
    Agents,
    Help,
    Leave,
    /// An unknown `/command`.
    Unknown(String),
}

pub(super) const HELP: &str = "\
Each line is a message to the team; end it with \\ to continue on the next line. Tab completes agents (@) and files.
While the team works, just type: `@agent …` reaches an agent at work, any other line is the next message.
  /status           what is going on
  /agents           who is on the team
  /cancel [AGENT]   cancel the current work, or one agent's
  /resume           go on with a message that was cut short
  /help             this
  /quit             leave; so do Ctrl-D, and Ctrl-C twice
Ctrl-C cancels the current work.";

pub(super) struct Prompt {
    editor: Editor<Names, FileHistory>,
    history: PathBuf,
}

impl Prompt {
    /// `history`: the file that keeps typed lines for the next time.
    pub(super) fn new(agents: Vec<Slug>, root: &Path, history: PathBuf) -> Result<Self, Failure> {
        let config = Config::builder().auto_add_history(true).history_ignore_space(true).build();
        let no_terminal = |error: ReadlineError| Failure::failed(format!("cannot read from the terminal: {error}"));
        let mut editor = Editor::with_config(config).map_err(no_terminal)?;
        editor.set_helper(Some(Names { agents, root: root.to_owned() }));
        // There is none the first time.
        let _ = editor.load_history(&history);
        Ok(Self { editor, history })
    }

    /// The next line that is not empty. `begun`: text that was typed already.
    pub(super) fn read(&mut self, begun: &str) -> Result<Typed, Failure> {
        let (mut begun, mut is_interrupted) = (begun, false);
        loop {
            match self.line(begun) {
                Ok(Some(typed)) => return Ok(typed),
                Ok(None) => is_interrupted = false,
                // The first Ctrl-C discards the line, as in a shell; the second leaves.
                Err(ReadlineError::Interrupted) if !is_interrupted => is_interrupted = true,
                Err(ReadlineError::Eof | ReadlineError::Interrupted) => return Ok(Typed::Leave),
                Err(error) => return Err(Failure::failed(format!("cannot read from the terminal: {error}"))),
            }
            begun = "";
        }
    }

    /// A line that the user began while the team works. `None`: it was discarded.
    pub(super) fn read_one(&mut self, begun: &str) -> Option<Typed> {
        self.line(begun).ok().flatten()
    }

    /// `None`: nothing was typed.
    fn line(&mut self, begun: &str) -> Result<Option<Typed>, ReadlineError> {
        let line = self.editor.readline_with_initial(PROMPT, (begun, ""))?;
        // A failure only means that the line is missing from the history next time.
        let _ = self.editor.append_history(&self.history);
        Ok(parse_line(&line))
    }
}

/// `None`: nothing was typed.
pub(super) fn parse_line(line: &str) -> Option<Typed> {
    let message = line.replace("\\\n", "\n");
    Some(match message.trim() {
        "" => return None,
        "/cancel" => Typed::Cancel(None),
        command if command.starts_with("/cancel ") => {
            Typed::Cancel(command.split_whitespace().nth(1).map(|name| name.trim_start_matches('@').to_owned()))
        }
        "/resume" => Typed::Resume,
        "/status" => Typed::Status,
        "/agents" => Typed::Agents,
        "/help" | "/?" | "?" | "help" => Typed::Help,
        "/quit" | "/exit" | "/q" | "quit" | "exit" => Typed::Leave,
        word if is_word(word) => Typed::Unknown(word.to_owned()),
        message => Typed::Message(message.to_owned()),
    })
}

/// Whether a text looks like a mistyped command, such as `/staus`. A path such as `/etc/hosts` does not.
fn is_word(text: &str) -> bool {
    text.strip_prefix('/').is_some_and(|word| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphabetic()))
}

/// Completion: agents after an `@`, files elsewhere.
struct Names {
    agents: Vec<Slug>,
    root: PathBuf,
}

impl Completer for Names {
    type Candidate = Pair;

    fn complete(&self, line: &str, end: usize, _: &rustyline::Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = &line[..end];
        let start =
            typed.rfind(char::is_whitespace).map_or(0, |at| at + typed[at..].chars().next().map_or(1, char::len_utf8));
        let word = &typed[start..];
        let found = match word.strip_prefix('@') {
            Some(name) => self.agents(name),
            None => self.files(word),
        };
        Ok((start, found.into_iter().map(|name| Pair { display: name.clone(), replacement: name }).collect()))
    }
}

impl Names {
    fn agents(&self, begin: &str) -> Vec<String> {
        self.agents.iter().filter(|slug| slug.as_str().starts_with(begin)).map(|slug| format!("@{slug} ")).collect()
    }

    fn files(&self, begin: &str) -> Vec<String> {
        let (folder, name) = begin.rsplit_once('/').map_or(("", begin), |(folder, name)| (folder, name));
        if name.is_empty() && folder.is_empty()
            || Path::new(folder).is_absolute()
            || folder.split('/').any(|part| part == "..")
        {
            return Vec::new();
        }
        let entries = std::fs::read_dir(self.root.join(folder)).into_iter().flatten().flatten();
        let mut found: Vec<String> = entries
            .filter_map(|entry| {
                let file = entry.file_name().into_string().ok()?;
                let fits = file.starts_with(name) && !file.chars().any(char::is_control);
                let end = if entry.file_type().is_ok_and(|kind| kind.is_dir()) { "/" } else { "" };
                let before = if folder.is_empty() { String::new() } else { format!("{folder}/") };
                fits.then(|| format!("{before}{file}{end}"))
            })
            .collect();
        found.sort();
        found
    }
}

impl Validator for Names {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let goes_on = context.input().ends_with('\\');
        Ok(if goes_on { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

impl Hinter for Names {
    type Hint = String;
}

impl Highlighter for Names {}

impl Helper for Names {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_message_unless_it_is_a_command() {
        assert_eq!(parse_line("  "), None);
        assert_eq!(parse_line("/status "), Some(Typed::Status));
        for word in ["/quit", "quit", "exit "] {
            assert_eq!(parse_line(word), Some(Typed::Leave));
        }
        assert_eq!(parse_line("help"), Some(Typed::Help));
        assert_eq!(parse_line("help me"), Some(Typed::Message("help me".to_owned())));
        assert_eq!(parse_line("/cancel"), Some(Typed::Cancel(None)));
        assert_eq!(parse_line("/cancel  @ada"), Some(Typed::Cancel(Some("ada".to_owned()))));
        assert_eq!(parse_line("/staus"), Some(Typed::Unknown("/staus".to_owned())));
        assert_eq!(parse_line("add it\\\nwith tests"), Some(Typed::Message("add it\nwith tests".to_owned())));
        assert_eq!(parse_line("/etc/hosts is wrong"), Some(Typed::Message("/etc/hosts is wrong".to_owned())));
    }

    #[test]
    fn agents_and_files_are_completed() {
        let root = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(root.path().join("src")).expect("a folder");
        std::fs::write(root.path().join("src/main.rs"), "").expect("a file");
        let slug = |name| Slug::fold(name).expect("a slug");
        let names = Names { agents: vec![slug("backend"), slug("docs")], root: root.path().to_owned() };
        assert_eq!(names.agents("b"), ["@backend "]);
        assert_eq!(names.files("sr"), ["src/"]);
        assert_eq!(names.files("src/m"), ["src/main.rs"]);
        assert_eq!(names.files("../"), [""; 0]);
        assert_eq!(names.files("/et"), [""; 0]);
    }
}
