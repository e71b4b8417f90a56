//! What a terminal shows after some bytes: a small terminal emulator, for the sequences that squad writes.

/// Lines that may be scrolled out of sight are kept.
pub(crate) struct Emulator {
    columns: usize,
    rows: Vec<Vec<char>>,
    /// The cursor.
    row: usize,
    column: usize,
}

impl Emulator {
    pub(crate) fn shows(bytes: &str, columns: usize) -> String {
        let mut terminal = Self { columns, rows: vec![Vec::new()], row: 0, column: 0 };
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
                    terminal.sequence(&sequence);
                }
                '\r' => terminal.column = 0,
                '\n' => terminal.down(),
                '\u{7}' => {}
                c => terminal.put(c),
            }
        }
        let lines = terminal.rows.iter().map(|row| row.iter().collect::<String>().trim_end().to_owned());
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
        if self.column == self.columns {
            self.column = 0;
            self.down();
        }
        let row = &mut self.rows[self.row];
        while row.len() <= self.column {
            row.push(' ');
        }
        row[self.column] = c;
        self.column += 1;
    }

    fn sequence(&mut self, sequence: &str) {
        let (count, last) = sequence.split_at(sequence.len() - 1);
        let number = count.parse().unwrap_or(1);
        match last {
            "C" => self.column = (self.column + number).min(self.columns.saturating_sub(1)),
            "A" => self.row = self.row.saturating_sub(number),
            // From the cursor to the end of the screen.
            "J" => {
                self.rows.truncate(self.row + 1);
                self.rows[self.row].truncate(self.column);
            }
            "K" => self.rows[self.row].truncate(self.column),
            other => assert_eq!(other, "m", "squad writes no CSI {count}{other}"),
        }
    }
}

#[test]
fn lines_are_erased_and_wrapped() {
    assert_eq!(Emulator::shows("one\r\n\u{1b}[1mtwo\u{1b}[0m\r\n\r\u{1b}[1A\u{1b}[Jthree\r\n", 80), "one\nthree\n");
    assert_eq!(Emulator::shows("abcdef\r\n\u{1b}[2A\u{1b}[Jx", 3), "x\n");
}
