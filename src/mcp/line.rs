//! Reads lines of bounded length. A line that is too long is skipped and reported.

use std::io::{self, BufRead};

/// Maximum bytes of a line, or of an HTTP request's body.
pub(super) const MAX_MESSAGE: usize = 16 * 1024 * 1024;

#[derive(Debug, PartialEq)]
pub(super) enum Line {
    Text(Vec<u8>),
    TooLong,
    /// The end of input.
    End,
}

impl Line {
    /// Roughly the memory it takes.
    pub(super) fn size(&self) -> usize {
        let text = if let Self::Text(text) = self { text.capacity() } else { 0 };
        size_of::<Self>() + text
    }
}

/// Reads the next line that is not blank. The last one may lack its line feed.
pub(super) fn next(input: &mut dyn BufRead, max_bytes: usize) -> io::Result<Line> {
    loop {
        let mut line = Vec::new();
        let mut is_too_long = false;
        loop {
            let buffer = match input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                buffer => buffer?,
            };
            if buffer.is_empty() {
                break;
            }
            let end = buffer.iter().position(|&byte| byte == b'\n');
            let (consumed, text) = end.map_or((buffer.len(), buffer), |at| (at + 1, &buffer[..at]));
            is_too_long |= line.len() + text.len() > max_bytes;
            if is_too_long {
                line = Vec::new();
            } else {
                line.extend_from_slice(text);
            }
            input.consume(consumed);
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

    fn lines(text: &[u8], capacity: usize, max_bytes: usize) -> Vec<Line> {
        let mut input = BufReader::with_capacity(capacity, Cursor::new(text.to_vec()));
        let mut all = Vec::new();
        loop {
            match next(&mut input, max_bytes).expect("a cursor can be read") {
                Line::End => return all,
                line => all.push(line),
            }
        }
    }

    #[test]
    fn lines_do_not_depend_on_the_buffer() {
        let text = "{}\n\n  \r\nünter\n0123456789\nlast".as_bytes();
        for capacity in 1..=text.len() {
            let expected = ["{}", "ünter", "", "last"].map(|line| match line {
                "" => Line::TooLong,
                line => Line::Text(line.as_bytes().to_vec()),
            });
            assert_eq!(lines(text, capacity, 8), expected, "buffer of {capacity}");
        }
    }
}
