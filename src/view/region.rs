//! The last lines of the terminal, which are redrawn in place while other lines scroll above them.
//!
//! There is one terminal, so there is one region. [`Above`] removes it before anything else is written: nothing of it is
//! left behind, whoever writes.

use std::io::{self, IsTerminal, Write};

use parking_lot::Mutex;

use super::standard_stream::{StandardStream, is_stuck};
use super::text::{Painter, Text};

/// Lines and columns of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) lines: usize,
    pub(crate) columns: usize,
}

/// What a terminal that does not tell its size has.
const USUAL: Size = Size { lines: 24, columns: 80 };

#[derive(Default)]
struct Drawn {
    /// The lines on the screen.
    lines: Vec<Text>,
    /// The size that it had when they were drawn.
    size: Option<Size>,
    /// Something else has begun a line and not ended it.
    is_within_line: bool,
}

static DRAWN: Mutex<Drawn> = Mutex::new(Drawn { lines: Vec::new(), size: None, is_within_line: false });

/// Shows these lines in the place of those shown before.
pub(crate) fn draw(lines: &[Text], painter: Painter) {
    let mut drawn = DRAWN.lock();
    let size = size(&io::stderr());
    let is_same = drawn.lines == lines && drawn.size == size;
    if drawn.is_within_line || is_same || is_stuck() || !io::stderr().is_terminal() {
        return;
    }
    let text = match size.filter(|size| drawn.can_be_changed(lines, *size)) {
        Some(_) => changes(&drawn.lines, lines, painter),
        None => drawn.erasure() + &lines.iter().map(|line| painter.paint(line) + "\n").collect::<String>(),
    };
    (drawn.lines, drawn.size) = (lines.to_vec(), size);
    write(&text);
}

/// What turns the lines above the cursor into others: a connection may be slow, and most of a frame is as before.
pub(super) fn changes(before: &[Text], after: &[Text], painter: Painter) -> String {
    let pairs = || before.iter().zip(after);
    let first = pairs().position(|(before, after)| before != after).unwrap_or(before.len());
    let mut text = format!("\r\x1b[{}A", before.len() - first);
    for (before, after) in pairs().skip(first) {
        if before != after {
            let (column, rest) = after.changed_from(before);
            if column > 0 {
                text += &format!("\x1b[{column}C");
            }
            text += &format!("{}\x1b[K", painter.paint(&rest));
        }
        text.push('\n');
    }
    text
}

/// Removes the lines.
pub(crate) fn clear() {
    let mut drawn = DRAWN.lock();
    let text = drawn.erasure();
    write(&text);
}

fn write(text: &str) {
    if text.is_empty() {
        return;
    }
    // A closed terminal shows nothing.
    let _ = StandardStream::Err.write_all(text.as_bytes());
}

impl Drawn {
    /// Whether each line has a row of its own, and the rows are where they were drawn.
    fn can_be_changed(&self, lines: &[Text], size: Size) -> bool {
        let has_row = |line: &Text| line.width() < size.columns;
        !lines.is_empty()
            && self.lines.len() == lines.len()
            && self.size == Some(size)
            && lines.len() < size.lines
            && self.lines.iter().chain(lines).all(has_row)
    }

    /// Forgets the lines. Returns what removes them from the screen, whose size may have changed since.
    fn erasure(&mut self) -> String {
        if self.lines.is_empty() {
            return String::new();
        }
        let Size { lines, columns } = size(&io::stderr()).unwrap_or(USUAL);
        match height(self.lines.drain(..).map(|line| line.width()), columns).min(lines) {
            0 => String::new(),
            height => format!("\r\x1b[{height}A\x1b[J"),
        }
    }
}

/// A terminal made narrower wraps lines that are now too long.
pub(crate) fn height(widths: impl Iterator<Item = usize>, columns: usize) -> usize {
    widths.map(|width| width.div_ceil(columns.max(1)).max(1)).sum()
}

/// The size of standard error's terminal.
pub(crate) fn screen_size() -> Size {
    size(&io::stderr()).unwrap_or(USUAL)
}

/// `None`: it is no terminal, or does not say.
#[cfg(unix)]
pub(crate) fn size(stream: &impl std::os::fd::AsFd) -> Option<Size> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    let (lines, columns) = (usize::from(size.ws_row), usize::from(size.ws_col));
    (lines > 0 && columns > 0).then_some(Size { lines, columns })
}

#[cfg(windows)]
pub(crate) fn size(stream: &impl IsTerminal) -> Option<Size> {
    let (columns, lines) = stream.is_terminal().then(|| crossterm::terminal::size().ok()).flatten()?;
    // Without it, escape sequences would be shown.
    crossterm::ansi_support::supports_ansi()
        .then_some(Size { lines: usize::from(lines).max(1), columns: usize::from(columns).max(1) })
}

/// A stream of the terminal that the region is on. Whole lines are written at once.
pub(crate) struct Above<W> {
    inner: W,
    begun: Vec<u8>,
}

impl<W: Write> Above<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, begun: Vec::new() }
    }
}

impl<W: Write> Write for Above<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begun.extend(bytes);
        if bytes.ends_with(b"\n") {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let text = std::mem::take(&mut self.begun);
        let Some(last) = text.last() else { return self.inner.flush() };
        let mut drawn = DRAWN.lock();
        write(&drawn.erasure());
        drawn.is_within_line = *last != b'\n';
        self.inner.write_all(&text).and_then(|()| self.inner.flush())
    }
}

/// The user has ended a line by typing: what comes next begins one.
pub(crate) fn line_was_ended() {
    DRAWN.lock().is_within_line = false;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::LineStyle;

    #[test]
    fn the_height_is_that_on_the_screen_as_it_is_now() {
        assert_eq!(height([79, 79, 0].into_iter(), 80), 3);
        assert_eq!(height([79, 79, 0].into_iter(), 40), 5);
        assert_eq!(height([3].into_iter(), 0), 3);
    }

    /// Forty rows whose times go on are a frame of less than 2 KB, whatever the terminal's width.
    #[test]
    fn a_frame_is_what_has_changed() {
        let row = |number: usize, time: &str| {
            let line = Text::unmarked().plain(&format!("agent-{number}")).filled(20).plain(&"word ".repeat(30));
            line.filled(180).with(LineStyle::Faint, time)
        };
        let frame = |time: &str| (0..40).map(|number| row(number, time)).collect::<Vec<_>>();
        let painter = Painter { has_colors: true, is_ascii: false };
        let text = changes(&frame("0:41"), &frame("0:42"), painter);
        assert!(text.len() < 2_000 && text.starts_with("\r\x1b[40A\x1b[180C"), "{} {text:?}", text.len());
        let mut after = frame("0:41");
        after[38] = Text::default().plain("文 new");
        let text = changes(&frame("0:41"), &after, Painter::default());
        assert_eq!(text, "\r\x1b[2A文 new\x1b[K\n\n");
        // What is before a change may have another width than squad thinks.
        after[38] = Text::default().plain("⚠️ ").with(LineStyle::Faint, "a");
        let mut last = after.clone();
        last[38] = Text::default().plain("⚠️ ").with(LineStyle::Faint, "b");
        assert_eq!(changes(&after, &last, Painter::default()), "\r\x1b[2A⚠️ b\x1b[K\n\n");
    }

    #[test]
    fn whole_lines_are_written_at_once() {
        #[derive(Default)]
        struct Pieces(Vec<String>);
        impl Write for Pieces {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.push(String::from_utf8_lossy(bytes).into_owned());
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut above = Above::new(Pieces::default());
        let (word, number) = ("one", 2);
        writeln!(above, "{word} {number}").expect("written");
        write!(above, "sure? ").and_then(|()| above.flush()).expect("written");
        line_was_ended();
        assert_eq!(above.inner.0, ["one 2\n", "sure? "]);
    }
}
