//! Lines of bounded length: one that is too long is told about, and read past.

use std::io::{self, BufRead};

/// What a client may send in one line.
pub(super) const LONGEST: usize = 16 * 1024 * 1024;

#[derive(Debug, PartialEq)]
pub(super) enum Line {
    Text(Vec<u8>),
    TooLong,
    /// The client is gone.
    End,
}

/// The next line that is not empty. The last one may lack its end.
pub(super) fn next(input: &mut dyn BufRead, longest: usize) -> io::Result<Line> {
    loop {
        let mut line = Vec::new();
        let mut is_too_long = false;
        loop {
            let piece = match input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                piece => piece?,
            };
            if piece.is_empty() {
                break;
            }
            let end = piece.iter().position(|&byte| byte == b'\n');
            let (taken, text) = end.map_or((piece.len(), piece), |at| (at + 1, &piece[..at]));
            is_too_long |= line.len() + text.len() > longest;
            if is_too_long {
                line = Vec::new();
            } else {
                line.extend_from_slice(text);
            }
            input.consume(taken);
            if end.is_some() {
                break;
            }
        }
        if is_too_long {
            return Ok(Line::TooLong);
        }
        if !line.trim_ascii().is_empty() {
            return Ok(Line::Text(line));
        }
        if input.fill_buf()?.is_empty() {
            return Ok(Line::End);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Cursor};

    use super::*;

    fn lines(text: &[u8], piece: usize, longest: usize) -> Vec<Line> {
        let mut input = BufReader::with_capacity(piece, Cursor::new(text.to_vec()));
        let mut all = Vec::new();
        loop {
            match next(&mut input, longest).expect("a cursor can be read") {
                Line::End => return all,
                line => all.push(line),
            }
        }
    }

    #[test]
    fn lines_are_the_same_however_they_come() {
        let text = "{}\n\n  \r\nünter\n0123456789\nlast".as_bytes();
        for piece in 1..=text.len() {
            let expected = ["{}", "ünter", "", "last"].map(|line| match line {
                "" => Line::TooLong,
                line => Line::Text(line.as_bytes().to_vec()),
            });
            assert_eq!(lines(text, piece, 8), expected, "in pieces of {piece}");
        }
    }
}
