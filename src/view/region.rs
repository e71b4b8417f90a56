//! The last lines of the terminal, which are redrawn in place while other lines scroll above them.
//!
//! There is one terminal, so there is one region. [`Above`] removes it before anything else is written: nothing of it is
//! left behind, whoever writes.

use std::io::{self, IsTerminal, Write};

use parking_lot::Mutex;

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
    /// The lines on the screen, and their widths.
    lines: Vec<(String, usize)>,
    /// Something else has begun a line and not ended it.
    is_within_line: bool,
}

static DRAWN: Mutex<Drawn> = Mutex::new(Drawn { lines: Vec::new(), is_within_line: false });

/// Shows these lines in the place of those shown before.
pub(crate) fn draw(lines: &[Text], painter: Painter) {
    let lines = lines.iter().map(|line| (painter.paint(line), line.width())).collect::<Vec<_>>();
    let mut drawn = DRAWN.lock();
    if drawn.lines == lines || drawn.is_within_line || !io::stderr().is_terminal() {
        return;
    }
    let mut text = drawn.erasure();
    lines.iter().for_each(|(line, _)| text.push_str(&format!("{line}\n")));
    drawn.lines = lines;
    write(&text);
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
    let mut terminal = io::stderr().lock();
    // A closed terminal shows nothing.
    let _ = terminal.write_all(text.as_bytes()).and_then(|()| terminal.flush());
}

impl Drawn {
    /// Forgets the lines. Returns what removes them from the screen, whose size may have changed since.
    fn erasure(&mut self) -> String {
        if self.lines.is_empty() {
            return String::new();
        }
        let Size { lines, columns } = size(&io::stderr()).unwrap_or(USUAL);
        match height(self.lines.drain(..).map(|(_, width)| width), columns).min(lines) {
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

    #[test]
    fn the_height_is_that_on_the_screen_as_it_is_now() {
        assert_eq!(height([79, 79, 0].into_iter(), 80), 3);
        assert_eq!(height([79, 79, 0].into_iter(), 40), 5);
        assert_eq!(height([3].into_iter(), 0), 3);
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
