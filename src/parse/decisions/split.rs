//! Splits a file of many decisions by byte ranges.

use std::ops::Range;

use super::entries;
use super::found::LocatedDecision;
use super::note;
use super::places::{FileKind, file_kind, main_file};
use crate::model::Decision;
use crate::parse::{Files, line_feeds, without_mark};

/// A decision with its bytes in the file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piece {
    pub(crate) decision: Decision,
    pub(crate) range: Range<usize>,
    /// The start of its heading's line.
    pub(crate) heading: usize,
    /// The end of its heading, or the start of `range` if it has none, such as a short note.
    pub(crate) body: usize,
}

/// Paths of the files that contain several decisions. The file that agents read comes first.
pub(crate) fn sources(files: &Files) -> Vec<&str> {
    let main = main_file(files);
    let of = |wanted: fn(&FileKind) -> bool| {
        files.texts.keys().map(String::as_str).filter(move |path| file_kind(path, main).as_ref().is_some_and(wanted))
    };
    let (main, others) =
        (of(|kind| matches!(kind, FileKind::Main)), of(|kind| matches!(kind, FileKind::Inbox | FileKind::Archive)));
    main.chain(others).collect()
}

/// The decisions of one of [`sources`], in order. Ranges do not overlap. Titles, rules and notes to the reader between
/// them belong to none.
pub(crate) fn split(files: &Files, path: &str) -> Vec<Piece> {
    let Some(raw) = files.texts.get(path) else { return Vec::new() };
    let is_note = matches!(file_kind(path, main_file(files)), Some(FileKind::Inbox));
    let text = line_feeds(without_mark(raw));
    let found = match is_note {
        true => note(files, path, &text).found,
        false => entries::read(files, path, &text).found,
    };
    let lines = Lines::new(&text, raw);
    let piece = |found: LocatedDecision| Piece {
        range: lines.raw(found.start)..lines.raw(found.end),
        heading: lines.raw(found.start),
        body: lines.raw(found.body),
        decision: found.decision,
    };
    let mut pieces: Vec<Piece> = found.into_iter().map(piece).collect();
    // Text above the only decision of a note belongs to it.
    if let ([only], true) = (pieces.as_mut_slice(), is_note) {
        only.range.start = lines.raw(0);
    }
    pieces.retain(|piece| !piece.range.is_empty());
    pieces
}

/// Line starts in the decoded text and in the raw file.
struct Lines {
    read: Vec<usize>,
    raw: Vec<usize>,
    length: usize,
}

impl Lines {
    fn new(text: &str, raw: &str) -> Self {
        let mark = raw.len() - without_mark(raw).len();
        let read = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let bytes = raw.as_bytes();
        let is_end = |at: usize, byte: u8| byte == b'\n' || (byte == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
        let ends = bytes.iter().enumerate().filter(|(at, byte)| is_end(*at, **byte)).map(|(at, _)| at + 1);
        Self { read, raw: std::iter::once(mark).chain(ends).collect(), length: raw.len() }
    }

    /// The raw offset of a line start.
    fn raw(&self, offset: usize) -> usize {
        let line = self.read.partition_point(|start| *start < offset);
        self.raw.get(line).copied().unwrap_or(self.length)
    }
}
