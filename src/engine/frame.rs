//! Where a message begins and ends: `Content-Length` frames, as in the Language Server Protocol, or lines.

use std::fmt;
use std::io;

use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

use crate::model::{first_line, printable};

/// The size limit of a frame in bytes. A frame holds at most a model's turn; anything longer is garbage that must not
/// be allocated.
const MAX_FRAME: u64 = 64 * 1024 * 1024;
/// The size limit of all header lines in bytes.
const MAX_HEADER: u64 = 8 * 1024;

#[derive(Debug)]
pub(crate) enum FrameError {
    Io(io::Error),
    /// An invalid header line.
    NotAHeader(String),
    NoLength,
    TooLong(u64),
    LongLine,
    Truncated,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "its output cannot be read: {error}"),
            Self::NotAHeader(line) => write!(f, "it does not speak the protocol: it printed `{line}`"),
            Self::NoLength => write!(f, "it does not speak the protocol: a message has no length"),
            Self::TooLong(bytes) => {
                write!(f, "it does not speak the protocol: it announced a message of {bytes} bytes")
            }
            Self::LongLine => write!(f, "it does not speak the protocol: it printed a line above {MAX_FRAME} bytes"),
            Self::Truncated => write!(f, "it ended in the middle of a message"),
        }
    }
}

impl From<io::Error> for FrameError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The next frame's content; `None` at the end of the stream.
pub(crate) async fn read(reader: &mut (impl AsyncBufRead + Unpin)) -> Result<Option<Vec<u8>>, FrameError> {
    let Some(length) = read_header(reader).await? else { return Ok(None) };
    if length > MAX_FRAME {
        return Err(FrameError::TooLong(length));
    }
    let mut content = Vec::new();
    // The buffer grows with the data received, so an announced length alone costs no memory.
    let read = reader.take(length).read_to_end(&mut content).await?;
    if (read as u64) < length {
        return Err(FrameError::Truncated);
    }
    Ok(Some(content))
}

/// The length in the header; `None` at the end of the stream.
async fn read_header(reader: &mut (impl AsyncBufRead + Unpin)) -> Result<Option<u64>, FrameError> {
    let mut length = None;
    let mut budget = MAX_HEADER;
    loop {
        let mut line = Vec::new();
        let read = (&mut *reader).take(budget).read_until(b'\n', &mut line).await? as u64;
        if read == 0 && budget == MAX_HEADER {
            return Ok(None);
        }
        budget -= read;
        if !line.ends_with(b"\n") {
            return Err(if budget == 0 || !line.is_empty() { not_a_header(&line) } else { FrameError::Truncated });
        }
        let line = line.trim_ascii();
        if line.is_empty() {
            return length.map(Some).ok_or(FrameError::NoLength);
        }
        let text = String::from_utf8_lossy(line);
        let (name, value) = text.split_once(':').ok_or_else(|| not_a_header(line))?;
        if name.trim().eq_ignore_ascii_case("Content-Length") {
            length = Some(value.trim().parse().map_err(|_| not_a_header(line))?);
        }
    }
}

fn not_a_header(line: &[u8]) -> FrameError {
    FrameError::NotAHeader(shown(line))
}

fn shown(line: &[u8]) -> String {
    first_line(&printable(&String::from_utf8_lossy(line)), 80)
}

pub(super) fn encode(message: &Value) -> Vec<u8> {
    let content = message.to_string();
    let mut frame = format!("Content-Length: {}\r\n\r\n", content.len()).into_bytes();
    frame.extend(content.into_bytes());
    frame
}

/// The next line that can be a JSON object; `None` at the end of the stream. Anything else that a program prints is
/// logged and skipped, as is half a line at the end.
pub(super) async fn read_line(reader: &mut (impl AsyncBufRead + Unpin)) -> Result<Option<Vec<u8>>, FrameError> {
    loop {
        let mut line = Vec::new();
        let read = (&mut *reader).take(MAX_FRAME).read_until(b'\n', &mut line).await?;
        let is_whole = line.ends_with(b"\n");
        match line.trim_ascii() {
            _ if read == 0 => return Ok(None),
            _ if !is_whole && read as u64 == MAX_FRAME => return Err(FrameError::LongLine),
            content if is_whole && content.starts_with(b"{") => return Ok(Some(content.to_vec())),
            noise => tracing::warn!("the engine printed what is no message: {}", shown(noise)),
        }
    }
}

pub(super) fn encode_line(message: &Value) -> Vec<u8> {
    format!("{message}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise, half a line, and a result of 10 MB.
    #[tokio::test]
    async fn lines_that_are_no_messages_are_skipped() {
        let large = format!("{{\"result\":\"{}\"}}", "x".repeat(10 << 20));
        let text = format!("Update available!\n\n{{\"a\":1}}\r\n[7]\n\u{1b}[0m\n{large}\n{{\"half\":");
        let mut bytes = text.as_bytes();
        let mut seen = Vec::new();
        while let Some(line) = read_line(&mut bytes).await.expect("it goes on") {
            seen.push(String::from_utf8(line).expect("text"));
        }
        assert!(seen == ["{\"a\":1}".to_owned(), large], "{} lines", seen.len());
        let endless = vec![b'{'; MAX_FRAME as usize + 1];
        let error = read_line(&mut &endless[..]).await.expect_err("it is too long");
        assert!(error.to_string().contains("a line above"), "{error}");
    }

    async fn frames(mut bytes: &[u8]) -> Vec<String> {
        let mut seen = Vec::new();
        loop {
            match read(&mut bytes).await {
                Ok(Some(content)) => seen.push(String::from_utf8_lossy(&content).into_owned()),
                Ok(None) => return seen,
                Err(error) => {
                    seen.push(format!("error: {error}"));
                    return seen;
                }
            }
        }
    }

    #[tokio::test]
    async fn encoded_frames_are_read_back() {
        let mut bytes = encode(&Value::from("äöü"));
        bytes.extend(b"content-type: x\r\ncontent-length: 2\r\n\r\n{}");
        assert_eq!(frames(&bytes).await, ["\"äöü\"", "{}"]);
    }

    #[tokio::test]
    async fn garbage_is_quoted_in_the_error() {
        for (bytes, message) in [
            ("Welcome!\n", "it does not speak the protocol: it printed `Welcome!`"),
            ("Welcome", "it does not speak the protocol: it printed `Welcome`"),
            ("Content-Length: x\r\n\r\n", "it does not speak the protocol: it printed `Content-Length: x`"),
            ("Content-Length: -1\r\n\r\n", "it does not speak the protocol: it printed `Content-Length: -1`"),
            ("A: b\r\n\r\n", "it does not speak the protocol: a message has no length"),
            (
                "Content-Length: 99999999999\r\n\r\n",
                "it does not speak the protocol: it announced a message of 99999999999 bytes",
            ),
            ("Content-Length: 5\r\n\r\n{}", "it ended in the middle of a message"),
            ("Content-Length: 5\r\n", "it ended in the middle of a message"),
        ] {
            assert_eq!(frames(bytes.as_bytes()).await, [format!("error: {message}")], "{bytes:?}");
        }
        let endless = vec![b'x'; 100_000];
        assert!(frames(&endless).await[0].starts_with("error: it does not speak the protocol: it printed `xxx"));
    }
}
