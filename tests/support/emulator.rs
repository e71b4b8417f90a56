//! What a terminal shows after some bytes: a small terminal emulator, for the sequences that squad writes.

use unicode_width::UnicodeWidthChar;

/// Lines that may be scrolled out of sight are kept.
pub(crate) struct Emulator {
    columns: usize,
    /// A cell holds a character and the marks on it. The second cell of a wide character is empty.
    rows: Vec<Vec<String>>,
    /// The cursor.
    row: usize,
    column: usize,
}

impl Emulator {
    pub(crate) fn shows(bytes: &str, columns: usize) -> String {
        let mut terminal = Self { columns, rows: vec![Vec::new()], row: 0, column: 0 };
        terminal.feed(bytes);
        terminal.shown()
    }

    /// The same, of a terminal that is given another width between the two, and wraps its lines anew as most do.
    pub(crate) fn shows_resized(before: (&str, usize), after: (&str, usize)) -> String {
        let mut terminal = Self { columns: before.1, rows: vec![Vec::new()], row: 0, column: 0 };
        terminal.feed(before.0);
        terminal.resize(after.1);
        terminal.feed(after.0);
        terminal.shown()
    }

    fn resize(&mut self, columns: usize) {
        self.columns = columns;
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut cursor = 0;
        for (number, row) in std::mem::take(&mut self.rows).into_iter().enumerate() {
            if number == self.row {
                cursor = rows.len() + self.column / columns;
            }
            let first = rows.len();
            rows.extend(row.chunks(columns).map(<[String]>::to_vec));
            if rows.len() == first {
                rows.push(row);
            }
        }
        rows.resize(rows.len().max(cursor + 1), Vec::new());
        (self.rows, self.row, self.column) = (rows, cursor, self.column % columns);
    }

    fn feed(&mut self, bytes: &str) {
        let mut rest = bytes.chars();
        while let Some(c) = rest.next() {
            match c {
                '\u{1b}' if rest.as_str().starts_with('[') => {
                    let mut sequence = String::new();
                    for c in rest.by_ref().skip(1) {
                        sequence.push(c);
                        if c.is_ascii_alphabetic() {
                            break;
                        }
                    }
                    self.sequence(&sequence);
                }
                '\r' => self.column = 0,
                '\n' => self.down(),
                '\u{7}' => {}
                c => self.put(c),
            }
        }
    }

    fn shown(&self) -> String {
        let lines = self.rows.iter().map(|row| row.concat().trim_end().to_owned());
        let lines: Vec<String> = lines.collect();
        let end = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |at| at + 1);
        lines[..end].iter().map(|line| format!("{line}\n")).collect()
    }

    fn down(&mut self) {
        self.row += 1;
        if self.row == self.rows.len() {
            self.rows.push(Vec::new());
        }
    }

    fn put(&mut self, c: char) {
        let width = c.width().unwrap_or_default();
        if width > 0 && self.column + width > self.columns {
            self.column = 0;
            self.down();
        }
        let row = &mut self.rows[self.row];
        if row.len() < self.column + width {
            row.resize(self.column + width, " ".to_owned());
        }
        match width {
            // A mark on the character before it.
            0 => row[..self.column]
                .iter_mut()
                .rev()
                .find(|cell| !cell.is_empty())
                .into_iter()
                .for_each(|cell| cell.push(c)),
            _ => row[self.column] = c.to_string(),
        }
        row[self.column..].iter_mut().take(width).skip(1).for_each(String::clear);
        self.column += width;
    }

    fn sequence(&mut self, sequence: &str) {
        let (count, last) = sequence.split_at(sequence.len() - 1);
        let number = count.parse().unwrap_or(1);
        match last {
            "C" => self.column = (self.column + number).min(self.columns.saturating_sub(1)),
            "D" => self.column = self.column.saturating_sub(number),
            "A" => self.row = self.row.saturating_sub(number),
            "B" => (0..number).for_each(|_| self.down()),
            // From the cursor to the end of the screen.
            "J" => {
                self.rows.truncate(self.row + 1);
                self.rows[self.row].truncate(self.column);
            }
            "K" => self.rows[self.row].truncate(self.column),
            // Pastes that are marked as such, frames that are shown at once, and the cursor.
            "h" | "l" if ["?2004", "?2026", "?25"].contains(&count) => {}
            other => assert_eq!(other, "m", "squad writes no CSI {count}{other}"),
        }
    }
}

#[test]
fn lines_are_erased_and_wrapped() {
    assert_eq!(Emulator::shows("one\r\n\u{1b}[1mtwo\u{1b}[0m\r\n\r\u{1b}[1A\u{1b}[Jthree\r\n", 80), "one\nthree\n");
    assert_eq!(Emulator::shows("abcdef\r\n\u{1b}[2A\u{1b}[Jx", 3), "x\n");
    assert_eq!(Emulator::shows("日本e\u{301}x", 5), "日本e\u{301}\nx\n");
    let resized = Emulator::shows_resized(("one\r\nabcdef\r\n", 6), ("\u{1b}[2A\u{1b}[Jx", 3));
    assert_eq!(resized, "one\nx\n");
}
