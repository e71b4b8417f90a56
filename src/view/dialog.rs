//! A question for a permission as it stands on the screen, and what a key does to it.

use std::cell::Cell;

use super::region::{Size, height};
use super::text::{Mark, Text};
use super::{LineStyle, keys::Key};
use crate::model::Proposal;

/// Below this width, each answer has a line of its own.
const NARROW: usize = 70;
/// Lines that the body of a question has at least.
const MIN_BODY: usize = 3;

#[derive(Debug)]
pub(super) struct Dialog {
    proposal: Proposal,
    /// It has stood for long enough to be answered.
    pub(super) is_ready: bool,
    shows_help: bool,
    /// All of the body has been shown, or fits.
    is_seen: Cell<bool>,
    /// The body stands above the question.
    is_above: bool,
    /// Who asks next.
    pub(super) behind: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pressed {
    Nothing,
    Answer(&'static str),
    /// The person says why not.
    Say,
    /// The whole body is to be shown.
    ShowAll,
}

impl Dialog {
    pub(super) fn new(proposal: Proposal) -> Self {
        let (is_ready, shows_help, is_seen, is_above, behind) = Default::default();
        Self { proposal, is_ready, shows_help, is_seen, is_above, behind }
    }

    pub(super) fn press(&mut self, key: Key) -> Pressed {
        let Key::Char(letter) = key else { return self.help() };
        match letter.to_ascii_lowercase() {
            'y' if self.may_allow() => Pressed::Answer("y"),
            'a' if self.may_allow() && self.proposal.always.is_some() => Pressed::Answer("a"),
            'r' if self.may_allow() && self.proposal.always.is_some() => Pressed::Answer("r"),
            'k' if self.may_allow() && self.proposal.always.is_some() => Pressed::Answer("k"),
            'n' => Pressed::Answer("n"),
            's' => Pressed::Say,
            'd' if !self.is_seen.get() => {
                self.is_seen.set(true);
                (self.is_above, self.shows_help) = (true, false);
                Pressed::ShowAll
            }
            _ => self.help(),
        }
    }

    fn help(&mut self) -> Pressed {
        self.shows_help = true;
        Pressed::Nothing
    }

    /// Nobody allows a command that they have not seen to its end.
    fn may_allow(&self) -> bool {
        self.is_seen.get() || !self.proposal.is_command
    }

    pub(super) fn title(&self) -> Text {
        let title = Text::marked(LineStyle::Warning, Mark::Attention).hanging();
        title.with(LineStyle::Strong, &self.proposal.title)
    }

    pub(super) fn body(&self) -> impl Iterator<Item = Text> {
        let style = |line: &str| match line.as_bytes().get(7) {
            Some(b'+') if !self.proposal.is_command => LineStyle::Good,
            Some(b'-') if !self.proposal.is_command => LineStyle::Bad,
            _ => LineStyle::Plain,
        };
        self.proposal.body.iter().map(move |line| Text::default().with(style(line), line))
    }

    /// The question as it stands, on a screen of this size.
    pub(super) fn lines(&self, size: Size) -> Vec<Text> {
        let mut title = self.title();
        if let Some(next) = self.behind.first() {
            let count = self.behind.len() + 1;
            title = title.with(LineStyle::Faint, &format!("   (question 1 of {count}; {next} asks next)"));
        }
        let was_seen = self.is_seen.get();
        let mut lines = title.wrapped(size.columns);
        if !self.is_above {
            self.push_body(size, &mut lines);
        }
        if self.is_ready {
            let choices = self.choices(size.columns);
            lines.extend(choices.iter().flat_map(|line| Text::unmarked().plain(line).wrapped(size.columns)));
        }
        if height(lines.iter().map(Text::width), size.columns) < size.lines {
            return lines;
        }
        // What does not fit cannot be taken away again.
        self.is_seen.set(was_seen);
        let choices = self.choices(0);
        let keys = choices.iter().filter_map(|choice| choice.split_once(' ')).map(|(key, _)| key);
        let keys = keys.filter(|key| key.len() == 1).collect::<Vec<_>>().join(" ");
        let keys = Text::unmarked().plain(&keys);
        let room = size.lines.saturating_sub(2).max(1);
        let title = title.wrapped(size.columns).into_iter().take(room).map(|line| line.cut(size.columns));
        title.chain(self.is_ready.then(|| keys.cut(size.columns))).collect()
    }

    /// The beginning of the body that fits.
    fn push_body(&self, size: Size, lines: &mut Vec<Text>) {
        let room = (size.lines * 2 / 3).saturating_sub(5).max(MIN_BODY);
        let body: Vec<Text> = self.body().collect();
        let mut taken = 0;
        let fits = |line: &&Text| {
            taken += height([line.width()].into_iter(), size.columns);
            taken <= room
        };
        let count = body.iter().take_while(fits).count();
        let more = body.len() - count;
        self.is_seen.set(self.is_seen.get() || more == 0);
        lines.extend(body.into_iter().take(count));
        if more > 0 {
            let noun = if more == 1 { "line" } else { "lines" };
            lines.push(Text::default().with(LineStyle::Faint, &format!("       … {more} more {noun}")));
        }
    }

    fn choices(&self, columns: usize) -> Vec<String> {
        let agent = &self.proposal.agent;
        let mut answers = Vec::new();
        if self.may_allow() {
            answers.push("y yes, once".to_owned());
            if let Some(rule) = &self.proposal.always {
                answers.push(format!("a always for {agent}: {rule}"));
                answers.push("r always in this run, for any agent".to_owned());
            }
        }
        let first = answers.len();
        if self.may_allow() && self.proposal.always.is_some() {
            answers.push("k in later runs too".to_owned());
        }
        answers.push("n no".to_owned());
        answers.push(format!("s no, and say why ({agent} reads it)"));
        if !self.is_seen.get() {
            let then = if self.may_allow() { "" } else { ", then y allows it" };
            answers.push(format!("d show all{then}"));
        }
        answers.push("? help".to_owned());
        if self.shows_help {
            answers.push("One key answers, without Enter; other keys answer nothing.".to_owned());
            answers.push(match self.proposal.always {
                Some(_) => {
                    "`always` covers what it names until this run ends, k until `squad policy remove`.".to_owned()
                }
                None => "There is no `always`: this is asked each time.".to_owned(),
            });
        }
        if columns < NARROW {
            return answers;
        }
        let (helps, answers) = (answers.split_off(answers.len() - 2 * usize::from(self.shows_help)), answers);
        let (allow, refuse) = answers.split_at(first);
        let rows = [allow, refuse].into_iter().filter(|row| !row.is_empty()).map(|row| row.join("    "));
        rows.chain(helps).collect()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::model::Slug;

    fn proposal(body: usize, is_command: bool, always: Option<&str>) -> Proposal {
        Proposal {
            agent: Slug::fold("docs").expect("a name"),
            title: "docs wants to write docs/health.md, a new file of 38 lines".to_owned(),
            body: (1..=body).map(|line| format!("{line:>6} + line {line}")).collect(),
            is_command,
            always: always.map(str::to_owned),
        }
    }

    fn shown(dialog: &Dialog, columns: usize) -> String {
        shown_at(dialog, Size { lines: 24, columns })
    }

    fn shown_at(dialog: &Dialog, size: Size) -> String {
        let lines = dialog.lines(size);
        assert!(lines.len() < size.lines && lines.iter().all(|line| line.width() <= size.columns), "{lines:?}");
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    #[test]
    fn a_question_names_each_answer() {
        let asked = proposal(38, false, Some("writes in this project"));
        let mut dialog = Dialog::new(asked.clone());
        dialog.behind = vec!["tester".to_owned()];
        assert!(!shown(&dialog, 100).contains("yes, once"), "it has just come");
        dialog.is_ready = true;
        expect![[r#"
            ! docs wants to write docs/health.md, a new file of 38 lines   (question 1 of 2; tester asks next)
                 1 + line 1
                 2 + line 2
                 3 + line 3
                 4 + line 4
                 5 + line 5
                 6 + line 6
                 7 + line 7
                 8 + line 8
                 9 + line 9
                10 + line 10
                11 + line 11
                   … 27 more lines
              y yes, once    a always for docs: writes in this project    r always in this run, for any agent
              k in later runs too    n no    s no, and say why (docs reads it)    d show all    ? help
        "#]]
        .assert_eq(&shown(&dialog, 100));
        dialog.behind.clear();
        assert_eq!(dialog.press(Key::Char('d')), Pressed::ShowAll);
        assert_eq!(dialog.press(Key::Enter), Pressed::Nothing);
        expect![[r#"
            ! docs wants to write docs/health.md, a new file of 38 lines
              y yes, once
              a always for docs: writes in this project
              r always in this run, for any agent
              k in later runs too
              n no
              s no, and say why (docs reads it)
              ? help
              One key answers, without Enter; other keys answer nothing.
              `always` covers what it names until this run ends, k until
              `squad policy remove`.
        "#]]
        .assert_eq(&shown(&dialog, 60));
    }

    #[test]
    fn a_key_answers_only_what_is_offered() {
        let asked = proposal(2, false, None);
        let mut dialog = Dialog::new(asked.clone());
        dialog.is_ready = true;
        shown(&dialog, 100);
        for (key, pressed) in [
            (Key::Char('a'), Pressed::Nothing),
            (Key::Char('r'), Pressed::Nothing),
            (Key::Char('d'), Pressed::Nothing),
            (Key::Char('x'), Pressed::Nothing),
            (Key::Enter, Pressed::Nothing),
            (Key::Escape, Pressed::Nothing),
            (Key::Control('d'), Pressed::Nothing),
            (Key::Char('Y'), Pressed::Answer("y")),
            (Key::Char('n'), Pressed::Answer("n")),
            (Key::Char('s'), Pressed::Say),
        ] {
            assert_eq!(dialog.press(key), pressed, "{key:?}");
        }
        assert!(shown(&dialog, 100).contains("There is no `always`"));
    }

    #[test]
    fn a_command_is_allowed_once_all_of_it_was_shown() {
        let asked = proposal(200, true, Some("cargo test"));
        let mut dialog = Dialog::new(asked.clone());
        dialog.is_ready = true;
        let before = shown(&dialog, 100);
        assert!(before.contains("d show all, then y allows it") && !before.contains("yes, once"), "{before}");
        assert_eq!(dialog.press(Key::Char('y')), Pressed::Nothing);
        assert_eq!(dialog.press(Key::Char('a')), Pressed::Nothing);
        assert_eq!(dialog.press(Key::Char('d')), Pressed::ShowAll);
        assert_eq!(dialog.press(Key::Char('y')), Pressed::Answer("y"));
    }

    #[test]
    fn any_screen_has_room() {
        let asked = proposal(50, false, Some("writes in this project"));
        for (lines, columns) in (1..30).flat_map(|lines| [(lines, 1), (lines, 20), (lines, 300)]) {
            let mut dialog = Dialog::new(asked.clone());
            dialog.is_ready = true;
            let shown = dialog.lines(Size { lines, columns });
            let height = height(shown.iter().map(Text::width), columns);
            assert!(!shown.is_empty() && (height < lines || lines < 3), "{lines} {columns}: {shown:?}");
        }
        let dialog = Dialog { is_ready: true, ..Dialog::new(asked) };
        expect![[r#"
            ! docs wants to
              write
              docs/health.md, a
              y a r k n s d ?
        "#]]
        .assert_eq(&shown_at(&dialog, Size { lines: 5, columns: 20 }));
    }
}
